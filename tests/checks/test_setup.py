# SPDX-License-Identifier: MIT
"""tools/setup installs what is missing, and only that; dpkg, apt and sudo are stand-ins here."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import tree

STAND_INS = {
    # Answers as dpkg-query does, for the packages named in $INSTALLED.
    "dpkg-query": 'for p in $INSTALLED; do echo "installed $p"; done; exit 1',
    # Writes down how it was called. The first install fails if $LISTS_ARE_OLD is a file.
    "apt-get": 'echo "$*" >> "$CALLS"; case "$*" in *update*) rm -f "$LISTS_ARE_OLD";; '
               '*) [ ! -e "$LISTS_ARE_OLD" ];; esac',
    "sudo": '[ -n "$SUDO_WORKS" ] || exit 1; [ "$1" = -n ] && shift; echo sudo >> "$CALLS"; '
            'exec "$@"',
}


@pytest.fixture
def place():
    """A directory that any user may read, with tools/setup and the stand-ins."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        (path / "tools").mkdir()
        (path / "bin").mkdir()
        shutil.copy(tree.ROOT / "tools" / "setup", path / "tools" / "setup")
        (path / "tools" / "packages.txt").write_text(
            "# a comment\nbuild  first   # why\nbuild  second  sh  # the command is there\n"
            "test   third\ntest   fourth  no-such-command\n")
        for command, script in STAND_INS.items():
            (path / "bin" / command).write_text(f"#!/bin/sh\n{script}\n")
            (path / "bin" / command).chmod(0o755)
        (path / "calls").touch()
        (path / "calls").chmod(0o666)
        path.chmod(0o755)
        yield path


def run_setup(place, *groups, **environment):
    """Runs tools/setup; returns it and what apt-get and sudo were asked."""
    command = [place / "tools" / "setup", *groups]
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, env={
        "PATH": f"{place / 'bin'}:/usr/bin:/bin", "CALLS": str(place / "calls"),
        "LISTS_ARE_OLD": str(place / "old"), **environment})
    return done, (place / "calls").read_text()


def test_nothing_is_asked_for_when_nothing_is_missing(place):
    done, calls = run_setup(place, INSTALLED="first third fourth")
    assert (done.returncode, done.stdout, done.stderr, calls) == (0, "", "", "")


def test_only_the_groups_named_are_looked_at(place):
    done, calls = run_setup(place, "build", INSTALLED="first")
    assert done.returncode == 0 and calls == ""


def test_without_root_the_one_line_to_run_is_printed(place):
    done, calls = run_setup(place, INSTALLED="third")
    assert done.returncode == 1 and calls == ""
    lines = [line for line in done.stderr.splitlines() if "apt-get" in line]
    assert len(lines) == 1 and lines[0].endswith("first fourth'")


def test_sudo_is_used_when_it_asks_for_no_password(place):
    done, calls = run_setup(place, INSTALLED="third", SUDO_WORKS="1")
    assert done.returncode == 0
    assert re.search(r"^sudo\n.*install.* first fourth\n$", calls, re.S)


def test_old_package_lists_are_renewed(place):
    (place / "old").touch()
    place.chmod(0o777)
    done, calls = run_setup(place, INSTALLED="third", SUDO_WORKS="1")
    assert done.returncode == 0
    asked = [line for line in calls.splitlines() if line != "sudo"]
    assert ["update" in line for line in asked] == [False, True, False]


def test_a_group_that_is_not_there_is_refused(place):
    done, _ = run_setup(place, "nothing")
    assert done.returncode == 2 and "no such group" in done.stderr


def test_every_package_of_the_list_says_why_it_is_there():
    lines = [line for line in (tree.ROOT / "tools" / "packages.txt").read_text().splitlines()
             if line and not line.startswith("#")]
    bad = [line for line in lines
           if not re.fullmatch(r"(build|test|demo|bench|unikernel) +[a-z0-9.+-]+( +[a-z0-9_-]+)? +# \S.*", line)]
    assert lines and not bad
