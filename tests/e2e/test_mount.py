# SPDX-License-Identifier: MIT
"""The control files as a directory: what cat, echo, open, read, write and poll do there is what they
do in /sys/kernel/tracing, and the mount comes and goes with its program."""

import contextlib
import errno
import os
import pathlib
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
from types import SimpleNamespace

import pytest

from conftest import PATIENCE, line_with, wait_until
from mounted import (PROGRAM, Mounted, function_names, has_opened, is_mounted, leaves,
                     refused)


@pytest.fixture(scope="module")
def program(compile):
    return compile(PROGRAM, "-O1", "-fpatchable-function-entry=5")


@pytest.fixture
def mounted(graftrace, program):
    one = Mounted(graftrace, program)
    yield one
    one.end_anyhow()


# The directory


def test_it_looks_like_tracefs(mounted):
    root = os.stat(mounted.path)
    assert stat.filemode(root.st_mode) == "drwx------"
    for name, mode in {"trace": "-rw-r-----", "trace_pipe": "-r--r-----",
                       "available_tracers": "-r--r-----", "tracing_on": "-rw-r-----",
                       "options": "drwxr-x---", "options/overwrite": "-rw-r-----"}.items():
        state = os.stat(mounted.path / name)
        assert stat.filemode(state.st_mode) == mode, name
        assert state.st_size == 0 and state.st_uid == os.getuid(), name


def test_every_file_that_is_listed_can_be_looked_at(mounted):
    seen = 0
    for above, folders, files in os.walk(mounted.path):
        for name in folders + files:
            path = os.path.join(above, name)
            assert stat.S_ISDIR(os.stat(path).st_mode) == (name in folders)
            seen += 1
    assert seen > 30


def test_names_are_listed_once(mounted):
    for above, folders, files in os.walk(mounted.path):
        assert len(set(folders + files)) == len(folders + files), above


@pytest.mark.parametrize("script,what", [
    ("echo 1 > nosuch", "Permission denied"),
    ("rm trace", "Operation not permitted"),
    ("mv trace trick", "Operation not permitted"),
    ("ln -s trace trick", "Operation not permitted"),
    ("mkdir options/mine", "Operation not permitted"),
    ("cat nosuch", "No such file or directory"),
    ("cat options", "Is a directory"),
    ("cat trace/x", "Not a directory"),
])
def test_what_tracefs_refuses_is_refused_in_its_words(mounted, script, what):
    assert what in mounted.sh(script, code=1)


# Reading and writing


def test_a_session_with_cat_and_echo(mounted):
    assert mounted.sh("cat current_tracer") == "nop\n"
    assert mounted.sh("echo function_graph > current_tracer && cat current_tracer") == (
        "function_graph\n")
    mounted.calls(2)
    assert function_names(mounted.sh("cat trace")) == ["middle", "leaf", "leaf", "other"]
    assert function_names(mounted.sh("cat trace")) == ["middle", "leaf", "leaf", "other"]
    mounted.sh("echo > trace")
    assert function_names(mounted.sh("cat trace")) == []


def test_grep_head_tee_cp_and_redirections_work(mounted, tmp_path):
    assert mounted.sh("grep -c . available_filter_functions") == "5\n"
    assert mounted.sh("head -c 3 available_tracers") == mounted.read("available_tracers")[:3]
    assert mounted.sh("echo leaf | tee set_ftrace_filter") == "leaf\n"
    assert mounted.sh("echo other >> set_ftrace_filter; sort set_ftrace_filter") == "leaf\nother\n"
    mounted.sh(f"cp set_ftrace_filter {tmp_path}/copy; echo > set_ftrace_filter")
    mounted.sh(f"cp {tmp_path}/copy set_ftrace_filter")
    assert mounted.sh("sort < set_ftrace_filter") == "leaf\nother\n"
    mounted.sh("> set_ftrace_filter")
    assert mounted.read("set_ftrace_filter") == "#### all functions enabled ####\n"


def test_what_copies_inside_the_kernel_gets_the_same_bytes(mounted, tmp_path):
    mounted.sh("echo function_graph > current_tracer")
    mounted.calls(500)
    mounted.sh("echo 0 > tracing_on")
    for name in ("trace", "available_tracers", "current_tracer", "set_ftrace_filter", "trace_options"):
        whole = (mounted.path / name).read_bytes()
        assert len(whole) > (10000 if name == "trace" else 0)
        assert subprocess.run(["busybox", "cat", mounted.path / name], capture_output=True, timeout=PATIENCE,
                              check=True).stdout == whole, name
        shutil.copyfile(mounted.path / name, tmp_path / "copy")  # asks for the size, then sendfile()
        assert (tmp_path / "copy").read_bytes() == whole, name
        assert os.stat(mounted.path / name).st_size == 0
        with open(mounted.path / name, "rb") as file:
            assert file.seek(0, os.SEEK_END) == 0
            assert file.seek(0) == 0 and file.read() == whole


def test_trace_pipe_can_be_spliced_and_comes_in_time(mounted):
    mounted.sh("echo function_graph > current_tracer")
    text, (out, into) = b"", os.pipe()
    file = os.open(mounted.path / "trace_pipe", os.O_RDONLY)
    try:
        for calls in (3, 700, 5):
            mounted.calls(calls)
            while leaves(text.decode()) < calls:
                assert os.splice(file, into, 65536) > 0
                text += os.read(out, 65536)
            assert leaves(text.decode()) == calls and text.endswith(b"\n") and b"\0" not in text
            text = b""
    finally:
        for descriptor in (file, out, into):
            os.close(descriptor)


OTHER, GROUP = 65534, 12345


def as_other(script, path, group=OTHER):
    return subprocess.run(["bash", "-c", script], cwd="/", user=OTHER, group=group, extra_groups=[], text=True,
                          capture_output=True, timeout=PATIENCE, env={**os.environ, "DIR": str(path)}).returncode


@pytest.fixture
def public(tmp_path_factory):
    """A directory that other users get to."""
    path = pathlib.Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def test_other_users_enter_as_owners_and_modes_say(graftrace, program, public):
    graftrace.directory = public
    one = Mounted(graftrace, program, "--allow-other", "-o", f"mode=0750,gid={GROUP}")
    try:
        assert stat.filemode(os.stat(one.path).st_mode) == "drwxr-x---"
        assert {os.stat(one.path / name).st_gid for name in (".", "trace", "options")} == {GROUP}
        assert as_other("cat $DIR/trace", one.path) == 1
        assert as_other("cat $DIR/trace && ls $DIR/options", one.path, GROUP) == 0
        assert as_other("echo 0 > $DIR/tracing_on", one.path, GROUP) == 1
        assert as_other("chmod 777 $DIR/tracing_on", one.path, GROUP) == 1
        one.sh("chmod 755 . && chmod o+r trace")
        assert as_other("cat $DIR/trace", one.path) == 0
        assert as_other("cat $DIR/available_tracers", one.path) == 1
        one.sh(f"chown {OTHER} tracing_on")
        assert as_other("echo 0 > $DIR/tracing_on && cat $DIR/tracing_on", one.path) == 0
        assert one.read("tracing_on") == "0\n"
        one.sh("mkdir instances/a && chmod 777 instances/a && rmdir instances/a && mkdir instances/a")
        assert stat.filemode(os.stat(one.path / "instances/a").st_mode) == "drwxr-x---"
    finally:
        one.end_anyhow()
        one.process.stdout.close()
        one.process.stderr.close()


def test_a_bad_value_is_EINVAL_and_changes_nothing(mounted):
    for name, value in [("current_tracer", "nosuch"), ("tracing_on", "x"),
                        ("max_graph_depth", "-1"), ("tracing_thresh", "1.5"),
                        ("trace_options", "nosuch"), ("options/overwrite", "2"),
                        ("trace_clock", "nosuch"), ("set_ftrace_filter", "nosuch")]:
        before = mounted.read(name)
        flags = os.O_APPEND if name == "set_ftrace_filter" else os.O_TRUNC
        assert refused(mounted.write, name, value + "\n", flags) == errno.EINVAL, name
        assert mounted.read(name) == before, name


def test_what_cannot_be_written_or_read_is_EINVAL_as_for_root_on_Linux(mounted):
    assert refused(mounted.write, "available_tracers", "x") == errno.EINVAL
    assert refused(mounted.write, "buffer_total_size_kb", "1") == errno.EINVAL


def test_a_write_takes_one_word_of_a_list(mounted):
    file = os.open(mounted.path / "set_ftrace_filter", os.O_WRONLY | os.O_TRUNC)
    assert os.write(file, b"leaf other\n") == 5
    assert os.write(file, b"other\n") == 6
    os.close(file)
    assert sorted(mounted.read("set_ftrace_filter").split()) == ["leaf", "other"]


def test_a_descriptor_that_is_copied_and_closed_goes_on(mounted):
    """As shells do it: the copy is closed before the first word is written."""
    mounted.sh("exec 3> set_ftrace_filter; echo leaf >&3; echo other >&3; exec 3>&-")
    assert sorted(mounted.read("set_ftrace_filter").split()) == ["leaf", "other"]


def test_a_list_has_changed_when_close_returns(mounted):
    for i in range(50):
        name = ("leaf", "other")[i % 2]
        mounted.write("set_ftrace_filter", name + "\n")
        assert mounted.read("set_ftrace_filter") == name + "\n"


def test_what_stands_in_front_of_a_refused_word_is_taken_as_on_Linux(mounted):
    assert "Invalid argument" in mounted.sh("echo leaf nosuch other > set_ftrace_filter", code=1)
    assert mounted.read("set_ftrace_filter") == "leaf\n"


def test_a_list_that_somebody_keeps_open_stops_nobody(mounted):
    kept = os.open(mounted.path / "set_ftrace_filter", os.O_WRONLY | os.O_APPEND)
    os.write(kept, b"leaf\n")
    mounted.write("current_tracer", "function_graph")
    mounted.write("set_ftrace_notrace", "middle")
    mounted.write("set_ftrace_filter", "other\n", os.O_APPEND)
    os.close(kept)
    assert sorted(mounted.read("set_ftrace_filter").split()) == ["leaf", "other"]


def test_reading_from_the_start_again_is_a_new_look(mounted):
    file = os.open(mounted.path / "tracing_on", os.O_RDONLY)
    assert os.read(file, 10) == b"1\n"
    assert os.read(file, 10) == b""
    mounted.write("tracing_on", "0")
    os.lseek(file, 0, os.SEEK_SET)
    assert os.read(file, 10) == b"0\n"
    assert os.pread(file, 10, 1) == b"\n"
    assert os.pread(file, 10, 100) == b""
    os.close(file)


def test_a_trace_is_the_same_in_pieces_of_any_size(mounted):
    mounted.write("current_tracer", "function_graph")
    mounted.calls(2000)
    mounted.write("tracing_on", "0")
    whole = mounted.read("trace")
    assert len(whole) > 50000
    file = os.open(mounted.path / "trace", os.O_RDONLY)
    pieces = []
    for size in [1, 10, 4095, 4097, 1 << 20] * 100:
        pieces.append(os.read(file, size))
        if not pieces[-1]:
            break
    os.close(file)
    assert b"".join(pieces).decode() == whole


# trace_pipe


def test_trace_pipe_without_blocking_is_EAGAIN_and_poll_wakes(mounted):
    mounted.write("current_tracer", "function_graph")
    pipe = os.open(mounted.path / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert refused(os.read, pipe, 100) == errno.EAGAIN
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    assert poll.poll(50) == []
    mounted.write("options/block", "1")
    assert poll.poll(0) == [(pipe, select.POLLIN)]
    mounted.write("options/block", "0")
    assert poll.poll(50) == []
    epoll = select.epoll()
    epoll.register(pipe, select.EPOLLIN)
    mounted.calls(1)
    assert poll.poll(PATIENCE * 1000) == [(pipe, select.POLLIN)]
    assert epoll.poll(PATIENCE) == [(pipe, select.EPOLLIN)]
    assert "middle" in os.read(pipe, 65536).decode()
    assert refused(os.lseek, pipe, 0, os.SEEK_SET) == errno.ESPIPE
    os.close(pipe)


def test_a_blocking_reader_waits_and_is_woken(mounted):
    mounted.write("current_tracer", "function_graph")
    reader = subprocess.Popen(["cat", mounted.path / "trace_pipe"], stdout=subprocess.PIPE,
                              text=True)
    wait_until(lambda: has_opened(reader, mounted.path / "trace_pipe"), "cat")
    mounted.calls(1)
    assert "middle" in reader.stdout.readline()
    reader.send_signal(signal.SIGINT)
    assert reader.wait(PATIENCE) == -signal.SIGINT


@pytest.mark.parametrize("cpu", ["cpu0", "cpu1"])
def test_clearing_holds_while_one_cpus_records_are_read(mounted, cpu):
    mounted.write("current_tracer", "function_graph")
    mounted.calls(5)
    raw = os.open(mounted.path / "per_cpu" / cpu / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
    mounted.write("trace", "")
    assert leaves(mounted.read("trace")) == 0
    mounted.calls(3)
    assert leaves(mounted.read("trace")) == 3
    os.close(raw)
    assert leaves(mounted.read("trace")) == 3
    mounted.write("trace", "")
    assert leaves(mounted.read("trace")) == 0


def test_a_second_reader_of_trace_pipe_is_EBUSY(mounted):
    first = os.open(mounted.path / "trace_pipe", os.O_RDONLY)
    assert refused(os.open, mounted.path / "trace_pipe", os.O_RDONLY) == errno.EBUSY
    assert refused(mounted.write, "current_tracer", "function") == errno.EBUSY
    os.close(first)
    os.close(os.open(mounted.path / "trace_pipe", os.O_RDONLY))


def test_a_reader_that_waits_holds_up_nobody(mounted):
    readers = []
    pipe = os.open(mounted.path / "trace_pipe", os.O_RDONLY)
    got = []
    reader = threading.Thread(target=lambda: got.append(os.read(pipe, 4096)))
    reader.start()
    for _ in range(100):
        assert mounted.read("tracing_on") == "1\n"
    mounted.write("current_tracer", "nop")
    assert got == [] and readers == []
    mounted.process.stdin.close()
    reader.join(PATIENCE)
    assert got == [b""]
    os.close(pipe)
    assert mounted.process.wait(PATIENCE) == 3


# The end


def test_the_program_ends_and_so_does_the_mount_with_its_exit_code(mounted):
    assert is_mounted(mounted.path)
    assert mounted.end() == 3
    assert list(mounted.path.iterdir()) == []


def test_what_follows_the_trace_gets_all_of_it_before_the_end(mounted):
    mounted.write("current_tracer", "function_graph")
    reader = subprocess.Popen(["cat", mounted.path / "trace_pipe"], stdout=subprocess.PIPE,
                              text=True)
    wait_until(lambda: has_opened(reader, mounted.path / "trace_pipe"), "cat")
    mounted.calls(1000)
    assert mounted.end() == 3
    text, _ = reader.communicate(timeout=PATIENCE)
    assert reader.returncode == 0
    assert function_names(text).count("leaf") == 1000


def test_a_program_that_crashes_takes_the_mount_along(mounted):
    mounted.process.stdin.write("crash\n")
    mounted.process.stdin.flush()
    assert mounted.process.wait(PATIENCE) == -signal.SIGABRT
    assert not is_mounted(mounted.path)


def test_a_program_that_is_killed_takes_the_mount_along(graftrace, compile, program):
    tid = []
    one = Mounted(graftrace, program, "-p", "function_graph")
    one.calls(1)
    tid = os.listdir(one.path / "per_thread")
    os.kill(int(tid[0]), signal.SIGKILL)
    assert one.process.wait(PATIENCE) == -signal.SIGKILL
    assert not is_mounted(one.path)


def test_SIGTERM_reaches_the_program(mounted):
    mounted.process.send_signal(signal.SIGTERM)
    assert mounted.process.wait(PATIENCE) == -signal.SIGTERM
    assert not is_mounted(mounted.path)


def test_an_open_file_does_not_keep_the_mount(mounted):
    file = os.open(mounted.path / "tracing_on", os.O_RDONLY)
    assert mounted.end() == 3
    assert refused(os.read, file, 1) == errno.ENOTCONN
    assert refused(os.close, file) == errno.ENOTCONN


def test_who_unmounts_leaves_the_program_alone(mounted):
    subprocess.run(["fusermount3", "-u", mounted.path], check=True, timeout=PATIENCE)
    mounted.calls(1)
    assert mounted.end() == 3


def test_a_mount_of_a_killed_graftrace_is_told_and_can_be_taken_away(graftrace, program):
    one = Mounted(graftrace, program)
    one.process.kill()
    one.process.wait(PATIENCE)
    told = graftrace("mount", one.path, "--", program, code=1).stderr
    assert "fusermount3 -u" in told
    subprocess.run(["fusermount3", "-u", one.path], check=True, timeout=PATIENCE)
    assert not is_mounted(one.path)


def test_in_the_background_the_directory_is_there_when_the_command_is_back(graftrace):
    mount = graftrace.directory / "tracing"
    mount.mkdir()
    script = 'read line; echo "input $?"; for i in $(seq 9000); do [ -e end ] && exit; sleep 0.01; done'
    with (graftrace.directory / "said").open("w") as said:
        code = subprocess.call(
            [graftrace.path, "mount", "--background", "-p", "function_graph", mount, "--", "sh", "-c", script],
            cwd=graftrace.directory, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=PATIENCE)
    assert code == 0
    assert (mount / "current_tracer").read_text() == "function_graph\n"
    (graftrace.directory / "end").touch()
    wait_until(lambda: not is_mounted(mount), "the end of the mount")
    assert (graftrace.directory / "said").read_text() == "input 1\n"


@pytest.mark.parametrize("words, code", [(["/nosuch", "--", "true"], 1), ([None, "--", "./nosuch"], 127)])
def test_what_cannot_begin_in_the_background_is_told_by_the_exit_code(graftrace, tmp_path, words, code):
    done = graftrace("mount", "--background", *(word or tmp_path for word in words), code=code)
    assert "nosuch" in done.stderr


def test_with_linger_the_trace_can_be_read_afterwards(graftrace, program):
    one = Mounted(graftrace, program, "--linger", "-p", "function_graph")
    one.calls(2)
    one.process.stdin.close()
    line_with(one.process.stderr, "the program has ended")
    assert function_names(one.read("trace")).count("leaf") == 2
    assert refused(one.write, "tracing_on", "0") == errno.ENODEV
    one.process.send_signal(signal.SIGINT)
    assert one.process.wait(PATIENCE) == 3
    assert not is_mounted(one.path)


# A process that runs


@pytest.fixture
def attached(graftrace, program):
    target = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert target.stdout.readline() == "ready\n"
    directory = graftrace.directory / "tracing"
    directory.mkdir()
    process = graftrace.start("mount", directory, "-P", str(target.pid))
    line_with(process.stderr, "until Ctrl-C")
    yield directory, process, target
    target.kill()
    target.communicate()
    process.communicate(timeout=PATIENCE)


def test_a_process_that_runs_is_mounted_and_left_as_it_was(attached):
    directory, process, target = attached
    (directory / "current_tracer").write_text("function_graph\n")
    Mounted.calls(SimpleNamespace(process=target), 2)
    assert function_names((directory / "trace").read_text()) == ["middle", "leaf", "leaf", "other"]
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    assert not is_mounted(directory)
    Mounted.calls(SimpleNamespace(process=target), 2)
    target.stdin.close()
    assert target.wait(PATIENCE) == 3
    target.stdin = None


def test_a_process_is_left_when_its_directory_is_unmounted(attached):
    directory, process, target = attached
    subprocess.run(["fusermount3", "-u", directory], check=True, timeout=PATIENCE)
    assert process.wait(PATIENCE) == 0
    Mounted.calls(SimpleNamespace(process=target), 1)


def test_the_mount_of_a_process_ends_with_it(attached):
    directory, process, target = attached
    target.kill()
    assert process.wait(PATIENCE) == 0
    assert not is_mounted(directory)


# A program that knows its own mount


def test_a_program_can_read_and_change_its_own_tracing(graftrace):
    directory = graftrace.directory / "tracing"
    directory.mkdir()
    done = graftrace("mount", directory, "-p", "function_graph", "--", "sh", "-c", """
        until [ -e tracing/trace ]; do :; done
        echo hello > tracing/trace_marker || exit 10
        # Where its threads could not be stopped in time it is not done: error_log says so.
        until [ "$(cat tracing/current_tracer)" = nop ]; do
            echo nop > tracing/current_tracer || exit 11
        done
        echo nosuch > tracing/current_tracer && exit 12
        exit 4""", code=4, timeout=PATIENCE)
    assert "write error: Invalid argument" in done.stderr or "I/O error" in done.stderr
    assert not is_mounted(directory)


USES_ITS_FILES = """\
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int use(const char *name, int flags, char *text, size_t bytes)
{
	int file = open(name, flags), got;

	if (file < 0 || (got = flags == O_RDONLY ? read(file, text, bytes) : write(file, text, bytes)) < 0)
		return fprintf(stderr, "%s: %s\\n", name, strerror(errno)), _exit(10), 0;
	if (close(file) != 0)
		return fprintf(stderr, "%s: close: %s\\n", name, strerror(errno)), _exit(11), 0;
	return got;
}

static void *pipe_reader(void *data)
{
	char text[4096];
	int file = open("tracing/trace_pipe", O_RDONLY);

	while (read(file, text, sizeof(text)) >= 0)
		;
	return fprintf(stderr, "trace_pipe: %s\\n", strerror(errno)), _exit(12), data;
}

static void *user(void *data)
{
	char on[2], tracer[64], hello[] = "hello";

	for (;;) {
		use("tracing/tracing_on", O_RDONLY, on, 1);
		use("tracing/trace_marker", O_WRONLY, hello, 5);
		use("tracing/tracing_on", O_WRONLY, on, 1);
		use("tracing/current_tracer", O_RDONLY, tracer, sizeof(tracer));
	}
	return data;
}

int main(void)
{
	pthread_t threads[4];
	int i;

	while (access("tracing/trace", F_OK) != 0)
		usleep(1000);
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, i ? user : pipe_reader, NULL);
	while (access("end", F_OK) != 0)
		usleep(1000);
	_exit(4);
}
"""


@contextlib.contextmanager
def on_its_own_mount(graftrace, program):
    """The mount of a program that uses it until there is a file `end`, and ends with 4."""
    directory = graftrace.directory / "tracing"
    directory.mkdir()
    process = graftrace.start("mount", directory, "-p", "function_graph", "--", program)
    try:
        wait_until((directory / "trace").exists, "the mount")
        yield directory
    finally:
        (graftrace.directory / "end").touch()
    assert process.wait(PATIENCE) == 4, process.stderr.read()


def change_filter(directory, times, names):
    for turn in range(times):
        wanted = names[turn % len(names)] + "\n"
        (directory / "set_ftrace_filter").write_text(wanted)
        assert (directory / "set_ftrace_filter").read_text() == wanted
    assert (directory / "error_log").read_text() == ""


def test_a_program_that_uses_its_files_holds_up_nobodys_change(graftrace, compile):
    with on_its_own_mount(graftrace, compile(USES_ITS_FILES, "-O1", "-pthread")) as directory:
        change_filter(directory, 20, ["use", "user", "pipe_reader"])


LOOKS_UP_ITS_FILES = """\
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void fail(const char *name)
{
	fprintf(stderr, "%s: %s\\n", name, strerror(errno));
	_exit(10);
}

static void look(const char *name)
{
	struct stat state;

	if (stat(name, &state) != 0)
		fail(name);
}

static void list(const char *name)
{
	DIR *folder = opendir(name);

	if (folder == NULL)
		fail(name);
	do
		errno = 0;
	while (readdir(folder) != NULL);
	if (errno != 0)
		fail(name);
	closedir(folder);
}

static void use(int k)
{
	char own[64];

	snprintf(own, sizeof(own), "tracing/per_thread/%d/trace_pipe", (int)getpid());
	if (k == 0 || k == 3)
		look("tracing/events/enable");
	if (k == 1 || k == 3)
		look(own);
	if (k == 2 || k == 3)
		look("tracing/instances/x/trace");
}

static void ready(void)
{
	look("begin");
}

static void *user(void *data)
{
	for (;;) {
		use((int)(long)data);
		if ((long)data == 3) {
			list("tracing/events");
			list("tracing/per_thread");
			list("tracing/instances/x");
		}
	}
	return data;
}

int main(void)
{
	pthread_t threads[4];
	long i;

	while (access("begin", F_OK) != 0)
		usleep(1000);
	look("begin"); /* from here on per_thread has this thread */
	while (access("tracing/instances/x", F_OK) != 0)
		usleep(1000);
	use(3);
	ready();
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, user, (void *)i);
	while (access("end", F_OK) != 0)
		usleep(1000);
	_exit(4);
}
"""


def test_a_program_that_looks_up_its_files_holds_up_nobodys_change(graftrace, compile):
    program = compile(LOOKS_UP_ITS_FILES, "-O1", "-pthread", "-fno-inline")
    with on_its_own_mount(graftrace, program) as directory:
        (directory / "instances" / "x").mkdir()
        (graftrace.directory / "begin").touch()
        wait_until(lambda: "ready()" in (directory / "trace").read_text(), "the first look-ups")
        change_filter(directory, 50, ["look", "use", "list"])


# Each child waits for graftrace before it executes the program; its parent, meanwhile, cannot be stopped.
EXECUTES_CHILDREN = """\
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>

static int work(volatile int value)
{
	return value + 1;
}

int main(int argc, char **argv)
{
	int ended;

	if (argc > 1)
		return work(2);
	while (access("end", F_OK) != 0) {
		if (vfork() == 0) {
			execl("/proc/self/exe", argv[0], "child", NULL);
			_exit(1);
		}
		if (wait(&ended) < 0 || WEXITSTATUS(ended) != 3)
			return 1;
	}
	return 4;
}
"""


def test_a_program_that_executes_children_all_the_time_holds_up_nobodys_change(graftrace, compile):
    with on_its_own_mount(graftrace, compile(EXECUTES_CHILDREN, "-O1", "-fno-inline", "-static")) as directory:
        change_filter(directory, 100, ["work", "main"])


# A recording


@pytest.fixture
def recording(graftrace, program):
    graftrace("record", "-o", "calls.data", program, stdin="3\n", code=3)
    directory = graftrace.directory / "tracing"
    directory.mkdir()
    process = graftrace.start("mount", directory, "calls.data")
    wait_until((directory / "trace").exists, "the mount")
    yield directory, process
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)


def test_a_recording_is_mounted_until_ctrl_c(recording):
    directory, process = recording
    assert (directory / "current_tracer").read_text() == "function_graph\n"
    names = function_names((directory / "trace").read_text())
    assert names == ["main", "middle", "leaf", "leaf", "leaf", "other"]
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    assert not is_mounted(directory)


def test_a_recording_cannot_be_changed(recording):
    directory, process = recording
    assert refused(os.open, directory / "current_tracer", os.O_WRONLY) == errno.EROFS
    assert not (directory / "options" / "overwrite").exists()
    (directory / "tracing_on").write_text("0")
    assert refused((directory / "tracing_on").write_text, "1") == errno.EPERM
    whole = (directory / "trace").read_text()
    (directory / "trace").write_text("")
    assert (directory / "trace").read_text() == whole
    (directory / "options" / "funcgraph-cpu").write_text("0")
    assert "CPU" not in (directory / "trace").read_text()


def test_the_mount_of_a_recording_ends_when_it_is_unmounted(recording):
    directory, process = recording
    subprocess.run(["fusermount3", "-u", directory], check=True, timeout=PATIENCE)
    assert process.wait(PATIENCE) == 0


# The command line


def test_mistakes_on_the_command_line(graftrace, program):
    for options in (["-o", "mode=750"], ["--allow-other", "-o", "mode=8"], ["--allow-other", "-o", "gid=no-such"],
                    ["--allow-other", "-o", "ro"]):
        assert "-o" in graftrace("mount", ".", *options, "--", program, code=2).stderr
    assert "directory to mount on is missing" in graftrace("mount", code=2).stderr
    assert "is missing" in graftrace("mount", "x", code=2).stderr
    assert "either" in graftrace("mount", "x", "y", "--", program, code=2).stderr
    assert "no tracer 'bad'" in graftrace("mount", "x", "-p", "bad", "--", program, code=2).stderr
    assert "No such file" in graftrace("mount", "x", "--", program, code=1).stderr
    (graftrace.directory / "plain").write_text("")
    assert "not a directory" in graftrace("mount", "plain", "--", program, code=1).stderr
    (graftrace.directory / "x").mkdir()
    assert "cannot run 'nosuch'" in graftrace("mount", "x", "--", "nosuch", code=127).stderr
    assert not is_mounted(graftrace.directory / "x")
