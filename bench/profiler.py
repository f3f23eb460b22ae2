# SPDX-License-Identifier: MIT
"""The price of a call pair that the function profiler counts, beside two bare clock reads: hits,
times, squares and self times, in tables of the thread's own, without a ring."""

from measure import (SCRATCH, WAYS, compile_c, graftrace, in_turns, main, ratio, run, say, spread)

ARGUMENTS = ["30", "5", "1"]        # 19 million calls


def ns(output):
    """ns of CPU time a call, from what programs/fib.c prints."""
    return float(output.split()[1])


def plain(program):
    return lambda: ns(run([program, *ARGUMENTS])[0])


def profiled(program, *options):
    table = SCRATCH / "profile.csv"
    return lambda: ns(graftrace("profile", "--format", "csv", "-o", table, *options, "--", program,
                                *ARGUMENTS)[0])


def counting():
    figures = in_turns({
        "plain": plain(compile_c("fib.c", "fib_plain")),
        "floor": plain(compile_c("fib.c", "fib_floor", "-DTWO_CLOCK_READS")),
        "patchable": profiled(compile_c("fib.c", "fib_patchable", *WAYS["patchable"])),
        "unprepared": profiled(compile_c("fib.c", "fib_none", *WAYS["none"])),
    })
    for way in ("patchable", "unprepared"):
        say(f"function profiler, entry + return ÷ two bare `rdtsc`: {way}", "≤ 1.30",
            ratio(figures, way, "floor", less="plain"), "",
            f"ns a call: profiled {spread(figures, way)}, floor {spread(figures, 'floor')}, plain "
            f"{spread(figures, 'plain')}")


if __name__ == "__main__":
    main(counting)
