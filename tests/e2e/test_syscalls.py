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

from conftest import PATIENCE, free_port, let_port_go
from mounted import start  # noqa: F401

# Linux's events have other names than programs have for these.
NAMES = {"newstat": "stat", "newfstat": "fstat", "newlstat": "lstat", "newuname": "uname",
         "sendfile64": "sendfile", "umount": "umount2"}
UNSEEN = {"rt_sigreturn", "restart_syscall"}


def ours(graftrace, file="graftrace.data"):
    """Calls of each thread in their order, threads as they come: (name, result or None)."""
    threads = {}
    for line in graftrace("show", "--syscalls", "linux", "-i", file).stdout.splitlines():
        found = re.match(r".*?-(\d+) +\[\d+\].*?: sys_(\w+)(\(| -> 0x)(.*)", line)
        if not found:
            continue
        tid, name, which, rest = found.groups()
        name = NAMES.get(name, name)
        calls = threads.setdefault(tid, [])
        if which == "(":
            calls.append([name, None])
            continue
        result = int(rest, 16)
        result -= result >> 63 << 64
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


@pytest.mark.parametrize("argv", [
    ["tar", "-cf", "out.tar", "-C", "/etc", "apt"],
    ["find", "/etc/apt", "-type", "d"],
    ["perl", "-e", "print -s '/etc/passwd'"],
    ["xz", "-T1", "-c", "/etc/passwd"],
    ["sed", "-n", "s/root/toor/p", "/etc/passwd"],
    ["make", "-f", "/dev/null", "-n", "-p"],
], ids=lambda argv: argv[0])
def test_every_call_of_other_programs_is_seen(graftrace, argv):
    same_as_strace(graftrace, *argv, code=2 if argv[0] == "make" else 0)


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
        recording.communicate(timeout=PATIENCE)
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"PING\r\n")
            assert client.recv(100) == b"+PONG\r\n"
    finally:
        server.terminate()
        assert server.wait(timeout=PATIENCE) == 0
        let_port_go(port)
    writes = [call for calls in ours(graftrace) for call in calls if call[0] == "write"]
    assert len([call for call in writes if call[1] == 12]) == 10
    assert [call for calls in ours(graftrace) for call in calls if call[0] == "accept4"]


def test_results_and_texts_are_those_of_the_call(graftrace, compile):
    record(graftrace, compile(STATIC, "-O2"), code=0)
    shown = graftrace("show", "--syscalls", "linux", "-i", "graftrace.data").stdout
    assert re.search(r"sys_openat\(dfd: 0xf+9c, filename: 0x\w+ \"/etc/passwd\", flags: \w+, mode: \w+\)\n",
                     shown)
    assert re.search(r"sys_access\(filename: 0x\w+ \"/no/such\", mode: 4\)\n"
                     r".*sys_access -> 0xfffffffffffffffe\n", shown)
    assert re.search(r"sys_read -> 0x4\n", shown)
    shown = graftrace("show", "-i", "graftrace.data").stdout
    assert re.search(r": openat\(AT_FDCWD, \"/etc/passwd\", O_RDONLY\)\n", shown)
    assert re.search(r": access\(\"/no/such\", R_OK\)\n"
                     r".*: access = -1 ENOENT \(No such file or directory\)\n", shown)
    assert re.search(r": read = 4 \"....\"\n", shown)
    wrong = graftrace("show", "--syscalls", "perf", code=2).stderr
    assert "--syscalls 'perf' is none of strace, linux" in wrong


# What strace says at the end of a call with arguments that the kernel writes, and we behind the result.
WRITTEN = {"read": 1, "newfstatat": 2, "socketpair": 3, "wait4": 1, "prlimit64": 3}
# Written otherwise: strace tells a name for what is none of the call's arguments, and more behind results.
OTHERWISE = {"clone", "prctl", "exit_group"}


def split_arguments(text):
    """Arguments of a call, which may have brackets and texts in them."""
    parts, depth, quoted, at = [""], 0, False, 0
    while at < len(text):
        c = text[at]
        if quoted and c == "\\":
            parts[-1] += text[at:at + 2]
            at += 2
            continue
        quoted ^= c == '"'
        depth += not quoted and (c in "{[(") - (c in "}])")
        if c == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += c
        at += 1
    return [part.strip() for part in parts]


def calls_by_strace(text):
    """(name, arguments, result, what was written) from the first chdir on."""
    calls = []
    for line in text.splitlines():
        found = re.fullmatch(r"(\w+)\((.*)\) += (\S+( E\w+ \(.*\))?).*", line)
        if not found or not (calls or found[1] == "chdir"):
            continue
        name, arguments, written = found[1], split_arguments(found[2]), None
        if name in WRITTEN and WRITTEN[name] < len(arguments) and not found[4]:
            written, arguments[WRITTEN[name]] = arguments[WRITTEN[name]], "ADDRESS"
        if name == "rt_sigaction":
            arguments[1] = re.sub(r", sa_restorer=0x\w+", "", arguments[1])
        calls.append([name, arguments, found[3], written])
    return calls


def calls_by_graftrace(text):
    calls = []
    for line in text.splitlines():
        begin = re.search(r"\d: (\w+)\((.*)\)$", line)
        end = re.search(r"\d: (\w+) = (-1 E\w+ \(.*?\)|\S+)(?: (.*))?$", line)
        if begin and (calls or begin[1] == "chdir"):
            arguments = split_arguments(begin[2])
            if begin[1] in WRITTEN and WRITTEN[begin[1]] < len(arguments):
                arguments[WRITTEN[begin[1]]] = "ADDRESS"
            calls.append([begin[1], arguments, None, None])
        elif end and calls:
            call = next(call for call in reversed(calls) if call[2] is None)
            assert call[0] == end[1]
            call[2:] = end[2], end[3]
    return calls


def without_addresses(calls):
    """What is another in each run; strace's names of addresses' families' protocols."""
    for call in calls:
        call[1] = [re.sub(r"^0x[0-9a-f]{6,}$", "ADDRESS", part) for part in call[1]]
        call[1] = ["0" if part == "IPPROTO_IP" else part for part in call[1]]
        call[2] = re.sub(r"^0x[0-9a-f]{6,}$", "ADDRESS", call[2] or "")
        if call[0] in ("getpid", "kill", "tgkill", "wait4", "clone"):
            call[1] = [re.sub(r"^\d{2,}$", "PID", part) for part in call[1]]
            call[2] = re.sub(r"^\d{2,}$", "PID", call[2])
        if call[0] == "ioctl":
            call[1] = call[1][:2]
    return [call for call in calls if call[0] not in OTHERWISE]


def test_texts_are_straces(graftrace, compile):
    """Argument by argument, result by result, of fifty calls."""
    program = compile("system_calls.c", "-O1", "-w")
    for which in ("ours", "theirs"):
        (graftrace.directory / which).mkdir()
    subprocess.run(["strace", "-s", "64", "-o", "strace.txt", program, "theirs"], check=True, timeout=PATIENCE,
                   cwd=graftrace.directory)
    record(graftrace, program, "ours")
    expected = calls_by_strace((graftrace.directory / "strace.txt").read_text(errors="replace"))
    shown = graftrace("show").stdout
    first = re.search(r"-(\d+) +\[.*: chdir\(", shown)[1]
    seen = calls_by_graftrace("\n".join(line for line in shown.splitlines() if f"-{first} " in line))
    expected, seen = without_addresses(expected), without_addresses(seen)
    expected[0][1] = seen[0][1]
    # glibc's flags say O_LARGEFILE nowhere, the kernel's result of F_GETFL does: in hexadecimal there.
    for call in expected:
        if call[0] == "fcntl" and call[1][1] == "F_GETFL":
            call[2] = str(int(call[2], 16))
    assert len(seen) > 50
    assert seen == expected


ARRAYS = r"""
#include <poll.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>
int main(void)
{
	int ends[2], all = epoll_create1(0);
	struct iovec words[5] = { { "two", 3 }, { " words", 6 } };

	pipe(ends);
	struct pollfd both[] = { { ends[1], POLLOUT }, { ends[0], POLLIN } };
	struct epoll_event event = { EPOLLOUT, { .fd = 9 } }, events[2];
	epoll_ctl(all, EPOLL_CTL_ADD, ends[1], &event);
	poll(both, 2, 0);
	writev(ends[1], words, 1);
	writev(ends[1], words, 5);
	poll(both, 1, 0);
	poll(both, 1ul << 32 | 2, 0); /* the kernel sees 2 */
	event.data.fd = 10;
	epoll_ctl(all, EPOLL_CTL_ADD, 1, &event);
	epoll_wait(all, events, 2, 0);
}
"""


def test_arrays_are_shown_as_such(graftrace, compile):
    """Their elements, as many as fit into 64 bytes; whether there are more, the call or its result says."""
    record(graftrace, compile(ARRAYS, "-O1", "-w"))
    shown = re.findall(r": ((?:writev|poll|epoll_wait)(?:\(| = ).*)", graftrace("show").stdout)
    assert re.sub(r"0x\w+", "ADDRESS", "\n".join(shown)).splitlines() == [
        "poll([{fd=5, events=POLLOUT}, {fd=4, events=POLLIN}], 2, 0)", "poll = 1 [{fd=5, revents=POLLOUT}]",
        "writev(5, [{iov_base=ADDRESS, iov_len=3}], 1)", "writev = 3",
        "writev(5, [{iov_base=ADDRESS, iov_len=3}, {iov_base=ADDRESS, iov_len=6}, {iov_base=ADDRESS, iov_len=0}, "
        "{iov_base=ADDRESS, iov_len=0}, ...], 5)", "writev = 9",
        "poll([{fd=5, events=POLLOUT}], 1, 0)", "poll = 1 [{fd=5, revents=POLLOUT}]",
        "poll([{fd=5, events=POLLOUT}, {fd=4, events=POLLIN}], 2, 0)",
        "poll = 2 [{fd=5, revents=POLLOUT}, {fd=4, revents=POLLIN}]",
        "epoll_wait(3, ADDRESS, 2, 0)",
        "epoll_wait = 2 [{events=EPOLLOUT, data={u32=9, u64=9}}, {events=EPOLLOUT, data={u32=10, u64=10}}]"]


def test_only_events_that_are_named_are_recorded(graftrace):
    graftrace("record", "-e", "syscalls:sys_enter_open*", "-e", "raw_syscalls:sys_exit", "--", "cat",
              "/etc/passwd")
    shown = graftrace("show").stdout
    names = set(re.findall(r"\d: (\w+)", shown))
    assert names == {"openat", "sys_exit"}
    assert re.search(r"sys_exit: NR 0 = [1-9]", shown)


def test_raw_events_have_all_arguments(graftrace):
    graftrace("record", "-e", "raw_syscalls", "--", "cat", "/etc/passwd")
    assert re.search(r"sys_enter: NR 262 \(3, \w+, \w+, 1000, \w+, \w+\)\n",
                     graftrace("show").stdout)


def test_trace_cmd_reads_the_calls(graftrace):
    """Events of programs go to trace.dat, with their formats: 728 of them at once."""
    graftrace("record", "-e", "syscalls", "-e", "raw_syscalls", "--", "cat", "/etc/passwd")
    graftrace("export", "--to", "trace.dat", "-o", "it.dat")
    read = subprocess.run(["trace-cmd", "report", "it.dat"], cwd=graftrace.directory, timeout=PATIENCE,
                          capture_output=True, text=True, check=True).stdout
    assert "UNKNOWN EVENT" not in read
    by_trace_cmd = [re.sub(r"0x0*(?=[0-9a-f])", "", text)
                    for text in re.findall(r": sys_enter_openat: +dfd: (.*), flags", read)]
    shown = graftrace("show", "--syscalls", "linux").stdout
    ours = [text.replace("0x", "") for text in re.findall(r": sys_openat\(dfd: (.*), flags", shown)]
    assert ours and by_trace_cmd == ours
    assert re.findall(r": sys_exit: +NR (\d+ = -?\d+)", read) == \
        re.findall(r": sys_exit: NR (\d+ = -?\d+)", shown)
    assert re.findall(r": sys_enter: +(NR .*)", read) == re.findall(r": sys_enter: (NR .*)", shown)


def test_their_files_are_there_once_they_are_named(start):  # noqa: F811
    mounted = start("-p", "nop")
    calls = mounted.path / "events/syscalls"
    assert not calls.exists()
    mounted.write("set_event", "syscalls:sys_enter_write\n")
    assert (calls / "sys_enter_write/enable").read_text() == "1\n"
    assert (calls / "sys_enter_read/enable").read_text() == "0\n"
    assert (calls / "enable").read_text() == "X\n"
    assert "((unsigned long)(REC->buf))" in (calls / "sys_enter_write/format").read_text()
    (calls / "sys_exit_write/enable").write_text("1")
    (calls / "sys_enter_write/filter").write_text("count == 5")
    # A call's end is recorded after the reader has what it wrote; that of the first, before the second.
    mounted.calls(1)
    mounted.calls(1)
    assert re.search(r": sys_write\(fd: 1, buf: 0x\w+, count: 5\)\n.*: sys_write -> 0x5\n",
                     mounted.read("trace"))
    assert "args[6]" in (mounted.path / "events/raw_syscalls/sys_enter/format").read_text()
    mounted.write("set_event", "\n")
    assert mounted.read("set_event") == "" and calls.exists()
    assert (calls / "sys_enter_write/enable").read_text() == "0\n"
    assert (calls / "sys_enter_write/filter").read_text() == "count == 5\n"
    (calls / "sys_enter_write/filter").write_text("0")
    (calls / "sys_enter_write/trigger").write_text("hist:keys=count\n")
    mounted.calls(1)
    assert re.search(r"^\{ count: +5 \} hitcount: +1$", (calls / "sys_enter_write/hist").read_text(), re.M)
    mounted.write("set_event", "*\n")  # which names none of them
    assert (calls / "sys_enter_read/enable").read_text() == "0\n"


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
    comings = 0
    for _ in range(8):
        with subprocess.Popen([program, "40", "4"], stdout=subprocess.PIPE, text=True) as running:
            while running.poll() is None:
                done = graftrace("record", "-e", "syscalls", "--for", "50ms", "-P", running.pid, "-o",
                                 "graftrace.data", code=None)
                comings += done.returncode == 0
            assert running.stdout.read() == "all as it should be\n"
            assert running.returncode == 42
        if comings > 1:
            return
    assert comings > 1  # how often there is time for it while one runs is the machine's chance


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
        out, _ = cat.communicate(b"hello\n", timeout=PATIENCE)
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
    plain = subprocess.run([program, kind], capture_output=True, text=True, timeout=PATIENCE, check=False)
    done = graftrace("record", "-e", "syscalls", "--", program, kind, code=plain.returncode)
    assert done.stdout == plain.stdout
    assert why in done.stderr
    assert ("untraced" in done.stderr) == bool(why)


@pytest.mark.parametrize("flags", [["-O1"], ["-O1", "-static"]])
@pytest.mark.parametrize("kind, why", [("asks", "asks where a system call is made"),
                                       ("few", "forbids")])
def test_filters_that_bare_instructions_set(graftrace, compile, kind, why, flags):
    """No function of the C library says that one comes: the stub before the call does."""
    program = compile("syscall_filters.c", *flags)
    done = graftrace("record", "-e", "syscalls", "--", program, kind)
    assert done.stdout == "done\n"
    assert why in done.stderr
