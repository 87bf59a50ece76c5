# SPDX-License-Identifier: Apache-2.0
"""Programs that know nothing of a proxy: the same policy, by name."""
from conftest import ADDRESSES, POLICY, names

DIRECT = ["--no-proxy-env"]

TCP = POLICY + """
[allow servers]
hosts     = git.example.com
addresses = %s
ports     = 22 5432 7
reason    = server-first protocols
owner     = tests
""" % ADDRESSES


def test_a_server_that_speaks_first_is_heard_at_once(as_user):
    # TUN-14
    got = as_user.python(r"""
import socket
for port in (22, 5432):
    s = socket.create_connection(("git.example.com", port), 15)
    print(s.recv(100).decode().strip())
    s.sendall(b"back\n")
    print(s.recv(100).decode().strip())
""", policy=TCP, options=DIRECT)
    assert got.out.split() == ["SSH-2.0-lab", "back"] * 2, got.err
    assert {r["dst_port"] for r in got.flows(ev="flow_open")} == {22, 5432}


def test_half_close_is_passed_on_both_ways(as_user):
    # TUN-10
    script = r"""
import socket
s = socket.create_connection(("git.example.com", 7), 15)
s.sendall(b"x" * 100000)
s.shutdown(socket.SHUT_WR)
total = 0
while part := s.recv(65536):
    total += len(part)
print(total)
"""
    got = as_user.python(script, policy=TCP, options=DIRECT)
    assert got.out == "100000\n", got.err
    closed = got.flows(ev="flow_close")[0]
    assert (closed["bytes_up"], closed["bytes_down"]) == (100000, 100000)


def test_another_sni_towards_an_allowed_address_is_refused(as_user, lab):
    # ADDR-18: the name that the program resolved is the name it must say.
    before = len(lab.origin_seen())
    got = as_user.sh("""
        addr=$(getent ahostsv4 shared.example.com | head -n 1 | cut -d' ' -f1)
        openssl s_client -connect $addr:443 -servername shared.example.net \
            </dev/null 2>&1 | grep -i alert
        openssl s_client -connect $addr:443 -noservername </dev/null 2>&1 |
            grep -i alert
        openssl s_client -connect $addr:443 -servername shared.example.com \
            </dev/null 2>&1 | grep -c 'lab origin'""", options=DIRECT)
    assert got.out.count("access denied") == 2, got.out
    assert got.out.splitlines()[-1] != "0"
    assert {r["reason"] for r in got.flows(act="deny")} == {"name_mismatch",
                                                            "sni_missing"}
    assert {s["sni"] for s in lab.origin_seen(before)} <= {
        "shared.example.com", None}


def test_a_lying_sni_towards_an_address_of_its_choice_dials_ours(as_user, lab):
    # The asked address is the attacker's; the name is allowed: we resolve it
    # ourselves and dial what we found, never what was asked.
    before = len(lab.origin_seen())
    got = as_user.sh("""
        curl -sS --resolve web.example.com:443:203.0.113.66 \
            https://web.example.com/mine
        curl -sS --resolve web.example.com:80:203.0.113.66 \
            http://web.example.com/mine80
        curl -sS --resolve denied.example.net:443:203.0.113.10 \
            https://denied.example.net/""", options=DIRECT)
    assert "lab GET /mine host=web.example.com" in got.out, got.err
    assert "lab GET /mine80 host=web.example.com" in got.out
    assert ("denied.example.net", 443, "host_not_allowed") in got.denied()
    assert {s["addr"] for s in lab.origin_seen(before)} <= {names.WEB_V4,
                                                            names.WEB_V6}


def test_a_direct_address_is_refused_without_an_address_rule(as_user, lab):
    # ADDR-12, ADDR-18
    before = len(lab.origin_seen())
    got = as_user.sh("curl -sSk https://%s/; curl -sS http://%s/"
                     % (names.WEB_V4, names.WEB_V4), options=DIRECT)
    assert "lab GET" not in got.out
    assert lab.origin_seen(before) == []
    assert len(got.flows(act="deny")) >= 2


def test_each_request_on_one_connection_is_judged(as_user, lab):
    # HTTP-25: explicit proxy and transparent alike.
    script = r"""
import socket, sys
addr = sys.argv[1]
if addr != "127.0.0.1":
    addr = socket.getaddrinfo(addr, 80, socket.AF_INET)[0][4][0]
s = socket.create_connection((addr, int(sys.argv[2])), 15)
f = s.makefile("rb")
for host in ("web.example.com", "denied.example.net", "web.example.com"):
    target = ("http://%s" % host if sys.argv[2] == "3128" else "") + "/" + host
    s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, host)).encode())
    status = f.readline().decode().strip()
    length = 0
    while (line := f.readline().strip()):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    f.read(length)
    print(status or "closed")
    if not status:
        break
"""
    before = len(lab.origin_seen())
    got = as_user.python(script, "127.0.0.1", "3128")
    assert [line.split()[1] for line in got.out.splitlines()] == [
        "200", "403", "200"], got.out + got.err
    got = as_user.python(script, "web.example.com", "80", options=DIRECT)
    lines = got.out.splitlines()
    assert lines[0].split()[1] == "200"
    assert lines[1].split()[1] in ("403", "400")
    hosts = [dict(s["fields"])["Host"] for s in lab.origin_seen(before)
             if s["event"] == "request"]
    assert set(hosts) == {"web.example.com"}


def test_the_port_in_host_is_the_port_of_the_connection(as_user, lab):
    # HOST-16
    before = len(lab.origin_seen())
    got = as_user.python(r"""
import socket
for port in ("", ":80", ":8080", ":"):
    s = socket.create_connection(("web.example.com", 80), 15)
    s.sendall(b"GET / HTTP/1.1\r\nHost: web.example.com%s\r\n"
              b"Connection: close\r\n\r\n" % port.encode())
    print(s.recv(4096).split()[1].decode())
""", options=DIRECT)
    said = got.out.split()
    assert said[:2] == ["200", "200"], got.err
    assert said[2] in ("400", "403")
    assert "host_mismatch" in {r["reason"] for r in got.flows()}
    assert {s["port"] for s in lab.origin_seen(before)} == {80}


def test_plain_bytes_on_a_tls_port_are_refused(as_user, lab):
    # TLS-08
    before = len(lab.origin_seen())
    got = as_user.python(r"""
import socket
for first in (b"SSH-2.0-x\r\n", b"GET / HTTP/1.1\r\nHost: web.example.com\r\n\r\n",
              bytes(range(200, 240))):
    s = socket.create_connection(("web.example.com", 443), 15)
    s.sendall(first)
    try:
        print(len(s.recv(4096)) >= 0)
    except ConnectionError:
        print("reset")
""", options=DIRECT)
    assert len(got.out.split()) == 3, got.err
    assert [r["reason"] for r in got.flows(act="deny")] == [
        "protocol_mismatch"] * 3
    assert lab.origin_seen(before) == []


def test_a_refused_tls_client_reads_access_denied(penstock):
    got = penstock.curl("https://denied.example.net/",
                        "--resolve", "denied.example.net:443:203.0.113.20",
                        options=DIRECT)
    assert "access denied" in got.err
    assert ("denied.example.net", 443, "host_not_allowed") in got.denied()


def test_a_client_hello_in_single_bytes_is_still_one_name(as_user):
    # TLS-04
    got = as_user.python(r"""
import socket, ssl
raw = socket.create_connection(("web.example.com", 443), 15)
raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
context = ssl.create_default_context()
inside, outside = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = context.wrap_bio(inside, outside, server_hostname="web.example.com")
first = True
while True:
    try:
        tls.do_handshake()
        break
    except ssl.SSLWantReadError:
        data = outside.read()
        if first:
            for byte in data:
                raw.send(bytes([byte]))
            first = False
        elif data:
            raw.sendall(data)
        inside.write(raw.recv(65536))
print(tls.version())
""", options=DIRECT)
    assert got.out.startswith("TLSv1."), got.err


def test_localhost_servers_of_the_command_just_work(penstock):
    # SBX-23
    got = penstock.sh("""
        echo yes > served.txt
        /usr/bin/python3 -m http.server 8000 --bind :: >/dev/null 2>&1 &
        for i in 1 2 3 4 5 6 7 8 9 10; do
            curl -s -o /dev/null http://localhost:8000/ && break
            sleep 0.1
        done
        curl -sS http://localhost:8000/served.txt
        curl -sS http://127.0.0.1:8000/served.txt
        curl -sS 'http://[::1]:8000/served.txt'
        /usr/bin/python3 -c 'import urllib.request as u
print(u.urlopen("http://localhost:8000/served.txt").read().decode(), end="")'
        """)
    assert got.out == "yes\n" * 4, got.err
    assert got.flows() == []
