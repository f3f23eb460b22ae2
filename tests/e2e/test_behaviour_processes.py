# SPDX-License-Identifier: MIT
"""New processes in every way: each goes on as before and is recorded with its own calls."""

import pytest

import behaviour

KINDS = ["plain", "deep", "bare", "tree", "thread", "vfork", "spawn", "shell", "exec",
         "exec-thread", "orphan"]


def judge(way, kind, directory, *options, **how):
    program = behaviour.program(way, "forks.c")
    target = behaviour.program(way, "target.c")
    return behaviour.judge([program, kind, target], directory, *options, way=way, **how)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_both_sides_are_recorded(way, kind, tmp_path):
    judge(way, kind, tmp_path)


@pytest.mark.parametrize("way, kind", [("pg", "plain"), ("static", "deep"), ("static", "exec"),
                                       ("instrument", "thread"), ("no-pie", "vfork"),
                                       ("patchable-clang", "tree")])
def test_both_sides_are_recorded_in_other_builds(way, kind, tmp_path):
    judge(way, kind, tmp_path)


@pytest.mark.parametrize("kind", ["plain", "deep", "thread", "tree"])
@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_no_fork_leaves_children_clean(way, kind, tmp_path):
    program = behaviour.program(way, "forks.c")
    target = behaviour.program(way, "target.c")
    before = behaviour.plain([program, kind, target], tmp_path)
    after = behaviour.traced([program, kind, target], tmp_path, "--no-fork",
                             *behaviour.WAYS[way][1])
    assert (after.code, after.out, after.err) == (before.code, before.out, before.err)
    behaviour.compare(before.counts.by_name(), after.counts.by_name(), "counts")
    trace = behaviour.recorded.Recorded(tmp_path / "trace.data", after.counts.names)
    assert not trace.errors, trace.errors
    pids = {writer.pid for writer in trace.writers}
    assert len(pids) == 1
    (pid,) = pids
    behaviour.compare({key: calls for key, calls in after.counts.calls.items() if key[0] == pid},
                      trace.counted, "the parent's calls")
