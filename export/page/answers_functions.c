/* SPDX-License-Identifier: MIT */
/* Questions of functions: lists, one function, bars of self times. See page.h. */
#define _GNU_SOURCE /* strcasestr */
#include "export/page/answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "export/sources.h"
#include "export/waiting.h"

#define LIST_MOST  2000u
#define BARS_MOST  64u
#define BAR_PIECES 40u
#define BAR_STEPS  (GT_HISTOGRAM_STEPS / 4) /* steps of the histogram in one bar */

static int by_name(const void *left, const void *right, void *user)
{
	const struct gt_page_function *items = user;
	const struct gt_ranked *a = left, *b = right;
	int order = strcmp(items[a->number].function.name, items[b->number].function.name);

	return order ? order : (a->number > b->number) - (a->number < b->number);
}

/* Parses by what functions are sorted; false: unknown. */
static bool rank_of(const struct gt_page_function *function, const char *sort, uint64_t *by)
{
	if (strcmp(sort, "self") == 0)
		*by = function->self;
	else if (strcmp(sort, "total") == 0)
		*by = function->total;
	else if (strcmp(sort, "calls") == 0)
		*by = function->calls;
	else if (strcmp(sort, "max") == 0)
		*by = function->maximum;
	else if (strcmp(sort, "average") == 0)
		*by = function->returned ? function->sum / function->returned : 0;
	else if (strcmp(sort, "p99") == 0)
		*by = gt_histogram_quantile(&function->times, 0.99);
	else
		return strcmp(sort, "name") == 0;
	return true;
}

/* Returns a quantile of the calls' durations: the middle of a bucket, within the minimum and
 * maximum. */
static uint64_t part_of_times(const struct gt_question *question,
			      const struct gt_page_function *function, double part)
{
	uint64_t ns = gt_histogram_quantile(&function->times, part);
	uint64_t least = gt_page_ns(question->page, function->minimum);

	if (function->returned == 0)
		return 0;
	return gt_at_most(ns < least ? least : ns, gt_page_ns(question->page, function->maximum));
}

/* Returns ns; of all calls that returned, as report counts: recursion does not make them shorter. */
static uint64_t average_of(const struct gt_question *question,
			   const struct gt_page_function *function)
{
	uint64_t sum = gt_page_ns(question->page, function->sum);

	return function->returned ? (sum + function->returned / 2) / function->returned : 0;
}

void gt_put_function(const struct gt_question *question, uint32_t number)
{
	const struct gt_page_function *function = &question->page->functions.items[number];
	const char *name = function->function.name;

	gt_put_number(question->out, "{\"id\":", number);
	gt_put_text(question->out, ",\"name\":", name);
	gt_put_text(question->out, ",\"object\":", function->function.object);
	gt_put_number(question->out, ",\"calls\":", function->calls);
	gt_put_number(question->out, ",\"returned\":", function->returned);
	gt_put_ticks(question, ",\"total\":", function->total);
	gt_put_ticks(question, ",\"self\":", function->self);
	gt_put_ticks(question, ",\"off\":", function->self_off);
	gt_put_number(question->out, ",\"average\":", average_of(question, function));
	gt_put_ticks(question, ",\"min\":", function->returned ? function->minimum : 0);
	gt_put_ticks(question, ",\"max\":", function->maximum);
	gt_put_number(question->out, ",\"p50\":", part_of_times(question, function, 0.5));
	gt_put_number(question->out, ",\"p90\":", part_of_times(question, function, 0.9));
	gt_put_number(question->out, ",\"p99\":", part_of_times(question, function, 0.99));
	gt_out_printf(question->out, ",\"waits\":%s",
		      gt_name_waits(name, strlen(name)) ? "true" : "false");
}

int gt_answer_functions(const struct gt_question *question)
{
	const struct gt_page_functions *functions = &question->page->functions;
	const char *sort = gt_question_text(question, "sort", "self"),
		   *wanted = gt_question_text(question, "q", "");
	struct gt_ranked *ranked;
	uint32_t found = 0;
	uint64_t limit, by = 0;

	if (!gt_question_number(question, "limit", 200, LIST_MOST, &limit) ||
	    !rank_of(&(struct gt_page_function){ 0 }, sort, &by))
		return GT_EINVAL;
	ranked = calloc(functions->count + 1u, sizeof(*ranked));
	if (ranked == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < functions->count; i++) {
		const struct gt_page_function *function = &functions->items[i];

		if (function->calls == 0 ||
		    (wanted[0] != '\0' && strcasestr(function->function.name, wanted) == NULL))
			continue;
		rank_of(function, sort, &by);
		ranked[found++] = (struct gt_ranked){ by, i };
	}
	if (strcmp(sort, "name") == 0)
		qsort_r(ranked, found, sizeof(*ranked), by_name, functions->items);
	else
		qsort(ranked, found, sizeof(*ranked), gt_ranked_compare);
	gt_put_number(question->out, "{\"found\":", found);
	gt_out_text(question->out, ",\"functions\":[");
	for (uint32_t i = 0; i < found && i < limit; i++) {
		if (i > 0)
			gt_out_char(question->out, ',');
		gt_put_function(question, ranked[i].number);
		gt_out_char(question->out, '}');
	}
	gt_out_text(question->out, "]}");
	free(ranked);
	return 0;
}

/* Calls between a function and its caller or callee. */
struct link {
	uint64_t calls, total;
};

/* Writes [[function, calls, total], …], the most time first. The last of the links is for calls
 * without a caller. */
static int put_links(const struct gt_question *question, const char *before,
		     const struct link *links, uint32_t count)
{
	struct gt_ranked *ranked = calloc(count, sizeof(*ranked));
	uint32_t found = 0;

	if (ranked == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		if (links[i].calls > 0)
			ranked[found++] = (struct gt_ranked){ links[i].total, i };
	qsort(ranked, found, sizeof(*ranked), gt_ranked_compare);
	gt_out_text(question->out, before);
	for (uint32_t i = 0; i < found; i++) {
		uint32_t other = ranked[i].number;

		gt_out_printf(question->out, "%s[%" PRId64 ",%" PRIu64, i ? "," : "",
			      other == count - 1 ? -1 : (int64_t)other, links[other].calls);
		gt_put_ticks(question, ",", links[other].total);
		gt_out_char(question->out, ']');
	}
	gt_out_char(question->out, ']');
	free(ranked);
	return 0;
}

/* Writes the callers and the callees of a function, with the times of those calls. */
static int put_neighbours(const struct gt_question *question, uint32_t number)
{
	const struct gt_tree *tree = &question->page->tree;
	uint32_t count = question->page->functions.count + 1;
	struct link *callers = calloc(count, sizeof(*callers));
	struct link *callees = calloc(count, sizeof(*callees));
	int error = callers != NULL && callees != NULL ? 0 : GT_ENOMEM;

	for (uint32_t i = 1; i < tree->count && error == 0; i++) {
		const struct gt_tree_node *node = &tree->nodes[i], *up = &tree->nodes[node->parent];
		bool outermost = up->function & GT_PAGE_LANE_NODE;

		if (node->function & GT_PAGE_LANE_NODE)
			continue;
		if (node->function == number + 1) {
			struct link *link = &callers[outermost ? count - 1 : up->function - 1];

			link->calls += node->calls;
			link->total += question->page->node_again[i] ? 0 : node->total;
		}
		if (!outermost && up->function == number + 1) {
			callees[node->function - 1].calls += node->calls;
			callees[node->function - 1].total += node->total;
		}
	}
	if (error == 0)
		error = put_links(question, ",\"callers\":[", callers, count);
	if (error == 0)
		error = put_links(question, ",\"callees\":[", callees, count);
	free(callers);
	free(callees);
	return error;
}

/* Writes by lane: [[lane, calls, total, self], …] */
static int put_lanes_of(const struct gt_question *question, uint32_t number)
{
	struct gt_page *page = question->page;
	const struct gt_tree *tree = &page->tree;
	struct lane_sums {
		uint64_t calls, total, self;
	} *sums = calloc(page->lane_count + 1u, sizeof(*sums));
	uint32_t *lane_of = calloc(tree->count, sizeof(*lane_of)), given = 0;

	if (sums == NULL || lane_of == NULL) {
		free(sums);
		free(lane_of);
		return GT_ENOMEM;
	}
	/* Parents precede their children. */
	for (uint32_t i = 1; i < tree->count; i++) {
		const struct gt_tree_node *node = &tree->nodes[i];
		struct lane_sums *sum;

		lane_of[i] = node->function & GT_PAGE_LANE_NODE
				     ? node->function & ~GT_PAGE_LANE_NODE
				     : lane_of[node->parent];
		if (node->function != number + 1)
			continue;
		sum = &sums[lane_of[i]];
		sum->calls += node->calls;
		sum->self += node->self;
		sum->total += page->node_again[i] ? 0 : node->total;
	}
	gt_out_text(question->out, ",\"lanes\":[");
	for (uint32_t i = 0; i < page->lane_count && given < LIST_MOST; i++) {
		if (sums[i].calls == 0)
			continue;
		gt_put_number(question->out, given++ ? ",[" : "[", i);
		gt_put_number(question->out, ",", sums[i].calls);
		gt_put_ticks(question, ",", sums[i].total);
		gt_put_ticks(question, ",", sums[i].self);
		gt_out_char(question->out, ']');
	}
	gt_out_char(question->out, ']');
	free(sums);
	free(lane_of);
	return 0;
}

/* Writes [[from, to, calls], …] in ns: four bars for each power of two. */
static void put_histogram(const struct gt_question *question, const struct gt_histogram *times)
{
	const char *before = "";

	gt_out_text(question->out, ",\"times\":[");
	for (unsigned octave = 0; octave < GT_HISTOGRAM_OCTAVES; octave++) {
		for (unsigned step = 0; times->octaves[octave] != NULL && step < GT_HISTOGRAM_STEPS;
		     step += BAR_STEPS) {
			uint64_t count = 0;

			for (unsigned i = 0; i < BAR_STEPS; i++)
				count += times->octaves[octave][step + i];
			if (count == 0)
				continue;
			gt_out_text(question->out, before);
			gt_put_number(question->out, "[", gt_histogram_low(octave, step));
			gt_put_number(question->out, ",",
				      gt_histogram_low(octave, step + BAR_STEPS));
			gt_put_number(question->out, ",", count);
			gt_out_char(question->out, ']');
			before = ",";
		}
	}
	gt_out_char(question->out, ']');
}

static void put_slowest(const struct gt_question *question, const struct gt_page_function *function)
{
	gt_out_text(question->out, ",\"slowest\":[");
	for (uint32_t i = 0; i < function->slow_count; i++) {
		const struct gt_page_slow *slow = &function->slow[i];

		gt_out_printf(question->out, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32,
			      i ? "," : "", slow->start, slow->took, slow->lane, slow->depth);
		gt_put_values(question->out, gt_page_find_values(question->page, slow->lane,
								 slow->depth, slow->start));
		gt_out_char(question->out, ']');
	}
	gt_out_char(question->out, ']');
}

/* Writes the function's place in the source, and that line if it can be read. */
static void put_source(const struct gt_question *question, const struct gt_page_function *function)
{
	struct gt_target *target = question->page->functions.target;
	struct gt_sources sources = { .target = target, .with_text = true };
	struct gt_source_line line;
	const char *note;

	if (gt_target_line(target, function->target_number, &line) != 0)
		return;
	gt_put_text(question->out, ",\"file\":", line.file);
	gt_put_number(question->out, ",\"line\":", line.line);
	note = gt_sources_note(&sources, function->target_number);
	note = note != NULL ? strstr(note, ": ") : NULL;
	if (note != NULL)
		gt_put_text(question->out, ",\"source\":", note + 2);
	gt_sources_fini(&sources);
}

int gt_answer_function(const struct gt_question *question)
{
	const struct gt_page_function *function;
	uint64_t number;
	int error;

	if (!gt_question_number(question, "id", UINT32_MAX, UINT32_MAX, &number))
		return GT_EINVAL;
	if (number >= question->page->functions.count)
		return GT_ENOENT;
	function = &question->page->functions.items[number];
	gt_put_function(question, (uint32_t)number);
	put_source(question, function);
	gt_put_number(question->out, ",\"entriesOnly\":", function->entries_only);
	gt_put_number(question->out, ",\"selfUpper\":", function->self_upper);
	put_histogram(question, &function->times);
	put_slowest(question, function);
	error = put_neighbours(question, (uint32_t)number);
	if (error == 0)
		error = put_lanes_of(question, (uint32_t)number);
	gt_out_char(question->out, '}');
	return error;
}

/* Self times by lane or CPU */

/* Self ticks by function in a bar. */
struct bar {
	uint64_t all;
	uint32_t number; /* of the lane or CPU */
	uint64_t *self;	 /* by index among the functions shown; the last: all others */
};

static int by_all(const void *left, const void *right)
{
	const struct bar *a = left, *b = right;

	if (a->all != b->all)
		return a->all > b->all ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

static void add_bars_of_cpus(const struct gt_page *page, const uint32_t *place, struct bar *bars)
{
	for (uint32_t i = 0; i < page->functions.count; i++) {
		const struct gt_page_function *function = &page->functions.items[i];

		for (uint32_t cpu = 0; cpu < function->cpu_count; cpu++) {
			bars[cpu].self[place[i]] += function->cpu_self[cpu];
			bars[cpu].all += function->cpu_self[cpu];
		}
	}
}

static int add_bars_of_lanes(const struct gt_page *page, const uint32_t *place, bool on_cpu,
			     struct bar *bars)
{
	const struct gt_tree *tree = &page->tree;
	uint32_t *lane_of = calloc(tree->count, sizeof(*lane_of));

	if (lane_of == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 1; i < tree->count; i++) {
		const struct gt_tree_node *node = &tree->nodes[i];
		uint64_t self;

		if (node->function & GT_PAGE_LANE_NODE) {
			lane_of[i] = node->function & ~GT_PAGE_LANE_NODE;
			continue;
		}
		lane_of[i] = lane_of[node->parent];
		self = node->self;
		if (on_cpu)
			self -= gt_at_most(page->node_off[i], self);
		bars[lane_of[i]].self[place[node->function - 1]] += self;
		bars[lane_of[i]].all += self;
	}
	free(lane_of);
	return 0;
}

/* Chooses the functions with most self time; place: by function, its index among them, or
 * `*count`. */
static int choose_functions(const struct gt_page *page, struct gt_ranked **ranked_out,
			    uint32_t **place_out, uint32_t *count)
{
	uint32_t all = page->functions.count;
	struct gt_ranked *ranked = calloc(all + 1u, sizeof(*ranked));
	uint32_t *place = calloc(all + 1u, sizeof(*place));

	*ranked_out = ranked;
	*place_out = place;
	if (ranked == NULL || place == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < all; i++)
		ranked[i] = (struct gt_ranked){ page->functions.items[i].self, i };
	qsort(ranked, all, sizeof(*ranked), gt_ranked_compare);
	*count = (uint32_t)gt_at_most(all, BAR_PIECES);
	while (*count > 0 && ranked[*count - 1].by == 0)
		--*count;
	for (uint32_t i = 0; i < all; i++)
		place[i] = *count;
	for (uint32_t i = 0; i < *count; i++)
		place[ranked[i].number] = i;
	return 0;
}

static void put_bars(const struct gt_question *question, const struct bar *bars, uint32_t count,
		     uint32_t functions)
{
	uint32_t given = 0;

	gt_out_text(question->out, "],\"bars\":[");
	for (; given < count && given < BARS_MOST && bars[given].all > 0; given++) {
		gt_put_number(question->out, given ? ",[" : "[", bars[given].number);
		gt_put_ticks(question, ",", bars[given].all);
		gt_out_text(question->out, ",[");
		for (uint32_t i = 0; i <= functions; i++)
			gt_put_ticks(question, i ? "," : "", bars[given].self[i]);
		gt_out_text(question->out, "]]");
	}
	gt_out_char(question->out, ']');
	while (given < count && bars[given].all > 0)
		given++;
	gt_put_number(question->out, ",\"found\":", given);
}

int gt_answer_selftimes(const struct gt_question *question)
{
	struct gt_page *page = question->page;
	const char *by = gt_question_text(question, "by", "lane");
	bool cpus = strcmp(by, "cpu") == 0, on_cpu = strcmp(by, "lane-on-cpu") == 0;
	uint32_t bars_count = cpus ? GT_PAGE_CPUS : page->lane_count, count = 0, *place;
	struct gt_ranked *ranked;
	int error = choose_functions(page, &ranked, &place, &count);
	struct bar *bars = calloc(bars_count + 1u, sizeof(*bars));
	uint64_t *cells = calloc(((size_t)bars_count + 1) * (count + 1u), sizeof(*cells));

	if (bars == NULL || cells == NULL)
		error = GT_ENOMEM;
	for (uint32_t i = 0; error == 0 && i < bars_count; i++)
		bars[i] = (struct bar){ 0, i, cells + (size_t)i * (count + 1) };
	if (error == 0 && cpus)
		add_bars_of_cpus(page, place, bars);
	else if (error == 0)
		error = add_bars_of_lanes(page, place, on_cpu, bars);
	if (error == 0) {
		qsort(bars, bars_count, sizeof(*bars), by_all);
		gt_out_text(question->out, "{\"functions\":[");
		for (uint32_t i = 0; i < count; i++) {
			if (i > 0)
				gt_out_char(question->out, ',');
			gt_put_function(question, ranked[i].number);
			gt_out_char(question->out, '}');
		}
		put_bars(question, bars, bars_count, count);
		gt_out_char(question->out, '}');
	}
	free(ranked);
	free(place);
	free(bars);
	free(cells);
	return error;
}
