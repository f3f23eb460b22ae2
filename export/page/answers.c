/* SPDX-License-Identifier: MIT */
/*
 * The page's questions: code that answers share, the overview, and names. See page.h.
 */
#include "export/page/answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTLIERS   60u /* the page puts those within each other together */
#define NAMES_MOST 500u

const char *gt_question_text(const struct gt_question *question, const char *name,
			     const char *otherwise)
{
	const char *text = question->parameter(question->user, name);

	return text != NULL ? text : otherwise;
}

/* false: the parameter exists and is not a number up to `most`. */
bool gt_question_number(const struct gt_question *question, const char *name, uint64_t otherwise,
			uint64_t most, uint64_t *number)
{
	const char *text = question->parameter(question->user, name);
	char *end;

	*number = otherwise;
	if (text == NULL)
		return true;
	if (text[0] < '0' || text[0] > '9')
		return false;
	*number = strtoull(text, &end, 10);
	return *end == '\0' && *number <= most;
}

/* Writes `"name":number` after the separator that it needs. */
void gt_put_number(struct gt_out *out, const char *before, uint64_t number)
{
	gt_out_text(out, before);
	gt_out_number(out, number);
}

void gt_put_text(struct gt_out *out, const char *before, const char *text)
{
	gt_out_text(out, before);
	gt_out_json(out, text);
}

static void put_value(struct gt_out *out, const char *text)
{
	gt_out_char(out, ',');
	if (text != NULL)
		gt_out_json(out, text);
	else
		gt_out_text(out, "null");
}

void gt_put_values(struct gt_out *out, const struct gt_page_value *value)
{
	if (value == NULL)
		return;
	put_value(out, gt_page_arguments(value));
	put_value(out, gt_page_result(value));
}

/* Writes ticks as nanoseconds. */
void gt_put_ticks(const struct gt_question *question, const char *before, uint64_t ticks)
{
	gt_put_number(question->out, before, gt_page_ns(question->page, ticks));
}

/* Parses the next number or range of a list "3,7-9"; false: the list ends, or is wrong (then
 * *list is not at its end). */
bool gt_question_range(const char **list, uint32_t *first, uint32_t *last)
{
	char *end;

	if (**list < '0' || **list > '9')
		return false;
	*first = *last = (uint32_t)gt_at_most(strtoull(*list, &end, 10), UINT32_MAX);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		*last = (uint32_t)gt_at_most(strtoull(end + 1, &end, 10), UINT32_MAX);
	if (*end == ',' && end[1] != '\0')
		end++;
	*list = end;
	return true;
}

int gt_ranked_compare(const void *left, const void *right)
{
	const struct gt_ranked *a = left, *b = right;

	if (a->by != b->by)
		return a->by > b->by ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

/* The overview */

/* A call that took far longer than most calls of its function. */
struct outlier {
	uint64_t over; /* ns by which it exceeds the median */
	uint64_t usual;
	const struct gt_page_slow *slow;
	uint32_t function;
};

static int by_over(const void *left, const void *right)
{
	const struct outlier *a = left, *b = right;

	if (a->over != b->over)
		return a->over > b->over ? -1 : 1;
	return (a->function > b->function) - (a->function < b->function);
}

/* Does a call last from the beginning of the run to its end, but for a hundredth of it? It is what the
 * program is, not what is slow in it. */
static bool is_whole_run(const struct gt_page *page, const struct gt_page_slow *slow)
{
	uint64_t little = page->length / 100;

	return slow->start <= little && slow->start + slow->took + little >= page->length;
}

/* The slowest call of a function that is not the whole run; NULL: it has none among its slowest. */
static const struct gt_page_slow *slowest_within(const struct gt_page *page,
						 const struct gt_page_function *function)
{
	for (uint32_t i = 0; i < function->slow_count; i++)
		if (!is_whole_run(page, &function->slow[i]))
			return &function->slow[i];
	return NULL;
}

/* Lists for each function its slowest call, if that took ten times the median or more. Returns how
 * many. */
static uint32_t list_outliers(const struct gt_page *page, bool of_whole_run,
			      struct outlier *outliers)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < page->functions.count; i++) {
		const struct gt_page_function *function = &page->functions.items[i];
		uint64_t usual = gt_histogram_quantile(&function->times, 0.5);
		const struct gt_page_slow *slow =
			of_whole_run ? function->slow : slowest_within(page, function);

		if (function->returned < 10 || slow == NULL || slow->took / 10 < usual)
			continue;
		outliers[count++] = (struct outlier){ slow->took - usual, usual, slow, i };
	}
	return count;
}

/* The calls that stand out. Those that are the whole run only if there are no others. */
static void put_outliers(const struct gt_question *question)
{
	const struct gt_page_functions *functions = &question->page->functions;
	struct outlier *outliers = calloc(functions->count + 1u, sizeof(*outliers));
	uint32_t count = 0;

	gt_out_text(question->out, ",\"outliers\":[");
	if (outliers != NULL)
		count = list_outliers(question->page, false, outliers);
	if (outliers != NULL && count == 0)
		count = list_outliers(question->page, true, outliers);
	if (count > 0)
		qsort(outliers, count, sizeof(*outliers), by_over);
	for (uint32_t i = 0;
	     i < count && i < OUTLIERS && outliers[i].over >= outliers[0].over / 1000; i++) {
		const struct gt_page_slow *slow = outliers[i].slow;

		gt_out_printf(question->out,
			      "%s[%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32
			      ",%" PRIu64 "]",
			      i ? "," : "", outliers[i].function, slow->start, slow->took,
			      slow->lane, slow->depth, outliers[i].usual);
	}
	gt_out_char(question->out, ']');
	free(outliers);
}

static void put_lanes(const struct gt_question *question)
{
	const struct gt_page *page = question->page;

	gt_out_text(question->out, ",\"lanes\":[");
	for (uint32_t i = 0; i < page->lane_count; i++) {
		const struct gt_page_lane *lane = &page->lanes[i];

		gt_out_printf(question->out,
			      "%s{\"lane\":%" PRIu32 ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
			      ",\"stack\":%" PRIu32,
			      i ? "," : "", i, lane->pid, lane->tid, lane->stack);
		gt_put_text(question->out, ",\"name\":", lane->name);
		gt_put_number(question->out, ",\"first\":", lane->calls ? lane->first : 0);
		gt_put_number(question->out, ",\"last\":", lane->last);
		gt_put_number(question->out, ",\"calls\":", lane->calls);
		gt_put_number(question->out, ",\"depth\":", lane->track_count);
		gt_put_ticks(question, ",\"self\":", lane->self);
		gt_put_ticks(question, ",\"off\":", lane->self_off);
		if (lane->marks)
			gt_put_number(question->out, ",\"marks\":", lane->marks);
		gt_out_char(question->out, '}');
	}
	gt_out_char(question->out, ']');
}

static int answer_overview(const struct gt_question *question)
{
	const struct gt_page *page = question->page;
	const struct gt_export_about *about = &page->options.about;
	const struct gt_stack_report *report = &page->report;
	struct gt_out *out = question->out;
	uint64_t called = 0;

	for (uint32_t i = 0; i < page->functions.count; i++)
		called += page->functions.items[i].calls > 0;
	gt_put_text(out, "{\"program\":", about->program);
	gt_put_text(out, ",\"command\":", about->command_line);
	gt_put_text(out, ",\"host\":", about->host);
	gt_put_text(out, ",\"madeBy\":", about->made_by);
	gt_put_number(out, ",\"realtime\":", about->realtime_ns / 1000000);
	gt_put_number(out, ",\"length\":", page->length);
	gt_put_number(out,
		      ",\"calls\":", report->calls + report->without_return + report->entries_only);
	gt_put_number(out, ",\"returned\":", report->calls);
	gt_put_number(out, ",\"withoutReturn\":", report->without_return);
	gt_put_number(out, ",\"lost\":", report->lost);
	gt_put_number(out, ",\"gaps\":", report->gaps);
	gt_put_number(out, ",\"functions\":", called);
	gt_put_number(out, ",\"grain\":", page->grain);
	gt_put_number(out, ",\"tooDeep\":", page->too_deep);
	gt_out_printf(out, ",\"offCpu\":%s,\"kernel\":%s", page->has_off_cpu ? "true" : "false",
		      about->is_kernel ? "true" : "false");
	gt_put_text(out,
		    ",\"problem\":", page->options.problem != NULL ? page->options.problem : "");
	put_lanes(question);
	put_outliers(question);
	gt_out_char(out, '}');
	return 0;
}

static int answer_names(const struct gt_question *question)
{
	const struct gt_page_functions *functions = &question->page->functions;
	const char *list = gt_question_text(question, "ids", "");
	uint32_t first, last, given = 0;

	gt_out_char(question->out, '{');
	while (gt_question_range(&list, &first, &last)) {
		for (uint32_t i = first; i <= last && i < functions->count && given < NAMES_MOST;
		     i++) {
			gt_out_printf(question->out, "%s\"%" PRIu32 "\":", given++ ? "," : "", i);
			gt_out_json(question->out, functions->items[i].function.name);
		}
	}
	gt_out_char(question->out, '}');
	return *list == '\0' ? 0 : GT_EINVAL;
}

static const struct {
	const char *name;
	int (*answer)(const struct gt_question *question);
} answers[] = {
	{ "overview", answer_overview },    { "timeline", gt_answer_timeline },
	{ "flame", gt_answer_flame },	    { "functions", gt_answer_functions },
	{ "function", gt_answer_function }, { "selftimes", gt_answer_selftimes },
	{ "names", answer_names },	    { "find", gt_answer_find },
	{ "offcpu", gt_answer_off_cpu },
};

int gt_page_answer(struct gt_page *page, const char *question, gt_page_parameter *parameter,
		   void *user, struct gt_out *out)
{
	const struct gt_question asked = { page, parameter, user, out };
	int error = GT_ENOENT;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		if (strcmp(answers[i].name, question) != 0)
			continue;
		/* One thread at a time makes selections and uses the target. */
		pthread_mutex_lock(&page->lock);
		error = answers[i].answer(&asked);
		pthread_mutex_unlock(&page->lock);
	}
	return error == 0 && out->error ? GT_ENOMEM : error;
}
