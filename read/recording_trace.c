/* SPDX-License-Identifier: MIT */
/*
 * The trace of a recording: its sub-buffers and their words. A group (one writer's sub-buffers in
 * one block) is read, checked and decompressed as a whole when one of its sub-buffers is asked for,
 * and cached until newer groups need the memory, or all of it was given; words are decoded one
 * sub-buffer at a time. So memory is bounded, and reading writers one after the other, or all of them by
 * time, decompresses each group about once and holds about one group of each writer.
 */
#include "read/recording_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "read/crc32c.h"

#define CACHE_BYTES (64u << 20) /* of open groups */
#define GIVEN_BYTES (1u << 20)	/* … beyond which those that were given as a whole are closed */

/* The head of a SUB_BUFFERS block. */

/* Sums a group's entries; returns NULL, or what is wrong with them. */
static const char *check_entries(const uint8_t *at, uint32_t count, uint64_t *words,
				 uint64_t *plain_bytes)
{
	*words = 0;
	*plain_bytes = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct graftrace_file_sub_buffer entry;
		memcpy(&entry, at + (size_t)i * sizeof(entry), sizeof(entry));
		if (entry.words > GRAFTRACE_WORDS_MAX || entry.open_calls > GRAFTRACE_OPEN_CALLS)
			return "a sub-buffer has more words or open calls than there can be";
		*words += entry.words;
		*plain_bytes += GRAFTRACE_HEADER_BYTES +
				entry.open_calls * sizeof(struct graftrace_open_call) +
				entry.words * sizeof(uint64_t);
	}
	return NULL;
}

/* Checks the whole head before any of it is used. */
static const char *check_head(const uint8_t *head, size_t head_bytes, uint64_t body_bytes)
{
	struct graftrace_file_sub_buffers counts;

	if (head_bytes < sizeof(counts))
		return "its head is too short";
	memcpy(&counts, head, sizeof(counts));
	if (head_bytes !=
	    sizeof(counts) + (uint64_t)counts.group_count * sizeof(struct graftrace_file_group) +
		    (uint64_t)counts.sub_buffer_count * sizeof(struct graftrace_file_sub_buffer))
		return "its head has another length than its counts say";
	const uint8_t *group_at = head + sizeof(counts);
	const uint8_t *entry_at =
		group_at + (size_t)counts.group_count * sizeof(struct graftrace_file_group);
	uint32_t left = counts.sub_buffer_count;
	for (uint32_t i = 0; i < counts.group_count; i++) {
		struct graftrace_file_group group;
		uint64_t words, plain;
		memcpy(&group, group_at + (size_t)i * sizeof(group), sizeof(group));
		if (!group.generation || !group.sub_buffer_count || group.sub_buffer_count > left ||
		    group.first_sequence > UINT64_MAX - left)
			return "a group's counts cannot be";
		const char *why = check_entries(entry_at, group.sub_buffer_count, &words, &plain);
		if (why != NULL)
			return why;
		if (group.stored_bytes > body_bytes || group.stored_bytes % 8)
			return "a group is longer than the block";
		if (group.encoding == GRAFTRACE_ENCODING_PLAIN && group.stored_bytes != plain)
			return "a group has another length than its sub-buffers";
		if (words * sizeof(uint64_t) > GRAFTRACE_BLOCK_MAX)
			return "a group has more words than there can be";
		body_bytes -= group.stored_bytes;
		left -= group.sub_buffer_count;
		entry_at +=
			(size_t)group.sub_buffer_count * sizeof(struct graftrace_file_sub_buffer);
	}
	if (left || body_bytes)
		return "its groups are not all of it";
	return NULL;
}

static int add_place(struct gt_writer_index *writer, uint64_t sequence, uint32_t group,
		     uint32_t index)
{
	if (writer->count == writer->size) {
		size_t size = writer->size ? writer->size * 2 : 4;
		struct gt_place *places = realloc(writer->places, size * sizeof(*places));
		if (places == NULL)
			return GT_ENOMEM;
		writer->places = places;
		writer->size = size;
	}
	writer->places[writer->count++] = (struct gt_place){ sequence, group, index };
	return 0;
}

int gt_recording_add_groups(struct gt_recording *recording, const uint8_t *head, size_t head_bytes,
			    uint64_t body, uint64_t body_bytes, const char **why)
{
	struct graftrace_file_sub_buffers counts;

	*why = check_head(head, head_bytes, body_bytes);
	if (*why != NULL)
		return GT_EFORMAT;
	memcpy(&counts, head, sizeof(counts));
	const uint8_t *group_at = head + sizeof(counts);
	const uint8_t *entry_at =
		group_at + (size_t)counts.group_count * sizeof(struct graftrace_file_group);

	if (gt_recording_grow(&recording->groups, &recording->group_size,
			      (uint64_t)recording->group_count + counts.group_count,
			      sizeof(*recording->groups)) < 0)
		return GT_ENOMEM;
	if (recording->entry_count + counts.sub_buffer_count > recording->entry_size) {
		size_t size = (recording->entry_count + counts.sub_buffer_count) * 2;
		void *entries = realloc(recording->entries, size * sizeof(*recording->entries));
		if (entries == NULL)
			return GT_ENOMEM;
		recording->entries = entries;
		recording->entry_size = size;
	}
	for (uint32_t i = 0; i < counts.group_count; i++) {
		struct graftrace_file_group group;
		memcpy(&group, group_at + (size_t)i * sizeof(group), sizeof(group));
		struct gt_writer_index *writer = gt_recording_writer(recording, group.generation);
		if (writer == NULL)
			return GT_ENOMEM;
		uint32_t number = recording->group_count++;
		recording->groups[number] = (struct gt_group){
			.offset = body,
			.first_sequence = group.first_sequence,
			.first_entry = recording->entry_count,
			.count = group.sub_buffer_count,
			.stored_bytes = group.stored_bytes,
			.crc = group.crc,
			.writer = (uint32_t)(writer - recording->writers),
			.encoding =
				group.encoding > UINT16_MAX ? UINT16_MAX : (uint16_t)group.encoding,
		};
		body += group.stored_bytes;
		for (uint32_t k = 0; k < group.sub_buffer_count; k++) {
			struct graftrace_file_sub_buffer *entry =
				&recording->entries[recording->entry_count++];
			memcpy(entry, entry_at, sizeof(*entry));
			entry_at += sizeof(*entry);
			recording->info.sub_buffers++;
			recording->info.words += entry->words;
			uint64_t bytes = sizeof(struct graftrace_sub_buffer) +
					 entry->words * sizeof(uint64_t);
			if (bytes > recording->target.sub_buffer_bytes)
				recording->target.sub_buffer_bytes = (uint32_t)bytes;
			if (add_place(writer, group.first_sequence + k, number, k) < 0)
				return GT_ENOMEM;
		}
	}
	return 0;
}

static int by_sequence(const void *left, const void *right)
{
	const struct gt_place *a = left, *b = right;
	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	return a->group < b->group ? -1 : a->group > b->group;
}

/* In overwrite mode a writer keeps a sub-buffer whose last word a long-running signal handler
 * has reserved, and frees those after it: the counts tell what is gone. */
static bool was_overwritten(const struct gt_recording *recording,
			    const struct gt_writer_index *writer)
{
	return writer->writer.lost[GRAFTRACE_LOST_OVERRUN] != 0 ||
	       recording->info.lost[GRAFTRACE_LOST_OVERRUN] != 0;
}

int gt_recording_index_places(struct gt_recording *recording)
{
	for (uint32_t i = 0; i < recording->writer_count; i++) {
		struct gt_writer_index *writer = &recording->writers[i];
		uint64_t missing = 0, twice = 0, first_missing = 0;
		bool sorted = true;

		if (!writer->count)
			continue;
		for (size_t k = 1; k < writer->count; k++)
			if (writer->places[k].sequence <= writer->places[k - 1].sequence)
				sorted = false;
		if (!sorted)
			qsort(writer->places, writer->count, sizeof(*writer->places), by_sequence);
		size_t kept = 1;
		for (size_t k = 1; k < writer->count; k++) {
			uint64_t last = writer->places[kept - 1].sequence;
			uint64_t sequence = writer->places[k].sequence;
			if (sequence == last) {
				twice++;
				continue;
			}
			if (sequence != last + 1 && !missing)
				first_missing = last + 1;
			missing += sequence - last - 1;
			writer->places[kept++] = writer->places[k];
		}
		writer->count = kept;
		writer->writer.first = writer->places[0].sequence;
		writer->writer.next = writer->places[kept - 1].sequence + 1;
		if (missing && !was_overwritten(recording, writer))
			gt_recording_add_problem(
				recording, true,
				"thread %" PRIu32 ": %" PRIu64
				" of its sub-buffers, the first of them number %" PRIu64
				", are not in the file",
				writer->writer.tid, missing, first_missing);
		if (twice)
			gt_recording_add_problem(
				recording, true,
				"thread %" PRIu32 ": %" PRIu64
				" sub-buffers stand in the file twice; the first is taken",
				writer->writer.tid, twice);
	}
	return 0;
}

/* The cache. */

static void unlink_cached(struct gt_recording *recording, struct gt_cached *cached)
{
	*(cached->newer != NULL ? &cached->newer->older : &recording->newest) = cached->older;
	*(cached->older != NULL ? &cached->older->newer : &recording->oldest) = cached->newer;
}

static void link_newest(struct gt_recording *recording, struct gt_cached *cached)
{
	cached->newer = NULL;
	cached->older = recording->newest;
	*(cached->older != NULL ? &cached->older->newer : &recording->oldest) = cached;
	recording->newest = cached;
}

static void link_oldest(struct gt_recording *recording, struct gt_cached *cached)
{
	cached->older = NULL;
	cached->newer = recording->oldest;
	*(cached->newer != NULL ? &cached->newer->older : &recording->newest) = cached;
	recording->oldest = cached;
}

/* Notes that a sub-buffer of the group was given: if all were, it is the next to be closed. */
static void count_given(struct gt_recording *recording, struct gt_cached *cached)
{
	if (++cached->given < recording->groups[cached->group].count)
		return;
	cached->is_given = true;
	unlink_cached(recording, cached);
	link_oldest(recording, cached);
}

static bool is_too_much(const struct gt_recording *recording)
{
	const struct gt_cached *oldest = recording->oldest;

	return oldest != NULL && (recording->cached_bytes > CACHE_BYTES ||
				  (oldest->is_given && recording->cached_bytes > GIVEN_BYTES));
}

static void evict_oldest(struct gt_recording *recording)
{
	struct gt_cached *cached = recording->oldest;

	unlink_cached(recording, cached);
	recording->groups[cached->group].cached = NULL;
	recording->cached_bytes -= cached->bytes;
	gt_columns_close(cached->columns);
	free(cached->plain);
	free(cached);
}

/* Reports once that a group does not fit its block's head. */
static int group_damaged(struct gt_recording *recording, struct gt_group *group, int error,
			 const char *why)
{
	group->error = (int16_t)error;
	gt_recording_add_problem(recording, true,
				 "bytes %" PRIu64 " to %" PRIu64 ": %s; %" PRIu32
				 " sub-buffers of thread %" PRIu32 " are missing",
				 group->offset, group->offset + group->stored_bytes, why,
				 group->count, recording->writers[group->writer].writer.tid);
	return error;
}

/* Reads the group's bytes and compares their checksum. */
static int read_group(struct gt_recording *recording, struct gt_group *group, uint8_t *bytes)
{
	int64_t got = gt_recording_read(recording, group->offset, bytes, group->stored_bytes);

	if (got < 0)
		return (int)got;
	if (got < group->stored_bytes)
		return group_damaged(recording, group, GT_ECUT,
				     "the file was cut while it was read");
	if (gt_crc32c(0, bytes, group->stored_bytes) != group->crc)
		return group_damaged(recording, group, GT_EFORMAT, "damaged (checksum)");
	return 0;
}

/* Reads and opens a group into `cached`. */
static int open_group(struct gt_recording *recording, struct gt_group *group,
		      struct gt_cached *cached)
{
	struct gt_message why = { "" };
	int error;

	switch (group->encoding) {
	case GRAFTRACE_ENCODING_PLAIN:
		cached->plain = malloc((size_t)group->stored_bytes + 1);
		cached->bytes = sizeof(*cached) + group->stored_bytes;
		return cached->plain != NULL ? read_group(recording, group, cached->plain)
					     : GT_ENOMEM;
	case GRAFTRACE_ENCODING_COLUMNS:
		if (recording->decoder == NULL)
			recording->decoder = gt_columns_decoder_create();
		if (recording->decoder == NULL)
			return GT_ENOMEM;
		if (group->stored_bytes > recording->stored_size) {
			free(recording->stored);
			recording->stored = malloc(group->stored_bytes);
			recording->stored_size =
				recording->stored != NULL ? group->stored_bytes : 0;
			if (recording->stored == NULL)
				return GT_ENOMEM;
		}
		error = read_group(recording, group, recording->stored);
		if (error)
			return error;
		error = gt_columns_open(recording->decoder, recording->stored, group->stored_bytes,
					recording->entries + group->first_entry, group->count,
					&cached->columns, &why);
		if (error == GT_EFORMAT)
			group_damaged(recording, group, error, why.text);
		if (!error)
			cached->bytes = sizeof(*cached) + gt_columns_bytes(cached->columns);
		return error;
	default:
		return group_damaged(recording, group, GT_ENOTSUP,
				     "in an encoding that this version does not know");
	}
}

/* Gets the group into the cache, as its newest. */
static int get_group(struct gt_recording *recording, uint32_t number, struct gt_cached **out)
{
	struct gt_group *group = &recording->groups[number];

	if (group->error)
		return group->error;
	if (group->cached != NULL) {
		if (recording->newest != group->cached) {
			unlink_cached(recording, group->cached);
			link_newest(recording, group->cached);
		}
		*out = group->cached;
		return 0;
	}
	while (is_too_much(recording))
		evict_oldest(recording);
	struct gt_cached *cached = calloc(1, sizeof(*cached));
	if (cached == NULL)
		return GT_ENOMEM;
	cached->group = number;
	int error = open_group(recording, group, cached);
	if (error) {
		free(cached->plain);
		free(cached);
		return error;
	}
	group->cached = cached;
	recording->cached_bytes += cached->bytes;
	link_newest(recording, cached);
	*out = cached;
	return 0;
}

/* Copies sub-buffer `index` of a group without columns. */
static void copy_plain(const struct gt_recording *recording, const struct gt_group *group,
		       const uint8_t *plain, uint32_t index, struct graftrace_sub_buffer *out)
{
	const struct graftrace_file_sub_buffer *entry = recording->entries + group->first_entry;
	size_t open;

	for (uint32_t i = 0; i < index; i++, entry++)
		plain += GRAFTRACE_HEADER_BYTES +
			 entry->open_calls * sizeof(struct graftrace_open_call) +
			 entry->words * sizeof(uint64_t);
	open = entry->open_calls * sizeof(struct graftrace_open_call);
	memset(out, 0, sizeof(*out));
	memcpy(out, plain, GRAFTRACE_HEADER_BYTES);
	memcpy(out->open, plain + GRAFTRACE_HEADER_BYTES, open);
	memcpy(out + 1, plain + GRAFTRACE_HEADER_BYTES + open, entry->words * sizeof(uint64_t));
}

/* The header of a sub-buffer must agree with the block's head. Its other fields are the
 * program's, which may have written anything. */
static bool header_fits(const struct graftrace_sub_buffer *header,
			const struct graftrace_file_sub_buffer *entry, uint32_t generation,
			uint64_t sequence)
{
	return header->magic == GRAFTRACE_SUB_BUFFER_MAGIC && header->generation == generation &&
	       header->sequence == sequence && header->clock == entry->clock &&
	       header->used == entry->words && header->open_calls == entry->open_calls;
}

int64_t gt_recording_sub_buffer(struct gt_recording *recording, uint32_t writer_index,
				uint64_t sequence, struct graftrace_sub_buffer *out)
{
	const struct gt_place *place = gt_recording_place(recording, writer_index, sequence);
	struct gt_message why = { "" };
	struct gt_cached *cached;

	if (place == NULL) {
		if (writer_index >= recording->writer_count)
			return GT_ENOENT;
		const struct gt_writer *writer = &recording->writers[writer_index].writer;
		return sequence >= writer->first && sequence < writer->next ? GT_EFORMAT
									    : GT_ENOENT;
	}
	struct gt_group *group = &recording->groups[place->group];
	struct gt_writer *writer = &recording->writers[writer_index].writer;
	int error = get_group(recording, place->group, &cached);
	if (error)
		return error == GT_ENOTSUP ? GT_EFORMAT : error;
	const struct graftrace_file_sub_buffer *entry =
		recording->entries + group->first_entry + place->index;
	if (cached->columns != NULL) {
		if (gt_columns_sub_buffer(cached->columns, place->index, out, &why) < 0)
			return group_damaged(recording, group, GT_EFORMAT, why.text);
	} else {
		copy_plain(recording, group, cached->plain, place->index, out);
	}
	if (!header_fits(out, entry, writer->generation, sequence))
		return group_damaged(recording, group, GT_EFORMAT,
				     "a sub-buffer's header is not what the block says");
	out->bytes = (uint32_t)(sizeof(*out) + entry->words * sizeof(uint64_t));
	count_given(recording, cached);
	return entry->words;
}

const struct gt_place *gt_recording_place(const struct gt_recording *recording, uint32_t index,
					  uint64_t sequence)
{
	if (index >= recording->writer_count || !recording->writers[index].count)
		return NULL;
	const struct gt_writer_index *writer = &recording->writers[index];
	uint64_t first = writer->places[0].sequence;
	size_t low = 0, high = writer->count;
	/* Nearly always all sequences are there. */
	if (sequence - first < writer->count &&
	    writer->places[sequence - first].sequence == sequence)
		return &writer->places[sequence - first];
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (writer->places[middle].sequence < sequence)
			low = middle + 1;
		else
			high = middle;
	}
	return low < writer->count && writer->places[low].sequence == sequence
		       ? &writer->places[low]
		       : NULL;
}

void gt_recording_free_trace(struct gt_recording *recording)
{
	while (recording->oldest != NULL)
		evict_oldest(recording);
	gt_columns_decoder_destroy(recording->decoder);
	for (uint32_t i = 0; i < recording->writer_count; i++)
		free(recording->writers[i].places);
	free(recording->writers);
	free(recording->writer_slots);
	free(recording->groups);
	free(recording->entries);
	free(recording->stored);
}
