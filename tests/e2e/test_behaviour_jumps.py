# SPDX-License-Identifier: MIT
"""Calls that never return: longjmp in its kinds, exceptions, panics. The calls right after stand at
the right depth, also when they sit deeper on the stack than what was left."""

import pytest

import behaviour

KINDS = ["longjmp", "_longjmp", "siglongjmp", "builtin", "setcontext", "signal",
         "signal-alternate", "twice", "loop"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_a_jump_and_what_is_called_next(way, kind, tmp_path):
    judged = behaviour.judge([behaviour.program(way, "jump.c"), kind], tmp_path, way=way)
    assert judged.trace.unwound > 200


@pytest.mark.parametrize("way, kind", [
    ("patchable-clang", "longjmp"), ("pg", "longjmp"), ("fentry", "longjmp"),
    ("instrument", "_longjmp"), ("static", "longjmp"), ("fortify", "longjmp"),
    ("fortify", "signal"), ("no-pie", "siglongjmp"), ("unprepared-clang", "builtin"),
    ("unprepared-static", "longjmp"), ("address", "longjmp"), ("static", "signal-alternate")])
def test_a_jump_in_other_builds(way, kind, tmp_path):
    behaviour.judge([behaviour.program(way, "jump.c"), kind], tmp_path, way=way)


@pytest.mark.parametrize("kind", ["catch", "within", "across", "threads"])
@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_an_exception_is_caught_where_it_was(way, kind, tmp_path):
    behaviour.judge([behaviour.program(way, "throw.cc"), kind], tmp_path, way=way)


@pytest.mark.parametrize("way, kind", [
    ("patchable-clang", "catch"), ("static-gcc", "catch"), ("static-gcc", "within"),
    ("static", "catch"), ("static", "threads"), ("no-pie", "catch"), ("pg", "catch"),
    ("fentry", "catch"), ("instrument", "catch"), ("lto", "catch"), ("cet", "catch"),
    ("address", "catch"), ("thread", "catch"), ("unprepared-static", "catch"),
    ("unprepared-clang", "within"), ("unprepared-no-pie", "threads")])
def test_an_exception_in_other_builds(way, kind, tmp_path):
    behaviour.judge([behaviour.program(way, "throw.cc"), kind], tmp_path, way=way)


@pytest.mark.parametrize("way", ["patchable", "static-gcc", "unprepared"])
def test_an_exception_that_may_not_leave_terminates(way, tmp_path):
    judged = behaviour.judge([behaviour.program(way, "throw.cc"), "terminate"], tmp_path, way=way)
    assert judged.after.code == -6


@pytest.mark.parametrize("way", ["pg", "unprepared"])
def test_a_panic_is_caught(way, tmp_path):
    judged = behaviour.judge([behaviour.rust_program(way, "catch.rs")], tmp_path)
    assert judged.after.code == 11
