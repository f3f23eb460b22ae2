# SPDX-License-Identifier: MIT
"""Programs that do what tracers get wrong (tests/programs/storm.cc) are attached to and left while they
do it: they go on to the right result, and their code is their own again."""

import hashlib
import itertools
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from conftest import PATIENCE, PROGRAMS, ROOT, line_with

# More rounds: what a nightly run does.
MORE = int(os.environ.get("GRAFTRACE_LONG_TESTS", "1"))
MODES = ["throw", "throwers", "cleans", "threads", "coroutines", "jit", "load", "deep", "signals"]
WAYS = {"none": [], "patchable": ["-fpatchable-function-entry=5"]}


@pytest.fixture(scope="module", params=WAYS)
def storm(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("storm")
    common = ["g++", "-O2", "-pthread", f"-I{ROOT}", *WAYS[request.param]]
    library = directory / "libstorm.so"
    subprocess.run([*common, "-shared", "-fPIC", PROGRAMS / "storm_library.cc", "-o", library], check=True)
    subprocess.run([*common, PROGRAMS / "storm.cc", "-o", directory / "storm", library,
                    f"-Wl,-rpath,{directory}"], check=True)
    # One that nothing is linked with: it comes and goes.
    (directory / "libcomes.so").write_bytes(library.read_bytes())
    return directory / "storm", directory / "libcomes.so"


def code(pid):
    """A digest of every executable mapping of a file but of the one that comes and goes."""
    found = {}
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            words = line.split(maxsplit=5)
            if "x" not in words[1] or len(words) < 6 or words[5].startswith("[") or "comes" in words[5]:
                continue
            start, end = (int(number, 16) for number in words[0].split("-"))
            memory.seek(start)
            found[line] = hashlib.sha256(memory.read(end - start)).hexdigest()
    return found


@pytest.mark.parametrize("mode", MODES)
def test_it_goes_on_as_if_nobody_had_come(graftrace, storm, mode):
    program, library = storm
    with subprocess.Popen([program, mode, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as running:
        try:
            assert running.stdout.readline() == "ready\n"
            before = code(running.pid)
            calls = 0
            end = time.monotonic() + 60
            for number, options in enumerate(itertools.cycle([[], ["--libs"], ["-p", "function"]])):
                # On a loaded machine 100 ms can be none of the program's: the rounds go on until calls were seen.
                if number >= 3 * MORE and (calls > 100 or time.monotonic() > end):
                    break
                done = graftrace("record", *options, "-P", running.pid, "--for", "100ms", timeout=120)
                calls += int(re.search(r"([\d,]+) calls?,", done.stderr).group(1).replace(",", ""))
                assert running.poll() is None, running.stdout.read()
            assert calls > 100
            assert code(running.pid) == before
            running.stdin.close()
            assert re.fullmatch(r"ok [1-9]\d*\n", running.stdout.readline())
            assert running.wait(PATIENCE) == 0
        finally:
            running.kill()


@pytest.mark.parametrize("mode", MODES)
def test_it_ends_rightly_while_it_is_recorded(graftrace, storm, mode):
    program, library = storm
    with subprocess.Popen([program, mode, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as running:
        try:
            assert running.stdout.readline() == "ready\n"
            record = graftrace.start("record", "-P", running.pid, "-o", "/dev/null")
            line_with(record.stderr, "recording process")
            running.stdin.close()
            assert re.fullmatch(r"ok \d+\n", running.stdout.readline())
            assert running.wait(PATIENCE) == 0
            _, said = record.communicate(timeout=PATIENCE)
            assert record.returncode == 0 and "died of" not in said, said
        finally:
            running.kill()


def test_threads_that_only_throw_are_left_and_attached_to_again_and_again(graftrace, storm):
    program, library = storm
    with subprocess.Popen([program, "throwers", library], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as running:
        try:
            assert running.stdout.readline() == "ready\n"
            before = code(running.pid)
            for i in range(4 * MORE):
                done = graftrace("record", "-P", running.pid, "--for", "5ms", "-o", "/dev/null", timeout=120)
                assert "keeps the recorder's memory" not in done.stderr, f"round {i}: {done.stderr}"
                assert "graftrace" not in Path(f"/proc/{running.pid}/maps").read_text(), f"round {i}"
            assert code(running.pid) == before
            running.stdin.close()
            assert re.fullmatch(r"ok [1-9]\d*\n", running.stdout.readline())
            assert running.wait(PATIENCE) == 0
        finally:
            running.kill()
