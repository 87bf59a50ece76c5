#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The real, sealed daemon under load: no work that it has trips its filter.

This program plays the launcher, the sandbox, the upstream resolvers and the
origins, in namespaces of its own whose every address is its own: nothing that
it does can leave.  Each of the daemon's ways is walked many times at once, so
that a system call which is missing from its list ends it here.
"""
import array
import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
ROUNDS = 120
BLOB = os.urandom(300000)
POLICY = b"""[policy]
name = load
[allow tcp]
hosts = *.example.org
ports = 7
protocol = tcp
addresses = 203.0.113.10
reason = the lab
[allow web]
hosts = *.example.org
protocol = http
addresses = 203.0.113.10
reason = the lab
"""
libc = ctypes.CDLL(None, use_errno=True)
daemon = os.path.join(os.environ.get("top_builddir", "."), "proxy/penstockd")
count = 0


def check(good, name, *said):
    global count
    count += 1
    print("%s %d - %s" % ("ok" if good else "not ok", count, name))
    for s in said:
        print("#", s)


# --- the network ---------------------------------------------------------------

def lo_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 1))


def local_route(net, bits):
    """ip route add local NET/BITS dev lo"""
    dst = socket.inet_aton(net)
    body = struct.pack("BBBBBBBBI", socket.AF_INET, bits, 0, 0, 255, 4, 254, 2, 0)
    body += struct.pack("HH4s", 8, 1, dst) + struct.pack("HHI", 8, 4, 1)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.send(struct.pack("IHHII", 16 + len(body), 24, 0x405, 1, 0) + body)
        assert struct.unpack_from("i", s.recv(4096), 16)[0] == 0


def dns_server(address, asked):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, 53))

    def serve():
        while True:
            q, peer = s.recvfrom(2000)
            end = 12
            while q[end]:
                end += q[end] + 1
            asked.append(address)
            answer = b""
            if q[end + 1:end + 3] == b"\0\1":
                answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton("203.0.113.10")
            s.sendto(q[:2] + b"\x81\x80\0\1" + struct.pack(">H", bool(answer)) +
                     b"\0\0\0\0" + q[12:end + 5] + answer, peer)
    threading.Thread(target=serve, daemon=True).start()


def serve_echo(c):
    while True:
        data = c.recv(65536)
        if not data:
            break
        c.sendall(data)
    c.shutdown(socket.SHUT_WR)


def serve_http(c):
    head = b""
    while b"\r\n\r\n" not in head:
        data = c.recv(4096)
        if not data:
            return
        head += data
    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")


def origin(port, one):
    listener = socket.create_server(("203.0.113.10", port), backlog=500)

    def quiet(c):
        with c:
            try:
                one(c)
            except OSError:
                pass

    def serve():
        while True:
            c, _ = listener.accept()
            threading.Thread(target=quiet, args=(c,), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()


# --- the sandbox: a child in a network namespace of its own ----------------------

def make_sockets():
    ip, ip6 = socket.IPPROTO_IP, socket.IPPROTO_IPV6
    v4, v6, udp, tcp = socket.AF_INET, socket.AF_INET6, socket.SOCK_DGRAM, socket.SOCK_STREAM
    only6 = (ip6, 26)
    table = {
        2: (v4, udp, "0.0.0.0", 53, [(ip, 8)]),
        3: (v6, udp, "::", 53, [only6, (ip6, 49), (ip6, 78)]),
        4: (v4, tcp, "0.0.0.0", 53, []),
        5: (v6, tcp, "::", 53, [only6]),
        6: (v4, tcp, "127.0.0.2", 0, [(ip, 19)]),
        7: (v6, tcp, "::1", 0, [only6, (ip6, 75)]),
        8: (v4, tcp, "127.0.0.1", 3128, []),
        9: (v4, tcp, "127.0.0.1", 1080, []),
    }
    made = {}
    for slot, (family, kind, address, port, options) in table.items():
        s = socket.socket(family, kind)
        for level, name in options:
            s.setsockopt(level, name, 1)
        s.bind((address, port))
        if kind == tcp:
            s.listen(500)
        made[slot] = s
    return made


def read_until(s, mark):
    data = b""
    while mark not in data:
        more = s.recv(1 if mark == b"\r\n\r\n" else 4096)
        if not more:
            return data
        data += more
    return data


def read_exactly(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            return data
        data += more
    return data


def echoes(s):
    """The blob comes back whole, and then the end."""
    def send():
        s.sendall(BLOB)
        s.shutdown(socket.SHUT_WR)
    t = threading.Thread(target=send)
    t.start()
    got = bytearray()
    while True:
        data = s.recv(65536)
        if not data:
            break
        got += data
    t.join()
    return bytes(got) == BLOB


def tunnel(i):
    with socket.create_connection(("127.0.0.1", 3128), 60) as s:
        host = b"h%d.example.org:7" % (i % 40)
        s.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host))
        head = read_until(s, b"\r\n\r\n")
        if b" 200 " not in head:
            return head[:60]
        return echoes(s)


def socks(i):
    with socket.create_connection(("127.0.0.1", 1080), 60) as s:
        host = b"h%d.example.org" % (i % 40)
        s.sendall(b"\5\1\0" + b"\5\1\0\3%c%s\0\7" % (len(host), host))
        said = read_exactly(s, 12)
        if said != b"\5\0" + b"\5\0\0\1" + bytes(6):
            return said
        return echoes(s)


def request(i):
    with socket.create_connection(("127.0.0.1", 3128), 60) as s:
        s.sendall(b"GET http://w%d.example.org/x HTTP/1.1\r\nHost: w%d.example.org\r\n\r\n" %
                  (i % 40, i % 40))
        return b"hello" in read_until(s, b"hello")


def refusal(i):
    with socket.create_connection(("127.0.0.1", 3128), 60) as s:
        s.sendall(b"CONNECT no%d.example.net:443 HTTP/1.1\r\nHost: no%d.example.net:443\r\n\r\n" %
                  (i, i))
        return b"host_not_allowed" in read_until(s, b"\r\n\r\n")


def question(i):
    return (b"\x12\x34\1\0\0\1\0\0\0\0\0\0\4q%03d\7example\3org\0\0" % (i % 40) +
            (b"\1" if i % 8 else b"\x1c") + b"\0\1")


def dns_udp(i):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(60)
        s.sendto(question(i), ("127.0.0.1", 53))
        return s.recv(600)[:2] == b"\x12\x34"


def dns_tcp(i):
    with socket.create_connection(("127.0.0.1", 53), 60) as s:
        q = question(i)
        s.sendall(struct.pack(">H", len(q)) + q)
        return s.recv(600)[2:4] == b"\x12\x34"


def transparent(_):
    """A direct hit on that listener names no destination: ended, not served."""
    try:
        with socket.create_connection(("127.0.0.2", tproxy_port), 60) as s:
            return s.recv(10) == b""
    except ConnectionResetError:
        return True


DEEDS = (tunnel, socks, request, refusal, dns_udp, dns_tcp, transparent)


def load():
    results = []

    def one(i):
        try:
            good = DEEDS[i % len(DEEDS)](i)
        except OSError as e:
            good = "%s: %r" % (DEEDS[i % len(DEEDS)].__name__, e)
        results.append(good)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(ROUNDS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return [r for r in results if r is not True][:5] or len(results)


def probe():
    try:
        socket.create_connection(("127.0.0.1", 3128), 60).close()
    except ConnectionRefusedError:
        return "refused"
    return "there"


CROWD = []


def crowd():
    """More idle connections than the daemon has descriptors for."""
    for _ in range(170):
        try:
            CROWD.append(socket.create_connection(("127.0.0.1", 3128), 60))
        except ConnectionResetError:
            pass
    return len(CROWD) > 100


def release():
    while CROWD:
        CROWD.pop().close()
    return "closed"


def first_line(_=None):
    try:
        with socket.create_connection(("127.0.0.1", 3128), 60) as s:
            s.sendall(b"CONNECT no.example.net:443 HTTP/1.1\r\nHost: no.example.net:443\r\n\r\n")
            return read_until(s, b"\r\n\r\n").decode()
    except OSError:
        return ""


def refused():
    """What is said where there is no room; some hear a reset."""
    for _ in range(200):
        said = first_line()
        if said:
            return said
    return ""


def served():
    for _ in range(2000):
        if first_line().startswith("HTTP/1.1 403 "):
            return True
    return False


def sandbox_child(ctl):
    global tproxy_port
    libc.unshare(CLONE_NEWNET)
    lo_up()
    made = make_sockets()
    tproxy_port = made[6].getsockname()[1]
    slots = sorted(made)
    fds = array.array("i", [made[k].fileno() for k in slots])
    ctl.sendmsg([bytes(slots)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    for s in made.values():
        s.close()
    while True:
        word = ctl.recv(64)
        if not word:
            os._exit(0)
        ctl.send(json.dumps({b"load": load, b"probe": probe, b"crowd": crowd,
                             b"release": release, b"refused": refused,
                             b"served": served}[word]()).encode())


class Run:
    """One sandbox and the daemon that serves it."""

    def __init__(self, directory, before=()):
        self.ctl, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            self.ctl.close()
            sandbox_child(theirs)
        theirs.close()
        slots, control, _, _ = self.ctl.recvmsg(64, 4096)
        fds = array.array("i", control[0][2])
        self.records = os.path.join(directory, "records")
        fds.insert(0, os.open(self.records, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND))
        policy = os.memfd_create("policy", os.MFD_ALLOW_SEALING)
        os.write(policy, POLICY)
        fcntl.fcntl(policy, 1033, 15)
        fds.insert(0, policy)
        self.plug, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.set_inheritable(theirs.fileno(), True)
        self.pid = os.posix_spawnp((*before, daemon)[0], [
            *before, daemon, "--private", "--plug-fd", str(theirs.fileno()),
            "--resolv-conf", os.path.join(directory, "resolv.conf")], os.environ)
        theirs.close()
        bits = sum(1 << s for s in b"\0\1" + slots)
        self.plug.sendmsg([struct.pack("IHHII40s64s40s64s", 0x4b4c5350, 3, 1, bits, 0,
                                       b"run-1", b"box", b"nonce", b"")],
                          [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        for fd in fds:
            os.close(fd)
        self.ready = self.hear() == 2

    def hear(self):
        said = self.plug.recv(4096)
        return struct.unpack_from("H", said, 6)[0] if said else 0

    def ask(self, word):
        self.ctl.send(word)
        return json.loads(self.ctl.recv(65536))

    def status(self, key):
        with open("/proc/%d/status" % self.pid) as f:
            return [line.split()[1] for line in f if line.startswith(key + ":")][0]

    def ended(self):
        return os.waitpid(self.pid, 0)[1]


def write(directory, name, text):
    path = os.path.join(directory, name)
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)


def under_load(directory, asked):
    run = Run(directory)
    check(run.ready, "the plug is taken")
    check(run.status("Seccomp") == "2" and run.status("NoNewPrivs") == "1" and
          int(run.status("CapEff"), 16) == 0 and int(run.status("CapPrm"), 16) == 0,
          "the daemon is sealed and has no capability")
    got = run.ask(b"load")
    check(got == ROUNDS, "tunnels, requests, refusals and questions at once", got)
    check(asked and set(asked) == {"203.0.113.53"}, "the configured resolver is asked")
    write(directory, "resolv.conf", "nameserver 203.0.113.54\n")
    rounds = 0
    while "203.0.113.54" not in asked and rounds < 200:
        rounds += 1
        got = run.ask(b"load")
        if got != ROUNDS:
            break
    check("203.0.113.54" in asked, "a change of resolv.conf is followed", got)
    run.plug.send(struct.pack("IHH", 0x4b4c5350, 3, 4))
    check(run.hear() == 5, "the last record is confirmed")
    status = run.ended()
    check(status == 0, "the daemon ends in order", "status %d" % status)
    check(run.ask(b"probe") == "refused", "nothing answers any more")
    with open(run.records) as f:
        events = [json.loads(line)["ev"] for line in f]
    check(events[0] == "run_start" and events[-1] == "run_end" and
          events.count("flow_open") == events.count("flow_close") > 0,
          "each open flow has its close (LOG-18)")


def killed(directory):
    run = Run(directory)
    os.kill(run.pid, signal.SIGKILL)
    run.ended()
    check(run.ask(b"probe") == "refused", "a daemon that was killed leaves nothing open")


def terminated(directory):
    run = Run(directory)
    os.kill(run.pid, signal.SIGTERM)
    check(run.hear() == 5 and run.ended() == 0, "SIGTERM ends a run with its last record")
    with open(run.records) as f:
        last = json.loads(f.readlines()[-1])
    check(last["ev"] == "run_end" and last["reason"] == "shutdown", "and says that it was a shutdown")


def short_of_descriptors(directory):
    """OPS-01: the last descriptors are for those who are told, and for us."""
    few = ("prlimit", "--nofile=200:200")
    run = Run(directory, few)
    check(run.ask(b"crowd") and
          "HTTP/1.1 503 descriptors_exceeded\r\n" in run.ask(b"refused"),
          "who comes when descriptors are short is refused in words")
    run.ask(b"release")
    check(run.ask(b"served"), "and is served once some are free again")
    run.ask(b"crowd")
    run.ask(b"refused")
    run.plug.send(struct.pack("IHH", 0x4b4c5350, 3, 4))
    check(run.hear() == 5 and run.ended() == 0,
          "the control socket answers while there is no room for connections")
    run.ask(b"release")


def main():
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) and libc.unshare(CLONE_NEWNET):
        print("1..0 # SKIP no namespaces here")
        return
    signal.alarm(300)
    directory = tempfile.mkdtemp(prefix="penstockd-test-")
    asked = []
    try:
        lo_up()
        local_route("203.0.113.0", 24)
        write(directory, "resolv.conf", "nameserver 203.0.113.53\n")
        run_all(directory, asked)
    finally:
        shutil.rmtree(directory)
    print("1..%d" % count)


def run_all(directory, asked):
    # Children first: a process with threads forks badly.
    killed(directory)
    terminated(directory)
    short_of_descriptors(directory)
    for address in ("203.0.113.53", "203.0.113.54"):
        dns_server(address, asked)
    origin(7, serve_echo)
    origin(80, serve_http)
    under_load(directory, asked)


main()
sys.stdout.flush()
