# SPDX-License-Identifier: MIT
"""The unikernel's control files: the same tree as a program's, over HTTP, row by row."""

import collections
import json
import random
import re
import socket
import subprocess

from conftest import BUILD, PATIENCE, ROOT, line_with, wait_until
from unikernel import machine
from test_unikernel_trace import ftrace, get, put, visit

GRAFTRACE = BUILD / "cli" / "graftrace"
JSON = "Accept: application/json\r\n"

# What a program's tree has and the kernel's has not, and why.
NOT_IN_A_KERNEL = {
    "instances/": "a second ring would cost every call its price again; a program's instances are "
                  "copies in the host's memory, and a kernel has no host",
    "per_cpu/cpu#/trace_pipe_raw": "pages for trace-cmd, which reads files only; trace.data is the "
                                   "kernel's binary trace",
    "per_cpu/cpu#/trace_pipe": "a kernel's ring is taken out as a whole",
    "per_thread/#/trace_pipe": "the same",
    "per_thread/#/stats": "a kernel's writers are its CPUs: per_cpu/cpuN/stats",
    "set_event_pid": "a kernel records the events of all threads, but of those that are not traced",
    "set_event_notrace_pid": "the same",
    "options/event-fork": "the same",
    "options/stacktrace": "the same",
    **dict.fromkeys(("options/funcgraph-args", "options/funcgraph-retval", "options/funcgraph-retval-hex",
                     "options/func-args"), "values of calls are fetched in programs only"),
    "uprobe_events": "they are programs'",
    "uprobe_profile": "the same",
    "per_thread/#/trace_stat": "the profiler counts by CPU: trace_stat/functionN",
}


def tree(read, path=""):
    """Paths of all files below, with # for numbers."""
    found = set()
    for entry in read(path):
        name = entry["name"]
        shown = re.sub(r"^(cpu|function|function_hist|)\d+$", r"\1#", name)
        if not entry["directory"]:
            found.add(shown)
        elif f"{path}{name}/" in NOT_IN_A_KERNEL:
            found.add(f"{name}/")
        else:
            found |= {f"{shown}/{below}" for below in tree(read, f"{path}{name}/")}
    return found


def expect(machine, path, value, method="PUT"):
    status, words = put(machine, path, value, method)
    assert status == 204, (path, value, words)


def test_the_tree_is_a_programs_but_for_what_a_kernel_cannot_have(machine):
    program = subprocess.Popen(
        [GRAFTRACE, "record", "-o", "/dev/null", "--serve=127.0.0.1:0", "/bin/cat"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        port = int(line_with(program.stderr, r":(\d+)/ftrace/")[1])

        def of_program(path):
            status, body = get(machine, path, JSON, port)
            assert status == 200
            return json.loads(body)["entries"]

        programs = tree(of_program)
    finally:
        program.communicate(timeout=PATIENCE)  # cat ends with its input
    kernels = tree(lambda path: json.loads(get(machine, path, JSON)[1])["entries"])
    # Each has the events that it has, with the same files of each.
    assert {f"events/sched/sched_switch/{file}" for file in ("enable", "format", "id")} <= kernels & programs
    kernels, programs = ({name for name in names if not re.match("events/.*/", name)}
                         for names in (kernels, programs))
    assert programs - kernels == set(NOT_IN_A_KERNEL)
    assert kernels - programs == {"trace.data", "trace_pipe.data", "options/trace-self", "tracing_max_latency",
                                  "options/function-trace", "options/display-graph", "kprobe_events",
                                  "kprobe_profile"}
    # The kernel's README names each.
    named = (ROOT / "port" / "unikernel" / "README.md").read_text()
    for name in (set(NOT_IN_A_KERNEL) | kernels - programs):
        assert f"`{re.sub('(?<=cpu)#|(?<=/)#', 'N', name)}`" in named, name
    plain = ftrace(machine, "").decode().splitlines()
    assert "trace_marker" in plain and "per_cpu/" in plain


def test_every_file_of_the_kernel_can_be_read(machine):
    def walk(path=""):
        for entry in json.loads(get(machine, path, JSON)[1])["entries"]:
            if path == "per_thread/" and entry["name"] != "1":
                continue  # there are as many as there were connections
            if entry["directory"]:
                yield from walk(f"{path}{entry['name']}/")
            elif entry["read"] and "pipe" not in entry["name"] and "enable/" not in path:
                yield path + entry["name"]

    for path in walk():
        status, body = get(machine, path)
        assert status == 200, (path, body)


def test_marks_stand_in_the_trace_whatever_the_tracer(machine):
    expect(machine, "set_ftrace_filter", "answer")
    for tracer, line in (("function_graph", r"^ \d\) .*\|  /\* hello \d \*/$"),
                         ("function", r"trace-\d+ +\[00\d\].*: tracing_mark_write: hello \d$"),
                         ("nop", r"trace-\d+ +\[00\d\].*: tracing_mark_write: hello \d$")):
        expect(machine, "current_tracer", tracer)
        assert "hello" not in ftrace(machine, "trace").decode()  # a change of tracer empties it
        for number in range(3):
            expect(machine, "trace_marker", f"hello {number}\n")
            visit(machine, 1)
        expect(machine, "trace_marker_raw", "abcd1234")
        text = ftrace(machine, "trace").decode()
        assert len(re.findall(line, text, re.M)) == 3, text
        assert "# 64636261 buf: 31 32 33 34" in text
        assert text.count("answer") >= (3 if tracer != "nop" else 0)
    expect(machine, "current_tracer", "function_graph")
    expect(machine, "tracing_on", "0")
    assert put(machine, "trace_marker", "nobody listens")[0] == 409
    expect(machine, "tracing_on", "1")
    assert put(machine, "trace_marker_raw", "abc")[0] == 400
    expect(machine, "options/markers", "0")
    assert put(machine, "trace_marker", "x")[0] == 400
    assert "trace_marker: error: options/markers is off" in ftrace(machine, "error_log").decode()
    expect(machine, "options/markers", "1")
    expect(machine, "error_log", "")
    expect(machine, "set_ftrace_filter", "")


def test_a_refusal_is_the_one_of_a_programs_tree(machine):
    assert put(machine, "available_tracers", "nop") == (405, "'available_tracers' can only be read\n")
    assert put(machine, "set_ftrace_filter", "nosuch") == (
        400, "no function matches 'nosuch'; available_filter_functions lists them\n")


def stats(machine, path="stats"):
    return {name: int(count) for name, count in
            re.findall(r"^([a-z ]+): (\d+)$", ftrace(machine, path).decode(), re.M)}


def test_stats_add_up_by_cpu(machine):
    expect(machine, "set_ftrace_filter", "answer serve")
    expect(machine, "trace", "")
    visit(machine, 10)
    expect(machine, "tracing_on", "0")
    whole = stats(machine)
    cpus = [stats(machine, f"per_cpu/cpu{cpu}/stats") for cpu in (0, 1)]
    # switches count too; nothing was lost or taken out
    assert whole["entries"] >= 40
    for name in ("entries", "overrun", "dropped events", "read events", "bytes"):
        assert whole[name] == sum(cpu[name] for cpu in cpus), name
    assert (whole["overrun"], whole["dropped events"], whole["read events"]) == (0, 0, 0)
    # What trace_pipe gives is read, and not there any more: it ends, as tracing is off.
    assert ftrace(machine, "trace_pipe").count(b"answer()") == 10
    after = stats(machine)
    assert (after["entries"], after["read events"]) == (0, whole["entries"])
    expect(machine, "tracing_on", "1")
    expect(machine, "trace", "")
    assert stats(machine)["read events"] == 0
    expect(machine, "set_ftrace_filter", "")


def thread(machine, name):
    """The number of the newest thread of that name that runs."""
    return [line.split()[0] for line in ftrace(machine, "saved_cmdlines").decode().splitlines()
            if line.split(maxsplit=1)[1] == name][-1]


def names_in(machine):
    return set(re.findall(r"(\w+)\(\)", ftrace(machine, "trace").decode()))


def test_threads_are_traced_alone_or_not_at_all(machine):
    network = thread(machine, "net")
    assert f"{network}/\n" in ftrace(machine, "per_thread/").decode()
    assert ftrace(machine, "set_ftrace_pid") == b"no pid\n"
    expect(machine, "set_ftrace_pid", network)
    assert ftrace(machine, "set_ftrace_pid").decode().split() == [network]
    expect(machine, "trace", "")
    visit(machine, 3)
    names = names_in(machine)
    assert "tcp_input" in names and not names & {"answer", "serve", "serve_connection"}
    expect(machine, "set_ftrace_pid", "")
    expect(machine, "set_ftrace_notrace_pid", network)
    expect(machine, "trace", "")
    visit(machine, 3)
    names = names_in(machine)
    assert "answer" in names and "tcp_input" not in names
    expect(machine, "set_ftrace_notrace_pid", "")
    # With function-fork the threads that the listed one starts come along.
    expect(machine, "options/function-fork", "1")
    expect(machine, "set_ftrace_pid", "1")
    expect(machine, "trace", "")
    visit(machine, 3)
    assert {"serve_connection", "answer"} <= names_in(machine)
    assert len(ftrace(machine, "set_ftrace_pid").split()) >= 4
    expect(machine, "options/function-fork", "0")
    expect(machine, "set_ftrace_pid", "")
    assert put(machine, "set_ftrace_pid", "one")[0] == 400


def test_functions_switch_tracing_and_take_snapshots(machine):
    expect(machine, "set_ftrace_filter", "answer serve")
    expect(machine, "set_ftrace_filter", "answer:traceoff:2", "POST")
    assert "answer:traceoff:count=2" in ftrace(machine, "set_ftrace_filter").decode()
    for left in (1, 0):
        visit(machine, 2)
        assert ftrace(machine, "tracing_on") == b"0\n"
        assert f"answer:traceoff:count={left}" in ftrace(machine, "set_ftrace_filter").decode()
        expect(machine, "tracing_on", "1")
    visit(machine, 2)
    assert ftrace(machine, "tracing_on") == b"1\n"  # it has acted as often as it may
    expect(machine, "set_ftrace_filter", "!answer:traceoff:0", "POST")
    expect(machine, "tracing_on", "0")
    expect(machine, "set_ftrace_filter", "strncmp:traceon", "POST")  # of a function nobody filters
    visit(machine, 1)
    assert ftrace(machine, "tracing_on") == b"1\n"
    expect(machine, "set_ftrace_filter", "!strncmp:traceon", "POST")

    expect(machine, "set_ftrace_filter", "answer:stacktrace", "POST")
    expect(machine, "trace", "")
    visit(machine, 1)
    assert re.search(r"<stack trace>\n => answer\n => serve\n",
                     ftrace(machine, "trace").decode())
    expect(machine, "set_ftrace_filter", "!answer:stacktrace", "POST")

    expect(machine, "set_ftrace_filter", "answer:snapshot:1", "POST")
    expect(machine, "trace_marker", "before")
    visit(machine, 1)
    wait_until(lambda: b"* Snapshot is freed *" not in ftrace(machine, "snapshot"), "the snapshot")
    text = ftrace(machine, "snapshot")
    assert b"/* before */" in text and b"/* before */" not in ftrace(machine, "trace")
    expect(machine, "set_ftrace_filter", "!answer:snapshot:0", "POST")
    assert put(machine, "set_ftrace_filter", "!answer:snapshot:0", "POST")[0] == 400

    expect(machine, "trace_marker", "for the console")
    expect(machine, "set_ftrace_filter", "answer:dump:1", "POST")
    visit(machine, 1)
    machine.wait_for(r"/\* for the console \*/")
    expect(machine, "set_ftrace_filter", "!answer:dump:0", "POST")
    assert sorted(ftrace(machine, "set_ftrace_filter").split()) == [b"answer", b"serve"]
    assert put(machine, "set_ftrace_filter", "no_such_function:traceoff", "POST")[0] == 400
    expect(machine, "set_ftrace_filter", "")


def test_a_download_does_not_stop_the_tracing(machine):
    visit(machine, 20)
    with machine.connect(machine.trace_port) as connection:
        connection.sendall(b"GET /ftrace/trace HTTP/1.0\r\nHost: localhost\r\n\r\n")
        text = connection.recv(1000)
        before = stats(machine)["entries"]
        visit(machine, 5)
        assert stats(machine)["entries"] > before + 100
        while piece := connection.recv(1 << 16):
            text += piece
    assert text.count(b" answer() {") >= 20 and text.endswith(b"\n")


def test_a_snapshot_is_taken_replaced_and_freed(machine):
    assert put(machine, "snapshot", "0")[0] == 204
    assert b"* Snapshot is freed *" in ftrace(machine, "snapshot")
    for moment in ("first", "second"):
        expect(machine, "trace_marker", f"the {moment}")
        expect(machine, "snapshot", "1")
        assert f"/* the {moment} */" in ftrace(machine, "snapshot").decode()
    assert b"/* the first */" not in ftrace(machine, "snapshot")
    found = [b"/* the second */" in ftrace(machine, f"per_cpu/cpu{cpu}/snapshot") for cpu in (0, 1)]
    assert sorted(found) == [False, True]
    expect(machine, "snapshot", "2")
    assert b"* Snapshot is allocated *" in ftrace(machine, "snapshot")
    expect(machine, "snapshot", "0")


def profile(machine):
    rows = {}
    for cpu in (0, 1):
        for line in ftrace(machine, f"trace_stat/function{cpu}").decode().splitlines()[2:]:
            name, hits, time_us = line.split()[:3]
            there = rows.setdefault(name, [0, 0.0])
            there[0] += int(hits)
            there[1] += float(time_us)
    return rows


def timed(machine):
    """{function: calls in its histograms}"""
    found = collections.Counter()
    for cpu in (0, 1):
        for part in ftrace(machine, f"trace_stat/function_hist{cpu}").decode().split("\n\n"):
            name, _, *lines = part.splitlines() or ["", ""]
            found[name] += sum(int(line.split("|")[0].split()[-1]) for line in lines)
    return found


def test_the_profiler_counts_every_call(machine):
    for tracer in ("nop", "function_graph"):
        expect(machine, "current_tracer", tracer)
        expect(machine, "function_profile_enabled", "1")
        visit(machine, 7)
        expect(machine, "function_profile_enabled", "0")
        rows = profile(machine)
        assert (rows["answer"][0], rows["serve"][0]) == (7, 7)
        assert timed(machine)["answer"] == timed(machine)["serve"] == 7
        assert rows["serve"][1] >= rows["answer"][1] > 0
        expect(machine, "options/graph-time", "0")
        alone = profile(machine)
        assert alone["serve"][1] < rows["serve"][1]
        expect(machine, "options/graph-time", "1")
    # A new beginning forgets what was counted; it does not run beside what has no returns.
    expect(machine, "function_profile_enabled", "1")
    assert put(machine, "current_tracer", "function")[0] == 409
    visit(machine, 1)
    assert profile(machine)["answer"][0] == 1
    expect(machine, "function_profile_enabled", "0")
    expect(machine, "current_tracer", "function")
    assert put(machine, "function_profile_enabled", "1")[0] == 409
    expect(machine, "current_tracer", "function_graph")


def test_the_profiler_counts_threads_that_the_trace_leaves_out_as_on_linux(machine):
    network = thread(machine, "net")
    expect(machine, "set_ftrace_pid", network)
    expect(machine, "current_tracer", "nop")
    expect(machine, "function_profile_enabled", "1")
    visit(machine, 7)
    assert profile(machine)["answer"][0] == 7
    # A list that is set while it counts is none of its business either.
    expect(machine, "set_ftrace_pid", "")
    expect(machine, "set_ftrace_notrace_pid", network)
    calls = profile(machine)["tcp_input"][0]
    visit(machine, 5)
    assert profile(machine)["answer"][0] == 12 and profile(machine)["tcp_input"][0] > calls
    # Beside a tracer it counts what is traced.
    expect(machine, "current_tracer", "function_graph")
    calls = profile(machine)["tcp_input"][0]
    visit(machine, 3)
    assert profile(machine)["answer"][0] == 15 and profile(machine)["tcp_input"][0] == calls
    assert "tcp_input" not in names_in(machine)
    expect(machine, "set_ftrace_notrace_pid", "")
    expect(machine, "function_profile_enabled", "0")


def test_events_of_threads_that_are_left_out_are_not_recorded_beside_the_profiler(machine):
    exits = r"sched_process_exit: comm=(\w+)"
    expect(machine, "current_tracer", "nop")
    expect(machine, "set_ftrace_pid", thread(machine, "net"))
    expect(machine, "events/sched/sched_process_exit/enable", "1")
    expect(machine, "function_profile_enabled", "1")
    expect(machine, "trace", "")
    visit(machine, 3)
    assert not re.findall(exits, ftrace(machine, "trace").decode())
    expect(machine, "set_ftrace_pid", "")
    visit(machine, 3)
    assert len(re.findall(exits, ftrace(machine, "trace").decode())) >= 3
    expect(machine, "function_profile_enabled", "0")
    expect(machine, "events/sched/sched_process_exit/enable", "0")
    expect(machine, "current_tracer", "function_graph")


def test_threads_that_run_keep_their_names_whatever_number_of_threads_comes_and_goes(machine):
    network = thread(machine, "net")
    expect(machine, "set_ftrace_filter", "tcp_input")
    expect(machine, "current_tracer", "function")
    for _ in range(1100):  # each connection has a thread of its own
        with socket.create_connection(("127.0.0.1", machine.port), timeout=PATIENCE) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            while connection.recv(1 << 16):
                pass
    names = set(re.findall(r"^ *(\S+)-(\d+) +\[00\d\]", ftrace(machine, "trace").decode(), re.M))
    assert ("net", network) in names and not [name for name in names if name[0] == "<...>"]
    assert f"{network}/\n" in ftrace(machine, "per_thread/").decode()
    expect(machine, "saved_cmdlines_size", "128")
    assert thread(machine, "net") == network
    expect(machine, "set_ftrace_filter", "")
    expect(machine, "current_tracer", "function_graph")


def test_clocks_cpus_and_pauses_are_chosen(machine):
    expect(machine, "current_tracer", "function")
    stamps = {}
    for clock in ("x86-tsc", "uptime", "local"):
        expect(machine, "trace_clock", clock)
        visit(machine, 2)
        text = ftrace(machine, "trace").decode()
        stamps[clock] = re.search(r"\] +\S+ +([\d.]+): \w+ <-", text)[1]
    assert "." in stamps["local"] and "." not in stamps["x86-tsc"] + stamps["uptime"]
    assert int(stamps["x86-tsc"]) > int(stamps["uptime"])
    expect(machine, "tracing_cpumask", "2")
    visit(machine, 2)
    assert set(re.findall(r"\[(\d+)\]", ftrace(machine, "trace").decode())) <= {"001"}
    expect(machine, "tracing_cpumask", "3")
    expect(machine, "current_tracer", "function_graph")
    expect(machine, "options/pause-on-trace", "1")
    visit(machine, 2)
    assert b"answer" in ftrace(machine, "trace")
    assert ftrace(machine, "tracing_on") == b"1\n"
    expect(machine, "options/pause-on-trace", "0")
    assert "***" not in machine.output()


# Bad manners

def throw(machine, port, data, seconds=20):
    """Sends bytes to a port, half of the time hangs up rudely, and reads what comes."""
    with machine.connect(port) as connection:
        connection.settimeout(seconds)
        try:
            connection.sendall(data)
            if data[-1:] < b"\x80":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                return b""
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while chunk := connection.recv(1 << 16):
                answer += chunk
            return answer
        except ConnectionError:
            return b""  # the guest may hang up first


def garbage(noise, files):
    """Bytes of a client that is broken: noise, and requests of which something was changed."""
    kind = noise.randrange(4)
    if kind == 0:
        return noise.randbytes(noise.randrange(1, 6000))
    body = noise.choice([b"", b"1", b"0", b"*", b"!*", b"a:traceoff:99999999999999999999", b"\0" * 40,
                         noise.randbytes(noise.randrange(1, 300)), b"x" * 3000])
    whole = (b"%s /ftrace/%s HTTP/1.%d\r\nHost: localhost\r\nContent-Length: %d\r\n%s\r\n%s" % (
        noise.choice([b"GET", b"PUT", b"POST", b"HEAD", b"BREW"]), noise.choice(files).encode(),
        noise.randrange(3), len(body) + noise.choice([0, 0, 0, 5, -1]),
        noise.choice([b"", b"Expect: 100-continue\r\n", b"Transfer-Encoding: chunked\r\n",
                      b"Accept: application/json\r\n"]), body))
    if kind == 1:
        return whole
    changed = bytearray(whole)
    for _ in range(noise.randrange(1, 8)):
        changed[noise.randrange(len(changed))] = noise.randrange(256)
    return bytes(changed) if kind == 2 else bytes(changed) + noise.randbytes(noise.randrange(500))


def test_garbage_on_both_ports_ends_nothing(machine):
    noise = random.Random(9090)
    # Not the ones that wait for ever, nor the one that writes to the console.
    files = [line for line in ftrace(machine, "").decode().splitlines() if "pipe" not in line]
    files += ["per_cpu/cpu0/stats", "per_thread/1/trace", "options/trace-self", "trace_stat/function1",
              "%2e%2e/x", "per_cpu/cpu99999999999/trace", "a" * 3000]
    answered = 0
    for _ in range(150):
        answer = throw(machine, machine.trace_port, garbage(noise, files))
        assert not answer or answer.startswith(b"HTTP/1.1 "), answer[:200]
        answered += bool(answer)
    for _ in range(60):
        throw(machine, machine.port, garbage(noise, ["..", "primes/9", "status"]))
    assert answered > 20
    # What was set by chance is set back; then the trace is right.
    for path, value in (("options/trace-self", "0"), ("set_ftrace_pid", ""),
                        ("set_ftrace_notrace_pid", ""), ("set_graph_function", ""),
                        ("set_graph_notrace", ""), ("set_ftrace_notrace", ""),
                        ("max_graph_depth", "0"), ("tracing_thresh", "0"), ("snapshot", "0"),
                        ("function_profile_enabled", "0"), ("tracing_cpumask", "3"),
                        ("set_ftrace_filter", "answer serve"), ("trace_clock", "local"),
                        ("current_tracer", "function_graph"), ("tracing_on", "1")):
        expect(machine, path, value)
    expect(machine, "trace", "")
    visit(machine, 5)
    text = ftrace(machine, "trace").decode()
    assert len(re.findall(r"\|  serve\(\) {$", text, re.M)) == 5
    # no leaf where an interrupt comes
    assert len(re.findall(r"\|    answer\(\)(?:;| {)$", text, re.M)) == 5
    assert "***" not in machine.output() and machine.process.poll() is None
    expect(machine, "set_ftrace_filter", "")
