# SPDX-License-Identifier: MIT
"""graftrace top in a terminal of 80 columns and 24 lines without colors, which is tmux."""

import json
import os
import re
import shlex
import subprocess
import time

import pytest

from conftest import PATIENCE
from test_report import sample

SERVER = r"""
#include <unistd.h>
#define KEEP __attribute__((noinline, noclone))
volatile unsigned long sink;
KEEP void reload(void) { usleep(3000); sink++; }
KEEP void look_up(int i) { sink += i; if (i % 10 == 9) reload(); }
KEEP void handle(int i) { look_up(i); look_up(i + 1); }
int main(void) {
    for (int i = 0; i < 100000; i++) { handle(i); usleep(500); }
    return 0;
}
"""


class Terminal:
    """A terminal in which one command runs."""

    def __init__(self, directory, command):
        self.server = ["tmux", "-L", f"graftrace-{os.getpid()}-{id(self)}", "-f", "/dev/null"]
        subprocess.run(
            [*self.server, "new-session", "-d", "-x", "80", "-y", "24", "-c", directory,
             f"TERM=vt100 {shlex.join(map(str, command))}; echo exit code $?; sleep 1000"],
            check=True, timeout=PATIENCE)

    def screen(self):
        done = subprocess.run([*self.server, "capture-pane", "-p"], check=True, timeout=PATIENCE,
                              capture_output=True, text=True)
        return done.stdout

    def until(self, pattern):
        """The screen with the pattern in it, as soon as it is drawn whole: twice the same."""
        before = None
        for _ in range(600):
            screen = self.screen()
            if re.search(pattern, screen, re.M) and screen == before:
                return screen
            before = screen
            time.sleep(0.05)
        raise AssertionError(f"nothing like {pattern!r} in\n{screen}")

    def keys(self, *keys):
        subprocess.run([*self.server, "send-keys", *keys], check=True, timeout=PATIENCE)

    def close(self):
        subprocess.run([*self.server, "kill-server"], timeout=PATIENCE, capture_output=True)


@pytest.fixture
def terminal(graftrace):
    opened = []

    def start(*words):
        opened.append(Terminal(graftrace.directory, [graftrace.path, "top", *words]))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_a_recording_is_shown_with_the_figures_of_report(graftrace, terminal):
    sample(graftrace, 41, 3, 3000)
    rows = json.loads(graftrace("report", "--format=json", "--sort=self").stdout)["rows"]
    shown = terminal("graftrace.data")
    screen = shown.until(r"^ *[\d.]+ +\d+ .* call_\d+$")
    names = re.findall(r"^ *([\d.]+) +(\d+) .* (call_\d+)$", screen, re.M)
    assert [(int(calls), name) for _, calls, name in names] == [
        (row["calls"], row["function"]) for row in rows[:len(names)]]
    assert len(names) == 20 and all(len(line) <= 80 for line in screen.splitlines())
    shown.keys("s", "s", "s", "s")  # total, p50, p99, name
    screen = shown.until(r">Function")
    names = re.findall(r" (call_\d+)$", screen, re.M)
    assert names == sorted(row["function"] for row in rows)[:20]
    shown.keys("/")
    shown.keys("l_7")
    shown.keys("Enter")
    screen = shown.until(r"/l_7$")
    assert re.findall(r" (call_\d+)$", screen, re.M) == ["call_7"]
    shown.keys("Enter")
    screen = shown.until(r"^ +\d+ .* < ")
    callers = {row["caller"]: row["calls"] for row in json.loads(
        graftrace("report", "--callers", "call_7", "--format=json").stdout)["rows"]}
    found = {name: int(calls) for calls, name in re.findall(
        r"^ +(\d+) .*  < (\S.*)$", screen, re.M)}
    assert len(found) == 5 and found.items() <= callers.items()
    shown.keys("q")
    shown.until("exit code 0")


def test_the_slowest_call_is_the_slowest_one(graftrace, terminal):
    sample(graftrace, 42, 2, 2000)
    calls = [json.loads(line) for line in graftrace("show", "--format=json").stdout.splitlines()]
    slowest = max((call for call in calls if call["function"] == "call_3"
                   and call["end"] == "return"), key=lambda call: call["duration_ns"])
    shown = terminal()
    shown.keys("/")
    shown.keys("call_3")
    shown.keys("Enter", "Home", "m")
    screen = shown.until(r"^slowest call of call_3: ")
    assert screen.splitlines()[0].endswith(f"thread {slowest['tid']}")
    assert re.search(r"\d\) .*\|  +call_3\(\)", screen)
    shown.keys("q")
    shown.until(r"^.*Self%")
    shown.keys("?")
    shown.until("keys of graftrace top")
    shown.keys("q", "q")
    shown.until("exit code 0")


def test_the_slowest_call_is_shown_whole_though_it_began_before_the_table_s_time(graftrace, terminal, compile):
    program = compile("""#include <unistd.h>
        __attribute__((noinline)) int slow(void) { return usleep(300000); }
        int main(void) { alarm(60); for (;;) slow(); }""", "-O1")
    server = subprocess.Popen([program])
    try:
        shown = terminal("-P", server.pid, "-d", "100ms")
        # What is said of a key stays on the screen until the next one is answered.
        for _ in range(50):
            screen = shown.until(r"^(.* slow$|slowest call of slow: )")
            slowest = re.search(r"^slowest call of slow: ([\d.]+) ms, thread", screen, re.M)
            if slowest:
                break
            shown.keys("m")
            time.sleep(0.2)
        assert float(slowest[1]) >= 300
        shown.keys("q", "q")
        shown.until("exit code 0")
    finally:
        server.kill()
        server.wait()


def test_a_process_is_watched_stopped_and_left(graftrace, terminal, compile):
    server = subprocess.Popen([compile(SERVER, "-O1")])
    try:
        shown = terminal("-p", server.pid)
        screen = shown.until(r"^ +\d+\.\d +\d+ .* reload$")
        assert f"process {server.pid}" in screen
        first = re.search(r"^ *([\d.]+) .* (\w+)$", screen.split("Function")[1], re.M).group(2)
        assert first == "reload"  # where the time goes is at the top
        shown.keys("Space")
        shown.until("^stopped")
        shown.keys("Space")
        shown.until("^recording, last 1.00 s")
        shown.keys("q")
        shown.until("exit code 0")
        assert server.poll() is None
        assert "graftrace" not in open(f"/proc/{server.pid}/maps").read()
    finally:
        server.kill()
        server.wait()


def test_a_program_is_started_and_its_end_is_shown(graftrace, terminal, compile):
    program = compile('#include <stdio.h>\nvoid greet(void) { puts("hello"); }\n'
                      'int main(void) { greet(); return 0; }\n', "-O0")
    shown = terminal("-o", "out", "--", program)
    screen = shown.until("^ended")
    assert "graftrace top:" in screen
    shown.until(r" greet$")
    shown.keys("q")
    shown.until("exit code 0")
    assert (graftrace.directory / "out").read_text() == "hello\n"


def test_what_cannot_be_shown_is_told(graftrace, terminal):
    assert "one of them" in graftrace("top", "-P", "1", "--", "true", code=2).stderr
    assert "behind --" in graftrace("top", "a", "b", code=2).stderr
    assert "no-such" in graftrace("top", "no-such", code=1).stderr
    graftrace("top", "--", "/no/such", code=127)
    sample(graftrace, 1, 1, 10)
    # A session of its own has no terminal.
    done = subprocess.run(["setsid", "-w", graftrace.path, "top"], cwd=graftrace.directory,
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1 and "needs a terminal" in done.stderr


def test_a_stripped_program_is_shown_with_the_calls_of_its_libraries(graftrace, terminal):
    terminal("--", "bzip2", "-c", "/bin/sh").until(r"^.* BZ2_\w+@plt$")
    shown = terminal("-l", "*", "--", "bzip2", "-c", "/bin/sh")
    assert "@plt" not in shown.until(r"^ended")
