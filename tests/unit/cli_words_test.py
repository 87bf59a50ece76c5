#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What penstock says when its command line is wrong: once, with the mend."""

import os
import subprocess
import tempfile

PROGRAM = os.path.abspath(os.path.join(os.environ["top_builddir"],
                                       "cli/penstock"))
SERVICE = "[service]\nplug = /run/penstock/plug.sock\n"

# words, exit status, what stderr is.
CASES = (
    (("run", "--foo", "true"), 125,
     "penstock run: no option '--foo' (see penstock run --help)"),
    (("run", "--sumary", "true"), 125,
     "penstock run: no option '--sumary'; did you mean '--summary'?"),
    (("run", "--policy"), 125, "penstock run: --policy needs FILE behind it"),
    (("run", "--quiet=1", "true"), 125, "penstock run: --quiet takes no value"),
    (("run", "--name", "", "true"), 125,
     "penstock run: --name '': between 1 and 63 characters are wanted"),
    (("run",), 125, "penstock run: which command? "
     "(penstock run [OPTION]... -- COMMAND [ARGUMENT]...)"),
    (("run", "--", ""), 125, "penstock run: the command is an empty word; "
     "is a variable not set?"),
    (("run", "--json=-", "--", "true"), 125, "penstock run: --json '-': "
     "standard output is the command's: name a file"),
    (("run", "--records", "-", "--", "true"), 125, "penstock run: --records "
     "'-': standard output is the command's: name a file"),
    (("run", "--write-policy", "-", "--", "true"), 125, "penstock run: "
     "--write-policy '-': standard output is the command's: name a file"),
    (("flows",), 2, "penstock flows: give one of --run ID and FILE"),
    (("doctor", "x"), 2, "penstock doctor: 'x' is too much: "
     "it takes no argument"),
    (("version", "x"), 2, "penstock version: 'x' is too much: "
     "it takes no argument"),
    (("--version", "x"), 2, "penstock version: 'x' is too much: "
     "it takes no argument"),
    (("policy", "check"), 2, "penstock policy check: which file?"),
    (("policy", "check", "service.ini"), 2, "penstock: service.ini is a "
     "configuration of the service, no policy: "
     "penstockd --check --config service.ini"),
)


def run(*words, **env):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True,
                          check=False, env={**os.environ, **env})


def main():
    results = []
    with tempfile.TemporaryDirectory() as where:
        os.chdir(where)
        with open("service.ini", "w", encoding="ascii") as out:
            out.write(SERVICE)
        for words, code, line in CASES:
            done = run(*words)
            results.append((" ".join(words), (done.returncode, done.stderr),
                            (code, line + "\n")))
        results.append(("nothing was written", os.listdir("."),
                        ["service.ini"]))
        done = run("flows", "--run", "7f3a91", XDG_STATE_HOME=where)
        if os.geteuid() == 0:
            line = ("/var/lib/penstock/runs/7f3a91/audit.jsonl; the runs of an "
                    "ordinary user are in that user's ~/.local/state/penstock")
        else:
            line = (where + "/penstock/7f3a91/audit.jsonl; what ran under sudo "
                    "is in /var/lib/penstock/runs (sudo penstock flows --run "
                    "7f3a91)")
        results.append(("a run that is not there is told with its places",
                        done.stderr,
                        "penstock: no run 7f3a91: there is no %s\n" % line))
    print("1..%d" % len(results))
    for i, (what, got, wanted) in enumerate(results, 1):
        print("%sok %d - %s" % ("not " if got != wanted else "", i, what))
        if got != wanted:
            print("# got %r\n# not %r" % (got, wanted))
    return any(got != wanted for _, got, wanted in results)


if __name__ == "__main__":
    raise SystemExit(main())
