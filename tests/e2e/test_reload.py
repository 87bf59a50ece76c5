# SPDX-License-Identifier: Apache-2.0
"""Another policy for what runs already: kept is what is still allowed, all of
it, and cut is what is not (POL-04, POL-06)."""
import json
import os
import re
import select
import signal
import subprocess
import time

import pytest

from conftest import ADDRESSES, USER, Penstock
from test_service import OTHER, Service

# Flows of every kind, told what to do line by line.
AGENT = r"""
import http.client, json, socket, sys, threading
flows, lost = {}, []

def connect(host, port):
    s = socket.create_connection(("127.0.0.1", 3128), 30)
    s.sendall(b"CONNECT %s:%d HTTP/1.1\r\n\r\n" % (host.encode(), port))
    head = b""
    while b"\r\n\r\n" not in head:
        got = s.recv(4096)
        if not got:
            raise OSError("closed")
        head += got
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise OSError(head.split(b"\r\n")[0].decode())
    return s

def straight(host, port):
    return socket.create_connection((host, port), 30)

def echo(s, text):
    s.settimeout(30)
    s.sendall(text)
    got = b""
    while len(got) < len(text):
        more = s.recv(len(text) - len(got))
        if not more:
            raise OSError("end")
        got += more
    return got == text

def state(s):
    try:
        return "alive" if echo(s, b"ping") else "garbled"
    except ConnectionResetError:
        return "reset"
    except OSError as e:
        return str(e)

# Under load from here on: whatever is lost or changed is told at the end.
def load(name, s, stop):
    n = 0
    try:
        while not stop.is_set():
            n += 1
            if not echo(s, (b"%08d" % n) * 512):
                lost.append(name + ": garbled")
    except OSError as e:
        lost.append("%s: %s" % (name, type(e).__name__))

def get(c, url):
    try:
        c.request("GET", url)
        r = c.getresponse()
        return [r.status, r.reason, r.read().decode().strip()]
    except OSError as e:
        return [0, type(e).__name__, ""]

def act(word, *a):
    if word == "open":
        kind, host, n = a
        for i in range(n):
            flows.setdefault(kind + " " + host, []).append(
                (connect if kind == "connect" else straight)(host, 7))
        return n
    if word == "states":
        return {k: sorted(set(map(state, v))) for k, v in flows.items()}
    if word == "wait":        # until this one is cut
        s = flows[a[0]][0]
        s.settimeout(30)
        try:
            return repr(s.recv(1))
        except OSError as e:
            return type(e).__name__
    if word == "load":
        act.stop = threading.Event()
        act.threads = [threading.Thread(target=load, args=(k, s, act.stop))
                       for k in a[0] for s in flows[k]]
        for t in act.threads:
            t.start()
        return len(act.threads)
    if word == "unload":
        act.stop.set()
        for t in act.threads:
            t.join()
        return lost
    if word == "get":
        if not hasattr(act, "http"):
            act.http = http.client.HTTPConnection("127.0.0.1", 3128)
        return get(act.http, a[0])
    if word == "begin":       # a request that nobody answers yet
        act.slow = http.client.HTTPConnection("127.0.0.1", 3128, timeout=30)
        act.slow.request("GET", a[0])
        return True
    if word == "end":
        r = act.slow.getresponse()
        return [r.status, r.reason]
    if word == "dial":        # a connection that is being made
        act.dial = socket.create_connection(("127.0.0.1", 3128), 30)
        act.dial.sendall(b"CONNECT %s:443 HTTP/1.1\r\n\r\n" % a[0].encode())
        return True
    if word == "dialled":
        return act.dial.recv(4096).split(b"\r\n")[0].decode()
    if word == "resolve":
        try:
            return sorted({i[4][0] for i in socket.getaddrinfo(a[0], 7)})
        except OSError:
            return []
    if word == "reverse":
        try:
            return socket.gethostbyaddr(a[0])[0]
        except OSError:
            return None
    if word == "straight":
        try:
            return state(straight(a[0], 7))
        except ConnectionResetError:
            return "reset"
    if word == "hello":
        return True
    raise ValueError(word)

for line in sys.stdin:
    try:
        print(json.dumps(act(*json.loads(line))), flush=True)
    except Exception as e:
        print(json.dumps("failed: %r" % e), flush=True)
"""


def policy(*hosts, name="lab", more=""):
    return """[policy]
name = %s
[allow echo]
hosts = %s
ports = 7
protocol = tcp
addresses = %s
reason = lab
[allow web]
hosts = %s
addresses = %s
reason = lab
%s""" % (name, " ".join(hosts), ADDRESSES, " ".join(hosts), ADDRESSES, more)


BOTH = policy("web.example.com", "api.example.com", "silent.example.com")
ONE = policy("web.example.com", name="less")
# With it, a policy is compiled by the daemon's thread for large ones.
LARGE = ("; " + "x" * 70 + "\n") * 1000


class Agent:
    def __init__(self, run, text=BOTH, options=()):
        self.run = run
        self.process = run.start("/usr/bin/python3", "-u", "-c", AGENT,
                                 policy=text, options=options)
        assert self.do("hello") is True

    def do(self, *words):
        self.process.stdin.write(json.dumps(words).encode() + b"\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        assert ready, words
        line = self.process.stdout.readline()
        assert line, (words, self.process.communicate()[1])
        return json.loads(line)

    def records(self):
        with open(self.process.records_path, encoding="utf-8") as log:
            return [json.loads(line) for line in log
                    if line.endswith("\n")]

    @property
    def id(self):
        return self.records()[0]["run"]

    def end(self):
        self.process.stdin.close()
        out, err = self.process.stdout.read(), self.process.stderr.read()
        self.process.wait(60)
        assert (self.process.returncode, out) == (0, b""), err
        return self.records()

    def until(self, ev, n=1):
        """Wait for the @n-th record of an event."""
        for _ in range(3000):
            found = [r for r in self.records() if r["ev"] == ev]
            if len(found) >= n:
                return found[n - 1]
            time.sleep(0.01)
        raise AssertionError("%s never came: %s" % (ev, self.records()[-3:]))


def reload(run, *args, uid=None):
    return run.lab.host.run([run.program, "reload", *args],
                            uid=run.uid if uid is None else uid,
                            env=run.env(), capture_output=True, text=True)


def written(lab, name, text):
    path = os.path.join(lab.dir, name)
    with open(path, "w", encoding="ascii") as out:
        out.write(text)
    return path


def test_a_private_run_is_swapped_and_every_flow_is_judged_again(penstock, lab):
    # POL-06
    agent = Agent(penstock)
    for kind in "connect", "straight":
        for host in "web.example.com", "api.example.com":
            assert agent.do("open", kind, host, 3) == 3
    assert agent.do("get", "http://api.example.com/1")[0] == 200
    assert agent.do("begin", "http://api.example.com/mute") is True
    synthetic = agent.do("resolve", "api.example.com")
    assert agent.do("reverse", synthetic[0]) == "api.example.com"
    assert agent.do("load", ["connect web.example.com",
                             "straight web.example.com"]) == 6

    got = reload(penstock, "--run", agent.id, "--policy",
                 written(lab, "less.ini", ONE))
    assert got.returncode == 0, got.stderr
    assert "less@sha256:" in got.stdout
    assert " 8 cut" in got.stdout, got.stdout      # six tunnels, two of HTTP

    assert agent.do("unload") == []
    assert agent.do("states") == {
        "connect web.example.com": ["alive"],
        "connect api.example.com": ["reset"],
        "straight web.example.com": ["alive"],
        "straight api.example.com": ["reset"]}
    # The kept connection's next request, and the one that had no answer.
    assert agent.do("get", "http://api.example.com/2")[:2] == [
        403, "host_not_allowed"]
    assert agent.do("get", "http://web.example.com/3")[0] == 200
    assert agent.do("end") == [403, "policy_reload"]
    # Its name is denied, and the address that was given for it leads nowhere.
    assert agent.do("resolve", "api.example.com") == []
    assert agent.do("reverse", synthetic[0]) is None
    assert agent.do("straight", synthetic[0]) == "reset"

    records = agent.end()
    change = [r for r in records if r["ev"] == "policy_reload"]
    assert [(r["gen"], r["flows_kept"], r["flows_ended"]) for r in change] == [
        (2, 6, 8)]
    at = records.index(change[0])
    cut = [r for r in records
           if r["ev"] == "flow_close" and r["reason"] == "policy_reload"]
    assert len(cut) == 8
    assert {r["host"] for r in cut} == {"api.example.com"}
    assert {r["gen"] for r in cut} == {2}
    assert {r["gen"] for r in records[:at - len(cut) - 2]} == {1}
    kept = [r for r in records if r["ev"] == "flow_close"
            and r["host"] == "web.example.com"]
    assert kept and {(r["gen"], r["policy"].split("@")[0]) for r in kept} == {
        (2, "less")}
    refused = [r for r in records if r.get("asked") == synthetic[0]
               and r["ev"] == "flow_deny"]
    assert refused and refused[-1]["host"] == "api.example.com"
    assert refused[-1]["reason"] == "host_not_allowed"


def test_a_connection_that_is_being_made_is_given_up_at_once(as_user, lab):
    agent = Agent(as_user)
    assert agent.do("dial", "silent.example.com") is True
    agent.until("flow_open")
    got = reload(as_user, "--run", agent.id, "--policy",
                 written(lab, "less.ini", ONE))
    assert got.returncode == 0, got.stderr
    assert agent.do("dialled") == "HTTP/1.1 403 policy_reload"
    agent.end()


def test_without_a_file_the_runs_own_is_read_anew_POL_04(as_user, lab):
    agent = Agent(as_user)
    path = agent.process.args[agent.process.args.index("--policy") + 1]
    assert agent.do("open", "connect", "api.example.com", 1) == 1
    for gen in 2, 3:            # the same text: another generation, no more
        got = reload(as_user, "--run", agent.id, "--quiet")
        assert (got.returncode, got.stdout, got.stderr) == (0, "", "")
        assert agent.until("policy_reload", gen - 1)["gen"] == gen
    assert len({r["policy"] for r in agent.records()}) == 1
    assert agent.do("states") == {"connect api.example.com": ["alive"]}
    with open(path, "w", encoding="ascii") as out:
        out.write(BOTH + "[alow x]\n")
    got = reload(as_user, "--run", agent.id)
    assert got.returncode == 1
    assert "%s:%d: " % (path, BOTH.count("\n") + 1) in got.stderr, got.stderr
    assert "stays as it was" in got.stderr
    assert agent.do("states") == {"connect api.example.com": ["alive"]}
    with open(path, "w", encoding="ascii") as out:
        out.write(ONE)
    got = reload(as_user, "--run", agent.id)
    assert got.returncode == 0, got.stderr
    assert agent.do("states") == {"connect api.example.com": ["reset"]}
    agent.end()


def test_a_file_that_the_command_can_write_is_not_read_anew(as_user):
    work = as_user.workdir()
    path = os.path.join(work, "mine.ini")
    with open(path, "w", encoding="ascii") as out:
        out.write(BOTH)
    os.chown(path, USER, USER)
    agent = Agent(as_user, None, ["--policy", path])
    assert agent.do("open", "connect", "api.example.com", 1) == 1
    got = reload(as_user, "--run", agent.id)
    assert got.returncode == 1
    assert "where the command can write" in got.stderr
    agent.end()
    os.unlink(path)


def test_what_it_includes_is_not_read_anew_from_there_either(as_user, lab):
    work = as_user.workdir()
    part = os.path.join(work, "part.ini")
    with open(part, "w", encoding="ascii") as out:
        out.write("[allow part]\nhosts = part.example.net\n")
    os.chown(part, USER, USER)
    path = written(lab, "outer.ini", BOTH.replace(
        "[policy]\n", "[policy]\ninclude = %s\n" % part))
    agent = Agent(as_user, None, ["--policy", path])
    with open(part, "w", encoding="ascii") as out:
        out.write("[allow part]\nhosts = evil.example.net\n")
    got = reload(as_user, "--run", agent.id)
    assert got.returncode == 1
    assert "part.ini is where the command can write" in got.stderr
    assert not [r for r in agent.records() if r["ev"] == "policy_reload"]
    agent.end()
    os.unlink(part)


def test_a_new_policy_brings_all_that_it_names(penstock, lab):
    agent = Agent(penstock)
    assert agent.do("open", "connect", "web.example.com", 1) == 1
    assert agent.do("open", "connect", "api.example.com", 1) == 1
    os.makedirs(os.path.join(lab.dir, "parts"), exist_ok=True)
    written(lab, "parts/hosts.txt", "web.example.com\n")
    written(lab, "parts/part.ini", ONE[ONE.index("[allow"):].replace(
        "web.example.com", "@hosts.txt"))
    got = reload(penstock, "--run", agent.id, "--policy", written(
        lab, "whole.ini", "[policy]\nname = whole\n"
        "include = parts/part.ini\n"))
    assert got.returncode == 0, got.stderr
    assert "whole@sha256:" in got.stdout
    assert agent.do("states") == {"connect web.example.com": ["alive"],
                                  "connect api.example.com": ["reset"]}
    # A list of it that is gone: told with its place, and nothing changes.
    os.unlink(os.path.join(lab.dir, "parts/hosts.txt"))
    got = reload(penstock, "--run", agent.id, "--policy",
                 os.path.join(lab.dir, "whole.ini"))
    assert got.returncode == 2
    assert "parts/part.ini:" in got.stderr
    assert "the old one stays in force" in got.stderr
    assert agent.do("states")["connect web.example.com"] == ["alive"]
    agent.end()


def test_the_end_of_a_rule_cuts_what_lives_by_it(as_user):
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 4))
    agent = Agent(as_user, policy("web.example.com") + """
[allow brief]
hosts = api.example.com
ports = 7
protocol = tcp
addresses = %s
reason = lab
expires = %s
""" % (ADDRESSES, end))
    for host in "web.example.com", "api.example.com":
        assert agent.do("open", "connect", host, 1) == 1
        assert agent.do("open", "straight", host, 1) == 1
    for kind in "connect", "straight":
        assert agent.do("wait", kind + " api.example.com") \
            == "ConnectionResetError"
    for kind in "connect", "straight":
        assert agent.do("states")[kind + " web.example.com"] == ["alive"]
    assert agent.do("resolve", "api.example.com") == []
    records = agent.end()
    cut = [r for r in records if r.get("host") == "api.example.com"
           and r["ev"] == "flow_close"]
    assert [r["reason"] for r in cut] == ["rule_expired"] * 2
    assert all(r["ts"] >= end[:-1] for r in cut)
    assert {r["gen"] for r in records} == {1}


def test_a_wrong_file_or_run_is_told_before_anything_changes(as_user, lab):
    agent = Agent(as_user)
    bad = written(lab, "bad.ini", "[policy]\nname = x\n[allow a]\nhost = b\n")
    got = reload(as_user, "--run", agent.id, "--policy", bad)
    assert got.returncode == 2
    assert bad + ":4: error:" in got.stderr, got.stderr
    assert reload(as_user, "--run", "abcdef").returncode == 2
    assert reload(as_user, "--run", "../../x").returncode == 2
    assert reload(as_user, "--policy", bad).returncode == 2
    records = agent.end()
    assert {r["gen"] for r in records} == {1}
    # And when the run is over, so is its socket.
    got = reload(as_user, "--run", records[0]["run"])
    assert got.returncode == 2
    assert "going on" in got.stderr


KNOCK = r"""
import os, socket, struct, sys
d = os.open(sys.argv[1], os.O_PATH)
os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    s.connect("/proc/self/fd/%d/control.sock" % d)
    s.send(struct.pack("IHHII", 0x4b4c5350, int(sys.argv[3]), 6, 1, 0))
    print(len(s.recv(4096)))
except OSError as e:
    print(type(e).__name__)
"""


def plug_version():
    top = os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))))
    with open(os.path.join(top, "proxy/ctl_proto.h"), encoding="ascii") as text:
        return re.search(r"#define PLUG_VERSION\s+(\d+)", text.read()).group(1)


def test_another_uid_is_refused_and_the_sandbox_does_not_see_the_socket(
        as_user, lab):
    agent = Agent(as_user)
    state = os.path.join(lab.home, ".local/state/penstock", agent.id)

    def knock(uid):
        return lab.host.run(["/usr/bin/python3", "-c", KNOCK, state, str(uid),
                             plug_version()],
                            capture_output=True, text=True).stdout.strip()
    assert knock(OTHER) == "PermissionError"
    assert int(knock(USER)) > 100
    # Where its mode lets everybody in, the launcher does not.
    os.chmod(lab.host.path(os.path.join(state, "control.sock")), 0o666)
    for place in state, os.path.dirname(state):
        os.chmod(lab.host.path(place), 0o755)
    assert knock(OTHER) in ("0", "ConnectionResetError", "BrokenPipeError")
    assert int(knock(0)) > 100
    os.chmod(lab.host.path(os.path.dirname(state)), 0o700)
    agent.end()
    got = as_user.sh("ls -A %s %s 2>&1; cat /proc/net/unix"
                     % (os.path.dirname(state), state))
    assert "control.sock" not in got.out


def test_the_runs_directory_goes_with_the_run(as_user, lab):
    agent = Agent(as_user)
    state = lab.host.path(os.path.join(lab.home, ".local/state/penstock",
                                       agent.id))
    assert os.listdir(state) == ["control.sock"]
    agent.end()
    assert not os.path.exists(state)


# --- a service --------------------------------------------------------------------


@pytest.fixture
def service(lab):
    made = Service(lab, plug="allow_named_uid = %d" % OTHER)
    yield made
    made.stop()


def put(service, text, name="house"):
    """By rename, as tools do."""
    path = os.path.join(service.policies, name + ".ini")
    with open(path + ".new", "w", encoding="ascii") as out:
        out.write(text)
    os.chmod(path + ".new", 0o644)
    os.rename(path + ".new", path)


def named(service, uid=USER):
    return Agent(Penstock(service.lab, uid), None,
                 ["--plug", service.socket, "--policy-name", "house"])


def test_200_tunnels_on_several_workers_follow_a_file_that_changes(service):
    # POL-06
    put(service, BOTH)
    got = reload(Penstock(service.lab, USER), "--plug", service.socket)
    assert got.returncode == 0, got.stderr
    agents = [named(service) for _ in range(4)]
    for agent in agents:
        for host in "web.example.com", "api.example.com":
            assert agent.do("open", "connect", host, 25) == 25
        assert agent.do("load", ["connect web.example.com"]) == 25
    put(service, ONE)           # nobody asks: it is seen
    for agent in agents:
        agent.until("policy_reload")
        assert agent.do("unload") == []
        assert agent.do("states") == {"connect web.example.com": ["alive"],
                                      "connect api.example.com": ["reset"]}
    # Back again, and asked for: then everything is there when it says so.
    put(service, BOTH)
    got = reload(Penstock(service.lab, USER), "--plug", service.socket)
    assert got.returncode == 0, got.stderr
    assert "4 runs got another: 100 open flows kept, 0 cut" in got.stdout \
        or "100 open flows kept" in got.stdout, got.stdout
    for agent in agents:
        assert agent.do("open", "connect", "api.example.com", 1) == 1
        agent.end()


def test_a_link_that_is_swapped_is_followed(service):
    # As a ConfigMap is mounted.
    for version, text in ("..v1", BOTH), ("..v2", ONE):
        os.mkdir(os.path.join(service.policies, version))
        put(service, text, version + "/house")
    data = os.path.join(service.policies, "..data")
    os.symlink("..v1", data)
    os.unlink(os.path.join(service.policies, "house.ini"))
    os.symlink("..data/house.ini",
               os.path.join(service.policies, "house.ini"))
    got = reload(Penstock(service.lab, USER), "--plug", service.socket)
    assert got.returncode == 0, got.stderr
    agent = named(service)
    assert agent.do("open", "straight", "api.example.com", 1) == 1
    os.symlink("..v2", data + ".new")
    os.rename(data + ".new", data)
    assert agent.do("wait", "straight api.example.com") \
        == "ConnectionResetError"
    agent.end()
    subprocess.run(["rm", "-rf", service.policies], check=True)


def test_a_bad_file_leaves_the_old_policy_in_force_loudly(service):
    put(service, BOTH)
    run = Penstock(service.lab, USER)
    assert reload(run, "--plug", service.socket).returncode == 0
    agent = named(service)
    assert agent.do("open", "connect", "api.example.com", 1) == 1
    put(service, LARGE + ONE + "[alow x]\n")
    place = "house.ini:%d: " % ((LARGE + ONE).count("\n") + 1)
    failed = agent.until("policy_reload_failed")
    assert place in failed["error"]
    got = reload(run, "--plug", service.socket)
    assert got.returncode == 1
    assert service.policies + "/" + place in got.stderr, got.stderr
    assert agent.do("states") == {"connect api.example.com": ["alive"]}
    # Nor does SIGHUP; and the next good one is taken.
    os.kill(service.pid(), signal.SIGHUP)
    agent.until("policy_reload_failed", 3)
    assert agent.do("states") == {"connect api.example.com": ["alive"]}
    put(service, LARGE + ONE)
    assert agent.do("wait", "connect api.example.com") \
        == "ConnectionResetError"
    agent.end()
    _, err = service.stop()
    assert place in err.decode()


def test_sighup_counts_a_generation_each_time_POL_04(service):
    put(service, ONE)
    assert reload(Penstock(service.lab, USER), "--plug",
                  service.socket).returncode == 0
    agent = named(service)
    assert agent.do("open", "connect", "web.example.com", 1) == 1
    for n in 1, 2, 3:
        os.kill(service.pid(), signal.SIGHUP)
        assert agent.until("policy_reload", n)["gen"] == n + 1
        assert agent.do("get", "http://api.example.com/")[0] == 403
    assert agent.do("states") == {"connect web.example.com": ["alive"]}
    assert len({r["policy"] for r in agent.end()}) == 1


def test_who_may_change_what(service, lab):
    put(service, BOTH)
    run = Penstock(lab, USER)
    assert reload(run, "--plug", service.socket).returncode == 0
    # Who may only name one may not have them read again, nor bring one.
    got = reload(run, "--plug", service.socket, uid=OTHER)
    assert got.returncode == 1
    assert "may not reload" in got.stderr
    agent = named(service)
    got = reload(run, "--run", agent.id)
    assert got.returncode == 1
    assert "follows the service's policy" in got.stderr
    # Who may bring one may swap it for their own, and follows no more.
    assert agent.do("open", "connect", "api.example.com", 1) == 1
    got = reload(run, "--run", agent.id, "--policy",
                 written(lab, "own.ini", LARGE + BOTH))
    assert got.returncode == 0, got.stderr
    put(service, ONE)
    got = reload(run, "--plug", service.socket)
    assert got.returncode == 0 and " 0 runs got another" in got.stdout
    assert agent.do("states") == {"connect api.example.com": ["alive"]}
    agent.end()
    # And may bring a large one from the start.
    agent = Agent(run, LARGE + BOTH, ["--plug", service.socket])
    assert agent.do("open", "connect", "api.example.com", 1) == 1
    agent.end()
