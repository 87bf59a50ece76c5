# SPDX-License-Identifier: Apache-2.0
"""`penstock dns explain` says what the door of a sandbox then answers."""
import itertools
import json
import os

import pytest

from conftest import ADDRESSES, NUMBER
import dnswire as w

RULES = """\
[policy]
name = lab
%%s
[allow web]
hosts     = *.example.com deep.below.example.net
addresses = %s
reason    = the lab's origins live in documentation ranges
owner     = tests
[allow old]
hosts   = old.example.org
expires = 2020-01-01
reason  = it was needed once
[deny bad]
hosts = bad.example.com *.bad.example.com
""" % ADDRESSES
POLICIES = {
    "default": RULES % "",
    "observing": RULES % "mode = observe",
    "without-ipv6": RULES % "[dns]\nipv6 = off",
    "real": RULES % "[dns]\nanswers = real",
    "refusing": RULES % "[dns]\ndenied = refused",
    "empty": "[policy]\nname = nothing\n",
}
OF_THE_RUN = "1.0.18.198.in-addr.arpa"
NAMES = [
    "web.example.com", "v4.example.com", "nothere.example.com", "example.com",
    "com", "below.example.net", "deep.below.example.net", "example.net",
    "x.deep.below.example.net", "denied.example.net", "bad.example.com",
    "x.bad.example.com", "old.example.org", "localhost", "x.localhost",
    "box", "box.example.org", "sandbox", "printer.local", "x.invalid",
    "x.onion", "x.test", "metadata.google.internal", "router.home.arpa",
    "1.0.0.127.in-addr.arpa", "7.113.0.203.in-addr.arpa", "10.in-addr.arpa",
    "in-addr.arpa", "300.1.1.1.in-addr.arpa", OF_THE_RUN,
    ".".join("1" + "0" * 31) + ".ip6.arpa", "8.b.d.0.1.0.0.2.ip6.arpa",
    "ip6.arpa", ".", "a_b.example.com", "*.example.com", "w eb.example.com",
    "1.2.3", "0x7f.1", "xn--a.example.com", "a" * 63 + ".example.net",
]
TYPES = {"A": 1, "AAAA": 28, "TXT": 16, "HTTPS": 65, "PTR": 12, "MX": 15,
         "SOA": 6, "CNAME": 5, "NULL": 10, "ANY": 255, "AXFR": 252,
         "TYPE0": 0, "TYPE1000": 1000, "TYPE128": 128}
RCODES = {0: "NOERROR", 2: "SERVFAIL", 3: "NXDOMAIN", 5: "REFUSED"}
ASKED = list(itertools.product(NAMES, TYPES))


def explained(penstock, policy):
    """What it says of each, in order; the policy's path is the same one."""
    path = os.path.join(penstock.workdir(), "explain-%d.ini" % next(NUMBER))
    with open(path, "w", encoding="ascii") as out:
        out.write(policy)
    said = []
    for name in NAMES:
        done = penstock.lab.host.run(
            [penstock.program, "dns", "explain", "--policy", path, "--name",
             "box", "--json", "--", name, *TYPES],
            uid=penstock.uid, capture_output=True, text=True)
        assert done.stderr == "", name
        said += [json.loads(line) for line in done.stdout.splitlines()]
    assert len(said) == len(ASKED)
    return said


def answered(penstock, policy):
    """The replies of a door, and its records, in the same order."""
    lines = ["tcp4 1 " + w.ask(i, name, TYPES[rdtype],
                               extra=[w.opt()]).hex()
             for i, (name, rdtype) in enumerate(ASKED)]
    got = penstock.python(w.ASK, stdin="\n".join(lines) + "\n", policy=policy,
                          options=["--name", "box"], timeout=240)
    replies = [w.Reply(bytes.fromhex(line.split()[1]))
               for line in got.out.splitlines()]
    assert [r.ident for r in replies] == list(range(len(ASKED))), got.err
    records = got.dns()
    assert len(records) == len(ASKED)
    return replies, records


@pytest.mark.parametrize("which", POLICIES)
def test_what_is_explained_is_what_is_answered(as_user, lab, which):
    said = explained(as_user, POLICIES[which])
    before = len(lab.dns_seen())
    replies, records = answered(as_user, POLICIES[which])
    left = {q["name"].lower().rstrip(".") for q in lab.dns_seen(before)}
    allowed = set()
    for asked, one, reply, record in zip(ASKED, said, replies, records):
        # Who decided: the very same reason, rule and verdict.
        if asked[0] == OF_THE_RUN and one["by"] == "local":
            assert "rcode" not in one and "unknown" in one, asked
            assert reply.rcode == w.NXDOMAIN     # it was never given
        elif not one["asks"]:
            assert one["rcode"] == RCODES[reply.rcode], asked
            assert one["reason"] == record["reason"], asked
            assert one["verdict"] == record["act"], asked
            ede = reply.options.get(w.EDE, b"\0\0")
            assert one.get("ede", 0) == int.from_bytes(ede[:2], "big"), asked
            assert len(one.get("answers", [])) == len(reply.answer), asked
        else:
            assert record["act"] in ("allow", "error", "would_deny", "deny")
            allowed.add(one["name"])
            if record["act"] == "would_deny":
                assert (one["verdict"], one["reason"]) == \
                    ("observe", record["reason"]), asked
        assert one.get("rule", {}).get("name") == record.get("rule"), asked
    # And nothing left for a name of which it says that nobody is asked.
    assert left <= allowed, left - allowed
    assert bool(left) == bool(allowed) == (which != "empty")
