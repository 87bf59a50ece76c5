#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever our parser takes for a request, h11 takes for the same request.

Cases are made from good requests by random edits, always the same ones. What
we accept, an independent strict parser must accept too, with the same method,
target, framing and body: then no hop behind us can see another request in it.
What we refuse is counted only: we are the stricter one.
"""
import os
import random
import subprocess
import sys

try:
    import h11
except ImportError:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", __file__])
    print("1..0 # SKIP python3-h11 is not installed")
    sys.exit(0)

SEED = 9112
CASES = int(os.environ.get("PENSTOCK_CASES", 6000))    # make stress
HOST = b"Host: a.example.com\r\n"
GOOD = [
    b"GET http://a.example.com/x?y HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET / HTTP/1.0\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n",
    b"PUT / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello",
    b"PUT / HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\n\r\n",
    b"POST /a HTTP/1.1\r\n" + HOST +
    b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"POST /a HTTP/1.1\r\n" + HOST +
    b"Transfer-Encoding: Chunked\r\nX-A:  b \r\n\r\n"
    b"A;x=\"y\"\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\n",
    b"CONNECT a.example.com:443 HTTP/1.1\r\nHost: a.example.com:443\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST +
    b"Connection: close, X-B\r\nX-B: 1\r\nCookie: a=b\r\nUpgrade: x\r\n\r\n",
]
PIECES = [
    b"\r", b"\n", b"\r\n", b" ", b"\t", b":", b",", b";", b"\0", b"\x0b",
    b"\x7f", b"\x80", b"\xff", b"0", b"1", b"f", b"A", b"%", b"#", b"\\", b"@",
    b"Content-Length: 5\r\n", b"Content-Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n",
    b"Host: b.example.com\r\n", b"X: y\r\n", b" folded\r\n", b"chunked",
    b"Expect: 100-continue\r\n", b"HTTP/1.0", b"HTTP/1.1", b"HTTP/0.9",
    b"\r\n\r\n", b"0\r\n\r\n", b"GET / HTTP/1.1\r\n",
]


def edit(rnd, data):
    for _ in range(rnd.choice((0, 1, 1, 1, 2, 2, 3))):
        at = rnd.randrange(len(data) + 1)
        kind = rnd.randrange(4)
        if kind == 0:
            data = data[:at] + rnd.choice(PIECES) + data[at:]
        elif kind == 1:
            data = data[:at] + data[at + rnd.randrange(1, 4):]
        elif kind == 2:
            data = data[:at] + bytes([rnd.randrange(256)]) + data[at + 1:]
        else:
            lines = data.split(b"\r\n")
            line = rnd.choice(lines)
            lines.insert(rnd.randrange(len(lines)), line)
            data = b"\r\n".join(lines)
        if not data:
            data = b"\r\n"
    return data


def ours(cases):
    program = os.path.join(os.environ["top_builddir"], "tests/unit/http1_dump")
    sent = b"".join(b"%d\n%s" % (len(c), c) for c in cases)
    done = subprocess.run([program], input=sent, stdout=subprocess.PIPE,
                          check=True)
    answers = done.stdout.split(b"\n")[:-1]
    assert len(answers) == len(cases), (len(answers), len(cases))
    return answers


def theirs(data):
    """The same words as http1_dump's, by h11."""
    if data.startswith(b"\r\n"):    # RFC 9112 2.2: to be ignored; h11 does not
        data = data[2:]
    head = data.split(b"\r\n\r\n")[0].lower()
    if data.startswith(b"CONNECT ") and b"\nhost:" not in head:
        # Ours lets an old CONNECT be without Host; its target says all.
        data = data.replace(b"\r\n", b"\r\nHost: x\r\n", 1)
    conn = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    conn.receive_data(data)
    request = conn.next_event()
    if not isinstance(request, h11.Request):
        return b"more"
    fields = dict(request.headers)
    framing = b"none"
    if b"transfer-encoding" in fields:
        framing = b"chunked"
    elif int(fields.get(b"content-length", b"0")) > 0:
        framing = b"length"
    body = b""
    while True:
        event = conn.next_event()
        if isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            shown = b"=" + body.hex().encode()
            break
        else:
            shown = b"-"
            break
    return b" ".join((b"ok", request.method, request.target, framing, shown))


def main():
    rnd = random.Random(SEED)
    cases = list(GOOD)
    while len(cases) < CASES:
        cases.append(edit(rnd, rnd.choice(GOOD)))
    accepted, wrong = 0, []
    for case, answer in zip(cases, ours(cases)):
        if not answer.startswith(b"ok "):
            continue
        accepted += 1
        try:
            other = theirs(case)
        except h11.RemoteProtocolError as err:
            other = b"refused: " + str(err).encode()
        if answer.endswith(b" -"):
            # We took the head and refused its body: only the head counts,
            # unless h11 found fault with the body too.
            if other.startswith(b"refused: "):
                continue
            answer = answer.rpartition(b" ")[0]
            other = other.rpartition(b" ")[0]
        if other != answer:
            wrong.append((case, answer, other))
    print("1..2")
    for case, answer, other in wrong[:5]:
        print("# %r\n#   ours   %r\n#   theirs %r" % (case, answer, other))
    print("%s 1 - each of %d accepted requests is read alike by h11"
          % ("not ok" if wrong else "ok", accepted))
    # A test that accepts nothing, or everything, would show nothing.
    fair = len(GOOD) < accepted < len(cases) * 9 // 10
    print("%s 2 - of %d cases %d were refused"
          % ("ok" if fair else "not ok", len(cases), len(cases) - accepted))
    return 1 if wrong or not fair else 0


if __name__ == "__main__":
    sys.exit(main())
