# SPDX-License-Identifier: MIT
"""The model of the hand-over between writer, nested writers, host and reader, checked by spin."""

import re
import subprocess
from pathlib import Path

import pytest

MODEL = Path(__file__).resolve().parents[1] / "model" / "stream.pml"


def errors(directory, *definitions):
    """What an exhaustive search finds: the lines of pan that name errors; [] = none."""
    defines = [f"-D{definition}" for definition in definitions]
    subprocess.run(["spin", "-a", *defines, MODEL], cwd=directory, check=True, timeout=60)
    # A claim on which process may run forbids the partial order reduction.
    subprocess.run(["cc", "-O2", "-w", "-DSAFETY", "-DNOREDUCE", "-DCOLLAPSE", "-DMEMLIM=3000",
                    "-o", "pan", "pan.c"], cwd=directory, check=True, timeout=120)
    result = subprocess.run(["./pan", "-m100000"], cwd=directory, check=True, timeout=600,
                            capture_output=True, text=True)
    assert "errors: " in result.stdout, result.stdout
    assert "max search depth too small" not in result.stdout
    found = [line for line in result.stdout.splitlines() if re.match(r"pan:\d+: ", line)]
    assert ("errors: 0" in result.stdout) == (not found), result.stdout
    assert found or "Search not completed" not in result.stdout, result.stdout
    return found


@pytest.mark.parametrize("definitions", [
    ("LEVELS=2", "CALLS=3"),
    ("LEVELS=3", "CALLS=1"),
    ("LEVELS=3", "CALLS=3", "OVERWRITE"),
], ids=["one signal", "two signals", "overwrite"])
def test_no_word_is_lost_doubled_or_stored_where_it_does_not_belong(tmp_path, definitions):
    assert errors(tmp_path, *definitions) == []


@pytest.mark.parametrize("definitions", [("LEVELS=2", "CALLS=3"),
                                         ("LEVELS=3", "CALLS=3", "OVERWRITE")],
                         ids=["drained", "overwrite"])
def test_the_model_can_fail(tmp_path, definitions):
    """The end as it once was told: a place was compared with whatever end the block had by then."""
    found = errors(tmp_path, *definitions, "COMPARE_WITH_END")
    assert found and "assertion violated" in found[0]
