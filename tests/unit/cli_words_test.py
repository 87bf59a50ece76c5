#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What penstock says when its command line is wrong: once, with the mend."""

import os
import subprocess
import tempfile

PROGRAM = os.path.abspath(os.path.join(os.environ["top_builddir"],
                                       "cli/penstock"))
DAEMON = os.path.join(os.path.dirname(PROGRAM), "../proxy/penstockd")
GOOD = "[allow db]\nhosts = db.example.com\nports = 5432\n"
DOUBTFUL = GOOD + "[allow again]\nhosts = db.example.com\nports = 5432\n"
NO_FILE = ("there is no such file: a policy is one as in penstock.ini(5), or a "
           "preset, by --preset NAME")
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
    (("run", "--dns-server", "dns.example.net", "--", "true"), 125,
     "penstock run: --dns-server 'dns.example.net': is no address (a name could "
     "not be looked up)"),
    (("run", "--policy", "none.ini", "--", "true"), 125, "none.ini: error: " +
     NO_FILE + "\npenstock: the policy is not valid; nothing was started"),
    (("reload", "--run", "7f3a91", "--policy", "/dev/null"), 2, "/dev/null: "
     "error: is neither a file nor a pipe; an empty file is the policy that "
     "allows nothing\npenstock: the policy is not valid; the old one stays in "
     "force"),
    (("flows",), 2, "penstock flows: give one of --run ID and FILE"),
    (("doctor", "x"), 2, "penstock doctor: 'x' is too much: "
     "it takes no argument"),
    (("version", "x"), 2, "penstock version: 'x' is too much: "
     "it takes no argument"),
    (("--version", "x"), 2, "penstock version: 'x' is too much: "
     "it takes no argument"),
    (("reload", "7f3a91"), 2, "penstock reload: '7f3a91' is too much: "
     "it takes no argument"),
    (("reload", "--policy", "new.ini"), 2, "penstock reload: --policy needs "
     "--run ID; the service's policies are files in its directory"),
    (("policy",), 2, "penstock policy: which verb? (see penstock policy "
     "--help)"),
    (("policy", "chek"), 2, "penstock policy: no verb 'chek'; "
     "did you mean 'check'?"),
    (("policy", "zzz"), 2, "penstock policy: no verb 'zzz' "
     "(see penstock policy --help)"),
    (("help", "policy", "chek"), 2, "penstock policy: no verb 'chek'; "
     "did you mean 'check'?"),
    (("policy", "check"), 2, "penstock policy check: which file?"),
    (("policy", "check", "good.ini", "--stict"), 2, "penstock policy check: "
     "no option '--stict'; did you mean '--strict'?"),
    (("policy", "explain", "good.ini", "a.example.com", "--at"), 2,
     "penstock policy explain: --at needs ADDRESS behind it"),
    (("policy", "check", "service.ini"), 2, "penstock: service.ini is a "
     "configuration of the service, no policy: "
     "penstockd --check --config service.ini"),
)


def run(*words, **env):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True,
                          check=False, env={**os.environ, **env})


def options_anywhere():
    """Options stand before the other words, among them or behind them."""
    verb = ("policy", "explain")
    words = ("good.ini", "db.example.com:5432")
    option = ("--at", "10.0.0.5")
    first = run(*verb, *option, "--json", *words)
    return [
        ("an option is one wherever it stands",
         [run(*verb, *words, *option, "--json").stdout,
          run(*verb, words[0], "--json", *option, words[1]).stdout,
          run(*verb, words[0], *option, "--json", "--", words[1]).stdout],
         [first.stdout] * 3),
        ("of which this is the answer", "address_private" in first.stdout,
         True),
        ("behind -- nothing is an option",
         run("policy", "check", "--", "--json").stdout.split("\n")[0],
         "--json: error: " + NO_FILE),
        ("the other words keep their order",
         [line.split('"host":"')[1].split('"')[0] for line in
          run(*verb, words[0], "a.example", "--json", "b.example", *option,
              "c.example").stdout.splitlines()],
         ["a.example", "b.example", "c.example"]),
        ("run leaves the command's options alone",
         run("run", "--policy", "nothing.ini", "true", "--json").stderr
         .count("no option"), 0),
    ]


def helps():
    first = run("policy", "diff", "--help")
    return [
        ("help says what --help says of a verb",
         run("help", "policy", "diff").stdout, first.stdout),
        ("no line of the help of a verb is too long",
         [line for verb in ("check", "explain", "test", "diff", "learn",
                            "show")
          for line in run("policy", verb, "--help").stdout.splitlines()
          if len(line) > 80], []),
        ("version, too, has a help",
         [run("version", word).stdout for word in ("--help", "-h")],
         [run("help", "version").stdout] * 2),
    ]


def service_check():
    """penstockd --check says of the service's policies what policy check does."""
    os.mkdir("policies")
    with open("policies/web.ini", "w", encoding="ascii") as out:
        out.write(DOUBTFUL)
    with open("whole.ini", "w", encoding="ascii") as out:
        out.write("[service]\nuser = nobody\n[plug]\nallow_named_uid = 1\n"
                  "policies = %s/policies\n" % os.getcwd())
    done = subprocess.run([DAEMON, "--check", "--config", "whole.ini"],
                          capture_output=True, text=True, check=False)
    web = os.getcwd() + "/policies/web.ini"
    return [
        ("a check of the service warns of its policies",
         (done.returncode, done.stderr.count("\n"),
          done.stderr.startswith("penstockd: warning: %s:4: " % web)),
         (0, 1, True)),
        ("in the words of policy check", done.stderr.split(": ")[3:],
         run("policy", "check", web).stdout.splitlines(True)[0]
         .split(": ")[2:]),
    ]


def main():
    results = []
    with tempfile.TemporaryDirectory() as where:
        os.chdir(where)
        with open("service.ini", "w", encoding="ascii") as out:
            out.write(SERVICE)
        with open("good.ini", "w", encoding="ascii") as out:
            out.write(GOOD)
        for words, code, line in CASES:
            done = run(*words)
            results.append((" ".join(words), (done.returncode, done.stderr),
                            (code, line + "\n")))
        results.append(("nothing was written", sorted(os.listdir(".")),
                        ["good.ini", "service.ini"]))
        results += options_anywhere() + helps() + service_check()
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
