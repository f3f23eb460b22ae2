# SPDX-License-Identifier: MIT
"""graftrace record: the program's life is its own, and what is said about the recording is true."""

import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import time

import pytest

from behaviour import fixed_addresses
from conftest import PATIENCE

PROGRAM = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) int leaf(int x)
{
	__asm__ volatile("");
	return x + 1;
}

__attribute__((noinline)) int middle(int count)
{
	int sum = 0;
	for (int i = 0; i < count; i++)
		sum += leaf(i);
	return sum;
}

__attribute__((noinline)) void slow(int ms)
{
	usleep(ms * 1000);
	__asm__ volatile("");
}

static void on_signal(int number)
{
	(void)number;
	_exit(5);
}

/* Each argument is something to do, in order. */
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *word = argv[i], *value = strchr(word, '=');
		int number = value ? atoi(value + 1) : 0;
		if (!strncmp(word, "exit", 4))
			return number;
		else if (!strncmp(word, "kill", 4))
			kill(getpid(), number);
		else if (!strncmp(word, "crash", 5))
			*(volatile int *)0 = 0;
		else if (!strncmp(word, "calls", 5))
			printf("%d\n", middle(number));
		else if (!strncmp(word, "slow", 4))
			slow(value ? number : 20);
		else if (!strncmp(word, "handle", 6))
			signal(number, on_signal);
		else if (!strncmp(word, "sleep", 5)) {
			printf("ready\n");
			fflush(stdout);
			sleep(number);
		} else if (!strncmp(word, "echo", 4)) {
			char bytes[4096];
			ssize_t got;
			while ((got = read(0, bytes, sizeof bytes)) > 0)
				if (write(1, bytes, got) != got)
					return 99;
			fprintf(stderr, "to stderr\n");
		} else {
			printf("%s\n", word);
		}
	}
	return 0;
}
"""

LAST_LINE = re.compile(
    r"^graftrace: ([\d,]+) calls?, ([\d,]+) threads?, (\d+\.\d{3}) s, ([\d,]+) lost, "
    r"(\S+) \((\d+(?:\.\d)? (?:bytes|kB|MB|GB))\)$")


@pytest.fixture(scope="module")
def program(compile):
    return compile(PROGRAM, "-O2", "-fpatchable-function-entry=5")


def last_line(done):
    found = LAST_LINE.match(done.stderr.splitlines()[-1])
    assert found, done.stderr
    return found


def calls(done):
    return int(last_line(done)[1].replace(",", ""))


def end_soon(process, code):
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    assert process.returncode == code, err
    return out, err


# The end

@pytest.mark.parametrize("code", [0, 1, 2, 77, 126, 127, 255])
def test_the_exit_code_is_the_programs(graftrace, program, code):
    done = graftrace("record", program, f"exit={code}", code=code)
    last_line(done)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1,
                                    signal.SIGINT, signal.SIGABRT, signal.SIGPIPE])
def test_a_signal_that_kills_the_program_kills_graftrace_too(graftrace, program, number):
    done = graftrace("record", program, "calls=10", f"kill={int(number)}", code=-number)
    assert calls(done) == 12


def test_a_crash_is_passed_on_without_a_core_of_graftraces_own(graftrace, program):
    old = resource.getrlimit(resource.RLIMIT_CORE)
    done = graftrace("record", program, "calls=10", "crash", code=-signal.SIGSEGV)
    assert calls(done) == 12
    assert not [name for name in os.listdir(graftrace.directory)
                if name.startswith("core") and "graftrace" in name]
    assert resource.getrlimit(resource.RLIMIT_CORE) == old


def test_a_command_that_is_not_there_is_127(graftrace):
    for name in ("/no/such/program", "no-such-program-at-all", ""):
        done = graftrace("record", name, code=127)
        assert "cannot run" in done.stderr
        assert "No such file" in done.stderr
    assert os.listdir(graftrace.directory) == []


def test_what_cannot_be_run_is_126(graftrace):
    text = graftrace.directory / "text"
    text.write_text("not a program\n")
    for name in (text, graftrace.directory, "/dev/null"):
        done = graftrace("record", name, code=126)
        assert str(name) in done.stderr
    assert os.listdir(graftrace.directory) == ["text"]


def test_an_interpreter_that_is_not_there_leaves_no_recording(graftrace):
    script = graftrace.directory / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    done = graftrace("record", script, code=127)
    assert str(script) in done.stderr
    assert os.listdir(graftrace.directory) == ["script"]


@pytest.mark.parametrize("command", [["record"], ["profile"], ["mount", "tracing", "--"]])
def test_what_exec_refuses_is_126_in_every_command(graftrace, command):
    script = graftrace.directory / "script"
    script.write_text("#!/\n")  # a directory is no interpreter
    script.chmod(0o755)
    (graftrace.directory / "tracing").mkdir()
    done = graftrace(*command, script, code=126)
    assert f"cannot run '{script}': Permission denied" in done.stderr


def test_a_text_without_interpreter_is_the_shells_as_with_execvp(graftrace):
    script = graftrace.directory / "script"
    script.write_text("echo $0 $1; exit 9\n")
    script.chmod(0o755)
    done = graftrace("record", "./script", "word", code=9)
    assert done.stdout == "./script word\n"


def test_a_failed_start_leaves_the_older_recording(graftrace, program):
    graftrace("record", program)
    data = (graftrace.directory / "graftrace.data").read_bytes()
    (graftrace.directory / "script").write_text("#!/no/such/interpreter\n")
    (graftrace.directory / "script").chmod(0o755)
    graftrace("record", "./script", code=127)
    assert (graftrace.directory / "graftrace.data").read_bytes() == data


# Input, output, terminal

def test_stdin_stdout_and_stderr_are_the_programs(graftrace, program):
    sent = bytes(range(256)) * 1000
    done = subprocess.run([graftrace.path, "record", program, "echo"], input=sent,
                          capture_output=True, cwd=graftrace.directory, timeout=PATIENCE)
    assert done.returncode == 0
    assert done.stdout == sent
    # said first where the kernel does not tell of context switches
    lines = [line for line in done.stderr.decode().splitlines()
             if not line.startswith("graftrace: times off the CPU are not recorded: ")]
    assert lines[0] == "to stderr"
    assert len(lines) == 2 and LAST_LINE.match(lines[1])


@pytest.mark.parametrize("handled", [True, False])
def test_ctrl_c_reaches_the_program_and_the_recording_is_whole(graftrace, program, handled):
    master, slave = pty.openpty()
    process = graftrace.start(
        "record", program, *([f"handle={int(signal.SIGINT)}"] if handled else []), "calls=10",
        "sleep=20", stdin=slave, start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
    os.close(slave)
    assert process.stdout.readline() == "55\n"
    assert process.stdout.readline() == "ready\n"
    os.write(master, b"\x03")
    _, err = end_soon(process, 5 if handled else -signal.SIGINT)
    os.close(master)
    assert LAST_LINE.match(err.splitlines()[-1]), err
    shown = graftrace("show").stdout
    assert shown.count("leaf();") == 10


def test_sigterm_is_passed_on(graftrace, program):
    process = graftrace.start("record", program, f"handle={int(signal.SIGTERM)}", "sleep=20")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    _, err = end_soon(process, 5)
    assert LAST_LINE.match(err.splitlines()[-1]), err


def test_the_program_does_not_inherit_descriptors_or_signal_dispositions(graftrace):
    inside = ("import os, signal, sys;"
              "names = [n for n in os.listdir('/proc/self/fd') if int(n) > 2];"
              "left = [n for n in names if os.path.exists('/proc/self/fd/' + n)];"
              "print(left, signal.getsignal(signal.SIGQUIT) == signal.SIG_DFL,"
              "      sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))")
    done = graftrace("record", "--serve=127.0.0.1:0", "/usr/bin/python3", "-c", inside)
    plain = subprocess.run(["/usr/bin/python3", "-c", inside], capture_output=True, text=True,
                           timeout=PATIENCE)
    assert done.stdout == plain.stdout


# Arguments

@pytest.mark.parametrize("words, said", [
    ([], "missing"),
    (["-p", "irqsoff"], "no tracer 'irqsoff'"),
    (["--threshold", "fast"], "'fast'"),
    (["--threshold", "10parsecs"], "'10parsecs'"),
    (["--max-graph-depth", "-1"], "'-1'"),
    (["-b", "0"], "'0'"),
    (["-b", "64X"], "'64X'"),
    (["--compress=20"], "'20'"),
    (["--serve=nowhere:port"], "nowhere:port"),
    (["--linger"], "--serve"),
    (["--serve", "--linger=soon"], "'soon'"),
    (["--no-such"], "no-such"),
    (['-o'], "'o'"),
    (["--", ], "missing"),
])
def test_a_wrong_command_line_is_2_and_runs_nothing(graftrace, words, said):
    program = [] if not words or words[-1] in ("--", "-o") else ["touch", "ran"]
    done = graftrace("record", *words, *program, code=2)
    assert said in done.stderr
    assert "--help" in done.stderr
    assert os.listdir(graftrace.directory) == []


def test_options_end_at_the_program(graftrace, program):
    done = graftrace("record", program, "-l", "--no-such", "-o")
    assert done.stdout == "-l\n--no-such\n-o\n"
    done = graftrace("record", "--", program, "--help")
    assert done.stdout == "--help\n"


def test_the_file_goes_where_it_is_wanted_and_an_older_one_is_kept(graftrace, program):
    done = graftrace("record", "-o", "one.data", program, "calls=3")
    assert last_line(done)[5] == "one.data"
    first = (graftrace.directory / "one.data").read_bytes()
    graftrace("record", "--output=one.data", program, "calls=3")
    assert (graftrace.directory / "one.data.old").read_bytes() == first
    assert sorted(os.listdir(graftrace.directory)) == ["one.data", "one.data.old"]


def test_a_file_that_cannot_be_made_ends_it_before_the_program_runs(graftrace):
    done = graftrace("record", "-o", "no/such/directory/x", "touch", "ran", code=1)
    assert "no/such/directory/x" in done.stderr
    assert os.listdir(graftrace.directory) == []


def test_an_address_in_use_ends_it_before_the_program_runs(graftrace):
    import socket
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = graftrace("record", f"--serve=127.0.0.1:{port}", "touch", "ran", code=1)
    assert "in use" in done.stderr
    assert os.listdir(graftrace.directory) == []


def test_a_device_as_the_file_stays_a_device(graftrace, program):
    before = os.stat("/dev/null")
    graftrace("record", "-o", "/dev/null", program, "calls=10")
    script = graftrace.directory / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    graftrace("record", "-o", "/dev/null", "./script", code=127)
    after = os.stat("/dev/null")
    assert (before.st_ino, before.st_mode, before.st_rdev) == \
        (after.st_ino, after.st_mode, after.st_rdev)


def test_a_full_disk_is_said_before_the_program_runs(graftrace):
    done = graftrace("record", "-o", "/dev/full", "touch", "ran", code=1)
    assert "No space left" in done.stderr
    assert os.listdir(graftrace.directory) == []


def test_a_disk_that_fills_up_is_said_and_the_program_goes_on(graftrace, program):
    # The ring holds all 32 MB: a writer that waited too long for room would not record them.
    process = graftrace.start("record", "--no-compress", "-b", "64M", program, "sleep=0", "echo",
                              "calls=2000000", "exit=7", stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (24 << 20, 24 << 20))
    out, err = end_soon(process, 7)
    assert out.strip() == str(sum(range(1, 2000001)) % 2**32 - 2**32 * (
        sum(range(1, 2000001)) % 2**32 >= 2**31))
    assert "File too large" in err
    assert "no recording" in err.splitlines()[-1] or "graftrace.data" in err


# What is recorded

def test_every_call_is_counted(graftrace, program):
    assert calls(graftrace("record", program, "calls=1000")) == 1002
    assert calls(graftrace("record", "-p", "function", program, "calls=1000")) == 1002
    assert calls(graftrace("record", "-p", "nop", program, "calls=1000")) == 0


def test_filters_choose_functions(graftrace, program):
    assert calls(graftrace("record", "-l", "leaf", program, "calls=50")) == 50
    assert calls(graftrace("record", "-l", "le?f", "-l", "mid*", program, "calls=50")) == 51
    assert calls(graftrace("record", "-n", "leaf", program, "calls=50")) == 2
    assert calls(graftrace("record", "-g", "middle", program, "calls=50")) == 51
    assert calls(graftrace("record", "--max-graph-depth", "2", program, "calls=50")) == 2


def test_graph_notrace_leaves_out_what_is_below(graftrace, program):
    assert calls(graftrace("record", "-N", "middle", program, "calls=50")) == 1
    assert calls(graftrace("record", "-N", "leaf", "--libs", program, "calls=50")) < 1000000
    shown = graftrace("show").stdout
    assert "middle()" in shown and "leaf" not in shown
    assert calls(graftrace("record", "-p", "function", "-N", "middle", program, "calls=50")) == 52


def test_a_threshold_leaves_the_long_calls(graftrace, program):
    # a call that takes no time takes some when its thread loses the CPU
    graftrace("record", "--threshold", "200ms", program, "calls=50", "slow=400")
    shown = graftrace("show").stdout
    assert "slow" in shown and "main" in shown
    assert "leaf" not in shown and "middle" not in shown


def test_the_newest_are_kept_with_overwrite(graftrace, program):
    done = graftrace("record", "--overwrite", "-b", "256k", program, "calls=1000000", "slow")
    assert "overwritten by newer ones" in done.stderr
    line = LAST_LINE.match(done.stderr.splitlines()[-2])
    assert line, done.stderr
    lost = int(line[4].replace(",", ""))
    assert lost > 0
    shown = graftrace("show").stdout
    assert "slow" in shown


def test_a_full_ring_is_said_with_what_to_do(graftrace, program):
    done = graftrace("record", "--serve=127.0.0.1:0", "-b", "256k", program, "calls=1000000")
    assert "lost because the ring was full" in done.stderr
    assert "--buffer-size" in done.stderr
    assert "leaf();" in graftrace("show").stdout


def test_a_program_that_nobody_prepared_is_recorded_like_any_other(graftrace, compile):
    plain = compile(PROGRAM, "-O2")
    done = graftrace("record", plain, "calls=10", "exit=3", code=3)
    assert done.stdout == "55\n"
    assert calls(done) == 10 + 2
    assert "leaf" in graftrace("show").stdout


def test_in_a_prepared_program_only_prepared_functions_are_recorded_unless_asked_for(
        graftrace, compile):
    mixed = PROGRAM.replace("int main(", "__attribute__((patchable_function_entry(0, 0))) int main(")
    program = compile(mixed, "-O2", "-fpatchable-function-entry=5")
    assert calls(graftrace("record", program, "calls=10")) == 10 + 1
    assert calls(graftrace("record", "--unprepared", program, "calls=10")) == 10 + 2


def test_a_program_of_which_nothing_can_be_traced_runs_and_it_is_said(graftrace, compile):
    source = PROGRAM + '__asm__(".section .gopclntab, \\"a\\"; .quad 1; .text");\n'
    done = graftrace("record", compile(source, "-O2"), "calls=10", "exit=3", code=3)
    assert "no function of" in done.stderr and "graftrace functions" in done.stderr
    assert done.stdout == "55\n"
    assert calls(done) == 0


def test_a_build_with_memory_sanitizer_runs_untraced_and_it_is_said(graftrace, compile):
    program = compile(PROGRAM, "-O1", "-fsanitize=memory", compiler="clang")
    with fixed_addresses():
        done = graftrace("record", program, "calls=10", "exit=3", code=3)
    assert done.stdout == "55\n"
    assert "MemorySanitizer" in done.stderr and "untraced" in done.stderr


def test_valgrind_runs_untraced_and_it_is_said(graftrace, tmp_path):
    launcher = tmp_path / "valgrind"
    shutil.copy("/bin/true", launcher)
    done = graftrace("record", launcher)
    assert "Valgrind" in done.stderr and "untraced" in done.stderr


@pytest.mark.parametrize("flags", [[], ["-no-pie", "-fno-pie"], ["-fcf-protection=full"],
                                   ["-fpatchable-function-entry=5"], ["-Wl,-z,now"], ["-Wl,-z,lazy"]],
                         ids=" ".join)
def test_calls_across_libraries_are_recorded_with_libcall(flags, graftrace, compile):
    program = compile(PROGRAM, "-O2", *flags)
    words = [program, "calls=10", "slow", "calls=20", "exit=4"]
    before = calls(graftrace("record", *words, code=4))
    done = graftrace("record", "--libcall", *words, code=4)
    assert done.stdout == "55\n210\n"
    text = graftrace("show").stdout
    assert "usleep@plt();" in text and len(re.findall(r"printf@plt|__printf_chk@plt", text)) == 2
    assert calls(done) > before
    # Named as what they lead to, by filters.
    graftrace("record", "--libcall", "-l", "usleep", *words, code=4)
    assert len(re.findall(r"\w+(@plt)?\(\)", graftrace("show").stdout)) == 1


def test_libraries_of_the_system_are_recorded_by_name(graftrace, compile):
    program = compile(PROGRAM, "-O2")
    graftrace("record", "--lib", "libc", program, "calls=10")
    report = graftrace("report", "--by", "object").stdout
    assert "libc.so" in report and program.name in report
    graftrace("record", "--lib", "libm.so*", program, "calls=10")
    assert "libc.so" not in graftrace("report", "--by", "object").stdout


def test_globs_that_match_nothing_are_named(graftrace, program):
    done = graftrace("record", "-l", "nosuch*", "-n", "neither", program, "calls=10")
    assert "'nosuch*'" in done.stderr and "'neither'" in done.stderr
    assert done.stdout == "55\n"


def test_a_script_and_what_it_runs_are_followed(graftrace, program):
    script = graftrace.directory / "script"
    script.write_text(f"#!/bin/sh\n'{program}' calls=20 && exec '{program}' calls=30 exit=4\n")
    script.chmod(0o755)
    done = graftrace("record", "-l", "leaf", "-l", "middle", "./script", code=4)
    assert done.stdout == "190\n465\n".replace("190", "210")
    assert calls(done) == 20 + 30 + 2


def test_no_fork_leaves_children_alone(graftrace, program):
    script = graftrace.directory / "script"
    script.write_text(f"#!/bin/sh\n'{program}' calls=20\n'{program}' calls=30\nexit 0\n")
    script.chmod(0o755)
    done = graftrace("record", "--no-fork", "./script")
    assert calls(done) > 0
    shown = graftrace("show").stdout
    assert "leaf();" not in shown and "middle()" not in shown


def test_the_recording_is_readable_afterwards(graftrace, program):
    for options in ([], ["--no-compress"], ["--compress"], ["--compress=9"], ["--serve=127.0.0.1:0"],
                    ["--overwrite"]):
        graftrace("record", *options, program, "calls=100")
        assert graftrace("show").stdout.count("leaf();") == 100
        rows = graftrace("report", "--format", "csv").stdout
        assert re.search(r"\bleaf\b.*\b100\b", rows), rows


def test_a_killed_graftrace_leaves_the_program_running(graftrace, program):
    process = graftrace.start("record", program, "calls=10", "sleep=0", "echo", "calls=20", "exit=0",
                              stdin=subprocess.PIPE)
    assert process.stdout.readline() == "55\n"
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(timeout=PATIENCE) == -signal.SIGKILL
    process.stdin.write("word\n")
    process.stdin.flush()
    assert process.stdout.readline() == "word\n"
    out, _ = process.communicate(timeout=PATIENCE)  # until the program closes its end
    assert out == "210\n"


def test_options_are_writes_to_control_files_and_refused_as_those(graftrace):
    for options, said in ((("-p", "nosuch"), "there is no tracer 'nosuch'"),
                          (("-l", "5"), "available_filter_functions"),
                          (("-l", "main:traceoff"), "graftrace set"),
                          (("-l", "main:nosuch"), "no such command here: 'nosuch'"),
                          (("-n", "x:mod:libc.so.6"), "--lib"),
                          (("-l", "!main"), "'main' was not named before"),
                          (("--max-graph-depth", "-1"), "'-1' is not a number"),
                          (("-b", "0"), "'0' is not a size")):
        for command in (("record", "-o", "x.data"), ("mount", "x")):
            done = graftrace(*command, *options, "--", "true", code=None)
            assert done.returncode in (1, 2) and said in done.stderr, (command, options)


def test_what_options_say_stands_in_the_control_files(graftrace, compile):
    from mounted import PROGRAM, Mounted
    program = compile(PROGRAM, "-O1", "-pthread", "-fpatchable-function-entry=5")
    mounted = Mounted(graftrace, program, "-p", "function_graph", "-l", "leaf", "-l", "m*", "-l",
                      "other", "-l", "!other", "-n", "main", "-g", "middle", "-N", "other",
                      "--max-graph-depth", "7", "--threshold", "1.5ms", "-b", "8M", "--overwrite",
                      "--no-fork")
    for file, text in (("current_tracer", "function_graph\n"),
                       ("set_ftrace_filter", "leaf\nmiddle\nmain\n"),
                       ("set_ftrace_notrace", "main\n"), ("set_graph_function", "middle\n"),
                       ("set_graph_notrace", "other\n"), ("max_graph_depth", "7\n"),
                       ("tracing_thresh", "1500\n"), ("buffer_size_kb", "8192\n"),
                       ("options/overwrite", "1\n"), ("options/function-fork", "0\n")):
        assert mounted.read(file) == text, file
    mounted.end_anyhow()


NAMED = """
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
void __attribute__((noinline)) work(void) { usleep(1000); }
static void *named(void *name)
{
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < ROUNDS; i++)
        work();
    return NULL;
}
int main(void)
{
    pthread_t one, other;
    pthread_create(&one, NULL, named, "db-worker");
    pthread_create(&other, NULL, named, "a-front-end-one");
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return 0;
}
"""


@pytest.mark.parametrize("rounds", [2, 400])
@pytest.mark.parametrize("how", [[], ["--overwrite"], ["--no-switch-events"]])
def test_threads_have_the_names_that_they_gave_themselves(graftrace, compile, how, rounds):
    """The first call of each comes before its name; it may end at once."""
    graftrace("record", *how, compile(NAMED, "-O1", "-pthread", f"-DROUNDS={rounds}"))
    rows = json.loads(graftrace("report", "--by", "thread", "--format", "json").stdout)["rows"]
    assert {row["thread"].rpartition("-")[0] for row in rows} >= {"a-front-end-one", "db-worker"}
    calls = graftrace("export", "--to", "csv", "-q", "-o", "-").stdout
    assert calls.count(",db-worker,") >= rounds and calls.count(",a-front-end-one,") >= rounds


@pytest.mark.parametrize("rounds", [2, 400])
def test_a_name_of_two_lines_is_the_whole_name(graftrace, compile, rounds):
    """However soon it ends, and where the system is asked for the name."""
    graftrace("record", compile(NAMED.replace("db-worker", r"two\nlines\n"), "-O1", "-pthread", f"-DROUNDS={rounds}"))
    rows = json.loads(graftrace("report", "--by", "thread", "--format", "json").stdout)["rows"]
    assert "two\nlines\n" in {row["thread"].rpartition("-")[0] for row in rows}
