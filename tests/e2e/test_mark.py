# SPDX-License-Identifier: Apache-2.0
"""Sockets of flows bear the operator's mark, which a firewall can ask for."""
import os
import signal

import pytest

from conftest import USER, Penstock, children, gone
from test_service import SERVICE_USER, Service

MARK = 0x2a10
GET = "for name in v4 v6; do curl -sS http://$name.example.com/; done"
NET_RAW = 1 << 13


@pytest.fixture
def firewall(lab):
    """The host lets nothing out to port 80 but what bears the mark."""
    lab.host.sh("""
        nft -f - <<'RULES'
        table inet marked {
            chain out {
                type filter hook output priority 0;
                oif eth0 tcp dport 80 meta mark != %d reject with tcp reset
            }
        }
RULES
        """ % MARK)
    yield
    lab.host.sh("nft delete table inet marked")


def marker_of(pid):
    for child in children(pid):
        with open("/proc/%d/comm" % child, encoding="ascii") as comm:
            if comm.read() == "penstock-marker\n":
                return child
    return None


def status_of(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        return dict(line.rstrip("\n").split(":\t", 1) for line in status)


def test_flows_of_a_run_bear_its_mark(as_root, firewall):
    assert as_root.sh(GET).out.count('"connect_refused"') == 2
    got = as_root.sh(GET, options=["--mark", str(MARK + 1)])
    assert got.out.count('"connect_refused"') == 2, got.out + got.err
    got = as_root.sh(GET, options=["--mark", hex(MARK)])
    assert "host=v4.example.com" in got.out, got.out + got.err
    assert "host=v6.example.com" in got.out, got.out + got.err


def test_flows_of_a_service_bear_its_mark(lab, firewall):
    service = Service(lab, more="mark = %d" % MARK)
    try:
        run = Penstock(lab, USER)
        options = ["--plug", service.socket]
        marker = marker_of(service.pid())
        status = status_of(marker)
        assert status["Uid"].split() == [str(SERVICE_USER)] * 4
        assert int(status["CapEff"], 16) == NET_RAW
        assert int(status["CapPrm"], 16) == NET_RAW
        assert int(status["CapBnd"], 16) == 0
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        assert int(status_of(service.pid())["CapPrm"], 16) == 0
        got = run.sh(GET, options=options)
        assert "host=v4.example.com" in got.out, got.out + got.err
        assert "host=v6.example.com" in got.out, got.out + got.err
    finally:
        service.stop()
    # It ends with the daemon.
    assert gone([marker])


def test_without_its_marker_a_service_dials_nothing(lab):
    service = Service(lab, more="mark = %d" % MARK)
    try:
        # None is in stock yet.
        os.kill(marker_of(service.pid()), signal.SIGKILL)
        got = Penstock(lab, USER).sh(GET, options=["--plug", service.socket])
        assert got.out.count('"internal_error"') == 2, got.out + got.err
    finally:
        out = service.stop()
    assert b"the marker is gone" in out[1], out


def test_without_a_mark_there_is_no_marker(as_root):
    process = as_root.start("cat")
    try:
        process.stdin.write(b"up\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"up\n"
        assert marker_of(process.pid) is None
    finally:
        process.communicate()


@pytest.mark.parametrize("value, words", [
    ("7", "CAP_NET_RAW"),
    ("0", "is no mark"),
    ("eth0", "is no mark"),
])
def test_who_may_not_mark_is_told_before_anything_starts(as_user, value,
                                                         words):
    got = as_user.sh("echo started", options=["--mark", value])
    assert (got.code, got.out) == (125, "")
    assert words in got.err, got.err
