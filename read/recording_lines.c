/* SPDX-License-Identifier: MIT */
/*
 * Source lines of a recording's functions. They are not in the recording: they are read from the
 * traced files on demand, and only from files with the same build IDs. So recording does no work
 * for them, and the recording of a program with gigabytes of DWARF stays small; only a few hundred
 * functions that were called are looked up later.
 */
#include "read/recording_parts.h"

#include <stdlib.h>
#include <string.h>
#include "attach/object/lines.h"

struct gt_recording_lines {
	bool tried;
	bool shared; /* `lines` is another object's */
	struct gt_lines *lines;
};

static bool is_same_file(const struct gt_recording_object *a, const struct gt_recording_object *b)
{
	return a->build_id_bytes == b->build_id_bytes &&
	       memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0 &&
	       strcmp(a->path, b->path) == 0;
}

/* Returns the object of the function, in its own process. NULL: unknown. */
static const struct gt_recording_object *object_of(const struct gt_recording *recording,
						   uint32_t pid, const struct gt_function *function)
{
	for (uint32_t i = 0; i < recording->object_count; i++) {
		const struct gt_recording_object *object = &recording->objects[i];

		if (object->pid == pid && function->address >= object->start &&
		    function->address < object->end && strcmp(object->path, function->object) == 0)
			return object;
	}
	return NULL;
}

/* Returns the file's lines. Processes share files: each is opened once. */
static struct gt_lines *lines_of(struct gt_recording *recording, uint32_t index)
{
	struct gt_recording_lines *own = &recording->lines[index];
	const struct gt_recording_object *object = &recording->objects[index];
	const struct gt_lines_of of = { object->path, object->build_id, object->build_id_bytes,
					recording->info.realtime_ns };

	for (uint32_t i = 0; !own->tried && i < recording->object_count; i++)
		if (recording->lines[i].tried && is_same_file(&recording->objects[i], object))
			*own = (struct gt_recording_lines){ true, true, recording->lines[i].lines };
	if (!own->tried) {
		own->tried = true;
		gt_lines_open(&of, &own->lines);
	}
	return own->lines;
}

int gt_recording_line(struct gt_recording *recording, uint32_t number, struct gt_source_line *line)
{
	const struct gt_recording_object *object;
	struct gt_function function;
	struct gt_lines *lines;
	uint32_t pid;

	if (gt_recording_function(recording, number, &function) != 0 ||
	    gt_recording_pid_of(recording, number, &pid) != 0)
		return GT_ENOENT;
	object = object_of(recording, pid, &function);
	if (object == NULL)
		return GT_ENOENT;
	if (recording->lines == NULL)
		recording->lines = calloc(recording->object_count, sizeof(*recording->lines));
	if (recording->lines == NULL)
		return GT_ENOMEM;
	lines = lines_of(recording, (uint32_t)(object - recording->objects));
	if (lines == NULL)
		return GT_ENOENT;
	line->made_ns = gt_lines_made_ns(lines);
	return gt_lines_at(lines, function.address - object->bias, &line->file, &line->line);
}

void gt_recording_free_lines(struct gt_recording *recording)
{
	for (uint32_t i = 0; recording->lines != NULL && i < recording->object_count; i++)
		if (!recording->lines[i].shared)
			gt_lines_close(recording->lines[i].lines);
	free(recording->lines);
}
