# SPDX-License-Identifier: Apache-2.0
"""What the host's files could still be used for: sockets, inputs, our own files.

Each refusal stands beside a control: the same act outside the sandbox, or its
allowed sibling inside, works.
"""
import os
import shutil
import subprocess

import pytest

from conftest import POLICY, USER
from test_doors import Listening

CONNECT = ("import socket, sys; s = socket.socket(socket.AF_UNIX);"
           "s.connect(sys.argv[1]); print('reached')")


@pytest.fixture
def place(penstock):
    """A directory below the working directory, gone afterwards."""
    path = os.path.join(penstock.workdir(), "deep", "conf")
    os.makedirs(path)
    for made in (os.path.dirname(path), path):
        os.chown(made, penstock.uid or 0, penstock.uid or 0)
    yield path
    shutil.rmtree(os.path.dirname(path))


def write(path, text, uid=None):
    with open(path, "w", encoding="ascii") as out:
        out.write(text)
    os.chown(path, uid or 0, uid or 0)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def run(penstock, script, *options, **kwargs):
    return penstock.lab.host.run(
        [penstock.program, "run", *options, "--", "/bin/sh", "-c", script],
        uid=penstock.uid, cwd=penstock.workdir(), env=penstock.env(),
        capture_output=True, text=True, timeout=60, **kwargs)


@pytest.mark.parametrize("where", ["/opt", "/var/lib", "work"])
def test_pathname_sockets_elsewhere_are_out_of_reach(penstock, place, where):
    # SBX-11: a read-only mount does not keep anybody from connecting.
    where = place if where == "work" else where
    path = "%s/penstock-door-%d" % (where, os.getpid())
    listening = Listening(path)
    try:
        # /proc/net/unix is a namespace's: the server must be the host's.
        outside = penstock.lab.host.run(
            ["/usr/bin/python3", "-c", CONNECT, path], uid=penstock.uid,
            capture_output=True, text=True)
        assert outside.stdout == "reached\n"
    finally:
        listening.close()
    server = penstock.lab.host.popen(
        ["/usr/bin/python3", "-c",
         "import os, socket, sys; s = socket.socket(socket.AF_UNIX);"
         "s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o777); s.listen();"
         "print('up', flush=True); sys.stdin.read()", path],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert server.stdout.readline() == b"up\n"
        inside = penstock.python(CONNECT, path)
        assert "reached" not in inside.out
        assert "ConnectionRefusedError" in inside.err
    finally:
        server.stdin.close()
        server.wait()
        server.stdout.close()
        os.unlink(path)


def test_a_file_on_stdin_stays_one_for_reading(as_user, lab):
    # SBX-19: /proc would open it anew for writing, as its owner may.
    path = lab.home + "/input"
    write(path, "first\nsecond\n", USER)
    trick = ("cat; echo changed > /proc/self/fd/0; chmod 777 /proc/self/fd/0;"
             "echo done")
    with open(path, encoding="ascii") as file:
        outside = lab.host.run(["/bin/sh", "-c", trick], uid=USER, stdin=file,
                               capture_output=True, text=True)
    assert outside.stdout == "first\nsecond\ndone\n"
    assert read(path) == "changed\n" and os.stat(path).st_mode & 0o777 == 0o777
    write(path, "first\nsecond\n", USER)
    os.chmod(path, 0o600)
    with open(path, "rb", buffering=0) as file:
        os.lseek(file.fileno(), len("first\n"), os.SEEK_SET)
        inside = run(as_user, trick, stdin=file)
    assert inside.stdout == "second\ndone\n", inside.stderr
    assert read(path) == "first\nsecond\n"
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_file_without_a_name_is_still_read_from_stdin(penstock, lab):
    path = lab.dir + "/nameless"
    write(path, "text\n", penstock.uid)
    with open(path, encoding="ascii") as file:
        os.unlink(path)
        inside = run(penstock, "cat; echo x > /proc/self/fd/0; echo done",
                     stdin=file)
    assert inside.stdout == "text\ndone\n", inside.stderr


def test_our_files_keep_their_names(penstock, place):
    # POL-18, LOG: what the command cannot write it must not move away either.
    policy, records = place + "/p.ini", place + "/audit.jsonl"
    write(policy, POLICY, penstock.uid)
    got = run(penstock, """
        cd %s
        mv deep/conf deep/gone; mv deep gone; rm -rf deep/conf
        mv deep/conf/p.ini deep/conf/q.ini; rm deep/conf/audit.jsonl
        echo x > deep/conf/p.ini
        echo fine > deep/conf/other; cat deep/conf/other
        mkdir deep/new && mv deep/new deep/newer && echo moved
        """ % penstock.workdir(), "--policy", policy, "--records", records,
              "--summary")
    assert got.stdout == "fine\nmoved\n", got.stderr
    assert read(policy) == POLICY
    assert '"run_end"' in read(records)


def test_our_files_are_not_found_over_a_link_of_the_commands(penstock, place):
    policy, link = place + "/p.ini", place + "/link.ini"
    write(policy, POLICY, penstock.uid)
    os.symlink("p.ini", link)
    os.symlink("conf", os.path.dirname(place) + "/way")
    over = os.path.dirname(place) + "/way"
    assert run(penstock, "echo ran", "--policy", policy).stdout == "ran\n"
    for options in (("--policy", link), ("--policy", over + "/p.ini"),
                    ("--records", over + "/audit.jsonl"),
                    ("--policy", policy, "--write-policy", over + "/n.ini")):
        got = run(penstock, "echo ran", *options)
        assert got.returncode == 125 and got.stdout == "", options
        assert "link" in got.stderr
    assert not os.path.exists(place + "/audit.jsonl")
    assert not os.path.exists(place + "/n.ini")


@pytest.mark.parametrize("options", [(), ("--map-root",)])
def test_files_in_the_working_directory_get_no_id_bits(penstock, place,
                                                       options):
    # They would lend the host's ids, root's under sudo, to whoever runs them.
    got = run(penstock, """
        cd %s
        for mode in 755 4755 2755; do
            touch f-$mode; chmod $mode f-$mode && echo $mode
        done""" % place, *options)
    # Without root's ids, the group is the user's own, as of any file.
    allowed = ["755"] if penstock.uid is None else ["755", "2755"]
    assert got.stdout.split() == allowed, got.stderr
    for mode in (755, 4755, 2755):
        found = os.stat("%s/f-%d" % (place, mode)).st_mode & 0o7000
        assert found == (0o2000 if str(mode) in allowed and mode == 2755
                         else 0)
