# SPDX-License-Identifier: Apache-2.0
"""soak.py SECONDS [PAUSE] - churn of everything, memory and descriptors flat.

One penstockd in the lab, for its whole life: a sandbox and a client of its
listener do all that programs do (churn.py), other runs come and go beside them,
and the policies change under all of it.  The resident memory of the daemon, its
descriptors and what was done by then make a curve (OPS-09, TUN-11).

The first quarter is the warm-up: caches, pools and buffers fill.  From then on
neither may grow, which is a ratio to the warm-up and so the same on any machine,
and when all is over, no descriptor is left that was not there before.
"""
import json
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import conftest  # noqa: E402
from lab import Lab  # noqa: E402
from test_service import Service  # noqa: E402

SAMPLES = 24
WARM = SAMPLES // 4
# Of the most in the last quarter to the most in the first.
MEMORY_RATIO = 1.15
DESCRIPTOR_RATIO = 1.5
# A run that is slower than this for want of a CPU has shown nothing, and one in
# which more than this went wrong for want of it has shown something else.
LEAST_A_SECOND = 5
WRONG_RATIO = 0.02

MORE = """
[allow tcp]
hosts     = git.example.com
ports     = 7 19 22
addresses = %s
reason    = soak
owner     = soak
%%s
""" % conftest.ADDRESSES
# What changes under the flows: times, budgets, a host that nobody asks for.
CHANGES = ("", "idle_time = 5m\n", "flow_time = 10m\n[limits]\nidle_time = 1h\n",
           "[deny other]\nhosts = other.example.com\n")


def policy(i, name="house"):
    return (conftest.POLICY.replace("name = lab", "name = " + name)
            + MORE % CHANGES[i % len(CHANGES)])


class Churn:
    """A program that churns, and what it said last."""

    def __init__(self, process):
        self.process = process
        self.last = {"done": 0}
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith(b"{"):
                self.last = json.loads(line)

    def end(self, seconds):
        self.process.wait(seconds)
        self.reader.join(30)
        return self.last


class Soak:
    def __init__(self, lab, seconds, pause):
        self.lab = lab
        self.seconds = seconds
        self.pause = pause
        self.over = threading.Event()
        self.runs = self.reloads = 0
        self.wrong = []
        self.service = Service(lab, "", "[listen host]\nhttp = 127.0.0.1:3128\n"
                               "socks = 127.0.0.1:1080\npolicy = house\n")
        self.user = conftest.Penstock(lab, conftest.USER)

    # --- what goes on --------------------------------------------------------

    def inside(self):
        return Churn(self.user.start(
            "/usr/bin/python3", "-B", "-c", self.script(), "sandbox",
            str(self.seconds), str(self.pause), policy=policy(0, "agent"),
            options=["--plug", self.service.socket], stderr=None))

    def outside(self):
        return Churn(self.lab.host.popen(
            ["/usr/bin/python3", "-B", "-c", self.script(), "listener",
             str(self.seconds), str(self.pause)], stdout=subprocess.PIPE,
            uid=conftest.USER))

    @staticmethod
    def script():
        with open(os.path.join(HERE, "churn.py"), encoding="utf-8") as text:
            return text.read()

    def come_and_go(self):
        """Runs of every length: refused, cut, and ended with a flow open."""
        commands = (
            ("curl", "-sS", "http://web.example.com/"),
            ("sh", "-c", "curl -sS https://web.example.com/bytes/100000"
             " >/dev/null"),
            ("sh", "-c", "curl -s http://web.example.com/mute & exit 0"),
            ("sh", "-c", "curl -s http://denied.example.net/ >/dev/null"),
        )
        while not self.over.is_set():
            got = self.user.run(*commands[self.runs % len(commands)],
                                policy=policy(self.runs),
                                options=["--plug", self.service.socket])
            if got.code != 0:
                self.wrong.append("run: %d: %s" % (got.code, got.err))
            os.unlink(got.records_path)
            self.runs += 1
            self.over.wait(self.pause * 10)

    def change(self):
        """The file of the listener's policy, by rename; the daemon sees it."""
        path = self.service.policies + "/house.ini"
        while not self.over.is_set():
            self.reloads += 1
            with open(path + ".new", "w", encoding="ascii") as out:
                out.write(policy(self.reloads))
            os.rename(path + ".new", path)
            self.over.wait(self.pause * 20)

    # --- what is looked at ---------------------------------------------------

    def sample(self):
        pid = self.service.pid()
        with open("/proc/%d/status" % pid, encoding="ascii") as status:
            rss = next(int(line.split()[1]) for line in status
                       if line.startswith("VmRSS"))
        return rss, len(os.listdir("/proc/%d/fd" % pid))

    def kept(self):
        """Descriptors but pipes, of which each worker keeps a few for tunnels."""
        folder = "/proc/%d/fd" % self.service.pid()
        n = 0
        for fd in os.listdir(folder):
            try:
                n += not os.readlink(os.path.join(folder, fd)).startswith("pipe:")
            except OSError:
                continue
        return n

    def lingering(self):
        """Sockets of the daemon that nobody will close any more."""
        return [line for line in self.lab.host.sh(
            "ss -Htanp state close-wait state fin-wait-2").splitlines()
                if "penstockd" in line]

    def settled(self, before):
        """All is over: what was open for it closes, with a bound."""
        end = time.monotonic() + 60
        while self.kept() > before or self.lingering():
            if time.monotonic() > end:
                break
            time.sleep(0.1)
        return self.kept()


def judge(soak, curve, before, after, churned):
    """Every fault in words."""
    faults = []
    if len(soak.wrong) > 1 + soak.runs * WRONG_RATIO:
        faults += soak.wrong[:5]
    for what, at, most in (("memory", 1, MEMORY_RATIO),
                           ("descriptors", 2, DESCRIPTOR_RATIO)):
        warm = max(row[at] for row in curve[:WARM])
        last = max(row[at] for row in curve[-WARM:])
        print("soak: %s: %d after the warm-up, %d at the end: %.3f of it "
              "(at most %.2f)" % (what, warm, last, last / warm, most))
        if last > warm * most:
            faults.append("%s grew" % what)
    if after > before or soak.lingering():
        faults.append("descriptors: %d before, %d after: %s" % (
            before, after, soak.lingering()))
    for name, last in churned.items():
        print("soak: %s: %s" % (name, last))
        if "of_each" not in last or \
                last["wrong"] > last["done"] * WRONG_RATIO:
            faults.append("%s: %s" % (name, last.get("first", last)))
        elif last["done"] < LEAST_A_SECOND * soak.seconds:
            faults.append("%s: %d is too little to show anything" % (
                name, last["done"]))
    print("soak: %d runs, %d policies" % (soak.runs, soak.reloads))
    if not soak.runs or not soak.reloads:
        faults.append("no run, or no change of policy")
    return faults


def churn(soak):
    churns = {"sandbox": soak.inside(), "listener": soak.outside()}
    beside = [threading.Thread(target=soak.come_and_go),
              threading.Thread(target=soak.change)]
    for t in beside:
        t.start()
    begun, curve = time.monotonic(), []
    print("soak: %8s %8s %6s %8s" % ("time_s", "rss_kB", "fds", "done"))
    for i in range(SAMPLES):
        at = begun + soak.seconds * (i + 1) / (SAMPLES + 1)
        time.sleep(max(0, at - time.monotonic()))
        curve.append((time.monotonic() - begun, *soak.sample(),
                      sum(c.last["done"] for c in churns.values())))
        print("soak: %8.1f %8d %6d %8d" % curve[-1], flush=True)
    churned = {name: c.end(soak.seconds + 120) for name, c in churns.items()}
    soak.over.set()
    for t in beside:
        t.join()
    return curve, churned


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600
    pause = float(sys.argv[2]) if len(sys.argv) > 2 else 0.05
    lab = Lab()
    try:
        subprocess.run(["make", "-s", "-C", os.environ["PENSTOCK_BUILD"],
                        "install", "DESTDIR=" + lab.dir + "/stage"], check=True,
                       stdout=subprocess.DEVNULL)
        lab.home = lab.workdir("home", conftest.USER)
        soak = Soak(lab, seconds, pause)
        before = soak.kept()
        curve, churned = churn(soak)
        after = soak.settled(before)
        faults = judge(soak, curve, before, after, churned)
        soak.service.stop()
        if soak.service.process.returncode != 0:
            faults.append("penstockd: exit %d" % soak.service.process.returncode)
        if faults:
            sys.exit("soak: failed: " + "\nsoak: failed: ".join(faults))
        print("soak: passed")
    finally:
        lab.close()


if __name__ == "__main__":
    main()
