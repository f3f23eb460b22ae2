/* SPDX-License-Identifier: MIT */
/*
 * Events of a kernel that are defined while it runs: their numbers, formats and control files. A number is given once:
 * the records of an event that was removed are still printed by its format. Rows stay where they are, too, since other
 * threads may be reading them; those of what was removed exist for no kind of target. Any thread, with the kernel's
 * lock.
 */
#include "core/kernel/kernel_private.h"
#include "core/trace/strings.h"

uint32_t gt_arena_later_count(const struct gt_arena_control *control)
{
	return control->ring->later_count;
}

bool gt_arena_later_event(const struct gt_arena_control *control, uint32_t index,
			  struct gt_event_format *format)
{
	if (index >= gt_arena_later_count(control) || !control->later[index].is_there)
		return false;
	*format = *control->ring->later[index];
	return true;
}

bool gt_arena_later_find(const struct gt_arena_control *control, const char *system,
			 const char *name, uint32_t *index)
{
	struct gt_event_format format;
	for (uint32_t i = 0; i < gt_arena_later_count(control); i++)
		if (gt_arena_later_event(control, i, &format) &&
		    gt_string_is(format.system, system) && gt_string_is(format.name, name)) {
			*index = i;
			return true;
		}
	return false;
}

/* ---- rows ---- */

static void show(struct gt_arena_later_rows *rows, bool on, uint64_t number)
{
	for (uint32_t i = 0; i < rows->count; i++) {
		rows->files[i].argument = GT_CONTROL_BY_NUMBER + number;
		__atomic_store_n(&rows->files[i].kinds, on ? GT_CONTROL_KERNEL : 0,
				 __ATOMIC_RELEASE);
	}
}

/* name: NULL: those of the system. */
static struct gt_arena_later_rows *find_rows(const struct gt_arena_control *control,
					     const char *system, const char *name)
{
	const uint32_t count = control->later_rows_count;
	for (uint32_t i = 0; i < count; i++)
		if (gt_string_is(control->later_rows[i].system, system) &&
		    gt_string_is(control->later_rows[i].name, name))
			return &control->later_rows[i];
	return NULL;
}

static bool has_static_event(const struct gt_arena_control *control, const char *system)
{
	struct gt_event_format format;
	for (uint32_t i = 0; i < control->event_count; i++)
		if (gt_arena_event_format(control, i, &format) == 0 &&
		    gt_string_is(format.system, system))
			return true;
	return false;
}

/* The rows, made if there are none yet. A reader sees them once the count of groups has grown. */
static bool need_rows(struct gt_arena_control *control, const char *system, const char *name,
		      uint32_t number)
{
	struct gt_arena_later_rows *rows = find_rows(control, system, name);
	if (rows == NULL) {
		if (control->later_rows_count == GT_ARENA_LATER_GROUPS)
			return false;
		rows = &control->later_rows[control->later_rows_count];
		*rows = (struct gt_arena_later_rows){ .system = system, .name = name };
		if (!gt_arena_event_rows(control, system, name, &rows->files, &rows->count))
			return false;
		show(rows, true, number);
		control->later_rows_count++;
		control->groups[control->control.group_count] =
			(struct gt_control_group){ rows->files, rows->count };
		__atomic_store_n(&control->control.group_count, control->control.group_count + 1,
				 __ATOMIC_RELEASE);
	}
	show(rows, true, number);
	return true;
}

static bool show_rows(struct gt_arena_control *control, const struct gt_event_format *format)
{
	if (control->later_rows == NULL) {
		const size_t bytes = GT_ARENA_LATER_GROUPS * sizeof(*control->later_rows);
		control->later_rows = gt_memory_get(&control->memory, bytes);
		if (control->later_rows == NULL)
			return false;
	}
	return need_rows(control, format->system, format->name, format->number) &&
	       (has_static_event(control, format->system) ||
		need_rows(control, format->system, NULL, format->number));
}

/* The system's rows lead to one of its events that is there. */
static void hide_rows(struct gt_arena_control *control, const struct gt_event_format *gone)
{
	struct gt_arena_later_rows *rows = find_rows(control, gone->system, gone->name);
	struct gt_event_format format = *gone;
	bool any = false;
	if (rows != NULL)
		show(rows, false, gone->number);
	for (uint32_t i = 0; !any && i < gt_arena_later_count(control); i++)
		any = gt_arena_later_event(control, i, &format) &&
		      gt_string_is(format.system, gone->system);
	rows = find_rows(control, gone->system, NULL);
	if (rows != NULL)
		show(rows, any, format.number);
}

/* ---- events ---- */

int gt_arena_later_add(struct gt_arena_control *control, struct gt_event_format *format,
		       uint32_t *index)
{
	struct gt_arena_ring *ring = control->ring;
	if (ring->later_count == GT_ARENA_LATER)
		return GT_ENOSPC;
	*index = ring->later_count;
	format->number = ring->later_first + *index;
	if (!show_rows(control, format))
		return GT_ENOMEM;
	ring->later[*index] = format;
	control->later[*index] = (struct gt_arena_later){ .is_there = true };
	__atomic_store_n(&ring->later_count, *index + 1, __ATOMIC_RELEASE);
	return 0;
}

int gt_arena_later_show(struct gt_arena_control *control, uint32_t index)
{
	if (!show_rows(control, control->ring->later[index]))
		return GT_ENOMEM;
	control->later[index] = (struct gt_arena_later){ .is_there = true };
	return 0;
}

void gt_arena_later_remove(struct gt_arena_control *control, uint32_t index)
{
	control->later[index] = (struct gt_arena_later){ 0 };
	hide_rows(control, control->ring->later[index]);
}
