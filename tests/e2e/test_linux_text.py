# SPDX-License-Identifier: MIT
"""Texts of `trace`, and of trace-cmd report, are recordings: every view takes them, and what a text of
graftrace's own shows again is the text."""

import csv
import io
import re

import pytest

from conftest import ROOT

GOLDEN = ROOT / "tests" / "golden"


@pytest.fixture(scope="module")
def program(compile):
    return compile("""
#include <stdio.h>
__attribute__((noinline)) int leaf(int i) { __asm__ volatile(""); return i + 1; }
__attribute__((noinline)) int inner(int i) { return leaf(leaf(i)); }
__attribute__((noinline)) int outer(int i) { return inner(i) + leaf(i); }
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 200; i++)
		sum += outer(i);
	printf("%d\\n", sum);
	return 0;
}
""", "-O1")


def text_of(graftrace, program, name="it.txt", options=()):
    graftrace("record", "-o", "it.data", program)
    text = graftrace("show", "--no-pager", *options, "it.data").stdout
    (graftrace.directory / name).write_text(text)
    return text


def rows(graftrace, path):
    out = graftrace("report", "--no-pager", "--format", "csv", path).stdout
    return {row["function"]: row for row in csv.DictReader(io.StringIO(out))}


def test_a_text_that_is_shown_is_the_text(graftrace, program):
    text = text_of(graftrace, program)
    assert graftrace("show", "--no-pager", "it.txt").stdout == text


def test_the_report_of_a_text_is_that_of_what_it_shows(graftrace, program):
    text_of(graftrace, program)
    ours, theirs = rows(graftrace, "it.txt"), rows(graftrace, "it.data")
    assert ours.keys() == theirs.keys() and len(ours) == 4
    for name, row in theirs.items():
        assert ours[name]["calls"] == row["calls"]
        # each line is cut to a nanosecond, or to seven digits
        least = int(row["total_ns"])
        assert abs(int(ours[name]["total_ns"]) - least) <= int(row["calls"]) + least // 100_000


def test_times_and_tasks_of_a_text_are_kept(graftrace, program):
    text = text_of(graftrace, program, options=["-O", "funcgraph-abstime", "-O", "funcgraph-proc"])
    again = graftrace("show", "--no-pager", "-O", "funcgraph-abstime", "-O", "funcgraph-proc",
                      "it.txt").stdout
    assert again.splitlines()[:4] == text.splitlines()[:4]
    pattern = re.compile(r"^ *(\d+\.\d{6}) +\|.*?(\S+-\d+) +\|.*\|(.*)$", re.M)
    ours, theirs = pattern.findall(again), pattern.findall(text)
    assert len(theirs) > 500
    assert [line[1:] for line in ours] == [line[1:] for line in theirs]
    for (time, *_), (wanted, *_) in zip(ours, theirs):
        assert abs(float(time) - float(wanted)) < 5e-6


def test_a_text_of_the_function_tracer_is_shown_as_it_is(graftrace):
    path = GOLDEN / "function" / "default.txt"
    assert graftrace("show", "--no-pager", path).stdout == path.read_text()


@pytest.mark.parametrize("name", ["linux", "linux-columns", "linux-latency", "cplusplus"])
def test_calls_are_those_that_parse_trace_finds(graftrace, name):
    path = GOLDEN / "text" / f"{name}.txt"
    wanted = {}
    for row in csv.DictReader(io.StringIO(graftrace("parse-trace", "-o", "-", path).stdout)):
        wanted[row["function"]] = wanted.get(row["function"], 0) + 1
    found = rows(graftrace, path)
    assert wanted
    for function, count in wanted.items():
        bare = re.sub(r" \[\w+\]$", "", function)
        assert int(found[bare]["calls"]) >= count, (function, found.keys())


@pytest.mark.parametrize("command", [
    ["report", "--no-pager"], ["graph", "-i"], ["info"], ["export", "-q", "--to", "folded", "-o", "-"],
    ["export", "-q", "--to", "chrome", "-o", "-"], ["show", "--no-pager", "--format", "json"]])
def test_every_view_takes_a_text(graftrace, program, command):
    text_of(graftrace, program)
    out = graftrace(*command, "it.txt").stdout
    assert ("a text of trace" if command == ["info"] else "outer") in out


def test_two_texts_are_compared_and_made_a_page(graftrace, program):
    text_of(graftrace, program, "a.txt")
    text_of(graftrace, program, "b.txt")
    assert "outer" in graftrace("diff", "--no-pager", "a.txt", "b.txt").stdout
    graftrace("export", "-q", "--to", "html", "-o", "it.html", "a.txt")
    assert "outer" in (graftrace.directory / "it.html").read_text()


def test_losses_and_lines_that_are_none_are_told(graftrace):
    done = graftrace("show", "--no-pager", GOLDEN / "text" / "linux.txt")
    assert "61190 records were lost" in done.stderr
    (graftrace.directory / "odd.txt").write_text(
        "# tracer: function_graph\n 0)   1.000 us    |  f();\nwhat is this | supposed to be\n")
    done = graftrace("report", "--no-pager", "odd.txt")
    assert "1 line" in done.stderr and "f" in done.stdout


def test_a_text_of_something_else_is_no_recording(graftrace):
    (graftrace.directory / "letter.txt").write_text("Dear all,\nthis is no trace.\n")
    assert "letter.txt" in graftrace("show", "letter.txt", code=1).stderr


def test_whose_functions_they_are_is_not_told(graftrace, program):
    text_of(graftrace, program)
    for part in ("--user", "--kernel"):
        assert "does not say whose" in graftrace("report", part, "it.txt", code=1).stderr


def test_a_text_without_begins_has_whole_calls(graftrace):
    (graftrace.directory / "slow.txt").write_text(
        "# tracer: function_graph\n" +
        " 0) ! 150.000 us |      } /* inner */\n 0) ! 200.000 us |    } /* outer */\n" * 3)
    found = rows(graftrace, "slow.txt")
    assert found["inner"]["calls"] == found["outer"]["calls"] == "3"
    assert int(found["inner"]["total_ns"]) == 450_000
