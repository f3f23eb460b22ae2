/* SPDX-License-Identifier: MIT */
/*
 * Events: a head word that says type and length, and data words.
 */
#include "core/trace/decode_private.h"

static void marker(struct gt_decode *decode, struct gt_record *record, const uint64_t *data,
		   uint32_t length)
{
	const char *text = (const char *)(data + 1);
	uint32_t bytes = (length - 1) * 8;
	while (bytes && !text[bytes - 1])
		bytes--;
	gt_decode_fill_record(decode, record, GT_RECORD_MARKER);
	record->clock = data[0];
	record->text = text;
	record->text_bytes = bytes;
}

static int raw_marker(struct gt_decode *decode, struct gt_record *record, const uint64_t *data,
		      uint32_t length)
{
	uint64_t bytes = (length - 2) * 8;
	gt_decode_fill_record(decode, record, GT_RECORD_MARKER);
	record->flags = GT_RECORD_RAW;
	record->clock = data[0];
	record->text = (const char *)(data + 2);
	record->text_bytes = (uint32_t)(data[1] < bytes ? data[1] : bytes);
	return GT_RECORD_MARKER;
}

/* An event with fields. Its clock is that of what follows, too. */
static int probe(struct gt_decode *decode, struct gt_record *record, const uint64_t *data,
		 uint32_t there)
{
	if (data[0] == 0 || there < 2) { /* the writer was cut off in it */
		decode->holes++;
		return 0;
	}
	if (data[0] > decode->clock && data[0] >> 32 == decode->clock >> 32)
		decode->clock = data[0];
	gt_decode_fill_record(decode, record, GT_RECORD_EVENT);
	record->clock = data[0];
	record->value = (uint32_t)data[1];
	record->start = (uint16_t)(data[1] >> 32);
	record->state = data[1] >> GRAFTRACE_PROBE_STATE;
	record->text = (const char *)(data + 2);
	record->text_bytes = (there - 2) * 8;
	return GT_RECORD_EVENT;
}

/* > 0: a record; 0: go on; < 0: the rest of it is not written yet. */
int gt_decode_event(struct gt_decode *decode, struct gt_record *record, uint32_t argument)
{
	uint32_t type = argument >> 16, length = argument & 0xffff;
	const uint64_t *data = decode->word + 1;
	uint64_t left = (uint64_t)(decode->end - data);
	uint64_t whole[4] = { 0 };

	/* The writer stores the first data word last of all. */
	if (decode->growing && length && (left == 0 || data[0] == 0))
		return -1;
	/* Zeros at the end of a sub-buffer that was not closed are taken for words not written, and
	 * are left out: where an event ends so, they are its last words. */
	uint32_t there = length < left ? length : (uint32_t)left;
	if (there < length && there == 0) {
		decode->damaged++;
		decode->word = decode->end;
		return 0;
	}
	for (uint32_t i = 0; i < there && i < 4; i++)
		whole[i] = data[i];

	if ((type == GRAFTRACE_EVENT_LONG_RETURN || type == GRAFTRACE_EVENT_LONG_CALL) &&
	    length == 3) {
		if (whole[0] && whole[1])
			return gt_decode_long_return(decode, record, whole, 1 + there,
						     type == GRAFTRACE_EVENT_LONG_CALL);
		decode->holes++; /* the writer was cut off in it */
		decode->word += 1 + there;
		return 0;
	}
	decode->word = data + there;
	/* of even length in all, among the function tracer's records */
	if (decode->tracer == GRAFTRACE_TRACER_FUNCTION && !(length & 1) &&
	    decode->word < decode->end)
		decode->word++;
	if ((type == GRAFTRACE_EVENT_MARKER || type == GRAFTRACE_EVENT_TEXT) && length >= 1) {
		marker(decode, record, data, there);
		record->flags = type == GRAFTRACE_EVENT_TEXT ? GT_RECORD_TEXT : 0;
		return GT_RECORD_MARKER;
	}
	if (type == GRAFTRACE_EVENT_MARKER_RAW && there >= 2)
		return raw_marker(decode, record, data, there);
	if (type == GRAFTRACE_EVENT_STACK && there >= 1) {
		gt_decode_fill_record(decode, record, GT_RECORD_STACK);
		record->clock = whole[0];
		record->text = (const char *)(data + 1);
		record->text_bytes = (there - 1) * 8;
		return GT_RECORD_STACK;
	}
	if (type == GRAFTRACE_EVENT_PROBE && length >= 2)
		return probe(decode, record, data, there);
	if ((type == GRAFTRACE_EVENT_ARGUMENTS || type == GRAFTRACE_EVENT_RESULT) && there >= 1) {
		gt_decode_note_values(decode, type, data, there);
		return 0;
	}
	if (type == GRAFTRACE_EVENT_ENTRY_ONLY && length == 1) {
		uint32_t function = graftrace_word_function(whole[0]);
		if (function - 1 >= GRAFTRACE_SPECIAL - 1) {
			decode->damaged++;
			return 0;
		}
		decode->clock = gt_decode_full_clock(decode, whole[0]);
		gt_decode_fill_record(decode, record, GT_RECORD_ENTRY_ONLY);
		record->function = function;
		return GT_RECORD_ENTRY_ONLY;
	}
	if (type == GRAFTRACE_EVENT_SWITCH && length == 4) {
		if (whole[0] > decode->clock && whole[0] - decode->clock < 1ull << 31 &&
		    whole[0] >> 32 == decode->clock >> 32)
			decode->clock = whole[0];
		gt_decode_fill_record(decode, record, GT_RECORD_SWITCH);
		record->clock = whole[0];
		record->previous_tid = whole[1];
		record->next_tid = whole[2];
		record->state = whole[3];
		return GT_RECORD_SWITCH;
	}
	if (there < length)
		decode->damaged++;
	else
		decode->unknown++;
	return 0;
}
