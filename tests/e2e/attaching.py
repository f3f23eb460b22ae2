# SPDX-License-Identifier: MIT
"""Processes to attach to (tests/programs/attached.c), and what can be seen of them from outside."""

import collections
import contextlib
import csv
import hashlib
import io
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import BUILD, PATIENCE, line_with

GRAFTRACE = BUILD / "cli" / "graftrace"
FLAGS = ["-O2", "-pthread", "-Wall", "-Wextra"]
# More rounds: what a nightly run does (25: a thousand on the loaded server).
MORE = int(os.environ.get("GRAFTRACE_LONG_TESTS", "1"))
# Memory that a thread of the program fills in.
needs_userfaultfd = pytest.mark.skipif(
    not Path("/proc/sys/vm/unprivileged_userfaultfd").exists() or os.geteuid() != 0,
    reason="this kernel has no userfaultfd, or not for this user")
# A program that traces a process, as a debugger does.
TRACER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	if (argc < 2 || ptrace(PTRACE_SEIZE, atoi(argv[1]), 0, 0) != 0)
		return 1;
	puts("ready");
	fflush(stdout);
	pause();
}
"""


class Running:
    """A program that reads commands. `with Running(path, "waits") as target: target("check")`"""

    def __init__(self, path, *words, **how):
        self.process = subprocess.Popen([str(path), *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1, **how)
        self.pid = self.process.pid

    def __enter__(self):
        assert self.line() == "ready"
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def line(self):
        return self.process.stdout.readline().rstrip("\n")

    def send(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def __call__(self, command):
        self.send(command)
        return self.line()

    def is_alive(self):
        return self.process.poll() is None


def maps(pid):
    return Path(f"/proc/{pid}/maps").read_text()


def code(pid):
    """A digest of every executable mapping of a file, by its line in maps."""
    found = {}
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps(pid).splitlines():
            words = line.split(maxsplit=5)
            if "x" not in words[1] or len(words) < 6 or words[5].startswith("[vsyscall"):
                continue
            start, end = (int(number, 16) for number in words[0].split("-"))
            memory.seek(start)
            found[line] = hashlib.sha256(memory.read(end - start)).hexdigest()
    return found


def descriptors(pid):
    """Not those that are closed meanwhile."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found[name] = os.readlink(f"/proc/{pid}/fd/{name}")
    return found


def signals(pid):
    """Masks, dispositions and queues of each thread; who traces it."""
    found = {}
    for task in sorted(os.listdir(f"/proc/{pid}/task")):
        status = Path(f"/proc/{pid}/task/{task}/status").read_text()
        found[task] = re.findall(r"^(?:Sig[^Q]|Shd|TracerPid|Threads|NoNewPrivs).*", status, re.M)
    return found


def look(pid):
    """All of it, for comparison."""
    return {"maps": maps(pid).splitlines(), "code": code(pid), "descriptors": descriptors(pid),
            "signals": signals(pid)}


def looks_as(pid, before, how=look, seconds=60):
    """As before, the masks as soon as each thread is back where it was: let go of, it goes on with its
    system call when a processor is free, and in sigwaitinfo(2) its mask is another."""
    found = how(pid)
    end = time.monotonic() + seconds
    while found["signals"] != before["signals"] and time.monotonic() < end:
        time.sleep(0.01)
        found["signals"] = signals(pid)
    assert found == before, {key: found[key] for key in found if found[key] != before[key]}
    return True


def until_seen(record, seen, seconds=60):
    """Records anew until that is so of the recording: in a short one a busy machine may give the program
    no turn."""
    end = time.monotonic() + seconds
    while not seen(record()):
        assert time.monotonic() < end, "it was never seen"


def is_clean(pid):
    """Nothing of graftrace's is mapped, and all code is the files'."""
    return "graftrace" not in maps(pid)


def record(graftrace, pid, *options, code=0):
    return graftrace("record", "-P", pid, *options, code=code)


def calls(graftrace, path="graftrace.data"):
    text = graftrace("report", "--format", "csv", path).stdout
    found = collections.Counter()
    for row in csv.DictReader(io.StringIO(text)):
        found[row["function"]] += int(row["calls"])
    return found


def start_recording(graftrace, pid, *options):
    """Starts `graftrace record -P` and waits until it records."""
    tracer = graftrace.start("record", "-P", str(pid), *options)
    line_with(tracer.stderr, "recording process")
    return tracer


def end_recording(tracer, how=signal.SIGINT):
    tracer.send_signal(how)
    _, text = tracer.communicate(timeout=PATIENCE)
    assert tracer.returncode == 0, text
    return text


def where_it_stands(pid):
    """Each thread of a process: its name, its state and its stack in the kernel, for a failure's text."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            found.append(" ".join((task / name).read_text().strip() for name in ("stat", "stack")))
    return "\n".join(found)


def kill(tracer):
    """Kills graftrace and waits until it has ended: at once, unless the kernel waits for a disk first."""
    tracer.kill()
    try:
        tracer.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        pytest.fail(f"graftrace was killed and does not end:\n{where_it_stands(tracer.pid)}")
