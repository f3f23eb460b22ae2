# SPDX-License-Identifier: MIT
"""Coroutines: each is a context with calls of its own."""

import pytest

import behaviour


@pytest.mark.parametrize("kind", ["interleaved", "abandoned", "waiting", "moved", "many"])
@pytest.mark.parametrize("by", ["ucontext", "jump", "assembly"])
@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_coroutines(way, by, kind, tmp_path):
    program = behaviour.program(way, "contexts.c", "switch.S")
    behaviour.judge([program, by, kind], tmp_path, way=way)


@pytest.mark.parametrize("way", ["no-pie", "static", "patchable-clang", "pg", "instrument"])
def test_coroutines_in_other_builds(way, tmp_path):
    program = behaviour.program(way, "contexts.c", "switch.S")
    behaviour.judge([program, "ucontext", "interleaved"], tmp_path, way=way)


@pytest.mark.parametrize("kind", ["same", "fresh", "deep"])
def test_coroutines_that_leave_for_good_are_forgotten(graftrace, compile, kind):
    program = compile((behaviour.PROGRAMS / "abandoned.c").read_text(), "-O2")
    done = graftrace("record", "--overwrite", "-b", "1m", "--", program, kind, 30000)
    assert int(done.stdout) < 4000, done.stdout
