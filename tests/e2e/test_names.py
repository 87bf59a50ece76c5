# SPDX-License-Identifier: Apache-2.0
"""The resolver as programs see it: policy first, and nothing leaks."""
import os

import pytest

from conftest import POLICY, names


def dig(penstock, *queries, **kwargs):
    got = penstock.sh("\n".join("dig +time=5 +tries=1 " + q for q in queries),
                      **kwargs)
    return got


def test_an_allowed_name_has_addresses_in_both_families(penstock):
    got = penstock.sh("getent ahostsv4 web.example.com | head -n 1;"
                      "getent ahostsv6 web.example.com | head -n 1")
    lines = got.out.splitlines()
    assert lines[0].startswith("198.1"), got.out
    assert lines[1].startswith("fd70:"), got.out


def test_any_resolver_address_reaches_ours(as_user):
    # A program told to use another resolver still asks this one, and the
    # answer comes from the address that it asked (dig checks that).
    got = dig(as_user, "+short web.example.com @8.8.8.8",
              "+short +tcp web.example.com @1.1.1.1",
              "+short web.example.com @2001:4860:4860::8888",
              "+short +tcp web.example.com @2001:4860:4860::8844",
              "+short web.example.com @127.0.0.53")
    assert len(set(got.out.split())) == 1 and len(got.out.split()) == 5, got.out


def test_a_denied_name_is_nxdomain_with_the_reason_and_asks_nobody(as_user, lab):
    # DNS-02, DNS-05
    before = len(lab.dns_seen())
    got = dig(as_user, "denied.example.net", "c2VjcmV0.denied.example.net AAAA",
              "web.example.com.attacker.example.net TXT")
    assert got.out.count("status: NXDOMAIN") == 3
    assert "EDE: 15 (Blocked)" in got.out
    assert "host_not_allowed" in got.out
    assert lab.dns_seen(before) == []
    assert len(got.dns(act="deny")) == 3


def test_ancestors_and_other_types_are_empty_not_absent(as_user, lab):
    # DNS-09, DNS-21, DNS-06
    got = dig(as_user, "example.com", "com", "web.example.com HTTPS",
              "web.example.com TXT", "v4.example.com AAAA",
              "v6.example.com A")
    assert got.out.count("status: NOERROR") == 6, got.out
    assert got.out.count("ANSWER: 0") == 6


def test_a_name_that_does_not_exist_is_nxdomain(as_user):
    got = dig(as_user, "nothere.example.com")
    assert "status: NXDOMAIN" in got.out
    assert got.dns(host="nothere.example.com")[0]["reason"] == "dns_nxdomain"


def test_the_question_that_leaves_is_ours_not_the_programs(as_user, lab):
    # DNS-16: options, case, flags and extra records stay here.
    before = len(lab.dns_seen())
    dig(as_user, "+ednsopt=65001:736563726574 wEb.ExAmPlE.cOm",
        "+cdflag +adflag +zflag WEB.example.com")
    seen = [q for q in lab.dns_seen(before)]
    assert seen
    assert "736563726574" not in "".join(q["wire"] for q in seen)
    for query in seen:
        assert query["name"].lower() == "web.example.com."
        assert query["type"] in ("A", "AAAA")
        assert query["flags"] == "RD"


def test_parallel_questions_from_one_socket_are_both_answered(as_user):
    # DNS-07
    got = as_user.python(r"""
import socket, struct
def query(ident, rdtype):
    name = b"".join(bytes([len(l)]) + l for l in b"late.example.com".split(b"."))
    return struct.pack("!6H", ident, 256, 1, 0, 0, 0) + name + b"\0" + \
        struct.pack("!2H", rdtype, 1)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.connect(("9.9.9.9", 53))
want = set()
for i in range(100):
    s.send(query(2 * i, 1)); s.send(query(2 * i + 1, 28))
    want |= {2 * i, 2 * i + 1}
while want:
    want.discard(struct.unpack("!H", s.recv(4096)[:2])[0])
print("all")
""")
    assert got.out == "all\n", got.err


def test_two_questions_in_one_tcp_segment_are_judged_each(as_user):
    # DNS-11, DNS-14
    got = as_user.python(r"""
import socket, struct
def query(ident, name):
    q = struct.pack("!6H", ident, 256, 1, 0, 0, 0)
    q += b"".join(bytes([len(l)]) + l for l in name.encode().split(b"."))
    q += b"\0" + struct.pack("!2H", 1, 1)
    return struct.pack("!H", len(q)) + q
s = socket.create_connection(("8.8.4.4", 53), 20)
s.sendall(query(1, "web.example.com") + query(2, "denied.example.net")
          + query(3, "v4.example.com")[:1])
s.sendall(query(3, "v4.example.com")[1:])
s.shutdown(socket.SHUT_WR)
data = b""
while part := s.recv(65536):
    data += part
rcodes = {}
while data:
    n = struct.unpack("!H", data[:2])[0]
    rcodes[struct.unpack("!H", data[2:4])[0]] = data[5] & 15
    data = data[2 + n:]
print(sorted(rcodes.items()))
""")
    assert got.out == "[(1, 0), (2, 3), (3, 0)]\n", got.err


def test_a_name_with_many_addresses_fits_any_answer(as_user):
    # DNS-10: the program gets the name's one synthetic address, never TC; the
    # sixty that the world has stay here, and lead there.
    got = dig(as_user, "+noedns +ignore many.example.com",
              "+bufsize=1232 many.example.com", "+tcp many.example.com")
    assert got.out.count("ANSWER: 1,") == 3, got.out
    assert " tc" not in got.out
    got = as_user.curl("http://many.example.com/")
    assert got.out == "lab GET / host=many.example.com\n", got.err


def test_a_failure_of_aaaa_does_not_take_the_name_away(as_user):
    # DNS-23: musl gives the whole name up on an error of either family.
    got = dig(as_user, "half.example.com AAAA", "half.example.com A")
    assert got.out.count("status: NOERROR") == 2, got.out
    assert got.out.count("ANSWER: 1,") == 1
    got = as_user.curl("http://half.example.com/", options=["--no-proxy-env"])
    assert got.out == "lab GET / host=half.example.com\n", got.err


@pytest.mark.parametrize("name,rcode", [
    ("loop-a.example.com", "SERVFAIL"),             # DNS-19
    ("cdn.example.com", "NOERROR"),                 # DNS-18
])
def test_cname_chains_are_followed_and_loops_ended(as_user, name, rcode):
    got = dig(as_user, name, "edge.example.net")
    first, second = got.out.split("<<>> DiG")[1:3]
    assert "status: " + rcode in first
    assert "status: NXDOMAIN" in second


def test_local_names_are_answered_here(as_user, lab):
    # DNS-30
    before = len(lab.dns_seen())
    got = dig(as_user, "+short localhost", "+short x.localhost AAAA",
              "+short -x 127.0.0.1", "printer.local", "_x._tcp.local SRV",
              "-x 10.1.2.3")
    assert got.out.split()[:2] == ["127.0.0.1", "::1"]
    assert "localhost." in got.out
    assert got.out.count("status: NXDOMAIN") == 3
    assert lab.dns_seen(before) == []


@pytest.mark.parametrize("gone", [names.CLOSED_V4, "::1"])      # SBX-36
def test_an_upstream_that_is_gone_is_passed_over(as_user, lab, gone):
    # DNS-24, DNS-29, DNS-35: only what resolv.conf says, in its order.
    lab.set_resolv_conf("nameserver %s\nnameserver %s\n" % (gone, names.DNS_V4))
    try:
        got = as_user.curl("http://web.example.com/")
        assert got.out == "lab GET / host=web.example.com\n", got.err
    finally:
        lab.set_resolv_conf("nameserver %s\n" % names.DNS_V4)


def test_a_changed_resolv_conf_is_followed(as_user, lab):
    # Each turn asks a name that nobody has asked before, so that no cache
    # answers; the lab's DNS writes down which of its addresses was asked.
    process = as_user.start("sh", "-c", """
        i=0
        while read -r go; do
            i=$((i + 1)); getent hosts n$i.example.com; echo $i
        done""", text=True, bufsize=1,
        policy=POLICY + "[limits]\nnxdomain = 1000\n")

    def servers_until(server):
        for _ in range(500):
            before = len(lab.dns_seen())
            process.stdin.write("go\n")
            assert process.stdout.readline()
            seen = {q["server"] for q in lab.dns_seen(before)}
            if seen == {server}:
                break
        return seen

    try:
        assert servers_until(names.DNS_V4) == {names.DNS_V4}
        lab.set_resolv_conf("nameserver %s\n" % names.DNS2_V4)
        assert servers_until(names.DNS2_V4) == {names.DNS2_V4}
    finally:
        lab.set_resolv_conf("nameserver %s\n" % names.DNS_V4)
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_without_any_upstream_names_fail_as_an_outage(as_user, lab):
    # DNS-35: never a public resolver in its place.
    lab.set_resolv_conf("# nothing\n")
    before = len(lab.dns_seen())
    try:
        got = as_user.curl("-i", "http://web.example.com/")
        assert "502 dns_failed" in got.out or "503 dns_failed" in got.out
        assert len(lab.dns_seen()) == before
    finally:
        lab.set_resolv_conf("nameserver %s\n" % names.DNS_V4)


def test_a_name_that_is_never_answered_ends_as_a_timeout(as_user):
    got = as_user.curl("-i", "http://never.example.com/")
    assert got.out.startswith("HTTP/1.1 504 dns_timeout"), got.out


def test_programs_connecting_right_behind_the_answer_are_never_refused(as_user):
    # DNS-32
    got = as_user.python(r"""
import socket
bad = 0
for i in range(300):
    addr = socket.gethostbyname("web.example.com")
    s = socket.create_connection((addr, 80), 15)
    s.sendall(b"GET / HTTP/1.1\r\nHost: web.example.com\r\nConnection: close\r\n\r\n")
    bad += not s.recv(100).startswith(b"HTTP/1.1 200")
    s.close()
print(bad)
""", options=["--no-proxy-env"])
    assert got.out == "0\n", got.err


def test_the_hosts_own_resolver_sockets_and_files_are_out_of_sight(
        as_user, lab):
    # SBX-25
    look = ("grep ^hosts: /etc/nsswitch.conf; cat /etc/resolv.conf;"
            "ls -A /run/nscd 2>/dev/null")
    os.makedirs(lab.host.path("/run/nscd"), exist_ok=True)
    with open(lab.host.path("/run/nscd/socket"), "w", encoding="ascii"):
        pass
    lab.set_resolv_conf("search corp.example.org\nnameserver %s\n"
                        % names.DNS_V4)
    try:
        outside = lab.host.run(["sh", "-c", look], capture_output=True,
                               text=True)
        for word in ("search", names.DNS_V4, "socket"):
            assert word in outside.stdout
        got = as_user.sh(look)
    finally:
        lab.set_resolv_conf("nameserver %s\n" % names.DNS_V4)
    assert got.out.splitlines()[0].split() == ["hosts:", "files", "dns"]
    assert "nameserver" in got.out
    for word in ("search", names.DNS_V4, "socket"):
        assert word not in got.out
