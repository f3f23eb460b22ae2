# SPDX-License-Identifier: MIT
"""What a traced run costs before and after the program itself: an empty program, traced."""

from measure import (SCRATCH, WAYS, Failed, in_turns, lua, main, median, record, run, say, seconds,
                     spread, uftrace_record)


def empty_run():
    source = SCRATCH / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    program = SCRATCH / "empty"
    run(["gcc", "-O2", *WAYS["patchable"], source, "-o", program])
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


if __name__ == "__main__":
    main(empty_run)
