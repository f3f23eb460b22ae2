# SPDX-License-Identifier: MIT
"""Room for tracing that nobody uses: a real program with nops in place ÷ the ordinary build."""

import resource

from measure import PROGRAMS, SCRATCH, WAYS, in_turns, lua, main, median, record, run, say, spread

ROUNDS_OF_WORK = "150"


def cpu_seconds(function):
    """User time of the children of a call: steadier than the wall clock on a shared machine."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    function()
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def nops_in_place():
    plain = lua("lua_plain")
    prepared = lua("lua_patchable", *WAYS["patchable"])
    work = [PROGRAMS / "work.lua", ROUNDS_OF_WORK]
    data = SCRATCH / "off.data"
    figures = in_turns({
        "plain": lambda: cpu_seconds(lambda: run([plain, *work])),
        "nops": lambda: cpu_seconds(lambda: run([prepared, *work])),
        "nop tracer": lambda: cpu_seconds(
            lambda: record(data, [prepared, *work], "-p", "nop")),
    }, rounds=15)
    say("nops in place, tracing off, ÷ the unprepared build (Lua)", "≤ 1.02",
        median(a / b for a, b in zip(figures["nops"], figures["plain"])), "",
        f"15 rounds; user s: {spread(figures, 'nops')}, plain {spread(figures, 'plain')}")
    say("the same under `graftrace record -p nop`", "≤ 1.02",
        median(a / b for a, b in zip(figures["nop tracer"], figures["plain"])), "",
        f"15 rounds; user s, graftrace's own included: {spread(figures, 'nop tracer')}")


if __name__ == "__main__":
    main(nops_in_place)
