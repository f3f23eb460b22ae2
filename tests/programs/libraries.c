/* SPDX-License-Identifier: MIT */
/*
 * A program with a shared library of its own, and with one that it loads and unloads 50 times.
 * Arguments: linked, or loop PATH, or pair PATH PATH (two libraries in turn), or threads PATH.
 */
#include "tests/programs/count.h"
#include "tests/programs/library.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile long sum;

typedef long work_fn(long, void (*)(long));

COUNTED long back(long n)
{
	ENTER();
	__atomic_fetch_add(&sum, n, __ATOMIC_RELAXED); /* of four threads at once */
	LEAVE();
	return n * 2;
}

COUNTED void plugin_calls_back(long n)
{
	ENTER();
	back(n);
	LEAVE();
}

COUNTED long once(const char *path, const char *symbol, long n)
{
	ENTER();
	void *handle = dlopen(path, RTLD_NOW);
	long r = -1;
	if (!handle) {
		printf("%s\n", dlerror());
	} else {
		work_fn *work = (work_fn *)dlsym(handle, symbol);
		r = work ? work(n, plugin_calls_back) : -2;
		dlclose(handle);
	}
	LEAVE();
	return r;
}

COUNTED void *loader(void *path)
{
	ENTER();
	long r = 0;
	for (int i = 0; i < 10; i++)
		r = once(path, "plugin_work", 5);
	(void)r; /* other threads may keep the library loaded, and its state */
	LEAVE();
	return NULL;
}

int main(int argc, char **argv)
{
	ENTER();
	if (argc < 2)
		return 2;
	long total = 0;
	if (!strcmp(argv[1], "linked")) {
		for (int i = 0; i < 50; i++)
			total += library_work(i % 5, back);
	} else if (!strcmp(argv[1], "loop") && argc > 2) {
		for (int i = 0; i < 50; i++)
			total = total * 3 + once(argv[2], "plugin_work", i % 10);
	} else if (!strcmp(argv[1], "pair") && argc > 3) {
		for (int i = 0; i < 20; i++) {
			total = total * 3 + once(argv[2], "plugin_work", i % 10);
			total = total * 3 + once(argv[3], "other_work", i % 10);
		}
	} else if (!strcmp(argv[1], "threads") && argc > 2) {
		pthread_t threads[4];
		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, loader, argv[2]);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	} else {
		return 2;
	}
	printf("%s %ld %ld\n", argv[1], total, sum);
	LEAVE();
	return 0;
}
