# SPDX-License-Identifier: MIT
"""A thousand probes that are set at once in a running program, beside as many uprobes of the kernel."""

import contextlib
import os
import re
import signal
import subprocess
import time

from measure import GRAFTRACE, SCRATCH, Failed, in_turns, main, median, run, say, spread

COUNT = 1000

# Each function is called all the time; the longest round since SIGUSR1 is told at SIGUSR2: what stops the thread is
# in it.
PROGRAM = """#include <stdio.h>
#include <signal.h>
#include <time.h>
static volatile long sum;
static volatile sig_atomic_t reset, tell;
static void on_signal(int number) { *(number == SIGUSR1 ? &reset : &tell) = 1; }
%s
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000 + t.tv_nsec; }
int main(void)
{
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	puts("ready");
	fflush(stdout);
	for (long last = now(), longest = 0;;) {
		%s
		long time = now();
		if (time - last > longest) longest = time - last;
		if (reset) { reset = 0; longest = 0; }
		if (tell) { tell = 0; printf("%%ld\\n", longest); fflush(stdout); }
		last = time;
	}
}
"""


def program():
    source, output = SCRATCH / "many_probes.c", SCRATCH / "many_probes"
    functions = "\n".join(f'__attribute__((noinline)) long f{i}(long x) {{ __asm__ volatile(""); sum += x; return x * 3; }}'
                          for i in range(COUNT))
    source.write_text(PROGRAM % (functions, "".join(f"f{i}({i});" for i in range(COUNT))))
    run(["gcc", "-O1", source, "-o", output])
    return output


def write(path, text):
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def write_lines(path, lines):
    """As the shell does it: by pieces that end with a line."""
    for at in range(0, len(lines), 40):
        write(path, "".join(lines[at:at + 40]))


def ours(target, rounds, idle):
    """Seconds from the first line to the last patch; the longest round of the program meanwhile goes to `rounds`, in
    ms, and to `idle` that of as long a time when nothing happens to it."""
    directory = SCRATCH / "probes_mount"
    directory.mkdir(exist_ok=True)
    process = subprocess.Popen([GRAFTRACE, "mount", directory, "--", target], stdout=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()
        end = time.monotonic() + 20
        while not (directory / "trace").exists():
            if time.monotonic() > end:
                raise Failed("the mount is not there")
            time.sleep(0.05)
        (directory / "current_tracer").write_text("nop")
        pid = int(run(["pgrep", "-P", str(process.pid)])[0])
        os.kill(pid, signal.SIGUSR1)
        start = time.monotonic()
        write_lines(directory / "dynamic_events", [f"p:many/e{i} {target}:f{i} x=%di\n" for i in range(COUNT)])
        (directory / "events/many/enable").write_text("1")
        took = time.monotonic() - start
        os.kill(pid, signal.SIGUSR2)
        rounds.append(int(process.stdout.readline()) / 1e6)
        (directory / "events/many/enable").write_text("0")
        os.kill(pid, signal.SIGUSR1)
        time.sleep(took)
        os.kill(pid, signal.SIGUSR2)
        idle.append(int(process.stdout.readline()) / 1e6)
    finally:
        process.terminate()
        process.wait(20)
        subprocess.run(["umount", "-l", directory], stderr=subprocess.DEVNULL, check=False)
    return took


@contextlib.contextmanager
def tracefs():
    place = SCRATCH / "probes_tracefs"
    place.mkdir(exist_ok=True)
    run(["mount", "-t", "tracefs", "none", place])
    try:
        yield place
    finally:
        run(["umount", "-l", place])


def theirs(target):
    symbols = run(["nm", target])[0]
    offsets = {name: offset for offset, name in re.findall(r"^([0-9a-f]+) T (f\d+)$", symbols, re.M)}
    process = subprocess.Popen([target], stdout=subprocess.DEVNULL)
    try:
        with tracefs() as place:
            start = time.monotonic()
            write_lines(place / "uprobe_events",
                        [f"p:graftrace_many/{name} {target}:0x{offset} x=%di\n" for name, offset in offsets.items()])
            try:
                (place / "events/graftrace_many/enable").write_text("1")
                took = time.monotonic() - start
            finally:
                (place / "events/graftrace_many/enable").write_text("0")
                write_lines(place / "uprobe_events", [f"-:graftrace_many/{name}\n" for name in offsets])
    finally:
        process.kill()
        process.wait(20)
    return took


def measure():
    target, rounds, idle = program(), [], []
    figures = in_turns({"graftrace": lambda: ours(target, rounds, idle), "uprobes": lambda: theirs(target)})
    detail = ", ".join(f"{name} {spread(figures, name)} s" for name in figures)
    say(f"{COUNT:,} probes set at once in a running program", "≤ 0.5", median(figures["graftrace"]), "s", detail)
    say("… and the program's longest round meanwhile", "≤ 10", median(rounds), "ms",
        "all its functions are called in a round: " + ", ".join(f"{each:.1f}" for each in rounds) +
        "; in as long a time when nothing happens: " + ", ".join(f"{each:.1f}" for each in idle))
    say("the same ÷ as many uprobes", "", median(figures["graftrace"]) / median(figures["uprobes"]), "", detail)


if __name__ == "__main__":
    main(measure)
