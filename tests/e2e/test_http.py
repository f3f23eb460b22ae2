# SPDX-License-Identifier: MIT
"""The control files over HTTP while a program runs, and of a recording: what is read, what is
written, and that no client harms another one or the program."""

import concurrent.futures
import json
import pathlib
import re
import signal
import socket
import subprocess
import time

import pytest

from conftest import PATIENCE, line_with
from mounted import PROGRAM
from served import Served, port_of


@pytest.fixture(scope="module")
def program(compile):
    return compile(PROGRAM, "-O2", "-pthread", "-fpatchable-function-entry=5")


@pytest.fixture
def serve(graftrace, program):
    """serve(options…) starts the program, recorded with them and --serve."""
    started = []

    def start(*options):
        process = graftrace.start("record", "--serve=127.0.0.1:0", *options, program,
                                  stdin=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return Served(process, port_of(process))

    yield start
    for process in started:
        if process.poll() is None:
            try:
                process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


@pytest.fixture
def served(serve):
    return serve()


# Reading

def test_the_index_is_a_page_for_people_and_json_for_programs(served):
    status, page, headers = served.ask("GET", "/ftrace/")
    assert status == 200 and headers["Content-Type"].startswith("text/html")
    assert 'href="trace_pipe"' in page
    status, text, headers = served.ask("GET", "/ftrace/", headers={"Accept": "application/json"})
    assert headers["Content-Type"] == "application/json"
    names = {entry["name"] for entry in json.loads(text)["entries"]}
    assert {"trace", "trace_pipe", "available_tracers", "current_tracer", "tracing_on",
            "available_filter_functions", "set_ftrace_filter", "trace_clock", "tracing_enable",
            "buffer_total_size_kb", "trace_options", "options"} <= names


def test_every_file_of_the_index_answers(served):
    def walk(path):
        entries = json.loads(served.ask("GET", path, headers={"Accept": "application/json"})[1])
        for entry in entries["entries"]:
            if entry["directory"]:
                yield from walk(path + entry["name"] + "/")
            else:
                yield path + entry["name"], entry
    files = dict(walk("/ftrace/"))
    assert any("per_thread" in path for path in files)
    for path, entry in files.items():
        if path.endswith(("/trace_pipe", "/trace_pipe_raw")):
            continue
        empty = path.removeprefix("/ftrace/") in ("printk_formats", "error_log",
                                                  "available_events", "set_event", "saved_tgids",
                                                  "dynamic_events", "uprobe_events", "uprobe_profile",
                                                  "synthetic_events", "trace_stat/function_hist0")
        empty = empty or path.endswith("/hist")  # nothing is counted there
        assert not entry["read"] or served.get(path) or empty, path


def test_the_trace_is_the_same_twice_and_tracing_goes_on(served):
    served.calls(5)
    first = served.get("trace")
    assert first.startswith("# tracer: function_graph\n")
    assert first.count("leaf();") == 5
    assert served.get("trace") == first
    served.calls(7)
    assert served.get("trace").count("leaf();") == 12


def test_trace_pipe_takes_out_what_it_gives(served):
    served.calls(5)
    text = served.pipe_until(r"other\(\);\n.*\}\n")
    assert text.count("leaf();") == 5
    assert "leaf" not in served.get("trace")
    served.calls(3)
    assert served.get("trace").count("leaf();") == 3
    text = served.pipe_until(r"other\(\);\n.*\}\n")
    assert text.count("leaf();") == 3


def test_trace_pipe_makes_room_in_a_full_ring(serve):
    served = serve("-b", "64k")
    served.calls(100000)
    assert int(re.search(r"dropped events: (\d+)", served.get("stats"))[1]) > 0
    served.pipe_until(r"leaf\(\);(?s:.*)leaf")
    client = served.socket(b"GET /ftrace/trace_pipe?follow HTTP/1.0\r\n\r\n")
    client.settimeout(1)
    try:
        while client.recv(65536):
            pass
    except TimeoutError:
        pass
    client.close()
    end = time.monotonic() + PATIENCE
    served.calls(4)
    while "other" not in served.get("trace"):  # the reader is noticed to have gone within a moment
        assert time.monotonic() < end, "nothing is recorded any more"
        time.sleep(0.01)
        served.calls(4)


def test_trace_pipe_ends_with_what_is_there_unless_it_is_followed(served):
    served.calls(5)
    assert served.get("trace_pipe").count("leaf();") == 5
    assert "leaf" not in served.get("trace_pipe")
    served.calls(30000)
    assert served.get("trace_pipe").count("leaf();") == 30000
    assert "leaf" not in served.get("trace")


def test_trace_pipe_waits_and_ends_with_the_program(served):
    client = served.socket(b"GET /ftrace/trace_pipe?follow HTTP/1.0\r\n\r\n")
    text = client.recv(1)  # it is served
    for count in (1, 2, 3):
        served.calls(count)
    served.process.stdin.close()
    while got := client.recv(65536):
        text += got
    client.close()
    assert text.startswith(b"HTTP/1.1 200")
    assert text.count(b"leaf();") == 6
    assert served.process.wait(20) == 3


def test_a_second_reader_of_trace_pipe_is_refused(served):
    client = served.socket(b"GET /ftrace/trace_pipe?follow HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert client.recv(16).startswith(b"HTTP/1.1 200")
    status, body, _ = served.ask("GET", "trace_pipe")
    assert status == 409 and "somebody else" in body
    served.put("current_tracer", "function", status=409)
    client.close()
    for _ in range(200):
        client = served.socket(b"GET /ftrace/trace_pipe?follow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = client.recv(16)
        client.close()
        if answer.startswith(b"HTTP/1.1 200"):
            return
        time.sleep(0.01)
    pytest.fail("a reader that has gone still holds trace_pipe")


# Writing

def test_tracing_is_switched(served):
    served.put("tracing_on", "0\n")
    assert served.get("tracing_on") == "0\n"
    served.calls(5)
    assert "leaf" not in served.get("trace")
    served.put("tracing_on", "1")
    served.calls(5)
    assert served.get("trace").count("leaf();") == 5
    assert served.get("tracing_enable/off") == "0\n"
    assert served.get("tracing_on") == "0\n"
    served.put("tracing_enable/on", "")
    assert served.get("tracing_on") == "1\n"


def test_filters_take_effect_at_once(served):
    assert served.get("set_ftrace_filter") == "#### all functions enabled ####\n"
    assert {"leaf", "middle", "other", "main"} <= set(
        served.get("available_filter_functions").split())
    served.put("set_ftrace_filter", "lea? middle\n")
    assert set(served.get("set_ftrace_filter").split()) == {"leaf", "middle"}
    served.calls(5)
    trace = served.get("trace")
    assert trace.count("leaf();") == 5 and "middle() {" in trace and "other" not in trace
    status, _, _ = served.ask("POST", "set_ftrace_filter", "!leaf")
    assert status == 204
    assert served.get("set_ftrace_filter") == "middle\n"
    served.put("trace", "")
    served.calls(5)
    assert "leaf" not in served.get("trace") and "middle();" in served.get("trace")
    served.put("set_ftrace_filter", "")
    served.put("set_ftrace_notrace", "leaf")
    served.put("trace", "")
    served.calls(5)
    assert "leaf" not in served.get("trace") and "other" in served.get("trace")
    served.put("set_ftrace_notrace", "")
    served.put("set_graph_function", "other")
    served.put("trace", "")
    served.calls(5)
    assert "leaf" not in served.get("trace") and "other();" in served.get("trace")


def test_graph_functions_are_of_function_graph_alone(served):
    """As on Linux: `function` takes no notice of them, before and after."""
    served.put("set_graph_function", "other")
    served.put("set_ftrace_filter", "leaf\nmiddle")
    served.put("current_tracer", "function")
    served.calls(5)
    assert set(re.findall(r": (\w+) <-", served.get("trace"))) == {"leaf", "middle"}
    served.put("current_tracer", "function_graph")
    served.calls(5)
    assert "leaf" not in served.get("trace") and "other();" in served.get("trace")
    served.put("current_tracer", "function")
    served.calls(5)
    assert len(re.findall(r": leaf <-", served.get("trace"))) == 5


def test_tracers_depth_and_threshold_are_set(served):
    served.put("current_tracer", "function")
    served.calls(5)
    trace = served.get("trace")
    assert trace.startswith("# tracer: function\n")
    assert len(re.findall(r"leaf <-middle", trace)) == 5
    served.put("current_tracer", "function_graph")
    served.put("max_graph_depth", "1")
    served.calls(5)
    trace = served.get("trace")
    assert trace.startswith("# tracer: function_graph\n")
    assert "leaf" not in trace
    served.put("max_graph_depth", "0")
    served.put("tracing_thresh", "10000000")
    served.put("trace", "")
    served.calls(5)
    assert "leaf" not in served.get("trace")
    served.put("tracing_thresh", "0")
    served.calls(5)
    assert served.get("trace").count("leaf();") == 5


def test_options_change_the_text(served):
    served.calls(1)
    assert served.get("options/funcgraph-proc") == "0\n"
    served.put("trace_options", "funcgraph-proc")
    served.put("options/funcgraph-cpu", "0")
    assert "\nfuncgraph-proc\n" in served.get("trace_options")
    trace = served.get("trace")
    assert "TASK/PID" in trace and "# CPU" not in trace


@pytest.mark.parametrize("path, value", [
    ("tracing_on", "x"), ("tracing_on", ""), ("tracing_on", "-1"), ("current_tracer", "nosuch"),
    ("set_ftrace_filter", "nosuch"), ("set_ftrace_filter", "!nosuch"), ("max_graph_depth", "deep"), ("tracing_thresh", "1.5"),
    ("trace_clock", "nosuch"), ("trace_options", "nosuch"), ("options/funcgraph-cpu", "2"),
    ("options/overwrite", "2"), ("set_graph_function", "leaf:traceoff"),
])
def test_a_bad_value_is_400_with_the_reason_and_changes_nothing(served, path, value):
    before = served.get(path)
    body = served.put(path, value, status=400)
    assert len(body) > 5
    assert served.get(path) == before


def test_a_refused_word_leaves_those_in_front_of_it_as_on_linux(served):
    assert "nosuch*" in served.put("set_ftrace_filter", "leaf nosuch* other", status=400)
    assert served.get("set_ftrace_filter") == "leaf\n"


# Refusals

def test_what_is_not_there_is_404(served):
    for path in ("nosuch", "trace/x", "options/nosuch", "per_thread/1/stats", "/", "/etc/passwd",
                 "../ftrace/trace", "trace%00", "%2e%2e/trace", "//trace"):
        status, _, _ = served.ask("GET", path)
        assert status == (200 if path == "/" else 404), path
    assert served.ask("PUT", "nosuch", "1")[0] == 404


def test_what_cannot_be_done_so_is_405_and_says_what_can(served):
    for method, path, allowed in (("PUT", "trace_pipe", "GET, HEAD"),
                                  ("POST", "available_tracers", "GET, HEAD"),
                                  ("PUT", "buffer_total_size_kb", "GET, HEAD"),
                                  ("DELETE", "trace", "GET, HEAD, PUT, POST"),
                                  ("PATCH", "tracing_on", "GET, HEAD, PUT, POST"),
                                  ("PUT", "/ftrace/", "GET, HEAD")):
        status, body, headers = served.ask(method, path, "1")
        assert status == 405 and headers["Allow"] == allowed and body, (method, path)


def test_instances_are_made_and_removed(served):
    assert served.ask("MKCOL", "instances/one")[0] == 201
    assert served.ask("MKCOL", "instances/one/")[0] == 409
    assert served.get("instances/one/current_tracer") == "nop\n"
    served.put("instances/one/set_ftrace_filter", "leaf")
    served.put("instances/one/current_tracer", "function")
    served.put("current_tracer", "nop")
    served.calls(2)
    assert served.get("instances/one/trace").count(" leaf <-") == 2
    assert served.ask("MKCOL", "other")[0] == 404
    for method, path in (("DELETE", "instances/one/trace"),
                         ("DELETE", "instances/")):
        assert served.ask(method, path)[0] == 405, (method, path)
    assert served.ask("DELETE", "instances/one")[0] == 204
    assert served.ask("DELETE", "instances/one")[0] == 404
    assert served.ask("MKCOL", "instances/.x")[0] == 400
    assert served.ask("GET", "instances/one/trace")[0] == 404


@pytest.mark.parametrize("headers", [
    {"Host": "evil.example"}, {"Host": "localhost.evil.example:9090"}, {"Host": "10.0.0.1"},
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:1"},
    {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
])
def test_web_pages_of_others_are_403(served, headers):
    for method, path, value in (("GET", "trace", None), ("PUT", "tracing_on", "0"),
                                ("POST", "tracing_on", "0"), ("GET", "tracing_enable/off", None)):
        status, body, _ = served.ask(method, path, value, headers)
        assert status == 403 and body
    assert served.get("tracing_on") == "1\n"


def test_its_own_names_are_served(served):
    for host in ("localhost", f"localhost:{served.port}", "127.0.0.1", "[::1]:9090",
                 f"127.0.0.1:{served.port}"):
        assert served.ask("GET", "tracing_on", headers={"Host": host})[0] == 200
    own = f"http://localhost:{served.port}"
    assert served.ask("PUT", "tracing_on", "1", {"Host": f"localhost:{served.port}",
                                                 "Origin": own})[0] == 204


@pytest.mark.parametrize("garbage", [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
    b"GET\r\n\r\n", b"\r\n\r\n\r\n", b"\x00" * 1000, b"GET " + b"/" * 300000 + b" HTTP/1.1\r\n\r\n",
    b"GET /ftrace/trace HTTP/9.9\r\nHost: localhost\r\n\r\n",
    b"GET /ftrace/trace HTTP/1.1\r\n" + b"X: y\r\n" * 100000 + b"\r\n",
    b"PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n0",
    b"PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n0",
    b"PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n0",
], ids=range(11))
def test_garbage_harms_nothing(served, garbage):
    client = served.socket()
    try:
        client.sendall(garbage)
        client.shutdown(socket.SHUT_WR)
        while client.recv(65536):
            pass
    except OSError:
        pass  # closed while we were still writing
    client.close()
    assert served.get("tracing_on") == "1\n"
    served.calls(2)
    assert served.get("trace").count("leaf();") == 2


# Clients of every temper, and the program beside them

def test_readers_at_once_get_the_same(served):
    served.calls(20000)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        texts = list(pool.map(lambda _: served.get("trace"), range(12)))
    assert len(set(texts)) == 1
    assert texts[0].count("leaf();") == 20000


def test_readers_that_vanish_or_stall_harm_nobody(served):
    served.calls(300000)
    asked = b"GET /ftrace/trace HTTP/1.1\r\nHost: localhost\r\n\r\n"
    stalled = [served.socket(asked) for _ in range(8)]
    for _ in range(20):
        client = served.socket(asked)
        client.recv(100)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        client.close()  # a reset in the middle
    for _ in range(20):
        served.socket(asked).close()
    assert served.get("trace").count("leaf();") == 300000
    served.put("tracing_on", "0")
    served.put("tracing_on", "1")
    for client in stalled:
        client.close()


def test_a_reader_of_a_byte_at_a_time_gets_the_whole(served):
    served.calls(50)
    whole = served.get("trace")
    client = served.socket(b"GET /ftrace/trace HTTP/1.0\r\nHost: localhost\r\n\r\n")
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    got = bytearray()
    while byte := client.recv(1):
        got += byte
    client.close()
    assert got.decode().split("\r\n\r\n", 1)[1] == whole


def test_the_program_goes_on_while_a_download_stalls(served):
    served.calls(300000)
    stalled = served.socket(b"GET /ftrace/trace HTTP/1.1\r\nHost: localhost\r\n\r\n")
    for _ in range(5):
        served.calls(1000)
    stalled.close()
    served.process.stdin.close()
    assert served.process.wait(20) == 3


def test_a_download_gives_way_to_the_program(served):
    def nices():
        found = set()
        for task in (pathlib.Path("/proc") / str(served.process.pid) / "task").iterdir():
            found.add(int((task / "stat").read_text().rsplit(")", 1)[1].split()[16]))
        return found
    served.calls(300000)
    before = nices()
    assert len(before) == 1
    client = served.socket(b"GET /ftrace/trace HTTP/1.1\r\nHost: localhost\r\n\r\n")
    client.recv(100000)
    assert max(nices()) > max(before)
    client.close()


def test_serving_ends_with_the_program(served):
    served.calls(5)
    _, err = served.process.communicate(timeout=PATIENCE)
    assert served.process.returncode == 3
    assert re.search(r"calls?, 1 thread, .* 0 lost, graftrace.data", err)
    with pytest.raises(OSError):
        served.socket()


def test_a_download_under_way_gets_to_its_end(served):
    served.calls(300000)
    client = served.socket(b"GET /ftrace/trace HTTP/1.0\r\nHost: localhost\r\n\r\n")
    got = client.recv(1000)
    served.process.stdin.close()
    time.sleep(0.2)
    while more := client.recv(1 << 20):
        got += more
    client.close()
    assert got.count(b"leaf();") == 300000
    assert served.process.wait(20) == 3


def test_after_a_crash_linger_serves_what_was_recorded(serve):
    served = serve("--linger")
    served.calls(5)
    served.process.stdin.write("crash\n")
    served.process.stdin.flush()
    line_with(served.process.stderr, "still serving")
    trace = served.get("trace")
    assert trace.count("leaf();") == 5
    assert "main() {" in trace
    assert served.get("tracing_on") in ("0\n", "1\n")
    assert "leaf\n" in served.get("available_filter_functions")
    served.put("tracing_on", "1", status=410)
    served.process.send_signal(signal.SIGINT)
    served.process.communicate(timeout=PATIENCE)
    assert served.process.returncode == -signal.SIGABRT


def test_linger_ends_after_its_time(serve):
    served = serve("--linger=0.3s")
    served.process.stdin.close()
    assert served.process.wait(20) == 3


def test_what_is_left_in_the_ring_is_in_the_recording(graftrace, served):
    served.calls(40)
    served.process.communicate(timeout=PATIENCE)
    assert graftrace("show").stdout.count("leaf();") == 40


# A recording

def test_a_recording_is_served_and_cannot_be_changed(graftrace, served):
    served.calls(5)
    served.process.communicate(timeout=PATIENCE)
    process = graftrace.start("serve", "-a", "127.0.0.1:0")
    try:
        recording = Served(process, port_of(process))
        trace = recording.get("trace")
        assert trace.count("leaf();") == 5
        assert recording.get("trace") == trace == graftrace("show").stdout
        assert "leaf\n" in recording.get("available_filter_functions")
        assert recording.get("current_tracer") == "function_graph\n"
        for path in ("current_tracer", "saved_cmdlines"):
            status, body, headers = recording.ask("PUT", path, "nop")
            assert status in (400, 405), path
        status, body, headers = recording.ask("PUT", "current_tracer", "nop")
        assert status == 405 and "recording" in body and headers["Allow"] == "GET, HEAD"
        assert recording.ask("PUT", "tracing_on", "1")[0] >= 400
        assert recording.ask("PUT", "trace", "1")[0] == 204  # and it stays
        assert recording.get("trace") == trace
        assert recording.ask("GET", "trace_pipe")[0] == 404
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert set(pool.map(lambda _: recording.get("trace"), range(16))) == {trace}
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_serve_says_what_is_wrong(graftrace):
    assert "nosuch.data" in graftrace("serve", "nosuch.data", code=1).stderr
    (graftrace.directory / "text").write_text("no recording\n")
    assert "text" in graftrace("serve", "text", code=1).stderr
    graftrace("serve", "one", "two", code=2)


def test_serve_says_that_an_address_is_in_use(graftrace, served):
    served.process.communicate(timeout=PATIENCE)
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = graftrace("serve", "-a", f"127.0.0.1:{other.getsockname()[1]}", code=1)
    assert "in use" in done.stderr
