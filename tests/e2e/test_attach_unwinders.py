# SPDX-License-Identifier: MIT
"""graftrace record -P PID: unwinders, and who else lists the loaded objects, while it leaves and after it."""

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from attaching import Running, end_recording, is_clean, maps, record, start_recording
from conftest import PATIENCE, line_with, open_to_everyone, wait_until

NOBODY = 65534

# What a function of the C library has called throws when graftrace has begun to leave.
THROWS_OUT = r"""
#include <cstdio>
#include <link.h>
static volatile int sum;
__attribute__((noinline)) static bool step()
{
	char line[20];
	return fgets(line, sizeof line, stdin) != nullptr;
}
__attribute__((noinline)) static void throws()
{
	sum = sum + 1;
	throw 42;
}
static int look(dl_phdr_info *, size_t, void *)
{
	puts("inside");
	step();
	throws();
	return 1;
}
__attribute__((noinline)) static int walk()
{
	try {
		dl_iterate_phdr(look, nullptr);
	} catch (int thrown) {
		return thrown;
	}
	return 0;
}
int main()
{
	setvbuf(stdout, nullptr, _IOLBF, 0);
	puts("ready");
	while (step())
		puts(walk() == 42 ? "right" : "wrong");
}
"""


def test_exceptions_out_of_a_callback_find_their_handlers_while_graftrace_leaves(graftrace, compile):
    with Running(compile(THROWS_OUT, "-O1", compiler="g++", suffix=".cc")) as target:
        tracer = start_recording(graftrace, target.pid)
        assert target("call") == "inside"
        tracer.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert target("throw") == "right"
        assert tracer.wait(PATIENCE) == 0
        tracer.communicate()
        assert target("call") == "inside"
        assert target("throw") == "right"


# Somebody is always in a call of the C library that calls the program.
ALWAYS_CALLED = r"""
#include <link.h>
#include <pthread.h>
#include <stdio.h>
static volatile long sum;
__attribute__((noinline)) static void work(int n)
{
	sum += n;
}
static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info, (void)size;
	for (int n = 0; n < 50; n++)
		work(n);
	return data != NULL;
}
static void *walks(void *data)
{
	for (;;)
		dl_iterate_phdr(look, data);
}
int main(void)
{
	pthread_t some;
	char line[20];
	for (int i = 0; i < 4; i++)
		pthread_create(&some, NULL, walks, NULL);
	puts("ready");
	fflush(stdout);
	return fgets(line, sizeof line, stdin) == NULL;
}
"""


def test_a_program_that_is_always_called_by_us_is_left(graftrace, compile):
    with Running(compile(ALWAYS_CALLED, "-O1", "-pthread")) as target:
        for _ in range(3):
            record(graftrace, target.pid, "--for", "20ms")
            assert is_clean(target.pid)


# What an unwinder has called waits in a system call, at an even frame or at an odd one; or a signal's handler on top of
# that does, whose own frame or stack lies between the stack pointer and what the unwinder notes.
WAITS_IN_AN_UNWINDER = r"""
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <unwind.h>
static volatile int sum;
static int frames, last, room;
static jmp_buf out;
__attribute__((noinline)) static void step()
{
	char line[20];
	sum = fgets(line, sizeof line, stdin) != nullptr;
}
static void waits(int)
{
	volatile char *unused = (volatile char *)alloca(room);
	unused[0] = 0;
	puts("inside");
	step();
}
static _Unwind_Reason_Code stop(int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception *,
				_Unwind_Context *, void *)
{
	if (++frames == last) {
		if (room)
			raise(SIGUSR1);
		else
			waits(0);
	}
	if (actions & _UA_END_OF_STACK)
		longjmp(out, 2);
	if (frames > 40)
		longjmp(out, 1);
	return _URC_NO_REASON;
}
__attribute__((noinline)) static int deep(int n)
{
	static _Unwind_Exception exception;
	if (n == 0) {
		frames = 0;
		exception = _Unwind_Exception();
		exception.exception_class = 0x474e5543432b2b00;
		_Unwind_ForcedUnwind(&exception, stop, nullptr);
		abort();
	}
	const int result = deep(n - 1);
	sum = sum + result;
	return result + 1;
}
int main(int, char **argv)
{
	setvbuf(stdout, nullptr, _IOLBF, 0);
	last = atoi(argv[1]);
	room = atoi(argv[2]);
	struct sigaction action = {};
	stack_t stack = {};
	stack.ss_size = 1 << 20;
	stack.ss_sp = malloc(stack.ss_size);
	sigaltstack(&stack, nullptr);
	action.sa_handler = waits;
	action.sa_flags = room < 65536 ? SA_ONSTACK : 0;
	sigaction(SIGUSR1, &action, nullptr);
	puts("ready");
	for (;;) {
		step();
		if (!sum)
			return 0;
		const int how = setjmp(out);
		if (how == 0)
			deep(60);
		puts(how == 1 ? "right" : "wrong");
	}
}
"""


@pytest.mark.parametrize("room", [0, 64, 100000], ids=["callback", "alternate", "large"])
@pytest.mark.parametrize("frame", [20, 21])
def test_an_unwinder_whose_callback_waits_goes_on_after_graftrace_has_left(graftrace, compile, frame, room):
    program = compile(WAITS_IN_AN_UNWINDER, "-O1", compiler="g++", suffix=".cc")
    with Running(program, str(frame), str(room)) as target:
        tracer = start_recording(graftrace, target.pid)
        assert target("call") == "inside"
        tracer.send_signal(signal.SIGINT)
        time.sleep(1)
        assert target("go on") == "right"
        assert tracer.wait(PATIENCE) == 0
        assert "keeps the recorder's memory" not in tracer.communicate()[1]
        assert target("call") == "inside"
        assert target("go on") == "right"


# Threads that wait for good in room that they have not filled, where an unwinder has been; called by code that no file
# describes, as a just-in-time compiler's.
WAITS_ABOVE_OLD_WORDS = r"""
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile int sum, waiting;
static void (*made)(void (*)()) = [](void (*call)()) { call(); };
__attribute__((noinline)) static int deep(int n)
{
	if (n == 0)
		throw 42;
	const int result = deep(n - 1);
	sum = sum + result;
	return result + 1;
}
__attribute__((noinline)) static int throws()
{
	try {
		return deep(20);
	} catch (int thrown) {
		return thrown;
	}
}
/* Its words are among the lowest of the room. */
__attribute__((noinline)) static void throws_below()
{
	volatile char room[ROOM - 8192 + 1];
	asm volatile("" : : "r"(room));
	sum = throws();
	asm volatile("" : : "r"(room));
}
__attribute__((noinline)) static void waits()
{
	volatile char room[ROOM];
	asm volatile("" : : "r"(room));
#ifdef SLOW_RULES
	/* DW_CFA_remember_state */
	asm volatile(".rept 200000\n.cfi_escape 0x0a\n.endr");
#endif
#ifdef HUGE_RULES
	/* DW_CFA_same_value of register 134217712, and four copies of the row */
	asm volatile(".cfi_escape 0x08, 0xf0, 0xff, 0xff, 0x3f, 0x0a, 0x0a, 0x0a, 0x0a");
#endif
	__atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}
static void *runs(void *data)
{
	volatile char line[1024];
	asm volatile("" : : "r"(line));
	throws_below();
	made(waits);
	return data;
}
int main(int argc, char **)
{
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
	pthread_t some;
	if (argc > 1) {
		void *room = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memcpy(room, code, sizeof code);
		made = (void (*)(void (*)()))room;
	}
	char line[20];
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin) != nullptr) {
		for (int i = 0; i < 20; i++)
			pthread_create(&some, nullptr, runs, nullptr);
		while (waiting < 20)
			usleep(1000);
		puts("waiting");
		fflush(stdout);
	}
}
"""


@pytest.mark.parametrize("words, room", [([], 8192), (["made"], 8192), ([], 70000), ([], 100000)],
                         ids=["file", "made", "70000", "100000"])
def test_threads_that_wait_above_an_unwinders_old_words_are_left(graftrace, compile, words, room):
    program = compile(WAITS_ABOVE_OLD_WORDS, "-O1", "-pthread", f"-DROOM={room}", compiler="g++", suffix=".cc")
    with Running(program, *words) as target:
        tracer = start_recording(graftrace, target.pid)
        assert target("throw and wait") == "waiting"
        tracer.send_signal(signal.SIGINT)
        assert tracer.wait(PATIENCE) == 0
        assert "keeps the recorder's memory" not in tracer.communicate()[1]
        assert is_clean(target.pid)


LITTLE_MEMORY = ["prlimit", "--as=300000000"]
ROOT_OF_FEWER_RIGHTS = ["setpriv", "--bounding-set", "-setgid,-setuid", "--inh-caps", "-setgid,-setuid"]


@pytest.mark.parametrize("limits", [
    LITTLE_MEMORY,
    pytest.param(ROOT_OF_FEWER_RIGHTS,
                 marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root"))],
    ids=["memory", "capabilities"])
def test_threads_are_walked_by_a_graftrace_that_has_little(graftrace, compile, tmp_path, limits):
    program = compile(WAITS_ABOVE_OLD_WORDS, "-O1", "-pthread", "-DROOM=8192", compiler="g++", suffix=".cc")
    with Running(program) as target:
        with subprocess.Popen([*limits, graftrace.path, "record", "-P", str(target.pid)], cwd=tmp_path,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as tracer:
            line_with(tracer.stderr, "recording process")
            assert target("throw and wait") == "waiting"
            assert "keeps the recorder's memory" not in end_recording(tracer)
        assert is_clean(target.pid)


def status_of(pid):
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "\nState:\tZ"


def ticks_of(pid):
    """How long it has run: what it does first, it has done by the second tick."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))


def stopped_walker(tracer):
    """The child that walks, as the user of the program, stopped before it has ended."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for children in Path(f"/proc/{tracer.pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                for child in map(int, children.read_text().split()):
                    if f"\nUid:\t{NOBODY}\t" in status_of(child) and ticks_of(child) >= 2:
                        os.kill(child, signal.SIGSTOP)
                        while "\nState:\tR" in status_of(child):
                            pass
                        if "\nState:\tT" in status_of(child):
                            return child
    raise AssertionError("no child walks")


def ends(pid):
    deadline = time.monotonic() + 5
    while "\nState:\tZ" not in status_of(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
MAY_TRACE = ["--inh-caps=+sys_ptrace", "--ambient-caps=+sys_ptrace"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("user", [[], [*AS_NOBODY, *MAY_TRACE]], ids=["root", "nobody"])
def test_who_walks_as_the_programs_user_ends_with_graftrace_and_leaves_no_core(graftrace, compile, tmp_path_factory, user):
    program = compile(WAITS_ABOVE_OLD_WORDS, "-O1", "-pthread", "-DROOM=8192", "-DSLOW_RULES", compiler="g++", suffix=".cc")
    place = tmp_path_factory.mktemp("everyone")
    open_to_everyone(place)
    with (Running(shutil.copy(program, place), user=NOBODY, group=NOBODY, extra_groups=[]) as target,
          subprocess.Popen([*user, graftrace.path, "record", "-o", "/dev/null", "-P", str(target.pid)],
                           stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as tracer):
        line_with(tracer.stderr, "recording process")
        assert target("throw and wait") == "waiting"
        tracer.send_signal(signal.SIGINT)
        child = stopped_walker(tracer)
        owner = os.stat(f"/proc/{child}/status").st_uid
        tracer.kill()
        ended = ends(child)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        assert ended
        assert owner == 0, "the kernel may write what it has in memory to a file"


def test_rules_of_frames_that_take_any_memory_do_not_hold_the_process_up(graftrace, compile):
    program = compile(WAITS_ABOVE_OLD_WORDS, "-O1", "-pthread", "-DROOM=8192", "-DHUGE_RULES", compiler="g++", suffix=".cc")
    with Running(program) as target:
        tracer = start_recording(graftrace, target.pid)
        assert target("throw and wait") == "waiting"
        tracer.send_signal(signal.SIGINT)
        _, text = tracer.communicate(timeout=PATIENCE)
        assert tracer.returncode == 0 and "keeps the recorder's memory" in text
        assert float(re.search(r"left in stops of ([\d.]+) ms", text)[1]) < 5000
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        assert peak < 2 << 20, f"{peak} kB"
        assert target.is_alive()


# An unwinder that knows dl_iterate_phdr only, as that of GCC before version 12, or any one on glibc before 2.35: what
# libgcc asks for the unwind data of an address. With -static-libgcc it is the program's, with names.
KNOWS_ONLY_THE_LIST = r"""
#include <cstdint>
#include <cstring>
#include <link.h>
struct bases { void *text, *data, *function; };
struct search { uintptr_t pc; const uint8_t *header; };
extern "C" __attribute__((noinline)) int _Unwind_IteratePhdrCallback(dl_phdr_info *info, size_t, void *data)
{
	search *wanted = static_cast<search *>(data);
	const ElfW(Phdr) *frames = nullptr;
	bool in = false;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		in |= part->p_type == PT_LOAD && wanted->pc - (info->dlpi_addr + part->p_vaddr) < part->p_memsz;
		if (part->p_type == PT_GNU_EH_FRAME)
			frames = part;
	}
	if (!in || !frames)
		return 0;
	wanted->header = reinterpret_cast<const uint8_t *>(info->dlpi_addr + frames->p_vaddr);
	return 1;
}
extern "C" const void *_Unwind_Find_FDE(void *pc, bases *found)
{
	search wanted{reinterpret_cast<uintptr_t>(pc), nullptr};
	if (dl_iterate_phdr(_Unwind_IteratePhdrCallback, &wanted) <= 0)
		return nullptr;
	const uint8_t *header = wanted.header;
	if (memcmp(header, "\x01\x1b\x03\x3b", 4))
		return nullptr;
	uint32_t count;
	memcpy(&count, header + 8, 4);
	const int32_t *table = reinterpret_cast<const int32_t *>(header + 12);
	intptr_t at = static_cast<uint8_t *>(pc) - header;
	size_t low = 0, high = count;
	while (high - low > 1)
		(table[(low + high) / 2 * 2] <= at ? low : high) = (low + high) / 2;
	if (!count || table[2 * low] > at)
		return nullptr;
	const uint8_t *rules = header + table[2 * low + 1];
	int32_t start;
	uint32_t bytes;
	memcpy(&start, rules + 8, 4);
	memcpy(&bytes, rules + 12, 4);
	*found = bases{nullptr, nullptr, const_cast<uint8_t *>(rules) + 8 + start};
	return wanted.pc - reinterpret_cast<uintptr_t>(found->function) < bytes ? rules : nullptr;
}
"""
# Its main thread is nearly always in a callback, out of which it throws.
THROWS_FOR_EVER = r"""
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <link.h>
#include <unistd.h>
static volatile long sum;
static long rests;
__attribute__((noinline)) static int work(int n)
{
	sum = sum + n;
	return n;
}
/* Elsewhere than the functions of the unwinder. */
__attribute__((section("callbacks"))) static int look(dl_phdr_info *, size_t, void *)
{
	for (long i = 0; i < rests; i++) {
		usleep(1000);
		work(1);
	}
	throw 42;
}
__attribute__((noinline)) static bool walk()
{
	try {
		dl_iterate_phdr(look, nullptr);
	} catch (int thrown) {
		return thrown == 42;
	}
	return false;
}
int main(int, char **words)
{
	rests = atol(words[1]);
	puts("ready");
	fflush(stdout);
	for (time_t end = time(nullptr) + 60; time(nullptr) < end; work(2))
		if (!walk())
			abort();
}
"""


@pytest.mark.parametrize("unwinder, more, options", [("libgcc", "", []),
                                                     ("list", KNOWS_ONLY_THE_LIST, ["-static-libgcc"])],
                         ids=["libgcc", "list"])
@pytest.mark.parametrize("rests", [5, 60, 600])
def test_who_throws_out_of_callbacks_all_the_time_is_left(graftrace, compile, unwinder, more, options, rests):
    program = compile(more + THROWS_FOR_EVER, "-O1", *options, compiler="g++", suffix=".cc")
    with Running(program, str(rests)) as target:
        def is_left():
            graftrace("record", "-P", target.pid, "--for", "100ms", code=None)
            assert target.is_alive()
            return is_clean(target.pid)

        # A try has five seconds, which are not enough on a busy machine; what stays then refuses nobody for good.
        for _ in range(2):
            wait_until(is_left)
        time.sleep(1.5 * rests / 1000)
        assert target.is_alive()


# Keeps what it was told of the loaded objects, as it may until the next dlclose.
KEEPS_WHAT_IT_WAS_TOLD = r"""
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
static struct dl_phdr_info list[64];
static int count;
static volatile unsigned long sum;
static int add(struct dl_phdr_info *info, size_t bytes, void *data)
{
	(void)bytes, (void)data;
	list[count++] = *info;
	return 0;
}
__attribute__((noinline)) static int look(int named)
{
	for (int i = 0; i < count; i++) {
		named += strcmp(list[i].dlpi_name, "[graftrace]") == 0;
		for (int k = 0; k < list[i].dlpi_phnum; k++)
			sum += list[i].dlpi_phdr[k].p_vaddr;
	}
	return named;
}
int main(void)
{
	char line[20];
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		if (line[0] == 'l') {
			count = 0;
			dl_iterate_phdr(add, NULL);
		}
		if (line[0] == 'm')
			for (int i = 0; i < 4; i++)
				mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		printf("%d of ours\n", look(0));
		fflush(stdout);
	}
}
"""


def of_ours(said):
    return int(re.fullmatch(r"(\d+) of ours", said)[1])


def mapped(pid):
    return [line.split(maxsplit=1)[0] for line in maps(pid).splitlines()]


def test_what_a_program_was_told_of_the_agent_stays_readable(graftrace, compile):
    with Running(compile(KEEPS_WHAT_IT_WAS_TOLD, "-O1")) as target:
        before = mapped(target.pid)
        record(graftrace, target.pid, "--for", "50ms")
        assert mapped(target.pid) == before
        left = []
        for _ in range(3):
            tracer = start_recording(graftrace, target.pid)
            told = of_ours(target("list"))
            assert told >= 2
            tracer.send_signal(signal.SIGINT)
            assert tracer.wait(PATIENCE) == 0
            tracer.communicate()
            assert of_ours(target("read")) == told
            left.append(mapped(target.pid))
        # One page, which the next graftrace takes again; nobody is told of it any more.
        assert len(left[0]) == len(before) + 1 and left[0] == left[1] == left[2]
        # Not even one that has told of nothing takes it away.
        record(graftrace, target.pid, "--for", "50ms")
        assert mapped(target.pid) == left[0]
        assert of_ours(target("read")) == told
        assert of_ours(target("list")) == 0


def test_the_page_of_what_a_program_was_told_is_found_beside_pages_of_the_program(graftrace, compile):
    with Running(compile(KEEPS_WHAT_IT_WAS_TOLD, "-O1")) as target:
        for attempt in range(2):
            tracer = start_recording(graftrace, target.pid)
            assert of_ours(target("list")) >= 2
            end_recording(tracer)
            if not attempt:
                target("map")
                before = mapped(target.pid)
        assert mapped(target.pid) == before


# The C library calls callbacks of several threads one after the other, and some rely on that.
CALLED_AT_ONCE = r"""
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdio.h>
static int inside;
static long twice;
__attribute__((noinline)) static int work(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 3;
}
static int look(struct dl_phdr_info *info, size_t bytes, void *data)
{
	(void)info, (void)bytes, (void)data;
	if (__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) > 1)
		__atomic_add_fetch(&twice, 1, __ATOMIC_SEQ_CST);
	for (volatile int n = 0; n < 200; n++)
		;
	__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
	return 0;
}
static void *walks(void *data)
{
	for (int i = 0; i < 20000; i++) {
		work(i);
		dl_iterate_phdr(look, NULL);
	}
	return data;
}
int main(void)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, walks, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("%ld at once\n", twice);
}
"""


def test_callbacks_of_several_threads_do_not_run_at_once(graftrace, compile):
    program = compile(CALLED_AT_ONCE, "-O1", "-pthread")
    assert graftrace("record", program).stdout == "0 at once\n"
