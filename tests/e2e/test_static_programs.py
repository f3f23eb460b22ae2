# SPDX-License-Identifier: MIT
"""Static programs without names: nobody knows which of their functions finds unwind data."""

import re
import subprocess

import pytest

from conftest import PATIENCE



def build(compile, compiler):
    return compile("catches.cc", "-O2", "-static-pie" if compiler == "g++" else "-static", "-s", compiler=compiler)


@pytest.mark.parametrize("compiler, command", [("g++", ["record"]), ("g++", ["profile"]), ("clang++", ["record"])],
                         ids=["g++", "profile", "clang++"])
def test_exceptions_are_caught(compiler, command, compile, graftrace):
    traced = graftrace(*command, "--", build(compile, compiler), 30)
    assert traced.stdout.splitlines()[0] == "0 missing, all caught"


def test_exceptions_are_caught_in_a_process_that_is_attached_to(compile, graftrace):
    process = subprocess.Popen([build(compile, "g++"), "1"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    graftrace("record", "-P", process.pid, "--for", "0.1s")
    assert process.communicate("x", timeout=PATIENCE)[0] == "0 missing, all caught\n"
    assert process.returncode == 0


def test_it_is_said_why_there_are_entries_only(compile, graftrace):
    listing = graftrace("functions", build(compile, "g++")).stdout
    traced = [line for line in listing.splitlines() if re.match(r"  (nops|moved|short|padding) ", line)]
    assert len(traced) > 500
    assert all("entry only: catches exceptions, by an unwinder that is not found" in line
               for line in traced)


def test_programs_that_catch_nothing_or_have_names_are_recorded_whole(compile, graftrace):
    plain = compile("#include <stdio.h>\nint main(void) { return puts(\"x\") < 0; }\n", "-static", "-s")
    named = compile("catches.cc", "-O2", "-static", compiler="g++")
    assert "unwinder that is not found" not in graftrace("functions", plain).stdout
    assert graftrace("record", "--", named, 300).stdout == "0 missing, all caught\n"
    rows = graftrace("report", "--format", "csv").stdout
    assert re.search(r"^middle\(?.*,300,200,\d", rows, re.M), rows[:3000]


CANCELLED = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int pipes[2], destroyed, caught;
struct kept { ~kept() { destroyed++; } };
__attribute__((noinline)) static long waits(int n)
{
	kept one;
	char byte;
	if (n > 0) {
		long result = waits(n - 1);
		__asm__ volatile("" : "+r"(result));
		return result;
	}
	write(pipes[1], "r", 1);
	for (;;)
		read(pipes[0], &byte, 1);
}
static void *thread(void *)
{
	waits(4);
	return NULL;
}
int main()
{
	char byte;
	for (int i = 0; i < 100; i++) {
		pthread_t one;
		void *result;
		int out[2];
		pipe(pipes), pipe(out);
		int in = pipes[0];
		pipes[0] = out[0];
		pthread_create(&one, NULL, thread, NULL);
		read(in, &byte, 1);
		pthread_cancel(one);
		pthread_join(one, &result);
		close(in), close(pipes[1]), close(out[0]), close(out[1]);
	}
	try { throw 1; } catch (int) { caught++; }
	printf("%d destroyed, %d caught\n", destroyed, caught);
}
"""


def test_destructors_of_a_cancelled_thread_run(compile, graftrace):
    program = compile(CANCELLED, "-O2", "-static", "-s", "-w", compiler="g++", suffix=".cc")
    assert graftrace("record", "--", program).stdout == "500 destroyed, 1 caught\n"
    listing = graftrace("functions", program).stdout
    assert "a thread may be cancelled in it, by an unwinder that is not found" in listing


# A handler is nearly always on top of the call that waits.
CANCELLED_IN_HANDLERS = r"""
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>
struct waiting { long cleaned, ready; int pipe[2]; };
struct guard { waiting *of; ~guard() { of->cleaned++; } };
static volatile long sum;
__attribute__((noinline)) static long count(long n)
{
	asm volatile("" : "+r"(n));
	return n <= 0 ? 1 : count(n - 1) + 1;
}
static void on_alarm(int) { sum = sum + count(20); }
__attribute__((noinline)) static long waits(waiting *of, long n)
{
	guard one = { of };
	char byte;
	if (n > 0) {
		long result = waits(of, n - 1) + 1;
		asm volatile("");
		return result;
	}
	__atomic_store_n(&of->ready, 1, __ATOMIC_RELEASE);
	for (;;)
		if (write(of->pipe[1], "x", 1) < 0 || read(of->pipe[0], &byte, 1) < 0)
			pause();
}
static void *thread(void *of)
{
	waits((waiting *)of, 9);
	return 0;
}
int main()
{
	struct sigaction action = {};
	struct itimerval often = { { 0, 211 }, { 0, 211 } };
	int bad = 0;
	action.sa_handler = on_alarm;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, 0);
	setitimer(ITIMER_REAL, &often, 0);
	for (int i = 0; i < 200; i++) {
		waiting of = {};
		pthread_t one;
		void *result;
		pipe(of.pipe);
		pthread_create(&one, 0, thread, &of);
		while (!__atomic_load_n(&of.ready, __ATOMIC_ACQUIRE))
			sched_yield();
		for (volatile int k = 0; k < (i % 50) * 100; k++)
			;
		pthread_cancel(one);
		pthread_join(one, &result);
		bad += of.cleaned != 10;
		close(of.pipe[0]), close(of.pipe[1]);
	}
	printf("%d bad\n", bad);
	try { throw 1; } catch (int) { }
}
"""


@pytest.mark.parametrize("tracer", ["function", "function_graph"])
def test_destructors_run_of_a_thread_that_is_cancelled_below_a_handler(compile, graftrace, tracer):
    program = compile(CANCELLED_IN_HANDLERS, "-O0", "-static", "-s", "-w", compiler="g++", suffix=".cc")
    assert graftrace("record", "-p", tracer, "--", program).stdout == "0 bad\n"
    listing = graftrace("functions", program).stdout
    assert " 0 can be traced" in listing
