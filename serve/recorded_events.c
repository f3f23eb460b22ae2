/* SPDX-License-Identifier: MIT */
/* See recorded_events.h. */
#define _GNU_SOURCE
#include "serve/recorded_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gt_recorded_event_number {
	uint32_t number; /* in records */
	uint32_t index;	 /* of `formats` */
};

#define ROWS_MOST 4 /* of an event, with its system's */

static int compare_numbers(const void *a, const void *b)
{
	const struct gt_recorded_event_number *one = a, *other = b;

	return one->number < other->number ? -1 : one->number > other->number;
}

/* How many events before it have the same name and other fields: a kernel's probe was set again with other arguments. */
static uint32_t count_namesakes(const struct gt_recorded_events *events, uint32_t index)
{
	const struct gt_event_format *const format = &events->formats[index];
	uint32_t count = 0;

	for (uint32_t i = 0; i < index; i++)
		count += strcmp(events->formats[i].name, format->name) == 0 &&
			 strcmp(events->formats[i].system, format->system) == 0;
	return count;
}

/* The second of a name has the directory NAME.2. */
static int make_path(char **path, const struct gt_event_format *format, uint32_t namesakes,
		     const char *file)
{
	return namesakes == 0
		       ? asprintf(path, "events/%s/%s/%s", format->system, format->name, file)
		       : asprintf(path, "events/%s/%s.%u/%s", format->system, format->name,
				  namesakes + 1, file);
}

static bool add_row(struct gt_recorded_events *events, enum gt_control_event_file which,
		    const struct gt_event_format *format, uint64_t index)
{
	static const char *const names[] = {
		[GT_EVENT_ENABLE] = "enable", [GT_EVENT_FORMAT] = "format", [GT_EVENT_ID] = "id"
	};
	const uint32_t row = events->group.count;
	int bytes = which == GT_EVENT_SYSTEM_ENABLE
			    ? asprintf(&events->paths[row], "events/%s/enable", format->system)
			    : make_path(&events->paths[row], format,
					count_namesakes(events, (uint32_t)index), names[which]);

	if (bytes < 0) {
		events->paths[row] = NULL;
		return false;
	}
	events->files[row] = gt_control_event_file(which, events->paths[row], index);
	events->group.count++;
	return true;
}

static bool is_first_of_system(const struct gt_recorded_events *events, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++)
		if (strcmp(events->formats[i].system, events->formats[index].system) == 0)
			return false;
	return true;
}

/* Names that are no part of a path have no files. */
static bool is_part(const char *name)
{
	return *name && *name != '.' && strchr(name, '/') == NULL;
}

static int make_rows(struct gt_recorded_events *events)
{
	events->files = calloc(ROWS_MOST * (events->count + 1ul), sizeof(*events->files));
	events->paths = calloc(ROWS_MOST * (events->count + 1ul), sizeof(*events->paths));
	if (events->files == NULL || events->paths == NULL)
		return GT_ENOMEM;
	events->group.files = events->files;
	for (uint32_t i = 0; i < events->count; i++) {
		const struct gt_event_format *format = &events->formats[i];

		if (!is_part(format->system) || !is_part(format->name))
			continue;
		if (is_first_of_system(events, i) &&
		    !add_row(events, GT_EVENT_SYSTEM_ENABLE, format, i))
			return GT_ENOMEM;
		if (!add_row(events, GT_EVENT_ENABLE, format, i) ||
		    !add_row(events, GT_EVENT_FORMAT, format, i) ||
		    !add_row(events, GT_EVENT_ID, format, i))
			return GT_ENOMEM;
	}
	return 0;
}

int gt_recorded_events_init(struct gt_recorded_events *events, struct gt_recording *recording)
{
	const uint32_t all = gt_recording_info(recording)->events;
	struct gt_event_format format;
	uint32_t k;

	*events = (struct gt_recorded_events){ .count = 0 };
	events->formats = calloc(all + 1ul, sizeof(*events->formats));
	events->numbers = calloc(all + 1ul, sizeof(*events->numbers));
	if (events->formats == NULL || events->numbers == NULL) {
		gt_recorded_events_fini(events);
		return GT_ENOMEM;
	}
	for (uint32_t i = 0; gt_recording_event_at(recording, i, &format) == 0; i++) {
		if (format.number & GRAFTRACE_VALUES)
			continue;
		for (k = 0;
		     k < events->count && !gt_event_is_same_format(&events->formats[k], &format);
		     k++)
			;
		if (k == events->count)
			events->formats[events->count++] = format;
		events->numbers[events->number_count++] =
			(struct gt_recorded_event_number){ format.number, k };
	}
	qsort(events->numbers, events->number_count, sizeof(*events->numbers), compare_numbers);
	if (make_rows(events) == 0)
		return 0;
	gt_recorded_events_fini(events);
	return GT_ENOMEM;
}

void gt_recorded_events_fini(struct gt_recorded_events *events)
{
	for (uint32_t i = 0; events->paths != NULL && i < events->group.count; i++)
		free(events->paths[i]);
	free(events->paths);
	free(events->files);
	free(events->formats);
	free(events->numbers);
	*events = (struct gt_recorded_events){ .count = 0 };
}

int gt_recorded_events_of(const struct gt_recorded_events *events, uint32_t number,
			  struct gt_event_format *format)
{
	const struct gt_recorded_event_number wanted = { number, 0 };
	const struct gt_recorded_event_number *found = bsearch(
		&wanted, events->numbers, events->number_count, sizeof(wanted), compare_numbers);

	if (found == NULL)
		return GT_ENOENT;
	*format = events->formats[found->index];
	return 0;
}

int gt_recorded_events_at(const struct gt_recorded_events *events, uint64_t index,
			  struct gt_control_event *event)
{
	event->enabled = true;
	event->soft = false;
	if (index >= GT_CONTROL_BY_NUMBER)
		return gt_recorded_events_of(events, (uint32_t)(index - GT_CONTROL_BY_NUMBER),
					     &event->format);
	if (index >= events->count)
		return GT_ENOENT;
	event->format = events->formats[index];
	return 0;
}
