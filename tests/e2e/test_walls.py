# SPDX-License-Identifier: MIT
"""Processes of a recording share memory: what one of them can do to those of other users."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USER = 65534
FLAGS = ("-O1", "-fpatchable-function-entry=5", "-I", str(ROOT / "include"))
PROGRAMS = ROOT / "tests" / "programs"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory that everybody can enter, with the programs."""
    assert os.getuid() == 0
    path = tmp_path_factory.mktemp("walls")
    for above in (path, *path.parents):
        if str(above).startswith("/tmp/"):
            above.chmod(above.stat().st_mode | 0o055)
    subprocess.run(["gcc", *FLAGS, str(PROGRAMS / "privsep.c"), "-o", str(path / "privsep")], check=True)
    shutil.copy(path / "privsep", path / "with_rights")
    (path / "with_rights").chmod(0o4755)
    return path


def test_a_worker_cannot_make_the_recorder_write_into_its_privileged_parent(graftrace, place):
    done = graftrace("record", "--", place / "privsep", "worker")
    assert "worker 0, changed 0\n" in done.stdout, done.stdout + done.stderr


def test_a_worker_that_dropped_its_rights_is_recorded(graftrace, place):
    graftrace("record", "--", place / "privsep", "header")
    assert re.search(r"^ *[\d.]+ +1 .* try_to_write$", graftrace("report").stdout, re.M)


def test_what_the_recorder_alone_writes_is_read_only_in_a_worker(graftrace, place):
    lines = graftrace("record", "--", place / "privsep", "header").stdout.splitlines()
    assert len(lines) == 8 and lines.pop() == "worker 0, changed 0", lines
    assert [line for line in lines if not line.endswith(" -1")] == []


def arenas(text):
    """The recorder's memory that each process says it has, by who it is."""
    found = dict(re.findall(r"^(uid \d+ secure \d) arena (\d+)$", text, re.M))
    assert "0" not in found.values(), text
    return found


def test_a_program_that_gains_rights_has_an_arena_of_its_own(graftrace, place):
    done = graftrace("record", "--", place / "privsep", "exec", place / "with_rights", "look")
    found = arenas(done.stdout)
    assert set(found) == {f"uid {USER} secure 0", "uid 0 secure 0", "uid 0 secure 1"}, done.stdout
    assert found["uid 0 secure 1"] not in (found["uid 0 secure 0"], found[f"uid {USER} secure 0"])


def test_a_program_that_lost_rights_has_an_arena_of_its_own(graftrace, place):
    done = graftrace("record", "--", "/bin/sh", "-c",
                     f"{place}/privsep look; setpriv --reuid={USER} --clear-groups {place}/privsep look")
    found = arenas(done.stdout)
    assert len(found) == 2 and len(set(found.values())) == 2, done.stdout + done.stderr
    assert re.search(r"^ *[\d.]+ +2 .* look$", graftrace("report").stdout, re.M)
