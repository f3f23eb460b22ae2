# SPDX-License-Identifier: MIT
"""doc/porting.md's tables of what a kernel supplies: each function of the headers, and examples that exist."""

import re
import subprocess

import pytest

import tree

PAGE = (tree.ROOT / "doc" / "porting.md").read_text()
RECORD = tree.ROOT / "core" / "record"


def declared(header):
    """Names of the functions that a header declares or has in line."""
    text = re.sub(r"/\*.*?\*/", "", (RECORD / header).read_text(), flags=re.S)
    return set(re.findall(r"^(?:static inline )?[a-z_][\w ]*[ *](gt_\w+)\(", text, re.M))


def rows():
    """Function -> the other cells of its row."""
    found = {}
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if name := re.fullmatch(r"`(gt_(?:port|arch)_\w+)`", cells[0]):
            assert name[1] not in found, f"{name[1]} has two rows"
            found[name[1]] = cells[1:]
    return found


def defines(path, name):
    """Whether a source has the function, by how its definition begins."""
    text = (tree.ROOT / path).read_text()
    if path.endswith(".S"):
        return re.search(rf"^{name}:", text, re.M) is not None
    return re.search(rf"^[a-z][^;=\n]*\b{name}\([^;]*?\)\n\{{", text, re.M) is not None


@pytest.mark.parametrize("header", ["port.h", "arch.h"])
def test_each_function_of_the_header_is_in_the_table(header):
    names = declared(header)
    assert len(names) > 10
    of_header = {name for name in rows() if name.startswith(f"gt_{header[:-2]}_")}
    assert of_header == names


def test_each_row_says_when_and_names_an_example_that_exists():
    for name, cells in rows().items():
        assert all(cells), f"{name} has an empty cell"
        path, function = re.fullmatch(r"`([\w/.]+):(\w+)`", cells[-1]).groups()
        assert defines(path, function), f"{path} has no {function}"


def test_each_function_of_a_port_has_an_example_in_the_header():
    text = (RECORD / "port.h").read_text()
    for comment, below in re.findall(r"/\*((?:(?!\*/).)*)\*/\n((?:\w[^\n]*;\n)+)", text, re.S):
        if "gt_port_" not in below or "gt_port_arena" in below:
            continue
        named = re.search(r"Example:\s+(?:\*\s+)?(\w+)\s+(?:\*\s+)?in\s+(?:\*\s+)?([\w/.]*\w)", comment)
        assert named, f"no example: {below}"
        assert defines(named[2], named[1]), f"{named[2]} has no {named[1]}"


def test_a_function_that_is_gone_is_caught():
    assert defines("port/serial/trace.c", "gt_port_peek")
    assert not defines("port/serial/trace.c", "gt_port_peek_twice")
    assert not defines("port/serial/trace.c", "gt_kernel_switch")  # called there, defined elsewhere


# What is needed behind the place where interrupts are switched off stays where it is.
LOCK = """
#include "core/record/latency.h"

uint64_t take(uint64_t *word, uint64_t a, uint64_t b)
{
	uint64_t c = word[1], d = word[2];

	GT_LATENCY_IRQS_OFF(a);
	*word = c;
	return a + b + d;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_place_where_interrupts_are_switched_takes_no_register_of_its_function(compiler, tmp_path):
    (tmp_path / "lock.c").write_text(LOCK)
    subprocess.run([compiler, "-std=gnu11", "-O2", "-ffreestanding", "-mno-red-zone", "-mgeneral-regs-only", "-DGT_KERNEL",
                    "-fno-omit-frame-pointer", "-I", tree.ROOT, "-I", tree.ROOT / "include", "-Wall", "-Wextra", "-Werror",
                    "-c", "lock.c"], cwd=tmp_path, check=True)
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "lock.o"], cwd=tmp_path, check=True, text=True,
                             capture_output=True).stdout
    assert set(re.findall(r"push\s+(%\w+)", listing)) <= {"%rbp"}, listing
