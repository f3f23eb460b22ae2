/* SPDX-License-Identifier: MIT */
/* Histograms of a program's events: their text is made when the file is opened. Any thread. */
#define _GNU_SOURCE /* open_memstream */
#include "serve/live/live_hists.h"

#include "attach/session/session.h"
#include "core/trace/hist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
	char *bytes;
	size_t count;
};

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

/* Of whichever process has the address. */
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

static void print(FILE *out, const struct gt_hist_copy *copy, const struct gt_hist_names *names,
		  bool is_first)
{
	char line[GT_HIST_LINE_BYTES];

	gt_hist_put(copy->hist, line, sizeof(line));
	fprintf(out, "%s# event histogram\n#\n# trigger info: hist:%s%s%s [%s]\n#\n\n",
		is_first ? "" : "\n\n", line, copy->filter != NULL ? " if " : "",
		copy->filter != NULL ? copy->filter : "", copy->is_paused ? "paused" : "active");
	for (uint32_t i = 0; i < copy->view.count; i++)
		fwrite(line, 1, gt_hist_put_entry(&copy->view, i, names, line), out);
	fwrite(line, 1, gt_hist_put_snapshot(&copy->view, names, line), out);
	fprintf(out, "\nTotals:\n    Hits: %llu\n    Entries: %u\n    Dropped: %llu\n",
		(unsigned long long)copy->view.hits, copy->view.count,
		(unsigned long long)copy->view.drops);
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
	struct text *text = calloc(1, sizeof(*text));
	FILE *out = text != NULL ? open_memstream(&text->bytes, &text->count) : NULL;
	struct gt_hist_copy copy;
	int error = out != NULL ? 0 : GT_ENOMEM;

	for (uint32_t i = 0; error == 0; i++) {
		error = gt_session_event_hist(live->session, word, i, &copy);
		if (error != 0)
			break;
		print(out, &copy, &names, i == 0);
		gt_session_event_hist_free(&copy);
	}
	if (out != NULL && (ferror(out) || fclose(out) != 0))
		error = GT_ENOMEM;
	*hists = text;
	if (error == GT_ENOENT)
		return 0;
	gt_live_event_hists_close(target, text);
	return no_memory(message);
}

size_t gt_live_event_hists_read(struct gt_control_target *target, void *hists, uint64_t offset,
				char *buffer, size_t bytes)
{
	const struct text *text = hists;
	size_t left = offset < text->count ? text->count - (size_t)offset : 0;

	(void)target;
	left = left < bytes ? left : bytes;
	if (left > 0)
		memcpy(buffer, text->bytes + offset, left);
	return left;
}

void gt_live_event_hists_close(struct gt_control_target *target, void *hists)
{
	struct text *text = hists;

	(void)target;
	if (text != NULL)
		free(text->bytes);
	free(text);
}
