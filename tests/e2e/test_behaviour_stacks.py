# SPDX-License-Identifier: MIT
"""Stacks that are left for another place, switched by tail jumps, variables of the program, or too
small."""

import subprocess
import time

import pytest

import behaviour
import recorded
from conftest import BUILD, PATIENCE

GRAFTRACE = BUILD / "cli" / "graftrace"
WAYS = pytest.mark.parametrize("way", ["patchable", "unprepared"])


@WAYS
def test_a_coroutine_leaves_for_another_place_of_the_stack_that_called_it(way, tmp_path):
    program = behaviour.program(way, "stacks.c")
    judged = behaviour.judge([program, "another-place"], tmp_path, way=way)
    assert judged.trace.unwound == 40 * 4


@WAYS
def test_a_switch_that_is_a_tail_jump_ends_the_call_that_made_it(way, tmp_path):
    behaviour.judge([behaviour.program(way, "stacks.c"), "tail-switches", "500"], tmp_path, way=way,
                    loose=("turn",))


def test_coroutines_that_switch_by_tail_jumps_go_on_when_the_recording_has_ended(tmp_path):
    program = behaviour.program("unprepared", "stacks.c")
    with subprocess.Popen([program, "tail-switches"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as running:
        try:
            for _ in range(3):
                done = subprocess.run([GRAFTRACE, "record", "-o", tmp_path / "trace.data", "-P",
                                       str(running.pid), "--for", "0.2s"], capture_output=True,
                                      text=True, timeout=PATIENCE)
                assert done.returncode == 0, done.stderr
                assert "keeps the recorder's memory" not in done.stderr
                time.sleep(0.05)
            out, _ = running.communicate("\n", timeout=PATIENCE)
        finally:
            running.kill()
    assert (running.returncode, out) == (0, "total 0, turned yes\n")


@WAYS
@pytest.mark.parametrize("kind", ["alternate-inside", "small-alternate-inside"])
def test_a_handler_on_a_stack_in_a_variable_leaves_the_calls_around_it_open(way, kind, tmp_path):
    judged = behaviour.judge([behaviour.program(way, "stacks.c"), kind], tmp_path, way=way)
    assert judged.trace.unwound == 0


@WAYS
def test_a_coroutine_on_a_stack_in_a_variable_leaves_the_calls_around_it_open(way, tmp_path):
    judged = behaviour.judge([behaviour.program(way, "stacks.c"), "coroutine-inside"], tmp_path, way=way)
    assert judged.trace.unwound == 0


@WAYS
@pytest.mark.parametrize("options", [[], ["--overwrite", "--buffer-size", "1M"], ["-p", "function"]],
                         ids=["graph", "overwrite", "function"])
def test_a_stack_overflow_that_the_program_handles_goes_on_being_handled(way, options, tmp_path):
    # Small sub-buffers' ends are where the recording path takes its longest way, deep in the stack.
    program = behaviour.program(way, "stacks.c")
    limited = ["prlimit", "--stack=262144", program, "overflows"]
    traced = behaviour.traced(limited, tmp_path, *options)
    assert (traced.code, traced.out) == (0, b"200 overflows\ntotal 200, turned no\n")
    assert traced.counts.by_name()["caught"] == 200


@WAYS
def test_a_handler_that_leaves_the_recording_path_by_a_jump_leaves_no_call_behind(way, tmp_path):
    behaviour.traced([behaviour.program(way, "stacks.c"), "leaves"], tmp_path, *behaviour.WAYS[way][1])
    shown = subprocess.run([GRAFTRACE, "show", "trace.data"], cwd=tmp_path, capture_output=True,
                           text=True, timeout=PATIENCE, check=True).stdout
    columns = {line.index(name) - line.index("|") for line in shown.splitlines()
               for name in ("works() {", "works_end() {") if name in line}
    assert len(columns) == 1, columns


@WAYS
def test_calls_megabytes_apart_on_one_stack_are_recorded_as_any(way, tmp_path):
    program = behaviour.program(way, "stacks.c")
    behaviour.judge([program, "far-apart"], tmp_path, way=way)
    traced = behaviour.traced([program, "far-apart"], tmp_path, *behaviour.WAYS[way][1], "-l", "leaf")
    assert (traced.code, traced.out) == (0, b"total 57, turned no\n")
    trace = recorded.Recorded(tmp_path / "trace.data", {"leaf"})
    assert not trace.errors, trace.errors[:10]
    assert behaviour.total_by_name(trace.counted) == {"leaf": 57}
