# SPDX-License-Identifier: Apache-2.0
"""Listeners of a service on addresses of its host, for clients beside it.

    internet --- host --- clients
                 penstockd  192.0.2.10, ::10   may use the listeners
                            192.0.2.70, ::70   may not
"""
import json
import os
import signal
import socket
import subprocess
import time

import pytest

from conftest import ADDRESSES, USER, names
from lab import Namespace

SERVICE_USER = 64400
SERVICE_NAME = "penstock-lab"

GATE4, GATE6 = "192.0.2.1", "2001:db8:7::1"
FRIEND4, FRIEND6 = "192.0.2.10", "2001:db8:7::10"
STRANGER4, STRANGER6 = "192.0.2.70", "2001:db8:7::70"

# Everything that could be excepted is: what is refused is so nevertheless.
POLICY = """\
[policy]
name = %s
%s

[allow web]
hosts     = *.example.com
ports     = 80 443 1080 3128
protocol  = %s
addresses = %s 198.51.100.2 2001:db8:1::2 192.0.2.1 2001:db8:7::1 127.0.0.1 ::1
reason    = the lab's origins live in documentation ranges
owner     = tests

[allow itself]
addresses = 198.51.100.2 2001:db8:1::2 192.0.2.1 2001:db8:7::1 127.0.0.1 ::1
ports     = 53 80 1080 3128 3129
protocol  = tcp
reason    = to see that no exception leads back to the listener
owner     = tests
"""


def policy(name, mode="", protocol="tcp"):
    return POLICY % (name, mode, protocol, ADDRESSES)


class Listening:
    """penstockd with listeners, and a namespace of clients beside its host."""

    def __init__(self, lab):
        self.lab = lab
        self.clients = Namespace("clients")
        subprocess.run(self.clients.argv(
            ["ip", "link", "add", "eth0", "type", "veth", "peer", "name",
             "lan0", "netns", str(lab.host.pid)]), check=True)
        self.clients.sh("""
            ip link set lo up
            ip addr add %s/24 dev eth0; ip addr add %s/24 dev eth0
            ip addr add %s/64 dev eth0 nodad; ip addr add %s/64 dev eth0 nodad
            for i in $(seq 1 40); do ip addr add 192.0.2.$((128 + i))/24 dev eth0; done
            ip link set eth0 up
            ip route add 198.51.100.0/24 via %s
            """ % (FRIEND4, STRANGER4, FRIEND6, STRANGER6, GATE4))
        lab.host.sh("""
            ip addr add %s/24 dev lan0; ip addr add %s/64 dev lan0 nodad
            ip link set lan0 up
            """ % (GATE4, GATE6))
        for name, line in (("passwd", "%s:x:%d:%d::/:/usr/sbin/nologin\n"),
                           ("group", "%s:x:%d:\n")):
            with open(lab.host.path("/etc/" + name), "r+",
                      encoding="utf-8") as table:
                if SERVICE_NAME not in table.read():
                    table.write(line % ((SERVICE_NAME,) + (SERVICE_USER,)
                                        * (line.count("%") - 1)))
        self.dir = lab.workdir("listen", SERVICE_USER)
        self.policies = lab.workdir("listen/policies")
        self.log = self.dir + "/audit.jsonl"
        self.config = self.dir + "/penstockd.ini"
        self.write_policy("web", policy("web"))
        self.write_policy("watch", policy("watch", "mode = observe"))
        self.process = None

    def write_policy(self, name, text):
        path = "%s/%s.ini" % (self.policies, name)
        with open(path + ".new", "w", encoding="ascii") as out:
            out.write(text)
        os.rename(path + ".new", path)

    def popen(self, listen, service="workers = 4\ndrain_seconds = 20",
              sock="plug.sock", before=()):
        with open(self.config, "w", encoding="ascii") as out:
            out.write("[service]\nplug = %s/%s\nlog = %s\nuser = %s\n%s\n"
                      "[plug]\nallow_policy_uid = 0\npolicies = %s\n%s"
                      % (self.dir, sock, self.log, SERVICE_NAME, service,
                         self.policies, listen))
        os.chmod(self.config, 0o644)
        return self.lab.host.popen(
            [*before, self.lab.dir + "/stage/usr/local/sbin/penstockd",
             "--config", self.config],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "ASAN_OPTIONS": "detect_leaks=0"})

    def start(self, listen, **kwargs):
        if os.path.exists(self.log):
            os.unlink(self.log)
        self.process = self.popen(listen, **kwargs)
        self.said = b""
        for line in self.process.stderr:
            self.said += line
            if b"ready: " in line:
                return
        raise AssertionError(self.said)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
        if self.process:
            _, err = self.process.communicate(timeout=60)
            self.said += err
            return self.process.returncode
        return None

    def records(self, **want):
        with open(self.log, encoding="utf-8") as log:
            records = [json.loads(line) for line in log]
        for r in records:
            if "src" in r:
                r["src_ip"] = r["src"].rpartition(":")[0].strip("[]")
        return [r for r in records
                if all(r.get(k) == v for k, v in want.items())]

    def wait_records(self, count, **want):
        """The audit thread writes a little later."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            found = self.records(**want)
            if len(found) >= count:
                return found
            time.sleep(0.01)
        raise AssertionError((want, found, self.records()[-10:]))

    def client(self, *args, **kwargs):
        kwargs.setdefault("timeout", 60)
        return self.clients.run(args, capture_output=True, text=True, **kwargs)

    def curl(self, *args, source=FRIEND4, proxy=GATE4, scheme="http",
             port=3128):
        at = "[%s]" % proxy if ":" in proxy else proxy
        return self.client("curl", "-sS", "--max-time", "20", "--cacert",
                           self.lab.ca, "--interface", source, "--proxy",
                           "%s://%s:%d" % (scheme, at, port), *args)

    def dig(self, *args, source=FRIEND4, server=GATE4):
        return self.client("dig", "-b", source, "@" + server, "+tries=1",
                           "+time=3", *args)

    def python(self, script, *args):
        got = self.client("/usr/bin/python3", "-c", script, *args)
        assert got.returncode == 0, got.stderr
        return got.stdout

    def close(self):
        self.stop()
        # Whatever is left in the namespace keeps it alive, and this with it.
        self.lab.host.sh("ip link del lan0")
        self.clients.close()


WEB = """
[listen web]
http    = *:3128 localhost:3129
socks   = 192.0.2.1 [2001:db8:7::1]
dns     = 192.0.2.1 [2001:db8:7::1]:53
policy  = web
clients = 192.0.2.0/26 192.0.2.128/25 2001:db8:7::10/124 127.0.0.0/8
label   = lan

[listen watch]
http    = 192.0.2.1:3130
policy  = watch
clients = 192.0.2.10
"""


@pytest.fixture(scope="module")
def listening(lab):
    made = Listening(lab)
    yield made
    made.close()


@pytest.fixture(scope="module")
def web(listening):
    listening.start(WEB)
    yield listening
    assert listening.stop() == 0, listening.said


def test_a_client_in_range_is_served_in_every_way_and_family(web):
    for source, proxy in ((FRIEND4, GATE4), (FRIEND6, GATE6)):
        got = web.curl("http://web.example.com/a", source=source, proxy=proxy)
        assert got.stdout == "lab GET /a host=web.example.com\n", got.stderr
        got = web.curl("https://web.example.com/b", source=source, proxy=proxy)
        assert got.stdout == "lab GET /b host=web.example.com\n", got.stderr
        got = web.curl("http://web.example.com/c", source=source, proxy=proxy,
                       scheme="socks5h", port=1080)
        assert got.stdout == "lab GET /c host=web.example.com\n", got.stderr
        got = web.curl("http://denied.example.net/", source=source,
                       proxy=proxy)
        assert "host_not_allowed" in got.stdout
        for transport in ("+notcp", "+tcp"):
            got = web.dig("web.example.com", "+short", transport,
                          source=source, server=proxy)
            # Real addresses: what a client is told it can reach, by us.
            assert got.stdout == names.WEB_V4 + "\n", got
            got = web.dig("denied.example.net", transport, source=source,
                          server=proxy)
            assert "NXDOMAIN" in got.stdout, got
    # OPS-07: each with its own address, whichever family was before it.
    for client in (FRIEND4, FRIEND6):
        web.wait_records(1, ev="http", path="/a", src_ip=client)
        flows = web.wait_records(2, ev="flow_open", src_ip=client)
        # A plain request may go over a connection that another opened.
        assert {r["via"] for r in flows} >= {"connect", "socks"}
        assert {r["run"] for r in flows} == {web.records()[0]["run"]}
        assert {r["sandbox"] for r in flows} == {"lan"}
        assert len(web.records(ev="dns", src_ip=client, act="allow")) >= 2
    assert web.records()[0]["run"].startswith("listen-web-")


def test_addresses_that_dns_told_a_client_stand_for_their_names(web):
    # Whichever worker answers, the same one hears of the address then.
    hosts = ["192.0.2.%d" % (128 + i) for i in range(1, 17)]
    for host in hosts:
        assert web.dig("v4.example.com", "+short", source=host).stdout == \
            names.WEB_V4 + "\n"
        got = web.curl("https://%s/" % names.WEB_V4, "-k", source=host,
                       port=3128)
        assert got.returncode == 0, (host, got.stderr)
    opened = web.wait_records(len(hosts), ev="flow_open",
                              host="v4.example.com")
    assert {r["src_ip"] for r in opened} == set(hosts)


def test_who_is_not_a_client_is_reset_unheard_and_recorded(web):
    for source, proxy in ((STRANGER4, GATE4), (STRANGER6, GATE6)):
        # Slow or quick: it has nothing open, so nothing to hold open.
        out = web.python(r"""
import socket, sys
source, proxy = sys.argv[1:]
for port in (3128, 1080, 53):
    for i in range(5):
        try:
            s = socket.create_connection((proxy, port), 20, (source, 0))
            print(s.recv(1))
        except ConnectionResetError:
            print("reset")
family = socket.AF_INET6 if ":" in proxy else socket.AF_INET
u = socket.socket(family, socket.SOCK_DGRAM)
u.bind((source, 0))
u.settimeout(0.5)
for i in range(100):
    u.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\3web\7example\3com\0\0\1\0\1", (proxy, 53))
try:
    print("answered", u.recv(100))
except TimeoutError:
    print("silence")
""", source, proxy)
        assert out.split() == ["reset"] * 15 + ["silence"], out
        # One record for each at once; what is more is told with the next.
        found = web.wait_records(2, reason="client_not_allowed",
                                 src_ip=source)
        assert {r["ev"] for r in found} == {"flow_deny"}
        assert {r.get("transport", "tcp") for r in found} == {"tcp", "udp"}
        assert len(found) < 20, "bounded, whatever they send"
    # A client beside them is served all the same.
    assert web.curl("http://web.example.com/").returncode == 0


def test_nothing_leads_back_to_a_listener(web):
    # ADDR-20: whatever the policy excepts, and where it observes.
    spelled = ["192.0.2.1:3128", "[2001:db8:7::1]:3128", "198.51.100.2:3128",
               "[2001:db8:1::2]:3128", "127.0.0.1:3128", "127.0.0.1:3129",
               "[::1]:3129", "[::ffff:192.0.2.1]:3128", "[::1]:3128",
               "192.0.2.1:1080", "192.0.2.1:53", "host.example.com:3128",
               "loopback.example.com:3128", "[::ffff:127.0.0.1]:3128"]
    odd = ["0.0.0.0:3128", "[::]:3128", "127.1:3128", "2130706433:3128",
           "0x7f000001:3128", "017700000001:3128", "zero.example.com:3128",
           "localhost:3128"]
    script = r"""
import socket, sys
for target in sys.argv[2:]:
    s = socket.create_connection(("192.0.2.1", int(sys.argv[1])), 10)
    s.settimeout(30)
    s.sendall(b"CONNECT %s HTTP/1.1\r\n\r\n" % target.encode())
    print(s.recv(400).split(b"\r\n")[0].decode(), flush=True)
"""
    for port in (3128, 3130):
        out = web.python(script, str(port), *spelled, *odd)
        lines = out.splitlines()
        assert len(lines) == len(spelled) + len(odd)
        for target, line in zip(spelled + odd, lines):
            assert line.split()[1] in ("403", "400", "502"), (target, line)
        for target, line in zip(spelled, lines):
            assert line == "HTTP/1.1 403 address_self", (target, line)
    # So it is for plain requests, and by SOCKS.
    for target in ("http://192.0.2.1:3128/", "http://host.example.com:3128/"):
        assert "address_self" in web.curl(target).stdout, target
        got = web.curl(target, scheme="socks5h", port=1080)
        assert got.returncode == 97 and not got.stdout, got
    # A control: the exception is one, where nobody of ours listens.
    out = web.python(script, "3128", "192.0.2.1:80")
    assert "502 connect_refused" in out, out


def test_many_workers_share_what_comes(web):
    before = len(web.records(ev="http"))
    out = web.python(r"""
import socket
ok = 0
for i in range(1, 41):
    s = socket.create_connection(("192.0.2.1", 3128), 10, ("192.0.2.%d" % (128 + i), 0))
    s.sendall(b"GET http://web.example.com/%d HTTP/1.1\r\nHost: web.example.com\r\nConnection: close\r\n\r\n" % i)
    s.settimeout(30)
    ok += s.recv(100).startswith(b"HTTP/1.1 200")
print(ok)
""")
    assert out == "40\n"
    asked = web.wait_records(before + 40, ev="http")
    seqs = [r["seq"] for r in web.records(run=asked[-1]["run"])]
    assert seqs == sorted(set(seqs)), "one numbering for all workers"
    # Each thread of the workers has had something to do.
    busy = 0
    base = "/proc/%d/task" % web.process.pid
    for task in os.listdir(base):
        with open("%s/%s/status" % (base, task), encoding="ascii") as status:
            switches = [int(line.split()[1]) for line in status
                        if line.startswith("voluntary")]
        busy += switches[0] > 10
    assert busy >= 4


def test_another_policy_reaches_a_listener_and_what_is_open(web):
    tunnel = web.clients.popen(["/usr/bin/python3", "-c", r"""
import socket
s = socket.create_connection(("192.0.2.1", 3128), 10)
s.sendall(b"CONNECT web.example.com:443 HTTP/1.1\r\n\r\n")
print(s.recv(100)[:12], flush=True)
s.settimeout(60)
try:
    print(s.recv(1))
except ConnectionResetError:
    print("reset")
"""], stdout=subprocess.PIPE)
    assert tunnel.stdout.readline() == b"b'HTTP/1.1 200'\n"
    web.write_policy("web", policy("web") + "[deny web]\nhosts = web.example.com\n"
                     "reason = a test\n")
    out, _ = tunnel.communicate(timeout=60)
    assert out == b"reset\n"
    run = web.records()[0]["run"]
    told = web.wait_records(1, ev="policy_reload", run=run)
    assert len(told) == 1 and told[0]["flows_ended"] >= 1
    assert told[0]["gen"] == 2
    assert web.wait_records(1, ev="flow_close", reason="policy_reload",
                            run=run)
    got = web.curl("http://web.example.com/")
    assert "host_denied" in got.stdout, got
    # What is wrong changes nothing, and is told of.
    web.write_policy("web", "[polixy]\n")
    failed = web.wait_records(1, ev="policy_reload_failed", run=run)
    assert "web.ini:1" in failed[0]["error"]
    web.write_policy("web", policy("web"))
    web.wait_records(2, ev="policy_reload", run=run)
    assert web.curl("http://web.example.com/").returncode == 0
    assert not web.records(ev="policy_reload", sandbox="watch")


def test_all_workers_count_connections_together(web):
    run = web.records()[0]["run"]
    reloads = len(web.records(ev="policy_reload", run=run))
    web.write_policy("web", policy("web") + "[limits]\nconnections = 3\n")
    web.wait_records(reloads + 1, ev="policy_reload", run=run)
    out = web.python(r"""
import socket
held = []
for i in range(1, 13):
    s = socket.create_connection(("192.0.2.1", 3128), 10, ("192.0.2.%d" % (128 + i), 0))
    s.sendall(b"CONNECT web.example.com:443 HTTP/1.1\r\n\r\n")
    s.settimeout(30)
    print(s.recv(100)[9:12].decode())
    held.append(s)
""").split()
    assert out == ["200"] * 3 + ["429"] * 9, "not three for each worker"
    web.write_policy("web", policy("web") + "[limits]\nconnections = 8\n")
    web.wait_records(reloads + 2, ev="policy_reload", run=run)
    # One client that takes all it gets leaves a quarter to others, and who
    # goes on hammering is not even told.
    out = web.python(r"""
import socket, time
def ask(source):
    s = socket.create_connection(("192.0.2.1", 3128), 10, (source, 0))
    s.sendall(b"CONNECT web.example.com:443 HTTP/1.1\r\n\r\n")
    s.settimeout(30)
    print(s.recv(100).split(b"\r\n")[0][9:].decode().replace(" ", "_"))
    return s
held = [ask("192.0.2.129") for i in range(6)]
ask("192.0.2.129").close()
held += [ask("192.0.2.130")]
silent = []
for i in range(40):
    try:
        silent.append(socket.create_connection(("192.0.2.1", 3128), 10,
                                               ("192.0.2.129", 0)))
    except ConnectionResetError:
        print("reset")
held += [ask("192.0.2.130")]
for s in silent:
    s.settimeout(30)
    try:
        print("told", s.recv(100).decode()[:12])
    except ConnectionResetError:
        print("reset")
""").splitlines()
    assert [line[:3] for line in out[:6]] == ["200"] * 6, out
    assert out[6] == "429_client_connections_exceeded", out
    assert out[7][:3] == "200", out
    assert 24 <= out.count("reset") < 40, out
    assert [line[:3] for line in out].count("200") == 8, "others are served"
    assert web.wait_records(1, ev="flow_deny", src_ip="192.0.2.129",
                            reason="client_connections_exceeded")
    web.write_policy("web", policy("web"))
    web.wait_records(reloads + 3, ev="policy_reload", run=run)


def test_a_second_service_is_told_that_the_address_is_taken(web):
    # The same user, and SO_REUSEPORT on both sides: no silent sharing.
    with open(web.config, encoding="ascii") as kept:
        text = kept.read()
    other = web.popen("[listen too]\nhttp = 192.0.2.1:3128\npolicy = web\n"
                      "clients = 192.0.2.0/24\n", sock="other.sock")
    _, err = other.communicate(timeout=60)
    assert other.returncode == 1
    assert b"http 192.0.2.1:3128" in err and b"another penstockd" in err, err
    with open(web.config, "w", encoding="ascii") as out:
        out.write(text)


def test_a_listener_drains_at_sigterm_and_its_run_has_an_end(web):
    tunnel = web.clients.popen(["/usr/bin/python3", "-c", r"""
import socket, sys
s = socket.create_connection(("192.0.2.1", 3128), 10)
s.sendall(b"CONNECT web.example.com:80 HTTP/1.1\r\n\r\n")
print(s.recv(100)[:12], flush=True)
sys.stdin.readline()
for i in range(2000):
    try:
        late = socket.create_connection(("192.0.2.1", 3128), 10)
        # One that was accepted just before it drains waits for its head.
        late.settimeout(0.1)
        late.recv(1)
    except ConnectionRefusedError:
        break
    except OSError:
        pass
else:
    sys.exit("it listens still")
s.sendall(b"GET /late HTTP/1.1\r\nHost: web.example.com\r\nConnection: close\r\n\r\n")
print(s.makefile("rb").read()[-35:])
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert tunnel.stdout.readline() == b"b'HTTP/1.1 200'\n"
    web.process.send_signal(signal.SIGTERM)
    out, _ = tunnel.communicate(b"\n", timeout=60)
    assert b"/late host=web.example.com" in out
    # It ends by itself when its last flow has.
    _, err = web.process.communicate(timeout=60)
    web.said += err
    assert web.process.returncode == 0, err
    assert {r["sandbox"] for r in web.records(ev="run_start")} == \
        {"lan", "watch"}
    for start in web.records(ev="run_start"):
        own = web.records(run=start["run"])
        assert own[-1]["ev"] == "run_end" and own[-1]["reason"] == "shutdown"
        assert [r["seq"] for r in own] == list(range(1, len(own) + 1))
        opened = {r["id"] for r in own if r["ev"] == "flow_open"}
        assert opened == {r["id"] for r in own if r["ev"] == "flow_close"}
    # What strangers did more than once was counted.
    assert sum(r.get("count", 1) for r in web.records(
        reason="client_not_allowed", src_ip=STRANGER4)) == 115
    shown = web.lab.host.run([web.lab.dir + "/stage/usr/local/bin/penstock",
                              "flows", web.log], capture_output=True, text=True)
    assert shown.returncode == 0 and "client_not_allowed" in shown.stdout, shown


def test_a_listener_is_no_resolver_of_its_own(listening):
    listening.lab.set_resolv_conf("nameserver 192.0.2.1\n")
    try:
        for where in ("192.0.2.1", "*"):
            other = listening.popen("[listen a]\ndns = %s\npolicy = web\n"
                                    "clients = 192.0.2.0/24\n" % where)
            _, err = other.communicate(timeout=60)
            assert other.returncode == 1 and b"it would ask itself" in err, err
    finally:
        listening.lab.set_resolv_conf("nameserver %s\n" % names.DNS_V4)


def test_where_ipv6_is_off_a_listener_of_both_families_goes_on(listening):
    # OPS-12
    listening.lab.host.sh("sysctl -qw net.ipv6.conf.lo.disable_ipv6=1")
    try:
        listening.start("[listen both]\nhttp = localhost\npolicy = web\n"
                        "[listen more]\nhttp = localhost:4128\npolicy = web\n")
        assert listening.said.count(b"IPv6 is off here") == 1
        got = listening.lab.host.run(
            ["curl", "-sS", "--max-time", "20", "--proxy",
             "http://127.0.0.1:3128", "http://web.example.com/"],
            capture_output=True, text=True)
        assert got.stdout.startswith("lab GET /"), got
        assert listening.stop() == 0
        # Written out it is not a wish but a fault.
        other = listening.popen("[listen six]\nhttp = [::1]:3128\npolicy = web\n")
        _, err = other.communicate(timeout=60)
        assert other.returncode == 1 and b"http [::1]:3128: " in err, err
    finally:
        listening.lab.host.sh("sysctl -qw net.ipv6.conf.lo.disable_ipv6=0")
