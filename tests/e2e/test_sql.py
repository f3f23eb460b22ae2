# SPDX-License-Identifier: MIT
"""README's questions in SQL, answered by SQLite, DuckDB and ClickHouse; recordings of many machines side by side."""

import collections
import csv
import io
import os
import re
import subprocess
import time

import pytest

from conftest import PATIENCE, ROOT
from judges import clickhouse, duckdb

QUESTIONS = re.search(r"```sql\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1].strip().splitlines()


@pytest.fixture
def rows(graftrace, compile):
    """The calls of a second of README's service, as csv has them."""
    program = subprocess.Popen([compile(ROOT / "examples" / "requests.c", "-O1")], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.1)
        graftrace("record", "-P", program.pid, "--for", "1s")
    finally:
        program.kill()
        program.wait()
    graftrace("export", "--to", "csv", "-q")
    read = list(csv.DictReader((graftrace.directory / "trace-calls.csv").open(encoding="utf-8")))
    for row in read:
        for name in ("id", "parent", "start_ns", "duration_ns", "self_ns", "on_cpu_ns", "tid"):
            row[name] = int(row[name]) if row[name] else None
    return read


def expected(rows):
    """The answers, by Python alone: a list of rows each."""
    def sums(what, of=rows):
        found = collections.Counter()
        for row in of:
            found[row["function"]] += what(row)
        return found

    calls, own = sums(lambda row: 1), sums(lambda row: row["self_ns"])
    requests = [row for row in rows if row["function"] == "handle_request"]
    callers = {row["parent"] for row in rows if row["function"] == "reload"}
    callers = collections.Counter(row["function"] for row in rows if row["id"] in callers)
    waited = sums(lambda row: row["duration_ns"] - row["on_cpu_ns"],
                  [row for row in rows if row["on_cpu_ns"] is not None])
    slices = collections.defaultdict(list)
    for row in requests:
        slices[row["start_ns"] - row["start_ns"] % 100000000].append(row["duration_ns"])
    return [
        [[name, calls[name], ns] for name, ns in own.most_common(10)],
        [[row["thread"], row["tid"], row["start_ns"], row["duration_ns"]] for row in
         sorted(requests, key=lambda row: -row["duration_ns"]) if row["duration_ns"] > 1000000][:10],
        [list(one) for one in callers.most_common()],
        [[name, ns] for name, ns in sorted(waited.items(), key=lambda one: (-one[1], one[0]))][:10],
        [[at, len(all), max(all)] for at, all in sorted(slices.items())],
    ]


def as_texts(answer):
    return [[str(value) for value in row] for row in answer]


def test_there_are_answers_to_compare(rows):
    answers = expected(rows)
    assert len(QUESTIONS) == len(answers) == 5
    assert answers[0][0][0] == "reload" and answers[1] and len(answers[4]) >= 5
    assert {name for name, _ in answers[2]} <= {"look_up"}


def test_sqlite_answers(rows, graftrace):
    graftrace("export", "--to", "sqlite", "-q")
    for question, answer in zip(QUESTIONS, expected(rows), strict=True):
        text = subprocess.run(["sqlite3", "-csv", "trace.sqlite", question], cwd=graftrace.directory, check=True,
                              capture_output=True, text=True, timeout=PATIENCE).stdout
        assert list(csv.reader(io.StringIO(text))) == as_texts(answer), question


def test_duckdb_answers(rows, graftrace):
    for question, answer in zip(QUESTIONS, expected(rows), strict=True):
        question = question.replace("graftrace_calls", "'trace-calls.csv'")
        assert as_texts(duckdb(question, graftrace.directory)) == as_texts(answer), question


def test_duckdb_makes_parquet(rows, graftrace):
    """As the man page says it: all rows are there, times are numbers, and the questions have the same answers."""
    page = (ROOT / "doc/man/graftrace-export.1").read_text().replace("\\-", "-")
    copy = re.search(r'duckdb -c "(COPY .*)"', page)[1]
    (graftrace.directory / "trace-calls.csv").rename(graftrace.directory / "calls.csv")
    duckdb(copy, graftrace.directory)
    assert (graftrace.directory / "calls.parquet").read_bytes()[:4] == b"PAR1"
    types = dict(duckdb("SELECT column_name, column_type FROM (DESCRIBE FROM 'calls.parquet')", graftrace.directory))
    assert {types[name] for name in ("id", "start_ns", "duration_ns", "self_ns", "on_cpu_ns")} == {"BIGINT"}
    assert types["function"] == types["thread"] == "VARCHAR"
    for question, answer in zip(QUESTIONS, expected(rows), strict=True):
        question = question.replace("graftrace_calls", "'calls.parquet'")
        assert as_texts(duckdb(question, graftrace.directory)) == as_texts(answer), question


def load(server, graftrace, recording="graftrace.data"):
    export = graftrace.start("export", "--to", "clickhouse", "-q", "-o", "-", recording)
    server("INSERT INTO graftrace_calls FORMAT TabSeparated", export.stdout)
    assert export.wait(timeout=PATIENCE) == 0
    export.stdout.close()
    export.stderr.close()


@pytest.fixture
def table(clickhouse, graftrace):
    """The table on both servers."""
    for server in clickhouse:
        server(graftrace("export", "--to", "clickhouse", "--create-table").stdout)
    yield clickhouse
    for server in clickhouse:
        server("DROP TABLE graftrace_calls")


def test_clickhouse_answers(rows, graftrace, table):
    load(table[0], graftrace)
    start = int(table[0]("SELECT min(start_ns) FROM graftrace_calls")[0][0]) - min(row["start_ns"] for row in rows)
    for row in rows:
        row["start_ns"] += start  # since 1970
        row["parent"] = row["parent"] or 0
    for question, answer in zip(QUESTIONS, expected(rows), strict=True):
        assert table[0](question.rstrip(";")) == as_texts(answer), question


BUILDS = r"""
#include <unistd.h>
#define KEEP __attribute__((noinline, noclone))
volatile unsigned sink;
KEEP void answer(int i) { sink += i; if (i % 20 == 0) usleep(SLOW); }
KEEP void ask(int i) { answer(i); }
int main(void) { for (int i = 0; i < 100; i++) ask(i); return 0; }
"""


def test_ten_hosts_and_two_builds_in_one_question(graftrace, compile, table):
    """Two shards, the recordings of five hosts each; half of the hosts have the slow build."""
    programs = [compile(BUILDS, "-O1", f"-DSLOW={us}") for us in (10, 3000)]
    unshare = ["unshare", "--uts"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--uts"]
    wanted = {}
    for number in range(10):
        name, host = f"{number}.data", f"host{number}"
        subprocess.run([*unshare, "sh", "-c", 'hostname "$1"; shift; exec "$@"', "sh", host, graftrace.path, "record",
                        "-o", name, programs[number % 2]], cwd=graftrace.directory, check=True, timeout=PATIENCE,
                       capture_output=True)
        load(table[number // 5], graftrace, name)
        calls = csv.DictReader(io.StringIO(graftrace("export", "--to", "csv", "-q", "-o", "-", name).stdout))
        durations = sorted(int(call["duration_ns"]) for call in calls if call["function"] == "ask")
        wanted[host] = durations[int(0.99 * 100)]
    build = [re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", program], capture_output=True, text=True,
                                                         check=True).stdout)[1] for program in programs]
    server = table[1]
    server("CREATE TABLE everywhere AS graftrace_calls ENGINE = Distributed(all, default, graftrace_calls, rand())")
    try:
        found = server("SELECT function, host, build, quantileExact(0.99)(duration_ns) FROM everywhere "
                       "WHERE function = 'ask' GROUP BY function, host, build ORDER BY host")
    finally:
        server("DROP TABLE everywhere")
    assert found == [["ask", host, build[number % 2], str(ns)]
                     for number, (host, ns) in enumerate(sorted(wanted.items()))]
    slow = {host for _, host, which, _ in found if which == build[1]}
    assert min(wanted[host] for host in slow) > 3000000
