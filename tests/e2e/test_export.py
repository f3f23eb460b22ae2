# SPDX-License-Identifier: MIT
"""graftrace export: each format as another program reads it, against the truth of a made recording."""

import collections
import csv
import io
import json
import re
import subprocess
import xml.etree.ElementTree as xml

import pytest

from conftest import PATIENCE, ROOT
from test_report import sample

# Field numbers that Perfetto's own protos have; protoc reads what we wrote by this.
PERFETTO = """
syntax = "proto2";
message Trace { repeated TracePacket packet = 1; }
message TracePacket {
  optional uint64 timestamp = 8;
  optional TrackEvent track_event = 11;
  optional InternedData interned_data = 12;
  optional TrackDescriptor track_descriptor = 60;
  optional uint32 trusted_packet_sequence_id = 10;
  optional uint32 sequence_flags = 13;
}
message DebugAnnotation { optional string name = 10; optional string string_value = 6; }
message TrackEvent {
  repeated DebugAnnotation debug_annotations = 4;
  optional int32 type = 9;
  optional uint64 name_iid = 10;
  optional uint64 track_uuid = 11;
  optional string name = 23;
}
message EventName { optional uint64 iid = 1; optional string name = 2; }
message InternedData { repeated EventName event_names = 2; }
message TrackDescriptor {
  optional uint64 uuid = 1;
  optional string name = 2;
  optional ProcessDescriptor process = 3;
  optional ThreadDescriptor thread = 4;
  optional uint64 parent_uuid = 5;
}
message ProcessDescriptor { optional int32 pid = 1; optional string process_name = 6; }
message ThreadDescriptor { optional int32 pid = 1; optional int32 tid = 2; optional string thread_name = 5; }
"""
PPROF = "/usr/share/gocode/src/github.com/google/pprof/proto/profile.proto"


@pytest.fixture
def made(graftrace):
    """A recording with coroutines, jumps and calls that are open at the end; what is true of it."""
    return sample(graftrace, 11, 7, 3000)


def export(graftrace, form, *words):
    return graftrace("export", "--to", form, "-q", "-o", "-", *words).stdout


def rows_of(graftrace, *words):
    return list(csv.DictReader(io.StringIO(export(graftrace, "csv", *words))))


def run(*words, cwd):
    return subprocess.run(words, cwd=cwd, check=True, capture_output=True, text=True, timeout=PATIENCE)


def check_calls(calls, truth):
    """calls: (function, how it ended, duration ns) of each call."""
    found = collections.defaultdict(lambda: [0, 0, 1 << 64, 0])
    for function, end, duration in calls:
        row = found[function]
        row[0] += 1
        row[1] += end != "return"
        if end == "return":
            row[2:] = [min(row[2], duration), max(row[3], duration)]
    assert found.keys() == truth.keys()
    for name, true in truth.items():
        assert found[name] == [true["calls"], true["not_returned"], true["minimum"],
                               true["maximum"]], name


def test_csv_has_every_call_with_its_times(graftrace, made):
    rows = rows_of(graftrace)
    check_calls([(row["function"], row["end"], int(row["duration_ns"])) for row in rows], made)
    own = collections.Counter()
    for row in rows:
        if row["end"] == "return":
            own[row["function"]] += int(row["self_ns"])
    assert own == {name: true["self"] for name, true in made.items()}
    ids = {row["id"]: row for row in rows}
    assert len(ids) == len(rows)
    for row in rows:
        if row["parent"]:
            parent = ids[row["parent"]]
            assert int(parent["depth"]) == int(row["depth"]) - 1
            assert parent["tid"] == row["tid"]
            assert int(parent["start_ns"]) <= int(row["start_ns"])
            assert (int(row["start_ns"]) + int(row["duration_ns"])
                    <= int(parent["start_ns"]) + int(parent["duration_ns"]))
        else:
            assert row["depth"] == "0"


def test_json_lines_say_the_same_as_csv(graftrace, made):
    rows = rows_of(graftrace)
    lines = [json.loads(line) for line in export(graftrace, "json").splitlines()]
    assert made and len(lines) == len(rows) > 0
    for line, row in zip(lines, rows):
        assert {name: "" if value is None else str(value) for name, value in line.items()} == row


def test_clickhouse_gets_a_table_and_the_same_rows(graftrace, made):
    rows = rows_of(graftrace)
    table = graftrace("export", "--to", "clickhouse", "--create-table").stdout
    columns = re.findall(r"[(,] ?(\w+) [A-Z]", table.split("ENGINE")[0])
    assert made and table.endswith(";\n")
    for line, row in zip(export(graftrace, "clickhouse").splitlines(), rows, strict=True):
        there = dict(zip(columns, line.split("\t"), strict=True))
        for name in ("depth", "id", "tid", "function", "duration_ns", "self_ns", "end"):
            assert there[name] == row[name], name
    assert "goes into no table" in graftrace("export", "--to", "csv", "--create-table", code=2).stderr


def test_chrome_events_nest_in_each_thread(graftrace, made):
    events = json.loads(export(graftrace, "chrome"))["traceEvents"]
    calls = [event for event in events if event["ph"] == "X"]
    check_calls([(event["name"], "open" if "args" in event else "return",
                  round(event["dur"] * 1000)) for event in calls], made)
    named = {(event["pid"], event["tid"]) for event in events if event["ph"] == "M"}
    by_thread = collections.defaultdict(list)
    for event in calls:
        start = round(event["ts"] * 1000)
        by_thread[event["pid"], event["tid"]].append((start, start + round(event["dur"] * 1000)))
    assert by_thread.keys() <= named
    for spans in by_thread.values():
        open_ends = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)


PARTLY = """
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void leaf(int n) { __asm__ volatile("" : : "r"(n)); }
__attribute__((noinline)) void slow(int n) { leaf(n); usleep(1500); leaf(n); }
__attribute__((noinline)) void outer(int n) { for (int i = 0; i < n; i++) leaf(i); slow(n); }
int main(void) { for (int i = 0; i < 300; i++) outer(i); exit(0); }
"""


@pytest.mark.parametrize("recorded, words", [
    ([], []), ([], ["-t", "+100ms-+300ms"]), ([], ["-g", "slow"]), (["--threshold", "1ms"], []),
    (["--overwrite", "--buffer-size", "64K"], []), (["--buffer-size", "64K"], []),
])
def test_chrome_on_stdout_has_what_the_file_has(graftrace, compile, recorded, words):
    """A pipe cannot be written anew: it is read once or twice, and the calls are the same."""
    graftrace("record", *recorded, compile(PARTLY, "-O1"))
    graftrace("export", "--to", "chrome", "-q", "-o", "file", *words)
    events = [sorted(json.dumps(event, sort_keys=True) for event in json.loads(text)["traceEvents"]) for text in
              (export(graftrace, "chrome", *words), (graftrace.directory / "file").read_text())]
    assert len(events[0]) > 20
    assert events[0] == events[1]


def test_speedscope_profiles_open_and_close_in_order(graftrace, made):
    whole = json.loads(export(graftrace, "speedscope"))
    assert whole["$schema"].endswith("speedscope.app/file-format-schema.json")
    names = [frame["name"] for frame in whole["shared"]["frames"]]
    counts = collections.Counter()
    for profile in whole["profiles"]:
        stack, last = [], profile["startValue"]
        for event in profile["events"]:
            assert event["at"] >= last
            last = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
                counts[names[event["frame"]]] += 1
            else:
                assert stack.pop() == event["frame"]
        assert not stack and last == profile["endValue"]
    assert counts == {name: true["calls"] for name, true in made.items()}


def decode(schema, message, data, folder):
    (folder / "schema.proto").write_text(schema)
    return subprocess.run(["protoc", f"-I{folder}", f"--decode={message}", "schema.proto"], input=data,
                          cwd=folder, capture_output=True, check=True, timeout=PATIENCE).stdout.decode()


def test_perfetto_packets_are_decoded_by_protoc(graftrace, made, tmp_path):
    graftrace("export", "--to", "perfetto", "-q", "-o", "p")
    text = decode(PERFETTO, "Trace", (tmp_path / "p").read_bytes(), tmp_path)
    assert not re.search(r"^\s*\d+:", text, re.M), "a field that the schema does not have"
    names = dict(re.findall(r'event_names \{\s+iid: (\d+)\s+name: "([^"]+)"', text))
    stacks = collections.defaultdict(list)
    counts, closed = collections.Counter(), 0
    for event in re.findall(r"track_event \{(.*?)\n  \}", text, re.S):
        field = dict(re.findall(r"(\w+): (\d+)", event))
        if field["type"] == "1":
            stacks[field["track_uuid"]].append(field["name_iid"])
            counts[names[field["name_iid"]]] += 1
        elif field["type"] == "2":
            stacks[field["track_uuid"]].pop()
            closed += 1
    assert counts == {name: true["calls"] for name, true in made.items()}
    assert closed == sum(counts.values()) and not any(stacks.values())


def test_pprof_is_decoded_by_its_own_description(graftrace, made, tmp_path):
    graftrace("export", "--to", "pprof", "-q", "-o", "p")
    with open(PPROF, encoding="utf-8") as schema:
        text = decode(schema.read(), "perftools.profiles.Profile", (tmp_path / "p").read_bytes(),
                      tmp_path)
    assert not re.search(r"^\s*\d+:", text, re.M), "a field that the schema does not have"
    strings = re.findall(r'^string_table: "(.*)"$', text, re.M)
    assert strings[:5] == ["", "calls", "count", "time", "nanoseconds"]
    names = {number: strings[int(name)] for number, name in
             re.findall(r"^function \{\n  id: (\d+)\n  name: (\d+)", text, re.M)}
    calls = collections.Counter()
    for stack in re.findall(r"^sample \{\n(.*?)^\}", text, re.M | re.S):
        innermost = re.search(r"location_id: (\d+)", stack)[1]
        calls[names[innermost]] += int(re.search(r"value: (\d+)", stack)[1])
    assert calls == {name: true["calls"] for name, true in made.items()}


def test_babeltrace_reads_every_call(graftrace, made, tmp_path):
    graftrace("export", "--to", "ctf", "-q", "-o", "out")
    text = subprocess.run(["babeltrace2", "--no-delta", "--clock-seconds", "out"], cwd=tmp_path,
                          check=True, capture_output=True, text=True, timeout=120)
    assert text.stderr == ""
    calls, stacks, ended = [], collections.defaultdict(list), {}
    for line in text.stdout.splitlines():
        seconds, name = re.match(r"\[(\d+\.\d+)\] .*?(\w+:\w+):", line).groups()
        clock = int(seconds.replace(".", ""))
        # Each stack is a stream; a thread's calls on one stack nest.
        stack = stacks[re.search(r"vtid = (\d+)", line)[1]]
        if name.endswith("func_entry"):
            stack.append((re.search(r'name = "(\w+)"', line)[1], clock))
        elif name == "graftrace:flags":
            ended[id(stack)] = re.search(r'end = "(\w+)"', line)[1]
        elif name.endswith("func_exit"):
            calls.append((stack, ended.pop(id(stack), "return")))
    counts = collections.Counter(re.findall(r'func_entry: .* name = "(\w+)"', text.stdout))
    assert counts == {name: true["calls"] for name, true in made.items()}
    assert collections.Counter(end != "return" for _, end in calls)[True] == sum(
        true["not_returned"] for true in made.values())
    assert len(calls) == sum(counts.values())
    details = subprocess.run(["babeltrace2", "-o", "ctf-metadata", "out/trace"], cwd=tmp_path, check=True,
                             capture_output=True, text=True, timeout=PATIENCE).stdout
    # What Trace Compass' LTTng-UST call stack asks for.
    for line in ['domain = "ust"', 'tracer_name = "lttng-ust"', "tracer_major = 2", "_vtid", "_vpid",
                 "_procname", '"lttng_ust_cyg_profile_fast:func_entry"',
                 '"lttng_ust_cyg_profile_fast:func_exit"', "_addr"]:
        assert line in details, line
    names = dict(line.split(" T ") for line in (tmp_path / "out/functions.map").read_text().splitlines())
    addresses = set(re.findall(r"addr = 0x([0-9A-F]+)", text.stdout))
    assert {f"{int(address, 16):016x}" for address in addresses} == names.keys()


def test_the_times_that_babeltrace_reads_are_those_of_csv(graftrace, made, tmp_path):
    graftrace("export", "--to", "ctf", "-q", "-o", "out")
    text = subprocess.run(["babeltrace2", "--no-delta", "--clock-seconds", "out"], cwd=tmp_path,
                          check=True, capture_output=True, text=True, timeout=120).stdout
    entries = collections.Counter()
    for seconds, tid, name in re.findall(
            r'^\[(\d+\.\d+)\] .*func_entry: .*vtid = (\d+),.* name = "(\w+)"', text, re.M):
        entries[tid, name, int(seconds.replace(".", ""))] += 1
    rows = rows_of(graftrace)
    first = min(clock for _, _, clock in entries) - min(int(row["start_ns"]) for row in rows)
    assert made and entries == collections.Counter(
        (row["tid"], row["function"], int(row["start_ns"]) + first) for row in rows)


NAMED = r"""
#include <pthread.h>
#include <sys/prctl.h>
__attribute__((noinline)) void work(void) { __asm__ volatile("nop; nop; nop; nop; nop"); }
static void *run(void *name)
{
    if (name)
        prctl(PR_SET_NAME, name);
    work();
    return NULL;
}
int main(void)
{
    const char *names[] = {"db writer", "net\nloop", NULL};
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, run, (void *)names[i]);
        pthread_join(thread, NULL);
    }
    return 0;
}
"""


def test_uftrace_calls_threads_by_their_own_names(graftrace, compile, tmp_path):
    program = compile(NAMED, "-O0", "-pthread").rename(tmp_path / "named")
    graftrace("record", program, "two\nlines")
    graftrace("export", "--to", "uftrace", "-q", "-o", "out")

    def uftrace(*words):
        return run("uftrace", *words, "-d", "out", "--no-pager", cwd=tmp_path).stdout
    names = [line.split(None, 6)[6].strip() for line in uftrace("report", "--task").splitlines()[2:]]
    assert sorted(names) == sorted(["named"] * 2 + ["db writer", "net?loop"])
    replay = uftrace("replay", "-f", "+task")
    assert all(re.search(rf"\] +{re.escape(name)} \|.* work\(\);", replay) for name in names), replay
    assert "linux:" not in replay and "inverted" not in replay
    info = uftrace("info")
    assert "(db writer)" in info and f"{program.name} 'two?lines'" in info


def test_uftrace_reports_the_same_figures(graftrace, made, tmp_path):
    graftrace("export", "--to", "uftrace", "-q", "-o", "out")
    table = subprocess.run(["uftrace", "report", "-d", "out", "-f", "total,self,call"], cwd=tmp_path,
                           check=True, capture_output=True, text=True, timeout=PATIENCE)
    calls = {name: int(count) for count, name in re.findall(r" (\d+)  (\w+)$", table.stdout, re.M)}
    assert calls == {name: true["calls"] for name, true in made.items()}
    replay = subprocess.run(["uftrace", "replay", "-d", "out", "--no-pager"], cwd=tmp_path, check=True,
                            capture_output=True, text=True, timeout=PATIENCE)
    assert len(re.findall(r"\| +call_\d+\(\)", replay.stdout)) == sum(calls.values())
    graph = subprocess.run(["uftrace", "graph", "-d", "out", "--no-pager"], cwd=tmp_path, check=True,
                           capture_output=True, text=True, timeout=PATIENCE)
    merged = collections.Counter()
    for count, name in re.findall(r"\((\d+)\) (call_\d+)$", graph.stdout, re.M):
        merged[name] += int(count)
    assert merged == calls


def test_sqlite_answers_the_same_as_csv(graftrace, made, tmp_path):
    graftrace("export", "--to", "sqlite", "-q", "-o", "out")
    table = subprocess.run(
        ["sqlite3", "-csv", "out", "SELECT f.name, count(*), sum(c.end != 'return'), sum(c.self_ns), "
         "max(c.duration_ns) FROM calls c JOIN functions f ON f.id = c.function GROUP BY 1 ORDER BY 1"],
        cwd=tmp_path, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])
    for row in rows_of(graftrace):
        row_sums = sums[row["function"]]
        row_sums[0] += 1
        row_sums[1] += row["end"] != "return"
        row_sums[2] += int(row["self_ns"])
        row_sums[3] = max(row_sums[3], int(row["duration_ns"]))
    found = {name: list(map(int, numbers)) for name, *numbers in csv.reader(io.StringIO(table))}
    assert made and found == sums
    whole = subprocess.run(["sqlite3", "out", "PRAGMA integrity_check; PRAGMA foreign_key_check"],
                           cwd=tmp_path, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
    assert whole == "ok\n"


def test_a_folder_that_is_there_is_replaced_only_on_request(graftrace, made, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("precious")
    said = graftrace("export", "--to", "ctf", "-q", "-o", "out", code=1).stderr
    assert made and "'out' is there already: --force replaces it" in said
    assert (tmp_path / "out" / "mine").read_text() == "precious"
    graftrace("export", "--to", "ctf", "-q", "-f", "-o", "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["functions.map", "trace"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graftrace.data", "out"]
    for form, words in [("ctf", "is a folder and cannot go to stdout"), ("sqlite", "cannot go to stdout")]:
        assert words in graftrace("export", "--to", form, "-o", "-", code=2).stderr


def own_times(graftrace):
    own = collections.Counter()
    for row in rows_of(graftrace):
        own[row["function"]] += int(row["self_ns"])
    return {name: time for name, time in own.items() if time}


def test_folded_stacks_sum_up_to_own_times(graftrace, made):
    own = collections.Counter()
    for line in export(graftrace, "folded").splitlines():
        stack, time = line.rsplit(" ", 1)
        own[stack.split(";")[-1]] += int(time)
    assert made
    expected = own_times(graftrace)
    assert own.keys() == expected.keys()
    for name, time in expected.items():
        assert abs(own[name] - time) <= 3000, name  # a nanosecond is rounded off each stack


def test_callgrind_annotate_agrees(graftrace, made, tmp_path):
    graftrace("export", "--to", "callgrind", "-q", "-o", "out")
    table = subprocess.run(["callgrind_annotate", "--threshold=100", "out"], cwd=tmp_path, check=True,
                           capture_output=True, text=True, timeout=PATIENCE)
    assert table.stderr == ""
    own = {name: int(time.replace(",", "")) for time, name in
           re.findall(r"^ *([\d,]+) \([ \d.]+%\)  .*:(\S+)", table.stdout, re.M)}
    expected = own_times(graftrace)
    assert made and own.keys() == expected.keys()
    for name, time in expected.items():
        assert abs(own[name] - time) <= 3000, name


def test_graphviz_draws_the_call_graph(graftrace, tmp_path):
    made = sample(graftrace, 12, 1, 30)  # of many functions that all call each other it takes minutes
    graftrace("export", "--to", "dot", "-q", "-o", "calls.dot")
    drawn = subprocess.run(["dot", "-Tplain", "calls.dot"], cwd=tmp_path, check=True,
                           capture_output=True, text=True, timeout=PATIENCE).stdout
    nodes = re.findall(r"^node f\d+ ", drawn, re.M)
    assert 5 < len(nodes) <= len(made) and re.search(r"^edge ", drawn, re.M)


def test_the_flame_graph_is_xml_that_names_what_took_long(graftrace, made):
    svg = export(graftrace, "svg")
    frames = list(xml.fromstring(svg).iter("{http://www.w3.org/2000/svg}g"))
    bottom = [frame for frame in frames if frame.get("data-d") == "1"]
    assert made and abs(sum(float(frame.get("data-w")) for frame in bottom) - 1200) < 12
    assert {frame.get("data-n") for frame in frames} <= set(made)


ODD = 'odd"n,a;me<&>'


def test_odd_names_break_no_format(graftrace, compile, tmp_path):
    program = compile("""
        __attribute__((noinline)) int odd(int x) { for (int i = 0; i < 1000000; i++) __asm__ volatile(""); return x; }
        int main(void) { return odd(0) + 0 * odd(1); }""", "-O1")
    subprocess.run(["objcopy", f"--redefine-sym=odd={ODD}", program, tmp_path / "odd"], check=True)
    graftrace("record", tmp_path / "odd")
    assert ODD in {row["function"] for row in rows_of(graftrace)}
    assert ODD in {json.loads(line)["function"] for line in export(graftrace, "json").splitlines()}
    assert ODD in {event["name"] for event in json.loads(export(graftrace, "chrome"))["traceEvents"]}
    frames = json.loads(export(graftrace, "speedscope"))["shared"]["frames"]
    assert ODD in {frame["name"] for frame in frames}
    assert ODD in {frame.get("data-n") for frame in xml.fromstring(export(graftrace, "svg")).iter()}
    assert re.search(r'^main;odd"n,a:me<&> \d+$', export(graftrace, "folded"), re.M)
    graftrace("export", "--to", "dot", "-q", "-o", "out")
    subprocess.run(["dot", "-Tplain", "out"], cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE)


def test_a_threshold_recording_has_its_slow_calls_nested(graftrace, compile):
    program = compile("""
        #include <unistd.h>
        __attribute__((noinline)) void slow(int n) { usleep(3000); __asm__ volatile(""); (void)n; }
        __attribute__((noinline)) void quick(void) { __asm__ volatile(""); }
        __attribute__((noinline)) void outer(void) { quick(); slow(1); quick(); slow(2); }
        int main(void) { outer(); outer(); return 0; }""", "-O1")
    graftrace("record", "--threshold", "1ms", program)
    rows = rows_of(graftrace)
    count = collections.Counter(row["function"] for row in rows)
    assert count == {"slow": 4, "outer": 2, "main": 1}
    ids = {row["id"]: row["function"] for row in rows}
    for row in rows:
        expected = {"slow": "outer", "outer": "main", "main": None}[row["function"]]
        assert ids.get(row["parent"]) == expected


def test_a_window_cuts_calls_at_its_ends(graftrace, made):
    rows = rows_of(graftrace)
    end = max(int(row["start_ns"]) + int(row["duration_ns"]) for row in rows)
    part = rows_of(graftrace, "-t", f"+{end // 3}ns-+{end // 2}ns")
    assert made and 0 < len(part) < len(rows)
    one = rows[0]["tid"]
    assert {row["tid"] for row in rows_of(graftrace, "--tid", one)} == {one}


def test_mistakes_are_told_and_leave_what_was_there(graftrace, made, tmp_path):
    said = graftrace("export", code=2).stderr
    assert made and "which format? Say --to FORMAT" in said
    said = graftrace("export", "--to", "excel", code=2).stderr
    assert "no format 'excel'" in said and "chrome" in said
    (tmp_path / "old").write_text("precious")
    said = graftrace("export", "--to", "csv", "-o", "/dev/full", code=1).stderr
    assert "cannot write '/dev/full': No space left on device" in said
    said = graftrace("export", "--to", "csv", "-o", "nowhere/x", code=1).stderr
    assert "nowhere/x" in said
    assert "no call is left to be exported; did you mean 'call_3'?" in graftrace(
        "export", "--to", "csv", "-g", "cal_3", "-o", "-").stderr
    graftrace("export", "--to", "csv", "-o", "old", "missing.data", code=1)
    assert (tmp_path / "old").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graftrace.data", "old"]


def test_events_alone_are_told_as_events(graftrace):
    graftrace("record", "-e", "syscalls", "--", "true")
    done = graftrace("export", "--to", "events-json", "-o", "it.json")
    count = len((graftrace.directory / "it.json").read_text().splitlines())
    assert done.stderr == f"graftrace export: {count} events to it.json\n" and count > 5
    said = graftrace("export", "--to", "csv", "-o", "it.csv").stderr
    assert "has events alone, no calls: --to events-csv" in said and "0 calls of 1 stack" in said


def test_every_format_is_in_the_man_page_and_in_completion(graftrace):
    listed = re.findall(r"^          (\S+) +\S", graftrace("export", "--help").stdout, re.M)
    page = (ROOT / "doc" / "man" / "graftrace-export.1").read_text()
    completion = (ROOT / "completions" / "graftrace").read_text()
    assert len(listed) >= 11
    for name in listed:
        assert f"\n.B {name}\n" in page, name
        assert re.search(rf"export:--to\) words='[^']*\b{re.escape(name)}\b", completion), name


THREADS = r"""
#include <pthread.h>
#define KEEP __attribute__((noinline, noclone))
volatile unsigned long sink;
KEEP void leaf(int i) { for (int k = 0; k < i; k++) sink++; }
KEEP void middle(int i) { leaf(i); leaf(2 * i); }
KEEP void *work(void *none) { for (int i = 0; i < 400; i++) middle(i); return none; }
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
"""


def test_trace_cmd_reports_every_call_with_its_duration(graftrace, compile, tmp_path):
    graftrace("record", compile(THREADS, "-O1", "-pthread"))
    told = graftrace("export", "--to", "trace.dat").stderr
    assert told == "graftrace export: 'graftrace.data' to trace.dat, for trace-cmd report and KernelShark\n"
    assert graftrace("export", "--to", "trace.dat", "-q").stderr == ""
    text = subprocess.run(
        ["trace-cmd", "report", "-i", "trace.dat", "-O", "fgraph:tailprint=1"], cwd=tmp_path,
        check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
    theirs = [(int(tid), name, round(float(us) * 1000)) for tid, us, name in re.findall(
        r"-(\d+) +\[\d+\] +[\d.]+: funcgraph_\w+: +[+!#*@$]? *([\d.]+) us +\|  +"
        r"(?:\} /\* )?(\w+)(?:\(\);| \*/)$", text, re.M)]
    ours = [(call["tid"], call["function"], call["duration_ns"]) for call in map(
        json.loads, graftrace("show", "--format", "json").stdout.splitlines())]
    assert len(ours) == 3 + 1 + 3 * 400 * 3
    assert len(theirs) == len(ours)
    for (tid, name, ns), one in zip(sorted(theirs), sorted(ours)):
        # A duration is the difference of two stamps there, each cut to nanoseconds.
        assert (tid, name) == one[:2]
    by_call = lambda calls: {key: sorted(ns for tid, name, ns in calls if (tid, name) == key)
                             for key in {call[:2] for call in calls}}
    for key, durations in by_call(ours).items():
        assert all(abs(a - b) <= 1 + a // 10 ** 5 for a, b in zip(
            durations, by_call(theirs)[key])), key
    for words, what in ((["-o", "-"], "cannot go to stdout"), (["--tid", "5"], "whole recording")):
        assert what in graftrace("export", "--to", "trace.dat", *words, code=2).stderr
    assert "regular file" in graftrace("export", "--to", "trace.dat", "-o", "/dev/stdout",
                                       code=1).stderr


LOSER = r"""
#include <pthread.h>
pthread_barrier_t together;
volatile int sum;
__attribute__((noinline)) void leaf(void) { sum++; }
__attribute__((noinline)) void *work(void *none)
{
	leaf();
	pthread_barrier_wait(&together); /* both have calls at the beginning … */
	for (int i = 0; i < 60000; i++)
		leaf();
	pthread_barrier_wait(&together); /* … and at the end */
	for (int i = 0; i < 1000; i++)
		leaf();
	return none;
}
int main(void)
{
	pthread_t other;
	pthread_barrier_init(&together, 0, 2);
	pthread_create(&other, 0, work, 0);
	work(0);
	pthread_join(other, 0);
	return 0;
}
"""


@pytest.mark.parametrize("which", ["--serve=127.0.0.1:0", "--overwrite"])
def test_what_a_ring_lost_is_marked_in_each_formats_own_way(graftrace, compile, tmp_path, which):
    """Records tell only of what was lost between others: not of what was lost before the first or behind the last."""
    graftrace("record", which, "--buffer-size", "512k", compile(LOSER, "-O1", "-pthread"))
    lost = int(re.search(r"^lost +(\d+)$", graftrace("info").stdout, re.M)[1])
    opened = sum(row["end"] != "return" for row in rows_of(graftrace))
    assert lost > 10000
    words = f"{lost} records lost"

    events = json.loads(export(graftrace, "chrome"))["traceEvents"]
    told = [re.fullmatch(r"(\d+) records lost", event["name"]) for event in events if event["ph"] == "i"]
    assert sum(int(one[1]) for one in told) == lost
    assert sum(event.get("args", {}).get("end") == "still open" for event in events) == opened
    graftrace("export", "--to", "perfetto", "-q", "-o", "p")
    text = decode(PERFETTO, "Trace", (tmp_path / "p").read_bytes(), tmp_path)
    assert sum(map(int, re.findall(r'name: "(\d+) records lost"', text))) == lost
    assert len(re.findall(r'string_value: "still open"\s+name: "end"', text)) == opened
    assert words in json.loads(export(graftrace, "speedscope"))["name"]
    assert words in export(graftrace, "svg")
    assert f'label="{words}' in export(graftrace, "dot")
    assert f"\ndesc: Recording: {words}" in export(graftrace, "callgrind")
    graftrace("export", "--to", "pprof", "-q", "-o", "p")
    with open(PPROF, encoding="utf-8") as schema:
        text = decode(schema.read(), "perftools.profiles.Profile", (tmp_path / "p").read_bytes(), tmp_path)
    strings = re.findall(r'^string_table: "(.*)"$', text, re.M)
    assert words in strings[int(re.search(r"^comment: (\d+)$", text, re.M)[1])]
    graftrace("export", "--to", "sqlite", "-q")
    assert run("sqlite3", "trace.sqlite", "SELECT value FROM run WHERE name = 'records_lost'",
               cwd=tmp_path).stdout == f"{lost}\n"
    graftrace("export", "--to", "ctf", "-q", "-o", "ctf")
    assert "Tracer may have discarded events" in run("babeltrace2", "ctf", cwd=tmp_path).stderr
    graftrace("export", "--to", "uftrace", "-q", "-o", "uftrace")
    assert re.search(r"\[lost \]", run("uftrace", "dump", "-d", "uftrace", cwd=tmp_path).stdout)
    graftrace("export", "--to", "trace.dat", "-q")
    stats = run("trace-cmd", "report", "--stat", "-i", "trace.dat", cwd=tmp_path).stdout
    assert sum(map(int, re.findall(r"^(?:overrun|dropped events): (\d+)$", stats, re.M))) >= lost


OUTER = r"""
#include <stdio.h>
volatile int sum;
__attribute__((noinline)) void inner(void) { sum++; }
__attribute__((noinline)) void outer(void)
{
	for (int i = 0; i < 30000; i++)
		inner();
	sum++;
}
int main(void)
{
	outer();
	return 0;
}
"""


def test_a_call_whose_entry_is_missing_begins_a_file_anew(graftrace, compile, tmp_path):
    """It is met at its return, when much has been written; what goes to a pipe is read twice."""
    graftrace("record", compile(OUTER, "-O1"))
    inner = [(int(row["start_ns"]), int(row["duration_ns"])) for row in rows_of(graftrace)
             if row["function"] == "inner"]
    # What ends in the nanoseconds in which the window begins is in it, and some machines' clocks stand that long: so it
    # begins behind the longest pause between two calls.
    first = max(range(100, len(inner) // 2), key=lambda i: inner[i][0] - sum(inner[i - 1]))
    window = ("-t", f"+{inner[first][0]}ns-")
    for form in ("csv", "json", "chrome", "speedscope", "perfetto", "folded", "callgrind"):
        graftrace("export", "--to", form, "-o", "whole", *window)
        piped = subprocess.run([graftrace.path, "export", "--to", form, "-q", "-o", "-", *window],
                               cwd=tmp_path, capture_output=True, check=True, timeout=PATIENCE).stdout
        assert (tmp_path / "whole").read_bytes() == piped
    assert collections.Counter(row["function"] for row in rows_of(graftrace, *window)) == {
        "main": 1, "outer": 1, "inner": len(inner) - first}
    tree = graftrace("graph", *window).stdout
    assert re.search(r" 1  main$", tree, re.M) and re.search(r" 1  `- outer$", tree, re.M)
