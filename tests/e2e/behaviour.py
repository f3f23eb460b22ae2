# SPDX-License-Identifier: MIT
"""The judge of recorded programs: builds those of tests/programs in the ways that compilers know,
runs them plain and traced, and compares what they printed, how they ended, and each function's
calls and depths by their own count (tests/programs/count.h) with those in the recording."""

import collections
import contextlib
import csv
import ctypes
import io
import os
import re
import subprocess
from pathlib import Path

import recorded
from conftest import BUILD, PATIENCE, PROGRAMS, ROOT, run_compiler

GCC = ["gcc", "-O2"]
CLANG = ["clang", "-O2"]
PATCHABLE = ["-fpatchable-function-entry=5"]

# How a program's own files are compiled: (command, record options). What a tracer has to know
# of each is in the way's name: "unprepared" ones have no room that a compiler left.
WAYS = {
    "patchable": (GCC + PATCHABLE, []),
    "patchable-16": (GCC + ["-fpatchable-function-entry=16,0"], []),
    "patchable-clang": (CLANG + PATCHABLE, []),
    "patchable-O0": (["gcc", "-O0", "-DNO_TAIL"] + PATCHABLE, []),
    "cet": (GCC + PATCHABLE + ["-fcf-protection=full"], []),
    "cet-clang": (CLANG + PATCHABLE + ["-fcf-protection=full"], []),
    "no-pie": (GCC + PATCHABLE + ["-no-pie", "-fno-pie"], []),
    "static": (GCC + PATCHABLE + ["-static"], []),
    "static-pie": (GCC + PATCHABLE + ["-static-pie", "-fPIE"], []),
    "static-gcc": (GCC + PATCHABLE + ["-static-libgcc", "-static-libstdc++"], []),
    "fortify": (GCC + PATCHABLE + ["-D_FORTIFY_SOURCE=2"], []),
    "pg": (GCC + ["-pg"], []),
    "pg-clang": (CLANG + ["-pg"], []),
    "fentry": (GCC + ["-pg", "-mfentry"], []),
    "fentry-clang": (CLANG + ["-pg", "-mfentry"], []),
    "nop-mcount": (GCC + ["-pg", "-mfentry", "-mnop-mcount", "-no-pie", "-fno-pie"], []),
    "instrument": (GCC + ["-finstrument-functions", "-DNO_TAIL"], []),
    "instrument-clang": (CLANG + ["-finstrument-functions", "-DNO_TAIL"], []),
    "lto": (GCC + PATCHABLE + ["-flto"], []),
    "address": (GCC + PATCHABLE + ["-fsanitize=address", "-DNO_TAIL"], []),
    "thread": (GCC + PATCHABLE + ["-fsanitize=thread", "-DNO_TAIL"], []),
    "unprepared": (GCC, []),
    "unprepared-clang": (CLANG, []),
    "unprepared-O0": (["gcc", "-O0", "-DNO_TAIL"], []),
    "unprepared-no-pie": (GCC + ["-no-pie", "-fno-pie"], []),
    "unprepared-static": (GCC + ["-static"], []),
}

# Sanitizers' runtimes know the address space without randomization, or with as little as kernels
# used to have.
SANITIZED = ("address", "thread")
ADDR_NO_RANDOMIZE = 0x0040000

COMMON = [f"-I{ROOT}", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wno-infinite-recursion", "-Wno-unused-parameter",
          "-pthread"]

# What is called before main or after it by the start-up files; _sub_… are the sanitizers'.
START_UP = {"_init", "_fini", "_start", "frame_dummy", "register_tm_clones",
            "deregister_tm_clones", "__do_global_dtors_aux", "_dl_relocate_static_pie"}


def counter():
    """count.o: keeps the counts; never prepared for tracing."""
    return run_compiler(["gcc", "-O2", "-fPIC", "-D_GNU_SOURCE", f"-I{ROOT}", "-c"], [PROGRAMS / "count.c"],
                        "count.o")


def program(way, source, *more, flags=(), libraries=()):
    """Builds tests/programs/SOURCE (and more files, flags, shared libraries) in one way. Returns
    its path."""
    compiler, *options = WAYS[way][0]
    sources = [PROGRAMS / name for name in (source, *more)]
    if source.endswith(".cc"):
        compiler = {"gcc": "g++", "clang": "clang++"}[compiler]
    if "-fpatchable-function-entry=5" in options and any(n.endswith(".S") for n in more):
        options = [*options, "-DPATCHABLE"]
    return run_compiler([compiler, *options, *COMMON, *flags],
                        [*sources, counter(), *libraries], Path(source).stem)


def library(way, source, name, *flags):
    """Builds a shared library of tests/programs in one way."""
    compiler, *options = WAYS[way][0]
    return run_compiler([compiler, *options, *COMMON, "-shared", "-fPIC", *flags],
                        [PROGRAMS / source], name)


def rust_program(way, source):
    """Builds a Rust program of tests/programs: "pg" or "unprepared"."""
    options = {"pg": ["-Zinstrument-mcount"], "unprepared": []}[way]
    return run_compiler(["rustc", "--edition", "2021", "-O", *options, "-C",
                         f"link-arg={counter()}"], [PROGRAMS / source], Path(source).stem)


class Counts:
    """What a program counted: calls and depths for each (process, function)."""

    def __init__(self, path):
        self.calls = collections.Counter()
        self.depths = collections.defaultdict(collections.Counter)
        self.deeper = collections.defaultdict(lambda: [0, 0, 0])
        pid = None
        for line in path.read_text().splitlines() if path.exists() else []:
            kind, *words = line.split()
            if kind == "pid":
                pid = int(words[0])
                continue
            key = (pid, words[0])
            numbers = list(map(int, words[1:]))
            if kind == "count":
                self.calls[key] += numbers[0]
            elif kind == "depth":
                self.depths[key][numbers[0]] += numbers[1]
            else:
                deeper = self.deeper[key]
                deeper[0] += numbers[0]
                deeper[1] += numbers[1]
                deeper[2] = max(deeper[2], numbers[2])
        self.names = {name for _, name in self.calls}

    def by_name(self):
        """Calls of each function in all processes."""
        return total_by_name(self.calls)


def total_by_name(calls):
    total = collections.Counter()
    for (_, name), count in calls.items():
        total[name] += count
    return total


class Run:
    """How a program ended and what it printed."""

    def __init__(self, done, counts):
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr
        self.counts = Counts(counts)


@contextlib.contextmanager
def fixed_addresses():
    """What is started meanwhile has no randomization, unless the system refuses that."""
    personality = ctypes.CDLL(None).personality
    personality.argtypes = [ctypes.c_ulong]
    before = personality(0xffffffff)
    if before >= 0:
        personality(before | ADDR_NO_RANDOMIZE)
    try:
        yield
    finally:
        if before >= 0:
            personality(before)


def run(command, directory, name, timeout=PATIENCE, **environment):
    counts = directory / f"{name}.counts"
    done = subprocess.run(
        list(map(str, command)), cwd=directory, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=timeout, env={**os.environ, "GT_COUNTS": str(counts), **environment})
    return Run(done, counts)


def plain(command, directory, **environment):
    return run(command, directory, "plain", **environment)


def traced(command, directory, *options, **environment):
    """Runs `graftrace record`. What it says itself is in .said, the rest of stderr in .err."""
    result = run([BUILD / "cli" / "graftrace", "record", "-o", "trace.data", *options, "--",
                  *command], directory, "traced", **environment)
    crash = rb"^graftrace: process \d+ died of .*\n(?:  .*\n)*"
    lines = re.sub(crash, b"", result.err, flags=re.M).splitlines(keepends=True)
    # said where the kernel does not tell of context switches, and no matter of the program's
    off_cpu = b"graftrace: times off the CPU are not recorded: "
    result.said = b"".join(line for line in lines if line.startswith(b"graftrace")
                           and not line.startswith(off_cpu))
    result.err = b"".join(line for line in lines if not line.startswith(b"graftrace"))
    return result


def compare(expected, found, what):
    """Equal, or a failure that names the first few that are not."""
    wrong = [f"{key}: {found.get(key, 0)}, should be {expected.get(key, 0)}"
             for key in sorted({*expected, *found}, key=str)
             if expected.get(key, 0) != found.get(key, 0)]
    assert not wrong, f"{what}: " + "; ".join(wrong[:12])


def compare_report(counts, directory, shared=()):
    """`graftrace report --format csv` has the program's own counts."""
    done = subprocess.run([BUILD / "cli" / "graftrace", "report", "--format", "csv", "trace.data"],
                          cwd=directory, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    calls = collections.Counter()
    for row in csv.DictReader(io.StringIO(done.stdout)):
        calls[recorded.short_name(row["function"])] += int(row["calls"])
    compare({name: count for name, count in counts.by_name().items() if name not in shared},
            {name: calls[name] for name in calls if name in counts.names and name not in shared},
            "calls reported")


class Judged:
    """A plain and a traced run of one program, and the recording."""

    def __init__(self, before, after, trace):
        self.before = before
        self.after = after
        self.trace = trace


def judge(command, directory, *options, way=None, depths=True, same_counts=True, only=False,
          same_output=True, errors=True, loose=(), shared=(), interrupted=False, **environment):
    """Runs `command` plain and traced and holds one against the other; returns both.

    way: its record options are used. depths: compare these too. same_counts: two runs of the
    program count the same. only: nothing but what the program counted may be in the recording.
    loose: names whose depth is not compared. shared: names that another program of the recording has, too: neither
    are their calls. interrupted: see recorded.Recorded.
    """
    if way is not None:
        options = (*WAYS[way][1], *options)
    with fixed_addresses() if way in SANITIZED else contextlib.nullcontext():
        before = plain(command, directory, **environment)
        after = traced(command, directory, *options, **environment)
    assert after.code == before.code, (
        f"ended with {after.code}, plain {before.code}\n{after.err[-2000:]}\n{after.said[-2000:]}")
    if same_output:
        assert after.out == before.out
        assert after.err == before.err
    assert after.said.count(b"\n") == 1, after.said
    assert after.counts.calls, "the program counted nothing"
    if same_counts:
        compare(before.counts.by_name(), after.counts.by_name(), "counts of the traced run")
    trace = recorded.Recorded(directory / "trace.data", after.counts.names, interrupted)
    if errors:
        assert not trace.errors, trace.errors[:10]
    assert not any(trace.lost), f"lost: {trace.lost}"
    compare({key: count for key, count in after.counts.calls.items() if key[1] not in shared},
            {key: count for key, count in trace.counted.items() if key[1] not in shared}, "calls recorded")
    if only:
        strange = {name for name in trace.names if name not in after.counts.names
                   and name not in START_UP and not name.startswith(("_sub_I_", "_sub_D_"))}
        assert not strange, f"recorded, but never counted: {sorted(strange)}"
    if depths:
        compare_depths(after.counts, trace, (*loose, *shared))
    compare_report(after.counts, directory, shared)
    return Judged(before, after, trace)


def compare_depths(counts, trace, loose):
    for key, depths in {**{key: {} for key in counts.deeper}, **counts.depths}.items():
        if key[1] in loose:
            continue
        found = trace.depths[key]
        compare(depths, {depth: calls for depth, calls in found.items() if depth < 64},
                f"depths of {key[1]}")
        far = {depth: calls for depth, calls in found.items() if depth >= 64}
        assert counts.deeper[key] == [sum(far.values()),
                                      sum(depth * calls for depth, calls in far.items()),
                                      max(far, default=0)], f"deep calls of {key[1]}"
