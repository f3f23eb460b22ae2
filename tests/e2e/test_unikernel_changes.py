# SPDX-License-Identifier: MIT
"""Changes of what a running kernel traces: what is recorded meanwhile stays whole, and each has its effect."""

import collections
import re

import pytest

import format_reader
from unikernel import Machine, balance_in, image, machine, runs_in
from test_unikernel_trace import COUNTED, ftrace, put, visit

# CPUs and arguments of QEMU, and how often everything is changed: one instruction at a time is slow.
MACHINES = [(8, "", 4), (2, "-singlestep", 2)]


@pytest.fixture(scope="module", autouse=True)
def built():
    for target in ("stress", "webserver"):
        image(target, TRACE="ftrace")


def expect(machine, path, value, method="PUT"):
    status, words = put(machine, path, value, method)
    assert status == 204, (path, value, words)


def change_under_stress(tmp_path, cpus, arguments, changes):
    """Boots `stress`, makes the changes while its threads and NMIs call, and lets it end.
    Returns its own counts and the recording."""
    with Machine(TARGET="stress", TRACE="ftrace", CPUS=cpus, LINGER=60, QEMU_ARGS=arguments,
                 OPTIONS="nmi=1 endless=1 depth=4") as machine:
        machine.wait_for("stress: until somebody connects")
        for path, value in changes:
            expect(machine, path, value)
        with machine.connect():
            machine.wait_for("stress: all is well")
        machine.wait_for("can be fetched")
        counted = " ".join(COUNTED.findall(machine.output())).split()
        assert "***" not in machine.output()
        recording = tmp_path / "trace.data"
        recording.write_bytes(ftrace(machine, "trace.data"))
    data = format_reader.read(recording)
    assert not data.problems and not sum(data.lost)
    return dict(zip(counted[::2], map(int, counted[1::2]))), calls_in(data), data


def calls_in(data):
    """Entries and returns by name."""
    calls = collections.defaultdict(lambda: [0, 0])
    for writer in data.writers:
        for _, _, steps in runs_in(writer):
            for function, is_return, _ in steps:
                if function is not None:
                    calls[data.names[function]][is_return] += 1
    return calls


@pytest.mark.parametrize("cpus, arguments, rounds", MACHINES)
def test_what_stays_in_a_changing_filter_is_counted_exactly(tmp_path, cpus, arguments, rounds):
    changes = [("set_ftrace_filter", "stress_lock stress_recurse stress_nmi stress_below_nmi"),
               ("set_ftrace_notrace", "stress_recurse stress_below_nmi"),
               ("set_ftrace_filter", "stress_lock stress_nmi stress_wait stress_sleep pthread_mutex_lock"),
               ("set_ftrace_notrace", "")]
    counted, calls, data = change_under_stress(tmp_path, cpus, arguments, changes * rounds)
    for name, count in counted.items():
        entries, returns = calls[name]
        assert entries == returns <= count, name
        if name in ("stress_lock", "stress_nmi"):
            assert entries == count > 0, name
    still_open = {data.names[function] for stack in balance_in(data).values() for function in stack}
    assert not still_open & set(counted)


@pytest.mark.parametrize("cpus, arguments, rounds", MACHINES)
def test_a_tracer_that_is_changed_and_stopped_leaves_no_torn_record(tmp_path, cpus, arguments, rounds):
    changes = [("set_ftrace_filter", "stress_* pthread_mutex_lock"), ("tracing_on", "0"),
               ("set_ftrace_notrace", "stress_recurse"), ("tracing_on", "1"),
               ("current_tracer", "function"), ("tracing_on", "0"), ("set_ftrace_filter", ""),
               ("tracing_on", "1"), ("current_tracer", "nop"), ("set_ftrace_notrace", ""),
               ("current_tracer", "function_graph"), ("tracing_on", "0"), ("tracing_on", "1")]
    counted, calls, data = change_under_stress(tmp_path, cpus, arguments, changes * (rounds // 2))
    assert 0 < calls["stress_lock"][0] <= counted["stress_lock"]


def traced(machine, count=3):
    """The trace of a few requests alone."""
    expect(machine, "trace", "")
    visit(machine, count)
    return ftrace(machine, "trace").decode()


def calls_shown(text):
    """How often each call begins in the text, by name."""
    return collections.Counter(re.findall(r"\|  +(\w+)\(\)(?: {|;)", text))


def test_functions_that_are_not_to_be_traced_are_not_whatever_the_filter_says(machine):
    expect(machine, "set_ftrace_filter", "answer serve*")
    expect(machine, "set_ftrace_notrace", "serve")
    assert ftrace(machine, "set_ftrace_notrace") == b"serve\n"
    assert calls_shown(traced(machine)) == {"serve_connection": 3, "answer": 3}
    expect(machine, "set_ftrace_notrace", "answer", "POST")
    assert sorted(ftrace(machine, "set_ftrace_notrace").split()) == [b"answer", b"serve"]
    assert calls_shown(traced(machine)) == {"serve_connection": 3}
    expect(machine, "set_ftrace_notrace", "")
    assert calls_shown(traced(machine)) == {"serve_connection": 3, "serve": 3, "answer": 3}
    expect(machine, "set_ftrace_filter", "")


def test_a_greatest_depth_leaves_out_what_lies_deeper(machine):
    expect(machine, "set_ftrace_filter", "answer serve serve_connection")
    every = ["serve_connection", "serve", "answer"]
    for depth in (1, 2, 3):
        expect(machine, "max_graph_depth", str(depth))
        assert calls_shown(traced(machine)) == dict.fromkeys(every[:depth], 3)
    expect(machine, "max_graph_depth", "0")
    assert calls_shown(traced(machine)) == dict.fromkeys(every, 3)
    expect(machine, "set_ftrace_filter", "")


def test_a_graph_of_one_function_has_what_it_calls_and_nothing_else(machine):
    expect(machine, "set_graph_function", "answer")
    text = traced(machine)
    assert len(re.findall(r"\|  answer\(\) {$", text, re.M)) == 3, text
    calls = calls_shown(text)
    assert calls["lwip_send"] + calls["lwip_write"] >= 3 and not calls["serve"] + calls["serve_connection"], calls
    expect(machine, "set_graph_function", "")
    assert calls_shown(traced(machine))["serve_connection"] == 3


def test_a_threshold_leaves_out_what_is_shorter(machine):
    expect(machine, "set_ftrace_filter", "answer serve")
    expect(machine, "tracing_thresh", "60000000")
    assert not re.search(r"answer|serve", traced(machine))
    # A page takes millions of instructions, which no machine does in so short a time.
    expect(machine, "tracing_thresh", "500")
    expect(machine, "trace", "")
    for limit in (100000, 2, 100000):
        assert machine.get(f"/primes/{limit}")[0] == 200
    ended = re.findall(r"([\d.]+) us +\|  +} /\* (\w+) \*/$", ftrace(machine, "trace").decode(), re.M)
    # The short page may be as slow on a busy machine.
    assert [name for _, name in ended].count("serve") in (2, 3), ended
    assert all(float(took) >= 500 for took, _ in ended), ended
    expect(machine, "tracing_thresh", "0")
    assert calls_shown(traced(machine)) == {"serve": 3, "answer": 3}
    expect(machine, "set_ftrace_filter", "")
