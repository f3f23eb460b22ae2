# SPDX-License-Identifier: MIT
"""Two threads at once cost, each call, what one does: nothing is shared on the way."""

from measure import SCRATCH, WAYS, compile_c, in_turns, main, median, record, run, say, spread


def two_threads():
    program = compile_c("fib.c", "fib_patchable", *WAYS["patchable"])
    plain = compile_c("fib.c", "fib_plain")
    data = SCRATCH / "threads.data"

    def traced(threads):
        return lambda: float(
            record(data, [program, "30", "5", threads], "--overwrite")[0].split()[1])

    def untraced(threads):
        return lambda: float(run([plain, "30", "5", threads])[0].split()[1])

    figures = in_turns({"one": traced("1"), "two": traced("2"), "plain one": untraced("1"),
                        "plain two": untraced("2")})
    say("2 threads ÷ 1 thread, per call, in memory", "≤ 1.15",
        median(b / a for a, b in zip(figures["one"], figures["two"])), "",
        f"ns a call: 1 thread {spread(figures, 'one')}, 2 threads {spread(figures, 'two')}; "
        f"plain {spread(figures, 'plain one')} and {spread(figures, 'plain two')}")


if __name__ == "__main__":
    main(two_threads)
