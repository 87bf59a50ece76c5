# SPDX-License-Identifier: Apache-2.0
"""Our DNS codec and dnspython read each other's messages alike."""
import os
import random
import subprocess
import sys

try:
    import dns.edns
    import dns.flags
    import dns.message
    import dns.name
    import dns.rcode
    import dns.rrset
except ImportError:
    # Debian's package is for Debian's interpreter.
    if sys.executable != "/usr/bin/python3" and \
            os.access("/usr/bin/python3", os.X_OK):
        os.execv("/usr/bin/python3", ["/usr/bin/python3"] + sys.argv)
    print("1..0 # SKIP no dnspython")
    sys.exit(0)

SEED = 20240229
ROUNDS = int(os.environ.get("PENSTOCK_CASES", 1200)) // 4   # make stress


class Codec:
    def __init__(self):
        path = os.path.join(os.environ["top_builddir"], "tests/unit/dns_oracle")
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


def any_name(rng, labels=None):
    alphabet = "abcxyzABCXYZ0189-_"
    count = labels or rng.randint(1, 6)
    return ".".join("".join(rng.choice(alphabet)
                            for _ in range(rng.randint(1, 20)))
                    for _ in range(count)) + "."


def any_query(rng):
    options = [dns.edns.GenericOption(rng.choice([3, 10, 12, 65001]),
                                      rng.randbytes(rng.randint(0, 30)))
               for _ in range(rng.randint(0, 3))]
    edns = rng.choice([False, 0])
    return dns.message.make_query(
        any_name(rng), rng.choice(["A", "AAAA", "TXT", "HTTPS", "MX"]),
        use_edns=edns, payload=rng.choice([512, 1232, 4096]),
        options=options if edns == 0 and edns is not False else None)


def questions_are_read_alike(codec, rng):
    for _ in range(ROUNDS):
        query = any_query(rng)
        got = codec.say("Q " + query.to_wire().hex()).split()
        asked = query.question[0]
        edns = query.edns >= 0
        want = ["0", str(query.id), str(int(asked.rdtype)), "1",
                str(int(edns)), str(max(query.payload, 512) if edns else 512),
                asked.name.canonicalize().to_wire().hex()]
        assert got == want, (query, got, want)


def holds_another_record(wire):
    """Is the one additional record no OPT?  We pass over it unread, while
    dnspython may know its type and find fault with its data."""
    at = 12
    while at < len(wire) and wire[at]:
        at += 1 + wire[at]
    at += 5
    return wire[at:at + 1] == b"\0" and wire[at + 1:at + 3] != b"\0\x29"


def faults_what_an_option_says(error):
    """dnspython reads the text of an extended error; we pass over options."""
    while error is not None:
        if isinstance(error, UnicodeError):
            return True
        error = error.__cause__ or error.__context__
    return False


def broken_questions_are_never_taken_for_good(codec, rng):
    """What dnspython cannot read, or reads with something left, is refused."""
    for _ in range(ROUNDS):
        wire = bytearray(any_query(rng).to_wire())
        for _ in range(rng.randint(1, 3)):
            wire[rng.randrange(4, len(wire))] = rng.randrange(256)
        if rng.random() < 0.3:
            wire = wire[:rng.randrange(12, len(wire))]
        verdict = codec.say("Q " + wire.hex()).split()[0]
        try:
            dns.message.from_wire(bytes(wire))
            good = True
        except Exception as error:
            good = faults_what_an_option_says(error)
        assert good or verdict != "0" or holds_another_record(wire), wire.hex()


def replies_are_read_by_others(codec, rng):
    for _ in range(ROUNDS):
        query = any_query(rng)
        rcode = rng.choice([0, 2, 3, 5])
        wire = bytes.fromhex(codec.say("R %d %s" % (rcode,
                                                    query.to_wire().hex())))
        reply = dns.message.from_wire(wire)
        assert query.is_response(reply), (query, reply)
        assert reply.rcode() == rcode
        if rcode == 0:
            assert reply.answer[0].name == query.question[0].name
            assert reply.answer[0].ttl == 60
            assert reply.answer[0][0].address == "198.18.1.2"
        if rcode == 3:
            assert reply.authority[0][0].minimum == 5
        if rcode and query.edns >= 0:
            data = reply.options[0]
            assert int(data.otype) == 15
            assert data.to_wire() == b"\0\x0fword"
        assert (reply.edns >= 0) == (query.edns >= 0)


def any_answer(rng, query, rdtype):
    reply = dns.message.make_response(query)
    owner = query.question[0].name
    chain = rng.randint(0, 5)
    met = {owner}
    for _ in range(chain):
        target = owner
        while target in met:                # a name twice would be a loop
            target = dns.name.from_text(any_name(rng))
        met.add(target)
        reply.answer.append(dns.rrset.from_text(owner, 60, "IN", "CNAME",
                                                target.to_text()))
        owner = target
    texts = ["203.0.113.%d" % rng.randint(1, 254) if rdtype == "A" else
             "2001:db8:3::%x" % rng.randint(1, 65535)
             for _ in range(rng.randint(0, 5))]
    found = None
    if texts:
        found = dns.rrset.from_text(owner, 60, "IN", rdtype, *texts)
        reply.answer.append(found)
    else:
        reply.authority.append(dns.rrset.from_text(
            "example.com.", 60, "IN", "SOA", "ns. root. 1 2 3 4 5"))
    reply.answer.append(dns.rrset.from_text("other.example.", 60, "IN", rdtype,
                                            "203.0.113.255" if rdtype == "A"
                                            else "2001:db8:3::ffff:1"))
    rng.shuffle(reply.answer)
    return reply, found, chain


def answers_are_read_alike(codec, rng):
    for _ in range(ROUNDS):
        rdtype = rng.choice(["A", "AAAA"])
        query = dns.message.make_query(any_name(rng), rdtype)
        reply, found, chain = any_answer(rng, query, rdtype)
        got = codec.say("A %s %s" % (query.to_wire().hex(),
                                     reply.to_wire().hex())).split()
        want = sorted(r.to_wire().hex() for r in found or [])
        soa = "1" if found is None else "0"
        assert got[:4] == ["0", "0", str(chain), soa], (got, reply)
        assert sorted(got[4:]) == want, (got, want)


def any_text(rng):
    """A character string of TXT as it is written: any bytes."""
    return '"%s"' % "".join("\\%03d" % rng.randrange(256)
                            for _ in range(rng.randint(0, 255)))


def any_record(rng, rdtype):
    name = any_name(rng)
    if rdtype in ("NS", "PTR"):
        return name
    if rdtype == "MX":
        return "%d %s" % (rng.randrange(65536), name)
    if rdtype == "SRV":
        return "%d %d %d %s" % (*(rng.randrange(65536) for _ in "123"), name)
    if rdtype == "CAA":
        return "%d %s %s" % (rng.choice([0, 128]),
                             rng.choice(["issue", "issuewild", "iodef"]),
                             any_text(rng))
    if rdtype == "TXT":
        return " ".join(any_text(rng) for _ in range(rng.randint(1, 4)))
    # The hints stay: they are left out where the answer is known to be for.
    return "%d %s alpn=h2,h3 port=%d ipv4hint=203.0.113.%d" % (
        rng.randint(1, 9), rng.choice([".", name.lower()]),
        rng.randrange(65536), rng.randrange(256))


def other_records_are_read_alike(codec, rng):
    for _ in range(ROUNDS):
        rdtype = rng.choice(["NS", "PTR", "MX", "SRV", "CAA", "TXT", "HTTPS",
                             "SVCB"])
        query = dns.message.make_query(any_name(rng), rdtype)
        reply = dns.message.make_response(query)
        found = dns.rrset.from_text(
            query.question[0].name, 60, "IN", rdtype,
            *(any_record(rng, rdtype) for _ in range(rng.randint(1, 5))))
        reply.answer.append(found)
        got = codec.say("A %s %s" % (query.to_wire().hex(),
                                     reply.to_wire().hex())).split()
        assert got[:4] == ["0", "0", "0", "0"], (got, reply)
        want = sorted(r.to_digestable().hex() for r in found)
        assert sorted(got[4:]) == want, (got, want)


TESTS = [
    questions_are_read_alike,
    broken_questions_are_never_taken_for_good,
    replies_are_read_by_others,
    answers_are_read_alike,
    other_records_are_read_alike,
]


def main():
    codec = Codec()
    failed = 0
    print("1..%d" % len(TESTS))
    for number, test in enumerate(TESTS, 1):
        try:
            test(codec, random.Random(SEED + number))
            print("ok %d - %s" % (number, test.__name__))
        except AssertionError as error:
            failed = 1
            print("not ok %d - %s" % (number, test.__name__))
            print("# %s" % (error,))
    codec.process.stdin.close()
    codec.process.wait()
    return failed


sys.exit(main())
