# SPDX-License-Identifier: MIT
"""What a traced run costs before and after the program itself: an empty program, traced."""

import re
import sys
from pathlib import Path

from measure import (GRAFTRACE, SCRATCH, WAYS, Failed, compile_c, in_turns, lua, main, median, record, remove, run, say,
                     seconds, spread, uftrace_record)


def empty_program():
    source = SCRATCH / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    program = SCRATCH / "empty"
    run(["gcc", "-O2", *WAYS["patchable"], source, "-o", program])
    return program


def empty_run():
    program = empty_program()
    interpreter = lua("lua_patchable", *WAYS["patchable"])
    data, other = SCRATCH / "start_up.data", SCRATCH / "start_up.uftrace"

    figures = in_turns({
        "plain": lambda: seconds(lambda: run([program])),
        "graftrace": lambda: seconds(lambda: record(data, [program])),
        "uftrace": lambda: seconds(
            lambda: uftrace_record(other, [program], "patchable")),
        "plain Lua": lambda: seconds(lambda: run([interpreter, "-v"])),
        "traced Lua": lambda: seconds(lambda: record(data, [interpreter, "-v"])),
    }, rounds=15)
    less = {name: [1000 * (a - b) for a, b in zip(figures[name], figures[base])]
            for name, base in (("graftrace", "plain"), ("uftrace", "plain"),
                               ("traced Lua", "plain Lua"))}
    if min(less["graftrace"]) <= 0:
        raise Failed("a traced run was quicker than the plain one")
    say("start-up: an empty run traced, less the plain one", "≤ 30 ms",
        median(less["graftrace"]), "ms",
        f"15 rounds; ms: {spread(less, 'graftrace')}, Lua's empty run "
        f"{spread(less, 'traced Lua')}, uftrace {spread(less, 'uftrace')}")


def memory_of_the_host(others=()):
    """The most that graftrace itself has while it records an empty run; others: further builds of it, in turns."""
    program, peak, data = empty_program(), compile_c("peak.c", "peak"), SCRATCH / "memory.data"

    def most(graftrace):
        def one():
            remove(data)
            out, _ = run([peak, graftrace, "record", "-o", data, "--", program])
            return int(re.search(r"^peak_kb=(\d+)$", out, re.M)[1]) / 1024
        return one

    figures = in_turns({str(build): most(build) for build in [GRAFTRACE, *others]}, rounds=15)
    say("start-up: graftrace's own memory, an empty run recorded", "≤ 13", median(figures[str(GRAFTRACE)]), "MB",
        "15 rounds; most at a time, MB: " + ", ".join(
            f"{'' if name == str(GRAFTRACE) else name + ' '}{spread(figures, name)}" for name in figures))


if __name__ == "__main__":
    # bench/start_up.py BUILD/cli/graftrace...: the memory of other builds beside this one's.
    if len(sys.argv) > 1:
        main(lambda: memory_of_the_host([Path(word).resolve() for word in sys.argv[1:]]))
    main(empty_run, memory_of_the_host)
