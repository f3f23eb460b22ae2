# SPDX-License-Identifier: MIT
"""Attaching to processes that load and unload libraries all the time."""

from attaching import Running, record

# Both have the same code at the same places, and come to lie at the same address by turns.
LIBRARY = r"""
__attribute__((noinline)) long IN(long n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
long RUN(long n) { return IN(n) + n; }
"""
LOADS = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Each calls one library only. */
__attribute__((noinline)) long first(long (*run)(long), long n) { return run(n) - n; }
__attribute__((noinline)) long second(long (*run)(long), long n) { return run(n) - n; }

static void use(const char *path, const char *name, long (*call)(long (*)(long), long))
{
	void *library = dlopen(path, RTLD_NOW);
	long (*run)(long) = library ? (long (*)(long))dlsym(library, name) : NULL;
	const double end = seconds() + 0.004;

	if (run == NULL)
		exit(2);
	while (seconds() < end)
		for (long n = 0; n < 20; n++)
			if (call(run, n) != n + 1)
				exit(3);
	dlclose(library);
}

int main(int argc, char **argv)
{
	puts("ready");
	fflush(stdout);
	while (argc > 2) {
		use(argv[1], "run_a", first);
		use(argv[2], "run_b", second);
	}
	return 1;
}
"""


def stacks(graftrace):
    lines = graftrace("export", "-q", "--to", "folded", "-o", "-").stdout.splitlines()
    return [line.rsplit(" ", 1)[0].split(";") for line in lines]


def test_a_library_is_not_taken_for_the_one_that_was_there_before(graftrace, compile):
    """One that was loaded between the look at the process and the change of its code."""
    libraries = [compile(LIBRARY, "-O2", "-shared", "-fPIC", f"-DIN=in_{letter}", f"-DRUN=run_{letter}")
                 for letter in "ab"]
    with Running(compile(LOADS, "-O2"), *map(str, libraries)) as target:
        seen = set()
        for _ in range(10):
            record(graftrace, target.pid, "--libs", "--unprepared", "--libcall", "--for", "30ms")
            seen |= {tuple(stack) for stack in stacks(graftrace)}
            assert target.is_alive()
        mixed = [stack for stack in seen
                 if "first" in stack and {"run_b", "in_b", "in_b@plt"} & set(stack)
                 or "second" in stack and {"run_a", "in_a", "in_a@plt"} & set(stack)]
        assert not mixed
        assert any("first" in stack and "run_a" in stack for stack in seen)
        assert any("second" in stack and "run_b" in stack for stack in seen)
