/* SPDX-License-Identifier: MIT */
/*
 * See rest.h. People see
 *	off_cpu: slept 2047.946 us until an interrupt in sh-5969 woke it, waited 12.638 us for a CPU
 *	off_cpu: preempted, waited 12.638 us for a CPU
 */
#include "core/trace/rest.h"

#include "core/trace/event_output.h"

enum {
	SLEPT,
	WAITED,
	PREEMPTED,
	BY_INTERRUPT,
	WAKER_TID,
	WAKER,
	FIELDS,
};

_Static_assert(GT_REST_WORDS == FIELDS + (GT_REST_WAKER_MAX + 1 + 7) / 8, "the name has room");

void gt_rest_format(uint32_t number, struct gt_event_format *format)
{
	*format = (struct gt_event_format){
		.number = number,
		.field_count = FIELDS,
		.system = "graftrace",
		.name = "off_cpu",
		.object = "",
		.fields = {
			[SLEPT] = { "slept_ns", "u64", 8, .show = GT_SHOW_DECIMAL },
			[WAITED] = { "waited_ns", "u64", 8, .show = GT_SHOW_DECIMAL },
			[PREEMPTED] = { "preempted", "bool", 1, .show = GT_SHOW_DECIMAL },
			[BY_INTERRUPT] = { "by_interrupt", "bool", 1, .show = GT_SHOW_DECIMAL },
			[WAKER_TID] = { "waker_tid", "u32", 4, .show = GT_SHOW_DECIMAL },
			[WAKER] = { "waker", "char *", 8, .is_string = true },
		},
	};
}

uint32_t gt_rest_words(const struct gt_rest *rest, uint64_t words[GT_REST_WORDS])
{
	const uint32_t bytes =
		rest->waker_bytes < GT_REST_WAKER_MAX ? rest->waker_bytes : GT_REST_WAKER_MAX;

	__builtin_memset(words, 0, GT_REST_WORDS * sizeof(*words));
	words[SLEPT] = rest->slept_ns;
	words[WAITED] = rest->waited_ns;
	words[PREEMPTED] = rest->preempted;
	words[BY_INTERRUPT] = rest->by_interrupt;
	words[WAKER_TID] = rest->waker_tid;
	words[WAKER] = FIELDS * sizeof(*words) | (uint64_t)(bytes + 1) << 16;
	__builtin_memcpy(words + FIELDS, rest->waker, bytes);
	return FIELDS + (bytes + 1 + 7) / 8;
}

static uint64_t number_of(const struct gt_event_format *format, const struct gt_record *record,
			  uint32_t index)
{
	struct gt_event_value value;

	gt_event_value(format, record, index, &value);
	return value.kind == GT_EVENT_NUMBER ? value.number : 0;
}

bool gt_rest_read(const struct gt_event_format *format, const struct gt_record *record,
		  struct gt_rest *rest)
{
	struct gt_event_value waker;

	if (format->field_count != FIELDS || !format->fields[WAKER].is_string ||
	    !gt_event_word_matches("graftrace:off_cpu", format->system, format->name))
		return false;
	gt_event_value(format, record, WAKER, &waker);
	*rest = (struct gt_rest){
		.preempted = number_of(format, record, PREEMPTED) != 0,
		.by_interrupt = number_of(format, record, BY_INTERRUPT) != 0,
		.slept_ns = number_of(format, record, SLEPT),
		.waited_ns = number_of(format, record, WAITED),
		.waker_tid = (uint32_t)number_of(format, record, WAKER_TID),
		.waker_bytes = waker.kind == GT_EVENT_STRING ? waker.text_bytes : 0,
		.waker = waker.kind == GT_EVENT_STRING ? waker.text : "",
	};
	return true;
}

static void put_us(struct gt_output *output, uint64_t ns)
{
	gt_output_number(output, ns / 1000, "%llu.");
	gt_output_number(output, ns % 1000, "%03llu us");
}

void gt_event_put_rest(struct gt_output *output, const struct gt_rest *rest)
{
	if (rest->preempted) {
		gt_output_text(output, "preempted");
	} else {
		gt_output_text(output, "slept ");
		put_us(output, rest->slept_ns);
		gt_output_text(output, rest->by_interrupt ? " until an interrupt in " : " until ");
		gt_output_clean(output, rest->waker, rest->waker_bytes);
		gt_output_number(output, rest->waker_tid, "-%llu woke it");
	}
	gt_output_text(output, ", waited ");
	put_us(output, rest->waited_ns);
	gt_output_text(output, " for a CPU");
}
