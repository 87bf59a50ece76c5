#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the engine sends on is what two other parsers read, and what it recorded.

The public ideas of request smuggling (lengths against codings, odd lengths and
chunk sizes, odd line ends, folded and doubled fields, names that only look like
framing, targets against Host) are put together at random, always in the same
way, and said to the engine by a client, or by an origin as an answer. Then

  what origins were sent     must be, for h11 and for http_parser, exactly the
                             requests that have a record, no more and no rest,
                             but for those that the engine answered itself;
  what the client was sent   must be, for both, exactly the answers that have a
                             record, and one that was cut must not look whole.

Bodies must be the same for both. What is refused is counted only.
"""
import os
import random
import subprocess
import sys

try:
    import h11
    import httptools
except ImportError:
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", __file__])
    print("1..0 # SKIP python3-h11 or python3-httptools is not installed")
    sys.exit(0)

SEED = 444      # CWE-444
CASES = int(os.environ.get("PENSTOCK_CASES", 4000))    # make stress
EXPLICIT, PINNED = 0, 1
SMUGGLED = b"GET http://a.example.com/smuggled HTTP/1.1\r\nHost: a.example.com\r\n\r\n"

CODINGS = [
    b"chunked", b"chunked", b"Chunked", b"CHUNKED", b"chunked ", b"\tchunked",
    b"xchunked", b"chunkedx", b"chunked, identity", b"identity",
    b"identity, chunked", b"chunked, chunked", b'"chunked"', b"chunked;q=1",
    b",chunked", b"chunked,", b"\x0bchunked", b"chunked\x0b", b"\x00chunked",
    b"chunked\x00", b"gzip", b"gzip, chunked", b"", b"cow", b"trailers",
    b"chunked\r", b"chunked\r\n\tx", b"\r\n chunked", b"\xffchunked",
]
LENGTHS = [
    b"5", b"5", b"0", b"3", b"60", b"+5", b"-5", b"5 ", b"05", b"0x5", b"5,5",
    b"5, 5", b"5,6", b"5;", b"5.0", b"5e0", b"", b"1_0", b"\xd9\xa5", b"5\x00",
    b"18446744073709551621", b"4294967301", b"5\r", b"\r\n 5", b"5 5", b"\x0b5",
    b"99999999999999999999999999999999",
]
NAMES = [
    b"%s", b"%s", b"%s", b"%s ", b"%s\t", b" %s", b"\t%s", b"X: y\n%s",
    b"X: y\r%s", b"X: y\r\n %s", b"%s\x00", b"\x00%s", b"%s\x0b", b"X: y\r\n\r%s",
    b"X: y\r\r\n%s", b"(%s)", b"X%s", b"%sX", b"%s\xa0", b"\r\n%s", b"\n%s",
]
SIZES = [
    b"5", b"5", b"05", b"0005", b"5 ", b" 5", b"5\t", b"0x5", b"+5", b"-5",
    b"5;x", b"5;x=y", b'5;x="y"', b"5 ;x", b"5;x\ny", b"5;x\ry", b"5;\r",
    b'5;"\r\n"', b"5;\x00", b"5,", b"5\x00", b"", b"g", b"5h", b"\xef5",
    b"100000005", b"10000000000000005", b"0000000000000005",
    b"00000000000000005", b"fffffffffffffffb", b"5\r", b"5\n",
]
ENDS = [b"\r\n"] * 12 + [b"\n", b"\r", b"\r\r\n", b"\n\r", b"", b" \r\n",
                         b"\r\n\r\n", b"\x00\r\n", b"x\r\n"]
LASTS = [b"0\r\n\r\n"] * 4 + [
    b"0\r\nX: y\r\n\r\n", b"00\r\n\r\n", b"0\n\n", b"0\r\n\n", b"0\r\r\n\r\n",
    b"0\r\nContent-Length: 5\r\n\r\n", b"0\r\nHost: b\r\n\r\n", b"0\r\n X\r\n\r\n",
    b"0\r\n", b"", b"0;x\r\n\r\n", b"0 \r\n\r\n", b"-0\r\n\r\n",
    b"0\r\nTransfer-Encoding: chunked\r\n\r\n", b"0\r\nX : y\r\n\r\n", b"0\r\nX\r\n\r\n",
]
METHODS = [b"POST"] * 6 + [b"GET", b"PUT", b"HEAD", b"OPTIONS", b"DELETE", b"TRACE",
                           b"get", b"P\x00ST", b"PO ST", b"\tPOST", b"(POST)", b"FOO",
                           b"PATCH", b"PRI", b"connect"]
TARGETS = [b"http://a.example.com/x"] * 8 + [
    b"/x", b"http://a.example.com", b"http://a.example.com?q", b"HTTP://A.example.COM/x",
    b"http://b.example.com/x", b"http://a.example.com:80/x", b"http://a.example.com:8080/x",
    b"http://u@a.example.com/x", b"http://a.example.com/x#f", b"http://a.example.com\\@b/x",
    b"http://a.example.com/x y", b"http://a.example.com/\x80", b"http://a.example.com/%0d%0aX:1",
    b"*", b"//b.example.com/x", b"http:///x", b"http://a.example.com/\x00",
    b"http://a.example.com /x", b"a.example.com:80", b"https://a.example.com/x",
]
VERSIONS = [b"HTTP/1.1"] * 12 + [b"HTTP/1.0"] * 3 + [
    b"HTTP/1.2", b"HTTP/0.9", b"HTTP/2.0", b"HTTP/1.10", b"HTTP/01.1", b"http/1.1",
    b"HTTP/1.1 ", b" HTTP/1.1", b"HTTP/1.1\x00", b"", b"HTTP/1,1", b"HTTP/ 1.1",
]
HOSTS = [[b"Host: a.example.com"]] * 8 + [
    [], [b"Host: a.example.com", b"Host: a.example.com"], [b"Host: "],
    [b"Host: a.example.com", b"Host: b.example.com"], [b"Host: b.example.com"],
    [b"Host: a.example.com,b.example.com"], [b"Host: a.example.com:80"],
    [b"Host: u@a.example.com"], [b"Host : a.example.com"], [b"host: A.EXAMPLE.COM"],
    [b"Host: a.example.com\x00"], [b" Host: a.example.com"], [b"Host: a.example.com/x"],
]
OTHERS = [
    b"Connection: close", b"Connection: keep-alive", b"Connection: Content-Length",
    b"Connection: Transfer-Encoding, Host", b"Connection: X-A", b"X-A: 1", b"Cookie: a=b",
    b"Expect: 100-continue", b"Expect: 200-ok", b"TE: trailers", b"Trailer: X",
    b"Upgrade: websocket", b"Upgrade: h2c", b"HTTP2-Settings: x", b"Proxy-Connection: close",
    b"Keep-Alive: 5", b"X:", b"X: \xff", b"X: a\x0bb", b"Max-Forwards: 3", b"Max-Forwards: 0",
    b"Transfer_Encoding: chunked", b"Content_Length: 5", b"Via: 1.1 x", b"A" * 300 + b": y",
]
STATUS = [b"HTTP/1.1 200 OK"] * 8 + [
    b"HTTP/1.0 200 OK", b"HTTP/1.1 204 No Content", b"HTTP/1.1 304 Not Modified",
    b"HTTP/1.1 205 Reset", b"HTTP/1.1 100 Continue", b"HTTP/1.1 103 Early", b"HTTP/1.1 101 Up",
    b"HTTP/1.1 404", b"HTTP/1.1 404 ", b"HTTP/1.1  200 OK", b"HTTP/1.1 20 OK", b"HTTP/1.1 2000 OK",
    b"HTTP/1.1 200\tOK", b"HTTP/1.2 200 OK", b"http/1.1 200 OK", b"HTTP/2 200", b"HTTP/1.1 +20 OK",
    b"HTTP/1.1 200 O\x00K", b" HTTP/1.1 200 OK", b"\r\nHTTP/1.1 200 OK", b"HTTP/1.1 099 No",
    b"HTTP/1.1 407 Proxy", b"HTTP/1.1 200 OK\rX: y", b"ICY 200 OK", b"HTTP/1.1 500 \xff",
]


def framing(rnd):
    """Fields that say how long the body is, and a body that may fit."""
    fields = []
    for _ in range(rnd.choice((0, 1, 1, 1, 1, 1, 1, 2))):
        odd = rnd.random() < 0.3
        if rnd.random() < 0.5:
            value = rnd.choice(CODINGS) if odd else b"chunked"
            name = b"Transfer-Encoding"
        else:
            value = rnd.choice(LENGTHS) if odd else b"5"
            name = b"Content-Length"
        how = rnd.choice(NAMES) if rnd.random() < 0.2 else b"%s"
        blank = b" " if rnd.random() < 0.9 else rnd.choice((b"", b"\t", b"  ", b"\r\n "))
        fields.append(how.replace(b"%s", name) + b":" + blank + value)
    return fields


def chunks(rnd):
    out = b""
    for _ in range(rnd.randrange(3)):
        odd = rnd.random() < 0.15
        out += (rnd.choice(SIZES) if odd else b"5") + rnd.choice(ENDS)
        out += b"hello" + rnd.choice(ENDS)
    return out + rnd.choice(LASTS)


def body(rnd, fields):
    if any(b"Transfer" in f for f in fields) and rnd.random() < 0.9:
        return chunks(rnd)
    if fields and rnd.random() < 0.9:
        return b"hello"
    return b""


def message(rnd, start, fields):
    fields = fields + [rnd.choice(OTHERS) for _ in range(rnd.choice((0, 0, 1, 2)))]
    fields += framing(rnd)
    rnd.shuffle(fields)
    out = start + b"\r\n"
    for field in fields:
        out += field + (rnd.choice(ENDS) if rnd.random() < 0.02 else b"\r\n")
    out += rnd.choice(ENDS) if rnd.random() < 0.02 else b"\r\n"
    out += body(rnd, fields)
    if rnd.random() < 0.1:
        at = rnd.randrange(len(out))
        out = out[:at] + bytes([rnd.randrange(256)]) + out[at + rnd.randrange(2):]
    return out


def pick(rnd, of, plain):
    return rnd.choice(of) if rnd.random() < 0.15 else plain


def request_case(rnd):
    mode = rnd.choice((EXPLICIT, EXPLICIT, PINNED))
    path = b"http://a.example.com/x" if mode == EXPLICIT else b"/x"
    said = rnd.choice((b"", b"", b"", b"", b"\r\n", b"\n", b" "))
    for _ in range(rnd.choice((1, 1, 2))):
        line = b" ".join((pick(rnd, METHODS, b"POST"), pick(rnd, TARGETS, path),
                          pick(rnd, VERSIONS, b"HTTP/1.1")))
        host = pick(rnd, HOSTS, [b"Host: a.example.com"])
        said += message(rnd, line, list(host))
    return mode, said + SMUGGLED, b""


def answer_case(rnd):
    method = rnd.choice((b"GET", b"GET", b"GET", b"HEAD"))
    ask = method + b" http://a.example.com/x HTTP/1.%d\r\nHost: a.example.com\r\n\r\n"
    said = ask % rnd.choice((1, 1, 1, 0)) + SMUGGLED
    answer = b""
    for _ in range(rnd.choice((1, 1, 2))):
        answer += message(rnd, pick(rnd, STATUS, b"HTTP/1.1 200 OK"), [])
    return EXPLICIT, said, answer


def ours(cases):
    program = os.path.join(os.environ["top_builddir"], "tests/unit/forward_dump")
    sent = b"".join(b"%d %d %d\n%s%s" % (mode, len(said), len(answer), said, answer)
                    for mode, said, answer in cases)
    done = subprocess.run([program], input=sent, stdout=subprocess.PIPE, check=True)
    lines = done.stdout.split(b"\n")[:-1]
    assert len(lines) == len(cases), (len(lines), len(cases))
    return [parse_line(line) for line in lines]


def parse_line(line):
    seen = {"R": [], "N": [], "A": b"", "E": ""}
    for word in line.decode("latin-1").split():
        kind, _, rest = word.partition(":")
        if kind == "R":
            act, why, method, path, status = rest.split(":")
            seen["R"].append((act, why, method.encode(), bytes.fromhex(path), int(status)))
        elif kind == "N":
            seen["N"].append(bytes.fromhex(rest))
        elif kind == "A":
            seen["A"] = bytes.fromhex(rest)
        else:
            seen["E"] = rest
    return seen


class Wrong(Exception):
    pass


# --- requests --------------------------------------------------------------------

def h11_requests(data):
    """[(method, path, body)] and what is left: an incomplete one, or nothing."""
    found = []
    while data:
        conn = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
        conn.receive_data(data)
        event, text = conn.next_event(), b""
        if not isinstance(event, h11.Request):
            return found, data
        request = event
        while True:
            event = conn.next_event()
            if isinstance(event, h11.Data):
                text += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                break
            else:
                return found, data
        found.append((request.method, request.target.partition(b"?")[0], text))
        data = conn.trailing_data[0]
    return found, b""


class Reader:
    """What http_parser calls."""

    def __init__(self):
        self.found, self.url, self.text, self.fields = [], b"", b"", []
        self.parser = None
        self.begun = False

    def on_message_begin(self):
        self.url, self.text, self.fields, self.begun = b"", b"", [], True

    def on_url(self, url):
        self.url += url

    def on_header(self, name, value):
        self.fields.append((name.lower(), value))

    def on_body(self, text):
        self.text += text

    def on_message_complete(self):
        self.begun = False
        self.end()

    def end(self):
        self.found.append((self.parser.get_method(), self.url.partition(b"?")[0], self.text))


KNOWN = {b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"PATCH"}


def http_parser_requests(data):
    """The same; None where a method is none of those that it knows."""
    found = []
    while data:
        reader = Reader()
        reader.parser = httptools.HttpRequestParser(reader)
        try:
            reader.parser.feed_data(data)
        except httptools.HttpParserUpgrade as up:
            found += reader.found
            data = data[up.args[0]:]
            continue
        except httptools.HttpParserInvalidMethodError:
            return None, b""
        return found + reader.found, data if reader.begun else b""
    return found, b""


def check_requests(case, seen):
    recorded = [(m, p) for act, _, m, p, status in seen["R"]
                if act == "allow" and status > 0]
    both = []
    for sent in seen["N"]:
        first, rest = h11_requests(sent)
        second, other_rest = http_parser_requests(sent)
        methods = {m for m, _, _ in first} | {rest.partition(b" ")[0]} - {b""}
        if second is None and not methods <= KNOWN:
            second = first
        if first != second:
            raise Wrong("h11 reads %r, http_parser %r" % (first, second))
        if (rest or other_rest) and sent is not seen["N"][-1]:
            raise Wrong("left over: %r, %r" % (rest, other_rest))
        both += [(m, p) for m, p, _ in first]
        if rest and (seen["R"][-1][0], seen["R"][-1][4] > 0) == ("allow", True):
            raise Wrong("the last record is of a whole request, but left over is %r" % rest)
    if both != recorded:
        raise Wrong("read %r, recorded %r" % (both, recorded))
    return len(both)


# --- answers ---------------------------------------------------------------------

def h11_answers(data, methods, clean):
    """[(status, body, ours)], whole ones only."""
    found = []
    for method in methods:
        conn = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
        conn.send(h11.Request(method=method, target="/", headers=[("Host", "a")]))
        conn.send(h11.EndOfMessage())
        conn.receive_data(data)
        if clean:
            conn.receive_data(b"")
        text, head = b"", None
        while True:
            event = conn.next_event()
            if isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                text += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                break
            elif not isinstance(event, h11.InformationalResponse):
                return found, data
        names = dict(head.headers)
        found.append((head.status_code, text, b"proxy-status" in names))
        data = conn.trailing_data[0]
    return found, data


class AnswerReader(Reader):
    def end(self):
        status = self.parser.get_status_code()
        if status >= 200:
            self.found.append((status, self.text))


def http_parser_answers(data):
    reader = AnswerReader()
    reader.parser = httptools.HttpResponseParser(reader)
    reader.parser.feed_data(data)
    return reader.found, reader


def check_answers(case, seen):
    records = [r for r in seen["R"] if r[4] > 0]
    methods = [r[2] or b"GET" for r in records]
    clean = seen["E"] == "fin"
    try:
        found, rest = h11_answers(seen["A"], methods, clean)
    except h11.RemoteProtocolError as err:
        # An answer that was cut is the last, and its record says so.
        if seen["E"] == "tunnel" or records[-1][0] != "error":
            raise Wrong("h11 refuses: %s" % err)
        found, rest = h11_answers(seen["A"], methods[:-1], False)
        rest = b""
    if len(found) == len(records) and rest:
        raise Wrong("left over: %r" % rest)
    for at, (act, why, _, _, status) in enumerate(records):
        whole = at < len(found)
        if not whole and (act != "error" or at != len(records) - 1):
            raise Wrong("answer %d is not whole: %r" % (at, records[at]))
        if whole and found[at][0] != status:
            raise Wrong("status %d is recorded as %d" % (found[at][0], status))
        if whole and act == "error" and not found[at][2]:
            raise Wrong("an answer that was cut (%s) looks whole" % why)
    if b"HEAD" in methods:
        return len(found)       # http_parser cannot be told of that
    second, reader = http_parser_answers(seen["A"])
    whole = [(status, text) for status, text, _ in found]
    if reader.begun and clean and len(second) == len(found) - 1:
        second.append((reader.parser.get_status_code(), reader.text))
    if second != whole:
        raise Wrong("h11 reads %r, http_parser %r" % (whole, second))
    return len(found)


def check(case, seen):
    try:
        if case[2]:
            return check_answers(case, seen)
        check_answers(case, seen)
        return check_requests(case, seen)
    except h11.RemoteProtocolError as err:
        raise Wrong("h11 refuses: %s" % err)
    except httptools.HttpParserError as err:
        raise Wrong("http_parser refuses: %s" % err)


def run(make, what, number):
    rnd = random.Random(SEED)
    cases = [make(rnd) for _ in range(CASES)]
    wrong, passed, refused = [], 0, 0
    for case, seen in zip(cases, ours(cases)):
        try:
            passed += check(case, seen)
        except Wrong as err:
            wrong.append((case, seen, err))
        refused += any(r[0] in ("deny", "error") for r in seen["R"])
    for case, seen, err in wrong[:5]:
        print("# %r\n#   %s\n#   %r" % (case, err, seen))
    fair = CASES // 20 < refused < CASES and passed > CASES // 10
    print("%s %d - %s: %d read alike, %d of %d cases with a refusal, %d wrong"
          % ("not ok" if wrong or not fair else "ok", number, what, passed, refused,
             CASES, len(wrong)))
    return not wrong and fair


def main():
    print("1..2")
    good = run(request_case, "requests are what origins read", 1)
    good = run(answer_case, "answers are what clients read", 2) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
