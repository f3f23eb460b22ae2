#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times parse-trace on 10 million lines of function_graph text and runtime-breakdown on a million rows.

    bench/parse_trace.py [BUILD] [--lines N] [--runs N]

The text is made, not recorded, so that it is the same on every machine: four CPUs, two dozen
tasks that change among them, calls up to 20 deep, the names of a kernel, Linux' layout. Prints a
JSON object a line: {"what", "goal", "value", "unit"}; the value is the median of the runs. What
the disk costs is left out: the text is in the page cache, and the CSV goes to a memory file.
"""

import argparse
import array
import fcntl
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = ("vfs path lookup fast inode page cache alloc free lock unlock mutex rcu read write copy user "
         "sched task queue timer irq net tcp skb send recv buffer map pte fault zone list get put").split()


def function_names(rng, count=800):
    return sorted({"_".join(rng.choices(WORDS, k=rng.randint(2, 4))) for _ in range(count)})


def duration(ns):
    """The duration column: mark, then at most seven digits and a point, padded as Linux does."""
    mark = next((m for limit, m in ((10**9, "$"), (10**8, "@"), (10**7, "*"), (10**6, "#"),
                                    (10**5, "!"), (10**4, "+")) if ns > limit), " ")
    number = f"{ns // 1000}.{ns % 1000:03d}"[:8].rstrip(".")
    return f"{mark} {number} us".ljust(14)


class Task:
    """One call stack that grows and shrinks at random."""

    def __init__(self, rng, names, comm, pid):
        self.rng, self.names, self.comm, self.pid = rng, names, comm, pid
        self.stack = []

    def line(self, cpu):
        rng = self.rng
        depth = len(self.stack)
        blanks = "  " * depth
        choice = rng.random()
        if choice < 0.5 or (depth == 20 and choice < 0.75):
            ns = int(rng.lognormvariate(5.5, 1.2)) + 30
            if depth:
                self.stack[-1] += ns
            return f" {cpu}) {duration(ns)}|  {blanks}{rng.choice(self.names)}();\n"
        if choice < 0.75 or depth == 0:
            self.stack.append(int(rng.lognormvariate(5.5, 1.2)) + 50)
            return f" {cpu})               |  {blanks}{rng.choice(self.names)}() {{\n"
        ns = self.stack.pop()
        if self.stack:
            self.stack[-1] += ns
        return f" {cpu}) {duration(ns)}|  {'  ' * (depth - 1)}}}\n"

    def column(self):
        return f"{self.comm[:7]}-{self.pid}".center(14)


def make_chunk(lines, seed=1):
    """About that many lines, all calls closed at the end, so that chunks can follow each other."""
    rng = random.Random(seed)
    names = function_names(rng)
    waiting = [Task(rng, names, f"worker{i}", 1000 + i) for i in range(24)]
    running = [waiting.pop() for _ in range(4)]
    out, count = [], 0
    first = list(running)
    rule = " ------------------------------------------\n"
    while count < lines:
        cpu = rng.randrange(4)
        for _ in range(rng.randint(1, 40)):
            out.append(running[cpu].line(cpu))
            count += 1
        if rng.random() < 0.1:
            new = waiting.pop(rng.randrange(len(waiting)))
            out.append(f"{rule} {cpu}) {running[cpu].column()} => {new.column()}\n{rule}\n")
            waiting.append(running[cpu])
            running[cpu] = new
            count += 4
    for cpu in range(4):
        for new in [None] + [t for t in waiting if t.stack]:
            if new is not None:
                out.append(f"{rule} {cpu}) {running[cpu].column()} => {new.column()}\n{rule}\n")
                running[cpu] = new
            while running[cpu].stack:
                depth = len(running[cpu].stack)
                ns = running[cpu].stack.pop()
                out.append(f" {cpu}) {duration(ns)}|  {'  ' * (depth - 1)}}}\n")
    switches = [f"{rule} {cpu}) {running[cpu].column()} => {first[cpu].column()}\n{rule}\n"
                for cpu in range(4)]
    return "".join(switches + out)


HEADER = ("# tracer: function_graph\n#\n# CPU  DURATION                  FUNCTION CALLS\n"
          "# |     |   |                     |   |   |   |\n")


def make_trace(path, lines):
    chunk = make_chunk(min(lines, 500_000)).encode()
    per_chunk = chunk.count(b"\n")
    count = 4
    with open(path, "wb") as file:
        file.write(HEADER.encode())
        while count < lines:
            file.write(chunk)
            count += per_chunk
    return count


def run(argv):
    """Wall seconds of one run."""
    begin = time.perf_counter()
    subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def peak_memory_kb(argv, path):
    """Peak resident memory when all of the file has gone in at stdin, from the kernel's VmHWM.

    Not from wait4(): that counts what this script held when it started the program.
    """
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    with open(path, "rb") as file:
        shutil.copyfileobj(file, process.stdin, 1 << 20)
    process.stdin.flush()
    left = array.array("i", [1])
    while left[0]:
        fcntl.ioctl(process.stdin, termios.FIONREAD, left)
        time.sleep(0.001)
    time.sleep(0.1)
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    process.stdin.close()
    if process.wait() != 0:
        sys.exit(f"{argv}: status {process.returncode}")
    return int(re.search(r"VmHWM:\s*(\d+)", status)[1])


def result(what, goal, value, unit, detail):
    print(json.dumps({"what": what, "goal": goal, "value": round(value, 3), "unit": unit,
                      "detail": detail}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default=os.environ.get("GRAFTRACE_BUILD", ROOT / "build"))
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int,
                        default=int(os.environ.get("GRAFTRACE_BENCH_ROUNDS", "7")))
    args = parser.parse_args()
    graftrace = str(Path(args.build, "cli", "graftrace"))

    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        trace, small, csv = (os.path.join(directory, n) for n in ("trace", "small", "trace.csv"))
        lines = make_trace(trace, args.lines)
        make_trace(small, args.lines // 10)
        runs = [run([graftrace, "parse-trace", "-q", trace, "-o", csv]) for _ in range(args.runs)]
        result("parse-trace", ">= 10", lines / 1e6 / statistics.median(runs), "million lines/s",
               f"{lines:,} lines of {os.path.getsize(trace) / lines:.0f} bytes to CSV, both in memory")
        reader = [graftrace, "parse-trace", "-q", "-", "-o", "/dev/null"]
        peak = peak_memory_kb(reader, trace)
        result("parse-trace: peak memory of all lines, less that of a tenth", "<= 0.5",
               (peak - peak_memory_kb(reader, small)) / 1024, "MB", "VmHWM after all lines came in at stdin")
        result("parse-trace: peak memory", "", peak / 1024, "MB", "")

        million = os.path.join(directory, "million.csv")
        with open(csv, "rb") as source, open(million, "wb") as target:
            for _ in range(1_000_001):
                target.write(source.readline())
        page = os.path.join(directory, "page.html")
        runs = [run([graftrace, "runtime-breakdown", "--no-open", "-o", page, million])
                for _ in range(args.runs)]
        result("runtime-breakdown of a million rows", "<= 0.3",
               statistics.median(runs), "s", "CSV to page, both in memory")


if __name__ == "__main__":
    main()
