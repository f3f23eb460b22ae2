# SPDX-License-Identifier: MIT
"""Attaching at unhappy moments: while the process executes another program, while others attach."""

import re
import subprocess

import pytest


@pytest.fixture
def program(compile):
    return compile("execs.c", "-O2")


def start(program, times, ms):
    return subprocess.Popen([program, str(times), str(ms)], stdin=subprocess.PIPE, text=True)


@pytest.mark.parametrize("ms", [3, 10, 30])
def test_a_process_that_executes_another_program_meanwhile_is_recorded(ms, program, graftrace):
    process = start(program, 8, ms)
    done = graftrace("record", "-P", process.pid, "--stop-when", "called hit 5", timeout=120)
    assert "has ended" not in done.stderr
    process.communicate("x", timeout=60)
    assert process.returncode == 7
    assert re.search(r"^called,", graftrace("report", "--format", "csv").stdout, re.M)


def test_of_several_that_attach_at_once_one_records_and_the_others_say_who_it_is(program, graftrace):
    process = start(program, 0, 0)
    several = [graftrace.start("record", "-o", f"data{i}", "-P", process.pid, "--for", "3s")
               for i in range(3)]
    texts = [one.communicate(timeout=60)[1] for one in several]
    process.communicate("x", timeout=60)
    assert process.returncode == 7
    by = [i for i, one in enumerate(several) if one.returncode == 0]
    assert by, texts
    recorders = "|".join(str(several[i].pid) for i in by)
    for i, text in enumerate(texts):
        if i not in by:
            assert re.search(rf"is being recorded already, by graftrace \(process ({recorders})\)", text)


WALKS = r"""
#define _GNU_SOURCE
#include <execinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unwind.h>
#define NOINLINE __attribute__((noinline))

static int walked;

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *data)
{
	(void)context, (void)data;
	walked++;
	return _URC_NO_REASON;
}

NOINLINE int looks(int n)
{
	void *frames[100];
	if (n > 0) {
		int found = looks(n - 1);
		__asm__ volatile("" : "+r"(found));
		return found;
	}
	walked = 0;
	_Unwind_Backtrace(frame, NULL);
	return walked * 100 + backtrace(frames, 100);
}

static void on_time(int signal)
{
	void *frames[100];
	(void)signal;
	backtrace(frames, 100);
}

int main(void)
{
	struct itimerval often = { { 0, 300 }, { 0, 300 } };
	struct pollfd input = { 0, POLLIN, 0 };
	int expected = looks(30);
	signal(SIGPROF, on_time);
	setitimer(ITIMER_PROF, &often, NULL);
	while (poll(&input, 1, 0) <= 0)
		for (int i = 0; i < 20; i++) {
			int found = looks(30);
			if (found != expected) {
				printf("%d frames, not %d\n", found, expected);
				return 99;
			}
		}
	return 7;
}
"""


@pytest.mark.parametrize("flags", [[], ["-static"]], ids=["dynamic", "static"])
def test_walks_over_the_stack_go_on_while_graftrace_comes_and_leaves(flags, graftrace, compile):
    process = subprocess.Popen([compile(WALKS, "-O1", *flags)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    for _ in range(12):
        if process.poll() is None:
            graftrace("record", "-P", process.pid, "--for", "1ms")
    out = process.communicate("x", timeout=60)[0]
    assert (process.returncode, out) == (7, "")
