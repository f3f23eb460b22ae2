# SPDX-License-Identifier: MIT
"""instances/NAME: buffers with a filter, tracing_on and readers of their own for one program."""

import errno
import os

import pytest

from test_mount import PROGRAM, Mounted


@pytest.fixture
def start(graftrace, compile):
    program = compile(PROGRAM, "-O1", "-fpatchable-function-entry=5")
    started = []

    def mount(*options):
        started.append(Mounted(graftrace, program, *options))
        return started[-1]

    yield mount
    for mounted in started:
        mounted.process.stdin.close()
        assert mounted.process.wait(timeout=30) == 3
        mounted.process.stdout.close()
        mounted.process.stderr.close()


def read(path):
    return path.read_text()


def calls(path):
    """Calls by function in a trace."""
    text = read(path)
    return {name: text.count(f" {name}(") + text.count(f" {name} <-")
            for name in ("leaf", "other", "middle") if f" {name}" in text}


def test_an_instance_has_its_own_buffer_filter_and_switch(start):
    mounted = start("-p", "function_graph")
    top = mounted.path
    one = top / "instances" / "one"
    one.mkdir()
    assert read(one / "current_tracer") == "nop\n"
    assert read(one / "set_ftrace_filter") == "#### all functions enabled ####\n"
    mounted.calls(5)
    assert calls(one / "trace") == {}
    (one / "set_ftrace_filter").write_text("other")
    (one / "current_tracer").write_text("function_graph")
    mounted.calls(7)
    assert calls(one / "trace") == {"other": 1}
    assert "|  other();" in read(one / "trace")  # what is left out takes no depth
    assert calls(top / "trace") == {"leaf": 12, "other": 2, "middle": 2}
    # emptied for itself
    (top / "trace").write_text("")
    assert calls(one / "trace") == {"other": 1}
    mounted.calls(3)
    (one / "trace").write_text("")
    assert calls(one / "trace") == {}
    assert calls(top / "trace") == {"leaf": 3, "other": 1, "middle": 1}
    # switched for itself
    (one / "tracing_on").write_text("0")
    mounted.calls(2)
    (one / "tracing_on").write_text("1")
    assert read(top / "tracing_on") == "1\n"
    assert calls(one / "trace") == {}
    (one / "set_ftrace_filter").write_text("")
    (one / "set_ftrace_notrace").write_text("leaf")
    mounted.calls(2)
    assert calls(one / "trace") == {"other": 1, "middle": 1}
    lines = [line for line in read(one / "trace").splitlines() if "other" in line]
    assert lines[0].split("|")[1] == "      other();"  # below main and middle
    one.rmdir()
    assert not one.exists()
    mounted.calls(1)
    assert calls(top / "trace") == {"leaf": 8, "other": 4, "middle": 4}


def test_two_instances_read_by_pipes(start):
    mounted = start("-p", "nop")
    top = mounted.path
    paths = [top / "instances" / name for name in ("a", "b")]
    for path, function in zip(paths, ("leaf", "other")):
        path.mkdir()
        (path / "set_ftrace_filter").write_text(function)
        (path / "current_tracer").write_text("function_graph")
    assert sorted(os.listdir(top / "instances")) == ["a", "b"]
    mounted.calls(50)
    mounted.calls(50)
    # of the top nothing is traced
    assert calls(top / "trace") == {}
    found = []
    for path in paths:
        pipe = os.open(path / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        text = b""
        while True:
            try:
                text += os.read(pipe, 65536)
            except BlockingIOError:
                break
        os.close(pipe)
        found.append((text.count(b"leaf();"), text.count(b"other();")))
        assert calls(path / "trace") == {}
    assert found == [(100, 0), (0, 2)]
    # and none of it comes up when the top begins to trace
    (top / "current_tracer").write_text("function_graph")
    mounted.calls(1)
    assert calls(top / "trace") == {"leaf": 1, "other": 1, "middle": 1}


def test_all_have_the_same_tracer(start):
    mounted = start("-p", "function")
    one = mounted.path / "instances" / "one"
    one.mkdir()
    with pytest.raises(OSError) as busy:
        (one / "current_tracer").write_text("function_graph")
    assert busy.value.errno == errno.EBUSY
    (one / "current_tracer").write_text("function")
    with pytest.raises(OSError) as busy:
        (mounted.path / "current_tracer").write_text("function_graph")
    assert busy.value.errno == errno.EBUSY
    (one / "set_ftrace_filter").write_text("leaf")
    mounted.calls(4)
    assert calls(one / "trace") == {"leaf": 4}
    (mounted.path / "current_tracer").write_text("nop")
    mounted.calls(4)
    assert calls(one / "trace") == {"leaf": 8}
    assert calls(mounted.path / "trace") == {}


def test_directories_are_made_and_removed_as_in_linux(start):
    mounted = start()
    instances = mounted.path / "instances"
    (instances / "one").mkdir()
    with pytest.raises(FileExistsError):
        (instances / "one").mkdir()
    with pytest.raises(OSError):
        (mounted.path / "elsewhere").mkdir()
    with pytest.raises(FileNotFoundError):
        (instances / "two").rmdir()
    # what Linux has at the top only
    for name in ("set_graph_function", "max_graph_depth", "function_profile_enabled", "instances",
                 "available_filter_functions"):
        assert (mounted.path / name).exists()
        assert not (instances / "one" / name).exists()
    pipe = os.open(instances / "one" / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(OSError) as busy:
        (instances / "one").rmdir()
    assert busy.value.errno == errno.EBUSY
    os.close(pipe)
    (instances / "one").rmdir()
    assert os.listdir(instances) == []
    (instances / "one").mkdir()
    assert read(instances / "one" / "current_tracer") == "nop\n"


def test_an_instance_has_snapshots_of_its_own(start):
    mounted = start("-p", "function_graph")
    one = mounted.path / "instances" / "one"
    one.mkdir()
    (one / "set_ftrace_filter").write_text("leaf")
    (one / "current_tracer").write_text("function_graph")
    mounted.calls(6)
    (one / "snapshot").write_text("1")
    assert calls(one / "snapshot") == {"leaf": 6}
    assert calls(one / "trace") == {}
    assert calls(mounted.path / "trace")["leaf"] == 6
    mounted.calls(2)
    assert calls(one / "snapshot") == {"leaf": 6}
    assert calls(one / "trace") == {"leaf": 2}


def test_an_instance_misses_nothing_while_the_top_is_emptied(start):
    mounted = start("-p", "function_graph", "-b", "4M")
    one = mounted.path / "instances" / "one"
    one.mkdir()
    (one / "set_ftrace_filter").write_text("other")
    (one / "current_tracer").write_text("function_graph")
    for _ in range(40):
        mounted.calls(2000)
        (mounted.path / "trace").write_text("")
    assert calls(one / "trace") == {"other": 40}
