# SPDX-License-Identifier: Apache-2.0
"""Policies of several files, what --allow may add, and rules about requests."""
import os

from conftest import ADDRESSES, POLICY

# The lab's origins have documentation addresses.
OPENED = """addresses = 203.0.113.0/24 2001:db8:3::/48
reason = the lab
owner = tests
"""


def put(where, name, text):
    path = os.path.join(where, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


def test_includes_and_lists_are_read_by_the_launcher(penstock, lab):
    where = lab.workdir("policies-%s" % (penstock.uid or "root"), None)
    put(where, "parts/common.ini",
        "[allow web]\nhosts = @hosts.txt\n" + OPENED)
    put(where, "parts/hosts.txt", "# the lab\nweb.example.com\n")
    path = put(where, "p.ini", "[policy]\nname = joined\n"
               "include = parts/common.ini\n"
               "[deny d]\nhosts = *.example.net\n")
    got = penstock.curl("https://web.example.com/hello", policy=None,
                        options=["--policy", path])
    assert (got.code, got.out) == (0, "lab GET /hello host=web.example.com\n")
    # The command cannot write what the next run is allowed by.
    got = penstock.sh("for f in %s/p.ini %s/parts/*; do : >>$f && echo wrote;"
                      " done; true" % (where, where), policy=None,
                      options=["--policy", path])
    assert got.out == ""
    os.unlink(os.path.join(where, "parts/hosts.txt"))
    got = penstock.sh("echo started", policy=None, options=["--policy", path])
    assert (got.code, got.out) == (125, "")
    assert "parts/common.ini:2:9: error: cannot read" in got.err


def test_allow_adds_to_a_file_only_where_it_says_so(as_user):
    got = as_user.sh("echo started", options=["--allow", "x.example.com"])
    assert (got.code, got.out) == (125, "")
    assert "--allow: error: would add to" in got.err
    assert "extend = yes" in got.err
    got = as_user.sh("echo started", policy="[policy]\nextend = yes\n",
                     options=["--allow", "x.example.com"])
    assert (got.code, got.out) == (0, "started\n")


def test_methods_and_paths_are_enforced_on_what_is_in_the_clear(penstock):
    # POL-22
    policy = ("[policy]\nname = requests\n[allow web]\n"
              "hosts = web.example.com\nprotocol = http\nmethods = GET\n"
              "paths = /public/**\n" + OPENED)
    url = "http://web.example.com"
    got = penstock.curl(url + "/public/a", policy=policy)
    assert (got.code, got.out) == (
        0, "lab GET /public/a host=web.example.com\n")
    for path, method, status, reason in (
            ("/secret", "GET", 403, "path_not_allowed"),
            ("/public/a", "POST", 403, "method_not_allowed"),
            ("/public/../secret", "GET", 400, "path_ambiguous"),
            ("/public/%2e%2e/secret", "GET", 400, "path_ambiguous"),
            ("//public/..//secret", "GET", 400, "path_ambiguous"),
            ("/public/..;a/secret", "GET", 400, "path_ambiguous"),
            ("/public/%2e%2e%2fsecret", "GET", 400, "path_ambiguous")):
        got = penstock.curl("-i", "--path-as-is", "-X", method, url + path,
                            policy=policy)
        assert "HTTP/1.1 %d %s" % (status, reason) in got.out, (path, got.out)
        assert "lab " not in got.out
        requests = got.flows(ev="http")
        assert [r["reason"] for r in requests] == [reason]
        assert got.flows(ev="flow_open") == []
    for field in ("X-HTTP-Method-Override", "X_HTTP_METHOD_OVERRIDE",
                  "X-Http_Method", "X-Original-URI"):
        got = penstock.curl("-i", "-H", field + ": DELETE", url + "/public/a",
                            policy=policy)
        assert "400 path_ambiguous" in got.out, field
    got = penstock.curl("-H", "X-Origin: a", url + "/public/a", policy=policy)
    assert got.code == 0


def test_requests_that_cannot_be_seen_are_refused(as_user):
    policy = ("[policy]\nname = requests\n[allow web]\n"
              "hosts = web.example.com\nmethods = GET\n" + OPENED)
    got = as_user.curl("https://web.example.com/", policy=policy)
    assert got.code == 56 and "403" in got.err
    assert got.denied() == {("web.example.com", 443, "inspection_required")}
    got = as_user.curl("http://web.example.com/x", policy=policy)
    assert (got.code, got.out) == (0, "lab GET /x host=web.example.com\n")


def test_a_rule_may_be_tried_before_it_refuses(as_user):
    policy = POLICY + ("\n[deny trial]\nhosts = web.example.com\n"
                       "mode = observe\nreason = to see who uses it\n")
    got = as_user.curl("https://web.example.com/hello", policy=policy)
    assert got.code == 0, got.err
    opened = got.flows(ev="flow_open", host="web.example.com")
    assert [r["act"] for r in opened] == ["would_deny"], opened
    assert [r["rule"] for r in opened] == ["trial"]


def test_an_expired_rule_says_so(as_user):
    policy = ("[allow web]\nhosts = web.example.com\nexpires = 2000-01-01\n" +
              OPENED)
    got = as_user.curl("https://web.example.com/", policy=policy)
    assert got.code == 56
    assert got.denied() == {("web.example.com", 443, "rule_expired")}


def test_a_rule_has_its_own_times_beside_those_of_the_policy(as_user):
    # One that is silent and one that lasts end, each by its rule, and beside them
    # goes on what neither rule speaks of.
    got = as_user.python(r"""
import socket
def tunnel(host, port):
    s = socket.create_connection(("127.0.0.1", 3128), 30)
    s.sendall(b"CONNECT %s:%d HTTP/1.1\r\n\r\n" % (host, port))
    while not s.recv(4096).endswith(b"\r\n\r\n"):
        pass
    return s
def end_of(s, say):
    try:
        while True:
            if say:
                s.sendall(b"x")
            if not s.recv(1):
                return "closed"
    except (ConnectionResetError, BrokenPipeError):
        return "reset"
free, silent = tunnel(b"git.example.com", 7), tunnel(b"v4.example.com", 7)
print(end_of(silent, False), end_of(tunnel(b"api.example.com", 7), True))
free.sendall(b"still here")
print(free.recv(100).decode())
""", policy=POLICY + """
[allow free]
hosts     = git.example.com
ports     = 7
addresses = %(a)s
reason    = echo
owner     = tests
[allow silent]
hosts     = v4.example.com
ports     = 7
addresses = %(a)s
idle_time = 1s
reason    = echo
owner     = tests
[allow busy]
hosts     = api.example.com
ports     = 7
addresses = %(a)s
idle_time = 1s
flow_time = 2s
reason    = echo
owner     = tests
[limits]
flow_time = 1h
""" % {"a": ADDRESSES})
    assert got.out == "reset reset\nstill here\n", \
        got.err
    assert {(r["rule"], r["reason"]) for r in got.flows(ev="flow_close")} == {
        ("silent", "idle_timeout"), ("busy", "flow_time_exceeded"),
        ("free", "client_closed")}
