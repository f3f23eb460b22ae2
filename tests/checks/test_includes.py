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
    "core/view": [],
    "arch": ["core/record"],
    "port/program": ["core/record"],
    "port/unikernel": ["core/record", "core/view"],
    "port/serial": ["core/record", "core/view"],
    "port/fake": ["core/record", "core/view"],
    "port/host": ["core/view"],
    "attach": ["core/view", "port/host"],
    "read": ["core/view", "port/host"],
    "export": ["read", "core/view", "port/host"],
    "serve": ["core/view", "port/host", "read", "export", "attach"],
    "cli": ["core/record", "core/view", "arch", "port/host", "attach", "read", "export", "serve"],
    "tests": None,  # None: anything
    "bench": None,
    "examples": [],
}

# The headers of a freestanding C implementation, and the compilers' own for the machine.
FREESTANDING = {"float.h", "iso646.h", "limits.h", "stdalign.h", "stdarg.h", "stdatomic.h",
                "stdbool.h", "stddef.h", "stdint.h", "stdnoreturn.h", "immintrin.h",
                "x86intrin.h", "cpuid.h"}
NO_LIBC = ("include/graftrace", "core/record", "core/view")


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
    assert {"include/graftrace", "core/record", "core/view", "cli"} <= parts


def test_forbidden_includes_are_caught():
    for path, line in [
        ("core/record/a.c", '#include "core/view/text.h"'),
        ("core/view/a.c", '#include "core/record/stream.h"'),
        ("core/record/a.c", "#include <string.h>"),
        ("core/view/deeper/a.c", "  #  include <stdio.h>"),
        ("include/graftrace/a.h", '#include "core/record/stream.h"'),
        ("arch/x86_64/a.S", '#include "port/program/agent.h"'),
        ("port/program/a.c", '#include "attach/session.h"'),
        ("attach/a.c", '#include "core/record/stream.h"'),
        ("attach/a.c", '#include "read/file.h"'),
        ("read/a.c", '#include "attach/session.h"'),
        ("export/a.c", '#include "serve/http.h"'),
        ("serve/a.c", '#include "cli/main.h"'),
        ("cli/a.c", '#include "port/program/agent.h"'),
        ("cli/a.c", '#include "main.h"'),
        ("cli/a.c", '#include "../read/file.h"'),
        ("cli/a.c", '#include "graftrace/record.h"'),
        ("utils/a.c", "int x;"),
    ]:
        assert violations(path, line + "\n"), f"{path} with {line} passed"


def test_allowed_includes_pass():
    for path, line in [
        ("core/record/a.c", '#include "core/record/stream.h"'),
        ("core/record/a.c", "#include <graftrace/record.h>"),
        ("core/view/a.c", "#include <stdint.h>"),
        ("arch/x86_64/a.c", '#include "core/record/arch.h"'),
        ("port/program/a.c", "#include <sys/mman.h>"),
        ("read/a.c", '#include "core/view/target.h"'),
        ("export/a.c", '#include "read/file.h"'),
        ("serve/a.c", '#include "attach/session.h"'),
        ("cli/a.c", '#include "serve/http.h"'),
        ("tests/unit/a.c", '#include "core/record/stream.h"'),
    ]:
        assert not violations(path, line + "\n")
