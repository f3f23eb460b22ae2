# SPDX-License-Identifier: MIT
"""What graftrace makes of a kernel's recording: times off the CPU, which its switches tell."""

import collections
import csv
import io
import re

import pytest

import format_reader
from unikernel import machine
from test_unikernel_trace import ftrace, visit


@pytest.fixture(scope="module")
def recording(machine, tmp_path_factory):
    path = tmp_path_factory.mktemp("kernel") / "trace.data"
    visit(machine)
    path.write_bytes(ftrace(machine, "trace.data"))
    return path


def times_off(data):
    """Of each thread, the ticks from each switch away from it to the one back to it, as the format says."""
    switches = []
    for writer in data.writers:
        for sub in writer.sub_buffers:
            for word, behind in format_reader.records_of(sub.words):
                if word >> 33 == 0x7fffff06 and word >> 16 & 0xffff == 4:
                    switches.append(tuple(behind[:3]))
    off, left = collections.Counter(), {}
    for clock, leaves, comes in sorted(switches):
        left[leaves] = clock
        if comes in left:
            off[comes] += clock - left.pop(comes)
    return off


def rows(graftrace, recording, *words):
    shown = graftrace("report", "--format", "csv", *words, recording).stdout
    return list(csv.DictReader(io.StringIO(shown)))


def test_report_tells_where_a_kernels_threads_waited(graftrace, recording):
    data = format_reader.read(recording)
    _, _, mult, shift = data.clock
    expected = {tid: ticks * mult >> shift for tid, ticks in times_off(data).items() if tid}
    threads = {int(row["thread"].rpartition("-")[2]): int(row["self_off_cpu_ns"])
               for row in rows(graftrace, recording, "--by", "thread")}
    waited = {tid: off for tid, off in threads.items() if off}
    assert len(waited) >= 3 and sum(waited.values()) > 1_000_000
    for tid, off in waited.items():
        assert off == pytest.approx(expected[tid], abs=1000), tid
    functions = {row["function"]: row for row in rows(graftrace, recording)}
    # it is schedule() that switches, and who waits has called it
    assert (int(functions["schedule"]["self_off_cpu_ns"])
            == pytest.approx(sum(waited.values()), rel=0.01))
    assert int(functions["sys_arch_mbox_fetch"]["total_off_cpu_ns"]) > 0
    assert int(functions["sys_arch_mbox_fetch"]["self_off_cpu_ns"]) < 1000
    first = graftrace("report", "--sort", "off-cpu", recording).stdout.splitlines()[1]
    assert first.split()[-1] == "schedule"


def test_the_time_off_the_cpu_is_taken_out_of_a_kernels_calls(graftrace, recording, tmp_path):
    def longest(*words):
        shown = graftrace("show", *words, recording).stdout
        return max(float(match[1]) for match in re.finditer(
            r"([\d.]+) us +\|[ }]+/\* sys_arch_mbox_fetch \*/", shown))

    tail = ("--option", "funcgraph-tail")
    assert longest(*tail) > 1.2 * longest(*tail, "--option", "nosleep-time")
    sums = []
    for words in ([], ["--no-sleep-time"]):
        table = tmp_path / "calls.csv"
        graftrace("parse-trace", "--quiet", "--output", table, *words, recording)
        with open(table, newline="") as file:
            calls = list(csv.DictReader(file))
        sums.append(sum(float(call["latency_us_self"]) for call in calls if call["function"] == "schedule"))
        table.unlink()
    assert sums[1] < sums[0] / 1.5
