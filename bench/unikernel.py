# SPDX-License-Identifier: MIT
"""Tracing inside the unikernel, under QEMU: instructions a traced call costs (QEMU counts them, and the
guest's clock with them), and how fast the ring comes out as text."""

import os
import re
import socket
import subprocess
import time

from measure import ROOT, Failed, main, run, say


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def boot(**options):
    return {"BUILD": os.environ.get("GRAFTRACE_BUILD", str(ROOT / "build")), "PORT": free_port(),
            "TRACE_PORT": free_port(), **options}


def ticks(**options):
    """Ticks of so many calls at first, in a paused thread, and at last; and how many those are."""
    out, _ = run([ROOT / "tools" / "unikernel", "run"], timeout=300, cwd=ROOT,
                 env=boot(TARGET="calls", CPUS="1", BUFFER="2M",
                          QEMU_ARGS="-icount shift=0,sleep=off", **options))
    found = re.search(r"calls: (\d+) ticks for (\d+) calls at first, (\d+) paused, (\d+) at last", out)
    if not found:
        raise Failed("the target said nothing of its calls")
    return tuple(int(found[i]) for i in (1, 3, 4, 2))


def instructions():
    plain, _, _, calls = ticks(TRACE="")
    traced, paused, full, _ = ticks(TRACE="ftrace")
    how = f"QEMU -icount; an untraced call and its loop: {plain / calls:.1f}"
    say("unikernel: instructions a traced call, entry and return", "≤ 56", (traced - plain) / calls, "", how)
    say("unikernel: … with a full ring", "≤ 12", (full - plain) / calls, "", how)
    say("unikernel: … in a paused thread", "≤ 12", (paused - plain) / calls, "", how)


def download():
    """The whole ring as text, once it is full."""
    options = boot(TARGET="calls", CPUS="2", BUFFER="64M", TRACE="ftrace", LINGER="120",
                   OPTIONS="batches=6000")
    machine = subprocess.Popen([ROOT / "tools" / "unikernel", "run"], cwd=ROOT,
                               env={**os.environ, **options}, stdout=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, text=True, start_new_session=True)
    try:
        for line in machine.stdout:
            if "can be fetched" in line:
                break
        bytes_read, start = 0, time.monotonic()
        with socket.create_connection(("127.0.0.1", int(options["TRACE_PORT"])), timeout=60) as it:
            it.sendall(b"GET /ftrace/trace HTTP/1.0\r\nHost: localhost\r\n\r\n")
            while chunk := it.recv(1 << 20):
                bytes_read += len(chunk)
        took = time.monotonic() - start
        say("unikernel: the ring as text over HTTP", "≥ 20 MB/s", bytes_read / took / 1e6, "MB/s",
            f"{bytes_read / 1e6:.0f} MB of text")
    finally:
        os.killpg(machine.pid, 9)
        machine.wait()


if __name__ == "__main__":
    main(instructions, download)
