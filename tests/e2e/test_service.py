# SPDX-License-Identifier: Apache-2.0
"""One penstockd for many runs: plug, rules of who may, drain, log, restart."""
import json
import os
import signal
import subprocess

import pytest

from conftest import POLICY, USER, Penstock, gone

SERVICE_USER = 64400
SERVICE_NAME = "penstock-lab"
OTHER = 64322


class Service:
    """penstockd --config in the lab's host, its own user and directories."""

    def __init__(self, lab, more="", plug=""):
        self.lab = lab
        self._account()
        self.dir = lab.workdir("service", SERVICE_USER)
        self.socket = self.dir + "/plug.sock"
        self.log = self.dir + "/audit.jsonl"
        self.policies = lab.workdir("service/policies")
        if os.path.exists(self.log):
            os.unlink(self.log)
        with open(self.policies + "/house.ini", "w", encoding="ascii") as out:
            out.write(POLICY.replace("name = lab", "name = house"))
        self.config = self.dir + "/penstockd.ini"
        with open(self.config, "w", encoding="ascii") as out:
            out.write("[service]\nplug = %s\nlog = %s\nworkers = 2\n"
                      "user = %s\ndrain_seconds = 5\n%s\n"
                      "[plug]\nallow_policy_uid = 0 %d\npolicies = %s\n%s\n"
                      % (self.socket, self.log, SERVICE_NAME, more, USER,
                         self.policies, plug))
        os.chmod(self.config, 0o644)
        self.start()

    def _account(self):
        """The service's user, in the lab host's own /etc."""
        for name, line in (("passwd", "%s:x:%d:%d::/:/usr/sbin/nologin\n"),
                           ("group", "%s:x:%d:\n")):
            path = self.lab.host.path("/etc/" + name)
            with open(path, "r+", encoding="utf-8") as table:
                if SERVICE_NAME not in table.read():
                    table.write(line % ((SERVICE_NAME,)
                                        + (SERVICE_USER,) * (line.count("%") - 1)))

    def start(self):
        self.process = self.lab.host.popen(
            [self.lab.dir + "/stage/usr/local/sbin/penstockd", "--config",
             self.config], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "ASAN_OPTIONS": "detect_leaks=0"})
        # A plugged run that is over shows that it is up and sealed.
        for _ in range(2000):
            if self.process.poll() is not None:
                raise AssertionError(self.process.communicate())
            probe = Penstock(self.lab, None).run(
                "true", options=["--plug", self.socket])
            if probe.code == 0:
                self.probe = probe.records[0]["run"]
                return
        raise AssertionError("penstockd never answered")

    def pid(self):
        """penstockd itself: nsenter became it."""
        return self.process.pid

    def records(self):
        with open(self.log, encoding="utf-8") as log:
            records = [json.loads(line) for line in log]
        return [r for r in records if r["run"] != self.probe]

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.communicate(timeout=30)


@pytest.fixture
def service(lab):
    made = Service(lab)
    yield made
    made.stop()


def plugged(service, uid, *options):
    run = Penstock(service.lab, uid)
    return run, ["--plug", service.socket, *options]


def test_a_run_is_handed_over_to_the_service(service, lab):
    run, options = plugged(service, USER)
    got = run.curl("http://web.example.com/s", options=options)
    assert got.out == "lab GET /s host=web.example.com\n", got.err
    # The run's own file and the service's log tell the same.
    own = [r["id"] for r in got.records if r["ev"] == "flow_open"]
    assert own and own == [r["id"] for r in service.records()
                           if r["ev"] == "flow_open"]


def test_many_runs_at_once_share_the_service(service):
    run, options = plugged(service, USER)
    running = [run.start("curl", "-sS", "https://web.example.com/%d" % i,
                         options=options) for i in range(12)]
    for i, process in enumerate(running):
        out, err = process.communicate(timeout=120)
        assert out.decode() == "lab GET /%d host=web.example.com\n" % i, err
    assert len({r["run"] for r in service.records()}) == 12


def test_who_may_not_bring_a_policy_is_told_and_nothing_starts(service):
    # A service that is there and refuses is 125, never a private daemon.
    run, options = plugged(service, OTHER)
    os.chmod(service.socket, 0o666)
    got = run.sh("echo started", options=options)
    assert (got.code, got.out) == (125, "")
    assert "penstock:" in got.err and str(OTHER) in got.err, got.err


def test_sigterm_drains_and_every_flow_has_an_end(service):
    # LOG-18
    run, options = plugged(service, USER)
    process = run.start("/usr/bin/python3", "-c", r"""
import socket, sys
s = socket.create_connection(("127.0.0.1", 3128))
s.sendall(b"CONNECT web.example.com:80 HTTP/1.1\r\n\r\nGET /")
print(s.recv(100)[:12], flush=True)
sys.stdin.read(1)
said = b""
while not said.startswith(b"HTTP/1.1 503"):
    with socket.create_connection(("127.0.0.1", 3128)) as n:
        n.sendall(b"CONNECT web.example.com:80 HTTP/1.1\r\n\r\n")
        said = n.recv(100)
print(said[:21], flush=True)
sys.stdin.read(1)
try:
    s.settimeout(30)
    print(s.recv(100))
except OSError as e:
    print(type(e).__name__)
""", options=options)
    assert process.stdout.readline() == b"b'HTTP/1.1 200'\n"
    service.process.send_signal(signal.SIGTERM)
    process.stdin.write(b"x")
    process.stdin.flush()
    # What is new is refused while what is open goes on ...
    assert process.stdout.readline() == b"b'HTTP/1.1 503 shutdown'\n"
    assert service.process.poll() is None
    # ... and a second signal waits for nothing.
    service.process.send_signal(signal.SIGTERM)
    _, err = service.process.communicate(timeout=30)
    assert service.process.returncode == 0, err
    process.communicate(b"x", timeout=60)
    opened = {r["id"] for r in service.records() if r["ev"] == "flow_open"}
    closed = {r["id"]: r["reason"] for r in service.records()
              if r["ev"] == "flow_close"}
    assert opened and opened <= set(closed)
    assert service.records()[-1]["ev"] == "run_end"


def test_sighup_reopens_the_log(service):
    # LOG-14
    run, options = plugged(service, USER)
    assert run.curl("http://web.example.com/", options=options).code == 0
    os.rename(service.log, service.log + ".1")
    service.process.send_signal(signal.SIGHUP)
    for _ in range(1000):
        if os.path.exists(service.log):
            break
        import time
        time.sleep(0.01)
    got = run.curl("http://web.example.com/", options=options)
    assert got.code == 0, got.err
    assert {r["run"] for r in service.records()} == {got.records[0]["run"]}


def test_the_service_runs_as_its_own_user_with_nothing(service):
    with open("/proc/%d/status" % service.pid(), encoding="ascii") as status:
        fields = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    assert set(fields["Uid"].split()) == {str(SERVICE_USER)}
    for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
        assert int(fields[name], 16) == 0, name
    assert fields["NoNewPrivs"].strip() == "1"
    assert fields["Seccomp"].strip() == "2"


def test_a_killed_service_leaves_every_sandbox_shut(service, lab):
    run, options = plugged(service, USER)
    process = run.start("sh", "-c", """
        echo up; read -r go
        curl -sS --max-time 20 http://web.example.com/after; echo $?""",
                        options=options)
    assert process.stdout.readline() == b"up\n"
    os.kill(service.pid(), signal.SIGKILL)
    assert gone([service.pid()])
    before = len(lab.origin_seen())
    out, _ = process.communicate(b"go\n", timeout=60)
    assert b"lab GET" not in out and b"0\n" not in out
    assert lab.origin_seen(before) == []


def test_a_named_policy_of_the_service(lab):
    made = Service(lab, plug="allow_named_uid = %d" % OTHER)
    try:
        os.chmod(made.socket, 0o666)
        run, options = plugged(made, OTHER, "--policy-name", "house")
        got = run.curl("http://web.example.com/n", policy=None, options=options)
        assert got.out == "lab GET /n host=web.example.com\n", got.err
        assert got.records[0]["policy"].startswith("house@sha256:")
        got = run.sh("echo started", policy=None, options=[
            "--plug", made.socket, "--policy-name", "../house"])
        assert (got.code, got.out) == (125, "")
    finally:
        made.stop()


def test_a_named_policy_without_a_service_is_said_to_need_one(as_user):
    got = as_user.sh("echo started", policy=None,
                     options=["--policy-name", "house"])
    assert (got.code, got.out) == (125, "")
    assert got.err.count("--policy-name needs a service") == 1


def test_a_service_started_as_root_without_a_user_says_so_once(lab):
    path = os.path.join(lab.dir, "rootly.ini")
    plug = os.path.join(lab.dir, "rootly.sock")
    with open(path, "w", encoding="ascii") as out:
        out.write("[service]\nplug = %s\n[plug]\nallow_policy_uid = 0\n" % plug)
    done = lab.host.run([lab.dir + "/stage/usr/local/sbin/penstockd",
                         "--config", path], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("'user' in [service]") == 1, done.stderr
    assert not os.path.exists(plug)


@pytest.mark.parametrize("text,words", [
    ("[service]\nplugg = /x\n", "did you mean 'plug'"),
    ("[service]\nworkers = many\n", "wants a number"),
    ("[service]\n", "nobody may plug"),
    ("[plug]\nallow_policy_uid = 1-\n", "no id"),
])
def test_a_wrong_configuration_is_said_with_its_line(lab, text, words):
    path = os.path.join(lab.dir, "wrong.ini")
    with open(path, "w", encoding="ascii") as out:
        out.write(text)
    done = lab.host.run([lab.dir + "/stage/usr/local/sbin/penstockd",
                         "--config", path], capture_output=True, text=True)
    assert done.returncode != 0
    assert words in done.stderr and "wrong.ini" in done.stderr, done.stderr
