# SPDX-License-Identifier: MIT
"""graftrace diff: against report of each side, against uftrace's diff, and on a program that got slower."""

import json
import re
import subprocess

import pytest

from test_report import sample

PROGRAM = r"""
#include <stdlib.h>
#define KEEP __attribute__((noinline, noclone))
volatile unsigned long sink;
KEEP void work(int rounds) { for (int i = 0; i < rounds; i++) sink += i; }
KEEP void steady(void) { work(2000); }
KEEP void suspect(void) { for (int i = 0; i < ROUNDS; i++) sink += i; }
#ifdef SLOW
KEEP void fresh(void) { sink++; }
#else
KEEP void stale(void) { sink++; }
#endif
int main(void) {
    for (int i = 0; i < 200; i++) {
        steady();
        suspect();
#ifdef SLOW
        if (i % 2) suspect();
#endif
    }
#ifdef SLOW
    fresh();
#else
    stale();
#endif
    return 0;
}
"""


def rows_of(graftrace, *words):
    table = json.loads(graftrace("diff", "--format", "json", *words).stdout)
    return {row["function"]: row for row in table["rows"]}


def test_a_program_is_compared_with_itself_also_where_another_one_has_started_it(graftrace, compile):
    program = compile(PROGRAM.replace("ROUNDS", "10"), "-O1")
    graftrace("record", "-o", "a.data", program)
    graftrace("record", "-o", "b.data", "env", "X=1", program)
    for sides in (["a.data", "b.data"], ["b.data", "a.data"], ["b.data", "b.data"]):
        rows = rows_of(graftrace, *sides)
        assert rows["steady"]["calls"] == [200, 200], sides
    assert rows_of(graftrace, "a.data", "b.data")["work"]["object"] == "(program)"


def test_the_figures_are_those_of_both_reports(graftrace):
    sample(graftrace, 31, 2, 2000, "a.data")
    sample(graftrace, 32, 2, 2000, "b.data")
    sides = [{row["function"]: row for row in json.loads(
        graftrace("report", "--format", "json", name).stdout)["rows"]}
        for name in ("a.data", "b.data")]
    rows = rows_of(graftrace, "a.data", "b.data")
    assert rows.keys() == sides[0].keys() | sides[1].keys()
    for name, row in rows.items():
        for key in ("calls", "self_ns", "total_ns", "p50_ns", "p99_ns"):
            assert row[key] == [side.get(name, {}).get(key, 0) for side in sides], (name, key)
    changes = [abs(row["self_ns"][1] - row["self_ns"][0]) for row in rows.values()]
    assert changes == sorted(changes, reverse=True)
    by_calls = rows_of(graftrace, "--sort", "calls", "a.data", "b.data").values()
    changes = [abs(row["calls"][1] - row["calls"][0]) for row in by_calls]
    assert changes == sorted(changes, reverse=True)


def test_uftrace_tells_the_same_differences(graftrace, tmp_path):
    for seed, name in ((33, "a"), (34, "b")):
        sample(graftrace, seed, 1, 2000, f"{name}.data")
        graftrace("export", "--to", "uftrace", "-q", "-o", name, f"{name}.data")
    # Their last figure is a less b. (Calls that did not return have times there, and none here.)
    table = subprocess.run(
        ["uftrace", "report", "-d", "b", "--diff", "a", "--diff-policy", "full,no-percent", "-f", "call"],
        cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    theirs = {name: tuple(map(int, numbers)) for *numbers, name in re.findall(
        r"^ +(\d+) +(\d+) +([+-]?\d+) +(\w+)$", table, re.M)}
    ours = {name: (int(row["calls"][1]), int(row["calls"][0]),
                   int(row["calls"][0] - row["calls"][1]))
            for name, row in rows_of(graftrace, "a.data", "b.data").items()}
    assert len(ours) > 30 and theirs == ours


@pytest.fixture(scope="module")
def sides(compile, tmp_path_factory):
    """Three runs of the program as it was, and three of its slower build under another name."""
    from conftest import Graftrace
    graftrace = Graftrace(tmp_path_factory.mktemp("diff"))
    for name, flags in (("old", ["-DROUNDS=1000"]), ("new", ["-DROUNDS=20000", "-DSLOW"])):
        program = compile(PROGRAM, "-O1", *flags)
        for run in range(3):
            graftrace("record", "-o", f"{name}{run}", program)
    return graftrace


def test_what_got_slower_stands_out_and_what_is_new_or_gone_is_told(sides):
    words = ["old0", "old1", "old2", "--", "new0", "new1", "new2"]
    rows = rows_of(sides, "--sort", "calls", *words)
    suspect = rows["suspect"]
    # Calls are the same in every run: what differs is no noise, however busy the machine.
    assert suspect["stands_out"] and suspect["p"] == 0
    assert not rows["steady"]["stands_out"] and rows["steady"]["p"] == 1
    assert suspect["p50_ns"][1] > 3 * suspect["p50_ns"][0]  # a preemption is in the sums, not in the medians
    assert suspect["object"] == "(program)" and suspect["calls"] == [200, 300]
    assert rows["stale"]["calls"] == [1, 0] and rows["fresh"]["calls"] == [0, 1]
    # Means of the runs, as report has them.
    for side in (0, 1):
        runs = [json.loads(sides("report", "--format", "json", name).stdout)["rows"]
                for name in (words[:3], words[4:])[side]]
        own = [row["self_ns"] for run in runs for row in run if row["function"] == "suspect"]
        assert abs(suspect["self_ns"][side] - sum(own) / 3) < 1
    text = sides("diff", "--sort", "calls", *words).stdout
    assert re.search(r"^ +\+100 +\+50\.0% +0\.000\*.* suspect$", text, re.M), text
    assert re.search(r" new .* fresh$", text, re.M) and re.search(r" gone .* stale$", text, re.M)
    one = sides("diff", "old0", "new0").stdout
    assert "can be told with two runs" in one and "*" not in one


def test_the_flame_graph_is_red_where_the_second_side_takes_longer(sides):
    assert "is in diff.svg" in sides("diff", "--format", "svg", "old0", "new0").stderr
    sides("diff", "--format", "svg", "-o", "diff.svg", "old0", "old1", "--", "new0", "new1")
    picture = (sides.directory / "diff.svg").read_text()
    subprocess.run(["python3", "-c", "import sys, xml.dom.minidom as m; m.parse(sys.argv[1])",
                    sides.directory / "diff.svg"], check=True)
    frames = dict(re.findall(r'data-n="(\w+)"><title>.*?</title><rect [^>]*fill="rgb\(([\d,]+)\)',
                             picture, re.S))
    red, green, blue = map(int, frames["suspect"].split(","))
    assert red == 235 and green == blue < 120
    assert "in all" in picture


def test_wrong_sides_are_told(graftrace):
    sample(graftrace, 31, 1, 20, "a")
    for words, what in ((["a"], "which two recordings"), (["a", "a", "a"], "Say --"),
                        (["--format", "xml", "a", "a"], "none of text, json, svg"),
                        (["--sort", "size", "a", "a"], "cannot sort"),
                        (["--format", "svg", "-g", "x", "a", "a"], "leave out -g")):
        assert what in graftrace("diff", *words, code=2).stderr
    assert "no-such" in graftrace("diff", "a", "no-such", code=1).stderr
    same = graftrace("diff", "a", "a").stdout
    assert "are the same" in same
