# SPDX-License-Identifier: MIT
"""A graftrace that was killed: the next one that attaches puts what it had not written into its recording."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from attaching import Running, is_clean, kill, look, looks_as, record, start_recording
from conftest import PATIENCE, wait_until

PHASES = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline, noclone)) static int leaf(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static void *work(void *count)
{
	int sum = 0;

	for (int i = 0; i < *(int *)count; i++)
		sum += leaf(i);
	__asm__ volatile("" : : "r"(sum));
	return NULL;
}

/* A line "N": N calls of leaf() in this thread; "N thread": in one that then ends. */
int main(void)
{
	char line[64];

	printf("%d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int count = atoi(line);
		pthread_t other;

		if (strstr(line, "thread")) {
			pthread_create(&other, NULL, work, &count);
			pthread_join(other, NULL);
		} else {
			work(&count);
		}
		printf("made\n");
		fflush(stdout);
	}
	return 0;
}
"""


class Phases:
    """The program, recorded by a graftrace that can be killed alone."""

    def __init__(self, graftrace, program, *options):
        self.process = graftrace.start("record", *options, "--", program, stdin=subprocess.PIPE)
        self.pid = int(self.process.stdout.readline())
        self.made = 0

    def call(self, count, where=""):
        self.process.stdin.write(f"{count} {where}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "made\n"
        self.made += count

    def end(self):
        self.process.stdin.close()
        assert self.process.stdout.read() == ""


@pytest.fixture(scope="module")
def program(compile):
    return compile(PHASES, "-O2", "-pthread")


def leaves(graftrace, path="graftrace.data"):
    done = graftrace("report", "-i", path, "--format", "csv", code=None)
    rows = [line.split(",") for line in done.stdout.splitlines()]
    return sum(int(row[rows[0].index("calls")]) for row in rows[1:] if "leaf" in row), done.stderr


@pytest.mark.parametrize("options", [[], ["--overwrite"], ["--no-compress"]], ids=["drain", "overwrite", "plain"])
def test_what_a_killed_graftrace_had_not_written_comes_into_its_recording(graftrace, program, options):
    phases = Phases(graftrace, program, *options)
    phases.call(1000)
    os.kill(phases.process.pid, 9)
    phases.process.wait(PATIENCE)
    # the buffer has room, and the program goes on
    phases.call(2000)
    assert leaves(graftrace)[0] < phases.made
    done = graftrace("record", "-o", "second.data", "-P", phases.pid, "--for", "0.1s")
    told = re.search(r"graftrace: (\d+) calls that a graftrace which was killed had left in process \d+ are now in "
                     r"'.*/graftrace\.data'", done.stderr)
    assert told and 0 < int(told[1]), done.stderr
    recorded, errors = leaves(graftrace)
    assert recorded == phases.made and "missing" not in errors, errors
    # once more there is nothing to take, and nothing changes
    assert "which was killed" not in graftrace("record", "-o", "third.data", "-P", phases.pid, "--for", "0.1s").stderr
    assert leaves(graftrace)[0] == phases.made
    phases.end()


def test_what_it_had_taken_and_not_written_is_told_as_missing(graftrace, program):
    """It gathers for a second what it takes out: parts that are full, and all of threads that have ended."""
    phases = Phases(graftrace, program, "-b", "256k")
    phases.call(30000)
    phases.call(100, "thread")
    os.kill(phases.process.pid, 9)
    phases.process.wait(PATIENCE)
    done = graftrace("record", "-o", "second.data", "-P", phases.pid, "--for", "0.1s")
    recorded, errors = leaves(graftrace)
    told = "".join(line for line in errors.splitlines() if "graftrace was killed: what it had read" in line)
    parts, threads = re.search(r"(\d+) calls at most", told), re.search(r"(\d+) thread", told)
    missing = phases.made - recorded
    assert 0 <= missing <= (int(parts[1]) if parts else 0) + 100 * (int(threads[1]) if threads else 0)
    assert bool(told) == ("what it had read in its last second" in done.stderr)
    phases.end()


def test_a_recording_that_is_gone_is_named(graftrace, program):
    phases = Phases(graftrace, program)
    phases.call(100)
    os.kill(phases.process.pid, 9)
    phases.process.wait(PATIENCE)
    os.rename(graftrace.directory / "graftrace.data", graftrace.directory / "elsewhere.data")
    done = graftrace("record", "-o", "second.data", "-P", phases.pid, "--for", "0.1s")
    assert re.search(r"they are lost, for its recording '.*/graftrace\.data' is not there any more", done.stderr)
    phases.end()


def test_nothing_is_added_to_a_recording_of_another_clock(graftrace, program):
    """The path stands in memory that the process may have made: another file of this user's there stays as it is."""
    phases = Phases(graftrace, program)
    phases.call(100)
    os.kill(phases.process.pid, 9)
    phases.process.wait(PATIENCE)
    other = graftrace.start("record", "-o", "other.data", "--", program, stdin=subprocess.PIPE)
    other.stdout.readline()
    os.kill(other.pid, 9)
    other.wait(PATIENCE)
    os.rename(graftrace.directory / "other.data", graftrace.directory / "graftrace.data")
    before = (graftrace.directory / "graftrace.data").read_bytes()
    done = graftrace("record", "-o", "second.data", "-P", phases.pid, "--for", "0.1s")
    assert "they are lost" in done.stderr
    assert (graftrace.directory / "graftrace.data").read_bytes() == before
    other.stdin.close()
    phases.end()


@pytest.mark.parametrize("options", [["-e", "syscalls"], ["-e", "syscalls", "--libs"]], ids=["calls", "all"])
def test_threads_that_wait_in_moved_calls_go_back_to_the_programs_own(graftrace, attached, options):
    """The dead graftrace's plans are gone with it: the region in the process says which instruction was moved."""
    with Running(attached, "waits") as target:
        before = look(target.pid)
        for _ in range(3):
            tracer = start_recording(graftrace, target.pid, *options)
            kill(tracer)
            assert not is_clean(target.pid)
            record(graftrace, target.pid, "-o", "second.data", "--for", "10ms")
            assert looks_as(target.pid, before)
        assert target("check") == "right"
        assert target("wake") == "woken"


HANDLERS = r"""
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int gate[2];

static void handle(int number)
{
	char byte;

	printf("inside\n");
	while (read(gate[0], &byte, 1) != 1)
		;
	printf("%d over\n", number);
}

/* A handler waits on top of a call that it has interrupted: one that goes on behind it, and one that fails. */
int main(void)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
	char line[64];
	ssize_t got;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags = 0;
	sigaction(SIGUSR2, &action, NULL);
	if (pipe(gate))
		return 1;
	printf("%d %d\n", getpid(), gate[1]);
	for (;;) {
		errno = 0;
		got = read(0, line, sizeof(line));
		printf("%zd %d\n", got, errno);
		if (got == 0)
			return 0;
	}
}
"""


@pytest.mark.parametrize("number, told", [(signal.SIGUSR1, []), (signal.SIGUSR2, ["-1 4"])], ids=["restarted", "failed"])
def test_a_moved_call_below_a_handler_that_waits_is_the_programs_own_again(graftrace, compile, number, told):
    program = compile(HANDLERS, "-O2")
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        pid, gate = map(int, running.stdout.readline().split())
        tracer = start_recording(graftrace, pid, "-e", "syscalls")
        # one call through the moved code, then the next one waits there
        running.stdin.write("once\n")
        running.stdin.flush()
        assert running.stdout.readline() == "5 0\n"
        reads = Path(f"/proc/{pid}/syscall")
        wait_until(lambda: reads.read_text().startswith("0 0x0 "))
        os.kill(pid, number)
        assert running.stdout.readline() == "inside\n"
        wait_until(lambda: re.match("0 0x[1-9a-f]", reads.read_text()))
        kill(tracer)
        record(graftrace, pid, "-o", "second.data", "--for", "10ms")
        assert is_clean(pid)
        with open(f"/proc/{pid}/fd/{gate}", "wb") as other:
            other.write(b"x")
        assert running.stdout.readline() == f"{number:d} over\n"
        for line in told:
            assert running.stdout.readline() == line + "\n"
        running.stdin.write("hello\n")
        running.stdin.flush()
        assert running.stdout.readline() == "6 0\n"
        running.stdin.close()
        assert running.stdout.read() == "0 0\n"
