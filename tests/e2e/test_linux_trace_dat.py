# SPDX-License-Identifier: MIT
"""trace-cmd's files are recordings: what Debian's kernel recorded through trace-cmd is shown,
summed up and exported as trace-cmd itself reports it, call by call; damaged files are told."""

import collections
import csv
import io
import random
import re
import shutil
import subprocess

import pytest

import linux_guest
from linux import BOOT_LIMIT_S

pytestmark = pytest.mark.timeout(2 * BOOT_LIMIT_S)

SCRIPT = """
trace-cmd record -q -p function_graph -e sched_switch -b 8000 -o graph.dat ls /proc > /dev/null 2>&1
trace-cmd record -q -p function_graph -b 30 -o lossy.dat sh -c 'ls -l /proc; ls -l /proc' > /dev/null 2>&1
trace-cmd record -q -p function -l 'vfs_*' -C mono -o function.dat cat /proc/meminfo > /dev/null 2>&1
trace-cmd record -q -e sched -e syscalls -o events.dat ls /proc > /dev/null 2>&1
"""

RETURN = re.compile(r"^\s*.+-(\d+)\s+\[\d+\]\s*[\d.]+:\s+funcgraph_exit:\s+func=(\S+) depth=(\d+)"
                    r" overrun=\d+ calltime=(\w+) rettime=(\w+)", re.M)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory = tmp_path_factory.mktemp("trace_dat")
    linux_guest.run(directory, SCRIPT, ["trace-cmd"])
    return directory


def reported(path, *options):
    return subprocess.run(["trace-cmd", "report", *options, path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=True, timeout=60).stdout


def calls_of_trace_cmd(path):
    """tid -> [(function, ns)] in the order of the returns, and those that an interrupt's record
    parts from their own: what it called ran after the call's end, and stands before that."""
    calls, torn, inside = collections.defaultdict(list), collections.Counter(), {}
    for tid, name, depth, start, end in RETURN.findall(reported(path, "-R")):
        call = (name, int(end, 16) - int(start, 16))
        calls[int(tid)].append(call)
        latest = inside.setdefault(tid, collections.defaultdict(int))
        if any(latest[below] > int(start, 16) for below in range(int(depth), int(depth) + 50)) and \
           any(latest[below] > int(end, 16) or below == int(depth) and latest[below] > int(start, 16)
               for below in range(int(depth), int(depth) + 50)):
            torn[call] += 1
        latest[int(depth)] = int(end, 16)
    return calls, torn


def calls_of_graftrace(graftrace, path):
    """tid -> [(function, ns)], and what was said."""
    done = graftrace("parse-trace", "-o", "-", path)
    calls = collections.defaultdict(list)
    for row in csv.DictReader(io.StringIO(done.stdout)):
        calls[int(row["tid"])].append((row["function"], round(float(row["latency_us"]) * 1000)))
    return calls, done.stderr


def test_each_call_is_as_trace_cmd_reports_it(graftrace, files):
    theirs, torn = calls_of_trace_cmd(files / "graph.dat")
    ours, _ = calls_of_graftrace(graftrace, files / "graph.dat")
    all_calls = sum(map(len, theirs.values()))
    assert all_calls > 5000
    assert sum(map(len, ours.values())) >= all_calls - len(torn) - 50
    missing = sum((collections.Counter(theirs[tid]) - collections.Counter(ours[tid])
                   for tid in theirs), collections.Counter())
    wrong = missing - torn
    # an interrupt between a call and its record lengthens what is around it in our picture
    assert sum(wrong.values()) <= all_calls // 1000, wrong


def test_a_file_with_losses_gives_only_calls_that_trace_cmd_reports(graftrace, files):
    theirs, torn = calls_of_trace_cmd(files / "lossy.dat")
    ours, said = calls_of_graftrace(graftrace, files / "lossy.dat")
    lost = sum(map(int, re.findall(r"\[(\d+) EVENTS DROPPED\]", reported(files / "lossy.dat"))))
    assert lost > 0
    assert f"{lost} records were lost" in said
    rows = sum(map(len, ours.values()))
    assert rows > 1000
    made_up = sum((collections.Counter(ours[tid]) - collections.Counter(theirs[tid])
                   for tid in ours), collections.Counter())
    assert sum(made_up.values()) <= rows // 1000 + sum(torn.values()), made_up


def test_functions_have_their_callers_and_times(graftrace, files):
    theirs = re.findall(r"^\s*(.+-\d+)\s+\[000\]\s+([\d.]+): function:\s+(\S+) <-- (\S+)$",
                        reported(files / "function.dat"), re.M)
    if not theirs:  # the plugin's arrow differs from version to version
        theirs = re.findall(r"^\s*(.+-\d+)\s+\[000\]\s+([\d.]+): function:\s+(\S+)", reported(
            files / "function.dat"), re.M)
    shown = graftrace("show", "--no-pager", files / "function.dat").stdout
    ours = re.findall(r"^\s*(.+-\d+)\s+\[000\] \.{5}\s+([\d.]+): (\S+) <-(\S+)$", shown, re.M)
    assert [line[:3] for line in ours] == [line[:3] for line in theirs]
    assert len(ours) > 2
    assert all(line[3][0].isalpha() or line[3][0] == "_" for line in ours)


def test_events_are_the_lines_that_trace_cmd_prints(graftrace, files):
    line = r"^\s*(.+-\d+)\s+\[(\d+)\](?: \.{5})?\s+([\d.]+): (\w+):[ ]*(.*?)[ ]*$"
    theirs = re.findall(line, reported(files / "events.dat", "-N"), re.M)
    ours = re.findall(line, graftrace("show", "--no-pager", files / "events.dat").stdout, re.M)
    assert len(ours) > 100
    assert ours == theirs


def test_context_switches_part_time_on_and_off_the_cpu(graftrace, files):
    out = graftrace("report", "--no-pager", "--format", "csv", "-s", "off-cpu", files / "graph.dat")
    assert out.returncode == 0, out.stderr
    rows = list(csv.DictReader(io.StringIO(out.stdout)))
    assert rows[0]["function"].startswith(("schedule", "do_sys_poll", "__schedule"))
    assert int(rows[0]["self_off_cpu_ns"]) > 0


@pytest.mark.parametrize("command", [["show", "--no-pager"], ["report", "--no-pager"], ["graph", "-i"],
                                     ["info"], ["export", "-q", "--to", "folded", "-o", "-"],
                                     ["export", "-q", "--to", "chrome", "-o", "-"]])
def test_every_view_takes_it(graftrace, files, command):
    done = graftrace(*command, files / "graph.dat")
    assert ("trace-cmd" if command == ["info"] else "vfs_") in done.stdout


def test_nothing_is_left_behind(graftrace, files, tmp_path):
    done = graftrace("info", files / "graph.dat", env={"TMPDIR": str(tmp_path)})
    assert not list(tmp_path.iterdir())


def test_a_cut_file_is_told(graftrace, files, tmp_path):
    whole = (files / "events.dat").read_bytes()
    for size in (10, 20, 300, 5000, len(whole) // 2):
        (tmp_path / "cut.dat").write_bytes(whole[:size])
        done = graftrace("show", "--no-pager", tmp_path / "cut.dat", code=None)
        assert done.returncode in (0, 1)
        assert done.returncode == 0 or "cut.dat" in done.stderr, (size, done)


def test_a_changed_file_costs_no_more_than_an_error(graftrace, files, tmp_path):
    whole, chance = (files / "events.dat").read_bytes(), random.Random(19)
    for _ in range(24):
        changed = bytearray(whole)
        first = chance.choice([0, 0, len(whole) // 2, len(whole) - 20000])
        for _ in range(chance.choice([1, 4, 40])):
            changed[chance.randrange(first, min(first + 20000, len(whole)))] = chance.randrange(256)
        (tmp_path / "changed.dat").write_bytes(changed)
        done = graftrace("report", "--no-pager", tmp_path / "changed.dat", code=None)
        assert done.returncode in (0, 1), done
        assert done.returncode == 0 or done.stderr, done
    shutil.rmtree(tmp_path)
