/* SPDX-License-Identifier: MIT */
/*
 * Goes through calls with the processor's trap flag: SIGTRAP's handler runs behind each instruction,
 * in a tracer's code too. First argument, what it does there:
 *
 *	unwind	walks the stack, and prints each stack that was seen, once
 *	call	calls functions
 *	jump	leaves by siglongjmp, at another instruction each time
 *	fork	forks; the child goes on
 *	forks	the same, and the child calls functions first
 *	cancel	is cancelled, with a clean-up below
 *
 * The other arguments say what is called before: "fill N" calls a function N times, before each jump, too;
 * "deep N" a function that calls itself N times.
 * What a tracer does with all signals blocked it does with all but SIGTRAP, for the stack to be walked
 * from there; nothing else is done then. Names that begin with quiet_ must not be traced.
 */
#include <graftrace/event.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#define FRAMED	 NOINLINE
#else
#define NOINLINE __attribute__((noinline, noclone))
#define FRAMED	 NOINLINE __attribute__((optimize("no-omit-frame-pointer")))
#endif
#define TRAP_FLAG	0x100
#define FRAMES		64
#define STACKS		256
#define PLACES		65536u
#define SYS_SIGPROCMASK 14

enum what { UNWIND, CALL, JUMP, FORK, CANCEL, FORK_AND_CALL };
static enum what what;
static volatile int enough, acted, child;
static volatile int depth_now, kind_now = -1;
static sigjmp_buf back;

static char stacks[STACKS][512];
static int stack_count;
static uintptr_t places[PLACES];
static const char *wrong;

/* ---- what is called ---- */

NOINLINE int leaf(int x)
{
	__asm__ volatile("");
	return x + 1;
}

NOINLINE int tail_to(int x)
{
	__asm__ volatile("");
	return leaf(x * 3);
}

NOINLINE int through(int (*volatile function)(int), int x)
{
	int result = function(x);
	__asm__ volatile("" : : : "memory");
	return result + 1;
}

/* Its first instructions push all that a function may. */
NOINLINE long pushes(long a, long b, long c, long d, long e)
{
	long i, sum = 0;
	for (i = 0; i < 2; i++)
		sum += leaf((int)a) * b + leaf((int)c) * d + e * leaf((int)(a + b)) + a * c;
	return sum + a + b * c + d * e;
}

/* No five bytes before its first call. */
__asm__(".text\n.p2align 4\n.globl calls_first\n.type calls_first, @function\ncalls_first:\n"
	".cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbx, 0\n"
	"call leaf\nmov %eax, %ebx\nlea 1(%rbx), %eax\npop %rbx\n.cfi_adjust_cfa_offset -8\n"
	".cfi_restore %rbx\nret\n.cfi_endproc\n.size calls_first, . - calls_first\n");
int calls_first(int x);

/* A short jump that becomes a long one. */
__asm__(".text\n.p2align 4\n.globl jumps_first\n.type jumps_first, @function\njumps_first:\n"
	".cfi_startproc\ntest %edi, %edi\njs 1f\nlea 2(%rdi), %eax\nret\n"
	"1: mov $7, %eax\nret\n.cfi_endproc\n.size jumps_first, . - jumps_first\n");
int jumps_first(int x);

/* Nothing but one byte and its padding; and one that has not even that. */
__asm__(".text\n.globl returns_only\n.type returns_only, @function\nreturns_only:\n"
	".cfi_startproc\nret\n.cfi_endproc\n.size returns_only, . - returns_only\n.p2align 4\n"
	".globl two_bytes\n.type two_bytes, @function\ntwo_bytes:\n.cfi_startproc\n"
	"push %rax\n.cfi_adjust_cfa_offset 8\npop %rax\n.cfi_adjust_cfa_offset -8\nret\n"
	".cfi_endproc\n.size two_bytes, . - two_bytes\n"
	".globl behind_it\n.type behind_it, @function\nbehind_it:\n.cfi_startproc\n"
	"lea 3(%rdi), %eax\nret\n.cfi_endproc\n.size behind_it, . - behind_it\n.p2align 4\n");
void returns_only(void);
void two_bytes(void);
int behind_it(int x);

/* Leaves the frame pointer to be found. */
FRAMED int framed(int x)
{
	volatile char room[200];
	room[x & 63] = (char)x;
	return leaf(room[x & 63]);
}

NOINLINE int deep(int levels)
{
	int result;
	depth_now++;
	result = levels ? deep(levels - 1) + 1 : 0;
	__asm__ volatile("" : : : "memory");
	depth_now--;
	return result;
}

/* Events with fields in registers, in constants and on the stack: in front of a call, and in a leaf. */
NOINLINE int with_events(int a, int b, int c, int d, long e, long f)
{
	volatile int kept = a + b;
	GRAFTRACE_EVENT(steps, many, GRAFTRACE_INT(int, a, a), GRAFTRACE_INT(int, b, b),
			GRAFTRACE_INT(int, c, c), GRAFTRACE_INT(int, d, d),
			GRAFTRACE_INT(long, e, e), GRAFTRACE_INT(long, f, f),
			GRAFTRACE_INT(int, sum, a + b + c + d), GRAFTRACE_INT(int, constant, 77),
			GRAFTRACE_INT(int, kept, kept), GRAFTRACE_INT(int, none, 0));
	return leaf(kept) + leaf(c) * d + (int)(e * f);
}

NOINLINE int leaf_event(int x)
{
	x++;
	GRAFTRACE_EVENT(steps, leaf, GRAFTRACE_INT(int, x, x), GRAFTRACE_INT(int, more, x * 3));
	return x * 5;
}

/* ---- behind each instruction ---- */

struct walk {
	void *at[FRAMES];
	int exact[FRAMES];
	int count;
};

_Unwind_Reason_Code quiet_frame(struct _Unwind_Context *context, void *data)
{
	struct walk *walk = data;
	int exact;
	void *at = (void *)_Unwind_GetIPInfo(context, &exact);
	if (!at)
		return _URC_NO_REASON;
	if (walk->count == FRAMES)
		return _URC_END_OF_STACK;
	walk->exact[walk->count] = exact;
	walk->at[walk->count++] = at;
	return _URC_NO_REASON;
}

NOINLINE const char *quiet_name(void *address)
{
	static struct {
		void *address;
		const char *name;
	} known[4096];
	unsigned at = (unsigned)((uintptr_t)address * 0x9e3779b97f4a7c15ull >> 52);
	Dl_info info;
	if (known[at].address != address) {
		known[at].address = address;
		known[at].name = !dladdr(address, &info) ? "(nowhere)"
				 : info.dli_sname	 ? info.dli_sname
							 : strrchr(info.dli_fname, '/');
	}
	return known[at].name;
}

int main(int argc, char **argv);

void quiet_note(const struct walk *walk)
{
	char text[sizeof *stacks] = "";
	int i, deeps = 0;
	for (i = 0; i < walk->count; i++) {
		const char *name = quiet_name((char *)walk->at[i] - !walk->exact[i]);
		if (!strcmp(name, "deep") && deeps++)
			continue;
		if (strlen(text) + strlen(name) + 2 < sizeof text)
			strcat(strcat(text, " "), name);
	}
	/* A static program has no names. */
	if (strcmp(quiet_name((char *)main + 1), "main"))
		deeps = depth_now;
	if (deeps < depth_now - 1 || deeps > depth_now + 1)
		wrong = "the depth of the recursion";
	for (i = 0; i < stack_count; i++)
		if (!strcmp(stacks[i], text))
			return;
	if (stack_count < STACKS)
		strcpy(stacks[stack_count++], text);
	else
		wrong = "too many stacks";
}

NOINLINE void quiet_unwind(void)
{
	static unsigned walks;
	struct walk walk = { .count = 0 };
	void *frames[FRAMES];
	int count;
	_Unwind_Backtrace(quiet_frame, &walk);
	quiet_note(&walk);
	if (++walks % 4)
		return;
	count = backtrace(frames, FRAMES);
	/* The first frame is this one, at another instruction. */
	if (count != walk.count ||
	    memcmp(frames + 1, walk.at + 1, (size_t)(count - 1) * sizeof *frames))
		wrong = "backtrace() and _Unwind_Backtrace() differ";
}

/* At an instruction of a tracer, for the first time. */
NOINLINE int quiet_is_new(uintptr_t at)
{
	uintptr_t *place = &places[(at * 0x9e3779b97f4a7c15ull) >> 48];
	Dl_info info;
	while (*place && *place != at)
		place = place == &places[PLACES - 1] ? places : place + 1;
	if (*place)
		return 0;
	*place = at;
	return !dladdr((void *)at, &info);
}

void quiet_act(void)
{
	int status;
	pid_t pid;
	acted = 1;
	switch (what) {
	case UNWIND:
		break;
	case CALL:
		leaf(1);
		pushes(1, 2, 3, 4, 5);
		break;
	case JUMP:
		with_events(0, 0, 0, 0, 0, 0);
		siglongjmp(back, 1);
	case CANCEL:
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
		pthread_cancel(pthread_self());
		pthread_testcancel();
		break;
	case FORK:
	case FORK_AND_CALL:
		pid = fork();
		child = enough = !pid;
		if (child && what == FORK_AND_CALL)
			pushes(1, 2, 3, 4, 5);
		if (pid && (waitpid(pid, &status, 0) != pid || status))
			wrong = "a child";
	}
}

void quiet_trap(int number, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	greg_t *registers = context->uc_mcontext.gregs;
	uintptr_t at = (uintptr_t)registers[REG_RIP];
	int all = sigismember(&context->uc_sigmask, SIGUSR1);
	(void)number;
	(void)info;
	if (enough) {
		registers[REG_EFL] &= ~TRAP_FLAG;
		return;
	}
	/* All signals are about to be blocked, or what they were is about to come back. */
	if (registers[REG_RAX] == SYS_SIGPROCMASK && !memcmp((void *)at, "\x0f\x05", 2) &&
	    registers[REG_RSI])
		*(uint64_t *)registers[REG_RSI] &= ~(1ull << (SIGTRAP - 1));
	if (what == UNWIND) {
		/* In the midst of a recursion nothing is new. */
		if ((depth_now < 2 || depth_now > 18) && (!all || quiet_is_new(at)))
			quiet_unwind();
		return;
	}
	if (all) {
		/* Nothing can come here: on from where signals are let in again. */
		registers[REG_EFL] &= ~TRAP_FLAG;
		raise(SIGUSR2);
	} else if (what == CALL || (!acted && quiet_is_new(at))) {
		quiet_act();
	}
}

void quiet_go_on(int number, siginfo_t *info, void *data)
{
	(void)number;
	(void)info;
	if (!enough)
		((ucontext_t *)data)->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static inline __attribute__((always_inline)) void quiet_begin(void)
{
	acted = enough = 0;
	__asm__ volatile("pushf; orq $0x100, (%%rsp); popf" : : : "memory", "cc");
}

static inline __attribute__((always_inline)) void quiet_end(void)
{
	enough = 1;
}

/* ---- the calls ---- */

NOINLINE int calls(int which, int x)
{
	switch (which) {
	case 0:
		return leaf(x);
	case 1:
		return tail_to(x);
	case 2:
		return through(leaf, x) + 1;
	case 3:
		return through(tail_to, x) + 1;
	case 4:
		return (int)pushes(x, 2, 3, 4, 5) + 1;
	case 5:
		return calls_first(x) + 1;
	case 6:
		return jumps_first(x) + jumps_first(-x);
	case 7:
		returns_only();
		two_bytes();
		return behind_it(x) + 1;
	case 8:
		return framed(x) + 1;
	case 9:
		return with_events(x, x + 1, x + 2, x + 3, x + 4, x + 5) + leaf_event(x) + 1;
	default:
		return deep(what == UNWIND ? 26 : 2) + 1;
	}
}
#define KINDS 11

/* One kind, or all (-1). */
NOINLINE int calls_of(int kind, int x)
{
	int which, sum = 0;
	for (which = 0; which < KINDS; which++)
		if (kind < 0 || kind == which)
			sum += calls(which, x);
	return sum;
}

NOINLINE int quiet_stepped(int x)
{
	int kind = kind_now;
	int sum;
	quiet_begin();
	sum = calls_of(kind, x);
	quiet_end();
	__asm__ volatile("nop");
	return sum;
}

/* The same with nothing in between. */
NOINLINE int sum_of(int x)
{
	enough = 1;
	return calls_of(kind_now, x);
}

void *quiet_thread(void *argument)
{
	*(int *)argument = quiet_stepped(3);
	return NULL;
}

static volatile int cleaned;

void quiet_clean(volatile long *value)
{
	if (*value == 0x1234567890)
		cleaned++;
}

NOINLINE int quiet_guarded(int x)
{
	__attribute__((cleanup(quiet_clean))) volatile long value = 0x1234567890;
	return quiet_stepped(x) + (int)(value - 0x1234567890);
}

void *quiet_cancelled(void *argument)
{
	*(int *)argument = quiet_guarded(3);
	enough = 1;
	return NULL;
}

NOINLINE void in_thread(void *(*body)(void *), volatile int *result)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, body, (void *)result) || pthread_join(thread, NULL))
		wrong = "a thread";
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "unwind", "call", "jump", "fork", "cancel", "forks" };
	struct sigaction action = { .sa_sigaction = quiet_trap,
				    .sa_flags = SA_SIGINFO | SA_NODEFER };
	struct sigaction go_on = { .sa_sigaction = quiet_go_on, .sa_flags = SA_SIGINFO };
	void *frames[FRAMES];
	int i, expected, more = 0;
	volatile int result = 0;
	volatile int done = 0;

	for (i = 0; i < 6; i++)
		if (argc > 1 && !strcmp(argv[1], names[i]))
			what = (enum what)i;
	if (argc > 3)
		more = atoi(argv[3]);
	backtrace(frames, FRAMES); /* loads the unwinder */
	if (argc > 3 && !strcmp(argv[2], "deep")) {
		deep(more);
		more = 0;
	}
	for (i = 0; i < more; i++)
		leaf(i);
	expected = sum_of(3);
	sigaction(SIGTRAP, &action, NULL);
	sigaction(SIGUSR2, &go_on, NULL);
	if (what == UNWIND || what == CALL) {
		in_thread(quiet_thread, &result);
		if (result != expected)
			wrong = "a thread's result";
		for (i = 0; i < 2; i++)
			if (quiet_stepped(3) != expected)
				wrong = "the result";
	} else {
		for (kind_now = 0; kind_now < KINDS && !wrong; kind_now += !acted) {
			expected = result = sum_of(3);
			acted = 0;
			for (i = 0; i < more; i++)
				leaf(i);
			if (what == CANCEL) {
				cleaned = 0;
				in_thread(quiet_cancelled, &result);
				if (!cleaned)
					wrong = "no clean-up";
			} else if (!sigsetjmp(back, 1)) {
				result = quiet_stepped(3);
			}
			if (result != expected || sum_of(3) != expected)
				wrong = "the result";
			if (child)
				_exit(wrong != NULL);
			done++;
		}
	}
	if (wrong)
		printf("wrong: %s\n", wrong);
	for (i = 0; i < stack_count; i++)
		printf("%s\n", stacks[i]);
	fprintf(stderr, "%d times\n", done);
	printf("%s: done\n", names[what]);
	return wrong != NULL;
}
