/* SPDX-License-Identifier: MIT */
/*
 * Values of calls: events that come before their call, and are given with its record.
 */
#include "core/trace/decode_private.h"

#define VALUES_PATIENCE 256u /* records */

void gt_decode_forget_values(struct gt_decode *decode)
{
	for (uint32_t i = 0; i < GT_DECODE_VALUES; i++)
		decode->values[i].type = 0;
	decode->values_pending = 0;
	gt_decode_set_fast(decode);
}

static bool is_newer(const struct gt_decode_values *one, const struct gt_decode_values *other)
{
	return (int32_t)(one->noted - other->noted) > 0;
}

/* They come before their call. What is longer than any writer makes it is cut. */
void gt_decode_note_values(struct gt_decode *decode, uint32_t type, const uint64_t *data,
			   uint32_t there)
{
	struct gt_decode_values *values = &decode->values[0];

	if (data[0] == 0) { /* the writer was cut off in it */
		decode->holes++;
		return;
	}
	/* A free place before one in use, so that a handler's values leave those of the call that it
	 * interrupted; of each kind the oldest, for a record given out may still point into another. */
	for (uint32_t i = 1; i < GT_DECODE_VALUES; i++) {
		struct gt_decode_values *other = &decode->values[i];
		const bool both = (other->type == 0) == (values->type == 0);

		if (both ? is_newer(values, other) : other->type == 0)
			values = other;
	}
	values->noted = ++decode->values_next;
	decode->values_pending += values->type == 0;
	values->type = type;
	values->function = (uint32_t)data[0];
	values->records = 0;
	values->count = there < GT_DECODE_VALUE_WORDS ? there : GT_DECODE_VALUE_WORDS;
	__builtin_memcpy(values->words, data, values->count * sizeof(*data));
	gt_decode_set_fast(decode);
}

/* Gives them to their call, if that is what comes now: the last that were noted first. */
void gt_decode_attach_values(struct gt_decode *decode, struct gt_record *record)
{
	const uint32_t type = record->kind == GT_RECORD_RETURN ? GRAFTRACE_EVENT_RESULT
							       : GRAFTRACE_EVENT_ARGUMENTS;
	const bool is_call = record->kind == GT_RECORD_RETURN || record->kind == GT_RECORD_ENTRY ||
			     record->kind == GT_RECORD_ENTRY_ONLY ||
			     record->kind == GT_RECORD_FUNCTION;
	struct gt_decode_values *own = NULL;

	for (uint32_t i = 0; i < GT_DECODE_VALUES && is_call; i++) {
		struct gt_decode_values *values = &decode->values[i];

		if (values->type == type && values->function == record->function &&
		    (own == NULL || is_newer(values, own)))
			own = values;
	}
	for (uint32_t i = 0; i < GT_DECODE_VALUES; i++) {
		struct gt_decode_values *values = &decode->values[i];

		if (values->type == 0)
			continue;
		if (values == own) {
			record->flags |= GT_RECORD_VALUES;
			record->text = (const char *)values->words;
			record->text_bytes = values->count * 8;
		} else if (values->records++ < VALUES_PATIENCE) {
			continue;
		}
		values->type = 0;
		decode->values_pending--;
	}
	gt_decode_set_fast(decode);
}
