# SPDX-License-Identifier: MIT
"""Downloading a full ring over HTTP while the program runs: how fast, and what it feels of it.

Once with the ring as it is by default: full, it keeps the oldest records. Once with --overwrite, where
the program goes on recording over what is being downloaded, at its full speed."""

import bisect
import socket
import subprocess
import time

from measure import (GRAFTRACE, ROUNDS, SCRATCH, WAYS, Failed, compile_c, main, median, remove,
                     run, say)

WINDOW_S = 0.8


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Pace:
    """The lines of programs/steady.c: how much was done between two moments."""

    def __init__(self, text):
        points = [tuple(map(int, line.split())) for line in text.splitlines()
                  if len(line.split()) == 2]
        self.times = [point[0] for point in points]
        self.units = [point[1] for point in points]

    def rate(self, begin, end):
        """Units a second between two values of the monotonic clock, in seconds."""
        first = bisect.bisect_left(self.times, begin * 1e9)
        last = bisect.bisect_right(self.times, end * 1e9) - 1
        if last <= first:
            raise Failed("the program wrote no pace in a window: it stood still, or was too short")
        return (self.units[last] - self.units[first]) * 1e9 / (self.times[last] - self.times[first])


def windows_of(overwrite):
    """(when: begin, middle, end; speeds in MB/s; sizes; the pace) of downloads from middle to end."""
    program = compile_c("steady.c", "steady", *WAYS["patchable"])
    if not GRAFTRACE.exists():
        raise Failed(f"{GRAFTRACE} is not built")
    data, output = SCRATCH / "http.data", SCRATCH / "http.pace"
    remove(data)
    port = free_port()
    url = f"http://127.0.0.1:{port}/ftrace/trace"
    windows, speeds, sizes = [], [], []
    with open(output, "w", encoding="utf-8") as pace, \
            open(SCRATCH / "http.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [str(GRAFTRACE), "record", f"--serve=127.0.0.1:{port}", *overwrite, "-b", "64M",
             "-o", str(data), "--", str(program), "60"],
            stdin=subprocess.DEVNULL, stdout=pace, stderr=log, cwd=SCRATCH)
        try:
            # 64 MB are full after a quarter of a second; the clocks settle meanwhile.
            time.sleep(2)
            for _ in range(ROUNDS):
                begin = time.monotonic()
                time.sleep(WINDOW_S)
                middle = time.monotonic()
                said, _ = run(["curl", "-sSf", "-o", "/dev/null", "-w",
                               "%{size_download} %{time_total}", url], timeout=60)
                end = time.monotonic()
                size, duration = (float(word) for word in said.split())
                windows.append((begin, middle, end))
                sizes.append(size)
                speeds.append(size / duration / 1e6)
                if process.poll() is not None:
                    raise Failed("the recording ended before the downloads did")
        finally:
            process.terminate()
            process.wait(timeout=30)
    return windows, speeds, sizes, Pace(output.read_text(encoding="utf-8"))


def slowed(windows, pace):
    return [100 * (pace.rate(begin, middle) / pace.rate(middle, end) - 1)
            for begin, middle, end in windows]


def download():
    windows, speeds, sizes, pace = windows_of([])
    if min(sizes) < 64e6:
        raise Failed(f"a full ring of 64 MB gave only {min(sizes):.0f} bytes of text")
    say("`/ftrace/trace` of a full 64 MB ring, text", "≥ 150 MB/s", median(speeds), "MB/s",
        f"{len(speeds)} downloads of {median(sizes) / 1e6:.0f} MB: {min(speeds):.0f} … "
        f"{max(speeds):.0f} MB/s")
    slower = slowed(windows, pace)
    say("the traced program meanwhile, slowed by", "≤ 5 %", median(slower), "%",
        f"its pace during each download beside just before it: {min(slower):.1f} … "
        f"{max(slower):.1f} %")
    windows, speeds, sizes, pace = windows_of(["--overwrite"])
    say("the same with `--overwrite`, what could be had before it was overwritten", "",
        median(speeds), "MB/s", f"{len(speeds)} downloads of {median(sizes) / 1e6:.0f} MB")
    slower = slowed(windows, pace)
    say("the program meanwhile, recording at its full speed, slowed by", "≤ 5 %", median(slower),
        "%", f"{min(slower):.1f} … {max(slower):.1f} %")


if __name__ == "__main__":
    main(download)
