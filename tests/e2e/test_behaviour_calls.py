# SPDX-License-Identifier: MIT
"""Every kind of call, in every way that functions are prepared and programs are linked: the same
results, and each call in the trace at its depth."""

import pytest

import behaviour

EVERY_WAY = ["patchable", "patchable-16", "patchable-clang", "patchable-O0", "cet", "cet-clang",
             "no-pie", "static", "static-pie", "pg", "pg-clang", "fentry", "fentry-clang",
             "nop-mcount", "instrument", "instrument-clang", "lto", "address", "thread",
             "unprepared", "unprepared-clang", "unprepared-O0", "unprepared-no-pie",
             "unprepared-static"]


@pytest.mark.parametrize("way", EVERY_WAY)
def test_calls_of_every_kind(way, tmp_path):
    behaviour.judge([behaviour.program(way, "calls.c")], tmp_path, way=way,
                    only=not way.startswith("unprepared"))


@pytest.mark.parametrize("way", ["unprepared", "unprepared-clang", "unprepared-no-pie"])
def test_static_functions_whose_callers_know_their_registers(way, tmp_path):
    behaviour.judge([behaviour.program(way, "ipa.c")], tmp_path, way=way)


@pytest.mark.parametrize("way", ["patchable", "patchable-clang", "no-pie", "unprepared",
                                 "unprepared-clang"])
def test_every_register_is_as_before(way, tmp_path):
    program = behaviour.program(way, "registers.c", "registers.S")
    behaviour.judge([program], tmp_path, way=way)


@pytest.mark.parametrize("level", [0, 1])
def test_every_register_of_older_machines_is_as_before(level, tmp_path):
    program = behaviour.program("unprepared", "registers.c", "registers.S")
    behaviour.judge([program, 5000, level], tmp_path, way="unprepared")


@pytest.mark.parametrize("kind", ["main", "thread"])
@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_recursion_200000_calls_deep(way, kind, tmp_path):
    judged = behaviour.judge([behaviour.program(way, "deep.c"), kind], tmp_path, way=way)
    deepest = max(depths[2] for depths in judged.after.counts.deeper.values())
    assert deepest > 200000


@pytest.mark.parametrize("way", ["patchable", "patchable-clang", "pg", "fentry", "unprepared"])
def test_tail_calls_10000_deep_stay_at_their_depth(way, tmp_path):
    behaviour.judge([behaviour.program(way, "deep.c"), "tail"], tmp_path, way=way)
