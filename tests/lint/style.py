#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The look of a C file: head, columns, tabs, no typedef of a struct."""

import os
import re

import lint

COLUMNS = 80		# to aim at
COLUMNS_MAX = 100	# where a break would read worse, rows of tables above all


def head(source):
    name = os.path.basename(source.path)
    lines = source.lines
    if lines[0] != "/* SPDX-License-Identifier: Apache-2.0 */":
        return ["%s:1: the SPDX line comes first" % source.path]
    if len(lines) < 3 or lines[1] != "/*" or \
            not lines[2].startswith(" * %s - " % name):
        return ["%s:2: say what %s is for: ' * %s - ...'"
                % (source.path, name, name)]
    return []


def each_line(source, test, message):
    return ["%s:%d: %s" % (source.path, i, message)
            for i, line in enumerate(source.lines, 1) if test(line)]


def columns(source):
    """A message is one string, however long: it can be searched for."""
    return each_line(
        source, lambda line: len(re.sub(r'"[^"]*"', '""', line)
                                 .expandtabs(8)) > COLUMNS_MAX,
        "more than %d columns" % COLUMNS_MAX)


def conditionals(source):
    """#if inside a function: two functions in one."""
    return ["%s:%d: no #if inside a function"
            % (source.path, f.first + i + 1)
            for f in lint.functions(source)
            for i, line in enumerate(f.body())
            if re.match(r"\s*#\s*(if|else|elif)", line)]


def typedefs(source):
    return ["%s:%d: a struct keeps its name"
            % (source.path, source.line_of(found.start()))
            for found in re.finditer(r"\btypedef\s+(struct|union|enum)\b"
                                     r"[^;({]*[;{]", source.code)]


def main():
    tree = lint.sources(lint.root_dir())
    ours = [s for s in tree if s.folder in lint.ROOMS]
    tap = lint.Tap()

    def check(what, where, rule):
        tap.check(what, [fault for s in where for fault in rule(s)])

    check("each file begins with its licence and purpose", tree, head)
    long = sum(len(line.expandtabs(8)) > COLUMNS
               for s in tree for line in s.lines)
    print("# %d lines have more than %d columns" % (long, COLUMNS))
    check("lines have at most %d columns" % COLUMNS_MAX, tree, columns)
    check("no line ends with blanks", tree, lambda s: each_line(
        s, lambda line: line != line.rstrip(), "blanks at the end"))
    check("files are ASCII", tree, lambda s: each_line(
        s, lambda line: not line.isascii(), "a character beyond ASCII"))
    check("indentation is by tabs", ours, lambda s: each_line(
        s, lambda line: line.startswith("        "), "indent with tabs"))
    check("functions are not cut by the preprocessor", ours, conditionals)
    check("no struct, union or enum is typedef'd", tree, typedefs)
    tap.done()


main()
