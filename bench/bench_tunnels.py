# SPDX-License-Identifier: Apache-2.0
"""bench_tunnels.py - what tunnels cost a proxy, beside the least they can cost.

    tunnels     a new one: open, echo 64 bytes, close, 64 at a time over 1,000
                names, each asked for once before; bulk through 1 and through 8
    requests    1 KB by HTTP over 32 tunnels that stay
    http        the same as plain requests to the proxy
    latency     of a new tunnel while 300 a second are begun, from when it was due
    idle        memory of a tunnel that is open and silent, 8,000 of them
    policy      is a listed name reached that leads to the host itself?

All contenders are up at the same time and take turns, in each measure and round.
A run during which others used much of a core is made again.
"""
import json
import os
import time

import kit
import peers
import penstocks
import wires
from wires import BYTES, ECHO, KEPT, PLAIN

LATENCY_S = 3
RATE = 300
ENDLESS = 1 << 45       # more than goes through in any time
SETTLE_S = 0.1          # until what was closed is closed on the other side
IDLE_MAX = 8000
IDLE_SPARE = 4000       # descriptors for all else

# measure -> (mode of the load, port, options)
RUNS = {
    "new tunnel": ("tunnels", ECHO, ["-w", "-c", 64]),
    "bulk through 1": ("bulk", BYTES, ["-c", 1, "-n", 1, "-b", ENDLESS]),
    "bulk through 8": ("bulk", BYTES, ["-c", 8, "-n", 8, "-b", ENDLESS]),
    "kept request": ("requests", KEPT, ["-w", "-c", 32]),
    "plain request": ("http", PLAIN, ["-w", "-c", 32]),
    "latency": ("tunnels", ECHO, ["-w", "-c", 4000, "-r", RATE]),
}
GROUPS = {
    "tunnels": ("new tunnel", "bulk through 1", "bulk through 8"),
    "requests": ("kept request",),
    "http": ("plain request",),
    "latency": ("latency",),
}


# --- one run -------------------------------------------------------------------------

def work(wire, contender, client):
    """Let the load that waits do its work: (what it said, CPU ns of the contender,
    by others in all that time to one core)."""
    if client.stdout.readline() != "ready\n":
        raise RuntimeError("the load did not start: "
                           + wire.bench.last_error())

    def clocks():
        own = kit.below(client.pid) + wire.pids() + [os.getpid()]
        return (kit.cpu_ns(contender.pids()), kit.cpu_ns(own), kit.busy_ns(),
                time.monotonic_ns())

    before = clocks()
    client.stdin.write("\n")
    client.stdin.flush()
    said = json.loads(client.stdout.readline())
    time.sleep(SETTLE_S)
    used, own, busy, passed = (
        after - then for after, then in zip(clocks(), before))
    return said, used, max(0, busy - used - own) / passed


def leave(client):
    client.stdin.close()
    client.wait()
    client.stdout.close()


def run(wire, contender, measure, seconds):
    """One row's figures."""
    mode, port, options = RUNS[measure]
    client = contender.client(mode, port, options + ["-s", seconds])
    try:
        said, used, foreign = work(wire, contender, client)
    finally:
        leave(client)
    units = said["bytes"] / 1e6 if mode == "bulk" else said["done"]
    if not units or said["failed"] > units / 100:
        raise RuntimeError("%d failed, %d done: %s" % (
            said["failed"], said["done"], said["why"]))
    row = {"value": units / said["seconds"], "units": units,
           "failed": said["failed"], "foreign": foreign,
           "core": used / 1e9 / said["seconds"],
           "cpu": used / 1e3 / units if contender.is_process else None}
    if mode != "bulk":
        row.update(p50_us=said["p50_us"], p99_us=said["p99_us"])
    return row


def undisturbed(wire, contender, measure, seconds):
    for again in range(wire.bench.options.again + 1):
        row = run(wire, contender, measure, seconds)
        if row["foreign"] < kit.FOREIGN_MAX:
            break
    return dict(row, again=again)


# --- memory of an idle tunnel ----------------------------------------------------------

def held_kb(contender, group):
    """(its programs', the kernel's or None where that cannot be seen)"""
    return group.memory_kb() or (kit.pss_kb(contender.pids()), None)


def idle(wire, contender, hosts):
    """A fresh start, a little use, and then thousands that are open."""
    group = kit.Group(contender.slug())
    count = min(IDLE_MAX, (peers.DESCRIPTORS - IDLE_SPARE) // 2)
    contender.start(hosts, group)
    try:
        run(wire, contender, "new tunnel", 0.3)
        client = contender.client("hold", ECHO, ["-n", count])
        try:
            time.sleep(0.5)
            before = held_kb(contender, group)
            said, _, _ = work(wire, contender, client)
            time.sleep(0.8)
            after = held_kb(contender, group)
        finally:
            leave(client)
    finally:
        contender.stop()
        group.close()
    if said["failed"] or said["done"] != count:
        raise RuntimeError("only %d of %d held: %s" % (
            said["done"], count, said["why"]))
    user = (after[0] - before[0]) / count
    seen = before[1] is not None
    kernel = (after[1] - before[1]) / count if seen \
        else kit.KERNEL_KB_ESTIMATE
    return {"value": user + kernel, "user_kb": user, "kernel_kb": kernel,
            "kernel_seen": seen, "held": count, "base_kb": before[0]}


# --- names that lead to the host itself ---------------------------------------------------

def policy(wire, contender, hosts):
    """Each address: is it reached by a listed name?  With a control each way:
    what refuses everything, or carries everything, shows nothing."""
    contender.start(hosts)
    try:
        cells = {"listed": contender.carries(),
                 "unlisted": contender.carries("other.test:%d" % ECHO)}
        for label, address in wires.TRAPS.items():
            cells[address] = contender.carries(
                "%s.%s:%d" % (label, wires.TRAP_ZONE, ECHO))
    finally:
        contender.stop()
    return {"reached": cells}


# --- all of them ---------------------------------------------------------------------------

class Session:
    """Contenders with one list, through the measures that were asked for."""

    def __init__(self, bench, wire, hosts, only):
        self.bench, self.wire, self.hosts = bench, wire, hosts
        self.contenders = []
        # What has no list is there once; the limit, with every list.
        kinds = peers.LIMITS + peers.PROXIES if hosts == bench.options.hosts[0] \
            else (peers.Forward, peers.Squid)
        for kind in kinds + penstocks.ALL:
            if only and not any(word in kind.name for word in only):
                continue
            contender = kind(wire)
            if contender.is_there():
                self.contenders.append(contender)
            else:
                bench.missing(contender.name, contender.package)
        versions = {c.name: c.version() for c in self.contenders}
        bench.row(measure="session", hosts=hosts, kernel=os.uname().release,
                  rounds=bench.rounds,
                  cpus=len(os.sched_getaffinity(0)),
                  versions={k: v for k, v in versions.items() if v})

    def lost(self, contender, why):
        self.bench.say("left out from here on: %s: %s" % (contender.name, why))
        if contender in self.contenders:
            self.contenders.remove(contender)
        contender.stop()

    def take_turns(self, measure, contenders, figures):
        for number in range(self.bench.rounds):
            order = list(contenders)
            if number % 2:
                order.reverse()
            for contender in order:
                if contender not in self.contenders:
                    continue
                self.bench.say("%d hosts, %s, round %d of %d: %s" % (
                    self.hosts, measure, number + 1, self.bench.rounds,
                    contender.name))
                try:
                    self.bench.row(measure=measure, contender=contender.name,
                                   hosts=self.hosts, round=number,
                                   **figures(contender))
                except (RuntimeError, SystemExit, ValueError) as error:
                    self.lost(contender, error)

    def streams(self, measures):
        for contender in list(self.contenders):
            self.bench.say("starting %s" % contender.name)
            try:
                contender.start(self.hosts)
            except SystemExit as error:
                self.lost(contender, error)
        try:
            for measure in measures:
                seconds = LATENCY_S if measure == "latency" \
                    else self.bench.options.seconds
                self.take_turns(
                    measure, [c for c in self.contenders if c.plain or
                              measure != "plain request"],
                    lambda c: undisturbed(self.wire, c, measure, seconds))
        finally:
            for contender in self.contenders:
                contender.stop()

    def idle(self):
        self.take_turns(
            "idle tunnel", [c for c in self.contenders if c.is_process],
            lambda c: idle(self.wire, c, self.hosts))

    def policy(self):
        strict = peers.SquidAddresses(self.wire)
        if strict.is_there() and not self.bench.options.only:
            self.contenders.append(strict)
        trap = self.wire.trap()
        try:
            rounds, self.bench.rounds = self.bench.rounds, 1
            self.take_turns(
                "policy", [c for c in self.contenders if c.judges],
                lambda c: policy(self.wire, c, self.hosts))
        finally:
            self.bench.rounds = rounds
            kit.end(trap)


def bench_tunnels(bench, words):
    """@words: of GROUPS, and idle, policy."""
    measures = [m for word in words for m in GROUPS.get(word, ())]
    wire = wires.Wires(bench)
    try:
        for hosts in bench.options.hosts:
            session = Session(bench, wire, hosts, bench.options.only)
            if measures:
                session.streams(measures)
            if "idle" in words:
                session.idle()
            if "policy" in words and hosts == bench.options.hosts[0]:
                session.policy()
    finally:
        wire.close()
