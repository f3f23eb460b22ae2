# SPDX-License-Identifier: MIT
"""What root's graftrace leaves in the places of other users, and what others can do with it: nothing."""

import os
import stat

import pytest

from conftest import PATIENCE

USER = 65534
TEXT = " 0)   1.000 us    |  f();\n"


@pytest.fixture
def theirs(tmp_path):
    """A directory of another user's, in which graftrace is run as root."""
    assert os.getuid() == 0
    tmp_path.chmod(0o755)
    os.chown(tmp_path, USER, USER)
    return tmp_path


def link(path, target):
    path.symlink_to(target)
    os.lchown(path, USER, USER)


@pytest.fixture
def program(compile):
    return compile("__attribute__((noinline)) int leaf(void)\n{\n\treturn 3;\n}\n"
                   "int main(void)\n{\n\treturn leaf();\n}\n", "-O1", "-fpatchable-function-entry=5")


def test_a_recording_is_its_owners_and_follows_no_link(graftrace, theirs, program):
    elsewhere = theirs / "elsewhere"
    link(theirs / "graftrace.data", elsewhere)
    link(theirs / "graftrace.data.old", elsewhere)
    graftrace("record", "--", program, code=3)
    made = os.lstat(theirs / "graftrace.data")
    assert stat.S_ISREG(made.st_mode) and stat.S_IMODE(made.st_mode) == 0o600 and made.st_size > 1000
    assert os.readlink(theirs / "graftrace.data.old") == str(elsewhere)
    assert not elsewhere.exists()
    graftrace("record", "--", program, code=3)  # an ordinary one becomes .old, in the link's place
    assert stat.S_ISREG(os.lstat(theirs / "graftrace.data.old").st_mode)
    assert not elsewhere.exists()


def test_a_recording_goes_to_the_descriptor_that_dev_stdout_names(graftrace, tmp_path, program):
    with open(tmp_path / "out", "wb") as out:
        process = graftrace.start("record", "-o", "/dev/fd/9", "--", program, pass_fds=[9],
                                  preexec_fn=lambda: os.dup2(out.fileno(), 9))
        process.communicate(timeout=PATIENCE)
    assert (tmp_path / "out").read_bytes().startswith(b"graftrace.data\n")
    assert "calls" in graftrace("report", "-i", "out").stdout.lower()


def test_a_table_replaces_the_link_of_another_user(graftrace, theirs):
    precious = theirs / "precious"
    precious.write_text("precious")
    (theirs / "trace").write_text(TEXT)
    link(theirs / "trace.csv", precious)
    graftrace("parse-trace", "trace", "-o", "trace.csv")
    assert precious.read_text() == "precious"
    assert not (theirs / "trace.csv").is_symlink()
    assert "f" in (theirs / "trace.csv").read_text()


# What sudo keeps of the caller's environment.

def plans(graftrace, **environment):
    """Plans the C library's functions, which are so many that the plan is kept."""
    env = {"XDG_CACHE_HOME": "", **environment}
    graftrace("functions", "/lib/x86_64-linux-gnu/libc.so.6", env=env)


def test_no_cache_is_made_in_a_home_of_another_user(graftrace, theirs):
    home = theirs / "home"
    home.mkdir()
    os.chown(home, USER, USER)
    plans(graftrace, HOME=str(home))
    assert not list(home.iterdir())


def test_no_cache_follows_a_link_of_another_user(graftrace, theirs):
    cache = theirs / "cache"
    cache.mkdir()
    (theirs / "roots").mkdir()
    link(cache / "graftrace", theirs / "roots")
    plans(graftrace, XDG_CACHE_HOME=str(cache))
    assert not list((theirs / "roots").iterdir())


def test_a_cache_is_made_in_ones_own_home(graftrace, tmp_path):
    plans(graftrace, HOME=str(tmp_path))
    kept = tmp_path / ".cache/graftrace/plans"
    assert list(kept.glob("*.plan")) and stat.S_IMODE(kept.stat().st_mode) == 0o700


def test_the_socket_of_get_and_set_is_not_put_into_another_users_directory(graftrace, theirs, compile):
    runtime = theirs / "runtime"
    runtime.mkdir()
    os.chown(runtime, USER, USER)
    program = compile("#include <stdio.h>\n#include <unistd.h>\nint main(void)\n{\n\tprintf(\"%d\\n\", getpid());\n"
                      "\tfflush(stdout);\n\treturn getchar() == 0;\n}\n", "-O1")
    process = graftrace.start("record", "--", program, stdin=-1,
                              env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)})
    pid = process.stdout.readline().strip()  # root's folder has other recordings, too, while other tests run
    try:
        while graftrace("get", "-P", pid, "tracing_on", code=None, env={"XDG_RUNTIME_DIR": str(runtime)}).returncode:
            assert process.poll() is None
        assert not list(runtime.iterdir())
    finally:
        process.communicate("", timeout=PATIENCE)
