# SPDX-License-Identifier: MIT
"""What can go wrong while the kernel is recorded, on the kernel that runs here: a graftrace that is
killed or stopped, two at once, another user of tracefs, all events at once. Where tracefs may not be
used there is nothing of the kernel to go wrong, and the program is recorded all the same."""

import os
import re
import signal
import subprocess
import time

import pytest

from conftest import PATIENCE

pytestmark = pytest.mark.usefixtures("alone_with_tracefs")

TRACEFS = "/sys/kernel/tracing"

LOOP = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) void get(void) { syscall(SYS_getppid); __asm__ volatile(""); }
int main(void)
{
	char line[32];
	while (fgets(line, sizeof(line), stdin)) {
		for (long i = atol(line); i > 0; i--)
			get();
		puts("done");
		fflush(stdout);
	}
	return 0;
}
"""


@pytest.fixture(scope="module")
def loop(compile):
    return compile(LOOP, "-O1")


class Recorded:
    """The loop, and a graftrace that has attached to it with the kernel's system calls."""

    def __init__(self, graftrace, loop, name="it.data", *options):
        self.program = subprocess.Popen([loop], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.recorder = graftrace.start("record", "--kernel=try", "-e", "k:raw_syscalls", *options, "-o",
                                        name, "-P", self.program.pid)
        self.said = ""
        while "recording process" not in self.said:
            line = self.recorder.stderr.readline()
            assert line, self.said
            self.said += line
        self.has_kernel = "without the kernel" not in self.said

    def call(self, times):
        self.program.stdin.write(f"{times}\n")
        self.program.stdin.flush()
        assert self.program.stdout.readline() == "done\n"

    def end(self):
        self.program.stdin.close()
        self.program.wait(PATIENCE)
        self.program.stdout.close()
        self.said += self.recorder.communicate(timeout=120)[1]
        assert self.recorder.returncode == 0, self.said


def test_what_a_killed_recorder_wrote_is_read_with_the_kernel(graftrace, loop):
    it = Recorded(graftrace, loop)
    it.call(30000)
    deadline = time.monotonic() + 30
    # the file is written to as it comes; a quarter of a second later it is there
    while it.has_kernel and time.monotonic() < deadline:
        time.sleep(0.3)
        it.call(10)
        shown = graftrace("show", "--no-pager", "it.data", code=None).stdout
        if shown.count("sys_enter: NR 110") >= 1000 and "get()" in shown:
            break
    it.recorder.kill()
    it.recorder.communicate(timeout=PATIENCE)
    it.call(10)
    it.program.stdin.close()
    assert it.program.wait(PATIENCE) == 0
    it.program.stdout.close()
    shown = graftrace("show", "--no-pager", "it.data", code=None)
    assert "get()" in shown.stdout, shown
    if it.has_kernel:
        assert shown.stdout.count("sys_enter: NR 110") >= 1000
        assert "kernel-clock=" in graftrace("info", "it.data", code=None).stdout
    graftrace("record", "--kernel=try", "-o", "next.data", "true")
    if os.path.isdir(f"{TRACEFS}/instances"):
        assert f"graftrace-{it.recorder.pid}" not in os.listdir(f"{TRACEFS}/instances")


def test_a_full_ring_is_told_by_cpu(graftrace, loop):
    it = Recorded(graftrace, loop, "it.data", "-l", "main")
    it.recorder.send_signal(signal.SIGSTOP)
    it.call(1_000_000)
    it.recorder.send_signal(signal.SIGCONT)
    it.call(10)
    it.end()
    if not it.has_kernel:
        return
    told = re.search(r"(\d+) of the kernel's records were lost: its buffer was full \((.*)\)", it.said)
    assert told, it.said
    by_cpu = re.findall(r"CPU \d+: (\d+)", told[2])
    assert by_cpu and sum(map(int, by_cpu)) == int(told[1])
    done = graftrace("info", "it.data")
    assert f"kernel-lost={told[2]}" in done.stdout
    # what is whole is shown, the last calls among it
    shown = graftrace("show", "--no-pager", "it.data").stdout
    assert shown.count("sys_enter: NR 110") > 10_000


def test_two_at_once_do_not_disturb_each_other(graftrace, loop):
    first, second = Recorded(graftrace, loop, "a.data"), Recorded(graftrace, loop, "b.data")
    first.call(300)
    second.call(200)
    first.end()
    second.call(100)
    second.end()
    for it, name in ((first, "a.data"), (second, "b.data")):
        shown = graftrace("show", "--no-pager", name).stdout
        assert len(re.findall(r"\|  +get\(\)", shown)) == 300
        if it.has_kernel:
            assert shown.count("sys_enter: NR 110") == 300


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def test_another_user_of_tracefs_keeps_what_it_set(graftrace, loop):
    it = Recorded(graftrace, loop)
    it.call(10)
    it.end()
    if not it.has_kernel:
        return
    other = f"{TRACEFS}/instances/not-graftrace"
    os.mkdir(other)
    try:
        write(f"{other}/trace_clock", "mono")
        write(f"{other}/events/raw_syscalls/sys_enter/enable", "1")
        write(f"{other}/set_event_pid", "1")
        files = ("trace_clock", "set_event", "set_event_pid", "tracing_on", "current_tracer")
        top_before = [read(f"{TRACEFS}/{name}") for name in files]
        before = [read(f"{other}/{name}") for name in files]
        it = Recorded(graftrace, loop)
        it.call(10)
        assert [read(f"{other}/{name}") for name in files] == before
        it.end()
        assert [read(f"{other}/{name}") for name in files] == before
        assert [read(f"{TRACEFS}/{name}") for name in files] == top_before
    finally:
        os.rmdir(other)


def test_all_events_that_the_kernel_has_are_recorded_at_once(graftrace, loop):
    done = graftrace("record", "--kernel=try", "-e", "k:*:*", "-o", "it.data", "true")
    shown = graftrace("show", "--no-pager", "it.data", code=None)
    assert shown.returncode == 0, shown
    if "without the kernel" not in done.stderr:
        assert "sched_process_exit" in shown.stdout or "lost" in done.stderr, shown.stdout[-3000:]


def test_a_changed_page_costs_no_more_than_an_error(graftrace, loop):
    """The file's checksums are taken away with its packing: pages go to the reader as they are."""
    it = Recorded(graftrace, loop, "it.data", "--no-compress")
    it.call(2000)
    it.end()
    whole = (graftrace.directory / "it.data").read_bytes()
    for place in range(len(whole) // 3, len(whole) - 8, max(1, len(whole) // 7)):
        changed = bytearray(whole)
        changed[place:place + 4] = b"\xff\xff\xff\xff"
        (graftrace.directory / "changed.data").write_bytes(changed)
        done = graftrace("show", "--no-pager", "changed.data", code=None)
        assert done.returncode in (0, 1), done
