# SPDX-License-Identifier: MIT
"""Who walks the stack of a traced program sees the program's own frames."""

import re

import pytest

import behaviour

GDB_SCRIPT = behaviour.ROOT / "share" / "gdb" / "graftrace-gdb.py"
FRAMES = ["by_debugger", "innermost", "nested", "nested", "nested", "nested", "main"]


@pytest.mark.parametrize("kind", ["backtrace", "unwind"])
@pytest.mark.parametrize("way", ["patchable", "patchable-clang", "pg", "no-pie", "unprepared"])
def test_a_backtrace_goes_on_to_the_start(way, kind, tmp_path):
    program = behaviour.program(way, "walk.c", flags=["-rdynamic"])
    judged = behaviour.judge([program, kind], tmp_path, way=way, same_output=kind == "backtrace",
                             same_counts=False)
    assert judged.after.out == judged.before.out
    assert b"_start" in judged.after.out


@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_gdb_shows_the_frames_of_a_traced_program(way, tmp_path):
    program = behaviour.program(way, "walk.c", flags=["-g"])
    gdb = ["gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-x", GDB_SCRIPT,
           "-ex", "bt", "-p"]
    # gdb itself stays untraced.
    judged = behaviour.judge([program, "debugger", *gdb], tmp_path, "--no-fork", way=way,
                             same_output=False)
    text = judged.after.out.decode()
    assert "debugger ended with 0" in text
    for out in (judged.before.out.decode(), text):
        frames = re.findall(r"^#\d+ .*?(\w+) \(.*\) at ", out, re.M)
        ours = [name for name in frames if name in set(FRAMES)]
        assert ours == FRAMES, out
        assert re.search(r"innermost \(a=(a@entry=)?42, b=.*\"text\"\)", out), out
