/* SPDX-License-Identifier: MIT */
/*
 * Measures the difference between the kernel's clock and the program's: a marker is written between
 * two readings of our clock, and its record has the kernel's. The narrowest pairs bound the
 * difference from both sides.
 */
#define _GNU_SOURCE
#include "linux/tracer_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <kbuffer.h>

#define MARKERS	   64u
#define TEXT	   "graftrace clock "
#define PAGE_BYTES 65536

struct pair {
	uint64_t before, after;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t gt_kernel_tracer_now(const struct gt_kernel_tracer *tracer)
{
	return tracer->is_tsc ? __rdtsc() : now_ns();
}

bool gt_kernel_tracer_has_ticks(const struct gt_kernel_tracer *tracer)
{
	return tracer->is_tsc;
}

static uint32_t write_markers(const struct gt_kernel_tracer *tracer, struct pair *pairs)
{
	int fd = tracefs_instance_file_open(tracer->instance, "trace_marker", O_WRONLY | O_CLOEXEC);
	uint32_t count = 0;
	char text[64];

	for (; fd >= 0 && count < MARKERS; count++) {
		int bytes = snprintf(text, sizeof(text), TEXT "%u\n", count);
		pairs[count].before = gt_kernel_tracer_now(tracer);
		bool written = write(fd, text, (size_t)bytes) == bytes;
		pairs[count].after = gt_kernel_tracer_now(tracer);
		if (!written)
			break;
	}
	if (fd >= 0)
		close(fd);
	return count;
}

/* Returns the number in a marker's record, or UINT32_MAX. The fields before the text do not
 * matter. */
static uint32_t marker_of(const char *data, int bytes)
{
	const char *text = bytes > 0 ? memmem(data, (size_t)bytes, TEXT, strlen(TEXT)) : NULL;
	uint32_t number = 0;
	bool has_digit = false;

	if (text == NULL)
		return UINT32_MAX;
	for (text += strlen(TEXT); text < data + bytes && *text >= '0' && *text <= '9'; text++) {
		number = number * 10 + (uint32_t)(*text - '0');
		has_digit = true;
		if (number >= MARKERS)
			return UINT32_MAX;
	}
	return has_digit ? number : UINT32_MAX;
}

/* The bounds of the kernel's clock minus ours that all markers allow. */
struct bounds {
	int64_t least, most;
	uint32_t markers;
};

static void take_page(struct kbuffer *kbuffer, void *page, const struct pair *pairs,
		      struct bounds *bounds)
{
	unsigned long long clock = 0;
	void *data = kbuffer_load_subbuffer(kbuffer, page) == 0
			     ? kbuffer_read_event(kbuffer, &clock)
			     : NULL;

	for (; data != NULL; data = kbuffer_next_event(kbuffer, &clock)) {
		uint32_t number = marker_of(data, kbuffer_event_size(kbuffer));
		if (number == UINT32_MAX)
			continue;
		int64_t least = (int64_t)(clock - pairs[number].after);
		int64_t most = (int64_t)(clock - pairs[number].before);
		bounds->least = least > bounds->least ? least : bounds->least;
		bounds->most = most < bounds->most ? most : bounds->most;
		bounds->markers++;
	}
}

static void read_cpu(struct gt_kernel_tracer *tracer, long cpu, const struct pair *pairs,
		     struct bounds *bounds)
{
	struct kbuffer *kbuffer = kbuffer_alloc(KBUFFER_LSIZE_8, KBUFFER_ENDIAN_LITTLE);
	char *page = calloc(1, PAGE_BYTES);
	char file[64];

	snprintf(file, sizeof(file), "per_cpu/cpu%ld/trace_pipe_raw", cpu);
	int fd = tracefs_instance_file_open(tracer->instance, file,
					    O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	while (fd >= 0 && kbuffer != NULL && page != NULL &&
	       read(fd, page, (size_t)sysconf(_SC_PAGESIZE)) > 0)
		take_page(kbuffer, page, pairs, bounds);
	if (fd >= 0)
		close(fd);
	free(page);
	kbuffer_free(kbuffer);
}

/* Returns what lies between the two bounds. They may come from another machine: any number. */
static struct gt_kernel_clock clock_between(int64_t least, int64_t most)
{
	uint64_t width = (uint64_t)most - (uint64_t)least;

	return (struct gt_kernel_clock){
		.offset = (int64_t)((uint64_t)least + width / 2),
		.error = width / 2 + 1,
	};
}

/* The same of two clocks that are most likely one: then the difference is 0. */
static struct gt_kernel_clock clock_around(int64_t least, int64_t most)
{
	if (least > 0 || most < 0)
		return clock_between(least, most);
	return (struct gt_kernel_clock){
		.error = (uint64_t)(most > -least ? most : -least) + 1,
	};
}

/* Nanoseconds of so much of the kernel's clock, by how fast that went since it was set. */
static uint64_t ns_of(const struct gt_kernel_tracer *tracer, uint64_t error)
{
	uint64_t ticks = gt_kernel_tracer_now(tracer) - tracer->from;
	uint64_t ns = now_ns() - tracer->from_ns;

	return (uint64_t)((double)error * (double)ns / (double)(ticks ? ticks : 1)) + 1;
}

void gt_kernel_measure_clock(struct gt_kernel_tracer *tracer)
{
	struct pair pairs[MARKERS];
	struct bounds bounds = { INT64_MIN, INT64_MAX, 0 };
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	tracer->from = gt_kernel_tracer_now(tracer);
	tracer->from_ns = now_ns();
	if (tracefs_trace_on(tracer->instance) != 0)
		return;
	uint32_t written = write_markers(tracer, pairs);
	tracefs_trace_off(tracer->instance);
	for (long cpu = 0; cpu < cpus; cpu++)
		read_cpu(tracer, cpu, pairs, &bounds);
	tracefs_instance_file_clear(tracer->instance, "trace");
	if (!bounds.markers || !written)
		return;
	/* if both are one clock, the difference is between them; otherwise they have drifted
	 * apart */
	int64_t least = bounds.least < bounds.most ? bounds.least : bounds.most;
	int64_t most = bounds.least < bounds.most ? bounds.most : bounds.least;
	tracer->own = clock_around(least, most);
	tracer->own.error_ns = ns_of(tracer, tracer->own.error);
	tracer->own.markers = bounds.markers;
	tracer->clock = tracer->own;
}

int gt_kernel_tracer_set_apart(struct gt_kernel_tracer *tracer, const struct gt_kernel_apart *apart,
			       struct gt_file_writer *writer)
{
	struct gt_kernel_clock clock = clock_between(apart->least, apart->most);

	clock.offset = (int64_t)((uint64_t)clock.offset + (uint64_t)tracer->own.offset);
	clock.error += tracer->own.error;
	clock.error_ns = ns_of(tracer, clock.error);
	clock.exchanges = apart->exchanges;
	tracer->clock = clock;
	return writer != NULL ? gt_kernel_keep_clock(tracer, writer, true) : 0;
}
