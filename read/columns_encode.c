/* SPDX-License-Identifier: MIT */
/*
 * Encodes groups of sub-buffers to columns, in two passes: the first converts words to symbols (and
 * clock differences to codes) and counts them, the second gives the shortest codes to the most
 * frequent symbols. Any words can be encoded, even those that no recorder writes, and are decoded
 * to the same words. An encoder is used by one thread at a time.
 */
#include "read/columns.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define SLOTS	    32768u /* a power of two, more than twice GRAFTRACE_SYMBOLS_MAX */
#define STACK_MASK  (GRAFTRACE_CODE_STACK - 1u)
#define RETURN_TOP  0u	    /* index of the predicted return; symbol n has index n + 1 */
#define LITERAL	    0xffffu /* index of a word that is no symbol */
#define LEVEL_WORDS 1	    /* of zstd, measured by bench/recording.py */

/* A slot of the hash table of symbols, for one group. */
struct slot {
	uint64_t value;
	uint32_t epoch; /* the group's; another: the slot is free */
	uint16_t symbol;
	uint16_t kind; /* enum graftrace_file_symbol */
};

struct gt_columns_encoder {
	ZSTD_CCtx *zstd;
	int level;
	uint32_t epoch;
	uint32_t symbols;
	size_t literals;
	size_t literals_size;
	uint64_t *literal; /* words that are no symbols, in order */
	size_t words_size; /* capacity of `index` and the columns, in words */
	uint16_t *index;   /* of each word, of all sub-buffers */
	uint8_t *codes;
	uint8_t *clocks;
	uint8_t *code_extra;  /* at most 8 bytes for each word */
	uint8_t *clock_extra; /* at most 4 bytes for each word */
	uint8_t *meta;
	size_t meta_size;
	size_t extents_size;
	struct graftrace_file_extent *extents;
	uint32_t count[GRAFTRACE_SYMBOLS_MAX];
	uint64_t value[GRAFTRACE_SYMBOLS_MAX];
	uint8_t kind[GRAFTRACE_SYMBOLS_MAX];
	uint16_t rank[GRAFTRACE_SYMBOLS_MAX]; /* of a symbol in the dictionary */
	uint16_t order[GRAFTRACE_SYMBOLS_MAX];
	struct slot slots[SLOTS];
};

struct gt_columns_encoder *gt_columns_encoder_create(int level)
{
	struct gt_columns_encoder *encoder = calloc(1, sizeof(*encoder));
	if (encoder == NULL)
		return NULL;
	encoder->level = level != 0 ? level : LEVEL_WORDS;
	encoder->zstd = ZSTD_createCCtx();
	if (encoder->zstd == NULL) {
		free(encoder);
		return NULL;
	}
	return encoder;
}

void gt_columns_encoder_destroy(struct gt_columns_encoder *encoder)
{
	if (encoder == NULL)
		return;
	ZSTD_freeCCtx(encoder->zstd);
	free(encoder->literal);
	free(encoder->index);
	free(encoder->codes);
	free(encoder->clocks);
	free(encoder->code_extra);
	free(encoder->clock_extra);
	free(encoder->meta);
	free(encoder->extents);
	free(encoder);
}

static size_t meta_bound(uint32_t count, size_t symbols)
{
	return sizeof(struct graftrace_file_meta) + symbols * 9 + 8 +
	       (size_t)count * (sizeof(struct graftrace_file_extent) + GRAFTRACE_HEADER_BYTES +
				GRAFTRACE_OPEN_CALLS * sizeof(struct graftrace_open_call));
}

size_t gt_columns_bound(const struct gt_columns_input *inputs, uint32_t count)
{
	size_t words = 0;
	for (uint32_t i = 0; i < count; i++)
		words += inputs[i].word_count;
	size_t symbols = words < GRAFTRACE_SYMBOLS_MAX ? words : GRAFTRACE_SYMBOLS_MAX;
	return sizeof(struct graftrace_file_columns) + meta_bound(count, symbols) + words * 14 + 8;
}

/* Room for a group of that many words and sub-buffers. 0 or GT_ENOMEM. */
static int make_room(struct gt_columns_encoder *encoder, size_t words, uint32_t count)
{
	if (words >= encoder->words_size) { /* true also for a first group without words */
		size_t size = words + words / 4 + 1024;
		free(encoder->index);
		free(encoder->codes);
		free(encoder->clocks);
		free(encoder->code_extra);
		free(encoder->clock_extra);
		encoder->words_size = 0;
		encoder->index = malloc(size * sizeof(*encoder->index));
		encoder->codes = malloc(size);
		encoder->clocks = malloc(size);
		encoder->code_extra = malloc(size * 8);
		encoder->clock_extra = malloc(size * 4);
		if (encoder->index == NULL || encoder->codes == NULL || encoder->clocks == NULL ||
		    encoder->code_extra == NULL || encoder->clock_extra == NULL)
			return GT_ENOMEM;
		encoder->words_size = size;
	}
	size_t meta = meta_bound(count, GRAFTRACE_SYMBOLS_MAX);
	if (meta > encoder->meta_size) {
		free(encoder->meta);
		encoder->meta = malloc(meta);
		encoder->meta_size = encoder->meta != NULL ? meta : 0;
	}
	if (count > encoder->extents_size) {
		free(encoder->extents);
		encoder->extents = malloc(count * sizeof(*encoder->extents));
		encoder->extents_size = encoder->extents != NULL ? count : 0;
	}
	return encoder->meta != NULL && encoder->extents != NULL ? 0 : GT_ENOMEM;
}

/* Returns the symbol's index, or LITERAL if the dictionary is full. */
static inline uint32_t symbol_index(struct gt_columns_encoder *encoder, uint64_t value,
				    enum graftrace_file_symbol kind)
{
	uint32_t at = (uint32_t)((value ^ value >> 32) * 0x9e3779b97f4a7c15ull >> 49);
	for (;; at = (at + 1) & (SLOTS - 1)) {
		struct slot *slot = &encoder->slots[at];
		if (slot->epoch != encoder->epoch) {
			if (encoder->symbols == GRAFTRACE_SYMBOLS_MAX)
				return LITERAL;
			uint32_t symbol = encoder->symbols++;
			*slot = (struct slot){ value, encoder->epoch, (uint16_t)symbol,
					       (uint16_t)kind };
			encoder->value[symbol] = value;
			encoder->kind[symbol] = (uint8_t)kind;
			encoder->count[symbol] = 1;
			return symbol + 1;
		}
		if (slot->value == value && slot->kind == kind) {
			encoder->count[slot->symbol]++;
			return slot->symbol + 1u;
		}
	}
}

/* 0 or GT_ENOMEM. */
static int add_literal(struct gt_columns_encoder *encoder, uint64_t word)
{
	if (encoder->literals == encoder->literals_size) {
		size_t size = encoder->literals_size * 2 + 1024;
		uint64_t *literal = realloc(encoder->literal, size * sizeof(*literal));
		if (literal == NULL)
			return GT_ENOMEM;
		encoder->literal = literal;
		encoder->literals_size = size;
	}
	encoder->literal[encoder->literals++] = word;
	return 0;
}

static inline uint8_t clock_code(uint32_t difference, uint8_t **extra)
{
	if (difference < GRAFTRACE_CLOCK_SHORT)
		return (uint8_t)difference;
	if (difference < GRAFTRACE_CLOCK_BASE2) {
		uint32_t rest = difference - GRAFTRACE_CLOCK_BASE1;
		*(*extra)++ = (uint8_t)rest;
		return (uint8_t)(GRAFTRACE_CLOCK_SHORT + (rest >> 8));
	}
	if (difference <
	    GRAFTRACE_CLOCK_BASE2 + ((GRAFTRACE_CLOCK_FULL - GRAFTRACE_CLOCK_MEDIUM) << 16)) {
		uint32_t rest = difference - GRAFTRACE_CLOCK_BASE2;
		uint16_t low = (uint16_t)rest;
		memcpy(*extra, &low, 2);
		*extra += 2;
		return (uint8_t)(GRAFTRACE_CLOCK_MEDIUM + (rest >> 16));
	}
	memcpy(*extra, &difference, 4);
	*extra += 4;
	return GRAFTRACE_CLOCK_FULL;
}

/* State of the first pass over a sub-buffer. */
struct pass {
	struct gt_columns_encoder *encoder;
	uint8_t *extra; /* CLOCK_EXTRA */
	uint32_t clock;
	uint32_t top;
	bool pairs; /* of the function tracer: every other word is an address */
	uint64_t stack[GRAFTRACE_CODE_STACK];
};

/* Returns the index of a word that is neither entry nor return. *data: words of an event that
 * follow. */
static __attribute__((noinline)) uint32_t other_index(struct gt_columns_encoder *encoder,
						      uint64_t word, uint32_t *data)
{
	uint32_t function = graftrace_word_function(word);

	if (*data) {
		--*data;
		return LITERAL;
	}
	/* A clock word does not occur again, so it gets no symbol. */
	if (function == GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_CLOCK)
		return LITERAL;
	if (function == GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_EVENT)
		*data = graftrace_word_clock(word) & 0xffff;
	return symbol_index(encoder, word, GRAFTRACE_SYMBOL_WORD);
}

/* First pass over one sub-buffer: indexes to `index`, clock codes to `clocks`. Values that every
 * word uses are local variables, since stores of bytes may alias anything else. */
static int symbols_of(struct pass *pass, const uint64_t *words, uint32_t count, uint16_t *index,
		      uint8_t *clocks)
{
	struct gt_columns_encoder *encoder = pass->encoder;
	const bool pairs = pass->pairs;
	uint8_t *extra = pass->extra;
	uint32_t clock = pass->clock;
	uint32_t top = pass->top;
	uint32_t data = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t word = words[i];
		uint64_t value = word >> 32 << 32;
		uint32_t chosen;

		/* Function 0, a hole, wraps round to the range of the special words. */
		if (__builtin_expect(graftrace_word_function(word) - 1 >= GRAFTRACE_SPECIAL - 1 ||
					     data || (pairs && i & 1),
				     0)) {
			chosen = other_index(encoder, word, &data);
			clocks[i] = 0;
		} else {
			if (value == pass->stack[top & STACK_MASK]) {
				top--;
				chosen = RETURN_TOP;
			} else if (graftrace_word_is_return(word)) {
				chosen = symbol_index(encoder, value, GRAFTRACE_SYMBOL_RETURN);
				top -= chosen != LITERAL;
			} else {
				chosen = symbol_index(encoder, value, GRAFTRACE_SYMBOL_ENTRY);
				if (chosen != LITERAL)
					pass->stack[++top & STACK_MASK] =
						value | GRAFTRACE_WORD_RETURN;
			}
			clocks[i] = 0;
			if (__builtin_expect(chosen != LITERAL, 1)) {
				clocks[i] = clock_code((uint32_t)word - clock, &extra);
				clock = (uint32_t)word;
			}
		}
		index[i] = (uint16_t)chosen;
		if (__builtin_expect(chosen == LITERAL, 0) && add_literal(encoder, word) < 0)
			return GT_ENOMEM;
	}
	pass->extra = extra;
	return 0;
}

/* The first pass over one input; `done` words came before it. */
static int first_pass(struct gt_columns_encoder *encoder, const struct gt_columns_input *input,
		      size_t done, uint8_t **extra)
{
	const struct graftrace_sub_buffer *header = input->header;
	struct pass pass;

	pass.encoder = encoder;
	pass.extra = *extra;
	pass.clock = (uint32_t)header->clock;
	pass.top = 0;
	pass.pairs = header->tracer == GRAFTRACE_TRACER_FUNCTION;
	memset(pass.stack, 0, sizeof(pass.stack));
	for (uint32_t i = 0; i < header->open_calls; i++)
		pass.stack[++pass.top] = graftrace_word(header->open[i].function, 1, 0);
	if (symbols_of(&pass, input->words, input->word_count, encoder->index + done,
		       encoder->clocks + done) < 0)
		return GT_ENOMEM;
	*extra = pass.extra;
	return 0;
}

/* Sorts the dictionary: the most frequent symbols first. Not needed while all codes are short. */
static void rank_symbols(struct gt_columns_encoder *encoder)
{
	uint32_t symbols = encoder->symbols;

	if (symbols < GRAFTRACE_CODE_LONG) {
		for (uint32_t i = 0; i < symbols; i++)
			encoder->rank[i] = encoder->order[i] = (uint16_t)i;
		return;
	}
	/* The counts only have to separate the 207 most frequent symbols from the rest: sorting
	 * by half steps of their binary logarithm is good enough, and linear. */
	uint32_t first[65] = { 0 };
	for (uint32_t i = 0; i < symbols; i++) {
		uint32_t count = encoder->count[i];
		uint32_t log = 31 - (uint32_t)__builtin_clz(count);
		uint32_t half = log ? count >> (log - 1) & 1 : 0;
		first[64 - (log * 2 + half)]++;
		encoder->rank[i] = (uint16_t)(63 - (log * 2 + half));
	}
	for (uint32_t i = 1; i < 65; i++)
		first[i] += first[i - 1];
	for (uint32_t i = 0; i < symbols; i++) {
		uint16_t place = (uint16_t)first[encoder->rank[i]]++;
		encoder->rank[i] = place;
		encoder->order[place] = (uint16_t)i;
	}
}

/* Copies indexes that are codes already: their lower bytes, also LITERAL's. */
static void narrow(const uint16_t *index, uint32_t words, uint8_t *codes)
{
	uint32_t i = 0;
#if defined(__SSE2__)
	const __m128i low = _mm_set1_epi16(0xff);
	for (; i + 16 <= words; i += 16) {
		__m128i first = _mm_loadu_si128((const __m128i *)(index + i));
		__m128i second = _mm_loadu_si128((const __m128i *)(index + i + 8));
		_mm_storeu_si128(
			(__m128i *)(codes + i),
			_mm_packus_epi16(_mm_and_si128(first, low), _mm_and_si128(second, low)));
	}
#endif
	for (; i < words; i++)
		codes[i] = (uint8_t)index[i];
}

/* Second pass over one sub-buffer, with `literals` words that are no symbols: converts indexes
 * to codes. Returns the end of its CODE_EXTRA. */
static uint8_t *codes_of(const struct gt_columns_encoder *encoder, const uint16_t *index,
			 uint32_t words, uint8_t *codes, uint8_t *extra, const uint64_t *literal,
			 size_t literals)
{
	if (encoder->symbols < GRAFTRACE_CODE_LONG) {
		narrow(index, words, codes);
		if (literals)
			memcpy(extra, literal, literals * sizeof(*literal));
		return extra + literals * sizeof(*literal);
	}
	for (uint32_t i = 0; i < words; i++) {
		if (index[i] == RETURN_TOP) {
			codes[i] = GRAFTRACE_CODE_RETURN;
		} else if (index[i] == LITERAL) {
			codes[i] = GRAFTRACE_CODE_WORD;
			memcpy(extra, literal++, 8);
			extra += 8;
		} else {
			uint32_t rank = encoder->rank[index[i] - 1];
			if (rank < GRAFTRACE_CODE_LONG - 1) {
				codes[i] = (uint8_t)(rank + 1);
			} else {
				rank -= GRAFTRACE_CODE_LONG - 1;
				codes[i] = (uint8_t)(GRAFTRACE_CODE_LONG + (rank >> 8));
				*extra++ = (uint8_t)rank;
			}
		}
	}
	return extra;
}

/* The META section. Returns its length. */
static size_t write_meta(struct gt_columns_encoder *encoder, const struct gt_columns_input *inputs,
			 uint32_t count)
{
	uint8_t *at = encoder->meta;
	struct graftrace_file_meta head = { encoder->symbols, 0 };

	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	for (uint32_t i = 0; i < encoder->symbols; i++, at += 8)
		memcpy(at, &encoder->value[encoder->order[i]], 8);
	for (uint32_t i = 0; i < encoder->symbols; i++)
		*at++ = encoder->kind[encoder->order[i]];
	while ((at - encoder->meta) % 8)
		*at++ = 0;
	for (uint32_t i = 0; i < count; i++) {
		size_t open = inputs[i].header->open_calls * sizeof(struct graftrace_open_call);
		memcpy(at, &encoder->extents[i], sizeof(encoder->extents[i]));
		at += sizeof(encoder->extents[i]);
		memcpy(at, inputs[i].header, GRAFTRACE_HEADER_BYTES);
		at += GRAFTRACE_HEADER_BYTES;
		memcpy(at, inputs[i].header->open, open);
		at += open;
	}
	return (size_t)(at - encoder->meta);
}

struct section {
	const uint8_t *bytes;
	size_t count;
};

/* One section to `out`, packed if that is shorter. Returns its stored length. */
static size_t write_section(struct gt_columns_encoder *encoder, const struct section *section,
			    enum gt_columns_effort effort, uint8_t *out)
{
	if (effort != GT_COLUMNS_BARE && section->count >= 32) {
		size_t packed = ZSTD_compressCCtx(encoder->zstd, out, section->count - 1,
						  section->bytes, section->count, encoder->level);
		if (!ZSTD_isError(packed))
			return packed;
	}
	memcpy(out, section->bytes, section->count);
	return section->count;
}

/* All sections to `out`. Returns their stored length with the padding. */
static size_t write_sections(struct gt_columns_encoder *encoder, const struct section *sections,
			     enum gt_columns_effort effort, uint8_t *out)
{
	struct graftrace_file_columns head = { 0 };
	size_t at = sizeof(head), raw = 0;

	for (int i = 0; i < GRAFTRACE_SECTIONS; i++) {
		size_t stored = write_section(encoder, &sections[i], effort, out + at);
		head.section[i].stored_bytes = (uint32_t)stored;
		head.section[i].raw_bytes = (uint32_t)sections[i].count;
		raw += sections[i].count;
		at += stored;
	}
	memcpy(out, &head, sizeof(head));
	while (at % 8)
		out[at++] = 0;
	/* Readers refuse data that expand too much. */
	if (effort != GT_COLUMNS_BARE &&
	    raw > GRAFTRACE_EXPANSION_BASE + GRAFTRACE_EXPANSION_COLUMNS * at)
		return write_sections(encoder, sections, GT_COLUMNS_BARE, out);
	return at;
}

int64_t gt_columns_encode(struct gt_columns_encoder *encoder, const struct gt_columns_input *inputs,
			  uint32_t count, enum gt_columns_effort effort, uint8_t *out)
{
	size_t words = 0;
	for (uint32_t i = 0; i < count; i++)
		words += inputs[i].word_count;
	if (make_room(encoder, words, count) < 0)
		return GT_ENOMEM;

	if (++encoder->epoch == 0) {
		memset(encoder->slots, 0, sizeof(encoder->slots));
		encoder->epoch = 1;
	}
	encoder->symbols = 0;
	encoder->literals = 0;
	size_t done = 0;
	uint8_t *clock_extra = encoder->clock_extra;
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *start = clock_extra;
		size_t literals = encoder->literals;
		if (first_pass(encoder, &inputs[i], done, &clock_extra) < 0)
			return GT_ENOMEM;
		encoder->extents[i].clock_extra_bytes = (uint32_t)(clock_extra - start);
		encoder->extents[i].code_extra_bytes = (uint32_t)(encoder->literals - literals);
		done += inputs[i].word_count;
	}

	rank_symbols(encoder);
	done = 0;
	uint8_t *code_extra = encoder->code_extra;
	size_t used = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *start = code_extra;
		size_t literals = encoder->extents[i].code_extra_bytes; /* from the first pass */
		const uint64_t *literal = literals ? encoder->literal + used : NULL;
		code_extra = codes_of(encoder, encoder->index + done, inputs[i].word_count,
				      encoder->codes + done, code_extra, literal, literals);
		used += literals;
		encoder->extents[i].code_extra_bytes = (uint32_t)(code_extra - start);
		done += inputs[i].word_count;
	}

	const struct section sections[GRAFTRACE_SECTIONS] = {
		[GRAFTRACE_SECTION_META] = { encoder->meta, write_meta(encoder, inputs, count) },
		[GRAFTRACE_SECTION_CODES] = { encoder->codes, words },
		[GRAFTRACE_SECTION_CLOCKS] = { encoder->clocks, words },
		[GRAFTRACE_SECTION_CODE_EXTRA] = { encoder->code_extra,
						   (size_t)(code_extra - encoder->code_extra) },
		[GRAFTRACE_SECTION_CLOCK_EXTRA] = { encoder->clock_extra,
						    (size_t)(clock_extra - encoder->clock_extra) },
	};
	return (int64_t)write_sections(encoder, sections, effort, out);
}
