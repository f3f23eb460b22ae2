# SPDX-License-Identifier: MIT
"""Processes of a recording share memory: what one of them can do to those of other users."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from mounted import wait_until
from served import Served, port_of

ROOT = Path(__file__).parents[2]
USER = 65534
FLAGS = ("-O1", "-fpatchable-function-entry=5", "-I", str(ROOT), "-I", str(ROOT / "include"))
PROGRAMS = ROOT / "tests" / "programs"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory that everybody can enter, with the programs."""
    assert os.getuid() == 0
    path = tmp_path_factory.mktemp("walls")
    for above in (path, *path.parents):
        if str(above).startswith("/tmp/"):
            above.chmod(above.stat().st_mode | 0o055)
    subprocess.run(["gcc", *FLAGS, str(PROGRAMS / "privsep.c"), "-o", str(path / "privsep")], check=True)
    shutil.copy(path / "privsep", path / "with_rights")
    (path / "with_rights").chmod(0o4755)
    return path


def test_a_worker_cannot_make_the_recorder_write_into_its_privileged_parent(graftrace, place):
    done = graftrace("record", "--", place / "privsep", "worker")
    assert "worker 0, changed 0\n" in done.stdout, done.stdout + done.stderr


def test_a_worker_that_dropped_its_rights_is_recorded(graftrace, place):
    graftrace("record", "--", place / "privsep", "header")
    assert re.search(r"^ *[\d.]+ +1 .* try_to_write$", graftrace("report").stdout, re.M)


def test_what_the_recorder_alone_writes_is_read_only_in_a_worker(graftrace, place):
    lines = graftrace("record", "--", place / "privsep", "header").stdout.splitlines()
    assert len(lines) == 8 and lines.pop() == "worker 0, changed 0", lines
    assert [line for line in lines if not line.endswith(" -1")] == []


def arenas(text):
    """The recorder's memory that each process says it has, by who it is."""
    found = dict(re.findall(r"^(uid \d+ secure \d) arena (\d+)$", text, re.M))
    assert "0" not in found.values(), text
    return found


def test_a_program_that_gains_rights_has_an_arena_of_its_own(graftrace, place):
    done = graftrace("record", "--", place / "privsep", "exec", place / "with_rights", "look")
    found = arenas(done.stdout)
    assert set(found) == {f"uid {USER} secure 0", "uid 0 secure 0", "uid 0 secure 1"}, done.stdout
    assert found["uid 0 secure 1"] not in (found["uid 0 secure 0"], found[f"uid {USER} secure 0"])


def test_a_program_that_lost_rights_has_an_arena_of_its_own(graftrace, place):
    done = graftrace("record", "--", "/bin/sh", "-c",
                     f"{place}/privsep look; setpriv --reuid={USER} --clear-groups {place}/privsep look")
    found = arenas(done.stdout)
    assert len(found) == 2 and len(set(found.values())) == 2, done.stdout + done.stderr
    assert re.search(r"^ *[\d.]+ +2 .* look$", graftrace("report").stdout, re.M)


@pytest.fixture(scope="module")
def houses(place):
    subprocess.run(["gcc", *FLAGS, "-pthread", str(PROGRAMS / "houses.c"), "-o", str(place / "houses")], check=True)
    return place / "houses"


@pytest.fixture
def end(tmp_path):
    """The file at which houses.c ends. Everybody may look for it."""
    tmp_path.chmod(0o755)
    return tmp_path / "end"


def said(text):
    """Of each process of houses.c: who, which arena it was forked with, which one it has, how often it looked."""
    return [(who, int(pid), int(before), int(now), int(looks)) for who, pid, before, now, looks in
            re.findall(r"^(worker|parent) (\d+) from (\d+) at (\d+) waited (\d+)$", text, re.M)]


def have_walls(processes, workers):
    """Whether no worker has the parent's arena; all workers have one."""
    parents = {now for who, _, _, now, _ in processes if who == "parent"}
    others = {now for who, _, _, now, _ in processes if who == "worker"}
    assert len(processes) == workers + 1 and len(parents) == 1 and len(others) == 1, processes
    return 0 not in parents | others and not parents & others


def calls_of(graftrace, *options):
    rows = graftrace("report", "--format", "csv", *options).stdout.splitlines()
    names = rows[0].split(",")
    return {row.split(",")[names.index("function")]: int(row.split(",")[names.index("calls")])
            for row in rows[1:]}


def test_workers_that_drop_their_rights_get_an_arena_of_their_own(graftrace, houses):
    """Each call is there: those with the parent's arena, those with the new one, and those in between."""
    done = graftrace("record", "--", houses, 3, 1000)
    processes = said(done.stdout)
    assert have_walls(processes, 3), processes
    calls = calls_of(graftrace)
    assert ", 0 lost" in done.stderr, done.stderr
    looks = sum(looks for who, *_, looks in processes if who == "worker")
    assert calls == {"main": 1, "parent_work": 1000, "worker_main": 3, "worker_work": 3000, "worker_waits": looks}


def test_without_forks_followed_there_is_no_wall_to_build(graftrace, houses):
    done = graftrace("record", "--no-fork", "--", "/usr/bin/setpriv", f"--reuid={USER}", "--clear-groups",
                     houses, 0, 10)
    assert calls_of(graftrace)["parent_work"] == 10, done.stderr


def until_said(process, count):
    text = ""
    while len(said(text)) < count:
        line = process.stdout.readline()
        assert line, text + process.stderr.read()
        text += line
    return said(text)


def test_a_worker_with_several_threads_is_attached_to_anew(graftrace, houses, end):
    process = graftrace.start("record", "--serve=127.0.0.1:0", "--", houses, 1, 1000, "threads")
    try:
        served = Served(process, port_of(process))
        processes = until_said(process, 1)
        served.put("trace", "")
        wait_until(lambda: "worker_work()" in served.get("trace"), "calls of the worker")
    finally:
        end.touch()
        out, err = process.communicate(timeout=60)
    processes += said(out)
    assert have_walls(processes, 1), processes
    assert "1 process with several threads changed its credentials" in err, err


def maps_of(pid):
    return Path(f"/proc/{pid}/maps").read_text()


def test_workers_of_a_running_server_are_recorded_apart_and_left_as_they_were(graftrace, houses, end):
    command = [str(houses), "2", "10", "stay"]
    with subprocess.Popen(command, cwd=end.parent, stdout=subprocess.PIPE, text=True) as server:
        try:
            record = graftrace.start("record", "--children", "-P", server.pid)
            workers = until_said(server, 2)
            record.send_signal(signal.SIGINT)
            assert record.wait(60) == 0, record.stderr.read()
            assert len({now for *_, now, _ in workers}) == 1
            for pid in (server.pid, *(pid for _, pid, *_ in workers)):
                assert "graftrace" not in maps_of(pid)
        finally:
            end.touch()
        server.wait(60)
    record.stdout.close()
    record.stderr.close()
    calls = calls_of(graftrace)
    assert calls["parent_work"] > 0 and calls["worker_work"] > 0, calls


def test_settings_reach_all_arenas(graftrace, houses, end):
    process = graftrace.start("record", "--serve=127.0.0.1:0", "--", houses, 1, 10, "stay")
    try:
        served = Served(process, port_of(process))
        (worker,) = [pid for who, pid, *_ in until_said(process, 1) if who == "worker"]

        def both():
            text = served.get("trace")
            return "worker_work()" in text and "parent_work()" in text

        wait_until(both, "calls of both")
        served.put("tracing_on", "0")
        served.put("trace", "")
        for _ in range(20):
            assert "_work()" not in served.get("trace")
        served.put("tracing_on", "1")
        wait_until(both, "calls of both, once it is on again")
        served.put("set_ftrace_pid", str(worker))
        served.put("trace", "")
        wait_until(lambda: "worker_work()" in served.get("trace"), "calls of the worker")
        served.put("trace", "")
        wait_until(lambda: "worker_work()" in served.get("trace"), "calls of the worker again")
        assert "parent_work()" not in served.get("trace")
        served.put("set_ftrace_pid", "")
        wait_until(both, "calls of both, once all are chosen")
        served.put("current_tracer", "function")
        wait_until(lambda: all(f"{name} <-" in served.get("trace") for name in ("worker_work", "parent_work")),
                   "both as the function tracer has them")
    finally:
        end.touch()
        process.communicate(timeout=60)


def test_the_newest_of_all_arenas_are_kept(graftrace, houses):
    done = graftrace("record", "--overwrite", "-b", "256k", "--", houses, 2, 200000)
    assert have_walls(said(done.stdout), 2)
    calls = calls_of(graftrace)
    assert 0 < calls["parent_work"] < 200000 and 0 < calls["worker_work"] < 400000, calls
