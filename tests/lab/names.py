# SPDX-License-Identifier: Apache-2.0
"""names.py - the lab's little internet: which names exist, and what they answer.

Everything the origins own lies in documentation ranges; the other addresses
(metadata, private, loopback, the host's own) are what a hostile zone would
answer.  The internet namespace accepts every address, so a packet that the
pipe should have refused does arrive there and is seen.
"""

import glob
import os

PRESETS = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "../../rules/presets")

HOST_V4 = "198.51.100.2"        # the lab host's own addresses
HOST_V6 = "2001:db8:1::2"
GATE_V4 = "198.51.100.1"        # the internet's side of the link
GATE_V6 = "2001:db8:1::1"
DNS_V4 = "203.0.113.53"
DNS2_V4 = "203.0.113.54"
DNS_V6 = "2001:db8:3::53"
DNS_LINK = "fe80::53"          # on the link between host and internet
DNS_NAME = "dns.example.net"    # of the certificate, with DNS_V4 and DNS_V6

WEB_V4 = "203.0.113.10"
WEB_V6 = "2001:db8:3::10"
CLOSED_V4 = "203.0.113.11"      # refuses every connection
SHARED_V4 = "203.0.113.30"      # serves an allowed and a denied name
SILENT_V4 = "203.0.113.99"      # swallows packets

# Of AS112 (RFC 7535): public to every classification, and nobody's service.  The
# lab's host takes these as its own for a while.
OWN_V4 = "192.175.48.1"
OWN_V6 = "2001:4:112::1"

# name -> (A records, AAAA records); what is not here does not exist.
NAMES = {
    "web.example.com": ([WEB_V4], [WEB_V6]),
    "api.example.com": ([WEB_V4], [WEB_V6]),
    "mirror.example.com": ([WEB_V4], [WEB_V6]),
    "my_bucket.example.com": ([WEB_V4], []),
    "v4.example.com": ([WEB_V4], []),
    "v6.example.com": ([], [WEB_V6]),
    "git.example.com": ([WEB_V4], []),
    "shared.example.com": ([SHARED_V4], []),
    "shared.example.net": ([SHARED_V4], []),
    "denied.example.net": (["203.0.113.20"], ["2001:db8:3::20"]),
    "closed.example.com": ([CLOSED_V4], []),
    "silent.example.com": ([SILENT_V4], []),
    "mixed.example.com": ([CLOSED_V4, "10.0.0.5"], []),
    "fallback.example.com": ([CLOSED_V4, WEB_V4], []),
    "broken-v6.example.com": ([WEB_V4], ["2001:db8:3::11"]),
    "metadata.example.com": (["169.254.169.254"], ["fd00:ec2::254"]),
    "private.example.com": (["10.0.0.5"], ["fd12::5"]),
    "loopback.example.com": (["127.0.0.1"], ["::1"]),
    "mapped.example.com": ([], ["::ffff:10.0.0.1"]),
    "nat64.example.com": ([], ["64:ff9b::a9fe:a9fe"]),
    "zero.example.com": (["0.0.0.0"], ["::"]),
    "host.example.com": ([HOST_V4], [HOST_V6]),
    "own.example.com": ([OWN_V4], [OWN_V6]),
    "many.example.com": (["203.0.113.%d" % (100 + i) for i in range(60)], []),
    "metadata.google.internal": (["169.254.169.254"], []),
}

# zone -> (A records, AAAA records) of every name below it, good for minutes.
BELOW = {
    "wide.example.com": ([WEB_V4], [WEB_V6]),
    "clients.example.com": ([WEB_V4], [WEB_V6]),        # one of each client's own
}

# name -> target; chains end in NAMES, or never.
CNAMES = {
    "cdn.example.com": "edge.example.net",
    "edge.example.net": "web.example.com",
    "loop-a.example.com": "loop-b.example.com",
    "loop-b.example.com": "loop-a.example.com",
    "evil-cname.example.com": "metadata.example.com",
}

# name -> list of A answers, one after the other, the last one for ever.  Each is one
# test's: what was asked is not asked anew.
CHANGING = {
    "rebind.example.com": [[WEB_V4], ["127.0.0.1"]],
    "rebind-meta.example.com": [[WEB_V4], ["169.254.169.254"]],
    "moves.example.com": [[WEB_V4], ["127.0.0.1"]],
}

# (name, type) -> records of types that a policy can open
RECORDS = {
    ("web.example.com", "TXT"): ['"v=spf1 -all"', '"a second one"'],
    ("web.example.com", "MX"): ["10 api.example.com."],
    ("web.example.com", "CAA"): ['0 issue "ca.example.com"'],
    ("web.example.com", "HTTPS"): [
        '1 . alpn="h2" ipv4hint="10.0.0.5,203.0.113.10" '
        'ipv6hint="::1" ech="AAAA"'],
    ("_sip._tcp.example.com", "SRV"): ["1 2 5060 api.example.com."],
}

LATE_S = {"late.example.com": (0.5, [WEB_V4])}
NEVER = {"never.example.com"}
SERVFAIL_AAAA = {"half.example.com": [WEB_V4]}


def preset_hosts():
    """preset -> the names that it opens; of a wildcard, one name below."""
    hosts = {}
    for path in sorted(glob.glob(os.path.join(PRESETS, "*.ini"))):
        words = []
        with open(path, encoding="ascii") as text:
            for line in text:
                key, equals, value = line.partition("=")
                if equals and key.strip() == "hosts":
                    words += value.split()
        words = [word.partition("/")[2] if word[0] == "@" else word
                 for word in words]
        hosts[os.path.basename(path)[:-4]] = sorted({
            word.replace("*", "lab") for word in words if word != "*"})
    return hosts


for _names in preset_hosts().values():
    for _name in _names:
        NAMES.setdefault(_name, ([WEB_V4], [WEB_V6]))
