/* SPDX-License-Identifier: MIT */
/*
 * For the tests of the recording file's format: makes made-up recordings, and prints what the
 * library reads from a recording in the same lines as format_reader.py, the other reader.
 *
 *	recording_tool make FILE SEED WRITERS SUB_BUFFERS WORDS FUNCTIONS FINE COMPRESS PRESSURE
 *	recording_tool tree FILE THREADS CALLS WORDS COMPRESS
 *	recording_tool dump FILE
 *
 * `tree` makes a recording of so many calls, nested at random, in so many threads that take turns,
 * and prints the CSV that parse-trace has to make of it, from its own count.
 */
#include <inttypes.h>
#include "read/crc32c.h"
#include "read/recording.h"
#include "read/writer.h"
#include "tests/unit/recording_sample.h"

static int make(char **words)
{
	const struct sample sample = {
		(uint32_t)atoi(words[1]), (uint32_t)atoi(words[2]), (uint32_t)atoi(words[3]),
		(uint32_t)atoi(words[4]), (uint32_t)atoi(words[5]), atoi(words[6]) != 0,
	};
	static const char *const arguments[] = { "./prog", "two words", NULL };
	static const char *const options[] = { "filter=f*", NULL };
	const struct gt_file_writer_options how = {
		.size = sizeof(how),
		.path = words[0],
		.compress = atoi(words[7]) != 0,
		.clock = { SAMPLE_CLOCK, 5000000000ull, 1677721600, 32 },
		.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
		.sub_buffer_bytes = (uint32_t)sample_bytes(&sample),
		.argv = arguments,
		.program = "/bin/prog",
		.options = options,
	};
	const struct gt_file_writer_totals totals = { .calls = 33,
						      .ns = 44,
						      .threads = 5,
						      .processes = 1,
						      .exit_status = -1,
						      .lost = { 6 } };
	struct gt_file_writer *writer;
	struct gt_message message = { "" };

	if (gt_file_writer_create(&how, &writer, &message) == 0) {
		gt_file_writer_set_pressure(writer, (unsigned)atoi(words[8]));
		sample_write(&sample, gt_file_writer_sink(writer));
		gt_file_writer_finish(writer, &totals, &message);
		gt_file_writer_destroy(writer);
	}
	if (!message.text[0])
		return 0;
	fprintf(stderr, "recording_tool: %s\n", message.text);
	return 1;
}

/* A thread of `tree`, as an agent would record it. */
struct tree_thread {
	struct graftrace_sub_buffer *buffer;
	uint32_t words; /* room */
	uint32_t used;
	uint32_t depth;
	uint64_t sequence;
	struct {
		uint64_t clock;
		uint64_t children;
		uint32_t function;
		uint64_t sequence; /* of the sub-buffer with its entry */
	} open[64];
};

static void tree_begin(struct tree_thread *thread, uint32_t index, uint64_t clock)
{
	uint32_t listed =
		thread->depth < GRAFTRACE_OPEN_CALLS ? thread->depth : GRAFTRACE_OPEN_CALLS;
	memset(thread->buffer, 0, sizeof(*thread->buffer));
	*thread->buffer = (struct graftrace_sub_buffer){
		.magic = GRAFTRACE_SUB_BUFFER_MAGIC,
		.bytes = (uint32_t)sizeof(*thread->buffer) + thread->words * 8,
		.stream = index,
		.generation = index + 1,
		.pid = 500,
		.tid = 500 + index,
		.sequence = thread->sequence,
		.clock = clock,
		.depth = thread->depth,
		.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
		.open_calls = (uint16_t)listed,
	};
	for (uint32_t i = 0; i < listed; i++) {
		uint32_t depth = thread->depth - listed + i;
		thread->buffer->open[i] =
			(struct graftrace_open_call){ thread->open[depth].clock,
						      thread->open[depth].function, depth };
	}
	thread->used = 0;
}

static int tree_end(struct tree_thread *thread, const struct gt_sink *sink)
{
	thread->buffer->used = thread->used;
	thread->sequence++;
	return sink->sub_buffer(sink->data, thread->buffer, thread->used);
}

static void tree_return(struct tree_thread *thread, uint32_t index, uint64_t clock)
{
	uint64_t *words = graftrace_sub_buffer_words(thread->buffer);
	uint32_t depth = --thread->depth, function = thread->open[depth].function;
	uint64_t latency = clock - thread->open[depth].clock;
	uint64_t self = latency - thread->open[depth].children;

	if (thread->open[depth].sequence != thread->sequence) {
		words[thread->used++] = graftrace_special_word(
			GRAFTRACE_SPECIAL_EVENT, GRAFTRACE_EVENT_LONG_RETURN << 16 | 3);
		words[thread->used++] = graftrace_word(function, 1, (uint32_t)clock);
		words[thread->used++] = thread->open[depth].clock;
		words[thread->used++] = depth;
	} else {
		words[thread->used++] = graftrace_word(function, 1, (uint32_t)clock);
	}
	if (depth)
		thread->open[depth - 1].children += latency;
	printf("f%u,%u,%" PRIu64 ".%03u,%" PRIu64 ".%03u\n", function, 500 + index, latency / 1000,
	       (unsigned)(latency % 1000), self / 1000, (unsigned)(self % 1000));
}

static int tree(char **words)
{
	uint32_t threads = (uint32_t)atoi(words[1]), calls = (uint32_t)atoi(words[2]);
	uint32_t room = (uint32_t)atoi(words[3]);
	struct tree_thread *thread = calloc(threads, sizeof(*thread));
	struct sample_random random = { calls };
	uint64_t clock = 1ull << 33;
	const struct gt_file_writer_options how = {
		.size = sizeof(how),
		.path = words[0],
		.compress = atoi(words[4]) != 0,
		.clock = { clock, 0, 1, 0 }, /* a tick is a nanosecond */
		.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
		.sub_buffer_bytes = (uint32_t)sizeof(struct graftrace_sub_buffer) + room * 8,
	};
	struct gt_file_writer_totals totals = { .calls = calls, .threads = threads };
	struct gt_file_writer *writer;
	struct gt_message message = { "" };

	if (gt_file_writer_create(&how, &writer, &message) < 0)
		return 1;
	const struct gt_sink *sink = gt_file_writer_sink(writer);
	for (uint32_t number = 1; number <= 50; number++) {
		char name[16];
		snprintf(name, sizeof(name), "f%u", number);
		struct gt_function function = {
			.name = name, .object = "/bin/tree", .address = number * 100, .size = 100
		};
		sink->functions(sink->data, 500, number, &function, 1);
	}
	puts("function,tid,latency_us,latency_us_self");
	for (uint32_t i = 0; i < threads; i++) {
		struct gt_writer seen = { .generation = i + 1,
					  .pid = 500,
					  .tid = 500 + i,
					  .next = 1,
					  .start = clock,
					  .comm = "tree" };
		sink->writer(sink->data, &seen);
		thread[i].words = room;
		thread[i].buffer = malloc(how.sub_buffer_bytes);
		tree_begin(&thread[i], i, clock);
	}
	uint32_t open = 0;
	while (calls || open) {
		uint32_t index = sample_next(&random) % threads;
		struct tree_thread *now = &thread[index];
		clock += 1 + sample_next(&random) % 100;
		if (now->used + 4 > room) {
			tree_end(now, sink);
			tree_begin(now, index, clock);
		}
		if (calls && (now->depth == 0 || (now->depth < 60 && sample_next(&random) % 2))) {
			uint32_t function = 1 + sample_next(&random) % 50;
			graftrace_sub_buffer_words(now->buffer)[now->used++] =
				graftrace_word(function, 0, (uint32_t)clock);
			now->open[now->depth].clock = clock;
			now->open[now->depth].children = 0;
			now->open[now->depth].function = function;
			now->open[now->depth++].sequence = now->sequence;
			calls--;
			open++;
		} else if (now->depth) {
			tree_return(now, index, clock);
			open--;
		}
	}
	for (uint32_t i = 0; i < threads; i++) {
		tree_end(&thread[i], sink);
		free(thread[i].buffer);
	}
	free(thread);
	int error = gt_file_writer_finish(writer, &totals, &message);
	gt_file_writer_destroy(writer);
	return error ? 1 : 0;
}

static void print_lost(const uint64_t *lost)
{
	for (int cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
		printf("%s%" PRIu64, cause ? "," : "", lost[cause]);
}

static void print_sub_buffer(const struct graftrace_sub_buffer *header, int64_t words)
{
	printf("sub_buffer %" PRIu64 " %u %u %" PRIu64 " %u %u %u %u ", header->sequence,
	       header->pid, header->tid, header->clock, header->context, header->depth,
	       header->tracer, header->used);
	print_lost(header->lost);
	printf(" [");
	for (uint32_t i = 0; i < header->open_calls; i++)
		printf("%s%" PRIu64 ":%u:%u", i ? "," : "", header->open[i].clock,
		       header->open[i].function, header->open[i].depth);
	printf("] %08x\n", gt_crc32c(0, header + 1, (size_t)words * sizeof(uint64_t)));
}

struct numbered {
	uint32_t generation;
	uint32_t index;
};

static int by_generation(const void *left, const void *right)
{
	const struct numbered *a = left, *b = right;
	return a->generation < b->generation ? -1 : a->generation > b->generation;
}

static void dump_writers(struct gt_target *target)
{
	uint32_t count = target->ring->writer_count(target);
	struct numbered *order = calloc(count + 1, sizeof(*order));
	void *buffer = malloc(target->sub_buffer_bytes);
	struct gt_writer writer;

	for (uint32_t i = 0; i < count; i++) {
		target->ring->writer(target, i, &writer);
		order[i] = (struct numbered){ writer.generation, i };
	}
	qsort(order, count, sizeof(*order), by_generation);
	for (uint32_t i = 0; i < count; i++) {
		target->ring->writer(target, order[i].index, &writer);
		printf("writer %u %u %u %s %" PRIu64 " %" PRIu64 " ", writer.generation, writer.pid,
		       writer.tid, writer.comm, writer.start, writer.end);
		print_lost(writer.lost);
		putchar('\n');
		for (uint64_t k = writer.first; k < writer.next; k++) {
			const struct graftrace_sub_buffer *bytes;
			int64_t words =
				target->ring->sub_buffer(target, order[i].index, k, buffer, &bytes);
			if (words >= 0)
				print_sub_buffer(bytes, words);
		}
	}
	free(order);
	free(buffer);
}

static int dump(const char *path)
{
	struct gt_recording *recording;
	struct gt_message message = { "" };

	if (gt_recording_open(path, &recording, &message) < 0) {
		fprintf(stderr, "recording_tool: %s\n", message.text);
		return 1;
	}
	struct gt_target *target = gt_recording_target(recording);
	const struct gt_recording_info *info = gt_recording_info(recording);
	for (uint32_t i = 0; i < info->argc; i++)
		printf("arguments %s\n", info->argv[i]);
	if (info->program[0])
		printf("program %s\n", info->program);
	for (uint32_t i = 0; info->options[i]; i++)
		printf("options %s\n", info->options[i]);
	struct gt_recording_object object;
	for (uint32_t i = 0; gt_recording_object(recording, i, &object) == 0; i++) {
		printf("object %u %" PRIx64 " %" PRIx64 " %" PRIx64 " ", object.pid, object.start,
		       object.end, object.bias);
		for (uint32_t k = 0; k < object.build_id_bytes; k++)
			printf("%02x", object.build_id[k]);
		printf(" %s\n", object.path);
	}
	struct gt_function function;
	for (uint32_t i = 1; i < gt_recording_function_end(recording); i++) {

		if (gt_target_function(target, i, &function) < 0)
			continue;

		printf("function %u %" PRIx64 " %u %s %s\n", i, function.address, function.size,
		       function.object, function.name);
	}
	dump_writers(target);
	if (info->ended) {
		printf("end %" PRIu64 " %" PRIu64 " %u %u %d ", info->calls, info->ns,
		       info->threads, info->processes, info->exit_status);
		print_lost(info->lost);
		putchar('\n');
	}
	for (uint32_t i = 0; gt_recording_problem(recording, i); i++)
		fprintf(stderr, "problem: %s\n", gt_recording_problem(recording, i));
	gt_recording_close(recording);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 11 && strcmp(argv[1], "make") == 0)
		return make(argv + 2);
	if (argc == 7 && strcmp(argv[1], "tree") == 0)
		return tree(argv + 2);
	if (argc == 3 && strcmp(argv[1], "dump") == 0)
		return dump(argv[2]);
	fprintf(stderr, "usage: recording_tool make FILE ... | dump FILE\n");
	return 2;
}
