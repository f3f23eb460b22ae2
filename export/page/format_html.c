/* SPDX-License-Identifier: MIT */
/*
 * html: the page with its data in it, one file that makes no request. It has the answers to the
 * questions of page.h that its views ask: functions and stacks with the most time, and the time
 * line at the finest grain for which there is room.
 */
#define _GNU_SOURCE /* memmem */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/message.h"
#include "export/page/built_in.h"
#include "export/page/page_private.h"

#define FUNCTIONS_MOST 1500u
#define DETAILS_MOST   600u
#define DETAILS_BYTES  (1200u << 10)
#define FLAME_BYTES    (1800u << 10)
#define TIMELINE_BYTES (3200u << 10)
#define LANE_BYTES     160u /* a lane has to have so many for itself in the time line */
#define NAMES_BYTES    (900u << 10)
#define GRAIN_STEP     2u

struct html {
	struct gt_page *page;
	struct gt_stack_sink sink;
};

/* Returns a question's parameter from pairs of names and values, with NULL after the last. */
static const char *parameter(void *user, const char *name)
{
	for (const char **pair = user; pair[0] != NULL; pair += 2)
		if (strcmp(pair[0], name) == 0)
			return pair[1];
	return NULL;
}

static int begin(struct gt_export *export)
{
	struct html *html = export->state;
	const struct gt_page_options options = {
		.target = export->target,
		.about = export->about,
	};
	int error = gt_page_create(&options, &html->page);

	if (error == 0)
		html->sink = gt_page_sink(html->page);
	return error;
}

static int lane(struct gt_export *export, struct gt_lane *lane)
{
	struct html *html = export->state;

	return html->sink.lane(html->page, lane);
}

static int enter(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call)
{
	struct html *html = export->state;

	return html->sink.enter(html->page, lane, call);
}

static int leave(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call,
		 uint64_t end)
{
	struct html *html = export->state;

	return html->sink.leave(html->page, lane, call, end);
}

static int moment(struct gt_export *export, struct gt_lane *lane, const struct gt_moment *moment)
{
	struct html *html = export->state;

	return html->sink.moment(html->page, lane, moment);
}

static int ask(const struct html *html, const char *question, const char *const *pairs,
	       struct gt_out *out)
{
	return gt_page_answer(html->page, question, parameter, (void *)(uintptr_t)pairs, out);
}

/* Returns the numbers of the functions with most self time, up to DETAILS_MOST; *count: how
 * many. */
static uint32_t *choose(const struct gt_page *page, uint32_t *count)
{
	uint32_t all = page->functions.count, *order = calloc(all + 1u, sizeof(*order));

	*count = all < DETAILS_MOST ? all : DETAILS_MOST;
	if (order == NULL)
		return NULL;
	for (uint32_t i = 0; i < all; i++)
		order[i] = i;
	for (uint32_t i = 0; all > DETAILS_MOST && i < *count; i++) {
		uint32_t best = i, number;

		for (uint32_t j = i + 1; j < all; j++)
			if (page->functions.items[order[j]].self >
			    page->functions.items[order[best]].self)
				best = j;
		number = order[i];
		order[i] = order[best];
		order[best] = number;
	}
	return order;
}

static int add_details(const struct html *html, struct gt_out *out)
{
	uint32_t count, *order = choose(html->page, &count);
	size_t before = out->used;
	const char *between = "";
	int error = order != NULL ? 0 : GT_ENOMEM;

	gt_out_text(out, ",\"function\":{");
	for (uint32_t i = 0; i < count && error == 0 && out->used - before < DETAILS_BYTES; i++) {
		char number[16];
		const char *const pairs[] = { "id", number, NULL };

		if (html->page->functions.items[order[i]].calls == 0)
			continue;
		snprintf(number, sizeof(number), "%" PRIu32, order[i]);
		gt_out_printf(out, "%s\"%s\":", between, number);
		error = ask(html, "function", pairs, out);
		between = ",";
	}
	gt_out_char(out, '}');
	free(order);
	return error;
}

static int add_flame(const struct html *html, const char *of, const char *width, struct gt_out *out)
{
	const char *const pairs[] = { "of", of, "width", width, NULL };

	gt_out_printf(out, "%s\"%s\":", strcmp(of, "all") == 0 ? "" : ",", of);
	return ask(html, "flame", pairs, out);
}

/* Adds the flame graphs of all, of each process if there are several, and of lanes while there
 * is room. */
static int add_flames(const struct html *html, struct gt_out *out)
{
	const struct gt_page *page = html->page;
	size_t before = out->used;
	bool several = false;
	int error;

	gt_out_text(out, ",\"flame\":{");
	error = add_flame(html, "all", "2000", out);
	for (uint32_t i = 1; i < page->lane_count; i++)
		several |= page->lanes[i].pid != page->lanes[0].pid;
	for (uint32_t i = 0; several && i < page->lane_count && error == 0; i++) {
		bool told = false;
		char of[32];

		for (uint32_t j = 0; j < i && !told; j++)
			told = page->lanes[j].pid == page->lanes[i].pid;
		if (told || out->used - before > FLAME_BYTES / 2)
			continue;
		snprintf(of, sizeof(of), "pid:%" PRIu32, page->lanes[i].pid);
		error = add_flame(html, of, "800", out);
	}
	for (uint32_t i = 0; i < page->lane_count && error == 0; i++) {
		char of[32];

		if (page->lanes[i].calls == 0 || out->used - before > FLAME_BYTES)
			continue;
		snprintf(of, sizeof(of), "lane:%" PRIu32, i);
		error = add_flame(html, of, "500", out);
	}
	gt_out_char(out, '}');
	return error;
}

/* Adds the time line at the finest grain for which there is room: of all lanes, or of those with the
 * most calls if there are so many that each has too little. */
static int add_timeline(const struct html *html, struct gt_out *out)
{
	struct gt_page *page = html->page;
	struct gt_page_whole whole = { .lanes = page->lane_count, .most = TIMELINE_BYTES };
	const uint64_t coarser = page->length / TIMELINE_BYTES + 1;
	size_t before = out->used;

	if (whole.lanes > TIMELINE_BYTES / LANE_BYTES)
		whole.lanes = TIMELINE_BYTES / LANE_BYTES;
	/* A cell takes two to four bytes. */
	whole.off_cells = TIMELINE_BYTES / 4 / (whole.lanes + 1);
	/* A box takes at least ten bytes: grains with far too many boxes are not tried. */
	if (page->boxes > TIMELINE_BYTES / 10)
		whole.grain = coarser;
	for (;;) {
		int error;

		out->used = before;
		gt_out_text(out, ",\"timeline\":");
		error = gt_page_put_whole_timeline(page, &whole, out);
		if (error != GT_ENOSPC)
			return error;
		if (whole.grain <= page->length) {
			whole.grain = whole.grain ? whole.grain * GRAIN_STEP : coarser;
			continue;
		}
		/* One lane alone has room: it has a box at each depth, at the most. */
		if (whole.lanes <= 1)
			return error;
		whole.lanes -= whole.lanes / 4 + 1;
		whole.off_cells = TIMELINE_BYTES / 4 / (whole.lanes + 1);
		whole.grain = coarser;
	}
}

/* Adds all functions' names while there is room; after that, long names are cut. */
static void add_names(const struct html *html, struct gt_out *out)
{
	const struct gt_page_functions *functions = &html->page->functions;
	size_t before = out->used;

	gt_out_text(out, ",\"names\":{");
	for (uint32_t i = 0; i < functions->count; i++) {
		const char *name = functions->items[i].function.name;
		char shorter[64];

		if (out->used - before > NAMES_BYTES && strlen(name) >= sizeof(shorter)) {
			snprintf(shorter, sizeof(shorter), "%.60s", name);
			name = shorter;
		}
		gt_out_printf(out, "%s\"%" PRIu32 "\":", i ? "," : "", i);
		gt_out_json(out, name);
	}
	gt_out_char(out, '}');
}

static int make_data(const struct html *html, struct gt_out *out)
{
	char limit[16];
	const char *const none[] = { NULL }, *const most[] = { "limit", limit, NULL },
			  *const cpus[] = { "by", "cpu", NULL },
			  *const on_cpu[] = { "by", "lane-on-cpu", NULL };
	int error;

	snprintf(limit, sizeof(limit), "%u", FUNCTIONS_MOST);
	gt_out_text(out, "{\"overview\":");
	error = ask(html, "overview", none, out);
	gt_out_text(out, ",\"functions\":");
	if (error == 0)
		error = ask(html, "functions", most, out);
	gt_out_text(out, ",\"selftimes\":{\"lane\":");
	if (error == 0)
		error = ask(html, "selftimes", none, out);
	gt_out_text(out, ",\"lane-on-cpu\":");
	if (error == 0)
		error = ask(html, "selftimes", on_cpu, out);
	gt_out_text(out, ",\"cpu\":");
	if (error == 0)
		error = ask(html, "selftimes", cpus, out);
	gt_out_char(out, '}');
	if (error == 0)
		error = add_details(html, out);
	if (error == 0)
		error = add_flames(html, out);
	if (error == 0)
		error = add_timeline(html, out);
	if (error == 0)
		add_names(html, out);
	gt_out_char(out, '}');
	return error == 0 && out->error ? GT_ENOMEM : error;
}

/* Names come from outside: none may end the element that has the data. In JSON these bytes occur
 * in strings only. */
static void put_data(struct gt_out *out, const char *bytes, size_t count)
{
	size_t from = 0;

	for (size_t i = 0; i < count; i++) {
		if (bytes[i] != '<' && bytes[i] != '>' && bytes[i] != '&')
			continue;
		gt_out_bytes(out, bytes + from, i - from);
		gt_out_printf(out, "\\u%04x", (unsigned)bytes[i]);
		from = i + 1;
	}
	gt_out_bytes(out, bytes + from, count - from);
}

static int end(struct gt_export *export, const struct gt_stack_report *report)
{
	struct html *html = export->state;
	const char *mark = memmem(gt_page_page, (size_t)(gt_page_page_end - gt_page_page),
				  GT_PAGE_MARK, strlen(GT_PAGE_MARK));
	struct gt_out data;
	int error = gt_page_finish(html->page, report);

	if (error != 0 || gt_out_init_memory(&data) != 0)
		return GT_ENOMEM;
	error = make_data(html, &data);
	if (error == 0) {
		gt_out_bytes(&export->out, gt_page_page, (size_t)(mark - gt_page_page));
		put_data(&export->out, data.buffer, data.used);
		mark += strlen(GT_PAGE_MARK);
		gt_out_bytes(&export->out, mark, (size_t)(gt_page_page_end - mark));
	}
	gt_out_fini(&data);
	return error;
}

static void fini(struct gt_export *export)
{
	struct html *html = export->state;

	if (html->page != NULL)
		gt_page_destroy(html->page);
}

const struct gt_export_format gt_format_html = {
	.name = "html",
	.help = "one page to look at in a browser: time line, flame graph, functions",
	.file = "graftrace.html",
	.state_bytes = sizeof(struct html),
	.writes_at_end = true,
	.begin = begin,
	.lane = lane,
	.enter = enter,
	.leave = leave,
	.moment = moment,
	.end = end,
	.fini = fini,
};
