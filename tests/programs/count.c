/* SPDX-License-Identifier: MIT */
/*
 * Keeps and writes the counts that count.h describes. It is never prepared for tracing itself.
 */
#include "tests/programs/count.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAR_SITES 64

struct count_site *count_sites;
__thread int count_depth __attribute__((tls_model("initial-exec")));

static struct count_site far_sites[FAR_SITES];
static char far_names[FAR_SITES][48];
static int far_count;

struct count_site *count_far(const char *name)
{
	int count = __atomic_load_n(&far_count, __ATOMIC_ACQUIRE);

	for (int i = 0; i < count && i < FAR_SITES; i++)
		if (far_sites[i].name && !strcmp(far_sites[i].name, name))
			return &far_sites[i];
	/* Two of one name may come of a race; their counts are added by who reads them. */
	int mine = __atomic_fetch_add(&far_count, 1, __ATOMIC_ACQ_REL);
	if (mine >= FAR_SITES)
		abort();
	snprintf(far_names[mine], sizeof far_names[mine], "%s", name);
	far_sites[mine].name = far_names[mine];
	count_list(&far_sites[mine]);
	return &far_sites[mine];
}

void count_named(const char *name)
{
	count_enter(count_far(name));
}

void count_left(void)
{
	--count_depth;
}

static void put(int file, const char *text, size_t length)
{
	while (length) {
		ssize_t done = write(file, text, length);
		if (done <= 0)
			return;
		text += done;
		length -= (size_t)done;
	}
}

void count_forget(void)
{
	for (struct count_site *site = count_sites; site; site = site->next) {
		site->calls = 0;
		memset(site->at, 0, sizeof site->at);
		site->deeper = site->deeper_sum = site->deeper_max = 0;
	}
}

void count_write(void)
{
	static char text[1 << 18];
	const char *path = getenv("GT_COUNTS");
	size_t used;

	if (!path)
		return;
	int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (file < 0)
		return;
	used = (size_t)snprintf(text, sizeof text, "pid %d\n", (int)getpid());
	for (struct count_site *site = count_sites; site; site = site->next) {
		if (!site->calls || used > sizeof text - 8192)
			continue;
		used += (size_t)snprintf(text + used, sizeof text - used, "count %s %lu\n",
					 site->name, site->calls);
		for (int i = 0; i < COUNT_DEPTHS && !site->light; i++)
			if (site->at[i])
				used += (size_t)snprintf(text + used, sizeof text - used,
							 "depth %s %d %lu\n", site->name, i,
							 site->at[i]);
		if (site->deeper)
			used += (size_t)snprintf(text + used, sizeof text - used,
						 "deeper %s %lu %lu %lu\n", site->name,
						 site->deeper, site->deeper_sum, site->deeper_max);
	}
	put(file, text, used);
	close(file);
	count_forget();
}

__attribute__((destructor)) static void count_at_exit(void)
{
	count_write();
}
