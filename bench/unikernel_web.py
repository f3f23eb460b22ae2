# SPDX-License-Identifier: MIT
"""What the unikernel's boot takes, and what tracing costs its web server.

QEMU emulates the processor, so times of the guest mean little: with `-icount shift=0` its clock
counts instructions instead, and what is compared are those.
"""

import os
import re
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from measure import BUILD, ROOT, SCRATCH, Failed, main, median, say

# Waits take real time: with sleep=off they would be over at once, and so would each time limit.
COUNTED = "-icount shift=0"
BOOTS = 15
ROUNDS = 4
REQUESTS = 200
SETS = 5
SHORT_ROUNDS = 60
SHORT_ROUND = 25


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Machine:
    """A run of the unikernel. QEMU is started directly, so that its start can be timed."""

    def __init__(self, target, trace="", **options):
        self.port, self.trace_port = free_port(), free_port()
        self.environment = {**os.environ, "BUILD": str(BUILD), "TARGET": target, "TRACE": trace,
                            "PORT": str(self.port), "TRACE_PORT": str(self.trace_port),
                            **{name: str(value) for name, value in options.items()}}

    def _arguments(self):
        """What tools/unikernel would start."""
        shows = SCRATCH / "show_arguments"
        # 5: the kernel ended well
        shows.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 5\n")
        shows.chmod(0o755)
        done = subprocess.run([ROOT / "tools" / "unikernel", "run"], cwd=ROOT, text=True,
                              capture_output=True, timeout=300,
                              env={**self.environment, "QEMU": str(shows)})
        if done.returncode:
            raise Failed(done.stderr[-400:])
        return done.stdout.splitlines()

    def __enter__(self):
        arguments = self._arguments()
        self.console = open(SCRATCH / f"console-{self.port}", "w+", encoding="utf-8",
                            errors="replace")
        self.started = time.monotonic()
        self.process = subprocess.Popen(["qemu-system-x86_64", *arguments], cwd=ROOT,
                                        stdin=subprocess.DEVNULL, stdout=self.console,
                                        stderr=self.console, start_new_session=True)
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.console.close()

    def said(self):
        return os.pread(self.console.fileno(), 1 << 24, 0).decode("utf-8", "replace")

    def wait_for(self, pattern, limit_s=60):
        end = time.monotonic() + limit_s
        while not (found := re.findall(pattern, self.said())):
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failed(f"the console never said {pattern}: {self.said()[-300:]}")
            time.sleep(0.01)
        return found

    def http(self, port, path, method="GET", body=b"", limit_s=60):
        with socket.create_connection(("127.0.0.1", port), timeout=limit_s) as connection:
            connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
                               f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                               .encode() + body)
            pieces = []
            while piece := connection.recv(1 << 20):
                pieces.append(piece)
        head, _, content = b"".join(pieces).partition(b"\r\n\r\n")
        if not re.match(rb"HTTP/1.1 2\d\d ", head):
            raise Failed(f"{method} {path}: {head[:100]!r}")
        return content

    def processor_seconds(self):
        """What QEMU has used so far: does not depend on what else the machine does."""
        fields = (Path("/proc") / str(self.process.pid) / "stat").read_text().rpartition(")")[2]
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def set(self, file, value):
        self.http(self.trace_port, f"/ftrace/{file}", "PUT", f"{value}\n".encode())

    def page(self, path):
        return self.http(self.port, path)


def boot():
    took, used = [], []
    for _ in range(9):
        with Machine("webserver") as machine:
            while True:
                try:
                    with socket.create_connection(("127.0.0.1", machine.port), 0.5) as connection:
                        connection.sendall(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
                        if connection.recv(100).startswith(b"HTTP/1.1 200"):
                            break
                except OSError:
                    if time.monotonic() > machine.started + 30:
                        raise Failed("no answer on port 8080") from None
                time.sleep(0.002)
            took.append(time.monotonic() - machine.started)
            used.append(machine.processor_seconds())
    say("unikernel: boot to first answer on port 8080", "≤ 0.5", median(took), "s",
        f"9 boots of 2 CPUs, from QEMU's start: {min(took):.2f} … {max(took):.2f}; "
        f"processor time of it {median(used):.2f} s")


def busy_instructions(machine):
    return int(re.search(rb"busy for (\d+) us", machine.page("/status")).group(1)) * 1000


def instructions_of_round(machine, count=REQUESTS):
    before = busy_instructions(machine)
    for _ in range(count):
        machine.page("/primes/100")
    return (busy_instructions(machine) - before) / count


def fill(machine):
    """Requests until the ring is full."""
    for _ in range(50):
        instructions_of_round(machine)
        counts = machine.http(machine.trace_port, "/ftrace/per_cpu/cpu0/stats")
        if not re.search(rb"dropped events: 0\b", counts):
            return
    raise Failed(f"the ring is not full yet: {counts!r}")


def instructions_of_a_set():
    """By machine: what a tenth of many short rounds stay below. How packets meet, and what the kernel does for itself,
    mostly adds, and a round without is rare. What is compared takes turns, so that it sees the same host."""
    counted = {"CPUS": 1, "QEMU_ARGS": COUNTED}
    with ExitStack() as stack:
        def boot_one(trace, **options):
            machine = stack.enter_context(Machine("webserver", trace, **counted, **options))
            machine.wait_for("webserver: http")
            return machine

        machines = {"plain": boot_one(""), "off": boot_one("ftrace"),
                    "off again": boot_one("ftrace"), "full": boot_one("ftrace", BUFFER="2M")}
        machines["off"].set("current_tracer", "nop")
        fill(machines["full"])
        instructions_of_round(machines["off again"])
        machines["off again"].set("tracing_on", "0")
        time.sleep(2)  # the full ring's entries are taken out
        rounds = {name: [] for name in machines}
        for _ in range(SHORT_ROUNDS):
            for name, machine in machines.items():
                rounds[name].append(instructions_of_round(machine, SHORT_ROUND))
        on = boot_one("ftrace", MEMORY="1G", BUFFER="512M")
        instructions_of_round(on)
        rounds["on"] = [instructions_of_round(on, SHORT_ROUND) for _ in range(SHORT_ROUNDS)]
    return {name: sorted(figures)[SHORT_ROUNDS // 10] for name, figures in rounds.items()}


def requests():
    """The median of some sets: how packets meet differs from boot to boot by a hundredth, all of its life."""
    sets = [instructions_of_a_set() for _ in range(SETS)]
    low = {name: median([figures[name] for figures in sets]) for name in sets[0]}
    off = low["off"]
    detail = "; ".join(f"{name} {value:,.0f}" for name, value in low.items())
    say("unikernel: instructions a request, tracing off ÷ not compiled in", "≤ 1.06",
        off / low["plain"], "",
        f"{SETS} boots of {SHORT_ROUNDS} rounds of {SHORT_ROUND} requests in turns, what a tenth stay below; "
        f"a request: {detail}")
    say("unikernel: … ring full ÷ off", "≤ 1.05", low["full"] / off, "", "")
    say("unikernel: … switched off again (tracing_on) ÷ off", "≤ 1.05", low["off again"] / off,
        "", "")
    say("unikernel: … on ÷ off", "", low["on"] / off, "",
        f"{calls_of_a_request():.0f} traced calls a request: all functions that the sources define")


def calls_of_a_request():
    """Traced calls, all threads and interrupts of a request's time included."""
    with Machine("webserver", "ftrace", CPUS=1, MEMORY="1G", BUFFER="256M") as machine:
        machine.wait_for("webserver: http")
        for _ in range(10):
            machine.page("/primes/100")
        machine.set("tracing_on", "0")
        machine.set("trace", "")
        machine.set("tracing_on", "1")
        for _ in range(SHORT_ROUND):
            machine.page("/primes/100")
        machine.set("tracing_on", "0")
        text = machine.http(machine.trace_port, "/ftrace/trace")
    return len(re.findall(rb"\(\)(?:;| \{)\r?\n", text)) / SHORT_ROUND


def pace(machine):
    begin = time.monotonic()
    for _ in range(REQUESTS):
        machine.page("/primes/100")
    return REQUESTS / (time.monotonic() - begin)


@contextmanager
def apart(machine):
    """The processors of the machine on one CPU; on another the client and QEMU's main thread, which is the network.

    Left to the host's scheduler, these three take turns on two CPUs in ways that last for seconds and differ from
    boot to boot, and can cost a request as much as tracing does.
    """
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Failed("the machine and its client on a CPU each: there is only one CPU")
    for thread in map(int, os.listdir(f"/proc/{machine.process.pid}/task")):
        os.sched_setaffinity(thread, {cpus[0] if thread == machine.process.pid else cpus[1]})
    os.sched_setaffinity(0, {cpus[0]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, set(cpus))


def ratios_of_a_boot(placed):
    """Requests/s on ÷ off, round by round; what QEMU has to translate anew after a change is not in them."""
    ratios, on, off = [], [], []
    with Machine("webserver", "ftrace", MEMORY="2G", BUFFER="1G") as machine:
        machine.wait_for("webserver: http")
        with placed(machine):
            for _ in range(ROUNDS):
                for tracer, into in (("nop", off), ("function_graph", on)):
                    machine.set("current_tracer", tracer)
                    pace(machine)
                    into.append(pace(machine))
                ratios.append(on[-1] / off[-1])
    return ratios, on, off


def requests_a_second():
    # Where QEMU's memory comes to lie moves what a look-up of code costs: boots differ more than rounds.
    calls = calls_of_a_request()
    ways = {"unikernel: requests/s, on ÷ off": nullcontext,
            "unikernel: … client and network on one CPU, the machine's processors on another": apart}
    boots = {what: [] for what in ways}
    for _ in range(BOOTS):
        for what, placed in ways.items():
            boots[what].append(ratios_of_a_boot(placed))
    for what in ways:
        ratios, on, off = map(list, zip(*boots[what]))
        each = [median(boot) for boot in ratios]
        say(what, "", median(each), "",
            f"{calls:.0f} traced calls a request; {BOOTS} boots of {ROUNDS} rounds of {REQUESTS} requests, one after the other: on {median(sum(on, [])):.0f}/s, "
            f"off {median(sum(off, [])):.0f}/s; boots {min(each):.2f} … {max(each):.2f}")


def ring():
    with Machine("calls", "ftrace", CPUS=1, BUFFER="4M", LINGER=120) as machine:
        machine.wait_for("calls: .*at last")
        text = machine.http(machine.trace_port, "/ftrace/trace", limit_s=120)
    calls = len(re.findall(rb"\(\)(?:;| \{)\r?\n", text))
    say("unikernel: bytes of ring a call", "≤ 17", 4 * 1048576 / calls, "",
        f"{calls:,} calls in a full ring of 4 MiB, headers and switches included")


if __name__ == "__main__":
    main(boot, requests, requests_a_second, ring)
