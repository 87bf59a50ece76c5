# SPDX-License-Identifier: Apache-2.0
"""The bench runs, counts all CPU, and makes its tables from what it wrote."""
import json
import os
import subprocess
import sys

from conftest import build_dir

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                     "bench")
sys.path.insert(0, BENCH)

import kit  # noqa: E402

# Says what it used, itself and by a child that it has waited for.
BUSY = """
import os, sys, threading, time
def work(until):
    while until() < 0.1:
        pass
thread = threading.Thread(target=work, args=(time.thread_time,))
thread.start()
thread.join()
child = os.fork()
if child == 0:
    work(time.process_time)
    os._exit(0)
os.waitpid(child, 0)
print(time.process_time_ns(), flush=True)
sys.stdin.read()
"""


def bench(*args):
    done = subprocess.run(
        ["/usr/bin/python3", "-B", os.path.join(BENCH, "bench.py"), *args],
        env=dict(os.environ, PENSTOCK_BUILD=build_dir()), capture_output=True,
        text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_cheap_measure_gives_rows_and_the_same_table_twice(lab, tmp_path):
    rows = str(tmp_path / "rows")
    said = bench("--rounds", "1", "--hosts", "1000", "--seconds", "0.1",
                 "--again", "0", "--stage", lab.dir + "/stage",
                 "--only", "forward,sealed", "--out", rows, "requests",
                 "policy")
    with open(rows, encoding="ascii") as text:
        found = [json.loads(line) for line in text]
    cost = {row["contender"]: row["cpu"] for row in found
            if row["measure"] == "kept request"}
    assert sorted(cost) == ["forward", "forward (loopback)",
                            "penstock (sealed)"]
    assert min(cost.values()) > 0
    reached = [row["reached"] for row in found if row["measure"] == "policy"]
    assert [[where for where in row if row[where]] for row in reached] == \
        [["listed"]]
    assert "| penstock (sealed) |" in said
    assert bench("report", rows) == said


def test_cpu_of_ended_threads_and_children_is_counted():
    process = subprocess.Popen(["/usr/bin/python3", "-c", BUSY], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    own = int(process.stdout.readline())
    # A child's time is known in ticks, which may have lost one each way.
    assert kit.cpu_ns([process.pid]) >= own + 10**8 - 2 * kit.TICK_NS
    process.communicate()
