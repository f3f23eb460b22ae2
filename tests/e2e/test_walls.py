# SPDX-License-Identifier: MIT
"""Processes of a recording share memory: what one of them can do to those of other users."""

import csv
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import PATIENCE, line_with, wait_until
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
def drop_rights(place):
    program = place / "drop_rights"
    subprocess.run(["gcc", *FLAGS, "-pthread", str(PROGRAMS / "drop_rights.c"), "-o", str(program)], check=True)
    return program


@pytest.fixture
def end(tmp_path):
    """The file at which drop_rights.c ends. Everybody may look for it."""
    tmp_path.chmod(0o755)
    return tmp_path / "end"


def said(text):
    """Of each process of drop_rights.c: who, which arena it was forked with, which one it has, how often it looked."""
    return [(who, int(pid), int(before), int(now), int(looks)) for who, pid, before, now, looks in
            re.findall(r"^(worker|parent) (\d+) from (\d+) at (\d+) waited (\d+)$", text, re.M)]


def have_walls(processes, workers):
    """Whether no worker has the parent's arena; all workers have one."""
    parents = {now for who, _, _, now, _ in processes if who == "parent"}
    others = {now for who, _, _, now, _ in processes if who == "worker"}
    assert len(processes) == workers + 1 and len(parents) == 1 and len(others) == 1, processes
    return 0 not in parents | others and not parents & others


def calls_in(table, column="calls"):
    return {row["function"]: int(row[column]) for row in csv.DictReader(table.splitlines())}


def calls_of(graftrace, *options):
    return calls_in(graftrace("report", "--format", "csv", *options).stdout)


def test_workers_that_drop_their_rights_get_an_arena_of_their_own(graftrace, drop_rights):
    """Each call is there: those with the parent's arena, those with the new one, and those in between."""
    done = graftrace("record", "--", drop_rights, 3, 1000)
    processes = said(done.stdout)
    assert have_walls(processes, 3), processes
    calls = calls_of(graftrace)
    assert ", 0 lost" in done.stderr, done.stderr
    looks = sum(looks for who, *_, looks in processes if who == "worker")
    assert calls == {"main": 1, "parent_work": 1000, "worker_main": 3, "worker_work": 3000, "worker_waits": looks}


def test_without_forks_followed_there_is_no_wall_to_build(graftrace, drop_rights):
    done = graftrace("record", "--no-fork", "--", "/usr/bin/setpriv", f"--reuid={USER}", "--clear-groups",
                     drop_rights, 0, 10)
    assert calls_of(graftrace)["parent_work"] == 10, done.stderr


def until_said(process, count):
    text = ""
    while len(said(text)) < count:
        line = process.stdout.readline()
        assert line, text + process.stderr.read()
        text += line
    return said(text)


def test_a_worker_with_several_threads_is_attached_to_anew(graftrace, drop_rights, end):
    process = graftrace.start("record", "--serve=127.0.0.1:0", "--", drop_rights, 1, 1000, "threads")
    try:
        served = Served(process, port_of(process))
        processes = until_said(process, 1)
        served.put("trace", "")
        wait_until(lambda: "worker_work()" in served.get("trace"), "calls of the worker")
    finally:
        end.touch()
        out, err = process.communicate(timeout=PATIENCE)
    processes += said(out)
    assert have_walls(processes, 1), processes
    assert "1 process with several threads changed its credentials" in err, err


def maps_of(pid):
    return Path(f"/proc/{pid}/maps").read_text()


def test_workers_of_a_running_server_are_recorded_apart_and_left_as_they_were(graftrace, drop_rights, end):
    command = [str(drop_rights), "2", "10", "stay"]
    with subprocess.Popen(command, cwd=end.parent, stdout=subprocess.PIPE, text=True) as server:
        try:
            record = graftrace.start("record", "--children", "-P", server.pid)
            workers = until_said(server, 2)
            record.send_signal(signal.SIGINT)
            assert record.wait(PATIENCE) == 0, record.stderr.read()
            assert len({now for *_, now, _ in workers}) == 1
            for pid in (server.pid, *(pid for _, pid, *_ in workers)):
                assert "graftrace" not in maps_of(pid)
        finally:
            end.touch()
        server.wait(PATIENCE)
    record.stdout.close()
    record.stderr.close()
    calls = calls_of(graftrace)
    assert calls["parent_work"] > 0 and calls["worker_work"] > 0, calls


def test_settings_reach_all_arenas(graftrace, drop_rights, end):
    process = graftrace.start("record", "--serve=127.0.0.1:0", "--", drop_rights, 1, 10, "stay")
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
        process.communicate(timeout=PATIENCE)


def test_the_newest_of_all_arenas_are_kept(graftrace, drop_rights):
    done = graftrace("record", "--overwrite", "-b", "256k", "--", drop_rights, 2, 200000)
    assert have_walls(said(done.stdout), 2)
    calls = calls_of(graftrace)
    assert 0 < calls["parent_work"] < 200000 and 0 < calls["worker_work"] < 400000, calls


def test_a_worker_cannot_take_its_parents_thread_out_of_the_lists(graftrace, place, end):
    """In memory that is its own by now it claims that the parent's thread was its own, and has ended."""
    process = graftrace.start("record", "--serve=127.0.0.1:0", "--", place / "privsep", "claim")
    try:
        served = Served(process, port_of(process))
        wait_until(lambda: "work()" in served.get("trace"), "calls of both")
        assert process.stdout.readline() == "claims\n"
        parent = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]
        served.put("options/function-fork", "1")
        served.put("set_ftrace_pid", parent)
        for _ in range(100):
            assert served.get("set_ftrace_pid").split() == [parent]
    finally:
        end.touch()
        process.communicate(timeout=PATIENCE)


def test_a_worker_cannot_put_its_parents_thread_into_the_lists(graftrace, place, end):
    """In memory that is its own it adds the parent to the threads that are traced; the file lists its own alone."""
    process = graftrace.start("record", "--serve=127.0.0.1:0", "-p", "function", "--", place / "privsep", "list")
    try:
        served = Served(process, port_of(process))
        assert process.stdout.readline() == "lists\n"
        parent = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]
        worker = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0]
        served.put("set_ftrace_pid", worker)
        for _ in range(100):
            assert served.get("set_ftrace_pid").split() == [worker]
        assert served.ask("POST", "set_ftrace_pid", "999999\n")[0] == 204
        assert served.get("set_ftrace_pid").split() == [worker, "999999"]
        served.put("trace", "")
        wait_until(lambda: f"-{worker} " in served.get("trace"), "calls of the worker")
        assert f"-{parent} " not in served.get("trace")
    finally:
        end.touch()
        process.communicate(timeout=PATIENCE)


@pytest.fixture(scope="module")
def users(place):
    subprocess.run(["gcc", *FLAGS, str(PROGRAMS / "users.c"), "-o", str(place / "users")], check=True)
    return place / "users"


def looks_of_traced(processes):
    return sum(looks for who, _, _, now, looks in processes if who == "worker" and now)


def test_histograms_are_summed_over_all_arenas(graftrace, users):
    done = graftrace("record", "-p", "function_graph", "-e", "shop:made", "--trigger", "hist:keys=number", "--",
                     users, 6, 1000)
    processes = said(done.stdout)
    assert len({now for *_, now, _ in processes}) == 7, processes
    lines = dict(re.findall(r"number: +(\d) .* hitcount: +(\d+)$", graftrace("hist").stdout, re.M))
    assert lines == {str(number): "1500" for number in range(4)}
    assert calls_of(graftrace) == {"main": 1, "parent_work": 1000, "worker_work": 6000,
                                   "worker_looks": looks_of_traced(processes)}


def test_profiles_are_summed_over_all_arenas(graftrace, users, tmp_path):
    done = graftrace("profile", "--format", "csv", "-o", tmp_path / "table", "--", users, 6, 1000)
    processes = said(done.stdout)
    assert len({now for *_, now, _ in processes}) == 7, processes
    assert calls_in((tmp_path / "table").read_text()) == {
        "main": 1, "parent_work": 1000, "worker_work": 6000, "worker_looks": looks_of_traced(processes)}


def test_sixteen_sets_of_credentials_are_recorded_and_the_others_named(graftrace, users):
    """The parent's set and those of 15 workers. What the others did before they were left is recorded."""
    done = graftrace("record", "--", users, 18, 1000)
    processes = said(done.stdout)
    left = {pid for _, pid, _, now, _ in processes if now == 0}
    assert len(processes) == 19 and len(left) == 3 and len({now for *_, now, _ in processes if now}) == 16, processes
    named = re.findall(r"process (\d+) runs untraced: it is user (\d+)'s .* 16 such sets", done.stderr)
    assert {int(pid) for pid, _ in named} == left, done.stderr
    calls = calls_of(graftrace)
    assert calls.pop("worker_looks") >= looks_of_traced(processes)
    assert calls == {"main": 1, "parent_work": 1000, "worker_work": 15000}


def test_the_profiler_names_those_that_it_leaves_out(graftrace, users, tmp_path):
    done = graftrace("profile", "--format", "csv", "-o", tmp_path / "table", "--", users, 17, 100)
    left = {pid for _, pid, _, now, _ in said(done.stdout) if now == 0}
    named = re.findall(r"process (\d+) runs untraced: ", done.stderr)
    assert len(left) == 2 and {int(pid) for pid in named} == left, done.stderr
    assert calls_in((tmp_path / "table").read_text())["worker_work"] == 1500


def test_handlers_that_drop_rights_in_the_midst_of_a_call_harm_no_record(graftrace, place):
    """A call that goes on in other memory would write over what is there."""
    subprocess.run(["gcc", *FLAGS, str(PROGRAMS / "interrupted.c"), "-o", str(place / "interrupted")], check=True)
    done = graftrace("record", "--", place / "interrupted", 30)
    made = {name: int(calls) for name, calls in re.findall(r"(\w+_work) (\d+)", done.stdout)}
    table = graftrace("report", "--format", "csv").stdout
    assert calls_in(table) == {"main": 1, **made}
    assert set(calls_in(table, "not_returned").values()) == {0}, table


def test_many_groups_are_read(graftrace, place):
    """Numbers that need more than 64 KiB of /proc/PID/status."""
    groups = "import os, sys; os.setgroups(range(4000000000, 4000020000)); os.execv(sys.argv[1], sys.argv[1:])"
    done = graftrace("record", "--", shutil.which("python3"), "-c", groups, place / "privsep", "look")
    assert len(arenas(done.stdout)) == 1, done.stdout + done.stderr


HIDES = """
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int work(int x) { __asm__ volatile("" : : : "memory"); return x + 1; }
int main(void)
{
	int sum = work(0), status, failed = 0;
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			sum = work(sum);
			if (i == 1)
				prctl(PR_SET_DUMPABLE, 0);
			for (int k = 0; k < 200; k++, usleep(1000))
				sum = work(sum);
			_exit(sum != 202);
		}
	while (wait(&status) > 0)
		failed += status != 0;
	return failed;
}
"""


def test_a_process_that_hides_from_its_own_user_has_changed_nothing(graftrace, place, tmp_path):
    """It has no dumps, so /proc shows less of it to who is not root. All of it is recorded."""
    (tmp_path / "hides.c").write_text(HIDES)
    subprocess.run(["gcc", *FLAGS, "hides.c", "-o", str(place / "hides")], check=True, cwd=tmp_path)
    shutil.copy(graftrace.path, place / "graftrace")
    tmp_path.chmod(0o777)
    done = subprocess.run(["/usr/bin/setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
                           place / "graftrace", "record", "--", place / "hides"], cwd=tmp_path, text=True,
                          capture_output=True, timeout=PATIENCE, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert done.returncode == 0 and "untraced" not in done.stderr, done.stderr
    assert calls_of(graftrace) == {"main": 1, "work": 403}


# Of graftrace: it is killed when it is about to pass memory to a process for the second time.
KILLED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <sys/socket.h>
ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
	ssize_t (*real)(int, const struct msghdr *, int) = dlsym(RTLD_NEXT, "sendmsg");
	static int calls;
	if (++calls == 2)
		raise(SIGKILL);
	return real(socket, message, flags);
}
"""


def has(pid):
    """How many descriptors a process has, and how many bytes without a name that it can write."""
    bytes_ = sum(int(end, 16) - int(start, 16) for start, end in
                 re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw-p 0+ 00:00 0 *$", maps_of(pid), re.M))
    return len(os.listdir(f"/proc/{pid}/fd")), bytes_


def test_what_a_killed_graftrace_was_moving_is_cleaned_up(graftrace, drop_rights, end, compile):
    library = compile(KILLED, "-shared", "-fPIC")
    killed = graftrace.start("record", "--", drop_rights, 1, 10, "stay", stdout=subprocess.DEVNULL,
                             env={**os.environ, "LD_PRELOAD": str(library)})
    try:
        parent = 0
        while not parent and killed.poll() is None:
            parent = int((Path(f"/proc/{killed.pid}/task/{killed.pid}/children").read_text().split() or [0])[0])
        assert killed.wait(PATIENCE) == -signal.SIGKILL
        (worker,) = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        record = graftrace.start("record", "--children", "-P", parent)
        line_with(record.stderr, "recording process")
        record.send_signal(signal.SIGINT)
        assert record.wait(PATIENCE) == 0
        assert "graftrace" not in maps_of(worker)
        assert has(worker) == has(parent)
    finally:
        end.touch()
        killed.communicate()
    record.stdout.close()
    record.stderr.close()


WAITS = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/programs/recorder_memory.h"
__attribute__((noinline)) int worker_work(int x) { __asm__ volatile("" : : : "memory"); return x + 1; }
__attribute__((noinline)) int parent_work(int x) { __asm__ volatile("" : : : "memory"); return x + 1; }
QUIET static void nap(long us) { nanosleep(&(struct timespec){ 0, us * 1000 }, NULL); }
QUIET static int wait_for_child(void)
{
	int sum = worker_work(0);
	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 4;
	if (vfork() == 0) {
		while (access("end", F_OK) != 0)
			nap(10000);
		_exit(0);
	}
	return worker_work(sum) != 2;
}
int main(void)
{
	int sum = 0, status, failed = 0;
	for (int i = 0; i < 3; i++)
		if (fork() == 0)
			_exit(wait_for_child());
	for (int i = 0; i < 20000; i++, nap(20))
		for (int k = 0; k < 100; k++)
			sum = parent_work(sum);
	close(open("end", O_CREAT, 0644));
	while (wait(&status) > 0)
		failed += status != 0;
	return failed + (sum != 2000000);
}
"""


def test_workers_that_cannot_be_stopped_do_not_keep_others_from_being_recorded(graftrace, place, end):
    """They wait for a vfork child, where no stop reaches them."""
    (end.parent / "waits.c").write_text(WAITS)
    subprocess.run(["gcc", *FLAGS, "waits.c", "-o", str(place / "waits")], check=True, cwd=end.parent)
    done = graftrace("record", "-b", "1m", "--", place / "waits")
    assert ", 0 lost" in done.stderr, done.stderr
    assert calls_of(graftrace) == {"main": 1, "parent_work": 2000000, "worker_work": 6}


# Forks a worker, so that there is memory for such ones. Then, when it may, one with two threads.
LISTED = """
#define _GNU_SOURCE
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "tests/programs/recorder_memory.h"
__attribute__((noinline)) int worker_work(int x) { __asm__ volatile("" : : : "memory"); return x + 1; }
__attribute__((noinline)) int thread_work(int x) { __asm__ volatile("" : : : "memory"); return x + 1; }
__attribute__((noinline)) int parent_work(int x) { __asm__ volatile("" : : : "memory"); return x + 1; }
QUIET static void *go_on(void *name)
{
	int (*call)(int x) = name;
	for (int sum = 0; access("end", F_OK) != 0; usleep(1000))
		sum = call(sum);
	return NULL;
}
__attribute__((noinline)) int first_work(int x) { __asm__ volatile("" : : : "memory"); return x + 1; }
QUIET static void drop(void)
{
	const unsigned long from = arena_inode();
	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		_exit(4);
	for (unsigned long at = from; at == from || at == 0; at = arena_inode())
		usleep(1000);
	puts("moved");
	fflush(stdout);
}
int main(void)
{
	pthread_t thread;
	if (fork() == 0) {
		first_work(0);
		drop();
		go_on(first_work);
		_exit(0);
	}
	for (int sum = 0; access("begin", F_OK) != 0; usleep(1000))
		sum = parent_work(sum);
	if (fork() == 0) {
		worker_work(0);
		pthread_create(&thread, NULL, go_on, thread_work);
		usleep(20000);
		drop();
		go_on(worker_work);
		_exit(0);
	}
	go_on(parent_work);
}
"""


def test_threads_that_came_with_their_creators_stay_in_the_list(graftrace, place, end):
    (end.parent / "listed.c").write_text(LISTED)
    subprocess.run(["gcc", *FLAGS, "-pthread", "listed.c", "-o", str(place / "listed")], check=True, cwd=end.parent)
    process = graftrace.start("record", "--serve=127.0.0.1:0", "--", place / "listed")
    try:
        served = Served(process, port_of(process))
        assert process.stdout.readline() == "moved\n"
        served.put("options/function-fork", "1")
        served.put("set_ftrace_pid", Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        (end.parent / "begin").touch()
        assert process.stdout.readline() == "moved\n"
        served.put("trace", "")

        def all_three():
            text = served.get("trace")
            return all(f"{name}_work()" in text for name in ("parent", "worker", "thread"))

        wait_until(all_three, "calls of all threads")
    finally:
        end.touch()
        process.communicate(timeout=PATIENCE)
