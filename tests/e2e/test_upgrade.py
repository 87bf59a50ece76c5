# SPDX-License-Identifier: Apache-2.0
"""A new daemon takes a service over: nobody who uses it notices."""
import json
import os
import signal
import socket
import struct
import subprocess
import time

import pytest

from conftest import ADDRESSES, USER, Penstock, gone
from test_service import Service

LISTEN = "127.0.0.1:3199"
POLICY = """
[policy]
name = lab
[allow web]
hosts = web.example.com api.example.com
ports = 7 80 443
protocol = tcp
addresses = %s
reason = the lab
[limits]
bytes_up = 200000
""" % ADDRESSES

# Told what to do line by line; a load of curl runs beside it.
AGENT = r"""
import json, socket, subprocess, sys
kept = {}

def tunnel(host, port=7):
    s = socket.create_connection(("127.0.0.1", 3128), 30)
    s.sendall(b"CONNECT %s:%d HTTP/1.1\r\n\r\n" % (host.encode(), port))
    got = s.recv(4096).split(b"\r\n")[0].decode()
    return s, got

def echo(s, n):
    s.settimeout(30)
    try:
        s.sendall(b"x" * n)
        got = 0
        while got < n:
            more = len(s.recv(n - got))
            if not more:
                return "end"
            got += more
        return "alive"
    except OSError as e:
        return type(e).__name__

def act(word, *a):
    if word == "open":
        kept[a[0]], said = tunnel(*a[1:])
        return said
    if word == "echo":
        return echo(kept[a[0]], a[1])
    if word == "end":         # wait until it is cut
        kept[a[0]].settimeout(30)
        try:
            return repr(kept[a[0]].recv(1))
        except OSError as e:
            return "reset" if isinstance(e, ConnectionResetError) else str(e)
    if word == "name":
        return socket.gethostbyname(a[0])
    if word == "dial":
        with socket.create_connection((a[0], 7), 30) as s:
            return echo(s, 4)
    if word == "load":
        act.load = subprocess.Popen(["sh", "-c", r'''
            n=0; bad=0
            while [ ! -e "$1" ]; do
                n=$((n + 1))
                curl -sS --max-time 20 http://web.example.com/$n \
                    >/dev/null || bad=$((bad + 1))
                curl -sS --noproxy '*' --max-time 20 \
                    http://api.example.com/$n >/dev/null || bad=$((bad + 1))
                echo $n >"$1.inside"
            done; echo $n $bad''', "load", a[0]],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return True
    if word == "loaded":
        out, err = act.load.communicate()
        return [*map(int, out.split()), err]

for line in sys.stdin:
    print(json.dumps(act(*json.loads(line))), flush=True)
"""


class Upgradable(Service):
    """Another process each time; the last one is asked to end."""

    def __init__(self, lab, more=""):
        super().__init__(lab, more, "[listen here]\nhttp = %s\npolicy = house\n"
                         % LISTEN)

    def start(self):
        with open(self.policies + "/echo.ini", "w", encoding="ascii") as out:
            out.write(POLICY.replace("name = lab", "name = echo"))
        super().start()

    def daemons(self):
        """Pids of all that there are of it, the brokers apart."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as line:
                    words = line.read().split(b"\0")
                with open("/proc/%s/comm" % pid, encoding="ascii") as name:
                    comm = name.read().strip()
            except OSError:
                continue
            if self.dir.encode() in b" ".join(words) and comm == "penstockd":
                found.append(int(pid))
        return found

    def pid(self):
        """The one that serves: who came last."""
        return max(self.daemons(), key=lambda pid: os.stat(
            "/proc/%d" % pid).st_ctime_ns)

    def upgrade(self, config=None, **kwargs):
        return self.lab.host.run(
            [self.lab.dir + "/stage/usr/local/bin/penstock", "upgrade",
             "--config", config or self.config], capture_output=True,
            text=True, env={"PATH": "/usr/bin:/bin",
                            "ASAN_OPTIONS": "detect_leaks=0"}, **kwargs)

    def changed(self, old, new):
        """Another configuration that says @new."""
        path = self.dir + "/changed.ini"
        with open(self.config, encoding="ascii") as made:
            text = made.read()
        assert old in text
        with open(path, "w", encoding="ascii") as out:
            out.write(text.replace(old, new))
        return path

    def stop(self):
        for pid in self.daemons():
            os.kill(pid, signal.SIGTERM)
        assert gone(self.daemons(), 30)
        return self.process.communicate(timeout=30)


def ask(process, *words):
    process.stdin.write(json.dumps(words).encode() + b"\n")
    process.stdin.flush()
    line = process.stdout.readline()
    assert line, process.communicate()
    return json.loads(line)


@pytest.fixture
def service(lab):
    made = Upgradable(lab)
    yield made
    made.stop()


def read(path):
    with open(path, encoding="utf-8") as log:
        return [json.loads(line) for line in log]


def numbered(records, run):
    """In the order of the file, the numbers of a run are 1, 2, 3, ..."""
    seq = [r["seq"] for r in records if r["run"] == run]
    assert seq and seq == list(range(1, len(seq) + 1)), seq


def closed(records):
    opened = {r["id"] for r in records if r["ev"] == "flow_open"}
    ended = {r["id"] for r in records if r["ev"] == "flow_close"}
    assert opened and opened == ended
    return opened


def host_load(lab, stop):
    """curl through the listener, until @stop is there."""
    return lab.host.popen(["sh", "-c", r"""
        n=0; bad=0
        while [ ! -e "$1" ]; do
            n=$((n + 1))
            curl -sS --max-time 20 -x http://%s \
                http://web.example.com/host$n >/dev/null || bad=$((bad + 1))
            echo $n >"$1.host"
        done; echo $n $bad""" % LISTEN, "load", stop],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def made_more(stop, than):
    """Wait until either load has made two rounds more; what they made."""
    for _ in range(3000):
        made = []
        for which in ".inside", ".host":
            try:
                with open(stop + which, encoding="ascii") as n:
                    made.append(int(n.read() or 0))
            except FileNotFoundError:
                made.append(0)
        if all(m >= t + 2 for m, t in zip(made, than)):
            return made
        time.sleep(0.01)
    raise AssertionError("the load stands still: %s" % made)


def test_three_upgrades_under_load(service, lab):
    run = Penstock(lab, USER)
    agent = run.start("/usr/bin/python3", "-c", AGENT, policy=POLICY,
                      options=["--plug", service.socket])
    stop = run.workdir() + "/stop"
    assert " 200 " in ask(agent, "open", "old", "web.example.com")
    was = ask(agent, "name", "api.example.com")
    assert ask(agent, "echo", "old", 120000) == "alive"
    first = service.pid()
    beside = host_load(lab, stop)
    assert ask(agent, "load", stop)
    made = made_more(stop, (0, 0))
    for n in range(3):
        before = service.pid()
        done = service.upgrade()
        assert (done.returncode, service.pid() != before) == (0, True), done
        # Open before, named before, and new: all of it goes on.
        assert ask(agent, "echo", "old", 1000) == "alive"
        assert ask(agent, "dial", was) == "alive"
        assert ask(agent, "name", "api.example.com") == was
        assert " 200 " in ask(agent, "open", str(n), "web.example.com")
        assert ask(agent, "echo", str(n), 10) == "alive"
        made = made_more(stop, made)
    assert first in service.daemons()
    with open(stop, "w", encoding="ascii"):
        pass
    for made, bad, said in (ask(agent, "loaded"),
                            [*map(int, beside.communicate()[0].split()), ""]):
        assert made >= 8 and bad == 0, said
    # A budget is one, wherever its bytes went: more than 120000 of 200000 are
    # gone, most of it before the first of the upgrades.
    assert ask(agent, "echo", "2", 40000) == "alive"
    assert ask(agent, "echo", "2", 40000) != "alive"
    agent.stdin.close()
    assert agent.wait(30) == 0, agent.stderr.read()
    # Its end is seen, and ends what older processes have of it.
    assert gone([first], 30)
    records = read(agent.records_path)
    assert [r["ev"] for r in (records[0], records[-1])] == ["run_start",
                                                            "run_end"]
    numbered(records, records[0]["run"])
    assert len(closed(records)) >= 10
    logged = service.records()
    assert [r["id"] for r in logged if r["run"] == records[0]["run"]] == \
        [r["id"] for r in records]
    for name in {r["run"] for r in logged if r["run"].startswith("listen-")}:
        numbered(logged, name)


class Managed(Upgradable):
    """Started by somebody who wants to be told: sd_notify(3)."""

    def start(self):
        path = self.dir + "/notify"
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.manager.settimeout(30)
        self.manager.bind(path)
        os.chmod(path, 0o666)
        popen = self.lab.host.popen
        self.lab.host.popen = lambda args, **kwargs: popen(args, **{
            **kwargs, "env": {**kwargs.get("env", {}), "NOTIFY_SOCKET": path}})
        try:
            super().start()
        finally:
            self.lab.host.popen = popen

    def heard(self):
        """What was said, and by which process, as the kernel says."""
        said, control, _, _ = self.manager.recvmsg(4096, 256)
        return said.decode(), struct.unpack("3i", control[0][2][:12])[0]


def test_a_service_manager_is_told_who_the_main_process_is(lab):
    # Each is believed while it is the main process, as NotifyAccess=main has
    # it: the old one names the new one before the new one says a word.
    service = Managed(lab)
    try:
        agent = Penstock(lab, USER).start(
            "/usr/bin/python3", "-c", AGENT, policy=POLICY,
            options=["--plug", service.socket])
        assert " 200 " in ask(agent, "open", "old", "web.example.com")
        for _ in range(2):
            old = service.pid()
            assert service.heard() == ("READY=1", old)
            assert service.upgrade().returncode == 0
            new = service.pid()
            assert new != old
            assert service.heard() == ("MAINPID=%d" % new, old)
        assert service.heard() == ("READY=1", new)
        # Its end is that of what is left elsewhere, with records of all.
        left = service.daemons()
        assert len(left) == 2
        os.kill(new, signal.SIGTERM)
        assert service.heard() == ("STOPPING=1", new)
        os.kill(new, signal.SIGTERM)  # do not wait for flows
        assert gone(left, 30) and ask(agent, "end", "old") == "reset"
        records = read(agent.records_path)
        numbered(records, records[0]["run"])
        closed(records)
        assert records[-1]["ev"] == "run_end"
        agent.stdin.close()
        agent.wait(30)
    finally:
        service.stop()


def refused(service, agent, done, *words):
    """The command says what is wrong, and all goes on as before."""
    assert done.returncode == 1, done
    for word in words:
        assert word in done.stderr, done.stderr
    assert ask(agent, "echo", "old", 10) == "alive"
    assert " 200 " in ask(agent, "open", "after", "web.example.com")
    assert ask(agent, "echo", "after", 10) == "alive"
    assert ask(agent, "dial", ask(agent, "name", "api.example.com")) == "alive"


def speak(path, uid, *messages):
    """Another penstockd, as far as it goes, that then dies; what it heard."""
    script = """
import socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(20)
s.connect(sys.argv[1])
for word in sys.argv[2:]:
    kind, version, rest = map(int, word.split(":"))
    s.send(struct.pack("<IHH", 0x50555350, version, kind) + bytes(
        struct.pack("<II", 3, 0) if kind == 1 else b"") + bytes(rest))
    while kind in (1, 4):
        got = s.recv(65536)
        what = struct.unpack("<H", got[6:8])[0] if got else 0
        print(what, got[8:].split(b"\\0")[0].decode("ascii", "replace")
              if what == 16 else "", flush=True)
        # An OFFER with one socket a worker, or TOLD; else what ends it.
        count = globals().get("count", 0) + (what == 3)
        if what in (0, 11, 16) or count == 2:
            count = 0
            break
"""
    return subprocess.run(
        ["/usr/bin/python3", "-c", script, path, *messages], text=True,
        capture_output=True, timeout=60,
        **({"user": uid, "group": uid, "extra_groups": []} if uid else {}))


HELLO, TAKE, READY = "1:1:0", "4:1:0", "12:1:0"


def test_an_upgrade_that_fails_changes_nothing(service, lab):
    run = Penstock(lab, USER)
    agent = run.start("/usr/bin/python3", "-c", AGENT, policy=POLICY,
                      options=["--plug", service.socket])
    named = run.start("/usr/bin/python3", "-c", AGENT, policy=None,
                      options=["--plug", service.socket,
                               "--policy-name", "echo"])
    pid = service.pid()
    assert " 200 " in ask(agent, "open", "old", "web.example.com")
    assert " 200 " in ask(named, "open", "old", "web.example.com")
    # A configuration with a mistake, with its place.
    done = service.upgrade(service.changed("workers = 2", "workers = two"))
    refused(service, agent, done, "changed.ini:4:", "two")
    # Nobody is there; a policy that a run has is not.
    done = service.upgrade(service.changed("plug.sock", "nobody.sock"))
    refused(service, agent, done, "nobody.sock", "start the service instead")
    empty = lab.workdir("service/empty", 64400)
    with open(service.policies + "/house.ini", encoding="ascii") as house:
        with open(empty + "/other.ini", "w", encoding="ascii") as other:
            other.write(house.read())
    config = service.changed(service.policies, empty)
    with open(config, encoding="ascii") as made:
        text = made.read().replace("policy = house", "policy = other")
    with open(config, "w", encoding="ascii") as out:
        out.write(text)
    done = service.upgrade(config)
    refused(service, agent, done, "has the policy 'echo'",
            empty + "/echo.ini", "put it back")
    assert ask(named, "echo", "old", 10) == "alive"
    # Another version; nobody who may; one who dies with everything in hand.
    inside = lab.host.path(service.socket)
    heard = speak(inside, None, "1:9:0")
    assert "16 the other penstockd hands over in version 9" in heard.stdout
    heard = speak(inside, USER, HELLO)
    assert heard.stdout.split() in (["0"], []) or "2 " not in heard.stdout
    heard = speak(inside, None, HELLO, TAKE)
    assert heard.stdout.split()[-1] == "11", heard
    heard = speak(inside, None, HELLO, TAKE, READY)
    assert heard.stdout.split()[-1] == "11", heard
    refused(service, agent, done)
    assert service.pid() == pid
    # And after all that, one that works.  What stays behind is judged by
    # another policy like everything else: the run's own, and one it named.
    done = service.upgrade()
    assert done.returncode == 0 and service.pid() != pid, done
    assert ask(agent, "echo", "old", 10) == "alive"
    less = service.dir + "/less.ini"
    with open(less, "w", encoding="ascii") as out:
        out.write(POLICY.replace("web.example.com", "other.example.com"))
    own = read(agent.records_path)[0]["run"]
    done = lab.host.run([run.program, "reload", "--run", own, "--policy", less],
                        uid=USER, env=run.env(), capture_output=True, text=True)
    assert done.returncode == 0, done
    with open(service.policies + "/echo.ini", "w", encoding="ascii") as out:
        out.write("[policy]\nname = echo\n")
    assert ask(agent, "end", "old") == ask(named, "end", "old") == "reset"
    assert gone([pid], 30)
    for process in agent, named:
        process.stdin.close()
        assert process.wait(30) == 0, process.stderr.read()
        records = read(process.records_path)
        numbered(records, records[0]["run"])
        closed(records)
        assert {r["reason"] for r in records if r["ev"] == "flow_close"} >= {
            "policy_reload"}
        assert [r["gen"] for r in records if r["ev"] == "policy_reload"] == [2]
