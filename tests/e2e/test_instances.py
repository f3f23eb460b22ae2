# SPDX-License-Identifier: MIT
"""instances/NAME: buffers with a filter, tracing_on and readers of their own for one program."""

import errno
import os

import pytest

from mounted import Mounted, start  # noqa: F401


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
    assert lines[0].split("|")[1] == "    other();"  # below middle; main began before
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


def entries(path):
    return int(read(path).split("entries: ")[1].split()[0])


def entries_of_cpus(path):
    cpus = list((path / "per_cpu").iterdir())
    assert cpus
    return sum(entries(cpu / "stats") for cpu in cpus)


def test_top_and_instances_have_tracers_and_filters_of_their_own(start):
    mounted = start("-p", "function")
    top = mounted.path
    (top / "set_ftrace_filter").write_text("leaf")
    mounted.calls(2)
    one, two = top / "instances" / "one", top / "instances" / "two"
    one.mkdir()
    two.mkdir()
    (one / "set_ftrace_filter").write_text("other middle")
    (one / "current_tracer").write_text("function_graph")
    (two / "set_ftrace_filter").write_text("m*")
    (two / "current_tracer").write_text("function")
    enabled = {line.split()[0] for line in read(top / "enabled_functions").splitlines()}
    assert enabled == {"leaf", "other", "middle", "main"}
    mounted.calls(4)
    assert calls(top / "trace") == {"leaf": 6}
    assert calls(one / "trace") == {"other": 1, "middle": 1}
    assert calls(two / "trace") == {"middle": 1}
    assert "leaf <-main" not in read(top / "trace")
    assert read(top / "trace").count(" leaf <-middle") >= 4
    assert " middle <-" in read(two / "trace")
    assert "middle() {" in read(one / "trace")
    # only what is its own takes room
    assert entries_of_cpus(one) == 4
    (one / "trace").write_text("")
    assert calls(one / "trace") == {}
    assert calls(two / "trace") == {"middle": 1}
    assert calls(top / "trace") == {"leaf": 6}
    # another tracer empties its own buffer and no other
    (one / "current_tracer").write_text("nop")
    mounted.calls(1)
    (top / "current_tracer").write_text("function_graph")
    assert calls(top / "trace") == {}
    assert calls(one / "trace") == {}
    assert calls(two / "trace") == {"middle": 2}
    mounted.calls(3)
    assert calls(top / "trace") == {"leaf": 3}
    one.rmdir()
    two.rmdir()
    assert {line.split()[0] for line in read(top / "enabled_functions").splitlines()} == {"leaf"}
    mounted.calls(3)
    assert calls(top / "trace") == {"leaf": 6}


def test_with_nop_at_the_top_only_the_instance_has_records(start):
    mounted = start("-p", "nop")
    one = mounted.path / "instances" / "one"
    one.mkdir()
    (one / "current_tracer").write_text("function")
    mounted.calls(9)
    assert calls(mounted.path / "trace") == {}
    assert entries_of_cpus(mounted.path) == 0
    assert calls(one / "trace") == {"leaf": 9, "other": 1, "middle": 1}
    assert entries_of_cpus(one) == 11
    # what was recorded stays what it was when the filter is another one
    (one / "set_ftrace_filter").write_text("other")
    assert calls(one / "trace") == {"leaf": 9, "other": 1, "middle": 1}
    mounted.calls(9)
    assert calls(one / "trace") == {"leaf": 9, "other": 2, "middle": 1}
    # it has what it has when it is switched off, and none of what comes then
    (one / "tracing_on").write_text("0")
    mounted.calls(9)
    assert calls(one / "trace") == {"leaf": 9, "other": 2, "middle": 1}


def test_depth_threshold_and_graph_functions_are_an_instances_own(start):
    mounted = start("-p", "function_graph")
    top = mounted.path
    paths = {name: top / "instances" / name for name in ("flat", "below", "slow")}
    for path in paths.values():
        path.mkdir()
    (paths["flat"] / "max_graph_depth").write_text("1")
    (paths["below"] / "set_graph_function").write_text("middle")
    (paths["slow"] / "tracing_thresh").write_text("1000000")
    for path in paths.values():
        (path / "current_tracer").write_text("function_graph")
    mounted.calls(3)
    assert calls(top / "trace") == {"leaf": 3, "other": 1, "middle": 1}
    assert calls(paths["flat"] / "trace") == {"middle": 1}
    assert calls(paths["below"] / "trace") == {"leaf": 3, "other": 1, "middle": 1}
    assert calls(paths["slow"] / "trace") == {}
    (paths["below"] / "set_graph_function").write_text("other")
    mounted.calls(3)
    assert calls(paths["below"] / "trace") == {"leaf": 3, "other": 2, "middle": 1}
    last = [line for line in read(paths["below"] / "trace").splitlines() if "other" in line][-1]
    assert last.split("|")[1] == "  other();"
    (paths["slow"] / "tracing_thresh").write_text("0")
    mounted.calls(3)
    assert calls(paths["slow"] / "trace") == {"leaf": 3, "other": 1, "middle": 1}
    for name in ("max_graph_depth", "tracing_thresh"):
        assert read(top / name) == "0\n"
    assert "middle" not in read(top / "set_graph_function")


def test_what_the_top_leaves_out_below_a_function_others_have(start):
    mounted = start("-p", "function_graph")
    top = mounted.path
    (top / "set_graph_notrace").write_text("middle")
    one = top / "instances" / "one"
    one.mkdir()
    mounted.calls(2)
    assert calls(top / "trace") == {}
    (one / "current_tracer").write_text("function_graph")
    mounted.calls(2)
    assert calls(top / "trace") == {}
    assert calls(one / "trace") == {"leaf": 2, "other": 1, "middle": 1}
    (one / "set_graph_notrace").write_text("other")
    (top / "set_graph_notrace").write_text("leaf")
    mounted.calls(2)
    assert calls(top / "trace") == {"other": 1, "middle": 1}
    assert calls(one / "trace") == {"leaf": 4, "other": 1, "middle": 2}
    (one / "current_tracer").write_text("nop")
    mounted.calls(2)
    assert calls(top / "trace") == {"other": 2, "middle": 2}


def test_threads_that_trace_at_once_are_whole_in_every_buffer(start):
    mounted = start("-p", "function_graph", "-b", "32M", "-l", "middle")
    top = mounted.path
    one, two = top / "instances" / "one", top / "instances" / "two"
    for path, words in ((one, "leaf"), (two, "leaf\nother")):
        path.mkdir()
        (path / "set_ftrace_filter").write_text(words)
        (path / "current_tracer").write_text("function_graph")
    (two / "current_tracer").write_text("function")
    for _ in range(8):
        mounted.calls("t4000")
    assert calls(one / "trace") == {"leaf": 128000}
    assert calls(two / "trace") == {"leaf": 128000, "other": 32}
    assert calls(top / "trace") == {"middle": 32}
    assert entries_of_cpus(one) == 2 * 128000
    assert "LOST" not in read(one / "trace") + read(top / "trace")


JUMPS = r"""
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
static jmp_buf there;
static ucontext_t back, coroutine;
static char stack[65536];
#define FUNCTION __attribute__((noinline))
FUNCTION int leaf(int x) { __asm__ volatile(""); return x + 1; }
FUNCTION void thrower(int depth)
{
	leaf(depth);
	if (depth == 0)
		longjmp(there, 1);
	thrower(depth - 1);
	leaf(depth);
}
FUNCTION int catcher(int depth)
{
	if (setjmp(there) == 0)
		thrower(depth);
	return leaf(1);
}
FUNCTION void other(void) { leaf(2); swapcontext(&coroutine, &back); leaf(3); }
FUNCTION void middle(void) { other(); leaf(4); }
static void run(void) { middle(); }
int main(void)
{
	char line[64];

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		getcontext(&coroutine);
		coroutine.uc_stack.ss_sp = stack;
		coroutine.uc_stack.ss_size = sizeof stack;
		coroutine.uc_link = &back;
		makecontext(&coroutine, run, 0);
		swapcontext(&back, &coroutine);
		catcher(5);
		swapcontext(&back, &coroutine);
		catcher(2);
		printf("done\n");
		fflush(stdout);
	}
	return 3;
}
"""


def shape(path, names):
    """Calls and how deep they are below main, of those names, as they are nested in the text."""
    found = []
    for line in read(path).splitlines():
        if "|" not in line or line.startswith("#"):
            continue
        text = line.split("|", 1)[1]
        name = text.strip().split("(")[0]
        if name in names and ("();" in text or "() {" in text):
            found.append((name, (len(text) - len(text.lstrip())) // 2))
    return found


def test_jumps_and_coroutines_have_the_same_depths_in_an_instance(graftrace, compile):
    program = compile(JUMPS, "-O1", "-fpatchable-function-entry=5")
    mounted = Mounted(graftrace, program, "-p", "function_graph", "-b", "8M", "-n", "main")
    try:
        top = mounted.path
        one, few = top / "instances" / "one", top / "instances" / "few"
        for path in (one, few):
            path.mkdir()
        (few / "set_ftrace_filter").write_text("leaf catcher")
        # more than the top has: it is not a copy of the ring
        (one / "set_ftrace_notrace").write_text("main")
        for path in (one, few):
            (path / "current_tracer").write_text("function_graph")
        for _ in range(300):
            mounted.calls(1)
        names = {"leaf", "thrower", "catcher", "other", "middle", "run"}
        expected = shape(top / "trace", names)
        assert len(expected) > 300 * 20
        assert shape(one / "trace", names) == expected
        assert {depth for name, depth in shape(few / "trace", names) if name == "catcher"} == {1}
        below = shape(few / "trace", names)
        assert [name for name, _ in below] == [name for name, _ in expected
                                               if name in ("leaf", "catcher")]
        assert max(depth for _, depth in below) == 2
    finally:
        mounted.end_anyhow()


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
    for name in ("function_profile_enabled", "instances", "available_filter_functions"):
        assert (mounted.path / name).exists()
        assert not (instances / "one" / name).exists()
    for name in ("trace_pipe", "per_cpu/cpu0/trace_pipe", "per_cpu/cpu0/trace_pipe_raw"):
        pipe = os.open(instances / "one" / name, os.O_RDONLY | os.O_NONBLOCK)
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
