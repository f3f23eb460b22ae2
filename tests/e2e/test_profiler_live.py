# SPDX-License-Identifier: MIT
"""The function profiler of a program that runs: on, off, anew, per thread, beside the tracers."""

import re

import pytest

from mounted import PROGRAM
from served import serving


@pytest.fixture
def served(graftrace, compile):
    program = compile(PROGRAM, "-O1", "-fpatchable-function-entry=5")
    with serving(graftrace, program, "-p", "nop") as served:
        yield served


def hits(table):
    """{function: hits} of a table's text."""
    lines = table.splitlines()
    assert lines[0].split() == ["Function", "Hit", "Time", "Avg", "s^2"]
    assert set(lines[1].split()) == {"--------", "---", "----"}
    found = {}
    for line in lines[2:]:
        assert re.fullmatch(r"  .{30}  +\d+    [\d.]+ us +[\d.]+ us +[\d.]+ us +", line), line
        found[line[2:32].strip()] = int(line[32:].split()[0])
    return found


def test_it_counts_while_it_is_on_and_begins_anew(served):
    assert served.get("function_profile_enabled") == "0\n"
    assert hits(served.get("trace_stat/function0")) == {}
    served.calls(100)
    served.put("function_profile_enabled", "1\n")
    served.calls(1000)
    served.calls(10)
    assert hits(served.get("trace_stat/function0")) == {"middle": 2, "leaf": 1010, "other": 2}
    served.put("function_profile_enabled", "1\n")   # it is: nothing happens
    served.calls(1)
    served.put("function_profile_enabled", "0\n")
    served.calls(500)
    kept = hits(served.get("trace_stat/function0"))
    assert kept == {"middle": 3, "leaf": 1011, "other": 3}
    served.put("function_profile_enabled", "1\n")
    assert hits(served.get("trace_stat/function0")) == {}
    served.calls(7)
    assert hits(served.get("trace_stat/function0")) == {"middle": 1, "leaf": 7, "other": 1}
    tid = re.findall(r">(\d+)/?<", served.get("per_thread/"))[0]
    assert hits(served.get(f"per_thread/{tid}/trace_stat")) == {"middle": 1, "leaf": 7, "other": 1}
    # nothing went to the ring
    assert "leaf" not in served.get("trace")


def timed(text):
    """{function: calls in its histogram}"""
    found = {}
    for part in filter(None, text.split("\n\n")):
        name, head, *lines = part.splitlines()
        assert re.fullmatch(r"  \d+ calls?(, \d+ not timed)?(. p\d\d (about|below|above) [\d.]+ [num]?s)*", head)
        found[name] = sum(int(line.split("|")[0].split()[-1]) for line in lines)
    return found


def test_histograms_are_of_the_same_calls(served):
    assert timed(served.get("trace_stat/function_hist0")) == {}
    served.put("function_profile_enabled", "1")
    served.calls(1000)
    served.calls(10)
    assert timed(served.get("trace_stat/function_hist0")) == {"middle": 2, "leaf": 1010, "other": 2}
    served.put("function_profile_enabled", "0")
    served.put("function_profile_enabled", "1")
    assert timed(served.get("trace_stat/function_hist0")) == {}
    served.calls(7)
    assert timed(served.get("trace_stat/function_hist0")) == {"middle": 1, "leaf": 7, "other": 1}
    # beside a tracer, too
    served.put("current_tracer", "function_graph")
    served.calls(3)
    assert timed(served.get("trace_stat/function_hist0")) == {"middle": 2, "leaf": 10, "other": 2}


def test_graph_time_says_whose_time_it_is(served):
    served.put("function_profile_enabled", "1")
    served.calls(5000)

    def time(function):
        line = next(line for line in served.get("trace_stat/function0").splitlines()
                    if line.split()[0] == function)
        return float(line.split()[2])

    whole = time("middle")
    served.put("options/graph-time", "0")
    assert time("middle") < whole
    served.put("options/graph-time", "1")
    # the clock is measured better and better
    assert abs(time("middle") - whole) <= whole / 100


def test_tracing_on_is_no_matter(served):
    served.put("tracing_on", "0")
    served.put("function_profile_enabled", "1")
    served.calls(3)
    served.put("tracing_on", "1")
    served.calls(3)
    served.put("tracing_on", "0")
    served.calls(3)
    assert hits(served.get("trace_stat/function0"))["leaf"] == 9
    assert "leaf" not in served.get("trace")


def test_threads_that_are_left_out_of_the_trace_are_counted_as_on_linux(served):
    served.put("set_ftrace_pid", "1\n")
    served.put("function_profile_enabled", "1")
    served.calls(20)
    assert hits(served.get("trace_stat/function0"))["leaf"] == 20
    # A list that is set while it counts is none of its business either.
    tid = re.findall(r">(\d+)/?<", served.get("per_thread/"))[0]
    served.put("set_ftrace_notrace_pid", f"{tid}\n")
    served.calls(5)
    assert hits(served.get("trace_stat/function0"))["leaf"] == 25
    # The trace goes by them.
    served.put("function_profile_enabled", "0")
    served.put("current_tracer", "function_graph")
    served.calls(5)
    assert "leaf" not in served.get("trace")


def test_filters_say_what_is_counted(served):
    served.put("function_profile_enabled", "1")
    served.put("set_ftrace_filter", "leaf")
    served.calls(20)
    assert hits(served.get("trace_stat/function0")) == {"leaf": 20}


def test_function_graph_records_meanwhile(served):
    served.put("function_profile_enabled", "1")
    served.put("current_tracer", "function_graph")
    served.calls(30)
    assert hits(served.get("trace_stat/function0"))["leaf"] == 30
    assert served.get("trace").count("leaf();") == 30
    served.put("function_profile_enabled", "0")
    served.calls(5)
    assert served.get("trace").count("leaf();") == 35
    assert hits(served.get("trace_stat/function0"))["leaf"] == 30
    served.put("tracing_on", "0")
    served.put("function_profile_enabled", "1")
    served.calls(4)
    assert hits(served.get("trace_stat/function0"))["leaf"] == 4
    served.put("tracing_on", "1")
    served.calls(6)
    assert hits(served.get("trace_stat/function0"))["leaf"] == 10
    assert served.get("trace").count("leaf();") == 41


def test_it_counts_beside_the_function_tracer(served):
    served.put("current_tracer", "function")
    served.put("set_ftrace_filter", "leaf\nmiddle")
    served.calls(3)
    served.put("function_profile_enabled", "1")
    served.calls(20)
    assert hits(served.get("trace_stat/function0")) == {"leaf": 20, "middle": 1}
    trace = served.get("trace")
    assert served.get("current_tracer") == "function\n" and "tracer: function\n" in trace
    assert trace.count(" leaf <-middle") == 23 and trace.count(" middle <-") == 2
    assert "other" not in trace
    served.put("function_profile_enabled", "0")
    served.calls(5)
    assert served.get("trace").count(" leaf <-middle") == 28
    served.put("function_profile_enabled", "1")
    served.put("current_tracer", "function_graph")
    served.calls(2)
    served.put("current_tracer", "function")
    served.calls(4)
    assert hits(served.get("trace_stat/function0")) == {"leaf": 6, "middle": 2}
    assert served.get("trace").count(" leaf <-middle") == 4


def test_it_counts_the_calls_that_a_threshold_leaves_out(served):
    served.put("current_tracer", "function_graph")
    served.put("tracing_thresh", "1000000")
    served.put("function_profile_enabled", "1")
    served.calls(50)
    assert "leaf" not in served.get("trace") and served.get("tracing_thresh") == "1000000\n"
    # of the table too it takes what is shorter
    assert hits(served.get("trace_stat/function0")) == {}
    served.put("tracing_thresh", "0")
    assert hits(served.get("trace_stat/function0")) == {"leaf": 50, "middle": 1, "other": 1}
    served.calls(2)
    assert served.get("trace").count("leaf();") == 2
    served.put("tracing_thresh", "1000000")
    served.calls(2)
    assert served.get("trace").count("leaf();") == 2
    served.put("tracing_thresh", "0")
    assert hits(served.get("trace_stat/function0")) == {"leaf": 54, "middle": 3, "other": 3}
    served.put("function_profile_enabled", "x", status=400)
