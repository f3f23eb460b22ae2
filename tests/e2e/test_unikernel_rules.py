# SPDX-License-Identifier: MIT
"""Filters, triggers and histograms of the unikernel's events: what Linux' documentation of them does, typed into the
kernel's own control files (Documentation/trace/events.rst, histogram.rst)."""

import collections
import re
import socket
import time

import pytest

from conftest import wait_until
from unikernel import Machine, machine
from test_unikernel_events import expect, lines_of, quiet
from test_unikernel_trace import Monitor, ftrace, put, visit

__all__ = ["machine", "quiet"]
RECEIVE = "events/net/netif_receive_skb"
CLOSE = "events/syscalls/sys_enter_close"


def read(machine, path):
    return ftrace(machine, path).decode()


def texts_of(machine):
    return [text for *_, text in lines_of(read(machine, "trace"))]


def wait_for(machine, path, text):
    """The program goes on for a moment after it has answered."""
    wait_until(lambda: read(machine, path) == text, f"{path}: {text}")


@pytest.fixture
def plain(quiet):
    """No filter and no trigger, before and after."""
    def reset():
        for system in "net", "sched", "irq":
            expect(quiet, f"events/{system}/filter", "0")
        for event in "net/netif_receive_skb", "net/net_dev_xmit", "sched/sched_switch", "sched/sched_wakeup", \
                "syscalls/sys_enter_close", "syscalls/sys_exit_close", "raw_syscalls/sys_enter":
            for line in reversed(read(quiet, f"events/{event}/trigger").splitlines()):
                if line.startswith("hist:"):
                    expect(quiet, f"events/{event}/trigger", "!" + re.sub(r" \[\w+\]$", "", line), "POST")
                elif not line.startswith("#"):
                    expect(quiet, f"events/{event}/trigger", "!" + re.sub(r":(unlimited|count=\d+).*$", "", line),
                           "POST")
        expect(quiet, "tracing_on", "1")

    reset()
    yield quiet
    reset()


def test_a_filter_of_an_event(plain):
    assert read(plain, f"{RECEIVE}/filter") == "none\n"
    expect(plain, f"{RECEIVE}/filter", 'len > 60 && name ~ "en*"')
    assert read(plain, f"{RECEIVE}/filter") == 'len > 60 && name ~ "en*"\n'
    expect(plain, "set_event", "net:netif_receive_skb")
    visit(plain, 10)
    expect(plain, "events/enable", "0")
    lengths = [int(re.search(r"len=(\d+)", text)[1]) for text in texts_of(plain)]
    assert len(lengths) >= 10 and min(lengths) > 60
    expect(plain, "trace", "")
    expect(plain, f"{RECEIVE}/filter", "0")
    expect(plain, "set_event", "net:netif_receive_skb")
    visit(plain, 10)
    expect(plain, "events/enable", "0")
    assert min(int(re.search(r"len=(\d+)", text)[1]) for text in texts_of(plain)) <= 60


def test_a_filter_of_a_system_and_of_who_it_is(plain):
    expect(plain, "events/sched/filter", 'COMM == "<idle>" && CPU < 8')
    assert read(plain, "events/sched/sched_wakeup/filter") == 'COMM == "<idle>" && CPU < 8\n'
    expect(plain, "events/sched/enable", "1")
    visit(plain, 10)
    expect(plain, "events/enable", "0")
    found = lines_of(read(plain, "trace"))
    assert found and {tid for tid, *_ in found} == {0}
    expect(plain, "trace", "")
    expect(plain, "events/sched/filter", "common_pid != 0")
    expect(plain, "events/sched/enable", "1")
    visit(plain, 10)
    expect(plain, "events/enable", "0")
    found = lines_of(read(plain, "trace"))
    assert found and 0 not in {tid for tid, *_ in found}


def test_a_filter_that_is_wrong_says_where(plain):
    assert put(plain, f"{RECEIVE}/filter", "len > 1 && nobody == 3")[0] == 400
    assert read(plain, f"{RECEIVE}/filter") == ("len > 1 && nobody == 3\n"
                                                "                  ^\nparse_error: Field not found\n\n")
    assert "event filter parse error: error: Field not found" in read(plain, "error_log")
    expect(plain, f"{RECEIVE}/filter", "0")
    assert read(plain, f"{RECEIVE}/filter") == "none\n"


def test_tracing_is_switched_off_and_on_by_events(plain):
    expect(plain, f"{CLOSE}/trigger", "traceoff:1 if fd > 0")
    assert read(plain, f"{CLOSE}/trigger") == "traceoff:count=1 if fd > 0\n"
    assert read(plain, f"{CLOSE}/enable") == "0*\n"
    visit(plain, 3)
    wait_for(plain, "tracing_on", "0\n")
    assert read(plain, f"{CLOSE}/trigger") == "traceoff:count=0 if fd > 0\n"
    expect(plain, "tracing_on", "1")
    visit(plain, 3)
    assert read(plain, "tracing_on") == "1\n"  # it was one time
    expect(plain, "tracing_on", "0")
    expect(plain, "events/syscalls/sys_exit_close/trigger", "traceon")
    visit(plain, 3)
    wait_for(plain, "tracing_on", "1\n")


def test_an_event_enables_another_one(plain):
    expect(plain, f"{CLOSE}/trigger", "enable_event:syscalls:sys_exit_close:1")
    assert read(plain, "events/syscalls/sys_exit_close/enable") == "0*\n"
    visit(plain, 3)
    wait_for(plain, "events/syscalls/sys_exit_close/enable", "1*\n")
    assert all(re.match(r"sys_close -> 0x0$", text) for text in texts_of(plain))
    assert put(plain, f"{CLOSE}/trigger", "enable_event:syscalls:sys_exit_close:1", "POST")[0] != 204  # there is one


def test_a_snapshot_and_a_stack_trace(plain):
    expect(plain, "current_tracer", "function_graph")
    expect(plain, "set_ftrace_filter", "serve close read")
    expect(plain, "trace", "")
    expect(plain, "set_event", "syscalls:sys_enter_close")
    expect(plain, f"{CLOSE}/trigger", "stacktrace:1")
    expect(plain, f"{CLOSE}/trigger", "snapshot:1", "POST")
    visit(plain, 2)
    wait_for(plain, f"{CLOSE}/trigger", "snapshot:count=0\nstacktrace:count=0\n")
    time.sleep(0.5)
    expect(plain, "events/enable", "0")
    text = read(plain, "snapshot")
    assert re.search(r"/\* sys_close\(fd: \d+\) \*/", text), text[-3000:]
    assert re.search(r"<stack trace>.*\n(?:.* => serve\n)? => close\n", text), text[-3000:]
    expect(plain, "set_ftrace_filter", "")


def test_a_histogram_counts_as_many_as_are_recorded(plain):
    calls = "events/raw_syscalls/sys_enter"
    expect(plain, f"{calls}/trigger", "hist:keys=id:vals=hitcount:sort=id.descending")
    assert read(plain, f"{calls}/trigger") == \
        "hist:keys=id:vals=hitcount:sort=id.descending:size=2048 [active]\n"
    expect(plain, "set_event", "raw_syscalls:sys_enter")
    visit(plain, 20)
    time.sleep(0.5)
    expect(plain, f"{calls}/trigger", "hist:keys=id:sort=id.descending:pause", "POST")
    expect(plain, "events/enable", "0")
    text = read(plain, f"{calls}/hist")
    assert text.startswith("# event histogram\n#\n# trigger info: hist:keys=id:vals=hitcount:"
                           "sort=id.descending:size=2048 [paused]\n#\n\n")
    rows = [(int(number), int(hits)) for number, hits in
            re.findall(r"^\{ id: +(\d+) \} hitcount: +(\d+)$", text, re.M)]
    made = collections.Counter(int(re.match(r"sys_enter: NR (\d+) ", each)[1]) for each in texts_of(plain))
    assert rows == sorted(made.items(), reverse=True) and sum(made.values()) > 60
    assert text.endswith(f"\nTotals:\n    Hits: {sum(made.values())}\n    Entries: {len(made)}\n    Dropped: 0\n")
    visit(plain, 3)
    assert read(plain, f"{calls}/hist") == text  # it is paused
    expect(plain, f"{calls}/trigger", "hist:keys=id:sort=id.descending:clear", "POST")
    assert "    Hits: 0\n" in read(plain, f"{calls}/hist")
    expect(plain, f"{calls}/trigger", "hist:keys=id:sort=id.descending:cont", "POST")
    visit(plain, 3)
    assert "    Hits: 0\n" not in read(plain, f"{calls}/hist")
    assert put(plain, f"{calls}/trigger", "hist:keys=nobody", "POST")[0] == 400
    assert "hist:raw_syscalls:sys_enter: error: Couldn't find field" in read(plain, "error_log")
    expect(plain, f"{calls}/trigger", "")  # takes it away
    assert read(plain, f"{calls}/hist") == ""


def test_keys_are_shown_as_their_modifiers_say(plain):
    expect(plain, "current_tracer", "function_graph")
    for trigger, shown in (("hist:keys=common_pid.execname", r"common_pid: \S+ +\[ +\d+\]"),
                           ("hist:keys=len.log2", r"len: ~ 2\^\d+ *"),
                           ("hist:keys=len.buckets=100", r"len: ~ \d+00-\d+99|len: ~ 0-99"),
                           ("hist:keys=len.hex,skbaddr.sym", r"len: [0-9a-f]+, skbaddr: \[[0-9a-f]{16}\] .*"),
                           ("hist:keys=stacktrace", r"stacktrace:\n(?: +.*\n)+")):
        expect(plain, f"{RECEIVE}/trigger", trigger)
        visit(plain, 3)
        text = read(plain, f"{RECEIVE}/hist")
        assert re.search(rf"^\{{ ?{shown} ?\}}", text, re.M), text


def test_how_long_threads_wait_for_their_processor(plain):
    """Wake-up latencies: a time stamp goes from one event to the other by a variable."""
    expect(plain, "events/sched/sched_wakeup/trigger", "hist:keys=pid:ts0=common_timestamp.usecs")
    expect(plain, "events/sched/sched_switch/trigger",
           "hist:keys=next_pid:wakeup_lat=common_timestamp.usecs-$ts0:onmax($wakeup_lat).save(next_comm,prev_pid)")
    visit(plain, 20)
    text = read(plain, "events/sched/sched_switch/hist")
    found = re.findall(r"^\{ next_pid: +(\d+) \} hitcount: +(\d+)\n\tmax: +(\d+)  next_comm: (\S+) +prev_pid: +\d+",
                       text, re.M)
    assert found, text
    for _, _, most, _ in found:
        assert int(most) < 60_000_000  # a plausible time
    assert {name for *_, name in found} & {"net", "main"} or len(found) > 1, text


def count_switches(busy):
    expect(busy, "current_tracer", "nop")
    wakeup, switch = "hist:keys=pid:ts0=common_timestamp.usecs", "hist:keys=common_cpu,common_pid.execname"
    latency = "hist:keys=next_pid:lat=common_timestamp.usecs-$ts0:onmax($lat).save(next_comm)"
    expect(busy, "events/sched/sched_wakeup/trigger", wakeup)
    expect(busy, "events/sched/sched_switch/trigger", switch)
    expect(busy, "events/sched/sched_switch/trigger", latency, "POST")
    expect(busy, "events/sched/sched_switch/filter", "prev_state != 0 && next_pid > 0")
    expect(busy, "set_event", "sched:sched_switch")
    time.sleep(4)
    expect(busy, "events/sched/sched_switch/trigger", f"{switch}:pause", "POST")
    expect(busy, "events/enable", "0")
    by_cpu, by_pid = read(busy, "events/sched/sched_switch/hist").split("# event histogram")[1:]
    [by_wakeup] = read(busy, "events/sched/sched_wakeup/hist").split("# event histogram")[1:]
    for text, is_still in (by_cpu, True), (by_pid, False), (by_wakeup, False):
        entries = re.findall(r"^\{ (.*) \} hitcount: +(\d+)", text, re.M)
        assert len({key for key, _ in entries}) == len(entries) > 1
        total, counted = int(re.search(r"    Hits: (\d+)\n", text)[1]), sum(int(hits) for _, hits in entries)
        assert total == counted if is_still else abs(total - counted) < 100  # one goes on while it is read
        assert total > 100 and "    Dropped: 0\n" in text
    assert re.search(r"sched_switch: .* prev_state=[^R].* next_pid=[1-9]", read(busy, "trace"))
    assert "prev_state=R" not in read(busy, "trace")


def test_histograms_under_nmis_lose_nothing(tmp_path):
    """On eight processors, with every event of the scheduler: what is in the entries is all that was counted."""
    monitor = Monitor(tmp_path / "monitor")
    with Machine(TARGET="stress", TRACE="ftrace", CPUS=8, LINGER=60, OPTIONS="nmi=1 endless=1",
                 QEMU_ARGS=f"-monitor unix:{monitor.path},server=on,wait=off") as busy:
        busy.wait_for("up after")
        with monitor:
            count_switches(busy)
            assert monitor.sent > 0
        socket.create_connection(("localhost", busy.port), 60).close()
        busy.wait_for("stress: all is well", timeout=120)
