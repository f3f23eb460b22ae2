# SPDX-License-Identifier: MIT
"""Programs that end in the middle of their calls: the recording has all that came before, and says
which calls were open."""

import signal

import pytest

import behaviour

OPEN = ["main", "outer", "middle", "inner"]
ENDS = {"return": 5, "exit": 42, "_exit": 43, "thread-exit": 44, "segv": -signal.SIGSEGV,
        "kill": -signal.SIGKILL, "term": -signal.SIGTERM, "abort": -signal.SIGABRT,
        "trap": -signal.SIGTRAP}


def main_thread(trace):
    """Names of the open calls of the thread that ran main."""
    return max(trace.open.values(), key=len, default=[])


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_every_call_before_the_end_is_there(way, kind, tmp_path):
    judged = behaviour.judge([behaviour.program(way, "ending.c"), kind], tmp_path, way=way)
    assert judged.after.code == ENDS[kind]
    found = [name for name in main_thread(judged.trace) if name in judged.trace.counting]
    assert found == ([] if kind == "return" else OPEN)


@pytest.mark.parametrize("kind", ["kill", "segv"])
def test_a_killed_program_keeps_a_million_calls(kind, tmp_path):
    judged = behaviour.judge([behaviour.program("patchable", "ending.c"), kind, 300000], tmp_path,
                             way="patchable")
    assert main_thread(judged.trace) == OPEN


@pytest.mark.parametrize("kind", ["exit", "_exit", "kill", "segv"])
def test_a_program_with_a_waiting_thread_ends(kind, tmp_path):
    judged = behaviour.judge([behaviour.program("patchable", "ending.c"), kind, 1000, "thread"],
                             tmp_path, way="patchable")
    assert sorted(filter(None, judged.trace.open.values())) == [["busy"], OPEN]
