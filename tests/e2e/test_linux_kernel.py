# SPDX-License-Identifier: MIT
"""Debian's kernel, in QEMU. trace-cmd's files are recordings: they are shown, summed up and exported
as trace-cmd itself reports them, call by call; damaged files are told. And `record --kernel`: the
kernel's functions stand below the program's, and everything is put back, also after a kill."""

import collections
import csv
import io
import random
import re
import shutil
import subprocess

import pytest

import linux_guest
import other_machine
from conftest import PATIENCE, Graftrace
from linux import BOOT_LIMIT_S, rows_of

pytestmark = pytest.mark.timeout(3 * BOOT_LIMIT_S)

SCRIPT = """
trace-cmd record -q -p function_graph -e sched_switch -b 8000 -o graph.dat {program} > /dev/null 2>&1
trace-cmd record -q -p function_graph -b 30 -o lossy.dat ls /proc > /dev/null 2>&1
for i in $(seq 10); do  # on a busy machine trace-cmd's recorder may end before it has read anything
    trace-cmd record -q -p function -l 'vfs_*' -C mono -o function.dat cat /proc/meminfo > /dev/null 2>&1
    [ $(trace-cmd report function.dat 2> /dev/null | wc -l) -gt 3 ] && break
done
for i in $(seq 10); do
    trace-cmd record -q -p nop -e sched -e syscalls -o events.dat sh -c 'ls /proc; {program}' > events.out 2>&1
    [ $(trace-cmd report events.dat 2> /dev/null | wc -l) -gt 100 ] && break
done
mkdir -p /dev/shm /run && mount -t tmpfs tmpfs /dev/shm
T=/sys/kernel/tracing
state() {{ (cd $T; cat current_tracer tracing_on trace_clock set_event set_ftrace_pid set_event_pid
    cat set_graph_function max_graph_depth; ls instances; ls /run) 2>&1; }}
state > before
graftrace record --kernel=graph -o beside.data {program} > beside.out 2>&1
state > after
graftrace record --kernel=functions -o functions.data {program} > functions.out 2>&1
graftrace record --kernel=events --kernel-event nosuch -o none.data {program} > none.out 2>&1
graftrace record --kernel=functions -l k:nosuch_function -o none.data {program} > nofunction.out 2>&1
graftrace record --kernel -g k:vfs_read -D k:2 -o read.data {program} > read.out 2>&1
state > after_read
graftrace record --kernel=graph -o killed.data sleep 100 > /dev/null 2>&1 &
for i in $(seq 600); do grep -q function_graph $T/current_tracer && break; sleep 0.1; done
kill -9 $!
state > killed
graftrace record --kernel=events -o next.data {program} > next.out 2>&1
state > mended
"""

RETURN = re.compile(r"^\s*.+-(\d+)\s+\[\d+\]\s*[\d.]+:\s+funcgraph_exit:\s+func=(\S+) depth=(\d+)"
                    r" overrun=\d+ calltime=(\w+) rettime=(\w+)", re.M)


@pytest.fixture(scope="module")
def files(tmp_path_factory, compile):
    directory = tmp_path_factory.mktemp("linux_kernel")
    program = compile("reads_and_naps.c", "-O1")
    linux_guest.run(directory, SCRIPT.format(program=program.name),
                    ["trace-cmd", Graftrace(directory).path, program])
    return directory


def reported(path, *options):
    return subprocess.run(["trace-cmd", "report", *options, path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=True, timeout=PATIENCE).stdout


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
    # Without -R, a call without callees is one line of two records, and a loss before the second one is
    # not told (test_trace_dat.py has such a file).
    lost = sum(map(int, re.findall(r"\[(\d+) EVENTS DROPPED\]", reported(files / "lossy.dat", "-R"))))
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
    assert len(theirs) > 100, (files / "events.out").read_text()
    done = graftrace("show", "--no-pager", files / "events.dat")
    ours = [found for found in re.findall(line, done.stdout, re.M) if found[3] != "off_cpu"]
    assert ours == theirs, (done.stdout[:3000], done.stderr)


def rests_of_trace_cmd(path):
    """[(tid, slept in ns or None: preempted, waker's tid, waited in ns)] by its switches and wake-ups."""
    rests, off, woken = [], {}, {}
    for waker, clock, name, text in re.findall(
            r"^\s*.+-(\d+)\s+\[\d+\]\s+([\d.]+): (sched_switch|sched_waking): +(.*)$",
            reported(path, "-N", "-t"), re.M):
        clock = int(clock.replace(".", ""))
        if name == "sched_waking":
            tid = re.search(r"\bpid=(\d+)", text)[1]
            if off.get(tid, (0, "R"))[1][0] != "R":
                woken.setdefault(tid, (clock, waker))
            continue
        leaves, state, comes = re.search(
            r"prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+)", text).groups()
        if comes in off and comes != "0":
            since, was = off.pop(comes)
            if was[0] == "R":
                rests.append((comes, None, None, clock - since))
            elif comes in woken:
                ready, by = woken[comes]
                rests.append((comes, ready - since, by, clock - ready))
        woken.pop(leaves, None)
        woken.pop(comes, None)
        off[leaves] = (clock, state)
    return rests


def test_the_reason_of_a_rest_is_what_switches_and_wake_ups_say(graftrace, files):
    shown = graftrace("show", "--no-pager", files / "events.dat").stdout
    ours = []
    for tid, slept, waker, waited in re.findall(
            r"^\s*.+-(\d+)\s+\[.*: off_cpu: (?:preempted|slept ([\d.]+) us until .*-(\d+) woke it), "
            r"waited ([\d.]+) us for a CPU$", shown, re.M):
        ours.append((tid, round(float(slept) * 1000) if slept else None, waker or None,
                     round(float(waited) * 1000)))
    assert len(ours) == shown.count("off_cpu:") >= 5
    assert ours == rests_of_trace_cmd(files / "events.dat")


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


@pytest.fixture(scope="module", params=other_machine.OTHERS)
def other(request, files):
    """trace-cmd's files as another machine would have written them: name -> (as it is here, as it is there)."""
    made = {}
    for name in ("graph", "lossy", "function", "events"):
        here = files / f"{name}-6.dat"
        subprocess.run(["trace-cmd", "convert", "--file-version", "6", "--compression", "none", "-i",
                        files / f"{name}.dat", "-o", here], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True, timeout=PATIENCE)
        there = files / f"{name}-other.dat"
        there.write_bytes(other_machine.rewritten(here.read_bytes(), *request.param))
        made[name] = (here, there)
    return made


def without_arguments(text):
    """A long of 32 bits holds no address of 64."""
    return re.sub(r"\b(sys_\w+(?::| ->)).*", r"\1", text)


@pytest.mark.parametrize("name", ["graph", "lossy", "function", "events"])
def test_the_trace_of_another_machine_is_shown_alike(graftrace, other, name):
    here, there = other[name]
    theirs = reported(there, "-N")
    assert len(theirs.splitlines()) > 3
    # so trace-cmd takes it for the same trace
    assert without_arguments(theirs) == without_arguments(reported(here, "-N"))
    shown, was = (graftrace("show", "--no-pager", path) for path in (there, here))
    assert without_arguments(shown.stdout) == without_arguments(was.stdout)
    assert shown.stderr.replace(there.name, "") == was.stderr.replace(here.name, "")


def test_events_of_another_machine_are_the_lines_that_trace_cmd_prints(graftrace, other):
    line = r"^\s*(.+-\d+)\s+\[(\d+)\](?: \.{5})?\s+([\d.]+): (\w+):[ ]*(.*?)[ ]*$"
    _, there = other["events"]
    theirs = re.findall(line, reported(there, "-N"), re.M)
    shown = graftrace("show", "--no-pager", there).stdout
    assert [found for found in re.findall(line, shown, re.M) if found[3] != "off_cpu"] == theirs
    assert len(theirs) > 100


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
    for _ in range(12):
        changed = bytearray(whole)
        first = chance.choice([0, 0, len(whole) // 2, len(whole) - 20000])
        for _ in range(chance.choice([1, 4, 40])):
            changed[chance.randrange(first, min(first + 20000, len(whole)))] = chance.randrange(256)
        (tmp_path / "changed.dat").write_bytes(changed)
        done = graftrace("report", "--no-pager", tmp_path / "changed.dat", code=None)
        assert done.returncode in (0, 1), done
        assert done.returncode == 0 or done.stderr, done
    shutil.rmtree(tmp_path)


# record --kernel

def test_the_kernels_functions_stand_below_the_programs(graftrace, files):
    rows, callers = rows_of(graftrace, files / "beside.data")
    reads = [row for row in rows.values()
             if row["function"] == "vfs_read" and "read_it" in callers(row)]
    assert len(reads) == 5
    for row in reads:
        names = callers(row)
        # from the system call to main, nothing of another thread in between
        assert [name for name in names if name in ("read_it", "main")] == ["read_it", "main"]
        assert names.index("read_it") > 0
        assert row["object"] == "[kernel]"
    sleeps = [row for row in rows.values()
              if row["function"] == "schedule" and "nap" in callers(row)]
    assert len(sleeps) >= 5
    assert all(int(row["duration_ns"]) > 1_000_000 for row in sleeps
               if "do_nanosleep" in callers(row))


def test_calls_lie_within_their_callers(graftrace, files):
    rows, _ = rows_of(graftrace, files / "beside.data")
    assert len(rows) > 5000
    outside = 0
    for row in rows.values():
        if row["end"] != "return" or not row["parent"]:
            continue
        around = rows[row["parent"]]
        start, end = int(row["start_ns"]), int(row["start_ns"]) + int(row["duration_ns"])
        outside += start < int(around["start_ns"])
        if around["end"] == "return":  # each is a whole number of nanoseconds
            outside += end > int(around["start_ns"]) + int(around["duration_ns"]) + 2
    assert outside == 0


def test_a_read_calls_what_trace_cmd_says_that_it_calls(graftrace, files):
    def called(path):
        rows, _ = rows_of(graftrace, path)
        names = collections.defaultdict(set)
        for row in rows.values():
            if row["parent"] and rows[row["parent"]]["function"] == "vfs_read":
                names[row["parent"]].add(row["function"])
        return set(map(frozenset, names.values()))

    theirs = called(files / "graph.dat")
    rows, callers = rows_of(graftrace, files / "beside.data")
    ours = {}
    for row in rows.values():
        parent = rows.get(row["parent"])
        if parent and parent["function"] == "vfs_read" and "read_it" in callers(parent):
            ours.setdefault(parent["id"], set()).add(row["function"])
    assert len(ours) == 5
    # an interrupt may fall into one
    assert sum(frozenset(names) in theirs for names in ours.values()) >= 3, (ours, theirs)


def test_one_of_the_two_can_be_picked(graftrace, files):
    def reported_rows(*words):
        done = graftrace("report", "--no-pager", "--format", "csv", *words, files / "beside.data")
        return {row["function"]: (row["object"], int(row["calls"]))
                for row in csv.DictReader(io.StringIO(done.stdout))}

    both, user, kernel = reported_rows(), reported_rows("--user"), reported_rows("--kernel")
    assert user["read_it"][1] == 5 and "vfs_read" in kernel
    assert not [name for name, row in user.items() if row[0] == "[kernel]"]
    assert {row[0] for row in kernel.values()} == {"[kernel]"}
    assert {**user, **kernel} == both
    shown = graftrace("show", "--no-pager", "--kernel", files / "beside.data").stdout
    assert re.search(r"\|  (x64_sys_call|__x64_sys_\w+)\(\) \{", shown)
    assert " read_it()" not in shown
    assert "read_it" in graftrace("graph", "--user", "-i", files / "beside.data").stdout
    assert "has the kernel's records only" in graftrace("show", "--user", files / "graph.dat",
                                                         code=1).stderr


def test_everything_is_put_back(files):
    assert "110" not in (files / "beside.out").read_text()
    assert (files / "after").read_text() == (files / "before").read_text()
    assert (files / "after_read").read_text() == (files / "before").read_text()


def test_what_a_killed_graftrace_left_is_put_back_by_the_next(files):
    assert "function_graph" in (files / "killed").read_text()
    assert (files / "mended").read_text() == (files / "before").read_text()


def test_entries_alone_have_their_callers(graftrace, files):
    shown = graftrace("show", "--no-pager", files / "functions.data").stdout
    assert re.search(r"vfs_read\b", shown)
    assert graftrace("info", files / "functions.data").returncode == 0


def test_an_event_that_is_none_is_told(files):
    assert "has no event 'nosuch'" in (files / "none.out").read_text()
    assert "no function is called so" in (files / "nofunction.out").read_text()
    assert not (files / "none.data").exists()


def test_the_kernels_functions_can_be_chosen(graftrace, files):
    rows, _ = rows_of(graftrace, files / "read.data")
    kernels = [row for row in rows.values() if row["object"] == "[kernel]"]
    roots = {row["function"] for row in kernels
             if not row["parent"] or rows[row["parent"]]["object"] != "[kernel]"}
    assert "vfs_read" in roots
    reads = [row["id"] for row in kernels if row["function"] == "vfs_read"]
    assert len(reads) >= 5
    below = [row for row in kernels if row["parent"] in reads]
    assert below
    assert not [row for row in kernels if row["parent"] in {row["id"] for row in below}]
