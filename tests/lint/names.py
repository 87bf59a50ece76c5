#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Comments name what is there: @name in them, and the function they head."""

import os
import re

import lint

# "@bytes_*" stands for every name that begins so.
NAME = re.compile(r"(?<![\w'\"`@])@([A-Za-z_]\w*)(\*?)")
DOC = re.compile(r"/\*\*\s*\n \* (\w+)\(\) - ")
# A type that the function needs may be announced between the two.
FORWARD = re.compile(r"\A(\s*struct \w+;)+")
DESCRIBED = re.compile(r"^ \* @(\w+):", re.M)


def words(code):
    return set(re.findall(r"[A-Za-z_]\w*", code))


def partner(source, by_path):
    stem, suffix = os.path.splitext(source.path)
    return by_path.get(stem + (".h" if suffix == ".c" else ".c"))


def is_known(name, star, known):
    return name in known or \
        (star and any(word.startswith(name) for word in known))


def dead(source, by_path):
    other = partner(source, by_path)
    known = words(source.code) | (words(other.code) if other else set())
    return ["%s:%d: @%s names nothing" % (
                source.path, source.line_of(at + found.start()),
                found.group(1))
            for at, comment in source.comments
            for found in NAME.finditer(comment)
            if not is_known(found.group(1), found.group(2), known)]


def headed(source):
    """Function comments that are not about the function behind them."""
    faults = []
    for at, comment in source.comments:
        doc = DOC.match(comment)
        if not doc:
            continue
        where = "%s:%d: " % (source.path, source.line_of(at))
        behind = FORWARD.sub("", source.code[at + len(comment):])
        end = re.search(r"[;{]", behind)
        head = behind[:end.start()] if end else ""
        name = doc.group(1)
        if not re.search(r"\b%s\s*\(" % name, head):
            faults.append(where + "%s() does not stand behind its comment"
                          % name)
            continue
        known = lint.parameters(head, name)
        faults += [where + "%s() has no parameter @%s" % (name, described)
                   for described in DESCRIBED.findall(comment)
                   if described not in known]
    return faults


def main():
    tree = lint.sources(lint.root_dir())
    by_path = {s.path: s for s in tree}
    tap = lint.Tap()
    tap.check("each @name in a comment is a name in the code",
              [f for s in tree for f in dead(s, by_path)])
    tap.check("function comments describe the function behind them",
              [f for s in tree for f in headed(s)])
    tap.done()


main()
