/* SPDX-License-Identifier: MIT */
/*
 * A program with static events, by <graftrace/event.h> and by notes that it writes itself, as <sys/sdt.h>
 * does. With -DLIBRARY: a library of one event. What it does is its first argument.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <graftrace/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

#ifdef LIBRARY
int library_work(int n);
int library_work(int n)
{
	GRAFTRACE_EVENT(plug, worked, GRAFTRACE_INT(int, n, n));
	return n + 1;
}
#else

/* A probe of one byte, with a semaphore. */
#define NOTE(name, arguments, semaphore)                                  \
	"990: nop\n"                                                      \
	".pushsection .note.stapsdt,\"?\",@note\n.balign 4\n"             \
	".4byte 992f-991f, 994f-993f, 3\n"                                \
	"991: .asciz \"stapsdt\"\n992: .balign 4\n"                       \
	"993: .8byte 990b, _.stapsdt.base, " semaphore "\n"               \
	".asciz \"own\"\n.asciz \"" name "\"\n.asciz \"" arguments "\"\n" \
	"994: .balign 4\n.popsection\n"

volatile unsigned short own_semaphore __attribute__((section(".probes"), used));

static NOINLINE int heard(long value)
{
	if (!own_semaphore)
		return 0;
	__asm__ volatile(NOTE("heard", "-8@%[value]", "own_semaphore") : : [value] "r"(value));
	return 1;
}

static NOINLINE void tell(int count, const char *what, unsigned char small, double price)
{
	GRAFTRACE_EVENT(shop, sold, GRAFTRACE_INT(int, count, count), GRAFTRACE_STRING(what, what),
			GRAFTRACE_INT(unsigned char, small, small),
			GRAFTRACE_INT(long, negative, -5l - count), GRAFTRACE_DOUBLE(price, price),
			GRAFTRACE_POINTER(nowhere, (void *)16));
}

static int fields(void)
{
	static const char longer[] =
		"0123456789012345678901234567890123456789012345678901234567890123456789";

	tell(1, "apples", 200, 2.5);
	tell(-2, "", 0, -0.125);
	tell(3, (const char *)8, 255, 1e300);
	tell(4, longer, 1, 0);
	GRAFTRACE_EVENT0(shop, closed);
	return 0;
}

/* All registers, the flags and the red zone are as they were on the other side of a probe. */
int registers_differ(void);
__asm__(".text\n"
	".globl registers_differ\n.type registers_differ, @function\n"
	"registers_differ:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	"
	"push %r15\n"
	"	mov $101, %eax\n	mov $102, %ebx\n	mov $103, %ecx\n	mov $104, "
	"%edx\n"
	"	mov $105, %esi\n	mov $106, %edi\n	mov $107, %ebp\n	mov $108, "
	"%r8d\n"
	"	mov $109, %r9d\n	mov $110, %r10d\n	mov $111, %r11d\n	mov $112, "
	"%r12d\n"
	"	mov $113, %r13d\n	mov $114, %r14d\n	mov $115, %r15d\n"
	"	movq $116, -8(%rsp)\n	movq $117, -120(%rsp)\n	movq %r15, %xmm0\n"
	"	std\n"
	"	push %rax\n	mov $0x7fffffff, %eax\n	add $1, %eax\n	pop %rax\n"
	"	movq $116, -8(%rsp)\n" /* overflow, sign, adjust */
	NOTE("registers",
	     "8@%rax 8@-120(%rsp) 1@%dh 8f@%xmm0 4@$-7 8@(%rsp,%r15,8) 4@nothing(%rip)",
	     "0") "	lea 0(%rax,%rbx), %rax\n"
		  "	lea 0(%rax,%rbx), %rax\n"
		  "	jno 1f\n	jns 1f\n	jc 1f\n	jz 1f\n"
		  "	pushf\n	cld\n"
		  "	testl $0x400, (%rsp)\n	lea 8(%rsp), %rsp\n	jz 1f\n"
		  "	cmp $305, %rax\n	jne 1f\n	cmp $102, %rbx\n	jne 1f\n"
		  "	cmp $103, %rcx\n	jne 1f\n	cmp $104, %rdx\n	jne 1f\n"
		  "	cmp $105, %rsi\n	jne 1f\n	cmp $106, %rdi\n	jne 1f\n"
		  "	cmp $107, %rbp\n	jne 1f\n	cmp $108, %r8\n	jne 1f\n"
		  "	cmp $109, %r9\n	jne 1f\n	cmp $110, %r10\n	jne 1f\n"
		  "	cmp $111, %r11\n	jne 1f\n	cmp $112, %r12\n	jne 1f\n"
		  "	cmp $113, %r13\n	jne 1f\n	cmp $114, %r14\n	jne 1f\n"
		  "	cmp $115, %r15\n	jne 1f\n	cmpq $117, -120(%rsp)\n	jne 1f\n"
		  "	movq %xmm0, %rax\n	cmp $115, %rax\n	jne 1f\n"
		  "	xor %eax, %eax\n	jmp 2f\n"
		  "1:	cld\n	mov $1, %eax\n"
		  "2:	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop "
		  "%rbp\n	pop %rbx\n	ret\n"
		  ".size registers_differ, .-registers_differ\n");

static volatile sig_atomic_t handled;

static void on_signal(int signal)
{
	/* the other signal's handler may interrupt this one */
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
	GRAFTRACE_EVENT(shop, rang, GRAFTRACE_INT(int, signal, signal));
}

/* Events in a handler that interrupts events, on an alternate stack and on the thread's own. */
static int signals(void)
{
	struct itimerval often = { { 0, 97 }, { 0, 97 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
	long made = 0;

	sigaltstack(&stack, NULL);
	sigaction(SIGALRM, &action, NULL);
	action.sa_flags = SA_NODEFER;
	sigaction(SIGVTALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	setitimer(ITIMER_VIRTUAL, &often, NULL);
	for (; made < 20000 || handled < 20; made++)
		tell((int)made, "again", 1, 1);
	setitimer(ITIMER_REAL, &never, NULL);
	setitimer(ITIMER_VIRTUAL, &never, NULL);
	printf("made %ld rang %d\n", made, (int)handled);
	return 0;
}

#define THREADS 4
#define EACH	20000

static void *storm_thread(void *unused)
{
	for (int i = 0; i < EACH; i++)
		tell(i, "storm", 2, 3);
	return unused;
}

static int storm(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, storm_thread, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("made %d\n", THREADS * EACH);
	return 0;
}

static int plugs(const char *path)
{
	int sum = 0;

	for (int round = 0; round < 4; round++) {
		void *library = dlopen(path, RTLD_NOW);
		int (*work)(int) = library ? (int (*)(int))dlsym(library, "library_work") : NULL;

		if (!work)
			return 1;
		for (int i = 0; i < 10; i++)
			sum += work(i);
		dlclose(library);
	}
	printf("sum %d\n", sum);
	return 0;
}

static int crash(void)
{
	for (int i = 0; i < 5; i++)
		tell(i, "last", 3, 4);
	*(volatile int *)8 = 1;
	return 0;
}

/* As many times as a line says, "threads", "signals" or "alternate", until there are no lines. */
static void sell_one(int number)
{
	(void)number;
	tell(1, "small", 1, 1);
}

#define SMALL 8192

/* On a small alternate stack that has nothing but other memory below. */
static void on_a_small_stack(void)
{
	static char memory[2 * SMALL];
	struct sigaction action = { .sa_handler = sell_one, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_sp = memory + SMALL, .ss_size = SMALL },
		none = { .ss_flags = SS_DISABLE };
	int i = 0;

	memset(memory, 0x55, sizeof(memory));
	sigaction(SIGUSR1, &action, NULL);
	sigaltstack(&stack, NULL);
	raise(SIGUSR1);
	while (i < SMALL && memory[i] == 0x55)
		i++;
	sigaltstack(&none, NULL);
	printf("small: %s\n", i < SMALL ? "overrun" : "kept");
}

static int loop(void)
{
	char line[64];
	long count = 0, times = 0;
	int bad = 0;

	puts("ready");
	fflush(stdout);
	alarm(100);
	while (fgets(line, sizeof(line), stdin)) {
		if (line[0] == 'a') {
			on_a_small_stack();
			fflush(stdout);
			continue;
		}
		if (line[0] == 't' || line[0] == 's') {
			line[0] == 't' ? storm() : signals();
			fflush(stdout);
			continue;
		}
		times = atol(line);
		for (long i = 0; i < times; i++) {
			tell((int)i, "loop", 1, 1);
			count += heard(i);
			bad += registers_differ();
		}
		printf("heard %ld bad %d semaphore %d\n", count, bad, own_semaphore);
		fflush(stdout);
		count = 0;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int i, bad = 0;

	if (strcmp(what, "fields") == 0)
		return fields();
	if (strcmp(what, "signals") == 0)
		return signals();
	if (strcmp(what, "storm") == 0)
		return storm();
	if (strcmp(what, "plugs") == 0)
		return plugs(argv[2]);
	if (strcmp(what, "crash") == 0)
		return crash();
	if (strcmp(what, "loop") == 0)
		return loop();
	for (i = 0; i < 100; i++)
		bad += registers_differ();
	printf("bad %d\n", bad);
	return bad != 0;
}
#endif
