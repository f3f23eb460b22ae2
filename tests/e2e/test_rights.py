# SPDX-License-Identifier: MIT
"""Programs that have rights of their own, started or executed by a user without them: they run untraced, with what is theirs."""

import os
import shutil
import subprocess

import pytest
from conftest import BUILD, PATIENCE

GRAFTRACE = str(BUILD / "cli" / "graftrace")
USER = {"user": 65534, "group": 65534, "extra_groups": []}
WHO = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof(line), status))
        if (strncmp(line, "CapEff:", 7) == 0) printf("%d %d %s", geteuid(), getegid(), line + 8);
    return 7;
}
"""
NONE, RAW = "0000000000000000", "0000000000002000"


@pytest.fixture
def place(tmp_path_factory):
    """Where another user can come, on a file system that has rights."""
    place = tmp_path_factory.mktemp("rights", numbered=True)
    for part in (place, *place.parents[:-1]):
        part.chmod(part.stat().st_mode | 0o055)
    yield place
    shutil.rmtree(place)


def with_rights(program, place, kind):
    path = place / kind
    shutil.copy(program, path)
    path.chmod({"user": 0o4755, "group": 0o2755}.get(kind, 0o755))
    if kind == "capability":
        subprocess.run(["setcap", "cap_net_raw+ep", path], check=True, timeout=PATIENCE)
    return path


@pytest.mark.parametrize("kind", ["user", "group", "capability"])
@pytest.mark.parametrize("by", ["itself", "shell", "path"])
def test_a_program_keeps_its_rights_untraced(by, kind, compile, place):
    program = with_rights(compile(WHO, "-O1"), place, kind)
    command = {"itself": [program], "shell": ["sh", "-c", f"{program}; exit $?"], "path": [kind]}[by]
    plain = subprocess.run([program], text=True, capture_output=True, timeout=PATIENCE, **USER)
    expected = {"user": "0 65534", "group": "65534 0", "capability": "65534 65534"}[kind]
    assert plain.returncode == 7 and plain.stdout.startswith(expected), plain
    done = subprocess.run([GRAFTRACE, "record", "-o", "/dev/null", *command], text=True, capture_output=True, timeout=PATIENCE, cwd="/",
                          env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}, **USER)
    assert (done.returncode, done.stdout) == (7, plain.stdout), done.stderr
    assert ("capabilities (setcap)" if kind == "capability" else "(set-user-ID)") in done.stderr
    assert done.stderr.count("run graftrace as root") == 1 and "runs untraced" in done.stderr


def test_without_new_rights_such_a_program_is_traced(compile, place):
    program = with_rights(compile(WHO, "-O1"), place, "capability")
    done = subprocess.run(["setpriv", "--no-new-privs", GRAFTRACE, "record", "-o", "/dev/null", program], text=True,
                          capture_output=True, timeout=PATIENCE, cwd="/", **USER)
    assert (done.returncode, done.stdout) == (7, f"65534 65534 {NONE}\n"), done.stderr
    assert "untraced" not in done.stderr


def test_root_traces_such_a_program_with_its_rights(compile, place):
    program = with_rights(compile(WHO, "-O1"), place, "capability")
    done = subprocess.run([GRAFTRACE, "record", "-o", "/dev/null", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program],
                          text=True, capture_output=True, timeout=PATIENCE, cwd="/")
    assert (done.returncode, done.stdout) == (7, f"65534 65534 {RAW}\n"), done.stderr
