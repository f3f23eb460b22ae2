# SPDX-License-Identifier: MIT
"""Tracing inside the unikernel: the trace is whole, its files behave, and nobody's bad manners end it."""

import collections
import os
import re
import socket
import subprocess
import threading
import time

import pytest

import format_reader
from conftest import BUILD, PATIENCE, ROOT, wait_until
from unikernel import LIMIT_S, Machine, balance_in, image, machine

GRAFTRACE = BUILD / "cli" / "graftrace"
COUNTED = re.compile(r"stress: calls (.*)")


@pytest.fixture(scope="module", autouse=True)
def built():
    for target in ("faults", "slow-memcpy", "steps", "stress", "webserver"):
        image(target, TRACE="ftrace")


def get(machine, path, more="", port=None):
    """(status, body) of a file of the guest's, or of who serves at another port."""
    answer = machine.ask(f"GET /ftrace/{path} HTTP/1.1\r\nHost: localhost\r\n{more}"
                         "Connection: close\r\n\r\n", port or machine.trace_port)
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), unchunked(body) if b"chunked" in head else body


def ftrace(machine, path):
    status, body = get(machine, path)
    assert status == 200, body
    return body


def unchunked(body):
    whole = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        size = int(size, 16)
        if not size:
            return whole
        whole += body[:size]
        body = body[size + 2:]
    raise AssertionError("the last chunk is missing")


def put(machine, path, text, method="PUT"):
    answer = machine.ask(f"{method} /ftrace/{path} HTTP/1.1\r\nHost: localhost\r\n"
                         f"Connection: close\r\nContent-Length: {len(text)}\r\n\r\n{text}",
                         machine.trace_port)
    return int(answer.split()[1]), answer.partition(b"\r\n\r\n")[2].decode()


def report(path, *options):
    done = subprocess.run([GRAFTRACE, "report", *options, path], capture_output=True, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def calls_in(recording):
    """Calls and those left open, by function, as report counts them."""
    found = {}
    for line in report(recording).splitlines():
        if row := re.match(r" +[\d.]+ +(\d+) +(\d+) .* (\S+)$", line):
            found[row[3]] = int(row[1]), int(row[2])
    return found


def words_in(recording, path):
    """Entries and returns by function, counted from the words alone, by another reader."""
    data = format_reader.read(path)
    return data, *entries_and_returns(data)


def entries_and_returns(data):
    entries, returns = collections.Counter(), collections.Counter()
    for writer in data.writers:
        for sub in writer.sub_buffers:
            for word, behind in format_reader.records_of(sub.words):
                function, is_return = word >> 33, word >> 32 & 1
                if function < 0x7fffff00:
                    (returns if is_return else entries)[function] += 1
                elif function == 0x7fffff06 and word & 0xffffffff == 1 << 16 | 3:
                    returns[behind[0] >> 33] += 1
    return entries, returns


class Monitor:
    """QEMU's monitor, on a Unix socket: sends `nmi` to all processors until it is closed."""

    def __init__(self, path):
        self.path = path
        self.sent = 0
        self.over = False
        self.thread = threading.Thread(target=self.send)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()

    def send(self):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(self.path))
            while not self.over:
                # it answers with its prompt: as many as QEMU takes
                connection.sendall(b"nmi\n")
                connection.recv(4096)
                self.sent += 1


@pytest.mark.parametrize("cpus, nmis, arguments", [(1, False, ""), (8, True, ""), (2, False, "-singlestep"),
                                                   (2, True, "-singlestep")])
def test_every_call_of_the_target_is_in_the_trace_and_nothing_else(tmp_path, cpus, nmis, arguments):
    monitor = Monitor(tmp_path / "monitor")
    with Machine(TARGET="stress", TRACE="ftrace", CPUS=cpus, LINGER=60,
                 OPTIONS="nmi=1" if nmis else "",
                 QEMU_ARGS=f"{arguments} -monitor unix:{monitor.path},server=on,wait=off") as machine:
        if nmis:
            machine.wait_for("up after")
            with monitor:
                machine.wait_for("stress: calls stress_nmi", timeout=120)
            assert monitor.sent > 0
        machine.wait_for("stress: all is well", timeout=120)
        machine.wait_for("can be fetched")
        counted = " ".join(COUNTED.findall(machine.output())).split()
        recording = tmp_path / "trace.data"
        recording.write_bytes(ftrace(machine, "trace.data"))
    expected = dict(zip(counted[::2], map(int, counted[1::2])))
    assert expected["stress_recurse"] == 16 * 40 * 201
    if nmis:
        assert expected["stress_nmi"] > 20
        assert expected["stress_below_nmi"] == 2 * expected["stress_nmi"]
    found = calls_in(recording)
    assert {name: found[name] for name in expected} == {
        name: (calls, 0) for name, calls in expected.items()}
    data, entries, returns = words_in(recording, recording)
    assert not data.problems
    numbers = {name: number for number, name in data.names.items()}
    for name, calls in expected.items():
        assert (entries[numbers[name]], returns[numbers[name]]) == (calls, calls), name
    still_open = {data.names[function] for stack in balance_in(data).values() for function in stack}
    assert "thread_run" in still_open and not still_open & set(expected)


def stacks_in(data, ordered):
    """Follows each context's calls through the words of one CPU. Returns how many calls there were;
    what is torn, lost or (of the functions `ordered`) out of order fails."""
    calls = 0
    for writer in data.writers:
        stacks = collections.defaultdict(list)
        clocks = collections.defaultdict(int)
        for sub in writer.sub_buffers:
            context, high, last = sub.header.context, sub.header.clock >> 32, sub.header.clock
            for word, behind in format_reader.records_of(sub.words):
                function, is_return, argument = word >> 33, word >> 32 & 1, word & 0xffffffff
                assert word, "a hole"
                if function == 0x7fffff01:
                    high, last = argument, argument << 32
                elif function == 0x7fffff03:
                    context = argument
                elif function == 0x7fffff06:
                    if argument >> 16 == 1:  # a return, and the depth that it leaves
                        assert stacks[context].pop() == behind[0] >> 33
                        assert len(stacks[context]) == behind[2]
                elif function == 0x7fffff08:  # behind a context: how deep it is there
                    assert len(stacks[context]) == argument
                else:
                    assert function < 0x7fffff00, hex(function)
                    clock = high << 32 | argument
                    if clock + (1 << 31) < last:  # its clock word stands behind it
                        clock += 1 << 32
                    last = clock
                    # What an interrupt did on the same stack may run ahead of its place.
                    if function in ordered and context != 0x40000000:
                        assert clock >= clocks[context]
                        clocks[context] = clock
                    calls += not is_return
                    if is_return:
                        assert stacks[context].pop() == function
                    else:
                        stacks[context].append(function)
    return calls


def test_a_call_after_each_instruction_of_the_recording_path_harms_no_record(tmp_path):
    # One processor: no thread's calls lie with two of them.
    with Machine(TARGET="steps", TRACE="ftrace", CPUS=1, LINGER=60) as machine:
        machine.wait_for("can be fetched")
        output = machine.output()
        recording = tmp_path / "trace.data"
        recording.write_bytes(ftrace(machine, "trace.data"))
    counted = re.search(r"steps: calls (.*)", output)[1].split()
    expected = dict(zip(counted[::2], map(int, counted[1::2])))
    seen = re.search(r"steps: (\d+) instructions of the recorder, (\d+) of its straight lines, "
                     r"(\d+) calls waited", output)
    assert int(seen[1]) > 130 and int(seen[2]) >= 50 and int(seen[3]) >= 10
    assert expected["steps_outer"] == 5201 and expected["steps_after"] > 5000
    data, entries, returns = words_in(recording, recording)
    assert not data.problems and not sum(data.lost)
    numbers = {name: number for number, name in data.names.items()}
    for name, calls in expected.items():
        assert (entries[numbers[name]], returns[numbers[name]]) == (calls, calls), name
    own = {numbers[name] for name in expected}
    assert stacks_in(data, own) > sum(expected.values())


def long_calls_in(data):
    """The calls that did not return where they began (another sub-buffer, perhaps another CPU), as
    (entry's clock, return's clock), and how many threads ran on more than one CPU."""
    calls, cpus = [], collections.defaultdict(set)
    for number, writer in enumerate(data.writers):
        for sub in writer.sub_buffers:
            high, last = sub.header.clock >> 32, sub.header.clock
            for word, behind in format_reader.records_of(sub.words):
                function, argument = word >> 33, word & 0xffffffff
                if function == 0x7fffff01:
                    high, last = argument, argument << 32
                elif function == 0x7fffff03 and 0 < argument < 0x40000000:
                    cpus[argument].add(number)
                elif function == 0x7fffff06:
                    if argument >> 16 == 1:
                        clock = high << 32 | behind[0] & 0xffffffff
                        if clock + (1 << 31) < last:
                            clock += 1 << 32
                        calls.append((behind[1], clock))
                elif function < 0x7fffff00:
                    last = max(last, high << 32 | argument)
    return calls, sum(len(seen) > 1 for seen in cpus.values())


def test_a_clock_that_is_apart_is_found_and_moved(tmp_path):
    skew = 20_000_000_000  # ticks: far more than any measurement can be wrong
    moves = 0
    for _ in range(5):  # a busy machine may let one processor do it all
        with Machine(TARGET="stress", TRACE="ftrace", CPUS=2, LINGER=60,
                     OPTIONS=f"skew={skew}") as machine:
            machine.wait_for("can be fetched")
            found = machine.wait_for(r"the clock of CPU 1 is (\d+) ns ahead, wrong by (\d+) at most: "
                                     r"corrected\n")
            recording = tmp_path / "trace.data"
            recording.write_bytes(ftrace(machine, "trace.data"))
        data = format_reader.read(recording)
        _, _, mult, shift = data.clock
        off, error = int(found[1]), int(found[2]) + 1000
        assert abs(off - (skew * mult >> shift)) <= error + off // 1000
        calls, moves = long_calls_in(data)
        # No call returns before it began, as far as clocks are known.
        assert all(end - begin >= -2 * (error << shift) // mult for begin, end in calls)
        if moves:
            break
    assert moves and calls


@pytest.mark.parametrize("fault, cpus", [
    ("interrupt", 2), ("lock", 2), ("panic", 1), ("null", 2), ("overflow", 2), ("deadlock", 2), ("memory", 2),
    ("abort", 1), ("divide", 2), ("jump", 1)])
def test_the_trace_of_a_kernel_that_crashed_can_be_fetched(tmp_path, fault, cpus):
    with Machine(TARGET="faults", TRACE="ftrace", CPUS=cpus, LINGER=60,
                 OPTIONS=f"fault={fault}", MEMORY="64M" if fault == "memory" else "512M") as machine:
        machine.wait_for("can be fetched for 60 seconds")
        text = ftrace(machine, "trace").decode()
        recording = tmp_path / "trace.data"
        recording.write_bytes(ftrace(machine, "trace.data"))
        assert ftrace(machine, "current_tracer") == b"function_graph\n"
        assert machine.process.poll() is None
        output = machine.output()
    assert "main()" in text.replace("main() {", "main()")
    assert calls_in(recording)["main"][0] == 1
    said = {"panic": r"\*\*\* kernel crash: the target asked for it on CPU \d, thread 1 \(main\)",
            "interrupt": r"\*\*\* page fault: .*, in an interrupt\n",
            "overflow": r"\*\*\* stack overflow on CPU \d, thread 1 \(main\)\n",
            "deadlock": r"\*\*\* deadlock: 2 threads wait for ever\n",
            "memory": r"faults: malloc gave \d+ MiB, then nothing\n",
            "abort": r"\*\*\* invalid instruction on CPU \d, thread 1 \(main\)\n",
            "divide": r"\*\*\* division by zero on CPU \d, thread 1 \(main\)\n",
            "jump": r"\*\*\* page fault: execution at 0+ on CPU \d, thread 1 \(main\)\n"}
    assert re.search(said.get(fault, r"\*\*\* page fault: .*, thread 1 \(main\)\n"), output)
    if fault in ("deadlock", "memory"):  # these stop nothing, and tracing goes on
        assert f"fault_{fault}+0x" in output
        return
    # The last calls of each processor, the crash's own last.
    last = {"panic": "fault_panic", "overflow": "fault_overflow", "abort": "abort", "divide": "fault_divide",
            "jump": "fault_jump"}
    assert re.search(r"^CPU \d, last call last:(\n  (->|<-) \w+)+", output, re.M)
    # Where a tick came between that call and the fault, the switch back to its thread is the last one.
    assert re.search(rf"\n  -> {last.get(fault, 'fault_null')}\n|\n  <- schedule\n(?!  (->|<-))", output), output


def test_the_page_of_the_slow_copy_can_be_followed(tmp_path):
    """Each command of doc/slow-copy.md, in its order, does what the page says."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "doc" / "slow-copy.md").read_text(), re.M | re.S)
    commands = [line for block in blocks for line in block.splitlines()]
    options = re.fullmatch(r"make clean && make (.*) run", commands.pop(0))[1]
    with Machine(**dict(word.split("=", 1) for word in options.split())) as machine:
        machine.wait_for("can be fetched", timeout=110)
        for command in commands:
            if command.startswith("make "):
                break  # the same again, mended
            words = command.replace("localhost:9090", f"localhost:{machine.trace_port}").split()
            if words[0].startswith("tools/"):
                words[0] = ROOT / words[0]
            process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True,
                                       stderr=subprocess.STDOUT,
                                       env={**os.environ, "BUILD": str(BUILD), "BROWSER": "true",
                                            "DISPLAY": "", "WAYLAND_DISPLAY": ""})
            if "trace_pipe" in command:  # it waits for more
                pipe = tmp_path / "trace_pipe"
                wait_until(lambda: pipe.exists() and b"copy_bytes" in pipe.read_bytes(), "records")
                process.terminate()
                process.communicate(timeout=PATIENCE)
                continue
            output, _ = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0, output
        assert ftrace(machine, "current_tracer") == b"function\n"
        for name in ("copy_bytes", "fill", "checksum", "move_buffer"):  # as the source has them
            assert put(machine, "set_ftrace_filter", name)[0] == 204
    text = (tmp_path / "trace").read_text()
    assert text.startswith("# tracer: function_graph\n#\n# CPU  DURATION                  FUNCTION CALLS\n")
    assert re.search(r"^ \d\) .*copy_bytes\(\);$", text, re.M)
    # round_trip's last call lies in it
    assert re.search(r"\|    round_trip\(\) {\n(.*\n)*? \d\) .*\|      move_buffer\(\) {$", text, re.M)
    # The program's calls, not what the tracer's own start took: to patch, to begin to serve.
    assert not re.search(r"paging_write_text|entry_of|stack_allocate", text.partition("round_trip")[0])
    assert "copy_bytes" in (tmp_path / "trace.csv").read_text()
    assert "copy_bytes" in (tmp_path / "trace.html").read_text()


def visit(machine, count=20):
    for number in range(count):
        assert machine.get(f"/primes/{number * 50 + 10}")[0] == 200


def test_the_trace_is_text_as_linux_has_it(machine):
    visit(machine)
    text = ftrace(machine, "trace").decode()
    assert text.startswith("# tracer: function_graph\n#\n# CPU  DURATION                  FUNCTION CALLS\n")
    assert re.search(r"^ \d\) +[\d.]+ us +\| +\w+\(\);$", text, re.M)
    assert "serve()" in text
    assert re.search(r"^ \d\) +<idle>-0 +=> +\S+-\d+ +$", text, re.M)
    assert re.search(r"^ \d\)   ==========> \|$", text, re.M)


def test_what_graftrace_reads_of_files_it_reads_of_the_kernels(machine, tmp_path):
    visit(machine)
    recording = tmp_path / "kernel.data"
    recording.write_bytes(ftrace(machine, "trace.data"))
    table = report(recording)
    assert "serve_connection" in table and "Outside:" not in table
    assert "net-" in report(recording, "--by", "thread")
    for command in (["show", recording], ["parse-trace", recording, "-o", tmp_path / "trace.csv"],
                    ["runtime-breakdown", tmp_path / "trace.csv", "-o", tmp_path / "out.html"]):
        done = subprocess.run([GRAFTRACE, *command], capture_output=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        # Each thread of the kernel waits in a call, wherever it ran last.
        assert command[0] != "parse-trace" or b" calls still open at the end" in done.stderr


def test_a_pipe_gives_each_record_once_and_goes_on(machine):
    with machine.connect(machine.trace_port) as connection:
        connection.sendall(b"GET /ftrace/trace_pipe?follow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        heard = b""
        for _ in range(3):
            visit(machine, 3)
            before = heard.count(b" answer()")
            end = time.monotonic() + 30
            while heard.count(b" answer()") < before + 1 and time.monotonic() < end:
                heard += connection.recv(1 << 16)
            assert heard.count(b" answer()") > before
        status, body = get(machine, "trace_pipe")
        assert status == 409, body
    wait_until(lambda: put(machine, "trace", "")[0] == 204, "the guest sees that the reader left")


def test_a_ring_that_was_full_goes_on_when_it_is_cleared():
    """Calls are taken out of a kernel whose ring stays full, and come back."""
    def dropped(machine):
        return sum(int(re.search(r"dropped events: (\d+)",
                                 ftrace(machine, f"per_cpu/cpu{cpu}/stats").decode())[1])
                   for cpu in range(2))

    with Machine(TARGET="webserver", TRACE="ftrace", CPUS=2, BUFFER="1M") as machine:
        machine.wait_for("webserver: http")
        end = time.monotonic() + LIMIT_S
        while not dropped(machine):
            assert time.monotonic() < end
            visit(machine)
        visit(machine)
        assert put(machine, "trace", "")[0] == 204
        end = time.monotonic() + LIMIT_S
        while b"serve()" not in ftrace(machine, "trace"):
            assert time.monotonic() < end
            visit(machine, 1)
        # a mark needs no call that is traced
        assert put(machine, "current_tracer", "nop")[0] == 204
        assert put(machine, "trace_marker", "with nothing traced")[0] == 204
        assert b"with nothing traced" in ftrace(machine, "trace")


def test_tracers_and_filters_are_chosen_at_run_time(machine):
    assert put(machine, "set_ftrace_filter", "ans?er serve")[0] == 204
    assert put(machine, "trace", "")[0] == 204
    visit(machine, 5)
    names = set(re.findall(rb"(\w+)\(\)", ftrace(machine, "trace")))
    assert names == {b"serve", b"answer"}
    assert sorted(ftrace(machine, "set_ftrace_filter").split()) == [b"answer", b"serve"]
    assert put(machine, "current_tracer", "function")[0] == 204
    assert put(machine, "trace", "")[0] == 204
    visit(machine, 2)
    text = ftrace(machine, "trace").decode()
    assert re.search(r"main-\d+ +\[00[01]\].*: answer <-serve$", text, re.M), text
    assert put(machine, "current_tracer", "nop")[0] == 204
    assert ftrace(machine, "enabled_functions") == b""
    assert put(machine, "set_ftrace_filter", "")[0] == 204
    assert put(machine, "set_graph_function", "serve")[0] == 204
    assert put(machine, "current_tracer", "function_graph")[0] == 204
    assert put(machine, "trace", "")[0] == 204
    visit(machine, 3)
    text = ftrace(machine, "trace").decode()
    assert len(re.findall(r"\|  serve\(\) {$", text, re.M)) == 3
    assert "serve_connection" not in text and "answer()" in text
    # the tracer function takes no notice of it
    assert put(machine, "current_tracer", "function")[0] == 204
    visit(machine, 3)
    text = ftrace(machine, "trace").decode()
    assert ": serve_connection <-" in text and ": answer <-" in text
    assert put(machine, "current_tracer", "function_graph")[0] == 204
    assert put(machine, "set_graph_function", "")[0] == 204
    assert put(machine, "set_graph_notrace", "serve")[0] == 204
    assert ftrace(machine, "set_graph_notrace") == b"serve\n"
    assert put(machine, "trace", "")[0] == 204
    visit(machine, 3)
    text = ftrace(machine, "trace").decode()
    assert "serve_connection" in text
    assert not re.search(r"\b(serve|answer)\(", text), text
    assert put(machine, "set_graph_notrace", "")[0] == 204
    assert put(machine, "current_tracer", "function")[0] == 204
    assert put(machine, "set_ftrace_filter", "answer")[0] == 204
    assert put(machine, "options/func_stack_trace", "1")[0] == 204
    assert put(machine, "trace", "")[0] == 204
    visit(machine, 2)
    text = ftrace(machine, "trace").decode()
    assert len(re.findall(r": answer <-serve$", text, re.M)) == 2, text
    assert len(re.findall(r": <stack trace>\n => answer\n => serve\n => ", text)) == 2, text
    assert put(machine, "options/func_stack_trace", "0")[0] == 204
    assert put(machine, "set_ftrace_filter", "")[0] == 204
    assert put(machine, "current_tracer", "function_graph")[0] == 204
    assert put(machine, "tracing_on", "0")[0] == 204
    assert put(machine, "trace", "")[0] == 204
    visit(machine, 2)
    assert b"answer" not in ftrace(machine, "trace")
    assert put(machine, "tracing_on", "1")[0] == 204
    status, words = put(machine, "set_ftrace_filter", "no_such_function")
    assert status == 400 and "no_such_function" in words


def test_serving_the_files_is_not_traced(machine, tmp_path):
    assert put(machine, "trace", "")[0] == 204
    visit(machine, 60)

    def words():
        (tmp_path / "idle.data").write_bytes(data := ftrace(machine, "trace.data"))
        return sum(len(sub.words) for writer in format_reader.read(tmp_path / "idle.data").writers
                   for sub in writer.sub_buffers), len(data)

    before, _ = words()
    served = sum(len(ftrace(machine, "trace")) for _ in range(6))
    after, size = words()
    assert (after - before) * 8 <= 0.1 * (served + size)
    # A pipe does not live on its own sending: it sends no more often than it looks.
    assert put(machine, "trace", "")[0] == 204
    with machine.connect(machine.trace_port) as connection:
        connection.sendall(b"GET /ftrace/trace_pipe?follow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        start, took, heard = time.monotonic(), 0, b""
        while took < 1.5:
            heard += connection.recv(1 << 16)
            took = time.monotonic() - start
    pieces = len(re.findall(rb"\r\n[0-9a-f]+\r\n", heard))
    assert pieces <= took / 0.25 + 2 and heard.count(b"handle_receive") <= 4 * pieces + 20, heard
    while put(machine, "trace", "")[0] != 204:  # until the guest has seen that the reader left
        assert time.monotonic() - start < 60


def test_record_from_drains_it_live(machine, tmp_path):
    recording = tmp_path / "live.data"
    assert put(machine, "trace", "")[0] == 204
    recorder = subprocess.Popen([GRAFTRACE, "record", "-o", recording, "--for", "4s", "--from",
                                 f"http://localhost:{machine.trace_port}"],
                                stderr=subprocess.PIPE, text=True)
    while recorder.poll() is None:
        visit(machine, 20)
    assert recorder.returncode == 0, recorder.stderr.read()
    assert re.search(r"records, \d+ threads, 0 lost", recorder.stderr.read())
    assert not format_reader.read(recording).problems
    calls = calls_in(recording)
    assert calls["answer"][0] >= 20


def vanish(machine, path, taken):
    """Asks for a file, takes so many bytes of the answer and is gone. False: somebody else reads it."""
    with machine.connect(machine.trace_port) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.sendall(f"GET /ftrace/{path} HTTP/1.1\r\nHost: localhost\r\n"
                           "Connection: close\r\n\r\n".encode())
        if taken and b" 409 " in connection.recv(13, socket.MSG_PEEK | socket.MSG_WAITALL):
            return False
        while taken > 0:
            taken -= len(connection.recv(min(taken, 65536)) or b"x" * taken)
    return True


def test_clients_that_vanish_stall_or_talk_nonsense_end_nothing(machine):
    visit(machine, 30)
    for path in ("trace", "trace.data", "trace_pipe"):
        for taken in (0, 1, 1000, 100000):
            if path == "trace_pipe":
                visit(machine, 10)  # what was sent to the last one is gone with it
            wait_until(lambda: vanish(machine, path, taken), "the guest sees that the last one left",
                       LIMIT_S)
    stalled = [machine.connect(machine.trace_port) for _ in range(4)]
    for connection in stalled:
        connection.sendall(b"GET /ftrace/trace HTTP/1.1\r\nHost: localhost\r\n\r\n")
    nonsense = [b"\0" * 5000, b"GET\r\n\r\n", b"GET /ftrace/trace HTTP/9.9\r\n\r\n", b"A" * 20000,
                b"GET /ftrace/../../x HTTP/1.1\r\nHost: localhost\r\n\r\n",
                b"PUT /ftrace/tracing_on HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n",
                b"PUT /ftrace/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n1",
                b"GET /ftrace/trace HTTP/1.1\r\nHost: evil.example\r\n\r\n",
                b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"]
    for bytes_sent in nonsense:
        with machine.connect(machine.trace_port) as connection:
            connection.settimeout(20)
            try:
                connection.sendall(bytes_sent)
                connection.shutdown(socket.SHUT_WR)
                answer = connection.recv(100)
                assert not answer or re.match(rb"HTTP/1.1 [345]\d\d", answer), answer
            except ConnectionError:
                pass
    readers = [threading.Thread(target=ftrace, args=(machine, "trace")) for _ in range(3)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(60)
        assert not reader.is_alive()
    for connection in stalled:
        connection.close()
    # Thousands of connections, one after the other: each is answered, but for those that are
    # closed at once (by `connect`, for QEMU has to take one before the next).
    assert put(machine, "set_ftrace_filter", "answer serve_connection")[0] == 204
    assert put(machine, "trace", "")[0] == 204
    for number in range(2000):
        port, request = ((machine.port, b"GET /primes/10 HTTP/1.0\r\n\r\n"),
                         (machine.trace_port, b"HEAD /ftrace/stats HTTP/1.0\r\n\r\n"))[number % 2]
        if number % 20 == 0:
            machine.connect(port).close()
            continue
        with socket.create_connection(("127.0.0.1", port), timeout=50) as connection:
            connection.sendall(request)
            assert connection.recv(100).startswith(b"HTTP/1.")
    wait_until(lambda: get(machine, "tracing_on")[0] == 200, "an answer")
    text = ftrace(machine, "trace")
    assert text.startswith(b"# tracer: function_graph") and text.count(b" answer()") == 900
    assert put(machine, "set_ftrace_filter", "")[0] == 204
    assert "***" not in machine.output()
