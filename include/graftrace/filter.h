/* SPDX-License-Identifier: MIT */
/*
 * Rules of events: what is done where an event happens, and the filters that say whether. They lie
 * in the arena, written by the host alone:
 *
 *	event_table[event_count]    for each number of an event: where its block is in the pool, in
 *	                            units of 8 bytes; 0: it has none, and is recorded
 *	pool                        blocks: struct graftrace_event_rules, its rules, their filters
 *	rule_words[rule_word_count] what rules count in, and ask: the one thing here that processes write
 *
 * A block never changes. Another one is made and its place stored in the table (release); the room
 * of the one before is used again last. Who is inside of it then may see other bytes: so whatever
 * stands there, evaluation stays within `room`, goes only forward, and calls nothing.
 *
 * A filter is a list of comparisons. Each says with which outcome it branches, and where to, always
 * forward; else the next one is looked at. One step behind the last the event passes, two steps
 * behind it does not. (kernel/trace/trace_events_filter.c has the idea, and how that is made from an
 * expression: core/trace/event_filter.c.)
 */
#ifndef GRAFTRACE_FILTER_H
#define GRAFTRACE_FILTER_H

#include <stdint.h>
#include <graftrace/record.h>

enum graftrace_filter_kind {
	GRAFTRACE_FILTER_SIGNED = 1,   /* a field, as a number with its sign */
	GRAFTRACE_FILTER_UNSIGNED = 2, /* … without */
	GRAFTRACE_FILTER_TEXT = 3,     /* a field's string */
	GRAFTRACE_FILTER_CPU = 4,
	GRAFTRACE_FILTER_THREAD = 5,   /* common_pid: which thread it is */
	GRAFTRACE_FILTER_COMM = 6,     /* its name */
	GRAFTRACE_FILTER_CONSTANT = 7, /* what is the same in each event: `text` itself */
};

enum graftrace_filter_compare {
	GRAFTRACE_COMPARE_EQ = 1,
	GRAFTRACE_COMPARE_NE = 2,
	GRAFTRACE_COMPARE_LT = 3,
	GRAFTRACE_COMPARE_LE = 4,
	GRAFTRACE_COMPARE_GT = 5,
	GRAFTRACE_COMPARE_GE = 6,
	GRAFTRACE_COMPARE_AND = 7, /* they have a bit in common */
	GRAFTRACE_COMPARE_GLOB = 8,
	GRAFTRACE_COMPARE_NOT_GLOB = 9,
};

struct graftrace_filter_op {
	uint8_t kind;	  /* enum graftrace_filter_kind */
	uint8_t compare;  /* enum graftrace_filter_compare */
	uint8_t field;	  /* index of the field */
	uint8_t when;	  /* the outcome, 0 or 1, with which it branches … */
	uint16_t target;  /* … to this comparison */
	uint16_t bytes;	  /* of its text */
	uint32_t text;	  /* where that begins among the filter's texts */
	uint32_t scratch; /* while it is made */
	uint64_t value;	  /* what a number is compared with */
};

#define GRAFTRACE_FILTER_OPS   4094  /* at most */
#define GRAFTRACE_FILTER_BYTES 4096u /* of an expression, its zero byte included */

struct graftrace_filter {
	uint32_t count;	     /* of its comparisons, which follow; then their texts */
	uint32_t text_bytes; /* of these */
};

enum graftrace_rule_action {
	/* The event is recorded: without such a rule it is not. With a word: while that is not 0. */
	GRAFTRACE_RULE_RECORD = 1,
	/* Triggers; the word counts how often they have acted. */
	GRAFTRACE_RULE_TRACEON = 2,
	GRAFTRACE_RULE_TRACEOFF = 3,
	GRAFTRACE_RULE_SNAPSHOT = 4,
	GRAFTRACE_RULE_STACKTRACE = 5,
	GRAFTRACE_RULE_ENABLE = 6, /* the word `argument` becomes 1: another event is recorded */
	GRAFTRACE_RULE_DISABLE = 7,
	/* The event is counted in a histogram, unless the word is not 0. argument: where its
	 * description (graftrace/hist.h) lies, in bytes from the block's start. more: 1: it has actions,
	 * so that it counts once the event is recorded. */
	GRAFTRACE_RULE_HIST = 8,
	/* The word `argument` becomes 0, 1: a histogram of another event counts, or pauses. */
	GRAFTRACE_RULE_HIST_ON = 9,
	GRAFTRACE_RULE_HIST_OFF = 10,
	GRAFTRACE_RULE_ACTIONS,
};

#define GRAFTRACE_RULE_UNLIMITED UINT64_MAX

struct graftrace_event_rules {
	uint32_t bytes; /* of the block */
	uint32_t count; /* of its rules, which follow */
};

#define GRAFTRACE_RULES_MAX 64 /* of one event */

struct graftrace_rule {
	uint32_t action; /* enum graftrace_rule_action */
	uint32_t filter; /* its struct graftrace_filter: bytes from the block's start; 0: always */
	uint32_t word;	 /* index of the word that it counts in or asks, 0: none */
	uint32_t more;	 /* 1: the next rule counts for this one, too */
	uint64_t limit;	 /* how often it acts: GRAFTRACE_RULE_UNLIMITED */
	uint64_t argument; /* as the action says */
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_filter_op) == 24, "a comparison is 24 bytes");
GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_rule) == 32, "a rule is 32 bytes");

/* An event that is looked at: the words of its record behind the number. */
struct graftrace_filter_event {
	const uint64_t *values; /* `count` of them: fields, then strings; not aligned */
	uint32_t count;
	uint32_t faults; /* bit i: field i could not be read */
	uint32_t thread;
	uint32_t cpu;
	const char *comm; /* 16 bytes, of which the last is not looked at */
};

/* A character against the set at `glob` (behind its '['): where it goes on, or `bytes` if nothing
 * closes the set. A ']' that comes first is a member. */
static inline uint32_t graftrace_filter_set(const char *glob, uint32_t at, uint32_t bytes, char c,
					    int *matches)
{
	int inverted = at < bytes && (glob[at] == '!' || glob[at] == '^'), found = 0;
	const uint32_t first = at += (uint32_t)inverted;
	for (; at < bytes && (glob[at] != ']' || at == first); at++) {
		unsigned char low = (unsigned char)glob[at], high = low;
		if (at + 2 < bytes && glob[at + 1] == '-' && glob[at + 2] != ']') {
			high = (unsigned char)glob[at + 2];
			at += 2;
		}
		found |= low <= (unsigned char)c && (unsigned char)c <= high;
	}
	*matches = found != inverted;
	return at < bytes ? at + 1 : bytes;
}

/* core/trace/glob.h says how; here with lengths, since what is compared may change meanwhile. */
static inline int graftrace_filter_glob(const char *glob, uint32_t glob_bytes, const char *text,
					uint32_t text_bytes)
{
	uint32_t g = 0, t = 0, star = ~0u, star_text = 0;
	while (t < text_bytes) {
		int matches = 0;
		uint32_t next = g + 1;
		const char c = g < glob_bytes ? glob[g] : '\0';
		if (g < glob_bytes && c == '*') {
			star = ++g;
			star_text = t;
			continue;
		}
		if (g < glob_bytes && c == '?')
			matches = 1;
		else if (g < glob_bytes && c == '[') {
			next = graftrace_filter_set(glob, g + 1, glob_bytes, text[t], &matches);
		} else if (g + 1 < glob_bytes && c == '\\') {
			matches = glob[g + 1] == text[t];
			next = g + 2;
		} else if (g < glob_bytes)
			matches = c == text[t];
		if (matches) {
			g = next;
			t++;
		} else if (star != ~0u) {
			g = star;
			t = ++star_text;
		} else {
			return 0;
		}
	}
	while (g < glob_bytes && glob[g] == '*')
		g++;
	return g == glob_bytes;
}

static inline int graftrace_filter_number(uint32_t compare, int is_signed, uint64_t left,
					  uint64_t right)
{
	const int64_t l = (int64_t)left, r = (int64_t)right;
	switch (compare) {
	case GRAFTRACE_COMPARE_EQ:
		return left == right;
	case GRAFTRACE_COMPARE_NE:
		return left != right;
	case GRAFTRACE_COMPARE_LT:
		return is_signed ? l < r : left < right;
	case GRAFTRACE_COMPARE_LE:
		return is_signed ? l <= r : left <= right;
	case GRAFTRACE_COMPARE_GT:
		return is_signed ? l > r : left > right;
	case GRAFTRACE_COMPARE_GE:
		return is_signed ? l >= r : left >= right;
	case GRAFTRACE_COMPARE_AND:
		return (left & right) != 0;
	default:
		return 0;
	}
}

static inline int graftrace_filter_text(uint32_t compare, const char *text, uint32_t text_bytes,
					const char *wanted, uint32_t wanted_bytes)
{
	uint32_t i = 0;
	if (compare == GRAFTRACE_COMPARE_GLOB || compare == GRAFTRACE_COMPARE_NOT_GLOB)
		return graftrace_filter_glob(wanted, wanted_bytes, text, text_bytes) ==
		       (compare == GRAFTRACE_COMPARE_GLOB);
	while (i < text_bytes && i < wanted_bytes && text[i] == wanted[i])
		i++;
	return (i == text_bytes && i == wanted_bytes) == (compare == GRAFTRACE_COMPARE_EQ);
}

/* The string of a field, without its zero byte. 0: there is none. */
static inline const char *graftrace_filter_string(const struct graftrace_filter_event *event,
						  uint32_t field, uint32_t *bytes)
{
	uint64_t word;
	*bytes = 0;
	if (field >= event->count || event->faults >> (field & 31) & 1)
		return 0;
	__builtin_memcpy(&word, event->values + field, sizeof(word));
	const uint32_t offset = word & 0xffff, room = word >> 16 & 0xffff;
	if (room == 0 || offset > event->count * 8 || room > event->count * 8 - offset)
		return 0;
	const char *text = (const char *)event->values + offset;
	while (*bytes < room && text[*bytes] != '\0')
		++*bytes;
	return text;
}

static inline int graftrace_filter_compares(const struct graftrace_filter_op *op, const char *texts,
					    uint32_t text_bytes,
					    const struct graftrace_filter_event *event)
{
	const uint32_t kind = op->kind, compare = op->compare, field = op->field;
	const uint32_t at = op->text, wanted = op->bytes;
	const char *text;
	uint32_t bytes = 0;
	uint64_t value = 0;

	switch (kind) {
	case GRAFTRACE_FILTER_SIGNED:
	case GRAFTRACE_FILTER_UNSIGNED:
		if (field >= event->count || event->faults >> (field & 31) & 1)
			return compare == GRAFTRACE_COMPARE_NE;
		__builtin_memcpy(&value, event->values + field, sizeof(value));
		break;
	case GRAFTRACE_FILTER_CPU:
		value = event->cpu;
		break;
	case GRAFTRACE_FILTER_THREAD:
		value = event->thread;
		break;
	case GRAFTRACE_FILTER_CONSTANT:
		value = at;
		break;
	case GRAFTRACE_FILTER_TEXT:
	case GRAFTRACE_FILTER_COMM:
		if (at > text_bytes || wanted > text_bytes - at)
			return 0;
		if (kind == GRAFTRACE_FILTER_TEXT) {
			text = graftrace_filter_string(event, field, &bytes);
		} else {
			text = event->comm;
			while (bytes < 15 && text[bytes] != '\0')
				bytes++;
		}
		if (!text)
			return compare == GRAFTRACE_COMPARE_NE ||
			       compare == GRAFTRACE_COMPARE_NOT_GLOB;
		return graftrace_filter_text(compare, text, bytes, texts + at, wanted);
	default:
		return 0;
	}
	return graftrace_filter_number(compare, kind == GRAFTRACE_FILTER_SIGNED, value, op->value);
}

/* Whether the event passes the filter that lies in `room` bytes. */
static inline int graftrace_filter_passes(const struct graftrace_filter *filter, uint64_t room,
					  const struct graftrace_filter_event *event)
{
	const struct graftrace_filter_op *ops = (const struct graftrace_filter_op *)(filter + 1);
	uint32_t at = 0;

	if (room < sizeof(*filter))
		return 0;
	const uint32_t count = filter->count, text_bytes = filter->text_bytes;
	const uint64_t ops_bytes = (uint64_t)count * sizeof(*ops);
	if (ops_bytes > room - sizeof(*filter) || text_bytes > room - sizeof(*filter) - ops_bytes)
		return 0;
	while (at < count) {
		const struct graftrace_filter_op *op = &ops[at];
		const int outcome = graftrace_filter_compares(op, (const char *)(ops + count),
							      text_bytes, event);
		const uint32_t target = op->target;
		if (outcome != op->when)
			at++;
		else if (target > at)
			at = target;
		else
			return 0;
	}
	return at == count;
}

#endif
