# SPDX-License-Identifier: MIT
"""Functions with conventions of their own for returning, and those that ask who called them: the
program does what it did, and each call is recorded at least by its entry."""

import re
import subprocess

import pytest

import behaviour
from conftest import PATIENCE
from served import serving


@pytest.fixture(scope="module")
def returns():
    library = behaviour.run_compiler(
        ["gcc", "-O2", "-shared", "-fPIC", "-DLIBRARY"], [behaviour.PROGRAMS / "returns.c"],
        "libreturns.so")
    return behaviour.run_compiler(
        ["gcc", "-O2", f"-Wl,-rpath,{library.parent}"], [behaviour.PROGRAMS / "returns.c", library],
        "returns")


@pytest.mark.parametrize("options", [[], ["--libs"], ["-p", "function"], ["--threshold", "1ms"]],
                         ids=["graph", "libs", "function", "threshold"])
def test_functions_that_take_their_arguments_off_the_stack(options, returns, graftrace):
    plain = subprocess.run([returns], capture_output=True, text=True, check=True, timeout=PATIENCE)
    traced = graftrace("record", *options, "--", returns)
    assert traced.stdout == plain.stdout
    if "--threshold" in options:
        return
    counts = dict(re.findall(r"^(\w+),[^,]*,(\d+)", graftrace("report", "--format", "csv").stdout, re.M))
    for name in ("jumps_twice", "may_jump", "leads", "crosses", "far_return", "far_away"):
        assert counts[name] == "300"
    # Called by themselves, and at the end of others.
    assert counts["jumps"] == counts["points"] == "600"
    assert counts["takes"] == "1799"


def test_a_function_that_is_reached_by_way_of_another_jumps_to_one_that_takes_its_arguments(returns, graftrace):
    plain = subprocess.run([returns], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert graftrace("record", "-l", "points", "--", returns).stdout == plain.stdout


def test_functions_that_take_their_arguments_off_the_stack_are_profiled(returns, graftrace):
    plain = subprocess.run([returns], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert graftrace("profile", "--", returns).stdout == plain.stdout


def test_the_plan_knows_who_takes_arguments_off_the_stack(returns, graftrace):
    listing = graftrace("functions", returns).stdout
    for name in ("takes", "jumps", "jumps_twice", "may_jump"):
        assert re.search(rf" {name} +\(entry only: takes its arguments off the stack", listing)
    assert re.search(r" far_return +\(entry only: returns by more than an address", listing)
    assert re.search(r" main$", listing, re.M)


@pytest.fixture(scope="module")
def asks():
    library = behaviour.run_compiler(
        ["gcc", "-O2", "-shared", "-fPIC", "-DLIBRARY"], [behaviour.PROGRAMS / "asks.c"], "libasks.so")
    return behaviour.run_compiler(
        ["gcc", "-O2", f"-Wl,-rpath,{library.parent}"], [behaviour.PROGRAMS / "asks.c", library], "asks")


@pytest.mark.parametrize("options", [[], ["--libs"], ["-p", "function"], ["--threshold", "1ms"],
                                     ["--libs", "--breakpoints"]],
                         ids=["graph", "libs", "function", "threshold", "breakpoints"])
def test_who_is_called_at_the_end_of_another_object_finds_its_caller(options, asks, graftrace):
    traced = graftrace("record", *options, "--", asks, stdin="100\n", code=3)
    assert traced.stdout == "ready\ndone\n"


def test_the_caller_has_returned_when_the_function_that_asks_is_entered(asks, graftrace):
    graftrace("record", "-n", "main", "--", asks, stdin="1\n", code=3)
    shown = re.sub(r"^.*\| *", "", graftrace("show").stdout, flags=re.M)
    assert "caller() {\nover();\n/* who() entered, return not recorded */\n}\n" in shown


@pytest.mark.parametrize("settings", [
    [("set_ftrace_filter", "over:traceoff")],
    [("set_ftrace_filter", "who:traceoff")],
    [("current_tracer", "function"), ("set_ftrace_filter", "caller"), ("options/func_stack_trace", "1")],
    [("current_tracer", "function"), ("set_ftrace_filter", "caller"), ("options/func_stack_trace", "1"),
     ("set_ftrace_filter", "who:traceoff")],
], ids=["stopped", "stops", "stacks", "stacks_and_command"])
def test_a_caller_is_found_whatever_is_set(settings, asks, graftrace):
    with serving(graftrace, asks) as served:
        served.calls(1)
        for name, value in settings:
            served.put(name, value)
        served.calls(10)


@pytest.fixture(scope="module", params=[[], ["-static"]], ids=["dynamic", "static"])
def asks_itself(request):
    """Those that ask are in the program itself."""
    functions = behaviour.run_compiler(["gcc", "-O2", "-c", "-DLIBRARY"], [behaviour.PROGRAMS / "asks.c"],
                                       "asks.o")
    return behaviour.run_compiler(["gcc", "-O2", *request.param], [behaviour.PROGRAMS / "asks.c", functions],
                                  "asks_itself")


@pytest.mark.parametrize("names", [["through"], ["caller", "over", "through"], ["jumps", "lands"]],
                         ids=["through", "over", "twice"])
def test_who_asks_finds_its_caller_where_a_filter_leaves_it_out(names, asks_itself, graftrace):
    """Its caller is traced, and leads to it through a pointer."""
    words = [word for name in names for word in ("-l", name)]
    traced = graftrace("record", *words, "--", asks_itself, stdin="100\n", code=3)
    assert traced.stdout == "ready\ndone\n"
    rows = dict(re.findall(r"^(\w+),[^,]*,(\d+)", graftrace("report", "--format", "csv").stdout, re.M))
    assert set(rows) == set(names)


def test_who_asks_finds_its_caller_while_filters_change(asks_itself, graftrace):
    with serving(graftrace, asks_itself, "-l", "caller") as served:
        for name in ("through", "jumps", "who", "lands", "who_else", "through"):
            served.put("set_ftrace_filter", name)
            served.calls(20)
        served.put("current_tracer", "nop")
        served.calls(20)


@pytest.mark.parametrize("flags", [[], ["-no-pie", "-fno-pie"], ["-static"]], ids=["pie", "no-pie", "static"])
@pytest.mark.parametrize("options", [[], ["-l", "tiny", "-l", "main"], ["--breakpoints"]],
                         ids=["all", "few", "breakpoints"])
def test_what_the_kernel_restarts_stays_where_it_is(flags, options, graftrace):
    program = behaviour.run_compiler(["gcc", "-O2", *flags], [behaviour.PROGRAMS / "sequences.c"],
                                     "-".join(["sequences", *flags]))
    plain = subprocess.run([program], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert plain.stdout == "0 wrong, 0 replaced\n"
    traced = graftrace("record", *options, "--", program)
    assert traced.stdout == plain.stdout
    assert re.search(r" trampoline +\(is a part of another function", graftrace("functions", program).stdout)
