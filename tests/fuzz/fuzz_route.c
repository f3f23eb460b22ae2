/* SPDX-License-Identifier: MIT */
/*
 * Any words as a stream that is routed into an instance's buffer, whose settings change meanwhile.
 * Checked besides memory: what is written is a target like any other, no sub-buffer says more than
 * it has, and no more calls come out than went in.
 */
#include "core/text/text.h"
#include "port/host/memory.h"
#include "serve/store/store.h"
#include "tests/fuzz/script.h"
#include "core/trace/word_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct gt_route_want want_of(uint64_t how)
{
	static const char *const some[] = { "ma*", "operator*", NULL };
	static const char *const one[] = { "main", NULL };
	static const char *const event[] = { "system:*", "!system:b", NULL };

	const char *const *lists[GT_LISTS] = { how & 8 ? some : NULL, how & 16 ? one : NULL,
					       how & 32 ? one : NULL, how & 64 ? some : NULL,
					       how & 1024 ? event : NULL };
	struct gt_route_want want = {
		.settings = { .tracer = how & 1 ? GRAFTRACE_TRACER_FUNCTION
						: GRAFTRACE_TRACER_FUNCTION_GRAPH,
			      .on = !(how & 2),
			      .max_depth = how & 128 ? 2 : 0,
			      .threshold_ns = how & 256 ? 100 : 0 },
		.stacks = how & 4,
		.marks = how & 4,
		.since = how & 512 ? 300 : 0,
	};

	for (int i = 0; i < GT_LISTS; i++)
		if (gt_word_list_create(&gt_host_memory, lists[i], &want.settings.lists[i]) != 0)
			abort();
	return want;
}

/* It holds the lists: the caller's go. */
static bool takes(struct gt_store *store, struct gt_route_want *want)
{
	gt_store_want(store, want);
	gt_trace_settings_fini(&want->settings);
	return gt_store_pull(store) == 0;
}

static uint64_t count(struct gt_target *target)
{
	static uint64_t buffer[GT_ROUTE_PIECE_BYTES / 8];
	uint64_t records = 0;

	for (uint32_t i = 0; i < target->ring->writer_count(target); i++) {
		const struct graftrace_sub_buffer *bytes;
		struct gt_writer writer;

		if (target->ring->writer(target, i, &writer) != 0)
			continue;
		for (uint64_t at = writer.first; at < writer.next; at++) {
			int64_t words = target->ring->sub_buffer(target, i, at, buffer, &bytes);

			if (words < 0)
				continue;
			if ((uint64_t)words * 8 + sizeof(*bytes) > target->sub_buffer_bytes ||
			    bytes->sequence != at || bytes->open_calls > GRAFTRACE_OPEN_CALLS ||
			    bytes->open_calls > bytes->depth)
				abort();
			records += gt_words_records(bytes, 0, (uint32_t)words);
		}
	}
	return records;
}

static void print(struct gt_target *target)
{
	const struct gt_text_options options = { .options = GT_OPTIONS_DEFAULT, .header = true };
	static struct gt_text text;
	static char buffer[65536];
	uint64_t length = 0;
	int64_t bytes;

	if (gt_text_init(&text, target, &gt_host_memory, &options) != 0)
		abort();
	while ((bytes = gt_text_read(&text, buffer, sizeof(buffer))) > 0) {
		length += (uint64_t)bytes;
		if (length > 64 << 20)
			abort();
	}
	gt_text_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, data + size };
	struct gt_target target = { .ring = &ring,
				    .names = &names,
				    .clock = { .mult = 1 },
				    .sub_buffer_bytes = sizeof(struct sub_buffer),
				    .cpu_count = 4 };
	uint64_t first = take(&input, 2), second = take(&input, 2), how = take(&input, 1);
	struct gt_route_want want = want_of(first);
	struct gt_merge_given positions[WRITERS] = { { 0, how & 7 } };
	struct gt_store *store;

	following = how & 8;
	target.tracer = want.settings.tracer;
	script(&input);
	if (gt_store_create_routed(&target, how & 16 ? 40000 : 0, how & 32, &store) != 0 ||
	    gt_store_begin(store, positions, how & 64 ? WRITERS : 0) != 0 || !takes(store, &want))
		abort();
	count(gt_store_target(store));
	want = want_of(second);
	/* The last ones have more words now. */
	for (unsigned i = 0; i < writer_count; i++) {
		struct sub_buffer *last =
			writers[i].next ? writers[i].sub_buffers[writers[i].next - 1] : NULL;

		if (last && following)
			last->header.used = 0;
	}
	if (!takes(store, &want))
		abort();
	gt_store_freeze(store);
	if (count(gt_store_target(store)) > 2ull * WRITERS * SUB_BUFFERS * WORDS)
		abort();
	print(gt_store_target(store));
	gt_store_put(store);
	forget_script();
	return 0;
}
