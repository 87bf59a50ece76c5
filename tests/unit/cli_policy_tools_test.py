#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `penstock policy explain, test, diff, show and learn` say of policies."""

import glob
import json
import os
import subprocess
import tempfile

PROGRAM = os.path.abspath(os.path.join(os.environ["top_builddir"],
                                       "cli/penstock"))
RULES = os.path.abspath(os.path.join(os.environ["top_srcdir"], "rules"))

OLD = """\
[policy]
name = agent
[allow web]
hosts = api.example.com *.cdn.example.com
reason = the site
[allow db]
hosts = db.example.com
addresses = 10.0.0.0/24 192.175.48.7
ports = 5432
protocol = postgres
reason = the data base
owner = ops
[deny bad]
hosts = evil.cdn.example.com
[allow lit]
addresses = 192.175.48.0/24
ports = 53 60-70
protocol = tcp
reason = by address
"""
NEW = (OLD.replace("api.example.com", "api.example.com new.example.net")
       .replace("10.0.0.0/24", "10.0.0.0/25").replace("evil", "worse"))
REQUESTS = """\
[allow api]
hosts = api.example.com
protocol = http
methods = GET POST
paths = /v2/acme/**
reason = the team's issues
[allow seen]
hosts = tls.example.com
protocol = https
methods = GET
reason = read only
"""
CASES = """\
# what the agent needs
allow https://api.example.com/v1
deny evil.cdn.example.com   host_denied  ; a comment
deny db.example.com:5432 at 10.9.0.5 address_private
allow db.example.com:5432 at 10.0.0.5
deny 169.254.169.254:80 address_metadata
"""
BROKEN = """\
allow nowhere.example
deny api.example.com:22 host_denied
frobnicate
deny GET api.example.com
allow https://api.example.com bad_word
deny api.example.com:22 at nowhere
allow
\tdeny  a.example:0
deny a.example host_denid  # meant well
allow a.example host_denied
deny 10.0.0.1 at 10.0.0.5
deny a.example at
deny a.example  host_denied host_denied
"""
# What explain says is needed, of OLD.
RULE = "a rule for it:\n[allow NAME]\n%s\nreason = ..."
NEEDED = (
    ("nowhere.example:25", RULE % "hosts = nowhere.example\nports = 25"),
    ("--at 10.0.0.9 nowhere.example:25",
     RULE % "hosts = nowhere.example\naddresses = 10.0.0.9\nports = 25"),
    ("--at 10.0.0.9 api.example.com:25",
     RULE % "hosts = api.example.com\naddresses = 10.0.0.9\nports = 25"),
    ("192.175.48.9:54", "54 among the 'ports' of [allow lit], old.ini:15"),
    ("10.0.0.5:22", RULE % "addresses = 10.0.0.5\nports = 22"),
    ("169.254.169.254:80", RULE % "addresses = 169.254.169.254\nports = 80"),
    ("--at 10.9.0.5 db.example.com:5432", "'addresses' with 10.9.0.5 or its "
     "range, and a 'reason', in [allow db], old.ini:6"),
    ("--at 192.175.48.8 db.example.com:5432", "192.175.48.8 among the "
     "'addresses' of [allow db], old.ini:6"),
    ("--at 169.254.169.254 api.example.com", "'addresses' with "
     "169.254.169.254 itself, and a 'reason', in [allow web], old.ini:3"),
    ("com", "another host: 'com' is a top-level domain alone; write the whole "
     "name of the host"),
    ("localhost", "another host: 'localhost' is never asked of the DNS, so "
     "that the rule could not match; use 'addresses'"),
    ("198.18.0.1", "another address: '198.18.0.1' touches 198.18.0.0/15 or "
     "fd70:656e:7374:6f63::/64, out of which names get their addresses in a "
     "sandbox; write the ranges beside it"),
)
RECORDS = [
    {"ev": "flow_open", "act": "allow", "host": "a.example.com"},
    {"ev": "flow_deny", "act": "deny", "host": "b.example.com",
     "reason": "host_not_allowed"},
    {"ev": "flow_open", "act": "would_deny", "host": "c.example.com",
     "reason": "host_not_allowed"},
    {"ev": "http", "act": "error", "host": "d.example.com",
     "reason": "dns_nxdomain"},
    {"ev": "flow_open", "act": "allow", "dst_ip": "10.0.0.5",
     "reason": "allowed"},
]


def penstock(*args):
    return subprocess.run([PROGRAM, "policy", *args], capture_output=True,
                          text=True, check=False)


class Results:
    def __init__(self):
        self.rows = []

    def same(self, what, got, wanted):
        self.rows.append((what, got == wanted, "%r\n# not %r" % (got, wanted)))

    def holds(self, what, true, got):
        self.rows.append((what, bool(true), repr(got)))


def explain(r):
    done = penstock("explain", "old.ini", "https://api.example.com/x")
    r.same("an allowed target names its rule and line", (done.returncode,
           done.stdout.splitlines()[0]),
           (0, "allowed by [allow web], old.ini:3"))
    for target, reason, line in (
            ("evil.cdn.example.com", "host_denied",
             "  rule      [deny bad], old.ini:13"),
            ("api.example.com:22", "port_not_allowed",
             "  needed    22 among the 'ports' of [allow web], old.ini:3"),
            ("169.254.169.254:80", "address_metadata",
             "            addresses = 169.254.169.254"),
            ("nowhere.example:25", "host_not_allowed",
             "            hosts = nowhere.example"),
            ("http://api.example.com:443", "protocol_mismatch",
             "  needed    a rule whose 'protocol' is that of the URL on this "
             "port")):
        done = penstock("explain", "old.ini", target)
        lines = done.stdout.splitlines()
        r.holds("a refused target is explained: " + reason,
                done.returncode == 1 and lines[0] == "refused: " + reason and
                line in lines, done)
    done = penstock("explain", "--at", "10.0.0.200", "new.ini",
                    "db.example.com:5432")
    r.holds("an address is judged as the name's",
            done.stdout.startswith("refused: address_private\n"), done)
    for target, method, reason in (
            ("http://api.example.com/v2/acme/1", "GET", "allowed"),
            ("http://api.example.com/v2/acme/1?x=/../", "POST", "allowed"),
            ("http://api.example.com/v2/acme/1", "DELETE",
             "method_not_allowed"),
            ("http://api.example.com/v2/other", "GET", "path_not_allowed"),
            ("http://api.example.com/v2/acme/%2e%2e/other", "GET",
             "path_ambiguous"),
            ("https://tls.example.com/", "GET", "inspection_required")):
        done = penstock("explain", "--json", "--method", method,
                        "requests.ini", target)
        r.same("a request is judged: %s %s" % (method, target),
               json.loads(done.stdout or "{}").get("reason"), reason)
    done = penstock("explain", "--json", "old.ini", "db.example.com:5432",
                    "evil.cdn.example.com")
    said = [json.loads(line) for line in done.stdout.splitlines()]
    r.same("JSON has the same", [(s["verdict"], s["reason"], s["rule"]["line"])
                                 for s in said],
           [("allow", "allowed", 6), ("deny", "host_denied", 13)])
    done = penstock("explain", "old.ini", "api.example.com/x")
    r.same("a target that is none is told with its mend",
           (done.returncode, done.stdout, done.stderr),
           (2, "", "penstock policy explain: 'api.example.com/x' has a path; "
            "write https:// or http:// before it\n"))
    done = penstock("explain", "--at", "10.0.0.5", "old.ini", "10.0.0.6")
    r.same("an address resolves to nothing", (done.returncode, done.stderr),
           (2, "penstock policy explain: '10.0.0.6' is an address itself; "
            "--at is for names\n"))
    for target, wanted in NEEDED:
        done = penstock("explain", "--json", "old.ini", *target.split())
        said = json.loads(done.stdout or "{}")
        r.same("what is needed for " + target, said.get("needed"), wanted)
        r.same("and the target as it was given", said.get("target"),
               target.split()[-1])
    r.same("a policy that is wrong is told and not asked",
           (penstock("explain", "wrong.ini", "a.example").returncode,
            penstock("explain", "none.ini", "a.example").returncode), (2, 2))


def cases(r):
    done = penstock("test", "old.ini", "good.cases")
    r.same("cases that hold are counted", (done.returncode, done.stdout),
           (0, "5 passed, 0 failed\n"))
    done = penstock("test", "old.ini", "broken.cases")
    r.same("what does not hold is told with its line",
           [line for line in done.stdout.splitlines() if line[0] != " "],
           ["broken.cases:1: does not hold: allow nowhere.example",
            "broken.cases:2: does not hold: deny api.example.com:22 "
            "host_denied",
            "broken.cases:3:1: error: 'frobnicate' begins no case; write "
            "'allow' or 'deny', then the target",
            "broken.cases:4:10: error: 'api.example.com' stands behind a "
            "method, which needs a URL; write https:// or http:// before it",
            "broken.cases:5:31: error: 'bad_word' is no reason (see "
            "penstock-audit(5))",
            "broken.cases:6:28: error: 'nowhere' is no address; write "
            "192.0.2.1 or 2001:db8::1",
            "broken.cases:7:6: error: no target; write a URL, HOST[:PORT] or "
            "ADDRESS behind the verdict",
            "broken.cases:8:8: error: 'a.example:0' has no port behind ':'; "
            "write a number from 1 to 65535, or a URL (https://HOST, "
            "ssh://HOST)",
            "broken.cases:9:16: error: 'host_denid' is no reason (see "
            "penstock-audit(5)); did you mean 'host_denied'?",
            "broken.cases:10:17: error: 'host_denied' is a reason, and what "
            "is allowed has none; take it out",
            "broken.cases:11:18: error: '10.0.0.5' stands behind an address; "
            "'at' is for what a name resolves to",
            "broken.cases:12:18: error: no address behind 'at'",
            "broken.cases:13:29: error: 'host_denied' is one word too many",
            "0 passed, 2 failed, 11 wrong"])
    r.same("and decides the exit status", done.returncode, 2)
    done = penstock("test", "--json", "old.ini", "broken.cases")
    said = [json.loads(line) for line in done.stdout.splitlines()]
    r.same("JSON has a line a case", [s.get("holds") for s in said],
           [False, False] + [None] * 11)
    r.same("and the place of what is wrong", [s.get("column") for s in said],
           [None, None, 1, 10, 31, 28, 6, 8, 16, 17, 18, 18, 29])
    r.same("a file without a case proves nothing",
           penstock("test", "old.ini", "empty.cases").returncode, 2)


def diff(r):
    done = penstock("diff", "old.ini", "new.ini")
    r.same("what is gained and lost", (done.returncode, done.stdout), (1, """\
- no longer  db.example.com port 5432 at 10.0.0.128-10.0.0.255   was \
[allow db], old.ini:6; now address_private
+ reachable  evil.cdn.example.com port 80   [allow web], new.ini:3
+ reachable  evil.cdn.example.com port 443   [allow web], new.ini:3
+ reachable  new.example.net port 80   [allow web], new.ini:3
+ reachable  new.example.net port 443   [allow web], new.ini:3
- no longer  worse.cdn.example.com port 80   was [allow web], old.ini:3; \
now host_denied
- no longer  worse.cdn.example.com port 443   was [allow web], old.ini:3; \
now host_denied
4 gained, 3 lost
"""))
    done = penstock("diff", "--json", "new.ini", "old.ini")
    said = [json.loads(line) for line in done.stdout.splitlines()]
    r.same("the other way round", sorted(s["change"] for s in said),
           3 * ["gained"] + 4 * ["lost"])
    with open("both.ini", "w", encoding="ascii") as out:
        out.write(OLD.replace("10.0.0.0/24", "10.0.0.0/25")
                  .replace("ports = 5432", "ports = 5432 5433"))
    done = penstock("diff", "old.ini", "both.ini")
    r.same("a port that is gained hides no address that is lost",
           [line.partition("   ")[0] for line in done.stdout.splitlines()],
           ["+ reachable  db.example.com port 5433",
            "- no longer  db.example.com port 5432 at 10.0.0.128-10.0.0.255",
            "1 gained, 1 lost"])
    with open("limits.ini", "w", encoding="ascii") as out:
        out.write(OLD + "[limits]\nbytes_up = 5M\n")
    done = penstock("diff", "old.ini", "limits.ini")
    r.same("another limit is a difference", (done.returncode, done.stdout),
           (1, "- narrower   [limits] bytes_up = 5M, was not said\n"
            "no difference in what they permit\n"
            "limits: 0 wider, 1 narrower, 0 other\n"))
    with open("times.ini", "w", encoding="ascii") as out:
        out.write(OLD.replace("[allow db]\n",
                              "[allow db]\nidle_time = 10m\n"))
    done = penstock("diff", "old.ini", "times.ini")
    r.same("and another time of a rule", (done.returncode, done.stdout),
           (1, "- narrower   [allow db] idle_time = 600s, was not said\n"
            "no difference in what they permit\n"
            "limits: 0 wider, 1 narrower, 0 other\n"))
    done = penstock("explain", "--at", "10.0.0.5", "times.ini",
                    "db.example.com:5432")
    r.holds("which is said of what the rule allows",
            "\n  times     idle_time 600s\n" in done.stdout, done.stdout)
    done = penstock("explain", "--json", "--at", "10.0.0.5", "times.ini",
                    "db.example.com:5432")
    r.same("and in JSON", json.loads(done.stdout).get("idle_time_s"), 600)
    done = penstock("show", "times.ini")
    r.holds("and shown", "\nidle_time  = 600s\n" in done.stdout, done.stdout)
    done = penstock("diff", "--json", "limits.ini", "old.ini")
    r.same("and one in JSON", json.loads(done.stdout),
           {"change": "limit", "direction": "wider", "section": "limits",
            "key": "bytes_up", "was": "5M"})
    for change, wanted in (
            (("GET POST", "GET"),
             ["- no longer  api.example.com port 80  POST "
              "/v2/acme/any-name/any-name"]),
            (("/v2/acme/**", "/v2/acme/** /v3/*"),
             ["+ reachable  api.example.com port 80  GET /v3/any-name",
              "+ reachable  api.example.com port 80  HEAD /v3/any-name",
              "+ reachable  api.example.com port 80  POST /v3/any-name"]),
            (("methods = GET POST\n", ""),
             ["+ reachable  api.example.com port 80  ANY-OTHER "
              "/v2/acme/any-name/any-name"]),
            (("paths = /v2/acme/**", "paths = /v2/acme/*/** /v2/acme/**"),
             [])):
        with open("requests2.ini", "w", encoding="ascii") as out:
            out.write(REQUESTS.replace(*change))
        done = penstock("diff", "requests.ini", "requests2.ini")
        r.same("requests: %s becomes %s" % change,
               [line.partition("   ")[0] for line in
                done.stdout.splitlines()[:-1]], wanted)
    with open("moved.ini", "w", encoding="ascii") as out:
        head, *sections = OLD.split("[allow ")
        out.write(head + "".join("[allow x-" + s for s in sections[::-1]))
    done = penstock("diff", "old.ini", "moved.ini")
    r.same("what is moved and renamed is no change",
           (done.returncode, done.stdout),
           (0, "no difference in what they permit\n"))


def show(r):
    for path in ["old.ini", "new.ini", "requests.ini"] + sorted(
            glob.glob(RULES + "/examples/*.ini")):
        done = penstock("show", "--effective", path)
        with open("shown.ini", "w", encoding="utf-8") as out:
            out.write(done.stdout)
        again = penstock("show", "shown.ini")
        same = penstock("diff", path, "shown.ini")

        def rules(text):
            return [line for line in text.splitlines() if line[:1] != ";"]
        r.holds("shown, it is a policy that permits the same: " +
                os.path.basename(path),
                done.returncode == 0 and same.returncode == 0 and
                rules(again.stdout) == rules(done.stdout), (done, same))


    open("none.txt", "w", encoding="ascii").close()
    with open("hollow.ini", "w", encoding="ascii") as out:
        out.write("[allow a]\nhosts = @none.txt\naddresses = 192.175.48.1\n"
                  "ports = 443\nreason = r\n")
    done = penstock("show", "hollow.ini")
    with open("shown.ini", "w", encoding="ascii") as out:
        out.write(done.stdout)
    same = penstock("diff", "hollow.ini", "shown.ini")
    r.same("a rule whose lists are empty does not widen when shown",
           (same.returncode, "no host in its lists" in done.stdout), (0, True))
    os.mkfifo("fifo")
    with open("fifo.ini", "w", encoding="ascii") as out:
        out.write("[deny a]\nhosts = @fifo\n")
    done = penstock("check", "fifo.ini")
    r.same("a pipe that nobody writes to is no empty list",
           (done.returncode, done.stdout.splitlines()[:1]),
           (2, ["fifo.ini:2:9: error: cannot read 'fifo': No data "
                "available"]))
    with open("ranks.ini", "w", encoding="ascii") as out:
        out.write("[allow a]\nhosts = x.example.com\nprotocol = https\n"
                  "[allow b]\nhosts = x.example.com\nports = 443\n"
                  "protocol = tcp\n")
    with open("shown.ini", "w", encoding="ascii") as out:
        out.write(penstock("show", "ranks.ini").stdout)
    r.same("a default that is shown wins over no rule",
           [(penstock("explain", path, "x.example.com:443").stdout
             .splitlines()[3], penstock("diff", "ranks.ini", path).returncode)
            for path in ("ranks.ini", "shown.ini")],
           2 * [("  protocol  tcp", 0)])
    done = penstock("show", "requests.ini")
    r.holds("methods and paths are shown",
            "methods   = GET\nmethods   = POST\npaths     = /v2/acme/**\n"
            in done.stdout, done.stdout)


def named_twice(r):
    for name, text in (("one.txt", "a.example.com\n"),
                       ("part.ini", "[allow part]\nhosts = b.example.com\n"),
                       ("twice.ini", "[policy]\nname = twice\n"
                        "include = part.ini part.ini\n[allow a]\n"
                        "hosts = @one.txt @one.txt\n"),
                       ("bare.ini", "[allow a]\nhosts = @one.txt @one.txt\n"
                        "addresses = 10.0.0.0/8\n")):
        with open(name, "w", encoding="ascii") as out:
            out.write(text)
    done = penstock("check", "twice.ini")
    r.same("what stands in a line twice is warned of, and read",
           (done.returncode, done.stdout.splitlines()[:2],
            penstock("explain", "twice.ini", "a.example.com",
                     "b.example.com").returncode),
           (0, ["twice.ini:3:20: warning: 'part.ini' stands in this line "
                "twice", "twice.ini:5:18: warning: '@one.txt' stands in this "
                "line twice"], 0))
    done = penstock("check", "bare.ini")
    r.same("and spares its rule no check",
           (done.returncode, done.stdout.splitlines()[1]),
           (2, "bare.ini:3: error: [allow a] opens addresses that are not "
            "public ('10.0.0.0/8': private); say why with 'reason'"))


def full(r):
    for words in (("show", "old.ini"), ("check", "old.ini"),
                  ("explain", "old.ini", "api.example.com")):
        with open("/dev/full", "w", encoding="ascii") as out:
            done = subprocess.run([PROGRAM, "policy", *words], stdout=out,
                                  stderr=subprocess.PIPE, check=False)
        r.same("what cannot be written is told: " + words[0],
               (done.returncode, b"standard output" in done.stderr), (2, True))


def learn(r):
    with open("audit.jsonl", "w", encoding="ascii") as out:
        for i, record in enumerate(RECORDS):
            full = {"v": 1, "ts": "2026-01-01T00:00:00.000000Z", "run": "7f3a91",
                    "id": "id-%d" % i, "dst_port": 443, "transport": "tcp"}
            out.write(json.dumps(dict(full, **record)) + "\n")
    done = penstock("learn", "audit.jsonl")
    r.holds("what was reached becomes a rule, what was refused a comment",
            done.returncode == 0 and
            "[allow a.example.com]" in done.stdout and
            "; not written: b.example.com port 443" in done.stdout, done)
    r.holds("it bears the run's id, which the records have",
            "name = run-7f3a91\n" in done.stdout and
            "seen in run 7f3a91" in done.stdout, done)
    r.holds("why an address is left out is said",
            "; not written: 10.0.0.5 port 443, reached by its address: write "
            "it by hand, with 'addresses' and a 'reason'\n" in done.stdout,
            done)
    done = subprocess.run([PROGRAM, "flows", "--denied", "audit.jsonl"],
                          capture_output=True, text=True, check=False)
    r.same("flows --denied has what observing let through",
           [line.split()[1:3] for line in done.stdout.splitlines()[1:]],
           [["deny", "b.example.com:443"], ["would_deny", "c.example.com:443"]])
    done = subprocess.run([PROGRAM, "flows", "audit.jsonl"],
                          capture_output=True, text=True, check=False)
    r.same("flows has the request that failed before it had a flow",
           [line.split()[-1] for line in done.stdout.splitlines()
            if "d.example.com:443" in line], ["dns_nxdomain"])
    table = done.stdout.splitlines()[1:]
    done = subprocess.run([PROGRAM, "flows", "--json", "audit.jsonl"],
                          capture_output=True, text=True, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    r.same("flows --json has what the table has",
           [(row["act"], row["port"]) for row in rows],
           [(line.split()[1], int(line.split()[2].rpartition(":")[2]))
            for line in table])
    with open("one.jsonl", "w", encoding="ascii") as out:
        for event, more in (("flow_open", {"host": "a.example.com",
                                           "src": "192.0.2.9:40000",
                                           "parent": "corp"}),
                            ("flow_close", {"reason": "client_closed",
                                            "bytes_up": 7, "bytes_down": 9})):
            out.write(json.dumps(
                {"v": 1, "ts": "2026-01-01T00:00:00.000000Z", "act": "allow",
                 "ev": event, "id": "one", "run": "7f3a91", "dst_port": 443,
                 **more}) + "\n")
    done = subprocess.run([PROGRAM, "flows", "--json", "one.jsonl"],
                          capture_output=True, text=True, check=False)
    r.same("and a flow's end in the same object", json.loads(done.stdout),
           {"ts": "2026-01-01T00:00:00.000000Z", "ev": "flow_open",
            "id": "one", "act": "allow", "src": "192.0.2.9:40000",
            "host": "a.example.com", "port": 443, "parent": "corp",
            "end": "client_closed", "bytes_up": 7, "bytes_down": 9})
    with open("client.jsonl", "w", encoding="ascii") as out:
        out.write(json.dumps(
            {"v": 1, "ts": "2026-01-01T00:00:00.000000Z", "act": "deny",
             "ev": "flow_deny", "id": "one", "run": "listen-a-7f3a91",
             "reason": "client_not_allowed", "src": "192.0.2.9:40000",
             "dst_ip": "192.0.2.1", "dst_port": 3128}) + "\n")
    done = subprocess.run([PROGRAM, "flows", "client.jsonl"],
                          capture_output=True, text=True, check=False)
    r.holds("whom a listener refused is in the table", done.stdout.endswith(
        "  client_not_allowed  from 192.0.2.9:40000\n"), done)
    done = penstock("learn", "--refused", "--name", "r1", "audit.jsonl")
    with open("learnt.ini", "w", encoding="ascii") as out:
        out.write(done.stdout)
    r.holds("or a rule when asked, and the result is a policy",
            penstock("explain", "learnt.ini", "a.example.com",
                     "b.example.com").returncode == 0 and
            "name = run-r1" in done.stdout, done)
    open("empty.jsonl", "w", encoding="ascii").close()
    r.same("no record is no policy", penstock("learn", "empty.jsonl")
           .returncode, 1)


def main():
    r = Results()
    with tempfile.TemporaryDirectory() as where:
        os.chdir(where)
        for name, text in (("old.ini", OLD), ("new.ini", NEW),
                           ("requests.ini", REQUESTS),
                           ("wrong.ini", "[allow]\n"), ("good.cases", CASES),
                           ("broken.cases", BROKEN),
                           ("empty.cases", "# nothing\n")):
            with open(name, "w", encoding="ascii") as out:
                out.write(text)
        for part in (explain, cases, diff, show, named_twice, full,
                     learn):
            part(r)
        os.chdir("/")
    print("1..%d" % len(r.rows))
    for i, (what, ok, got) in enumerate(r.rows, 1):
        print("%sok %d - %s" % ("" if ok else "not ", i, what))
        if not ok:
            print("# got " + got)
    return any(not ok for _, ok, _ in r.rows)


if __name__ == "__main__":
    raise SystemExit(main())
