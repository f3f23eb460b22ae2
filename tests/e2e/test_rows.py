# SPDX-License-Identifier: MIT
"""The rows of the control files one by one, in the mount: what one write(2) of each takes or is
refused with, and what lists of functions do with libraries that come and go."""

import collections
import errno
import os
import re

import pytest

from mounted import PROGRAM, Mounted, function_names, refused

LOADER = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) int near(int x)
{
	__asm__ volatile("");
	return x + 1;
}

int main(void)
{
	char line[256];
	void *library = NULL;
	int sum = 0;

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (line[0] == '/') {
			library = dlopen(line, RTLD_NOW);
		} else {
			int (*far)(int) = library ? (int (*)(int))dlsym(library, "far") : NULL;

			sum += near(sum);
			sum += far ? far(sum) : 0;
		}
		printf("done\n");
		fflush(stdout);
	}
	return sum == 42;
}
"""

LIBRARY = r"""
__attribute__((noinline)) int deep(int x)
{
	__asm__ volatile("");
	return x * 2;
}

int far(int x)
{
	return deep(x) + 1;
}
"""


@pytest.fixture
def mounted(graftrace, compile):
    one = Mounted(graftrace, compile(PROGRAM, "-O2"))
    yield one
    one.end_anyhow()


# (row, what one write is given, the bytes that it takes or the errno). Linux's own answers, where
# it has the row.
WRITES = [
    ("current_tracer", "function_graph\n", 15), ("current_tracer", "  nop  \n", 8),
    ("current_tracer", "nosuch", "EINVAL"), ("current_tracer", "\n", "EINVAL"),
    ("tracing_on", "1", 1), ("tracing_on", "2\n", 2), ("tracing_on", "-1", "EINVAL"),
    ("tracing_on", "x", "EINVAL"), ("tracing_on", "\n", "EINVAL"),
    ("max_graph_depth", "0", 1), ("max_graph_depth", "-1", "EINVAL"),
    ("max_graph_depth", "x", "EINVAL"),
    ("tracing_thresh", "0\n", 2), ("tracing_thresh", "1.5", "EINVAL"),
    ("tracing_thresh", "-5", "EINVAL"), ("tracing_thresh", "x", "EINVAL"),
    ("trace_clock", "mono\n", 5), ("trace_clock", "nosuch", "EINVAL"),
    ("trace_clock", "counter", 7), ("trace_clock", "local", 5),
    ("tracing_cpumask", "1", 1), ("tracing_cpumask", "x", "EINVAL"),
    ("tracing_cpumask", "ff,ffffffff", 11), ("tracing_cpumask", "", 0),
    ("timestamp_mode", "absolute", "EINVAL"), ("available_tracers", "nop", "EINVAL"),
    ("trace", "anything", 8), ("trace_pipe", "x", "EINVAL"),
    ("per_cpu/cpu0/trace", "anything", 8), ("per_cpu/cpu0/buffer_size_kb", "x", "EINVAL"),
    ("per_cpu/cpu0/trace_pipe", "x", "EINVAL"), ("per_cpu/cpu0/stats", "x", "EINVAL"),
    # one word a write, with the blank behind it
    ("set_ftrace_filter", "leaf other\n", 5), ("set_ftrace_filter", "leaf\n", 5),
    ("set_ftrace_filter", "nosuch\n", "EINVAL"), ("set_ftrace_filter", "no*such\n", "EINVAL"),
    ("set_ftrace_filter", "!other\n", 7), ("set_ftrace_filter", "0\n", "EINVAL"),
    ("set_ftrace_filter", "leaf:nosuch\n", "EINVAL"),
    ("set_ftrace_filter", "leaf:traceoff:x\n", "EINVAL"),
    ("set_ftrace_filter", "leaf:traceoff:\n", "EINVAL"),
    ("set_ftrace_filter", "leaf:mod:libnosuch.so\n", 22),
    ("set_ftrace_notrace", "leaf other\n", 5), ("set_ftrace_notrace", "nosuch\n", "EINVAL"),
    ("set_graph_function", "leaf other\n", 5), ("set_graph_function", "nosuch\n", "EINVAL"),
    ("set_graph_notrace", "leaf other\n", 5), ("set_graph_notrace", "nosuch\n", "EINVAL"),
    ("set_graph_notrace", "leaf:traceoff\n", "EINVAL"),
    # a list of numbers at once
    ("set_ftrace_pid", "1 2 3\n", 6), ("set_ftrace_pid", "x\n", "EINVAL"),
    ("set_ftrace_pid", "-1\n", "EINVAL"), ("set_ftrace_notrace_pid", "4 5\n", 4),
    ("set_ftrace_notrace_pid", "1 x\n", "EINVAL"),
    ("set_event_pid", "1 2 3\n", 6), ("set_event_pid", "x\n", "EINVAL"),
    ("set_event_notrace_pid", "4 5\n", 4), ("set_event_notrace_pid", "-1\n", "EINVAL"),
    ("available_filter_functions", "leaf", "EINVAL"), ("enabled_functions", "leaf", "EINVAL"),
    ("touched_functions", "leaf", "EINVAL"),
    ("available_filter_functions_addrs", "leaf", "EINVAL"),
    ("trace_options", "sym-offset\n", 11), ("trace_options", "nosym-offset", 12),
    ("trace_options", "nosuch", "EINVAL"), ("trace_options", "no", "EINVAL"),
    ("trace_options", "test_nop_refuse", "EINVAL"),
    # a kernel's
    ("trace_options", "hash-ptr", "EINVAL"), ("trace_options", "nofunction-trace", "EINVAL"),
    ("trace_options", "userstacktrace", "EINVAL"), ("trace_options", "sym-userobj", "EINVAL"),
    ("options/sym-addr", "1\n", 2), ("options/sym-addr", "0", 1),
    ("options/sym-addr", "2", "EINVAL"), ("options/sym-addr", "x", "EINVAL"),
    ("options/test_nop_accept", "1", 1), ("options/test_nop_refuse", "1", "EINVAL"),
    ("trace_marker", "hello", 5), ("trace_marker", "x" * 3000, 1024),
    ("trace_marker_raw", "abcdefgh", 8), ("trace_marker_raw", "abc", "EINVAL"),
    ("snapshot", "1", 1), ("snapshot", "2", 1), ("snapshot", "0", 1), ("snapshot", "x", "EINVAL"),
    ("per_cpu/cpu0/snapshot", "1", "EINVAL"),
    ("saved_cmdlines", "x", "EINVAL"), ("saved_tgids", "x", "EINVAL"),
    ("saved_cmdlines_size", "1024", 4), ("saved_cmdlines_size", "0", "EINVAL"),
    ("saved_cmdlines_size", "32769", "EINVAL"), ("saved_cmdlines_size", "x", "EINVAL"),
    ("buffer_total_size_kb", "100", "EINVAL"), ("buffer_size_kb", "0", "EINVAL"),
    ("buffer_size_kb", "x", "EINVAL"), ("buffer_size_kb", "-1", "EINVAL"),
    ("free_buffer", "anything", 8),
    ("set_event", "nosuch:event\n", "EINVAL"), ("events/enable", "0", 1),
    ("events/enable", "2", "EINVAL"), ("events/enable", "x", "EINVAL"),
    ("events/sched/enable", "0", 1), ("events/sched/enable", "x", "EINVAL"),
    ("events/sched/sched_switch/enable", "0\n", 2),
    ("events/sched/sched_switch/enable", "2", "EINVAL"),
    ("events/sched/sched_switch/filter", "0", 1),
    ("events/sched/sched_switch/filter", "x", "EINVAL"),
    ("dynamic_events", "p:group/name leaf\n", 18), ("dynamic_events", "-:group/name\n", 13),
    ("dynamic_events", "-:group/name\n", "ENOENT"), ("dynamic_events", "p leaf $nosuch\n", "EINVAL"),
    ("uprobe_events", "p:group/name leaf\n", 18), ("uprobe_events", "-:group/name\n", 13),
    ("uprobe_events", "x\n", "EINVAL"),
    ("synthetic_events", "late u64 lat\n", 13), ("synthetic_events", "!late\n", 6),
    ("synthetic_events", "!late\n", "ENOENT"), ("synthetic_events", "x\n", "EINVAL"),
    ("error_log", "anything", 8), ("README", "x", "EINVAL"), ("printk_formats", "x", "EINVAL"),
    ("kallsyms", "x", "EINVAL"), ("events/header_page", "x", "EINVAL"),
    ("function_profile_enabled", "1", 1), ("function_profile_enabled", "0", 1),
    ("function_profile_enabled", "x", "EINVAL"), ("trace_stat/function0", "x", "EINVAL"),
]


def write_once(path, text):
    """What one write(2) says."""
    number = os.open(path, os.O_WRONLY)
    try:
        return os.write(number, text.encode())
    except OSError as error:
        return errno.errorcode[error.errno]
    finally:
        try:
            os.close(number)
        except OSError:
            pass


def test_each_row_takes_and_refuses_what_linuxs_does(mounted):
    wrong = []
    for row, text, wanted in WRITES:
        got = write_once(mounted.path / row, text)
        if got != wanted:
            wrong.append((row, text[:20], wanted, got))
    assert wrong == []


def test_each_row_that_can_be_written_is_in_the_table(mounted):
    rows = {re.sub(r"\d+", "0", row) for row, _, _ in WRITES}
    for directory, folders, files in os.walk(mounted.path):
        folders[:] = [name for name in folders
                      if name not in ("instances", "options", "per_thread", "ftrace",
                                      "tracing_enable") and not re.fullmatch(r"cpu[1-9]\d*", name)]
        for name in files:
            path = os.path.relpath(os.path.join(directory, name), mounted.path)
            mode = os.stat(os.path.join(directory, name)).st_mode
            assert not mode & 0o222 or path in rows, path


# One CPU's trace_pipe


def two_cpus(mounted):
    """Numbers of CPUs that have files: of two that the program runs on, or the same one twice."""
    listed = sorted(int(path.name.removeprefix("cpu")) for path in (mounted.path / "per_cpu").iterdir())
    allowed = [cpu for cpu in listed if cpu in os.sched_getaffinity(mounted.process.pid)]
    return (allowed * 2)[:2]


def lines_of(mounted, cpu):
    """What its trace_pipe gives without waiting."""
    return lines_there(mounted.path / f"per_cpu/cpu{cpu}/trace_pipe")


def lines_there(path):
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    text = b""
    try:
        while True:
            text += os.read(pipe, 4096)
    except BlockingIOError:
        pass
    finally:
        os.close(pipe)
    return text.decode().splitlines()


def lines(text):
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_each_record_leaves_by_its_cpus_pipe_once(mounted):
    seen = []
    cpus = two_cpus(mounted)
    mounted.write("current_tracer", "function")
    for round in range(6):
        mounted.calls("t5" if round % 2 else 5)
        whole = lines(mounted.read("trace"))
        cpu = cpus[round % 2]
        gone = lines_of(mounted, cpu)
        assert gone == [line for line in whole if f"[{cpu:03}]" in line]
        assert lines(mounted.read("trace")) == [line for line in whole if line not in gone]
        assert lines_of(mounted, cpu) == []
        seen += gone
    seen += lines(mounted.read("trace"))
    pipe = os.open(mounted.path / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
    rest = lines(mounted.read("trace"))
    assert not rest or os.read(pipe, 65536).decode().splitlines() == rest
    os.close(pipe)
    assert lines(mounted.read("trace")) == []
    called = collections.Counter(re.findall(r": (\w+) <-", "\n".join(seen)))
    assert called == {"middle": 15, "leaf": 75, "other": 15, "work": 12}


def test_a_threads_pipe_leaves_out_what_cpus_pipes_have_given(mounted):
    mounted.write("current_tracer", "function")
    mounted.calls(5)
    gone = [line for cpu in sorted(set(two_cpus(mounted))) for line in lines_of(mounted, cpu)]
    assert sum(": leaf <-" in line for line in gone) == 5
    assert lines_there(mounted.path / f"per_thread/{mounted.traced()}/trace_pipe") == []


def test_a_cpus_pipe_and_the_whole_one_exclude_each_other(mounted):
    paths = [mounted.path / f"per_cpu/cpu{cpu}/trace_pipe" for cpu in sorted(set(two_cpus(mounted)))]
    pipes = [os.open(path, os.O_RDONLY | os.O_NONBLOCK) for path in paths]
    assert refused(os.open, mounted.path / "trace_pipe", os.O_RDONLY) == errno.EBUSY
    assert refused(os.open, paths[0], os.O_RDONLY) == errno.EBUSY
    for pipe in pipes:
        os.close(pipe)


def test_a_cpus_trace_is_emptied_alone(mounted):
    mounted.write("current_tracer", "function")
    mounted.calls(10)
    whole = lines(mounted.read("trace"))
    cpu = two_cpus(mounted)[0]
    mounted.write(f"per_cpu/cpu{cpu}/trace", "")
    assert lines(mounted.read("trace")) == [line for line in whole if f"[{cpu:03}]" not in line]


# Lists of functions


@pytest.fixture
def loader(graftrace, compile, tmp_path):
    library = tmp_path / "libfar.so"
    built = compile(LIBRARY, "-O2", "-shared", "-fPIC")
    library.write_bytes(built.read_bytes())
    one = Mounted(graftrace, compile(LOADER, "-O2", "-fpatchable-function-entry=5", "-ldl"))
    one.library = library
    yield one
    one.end_anyhow()


def test_functions_of_an_object_that_is_loaded_later_are_waited_for(loader):
    loader.write("set_ftrace_filter", "d*:mod:libfar.so")
    assert loader.read("set_ftrace_filter") == "d*:mod:libfar.so\n"
    loader.write("current_tracer", "function_graph")
    loader.calls("call")
    assert function_names(loader.read("trace")) == []
    loader.calls(loader.library)
    loader.calls("call")
    assert loader.read("set_ftrace_filter") == "deep [libfar.so]\n"
    assert function_names(loader.read("trace")) == ["deep"]
    loader.write("set_ftrace_filter", "near", os.O_APPEND)
    assert sorted(loader.read("set_ftrace_filter").splitlines()) == ["deep [libfar.so]", "near"]
    loader.write("set_ftrace_filter", "!d*:mod:libfar.so", os.O_APPEND)
    assert loader.read("set_ftrace_filter") == "near\n"
    loader.write("trace", "")
    loader.calls("call")
    assert function_names(loader.read("trace")) == ["near"]


def test_an_instance_waits_for_functions_of_an_object_too(loader):
    loader.write("current_tracer", "function_graph")
    paths = [loader.path / "instances" / name for name in ("only", "not")]
    for path, file in zip(paths, ("set_ftrace_filter", "set_ftrace_notrace")):
        path.mkdir()
        (path / file).write_text("d*:mod:libfar.so")
        (path / "current_tracer").write_text("function_graph")
    loader.calls(loader.library)
    loader.calls("call")
    assert function_names((paths[0] / "trace").read_text()) == ["deep"]
    assert (paths[0] / "set_ftrace_filter").read_text() == "deep [libfar.so]\n"
    names = function_names((paths[1] / "trace").read_text())
    assert "deep" not in names and "far" in names


def test_what_is_below_a_function_is_asked_of_loaded_objects_alone(loader):
    for name in ("set_graph_function", "set_graph_notrace"):
        assert refused(loader.write, name, "d*:mod:libfar.so") == errno.EINVAL
    loader.calls(loader.library)
    loader.write("set_graph_function", "d*:mod:libfar.so")
    assert loader.read("set_graph_function") == "deep [libfar.so]\n"


def test_a_name_that_was_written_twice_is_taken_out_at_once(mounted):
    for name in ("leaf", "leaf", "other"):
        mounted.write("set_ftrace_filter", name, os.O_APPEND)
    mounted.write("set_ftrace_filter", "!leaf", os.O_APPEND)
    assert mounted.read("set_ftrace_filter") == "other\n"


def test_functions_of_an_object_that_is_loaded_later_can_be_left_out(loader):
    loader.write("set_ftrace_notrace", "deep:mod:libfar.so")
    assert loader.read("set_ftrace_notrace") == "deep:mod:libfar.so\n"
    loader.write("current_tracer", "function_graph")
    loader.calls(loader.library)
    loader.write("trace", "")
    loader.calls("call")
    assert function_names(loader.read("trace")) == ["near", "far"], loader.read("trace")


def test_touched_functions_were_traced_at_some_time(mounted):
    assert mounted.read("touched_functions") == ""
    mounted.write("set_ftrace_filter", "leaf")
    mounted.write("current_tracer", "function")
    assert mounted.read("touched_functions") == "leaf (1)\n"
    mounted.write("set_ftrace_filter", "other")
    assert mounted.read("enabled_functions") == "other (1)\n"
    assert sorted(mounted.read("touched_functions").splitlines()) == ["leaf (0)", "other (1)"]
    mounted.write("current_tracer", "nop")
    assert mounted.read("enabled_functions") == ""
    assert sorted(mounted.read("touched_functions").splitlines()) == ["leaf (0)", "other (0)"]


def test_names_of_more_threads_than_are_kept_are_forgotten(mounted):
    mounted.write("current_tracer", "function")
    mounted.calls("t1")
    assert "<...>" not in mounted.read("trace")
    mounted.write("saved_cmdlines_size", "1")
    assert len(mounted.read("saved_cmdlines").splitlines()) == 1
    assert "<...>" in mounted.read("trace")
    mounted.write("saved_cmdlines_size", "100")
    assert "<...>" not in mounted.read("trace")


def test_a_directory_that_is_no_instances_cannot_be_made(mounted):
    assert refused(os.mkdir, mounted.path / "options" / "mine") == errno.EPERM
