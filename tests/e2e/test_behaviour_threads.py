# SPDX-License-Identifier: MIT
"""Threads by the thousand, and threads that end in the middle of their calls."""

import pytest

import behaviour


@pytest.mark.parametrize("kind", ["serial", "together"])
@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_a_thousand_threads(way, kind, tmp_path):
    judged = behaviour.judge([behaviour.program(way, "threads.c"), kind, 1000], tmp_path, way=way)
    assert len(judged.trace.writers) == 1001


@pytest.mark.parametrize("kind", ["exit", "cancel", "main-exits"])
@pytest.mark.parametrize("way", ["patchable", "pg", "static", "unprepared"])
def test_a_thread_ends_in_nested_calls(way, kind, tmp_path):
    judged = behaviour.judge([behaviour.program(way, "threads.c"), kind], tmp_path, way=way)
    assert kind == "main-exits" or judged.trace.unwound > 20


@pytest.mark.parametrize("way", ["address", "thread", "no-pie", "instrument-clang"])
def test_threads_in_other_builds(way, tmp_path):
    behaviour.judge([behaviour.program(way, "threads.c"), "serial", 50], tmp_path, way=way)
