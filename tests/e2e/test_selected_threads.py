# SPDX-License-Identifier: MIT
"""set_ftrace_pid and set_ftrace_notrace_pid: which threads of a program that runs are traced."""

import collections
import re
from pathlib import Path

import pytest

from served import serving

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define CALLED __attribute__((noinline))

static pthread_barrier_t begin, end;
static int count;
CALLED void by_main(void) { __asm__ volatile(""); }
CALLED void by_worker(void) { __asm__ volatile(""); }
CALLED void by_new(void) { __asm__ volatile(""); }
CALLED void by_child(void) { __asm__ volatile(""); }

static void *work(void *unused)
{
	for (;;) {
		pthread_barrier_wait(&begin);
		for (int i = 0; i < count; i++)
			by_worker();
		pthread_barrier_wait(&end);
	}
	return unused;
}
static void *brief(void *unused) { by_new(); return unused; }

/* "N": main and the worker make N calls each; "thread", "fork": a new one makes one. */
int main(void)
{
	char line[64];
	pthread_t worker;
	pthread_barrier_init(&begin, NULL, 2);
	pthread_barrier_init(&end, NULL, 2);
	pthread_create(&worker, NULL, work, NULL);
	count = 1;
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		if (line[0] == 't') {
			pthread_t other;
			pthread_create(&other, NULL, brief, NULL);
			pthread_join(other, NULL);
		} else if (line[0] == 'f') {
			pid_t child = fork();
			if (child == 0) {
				by_child();
				_exit(0);
			}
			waitpid(child, NULL, 0);
		} else {
			count = atoi(line);
			pthread_barrier_wait(&begin);
			for (int i = 0; i < count; i++)
				by_main();
			pthread_barrier_wait(&end);
		}
		printf("done\n");
		fflush(stdout);
	}
	_exit(3);
}
"""


@pytest.fixture
def served(graftrace, compile):
    program = compile(PROGRAM, "-O1", "-pthread", "-fpatchable-function-entry=5")
    with serving(graftrace, program, "-l", "by_*") as served:
        served.calls(1)
        served.put("trace", "")
        yield served


def threads(served):
    """(first thread, the worker), whose number may be lower: numbers begin anew."""
    numbers = list(map(int, re.findall(r">(\d+)/?<", served.get("per_thread/"))))
    assert len(numbers) == 2
    return sorted(numbers, key=lambda tid: f"\nTgid:\t{tid}\n" not in Path(f"/proc/{tid}/status").read_text())


def called(served):
    """Calls by function since the last time; empties the trace."""
    text = served.get("trace")
    served.put("trace", "")
    # a call in which its CPU has gone to another thread is shown open
    return dict(collections.Counter(re.findall(r"\b(by_\w+)\(\)(?:;| {)", text)))


def test_only_the_threads_of_the_list_are_traced(served):
    main, worker = threads(served)
    assert served.get("set_ftrace_pid") == "no pid\n"
    served.calls(10)
    assert called(served) == {"by_main": 10, "by_worker": 10}
    served.put("set_ftrace_pid", f"{worker}")
    assert served.get("set_ftrace_pid") == f"{worker}\n"
    served.calls(20)
    assert called(served) == {"by_worker": 20}
    assert served.ask("POST", "set_ftrace_pid", f"{main} 999999\n")[0] == 204
    assert served.get("set_ftrace_pid") == f"{main}\n{worker}\n999999\n"
    served.calls(30)
    assert called(served) == {"by_main": 30, "by_worker": 30}
    served.put("set_ftrace_pid", f"{main}")
    served.calls(5)
    assert called(served) == {"by_main": 5}
    served.put("set_ftrace_pid", "")
    assert served.get("set_ftrace_pid") == "no pid\n"
    served.calls(2)
    assert called(served) == {"by_main": 2, "by_worker": 2}


def test_threads_of_the_other_list_are_not_traced(served):
    main, worker = threads(served)
    served.put("set_ftrace_notrace_pid", f"{worker}")
    served.calls(7)
    assert called(served) == {"by_main": 7}
    served.put("set_ftrace_pid", f"{worker} {main}")
    served.calls(7)
    assert called(served) == {"by_main": 7}
    served.put("tracing_on", "0")
    served.calls(7)
    served.put("tracing_on", "1")
    served.put("set_ftrace_notrace_pid", "")
    served.calls(3)
    assert called(served) == {"by_main": 3, "by_worker": 3}


def do(served, what):
    served.process.stdin.write(what + "\n")
    served.process.stdin.flush()
    assert served.process.stdout.readline() == "done\n"


@pytest.mark.parametrize("what, function", [("thread", "by_new"), ("fork", "by_child")])
def test_what_a_listed_thread_starts_follows_if_it_shall(served, what, function):
    main, worker = threads(served)
    served.put("options/function-fork", "0")
    served.put("set_ftrace_pid", f"{main}")
    do(served, what)
    assert called(served) == {}
    served.put("options/function-fork", "1")
    do(served, what)
    assert called(served) == {function: 1}
    served.put("set_ftrace_pid", f"{worker}")
    do(served, what)
    assert called(served) == {}
    served.put("set_ftrace_pid", "")
    served.put("set_ftrace_notrace_pid", f"{main}")
    do(served, what)
    assert called(served) == {}
    served.put("options/function-fork", "0")
    do(served, what)
    assert called(served) == {function: 1}


def test_the_profiler_counts_these_threads_alone(served):
    _, worker = threads(served)
    served.put("set_ftrace_pid", f"{worker}")
    served.put("function_profile_enabled", "1")
    served.calls(11)
    table = served.get("trace_stat/function0")
    assert "by_worker" in table and "by_main" not in table


def test_what_is_no_number_is_refused(served):
    main, _ = threads(served)
    served.put("set_ftrace_pid", "x", status=400)
    served.put("set_ftrace_pid", f"{main} -1", status=400)
    assert served.get("set_ftrace_pid") == "no pid\n"
