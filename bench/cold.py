# SPDX-License-Identifier: MIT
"""5,000 different functions in random order: what the caches make of code that is everywhere."""

from measure import (SCRATCH, WAYS, in_turns, main, median, record, run, say, spread)

FUNCTIONS = 5000


def source(clock_reads):
    """A program of many small functions that are called through a table in random order."""
    read = '__asm__ volatile("rdtsc" ::: "rax", "rdx");' if clock_reads else ""
    functions = "\n".join(
        f"__attribute__((noinline)) unsigned f{i}(unsigned x) {{ {read} x = x * {2 * i + 1}u + "
        f"(x >> {i % 13 + 1}); {read} return x; }}" for i in range(FUNCTIONS))
    table = ", ".join(f"f{i}" for i in range(FUNCTIONS))
    return f"""#include <stdio.h>
#include <time.h>
{functions}
static unsigned (*const table[])(unsigned) = {{ {table} }};
static unsigned order[1 << 16];
static double now(void)
{{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}}
int main(void)
{{
	unsigned state = 1, x = 1;
	double begin = 0;
	const int laps = 60;
	for (int i = 0; i < 1 << 16; i++) {{
		state = state * 1664525u + 1013904223u;
		order[i] = (state >> 8) % {FUNCTIONS}u;
	}}
	for (int lap = -4; lap < laps; lap++) {{
		if (lap == 0)
			begin = now();
		for (int i = 0; i < 1 << 16; i++)
			x = table[order[i]](x);
	}}
	printf("%u %.4f\\n", x, (now() - begin) / laps / (1 << 16));
	return 0;
}}
"""


def build(name, clock_reads, *flags):
    path = SCRATCH / f"{name}.c"
    path.write_text(source(clock_reads))
    run(["gcc", "-O2", *flags, path, "-o", SCRATCH / name], timeout=300)
    return SCRATCH / name


def many_functions():
    plain = build("cold_plain", False)
    floor = build("cold_floor", True)
    traced = build("cold_patchable", False, *WAYS["patchable"])
    data = SCRATCH / "cold.data"
    figures = in_turns({
        "plain": lambda: float(run([plain])[0].split()[1]),
        "floor": lambda: float(run([floor])[0].split()[1]),
        "traced": lambda: float(record(data, [traced], "--overwrite")[0].split()[1]),
    })
    say(f"{FUNCTIONS:,} different functions in random order, traced in memory ÷ plain", "",
        median(a / b for a, b in zip(figures["traced"], figures["plain"])), "",
        f"ns a call: traced {spread(figures, 'traced')}, with two bare rdtsc "
        f"{spread(figures, 'floor')}, plain {spread(figures, 'plain')}")


if __name__ == "__main__":
    main(many_functions)
