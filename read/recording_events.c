/* SPDX-License-Identifier: MIT */
/*
 * A recording's events with fields: parsed when the file is opened. Every offset and length is
 * checked before use.
 */
#include "read/recording_parts.h"

#include <stdlib.h>
#include <string.h>

struct gt_recording_event {
	struct gt_event_format format;
	char *strings;
};

/* of_call: the field is a value of a call. */
static bool takes_field(struct gt_event_field *field, const char **print, bool of_call,
			const uint8_t *from, const char *strings, uint32_t string_bytes)
{
	struct graftrace_file_event_field entry;

	memcpy(&entry, from, sizeof(entry));
	if (entry.print >= string_bytes)
		return false;
	if (entry.print)
		*print = strings + entry.print;
	if (entry.name >= string_bytes || entry.type >= string_bytes ||
	    (entry.bytes != 1 && entry.bytes != 2 && entry.bytes != 4 && entry.bytes != 8))
		return false;
	*field = (struct gt_event_field){
		.name = strings + entry.name,
		.type = strings + entry.type,
		.bytes = (uint8_t)entry.bytes,
		.is_signed = entry.flags & GRAFTRACE_FIELD_SIGNED,
		.is_string = entry.flags & GRAFTRACE_FIELD_STRING,
		.is_float = entry.flags & GRAFTRACE_FIELD_FLOAT,
		.show = !of_call && entry.show < GT_SHOWS ? entry.show : GT_SHOW_AS_TYPE,
		.count = entry.count,
		.kind = of_call ? entry.show : 0,
	};
	return true;
}

int gt_recording_add_event(struct gt_recording *recording, const uint8_t *payload, size_t bytes,
			   const char **why)
{
	const size_t each = sizeof(struct graftrace_file_event_field);
	struct graftrace_file_event head;
	struct gt_recording_event event;

	if (bytes < sizeof(head)) {
		*why = "it is too short";
		return GT_EFORMAT;
	}
	memcpy(&head, payload, sizeof(head));
	if (head.field_count > GRAFTRACE_PROBE_FIELDS || !head.string_bytes ||
	    bytes - sizeof(head) < head.field_count * each ||
	    bytes - sizeof(head) - head.field_count * each < head.string_bytes) {
		*why = "its fields or names are cut off";
		return GT_EFORMAT;
	}
	if (head.system >= head.string_bytes || head.name >= head.string_bytes ||
	    head.object >= head.string_bytes) {
		*why = "a name lies outside the names";
		return GT_EFORMAT;
	}
	if (gt_recording_grow(&recording->events, &recording->event_size,
			      (uint64_t)recording->event_count + 1, sizeof(event)) < 0)
		return GT_ENOMEM;
	event.strings = malloc(head.string_bytes + 1ul);
	if (event.strings == NULL)
		return GT_ENOMEM;
	memcpy(event.strings, payload + sizeof(head) + head.field_count * each, head.string_bytes);
	event.strings[head.string_bytes] = 0;
	event.format = (struct gt_event_format){
		.number = head.number,
		.field_count = head.field_count,
		.address = head.address,
		.system = event.strings + head.system,
		.name = event.strings + head.name,
		.object = event.strings + head.object,
	};
	for (uint32_t i = 0; i < head.field_count; i++)
		if (!takes_field(&event.format.fields[i], &event.format.print,
				 head.number & GRAFTRACE_VALUES, payload + sizeof(head) + i * each,
				 event.strings, head.string_bytes)) {
			free(event.strings);
			*why = "a field makes no sense";
			return GT_EFORMAT;
		}
	recording->events[recording->event_count++] = event;
	recording->info.events = recording->event_count;
	return 0;
}

int gt_recording_event(const struct gt_recording *recording, uint32_t number,
		       struct gt_event_format *format)
{
	const uint32_t count = recording->event_count;
	uint32_t at;

	/* Numbers usually follow one another: the first comparison hits. */
	for (uint32_t i = 0; i < count; i++) {
		at = (number - recording->events[0].format.number + i) % count;
		if (recording->events[at].format.number == number) {
			*format = recording->events[at].format;
			return 0;
		}
	}
	return GT_ENOENT;
}

int gt_recording_event_at(const struct gt_recording *recording, uint32_t index,
			  struct gt_event_format *format)
{
	if (index >= recording->event_count)
		return GT_ENOENT;
	*format = recording->events[index].format;
	return 0;
}

void gt_recording_free_events(struct gt_recording *recording)
{
	for (uint32_t i = 0; i < recording->event_count; i++)
		free(recording->events[i].strings);
	free(recording->events);
}
