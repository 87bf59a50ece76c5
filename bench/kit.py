# SPDX-License-Identifier: Apache-2.0
"""kit.py - what every measure of the bench needs: turns, rows, CPU, memory.

CPU is what a contender itself used: the nanosecond clocks of its processes,
which keep what their ended threads took, and the ticks of its children that
have ended.  Memory is what the kernel charges to a group (cgroup) of its own
that is made here and removed again, or else what its processes hold.
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lab"))

BUILD = os.environ.get("PENSTOCK_BUILD", "")
USER = 64321            # who runs sandboxes
SERVICE_USER = 64400
SERVICE_NAME = "penstock-bench"
TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
FOREIGN_MAX = 0.30      # of a core, by others while something is measured

# What the kernel holds for an idle tunnel of a proxy that has no thread or process
# for each: two TCP sockets, two descriptors, two entries of epoll.  Added where
# it cannot be seen; measured with forward.c.
KERNEL_KB_ESTIMATE = 5.4


# --- processes --------------------------------------------------------------------

def below(pid):
    """@pid and every process below it that is there."""
    found, at = [pid], 0
    while at < len(found):
        try:
            for task in os.listdir("/proc/%d/task" % found[at]):
                with open("/proc/%d/task/%s/children" % (found[at], task),
                          encoding="ascii") as kids:
                    found += map(int, kids.read().split())
        except OSError:                 # it ended meanwhile
            pass
        at += 1
    return found


def _clock(pid):
    """The kernel's number for the CPU clock of a whole process."""
    return (~pid << 3) | 2


def cpu_ns(pids):
    """Nanoseconds on a CPU of @pids so far: all their threads, ended or not, and
    their children that have ended."""
    total = 0
    for pid in pids:
        try:
            total += time.clock_gettime_ns(_clock(pid))
            with open("/proc/%d/stat" % pid, encoding="ascii",
                      errors="replace") as stat:
                fields = stat.read().rpartition(")")[2].split()
            total += (int(fields[13]) + int(fields[14])) * TICK_NS
        except OSError:                 # its parent has it now
            pass
    return total


def pss_kb(pids):
    total = 0
    for pid in pids:
        try:
            with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as rollup:
                total += int(re.search(r"^Pss:\s+(\d+)", rollup.read(),
                                       re.M)[1])
        except (OSError, TypeError):
            pass
    return total


def busy_ns():
    """Nanoseconds, in ticks, that all CPUs together worked so far."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _idle, _wait, irq, soft = map(
            int, stat.readline().split()[1:8])
    return (user + nice + system + irq + soft) * TICK_NS


def pinned(cpu, argv):
    """@argv on one CPU, where there are two."""
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        return list(argv)
    return ["taskset", "--cpu-list", str(mine[cpu])] + list(argv)


def end(process, patience_s=10):
    """Ask it to end, and see to it that it does."""
    if process.stdin:
        process.stdin.close()
    process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()


# --- memory -----------------------------------------------------------------------

class Group:
    """A memory cgroup of our own, below the one that we are in (version 1) or at
    the top (version 2); nothing where there is neither."""

    TOP = "/sys/fs/cgroup"

    def __init__(self, name):
        self.path, self.version = None, 0
        where = self._where()
        if where:
            path = "%s/penstock-bench-%d-%s" % (where, os.getpid(), name)
            try:
                os.mkdir(path)
                self.path = path
            except OSError:
                self.version = 0

    def _where(self):
        try:
            with open(self.TOP + "/cgroup.subtree_control",
                      encoding="ascii") as control:
                if "memory" in control.read().split():
                    self.version = 2
                    return self.TOP
        except OSError:
            pass
        with open("/proc/self/cgroup", encoding="ascii") as groups:
            for line in groups:
                _, controllers, path = line.rstrip("\n").split(":", 2)
                top = self.TOP + "/memory"
                if "memory" in controllers.split(",") and os.path.isdir(top):
                    self.version = 1
                    return top + path.rstrip("/")
        return None

    def argv(self, argv):
        """@argv, run within the group."""
        if not self.path:
            return list(argv)
        return ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"',
                self.path] + list(argv)

    def _read(self, name):
        with open(self.path + "/" + name, encoding="ascii") as text:
            return text.read()

    def memory_kb(self):
        """What is charged, without files in memory: (programs', kernel's)."""
        if not self.path:
            return None
        stat = dict(line.split() for line in self._read("memory.stat")
                    .splitlines())
        if self.version == 2:
            user = int(stat["anon"]) + int(stat["shmem"])
            kernel = int(stat.get("kernel", 0)) + int(stat["sock"])
        else:
            user = int(stat["rss"]) + int(stat["shmem"])
            kernel = int(self._read("memory.kmem.usage_in_bytes")) + \
                int(self._read("memory.kmem.tcp.usage_in_bytes"))
        return user / 1024, kernel / 1024

    def close(self):
        for _ in range(50):
            if not self.path:
                return
            try:
                os.rmdir(self.path)
                self.path = None
            except OSError:             # the last process is not quite gone
                time.sleep(0.1)
        print("could not remove the group " + self.path, file=sys.stderr)


# --- the bench ----------------------------------------------------------------------

def spread(values, digits=2):
    """The median, and from where to where: "1.20 [1.10..1.30]"."""
    if not values:
        return "-"
    middle = statistics.median(values)
    text = number(middle, digits)
    if len(values) > 1:
        text += " [%s..%s]" % (number(min(values), digits),
                              number(max(values), digits))
    return text


def number(value, digits=2):
    """As many places as say something."""
    if abs(value) >= 1000:
        return "{:,.0f}".format(value)
    if abs(value) >= 100:
        return "%.0f" % value
    return "%.*f" % (1 if abs(value) >= 10 else digits, value)


class Bench:
    """A lab, the programs to measure, and where the rows go."""

    service_user, service_name = SERVICE_USER, SERVICE_NAME

    def __init__(self, lab, out, options):
        self.lab = lab
        self.out = out
        self.rounds = options.rounds
        self.options = options
        self.rows = []
        self.begun = time.monotonic()
        self.has_account = False
        self.errors = open(lab.dir + "/errors", "ab")   # of loads
        stage = options.stage
        if not stage:
            stage = lab.dir + "/stage"
            subprocess.run(["make", "-s", "-C", BUILD, "install",
                            "DESTDIR=" + stage], check=True,
                           stdout=subprocess.DEVNULL)
        self.penstock = stage + "/usr/local/bin/penstock"
        self.penstockd = stage + "/usr/local/sbin/penstockd"
        for name in ("attack", "authority", "forward", "load", "origin"):
            setattr(self, name, "%s/%s" % (lab.dir, name))
            shutil.copy("%s/bench/%s" % (BUILD, name), getattr(self, name))

    def last_error(self):
        with open(self.errors.name, encoding="utf-8", errors="replace") as said:
            return said.read()[-300:].strip()

    def say(self, text):
        """What is going on, for who watches."""
        print("[%4.0f s] %s" % (time.monotonic() - self.begun, text),
              file=sys.stderr, flush=True)

    def missing(self, name, package):
        self.say("left out, not installed: %s (apt-get install %s)"
                 % (name, package))

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
        row = {key: round(value, 4) if isinstance(value, float) else value
               for key, value in row.items()}
        self.rows.append(row)
        self.out.write(json.dumps(row) + "\n")
        self.out.flush()

    def turns(self, contenders):
        """Every contender once a round, the order turned each time."""
        for turn in range(self.rounds):
            order = list(contenders)
            if turn % 2:
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
