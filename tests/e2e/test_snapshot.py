# SPDX-License-Identifier: MIT
"""snapshot: the trace of a moment. Taking it empties the ring; no record is lost or there twice."""

import contextlib
import re
import socket
import threading
import time

import pytest

from mounted import PROGRAM, leaves
from served import serving

FREED = """# tracer: function_graph
#
#
# * Snapshot is freed *
#
# Snapshot commands:
# echo 0 > snapshot : Clears and frees snapshot buffer
# echo 1 > snapshot : Allocates snapshot buffer, if not already allocated.
#                      Takes a snapshot of the main buffer.
# echo 2 > snapshot : Clears snapshot buffer (but does not allocate or free)
#                      (Doesn't have to be '2' works with any number that
#                       is not a '0' or '1')
"""


@pytest.fixture
def serve(graftrace, compile):
    program = compile(PROGRAM, "-O1", "-fpatchable-function-entry=5")
    with contextlib.ExitStack() as started:
        yield lambda *options: started.enter_context(serving(graftrace, program, *options))


def test_it_has_what_the_ring_had_and_the_ring_is_empty(serve):
    served = serve()
    assert served.get("snapshot") == FREED
    served.calls(10)
    before = served.get("trace")
    served.put("snapshot", "1\n")
    assert leaves(served.get("snapshot")) == 10
    # the call that is open at its end aside, it is the trace that it was
    assert [line for line in served.get("snapshot").splitlines() if "leaf" in line] == [
        line for line in before.splitlines() if "leaf" in line]
    assert leaves(served.get("trace")) == 0
    served.calls(5)
    assert leaves(served.get("snapshot")) == 10
    assert leaves(served.get("trace")) == 5
    served.put("snapshot", "1")
    assert leaves(served.get("snapshot")) == 5
    assert leaves(served.get("trace")) == 0
    served.put("snapshot", "2")
    assert served.get("snapshot") == FREED.replace("freed", "allocated")
    served.put("snapshot", "0")
    assert served.get("snapshot") == FREED
    served.calls(3)
    assert leaves(served.get("trace")) == 3


def test_one_of_nothing_is_allocated_and_empty(serve):
    served = serve()
    served.calls(10)
    served.put("current_tracer", "nop")
    served.put("trace", "")
    served.put("snapshot", "1")
    assert served.get("snapshot") == FREED.replace("freed", "allocated").replace("function_graph", "nop")
    served.put("current_tracer", "function_graph")
    served.calls(2)
    served.put("snapshot", "1")
    assert leaves(served.get("snapshot")) == 2


def pipe_until(served, pattern):
    """What trace_pipe gives until its text matches; its reader has ended then, and takes nothing of
    what comes next."""
    text = ""
    while not text or " 409 " in text.splitlines()[0]:  # the reader before is not forgotten yet
        time.sleep(0.01)
        with served.socket(b"GET /ftrace/trace_pipe?follow HTTP/1.0\r\nHost: localhost\r\n\r\n") as client:
            text, got = "", client.recv(65536)
            while got:
                text += got.decode()
                if re.search(pattern, text):
                    client.shutdown(socket.SHUT_WR)
                got = client.recv(65536)
    return text.split("\r\n\r\n", 1)[1]


def test_what_trace_pipe_gave_is_not_in_it(serve):
    served = serve()
    served.calls(10)
    assert leaves(pipe_until(served, r"other\(\);[^}]*}")) == 10
    served.calls(4)
    served.put("snapshot", "1")
    assert leaves(served.get("snapshot")) == 4
    served.calls(2)
    assert leaves(pipe_until(served, r"other\(\);[^}]*}")) == 2


def test_what_is_no_number_is_refused(serve):
    served = serve()
    served.put("snapshot", "x", status=400)
    served.put("snapshot", "", status=400)
    for cpu in re.findall(r">(cpu\d+)/?<", served.get("per_cpu/"))[:1]:
        served.put(f"per_cpu/{cpu}/snapshot", "1", status=400)
        assert "Invalid for per_cpu" in served.get(f"per_cpu/{cpu}/snapshot")


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
def test_no_call_is_lost_or_there_twice_while_the_program_runs(serve, options):
    served = serve("-b", "32M", "-l", "leaf", *options)
    calls, rounds = 2000, 60
    found = 0
    done = threading.Event()

    def work():
        for _ in range(rounds):
            served.calls(calls)
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    while True:
        over = done.is_set()
        served.put("snapshot", "1")
        found += leaves(served.get("snapshot"))
        if over:
            break
    worker.join()
    assert leaves(served.get("trace")) == 0
    assert found == calls * rounds
