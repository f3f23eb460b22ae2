# SPDX-License-Identifier: MIT
"""Attaching to processes that load and unload libraries all the time."""

import pytest

from attaching import Running, code, end_recording, is_clean, record, start_recording
from conftest import wait_until

# Both have the same code at the same places, and come to lie at the same address by turns.
LIBRARY = r"""
__attribute__((noinline)) long IN(long n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
#ifdef MORE
#define FUNCTION(name) long name(long n) { return n - 1; }
MORE
#endif
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


def libraries(compile, *flags):
    return [str(compile(LIBRARY, "-O2", "-shared", "-fPIC", f"-DIN=in_{letter}", f"-DRUN=run_{letter}", *flags))
            for letter in "ab"]


def stacks(graftrace):
    lines = graftrace("export", "-q", "--to", "folded", "-o", "-").stdout.splitlines()
    return [line.rsplit(" ", 1)[0].split(";") for line in lines]


def test_a_library_is_not_taken_for_the_one_that_was_there_before(graftrace, compile):
    """One that was loaded between the look at the process and the change of its code."""
    with Running(compile(LOADS, "-O2"), *libraries(compile)) as target:
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


ON_COMMAND = r"""
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	char line[20];
	void *library = NULL;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (argc > 2 && fgets(line, sizeof line, stdin)) {
		const char *name = *line == 'a' ? "run_a" : "run_b";
		long (*run)(long);

		if (library)
			dlclose(library);
		library = dlopen(argv[1 + (*line == 'b')], RTLD_NOW);
		run = library ? (long (*)(long))dlsym(library, name) : NULL;
		printf("%ld at %p\n", run ? run(20) : 0, (void *)run);
	}
	return 0;
}
"""


@pytest.mark.parametrize("way", ["jumps", "breakpoints"])
@pytest.mark.parametrize("more", range(8))
def test_patches_of_one_library_are_not_taken_for_a_debuggers_in_the_other(more, way, graftrace, compile):
    """Whatever the distance of their stubs: one byte of their jumps may be all that differs."""
    functions = " ".join(f"FUNCTION(more_{i})" for i in range(more))
    with Running(compile(ON_COMMAND, "-O2"), *libraries(compile, f"-DMORE={functions}")) as target:
        tracer = start_recording(graftrace, target.pid, "--libs", "--unprepared", "--libcall",
                                 *["--breakpoints"] * (way == "breakpoints"))
        wait_until(lambda: target("a") == target("b"))
        assert "somebody has written" not in end_recording(tracer)
        assert is_clean(target.pid)
        assert target("a").startswith("41 ")


# Too short for a jump; at the same address in both, with other code. The library needs the C library, or counts
# as a part of it.
SHORT = r"""
long IN(long n);
__asm__(".pushsection .text\n.p2align 4\n"
	".globl " TINY "\n.type " TINY ",@function\n" TINY ": " CODE "\n.size " TINY ", . - " TINY "\n"
	".globl more\n.type more,@function\nmore: push %rbx\npop %rbx\nret\n.size more, . - more\n.popsection");
"""


def file_code(pid):
    return {line.split()[-1]: digest for line, digest in code(pid).items() if ".so" in line or "/programs" in line}


def test_a_breakpoint_of_one_library_is_not_taken_for_the_others(graftrace, compile):
    paths = [str(compile(LIBRARY + SHORT, "-Wl,--no-as-needed", "-O2", "-shared", "-fPIC", f"-DIN=in_{letter}",
                         f"-DRUN=run_{letter}", f'-DTINY="tiny_{letter}"', f'-DCODE="{instruction}"'))
             for letter, instruction in (("a", "ret"), ("b", "push %rdi"))]
    with Running(compile(ON_COMMAND, "-O2"), *paths) as target:
        target("b")
        before = file_code(target.pid)
        assert paths[1] in before
        target("a")
        tracer = start_recording(graftrace, target.pid, "--libs", "--unprepared", "--breakpoints")
        wait_until(lambda: target("a") == target("b"))
        assert "somebody has written" not in end_recording(tracer)
        assert is_clean(target.pid)
        assert file_code(target.pid) == before


# Its code is writable and not executable from "w" to the next line.
WRITES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	long (*run)(long) = library ? (long (*)(long))dlsym(library, "run_a") : NULL;
	void *page = (void *)((uintptr_t)run & ~4095ul);
	char line[20];

	if (run == NULL)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof line, stdin)) {
		if (mprotect(page, 4096, PROT_READ | (*line == 'w' ? PROT_WRITE : PROT_EXEC)) != 0)
			return 3;
		printf("%ld\n", *line == 'w' ? 0 : run(20));
	}
	return 0;
}
"""


def test_a_library_whose_code_is_written_to_keeps_what_was_noted_of_it(graftrace, compile):
    library = libraries(compile)[0]
    with Running(compile(WRITES, "-O2"), library) as target:
        before = file_code(target.pid)
        tracer = start_recording(graftrace, target.pid, "--libs")
        assert target("run") == "41"
        assert file_code(target.pid) != before
        assert target("w") == "0"
        graftrace("set", "-P", target.pid, "set_ftrace_filter", "run_a")
        graftrace("set", "-P", target.pid, "set_ftrace_filter", "")
        assert target("run") == "41"
        end_recording(tracer)
        assert is_clean(target.pid)
        assert file_code(target.pid) == before
        assert target("run") == "41"
