# SPDX-License-Identifier: MIT
"""record --stop-when keeps what led to a moment, and the program goes on; a program that dies leaves
the calls that it was in."""

import re
import signal

import pytest

from attaching import Running, look
from conftest import PATIENCE, line_with

# Requests, of which one is slow; then it goes on, and says so at its end.
REQUESTS = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int got;
__attribute__((noinline)) int work(int n) { volatile int s = 0; for (int i = 0; i < n; i++) s += i; return s; }
__attribute__((noinline)) void slow_part(void) { usleep(60000); work(1); }
__attribute__((noinline)) int request(int n) { work(10); if (n == 700) slow_part(); return work(n); }
__attribute__((noinline)) void afterwards(void) { work(2); }
void on_usr1(int number) { got = number; }
void *serve(void *last) { for (int i = 0; i < *(int *)last; i++) request(i); return NULL; }
int main(int argc, char **argv) {
    pthread_t threads[3]; int last = 1000, few = 300;
    signal(SIGUSR1, on_usr1);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, serve, i == 1 ? &last : &few);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    if (argc > 1 && !strcmp(argv[1], "signal")) raise(SIGUSR1);
    for (int i = 0; i < 200; i++) afterwards();
    printf("done %d\n", got);
    return 3;
}
"""

# The slow part is the last that it does, but for a time in which it cannot be stopped to detach from it.
ENDING = r"""
#include <unistd.h>
__attribute__((noinline)) void slow_part(void) { usleep(6000); __asm__ volatile(""); }
int main(void) { slow_part(); if (vfork() == 0) { usleep(300000); _exit(0); } _exit(3); }
"""

CRASH = r"""
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
static int ready[2];
__attribute__((noinline)) int reads(volatile int *p) { int x = *p; __asm__ volatile("" ::: "memory"); return x + 1; }
__attribute__((noinline)) int parses(volatile int *p) { return reads(p) + 1; }
__attribute__((noinline)) void waits(void) { write(ready[1], "", 1); for (;;) pause(); }
static void *thread(void *p) { waits(); return p; }
int main(int argc, char **argv) {
    pthread_t t; char c; pid_t child;
    if (argc > 1 && !strcmp(argv[1], "child")) {
        child = fork();
        if (child) { siginfo_t info; waitid(P_PID, child, &info, WEXITED | WNOWAIT); sleep(3);
                     waitpid(child, NULL, 0); write(1, "done\n", 5); return 4; }
    }
    pipe(ready); pthread_create(&t, NULL, thread, NULL); read(ready[0], &c, 1);
    if (argc > 1 && !strcmp(argv[1], "abort")) abort();
    return parses(NULL);
}
"""


@pytest.fixture
def requests(compile):
    return compile(REQUESTS, "-O1", "-pthread", "-fpatchable-function-entry=5")


@pytest.fixture
def crash(compile):
    return compile(CRASH, "-O1", "-pthread", "-fpatchable-function-entry=5")


def names(graftrace):
    return set(re.findall(r"\b(\w+)\(\)", graftrace("show", "--no-pager").stdout))


@pytest.mark.parametrize("mode", [["--overwrite"], []], ids=["overwrite", "all"])
def test_the_slow_request_is_kept_and_the_program_goes_on(graftrace, requests, mode):
    done = graftrace("record", *mode, "--stop-when", "slow_part > 50ms", requests, code=3)
    assert done.stdout == "done 0\n"
    assert re.search(r"'slow_part' took \d+\.\d{3} ms in thread \d+ of process \d+: the recording ends",
                     done.stderr)
    seen = names(graftrace)
    assert "slow_part" in seen and "afterwards" not in seen
    rows = graftrace("report", "--format", "csv", "--by", "function").stdout
    assert "slow_part,1," in rows.replace('"', "").replace(" ", "") or "slow_part" in rows


def test_a_program_that_ends_while_it_is_detached_from_keeps_its_exit_code(graftrace, compile):
    program = compile(ENDING, "-O1", "-fpatchable-function-entry=5")
    done = graftrace("record", "--stop-when", "slow_part > 5ms", program, code=3)
    assert "the recording ends" in done.stderr


def test_calls_that_are_fast_enough_stop_nothing(graftrace, requests):
    done = graftrace("record", "--stop-when", "slow_part > 50s", requests, code=3)
    assert "the recording ends" not in done.stderr
    assert "afterwards" in names(graftrace)


def test_the_nth_call_of_all_threads_together_stops(graftrace, requests):
    done = graftrace("record", "--overwrite", "--stop-when", "request hit 1200", requests, code=3)
    assert "'request' was called in thread" in done.stderr
    report = graftrace("report").stdout
    # Of the threads that were in a call at that moment each may have begun one more.
    calls = int(re.search(r"(\S+)\s+request\b", report).group(1).replace(",", "")) \
        if re.search(r"(\d[\d,]*)\s+request\b", report) else None
    assert calls is None or 1200 <= calls <= 1203
    assert "afterwards" not in names(graftrace)


def test_a_signal_stops_at_its_handler(graftrace, requests):
    done = graftrace("record", "--stop-when", "signal SIGUSR1", requests, "signal", code=3)
    assert done.stdout == f"done {int(signal.SIGUSR1)}\n"
    assert "'on_usr1' was called" in done.stderr
    seen = names(graftrace)
    assert "on_usr1" in seen and "afterwards" not in seen


def test_the_first_of_several_conditions_stops(graftrace, requests):
    done = graftrace("record", "--stop-when", "crash", "--stop-when", "request > 40s", "--stop-when",
                     "afterwards hit 5", requests, code=3)
    assert done.stderr.count("the recording ends") == 1
    assert "'afterwards' was called" in done.stderr


def test_a_function_that_no_filter_names_stops_too(graftrace, requests):
    done = graftrace("record", "-l", "work", "--stop-when", "slow_part > 50ms", "--stop-when",
                     "afterwards hit 1", requests, code=3)
    assert "'slow_part' took" in done.stderr
    seen = names(graftrace)
    assert "work" in seen and "request" not in seen and "afterwards" not in seen


def test_a_function_that_is_not_there_is_told_and_stops_nothing(graftrace, requests):
    done = graftrace("record", "--stop-when", "no_such_function hit 1", requests, code=3)
    assert "--stop-when: there is no function 'no_such_function'" in done.stderr
    assert "afterwards" in names(graftrace)


def test_a_wrong_condition_is_refused_before_anything_runs(graftrace, requests):
    done = graftrace("record", "--stop-when", "request > 10", requests, code=2)
    assert done.stdout == ""
    assert "unit is missing: ns, us, ms or s\n  request > 10\n              ^\n" in done.stderr


def test_a_crash_shows_the_calls_of_each_thread(graftrace, crash):
    done = graftrace("record", crash, code=-signal.SIGSEGV)
    assert re.search(r"process \d+ died of SIGSEGV \(Segmentation fault\); open were, innermost last:\n"
                     r"  thread .*\n"
                     r"    main  \(for .*\n"
                     r"      parses  \(for .*\n"
                     r"        reads  \(for .*\n"
                     r"  thread .*\n"
                     r"    thread  \(for .*\n"
                     r"      waits  \(for .*\n", done.stderr)
    text = graftrace("report", "--crash").stdout
    assert "(for less than 1 us)" in text and "0.000 ms" not in text
    assert "died of SIGSEGV" in text and text.index("parses") < text.index("reads") < text.index("waits")


def test_the_last_moments_before_an_abort_are_in_the_ring(graftrace, crash):
    done = graftrace("record", "--overwrite", crash, "abort", code=-signal.SIGABRT)
    assert "died of SIGABRT" in done.stderr
    assert {"main", "waits"} <= names(graftrace)


def test_a_crash_of_a_child_stops_the_recording_of_all(graftrace, crash):
    done = graftrace("record", "--overwrite", "--stop-when", "crash", crash, "child", code=4)
    assert done.stdout == "done\n"
    assert re.search(r"process \d+ died of SIGSEGV \(Segmentation fault\): the recording ends",
                     done.stderr)
    assert re.search(r"innermost last:\n(?s:.*)        reads  \(for ", done.stderr)


# One that runs when the recorder comes: it does what it reads.
RUNS = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int reads(volatile int *p) { int x = *p; __asm__ volatile("" ::: "memory"); return x + 1; }
__attribute__((noinline)) int request(int what) {
    static int here;
    if (what == 's') usleep(60000);
    if (what == 'u') raise(SIGUSR1);
    return reads(what == 'c' ? NULL : &here) + 1; }
void on_usr1(int number) { (void)number; __asm__ volatile("" ::: "memory"); }
static volatile int begun;
static void *thread(void *p) { begun = 1; for (;;) pause(); return p; }
int main(void) {
    pthread_t t; char line[16];
    signal(SIGUSR1, on_usr1);
    pthread_create(&t, NULL, thread, NULL);
    while (!begun) usleep(1000);
    puts("ready"); fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) { request(line[0]); puts("done"); fflush(stdout); }
    return 0;
}
"""


@pytest.mark.parametrize("condition, words, said", [
    ("request > 50ms", "xxsx", "'request' took "),
    ("request hit 3", "xxxx", "'request' was called in thread"),
    ("signal USR1", "xux", "'on_usr1' was called in thread"),
], ids=["slow", "hit", "signal"])
def test_a_process_that_runs_already_is_left_when_it_happens(condition, words, said, graftrace, compile):
    with Running(compile(RUNS, "-O1", "-pthread", "-falign-functions=16")) as target:
        before = look(target.pid)
        tracer = graftrace.start("record", "-P", str(target.pid), "--overwrite", "--stop-when", condition)
        line_with(tracer.stderr, "recording process")
        for word in words:
            assert target(word) == "done"
        _, text = tracer.communicate(timeout=PATIENCE)
        assert tracer.returncode == 0 and said in text and "the recording ends" in text
        assert look(target.pid) == before
    assert "request" in names(graftrace)


@pytest.mark.parametrize("options", [[], ["--overwrite", "--stop-when", "crash"]], ids=["all", "crash"])
def test_a_crash_of_a_process_that_was_attached_to_shows_its_calls(options, graftrace, compile):
    with Running(compile(RUNS, "-O1", "-pthread", "-falign-functions=16")) as target:
        tracer = graftrace.start("record", "-P", str(target.pid), *options)
        line_with(tracer.stderr, "recording process")
        assert target("x") == "done"
        target.send("c")
        _, text = tracer.communicate(timeout=PATIENCE)
    assert re.search(r"died of SIGSEGV \(Segmentation fault\); open were, innermost last:\n"
                     r"  thread .*\n    request  \(for .*\n      reads  \(for ", text)
    assert "died of SIGSEGV (Segmentation fault); open at the end were" in graftrace("report", "--crash").stdout
