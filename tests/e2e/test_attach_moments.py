# SPDX-License-Identifier: MIT
"""Attaching at unhappy moments: while the process executes another program, while others attach."""

import re
import subprocess

import pytest


@pytest.fixture
def program(compile):
    return compile("execs.c", "-O2")


def start(program, times, ms):
    return subprocess.Popen([program, str(times), str(ms)], stdin=subprocess.PIPE, text=True)


@pytest.mark.parametrize("ms", [3, 10, 30])
def test_a_process_that_executes_another_program_meanwhile_is_recorded(ms, program, graftrace):
    process = start(program, 8, ms)
    done = graftrace("record", "-P", process.pid, "--stop-when", "called hit 5", timeout=120)
    assert "has ended" not in done.stderr
    process.communicate("x", timeout=60)
    assert process.returncode == 7
    assert re.search(r"^called,", graftrace("report", "--format", "csv").stdout, re.M)


def test_of_several_that_attach_at_once_one_records_and_the_others_say_who_it_is(program, graftrace):
    process = start(program, 0, 0)
    several = [graftrace.start("record", "-o", f"data{i}", "-P", process.pid, "--for", "3s")
               for i in range(3)]
    texts = [one.communicate(timeout=60)[1] for one in several]
    process.communicate("x", timeout=60)
    assert process.returncode == 7
    by = [i for i, one in enumerate(several) if one.returncode == 0]
    assert by, texts
    recorders = "|".join(str(several[i].pid) for i in by)
    for i, text in enumerate(texts):
        if i not in by:
            assert re.search(rf"is being recorded already, by graftrace \(process ({recorders})\)", text)
