/* SPDX-License-Identifier: MIT */
/*
 * Programs to attach to. Reads commands from its standard input, a line each, and answers each with
 * a line; what goes wrong meanwhile (a result that no call should have, a system call that came
 * back) is told by `check`. Usage: attached [waits | work | plain]
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static char wrong[4096];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long rounds;
static volatile int stop;

static void complain(const char *what, long result, int error)
{
	pthread_mutex_lock(&lock);
	size_t used = strlen(wrong);
	snprintf(wrong + used, sizeof(wrong) - used, "%s: %ld (%s); ", what, result,
		 strerror(error));
	pthread_mutex_unlock(&lock);
}

/* Calls whose results are known. */

KEEP int leaf(int x)
{
	__asm__ volatile("" ::: "memory");
	return x * 3 + 1;
}

KEEP int middle(int x)
{
	int sum = 0;
	for (int i = 0; i < 10; i++)
		sum += leaf(x + i);
	return sum;
}

KEEP double half(double x)
{
	__asm__ volatile("" ::: "memory");
	return x / 2 + leaf(1);
}

KEEP int outer(int x)
{
	return middle(x) + middle(x + 1) + (int)half(x * 2.0);
}

static int expected(int x)
{
	int sum = 0;
	for (int i = 0; i < 10; i++)
		sum += (x + i) * 3 + 1 + (x + 1 + i) * 3 + 1;
	return sum + x + 4;
}

static void *work(void *data)
{
	int x = (int)(intptr_t)data;
	double kept = x;
	while (!stop) {
		int sum = outer(x);
		if (sum != expected(x))
			complain("outer", sum, 0);
		if (kept * 2 != x * 2.0)
			complain("vector register", (long)kept, 0);
		__atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
		if (x % 2)
			usleep(50);
	}
	return NULL;
}

/* Signals all the time, with traced calls in their handler. */
static void on_alarm(int signal)
{
	(void)signal;
	if (middle(7) != 355)
		complain("handler", middle(7), 0);
}

static void *storm(void *data)
{
	pthread_t to = (pthread_t)data;
	while (!stop) {
		pthread_kill(to, SIGUSR2);
		usleep(200);
	}
	return NULL;
}

/* Threads come and go. */
static void *short_lived(void *data)
{
	if (outer(5) != expected(5))
		complain("short-lived thread", outer(5), 0);
	return data;
}

static void *births(void *data)
{
	while (!stop) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, short_lived, NULL) == 0)
			pthread_join(thread, NULL);
		usleep(500);
	}
	return data;
}

static void *jumps(void *data)
{
	while (!stop) {
		jmp_buf buffer;
		if (setjmp(buffer) == 0) {
			outer(3);
			longjmp(buffer, 1);
		}
		usleep(300);
	}
	return data;
}

/* System calls that wait: each must come back only when it is woken, with its own result. */

static int pipe_ends[2], socket_ends[2], event_ends[2], poll_ends[2];
static uint32_t futex_word;
static pthread_t suspended, waiting;
static volatile bool woken;

static void done(const char *what, bool right, long result, int error)
{
	if (!right || !woken)
		complain(what, result, error);
}

static void *in_read(void *data)
{
	char byte;
	long got = read(pipe_ends[0], &byte, 1);
	done("read", got == 1, got, errno);
	return data;
}

static void *in_recv(void *data)
{
	char byte;
	struct timeval limit = { 3600, 0 };
	setsockopt(socket_ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	long got = recv(socket_ends[0], &byte, 1, 0);
	done("recv", got == 1, got, errno);
	return data;
}

static void *in_epoll(void *data)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN };
	epoll_ctl(epoll, EPOLL_CTL_ADD, event_ends[0], &event);
	long got = epoll_wait(epoll, &event, 1, -1);
	done("epoll_wait", got == 1, got, errno);
	return data;
}

static void *in_poll(void *data)
{
	struct pollfd ends = { .fd = poll_ends[0], .events = POLLIN };
	long got = poll(&ends, 1, 3600 * 1000);
	done("poll", got == 1, got, errno);
	return data;
}

static void *in_futex(void *data)
{
	/* EAGAIN: the word had its new value when the call went on after a stop, of whatever kind.
	 */
	long got = syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, NULL, NULL, 0);
	done("futex", got == 0 || (errno == EAGAIN && futex_word), got, errno);
	return data;
}

static void *in_nanosleep(void *data)
{
	struct timespec time = { 3600, 0 };
	long got = syscall(SYS_nanosleep, &time, NULL);
	done("nanosleep", false, got, errno);
	return data;
}

static volatile int handled;

static void on_usr1(int signal)
{
	handled = signal;
}

static void *in_sigsuspend(void *data)
{
	sigset_t none;
	sigemptyset(&none);
	long got = sigsuspend(&none);
	done("sigsuspend", got == -1 && errno == EINTR && handled == SIGUSR1, got, errno);
	return data;
}

static void *in_sigwait(void *data)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	long got = sigwaitinfo(&set, NULL);
	done("sigwaitinfo", got == SIGRTMIN + 3, got, errno);
	return data;
}

static void *in_mutex(void *data)
{
	pthread_mutex_t *mutex = data;
	pthread_mutex_lock(mutex);
	done("mutex", true, 0, 0);
	return data;
}

static pthread_t waiters[16];
static int waiter_count;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static pthread_t wait_in(void *(*function)(void *), void *data)
{
	pthread_create(&waiters[waiter_count], NULL, function, data);
	return waiters[waiter_count++];
}

/* Whether all threads but this one sleep. */
static bool others_sleep(void)
{
	DIR *tasks = opendir("/proc/self/task");
	bool asleep = true;
	for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
		char path[300], text[300] = "";
		snprintf(path, sizeof(path), "/proc/self/task/%s/stat", task->d_name);
		FILE *file = task->d_name[0] == '.' || atoi(task->d_name) == gettid()
				     ? NULL
				     : fopen(path, "r");
		if (file == NULL)
			continue;
		const char *end =
			fgets(text, sizeof(text), file) != NULL ? strrchr(text, ')') : NULL;
		asleep &= end != NULL && end[2] == 'S';
		fclose(file);
	}
	closedir(tasks);
	return asleep;
}

static void start_waits(void)
{
	struct sigaction action = { .sa_handler = on_usr1 };
	sigset_t blocked;
	sigaction(SIGUSR1, &action, NULL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigaddset(&blocked, SIGRTMIN + 3);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	if (pipe(pipe_ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, socket_ends) ||
	    pipe(event_ends) || pipe(poll_ends))
		exit(1);
	pthread_mutex_lock(&held);
	wait_in(in_read, NULL);
	wait_in(in_recv, NULL);
	wait_in(in_epoll, NULL);
	wait_in(in_poll, NULL);
	wait_in(in_futex, NULL);
	suspended = wait_in(in_sigsuspend, NULL);
	waiting = wait_in(in_sigwait, NULL);
	wait_in(in_mutex, &held);
	pthread_t never;
	pthread_create(&never, NULL, in_nanosleep, NULL);
	while (!others_sleep())
		usleep(1000);
}

static void wake(void)
{
	woken = true;
	if (write(pipe_ends[1], "a", 1) != 1 || write(socket_ends[1], "a", 1) != 1 ||
	    write(event_ends[1], "a", 1) != 1 || write(poll_ends[1], "a", 1) != 1)
		complain("write", -1, errno);
	futex_word = 1;
	syscall(SYS_futex, &futex_word, FUTEX_WAKE, 1, NULL, NULL, 0);
	pthread_kill(suspended, SIGUSR1);
	pthread_kill(waiting, SIGRTMIN + 3);
	pthread_mutex_unlock(&held);
	for (int i = 0; i < waiter_count; i++)
		pthread_join(waiters[i], NULL);
}

/* Commands */

static sigjmp_buf leave;
static int depth;

static int commands(void);

/* A call that never returns: it reads commands itself. */
KEEP int endless(int level)
{
	depth = level;
	int code = level > 1 ? endless(level - 1) : commands();
	__asm__ volatile("" ::: "memory");
	return code + leaf(0) - 1;
}

static void spawn(const char *mode)
{
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		int sum = outer(9);
		if (mode)
			execl("/proc/self/exe", "attached", mode, NULL);
		_exit(sum == expected(9) ? 7 : 8);
	}
	waitpid(child, &status, 0);
	printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static int commands(void)
{
	char line[256];
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (strcmp(line, "check") == 0) {
			pthread_mutex_lock(&lock);
			printf("%s\n", wrong[0] ? wrong : "right");
			pthread_mutex_unlock(&lock);
		} else if (strcmp(line, "rounds") == 0) {
			printf("%lu\n", rounds);
		} else if (strcmp(line, "wake") == 0) {
			wake();
			printf("woken\n");
		} else if (strcmp(line, "call") == 0) {
			printf("%s\n", outer(4) == expected(4) ? "right" : "wrong");
		} else if (strcmp(line, "enter") == 0) {
			printf("entering\n");
			fflush(stdout);
			endless(20);
		} else if (strcmp(line, "leave") == 0) {
			printf("leaving\n");
			fflush(stdout);
			siglongjmp(leave, 1);
		} else if (strcmp(line, "return") == 0) {
			printf("returning\n");
			fflush(stdout);
			return 0;
		} else if (strcmp(line, "fork") == 0) {
			spawn(NULL);
		} else if (strcmp(line, "exec") == 0) {
			spawn("brief");
		} else if (strcmp(line, "end") == 0) {
			exit(0);
		} else {
			printf("what?\n");
		}
		fflush(stdout);
	}
	exit(0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "plain";
	if (strcmp(mode, "brief") == 0)
		return outer(6) == expected(6) ? 9 : 1;
	if (strcmp(mode, "waits") == 0)
		start_waits();
	if (strcmp(mode, "work") == 0) {
		struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
		pthread_t thread, struck;
		sigaction(SIGUSR2, &action, NULL);
		for (intptr_t i = 0; i < 3; i++)
			pthread_create(&struck, NULL, work, (void *)i);
		pthread_create(&thread, NULL, storm, (void *)struck);
		pthread_create(&thread, NULL, births, NULL);
		pthread_create(&thread, NULL, jumps, NULL);
	}
	sigsetjmp(leave, 1);
	if (depth == 0)
		printf("ready\n");
	fflush(stdout);
	for (;;)
		commands();
}
