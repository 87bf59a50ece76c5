# SPDX-License-Identifier: Apache-2.0
"""conftest.py - real binaries, real namespaces, real clients.

`lab` is built once a session; `penstock` runs commands in its host namespace,
as root and as an ordinary user (the `who` fixture), from copies of the
installed programs that this user can read.  No test sleeps to wait for
something: each waits for the event itself, with a bound.
"""
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zlib

import pytest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TESTS, "lab"))

import names  # noqa: E402
from lab import ADDRESSES, Lab  # noqa: E402

USER = 64321            # no such user: an id that owns nothing else
NUMBER = itertools.count(1)     # no two runs share a file
TIMEOUT = 60            # of one sandboxed command, far above what it takes

# What most tests allow: names of example.com, in the lab's address ranges.
POLICY = """\
[policy]
name = lab

[allow web]
hosts     = *.example.com
addresses = %s
reason    = the lab's origins live in documentation ranges
owner     = tests
""" % ADDRESSES


def pytest_configure(config):
    # A background job of a shell has these ignored, and so would the commands
    # that are to be interrupted here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)     # as nohup(1) leaves it
    config.addinivalue_line("markers", "slow: takes more than a few seconds")


def pytest_collection_modifyitems(config, items):
    """PENSTOCK_E2E_SHARE=N: of a test's variants one in N, and one at least."""
    share = int(os.environ.get("PENSTOCK_E2E_SHARE", 1))
    kept, variants = [], {}
    for item in items:
        variants.setdefault(item.nodeid.split("[")[0], []).append(item)
    for name, several in variants.items():
        first = zlib.crc32(name.encode()) % share
        kept += several[min(first, len(several) - 1)::share]
    kept = set(kept)
    left = [item for item in items if item not in kept]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item in kept]


def build_dir():
    build = os.environ.get("PENSTOCK_BUILD")
    if not build:
        pytest.exit("PENSTOCK_BUILD must name a build tree; see scripts/check", 2)
    return build


@pytest.fixture(scope="session")
def lab():
    if os.geteuid() != 0:
        pytest.exit("the lab needs root: sudo ./scripts/check e2e", 2)
    made = Lab()
    try:
        stage = os.path.join(made.dir, "stage")
        subprocess.run(["make", "-s", "-C", build_dir(), "install",
                        "DESTDIR=" + stage], check=True,
                       stdout=subprocess.DEVNULL)
        home = made.workdir("home", USER)
        made.home = home
        yield made
    finally:
        made.close()


class Result:
    """What one `penstock run` left behind."""

    def __init__(self, done, records_path):
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr
        self.records_path = records_path

    @property
    def records(self):
        with open(self.records_path, encoding="utf-8") as log:
            return [json.loads(line) for line in log]

    def flows(self, **want):
        """Records of flows (no DNS, nothing of our own) with these fields."""
        return [r for r in self.records
                if r["ev"].startswith(("flow_", "http")) and not r.get("internal")
                and all(r.get(k) == v for k, v in want.items())]

    def dns(self, **want):
        return [r for r in self.records
                if r["ev"] == "dns" and not r.get("internal")
                and all(r.get(k) == v for k, v in want.items())]

    def denied(self):
        """(host or asked address, port, reason) of each refused flow."""
        return {(r.get("host") or r.get("asked") or r.get("dst_ip"),
                 r.get("dst_port"), r["reason"])
                for r in self.flows(act="deny")}


class Penstock:
    """Runs commands under `penstock run` in the lab's host namespace."""

    def __init__(self, lab, uid):
        self.lab = lab
        self.uid = uid
        stage = os.path.join(lab.dir, "stage")
        self.prefix = os.path.join(stage, "usr/local")
        self.program = os.path.join(self.prefix, "bin/penstock")
        self.daemon = os.path.join(self.prefix, "sbin/penstockd")

    def env(self, extra=None):
        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": self.lab.home if self.uid else "/root",
            "LANG": "C.UTF-8",
            "SSL_CERT_FILE": self.lab.ca,
            "CURL_CA_BUNDLE": self.lab.ca,
            "GIT_SSL_CAINFO": self.lab.ca,
            "NODE_EXTRA_CA_CERTS": self.lab.ca,
            # Leaks of a killed process say nothing; leaks of a daemon do.
            "ASAN_OPTIONS": "detect_leaks=0",
        }
        env.update(extra or {})
        return env

    def workdir(self):
        return self.lab.workdir("work-%s" % (self.uid or "root"), self.uid)

    def argv(self, command, policy=POLICY, options=(), records=None):
        args = [self.program, "run"]
        if policy is not None:
            path = os.path.join(self.lab.dir, "policy-%d.ini" % next(NUMBER))
            with open(path, "w", encoding="utf-8") as out:
                out.write(policy)
            args += ["--policy", path]
        if records:
            args += ["--records", records]
        return args + list(options) + ["--"] + list(command)

    def records_path(self):
        return os.path.join(self.workdir(), "audit-%d.jsonl" % next(NUMBER))

    def run(self, *command, policy=POLICY, options=(), env=None, stdin=None,
            text=True, timeout=TIMEOUT, before=()):
        """@before: what `penstock run` itself is started with, as prlimit."""
        records = self.records_path()
        done = self.lab.host.run(
            [*before, *self.argv(command, policy, options, records)],
            uid=self.uid,
            cwd=self.workdir(), env=self.env(env), timeout=timeout,
            capture_output=True, text=text,
            **({"input": stdin} if stdin is not None
               else {"stdin": subprocess.DEVNULL}))
        return Result(done, records)

    def start(self, *command, policy=POLICY, options=(), env=None, **kwargs):
        """A running `penstock run`, its records path as .records_path."""
        records = self.records_path()
        kwargs.setdefault("stdin", subprocess.PIPE)
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE)
        process = self.lab.host.popen(
            self.argv(command, policy, options, records), uid=self.uid,
            cwd=self.workdir(), env=self.env(env), **kwargs)
        process.records_path = records
        return process

    def python(self, script, *args, **kwargs):
        """Run a Python script inside."""
        return self.run("/usr/bin/python3", "-c", script, *args, **kwargs)

    def sh(self, script, **kwargs):
        return self.run("/bin/sh", "-c", script, **kwargs)

    def curl(self, *args, **kwargs):
        return self.run("curl", "-sS", "--max-time", "20", *args, **kwargs)


@pytest.fixture(params=["root", "user"])
def penstock(lab, request):
    """As root and as an ordinary user."""
    return Penstock(lab, None if request.param == "root" else USER)


@pytest.fixture
def as_user(lab):
    return Penstock(lab, USER)


@pytest.fixture
def as_root(lab):
    return Penstock(lab, None)


def children(pid):
    """Every process below @pid, by /proc."""
    found = []
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/%s/stat" % entry, encoding="ascii",
                          errors="replace") as stat:
                    fields = stat.read().rsplit(")", 1)[1].split()
                parents.setdefault(int(fields[1]), []).append(int(entry))
            except OSError:
                continue
    queue = [pid]
    while queue:
        for child in parents.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def program_of(pid):
    try:
        return os.path.basename(os.readlink("/proc/%d/exe" % pid))
    except OSError:
        return ""


def daemon_of(process):
    """The private penstockd of a running `penstock run` (its main process)."""
    for pid in children(process.pid):
        if program_of(pid) == "penstockd":
            return pid
    return None


def gone(pids, timeout=10):
    """Wait until none of @pids is left (zombies count as gone)."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        left = []
        for pid in pids:
            try:
                with open("/proc/%d/stat" % pid, encoding="ascii",
                          errors="replace") as stat:
                    if stat.read().rsplit(")", 1)[1].split()[0] != "Z":
                        left.append(pid)
            except OSError:
                continue
        if not left:
            return True
        os.sched_yield()
        time.sleep(0.01)
    return False


__all__ = ["ADDRESSES", "POLICY", "USER", "names", "children", "daemon_of",
           "gone", "json", "shutil", "signal"]
