# SPDX-License-Identifier: Apache-2.0
"""Records that are not addresses: each type is opened by name, and bounded."""

POLICY = """
[allow web]
hosts     = web.example.com api.example.com
addresses = 203.0.113.0/24 2001:db8:3::/48
reason    = the lab
[allow mail]
hosts     = web.example.com
types     = TXT MX HTTPS
addresses = 203.0.113.0/24 2001:db8:3::/48
reason    = how its mail is set up
[allow calls]
hosts     = _sip._tcp.example.com
types     = SRV
"""


def ask(penstock, *queries, policy=POLICY):
    return penstock.sh("\n".join("dig +time=5 +tries=1 " + q
                                 for q in queries), policy=policy)


def test_types_that_a_rule_opens_are_answered(as_user):
    got = ask(as_user, "+short web.example.com TXT",
              "+short web.example.com MX",
              "+short _sip._tcp.example.com SRV")
    assert sorted(got.out.splitlines()) == sorted(
        ['"v=spf1 -all"', '"a second one"', "10 api.example.com.",
         "1 2 5060 api.example.com."]), got.out
    assert [r["qtype"] for r in got.dns(act="allow")] == ["TXT", "MX", "SRV"]


def test_types_that_none_opens_ask_nobody(as_user, lab):
    before = len(lab.dns_seen())
    got = ask(as_user, "web.example.com CAA", "web.example.com NS",
              "api.example.com TXT", "_sip._tcp.example.com TXT",
              "web.example.com ANY", "web.example.com NULL")
    assert got.out.count("ANSWER: 0") == 6, got.out
    assert got.out.count("status: REFUSED") == 2, got.out
    assert lab.dns_seen(before) == []
    denied = got.dns(act="deny")
    assert {r["reason"] for r in denied} == {"type_not_allowed"}


def test_https_comes_without_keys_and_addresses(as_user):
    # DNS-21: 10.0.0.5 and ::1 are among its hints
    got = ask(as_user, "+short web.example.com TYPE65")
    # dig of this release shows the type as its bytes
    shown = got.out.replace(" ", "").upper()
    assert "0A000005" not in shown and "CB00710A" not in shown, got.out
    assert '0001000001000302683' in shown or "alpn" in got.out, got.out
    assert "ech" not in got.out.lower()


def test_for_all_that_is_allowed_and_nothing_else(as_user, lab):
    before = len(lab.dns_seen())
    policy = "[dns]\ntypes = CAA\n" + POLICY
    got = ask(as_user, "+short web.example.com CAA",
              "denied.example.net CAA", policy=policy)
    assert '0 issue "ca.example.com"' in got.out, got.out
    assert "status: NXDOMAIN" in got.out
    assert [seen["name"].rstrip(".").lower()
            for seen in lab.dns_seen(before)] == ["web.example.com"]


def test_a_policy_may_want_denied_names_refused(as_user):
    # DNS-05: a switch, since musl ends the whole search on it
    policy = "[dns]\ndenied = refused\n" + POLICY
    got = ask(as_user, "denied.example.net", "example.com",
              policy=policy)
    assert got.out.count("status: REFUSED") == 1, got.out
    assert "EDE: 15 (Blocked)" in got.out
    assert got.out.count("status: NOERROR") == 1, got.out
