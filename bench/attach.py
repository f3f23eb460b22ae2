# SPDX-License-Identifier: MIT
"""How long a process stands still while graftrace attaches to it and leaves it: 10,000 functions, eight threads
that call them."""

import re
import subprocess
import time

from measure import GRAFTRACE, SCRATCH, Failed, graftrace, main, median, run, say, spread

FUNCTIONS = 10000
THREADS = 8
ROUNDS = 15


def build():
    source, program = SCRATCH / "attach.c", SCRATCH / "attach"
    with source.open("w") as text:
        text.write("#include <pthread.h>\n#include <unistd.h>\n"
                   "typedef int function(int, int);\n")
        for i in range(FUNCTIONS):
            text.write(f"__attribute__((noinline)) int f{i}(int a, int b)\n"
                       f"{{ __asm__ volatile(\"\" ::: \"memory\"); return a * {i + 3} + b; }}\n")
        text.write("static function *const all[] = {"
                   + ", ".join(f"f{i}" for i in range(FUNCTIONS)) + "};\n"
                   "static void *work(void *data)\n"
                   "{ int sum = 0; for (;;) { for (int i = 0; i < %d; i++)"
                   " sum = all[i](sum, i); usleep(1000); } return data; }\n"
                   "int main(void) { pthread_t thread; for (int i = 0; i < %d; i++)"
                   " pthread_create(&thread, 0, work, 0); for (;;) pause(); }\n"
                   % (FUNCTIONS, THREADS))
    run(["gcc", "-O1", "-pthread", source, "-o", program])
    return program


def attach():
    target = subprocess.Popen([build()], cwd=SCRATCH)
    try:
        time.sleep(0.2)
        stops, leaves = [], []
        for _ in range(ROUNDS):
            _, said = graftrace("record", "-P", target.pid, "-l", "f[0-9]*", "--for", "10ms",
                                "-o", SCRATCH / "attach.data")
            stopped = re.search(r"stopped for ([0-9.]+) ms", said)
            if not stopped or target.poll() is not None:
                raise Failed(f"{GRAFTRACE} said {said!r}")
            stops.append(float(stopped.group(1)))
            leaves.append(float(re.search(r"left in stops of ([0-9.]+) ms", said).group(1)))
    finally:
        target.kill()
        target.wait()
    say(f"all threads stopped while attaching, {FUNCTIONS:,} functions", "≤ 50 ms",
        median(stops), "ms", f"{ROUNDS} rounds, {THREADS} threads; ms: "
        + spread({"stop": stops}, "stop"))
    say(f"all threads stopped while detaching, {FUNCTIONS:,} functions", "", median(leaves), "ms",
        f"the longest of its stops; {ROUNDS} rounds, {THREADS} threads; ms: " + spread({"stop": leaves}, "stop"))


if __name__ == "__main__":
    main(attach)
