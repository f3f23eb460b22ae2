# SPDX-License-Identifier: MIT
"""The recording path, instruction by instruction: tests/programs/steps.c stops behind each one, the
stub's and the moved code's too, and does there what a signal's handler may do. What it sees is what
it sees untraced."""

import re
import subprocess

import pytest

import behaviour
from conftest import PATIENCE

FLAGS = ["-rdynamic", "-fexceptions", f"-I{behaviour.ROOT / 'include'}"]
QUIET = ["-n", "quiet_*"]
TRACED = ["leaf", "tail_to", "through", "pushes", "calls_first", "jumps_first", "returns_only",
          "two_bytes", "behind_it", "framed", "deep", "calls", "calls_of", "with_events", "leaf_event"]
# What takes other instructions: options, and how often a function is called before.
TRACERS = {
    "graph": ([], 0),
    "function": (["-p", "function"], 0),
    "threshold": (["--threshold", "1s"], 0),
    "sub-buffers": (["--overwrite", "-b", "64K"], 5000),
    "full": (["--serve=127.0.0.1:0", "-b", "64K"], 50000),
    "root": (["-g", "through"], 0),
    "below": (["-N", "pushes"], 0),
    "nothing": (["-g", "no_such_function"], 0),
    "breakpoints": (["--breakpoints"], 0),
    "events": (["-e", "steps:*"], 0),
    "events alone": (["-p", "nop", "-e", "steps:*"], 0),
    "events of a full ring": (["-e", "steps:*", "--overwrite", "-b", "64K"], 5000),
    "arguments": (["-A", "*@arg1,arg2/i32", "-R", "*@retval"], 0),
    "texts": (["-A", "leaf@arg1/s", "-R", "leaf@retval/s"], 0),
    "arguments of a full ring": (["-A", "*@arg1,arg2", "-R", "*@retval", "--overwrite", "-b", "64K"], 5000),
}


def program(way="unprepared"):
    return behaviour.program(way, "steps.c", flags=FLAGS)


def assert_same(before, after):
    assert after.code == before.code == 0, after.out.decode() + after.err.decode()
    assert after.out == before.out


@pytest.mark.parametrize("tracer", TRACERS)
def test_every_instruction_is_walked_through_by_an_unwinder(tracer, tmp_path):
    options, calls = TRACERS[tracer]
    command = [program(), "unwind", "fill", calls]
    before = behaviour.plain(command, tmp_path)
    assert b"leaf tail_to" not in before.out and b"leaf pushes calls" in before.out
    assert_same(before, behaviour.traced(command, tmp_path, *QUIET, *options))


@pytest.mark.parametrize("what", ["unwind", "call", "jump"])
def test_every_instruction_of_the_profilers_lines_is_gone_through(what, tmp_path):
    command = [program(), what]
    profile = [behaviour.BUILD / "cli" / "graftrace", "profile", "-o", "table", *QUIET, "--", *command]
    assert_same(behaviour.plain(command, tmp_path), behaviour.run(profile, tmp_path, "profiled", timeout=120))


@pytest.mark.parametrize("way", ["patchable", "cet", "unprepared-clang"])
def test_every_instruction_of_other_builds_is_walked_through(way, tmp_path):
    command = [program(way), "unwind"]
    assert_same(behaviour.plain(command, tmp_path), behaviour.traced(command, tmp_path, *QUIET))


def test_every_instruction_of_a_static_program_is_walked_through(tmp_path):
    command = [program("unprepared-static"), "unwind"]
    # The handler itself runs in the midst of the tracer: what of the C library it calls stays untraced.
    some = [word for name in TRACED for word in ("-l", name)]
    assert_same(behaviour.plain(command, tmp_path),
                behaviour.traced(command, tmp_path, *QUIET, *some))


def test_every_instruction_of_the_profiler_is_walked_through(tmp_path):
    command = [program(), "unwind"]
    before = behaviour.plain(command, tmp_path)
    after = subprocess.run([behaviour.BUILD / "cli" / "graftrace", "profile", *QUIET, *command],
                           cwd=tmp_path, capture_output=True, timeout=PATIENCE)
    assert b"leaf" in after.stderr
    assert (after.returncode, after.stdout) == (0, before.out), after.stderr.decode()


def test_a_handler_may_fork_at_every_instruction_of_the_profiler(tmp_path):
    command = [program(), "forks"]
    before = behaviour.plain(command, tmp_path)
    after = subprocess.run([behaviour.BUILD / "cli" / "graftrace", "profile", *QUIET, *command],
                           cwd=tmp_path, capture_output=True, timeout=PATIENCE)
    assert (after.returncode, after.stdout) == (0, before.out), after.stderr.decode()


@pytest.mark.parametrize("tracer", ["graph", "threshold", "profiler"])
def test_a_handler_may_fork_at_every_instruction_of_a_thread_s_first_call(tracer, tmp_path):
    """Below it there is no call, and in front of its frames no memory."""
    command = [program(), "forks", "deep", 5000]
    before = behaviour.plain(command, tmp_path)
    words = ["profile"] if tracer == "profiler" else ["record", "-o", "trace.data", *TRACERS[tracer][0]]
    after = subprocess.run([behaviour.BUILD / "cli" / "graftrace", *words, *QUIET, "-n", "main", *map(str, command)],
                           cwd=tmp_path, capture_output=True, timeout=PATIENCE)
    assert (after.returncode, after.stdout) == (0, before.out), after.stderr.decode()


@pytest.mark.parametrize("done", ["call", "jump", "cancel", "fork"])
@pytest.mark.parametrize("tracer", ["graph", "function", "events", "events alone"])
def test_a_handler_may_come_at_every_instruction(tracer, done, tmp_path):
    command = [program(), done]
    before = behaviour.plain(command, tmp_path)
    assert_same(before, behaviour.traced(command, tmp_path, *QUIET, *TRACERS[tracer][0]))


@pytest.mark.parametrize("done", ["call", "jump", "fork"])
def test_values_of_events_are_right_whatever_handlers_do_in_between(done, tmp_path):
    command = [program(), done]
    assert_same(behaviour.plain(command, tmp_path), behaviour.traced(command, tmp_path, *QUIET, "-e", "steps:*"))
    told = subprocess.run([behaviour.BUILD / "cli" / "graftrace", "show", "trace.data"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert set(re.findall(r"/\* (many|leaf): (.*) \*/", told.stdout)) == {
        ("many", "a=3 b=4 c=5 d=6 e=7 f=8 sum=18 constant=77 kept=7 none=0"), ("leaf", "x=4 more=12"),
        *([("many", "a=0 b=0 c=0 d=0 e=0 f=0 sum=0 constant=77 kept=0 none=0")] if done == "jump" else [])}


VALUES = ["-A", "*@arg1,arg2/i32", "-R", "*@retval"]
TEXTS = ["-A", "leaf@arg1/s", "-l", "leaf"]


@pytest.mark.parametrize("options", [["--overwrite"], ["-p", "function", "--overwrite"], [],
                                     ["--overwrite", *VALUES], VALUES, [*TEXTS, "--overwrite"]])
def test_what_a_handler_leaves_half_done_does_not_fill_the_buffer(options, tmp_path):
    """A record that was begun and never will be written must not hold its sub-buffer for ever."""
    command = [program(), "jump", "fill", 300 if "-A" in options else 3000]
    after = behaviour.traced(command, tmp_path, *QUIET, "-b", "64K", *options)
    assert after.code == 0, after.out.decode() + after.err.decode()
    told = subprocess.run([behaviour.BUILD / "cli" / "graftrace", "report", "trace.data"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert told.returncode == 0, told.stderr
    assert "the buffer was full" not in told.stderr and "slower" not in told.stderr
