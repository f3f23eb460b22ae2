/* SPDX-License-Identifier: MIT */
/* The exchanges by which two clocks are compared: see guest_clock.h. */
#define _GNU_SOURCE
#include "cli/guest_clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "attach/process/clock.h"
#include "cli/running.h"

#define EXCHANGES    64u
#define LIMIT_NS     3000000000ull /* of all together */
#define ANSWER_BYTES 4096
#define STEP_NS	     1000 /* the kernel tells whole microseconds */
#define LINE	     "\nnow ts:"
#define LAST_CHUNK   "\r\n0\r\n\r\n"

/* Reads until the answer has ended. False: it did not in time, or is none. */
static bool read_answer(int from, char *text, size_t room, uint64_t deadline)
{
	size_t held = 0;

	while (held < room - 1) {
		struct pollfd wait = { .fd = from, .events = POLLIN };
		uint64_t now = gt_monotonic_ns();

		if (now >= deadline || gt_run_interrupted || gt_run_to_forward ||
		    poll(&wait, 1, (int)((deadline - now) / 1000000) + 1) < 0)
			return false;
		ssize_t got = recv(from, text + held, room - 1 - held, MSG_DONTWAIT);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0)
			return false;
		held += (size_t)got;
		text[held] = '\0';
		if (strncmp(text, "HTTP/1.1 200 ", 13) != 0 && held >= 13)
			return false;
		if (strstr(text, LAST_CHUNK) != NULL)
			return true;
	}
	return false;
}

/* The kernel's clock in an answer: nanoseconds, cut down to a whole number of steps. */
static bool find_clock(const char *text, uint64_t *ns)
{
	const char *line = strstr(text, LINE);
	char *end;

	if (line == NULL)
		return false;
	uint64_t seconds = strtoull(line + strlen(LINE), &end, 10);
	if (*end != '.' || strspn(end + 1, "0123456789") != 6 || seconds > UINT64_MAX / 2000000000)
		return false;
	*ns = seconds * 1000000000 + strtoull(end + 1, NULL, 10) * STEP_NS;
	return true;
}

/* One exchange: the bounds that it gives. */
static bool exchange(int connection, const char *request, const struct gt_clock *clock,
		     const struct gt_kernel_tracer *tracer, uint64_t deadline,
		     struct gt_kernel_apart *bounds)
{
	char answer[ANSWER_BYTES] = "";
	size_t length = strlen(request);
	uint64_t ns;

	uint64_t before = gt_kernel_tracer_now(tracer);
	if (send(connection, request, length, MSG_NOSIGNAL) != (ssize_t)length ||
	    !read_answer(connection, answer, sizeof(answer), deadline))
		return false;
	uint64_t after = gt_kernel_tracer_now(tracer);
	if (!find_clock(answer, &ns))
		return false;
	uint64_t first = ns, last = ns + STEP_NS;
	if (gt_kernel_tracer_has_ticks(tracer)) {
		first = gt_clock_tsc(clock, first);
		last = gt_clock_tsc(clock, last) + 1;
	}
	*bounds = (struct gt_kernel_apart){ (int64_t)(before - last), (int64_t)(after - first), 1 };
	return true;
}

static void narrow(struct gt_kernel_apart *bounds, const struct gt_kernel_apart *by)
{
	if (bounds->exchanges == 0 || by->least > bounds->least)
		bounds->least = by->least;
	if (bounds->exchanges == 0 || by->most < bounds->most)
		bounds->most = by->most;
	bounds->exchanges += by->exchanges;
}

static void widen(struct gt_kernel_apart *bounds, const struct gt_kernel_apart *by)
{
	bounds->least = by->least < bounds->least ? by->least : bounds->least;
	bounds->most = by->most > bounds->most ? by->most : bounds->most;
	bounds->exchanges += by->exchanges;
}

/* Puts the bounds in order: if the clocks drift apart, the upper bound may have become less than the lower one. */
static void order(struct gt_kernel_apart *bounds)
{
	if (bounds->least <= bounds->most)
		return;
	int64_t least = bounds->most;
	bounds->most = bounds->least;
	bounds->least = least;
}

bool gt_guest_clock_measure(int connection, const char *host, const struct gt_clock *clock,
			    const struct gt_kernel_tracer *tracer, struct gt_kernel_apart *apart)
{
	struct gt_kernel_apart now = { 0, 0, 0 }, one;
	const uint64_t deadline = gt_monotonic_ns() + LIMIT_NS;
	const int at_once = 1;
	char request[512];

	/* of one CPU: less is counted before the clock is read */
	snprintf(request, sizeof(request),
		 "GET /ftrace/per_cpu/cpu0/stats HTTP/1.1\r\nHost: %.300s\r\n\r\n", host);
	setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
	while (now.exchanges < EXCHANGES &&
	       exchange(connection, request, clock, tracer, deadline, &one))
		narrow(&now, &one);
	if (now.exchanges == 0)
		return false;
	order(&now);
	if (apart->exchanges == 0)
		*apart = now;
	else if (now.least <= apart->most && apart->least <= now.most)
		narrow(apart, &now);
	else
		widen(apart, &now);
	return true;
}
