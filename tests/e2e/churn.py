# SPDX-License-Identifier: Apache-2.0
"""churn.py WHERE SECONDS PAUSE - everything that a program can do, again and again.

Run by soak.py: in a sandbox (WHERE is "sandbox"), and on the host as a client of
the service's listener ("listener").  Each kind of work has a thread and rests for
PAUSE between two; what was done is told in a line of JSON a second, and what
ought to have been otherwise, at the end.
"""
import http.client
import json
import os
import random
import socket
import struct
import sys
import threading
import time

WHERE, SECONDS, PAUSE = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
END = time.monotonic() + SECONDS
OVER = threading.Event()
HTTP, SOCKS = ("127.0.0.1", 3128), ("127.0.0.1", 1080)
done, wrong = {}, []


def to(address):
    return socket.create_connection(address, 60)


def head_of(s):
    """Up to the blank line, and not a byte of what is behind it."""
    head = b""
    while b"\r\n\r\n" not in head:
        seen = head + s.recv(4096, socket.MSG_PEEK)
        if seen == head:
            break
        end = seen.find(b"\r\n\r\n")
        n = (end + 4 if end >= 0 else len(seen)) - len(head)
        head += s.recv(n)
    return head


def connect(target, early=b""):
    s = to(HTTP)
    s.sendall(b"CONNECT " + target + b" HTTP/1.1\r\n\r\n" + early)
    return s


def opened(target, early=b""):
    s = connect(target, early)
    head = head_of(s)
    if b" 200 " not in head[:16]:
        raise ValueError("%r: %r" % (target, head[:80]))
    return s


def socks(host, port):
    s = to(SOCKS)
    s.sendall(b"\5\1\0" + b"\5\1\0\3" + bytes([len(host)]) + host
              + struct.pack(">H", port))
    got = b""
    while len(got) < 12:
        part = s.recv(12 - len(got))
        if not part:
            break
        got += part
    return s, got[3] if len(got) > 3 else None


def read_all(s):
    n = 0
    while part := s.recv(65536):
        n += len(part)
    return n


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def expect(what, true):
    if not true:
        raise ValueError(what)


def echo(s, n):
    """A half-close with all of it on its way."""
    with s:
        s.sendall(b"x" * n)
        s.shutdown(socket.SHUT_WR)
        expect("echo", read_all(s) == n)


# --- each kind of work ---------------------------------------------------------

def tunnel():
    echo(opened(b"git.example.com:7"), random.choice((0, 1, 3000, 300000)))


def tunnel_by_socks():
    s, reply = socks(b"git.example.com", 7)
    expect("socks", reply == 0)
    echo(s, random.choice((1, 3000, 70000)))


def tunnel_straight():
    echo(to(("git.example.com", 7)), random.choice((1, 3000, 70000)))


def server_first():
    with opened(b"git.example.com:22") as s:
        expect("banner", s.recv(100).startswith(b"SSH-"))


def server_ends():
    with opened(b"git.example.com:19") as s:
        s.sendall(b"5000\n")
        expect("zeros", read_all(s) == 5000)


def http_in_tunnel():
    with opened(b"web.example.com:80", b"GET /bytes/20000 HTTP/1.1\r\n"
                b"Host: web.example.com\r\nConnection: close\r\n\r\n") as s:
        expect("answer", read_all(s) > 20000)


def client_resets():
    s = opened(b"git.example.com:19", b"5000000\n")
    expect("zeros", s.recv(1000))
    reset(s)


def client_resets_early():
    reset(connect(b"git.example.com:7", b"x" * random.randrange(100)))


def request():
    c = http.client.HTTPConnection(*HTTP, timeout=60)
    for i in range(random.randrange(1, 6)):
        body = b"b" * random.choice((0, 10, 50000))
        c.request("POST" if body else "GET",
                  "http://web.example.com/sha256?%d" % i, body)
        r = c.getresponse()
        expect("request", r.status == 200 and r.read())
    c.close()


def request_straight():
    c = http.client.HTTPConnection("web.example.com", 80, timeout=60)
    for path in ("/chunked", "/204", "/bytes/100000"):
        c.request("GET", path)
        r = c.getresponse()
        expect("answer", r.status in (200, 204))
        r.read()
    c.close()


def request_left():
    with to(HTTP) as s:
        s.sendall(b"GET http://web.example.com/bytes/3000000 HTTP/1.1\r\n"
                  b"Host: web.example.com\r\n\r\n")
        expect("head", s.recv(100).startswith(b"HTTP/1.1 200"))


def websocket():
    with to(HTTP) as s:
        s.sendall(b"GET http://web.example.com/ws HTTP/1.1\r\n"
                  b"Host: web.example.com\r\nConnection: Upgrade\r\n"
                  b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                  b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        expect("101", b" 101 " in head_of(s)[:20])
        s.sendall(b"\x88\x80abcd")


def refused():
    with connect(b"denied%d.example.net:443" % random.randrange(1000)) as s:
        expect("403", b" 403 " in head_of(s)[:20])
    s, reply = socks(b"denied.example.net", 80)
    s.close()
    expect("socks refused", reply == 2)


def refused_request():
    c = http.client.HTTPConnection(*HTTP, timeout=60)
    for host in ("denied.example.net", "private.example.com"):
        c.request("GET", "http://%s/" % host)
        r = c.getresponse()
        expect("403", r.status == 403 and r.read())
    c.close()


def outage():
    with connect(b"closed.example.com:443") as s:
        expect("502", b" 502 " in head_of(s)[:20])


def metadata():
    with socket.socket() as s:
        s.settimeout(60)
        try:
            s.connect(("169.254.169.254", 80))
            s.sendall(b"GET / HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n")
            expect("metadata", b" 403 " in head_of(s)[:20])
        except OSError:
            pass


def malformed():
    with to(random.choice((HTTP, SOCKS))) as s:
        try:
            s.sendall(random.randbytes(200) + b"\r\n\r\n")
            s.recv(65536)
        except OSError:
            pass


def question(name, kind=1):
    return (struct.pack(">HHHHHH", random.randrange(65536), 0x100, 1, 0, 0, 0)
            + b"".join(bytes([len(x)]) + x for x in name.split(b"."))
            + b"\0" + struct.pack(">HH", kind, 1))


def names():
    for name in ("web.example.com", "denied.example.net", "v6.example.com"):
        try:
            socket.getaddrinfo(name, 443)
        except OSError:
            pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(60)
        s.connect(("127.0.0.1", 53))
        for kind in (1, 28, 16, 65):
            s.send(question(b"web.example.com", kind))
            expect("answer", len(s.recv(512)) >= 12)


def names_by_tcp():
    with to(("127.0.0.1", 53)) as s:
        for name in (b"git.example.com", b"denied.example.net"):
            text = question(name)
            s.sendall(struct.pack(">H", len(text)) + text)
            expect("length", len(s.recv(2)) == 2)
            expect("answer", len(s.recv(512)) >= 12)


def datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.sendto(b"x", ("203.0.113.10", 443))
        except OSError:
            pass


EVERYWHERE = [tunnel, tunnel_by_socks, server_first, server_ends,
              http_in_tunnel, client_resets, client_resets_early, request,
              request_left, websocket, refused, refused_request, outage,
              malformed]
IN_A_SANDBOX = [tunnel_straight, request_straight, metadata, names,
                names_by_tcp, datagram]


def worker(work):
    while time.monotonic() < END and not OVER.is_set():
        try:
            work()
        except (OSError, ValueError, http.client.HTTPException) as e:
            wrong.append("%s: %s: %s" % (work.__name__, type(e).__name__, e))
        done[work.__name__] = done.get(work.__name__, 0) + 1
        OVER.wait(PAUSE)


def main():
    kinds = EVERYWHERE + (IN_A_SANDBOX if WHERE == "sandbox" else [])
    threads = [threading.Thread(target=worker, args=(work,), daemon=True)
               for work in kinds]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        print(json.dumps({"done": sum(done.values())}), flush=True)
        OVER.wait(1)
    print(json.dumps({"done": sum(done.values()), "of_each": done,
                      "wrong": len(wrong), "first": wrong[:5]}), flush=True)
    os._exit(0)


main()
