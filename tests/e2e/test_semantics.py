# SPDX-License-Identifier: MIT
"""What has to hold of the control files, whatever is done with them: what clears and what keeps, what
readers take, and what a refused write leaves."""

import errno
import os
import re

import pytest

from mounted import PROGRAM, Mounted, function_names, refused


@pytest.fixture
def mounted(graftrace, compile):
    program = compile(PROGRAM, "-O1", "-pthread", "-fpatchable-function-entry=5")
    one = Mounted(graftrace, program, "-p", "function_graph", "-b", "1M", "-n", "main")
    yield one
    one.end_anyhow()


def names(mounted):
    return function_names(mounted.read("trace"))


def test_another_tracer_clears_and_any_clock_does(mounted):
    mounted.calls(1)
    mounted.write("current_tracer", "function_graph")
    assert names(mounted) == ["middle", "leaf", "other"]
    for file, value in (("trace_clock", "x86-tsc"), ("trace_clock", "x86-tsc"),
                        ("current_tracer", "function")):
        mounted.calls(1)
        assert "leaf" in mounted.read("trace")
        mounted.write(file, value)
        trace = mounted.read("trace")
        assert "leaf" not in trace and "middle" not in trace, file


def test_reading_the_trace_takes_nothing_and_stops_nothing(mounted):
    mounted.calls(2)
    first = mounted.read("trace")
    assert mounted.read("trace") == first
    with open(mounted.path / "trace", encoding="utf-8") as reader:
        reader.readline()
        assert mounted.read("tracing_on") == "1\n"
        mounted.calls(1)
        reader.read()
    assert names(mounted) == ["middle", "leaf", "leaf", "other", "middle", "leaf", "other"]


def all_there(pipe):
    text = b""
    try:
        while block := os.read(pipe, 65536):
            text += block
    except BlockingIOError:
        pass
    return text


def test_trace_pipe_takes_and_says_what_was_lost(mounted):
    mounted.write("set_ftrace_filter", "leaf")
    mounted.write("options/overwrite", "1")
    mounted.calls(1)
    pipe = os.open(mounted.path / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(pipe, 65536).count(b"leaf();") == 1
    for _ in range(40):
        mounted.calls(10000)
    assert refused(os.open, mounted.path / "trace_pipe", os.O_RDONLY) == errno.EBUSY
    text = all_there(pipe)
    assert re.search(rb"^CPU:\d+ \[LOST \d+ EVENTS\]$", text, re.M)
    assert 0 < text.count(b"leaf();") < 400000
    assert names(mounted) == []
    mounted.calls(3)
    assert os.read(pipe, 65536).count(b"leaf();") == 3
    # nothing there: it waits, and when tracing is off and something was given it ends for those
    # who wait
    assert refused(os.read, pipe, 10) == errno.EAGAIN
    mounted.write("tracing_on", "0")
    assert refused(os.read, pipe, 10) == errno.EAGAIN
    os.set_blocking(pipe, True)
    assert os.read(pipe, 10) == b""
    os.close(pipe)


def overrun(mounted):
    return int(re.search(r"^overrun: (\d+)$", mounted.read("stats"), re.M)[1])


def told_lost(mounted):
    """How many records trace_pipe tells to be lost, over all that it gives now."""
    pipe = os.open(mounted.path / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
    text = all_there(pipe)
    os.close(pipe)
    return sum(int(n) for n in re.findall(rb"^CPU:\d+ \[LOST (\d+) EVENTS\]$", text, re.M))


def test_the_first_reader_of_trace_pipe_is_told_what_was_overwritten_before_it(mounted):
    mounted.write("set_ftrace_filter", "leaf")
    mounted.write("options/overwrite", "1")
    for _ in range(20):
        mounted.calls(10000)
    # Room is made a little after the calls: the count may grow before it is read.
    before = overrun(mounted)
    assert before > 0
    assert before <= told_lost(mounted) <= overrun(mounted)
    assert told_lost(mounted) == 0


def test_tracing_cpumask_is_about_what_comes(mounted):
    """As on Linux: what was traced before stays, and what was not does not come back."""
    mounted.write("set_ftrace_filter", "leaf")
    mounted.calls(1)
    cpus = sorted(os.sched_getaffinity(mounted.traced()))
    os.sched_setaffinity(mounted.traced(), {cpus[0]})
    every = mounted.read("tracing_cpumask")
    mounted.write("trace", "")
    mounted.calls(1)
    mounted.write("tracing_cpumask", f"{1 << (cpus[0] + 1):x}")
    mounted.calls(10)
    assert names(mounted) == ["leaf"]
    assert function_names(mounted.read(f"per_cpu/cpu{cpus[0]}/trace")) == ["leaf"]
    mounted.write("tracing_cpumask", every)
    assert names(mounted) == ["leaf"]
    mounted.calls(2)
    assert names(mounted) == ["leaf"] * 3
    for _ in range(30):
        mounted.write("tracing_cpumask", f"{1 << (cpus[0] + 1):x}")
        mounted.calls(1)
        mounted.write("tracing_cpumask", every)
    mounted.write("trace", "")
    mounted.calls(2)
    assert names(mounted) == ["leaf"] * 2


def test_a_refused_write_leaves_what_linux_leaves(mounted):
    mounted.write("set_ftrace_filter", "leaf")
    # appended: as it was
    assert refused(mounted.write, "set_ftrace_filter", "nosuch", os.O_APPEND) == errno.EINVAL
    assert mounted.read("set_ftrace_filter") == "leaf\n"
    # `>` has emptied it before the word came
    assert refused(mounted.write, "set_ftrace_filter", "nosuch") == errno.EINVAL
    assert mounted.read("set_ftrace_filter") == "#### all functions enabled ####\n"
    for file, bad in (("current_tracer", "nosuch"), ("tracing_on", "x"), ("trace_clock", "nosuch"),
                      ("max_graph_depth", "-1"), ("buffer_size_kb", "0")):
        before = mounted.read(file)
        assert refused(mounted.write, file, bad) == errno.EINVAL
        assert mounted.read(file) == before
    mounted.calls(1)
    assert names(mounted) == ["middle", "leaf", "other"]


def test_error_log_has_a_caret_under_the_bad_character(mounted):
    mounted.write("error_log", "")
    refused(mounted.write, "set_ftrace_filter", "leaf:nosuch:3", os.O_APPEND)
    lines = mounted.read("error_log").splitlines()
    assert re.fullmatch(r"\[ *\d+\.\d{6}\] \S+: error: .+", lines[0])
    assert lines[1] == "  Command: leaf:nosuch:3"
    assert lines[2].index("^") == lines[1].index("nosuch")
