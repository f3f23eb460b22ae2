/* SPDX-License-Identifier: MIT */
/* The frame engine in the test's own process. See engine.h. */
#define _GNU_SOURCE
#include "tests/unit/engine.h"

#include <asm/prctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "port/program/image.h"

#define REGION_BYTES  (1 << 20)
#define TRIGGERS      16u
#define PROFILE_PAGES 2048ull

static struct graftrace_arena *arena;
static uint8_t *image;
static const struct graftrace_agent_image *header;
static uint8_t *region;
static uint32_t patched;

static void die(const char *what)
{
	perror(what);
	abort();
}

static void *map_near(uint64_t near, size_t bytes)
{
	for (uint64_t distance = 16 << 20; distance < 1u << 30; distance += 16 << 20) {
		void *at = mmap((void *)((near - distance) & ~4095ul), bytes,
				PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (at != MAP_FAILED)
			return at;
	}
	die("no room near the code");
	return NULL;
}

static void make_arena(const struct engine_options *options)
{
	uint64_t streams = 8192;
	uint64_t states = streams + 64 * sizeof(struct graftrace_stream) * 32;
	uint64_t mail = states + options->sub_buffers * sizeof(struct graftrace_sub_buffer_entry);
	uint64_t subs = (mail + 64 * sizeof(struct graftrace_mail) + 65535) & ~65535ull;
	uint64_t triggers = subs + (uint64_t)options->sub_buffers * options->sub_buffer_bytes;
	uint64_t profile_states = triggers + TRIGGERS * sizeof(struct graftrace_trigger);
	uint64_t profile_pages = profile_states + PROFILE_PAGES * 16;
	uint64_t hits = profile_pages + PROFILE_PAGES * GRAFTRACE_PROFILE_PAGE_BYTES;
	uint64_t answers = hits + TRIGGERS * sizeof(uint64_t);
	uint64_t bytes = answers + 64 * sizeof(struct graftrace_answer);
	uint8_t *room = mmap(NULL, bytes + 65536, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		die("arena");
	arena = (struct graftrace_arena *)(((uint64_t)room + 65535) & ~65535ull);
	arena->magic = GRAFTRACE_ARENA_MAGIC;
	arena->bytes = bytes;
	arena->sub_buffer_bytes = options->sub_buffer_bytes;
	arena->sub_buffer_count = options->sub_buffers;
	arena->stream_count = 64 * 32;
	arena->mail_count = 64;
	arena->streams_offset = streams;
	arena->states_offset = states;
	arena->mail_offset = mail;
	arena->sub_buffers_offset = subs;
	arena->triggers_offset = triggers;
	arena->trigger_count = TRIGGERS;
	arena->trigger_hits_offset = hits;
	arena->answers_offset = answers;
	arena->profile_states_offset = profile_states;
	arena->profile_pages_offset = profile_pages;
	arena->profile_page_count = options->profile_pages ? options->profile_pages : PROFILE_PAGES;
	arena->profile = options->profile;
	arena->tracing_on = 1;
	arena->tracer = options->tracer;
	arena->mode = options->mode;
	arena->max_depth = options->max_depth;
	arena->threshold_ticks = options->threshold_ticks;
	arena->graph_only = options->graph_only;
	arena->func_stack = options->func_stack;
	struct graftrace_sub_buffer_entry *entries = graftrace_arena_states(arena);
	for (uint32_t i = 0; i < options->sub_buffers; i++)
		entries[i].next = i + 1 < options->sub_buffers ? i + 2 : 0;
	arena->free_head = 1;
	arena->free_count = options->sub_buffers;
}

static struct graftrace_agent_state *agent_state(void)
{
	return (struct graftrace_agent_state *)(image + header->state_offset);
}

static uint8_t *stop_word(uint64_t block)
{
	uint64_t chunk = agent_state()->blocks[(block - 1) / GRAFTRACE_BLOCKS];
	uint64_t index = (block - 1) % GRAFTRACE_BLOCKS;
	return (uint8_t *)(chunk + index * GRAFTRACE_BLOCK_BYTES + GRAFTRACE_BLOCK_STOP);
}

static void tell_blocks(void)
{
	struct graftrace_stream *streams = graftrace_arena_streams(arena);
	for (uint32_t i = 0; i < arena->stream_count; i++)
		if (streams[i].state != GRAFTRACE_STREAM_FREE && streams[i].block != 0)
			__atomic_store_n(&stop_word(streams[i].block)[3], 0, __ATOMIC_SEQ_CST);
}

void engine_set_profile(bool on)
{
	__atomic_store_n(&arena->profile, on, __ATOMIC_SEQ_CST);
	tell_blocks();
}

/* The function's entry in the index-th page, or NULL. */
static const struct graftrace_profile_entry *profile_entry(uint32_t index, uint32_t function)
{
	const struct graftrace_profile_state *state = &graftrace_arena_profile_states(arena)[index];

	if (state->generation == 0 || state->first != function / GRAFTRACE_PROFILE_FUNCTIONS)
		return NULL;
	return &graftrace_arena_profile_page(arena, index)[function % GRAFTRACE_PROFILE_FUNCTIONS];
}

struct graftrace_profile_entry engine_profile(uint32_t function)
{
	struct graftrace_profile_entry sum = { 0 };
	for (uint32_t i = 0; i < arena->profile_next; i++) {
		const struct graftrace_profile_entry *entry = profile_entry(i, function);
		if (entry == NULL)
			continue;
		sum.hits += entry->hits;
		sum.ticks += entry->ticks;
		sum.self_ticks += entry->self_ticks;
		sum.squares[0] += entry->squares[0];
		sum.squares[1] += entry->squares[1];
		sum.self_squares[0] += entry->self_squares[0];
		sum.self_squares[1] += entry->self_squares[1];
	}
	return sum;
}

void engine_histogram(uint32_t function, uint64_t buckets[GRAFTRACE_PROFILE_BUCKETS])
{
	for (uint32_t i = 0; i < arena->profile_next; i++) {
		const struct graftrace_profile_entry *entry = profile_entry(i, function);
		uint64_t more[GRAFTRACE_PROFILE_BUCKETS];
		if (entry == NULL)
			continue;
		graftrace_profile_histogram(entry, more);
		for (uint32_t k = 0; k < GRAFTRACE_PROFILE_BUCKETS; k++)
			buckets[k] += more[k];
	}
}

/* As the host side does it: settings first, then every block is told to read them. */
void engine_set_tracer(enum graftrace_tracer tracer, uint64_t threshold_ticks)
{
	__atomic_store_n(&arena->threshold_ticks, threshold_ticks, __ATOMIC_SEQ_CST);
	__atomic_store_n(&arena->tracer, tracer, __ATOMIC_SEQ_CST);
	tell_blocks();
}

void engine_start(const struct engine_options *options)
{
	make_arena(options);
	header = (const struct graftrace_agent_image *)gt_agent_image;
	image = mmap(NULL, header->image_bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (image == MAP_FAILED)
		die("image");
	memcpy(image, gt_agent_image, header->file_bytes);
	if (madvise(image + header->fork_offset, 4096, MADV_WIPEONFORK) != 0)
		die("fork page");
	*(uint64_t *)(image + header->fork_offset) = GRAFTRACE_FORK_TOLD;
	region = map_near((uint64_t)engine_start, REGION_BYTES);
	memcpy(region + GRAFTRACE_REGION_HOT_OFFSET, image + header->hot_source, header->hot_bytes);

	struct graftrace_agent_state *state =
		(struct graftrace_agent_state *)(image + header->state_offset);
	struct graftrace_region *page = (struct graftrace_region *)region;
	page->bias = (uint64_t)region + GRAFTRACE_REGION_STUBS_OFFSET + 5 - 32;
	page->entry_slow = (uint64_t)image + header->entry_slow;
	page->exit_slow = (uint64_t)image + header->exit_slow;
	page->hook_slow = (uint64_t)image + header->hook_slow;
	page->state = (uint64_t)state;
	page->journal = (uint64_t)region + REGION_BYTES / 2; /* without entries */

	state->arena = (uint64_t)arena;
	state->image = (uint64_t)image;
	state->flags = getauxval(AT_HWCAP2) & 2 ? GRAFTRACE_AGENT_FSGSBASE : 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		unsigned long low, high;
		if (strstr(line, "[stack]") != NULL && sscanf(line, "%lx-%lx", &low, &high) == 2) {
			struct rlimit limit;
			getrlimit(RLIMIT_STACK, &limit);
			uint64_t size =
				limit.rlim_cur == RLIM_INFINITY ? 1ul << 30 : limit.rlim_cur;
			state->stack_high = high;
			state->stack_low = high - size;
		}
	}
	if (maps != NULL)
		fclose(maps);
	state->regions[0].start = (uint64_t)region;
	state->regions[0].bytes = REGION_BYTES;
	state->region_count = 1;
	state->magic = GRAFTRACE_AGENT_MAGIC;
	syscall(SYS_arch_prctl, ARCH_SET_GS, image + header->null_block_offset);
}

struct graftrace_arena *engine_arena(void)
{
	return arena;
}

static void put_jump(uint8_t *at, uint8_t opcode, uint64_t target)
{
	int32_t distance = (int32_t)(target - ((uint64_t)at + 5));
	at[0] = opcode;
	memcpy(at + 1, &distance, 4);
}

uint32_t engine_patch(void *function, enum engine_kind kind)
{
	uint32_t number = ++patched;
	uint8_t *stub =
		region + GRAFTRACE_REGION_STUBS_OFFSET + (number - 1) * GRAFTRACE_STUB_BYTES;
	uint64_t hot = (uint64_t)region + GRAFTRACE_REGION_HOT_OFFSET;
	uint8_t *code = function;
	uint64_t body = (uint64_t)code + 5;
	uint32_t pushed = number << 1 | 1;
	int32_t distance;

	put_jump(stub, 0xe8,
		 hot + (kind == ENGINE_ROOT	 ? header->entry_root
			: kind == ENGINE_ONLY	 ? header->entry_only
			: kind == ENGINE_TRIGGER ? header->entry_trigger
			: kind == ENGINE_NOTRACE ? header->entry_notrace
			: kind == ENGINE_SILENT	 ? header->entry_silent
						 : header->entry));
	memcpy(stub + 5, "\x0f\x82", 2);
	distance = (int32_t)(body - ((uint64_t)stub + 11));
	memcpy(stub + 7, &distance, 4);
	memcpy(stub + 11, "\x48\x8d\x64\x24\x08", 5);
	put_jump(stub + 16, 0xe8, body);
	stub[21] = 0x68;
	memcpy(stub + 22, &pushed, 4);
	put_jump(stub + 26, 0xe9, hot + header->exit);
	stub[31] = 0xcc;
	((struct graftrace_region *)region)->journal_mains = number;

	uint64_t page = (uint64_t)code & ~4095ul;
	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		die("mprotect");
	/* gcc leaves five nops, clang one of five bytes. */
	if (memcmp(code, "\x90\x90\x90\x90\x90", 5) != 0 &&
	    memcmp(code, "\x0f\x1f\x44\x00\x08", 5) != 0 &&
	    memcmp(code, "\x0f\x1f\x44\x00\x00", 5) != 0) {
		fprintf(stderr, "engine: no nops at %p\n", function);
		abort();
	}
	put_jump(code, 0xe9, (uint64_t)stub);
	return number;
}

struct graftrace_trigger *engine_trigger(uint32_t function, enum graftrace_trigger_action action,
					 uint64_t longer_than, uint64_t skip, uint64_t count)
{
	struct graftrace_trigger *table = graftrace_arena_triggers(arena), *trigger;
	uint32_t at = graftrace_trigger_slot(function);
	while (table[at % TRIGGERS].function != 0)
		at++;
	trigger = &table[at % TRIGGERS];
	*trigger = (struct graftrace_trigger){
		.action = (uint8_t)action, .longer_than = longer_than, .skip = skip, .count = count
	};
	__atomic_store_n(&trigger->function, function, __ATOMIC_RELEASE);
	return trigger;
}

uint64_t *engine_hits(const struct graftrace_trigger *trigger)
{
	return &graftrace_arena_trigger_hits(arena)[trigger - graftrace_arena_triggers(arena)];
}

uint32_t engine_mail(struct graftrace_letter *last)
{
	struct graftrace_mail *mail = graftrace_arena_mail(arena);
	uint32_t count = 0;
	for (uint32_t i = 0; i < arena->mail_count; i++) {
		if (mail[i].state != GRAFTRACE_MAIL_ABANDONED)
			continue;
		*last = agent_state()->letters[i];
		mail[i].state = GRAFTRACE_MAIL_FREE;
		count++;
	}
	return count;
}

void engine_set_on(bool on)
{
	struct graftrace_stream *streams = graftrace_arena_streams(arena);
	__atomic_store_n(&arena->tracing_on, on, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < arena->stream_count; i++)
		if (streams[i].state != GRAFTRACE_STREAM_FREE && streams[i].block != 0)
			stop_word(streams[i].block)[1] = !on;
}

static int compare_words(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

size_t engine_words(struct engine_word **result)
{
	struct graftrace_sub_buffer_entry *states = graftrace_arena_states(arena);
	size_t capacity = 1024, count = 0;
	struct engine_word *words = malloc(capacity * sizeof(*words));
	/* sub-buffers by generation, then sequence */
	uint64_t(*order)[2] = malloc(arena->sub_buffer_count * sizeof(*order));
	uint32_t used = 0;
	for (uint32_t i = 0; i < arena->sub_buffer_count; i++) {
		uint32_t state = graftrace_word_state(states[i].word);
		if (state != GRAFTRACE_SUB_BUFFER_ACTIVE && state != GRAFTRACE_SUB_BUFFER_FULL)
			continue;
		struct graftrace_sub_buffer *sub = graftrace_arena_sub_buffer(arena, i);
		order[used][0] = (uint64_t)sub->generation << 40 | sub->sequence;
		order[used++][1] = i;
	}
	qsort(order, used, sizeof(*order), compare_words);
	for (uint32_t n = 0; n < used; n++) {
		struct graftrace_sub_buffer *sub =
			graftrace_arena_sub_buffer(arena, (uint32_t)order[n][1]);
		uint64_t *at = graftrace_sub_buffer_words(sub);
		uint64_t *end = sub->used ? at + sub->used
					  : (uint64_t *)((char *)sub + arena->sub_buffer_bytes);
		bool pairs = sub->tracer == GRAFTRACE_TRACER_FUNCTION;
		uint64_t clock = sub->clock;
		for (; at < end; at += pairs ? 2 : 1) {
			if (*at == 0)
				continue;
			if (count == capacity)
				words = realloc(words, (capacity *= 2) * sizeof(*words));
			struct engine_word *word = &words[count];
			memset(word, 0, sizeof(*word));
			word->generation = sub->generation;
			word->tracer = sub->tracer;
			word->word = *at;
			uint32_t function = graftrace_word_function(*at);
			uint32_t argument = (uint32_t)*at;
			if (function < GRAFTRACE_SPECIAL) {
				uint64_t next = clock >> 32 << 32 | argument;
				if (next + (1ull << 31) < clock)
					next += 1ull << 32;
				clock = next;
				if (pairs)
					word->data[0] = at[1];
			} else if (function == GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_CLOCK) {
				clock = (uint64_t)argument << 32 | (uint32_t)clock;
			} else if (function == GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_PAD) {
				at += argument;
			} else if (function == GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_EVENT) {
				uint32_t length = argument & 0xffff;
				for (uint32_t i = 0; i < length && i < 8; i++)
					word->data[i] = at[1 + i];
				at += pairs ? (length + 2) / 2 * 2 - 2 : length;
			}
			word->clock = clock;
			count++;
		}
	}
	free(order);
	*result = words;
	return count;
}

static bool has_letter(uint64_t word)
{
	return graftrace_word_function(word) - 1 < 26;
}

static char letter_of(uint64_t word)
{
	uint32_t function = graftrace_word_function(word);
	return (char)((graftrace_word_is_return(word) ? 'a' : 'A') + (int)function - 1);
}

void engine_text(char *text, size_t size)
{
	struct engine_word *words;
	size_t count = engine_words(&words), used = 0;
	for (size_t i = 0; i < count && used + 32 < size; i++) {
		uint64_t word = words[i].word;
		uint32_t special = graftrace_word_function(word) - GRAFTRACE_SPECIAL;
		uint32_t argument = (uint32_t)word;
		bool stack = special == GRAFTRACE_SPECIAL_EVENT &&
			     argument >> 16 == GRAFTRACE_EVENT_STACK;
		if (special == GRAFTRACE_SPECIAL_UNWOUND)
			used += (size_t)sprintf(text + used, "^%u", argument);
		else if (special == GRAFTRACE_SPECIAL_CONTEXT)
			text[used++] = '|';
		else if (special == GRAFTRACE_SPECIAL_EVENT)
			word = words[i].data[0];
		if (stack)
			text[used++] = '(';
		else if (has_letter(word))
			text[used++] = letter_of(word);
		for (uint32_t k = 1; stack && k < (argument & 0xffff) && k < 8; k++)
			if (has_letter(words[i].data[k]))
				text[used++] = letter_of(words[i].data[k]);
		if (stack)
			text[used++] = ')';
	}
	text[used] = '\0';
	free(words);
}

void engine_count(uint32_t function, uint64_t *entries, uint64_t *returns)
{
	struct engine_word *words;
	size_t count = engine_words(&words);
	*entries = *returns = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t word = words[i].word;
		if (graftrace_word_function(word) == GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_EVENT)
			word = words[i].data[0];
		if (graftrace_word_function(word) != function)
			continue;
		*(graftrace_word_is_return(word) ? returns : entries) += 1;
	}
	free(words);
}
