# SPDX-License-Identifier: MIT
"""graftrace record -P PID: attaching to processes that run, and leaving them as they were."""

import json
import os
import resource
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from attaching import (FLAGS, TRACER, Running, calls, end_recording, is_clean, look, looks_as,
                       maps, record, start_recording, until_seen)
from conftest import PATIENCE, line_with, wait_until

WAYS = {"unprepared": [], "patchable": ["-fpatchable-function-entry=5"], "pg": ["-pg"],
        "static": ["-static"], "no-pie": ["-no-pie", "-fno-pie"]}


@pytest.mark.parametrize("way", WAYS)
def test_calls_of_a_running_process_are_recorded(graftrace, compile, way):
    with Running(compile("attached.c", *FLAGS, *WAYS[way])) as target:
        before = look(target.pid)
        tracer = start_recording(graftrace, target.pid)
        assert target("call") == "right"
        end_recording(tracer)
        found = calls(graftrace)
        assert {name: found[name] for name in ("outer", "middle", "leaf", "half")} == {
            "outer": 1, "middle": 2, "leaf": 21, "half": 1}
        assert looks_as(target.pid, before)
        assert target("call") == "right"


def test_threads_that_wait_in_system_calls_notice_nothing(graftrace, attached):
    with Running(attached, "waits") as target:
        before = look(target.pid)
        for _ in range(3):
            record(graftrace, target.pid, "--libs", "--for", "50ms")
            assert target("check") == "right"
            assert looks_as(target.pid, before)
        tracer = start_recording(graftrace, target.pid, "--libs")
        assert target("wake") == "woken"
        end_recording(tracer)
        assert target("check") == "right"
        assert is_clean(target.pid)


def test_a_waiting_process_wakes_as_usual_after_the_recording(graftrace, attached):
    with Running(attached, "waits") as target:
        record(graftrace, target.pid, "--for", "20ms")
        assert target("wake") == "woken"
        assert target("check") == "right"


@pytest.mark.parametrize("end", ["leave", "return"])
def test_calls_that_are_open_at_the_end_return_as_ever(graftrace, attached, end):
    with Running(attached) as target:
        before = look(target.pid)
        tracer = start_recording(graftrace, target.pid)
        assert target("enter") == "entering"
        assert target("call") == "right"
        end_recording(tracer)
        assert looks_as(target.pid, before)
        # they go on being the same calls in the next recording
        tracer = start_recording(graftrace, target.pid)
        assert target("call") == "right"
        end_recording(tracer)
        assert looks_as(target.pid, before)
        assert target(end) == "leaving" if end == "leave" else "returning"
        assert target("call") == "right"


def test_open_calls_return_while_another_recording_runs(graftrace, attached):
    with Running(attached) as target:
        tracer = start_recording(graftrace, target.pid)
        assert target("enter") == "entering"
        end_recording(tracer)
        tracer = start_recording(graftrace, target.pid)
        assert target("enter") == "entering"
        assert target("return") == "returning"
        assert target("return") == "returning"
        assert target("call") == "right"
        end_recording(tracer)
        assert is_clean(target.pid)


def test_working_threads_compute_the_same(graftrace, attached):
    with Running(attached, "work") as target:
        for options in ([], ["--libs"], ["-p", "function"], ["-l", "leaf"], ["-g", "middle"]):
            for _ in range(2):
                record(graftrace, target.pid, *options, "--for", "20ms")
                assert is_clean(target.pid)
        assert target("check") == "right"
        before = int(target("rounds"))
        wait_until(lambda: int(target("rounds")) > before)


def test_a_number_after_p_is_a_process(graftrace, attached):
    with Running(attached) as target:
        done = graftrace("record", "-p", target.pid, "--for", "10ms")
        assert f"recording process {target.pid}" in done.stderr


def test_two_processes_stand_in_one_recording(graftrace, attached):
    with Running(attached) as one, Running(attached) as two:
        tracer = start_recording(graftrace, one.pid, "-P", str(two.pid))
        assert one("call") == two("call") == "right"
        end_recording(tracer)
        assert calls(graftrace)["outer"] == 2
        assert is_clean(one.pid) and is_clean(two.pid)


FAMILY = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
__attribute__((noinline)) int twice(int x)
{
	__asm__ volatile("" ::: "memory");
	return 2 * x;
}
static int begun[2];
static void works(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(begun[1], ".", 1) != 1)
		_exit(1);
	for (;;) {
		usleep(1000);
		if (twice(21) != 42)
			_exit(1);
	}
}
int main(void)
{
	char byte;
	if (pipe(begun) != 0)
		return 1;
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			if (fork() == 0)
				works();
			works();
		}
	for (int i = 0; i < 4; i++)
		if (read(begun[0], &byte, 1) != 1)
			return 1;
	puts("ready");
	fflush(stdout);
	works();
}
"""


def test_children_that_are_there_already_are_taken_if_asked(graftrace, compile):
    with Running(compile(FAMILY, "-O2")) as target:
        family = [target.pid]
        for pid in family:
            family += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        assert len(family) == 5
        before = [look(pid) for pid in family]
        assert ", without its 2 children (--children) " in record(
            graftrace, target.pid, "--for", "20ms").stderr
        def all_were_seen(done):
            assert f"recording process {target.pid} and 4 children" in done.stderr
            if "times off the CPU are not recorded" in done.stderr:
                return calls(graftrace)["twice"] > 0
            # each sleeps most of the time
            slept = graftrace("show", "--switch-events").stdout
            return calls(graftrace)["twice"] > 0 and all(f" next_pid={pid} " in slept for pid in family)

        until_seen(lambda: record(graftrace, target.pid, "--children", "--for", "300ms"), all_were_seen)
        assert graftrace("report").stdout.count("  twice\n") == 1
        assert all(map(looks_as, family, before))


def test_a_recording_that_cannot_be_written_ends_with_1_and_the_process_goes_on(graftrace,
                                                                                 attached):
    with Running(attached, "work") as target:
        process = graftrace.start("record", "-P", target.pid)
        line_with(process.stderr, "recording process")
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1024, 1024))
        process.send_signal(signal.SIGINT)
        # not as long as the process goes on switching, whose switches cannot be written
        _, errors = process.communicate(timeout=PATIENCE)
        assert "File too large" in errors
        assert process.returncode == 1
        assert target("call") == "right"


def test_no_call_is_explained(graftrace, attached):
    with Running(attached, "plain") as target:
        for words, why in ((["-g", "main"], "a call that had begun before is not seen"),
                           (["-l", "leaf", "--threshold", "60s"], "as long as --threshold"),
                           (["-l", "leaf"], "or work in libraries (--libs) or in its children")):
            assert why in record(graftrace, target.pid, *words, "--for", "20ms").stderr
        assert "no function that is counted was called" in graftrace(
            "profile", "-P", target.pid, "-l", "leaf", "--for", "20ms").stderr


def test_one_child_is_no_children(graftrace):
    family = subprocess.Popen(["sh", "-c", "sleep 60 & wait"], start_new_session=True)
    try:
        listed = Path(f"/proc/{family.pid}/task/{family.pid}/children")
        wait_until(lambda: listed.read_text().split(), "the child")
        assert "and 1 child (" in record(graftrace, family.pid, "--children", "--for", "10ms").stderr
    finally:
        os.killpg(family.pid, signal.SIGKILL)
        family.wait()


def test_children_that_cannot_be_traced_are_told_of(graftrace, compile):
    with Running("/bin/sh", "-c", "sleep 1000 & echo ready; cat") as shell:
        children = lambda: Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().split()
        wait_until(lambda: len(children()) == 2)
        with subprocess.Popen([compile(TRACER), children()[0]], stdout=subprocess.PIPE) as debugger:
            debugger.stdout.readline()
            done = graftrace("record", "--children", "-P", shell.pid, "--for", "20ms")
            debugger.kill()
        assert "runs untraced" in done.stderr and "is traced already" in done.stderr
        os.kill(int(children()[0]), signal.SIGTERM)


def test_processes_may_stand_in_a_list(graftrace, attached):
    with Running(attached) as one, Running(attached) as two:
        tracer = start_recording(graftrace, f"{one.pid},{two.pid}")
        assert one("call") == two("call") == "right"
        end_recording(tracer)
        assert calls(graftrace)["outer"] == 2
    for words in (["-P", "1,x"], ["-P", "1,"], ["--children", "true"]):
        graftrace("record", *words, code=2)


def test_the_recording_ends_with_the_process(graftrace, attached):
    with Running(attached) as target:
        tracer = start_recording(graftrace, target.pid)
        assert target("call") == "right"
        target.send("end")
        _, text = tracer.communicate(timeout=PATIENCE)
        assert tracer.returncode == 0, text
        assert calls(graftrace)["outer"] == 1


@pytest.mark.parametrize("options", [[], ["--no-fork"]])
def test_children_are_followed_or_left_clean(graftrace, attached, options):
    with Running(attached) as target:
        before = look(target.pid)
        tracer = start_recording(graftrace, target.pid, *options)
        assert target("fork") == "child 7"
        assert target("exec") == "child 9"
        end_recording(tracer)
        found = calls(graftrace)
        assert found["outer"] == (0 if options else 3)
        assert looks_as(target.pid, before)


def states(pid):
    """Each thread's: "T" is stopped."""
    return [task.read_text().rsplit(")")[1].split()[0] for task in Path(f"/proc/{pid}/task").glob("*/stat")]


def test_a_stopped_process_stays_stopped(graftrace, attached):
    with Running(attached, "waits") as target:
        os.kill(target.pid, signal.SIGSTOP)
        # Each thread: one that is still in sigwaitinfo() has another mask.
        wait_until(lambda: set(states(target.pid)) == {"T"})
        before = look(target.pid)
        record(graftrace, target.pid, "--for", "20ms")
        # On the way from one stop to the other it is let run, but not to user code.
        wait_until(lambda: set(states(target.pid)) == {"T"})
        assert looks_as(target.pid, before)
        os.kill(target.pid, signal.SIGCONT)
        assert target("check") == "right"
        assert target("wake") == "woken"


def test_filters_change_while_attached(graftrace, attached):
    with Running(attached, "work") as target:
        before = maps(target.pid).count("\n")
        tracer = graftrace.start("record", "-P", str(target.pid), "--serve=127.0.0.1:0")
        base = line_with(tracer.stderr, "serving").string.split()[2]
        for words in ("leaf", "middle\nouter", "*", "half"):
            for on in "01":
                for name, text in (("set_ftrace_filter", words), ("tracing_on", on)):
                    request = urllib.request.Request(base + name, text.encode(), method="PUT")
                    urllib.request.urlopen(request, timeout=PATIENCE).close()
        end_recording(tracer)
        assert target("check") == "right"
        assert is_clean(target.pid) and before


@pytest.mark.parametrize("words,shown", [
    (["work", "two words", "\x1b[31m"], "work 'two words' '?[31m'"),
    (["work", "x" * 5000], None),
], ids=["words", "long"])
def test_the_command_line_of_the_process_is_shown(graftrace, attached, words, shown):
    with Running(attached, *words) as target:
        if shown is None:  # as much as is kept of it
            shown = f"work {'x' * (4096 - len(f'{attached}.work.'))}..."
        tracer = graftrace.start("record", "-P", str(target.pid), "--serve=127.0.0.1:0")
        page = line_with(tracer.stderr, r"look at: (http://\S+)")[1]
        line_with(tracer.stderr, "recording process")
        assert target("call") == "right"

        def overview():
            return json.loads(urllib.request.urlopen(f"{page}api/overview", timeout=PATIENCE).read())
        wait_until(lambda: "command" in overview(), "the page's figures")
        assert overview()["command"] == " ".join([str(attached), *words])[:4096] + "..." * (len(words) == 2)
        end_recording(tracer)
    assert f"command        {attached} {shown}"[:2000] in graftrace("info").stdout
    graftrace("export", "--to", "html", "-o", "page.html")
    assert json.dumps(f"{attached} {words[0]} ")[1:-1] in (graftrace.directory / "page.html").read_text()


def test_the_command_line_says_what_it_wants(graftrace):
    for words in (["-P", "x"], ["-P", "1", "true"], ["-P", "0"], ["--for", "soon", "true"]):
        graftrace("record", *words, code=2)


def test_a_program_is_recorded_for_a_time(graftrace, attached):
    done = graftrace("record", "--for", "100ms", "--", sys.executable, "-c",
                     "import time; time.sleep(0.3); print('end')")
    assert done.stdout == "end\n"
