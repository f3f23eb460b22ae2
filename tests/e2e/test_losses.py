# SPDX-License-Identifier: MIT
"""What is lost is counted in calls, and calls made = calls recorded + calls lost, in every mode."""

import re
import subprocess
import time
from pathlib import Path

import pytest

from conftest import PATIENCE, wait_until


LAST_LINE = re.compile(r"^graftrace: ([\d,]+) calls?, ([\d,]+) threads?, .* s, ([\d,]+) lost", re.M)


@pytest.fixture(scope="module")
def program(compile):
    return compile("many.c", "-O2", "-pthread")


def number(text):
    return int(text.replace(",", ""))


def recorded_and_lost(done):
    found = LAST_LINE.search(done.stderr)
    assert found, done.stderr
    return number(found[1]), number(found[3])


def made(done):
    return int(re.search(r"made=(\d+)", done.stdout)[1])


def told_by_report(graftrace, code=0):
    """Calls that the recording has, and those that it says were lost. One that is lost but known by
    its return is in both: it counts as lost here."""
    done = graftrace("report", "--format", "csv", code=code)
    rows = [line.rsplit(",") for line in done.stdout.splitlines()]
    calls = rows[0].index("calls")
    lost = sum(map(int, re.findall(r"(\d+) calls were lost", done.stderr)))
    known = sum(map(int, re.findall(r"(\d+) of these are in the table", done.stderr)))
    return sum(int(row[calls]) for row in rows[1:]) - known, lost


DEEP = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_barrier_t all, end;

__attribute__((noinline, noclone)) static int deep(int depth)
{
	int below = depth > 1 ? deep(depth - 1) : 0;

	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

static void *work(void *unused)
{
	deep(900);
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&end);
	return unused;
}

/* 64 threads that were 900 calls deep, alive until a line is read. */
int main(void)
{
	pthread_t threads[64];
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 * 1024);
	pthread_barrier_init(&all, NULL, 65);
	pthread_barrier_init(&end, NULL, 65);
	for (int i = 0; i < 64; i++)
		if (pthread_create(&threads[i], &small, work, NULL))
			return 1;
	pthread_barrier_wait(&all);
	printf("deep\n%d\n", getpid());
	fflush(stdout);
	getchar();
	pthread_barrier_wait(&end);
	for (int i = 0; i < 64; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""


COME_AND_GO = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline, noclone)) static int leaf(int of)
{
	__asm__ volatile("" : "+r"(of));
	return of;
}

static void *work(void *unused)
{
	for (int i = 0; i < 3; i++)
		leaf(i);
	return unused;
}

/* One thread after the other; then it waits for a line. */
int main(void)
{
	for (int i = 0; i < 3000; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL))
			return 1;
	}
	printf("gone\n%d\n", getpid());
	fflush(stdout);
	getchar();
	return 0;
}
"""

MODES = {
    "drain": [],
    "drain, function": ["-p", "function"],
    "drain, threshold": ["--threshold", "1ns"],
    "overwrite": ["--overwrite"],
    "overwrite, function": ["--overwrite", "-p", "function"],
    "overwrite, threshold": ["--overwrite", "--threshold", "1ns"],
    "ring": ["--serve=127.0.0.1:0"],
    "ring, function": ["--serve=127.0.0.1:0", "-p", "function"],
}


@pytest.mark.parametrize("threads", [1, 3, 16])
@pytest.mark.parametrize("mode", MODES)
def test_calls_made_are_calls_recorded_and_calls_lost(graftrace, program, mode, threads):
    done = graftrace("record", "-b", "256k", *MODES[mode], program, "busy", threads,
                     240000 // threads, 200 if "threshold" in mode else 0)
    recorded, lost = recorded_and_lost(done)
    assert recorded + lost == made(done)
    if not mode.startswith("drain"):
        assert lost > 0
    assert told_by_report(graftrace) == (recorded, lost)


def test_more_threads_than_parts_of_the_buffer_are_told_as_the_cause(graftrace, program):
    done = graftrace("record", "-b", "1M", program, "idle", 600, 3)
    recorded, lost = recorded_and_lost(done)
    assert recorded + lost == made(done)
    assert lost > 0 and "hold a part of the buffer each" in done.stderr


@pytest.mark.parametrize("tracer", ["function_graph", "function"])
def test_threads_that_call_a_little_hold_little(graftrace, program, tracer):
    """More threads live at a time than the buffer has ordinary sub-buffers: 2,048."""
    done = graftrace("record", "-p", tracer, program, "idle", 2500, 100)
    assert recorded_and_lost(done) == (made(done), 0)
    assert told_by_report(graftrace) == (made(done), 0)


@pytest.mark.parametrize("mode", [[], ["--overwrite"]], ids=["drain", "overwrite"])
def test_small_sub_buffers_are_followed_by_ordinary_ones(graftrace, program, mode):
    # the first 512 threads have no small one
    done = graftrace("record", *mode, program, "idle", 600, 700)
    assert recorded_and_lost(done) == (made(done), 0)
    assert told_by_report(graftrace) == (made(done), 0)


def test_the_newest_threads_are_kept_with_overwrite(graftrace, program):
    done = graftrace("record", "--overwrite", "-b", "1M", program, "short", 1200, 11)
    recorded, lost = recorded_and_lost(done)
    assert recorded + lost == made(done)
    # nothing was refused for want of room, and what is there is of the last threads
    assert "lost because" not in done.stderr
    assert recorded > 200 * 12


def test_losses_of_threads_that_are_gone_are_told_to_whoever_looks_later(graftrace, compile):
    """The host keeps nothing of each of them, but the sum: in `stats`, in the last line, in the file."""
    process = graftrace.start("record", "--overwrite", "-b", "256k", compile(COME_AND_GO, "-O2", "-pthread"),
                              stdin=subprocess.PIPE)
    assert process.stdout.readline() == "gone\n", process.stderr.read()
    pid = int(process.stdout.readline())
    wait_until(lambda: graftrace("get", "-P", pid, "tracing_on", code=None).returncode == 0, "the door")

    def look():
        return dict(re.findall(r"^(.+): (\d+)$", graftrace("get", "-P", pid, "stats").stdout, re.M))

    def is_settled():
        """The host looks at those that are gone while nobody views its ring: on a busy machine that takes a while."""
        before = look()["lost calls"]
        time.sleep(0.5)
        now = look()
        return now["lost calls"] == before and int(now["threads"]) < 2000

    wait_until(is_settled, "the host")
    stats = look()
    _, said = process.communicate("\n", timeout=PATIENCE)
    found = LAST_LINE.search(said)
    assert found, said
    calls, threads, lost = map(number, found.groups())
    assert (calls + lost, threads) == (1 + 3000 * 4, 3001)
    assert lost > 6000
    assert int(stats["lost calls"]) == lost
    assert told_by_report(graftrace) == (calls, lost)


def test_threads_that_nest_deeply_take_little_room_for_addresses(graftrace, compile):
    waits = compile(DEEP, "-O2", "-pthread")
    process = graftrace.start("record", waits, stdin=subprocess.PIPE)
    assert process.stdout.readline() == "deep\n"
    pid = int(process.stdout.readline())
    status = Path(f"/proc/{pid}/status").read_text()
    process.communicate("\n")
    # 64 threads' stacks, and what the recording has for itself: 1.1 GB of addresses
    assert int(re.search(r"VmSize:\s+(\d+)", status)[1]) < (1600 + 64 * 2) * 1024
