# SPDX-License-Identifier: Apache-2.0
"""Questions that come again: one record, a count, and flows that name it."""
import json
import os
import signal
import time

from conftest import USER, daemon_of

ASK = "for i in 1 2 3 4; do getent ahostsv4 v4.example.com; done"
ASK_DENIED = "for i in 1 2 3; do dig +short denied.example.net; done"


def test_repeats_are_counted_under_the_id_that_flows_name(penstock):
    got = penstock.sh("%s; %s; curl -sS -o /dev/null --noproxy '*' "
                      "http://v4.example.com/" % (ASK, ASK_DENIED))
    assert got.code == 0, got.err
    asked = got.dns(host="v4.example.com", qtype="A")
    first, again = [r for r in asked if "count" not in r], \
        [r for r in asked if "count" in r]
    # A slow machine may take longer than a count goes on for: what is told
    # must be right however it was told.
    assert sum(r.get("count", 1) for r in asked) == 5
    assert len({r["id"] for r in first}) == len(first) < 5
    assert {r["id"] for r in again} <= {r["id"] for r in first}
    assert all("src" in r and "dur_ms" in r for r in first)
    assert not any("src" in r or "dur_ms" in r for r in again)
    denied = got.dns(host="denied.example.net")
    assert sum(r.get("count", 1) for r in denied) == 3
    assert {r["reason"] for r in denied} == {"host_not_allowed"}
    flow, = got.flows(ev="flow_open")
    assert flow["dns"] in {r["id"] for r in first}
    assert got.records[-1]["ev"] == "run_end"
    assert [r["seq"] for r in got.records] == \
        list(range(1, len(got.records) + 1))


def test_the_summary_and_the_list_of_flows_tell_all_of_them(as_user, lab):
    got = as_user.sh(ASK_DENIED, options=["--summary"])
    line, = [line for line in got.err.splitlines()
             if "denied.example.net" in line and "dns" in line]
    assert "x3" in line
    shown = lab.host.run([as_user.program, "flows", "--dns", got.records_path],
                         uid=USER, capture_output=True, text=True)
    rows = [row for row in shown.stdout.splitlines()
            if "denied.example.net" in row]
    assert any("again x" in row for row in rows), shown.stdout


def first_of(path, host):
    with open(path, encoding="utf-8") as log:
        return [r for r in map(json.loads, (
            line for line in log if line.endswith("\n")))
            if r["ev"] == "dns" and r.get("host") == host and "count" not in r]


def test_the_first_is_on_file_before_its_repeats_are_told(as_user):
    # So that a daemon which is killed takes counts with it, and no decision.
    process = as_user.start("/bin/sh", "-c", ASK + "; echo asked; exec cat")
    try:
        while process.stdout.readline() != b"asked\n":
            assert process.poll() is None
        end = time.monotonic() + 20
        while not first_of(process.records_path, "v4.example.com"):
            assert time.monotonic() < end, "no record"
            time.sleep(0.01)
        os.kill(daemon_of(process), signal.SIGKILL)
        record = first_of(process.records_path, "v4.example.com")[0]
        assert record["act"] == "allow" and record["answers"]
    finally:
        process.kill()
        process.communicate()
