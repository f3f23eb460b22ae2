# SPDX-License-Identifier: MIT
"""options/sleep-time of a program that runs: durations with or without the time off the CPU, or words
why that cannot be known."""

import re

import pytest

from test_http import Served, port_of

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#define CALLED __attribute__((noinline))

CALLED void sleeps(void)
{
	nanosleep(&(struct timespec){ 0, 60000000 }, NULL);
	__asm__ volatile("");
}
CALLED void spins(void)
{
	struct timespec from, now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < 10);
}
static void *work(void *unused) { sleeps(); return unused; }
int main(void)
{
	char line[64];
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		pthread_t thread;
		sleeps();
		spins();
		pthread_create(&thread, NULL, work, NULL);
		pthread_join(thread, NULL);
		printf("done\n");
		fflush(stdout);
	}
	return 3;
}
"""


@pytest.fixture
def served(graftrace, compile):
    program = compile(PROGRAM, "-O1", "-pthread", "-fpatchable-function-entry=5")
    process = graftrace.start("record", "--serve=127.0.0.1:0", "--", program, stdin=-1)
    served = Served(process, port_of(process))
    assert process.stdout.readline() == "ready\n"
    yield served
    process.stdin.close()
    assert process.wait(timeout=30) == 3
    process.stdout.close()
    process.stderr.close()


def durations(served, function):
    """In us, of every call."""
    return [float(found) for found in
            re.findall(rf"([\d.]+) us +\| +{function}\(\);", served.get("trace"))]


def test_time_off_the_cpu_is_taken_out_or_the_reason_is_said(served):
    status, reason, _ = served.ask("PUT", "options/sleep-time", "0")
    served.calls(1)
    assert len(durations(served, "sleeps")) == 2
    if status != 204:
        # not permitted here: it is said, and nothing has changed
        assert "perf_event_open" in reason
        assert served.get("options/sleep-time") == "1\n"
        assert min(durations(served, "sleeps")) >= 60000
        return
    assert served.get("options/sleep-time") == "0\n"
    # main slept, and so did a thread that came later
    assert max(durations(served, "sleeps")) < 30000
    assert 9000 < durations(served, "spins")[0] < 30000
    served.put("options/sleep-time", "1")
    assert min(durations(served, "sleeps")) >= 60000
    served.calls(1)
    served.put("options/sleep-time", "0")
    assert len(durations(served, "sleeps")) == 4
    assert max(durations(served, "sleeps")) < 30000
