/* SPDX-License-Identifier: MIT */
/*
 * Decodes groups of sub-buffers in columns. The input is hostile: lengths are checked when the
 * group is opened, so that the loops over the words stay in bounds whatever the codes are. An open
 * group may be read by several threads.
 */
#include "read/columns.h"
#include "core/trace/message.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define STACK_MASK  (GRAFTRACE_CODE_STACK - 1u)
#define SPARE_BYTES 8 /* after the extra columns, which are read a little beyond their end */
#define PUSH	    1u
#define POP	    2u
#define INVALID	    4u

struct gt_columns_decoder {
	ZSTD_DCtx *zstd;
};

/* The meaning of an index. */
struct symbol {
	uint64_t value;
	uint32_t clock_mask; /* which bits of the clock go into the word */
	uint32_t action;     /* PUSH, POP or INVALID */
};

struct gt_columns_group {
	size_t bytes; /* of memory, in all */
	uint32_t count;
	uint32_t symbol_limit; /* index of the invalid symbol, after the last one */
	struct symbol *symbols;
	uint8_t *section[GRAFTRACE_SECTIONS];
	struct place {
		const uint8_t *header; /* in META; the open calls follow it */
		size_t word;	       /* offset in CODES and CLOCKS */
		size_t code_extra;     /* offsets */
		size_t clock_extra;
		uint32_t code_extra_bytes;
		uint32_t clock_extra_bytes;
		uint32_t words;
		uint32_t open_calls;
	} places[];
};

/* By code: its first index, its bytes in CODE_EXTRA, and their mask. */
static struct {
	uint32_t base;
	uint16_t mask;
	uint16_t bytes;
} code_table[256];
/* The same by clock code, for CLOCK_EXTRA. */
static struct {
	uint32_t base;
	uint32_t mask;
	uint64_t bytes;
} clock_table[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_tables(void)
{
	for (uint32_t code = 0; code < 256; code++) {
		if (code < GRAFTRACE_CODE_LONG) {
			code_table[code].base = code;
		} else if (code < GRAFTRACE_CODE_WORD) {
			code_table[code].base =
				GRAFTRACE_CODE_LONG + (code - GRAFTRACE_CODE_LONG) * 256;
			code_table[code].mask = 0xff;
			code_table[code].bytes = 1;
		}
		if (code < GRAFTRACE_CLOCK_SHORT) {
			clock_table[code].base = code;
		} else if (code < GRAFTRACE_CLOCK_MEDIUM) {
			clock_table[code].base =
				GRAFTRACE_CLOCK_BASE1 + (code - GRAFTRACE_CLOCK_SHORT) * 256;
			clock_table[code].mask = 0xff;
			clock_table[code].bytes = 1;
		} else if (code < GRAFTRACE_CLOCK_FULL) {
			clock_table[code].base =
				GRAFTRACE_CLOCK_BASE2 + (code - GRAFTRACE_CLOCK_MEDIUM) * 65536;
			clock_table[code].mask = 0xffff;
			clock_table[code].bytes = 2;
		} else {
			clock_table[code].mask = 0xffffffff;
			clock_table[code].bytes = 4;
		}
	}
}

struct gt_columns_decoder *gt_columns_decoder_create(void)
{
	struct gt_columns_decoder *decoder = malloc(sizeof(*decoder));
	if (decoder == NULL)
		return NULL;
	decoder->zstd = ZSTD_createDCtx();
	if (decoder->zstd == NULL) {
		free(decoder);
		return NULL;
	}
	return decoder;
}

void gt_columns_decoder_destroy(struct gt_columns_decoder *decoder)
{
	if (decoder == NULL)
		return;
	ZSTD_freeDCtx(decoder->zstd);
	free(decoder);
}

static int refuse(struct gt_message *message, const char *what)
{
	return gt_fail(message, GT_EFORMAT, "%s", what);
}

/* Takes section `which` from its stored bytes into memory of its own. */
static int open_section(struct gt_columns_decoder *decoder, struct gt_columns_group *group,
			int which, const uint8_t *stored, uint32_t stored_bytes, uint32_t raw_bytes,
			struct gt_message *message)
{
	uint8_t *bytes = malloc((size_t)raw_bytes + SPARE_BYTES);

	if (bytes == NULL)
		return GT_ENOMEM;
	group->section[which] = bytes;
	group->bytes += raw_bytes + SPARE_BYTES;
	memset(bytes + raw_bytes, 0, SPARE_BYTES);
	if (stored_bytes == raw_bytes) {
		memcpy(bytes, stored, raw_bytes);
		return 0;
	}
	if (ZSTD_getFrameContentSize(stored, stored_bytes) != raw_bytes)
		return refuse(message, "a column's zstd frame has another length than stated");
	size_t got = ZSTD_decompressDCtx(decoder->zstd, bytes, raw_bytes, stored, stored_bytes);
	if (ZSTD_isError(got) || got != raw_bytes)
		return refuse(message, "a column's zstd frame is damaged");
	return 0;
}

/* Parses META: symbols and the places of the sub-buffers. `words`: all of them. */
static int open_meta(struct gt_columns_group *group, size_t meta_bytes, size_t code_extra_bytes,
		     size_t clock_extra_bytes, const struct graftrace_file_sub_buffer *entries,
		     struct gt_message *message)
{
	const uint8_t *meta = group->section[GRAFTRACE_SECTION_META];
	struct graftrace_file_meta head;

	if (meta_bytes < sizeof(head))
		return refuse(message, "the dictionary is cut off");
	memcpy(&head, meta, sizeof(head));
	size_t at = sizeof(head);
	if (head.symbol_count > GRAFTRACE_SYMBOLS_MAX)
		return refuse(message, "the dictionary has more symbols than codes");
	if (meta_bytes - at < ((size_t)head.symbol_count * 9 + 7) / 8 * 8)
		return refuse(message, "the dictionary is cut off");

	group->symbol_limit = head.symbol_count + 1;
	/* Codes of one byte are then indexes without a check of the limit. */
	size_t symbols = head.symbol_count + 2 > 256 ? head.symbol_count + 2 : 256;
	group->symbols = malloc(symbols * sizeof(*group->symbols));
	if (group->symbols == NULL)
		return GT_ENOMEM;
	group->bytes += symbols * sizeof(*group->symbols);
	group->symbols[0] = (struct symbol){ 0, 0xffffffff, POP };
	for (size_t i = group->symbol_limit; i < symbols; i++)
		group->symbols[i] = (struct symbol){ 0, 0, INVALID };
	const uint8_t *kinds = meta + at + (size_t)head.symbol_count * 8;
	for (uint32_t i = 0; i < head.symbol_count; i++) {
		struct symbol *symbol = &group->symbols[i + 1];
		memcpy(&symbol->value, meta + at + (size_t)i * 8, 8);
		if (kinds[i] > GRAFTRACE_SYMBOL_WORD)
			return refuse(message, "the dictionary has a symbol of unknown kind");
		symbol->clock_mask = kinds[i] == GRAFTRACE_SYMBOL_WORD ? 0 : 0xffffffff;
		symbol->action = kinds[i] == GRAFTRACE_SYMBOL_ENTRY    ? PUSH
				 : kinds[i] == GRAFTRACE_SYMBOL_RETURN ? POP
								       : 0;
	}
	at += ((size_t)head.symbol_count * 9 + 7) / 8 * 8;

	size_t word = 0, code_extra = 0, clock_extra = 0;
	for (uint32_t i = 0; i < group->count; i++) {
		struct place *place = &group->places[i];
		struct graftrace_file_extent extent;
		size_t open = entries[i].open_calls * sizeof(struct graftrace_open_call);
		if (meta_bytes - at < sizeof(extent) + GRAFTRACE_HEADER_BYTES + open)
			return refuse(message, "the headers of the sub-buffers are cut off");
		memcpy(&extent, meta + at, sizeof(extent));
		if (extent.code_extra_bytes > code_extra_bytes - code_extra ||
		    extent.clock_extra_bytes > clock_extra_bytes - clock_extra)
			return refuse(message, "a column is shorter than its parts");
		*place = (struct place){ meta + at + sizeof(extent),
					 word,
					 code_extra,
					 clock_extra,
					 extent.code_extra_bytes,
					 extent.clock_extra_bytes,
					 entries[i].words,
					 entries[i].open_calls };
		at += sizeof(extent) + GRAFTRACE_HEADER_BYTES + open;
		word += entries[i].words;
		code_extra += extent.code_extra_bytes;
		clock_extra += extent.clock_extra_bytes;
	}
	if (at != meta_bytes || code_extra != code_extra_bytes || clock_extra != clock_extra_bytes)
		return refuse(message, "a column is longer than its parts");
	return 0;
}

int gt_columns_open(struct gt_columns_decoder *decoder, const uint8_t *stored, size_t stored_bytes,
		    const struct graftrace_file_sub_buffer *entries, uint32_t count,
		    struct gt_columns_group **out, struct gt_message *message)
{
	struct graftrace_file_columns head;
	size_t words = 0, all = 0, at = sizeof(head);
	int error;

	pthread_once(&once, fill_tables);
	for (uint32_t i = 0; i < count; i++)
		words += entries[i].words;
	if (stored_bytes < sizeof(head))
		return refuse(message, "the columns are cut off");
	memcpy(&head, stored, sizeof(head));
	for (int i = 0; i < GRAFTRACE_SECTIONS; i++) {
		uint32_t part = head.section[i].stored_bytes, raw = head.section[i].raw_bytes;
		if (part > stored_bytes - at)
			return refuse(message, "a column is cut off");
		if (part > raw || raw > GRAFTRACE_BLOCK_MAX)
			return refuse(message, "a column's length cannot be");
		all += raw;
		at += part;
	}
	if (all > GRAFTRACE_EXPANSION_BASE + GRAFTRACE_EXPANSION_COLUMNS * stored_bytes)
		return refuse(message, "the columns' lengths cannot be");
	if ((at + 7) / 8 * 8 != stored_bytes)
		return refuse(message, "the columns are followed by something else");
	if (head.section[GRAFTRACE_SECTION_CODES].raw_bytes != words ||
	    head.section[GRAFTRACE_SECTION_CLOCKS].raw_bytes != words)
		return refuse(message, "a column has not one byte a word");
	if (head.section[GRAFTRACE_SECTION_CODE_EXTRA].raw_bytes > words * 8 ||
	    head.section[GRAFTRACE_SECTION_CLOCK_EXTRA].raw_bytes > words * 4)
		return refuse(message, "a column has more bytes than the words can need");

	struct gt_columns_group *group = calloc(1, sizeof(*group) + count * sizeof(struct place));
	if (group == NULL)
		return GT_ENOMEM;
	group->count = count;
	group->bytes = sizeof(*group) + count * sizeof(struct place);
	at = sizeof(head);
	for (int i = 0; i < GRAFTRACE_SECTIONS; i++) {
		error = open_section(decoder, group, i, stored + at, head.section[i].stored_bytes,
				     head.section[i].raw_bytes, message);
		if (error)
			goto close_group;
		at += head.section[i].stored_bytes;
	}
	error = open_meta(group, head.section[GRAFTRACE_SECTION_META].raw_bytes,
			  head.section[GRAFTRACE_SECTION_CODE_EXTRA].raw_bytes,
			  head.section[GRAFTRACE_SECTION_CLOCK_EXTRA].raw_bytes, entries, message);
	if (error)
		goto close_group;
	*out = group;
	return 0;

close_group:
	gt_columns_close(group);
	return error;
}

size_t gt_columns_bytes(const struct gt_columns_group *group)
{
	return group->bytes;
}

/* The decoder's state, which every word uses. */
struct decoder_state {
	uint32_t clock;
	uint32_t top;
	uint32_t bad;
	uint64_t stack[GRAFTRACE_CODE_STACK +
		       1]; /* words that are no entries write to the last slot */
};

static inline __attribute__((always_inline)) uint64_t
word_of(struct decoder_state *state, const struct symbol *symbol, bool is_return_of_top)
{
	uint32_t top = state->top, action = symbol->action;
	uint64_t value = is_return_of_top ? state->stack[top & STACK_MASK] : symbol->value;

	state->bad |= action;
	state->stack[action & PUSH ? (top + 1) & STACK_MASK : GRAFTRACE_CODE_STACK] =
		value | GRAFTRACE_WORD_RETURN;
	state->top = top + (action & PUSH) - (action >> 1 & 1);
	return value | (state->clock & symbol->clock_mask);
}

/* Are all eight codes or clock codes below 192, so that they use no bytes of the extra columns? */
static inline bool all_short(uint64_t bytes)
{
	return (bytes & bytes << 1 & 0x8080808080808080ull) == 0;
}

/* Decodes the words of one sub-buffer. Every read and write is in bounds: codes and clocks have
 * one byte for each word; decoding stops when it is beyond the end of an extra column, which has
 * SPARE_BYTES after it; indexes end at the invalid symbol, and short ones are within the table;
 * the stack is a ring. */
static int decode_words(const struct gt_columns_group *group, const struct place *place,
			uint32_t clock, const struct graftrace_open_call *open, uint64_t *out)
{
	const uint8_t *codes = group->section[GRAFTRACE_SECTION_CODES] + place->word;
	const uint8_t *clocks = group->section[GRAFTRACE_SECTION_CLOCKS] + place->word;
	const uint8_t *code_extra =
		group->section[GRAFTRACE_SECTION_CODE_EXTRA] + place->code_extra;
	const uint8_t *clock_extra =
		group->section[GRAFTRACE_SECTION_CLOCK_EXTRA] + place->clock_extra;
	const uint8_t *code_end = code_extra + place->code_extra_bytes;
	const uint8_t *clock_end = clock_extra + place->clock_extra_bytes;
	const struct symbol *symbols = group->symbols;
	uint32_t words = place->words, limit = group->symbol_limit;
	struct decoder_state state = { .clock = clock };

	for (uint32_t i = 0; i < place->open_calls; i++)
		state.stack[++state.top] = graftrace_word(open[i].function, 1, 0);
	for (uint32_t i = 0; i < words;) {
		uint64_t eight_codes, eight_clocks;

		if (words - i >= 8) {
			memcpy(&eight_codes, codes + i, 8);
			memcpy(&eight_clocks, clocks + i, 8);
			if (all_short(eight_codes) && all_short(eight_clocks)) {
				for (uint32_t end = i + 8; i < end; i++) {
					uint32_t code = codes[i];
					state.clock += clocks[i];
					out[i] = word_of(&state, &symbols[code], code == 0);
				}
				continue;
			}
		}
		uint32_t end = words - i >= 8 ? i + 8 : words;
		for (; i < end; i++) {
			uint32_t code = codes[i], clock_code = clocks[i], difference;

			if (code_extra > code_end || clock_extra > clock_end)
				return GT_EFORMAT;
			memcpy(&difference, clock_extra, 4);
			state.clock += clock_table[clock_code].base +
				       (difference & clock_table[clock_code].mask);
			clock_extra += clock_table[clock_code].bytes;
			if (code == GRAFTRACE_CODE_WORD) {
				memcpy(&out[i], code_extra, 8);
				code_extra += 8;
				continue;
			}
			uint32_t index =
				code_table[code].base + (*code_extra & code_table[code].mask);
			code_extra += code_table[code].bytes;
			index = index < limit ? index : limit;
			out[i] = word_of(&state, &symbols[index], index == 0);
		}
	}
	return state.bad & INVALID || code_extra != code_end || clock_extra != clock_end
		       ? GT_EFORMAT
		       : 0;
}

int gt_columns_sub_buffer(const struct gt_columns_group *group, uint32_t index,
			  struct graftrace_sub_buffer *out, struct gt_message *message)
{
	const struct place *place = &group->places[index];

	memset(out, 0, sizeof(*out));
	memcpy(out, place->header, GRAFTRACE_HEADER_BYTES);
	memcpy(out->open, place->header + GRAFTRACE_HEADER_BYTES,
	       place->open_calls * sizeof(struct graftrace_open_call));
	if (decode_words(group, place, (uint32_t)out->clock, out->open,
			 graftrace_sub_buffer_words(out)) < 0)
		return refuse(message, "a sub-buffer's codes do not fit its columns");
	return 0;
}

void gt_columns_close(struct gt_columns_group *group)
{
	if (group == NULL)
		return;
	for (int i = 0; i < GRAFTRACE_SECTIONS; i++)
		free(group->section[i]);
	free(group->symbols);
	free(group);
}
