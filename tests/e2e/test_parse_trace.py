# SPDX-License-Identifier: MIT
"""graftrace parse-trace: texts of every writer to CSV, and the command around it.

tests/golden/text/NAME.txt is a text, NAME.csv its rows, NAME.err what is said of it. After a change
that is meant, write them anew and look at the difference:

    GRAFTRACE_REBASE=1 GRAFTRACE_BUILD=build python3 -m pytest tests/e2e/test_parse_trace.py
"""

import collections
import csv
import importlib.util
import io
import json
import os
import random
import re
import resource
import subprocess
from decimal import Decimal

import pytest

from conftest import BUILD, PATIENCE, ROOT

# The bench's maker of texts. By its path: bench/ has modules that are called as Python's own.
_spec = importlib.util.spec_from_file_location("bench_parse_trace", ROOT / "bench" / "parse_trace.py")
parse_trace = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(parse_trace)

GOLDEN = ROOT / "tests" / "golden" / "text"
HEADER = "function,tid,latency_us,latency_us_self\n"
TEXT = (GOLDEN / "linux.txt").read_text()


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.txt")))
def test_a_text_gives_the_golden_rows_and_words(graftrace, name):
    done = graftrace("parse-trace", GOLDEN / f"{name}.txt")
    rows = (graftrace.directory / "trace.csv").read_bytes()
    if os.environ.get("GRAFTRACE_REBASE"):
        (GOLDEN / f"{name}.csv").write_bytes(rows)
        (GOLDEN / f"{name}.err").write_text(done.stderr)
    assert rows == (GOLDEN / f"{name}.csv").read_bytes()
    assert done.stderr == (GOLDEN / f"{name}.err").read_text()
    assert done.stdout == ""


def rows_of(text):
    assert text.startswith(HEADER)
    return list(csv.DictReader(io.StringIO(text)))


def slow_parser(text):
    """What the rows must be, by another way: a stack a task, no depth, no shortcuts."""
    rows, stacks, current = [], {}, {}
    for line in text.splitlines():
        if line.startswith(("#", " ---")) or not line.strip():
            continue
        cpu, rest = line.split(")", 1)
        if "=>" in rest:
            left, right = (side.strip().rsplit("-", 1)[1] for side in rest.split("=>"))
            stacks.setdefault(left, stacks.pop(("cpu", cpu), []))
            current[cpu] = right
            continue
        column, function = rest.split("|", 1)
        stack = stacks.setdefault(current[cpu], [])
        function = function.strip()
        if function.endswith("{"):
            stack.append([function[:-4], Decimal(0)])
            continue
        us = Decimal(column.replace("us", "").strip(" +!#*@$"))
        name, children = (stack.pop() if function == "}" else (function[:-3], Decimal(0)))
        if stack:
            stack[-1][1] += us
        rows.append((name, current[cpu], us, max(us - children, Decimal(0))))
    return rows


def test_a_long_text_of_many_cpus_and_tasks_gives_the_rows_of_a_plain_parser(graftrace):
    text = parse_trace.HEADER + parse_trace.make_chunk(60_000, seed=5)
    (graftrace.directory / "trace").write_text(text)
    graftrace("parse-trace", "-q", "trace")
    rows = [(row["function"], row["tid"], Decimal(row["latency_us"]), Decimal(row["latency_us_self"]))
            for row in rows_of((graftrace.directory / "trace.csv").read_text())]
    wanted = slow_parser(text)
    assert len(wanted) > 40_000
    assert rows == wanted


def test_stdin_and_stdout_are_taken(graftrace):
    done = graftrace("parse-trace", "-", "-o", "-", stdin=TEXT)
    assert done.stdout == (GOLDEN / "linux.csv").read_text()
    assert "9 calls" in done.stderr
    assert graftrace("parse-trace", "-q", "-", "-o", "-", stdin=TEXT).stderr == ""
    assert list(graftrace.directory.iterdir()) == []


def test_the_output_goes_where_it_is_told(graftrace):
    (graftrace.directory / "trace").write_text(TEXT)
    graftrace("parse-trace", "trace", "-o", "out.csv")
    assert (graftrace.directory / "out.csv").read_text().startswith(HEADER)
    (graftrace.directory / "link.csv").symlink_to("out.csv")
    graftrace("parse-trace", "trace", "--output=link.csv")
    assert (graftrace.directory / "link.csv").is_symlink()
    graftrace("parse-trace", "trace", "-o", "/dev/null")
    assert sorted(path.name for path in graftrace.directory.iterdir()) == ["link.csv", "out.csv", "trace"]
    mask = os.umask(0)
    os.umask(mask)
    assert (graftrace.directory / "out.csv").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_text_cut_anywhere_gives_a_part_of_the_same_rows(graftrace):
    whole = graftrace("parse-trace", "-q", "-", "-o", "-", stdin=TEXT).stdout
    functions = {row["function"] for row in rows_of(whole)}
    for end in range(120, len(TEXT), 7):
        done = graftrace("parse-trace", "-q", "-", "-o", "-", stdin=TEXT[:end])
        rows = rows_of(done.stdout)
        # A number can be cut, too, but not a name, and no row comes out of nothing. With ends of calls
        # alone it may be a text of tracing_thresh, whose ends are whole calls.
        ends = set(re.findall(r"\} /\* (.+?) \*/", TEXT[:end]))
        assert {row["function"] for row in rows} <= functions | ends
        assert len(rows) <= whole.count("\n")


@pytest.mark.parametrize("content, words", [
    (b"", "is empty"),
    (b"\n\n", "no line of a trace"),
    (b"int main(void)\n{\n\treturn f();\n}\n", "is no function_graph text"),
    (bytes(100_000), "is no function_graph text"),
    (b"\xff\xfe" * 1000, "is no function_graph text"),
    (b"x" * 5_000_000, "is no function_graph text"),
    (b"# tracer: function\n#\n sh-86  [000] .....  7.499612: vfs_open <-path_openat\n", "tracer function,"),
    (b"# tracer: nop\n", "tracer nop,"),
    (b"# tracer: function_graph\n 0) f() {\n 0) }\n", "funcgraph-duration"),
], ids=["empty", "blank", "C", "NUL bytes", "UTF-16", "one long line", "function tracer", "nop", "no durations"])
def test_what_is_no_trace_is_refused_and_leaves_an_earlier_result(graftrace, content, words):
    (graftrace.directory / "trace").write_bytes(content)
    (graftrace.directory / "trace.csv").write_text("the old one")
    done = graftrace("parse-trace", "trace", code=1)
    assert words in done.stderr and done.stderr.startswith("graftrace parse-trace: ")
    assert (graftrace.directory / "trace.csv").read_text() == "the old one"
    assert len(list(graftrace.directory.iterdir())) == 2


def test_a_trace_without_a_call_gives_the_header_alone(graftrace):
    (graftrace.directory / "trace").write_text(parse_trace.HEADER)
    graftrace("parse-trace", "trace")
    assert (graftrace.directory / "trace.csv").read_text() == HEADER


def test_any_garbage_between_the_lines_costs_only_itself(graftrace):
    rng = random.Random(4)
    lines = (GOLDEN / "seed.txt").read_bytes().splitlines(keepends=True)
    dirty = b""
    for line in lines:
        dirty += rng.randbytes(rng.randrange(200)).replace(b"\n", b"").replace(b"|", b"") + b"\n" + line
    dirty += b"y" * 200_000 + b"\0\n" + lines[-2] + b"no newline"
    (graftrace.directory / "trace").write_bytes(dirty)
    done = graftrace("parse-trace", "trace", "-o", "-")
    clean = (GOLDEN / "seed.csv").read_text()
    assert done.stdout == clean + clean.splitlines(keepends=True)[-1]
    assert "lines are no trace" in done.stderr


def test_files_that_cannot_be_read_or_written_are_refused(graftrace):
    (graftrace.directory / "trace").write_text(TEXT)
    assert "cannot open 'none'" in graftrace("parse-trace", "none", code=1).stderr
    assert "directory" in graftrace("parse-trace", ".", code=1).stderr
    assert "No such file" in graftrace("parse-trace", "trace", "-o", "none/x.csv", code=1).stderr
    assert "No space left" in graftrace("parse-trace", "trace", "-o", "/dev/full", code=1).stderr
    graftrace("parse-trace", code=2)
    graftrace("parse-trace", "trace", "trace", code=2)
    graftrace("parse-trace", "--output", code=2)
    assert sorted(path.name for path in graftrace.directory.iterdir()) == ["trace"]


def test_a_reader_that_goes_away_ends_it_without_a_crash(graftrace):
    (graftrace.directory / "trace").write_text(parse_trace.HEADER + parse_trace.make_chunk(50_000))
    process = graftrace.start("parse-trace", "trace", "-o", "-")
    process.stdout.readline()
    process.stdout.close()
    process.stderr.read()
    process.stderr.close()
    assert process.wait(30) in (1, -13)


def test_memory_does_not_grow_with_the_text(tmp_path, monkeypatch):
    """Peak memory of 2 million lines, 100 MB, is that of 20 thousand; how much of the program and its
    libraries the system maps along is its own business, and so are the allocator's arenas."""
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    chunk = (parse_trace.HEADER + parse_trace.make_chunk(20_000)).encode()
    peaks = []
    for count in (1, 100):
        path = tmp_path / f"trace{count}"
        path.write_bytes(chunk * count)
        peaks.append(parse_trace.peak_memory_kb(
            [BUILD / "cli" / "graftrace", "parse-trace", "-q", "-", "-o", "/dev/null"], path))
    assert peaks[1] <= peaks[0] + 8 * 1024, f"{peaks} KiB"


def test_a_text_that_only_opens_calls_is_held_within_the_limit(tmp_path):
    path = tmp_path / "trace"
    path.write_bytes(b"0) | f() {\n" * 6_000_000)
    done = subprocess.run(
        [BUILD / "cli" / "graftrace", "parse-trace", path, "-o", "/dev/null"],
        capture_output=True, text=True, timeout=PATIENCE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20)))
    assert done.returncode == 0, done.stderr
    assert "dropped at the memory limit" in done.stderr


def test_a_text_becomes_a_page_in_two_commands(graftrace):
    graftrace("parse-trace", "-q", GOLDEN / "trace-cmd.txt")
    graftrace("runtime-breakdown", "--no-open", "trace.csv")
    assert "finish_task_switch.isra.0" in (graftrace.directory / "trace.html").read_text()


@pytest.mark.parametrize("name", sorted(
    path.stem for path in (ROOT / "tests" / "golden" / "function_graph").glob("*.txt")
    if path.stem != "no_context_info"))
def test_every_line_that_show_can_print_is_known(graftrace, name):
    """In any choice of columns, but for the one that leaves neither CPU nor duration."""
    done = graftrace("parse-trace", ROOT / "tests" / "golden" / "function_graph" / f"{name}.txt", code=None)
    assert "no trace" not in done.stderr and "is no function_graph text" not in done.stderr
    assert done.returncode == 0 or "funcgraph-duration" in done.stderr


THREADS = """
#include <pthread.h>
__attribute__((noinline)) int leaf(int x) { __asm__ volatile(""); return x * 2; }
__attribute__((noinline)) int outer(int x) { int s = 0; for (int i = 0; i < 5; i++) s += leaf(x + i); return s; }
void *run(void *p) { int s = 0; for (int i = 0; i < 400; i++) s += outer(i); return s ? p : 0; }
int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, run, threads);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
"""


LONG_CALLS = """
#include <unistd.h>
void __attribute__((noinline)) inner(void) { usleep(2000); }
void __attribute__((noinline)) quick(void) { __asm__ volatile(""); }
void __attribute__((noinline)) outer(void) { inner(); quick(); inner(); }
int main(void) { outer(); quick(); inner(); return 0; }
"""


@pytest.fixture
def one_cpu():
    """All on one CPU: so the text has a switch wherever the thread changes, and names every thread."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


def test_a_recording_and_its_text_give_the_same_rows(graftrace, compile, one_cpu):
    program = compile(THREADS, "-O2", "-fpatchable-function-entry=5", "-pthread")
    graftrace("record", "-o", "graftrace.data", program)
    (graftrace.directory / "trace").write_text(graftrace("show", "graftrace.data").stdout)
    of_recording = rows_of(graftrace("parse-trace", "-q", "graftrace.data", "-o", "-").stdout)
    of_text = rows_of(graftrace("parse-trace", "-q", "trace", "-o", "-").stdout)
    counts = collections.Counter(row["function"] for row in of_recording)
    assert (counts["leaf"], counts["outer"], counts["run"], counts["main"]) == (8000, 1600, 4, 1)
    # A call without callees is printed where it began, so only a thread's own order is the same.
    for tid in {row["tid"] for row in of_recording}:
        mine, texts = ([row for row in rows if row["tid"] == tid] for rows in (of_recording, of_text))
        assert [row["function"] for row in mine] == [row["function"] for row in texts]
        for a, b in zip(mine, texts):
            # The text's column has seven digits, and what it cuts of the callees adds up.
            slack = max(Decimal("0.5"), Decimal(a["latency_us"]) * Decimal("0.0001"))
            for key in ("latency_us", "latency_us_self"):
                assert abs(Decimal(a[key]) - Decimal(b[key])) <= slack
    assert len(of_recording) == len(of_text)


def test_a_recording_with_a_threshold_and_its_text_give_whole_calls(graftrace, compile, one_cpu):
    program = compile(LONG_CALLS, "-O1", "-fpatchable-function-entry=5")
    graftrace("record", "--threshold", "1ms", "-o", "graftrace.data", program)
    (graftrace.directory / "trace").write_text(graftrace("show", "graftrace.data").stdout)
    of_recording = rows_of(graftrace("parse-trace", "graftrace.data", "-o", "-").stdout)
    of_text = rows_of(graftrace("parse-trace", "trace", "-o", "-").stdout)
    assert [row["function"] for row in of_recording] == ["inner", "inner", "outer", "inner", "main"]
    assert [row["function"] for row in of_text] == [row["function"] for row in of_recording]
    for rows in (of_recording, of_text):
        total, own = ([Decimal(row[key]) for row in rows] for key in ("latency_us", "latency_us_self"))
        assert own[0] == total[0] >= 2000 and own[3] == total[3] >= 2000
        assert abs(own[2] - (total[2] - total[0] - total[1])) < 2
        assert abs(own[4] - (total[4] - total[2] - total[3])) < 2
    for a, b in zip(of_recording, of_text):
        assert abs(Decimal(a["latency_us"]) - Decimal(b["latency_us"])) <= Decimal(a["latency_us"]) * Decimal("0.0001")
    table = json.loads(graftrace("report", "--format", "json", "graftrace.data").stdout)
    assert table["self_upper_bound"] == 0
    for row in table["rows"]:
        own = sum(Decimal(call["latency_us_self"]) for call in of_recording if call["function"] == row["function"])
        assert abs(row["self_ns"] - own * 1000) <= 2 * row["calls"]


def test_linux_text_with_a_threshold_gives_whole_calls(graftrace):
    lines = [" 0) ! 150.000 us  |      } /* vfs_read */", " 1) ! 120.000 us  |  } /* do_exit */",
             " 0) ! 130.000 us  |      } /* vfs_read */", " 0) ! 300.000 us  |    } /* ksys_read */"]
    (graftrace.directory / "trace").write_text("# tracer: function_graph\n" + "\n".join(lines) + "\n")
    rows = rows_of(graftrace("parse-trace", "trace", "-o", "-").stdout)
    assert [(row["function"], row["latency_us_self"]) for row in rows] == [
        ("vfs_read", "150.000"), ("do_exit", "120.000"), ("vfs_read", "130.000"), ("ksys_read", "20.000")]
    # A call that begins tells that it is none of those: an end alone is of one from before the text.
    (graftrace.directory / "trace").write_text("\n".join([*lines, " 0)   1.000 us    |  leaf();"]) + "\n")
    done = graftrace("parse-trace", "trace", "-o", "-")
    assert [row["function"] for row in rows_of(done.stdout)] == ["leaf"]
    assert "4 returns of calls that were open before the text begins" in done.stderr
