# SPDX-License-Identifier: MIT
"""Reading a recording of ten million records: report and show, beside uftrace on the same calls."""

import os

from measure import (SCRATCH, WAYS, Failed, compile_c, graftrace, in_turns, main, ratio, record,
                     run, say, seconds, spread, uftrace_record)

ARGUMENTS = ["27", "6", "1"]  # 5.1 million calls: 10.2 million records


def reading():
    program = compile_c("fib.c", "fib_patchable", *WAYS["patchable"])
    data, other = SCRATCH / "analysis.data", SCRATCH / "analysis.uftrace"
    calls = int(record(data, [program, *ARGUMENTS])[0].split()[0])
    same = int(uftrace_record(other, [program, *ARGUMENTS], "patchable").split()[0])
    if calls != same:
        raise Failed(f"{calls} calls, but {same} under uftrace")
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        figures = in_turns({
            "report": lambda: seconds(lambda: graftrace("report", data, stdout=nowhere)),
            "uftrace report": lambda: seconds(
                lambda: run(["uftrace", "report", "-d", other], stdout=nowhere)),
            "show": lambda: seconds(lambda: graftrace("show", data, stdout=nowhere)),
            "uftrace replay": lambda: seconds(
                lambda: run(["uftrace", "replay", "-d", other], stdout=nowhere)),
        })
    for ours, theirs, goal in (("report", "uftrace report", "≤ 0.25"),
                               ("show", "uftrace replay", "≤ 0.4")):
        say(f"`{ours}` of {2 * calls / 1e6:.0f} million records ÷ `{theirs}`", goal,
            ratio(figures, ours, theirs), "",
            f"s: {spread(figures, ours)}, {theirs} {spread(figures, theirs)}")


if __name__ == "__main__":
    main(reading)
