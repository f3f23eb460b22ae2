# SPDX-License-Identifier: MIT
"""The Linux kernel's records beside trace-cmd's: in Debian's kernel under QEMU what recording takes, on
this machine what reading takes, and what `record --kernel` costs the program's own calls."""

import os
import re
import subprocess
import sys
import time

from call_cost import ARGUMENTS, ns
from measure import (GRAFTRACE, ROOT, SCRATCH, Failed, compile_c, graftrace, in_turns, main, median, ratio,
                     record, remove, run, say, spread)

os.environ.setdefault("GRAFTRACE_BUILD", str(GRAFTRACE.parent.parent))
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import linux_guest  # noqa: E402

ROUNDS = 3
GUEST_LIMIT_S = 850
CALLS = 5_000_000
FUNCTIONS = "-p function_graph -g __x64_sys_pread64"
EVENTS = "-e sched -e block -e syscalls"

# all functions of the kernel, of a program that does little else than to call it
LOAD = """
trace-cmd record -q -p function_graph -o tc_load.dat ls -lR /proc/1 > out.tc_load 2>&1
graftrace record --kernel=graph -a -p nop -o gt_load.data ls -lR /proc/1 > out.gt_load 2>&1
"""

# user and system time of each, with those of its children
GUEST = """
mkdir -p /dev/shm /run; mount -t tmpfs tmpfs /dev/shm
H="block_hasher -d /dev/nvme1n1 -b 65536 -t 4 -n 10"
t() { n=$1; shift; echo 3 > /proc/sys/vm/drop_caches
    busybox time -f "$n %U %S" -a -o times "$@" > out.$n 2>&1; }
for i in 1 2 3; do
t plain $H
t tc_functions trace-cmd record -q FUNCTIONS -o tc_functions.dat $H
t gt_functions graftrace record --kernel=graph -g k:__x64_sys_pread64 -p nop -o gt_functions.data $H
t tc_events trace-cmd record -q EVENTS -o tc_events.dat $H
t gt_events graftrace record --kernel=events -a EVENTS -p nop -o gt_events.data $H
done
LOAD
""".replace("LOAD", LOAD).replace("FUNCTIONS", FUNCTIONS).replace("EVENTS", EVENTS)


def recording():
    directory = SCRATCH / "linux_guest"
    directory.mkdir(exist_ok=True)
    hasher = SCRATCH / "block_hasher"
    run(["gcc", "-O2", "-pthread", "-o", hasher, ROOT / "tests" / "programs" / "block_hasher.c"])
    linux_guest.run(directory, GUEST, ["trace-cmd", GRAFTRACE, hasher], disks=[32 << 20],
                    limit_s=GUEST_LIMIT_S)
    figures = {}
    for name, user, system in re.findall(r"^(\w+) ([\d.]+) ([\d.]+)$",
                                         (directory / "times").read_text(), re.M):
        figures.setdefault(name, []).append(float(user) + float(system))
    for what, name, options in (("function graph", "functions", FUNCTIONS), ("events", "events", EVENTS)):
        ours, theirs = f"gt_{name}", f"tc_{name}"
        if len(figures.get(ours, [])) < ROUNDS or len(figures.get(theirs, [])) < ROUNDS:
            raise Failed(f"the guest did not come to its end: {figures}")
        say(f"recording Linux's {what} ÷ `trace-cmd record`, CPU time", "≤ 1.0",
            median(figures[ours]) / median(figures[theirs]), "",
            f"Debian's kernel in QEMU, {options}; s: {spread(figures, ours)} and {spread(figures, theirs)}")
        sizes = [(directory / f"{ours}.data").stat().st_size, (directory / f"{theirs}.dat").stat().st_size]
        say("… bytes on disk", "≤ 0.5", sizes[0] / sizes[1], "", f"{sizes[0]:,} and {sizes[1]:,}")
        say_losses("… records lost more", directory, ours, theirs)
    say_losses("recording all of Linux's functions: records lost more than by `trace-cmd record`", directory, "gt_load",
               "tc_load", "; Debian's kernel in QEMU, ls -lR /proc/1, each with its own size of the buffer")


def say_losses(what, directory, ours, theirs, how=""):
    lost = [lost_of(directory / f"{ours}.data"), lost_of(directory / f"{theirs}.dat")]
    say(what, "≤ 0", lost[0] - lost[1], "", f"{lost[0]:,} and {lost[1]:,}{how}")


def lost_of(path):
    said = subprocess.run([GRAFTRACE, "info", path], capture_output=True, text=True, check=False).stderr
    return sum(map(int, re.findall(r"(\d+) records were lost", said)))


def timed(command):
    """CPU seconds of a command with its children."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        before = os.times()
        done = subprocess.run([str(word) for word in command], stdout=nowhere, stderr=nowhere, check=False,
                              cwd=SCRATCH)
        after = os.times()
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}")
    return (after.children_user - before.children_user) + (after.children_system - before.children_system)


def processes_below(pid):
    """A process and its children, theirs included."""
    yield pid
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as children:
                for child in children.read().split():
                    yield from processes_below(int(child))
    except OSError:
        pass  # it has ended


def peak_kb(command):
    """The most memory of their own that a command's processes had together, by looks at it every 5 ms. Pages of a
    mapped file are the kernel's, who takes them back as it likes."""
    peak = 0
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          cwd=SCRATCH) as process:
        while process.poll() is None:
            sum_kb = 0
            for pid in processes_below(process.pid):
                try:
                    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
                        found = re.search(r"^RssAnon:\s+(\d+) kB", status.read(), re.M)
                except OSError:
                    continue
                sum_kb += int(found[1]) if found else 0
            peak = max(peak, sum_kb)
            time.sleep(0.005)
    if process.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))} ended with {process.returncode}")
    return peak


def memory():
    program = SCRATCH / "linux_count"
    source = SCRATCH / "linux_count.c"
    source.write_text("""
#include <stdlib.h>
__attribute__((noinline)) int leaf(int i) { __asm__ volatile(""); return i + 1; }
int main(int argc, char **argv)
{
	int sum = 0, count = atoi(argv[argc - 1]);
	for (int i = 0; i < count; i++)
		sum += leaf(i);
	return sum == 1;
}
""")
    run(["gcc", "-O1", "-o", program, source])
    peaks = {}
    for calls in (CALLS // 10, CALLS):
        data, file = SCRATCH / "linux.data", SCRATCH / "linux.dat"
        record(data, [program, calls])
        remove(file)
        graftrace("export", "-q", "--to", "trace.dat", "-o", file, data, timeout=600)
        peaks[calls] = {what: peak_kb([GRAFTRACE, what, "--no-pager", file]) for what in ("report", "show")}
        remove(file)
    for what in ("report", "show"):
        few, many = (peaks[calls][what] for calls in (CALLS // 10, CALLS))
        say(f"memory of `{what}` of a trace.dat, ten times the events", "≤ 1.2", many / few, "",
            f"the processes' own, without mapped files: {many:,} kB of {2 * CALLS:,} events, {few:,} kB of "
            f"{2 * CALLS // 10:,}")


def reading():
    program = SCRATCH / "linux_calls"
    source = SCRATCH / "linux_calls.c"
    source.write_text("""
__attribute__((noinline)) int leaf(int i) { __asm__ volatile(""); return i + 1; }
int main(void)
{
	int sum = 0;
	for (int i = 0; i < %d; i++)
		sum += leaf(i);
	return sum == 1;
}
""" % CALLS)
    run(["gcc", "-O1", "-o", program, source])
    data, file = SCRATCH / "linux.data", SCRATCH / "linux.dat"
    record(data, [program])
    remove(file)
    graftrace("export", "-q", "--to", "trace.dat", "-o", file, data, timeout=600)
    for what in ("report", "show"):
        figures = in_turns({
            "ours": lambda what=what: timed([GRAFTRACE, what, "--no-pager", file]),
            "theirs": lambda: timed(["trace-cmd", "report", "-i", file]),
        }, ROUNDS)
        say(f"`{what}` of a trace.dat of {2 * CALLS // 1_000_000} million events ÷ `trace-cmd report`",
            "≤ 0.1", median(figures["ours"]) / median(figures["theirs"]), "",
            f"CPU time; s: {spread(figures, 'ours')} and {spread(figures, 'theirs')}")
    remove(file)


def beside():
    """The program times its calls itself: what it takes to begin with the kernel is no call's."""
    command = [compile_c("fib.c", "fib_plain"), *ARGUMENTS]
    data = SCRATCH / "linux.data"

    def call_ns(*options):
        return lambda: ns(record(data, command, "-l", "fib", *options)[0])

    figures = in_turns({"without": call_ns(), "with": call_ns("--kernel=events")}, 5)
    say("a program's own call with `--kernel` ÷ without", "≤ 1.02",
        ratio(figures, "with", "without"), "",
        f"events; ns a call: {spread(figures, 'with')} and {spread(figures, 'without')}")


if __name__ == "__main__":
    main(reading, memory, beside, recording)
