# SPDX-License-Identifier: MIT
"""Coroutines: each is a context with calls of its own."""

import pytest

import behaviour


@pytest.mark.parametrize("kind", ["interleaved", "abandoned", "moved", "many"])
@pytest.mark.parametrize("by", ["ucontext", "jump", "assembly"])
@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_coroutines(way, by, kind, tmp_path):
    program = behaviour.program(way, "contexts.c", "switch.S")
    behaviour.judge([program, by, kind], tmp_path, way=way)


@pytest.mark.parametrize("way", ["no-pie", "static", "patchable-clang", "pg", "instrument"])
def test_coroutines_in_other_builds(way, tmp_path):
    program = behaviour.program(way, "contexts.c", "switch.S")
    behaviour.judge([program, "ucontext", "interleaved"], tmp_path, way=way)
