/* SPDX-License-Identifier: MIT */
/*
 * System calls where tracers get them wrong: restarted ones, handlers that make more, jumps out of handlers,
 * cancelled threads, children on their parent's stack. What comes out is the same each time.
 * syscall_storm ROUNDS [SECONDS]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
extern char **environ;
static volatile long handled, jumped;
static int rounds = 200;
static void check(int ok, const char *what)
{
	if (!ok) {
		printf("WRONG: %s errno %d\n", what, errno);
		fflush(stdout);
		_exit(3);
	}
}
static void handler(int s)
{
	int e = errno;
	char c[4];
	handled++;
	check(syscall(SYS_gettid) > 0, "gettid in handler");
	check(getppid() > 0, "getppid in handler");
	int f = open("/dev/null", O_WRONLY);
	check(f >= 0, "open in handler");
	check(write(f, c, 4) == 4, "write in handler");
	check(close(f) == 0, "close in handler");
	errno = e;
}
static sigjmp_buf env;
static void jumper(int s)
{
	jumped++;
	siglongjmp(env, 1);
}
static void timer(long us)
{
	struct itimerval t = { { 0, us }, { 0, us } };
	check(setitimer(ITIMER_REAL, &t, NULL) == 0, "setitimer");
}
static void restarts(void)
{
	int p[2];
	char byte;
	struct sigaction a = { .sa_handler = handler, .sa_flags = SA_RESTART };
	check(sigaction(SIGALRM, &a, NULL) == 0, "sigaction");
	check(pipe(p) == 0, "pipe");
	timer(300);
	pid_t pid = fork();
	check(pid >= 0, "fork");
	if (!pid) {
		for (int i = 0; i < rounds; i++) {
			struct timespec t = { 0, 200000 };
			while (nanosleep(&t, &t) != 0)
				check(errno == EINTR, "nanosleep");
			check(write(p[1], "x", 1) == 1, "write");
		}
		_exit(7);
	}
	for (int i = 0; i < rounds; i++)
		check(read(p[0], &byte, 1) == 1 && byte == 'x', "restarted read");
	int status;
	check(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7, "restarted waitpid");
	/* restart_block: stop and continue */
	a.sa_flags = 0;
	sigaction(SIGALRM, &a, NULL);
	int eintr = 0;
	for (int i = 0; i < 100000 && eintr < rounds; i++) {
		if (poll(NULL, 0, 20) < 0) {
			check(errno == EINTR, "poll");
			eintr++;
		}
	}
	check(eintr >= 1, "some EINTR");
	timer(0);
	pid = fork();
	if (!pid) {
		for (int i = 0; i < 20; i++) {
			kill(getppid(), SIGSTOP);
			usleep(500);
			kill(getppid(), SIGCONT);
			usleep(300);
		}
		_exit(0);
	}
	struct timespec t = { 0, 60000000 };
	check(nanosleep(&t, NULL) == 0, "nanosleep over stops");
	struct pollfd fd = { p[0], POLLIN, 0 };
	check(poll(&fd, 1, 20) == 0, "poll over stops");
	check(waitpid(pid, &status, 0) == pid, "waitpid");
	close(p[0]);
	close(p[1]);
}
static void jumps(void)
{
	int p[2];
	char byte;
	struct sigaction a = { .sa_handler = jumper, .sa_flags = SA_RESTART | SA_NODEFER };
	check(pipe(p) == 0, "pipe");
	sigaction(SIGALRM, &a, NULL);
	for (volatile int i = 0; i < rounds; i++) {
		if (sigsetjmp(env, 1) == 0) {
			struct itimerval t = { { 0, 0 }, { 0, 300 } };
			setitimer(ITIMER_REAL, &t, NULL);
			check(read(p[0], &byte, 1) == 0, "never");
		}
	}
	check(jumped == rounds, "jumps");
	signal(SIGALRM, SIG_IGN);
	close(p[0]);
	close(p[1]);
}
static void *reader(void *arg)
{
	int *p = arg;
	char byte;
	read(p[0], &byte, 1);
	return (void *)1;
}
static void *async_reader(void *arg)
{
	int *p = arg;
	char byte;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;) {
		syscall(SYS_getppid);
		syscall(SYS_read, p[0], &byte, 0);
	}
}
static int cleaned;
static void cleanup(void *x)
{
	__atomic_add_fetch(&cleaned, 1, __ATOMIC_SEQ_CST);
}
static void *cleaner(void *arg)
{
	int *p = arg;
	char byte;
	pthread_cleanup_push(cleanup, NULL);
	for (;;) {
		read(p[0], &byte, 1);
		pause();
	}
	pthread_cleanup_pop(0);
}
static void cancels(void)
{
	int p[2];
	check(pipe(p) == 0, "pipe");
	fcntl(p[0], F_SETFL, 0);
	for (int i = 0; i < rounds; i++) {
		pthread_t t;
		void *r;
		void *(*f)(void *) = i % 3 == 0 ? reader : i % 3 == 1 ? async_reader : cleaner;
		check(pthread_create(&t, NULL, f, p) == 0, "create");
		if (i % 2)
			usleep(200);
		check(pthread_cancel(t) == 0, "cancel");
		check(pthread_join(t, &r) == 0, "join");
		check(r == PTHREAD_CANCELED, "cancelled");
	}
	close(p[0]);
	close(p[1]);
}
static char stack[65536];
static int child(void *a)
{
	_exit(*(int *)a);
}
static void births(void)
{
	int status;
	pid_t pid;
	for (int i = 0; i < rounds / 4; i++) {
		pid = vfork();
		if (!pid) {
			execl("/bin/true", "true", NULL);
			_exit(9);
		}
		check(waitpid(pid, &status, 0) == pid && status == 0, "vfork exec");
		pid = vfork();
		if (!pid) {
			dup2(1, 60);
			close(60);
			_exit(5);
		}
		check(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 5, "vfork exit");
		char *argv[] = { "true", NULL };
		check(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0, "spawn");
		check(waitpid(pid, &status, 0) == pid && status == 0, "spawned");
		check(posix_spawn(&pid, "/no/such", NULL, NULL, argv, environ) == ENOENT,
		      "spawn fails");
		int code = i & 63;
		pid = clone(child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &code);
		check(pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == code,
		      "clone vm vfork");
		pid = clone(child, stack + sizeof(stack), SIGCHLD, &code);
		check(pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == code,
		      "clone");
		pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (!pid)
			syscall(SYS_exit_group, 3);
		check(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3, "raw clone");
		pid = syscall(SYS_fork);
		if (!pid)
			_exit(system("exit 4") >> 8);
		check(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 4, "raw fork");
	}
}
static volatile int over;
static void *worker(void *arg)
{
	long n = 0;
	while (!over) {
		n += getppid() > 0;
		sched_yield();
		struct timespec t = { 0, 10000 };
		nanosleep(&t, NULL);
	}
	return (void *)n;
}
int main(int argc, char **argv)
{
	pthread_t w[3];
	if (argc > 1)
		rounds = atoi(argv[1]);
	int seconds = argc > 2 ? atoi(argv[2]) : 0;
	time_t end = time(NULL) + seconds;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < 3; i++)
		check(pthread_create(&w[i], NULL, worker, NULL) == 0, "create");
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	do {
		jumped = 0;
		restarts();
		jumps();
		cancels();
		births();
		check(munmap(mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			     1 << 20) == 0,
		      "munmap");
	} while (time(NULL) < end);
	over = 1;
	for (int i = 0; i < 3; i++) {
		void *n;
		pthread_join(w[i], &n);
		check((long)n > 0, "worked");
	}
	check(handled > 0, "handled");
	check(cleaned > 0, "cleaned");
	printf("all as it should be\n");
	return 42;
}
