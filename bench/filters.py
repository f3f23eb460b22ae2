# SPDX-License-Identifier: MIT
"""Setting filters of a running program with 100,000 functions through the control files: 50,000
names at once, and one function more or less."""

import os
import socket
import subprocess
import time

from measure import (GRAFTRACE, ROUNDS, SCRATCH, WAYS, Failed, compile_c, main, median, remove, say)

FUNCTIONS = 100000
NAMES = 50000


def source():
    path = SCRATCH / "filters.c"
    with open(path, "w", encoding="utf-8") as text:
        for number in range(FUNCTIONS):
            text.write(f"__attribute__((noinline)) void f{number}(void) {{ __asm__(\"\"); }}\n")
        text.write("#include <stdio.h>\nint main(void) { puts(\"ready\"); fflush(stdout); "
                   "f0(); getchar(); return 0; }\n")
    return path


def asked(path, request):
    """What the recording's socket answers, behind its ok, and in how many seconds."""
    begin = time.perf_counter()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(request.encode())
        client.shutdown(socket.SHUT_WR)
        answer = b""
        while got := client.recv(65536):
            answer += got
    if not answer.startswith(b"ok\n"):
        raise Failed(answer.decode())
    return answer[3:].decode(), time.perf_counter() - begin


def written(path, word, text):
    """Seconds that one write takes."""
    return asked(path, f"{word} set_ftrace_filter\n{text}\n")[1]


def filters():
    program = compile_c(source(), "filters", "-O1", *WAYS["patchable"])
    data = SCRATCH / "filters.data"
    remove(data)
    runtime = SCRATCH / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    process = subprocess.Popen([str(GRAFTRACE), "record", "--overwrite", "-o", str(data), "--",
                                str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL,
                               env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)})
    try:
        process.stdout.readline()
        for _ in range(100):
            doors = list(runtime.glob("graftrace/*.sock"))
            if doors:
                break
            time.sleep(0.05)
        # a few in a thousand lie so that they cannot be patched
        known, _ = asked(doors[0], "get available_filter_functions\n")
        listed = [name for name in known.split() if name[0] == "f" and name not in ("f0", "f1")]
        if len(listed) < NAMES:
            raise Failed(f"only {len(listed)} functions can be traced")
        names = "\n".join(listed[:NAMES])
        many, on, off, read, among = [], [], [], [], []
        for _ in range(ROUNDS):
            written(doors[0], "set", "f0")
            on.append(written(doors[0], "add", "f1"))
            off.append(written(doors[0], "add", "!f1"))
            many.append(written(doors[0], "set", names))
            among.append(written(doors[0], "add", "f1"))
            read.append(asked(doors[0], "get set_ftrace_filter\n")[1])
    finally:
        process.stdin.close()
        process.wait(60)
    say("set_ftrace_filter, 50,000 names of 100,000 functions", "≤ 1", median(many), "s",
        f"{min(many):.2f} … {max(many):.2f}")
    say("set_ftrace_filter, one function more", "≤ 1", median(on) * 1e3, "ms",
        f"{min(on) * 1e3:.1f} … {max(on) * 1e3:.1f}; less: {median(off) * 1e3:.1f}")
    say("set_ftrace_filter, one more with 50,000 names set", "≤ 1", median(among) * 1e3, "ms",
        f"{min(among) * 1e3:.1f} … {max(among) * 1e3:.1f}")
    say("set_ftrace_filter read with 50,000 names set", "≤ 1", median(read), "s",
        f"{min(read):.2f} … {max(read):.2f}")


if __name__ == "__main__":
    main(filters)
