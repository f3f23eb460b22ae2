# SPDX-License-Identifier: MIT
"""Sessions of ftrace's tutorials (sessions.txt), typed at each door: a shell in the mounted
directory, and `graftrace set` and `get`."""

import errno
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

import pytest

from conftest import PATIENCE, wait_until
from test_mount import Mounted, is_mounted, program  # noqa: F401

SESSIONS = pathlib.Path(__file__).with_name("sessions.txt")


def sessions():
    parts = re.split(r"^== (.*)$", SESSIONS.read_text(), flags=re.M)[1:]
    return list(zip(parts[::2], parts[1::2]))


def steps(text):
    """(what is typed, what is printed) of a session."""
    found = []
    for line in text.strip("\n").split("\n"):
        if line.startswith("$ ") or line.startswith("calls "):
            found.append((line.removeprefix("$ "), []))
        else:
            found[-1][1].append(line)
    return [(typed, "\n".join(lines).rstrip("\n")) for typed, lines in found]


def alike(text):
    """Without what differs from run to run."""
    text = re.sub(r"#P:\d+", "#P:N", text)
    text = re.sub(r"^ +\d+\)", " C)", text, flags=re.M)
    text = re.sub(r"^( C\)) +\S+-\d+ +\|", r"\1  TASK |", text, flags=re.M)
    text = re.sub(r"\) [ +!#*@$] +[\d.]+ us +\|", ")   D us    |", text)
    text = re.sub(r"^ +\S+-\d+ +\[\d+\] ", " TASK [CPU] ", text, flags=re.M)
    text = re.sub(r"\.\.\.\.\. +\d+\.\d{6}: ", "..... T: ", text)
    text = re.sub(r"\.\.\.\.\. +TSC: ", "..... TSC: ", text)
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")


class Shell:
    """bash in the mounted directory."""

    def __init__(self, graftrace, program):  # noqa: F811
        self.mounted = Mounted(graftrace, program)

    def type(self, line):
        done = subprocess.run(["bash", "-c", line], cwd=self.mounted.path, capture_output=True,
                              text=True, timeout=PATIENCE)
        for name in ("EINVAL", "EBADF"):
            if os.strerror(getattr(errno, name)) in done.stderr:
                return name
        assert done.stderr == "", done.stderr
        return done.stdout

    def calls(self, count):
        self.mounted.calls(count)

    def end(self):
        self.mounted.end()


class Commands:
    """graftrace set and get: what a shell would do of echo and cat."""

    def __init__(self, graftrace, program):  # noqa: F811
        self.graftrace = graftrace
        self.run = tempfile.mkdtemp(prefix="graftrace-test-")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.run}
        self.process = graftrace.start("record", "--overwrite", "-p", "nop", program,
                                       stdin=subprocess.PIPE, env=self.environment)
        assert self.process.stdout.readline() == "ready\n"
        wait_until(lambda: list(pathlib.Path(self.run).glob("graftrace/*.sock")), "the door")
        self.type("echo 0 > options/overwrite")

    def type(self, line):
        echo = re.fullmatch(r"echo ?(.*?) (>>?) (\S+)", line)
        if echo:
            append = ["-a"] if echo[2] == ">>" else []
            return self.command("set", *append, echo[3], *shlex.split(echo[1]))
        cat = re.fullmatch(r"cat (\S+)(?: \| (.*))?", line)
        text = self.command("get", cat[1])
        if not cat[2]:
            return text
        return subprocess.run(["bash", "-c", cat[2]], input=text, capture_output=True, text=True,
                              timeout=PATIENCE).stdout

    def command(self, *words):
        done = self.graftrace(*words, code=None, env={"XDG_RUNTIME_DIR": self.run})
        if done.returncode == 0:
            assert done.stderr == ""
            return done.stdout
        assert done.returncode == 1 and done.stderr.startswith("graftrace ")
        return "EBADF" if "tracing is off" in done.stderr else "EINVAL"

    def calls(self, count):
        Mounted.calls(self, count)

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        shutil.rmtree(self.run)


@pytest.fixture(params=[Shell, Commands], ids=["mount", "set-get"])
def door(request, graftrace, program):  # noqa: F811
    one = request.param(graftrace, program)
    yield one
    one.end()


@pytest.mark.parametrize("session", [text for _, text in sessions()],
                         ids=[name.replace(" ", "-") for name, _ in sessions()])
def test_a_session_prints_what_the_tutorial_shows(door, session):
    for typed, printed in steps(session):
        if typed.startswith("calls "):
            door.calls(int(typed.split()[1]))
        else:
            assert alike(door.type(typed)) == alike(printed), typed


def test_there_are_a_dozen_sessions():
    assert len(sessions()) >= 12
