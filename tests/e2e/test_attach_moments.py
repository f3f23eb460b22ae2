# SPDX-License-Identifier: MIT
"""Attaching at unhappy moments: while the process executes another program, while others attach."""

import re
import resource
import signal
import subprocess
import time

import pytest

from attaching import Running, record, start_recording
from conftest import PATIENCE


@pytest.fixture
def program(compile):
    return compile("execs.c", "-O2")


def start(program, times, ms):
    return subprocess.Popen([program, str(times), str(ms)], stdin=subprocess.PIPE, text=True)


@pytest.mark.parametrize("ms", [3, 10, 30])
def test_a_process_that_executes_another_program_meanwhile_is_recorded(ms, program, graftrace):
    process = start(program, 8, ms)
    done = graftrace("record", "-P", process.pid, "--stop-when", "called hit 5", timeout=120)
    assert "has ended" not in done.stderr
    process.communicate("x", timeout=PATIENCE)
    assert process.returncode == 7
    assert re.search(r"^called,", graftrace("report", "--format", "csv").stdout, re.M)


# Executes itself once graftrace has begun to leave it, which a call that the recorder has made keeps it from ending.
EXECUTES = r"""
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int sum, inside;
__attribute__((noinline)) void work(int n)
{
	sum += n;
}
static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info, (void)size, (void)data;
	inside = 1;
	for (;;)
		usleep(1000);
}
static void *walks(void *data)
{
	dl_iterate_phdr(look, NULL);
	return data;
}
int main(int argc, char **argv)
{
	volatile const unsigned char *code = (const unsigned char *)work;
	const unsigned char first = *code;
	pthread_t some;
	char line[20];
	puts(argc > 1 ? "executed" : "ready");
	fflush(stdout);
	if (argc > 1)
		return fgets(line, sizeof line, stdin) == NULL;
	while (*code == first)
		usleep(1000);
	pthread_create(&some, NULL, walks, NULL);
	while (!inside || *code != first)
		work(1);
	usleep(20000);
	execl("/proc/self/exe", argv[0], "again", NULL);
	return 3;
}
"""


def test_a_process_that_executes_another_program_while_it_is_left_is_left(graftrace, compile):
    with Running(compile(EXECUTES, "-O1", "-pthread")) as target:
        done = record(graftrace, target.pid, "--for", "300ms")
        assert "back as it was" not in done.stderr
        assert target.line() == "executed"
        assert target("stop") == ""


def test_of_several_that_attach_at_once_one_records_and_the_others_say_who_it_is(program, graftrace):
    process = start(program, 0, 0)
    several = [graftrace.start("record", "-o", f"data{i}", "-P", process.pid, "--for", "3s")
               for i in range(3)]
    texts = [one.communicate(timeout=PATIENCE)[1] for one in several]
    process.communicate("x", timeout=PATIENCE)
    assert process.returncode == 7
    by = [i for i, one in enumerate(several) if one.returncode == 0]
    assert by, texts
    recorders = "|".join(str(several[i].pid) for i in by)
    for i, text in enumerate(texts):
        if i not in by:
            assert re.search(rf"is being recorded already, by graftrace \(process ({recorders})\)", text)


WALKS = r"""
#define _GNU_SOURCE
#include <execinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unwind.h>
#define NOINLINE __attribute__((noinline))

static int walked;

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *data)
{
	(void)context, (void)data;
	walked++;
	return _URC_NO_REASON;
}

/* Calls with room that they do not fill would keep frames of signals that are over: these are waited for. */
NOINLINE int looks_at_all(void)
{
	void *frames[100];
	walked = 0;
	_Unwind_Backtrace(frame, NULL);
	return walked * 100 + backtrace(frames, 100);
}

NOINLINE int looks(int n)
{
	int found = n > 0 ? looks(n - 1) : looks_at_all();
	__asm__ volatile("" : "+r"(found));
	return found;
}

static void on_time(int signal)
{
	void *frames[100];
	(void)signal;
	backtrace(frames, 100);
}

int main(void)
{
	struct itimerval often = { { 0, 300 }, { 0, 300 } };
	struct pollfd input = { 0, POLLIN, 0 };
	int expected = looks(30);
	signal(SIGPROF, on_time);
	setitimer(ITIMER_PROF, &often, NULL);
	while (poll(&input, 1, 0) <= 0)
		for (int i = 0; i < 20; i++) {
			int found = looks(30);
			if (found != expected) {
				printf("%d frames, not %d\n", found, expected);
				return 99;
			}
		}
	return 7;
}
"""


@pytest.mark.parametrize("flags", [[], ["-static"]], ids=["dynamic", "static"])
def test_walks_over_the_stack_go_on_while_graftrace_comes_and_leaves(flags, graftrace, compile):
    process = subprocess.Popen([compile(WALKS, "-O1", *flags)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    for _ in range(12):
        if process.poll() is None:
            graftrace("record", "-P", process.pid, "--for", "1ms")
    out = process.communicate("x", timeout=PATIENCE)[0]
    assert (process.returncode, out) == (7, "")


# Stops in the trap's handler, at one instruction of many_bytes, and switches away there.
PREEMPTED = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

int many_bytes(int x);
__asm__(".text\n.p2align 4\n.globl many_bytes\n.type many_bytes, @function\nmany_bytes:\n"
	"push %rbx\nmov %edi, %ebx\nadd $3, %ebx\nlea (%rbx,%rbx,4), %eax\npop %rbx\nret\n"
	".size many_bytes, . - many_bytes\n");

static ucontext_t started, stopped[3];
static int at, results[3];

/* What is no context: rsp and rip could be, the flags or the segments are none that a program has. */
static volatile unsigned long alike[3][4];
static const unsigned long unlike[3][2] = { { 0x44, 0x33 }, { 0x246, 0x700000033 }, { 0x246, 0x2b } };

static int is_alike(int made)
{
	for (int i = 0; i < 3; i++) {
		unsigned long words[] = { (unsigned long)&made, (unsigned long)many_bytes + 1, unlike[i][0], unlike[i][1] };
		for (int k = 0; k < 4; k++)
			if (made)
				alike[i][k] = words[k];
			else if (k && alike[i][k] != words[k])
				return 0;
	}
	return 1;
}

static void on_trap(int number, siginfo_t *info, void *data)
{
	greg_t *registers = ((ucontext_t *)data)->uc_mcontext.gregs;
	(void)number, (void)info;
	if (registers[REG_RIP] - (greg_t)many_bytes != (at ? 2 * at - 1 : 0))
		return;
	registers[REG_EFL] &= ~0x100;
	swapcontext(&stopped[at], &started);
}

static void body(void)
{
	int mine = at;
	__asm__ volatile("pushf; orq $0x100, (%%rsp); popf" : : : "memory", "cc");
	results[mine] = many_bytes(mine);
	swapcontext(&stopped[mine], &started);
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	char line[20];
	sigaction(SIGTRAP, &action, NULL);
	is_alike(1);
	for (at = 0; at < 3; at++) {
		getcontext(&stopped[at]);
		stopped[at].uc_stack.ss_sp = malloc(65536);
		stopped[at].uc_stack.ss_size = 65536;
		makecontext(&stopped[at], body, 0);
		swapcontext(&started, &stopped[at]);
	}
	puts("suspended");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		return 1;
	while (line[0] == 'r' && *(volatile unsigned char *)many_bytes == 0x53)
		usleep(1000);
	for (at = 0; at < 3; at++) {
		swapcontext(&started, &stopped[at]);
		if (results[at] != (at + 3) * 5)
			return 2;
	}
	puts("resumed");
	fflush(stdout);
	if (!is_alike(0))
		return 4;
	return fgets(line, sizeof line, stdin) && many_bytes(1) == 20 ? 7 : 3;
}
"""


@pytest.mark.parametrize("resumed", ["recorded", "later"])
def test_a_context_that_a_signal_preempted_in_bytes_that_are_replaced_goes_on(resumed, graftrace, compile):
    process = subprocess.Popen([compile(PREEMPTED, "-O1")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True, bufsize=1)
    assert process.stdout.readline() == "suspended\n"
    recording = graftrace.start("record", "-P", process.pid, *(["--for", "1ms"] if resumed == "later" else []))
    if resumed == "later":
        recording.communicate(timeout=PATIENCE)
    process.stdin.write(resumed + "\n")
    told = process.stdout.readline()
    process.communicate("x\n", timeout=PATIENCE)
    recording.communicate(timeout=PATIENCE)
    assert (told, process.returncode) == ("resumed\n", 7)


# Its loop's jump of two bytes is led over an island in the padding behind it. The trap flag stops it there: it is set
# behind the stub, whose slow half no handler may interrupt.
ISLAND = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

int loops(int rounds);
__asm__(".text\n.p2align 4\n.globl loops\n.type loops, @function\nloops:\n"
	"push %rsi\npopf\nadd $3, %eax\nsub $1, %edi\njnz loops\nret\n.size loops, . - loops\n.p2align 4\n");

static void on_trap(int number, siginfo_t *info, void *data)
{
	greg_t *registers = ((ucontext_t *)data)->uc_mcontext.gregs;
	(void)number, (void)info;
	if (registers[REG_RIP] - (greg_t)loops < 11 || registers[REG_RIP] - (greg_t)loops >= 16)
		return;
	registers[REG_EFL] &= ~0x100;
	registers[REG_RSI] &= ~0x100;
	puts("at the island");
	while (*(volatile unsigned char *)loops == 0xe9)
		usleep(1000);
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	char line[20];
	int result = 0, rounds = 5;
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGTRAP, &action, NULL);
	puts("ready");
	if (!fgets(line, sizeof line, stdin))
		return 1;
	__asm__ volatile("pushf; popq %%rsi; orq $0x100, %%rsi; call loops"
			 : "+a"(result), "+D"(rounds) : : "rsi", "memory", "cc");
	puts(result == 15 ? "right" : "wrong");
	return !fgets(line, sizeof line, stdin);
}
"""


@pytest.mark.parametrize("how", ["left", "filtered"])
def test_a_thread_that_stands_at_an_island_goes_on_when_the_island_goes(how, graftrace, compile):
    with Running(compile(ISLAND, "-O1", "-mno-red-zone")) as target:
        tracer = start_recording(graftrace, target.pid)
        assert target("step") == "at the island"
        if how == "filtered":
            graftrace("set", "-P", target.pid, "set_ftrace_filter", "main")
            assert target.line() == "right"
        tracer.send_signal(signal.SIGINT)
        if how == "left":
            assert target.line() == "right"
        assert tracer.wait(PATIENCE) == 0
        tracer.communicate()


# It sleeps in a call; behind that is its loop's jump of five bytes, which is patched.
BEFORE_A_JUMP = r"""
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

long waits(int end, void *buffer, long bytes);
__asm__(".text\n.p2align 4\n.globl waits\n.type waits, @function\nwaits:\n"
	"xor %eax, %eax\ncmpb $0, (%rsi)\njnz 1f\nsyscall\n.byte 0xe9\n.long waits - . - 4\n"
	"1: ret\n.size waits, . - waits\n.p2align 4\n");

int main(void)
{
	char buffer[2] = { 0 };
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	waits(0, buffer, 1);
	puts(buffer);
	return getchar() != '\n';
}
"""


@pytest.mark.parametrize("how", ["left", "filtered"])
def test_a_call_that_is_restarted_before_a_jump_that_goes_is_restarted(how, graftrace, compile):
    with Running(compile(BEFORE_A_JUMP, "-O1")) as target:
        tracer = start_recording(graftrace, target.pid)
        if how == "filtered":
            graftrace("set", "-P", target.pid, "set_ftrace_filter", "main")
            assert target("x") == "x"
        tracer.send_signal(signal.SIGINT)
        assert tracer.wait(PATIENCE) == 0
        tracer.communicate()
        if how == "left":
            assert target("x") == "x"
        assert target.process.wait(PATIENCE) == 0


# Its handler calls itself, with a word between that leads off the stack where a signal's frame would have rsp.
CALLS_ITSELF = r"""
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int faults(int *page);
__asm__(".text\n.p2align 4\n.globl faults\n.type faults, @function\nfaults:\n"
	"xor %ecx, %ecx\nmov (%rdi), %ecx\nlea 7(%rcx), %eax\nret\n.size faults, . - faults\n.p2align 4\n");

static char elsewhere[4096] __attribute__((aligned(4096)));
static int *page = (int *)elsewhere;

void on_fault(int number)
{
	void *volatile words[64];
	for (int i = 0; i < 64; i++)
		words[i] = number && i == 20 ? elsewhere : 0;
	if (number) {
		on_fault(0);
	} else {
		puts("in the handler");
		while (*(volatile unsigned char *)faults != 0xe9)
			usleep(1000);
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
	}
	__asm__ volatile("" : : "r"(words) : "memory");
}

int main(void)
{
	char line[20];
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGSEGV, on_fault);
	mprotect(page, 4096, PROT_NONE);
	puts("ready");
	if (!fgets(line, sizeof line, stdin))
		return 1;
	printf("%d\n", faults(page));
	return !fgets(line, sizeof line, stdin);
}
"""


def test_a_frame_of_a_traced_handler_that_calls_itself_is_one(graftrace, compile):
    with Running(compile(CALLS_ITSELF, "-O1")) as target:
        tracer = start_recording(graftrace, target.pid, "-l", "on_fault")
        assert target("go") == "in the handler"
        graftrace("set", "-P", target.pid, "set_ftrace_filter", "on_fault faults")
        assert target.line() == "7"
        tracer.send_signal(signal.SIGINT)
        assert tracer.wait(PATIENCE) == 0
        tracer.communicate()


# Works in three threads, and brings all of them into a sandbox some milliseconds later.
SANDBOXED = r"""
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile int begun, ends;
__attribute__((noinline)) long leaf(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 3 + 1;
}
static void *works(void *argument)
{
	struct timespec pause = { 0, 100000 };
	__atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
	while (!ends) {
		for (long i = 0; i < 100; i++)
			leaf(i);
		nanosleep(&pause, NULL);
	}
	return argument;
}
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	ALLOW(SYS_write), ALLOW(SYS_exit), ALLOW(SYS_exit_group), ALLOW(SYS_nanosleep), ALLOW(SYS_clock_nanosleep),
	ALLOW(SYS_futex), ALLOW(SYS_rt_sigreturn), ALLOW(SYS_madvise), ALLOW(SYS_munmap), ALLOW(SYS_gettid),
	ALLOW(SYS_getpid), ALLOW(SYS_rt_sigprocmask), ALLOW(SYS_restart_syscall),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
};
int main(int argc, char **argv)
{
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, works, NULL);
	while (begun < 3) /* a thread that begins makes calls that the filter forbids */
		usleep(100);
	usleep((unsigned)atoi(argv[argc - 1]) * 1000);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
		return 1;
	usleep(700000);
	ends = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	_exit(42);
}
"""


def test_a_program_that_enters_a_sandbox_meanwhile_lives_on(graftrace, compile):
    program = compile(SANDBOXED, "-O1", "-pthread")
    for ms in range(10, 130, 10):
        target = subprocess.Popen([program, str(ms)])
        host = graftrace.start("record", "--libs", "-P", str(target.pid), "--for", "200ms")
        host.communicate(timeout=PATIENCE)
        assert target.wait(PATIENCE) == 42, ms


# Three threads are in the agent most of the time, whose buffers are small: they wait there for room. Two others bring all
# of them into a sandbox at once, which forbids that.
SANDBOXED_AT_WORK = r"""
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile int begun, enters, entered, calls[3];
__attribute__((noinline)) long deep(long n)
{
	long found = n > 0 ? deep(n - 1) : 3;
	__asm__ volatile("" : "+r"(found));
	return found;
}
static void *works(void *argument)
{
	__atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		deep(60);
		++*(volatile int *)argument;
	}
	return NULL;
}
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(SYS_seccomp), ALLOW(SYS_munmap), ALLOW(SYS_restart_syscall),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
};
static void *enters_it(void *argument)
{
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	__atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
	while (!enters)
		;
	syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	__atomic_add_fetch(&entered, 1, __ATOMIC_SEQ_CST);
	for (;;)
		;
	return argument;
}
int main(void)
{
	char c;
	pthread_t thread;
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, works, (void *)&calls[i]);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread, NULL, enters_it, NULL);
	while (begun < 5) /* a thread that begins makes calls that the filter forbids */
		;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	write(1, "ready\n", 6);
	if (read(0, &c, 1) != 1)
		return 1;
	enters = 1;
	while (entered < 1)
		;
	for (int i = 0; i < 3; i++) /* each goes on */
		for (int before = calls[i]; calls[i] < before + 1000;)
			;
	syscall(SYS_exit_group, 42);
}
"""


def test_threads_in_the_agent_when_all_enter_a_sandbox(graftrace, compile):
    program = compile(SANDBOXED_AT_WORK, "-O1", "-pthread")
    for _ in range(10):
        target = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert target.stdout.readline() == b"ready\n"
        host = start_recording(graftrace, target.pid, "-b", "64k")
        target.communicate(b"x", timeout=PATIENCE)
        assert target.returncode == 42
        host.communicate(timeout=PATIENCE)


def test_threads_in_the_agent_when_all_enter_a_sandbox_while_graftrace_leaves(graftrace, compile):
    """They copy a text at each call, by system calls that the sandbox forbids."""
    text = SANDBOXED_AT_WORK.replace("long deep(long n)\n{", """long copies(const char *text)
{
	__asm__ volatile("" : : "r"(text));
	return 0;
}
__attribute__((noinline)) long deep(long n)
{""").replace("deep(60);", "copies(text);").replace("for (;;) {", "char *text = strdup(\"a text\");\n\tfor (;;) {")
    program = compile("#include <string.h>\n" + text, "-O1", "-g", "-pthread", "-D_GNU_SOURCE")
    for number in range(20):
        target = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert target.stdout.readline() == b"ready\n"
        host = start_recording(graftrace, target.pid, "--args", "-b", "4M", "--overwrite")
        host.send_signal(signal.SIGINT)
        time.sleep(number * 0.002)
        target.communicate(b"x", timeout=PATIENCE)
        assert target.returncode == 42, number
        host.communicate(timeout=PATIENCE)


CRASHES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) int falls(int n)
{
	if (n == 0)
		abort();
	int found = falls(n - 1);
	__asm__ volatile("" : "+r"(found));
	return found;
}
int main(void)
{
	char c;
	puts("ready");
	fflush(stdout);
	return (int)read(0, &c, 1) + falls(10);
}
"""


def test_a_core_has_no_buffer_in_it(graftrace, compile, tmp_path):
    """It is as large as without us, give or take our code and a page of each stack's mirror."""
    def core(traced):
        directory = tmp_path / ("traced" if traced else "plain")
        directory.mkdir()
        target = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=directory,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE,
                                                                        2 * (resource.RLIM_INFINITY,)))
        assert target.stdout.readline() == "ready\n"
        host = start_recording(graftrace, target.pid, "-b", "64M") if traced else None
        target.communicate("x", timeout=PATIENCE)
        assert target.returncode == -signal.SIGABRT
        if host is not None:
            host.communicate(timeout=PATIENCE)
        found = list(directory.glob("core*"))
        return found[0].stat().st_blocks * 512 if found else None

    program = compile(CRASHES, "-O1")
    plain = core(False)
    if plain is None:
        pytest.skip("cores are not written into the directory here")
    assert core(True) < plain + (16 << 20)
