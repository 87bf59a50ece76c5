#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How large functions and files are, how deep, how many parameters."""

import re

import lint

FUNCTION_MAX = 100
FUNCTION_P95 = 60
FUNCTION_MEDIAN = 15
FILE_MAX = 1000
TEST_FILE_MAX = 1500	# case after case: read by searching
FILE_TYPICAL = 700
NESTING_MAX = 3
PARAMETERS_MAX = 5
STATIC_MIN = 60		# per cent
FEW = 20		# functions below which shares say nothing

BLOCK = re.compile(r"(?:\)|\belse|\bdo)\s*\{\s*$")


def nesting(function):
    """Blocks in blocks; braces of initialisers are none."""
    deepest, stack = 0, []
    for line in function.body()[1:-1]:
        for at, c in enumerate(line):
            if c == "{":
                stack.append(bool(BLOCK.search(line[:at + 1])))
                deepest = max(deepest, sum(stack))
            elif c == "}" and stack:
                stack.pop()
    return deepest


def files(tree, exempt):
    faults = []
    for source in tree:
        n = len(source.lines) - 1
        most = TEST_FILE_MAX if source.folder == "tests" else FILE_MAX
        if n > most:
            faults.append("%s: %d lines, at most %d" % (source.path, n, most))
        elif n > FILE_TYPICAL and source.folder != "tests" and \
                not exempt.has("file", source.path):
            faults.append("%s: %d lines, more than %d needs a reason"
                          % (source.path, n, FILE_TYPICAL))
    return faults


def over(known, check, limit, measure, what, exempt):
    return ["%s: %d %s, at most %d" % (f.where(), measure(f), what, limit)
            for f in known
            if measure(f) > limit and not exempt.has(check, f.where())]


def shares(known):
    lengths = sorted(f.length for f in known)
    if len(lengths) < FEW:
        return []
    median = lengths[len(lengths) // 2]
    p95 = lengths[len(lengths) * 95 // 100]
    static = 100 * sum(f.is_static for f in known) // len(known)
    print("# %d functions, median %d lines, p95 %d, %d%% static"
          % (len(lengths), median, p95, static))
    faults = []
    if median > FUNCTION_MEDIAN:
        faults.append("the median function has %d lines" % median)
    if p95 > FUNCTION_P95:
        faults.append("a function in twenty has over %d lines" % p95)
    if static < STATIC_MIN:
        faults.append("%d%% of the functions are static" % static)
    return faults


def main():
    root = lint.root_dir()
    exempt = lint.Exemptions(root, ("file", "nesting", "parameters"))
    tree = lint.sources(root)
    every = [f for s in tree for f in lint.functions(s)]
    ours = [f for f in every if f.source.folder in lint.ROOMS]
    tap = lint.Tap()
    tap.check("files are of a size to read", files(tree, exempt))
    tap.check("no function has over %d lines" % FUNCTION_MAX,
              over(every, "none", FUNCTION_MAX, lambda f: f.length, "lines",
                   exempt))
    tap.check("blocks are nested at most %d deep" % NESTING_MAX,
              over(ours, "nesting", NESTING_MAX, nesting, "levels", exempt))
    tap.check("functions take at most %d parameters" % PARAMETERS_MAX,
              over(ours, "parameters", PARAMETERS_MAX,
                   lambda f: len(f.parameters), "parameters", exempt))
    tap.check("most functions are short and static", shares(
        [f for f in ours if f.source.path.endswith(".c")]))
    tap.check("each exemption is needed", exempt.leftovers())
    tap.done()


main()
