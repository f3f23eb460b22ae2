/* SPDX-License-Identifier: MIT */
/* Progress on the terminal: see progress.h. */
#define _GNU_SOURCE
#include "cli/progress.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "attach/process/clock.h"
#include "port/host/own_thread.h"

#define SILENT_NS 1000000000ull /* work that is over by then shows nothing */
#define REDRAW_NS 200000000ull
#define BAR	  24

static struct {
	bool on;
	bool drawn; /* the line on the terminal is not empty */
	bool waits; /* the thread runs */
	bool over;  /* the thread is to end; under the lock */
	char what[96];
	const char *unit;
	uint64_t total, done;
	uint64_t start_ns, drawn_ns;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* of a recording */
	struct gt_target *target;
	const struct gt_ring_ops *ring; /* the target's own operations */
	struct gt_ring_ops counting;
} progress = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static unsigned width(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* "12.3 M" */
static void number(double value, char text[16])
{
	if (value >= 1e6)
		snprintf(text, 16, "%.1f M", value / 1e6);
	else if (value >= 1e3)
		snprintf(text, 16, "%.0f k", value / 1e3);
	else
		snprintf(text, 16, "%.0f", value);
}

static void left(double seconds, char text[32])
{
	if (seconds >= 90)
		snprintf(text, 32, "%.0f min left", seconds / 60);
	else
		snprintf(text, 32, "%.0f s left", seconds < 1 ? 1 : seconds);
}

static void draw(uint64_t now)
{
	double seconds = (double)(now - progress.start_ns) / 1e9;
	double part = progress.total ? (double)progress.done / (double)progress.total : 0;
	char line[256], bar[BAR + 1], rate[16], time[32];
	unsigned most = width() - 1;

	if (progress.total > 0 && part <= 1) {
		unsigned filled = (unsigned)(part * BAR);

		memset(bar, '.', BAR);
		memset(bar, '#', filled);
		bar[BAR] = '\0';
		number((double)progress.done / seconds, rate);
		left(part > 0 ? seconds / part - seconds : 0, time);
		snprintf(line, sizeof(line), "graftrace: %s [%s] %3.0f %%, %s %s/s, %s",
			 progress.what, bar, part * 100, rate, progress.unit, time);
	} else {
		snprintf(line, sizeof(line), "graftrace: %s, %.0f s", progress.what, seconds);
	}
	fprintf(stderr, "\r%.*s\033[K", (int)most, line);
	progress.drawn = true;
	progress.drawn_ns = now;
}

static void draw_if_due(void)
{
	uint64_t now = gt_monotonic_ns();

	if (now - progress.start_ns >= SILENT_NS && now - progress.drawn_ns >= REDRAW_NS)
		draw(now);
}

void gt_progress_start(const char *what, uint64_t total, const char *unit)
{
	const char *term = getenv("TERM");

	gt_progress_end();
	if (!isatty(STDERR_FILENO) || term == NULL || strcmp(term, "dumb") == 0)
		return;
	snprintf(progress.what, sizeof(progress.what), "%s", what);
	progress.unit = unit;
	progress.total = total;
	progress.done = 0;
	progress.start_ns = gt_monotonic_ns();
	progress.drawn_ns = 0;
	progress.on = true;
}

void gt_progress_at(uint64_t done)
{
	if (!progress.on)
		return;
	progress.done = done;
	draw_if_due();
}

void gt_progress_wipe(void)
{
	/* The thread draws again only when who calls this has written its line. */
	pthread_mutex_lock(&progress.lock);
	if (progress.drawn)
		fputs("\r\033[K", stderr);
	progress.drawn = false;
	progress.drawn_ns = gt_monotonic_ns();
	pthread_mutex_unlock(&progress.lock);
}

void gt_progress_end(void)
{
	if (progress.waits) {
		pthread_mutex_lock(&progress.lock);
		progress.over = true;
		pthread_cond_signal(&progress.changed);
		pthread_mutex_unlock(&progress.lock);
		pthread_join(progress.thread, NULL);
		progress.waits = progress.over = false;
	}
	if (progress.target != NULL)
		progress.target->ring = progress.ring;
	progress.target = NULL;
	gt_progress_wipe();
	progress.on = false;
}

static int64_t count_sub_buffer(struct gt_target *target, uint32_t index, uint64_t sequence,
				void *buffer, const struct graftrace_sub_buffer **bytes)
{
	int64_t words = progress.ring->sub_buffer(target, index, sequence, buffer, bytes);

	if (words > 0)
		gt_progress_at(progress.done + (uint64_t)words);
	return words;
}

void gt_progress_reading(struct gt_recording *recording, unsigned passes)
{
	struct gt_target *target = gt_recording_target(recording);
	const struct gt_recording_info *info = gt_recording_info(recording);

	gt_progress_start("reading", info->words * passes, "records");
	if (!progress.on)
		return;
	progress.target = target;
	progress.ring = target->ring;
	progress.counting = *target->ring;
	progress.counting.sub_buffer = count_sub_buffer;
	target->ring = &progress.counting;
}

static void *show_time(void *none)
{
	struct timespec until;

	pthread_mutex_lock(&progress.lock);
	clock_gettime(CLOCK_REALTIME, &until);
	while (!progress.over) {
		until.tv_sec++;
		while (!progress.over && pthread_cond_timedwait(&progress.changed, &progress.lock,
								&until) != ETIMEDOUT)
			;
		if (!progress.over)
			draw_if_due();
	}
	pthread_mutex_unlock(&progress.lock);
	return none;
}

void gt_progress_waiting(const char *what)
{
	gt_progress_start(what, 0, "");
	if (!progress.on)
		return;
	progress.waits = gt_own_thread_start(&progress.thread, show_time, NULL) == 0;
}
