# SPDX-License-Identifier: Apache-2.0
"""A kernel without nftables: less is served, and nothing more gets out."""
import os

import pytest

from conftest import POLICY, TESTS, names

DIRECT = ["--no-proxy-env"]
NOTE = ("penstock: note: no nftables or tproxy in this kernel: programs that "
        "do not use the proxy reach port 443 only")


def without(error="EPROTONOSUPPORT"):
    return ["/usr/bin/python3", "-B",
            os.path.join(TESTS, "lab", "no_nftables.py"), error]


@pytest.mark.parametrize("error", ["EPROTONOSUPPORT", "EAFNOSUPPORT"])
def test_what_uses_the_proxy_works_as_ever(penstock, error):
    got = penstock.sh("""
        curl -sS https://web.example.com/tunnel
        curl -sS http://web.example.com/plain
        curl -sS http://denied.example.net/""", before=without(error))
    assert got.code == 0, got.err
    assert got.out.startswith("lab GET /tunnel host=web.example.com\n"
                              "lab GET /plain host=web.example.com\n")
    assert '"error":"host_not_allowed"' in got.out
    assert got.err.splitlines() == [NOTE]


def test_the_note_is_only_for_such_a_kernel(as_user):
    assert as_user.sh("true").err == ""


def test_port_443_is_served_by_name_on_every_address(as_user, lab):
    before = len(lab.origin_seen())
    got = as_user.sh("""
        curl -sS -4 https://web.example.com/four
        curl -sS -6 https://web.example.com/six
        curl -sS --resolve web.example.com:443:203.0.113.66 \
            https://web.example.com/lying
        curl -sS --resolve denied.example.net:443:203.0.113.10 \
            https://denied.example.net/
        curl -sSk https://10.0.0.5/
        curl -sSk https://169.254.169.254/
        curl -sSk https://127.0.0.1/
        curl -sSk 'https://[::1]/'""", options=DIRECT, before=without())
    assert got.out == "".join(
        "lab GET /%s host=web.example.com\n" % path
        for path in ("four", "six", "lying")), got.err
    assert {r["via"] for r in got.flows()} == {"transparent"}
    assert got.denied() == {
        ("denied.example.net", 443, "host_not_allowed"),
        ("10.0.0.5", 443, "address_private"),
        ("169.254.169.254", 443, "address_metadata"),
        ("127.0.0.1", 443, "address_loopback"),
        ("::1", 443, "address_loopback")}
    assert {(s["addr"], s["port"]) for s in lab.origin_seen(before)} <= {
        (names.WEB_V4, 443), (names.WEB_V6, 443)}


KNOCK = r"""
import errno, socket, sys
def knock(label, family, kind, where, send=False):
    with socket.socket(family, kind) as s:
        s.settimeout(20)
        try:
            s.connect(where)
            if send:
                s.send(b"x")
            s.recv(1)
            print(label, "heard")
        except OSError as e:
            print(label, errno.errorcode.get(e.errno, type(e).__name__))
v4, v6 = socket.AF_INET, socket.AF_INET6
tcp, udp = socket.SOCK_STREAM, socket.SOCK_DGRAM
web = socket.gethostbyname("web.example.com")
for port in (22, 80, 8443):
    knock("tcp4-%d" % port, v4, tcp, (web, port))
    knock("tcp6-%d" % port, v6, tcp, (sys.argv[2], port))
knock("literal4", v4, tcp, (sys.argv[1], 80))
for port in (123, 443):
    knock("udp4-%d" % port, v4, udp, (sys.argv[1], port), True)
    knock("udp6-%d" % port, v6, udp, (sys.argv[2], port), True)
"""


def test_everything_else_is_refused_at_once_and_stays_inside(as_user, lab):
    # What rules allow, too: the note has said so.
    policy = POLICY.replace("[allow web]", "[allow web]\nports = 22 80 443 8443")
    before = len(lab.origin_seen())
    got = as_user.python(KNOCK, names.WEB_V4, names.WEB_V6, policy=policy,
                         options=DIRECT, before=without())
    asked = got.out.splitlines()
    assert len(asked) == 11, got.err
    assert all(line.endswith(" ECONNREFUSED") for line in asked), got.out
    assert lab.origin_seen(before) == []


def test_the_self_test_hides_nothing_of_the_commands(as_user):
    got = as_user.sh("curl -sSk https://192.0.2.2/; curl -sSk https://192.0.2.2/",
                     options=DIRECT, before=without())
    assert [r["asked"] for r in got.flows()] == ["192.0.2.2"] * 2
    assert not [r for r in got.records if r.get("internal") and r["ev"] != "dns"]


def test_every_resolver_is_ours(as_user, lab):
    before = len(lab.dns_seen())
    got = as_user.sh("""
        dig +short +tries=1 @8.8.8.8 web.example.com A
        dig +short +tries=1 +tcp @2001:4860:4860::8888 web.example.com AAAA
        dig +tries=1 @9.9.9.9 denied.example.net A | grep -o 'status: [A-Z]*'
        """, options=DIRECT, before=without())
    v4, v6, status = got.out.split("\n")[:3]
    assert v4.startswith("198.18.") and v6.startswith("fd"), got.out
    assert status == "status: NXDOMAIN"
    assert {q["name"].lower().rstrip(".") for q in lab.dns_seen(before)} == {"web.example.com"}


def test_the_commands_own_servers_are_its_own(as_user):
    got = as_user.python(r"""
import socket
server = socket.create_server(("127.0.0.1", 8000))
with socket.create_connection(("127.0.0.1", 8000)) as client:
    server.accept()[0].sendall(b"mine")
    print(client.recv(4))
# Port 443 is below what an ordinary program may bind, on any address.
try:
    socket.create_server(("203.0.113.10", 443))
except OSError as e:
    print(type(e).__name__)
""", before=without())
    assert got.out.split() == ["b'mine'", "PermissionError"], got.err


def test_doctor_names_what_is_missing_and_the_mend(as_user):
    done = as_user.lab.host.run([*without(), as_user.program, "doctor"],
                                uid=as_user.uid, env=as_user.env(),
                                capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "without  nftables, tproxy" in done.stdout
    assert "reach port 443 only: modprobe nf_tables" in done.stdout
