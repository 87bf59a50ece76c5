# SPDX-License-Identifier: Apache-2.0
"""Through other people's proxies: Squid and microsocks, as Debian has them."""
import os
import subprocess
import time

import pytest

from conftest import POLICY, names
from test_service import Service

SQUID_V4 = "203.0.113.70"
SQUID = "http://%s:3128" % SQUID_V4
SOCKS_V4 = "203.0.113.71"

# CONNECT to port 443 alone, as Squid is delivered.
CONFIG = """\
http_port %(at)s:3128
auth_param basic program /usr/lib/squid/basic_ncsa_auth %(dir)s/squid.users
auth_param basic credentialsttl 1 second
acl known proxy_auth REQUIRED
acl tls port 443
acl CONNECT method CONNECT
http_access deny CONNECT !tls
http_access allow known
http_access deny all
cache deny all
logformat seen %%un %%rm %%ru %%>Hs
access_log stdio:%(dir)s/squid.access seen
cache_log /dev/null
pid_filename none
cache_store_log none
max_filedescriptors 1024
cache_effective_user proxy
shutdown_lifetime 1 seconds
dns_nameservers %(dns)s
"""


def listening(lab, port):
    return ":%d " % port in lab.internet.run(
        ["ss", "-Hltn"], capture_output=True, text=True).stdout


def wait_for(lab, port, process):
    end = time.monotonic() + 20
    while not listening(lab, port):
        assert process.poll() is None, "it ended"
        assert time.monotonic() < end, "it does not listen"
        os.sched_yield()


@pytest.fixture(scope="module")
def squid(lab):
    if not os.access("/usr/sbin/squid", os.X_OK):
        # Its package starts a service, so that no script of ours installs it.
        pytest.skip("squid is not installed")
    where = os.path.join(lab.dir, "squid")
    os.mkdir(where)
    hashed = subprocess.run(["openssl", "passwd", "-apr1", "pass"],
                            capture_output=True, text=True, check=True).stdout
    for name, text in (("squid.users", "user:" + hashed), ("squid.access", ""),
                       ("squid.conf", CONFIG % {
                           "at": SQUID_V4, "dir": where,
                           "dns": names.DNS2_V4})):
        with open(os.path.join(where, name), "w", encoding="ascii") as out:
            out.write(text)
        os.chmod(os.path.join(where, name), 0o666)
    os.chmod(where, 0o755)
    process = lab.internet.popen(
        ["/usr/sbin/squid", "-N", "-f", where + "/squid.conf"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lab, 3128, process)
    yield where + "/squid.access"
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def socks(lab):
    process = lab.internet.popen(
        ["microsocks", "-i", SOCKS_V4, "-p", "1080", "-u", "user", "-P",
         "pass"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lab, 1080, process)
    yield "socks5://%s:1080" % SOCKS_V4
    process.kill()
    process.wait()


def login(penstock, text):
    path = os.path.join(penstock.workdir(), "login")
    with open(path, "w", encoding="ascii") as out:
        out.write(text + "\n")
    os.chmod(path, 0o600)
    if penstock.uid:
        os.chown(path, penstock.uid, penstock.uid)
    return path


def seen_by(path, skip=0):
    with open(path, encoding="ascii") as log:
        return log.read().splitlines()[skip:]


def asked_by_host(lab, before):
    """Squid has a resolver of its own."""
    return {q["name"] for q in lab.dns_seen(before)
            if q["server"] != names.DNS2_V4}


BOTH = ("curl -sS https://web.example.com/a; unset https_proxy HTTPS_PROXY;"
        "curl -sS https://web.example.com/b;")


def test_squid_is_asked_for_the_address_that_was_judged(penstock, lab, squid):
    before = len(seen_by(squid))
    got = penstock.sh(
        BOTH + "curl -sSi https://denied.example.net/; curl -sSi http://%s/;"
        % SQUID_V4,
        options=["--parent", SQUID, "--parent-credentials",
                 login(penstock, "user:pass"), "--parent-bypass",
                 "git.example.com"])
    assert "lab GET /a host=web.example.com\n" in got.out, got.err
    assert "lab GET /b host=web.example.com\n" in got.out, got.err
    seen = seen_by(squid, before)
    assert seen and set(seen) <= {
        "user CONNECT %s:443 200" % names.WEB_V4,
        "user CONNECT [%s]:443 200" % names.WEB_V6}
    for flow in got.flows(ev="flow_open", host="web.example.com"):
        assert (flow["parent"], flow["resolved"]) == ("parent", "here"), flow
        assert flow["dst_ip"] in (names.WEB_V4, names.WEB_V6)
    # Denied is denied, and the proxy itself is no destination.
    assert {r["host"] for r in got.dns(act="deny")} == {"denied.example.net"}
    assert (SQUID_V4, 80, "address_documentation") in got.denied()


def test_squid_may_be_asked_for_names_and_plain_http(as_user, lab, squid):
    before, dns = len(seen_by(squid)), len(lab.dns_seen())
    got = as_user.sh(
        "curl -sS http://api.example.com/a; unset http_proxy;"
        "curl -sS http://api.example.com/b; getent hosts nobody.example.com;"
        + BOTH,
        policy="[allow all]\nhosts = *.example.com\n",
        options=["--parent", "corp=" + SQUID, "--parent-credentials",
                 login(as_user, "user:pass"), "--parent-resolve", "parent",
                 "--parent-http", "absolute"])
    for word in ("a host=api", "b host=api", "a host=web", "b host=web"):
        assert "lab GET /" + word in got.out, got.out + got.err
    assert seen_by(squid, before) == [
        "user GET http://api.example.com/a 200",
        "user GET http://api.example.com/b 200",
        "user CONNECT web.example.com:443 200",
        "user CONNECT web.example.com:443 200"]
    # A name is answered though nobody here knows whether it exists.
    assert "nobody.example.com" in got.out
    assert asked_by_host(lab, dns) == set()
    for flow in got.flows(ev="flow_open"):
        assert (flow["parent"], flow["resolved"]) == ("corp", "parent"), flow
        assert "dst_ip" not in flow


def test_what_squid_refuses_is_an_outage_in_our_words(as_user, squid):
    got = as_user.sh(
        "curl -sSi http://web.example.com/; curl -sS https://web.example.com/",
        options=["--parent", SQUID, "--parent-credentials",
                 login(as_user, "user:wrong")])
    assert "502 parent_refused" in got.out, got.out   # CONNECT to port 80
    assert "squid" not in (got.out + got.err).lower()
    assert {(f["reason"], f.get("parent_status"))
            for f in got.flows(ev="flow_close", act="error")} == {
                ("parent_refused", 403), ("parent_auth_failed", 407)}


def test_the_callers_own_proxy_and_its_password(as_user, lab, squid):
    before = len(seen_by(squid))
    got = as_user.sh(
        BOTH + "curl -sS http://git.example.com/; tr '\\0' '\\n' </proc/*/cmdline;"
        "env",
        options=["--parent", "env"],
        env={"https_proxy": "http://user:pass@%s:3128" % SQUID_V4,
             "no_proxy": "git.example.com,localhost"})
    assert "lab GET /a host=web.example.com\n" in got.out, got.err
    assert "lab GET / host=git.example.com\n" in got.out, got.err
    assert len(seen_by(squid, before)) >= 2
    with open(got.records_path, encoding="utf-8") as records:
        assert "pass" not in records.read() + got.out + got.err
    assert [f.get("parent") for f in
            got.flows(ev="flow_open", host="git.example.com")] == [None]


def test_a_socks_server_with_a_login(as_user, socks):
    got = as_user.sh(
        BOTH + "curl -sSi http://api.example.com:81/",
        policy=POLICY + "[allow odd]\nhosts = api.example.com\nports = 81\n"
        "protocol = http\naddresses = 203.0.113.0/24 2001:db8:3::/48\n"
        "reason = nobody listens there\n",
        options=["--parent", socks, "--parent-credentials",
                 login(as_user, "user:pass")])
    assert "lab GET /a host=web.example.com\n" in got.out, got.err
    assert "lab GET /b host=web.example.com\n" in got.out, got.err
    assert "502 parent_refused" in got.out, got.out
    assert {f.get("parent_status") for f in
            got.flows(ev="flow_close", host="api.example.com")} == {5}
    got = as_user.sh(BOTH, options=["--parent", socks, "--parent-credentials",
                                    login(as_user, "user:wrong")])
    assert {f["reason"] for f in got.flows(ev="flow_close")} == {
        "parent_auth_failed"}


def test_flows_leave_from_a_source(as_user):
    # The sealed daemon may bind, and to no port of its choice.
    got = as_user.sh("curl -sS4 http://v4.example.com/;"
                     "curl -sS http://v6.example.com/",
                     options=["--source", "%s %s" % (names.HOST_V4,
                                                     names.HOST_V6)])
    assert "host=v4.example.com" in got.out, got.out + got.err
    assert "host=v6.example.com" in got.out, got.out + got.err


@pytest.mark.parametrize("policy, options, words", [
    ("[defaults]\nparent = corp\n", [], "no parent 'corp'"),
    ("[allow a]\nhosts = a.example.com\nparent = corp\n",
     ["--parent", "other=" + SQUID], "no parent 'corp'"),
    ("", ["--parent", "https://%s:3128" % SQUID_V4], "TLS to the parent"),
    ("", ["--parent", "http://u:secret@%s:3128" % SQUID_V4], "credentials"),
    ("", ["--parent", SQUID, "--parent-credentials", "/etc/hostname"],
     "chmod 600"),
    ("", ["--source", "198.51.100.77"], "no interface of this host has it"),
    ("", ["--source", "eth0"], "is no address"),
])
def test_what_is_not_there_or_wrong_is_told_before_anything_starts(
        as_user, policy, options, words):
    got = as_user.run("echo", "started", policy=policy, options=options)
    assert got.code == 125, got.err
    assert words in got.err, got.err
    assert "started" not in got.out and "secret" not in got.err


def test_a_services_policies_name_its_parents(as_root, lab, squid):
    secret = login(as_root, "user:pass")
    service = Service(lab, plug="[parent corp]\nurl = %s\ncredentials = %s\n"
                      % (SQUID, secret))
    try:
        got = as_root.curl(
            "https://web.example.com/a",
            policy=POLICY + "\n[defaults]\nparent = corp\n",
            options=["--plug", service.socket])
        other = as_root.run("true", policy="[defaults]\nparent = other\n",
                            options=["--plug", service.socket])
    finally:
        service.stop()
    assert got.out == "lab GET /a host=web.example.com\n", got.err
    assert got.flows(ev="flow_open")[0]["parent"] == "corp"
    assert other.code == 125 and "no parent 'other'" in other.err, other.err
