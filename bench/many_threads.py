# SPDX-License-Identifier: MIT
"""Thousands of threads: what they lose, what they cost, and what the host keeps of those that have ended."""

import re
import subprocess
import time

from measure import (GRAFTRACE, SCRATCH, WAYS, Failed, compile_c, graftrace, in_turns, main, median, record, remove, run,
                     say, spread)

LAST_LINE = re.compile(r"graftrace: ([\d,]+) calls?, .* s, ([\d,]+) lost")


def program():
    return compile_c("many_threads.c", "many_threads", *WAYS["patchable"])


def figure(text, name):
    return float(re.search(rf"^{name}=([\d.]+)$", text, re.M)[1])


def recorded(data, *words, options=()):
    """(what the program said, calls recorded, calls lost)"""
    remove(data)
    out, err = graftrace("record", "-o", data, *(word for name in ("now_us", "print_size", "count") for word in ("-n", name)),
                         *options, "--", *words, timeout=600)
    found = LAST_LINE.search(err)
    if not found:
        raise Failed(f"graftrace record ended without its line: {err[-300:]}")
    calls, lost = (int(text.replace(",", "")) for text in found.groups())
    if calls + lost != figure(out, "made"):
        raise Failed(f"{calls} recorded + {lost} lost are not {figure(out, 'made'):.0f} made")
    return out, calls, lost


def ten_thousand_threads():
    """The same buffer for all: 64 MB."""
    data = SCRATCH / "many_threads.data"
    out, calls, lost = recorded(data, program(), "idle", 10000, 10)
    say("10,000 threads at a time, 10 calls each: calls lost in 64 MB", "≤ 0", lost, "", f"{calls:,} recorded")
    plain = figure(run([program(), "idle", 10000, 10], timeout=600)[0], "vmsize")
    say("… addresses (VmSize) a thread", "≤ 2", (figure(out, "vmsize") - plain) / 10000 / 2**20, "MB",
        f"{figure(out, 'vmsize') / 2**30:.2f} GiB in all, untraced {plain / 2**30:.2f} GiB; the buffer's addresses with them")
    _, calls, lost = recorded(data, program(), "short", 60000, 11, options=("--overwrite",))
    say("--overwrite, 60,000 threads of 11 calls, four at a time: calls kept in 64 MB", "", calls, "",
        f"of 720,001; {lost:,} of the oldest were not")


def a_threads_life():
    data = SCRATCH / "short_threads.data"
    figures = in_turns({
        "plain": lambda: figure(run([program(), "short", 8000, 11])[0], "us"),
        "recorded": lambda: figure(record(data, [program(), "short", 8000, 11])[0], "us"),
        "--overwrite": lambda: figure(record(data, [program(), "short", 8000, 11], "--overwrite")[0], "us"),
        "profile": lambda: figure(graftrace("profile", "-o", SCRATCH / "profile.txt", "--", program(), "short", 8000, 11)[0], "us"),
    })
    say("a thread's start, 11 calls and end, recorded ÷ untraced", "≤ 2",
        median(a / b for a, b in zip(figures["recorded"], figures["plain"])), "",
        "µs: " + ", ".join(f"{name} {spread(figures, name)}" for name in figures))


def memory_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        text = status.read()
    return int(re.search(r"^RssAnon:\s+(\d+)", text, re.M)[1]) / 1024


def memory_of_the_host():
    for where, options in (("a ring", ["--overwrite"]), ("a file", [])):
        memory_over_a_million_threads(where, options)


def memory_over_a_million_threads(where, options):
    """A million threads, four at a time: what the host keeps of each would add up."""
    count = 1000000
    data = SCRATCH / "million.data"
    remove(data)
    looks = []
    with subprocess.Popen([GRAFTRACE, "record", *options, "-o", data, "--", program(), "short", str(count), "1"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        begin = time.monotonic()
        while process.poll() is None:
            time.sleep(1)
            try:
                looks.append(memory_of(process.pid))
            except (FileNotFoundError, ProcessLookupError, TypeError):
                break
        _, err = process.communicate(timeout=600)
        took = time.monotonic() - begin
    remove(data)
    if process.returncode != 0 or len(looks) < 8:
        raise Failed(f"a million threads: {process.returncode}, {len(looks)} looks: {err[-300:]}")
    quarters = [max(looks[len(looks) * i // 4:len(looks) * (i + 1) // 4]) for i in range(4)]
    say(f"host's memory over a million short threads, into {where}: the last half's most less the first's", "≤ 8",
        max(quarters[2:]) - max(quarters[:2]), "MB",
        f"most by quarters {', '.join(f'{most:.1f}' for most in quarters)} MB (in a ring the newest million switches are 16 of them), "
        f"{took:.0f} s; {err.strip().splitlines()[0]}")


def switches():
    data = SCRATCH / "switches.data"

    def traced(threads):
        def one():
            out, _ = record(data, [program(), "switch", threads, 10], "--overwrite", "-b", "16M")
            return figure(out, "switches") / figure(out, "cpu_us")
        return one

    def plain():
        out, _ = run([program(), "switch", 1, 10])
        return figure(out, "switches") / figure(out, "cpu_us")

    figures = in_turns({"1": traced(1), "2": traced(2), "16": traced(16), "plain": plain})
    say("coroutine switches (swapcontext) a CPU second, 16 threads ÷ 1 thread", "≥ 0.8",
        median(a / b for a, b in zip(figures["16"], figures["1"])), "",
        "million: " + ", ".join(f"{name} {spread(figures, name)}" for name in figures))


if __name__ == "__main__":
    main(ten_thousand_threads, a_threads_life, memory_of_the_host, switches)
