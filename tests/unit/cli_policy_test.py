#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`penstock policy check` says each mistake once, and where it stands."""

import os
import subprocess
import tempfile

PROGRAM = os.path.join(os.environ["top_builddir"], "cli/penstock")

GOOD = "[allow web]\nhosts = web.example.com\n"
# A file's bytes, and what is said of it, without its name.
TOLD = (
    (b"[allow a]\nhosts = a.example.com ; my own host\nports = 443 # tls, 80\n",
     [":2:23: error: ';' looks like a comment; comments stand on lines of "
      "their own",
      ":3:13: error: '#' looks like a comment; comments stand on lines of "
      "their own"]),
    (b"[policy]\n[allow a]\nhosts = a.example.com\n",
     [":1: warning: [policy] is empty; give it a 'name', or take it out"]),
    (b"[policy]\nextend = yes\n[allow a]\nhosts = a.example.com\n", []),
    (b"[policy]\ninclude = good.ini\n", []),
    (b"[allow a]\nhosts = a.example.com\0\n",
     [":2:22: error: a NUL byte; take it out, or save the file as UTF-8"]),
    (b"[allow a]\nhosts = \xe9.example.com\n",
     [":2:9: error: not valid UTF-8; save the file as UTF-8"]),
    (b"[allow a]\n\thosts = a.example.com\n\tports = 22\n", []),
    (b"[allow a]\nhosts = a.example.com\n  b.example.com\n",
     [":3:1: error: a line that begins with a blank continues nothing; a "
      "value that goes on is written by repeating its key"]),
)
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
               "none.ini: error: there is no such file: a policy is one as in "
       "penstock.ini(5), or a preset, by --preset NAME\n1 error\n")
        for i, (text, said) in enumerate(TOLD):
            with open("told.ini", "wb") as out:
                out.write(text)
            done = check("told.ini")
            lines = [line for line in done.stdout.splitlines()
                     if line.startswith("told.ini:") and ": valid: " not in
                     line]
            results.append(("each mistake and no other is told: %d" % i,
                            lines, ["told.ini" + line for line in said]))
    print("1..%d" % len(results))
    for i, (what, got, wanted) in enumerate(results, 1):
        print("%sok %d - %s" % ("not " if got != wanted else "", i, what))
        if got != wanted:
            print("# got %r\n# not %r" % (got, wanted))
    return any(got != wanted for _, got, wanted in results)


if __name__ == "__main__":
    raise SystemExit(main())
