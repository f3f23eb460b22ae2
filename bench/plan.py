# SPDX-License-Identifier: MIT
"""How fast the functions of packaged programs are found and planned, and how many can be taken
although no compiler has prepared them."""

import glob
import subprocess

from measure import BUILD, ROUNDS, main, median, run, say


def files():
    compiler = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True,
                              text=True).stdout.strip()
    libraries = [path for name in ("libc.so.6", "libstdc++.so.6", "libcrypto.so.3")
                 for path in glob.glob(f"/lib/*-linux-gnu/{name}")]
    return [compiler, "/bin/bash", "/usr/bin/perl", "/usr/bin/python3", "/usr/bin/git", *libraries]


def finding_and_planning():
    output, _ = run([BUILD / "bench" / "plan_speed", ROUNDS, *files()], timeout=600)
    figures = {}
    for line in output.splitlines():
        path, *numbers = line.split()
        figures.setdefault(path, []).append([int(number) for number in numbers])
    functions = sum(rounds[0][0] for rounds in figures.values())
    traced = sum(rounds[0][1] for rounds in figures.values())
    missing = sum(rounds[0][2] for rounds in figures.values())
    names = ", ".join(path.rsplit("/", 1)[-1] for path in figures)
    detail = f"{functions} functions of {names}"
    opening = sum(median(one[3] for one in rounds) for rounds in figures.values())
    planning = sum(median(one[5] for one in rounds) for rounds in figures.values())
    say("finding the functions of programs, 100,000 of them", "≤ 0.5", opening / functions * 1e-4,
        "s", detail)
    say("planning patches for them, unprepared, 100,000 of them", "", planning / functions * 1e-4,
        "s", detail)
    say("unprepared functions that can be patched", "≥ 99.9", 100 * traced / (traced + missing),
        "%", f"{missing} of {traced + missing} cannot; {functions - traced - missing} are left "
        "alone: parts of others, linkage stubs, start-up code")
    for path, rounds in figures.items():
        if "libc.so" in path:
            say("finding the C library's hooks", "", median(one[4] for one in rounds) / 1e6, "ms",
                f"{rounds[0][0]} functions, nothing else planned")


if __name__ == "__main__":
    main(finding_and_planning)
