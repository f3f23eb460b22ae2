/* SPDX-License-Identifier: MIT */
/*
 * The tracer blk: the events of the system block as blktrace writes them, by their fields' names. Letters
 * and layout: kernel/trace/blktrace.c (what2act, blk_log_action), Linux 6.1.
 */
#include "core/text/text_parts.h"

static const struct {
	const char *event;
	const char *action;
} actions[] = {
	{ "block_bio_queue", "Q" },	 { "block_bio_backmerge", "M" },
	{ "block_bio_frontmerge", "F" }, { "block_getrq", "G" },
	{ "block_rq_insert", "I" },	 { "block_rq_issue", "D" },
	{ "block_rq_requeue", "R" },	 { "block_rq_complete", "C" },
	{ "block_plug", "P" },		 { "block_bio_complete", "C" },
	{ "block_split", "X" },		 { "block_bio_remap", "A" },
};

static bool is_word(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* Finds the field of that name; false if there is none, or it cannot be read. */
static bool find(const struct gt_event_format *format, const struct gt_record *record,
		 const char *name, enum gt_event_value_kind kind, struct gt_event_value *value)
{
	for (uint32_t i = 0; i < format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		if (!is_word(format->fields[i].name, name))
			continue;
		gt_event_value(format, record, i, value);
		return value->kind == kind;
	}
	return false;
}

static char *put_width(char *at, const char *text, size_t bytes, size_t width)
{
	if (bytes < width)
		at = gt_put_fill(at, ' ', width - bytes);
	return gt_put_clean(at, text, bytes);
}

bool gt_text_put_block(const struct gt_event_format *format, const struct gt_record *record,
		       char **line)
{
	struct gt_event_value dev, sector, sectors, rwbs, last;
	const char *action = NULL;
	char *at = *line, *start;

	if (!is_word(format->system, "block"))
		return false;
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]) && action == NULL; i++)
		action = is_word(format->name, actions[i].event) ? actions[i].action : NULL;
	if (action == NULL || !find(format, record, "dev", GT_EVENT_NUMBER, &dev) ||
	    !find(format, record, "sector", GT_EVENT_NUMBER, &sector) ||
	    !find(format, record, "nr_sector", GT_EVENT_NUMBER, &sectors) ||
	    !find(format, record, "rwbs", GT_EVENT_STRING, &rwbs))
		return false;
	at = gt_put_right(at, (uint32_t)dev.number >> 20, 3);
	*at++ = ',';
	start = at;
	at = gt_put_number(at, dev.number & 0xfffff);
	if (at - start < 3)
		at = gt_put_fill(at, ' ', (size_t)(3 - (at - start)));
	*at++ = ' ';
	at = put_width(at, action, 1, 2);
	*at++ = ' ';
	at = put_width(at, rwbs.text, rwbs.text_bytes < 8 ? rwbs.text_bytes : 8, 3);
	*at++ = ' ';
	if (sectors.number) {
		at = gt_put_number(at, sector.number);
		at = GT_PUT_LITERAL(at, " + ");
		at = gt_put_number(at, sectors.number);
		*at++ = ' ';
	}
	*at++ = '[';
	if (find(format, record, "error", GT_EVENT_NUMBER, &last)) {
		if ((int64_t)last.number < 0)
			*at++ = '-';
		at = gt_put_number(at, (int64_t)last.number < 0 ? -last.number : last.number);
	} else if (find(format, record, "comm", GT_EVENT_STRING, &last)) {
		at = gt_put_clean(at, last.text, last.text_bytes < 16 ? last.text_bytes : 16);
	}
	*at++ = ']';
	*line = at;
	return true;
}
