/* SPDX-License-Identifier: MIT */
/*
 * The table of formats, and what all formats share: see export.h.
 */
#define _GNU_SOURCE
#include "export/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/message.h"

const struct gt_export_format *const gt_export_formats[] = {
	&gt_format_csv,
	&gt_format_json,
	&gt_format_sqlite,
	&gt_format_chrome,
	&gt_format_perfetto,
	&gt_format_speedscope,
	&gt_format_ctf,
	&gt_format_uftrace,
	&gt_format_folded,
	&gt_format_svg,
	&gt_format_dot,
	&gt_format_callgrind,
	&gt_format_pprof,
	&gt_format_clickhouse,
	&gt_format_html,
	&gt_format_events_csv,
	&gt_format_events_json,
	&gt_format_events_tsv,
	NULL,
};

const struct gt_export_format *gt_export_find(const char *name)
{
	for (size_t i = 0; gt_export_formats[i] != NULL; i++)
		if (strcmp(gt_export_formats[i]->name, name) == 0)
			return gt_export_formats[i];
	return NULL;
}

uint64_t gt_export_ns(const struct gt_export *export, uint64_t ticks)
{
	uint64_t start = export->about.start;

	return (int64_t)(ticks - start) > 0
		       ? gt_clock_duration_ns(&export->target->clock, ticks - start)
		       : 0;
}

uint64_t gt_export_duration_ns(const struct gt_export *export, uint64_t ticks)
{
	return gt_clock_duration_ns(&export->target->clock, ticks);
}

const char *gt_export_name(const struct gt_export *export, uint32_t function, char number[24],
			   struct gt_function *more)
{
	struct gt_function found = { .name = "" };

	if (gt_target_function(export->target, function, &found) != 0 || found.name[0] == '\0') {
		snprintf(number, 24, "function#%" PRIu32, function);
		found.name = number;
		if (found.object == NULL)
			found.object = "";
	}
	if (more != NULL)
		*more = found;
	return found.name;
}

const struct gt_export_line *gt_export_line(struct gt_export *export, uint32_t function)
{
	static const struct gt_export_line none = { .file = "" };
	struct gt_source_line found;
	struct gt_export_line *line;

	if (export->lines == NULL)
		export->lines = calloc(export->function_end + 1u, sizeof(*export->lines));
	if (export->lines == NULL || function > export->function_end)
		return &none;
	line = &export->lines[function];
	if (!line->asked) {
		*line = none;
		line->asked = true;
		if (gt_target_line(export->target, function, &found) == 0) {
			line->file = found.file;
			line->line = found.line;
		}
	}
	return line;
}

const char *gt_export_build(struct gt_export *export, uint32_t number,
			    const struct gt_function *function)
{
	struct gt_export_build *build;

	if (export->builds == NULL)
		export->builds = calloc(export->function_end + 1u, sizeof(*export->builds));
	if (export->builds == NULL || number > export->function_end || export->about.build == NULL)
		return "";
	build = &export->builds[number];
	if (!build->asked)
		export->about.build(export->about.build_user, function, build->id);
	build->asked = true;
	return build->id;
}

void gt_export_lane_name(const struct gt_lane *lane, char *text, size_t bytes)
{
	char stack[32] = "";

	if (lane->stack != 0)
		snprintf(stack, sizeof(stack), " stack %" PRIu32, lane->stack + 1);
	snprintf(text, bytes, "%.16s-%" PRIu32 "%s", lane->name[0] ? lane->name : "<...>",
		 lane->tid, stack);
}

void gt_export_lost(const struct gt_moment *moment, char *text, size_t bytes)
{
	if (moment->value != 0)
		snprintf(text, bytes, "%" PRIu64 " records lost", moment->value);
	else
		snprintf(text, bytes, "a part is missing");
}

void gt_export_lacks(const struct gt_stack_report *report, char *text, size_t bytes)
{
	const struct {
		uint64_t count;
		const char *one, *many;
	} lacks[] = {
		{ report->lost, "record lost", "records lost" },
		{ report->gaps, "part missing", "parts missing" },
		{ report->without_return, "call without a return", "calls without a return" },
	};
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(lacks) / sizeof(lacks[0]) && used < bytes; i++)
		if (lacks[i].count > 0)
			used += (size_t)snprintf(
				text + used, bytes - used, "%s%" PRIu64 " %s", used > 0 ? ", " : "",
				lacks[i].count, lacks[i].count == 1 ? lacks[i].one : lacks[i].many);
}

static int take_lane(void *user, struct gt_lane *lane)
{
	struct gt_export *export = user;

	return export->format->lane != NULL ? export->format->lane(export, lane) : 0;
}

static int take_enter(void *user, struct gt_lane *lane, struct gt_stack_call *call)
{
	struct gt_export *export = user;

	return export->format->enter != NULL ? export->format->enter(export, lane, call) : 0;
}

static int take_leave(void *user, struct gt_lane *lane, struct gt_stack_call *call, uint64_t end)
{
	struct gt_export *export = user;

	if (export->least_ns && gt_export_duration_ns(export, end - call->start) < export->least_ns)
		return 0;
	return export->format->leave != NULL ? export->format->leave(export, lane, call, end) : 0;
}

static int take_moment(void *user, struct gt_lane *lane, const struct gt_moment *moment)
{
	struct gt_export *export = user;

	return export->format->moment != NULL ? export->format->moment(export, lane, moment) : 0;
}

/* Throws away what the format has, for it to begin anew. */
static int begin_again(void *user)
{
	struct gt_export *export = user;
	const struct gt_export_format *format = export->format;

	if (format->fini != NULL)
		format->fini(export);
	if (export->state != NULL)
		memset(export->state, 0, format->state_bytes);
	memset(export->function_seen, 0, export->function_end + 1u);
	if (!format->is_directory && gt_out_again(&export->out) != 0)
		return GT_EIO;
	return format->begin != NULL ? format->begin(export) : 0;
}

/* Can the writer be read from its first sub-buffer to its last, and has it lost nothing? */
static bool is_whole(struct gt_target *target, uint32_t index)
{
	struct gt_writer writer;

	if (target->ring->writer(target, index, &writer) != 0)
		return false;
	for (unsigned i = 0; i < GRAFTRACE_LOST_CAUSES; i++)
		if (writer.lost[i] != 0)
			return false;
	for (uint64_t sequence = writer.first; sequence < writer.next; sequence++)
		if (gt_target_next_sequence(target, index, sequence) != sequence)
			return false;
	return true;
}

/* Are calls nested also if those whose entries are missing come when they end? Not where records in the
 * middle are missing, nor of a kernel, whose threads are in the records of several CPUs. */
static bool nests_in_any_order(const struct gt_export *export)
{
	uint32_t count = export->target->ring->writer_count(export->target);

	if (!export->format->in_any_order || export->about.is_kernel)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!is_whole(export->target, i))
			return false;
	return true;
}

static bool can_begin_again(const struct gt_export *export)
{
	return export->format->writes_at_end || (export->is_new && !export->format->needs_file);
}

bool gt_export_reads_once(const struct gt_export *export)
{
	return can_begin_again(export) || nests_in_any_order(export);
}

int gt_export_run(struct gt_export *export, struct gt_stack_report *report)
{
	const struct gt_export_format *format = export->format;
	const struct gt_stack_sink sink = {
		.user = export,
		.again = can_begin_again(export) ? begin_again : NULL,
		.in_any_order = !can_begin_again(export) && nests_in_any_order(export),
		.lane = take_lane,
		.enter = take_enter,
		.leave = take_leave,
		.moment = take_moment,
	};
	int error = 0;

	memset(report, 0, sizeof(*report));
	export->function_seen = calloc(export->function_end + 1u, 1);
	export->state = format->state_bytes ? calloc(1, format->state_bytes) : NULL;
	if (export->function_seen == NULL || (format->state_bytes && export->state == NULL))
		error = GT_ENOMEM;
	if (error == 0 && !format->is_directory)
		error = gt_out_init(&export->out, export->fd);
	if (error == 0 && format->begin != NULL)
		error = format->begin(export);
	if (error == 0)
		error = gt_stacks_read(export->target, export->filter, &sink, report);
	if (error == 0 && format->end != NULL)
		error = format->end(export, report);
	if (!format->is_directory && export->out.buffer != NULL) {
		if (error == 0)
			error = gt_out_flush(&export->out);
		if (export->out.error) {
			gt_message_set(export->message, "%s", strerror(export->out.error));
			error = GT_EIO;
		}
		gt_out_fini(&export->out);
	}
	if (export->state != NULL && format->fini != NULL)
		format->fini(export);
	free(export->state);
	free(export->function_seen);
	free(export->lines);
	free(export->builds);
	return error;
}
