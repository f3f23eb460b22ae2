# SPDX-License-Identifier: MIT
"""set_event_pid: the events of chosen threads alone, of every kind, at the top and in instances."""

import re
import subprocess

import pytest

from conftest import PATIENCE, ROOT, wait_until

PROGRAM = r"""
#include <graftrace/event.h>
#include <graftrace/mark.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline, noclone)) int deal(int n)
{
	const int parent = getppid();
	GRAFTRACE_EVENT(shop, sold, GRAFTRACE_INT(int, n, n));
	graftrace_mark("dealt");
	return parent + n;
}
static void *work(void *unused)
{
	deal(1);
	return unused;
}
/* At each line a thread deals, a child does, and then the first thread does. */
int main(void)
{
	char line[64];
	printf("%d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		pthread_t thread;
		pid_t child;
		pthread_create(&thread, NULL, work, NULL);
		pthread_join(thread, NULL);
		child = fork();
		if (child == 0) {
			deal(2);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		deal(0);
		printf("done\n");
		fflush(stdout);
	}
	return 0;
}
"""


class Watched:
    def __init__(self, graftrace, program):
        self.path = graftrace.directory / "tracing"
        self.path.mkdir()
        self.process = graftrace.start("mount", self.path, "--", program, stdin=subprocess.PIPE)
        self.first = int(self.process.stdout.readline())
        wait_until((self.path / "trace").exists, "the mount")
        self.add("dynamic_events", f"p:set/deal {program}:deal n=%di:s32")
        for word in ("shop:sold", "set:deal", "syscalls:sys_enter_getppid"):
            self.add("set_event", word)

    def add(self, file, text):
        with open(self.path / file, "a", encoding="utf-8") as out:
            out.write(text + "\n")

    def put(self, file, text):
        (self.path / file).write_text(text)

    def run(self):
        """Of each kind of event the values of `n` in their order; of system calls and marks, how many."""
        self.put("trace", "")
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"
        return self.seen(self.path)

    def seen(self, path):
        text = (path / "trace").read_text()
        return {"sold": re.findall(r"\bsold: n=(\d)", text), "deal": re.findall(r"\bdeal: \(.*\) n=(\d)", text),
                "calls": len(re.findall(r"\bsys_getppid\(", text)), "marks": text.count("dealt")}

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0


@pytest.fixture
def watched(compile, graftrace):
    made = Watched(graftrace, compile(PROGRAM, "-O2", "-pthread", f"-I{ROOT / 'include'}"))
    yield made
    made.end()


def of(*numbers, marks=3):
    return {"sold": list(numbers), "deal": list(numbers), "calls": len(numbers), "marks": marks}


def test_events_of_every_kind_are_those_of_chosen_threads(watched):
    assert watched.run() == of("1", "2", "0")
    watched.put("set_event_pid", str(watched.first))
    # Those that were recorded before stay; marks are a program's own words, as trace_marker's lines are.
    assert watched.seen(watched.path) == of("1", "2", "0")
    assert watched.run() == of("0")
    watched.put("set_event_pid", "")
    assert watched.seen(watched.path) == of("0")
    assert watched.run() == of("1", "2", "0")
    watched.put("set_event_notrace_pid", str(watched.first))
    assert watched.run() == of("1", "2")
    watched.put("set_event_pid", "1")
    assert watched.run() == of()
    watched.put("set_event_notrace_pid", "")
    watched.put("set_event_pid", "")
    assert watched.run() == of("1", "2", "0")


def test_what_a_chosen_thread_starts_is_chosen_with_event_fork(watched):
    watched.put("set_event_pid", str(watched.first))
    watched.put("options/event-fork", "1")
    for _ in range(20):
        assert watched.run() == of("1", "2", "0")
    watched.put("options/event-fork", "0")
    assert watched.run() == of("0")


def test_an_instance_has_a_list_of_its_own(watched):
    one = watched.path / "instances" / "one"
    one.mkdir()
    (one / "set_event").write_text("shop:sold")
    (one / "set_event_pid").write_text(str(watched.first))
    assert watched.run() == of("1", "2", "0")
    assert watched.seen(one)["sold"] == ["0"]
    watched.put("set_event_pid", str(watched.first))
    (one / "set_event_pid").write_text("")
    (one / "trace").write_text("")
    assert watched.run() == of("0")
    assert watched.seen(one)["sold"] == ["1", "2", "0"]


def test_calls_are_those_of_all_threads(watched):
    watched.put("set_event_pid", str(watched.first))
    watched.put("set_ftrace_filter", "deal")
    watched.put("current_tracer", "function_graph")
    assert watched.run() == of("0")
    assert (watched.path / "trace").read_text().count("  deal() {") == 3
