#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each header stands alone, may be included twice, and is guarded by name."""

import os
import re
import shlex
import subprocess
import tempfile

import lint


def guard(source):
    name = re.sub(r"[^A-Z0-9]", "_", source.path.upper())
    wanted = ["#ifndef " + name, "#define " + name]
    lines = [line for line in source.code_lines if line.strip()]
    if lines[:2] == wanted and lines[-1].rstrip() == "#endif":
        return []
    return ["%s: the guard is %s" % (source.path, name)]


def compile_alone(root, headers):
    """What the compiler says of files that are one include, twice."""
    command = shlex.split(os.environ.get("CC", "cc"))
    command += shlex.split(os.environ.get("CPPFLAGS", "-D_GNU_SOURCE="))
    command += ["-I" + root, "-std=gnu11", "-Wall", "-Werror",
                "-fsyntax-only"]
    with tempfile.TemporaryDirectory() as where:
        for i, source in enumerate(headers):
            name = os.path.join(where, "%d.c" % i)
            with open(name, "w", encoding="utf-8") as f:
                f.write('#include "%s"\n' % source.path * 2)
                f.write("extern int not_an_empty_file;\n")
            command.append(name)
        result = subprocess.run(command, capture_output=True, text=True,
                                check=False)
    faults = [line for line in result.stderr.split("\n")
              if " error: " in line]
    if result.returncode and not faults:
        faults = result.stderr.split("\n")[-5:]
    return faults


def main():
    root = lint.root_dir()
    headers = [s for s in lint.sources(root) if s.path.endswith(".h")]
    tap = lint.Tap()
    tap.check("each header has the guard of its name",
              [fault for s in headers for fault in guard(s)])
    tap.check("each header compiles alone and twice",
              compile_alone(root, headers))
    tap.done()


main()
