# SPDX-License-Identifier: Apache-2.0
"""bench.py - Penstock beside its peers, in one run, on one lab.

usage: bench.py [--rounds N] [--out FILE] start|tunnels|match|dns|fair...

Contenders of one measure take turns, round by round, forwards and backwards,
so that whatever else the machine does meets them alike.  Raw rows go to FILE
as JSON lines; the table gives medians, spread, and ratios.  A peer that is not
installed is left out and named.  CPU is what the contender itself used (the
nanoseconds of /proc/PID/task/*/schedstat), not the load's.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lab"))

import bench_dns  # noqa: E402
import bench_fair  # noqa: E402
import bench_match  # noqa: E402
import names  # noqa: E402
from lab import ADDRESSES, Lab  # noqa: E402

USER = 64321
SERVICE_USER = 64400
SERVICE_NAME = "penstock-bench"
POLICY = """\
[policy]
name = bench
[allow bench]
hosts     = *.example.com
addresses = %s
ports     = 4007 4019
protocol  = tcp
owner     = bench
reason    = bench
""" % ADDRESSES


class Bench:
    def __init__(self, lab, out, rounds):
        self.lab = lab
        self.out = out
        self.rounds = rounds
        self.rows = []
        self.has_account = False
        stage = lab.dir + "/stage"
        subprocess.run(["make", "-s", "-C", os.environ["PENSTOCK_BUILD"],
                        "install", "DESTDIR=" + stage], check=True,
                       stdout=subprocess.DEVNULL)
        self.penstock = stage + "/usr/local/bin/penstock"
        self.penstockd = stage + "/usr/local/sbin/penstockd"
        self.load = lab.dir + "/load"
        shutil.copy(os.path.join(os.environ["PENSTOCK_BUILD"], "bench/load"),
                    self.load)
        self.policy = lab.dir + "/bench.ini"
        with open(self.policy, "w", encoding="ascii") as text:
            text.write(POLICY)

    service_user, service_name = SERVICE_USER, SERVICE_NAME

    def service_account(self):
        """A user of its own, in the lab's host."""
        if self.has_account:
            return
        self.has_account = True
        for name, line in (("passwd", "%s:x:%d:%d::/:/usr/sbin/nologin\n"
                            % (SERVICE_NAME, SERVICE_USER, SERVICE_USER)),
                           ("group", "%s:x:%d:\n"
                            % (SERVICE_NAME, SERVICE_USER))):
            with open(self.lab.host.path("/etc/" + name), "a",
                      encoding="ascii") as table:
                table.write(line)

    def row(self, **row):
        self.rows.append(row)
        self.out.write(json.dumps(row) + "\n")
        self.out.flush()

    def turns(self, contenders):
        """Every contender once a round, the order turned each time."""
        for number in range(self.rounds):
            order = list(contenders)
            if number % 2:
                order.reverse()
            for contender in order:
                yield contender

    def table(self, measure, unit, base):
        groups = {}
        for row in self.rows:
            if row["measure"] == measure:
                groups.setdefault(row["contender"], []).append(row)
        if not groups:
            return
        print("\n%s (%s)" % (measure, unit))
        print("%-26s %10s %10s %10s %8s" % ("", "median", "min", "cpu", "ratio"))
        zero = statistics.median(r["value"] for r in groups[base]) \
            if base in groups else None
        for name, rows in groups.items():
            values = [r["value"] for r in rows]
            cpu = [r["cpu"] for r in rows if r.get("cpu") is not None]
            middle = statistics.median(values)
            print("%-26s %10.2f %10.2f %10s %8s" % (
                name, middle, min(values),
                "%.2f" % statistics.median(cpu) if cpu else "-",
                "%.2f" % (middle / zero) if zero else "-"))


# --- start --------------------------------------------------------------------

def once(namespace, argv, uid, env):
    """Wall and CPU milliseconds of one command and all that it waited for."""
    enter = namespace.argv(argv, uid)
    # Enter once, outside the clock: a small shell inside takes the time.
    # What a contender leaves behind is waited for, too, and its CPU counted:
    # bwrap does not reap the init of its own sandbox.
    script = ("import ctypes,os,sys,time,resource\n"
              "n=int(sys.argv[1]); argv=sys.argv[2:]\n"
              "assert ctypes.CDLL(None).prctl(36,1,0,0,0)==0  # subreaper\n"
              "null=os.open('/dev/null',os.O_RDWR)\n"
              "for i in range(n):\n"
              "  b=resource.getrusage(resource.RUSAGE_CHILDREN)\n"
              "  t=time.perf_counter()\n"
              "  p=os.posix_spawn(argv[0],argv,os.environ,file_actions=["
              "(os.POSIX_SPAWN_DUP2,null,0),(os.POSIX_SPAWN_DUP2,null,1)])\n"
              "  s=os.waitpid(p,0)[1]\n"
              "  t=time.perf_counter()-t\n"
              "  try:\n"
              "    while True: os.waitpid(-1,0)\n"
              "  except ChildProcessError: pass\n"
              "  a=resource.getrusage(resource.RUSAGE_CHILDREN)\n"
              "  print(s,t*1e3,(a.ru_utime+a.ru_stime-b.ru_utime-b.ru_stime)*1e3)\n")
    at = len(enter) - len(argv)
    done = subprocess.run(
        enter[:at] + ["/usr/bin/python3", "-c", script, "10"] + argv,
        env=env, capture_output=True, text=True, timeout=120, check=True)
    return [list(map(float, line.split())) for line in done.stdout.splitlines()]


class Service:
    """penstockd --config in the lab's host, as a user of its own."""

    def __init__(self, bench):
        self.lab = bench.lab
        bench.service_account()
        where = self.lab.workdir("service", SERVICE_USER)
        self.plug = where + "/plug.sock"
        config = where + "/penstockd.ini"
        with open(config, "w", encoding="ascii") as out:
            out.write("[service]\nplug = %s\nlog = %s/audit.jsonl\n"
                      "workers = 1\nuser = %s\n"
                      "[plug]\nallow_policy_uid = 0 %d\n"
                      % (self.plug, where, SERVICE_NAME, USER))
        self.process = self.lab.host.popen(
            [bench.penstockd, "--config", config], env={"PATH": "/usr/bin"},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait(self, argv, env):
        for _ in range(200):
            if self.process.poll() is None and self.lab.host.run(
                    argv, uid=USER, env=env,
                    stderr=subprocess.DEVNULL).returncode == 0:
                return
            time.sleep(0.05)
        sys.exit("the service did not start")

    def close(self):
        self.process.terminate()
        self.process.wait()


def bench_start(bench):
    service = Service(bench)
    try:
        bench_start_beside(bench, service)
    finally:
        service.close()


def bench_start_beside(bench, service):
    home = bench.lab.workdir("home", USER)
    env = {"PATH": "/usr/bin:/bin:/usr/sbin", "HOME": home, "LANG": "C"}
    run = [bench.penstock, "run", "--quiet", "--policy", bench.policy]
    private = run + ["--private", "--", "/bin/true"]
    served = run + ["--plug", service.plug, "--", "/bin/true"]
    service.wait(served, env)
    contenders = {
        "fork+exec": (["/bin/true"], USER),
        "unshare": (["/usr/bin/unshare", "-Urnmpiu", "--fork", "/bin/true"],
                    USER),
        "bwrap": (["/usr/bin/bwrap", "--unshare-all", "--ro-bind", "/", "/",
                   "/bin/true"], USER),
        "penstock (service, user)": (served, USER),
        "penstock (service, root)": (served, None),
        "penstock (user)": (private, USER),
        "penstock (root)": (private, None),
    }
    for name in list(contenders):
        if not os.path.exists(contenders[name][0][0]):
            print("left out, not installed: " + name)
            del contenders[name]
    for name in bench.turns(contenders):
        argv, uid = contenders[name]
        for status, wall, cpu in once(bench.lab.host, argv, uid,
                                      dict(env, HOME=home if uid else "/root")):
            if status:
                sys.exit("%s failed with status %d" % (name, status))
            bench.row(measure="start", contender=name, value=wall, cpu=cpu)
    bench.table("start", "ms of wall clock; cpu in ms", "bwrap")


# --- tunnels --------------------------------------------------------------------

def cpu_ns(pids):
    """Nanoseconds on a CPU of all threads of @pids so far."""
    total = 0
    for pid in pids:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/schedstat" % (pid, task),
                      encoding="ascii") as stat:
                total += int(stat.read().split()[0])
    return total


def below(pid):
    found = [pid]
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, task),
                  encoding="ascii") as kids:
            for kid in kids.read().split():
                found += below(int(kid))
    return found


class Direct:
    """No proxy at all: what client and origin cost by themselves."""
    name = "direct"

    def __init__(self, bench):
        self.bench = bench

    def client(self, args):
        return self.bench.lab.host.popen(
            [self.bench.load, args[0], "direct"] + args[1:],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def pids(self, _client):
        return []

    def close(self):
        pass


class Proxy(Direct):
    """A peer that listens in the lab's host."""
    how = ""
    target = None

    def client(self, args):
        how, target = self.how, args[1]
        if self.target:                 # a forwarder to one fixed place
            how, target = "direct", self.target[args[1].rsplit(":", 1)[1]]
        return self.bench.lab.host.popen(
            [self.bench.load, args[0], how, target] + args[2:],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, argv):
        self.process = self.bench.lab.host.popen(
            argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_for(self, port):
        for _ in range(200):
            if self.bench.lab.host.run(
                    ["/usr/bin/python3", "-c", "import socket;"
                     "socket.create_connection(('127.0.0.1', %d))" % port],
                    stderr=subprocess.DEVNULL).returncode == 0:
                return
            time.sleep(0.05)
        self.close()
        sys.exit("%s did not start: %s" % (self.name, " ".join(
            self.process.args[-4:])))

    def pids(self, _client):
        return below(self.process.pid)

    def close(self):
        self.process.terminate()
        self.process.wait()


class Haproxy(Proxy):
    name = "haproxy (tcp)"
    program = "/usr/sbin/haproxy"
    target = {"4007": "127.0.0.1:3007", "4019": "127.0.0.1:3019"}
    connections = 2048
    origins = ((names.SHARED_V4, 1000),)

    def __init__(self, bench):
        super().__init__(bench)
        path = bench.lab.dir + "/haproxy.cfg"
        with open(path, "w", encoding="ascii") as out:
            out.write("global\n nbthread 1\n maxconn %d\n"
                      "defaults\n mode tcp\n timeout connect 10s\n"
                      " timeout client 1h\n timeout server 1h\n"
                      " option splice-auto\n maxconn %d\n"
                      % (self.connections, self.connections))
            for number, (at, less) in enumerate(self.origins):
                for port in (4007, 4019):
                    out.write("listen p%d-%d\n bind 127.0.0.1:%d\n"
                              " server o %s:%d\n"
                              % (number, port, port - less, at, port))
        self.start([self.program, "-db", "-f", path])
        self.wait_for(3007)


class FairHaproxy(Haproxy):
    """Two origins, each with ports of its own, and room for an attack."""
    connections = 6000
    origins = ((names.SHARED_V4, 1000), (names.WEB_V4, 2000))
    target = {("shared.example.com", 4007): "127.0.0.1:3007",
              ("shared.example.com", 4019): "127.0.0.1:3019",
              ("v4.example.com", 4007): "127.0.0.1:2007"}


class Squid(Proxy):
    name = "squid"
    program = "/usr/sbin/squid"
    how = "connect:127.0.0.1:3130"

    def __init__(self, bench):
        super().__init__(bench)
        path = bench.lab.dir + "/squid.conf"
        with open(path, "w", encoding="ascii") as out:
            out.write("http_port 127.0.0.1:3130\nacl ok dstdomain .example.com\n"
                      "http_access allow ok\nhttp_access deny all\n"
                      "cache deny all\naccess_log none\ncache_log /dev/null\n"
                      "pid_filename none\ncache_store_log none\n"
                      "max_filedescriptors 16384\ncache_effective_user proxy\n"
                      "shutdown_lifetime 1 seconds\n"
                      "dns_nameservers %s\n" % names.DNS_V4)
        self.start([self.program, "-N", "-f", path])
        self.wait_for(3130)


class Penstock(Direct):
    name = "penstock (sealed)"
    how = "connect:127.0.0.1:3128"
    run_options = ()

    def client(self, args):
        return self.bench.lab.host.popen(
            [self.bench.penstock, "run", "--quiet", "--policy",
             self.bench.policy, *self.run_options, "--", self.bench.load,
             args[0], self.how] + args[1:],
            uid=USER, cwd=self.bench.lab.workdir("home", USER),
            env={"PATH": "/usr/bin:/bin",
                 "HOME": self.bench.lab.workdir("home", USER)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def pids(self, client):
        return [pid for pid in below(client.pid)
                if os.readlink("/proc/%d/exe" % pid).endswith("/penstockd")]


class Transparent(Penstock):
    name = "penstock (transparent)"
    how = "direct"


def measure(bench, contender, args):
    """One run of the load; CPU microseconds of the contender for all of it."""
    client = contender.client(args)
    if client.stdout.readline() != "ready\n":
        sys.exit("%s: the load did not start" % contender.name)
    pids = contender.pids(client)
    before = cpu_ns(pids)
    client.stdin.write("\n")
    client.stdin.flush()
    said = json.loads(client.stdout.readline())
    used = cpu_ns(pids) - before
    client.stdin.close()
    client.wait()
    client.stdout.close()
    if said["failed"] or not said["done"]:
        sys.exit("%s: %d of the load failed" % (contender.name, said["failed"]))
    return said, used / 1e3


def bench_tunnels(bench):
    # Every proxy leaves thousands of closed connections behind: without this
    # the host runs out of ports, and a later contender pays for it.
    bench.lab.host.run(["sysctl", "-qw", "net.ipv4.tcp_tw_reuse=1",
                        "net.ipv4.ip_local_port_range=5000 65000"], check=True)
    origin = bench.lab.internet.popen([bench.load, "origin", names.SHARED_V4],
                                      stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE)
    origin.stdout.readline()
    contenders = []
    try:
        for kind in (Direct, Haproxy, Squid, Penstock, Transparent):
            program = getattr(kind, "program", None)
            if program and not os.path.exists(program):
                print("left out, not installed: " + kind.name)
                continue
            contenders.append(kind(bench))
        for contender in bench.turns(contenders):
            said, cpu = measure(bench, contender,
                                ["tunnels", "shared.example.com:4007", "3000", "64"])
            bench.row(measure="new tunnel", contender=contender.name,
                      value=said["done"] / said["seconds"],
                      cpu=cpu / said["done"])
            for streams in (1, 8):
                size = 1 << 29 if streams == 1 else 1 << 26
                said, cpu = measure(bench, contender,
                                    ["bulk", "shared.example.com:4019", str(size),
                                     str(streams)])
                megabytes = size * streams / 1e6
                bench.row(measure="bulk through %d" % streams,
                          contender=contender.name,
                          value=megabytes / said["seconds"],
                          cpu=cpu / megabytes)
    finally:
        for contender in contenders:
            contender.close()
        origin.kill()
        origin.wait()
    bench.table("new tunnel", "tunnels/s; cpu in us a tunnel", "squid")
    bench.table("bulk through 1", "MB/s; cpu in us a MB", "squid")
    bench.table("bulk through 8", "MB/s; cpu in us a MB", "squid")


MEASURES = {
    "start": bench_start, "tunnels": bench_tunnels,
    "match": lambda bench: bench_match.bench_match(bench, cpu_ns),
    "dns": lambda bench: bench_dns.bench_dns(bench, cpu_ns),
    "fair": lambda bench: bench_fair.bench_fair(
        bench, cpu_ns, (FairHaproxy, Squid, Service)),
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", default="bench.jsonl")
    parser.add_argument("measure", nargs="*", metavar="measure",
                        help="start, tunnels, match, dns, fair; all without one")
    args = parser.parse_args()
    if not os.environ.get("PENSTOCK_BUILD"):
        parser.error("PENSTOCK_BUILD must name a build tree: use `make bench`")
    wanted = args.measure or list(MEASURES)
    for name in wanted:
        if name not in MEASURES:
            parser.error("no measure '%s'; there are %s"
                         % (name, ", ".join(MEASURES)))
    lab = Lab()
    try:
        with open(args.out, "a", encoding="ascii") as out:
            bench = Bench(lab, out, args.rounds)
            for name in wanted:
                MEASURES[name](bench)
    finally:
        lab.close()


if __name__ == "__main__":
    main()
