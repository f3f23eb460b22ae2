# SPDX-License-Identifier: MIT
"""`record --kernel` on the kernel that runs here. Which tracers it has, and whether tracefs may be
used, is the machine's affair: what can be is recorded, what cannot is said."""

import collections
import csv
import io
import itertools
import json
import os
import re
import shutil
import signal
import struct
import subprocess

import pytest

import format_reader
from conftest import PATIENCE, ROOT, wait_until

pytestmark = pytest.mark.usefixtures("alone_with_tracefs")


@pytest.fixture(scope="module")
def program(compile):
    return compile("reads_and_naps.c", "-O1")


def instances():
    directory = "/sys/kernel/tracing/instances"
    return [name for name in os.listdir(directory) if name.startswith("graftrace-")] \
        if os.path.isdir(directory) else []


def record(graftrace, *words):
    """Records with --kernel=try; True if the kernel could be recorded."""
    done = graftrace("record", "--kernel=try", *words)
    assert done.stdout == "read\n"
    refused = "recorded without the kernel" in done.stderr
    if refused:
        assert re.search(r"cannot be recorded: .*(tracefs|instances)", done.stderr), done.stderr
    return not refused


def test_system_calls_stand_in_the_functions_that_made_them(graftrace, program):
    could = record(graftrace, "--kernel-event", "syscalls", "-o", "it.data", program)
    shown = graftrace("show", "--no-pager", "it.data").stdout
    inside = re.findall(r"\|    read_it\(\) \{\n(.*?)\|    \}", shown, re.S)
    assert len(inside) == 5
    if not could:
        return
    for text in inside:
        order = [text.find(name) for name in
                 ("sys_enter_openat", "sys_exit_openat", "sys_enter_read", "sys_exit_read",
                  "sys_enter_close", "sys_exit_close")]
        assert order == sorted(order) and order[0] >= 0, text


def records_of(recording):
    """The clock and the bytes of each record in the kernel's pages, as their heads tell their lengths."""
    for page in itertools.chain(*recording.kernel_pages.values()):
        clock, length = struct.unpack_from("<QQ", page)
        at, end = 16, 16 + (length & 0x7ffffff)
        while at < end:
            head, length = struct.unpack_from("<II", page, at)
            kind = head & 31
            more = length << 27 if kind in (30, 31) else 0
            clock = (clock >> 59 << 59 if kind == 31 else clock) + (head >> 5) + more
            size = {0: 4 + (length + 3 & ~3), 29: 4 + length, 30: 8, 31: 8}.get(kind, 4 + 4 * kind)
            if kind <= 28:
                yield clock, page[at + (4 if kind else 8):at + size]
            at += size


def numbers_of_records(recording):
    """The number and the task of each record."""
    return [struct.unpack_from("<H2xi", record) for _, record in records_of(recording)]


def test_packed_pages_are_what_the_specification_says(graftrace, program):
    """A reader that was written from doc/format.md finds as many records as `show` shows."""
    for packing in ("--compress", "--no-compress"):
        if not record(graftrace, "--kernel-event", "syscalls", packing, "-o", "it.data", program):
            return
        recording = format_reader.read(graftrace.directory / "it.data")
        shown = graftrace("show", "--no-pager", "it.data").stdout
        us = set(map(int, recording.kernel_files["recorder"].split()))
        found = collections.Counter(number for number, task in numbers_of_records(recording) if task not in us)
        for name in ("openat", "read", "clock_nanosleep"):
            described = recording.kernel_files[f"events/syscalls/sys_enter_{name}/format"].decode()
            count = len(re.findall(rf"sys_enter_{name}\b", shown))
            assert count >= 5 and found[int(re.search(r"ID: (\d+)", described)[1])] == count


def events_of(recording, name):
    """The clock and the fields of each event of a name."""
    described = recording.kernel_files[f"events/{name}/format"].decode()
    number = int(re.search(r"ID: (\d+)", described)[1])
    places = [(field, int(at), int(size)) for field, at, size in
              re.findall(r"(\w+)(?:\[\d+\])?;\s*offset:(\d+);\s*size:(\d+)", described)]
    for clock, record in records_of(recording):
        if struct.unpack_from("<H", record)[0] == number:
            yield clock, {field: int.from_bytes(record[at:at + size], "little") for field, at, size in places}


def sleeps_of(recording, tid):
    """Of each time that a thread left a CPU to sleep: was it recorded that it was woken, and came back?"""
    moments = sorted([(clock, "woken") for clock, event in events_of(recording, "sched/sched_waking")
                      if event["pid"] == tid] +
                     [(clock, "back" if event["next_pid"] == tid else
                       "out" if event["prev_state"] & 0xff else "preempted")
                      for clock, event in events_of(recording, "sched/sched_switch")
                      if tid in (event["prev_pid"], event["next_pid"])])
    words = [word for _, word in moments]
    return [words[at + 1:at + 3] == ["woken", "back"] for at, word in enumerate(words) if word == "out"]


def test_a_nap_says_who_ended_it_and_how_long_a_cpu_was_waited_for(graftrace, program):
    """Each sleep of which the kernel recorded the beginning, the wake-up and the end: Linux 6.18 leaves out some
    switches to a thread that its filter by PID lets through, all of a recording's where another one is made at the
    same time. Nothing is told of those sleeps."""
    if not record(graftrace, "--kernel-event", "syscalls", "-o", "it.data", program):
        return
    recording = format_reader.read(graftrace.directory / "it.data")
    (tid,) = {writer.tid for writer in recording.writers}
    shown = graftrace("show", "--no-pager", "it.data").stdout
    naps = re.findall(r"\|    nap\(\) \{\n(.*?)\|    \}", shown, re.S)
    assert len(naps) == 5, shown
    told = re.compile(r"off_cpu: slept [\d.]+ us until (an interrupt in )?\S.*-\d+ woke it, waited "
                      r"[\d.]+ us for a CPU \*/$", re.M)
    sleeps = sleeps_of(recording, tid)
    assert True in sleeps and len(told.findall(shown)) == shown.count("off_cpu: slept") == sleeps.count(True)
    # On a busy machine the timer may end before the thread has left the CPU.
    slept = [nap for nap in naps if re.search(rf"prev_pid={tid} .*prev_state=S", nap)]
    assert len(slept) - sleeps.count(False) <= len([nap for nap in slept if told.search(nap)])


def test_a_part_that_is_not_there_is_told(graftrace, program):
    graftrace("record", "-o", "it.data", program)
    for command in ("show", "report", "graph"):
        words = ["-i", "it.data", "--no-pager"]
        assert "nothing of the kernel" in graftrace(command, "--kernel", *words, code=1).stderr
        assert graftrace(command, "--user", *words).stdout == graftrace(command, *words).stdout
    assert "whole recording" in graftrace("report", "--kernel", "--html", "it.html", code=2).stderr


def test_nothing_is_left_in_tracefs(graftrace, program):
    record(graftrace, "-o", "it.data", program)
    assert not instances()


def test_an_orphan_is_removed_by_the_next(graftrace, program):
    if not record(graftrace, "-o", "first.data", program):
        return
    killed = graftrace.start("record", "--kernel=events", "-o", "killed.data", shutil.which("sleep"),
                             "1000")
    wait_until(instances, "the instance")
    killed.kill()
    killed.communicate()
    assert instances()
    record(graftrace, "-o", "it.data", program)
    assert not instances()


def test_a_running_process_is_recorded_with_the_kernel(graftrace, compile):
    naps = compile("""
#include <unistd.h>
__attribute__((noinline)) void nap(void) { usleep(1000); }
int main(void)
{
	char byte;
	while (read(0, &byte, 1) == 1)
		nap();
	return 0;
}
""", "-O1")
    with subprocess.Popen([naps], stdin=subprocess.PIPE) as running:
        recorder = graftrace.start("record", "--kernel=try", "--kernel-event", "syscalls", "-o",
                                   "it.data", "-P", running.pid)
        said = ""
        while "recording process" not in said:
            line = recorder.stderr.readline()
            assert line, said
            said += line
        running.stdin.write(b"x" * 20)
        running.stdin.close()
        running.wait()
        said += recorder.communicate(timeout=PATIENCE)[1]
    assert recorder.returncode == 0, said
    shown = graftrace("show", "--no-pager", "it.data").stdout
    assert shown.count("nap()") >= 20
    if "without the kernel" not in said:
        assert shown.count("sys_enter_clock_nanosleep") >= 20


def test_the_whole_system_is_recorded_without_a_program(graftrace, program):
    recorder = graftrace.start("record", "--kernel=events", "--kernel-event", "syscalls", "-a", "-o",
                               "it.data")
    said = recorder.stderr.readline()
    if "recording the whole system" not in said:
        assert "cannot be recorded" in said
        recorder.communicate(timeout=PATIENCE)
        assert recorder.returncode == 1 and not os.path.exists(graftrace.directory / "it.data")
        return
    with subprocess.Popen([program], stdout=subprocess.DEVNULL) as other:
        other.wait()
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=PATIENCE)[1]
    assert recorder.returncode == 0 and "it.data (" in said, said
    shown = graftrace("show", "--no-pager", "--tid", other.pid, "it.data").stdout
    assert shown.count("sys_enter_clock_nanosleep") == 5 or "lost" in said, shown
    assert not instances()


def test_who_may_not_is_told_and_recorded_without(graftrace):
    user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}

    def run(*words):
        return subprocess.run([graftrace.path, "record", "-o", "/dev/null", *words, "true"], cwd="/",
                              capture_output=True, text=True, timeout=PATIENCE, check=False, **user)

    done = run("--kernel=events")
    assert done.returncode == 1
    assert "cannot be recorded" in done.stderr
    done = run("--kernel=try")
    assert done.returncode == 0, done.stderr
    assert "recorded without the kernel" in done.stderr


@pytest.mark.parametrize("words, complaint", [
    (["--kernel=what"], "--kernel takes"), (["--kernel-event", "sched"], "want --kernel"),
    (["-a"], "want --kernel"), (["-l", "k:vfs_*"], "wants --kernel"), (["--kernel", "--overwrite"], "not with --serve or --overwrite")])
def test_words_that_make_no_sense(graftrace, words, complaint):
    done = graftrace("record", *words, "true", code=2)
    assert complaint in done.stderr


@pytest.mark.parametrize("words", [["--kernel=try"], ["--kernel", "-l", "main"]])
def test_without_a_program_there_is_the_kernel_only(graftrace, words):
    assert "without a program" in graftrace("record", "-a", *words, code=2).stderr


LOOP = """
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) void get(void) { syscall(SYS_getppid); __asm__ volatile(""); }
int main(void)
{
	for (int i = 0; i < 100000; i++)
		get();
	return 0;
}
"""


def test_each_of_100000_system_calls_lies_in_the_call_that_made_it(graftrace, compile):
    done = graftrace("record", "--kernel=try", "-e", "syscalls:sys_enter_getppid", "-e",
                     "k:syscalls:sys_exit_getpp*", "-o", "it.data", compile(LOOP, "-O1"))
    if "without the kernel" in done.stderr:
        return
    # entry, enter, exit, return: the places of the kernel's records in the program's calls
    place, counts = "out", {"enter": 0, "exit": 0, "torn": 0}
    for line in graftrace("show", "--no-pager", "it.data").stdout.splitlines():
        if "|    get() {" in line:
            place = "in"
        elif "sys_enter_getppid" in line:
            counts["enter" if place == "in" else "torn"] += 1
            place = "entered"
        elif "sys_getppid -> " in line or "sys_exit_getppid" in line:
            counts["exit" if place == "entered" else "torn"] += 1
        elif line.endswith("|    }"):
            place = "out"
    lost = re.search(r"(\d+) of the kernel's records were lost", done.stderr)
    if lost is None:
        assert counts == {"enter": 100000, "exit": 100000, "torn": 0}
    else:  # a machine too busy to take them in time
        assert counts["torn"] == 0 and counts["enter"] > 0


def test_the_recording_says_how_far_the_clocks_are_apart(graftrace, program):
    if not record(graftrace, "-o", "it.data", program):
        return
    said = graftrace("info", "it.data").stdout
    found = re.search(r"kernel-clock=(x86-tsc|mono): .*to (\d+) ns \(measured by (\d+) markers\)", said)
    assert found and 0 < int(found[2]) < 100_000 and int(found[3]) > 1, said
    assert "kernel=" in said


def test_rests_are_summed_up_by_thread_and_waker(graftrace, program):
    if not record(graftrace, "-o", "it.data", program):
        return
    shown = graftrace("show", "--no-pager", "it.data").stdout
    told = re.findall(r"off_cpu: (?:preempted|slept ([\d.]+) us until (.*?) woke it), waited ([\d.]+) us",
                      shown)
    out = graftrace("report", "--no-pager", "--rests", "--format", "csv", "it.data").stdout
    rows = list(csv.DictReader(io.StringIO(out)))
    assert sum(int(row["count"]) for row in rows) == len(told) >= 5, shown

    def ns(text):
        return round(float(text or 0) * 1000)

    assert sum(int(row["slept_ns"]) for row in rows) == sum(ns(slept) for slept, _, _ in told)
    assert sum(int(row["waited_ns"]) for row in rows) == sum(ns(waited) for _, _, waited in told)
    assert {row["woken_by"] for row in rows} == {waker or "(preempted)" for _, waker, _ in told}
    assert max(int(row["longest_sleep_ns"]) for row in rows) == max(ns(slept) for slept, _, _ in told)
    graftrace("export", "--to", "events-json", "-o", "it.json", "it.data")
    events = [event["fields"] for event in map(json.loads, open(graftrace.directory / "it.json"))
              if (event["system"], event["event"]) == ("graftrace", "off_cpu")]
    assert len(events) == len(told)
    assert [(event["slept_ns"], event["waited_ns"]) for event in events] == [
        (ns(slept), ns(waited)) for slept, _, waited in told]
    assert {event["waker"] for event in events if not event["preempted"]} == {
        re.search(r"(?:an interrupt in )?(.*)-\d+$", waker)[1] for _, waker, _ in told if waker}
    assert "WAITED FOR A CPU" in graftrace("report", "--no-pager", "--rests", "it.data").stdout
    assert "graftrace:off_cpu" in graftrace("report", "--no-pager", "--by", "event", "it.data").stdout
    assert "off_cpu" not in graftrace("report", "--no-pager", "it.data").stdout


def test_rests_of_a_recording_without_the_kernel_are_not_known(graftrace, program):
    graftrace("record", "-o", "it.data", program)
    assert "does not say why" in graftrace("report", "--rests", "it.data", code=1).stderr


TELLER = """
#include <graftrace/event.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) int add(int a, int b)
{
	GRAFTRACE_EVENT(shop, sold, GRAFTRACE_INT(int, count, a), GRAFTRACE_STRING(what, "apples"));
	syscall(SYS_getppid);
	return a + b;
}
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 50; i++)
		sum += add(i, 2);
	return sum == 0;
}
"""


@pytest.mark.parametrize("tracer", ["function_graph", "function"])
def test_the_programs_events_values_and_stacks_are_there_too(graftrace, compile, tracer):
    program = compile(TELLER, "-O1", "-g", f"-I{ROOT / 'include'}")
    graftrace("record", "--kernel=try", "-e", "k:raw_syscalls", "-p", tracer, "-l", "main", "-l", "add", "--args",
              "--retval", "-e", "shop:sold", "--trigger", "stacktrace", "--trigger", "hist:keys=what",
              "--probe", "add b", "-o", "it.data", program)

    def told(*options):
        shown = graftrace("show", "--no-pager", *options, "it.data").stdout
        return [sorted(re.findall(pattern, shown)) for pattern in (
            r"\bsold: .*count=\d+ what=\"?apples\"?", r"\badd: \(0x[0-9a-f]+\) b=2", r"\badd\(a=\d+, b=2\)",
            r"\badd ret=0x[0-9a-f]+|ret=0x[0-9a-f]+|=> add\b|<stack trace>")]

    user = told("--user")
    assert [len(found) for found in user[:3]] == [50, 50, 50]
    # The function tracer knows of no open call: no stack trace is written.
    assert len(user[3]) >= 50 if tracer == "function_graph" else not user[3]
    assert told() == user

    def events(*options):
        return graftrace("report", "--no-pager", "--by", "event", "--format", "csv", *options, "it.data").stdout

    ours = [line for line in events().splitlines() if "sold" in line or "add" in line]
    assert ours and ours == [line for line in events("--user").splitlines() if "sold" in line or "add" in line]
    assert "Hits: 50" in graftrace("hist", "it.data").stdout
