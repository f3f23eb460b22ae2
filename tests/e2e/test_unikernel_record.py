# SPDX-License-Identifier: MIT
"""graftrace record --from a kernel: what was recorded is in one recording, and in one only."""

import re
import signal
import subprocess
import threading
import time

import pytest

import format_reader
from conftest import BUILD, PATIENCE, wait_until
from unikernel import Machine, machine
from test_unikernel_trace import entries_and_returns, put, visit

GRAFTRACE = BUILD / "cli" / "graftrace"


@pytest.fixture(autouse=True)
def empty(machine):
    # a reader before that left is found gone soon
    status = wait_until(lambda: (status := put(machine, "trace", "")[0]) != 409 and status)
    assert status == 204
    yield
    assert "***" not in machine.output()


class Recorder:
    """graftrace record --from, which drains from its file's first bytes on."""

    def __init__(self, machine, path, *options):
        self.path = path
        self.process = subprocess.Popen(
            [GRAFTRACE, "record", "-o", path, *options, "--from",
             f"http://localhost:{machine.trace_port}"], stderr=subprocess.PIPE, text=True)

    def drains(self):
        end = time.monotonic() + 60
        while not (self.path.exists() and self.path.stat().st_size):
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < end
            time.sleep(0.02)
        return self

    def end(self, how=signal.SIGINT):
        if how is not None:
            self.process.send_signal(how)
        _, words = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, words
        said = re.search(r"graftrace: (\d+) records, \d+ threads, (\d+) lost", words)
        assert said, words
        self.lost = int(said[2])
        self.data = format_reader.read(self.path)
        assert not self.data.problems
        assert self.lost == sum(self.data.lost)
        assert int(said[1]) == sum(len(sub.words) for writer in self.data.writers
                                   for sub in writer.sub_buffers)
        return self

    def loses_nothing(self):
        assert self.lost == 0
        return self

    def answers(self):
        """Calls of `answer`, each of which returned, as report counts them; 0 of an empty recording."""
        done = subprocess.run([GRAFTRACE, "report", self.path], capture_output=True, text=True,
                              timeout=PATIENCE)
        row = re.search(r"^ +[\d.]+ +(\d+) +(\d+) .* answer$", done.stdout, re.M)
        assert not row or row[2] == "0", row[0]
        return int(row[1]) if row else 0

    def parts(self):
        return {(writer.generation, sub.header.sequence) for writer in self.data.writers
                for sub in writer.sub_buffers}


def test_what_was_called_just_before_the_end_is_in_the_recording(machine, tmp_path):
    for count in (1, 5, 40):
        recorder = Recorder(machine, tmp_path / f"{count}.data").drains()
        visit(machine, count)
        assert recorder.end().loses_nothing().answers() == count


def test_recordings_one_behind_the_other_share_nothing_and_miss_nothing(machine, tmp_path):
    visit(machine, 3)  # they are in the ring, and so in the first one
    made, answers, parts = 3, 0, set()
    for number in range(6):
        recorder = Recorder(machine, tmp_path / f"{number}.data", *("--for", "1s")[:number % 2 * 2])
        if number % 2 == 0:
            recorder.drains()
        visit(machine, 4)
        made += 4
        recorder.end(None if number % 2 else signal.SIGTERM).loses_nothing()
        answers += recorder.answers()
        assert not parts & recorder.parts()
        parts |= recorder.parts()
    last = Recorder(machine, tmp_path / "last.data").drains().end()
    assert not parts & last.parts()
    assert answers + last.answers() == made


def test_recordings_cut_a_busy_kernels_trace_into_pieces(machine, tmp_path):
    over, made = threading.Event(), [0, 0, 0]

    def keep_visiting(which):
        while not over.is_set():
            visit(machine, 1)
            made[which] += 1

    visitors = [threading.Thread(target=keep_visiting, args=(which,)) for which in range(3)]
    for visitor in visitors:
        visitor.start()
    counted, parts = [0, 0], set()
    for number in range(8):
        recorder = Recorder(machine, tmp_path / f"busy{number}.data").drains()
        time.sleep(number % 4 * 0.2)
        if number == 7:
            over.set()
            for visitor in visitors:
                visitor.join()
        recorder.end().loses_nothing()
        answer = next((number for number, name in recorder.data.names.items() if name == "answer"), -1)
        for which, calls in enumerate(entries_and_returns(recorder.data)):
            counted[which] += calls[answer]
        assert not parts & recorder.parts()
        parts |= recorder.parts()
    assert counted == [sum(made)] * 2


def test_a_quiet_kernel_gives_what_it_recorded(machine, tmp_path):
    visit(machine, 2)
    recorder = Recorder(machine, tmp_path / "quiet.data", "--for", "1s").end(None).loses_nothing()
    assert recorder.answers() == 2
    # and while the recording goes on
    recorder = Recorder(machine, tmp_path / "on.data").drains()
    visit(machine, 1)
    time.sleep(2)
    recorder.process.kill()
    recorder.process.wait()
    assert recorder.answers() == 1


def test_one_that_is_told_no_says_what_the_kernel_says(machine, tmp_path):
    first = Recorder(machine, tmp_path / "first.data").drains()
    second = Recorder(machine, tmp_path / "second.data")
    _, words = second.process.communicate(timeout=PATIENCE)
    assert second.process.returncode == 1
    assert "another reader takes the trace out" in words
    first.end()
    assert put(machine, "trace_pipe.data", "0")[0] == 409


def test_each_recording_tells_what_was_lost_since_the_one_before(tmp_path):
    with Machine(TARGET="webserver", TRACE="ftrace", CPUS=2, BUFFER="1M") as machine:
        machine.wait_for("webserver: http")
        lost = []
        for number in range(3):
            assert put(machine, "options/overwrite", "0")[0] == 204
            visit(machine, 0 if number == 2 else 80)
            lost.append(Recorder(machine, tmp_path / f"{number}.data", "--for", "1s").end(None).lost)
        assert lost[0] > 0 and lost[1] > 0 and lost[2] == 0
        # a ring that was cleared has lost nothing yet
        visit(machine, 80)
        assert put(machine, "trace", "")[0] == 204
        Recorder(machine, tmp_path / "cleared.data", "--for", "1s").end(None).loses_nothing()
