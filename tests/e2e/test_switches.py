# SPDX-License-Identifier: MIT
"""Times off the CPU: what a recording has of its threads' context switches, against the kernel's own
counts (getrusage) and the times that the program slept."""

import bisect
import csv
import io
import os
import re
import subprocess
from pathlib import Path

import pytest

import format_reader
from conftest import PATIENCE
from served import Served, port_of, serving

CALLED = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#define CALLED __attribute__((noinline))

static inline __attribute__((always_inline)) double cpu(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}
CALLED void spins(double ms)
{
	double end = cpu() + ms;
	while (cpu() < end)
		;
}
"""

COUNTED = CALLED + r"""
/* Called at a moment at which the counts are known: no switch came between the two looks. How many
   times it was called until that was so is added up. */
CALLED void mark(void) { __asm__ volatile(""); }
static struct rusage at_mark(int *marks)
{
	struct rusage before, after;
	do {
		++*marks;
		getrusage(RUSAGE_THREAD, &before);
		mark();
		getrusage(RUSAGE_THREAD, &after);
	} while (before.ru_nvcsw != after.ru_nvcsw || before.ru_nivcsw != after.ru_nivcsw);
	return after;
}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn;
CALLED void takes_turn(int mine)
{
	pthread_mutex_lock(&lock);
	while (turn != mine)
		pthread_cond_wait(&turned, &lock);
	turn = !mine;
	pthread_cond_signal(&turned);
	pthread_mutex_unlock(&lock);
}
static void *work(void *number)
{
	struct rusage from, to;
	int mine = number != NULL, first = 0, last;
	from = at_mark(&first);
	last = first;
	for (int i = 0; i < 300; i++)
		takes_turn(mine);
	spins(60);
	to = at_mark(&last);
	printf("%d %ld %ld %d %d\n", (int)gettid(), to.ru_nvcsw - from.ru_nvcsw,
	       to.ru_nivcsw - from.ru_nivcsw, first, last);
	return NULL;
}
int main(void)
{
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, i ? "" : NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""

SLEEPS = CALLED + r"""
CALLED void naps(void)
{
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	__asm__ volatile("");
}
CALLED void outer(void)
{
	naps();
	spins(5);
	__asm__ volatile("");
}
int main(void)
{
	double used = cpu();
	for (int i = 0; i < 5; i++)
		outer();
	printf("%f\n", cpu() - used);
	return 0;
}
"""

PINNED = CALLED + r"""
static pthread_barrier_t both;
static void *work(void *unused)
{
	pthread_barrier_wait(&both);
	spins(60);
	return unused;
}
int main(void)
{
	pthread_t threads[2];
	cpu_set_t one;
	pthread_barrier_init(&both, NULL, 2);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""

FLAGS = ("-O1", "-pthread", "-fpatchable-function-entry=5")
EVENT = re.compile(r"prev_comm=(\S+) prev_pid=(\d+) prev_prio=120 prev_state=(\S+) ==> "
                   r"next_comm=(\S+) next_pid=(\d+) next_prio=120")
MARK = re.compile(r"\bmark\(\)(;| \{)")  # a switch may come before it returns


def rows(graftrace, *words):
    """Times in ms, by function."""
    text = graftrace("report", "--format", "csv", *words).stdout
    return {row["function"]: {name: float(value) / 1e6 for name, value in row.items()
                              if name.endswith("_ns")}
            for row in csv.DictReader(io.StringIO(text))}


def lines(graftrace, tid):
    """One thread's lines: "mark", and S or R+ wherever it leaves the CPU."""
    shown = graftrace("show", "--switch-events", "--tid", tid).stdout
    return ["mark" if MARK.search(line) else EVENT.search(line)[3] for line in shown.splitlines()
            if MARK.search(line) or (EVENT.search(line) and EVENT.search(line)[2] == tid)]


def test_every_switch_of_a_thread_is_there(graftrace, compile):
    done = graftrace("record", compile(COUNTED, *FLAGS))
    threads = [line.split() for line in done.stdout.splitlines()]
    assert len(threads) == 2
    for tid, voluntary, involuntary, *marks in threads:
        seen = lines(graftrace, tid)
        places = [i for i, line in enumerate(seen) if line == "mark"]
        # those at which the counts stood still
        first, last = (places[int(number) - 1] for number in marks)
        assert last == places[-1]
        between = seen[first:last]
        assert between.count("S") == int(voluntary), (tid, seen)
        assert between.count("R+") == int(involuntary), (tid, seen)
        assert int(voluntary) > 0


def clocks_of_calls(buffer):
    """Of the calls before the first special word."""
    clock = buffer.header.clock
    for word in buffer.words:
        if word == 0 or word >> 33 >= 0x7fffff00:
            return
        clock += ((word - clock) + 2 ** 31) % 2 ** 32 - 2 ** 31
        yield clock


def test_no_call_is_made_while_its_thread_is_off_the_cpu(graftrace, compile):
    """Read by the specification of the file: the switches are on the time line of the calls."""
    graftrace("record", compile(COUNTED, *FLAGS))
    recording = format_reader.read(graftrace.directory / "graftrace.data")
    clocks = [switch[0] for switch in recording.switches]
    assert clocks == sorted(clocks)
    calls = 0
    for writer in recording.writers:
        own = [switch for switch in recording.switches if switch[1] == writer.tid]
        for (_, _, came_to, left_before, _), (_, _, cpu, left, _) in zip(own, own[1:]):
            assert left != left_before
            assert not left or cpu == came_to
        for clock in (clock for buffer in writer.sub_buffers for clock in clocks_of_calls(buffer)):
            at = bisect.bisect(own, clock, key=lambda switch: switch[0])
            calls += 1
            if at > 0 and own[at - 1][3]:
                # some nanoseconds are the stamps' precision
                following = own[at][0] if at < len(own) else clock + 10 ** 9
                assert min(clock - own[at - 1][0], following - clock) < 5000
    assert calls > 1000


def test_what_slept_is_off_the_cpu_and_what_worked_on_it(graftrace, compile):
    used = float(graftrace("record", compile(SLEEPS, *FLAGS)).stdout)
    row = rows(graftrace)
    assert row["naps"]["self_off_cpu_ns"] > 50
    assert row["naps"]["self_on_cpu_ns"] < row["naps"]["self_ns"] / 2
    # its callers did not sleep themselves, but in it
    assert row["outer"]["total_off_cpu_ns"] >= row["naps"]["self_off_cpu_ns"]
    assert row["outer"]["self_off_cpu_ns"] <= row["outer"]["self_ns"] + 0.001
    assert row["spins"]["self_on_cpu_ns"] >= 25 * 0.95  # each switch costs some
    for function in row.values():
        parts = function["self_on_cpu_ns"] + function["self_off_cpu_ns"]
        assert abs(parts - function["self_ns"]) < 0.001
    on = sum(function["self_on_cpu_ns"] for name, function in row.items() if name != "main")
    assert on > used * 0.8


def test_two_threads_on_one_cpu_share_its_time(graftrace, compile):
    graftrace("record", compile(PINNED, *FLAGS))
    row = rows(graftrace)
    on, off = row["spins"]["self_on_cpu_ns"], row["spins"]["self_off_cpu_ns"]
    assert on >= 120 * 0.95
    # what both had of the CPU fits into the time that it took, and one had to wait for the other
    assert on <= row["main"]["total_ns"] * 1.02
    assert off >= 60 * 0.5
    thread = graftrace("report", "--by", "thread", "--sort", "off-cpu").stdout
    assert "Self       On CPU      Off CPU" in thread.splitlines()[0]


def test_a_thread_that_leaves_the_cpu_to_another_is_shown_as_linux_shows_it(graftrace, compile):
    graftrace("record", compile(PINNED, *FLAGS))
    shown = graftrace("show").stdout
    cpus = set(re.findall(r"^ +(\d+)\) ", shown, re.M))
    assert len(cpus) <= 2  # main's before it was pinned
    assert re.search(r"^ -{42}\n +\d+\)\s+\S+-\d+\s+=>\s+\S+-\d+\s+\n -{42}\n\n", shown, re.M)
    assert "sched_switch" not in shown
    # work() is no leaf: the other thread's records came before its end
    assert re.search(r"spins\(\) \{", shown)


def test_durations_without_the_time_off_the_cpu(graftrace, compile):
    graftrace("record", compile(SLEEPS, *FLAGS))

    def naps(*words):
        return [float(us) for us in
                re.findall(r"([\d.]+) us +\| +naps\(\);", graftrace("show", *words).stdout)]

    assert len(naps()) == 5 and min(naps()) >= 20000
    without = naps("-O", "nosleep-time")
    assert len(without) == 5 and sum(without) < sum(naps()) / 2


def test_csv_of_calls_without_the_time_off_the_cpu(graftrace, compile):
    graftrace("record", compile(SLEEPS, *FLAGS))

    def calls(*words):
        graftrace("parse-trace", "-q", *words, "graftrace.data")
        text = (graftrace.directory / "trace.csv").read_text()
        return list(csv.DictReader(io.StringIO(text)))

    whole, worked = calls(), calls("--no-sleep-time")
    row = rows(graftrace)
    assert [call["function"] for call in whole] == [call["function"] for call in worked]
    for name, figures in row.items():
        for key, of_report in (("latency_us_self", "self_on_cpu_ns"),
                               ("latency_us", None)):
            has = sum(float(call[key]) for call in worked if call["function"] == name) / 1000
            wanted = figures[of_report] if of_report else (
                figures["total_ns"] - figures["total_off_cpu_ns"])
            assert abs(has - wanted) < 0.01, (name, key)
    naps = [float(call["latency_us"]) for call in whole if call["function"] == "naps"]
    assert min(naps) >= 20000
    graftrace("runtime-breakdown", "--no-open", "trace.csv")
    text = graftrace("show").stdout
    (graftrace.directory / "text").write_text(text)
    assert "is a text" in graftrace("parse-trace", "--no-sleep-time", "text", code=1).stderr


def test_switches_are_not_recorded_where_nobody_wants_them(graftrace, compile):
    program = compile(SLEEPS, *FLAGS)
    graftrace("record", "--no-switch-events", program)
    assert "On CPU" not in graftrace("report").stdout
    for words in (["show", "--switch-events"], ["show", "-O", "nosleep-time"],
                  ["report", "--sort", "off-cpu"], ["report", "--sort", "on-cpu"]):
        done = graftrace(*words, code=1)
        assert "does not have when threads were off the CPU" in done.stderr
    done = graftrace("parse-trace", "--no-sleep-time", "graftrace.data", code=1)
    assert "does not have when threads were off the CPU" in done.stderr


@pytest.mark.parametrize("word", ["sched:sched_switch", "sched", "sched_*"])
def test_switches_are_an_event_by_name(word, graftrace, compile):
    done = graftrace("record", "-e", word, compile(SLEEPS, *FLAGS))
    assert "matched no event" not in done.stderr
    assert re.search(r"sched_switch: .* prev_state=S ==> ", graftrace("show").stdout)


STEPS = CALLED + r"""
CALLED void naps(void)
{
	nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
	__asm__ volatile("");
}
int main(void)
{
	char line[64];
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		naps();
		printf("done\n");
		fflush(stdout);
	}
	return 3;
}
"""


def watched(process):
    """How many events of the kernel's it has open."""
    count = 0
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            count += "perf_event" in os.readlink(link)
        except OSError:
            pass  # closed meanwhile
    return count


@pytest.fixture
def served(graftrace, compile):
    with serving(graftrace, compile(STEPS, *FLAGS)) as served:
        yield served


def test_the_event_is_a_control_file(served):
    events = served.get("available_events").splitlines()
    assert "sched:sched_switch" in events
    assert all(event.startswith(("sched:", "syscalls:", "raw_syscalls:")) for event in events)
    assert "prev_comm" in served.get("events/sched/sched_switch/format")
    served.calls(1)
    assert "sched_switch" not in served.get("trace")
    served.put("events/sched/sched_switch/enable", "1")
    assert served.get("set_event") == "sched:sched_switch\n"
    served.calls(1)
    seen = served.get("trace")
    # what came before the event was on is not shown; between the entry and the return it slept
    assert seen.count("naps() {") + seen.count("naps();") == 2
    assert re.search(r"naps\(\) \{\n(?:.*\n)*?.*/\* sched_switch: prev_comm=\S+ prev_pid=\d+ "
                     r"prev_prio=120 prev_state=S ==> next_comm=<\.\.\.> next_pid=0 "
                     r"next_prio=120 \*/\n(?:.*\n)*?.*/\* sched_switch: prev_comm=<\.\.\.> "
                     r"prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=\S+", seen)
    assert seen.index("sched_switch") > seen.index("naps")
    served.put("set_event", "!sched:sched_switch")
    assert served.get("events/enable") == "0\n"
    lines = served.get("trace").count("sched_switch")
    served.calls(1)
    assert served.get("trace").count("sched_switch") in (lines, lines + 1)
    assert served.ask("PUT", "set_event", "sched:sched_wakeup")[0] == 400
    served.put("trace", "")
    assert "sched_switch" not in served.get("trace")
    served.put("current_tracer", "function")
    served.put("events/sched/enable", "1")
    served.calls(1)
    assert re.search(r"^ +\S+-\d+ +\[\d+\] \S+ +[\d.]+: sched_switch: prev_comm=", served.get("trace"),
                     re.M)
    served.put("current_tracer", "nop")
    served.calls(1)
    seen = served.get("trace")
    assert "sched_switch" in seen and "naps" not in seen
    # with nobody who wants them the kernel is not asked; what it told stays
    assert watched(served.process) > 0
    served.put("events/enable", "0")
    assert watched(served.process) == 0
    lines = served.get("trace").count("sched_switch")
    assert lines >= seen.count("sched_switch")
    served.put("options/sleep-time", "0")
    assert watched(served.process) > 0
    served.put("events/sched/enable", "1")
    served.put("options/sleep-time", "1")
    assert watched(served.process) > 0
    served.calls(1)
    assert served.get("trace").count("sched_switch") > lines


def switches(text):
    """Times of the lines that tell of context switches."""
    return re.findall(r"([\d.]+): sched_switch:", text)


def test_a_snapshot_has_the_events_of_its_time(served):
    served.put("current_tracer", "function")
    served.put("events/sched/enable", "1")
    served.calls(1)
    taken = switches(served.get("trace"))
    served.put("snapshot", "1")
    assert not set(taken) & set(switches(served.get("trace")))
    served.calls(1)
    came = switches(served.get("trace"))
    assert came and not set(taken) & set(came)
    seen = switches(served.get("snapshot"))
    assert set(taken) <= set(seen) and not set(seen) & set(came)
    served.put("trace", "")
    assert switches(served.get("snapshot")) == seen


TWO = CALLED + r"""
CALLED void naps(void)
{
	nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
	__asm__ volatile("");
}
CALLED void outer(void)
{
	naps();
	__asm__ volatile("");
}
static void *work(void *unused)
{
	outer();
	return unused;
}
/* At each line a thread naps, and then the first one does. */
int main(void)
{
	char line[64];
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		pthread_t thread;
		pthread_create(&thread, NULL, work, NULL);
		pthread_join(thread, NULL);
		outer();
		printf("done\n");
		fflush(stdout);
	}
	return 3;
}
"""


@pytest.fixture
def two(graftrace, compile):
    with serving(graftrace, compile(TWO, *FLAGS)) as served:
        served.put("events/sched/enable", "1")
        yield served


def leaving(text):
    """Which threads leave their CPUs to wait."""
    return {int(found) for found in re.findall(r"prev_pid=(\d+) prev_prio=120 prev_state=S", text)}


def test_events_of_chosen_threads(two):
    first = int(re.findall(r">(\d+)/?<", two.get("per_thread/"))[0])
    two.calls(1)
    assert first in leaving(two.get("trace")) and len(leaving(two.get("trace"))) == 2
    assert two.get("set_event_pid") == "no pid\n"
    two.put("set_event_pid", str(first))
    assert two.get("set_event_pid") == f"{first}\n"
    two.put("trace", "")
    two.calls(1)
    assert leaving(two.get("trace")) == {first}
    two.put("set_event_pid", "")
    two.put("set_event_notrace_pid", str(first))
    # what was left out does not come back
    assert leaving(two.get("trace")) == {first}
    two.put("trace", "")
    two.calls(1)
    seen = leaving(two.get("trace"))
    assert len(seen) == 1 and first not in seen


def test_events_of_what_a_chosen_thread_starts(two):
    first = int(re.findall(r">(\d+)/?<", two.get("per_thread/"))[0])
    two.put("set_event_pid", str(first))
    two.calls(1)
    assert leaving(two.get("trace")) == {first}
    two.put("options/event-fork", "1")
    two.calls(1)
    assert len(leaving(two.get("trace"))) == 2
    two.put("trace", "")
    two.put("options/event-fork", "0")
    two.calls(1)
    assert leaving(two.get("trace")) == {first}


def test_calls_that_are_open_stand_behind_the_event(two):
    two.put("options/stacktrace", "1")
    two.calls(1)
    stacks = re.findall(r"prev_state=S ==> .*\n(.*<stack trace>\n(?: => .*\n)+)", two.get("trace"))
    naps = [stack for stack in stacks if "=> naps\n => outer\n" in stack]
    assert len(naps) == 2, stacks
    assert re.fullmatch(r" +\d+\) +\|[^|]* /\* <stack trace>\n => naps\n => outer\n"
                        r" => (work|main) \*/\n", naps[0]), naps[0]
    two.put("options/stacktrace", "0")
    assert "<stack trace>" not in two.get("trace")
    two.put("options/stacktrace", "1")
    two.put("current_tracer", "function")
    two.calls(1)
    # that tracer does not know what is open
    assert "sched_switch" in two.get("trace") and "=>  " not in two.get("trace")


@pytest.mark.parametrize("where", ["", "instances/one/"])
def test_a_function_that_ends_tracing_ends_the_events(two, where):
    if where:
        assert two.ask("MKCOL", "instances/one")[0] == 201
        two.put("events/enable", "0")
        two.put(where + "events/enable", "1")
        two.put(where + "current_tracer", "function")
    two.put(where + "set_ftrace_filter", "outer:traceoff:1")
    two.calls(1)
    assert two.get(where + "tracing_on") == "0\n"
    seen = two.get(where + "trace").count("sched_switch: ")
    two.calls(3)
    assert two.get(where + "trace").count("sched_switch: ") == seen
    two.put(where + "tracing_on", "1")
    two.calls(1)
    assert two.get(where + "trace").count("sched_switch: ") > seen


def test_events_are_counted(two):
    def entries(path="stats"):
        return int(re.search(r"^entries: (\d+)$", two.get(path), re.M)[1])

    two.put("current_tracer", "nop")
    two.calls(1)
    two.put("events/sched/enable", "0")
    shown = two.get("trace")
    assert shown.count(": sched_switch: ") == entries() > 0
    assert f"# entries-in-buffer/entries-written: {entries()}/{entries()} " in shown
    assert sum(entries(f"per_cpu/cpu{cpu}/stats") for cpu in range(os.cpu_count())) == entries()
    two.put("trace", "")
    assert entries() == 0


def test_a_recording_is_served_with_its_switches(graftrace, compile):
    graftrace("record", compile(SLEEPS, *FLAGS))
    process = graftrace.start("serve", "-a", "127.0.0.1:0", "graftrace.data")
    served = Served(process, port_of(process))
    assert "sched_switch" not in served.get("trace")
    served.put("events/sched/sched_switch/enable", "1")
    assert served.get("trace").count("prev_state=S") >= 5
    served.put("options/sleep-time", "0")
    served.put("events/enable", "0")
    naps = [float(us) for us in re.findall(r"([\d.]+) us +\| +naps\(\);", served.get("trace"))]
    assert len(naps) == 5 and max(naps) < 20000
    process.terminate()
    process.wait(timeout=PATIENCE)
    process.stdout.close()
    process.stderr.close()


# As in a container, where perf_event_open is not for everybody.
REFUSING = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };
	if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		return 99;
	execvp(argv[1], argv + 1);
	return 98;
}
"""


def test_where_the_kernel_does_not_tell_it_is_said_once(graftrace, compile):
    done = subprocess.run(
        [compile(REFUSING, "-O1"), graftrace.path, "record", compile(SLEEPS, *FLAGS)],
        cwd=graftrace.directory, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("times off the CPU are not recorded") == 1
    assert "perf_event_open" in done.stderr and "perf_event_paranoid" in done.stderr
    assert "On CPU" not in graftrace("report").stdout
    assert graftrace("show").stdout.count("naps();") == 5


def test_what_anybody_may_trace_anybody_sees_sleep(graftrace, compile):
    """Without privileges: as perf_event_paranoid has it, and else in words."""
    program = compile(SLEEPS, *FLAGS)
    graftrace.directory.chmod(0o777)
    nobody = [] if os.getuid() else ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                     "--bounding-set=-all", "--inh-caps=-all"]
    reach = [program.parent, *program.parent.parents, *graftrace.directory.parents]
    for folder in reach:
        if folder.stat().st_uid == os.getuid() and not folder.stat().st_mode & 1:
            folder.chmod(folder.stat().st_mode | 0o11)
    done = subprocess.run([*nobody, graftrace.path, "record", program], capture_output=True,
                          text=True, cwd=graftrace.directory, timeout=PATIENCE,
                          env={**os.environ, "XDG_CACHE_HOME": "/nonexistent"})
    assert done.returncode == 0, done.stderr
    told = int(open("/proc/sys/kernel/perf_event_paranoid").read()) <= 2
    assert ("times off the CPU are not recorded" in done.stderr) == (not told), done.stderr
    assert ("On CPU" in graftrace("report").stdout) == told
