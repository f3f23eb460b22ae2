# SPDX-License-Identifier: MIT
"""The price of a traced call while recording to a file, beside uftrace on the same program."""

import re

from measure import (SCRATCH, WAYS, Failed, compile_c, graftrace, in_turns, main, ratio, record,
                     run, say, seconds, spread, uftrace_record)

ARGUMENTS = ["27", "3", "1"]  # 4.2 million calls
WAYS_OF_BOTH = ["patchable", "pg", "cyg"]


def timed(function):
    """(ns a call as the program says, wall seconds of the whole command)."""
    result = []
    wall = seconds(lambda: result.append(function()))
    return float(result[0].split()[2]), wall


def with_graftrace(program):
    return lambda: timed(
        lambda: record(SCRATCH / "to_file.data", [program, *ARGUMENTS])[0])


def with_uftrace(program, way):
    return lambda: timed(
        lambda: uftrace_record(SCRATCH / "to_file.uftrace", [program, *ARGUMENTS], way))


def to_file():
    plain = compile_c("fib.c", "fib_plain")
    for way in WAYS_OF_BOTH:
        program = compile_c("fib.c", f"fib_{way}", *WAYS[way])
        both = in_turns({
            "plain": lambda: timed(lambda: run([plain, *ARGUMENTS])[0]),
            "graftrace": with_graftrace(program),
            "uftrace": with_uftrace(program, way),
        })
        own = {name: [figure[0] for figure in figures] for name, figures in both.items()}
        wall = {name: [figure[1] for figure in figures] for name, figures in both.items()}
        say(f"the same to a file, nothing lost, ÷ uftrace: {' '.join(WAYS[way])}", "≤ 0.4",
            ratio(own, "graftrace", "uftrace", less="plain"), "",
            f"ns a call: {spread(own, 'graftrace')}, uftrace {spread(own, 'uftrace')}; whole "
            f"command, wall s: {spread(wall, 'graftrace')}, uftrace {spread(wall, 'uftrace')}, "
            f"ratio {ratio(wall, 'graftrace', 'uftrace', less='plain'):.2f}")
    check_calls(ARGUMENTS)


def check_calls(arguments):
    """The last recording has every call that the program made."""
    program = SCRATCH / "fib_patchable"
    out, _ = record(SCRATCH / "to_file.data", [program, *arguments])
    made = int(out.split()[0])
    report, _ = graftrace("report", SCRATCH / "to_file.data", "--format", "csv")
    row = next((line for line in report.splitlines() if re.match(r'"?fib"?,', line)), "")
    if str(made) not in row.split(","):
        raise Failed(f"the program called fib {made} times, the report says: {row or report[:200]}")


if __name__ == "__main__":
    main(to_file)
