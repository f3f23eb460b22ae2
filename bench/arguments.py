# SPDX-License-Identifier: MIT
"""What an argument of a traced function costs beyond the call: a number, a text, a result; beside
uftrace -A, in memory both."""

from measure import SCRATCH, WAYS, compile_c, in_turns, main, median, record, say, scratch_file, spread, run

# Of a pass: the first four fill the buffer once, whose memory is new then; the median is of those behind them.
COUNT = "1000000"
SORTS = {"number": ("an int argument", "≤ 3", ["-A", "number@arg1/i32"], "number@arg1/i32"),
         "result": ("an int result", "≤ 3", ["-R", "result@retval/i32"], "result@retval/i32"),
         "text": ("a 16-byte text in the program's data", "≤ 25", ["-A", "text@arg1/s"], "text@arg1/s"),
         "stack": ("a 16-byte text on the stack", "≤ 25", ["-A", "text@arg1/s"], "text@arg1/s")}


def ours(program, sort, options):
    data = SCRATCH / "arguments.data"
    return lambda: float(record(data, [program, sort, COUNT], "--overwrite", *options)[0])


def theirs(program, sort, options):
    def measure():
        folder = scratch_file("arguments.uftrace")
        return float(run(["uftrace", "record", "-d", folder, "--no-libcall", *options, program, sort, COUNT])[0])
    return measure


def costs():
    program = compile_c("arguments.c", "arguments", *WAYS["patchable"])
    with_mcount = compile_c("arguments.c", "arguments_pg", "-pg")
    for sort, (what, goal, options, spec) in SORTS.items():
        option = "-R" if sort == "result" else "-A"
        figures = in_turns({
            "without": ours(program, sort, []), "with": ours(program, sort, options),
            "uftrace without": theirs(with_mcount, sort, []),
            "uftrace with": theirs(with_mcount, sort, [option, spec]),
        })
        cost = median(figures["with"]) - median(figures["without"])
        peer = median(figures["uftrace with"]) - median(figures["uftrace without"])
        detail = f"ns a call: {', '.join(f'{name} {spread(figures, name)}' for name in figures)}"
        say(f"{what} of a traced function costs", goal, cost, "ns", detail)
        say(f"the same ÷ uftrace {option}", "≤ 0.3", cost / peer if peer > 0 else 0, "", detail)


if __name__ == "__main__":
    main(costs)
