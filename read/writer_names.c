/* SPDX-License-Identifier: MIT */
/* Names in a recording: objects, functions and events, in blocks that are written at once. */
#include "read/writer_private.h"

#include <string.h>

#define FUNCTIONS  16384      /* in a block */
#define NAME_BYTES (2u << 20) /* of a block's names, about */

int gt_file_writer_object(void *data, uint32_t pid, const char *path, uint64_t start, uint64_t end,
			  uint64_t bias, const uint8_t *build_id, uint32_t build_id_bytes)
{
	struct gt_file_writer *writer = data;
	size_t path_bytes = strlen(path);

	if (writer->output.error)
		return gt_file_writer_answer(writer);
	if (path_bytes > GT_FILE_NAME_MAX_BYTES)
		path_bytes = GT_FILE_NAME_MAX_BYTES;
	if (build_id_bytes > 256)
		build_id_bytes = 256;
	struct graftrace_file_object object = { pid,  build_id_bytes,	    start, end,
						bias, (uint32_t)path_bytes, 0 };
	size_t count = sizeof(object) + build_id_bytes + path_bytes + 1;
	uint8_t *at = gt_file_writer_start_payload(writer, count);
	if (at == NULL)
		return gt_file_writer_answer(writer);
	memcpy(at, &object, sizeof(object));
	at += sizeof(object);
	if (build_id_bytes)
		memcpy(at, build_id, build_id_bytes);
	at += build_id_bytes;
	memcpy(at, path, path_bytes);
	at[path_bytes] = 0;
	gt_file_writer_put_payload(writer, GRAFTRACE_BLOCK_OBJECT, count);
	return gt_file_writer_answer(writer);
}

static size_t name_length(const char *name)
{
	size_t length = name != NULL ? strlen(name) : 0;
	return length > GT_FILE_NAME_MAX_BYTES ? GT_FILE_NAME_MAX_BYTES : length;
}

static uint8_t *put_name(uint8_t *at, const char *name)
{
	size_t length = name_length(name);
	if (length)
		memcpy(at, name, length);
	at[length] = 0;
	return at + length + 1;
}

int gt_file_writer_functions(void *data, uint32_t pid, uint32_t first,
			     const struct gt_function *functions, uint32_t count)
{
	struct gt_file_writer *writer = data;

	if (writer->output.error)
		return gt_file_writer_answer(writer);
	if (!first || count > GRAFTRACE_SPECIAL || first > GRAFTRACE_SPECIAL - count) {
		gt_block_output_fail(&writer->output, GT_EINVAL,
				     "a function has a number that is reserved");
		return gt_file_writer_answer(writer);
	}
	for (uint32_t done = 0; done < count;) {
		const char *object = functions[done].object;
		size_t strings = name_length(object) + 1;
		uint32_t part = 0;
		while (done + part < count && part < FUNCTIONS && strings < NAME_BYTES)
			strings += name_length(functions[done + part++].name) + 1;

		struct graftrace_file_functions head = { pid, first + done, part,
							 (uint32_t)strings };
		size_t payload =
			sizeof(head) + part * sizeof(struct graftrace_file_function) + strings;
		uint8_t *at = gt_file_writer_start_payload(writer, payload);
		if (at == NULL)
			return gt_file_writer_answer(writer);
		memcpy(at, &head, sizeof(head));
		at += sizeof(head);
		uint8_t *names = at + part * sizeof(struct graftrace_file_function);
		uint8_t *name = put_name(names, object);
		for (uint32_t i = 0; i < part; i++) {
			const struct gt_function *function = &functions[done + i];
			struct graftrace_file_function entry = { function->address, function->size,
								 (uint32_t)(name - names) };
			memcpy(at, &entry, sizeof(entry));
			at += sizeof(entry);
			name = put_name(name, function->name);
		}
		if (gt_file_writer_put_payload(writer, GRAFTRACE_BLOCK_FUNCTIONS, payload) < 0)
			return gt_file_writer_answer(writer);
		writer->functions += part;
		done += part;
	}
	return 0;
}

int gt_file_writer_event(void *data, const struct gt_event_format *event)
{
	struct gt_file_writer *writer = data;
	const uint32_t fields = event->field_count;
	size_t strings = name_length(event->system) + name_length(event->name) +
			 name_length(event->object) + 3;

	if (writer->output.error)
		return gt_file_writer_answer(writer);
	if (fields > GRAFTRACE_PROBE_FIELDS) {
		gt_block_output_fail(&writer->output, GT_EINVAL, "an event has too many fields");
		return gt_file_writer_answer(writer);
	}
	for (uint32_t i = 0; i < fields; i++)
		strings +=
			name_length(event->fields[i].name) + name_length(event->fields[i].type) + 2;
	strings += event->print != NULL && fields ? name_length(event->print) + 1 : 0;
	struct graftrace_file_event head = { .number = event->number,
					     .field_count = fields,
					     .address = event->address,
					     .string_bytes = (uint32_t)strings };
	const size_t count =
		sizeof(head) + fields * sizeof(struct graftrace_file_event_field) + strings;
	uint8_t *at = gt_file_writer_start_payload(writer, count);
	if (at == NULL)
		return gt_file_writer_answer(writer);
	uint8_t *field = at + sizeof(head);
	uint8_t *names = field + fields * sizeof(struct graftrace_file_event_field);
	uint8_t *name = put_name(names, event->system);
	head.name = (uint32_t)(name - names);
	name = put_name(name, event->name);
	head.object = (uint32_t)(name - names);
	name = put_name(name, event->object);
	memcpy(at, &head, sizeof(head));
	for (uint32_t i = 0; i < fields; i++) {
		const struct gt_event_field *from = &event->fields[i];
		struct graftrace_file_event_field entry = {
			.name = (uint32_t)(name - names),
			.bytes = from->bytes,
			.flags = (uint16_t)((from->is_signed ? GRAFTRACE_FIELD_SIGNED : 0) |
					    (from->is_string ? GRAFTRACE_FIELD_STRING : 0) |
					    (from->is_float ? GRAFTRACE_FIELD_FLOAT : 0)),
			.show = event->number & GRAFTRACE_VALUES ? from->kind : from->show,
			.count = from->count,
		};
		name = put_name(name, from->name);
		entry.type = (uint32_t)(name - names);
		name = put_name(name, from->type);
		if (event->print != NULL && i == 0) {
			entry.print = name - names <= UINT16_MAX ? (uint16_t)(name - names) : 0;
			name = put_name(name, event->print);
		}
		memcpy(field, &entry, sizeof(entry));
		field += sizeof(entry);
	}
	gt_file_writer_put_payload(writer, GRAFTRACE_BLOCK_EVENT, count);
	return gt_file_writer_answer(writer);
}
