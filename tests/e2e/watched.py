# SPDX-License-Identifier: MIT
"""A mounted program that is told how many turns to do, and one with events, for the tests of their
histograms, triggers and instances."""

import re
import subprocess

import pytest

from conftest import PATIENCE, ROOT, wait_until

FLAGS = ["-pthread", f"-I{ROOT / 'include'}"]
SOLD = "events/shop/sold/"


@pytest.fixture(scope="module")
def program(compile):
    return compile("events.c", "-O2", *FLAGS)


class Looping:
    """A mounted program, and what it is told to do."""

    def __init__(self, graftrace, *words):
        self.graftrace = graftrace
        self.path = graftrace.directory / "tracing"
        self.path.mkdir()
        self.process = graftrace.start("mount", *words[:-2], self.path, "--", *words[-2:],
                                       stdin=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()
        wait_until((self.path / "trace").exists, "the mount")

    def run(self, times):
        self.start(times)
        self.done()

    def start(self, times):
        self.process.stdin.write(f"{times}\n")
        self.process.stdin.flush()

    def done(self):
        return self.process.stdout.readline()

    def text_of(self, times):
        """What it writes into an empty trace."""
        (self.path / "trace").write_text("")
        self.run(times)
        return (self.path / "trace").read_text()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0


class Watched(Looping):
    """One with events: also what is written into their files."""

    def done(self):
        assert " bad 0 " in super().done()

    def write(self, text, event=SOLD):
        self.append(f"{event}/trigger", text)

    def append(self, name, text):
        with open(self.path / name, "a", encoding="utf-8", buffering=1) as file:
            file.write(text + "\n")

    def hists(self, event=SOLD):
        """Of each histogram: its entries as {key: hits}, and its totals."""
        found = []
        for part in (self.path / event / "hist").read_text().split("# event histogram")[1:]:
            entries = {key.strip(): int(hits) for key, hits in
                       re.findall(r"^\{ (.*) \} hitcount: +(\d+)", part, re.M)}
            found.append((entries, dict((name, int(value)) for name, value in re.findall(
                r"^    (Hits|Entries|Dropped): (\d+)$", part, re.M))))
        return found


@pytest.fixture
def watched(program, graftrace):
    made = Watched(graftrace, program, "loop")
    yield made
    made.end()
