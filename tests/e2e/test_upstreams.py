# SPDX-License-Identifier: Apache-2.0
"""Who is asked, and how: resolvers that are given, DNS over TLS, never others."""
import re

import pytest

from conftest import USER, Penstock, daemon_of, names
from test_service import Service

TLS = "tls://%s#%s" % (names.DNS_V4, names.DNS_NAME)


@pytest.fixture
def no_resolv_conf(lab):
    """A resolv.conf whose server would answer, and must not be asked."""
    lab.set_resolv_conf("nameserver %s\n" % names.DNS2_V4)
    yield
    lab.set_resolv_conf("nameserver %s\n" % names.DNS_V4)


def asked(lab, before):
    return {(q["server"], q["transport"]) for q in lab.dns_seen(before)}


def test_given_resolvers_are_asked_and_not_those_of_resolv_conf(
        penstock, lab, no_resolv_conf):
    # DNS-35
    before = len(lab.dns_seen())
    got = penstock.curl("http://web.example.com/",
                        options=["--dns-server", names.DNS_V4])
    assert got.out == "lab GET / host=web.example.com\n", got.err
    assert asked(lab, before) == {(names.DNS_V4, "udp")}


def test_given_resolvers_are_followed_by_the_next(as_user, lab,
                                                  no_resolv_conf):
    # DNS-24
    before = len(lab.dns_seen())
    got = as_user.curl("http://web.example.com/",
                       options=["--dns-server", names.CLOSED_V4,
                                "--dns-server", "[%s]:53" % names.DNS_V6])
    assert got.out == "lab GET / host=web.example.com\n", got.err
    assert asked(lab, before) == {(names.DNS_V6, "udp")}


def test_given_resolvers_that_fail_are_replaced_by_nobody(
        as_user, lab, no_resolv_conf):
    # DNS-35: not by those of resolv.conf either.
    before = len(lab.dns_seen())
    got = as_user.curl("-i", "http://web.example.com/",
                       options=["--dns-server", names.CLOSED_V4])
    assert "502 dns_failed" in got.out, got.out
    assert asked(lab, before) == set()


@pytest.mark.parametrize("how", [
    TLS,
    "tls://%s" % names.DNS_V4,                  # its address is certified
    "tls://[%s]:853#%s" % (names.DNS_V6, names.DNS_NAME),
])
def test_dns_over_tls_works_from_a_sealed_daemon(penstock, lab, how):
    before = len(lab.dns_seen())
    got = penstock.sh(
        "curl -sS http://web.example.com/; getent hosts v4.example.com",
        options=["--dns-server", how, "--dns-ca", lab.ca])
    assert got.out.startswith("lab GET / host=web.example.com\n"), got.err
    assert "v4.example.com" in got.out
    seen = lab.dns_seen(before)
    assert {q["transport"] for q in seen} == {"tls"}
    # One connection for all, and sizes that tell nothing.
    assert len({q["peer"] for q in seen}) == 1
    assert {len(q["wire"]) // 2 % 128 for q in seen} == {0}


@pytest.mark.parametrize("how, ca, word", [
    ("tls://%s#dns.example.org" % names.DNS_V4, True, "hostname mismatch"),
    ("tls://%s" % names.DNS2_V4, True, "IP address mismatch"),
    (TLS, False, "unable to get local issuer certificate"),
    ("tls://%s:53#%s" % (names.DNS_V4, names.DNS_NAME), True, "no verified"),
])
def test_dns_over_tls_that_cannot_be_verified_asks_nothing(
        as_user, lab, how, ca, word):
    before = len(lab.dns_seen())
    options = ["--dns-server", how] + (["--dns-ca", lab.ca] if ca else [])
    got = as_user.sh("dig +time=9 +tries=1 web.example.com;"
                     "curl -sSi --max-time 20 http://web.example.com/",
                     options=options)
    assert "status: SERVFAIL" in got.out, got.out + got.err
    assert "dns_tls_failed" in got.out
    assert got.dns()[0]["reason"] == "dns_tls_failed"
    assert word in got.err, got.err
    questions = [q for q in lab.dns_seen(before) if q["name"]]
    assert questions == []              # neither by TLS nor in clear


@pytest.mark.parametrize("options, words", [
    (["--dns-server", "dns.example.net"], "no address"),
    # DNS-19: it would be asking itself.
    (["--dns-server", "198.18.0.1"], "would ask itself"),
    (["--dns-server", "tls://[fd70:656e:7374:6f63::1]"], "would ask itself"),
    (["--dns-server", "0.0.0.0"], "nobody"),
    (["--dns-server", TLS, "--dns-ca", "/nowhere.pem"], "/nowhere.pem"),
    (["--dns-ca", "/etc/ssl/certs/ca-certificates.crt"], "tls://"),
    (["--dns-server", names.DNS_V4, "--plug", "/run/x"], "service"),
])
def test_a_wrong_resolver_is_an_error_before_anything_starts(
        as_user, lab, options, words):
    before = len(lab.dns_seen())
    got = as_user.run("echo", "started", options=options)
    assert got.code == 125, got.err
    assert words in got.err
    assert "started" not in got.out
    assert asked(lab, before) == set()


def test_dns_19_a_resolv_conf_that_leads_back_to_us_ends_the_start(
        as_user, lab):
    lab.set_resolv_conf("nameserver 198.18.0.1\nnameserver %s\n"
                        % names.DNS_V4)
    try:
        got = as_user.run("echo", "started")
        assert got.code == 125
        assert "would ask itself" in got.err
        assert "started" not in got.out
    finally:
        lab.set_resolv_conf("nameserver %s\n" % names.DNS_V4)


def test_dns_29_a_link_local_resolver_is_asked_on_its_interface(as_user, lab):
    before = len(lab.dns_seen())
    lab.set_resolv_conf("nameserver %s%%eth0\n" % names.DNS_LINK)
    try:
        got = as_user.curl("http://web.example.com/")
        assert got.out == "lab GET / host=web.example.com\n", got.err
        assert asked(lab, before) == {(names.DNS_LINK, "udp")}
    finally:
        lab.set_resolv_conf("nameserver %s\n" % names.DNS_V4)


def test_a_service_asks_by_tls_as_its_configuration_says(lab):
    service = Service(lab, plug="[dns]\nservers = %s %s\ntls_ca = %s\n"
                      % ("tls://" + names.CLOSED_V4, TLS, lab.ca))
    try:
        before = len(lab.dns_seen())
        run = Penstock(lab, USER)
        got = run.curl("http://web.example.com/",
                       options=["--plug", service.socket])
        assert got.out == "lab GET / host=web.example.com\n", got.err
        assert asked(lab, before) == {(names.DNS_V4, "tls")}
        # What resolv.conf says is not followed.
        lab.set_resolv_conf("nameserver %s\n" % names.DNS2_V4)
        got = run.curl("http://api.example.com/",
                       options=["--plug", service.socket])
        assert got.code == 0, got.err
        assert asked(lab, before) == {(names.DNS_V4, "tls")}
    finally:
        lab.set_resolv_conf("nameserver %s\n" % names.DNS_V4)
        out, err = service.stop()
    assert service.process.returncode == 0, err
    assert b"Connection refused" in err


def test_check_reads_the_certificates_too(lab):
    path = lab.dir + "/tls-ca.ini"
    for ca, code in (lab.ca, 0), ("/nowhere.pem", 1):
        with open(path, "w", encoding="ascii") as out:
            out.write("[plug]\nallow_policy_uid = 0\n"
                      "[dns]\nservers = %s\ntls_ca = %s\n" % (TLS, ca))
        done = lab.host.run(
            [lab.dir + "/stage/usr/local/sbin/penstockd", "--config", path,
             "--check"], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert ("/nowhere.pem" in done.stderr) == (code == 1)


def test_a_daemon_without_tls_has_not_loaded_it(as_user, lab):
    """The price of OpenSSL is paid by those who use it."""
    def libraries(options):
        process = as_user.start("sh", "-c", "echo up; read -r line",
                                options=options, text=True)
        assert process.stdout.readline() == "up\n"
        with open("/proc/%d/maps" % daemon_of(process), encoding="utf-8",
                  errors="replace") as maps:
            found = set(re.findall(r"lib(?:ssl|crypto)", maps.read()))
        process.communicate("\n", timeout=60)
        return found
    assert libraries([]) == set()
    assert libraries(["--dns-server", TLS, "--dns-ca", lab.ca]) == {
        "libssl", "libcrypto"}

