# SPDX-License-Identifier: Apache-2.0
"""bench_match.py - what a decision and a host of a list cost, beside peers.

Lists are made up from syllables, below names kept for documentation, and the
same for each contender.  bench/match measures the engine by itself (see there
how); the peers are programs that keep a list of names, loaded with each list,
and with one of a single name: what is told is the difference.
"""
import json
import os
import random
import statistics
import subprocess
import time

import kit

SIZES = (1000, 100000, 1000000)
OTHERS = 200000
RULES = 4096            # with a part of the largest list each
WAIT_S = 120            # for a peer to load and to answer

SYLLABLES = ("ka lo mi ren tas vo qui shel dor pex nu bra jen wik zor fal gim "
             "hut cy eda").split()
FRONTS = ("www api cdn static img mail app dev assets eu-west-1 m blog login "
          "files s3").split()
# Most names have one label below the top, as most of the public ones do.
TOPS = ["example"] * 6 + ["example.com", "example.net", "example.org", "test"]


def made_up(number, seed):
    """@number different names of two to six labels, in random order."""
    dice = random.Random(seed)
    names = {}
    while len(names) < number:
        label = "".join(dice.choice(SYLLABLES) for _ in range(
            dice.choice((1, 2, 2, 3, 3, 3, 4, 4, 5, 6))))
        if dice.random() < 0.35:
            label += str(dice.randrange(100000))
        if dice.random() < 0.15:
            label += "-" + dice.choice(SYLLABLES) + dice.choice(SYLLABLES)
        name = label + "." + dice.choice(TOPS)
        kind = dice.random()
        if kind < 0.45:
            name = dice.choice(FRONTS) + "." + name
        elif kind < 0.55:
            name = "%s%d.%s.%s" % (dice.choice(SYLLABLES), dice.randrange(1000),
                                   dice.choice(FRONTS), name)
        names[name] = None
    names = list(names)
    dice.shuffle(names)
    return names


def write_lines(path, lines):
    with open(path, "w", encoding="ascii") as out:
        out.writelines(line + "\n" for line in lines)


# --- the engine ----------------------------------------------------------------

def engine(bench, where, size, rules):
    argv = [os.path.join(os.environ["PENSTOCK_BUILD"], "bench/match"),
            "%s/list-%d" % (where, size), where + "/others", str(rules)]
    said = json.loads(subprocess.run(argv, check=True, capture_output=True,
                                     text=True).stdout)
    bench.row(measure="match", contender="penstock", **said)


def engine_table(rows):
    print("\none read from memory that hangs on the one before: %.0f ns (64 MB)"
          % statistics.median(row["memory_ns"] for row in rows
                              if row["measure"] == "match"))
    print("match: a decision, ns (each timed by itself; 'busy': nothing of it "
          "in the cache)")
    print("%9s %6s | %15s | %15s | %15s | %15s | %6s %8s %7s" % (
        "hosts", "rules", "hit median p99", "miss", "deep", "busy hit",
        "load s", "grown MB", "B/host"))
    groups = {}
    for row in rows:
        if row["measure"] == "match":
            groups.setdefault((row["hosts"], row["rules"]), []).append(row)
    for (hosts, rules), same in sorted(groups.items()):
        def middle(pick):
            return statistics.median(pick(row) for row in same)
        cells = ["%8.0f %6.0f" % (middle(lambda r: r[k]["median_ns"]),
                                  middle(lambda r: r[k]["p99_ns"]))
                 for k in ("hit", "miss", "deep", "busy")]
        grown = middle(lambda r: r["grown_kb"])
        print("%9d %6d | %s | %6.2f %8.1f %7.0f" % (
            hosts, rules, " | ".join(cells), middle(lambda r: r["load_cpu_s"]),
            grown / 1024, grown * 1024 / hosts))


# --- peers -----------------------------------------------------------------------

# In the lab's host: until it answers, over TCP or to a DNS question over UDP.
UNTIL_IT_ANSWERS = """
import socket, sys, time
how, port, limit = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
end = time.monotonic() + limit
query = (b"\\x12\\x34\\x01\\0\\0\\1\\0\\0\\0\\0\\0\\0\\7example\\0\\0\\1\\0\\1")
while time.monotonic() < end:
    try:
        if how == "tcp":
            socket.create_connection(("127.0.0.1", port), 1).close()
            sys.exit(0)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(0.1)
            s.connect(("127.0.0.1", port))
            s.send(query)
            s.recv(512)
            sys.exit(0)
    except OSError:
        time.sleep(0.02)
sys.exit(1)
"""


def squid(path, names):
    write_lines(path + ".list", names)
    write_lines(path, [
        "http_port 127.0.0.1:3130", "acl ok dstdomain \"%s.list\"" % path,
        "http_access allow ok", "http_access deny all", "cache deny all",
        "access_log none", "cache_log /dev/null", "pid_filename none",
        "cache_store_log none", "cache_effective_user proxy",
        "max_filedescriptors 1024", "pinger_enable off",
        "shutdown_lifetime 0 seconds"])
    return ["/usr/sbin/squid", "-N", "-f", path], "tcp", 3130


def dnsmasq(path, names):
    write_lines(path, ["server=/%s/192.0.2.53" % name for name in names])
    return ["/usr/sbin/dnsmasq", "-k", "--conf-file=" + path, "--port=5302",
            "--listen-address=127.0.0.1", "--bind-interfaces", "--no-resolv",
            "--no-hosts", "--user=root", "--pid-file=", "--cache-size=0"
            ], "udp", 5302


def unbound(path, names):
    write_lines(path, [
        "server:", " do-daemonize: no", " username: \"\"", " chroot: \"\"",
        " directory: \"\"", " pidfile: \"\"", " use-syslog: no",
        " logfile: \"/dev/null\"", " interface: 127.0.0.1", " port: 5301",
        " num-threads: 1", " module-config: \"iterator\"",
        " local-zone: \".\" refuse"] +
        [" local-zone: \"%s.\" transparent" % name for name in names])
    return ["/usr/sbin/unbound", "-d", "-c", path], "udp", 5301


PEERS = {"squid (dstdomain)": squid, "dnsmasq (server=//)": dnsmasq,
         "unbound (local-zone)": unbound}


def resident_kb(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return 0


def load_once(bench, argv, how, port):
    """CPU seconds until it answers, and KiB then; the process is ended."""
    process = bench.lab.host.popen(argv, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
    try:
        done = bench.lab.host.run(
            ["/usr/bin/python3", "-c", UNTIL_IT_ANSWERS, how, str(port),
             str(WAIT_S)], timeout=WAIT_S + 30)
        if done.returncode != 0 or process.poll() is not None:
            return None
        return kit.cpu_ns([process.pid]) / 1e9, resident_kb(process.pid)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def peer(bench, name, where, lists):
    path = "%s/%s.conf" % (where, PEERS[name].__name__)
    base = None
    for size in (1,) + SIZES:
        begun = time.monotonic()
        got = load_once(bench, *PEERS[name](path, lists[size]))
        if got is None:
            print("left out, did not start with %d names: %s" % (size, name))
            return
        base = base or got
        bench.row(measure="load", contender=name, hosts=size,
                  cpu_s=got[0], rss_kb=got[1],
                  more_cpu_s=got[0] - base[0], grown_kb=got[1] - base[1],
                  wall_s=time.monotonic() - begun)


def load_table(rows):
    print("\nloading the list: CPU s / MB more than with one name")
    print("%-24s" % "" + "".join("%22d" % size for size in SIZES))
    groups = {}
    for row in rows:
        if row["measure"] == "load":
            cell = (row["more_cpu_s"], row["grown_kb"])
        elif row["measure"] == "match" and row["rules"] == 1:
            cell = (row["load_cpu_s"], row["grown_kb"])
        else:
            continue
        groups.setdefault(row["contender"], {}).setdefault(
            row["hosts"], []).append(cell)
    for name, sizes in groups.items():
        cells = "".join("%14.3f /%6.1f" % (
            statistics.median(c[0] for c in sizes[size]),
            statistics.median(c[1] for c in sizes[size]) / 1024)
            for size in SIZES if size in sizes)
        print("%-24s%s" % (name, cells))


def bench_match(bench):
    where = bench.lab.workdir("match")
    names = made_up(SIZES[-1] + OTHERS, 1)
    lists = {size: names[:size] for size in (1,) + SIZES}
    for size in SIZES:
        write_lines("%s/list-%d" % (where, size), lists[size])
    write_lines(where + "/others", names[SIZES[-1]:])
    peers = []
    for name, make in PEERS.items():
        if os.path.exists(make(where + "/probe", [])[0][0]):
            peers.append(name)
        else:
            bench.missing(name, {"dnsmasq": "dnsmasq-base"}.get(
                make.__name__, make.__name__))
    for contender in bench.turns(["penstock"] + peers):
        if contender != "penstock":
            peer(bench, contender, where, lists)
            continue
        for size in SIZES:
            engine(bench, where, size, 1)
        engine(bench, where, SIZES[-1], RULES)
    engine_table(bench.rows)
    load_table(bench.rows)
