# SPDX-License-Identifier: MIT
"""`trace` is read while it is written: one cut over all threads. If a call is there, so is every call that led to it."""

import collections
import re

from mounted import Mounted
from served import serving

# Threads call hop() CALLS times in turns, each when the one before it has.
RING = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#define THREADS 6
#define TURNS	3000
#define CALLS	50

static atomic_int token, over;

__attribute__((noinline)) int hop(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static void *work(void *data)
{
	int own = (int)(long)data, now;
	char name[16];

	snprintf(name, sizeof(name), "hopper%d", own);
	pthread_setname_np(pthread_self(), name);
	while (!over) {
		now = token;
		if (now % THREADS == own && now < TURNS) {
			for (int i = 0; i < CALLS; i++)
				hop(now);
			token = now + 1;
		} else {
			sched_yield();
		}
	}
	return NULL;
}

/* "done" after each line, when a tenth more of the turns are over; the threads go on. */
int main(void)
{
	pthread_t threads[THREADS];
	char line[64];
	int until = 0;

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (long i = 0; until == 0 && i < THREADS; i++)
			pthread_create(&threads[i], NULL, work, (void *)i);
		until += TURNS / 10;
		while (token < until)
			sched_yield();
		printf("done\n");
		fflush(stdout);
	}
	over = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 3;
}
"""
THREADS, CALLS = 6, 50


def is_one_cut(text):
    """The calls of each thread in the order of their turns; and whether one of them at most is in a turn, those before
    it have had theirs, and those behind it have not."""
    made = collections.Counter(re.findall(r"hopper(\d)-\d+ .* hop <-", text))
    made = [made[str(index)] for index in range(THREADS)]
    partly = [count for count in made if count % CALLS]
    return made, sorted(made, reverse=True) == made and made[0] - made[-1] <= CALLS and len(partly) <= 1


def test_a_running_programs_trace_is_one_cut_over_all_threads(graftrace, compile):
    program = compile(RING, "-O2", "-pthread")
    with serving(graftrace, program, "-p", "function", "-l", "hop", "-b", "64M") as served:
        for _ in range(6):
            served.calls(1)
            made, whole = is_one_cut(served.get("trace"))
            assert whole, made
    assert sum(made) > THREADS * CALLS


def test_an_instances_trace_is_one_cut_too(graftrace, compile):
    """Its records are copied from one thread after the other."""
    mounted = Mounted(graftrace, compile(RING, "-O2", "-pthread"), "-p", "function", "-l", "hop", "-b", "64M")
    try:
        mounted.write("tracing_on", "0")
        one = mounted.path / "instances" / "one"
        one.mkdir()
        (one / "set_ftrace_filter").write_text("hop")
        (one / "current_tracer").write_text("function")
        for _ in range(6):
            mounted.calls(1)
            made, whole = is_one_cut((one / "trace").read_text())
            assert whole, made
        assert mounted.end() == 3
    finally:
        mounted.end_anyhow()
    assert sum(made) > THREADS * CALLS
