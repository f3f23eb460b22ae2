# SPDX-License-Identifier: MIT
"""The kernel's uprobes (perf probe, bpftrace, eBPF agents) on functions that are traced: with
--uprobe-safe the program goes on, while a probe is set, and when it is taken out."""

import contextlib
import os
import re
import subprocess
import time

import pytest

from conftest import PATIENCE, wait_until


@pytest.fixture
def tracefs(tmp_path):
    """A mount of tracefs of our own."""
    place = tmp_path / "tracefs"
    place.mkdir()
    subprocess.run(["mount", "-t", "tracefs", "none", place], check=True)
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@contextlib.contextmanager
def uprobe(tracefs, program, function):
    """A probe at the function's first byte, seen by an instance of our own; a function that tells
    how often it was hit."""
    name = f"graftrace_{os.getpid()}"
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    offset = int(re.search(rf"^(\w+) T {function}$", symbols, re.M)[1], 16)
    instance = tracefs / "instances" / name

    def write(path, text):
        # These files have no end to seek to.
        file = os.open(tracefs / path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)

    write("uprobe_events", f"p:{name}/{function} {program}:{offset:#x}\n")
    try:
        instance.mkdir()
        try:
            write(f"instances/{name}/events/{name}/{function}/enable", "1")
            try:
                yield lambda: int(re.search(
                    rf" {function} +(\d+)", (tracefs / "uprobe_profile").read_text())[1])
            finally:
                write(f"instances/{name}/events/{name}/{function}/enable", "0")
        finally:
            instance.rmdir()
    finally:
        write("uprobe_events", f"-:{name}/{function}\n")


def test_a_program_goes_on_under_uprobes_that_come_and_go(tracefs, compile, graftrace, tmp_path):
    # Position independent: addresses of the file's code are its offsets.
    program = compile("execs.c", "-O2", "-fcf-protection=full")
    process = graftrace.start("record", "--uprobe-safe", "--overwrite", "--", program,
                              stdin=subprocess.PIPE)
    for _ in range(2):
        with uprobe(tracefs, program, "called") as hits:
            wait_until(lambda: hits() > 10 or process.poll() is not None)
            assert process.poll() is None
        # Its byte has been written back; it is called again.
        time.sleep(0.05)
        assert process.poll() is None
    process.communicate("x", timeout=PATIENCE)
    assert process.returncode == 7
    assert re.search(r"^called,", graftrace("report", "--format", "csv").stdout, re.M)


def test_functions_whose_first_instruction_would_go_are_left_alone(compile, graftrace):
    marked = compile("execs.c", "-O2", "-fcf-protection=full")
    plain = compile("execs.c", "-O2", "-fcf-protection=none")
    for program, safe in ((marked, True), (plain, False)):
        graftrace("record", "--uprobe-safe", "--", program, stdin="x", code=7)
        assert bool(re.search(r"^main,", graftrace("report", "--format", "csv").stdout, re.M)) == safe
