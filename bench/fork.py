# SPDX-License-Identifier: MIT
"""fork() in a program with 1,000 threads, each in nested traced calls: their mirrors are memory
that the child gets too."""

from measure import SCRATCH, WAYS, compile_c, in_turns, main, median, record, run, say, spread


def fork_with_threads():
    program = compile_c("fork_threads.c", "fork_threads", *WAYS["patchable"])
    data = SCRATCH / "fork.data"
    figures = in_turns({
        "plain": lambda: float(run([program])[0].split()[1]),
        "traced": lambda: float(record(data, [program])[0].split()[1]),
        "children left clean": lambda: float(record(data, [program], "--no-fork")[0].split()[1]),
    })
    say("fork with 1,000 threads ÷ the same untraced", "≤ 2",
        median(a / b for a, b in zip(figures["traced"], figures["plain"])), "",
        "µs a fork: " + ", ".join(f"{name} {spread(figures, name)}" for name in figures))


if __name__ == "__main__":
    main(fork_with_threads)
