/* SPDX-License-Identifier: MIT */
/*
 * Functions and objects of a recording. The payloads of FUNCTIONS blocks are kept in memory; a
 * table by number and an order by address point into them. Every number and offset is checked
 * before use.
 */
#include "read/recording_parts.h"

#include <stdlib.h>
#include <string.h>

int gt_recording_add_functions(struct gt_recording *recording, uint8_t **payload, size_t bytes,
			       const char **why)
{
	struct graftrace_file_functions head;

	if (bytes < sizeof(head)) {
		*why = "its head is too short";
		return GT_EFORMAT;
	}
	memcpy(&head, *payload, sizeof(head));
	uint64_t functions = (uint64_t)head.count * sizeof(struct graftrace_file_function);
	if (bytes < sizeof(head) + functions + head.string_bytes || !head.string_bytes) {
		*why = "its functions or names are cut off";
		return GT_EFORMAT;
	}
	if (!head.first || head.count > GRAFTRACE_SPECIAL ||
	    head.first > GRAFTRACE_SPECIAL - head.count) {
		*why = "a function's number is reserved";
		return GT_EFORMAT;
	}
	struct gt_range range = {
		.pid = head.pid,
		.first = head.first,
		.count = head.count,
		.string_bytes = head.string_bytes,
		.low = UINT64_MAX,
		.functions = *payload + sizeof(head),
		.strings = (const char *)*payload + sizeof(head) + functions,
	};
	if (range.strings[head.string_bytes - 1]) {
		*why = "the last name has no end";
		return GT_EFORMAT;
	}
	for (uint32_t i = 0; i < head.count; i++) {
		struct graftrace_file_function function;
		memcpy(&function, range.functions + (size_t)i * sizeof(function), sizeof(function));
		if (function.name >= head.string_bytes) {
			*why = "a name lies outside the names";
			return GT_EFORMAT;
		}
		uint64_t end = function.address + (function.size ? function.size : 1);
		if (end < function.address)
			end = UINT64_MAX;
		if (function.address < range.low)
			range.low = function.address;
		if (end > range.high)
			range.high = end;
	}
	if (gt_recording_grow(&recording->ranges, &recording->range_size,
			      (uint64_t)recording->range_count + 1, sizeof(*recording->ranges)) < 0)
		return GT_ENOMEM;
	range.payload = *payload;
	*payload = NULL;
	if (head.first + head.count > recording->function_end)
		recording->function_end = head.first + head.count;
	recording->function_count += head.count;
	recording->ranges[recording->range_count++] = range;
	return 0;
}

int gt_recording_add_object(struct gt_recording *recording, const uint8_t *payload, size_t bytes,
			    const char **why)
{
	struct graftrace_file_object object;

	if (bytes < sizeof(object)) {
		*why = "it is too short";
		return GT_EFORMAT;
	}
	memcpy(&object, payload, sizeof(object));
	size_t strings = (size_t)object.build_id_bytes + object.path_bytes + 1;
	if (bytes - sizeof(object) < strings) {
		*why = "its build ID or path is cut off";
		return GT_EFORMAT;
	}
	if (gt_recording_grow(&recording->objects, &recording->object_size,
			      (uint64_t)recording->object_count + 1,
			      sizeof(*recording->objects)) < 0)
		return GT_ENOMEM;
	uint8_t *copy = malloc(strings);
	if (copy == NULL)
		return GT_ENOMEM;
	memcpy(copy, payload + sizeof(object), strings);
	copy[strings - 1] = 0;
	recording->objects[recording->object_count++] = (struct gt_recording_object){
		.path = (const char *)copy + object.build_id_bytes,
		.build_id = copy,
		.build_id_bytes = object.build_id_bytes,
		.pid = object.pid,
		.start = object.start,
		.end = object.end,
		.bias = object.bias,
	};
	return 0;
}

static struct graftrace_file_function entry_of(const struct gt_range *range, uint32_t index)
{
	struct graftrace_file_function entry;
	memcpy(&entry, range->functions + (size_t)index * sizeof(entry), sizeof(entry));
	return entry;
}

static void fill(const struct gt_range *range, uint32_t index, struct gt_function *function)
{
	struct graftrace_file_function entry = entry_of(range, index);
	*function = (struct gt_function){ .name = range->strings + entry.name,
					  .object = range->strings,
					  .address = entry.address,
					  .size = entry.size };
}

struct keyed {
	uint64_t key;
	uint32_t index;
};

static int by_key(const void *left, const void *right)
{
	const struct keyed *a = left, *b = right;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* Returns the indexes 0 ... count - 1 in order of their keys. NULL: no memory. */
static uint32_t *sorted_indexes(struct keyed *keyed, uint32_t count)
{
	uint32_t *order = malloc((count + 1) * sizeof(*order));
	if (order == NULL)
		return NULL;
	qsort(keyed, count, sizeof(*keyed), by_key);
	for (uint32_t i = 0; i < count; i++)
		order[i] = keyed[i].index;
	return order;
}

/* Sorts one range by address, if it is not sorted yet or has been. */
static int sort_range(struct gt_range *range)
{
	uint64_t last = 0;
	bool sorted = true;

	for (uint32_t i = 0; i < range->count; i++) {
		uint64_t address = entry_of(range, i).address;
		if (address < last)
			sorted = false;
		last = address;
	}
	if (sorted || range->by_address != NULL)
		return 0;
	struct keyed *keyed = malloc(range->count * sizeof(*keyed));
	if (keyed == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < range->count; i++)
		keyed[i] = (struct keyed){ entry_of(range, i).address, i };
	range->by_address = sorted_indexes(keyed, range->count);
	free(keyed);
	return range->by_address != NULL ? 0 : GT_ENOMEM;
}

/* Builds the index when a name is first looked up. */
static int index_names(struct gt_recording *recording)
{
	uint32_t ranges = recording->range_count;
	struct keyed *keyed = malloc((ranges + 1) * sizeof(*keyed));

	recording->highest = malloc((ranges + 1) * sizeof(*recording->highest));
	if (keyed == NULL || recording->highest == NULL)
		goto no_memory;
	for (uint32_t i = 0; i < ranges; i++) {
		keyed[i] = (struct keyed){ recording->ranges[i].low, i };
		if (sort_range(&recording->ranges[i]) < 0)
			goto no_memory;
	}
	recording->by_low = sorted_indexes(keyed, ranges);
	if (recording->by_low == NULL)
		goto no_memory;
	for (uint32_t i = 0; i < ranges; i++) {
		uint64_t high = recording->ranges[recording->by_low[i]].high;
		recording->highest[i] =
			i && recording->highest[i - 1] > high ? recording->highest[i - 1] : high;
	}
	/* Numbers are usually dense, so the table is about as long as there are functions; for a
	 * file that leaves large gaps to make it huge, a search is used instead. */
	if (recording->function_end <= recording->function_count * 16 + 65536) {
		recording->range_of = calloc(recording->function_end + 1u, sizeof(uint32_t));
		if (recording->range_of == NULL)
			goto no_memory;
		for (uint32_t i = ranges; i-- > 0;)
			for (uint32_t k = 0; k < recording->ranges[i].count; k++)
				recording->range_of[recording->ranges[i].first + k] = i + 1;
	}
	free(keyed);
	recording->names_indexed = true;
	return 0;

no_memory:
	free(keyed);
	free(recording->highest);
	free(recording->by_low);
	recording->highest = NULL;
	recording->by_low = NULL;
	return GT_ENOMEM;
}

/* Returns the block that has a number. NULL: none, or (rarely) no memory. */
static const struct gt_range *range_of(struct gt_recording *recording, uint32_t number)
{
	if (!recording->names_indexed && index_names(recording) < 0)
		return NULL;
	if (!number || number >= recording->function_end)
		return NULL;
	if (recording->range_of != NULL) {
		uint32_t index = recording->range_of[number];
		return index ? &recording->ranges[index - 1] : NULL;
	}
	for (uint32_t i = 0; i < recording->range_count; i++)
		if (number - recording->ranges[i].first < recording->ranges[i].count)
			return &recording->ranges[i];
	return NULL;
}

int gt_recording_function(struct gt_recording *recording, uint32_t number,
			  struct gt_function *function)
{
	const struct gt_range *range = range_of(recording, number);

	if (range == NULL)
		return recording->names_indexed ? GT_ENOENT : GT_ENOMEM;
	fill(range, number - range->first, function);
	return 0;
}

int gt_recording_pid_of(struct gt_recording *recording, uint32_t number, uint32_t *pid)
{
	const struct gt_range *range = range_of(recording, number);

	if (range == NULL)
		return GT_ENOENT;
	*pid = range->pid;
	return 0;
}

/* Finds the last function of the range that begins at or before the address, if the address is
 * within it. */
static bool find_in(const struct gt_range *range, uint64_t address, struct gt_function *function)
{
	uint32_t low = 0, high = range->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uint32_t index = range->by_address != NULL ? range->by_address[middle] : middle;
		if (entry_of(range, index).address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	fill(range, range->by_address != NULL ? range->by_address[low - 1] : low - 1, function);
	return address - function->address < (function->size ? function->size : 1);
}

int gt_recording_function_at(struct gt_recording *recording, uint32_t pid, uint64_t address,
			     struct gt_function *function)
{
	struct gt_function other;
	bool found = false;

	if (!recording->names_indexed && index_names(recording) < 0)
		return GT_ENOMEM;
	uint32_t low = 0, high = recording->range_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (recording->ranges[recording->by_low[middle]].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* Goes back over earlier ranges, as long as one of them may reach the address. Ranges of
	 * the process itself come first; a forked child has its parent's addresses. */
	while (low-- > 0 && recording->highest[low] > address) {
		const struct gt_range *range = &recording->ranges[recording->by_low[low]];
		if (address >= range->high || !find_in(range, address, &other))
			continue;
		if (range->pid == pid) {
			*function = other;
			return 0;
		}
		if (!found)
			*function = other;
		found = true;
	}
	return found ? 0 : GT_ENOENT;
}

void gt_recording_free_names(struct gt_recording *recording)
{
	for (uint32_t i = 0; i < recording->range_count; i++) {
		free(recording->ranges[i].payload);
		free(recording->ranges[i].by_address);
	}
	for (uint32_t i = 0; i < recording->object_count; i++)
		free((void *)recording->objects[i].build_id);
	free(recording->ranges);
	free(recording->objects);
	free(recording->range_of);
	free(recording->by_low);
	free(recording->highest);
}
