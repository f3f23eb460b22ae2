// SPDX-License-Identifier: MIT
// What functions are called with and what they return, of each sort that C has. "bad": addresses that are
// none. "mapped": a text that ends where nothing is mapped. "many N": N calls. "threads": from several
// threads and signal handlers at once.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noinline, noipa))
#endif

enum color { RED, GREEN = 5, BLUE = -1 };
struct pair {
	int a, b;
};
struct mixed {
	double x;
	long n;
};
struct large {
	long v[5];
};
typedef const char *text;
union either {
	int i;
	float f;
};

volatile long sink;

KEPT int add(int a, int b)
{
	return a + b;
}

KEPT unsigned numbers(unsigned u, unsigned char c, short s, long l, bool yes, int8_t small)
{
	return (unsigned)(u + c + s + l + yes + small);
}

KEPT text find(text in, char what)
{
	return strchr(in, what);
}

KEPT double fractions(double x, float y, int n)
{
	return x * y + n;
}

KEPT enum color next(enum color c)
{
	return c == RED ? GREEN : BLUE;
}

KEPT int calls(int (*function)(int, int), void *data)
{
	return function(1, 2) + (data != NULL);
}

KEPT struct pair swap(struct pair p, struct large l, int behind)
{
	return (struct pair){ p.b + (int)l.v[4], p.a + behind };
}

KEPT struct mixed mix(struct mixed m, union either e)
{
	return (struct mixed){ m.x + e.i, m.n };
}

KEPT struct large enlarge(int n)
{
	return (struct large){ { n, n, n, n, n } };
}

KEPT long ten(long a, long b, long c, long d, long e, long f, long g, short h, double x, text i)
{
	return a + b + c + d + e + f + g + h + (long)x + (long)strlen(i);
}

KEPT int fails(int error)
{
	return -error;
}

KEPT int is_null(text t)
{
	return t == NULL;
}

KEPT void nothing(void)
{
	sink++;
}

KEPT int tail(int n)
{
	return add(n, n);
}

KEPT unsigned long fact(unsigned long n)
{
	return n < 2 ? 1 : n * fact(n - 1);
}

static void heard(int signal)
{
	sink += fails(signal);
}

static volatile bool sent; /* all signals: no thread is done before */

static void *work(void *data)
{
	for (long i = 0; i < 20000; i++) {
		while (i == 10000 && !sent)
			sched_yield();
		sink += add((int)i, (int)(long)data);
	}
	return data;
}

static void all(void)
{
	struct pair p = { 1, 2 };
	struct large l = { { 10, 20, 30, 40, 50 } };
	struct mixed m = { 0.5, 7 };
	char on_stack[32];

	snprintf(on_stack, sizeof(on_stack), "on the %s", "stack");
	sink = add(1, -2);
	sink = numbers(7, 200, -3, -9, true, -100);
	sink = (long)find("hello world", 'w');
	sink = (long)find(on_stack, '\n');
	sink = (long)fractions(1.5, 2.25f, 3);
	sink = next(RED);
	sink = next(BLUE);
	sink = next((enum color)77);
	sink = calls(add, &l);
	p = swap(p, l, 9);
	m = mix(m, (union either){ .i = 3 });
	l = enlarge(4);
	sink = p.a + p.b + (long)m.x + m.n + l.v[1];
	sink = ten(1, 2, 3, 4, 5, 6, 7, -8, 9.5, "tab\there");
	sink = fails(2);
	sink = fails(9999);
	sink = is_null(NULL);
	nothing();
	sink = tail(21);
	sink = (long)fact(3);
}

static void bad(void)
{
	char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sink = is_null((text)8);
	sink = is_null(page);
	sink = is_null((text)0xdeadbeefdeadbeef);
	sink = is_null((text)-1);
	sink = is_null("good");
}

static void mapped(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(pages + 4096, 4096);
	memset(pages, 'x', 4096);
	sink = is_null(pages + 4092);
	sink = is_null(pages);
}

static void threads(void)
{
	pthread_t made[4];

	signal(SIGUSR1, heard);
	for (long i = 0; i < 4; i++)
		pthread_create(&made[i], NULL, work, (void *)i);
	for (int i = 0; i < 2000; i++)
		pthread_kill(made[i % 4], SIGUSR1);
	sent = true;
	for (int i = 0; i < 4; i++)
		pthread_join(made[i], NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "all";

	if (strcmp(what, "all") == 0)
		all();
	else if (strcmp(what, "bad") == 0)
		bad();
	else if (strcmp(what, "mapped") == 0)
		mapped();
	else if (strcmp(what, "threads") == 0)
		threads();
	else if (strcmp(what, "many") == 0)
		for (long i = 0, n = atol(argv[2]); i < n; i++)
			sink = add((int)i, 1);
	printf("did %s\n", what);
	return 0;
}
