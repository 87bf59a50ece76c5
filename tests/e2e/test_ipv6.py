# SPDX-License-Identifier: Apache-2.0
"""Whether names have IPv6 addresses: what the policy says, or the host has."""
from conftest import POLICY, names

OFF = POLICY + "[dns]\nipv6 = off\n"
LITERAL = OFF + """
[allow literal]
addresses = %s %s
ports     = 443
reason    = an address that is permitted as it is
""" % (names.WEB_V6, names.WEB_V4)


def test_with_ipv6_off_a_name_is_empty_not_absent(as_user, lab):
    # DNS-06: and nobody is asked for what will not be used.
    before = len(lab.dns_seen())
    got = as_user.sh("for n in web v6 v4 nothere; do"
                     " dig +time=5 +tries=1 $n.example.com AAAA; done",
                     policy=OFF)
    assert got.out.count("status: NOERROR") == 4, got.out
    assert got.out.count("ANSWER: 0,") == 4
    assert lab.dns_seen(before) == []
    got = as_user.curl("http://web.example.com/", policy=OFF,
                       options=["--no-proxy-env"])
    assert got.out == "lab GET / host=web.example.com\n", got.err


def test_with_ipv6_off_no_ipv6_address_is_dialled(as_user, lab):
    # OPS-06: by name or not, and whatever rule permits it.
    before = len(lab.origin_seen())
    got = as_user.sh(
        "curl -sS -o /dev/null -w '%{http_connect}\\n' https://[" +
        names.WEB_V6 + "]/;"
        "curl -sS -o /dev/null -w '%{http_connect}\\n' https://" +
        names.WEB_V4 + "/; curl -sS http://web.example.com/;"
        "curl -sS -w '%{http_code}\\n' http://v6.example.com/",
        policy=LITERAL)
    assert got.out.splitlines()[:3] == [
        "403", "200", "lab GET / host=web.example.com"], got.out
    assert "dns_no_address" in got.out
    assert got.denied() >= {(names.WEB_V6, 443, "ipv6_off")}
    assert not [c for c in lab.origin_seen(before) if ":" in c["addr"]]


def test_with_ipv6_auto_the_hosts_way_out_is_followed(as_user, lab):
    process = as_user.start("sh", "-c", """
        while read -r go; do
            dig +short +time=5 +tries=1 web.example.com AAAA
            dig +time=5 +tries=1 web.example.com AAAA | grep -c NOERROR
        done""", text=True, bufsize=1)

    def answer_until(want):
        """Ask until there is an address, or none; a change takes a moment."""
        for _ in range(1000):
            process.stdin.write("go\n")
            lines = [process.stdout.readline().strip()]
            while lines[-1] not in ("0", "1"):
                lines.append(process.stdout.readline().strip())
            assert lines[-1] == "1", lines       # DNS-06: never an error
            if (len(lines) > 1) == want:
                return True
        return False

    undo = "ip -6 addr add %s/64 dev eth0 nodad;" % names.HOST_V6 + \
        "ip -6 route add default via %s" % names.GATE_V6
    try:
        assert answer_until(True)
        lab.host.sh("ip -6 route del default; ip -6 addr del %s/64 dev eth0"
                    % names.HOST_V6)
        try:
            assert answer_until(False)
        finally:
            lab.host.sh(undo)
        assert answer_until(True)
    finally:
        process.communicate(timeout=60)
    assert process.returncode == 0
