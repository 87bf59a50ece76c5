# SPDX-License-Identifier: Apache-2.0
"""dnswire.py - DNS messages by the byte, also those that no library would make.

`ASK` is a script for the inside of a sandbox: it sends what stands on its
standard input and prints what came back, without looking into it.
"""
import struct

A, NS, SOA, NULL, PTR, MX, TXT, AAAA, SRV, OPT = \
    1, 2, 6, 10, 12, 15, 16, 28, 33, 41
SVCB, HTTPS, IXFR, AXFR, ANY, CAA = 64, 65, 251, 252, 255, 257
IN, CH, NONE, ANYCLASS = 1, 3, 254, 255
QR, AA, TC, RD = 0x8000, 0x0400, 0x0200, 0x0100
RA, Z, AD, CD = 0x0080, 0x0040, 0x0020, 0x0010
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED = range(6)
BADVERS = 16
DO = 0x8000

NSID, ECS, COOKIE, KEEPALIVE, PADDING, EDE, LOCAL = 3, 8, 10, 11, 12, 15, 65001


def name(text):
    """Dotted text in wire form; bytes are taken for that form already."""
    if isinstance(text, bytes):
        return text
    labels = [label for label in text.encode("latin-1").split(b".") if label]
    return b"".join(bytes([len(l)]) + l for l in labels) + b"\0"


def question(owner, rdtype=A, klass=IN):
    return name(owner) + struct.pack("!2H", rdtype, klass)


def record(owner, rdtype, data, klass=IN, ttl=0):
    return name(owner) + struct.pack("!2HIH", rdtype, klass, ttl,
                                     len(data)) + data


def option(code, data=b""):
    return struct.pack("!2H", code, len(data)) + data


def opt(*options, size=1232, version=0, flags=0, rcode=0, owner=b"\0"):
    return record(owner, OPT, b"".join(options), size,
                  rcode << 24 | version << 16 | flags)


def message(ident, flags=RD, opcode=0, counts=None, questions=b"",
            sections=b""):
    """@counts: of the four sections, as the header claims."""
    return struct.pack("!2H4H", ident, flags | opcode << 11,
                       *(counts or (1, 0, 0, 0))) + questions + sections


def ask(ident, owner, rdtype=A, klass=IN, flags=RD, opcode=0, extra=()):
    """A well-formed message with one question and additional records."""
    return message(ident, flags, opcode, (1, 0, 0, len(extra)),
                   question(owner, rdtype, klass), b"".join(extra))


# Lines "TRANSPORT WANTS HEX" in, lines "TRANSPORT HEX|-|closed" out.  What
# wants no answer is followed by a question that gets one at once, and which is
# answered behind it if at all: nothing waits for a clock.
ASK = r"""
import socket, struct, sys
AT = {"4": (socket.AF_INET, ("9.9.9.9", 53)),
      "6": (socket.AF_INET6, ("2620:fe::fe", 53))}
LAST = struct.pack("!6H", 0xfeed, 256, 1, 0, 0, 0) + b"\x09localhost\0\0\1\0\1"

def exactly(s, n):
    data = b""
    while len(data) < n:
        part = s.recv(n - len(data))
        if not part:
            raise EOFError
        data += part
    return data

def udp(s, wire, wants):
    s.send(wire)
    if not wants:
        s.send(LAST)
    got = s.recv(65535)
    return "-" if got[:2] == LAST[:2] else got.hex()

def tcp(s, wire, wants):
    s.sendall(struct.pack("!H", len(wire)) + wire)
    try:
        return exactly(s, struct.unpack("!H", exactly(s, 2))[0]).hex()
    except (EOFError, ConnectionResetError):
        return "closed"

for line in sys.stdin:
    transport, wants, wire = line.split()
    family, where = AT[transport[3]]
    kind = socket.SOCK_DGRAM if transport[:3] == "udp" else socket.SOCK_STREAM
    with socket.socket(family, kind) as s:
        s.settimeout(30)
        s.connect(where)
        way = udp if transport[:3] == "udp" else tcp
        print(transport, way(s, bytes.fromhex(wire), wants == "1"))
"""


class Reply:
    """A reply taken apart by hand: every byte is accounted for."""

    def __init__(self, wire):
        self.wire = wire
        (self.ident, self.flags, *self.counts) = struct.unpack("!6H", wire[:12])
        self.opcode = self.flags >> 11 & 15
        at = 12
        self.question = b""
        for _ in range(self.counts[0]):
            end = self._name(at) + 4
            self.question += wire[at:end]
            at = end
        self.sections = []
        for count in self.counts[1:]:
            section = []
            for _ in range(count):
                at = self._name(at)
                head = struct.unpack("!2HIH", wire[at:at + 10])
                data = wire[at + 10:at + 10 + head[3]]
                assert len(data) == head[3], "a record is cut"
                section.append((head[0], head[1], head[2], data))
                at += 10 + head[3]
            self.sections.append(section)
        assert at == len(wire), "bytes behind the end"
        self.answer, self.authority, self.additional = self.sections
        self.opt = [r for r in self.additional if r[0] == OPT]
        self.rcode = self.flags & 15
        if self.opt:
            self.rcode |= self.opt[0][2] >> 24 << 4
        self.options = self._options()

    def _name(self, at):
        while self.wire[at] and self.wire[at] < 0xc0:
            at += 1 + self.wire[at]
        return at + (2 if self.wire[at] >= 0xc0 else 1)

    def _options(self):
        found = {}
        data = self.opt[0][3] if self.opt else b""
        while data:
            code, size = struct.unpack("!2H", data[:4])
            assert len(data) >= 4 + size, "an option is cut"
            found[code] = data[4:4 + size]
            data = data[4 + size:]
        return found
