# SPDX-License-Identifier: MIT
"""Who may read and change the trace of root's graftrace: root, and whom root has named."""

import pathlib
import signal
import stat
import subprocess
import sys
import tempfile

import pytest

from conftest import PATIENCE, line_with
from mounted import PROGRAM
from served import port_of, serving

USER, OTHER = 65534, 12345

# One request by a user: USER PLACE TEXT HOW. What the server says until it ends; `close`: twenty times, each
# socket closed at once, so that nobody holds it any more when the server looks whose it is.
ASK = r"""
import os, socket, sys
uid, place, text, how = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
os.setgroups([]); os.setgid(uid); os.setuid(uid)
def dial():
    try:
        if "/" in place:
            client = socket.socket(socket.AF_UNIX)
            client.connect(place)
        elif place.startswith("::"):
            client = socket.create_connection((place.rpartition(" ")[0], int(place.rpartition(" ")[2])))
        else:
            client = socket.create_connection(("127.0.0.1", int(place)))
    except OSError as error:
        sys.exit(f"{error.errno}")
    client.sendall(text.replace("\n", "\r\n").encode())
    return client
if how == "close":
    for _ in range(20):
        dial().close()
else:
    client = dial()
    answer = b""
    try:
        while got := client.recv(65536):
            answer += got
    except ConnectionResetError:
        pass
    print(answer.decode())
"""

GET = "GET /ftrace/{} HTTP/1.0\nHost: localhost\n{}\n"
PUT = "PUT /ftrace/tracing_on HTTP/1.0\nHost: localhost\nContent-Length: 1\n{}\n0"


def ask(uid, place, text, how="read"):
    done = subprocess.run([sys.executable, "-ISc", ASK, str(uid), str(place), text, how], text=True,
                          capture_output=True, timeout=PATIENCE)
    if done.returncode:
        return done.stderr.strip()
    return done.stdout.split(" ")[1] if " " in done.stdout else done.stdout


@pytest.fixture(scope="module")
def program(compile):
    return compile(PROGRAM, "-O2", "-pthread", "-fpatchable-function-entry=5")


def test_another_user_neither_reads_nor_steers(graftrace, program):
    with serving(graftrace, program) as served:
        assert ask(USER, served.port, GET.format("trace", "")) == "403"
        assert ask(USER, served.port, PUT.format("")) == "403"
        # Whose socket it was is not known when it is closed; the kernel then says root's.
        served.process.send_signal(signal.SIGSTOP)
        ask(USER, served.port, PUT.format(""), "close")
        served.process.send_signal(signal.SIGCONT)
        assert ask(USER, served.port, GET.format("trace?token=0123456789abcdef", "")) == "403"
        assert served.get("tracing_on") == "1\n"


def test_users_that_were_named_are_served(graftrace, program):
    with serving(graftrace, program, f"--allow-users=root,{USER}") as served:
        assert ask(USER, served.port, GET.format("tracing_on", "")) == "200"
        assert ask(OTHER, served.port, GET.format("tracing_on", "")) == "403"
    with serving(graftrace, program, "--allow-users=all") as served:
        assert ask(OTHER, served.port, GET.format("tracing_on", "")) == "200"


def test_whoever_shows_the_token_is_served(graftrace, program):
    token = graftrace.directory / "token"
    with serving(graftrace, program, "--token", token) as served:
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        words = token.read_text().strip()
        assert len(words) >= 32
        assert ask(USER, served.port, GET.format("tracing_on", f"authorization: bearer {words}\n")) == "200"
        assert ask(USER, served.port, GET.format(f"tracing_on?token={words}", "")) == "200"
        assert ask(USER, served.port, GET.format("tracing_on", "")) == "401"
        for wrong in ("", words[:-1], words + "0"):
            assert ask(USER, served.port, GET.format(f"tracing_on?token={wrong}", "")) == "401"
        assert ask(USER, served.port, PUT.format(f"Authorization: Bearer {words}\n")) == "204"
        assert served.get("tracing_on") == "0\n"  # root needs none
    with serving(graftrace, program, "--token", token) as served:  # it is kept
        assert ask(USER, served.port, GET.format(f"tracing_on?token={words}", "")) == "200"


def test_ipv6_knows_its_users_too(graftrace, program):
    process = graftrace.start("record", "--serve=[::1]:0", program, stdin=subprocess.PIPE)
    try:
        port = int(line_with(process.stderr, r"http://\[::1\]:(\d+)/ftrace/")[1])
        assert ask(USER, f"::1 {port}", GET.format("tracing_on", "")) == "403"
        assert ask(0, f"::1 {port}", GET.format("tracing_on", "")) == "200"
    finally:
        process.communicate(timeout=PATIENCE)


def test_a_unix_socket_is_connected_to_by_those_who_may(graftrace, program):
    folder = pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    place = folder / "trace.sock"
    for options, expected in (([], "13"), ([f"--allow-users={OTHER}"], "403"),
                              ([f"--allow-users={USER}"], "200")):
        process = graftrace.start("record", f"--serve=unix:{place}", *options, program,
                                  stdin=subprocess.PIPE)
        try:
            line_with(process.stderr, rf"serving unix:{place}\n")
            assert ask(USER, place, GET.format("tracing_on", "")) == expected, options
            done = subprocess.run(["curl", "-s", "--unix-socket", place, "http://localhost/ftrace/tracing_on"],
                                  capture_output=True, text=True, timeout=PATIENCE)
            assert done.stdout == "1\n"
        finally:
            process.communicate(timeout=PATIENCE)
        assert not place.exists()
    folder.rmdir()


def test_serve_has_the_same_walls(graftrace, program):
    graftrace("record", program, code=3)
    process = graftrace.start("serve", "-a", "127.0.0.1:0", "--allow-users", str(OTHER))
    try:
        port = port_of(process)
        assert ask(OTHER, port, GET.format("trace", "")) == "200"
        assert ask(USER, port, GET.format("trace", "")) == "403"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    graftrace("serve", "--allow-users", "nobody-knows-him", code=1)
    token = graftrace.directory / "open"
    token.write_text("0123456789abcdef0123456789abcdef\n")
    token.chmod(0o644)
    assert "chmod 600" in graftrace("serve", "--token", token, code=1).stderr
    graftrace("record", "--token", "x", program, code=2)


def test_half_sent_requests_shut_nobody_out(graftrace, program):
    with serving(graftrace, program) as served:
        half = [served.socket(b"GET /ftrace/trace HTTP/1.1\r\nHost: local") for _ in range(200)]
        assert served.get("tracing_on") == "1\n"
        assert ask(USER, served.port, GET.format("trace", "")) == "403"
        served.put("tracing_on", "0")
        for client in half:
            client.close()
