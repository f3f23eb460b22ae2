# SPDX-License-Identifier: MIT
"""graftrace report: the figures against those counted while a recording was made up."""

import collections
import csv
import io
import json
import math
import re
import subprocess

import pytest

from conftest import BUILD, PATIENCE


def sample(graftrace, seed, threads, calls, name="graftrace.data"):
    """Makes a recording; what is true of it, by function."""
    made = subprocess.run(
        [BUILD / "tests" / "tools" / "looking_sample", name, str(seed), str(threads), str(calls)],
        cwd=graftrace.directory, check=True, capture_output=True, text=True, timeout=PATIENCE)
    return {name: row for name, row in json.loads(made.stdout).items() if row["calls"]}


@pytest.mark.parametrize("seed, threads, calls", [(1, 1, 100), (2, 3, 5000), (3, 40, 1000)])
def test_every_figure_is_that_of_the_program(graftrace, seed, threads, calls):
    truth = sample(graftrace, seed, threads, calls)
    table = json.loads(graftrace("report", "--format", "json").stdout)
    rows = {row["function"]: row for row in table["rows"]}
    assert rows.keys() == truth.keys()
    for name, true in truth.items():
        row = rows[name]
        assert row["calls"] == true["calls"], name
        assert row["not_returned"] == true["not_returned"], name
        if true["calls"] > true["not_returned"]:
            for key in ("total", "self", "minimum", "maximum"):
                assert row[f"{key}_ns"] == true[key], (name, key)
    assert table["calls"] == sum(row["calls"] for row in truth.values()) == threads * calls
    assert table["self_upper_bound"] == 0
    assert table["threads"] == threads


@pytest.mark.parametrize("command", ["report", "show"])
def test_the_recording_may_be_named_as_perf_and_trace_cmd_name_it(graftrace, command):
    sample(graftrace, 5, 2, 50, "other.data")
    plain = graftrace(command, "other.data")
    assert plain.returncode == 0 and plain.stdout
    for words in (["-i", "other.data"], ["--input=other.data"]):
        assert graftrace(command, *words).stdout == plain.stdout
    both = graftrace(command, "-i", "other.data", "other.data", code=2)
    assert "one recording at a time" in both.stderr


def test_csv_has_the_same_figures_as_json(graftrace):
    sample(graftrace, 4, 2, 2000)
    rows = list(csv.DictReader(io.StringIO(graftrace("report", "--format=csv").stdout)))
    table = json.loads(graftrace("report", "--format=json").stdout)["rows"]
    assert len(rows) == len(table)
    for from_csv, from_json in zip(rows, table):
        assert from_csv == {key: str(value) for key, value in from_json.items()}


@pytest.mark.parametrize("key, column", [
    ("total", "total_ns"), ("self", "self_ns"), ("calls", "calls"), ("avg", "average_ns"),
    ("min", "minimum_ns"), ("max", "maximum_ns"), ("stddev", "stddev_ns")])
def test_rows_are_sorted_by_the_key(graftrace, key, column):
    sample(graftrace, 5, 2, 2000)
    rows = json.loads(graftrace("report", "--format=json", "--sort", key).stdout)["rows"]
    values = [row[column] for row in rows]
    assert values == sorted(values, reverse=True)
    assert len(values) > 10


@pytest.mark.parametrize("words, told", [
    ("self", {"self_ns"}), ("total,p99", {"total_ns", "p99_ns"}), ("p50,min,max", {"p50_ns", "minimum_ns", "maximum_ns"}),
    ("off-cpu,on-cpu", {"self_on_cpu_ns", "self_off_cpu_ns", "total_off_cpu_ns"}), ("calls", set())])
def test_fields_are_chosen_and_are_what_they_are_with_all_others(graftrace, compile, words, told):
    if "cpu" in words:
        graftrace("record", compile("#include <unistd.h>\nint main(void) { return usleep(1000); }", "-O0"))
    else:
        sample(graftrace, 7, 2, 2000)
    always = {"function", "object", "calls", "not_returned"}
    known = graftrace("report", "--format=csv").stdout.splitlines()[0].split(",")
    told = told & set(known)  # not every machine tells when threads are off the CPU
    for sort in ("p99", "self"):
        ask = lambda *more: json.loads(graftrace("report", "--format=json", "--sort", sort, *more).stdout)["rows"]
        assert ask("--fields", words) == [
            {key: value for key, value in row.items() if key in always | told} for row in ask()]
    head = graftrace("report", "--format=csv", "-f", words).stdout.splitlines()[0].split(",")
    assert set(head) == always | told
    table = graftrace("report", "-f", words).stdout.splitlines()[0].split()
    assert ("p99" in table) == ("p99_ns" in told) and ("Total" in table) == ("total_ns" in told)
    assert "StdDev" not in table and "Calls" in table
    if "self" in words:  # the spread is kept where it is asked for in another way
        assert graftrace("report", "-f", words, "--hist", "*").stdout == graftrace("report", "--hist", "*").stdout


def test_callers_and_callees_are_those_of_the_shown_calls(graftrace):
    sample(graftrace, 6, 1, 3000)
    rows = lambda *words: {row["function"]: row for row in json.loads(
        graftrace("report", "--format=json", *words).stdout)["rows"]}
    pairs = lambda which, who: {
        row[which[2:-1]]: row["calls"] for row in json.loads(graftrace(
            "report", "--format=json", which, who).stdout)["rows"]}
    functions = rows()
    callees = {name: pairs("--callees", name) for name in functions}
    for name, row in functions.items():
        callers = pairs("--callers", name)
        assert sum(callers.values()) == row["calls"]
        assert {caller: count for caller, count in callers.items() if caller != "(outermost)"} == {
            caller: callees[caller][name] for caller in functions if name in callees[caller]}
    none = graftrace("report", "--callers", "nobody")
    assert "no function that matches was called" in none.stderr


def exact_quantile(durations, part):
    return sorted(durations)[max(math.ceil(part * len(durations)), 1) - 1]


def calls_of(graftrace, *words):
    """Every call, from another command."""
    return [json.loads(line) for line in graftrace("show", "--format", "json", *words)
            .stdout.splitlines()]


def test_percentiles_are_those_of_the_single_calls(graftrace):
    sample(graftrace, 11, 3, 4000)
    calls = [call for call in calls_of(graftrace) if call["end"] == "return"]
    rows = json.loads(graftrace("report", "--format=json").stdout)["rows"]
    for row in rows:
        own = [call["duration_ns"] for call in calls if call["function"] == row["function"]]
        for part in (50, 90, 99):
            exact = exact_quantile(own, part / 100)
            assert abs(row[f"p{part}_ns"] - exact) <= exact / 32 + 1, (row, part)


def test_the_spread_has_every_call_once(graftrace):
    sample(graftrace, 11, 3, 4000)
    calls = [call["duration_ns"] for call in calls_of(graftrace)
             if call["function"] == "call_5" and call["end"] == "return"]
    (row,) = json.loads(graftrace("report", "--hist", "call_5", "--format=json").stdout)["rows"]
    assert row["returned"] == len(calls) > 100
    for step in row["steps"]:
        assert step["calls"] == sum(step["from_ns"] <= ns < step["to_ns"] for ns in calls)
    text = graftrace("report", "--hist", "call_5").stdout
    # As text, a line is of all calls that are so short that the clock does not tell them apart.
    short = [step for step in row["steps"] if step["to_ns"] <= 32]
    lines = re.findall(r"^ +(\S+ \w+) +- +(\S+ \w+) +(\d+) \|#* *\|$", text, re.M)
    assert text.startswith("call_5\n") and len(lines) == len(row["steps"]) - max(0, len(short) - 1)
    if short:
        assert lines[0] == ("0 ns", "32 ns", str(sum(step["calls"] for step in short)))
    assert "no function that matches --hist" in graftrace("report", "--hist", "nobody").stderr
    graftrace("report", "--hist", "call_5", "--format=csv", code=2)


def test_a_thread_a_process_and_a_length_are_picked(graftrace):
    sample(graftrace, 12, 3, 2000)
    one = json.loads(graftrace("report", "--tid", "501", "--format=json").stdout)
    assert one["calls"] == 2000
    assert json.loads(graftrace("report", "--pid", "500", "--format=json").stdout)["calls"] == 6000
    assert "no call is left" in graftrace("report", "--pid", "7").stderr
    (process,) = json.loads(graftrace("report", "--by=process", "--format=json").stdout)["rows"]
    assert process["process"] == "worker0-500" and process["calls"] == 6000
    # What took long, by the single calls.
    calls = [call for call in calls_of(graftrace, "--min", "1ms") if call["end"] == "return"]
    assert calls and all(call["duration_ns"] >= 1000000 for call in calls)
    rows = json.loads(graftrace("report", "--min", "1ms", "--format=json").stdout)["rows"]
    assert sum(row["calls"] - row["not_returned"] for row in rows) == len(calls)
    assert all(row["minimum_ns"] >= 1000000 for row in rows if "minimum_ns" in row)


def test_a_window_and_a_caller_are_picked_as_the_call_graph_picks_them(graftrace):
    sample(graftrace, 13, 1, 3000)
    for words in (["-t", "+10s-"], ["-g", "call_7"]):
        total = json.loads(graftrace("graph", "--format=json", *(
            words if words[0] == "-t" else [words[1]])).stdout)
        rows = json.loads(graftrace("report", "--format=json", *words).stdout)["rows"]
        counted = collections.Counter()
        below = [*total["calls"]]
        while below:
            node = below.pop()
            below += node["calls"]
            counted[node["function"]] += node["count"]
        assert {row["function"]: row["calls"] for row in rows} == counted
        calls = [call for call in calls_of(graftrace, *words) if call["end"] == "return"]
        for row in rows:
            own = [call for call in calls if call["function"] == row["function"]]
            assert row["calls"] - row["not_returned"] == len(own)
            assert abs(row.get("self_ns", 0) - sum(call["self_ns"] for call in own)) <= len(own)


def test_colors_are_asked_for(graftrace):
    sample(graftrace, 6, 1, 300)
    assert "\033" not in graftrace("report").stdout
    colored = graftrace("report", "--color=always").stdout
    assert re.sub("\033\\[[0-9]*m", "", colored) == graftrace("report").stdout != colored


def test_a_limit_says_what_it_leaves_out(graftrace):
    sample(graftrace, 6, 1, 3000)
    lines = graftrace("report", "--limit", "3").stdout.splitlines()
    assert lines[0].split()[:3] == ["Self", "%", "Calls"] and len(lines[1:4]) == 3
    assert "more rows are not shown" in lines[5]
    rows = len(json.loads(graftrace("report", "--format", "json").stdout)["rows"])
    assert "\n1 more row is not shown" in graftrace("report", "--limit", rows - 1).stdout


def test_rows_by_thread_add_up_to_all_calls(graftrace):
    sample(graftrace, 7, 5, 500)
    rows = json.loads(graftrace("report", "--by=thread", "--format=json").stdout)["rows"]
    assert sorted(row["thread"] for row in rows) == [f"worker{i}-{500 + i}" for i in range(5)]
    assert all(row["calls"] == 500 for row in rows)
    rows = json.loads(graftrace("report", "--by=object", "--format=json").stdout)["rows"]
    assert [(row["object"], row["calls"]) for row in rows] == [("/bin/prog", 2500)]


def test_missing_context_switches_are_told(graftrace):
    subprocess.run(
        [BUILD / "tests" / "tools" / "looking_sample", "graftrace.data", "9", "1", "10", "77"],
        cwd=graftrace.directory, check=True, capture_output=True, timeout=PATIENCE)
    done = graftrace("report")
    assert "77 context switches are missing" in done.stderr
    assert "Off CPU" in done.stdout


def test_a_recording_cut_off_gives_what_is_whole_and_says_so(graftrace):
    sample(graftrace, 8, 2, 20000)
    path = graftrace.directory / "graftrace.data"
    path.write_bytes(path.read_bytes()[:-1000])
    done = graftrace("report", code=None)
    assert done.returncode in (0, 1)
    assert "byte" in done.stderr
    assert done.stdout == "" or done.stdout.lstrip().startswith("Self %")


def test_wrong_words_are_refused_with_2_and_missing_files_with_1(graftrace):
    assert "no-such" in graftrace("report", "no-such", code=1).stderr
    assert "record" in graftrace("report", code=1).stderr
    for words in (["--by", "x"], ["--sort", "size"], ["--fields", "self,size"], ["-f", ""], ["--limit", "0"], ["--format", "xml"],
                  ["--nonsense"], ["a", "b"]):
        done = graftrace("report", *words, code=2)
        assert "graftrace report" in done.stderr and done.stdout == ""


def test_help_names_every_option(graftrace):
    text = graftrace("report", "--help").stdout
    for option in ("--sort", "--limit", "--by", "--format", "Exit code"):
        assert option in text


CPP = """
#include <map>
#include <string>
int main() {
    std::map<std::string, int> words;
    for (int i = 0; i < 100; i++) words[std::to_string(i)] = i;
    return (int)words.size() - 100;
}
"""


def test_names_of_templates_are_short_if_asked_for(graftrace, compile):
    graftrace("record", compile(CPP, "-O0", compiler="g++", suffix=".cc"))
    full = graftrace("report").stdout
    assert "std::_Rb_tree<std::" in full and "<…>" not in full
    for command in (["report"], ["show"], ["graph"]):
        short = graftrace(*command, "--names", "short").stdout
        assert "std::map<…>::operator[]" in short, command
        assert "allocator<" not in short.replace("allocator<…>", ""), command
    assert "is none of short, full" in graftrace("report", "--names", "long", code=2).stderr


def test_a_process_has_the_name_of_the_program_that_it_executed(graftrace):
    graftrace("record", "--", "sh", "-c", "/bin/ls / | /usr/bin/sort; :")
    rows = json.loads(graftrace("report", "--by=process", "--format=json").stdout)["rows"]
    assert sorted(row["process"].split("-")[0] for row in rows) == ["ls", "sh", "sort"]
    events = json.loads(graftrace("export", "--to", "chrome", "-o", "-").stdout)["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert sorted(names.values()) == ["ls", "sh", "sort"]


def test_calls_that_a_fork_inherits_are_not_said_to_have_lost_records(graftrace, compile):
    graftrace("record", compile("""
        #include <sys/wait.h>
        #include <unistd.h>
        __attribute__((noinline)) int both(void) { int child = fork(); return child ? wait(0) != child : 0; }
        int main(void) { return both(); }""", "-O1"))
    told = graftrace("report").stdout
    assert "Of 2 calls not all records are there: some were lost, or the calls began in the process" in told
    assert "that forked this one." in told
