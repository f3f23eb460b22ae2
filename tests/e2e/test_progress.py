# SPDX-License-Identifier: MIT
"""The line that shows how far something is: on a terminal, once it has taken a second, and wiped away at the end."""

import os
import pty
import re
import subprocess
import time

import pytest

from conftest import PATIENCE

PROGRAM = r"""
#define KEEP __attribute__((noinline, noclone))
volatile unsigned sink;
KEEP void leaf(void) { sink++; }
int main(void) { for (int i = 0; i < 300000; i++) leaf(); return 0; }
"""


@pytest.fixture
def recorded(graftrace, compile):
    graftrace("record", compile(PROGRAM, "-O1"))
    return graftrace


def read_slowly(stream, seconds):
    """What comes, a little at a time at first."""
    got, end = bytearray(), time.monotonic() + seconds
    while part := os.read(stream.fileno(), 65536):
        got += part
        if time.monotonic() < end:
            time.sleep(0.05)
    return got


def exported(graftrace, stderr):
    return subprocess.Popen([graftrace.path, "export", "--to", "csv", "-o", "-"], cwd=graftrace.directory,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
                            env={**os.environ, "TERM": "xterm"})


def test_a_terminal_shows_how_far_it_is(recorded):
    terminal, line = pty.openpty()
    with exported(recorded, line) as process:
        os.close(line)
        rows = read_slowly(process.stdout, 2.5)
        assert process.wait(timeout=PATIENCE) == 0
    said = b""
    try:
        while part := os.read(terminal, 65536):
            said += part
    except OSError:  # nobody has the other side any more
        pass
    os.close(terminal)
    assert rows.count(b"\n") == 300002
    drawn = re.findall(rb"\rgraftrace: reading \[(#*\.*)\] +(\d+) %, [\d.]+ [kM]? ?records/s, \d+ s left\x1b\[K", said)
    assert len(drawn) >= 2 and all(len(bar) == 24 for bar, _ in drawn), said
    shares = [int(share) for _, share in drawn]
    assert shares == sorted(shares) and shares[-1] <= 100
    # The line is wiped before the summary.
    assert re.search(rb"\r\x1b\[Kgraftrace export: 300001 calls", said), said


def test_others_are_not_disturbed(recorded):
    with exported(recorded, subprocess.PIPE) as process:
        read_slowly(process.stdout, 1.5)
        assert process.stderr.read() == b"graftrace export: 300001 calls of 1 stack to stdout\n"
