# SPDX-License-Identifier: Apache-2.0
"""bench_fair.py - how long a neighbour waits while a sandbox does its worst.

Two clients of one proxy that has one thread: the good one opens a tunnel, echoes
64 bytes through it and closes it, one after the other, and asks its resolver
for a name, one question after the other.  First alone, then while the other
client attacks, by `attack KIND`:

    new      connections without an end, 64 at a time
    bulk     16 tunnels that bring zeros as fast as they go
    held     as many silent connections as a sandbox may have, and as many more
             as are there to be refused
    heads    1000 heads of requests that grow byte by byte without a pause
    dns      questions without an end (of Penstock alone)

For Penstock the two are sandboxes of one service with one worker; of the peers
both are processes in the lab's host, which is all that they can tell apart.
"direct" has no proxy: what the attack costs by being on the same machine, with
the same origin.  The two have origins of their own, so that only the proxy, and
the machine, is shared.
"""
import json
import os
import statistics
import subprocess
import time

import kit
import names
from bench_start import Service

TUNNELS = 300           # of the good one, in a row
NAMES = 300
SECONDS = 4             # for these; what is not done by then has failed
GOOD_AT, BAD_AT = names.WEB_V4, names.SHARED_V4
GOOD, BAD = "v4.example.com", "shared.example.com"
AT = {GOOD: GOOD_AT, BAD: BAD_AT}
ECHO, ZEROS = 4007, 4019
ATTACKS = {             # what they reach, and how many
    "new": (ECHO, 64), "bulk": (ZEROS, 16), "held": (ECHO, 4096 + 256),
    "heads": (ECHO, 1000), "dns": (None, 64),
}


class Peer:
    """A program that listens in the lab's host."""

    def __init__(self, bench, argv, port):
        self.process = bench.lab.host.popen(
            argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            if bench.lab.host.run(
                    ["/usr/bin/python3", "-c", "import socket;"
                     "socket.create_connection(('127.0.0.1', %d))" % port],
                    stderr=subprocess.DEVNULL).returncode == 0:
                return
            time.sleep(0.05)
        self.close()
        raise SystemExit("%s did not start" % argv[0])

    def close(self):
        kit.end(self.process)


class Side:
    """No proxy: both go straight to their origins."""
    name = "direct"
    attacks = ("new", "bulk", "held")
    has_names = False
    how = "direct"

    def __init__(self, bench, server):
        self.bench, self.server = bench, server

    def target(self, host, port):
        return "%s:%d" % (host, port)

    def popen(self, argv):
        return self.bench.lab.host.popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def pids(self):
        return kit.below(self.server.process.pid) if self.server else []

    def close(self):
        if self.server:
            self.server.close()


class Haproxy(Side):
    """It forwards to one fixed place for each port, and reads no heads."""
    name = "haproxy (tcp)"
    program = "/usr/sbin/haproxy"
    doors = {(BAD, ECHO): 3007, (BAD, ZEROS): 3019, (GOOD, ECHO): 2007}

    def __init__(self, bench):
        path = bench.lab.dir + "/haproxy.cfg"
        with open(path, "w", encoding="ascii") as out:
            out.write("global\n nbthread 1\n maxconn 6000\n"
                      "defaults\n mode tcp\n timeout connect 10s\n"
                      " timeout client 1h\n timeout server 1h\n"
                      " option splice-auto\n maxconn 6000\n")
            for (host, port), door in self.doors.items():
                out.write("listen p%d\n bind 127.0.0.1:%d\n server o %s:%d\n"
                          % (door, door, AT[host], port))
        super().__init__(bench, Peer(
            bench, [self.program, "-db", "-f", path], 3007))

    def target(self, host, port):
        return "127.0.0.1:%d" % self.doors[host, port]


class Squid(Side):
    name = "squid"
    program = "/usr/sbin/squid"
    attacks = ("new", "bulk", "held", "heads")
    how = "connect:127.0.0.1:3130"

    def __init__(self, bench):
        path = bench.lab.dir + "/squid.conf"
        with open(path, "w", encoding="ascii") as out:
            out.write("http_port 127.0.0.1:3130\nacl ok dstdomain .example.com\n"
                      "http_access allow ok\nhttp_access deny all\n"
                      "cache deny all\naccess_log none\ncache_log /dev/null\n"
                      "pid_filename none\ncache_store_log none\n"
                      "max_filedescriptors 16384\ncache_effective_user proxy\n"
                      "shutdown_lifetime 1 seconds\n"
                      "dns_nameservers %s\n" % names.DNS_V4)
        super().__init__(bench, Peer(
            bench, [self.program, "-N", "-f", path], 3130))


class Penstock(Side):
    name = "penstock"
    attacks = tuple(ATTACKS)
    has_names = True
    how = "connect:127.0.0.1:3128"

    def popen(self, argv):
        home = self.bench.lab.workdir("home", kit.USER)
        return self.bench.lab.host.popen(
            [self.bench.penstock, "run", "--quiet", "--policy",
             self.server.policy, "--plug", self.server.plug, "--", *argv],
            uid=kit.USER, cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={"PATH": "/usr/bin:/bin", "HOME": home})

    def pids(self):
        return [self.server.process.pid]


# --- one measure ------------------------------------------------------------------

def end(process):
    process.stdin.close()
    said = process.stdout.read()
    process.wait()
    process.stdout.close()
    return said


def ready(side, argv):
    process = side.popen(argv)
    if process.stdout.readline() != "ready\n":
        raise SystemExit("%s: %s did not start" % (side.name, argv[0]))
    return process


def good(side, args, wanted):
    """What the good one said of its own, and the proxy's CPU a second."""
    client = ready(side, [side.bench.load, *args])
    before = kit.cpu_ns(side.pids())
    client.stdin.write("\n")
    client.stdin.flush()
    said = json.loads(client.stdout.readline())
    used = (kit.cpu_ns(side.pids()) - before) / 1e9 / said["seconds"]
    said["failed"] = wanted - said["done"]      # also what had no time to begin
    end(client)
    return said, used


def look(side, attack):
    rows = {"tunnel": (["tunnels", side.how, side.target(GOOD, ECHO)], TUNNELS)}
    if side.has_names:
        rows["name"] = (["names", "203.0.113.53", GOOD], NAMES)
    for what, (args, wanted) in rows.items():
        said, cpu = good(side, args + ["-n", str(wanted), "-s", str(SECONDS)],
                         wanted)
        side.bench.row(measure="fair " + what, contender=side.name,
                       attack=attack, value=said["p50_us"] / 1e3,
                       p99_ms=said["p99_us"] / 1e3, cpu=cpu,
                       turn_ms=1e3 * cpu * said["seconds"] / max(said["done"], 1),
                       done=said["done"], failed=said["failed"])


def beside(side, attack):
    port, n = ATTACKS[attack]
    target = side.target(BAD, port) if port else "203.0.113.53"
    hostile = ready(side, [side.bench.attack, attack, side.how, target, str(n)])
    try:
        look(side, attack)
    finally:
        end(hostile)


# --- all of them -------------------------------------------------------------------

def median(rows, side, what, attack, field):
    return statistics.median([
        r[field] for r in rows if r["measure"] == "fair " + what
        and r["contender"] == side and r["attack"] == attack] or [0])


def table(rows):
    print("\nfair: of the good one, median and 99th percentile in ms; to alone; "
          "what failed;\nCPU of the proxy: of a core, and ms while one was done")
    print("%-14s %-7s %-6s %9s %9s %7s %7s %7s %5s %8s" % (
        "", "", "beside", "median", "p99", "x", "x p99", "failed", "cpu",
        "ms each"))
    seen = []
    for row in rows:
        if row["measure"].startswith("fair "):
            key = (row["contender"], row["measure"][5:], row["attack"])
            if key not in seen:
                seen.append(key)
    for side, what, attack in sorted(seen, key=lambda k: k[:2]):
        at = [median(rows, side, what, attack, f)
              for f in ("value", "p99_ms", "failed", "done", "cpu", "turn_ms")]
        alone = [median(rows, side, what, "", f) for f in ("value", "p99_ms")]
        print("%-14s %-7s %-6s %9.2f %9.2f %7.1f %7.1f %6.0f%% %5.2f %8.2f" % (
            side, what, attack or "alone", at[0], at[1], at[0] / alone[0],
            at[1] / alone[1], 100 * at[2] / max(at[2] + at[3], 1), *at[4:]))


def sides(bench):
    made = [Side(bench, None)]
    for kind in (Haproxy, Squid):
        if os.path.exists(kind.program):
            made.append(kind(bench))
        else:
            bench.missing(kind.name, os.path.basename(kind.program))
    made.append(Penstock(bench, Service(bench)))
    made[-1].server.wait(
        [bench.penstock, "run", "--quiet", "--policy", made[-1].server.policy,
         "--plug", made[-1].server.plug, "--", "/bin/true"],
        {"PATH": "/usr/bin:/bin", "HOME": bench.lab.workdir("home", kit.USER)})
    return made


def bench_fair(bench):
    bench.lab.host.run(["sysctl", "-qw", "net.ipv4.tcp_tw_reuse=1",
                        "net.ipv4.ip_local_port_range=5000 65000"], check=True)
    origins = [bench.lab.internet.popen([bench.origin, at],
                                        stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE)
               for at in (GOOD_AT, BAD_AT)]
    contenders = []
    try:
        for origin in origins:
            origin.stdout.readline()
        contenders += sides(bench)
        for side in bench.turns(contenders):
            look(side, "")
            for attack in side.attacks:
                beside(side, attack)
    finally:
        for side in contenders:
            side.close()
        for origin in origins:
            origin.kill()
            origin.wait()
    table(bench.rows)
