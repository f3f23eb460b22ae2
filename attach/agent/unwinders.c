/* SPDX-License-Identifier: MIT */
/* Unwinders' code: see unwinders.h. */
#include "attach/agent/unwinders.h"
#include "attach/agent/catalog.h"
#include "attach/object/object.h"

#include <string.h>

/* An unwinder that is linked in takes some 20 kB; what has its names farther apart is something else. */
#define UNWINDER_BYTES (128u << 10)

bool gt_unwinders_is_library(const char *path)
{
	return strstr(path, "/libgcc_s") != NULL || strstr(path, "/libunwind") != NULL;
}

/* libgcc's two files of an unwinder lie one behind the other. */
static int look_at_symbol(void *data, const struct gt_object_symbol *symbol)
{
	static const char *const names[] = { "uw_frame_state_for",	   "uw_update_context",
					     "uw_install_context_1",	   "_Unwind_Backtrace",
					     "_Unwind_RaiseException",	   "_Unwind_Find_FDE",
					     "_Unwind_IteratePhdrCallback" };
	struct gt_unwinder_code *code = data;

	for (size_t i = 0; symbol->address && i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(symbol->name, names[i]))
			continue;
		if (!code->start || symbol->address < code->start)
			code->start = symbol->address;
		if (symbol->address + symbol->bytes > code->end)
			code->end = symbol->address + symbol->bytes;
	}
	return 0;
}

/* All the code of a library. */
static void take_code(const struct gt_object *object, struct gt_unwinder_code *code)
{
	for (uint32_t i = 0; i < gt_object_segment_count(object); i++) {
		const struct gt_object_segment *segment = gt_object_segment(object, i);

		if (!segment->execute)
			continue;
		if (!code->end || segment->address < code->start)
			code->start = segment->address;
		if (segment->address + segment->memory_bytes > code->end)
			code->end = segment->address + segment->memory_bytes;
	}
}

static void find(struct gt_catalog_file *file)
{
	struct gt_unwinder_code code = { 0 };
	const int count = gt_catalog_hooks(file);
	bool has = false;

	if (file->unwinder_known)
		return;
	file->unwinder_known = true;
	if (gt_unwinders_is_library(file->path)) {
		take_code(file->object, &code);
	} else {
		for (int i = 0; i < count; i++)
			has = has || file->hooks[i].kind == GRAFTRACE_HOOK_UNWIND_SETIP;
		if (has)
			gt_object_each_symbol(file->object, look_at_symbol, &code);
		if (!code.start || code.end - code.start > UNWINDER_BYTES)
			return;
	}
	file->unwinder_start = code.start;
	file->unwinder_end = code.end;
}

int gt_unwinders_tell(struct gt_tracee *tracee)
{
	struct gt_unwinder_code unwinders[GRAFTRACE_AGENT_UNWINDERS] = { 0 };
	size_t count = 0;

	for (size_t i = 0; i < tracee->object_count && count < GRAFTRACE_AGENT_UNWINDERS; i++) {
		const struct gt_tracee_object *object = tracee->objects[i];

		/* Without a region it has no hooks, and no stubs that an unwinder meets. */
		if (object->gone || object->region < 0)
			continue;
		find(object->file);
		if (!object->file->unwinder_end)
			continue;
		unwinders[count].start = object->bias + object->file->unwinder_start;
		unwinders[count++].end = object->bias + object->file->unwinder_end;
	}
	return gt_inject_unwinders(&tracee->process, &tracee->agent, unwinders);
}
