#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls that this tree does without, and what to use in their place."""

import re

import lint

CALLS = {
    "strcpy": "memcpy() with a length, or struct buf",
    "strcat": "struct buf",
    "strncpy": "memcpy() with a length",
    "strncat": "struct buf",
    "sprintf": "snprintf() or buf_printf()",
    "vsprintf": "vsnprintf() or buf_printf()",
    "atoi": "str_to_uint()",
    "atol": "str_to_uint()",
    "atoll": "str_to_uint()",
    "gets": "fd_read_all()",
    "strtok": "str_cut() or str_word()",
    "alloca": "a fixed array or mem_new()",
    "rand": "random_bytes()",
    "srand": "random_bytes()",
    "random": "random_bytes()",
    "system": "fork and exec with a list of arguments",
    "popen": "fork and exec with a list of arguments",
    "tmpnam": "memfd_create()",
    "mktemp": "mkostemp()",
    "tempnam": "memfd_create()",
    "gmtime": "clock_rfc3339()",
    "localtime": "clock_rfc3339()",
    "ctime": "clock_rfc3339()",
    "asctime": "clock_rfc3339()",
    "inet_aton": "ip_addr_parse(): one spelling",
    "inet_addr": "ip_addr_parse(): one spelling",
    "inet_ntoa": "ip_addr_text()",
    "gethostbyname": "the resolver: no lookup goes around it",
    "getaddrinfo": "the resolver: no lookup goes around it",
    "sleep": "an event to wait for",
    "usleep": "an event to wait for",
}
HEAP = {name: "base/mem.h" for name in (
    "malloc", "calloc", "realloc", "reallocarray", "free", "strdup",
    "strndup", "asprintf", "vasprintf", "aligned_alloc", "posix_memalign")}
ENVIRONMENT = {name: "the option table reads the environment"
               for name in ("getenv", "secure_getenv")}

CALL = re.compile(r"(?<![\w.>])(\w+)\s*\(")
# A statement that begins with the call drops its result.
UNCHECKED = re.compile(r"(?:[;{}:]|\)\s|\belse\b|\(void\))\s*(v?snprintf)\s*\(")


def scan(source, table, check, exempt):
    faults = []
    for found in CALL.finditer(source.code):
        name = found.group(1)
        if name in table and not exempt.has(check, source.path):
            faults.append("%s:%d: %s(): use %s" % (
                source.path, source.line_of(found.start(1)), name,
                table[name]))
    return faults


def unchecked(source):
    return ["%s:%d: the result of %s() says whether it fitted"
            % (source.path, source.line_of(found.start(1)), found.group(1))
            for found in UNCHECKED.finditer(source.code)]


def main():
    root = lint.root_dir()
    exempt = lint.Exemptions(root, ("heap", "environment", "calls"))
    calls, heap, environment, results = [], [], [], []
    for source in lint.sources(root):
        calls += scan(source, CALLS, "calls", exempt)
        if source.folder in lint.ROOMS:
            results += unchecked(source)
            heap += scan(source, HEAP, "heap", exempt)
            environment += scan(source, ENVIRONMENT, "environment", exempt)
    tap = lint.Tap()
    tap.check("no call that the tree does without", calls)
    tap.check("the heap has one door", heap)
    tap.check("the environment is read in few places", environment)
    tap.check("what snprintf() says is heard", results)
    tap.check("each exemption is needed", exempt.leftovers())
    tap.done()


main()
