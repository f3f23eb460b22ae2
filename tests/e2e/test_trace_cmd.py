# SPDX-License-Identifier: MIT
"""Stock trace-cmd, and a program of libtracefs, drive a mounted program as they drive a kernel."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import PATIENCE, wait_until
from mounted import PROGRAM, Mounted, function_names, has_opened

# Of a line of trace-cmd report: task, pid, CPU, time, event, text.
LINE = re.compile(r"^\s*(\S+)-(\d+)\s+\[(\d+)\]\s+(\d+\.\d+): (\w+):\s+(.*)$", re.M)


@pytest.fixture(scope="module")
def program(compile):
    return compile(PROGRAM, "-O1", "-pthread", "-fpatchable-function-entry=5")


@pytest.fixture
def mounted(graftrace, program):
    one = Mounted(graftrace, program)
    yield one
    one.end_anyhow()


def trace_cmd(mounted, *words):
    """Runs it in front of the mount; what it says."""
    done = mounted.graftrace("mount", "--enter", mounted.path, "--", "trace-cmd", *words,
                             timeout=PATIENCE)
    return done.stdout


def report(mounted, file, *options):
    """Lines of the report as (task, pid, cpu, time, event, text)."""
    return LINE.findall(trace_cmd(mounted, "report", *options, "-i", file))


# System calls in which a recorder waits for the trace: read, poll, pselect6, ppoll, splice.
WAITING = {"0", "7", "270", "271", "275"}


def recorders(process):
    """How many processes of trace-cmd wait for the trace: one that is told to end before it comes to
    that records nothing, not even what is there."""
    count = 0
    listed = subprocess.run(["ps", "--ppid", str(process.pid), "-o", "pid="], text=True,
                            capture_output=True, timeout=PATIENCE)
    for child in listed.stdout.split():
        try:
            files = [os.readlink(link) for link in Path(f"/proc/{child}/fd").iterdir()]
            call = Path(f"/proc/{child}/syscall").read_text().split()
        except OSError:
            continue
        count += call[0] in WAITING and any(name.endswith("trace_pipe_raw") for name in files)
    return count


def begin_recording(mounted, file, *options):
    """Starts trace-cmd record, and waits until all its recorders read. A line to it ends it."""
    process = mounted.graftrace.start(
        "mount", "--enter", mounted.path, "--", "trace-cmd", "record", *options, "-o", file,
        "sh", "-c", "echo started; read line", stdin=subprocess.PIPE)
    for line in process.stdout:
        if line == "started\n":
            break
    cpus = len(list((mounted.path / "per_cpu").iterdir()))
    wait_until(lambda: recorders(process) == cpus, "the recorders")
    return process


def record(mounted, calls, *options, during="true"):
    """Records while the program does `calls` (each an argument of Mounted.calls), and then the shell
    `during`."""
    process = begin_recording(mounted, "calls.dat", *options)
    for one in calls:
        mounted.calls(one)
    mounted.sh(during)
    _, said = process.communicate("\n", timeout=PATIENCE)
    assert process.returncode == 0, said


# What there is


def test_list_names_tracers_functions_options_and_the_one_event(mounted):
    assert trace_cmd(mounted, "list", "-t").split() == ["function_graph", "function", "nop"]
    assert sorted(trace_cmd(mounted, "list", "-f").split()) == [
        "leaf", "main", "middle", "other", "work"]
    assert trace_cmd(mounted, "list", "-f", "^m").split() == ["middle", "main"]
    options = trace_cmd(mounted, "list", "-o").split()
    assert {"funcgraph-duration", "nofuncgraph-proc"} <= set(options)
    assert trace_cmd(mounted, "list", "-e").split() == ["sched:sched_switch"]


def test_by_hand_it_takes_a_namespace_and_two_bind_mounts(mounted):
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", r"""
         umount -l -a -t tracefs
         mount -t tracefs tracefs /sys/kernel/tracing
         mount --bind "$0" /sys/kernel/tracing
         mount --bind "$0/kallsyms" /proc/kallsyms
         trace-cmd list -f
         grep leaf /proc/kallsyms""", mounted.path],
        capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert "middle\n" in done.stdout
    assert re.search(r"^[0-9a-f]{16} t leaf$", done.stdout, re.M)


def test_a_tracefs_that_is_mounted_elsewhere_is_not_asked(mounted, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", r"""
         mount -t tracefs tracefs "$1"
         "$2" mount --enter "$0" -- trace-cmd list -f
         test -e "$1/trace" """, mounted.path, elsewhere, mounted.graftrace.path],
        capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["leaf", "main", "middle", "other", "work"]


# Instances


def test_instances_are_started_shown_and_reset(mounted):
    trace_cmd(mounted, "start", "-p", "function_graph", "-l", "leaf",
              "-B", "one", "-p", "function", "-l", "other")
    assert mounted.read("instances/one/current_tracer") == "function\n"
    assert mounted.read("instances/one/set_ftrace_filter") == "other\n"
    mounted.calls(2)
    shown = trace_cmd(mounted, "show")
    assert function_names(shown) == ["leaf", "leaf"]
    one = trace_cmd(mounted, "show", "-B", "one")
    assert one == mounted.read("instances/one/trace")
    assert re.findall(r": (\w+) <-", one) == ["other"]
    stat = trace_cmd(mounted, "stat", "-B", "one")
    assert "Instance: one" in stat and "Tracer: function\n" in stat
    trace_cmd(mounted, "reset", "-B", "one")
    assert mounted.read("instances/one/current_tracer") == "nop\n"
    assert mounted.read("current_tracer") == "function_graph\n"
    assert trace_cmd(mounted, "show") == shown
    trace_cmd(mounted, "reset", "-a")
    assert mounted.read("current_tracer") == "nop\n"
    trace_cmd(mounted, "reset", "-a", "-d")
    assert os.listdir(mounted.path / "instances") == []


def test_record_into_an_instance(mounted):
    record(mounted, [3], "-B", "rec", "-p", "function_graph", "-l", "leaf", "-l", "middle")
    lines = [line for line in trace_cmd(mounted, "report", "-i", "calls.dat").splitlines()
             if line.startswith("rec:")]
    names = re.findall(r"(\w+)\(\)", "\n".join(lines))
    assert names == ["middle", "leaf", "leaf", "leaf"]
    assert mounted.read("current_tracer") == "nop\n"
    assert mounted.read("trace").count("leaf") == 0
    assert os.listdir(mounted.path / "instances") == []


# Without a file


def test_start_show_stat_stop_and_reset(mounted):
    trace_cmd(mounted, "start", "-p", "function_graph", "-g", "middle", "-l", "middle", "-l",
              "leaf", "-l", "other", "-n", "other")
    assert mounted.read("current_tracer") == "function_graph\n"
    assert sorted(mounted.read("set_ftrace_filter").split()) == ["leaf", "middle", "other"]
    # with function_graph trace-cmd writes -n there, where there is such a file
    assert mounted.read("set_graph_notrace") == "other\n"
    assert mounted.read("set_graph_function") == "middle\n"
    mounted.calls(2)
    shown = trace_cmd(mounted, "show")
    assert shown == mounted.read("trace")
    assert re.findall(r"\| +(\w+)\(\)", shown) == ["middle", "leaf", "leaf"]
    stat = trace_cmd(mounted, "stat")
    assert "Tracer: function_graph" in stat
    assert re.search(r"Function Graph Filter:\s+middle\n", stat)
    assert "Tracing is enabled" in stat
    trace_cmd(mounted, "stop")
    assert mounted.read("tracing_on") == "0\n"
    assert "Tracing is disabled" in trace_cmd(mounted, "stat")
    trace_cmd(mounted, "restart")
    assert mounted.read("tracing_on") == "1\n"
    trace_cmd(mounted, "reset")
    assert mounted.read("current_tracer") == "nop\n"
    for name in ("set_ftrace_filter", "set_graph_function"):
        assert mounted.read(name) == "#### all functions enabled ####\n"
    for name in ("set_ftrace_notrace", "set_graph_notrace"):
        assert mounted.read(name) == "#### no functions disabled ####\n"


def test_show_follows_trace_pipe(mounted):
    trace_cmd(mounted, "start", "-p", "function_graph")
    process = mounted.graftrace.start("mount", "--enter", mounted.path, "--", "trace-cmd", "show",
                                      "-p")
    wait_until(lambda: has_opened(process, "/sys/kernel/tracing/trace_pipe"), "show -p")
    mounted.calls(2)
    mounted.end()
    text, _ = process.communicate(timeout=PATIENCE)
    assert function_names(text)[:4] == ["middle", "leaf", "leaf", "other"]


def test_a_snapshot_is_taken_shown_and_cleared(mounted):
    trace_cmd(mounted, "start", "-p", "function_graph")
    mounted.calls(2)
    trace_cmd(mounted, "snapshot", "-s")
    assert function_names(trace_cmd(mounted, "snapshot")) == ["middle", "leaf", "leaf", "other"]
    assert function_names(mounted.read("trace")) == []
    trace_cmd(mounted, "snapshot", "-f")
    assert "Snapshot is freed" in trace_cmd(mounted, "snapshot")


# Into a file


def test_extract_copies_a_recording(graftrace, program):
    graftrace("record", "-o", "calls.data", program, stdin="3\n", code=3)
    directory = graftrace.directory / "recorded"
    directory.mkdir()
    process = graftrace.start("mount", directory, "calls.data")
    wait_until((directory / "trace").exists, "the mount")
    graftrace("mount", "--enter", directory, "--", "trace-cmd", "extract", "-o", "calls.dat",
              timeout=PATIENCE)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    shown = subprocess.run(["trace-cmd", "report", "-i", "calls.dat"], cwd=graftrace.directory,
                           text=True, capture_output=True, timeout=PATIENCE).stdout
    assert re.findall(r"\| +(\w+)\(\)", shown) == ["main", "middle", "leaf", "leaf", "leaf", "other"]


def test_extract_takes_what_is_in_the_ring_out_of_it(mounted):
    trace_cmd(mounted, "start", "-p", "function_graph")
    mounted.calls(3)
    trace_cmd(mounted, "stop")
    text = mounted.read("trace")
    trace_cmd(mounted, "extract", "-o", "calls.dat")
    lines = report(mounted, "calls.dat")
    shown = [line[5].split("|  ")[1] for line in lines]
    assert shown == [line.split("|  ")[1] for line in text.splitlines() if line[0] != "#"]
    assert [line[4] for line in lines][:2] == ["funcgraph_entry", "funcgraph_entry"]
    assert {line[0] for line in lines} == {mounted.read("saved_cmdlines").split()[1]}
    assert "leaf" not in mounted.read("trace")


@pytest.mark.parametrize("options", [[], ["--nosplice"]], ids=["splice", "read"])
def test_record_has_every_call_with_its_time(mounted, options):
    record(mounted, [20000], "-p", "function_graph", *options)
    lines = report(mounted, "calls.dat")
    texts = [line[5] for line in lines]
    leaves = [text for text in texts if text.endswith("leaf();")]
    assert len(leaves) == 20000
    assert all(re.match(r"[+!#*@$ ]*\d+\.\d+ us +\|    leaf\(\);$", text) for text in leaves)
    assert sum(text.endswith("middle() {") for text in texts) == 1
    assert sum(text.endswith("other();") for text in texts) == 1
    assert sum(text.endswith("|  }") for text in texts) == 1
    times = [float(line[3]) for line in lines]
    assert times == sorted(times)
    assert "DROPPED" not in trace_cmd(mounted, "report", "-i", "calls.dat")


def test_threads_on_all_cpus_are_recorded_whole(mounted):
    record(mounted, ["t3000"] * 3, "-p", "function_graph")
    lines = report(mounted, "calls.dat")
    threads = {}
    for _, tid, _, _, _, text in lines:
        # No leaf to trace-cmd where the next record of the CPU is another thread's.
        if text.endswith(("leaf();", "leaf() {")):
            threads[tid] = threads.get(tid, 0) + 1
    assert list(threads.values()) == [3000] * 12


def test_the_function_tracer_has_its_callers(mounted):
    record(mounted, [2], "-p", "function")
    lines = report(mounted, "calls.dat", "-O", "parent")
    assert [line[4] for line in lines] == ["function"] * 4
    assert [re.sub(r"\s+", " ", line[5]) for line in lines] == [
        "middle <-- main", "leaf <-- middle", "leaf <-- middle", "other <-- middle"]


def test_a_filter_and_a_depth_are_those_of_the_control_files(mounted):
    record(mounted, [5], "-p", "function_graph", "-g", "middle", "--max-graph-depth", "1")
    names = [line[5].split("|")[1].strip() for line in report(mounted, "calls.dat")]
    assert names == ["middle();"]


def test_markers_are_among_the_calls(mounted):
    record(mounted, [1], "-p", "function_graph", during="echo hello > trace_marker")
    lines = report(mounted, "calls.dat")
    prints = [i for i, line in enumerate(lines) if line[4] == "print"]
    assert [lines[i][5] for i in prints] == ["tracing_mark_write: hello"]
    assert prints == [len(lines) - 1]


def test_what_was_recorded_is_counted_as_read(mounted):
    record(mounted, [1000], "-p", "function_graph", during="cat stats > ../stats")
    counts = (mounted.path.parent / "stats").read_text()
    entries, read = (int(re.search(rf"^{name}: (\d+)$", counts, re.M)[1])
                     for name in ("entries", "read events"))
    assert entries + read == 2 * 1002


def test_the_kernel_and_its_own_tracing_are_left_alone(mounted):
    def kernel():
        mounts = open("/proc/self/mounts").read().splitlines()
        # without trees that other tests have mounted just now
        return open("/proc/kallsyms").read(4096), [line for line in mounts if "fuse.graftrace" not in line]
    before = kernel()
    record(mounted, [1], "-p", "function_graph")
    assert kernel() == before


# libtracefs

TRACEFS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tracefs.h>

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

static int calls;

static int on_event(struct tep_event *event, struct tep_record *record, int cpu, void *data)
{
	unsigned long long func;

	(void)cpu;
	(void)data;
	if (strcmp(event->name, "funcgraph_entry") == 0 &&
	    tep_get_field_val(NULL, event, "func", record, &func, 1) == 0 && func != 0)
		calls++;
	return 0;
}

/* The directory; then waits for a line while the program makes 5 calls of leaf. */
int main(int argc, char **argv)
{
	struct tep_handle *tep;
	char line[16];
	char **words;
	char *text;

	(void)argc;
	CHECK(tracefs_set_tracing_dir(argv[1]) == 0);
	CHECK(strcmp(tracefs_tracing_dir(), argv[1]) == 0);
	words = tracefs_tracers(NULL);
	CHECK(words != NULL && words[0] != NULL);
	tracefs_list_free(words);
	CHECK(tracefs_trace_is_on(NULL) == 1);
	CHECK(tracefs_trace_off(NULL) == 0 && tracefs_trace_is_on(NULL) == 0);
	CHECK(tracefs_trace_on(NULL) == 0 && tracefs_trace_is_on(NULL) == 1);
	CHECK(tracefs_tracer_set(NULL, TRACEFS_TRACER_FUNCTION_GRAPH) == 0);
	text = tracefs_instance_file_read(NULL, "current_tracer", NULL);
	CHECK(text != NULL && strcmp(text, "function_graph\n") == 0);
	free(text);
	CHECK(tracefs_function_filter(NULL, "leaf", NULL, TRACEFS_FL_RESET) == 0);
	CHECK(tracefs_function_filter(NULL, "mid*", NULL, 0) == 0);
	CHECK(tracefs_function_filter(NULL, "nosuch", NULL, 0) != 0);
	text = tracefs_instance_file_read(NULL, "set_ftrace_filter", NULL);
	CHECK(text != NULL && strstr(text, "leaf\n") && strstr(text, "middle\n") &&
	      !strstr(text, "other\n"));
	free(text);
	CHECK(tracefs_option_enable(NULL, TRACEFS_OPTION_SYM_ADDR) == 0);
	CHECK(tracefs_option_is_enabled(NULL, TRACEFS_OPTION_SYM_ADDR));
	CHECK(tracefs_option_disable(NULL, TRACEFS_OPTION_SYM_ADDR) == 0);
	CHECK(!tracefs_option_is_enabled(NULL, TRACEFS_OPTION_SYM_ADDR));
	printf("ready\n");
	fflush(stdout);
	CHECK(fgets(line, sizeof line, stdin) != NULL);
	tep = tracefs_local_events(argv[1]);
	CHECK(tep != NULL);
	CHECK(tracefs_iterate_raw_events(tep, NULL, NULL, 0, on_event, NULL) == 0);
	printf("%d\n", calls);
	tep_free(tep);
	return 0;
}
"""


def test_libtracefs_works_on_the_directory(mounted, compile):
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libtracefs"], check=True,
                           capture_output=True, text=True).stdout.split()
    user = compile(TRACEFS, "-Wl,--no-as-needed", *flags)
    process = subprocess.Popen([user, mounted.path], stdin=subprocess.PIPE, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = process.stdout.readline()
    assert line == "ready\n", process.stderr.read()
    mounted.calls(5)
    said, errors = process.communicate("\n", timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert said == "6\n"  # leaf, and middle


# The command line of --enter


def test_enter_passes_on_the_exit_code_and_tells_what_it_cannot(mounted):
    mounted.graftrace("mount", "--enter", mounted.path, "--", "sh", "-c", "exit 5", code=5)
    told = mounted.graftrace("mount", "--enter", "/", "--", "true", code=1).stderr
    assert "no directory of control files" in told
    told = mounted.graftrace("mount", "--enter", mounted.path, "--", "nosuch", code=127).stderr
    assert "cannot run 'nosuch'" in told
    mounted.graftrace("mount", "--enter", mounted.path, code=2)


def test_record_of_switches_among_the_calls(mounted):
    record(mounted, [1, 2], "-p", "function_graph", "-e", "sched_switch")
    text = trace_cmd(mounted, "report", "-i", "calls.dat")
    assert len(re.findall(r"funcgraph_entry:.*leaf\(\)", text)) == 3
    # the program waits for its next line between them
    assert re.search(r"sched_switch: +\S+:\d+ \[120\] S ==> <\.\.\.>:0 \[120\]", text)
    assert re.search(r"sched_switch: +<\.\.\.>:0 \[120\] R ==> \S+:\d+ \[120\]", text)
    assert mounted.read("events/sched/sched_switch/enable") == "0\n"


def test_stacks_are_among_the_calls(mounted):
    record(mounted, [2], "-p", "function", "--func-stack", "-l", "leaf")
    text = trace_cmd(mounted, "report", "-i", "calls.dat")
    assert len(re.findall(r"kernel_stack: +<stack trace ?>\n=> leaf \(\w+\)\n=> middle \(\w+\)\n", text)) == 2
