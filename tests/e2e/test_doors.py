# SPDX-License-Identifier: Apache-2.0
"""The four doors beside the network: closed from the first day.

Each refusal stands beside a positive control: the same act outside, or the
allowed sibling inside, works.
"""
import ctypes
import os
import socket
import threading

import pytest

from conftest import USER, children, program_of

TRY = r"""
import ctypes, errno, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[
        a if isinstance(a, bytes) else ctypes.c_long(a) for a in args])
    return "ok" if result >= 0 else errno.errorcode[ctypes.get_errno()]
def attempt(label, f):
    try:
        f()
        print(label, "ok")
    except OSError as e:
        print(label, errno.errorcode[e.errno])
"""


def said(result):
    assert result.code == 0, result.err
    return dict(line.split(" ", 1) for line in result.out.splitlines())


class Listening:
    """A host's pathname socket that answers whoever comes."""

    def __init__(self, path, mode=0o777):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if os.path.exists(path):
            os.unlink(path)
        self.socket.bind(path)
        os.chmod(path, mode)
        self.socket.listen(8)
        self.met = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            self.met += 1
            peer.close()

    def close(self):
        self.socket.close()
        os.unlink(self.path)


@pytest.mark.parametrize("where", ["/run", "/tmp", "/var/tmp", "/dev/shm"])
def test_pathname_sockets_of_the_host_are_out_of_reach(penstock, where):
    # SBX-11
    name = "%s/penstock-door-%d" % (where, os.getpid())
    listening = Listening(penstock.lab.host.path(name)
                          if where == "/run" else name)
    try:
        probe = ("import socket; s = socket.socket(socket.AF_UNIX);"
                 "s.connect('%s'); print('reached')" % name)
        outside = penstock.lab.host.run(
            ["/usr/bin/python3", "-c", probe], uid=penstock.uid,
            capture_output=True, text=True)
        assert outside.stdout == "reached\n"
        inside = penstock.python(probe)
        assert "FileNotFoundError" in inside.err
        assert listening.met == 1
    finally:
        listening.close()


def test_sockets_and_keys_in_the_home_directory_are_out_of_reach(as_user, lab):
    # SBX-11
    listening = Listening(lab.home + "/agent.sock")
    with open(lab.home + "/secret", "w", encoding="ascii") as out:
        out.write("key\n")
    os.chown(lab.home + "/secret", USER, USER)
    try:
        got = as_user.sh("cat %s/secret; ls %s; cat $HOME/secret" %
                         (lab.home, lab.home))
        assert "key" not in got.out
        assert "agent.sock" not in got.out
    finally:
        listening.close()


def test_abstract_sockets_of_the_host_are_out_of_reach(as_user):
    # SBX-13
    server = as_user.lab.host.popen(
        ["/usr/bin/python3", "-c",
         "import socket,sys; s=socket.socket(socket.AF_UNIX);"
         "s.bind('\\0penstock-door'); s.listen(); print('up', flush=True);"
         "sys.stdin.read()"], stdin=-1, stdout=-1)
    try:
        server.stdout.readline()
        got = as_user.python("import socket; s=socket.socket(socket.AF_UNIX);"
                             "s.connect('\\0penstock-door')")
        assert "ConnectionRefusedError" in got.err
    finally:
        server.stdin.close()
        server.wait()


def test_only_four_socket_families_exist(penstock):
    # SBX-10
    got = said(penstock.python(TRY + r"""
for family in range(0, 46):
    attempt(family, lambda: socket.socket(family, socket.SOCK_STREAM, 0).close())
attempt("route", lambda: socket.socket(16, socket.SOCK_RAW, 0).close())
attempt("audit", lambda: socket.socket(16, socket.SOCK_RAW, 9).close())
attempt("diag", lambda: socket.socket(16, socket.SOCK_RAW, 4).close())
attempt("pair", lambda: socket.socketpair())
"""))
    works = {k for k, v in got.items() if v == "ok"}
    assert works == {"1", "2", "10", "route", "pair"}, got


def test_namespaces_mounts_and_kernel_doors_are_refused(penstock):
    # SBX-12, SBX-14, SBX-19
    got = said(penstock.python(TRY + r"""
NEWUSER, NEWNET, NEWNS = 0x10000000, 0x40000000, 0x20000
print("unshare-user", call(272, NEWUSER))
print("unshare-net", call(272, NEWNET))
print("clone-user", call(56, NEWUSER | 17, 0, 0, 0, 0))
print("clone3", call(435, 0, 0))
print("setns", call(308, 0, 0))
print("mount", call(165, b"none", b"/mnt", b"tmpfs", 0, 0))
print("fsopen", call(430, b"tmpfs", 0))
print("open_tree", call(428, -100, b"/", 0))
print("move_mount", call(429, -1, b"", -1, b"", 0))
print("io_uring", call(425, 8, 0))
print("bpf", call(321, 0, 0, 0))
print("perf", call(298, 0, 0, -1, -1, 0))
print("userfaultfd", call(323, 0))
print("add_key", call(248, b"user", b"x", b"y", 1, -2))
print("keyctl", call(250, 0, -3, 1))
print("open_by_handle", call(304, -1, 0, 0))
print("kexec", call(246, 0, 0, 0, 0))
print("tiocsti", call(16, 0, 0x5412, b"x"))
print("getpid", call(39))
"""))
    assert got.pop("getpid") == "ok"
    assert got.pop("clone3") == "ENOSYS"
    assert got.pop("io_uring") == "ENOSYS"
    assert set(got.values()) <= {"EPERM", "ENOSYS"}, got


def test_foreign_abis_are_killed(as_user):
    # SBX-15: the x32 bit, and int 0x80 from two bytes of machine code.
    if os.uname().machine != "x86_64":
        pytest.skip("x86-64 only")
    got = as_user.python(TRY + "print(call(0x40000000 + 39))")
    assert got.out == "" and got.code in (128 + 31, -31)
    got = as_user.python(r"""
import ctypes, mmap
code = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"      # mov eax,20; int 0x80; ret
m = mmap.mmap(-1, 4096, prot=7)
m.write(code)
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()
print("survived")
""")
    # A kernel without that ABI faults the instruction: SIGSEGV.
    assert got.out == "" and got.code in (128 + 31, -31, 128 + 11, -11)


def test_threads_still_start(as_user):
    # SBX-14: clone3 answers ENOSYS, so libc falls back.
    got = as_user.python("import threading as t; x = t.Thread(target=lambda: "
                         "print('ran')); x.start(); x.join()")
    assert got.out == "ran\n"


def test_inherited_descriptors_do_not_reach_the_command(as_user, lab):
    # A socket from outside would keep its own network namespace.
    script = r"""
import os, socket, subprocess, sys
s = socket.socket()
os.dup2(s.fileno(), 7); os.set_inheritable(7, True)
sys.exit(subprocess.run(sys.argv[1:], pass_fds=(7,)).returncode)
"""
    done = lab.host.run(
        ["/usr/bin/python3", "-c", script] + as_user.argv(
            ["/bin/sh", "-c", "ls /proc/self/fd"]),
        uid=as_user.uid, cwd=as_user.workdir(), env=as_user.env(),
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= {"0", "1", "2", "3"}


def test_a_standard_stream_that_is_a_socket_is_relayed(as_user, lab):
    script = r"""
import socket, subprocess, sys
ours, theirs = socket.socketpair()
p = subprocess.Popen(sys.argv[1:], stdin=theirs, stdout=theirs)
theirs.close()
ours.sendall(b"in\n"); ours.shutdown(socket.SHUT_WR)
data = b""
while part := ours.recv(4096):
    data += part
print(data.decode(), p.wait())
"""
    done = lab.host.run(
        ["/usr/bin/python3", "-c", script] + as_user.argv(
            ["/bin/sh", "-c", "cat; readlink /proc/self/fd/0 /proc/self/fd/1"]),
        uid=as_user.uid, cwd=as_user.workdir(), env=as_user.env(),
        capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("in\n"), done.stderr
    assert "socket:" not in done.stdout


def test_the_hosts_files_are_read_only(as_user, lab):
    # Also what the caller owns, outside of the working directory.
    theirs = lab.workdir("elsewhere", USER)
    touch = "touch %s/$0 && echo written" % theirs
    outside = lab.host.run(["sh", "-c", touch, "outside"], uid=USER,
                           capture_output=True, text=True)
    assert outside.stdout == "written\n", outside.stderr
    got = as_user.sh("touch here && echo here; sh -c '%s' inside; "
                     "cat %s/outside && echo read" % (touch, theirs))
    assert got.out == "here\nread\n"
    assert "Read-only file system" in got.err
    assert os.listdir(theirs) == ["outside"]


def test_the_machines_switches_are_read_only(penstock):
    # Whatever their modes say: no write reaches a sysctl.
    got = penstock.sh("cat /proc/self/mounts")
    options = {line.split()[1]: line.split()[3].split(",")
               for line in got.out.splitlines()}
    for path in ("/", "/proc/sys"):
        assert "ro" in options[path], (path, options)
    assert "rw" in options["/proc"]


def test_the_sandboxs_init_cannot_be_looked_into(penstock):
    # SBX-19: it is of the parent user namespace, and undumpable.
    got = said(penstock.python(TRY + r"""
child = os.fork()
if child == 0:
    os.pause() if hasattr(os, "pause") else __import__("signal").pause()
print("own", call(101, 16, child, 0, 0))                # PTRACE_ATTACH
os.kill(child, 9)
print("init", call(101, 16, 1, 0, 0))
attempt("mem", lambda: open("/proc/1/mem", "rb"))
attempt("fd", lambda: os.listdir("/proc/1/fd"))
print("dumpable", "ok" if os.stat("/proc/1/status").st_uid in (0, os.getuid())
      and os.getuid() != 0 else "no")
"""))
    assert got.pop("own") == "ok"
    assert got.pop("dumpable") == "no"
    assert set(got.values()) <= {"EPERM", "EACCES"}, got


def test_the_private_daemon_has_no_rights_and_a_filter(penstock):
    process = penstock.start("sh", "-c", "echo up; read -r go")
    try:
        assert process.stdout.readline() == b"up\n"
        daemons = [pid for pid in children(process.pid)
                   if program_of(pid) == "penstockd"]
        assert len(daemons) == 2                # with its broker
        for pid in daemons:
            # Undumpable: its /proc files are root's, whoever it is.
            assert os.stat("/proc/%d/status" % pid).st_uid == 0
            for task in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/status" % (pid, task),
                          encoding="ascii") as status:
                    fields = dict(line.split(":\t", 1) for line in status
                                  if ":\t" in line)
                assert "0" not in fields["Uid"].split()
                for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
                    assert int(fields[name], 16) == 0, name
                # An ordinary user has no right to empty this one; with
                # no_new_privs nothing comes of it.
                assert penstock.uid or int(fields["CapBnd"], 16) == 0
                assert fields["NoNewPrivs"].strip() == "1"
                assert fields["Seccomp"].strip() == "2"
    finally:
        process.communicate(b"go\n", timeout=30)


def test_the_securebits_are_locked(penstock):
    # PR_GET_SECUREBITS: no root magic, no fix-up, no ambient set, all locked.
    got = penstock.python("import ctypes; print(ctypes.CDLL(None).prctl(27))")
    bits = int(got.out)
    for bit in (0, 1, 2, 3, 5, 6, 7):
        assert bits & (1 << bit), bin(bits)


def test_the_command_never_is_the_hosts_root_and_holds_nothing(penstock):
    got = penstock.sh("cat /proc/self/status /proc/self/uid_map; id -u;"
                      "echo x > /proc/sys/kernel/core_pattern; echo $?")
    fields = dict(line.split(":\t", 1) for line in got.out.splitlines()
                  if ":\t" in line)
    for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
        assert int(fields[name], 16) == 0, (name, fields[name])
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == "2"
    assert got.out.splitlines()[-1] != "0"


def test_the_hosts_view_of_the_command_is_an_unprivileged_id(penstock):
    process = penstock.start("sh", "-c", "echo up; read -r go")
    try:
        assert process.stdout.readline() == b"up\n"
        uids = set()
        for pid in children(process.pid):
            with open("/proc/%d/status" % pid, encoding="ascii") as status:
                lines = dict(l.split(":\t", 1) for l in status if ":\t" in l)
            if lines["Name"].strip() == "sh":
                uids |= set(lines["Uid"].split())
        assert uids and "0" not in uids
    finally:
        process.stdin.write(b"go\n")
        process.communicate(timeout=30)


def test_only_lo_is_there_and_nothing_of_it_can_be_changed(penstock):
    got = penstock.sh("""
        cat /proc/net/dev | tail -n +3 | cut -d: -f1
        ip -o link show | wc -l
        ip link set lo down; echo $?
        ip route flush table all; echo $?
        nft flush ruleset; echo $?
        ip -o -6 addr show | grep -c tentative
        """)
    lines = got.out.split()
    assert lines[0] == "lo"
    assert lines[1] == "1"                  # ip itself works
    assert "0" not in lines[2:5]
    assert lines[5] == "0"                                  # SBX-30


def test_the_hosts_loopback_is_not_the_sandboxs(as_user, lab):
    # ADDR-20: what listens on the host's loopback, a control socket say.
    server = lab.host.popen(
        ["/usr/bin/python3", "-c",
         "import socket,sys; s=socket.create_server(('127.0.0.1',8099));"
         "print('up', flush=True); sys.stdin.read()"], stdin=-1, stdout=-1)
    probe = ("import socket; socket.create_connection(('127.0.0.1', 8099), 15);"
             "print('reached')")
    try:
        assert server.stdout.readline() == b"up\n"
        outside = lab.host.run(["/usr/bin/python3", "-c", probe],
                               capture_output=True, text=True)
        assert outside.stdout == "reached\n"
        got = as_user.python(probe)
        assert got.out == "" and "ConnectionRefusedError" in got.err
    finally:
        server.stdin.close()
        server.wait()


def test_our_ports_cannot_be_taken_over(penstock):
    got = said(penstock.python(TRY + r"""
def bind(kind, host, port, reuse):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind)
    if reuse:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind((host, port))
    if kind == socket.SOCK_STREAM:
        s.listen()
for reuse in (0, 1):
    attempt("http%d" % reuse, lambda: bind(1, "127.0.0.1", 3128, reuse))
    attempt("socks%d" % reuse, lambda: bind(1, "127.0.0.1", 1080, reuse))
    attempt("any%d" % reuse, lambda: bind(1, "0.0.0.0", 3128, reuse))
    attempt("dns%d" % reuse, lambda: bind(2, "127.0.0.1", 53, reuse))
    attempt("dns6%d" % reuse, lambda: bind(2, "::1", 53, reuse))
    attempt("tcp%d" % reuse, lambda: bind(1, "8.8.8.8", 53, reuse))
attempt("free", lambda: bind(1, "127.0.0.1", 8123, 0))
"""))
    assert got.pop("free") == "ok"
    assert "ok" not in got.values(), got


def test_a_program_posing_as_a_server_is_not_believed(as_user, lab):
    # Every address is local inside, so a program may listen on the address of
    # an allowed host; its neighbours still reach the real one.
    got = as_user.python(r"""
import socket, urllib.request
fake = socket.socket()
fake.bind((socket.gethostbyname("web.example.com"), 8080))
fake.listen()
s = socket.create_connection(("web.example.com", 8080), 15)
s.sendall(b"GET /real HTTP/1.1\r\nHost: web.example.com:8080\r\n\r\n")
s.shutdown(socket.SHUT_WR)
data = b""
while part := s.recv(4096):
    data += part
print(data.decode().split("\r\n\r\n")[1])
""", options=["--no-proxy-env"], policy="""
[allow web]
hosts = web.example.com
ports = 8080
protocol = http
addresses = 203.0.113.0/24 2001:db8:3::/48
reason = lab
owner = tests
""")
    assert "lab GET /real" in got.out, got.err


def test_the_transparent_port_itself_is_not_a_way_in(as_user):
    got = as_user.sh("cat /proc/net/tcp /proc/net/tcp6")
    ports = {int(line.split()[1].rsplit(":", 1)[1], 16)
             for line in got.out.splitlines() if ":" in line.split()[1]
             and line.split()[3] == "0A"}
    odd = sorted(ports - {53, 1080, 3128})
    assert odd
    # Whatever listens, and of what does not, for whoever would catch it, some.
    got = as_user.python(r"""
import socket, sys
listening = set(map(int, sys.argv[1:]))
for host in ("127.0.0.2", "::1"):
    for port in sorted(listening.union(range(1024, 65536, 17))):
        s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        s.settimeout(15)
        try:
            s.connect((host, port))
        except OSError:
            s.close()
            continue
        try:
            print(host, port, s.recv(1))
        except OSError as e:
            print(host, port, "reset")
""", *map(str, odd), timeout=120)
    for line in got.out.splitlines():
        assert line.endswith("reset") or line.endswith("b''"), line
    assert got.flows(act="allow") == []


def test_a_big_environment_and_argument_list_pass(as_user):
    # SBX-27
    got = as_user.run("/bin/sh", "-c", "printf %s \"$BIG\" | wc -c; echo $#",
                      "x", *(["y" * 1000] * 500), env={"BIG": "z" * 100000})
    assert got.out.split() == ["100000", "500"], got.err


def landlock_abi():
    """Of this kernel; below 1: it has none."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1)


def test_the_daemon_gives_up_every_file_before_its_first_thread(penstock):
    # Landlock binds the thread that asks and what comes of it: not a thread
    # that was there before.
    if landlock_abi() < 1:
        pytest.skip("no Landlock in this kernel")
    trace = os.path.join(penstock.workdir(), "trace")
    wrapper = os.path.join(penstock.lab.dir, "traced-penstockd")
    with open(wrapper, "w", encoding="ascii") as out:
        out.write("#!/bin/sh\nexec strace -f -qq -o %s -e trace="
                  "landlock_restrict_self,clone,clone3 %s \"$@\"\n"
                  % (trace, penstock.daemon))
    os.chmod(wrapper, 0o755)
    got = penstock.curl("http://web.example.com/", options=["--daemon", wrapper])
    assert got.out == "lab GET / host=web.example.com\n", got.err
    with open(trace, encoding="ascii", errors="replace") as lines:
        calls = lines.read().splitlines()
    sealed = [i for i, line in enumerate(calls)
              if "landlock_restrict_self(" in line and line.endswith("= 0")]
    # What became undumpable shows no flags to a tracer that is not root.
    threads = [i for i, line in enumerate(calls)
               if "CLONE_THREAD" in line or " clone3(" in line]
    assert sealed and threads and sealed[0] < threads[0], calls
    assert calls[sealed[0]].split()[0] == calls[threads[0]].split()[0], calls
