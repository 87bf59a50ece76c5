# SPDX-License-Identifier: Apache-2.0
"""bench_many.py - hundreds of sandboxes at once on one service with one worker.

    set-up      wall clock from the command to the first line of the program
                inside, a few at a time, while they pile up
    memory      of the service, and of the processes and namespaces of sandboxes,
                each divided by how many there are
    fairness    what a good sandbox waits for new tunnels, alone and beside one
                that does its worst; the others are there and silent
"""
import json
import selectors
import statistics
import subprocess
import time

import kit
import penstocks
import wires
from wires import BYTES, ECHO

AT_ONCE = 2             # starting
TUNNELS = 300           # of the good one, in a row
SECONDS = 4
PATIENCE_S = 60
# What the noisy one does, and how much of it at once.
ATTACKS = {"new": (ECHO, 64), "bulk": (BYTES, 16), "heads": (ECHO, 1000),
           "dns": (None, 64)}


class Crowd:
    """Sandboxes that do nothing but be there."""

    def __init__(self, sealed, group):
        self.sealed, self.group = sealed, group
        self.bench = sealed.bench
        self.processes, self.took_ms = [], []

    def start(self, argv):
        """A program in a sandbox of its own."""
        home = self.bench.lab.workdir("home", kit.USER)
        return self.bench.lab.host.popen(
            self.group.argv(
                ["setpriv", "--reuid", str(kit.USER), "--regid", str(kit.USER),
                 "--clear-groups", "--", self.bench.penstock, "run", "--quiet",
                 "--policy", self.sealed.policy, "--plug",
                 self.sealed.where_is() + "/plug.sock", "--"] + argv),
            cwd=home, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.bench.errors,
            env={"PATH": "/usr/bin:/bin", "HOME": home})

    def gather(self, count):
        """@count of them; the time that each took."""
        waits = selectors.DefaultSelector()
        begun = {}
        while len(self.took_ms) < count:
            while len(begun) < AT_ONCE and len(self.processes) < count:
                process = self.start([self.bench.load, "tunnels",
                                      "to:127.0.0.1:1", "nobody:1"])
                self.processes.append(process)
                begun[process] = time.monotonic()
                waits.register(process.stdout, selectors.EVENT_READ, process)
            ready = waits.select(PATIENCE_S)
            for key, _ in ready:
                if key.fileobj.readline() != "ready\n":
                    raise RuntimeError("number %d did not start: %s" % (
                        len(self.took_ms), self.bench.last_error()))
                self.took_ms.append(
                    1e3 * (time.monotonic() - begun.pop(key.data)))
                waits.unregister(key.fileobj)
            if not ready:
                raise RuntimeError("number %d does not start"
                                   % len(self.took_ms))

    def leave(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            process.wait()
            process.stdout.close()


def each(after, before, count):
    """A share of what grew, or None where it cannot be seen."""
    return None if after is None or before is None else (after - before) / count


def set_up(bench, sealed, crowd, service, count):
    def held():
        return (service.memory_kb() or (kit.pss_kb(sealed.pids()), None)) + \
            (crowd.group.memory_kb() or (None, None))

    before, cpu = held(), kit.cpu_ns(sealed.pids())
    begun = time.monotonic()
    crowd.gather(count)
    per_s = count / (time.monotonic() - begun)
    time.sleep(0.5)
    after = held()
    cpu = (kit.cpu_ns(sealed.pids()) - cpu) / 1e6 / count
    took = sorted(crowd.took_ms)
    kb = [each(a, b, count) for a, b in zip(after, before)]
    bench.row(measure="many set-up", contender=sealed.name, number=count,
              value=per_s,
              p50_ms=statistics.median(took), p99_ms=took[len(took) * 99 // 100],
              first_ms=statistics.median(crowd.took_ms[:50]),
              last_ms=statistics.median(crowd.took_ms[-50:]),
              service_cpu_ms=cpu, service_kb=kb[0], service_kernel_kb=kb[1],
              sandbox_kb=kb[2], sandbox_kernel_kb=kb[3])


def end(process):
    process.stdin.close()
    said = process.stdout.read()
    process.wait()
    process.stdout.close()
    return said


def good(bench, sealed, crowd, attack):
    """Its tunnels, one after the other, beside @attack."""
    client = crowd.start(kit.pinned(1, [
        bench.load, "tunnels", "connect:127.0.0.1:3128",
        "api.d%%.example:%d" % ECHO, "-d", "1000", "-n", str(TUNNELS), "-s",
        str(SECONDS)]))
    if client.stdout.readline() != "ready\n":
        raise RuntimeError("the good one did not start: " + bench.last_error())
    before = kit.cpu_ns(sealed.pids())
    client.stdin.write("\n")
    client.stdin.flush()
    said = json.loads(client.stdout.readline())
    used = kit.cpu_ns(sealed.pids()) - before
    end(client)
    bench.row(measure="many fair", contender=sealed.name, attack=attack,
              value=said["p50_us"] / 1e3, p99_ms=said["p99_us"] / 1e3,
              done=said["done"], failed=TUNNELS - said["done"],
              turn_ms=used / 1e6 / max(1, said["done"]))


def beside(bench, sealed, crowd, attack):
    port, count = ATTACKS[attack]
    target = "api.d000001.example:%d" % port if port else wires.AUTHORITY
    noisy = crowd.start(kit.pinned(1, [
        bench.attack, attack, "connect:127.0.0.1:3128", target, str(count)]))
    try:
        if noisy.stdout.readline() != "ready\n":
            raise RuntimeError("the noisy one did not start: "
                               + bench.last_error())
        good(bench, sealed, crowd, attack)
    finally:
        end(noisy)


def bench_many(bench):
    count = bench.options.sandboxes
    wire = wires.Wires(bench)
    service, crowds = kit.Group("service"), kit.Group("sandboxes")
    sealed = penstocks.Sealed(wire)
    crowd = Crowd(sealed, crowds)
    try:
        sealed.start(1000, service)
        bench.say("many: starting %d sandboxes" % count)
        set_up(bench, sealed, crowd, service, count - 2)
        for number in range(bench.rounds):
            for attack in ("", *ATTACKS):
                bench.say("many, round %d of %d: a good one beside %s" % (
                    number + 1, bench.rounds, attack or "nobody"))
                if attack:
                    beside(bench, sealed, crowd, attack)
                else:
                    good(bench, sealed, crowd, attack)
    finally:
        crowd.leave()
        sealed.stop()
        service.close()
        crowds.close()
        wire.close()
