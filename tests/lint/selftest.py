#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each lint finds the fault it is there for, and leaves a clean tree alone.

A small tree is made, which every lint must pass; then, one at a time, a fault
is planted in it and the lint that is to find it must say so.
"""

import os
import subprocess
import sys
import tempfile

import lint

HERE = os.path.dirname(os.path.abspath(__file__))
LINTS = ("banned", "headers", "layers", "names", "reasons", "sizes", "style")


def c_file(name, body):
    return ("/* SPDX-License-Identifier: Apache-2.0 */\n/*\n * %s - a file\n"
            " */\n%s" % (name, body))


def header(path, body):
    guard = path.upper().replace("/", "_").replace(".", "_")
    return c_file(os.path.basename(path),
                  "#ifndef %s\n#define %s\n\n%s\n#endif /* %s */\n"
                  % (guard, guard, body, guard))


CLEAN = {
    "base/a.h": header("base/a.h", """\
#include <stddef.h>

/**
 * a_sum() - The sum of @n numbers
 * @p:	the first
 */
int a_sum(const int *p, size_t n);
"""),
    "base/a.c": c_file("a.c", """\
#include "base/a.h"

/* Words in comments and strings are none: strcpy(a, b), "malloc(1)". */
int a_sum(const int *p, size_t n)
{
	const char *word = "sprintf(x) // not \\" a comment";
	int sum = word[0] == '"';

	for (size_t i = 0; i < n; i++)
		sum += p[i];
	return sum;
}
"""),
    "rules/rules.h": header("rules/rules.h", '#include "base/a.h"\n'),
    "rules/rules_own.h": header("rules/rules_own.h", "struct rules;\n"),
    "proxy/sniff.c": c_file("sniff.c", '#include "rules/rules.h"\n'),
    "tests/unit/a_test.c": c_file("a_test.c", '#include "rules/rules_own.h"\n'),
    "base/reason.c": c_file("reason.c", """\
const struct reason_info reasons[] = {
	[REASON_ONE] = { "one" },
	[REASON_TWO] = {
		"two" },
};
"""),
    "docs/reasons.md": "# Reasons\n\n### one\n\nText\n\n### `two`\n",
}


def function(body, head="void planted(void)"):
    return c_file("b.c", head + "\n{\n" + body + "}\n")


def many_lines(n):
    return "".join("\tx(%d);\n" % i for i in range(n))


def many_functions(static, n_lines):
    return c_file("b.c", "".join(
        "%svoid f%d(void)\n{\n%s}\n\n" % (static, i, many_lines(n_lines))
        for i in range(25)))


# (lint, what is planted, where, the file, what must be said of it)
FAULTS = (
    ("layers", "a look upwards", "base/b.c",
     c_file("b.c", '#include "rules/rules.h"\n'), "base/ must not see rules/"),
    ("layers", "a private header", "proxy/b.c",
     c_file("b.c", '#include "rules/rules_own.h"\n'), "is private to rules/"),
    ("layers", "an include beside the root", "base/b.c",
     c_file("b.c", '#include "a.h"\n'), "include from the root"),
    ("layers", "the launcher in the daemon", "proxy/b.c",
     c_file("b.c", '#include "netns-setup/launch.h"\n'),
     "proxy/ must not see netns-setup/"),
    ("layers", "a library away from home", "proxy/b.c",
     c_file("b.c", "#include <ini.h>\n"), "has its home in base/ini.c"),
    ("layers", "a GPL library in the daemon", "proxy/b.c",
     c_file("b.c", "# include <libnftnl/rule.h>\n"), "has its home in"),
    ("layers", "an event loop in a pure file", "proxy/http1_b.c",
     c_file("http1_b.c", "#include <event2/event.h>\n"), "no event loop"),
    ("banned", "strcpy", "base/b.c", function("\tstrcpy(a, b);\n"),
     "base/b.c:7: strcpy()"),
    ("banned", "system behind a string", "cli/b.c",
     function('\tf("/*"); system("x"); /* */\n'), "cli/b.c:7: system()"),
    ("banned", "a lookup around the resolver", "proxy/b.c",
     function("\tgetaddrinfo(a, b, c, d);\n"), "getaddrinfo()"),
    ("banned", "malloc outside its door", "rules/b.c",
     function("\tp = malloc (3);\n"), "malloc(): use base/mem.h"),
    ("banned", "the environment", "proxy/b.c",
     function('\tp = getenv("X");\n'), "getenv()"),
    ("banned", "an unheard snprintf", "proxy/b.c",
     function("\tif (x)\n\t\tsnprintf(a, 1, b);\n"), "whether it fitted"),
    ("banned", "a snprintf cast away", "proxy/b.c",
     function("\t(void)snprintf(a, 1, b);\n"), "whether it fitted"),
    ("banned", "a sleep in a test", "tests/unit/b.c",
     function("\tusleep(1);\n"), "an event to wait for"),
    ("banned", "an exemption without need", "tests/lint/exempt.txt",
     "heap base/a.c once there was a reason\n", "not needed any more"),
    ("banned", "an exemption without reason", "tests/lint/exempt.txt",
     "heap base/a.c\n", "a reason"),
    ("headers", "a header that needs another", "base/b.h",
     header("base/b.h", "size_t b(void);\n"), "b.h"),
    ("headers", "a header without guard", "base/b.h",
     c_file("b.h", "struct b;\n"), "the guard is BASE_B_H"),
    ("headers", "a header with another's guard", "base/b.h",
     header("base/a.h", "struct b;\n"), "the guard is BASE_B_H"),
    ("names", "a dead name in a comment", "base/b.c",
     function("\t/* uses @gone */\n\tx();\n"), "@gone names nothing"),
    ("names", "a parameter that is none", "base/b.h",
     header("base/b.h", "/**\n * b() - It\n * @len:\tlength\n */\n"
            "int b(int n);\n\nextern int len;\n"), "no parameter @len"),
    ("names", "a comment above another function", "base/b.h",
     header("base/b.h", "/**\n * b() - It\n */\nint c(int n);\n"),
     "does not stand behind"),
    ("reasons", "a word without heading", "docs/reasons.md",
     "### one\n", "no heading '### two'"),
    ("reasons", "a heading without word", "docs/reasons.md",
     "### one\n### two\n### three\n", "'### three' is no reason"),
    ("reasons", "a heading twice", "docs/reasons.md",
     "### one\n### two\n### one\n", "stands twice"),
    ("sizes", "a long function", "base/b.c", function(many_lines(101)),
     "101 lines, at most 100"),
    ("sizes", "a long file", "base/b.c", c_file("b.c", "\n" * 1000),
     "at most 1000"),
    ("sizes", "a file that wants a reason", "base/b.c",
     c_file("b.c", "\n" * 700), "needs a reason"),
    ("sizes", "deep nesting", "base/b.c",
     function("\tif (a) {\n\twhile (b) {\n\tfor (;;) {\n\tdo {\n\tx();\n"
              "\t} while (c);\n\t}\n\t}\n\t}\n"), "4 levels, at most 3"),
    ("sizes", "many parameters", "base/b.c",
     function("", "int b(int a, int (*c)(int, int), int d[2], int e, int f,"
              "\n      int g)"), "6 parameters, at most 5"),
    ("sizes", "functions of which few are static", "base/b.c",
     many_functions("", 3), "are static"),
    ("sizes", "functions that are long on the whole", "base/b.c",
     many_functions("static ", 20), "the median function has 20"),
    ("style", "no licence", "base/b.c", "/*\n * b.c - a file\n */\n",
     "SPDX line comes first"),
    ("style", "another file's name", "base/b.c", c_file("c.c", ""),
     "say what b.c is for"),
    ("style", "a long line", "base/b.c", function("\t" + "x" * 100 + ";\n"),
     "more than 100 columns"),
    ("style", "a blank at the end", "base/b.c", function("\tx(); \n"),
     "blanks at the end"),
    ("style", "a letter beyond ASCII", "base/b.c",
     function("\t/* \u00e9 */\n"), "beyond ASCII"),
    ("style", "indentation by blanks", "base/b.c",
     function("        x();\n"), "indent with tabs"),
    ("style", "a conditional in a body", "base/b.c",
     function("\tx();\n#ifdef Y\n\ty();\n#endif\n"), "no #if inside"),
    ("style", "a typedef'd struct", "base/b.c",
     c_file("b.c", "typedef struct { int a; } a_t;\n"), "keeps its name"),
)


def run(name, root):
    """The exit code of a lint over the tree at @root, and what it said."""
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1",
                       CPPFLAGS="-D_GNU_SOURCE=")
    result = subprocess.run(
        [sys.executable, os.path.join(HERE, name + ".py"), "--root", root],
        capture_output=True, text=True, env=environment, check=False)
    return result.returncode, result.stdout + result.stderr


def plant(root, path, text):
    name = os.path.join(root, path)
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "w", encoding="utf-8") as f:
        f.write(text)


def said(output):
    return ["  " + line for line in output.split("\n") if line]


def main():
    tap = lint.Tap()
    for name in LINTS:
        with tempfile.TemporaryDirectory() as root:
            for path, text in CLEAN.items():
                plant(root, path, text)
            code, output = run(name, root)
        tap.check("%s leaves a clean tree alone" % name,
                  said(output) if code else [])
    for name, what, path, text, expected in FAULTS:
        with tempfile.TemporaryDirectory() as root:
            for clean_path, clean in CLEAN.items():
                plant(root, clean_path, clean)
            plant(root, path, text)
            code, output = run(name, root)
        found = code == 1 and expected in output
        tap.check("%s finds %s" % (name, what),
                  [] if found else ["exit %d" % code] + said(output))
    tap.done()


main()
