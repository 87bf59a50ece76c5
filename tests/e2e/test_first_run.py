# SPDX-License-Identifier: Apache-2.0
"""The main job: what is allowed answers, everything else is refused in words."""
import json

import pytest

from conftest import POLICY, names


def test_an_allowed_host_answers_over_https(penstock):
    got = penstock.curl("https://web.example.com/hello")
    assert got.code == 0, got.err
    assert got.out == "lab GET /hello host=web.example.com\n"
    opened = got.flows(ev="flow_open", host="web.example.com")
    closed = got.flows(ev="flow_close", host="web.example.com")
    assert len(opened) == 1 and len(closed) == 1
    assert opened[0]["id"] == closed[0]["id"]
    assert opened[0]["via"] == "connect" and opened[0]["dst_port"] == 443
    assert closed[0]["bytes_down"] > 500


def test_an_allowed_host_answers_over_http(penstock):
    got = penstock.curl("http://web.example.com/plain?secret=1")
    assert got.code == 0, got.err
    assert got.out == "lab GET /plain host=web.example.com\n"
    requests = got.flows(ev="http")
    assert [(r["method"], r["path"], r["status"]) for r in requests] == [
        ("GET", "/plain", 200)]
    with open(got.records_path, encoding="utf-8") as log:
        assert "secret" not in log.read()


def test_without_proxy_variables_the_same_hosts_answer(penstock):
    got = penstock.curl("https://web.example.com/t", "http://web.example.com/u",
                        options=["--no-proxy-env"])
    assert got.code == 0, got.err
    assert got.out == ("lab GET /t host=web.example.com\n"
                       "lab GET /u host=web.example.com\n")
    assert {r["via"] for r in got.flows(ev="flow_open")} == {"transparent"}


def test_a_host_that_no_rule_names_is_refused_with_403(penstock):
    # TUN-01: never a 200 first.
    got = penstock.curl("https://denied.example.net/")
    assert got.code == 56, got.err
    assert "response 403" in got.err and "200" not in got.err
    assert got.denied() == {("denied.example.net", 443, "host_not_allowed")}


def test_a_refusal_in_http_says_what_to_ask_for(penstock):
    # TUN-02: policy and outage never look alike, and the body says which.
    got = penstock.curl("-i", "http://denied.example.net/x")
    head, _, body = got.out.replace("\r\n", "\n").partition("\n\n")
    assert head.split("\n")[0] == "HTTP/1.1 403 host_not_allowed"
    assert ('Proxy-Status: penstock; error=http_request_denied; '
            'details="host_not_allowed"') in head
    said = json.loads(body)
    assert said["error"] == "host_not_allowed"
    assert (said["host"], said["port"]) == ("denied.example.net", 80)
    assert "lab" in said["message"] and said["run"]
    assert "denied.example.net" in said["request"]


def test_with_no_policy_at_all_everything_is_refused(penstock):
    # POL-01: nothing said means nothing allowed.
    got = penstock.curl("http://web.example.com/", policy=None)
    assert "host_not_allowed" in got.out
    assert got.flows(act="allow") == []


@pytest.mark.parametrize("text", ["", "[policy]\nname = empty\n", "; nothing\n"])
def test_an_empty_policy_denies_everything(as_user, text):
    # POL-01
    got = as_user.curl("http://web.example.com/", policy=text)
    assert "host_not_allowed" in got.out


def test_allow_opens_one_host_and_says_what_it_cannot_open(as_user):
    # The lab's addresses are documentation ranges, which --allow never opens:
    # so the name passes and the address does not, each with its own word.
    got = as_user.curl("http://web.example.com/", policy=None,
                       options=["--allow", "web.example.com"])
    assert "address_documentation" in got.out


def test_the_commands_exit_code_is_passed_through(penstock):
    assert penstock.sh("exit 0").code == 0
    assert penstock.sh("exit 42").code == 42


def test_a_command_that_is_not_there_is_127_and_not_runnable_126(penstock):
    assert penstock.run("no-such-command").code == 127
    assert penstock.run("/etc/passwd").code == 126


def test_standard_streams_are_the_commands_own(penstock):
    got = penstock.run("cat", stdin="through\n")
    assert got.out == "through\n"
    assert got.err == ""


def test_a_port_that_the_rule_does_not_open_is_refused(penstock):
    # POL-07
    got = penstock.sh("curl -sS https://web.example.com:9999/;"
                      "curl -sS https://web.example.com:22/;"
                      "curl -sS https://web.example.com/ok")
    assert got.out == "lab GET /ok host=web.example.com\n"
    assert got.denied() == {("web.example.com", 9999, "port_not_allowed"),
                            ("web.example.com", 22, "port_not_allowed")}


def test_a_deny_inside_an_allowed_wildcard_wins(as_user):
    policy = POLICY + "\n[deny api]\nhosts = api.example.com\nreason = closed\n"
    got = as_user.sh("curl -sS http://api.example.com/;"
                     "curl -sS http://web.example.com/", policy=policy)
    assert '"error":"host_denied"' in got.out
    assert "lab GET / host=web.example.com" in got.out


def test_an_address_rule_opens_a_literal(as_user):
    policy = ("[allow origin]\naddresses = %s\nports = 80\nowner = tests\n"
              "reason = literal\n" % names.WEB_V4)
    got = as_user.sh("curl -sS http://%s/a; curl -sS http://%s/b"
                     % (names.WEB_V4, names.SHARED_V4), policy=policy)
    assert "lab GET /a host=%s" % names.WEB_V4 in got.out
    assert "lab GET /b" not in got.out


def test_records_of_an_allowed_flow_join_with_their_dns_question(as_user):
    got = as_user.curl("https://web.example.com/",
                       options=["--no-proxy-env"])
    assert got.code == 0, got.err
    questions = {r["id"] for r in got.dns(host="web.example.com")}
    opened = got.flows(ev="flow_open", host="web.example.com")
    assert opened and all(r["dns"] in questions for r in opened)


def test_the_addresses_of_the_lab_are_open_only_by_the_rule(as_user):
    policy = "[allow web]\nhosts = *.example.com\n"
    got = as_user.curl("http://web.example.com/", policy=policy)
    assert "address_documentation" in got.out
