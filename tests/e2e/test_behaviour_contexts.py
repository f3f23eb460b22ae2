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


@pytest.mark.parametrize("kind, count", [("same", 30000), ("fresh", 30000), ("last", 6000)])
def test_coroutines_that_leave_for_good_are_forgotten(graftrace, compile, kind, count):
    program = compile("abandoned.c", "-O2")
    done = graftrace("record", "--overwrite", "-b", "1m", "--", program, kind, count)
    assert int(done.stdout) < 4000, done.stdout


def test_one_that_is_preempted_on_its_way_out_of_a_call_goes_on(graftrace, compile):
    """While another one begins on the next stack: nothing tells by its memory that it is not abandoned."""
    program = compile("preempted.c", "-O2", "-pthread", f"-I{behaviour.ROOT}")
    for instruction in range(0, 45, 3):
        assert graftrace("record", "--", program, instruction).stdout == "done\n", instruction


@pytest.mark.parametrize("by", ["registers", "assembly"])
def test_a_handler_takes_turns_with_them(graftrace, compile, by):
    """Which neither nests nor is seen: straight lines go on with whichever context runs by then."""
    program = compile("turns.c", "-O2")
    done = graftrace("record", "--overwrite", "-b", "1m", "-l", "leaf", "-l", "mid", "--", program, by, 8)
    assert done.stdout == "0 wrong\n"


def test_one_of_two_in_one_context_goes_on(graftrace, compile):
    """Calls of two small stacks stand in one context; on one of them another coroutine begins."""
    program = compile("crowded.c", "-O2", "-D_GNU_SOURCE", f"-I{behaviour.ROOT}", str(behaviour.PROGRAMS / "switch.S"))
    for instruction in range(1, 45, 3):
        assert graftrace("record", "--", program, instruction, 4096).stdout == "done\n", instruction
