# SPDX-License-Identifier: MIT
"""Shared libraries: linked, and loaded and unloaded in a loop, with constructors and destructors."""

import pytest

import behaviour


def build(way):
    """(program, environment, plugins) of one way."""
    linked = behaviour.library(way, "library.c", "liblibrary.so")
    plugin = behaviour.library(way, "plugin.c", "plugin.so", "-DCOUNT_FAR")
    other = behaviour.library(way, "plugin.c", "other.so", "-DCOUNT_FAR",
                              "-DPLUGIN(name)=other_##name")
    program = behaviour.program(way, "libraries.c", flags=["-rdynamic"], libraries=[linked])
    return program, {"LD_LIBRARY_PATH": str(linked.parent)}, plugin, other


@pytest.mark.parametrize("way", ["patchable", "patchable-clang", "pg", "fentry", "instrument",
                                 "cet", "no-pie", "unprepared"])
def test_a_linked_library(way, tmp_path):
    program, environment, _, _ = build(way)
    behaviour.judge([program, "linked"], tmp_path, way=way, **environment)


@pytest.mark.parametrize("way", ["patchable", "patchable-clang", "pg", "fentry", "instrument",
                                 "unprepared"])
def test_a_library_loaded_50_times(way, tmp_path):
    program, environment, plugin, _ = build(way)
    judged = behaviour.judge([program, "loop", plugin], tmp_path, way=way, **environment)
    assert judged.after.counts.by_name()["plugin_constructor"] == 50


@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_two_libraries_in_turn_at_one_address(way, tmp_path):
    program, environment, plugin, other = build(way)
    behaviour.judge([program, "pair", plugin, other], tmp_path, way=way, **environment)


def test_four_threads_load_one_library(tmp_path):
    program, environment, plugin, _ = build("patchable")
    behaviour.judge([program, "threads", plugin], tmp_path, way="patchable", same_counts=False,
                    **environment)


@pytest.mark.parametrize("way", ["cet", "unprepared"])
@pytest.mark.parametrize("source, words", [
    ("throw.cc", ["catch"]), ("throw.cc", ["threads"]), ("jump.c", ["longjmp"]),
    ("jump.c", ["signal"]), ("forks.c", []), ("ending.c", ["exit"]),
], ids=lambda value: value if isinstance(value, str) else " ".join(value))
def test_calls_across_the_linkage_table_disturb_nothing(way, source, words, tmp_path):
    """setjmp, throw, fork, exit and their kind, called through a traced linkage stub."""
    behaviour.judge([behaviour.program(way, source), *words], tmp_path, "--libcall", way=way,
                    depths=False)
