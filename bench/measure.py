# SPDX-License-Identifier: MIT
"""What the pieces of the benchmark share: building, running in turns, and saying a result.

A figure here is a ratio of two things measured in one run, in turns (A B A B …), because the
machine's speed changes from minute to minute and takes both along. The result is the median of
the rounds' ratios.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("GRAFTRACE_BUILD", ROOT / "build")).resolve()
GRAFTRACE = BUILD / "cli" / "graftrace"
SCRATCH = BUILD / "bench"
PROGRAMS = ROOT / "bench" / "programs"
ROUNDS = int(os.environ.get("GRAFTRACE_BENCH_ROUNDS", "7"))

# The ways in which a compiler can prepare functions; "none" is an ordinary build.
WAYS = {
    "patchable": ["-fpatchable-function-entry=5"],
    "pg": ["-pg"],
    "fentry": ["-pg", "-mfentry"],
    "cyg": ["-finstrument-functions"],
    "none": [],
}


class Failed(Exception):
    """A measurement could not be made; the message says what was run and what it said."""


def say(what, goal, value, unit, detail):
    """One line of the table. `goal` is like '≤ 1.10', or '' where a figure is only stated."""
    print(json.dumps({"what": what, "goal": goal, "value": value, "unit": unit,
                      "detail": detail}, ensure_ascii=False), flush=True)


def run(command, timeout=120, env=None, cwd=None, stdout=subprocess.PIPE, stdin=None):
    """Runs a command that must succeed; returns what it wrote to (stdout, stderr)."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, timeout=timeout, env={**os.environ, **(env or {})},
                              cwd=cwd or SCRATCH, stdout=stdout, stderr=subprocess.PIPE,
                              stdin=stdin or subprocess.DEVNULL, text=True, errors="replace")
    except FileNotFoundError as error:
        raise Failed(f"{command[0]} is not there (make setup installs the peers)") from error
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{' '.join(command)}: no end after {timeout} s") from error
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)} ended with {done.returncode}: "
                     f"{done.stderr.strip()[-400:]}")
    return done.stdout or "", done.stderr


def graftrace(*words, command=GRAFTRACE, **options):
    """Runs graftrace itself, or another build of it."""
    if not command.exists():
        raise Failed(f"{command} is not built")
    return run([command, *words], **options)


def record(data, program, *options, **how):
    """Records a program into the file `data`; returns (its stdout, graftrace's last line).

    A run that lost records is no run of the same thing: then this fails, unless the caller
    asked for the flight recorder.
    """
    remove(data)
    out, err = graftrace("record", "--no-libcall", "-o", data, *options, "--", *program, **how)
    lines = [line for line in err.splitlines() if line.strip()]
    if not lines:
        raise Failed("graftrace record ended without its line")
    lost = re.search(r"([\d,]+) lost|lost ([\d,]+)", lines[-1])
    if lost and "--overwrite" not in options:
        count = int((lost.group(1) or lost.group(2)).replace(",", ""))
        if count:
            raise Failed(f"records were lost: {lines[-1]}")
    return out, lines[-1]


def uftrace_record(data, program, way, *options):
    """Records a program with uftrace, functions only; returns the program's stdout."""
    remove(data)
    # Prepared entries are patched in only when asked for; everything else is there by itself.
    patch = ["-P", "."] if way == "patchable" else []
    out, err = run(["uftrace", "record", "--no-libcall", "--no-event", *patch, *options, "-d",
                    data, *program])
    if re.search(r"lost", err, re.I):
        raise Failed(f"uftrace lost records: {err.strip()[-200:]}")
    return out


def compile_c(source, output, *flags, compiler="gcc"):
    """Compiles one program of bench/programs; keeps it if it is newer than its source."""
    source, output = PROGRAMS / source, SCRATCH / output
    run([compiler, "-O2", "-fno-optimize-sibling-calls", "-pthread", f"-I{ROOT}", *flags, source,
         "-o", output], timeout=300)
    return output


def lua(name, *flags, compiler="gcc"):
    """Builds Lua from its Debian source package with these flags; returns the interpreter."""
    output = SCRATCH / name
    if not output.exists():
        run([ROOT / "tools" / "build_lua", SCRATCH, output, *flags], timeout=300,
            env={"CC": compiler})
    return output


def remove(path):
    """Removes a file or directory that may not be there."""
    path = Path(path)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def seconds(function):
    """Wall time of a call."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def in_turns(variants, rounds=ROUNDS):
    """Calls each of {name: function} once a round, in turns; returns {name: [figures]}.

    The order turns round by round, so that none always follows the same one.
    """
    names = list(variants)
    figures = {name: [] for name in names}
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            figures[name].append(variants[name]())
    return figures


def median(values):
    return statistics.median(values)


def ratio(figures, above, below, less=None):
    """Median of the rounds' above ÷ below, each less the figure `less` of its round if given."""
    taken_off = figures[less] if less else [0] * len(figures[above])
    return median((a - c) / (b - c)
                  for a, b, c in zip(figures[above], figures[below], taken_off))


def spread(figures, name):
    """'median (lowest … highest)' of a variant, for the details."""
    values = figures[name]
    return f"{median(values):.3g} ({min(values):.3g} … {max(values):.3g})"


def main(*parts):
    """Runs the parts of a piece; each that fails is said so, and the exit code is 1."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    failed = 0
    for part in parts:
        try:
            part()
        except Failed as error:
            failed += 1
            say(f"{Path(sys.argv[0]).stem}: {part.__name__}", "", None, "", f"FAILED: {error}")
    sys.exit(1 if failed else 0)


def scratch_file(name):
    """A path in the benchmark's directory that does not exist yet."""
    path = SCRATCH / name
    remove(path)
    return path


__all__ = ["BUILD", "Failed", "GRAFTRACE", "PROGRAMS", "ROOT", "ROUNDS", "SCRATCH", "WAYS",
           "compile_c", "graftrace", "in_turns", "lua", "main", "median", "ratio", "record",
           "remove", "run", "say", "scratch_file", "seconds", "spread", "uftrace_record"]
