# SPDX-License-Identifier: MIT
"""Bytes on disk for each call of a real program, beside uftrace."""

import re

from measure import (PROGRAMS, SCRATCH, WAYS, Failed, graftrace, lua, main, record, run, say,
                     uftrace_record)

ROUNDS_OF_WORK = "8"


def size(path):
    return sum(file.stat().st_size for file in path.rglob("*")) if path.is_dir() \
        else path.stat().st_size


def calls_of(data):
    report, _ = graftrace("report", data, "--format", "csv")
    lines = report.splitlines()
    column = lines[0].split(",").index("calls")
    return sum(int(re.sub(r'"[^"]*"', "x", line).split(",")[column]) for line in lines[1:])


def bytes_a_call():
    program = lua("lua_patchable", *WAYS["patchable"])
    work = [program, PROGRAMS / "work.lua", ROUNDS_OF_WORK]
    data, other = SCRATCH / "disk.data", SCRATCH / "disk.uftrace"
    rows = {}
    for name, option in (("plain", "--no-compress"), ("compressed", "--compress")):
        _, line = record(data, work, option)
        rows[name] = size(data) / calls_of(data), line.replace(f"{SCRATCH}/", "")
    uftrace_record(other, work, "patchable")
    made, _ = run(["uftrace", "report", "-d", other, "-f", "call", "-s", "call"])
    peer_calls = sum(int(found.group(1)) for found in
                     (re.match(r"\s*(\d+)\s+\S", row) for row in made.splitlines()) if found)
    if not peer_calls:
        raise Failed("uftrace counted no call")
    peer = size(other) / peer_calls
    for name, goal in (("plain", "≤ 17"), ("compressed", "≤ 5")):
        say(f"bytes on disk per call pair of Lua at work, {name}", goal, rows[name][0], "bytes",
            f"one run; {rows[name][1]}; uftrace: {peer:.1f} bytes a call")


if __name__ == "__main__":
    main(bytes_a_call)
