/* SPDX-License-Identifier: MIT */
/* What the answers of page.h share: parameters of a question, and numbers written as JSON.
 *
 * All that takes a question is called with page->lock held (gt_page_answer() takes it) and takes no lock. What is written
 * is appended to the question's `out`; its errors are in out->error. */
#ifndef GT_EXPORT_PAGE_ANSWERS_H
#define GT_EXPORT_PAGE_ANSWERS_H

#include "export/page/page_private.h"

struct gt_question {
	struct gt_page *page;
	gt_page_parameter *parameter;
	void *user;
	struct gt_out *out;
};

/* The parameter, or `otherwise` if it is missing. Lives as the question's `parameter` function says. */
const char *gt_question_text(const struct gt_question *question, const char *name,
			     const char *otherwise);
/* *number: the parameter, or `otherwise` if it is missing. False: it is there and is no number up to `most`. */
bool gt_question_number(const struct gt_question *question, const char *name, uint64_t otherwise,
			uint64_t most, uint64_t *number);
/* Takes the next number or range off *list, as "3,7-9"; a larger number than UINT32_MAX becomes that. False: the list is at
 * its end, or is wrong there (*list is not at its end then). */
bool gt_question_range(const char **list, uint32_t *first, uint32_t *last);

/* Write `before`, then the number or string as JSON. */
void gt_put_number(struct gt_out *out, const char *before, uint64_t number);
void gt_put_text(struct gt_out *out, const char *before, const char *text);
/* Writes `,arguments,result` of a call, each null where it was not recorded; nothing for NULL. */
void gt_put_values(struct gt_out *out, const struct gt_page_value *value);
/* Writes `before`, then ticks as nanoseconds. */
void gt_put_ticks(const struct gt_question *question, const char *before, uint64_t ticks);
/* Writes `{"id":…,` and all sums of a function, by its number in page->functions, without the closing brace. */
void gt_put_function(const struct gt_question *question, uint32_t number);

static inline uint64_t gt_at_most(uint64_t value, uint64_t most)
{
	return value < most ? value : most;
}

/* Something's number, and what it is put in order by: the most first. */
struct gt_ranked {
	uint64_t by;
	uint32_t number;
};

/* For qsort; of equal ones the lower number first. */
int gt_ranked_compare(const void *left, const void *right);

/* The questions, as gt_page_answer() describes them. 0 or its errors, but GT_ENOMEM not for `out`. */
int gt_answer_timeline(const struct gt_question *question);
int gt_answer_flame(const struct gt_question *question);
int gt_answer_functions(const struct gt_question *question);
int gt_answer_function(const struct gt_question *question);
int gt_answer_selftimes(const struct gt_question *question);
int gt_answer_find(const struct gt_question *question);
int gt_answer_off_cpu(const struct gt_question *question);

#endif
