#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/reasons.md has a heading for each reason of the table, and no other."""

import os
import re

import lint

TABLE = "base/reason.c"
MANUAL = "docs/reasons.md"


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8") as f:
        return f.read()


def main():
    root = lint.root_dir()
    tap = lint.Tap()
    what = "the manual of reasons has the words of the table"
    if not os.path.exists(os.path.join(root, MANUAL)):
        tap.skip(what, MANUAL + " is not written yet")
        tap.done()
    table = re.findall(r'\[REASON_\w+\]\s*=\s*\{\s*"(\w+)"',
                       read(root, TABLE))
    manual = re.findall(r"^### `?(\w+)`?\s*$", read(root, MANUAL), re.M)
    faults = ["%s: no words found" % TABLE] if not table else []
    faults += ["%s: no heading '### %s'" % (MANUAL, word)
               for word in table if word not in manual]
    faults += ["%s: '### %s' is no reason of %s" % (MANUAL, word, TABLE)
               for word in manual if word not in table]
    faults += ["%s: '### %s' stands twice" % (MANUAL, word)
               for word in sorted(set(manual)) if manual.count(word) > 1]
    tap.check(what, faults)
    tap.done()


main()
