# SPDX-License-Identifier: MIT
"""New processes in every way: each goes on as before and is recorded with its own calls."""

import pytest

import behaviour

KINDS = ["plain", "deep", "bare", "tree", "thread", "vfork", "spawn", "shell", "exec",
         "exec-thread", "orphan"]


def judge(way, kind, directory, *options, **how):
    program = behaviour.program(way, "forks.c")
    target = behaviour.program(way, "target.c")
    shared = ("main",) if kind == "shell" else ()  # the shell's own
    return behaviour.judge([program, kind, target], directory, *options, way=way, shared=shared, **how)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_both_sides_are_recorded(way, kind, tmp_path):
    judge(way, kind, tmp_path)


@pytest.mark.parametrize("way, kind", [("pg", "plain"), ("static", "deep"), ("static", "exec"),
                                       ("instrument", "thread"), ("no-pie", "vfork"),
                                       ("patchable-clang", "tree")])
def test_both_sides_are_recorded_in_other_builds(way, kind, tmp_path):
    judge(way, kind, tmp_path)


@pytest.mark.parametrize("kind", ["plain", "deep", "thread", "tree"])
@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_no_fork_leaves_children_clean(way, kind, tmp_path):
    program = behaviour.program(way, "forks.c")
    target = behaviour.program(way, "target.c")
    before = behaviour.plain([program, kind, target], tmp_path)
    after = behaviour.traced([program, kind, target], tmp_path, "--no-fork",
                             *behaviour.WAYS[way][1])
    assert (after.code, after.out, after.err) == (before.code, before.out, before.err)
    behaviour.compare(before.counts.by_name(), after.counts.by_name(), "counts")
    trace = behaviour.recorded.Recorded(tmp_path / "trace.data", after.counts.names)
    assert not trace.errors, trace.errors
    pids = {writer.pid for writer in trace.writers}
    assert len(pids) == 1
    (pid,) = pids
    behaviour.compare({key: calls for key, calls in after.counts.calls.items() if key[0] == pid},
                      trace.counted, "the parent's calls")


# Two threads' first calls come so many microseconds after that of a third; the program's, or a child's.
FIRST = r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static long after_ns, began;
__attribute__((noinline)) int leaf(int x) { __asm__ volatile(""); return x + 1; }
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static void calls(void) { for (int i = 0; i < 100; i++) leaf(i); }
static void *late(void *p) {
    long at;
    while (!(at = __atomic_load_n(&began, __ATOMIC_ACQUIRE)) || now() < at + after_ns) ;
    calls(); return p;
}
int main(int argc, char **argv) {
    pthread_t threads[2];
    int status = 0;
    after_ns = atol(argv[2]) * 1000;
    if (argv[1][0] == 'c') {
        leaf(0);
        if (fork()) return wait(&status) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
    }
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, late, NULL);
    usleep(1000);
    __atomic_store_n(&began, now(), __ATOMIC_RELEASE);
    calls();
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 5;
}
"""


@pytest.mark.parametrize("who, calls", [("program", "300"), ("child", "301")])
def test_first_calls_of_threads_at_once(graftrace, compile, who, calls):
    program = compile(FIRST, "-O2", "-pthread", "-fpatchable-function-entry=5")
    for after_us in range(0, 300, 25):
        done = graftrace("record", "-l", "leaf", program, who, after_us, code=5)
        assert f"graftrace: {calls} calls," in done.stderr, done.stderr


@pytest.mark.parametrize("kind, calls", [("thread", "10"), ("vfork", "6")])
def test_who_inherits_a_block_is_not_taken_for_its_owner(graftrace, compile, kind, calls):
    source = (behaviour.PROGRAMS / "heirs.c").read_text()
    program = compile(source, "-O1", "-pthread", "-fpatchable-function-entry=5")
    done = graftrace("record", "-l", "leaf", "-l", "wait_inside", "-l", "fork_twice", program, kind, code=5)
    assert f"graftrace: {calls} calls," in done.stderr, done.stderr


@pytest.mark.parametrize("way", ["patchable", "unprepared", "static"])
def test_a_child_that_shares_the_thread_pointer_runs_beside_its_creator(way, tmp_path):
    judged = behaviour.judge([behaviour.program(way, "sharers.c")], tmp_path, way=way)
    assert judged.before.out == b"sum 48000, 0 children ended badly, beside right\n"


@pytest.mark.parametrize("way", ["static", "static-pie"])
def test_who_shares_the_thread_pointer_is_known_without_names(way, graftrace):
    program = behaviour.program(way, "sharers.c", flags=["-s"])
    for _ in range(5):
        done = graftrace("record", program)
        assert done.stdout == "sum 48000, 0 children ended badly, beside right\n"
        assert " 1 thread," in done.stderr and "without their returns" not in done.stderr, done.stderr
