# SPDX-License-Identifier: Apache-2.0
"""Slow and flooding sandboxes beside one that works (OPS-01, OPS-03, OPS-08).

One service with one worker, and on it two sandboxes and a listener on the
host's address.  One sandbox attacks; the other does one of everything while
that lasts: a tunnel that is open, a new one, a request, a direct connection, a
question.  Bounds are made short by policies that are loaded meanwhile; no time
is looked at, only what came of it: answers, records, descriptors, memory.
"""
import json
import os
import re
import select
import subprocess
import time

import pytest

from conftest import ADDRESSES, Penstock, children, program_of
from test_listen import GATE4, WEB, Listening, policy as listen_policy
from test_reload import reload

# Descriptors that the daemon may have, 128 of which are its reserve.
FILES, RESERVE = 2048, 128
# Connections of the hostile sandbox; beyond these 256 are there to be told so.
MANY, TOLD = 200, 256
FLOOD = 1200
EACH = 8                # of each kind of slow flow
BIG = 1 << 30           # an answer that is never read to its end
# What one slow flow may hold in the daemon: buffers of both ways, and in the
# kernel, both ends of it together.
FLOW_KB, FLOW_KERNEL_KB = 256, 16384

AGENT = r"""
import json, os, resource, select, socket, struct, sys, threading
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
PROXY, SOCKS = ("127.0.0.1", 3128), ("127.0.0.1", 1080)
held, running = {}, {}

def head_of(s):
    got = b""
    while b"\r\n\r\n" not in got:
        more = s.recv(4096)
        if not more:
            break
        got += more
    return got.split(b"\r\n")[0].decode("latin-1")

def dial(at):
    s = socket.create_connection(at, 30)
    s.settimeout(30)
    return s

def ask(text, at=PROXY):
    s = dial(at)
    s.sendall(text)
    return s

def tunnel(port):
    s = ask(b"CONNECT web.example.com:%d HTTP/1.1\r\n\r\n" % port)
    said = head_of(s)
    if " 200 " not in said:
        raise OSError(said)
    return s

def echo(s, text=b"ping"):
    s.sendall(text)
    got = b""
    while len(got) < len(text):
        more = s.recv(100)
        if not more:
            raise OSError("closed")
        got += more
    return got == text

def get(path):
    s = ask(b"GET http://web.example.com%s HTTP/1.1\r\nHost: web.example.com\r\n"
            b"Connection: close\r\n\r\n" % path)
    return head_of(s)

def work(fresh):
    "One of everything, the old tunnel first; what was wrong, or nothing."
    if "old" not in held:
        held["old"] = [tunnel(7)]
    at = "old"
    try:
        assert echo(held["old"][0])
        at = "tunnel"
        with tunnel(7) as s:
            assert echo(s)
        at = "request"
        assert get(b"/work") == "HTTP/1.1 200 OK"
        at = "name"
        assert socket.getaddrinfo("web.example.com", 7)
        try:
            socket.getaddrinfo("n%d.denied.example.net" % fresh, 7)
            return "a denied name"
        except socket.gaierror:
            pass
        at = "straight"
        with dial(("web.example.com", 7)) as s:
            assert echo(s)
    except (OSError, AssertionError) as e:
        return "%s: %r" % (at, e)
    return ""

def knock(name, n, at):
    "Connections that never say a word, and are not waited for."
    at = socket.getaddrinfo(*at, socket.AF_INET)[0][4]
    for i in range(n):
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        s.connect_ex(at)
        held.setdefault(name, []).append(s)
    return n

def drop(name, reset=False):
    for s in held.pop(name, []):
        if reset:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    return True

def begin(name, n, text, at):
    "Connections that have said so much, and are held."
    held.setdefault(name, []).extend(
        ask(text.encode("latin-1"), tuple(at)) for i in range(n))
    return n

def begin_tunnels(name, n, port, text=""):
    for i in range(n):
        held.setdefault(name, []).append(tunnel(port))
        held[name][-1].sendall(text.encode())
    return n

def drip(name, text):
    "One byte more in each; how many of them live."
    for s in list(held[name]):
        try:
            s.send(text.encode(), socket.MSG_NOSIGNAL)
        except OSError:
            held[name].remove(s)
    return len(held[name])

def told(name):
    "What each was told in the end, in so many words."
    said = []
    for s in held.pop(name):
        try:
            said.append(head_of(s))
        except OSError as e:
            said.append(type(e).__name__)
    return sorted(set(said))

def stuff(name, text):
    "As much as it takes; bytes that went."
    went, data = 0, text.encode() * 512
    for s in held[name]:
        s.setblocking(False)
        try:
            while went < 1 << 28:
                went += s.send(data)
        except BlockingIOError:
            pass
        s.settimeout(30)
    return went

def forever(name, step):
    stop = threading.Event()
    def run():
        done = 0
        while not stop.is_set():
            try:
                step(done)
            except OSError:
                pass
            done += 1
        running[name][2] = done
    running[name] = [stop, threading.Thread(target=run, daemon=True), 0]
    running[name][1].start()

def churn(n):
    "Silent, or to a host that refuses: no origin of the neighbour's is busy."
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.connect(PROXY)
    if n % 3 == 1:
        s.send(b"CONNECT closed.example.com:7 HTTP/1.1\r\n\r\n")
    if n % 3 == 2:
        s.send(b"GET http://closed.example.com/ HTTP/1.1\r\n"
               b"Host: closed.example.com\r\n\r\n")
    s.close()

udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def question(n):
    label = b"%08d" % n
    udp.sendto(struct.pack("!6H", n & 65535, 256, 1, 0, 0, 0) + b"\10" + label +
               b"\6denied\7example\3net\0\0\1\0\1", ("203.0.113.53", 53))

def stream(name, kind):
    "A big answer that is read as it comes, until it is cut."
    if kind == "tunnel":
        s = tunnel(19)
        s.sendall(b"%d\n" % (1 << 40))
    else:
        s = ask(b"GET http://web.example.com/bytes/%d HTTP/1.1\r\n"
                b"Host: web.example.com\r\n\r\n" % (1 << 40))
    got = threading.Event()
    def run():
        n = 0
        try:
            while more := s.recv(1 << 16):
                n += len(more)
                got.set()
        except OSError:
            pass
        got.set()
        running[name][2] = n
    running[name] = [threading.Event(), threading.Thread(target=run, daemon=True), 0]
    running[name][1].start()
    return got.wait(30)

def until(name):
    running[name][1].join(60)
    return running.pop(name)[2]

def halt(name):
    running[name][0].set()
    return until(name)

def post(pieces):
    s = ask(b"POST http://web.example.com/sha256 HTTP/1.1\r\n"
            b"Host: web.example.com\r\nTransfer-Encoding: chunked\r\n\r\n")
    try:
        for text, n in pieces:
            s.sendall(text.encode() * n)
    except OSError:
        pass
    return head_of(s)

def first(at, text):
    return head_of(ask(text.encode(), tuple(at)))

ACTS = dict(work=work, knock=knock, drop=drop, begin=begin, drip=drip,
            begin_tunnels=begin_tunnels, told=told, stuff=stuff, until=until,
            halt=halt, stream=stream, post=post, first=first,
            churn=lambda: forever("churn", churn),
            questions=lambda: forever("questions", question),
            hello=lambda: True)
for line in sys.stdin:
    word, *args = json.loads(line)
    try:
        said = ACTS[word](*args)
    except Exception as e:
        said = "failed: %r" % e
    print(json.dumps(said), flush=True)
"""


def policy(name, limits="", rule=""):
    return """\
[policy]
name = %s
[allow web]
hosts = web.example.com closed.example.com
addresses = %s
reason = the lab's origins live in documentation ranges
[allow plain]
hosts = web.example.com closed.example.com
ports = 7 19
protocol = tcp
addresses = %s
reason = echo, and answers without an end
%s
[limits]
%s
""" % (name, ADDRESSES, ADDRESSES, rule, limits)


class Sandbox:
    """A program in one of the service's sandboxes that does as it is told."""

    def __init__(self, room, text):
        self.room, self.run = room, Penstock(room.lab, None)
        self.process = self.run.start(
            "/usr/bin/python3", "-u", "-c", AGENT, policy=text,
            options=["--plug", room.dir + "/plug.sock"])
        assert self.do("hello") is True
        with open(self.process.records_path, encoding="ascii") as log:
            self.id = json.loads(log.readline())["run"]

    def tell(self, *words):
        self.process.stdin.write(json.dumps(words).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self):
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        assert ready, "no answer"
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        said = json.loads(line)
        assert not str(said).startswith("failed: "), said
        return said

    def do(self, *words):
        self.tell(*words)
        return self.hear()

    def limits(self, text, rule=""):
        """Another policy from now on, while everything goes on."""
        path = os.path.join(self.room.lab.dir, "attack.ini")
        with open(path, "w", encoding="ascii") as out:
            out.write(policy("hostile", text, rule))
        got = reload(self.run, "--run", self.id, "--policy", path)
        assert got.returncode == 0, got.stderr

    def end(self):
        self.process.stdin.close()
        self.process.stdout.read()
        err = self.process.stderr.read()
        assert self.process.wait(60) == 0, err


class Room:
    """The service, its records as they come, and both sandboxes."""

    def __init__(self, lab):
        self.lab = lab
        self.host = Listening(lab)
        self.dir = self.host.dir
        self.host.write_policy("web", listen_policy("web"))
        self.host.start(WEB.split("[listen watch]")[0],
                        service="workers = 1\ndrain_seconds = 1",
                        before=["prlimit", "--nofile=%d:%d" % (FILES, FILES)])
        self.pid = self.host.process.pid
        self.at, self.seen, self.questions = 0, {}, 0
        self.hostile = Sandbox(self, policy("hostile"))
        self.good = Sandbox(self, policy("good"))
        self.fresh = 0
        self.works()

    def works(self):
        """The neighbour does one of everything, right now."""
        self.fresh += 1
        assert self.good.do("work", self.fresh) == ""

    def records(self, run, **want):
        with open(self.host.log, "rb") as log:
            log.seek(self.at)
            text = log.read()
        text = text[:text.rfind(b"\n") + 1]
        self.at += len(text)
        for line in text.splitlines():
            if b'"ev":"dns"' in line:       # floods of them: counted alone
                self.questions += 1
                continue
            r = json.loads(line)
            self.seen.setdefault(r["run"], []).append(r)
        return [r for r in self.seen.get(run, [])
                if all(r.get(k) == v for k, v in want.items())]

    def until(self, count, run=None, **want):
        """Records, of the hostile one; its neighbour works until they are there."""
        end = time.monotonic() + 60
        while True:
            self.works()
            found = self.records(run or self.hostile.id, **want)
            if len(found) >= count:
                return found
            assert time.monotonic() < end, (want, len(found))

    def files(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def until_files(self, most):
        end = time.monotonic() + 60
        while self.files() > most:
            assert time.monotonic() < end, (self.files(), most)
            self.works()

    def resident_kb(self):
        with open("/proc/%d/status" % self.pid, encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])

    def kernel_kb(self):
        """Socket buffers, of the host and of the hostile sandbox."""
        total = 0
        inside = [pid for pid in children(self.hostile.process.pid)
                  if program_of(pid).startswith("python3")][0]
        for pid in (self.lab.host.pid, inside):
            said = subprocess.run(
                ["nsenter", "--target", str(pid), "--net", "ss", "-tmnH"],
                capture_output=True, text=True, check=True).stdout
            for queued in re.findall(
                    r"skmem:\(r(\d+),rb\d+,t(\d+),tb\d+,f(\d+)", said):
                # What is taken ahead is less than nothing for a moment, and
                # ss knows no sign.
                total += sum((int(n) + 2 ** 31) % 2 ** 32 - 2 ** 31
                             for n in queued)
        return total >> 10

    def close(self):
        for sandbox in (self.hostile, self.good):
            sandbox.end()
        assert self.host.stop() == 0, self.host.said
        self.host.close()


@pytest.fixture(scope="module")
def room(lab):
    made = Room(lab)
    yield made
    made.close()


@pytest.fixture
def calm(room):
    """As before, afterwards: no limits, and nothing of the hostile one's."""
    room.hostile.limits("")
    room.calm_files = room.files()
    yield room
    for name in ("a", "b", "c", "d", "e", "old"):
        room.hostile.do("drop", name)
    room.hostile.limits("")
    room.until_files(room.calm_files + 40)
    assert room.hostile.do("work", 0) == ""


DOORS = [("127.0.0.1", 3128), ("127.0.0.1", 1080), ("web.example.com", 80),
         ("web.example.com", 443)]


def test_half_open_connections_are_bounded_where_they_come_from_OPS_03(calm):
    # OPS-03
    hostile = calm.hostile
    hostile.limits("connections = %d" % MANY)
    for door in DOORS:
        hostile.do("knock", "a", FLOOD // len(DOORS), door)
    told = calm.until(TOLD, ev="flow_deny", reason="connections_exceeded")
    assert calm.files() <= calm.calm_files + MANY + TOLD + 8
    assert calm.until(1, ev="limit", reason="connections_exceeded")
    assert {r["via"] for r in told} <= {"forward", "socks", "transparent"}
    # The control socket answers meanwhile.
    hostile.limits("connections = %d\nidle_time = 1h" % MANY)
    assert not calm.records(hostile.id, reason="client_closed_early")
    hostile.do("drop", "a")
    # Each that was let in has left its record by the end.
    calm.until(MANY, ev="flow_deny", reason="client_closed_early")


def test_the_last_descriptors_are_kept_from_whoever_floods_OPS_01(calm):
    # OPS-01
    hostile = calm.hostile
    hostile.limits("connections = 4000")
    old = calm.good.do("begin_tunnels", "a", 1, 7)
    for door in DOORS[:2]:
        hostile.do("knock", "a", FILES // 2 + 100, door)
    end = time.monotonic() + 60
    while not calm.records(hostile.id, reason="descriptors_exceeded"):
        assert time.monotonic() < end
        assert calm.good.do("drip", "a", "x") == old
    assert calm.files() <= FILES - RESERVE // 4
    # What must go on has its place: policies, and runs that come and go.
    hostile.limits("connections = 4000\nidle_time = 1h")
    run = Penstock(calm.lab, None)
    assert run.run("true", options=["--plug", calm.dir + "/plug.sock"]).code == 0
    hostile.do("drop", "a", True)
    calm.good.do("drop", "a")
    # And who is new is served again.
    calm.until_files(calm.calm_files + 40)
    calm.works()


def test_slow_heads_end_by_their_time_and_nobody_waits_for_them(calm):
    # OPS-03: byte by byte, and as first bytes that never become a hello.
    hostile = calm.hostile
    hostile.limits("header_time = 1s")
    http = "GET http://web.example.com/ HTTP/1.1\r\nA: "
    hostile.do("begin", "a", EACH, "CONNECT web.example.com:7 HTTP/1.1\r\nA: ",
               DOORS[0])
    hostile.do("begin", "b", EACH, http, DOORS[0])
    hostile.do("begin", "c", EACH, "\x05", DOORS[1])
    hostile.do("begin", "d", EACH, "\x16\x03\x01\x02\x00\x01", DOORS[3])
    hostile.do("begin", "e", EACH, "GET / HTTP/1.1\r\nA: ", DOORS[2])
    ended = 0
    while ended < 5 * EACH:
        calm.works()
        for name in ("a", "b", "e"):
            hostile.do("drip", name, "x")
        ended = sum(len(calm.records(hostile.id, ev=ev, reason=reason))
                    for ev, reason in (("flow_deny", "header_timeout"),
                                       ("http", "header_timeout"),
                                       ("flow_deny", "hello_incomplete")))
    for name, words in (("a", "HTTP/1.1 408 header_timeout"),
                        ("b", "HTTP/1.1 408 header_timeout"),
                        ("e", "HTTP/1.1 408 header_timeout"),
                        ("c", "\x05\xff"), ("d", "\x15\x03\x01\x00\x02\x02\x32")):
        said = hostile.do("told", name)
        assert set(said) <= {words, "ConnectionResetError"}, (name, said)


def test_who_does_not_read_holds_no_more_than_its_buffers(calm):
    # OPS-03, OPS-08
    hostile = calm.hostile
    before, kernel = calm.resident_kb(), calm.kernel_kb()
    hostile.do("begin", "a", EACH, "GET http://web.example.com/bytes/%d HTTP/1.1"
               "\r\nHost: web.example.com\r\n\r\n" % BIG, DOORS[0])
    hostile.do("begin_tunnels", "b", EACH, 19, "%d\n" % BIG)
    # Requests without an end, and not one answer is read.
    hostile.do("begin", "c", EACH, "", DOORS[0])
    one = "GET http://web.example.com/bytes/9999 HTTP/1.1\r\n" \
        "Host: web.example.com\r\n\r\n"
    went, more = 0, 1
    while more:
        more = hostile.do("stuff", "c", one)
        went += more
        calm.works()
    assert went < EACH * (FLOW_KERNEL_KB << 10)
    assert hostile.do("work", 0) == "", "its own other flows"
    assert calm.resident_kb() - before < 3 * EACH * FLOW_KB
    assert calm.kernel_kb() - kernel < 3 * EACH * FLOW_KERNEL_KB
    # And where the policy knows idle_time, they end by it.
    hostile.limits("idle_time = 1s")
    calm.until(EACH, ev="flow_close", reason="idle_timeout", dst_port=19)
    calm.until(EACH, ev="http", reason="idle_timeout")
    calm.until_files(calm.calm_files + 40)


def test_tunnels_that_are_only_held_end_by_their_idle_time(calm):
    # OPS-03
    hostile = calm.hostile
    hostile.do("begin_tunnels", "a", 10 * EACH, 7)
    hostile.limits("idle_time = 1s")
    calm.until(10 * EACH, ev="flow_close", reason="idle_timeout", dst_port=7)
    assert hostile.do("told", "a") == ["ConnectionResetError"]


def test_a_smaller_policy_holds_for_what_is_open_too_POL_06(calm):
    hostile = calm.hostile
    hostile.do("begin_tunnels", "a", 20, 7)
    hostile.limits("connections = 10")
    # Those that are there stay, and no new one is let in.
    assert hostile.do("drip", "a", "x") == 20
    said = hostile.do("first", DOORS[0],
                      "CONNECT web.example.com:7 HTTP/1.1\r\n\r\n")
    assert said == "HTTP/1.1 429 connections_exceeded"
    hostile.do("drop", "a")
    # Three flows in mid-stream: one body is still coming up, byte by byte.
    hostile.limits("")
    assert hostile.do("stream", "tunnel", "tunnel")
    assert hostile.do("stream", "request", "request")
    hostile.do("begin", "b", EACH, "POST http://web.example.com/sha256 HTTP/1.1\r\n"
               "Host: web.example.com\r\nContent-Length: 100000\r\n\r\n", DOORS[0])
    for _ in range(3):
        assert hostile.do("drip", "b", "x") == EACH
        calm.works()
    hostile.limits("flow_time = 1s")
    while len(calm.records(hostile.id, ev="http",
                           reason="flow_time_exceeded")) < EACH + 1:
        calm.works()
        hostile.do("drip", "b", "x")
    cut = calm.until(2, ev="flow_close", reason="flow_time_exceeded")
    assert {19, 80} <= {r["dst_port"] for r in cut}
    assert all(r["dur_ms"] >= 1000 for r in cut)
    assert hostile.do("until", "tunnel") > 0
    assert hostile.do("until", "request") > 0
    assert hostile.do("told", "b") == ["HTTP/1.1 429 flow_time_exceeded"]
    # Bytes that passed under the larger policy count, for the next flow too.
    hostile.limits("")
    assert hostile.do("stream", "tunnel", "tunnel")
    hostile.limits("bytes_down = 64K")
    assert hostile.do("until", "tunnel") > 0
    calm.until(1, ev="flow_close", reason="bytes_exceeded")
    said = hostile.do("first", DOORS[0],
                      "CONNECT web.example.com:7 HTTP/1.1\r\n\r\n")
    assert said == "HTTP/1.1 429 bytes_exceeded"


def test_churn_and_questions_without_an_end_cost_the_neighbour_nothing(calm):
    # TUN-11, DNS floods
    hostile = calm.hostile
    hostile.do("churn")
    hostile.do("questions")
    for _ in range(30):
        calm.works()
    asked, came = hostile.do("halt", "questions"), hostile.do("halt", "churn")
    assert came > 100 and asked > 100
    # Where the policy has a rate, it is told so.
    hostile.limits("new_connections = 10")
    hostile.do("churn")
    calm.until(10, reason="connection_rate_exceeded")
    hostile.do("halt", "churn")


def test_bodies_in_the_smallest_pieces_and_without_an_end(calm):
    hostile = calm.hostile
    hostile.tell("post", [["1\r\nx\r\n", 100000], ["0\r\n\r\n", 1]])
    calm.works()
    assert hostile.hear() == "HTTP/1.1 200 OK"
    said = hostile.do("post", [["1\r\nx\r\n0\r\n", 1], ["A: b\r\n", 100000]])
    assert said == "HTTP/1.1 400 framing_invalid"


SYNS = r"""
import os, socket, struct, sys
at, many = sys.argv[1], int(sys.argv[2])
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
raw.setsockopt(socket.IPPROTO_IP, socket.IP_HDRINCL, 1)
dst = socket.inet_aton(at)

def checksum(b):
    s = sum(struct.unpack("!%dH" % (len(b) // 2), b))
    while s >> 16:
        s = (s & 65535) + (s >> 16)
    return ~s & 65535

for i in range(many):
    src = socket.inet_aton("192.0.2.%d" % (200 + i % 50))
    def tcp(c):
        return struct.pack("!HHIIBBHHH", 1024 + i // 50, 3128, i, 0, 0x50, 2, 65535, c, 0)
    c = checksum(src + dst + struct.pack("!BBH", 0, 6, 20) + tcp(0))
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, i & 65535, 0, 64, 6, 0, src, dst)
    raw.sendto(ip + tcp(c), (at, 0))
print("sent")
"""

HOLD = r"""
import resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = []
for i in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    s.connect_ex((sys.argv[1], 3128))
    held.append(s)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_listener_that_is_flooded_serves_its_clients(calm):
    host = calm.host
    before = cookies(calm.lab.host)
    # SYNs from addresses that nobody has: no answer will come to ours.
    assert host.python(SYNS, GATE4, "6000") == "sent\n"
    assert cookies(calm.lab.host) > before, "the queue was full"
    assert host.curl("http://web.example.com/syn").stdout.startswith("lab GET")
    calm.works()


def cookies(namespace):
    text = namespace.sh("cat /proc/net/netstat").splitlines()
    fields = dict(zip(text[0].split(), text[1].split()))
    return int(fields["SyncookiesSent"])


def test_half_open_clients_of_a_listener_are_its_own_concern(calm):
    host = calm.host
    host.write_policy("web", listen_policy("web") + "[limits]\nconnections = %d\n"
                      % MANY)
    run = [name for name in calm.seen if name.startswith("listen-")][0]
    calm.until(1, run, ev="policy_reload")
    held = host.clients.popen(["/usr/bin/python3", "-c", HOLD, GATE4,
                               str(FLOOD)], stdin=-1, stdout=-1)
    try:
        assert held.stdout.readline() == b"held\n"
        calm.until(1, run, ev="flow_deny", reason="client_connections_exceeded")
        assert calm.files() <= calm.calm_files + MANY + TOLD + 8
        # A quarter of the places is the others'.
        other = host.curl("http://web.example.com/meanwhile", source="192.0.2.129")
        assert other.stdout.startswith("lab GET"), other.stderr
    finally:
        held.communicate(timeout=60)
    calm.until_files(calm.calm_files + 40)
    assert host.curl("http://web.example.com/after").stdout.startswith("lab GET")


def test_the_neighbour_was_refused_nothing_but_for_descriptors(room):
    refused = {r["reason"] for r in room.records(room.good.id)
               if r.get("act") == "deny" and r["ev"] != "dns"
               and not r.get("internal")}
    assert refused <= {"descriptors_exceeded"}
