/* SPDX-License-Identifier: MIT */
/*
 * C++ exceptions through nested calls: every destructor runs, the right handler takes them, and what
 * is called next (at another depth, or deeper on the stack than the frames thrown through) stands
 * right in the trace. The first argument names the way.
 */
#include "tests/programs/count.h"
#include <alloca.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

static int destroyed, caught;

extern "C" {

COUNTED void leaf(int n)
{
	GUARDED();
	__asm__ volatile("" ::"r"(n));
}

COUNTED void destroy(int n)
{
	GUARDED();
	destroyed += n;
	leaf(n);
}

COUNTED void deeper(int bytes, int levels)
{
	GUARDED();
	volatile char *room = static_cast<volatile char *>(alloca(static_cast<size_t>(bytes)));
	room[0] = 1;
	if (levels)
		deeper(bytes, levels - 1);
	leaf(room[0]);
}
}

namespace
{
struct Resource {
	int n;
	explicit Resource(int number) : n(number) {}
	~Resource() { destroy(n); }
};

struct Odd : std::runtime_error {
	int n;
	explicit Odd(int number) : std::runtime_error("odd"), n(number) {}
};
}

extern "C" {

COUNTED void throws(int n)
{
	GUARDED();
	leaf(n);
	if (n < 0)
		return;
	if (n & 1)
		throw Odd(n);
	if (n % 4 == 2)
		throw std::string("even");
	throw n;
}

COUNTED void nest(int levels, int n)
{
	GUARDED();
	Resource held(levels);
	if (levels)
		nest(levels - 1, n);
	else
		throws(n);
	leaf(n);
}

/* No destructor, nothing to land on: the unwinder only walks through. */
COUNTED void pass(int levels, int n)
{
	ENTER();
	if (levels)
		pass(levels - 1, n);
	else
		nest(1, n);
	leaf(n);
	LEAVE();
}

COUNTED void rethrows(int levels, int n)
{
	GUARDED();
	Resource held(1);
	try {
		nest(levels, n);
	} catch (const Odd &) {
		leaf(n);
		throw;
	} catch (...) {
		deeper(100, n & 1);
		throw;
	}
}

COUNTED void takes(int n)
{
	GUARDED();
	volatile int depth = count_depth;
	try {
		if (n % 5 == 0)
			pass(n % 3, n);
		else if (n % 5 == 1)
			rethrows(n % 4, n);
		else
			nest(n % 7, n);
		puts("not reached");
	} catch (const Odd &odd) {
		count_depth = depth;
		caught += odd.n;
		leaf(n);
	} catch (const std::string &text) {
		count_depth = depth;
		caught += static_cast<int>(text.size());
		volatile char *room = static_cast<volatile char *>(alloca(4000));
		room[0] = 0;
		leaf(n);
	} catch (int number) {
		count_depth = depth;
		caught += 1000 * number;
		deeper(300, n % 3);
	}
	leaf(n);
	deeper((n & 7) * 50 + 8, n % 4);
}

/* An exception that starts and ends inside a destructor that runs for another one. */
struct Careful {
	COUNTED ~Careful()
	{
		GUARDED();
		try {
			nest(2, 3);
		} catch (const Odd &odd) {
			caught += odd.n;
			leaf(1);
		}
	}
};

COUNTED void within(int n)
{
	GUARDED();
	try {
		Careful careful;
		nest(n % 4, n);
	} catch (...) {
		leaf(n);
		caught++;
	}
	leaf(n);
}

static std::exception_ptr carried;

COUNTED void *carrier(void *)
{
	GUARDED();
	try {
		nest(5, 7);
	} catch (...) {
		carried = std::current_exception();
		leaf(1);
	}
	return nullptr;
}

COUNTED void across(int n)
{
	GUARDED();
	pthread_t thread;
	pthread_create(&thread, nullptr, carrier, nullptr);
	pthread_join(thread, nullptr);
	try {
		leaf(n);
		std::rethrow_exception(carried);
	} catch (const Odd &odd) {
		caught += odd.n;
		leaf(n);
	}
}

COUNTED void leave(int levels)
{
	GUARDED();
	Resource held(levels);
	if (levels)
		leave(levels - 1);
	else
		pthread_exit(nullptr);
	leaf(levels);
}

COUNTED void key_destructor(void *value)
{
	GUARDED();
	leaf(*static_cast<int *>(value));
}

static pthread_key_t key;
static int key_value = 5;

COUNTED void *leaver(void *)
{
	GUARDED();
	pthread_setspecific(key, &key_value);
	leave(4);
	return nullptr;
}

COUNTED void wait_forever(int levels)
{
	GUARDED();
	Resource held(levels);
	if (levels)
		wait_forever(levels - 1);
	else
		for (;;)
			pause();
	leaf(levels);
}

static volatile int waiting;

COUNTED void *cancelled(void *)
{
	GUARDED();
	pthread_setspecific(key, &key_value);
	waiting = 1;
	try {
		wait_forever(4);
	} catch (...) {
		destroyed += 10000;
		leaf(0);
		throw;
	}
	return nullptr;
}

COUNTED void threads(int n)
{
	GUARDED();
	pthread_t thread;
	void *result;
	pthread_create(&thread, nullptr, leaver, nullptr);
	pthread_join(thread, &result);
	waiting = 0;
	pthread_create(&thread, nullptr, cancelled, nullptr);
	while (!waiting)
		usleep(100);
	usleep(500);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	if (result == PTHREAD_CANCELED)
		leaf(n);
}

COUNTED void no_throw(int n) noexcept
{
	GUARDED();
	nest(3, n);
}
}

[[noreturn]] static void terminated()
{
	count_write();
	puts("terminated");
	fflush(stdout);
	abort();
}

int main(int argc, char **argv)
{
	GUARDED();
	if (argc < 2)
		return 2;
	pthread_key_create(&key, key_destructor);
	if (!strcmp(argv[1], "catch"))
		for (int n = 0; n < 300; n++)
			takes(n);
	else if (!strcmp(argv[1], "within"))
		for (int n = 0; n < 50; n++)
			within(n);
	else if (!strcmp(argv[1], "across"))
		for (int n = 0; n < 10; n++)
			across(n);
	else if (!strcmp(argv[1], "threads"))
		for (int n = 0; n < 10; n++)
			threads(n);
	else if (!strcmp(argv[1], "terminate")) {
		std::set_terminate(terminated);
		no_throw(9);
	} else if (!strcmp(argv[1], "uncaught"))
		nest(4, 3);
	printf("%s: %d destroyed, %d caught\n", argv[1], destroyed, caught);
	return 0;
}
