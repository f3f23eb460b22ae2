/* SPDX-License-Identifier: MIT */
/* Histograms of a program's events: their text is made when the file is opened. Any thread. */
#include "serve/live/live_hists.h"

#include "attach/session/session.h"
#include "core/trace/hist_text.h"
#include "port/host/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct naming {
	struct gt_target *target;
	struct gt_function function;
	char call[64];
};

/* As get_syscall_name of kernel/trace/trace_syscalls.c: that of its definition, sys_newfstat. */
static const char *system_call(void *data, uint64_t number)
{
	static const char before[] = "sys_enter_";
	struct naming *naming = data;
	const char *event = gt_session_syscall_event(number);

	if (event == NULL)
		return NULL;
	snprintf(naming->call, sizeof(naming->call), "sys_%s", event + sizeof(before) - 1);
	return naming->call;
}

/* The function at an address, in the first process that has one there. */
static const char *function_at(void *data, uint64_t address, uint64_t *start, uint64_t *bytes)
{
	struct naming *naming = data;
	struct gt_target *target = naming->target;
	const uint32_t count = target->ring->writer_count(target);
	struct gt_writer writer;
	uint32_t last = 0;

	if (address == GT_CALLER_UNKNOWN)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		if (target->ring->writer(target, i, &writer) != 0 || writer.pid == last)
			continue;
		last = writer.pid;
		if (gt_target_function_at(target, last, address, &naming->function) != 0)
			continue;
		*start = naming->function.address;
		*bytes = naming->function.size;
		return naming->function.name;
	}
	return NULL;
}

static const char *numbered(void *data, uint32_t number)
{
	struct naming *naming = data;

	return gt_target_function(naming->target, number, &naming->function) == 0
		       ? naming->function.name
		       : NULL;
}

int gt_live_event_hist_check(struct gt_control_target *target, const char *word, const char *text,
			     bool is_new, struct gt_hist_error *error)
{
	return gt_session_check_hist(live_of(target)->session, word, text, is_new, error);
}

int gt_live_event_hists_open(struct gt_control_target *target, const char *word, void **hists,
			     struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct naming naming = { .target = gt_session_target(live->session) };
	const struct gt_hist_names names = { .function = function_at,
					     .system_call = system_call,
					     .numbered = numbered,
					     .data = &naming };
	struct gt_hist_text *text = calloc(1, sizeof(*text));
	struct gt_hist_copy copy;
	int error = text != NULL ? 0 : GT_ENOMEM;

	if (text != NULL)
		text->memory = gt_host_memory;
	for (uint32_t i = 0; error == 0; i++) {
		error = gt_session_event_hist(live->session, word, i, &copy);
		if (error != 0)
			break;
		error = gt_hist_text_add(text, &copy, &names);
		gt_session_event_hist_free(&copy);
	}
	*hists = text;
	if (error == GT_ENOENT)
		return 0;
	gt_live_event_hists_close(target, text);
	return no_memory(message);
}

size_t gt_live_event_hists_read(struct gt_control_target *target, void *hists, uint64_t offset,
				char *buffer, size_t bytes)
{
	(void)target;
	return gt_hist_text_read(hists, offset, buffer, bytes);
}

void gt_live_event_hists_close(struct gt_control_target *target, void *hists)
{
	(void)target;
	if (hists != NULL)
		gt_hist_text_fini(hists);
	free(hists);
}
