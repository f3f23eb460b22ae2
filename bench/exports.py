# SPDX-License-Identifier: MIT
"""A recording of five million calls in the formats of other tools, beside uftrace's on the same calls."""

import os
import re
import subprocess
import time

from measure import (GRAFTRACE, SCRATCH, WAYS, Failed, compile_c, graftrace, in_turns, main, median, ratio,
                     record, remove, run, say, seconds, spread, uftrace_record)

ARGUMENTS = ["27", "6", "1"]  # 5.1 million calls
ROUNDS = 3
# Those that have a record or a row for each call, and what is asked of them.
TEXT = ["csv", "json", "chrome", "speedscope"]
BINARY = ["perfetto", "ctf", "uftrace", "sqlite"]
MERGED = ["folded", "svg", "dot", "callgrind", "pprof"]


def memory_of(pid):
    """Megabytes that a process has had at most, and those of them that are its own now, in no file."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        found = dict(re.findall(r"(VmHWM|RssAnon):\s+(\d+) kB", status.read()))
    return int(found.get("VmHWM", 0)) / 1024, int(found.get("RssAnon", 0)) / 1024


def peaks_mb(command):
    """Megabytes of memory that a command has at most: in all, and of its own.

    Looked up while it runs: wait4's figure begins with that of the interpreter which has started it.
    """
    whole = own = 0
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        process = subprocess.Popen([str(word) for word in command], cwd=SCRATCH, stdin=subprocess.DEVNULL,
                                   stdout=nowhere, stderr=nowhere)
        while process.poll() is None:
            now = memory_of(process.pid)
            whole, own = max(whole, now[0]), max(own, now[1])
            time.sleep(0.002)
    if process.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))} ended with {process.returncode}")
    return whole, own


def told(peaks):
    """As a row tells memory."""
    return f"{peaks[0]:.1f} MB of memory, {peaks[1]:.1f} of it in no file"


def recordings():
    program = compile_c("fib.c", "fib_patchable", *WAYS["patchable"])
    data, other = SCRATCH / "exports.data", SCRATCH / "exports.uftrace"
    calls = int(record(data, [program, *ARGUMENTS])[0].split()[0])
    same = int(uftrace_record(other, [program, *ARGUMENTS], "patchable").split()[0])
    if calls != same:
        raise Failed(f"{calls} calls, but {same} under uftrace")
    return data, other, calls


def formats():
    data, _, calls = recordings()

    def export(name):
        out = SCRATCH / f"exports.{name}"
        remove(out)
        taken = seconds(lambda: graftrace("export", "--to", name, "-o", out, data))
        remove(out)
        return taken

    for names, goal in ((TEXT, "≥ 1"), (BINARY, "≥ 5"), (MERGED, "")):
        for name in names:
            figures = in_turns({name: lambda name=name: export(name)}, ROUNDS)
            memory = peaks_mb([GRAFTRACE, "export", "--to", name, "-o", SCRATCH / f"exports.{name}", data])
            remove(SCRATCH / f"exports.{name}")
            say(f"`export --to {name}`, million calls/s", goal, calls / 1e6 / median(figures[name]), "",
                f"{ROUNDS} rounds, {calls:,} calls; s: {spread(figures, name)}; {told(memory)}")


def sqlite_alone():
    """How much of the export to SQLite is SQLite: its library has one way in, a statement at a time."""
    data, _, calls = recordings()
    alone = compile_c("sqlite_rows.c", "sqlite_rows", "-Wl,--no-as-needed", "-lsqlite3")
    out = SCRATCH / "exports.sqlite"

    def timed(command):
        remove(out)
        taken = seconds(lambda: run(command))
        remove(out)
        return taken

    figures = in_turns({
        "ours": lambda: timed([GRAFTRACE, "export", "--to", "sqlite", "-q", "-o", out, data]),
        "alone": lambda: timed([alone, out, calls]),
    }, ROUNDS)
    say("`export --to sqlite` ÷ as many rows by SQLite's library alone", "", ratio(figures, "ours", "alone"), "",
        f"{ROUNDS} rounds; s: {spread(figures, 'ours')}, alone {spread(figures, 'alone')}: at most "
        f"{calls / 1e6 / median(figures['alone']):.1f} million rows/s can go through it")


def beside_uftrace():
    data, other, calls = recordings()
    pairs = {
        "export --to chrome": ("dump --chrome", ["export", "--to", "chrome", "-o", "-", data]),
        "export --to folded": ("dump --flame-graph", ["export", "--to", "folded", "-o", "-", data]),
        "export --to dot": ("dump --graphviz", ["export", "--to", "dot", "-o", "-", data]),
        "graph": ("graph", ["graph", "-i", data]),
        "diff": ("report --diff", ["diff", data, data]),
    }
    for ours, (theirs, words) in pairs.items():
        command = [GRAFTRACE, *words]
        peer = ["uftrace", *theirs.split(), *([other] if theirs.endswith("--diff") else []), "-d", other]
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            figures = in_turns({
                "ours": lambda: seconds(lambda: run(command, stdout=nowhere)),
                "uftrace": lambda: seconds(lambda: run(peer, stdout=nowhere)),
            }, ROUNDS)
        say(f"`{ours}` of {calls / 1e6:.1f} million calls ÷ `uftrace {theirs}`", "≤ 0.33",
            ratio(figures, "ours", "uftrace"), "",
            f"{ROUNDS} rounds; s: {spread(figures, 'ours')}, uftrace {spread(figures, 'uftrace')}")
        mine, its = peaks_mb(command), peaks_mb(peer)
        say("the same, memory", "≤ 0.33", mine[0] / its[0], "", f"{told(mine)}; uftrace {told(its)}")


if __name__ == "__main__":
    main(formats, sqlite_alone, beside_uftrace)
