# SPDX-License-Identifier: MIT
"""Processes in other PID namespaces (containers), attached to from outside, or begun by what is traced: there they have
other numbers than here."""

import contextlib
import csv
import io
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from attaching import Running, end_recording, is_clean, start_recording

# work() is called as often as each command says. A line for each command: what it came to, and how long it took.
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile int sum, stop;
__attribute__((noinline)) static int work(int x) { sum += x; return sum + 1; }
static void calls(int n)
{
	for (int i = 0; i < n; i++)
		work(i);
}
static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}
static int load(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW);

	return !handle || dlclose(handle);
}
static void *thread(void *unused)
{
	calls(100);
	return unused;
}
static void *long_thread(void *unused)
{
	while (!stop) {
		calls(1);
		usleep(1000);
	}
	return unused;
}
static int threads(void)
{
	pthread_t all[20];

	for (int i = 0; i < 20; i++)
		if (pthread_create(&all[i], NULL, thread, NULL))
			return 1;
	for (int i = 0; i < 20; i++)
		pthread_join(all[i], NULL);
	return 0;
}
static int child(const char *what, char **argv)
{
	calls(100);
	if (!strcmp(what, "exec"))
		execl(argv[0], argv[0], "once", NULL);
	if (!strcmp(what, "clock"))
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	if (load(argv[1]))
		return 1;
	calls(100);
	return 7;
}
static int forked(const char *what, char **argv, int count)
{
	int status, bad = 0;

	for (int i = 0; i < count; i++)
		if (fork() == 0)
			_exit(child(what, argv));
	while (wait(&status) > 0)
		bad += status != 0x700;
	return bad;
}
/* Each child is process 1 of a namespace of its own. */
static int namespaces(char **argv)
{
	int bad = 0;
	pid_t pids[4];

	for (int i = 0; i < 4; i++)
		if ((pids[i] = fork()) == 0)
			_exit(unshare(CLONE_NEWPID) ? 9 : forked("load", argv, 1) ? 1 : 7);
	for (int i = 0; i < 4; i++) {
		int status;

		waitpid(pids[i], &status, 0);
		bad += status != 0x700;
	}
	return bad;
}
int main(int argc, char **argv)
{
	char line[64];
	pthread_t other;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !strcmp(argv[1], "once")) {
		calls(100);
		return 7;
	}
	puts("ready");
	while (fgets(line, sizeof line, stdin)) {
		double begun = now();
		int bad = 0;

		line[strcspn(line, "\n")] = 0;
		if (!strcmp(line, "load"))
			bad = load(argv[1]);
		else if (!strcmp(line, "system"))
			bad = system("true");
		else if (!strcmp(line, "threads"))
			bad = threads();
		else if (!strcmp(line, "namespaces"))
			bad = namespaces(argv);
		else if (!strcmp(line, "long thread"))
			bad = pthread_create(&other, NULL, long_thread, NULL);
		else if (!strcmp(line, "calls"))
			calls(100);
		else
			bad = forked(line, argv, 3);
		printf("%d bad, %.2f s\n", bad, now() - begun);
	}
	stop = 1;
	return 0;
}
"""
LIBRARY = "int unused(int x);\nint unused(int x) { return x * 3; }\n"
ALONE = ["unshare", "--pid", "--fork", "--mount-proc"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"])


@pytest.fixture
def program(compile):
    return str(compile(PROGRAM, "-O1", "-pthread")), str(compile(LIBRARY, "-shared", "-fPIC"))


class Inside(Running):
    """The program in a PID namespace of its own; `pid` is its number outside."""

    def __init__(self, program):
        super().__init__(ALONE[0], *ALONE[1:], *program)
        self.outer = self.process.pid

    def __enter__(self):
        assert self.line() == "ready"
        self.pid = int(Path(f"/proc/{self.outer}/task/{self.outer}/children").read_text())
        assert number_inside(self.pid) == 1
        return self

    def __exit__(self, *arguments):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, 9)
        super().__exit__(*arguments)


def number_inside(pid):
    return int(re.search(r"^NSpid:.*\t(\d+)$", Path(f"/proc/{pid}/status").read_text(), re.M)[1])


def does(target, what):
    """Without what is waited for in vain: a second at least, mostly thirty."""
    said = re.fullmatch(r"(\d+) bad, ([\d.]+) s", target(what))
    assert said and said[1] == "0" and float(said[2]) < 4, (what, said)


def rows(graftrace, *words):
    done = subprocess.run([graftrace.path, *words], capture_output=True, text=True, timeout=60, check=True)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_a_process_in_a_container_is_traced_from_outside(graftrace, program, tmp_path):
    data = tmp_path / "inside.data"
    with Inside(program) as target:
        tracer = start_recording(graftrace, target.pid, "-o", data)
        for what in ["load", "threads", "system", "load", "fork", "exec", "clock", "calls"]:
            does(target, what)
        end_recording(tracer)
        assert is_clean(target.pid)
        does(target, "load")
    calls = sum(int(row["calls"]) for row in rows(graftrace, "report", "--format", "csv", data)
                if row["function"] == "work")
    # 20 threads; children before and after dlopen; executed; of those that give up the clock only what came before
    assert calls == 20 * 100 + 3 * 200 + 3 * 200 + 3 * 100 + 100


def test_threads_are_chosen_and_shown_by_their_numbers_outside(graftrace, program, tmp_path):
    data = tmp_path / "inside.data"
    with Inside(program) as target:
        does(target, "long thread")
        [tid] = [int(name) for name in os.listdir(f"/proc/{target.pid}/task") if int(name) != target.pid]
        tracer = start_recording(graftrace, target.pid, "-o", data)
        graftrace("set", "-P", target.pid, "set_ftrace_pid", tid)
        time.sleep(0.5)
        does(target, "calls")
        end_recording(tracer)
    calls = {int(row["thread"].rsplit("-", 1)[1]): int(row["calls"])
             for row in rows(graftrace, "report", "--by", "thread", "--format", "csv", data)}
    assert calls[tid] > 100 and calls.get(target.pid, 0) < 100 and set(calls) <= {tid, target.pid}, calls


def test_children_that_begin_namespaces_have_the_same_number_and_are_told_apart(graftrace, program, tmp_path):
    data = tmp_path / "children.data"
    with Running(*program) as target:
        tracer = start_recording(graftrace, target.pid, "-o", data)
        for _ in range(5):
            does(target, "namespaces")
        end_recording(tracer)
        assert is_clean(target.pid)
    processes = rows(graftrace, "report", "--by", "process", "--format", "csv", data)
    assert len(processes) >= 20
    calls = sum(int(row["calls"]) for row in rows(graftrace, "report", "--format", "csv", data)
                if row["function"] == "work")
    assert calls == 5 * 4 * 200
