# SPDX-License-Identifier: Apache-2.0
"""What the lints share: the tree's C files, a view without comments, TAP.

A lint is a program of its own that prints TAP and takes one option, --root
DIR, the tree to look at (by default $top_srcdir); selftest.py plants faults in
a tree of its own and expects each lint to find them.
"""

import os
import re
import sys

ROOMS = ("base", "rules", "audit", "resolver", "proxy", "netns-setup", "cli")
FOLDERS = ROOMS + ("tests", "bench")


class Source:
    """One C file: its text, and the same without comments and literals."""

    def __init__(self, root, path):
        self.path = path
        self.folder = path.split("/")[0]
        with open(os.path.join(root, path), encoding="utf-8",
                  errors="replace") as f:
            self.text = f.read()
        self.lines = self.text.split("\n")
        self.code, self.comments = split(self.text)
        self.code_lines = self.code.split("\n")

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1


def split(text):
    """Blank comments and literals with spaces, keeping every line and column.

    Return: the code, and the comments as (offset, text).
    """
    pattern = re.compile(
        r'(?P<comment>/\*.*?\*/|//[^\n]*)'
        r'|(?P<string>"(?:\\.|[^"\\\n])*")'
        r"|(?P<char>'(?:\\.|[^'\\\n])*')", re.S)
    comments = []

    def blank(match):
        found = match.group(0)
        if match.group("comment"):
            comments.append((match.start(), found))
            return re.sub(r"[^\n]", " ", found)
        return found[0] + " " * (len(found) - 2) + found[-1]

    return pattern.sub(blank, text), comments


def root_dir():
    if "--root" in sys.argv:
        return sys.argv[sys.argv.index("--root") + 1]
    return os.environ.get("top_srcdir", ".")


def sources(root, folders=FOLDERS):
    """Every C file below @folders, in a fixed order."""
    found = []
    for folder in folders:
        for where, dirs, names in os.walk(os.path.join(root, folder)):
            dirs[:] = sorted(d for d in dirs if not d.startswith("."))
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    path = os.path.join(where, name)
                    found.append(Source(root, os.path.relpath(path, root)))
    return found


class Exemptions:
    """tests/lint/exempt.txt: CHECK WHERE REASON; one never used is a fault."""

    def __init__(self, root, checks):
        self.known = {}
        self.faults = []
        self.used = set()
        name = os.path.join(root, "tests/lint/exempt.txt")
        if not os.path.exists(name):
            return
        with open(name, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                line = line.strip()
                if not line or line.startswith("#"):
                    continue
                words = line.split(None, 2)
                if len(words) < 3:
                    self.faults.append("tests/lint/exempt.txt:%d: give a "
                                       "check, a place and a reason" % number)
                elif words[0] in checks:
                    self.known[(words[0], words[1])] = number

    def has(self, check, where):
        if (check, where) in self.known:
            self.used.add((check, where))
            return True
        return False

    def leftovers(self):
        return self.faults + [
            "tests/lint/exempt.txt:%d: %s %s is not needed any more"
            % (number, key[0], key[1])
            for key, number in self.known.items() if key not in self.used]


class Tap:
    """Checks with their violations; exits non-zero when there is one."""

    def __init__(self):
        self.n = 0
        self.bad = 0

    def check(self, what, violations):
        self.n += 1
        self.bad += bool(violations)
        print("%sok %d - %s" % ("not " if violations else "", self.n, what))
        for violation in violations:
            print("# " + violation)
        if violations:
            print("# a good reason goes into tests/lint/exempt.txt, "
                  "where this check knows exemptions")

    def skip(self, what, why):
        self.n += 1
        print("ok %d - %s # SKIP %s" % (self.n, what, why))

    def done(self):
        print("1..%d" % self.n)
        sys.exit(1 if self.bad else 0)


# Words that stand before "(" without being a function's name.
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "do", "else",
            "defined", "__attribute__", "_Static_assert", "static_assert"}


class Function:
    """A definition in kernel style: braces alone in the first column."""

    def __init__(self, source, name, head, first, last):
        self.source = source
        self.name = name
        self.head = head		# from the return type to ")"
        self.first = first		# index of the line "{"
        self.last = last		# index of the line "}"
        self.length = last - first - 1
        self.is_static = bool(re.search(r"\bstatic\b", head))
        self.parameters = parameters(head, name)

    def where(self):
        return "%s:%s" % (self.source.path, self.name)

    def body(self):
        return self.source.code_lines[self.first:self.last + 1]


def parameters(head, name):
    """Names of the parameters in a function's declaration."""
    at = re.search(r"\b%s\s*\(" % re.escape(name), head)
    depth, start, parts = 0, at.end(), []
    for i in range(at.end() - 1, len(head)):
        c = head[i]
        if c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        if (c == "," and depth == 1) or depth == 0:
            parts.append(head[start:i])
            start = i + 1
        if depth == 0:
            break
    names = []
    for part in parts:
        part = part.strip()
        if part in ("", "void", "..."):
            continue
        pointer = re.search(r"\(\s*\*+\s*(\w+)[^)]*\)\s*\(", part)
        plain = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:\bUNUSED\s*)?$", part)
        found = pointer or plain
        names.append(found.group(1) if found else part)
    return names


def functions(source):
    found = []
    lines = source.code_lines
    for i, line in enumerate(lines):
        if line.rstrip() != "{":
            continue
        start = i
        while start > 0 and lines[start - 1].strip() and \
                not lines[start - 1].rstrip().endswith((";", "}")) and \
                not lines[start - 1].startswith("#"):
            start -= 1
        head = "\n".join(lines[start:i])
        name = re.search(r"\b(\w+)\s*\(", re.sub(
            r"\b(?:PRINTF|CLEANUP|__attribute__)\s*\([^)]*\)+", "", head))
        if not name or name.group(1) in KEYWORDS:
            continue
        end = i
        while end < len(lines) and lines[end].rstrip() != "}":
            end += 1
        found.append(Function(source, name.group(1), head, i, end))
    return found
