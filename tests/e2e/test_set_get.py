# SPDX-License-Identifier: MIT
"""graftrace set and get: which recording they find, what they print and refuse, who is let in."""

import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tempfile

import pytest

from conftest import PATIENCE, wait_until
from test_mount import program  # noqa: F401


@pytest.fixture
def folder():
    """XDG_RUNTIME_DIR: a socket's path has room for 107 bytes."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="graftrace-test-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def recorded(graftrace, program, folder):  # noqa: F811
    """recorded(options…) records the program; its Popen."""
    started = []

    def start(*options, output="graftrace.data"):
        before = len(list(folder.glob("graftrace/*.sock")))
        process = graftrace.start("record", "-o", output, *options, program,
                                  stdin=subprocess.PIPE,
                                  env={**os.environ, "XDG_RUNTIME_DIR": str(folder)})
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        wait_until(lambda: len(list(folder.glob("graftrace/*.sock"))) > before, "the door")
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.stdin.close()
            process.wait(PATIENCE)


def call(process, count):
    process.stdin.write(f"{count}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def ask(graftrace, folder, *words, code=0):
    done = graftrace(*words, code=code, env={"XDG_RUNTIME_DIR": str(folder)})
    return done.stdout if code == 0 else done.stderr


def test_a_recording_into_a_file_is_steered_while_it_runs(graftrace, recorded, folder):
    process = recorded()
    call(process, 3)
    assert ask(graftrace, folder, "get", "tracing_on") == "1\n"
    ask(graftrace, folder, "set", "tracing_on", "0")
    call(process, 10)
    ask(graftrace, folder, "set", "set_ftrace_filter", "leaf")
    ask(graftrace, folder, "set", "tracing_on", "1")
    ask(graftrace, folder, "set", "trace_marker", "from", "here")
    call(process, 4)
    process.stdin.close()
    assert process.wait(PATIENCE) == 3
    text = graftrace("show").stdout
    assert text.count("leaf();") == 3 + 4
    assert text.count("middle() {") == 1
    assert text.count("/* from here */") == 1
    assert not list(folder.glob("graftrace/*.sock"))


def test_the_trace_is_read_and_followed(graftrace, recorded, folder):
    process = recorded("--overwrite")
    call(process, 2)
    assert ask(graftrace, folder, "get", "trace").count("leaf();") == 2
    pipe = graftrace.start("get", "trace_pipe",
                           env={**os.environ, "XDG_RUNTIME_DIR": str(folder)})
    text = ""
    while "other();" not in text:
        text += pipe.stdout.readline()
    assert text.count("leaf();") == 2
    call(process, 1)
    while text.count("other();") < 2:
        text += pipe.stdout.readline()
    pipe.send_signal(signal.SIGINT)
    pipe.communicate(timeout=PATIENCE)
    assert "leaf" not in ask(graftrace, folder, "get", "trace")


def test_a_folder_is_read_as_names(graftrace, recorded, folder):
    recorded()
    names = ask(graftrace, folder, "get").split("\n")
    assert {"README", "trace", "options/", "per_thread/", "set_ftrace_filter"} <= set(names)
    assert "funcgraph-proc" in ask(graftrace, folder, "get", "options").split("\n")


def test_what_is_refused_says_why(graftrace, recorded, folder):
    assert "no recording runs" in ask(graftrace, folder, "get", "trace", code=1)
    recorded()
    assert "nosuch" in ask(graftrace, folder, "get", "nosuch", code=1)
    assert "nosuch" in ask(graftrace, folder, "set", "current_tracer", "nosuch", code=1)
    assert "can only be read" in ask(graftrace, folder, "set", "available_tracers", "x", code=1)
    assert "can only be written" in ask(graftrace, folder, "get", "trace_marker", code=1)
    ask(graftrace, folder, "set", code=2)
    ask(graftrace, folder, "get", "-P", "x", "trace", code=2)


def test_of_several_recordings_one_is_chosen(graftrace, recorded, folder):
    recorded(output="one.data")
    recorded(output="two.data")
    pids = sorted(path.stem for path in folder.glob("graftrace/*.sock"))
    said = ask(graftrace, folder, "get", "tracing_on", code=1)
    assert "-P" in said and all(pid in said for pid in pids)
    ask(graftrace, folder, "set", "-P", pids[0], "tracing_on", "0")
    assert ask(graftrace, folder, "get", "-P", pids[0], "tracing_on") == "0\n"
    assert ask(graftrace, folder, "get", "-P", pids[1], "tracing_on") == "1\n"
    assert "999999999" in ask(graftrace, folder, "get", "-P", "999999999", "trace", code=1)


def test_what_a_killed_graftrace_left_is_passed_over(graftrace, recorded, folder):
    process = recorded()
    process.kill()
    process.wait(PATIENCE)
    assert "no recording runs" in ask(graftrace, folder, "get", "trace", code=1)
    assert not list(folder.glob("graftrace/*.sock"))


def test_the_folder_is_the_users_alone(graftrace, recorded, folder):
    recorded()
    inside = folder / "graftrace"
    assert stat.S_IMODE(inside.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in inside.iterdir())
    inside.chmod(0o777)
    assert "not a folder of this user's alone" in ask(graftrace, folder, "get", "trace", code=1)
