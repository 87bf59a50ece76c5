# SPDX-License-Identifier: Apache-2.0
"""--map-root for an ordinary user: with the ranges of /etc/subuid, and without."""
import os

import pytest

from conftest import USER

FIRST, COUNT = 700000, 65536
OPTIONS = ["--map-root"]
NO_RANGES = ("penstock: note: --map-root has one id only: programs that change "
             "their user need newuidmap (package uidmap) and lines for you in "
             "/etc/subuid and /etc/subgid")


class Etc:
    """Files of the lab host's /etc, put back at the end."""

    def __init__(self, lab):
        self.lab = lab
        self.was = {}

    def path(self, name):
        return self.lab.host.path("/etc/" + name)

    def write(self, name, text):
        if name not in self.was:
            try:
                with open(self.path(name), encoding="utf-8") as old:
                    self.was[name] = old.read()
            except FileNotFoundError:
                self.was[name] = None
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)

    def add(self, name, line):
        with open(self.path(name), encoding="utf-8") as old:
            text = old.read()
        self.write(name, text + line)

    def restore(self):
        for name, text in self.was.items():
            if text is None:
                os.unlink(self.path(name))
            else:
                with open(self.path(name), "w", encoding="utf-8") as out:
                    out.write(text)


@pytest.fixture
def etc(lab):
    """A host on which the user has a name, and nobody has ranges."""
    made = Etc(lab)
    made.add("passwd", "labuser:x:%d:%d::%s:/bin/sh\n" % (USER, USER, lab.home))
    made.add("group", "labuser:x:%d:\n" % USER)
    for name in ("subuid", "subgid"):
        made.write(name, "somebody:100000:65536\n")
    yield made
    made.restore()


def grant(etc, who="labuser", subgid=FIRST):
    etc.write("subuid", "somebody:100000:65536\n%s:%d:%d\n" % (who, FIRST, COUNT))
    etc.write("subgid", "%s:%d:%d\n" % (who, subgid, COUNT))


@pytest.mark.parametrize("who", ["labuser", str(USER)])
def test_with_ranges_it_may_change_its_user(as_user, etc, who):
    grant(etc, who)
    got = as_user.python(r"""
import os
print(os.getuid(), os.getgid(), os.getgroups())
print(open("/proc/self/uid_map").read().split())
print(open("/proc/self/gid_map").read().split())
open("mine", "w").close()
open("/tmp/theirs", "w").close()
os.chown("/tmp/theirs", 42, 42)
os.setgroups([7])
os.setresgid(65534, 65534, 65534)
os.setresuid(100, 100, 100)
print(os.getresuid(), os.getgroups())
try:
    os.setuid(0)
except PermissionError:
    print("no way back")
""", options=OPTIONS)
    assert got.err == "" and got.code == 0, got.err
    assert got.out.splitlines() == [
        "0 0 []", "['0', '0', '1', '1', '1', '65535']",
        "['0', '0', '1', '1', '1', '65535']",
        "(100, 100, 100) [7]", "no way back"]


def test_apart_from_its_ranges_it_is_the_caller(as_user, etc):
    grant(etc)
    got = as_user.sh("touch made; mkdir d; chown 33:33 d",
                     options=OPTIONS)
    assert got.code == 0, got.err
    made = os.stat(os.path.join(as_user.workdir(), "made"))
    assert (made.st_uid, made.st_gid) == (USER, USER)
    theirs = os.stat(os.path.join(as_user.workdir(), "d"))
    assert (theirs.st_uid, theirs.st_gid) == (FIRST + 32, FIRST + 32)


def test_a_small_range_is_used_as_it_is(as_user, etc):
    etc.write("subuid", "labuser:%d:10\n" % FIRST)
    etc.write("subgid", "labuser:%d:20\n" % FIRST)
    got = as_user.sh("cat /proc/self/uid_map /proc/self/gid_map",
                     options=OPTIONS)
    assert got.out.split() == ["0", "0", "1", "1", "1", "10",
                               "0", "0", "1", "1", "1", "20"], got.err


@pytest.mark.parametrize("lacking", ["subuid", "subgid"])
def test_without_ranges_of_both_kinds_there_is_one_id_and_a_note(as_user, etc,
                                                                 lacking):
    grant(etc)
    etc.write(lacking, "somebody:100000:65536\n")
    got = as_user.sh("id -u; cat /proc/self/uid_map; chown 33 . || echo not",
                     options=OPTIONS)
    assert got.out.split() == ["0", "0", "0", "1", "not"]
    assert got.err.splitlines()[0] == NO_RANGES


def test_a_refusal_of_newuidmap_is_told_with_the_mend(as_user, etc):
    # Ranges by number, for an id that has no name: newuidmap wants one.
    grant(etc, str(USER))
    with open(etc.path("passwd"), encoding="utf-8") as old:
        others = [line for line in old if not line.startswith("labuser:")]
    etc.write("passwd", "".join(others))
    got = as_user.sh("echo ran", options=OPTIONS)
    assert (got.code, got.out) == (125, "")
    assert ("/usr/bin/newuidmap did not map your ids and the 65535 from "
            "700000 on (/etc/subuid)") in got.err
    assert "needs a line in /etc/passwd" in got.err


def test_doctor_says_which_ids_there_are(as_user, etc):
    def doctor():
        return as_user.lab.host.run(
            [as_user.program, "doctor"], uid=USER, env=as_user.env(),
            capture_output=True, text=True).stdout
    assert "one: your own" in doctor()
    grant(etc)
    assert "65535 from 700000 on, by newuidmap" in doctor()
