# SPDX-License-Identifier: MIT
"""How fast recordings of a real program are written and read, and what they take on disk, by how
much they are packed: plain, in columns (bare), in columns with zstd (packed)."""

from measure import (BUILD, PROGRAMS, ROUNDS, SCRATCH, WAYS, Failed, lua, main, median, record,
                     remove, run, say)

ROUNDS_OF_WORK = "8"


def writing_and_reading():
    program = lua("lua_patchable", *WAYS["patchable"])
    data, scratch = SCRATCH / "recording.data", SCRATCH / "recording.copy"
    record(data, [program, PROGRAMS / "work.lua", ROUNDS_OF_WORK])
    lines, _ = run([BUILD / "bench" / "recording_speed", data, scratch, ROUNDS])
    figures = {}
    for line in lines.splitlines():
        way, *numbers = line.split()
        figures.setdefault(way, []).append([int(number) for number in numbers])
    if set(figures) != {"plain", "bare", "packed"}:
        raise Failed(f"recording_speed said: {lines[-300:]}")
    for way, rounds in figures.items():
        words, size = rounds[0][0], rounds[0][1]
        write = median(words * 8 / took for _, _, took, _ in rounds)
        read = median(words * 8 / took for _, _, _, took in rounds)
        detail = f"{words / 1e6:.1f} million words, {2 * size / words:.2f} bytes a call pair"
        say(f"writing a recording, {way}", "", write, "GB/s of words", detail)
        say(f"reading a recording, {way}", "≥ 1", read, "GB/s of words", detail)
    for path in (data, scratch, scratch.with_name(scratch.name + ".old")):
        remove(path)


if __name__ == "__main__":
    main(writing_and_reading)
