# SPDX-License-Identifier: Apache-2.0
"""Names answered with the addresses that the world gives, and what flows to
those addresses are taken for; beside the same with stand-in addresses."""
import json
import os
import subprocess

import pytest

from conftest import ADDRESSES, POLICY, names

DIRECT = ["--no-proxy-env"]
REAL = POLICY + "[dns]\nanswers = real\n"
MODES = pytest.mark.parametrize("answers", ["synthetic", "real"])

# One address with an allowed name and a denied one; and of the two allowed
# names at another, one has a port that the other has not.
SHARED = """\
[policy]
name = lab
[dns]
answers = %%s
[allow shared]
hosts     = shared.example.com
addresses = %(ranges)s
reason    = the lab's
[allow shell]
hosts     = shared.example.com
ports     = 22 5432
protocol  = tcp
addresses = %(ranges)s
reason    = the lab's
[allow api]
hosts     = api.example.com
addresses = %(ranges)s
reason    = the lab's
[allow git]
hosts     = web.example.com
ports     = 22
addresses = %(ranges)s
reason    = the lab's
""" % {"ranges": ADDRESSES}

FIRST_WORDS = r"""
import socket, sys
for target in sys.argv[1:]:
    host, port = target.rsplit(":", 1)
    try:
        s = socket.create_connection((host, int(port)), 15)
        print(s.recv(100).decode().strip() or "closed")
    except OSError as e:
        print(type(e).__name__)
"""


def test_names_have_their_own_addresses_in_both_families(penstock):
    got = penstock.sh("getent ahostsv4 web.example.com | head -n 1;"
                      "getent ahostsv6 web.example.com | head -n 1;"
                      "curl -sS http://web.example.com/4 -4;"
                      "curl -sS http://web.example.com/6 -6;"
                      "curl -sS https://web.example.com/s", policy=REAL,
                      options=DIRECT)
    assert got.out.splitlines()[0].split()[0] == names.WEB_V4, got.out
    assert got.out.splitlines()[1].split()[0] == names.WEB_V6
    for path in ("/4", "/6", "/s"):
        assert "lab GET %s host=web.example.com\n" % path in got.out, got.err
    # A flow names the question whose answer it used, and its very address.
    dns = {r["id"]: r for r in got.dns(act="allow")}
    opened = got.flows(ev="flow_open")
    assert {r["dst_ip"] for r in opened} == {names.WEB_V4, names.WEB_V6}
    for flow in opened:
        assert flow["host"] == "web.example.com"
        assert flow["asked"] == flow["dst_ip"]
        assert flow["dst_ip"] in dns[flow["dns"]]["answers"]


@MODES
def test_an_allowed_and_a_denied_name_share_an_address(as_user, lab, answers):
    # ADDR-18: in TLS, in HTTP, and where the server speaks first.
    before = len(lab.origin_seen())
    got = as_user.sh("""
        addr=$(getent ahostsv4 shared.example.com | head -n 1 | cut -d' ' -f1)
        getent ahostsv4 shared.example.net || echo absent
        curl -sS https://shared.example.com/tls
        curl -sS http://shared.example.com/http
        python3 -c 'import socket, sys
s = socket.create_connection((sys.argv[1], 22), 15)
print(s.recv(100).decode().strip())' $addr
        curl -sS --resolve shared.example.net:443:$addr \
            https://shared.example.net/denied
        curl -sS --resolve shared.example.net:80:$addr \
            http://shared.example.net/denied
        openssl s_client -connect $addr:443 -noservername </dev/null \
            >/dev/null 2>&1 || echo no name
        """, policy=SHARED % answers, options=DIRECT)
    lines = got.out.splitlines()
    assert lines[:4] == [
        "absent", "lab GET /tls host=shared.example.com",
        "lab GET /http host=shared.example.com", "SSH-2.0-lab"], got.err
    assert lines[-1] == "no name"
    assert "access denied" in got.err
    why = {"synthetic": ("name_mismatch", "host_mismatch"),
           "real": ("host_not_allowed", "host_not_allowed")}[answers]
    assert {(r["dst_port"], r["reason"]) for r in got.flows(act="deny")} == {
        (443, why[0]), (80, why[1]), (443, "sni_missing")}
    seen = lab.origin_seen(before)
    assert "shared.example.net" not in str(seen)
    assert {c["addr"].replace("::ffff:", "") for c in seen} == {names.SHARED_V4}


@MODES
def test_which_name_is_meant_is_known_or_the_flow_is_refused(as_user, answers):
    # Two allowed names at one address, of which one has SSH.
    got = as_user.python("import socket\n"
                         "socket.getaddrinfo('api.example.com', 443)\n" +
                         FIRST_WORDS, "web.example.com:22",
                         policy=SHARED % answers, options=DIRECT)
    if answers == "synthetic":
        assert got.out == "SSH-2.0-lab\n", got.err
    else:
        assert got.out == "ConnectionResetError\n", got.err
        assert {r["reason"] for r in got.flows(act="deny")} == {
            "name_ambiguous"}
    # Each by itself, and through the proxy by its name.
    got = as_user.python(FIRST_WORDS, "web.example.com:22",
                         policy=SHARED % answers, options=DIRECT)
    assert got.out == "SSH-2.0-lab\n", got.err
    got = as_user.python(r"""
import socket
for name in ("api.example.com", "web.example.com"):
    socket.getaddrinfo(name, 443)
s = socket.create_connection(("127.0.0.1", 3128), 15)
s.sendall(b"CONNECT web.example.com:22 HTTP/1.1\r\n\r\n")
got = b""
while b"SSH-2.0-lab" not in got:
    part = s.recv(100)
    if not part:
        break
    got += part
print(got)
""", policy=SHARED % answers)
    assert "SSH-2.0-lab" in got.out, got.err


def test_many_addresses_are_cut_then_whole_and_all_known(as_user):
    # DNS-10
    got = as_user.sh("dig +time=5 +tries=1 +noedns +ignore many.example.com;"
                     "dig +time=5 +tries=1 +noedns many.example.com;"
                     "dig +time=5 +tries=1 +tcp many.example.com;"
                     "curl -sS --resolve many.example.com:80:203.0.113.159"
                     " http://many.example.com/last", policy=REAL,
                     options=DIRECT)
    assert got.out.count(" tc") == 1, got.out
    assert got.out.count("ANSWER: 60,") == 2
    assert "lab GET /last host=many.example.com\n" in got.out
    assert got.flows(ev="flow_open")[0]["dst_ip"] == "203.0.113.159"


def test_a_name_that_moves_inside_is_not_followed(as_user, lab):
    # The answer is one address; by the time of the connection the name has
    # another, which must never be dialled.
    before = len(lab.origin_seen())
    got = as_user.python(r"""
import socket
addr = socket.gethostbyname("moves.example.com")
for i in range(3):
    s = socket.create_connection((addr, 80), 15)
    s.sendall(b"GET /%d HTTP/1.1\r\nHost: moves.example.com\r\n"
              b"Connection: close\r\n\r\n" % i)
    print(s.recv(100).split()[1].decode())
    s.close()
try:
    print(socket.gethostbyname("moves.example.com"))
except socket.gaierror:
    print("gone")
""", policy=REAL, options=DIRECT)
    assert got.out.split() == ["200", "200", "200", "gone"], got.err
    assert {c["addr"].replace("::ffff:", "")
            for c in lab.origin_seen(before)} == {names.WEB_V4}
    assert {r["dst_ip"] for r in got.flows(ev="flow_open")} == {names.WEB_V4}


def test_programs_connecting_right_behind_the_answer_are_never_refused(as_user):
    # DNS-32
    got = as_user.python(r"""
import socket
bad = 0
for i in range(300):
    addr = socket.gethostbyname("web.example.com")
    s = socket.create_connection((addr, 80), 15)
    s.sendall(b"GET / HTTP/1.1\r\nHost: web.example.com\r\n"
              b"Connection: close\r\n\r\n")
    bad += not s.recv(100).startswith(b"HTTP/1.1 200")
    s.close()
print(bad)
""", policy=REAL, options=DIRECT)
    assert got.out == "0\n", got.err


def test_an_address_that_was_never_given_means_nothing(as_user, lab):
    # ADDR-12, ADDR-18: the same address, before and after the name.
    before = len(lab.origin_seen())
    script = r"""
import socket, sys
def connect(authority):
    s = socket.create_connection(("127.0.0.1", 3128), 15)
    s.sendall(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n"
               % (authority, authority)).encode())
    print(s.recv(4096).split(b"\r\n")[0].decode())
connect("203.0.113.10:443")
socket.getaddrinfo("web.example.com", 443)
connect("203.0.113.10:443")
connect("203.0.113.10:22")
connect("[2001:db8:3::10]:443")
"""
    got = as_user.python(script, policy=REAL)
    assert got.out.splitlines() == [
        "HTTP/1.1 403 address_documentation", "HTTP/1.1 200 OK",
        "HTTP/1.1 403 port_not_allowed", "HTTP/1.1 200 OK"], got.err
    opened = got.flows(ev="flow_open")
    assert [(r["host"], r["dst_ip"]) for r in opened] == [
        ("web.example.com", names.WEB_V4), ("web.example.com", names.WEB_V6)]
    assert {r["dns"] for r in opened} <= {r["id"] for r in got.dns()}
    got = as_user.python(FIRST_WORDS, names.WEB_V4 + ":22", policy=REAL,
                         options=DIRECT)
    assert got.out == "ConnectionResetError\n"
    assert lab.origin_seen(before) == []


def test_a_dead_address_of_a_name_is_followed_by_its_others(as_user):
    got = as_user.curl("http://fallback.example.com/x",
                       "--resolve", "fallback.example.com:80:" +
                       names.CLOSED_V4, policy=REAL, options=DIRECT)
    assert got.out == "lab GET /x host=fallback.example.com\n", got.err


def test_another_way_to_answer_is_taken_on_by_a_reload(as_user, lab):
    # What was given so far stays what it was.
    process = as_user.start("sh", "-c", """
        while read -r go; do
            addr=$(getent ahostsv4 web.example.com | head -n 1 | cut -d' ' -f1)
            echo $addr
            for a in $addr $old; do
                curl -sS --resolve web.example.com:80:$a http://web.example.com/
            done
            old="$old $addr"
        done""", policy=REAL, options=DIRECT, text=True, bufsize=1)
    try:
        process.stdin.write("go\n")
        assert process.stdout.readline().strip() == names.WEB_V4
        assert process.stdout.readline().startswith("lab GET")
        with open(process.records_path, encoding="utf-8") as log:
            run = json.loads(log.readline())["run"]
        path = os.path.join(lab.dir, "synthetic.ini")
        with open(path, "w", encoding="ascii") as out:
            out.write(POLICY)
        lab.host.run([as_user.program, "reload", "--run", run, "--policy",
                      path], uid=as_user.uid, env=as_user.env(), check=True,
                     stdout=subprocess.DEVNULL)
        process.stdin.write("go\n")
        assert process.stdout.readline().startswith("198.1")
        for _ in range(2):
            assert process.stdout.readline().startswith("lab GET")
    finally:
        process.communicate(timeout=60)
    assert process.returncode == 0
