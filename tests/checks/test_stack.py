# SPDX-License-Identifier: MIT
"""What recording takes of a kernel's stacks, from the compiler's own figures: frames and who calls whom."""

import re
import subprocess

import pytest

import tree

RETURN_ADDRESS = 8
# What the glue saves before the slow half has a stack of its own: ten registers, the flags, the stub's
# and the hot text's own pushes (glue.S, hot.S), and the alignment.
GLUE = 10 * 8 + 8 + 3 * 8 + 2 * 8 + 16
# What a port's function may use (core/record/port.h).
PORT = 200


def limit(name):
    text = (tree.ROOT / "core" / "record" / "kernel.h").read_text()
    return int(re.search(rf"#define {name}\s+(\d+)", text)[1])


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """Of each function of the recorder: its frame in bytes, and what it calls."""
    scratch = tmp_path_factory.mktemp("stack")
    include = subprocess.run(["gcc", "-print-file-name=include"], check=True, capture_output=True,
                             text=True).stdout.strip()
    size, calls = {}, {}
    for source in sorted((tree.ROOT / "core" / "record").glob("*.c")):
        made = scratch / (source.stem + ".o")
        subprocess.run(["gcc", "-std=gnu11", "-O2", "-ffreestanding", "-nostdinc", "-idirafter",
                        include, "-mgeneral-regs-only", "-mno-red-zone", "-fvisibility=hidden",
                        "-fno-strict-aliasing", "-fno-stack-protector", "-fcallgraph-info=su",
                        f"-I{tree.ROOT}", f"-I{tree.ROOT / 'include'}", "-c", source, "-o", made],
                       check=True)
        graph = made.with_suffix(".ci").read_text()
        for title, label in re.findall(r'node: \{ title: "([^"]+)" label: "([^"]*)"', graph):
            if bytes_used := re.search(r"(\d+) bytes \((\w+)", label):
                assert bytes_used[2] == "static", f"{title}: its frame has no bound"
                size[title.split(":")[-1]] = int(bytes_used[1])
        for caller, callee in re.findall(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"',
                                         graph):
            calls.setdefault(caller.split(":")[-1], set()).add(callee.split(":")[-1])
    return size, calls


def deepest(frames, function, above=()):
    size, calls = frames
    assert function not in above, f"{function} calls itself"
    below = [deepest(frames, name, (*above, function)) for name in calls.get(function, ())]
    own = size.get(function, PORT if function.startswith("gt_port_") else 0)
    return own + RETURN_ADDRESS + max(below, default=0)


def test_the_slow_half_fits_its_own_stack(frames):
    most = max(deepest(frames, name) for name in ("gt_agent_entry", "gt_agent_exit"))
    assert 200 < most <= limit("GT_KERNEL_SLOW_STACK_BYTES")


def test_other_stacks_give_the_recorder_little(frames):
    assert GLUE <= limit("GT_KERNEL_STACK_USE")
    for name in ("gt_kernel_switch", "gt_kernel_enter", "gt_kernel_leave", "gt_kernel_enter_nmi",
                 "gt_kernel_pause", "gt_kernel_resume"):
        assert deepest(frames, name) <= limit("GT_KERNEL_STACK_USE"), name
    assert deepest(frames, "gt_kernel_mark") <= limit("GT_KERNEL_MARK_STACK_USE")
