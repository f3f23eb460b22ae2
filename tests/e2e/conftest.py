# SPDX-License-Identifier: MIT
"""What the end-to-end tests share: running graftrace, and building programs to trace.

A test runs in a directory of its own (`tmp_path`); graftrace and its programs are run there, so
graftrace.data lies there too.
"""

import fcntl
import functools
import hashlib
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["GRAFTRACE_BUILD"]).resolve()
PROGRAMS = ROOT / "tests" / "programs"
# Programs of the tests that compilers have made: they do not depend on who compiled graftrace, and tests/run has one
# place for all builds.
MADE = Path(os.environ.get("GRAFTRACE_PROGRAMS") or BUILD / "programs")
# Seconds, for what happens at once on a machine that is not busy. Whatever starts or ends a process may wait for a minute:
# on some machines a thread of the kernel's (DAMON) holds the lock of libc's mappings while it waits for a processor.
PATIENCE = 120
# Plans are kept beside the build, not with the user's.
os.environ["XDG_CACHE_HOME"] = str(BUILD / "cache")

# The ways in which compilers prepare functions for tracing; "none" is an ordinary build.
WAYS = {
    "patchable": ["-fpatchable-function-entry=5"],
    "pg": ["-pg"],
    "fentry": ["-pg", "-mfentry"],
    "cyg": ["-finstrument-functions"],
    "none": [],
}


HELD = {}  # ports, and the locks of their files


def free_port():
    """A TCP port of 127.0.0.1 that nobody listens at, for a server that is started next.

    It is below those that Linux gives to connections by itself (from 32768 on, as it comes), so
    that none takes it in between, and chosen by chance: several runs of the tests share a machine.
    A lock keeps them from choosing the same one before anybody listens there: until let_port_go, or
    the end of these tests.
    """
    locks = Path(tempfile.gettempdir()) / f"graftrace-test-ports-{os.getuid()}"
    locks.mkdir(mode=0o700, exist_ok=True)
    for _ in range(100):
        port = random.randrange(20000, 32768)
        lock = os.open(locks / str(port), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            os.close(lock)
            continue
        HELD[port] = lock
        return port
    raise OSError("no port is free")


def let_port_go(port):
    """The server has ended: others may choose it."""
    os.close(HELD.pop(port))


def line_with(stream, pattern):
    """Reads lines until one has what the expression says: the match. Before it others may come, as where
    the kernel does not tell of times off the CPU."""
    seen = ""
    while not (found := re.search(pattern, line := stream.readline())):
        seen += line
        assert line, f"nothing like {pattern!r}\n{seen}"
    return found


def wait_until(condition, what="what is waited for", seconds=PATIENCE):
    """What the condition returns, as soon as that is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"it never came: {what}"
        time.sleep(0.01)
    return found


def open_to_everyone(folder):
    """Other users may read what is in it: those above it that are the tests' own are opened, too."""
    for above in (folder, *folder.parents):
        if str(above).startswith("/tmp/"):
            above.chmod(above.stat().st_mode | 0o055)


class Graftrace:
    """The command under test, run in one directory."""

    def __init__(self, directory):
        self.path = BUILD / "cli" / "graftrace"
        self.directory = directory

    def __call__(self, *words, code=0, stdin=None, timeout=PATIENCE, env=None):
        """Runs `graftrace WORDS…`; the exit code must be `code` (None: any). Text in and out."""
        done = subprocess.run(
            [self.path, *map(str, words)], cwd=self.directory, timeout=timeout, text=True,
            errors="surrogateescape", capture_output=True, env={**os.environ, **(env or {})},
            **({"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}))
        if code is not None:
            assert done.returncode == code, (
                f"graftrace {' '.join(map(str, words))} ended with {done.returncode}\n"
                f"{done.stderr[-3000:]}")
        return done

    def start(self, *words, **how):
        """Starts `graftrace WORDS…` and returns the Popen: for what is looked at while it runs."""
        return subprocess.Popen([self.path, *map(str, words)], cwd=self.directory, text=True,
                                **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                                   "stderr": subprocess.PIPE, **how})


@pytest.fixture
def graftrace(tmp_path):
    return Graftrace(tmp_path)


@pytest.fixture
def attached(compile):
    """The program of tests/programs/attached.c, for tests that attach to it (attaching.py)."""
    return compile("attached.c", "-O2", "-pthread", "-Wall", "-Wextra")


@pytest.fixture(scope="module")
def alone_with_tracefs():
    """The machine's tracefs is one: tests that look at its instances run one file after the other."""
    with open(Path(tempfile.gettempdir()) / f"graftrace-test-tracefs-{os.getuid()}", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@functools.cache
def headers():
    """A digest of the headers that programs of the tests may include."""
    key = hashlib.sha256()
    for room in ("include", "core", "arch", "attach", "port", "read", "tests/programs", "tests/e2e"):
        for path in sorted((ROOT / room).rglob("*.h")):
            key.update(path.read_bytes())
    return key.digest()


def run_compiler(command, inputs, output):
    """Runs a compiler once for a command and its files' texts; later runs of the tests find the result."""
    key = hashlib.sha256(repr(command).encode() + headers())
    for path in map(Path, [*inputs, *(word for word in command[1:] if os.path.isfile(word))]):
        key.update(path.read_bytes())
    made = MADE / key.hexdigest()[:20] / output
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        scratch = made.with_name(f"{output}.{os.getpid()}")
        done = subprocess.run([*command, *map(str, inputs), "-o", str(scratch)], text=True,
                              capture_output=True, timeout=120,
                              env={**os.environ, "RUSTC_BOOTSTRAP": "1"})
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[-4000:]}"
        scratch.rename(made)
    return made


@pytest.fixture(scope="session")
def compile(tmp_path_factory):
    """compile(source, *flags, compiler="gcc") -> path of the program, built once a session.

    `source` is a file of tests/programs, a path, or the program's text itself (it has a newline).
    """
    made = {}
    directory = tmp_path_factory.mktemp("programs")
    base = str(tmp_path_factory.getbasetemp())

    def build(source, *flags, compiler="gcc", suffix=".c"):
        key = hashlib.sha256(repr((str(source), flags, compiler)).encode()).hexdigest()[:16]
        if key in made:
            return made[key]
        if "\n" in str(source):
            path = directory / f"{key}{suffix}"
            path.write_text(source)
        else:
            path = Path(source)
            path = path if path.is_absolute() else PROGRAMS / path
        output = directory / f"{path.stem}-{key}"
        command = [compiler, *map(str, flags)]
        if any(word.startswith(("-g", "-L")) or base in word for word in command):
            # The program has this run's directory in it, or a library whose text is not known here.
            done = subprocess.run([*command, str(path), "-o", str(output)],
                                  capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
        else:
            shutil.copy(run_compiler(command, [path], output.name), output)
        made[key] = output
        return output

    return build
