# SPDX-License-Identifier: MIT
"""A program that is recorded with --serve, for the tests of what is read and written over HTTP."""

import contextlib
import http.client
import re
import socket
import subprocess

from conftest import PATIENCE, line_with


class Served:
    """A program that is being recorded and served, and its HTTP side."""

    def __init__(self, process, port):
        self.process = process
        self.port = port

    def calls(self, count):
        """Makes the program do `middle(count)`, and waits until it has."""
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path if path.startswith("/") else "/ftrace/" + path, body,
                               headers or {})
            answer = connection.getresponse()
            # a thread's name may be any bytes, as on Linux
            return answer.status, answer.read().decode(errors="backslashreplace"), dict(answer.getheaders())
        finally:
            connection.close()

    def get(self, path):
        status, body, _ = self.ask("GET", path)
        assert status == 200, body
        return body

    def put(self, path, value, status=204):
        found, body, _ = self.ask("PUT", path, value)
        assert found == status, body
        return body

    def socket(self, sent=b""):
        client = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        client.sendall(sent)
        return client

    def pipe_until(self, pattern):
        """Reads trace_pipe until its text matches; closes it; the text."""
        client = self.socket(b"GET /ftrace/trace_pipe?follow HTTP/1.0\r\nHost: localhost\r\n\r\n")
        text = ""
        with client:
            while not re.search(pattern, text):
                got = client.recv(65536)
                assert got, f"trace_pipe ended: {text[-500:]}"
                text += got.decode()
        return text.split("\r\n\r\n", 1)[1]


def port_of(process):
    return int(line_with(process.stderr, r"http://127\.0\.0\.1:(\d+)/ftrace/")[1])


@contextlib.contextmanager
def serving(graftrace, program, *options):
    """Served: a program that says "ready", answers lines with "done" and returns 3 at their end."""
    process = graftrace.start("record", "--serve=127.0.0.1:0", *options, "--", program,
                              stdin=subprocess.PIPE)
    try:
        served = Served(process, port_of(process))
        assert process.stdout.readline() == "ready\n"
        yield served
        process.stdin.close()
        assert process.wait(PATIENCE) == 3
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()
