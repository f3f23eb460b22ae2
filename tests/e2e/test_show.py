# SPDX-License-Identifier: MIT
"""graftrace show: the text against the calls that a made-up recording has, and against parse-trace."""

import collections
import csv
import json
import os
import re
import subprocess

import pytest

from conftest import PATIENCE
from test_report import sample

HEADER = """\
# tracer: function_graph
#
# CPU  DURATION                  FUNCTION CALLS
# |     |   |                     |   |   |   |
"""
LINE = re.compile(r" (\d+)\) (?:  |[+!#*@$] )(?:(\d+(?:\.\d+)?) us *| {12})\|  ( *)(.*)")


def calls_of(text):
    """Entries by function: `name() {` and `name();`."""
    return collections.Counter(re.findall(r"\|  +(\w+)\(\)(?: \{|;)$", text, re.M))


def test_every_call_is_shown_once(graftrace):
    truth = sample(graftrace, 1, 4, 3000)
    text = graftrace("show").stdout
    assert text.startswith(HEADER)
    assert calls_of(text) == {name: row["calls"] for name, row in truth.items()}


def test_every_line_has_linuxs_layout(graftrace):
    sample(graftrace, 2, 3, 2000)
    for line in graftrace("show").stdout.splitlines()[4:]:
        if line and not line.startswith(" ---") and "=>" not in line:
            assert LINE.fullmatch(line), line


def test_calls_that_took_long_are_their_returns(graftrace):
    sample(graftrace, 2, 3, 2000)
    calls = [json.loads(line) for line in graftrace("show", "--format=json").stdout.splitlines()]
    long = sorted(call["function"] for call in calls
                  if call["duration_ns"] >= 1000000 and call["end"] == "return")
    text = graftrace("show", "--min", "1ms").stdout
    shown = re.findall(r"\|  +\} /\* (\w+) \*/$", text, re.M)
    assert long and sorted(shown) == long
    assert calls_of(text) == {}
    assert "no call is left" in graftrace("show", "--min", "1000000s").stderr


def test_time_stamps_have_nanoseconds_if_asked_for(graftrace):
    sample(graftrace, 2, 1, 200)
    calls = [json.loads(line) for line in graftrace("show", "--format=json").stdout.splitlines()]
    text = graftrace("show", "--ns").stdout
    stamps = [int(s + n) for s, n in re.findall(r"^ *(\d+)\.(\d{9}) \|  ", text, re.M)]
    assert stamps == sorted(stamps) and len(stamps) > 200
    first = min(call["start_ns"] for call in calls)
    assert {call["start_ns"] - first for call in calls} <= {stamp - stamps[0] for stamp in stamps}
    title, places = text.splitlines()[2:4]
    assert title.index("CPU") == places.index("|", 10)
    (graftrace.directory / "trace").write_text(text)
    assert len(graftrace("parse-trace", "-o", "-", "trace").stdout.splitlines()) > 100


def test_nesting_is_that_of_the_braces(graftrace):
    sample(graftrace, 3, 1, 3000)
    depth = None
    for line in graftrace("show", "--tid", "500").stdout.splitlines()[4:]:
        indent, what = LINE.fullmatch(line).group(3, 4)
        if what.startswith("/*"):
            depth = None  # unwound: the next line tells the depth
            continue
        if what.startswith("}"):
            depth = None if depth is None else depth - 1
        # Coroutines have stacks of their own: only steps inwards by more than one are wrong.
        if depth is not None:
            assert len(indent) // 2 <= max(depth, 60)
        depth = len(indent) // 2 + what.endswith("{")


def test_parse_trace_reads_the_text_back(graftrace):
    truth = sample(graftrace, 4, 1, 4000)
    (graftrace.directory / "trace").write_text(graftrace("show").stdout)
    graftrace("parse-trace", "trace")
    with open(graftrace.directory / "trace.csv", newline="", encoding="utf-8") as file:
        rows = collections.Counter(row["function"] for row in csv.DictReader(file))
    # Coroutines share a task in the text, so some calls cannot be told; none may be invented.
    for name, count in rows.items():
        assert count <= truth[name]["calls"] - truth[name]["not_returned"]
    assert sum(rows.values()) > 0


@pytest.mark.parametrize("words, wanted", [
    (["--option", "funcgraph-proc"], r" \d\)  worker0-500   \|"),
    (["-O", "funcgraph-abstime"], r"    \d\.\d{6} \|   \d\) "),
    (["-O", "funcgraph-tail"], r"\} /\* call_\d+ \*/"),
    (["-O", "nofuncgraph-duration"], r"^ \d\) +call_\d+\(\)"),
    (["-O", "nofuncgraph-cpu"], r"^  \d.* us .*\|  +call_\d+\(\);"),
])
def test_options_are_linuxs(graftrace, words, wanted):
    sample(graftrace, 5, 2, 500)
    assert re.search(wanted, graftrace("show", *words).stdout, re.M)


@pytest.mark.parametrize("words", [["--tid", "77"], ["-t", "+90000s-"]])
def test_an_empty_trace_says_why(graftrace, words):
    sample(graftrace, 5, 2, 500)
    done = graftrace("show", *words)
    assert done.stdout == HEADER and "no call is left by --tid, --graph, --min and --time" in done.stderr
    assert graftrace("show").stderr == ""


def test_an_option_can_be_taken_back_and_overrun_adds_its_lines(graftrace):
    sample(graftrace, 5, 2, 500)
    plain = graftrace("show").stdout
    assert graftrace("show", "-O", "funcgraph-tail", "-O", "nofuncgraph-tail").stdout == plain
    overrun = graftrace("show", "-O", "funcgraph-overrun").stdout
    assert overrun != plain
    assert overrun.replace(" (Overruns: 0)\n", "") == plain


def test_only_what_is_wanted_is_shown(graftrace):
    truth = sample(graftrace, 6, 3, 2000)
    text = graftrace("show", "--max-graph-depth", "1").stdout
    assert not re.search(r"\|    +\w", text)
    graph = calls_of(graftrace("show", "-g", "call_7").stdout)
    assert graph["call_7"] == truth["call_7"]["calls"]
    assert re.search(r"\|  call_7\(\)", graftrace("show", "-g", "call_7").stdout)
    one = graftrace("show", "-g", "call_7", "--max-graph-depth", "1").stdout
    assert calls_of(one).keys() == {"call_7"}


def test_times_are_absolute_or_from_the_start(graftrace):
    sample(graftrace, 7, 1, 3000)
    times = [float(time) for time in re.findall(
        r"^ +(\d+\.\d+) \|", graftrace("show", "-O", "funcgraph-abstime").stdout, re.M)]
    middle = times[len(times) // 2]
    late = [float(time) for time in re.findall(
        r"^ +(\d+\.\d+) \|",
        graftrace("show", "-O", "funcgraph-abstime", "--time", f"{middle:.6f}-").stdout, re.M)]
    assert late and min(late) >= middle and max(late) == max(times)
    text = graftrace("show", "-O", "funcgraph-abstime", "--time", "+0-+1us").stdout
    early = [float(time) for time in re.findall(r"^ +(\d+\.\d+) \|", text, re.M)]
    assert all(time <= min(times) + 2e-6 for time in early)


def test_a_window_is_refused_in_words_if_it_is_none(graftrace):
    sample(graftrace, 7, 1, 10)
    for words in (["--time", "5"], ["--time", "-"], ["--time", "1-2-3"], ["--time", "x-y"],
                  ["-O", "no-such"], ["--tid", "0"], ["--color", "blue"], ["a", "b"]):
        done = graftrace("show", *words, code=2)
        assert "graftrace show" in done.stderr and done.stdout == ""


def test_color_is_for_terminals_and_on_demand(graftrace):
    sample(graftrace, 8, 1, 2000)
    assert "\x1b" not in graftrace("show").stdout
    assert "\x1b[33m" in graftrace("show", "--color=always").stdout
    assert "\x1b" not in graftrace("show", "--color=always", "--color=never").stdout


def test_on_a_terminal_the_pager_gets_the_text(graftrace):
    sample(graftrace, 9, 1, 100)
    main, sub = os.openpty()
    pager = graftrace.directory / "seen"
    done = subprocess.run(
        [graftrace.path, "show"], cwd=graftrace.directory, stdin=subprocess.DEVNULL, stdout=sub,
        stderr=subprocess.PIPE, timeout=PATIENCE,
        env={**os.environ, "GRAFTRACE_PAGER": f"cat > {pager}", "NO_COLOR": "1"})
    os.close(sub)
    os.close(main)
    assert done.returncode == 0
    # A terminal's first line says what is looked at.
    about, text = pager.read_text().split("\n", 1)
    assert about.startswith("# ") and "graftrace.data" in about
    assert text == graftrace("show").stdout


def test_a_reader_that_goes_away_is_no_error(graftrace):
    sample(graftrace, 10, 2, 60000)
    done = subprocess.run(f"'{graftrace.path}' show | head -n 2; echo ${{PIPESTATUS[0]}}",
                          shell=True, executable="/bin/bash", cwd=graftrace.directory,
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_help_names_every_option(graftrace):
    text = graftrace("show", "--help").stdout
    for option in ("--option", "--time", "--tid", "-g", "--max-graph-depth", "--color",
                   "Exit code"):
        assert option in text
