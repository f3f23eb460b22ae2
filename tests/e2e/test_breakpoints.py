# SPDX-License-Identifier: MIT
"""--breakpoints: functions that no jump fits in, in programs that do all that can be done with SIGTRAP."""

import csv
import io
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from attaching import Running, code, end_recording, maps, start_recording, until_seen
from conftest import PATIENCE, wait_until

FLAGS = ["-O1", "-fno-asynchronous-unwind-tables", "-pthread"]
# As many calls as the program makes.
CALLS = {"four": 11, "two": 4025, "one": 4024}
MISSING = ("shorter than a jump", "a jump leads", "calls within", "own loop", "goes on", "cannot be moved",
           "needed for the patch", "two pages", "needs a breakpoint")


def run(words, directory):
    return subprocess.run([str(word) for word in words], cwd=directory, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=PATIENCE)


def calls_of(graftrace):
    report = graftrace("report").stdout
    return {name: int(re.search(rf"^ +[\d.]+ +(\d+) .* {name}$", report, re.M).group(1)) for name in CALLS}


@pytest.fixture(scope="module")
def program(compile):
    return compile("breakpoints.c", *FLAGS)


@pytest.mark.parametrize("tracer", ["function_graph", "function"])
@pytest.mark.parametrize("how, ended", [("", 7), ("trap", -5)])
def test_whatever_a_program_does_with_sigtrap_it_does_traced(how, ended, tracer, program, graftrace, tmp_path):
    plain = run([program, how], tmp_path)
    assert plain.returncode == ended
    traced = graftrace("record", "--breakpoints", "-p", tracer, "--", program, how, code=ended)
    assert traced.stdout == plain.stdout
    assert calls_of(graftrace) == CALLS


def test_without_being_asked_no_breakpoint_is_set(program, graftrace):
    graftrace("record", "--", program, code=7)
    report = graftrace("report").stdout
    assert " four\n" not in report and " leaf\n" in report


def signals_of(pid):
    with open(f"/proc/{pid}/status") as status:
        return [line for line in status if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]


def is_in_its_loop(pid):
    """Of the program with "loop": its thread has begun, and main has no more blocked than it asked
    for (jumps() ends with SIGUSR1), as it has while it makes a thread."""
    with open(f"/proc/{pid}/status") as status:
        blocked = next(int(line.split()[1], 16) for line in status if line.startswith("SigBlk"))
    return len(os.listdir(f"/proc/{pid}/task")) == 2 and blocked == 1 << (signal.SIGUSR1 - 1)


def test_attaching_and_detaching_puts_bytes_and_signals_back(program, graftrace):
    with subprocess.Popen([str(program), "loop"], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("action 0 1"):
                break
        wait_until(lambda: is_in_its_loop(process.pid))
        before = maps(process.pid), code(process.pid), signals_of(process.pid)

        def both_were_seen(_):
            assert (maps(process.pid), code(process.pid), signals_of(process.pid)) == before
            report = graftrace("report", code=None).stdout
            return re.search(r" one$", report, re.M) and re.search(r" two$", report, re.M)

        for tracer in ("function_graph", "function", "function_graph"):
            until_seen(lambda: graftrace("record", "--breakpoints", "-p", tracer, "-P", process.pid, "--for",
                                         "100ms"), both_were_seen)
        assert process.poll() is None
        process.kill()


def test_threads_that_are_in_a_breakpoint_all_the_time_are_left_unharmed(program, graftrace):
    """One that has met it, and was stopped before its signal, still needs the recorder's handler."""
    with subprocess.Popen([str(program), "spin"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "spins\n"
        before = code(process.pid), signals_of(process.pid)
        for ways in 3 * [["-p", "nop", "--probe", "one"], []]:
            graftrace("record", "--breakpoints", "-b", "1M", *ways, "-P", process.pid, "--for", "20ms")
            assert process.poll() is None
            assert (code(process.pid), signals_of(process.pid)) == before
        process.kill()


def test_a_killed_recorder_leaves_breakpoints_that_work_and_the_next_one_cleans_up(program, graftrace):
    with subprocess.Popen([str(program), "loop"], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("action 0 1"):
                break
        wait_until(lambda: is_in_its_loop(process.pid))
        before = code(process.pid), signals_of(process.pid)
        recorder = graftrace.start("record", "--breakpoints", "-P", process.pid)
        wait_until(lambda: signals_of(process.pid) != before[1])
        recorder.kill()
        recorder.communicate()
        time.sleep(0.2)
        assert process.poll() is None
        graftrace("record", "-P", process.pid, "--for", "10ms")
        assert (code(process.pid), signals_of(process.pid)) == before
        process.kill()


def test_a_program_that_starts_with_sigtrap_blocked_runs_without_breakpoints(program, graftrace, tmp_path):
    block = "import os, signal, sys; signal.pthread_sigmask(0, {5}); os.execv(sys.argv[1], sys.argv[1:])"
    words = ["/usr/bin/python3", "-c", block, program]
    plain = run(words, tmp_path)
    traced = graftrace("record", "--breakpoints", "--", *words, code=plain.returncode)
    assert traced.stdout == plain.stdout
    assert "no breakpoints: a thread of the process has SIGTRAP blocked" in traced.stderr


WORK = {
    "ld": ["-r", "-o", "out.o", "in.o"],
    "python3": ["-c", "import json, re; print(len(json.dumps(list(range(5000)))), re.sub('a+', 'b', 'caat'))"],
    "bash": ["-c", "trap 'echo trapped' TRAP; f() { echo $1; }; for i in 1 2 3; do f $i; done; kill -TRAP $$; "
                   "(exit 3); echo $?"],
}


@pytest.mark.parametrize("name", WORK)
def test_every_bounded_function_of_real_programs_can_be_traced(name, graftrace, tmp_path):
    path = f"/usr/bin/{name}"
    listed = list(csv.DictReader(io.StringIO(
        graftrace("functions", "--breakpoints", "--format", "csv", path).stdout)))
    assert [row for row in listed if row["traced"] == "no" and
            any(word in row["reason"] for word in MISSING)] == []
    (tmp_path / "in.c").write_text("int x = 3;\nint f(void) { return x; }\n")
    subprocess.run([shutil.which("gcc"), "-c", "in.c"], cwd=tmp_path, check=True)
    plain = run([path, *WORK[name]], tmp_path)
    first = (tmp_path / "out.o").read_bytes() if name == "ld" else b""
    traced = graftrace("record", "--breakpoints", "--libs", "--", path, *WORK[name], code=plain.returncode)
    assert traced.stdout == plain.stdout
    assert first == ((tmp_path / "out.o").read_bytes() if name == "ld" else b"")


# The child has the memory, but signal actions of its own. Functions of one byte, without room beside them.
SHARED = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int tiny(void);
#define FUNCTION(name) ".globl " name "\n.type " name ", @function\n" name ": ret\n.size " name ", . - " name "\n"
__asm__(".text\n.p2align 4\n" FUNCTION("before") FUNCTION("tiny") FUNCTION("behind") FUNCTION("last"));
static char stack[65536];
static volatile int ended;

static int child(void *unused)
{
	while (!ended)
		usleep(1000);
	return unused != NULL;
}

int main(int count, char **words)
{
	if (count > 1 && !strcmp(words[1], "shared") &&
	    clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL) < 0)
		return 2;
	puts("ready");
	fflush(stdout);
	for (int rounds = 0; rounds < 2000; rounds++) {
		tiny();
		usleep(1000);
	}
	ended = 1;
	return 7;
}
"""


@pytest.mark.parametrize("with_child", [False, True])
def test_who_shares_the_memory_is_no_place_for_the_action_of_the_signal(with_child, graftrace, compile):
    words = [compile(SHARED, "-O1")] + (["shared"] if with_child else [])
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        recorded = graftrace("record", "--breakpoints", "-P", process.pid, "--for", "300ms")
        assert process.wait(PATIENCE) == 7
    assert (" tiny\n" in graftrace("report").stdout) == (not with_child)
    assert ("another process shares its memory (vfork, clone)" in recorded.stderr) == with_child


# Nothing traced was called before the child is there.
IGNORING = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int tiny(void);
#define FUNCTION(name) ".globl " name "\n.type " name ", @function\n" name ": ret\n.size " name ", . - " name "\n"
__asm__(".text\n.p2align 4\n" FUNCTION("before") FUNCTION("tiny") FUNCTION("behind") FUNCTION("last"));
static volatile int got;
static void on_trap(int number)
{
	(void)number;
	got++;
}
int main(void)
{
	struct sigaction action = { .sa_handler = on_trap };
	int status;
	sigaction(SIGTRAP, &action, NULL);
	puts("ready");
	fflush(stdout);
	getchar();
	if (vfork() == 0) {
		signal(SIGTRAP, SIG_IGN);
		execlp("true", "true", (char *)0);
		_exit(1);
	}
	wait(&status);
	for (int i = 0; i < 100; i++) {
		tiny();
		usleep(1000);
	}
	puts("called");
	fflush(stdout);
	getchar();
	raise(SIGTRAP);
	return got == 1 && status == 0 ? 7 : 1;
}
"""


def test_what_a_vfork_child_does_with_the_signal_is_its_own(graftrace, compile):
    with Running(compile(IGNORING, "-O1")) as target:
        tracer = start_recording(graftrace, target.pid, "--breakpoints")
        assert target("") == "called"
        said = end_recording(tracer)
        target.send("")
        assert target.process.wait(PATIENCE) == 7
    assert " tiny\n" in graftrace("report").stdout
    assert "keeps the recorder's memory" not in said
