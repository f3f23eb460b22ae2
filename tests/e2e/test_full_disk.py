# SPDX-License-Identifier: MIT
"""A recording that cannot be written any more: what is in the file is whole, what is not is lost."""

import os
import re
import subprocess
import threading

import pytest

from conftest import PATIENCE
from test_losses import made, recorded_and_lost, told_by_report

FULL = """
mount -t tmpfs -o size=1M none full
"$@"
code=$?
cp full/graftrace.data .
exit $code
"""


@pytest.fixture(scope="module")
def program(compile):
    return compile("many.c", "-O2", "-pthread")


def in_a_full_directory(graftrace, *words):
    (graftrace.directory / "full").mkdir()
    return subprocess.run(["unshare", "-rm", "sh", "-c", FULL, "sh", graftrace.path, "record", "-o",
                           "full/graftrace.data", *map(str, words)], cwd=graftrace.directory,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=PATIENCE)


@pytest.mark.parametrize("mode", [[], ["--overwrite"]], ids=["drain", "overwrite"])
def test_calls_that_find_the_disk_full_are_lost(graftrace, program, mode):
    done = in_a_full_directory(graftrace, "--no-compress", *mode, program, "busy", 3, 100000)
    assert done.returncode == 1, done.stderr
    assert "No space left on device" in done.stderr
    assert "lost because the file could not be written" in done.stderr
    recorded, lost = recorded_and_lost(done)
    assert 0 < recorded and 0 < lost and recorded + lost == made(done)
    assert told_by_report(graftrace)[0] == recorded


def test_calls_behind_a_closed_pipe_are_lost(graftrace, program):
    os.mkfifo(graftrace.directory / "pipe")

    def take_some():
        with open(graftrace.directory / "pipe", "rb") as pipe:
            pipe.read(300000)

    reader = threading.Thread(target=take_some)
    reader.start()
    done = graftrace("record", "-o", "pipe", "--no-compress", program, "busy", "3", "100000", code=1)
    reader.join(PATIENCE)
    recorded, lost = recorded_and_lost(done)
    assert "Broken pipe" in done.stderr
    assert 0 < lost and recorded + lost == made(done)


def test_a_killed_graftrace_leaves_the_program_to_end_and_whole_blocks(graftrace, program):
    path = graftrace.directory / "graftrace.data"
    process = graftrace.start("record", "-b", "256k", program, "busy", 3, 15000000)
    while not (path.exists() and path.stat().st_size > 3000000):
        assert process.poll() is None, process.stderr.read()
    process.kill()
    process.wait(PATIENCE)
    # the program has the other end of the pipe: it has ended when this has
    assert re.search(r"^made=45000004$", process.communicate(timeout=PATIENCE)[0], re.M)
    # as after a power cut, where the end of a file may be there without what it had
    with open(path, "ab") as file:
        file.write(bytes(20000))
    done = graftrace("report", "--format", "csv", code=None)
    assert "was not ended" in done.stderr or "cut off" in done.stderr, done.stderr
    assert 1000 < told_by_report(graftrace, code=None)[0] < 4500004
