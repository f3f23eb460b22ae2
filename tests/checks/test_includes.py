# SPDX-License-Identifier: MIT
"""No include runs against the table of directions (doc/design/parts.md says it in words)."""

import re

import tree

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?[ \t]*([<"])([^>"\n]+)[>"]', re.M)

# Part -> what its files may include besides their own part and include/graftrace/. A file
# belongs to the part with the longest name that its path begins with.
MAY_KNOW = {
    "include/graftrace": [],
    "core/record": [],
    "core/trace": [],
    "core/text": ["core/trace"],
    "core/control": ["core/trace", "core/text"],
    "core/kernel": ["core/trace", "core/text", "core/control"],
    "core/http": ["core/trace", "core/control"],
    "arch": ["core/record", "arch/x86_64/code"],
    "arch/x86_64/code": [],
    "port/program": ["core/record"],
    "port/unikernel": ["core/record", "core/control", "core/kernel", "core/http"],
    "port/serial": ["core/record", "core/kernel", "core/http"],
    "port/fake": ["core/record"],
    "port/host": ["core/trace"],
    "attach/object": ["core/trace"],
    "attach/plan": ["attach/object", "core/trace", "arch/x86_64/code"],
    "attach/process": ["attach/object", "core/trace", "port/host"],
    "attach/ring": ["attach/process", "core/trace", "port/host"],
    "attach/agent": ["attach/object", "attach/plan", "attach/process", "attach/ring", "core/trace",
                     "port/host"],
    "attach/session": ["attach/object", "attach/plan", "attach/process", "attach/ring",
                       "attach/agent", "core/trace", "port/host"],
    "read": ["attach/object", "core/trace", "port/host"],
    "export": ["read", "core/trace", "port/host"],
    "linux": ["core/trace", "port/host", "read"],
    "export/page": ["export", "read", "core/trace", "port/host"],
    "serve": ["core/trace", "core/text", "core/control", "core/http", "port/host", "read", "export",
              "export/page", "attach/process"],
    "serve/store": ["core/trace", "core/text", "core/control", "port/host"],
    "serve/live": ["serve", "serve/store", "core/trace", "core/text", "core/control", "port/host",
                   "read", "export", "attach/process", "attach/session"],
    "cli": ["core/trace", "core/text", "core/control", "port/host", "attach/object", "attach/plan",
            "attach/process", "attach/ring", "attach/agent", "attach/session", "read", "export",
            "export/page", "serve", "serve/store", "serve/live", "linux"],
    "tests": None,  # None: anything
    "bench": None,
    "examples": [],
}

# What works on operations that it is given, and is bound to nothing when it is linked.
VIEWER = ("core/trace", "core/text", "core/control", "core/kernel", "core/http")

# Parts that others copy to where they like: their own headers are written by name alone.
COPIED = ("port/serial",)

# The headers of a freestanding C implementation, and the compilers' own for the machine.
FREESTANDING = {"float.h", "iso646.h", "limits.h", "stdalign.h", "stdarg.h", "stdatomic.h",
                "stdbool.h", "stddef.h", "stdint.h", "stdnoreturn.h", "immintrin.h",
                "x86intrin.h", "cpuid.h"}
NO_LIBC = ("include/graftrace", "core/record") + VIEWER


def part_of(path):
    """The part that a path (from the root, with slashes) belongs to, or None."""
    parts = [part for part in MAY_KNOW if path.startswith(part + "/")]
    return max(parts, key=len, default=None)


def violations(path, source):
    """Why the includes of a file break the table: a list of sentences."""
    part = part_of(path)
    if part is None:
        return [f"{path}: in no part that the table knows"]
    found = []
    for kind, name in INCLUDE.findall(source):
        line = f"{path}: includes {name}: "
        if kind == "<" and not name.startswith("graftrace/"):
            if part in NO_LIBC and name not in FREESTANDING:
                found.append(line + f"{part} knows only the compiler's own headers")
            continue
        if kind == '"' and name.startswith(("graftrace/", "include/")):
            found.append(line + "installed headers are written <graftrace/…>")
            continue
        if part in COPIED and kind == '"' and (tree.ROOT / part / name).is_file():
            continue
        target = part_of("include/" + name if kind == "<" else name)
        if target is None or ".." in name:
            found.append(line + "not written from the root")
        elif (target not in (part, "include/graftrace") and MAY_KNOW[part] is not None
              and target not in MAY_KNOW[part]):
            found.append(line + f"{part} may not know {target}")
    return found


def sources():
    return tree.files(".c", ".h", ".S", ".cc")


def test_every_include_follows_the_table_of_directions():
    found = [line for path in sources() for line in violations(path.as_posix(), tree.text(path))]
    assert not found, "\n" + "\n".join(found)


def test_the_check_reads_files_of_every_layer():
    parts = {part_of(path.as_posix()) for path in sources()}
    assert set(MAY_KNOW) <= parts


def test_forbidden_includes_are_caught():
    for path, line in [
        ("core/record/a.c", '#include "core/text/text.h"'),
        ("core/trace/a.c", '#include "core/record/stream.h"'),
        ("core/trace/a.c", '#include "core/text/text.h"'),
        ("core/text/a.c", '#include "core/control/control.h"'),
        ("core/record/a.c", "#include <string.h>"),
        ("core/trace/deeper/a.c", "  #  include <stdio.h>"),
        ("include/graftrace/a.h", '#include "core/record/stream.h"'),
        ("arch/x86_64/a.S", '#include "port/program/agent.h"'),
        ("port/program/a.c", '#include "attach/session/session.h"'),
        ("attach/agent/a.c", '#include "core/record/stream.h"'),
        ("attach/agent/a.c", '#include "attach/session/session.h"'),
        ("attach/plan/a.c", '#include "attach/process/process.h"'),
        ("attach/ring/a.c", '#include "read/file.h"'),
        ("read/a.c", '#include "attach/session/session.h"'),
        ("export/a.c", '#include "serve/http.h"'),
        ("serve/a.c", '#include "cli/main.h"'),
        ("cli/a.c", '#include "port/program/agent.h"'),
        ("cli/a.c", '#include "main.h"'),
        ("cli/a.c", '#include "kernel.h"'),
        ("port/serial/a.c", '#include "nowhere.h"'),
        ("cli/a.c", '#include "../read/file.h"'),
        ("cli/a.c", '#include "graftrace/record.h"'),
        ("utils/a.c", "int x;"),
    ]:
        assert violations(path, line + "\n"), f"{path} with {line} passed"


def test_allowed_includes_pass():
    for path, line in [
        ("core/record/a.c", '#include "core/record/stream.h"'),
        ("core/record/a.c", "#include <graftrace/record.h>"),
        ("core/trace/a.c", "#include <stdint.h>"),
        ("arch/x86_64/a.c", '#include "core/record/arch.h"'),
        ("port/program/a.c", "#include <sys/mman.h>"),
        ("read/a.c", '#include "core/trace/target.h"'),
        ("export/a.c", '#include "read/file.h"'),
        ("serve/live/a.c", '#include "attach/session/session.h"'),
        ("cli/a.c", '#include "serve/http.h"'),
        ("tests/unit/a.c", '#include "core/record/stream.h"'),
        ("port/serial/a.c", '#include "kernel.h"'),
    ]:
        assert not violations(path, line + "\n")
