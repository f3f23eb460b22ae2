/* SPDX-License-Identifier: MIT */
/*
 * A program that does one thing all the time and knows what must come out: what tracers get wrong.
 * Attached to and left while it runs. `storm MODE [LIBRARY]`: prints "ready", goes on until its
 * standard input ends, then says "ok ROUNDS", or at once "wrong …".
 */
#include "tests/programs/storm.h"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define KEEP __attribute__((noinline))

static const char *library;

static void expect(const char *what, long got, long wanted)
{
	if (got == wanted)
		return;
	std::printf("wrong %s: %ld instead of %ld\n", what, got, wanted);
	std::fflush(stdout);
	_exit(1);
}

static bool over()
{
	pollfd input = { 0, POLLIN, 0 };
	return poll(&input, 1, 0) > 0;
}

KEEP static long fib(long n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

/* Exceptions, through a library's frames, from two threads. */

KEEP static long throws(long n)
{
	if (n % 3 == 0)
		throw std::runtime_error(std::to_string(n));
	return n;
}

KEEP static long catches(long n, long *gone)
{
	try {
		return storm_pass(throws, n, gone);
	} catch (const std::exception &error) {
		return -std::atol(error.what());
	}
}

KEEP static void throwing_round()
{
	long gone = 0;
	for (long n = 1; n <= 60; n++)
		expect("thrown", catches(n, &gone), n % 3 == 0 ? -n : n + 2);
	expect("clean-ups", gone, 120);
	expect("between", fib(21), 10946);
}

/* From eight threads that do nothing else: at every moment most of them are in the unwinder. */

#define THROWERS 8

KEEP static long throws_below(long n)
{
	if (n > 0)
		return throws_below(n - 1) + 1;
	throw std::runtime_error("below");
}

KEEP static long deep(long n);

KEEP static void nothing_but_throws_round()
{
	for (long n = 1; n <= 12; n++) {
		long gone = 0, caught = 0;
		/* Where the unwinder's notes will stand, traced calls stood. */
		expect("depth", deep(90), 90);
		try {
			storm_pass(throws_below, n, &gone);
		} catch (const std::exception &) {
			caught = 1;
		}
		expect("caught", caught, 1);
		expect("clean-ups", gone, 2);
	}
}

/* Exceptions that are under way for long: clean-ups take most of the time. */

struct slow_guard {
	long *gone;
	~slow_guard()
	{
		expect("a clean-up's sum", fib(20), 6765);
		++*gone;
	}
};

KEEP static long cleans_up(long n, long *gone)
{
	slow_guard guard = { gone };
	if (n == 0)
		throw std::runtime_error("deep");
	return cleans_up(n - 1, gone) + 1;
}

KEEP static void cleaning_round()
{
	long gone = 0, caught = 0;
	try {
		cleans_up(4, &gone);
	} catch (const std::exception &) {
		caught = 1;
	}
	expect("caught", caught, 1);
	expect("slow clean-ups", gone, 5);
}

static bool stop;

static void *throwing_thread(void *round)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		((void (*)())round)();
	return nullptr;
}

/* Threads that come and go. */

static void *short_thread(void *argument)
{
	return (void *)fib((long)argument);
}

KEEP static void threads_round()
{
	pthread_t threads[16];
	for (long i = 0; i < 16; i++)
		if (pthread_create(&threads[i], nullptr, short_thread, (void *)(i % 8)) != 0)
			expect("threads", i, 16);
	for (long i = 0; i < 16; i++) {
		void *result;
		pthread_join(threads[i], &result);
		expect("a thread", (long)result, fib(i % 8));
	}
}

/* Coroutines: each has calls open while the others run. */

#define COROUTINES 6
static ucontext_t main_context, contexts[COROUTINES];
static long sums[COROUTINES];
static int running;

KEEP static long gives(long n)
{
	sums[running] += fib(n % 6);
	swapcontext(&contexts[running], &main_context);
	return n + 1;
}

KEEP static long nests(long n)
{
	return n == 0 ? gives(running) : nests(n - 1) + 1;
}

static void coroutine()
{
	for (;;)
		expect("a coroutine", nests(running + 3), 2 * running + 4);
}

KEEP static void coroutines_round()
{
	for (running = 0; running < COROUTINES; running++) {
		long before = sums[running];
		swapcontext(&main_context, &contexts[running]);
		expect("a coroutine's sum", sums[running] - before, fib(running));
	}
}

static void coroutines_begin()
{
	for (int i = 0; i < COROUTINES; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_size = 256 * 1024;
		contexts[i].uc_stack.ss_sp = mmap(nullptr, 256 * 1024, PROT_READ | PROT_WRITE,
						  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		makecontext(&contexts[i], coroutine, 0);
	}
}

/* Code that is made, changed and called, and calls back. */

static uint8_t *code;

KEEP static long called_back(long n)
{
	return fib(n % 10) * 2;
}

KEEP static void jit_round()
{
	static uint32_t number;
	for (int i = 0; i < 50; i++) {
		long n = ++number % 10;
		uint8_t *at = code + (number % 64) * 64;
		uint64_t target = (uint64_t)called_back;
		const uint8_t begin[] = {
			0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8
		};						  /* push, mov, movabs rax */
		const uint8_t end[] = { 0xff, 0xd0, 0x48, 0x05 }; /* call rax; add rax, imm32 */
		std::memcpy(at, begin, 6);
		std::memcpy(at + 6, &target, 8);
		std::memcpy(at + 14, end, 4);
		std::memcpy(at + 18, &number, 4);
		std::memcpy(at + 22, "\x5d\xc3", 2);
		long (*made)(long) = (long (*)(long))at;
		expect("made code", made(n), fib(n) * 2 + number);
	}
}

/* A library that is loaded and unloaded. */

KEEP static void loading_round()
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (handle == nullptr)
		expect(dlerror(), 0, 1);
	long (*sum)(long) = (long (*)(long))dlsym(handle, "storm_sum");
	expect("a sum", sum(50), 50 * 51 / 2);
	dlclose(handle);
}

/* Calls within calls, far down, and frames of all sizes. */

KEEP static long deep(long n)
{
	if (n <= 0)
		return 0;
	if (n % 100 != 0)
		return deep(n - 1) + 1;
	volatile char room[700];
	room[n % 700] = (char)n;
	return deep(n - 1) + (room[n % 700] == (char)n);
}

KEEP static void deep_round()
{
	expect("depth", deep(40000), 40000);
}

/* Signals in the middle of calls, on a stack of their own, some that never return. */

static sigjmp_buf out;
static volatile sig_atomic_t signals, may_leave;

KEEP static long in_handler(long n)
{
	return fib(n);
}

static void on_alarm(int)
{
	signals = signals + 1;
	expect("a handler's call", in_handler(6), 8);
	if (may_leave && signals % 5 == 0)
		siglongjmp(out, 1);
}

static void on_usr1(int)
{
	signals = signals + 1;
	expect("a handler's call", in_handler(5), 5);
}

KEEP static void signals_round()
{
	if (sigsetjmp(out, 1) == 0) {
		may_leave = 1;
		for (int i = 0; i < 10; i++) {
			raise(SIGUSR1);
			expect("interrupted", fib(12), 144);
		}
	}
	may_leave = 0;
	expect("after a signal", fib(8), 21);
}

static void signals_begin()
{
	struct sigaction action;
	stack_t stack;
	itimerval often = { { 0, 700 }, { 0, 700 } };
	std::memset(&action, 0, sizeof(action));
	stack.ss_flags = 0;
	stack.ss_size = 64 * 1024;
	stack.ss_sp = mmap(nullptr, stack.ss_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaltstack(&stack, nullptr);
	action.sa_handler = on_usr1;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, nullptr);
	action.sa_handler = on_alarm;
	action.sa_flags = 0;
	sigaction(SIGALRM, &action, nullptr);
	setitimer(ITIMER_REAL, &often, nullptr);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*round)();
		void (*begin)();
		int others; /* threads that do the same */
	} modes[] = { { "throw", throwing_round, nullptr, 1 },
		      { "cleans", cleaning_round, nullptr, 1 },
		      { "throwers", nothing_but_throws_round, nullptr, THROWERS - 1 },
		      { "threads", threads_round, nullptr, 0 },
		      { "coroutines", coroutines_round, coroutines_begin, 0 },
		      { "jit", jit_round, nullptr, 0 },
		      { "load", loading_round, nullptr, 0 },
		      { "deep", deep_round, nullptr, 0 },
		      { "signals", signals_round, signals_begin, 0 } };
	pthread_t others[THROWERS];
	long rounds = 0;

	library = argc > 2 ? argv[2] : "";
	code = (uint8_t *)mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (const auto &mode : modes) {
		if (argc < 2 || std::strcmp(argv[1], mode.name) != 0)
			continue;
		if (mode.begin != nullptr)
			mode.begin();
		for (int i = 0; i < mode.others; i++)
			pthread_create(&others[i], nullptr, throwing_thread, (void *)mode.round);
		std::puts("ready");
		std::fflush(stdout);
		for (; !over(); rounds++)
			mode.round();
		__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
		for (int i = 0; i < mode.others; i++)
			pthread_join(others[i], nullptr);
		const itimerval never = { { 0, 0 }, { 0, 0 } };
		setitimer(ITIMER_REAL, &never, nullptr);
		std::printf("ok %ld\n", rounds);
		return 0;
	}
	return 2;
}
