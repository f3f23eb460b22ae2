# SPDX-License-Identifier: MIT
"""Synthetic events of the unikernel: what Linux' documentation of histograms does with them, typed into the kernel's own
control files (Documentation/trace/histogram.rst)."""

import re
import socket
import subprocess
import time

import pytest

import linux
from conftest import BUILD, PATIENCE, line_with
from unikernel import Machine, machine
from test_unikernel_events import expect, lines_of, quiet
from test_unikernel_record import Recorder
from test_unikernel_trace import Monitor, ftrace, get, put, visit

__all__ = ["machine", "quiet"]
GRAFTRACE = BUILD / "cli" / "graftrace"
WAKING, SWITCH, LATENCY = "events/sched/sched_waking", "events/sched/sched_switch", "events/synthetic/wakeup_latency"


def read(machine, path):
    return ftrace(machine, path).decode()


@pytest.fixture
def plain(quiet):
    """No trigger and no synthetic event, before and after."""
    def reset():
        for event in [SWITCH, "events/syscalls/sys_enter_close", *synthetic(quiet), WAKING]:
            expect(quiet, f"{event}/trigger", "")
        expect(quiet, "synthetic_events", "")

    reset()
    yield quiet
    expect(quiet, "events/enable", "0")
    expect(quiet, "tracing_on", "1")
    reset()


def synthetic(machine):
    return [f"events/synthetic/{line.split()[0]}" for line in read(machine, "synthetic_events").splitlines()]


def define(machine):
    expect(machine, "synthetic_events", "wakeup_latency u64 lat; pid_t pid; int prio\n", "POST")


def make(machine):
    """As the documentation types it."""
    expect(machine, f"{WAKING}/trigger", "hist:keys=pid:ts0=common_timestamp.usecs if comm!=\"<idle>\"")
    expect(machine, f"{SWITCH}/trigger",
           "hist:keys=next_pid:wakeup_lat=common_timestamp.usecs-$ts0:"
           "onmatch(sched.sched_waking).wakeup_latency($wakeup_lat,next_pid,next_prio)")


def wakeup_latencies(machine):
    define(machine)
    make(machine)


def test_wakeup_latencies_as_linux_documentation_makes_them(plain):
    wakeup_latencies(plain)
    assert read(plain, "synthetic_events") == "wakeup_latency\tu64 lat; pid_t pid; int prio\n"
    assert "synthetic:wakeup_latency\n" in read(plain, "available_events")
    expect(plain, f"{LATENCY}/trigger", "hist:keys=pid,lat:sort=pid,lat")
    assert read(plain, f"{LATENCY}/enable") == "0*\n"
    expect(plain, "set_event", "synthetic:wakeup_latency", "POST")
    assert read(plain, "set_event") == "synthetic:wakeup_latency\n"
    visit(plain, 20)
    expect(plain, "events/enable", "0")
    made = [re.match(r"wakeup_latency: lat=(\d+) pid=(\d+) prio=120$", text)
            for *_, text in lines_of(read(plain, "trace"))]
    assert len(made) > 20 and all(made)
    assert max(int(each[1]) for each in made) < 60_000_000
    # It happens where the CPU switches.
    assert {flags[0] for _, _, flags, *_ in lines_of(read(plain, "trace"))} == {"d"}
    text = read(plain, f"{LATENCY}/hist")
    rows = re.findall(r"^\{ pid: +(\d+), lat: +(\d+) \} hitcount: +(\d+)$", text, re.M)
    assert sum(int(hits) for *_, hits in rows) >= len(made)
    assert rows == sorted(rows, key=lambda row: (int(row[0]), int(row[1])))
    assert {int(pid) for pid, *_ in rows} >= {int(each[2]) for each in made}


def test_its_files_are_those_of_any_event(plain):
    expect(plain, "synthetic_events", "wakeup_latency u64 lat; pid_t pid; char comm[16]")
    number = read(plain, f"{LATENCY}/id")
    form = read(plain, f"{LATENCY}/format")
    assert form.startswith(f"name: wakeup_latency\nID: {number}format:\n")
    assert "\tfield:u64 lat;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:pid_t pid;\toffset:16;\tsize:4;\tsigned:1;\n" in form
    assert 'print fmt: "lat=%llu, pid=%d, comm=%s", REC->lat, REC->pid, __get_str(comm)' in form
    for name, text in ("enable", "0\n"), ("filter", "none\n"), ("hist", ""):
        assert read(plain, f"{LATENCY}/{name}") == text
    assert read(plain, "events/synthetic/").split() == ["wakeup_latency/", "enable", "filter"]
    expect(plain, f"{WAKING}/trigger", "hist:keys=pid:ts0=common_timestamp,who=comm")
    expect(plain, f"{SWITCH}/trigger", "hist:keys=next_pid:lat=common_timestamp-$ts0:"
                                       "onmatch(sched.sched_waking).trace(wakeup_latency,$lat,next_pid,$who)")
    expect(plain, f"{LATENCY}/filter", 'comm == "net"')
    expect(plain, "events/synthetic/enable", "1")
    expect(plain, f"{LATENCY}/trigger", "traceoff:1 if comm == \"net\" && lat > 0")
    visit(plain, 5)
    assert read(plain, f"{LATENCY}/trigger") == 'traceoff:count=0 if comm == "net" && lat > 0\n'
    assert read(plain, "tracing_on") == "0\n"
    found = [text for *_, text in lines_of(read(plain, "trace"))]
    assert found and all(re.match(r"wakeup_latency: lat=\d+ pid=\d+ comm=net$", text) for text in found)
    expect(plain, f"{LATENCY}/trigger", "!traceoff", "POST")
    expect(plain, "tracing_on", "1")


def test_one_that_is_used_is_not_removed(plain):
    wakeup_latencies(plain)
    for text, method in ("!wakeup_latency", "POST"), ("", "PUT"):
        assert put(plain, "synthetic_events", text, method)[0] == 409
    expect(plain, f"{SWITCH}/trigger", "")
    expect(plain, f"{LATENCY}/enable", "1")
    assert put(plain, "synthetic_events", "!wakeup_latency", "POST")[0] == 409
    expect(plain, f"{LATENCY}/enable", "0")
    expect(plain, "synthetic_events", "!wakeup_latency", "POST")
    assert get(plain, f"{LATENCY}/enable")[0] == 404
    assert get(plain, "events/synthetic/")[0] == 404
    assert "synthetic" not in read(plain, "available_events")
    assert put(plain, "synthetic_events", "!wakeup_latency", "POST")[0] == 404
    assert put(plain, f"{SWITCH}/trigger", "hist:keys=next_pid:onmatch(sched.sched_waking).wakeup_latency(next_pid)")[0] == 400
    assert "Couldn't find synthetic event" in read(plain, "error_log")


def test_what_is_wrong_with_a_definition_is_in_the_error_log(plain):
    for line, words, at in (("lat u64 a; nosuch b", "Invalid type", 11), ("lat u64", "Command must be of the form", 0),
                            ("lat u64 a[3]", "Invalid type", 4), ("l-t u64 a", "Illegal name", 0),
                            (f"lat {'u64 a;' * 200}", "Command must be of the form", 0)):
        expect(plain, "error_log", "")
        assert put(plain, "synthetic_events", line, "POST")[0] == 400
        assert re.search(rf"synthetic_events: error: {words}.*\n  Command: .*\n {{11}}{' ' * at}\^\n",
                         read(plain, "error_log")), read(plain, "error_log")
    expect(plain, "error_log", "")
    assert read(plain, "synthetic_events") == ""


def test_they_are_among_the_dynamic_events(plain):
    expect(plain, "dynamic_events", "s:wakeup_latency u64 lat", "POST")
    expect(plain, "dynamic_events", "s:synthetic/also u64 a; u64 b", "POST")
    assert read(plain, "dynamic_events") == "s:synthetic/wakeup_latency\tu64 lat\ns:synthetic/also\tu64 a; u64 b\n"
    expect(plain, "dynamic_events", "-:wakeup_latency", "POST")
    expect(plain, "dynamic_events", "-:synthetic/also", "POST")
    assert read(plain, "synthetic_events") == ""


def test_a_recording_has_them_also_those_that_come_later(plain, tmp_path):
    recorder = Recorder(plain, tmp_path / "data").drains()
    wakeup_latencies(plain)
    expect(plain, "set_event", "synthetic:wakeup_latency", "POST")
    visit(plain, 10)
    expect(plain, "events/enable", "0")
    recorder.end().loses_nothing()
    shown = subprocess.run([GRAFTRACE, "show", recorder.path], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert len(re.findall(r": wakeup_latency: lat=\d+ pid=\d+ prio=120$", shown.stdout, re.M)) > 10, shown.stdout
    subprocess.run([GRAFTRACE, "export", "--to", "trace.dat", "-o", tmp_path / "dat", recorder.path], timeout=PATIENCE,
                   check=True)
    report = subprocess.run(["trace-cmd", "report", "-i", tmp_path / "dat"], capture_output=True, text=True, timeout=PATIENCE,
                            check=True)
    assert len(re.findall(r"wakeup_latency: +lat=\d+,? pid=\d+,? prio=120", report.stdout)) > 10, report.stdout[:2000]


def test_how_long_a_function_takes_is_a_histogram(plain):
    """By a probe at its entry and one at its return, as between any two events."""
    expect(plain, "kprobe_events", "p:called answer\nr:returned answer\n")
    expect(plain, "synthetic_events", "answer_ns u64 ns", "POST")
    expect(plain, "events/synthetic/answer_ns/trigger", "hist:keys=ns.log2:sort=ns")
    expect(plain, "events/kprobes/called/trigger", "hist:keys=common_pid:t=common_timestamp")
    expect(plain, "events/kprobes/returned/trigger",
           "hist:keys=common_pid:ns=common_timestamp-$t:onmatch(kprobes.called).answer_ns($ns)")
    visit(plain, 20)
    text = read(plain, "events/synthetic/answer_ns/hist")
    assert sum(int(hits) for hits in re.findall(r"^\{ ns: ~ 2\^\d+ +\} hitcount: +(\d+)$", text, re.M)) == 20, text
    for event in "kprobes/returned", "kprobes/called", "synthetic/answer_ns":
        expect(plain, f"events/{event}/trigger", "")
    expect(plain, "kprobe_events", "")


FILES = "synthetic_events|dynamic_events|error_log|events/synthetic/.*"


def type_session(machine, session, port):
    """What a session of linux_sessions.txt gives, as far as it is about synthetic events."""
    found = []
    for step in linux.read_sessions():
        typed = re.fullmatch(rf"(echo|printf|cat)(?: (.*?))? ?(>>|>|) ?({FILES})", step.typed)
        if step.session != session or step.topic is not None or not typed:
            continue
        command, text, how, path = typed.groups()
        if command == "cat":
            status, body = get(machine, path, port=port)
            found.append((step.typed, status, re.sub(r"\[ *\d+\.\d+\]", "[]", body.decode()) if status == 200 else ""))
        else:
            text = (text or "") + ("\n" if command == "echo" else "")
            answer = machine.ask(f"{'POST' if how == '>>' else 'PUT'} /ftrace/{path} HTTP/1.1\r\nHost: localhost\r\n"
                                 f"Connection: close\r\nContent-Length: {len(text)}\r\n\r\n{text}", port)
            found.append((step.typed, int(answer.split()[1])))
    return found


@pytest.mark.parametrize("session", ["synthetic events", "synthetic events among the dynamic ones"])
def test_a_session_gives_what_it_gives_with_a_program(plain, session):
    """Of which Linux is the judge: test_linux.py."""
    program = subprocess.Popen([GRAFTRACE, "record", "-o", "/dev/null", "--serve=127.0.0.1:0", "/bin/cat"],
                               stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        port = int(line_with(program.stderr, r":(\d+)/ftrace/")[1])
        programs = type_session(plain, session, port)
    finally:
        program.communicate(timeout=PATIENCE)  # cat ends with its input
    expect(plain, "error_log", "")
    assert len(programs) > 20
    assert type_session(plain, session, plain.trace_port) == programs


def count(busy, path):
    return int(re.search(r"    Hits: (\d+)\n", read(busy, path))[1])


def test_none_is_lost_under_nmis(tmp_path):
    """On eight processors, from interrupts and threads, while events of each other are made and taken away."""
    monitor = Monitor(tmp_path / "monitor")
    with Machine(TARGET="stress", TRACE="ftrace", CPUS=8, LINGER=60, OPTIONS="nmi=1 endless=1",
                 QEMU_ARGS=f"-monitor unix:{monitor.path},server=on,wait=off") as busy:
        busy.wait_for("up after")
        with monitor:
            expect(busy, "current_tracer", "nop")
            define(busy)
            expect(busy, "synthetic_events", "long_wait u64 lat", "POST")
            expect(busy, "events/synthetic/long_wait/trigger", "hist:keys=lat.log2")
            expect(busy, f"{LATENCY}/trigger", "hist:keys=prio:onmatch(synthetic.wakeup_latency).long_wait(lat)")
            expect(busy, f"{LATENCY}/trigger", "hist:keys=pid", "POST")
            expect(busy, "set_event", "synthetic:*")
            make(busy)
            other = "hist:keys=prev_pid:onmatch(sched.sched_switch).other(common_timestamp,prev_prio)"
            end = time.monotonic() + 4
            while time.monotonic() < end:
                expect(busy, "synthetic_events", "other u64 a; int b", "POST")
                expect(busy, f"{SWITCH}/trigger", other, "POST")
                expect(busy, f"{SWITCH}/trigger", f"!{other}", "POST")
                expect(busy, "synthetic_events", "!other", "POST")
            expect(busy, "events/enable", "0")
            expect(busy, f"{SWITCH}/trigger", "")
            time.sleep(0.1)
            _, by_pid = read(busy, f"{LATENCY}/hist").split("# event histogram")[1:]
            made = sum(int(hits) for hits in re.findall(r"hitcount: +(\d+)", by_pid))
            assert made > 100 and f"    Hits: {made}\n" in by_pid and "    Dropped: 0\n" in by_pid
            assert count(busy, f"{LATENCY}/hist") == count(busy, "events/synthetic/long_wait/hist") == made
            assert monitor.sent > 0
        text = read(busy, "trace")
        assert " other: " not in text and " wakeup_latency: " in text and " long_wait: " in text
        socket.create_connection(("localhost", busy.port), 60).close()
        busy.wait_for("stress: all is well", timeout=120)
