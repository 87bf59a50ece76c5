#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`penstock policy check` says each mistake once, and where it stands."""

import os
import subprocess
import tempfile

PROGRAM = os.path.join(os.environ["top_builddir"], "cli/penstock")

GOOD = "[allow web]\nhosts = web.example.com\n"
BAD = "[allow web]\nhosts = web.example.com *.com\nport = 443\n"


def check(*files):
    return subprocess.run([PROGRAM, "policy", "check", *files],
                          capture_output=True, text=True, check=False)


def main():
    results = []

    def expect(what, done, code, out, err=""):
        results.append((what, (done.returncode, done.stdout, done.stderr),
                        (code, out, err)))

    with tempfile.TemporaryDirectory() as where:
        os.chdir(where)
        for name, text in (("good.ini", GOOD), ("bad.ini", BAD)):
            with open(name, "w", encoding="ascii") as out:
                out.write(text)
        good = check("good.ini")
        expect("a valid file is told once, with its digest", good, 0,
               "good.ini: valid: unnamed@sha256:%s, 1 rule\n"
               % good.stdout.partition("sha256:")[2][:16])
        bad = ("bad.ini:3: error: unknown key 'port' in [allow web]; "
               "did you mean 'ports'?\n"
               'bad.ini:2:25: error: \'*.com\' would allow a whole top-level '
               'domain; a wildcard needs at least two labels behind "*."\n'
               "2 errors\n")
        expect("a mistake is told once, with line, column and mend",
               check("bad.ini"), 2, bad)
        expect("of several files the worst decides",
               check("bad.ini", "good.ini"), 2, bad + good.stdout)
        expect("a file that cannot be read is told once", check("none.ini"), 2,
               "none.ini: error: No such file or directory\n1 error\n")
    print("1..%d" % len(results))
    for i, (what, got, wanted) in enumerate(results, 1):
        print("%sok %d - %s" % ("not " if got != wanted else "", i, what))
        if got != wanted:
            print("# got %r\n# not %r" % (got, wanted))
    return any(got != wanted for _, got, wanted in results)


if __name__ == "__main__":
    raise SystemExit(main())
