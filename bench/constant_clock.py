# SPDX-License-Identifier: MIT
"""What hides behind the two clock reads: an agent whose clock stands still, beside the plain program.

On a virtual machine a clock read takes 8 ns or more, and most of the recording path runs in its
shadow. This build of the agent puts a constant where the clock is read (arch/x86_64/clock.h).
"""

from cold import FUNCTIONS, build
from measure import (ROOT, SCRATCH, WAYS, compile_c, in_turns, main, median, record, run, say,
                     spread)

ARGUMENTS = ["30", "5", "1"]


def constant_clock():
    directory = SCRATCH / "constant-clock"
    if not (directory / "build.ninja").exists():
        run(["meson", "setup", directory, ROOT, "-Dbench_constant_clock=true"], timeout=120)
    run(["ninja", "-C", directory, "cli/graftrace"], timeout=300)
    command = directory / "cli" / "graftrace"
    data = SCRATCH / "constant_clock.data"

    def traced(program, *arguments):
        return lambda: float(record(data, [program, *arguments], "--overwrite",
                                    command=command)[0].split()[1])

    def plain(program, *arguments):
        return lambda: float(run([program, *arguments])[0].split()[1])

    figures = in_turns({
        "plain": plain(compile_c("fib.c", "fib_plain"), *ARGUMENTS),
        "traced": traced(compile_c("fib.c", "fib_patchable", *WAYS["patchable"]), *ARGUMENTS),
        "cold plain": plain(build("cold_plain", False)),
        "cold traced": traced(build("cold_patchable", False, *WAYS["patchable"])),
    })
    for what, prefix in (("one function", ""),
                         (f"{FUNCTIONS:,} functions in random order", "cold ")):
        say(f"with the clock replaced by a constant, {what}: a traced call costs", "",
            median(a - b for a, b in zip(figures[prefix + "traced"], figures[prefix + "plain"])),
            "ns", f"ns a call: traced {spread(figures, prefix + 'traced')}, plain "
            f"{spread(figures, prefix + 'plain')}")


if __name__ == "__main__":
    main(constant_clock)
