/* SPDX-License-Identifier: MIT */
/*
 * For the tests of the recording file's format: makes made-up recordings, and prints what the
 * library reads from a recording in the same lines as format_reader.py, the other reader.
 *
 *	recording_tool make FILE SEED WRITERS SUB_BUFFERS WORDS FUNCTIONS FINE COMPRESS PRESSURE
 *	recording_tool dump FILE
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
	uint32_t count = target->ops->writer_count(target);
	struct numbered *order = calloc(count + 1, sizeof(*order));
	void *buffer = malloc(target->sub_buffer_bytes);
	struct gt_writer writer;

	for (uint32_t i = 0; i < count; i++) {
		target->ops->writer(target, i, &writer);
		order[i] = (struct numbered){ writer.generation, i };
	}
	qsort(order, count, sizeof(*order), by_generation);
	for (uint32_t i = 0; i < count; i++) {
		target->ops->writer(target, order[i].index, &writer);
		printf("writer %u %u %u %s %" PRIu64 " %" PRIu64 " ", writer.generation, writer.pid,
		       writer.tid, writer.comm, writer.start, writer.end);
		print_lost(writer.lost);
		putchar('\n');
		for (uint64_t k = writer.first; k < writer.next; k++) {
			const struct graftrace_sub_buffer *bytes;
			int64_t words =
				target->ops->sub_buffer(target, order[i].index, k, buffer, &bytes);
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

		if (target->ops->function(target, i, &function) < 0)
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
	if (argc == 3 && strcmp(argv[1], "dump") == 0)
		return dump(argv[2]);
	fprintf(stderr, "usage: recording_tool make FILE ... | dump FILE\n");
	return 2;
}
