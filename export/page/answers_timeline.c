/* SPDX-License-Identifier: MIT */
/* The time line's questions: boxes of a window, and the next call of a function. See page.h. */
#include "export/page/answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH_MOST 8000u
#define LANES_MOST 64u /* in one answer */
#define ROWS_MOST  96u /* in a lane */
#define OFF_CELLS  400u
#define MARKS_MOST 1500u /* about so many, in one answer */
#define MARKS_FILE 6000u /* … and in a page that is one file, for each zoom */
#define LOST_MOST  1000u

struct row {
	struct gt_out *out;
	const struct gt_page *page;
	uint32_t lane, depth;
	uint64_t from;
	size_t most; /* limit of the output in bytes */
	bool any;
};

/* A part of the time line. */
struct window {
	uint64_t from, to, grain, rows;
	uint64_t off_cells;
	size_t most; /* limit of the output in bytes */
};

/* Writes a box: start (relative to `from`, may be negative), time, function, calls, flags, and
 * which part of it is in calls; fields that a single call with a return does not need are left
 * out. Of a single call that part is all, and arguments and result stand there, where they were recorded. */
static int put_box(void *user, const struct gt_box *box)
{
	struct row *row = user;
	int64_t start = (int64_t)(box->start - row->from);
	const struct gt_page_value *values =
		box->count == 1 ? gt_page_find_values(row->page, row->lane, row->depth, box->start)
				: NULL;

	gt_out_text(row->out, row->any ? ",[" : "[");
	row->any = true;
	if (start < 0)
		gt_out_char(row->out, '-');
	gt_out_number(row->out, (uint64_t)(start < 0 ? -start : start));
	gt_put_number(row->out, ",", box->took);
	gt_put_number(row->out, ",", box->function);
	if (box->count > 1 || box->flags || values != NULL) {
		gt_put_number(row->out, ",", box->count);
		gt_put_number(row->out, ",", box->flags);
	}
	if (box->count > 1)
		gt_put_number(row->out, ",", box->busy);
	gt_put_values(row->out, values);
	gt_out_char(row->out, ']');
	if (row->out->used > row->most)
		return GT_ENOSPC;
	return row->out->error ? GT_ENOMEM : 0;
}

/* Returns the ticks that a thread was off the CPU before a clock. */
static uint64_t off_before(struct gt_page *page, uint32_t tid, uint64_t clock)
{
	struct gt_target *target = page->options.target;
	struct gt_off_cpu time;

	if (gt_target_find_off_cpu(target, tid, clock, &time) != 0)
		return 0;
	return time.before + (time.from < clock ? clock - time.from : 0);
}

/* Returns the clock of a time on the page. */
static uint64_t clock_of(const struct gt_page *page, uint64_t ns)
{
	const struct gt_clock *clock = &page->options.target->clock;
	__extension__ typedef unsigned __int128 u128;

	return page->start +
	       (clock->mult ? (uint64_t)(((u128)ns << clock->shift) / clock->mult) : 0);
}

int gt_answer_off_cpu(const struct gt_question *question)
{
	struct gt_page *page = question->page;
	uint64_t number, from, to, before, behind;

	if (page->lane_count == 0 ||
	    !gt_question_number(question, "lane", 0, page->lane_count - 1, &number) ||
	    !gt_question_number(question, "from", 0, UINT64_MAX >> 16, &from) ||
	    !gt_question_number(question, "to", 0, UINT64_MAX >> 16, &to) || from > to)
		return GT_EINVAL;
	before = off_before(page, page->lanes[number].tid, clock_of(page, from));
	behind = off_before(page, page->lanes[number].tid, clock_of(page, to));
	gt_put_number(question->out,
		      "{\"off\":", behind > before ? gt_page_ns(page, behind - before) : 0);
	gt_out_char(question->out, '}');
	return 0;
}

/* Writes which part of each cell the thread was off the CPU, in percent: [from, cell, [percent,
 * …]]. */
static void put_off_cpu(const struct gt_question *question, const struct gt_page_lane *lane,
			const struct window *window)
{
	struct gt_page *page = question->page;
	uint64_t from = window->from, to = window->to, before;
	uint64_t cell = (to - from) / window->off_cells + 1;

	if (!page->has_off_cpu || lane->calls == 0 || window->off_cells == 0)
		return;
	before = off_before(page, lane->tid, clock_of(page, from));
	gt_put_number(question->out, ",\"offCell\":", cell);
	gt_out_text(question->out, ",\"off\":[");
	for (uint64_t at = from; at < to; at += cell) {
		uint64_t until = at + cell, behind, off;

		behind = off_before(page, lane->tid, clock_of(page, until));
		off = behind > before ? gt_page_ns(page, behind - before) : 0;
		if (at != from)
			gt_out_char(question->out, ',');
		/* Before its first call and after its last one, nothing is known of a thread. */
		gt_out_number(question->out, until <= lane->first || at >= lane->last ? 0
					     : off >= cell			      ? 100
							   : off * 100 / cell);
		before = behind;
	}
	gt_out_char(question->out, ']');
}

static int put_lane_view(const struct gt_question *question, uint32_t number,
			 const struct window *window)
{
	const struct gt_page_lane *lane = &question->page->lanes[number];
	int error = 0;

	gt_put_number(question->out, "{\"lane\":", number);
	put_off_cpu(question, lane, window);
	gt_out_text(question->out, ",\"rows\":[");
	for (uint32_t i = 0; i < lane->track_count && i < window->rows && error == 0; i++) {
		struct row row = { question->out, question->page, number, i,
				   window->from,  window->most,	  false };

		gt_out_text(question->out, i ? ",[" : "[");
		error = gt_track_look(&lane->tracks[i], window->from, window->to, window->grain,
				      put_box, &row);
		gt_out_char(question->out, ']');
	}
	gt_out_text(question->out, "]}");
	return error;
}

/* Losses of these lanes, and marks: of those of a lane that are nearer together than can be drawn, the first. */
static int put_moments(const struct gt_question *question, const struct window *window,
		       const bool *is_asked, uint64_t marks_most)
{
	const struct gt_page *page = question->page;
	const uint64_t cell = (window->to - window->from) / marks_most + 1;
	/* By lane: from where on a mark is in another cell than the one before. */
	uint64_t *next = calloc(page->lane_count + 1u, sizeof(*next));
	uint32_t given = 0, lost = 0;

	if (next == NULL)
		return GT_ENOMEM;
	gt_out_text(question->out, "],\"moments\":[");
	for (uint32_t i = 0; i < page->moment_count; i++) {
		const struct gt_page_moment *moment = &page->moments[i];
		const bool is_lost = moment->kind == GT_MOMENT_LOST;

		if (moment->at < window->from || moment->at >= window->to ||
		    !is_asked[moment->lane])
			continue;
		if (is_lost ? lost++ >= LOST_MOST : moment->at < next[moment->lane])
			continue;
		if (!is_lost)
			next[moment->lane] = moment->at - moment->at % cell + cell;
		gt_out_printf(question->out, "%s[%" PRIu64 ",%" PRIu32 ",%d,%" PRIu64 ",",
			      given++ ? "," : "", moment->at, moment->lane, is_lost, moment->value);
		gt_out_json(question->out, moment->text != NULL ? moment->text : "");
		gt_out_char(question->out, ']');
	}
	free(next);
	return 0;
}

static int put_views(const struct gt_question *question, const struct window *window,
		     const char *list)
{
	bool *is_asked = calloc(question->page->lane_count + 1u, sizeof(*is_asked));
	uint32_t first, last, given = 0;
	int error = is_asked != NULL ? 0 : GT_ENOMEM;

	while (error == 0 && gt_question_range(&list, &first, &last)) {
		for (uint32_t i = first; i <= last && i < question->page->lane_count &&
					 error == 0 && given < LANES_MOST;
		     i++) {
			if (given++)
				gt_out_char(question->out, ',');
			is_asked[i] = true;
			error = put_lane_view(question, i, window);
		}
	}
	if (error == 0 && *list != '\0')
		error = GT_EINVAL;
	if (error == 0)
		error = put_moments(question, window, is_asked, MARKS_MOST / (given + 1) + 1);
	free(is_asked);
	return error;
}

int gt_answer_timeline(const struct gt_question *question)
{
	const struct gt_page *page = question->page;
	struct window window = { .most = SIZE_MAX };
	uint64_t width;
	int error;

	if (!gt_question_number(question, "from", 0, UINT64_MAX >> 16, &window.from) ||
	    !gt_question_number(question, "to", page->length + 1, UINT64_MAX >> 16, &window.to) ||
	    !gt_question_number(question, "width", 1000, WIDTH_MOST, &width) || width == 0 ||
	    !gt_question_number(question, "rows", ROWS_MOST, ROWS_MOST, &window.rows) ||
	    window.from >= window.to)
		return GT_EINVAL;
	window.grain = (window.to - window.from) * 2 / width;
	window.off_cells = gt_at_most(width / 2 + 1, OFF_CELLS);
	gt_put_number(question->out, "{\"from\":", window.from);
	gt_put_number(question->out, ",\"to\":", window.to);
	gt_out_text(question->out, ",\"lanes\":[");
	error = put_views(question, &window, gt_question_text(question, "lanes", ""));
	gt_out_text(question->out, "]}");
	return error;
}

/* Returns by lane whether it is one of the `count` with the most calls; NULL: no memory. */
static bool *choose_lanes(const struct gt_page *page, uint32_t count)
{
	struct gt_ranked *ranked = calloc(page->lane_count + 1u, sizeof(*ranked));
	bool *is_chosen = calloc(page->lane_count + 1u, sizeof(*is_chosen));

	for (uint32_t i = 0; ranked != NULL && i < page->lane_count; i++)
		ranked[i] = (struct gt_ranked){ page->lanes[i].calls, i };
	if (ranked != NULL && is_chosen != NULL) {
		qsort(ranked, page->lane_count, sizeof(*ranked), gt_ranked_compare);
		for (uint32_t i = 0; i < count && i < page->lane_count; i++)
			is_chosen[ranked[i].number] = true;
	}
	if (ranked == NULL) {
		free(is_chosen);
		is_chosen = NULL;
	}
	free(ranked);
	return is_chosen;
}

int gt_page_put_whole_timeline(struct gt_page *page, const struct gt_page_whole *whole,
			       struct gt_out *out)
{
	const struct gt_question question = { .page = page, .out = out };
	const struct window window = {
		.to = page->length + 1,
		.grain = whole->grain,
		.rows = UINT64_MAX,
		.off_cells = gt_at_most(whole->off_cells, OFF_CELLS),
		.most = out->used + whole->most,
	};
	bool *is_chosen = choose_lanes(page, whole->lanes);
	const char *between = "";
	int error = is_chosen != NULL ? 0 : GT_ENOMEM;

	gt_put_number(out, "{\"from\":0,\"grain\":", whole->grain);
	gt_put_number(out, ",\"to\":", window.to);
	gt_out_text(out, ",\"lanes\":[");
	for (uint32_t i = 0; error == 0 && i < page->lane_count; i++) {
		if (!is_chosen[i])
			continue;
		gt_out_text(out, between);
		between = ",";
		error = put_lane_view(&question, i, &window);
	}
	if (error == 0)
		error = put_moments(&question, &window, is_chosen,
				    page->moment_count <= MARKS_FILE
					    ? window.to
					    : MARKS_FILE / (whole->lanes + 1) + 1);
	free(is_chosen);
	gt_out_char(out, ']');
	if (whole->lanes < page->lane_count)
		gt_put_number(out, ",\"leftOut\":", page->lane_count - whole->lanes);
	gt_out_char(out, '}');
	return error;
}

int gt_answer_find(const struct gt_question *question)
{
	const struct gt_page *page = question->page;
	bool forward = strcmp(gt_question_text(question, "way", "1"), "-1") != 0, any = false;
	uint64_t number, from, limit = forward ? UINT64_MAX : 0;
	uint32_t lane = 0, depth = 0;
	struct gt_box found = { 0 };

	if (!gt_question_number(question, "id", UINT32_MAX, UINT32_MAX, &number) ||
	    !gt_question_number(question, "from", 0, UINT64_MAX >> 16, &from))
		return GT_EINVAL;
	if (number >= page->functions.count)
		return GT_ENOENT;
	for (uint32_t i = 0; i < page->lane_count; i++) {
		for (uint32_t j = 0; j < page->lanes[i].track_count; j++) {
			if (!gt_track_find(&page->lanes[i].tracks[j], (uint32_t)number, from, limit,
					   forward, &found))
				continue;
			/* Those of other tracks have to be nearer. */
			any = true;
			limit = forward ? found.start : found.start + 1;
			lane = i;
			depth = j;
		}
	}
	if (!any) {
		gt_out_text(question->out, "{}");
		return 0;
	}
	gt_put_number(question->out, "{\"start\":", found.start);
	gt_put_number(question->out, ",\"took\":", found.took);
	gt_put_number(question->out, ",\"lane\":", lane);
	gt_put_number(question->out, ",\"depth\":", depth);
	gt_out_char(question->out, '}');
	return 0;
}
