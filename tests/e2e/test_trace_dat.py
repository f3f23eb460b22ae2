# SPDX-License-Identifier: MIT
"""Files of trace-cmd as an input, made by `export --to trace.dat` and changed byte by byte: clocks that
libtracecmd converts, losses wherever they stand, pages that are no pages, machines of the other byte order and with longs of 32 bits. trace-cmd is the judge."""

import itertools
import re
import struct
import subprocess

import pytest

import other_machine
from conftest import PATIENCE, Graftrace
from served import Served, port_of

PROGRAM = """
#define _GNU_SOURCE
#include <sched.h>
static volatile int sum;
__attribute__((noinline)) void leaf(int i) { sum += i; }
__attribute__((noinline)) void inner(int i) { leaf(i); leaf(i + 1); }
static void go_to(int cpu)
{
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}
int main(void)
{
	for (int i = 0; i < 1000; i++) {
		if (i % 250 == 0)
			go_to(i / 250 % 2);
		inner(i);
	}
	for (int i = 0; i < 2000; i++)
		leaf(i);
	return 0;
}
"""
PAGE, HEAD = 4096, 16
LENGTH_MAX = 28  # in words: the type of a record
LOST, LOST_STORED = 1 << 31, 1 << 30
EXIT, ENTRY = 10, 11  # numbers of the events in the files that graftrace writes
TSC2NSEC = 14  # an option of the file: libtracecmd multiplies clocks, and shifts
# Of a line of trace-cmd report and of `show`: task, CPU, time, function.
THEIRS = re.compile(r"^\s*(.+-\d+)\s+\[(\d+)\]\s+([\d.]+): function:\s+(\S+)", re.M)
OURS = re.compile(r"^\s*(.+-\d+)\s+\[(\d+)\] \.{5}\s+([\d.]+): (\S+) <-", re.M)


def exported(directory, program, tracer):
    graftrace = Graftrace(directory)
    graftrace("record", "-p", tracer, program)
    graftrace("export", "--to", "trace.dat", "-o", "whole.dat")
    return (directory / "whole.dat").read_bytes()


@pytest.fixture(scope="module")
def graph(tmp_path_factory, compile):
    return exported(tmp_path_factory.mktemp("graph"), compile(PROGRAM, "-O1"), "function_graph")


@pytest.fixture(scope="module")
def functions(tmp_path_factory, compile):
    return exported(tmp_path_factory.mktemp("functions"), compile(PROGRAM, "-O1"), "function")


def pages(file):
    """Offsets of the pages that begin with a record."""
    for page in range(PAGE, len(file) - PAGE + 1, PAGE):
        clock, used, head = struct.unpack_from("<QQI", file, page)
        if clock and 0 < used <= PAGE - HEAD and 1 <= head & 31 <= LENGTH_MAX:
            yield page


def records(file, page):
    """Offsets in the page's data of its records, up to the first that is longer or none."""
    used, at = struct.unpack_from("<Q", file, page + 8)[0], 0
    while at < used and 1 <= file[page + HEAD + at] & 31 <= LENGTH_MAX:
        yield at
        at += 4 + (file[page + HEAD + at] & 31) * 4


def number_of(file, page, at):
    return struct.unpack_from("<H", file, page + HEAD + at + 4)[0]


def reported(path, *options):
    return subprocess.run(["trace-cmd", "report", *options, path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=True, timeout=PATIENCE).stdout


def dropped(path, *options):
    return sum(map(int, re.findall(r"\[(\d+) EVENTS DROPPED\]", reported(path, *options))))


def assert_same(graftrace, path):
    theirs = THEIRS.findall(reported(path, "-N"))
    assert OURS.findall(graftrace("show", "--no-pager", path).stdout) == theirs
    return theirs


def test_a_loss_between_a_call_and_its_return_is_counted(graftrace, graph):
    file = bytearray(graph)
    before, page = list(pages(graph))[-3:-1]  # leaf is called there, and nothing else
    end = next(end for at, end in itertools.pairwise(records(graph, before))
                      if at and number_of(graph, before, at) == ENTRY)
    struct.pack_into("<Q", file, before + 8, end)
    begin = next(at for at in records(graph, page) if number_of(graph, page, at) == EXIT)
    used = list(records(graph, page))[30] - begin  # room for the number of lost records
    struct.pack_into("<Q", file, page + 8, used | LOST | LOST_STORED)
    file[page + HEAD:page + HEAD + used] = graph[page + HEAD + begin:page + HEAD + begin + used]
    struct.pack_into("<Q", file, page + HEAD + used, 120)
    path = graftrace.directory / "lossy.dat"
    path.write_bytes(file)
    # What trace-cmd shows as `leaf();` is two records, and what was lost before the second is told
    # by nothing then.
    assert dropped(path) == 0
    assert dropped(path, "-R") == 120
    assert "120 records were lost" in graftrace("report", path).stderr


def test_times_and_cpus_of_records_are_those_that_trace_cmd_reports(graftrace, functions):
    path = graftrace.directory / "functions.dat"
    path.write_bytes(functions)
    assert len(assert_same(graftrace, path)) > 4000
    assert "lost" not in graftrace("show", path).stderr


@pytest.mark.parametrize("shift", [10, 11])  # of 2^10: the clock itself, and half of it
def test_clocks_that_the_library_converts_are_converted(graftrace, functions, shift):
    option = b"options  \0" + struct.pack("<HIIIQH", TSC2NSEC, 16, 1 << 10, shift, 0, 0)
    at = functions.index(b"flyrecord\0")
    table = functions[at:next(pages(functions))].rstrip(b"\0")
    room = next(pages(functions)) - at - len(table)
    assert room > len(option) + 8
    path = graftrace.directory / "converted.dat"
    path.write_bytes(functions[:at] + option + functions[at:next(pages(functions)) - len(option)] +
                     functions[next(pages(functions)):])
    theirs = assert_same(graftrace, path)
    plain = graftrace.directory / "plain.dat"
    plain.write_bytes(functions)
    times = [float(call[2]) for call in THEIRS.findall(reported(plain, "-N"))]
    assert [float(call[2]) for call in theirs] == pytest.approx(
        [time / 2 ** (shift - 10) for time in times], abs=2e-6)


def test_a_page_whose_record_leads_out_of_it_costs_no_more_than_that_page(graftrace, functions):
    file = bytearray(functions)
    page = list(pages(functions))[1]
    at = list(records(functions, page))[50]
    struct.pack_into("<II", file, page + HEAD + at, 0, 100000)  # type 0: the length is the next word
    plain, path = graftrace.directory / "plain.dat", graftrace.directory / "damaged.dat"
    plain.write_bytes(functions)
    path.write_bytes(file)
    whole = len(THEIRS.findall(reported(plain, "-N")))
    shown = len(OURS.findall(graftrace("show", "--no-pager", path).stdout))
    assert whole - len(list(records(functions, page))) <= shown < whole


def without_the_first_caller(text):
    """It lies in no object of the trace, and 32 bits do not hold its address."""
    return re.sub(r"\bmain <-.*", "main", text)


@pytest.mark.parametrize("is_big, long_bytes", other_machine.OTHERS)
@pytest.mark.parametrize("tracer", ["graph", "functions"])
def test_the_same_trace_of_another_machine_is_shown_alike(graftrace, request, tracer, is_big, long_bytes):
    here = request.getfixturevalue(tracer)
    plain, path = graftrace.directory / "plain.dat", graftrace.directory / "other.dat"
    plain.write_bytes(here)
    path.write_bytes(other_machine.rewritten(here, is_big, long_bytes))
    theirs = without_the_first_caller(reported(path, "-N"))
    assert len(theirs.splitlines()) > 4000
    # so trace-cmd takes it for the same trace
    assert theirs == without_the_first_caller(reported(plain, "-N"))
    ours, was = (graftrace("show", "--no-pager", one).stdout for one in (path, plain))
    assert without_the_first_caller(ours) == without_the_first_caller(was)


@pytest.mark.parametrize("is_big, long_bytes", other_machine.OTHERS)
def test_losses_of_another_machine_are_counted(graftrace, functions, is_big, long_bytes):
    file = bytearray(functions)
    page = list(pages(functions))[1]
    end = list(records(functions, page))[-8]  # room for the number of lost records
    struct.pack_into("<QQ", file, page, struct.unpack_from("<Q", file, page)[0], end | LOST | LOST_STORED)
    struct.pack_into("<Q", file, page + HEAD + end, 77)
    path = graftrace.directory / "lossy.dat"
    path.write_bytes(other_machine.rewritten(bytes(file), is_big, long_bytes))
    assert dropped(path) == 77
    assert "77 records were lost" in graftrace("report", path).stderr


@pytest.mark.parametrize("is_big, long_bytes", other_machine.OTHERS)
def test_a_cut_file_of_another_machine_costs_no_more_than_an_error(graftrace, graph, is_big, long_bytes):
    whole = other_machine.rewritten(graph, is_big, long_bytes)
    path = graftrace.directory / "cut.dat"
    for size in (13, 200, 5000, len(whole) // 2, len(whole) - 2000):
        path.write_bytes(whole[:size])
        done = graftrace("report", "--no-pager", path, code=None)
        assert done.returncode in (0, 1)
        assert done.returncode == 0 or "cut.dat" in done.stderr, (size, done)


def test_a_file_that_is_larger_than_the_memory_that_may_be_taken_is_read(graftrace, functions):
    """The library maps a file piece by piece and keeps all pieces. Here 36 CPUs have the same pages, of a machine of
    the other byte order, for those are read record by record."""
    cpus, count = 36, 16384
    first = next(pages(functions))
    length = list(records(functions, first))[1]
    clock = struct.unpack_from("<Q", functions, first)[0]
    file = other_machine.rewritten(functions, True, 8)
    table = file.index(b"flyrecord\0") + len(b"flyrecord\0")
    record = file[struct.unpack_from(">Q", file, table)[0] + HEAD:][:length]
    head = bytearray(file[:table])
    struct.pack_into(">I", head, table - len(b"flyrecord\0") - 4, cpus)
    begin = (len(head) + 16 * cpus + PAGE - 1) // PAGE * PAGE
    path = graftrace.directory / "large.dat"
    with open(path, "wb") as large:
        large.write(head + struct.pack(">QQ", begin, count * PAGE) * cpus)
        for number in range(count):
            large.seek(begin + number * PAGE)
            large.write(struct.pack(">QQ", clock + number, length) + record)
        large.truncate(begin + count * PAGE)
    rows = graftrace("report", "--no-pager", "--format", "csv", path).stdout.splitlines()
    calls = rows[0].split(",").index("calls")
    assert sum(int(row.split(",")[calls]) for row in rows[1:]) == cpus * count


def test_ten_thousand_formats_of_events_do_no_harm(graftrace, functions):
    """One more system stands before the symbols; its events have the formats of one that there is."""
    read, text = functions.index(b"header_event\0") + len(b"header_event\0"), b""
    read += 8 + struct.unpack_from("<Q", functions, read)[0]
    count = struct.unpack_from("<I", functions, read)[0]
    read += 4
    for _ in range(count):
        size = struct.unpack_from("<Q", functions, read)[0]
        text = functions[read + 8:read + 8 + size]
        read += 8 + size
    systems = struct.unpack_from("<I", functions, read)[0]
    more = bytearray(b"made\0" + struct.pack("<I", 10_000))
    for number in range(10_000):
        event = re.sub(rb"name: \w+\nID: \d+", b"name: made%d\nID: %d" % (number, 20_000 + number), text)
        more += struct.pack("<Q", len(event)) + event
    first = next(pages(functions))
    moved = (len(more) + PAGE - 1) // PAGE * PAGE
    head = bytearray(functions[:read] + struct.pack("<I", systems + 1) + more + functions[read + 4:first])
    head = head.ljust(first + moved, b"\0")  # it was filled up before
    at = head.index(b"flyrecord\0") + len(b"flyrecord\0")
    for cpu in range(2):
        place = struct.unpack_from("<Q", head, at + 16 * cpu)[0]
        struct.pack_into("<Q", head, at + 16 * cpu, place + moved)
    path = graftrace.directory / "many.dat"
    path.write_bytes(head + functions[first:])
    assert len(assert_same(graftrace, path)) > 4000


def test_it_is_compared_and_served_as_a_recording_is(graftrace, graph):
    path, other = graftrace.directory / "graph.dat", graftrace.directory / "other.dat"
    path.write_bytes(graph)
    other.write_bytes(other_machine.rewritten(graph, True, 8))
    done = graftrace("diff", path, other)
    assert re.search(r"^\d functions are the same", done.stdout, re.M), done.stdout
    process = graftrace.start("serve", "-a", "127.0.0.1:0", path)
    try:
        text = Served(process, port_of(process)).get("trace")
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
    calls = [line for line in graftrace("show", "--no-pager", path).stdout.splitlines() if line.endswith("();")]
    assert len(calls) > 3000
    assert [line for line in text.splitlines() if line.endswith("();")] == calls
