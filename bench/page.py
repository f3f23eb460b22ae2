# SPDX-License-Identifier: MIT
"""The page of a recording of ten million calls: how soon it is there, how soon a view is, how large a file it is."""

import json
import os
import random
import re
import socket
import subprocess
import time

from measure import (GRAFTRACE, SCRATCH, WAYS, Failed, compile_c, graftrace, main, median, record, remove, say)

ARGUMENTS = ["27", "14", "1"]  # 10.2 million calls
ROUNDS = 5


class Server:
    """graftrace serve of a recording, for a while."""

    def __init__(self, data):
        self.process = subprocess.Popen([GRAFTRACE, "serve", "-a", "127.0.0.1:0", data], text=True,
                                        stderr=subprocess.PIPE)
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.process.stderr.readline())
        if not found:
            raise Failed("graftrace serve does not serve")
        self.port = int(found[1])

    def ask(self, question):
        return self.get(f"/api/{question}")

    def get(self, path):
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while got := connection.recv(1 << 20):
                answer += got
        head, _, body = answer.partition(b"\r\n\r\n")
        if b" 200 " not in head.splitlines()[0]:
            raise Failed(f"{path}: {head.splitlines()[0]}")
        return body

    def overview(self):
        """Waits until it is read."""
        while "program" not in (got := json.loads(self.ask("overview"))):
            time.sleep(0.01)
        return got

    def close(self):
        self.process.terminate()
        _, _, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        self.process.stderr.close()
        return usage.ru_maxrss / 1024


def first_view(data):
    """What a browser asks for until it shows something: the page, and its first figures."""
    server = Server(data)
    begin = time.monotonic()
    server.get("/")
    server.overview()
    server.ask("timeline?width=1400&lanes=0-60&rows=12")
    taken = time.monotonic() - begin
    return taken, server.close()


def views(data):
    """Seconds of each of many views: windows of all sizes anywhere, flame graphs, functions."""
    server = Server(data)
    seen = server.overview()
    rng = random.Random(1)
    taken = []
    for zoom in range(0, 24):
        span = max(seen["length"] >> zoom, 100)
        start = rng.randrange(max(seen["length"] - span, 1))
        for question in (f"timeline?from={start}&to={start + span}&width=1400&lanes=0-60&rows=96", "flame?width=1400",
                         "functions?sort=p99", "function?id=0", "selftimes", f"find?id=0&from={start}&way=-1"):
            begin = time.monotonic()
            server.ask(question)
            taken.append(time.monotonic() - begin)
    server.close()
    return taken


def page():
    program = compile_c("fib.c", "fib_patchable", *WAYS["patchable"])
    data, html = SCRATCH / "page.data", SCRATCH / "page.html"
    calls = int(record(data, [program, *ARGUMENTS])[0].split()[0])
    firsts = [first_view(data) for _ in range(ROUNDS)]
    say("page: the first view of ten million calls", "≤ 1.0 s", median([taken for taken, _ in firsts]), "s",
        f"{ROUNDS} rounds, {calls:,} calls, page, overview and time line; {max(memory for _, memory in firsts):.0f} MB of memory")
    taken = views(data)
    say("page: the slowest view of it, at any zoom", "≤ 100 ms", 1000 * max(taken), "ms",
        f"{len(taken)} views, median {1000 * median(taken):.1f} ms")
    graftrace("export", "--to", "html", "-q", "-o", html, data)
    say("page: the same in one file", "≤ 8 MB", html.stat().st_size / 1e6, "MB", "`export --to html`")
    remove(html)


if __name__ == "__main__":
    main(page)
