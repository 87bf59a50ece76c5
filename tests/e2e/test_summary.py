# SPDX-License-Identifier: Apache-2.0
"""What a run says about itself when it is over."""
import hashlib
import json
import os
import pty
import select
import subprocess

from conftest import POLICY, USER


def test_the_summary_names_what_was_reached_and_refused(penstock):
    got = penstock.sh("""
        curl -sS -o /dev/null https://web.example.com/
        curl -sS -o /dev/null https://denied.example.net/
        curl -sS -o /dev/null https://denied.example.net/
        curl -sS -o /dev/null http://169.254.169.254/
        exit 4""", options=["--summary"])
    assert got.code == 4
    assert got.out == ""
    text = got.err
    assert "exit 4" in text
    assert "reached" in text and "web.example.com:443" in text
    assert "refused" in text and "denied.example.net:443" in text
    assert "host_not_allowed" in text and "x2" in text
    assert "address_metadata" in text
    assert "--allow denied.example.net" in text
    assert "--allow 169.254" not in text
    assert got.records_path in text


def test_a_refusal_is_counted_once_however_many_records_tell_of_it(as_user):
    # The request and the end of its flow, inside CONNECT, behind another
    # request, and with a body that breaks off.
    got = as_user.python(r"""
import socket
HEAD = b"GET / HTTP/1.1\r\nHost: web.example.com\r\n"
BAD = HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
CUT = (b"POST / HTTP/1.1\r\nHost: web.example.com\r\n"
       b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n")
CONNECT = b"CONNECT web.example.com:80 HTTP/1.1\r\nHost: web.example.com:80\r\n\r\n"

def status(answer):
    # Of one whole answer: what follows is another's.
    line = answer.readline()
    length = 0
    while (field := answer.readline().lower()) not in (b"\r\n", b""):
        if field.startswith(b"content-length:"):
            length = int(field.split()[1])
    assert len(answer.read(length)) == length
    return line.split()[1].decode()

for port, texts in ((3128, (CONNECT, BAD)), (80, (HEAD + b"\r\n", BAD)),
                    (80, (CUT,))):
    to = "127.0.0.1" if port == 3128 else "web.example.com"
    with socket.create_connection((to, port), 15) as s, s.makefile("rb") as f:
        for text in texts:
            s.sendall(text)
            print(status(f))
""", options=["--summary"])
    assert got.out.split() == ["200", "400", "200", "400", "400"], got.err
    refused = [line.split() for line in got.err.splitlines()
               if "framing_invalid" in line]
    assert refused == [["refused", "web.example.com:80", "framing_invalid", "x3"]]
    done = as_user.lab.host.run(
        [as_user.program, "flows", "--denied", got.records_path], uid=USER,
        capture_output=True, text=True)
    assert done.stdout.count("framing_invalid") == 3


def test_without_a_terminal_nothing_is_added(penstock):
    got = penstock.sh("curl -sS http://denied.example.net/ >/dev/null; true")
    assert (got.code, got.out, got.err) == (0, "", "")


def test_json_is_one_object_with_the_same_facts(penstock):
    path = os.path.join(penstock.workdir(), "summary.json")
    got = penstock.sh("curl -sS -o /dev/null https://web.example.com/;"
                      "curl -sS -o /dev/null https://denied.example.net/;"
                      "exit 6", options=["--json=" + path])
    assert got.code == 6
    with open(path, encoding="utf-8") as said:
        summary = json.load(said)
    assert summary["exit"] == 6
    assert [r["host"] for r in summary["reached"]] == ["web.example.com"]
    assert summary["refused"][0]["host"] == "denied.example.net"
    assert summary["refused"][0]["reason"] == "host_not_allowed"
    assert summary["run"]


def test_json_in_a_file_leaves_the_words_where_they_were(as_user):
    path = os.path.join(as_user.workdir(), "beside.json")
    got = as_user.run("true", options=["--json=" + path, "--summary"])
    assert "exit 0" in got.err and "record" in got.err
    assert "penstock-run/1" not in got.err
    with open(path, encoding="utf-8") as said:
        assert json.load(said)["exit"] == 0


def test_the_digest_in_records_is_that_of_the_policy_file(as_user):
    digest = hashlib.sha256(POLICY.encode()).hexdigest()[:16]
    alone = as_user.run("true")
    assert alone.records[0]["policy"] == "lab@sha256:" + digest
    # With --allow it is another policy, and has another digest.
    extends = POLICY.replace("name = lab", "name = lab\nextend = yes")
    digest = hashlib.sha256(extends.encode()).hexdigest()[:16]
    more = as_user.run("true", policy=extends,
                       options=["--allow", "more.example.net"])
    assert more.records[0]["policy"].startswith("lab@sha256:")
    assert digest not in more.records[0]["policy"]


def test_quiet_says_nothing(as_user):
    got = as_user.sh("curl -sS -o /dev/null https://denied.example.net/; exit 0",
                     options=["--quiet", "--summary"])
    assert got.err.count("penstock:") == 0


def test_observe_lets_names_through_and_writes_the_policy(as_user):
    # FR-06: what would have been refused is let through and recorded so, and a
    # policy is proposed; address classes are never opened.  (In the lab every
    # address is of a closed class, so the name is one that a deny rule takes
    # out of a rule that excepts the lab's ranges.)
    path = os.path.join(as_user.workdir(), "learnt.ini")
    if os.path.exists(path):
        os.unlink(path)
    policy = POLICY + "\n[deny web]\nhosts = web.example.com\nreason = no\n"
    script = ("curl -sS http://web.example.com/; echo;"
              "curl -sS http://stranger.example.org/; echo;"
              "curl -sS http://metadata.example.com/; echo")
    got = as_user.sh(script, policy=policy)
    assert '"error":"host_denied"' in got.out
    got = as_user.sh(script, policy=policy,
                     options=["--observe", "--write-policy", path])
    assert "lab GET / host=web.example.com" in got.out
    assert "dns_nxdomain" in got.out            # it was looked up, at least
    assert "address_metadata" in got.out
    would = {r.get("host") for r in got.records if r["act"] == "would_deny"}
    assert "web.example.com" in would
    with open(path, encoding="utf-8") as learnt:
        text = learnt.read()
    assert "web.example.com" in text
    rules = [line for line in text.splitlines() if not line.startswith(";")]
    assert "metadata.example.com" not in "\n".join(rules)


def test_no_output_empties_another_file_of_the_run(as_user):
    path = os.path.join(as_user.workdir(), "mine.ini")
    with open(path, "w", encoding="ascii") as out:
        out.write(POLICY)
    os.chown(path, USER, USER)
    for options in (["--write-policy", path], ["--json=" + path]):
        got = as_user.sh("echo started", policy=None,
                         options=["--policy", path, *options])
        assert (got.code, got.out) == (125, "")
        assert "are the same file" in got.err
        with open(path, encoding="ascii") as kept:
            assert kept.read() == POLICY


def test_without_a_home_it_is_said_where_records_could_go(as_user, lab):
    for command in (["run", "--", "echo", "started"], ["flows", "--run", "7f3a91"]):
        got = lab.host.run([as_user.program, *command], uid=USER,
                           cwd=as_user.workdir(), env={"PATH": "/usr/bin:/bin"},
                           capture_output=True, text=True)
        assert got.returncode == (125 if command[0] == "run" else 2)
        assert got.stdout == "" and got.stderr.count("\n") == 1
        assert "set HOME or XDG_STATE_HOME" in got.stderr


def test_every_record_is_one_line_of_json_with_the_common_fields(as_user):
    # LOG-01, LOG-10
    got = as_user.sh("curl -sS 'http://web.example.com/%0d%0a{\"act\":\"allow\"}';"
                     "curl -sS https://web.example.com/ -o /dev/null;"
                     "curl -sS https://denied.example.net/ -o /dev/null")
    seqs = []
    for record in got.records:
        for key in ("v", "ts", "seq", "ev", "act", "run", "policy"):
            assert key in record, record
        seqs.append(record["seq"])
        if record["ev"].startswith("flow_"):
            assert record["via"] and record["dst_port"]
    assert seqs == sorted(seqs) and len(set(seqs)) == len(seqs)
    assert got.records[0]["ev"] == "run_start"
    assert got.records[-1]["ev"] == "run_end"


def test_our_own_self_test_is_marked_and_left_out(as_user):
    # LOG-11
    got = as_user.run("true", options=["--summary"])
    assert any(r.get("internal") for r in got.records)
    assert "invalid" not in got.err


def test_the_self_tests_addresses_hide_nothing_of_the_commands(as_user):
    # LOG-11: the mark is for the self-test's own few refusals.
    got = as_user.python(r"""
import socket
for i in range(6):
    s = socket.socket()
    s.settimeout(15)
    try:
        s.connect(("192.0.2.2", 2000 + i))
        s.recv(1)
    except OSError:
        pass
""")
    seen = {r["dst_port"] for r in got.flows(act="deny")
            if r.get("asked") == "192.0.2.2"}
    assert seen == set(range(2000, 2006))


def test_flows_shows_the_record_as_a_table(as_user, lab):
    got = as_user.sh("curl -sS -o /dev/null https://web.example.com/;"
                     "curl -sS -o /dev/null https://denied.example.net/")
    table = lab.host.run([as_user.program, "flows", got.records_path],
                         capture_output=True, text=True)
    assert table.returncode == 0, table.stderr
    rows = [line.split() for line in table.stdout.splitlines()[1:]]
    assert [(r[1], r[2]) for r in rows] == [
        ("allow", "web.example.com:443"), ("deny", "denied.example.net:443")]
    # A client that leaves before it has read the goodbye resets.
    assert rows[0][-1] in ("client_closed", "client_reset")
    assert rows[1][-1] == "host_not_allowed"
    denied = lab.host.run([as_user.program, "flows", "--denied",
                           got.records_path], capture_output=True, text=True)
    assert "web.example.com" not in denied.stdout
    with open(got.records_path, "a", encoding="utf-8") as log:
        log.write("not a record\n")
    torn = lab.host.run([as_user.program, "flows", got.records_path],
                        capture_output=True, text=True)
    assert torn.returncode == 2 and "1 line" in torn.stderr
    for wrong in (["--run", "../x"], [], ["/nowhere"], ["a", "b"]):
        done = lab.host.run([as_user.program, "flows", *wrong],
                            capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.startswith("penstock")


def test_a_run_is_found_by_its_id(as_user, lab):
    done = lab.host.run(
        [as_user.program, "run", "--json", "--", "curl", "-sS",
         "http://denied.example.net/"], uid=USER, cwd=as_user.workdir(),
        env=as_user.env(), capture_output=True, text=True)
    run = json.loads(done.stderr.splitlines()[-1])["run"] \
        if done.stderr.strip().startswith("{") \
        else json.loads(done.stdout.splitlines()[-1])["run"]
    shown = lab.host.run([as_user.program, "flows", "--run", run], uid=USER,
                         env=as_user.env(), capture_output=True, text=True)
    assert "host_not_allowed" in shown.stdout, shown.stderr


def terminal(penstock, command, script, options=()):
    """Run in a real pseudo-terminal; @script is [(wait for, then type)]."""
    master, slave = pty.openpty()
    process = penstock.lab.host.popen(
        penstock.argv(command, options=options,
                      records=penstock.records_path()),
        uid=penstock.uid, cwd=penstock.workdir(),
        env=penstock.env({"TERM": "dumb"}), stdin=slave, stdout=slave,
        stderr=slave, start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, 0x540E, 0))
    os.close(slave)
    seen = b""
    steps = list(script)
    while True:
        ready, _, _ = select.select([master], [], [], 60)
        assert ready, (seen, steps)
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
        while steps and steps[0][0] in seen:
            wait, keys = steps.pop(0)
            seen = seen[seen.index(wait) + len(wait):]
            os.write(master, keys)
    process.wait(60)
    os.close(master)
    assert not steps, (seen, steps)
    return process.returncode, seen


def test_an_interactive_shell_has_a_terminal_and_job_control(penstock):
    # Each step waits for what the command before it printed, not for the echo
    # of what was typed.
    code, seen = terminal(
        penstock, ["bash", "--norc", "--noprofile", "-i"],
        [(b"$ ", b"tty && stty size >/dev/null && echo term''inal\n"),
         (b"terminal\r\n", b"sh -c 'echo one''up; exec sleep 999'\n"),
         (b"oneup\r\n", b"\x03"),          # one Ctrl-C ends the sleep only
         (b"$ ", b"echo st''ill\n"),
         (b"still\r\n", b"sh -c 'echo two''up; exec sleep 999'\n"),
         (b"twoup\r\n", b"\x1a"),          # Ctrl-Z stops it: job control
         (b"Stopped", b"kill -9 %1; wait -f %1; echo jobs''over\n"),
         (b"jobsover\r\n", b"exit 8\n")])
    assert code == 8, seen
    assert b"no job control" not in seen


def test_the_summary_comes_by_itself_on_a_terminal(as_user):
    code, seen = terminal(as_user, ["true"], [(b"exit 0", b"")])
    assert code == 0
    assert b"record" in seen
