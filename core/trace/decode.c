/* SPDX-License-Identifier: MIT */
/*
 * The slow half of decoding: sub-buffers' borders, special words, events, unwinding, contexts,
 * memory for frames, and all that damage can do. Callable from anywhere; one decoder from one caller
 * at a time.
 *
 * What holds at every moment:
 *	low <= depth <= GT_DECODE_DEPTH_MAX plus the words fed
 *	depth - low <= mask + 1 (0 if frames is NULL)
 *	base <= word <= end; fast_end is end while the straight line may run, else base
 *	The running context lives in the decoder's own fields; its slot in `contexts` keeps its
 *	number and is brought up to date when another context runs.
 */
#include "core/trace/decode_fast.h"
#include "core/trace/word_walk.h"
#include "core/trace/decode_private.h"
#include "core/trace/message.h"

#define SEARCH_DEPTH 64u /* how far a return looks for its entry when the top is another call */

static void set_fast(struct gt_decode *decode)
{
	bool slow = decode->tracer == GRAFTRACE_TRACER_FUNCTION || decode->gap ||
		    decode->reconcile || decode->fill || decode->open_pending ||
		    decode->enter_pending || decode->adopt_pending || decode->values_pending ||
		    decode->unwind_to != GT_DECODE_NO_UNWINDING;
	decode->fast_end = slow ? decode->base : decode->end;
}

static void fill_record(const struct gt_decode *decode, struct gt_record *record,
			enum gt_record_kind kind)
{
	record->clock = decode->clock;
	record->start = decode->clock;
	record->children = 0;
	record->value = 0;
	record->function = 0;
	record->depth = decode->depth;
	record->context = decode->context;
	record->cpu = decode->cpu;
	record->kind = (uint8_t)kind;
	record->flags = 0;
	record->mark = 0;
	record->text_bytes = 0;
	record->tid = decode->tid;
	record->text = NULL;
}

static uint64_t full_clock(const struct gt_decode *decode, uint64_t word)
{
	uint64_t clock = decode->clock >> 32 << 32 | (uint32_t)word;
	/* interrupted just before the CLOCK word that it belongs behind */
	return clock + (1ull << 31) < decode->clock ? clock + (1ull << 32) : clock;
}

/* A thread that came has been told: its calls may lie with another CPU's decoder. */
static void adopt(struct gt_decode *decode)
{
	decode->adopt_pending = false;
	if (decode->adopt)
		decode->adopt(decode->adopt_data, decode);
	set_fast(decode);
}

static void note_thread(struct gt_decode *decode)
{
	if (!decode->kernel || decode->context >= GRAFTRACE_CONTEXT_INTERRUPT)
		return;
	decode->tid = decode->context;
	/* 0: the CPU's own idle thread */
	decode->adopt_pending = decode->context != 0;
}

/* ---- frames ---- */

static void push(struct gt_decode *decode, uint64_t clock, uint32_t function, uint16_t flags)
{
	if (decode->depth >= GT_DECODE_DEPTH_MAX) {
		decode->damaged++;
		return;
	}
	if (gt_decode_make_room(decode)) {
		decode->frames[decode->depth & decode->mask] = (struct gt_decode_frame){
			.clock = clock, .function = function, .flags = flags
		};
		decode->depth++;
	} else {
		decode->low = ++decode->depth;
	}
}

/* So many calls are open, and nothing is known of them. */
static void go_to_depth(struct gt_decode *decode, uint32_t depth)
{
	decode->depth = decode->low = depth;
	decode->outer.depth = UINT32_MAX;
}

/* Takes the innermost call off without a return. */
static int unwind_one(struct gt_decode *decode, struct gt_record *record)
{
	fill_record(decode, record, decode->unwind_kind);
	record->flags = decode->unwind_flags;
	record->value = decode->depth - decode->unwind_to;
	decode->unwind_flags &= (uint8_t)~GT_RECORD_FIRST;
	if (decode->depth == decode->low) {
		go_to_depth(decode, decode->unwind_to);
		record->depth = decode->depth;
		return record->kind;
	}
	const struct gt_decode_frame *frame = &decode->frames[--decode->depth & decode->mask];
	record->depth = decode->depth;
	record->function = frame->function;
	record->start = frame->clock;
	record->children = frame->children;
	record->mark = frame->mark;
	record->flags |= frame->flags & GT_RECORD_ENTRY_SEEN;
	/* It ran up to now as far as is known, and its parent did not. */
	if (decode->depth > decode->low) {
		struct gt_decode_frame *parent =
			&decode->frames[(decode->depth - 1) & decode->mask];
		if (record->flags & GT_RECORD_UNSEEN)
			parent->flags |= GT_RECORD_CHILDREN_UNKNOWN;
		else if (decode->clock > frame->clock)
			parent->children += decode->clock - frame->clock;
	}
	return record->kind;
}

static void start_unwinding(struct gt_decode *decode, uint32_t to, unsigned flags)
{
	decode->unwind_to = to;
	decode->unwind_kind = GT_RECORD_UNWOUND;
	decode->unwind_flags = (uint8_t)(flags | GT_RECORD_FIRST);
	set_fast(decode);
}

/* ---- values of calls ---- */

#define VALUES_PATIENCE 256u /* records */

static void forget_values(struct gt_decode *decode)
{
	for (uint32_t i = 0; i < GT_DECODE_VALUES; i++)
		decode->values[i].type = 0;
	decode->values_pending = 0;
	set_fast(decode);
}

static bool is_newer(const struct gt_decode_values *one, const struct gt_decode_values *other)
{
	return (int32_t)(one->noted - other->noted) > 0;
}

/* They come before their call. What is longer than any writer makes it is cut. */
static void note_values(struct gt_decode *decode, uint32_t type, const uint64_t *data,
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
	set_fast(decode);
}

/* Gives them to their call, if that is what comes now: the last that were noted first. */
static void attach_values(struct gt_decode *decode, struct gt_record *record)
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
	set_fast(decode);
}

/* ---- sub-buffers ---- */

/*
 * Is a call whose entry is known the one that its writer tells of by function and entry's clock? An
 * interrupt may have brought the writer a new high half while the entry was recorded (rule 4).
 */
static bool is_call(const struct gt_decode_frame *frame, uint32_t function, uint64_t clock)
{
	return frame->function == function &&
	       (frame->clock == clock || frame->clock + (1ull << 32) == clock);
}

/*
 * The depth up to which what is known here and what the header lists do not contradict each other.
 * A call's entry clock tells it from every other, and where one is the same so are all around it.
 */
static uint32_t agreed_depth(const struct gt_decode *decode)
{
	const struct graftrace_sub_buffer *header = decode->header;
	uint32_t first = header->depth - header->open_calls;
	uint32_t end = decode->depth < header->depth ? decode->depth : header->depth;
	uint32_t depth = end;
	for (; depth > first && depth > decode->low; depth--) {
		const struct gt_decode_frame *frame = &decode->frames[(depth - 1) & decode->mask];
		const struct graftrace_open_call *call = &header->open[depth - 1 - first];
		if (is_call(frame, call->function, call->clock))
			return depth;
		end = depth - 1;
	}
	return end;
}

/* The frames that the header lists and that are not known yet. */
static void fill_from_header(struct gt_decode *decode)
{
	const struct graftrace_sub_buffer *header = decode->header;
	uint32_t first = header->depth - header->open_calls;
	if (decode->depth < first)
		go_to_depth(decode, first);
	while (decode->depth < header->depth) {
		const struct graftrace_open_call *call = &header->open[decode->depth - first];
		push(decode, call->clock, call->function, GT_RECORD_CHILDREN_UNKNOWN);
		if (call->function - 1 >= GRAFTRACE_SPECIAL - 1) {
			/* no function: what is known begins behind it */
			decode->damaged += call->function != 0;
			decode->low = decode->depth;
		}
	}
}

/* A writer that was cut off left no count: what it wrote ends with its last record. */
static uint32_t words_in_use(const struct graftrace_sub_buffer *header, uint32_t words,
			     bool growing)
{
	struct gt_word_sum sum;
	if (header->used)
		return header->used < words ? header->used : words;
	if (growing)
		return words;
	gt_words_sum(header, words, &sum);
	return sum.end;
}

int gt_decode_feed(struct gt_decode *decode, const struct graftrace_sub_buffer *sub_buffer,
		   uint32_t words, bool growing, struct gt_message *message)
{
	const struct graftrace_sub_buffer *header = sub_buffer;
	if (header->magic != GRAFTRACE_SUB_BUFFER_MAGIC) {
		gt_message_set(message, "sub-buffer at byte 0: magic is 0x%x, not 0x%x",
			       header->magic, GRAFTRACE_SUB_BUFFER_MAGIC);
		return GT_EFORMAT;
	}
	if (header->open_calls > GRAFTRACE_OPEN_CALLS || header->open_calls > header->depth ||
	    header->depth > GT_DECODE_DEPTH_MAX) {
		gt_message_set(message,
			       "sub-buffer at byte %zu: depth %u with %u open calls cannot be",
			       offsetof(struct graftrace_sub_buffer, depth), header->depth,
			       header->open_calls);
		return GT_EFORMAT;
	}
	if (header->tracer != GRAFTRACE_TRACER_FUNCTION_GRAPH &&
	    header->tracer != GRAFTRACE_TRACER_FUNCTION) {
		gt_message_set(message, "sub-buffer at byte %zu: tracer %u is not known",
			       offsetof(struct graftrace_sub_buffer, tracer), header->tracer);
		return GT_EFORMAT;
	}
	words = words_in_use(header, words, growing);

	bool first = !decode->fed;
	uint64_t expected = first ? 0 : decode->sequence + 1;
	uint64_t overrun = header->lost[GRAFTRACE_LOST_OVERRUN];
	if (header->sequence != expected)
		decode->lost_clock = header->clock;
	decode->gap = !first && header->sequence != expected;
	if (decode->gap && decode->values_pending)
		forget_values(decode);
	if (decode->gap) {
		decode->gaps++;
		decode->gap_sub_buffers =
			header->sequence > expected ? header->sequence - expected : 0;
		decode->gap_records = overrun > decode->overrun ? overrun - decode->overrun : 0;
	}
	decode->kernel = header->pid == 0;
	/* Rule 4 of the format: what was followed is right, the header is for those who did not. A
	 * context that was left is as it was then, unless RESUMED follows. */
	bool followed = !first && !decode->gap &&
			(decode->kernel ? decode->context == header->context
					: gt_decode_knows_context(decode, header->context));
	/* A kernel's thread that came with this sub-buffer is told first, and its calls come from
	 * where they were. */
	decode->enter_pending = decode->kernel && (first || decode->context != header->context ||
						   decode->adopt_pending);
	decode->adopt_pending = false;
	decode->unfollowed = first || decode->gap;
	if (!decode->enter_pending && gt_decode_switch_context(decode, header->context) != GT_OK) {
		gt_message_set(message, "no memory for the calls of thread %u", header->tid);
		return GT_ENOMEM;
	}
	decode->tid = decode->kernel && !decode->enter_pending ? header->tid : decode->tid;
	decode->fed = true;
	decode->sequence = header->sequence;
	decode->overrun = overrun;
	decode->header = header;
	decode->base = decode->word = (const uint64_t *)(header + 1);
	decode->end = decode->word + words;
	decode->growing = growing;
	decode->tracer = header->tracer;
	decode->clock = header->clock;
	decode->cpu = header->cpu;
	decode->open_pending = false;
	decode->unwind_to = GT_DECODE_NO_UNWINDING;
	decode->switched_at = 0;
	if (decode->depth > GT_DECODE_DEPTH_MAX)
		go_to_depth(decode, GT_DECODE_DEPTH_MAX);

	if (!followed && !decode->enter_pending)
		decode->context_gaps = decode->gaps;
	/* Nearly always the header tells what is known already. */
	decode->reconcile =
		!followed && !decode->enter_pending &&
		(decode->depth != header->depth || agreed_depth(decode) != header->depth);
	decode->fill = false;
	set_fast(decode);
	return GT_OK;
}

void gt_decode_extend(struct gt_decode *decode, const struct graftrace_sub_buffer *sub_buffer,
		      uint32_t words, bool growing)
{
	size_t done = (size_t)(decode->word - decode->base);
	words = words_in_use(sub_buffer, words, growing);
	if (words < done)
		words = (uint32_t)done;
	decode->header = sub_buffer;
	decode->base = (const uint64_t *)(sub_buffer + 1);
	decode->word = decode->base + done;
	decode->end = decode->base + words;
	decode->growing = growing;
	/* The copy may be of any bytes: what was checked is checked again before it is used again.
	 */
	if (decode->reconcile || decode->fill || decode->enter_pending) {
		if (sub_buffer->open_calls > GRAFTRACE_OPEN_CALLS ||
		    sub_buffer->open_calls > sub_buffer->depth ||
		    sub_buffer->depth > GT_DECODE_DEPTH_MAX)
			decode->reconcile = decode->fill = decode->enter_pending = false;
	}
	set_fast(decode);
}

void gt_decode_lose(struct gt_decode *decode)
{
	decode->end = decode->word;
	decode->growing = false;
	/* as if the one before had been the last */
	decode->sequence--;
	set_fast(decode);
}

void gt_decode_miss(struct gt_decode *decode, uint64_t records)
{
	if (!decode->gap)
		decode->gap_sub_buffers = decode->sequence;
	decode->gap = true;
	decode->gap_records = records;
	set_fast(decode);
}

void gt_decode_end(struct gt_decode *decode)
{
	decode->base = decode->word = decode->end = NULL;
	decode->gap = decode->reconcile = decode->fill = false;
	decode->enter_pending = decode->adopt_pending = false;
	decode->unwind_to = GT_DECODE_NO_UNWINDING;
	decode->open_pending = true;
	decode->end_slot = 0;
	set_fast(decode);
}

/* ---- words ---- */

static int give_gap(struct gt_decode *decode, struct gt_record *record)
{
	decode->gap = false;
	set_fast(decode);
	fill_record(decode, record, GT_RECORD_GAP);
	record->value = decode->gap_sub_buffers;
	record->overrun = decode->gap_records;
	return GT_RECORD_GAP;
}

/* The innermost call of whichever context has one. */
static int give_open(struct gt_decode *decode, struct gt_record *record)
{
	for (;;) {
		if (decode->kernel && decode->context < GRAFTRACE_CONTEXT_INTERRUPT)
			decode->tid = decode->context;
		if (decode->depth) {
			decode->unwind_to = 0;
			decode->unwind_kind = GT_RECORD_OPEN;
			decode->unwind_flags = 0;
			int kind = unwind_one(decode, record);
			decode->unwind_to = GT_DECODE_NO_UNWINDING;
			return kind;
		}
		gt_decode_save_context(decode);
		if (decode->end_slot >= decode->context_count)
			return GT_RECORD_NONE;
		gt_decode_load_context(decode, decode->end_slot++);
	}
}

static int give_entry(struct gt_decode *decode, struct gt_record *record, uint64_t word)
{
	decode->clock = full_clock(decode, word);
	fill_record(decode, record, GT_RECORD_ENTRY);
	record->function = graftrace_word_function(word);
	push(decode, decode->clock, record->function, GT_RECORD_ENTRY_SEEN);
	decode->word++;
	return GT_RECORD_ENTRY;
}

/* Gives the return of the innermost call, whose frame is the one known for it (or is not known). */
static int give_return(struct gt_decode *decode, struct gt_record *record, uint32_t function,
		       uint64_t start, bool start_known, bool pop)
{
	fill_record(decode, record, GT_RECORD_RETURN);
	record->function = function;
	record->start = start <= decode->clock ? start : decode->clock;
	record->flags = GT_RECORD_CHILDREN_UNKNOWN;
	if (pop) {
		if (decode->depth > decode->low) {
			const struct gt_decode_frame *frame =
				&decode->frames[(decode->depth - 1) & decode->mask];
			if (start_known ? is_call(frame, function, start)
					: frame->function == function) {
				record->flags = (uint8_t)frame->flags;
				record->children = frame->children;
				record->mark = frame->mark;
				record->start = frame->clock <= decode->clock ? frame->clock
									      : decode->clock;
				start_known = true;
			}
			decode->depth--;
		} else {
			decode->low = --decode->depth;
			if (decode->outer.depth == decode->depth + 1)
				record->children = decode->outer.ticks;
		}
		record->depth = decode->depth;
	}
	if (!start_known)
		record->flags |= GT_RECORD_START_UNKNOWN | GT_RECORD_CHILDREN_UNKNOWN;
	if (record->start < decode->lost_clock)
		record->flags |= GT_RECORD_CHILDREN_UNKNOWN;
	if (decode->depth > decode->low) {
		struct gt_decode_frame *parent =
			&decode->frames[(decode->depth - 1) & decode->mask];
		parent->children += decode->clock - record->start;
		if (!start_known)
			parent->flags |= GT_RECORD_CHILDREN_UNKNOWN;
	} else if (pop) {
		uint64_t ticks = decode->clock - record->start;
		/* when it began is not known: at least what it called */
		gt_decode_add_outer(decode, decode->depth, start_known ? ticks : record->children);
	}
	return GT_RECORD_RETURN;
}

/* A plain return that is not the top's: 0 if what lies above its entry is to be unwound before. */
static int unmatched_return(struct gt_decode *decode, struct gt_record *record, uint64_t word)
{
	uint32_t function = graftrace_word_function(word);
	uint32_t known = decode->depth - decode->low;
	for (uint32_t i = 0; i < known && i < SEARCH_DEPTH; i++) {
		uint32_t depth = decode->depth - 1 - i;
		if (decode->frames[depth & decode->mask].function != function)
			continue;
		if (i == 0)
			break;
		decode->damaged++;
		start_unwinding(decode, depth + 1, GT_RECORD_UNSEEN);
		return 0;
	}
	bool top = known && decode->frames[(decode->depth - 1) & decode->mask].function == function;
	decode->clock = full_clock(decode, word);
	decode->word++;
	if (!top)
		decode->damaged++;
	/* Not the top's and not known further out: its entry was never written. */
	bool pop = top || (known == 0 && decode->depth > 0);
	return give_return(decode, record, function, decode->clock, false, pop);
}

/* `words`: of the event in the sub-buffer. alone: its entry was not recorded. 0: other records have
 * to be given before. */
static int long_return(struct gt_decode *decode, struct gt_record *record, const uint64_t *data,
		       uint32_t words, bool alone)
{
	int kind;
	uint64_t word = data[0];
	uint32_t function = graftrace_word_function(word);
	if (!graftrace_word_is_return(word) || function - 1 >= GRAFTRACE_SPECIAL - 1 ||
	    data[2] >= GT_DECODE_DEPTH_MAX) {
		decode->damaged++;
		decode->word += words;
		return 0;
	}
	uint32_t depth = (uint32_t)data[2] + 1;
	const struct gt_decode_frame *top = gt_decode_frame(decode, decode->depth - 1);
	if (top != NULL && is_call(top, function, data[1])) {
		/* The entry's clock tells the call from every other. The writer's depth is for
		 * those who did not follow: a signal handler's can be off by the call that it
		 * interrupted. */
	} else if (decode->depth > depth) {
		if (decode->depth > decode->low) {
			start_unwinding(decode, depth, GT_RECORD_UNSEEN);
			return 0;
		}
		go_to_depth(decode, depth);
	} else if (decode->depth < depth) {
		go_to_depth(decode, depth);
	}
	decode->clock = full_clock(decode, word);
	decode->word += words;
	kind = give_return(decode, record, function, data[1], true, true);
	if (alone && kind == GT_RECORD_RETURN)
		record->flags |= GT_RECORD_ALONE;
	return kind;
}

static void marker(struct gt_decode *decode, struct gt_record *record, const uint64_t *data,
		   uint32_t length)
{
	const char *text = (const char *)(data + 1);
	uint32_t bytes = (length - 1) * 8;
	while (bytes && !text[bytes - 1])
		bytes--;
	fill_record(decode, record, GT_RECORD_MARKER);
	record->clock = data[0];
	record->text = text;
	record->text_bytes = bytes;
}

static int raw_marker(struct gt_decode *decode, struct gt_record *record, const uint64_t *data,
		      uint32_t length)
{
	uint64_t bytes = (length - 2) * 8;
	fill_record(decode, record, GT_RECORD_MARKER);
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
	fill_record(decode, record, GT_RECORD_EVENT);
	record->clock = data[0];
	record->value = (uint32_t)data[1];
	record->start = (uint16_t)(data[1] >> 32);
	record->state = data[1] >> GRAFTRACE_PROBE_STATE;
	record->text = (const char *)(data + 2);
	record->text_bytes = (there - 2) * 8;
	return GT_RECORD_EVENT;
}

/* > 0: a record; 0: go on; < 0: the rest of it is not written yet. */
static int event(struct gt_decode *decode, struct gt_record *record, uint32_t argument)
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
			return long_return(decode, record, whole, 1 + there,
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
		fill_record(decode, record, GT_RECORD_STACK);
		record->clock = whole[0];
		record->text = (const char *)(data + 1);
		record->text_bytes = (there - 1) * 8;
		return GT_RECORD_STACK;
	}
	if (type == GRAFTRACE_EVENT_PROBE && length >= 2)
		return probe(decode, record, data, there);
	if ((type == GRAFTRACE_EVENT_ARGUMENTS || type == GRAFTRACE_EVENT_RESULT) && there >= 1) {
		note_values(decode, type, data, there);
		return 0;
	}
	if (type == GRAFTRACE_EVENT_ENTRY_ONLY && length == 1) {
		uint32_t function = graftrace_word_function(whole[0]);
		if (function - 1 >= GRAFTRACE_SPECIAL - 1) {
			decode->damaged++;
			return 0;
		}
		decode->clock = full_clock(decode, whole[0]);
		fill_record(decode, record, GT_RECORD_ENTRY_ONLY);
		record->function = function;
		return GT_RECORD_ENTRY_ONLY;
	}
	if (type == GRAFTRACE_EVENT_SWITCH && length == 4) {
		if (whole[0] > decode->clock && whole[0] - decode->clock < 1ull << 31 &&
		    whole[0] >> 32 == decode->clock >> 32)
			decode->clock = whole[0];
		fill_record(decode, record, GT_RECORD_SWITCH);
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

/*
 * A kernel's CONTEXT word has no clock, and what a thread did on another CPU has to be given out
 * before it goes on here: the CONTEXT record gets the clock of what comes next, an interrupt's too.
 * If that is another thread, this one was told behind what stands before it (a switch, the end of
 * an interrupt), and may run elsewhere by the time of what follows. False: that is not written yet.
 */
static bool clock_ahead(struct gt_decode *decode, uint32_t context)
{
	uint64_t clock = decode->clock;
	struct gt_word_walk walk =
		gt_word_walk(decode->header, (uint32_t)(decode->end - decode->base));
	walk.next = (uint32_t)(decode->word - decode->base);
	while (gt_word_walk_next(&walk)) {
		const uint64_t *at = walk.words + walk.at;
		uint64_t word = walk.word;
		uint32_t kind = graftrace_word_function(word) - GRAFTRACE_SPECIAL;
		if (word == 0 && decode->growing)
			return false;
		if (kind == GRAFTRACE_SPECIAL_CLOCK) {
			clock = word << 32;
		} else if (kind == GRAFTRACE_SPECIAL_CONTEXT && (uint32_t)word != context &&
			   (uint32_t)word < GRAFTRACE_CONTEXT_INTERRUPT) {
			return true;
		} else if (kind == GRAFTRACE_SPECIAL_EVENT) {
			uint32_t type = (uint32_t)word >> 16;
			if (at + 1 == decode->end || at[1] == 0)
				return !decode->growing;
			if (type == GRAFTRACE_EVENT_LONG_RETURN ||
			    type == GRAFTRACE_EVENT_LONG_CALL ||
			    type == GRAFTRACE_EVENT_ENTRY_ONLY) {
				word = at[1];
			} else {
				bool is_full = type == GRAFTRACE_EVENT_STACK ||
					       type == GRAFTRACE_EVENT_MARKER ||
					       type == GRAFTRACE_EVENT_TEXT ||
					       type == GRAFTRACE_EVENT_PROBE ||
					       type == GRAFTRACE_EVENT_MARKER_RAW;
				if (is_full && at[1] > decode->clock && at[1] >> 32 == clock >> 32)
					decode->clock = at[1];
				return true;
			}
		}
		if (graftrace_word_function(word) - 1 < GRAFTRACE_SPECIAL - 1) {
			uint64_t old = decode->clock;
			decode->clock = clock;
			clock = full_clock(decode, word);
			decode->clock = clock > old ? clock : old;
			return true;
		}
	}
	return !decode->growing;
}

#define RESUMED_PLACE_MAX 8u /* CONTEXT of a thread and its interrupt, PAD, CLOCK before it */

/*
 * Does the RESUMED word at `place` stand first in its sub-buffer, but for words that lead to it? Then
 * the header tells the calls, of which that word tells the depth alone.
 */
static bool header_tells_resumed(const struct gt_decode *decode, size_t place, uint32_t depth)
{
	const struct graftrace_sub_buffer *header = decode->header;

	if (place > RESUMED_PLACE_MAX)
		return false;
	for (size_t i = 0; i < place; i++) {
		uint32_t kind = graftrace_word_function(decode->base[i]) - GRAFTRACE_SPECIAL;

		if (kind != GRAFTRACE_SPECIAL_CONTEXT && kind != GRAFTRACE_SPECIAL_CLOCK &&
		    decode->base[i] != graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 0))
			return false;
	}
	return header->context == decode->context && header->depth == depth &&
	       header->open_calls <= GRAFTRACE_OPEN_CALLS && header->open_calls <= depth &&
	       decode->tracer == GRAFTRACE_TRACER_FUNCTION_GRAPH;
}

/* A special word. > 0: a record; 0: go on; < 0: the rest of it is not written yet. */
static int special(struct gt_decode *decode, struct gt_record *record, uint64_t word)
{
	uint32_t argument = (uint32_t)word;
	uint32_t kind = graftrace_word_function(word) - GRAFTRACE_SPECIAL;
	size_t place = (size_t)(decode->word - decode->base);
	uint32_t to; /* a depth */

	if (graftrace_word_is_return(word)) {
		decode->damaged++;
		decode->word++;
		return 0;
	}
	if (kind == GRAFTRACE_SPECIAL_EVENT)
		return event(decode, record, argument);
	decode->word++;
	if (kind == GRAFTRACE_SPECIAL_PAD) {
		uint64_t left = (uint64_t)(decode->end - decode->word);
		if (argument > left)
			decode->damaged++;
		decode->word += argument < left ? argument : left;
		/* an even length in all, in the function tracer's sub-buffers */
		if (decode->tracer == GRAFTRACE_TRACER_FUNCTION && !(argument & 1) &&
		    decode->word < decode->end)
			decode->word++;
		return 0;
	}
	if (decode->tracer == GRAFTRACE_TRACER_FUNCTION && decode->word < decode->end)
		decode->word++; /* the filler */

	switch (kind) {
	case GRAFTRACE_SPECIAL_CLOCK:
		decode->clock = (uint64_t)argument << 32;
		return 0;
	case GRAFTRACE_SPECIAL_UNWOUND:
		to = argument < decode->depth ? decode->depth - argument : 0;
		if (to != decode->depth)
			start_unwinding(decode, to, 0);
		return 0;
	case GRAFTRACE_SPECIAL_RESUMED:
		/* Behind a CONTEXT word it tells the depth there; elsewhere calls may be missing.
		 */
		if (place != decode->switched_at)
			decode->lost_clock = decode->clock + 1;
		if (argument > GT_DECODE_DEPTH_MAX) {
			decode->damaged++;
		} else if (header_tells_resumed(decode, place, argument)) {
			decode->reconcile = true;
			set_fast(decode);
		} else if (argument > decode->depth) {
			go_to_depth(decode, argument);
		} else if (argument < decode->depth) {
			start_unwinding(decode, argument, GT_RECORD_UNSEEN);
		}
		return 0;
	case GRAFTRACE_SPECIAL_CONTEXT:
		if (decode->kernel && !clock_ahead(decode, argument)) {
			decode->word = decode->base + place;
			return -1;
		}
		to = decode->depth;
		gt_decode_switch_context(decode, argument);
		note_thread(decode);
		set_fast(decode);
		decode->switched_at = (size_t)(decode->word - decode->base);
		fill_record(decode, record, GT_RECORD_CONTEXT);
		record->value = argument;
		record->open_before = to;
		return GT_RECORD_CONTEXT;
	case GRAFTRACE_SPECIAL_CPU:
		decode->cpu = argument;
		fill_record(decode, record, GT_RECORD_CPU);
		return GT_RECORD_CPU;
	case GRAFTRACE_SPECIAL_LOST:
		decode->lost_clock = decode->clock + 1;
		fill_record(decode, record, GT_RECORD_LOST);
		record->value = argument;
		return GT_RECORD_LOST;
	default:
		decode->unknown++;
		return 0;
	}
}

/* One record of the function tracer: two words. */
static int function_record(struct gt_decode *decode, struct gt_record *record, uint64_t word)
{
	if (decode->end - decode->word < 2) {
		decode->damaged++;
		decode->word = decode->end;
		return 0;
	}
	if (decode->growing && decode->word[1] == 0)
		return -1;
	decode->clock = full_clock(decode, word);
	fill_record(decode, record, GT_RECORD_FUNCTION);
	record->function = graftrace_word_function(word);
	record->caller = decode->word[1];
	decode->word += 2;
	return GT_RECORD_FUNCTION;
}

/* A word of an ordinary function, where the straight line could not take it. */
static int call_word(struct gt_decode *decode, struct gt_record *record, uint64_t word)
{
	if (decode->tracer == GRAFTRACE_TRACER_FUNCTION)
		return function_record(decode, record, word);
	if (!graftrace_word_is_return(word))
		return give_entry(decode, record, word);
	return unmatched_return(decode, record, word);
}

int gt_decode_next_slow(struct gt_decode *decode, struct gt_record *record)
{
	for (;;) {
		int kind;
		if (decode->gap)
			return give_gap(decode, record);
		if (decode->enter_pending) {
			decode->enter_pending = false;
			uint32_t open = decode->depth;
			gt_decode_switch_context(decode, decode->header->context);
			decode->tid = decode->header->tid;
			note_thread(decode);
			/* else a RESUMED word follows where it is needed (rule 4) */
			decode->reconcile = decode->unfollowed;
			set_fast(decode);
			fill_record(decode, record, GT_RECORD_CONTEXT);
			record->value = decode->context;
			record->open_before = open;
			return GT_RECORD_CONTEXT;
		}
		if (decode->adopt_pending) {
			/* told as the last of a sub-buffer: when it came stands in the next one */
			if (decode->word >= decode->end)
				return GT_RECORD_NONE;
			adopt(decode);
		}
		if (decode->reconcile) {
			uint32_t agreed = agreed_depth(decode);
			decode->reconcile = false;
			decode->fill = true;
			set_fast(decode);
			if (decode->depth > agreed)
				start_unwinding(decode, agreed, GT_RECORD_UNSEEN);
		}
		if (decode->unwind_to != GT_DECODE_NO_UNWINDING) {
			if (decode->depth > decode->unwind_to)
				return unwind_one(decode, record);
			decode->unwind_to = GT_DECODE_NO_UNWINDING;
			set_fast(decode);
		}
		if (decode->fill) {
			decode->fill = false;
			fill_from_header(decode);
			set_fast(decode);
		}
		if (decode->open_pending)
			return give_open(decode, record);
		if (decode->word >= decode->end)
			return GT_RECORD_NONE;

		uint64_t word = *decode->word;
		if (word == 0) {
			if (decode->growing)
				return GT_RECORD_NONE;
			decode->holes++;
			decode->word++;
			if (decode->tracer == GRAFTRACE_TRACER_FUNCTION &&
			    decode->word < decode->end)
				decode->word++;
			continue;
		}
		uint32_t function = graftrace_word_function(word);
		if (function == 0) {
			decode->damaged++;
			decode->word++;
			continue;
		}
		uint64_t before = decode->clock;
		kind = function < GRAFTRACE_SPECIAL ? call_word(decode, record, word)
						    : special(decode, record, word);
		/* One that belongs behind its CLOCK word (rule 2) changes no other's half. */
		if (decode->clock >> 32 != before >> 32 &&
		    (function < GRAFTRACE_SPECIAL ||
		     function == GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_EVENT))
			decode->clock = before;
		if (kind > 0 && decode->values_pending)
			attach_values(decode, record);
		if (kind > 0)
			return kind;
		if (kind < 0)
			return GT_RECORD_NONE;
	}
}
