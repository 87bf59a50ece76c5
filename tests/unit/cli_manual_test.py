#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual page of penstock and its tables of options name the same things."""

import os
import re
import subprocess

BUILD = os.environ["top_builddir"]
SOURCE = os.environ["top_srcdir"]
PROGRAM = os.path.join(BUILD, "cli/penstock")
COMMANDS = (("run",), ("flows",), ("reload",), ("upgrade",), ("policy", "check"),
            ("policy", "explain"), ("policy", "test"), ("policy", "diff"), ("policy", "learn"),
            ("policy", "show"), ("dns", "explain"), ("doctor",), ("connect",))


def usage(*command):
    done = subprocess.run([PROGRAM, *command, "--help"], check=True,
                          capture_output=True, text=True)
    return done.stdout


def main():
    with open(os.path.join(SOURCE, "cli/penstock.1"), encoding="ascii") as page:
        manual = page.read().replace("\\-", "-")
    results = []
    named = set(re.findall(r"--[a-z][a-z-]*", manual))
    shown = {"--daemon"}    # for tests and packagers: in the manual alone
    for command in COMMANDS:
        shown |= set(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z-]*)",
                                usage(*command), re.M))
    # Of other programs, in the text.
    named -= {"--add-subuids", "--add-subgids", "--help"}
    shown -= {"--help"}
    results.append(("the manual and the usage name the same options",
                    named ^ shown))
    everything = usage()
    results.append(("each subcommand is in the manual",
                    {c for c in re.findall(r"^  ([a-z]+)  ", everything, re.M)
                     if "penstock %s" % c not in manual}))
    results.append(("each usage begins with an example",
                    {" ".join(c) for c in COMMANDS
                     if "  penstock " not in usage(*c).split("Usage:")[0]}))
    with open(os.path.join(SOURCE, "rules/penstock.ini.5"),
              encoding="ascii") as page:
        words = set(re.findall(r"[a-z-]+", page.read()))
    results.append(("each preset is in the manual",
                    {name[:-4] for name in
                     os.listdir(os.path.join(SOURCE, "rules/presets"))
                     if name[:-4] not in words}))
    for words in (("help", "nonsense"), ("nonsense",)):
        done = subprocess.run([PROGRAM, *words], capture_output=True,
                              text=True, check=False)
        results.append(("'%s' is no subcommand" % " ".join(words),
                        set() if done.returncode == 2 and not done.stdout and
                        "no subcommand 'nonsense'" in done.stderr
                        else {done.stderr}))
    for word, near in (("rnu", "run"), ("docter", "doctor"), ("flow", "flows")):
        done = subprocess.run([PROGRAM, word], capture_output=True, text=True,
                              check=False)
        results.append(("'%s' is answered with '%s'" % (word, near),
                        set() if done.returncode == 2 and
                        "did you mean '%s'" % near in done.stderr
                        else {done.stderr}))
    print("1..%d" % len(results))
    for i, (what, faults) in enumerate(results, 1):
        print("%sok %d - %s" % ("not " if faults else "", i, what))
        for fault in sorted(faults):
            print("# " + fault)
    return any(faults for _, faults in results)


if __name__ == "__main__":
    raise SystemExit(main())
