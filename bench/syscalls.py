# SPDX-License-Identifier: MIT
"""All system calls of redis-server recorded while it is loaded, beside strace and perf trace."""

import shutil
import subprocess
import time

from measure import GRAFTRACE, SCRATCH, Failed, in_turns, main, median, remove, say, spread
from servers import Attached, Redis

REQUESTS = 20_000


def rate(redis):
    return redis.rate(REQUESTS)


def ours(redis, lost):
    data = SCRATCH / "syscalls.data"
    remove(data)
    with Attached([GRAFTRACE, "record", "-e", "syscalls", "-o", data, "-P", redis.process.pid],
                  "recording process") as attached:
        measured = rate(redis)
    if " 0 lost" not in attached.said:
        lost.append(attached.said[-200:])
    remove(data)
    return measured


def beside(redis, *command):
    """The same while `command` is attached. It says nothing when it is: a second is enough for both."""
    output = SCRATCH / "syscalls.txt"
    process = subprocess.Popen([*command, "-p", str(redis.process.pid), "-o", output],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        measured = rate(redis)
    finally:
        process.send_signal(2)
        process.wait(60)
    if not output.stat().st_size:
        raise Failed(f"{command[0]} wrote nothing")
    remove(output)
    return measured


def traces_calls(redis):
    """Whether this kernel lets perf trace do it."""
    try:
        beside(redis, "perf", "trace")
        return True
    except (Failed, OSError):
        return False


def measure():
    redis, lost = Redis(), []
    try:
        rate(redis)
        ways = {"plain": lambda: rate(redis), "graftrace": lambda: ours(redis, lost),
                "plain again": lambda: rate(redis), "strace": lambda: beside(redis, "strace", "-f")}
        if shutil.which("perf") and traces_calls(redis):
            ways["perf trace"] = lambda: beside(redis, "perf", "trace")
        figures = in_turns(ways)
    finally:
        redis.stop()
    if lost:
        raise Failed(f"records were lost: {lost[0]}")
    base = [(a + b) / 2 for a, b in zip(figures["plain"], figures["plain again"])]
    of = {name: median(a / b for a, b in zip(figures[name], base)) for name in figures}
    detail = ", ".join(f"{name} {spread(figures, name)}" for name in figures)
    say("redis, all system calls recorded: requests/s ÷ before", "≥ 0.9", of["graftrace"], "",
        f"requests/s: {detail}")
    say("the same by strace -f", "", of["strace"], "", "")
    if "perf trace" in of:
        say("the same by perf trace", "", of["perf trace"], "", "")


if __name__ == "__main__":
    main(measure)
