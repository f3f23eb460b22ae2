# SPDX-License-Identifier: MIT
"""The unikernel's latency tracers: the longest time without interrupts or preemption, in Linux's words."""

import re

import pytest

from unikernel import machine
from test_unikernel_events import expect
from test_unikernel_trace import ftrace, get, put, visit

TRACERS = ["irqsoff", "preemptoff", "preemptirqsoff"]
HEADER = r"""# tracer: (?P<tracer>\w+)
#
# (?P=tracer) latency trace v1\.1\.5 on \S.*
# -{68}
# latency: (?P<us>\d+) us, #(?P<shown>\d+)/(?P<all>\d+), CPU#(?P<cpu>[01]) \| \(M:preempt VP:0, KP:0, SP:0 HP:0 #P:2\)
#    -----------------
#    \| task: (?P<task>\S+-\d+) \(uid:0 nice:0 policy:0 rt_prio:0\)
#    -----------------
#  => started at: (?P<start>\w+)
#  => ended at:   (?P<end>\w+)
#
#
"""
COLUMNS = """#                    _------=> CPU#            
#                   / _-----=> irqs-off/BH-disabled
#                  | / _----=> need-resched    
#                  || / _---=> hardirq/softirq 
#                  ||| / _--=> preempt-depth   
#                  |||| / _-=> migrate-disable 
#                  ||||| /     delay           
#  cmd     pid     |||||| time  |   caller     
#     \\   /        ||||||  \\    |    /       
"""
LINE = re.compile(r" *(\S+) +([01])([d.][N.][h.][0-9a-f.]\.) +(\d+)us[ +!#*@$]: (\S+) <-(\S+)")


@pytest.fixture
def measures(machine):
    """choose(tracer, **options): that tracer, and a case in its trace. Left with function_graph."""
    def choose(tracer, function_trace=1, display_graph=0):
        expect(machine, "options/function-trace", str(function_trace))
        expect(machine, "options/display-graph", str(display_graph))
        expect(machine, "current_tracer", tracer)
        visit(machine, 5)

    yield choose
    for path, value in (("tracing_thresh", "0"), ("options/function-trace", "1"), ("options/display-graph", "0"),
                        ("current_tracer", "function_graph")):
        expect(machine, path, value)


def case_of(machine):
    """The header's match and the lines behind it; no worse case comes between the two files."""
    expect(machine, "tracing_max_latency", "4000000000")
    text = ftrace(machine, "trace").decode()
    header = re.match(HEADER, text)
    assert header, text
    return header, text[header.end():]


def test_the_longest_latency_is_shown_from_beginning_to_end(machine, measures):
    assert ftrace(machine, "available_tracers").split()[-6:] == [
        b"function_graph", b"preemptirqsoff", b"preemptoff", b"irqsoff", b"function", b"nop"]
    for tracer in TRACERS:
        measures(tracer)
        assert int(ftrace(machine, "tracing_max_latency")) > 0
        header, rest = case_of(machine)
        assert header["tracer"] == tracer and rest.startswith(COLUMNS), rest
        found = [LINE.fullmatch(line) for line in rest[len(COLUMNS):].splitlines()]
        assert all(found) and len(found) == int(header["shown"]) == int(header["all"]), rest
        times = [int(line[4]) for line in found]
        assert times == sorted(times) and times[0] == 0 and abs(times[-1] - int(header["us"])) <= 1  # rounded twice
        assert {line[2] for line in found} == {header["cpu"]}
        assert (found[0][6], found[-1][6]) == (header["start"], header["end"])
        if tracer == "irqsoff":
            assert {line[3][0] for line in found} == {"d"}
        if tracer == "preemptoff":
            assert {line[3][2] for line in found} == {"h"} or "." != found[0][3][3], rest


def test_the_worst_case_stays_while_the_ring_goes_on(machine, measures):
    measures("irqsoff")
    _, rest = case_of(machine)
    visit(machine, 20)
    assert case_of(machine)[1] == rest
    expect(machine, "tracing_max_latency", "0")
    visit(machine, 5)
    again = int(ftrace(machine, "tracing_max_latency"))
    assert 0 < again < 4000000000
    for path in "trace_pipe", "snapshot":
        assert get(machine, path)[0] != 200, path
    assert put(machine, "snapshot", "1")[0] != 204
    assert put(machine, "tracing_max_latency", "often")[0] != 204


def test_a_threshold_shows_the_newest_that_reaches_it(machine, measures):
    expect(machine, "tracing_thresh", "100000000")
    measures("irqsoff")
    assert ftrace(machine, "trace") == b"# tracer: irqsoff\n#\n"
    assert ftrace(machine, "tracing_max_latency") == b"0\n"
    expect(machine, "tracing_thresh", "1")
    visit(machine, 5)
    text = ftrace(machine, "trace").decode()
    assert int(re.match(HEADER, text)["us"]) >= 1


def test_without_functions_a_case_has_two_lines(machine, measures):
    measures("irqsoff", function_trace=0)
    header, rest = case_of(machine)
    assert header["shown"] == "2" and len(rest[len(COLUMNS):].splitlines()) == 2, rest


def test_a_case_is_shown_as_a_call_graph(machine, measures):
    measures("preemptirqsoff", display_graph=1)
    for _ in range(20):  # the worst case may be one in which nothing is called
        _, rest = case_of(machine)
        lines = rest.splitlines()
        if any(line.endswith("() {") for line in lines):
            break
        expect(machine, "tracing_max_latency", "0")
        visit(machine, 5)
    assert lines[5] == "#   REL TIME      CPU  TASK/PID       ||||     DURATION                  FUNCTION CALLS"
    for line in lines[7:]:
        assert re.fullmatch(r" +\d+ us \|   [01]\) .{14} \|  [d.][N.][h.][0-9a-f.]\. \| .{14}\|  .*", line) or \
            re.search(r"==========|^ -{42}|^$| => ", line), line
    assert any(line.endswith("() {") for line in lines), rest
