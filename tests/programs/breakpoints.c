/* SPDX-License-Identifier: MIT */
/*
 * Functions that no jump fits in, and every way to have to do with SIGTRAP: own handlers, blocking
 * it, waiting for it, ignoring it, traps of its own. "loop" goes on for ever, "trap" ends in one, "spin"
 * has threads that do nothing but call such a function.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* Side by side, with no padding and no long stretch of code near them. */
__asm__(".text\n.p2align 4\n"
	".macro function name\n.globl \\name\n.type "
	"\\name,@function\n\\name:\n.cfi_startproc\n.endm\n"
	".macro end name\n.cfi_endproc\n.size \\name,.-\\name\n.endm\n"
	"function one\nret\nend one\n"
	"function two\nret\nend two\n"
	"function calls\ncall *%rdi\nret\nend calls\n"
	"function four\nret\nend four\n"
	"function loops\ndec %edi\njne loops\nret\nend loops\n"
	"function fill\n.rept 40\ncmp $1,%edi\nje 1f\n.endr\n1: ret\nend fill\n");
void one(void), two(void), calls(void (*)(void)), four(void), loops(int), fill(int);

static volatile int sent, own;
static sigjmp_buf back;

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	two();
	if (info->si_code <= 0)
		sent++;
	else
		own++;
}

static void on_signal(int signal)
{
	(void)signal;
	one(); /* with everything blocked */
}

static void leave(int signal)
{
	(void)signal;
	one();
	siglongjmp(back, 1);
}

static void leaf(void)
{
	two();
}

static void *thread(void *nothing)
{
	for (int i = 0; i < 1000; i++) {
		one();
		calls(leaf);
	}
	return nothing;
}

static void say(const char *what)
{
	sigset_t blocked, pending;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	sigpending(&pending);
	printf("%s: sent %d, own %d, blocked %d, pending %d\n", what, sent, own,
	       sigismember(&blocked, SIGTRAP), sigismember(&pending, SIGTRAP));
}

static void say_action(int signal)
{
	struct sigaction now;

	memset(&now, 0, sizeof(now));
	sigaction(signal, NULL, &now);
	printf("action %d %d, trap in its mask %d, flags %x\n", now.sa_sigaction == on_trap,
	       now.sa_handler == SIG_IGN, sigismember(&now.sa_mask, SIGTRAP),
	       (unsigned)now.sa_flags);
}

static void handlers(void)
{
	struct sigaction action;

	say_action(SIGTRAP);
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_trap;
	action.sa_flags = SA_SIGINFO;
	sigfillset(&action.sa_mask);
	sigaction(SIGTRAP, &action, NULL);
	action.sa_flags = 0;
	action.sa_handler = on_signal;
	sigaction(SIGUSR1, &action, NULL);
	say_action(SIGTRAP);
	say_action(SIGUSR1);
	one();
	raise(SIGTRAP);
	raise(SIGUSR1);
	__asm__ volatile("int3");
	say("handled");
}

static void masks(void)
{
	sigset_t all, before, only;
	int signal = 0;

	sigfillset(&all);
	sigemptyset(&only);
	sigaddset(&only, SIGTRAP);
	sigprocmask(SIG_BLOCK, &all, &before);
	one();
	raise(SIGTRAP);
	two();
	say("blocked");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	say("let in");
	pthread_sigmask(SIG_BLOCK, &only, NULL);
	kill(getpid(), SIGTRAP);
	one();
	printf("waited %d", sigwait(&only, &signal));
	printf(" %d\n", signal);
	say("waited");
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	say("let in again");
}

static void waits(void)
{
	struct timespec moment = { 0, 1000000 };
	sigset_t mask;
	const uintptr_t sized[] = { (uintptr_t)&mask, 8 };

	sigfillset(&mask);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	raise(SIGUSR1);
	sigdelset(&mask, SIGUSR1);
	sigsuspend(&mask);
	raise(SIGUSR1);
	ppoll(NULL, 0, &moment, &mask);
	raise(SIGUSR1);
	pselect(0, NULL, NULL, NULL, &moment, &mask);
	raise(SIGUSR1);
	syscall(SYS_pselect6, 0, NULL, NULL, NULL, &moment, sized);
	sigemptyset(&mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	one();
	say("suspended");
}

static void jumps(void)
{
	ucontext_t context;
	volatile int rounds = 0;

	signal(SIGUSR2, leave);
	if (sigsetjmp(back, 1) == 0)
		raise(SIGUSR2);
	one();
	getcontext(&context);
	sigaddset(&context.uc_sigmask, SIGUSR1);
	if (rounds++ == 0)
		setcontext(&context);
	two();
	say("jumped");
}

static void children(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		one();
		four();
		_exit(3);
	}
	waitpid(child, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
	child = vfork();
	if (child == 0) {
		signal(SIGTRAP, SIG_DFL);
		one();
		_exit(4);
	}
	waitpid(child, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
	say_action(SIGTRAP);
	fflush(stdout);
	if (system("exit 5") != 5 << 8)
		printf("system failed\n");
}

static void *spin(void *unused)
{
	volatile int pause;

	for (;;) {
		one();
		for (pause = 0; pause < 500; pause++)
			;
	}
	return unused;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t threads[4];
	int i;

	if (strcmp(what, "spin") == 0) {
		for (i = 0; i < 8; i++)
			pthread_create(&threads[0], NULL, spin, NULL);
		puts("spins");
		fflush(stdout);
		spin(NULL);
	}

	for (i = 0; i < 10; i++) {
		one();
		two();
		calls(leaf);
		four();
		loops(3);
		fill(1);
	}
	handlers();
	masks();
	waits();
	jumps();
	children();
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, thread, NULL);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	signal(SIGTRAP, SIG_IGN);
	raise(SIGTRAP);
	say("ignored");
	say_action(SIGTRAP);
	fflush(stdout);
	if (strcmp(what, "loop") == 0) {
		pthread_create(&threads[0], NULL, (void *(*)(void *))pause, NULL);
		for (;;) {
			thread(NULL);
			usleep(100);
		}
	}
	signal(SIGTRAP, SIG_DFL);
	one();
	if (strcmp(what, "trap") == 0)
		__asm__ volatile("int3");
	printf("end\n");
	return 7;
}
