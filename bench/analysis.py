# SPDX-License-Identifier: MIT
"""Reading a recording of ten million records: report and show, beside uftrace on the same calls."""

import os
import resource

from measure import (PROGRAMS, ROUNDS, SCRATCH, WAYS, Failed, compile_c, graftrace, in_turns, lua, main, ratio, record,
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


def processor_seconds(*words):
    """Processor time of a command of graftrace, which a busy machine changes less than wall time."""
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        graftrace(*words, stdout=nowhere)
    return used() - before


def percentiles():
    """What it costs to keep how durations are spread: of many calls of one function, and of many functions."""
    program = compile_c("fib.c", "fib_patchable", *WAYS["patchable"])
    few, many = SCRATCH / "percentiles.data", SCRATCH / "percentiles_lua.data"
    record(few, [program, *ARGUMENTS])
    record(many, [lua("lua_patchable", *WAYS["patchable"]), PROGRAMS / "work.lua", "2"])
    for data, of in ((few, "a few functions"), (many, "Lua's functions")):
        figures = in_turns({
            "with": lambda data=data: processor_seconds("report", data),
            "without": lambda data=data: processor_seconds("report", "--fields", "total,self,avg,min,max", data),
        }, 2 * ROUNDS)
        say(f"`report` with percentiles ÷ without, {of}", "≤ 1.2", ratio(figures, "with", "without"), "",
            f"{2 * ROUNDS} rounds, processor time; s: {spread(figures, 'with')}, without {spread(figures, 'without')}")


if __name__ == "__main__":
    main(reading, percentiles)
