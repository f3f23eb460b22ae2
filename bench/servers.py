# SPDX-License-Identifier: MIT
"""A server at work while it is attached to: redis-server as the distribution ships it, requests a
second as redis-benchmark counts them, beside uftrace's dynamic mode and bpftrace's uprobes."""

import json
import os
import re
import signal
import socket
import subprocess
import time

from measure import (GRAFTRACE, SCRATCH, Failed, in_turns, main, median, remove, run, say, spread)

REQUESTS = 20_000
# bpftrace's own limit is 512.
PROBES = {"BPFTRACE_MAX_PROBES": "5000"}
# Never called by a client that gets and sets, and there as a symbol.
UNUSED = "clusterCommand"
PROGRAM = "/usr/bin/redis-server"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Redis:
    """A server; `tracer` is put before its command."""

    def __init__(self, *tracer):
        self.port = free_port()
        self.process = subprocess.Popen(
            [*map(str, tracer), "redis-server", "--port", str(self.port), "--save", "", "--bind",
             "127.0.0.1", "--dir", str(SCRATCH)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        for _ in range(3000):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        self.process.kill()
        raise Failed("redis-server does not answer")

    def rate(self, requests=REQUESTS):
        """Requests a second."""
        out, _ = run(["redis-benchmark", "-h", "127.0.0.1", "-p", self.port, "-t", "get", "-n", requests,
                      "-c", "20", "--csv"], timeout=300)
        found = re.search(r'^"GET","([\d.]+)"', out, re.M)
        if not found:
            raise Failed(f"redis-benchmark says nothing of its rate: {out[-200:]}")
        return float(found.group(1))

    def stop(self):
        subprocess.run(["redis-cli", "-p", str(self.port), "shutdown", "nosave"], capture_output=True,
                       timeout=20, check=False)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Attached:
    """While a tracer is attached; `sign` in its stderr (or stdout) says that it is."""

    def __init__(self, command, sign, env=None):
        self.process = subprocess.Popen([str(word) for word in command], cwd=SCRATCH, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, env={**os.environ, **(env or {})})
        self.sign = sign
        self.said = ""

    def __enter__(self):
        while self.sign not in self.said:
            line = self.process.stdout.readline()
            if not line:
                self.process.kill()
                raise Failed(f"it ended instead of attaching: {self.said[-300:]}")
            self.said += line
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        try:
            self.said += self.process.communicate(timeout=120)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()


def while_recorded(redis, *options):
    data = SCRATCH / "servers.data"
    remove(data)
    with Attached([GRAFTRACE, "record", "-o", data, *options, "-P", redis.process.pid],
                  "recording process") as attached:
        rate = redis.rate()
    if not re.search(r"calls?, .* 0 lost", attached.said):
        raise Failed(f"records were lost: {attached.said[-200:]}")
    remove(data)
    return rate


def attached():
    redis = Redis()
    try:
        redis.rate(5000)
        figures = in_turns({
            "plain": redis.rate,
            "unused": lambda: while_recorded(redis, "-l", UNUSED),
            "plain again": redis.rate,
            "all": lambda: while_recorded(redis),
            "libraries": lambda: while_recorded(redis, "--libs"),
        })
    finally:
        redis.stop()
    base = [(a + b) / 2 for a, b in zip(figures["plain"], figures["plain again"])]
    of = {name: median(a / b for a, b in zip(figures[name], base))
          for name in ("unused", "all", "libraries")}
    plain = f"requests/s: plain {spread(figures, 'plain')}"
    say("redis attached to, with a filter that matches nothing that runs: requests/s ÷ before", "≥ 0.99",
        of["unused"], "", f"{plain}, attached {spread(figures, 'unused')}")
    say("redis, the whole program traced: requests/s ÷ before", "", of["all"], "",
        f"{plain}, traced {spread(figures, 'all')}; with --libs {spread(figures, 'libraries')}, "
        f"ratio {of['libraries']:.2f}")


def uftrace():
    data = SCRATCH / "servers.uftrace"

    def traced():
        remove(data)
        redis = Redis("uftrace", "record", "--no-libcall", "--no-event", "-P", ".", "-d", data)
        try:
            return redis.rate()
        finally:
            redis.stop()

    def plain():
        redis = Redis()
        try:
            return redis.rate()
        finally:
            redis.stop()

    figures = in_turns({"plain": plain, "uftrace": traced}, rounds=3)
    out, _ = run(["uftrace", "report", "-d", data, "--no-pager"], timeout=200)
    functions = sum("linux:" not in line for line in out.splitlines()[2:] if line.strip())
    say("the same by uftrace's dynamic mode (-P .)", "",
        median(a / b for a, b in zip(figures["uftrace"], figures["plain"])), "",
        f"3 rounds; it finds {functions} functions of the program; requests/s: plain "
        f"{spread(figures, 'plain')}, traced {spread(figures, 'uftrace')}")
    remove(data)


def called(redis):
    """The functions that are at work while it is loaded, of those that bpftrace can find."""
    data = SCRATCH / "servers.called"
    remove(data)
    with Attached([GRAFTRACE, "record", "-o", data, "-P", redis.process.pid], "recording process"):
        redis.rate(5000)
    table, _ = run([GRAFTRACE, "report", "--format", "json", data])
    remove(data)
    symbols, _ = run(["nm", "-D", "--defined-only", PROGRAM])
    known = {line.split()[2] for line in symbols.splitlines() if line.split()[1] in "Tt"}
    return sorted({row["function"] for row in json.loads(table)["rows"]} & known)


def bpftrace():
    redis = Redis()
    try:
        plain = redis.rate()
        names = called(redis)
        script = "".join(f"{kind}:{PROGRAM}:{name}, " for kind in ("uprobe", "uretprobe") for name in names)
        script = script[:-2] + ' { @calls = count(); } interval:s:1 { printf("attached\\n"); }'
        with Attached(["stdbuf", "-oL", "bpftrace", "-e", script], "attached", PROBES):
            traced = redis.rate(2000)
    finally:
        redis.stop()
    say(f"the same by uprobes at entry and return of {len(names)} functions (bpftrace)", "", traced / plain, "",
        f"one round; all that are called and have a symbol; requests/s: plain {plain:.3g}, traced {traced:.3g}")


if __name__ == "__main__":
    main(attached, uftrace, bpftrace)
