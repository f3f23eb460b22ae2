# SPDX-License-Identifier: MIT
"""What the unikernel's tests share: building it and booting it in QEMU, each boot with a hard end."""

import collections
import fcntl
import os
import pty
import re
import signal
import socket
import subprocess
import termios
import threading
import time

import pytest

import format_reader
from conftest import BUILD, ROOT, free_port, let_port_go

# A boot and a small program take a second or two; this is for a machine that is busy with more.
LIMIT_S = 60
CONNECTING = threading.Lock()


def compilers_of(path):
    """Who compiled what is in an ELF file, by what each leaves in it: gcc, clang."""
    comment = subprocess.run(["readelf", "-p", ".comment", path], check=True, text=True,
                             capture_output=True).stdout
    return {{"GCC": "gcc", "clang": "clang"}[name] for name in re.findall(r"\b(GCC|clang)\b", comment)}


# The one that is asked for, or who made this build (beside whose code there is the C library's, by gcc).
COMPILER = os.environ.get("CC") or max(compilers_of(BUILD / "cli" / "graftrace"), key=["gcc", "clang"].index)


def environment(**options):
    """The environment of tools/unikernel: this build's directory and compiler, and OPTION=value."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("TARGET", "TRACE", "CPUS", "MEMORY", "BUFFER", "LINGER", "OPTIONS",
                            "DISK", "QEMU", "QEMU_ARGS", "PORT", "TRACE_PORT")}
    return {**kept, "BUILD": str(BUILD), "CC": COMPILER, **{name: str(value) for name, value in options.items()}}


def call(verb, timeout=LIMIT_S, **options):
    """Runs tools/unikernel to its end: (exit code, what it printed, its messages)."""
    with Machine(verb, **options) as machine:
        code = machine.wait(timeout)
        return code, machine.output(), machine.messages()


def image(target, **options):
    """The path of the bootable file. Compiling may take a while."""
    code, output, messages = call("image", timeout=300, TARGET=target, **options)
    assert code == 0, messages
    return (ROOT / output.strip()).resolve()


BUILT = set()


def build_once(target, trace):
    """Compiles before a boot, whose limit is none for a compiler. What cannot be built, the run says."""
    if (target, trace) not in BUILT:
        BUILT.add((target, trace))
        call("image", timeout=300, TARGET=target, TRACE=trace)


class Machine:
    """A run of tools/unikernel, in a process group that does not outlive the `with` block."""

    def __init__(self, verb="run", **options):
        self.chosen = {name: free_port() for name in ("PORT", "TRACE_PORT") if name not in options}
        options.update(self.chosen)
        self.port, self.trace_port = options["PORT"], options["TRACE_PORT"]
        self.options = options
        self.verb = verb
        self.starts = 0
        self.is_seen = False  # something that was waited for

    def __enter__(self):
        if self.verb == "run":
            build_once(self.options.get("TARGET", ""), self.options.get("TRACE", ""))
        self.start()
        return self

    def start(self):
        self.starts += 1
        self.out = os.memfd_create("console")
        self.err = os.memfd_create("messages")
        self.process = subprocess.Popen(
            [ROOT / "tools" / "unikernel", self.verb], cwd=ROOT, stdin=subprocess.DEVNULL,
            stdout=self.out, stderr=self.err, env=environment(**self.options),
            start_new_session=True)

    def starts_anew(self):
        """QEMU 7.2 dies by itself in one boot of some hundreds, before the kernel has said a word."""
        if self.is_seen or self.starts == 3 or "QEMU itself died" not in self.messages():
            return False
        os.close(self.out)
        os.close(self.err)
        self.start()
        return True

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.let_ports_go()
        os.close(self.out)
        os.close(self.err)

    def let_ports_go(self):
        for port in self.chosen.values():
            let_port_go(port)

    @staticmethod
    def _text(descriptor):
        return os.pread(descriptor, 1 << 22, 0).decode("utf-8", "replace").replace("\r", "")

    def output(self):
        return self._text(self.out)

    def messages(self):
        return self._text(self.err)

    def wait(self, timeout=LIMIT_S):
        """The exit code; fails with what the console said if it does not come."""
        try:
            code = self.process.wait(timeout)
            return self.wait(timeout) if self.starts_anew() else code
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"no end within {timeout} s\n{self.output()}{self.messages()}") from None

    def wait_for(self, pattern, timeout=LIMIT_S):
        """The match of a regular expression in the console's text, as soon as it is there."""
        end = time.monotonic() + timeout
        while True:
            over = self.process.poll() is not None
            match = re.search(pattern, self.output())
            if match:
                self.is_seen = True
                return match
            if over and self.starts_anew():
                continue
            assert not over and time.monotonic() < end, (
                f"nothing like {pattern!r}\n{self.output()}{self.messages()}")
            time.sleep(0.02)

    def connect(self, port=None):
        """A connection to the program's port.

        QEMU forwards with a backlog of one: of a burst of connections the host drops most, and
        tries again after 1, 3, 7, 15 seconds. So one is made at a time, with a pause in which
        QEMU takes it.
        """
        with CONNECTING:
            connection = socket.create_connection(("127.0.0.1", port or self.port), timeout=50)
            time.sleep(0.02)
        return connection

    def ask(self, request, port=None):
        """Sends a request that asks to close the connection: the whole answer."""
        answer = b""
        try:
            with self.connect(port) as connection:
                connection.sendall(request.encode())
                while chunk := connection.recv(1 << 16):
                    answer += chunk
        except TimeoutError:
            raise AssertionError(f"no end of the answer to {request!r} after {len(answer)} bytes\n"
                                 f"{self.output()}{self.messages()}") from None
        return answer

    def get(self, path="/", port=None):
        """One HTTP request: (status, body)."""
        answer = self.ask(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", port)
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), body


@pytest.fixture(scope="module")
def machine():
    """One for all tests of a module that has this name."""
    with Machine(TARGET="webserver", TRACE="ftrace", CPUS=2) as machine:
        machine.wait_for("webserver: http")
        yield machine


class Terminal(Machine):
    """A run by a command that has a terminal of its own, with job control: what is typed comes by `type`."""

    def __init__(self, *command, **options):
        super().__init__(**options)
        self.command = command
        self.said = b""

    def __enter__(self):
        build_once(self.options["TARGET"], self.options.get("TRACE", ""))
        self.terminal, inside = pty.openpty()
        os.set_blocking(self.terminal, False)
        self.process = subprocess.Popen(
            self.command, cwd=ROOT, stdin=inside, stdout=inside, stderr=inside,
            env=environment(**self.options), start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(inside)
        return self

    def __exit__(self, *_):
        # Jobs have groups of their own: the session's end is what ends them all.
        for line in subprocess.run(["ps", "-o", "pid=", "-s", str(self.process.pid)], text=True,
                                   capture_output=True).stdout.split():
            try:
                os.kill(int(line), signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        self.let_ports_go()
        os.close(self.terminal)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def output(self):
        try:
            while piece := os.read(self.terminal, 1 << 16):
                self.said += piece
        except OSError:  # nothing more, or nobody is left on the other side
            pass
        return self.said.decode("utf-8", "replace").replace("\r", "")

    def messages(self):
        return ""


# Of a recording: each context's calls, on whichever processors it ran.

CLOCK, CONTEXT, EVENT, GOES_ON = (0x7fffff00 + number for number in (1, 3, 6, 8))
RETURN_EVENT, SWITCH_EVENT = 1, 4
FUNCTION_GRAPH = 2


def runs_in(writer):
    """What a processor wrote, cut where a context begins to run: [context, clock, steps], a step being
    (function, whether it returns, the calls that are left or None)."""
    run, runs, latest, is_first = None, [], {}, False
    for sub in writer.sub_buffers:
        if sub.header.tracer != FUNCTION_GRAPH:
            continue
        context, high, last = sub.header.context, sub.header.clock >> 32, sub.header.clock
        for word, behind in format_reader.records_of(sub.words):
            function, is_return, argument = word >> 33, word >> 32 & 1, word & 0xffffffff
            assert word, "a hole"
            step = None
            if function == CLOCK:
                high, last = argument, argument << 32
            elif function == CONTEXT:
                context, run = argument, None  # the same one may have been elsewhere meanwhile
            elif function == GOES_ON:
                step = None, False, argument
            elif function == EVENT:
                kind = argument >> 16
                if kind == RETURN_EVENT:
                    step = behind[0] >> 33, True, behind[2]
                    argument = behind[0] & 0xffffffff
                elif kind == SWITCH_EVENT:
                    last = behind[0]
            else:
                assert function < 0x7fffff00, hex(function)
                step = function, bool(is_return), None
            if not step:
                continue
            if run is None or run[0] != context:
                run = [context, max(last, latest.get(context, 0)), []]
                runs.append(run)
                is_first = True
            run[2].append(step)
            if step[0] is not None:
                clock = high << 32 | argument
                if clock + (1 << 31) < last:  # its clock word stands behind it
                    clock += 1 << 32
                last = clock
                if is_first:
                    # what an interrupt did may run ahead of its place, but places are in order
                    run[1] = latest[context] = max(clock, latest.get(context, 0))
                    is_first = False
    return runs


def balance_in(data):
    """Follows each context's calls, of a recording from the start without a stop: a return of what was
    not called last fails. Returns what is open at the end, by context."""
    by_context = collections.defaultdict(list)
    for number, writer in enumerate(data.writers):
        for run in runs_in(writer):
            # Each processor has an idle thread of its own. A depth that no record follows stands
            # where the record before it was, whichever that was.
            if any(step[0] for step in run[2]):
                by_context[run[0] or ("idle", number)].append(run)
    still_open = {}
    for context, runs in by_context.items():
        stack = still_open[context] = []
        for _, _, steps in sorted(runs, key=lambda run: run[1]):
            for function, is_return, left in steps:
                place = context, function, left, list(stack)
                if is_return:
                    assert stack and stack.pop() == function, place
                elif function is not None:
                    stack.append(function)
                assert left is None or len(stack) == left, place
    return still_open
