# SPDX-License-Identifier: MIT
"""A traced program that writes over all of the recorder's memory harms its own trace and nothing else.

The suite `scribbler-asan` runs this with a graftrace that the sanitizers look at.
"""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from conftest import BUILD
from served import Served, port_of

ROOT = Path(__file__).parents[2]
GRAFTRACE = BUILD / "cli" / "graftrace"
MODES = ("states", "streams", "mail", "subs", "header", "all", "forge", "grow", "zero", "huge")
# A finding ends graftrace with a code that nothing else has.
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=99",
              "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99"}
SECONDS = 120  # a hang, whatever else the machine does


@pytest.fixture(scope="module")
def scribbler(tmp_path_factory):
    made = tmp_path_factory.mktemp("scribbler") / "arena_scribbler"
    subprocess.run(["gcc", "-O1", "-fpatchable-function-entry=5", "-pthread", "-I", str(ROOT / "include"),
                    str(ROOT / "tests" / "programs" / "arena_scribbler.c"), "-o", str(made)], check=True)
    return made


def record(directory, scribbler, mode, seed, *options):
    done = subprocess.run([str(GRAFTRACE), "record", "-b", "4M", *options, "--", str(scribbler), mode,
                           "300", str(seed)], cwd=directory, capture_output=True, text=True,
                          errors="replace", timeout=SECONDS, env={**os.environ, **SANITIZERS})
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr[-3000:]
    # What it does to itself may kill it.
    assert done.returncode in (0, 128 + 6, 128 + 7, 128 + 11), (done.returncode, done.stderr[-3000:])
    assert len(done.stderr) < 4000, done.stderr[:2000]
    return done


@pytest.mark.parametrize("mode", MODES)
def test_what_a_program_writes_over_is_lost_and_nothing_else_happens(tmp_path, scribbler, mode):
    for options, seed in (([], 1), (["--overwrite"], 2)):
        done = record(tmp_path, scribbler, mode, seed, *options)
        shown = subprocess.run([str(GRAFTRACE), "report"], cwd=tmp_path, capture_output=True, timeout=SECONDS,
                               env={**os.environ, **SANITIZERS}, check=False)
        assert shown.returncode in (0, 1), (shown.stderr[-3000:], done.stderr[-3000:])


def test_impossible_numbers_are_called_damaged_with_their_thread(tmp_path, scribbler):
    done = record(tmp_path, scribbler, "huge", 3)
    assert re.search(r"damaged: .*the first: thread \d+ of process \d+", done.stderr), done.stderr
    assert " 0 lost," in done.stderr
    for command in ("report", "show", "info"):
        told = subprocess.run([str(GRAFTRACE), command], cwd=tmp_path, capture_output=True, text=True,
                              timeout=SECONDS, env={**os.environ, **SANITIZERS}, check=False)
        assert re.search(r"damaged.*the first: thread \d+ of process \d+", told.stdout + told.stderr), command


def test_letters_of_no_trigger_do_nothing(tmp_path, scribbler):
    done = record(tmp_path, scribbler, "forge", 4)
    assert "Dumping" not in done.stderr and "recording ends" not in done.stderr, done.stderr
    assert done.stdout == "done\n"


@pytest.mark.parametrize("mode", ["huge", "states", "streams"])
def test_an_interrupt_ends_the_recording_of_a_hostile_program(tmp_path, scribbler, mode):
    """Attached to: Ctrl-C is graftrace's alone."""
    with subprocess.Popen([str(scribbler), mode, "60000", "5", "wait"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as target:
        try:
            assert target.stdout.readline() == "ready\n"
            with subprocess.Popen([str(GRAFTRACE), "record", "--overwrite", "-b", "4M", "-P", str(target.pid)],
                                  cwd=tmp_path, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, **SANITIZERS}) as host:
                assert "recording process" in host.stderr.readline()
                target.stdin.write("go\n")
                target.stdin.flush()
                time.sleep(0.3)  # it scribbles
                host.send_signal(2)
                _, errors = host.communicate(timeout=SECONDS)
            assert host.returncode == 0 and "Sanitizer" not in errors, errors[-3000:]
        finally:
            target.kill()


@pytest.mark.parametrize("mode", ["huge", "states", "streams"])
def test_a_served_recording_of_a_hostile_program_answers_and_ends_at_SIGTERM(tmp_path, scribbler, mode):
    with subprocess.Popen([str(scribbler), mode, "60000", "7", "wait"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as target:
        try:
            assert target.stdout.readline() == "ready\n"
            with subprocess.Popen([str(GRAFTRACE), "record", "--serve=127.0.0.1:0", "--overwrite", "-b", "4M", "-P",
                                   str(target.pid)], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, **SANITIZERS}) as host:
                served = Served(host, port_of(host))
                target.stdin.write("go\n")
                target.stdin.flush()
                deadline = time.monotonic() + SECONDS
                while (mode == "huge" and "\ndamaged: " not in served.get("stats") and
                       time.monotonic() < deadline):
                    time.sleep(0.02)
                for name in ("trace", "stats", "trace_pipe", "per_cpu/cpu0/stats"):
                    status, text, _ = served.ask("GET", name)
                    assert status in (200, 503), (name, text)
                assert mode != "huge" or "\ndamaged: " in served.get("stats")
                host.send_signal(15)
                _, errors = host.communicate(timeout=SECONDS)
            assert host.returncode == 0 and "Sanitizer" not in errors, errors[-3000:]
        finally:
            target.kill()
