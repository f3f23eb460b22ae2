# SPDX-License-Identifier: MIT
"""graftrace profile: its hits are the program's own counts, whatever the program does; its times fit
together; what it says when something is wrong.

GRAFTRACE_SOAK_SECONDS: how long the soak runs (600 for the long one; a second otherwise)."""

import collections
import csv
import io
import os
import re
import signal
import subprocess

import pytest

import behaviour
import recorded
from attaching import GRAFTRACE, Running, look, looks_as
from conftest import PATIENCE, line_with

SOAK_SECONDS = int(os.environ.get("GRAFTRACE_SOAK_SECONDS", "1"))


def profile(command, directory, *options, timeout=PATIENCE):
    """Runs `graftrace profile`; returns the run, with the rows of its table as .rows."""
    done = behaviour.run([behaviour.BUILD / "cli" / "graftrace", "profile", "--format", "csv",
                          "-o", "profile.csv", *options, "--", *command], directory, "profiled",
                         timeout=timeout)
    table = directory / "profile.csv"
    assert table.exists(), done.err
    done.rows = list(csv.DictReader(io.StringIO(table.read_text())))
    return done


def judge(way, command, directory, *options, **how):
    done = profile(command, directory, *behaviour.WAYS[way][1], *options, **how)
    hits = collections.Counter()
    for row in done.rows:
        hits[recorded.short_name(row["function"])] += int(row["calls"])
        assert int(row["self_ns"]) <= int(row["total_ns"])
    assert done.counts.calls, done.err
    behaviour.compare(done.counts.by_name(),
                      {name: hits[name] for name in hits if name in done.counts.names}, "hits")
    return done


@pytest.mark.parametrize("way, source, words", [
    ("patchable", "calls.c", []),
    ("unprepared", "calls.c", []),
    ("pg", "calls.c", []),
    ("patchable", "deep.c", ["tail"]),
    ("patchable", "jump.c", ["longjmp"]),
    ("unprepared", "jump.c", ["siglongjmp"]),
    ("patchable", "jump.c", ["signal-alternate"]),
    ("patchable", "throw.cc", ["catch"]),
    ("unprepared", "throw.cc", ["across"]),
    ("patchable", "throw.cc", ["threads"]),
    ("patchable", "signals.c", ["raise"]),
    ("patchable", "signals.c", ["thread-alternate"]),
    ("patchable", "threads.c", ["serial", "1000"]),
    ("unprepared", "threads.c", ["serial", "50"]),
])
def test_hits_are_the_programs_own_counts(way, source, words, tmp_path):
    command = [behaviour.program(way, source), *words]
    assert judge(way, command, tmp_path).code == behaviour.plain(command, tmp_path).code


@pytest.mark.parametrize("kind", ["plain", "tree", "thread", "vfork", "spawn", "exec"])
def test_children_are_counted_too(kind, tmp_path):
    program = behaviour.program("patchable", "forks.c")
    target = behaviour.program("patchable", "target.c")
    judge("patchable", [program, kind, target], tmp_path)


def test_children_can_be_left_alone(tmp_path):
    program = behaviour.program("patchable", "forks.c")
    target = behaviour.program("patchable", "target.c")
    done = profile([program, "plain", target], tmp_path, "--no-fork")
    here = sum(int(row["calls"]) for row in done.rows)
    everywhere = sum(int(row["calls"])
                     for row in profile([program, "plain", target], tmp_path).rows)
    assert 0 < here < everywhere


def test_coroutines_are_counted(tmp_path):
    program = behaviour.program("patchable", "contexts.c", "switch.S")
    judge("patchable", [program, "ucontext", "interleaved"], tmp_path)


TREE = """
#include <time.h>
#define PLAIN __attribute__((noinline))
static inline __attribute__((always_inline)) void busy(long ms)
{
	struct timespec from, now;
	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}
PLAIN void leaf(void) { busy(20); }
PLAIN void branch(void) { busy(10); leaf(); leaf(); __asm__(""); }
PLAIN void trunk(void) { for (int i = 0; i < 3; i++) branch(); __asm__(""); }
int main(void) { trunk(); __asm__(""); return 7; }
"""


def test_times_of_a_tree_add_up(compile, tmp_path):
    program = compile(TREE, "-O2", "-fpatchable-function-entry=5")
    done = profile([program], tmp_path)
    assert done.code == 7
    rows = {row["function"]: {key: int(row[key]) for key in row if key not in
                              ("function", "object")} for row in done.rows}
    assert [rows[name]["calls"] for name in ("trunk", "branch", "leaf")] == [1, 3, 6]
    assert rows["leaf"]["total_ns"] >= 6 * 19_000_000
    assert rows["branch"]["self_ns"] >= 3 * 9_000_000
    assert rows["trunk"]["total_ns"] >= rows["branch"]["total_ns"]
    # what is in a callee's total is not in its caller's self time: to the rounding of a tick
    rest = rows["branch"]["total_ns"] - rows["branch"]["self_ns"] - rows["leaf"]["total_ns"]
    assert 0 <= abs(rest) < 50_000_000
    assert rows["leaf"]["average_ns"] == rows["leaf"]["total_ns"] // 6
    assert [row["function"] for row in done.rows[:3]] == ["main", "trunk", "branch"]


def test_the_table_is_on_stderr_and_the_output_is_the_programs(graftrace, compile):
    program = compile("#include <stdio.h>\nint main(void) { puts(\"hello\"); return 3; }\n", "-O2",
                      "-fpatchable-function-entry=5")
    done = graftrace("profile", program, code=3)
    assert done.stdout == "hello\n"
    lines = done.stderr.splitlines()
    assert lines[0].split() == ["Calls", "Total", "Self", "Average", "StdDev", "Function"]
    assert lines[1].split()[0] == "1" and lines[1].endswith("main")


def test_the_table_is_sorted_and_cut(graftrace, compile):
    program = compile(TREE, "-O2", "-fpatchable-function-entry=5")
    done = graftrace("profile", "--sort", "calls", "--limit", "1", program, code=7)
    assert done.stderr.splitlines()[1].endswith("leaf")
    assert "3 more rows are not shown" in done.stderr
    by_name = graftrace("profile", "--sort", "name", program, code=7).stderr.splitlines()
    assert [line.split()[-1] for line in by_name[1:]] == ["branch", "leaf", "main", "trunk"]


def test_only_the_functions_that_are_named_are_counted(compile, tmp_path):
    program = compile(TREE, "-O2", "-fpatchable-function-entry=5")
    done = profile([program], tmp_path, "-l", "leaf")
    assert [row["function"] for row in done.rows] == ["leaf"]
    assert done.rows[0]["total_ns"] == done.rows[0]["self_ns"]


DURATIONS = """
#include <time.h>
#define PLAIN __attribute__((noinline))
PLAIN void naps(long us) { nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL); __asm__(""); }
PLAIN int quick(int n) { __asm__ volatile("" ::: "memory"); return n + 1; }
PLAIN void twice(void) { naps(3000); naps(3000); __asm__(""); }
int main(void)
{
	for (int i = 0; i < 30; i++)
		naps(1000);
	for (int i = 0; i < 100000; i++)
		quick(i);
	twice();
	naps(1200000);
	return 0;
}
"""


def test_a_histogram_has_each_call_in_the_bucket_of_its_duration(compile, tmp_path):
    program = compile(DURATIONS, "-O2", "-fpatchable-function-entry=5")
    done = profile([program], tmp_path, "--hist", "*")
    found = collections.defaultdict(list)
    for row in done.rows:
        found[row["function"]].append((int(row["from_ns"]), int(row["to_ns"] or 1 << 62), int(row["calls"])))
    assert {name: sum(calls for _, _, calls in rows) for name, rows in found.items()} == {
        "naps": 33, "quick": 100000, "twice": 1, "main": 1}
    for rows in found.values():
        assert all(end > start for start, end, _ in rows) and rows == sorted(rows)
    # at least as long as was asked for, and most of them not much longer
    assert sum(calls for _, end, calls in found["naps"] if end <= 1_000_000) == 0
    assert sum(calls for start, _, calls in found["naps"] if start < 2_000_000) >= 20
    assert sum(calls for _, end, calls in found["naps"] if end > 1_200_000_000) == 1
    assert sum(calls for _, end, calls in found["quick"] if end < 1000) > 99000
    assert found["twice"][0][1] > 6_000_000


def test_histograms_are_drawn_for_the_functions_that_are_named(graftrace, compile):
    program = compile(DURATIONS, "-O2", "-fpatchable-function-entry=5")
    naps, quick = graftrace("profile", "--hist", "quick", "--hist", "nap?", program).stderr.split("\n\n")
    assert quick.splitlines()[0] == "quick"
    name, head, *lines = naps.splitlines()
    assert name == "naps"
    assert re.fullmatch(r"  33 calls: p50 about [\d.]+ ms, p90 about [\d.]+ ms, p99 (about [\d.]+ m?s|above [\d.]+ s)",
                        head)
    counts = [int(re.fullmatch(r" +[\d.]+ [mu]?s +- +([\d.]+ m?s ?|and more) +(\d+) \|#* *\|", line)[2])
              for line in lines]
    assert sum(counts) == 33 and counts[0] and counts[-1]
    assert f"|{'#' * 40}|" in lines[counts.index(max(counts))]
    cut = graftrace("profile", "--hist", "*", "--limit", "1", "--sort", "calls", program).stderr
    assert cut.startswith("quick\n  100000 calls: p50 ") and "3 more functions are not shown" in cut
    assert graftrace("profile", "--hist", "no_such_*", program).stderr == \
        "graftrace profile: no function that matches --hist was called\n"


def test_a_running_process_is_counted_and_goes_on(graftrace, compile):
    words = [str(GRAFTRACE), "profile", "--format", "csv", "-p"]
    with Running(compile("attached.c", "-O2", "-pthread"), "plain") as target:
        before = look(target.pid)
        with subprocess.Popen([*words, str(target.pid)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as running:
            line_with(running.stderr, "until Ctrl-C or its end")
            target("call")
            target("call")
            running.send_signal(signal.SIGINT)
            table = running.stdout.read()
            assert running.wait(PATIENCE) == 0
        calls = {row["function"]: int(row["calls"]) for row in csv.DictReader(io.StringIO(table))}
        assert [calls[name] for name in ("outer", "middle", "leaf")] == [2, 4, 42]
        assert "until the time is over, Ctrl-C" in graftrace(
            *words[1:], target.pid, "--for", "20ms").stderr
        assert looks_as(target.pid, before)
    for words, why in ((["-P", "1", "true"], "either a program is run"),
                       (["--children", "true"], "--children says what -P takes"),
                       (["-P", "1,"], "is not a number")):
        assert why in graftrace("profile", *words, code=2).stderr


def test_a_program_that_is_killed_is_counted_to_its_end(tmp_path):
    program = behaviour.program("patchable", "ending.c")
    done = profile([program, "kill"], tmp_path)
    assert done.code == -signal.SIGKILL
    assert sum(int(row["calls"]) for row in done.rows) > 0


@pytest.mark.parametrize("words, code, said", [
    (["--sort", "size", "true"], 2, "cannot sort by 'size'"),
    (["--hist", "*", "--interval", "1s", "true"], 2, "--hist is of the whole run"),
    (["--hist", "*", "--to", "otlp", "true"], 2, "--hist is of the whole run"),
    (["--format", "xml", "true"], 2, "is none of text, csv"),
    ([], 2, "the program to run is missing"),
    (["./nowhere"], 127, "cannot run './nowhere'"),
    (["-l", "no_such_*", "true"], 0, ""),
])
def test_what_is_wrong_is_said(graftrace, words, code, said):
    done = graftrace("profile", *words, code=None)
    assert done.returncode == code or code == 0
    assert said in done.stderr


SOAK = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <sys/time.h>
#include <time.h>
#define PLAIN __attribute__((noinline))
static volatile unsigned long counts[4]; /* leaf, node, jumper, handled */
static volatile int stop;
static void count(int i) { __asm__ volatile("lock incq %0" : "+m"(counts[i])); }
PLAIN int leaf(int n) { count(0); return n + 1; }
PLAIN int node(int n) { count(1); int r = n > 0 ? node(n - 1) : 0; __asm__(""); return r + leaf(n); }
PLAIN void jumper(jmp_buf *to, int n) { count(2); if (n == 0) longjmp(*to, 1); jumper(to, n - 1); __asm__(""); }
PLAIN void handled(int s) { (void)s; count(3); leaf(1); }
static void *work(void *unused)
{
	while (!stop) {
		jmp_buf to;
		node(6);
		if (setjmp(to) == 0)
			jumper(&to, 3);
	}
	return unused;
}
static void *brief(void *unused) { node(3); return unused; }
int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = handled };
	struct itimerval often = { { 0, 500 }, { 0, 500 } };
	pthread_t threads[4], one;
	time_t end = time(NULL) + atoi(argv[argc - 1]);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	while (time(NULL) <= end) {
		pthread_create(&one, NULL, brief, NULL);
		pthread_join(one, NULL);
	}
	stop = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	printf("leaf %lu\\nnode %lu\\njumper %lu\\nhandled %lu\\n", counts[0], counts[1], counts[2],
	       counts[3]);
	return 0;
}
"""


def test_a_soak_under_full_load_counts_every_call(compile, tmp_path):
    program = compile(SOAK, "-O2", "-pthread", "-fpatchable-function-entry=5", "-fno-inline")
    done = profile([program, SOAK_SECONDS], tmp_path, timeout=SOAK_SECONDS * 2 + 120)
    hits = {row["function"]: int(row["calls"]) for row in done.rows}
    counted = dict(line.split() for line in done.out.decode().splitlines())
    assert {name: hits.get(name, 0) for name in counted} == {
        name: int(calls) for name, calls in counted.items()}
    assert hits["leaf"] > 1000
    done = profile([program, 1], tmp_path, "--hist", "*")
    timed = collections.Counter()
    for row in done.rows:
        timed[row["function"]] += int(row["calls"])
    counted = dict(line.split() for line in done.out.decode().splitlines())
    assert {name: timed[name] for name in counted} == {name: int(calls) for name, calls in counted.items()}
