# SPDX-License-Identifier: MIT
"""Programs that use what the agent needs for itself: the %gs register, the time stamp counter. None dies of it, and where
they cannot be traced any more words say so."""

import subprocess

import pytest

WORK = "3987631956\n"  # what segment.c computes


def calls_of(graftrace, function):
    rows = {words[-1]: words[1:] for words in map(str.split, graftrace("report").stdout.splitlines()) if words}
    return int(rows[function][0])


@pytest.mark.parametrize(
    ("more", "flags"), [([], []), (["-p", "function"], ["-static"]), (["--breakpoints"], [])], ids=["program", "function", "int3"]
)
def test_a_base_in_gs_stays_where_calls_are_traced_meanwhile(more, flags, graftrace, compile):
    program = compile("segment.c", "-O1", "-pthread", *flags)
    assert graftrace("record", *more, "--", program, "inline").stdout == WORK
    assert calls_of(graftrace, "module") == 4 * 48


@pytest.mark.parametrize("way", ["libc", "syscall"])
def test_who_takes_gs_by_the_c_library_is_left_before_it_does(way, graftrace, compile):
    done = graftrace("record", "--", compile("segment.c", "-O1", "-pthread"), way)
    assert done.stdout == WORK
    assert "runs untraced: it takes the %gs register for itself" in done.stderr


def test_a_program_with_an_instruction_that_sets_gs_runs_untraced(graftrace, compile):
    done = graftrace("record", "--", compile("segment.c", "-O1", "-pthread", "-DINSTRUCTION"), "inline")
    assert done.stdout == WORK
    assert "sets the %gs register itself (wrgsbase), which graftrace needs" in done.stderr and "runs untraced" in done.stderr


LOADS = """
#include <dlfcn.h>
#include <stdio.h>
__attribute__((noinline)) int inner(volatile int n) { return n ? 1 + inner(n - 1) : 0; }
int main(int argc, char **argv) {
    int sum = inner(9);
    void *library = dlopen(argv[1], RTLD_NOW);
    int (*part)(int) = library ? (int (*)(int))dlsym(library, "part") : 0;
    if (!part) return 3;
    for (int i = 0; i < 1000; i++) sum += part(inner(i % 10));
    printf("%d\\n", sum);
    return 0;
}
"""
PART = """
int part(int n) { if (n < 0) __asm__ volatile("wrgsbase %0" : : "r"(0l)); return n; }
"""


def test_a_process_that_loads_such_a_library_is_left(graftrace, compile, tmp_path):
    library = compile(PART, "-O1", "-shared", "-fPIC")
    done = graftrace("record", "--", compile(LOADS, "-O1"), library)
    assert done.stdout == "4509\n"
    assert "runs untraced: " in done.stderr and "sets the %gs register itself" in done.stderr
    assert calls_of(graftrace, "inner") == 10  # those before


@pytest.mark.parametrize(("way", "more"), [("prctl", []), ("prctl", ["--libs"]), ("syscall", ["-p", "function"])])
def test_a_program_that_forbids_itself_the_clock_lives(way, more, graftrace, compile):
    done = graftrace("record", *more, "--", compile("clock.c", "-O1", "-pthread"), way)
    assert done.stdout == "45005\n"
    assert "runs untraced: it forbids itself the time stamp counter" in done.stderr
    assert calls_of(graftrace, "forbid") == 1


def test_a_process_that_has_forbidden_itself_the_clock_is_not_attached_to(graftrace, compile):
    with subprocess.Popen([compile("clock.c", "-O1", "-pthread"), "before", "60"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        done = graftrace("record", "-P", str(process.pid), "--for", "1s", code=1)
        assert "has forbidden itself the time stamp counter" in done.stderr
        assert process.poll() is None
        with open(f"/proc/{process.pid}/maps") as maps:
            assert "graftrace" not in maps.read()
        process.kill()
