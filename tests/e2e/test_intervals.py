# SPDX-License-Identifier: MIT
"""graftrace profile --interval and --to: each call is in one interval, and those who take such figures read them."""

import collections
import csv
import http.server
import io
import json
import re
import subprocess
import threading

import pytest

from conftest import PATIENCE, line_with, wait_until
from judges import clickhouse, node

# Makes rounds until its stdin ends, and says how many: each calls leaf() twice.
PROGRAM = r"""
#include <poll.h>
#include <stdio.h>
#define KEEP __attribute__((noinline, noclone))
static volatile unsigned sink;
KEEP void leaf(void) { for (int i = 0; i < 2000; i++) sink += i; }
KEEP void once(void) { leaf(); leaf(); }
int main(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	long rounds = 0;
	puts("ready");
	fflush(stdout);
	do {
		once();
		rounds++;
	} while (poll(&in, 1, 2) == 0);
	printf("%ld rounds\n", rounds);
	return 0;
}
"""


@pytest.fixture
def program(compile):
    return compile(PROGRAM, "-O1")


class Profiled:
    """The program under `graftrace profile`, until it is told to end."""

    def __init__(self, graftrace, program, *words):
        self.process = graftrace.start("profile", *words, "--", program, stdin=subprocess.PIPE)
        line_with(self.process.stdout, "ready")

    def end(self):
        out, self.err = self.process.communicate("\n", timeout=PATIENCE)
        assert self.process.returncode == 0, self.err
        return int(re.search(r"(\d+) rounds", out)[1])


def test_each_call_is_in_one_interval(graftrace, program, tmp_path):
    run = Profiled(graftrace, program, "--interval", "150ms", "--format", "csv", "-o", "out")
    wait_until(lambda: (tmp_path / "out").read_text().count(",leaf,") >= 3)
    rounds = run.end()
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out").read_text())))
    calls = collections.Counter()
    for row in rows:
        calls[row["function"]] += int(row["calls"])
        assert int(row["self_ns"]) <= int(row["total_ns"])
    assert calls["leaf"] == 2 * rounds and calls["once"] == rounds and calls["main"] == 1
    ends = [int(row["to_ns"]) for row in rows if row["function"] == "leaf"]
    begins = [int(row["from_ns"]) for row in rows if row["function"] == "leaf"]
    assert len(ends) >= 3 and begins[1:] == ends[:-1]


def test_tables_follow_each_other(graftrace, program, tmp_path):
    run = Profiled(graftrace, program, "--interval", "100ms", "--sort", "name", "-o", "out")
    wait_until(lambda: (tmp_path / "out").read_text().count("once") >= 2)
    rounds = run.end()
    text = (tmp_path / "out").read_text()
    heads = re.findall(r"^\d\d:\d\d:\d\d, the last \d+\.\d s$", text, re.M)
    assert len(heads) >= 2 and text.count("Average  Function") >= 2
    assert sum(int(n) for n in re.findall(r"^ +(\d+) .* once$", text, re.M)) == rounds


def test_promtool_takes_what_is_for_prometheus(graftrace, program, tmp_path):
    run = Profiled(graftrace, program, "--interval", "100ms", "--to", "prometheus", "-o", "out.prom")
    wait_until(lambda: (tmp_path / "out.prom").exists())
    first = (tmp_path / "out.prom").read_text()
    wait_until(lambda: (tmp_path / "out.prom").read_text() != first)
    rounds = run.end()
    text = (tmp_path / "out.prom").read_text()
    judged = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True,
                            timeout=PATIENCE)
    assert judged.returncode == 0 and judged.stdout == judged.stderr == ""
    value = lambda name, of: float(re.search(rf'^graftrace_function_{name}_total{{[^}}]*function="{of}"'
                                             r'[^}]*} ([\d.]+)$', text, re.M)[1])
    assert value("calls", "leaf") == 2 * rounds
    assert 0 < value("self_seconds", "leaf") == value("seconds", "leaf") < value("seconds", "once")
    assert "graftrace_lost_calls_total{" in text
    assert [path.name for path in tmp_path.iterdir()] == ["out.prom"]


OTLP = """
const path = require("path");
const root = require(path.join(path.dirname(require.resolve("@opentelemetry/otlp-transformer")), "generated/root.js"));
const type = root.opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest;
const lines = JSON.parse(process.argv[2]);
console.log(JSON.stringify(lines.map((line) =>
    type.toObject(type.decode(type.encode(type.fromObject(line)).finish()), {longs: String, enums: Number}))));
"""


class Collector(http.server.BaseHTTPRequestHandler):
    """Refuses the first request, and keeps the others."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            first = not self.server.asked
            self.server.asked.append((self.path, self.headers["Content-Type"], body))
        self.send_response(503 if first else 200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"busy\n" if first else b"done\n")

    def log_message(self, *_):
        pass


@pytest.fixture
def collector():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    server.asked, server.lock = [], threading.Lock()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_collector_takes_what_is_for_opentelemetry(graftrace, program, collector):
    run = Profiled(graftrace, program, "--interval", "100ms", "--to", "otlp", "-o",
                   f"http://127.0.0.1:{collector.server_port}")
    wait_until(lambda: len(collector.asked) >= 4)
    rounds = run.end()
    assert "answers 503: busy; what was counted goes with the next interval's" in run.err
    assert "the server takes figures again" in run.err
    assert {asked[:2] for asked in collector.asked} == {("/v1/metrics", "application/json")}
    sent = [json.loads(body) for _, _, body in collector.asked]
    # By OpenTelemetry's own description: nothing is lost on the way to protobuf and back.
    assert node(OTLP, json.dumps(sent)) == sent
    metrics = {one["name"]: one["sum"]
               for one in sent[-1]["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]}
    counts = {point["attributes"][0]["value"]["stringValue"]: int(point["asInt"])
              for point in metrics["graftrace.function.calls"]["dataPoints"]}
    assert counts["leaf"] == 2 * rounds and counts["once"] == rounds
    assert metrics["graftrace.function.time"]["aggregationTemporality"] == 2
    attributes = {one["key"]: one["value"] for one in sent[0]["resourceMetrics"][0]["resource"]["attributes"]}
    assert attributes["service.name"]["stringValue"] == program.name


def test_a_sum_without_a_point_is_not_sent(graftrace, tmp_path):
    graftrace("profile", "--interval", "100ms", "-l", "leaf", "--to", "otlp", "-o", "out", "--", "sleep", "0.3")
    lines = (tmp_path / "out").read_text().splitlines()
    metrics = [json.loads(line)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"] for line in lines]
    assert metrics and all([one["name"] for one in these] == ["graftrace.lost_calls"] for these in metrics)


def test_clickhouse_sums_the_intervals(graftrace, program, clickhouse):
    server = clickhouse[0]
    run = Profiled(graftrace, program, "--interval", "100ms", "--to", "clickhouse", "-o",
                   f"http://127.0.0.1:{server.http}")
    wait_until(lambda: ["graftrace_profile"] in server("SHOW TABLES") and
             int(server("SELECT uniq(from_ns) FROM graftrace_profile")[0][0]) >= 2)
    rounds = run.end()
    rows = server("SELECT function, sum(calls), uniq(build), min(total_ns >= self_ns) FROM graftrace_profile "
                  "WHERE function IN ('leaf', 'once') GROUP BY function ORDER BY function")
    assert rows == [["leaf", str(2 * rounds), "1", "1"], ["once", str(rounds), "1", "1"]]
    # The same by hand: the table first, then rows from a file.
    server("DROP TABLE graftrace_profile")
    server(graftrace("profile", "--to", "clickhouse", "--create-table").stdout)
    run = Profiled(graftrace, program, "--to", "clickhouse", "-o", "rows.tsv")
    rounds = run.end()
    with open(graftrace.directory / "rows.tsv", "rb") as rows:
        server("INSERT INTO graftrace_profile FORMAT TabSeparated", rows)
    assert server("SELECT sum(calls) FROM graftrace_profile WHERE function = 'leaf'") == [[str(2 * rounds)]]


def test_who_reads_may_go_away(graftrace, program):
    run = graftrace.start("profile", "--interval", "100ms", "--to", "otlp", "-P",
                          str((target := subprocess.Popen([program], stdin=subprocess.PIPE,
                                                          stdout=subprocess.PIPE)).pid))
    try:
        assert json.loads(run.stdout.readline())
        run.stdout.close()
        assert run.wait(timeout=PATIENCE) == 0
    finally:
        target.communicate(b"\n", timeout=PATIENCE)
        run.stderr.close()


@pytest.mark.parametrize("words, said", [
    (["--interval", "0"], "too short: 100ms at least"),
    (["--interval", "1parsec"], "'1parsec'"),
    (["--to", "prometeus"], "did you mean 'prometheus'?"),
    (["--to", "otlp", "--format", "csv"], "one of them"),
    (["--interval", "1s", "-o", "http://127.0.0.1:1"], "no tables"),
    (["--to", "otlp", "--create-table"], "--create-table is of --to clickhouse"),
])
def test_mistakes_are_told(graftrace, words, said):
    assert said in graftrace("profile", *words, "--", "true", code=2).stderr


def test_an_address_that_is_none_is_told_before_anything_runs(graftrace):
    for address in ("http://", "ftp://x", "http://x:1y/", "http://x/a b"):
        said = graftrace("profile", "--to", "otlp", "-o", address, "--", "true", code=1).stderr
        assert "is no address of a server: http://HOST[:PORT][/PATH]" in said, address
