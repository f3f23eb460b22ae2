# SPDX-License-Identifier: MIT
"""options/sleep-time of a program that runs: durations with or without the time off the CPU, or words
why that cannot be known."""

import re
from pathlib import Path

import pytest

from conftest import PATIENCE
from served import serving

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#define CALLED __attribute__((noinline))

static double now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}
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
/* How long each took, as the program sees it. */
static double main_slept, thread_slept, spun;
static void *work(void *unused)
{
	thread_slept = now_us();
	sleeps();
	thread_slept = now_us() - thread_slept;
	return unused;
}
int main(void)
{
	char line[64];
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		pthread_t thread;
		double start = now_us(), woken;
		sleeps();
		woken = now_us();
		spins();
		main_slept = woken - start;
		spun = now_us() - woken;
		pthread_create(&thread, NULL, work, NULL);
		pthread_join(thread, NULL);
		printf("%f %f %f\n", main_slept, thread_slept, spun);
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


def calls(served):
    """Has the program do all of it once: what main's sleep, the thread's and the work took, in us."""
    served.process.stdin.write("1\n")
    served.process.stdin.flush()
    return [float(word) for word in served.process.stdout.readline().split()]


def awake(slept, little=30000):
    """What a sleep of 60 ms that took so long can have been on the CPU, and a little: on a virtual
    machine whose CPU is taken away meanwhile the thread is said to be on it."""
    return slept - 60000 + little


def durations(served, function):
    """In us, of every call."""
    return [float(found) for found in
            re.findall(rf"([\d.]+) us +\| +{function}\(\);", served.get("trace"))]


def test_time_off_the_cpu_is_taken_out_or_the_reason_is_said(served):
    status, reason, _ = served.ask("PUT", "options/sleep-time", "0")
    *slept, spun = calls(served)
    assert len(durations(served, "sleeps")) == 2
    if status != 204:
        # not permitted here: it is said, and nothing has changed
        assert "perf_event_open" in reason
        assert served.get("options/sleep-time") == "1\n"
        assert min(durations(served, "sleeps")) >= 60000
        return
    assert served.get("options/sleep-time") == "0\n"
    # main slept, and so did a thread that came later
    assert all(time < awake(took) for time, took in zip(durations(served, "sleeps"), slept))
    assert 9000 < durations(served, "spins")[0] < spun + 1000
    served.put("options/sleep-time", "1")
    assert min(durations(served, "sleeps")) >= 60000
    slept += calls(served)[:2]
    served.put("options/sleep-time", "0")
    assert len(durations(served, "sleeps")) == 4
    assert all(time < awake(took) for time, took in zip(durations(served, "sleeps"), slept))


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
    took = [calls(served) for _ in range(3)]
    mains, threads, spun = map(list, zip(*took))
    found = table(served)
    # main's and two of threads' that have ended, 60 ms each
    assert found["sleeps"][0] == 6
    assert found["sleeps"][1] < sum(awake(slept, 20000) for slept in mains + threads)
    assert found["spins"][0] == 3 and 3 * 9000 < found["spins"][1] < sum(spun) + 3 * 1000
    of_threads = sum(awake(slept, 20000) for slept in threads)
    assert found["work"][1] < of_threads
    # what is recorded for it is in nobody's trace
    assert ("sleeps" in served.get("trace")) == (tracer != "nop")
    served.put("options/graph-time", "0")
    assert table(served)["work"][1] < of_threads
    assert table(served)["spins"] == found["spins"]
    # it is about what comes
    served.put("options/sleep-time", "1")
    calls(served)
    again = table(served)
    assert again["sleeps"][0] == 8
    assert again["sleeps"][1] - found["sleeps"][1] >= 2 * 60000
    # anew: everything
    served.put("function_profile_enabled", "0")
    served.put("function_profile_enabled", "1")
    calls(served)
    whole = table(served)["sleeps"][1]
    assert whole >= 2 * 60000
    served.put("options/sleep-time", "0")
    served.put("tracing_on", "0")
    more = sum(awake(slept, 20000) for slept in calls(served)[:2])
    assert table(served)["sleeps"][0] == 4
    assert whole <= table(served)["sleeps"][1] + 1000 < whole + more
    assert served.get("tracing_on") == "0\n"
    served.put("function_profile_enabled", "0")
    served.put("trace", "")
    calls(served)
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
    assert process.wait(timeout=PATIENCE) == 3
    process.stdout.close()
    process.stderr.close()
