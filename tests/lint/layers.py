#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may include what: folders, exposed headers, homes of libraries."""

import re

import lint

# A folder sees itself and what stands here; of that only exposed headers.
SEES = {
    "base": (),
    "rules": ("base",),
    "audit": ("base", "rules"),
    "resolver": ("base", "rules", "audit"),
    "proxy": ("base", "rules", "audit", "resolver"),
    "netns-setup": ("base", "rules", "audit", "proxy"),
    "cli": ("base", "rules", "audit", "resolver", "proxy", "netns-setup"),
}
# What a folder shows: header names, or None for all of them.
EXPOSED = {
    "base": None,
    "rules": ("rules.h", "rules_bundle.h", "rules_diff.h", "rules_load.h",
              "rules_show.h", "rules_target.h", "host_name.h",
              "host_idn.h"),
    "audit": ("record.h", "relay.h", "writer.h", "query.h"),
    "resolver": ("resolver.h", "name_map.h", "name_pins.h", "dns_judge.h"),
    "proxy": ("ctl_proto.h",),
    "netns-setup": ("launch.h",),
    "cli": (),
}
# A library is included in its homes and nowhere else.
HOMES = {
    r"ini\.h$": ("base/ini.c",),
    r"seccomp\.h$": ("base/seccomp.c",),
    r"ares(_\w+)?\.h$": ("resolver/dns_chan.c",),
    r"openssl/": ("proxy/tls.c", "proxy/ca.c", "resolver/dns_tls_lib.h",
                  "audit/chain.c"),
    r"libmnl/": ("base/sock_diag.c", "proxy/host_addrs.c",
                "proxy/host_nl.c", "proxy/host_nl.h",
                "proxy/host_route.c", "proxy/nflog.c",
                 "netns-setup/nl.c", "netns-setup/ns_link.c",
                 "netns-setup/ns_listen.c", "netns-setup/ns_nft.c"),
    # libnftnl is GPL-2+: the launcher alone links it.
    r"libnftnl/": ("netns-setup/ns_nft.c", "netns-setup/ns_nft_rules.c",
                   "netns-setup/ns_nft_list.c"),
    r"(idn2|libpsl)\.h$": ("rules/host_idn.c",),
    r"jansson\.h$": ("audit/query.c",),
}
# Never with an event loop: they are tested and fuzzed without one.
PURE = re.compile(
    r"^(base|rules|audit|netns-setup|cli)/"
    r"|^resolver/(dns_msg|dns_rdata|dns_cache|dns_judge|dns_local|name_map)"
    r"|^resolver/name_pins"
    r"|^resolver/(dns_answer|dns_health|resolv_conf)"
    r"|^proxy/(sniff|http1|rewrite|socks|parent_msg|quota|websocket)")

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def includes(source):
    """(line number, quote, name) for each include."""
    for i, line in enumerate(source.lines, 1):
        found = INCLUDE.match(line)
        if found:
            yield i, found.group(1), found.group(2)


def own_fault(source, name):
    """Why @source must not include our header @name, or None."""
    folder, _, rest = name.partition("/")
    if name == "config.h":
        return None
    if not rest or folder not in lint.FOLDERS:
        return "include from the root of the tree: \"FOLDER/%s\"" % name
    if source.folder in ("tests", "bench") or folder == source.folder:
        return None
    if folder not in SEES[source.folder]:
        return "%s/ must not see %s/" % (source.folder, folder)
    exposed = EXPOSED[folder]
    if exposed is not None and rest not in exposed:
        return "%s is private to %s/" % (name, folder)
    return None


def library_fault(source, name):
    if source.folder == "tests":
        return None
    for pattern, homes in HOMES.items():
        if re.match(pattern, name) and source.path not in homes:
            return "<%s> has its home in %s" % (name, ", ".join(homes))
    return None


def main():
    tree = lint.sources(lint.root_dir())
    own, library, pure = [], [], []
    for source in tree:
        for number, quote, name in includes(source):
            where = "%s:%d: " % (source.path, number)
            if quote == '"':
                fault = own_fault(source, name)
                if fault:
                    own.append(where + fault)
                continue
            fault = library_fault(source, name)
            if fault:
                library.append(where + fault)
            if name.startswith("event2/") and PURE.match(source.path):
                pure.append(where + "this file knows no event loop")
    tap = lint.Tap()
    tap.check("folders include only what lies below them", own)
    tap.check("each library is included in its few homes", library)
    tap.check("pure files do not see libevent", pure)
    tap.done()


main()
