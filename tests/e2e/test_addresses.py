# SPDX-License-Identifier: Apache-2.0
"""Addresses that are never dialled, however they are spelt or learnt."""
import ipaddress

import pytest

from conftest import ADDRESSES, POLICY, names

# Raw requests to the explicit proxy: the target as a hostile client spells it.
CONNECT = r"""
import socket, sys
for target in sys.argv[1:]:
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, target)).encode())
    s.settimeout(15)
    got = b""
    while b"\r\n" not in got:
        part = s.recv(4096)
        if not part:
            break
        got += part
    print(target, got.split(b"\r\n")[0].decode() or "closed")
"""


def connect(penstock, *targets, **kwargs):
    got = penstock.python(CONNECT, *targets, **kwargs)
    assert got.code == 0, got.err
    return dict(line.split(" ", 1) for line in got.out.splitlines()), got


@pytest.mark.parametrize("target,reason", [
    ("169.254.169.254:80", "address_metadata"),         # ADDR-11
    ("100.100.100.200:80", "address_metadata"),
    ("[fd00:ec2::254]:80", "address_metadata"),
    ("127.0.0.1:80", "address_loopback"),
    ("[::1]:80", "address_loopback"),
    ("10.0.0.5:443", "address_private"),
    ("192.168.1.1:443", "address_private"),
    ("172.31.255.255:443", "address_private"),
    ("[fd12::5]:443", "address_private"),
    ("169.254.1.1:80", "address_link_local"),
    ("[fe80::1]:80", "address_link_local"),
    ("100.64.0.1:80", "address_cgnat"),
    ("224.0.0.1:80", "address_multicast"),
    ("0.0.0.0:80", "address_unspecified"),              # ADDR-05
    ("0.1.2.3:80", "address_unspecified"),
    ("[::]:80", "address_unspecified"),
    ("[::ffff:127.0.0.1]:80", "address_loopback"),      # ADDR-01
    ("[::ffff:a9fe:a9fe]:80", "address_metadata"),
    ("[64:ff9b::a9fe:a9fe]:80", "address_metadata"),    # ADDR-02
    ("[64:ff9b::7f00:1]:80", "address_loopback"),
    ("[2002:7f00:1::]:80", "address_loopback"),
    ("240.0.0.1:80", "address_reserved"),
    ("255.255.255.255:80", "address_reserved"),
    ("192.0.2.77:80", "address_documentation"),
])
def test_literals_of_closed_classes_are_refused(as_user, target, reason):
    said, got = connect(as_user, target)
    assert said[target] == "HTTP/1.1 403 " + reason
    assert got.flows(act="deny")[0]["reason"] == reason


def test_every_other_spelling_of_an_address_is_malformed(as_user, lab):
    # ADDR-04, ADDR-08, ADDR-17, HOST-03, HOST-12, HOST-17, HOST-18
    before = len(lab.dns_seen())
    targets = ["0177.0.0.1:80", "2130706433:80", "0x7f000001:80", "127.1:80",
               "010.0.0.1:80", "1.2.3.4.5:80", "[203.0.113.7]:443", "::1:80",
               "2001:db8::1:443", "[::1%25.example.com]:80", "[fe80::1%eth0]:80",
               "exampl%65.com:443", "example.com:4294967739",
               "example.com:65979", "example.com:00000000000443",
               "http://web.example.com:443", "web.example.com:443/x",
               "web.example.com", "web.example.com:", "a@web.example.com:443"]
    said, got = connect(as_user, *targets)
    assert {t: s.split()[1] for t, s in said.items()} == dict.fromkeys(
        targets, "400")
    assert len(lab.dns_seen()) == before
    assert len(got.flows(act="deny")) == len(targets)      # LOG-07


@pytest.mark.parametrize("name,reason", [
    ("metadata.example.com", "address_metadata"),
    ("private.example.com", "address_private"),
    ("loopback.example.com", "address_loopback"),
    ("mapped.example.com", "address_private"),              # ADDR-01
    ("nat64.example.com", "address_metadata"),              # ADDR-02
    ("zero.example.com", "address_unspecified"),            # ADDR-05
    ("evil-cname.example.com", "address_metadata"),
])
def test_a_name_that_resolves_to_a_closed_class_is_refused(
        as_user, lab, name, reason):
    before = len(lab.origin_seen())
    said, got = connect(as_user, name + ":80", name + ":443")
    assert set(said.values()) == {"HTTP/1.1 403 " + reason}
    # The same by the program's own lookup: it gets no address at all.
    plain = as_user.sh("getent ahosts %s; echo $?" % name)
    assert plain.out == "2\n"
    assert plain.dns(host=name, act="deny")[0]["reason"] == reason
    assert len(lab.origin_seen()) == before


OWN = r"""
import socket, sys
print("ready", flush=True)
for _ in sys.stdin:
    s = socket.create_connection(("127.0.0.1", 3128), 20)
    s.sendall(b"CONNECT own.example.com:80 HTTP/1.1\r\n\r\n")
    print(s.recv(4096).split(b"\r\n")[0].decode(), flush=True)
    s.close()
"""


def test_a_name_that_resolves_to_the_host_itself_is_refused(as_user, lab):
    # A public address is the host's own from one moment to the next, and no
    # more later: only then is it refused, in a run that goes on meanwhile.
    process = as_user.start(
        "/usr/bin/python3", "-c", OWN, text=True, bufsize=1,
        policy="[allow own]\nhosts = own.example.com\nports = 80\n"
        "protocol = http\n")

    def ask(want):
        """The status that is @want, or the last of many."""
        for _ in range(500):
            process.stdin.write("\n")
            said = process.stdout.readline().strip()
            if said == want:
                break
        return said

    # By an address of a device, and by a local route to a whole network.
    ways = [
        [("ip addr %%s %s/32 dev lo" % names.OWN_V4),
         ("ip addr %%s %s/128 dev lo" % names.OWN_V6)],
        [("ip route %%s local %s/31 dev lo"
          % ipaddress.ip_network(names.OWN_V4 + "/31", False)
          .network_address),
         ("ip -6 route %%s local %s/126 dev lo"
          % ipaddress.ip_network(names.OWN_V6 + "/126", False)
          .network_address)],
    ]
    try:
        assert process.stdout.readline() == "ready\n"
        assert ask("HTTP/1.1 200 OK").startswith("HTTP/1.1 200")
        for way in ways:
            for command in way:
                lab.host.sh(command % "add")
            refused = "HTTP/1.1 403 address_host"
            assert ask(refused) == refused, way
            for command in way:
                lab.host.sh(command % "del")
            assert ask("HTTP/1.1 200 OK").startswith("HTTP/1.1 200"), way
    finally:
        for command in sum(ways, []):
            lab.host.run((command % "del").split(), capture_output=True)
        process.communicate(timeout=60)


def test_a_range_opens_the_neighbours_and_not_the_host_itself(as_user, lab):
    # A rule that excepts the host's own network for a service there says
    # nothing of what listens on the host: that takes its own address.
    rule = ("[allow net]\nhosts = host.example.com\nports = 80\n"
            "addresses = %s\nreason = try\nowner = tests\n"
            "[allow literal]\naddresses = %s\nports = 80\nreason = try\n"
            "owner = tests\n")
    network, own = "198.51.100.0/24", names.HOST_V4
    server = lab.host.popen(
        ["/usr/bin/python3", "-c", """
import socket
s = socket.create_server(('%s', 80))
print('up', flush=True)
while True:
    s.accept()[0].close()
""" % own], stdout=-1)
    try:
        assert server.stdout.readline() == b"up\n"
        said, got = connect(as_user, "host.example.com:80", own + ":80",
                            names.GATE_V4 + ":80",
                            policy=rule % (network, network))
        assert said["host.example.com:80"] == "HTTP/1.1 403 address_host"
        assert said[own + ":80"] == "HTTP/1.1 403 address_host"
        assert said[names.GATE_V4 + ":80"].startswith("HTTP/1.1 200 ")
        assert len(got.flows(act="deny", reason="address_host")) == 2
        # The same place by the way past the proxy.
        got = as_user.python(r"""
import socket
s = socket.create_connection(('%s', 80), 15)
s.sendall(b'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
print(s.recv(100))
""" % own, policy=rule % (network, network), options=["--no-proxy-env"])
        assert got.flows(act="deny", reason="address_host"), got.records
        # Its own address does open it, by name (v4 only) and as a literal.
        said, _ = connect(as_user, "host.example.com:80", own + ":80",
                          policy=rule % (own, own))
        assert said["host.example.com:80"].startswith("HTTP/1.1 200 ")
        assert said[own + ":80"].startswith("HTTP/1.1 200 ")
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


@pytest.mark.parametrize("name,second", [
    ("rebind.example.com", "address_loopback"),
    ("rebind-meta.example.com", "address_metadata"),
])
def test_a_rebinding_name_is_dialled_only_where_it_was_judged(
        as_user, lab, name, second):
    # The program's lookup is answered with a good address, the next one not:
    # what is dialled is judged again, and nothing arrives anywhere.
    before = len(lab.origin_seen())
    got = as_user.python(r"""
import socket, sys
addr = socket.gethostbyname(sys.argv[1])
print(addr)
s = socket.create_connection((addr, 80), 20)
s.sendall(b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % sys.argv[1].encode())
print(s.recv(4096).split(b"\r\n")[0].decode())
""", name, options=["--no-proxy-env"])
    assert got.out.startswith("198.1"), got.err         # the first was good
    assert got.out.splitlines()[1] == "HTTP/1.1 403 " + second
    assert [r["reason"] for r in got.flows(act="deny")] == [second]
    assert got.flows(ev="flow_open") == []
    assert lab.origin_seen(before) == []


def test_forbidden_candidates_are_not_even_a_fallback(as_user, lab):
    # ADDR-10: the good candidate refuses, the private one would answer.
    before = len(lab.origin_seen())
    said, got = connect(as_user, "mixed.example.com:80")
    assert said["mixed.example.com:80"] == "HTTP/1.1 502 connect_refused"
    assert [s for s in lab.origin_seen(before) if s["addr"] == "10.0.0.5"] == []


def test_the_next_address_is_tried_when_one_refuses(as_user):
    # CLI-25: who is given AAAA first does not strand where v6 leads nowhere.
    got = as_user.curl("http://fallback.example.com/")
    assert got.out == "lab GET / host=fallback.example.com\n"
    got = as_user.curl("http://broken-v6.example.com/")
    assert got.out == "lab GET / host=broken-v6.example.com\n"
    got = as_user.curl("http://broken-v6.example.com/",
                       options=["--no-proxy-env"])
    assert got.out == "lab GET / host=broken-v6.example.com\n"


@pytest.mark.parametrize("options", [[], ["--no-proxy-env"]])
@pytest.mark.parametrize("host", ["v4.example.com", "v6.example.com",
                                  "web.example.com"])
def test_v4_only_v6_only_and_dual_stack_names_answer(as_user, host, options):
    got = as_user.curl("https://%s/" % host, options=options)
    assert got.out == "lab GET / host=%s\n" % host, got.err


def test_an_exception_opens_its_own_address_and_port_only(as_user):
    # POL-24, POL-11
    policy = ("[allow one]\naddresses = 203.0.113.10\nports = 80\n"
              "reason = one\nowner = tests\n"
              "[allow range]\naddresses = 203.0.113.24/29\nports = 80\n"
              "reason = range\nowner = tests\n"
              "[deny hole]\naddresses = 203.0.113.30\nreason = hole\n")
    said, _ = connect(as_user, "203.0.113.10:80", "203.0.113.10:8080",
                      "203.0.113.12:80", "203.0.113.29:80", "203.0.113.30:80",
                      policy=policy)
    assert said["203.0.113.10:80"].startswith("HTTP/1.1 200")
    assert said["203.0.113.29:80"].startswith("HTTP/1.1 200")
    assert said["203.0.113.30:80"] == "HTTP/1.1 403 address_denied"
    assert said["203.0.113.10:8080"].startswith("HTTP/1.1 403")
    assert said["203.0.113.12:80"].startswith("HTTP/1.1 403")


def test_an_address_rule_does_not_open_names_and_asks_no_dns(as_user, lab):
    # ADDR-13, DNS-02
    before = len(lab.dns_seen())
    policy = ("[allow range]\naddresses = %s\nports = 443\nreason = literals\n"
              "owner = tests\n" % ADDRESSES)
    said, _ = connect(as_user, "denied.example.net:443", policy=policy)
    assert said["denied.example.net:443"] == "HTTP/1.1 403 host_not_allowed"
    assert len(lab.dns_seen()) == before


def test_a_redirect_to_a_closed_place_is_judged_anew(as_user):
    # ADDR-19
    got = as_user.sh("""
        curl -sS -L http://web.example.com/redirect-metadata; echo
        curl -sS -L http://web.example.com/redirect-denied""")
    assert '"error":"address_metadata"' in got.out
    assert '"error":"host_not_allowed"' in got.out


def test_direct_connections_to_closed_addresses_are_reset_at_once(as_user):
    # SBX-05, SBX-08, CLI-24, LOG-19: refused by an error, not by silence.
    got = as_user.python(r"""
import errno, socket
for host, port in [("169.254.169.254", 80), ("10.0.0.5", 22), ("8.8.8.8", 22),
                   ("203.0.113.10", 2375), ("fd00:ec2::254", 80),
                   ("2001:db8:3::10", 9999), ("192.0.2.1", 9999)]:
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    s.settimeout(15)
    try:
        s.connect((host, port))
        end = s.recv(1)
        print(host, "closed" if end == b"" else end)
    except OSError as e:
        print(host, errno.errorcode.get(e.errno, e))
""")
    for line in got.out.splitlines():
        assert line.split()[1] in ("ECONNREFUSED", "ECONNRESET", "closed"), line
    reasons = {r.get("asked") or r.get("dst_ip"): r["reason"]
               for r in got.flows(act="deny")}
    assert reasons["169.254.169.254"] == "address_metadata"
    assert reasons["10.0.0.5"] == "address_private"
    assert reasons["fd00:ec2::254"] == "address_metadata"
    assert reasons["8.8.8.8"] == "address_not_allowed"


def test_udp_icmp_and_other_transports_are_refused_at_once_and_recorded(as_user):
    # SBX-09, LOG-19
    got = as_user.python(r"""
import errno, socket
def attempt(label, f):
    try:
        print(label, f())
    except OSError as e:
        print(label, errno.errorcode[e.errno])
def connected(family, host):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(15)
    s.connect((host, 443))
    s.send(b"x")
    return s.recv(1)
def unconnected(family, host):
    # Without IP_RECVERR: only the send itself can tell.
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(15)
    s.sendto(b"x", (host, 443))
    return s.recv(1)
attempt("c4", lambda: connected(socket.AF_INET, "203.0.113.10"))
attempt("c6", lambda: connected(socket.AF_INET6, "2001:db8:3::10"))
attempt("u4", lambda: unconnected(socket.AF_INET, "203.0.113.11"))
attempt("u6", lambda: unconnected(socket.AF_INET6, "2001:db8:3::11"))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
attempt("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM, 0))
attempt("alg", lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET, 0))
""")
    said = dict(line.split() for line in got.out.splitlines())
    for label in ("c4", "c6", "u4", "u6"):
        assert said[label] in ("ECONNREFUSED", "EPERM"), (label, said)
    # One errno for both families.
    assert (said["c4"], said["u4"]) == (said["c6"], said["u6"])
    for label in ("raw", "packet", "vsock", "alg"):
        assert said[label] in ("EPERM", "EACCES", "EAFNOSUPPORT"), (label, said)
    seen = {(r["dst_ip"], r["dst_port"]) for r in got.flows(via="firewall")
            if r["transport"] == "udp"}
    assert ("203.0.113.10", 443) in seen and ("2001:db8:3::10", 443) in seen
