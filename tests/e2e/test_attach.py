# SPDX-License-Identifier: MIT
"""graftrace record -P PID: attaching to processes that run, and leaving them as they were."""

import collections
import csv
import errno
import io
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from attaching import GRAFTRACE, Running, is_clean, look, looks_as, maps, until_seen
from behaviour import fixed_addresses
from conftest import PROGRAMS, line_with

# More rounds: what a nightly run does (25: a thousand on the loaded server).
MORE = int(os.environ.get("GRAFTRACE_LONG_TESTS", "1"))
FLAGS = ["-O2", "-pthread", "-Wall", "-Wextra"]
WAYS = {"unprepared": [], "patchable": ["-fpatchable-function-entry=5"], "pg": ["-pg"],
        "static": ["-static"], "no-pie": ["-no-pie", "-fno-pie"]}


@pytest.fixture
def attached(compile):
    return compile("attached.c", *FLAGS)


def record(graftrace, pid, *options, code=0):
    return graftrace("record", "-P", pid, *options, code=code)


def calls(graftrace, path="graftrace.data"):
    text = graftrace("report", "--format", "csv", path).stdout
    found = collections.Counter()
    for row in csv.DictReader(io.StringIO(text)):
        found[row["function"]] += int(row["calls"])
    return found


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.005)


def start_recording(graftrace, pid, *options):
    """Starts `graftrace record -P` and waits until it records."""
    tracer = graftrace.start("record", "-P", str(pid), *options)
    line_with(tracer.stderr, "recording process")
    return tracer


def end_recording(tracer, how=signal.SIGINT):
    tracer.send_signal(how)
    _, text = tracer.communicate(timeout=30)
    assert tracer.returncode == 0, text
    return text


@pytest.mark.parametrize("way", WAYS)
def test_calls_of_a_running_process_are_recorded(graftrace, compile, way):
    with Running(compile("attached.c", *FLAGS, *WAYS[way])) as target:
        before = look(target.pid)
        tracer = start_recording(graftrace, target.pid)
        assert target("call") == "right"
        end_recording(tracer)
        found = calls(graftrace)
        assert {name: found[name] for name in ("outer", "middle", "leaf", "half")} == {
            "outer": 1, "middle": 2, "leaf": 21, "half": 1}
        assert looks_as(target.pid, before)
        assert target("call") == "right"


def test_threads_that_wait_in_system_calls_notice_nothing(graftrace, attached):
    with Running(attached, "waits") as target:
        before = look(target.pid)
        for _ in range(3):
            record(graftrace, target.pid, "--libs", "--for", "50ms")
            assert target("check") == "right"
            assert looks_as(target.pid, before)
        tracer = start_recording(graftrace, target.pid, "--libs")
        assert target("wake") == "woken"
        end_recording(tracer)
        assert target("check") == "right"
        assert is_clean(target.pid)


def test_a_waiting_process_wakes_as_usual_after_the_recording(graftrace, attached):
    with Running(attached, "waits") as target:
        record(graftrace, target.pid, "--for", "20ms")
        assert target("wake") == "woken"
        assert target("check") == "right"


@pytest.mark.parametrize("end", ["leave", "return"])
def test_calls_that_are_open_at_the_end_return_as_ever(graftrace, attached, end):
    with Running(attached) as target:
        before = look(target.pid)
        tracer = start_recording(graftrace, target.pid)
        assert target("enter") == "entering"
        assert target("call") == "right"
        end_recording(tracer)
        assert looks_as(target.pid, before)
        # they go on being the same calls in the next recording
        tracer = start_recording(graftrace, target.pid)
        assert target("call") == "right"
        end_recording(tracer)
        assert looks_as(target.pid, before)
        assert target(end) == "leaving" if end == "leave" else "returning"
        assert target("call") == "right"


def test_open_calls_return_while_another_recording_runs(graftrace, attached):
    with Running(attached) as target:
        tracer = start_recording(graftrace, target.pid)
        assert target("enter") == "entering"
        end_recording(tracer)
        tracer = start_recording(graftrace, target.pid)
        assert target("enter") == "entering"
        assert target("return") == "returning"
        assert target("return") == "returning"
        assert target("call") == "right"
        end_recording(tracer)
        assert is_clean(target.pid)


def test_working_threads_compute_the_same(graftrace, attached):
    with Running(attached, "work") as target:
        for options in ([], ["--libs"], ["-p", "function"], ["-l", "leaf"], ["-g", "middle"]):
            for _ in range(2):
                record(graftrace, target.pid, *options, "--for", "20ms")
                assert is_clean(target.pid)
        assert target("check") == "right"
        before = int(target("rounds"))
        wait_until(lambda: int(target("rounds")) > before)


def test_a_number_after_p_is_a_process(graftrace, attached):
    with Running(attached) as target:
        done = graftrace("record", "-p", target.pid, "--for", "10ms")
        assert f"recording process {target.pid}" in done.stderr


def test_two_processes_stand_in_one_recording(graftrace, attached):
    with Running(attached) as one, Running(attached) as two:
        tracer = start_recording(graftrace, one.pid, "-P", str(two.pid))
        assert one("call") == two("call") == "right"
        end_recording(tracer)
        assert calls(graftrace)["outer"] == 2
        assert is_clean(one.pid) and is_clean(two.pid)


FAMILY = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
__attribute__((noinline)) int twice(int x)
{
	__asm__ volatile("" ::: "memory");
	return 2 * x;
}
static int begun[2];
static void works(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(begun[1], ".", 1) != 1)
		_exit(1);
	for (;;) {
		usleep(1000);
		if (twice(21) != 42)
			_exit(1);
	}
}
int main(void)
{
	char byte;
	if (pipe(begun) != 0)
		return 1;
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			if (fork() == 0)
				works();
			works();
		}
	for (int i = 0; i < 4; i++)
		if (read(begun[0], &byte, 1) != 1)
			return 1;
	puts("ready");
	fflush(stdout);
	works();
}
"""


def test_children_that_are_there_already_are_taken_if_asked(graftrace, compile):
    with Running(compile(FAMILY, "-O2")) as target:
        family = [target.pid]
        for pid in family:
            family += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        assert len(family) == 5
        before = [look(pid) for pid in family]
        assert ", without its 2 children (--children) " in record(
            graftrace, target.pid, "--for", "20ms").stderr
        def all_were_seen(done):
            assert f"recording process {target.pid} and 4 children" in done.stderr
            if "times off the CPU are not recorded" in done.stderr:
                return calls(graftrace)["twice"] > 0
            # each sleeps most of the time
            slept = graftrace("show", "--switch-events").stdout
            return calls(graftrace)["twice"] > 0 and all(f" next_pid={pid} " in slept for pid in family)

        until_seen(lambda: record(graftrace, target.pid, "--children", "--for", "300ms"), all_were_seen)
        assert graftrace("report").stdout.count("  twice\n") == 1
        assert all(map(looks_as, family, before))


def test_a_recording_that_cannot_be_written_ends_with_1_and_the_process_goes_on(graftrace,
                                                                                 attached):
    with Running(attached, "work") as target:
        process = graftrace.start("record", "-P", target.pid)
        line_with(process.stderr, "recording process")
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1024, 1024))
        process.send_signal(signal.SIGINT)
        # not as long as the process goes on switching, whose switches cannot be written
        _, errors = process.communicate(timeout=60)
        assert "File too large" in errors
        assert process.returncode == 1
        assert target("call") == "right"


def test_no_call_is_explained(graftrace, attached):
    with Running(attached, "plain") as target:
        for words, why in ((["-g", "main"], "a call that had begun before is not seen"),
                           (["-l", "leaf", "--threshold", "60s"], "as long as --threshold"),
                           (["-l", "leaf"], "or work in libraries (--libs) or in its children")):
            assert why in record(graftrace, target.pid, *words, "--for", "20ms").stderr
        assert "no function that is counted was called" in graftrace(
            "profile", "-P", target.pid, "-l", "leaf", "--for", "20ms").stderr


def test_children_that_cannot_be_traced_are_told_of(graftrace, compile):
    with Running("/bin/sh", "-c", "sleep 1000 & echo ready; cat") as shell:
        children = lambda: Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().split()
        wait_until(lambda: len(children()) == 2)
        with subprocess.Popen([compile(TRACER), children()[0]], stdout=subprocess.PIPE) as debugger:
            debugger.stdout.readline()
            done = graftrace("record", "--children", "-P", shell.pid, "--for", "20ms")
            debugger.kill()
        assert "runs untraced" in done.stderr and "is traced already" in done.stderr
        os.kill(int(children()[0]), signal.SIGTERM)


def test_processes_may_stand_in_a_list(graftrace, attached):
    with Running(attached) as one, Running(attached) as two:
        tracer = start_recording(graftrace, f"{one.pid},{two.pid}")
        assert one("call") == two("call") == "right"
        end_recording(tracer)
        assert calls(graftrace)["outer"] == 2
    for words in (["-P", "1,x"], ["-P", "1,"], ["--children", "true"]):
        graftrace("record", *words, code=2)


def test_the_recording_ends_with_the_process(graftrace, attached):
    with Running(attached) as target:
        tracer = start_recording(graftrace, target.pid)
        assert target("call") == "right"
        target.send("end")
        _, text = tracer.communicate(timeout=30)
        assert tracer.returncode == 0, text
        assert calls(graftrace)["outer"] == 1


@pytest.mark.parametrize("options", [[], ["--no-fork"]])
def test_children_are_followed_or_left_clean(graftrace, attached, options):
    with Running(attached) as target:
        before = look(target.pid)
        tracer = start_recording(graftrace, target.pid, *options)
        assert target("fork") == "child 7"
        assert target("exec") == "child 9"
        end_recording(tracer)
        found = calls(graftrace)
        assert found["outer"] == (0 if options else 3)
        assert looks_as(target.pid, before)


def states(pid):
    """Each thread's: "T" is stopped."""
    return [task.read_text().rsplit(")")[1].split()[0] for task in Path(f"/proc/{pid}/task").glob("*/stat")]


def test_a_stopped_process_stays_stopped(graftrace, attached):
    with Running(attached, "waits") as target:
        os.kill(target.pid, signal.SIGSTOP)
        # Each thread: one that is still in sigwaitinfo() has another mask.
        wait_until(lambda: set(states(target.pid)) == {"T"})
        before = look(target.pid)
        record(graftrace, target.pid, "--for", "20ms")
        # On the way from one stop to the other it is let run, but not to user code.
        wait_until(lambda: set(states(target.pid)) == {"T"})
        assert looks_as(target.pid, before)
        os.kill(target.pid, signal.SIGCONT)
        assert target("check") == "right"
        assert target("wake") == "woken"


def test_filters_change_while_attached(graftrace, attached):
    with Running(attached, "work") as target:
        before = maps(target.pid).count("\n")
        tracer = graftrace.start("record", "-P", str(target.pid), "--serve=127.0.0.1:0")
        base = line_with(tracer.stderr, "serving").string.split()[2]
        import urllib.request
        for words in ("leaf", "middle\nouter", "*", "half"):
            for on in "01":
                for name, text in (("set_ftrace_filter", words), ("tracing_on", on)):
                    request = urllib.request.Request(base + name, text.encode(), method="PUT")
                    urllib.request.urlopen(request, timeout=20).close()
        end_recording(tracer)
        assert target("check") == "right"
        assert is_clean(target.pid) and before


# What comes in between

def function_address(pid, path, name):
    """Where a function of a PIE stands in the process."""
    symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    value = next(int(line.split()[0], 16) for line in symbols.splitlines()
                 if line.split()[-1] == name)
    return int(maps(pid).split("-")[0], 16) + value


def test_a_debuggers_breakpoints_stay_where_they_are(graftrace, attached):
    with Running(attached) as target, open(f"/proc/{target.pid}/mem", "r+b", 0) as memory:
        def exchange(address, byte):
            memory.seek(address)
            old = memory.read(1)
            memory.seek(address)
            memory.write(byte)
            return old

        before = look(target.pid)
        leaf = function_address(target.pid, attached, "leaf")
        middle = function_address(target.pid, attached, "middle")
        # under us: the function is left alone
        original = exchange(leaf, b"\xcc")
        record(graftrace, target.pid, "--for", "10ms")
        assert exchange(leaf, original) == b"\xcc"
        assert looks_as(target.pid, before)
        # over us: what was there when it came is put back by the debugger later
        tracer = start_recording(graftrace, target.pid)
        jump = exchange(middle, b"\xcc")
        assert jump != original
        said = end_recording(tracer)
        assert "a breakpoint over its patches" in said and "--uprobe-safe" in said
        assert exchange(middle, jump) == b"\xcc"
        assert target("call") == "right"
        record(graftrace, target.pid, "--for", "10ms")
        assert looks_as(target.pid, before)


def test_a_parent_in_vfork_is_waited_for(graftrace, compile):
    program = compile(r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int child(void)
{
	usleep(700000);
	return 7;
}
int main(void)
{
	int status;
	puts("ready");
	fflush(stdout);
	if (vfork() == 0)
		_exit(child());
	wait(&status);
	printf("%d\n", status >> 8);
	fflush(stdout);
	pause();
}
""", "-O2")
    with Running(program) as target:
        record(graftrace, target.pid, "--for", "20ms")
        assert is_clean(target.pid)
        assert target.line() == "7"


SHARERS = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long rounds[3];
static volatile int wrong;
static const char *volatile end;
__attribute__((noinline)) static long fib(long n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
static int works(void *number)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!end) {
		if (fib(10) != 55)
			wrong = 1;
		rounds[(long)number]++;
	}
	return 0;
}
int main(void)
{
	int pids[3], status;
	for (long i = 0; i < 3; i++)
		pids[i] = clone(works, (char *)malloc(1 << 20) + (1 << 20), CLONE_VM | SIGCHLD, (void *)i);
	puts("ready");
	fflush(stdout);
	getchar();
	end = "end";
	for (int i = 0; i < 3; i++)
		if (waitpid(pids[i], &status, 0) != pids[i] || status)
			wrong = 1;
	printf("%s\n", !wrong && rounds[0] && rounds[1] && rounds[2] ? "right" : "wrong");
	fflush(stdout);
	pause();
}
"""


def test_processes_that_share_the_memory_stand_still_with_the_threads(graftrace, compile):
    with Running(compile(SHARERS, "-O2")) as target:
        before = look(target.pid)
        for _ in range(3 * MORE):
            done = record(graftrace, target.pid, "--for", "10ms", "-o", "/dev/null")
            assert "keeps the recorder's memory" not in done.stderr, done.stderr
        assert look(target.pid)["code"] == before["code"]
        assert is_clean(target.pid)
        assert target("") == "right"


RESTLESS = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int twice(int x)
{
	__asm__ volatile("" ::: "memory");
	return 2 * x;
}
int main(int argc, char **argv)
{
	int left = argc > 2 ? atoi(argv[2]) : 0, status, i;
	char number[16];
	if (left == 0)
		return 0;
	if (argc == 3) {
		puts("ready");
		fflush(stdout);
	}
	if (argv[1][0] == 'f') {
		for (i = 0; i < left; i++) {
			if (fork() == 0)
				_exit(twice(21) != 42);
			wait(&status);
			if (status)
				return 1;
		}
		return 0;
	}
	usleep(300);
	snprintf(number, sizeof(number), "%d", left - 1);
	if (twice(left) == 2 * left)
		execl("/proc/self/exe", argv[0], argv[1], number, "again", NULL);
	return 1;
}
"""


@pytest.mark.parametrize("how", ["forks", "execs"])
def test_processes_that_fork_or_exec_all_the_time_go_on(graftrace, compile, how):
    with Running(compile(RESTLESS, "-O2"), how, "400") as target:
        while target.is_alive():
            record(graftrace, target.pid, "--for", "5ms", code=None)
        assert target.process.returncode == 0


def test_a_process_that_dies_at_any_moment_ends_the_recording(graftrace, attached):
    for i in range(16):
        with Running(attached, "work") as target:
            tracer = graftrace.start("record", "-P", str(target.pid), "--for", "20ms")
            time.sleep(0.005 * i)
            target.process.kill()
            _, text = tracer.communicate(timeout=60)
            told = rf"process {target.pid}\b.* has ended|there is no process {target.pid}"
            assert tracer.returncode == 0 or tracer.returncode == 1 and re.search(told, text), text


# Hosts that are killed

def kill_after(graftrace, pid, seconds, *options):
    tracer = graftrace.start("record", "-P", str(pid), *options, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    tracer.kill()
    tracer.communicate(timeout=30)


def test_a_host_killed_at_any_moment_harms_nobody(graftrace, attached):
    with Running(attached, "work") as target:
        for i in range(24):
            # attaching takes some 40 ms from the start, detaching at 60
            kill_after(graftrace, target.pid, 0.004 * i, "--for", "20ms")
            assert target("check") == "right", f"killed after {4 * i} ms"
        record(graftrace, target.pid, "--for", "10ms")
        assert is_clean(target.pid)
        assert target("check") == "right"


# What these say to any stop that is not undone: see signal(7).
INTERRUPTED = re.compile(r"((epoll_wait|poll|recv|sigwaitinfo|nanosleep): -1 \(Interrupted [^)]*\); )*")


def test_waiting_threads_survive_hosts_that_are_killed(graftrace, attached):
    with Running(attached, "waits") as target:
        before = look(target.pid)
        for i in range(16):
            kill_after(graftrace, target.pid, 0.005 * i, "--libs", "--for", "20ms")
        assert target("check") == "right" or INTERRUPTED.fullmatch(target("check"))
        record(graftrace, target.pid, "--for", "10ms")
        after = look(target.pid)
        assert after["code"] == before["code"]
        assert after["descriptors"] == before["descriptors"]
        assert is_clean(target.pid)
        assert target("wake") == "woken"


def test_a_process_of_a_killed_host_goes_on_and_is_cleaned(graftrace, attached):
    with Running(attached) as target:
        before = look(target.pid)
        tracer = start_recording(graftrace, target.pid)
        assert target("enter") == "entering"
        tracer.kill()
        tracer.communicate(timeout=30)
        assert not is_clean(target.pid)
        assert target("call") == "right"
        assert target("fork") == "child 7"
        tracer = start_recording(graftrace, target.pid)
        assert target("call") == "right"
        end_recording(tracer)
        assert calls(graftrace)["outer"] == 1
        assert looks_as(target.pid, before)
        assert target("return") == "returning"


# The hook of an unwinder's landing asks for the frame's address, which takes until a line has come.
LANDING = """
#include <stdio.h>
#define KEEP __attribute__((noinline))
static char line[64];
KEEP unsigned long _Unwind_GetCFA(void *frame)
{
	puts("asked");
	fgets(line, sizeof(line), stdin);
	return (unsigned long)frame;
}
static volatile unsigned long landed;
KEEP void _Unwind_SetIP(void *frame, unsigned long place) { (void)frame, landed = place; }
int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	for (puts("ready"); fgets(line, sizeof(line), stdin); puts("landed"))
		_Unwind_SetIP(__builtin_frame_address(0), 0);
	return _Unwind_GetCFA == NULL;
}
"""


def test_a_thread_that_was_called_by_the_recorder_comes_back_to_it(graftrace, compile):
    with Running(compile(LANDING, "-O2")) as target:
        assert target("land") == "landed"
        before = look(target.pid)
        tracer = start_recording(graftrace, target.pid)
        assert target("land") == "asked"
        assert "a thread stands in it" in end_recording(tracer)
        assert target("go on") == "landed"
        record(graftrace, target.pid, "--for", "1ms")
        assert looks_as(target.pid, before)
        assert target("land") == "landed"


# A server under load

SERVER = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>
__attribute__((noinline)) int answer(char *text, int size)
{
	for (int i = 0; i < size; i++)
		text[i] ^= 1;
	return size;
}
__attribute__((noinline)) int serve(int fd)
{
	char text[64];
	int size = (int)recv(fd, text, sizeof(text), 0);
	if (size <= 0)
		return 0;
	return write(fd, text, (size_t)answer(text, size)) == size;
}
static void *loop(void *data)
{
	int epoll = *(int *)data;
	for (;;) {
		struct epoll_event event;
		if (epoll_wait(epoll, &event, 1, -1) != 1) {
			if (TOLERANT && errno == EINTR)
				continue;
			_exit(3);
		}
		event.events = EPOLLIN | EPOLLONESHOT;
		if (!serve(event.data.fd))
			close(event.data.fd);
		else
			epoll_ctl(epoll, EPOLL_CTL_MOD, event.data.fd, &event);
	}
}
int main(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(address);
	pthread_t threads[4];
	bind(listener, (struct sockaddr *)&address, size);
	listen(listener, 64);
	getsockname(listener, (struct sockaddr *)&address, &size);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, loop, &epoll);
	printf("ready\n%d\n", ntohs(address.sin_port));
	fflush(stdout);
	for (;;) {
		struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };
		event.data.fd = accept(listener, NULL, NULL);
		if (event.data.fd < 0)
			_exit(4);
		epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
	}
}
"""


class Clients(threading.Thread):
    """Asks a server, one request after the other on one connection."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port = port
        self.requests = 0
        self.wrong = 0
        self.stopping = False

    def run(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        while not self.stopping:
            connection.sendall(b"abcdefgh")
            got = b""
            while len(got) < 8:
                part = connection.recv(64)
                if not part:
                    self.wrong += 1
                    return
                got += part
            self.wrong += got != bytes(byte ^ 1 for byte in b"abcdefgh")
            self.requests += 1
        connection.close()


class Load:
    """A server with clients that ask it all the time; at the end every answer was right."""

    def __init__(self, program):
        self.target = Running(program)

    def __enter__(self):
        self.target.__enter__()
        self.pid = self.target.pid
        self.before = look(self.pid)
        port = int(self.target.line())
        self.clients = [Clients(port) for _ in range(3)]
        for client in self.clients:
            client.start()
        self.wait_for_requests(20)
        return self

    def wait_for_requests(self, more):
        counts = [client.requests for client in self.clients]
        wait_until(lambda: all(c.requests > n + more for c, n in zip(self.clients, counts)))

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.check()
        finally:
            for client in self.clients:
                client.stopping = True
            self.target.__exit__()

    def check(self):
        self.wait_for_requests(1)
        for client in self.clients:
            client.stopping = True
        for client in self.clients:
            client.join(30)
        assert sum(client.wrong for client in self.clients) == 0
        assert not any(client.is_alive() for client in self.clients)
        assert self.target.is_alive()
        after = look(self.pid)
        assert after["code"] == self.before["code"]
        assert after["descriptors"].keys() >= self.before["descriptors"].keys()
        assert is_clean(self.pid)


def test_many_rounds_on_a_loaded_server_lose_no_request(graftrace, compile):
    with Load(compile(SERVER, *FLAGS, "-DTOLERANT=0")) as server:
        for _ in range(40 * MORE):
            record(graftrace, server.pid, "--for", "2ms", "-o", "round.data")


def test_a_loaded_server_answers_whatever_hosts_are_killed(graftrace, compile):
    """At any moment; only EINTR from epoll_wait is what such a server has to know of: signal(7)."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    moments = random.Random(seed)
    with Load(compile(SERVER, *FLAGS, "-DTOLERANT=1")) as server:
        for i in range(40 * MORE):
            options = ["--libs"] if i % 4 == 0 else []
            kill_after(graftrace, server.pid, moments.uniform(0, 0.09), *options, "--for", "10ms")
            server.wait_for_requests(1)
        record(graftrace, server.pid, "--for", "10ms")


# Refusals

def refusal(graftrace, pid, *options):
    done = record(graftrace, pid, *options, code=1)
    assert not Path(graftrace.directory / "graftrace.data").exists()
    return done.stderr


def test_processes_that_are_none_are_refused(graftrace, attached):
    assert "there is no process 999999999" in refusal(graftrace, 999999999)
    child = subprocess.Popen(["true"])
    wait_until(lambda: Path(f"/proc/{child.pid}/stat").read_text().rsplit(")")[1].split()[0] == "Z")
    assert "has ended; its parent" in refusal(graftrace, child.pid)
    child.wait()
    with Running(attached, "work") as target:
        other = next(t for t in os.listdir(f"/proc/{target.pid}/task") if t != str(target.pid))
        assert f"use -P {target.pid}" in refusal(graftrace, other)


TRACER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	if (argc < 2 || ptrace(PTRACE_SEIZE, atoi(argv[1]), 0, 0) != 0)
		return 1;
	puts("ready");
	fflush(stdout);
	pause();
}
"""


def test_a_process_that_is_traced_already_is_refused(graftrace, attached, compile):
    with Running(attached) as target:
        with Running(compile(TRACER), str(target.pid)) as debugger:
            said = refusal(graftrace, target.pid)
            assert f"is traced already, by process {debugger.pid}" in said
        tracer = start_recording(graftrace, target.pid, "-o", "first.data")
        assert f"is being recorded already, by graftrace (process {tracer.pid})" in refusal(
            graftrace, target.pid)
        end_recording(tracer)
        record(graftrace, target.pid, "--for", "10ms")


def test_a_process_of_another_user_is_refused(attached, tmp_path):
    if os.geteuid() == 0:
        with Running(attached) as target:
            tmp_path.chmod(0o777)
            done = subprocess.run([GRAFTRACE, "record", "-o", "/dev/null", "-P", str(target.pid)], user=65534,
                                  group=65534, extra_groups=[], cwd="/", text=True,
                                  capture_output=True, timeout=30)
            pid = target.pid
    else:
        pid = 1
        done = subprocess.run([GRAFTRACE, "record", "-P", "1"], cwd=tmp_path, text=True,
                              capture_output=True, timeout=30)
    assert done.returncode == 1
    assert f"process {pid}" in done.stderr and "run graftrace as root" in done.stderr


def test_programs_that_no_tracer_can_follow_are_refused(graftrace, compile):
    text = PROGRAMS.joinpath("attached.c").read_text()
    go = '__attribute__((section(".go.buildinfo"), used)) static const char build[] = "go";\n'
    with Running(compile(text + go, *FLAGS)) as target:
        assert "is a Go program" in refusal(graftrace, target.pid)
    sanitized = compile("attached.c", "-O1", "-pthread", "-fsanitize=memory", compiler="clang")
    with fixed_addresses(), Running(sanitized) as target:
        assert "MemorySanitizer" in refusal(graftrace, target.pid)
    with Running("valgrind", "-q", compile("attached.c", *FLAGS)) as target:
        assert "runs under Valgrind" in refusal(graftrace, target.pid)


# write(1, "ready\n", 6), then pause() for ever
OLD = """.globl _start
_start: mov $4, %eax
        mov $1, %ebx
        mov $text, %ecx
        mov $6, %edx
1:      int $0x80
        mov $29, %eax
        jmp 1b
text:   .ascii "ready\\n"
"""


def test_a_32_bit_program_is_refused(graftrace):
    source = graftrace.directory / "old.s"
    source.write_text(OLD)
    for words in (["as", "--32", "-o", "old.o", "old.s"], ["ld", "-m", "elf_i386", "-o", "old", "old.o"]):
        subprocess.run(words, cwd=graftrace.directory, check=True)
    assert "is a 32-bit ELF file" in graftrace("functions", "old", code=1).stderr
    try:
        target = Running(graftrace.directory / "old")
    except OSError as error:  # a kernel that has no 32-bit processes
        assert error.errno == errno.ENOEXEC
        return
    with target:
        assert "is no 64-bit x86 program" in refusal(graftrace, target.pid)
        assert target.is_alive()


SANDBOX = r"""
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
__attribute__((constructor)) static void enter(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FORBIDDEN, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
"""


def test_a_sandbox_is_asked_before_it_kills(graftrace, compile):
    text = PROGRAMS.joinpath("attached.c").read_text() + SANDBOX
    with Running(compile(text, *FLAGS, "-DFORBIDDEN=SYS_socketpair")) as target:
        # Only root may read what a filter says.
        said = refusal(graftrace, target.pid)
        assert ("forbids socketpair" if os.geteuid() == 0 else "may not read") in said
        assert target("call") == "right"
    with Running(compile(text, *FLAGS, "-DFORBIDDEN=SYS_kexec_load")) as target:
        if os.geteuid() == 0:
            record(graftrace, target.pid, "--for", "10ms")
        else:
            assert "may not read" in refusal(graftrace, target.pid)
        assert target("call") == "right"


def test_the_command_line_says_what_it_wants(graftrace):
    for words in (["-P", "x"], ["-P", "1", "true"], ["-P", "0"], ["--for", "soon", "true"]):
        graftrace("record", *words, code=2)


def test_a_program_is_recorded_for_a_time(graftrace, attached):
    done = graftrace("record", "--for", "100ms", "--", sys.executable, "-c",
                     "import time; time.sleep(0.3); print('end')")
    assert done.stdout == "end\n"


WAITS_IN_VFORK = """
#include <stdio.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) int called(volatile int n) { return n * 3; }
int main(void) {
    /* Attaching gives up after 5 s. */
    const struct timespec longer_than_a_late_thread_is_waited_for = { 1, 500000000 };
    setvbuf(stdout, NULL, _IONBF, 0);
    puts("ready");
    if (vfork() == 0) { nanosleep(&longer_than_a_late_thread_is_waited_for, NULL); _exit(0); }
    while (getchar() != EOF) { called(1); puts("called"); }
}
"""


def test_a_parent_that_waits_long_in_vfork_is_attached_to_when_it_is_back(graftrace, compile):
    with Running(compile(WAITS_IN_VFORK, "-O1")) as target:
        tracer = start_recording(graftrace, target.pid, "-l", "called")
        assert [target("") for _ in range(4)] == ["called"] * 4
        end_recording(tracer)
        assert calls(graftrace)["called"] == 4 and target.is_alive()
