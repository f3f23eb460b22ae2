/* SPDX-License-Identifier: MIT */
/* A ring as a recording file: see kernel_file.h. */
#include "core/kernel/kernel_file.h"

#include <graftrace/file.h>
#include "core/trace/checksum.h"
#include "core/control/control_row.h"
#include "core/trace/message.h"
#include "core/trace/word_walk.h"

/* What a block of functions or of writers may take; a sub-buffer has its own size. */
#define TABLE_BYTES    32768u
#define NAME_BYTES     512u /* longer names are cut */
#define THREADS_A_TIME 128u
#define OPEN_NS	       250000000u  /* a sub-buffer may be open before it is closed for a reader */
#define HOLE_NS	       1000000000u /* an interrupt may keep a writer from storing its word */

enum stage {
	STAGE_START,
	STAGE_FUNCTIONS,
	STAGE_EVENTS,
	STAGE_TRACE,
	STAGE_END,
	STAGE_OVER,
};

static void *payload(struct gt_arena_file *file)
{
	return file->block + sizeof(struct graftrace_block);
}

/* Finishes the block in work: its payload of `bytes` is in place. */
static void finish_block(struct gt_arena_file *file, enum graftrace_block_type type, uint32_t bytes,
			 uint32_t head_bytes)
{
	struct graftrace_block *header = (struct graftrace_block *)file->block;
	uint8_t *start = payload(file);
	uint32_t padded = (bytes + 7) & ~7u;
	__builtin_memset(start + bytes, 0, padded - bytes);
	*header = (struct graftrace_block){
		.magic = GRAFTRACE_BLOCK_MAGIC,
		.offset = file->offset,
		.number = file->number++,
		.type = (uint16_t)type,
		.version = 1,
		.flags = type == GRAFTRACE_BLOCK_EVENT ? GRAFTRACE_BLOCK_OPTIONAL : 0,
		.payload_bytes = bytes,
		.raw_bytes = bytes,
		.head_bytes = head_bytes,
		.head_crc = head_bytes ? gt_checksum(0, start, head_bytes) : 0,
	};
	if (type != GRAFTRACE_BLOCK_SUB_BUFFERS)
		header->body_crc = gt_checksum(0, start + head_bytes, padded - head_bytes);
	header->header_crc = gt_checksum(0, header, offsetof(struct graftrace_block, header_crc));
	file->bytes = (uint32_t)sizeof(*header) + padded;
	file->given = 0;
	file->offset += file->bytes;
}

static uint8_t *put_string(uint8_t *at, enum graftrace_string_tag tag, const char *text)
{
	uint32_t bytes = (uint32_t)gt_row_length(text);
	*(struct graftrace_file_string *)at =
		(struct graftrace_file_string){ .tag = tag, .bytes = bytes };
	at += sizeof(struct graftrace_file_string);
	uint32_t padded = (bytes + 1 + 7) & ~7u;
	__builtin_memset(at, 0, padded);
	__builtin_memcpy(at, text, bytes);
	return at + padded;
}

static struct graftrace_file_clock clock_of(const struct gt_arena_file *file)
{
	const struct gt_clock *clock = &file->control->ring->clock;
	return (struct graftrace_file_clock){ .tsc_base = clock->tsc_base,
					      .ns_base = clock->ns_base,
					      .mult = clock->mult,
					      .shift = clock->shift };
}

static void make_start(struct gt_arena_file *file)
{
	const struct graftrace_arena *arena = file->control->ring->arena;
	struct graftrace_file_start *start = payload(file);
	uint8_t *strings = (uint8_t *)(start + 1), *at = strings;
	at = put_string(at, GRAFTRACE_STRING_ARGUMENT, file->control->title);
	at = put_string(at, GRAFTRACE_STRING_PROGRAM, file->control->title);
	at = put_string(at, GRAFTRACE_STRING_MADE_BY, "graftrace");
	*start = (struct graftrace_file_start){
		.major = GRAFTRACE_FILE_MAJOR,
		.minor = GRAFTRACE_FILE_MINOR,
		.clock = clock_of(file),
		.tracer = arena->tracer,
		.cpu_count = file->target.target.cpu_count,
		.sub_buffer_bytes = arena->sub_buffer_bytes,
		.string_bytes = (uint32_t)(at - strings),
	};
	finish_block(file, GRAFTRACE_BLOCK_START, (uint32_t)(at - (uint8_t *)start), 0);
	file->stage = STAGE_FUNCTIONS;
}

/* As many functions as a block takes. Their number first: records grow from the front, names are
 * put behind them at last. */
static void make_functions(struct gt_arena_file *file)
{
	struct gt_target *target = &file->target.target;
	struct graftrace_file_functions *head = payload(file);
	struct graftrace_file_function *records = (struct graftrace_file_function *)(head + 1);
	uint32_t first = file->function, count = 0, bytes = sizeof(*head) + 8;
	struct gt_function function;
	while (file->function <= file->control->function_count &&
	       gt_target_function(target, file->function, &function) == 0) {
		uint32_t length = (uint32_t)gt_row_length(function.name);
		length = length < NAME_BYTES ? length : NAME_BYTES;
		if (bytes + sizeof(*records) + length + 1 > TABLE_BYTES)
			break;
		bytes += (uint32_t)sizeof(*records) + length + 1;
		file->function++;
		count++;
	}
	if (count == 0) {
		file->stage = STAGE_EVENTS;
		return;
	}
	char *names = (char *)(records + count), *at = names;
	__builtin_memcpy(at, "kernel", 7);
	at += 7;
	for (uint32_t i = 0; i < count; i++) {
		gt_target_function(target, first + i, &function);
		uint32_t length = (uint32_t)gt_row_length(function.name);
		length = length < NAME_BYTES ? length : NAME_BYTES;
		records[i] = (struct graftrace_file_function){ .address = function.address,
							       .size = function.size,
							       .name = (uint32_t)(at - names) };
		__builtin_memcpy(at, function.name, length);
		at[length] = 0;
		at += length + 1;
	}
	*head = (struct graftrace_file_functions){ .first = first,
						   .count = count,
						   .string_bytes = (uint32_t)(at - names) };
	finish_block(file, GRAFTRACE_BLOCK_FUNCTIONS, (uint32_t)((uint8_t *)at - (uint8_t *)head),
		     0);
}

/* A name into `names`; its offset, or 0 where there is no room. */
static uint32_t put_name(char *names, uint32_t *bytes, uint32_t room, const char *text)
{
	uint32_t at = *bytes, length = (uint32_t)gt_row_length(text) + 1;
	if (length > room - at)
		return 0;
	__builtin_memcpy(names + at, text, length);
	*bytes += length;
	return at;
}

/* The next event; false: all are told that there are. Names that are too long for a block are empty: the first one. */
static bool make_event(struct gt_arena_file *file)
{
	struct gt_target *target = &file->target.target;
	struct graftrace_file_event *head = payload(file);
	struct graftrace_file_event_field *fields = (struct graftrace_file_event_field *)(head + 1);
	struct gt_event_format format;
	if (gt_target_event(target, file->event, &format) != 0)
		return false;
	file->event++;
	char *names = (char *)(fields + format.field_count);
	const uint32_t room = (uint32_t)(TABLE_BYTES - (uint32_t)(names - (char *)head));
	uint32_t bytes = 1;
	names[0] = 0;
	*head = (struct graftrace_file_event){
		.number = format.number,
		.field_count = format.field_count,
		.address = format.address,
		.system = put_name(names, &bytes, room, format.system),
		.name = put_name(names, &bytes, room, format.name),
		.object = put_name(names, &bytes, room, format.object),
	};
	for (uint32_t i = 0; i < format.field_count; i++) {
		const struct gt_event_field *from = &format.fields[i];
		fields[i] = (struct graftrace_file_event_field){
			.name = put_name(names, &bytes, room, from->name),
			.type = put_name(names, &bytes, room, from->type),
			.bytes = from->bytes,
			.flags = (uint16_t)((from->is_signed ? GRAFTRACE_FIELD_SIGNED : 0) |
					    (from->is_string ? GRAFTRACE_FIELD_STRING : 0) |
					    (from->is_float ? GRAFTRACE_FIELD_FLOAT : 0)),
			.print = i == 0 && format.print != NULL
					 ? (uint16_t)put_name(names, &bytes, room, format.print)
					 : 0,
			.show = from->show,
			.count = from->count,
		};
	}
	head->string_bytes = bytes;
	finish_block(file, GRAFTRACE_BLOCK_EVENT, (uint32_t)(names + bytes - (char *)head), 0);
	return true;
}

/* A CPU, with what was lost since the recording before ended or the ring was cleared. */
static int writer_of(struct gt_arena_file *file, uint32_t index, struct gt_writer *writer)
{
	struct gt_target *target = &file->target.target;
	int error = target->ring->writer(target, index, writer);
	if (error != 0)
		return error;
	__builtin_memcpy(file->lost_told[index], writer->lost, sizeof(writer->lost));
	for (int cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
		writer->lost[cause] -= file->lost_before[index][cause];
	return 0;
}

static void put_writer(struct graftrace_file_writer *to, const struct gt_writer *from)
{
	*to = (struct graftrace_file_writer){ .generation = from->generation,
					      .pid = from->pid,
					      .tid = from->tid,
					      .next = from->next,
					      .start = from->start,
					      .end = from->end };
	__builtin_memcpy(to->comm, from->comm, sizeof(to->comm));
	__builtin_memcpy(to->lost, from->lost, sizeof(to->lost));
}

/* CPUs (all of them with `again`, for what they lost) and threads that were not told yet. */
static bool make_writers(struct gt_arena_file *file, bool again)
{
	struct gt_target *target = &file->target.target;
	const struct gt_arena_machine *machine = file->control->machine;
	struct graftrace_file_writers *head = payload(file);
	struct graftrace_file_writer *records = (struct graftrace_file_writer *)(head + 1);
	uint32_t count = 0, cpus = target->ring->writer_count(target);
	for (uint32_t i = again ? 0 : file->writers; i < cpus; i++) {
		struct gt_writer writer;
		if (writer_of(file, i, &writer) != 0)
			break;
		/* a kernel's file ends while its CPUs live */
		put_writer(&records[count++], &writer);
	}
	file->writers = cpus;
	for (uint32_t told = 0; told < THREADS_A_TIME;) {
		struct gt_writer thread = { 0 };
		thread.tid = machine->thread_number(machine->data, file->threads);
		if (thread.tid == 0)
			break;
		file->threads++;
		thread.generation = GRAFTRACE_CONTEXT_INTERRUPT + thread.tid;
		if (gt_target_thread(target, thread.tid, thread.comm) != 0)
			continue;
		put_writer(&records[count++], &thread);
		told++;
	}
	if (count == 0)
		return false;
	*head = (struct graftrace_file_writers){ .count = count, .record_bytes = sizeof(*records) };
	finish_block(file, GRAFTRACE_BLOCK_WRITERS,
		     (uint32_t)(sizeof(*head) + count * sizeof(*records)), 0);
	return true;
}

enum step {
	STEP_MADE,
	STEP_PASSED, /* it is not there any more */
	STEP_LATER,  /* it is still being written */
};

static uint64_t now_ns(const struct gt_arena_file *file)
{
	return file->control->machine->now_ns(file->control->machine->data);
}

/* A consuming reader looks once: a word that comes later would be in no recording. */
static bool waits_for_word(struct gt_arena_file *file, uint32_t index,
			   const struct graftrace_sub_buffer *sub, uint32_t words)
{
	uint64_t *until = &file->waits_until[index];
	if (gt_words_before_hole(sub, words) < words) {
		uint64_t now = now_ns(file);
		if (*until == 0)
			*until = now + HOLE_NS;
		if (now < *until)
			return true;
	}
	*until = 0;
	return false;
}

/* The next sub-buffer of writer `index`. */
static enum step make_sub_buffer(struct gt_arena_file *file, uint32_t index)
{
	struct gt_target *target = &file->target.target;
	struct {
		struct graftrace_file_sub_buffers all;
		struct graftrace_file_group group;
		struct graftrace_file_sub_buffer one;
	} *head = payload(file);
	uint64_t sequence = file->next[index];
	/* copied to where it will lie but for the open calls that it does not have */
	uint8_t *body = (uint8_t *)(head + 1);
	struct graftrace_sub_buffer *sub = (struct graftrace_sub_buffer *)body;
	const struct graftrace_sub_buffer *copied;
	int64_t got = target->ring->sub_buffer(target, index, sequence, sub, &copied);
	if (got < 0) {
		struct gt_writer writer;
		if (target->ring->writer(target, index, &writer) != 0)
			return STEP_LATER;
		file->next[index] = gt_target_next_sequence(
			target, index, writer.first > sequence ? writer.first : sequence + 1);
		return STEP_PASSED;
	}
	uint32_t words = (uint32_t)got;
	if (!file->consumes && sequence + 1 == file->limit[index] &&
	    words > file->limit_words[index])
		sub->used = words = file->limit_words[index];
	if (sub->used == 0) {
		if (file->consumes)
			return STEP_LATER;
		struct gt_word_sum sum;
		gt_words_sum(sub, words, &sum);
		sub->used = words = sum.end;
	}
	if (file->consumes && waits_for_word(file, index, sub, words)) {
		file->waits = true;
		return STEP_LATER;
	}
	if (sub->open_calls > GRAFTRACE_OPEN_CALLS)
		return STEP_LATER;
	uint32_t open_bytes = sub->open_calls * 16u;
	*head = (typeof(*head)){
		.all = { .group_count = 1, .sub_buffer_count = 1 },
		.group = { .generation = sub->generation,
			   .sub_buffer_count = 1,
			   .first_sequence = sequence,
			   .encoding = GRAFTRACE_ENCODING_PLAIN,
			   .stored_bytes = GRAFTRACE_HEADER_BYTES + open_bytes + words * 8 },
		.one = { .clock = sub->clock, .words = words, .open_calls = sub->open_calls },
	};
	const uint64_t *first = (const uint64_t *)(sub + 1);
	__builtin_memmove(body + GRAFTRACE_HEADER_BYTES + open_bytes, first, words * 8ull);
	head->group.crc = gt_checksum(0, body, head->group.stored_bytes);
	finish_block(file, GRAFTRACE_BLOCK_SUB_BUFFERS,
		     (uint32_t)sizeof(*head) + head->group.stored_bytes, sizeof(*head));
	file->sub_buffers++;
	file->words += words;
	file->next[index]++;
	return STEP_MADE;
}

/* False: there is nothing now (consuming), or the trace is at its end. */
static bool make_trace(struct gt_arena_file *file)
{
	struct gt_target *target = &file->target.target;
	file->waits = false;
	if (make_event(file) || make_writers(file, false)) /* those that have come */
		return true;
	uint32_t count = target->ring->writer_count(target);
	for (uint32_t step = 0; step < count; step++, file->writer++) {
		uint32_t index = file->writer % count;
		struct gt_writer writer;
		if (target->ring->writer(target, index, &writer) != 0)
			continue;
		if (file->next[index] < writer.first)
			file->next[index] = writer.first;
		bool goes_on = file->consumes && !file->ends;
		uint64_t limit = goes_on ? writer.next : file->limit[index];
		if (file->next[index] >= limit)
			continue;
		/* what is missing in between is passed over, a few at a time */
		enum step made = STEP_PASSED;
		for (int i = 0; made == STEP_PASSED && i < 4 && file->next[index] < limit; i++)
			made = make_sub_buffer(file, index);
		if (made == STEP_MADE)
			return true;
		if (!goes_on && made == STEP_PASSED && file->next[index] < limit)
			step = 0;
	}
	return false;
}

static void make_end(struct gt_arena_file *file)
{
	struct graftrace_file_end *end = payload(file);
	*end = (struct graftrace_file_end){ .words = file->words,
					    .sub_buffers = file->sub_buffers,
					    .ns = now_ns(file),
					    .threads = file->threads,
					    .processes = 1,
					    .functions = file->control->function_count,
					    .clock = clock_of(file) };
	for (uint32_t i = 0; i < file->writers; i++) {
		struct gt_writer writer;
		/* what a consuming reader was told with the CPUs, right before this */
		if (!file->consumes && writer_of(file, i, &writer) != 0)
			break;
		for (int cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
			end->lost[cause] += file->lost_told[i][cause] - file->lost_before[i][cause];
	}
	finish_block(file, GRAFTRACE_BLOCK_END, sizeof(*end), 0);
	file->stage = STAGE_OVER;
	if (file->consumes)
		__builtin_memcpy(file->control->ring->lost_before, file->lost_told,
				 sizeof(file->lost_told));
}

/* What a consuming reader has taken goes back to the ring. */
static void give_back(struct gt_arena_file *file)
{
	struct gt_target *target = &file->target.target;
	for (uint32_t i = 0; i < file->writers; i++)
		if (file->next[i] != 0 && file->next[i] > file->control->ring->first[i])
			target->ring->consume(target, i, file->next[i] - 1);
}

/* The sub-buffer that a CPU is writing: its sequence + 1, 0: there is none with a word in it. */
static uint64_t open_sequence(struct graftrace_arena *arena, uint32_t index)
{
	const struct graftrace_stream *stream = &graftrace_arena_streams(arena)[index];
	uint32_t current = __atomic_load_n(&stream->current, __ATOMIC_ACQUIRE);
	if (current - 1 >= arena->sub_buffer_count)
		return 0;
	struct graftrace_sub_buffer *sub = graftrace_arena_sub_buffer(arena, current - 1);
	uint64_t first = __atomic_load_n(graftrace_sub_buffer_words(sub), __ATOMIC_RELAXED);
	return first != 0 ? __atomic_load_n(&stream->sequence, __ATOMIC_RELAXED) : 0;
}

/* A CPU with little to do would keep its last records for ever. */
static void close_old(struct gt_arena_file *file)
{
	const struct gt_arena_machine *machine = file->control->machine;
	uint64_t now = now_ns(file);
	if (machine->close_all == NULL || now - file->looked_ns < OPEN_NS)
		return;
	file->looked_ns = now;
	uint32_t count = file->target.target.ring->writer_count(&file->target.target);
	bool is_old = false;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t open = open_sequence(file->control->ring->arena, i);
		is_old |= open != 0 && open == file->open[i];
		file->open[i] = open;
	}
	if (is_old)
		machine->close_all(machine->data);
}

/* All that was recorded up to here, and nothing else. */
static void begin_end(struct gt_arena_file *file)
{
	const struct gt_arena_machine *machine = file->control->machine;
	struct graftrace_stream *streams = graftrace_arena_streams(file->control->ring->arena);
	if (machine->close_all != NULL)
		machine->close_all(machine->data);
	uint32_t count = file->target.target.ring->writer_count(&file->target.target);
	for (uint32_t i = 0; i < count; i++) /* one that was opened since is passed over */
		file->limit[i] = __atomic_load_n(&streams[i].sequence, __ATOMIC_ACQUIRE);
	file->ends = true;
}

static void make_consumed(struct gt_arena_file *file)
{
	uint32_t drain = __atomic_load_n(&file->control->drain, __ATOMIC_ACQUIRE);
	if (drain == GT_ARENA_DRAIN_ENDS && !file->ends)
		begin_end(file);
	else if (!file->ends)
		close_old(file);
	if (make_trace(file) || !file->ends || file->waits)
		return;
	file->stage = STAGE_END;
	make_writers(file, true);
}

static bool make_block(struct gt_arena_file *file)
{
	if (file->consumes && file->stage >= STAGE_TRACE && !file->has_let_go)
		give_back(file);
	for (;;) {
		uint32_t stage = file->stage;
		file->bytes = file->given = 0;
		if (stage == STAGE_START)
			make_start(file);
		else if (stage == STAGE_FUNCTIONS)
			make_functions(file);
		else if (stage == STAGE_EVENTS && !make_event(file))
			file->stage = STAGE_TRACE;
		else if (stage == STAGE_TRACE && file->consumes)
			make_consumed(file);
		else if (stage == STAGE_TRACE && !make_trace(file))
			file->stage = STAGE_END;
		else if (stage == STAGE_END)
			make_end(file);
		if (file->bytes != 0)
			return true;
		if (stage == file->stage)
			return false;
	}
}

/* One moment for all CPUs: a thread that moves between them is on both sides of it or on none. */
static void set_limits(struct gt_arena_file *file)
{
	struct graftrace_arena *arena = file->control->ring->arena;
	struct graftrace_stream *streams = graftrace_arena_streams(arena);
	uint32_t count = file->target.target.ring->writer_count(&file->target.target);
	uint32_t room =
		(arena->sub_buffer_bytes - (uint32_t)sizeof(struct graftrace_sub_buffer)) / 8;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t next, again = __atomic_load_n(&streams[i].sequence, __ATOMIC_ACQUIRE);
		do {
			next = again;
			uint32_t current = __atomic_load_n(&streams[i].current, __ATOMIC_ACQUIRE);
			file->limit_words[i] =
				current - 1 < arena->sub_buffer_count
					? gt_words_before_hole(
						  graftrace_arena_sub_buffer(arena, current - 1),
						  room)
					: room;
			again = __atomic_load_n(&streams[i].sequence, __ATOMIC_ACQUIRE);
		} while (again != next);
		file->limit[i] = next;
	}
}

int gt_arena_file_open(struct gt_arena_control *control, bool consume, struct gt_arena_file **out,
		       struct gt_message *message)
{
	struct gt_arena_ring *ring = control->ring;
	uint32_t capacity = ring->arena->sub_buffer_bytes + 256;
	if (capacity < TABLE_BYTES + 256)
		capacity = TABLE_BYTES + 256;
	struct gt_arena_file *file = gt_memory_get(&control->memory, sizeof(*file) + capacity);
	if (file == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory");
	if (consume && gt_arena_is_latency(control->tracer)) {
		gt_memory_put(&control->memory, file, sizeof(*file) + capacity);
		return gt_fail(message, GT_EBUSY, "a latency tracer keeps the trace: see trace");
	}
	if (consume && __atomic_exchange_n(&ring->consuming, 1, __ATOMIC_ACQUIRE)) {
		gt_memory_put(&control->memory, file, sizeof(*file) + capacity);
		return gt_fail(message, GT_EBUSY, "another reader takes the trace out");
	}
	__builtin_memset(file, 0, sizeof(*file));
	file->control = control;
	file->consumes = consume;
	if (consume)
		__atomic_store_n(&control->drain, GT_ARENA_DRAIN_RUNS, __ATOMIC_RELEASE);
	file->block = (uint8_t *)(file + 1);
	file->capacity = capacity;
	file->function = 1;
	file->event = 1;
	gt_arena_target_init(&file->target, ring);
	__builtin_memcpy(file->lost_before, ring->lost_before, sizeof(file->lost_before));
	set_limits(file);
	/* the magic comes as a block that is none */
	__builtin_memcpy(file->block, GRAFTRACE_FILE_MAGIC, GRAFTRACE_FILE_MAGIC_BYTES);
	file->bytes = GRAFTRACE_FILE_MAGIC_BYTES;
	file->offset = GRAFTRACE_FILE_MAGIC_BYTES;
	*out = file;
	return 0;
}

/* It takes nothing more out of the ring. */
static void let_go(struct gt_arena_file *file)
{
	if (!file->consumes || file->has_let_go)
		return;
	file->has_let_go = true;
	__atomic_store_n(&file->control->drain, GT_ARENA_DRAIN_NOBODY, __ATOMIC_RELAXED);
	__atomic_store_n(&file->control->ring->consuming, 0, __ATOMIC_RELEASE);
}

int64_t gt_arena_file_read(struct gt_arena_file *file, char *buffer, size_t bytes)
{
	size_t given = 0;
	while (given < bytes) {
		if (file->given == file->bytes && !make_block(file))
			break;
		size_t part = file->bytes - file->given;
		if (part > bytes - given)
			part = bytes - given;
		__builtin_memcpy(buffer + given, file->block + file->given, part);
		file->given += (uint32_t)part;
		given += part;
	}
	bool goes_on = file->consumes && file->stage != STAGE_OVER;
	if (!goes_on)
		let_go(file); /* the next one may begin, however long this one's last bytes take */
	return given == 0 && goes_on ? GT_EAGAIN : (int64_t)given;
}

void gt_arena_file_close(struct gt_arena_file *file)
{
	struct gt_arena_control *control = file->control;
	let_go(file);
	gt_memory_put(&control->memory, file, sizeof(*file) + file->capacity);
}

/* ---- rows of a kernel's control files ---- */

static int open_file(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	struct gt_arena_file *file = NULL;
	handle->opened = NULL;
	if (!(access & GT_CONTROL_READ))
		return 0;
	int error = gt_arena_file_open(handle->target->data, handle->file->argument != 0, &file,
				       message);
	handle->opened = file;
	return error;
}

static int64_t read_file(struct gt_control_handle *handle, char *buffer, size_t bytes,
			 struct gt_message *message)
{
	(void)message;
	return gt_arena_file_read(handle->opened, buffer, bytes);
}

static int close_file(struct gt_control_handle *handle, struct gt_message *message)
{
	(void)message;
	if (handle->opened != NULL)
		gt_arena_file_close(handle->opened);
	return 0;
}

/* Ends the recording that somebody takes out. */
static int64_t write_pipe(struct gt_control_handle *handle, const char *bytes, size_t count,
			  struct gt_message *message)
{
	struct gt_arena_control *control = handle->target->data;
	uint32_t runs = GT_ARENA_DRAIN_RUNS;
	uint64_t value;
	int error = gt_row_number(bytes, count, 0, &value, message);
	if (error != 0)
		return error;
	if (!__atomic_compare_exchange_n(&control->drain, &runs, GT_ARENA_DRAIN_ENDS, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) &&
	    runs == GT_ARENA_DRAIN_NOBODY)
		return REFUSE(message, GT_EBADF, "nobody takes the trace out as a recording");
	return (int64_t)count;
}

static int open_self(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	const struct gt_arena_control *control = handle->target->data;
	(void)access;
	(void)message;
	handle->text_bytes = gt_format(handle->text, sizeof(handle->text), "%d\n",
				       __atomic_load_n(&control->trace_self, __ATOMIC_RELAXED));
	return 0;
}

static int64_t write_self(struct gt_control_handle *handle, const char *bytes, size_t count,
			  struct gt_message *message)
{
	struct gt_arena_control *control = handle->target->data;
	uint64_t value;
	int error = gt_row_number(bytes, count, 1, &value, message);
	if (error != 0)
		return error;
	__atomic_store_n(&control->trace_self, value != 0, __ATOMIC_RELAXED);
	return (int64_t)count;
}

static const struct gt_control_file files[] = {
	ROW("trace.data", "the trace as a recording file for graftrace show, report …",
	    GT_CONTROL_KERNEL, .flags = GT_CONTROL_TOP | GT_CONTROL_BINARY, .open = open_file,
	    .read = read_file, .close = close_file),
	ROW("trace_pipe.data",
	    "the same, taken out of the ring as it comes (graftrace record --from); 0 ends it",
	    GT_CONTROL_KERNEL, .argument = 1,
	    .flags = GT_CONTROL_TOP | GT_CONTROL_BINARY | GT_CONTROL_WAITS, .open = open_file,
	    .read = read_file, .write = write_pipe, .close = close_file),
	ROW("options/trace-self", "trace what serves these files, too", GT_CONTROL_KERNEL,
	    .open = open_self, .read = gt_row_read_text, .write = write_self),
};

const struct gt_control_group gt_arena_files = { files, COUNT(files) };
