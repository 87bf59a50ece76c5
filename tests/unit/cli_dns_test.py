#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `penstock dns explain` says of names, without a sandbox.

That the doors of sandboxes answer just so is held by tests/e2e/test_dns_explain.py.
"""

import json
import os
import subprocess
import tempfile

PROGRAM = os.path.abspath(os.path.join(os.environ["top_builddir"],
                                       "cli/penstock"))
PRESETS = os.path.abspath(os.path.join(os.environ["top_srcdir"],
                                       "rules/presets"))
POLICY = """\
[policy]
name = agent
[allow web]
hosts = *.example.com
reason = the site
types = TXT
[deny bad]
hosts = bad.example.com worse.example.com *.worse.example.com
[allow old]
hosts = old.example.net
reason = gone
expires = 2020-01-01
[allow backwards]
hosts = 8.48.175.192.in-addr.arpa
types = PTR
reason = whose it is
[allow sent]
hosts = sent.example.org
parent = corp
[allow straight]
hosts = straight.example.org
parent = none
"""


def run(*args):
    return subprocess.run([PROGRAM, "dns", *args], capture_output=True,
                          text=True, check=False)


# Arguments behind `explain --policy FILE --json`, --ipv4 for the policy without
# IPv6; the exit code; what the object holds.
TABLE = [
    (["www.example.com"], 0, {
        "verdict": "allow", "reason": "allowed", "name": "www.example.com",
        "type": "A", "by": "world", "asks": True}),
    (["WWW.Example.COM.", "aaaa"], 0, {
        "name": "www.example.com", "type": "AAAA", "by": "world"}),
    (["other.example.net"], 1, {
        "verdict": "deny", "reason": "host_not_allowed", "by": "policy",
        "asks": False, "rcode": "NXDOMAIN", "ede": 15}),
    (["example.com"], 1, {
        "verdict": "deny", "reason": "host_not_allowed", "by": "policy",
        "rcode": "NOERROR", "ede": 15}),
    (["bad.example.com"], 1, {
        "verdict": "deny", "reason": "host_denied", "by": "policy",
        "rcode": "NOERROR", "ede": 15}),
    (["worse.example.com"], 1, {
        "verdict": "deny", "reason": "host_denied", "by": "policy",
        "rcode": "NXDOMAIN", "ede": 15}),
    (["sent.example.org"], 0, {"by": "world", "parent": "corp"}),
    (["sent.example.org", "TXT"], 1, {"by": "type_off", "parent": None}),
    (["straight.example.org"], 0, {"by": "world", "parent": None}),
    (["old.example.net"], 1, {"reason": "rule_expired", "by": "policy"}),
    (["www.example.com", "MX"], 1, {
        "reason": "type_not_allowed", "by": "type_off", "rcode": "NOERROR",
        "ede": 17}),
    (["www.example.com", "TYPE255"], 1, {
        "type": "ANY", "by": "type", "rcode": "REFUSED"}),
    (["--ipv4", "www.example.com", "AAAA"], 0, {
        "verdict": "allow", "by": "no_ipv6", "rcode": "NOERROR",
        "asks": False, "reason": "dns_no_address"}),
    (["."], 1, {"by": "root", "rcode": "NOERROR"}),
    (["a b.example.com"], 1, {
        "reason": "host_not_allowed", "by": "no_host", "rcode": "NXDOMAIN"}),
    (["w\u00eb.example.com"], 1, {
        "by": "no_host",
        "needed": "the name as programs ask for it, with A-labels: 'xn--...'"}),
    (["localhost"], 0, {
        "verdict": "allow", "by": "local", "asks": False, "rcode": "NOERROR",
        "answers": ["127.0.0.1"]}),
    (["x.localhost", "AAAA"], 0, {"by": "local", "answers": ["::1"]}),
    (["localhost", "MX"], 0, {
        "by": "local", "reason": "dns_no_address", "rcode": "NOERROR",
        "answers": []}),
    (["sandbox"], 0, {"by": "local", "answers": ["127.0.0.1"]}),
    (["--name", "box", "box"], 0, {"by": "local", "answers": ["127.0.0.1"]}),
    (["--name", "box", "sandbox"], 1, {"by": "policy", "rcode": "NXDOMAIN"}),
    (["127.0.0.1"], 0, {
        "name": "1.0.0.127.in-addr.arpa", "type": "PTR", "by": "local",
        "answers": ["localhost"]}),
    (["::1"], 0, {"name": ".".join("1" + "0" * 31) + ".ip6.arpa",
                  "answers": ["localhost"]}),
    (["10.1.2.3"], 1, {
        "verdict": "error", "reason": "dns_nxdomain", "by": "local",
        "rcode": "NXDOMAIN"}),
    (["192.175.48.7"], 1, {
        "by": "local", "rcode": "NXDOMAIN", "needed": "a rule with this name "
        "among its 'hosts', and 'types = PTR'"}),
    (["192.175.48.8"], 0, {"by": "world", "type": "PTR", "asks": True}),
    (["printer.local"], 1, {
        "verdict": "deny", "by": "local", "rcode": "NXDOMAIN", "ede": 15}),
    (["--observe", "other.example.net"], 1, {
        "verdict": "observe", "reason": "host_not_allowed", "by": "world"}),
    (["--observe", "metadata.google.internal"], 1, {
        "verdict": "deny", "by": "policy"}),
]


def table(path):
    faults = []
    for args, code, want in TABLE:
        file = path + ".ipv4" if args[0] == "--ipv4" else path
        done = run("explain", "--policy", file, "--json",
                   *[arg for arg in args if arg != "--ipv4"])
        got = json.loads(done.stdout) if done.stdout else {}
        held = {key: got.get(key) for key in want}
        if done.returncode != code or held != want or done.stderr:
            faults.append("%s: %d %s %s" % (args, done.returncode, held,
                                            done.stderr))
    return faults


def words(path):
    """The text says the rule and its line, what is open, and the mend."""
    faults = []
    for args, code, wanted in [
            (["www.example.com", "AAAA"], 0,
             ["allowed by [allow web], %s:3\n" % path,
              "  rule      [allow web], %s:3: the site\n" % path,
              "  unknown   whether the name exists",
              "fd70:656e:7374:6f63::/64", "an IPv6 route"]),
            (["other.example.net"], 1,
             ["refused: host_not_allowed\n", "  rule      none\n",
              "  answer    NXDOMAIN, with extended error 15 (Blocked): "
              "host_not_allowed\n", "  asks      nobody\n",
              "            hosts = other.example.net\n"]),
            (["bad.example.com"], 1, ["[deny bad], %s:7" % path]),
            (["www.example.com", "MX", "TXT"], 1,
             ["'types = MX' in a rule for this name, or in [dns]"]),
            (["198.18.1.1"], 1,
             ["answered here: as the run has it", "  unknown   "]),
            (["bad.example.com"], 1, ["names below it are allowed"]),
            (["a\x1bb.example"], 1, [
                "  name      a?b.example\n",
                "  odd       the byte 0x1b, a control character\n"]),
            (["a b.example"], 1, ["  odd       a blank\n"]),
            (["sent.example.org"], 0, [
                "  parent    corp\n",
                "  unknown   whether anybody is asked here: a parent with "]),
            (["b@a.example"], 1, ["  odd       '@'\n"]),
            (["w\u00eb.example"], 1, ["the byte 0xc3, of a letter"]),
            (["https://a.example/"], 1, ["  needed    the name alone; "]),
            (["a.example:443"], 1, ["  needed    the name alone; "]),
            (["*.example.com"], 1, ["  needed    one name below it"]),
            (["1.2.3"], 1, ["and is no number"])]:
        done = run("explain", "--policy", path, *args)
        faults += ["%s: no %r in %s" % (args, text, done.stdout)
                   for text in wanted if text not in done.stdout]
        if done.returncode != code:
            faults.append("%s: exit %d" % (args, done.returncode))
    return faults


def sources():
    """--allow and presets stand for what they do in a run; none for nothing."""
    faults = []
    for args, code in [(["--allow", "*.example.com", "www.example.com"], 0),
                       (["--allow", "www.example.com", "w.example.com"], 1),
                       (["--preset-dir", PRESETS, "--preset", "pypi", "pypi.org"], 0),
                       (["--preset-dir", PRESETS, "--preset", "pypi", "npm.org"], 1),
                       (["www.example.com"], 1), (["localhost"], 0)]:
        done = run("explain", *args)
        if done.returncode != code or done.stderr:
            faults.append("%s: exit %d %s" % (args, done.returncode,
                                              done.stderr))
    return faults


def mistakes(path):
    faults = []
    with open(path + ".bad", "w", encoding="ascii") as out:
        out.write("[allow x]\nhost = a.example.com\n")
    for args, wanted in [
            (["explain"], "which NAME or ADDRESS?"),
            (["explain", "a..example"], "is no DNS name"),
            (["explain", "x" * 64 + ".example"], "is no DNS name"),
            (["explain", "a.example", "FOO"], "FOO: is no type"),
            (["explain", "a.example", "TYPE65536"], "is no type"),
            (["explain", "--policy", path + ".none", "a.example"], ".none"),
            (["explain", "--policy", path + ".bad", "a.example"],
             ".bad:2"),
            (["explain", "--allow", "10.0.0.0/8", "a.example"], "--allow"),
            (["explain", "a..example"], "penstock dns explain: a..example:"),
            (["explian", "a.example"], "no verb 'explian'"),
            ([], "which verb?")]:
        done = run(*args)
        if done.returncode != 2 or wanted not in done.stderr or done.stdout:
            faults.append("%s: %d %s" % (args, done.returncode, done.stderr))
    return faults


def main():
    with tempfile.TemporaryDirectory() as where:
        path = os.path.join(where, "agent.ini")
        with open(path, "w", encoding="ascii") as out:
            out.write(POLICY)
        with open(path + ".ipv4", "w", encoding="ascii") as out:
            out.write(POLICY + "[dns]\nipv6 = off\n")
        results = [("each question has its verdict", table(path)),
                   ("the text says why, and what would be needed", words(path)),
                   ("the policy is that of a run", sources()),
                   ("mistakes are said with their place", mistakes(path))]
    print("1..%d" % len(results))
    for i, (what, faults) in enumerate(results, 1):
        print("%sok %d - %s" % ("not " if faults else "", i, what))
        for fault in faults:
            print("# " + fault.replace("\n", "\n# "))


main()
