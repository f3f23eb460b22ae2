# SPDX-License-Identifier: MIT
"""options/sleep-time of a program that runs: durations with or without the time off the CPU, or words
why that cannot be known."""

import re
from pathlib import Path

import pytest

from served import serving

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
    with serving(graftrace, program) as served:
        yield served


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


def table(served, path="trace_stat/function0"):
    """{function: (hits, us)}"""
    lines = served.get(path).splitlines()[2:]
    return {line.split()[0]: (int(line.split()[1]), float(line.split()[2])) for line in lines}


@pytest.mark.parametrize("tracer", ["nop", "function", "function_graph"])
def test_the_profiler_counts_without_the_time_off_the_cpu(served, tracer):
    served.put("current_tracer", tracer)
    if served.ask("PUT", "options/sleep-time", "0")[0] != 204:
        return  # not permitted here: the test above has the reason
    served.put("function_profile_enabled", "1")
    for _ in range(3):
        served.calls(1)
    found = table(served)
    # main's and two of threads' that have ended, 60 ms each
    assert found["sleeps"][0] == 6 and found["sleeps"][1] < 6 * 20000
    assert found["spins"][0] == 3 and 3 * 9000 < found["spins"][1] < 3 * 30000
    assert found["work"][1] < 3 * 20000
    # what is recorded for it is in nobody's trace
    assert ("sleeps" in served.get("trace")) == (tracer != "nop")
    served.put("options/graph-time", "0")
    assert table(served)["work"][1] < 3 * 20000
    assert table(served)["spins"] == found["spins"]
    # it is about what comes
    served.put("options/sleep-time", "1")
    served.calls(1)
    again = table(served)
    assert again["sleeps"][0] == 8
    assert again["sleeps"][1] - found["sleeps"][1] >= 2 * 60000
    # anew: everything
    served.put("function_profile_enabled", "0")
    served.put("function_profile_enabled", "1")
    served.calls(1)
    whole = table(served)["sleeps"][1]
    assert whole >= 2 * 60000
    served.put("options/sleep-time", "0")
    served.put("tracing_on", "0")
    served.calls(1)
    assert table(served)["sleeps"][0] == 4
    assert whole <= table(served)["sleeps"][1] + 1000 < whole + 2 * 20000
    assert served.get("tracing_on") == "0\n"
    served.put("function_profile_enabled", "0")
    served.put("trace", "")
    served.calls(1)
    assert "sleeps" not in served.get("trace")


def test_of_a_recording_to_a_file_the_profiler_says_that_it_cannot(graftrace, compile):
    program = compile(PROGRAM, "-O1", "-pthread", "-fpatchable-function-entry=5")
    process = graftrace.start("record", program, stdin=-1)
    assert process.stdout.readline() == "ready\n"
    traced = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]
    graftrace("set", "-P", traced, "function_profile_enabled", "1")
    said = graftrace("set", "-P", traced, "options/sleep-time", "0", code=1).stderr
    assert "goes to a file" in said or "perf_event_open" in said
    assert graftrace("get", "-P", traced, "options/sleep-time").stdout == "1\n"
    graftrace("set", "-P", traced, "function_profile_enabled", "0")
    if "goes to a file" in said:
        graftrace("set", "-P", traced, "options/sleep-time", "0")
        graftrace("set", "-P", traced, "function_profile_enabled", "1", code=1)
    process.stdin.close()
    assert process.wait(timeout=30) == 3
    process.stdout.close()
    process.stderr.close()
