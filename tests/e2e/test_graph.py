# SPDX-License-Identifier: MIT
"""graftrace graph and info: the call tree against the calls as CSV gives them, and what is known of a run."""

import collections
import json
import re

import pytest

from test_export import rows_of
from test_report import sample


def tree_of(graftrace, *words):
    return json.loads(graftrace("graph", "--format", "json", *words).stdout)["calls"]


def stacks_of(nodes, above=()):
    """(stack) -> (calls, total, own) of a tree."""
    found = {}
    for node in nodes:
        stack = (*above, node["function"])
        found[stack] = (node["count"], node["total_ns"], node["self_ns"])
        found.update(stacks_of(node["calls"], stack))
    return found


@pytest.fixture
def rows(graftrace):
    sample(graftrace, 21, 5, 1500)
    return rows_of(graftrace)


def stack_of(row, ids):
    stack = []
    while row:
        stack.append(row["function"])
        row = ids.get(row["parent"])
    return tuple(reversed(stack))


def test_each_stack_has_the_sums_of_its_calls(graftrace, rows):
    ids = {row["id"]: row for row in rows}
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for row in rows:
        for at, value in enumerate((1, int(row["duration_ns"]), int(row["self_ns"]))):
            sums[stack_of(row, ids)][at] += value
    found = stacks_of(tree_of(graftrace))
    assert found.keys() == sums.keys()
    for stack, (calls, total, own) in found.items():
        assert calls == sums[stack][0]
        assert abs(total - sums[stack][1]) <= calls and abs(own - sums[stack][2]) <= calls


def test_callers_of_a_function_share_its_time(graftrace, rows):
    ids = {row["id"]: row for row in rows}
    name = collections.Counter(row["function"] for row in rows).most_common(1)[0][0]
    outermost = [row for row in rows if row["function"] == name
                 and name not in stack_of(row, ids)[:-1]]
    turned = collections.Counter()
    for row in outermost:
        stack = stack_of(row, ids)[::-1]
        for depth in range(1, len(stack) + 1):
            turned[stack[:depth]] += 1
    found = stacks_of(tree_of(graftrace, "--callers", name))
    assert {stack: calls for stack, (calls, _, _) in found.items()} == turned
    total = sum(int(row["duration_ns"]) for row in outermost)
    assert abs(found[name,][1] - total) <= len(outermost)


def test_a_function_is_the_root_and_depth_and_size_cut(graftrace, rows):
    name = rows[0]["function"]
    found = stacks_of(tree_of(graftrace, name, "-D", "2"))
    assert {stack[0] for stack in found} == {name} and max(map(len, found)) == 2
    all_of_it = stacks_of(tree_of(graftrace))
    cut = stacks_of(tree_of(graftrace, "--min", "5%"))
    assert 0 < len(cut) < len(all_of_it)
    said = graftrace("graph", "--min", "5%", "--no-pager").stdout
    assert f"# {len(all_of_it) - len(cut)} stacks of less time are not shown" in said
    assert len(re.findall(r"^ *[\d.]+ % ", said, re.M)) == len(cut)


def test_mistakes_are_told(graftrace, rows):
    assert rows
    assert "no call is left" in graftrace("graph", "nobody", code=1).stderr
    assert "'200%' is not a part of all" in graftrace("graph", "--min", "200%", code=2).stderr
    assert "one FUNCTION at a time" in graftrace("graph", "a", "b", code=2).stderr
    assert "do not go together" in graftrace("graph", "--callers", "a", "b", code=2).stderr
    assert "none of text, json" in graftrace("graph", "--format", "xml", code=2).stderr


def test_info_tells_of_the_run(graftrace, compile):
    program = compile("""
        __attribute__((noinline)) int f(int x) { __asm__ volatile("nop;nop;nop;nop"); return x; }
        int main(void) { return f(1) + f(2) + 4; }""", "-O1")
    graftrace("record", program, "a b", "c", code=7)
    facts = dict(re.findall(r"^(\S+(?: by)?) +(.*)$", graftrace("info").stdout, re.M))
    assert facts["command"] == f"{program} 'a b' c" and facts["program"] == str(program)
    assert facts["end"] == "exit code 7" and facts["threads"] == "1" and facts["lost"] == "0"
    assert facts["calls"] == "3" and facts["made by"].startswith("graftrace ")
    assert "missing.data" in graftrace("info", "missing.data", code=1).stderr
