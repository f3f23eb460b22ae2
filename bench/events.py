# SPDX-License-Identifier: MIT
"""What an event costs: a static one, off and on, beside a bare clock read and LTTng-UST's tracepoint; a histogram of
it, and one of how long a function's calls take, counted in the program; a dynamic probe beside the kernel's uprobe.
All in memory."""

import contextlib
import csv
import re
import subprocess
import time

from call_cost import lttng_session
from measure import GRAFTRACE, ROOT, SCRATCH, WAYS, Failed, compile_c, graftrace, in_turns, main, median, ratio, \
    record, run, say, scratch_file, spread
from probes import tracefs, write

COUNT = "200000"
FEWER = "5000"  # of the kernel's uprobes, a microsecond each


def program(name, *flags):
    return compile_c("events.c", f"events_{name}", f"-I{ROOT / 'include'}", *flags)


def plain(command, count=COUNT, **how):
    return lambda: float(run([command, count], **how)[0])


def ours(command, *options, count=COUNT):
    data = SCRATCH / "events.data"
    return lambda: float(record(data, [command, count], "--overwrite", *options)[0])


def details(figures):
    return "ns a round: " + ", ".join(f"{name} {spread(figures, name)}" for name in figures)


def static_events():
    event, lttng_output = program("event", "-DEVENT"), scratch_file("lttng-events")
    lttng = compile_c("events.c", "events_lttng", "-DLTTNG", "-Wl,--no-as-needed", "-llttng-ust",
                      "-ldl")
    with lttng_session(lttng_output, "bench:*") as environment:
        figures = in_turns({
            "none": plain(program("none")), "off": plain(event), "clock": plain(program("clock", "-DCLOCK")),
            "on": ours(event, "-e", "bench:three"), "LTTng": plain(lttng, env=environment)})
    if not any(lttng_output.rglob("c_*")):
        raise Failed("LTTng wrote no trace")
    off = {name: figures[name] for name in ("off", "none")}
    say("a static event that is off ÷ no event", "≤ 1.02", ratio(figures, "off", "none"), "", details(off))
    say("a static event with three integers, in memory, ÷ one bare `rdtsc`", "≤ 1.3",
        ratio(figures, "on", "clock", less="none"), "", details(figures))
    say("the same ÷ LTTng-UST's tracepoint", "≤ 0.3", ratio(figures, "on", "LTTng", less="none"), "",
        "LTTng's goes to disk as it comes; " + details(figures))


def counted(command, trigger):
    """Counted only: nothing of it goes through the ring."""
    directory = SCRATCH / "events_mount"
    directory.mkdir(exist_ok=True)

    def measure():
        process = subprocess.Popen([GRAFTRACE, "mount", "-p", "nop", directory, "--", command, COUNT, "wait"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            process.stdout.readline()
            files = directory / "events/bench/three"
            end = time.monotonic() + 20
            while not files.exists():
                if time.monotonic() > end:
                    raise Failed("the mount is not there")
                time.sleep(0.05)
            (files / "trigger").write_text(trigger)
            process.stdin.write("\n")
            process.stdin.flush()
            took = float(process.stdout.readline())
            if process.wait(20) != 0:
                raise Failed("the mounted program failed")
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(20)
            subprocess.run(["umount", "-l", directory], stderr=subprocess.DEVNULL, check=False)
        return took
    return measure


def histograms():
    event = program("event", "-DEVENT")
    figures = in_turns({
        "none": plain(program("none")), "clocks": plain(program("clocks", "-DTWO_CLOCK_READS")),
        "hist": counted(event, "hist:keys=first:vals=second"),
        "times": counted(event, "hist:keys=second.log2")})
    for name, what in (("hist", "a key and a sum"), ("times", "a key by its power of two")):
        say(f"`hist` of an event, {what}, counted in the program, ÷ two bare `rdtsc`", "",
            ratio(figures, name, "clocks", less="none"), "", details(figures))


FIB = ["30", "5", "1"]  # as bench/profiler.py


def timed(program):
    """ns of CPU time a call of fib, whose calls are all in its histogram."""
    table = SCRATCH / "durations.csv"

    def measure():
        calls, ns, _ = graftrace("profile", "--hist", "fib", "--format", "csv", "-o", table, "--", program, *FIB)[0].split()
        with table.open() as rows:
            counted = sum(int(row["calls"]) for row in csv.DictReader(rows))
        if counted != int(calls):
            raise Failed(f"{counted} of {calls} calls are in the histogram")
        return float(ns)
    return measure


def durations():
    def untraced(program):
        return lambda: float(run([program, *FIB])[0].split()[1])

    figures = in_turns({
        "plain": untraced(compile_c("fib.c", "fib_plain")),
        "floor": untraced(compile_c("fib.c", "fib_floor", "-DTWO_CLOCK_READS")),
        **{way: timed(compile_c("fib.c", f"fib_{way}", *WAYS[way])) for way in ("patchable", "none")}})
    for way, built in (("patchable", "built with nops"), ("none", "built as ever")):
        say(f"`hist` of a function's latency, counted in the program, a call ÷ two bare `rdtsc`: {built}", "≤ 1.5",
            ratio(figures, way, "floor", less="plain"), "", details(figures))


@contextlib.contextmanager
def uprobe(target):
    """The kernel's probe with two arguments, recorded into its ring."""
    offset = re.search(r"^([0-9a-f]+) T probed$", run(["nm", target])[0], re.M)[1]
    with tracefs() as place:
        write(place / "uprobe_events", f"p:graftrace_bench/probed {target}:0x{offset} a=%di:s32 b=%si:s32\n")
        try:
            (place / "events/graftrace_bench/enable").write_text("1")
            try:
                yield
            finally:
                (place / "events/graftrace_bench/enable").write_text("0")
        finally:
            write(place / "uprobe_events", "-:graftrace_bench/probed\n")


def theirs(target):
    def measure():
        with uprobe(target):
            return float(run([target, FEWER])[0])
    return measure


def dynamic_probes():
    call = program("call", "-DCALL")
    figures = in_turns({
        "none": plain(call),
        "probe": ours(call, "-p", "nop", "--probe", f"p:bench/probed {call}:probed a=%di:s32 b=%si:s32"),
        "uprobe": theirs(call)})
    say("a dynamic probe with two arguments ÷ the kernel's uprobe", "≤ 0.03",
        ratio(figures, "probe", "uprobe", less="none"), "", details(figures))
    say("… and costs", "", median(figures["probe"]) - median(figures["none"]), "ns", details(figures))


if __name__ == "__main__":
    main(static_events, histograms, durations, dynamic_probes)
