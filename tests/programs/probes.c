/* SPDX-License-Identifier: MIT */
/* A program to probe: what its functions are given is told by its output. "loop": rounds as stdin says. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

struct inner {
	char name[16];
	int number;
};

struct request {
	int id;
	char *path;
	struct inner first;
	struct inner *next;
	unsigned low : 3, high : 5;
	long array[4];
	const char *words[2];
};

int total;

NOINLINE int handle(struct request *request, int depth)
{
	int twice = request->id * 2;

	total += twice;
	if (depth > 2)
		total -= depth;
	return total + (request->path ? (int)strlen(request->path) : 0);
}

NOINLINE long sum(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return a + b + c + d + e + f + g + h;
}

NOINLINE int outer(int n)
{
	struct inner inner = { "inner", n };
	struct request request = { n,
				   n % 3 ? "/some/path" : NULL,
				   { "first", 7 },
				   &inner,
				   5,
				   17,
				   { 1, -2, 3, n },
				   { "one", "two" } };

	return handle(&request, n);
}

/* No jump leads into its loop's body, and its instructions are long. */
NOINLINE long scale(long *values, int count)
{
	long all = 0;

	for (int i = 0; i < count; i++)
		all += values[i] * 1000003 + 0x1234567;
	return all;
}

static void round_of(int times)
{
	long values[4] = { 1, 2, 3, 4 }, result = 0;

	for (int i = 0; i < times; i++) {
		result += outer(i);
		result += sum(i, 2, 3, 4, 5, 6, 7, 8);
		result += scale(values, 4);
	}
	printf("%ld\n", result);
	fflush(stdout);
}

static void *run(void *unused)
{
	round_of(1000);
	return unused;
}

int main(int argc, char **argv)
{
	char line[64];
	pthread_t threads[4];

	if (argc > 1 && strcmp(argv[1], "loop") == 0) {
		printf("ready\n");
		fflush(stdout);
		while (fgets(line, sizeof(line), stdin))
			round_of(atoi(line));
	} else if (argc > 1 && strcmp(argv[1], "threads") == 0) {
		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, run, NULL);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	} else {
		round_of(4);
	}
	return 0;
}
