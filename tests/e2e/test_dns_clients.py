# SPDX-License-Identifier: Apache-2.0
"""Resolvers that people have, unmodified, against the door of a sandbox.

glibc, musl, c-ares, Go's own and Node's resolvers, dig, dnspython, and two
caching forwarders as they stand on a machine: libunbound and dnsmasq.  Each is
told of an IPv4 or an IPv6 server, by UDP and, where it can, by TCP.  Nothing is
measured against a clock: that no answer was lost, late or misread shows in the
records, where each question stands as often as the client had reason to ask.

A resolver that reads only /etc/resolv.conf is a copy of its program or library
with the path /tmp/resolv.conf in it, which has the same length.
"""
import ipaddress
import json
import os
import shutil
import subprocess

import pytest

from conftest import ADDRESSES, names
from dnswire import NXDOMAIN, REFUSED

SYNTHETIC = [ipaddress.ip_network("198.18.0.0/15"),
             ipaddress.ip_network("fd70:656e:7374:6f63::/64")]


class Mode:
    """How [dns] answers has names answered."""

    def __init__(self, word):
        self.word = word
        self.policy = """\
[policy]
name = lab
[dns]
answers = %s
[allow web]
hosts     = web.example.com v4.example.com v6.example.com many.example.com
hosts     = half.example.com nothere.example.com late.example.com
addresses = %s
reason    = the lab's origins live in documentation ranges
owner     = tests
""" % (word, ADDRESSES)

    def holds(self, name, family, got):
        """Are @got the addresses of @family that @name is answered with?"""
        real = set(names.NAMES[name][family == 6])
        if not real:
            return not got
        if self.word == "real":
            return set(got) == real
        return len(set(got)) == 1 and \
            ipaddress.ip_address(got[0]) in SYNTHETIC[family == 6]


MODES = [Mode("synthetic"), Mode("real")]


@pytest.fixture(params=MODES, ids=[mode.word for mode in MODES])
def mode(request):
    return request.param


@pytest.fixture(params=["9.9.9.9", "2620:fe::fe"], ids=["v4", "v6"])
def server(request):
    return request.param


BY_TCP = pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])


def need(program):
    found = shutil.which(program)
    if not found:
        pytest.skip("%s is not installed" % program)
    return os.path.realpath(found)


def redirected(lab, path):
    """A copy of @path that reads /tmp/resolv.conf."""
    to = os.path.join(lab.workdir("redirected"), os.path.basename(path))
    if not os.path.exists(to):
        with open(path, "rb") as f:
            program = f.read()
        assert b"/etc/resolv.conf" in program
        with open(to, "wb") as f:
            f.write(program.replace(b"/etc/resolv.conf", b"/tmp/resolv.conf"))
        os.chmod(to, 0o755)
    return to


def conf(server, *lines):
    return "printf '%%s\\n' '%s' > /tmp/resolv.conf\n" % "' '".join(
        ("nameserver " + server,) + lines)


def asked(got, name):
    """The types that were asked of @name, in the order of their names."""
    return sorted(r["qtype"] for r in got.dns(host=name))


def by(got, tcp):
    """Did all questions come by this transport, to this server?"""
    return {r["transport"] for r in got.dns()} == {"tcp" if tcp else "udp"}


def build(lab, name, source, *command):
    """Compile a program for the inside; once a session."""
    to = os.path.join(lab.workdir("built"), name)
    if not os.path.exists(to):
        path = to + ".c"
        with open(path, "w", encoding="ascii") as f:
            f.write(source)
        subprocess.run([*command[:1], "-O1", "-o", to, path, *command[1:]],
                       check=True)
    return to


# --- getaddrinfo(3): glibc and musl ------------------------------------------------

GETADDRINFO = r"""
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>

/* NAME...: a line with its addresses, or with the word of the error. */
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *all, *a;
		int e = getaddrinfo(argv[i], "80", &hints, &all);

		printf("%s", argv[i]);
		if (e)
			printf(" %s", e == EAI_NONAME ? "NONAME" :
			       e == EAI_AGAIN ? "AGAIN" :
			       e == EAI_FAIL ? "FAIL" : "ANOTHER");
		for (a = e ? NULL : all; a; a = a->ai_next) {
			char text[INET6_ADDRSTRLEN];

			getnameinfo(a->ai_addr, a->ai_addrlen, text,
				    sizeof(text), NULL, 0, NI_NUMERICHOST);
			printf(" %s", text);
		}
		puts("");
	}
}
"""


class Libc:
    """A program that calls getaddrinfo(), and how to start it."""

    def __init__(self, lab, which):
        self.which = which
        if which == "musl":
            need("musl-gcc")
            self.command = redirected(lab, build(
                lab, "getaddrinfo-musl", GETADDRINFO, "musl-gcc", "-static"))
        else:
            libc = subprocess.run(["gcc", "-print-file-name=libc.so.6"],
                                  check=True, capture_output=True, text=True)
            where = redirected(lab, os.path.realpath(libc.stdout.strip()))
            self.command = "LD_LIBRARY_PATH=%s %s" % (
                os.path.dirname(where),
                build(lab, "getaddrinfo-glibc", GETADDRINFO, "gcc"))

    @staticmethod
    def answers(got):
        """name -> (IPv4, IPv6) addresses, or the word of the error"""
        found = {}
        for line in got.out.splitlines():
            name, *words = line.split()
            found[name] = words[0] if words[0].isupper() else \
                ([a for a in words if ":" not in a],
                 [a for a in words if ":" in a])
        return found


@pytest.fixture(params=["glibc", "musl"])
def libc(lab, request):
    return Libc(lab, request.param)


def test_getaddrinfo(as_user, mode, server, libc):
    # Both families are asked at once from one socket (DNS-07); an error or a
    # denial of one never takes the name away (DNS-06, DNS-23).
    asks = ["web.example.com", "v4.example.com", "v6.example.com",
            "half.example.com", "late.example.com"]
    got = as_user.sh(conf(server) + "%s %s denied.example.net "
                     "nothere.example.com localhost" %
                     (libc.command, " ".join(asks)), policy=mode.policy)
    found = libc.answers(got)
    for name in asks[:3]:
        for i, family in enumerate((4, 6)):
            assert mode.holds(name, family, found[name][i]), (name, got.out)
    for name in ("half.example.com", "late.example.com"):
        assert len(found[name][0]) == 1 and not found[name][1], got.out
    for name in ("denied.example.net", "nothere.example.com"):
        assert found[name] == "NONAME", got.out
    assert found["localhost"] == (["127.0.0.1"], ["::1"])
    for name in [*asks, "denied.example.net", "nothere.example.com"]:
        assert asked(got, name) == ["A", "AAAA"], name
    assert by(got, False)


def test_getaddrinfo_of_more_addresses_than_a_datagram_holds(as_user, mode,
                                                             libc):
    # DNS-10.  musl of Debian 12 knows no TCP and takes what came.
    got = as_user.sh(conf("9.9.9.9") + libc.command + " many.example.com",
                     policy=mode.policy)
    v4, v6 = libc.answers(got)["many.example.com"]
    assert not v6
    if mode.word == "real" and libc.which == "musl":
        assert set(v4) < set(names.NAMES["many.example.com"][0])
        assert len(v4) >= 25
    else:
        assert mode.holds("many.example.com", 4, v4), got.out
    by_tcp = mode.word == "real" and libc.which == "glibc"
    assert ("tcp" in {r["transport"] for r in got.dns()}) == by_tcp


def test_getaddrinfo_by_tcp(as_user, lab, mode, server):
    # musl of Debian 12 knows no TCP.
    libc = Libc(lab, "glibc")
    got = as_user.sh(conf(server, "options use-vc") + libc.command +
                     " web.example.com denied.example.net",
                     policy=mode.policy)
    found = libc.answers(got)
    assert mode.holds("web.example.com", 4, found["web.example.com"][0])
    assert mode.holds("web.example.com", 6, found["web.example.com"][1])
    assert found["denied.example.net"] == "NONAME"
    assert asked(got, "web.example.com") == ["A", "AAAA"]
    assert by(got, True)


@pytest.mark.parametrize("options", ["single-request", "single-request-reopen",
                                     "edns0", "edns0 trust-ad", "rotate"])
def test_getaddrinfo_with_the_options_of_glibc(as_user, lab, server, options):
    libc = Libc(lab, "glibc")
    got = as_user.sh(conf(server, "options " + options) + libc.command +
                     " web.example.com", policy=MODES[0].policy)
    assert MODES[0].holds("web.example.com", 4,
                          libc.answers(got)["web.example.com"][0]), got.err
    assert asked(got, "web.example.com") == ["A", "AAAA"]


def test_search_lists_lead_past_denied_names(as_user, mode, server, libc):
    # DNS-05
    got = as_user.sh(
        conf(server, "search corp.example.org example.com", "options ndots:5")
        + libc.command + " web.example.com web denied denied.example.net",
        policy=mode.policy)
    found = libc.answers(got)
    for name in ("web.example.com", "web"):
        assert mode.holds("web.example.com", 4, found[name][0]), got.out
        assert mode.holds("web.example.com", 6, found[name][1]), got.out
    assert found["denied"] == found["denied.example.net"] == "NONAME"
    for tail in ("corp.example.org", "example.com"):
        for name in ("web.example.com.", "denied.", "denied.example.net."):
            assert {r["rcode"] for r in got.dns(host=name + tail)} == \
                {NXDOMAIN}, (name, tail)
            assert asked(got, name + tail) == ["A", "AAAA"]


def test_getent(as_user, mode):
    # As the machine's own programs come: with the sandbox's own resolv.conf.
    got = as_user.sh("""
        getent ahostsv4 web.example.com | awk '{print $1}' | sort -u
        getent ahostsv6 web.example.com | awk '{print $1}' | sort -u
        getent hosts web.example.com | awk '{print $1}'
        getent hosts denied.example.net; echo $?
        getent hosts nothere.example.com; echo $?
        """, policy=mode.policy)
    v4, v6, either, denied, absent = got.out.split()
    assert mode.holds("web.example.com", 4, [v4])
    assert mode.holds("web.example.com", 6, [v6])
    assert either == v6
    assert denied == absent == "2"


def test_the_name_of_an_address_is_that_which_was_asked(as_user, mode):
    if mode.word == "real":
        pytest.skip("an address of the world has a name there, or none")
    got = as_user.sh("""
        set -- $(getent ahostsv4 web.example.com)
        getent hosts $1
        getent hosts 198.18.200.200; echo $?
        """, policy=mode.policy)
    assert got.out.split()[1:] == ["web.example.com", "2"], got.out


# --- c-ares -------------------------------------------------------------------------

CARES = r"""
#include <ares.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>

static int waiting;

static void on_answer(void *arg, int status, int timeouts,
		      struct ares_addrinfo *all)
{
	waiting--;
	printf("%s", (const char *)arg);
	if (status)
		printf(" %s", status == ARES_ENOTFOUND ? "NOTFOUND" :
		       status == ARES_ENODATA ? "NODATA" : "ANOTHER");
	for (struct ares_addrinfo_node *a = all ? all->nodes : NULL; a;
	     a = a->ai_next) {
		char text[INET6_ADDRSTRLEN];

		getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text),
			    NULL, 0, NI_NUMERICHOST);
		printf(" %s", text);
	}
	printf("%s\n", timeouts ? " LATE" : "");
	ares_freeaddrinfo(all);
}

/* SERVER FLAGS NAME...: all names at once. */
int main(int argc, char **argv)
{
	struct ares_options options = { .flags = atoi(argv[2]) };
	struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC };
	ares_channel channel;

	if (ares_library_init(ARES_LIB_INIT_ALL) ||
	    ares_init_options(&channel, &options, ARES_OPT_FLAGS) ||
	    ares_set_servers_csv(channel, argv[1]))
		return 1;
	for (int i = 3; i < argc; i++) {
		waiting++;
		ares_getaddrinfo(channel, argv[i], NULL, &hints, on_answer,
				 argv[i]);
	}
	while (waiting > 0) {
		fd_set r, w;
		struct timeval tv, *t;
		int n;

		FD_ZERO(&r);
		FD_ZERO(&w);
		n = ares_fds(channel, &r, &w);
		t = ares_timeout(channel, NULL, &tv);
		select(n, &r, &w, NULL, t);
		ares_process(channel, &r, &w);
	}
	ares_destroy(channel);
	return 0;
}
"""
USEVC, STAYOPEN, EDNS = 1, 16, 256


@pytest.mark.parametrize("flags", [0, EDNS, USEVC, USEVC | STAYOPEN | EDNS],
                         ids=["udp", "edns", "tcp", "tcp-edns"])
def test_c_ares(as_user, lab, mode, server, flags):
    program = build(lab, "ares", CARES, "gcc", "-lcares")
    asks = ["web.example.com", "v4.example.com", "v6.example.com"]
    got = as_user.run(program, server, str(flags), *asks, "denied.example.net",
                      "nothere.example.com", policy=mode.policy)
    found = Libc.answers(got)
    for name in asks:
        for i, family in enumerate((4, 6)):
            assert mode.holds(name, family, found[name][i]), got.out
    assert found["denied.example.net"] == "NOTFOUND", got.out
    assert found["nothere.example.com"] == "NOTFOUND", got.out
    for name in asks:
        assert asked(got, name) == ["A", "AAAA"]
    assert by(got, flags & USEVC)


# --- Go -----------------------------------------------------------------------------

@BY_TCP
def test_gos_own_resolver(as_user, lab, mode, server, tcp):
    """By gron(1), a small program in Go that can fetch what it shows."""
    program = redirected(lab, need("gron"))
    with open(lab.www + "/go.json", "w", encoding="ascii") as f:
        f.write('{"go": true}')
    got = as_user.sh(
        conf(server, *["options use-vc"] * tcp) + """
        GODEBUG=netdns=go+2 {0} -m http://web.example.com/files/go.json
        GODEBUG=netdns=go+2 {0} -m http://denied.example.net/
        """.format(program), policy=mode.policy, options=["--no-proxy-env"])
    assert "json.go = true;" in got.out, got.err
    assert "go package net: hostLookupOrder(web.example.com) = " in got.err
    assert "forcing use of Go's resolver" in got.err
    assert "lookup denied.example.net" in got.err
    assert "no such host" in got.err
    assert asked(got, "web.example.com") == ["A", "AAAA"]
    assert by(got, tcp)


# --- Node ---------------------------------------------------------------------------

NODE = r"""
const dns = require('dns').promises;
dns.setServers([process.argv[1]]);
const show = p => p.then(a => JSON.stringify(a), e => e.code);
(async () => {
  for (const name of ['web.example.com', 'v4.example.com', 'v6.example.com']) {
    console.log(await show(dns.resolve4(name)));
    console.log(await show(dns.resolve6(name)));
    console.log(await show(dns.lookup(name, {all: true})
                           .then(all => all.map(a => a.address))));
  }
  console.log(await show(dns.resolveTxt('web.example.com')));
  console.log(await show(dns.resolve4('denied.example.net')));
  console.log(await show(dns.lookup('denied.example.net')));
  console.log(await show(dns.resolve4('nothere.example.com')));
  process.stdout.write(await (await fetch('http://web.example.com/n')).text());
})();
"""


def test_node(as_user, mode, server):
    # Its dns module is c-ares, its lookup() and fetch() are getaddrinfo(3).
    got = as_user.run(need("node"), "-e", NODE,
                      "[%s]" % server if ":" in server else server,
                      policy=mode.policy, options=["--no-proxy-env"])
    lines = got.out.splitlines()
    for i, name in enumerate(["web.example.com", "v4.example.com",
                              "v6.example.com"]):
        v4, v6, both = [[] if line == "ENODATA" else json.loads(line)
                        for line in lines[3 * i:3 * i + 3]]
        assert mode.holds(name, 4, v4) and mode.holds(name, 6, v6), got.out
        assert sorted(both) == sorted(v4 + v6)
    assert lines[9:] == ["ENODATA", "ENOTFOUND", "ENOTFOUND", "ENOTFOUND",
                         "lab GET /n host=web.example.com"], got.err


# --- dig ----------------------------------------------------------------------------

DIG = ["", "+tcp", "+noedns", "+noedns +tcp", "+bufsize=512", "+bufsize=4096",
       "+cookie", "+nocookie", "+cookie=0123456789abcdef", "+dnssec", "+cdflag",
       "+adflag", "+zflag", "+norecurse", "+nsid", "+subnet=192.0.2.0/24",
       "+padding=128", "+keepalive +tcp", "+expire", "+ednsflags=0x40",
       "+ednsopt=65001:736563726574", "+qid=0", "+keepopen +tcp", "+ignore"]


def statuses(got):
    return [line.split("status: ")[1].split(",")[0]
            for line in got.out.splitlines() if "status: " in line]


def test_dig_with_all_that_it_can_ask_for(as_user, mode, server):
    lines = ["dig +time=20 +tries=1 @%s %s web.example.com AAAA denied.example.net"
             % (server, options) for options in DIG]
    got = as_user.sh("\n".join(lines), policy=mode.policy)
    assert statuses(got) == ["NOERROR", "NXDOMAIN"] * len(DIG), got.out
    assert got.out.count("ANSWER: 1, AUTHORITY: 0") == len(DIG), got.out
    for word in ("WARNING", "malformed", "mismatch", "recursion requested but "
                 "not available", "BADCOOKIE"):
        assert word not in got.out.replace("WARNING: .local", ""), got.out


def test_dig_speaks_to_another_version_of_edns(as_user, server):
    got = as_user.sh("dig +time=20 +tries=1 @%s +noednsneg +edns=1 "
                     "web.example.com; dig +time=20 +tries=1 @%s +edns=1 "
                     "web.example.com" % (server, server),
                     policy=MODES[0].policy)
    assert statuses(got) == ["BADVERS", "NOERROR"], got.out


TYPES = {"A": "NOERROR", "AAAA": "NOERROR", "NS": "NOERROR", "SOA": "NOERROR",
         "CNAME": "NOERROR", "PTR": "NOERROR", "MX": "NOERROR",
         "TXT": "NOERROR", "SRV": "NOERROR", "NAPTR": "NOERROR",
         "DS": "NOERROR", "DNSKEY": "NOERROR", "TLSA": "NOERROR",
         "SVCB": "NOERROR", "HTTPS": "NOERROR", "CAA": "NOERROR",
         "LOC": "NOERROR", "SSHFP": "NOERROR", "URI": "NOERROR",
         "TYPE65280": "NOERROR", "NULL": "REFUSED", "ANY": "REFUSED",
         "MAILB": "REFUSED"}


@BY_TCP
def test_dig_of_all_types(as_user, mode, server, tcp):
    lines = ["dig +time=20 +tries=1 %s @%s -t %s web.example.com" %
             ("+tcp" if tcp else "+notcp", server, rdtype) for rdtype in TYPES]
    got = as_user.sh("\n".join(lines), policy=mode.policy)
    assert dict(zip(TYPES, statuses(got))) == TYPES, got.out
    assert got.out.count("ANSWER: 1,") == 2
    assert by(got, tcp)


@pytest.mark.parametrize("what", ["axfr", "ixfr=1"])
def test_dig_gets_no_zone(as_user, server, what):
    got = as_user.sh("dig +time=20 +tries=1 @%s example.com %s" %
                     (server, what), policy=MODES[0].policy)
    assert "Transfer failed" in got.out or "REFUSED" in got.out, got.out
    assert [r["rcode"] for r in got.dns()] == [REFUSED]


# --- dnspython ------------------------------------------------------------------------

DNSPYTHON = r"""
import sys
import dns.resolver
server, tcp = sys.argv[1], sys.argv[2] == "tcp"
for edns in (-1, 0):
    r = dns.resolver.Resolver(configure=False)
    r.nameservers = [server]
    r.use_edns(edns, 0, 1232)
    for rdtype in ("A", "AAAA"):
        print(*[a.to_text() for a in
                r.resolve("web.example.com", rdtype, tcp=tcp)])
    for name, rdtype in (("web.example.com", "TXT"), ("denied.example.net", "A"),
                         ("example.com", "A"), ("nothere.example.com", "A")):
        try:
            print(r.resolve(name, rdtype, tcp=tcp).rrset)
        except Exception as e:
            print(type(e).__name__)
"""


@BY_TCP
def test_dnspython(as_user, mode, server, tcp):
    got = as_user.python(DNSPYTHON, server, "tcp" if tcp else "udp",
                         policy=mode.policy)
    lines = got.out.splitlines()
    assert len(lines) == 12, got.err
    for turn in (lines[:6], lines[6:]):
        assert mode.holds("web.example.com", 4, turn[0].split())
        assert mode.holds("web.example.com", 6, turn[1].split())
        assert turn[2:] == ["NoAnswer", "NXDOMAIN", "NoAnswer", "NXDOMAIN"]
    assert by(got, tcp)


# --- caches between a program and the door ----------------------------------------------

UNBOUND = r"""
import sys
import unbound as u
server, tcp = sys.argv[1], sys.argv[2] == "tcp"
c = u.ub_ctx()
for key, value in (("harden-below-nxdomain:", "yes"),
                   ("qname-minimisation:", "yes"),
                   ("tcp-upstream:", "yes" if tcp else "no"),
                   ("use-caps-for-id:", "yes"), ("do-ip6:", "yes")):
    c.set_option(key, value)
c.set_fwd(server)
for turn in range(2):
    for name in ("com", "example.com", "denied.example.net", "example.net",
                 "web.example.com", "v4.example.com"):
        for rdtype in (u.RR_TYPE_A, u.RR_TYPE_AAAA):
            status, result = c.resolve(name, rdtype)
            print(name, rdtype, status, result.rcode, result.nxdomain,
                  *(result.data.address_list if result.havedata and
                    rdtype == u.RR_TYPE_A else []))
"""


@BY_TCP
def test_a_cache_that_believes_nxdomain_finds_names_below(as_user, mode, server,
                                                         tcp):
    # DNS-09: RFC 8020, as unbound and systemd-resolved have it.
    pytest.importorskip("unbound")
    got = as_user.python(UNBOUND, server, "tcp" if tcp else "udp",
                         policy=mode.policy)
    lines = [line.split() for line in got.out.splitlines()]
    assert len(lines) == 24, got.err
    for name, rdtype, status, rcode, nxdomain, *found in lines:
        denied = name.endswith("example.net")
        assert (status, rcode, nxdomain) == \
            ("0", "3" if denied else "0", "1" if denied else "0"), got.out
        if name.startswith(("web", "v4")) and rdtype == "1":
            assert mode.holds(name, 4, found), got.out
    # The second turn came out of its cache.
    assert asked(got, "web.example.com") == ["A", "AAAA"]
    assert by(got, tcp)


def test_a_forwarder_with_a_cache(as_user, mode, server):
    # As it stands on many machines, between all programs and the resolver.
    program = need("dnsmasq")
    got = as_user.sh("""
        %s --no-daemon --conf-file=/dev/null --no-resolv --no-hosts \
            --server=%s --port=5353 --listen-address=127.0.0.1 \
            --bind-interfaces --cache-size=150 --pid-file= --user= \
            --log-facility=/tmp/log &
        until grep -qs 'using nameserver' /tmp/log; do
            kill -0 $! || exit 1
        done
        for turn in 1 2; do
            for name in com example.com denied.example.net web.example.com; do
                dig +time=20 +tries=1 -p 5353 @127.0.0.1 $name
                dig +time=20 +tries=1 -p 5353 @127.0.0.1 $name AAAA
            done
        done
        kill $!
        """ % (program, server), policy=mode.policy)
    assert statuses(got) == (["NOERROR"] * 4 + ["NXDOMAIN"] * 2 +
                             ["NOERROR"] * 2) * 2, (got.out, got.err)
    assert got.out.count("ANSWER: 1,") == 4, got.out
    assert asked(got, "web.example.com") == ["A", "AAAA"]
