/* SPDX-License-Identifier: MIT */
/*
 * The runtime-breakdown page: the built-in page with the data inserted at its mark.
 */
#define _GNU_SOURCE
#include "export/html.h"
#include "core/trace/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/waiting.h"

#define BUFFER_BYTES (64u << 10)

static const char data_mark[] = "@@data@@";

/* Made by tools/bundle_page. */
extern const char gt_page_breakdown[];
extern const char gt_page_breakdown_end[];

struct page {
	int fd;
	int error; /* errno of the first write that failed */
	size_t used;
	char buffer[BUFFER_BYTES];
};

/* One share of a bar, with the page's numbers; sorted by function, then thread. */
struct share {
	uint32_t function; /* in the chart */
	uint32_t thread;   /* bar */
	int64_t self_ns;
};

static void flush(struct page *page)
{
	const char *p = page->buffer;

	while (page->used > 0 && page->error == 0) {
		ssize_t count = write(page->fd, p, page->used);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0) {
			page->error = errno;
			break;
		}
		p += count;
		page->used -= (size_t)count;
	}
	page->used = 0;
}

static void put(struct page *page, const char *bytes, size_t len)
{
	while (len > 0) {
		size_t part = sizeof page->buffer - page->used;

		if (part > len)
			part = len;
		memcpy(page->buffer + page->used, bytes, part);
		page->used += part;
		bytes += part;
		len -= part;
		if (page->used == sizeof page->buffer)
			flush(page);
	}
}

__attribute__((format(printf, 2, 3))) static void print(struct page *page, const char *format, ...)
{
	char text[256];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	put(page, text, (size_t)len);
}

static void put_us(struct page *page, int64_t ns)
{
	uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

	print(page, "%s%" PRIu64 ".%03u", ns < 0 ? "-" : "", size / 1000, (unsigned)(size % 1000));
}

/* Returns the length of the UTF-8 character at p, 0 if there is none (RFC 3629: no overlong
 * forms, no surrogates). */
static size_t character_bytes(const unsigned char *p, size_t len)
{
	size_t size = p[0] < 0x80   ? 1
		      : p[0] < 0xc2 ? 0
		      : p[0] < 0xe0 ? 2
		      : p[0] < 0xf0 ? 3
		      : p[0] < 0xf5 ? 4
				    : 0;

	if (size > len)
		return 0;
	for (size_t i = 1; i < size; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return size;
}

static void put_string(struct page *page, const char *text, size_t len)
{
	put(page, "\"", 1);
	for (size_t i = 0; i < len;) {
		const unsigned char *p = (const unsigned char *)text + i;
		size_t size = character_bytes(p, len - i);

		if (size == 0) {
			put(page, "\\ufffd", 6);
			i++;
			continue;
		}
		if (*p < 0x20 || *p == 0x7f || strchr("\"\\<>&", *p) != NULL)
			print(page, "\\u%04x", *p);
		else
			put(page, text + i, size);
		i += size;
	}
	put(page, "\"", 1);
}

static int compare_shares(const void *a, const void *b)
{
	const struct share *x = a;
	const struct share *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static int compare_tids(const void *a, const void *b, void *user)
{
	const struct gt_breakdown *breakdown = user;
	int64_t x = breakdown->threads[*(const uint32_t *)a].tid;
	int64_t y = breakdown->threads[*(const uint32_t *)b].tid;

	return x < y ? -1 : x > y;
}

static int64_t add_saturated(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

/* The ranking and grouping, made before anything is written. */
struct plan {
	uint32_t *functions; /* in order of rank */
	uint32_t *threads;   /* in order of rank; the first bars_count in order of number */
	uint32_t *place;     /* by function: its index in the chart */
	uint32_t *bar;	     /* by thread: its bar */
	struct share *shares;
	uint32_t functions_count; /* functions with a name in the chart */
	uint32_t bars_count;	  /* threads with a bar of their own */
	struct lump {
		uint64_t count;
		uint64_t calls;
		int64_t latency_ns;
		int64_t self_ns;
	} lumps[2]; /* [1]: those that sleep or wait */
};

static void plan_fini(struct plan *plan)
{
	free(plan->functions);
	free(plan->threads);
	free(plan->place);
	free(plan->bar);
	free(plan->shares);
}

static int plan_init(struct plan *plan, const struct gt_breakdown *breakdown)
{
	memset(plan, 0, sizeof *plan);
	plan->place = malloc(((size_t)breakdown->functions_count + 1) * sizeof *plan->place);
	plan->bar = malloc(((size_t)breakdown->threads_count + 1) * sizeof *plan->bar);
	plan->shares = malloc(((size_t)breakdown->cells_count + 1) * sizeof *plan->shares);
	if (plan->place == NULL || plan->bar == NULL || plan->shares == NULL ||
	    gt_breakdown_rank_functions(breakdown, &plan->functions) != 0 ||
	    gt_breakdown_rank_threads(breakdown, &plan->threads) != 0) {
		plan_fini(plan);
		return GT_ENOMEM;
	}
	plan->functions_count = breakdown->functions_count;
	/* A group of one function would only hide its name. */
	if (plan->functions_count > GT_HTML_FUNCTIONS_MAX + 1)
		plan->functions_count = GT_HTML_FUNCTIONS_MAX;
	plan->bars_count = breakdown->threads_count;
	if (plan->bars_count > GT_HTML_THREADS_MAX)
		plan->bars_count = GT_HTML_THREADS_MAX - 1;
	for (uint32_t i = 0; i < breakdown->functions_count; i++) {
		uint32_t f = plan->functions[i];
		const struct gt_breakdown_function *function = &breakdown->functions[f];
		struct lump *lump;

		plan->place[f] = i;
		if (i < plan->functions_count)
			continue;
		lump = &plan->lumps[gt_name_waits(function->name, function->name_len)];
		plan->place[f] = plan->functions_count + (uint32_t)(lump - plan->lumps);
		lump->count++;
		lump->calls += function->calls;
		lump->latency_ns = add_saturated(lump->latency_ns, function->latency_ns);
		lump->self_ns = add_saturated(lump->self_ns, function->self_ns);
	}
	qsort_r(plan->threads, plan->bars_count, sizeof *plan->threads, compare_tids,
		(void *)(uintptr_t)breakdown);
	for (uint32_t i = 0; i < breakdown->threads_count; i++)
		plan->bar[plan->threads[i]] = i < plan->bars_count ? i : plan->bars_count;
	for (uint32_t i = 0; i < breakdown->cells_count; i++)
		plan->shares[i] = (struct share){
			.function = plan->place[breakdown->cells[i].function],
			.thread = plan->bar[breakdown->cells[i].thread],
			.self_ns = breakdown->cells[i].self_ns,
		};
	qsort(plan->shares, breakdown->cells_count, sizeof *plan->shares, compare_shares);
	return 0;
}

/* Writes the shares of one function in the chart, summed for each bar. Moves *at after them. */
static void put_cells(struct page *page, const struct plan *plan, uint32_t shares_count,
		      uint32_t *at, uint32_t place)
{
	bool first = true;

	put(page, "[", 1);
	while (*at < shares_count && plan->shares[*at].function < place)
		(*at)++;
	while (*at < shares_count && plan->shares[*at].function == place) {
		uint32_t thread = plan->shares[*at].thread;
		int64_t self_ns = 0;

		for (; *at < shares_count && plan->shares[*at].function == place &&
		       plan->shares[*at].thread == thread;
		     (*at)++)
			self_ns = add_saturated(self_ns, plan->shares[*at].self_ns);
		print(page, "%s%u,", first ? "" : ",", thread);
		put_us(page, self_ns);
		first = false;
	}
	put(page, "]", 1);
}

static void put_sums(struct page *page, const struct gt_breakdown_function *function)
{
	put_string(page, function->name, function->name_len);
	print(page, ",%" PRIu64 ",", function->calls);
	put_us(page, function->latency_ns);
	put(page, ",", 1);
	put_us(page, function->self_ns);
}

static void put_data(struct page *page, const struct gt_breakdown *breakdown,
		     const struct plan *plan, const char *source, uint64_t bad_rows)
{
	uint32_t at = 0;
	uint32_t rest_end = plan->functions_count + GT_HTML_REST_MAX;
	bool first = true;

	put(page, "{\"source\":", 10);
	put_string(page, source, strlen(source));
	print(page, ",\"bad\":%" PRIu64 ",\"calls\":%" PRIu64 ",\"self\":", bad_rows,
	      breakdown->calls);
	put_us(page, breakdown->self_ns);
	print(page, ",\"functionsCount\":%u,\"threadsCount\":%u,\n\"threads\":[",
	      breakdown->functions_count, breakdown->threads_count);
	for (uint32_t i = 0; i < plan->bars_count; i++)
		print(page, "%s%" PRId64, i > 0 ? "," : "",
		      breakdown->threads[plan->threads[i]].tid);
	print(page, "%s],\n\"functions\":[",
	      plan->bars_count < breakdown->threads_count ? ",null" : "");
	for (uint32_t i = 0; i < plan->functions_count; i++) {
		const struct gt_breakdown_function *function =
			&breakdown->functions[plan->functions[i]];

		print(page, "%s\n[", i > 0 ? "," : "");
		put_sums(page, function);
		print(page, ",%d,", gt_name_waits(function->name, function->name_len));
		put_cells(page, plan, breakdown->cells_count, &at, i);
		put(page, "]", 1);
	}
	print(page, "],\n\"others\":[");
	for (int waits = 0; waits < 2; waits++) {
		const struct lump *lump = &plan->lumps[waits];

		if (lump->count == 0)
			continue;
		print(page,
		      "%s\n{\"waits\":%d,\"count\":%" PRIu64 ",\"calls\":%" PRIu64 ",\"total\":",
		      first ? "" : ",", waits, lump->count, lump->calls);
		first = false;
		put_us(page, lump->latency_ns);
		print(page, ",\"self\":");
		put_us(page, lump->self_ns);
		print(page, ",\"cells\":");
		put_cells(page, plan, breakdown->cells_count, &at,
			  plan->functions_count + (uint32_t)waits);
		put(page, "}", 1);
	}
	print(page, "],\n\"rest\":[");
	for (uint32_t i = plan->functions_count; i < breakdown->functions_count && i < rest_end;
	     i++) {
		print(page, "%s\n[", i > plan->functions_count ? "," : "");
		put_sums(page, &breakdown->functions[plan->functions[i]]);
		put(page, "]", 1);
	}
	print(page, "]}");
}

int gt_html_write_breakdown(int fd, const struct gt_breakdown *breakdown, const char *source,
			    uint64_t bad_rows, struct gt_message *message)
{
	const char *begin = gt_page_breakdown;
	const char *end = gt_page_breakdown_end;
	const char *mark = memmem(begin, (size_t)(end - begin), data_mark, sizeof data_mark - 1);
	struct page *page = calloc(1, sizeof *page);
	struct plan plan;
	int result = GT_ENOMEM;

	if (page == NULL || plan_init(&plan, breakdown) != 0) {
		gt_message_set(message, "out of memory");
		goto free_page;
	}
	page->fd = fd;
	put(page, begin, (size_t)(mark - begin));
	put_data(page, breakdown, &plan, source, bad_rows);
	mark += sizeof data_mark - 1;
	put(page, mark, (size_t)(end - mark));
	flush(page);
	result = 0;
	if (page->error != 0) {
		gt_message_set(message, "cannot write: %s", strerror(page->error));
		result = GT_EIO;
	}
	plan_fini(&plan);
free_page:
	free(page);
	return result;
}
