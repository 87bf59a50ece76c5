# SPDX-License-Identifier: Apache-2.0
"""bench_dns.py - what an answer costs, beside resolvers that people know.

All have the same list of 1,000 domains (each with what is below it) and the
same server behind them, which has an address for every name.  dnsperf asks:
the peers from the lab's host over its loopback, Penstock from within a sealed
sandbox over that one's, and as a listener of a service beside the peers.

    cached      1,000 names, each asked for before
    denied      names that no list has, never the same one twice
    uncached    names below the listed domains, never the same one twice
    p99         of cached answers at 1,000 questions a second

Penstock's records are on.  Each peer is there twice: without a log of queries,
and with one, in a file.  The figure to believe is CPU: microseconds of the
contender, all its threads and processes, for one question.
"""
import json
import os
import shutil
import statistics
import subprocess

import kit
import names

DOMAINS = 1000
SECONDS = 1.5           # of a run of cached or denied names
DENIED = 400000         # names: more than anybody answers in that time
UNCACHED = 8000         # below what a sandbox may have in all
RATE = 1000             # questions a second while latency is looked at
RATE_S = 2
AUTHORITY = "203.0.113.77"
AUTHORITY_PROGRAM = os.path.join(os.environ.get("PENSTOCK_BUILD", ""),
                                 "bench/authority")
ANSWER = "203.0.113.10"

# Runs beside dnsperf, in the sandbox or the lab's host: an argv in, a line out.
DRIVER = """
import json, subprocess, sys
for line in sys.stdin:
    done = subprocess.run(json.loads(line), capture_output=True, text=True)
    took = sorted(float(words[-1]) for words in map(
        str.split, done.stdout.splitlines()) if words and words[0] == ">")
    said = {}
    for row in done.stdout.splitlines():
        key, colon, value = row.strip().partition(":")
        if colon:
            said[key] = value.strip()
    print(json.dumps({
        "asked": int(said.get("Queries sent", 0)),
        "answered": int(said.get("Queries completed", "0").split()[0]),
        "codes": said.get("Response codes", ""),
        "rate": float(said.get("Queries per second", 0)),
        "p50": took[len(took) // 2] if took else None,
        "p99": took[len(took) * 99 // 100] if took else None,
        "error": done.stderr[-300:] if done.returncode else ""}), flush=True)
"""

POLICY = """\
[policy]
name = bench
[allow bench]
hosts     = @domains.list
addresses = 203.0.113.0/24
owner     = bench
reason    = bench
# No sandbox asks so much: these are what a peer does without.
[limits]
queries     = 1000000000
names       = 1000000000
label_bytes = 1G
nxdomain    = 1000000000
"""


SERVICE = """\
[service]
plug    = %(dir)s/plug.sock
log     = %(dir)s/audit.jsonl
user    = %(user)s
workers = 1
[plug]
allow_policy_uid = 0
policies = %(dir)s/policies
[listen bench]
dns     = 127.0.0.1:%(port)d
policy  = bench
"""


def domain(number):
    return "d%04d.example" % number


def write(path, lines):
    with open(path, "w", encoding="ascii") as out:
        out.writelines(line + "\n" for line in lines)


# --- contenders -----------------------------------------------------------------

class Peer:
    """A resolver that listens in the lab's host."""
    needs = ()
    port = 0

    def __init__(self, bench, where, log):
        self.bench, self.log = bench, log
        self.name = self.kind + (", log of queries" if log else "")
        self.dir = "%s/%s-%s" % (where, self.kind, "log" if log else "quiet")
        os.makedirs(self.dir)
        self.server = "127.0.0.1"
        self.port = self.port + (10 if log else 0)
        self.processes = []
        for argv in self.commands():
            self.processes.append(bench.lab.host.popen(
                argv, stdin=subprocess.PIPE,
                stdout=open(self.dir + "/out", "ab"),
                stderr=subprocess.STDOUT))
        self.driver = self.start_driver()

    def start_driver(self):
        return self.bench.lab.host.popen(
            ["/usr/bin/python3", "-c", DRIVER], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)

    def pids(self):
        return [process.pid for process in self.processes]

    def ask(self, args):
        """One run of dnsperf; what it said, and the contender's CPU us."""
        before = kit.cpu_ns(self.pids())
        self.driver.stdin.write(json.dumps(
            ["/usr/bin/dnsperf", "-s", self.server, "-p", str(self.port),
             "-S", "0"] + [str(arg) for arg in args]) + "\n")
        self.driver.stdin.flush()
        line = self.driver.stdout.readline()
        if not line:
            return {"asked": 0, "answered": 0, "error": "the driver ended"}, 0
        return json.loads(line), (kit.cpu_ns(self.pids()) - before) / 1e3

    def close(self):
        self.driver.stdin.close()
        self.driver.wait()
        self.driver.stdout.close()
        for process in self.processes:
            process.stdin.close()
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


UNBOUND = """\
server:
    interface: 127.0.0.1@%(port)d
    username: ""
    chroot: ""
    directory: "%(dir)s"
    pidfile: ""
    do-daemonize: no
    use-syslog: no
    logfile: "%(logfile)s"
    log-queries: %(log)s
    num-threads: 1
    module-config: "iterator"
    msg-cache-size: 64m
    rrset-cache-size: 128m
    outgoing-range: 4096
    num-queries-per-thread: 2048
    so-rcvbuf: 4m
    do-not-query-localhost: no
"""
FORWARD = """\
forward-zone:
    name: "."
    forward-addr: %s
""" % AUTHORITY


class Unbound(Peer):
    kind = "unbound"
    needs = ("/usr/sbin/unbound",)
    port = 5301

    def commands(self):
        path = self.dir + "/unbound.conf"
        with open(path, "w", encoding="ascii") as out:
            out.write(UNBOUND % {
                "port": self.port, "dir": self.dir,
                "logfile": self.dir + "/queries" if self.log else "/dev/null",
                "log": "yes" if self.log else "no"})
            for net in ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12",
                        "192.168.0.0/16", "169.254.0.0/16"):
                out.write("    private-address: %s\n" % net)
            out.write("    local-zone: \".\" refuse\n")
            for number in range(DOMAINS):
                out.write("    local-zone: \"%s.\" transparent\n"
                          % domain(number))
            out.write(FORWARD)
        return [["/usr/sbin/unbound", "-d", "-c", path]]


class Dnsmasq(Peer):
    kind = "dnsmasq"
    needs = ("/usr/sbin/dnsmasq",)
    port = 5302

    def commands(self):
        path = self.dir + "/dnsmasq.conf"
        lines = ["keep-in-foreground", "port=%d" % self.port,
                 "listen-address=127.0.0.1", "bind-interfaces", "no-resolv",
                 "no-hosts", "no-poll", "user=root", "pid-file=",
                 "cache-size=10000", "dns-forward-max=2000",
                 "log-facility=" + self.dir + "/queries"]
        if self.log:
            lines.append("log-queries")
        write(path, lines + ["server=/%s/%s" % (domain(number), AUTHORITY)
                             for number in range(DOMAINS)])
        return [["/usr/sbin/dnsmasq", "--conf-file=" + path]]


class Dnsdist(Peer):
    """A filter and a cache of packets; unbound asks the world for it."""
    kind = "dnsdist"
    needs = ("/usr/bin/dnsdist", "/usr/sbin/unbound")
    port = 5303

    def commands(self):
        behind = self.dir + "/unbound.conf"
        with open(behind, "w", encoding="ascii") as out:
            out.write(UNBOUND % {"port": self.port + 100, "dir": self.dir,
                                 "logfile": "/dev/null", "log": "no"} + FORWARD)
        write(self.dir + "/list", map(domain, range(DOMAINS)))
        path = self.dir + "/dnsdist.conf"
        lines = ['setLocal("127.0.0.1:%d")' % self.port,
                 'setSecurityPollSuffix("")',
                 'newServer({address="127.0.0.1:%d"}):setUp()'
                 % (self.port + 100),
                 "listed = newSuffixMatchNode()",
                 'for name in io.lines("%s/list") do' % self.dir,
                 "  listed:add(newDNSName(name))", "end"]
        if self.log:
            lines.append('addAction(AllRule(), LogAction("%s/queries", false, '
                         'false, true))' % self.dir)
        lines += ["addAction(NotRule(SuffixMatchNodeRule(listed)), "
                  "RCodeAction(DNSRCode.REFUSED))",
                  'getPool(""):setCache(newPacketCache(100000))']
        write(path, lines)
        return [["/usr/sbin/unbound", "-d", "-c", behind],
                ["/usr/bin/dnsdist", "--supervised", "--disable-syslog",
                 "-C", path]]


class Recursor(Peer):
    kind = "pdns-recursor"
    needs = ("/usr/sbin/pdns_recursor",)
    port = 5305

    def commands(self):
        lines = ["$TTL 60", "@ SOA ns.rpz. mail.rpz. 1 3600 600 86400 60",
                 "@ NS ns.rpz."]
        for number in range(DOMAINS):
            lines.append("%s CNAME rpz-passthru." % domain(number))
            lines.append("*.%s CNAME rpz-passthru." % domain(number))
        write(self.dir + "/list.rpz", lines + ["* CNAME ."])
        write(self.dir + "/policy.lua", [
            "rpzFile('%s/list.rpz', {policyName='bench'})" % self.dir])
        write(self.dir + "/recursor.conf", [
            "local-address=127.0.0.1", "local-port=%d" % self.port,
            "socket-dir=" + self.dir, "threads=1",
            "pdns-distributes-queries=no", "dnssec=off", "daemon=no",
            "security-poll-suffix=", "max-mthreads=2048",
            "forward-zones-recurse=.=" + AUTHORITY,
            "dont-query=", "lua-config-file=" + self.dir + "/policy.lua",
            "quiet=" + ("no" if self.log else "yes")])
        return [["/usr/sbin/pdns_recursor", "--config-dir=" + self.dir]]


class Floor(Peer):
    """What reading and writing datagrams in batches costs by itself."""
    kind = "floor (judges nothing)"
    port = 53

    def commands(self):
        return [[AUTHORITY_PROGRAM, "127.0.0.1", ANSWER]]


class Penstock(Peer):
    kind = "penstock"

    def commands(self):
        write(self.dir + "/domains.list",
              ["*." + domain(number) for number in range(DOMAINS)])
        self.policy = self.dir + "/policy.ini"
        with open(self.policy, "w", encoding="ascii") as out:
            out.write(POLICY)
        self.port = 53
        return []

    def start_driver(self):
        home = self.bench.lab.workdir("home", kit.USER)
        driver = self.bench.lab.host.popen(
            [self.bench.penstock, "run", "--quiet", "--policy", self.policy,
             "--", "/usr/bin/python3", "-c", DRIVER], uid=kit.USER, cwd=home,
            env={"PATH": "/usr/bin:/bin", "HOME": home},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.of = driver.pid
        return driver

    def pids(self):
        return [pid for pid in kit.below(self.of)
                if os.readlink("/proc/%d/exe" % pid).endswith("/penstockd")]


class Listener(Peer):
    """The same policy, for clients of the host: what the peers are."""
    kind = "penstock (listener)"
    port = 5390

    def commands(self):
        self.bench.service_account()
        where = self.bench.lab.workdir("dns-service", self.bench.service_user)
        os.makedirs(where + "/policies")
        write(where + "/policies/domains.list",
              ["*." + domain(number) for number in range(DOMAINS)])
        with open(where + "/policies/bench.ini", "w", encoding="ascii") as out:
            out.write(POLICY)
        config = where + "/penstockd.ini"
        with open(config, "w", encoding="ascii") as out:
            out.write(SERVICE % {"dir": where, "port": self.port,
                                 "user": self.bench.service_name})
        return [[self.bench.penstockd, "--config", config]]


# --- runs --------------------------------------------------------------------------

class Questions:
    """Files for dnsperf; what must never repeat is new for each run."""

    def __init__(self, where):
        self.where, self.number = where, 0
        self.cached = where + "/cached"
        write(self.cached, ("api.%s A" % domain(n) for n in range(DOMAINS)))

    def fresh(self, kind):
        self.number += 1
        path = "%s/%s" % (self.where, kind)
        many, below_of = (DENIED, "other%04d.test") if kind == "denied" else \
            (UNCACHED, "d%04d.example")
        write(path, (("u%d-%d." + below_of + " A") % (
            self.number, n, n % DOMAINS) for n in range(many)))
        return path


def run(bench, contender, measure, args):
    said, cpu = contender.ask(args)
    if said["error"] or said["answered"] < 0.9 * said["asked"] or \
            not said["answered"]:
        print("%s, %s: only %d of %d answered %s" % (
            contender.name, measure, said["answered"], said["asked"],
            said["error"]))
        return
    bench.row(measure="dns " + measure, contender=contender.name,
              value=said["rate"], cpu=cpu / said["answered"],
              codes=said["codes"], p50_ms=said["p50"] and said["p50"] * 1e3,
              p99_ms=said["p99"] and said["p99"] * 1e3)


def turn(bench, contender, questions):
    many = ["-c", 8, "-q", 64]
    contender.ask(["-d", questions.cached, "-n", 1, "-q", 16])
    run(bench, contender, "cached",
        ["-d", questions.cached, "-l", SECONDS] + many)
    run(bench, contender, "p99",
        ["-d", questions.cached, "-l", RATE_S, "-Q", RATE, "-v"])
    run(bench, contender, "denied",
        ["-d", questions.fresh("denied"), "-l", SECONDS] + many)
    run(bench, contender, "uncached",
        ["-d", questions.fresh("uncached"), "-n", 1] + many)


def table(rows):
    kinds = ("cached", "denied", "uncached")
    print("\ndns: CPU us of the server a question (questions/s); p99 of cached "
          "answers at %d/s" % RATE)
    print("%-32s" % "" + "".join("%20s" % kind for kind in kinds) +
          "%10s" % "p99 ms")
    contenders = {row["contender"]: None for row in rows
                  if row["measure"].startswith("dns ")}
    for name in contenders:
        cells = ""
        for kind in kinds + ("p99",):
            same = [row for row in rows if row["contender"] == name and
                    row["measure"] == "dns " + kind]
            if not same:
                cells += "%20s" % "-"
            elif kind == "p99":
                cells += "%10.2f" % statistics.median(
                    row["p99_ms"] for row in same)
            else:
                cells += "%20s" % ("%.2f (%.0f)" % (
                    statistics.median(row["cpu"] for row in same),
                    statistics.median(row["value"] for row in same)))
        print("%-32s%s" % (name, cells))


def bench_dns(bench):
    if not shutil.which("dnsperf"):
        bench.missing("dnsperf, and with it the whole measure", "dnsperf")
        return
    where = bench.lab.workdir("dns")
    # Beside the lab's own server, which is much too slow.
    authority = bench.lab.internet.popen(
        [AUTHORITY_PROGRAM, AUTHORITY, ANSWER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    contenders = []
    try:
        authority.stdout.readline()
        bench.lab.set_resolv_conf("nameserver %s\n" % AUTHORITY)
        questions = Questions(where)
        contenders.append(Floor(bench, where, False))
        contenders.append(Penstock(bench, where, False))
        contenders.append(Listener(bench, where, False))
        for kind in (Unbound, Dnsdist, Recursor, Dnsmasq):
            if not all(map(os.path.exists, kind.needs)):
                bench.missing(kind.kind, {"dnsmasq": "dnsmasq-base"}.get(
                    kind.kind, kind.kind))
                continue
            contenders += [kind(bench, where, log)
                           for log in (False, True)]
        for contender in bench.turns(contenders):
            turn(bench, contender, questions)
    finally:
        for contender in contenders:
            contender.close()
        bench.lab.set_resolv_conf("nameserver %s\n" % names.DNS_V4)
        authority.stdin.close()
        authority.wait()
        authority.stdout.close()
    table(bench.rows)
