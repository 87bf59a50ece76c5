# SPDX-License-Identifier: Apache-2.0
"""How a run begins, ends, and fails."""
import os
import select
import signal
import subprocess

import pytest

from conftest import POLICY, children, daemon_of, gone


def lines(stream, n):
    return [stream.readline().decode().strip() for _ in range(n)]


@pytest.mark.parametrize("text,place", [
    ("[allow a]\nhost = web.example.com\n", ":2:"),
    ("[allow a]\nhosts = web.example.com\nports = 99999\n", ":3:"),
    ("[alow a]\nhosts = web.example.com\n", ":1:"),
    ("hosts = web.example.com\n", ":1:"),
    ("[allow a\nhosts = web.example.com\n", ":1:"),
    ("[allow a]\nhosts = *.com\n", ":2:"),                 # POL-12
    ("[allow a]\n[allow b]\nhosts = web.example.com\n", ":1:"),
    ("[allow a]\nhosts = a.example.com\n[allow a]\nhosts = b.example.com\n",
     ":3:"),
])
def test_a_wrong_policy_is_125_with_file_and_line(as_user, text, place):
    got = as_user.sh("echo started", policy=text)
    assert got.code == 125
    assert got.out == ""
    assert ".ini" + place in got.err, got.err
    assert "error:" in got.err


def test_a_policy_that_is_not_there_or_not_readable_is_125(as_user, lab):
    got = as_user.sh("echo started", policy=None,
                     options=["--policy", "/nowhere/at/all.ini"])
    assert (got.code, got.out) == (125, "")
    assert "/nowhere/at/all.ini" in got.err
    secret = os.path.join(lab.dir, "unreadable.ini")
    with open(secret, "w", encoding="ascii") as out:
        out.write(POLICY)
    os.chmod(secret, 0o600)
    got = as_user.sh("echo started", policy=None, options=["--policy", secret])
    assert (got.code, got.out) == (125, "")
    assert "unreadable.ini: error: you may not read it" in got.err


@pytest.mark.parametrize("value", ["web.example.com\nx = y", "a b", "a\"b",
                                   "web.example.com:0", "b\u00fccher.example",
                                   "169.254.169.254", "*.com", ""])
def test_a_wrong_allow_is_125_and_said_on_one_line(as_user, value):
    # POL-18
    got = as_user.sh("echo started", policy=None, options=["--allow", value])
    assert (got.code, got.out) == (125, "")
    assert got.err.startswith("penstock run: ")


def test_the_whole_tree_is_gone_when_the_command_ends(penstock):
    # SBX-21
    process = penstock.start("sh", "-c", """
        setsid sleep 999 & (sleep 999 & sleep 999) &
        sh -c 'trap "" TERM INT HUP; sleep 999' &
        echo up; read -r go; exit 3""")
    assert lines(process.stdout, 1) == ["up"]
    below = children(process.pid)
    assert len(below) >= 5
    process.stdin.write(b"go\n")
    process.stdin.flush()
    assert process.wait(30) == 3
    assert gone(below)


def test_kill_9_of_penstock_leaves_nothing_behind(penstock):
    # SBX-32
    process = penstock.start("sh", "-c", "sleep 999 & echo up; sleep 999")
    assert lines(process.stdout, 1) == ["up"]
    below = children(process.pid)
    run = next(p for p in [process.pid] + below
               if os.readlink("/proc/%d/exe" % p).endswith("/penstock"))
    below = children(run)
    os.kill(run, signal.SIGKILL)
    process.wait(30)
    assert gone(below)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT,
                                    signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_command(as_user, number):
    name = signal.Signals(number).name[3:]
    process = as_user.start("sh", "-c", "trap 'echo got; exit 9' %s; echo up;"
                            "while :; do sleep 0.05; done" % name)
    assert lines(process.stdout, 1) == ["up"]
    run = next(p for p in [process.pid] + children(process.pid)
               if os.readlink("/proc/%d/exe" % p).endswith("/penstock"))
    os.kill(run, number)
    out, _ = process.communicate(timeout=30)
    assert out == b"got\n"
    assert process.returncode == 9


def test_a_command_that_dies_of_a_signal_is_reported_as_such(as_user):
    got = as_user.sh("kill -SEGV $$")
    assert got.code in (128 + signal.SIGSEGV, -signal.SIGSEGV)


def test_when_penstockd_is_killed_the_sandbox_is_shut_not_open(as_user, lab):
    process = as_user.start("sh", "-c", """
        curl -sS http://web.example.com/before
        echo up; read -r go
        curl -sS --max-time 20 http://web.example.com/after; echo $?
        curl -sS --noproxy '*' --max-time 20 http://203.0.113.10/after; echo $?
        dig +time=2 +tries=1 web.example.com >/dev/null; echo $?
        exit 5""")
    assert lines(process.stdout, 2) == ["lab GET /before host=web.example.com",
                                        "up"]
    before = len(lab.origin_seen())
    daemon = daemon_of(process)
    assert daemon is not None
    os.kill(daemon, signal.SIGKILL)
    assert gone([daemon])
    process.stdin.write(b"go\n")
    out, err = process.communicate(timeout=60)
    assert b"lab GET" not in out
    assert b"0\n" not in out
    assert process.returncode == 5
    assert b"penstockd" in err
    assert lab.origin_seen(before) == []


def test_a_start_at_a_tenth_of_the_speed_is_slow_and_nothing_else(as_user, lab):
    # OPS-11: as under a small quota of CPU, and where localhost is ::1 first.
    hosts = lab.host.path("/etc/hosts")
    with open(hosts, encoding="utf-8") as text:
        before = text.read()
    with open(hosts, "w", encoding="utf-8") as out:
        out.write("::1 localhost\n127.0.0.1 localhost\n")
    try:
        process = as_user.start("sh", "-c", "env | grep -i http_proxy;"
                                "curl -sS http://web.example.com/", text=True)
        while process.poll() is None:
            all_of_it = [process.pid] + children(process.pid)
            for number, seconds in ((signal.SIGSTOP, 0.045),
                                    (signal.SIGCONT, 0.005)):
                for pid in all_of_it:
                    try:
                        os.kill(pid, number)
                    except ProcessLookupError:
                        continue
                select.select([], [], [], seconds)
        out, err = process.communicate(timeout=60)
    finally:
        with open(hosts, "w", encoding="utf-8") as out_:
            out_.write(before)
    assert process.returncode == 0, err
    assert "http_proxy=http://127.0.0.1:3128\n" in out.lower(), out
    assert out.endswith("lab GET / host=web.example.com\n"), (out, err)


# SBX-03 is about 500 starts: `make stress` asks for them.
STARTS = int(os.environ.get("PENSTOCK_STARTS", "40"))


def test_every_first_command_finds_the_network_ready(as_user):
    # SBX-03
    for _ in range(STARTS):
        got = as_user.curl("http://web.example.com/")
        assert got.out == "lab GET / host=web.example.com\n", got.err


def test_parallel_runs_do_not_meet(penstock):
    # SBX-31
    running = [penstock.start("curl", "-sS", "https://web.example.com/%d" % i)
               for i in range(20)]
    for i, process in enumerate(running):
        out, err = process.communicate(timeout=120)
        assert out.decode() == "lab GET /%d host=web.example.com\n" % i, err


def test_a_thousand_tunnels_under_the_usual_descriptor_limit(as_user):
    # The caller's soft limit is the usual 1,024, whatever it is here.
    got = as_user.python(r"""
import resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)) \
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= 4096 else None
held = []
for i in range(1000):
    s = socket.create_connection(("git.example.com", 7), 60)
    held.append(s)
for i, s in enumerate(held):
    s.sendall(b"%d\n" % i)
print(all(s.recv(100) == b"%d\n" % i for i, s in enumerate(held)))
""", policy=POLICY + "\n[allow echo]\nhosts = git.example.com\nports = 7\n"
        "addresses = 203.0.113.0/24\nreason = echo\nowner = tests\n",
        options=["--no-proxy-env"], timeout=300,
        before=["prlimit", "--nofile=1024:20000"])
    assert got.out == "True\n", got.err
    assert len(got.flows(ev="flow_close")) == 1000


def sockets_of(pid):
    """How many sockets @pid has open."""
    found = 0
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            found += os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith(
                "socket:")
        except OSError:
            continue
    return found


def test_every_kind_of_end_gives_its_sockets_back(as_user):
    # TUN-11: closed by the client, by the origin, by both, and by a reset.
    process = as_user.start("/usr/bin/python3", "-c", r"""
import socket, struct, sys
def tunnel(kind):
    s = socket.create_connection(("git.example.com", 19 if kind == 1 else 7), 30)
    s.sendall(b"10\n")
    assert s.recv(100)
    if kind == 1:
        while s.recv(100):
            pass
    elif kind == 2:
        s.shutdown(socket.SHUT_WR)
        while s.recv(100):
            pass
    elif kind == 3:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                     struct.pack("ii", 1, 0))
    s.close()
def once():
    s = socket.create_connection(("git.example.com", 7), 30)
    s.sendall(b"x")
    assert s.recv(1) == b"x"
    return s
for line in sys.stdin:
    if line == "many\n":
        for i in range(200):
            tunnel(i % 4)
    held = once()
    print("open", flush=True)
""", policy=POLICY + "\n[allow echo]\nhosts = git.example.com\nports = 7 19\n"
        "addresses = 203.0.113.0/24\nreason = echo\nowner = tests\n",
        options=["--no-proxy-env"], text=True, bufsize=1)
    process.stdin.write("one\n")
    assert process.stdout.readline() == "open\n", process.communicate()
    daemon = daemon_of(process)
    before = sockets_of(daemon)
    process.stdin.write("many\n")
    assert process.stdout.readline() == "open\n", process.communicate()
    for _ in range(1000):
        after = sockets_of(daemon)
        if after <= before:
            break
        os.sched_yield()
    assert after <= before
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err


def test_slow_and_late_readers_get_everything(as_user):
    # One by drops, in a window of one segment; meanwhile the other reads nothing of
    # what is more than the kernels' buffers have room for.
    got = as_user.python(r"""
import socket
def zeros(n):
    s = socket.create_connection(("git.example.com", 19), 60)
    s.sendall(b"%d\n" % n)
    return s
def read_all(s, at_once):
    total = 0
    while part := s.recv(at_once):
        total += len(part)
    return total
late = zeros(30000000)
slow = socket.create_connection(("git.example.com", 19), 60)
slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
slow.sendall(b"80000\n")
print(read_all(slow, 1500), read_all(late, 65536))
""", policy=POLICY + "\n[allow zeros]\nhosts = git.example.com\nports = 19\n"
        "addresses = 203.0.113.0/24\nreason = zeros\nowner = tests\n",
        options=["--no-proxy-env"], timeout=300)
    assert got.out == "80000 30000000\n", got.err
    assert {r["bytes_down"] for r in got.flows(ev="flow_close")} == {80000,
                                                                    30000000}


def test_records_that_cannot_be_written_refuse_new_flows(as_user):
    # LOG-12: a run that has nowhere to write does not even start.
    got = as_user.lab.host.run(
        as_user.argv(["curl", "-sS", "http://web.example.com/"],
                     records="/dev/full"), uid=as_user.uid,
        cwd=as_user.workdir(), env=as_user.env(), capture_output=True,
        text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert (got.returncode, got.stdout) == (125, "")
    assert "penstock: " in got.stderr and "records" in got.stderr


def test_a_disk_that_fills_up_refuses_new_flows(as_user, lab):
    # LOG-12: the records' file system is full in mid-run.
    small = lab.workdir("small", as_user.uid)
    lab.host.sh("mount -t tmpfs -o size=256k,uid=%d penstock-lab %s"
                % (as_user.uid, small))
    try:
        process = lab.host.popen(
            as_user.argv(["sh", "-c", """
                while read -r path; do
                    curl -sS --max-time 20 http://web.example.com/$path; echo =
                done"""], records=small + "/audit.jsonl"),
            uid=as_user.uid, cwd=as_user.workdir(), env=as_user.env(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, bufsize=1)

        def ask(path):
            process.stdin.write(path + "\n")
            said = ""
            while not said.endswith("=\n"):
                part = process.stdout.readline()
                assert part, process.stderr.read()
                said += part
            return said

        assert ask("before").startswith("lab GET /before")
        lab.host.run(["dd", "if=/dev/zero", "of=%s/fill" % small, "bs=4k"],
                     capture_output=True)
        # What fits the last block still goes; then no more.
        for _ in range(200):
            if "audit_unavailable" in ask("filling"):
                break
        before = len(lab.origin_seen())
        for _ in range(3):
            assert '"error":"audit_unavailable"' in ask("after")
        assert lab.origin_seen(before) == []
        process.communicate(timeout=60)
    finally:
        lab.host.sh("umount -l " + small)


def test_isolation_needs_no_rule_of_the_host(as_user, lab):
    # SBX-33: a flush of the host's firewall in mid-run changes nothing.
    process = as_user.start("sh", "-c", """
        echo up; read -r go
        curl -sS http://web.example.com/allowed
        curl -sS --noproxy '*' --max-time 20 http://%s/direct""" %
                            "203.0.113.10", text=True)
    assert process.stdout.readline() == "up\n"
    lab.host.sh("nft flush ruleset")
    before = len(lab.origin_seen())
    out, err = process.communicate("go\n", timeout=60)
    assert out.startswith("lab GET /allowed host=web.example.com\n"), err
    assert "/direct" not in out
    assert "/direct" not in str(lab.origin_seen(before))


def test_a_covered_proc_is_said_with_its_mend(as_root):
    # SBX-34, SBX-02: a container's /proc/sys; nothing starts half-made.
    got = as_root.sh("echo started", before=[
        "unshare", "--mount", "sh", "-c",
        "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys"
        " && exec \"$@\"", "sh"])
    assert (got.code, got.out) == (125, "")
    assert "/proc" in got.err and "container" in got.err


def test_usage_errors_teach(as_user):
    got = as_user.lab.host.run([as_user.program, "run", "--alow", "x", "--",
                                "true"], capture_output=True, text=True)
    assert got.returncode == 125
    assert "--allow" in got.stderr
    got = as_user.lab.host.run([as_user.program, "--help"],
                               capture_output=True, text=True)
    assert got.returncode == 0 and "penstock run" in got.stdout
