# SPDX-License-Identifier: MIT
"""System calls of programs, taken at their own instructions: as strace sees them, and without harm.

What is not seen (doc/design/syscalls.md): what the loader calls before there is thread-local storage,
the C library's own beginning, a signal's return, a child's end of fork, and a restarted call's second
beginning.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import time

import pytest

from conftest import free_port, let_port_go

# Linux's events have other names than programs have for these.
NAMES = {"newstat": "stat", "newfstat": "fstat", "newlstat": "lstat", "newuname": "uname",
         "sendfile64": "sendfile", "umount": "umount2"}
UNSEEN = {"rt_sigreturn", "restart_syscall"}


def ours(graftrace, file="graftrace.data"):
    """Calls of each thread in their order, threads as they come: (name, result or None)."""
    threads = {}
    for line in graftrace("show", "-i", file).stdout.splitlines():
        found = re.match(r".*?-(\d+) +\[\d+\].*?: sys_(enter|exit)_(\w+): (.*)", line)
        if not found:
            continue
        tid, which, name, fields = found.groups()
        name = NAMES.get(name, name)
        calls = threads.setdefault(tid, [])
        if which == "enter":
            calls.append([name, None])
            continue
        result = int(re.search(r"ret=(-?\d+)", fields)[1])
        call = next(call for call in reversed(calls) if call[0] == name and call[1] is None)
        call[1] = result
    return list(threads.values())


def record(graftrace, *argv, code=0, **how):
    done = graftrace("record", "-e", "syscalls", "-o", "graftrace.data", "--", *argv, code=code,
                     timeout=120, **how)
    assert " 0 lost" in done.stderr
    return done


def straced(directory, argv):
    """The same by strace. What a vfork's child calls before its exec is its parent's, as in recordings."""
    subprocess.run(["strace", "-f", "-o", "strace.txt", *map(str, argv)], cwd=directory, timeout=120,
                   stdin=subprocess.DEVNULL, capture_output=True, check=False)
    threads, speaks_for, creator = {}, {}, None
    for line in (directory / "strace.txt").read_text(errors="replace").splitlines():
        found = re.match(r"(\d+) +(\w+)\((.*)", line)
        if not found:
            continue
        tid, name = found.group(1, 2)
        if creator and tid not in threads:
            speaks_for[tid], creator = creator, None
        threads.setdefault(speaks_for.get(tid, tid), []).append([name])
        if name == "vfork":
            creator = tid
        elif name in ("execve", "_exit", "exit_group"):
            speaks_for.pop(tid, None)
    return list(threads.values())


def compared(calls):
    """Names from the first call on that can be seen. The C library asks for its stack's limit before
    anybody may look at it."""
    plain = [call[0] for call in calls]
    if "set_tid_address" in plain:
        first = plain.index("set_tid_address")
        plain = plain if "execve" in plain[1:first] else plain[first:]
    names, seen, begins = [], True, False
    for name in plain:
        if name == "set_tid_address":
            seen = begins = True
        if seen and name not in UNSEEN and not (begins and name == "prlimit64"):
            names.append(name)
        begins = begins and name not in ("munmap", "prlimit64")
        seen = seen and name != "execve"
    return names


def same_as_strace(graftrace, *argv, code=0):
    record(graftrace, *argv, code=code)
    seen = [compared(calls) for calls in ours(graftrace)]
    expected = [compared(calls) for calls in straced(graftrace.directory, argv)]
    assert seen == expected
    assert seen and all(len(calls) > 1 for calls in seen)


def test_every_call_of_ls_is_seen(graftrace):
    same_as_strace(graftrace, "ls", "-l", "/etc/apt")


def test_every_call_of_cat_is_seen(graftrace):
    same_as_strace(graftrace, "cat", "/etc/passwd")


def test_every_call_of_sort_is_seen(graftrace):
    same_as_strace(graftrace, "sort", "--parallel=1", "/etc/passwd")


def test_every_call_of_git_is_seen(graftrace):
    same_as_strace(graftrace, "git", "hash-object", "/etc/passwd")


def test_every_call_of_python_is_seen(graftrace):
    same_as_strace(graftrace, "/usr/bin/python3", "-I", "-c", "import json; print(open('/etc/passwd').read()[:3])")


def test_every_call_of_a_shell_with_children_is_seen(graftrace):
    """vfork, fork, exec and wait."""
    same_as_strace(graftrace, "dash", "-c", "/bin/true; (exit 3); exec /bin/true")


STATIC = """
#include <stdio.h>
#include <unistd.h>
#include <fcntl.h>
int main(void)
{
	char text[4];
	int fd = open("/etc/passwd", O_RDONLY);
	int got = (int)read(fd, text, sizeof(text));
	printf("%d %d\\n", got, close(fd) + (int)(getppid() > 0));
	return access("/no/such", R_OK) != -1;
}
"""


def test_every_call_of_a_static_program_is_seen(graftrace, compile):
    same_as_strace(graftrace, compile(STATIC, "-O2", "-static"))


THREADS = """
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static int ends[2];
static void handler(int signal) { (void)signal; getppid(); write(ends[1], "x", 1); }
static void *first(void *data)
{
	char byte;
	for (int i = 0; i < 20; i++) read(ends[0], &byte, 1);
	return data;
}
int main(void)
{
	pthread_t thread;
	signal(SIGUSR1, handler);
	pipe(ends);
	pthread_create(&thread, NULL, first, NULL);
	for (int i = 0; i < 20; i++) raise(SIGUSR1);
	pthread_join(thread, NULL);
	return 0;
}
"""


def without_waits(calls):
    """How often a thread waits for another is a matter of luck."""
    return [name for name in calls if name != "futex"]


def test_every_call_of_threads_and_handlers_is_seen(graftrace, compile):
    program = compile(THREADS, "-O1", "-pthread")
    record(graftrace, program)
    seen = [without_waits(compared(calls)) for calls in ours(graftrace)]
    expected = [without_waits(compared(calls)) for calls in straced(graftrace.directory, [program])]
    assert seen == expected
    assert seen[0].count("getppid") == 20 and seen[1].count("read") == 20


def test_calls_of_a_server_are_seen(graftrace):
    """Attached to: what the requests make it call, by its own account."""
    port = free_port()
    server = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--dir",
                               str(graftrace.directory)], stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        recording = graftrace.start("record", "-e", "syscalls:sys_*_write", "-e",
                                    "syscalls:sys_*_accept4", "-P", str(server.pid), "-o",
                                    "graftrace.data")
        while "recording process" not in recording.stderr.readline():
            assert recording.poll() is None
        with socket.create_connection(("127.0.0.1", port)) as client:
            for i in range(10):
                client.sendall(b"ECHO hello%d\r\n" % i)
                assert b"hello%d" % i in client.recv(100)
            client.sendall(b"PING\r\n")  # the last answer's call is over
            assert client.recv(100) == b"+PONG\r\n"
        recording.send_signal(2)
        recording.communicate(timeout=60)
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"PING\r\n")
            assert client.recv(100) == b"+PONG\r\n"
    finally:
        server.terminate()
        assert server.wait(timeout=60) == 0
        let_port_go(port)
    writes = [call for calls in ours(graftrace) for call in calls if call[0] == "write"]
    assert len([call for call in writes if call[1] == 12]) == 10
    assert [call for calls in ours(graftrace) for call in calls if call[0] == "accept4"]


def test_results_and_texts_are_those_of_the_call(graftrace, compile):
    record(graftrace, compile(STATIC, "-O2"), code=0)
    shown = graftrace("show", "-i", "graftrace.data").stdout
    assert re.search(r"sys_enter_openat: .*filename=0x\w+ .*__filename_val=\"/etc/passwd\"", shown)
    assert re.search(r"sys_enter_access: .*filename=0x\w+ mode=0x4 __filename_val=\"/no/such\"\n"
                     r".*sys_exit_access: __syscall_nr=21 ret=-2", shown)
    assert re.search(r"sys_exit_read: __syscall_nr=0 ret=4", shown)


def test_only_events_that_are_named_are_recorded(graftrace):
    graftrace("record", "-e", "syscalls:sys_enter_open*", "-e", "raw_syscalls:sys_exit", "--", "cat",
              "/etc/passwd")
    shown = graftrace("show").stdout
    names = set(re.findall(r": (sys_\w+): ", shown))
    assert names == {"sys_enter_openat", "sys_exit"}
    assert re.search(r"sys_exit: id=0 ret=[1-9]", shown)


def test_raw_events_have_all_arguments(graftrace):
    graftrace("record", "-e", "raw_syscalls", "--", "cat", "/etc/passwd")
    assert re.search(r"sys_enter: id=262 arg0=0x3 arg1=0x\w+ arg2=0x\w+ arg3=0x1000 arg4=0x\w+ arg5=",
                     graftrace("show").stdout)


@pytest.mark.parametrize("static", [False, True])
def test_a_storm_of_signals_goes_on_as_without(graftrace, compile, static):
    """Restarts, cancellation, vfork and all, with the calls recorded."""
    program = compile("syscall_storm.c", "-O1", "-pthread", *(["-static"] if static else []))
    done = graftrace("record", "-e", "syscalls", "--", program, "30", code=42, timeout=120)
    assert done.stdout == "all as it should be\n"


def test_a_storm_with_functions_traced_goes_on_as_without(graftrace, compile):
    program = compile("syscall_storm.c", "-O1", "-pthread")
    done = graftrace("record", "-p", "function_graph", "--libs", "-e", "syscalls", "--", program, "20",
                     code=42, timeout=120)
    assert done.stdout == "all as it should be\n"


def test_come_and_gone_in_a_storm(graftrace, compile):
    """Places are patched and put back under threads that wait in calls, are interrupted, fork."""
    program = compile("syscall_storm.c", "-O1", "-pthread")
    with subprocess.Popen([program, "40", "4"], stdout=subprocess.PIPE, text=True) as running:
        comings = 0
        while running.poll() is None:
            done = graftrace("record", "-e", "syscalls", "--for", "50ms", "-P", running.pid, "-o",
                             "graftrace.data", code=None)
            comings += done.returncode == 0
        assert running.stdout.read() == "all as it should be\n"
        assert running.returncode == 42
    assert comings > 1


def executable_without_name(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return [line for line in maps if "r-xp" in line and len(line.split()) < 6]


def test_a_thread_that_waits_in_a_call_stays_there(graftrace):
    """It is led to where the call is moved to, and back: nothing of ours is left, and it has not noticed."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
        while cat.poll() is None:
            with open(f"/proc/{cat.pid}/syscall", encoding="utf-8") as file:
                if file.read().startswith("0 0x0 "):
                    break
        with open(f"/proc/{cat.pid}/syscall", encoding="utf-8") as file:
            before = file.read()
        for _ in range(3):
            graftrace("record", "-e", "syscalls", "--for", "50ms", "-P", cat.pid, "-o",
                      "graftrace.data")
            with open(f"/proc/{cat.pid}/syscall", encoding="utf-8") as file:
                assert file.read().split()[-1] == before.split()[-1]
            assert not executable_without_name(cat.pid)
        out, _ = cat.communicate(b"hello\n", timeout=60)
        assert out == b"hello\n"


@pytest.mark.parametrize("kind, why", [
    ("0", ""),
    ("1", "asks where a system call is made"),
    ("2", ""),
    ("3", "takes its system calls by where they are made"),
])
def test_sandboxes_say_the_same(graftrace, compile, kind, why):
    """A filter that asks where a call is made from would find it elsewhere."""
    program = compile("syscall_sandbox.c", "-O1")
    plain = subprocess.run([program, kind], capture_output=True, text=True, timeout=60, check=False)
    done = graftrace("record", "-e", "syscalls", "--", program, kind, code=plain.returncode)
    assert done.stdout == plain.stdout
    assert why in done.stderr
    assert ("untraced" in done.stderr) == bool(why)
