# SPDX-License-Identifier: Apache-2.0
"""Does the door speak DNS as the standards say?  A table, by the byte.

The rows follow the public lists: RFC 8906 section 8 (headers, types, opcodes,
EDNS), the well-known set of EDNS compliance tests, and what the standards of
each feature demand.  Each row is sent by UDP and TCP, to an IPv4 and an IPv6
resolver address, and what comes back is taken apart by hand.
"""
import itertools
import struct

import pytest

from conftest import USER, Penstock
import dnswire as w
from dnswire import (
    A, AAAA, AD, ANY, ANYCLASS, AXFR, BADVERS, CD, CH, DO, FORMERR, HTTPS,
    IXFR, MX, NOERROR, NONE, NOTIMP, NULL, NXDOMAIN, OPT, PTR, QR, RA, RD,
    REFUSED, SOA, SVCB, TC, TXT, Z, Reply)

TRANSPORTS = ("udp4", "udp6", "tcp4", "tcp6")
DROPPED = object()          # by UDP no answer, by TCP the end

WEB = "web.example.com"
IDENT = itertools.count(0x1001)


class Case:
    """@want: rcode or DROPPED; @more: further demands, see Case.check()."""

    def __init__(self, title, rfc, wire, want, **more):
        self.title, self.rfc, self.wire, self.want = title, rfc, wire, want
        self.more = more

    def __str__(self):
        return "%s (%s)" % (self.title, self.rfc)

    def lines(self):
        return ["%s %d %s" % (transport, self.want is not DROPPED,
                              self.wire.hex() or "-")
                for transport in TRANSPORTS]

    def check(self, got):
        reply = Reply(bytes.fromhex(got))
        asked = struct.unpack("!2H", self.wire[:4])
        more = self.more
        assert reply.rcode == self.want
        # What holds of every reply (RFC 1035 4.1.1, 4035 3.2.2, 6840 5.7).
        assert reply.ident == asked[0]
        assert reply.flags & QR and reply.flags & RA
        assert not reply.flags & (w.AA | Z | AD)
        assert reply.flags & (RD | CD) == asked[1] & (RD | CD)
        assert reply.opcode == asked[1] >> 11 & 15
        assert bool(reply.flags & TC) == more.get("cut", False)
        if reply.counts[0]:
            # Byte for byte, in the case that was asked ("0x20").
            assert reply.question == \
                self.wire[12:12 + len(reply.question)]
        assert reply.counts[0] == more.get("questions", 1)
        assert len(reply.wire) <= more.get("room", 512)
        # RFC 6891 6.1.1: an OPT to those who sent one, to nobody else.
        assert len(reply.opt) == more.get("edns", False)
        if reply.opt:
            _, size, ttl, _ = reply.opt[0]
            assert size >= 512 and ttl >> 16 & 0xff == 0
            assert ttl & 0xffff == more.get("do", 0)
            assert set(reply.options) <= {w.EDE}
        if "answers" in more:
            assert len(reply.answer) == more["answers"]
        if reply.rcode == NXDOMAIN or more.get("nodata"):
            # RFC 2308 2: what is to be kept, and for how long.
            assert [r[0] for r in reply.authority] == [SOA]
            assert not reply.answer
        if "ede" in more:
            assert struct.unpack("!H", reply.options[w.EDE][:2])[0] == \
                more["ede"]


def ask(owner=WEB, rdtype=A, **kwargs):
    return w.ask(next(IDENT), owner, rdtype, **kwargs)


def raw(questions, counts=(1, 0, 0, 0), sections=b"", **kwargs):
    return w.message(next(IDENT), counts=counts, questions=questions,
                     sections=sections, **kwargs)


def edns(title, rfc, *options, want=NOERROR, answers=None, size=1232,
         version=0, flags=0, owner=WEB, **more):
    if answers is None:
        answers = int(want == NOERROR)
    wire = ask(owner, extra=[w.opt(*options, size=size, version=version,
                                   flags=flags)])
    more.setdefault("room", max(512, min(size, 1232)))
    return Case(title, rfc, wire, want, edns=True, answers=answers, **more)


HEADERS = [
    Case("a plain question", "1035", ask(), NOERROR, answers=1),
    Case("no recursion desired", "8906 8.1.3", ask(flags=0), NOERROR),
    Case("checking disabled", "8906 8.1.3", ask(flags=RD | CD), NOERROR,
         answers=1),
    Case("authentic data", "8906 8.1.3", ask(flags=RD | AD), NOERROR,
         answers=1),
    Case("the reserved bit", "8906 8.1.3", ask(flags=RD | Z), NOERROR,
         answers=1),
    Case("authoritative in a question", "1035 4.1.1", ask(flags=RD | w.AA),
         NOERROR, answers=1),
    Case("recursion available in a question", "1035 4.1.1",
         ask(flags=RD | RA), NOERROR, answers=1),
    Case("an rcode in a question", "1035 4.1.1", ask(flags=RD | 5), NOERROR,
         answers=1),
    Case("a cut question", "1035 4.1.1", ask(flags=RD | TC), FORMERR,
         questions=0),
    Case("a response", "5625, 1035 7.3", ask(flags=QR | RD), DROPPED),
    Case("a response of another opcode", "1035 7.3",
         ask(flags=QR, opcode=5), DROPPED),
    Case("less than a header", "1035 4.1.1", ask()[:11], DROPPED),
    Case("one byte", "1035 4.1.1", b"\x11", DROPPED),
    Case("a header alone that claims a question", "1035 4.1.2", ask()[:12],
         FORMERR, questions=0),
    Case("no question", "9619", raw(b"", (0, 0, 0, 0)), FORMERR, questions=0),
    Case("no question and a cookie", "7873 5.4",
         raw(b"", (0, 0, 0, 1), w.opt(w.option(w.COOKIE, b"c" * 8))),
         FORMERR, questions=0),
    Case("two questions", "9619",
         raw(w.question(WEB) + w.question(WEB, AAAA), (2, 0, 0, 0)), FORMERR,
         questions=0),
    Case("65535 questions", "9619", raw(w.question(WEB), (65535, 0, 0, 0)),
         FORMERR, questions=0),
    Case("an answer in a question", "1035 4.1",
         raw(w.question(WEB), (1, 1, 0, 0),
             w.record(WEB, A, b"\1\2\3\4")), FORMERR, questions=0),
    Case("an authority in a question", "1035 4.1",
         raw(w.question(WEB), (1, 0, 1, 0),
             w.record(WEB, A, b"\1\2\3\4")), FORMERR),
    Case("a record beside the question", "1035 4.1",
         ask(extra=[w.record("secret.example", TXT, b"\6secret")]), NOERROR,
         answers=1),
    Case("more records than claimed", "1035 4.1",
         ask() + w.opt(), FORMERR),
    Case("bytes behind the end", "1035 4.1", ask() + b"\0", FORMERR),
    Case("fewer records than claimed", "1035 4.1",
         raw(w.question(WEB), (1, 0, 0, 2), w.opt()), FORMERR, edns=True),
    Case("a record's data beyond the end", "1035 4.1.3",
         raw(w.question(WEB), (1, 0, 0, 1), w.opt()[:-2] + b"\0\1"), FORMERR),
    Case("a signature of a key that we do not know", "8945 5.2",
         ask(extra=[w.record("key.example", 250, w.name("hmac-sha256")
                             + b"\0" * 16, ANYCLASS)]), NOERROR, answers=1),
]

OPCODES = [
    Case("opcode %d %s" % (code, called), rfc, ask(opcode=code), NOTIMP,
         questions=0, answers=0)
    for code, called, rfc in [
        (1, "IQUERY", "3425"), (2, "STATUS", "1035"), (3, "unassigned", "6895"),
        (4, "NOTIFY", "1996"), (5, "UPDATE", "2136"), (6, "DSO", "8490 5.1"),
        (7, "unassigned", "6895"), (14, "unassigned", "6895"),
        (15, "unassigned", "8906 8.1.4")]
] + [
    Case("an unknown opcode in a header alone", "8906 8.1.4",
         raw(b"", (0, 0, 0, 0), opcode=15), NOTIMP, questions=0),
    Case("a DSO keepalive", "8490 7.1",
         raw(b"", (0, 0, 0, 0), struct.pack("!2H2I", 1, 8, 15000, 15000),
             opcode=6, flags=0), NOTIMP, questions=0),
    Case("an update with records", "2136",
         raw(w.question("example.com", SOA), (1, 0, 1, 0),
             w.record(WEB, A, b"\1\2\3\4"), opcode=5, flags=0), NOTIMP,
         questions=0),
]

EDNS = [
    edns("plain EDNS", "8906 8.2.1"),
    edns("version 1", "8906 8.2.2", version=1, want=BADVERS),
    edns("version 255", "6891 6.1.3", version=255, want=BADVERS),
    edns("version 1 with an unknown option", "8906 8.2.5",
         w.option(100, b"x"), version=1, want=BADVERS),
    edns("version 1 with unknown flags", "8906 8.2.6", version=1, flags=0x40,
         want=BADVERS),
    edns("an unknown option", "8906 8.2.3", w.option(100)),
    edns("an unknown option with data", "6891 6.1.2",
         w.option(w.LOCAL, b"secret")),
    edns("an unknown flag", "8906 8.2.4", flags=0x40),
    edns("all unknown flags", "6891 6.1.4", flags=0x7fff),
    edns("DNSSEC answers are fine", "3225 3", flags=DO, do=DO),
    edns("the name server's identity", "5001 2.1", w.option(w.NSID)),
    edns("a client subnet", "7871 7.1.3",
         w.option(w.ECS, struct.pack("!H2B", 1, 24, 0) + b"\xcb\0\x71")),
    edns("a malformed client subnet", "7871 7.1.2",
         w.option(w.ECS, b"\0")),
    edns("a client cookie", "7873 5.2.1", w.option(w.COOKIE, b"c" * 8)),
    edns("a client and a server cookie", "7873 5.2.3",
         w.option(w.COOKIE, b"c" * 8 + b"s" * 16)),
    edns("keepalive", "7828 3.2.1", w.option(w.KEEPALIVE)),
    edns("padding", "7830 4", w.option(w.PADDING, b"\0" * 64)),
    edns("chain, key tag and many others", "6891 6.1.2",
         *(w.option(code, b"\0" * (code % 7)) for code in range(1, 30))),
    edns("an extended error in a question", "8914 2",
         w.option(w.EDE, b"\0\x0fno")),
    edns("an option twice", "6891 6.1.2", w.option(100), w.option(100)),
    edns("options of no length, 900 of them", "6891 6.1.2",     # DNS-15
         *[w.option(w.LOCAL)] * 900),
    edns("a size of 0", "6891 6.2.3", size=0),
    edns("a size of 512", "6891 6.2.3", size=512),
    edns("a size of 65535", "6891 6.2.3", size=65535),
    edns("a denied name says why", "8914 4.16", owner="denied.example.net",
         want=NXDOMAIN, ede=15),
    Case("no extended error without EDNS", "8914 2",
         ask("denied.example.net"), NXDOMAIN, answers=0),
    Case("two OPT", "6891 6.1.1", ask(extra=[w.opt(), w.opt()]), FORMERR,
         edns=True),
    Case("an OPT that is not the root's", "6891 6.1.2",
         ask(extra=[w.opt(owner=w.name("example.com"))]), FORMERR, edns=True),
    Case("an option longer than its record", "6891 6.1.2",
         ask(extra=[w.opt(b"\xfd\xe9\0\x05abc")]), FORMERR, edns=True),
    Case("an option without its length", "6891 6.1.2",
         ask(extra=[w.opt(b"\xfd\xe9\0")]), FORMERR, edns=True),
    Case("an OPT behind another record", "6891 6.1.1",
         ask(extra=[w.record("x", TXT, b"\1x"), w.opt(flags=DO)]), NOERROR,
         edns=True, do=DO, answers=1),
    Case("an extended rcode in a question", "6891 6.1.3",
         ask(extra=[w.opt(rcode=1)]), NOERROR, edns=True, answers=1),
]

TYPES = [
    Case("an unknown type of an allowed name", "8906 8.1.2, 3597",
         ask(rdtype=1000), NOERROR, nodata=True),
    Case("a type for private use", "6895 3.1", ask(rdtype=65280), NOERROR,
         nodata=True),
    Case("type 65535", "6895 3.1", ask(rdtype=65535), NOERROR, nodata=True),
    Case("an unknown type of a denied name", "8906 8.1.2",
         ask("denied.example.net", 1000), NXDOMAIN),
    Case("type 0", "6895 3.1", ask(rdtype=0), REFUSED, answers=0),
    Case("HTTPS", "9460", ask(rdtype=HTTPS), NOERROR, nodata=True),
    Case("SVCB", "9460", ask(rdtype=SVCB), NOERROR, nodata=True),
    Case("SOA of an allowed name", "8906 8.1.1", ask(rdtype=SOA), NOERROR,
         nodata=True),
    Case("NULL", "1035 3.3.10", ask(rdtype=NULL), REFUSED),
    Case("ANY", "8482", ask(rdtype=ANY), REFUSED, answers=0),
    Case("ANY of a denied name", "8482", ask("denied.example.net", ANY),
         REFUSED, answers=0),
    Case("OPT as a question", "6895 3.1", ask(rdtype=OPT), REFUSED),
    Case("AXFR", "5936", ask("example.com", AXFR), REFUSED, answers=0),
    Case("IXFR without its SOA", "1995 3", ask("example.com", IXFR), REFUSED),
    Case("IXFR", "1995 3",
         raw(w.question("example.com", IXFR), (1, 0, 1, 0),
             w.record("example.com", SOA, b"\0\0" + b"\0" * 20)), REFUSED,
         answers=0),
    Case("IXFR with more than its SOA", "1995 3",
         raw(w.question("example.com", IXFR), (1, 0, 2, 0),
             w.record("example.com", SOA, b"\0\0" + b"\0" * 20) * 2), FORMERR),
] + [
    Case("meta type %d" % rdtype, "6895 3.1", ask(rdtype=rdtype), REFUSED)
    for rdtype in (128, 248, 249, 250, 253, 254)
] + [
    Case("version.bind", "4892", ask("version.bind", TXT, klass=CH), REFUSED),
    Case("id.server", "4892", ask("id.server", TXT, klass=CH), REFUSED),
] + [
    Case("class %d" % klass, "6895 3.2", ask(klass=klass), REFUSED, answers=0)
    for klass in (0, 2, CH, 4, NONE, ANYCLASS, 65535)
]

LABEL63 = "a" * 63
NAMES = [
    Case("mixed case", "4343", ask("wEb.ExAmPlE.CoM"), NOERROR, answers=1),
    Case("an ancestor of an allowed name", "8020", ask("example.com"),
         NOERROR, nodata=True),
    Case("a top level above an allowed name", "8020", ask("com"), NOERROR,
         nodata=True),
    Case("the root", "8020", ask(b"\0", w.NS), NOERROR, nodata=True),
    Case("a denied name", "8914 4.16", ask("denied.example.net"), NXDOMAIN),
    Case("a name of 255 bytes", "1035 2.3.4",
         ask(".".join([LABEL63] * 3 + ["b" * 61])), NXDOMAIN),
    Case("a name of 256 bytes", "1035 2.3.4",
         ask(".".join([LABEL63] * 3 + ["b" * 62])), FORMERR, questions=0),
    Case("127 labels", "1035 2.3.4", ask(".".join("a" * 127)), NXDOMAIN),
    Case("128 labels", "1035 2.3.4", ask(".".join("a" * 128)), FORMERR,
         questions=0),
    Case("a label of 63 bytes", "1035 2.3.4",
         ask(LABEL63 + ".attacker.example.net"), NXDOMAIN),
    Case("a length of 64", "1035 2.3.4, 6891 5",
         ask(b"\x40" + b"a" * 64 + b"\0"), FORMERR, questions=0),
    Case("a length of 128", "6891 5", ask(b"\x80" + b"a" * 128 + b"\0"),
         FORMERR, questions=0),
    Case("a label beyond the end", "1035 3.1",
         raw(b"\x3fabc"), FORMERR, questions=0),
    Case("a name without its root", "1035 3.1", raw(b"\3www"), FORMERR,
         questions=0),
    Case("a name without type and class", "1035 4.1.2",
         raw(w.name(WEB)), FORMERR, questions=0),
    Case("a name without its class", "1035 4.1.2",
         raw(w.question(WEB)[:-2]), FORMERR, questions=0),
    Case("a pointer to itself", "1035 4.1.4", ask(b"\xc0\x0c"), FORMERR,
         questions=0),
    Case("a pointer into the header", "1035 4.1.4", ask(b"\3www\xc0\x00"),
         FORMERR, questions=0),
    Case("a pointer back to the name's own start", "1035 4.1.4",
         ask(b"\3www\xc0\x0c"), FORMERR, questions=0),
    Case("a pointer forward", "1035 4.1.4", ask(b"\3www\xc0\x20"), FORMERR,
         questions=0),
    Case("a pointer beyond the end", "1035 4.1.4", ask(b"\3www\xff\xff"),
         FORMERR, questions=0),
    Case("half a pointer", "1035 4.1.4", raw(b"\3www\xc0"), FORMERR,
         questions=0),
    Case("a loop in an additional record", "1035 4.1.4",
         ask(extra=[w.record(b"\1a\xc0\x21", TXT, b"\1x")]), FORMERR),
    Case("an additional record that points at the question", "1035 4.1.4",
         ask(extra=[w.record(b"\xc0\x0c", TXT, b"\1x")]), NOERROR, answers=1),
    Case("a dot inside a label", "2181 11",
         ask(b"\x0fweb.example.com\0"), NXDOMAIN),
    Case("a zero byte inside a label", "2181 11",
         ask(b"\4web\0\7example\3com\0"), NXDOMAIN),
    Case("bytes above ASCII", "2181 11",
         ask(b"\3w\xe9b\7example\3com\0"), NXDOMAIN),
    Case("a star", "4592 2.1.1", ask("*.example.com"), NXDOMAIN),
]

LOCAL = [
    Case("localhost", "6761 6.3", ask("localhost"), NOERROR, answers=1),
    Case("below localhost", "6761 6.3", ask("a.b.localhost", AAAA), NOERROR,
         answers=1),
    Case("another type of localhost", "6761 6.3", ask("localhost", MX),
         NOERROR, nodata=True),
    Case("the address of localhost backwards", "6761 6.3",
         ask("1.0.0.127.in-addr.arpa", PTR), NOERROR, answers=1),
    Case("a private address backwards", "6761 6.1, 6303",
         ask("1.0.168.192.in-addr.arpa", PTR), NXDOMAIN),
] + [
    Case(owner, rfc, ask(owner), NXDOMAIN) for owner, rfc in [
        ("invalid", "6761 6.4"), ("x.invalid", "6761 6.4"),
        ("x.test", "6761 6.2"), ("printer.local", "6762 3"),
        ("x.onion", "7686"), ("x.alt", "9476"), ("x.home.arpa", "8375"),
        ("_dns.resolver.arpa", "9462 6.4"), ("ipv4only.arpa", "8880")]
]

CASES = HEADERS + OPCODES + EDNS + TYPES + NAMES + LOCAL


@pytest.fixture(scope="module")
def replies(lab):
    """(title, transport) -> what came back; one sandbox answers them all."""
    lines = [line for case in CASES for line in case.lines()]
    got = Penstock(lab, USER).python(w.ASK, stdin="\n".join(lines) + "\n",
                                     timeout=240)
    words = [line.split() for line in got.out.splitlines()]
    assert len(words) == len(lines), got.err
    keys = [(case.title, transport) for case in CASES
            for transport in TRANSPORTS]
    return {key: word[1] for key, word in zip(keys, words)}


def test_every_case_has_a_title_of_its_own():
    titles = [case.title for case in CASES]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_reply_is_what_the_standards_say(replies, case, transport):
    got = replies[case.title, transport]
    if case.want is DROPPED:
        assert got == ("-" if transport.startswith("udp") else "closed")
    else:
        assert got not in ("-", "closed")
        case.check(got)


# --- streams (RFC 7766, 9210) ---------------------------------------------------

# `ask(ident, name, type=1)` is a message with its length before it, `take(s)`
# the next (ident, rcode, answers), or None at the end of the stream.
STREAM = r"""
import socket, struct
def wire(ident, name, rdtype=1):
    q = struct.pack("!6H", ident, 256, 1, 0, 0, 0)
    q += b"".join(bytes([len(l)]) + l for l in name.encode().split(b"."))
    return q + b"\0" + struct.pack("!2H", rdtype, 1)
def ask(*args):
    q = wire(*args)
    return struct.pack("!H", len(q)) + q
def opened(where=WHERE):
    return socket.create_connection((where, 53), 30)
def exactly(s, n):
    data = b""
    while len(data) < n:
        part = s.recv(n - len(data))
        if not part:
            return None
        data += part
    return data
def take(s):
    try:
        size = exactly(s, 2)
        m = size and exactly(s, struct.unpack("!H", size)[0])
    except ConnectionResetError:
        return None
    if not m:
        return None
    head = struct.unpack("!6H", m[:12])
    return head[0], head[1] & 15, head[3]
"""


@pytest.fixture(params=["9.9.9.9", "2620:fe::fe"], ids=["v4", "v6"])
def stream(as_user, request):
    """Runs a script that prints True for each thing that is as it should be."""
    def run(script, wants=1, **kwargs):
        got = as_user.python(
            STREAM.replace("WHERE", repr(request.param)) + script, **kwargs)
        assert got.out == "True\n" * wants, (got.out, got.err)
        return got
    return run


def test_a_message_may_come_byte_by_byte(stream):
    # DNS-11, RFC 7766 8
    stream("""
s = opened()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for byte in ask(7, "localhost") + ask(8, "denied.example.net"):
    s.send(bytes([byte]))
print({take(s), take(s)} == {(7, 0, 1), (8, 3, 0)})
""")


def test_answers_overtake_each_other(stream):
    # RFC 7766 6.2.1.1: one that must wait for the world holds none up.
    stream("""
s = opened()
s.sendall(ask(1, "late.example.com") + ask(2, "localhost")
          + ask(3, "denied.example.net"))
print([take(s), take(s)] == [(2, 0, 1), (3, 3, 0)])
print(take(s) == (1, 0, 1))
""", wants=2)


def test_hundreds_of_questions_may_be_asked_ahead(stream):
    stream("""
s = opened()
s.sendall(b"".join(ask(i, "x%d.localhost" % i) for i in range(500)))
print(sorted(take(s) for _ in range(500)) == [(i, 0, 1) for i in range(500)])
""")


def test_a_client_that_asks_and_never_reads_loses_no_answer(stream):
    # It is not read from either, until it reads: that is the whole bound.
    stream("""
import threading
s = opened()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
N = 20000
other = threading.Thread(target=lambda: s.sendall(
    b"".join(ask(i, "x.localhost") for i in range(N))))
other.start()
t = opened()                    # meanwhile others are served
t.sendall(ask(1, "localhost"))
print(take(t) == (1, 0, 1))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
print(sorted(take(s)[0] for _ in range(N)) == list(range(N)))
other.join()
""", wants=2)


def test_a_half_closed_client_is_answered_and_then_let_go(stream):
    # DNS-14
    stream("""
s = opened()
s.sendall(ask(1, "late.example.com") + ask(2, "localhost"))
s.shutdown(socket.SHUT_WR)
print({take(s), take(s)} == {(1, 0, 1), (2, 0, 1)})
print(take(s) is None)
""", wants=2)


@pytest.mark.parametrize("bad", [
    "b'\\0\\0'", "b'\\0\\1x'", "b'\\0\\x0c' + b'\\0\\1\\x81\\0' + b'\\0' * 8"],
    ids=["no bytes", "one byte", "a response"])
def test_what_is_no_question_ends_the_stream_behind_the_answers(stream, bad):
    stream("""
s = opened()
s.sendall(ask(1, "localhost") + ask(2, "late.example.com") + %s
          + ask(3, "localhost"))
print({take(s), take(s)} == {(1, 0, 1), (2, 0, 1)})
print(take(s) is None)
""" % bad, wants=2)


def test_a_stream_goes_on_behind_a_malformed_question(stream):
    stream("""
s = opened()
bad = wire(2, "localhost") + b"x"
s.sendall(ask(1, "localhost") + struct.pack("!H", len(bad)) + bad
          + ask(3, "localhost"))
print([take(s)[:2] for _ in range(3)] == [(1, 0), (2, 1), (3, 0)])
""")


def test_a_message_of_the_greatest_length_is_read_whole(stream):
    stream("""
q = wire(1, "localhost")
room = 65535 - len(q) - 11 - 4
q = q[:10] + b"\\0\\1" + q[12:] + struct.pack("!BHHIH", 0, 41, 1232, 0, room + 4)
q += struct.pack("!2H", 65001, room) + b"x" * room
s = opened()
s.sendall(struct.pack("!H", len(q)) + q + ask(2, "localhost"))
print({take(s), take(s)} == {(1, 0, 1), (2, 0, 1)})
""")


def test_idle_connections_make_room_for_new_ones(stream):
    # RFC 7766 6.2.3; far more than are kept at once
    stream("""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
every = []
for i in range(300):
    s = opened()
    s.sendall(ask(i, "localhost"))
    every.append((s, take(s) == (i, 0, 1)))
print(all(ok for s, ok in every))
every[0][0].sendall(b"")
print(take(every[0][0]) is None)
""", wants=2)


def test_parallel_questions_by_tcp_and_udp_are_kept_apart(stream):
    # DNS-07: one id, two transports, two answers
    stream("""
s = opened()
u = socket.socket(s.family, socket.SOCK_DGRAM)
u.settimeout(30)
u.connect(s.getpeername()[:2])
for i in range(200):
    s.sendall(ask(i, "late.example.com"))
    u.send(wire(i, "late.example.com", 28))
print(sorted(take(s) for _ in range(200)) == [(i, 0, 1) for i in range(200)])
got = [struct.unpack("!6H", u.recv(4096)[:12]) for _ in range(200)]
print(sorted(g[0] for g in got) == list(range(200)))
print({(g[1] & 15, g[3]) for g in got} == {(0, 0)})
""", wants=3)
