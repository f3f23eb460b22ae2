# SPDX-License-Identifier: MIT
"""Events with their fields in exported rows and in report: each once, with the call around it, as show has them."""

import csv
import io
import json
import re
import subprocess

import pytest

from conftest import PATIENCE, ROOT


@pytest.fixture
def recorded(compile, graftrace):
    program = compile("events.c", "-O2", "-pthread", f"-I{ROOT / 'include'}")
    graftrace("record", "-p", "function_graph", "-e", "shop", "-e", "usdt_own", "--", program, "fields")
    return graftrace


def export(graftrace, form):
    return graftrace("export", "--to", form, "-q", "-o", "-").stdout


def rows_of(graftrace, form):
    return list(csv.DictReader(io.StringIO(export(graftrace, form))))


LONG = "0123456789" * 7
SOLD = [
    {"count": 1, "what": "apples", "small": 200, "negative": -6, "price": 2.5, "nowhere": 16},
    {"count": -2, "what": "", "small": 0, "negative": -3, "price": -0.125, "nowhere": 16},
    {"count": 3, "what": None, "small": 255, "negative": -8, "price": 1e300, "nowhere": 16},
    {"count": 4, "what": LONG[:63], "small": 1, "negative": -9, "price": 0, "nowhere": 16},
]


def test_csv_has_each_event_with_its_fields_and_its_call(recorded):
    rows = rows_of(recorded, "events-csv")
    calls = {row["id"]: row for row in rows_of(recorded, "csv")}
    assert [json.loads(row["fields"]) for row in rows if row["event"] == "sold"] == SOLD
    assert [(row["system"], row["event"], row["fields"]) for row in rows[-1:]] == [("shop", "closed", "{}")]
    for row in rows:
        call = calls[row["call"]]
        assert row["function"] == call["function"] == ("tell" if row["event"] == "sold" else "main")
        assert (row["pid"], row["tid"], row["thread"]) == (call["pid"], call["tid"], call["thread"])
        assert 0 <= int(row["time_ns"]) - int(call["start_ns"]) <= int(call["duration_ns"])


def test_json_lines_say_the_same(recorded):
    rows = rows_of(recorded, "events-csv")
    lines = [json.loads(line) for line in export(recorded, "events-json").splitlines()]
    assert len(lines) == len(rows) == 5
    for line, row in zip(lines, rows):
        assert line.pop("fields") == json.loads(row.pop("fields"))
        assert {name: str(value) for name, value in line.items()} == row


def test_clickhouse_gets_a_table_and_the_same_rows(recorded):
    table = recorded("export", "--to", "events-tsv", "--create-table").stdout
    columns = re.findall(r"[(,] ?(\w+) [A-Z]", table.split("ENGINE")[0])
    rows = rows_of(recorded, "events-csv")
    began = None
    for line, row in zip(export(recorded, "events-tsv").splitlines(), rows, strict=True):
        there = dict(zip(columns, line.split("\t"), strict=True))
        began = int(there["time_ns"]) - int(row["time_ns"]) if began is None else began
        assert int(there.pop("time_ns")) - int(row.pop("time_ns")) == began
        assert {name: there[name] for name in row} == row


def test_sqlite_has_values_with_their_types(recorded, tmp_path):
    recorded("export", "--to", "sqlite", "-q", "-o", "out")

    def ask(question):
        return json.loads(subprocess.run(["sqlite3", "-json", "out", question], cwd=tmp_path, check=True,
                                         capture_output=True, text=True, timeout=PATIENCE).stdout)

    rows = ask("SELECT e.id, f.name AS function, field, value FROM events e JOIN event_fields ON event_id = e.id "
               "JOIN calls c ON c.id = e.call JOIN functions f ON f.id = c.function WHERE e.event = 'sold'")
    assert {row["function"] for row in rows} == {"tell"}
    assert [{row["field"]: row["value"] for row in rows if row["id"] == number} for number in (1, 2, 3, 4)] == SOLD
    assert ask("SELECT min(value) least, avg(value) mean, max(value) most FROM event_fields WHERE field = 'count'") == [
        {"least": -2, "mean": 1.5, "most": 4}]


def test_arguments_and_results_go_into_clickhouse_and_the_view(compile, graftrace, tmp_path):
    graftrace("record", "--args", "--retval", "--", compile("arguments.c", "-O0", "-g"))
    rows = [(row["function"], row["arguments"], row["result"]) for row in rows_of(graftrace, "csv")]
    assert any(arguments for _, arguments, _ in rows) and any(result for *_, result in rows)
    table = graftrace("export", "--to", "clickhouse", "--create-table").stdout
    columns = re.findall(r"[(,] ?(\w+) [A-Z]", table.split("ENGINE")[0])
    found = [dict(zip(columns, line.split("\t"), strict=True))
             for line in graftrace("export", "--to", "clickhouse", "-q", "-o", "-").stdout.splitlines()]
    escape = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "'": "\\'"}
    wanted = [tuple("".join(escape.get(letter, letter) for letter in text) if text else "\\N" for text in row)
              for row in rows]
    assert [(row["function"], row["arguments"].replace("\\'", "'"), row["result"].replace("\\'", "'"))
            for row in found] == [tuple(text.replace("\\'", "'") for text in row) for row in wanted]
    graftrace("export", "--to", "sqlite", "-q", "-o", "out")
    text = subprocess.run(["sqlite3", "-json", "out", "SELECT * FROM graftrace_calls ORDER BY id"], cwd=tmp_path,
                          check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
    in_view = sorted((row["function"], row["arguments"] or "", row["result"] or "") for row in json.loads(text))
    assert in_view == sorted(rows)


def test_what_somebody_marks_is_an_event_with_a_text(compile, graftrace):
    graftrace("record", "--", compile("marks.c", "-O2", "-pthread", f"-I{ROOT / 'include'}"))
    rows = rows_of(graftrace, "events-csv")
    assert rows and all(row["system"] in ("graftrace", "ftrace") for row in rows)
    texts = [json.loads(row["fields"]) for row in rows]
    shown = graftrace("show").stdout
    assert all(str(text[name]) in shown for text in texts for name in text)


def test_report_has_figures_of_fields_in_each_form(recorded):
    rows = list(csv.DictReader(io.StringIO(recorded("report", "--by", "event", "--format", "csv").stdout)))
    figures = {row["field"]: [row[name] and float(row[name]) for name in ("min", "avg", "max")] for row in rows}
    assert figures == {"count": [-2, 1.5, 4], "what": ["", "", ""], "small": [0, 114, 255], "negative": [-9, -6.5, -3],
                       "price": [-0.125, 2.5e299, 1e300], "nowhere": [16, 16, 16], "": ["", "", ""]}
    faults = {(row["system"], row["event"], row["count"], row["faults"]) for row in rows if row["field"] in ("what", "")}
    assert faults == {("shop", "sold", "4", "1"), ("shop", "closed", "1", "")}
    said = json.loads(recorded("report", "--by", "event", "--format", "json").stdout)["rows"]
    assert [(row["event"], row["count"], len(row["fields"])) for row in said] == [("sold", 4, 6), ("closed", 1, 0)]
    assert [said[0]["fields"][0][name] for name in ("field", "min", "avg", "max")] == ["count", -2, 1.5, 4]
    times = [int(row["time_ns"]) for row in rows_of(recorded, "events-csv") if row["event"] == "sold"]
    assert abs(said[0]["per_second"] / (3e9 / (times[-1] - times[0])) - 1) < 0.01
    text = recorded("report", "--by", "event").stdout
    assert re.search(r"^ +4 +[\d.]+  shop:sold\n +count +-2 +1\.5 +4$", text, re.M)
    assert recorded("report").stdout.endswith(text)


def test_a_report_of_events_alone_has_no_table_of_functions(recorded, compile):
    program = compile("events.c", "-O2", "-pthread", f"-I{ROOT / 'include'}")
    recorded("record", "-e", "shop", "-o", "alone.data", "--", program, "fields")
    told = recorded("report", "alone.data")
    assert told.stderr == "" and told.stdout == recorded("report", "--by", "event", "alone.data").stdout
    assert "shop:sold" in told.stdout


def test_report_counts_the_events_of_the_thread_and_the_time_that_are_asked_for(recorded):
    rows = rows_of(recorded, "events-csv")

    def counts(*words):
        table = recorded("report", "--by", "event", "--format", "csv", *words).stdout
        return {row["event"]: int(row["count"]) for row in csv.DictReader(io.StringIO(table))}

    assert counts("--tid", rows[0]["tid"]) == counts("--pid", rows[0]["pid"]) == {"sold": 4, "closed": 1}
    assert counts("--tid", "1") == counts("--pid", "1") == {}
    assert counts("--limit", "1") == {"sold": 4}
    middle = (int(rows[1]["time_ns"]) + int(rows[2]["time_ns"])) / 2000
    assert counts("-t", f"+{middle:.3f}us-") == {"sold": 2, "closed": 1}
    assert counts("-t", f"-+{middle:.3f}us") == {"sold": 2}
