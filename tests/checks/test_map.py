# SPDX-License-Identifier: MIT
"""doc/design/map.md and the tree name the same files."""

import re

import tree

PAGE = "doc/design/map.md"
# Rooms of which the page names each source; kernels that embed the core describe themselves.
MAPPED = ("arch/", "core/", "port/program/", "attach/", "read/", "export/", "serve/", "linux/", "cli/")


def listed(page):
    """Room -> names of files that the page's last part lists in it."""
    found, room = {}, None
    for line in page.split("## The rooms")[1].splitlines():
        if heading := re.match(r"### `([^`]+)/`$", line):
            room = heading[1]
        elif row := re.match(r"- `([^`]+)`: \S", line):
            found.setdefault(room, set()).add(row[1])
    return found


def test_every_file_that_the_map_names_exists():
    page = tree.text(PAGE)
    for room, names in listed(page).items():
        missing = [name for name in names if not (tree.ROOT / room / name).is_file()]
        assert not missing, f"{PAGE} names files that {room}/ does not have: {missing}"
    for path in re.findall(r"`((?:[a-z0-9_]+/)+[a-z0-9_.]+\.(?:[chSy]|md|py))`", page):
        assert (tree.ROOT / path).is_file(), f"{PAGE} names {path}, which does not exist"


def test_every_source_file_stands_on_the_map():
    rooms = listed(tree.text(PAGE))
    missing = [str(path) for path in tree.files(".c", ".S")
               if str(path).startswith(MAPPED) and path.name not in rooms.get(str(path.parent), ())]
    assert not missing, f"{PAGE} wants a line for each of: {' '.join(missing)}"
