# SPDX-License-Identifier: Apache-2.0
"""The explicit proxy against hostile bytes."""
import pytest

RAW = r"""
import socket, sys
data = sys.argv[1].encode("latin-1").decode("unicode_escape").encode("latin-1")
s = socket.create_connection(("127.0.0.1", 3128), 20)
s.sendall(data)
s.settimeout(20)
got = b""
try:
    while part := s.recv(65536):
        got += part
        if len(sys.argv) > 2 and sys.argv[2].encode() in got:
            break
except ConnectionError:
    got += b"<reset>"
sys.stdout.buffer.write(got)
"""


def raw(penstock, data, *until, **kwargs):
    """What came back until @until or the end, which must have come."""
    got = penstock.python(RAW, data, *until, text=False, **kwargs)
    assert got.code == 0, got.err
    return got


HEAD = r"Host: web.example.com\r\n"


@pytest.mark.parametrize("request_text", [
    # HTTP-01, HTTP-03, HTTP-04, HTTP-07, HTTP-09
    r"POST http://web.example.com/ HTTP/1.1\r\n" + HEAD +
    r"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    r"POST http://web.example.com/ HTTP/1.1\r\n" + HEAD +
    r"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    r"POST http://web.example.com/ HTTP/1.1\r\n" + HEAD +
    r"Content-Length: +4\r\n\r\nabcd",
    r"POST http://web.example.com/ HTTP/1.1\r\n" + HEAD +
    r"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    r"POST http://web.example.com/ HTTP/1.1\r\n" + HEAD +
    r"Content-Length : 4\r\n\r\nabcd",
    r"GET http://web.example.com/ HTTP/1.1\r\n" + HEAD + r"X: a\r\n b\r\n\r\n",
    r"GET http://web.example.com/ HTTP/1.1\nHost: web.example.com\n\n",
    r"GET http://web.example.com/ HTTP/1.1\r\n" + HEAD + r"X: a\x00b\r\n\r\n",
    r"GET http://web.example.com/ HTTP/1.1\r\n" + HEAD + HEAD + r"\r\n",
    # HOST-10, HOST-11, HOST-14, HOST-17, HTTP-28, HTTP-29
    r"GET http://web.example.com/ HTTP/1.1\r\nHost: denied.example.net\r\n\r\n",
    r"GET http://web.example.com@denied.example.net/ HTTP/1.1\r\n" + HEAD + r"\r\n",
    r"GET http://web.example.com/#x HTTP/1.1\r\n" + HEAD + r"\r\n",
    r"GET http://web\xef\xbc\x8eexample.com/ HTTP/1.1\r\n" + HEAD + r"\r\n",
    r"GET http://%77eb.example.com/ HTTP/1.1\r\n" + HEAD + r"\r\n",
    r"GET / HTTP/1.1\r\n" + HEAD + r"\r\n",
    r"GET https://web.example.com/ HTTP/1.1\r\n" + HEAD + r"\r\n",
    # TUN-05
    r"CONNECT web.example.com:443 HTTP/1.1\r\nHost: web.example.com:443\r\n"
    r"Content-Length: 5\r\n\r\nhello",
    r"GET /\r\n",                                           # HTTP-30
])
def test_every_ambiguity_is_400_and_nothing_is_forwarded(
        as_user, lab, request_text):
    before = len(lab.origin_seen())
    got = raw(as_user, request_text)
    assert got.out.startswith(b"HTTP/1.1 400 "), got.out
    assert b'{"error":"' in got.out
    assert lab.origin_seen(before) == []
    denied = got.flows(act="deny")
    assert len(denied) == 1, denied                         # LOG-07


def test_a_tls_hello_on_the_plain_port_has_its_own_word(as_user):
    # HTTP-30
    got = raw(as_user, r"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    assert got.flows(act="deny")[0]["reason"] == "tls_on_plain_port"
    got = raw(as_user, r"GET http://web.example.com/ HTTP/3.0\r\n\r\n")
    assert got.out.startswith(b"HTTP/1.1 505 "), got.out


def test_bytes_behind_the_connect_head_reach_the_origin(as_user):
    # TUN-04, TUN-15: plain HTTP in a tunnel to port 80, in one segment.
    got = raw(as_user, r"CONNECT web.example.com:80 HTTP/1.1\r\n"
              r"Host: web.example.com:80\r\n\r\n"
              r"GET /inside HTTP/1.1\r\n" + HEAD + r"Connection: close\r\n\r\n")
    head, _, rest = got.out.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert rest.startswith(b"HTTP/1.1 200 ")
    assert rest.endswith(b"lab GET /inside host=web.example.com\n")


def test_requests_inside_a_tunnel_to_port_80_are_judged(as_user, lab):
    # TUN-15, HTTP-25
    before = len(lab.origin_seen())
    got = raw(as_user, r"CONNECT web.example.com:80 HTTP/1.1\r\n"
              r"Host: web.example.com:80\r\n\r\n"
              r"GET / HTTP/1.1\r\nHost: denied.example.net\r\n\r\n",
              '"error":')
    head, _, rest = got.out.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), got.err
    assert rest.split()[1] in (b"400", b"403") and b"host_mismatch" in rest
    assert [s for s in lab.origin_seen(before) if s["event"] == "request"] == []


def test_a_tunnel_whose_hello_names_another_host_is_cut(as_user, lab):
    # LOG-08: the record of the flow tells the real outcome.
    before = len(lab.origin_seen())
    got = as_user.sh("openssl s_client -proxy 127.0.0.1:3128 -connect "
                     "shared.example.com:443 -servername shared.example.net "
                     "</dev/null 2>&1 | grep -i alert")
    assert "access denied" in got.out
    assert "name_mismatch" in {r["reason"] for r in got.flows()}
    assert [s for s in lab.origin_seen(before)
            if s["sni"] == "shared.example.net"] == []


def test_proxy_fields_and_hop_by_hop_fields_stay_here(as_user):
    # HTTP-13, HTTP-14, HTTP-15, HTTP-31
    got = raw(as_user, r"GET http://web.example.com/head HTTP/1.1\r\n" + HEAD +
              r"Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\n"
              r"Keep-Alive: 5\r\nX-Named: gone\r\nx-Kept: 1\r\nX-kept: 2\r\n"
              r"Connection: close, X-Named, Host\r\n\r\n")
    sent = got.out.partition(b"\r\n\r\n")[2]
    assert sent.startswith(b"GET /head HTTP/1.1\r\n"), got.out
    for absent in (b"proxy-", b"keep-alive", b"x-named"):
        assert absent not in sent.lower()
    assert b"x-Kept: 1\r\nX-kept: 2\r\n" in sent
    assert b"Host: web.example.com\r\n" in sent


def test_outage_and_policy_never_look_alike(as_user):
    # TUN-02
    got = as_user.sh("""
        for h in closed.example.com nothere.example.com denied.example.net \
                 metadata.example.com; do
            curl -sS -o /dev/null -w '%{http_code}\n' http://$h/
        done""")
    assert got.out.split() == ["502", "502", "403", "403"]
    # Each request has one record with its outcome; the two that were refused
    # by policy have act deny, the two that failed outside have act error.
    assert [(r["act"], r["reason"]) for r in got.flows(ev="http")] == [
        ("error", "connect_refused"), ("error", "dns_nxdomain"),
        ("deny", "host_not_allowed"), ("deny", "address_metadata")]


def test_truncated_answers_are_not_ended_cleanly(as_user):
    # HTTP-23
    got = as_user.curl("http://web.example.com/truncated")
    assert got.code == 18, (got.code, got.err)


def test_an_unasked_101_is_not_a_tunnel(as_user):
    # HTTP-19
    got = as_user.curl("-o", "/dev/null", "-w", "%{http_code}",
                       "http://web.example.com/unasked-101")
    assert got.out == "502"


def test_bodies_in_every_framing_arrive_whole(as_user):
    # HTTP-05, HTTP-17, HTTP-20, HTTP-22
    got = as_user.sh("""
        head -c 3000000 /dev/zero > up.bin
        want=$(sha256sum < up.bin | cut -d' ' -f1)
        U=http://web.example.com
        [ "$(curl -sS --data-binary @up.bin $U/sha256)" = $want ] && echo length
        [ "$(curl -sS -T up.bin -H 'Transfer-Encoding: chunked' $U/sha256)" = $want ] \
            && echo chunked
        [ "$(curl -sS -H 'Expect: 100-continue' -T up.bin $U/sha256)" = $want ] \
            && echo expect
        curl -sS $U/chunked; echo
        curl -sS $U/until-close; echo
        curl -sS -o /dev/null -w '%{size_download}\n' $U/bytes/5000000
        curl -sS -I $U/bytes/77 | grep -i content-length
        curl -sS -o /dev/null -w '%{http_code} ' $U/204 -o /dev/null $U/304 ; echo""")
    assert got.out.replace("\r", "").split("\n") == [
        "length", "chunked", "expect", "hello", "to the end", "5000000",
        "Content-Length: 77", "204 304 ", ""], got.out + got.err


@pytest.mark.parametrize("options", [[], ["--no-proxy-env"]])
def test_a_stream_arrives_as_it_is_sent(as_user, options):
    # TUN-18: the second half is sent only when the first has been read.
    got = as_user.python(r"""
import urllib.request as u
held = u.urlopen("http://web.example.com/held", timeout=20)
print(held.read(5).decode())
print(u.urlopen("http://web.example.com/release", timeout=20).read().decode(),
      end="")
print(held.read().decode())
""", options=options)
    assert got.out.split() == ["first", "released", "last"], got.err


def test_an_early_refusal_of_an_upload_is_delivered(as_user):
    # HTTP-35
    got = as_user.sh("head -c 20000000 /dev/zero | curl -sS -o /dev/null -w "
                     "'%{http_code}' -T - http://web.example.com/early-413")
    assert got.out == "413", got.err


def test_many_requests_share_one_connection_to_the_proxy(as_user):
    # CLI-30
    got = as_user.sh("curl -sS -o /dev/null -w '%{num_connects}\n' "
                     "'http://web.example.com/[1-20]'")
    assert sum(map(int, got.out.split())) == 1


def test_websockets_pass_through_the_forward_proxy(as_user):
    # TUN-17, CLI-23
    script = r"""
import socket, sys
host, port, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
s = socket.create_connection((host, port), 20)
s.sendall(("GET %s HTTP/1.1\r\nHost: web.example.com\r\nUpgrade: websocket\r\n"
           "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" % target).encode())
f = s.makefile("rb")
print(f.readline().decode().split()[1])
while f.readline().strip():
    pass
print(f.read(7)[2:].decode())
s.sendall(b"\x81\x85\0\0\0\0again")
print(f.read(7)[2:].decode())
"""
    got = as_user.python(script, "127.0.0.1", "3128",
                         "http://web.example.com/ws")
    assert got.out.split() == ["101", "hello", "again"], got.err
    got = as_user.python(script, "web.example.com", "80", "/ws",
                         options=["--no-proxy-env"])
    assert got.out.split() == ["101", "hello", "again"], got.err


def test_500_tunnels_one_after_the_other_and_64_at_once(as_user):
    # TUN-08
    got = as_user.python(r"""
import concurrent.futures, socket
def once(_):
    s = socket.create_connection(("127.0.0.1", 3128), 30)
    s.sendall(b"CONNECT web.example.com:80 HTTP/1.1\r\n\r\n"
              b"GET / HTTP/1.1\r\nHost: web.example.com\r\nConnection: close\r\n\r\n")
    data = b""
    while part := s.recv(65536):
        data += part
    s.close()
    return data.count(b" 200 ") == 2
ok = sum(once(i) for i in range(500))
with concurrent.futures.ThreadPoolExecutor(64) as pool:
    ok += sum(pool.map(once, range(256)))
print(ok)
""")
    assert got.out == "756\n", got.err
