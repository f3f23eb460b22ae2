/* SPDX-License-Identifier: MIT */
/*
 * speedscope's own file format: an evented profile for each lane, with shared frames. The events of
 * a profile must be contiguous, so they are spooled while the recording is read. speedscope shows
 * two million calls easily; for larger recordings use --time or --tid.
 */
#include "export/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "export/spool.h"

struct profile {
	char name[80];
	uint64_t first, last; /* ns */
	bool any;
	uint64_t events;
};

struct speedscope {
	struct gt_spool spool;
	uint32_t *frames;    /* by function: index in `functions` + 1 */
	uint32_t *functions; /* by frame */
	uint32_t count;
	struct profile *profiles; /* by lane */
	uint32_t profile_room;
};

static int begin(struct gt_export *export)
{
	struct speedscope *state = export->state;

	gt_spool_init(&state->spool);
	state->frames = calloc(export->function_end + 1u, sizeof(*state->frames));
	state->functions = calloc(export->function_end + 1u, sizeof(*state->functions));
	return state->frames != NULL && state->functions != NULL ? 0 : GT_ENOMEM;
}

static int lane(struct gt_export *export, struct gt_lane *lane)
{
	struct speedscope *state = export->state;

	if (lane->number >= state->profile_room) {
		uint32_t room = (lane->number + 1) * 2;
		struct profile *grown = realloc(state->profiles, room * sizeof(*grown));

		if (grown == NULL)
			return GT_ENOMEM;
		memset(grown + state->profile_room, 0,
		       (room - state->profile_room) * sizeof(*grown));
		state->profiles = grown;
		state->profile_room = room;
	}
	return 0;
}

static int event(struct gt_export *export, struct gt_lane *lane, char kind, uint32_t function,
		 uint64_t ticks)
{
	struct speedscope *state = export->state;
	struct profile *profile = &state->profiles[lane->number];
	uint64_t ns = gt_export_ns(export, ticks);
	char text[96];
	int error;

	if (function > export->function_end)
		function = 0;
	if (state->frames[function] == 0) {
		state->functions[state->count] = function;
		state->frames[function] = ++state->count;
	}
	if (!profile->any)
		profile->first = ns;
	profile->last = ns;
	int count = snprintf(text, sizeof(text), "%s{\"type\":\"%c\",\"frame\":%u,\"at\":%llu}",
			     profile->any ? "," : "", kind, state->frames[function] - 1,
			     (unsigned long long)ns);
	profile->any = true;
	profile->events++;
	gt_export_lane_name(lane, profile->name, sizeof(profile->name));
	error = gt_spool_add(&state->spool, lane->number, text, (size_t)count);
	if (error == GT_EIO)
		export->out.error = state->spool.error;
	return error;
}

static int enter(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call)
{
	return event(export, lane, 'O', call->function, call->start);
}

static int leave(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call,
		 uint64_t end)
{
	return event(export, lane, 'C', call->function, end);
}

static int end(struct gt_export *export, const struct gt_stack_report *report)
{
	struct speedscope *state = export->state;
	struct gt_out *out = &export->out;
	const char *before = "";
	uint32_t shown = 0, busiest = 0;
	uint64_t most = 0;
	char number[24], lacks[128], name[2200];
	int error = 0;

	gt_export_lacks(report, lacks, sizeof(lacks));
	gt_out_text(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
			 "\"exporter\":");
	gt_out_json(out, export->about.made_by);
	gt_out_text(out, ",\"name\":");
	snprintf(name, sizeof(name), "%.2000s%s%s%s", export->about.command_line,
		 lacks[0] ? " (" : "", lacks, lacks[0] ? ")" : "");
	gt_out_json(out, name);
	gt_out_text(out, ",\"profiles\":[");
	for (uint32_t i = 0; i < state->profile_room && error == 0; i++) {
		const struct profile *profile = &state->profiles[i];

		if (!profile->any)
			continue;
		if (profile->events > most) {
			most = profile->events;
			busiest = shown;
		}
		shown++;
		gt_out_text(out, before);
		before = ",\n";
		gt_out_text(out, "{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":");
		gt_out_json(out, profile->name);
		gt_out_text(out, ",\"startValue\":");
		gt_out_number(out, profile->first);
		gt_out_text(out, ",\"endValue\":");
		gt_out_number(out, profile->last);
		gt_out_text(out, ",\"events\":[");
		error = gt_spool_copy(&state->spool, i, out);
		gt_out_text(out, "]}");
	}
	/* The thread with the most calls is shown first. */
	gt_out_text(out, "],\n\"activeProfileIndex\":");
	gt_out_number(out, busiest);
	gt_out_text(out, ",\n\"shared\":{\"frames\":[");
	for (uint32_t i = 0; i < state->count; i++) {
		const struct gt_export_line *line;
		struct gt_function function;

		gt_export_name(export, state->functions[i], number, &function);
		gt_out_text(out, i ? ",\n{\"name\":" : "{\"name\":");
		gt_out_json(out, function.name);
		line = gt_export_line(export, state->functions[i]);
		if (line->line) {
			gt_out_text(out, ",\"file\":");
			gt_out_json(out, line->file);
			gt_out_text(out, ",\"line\":");
			gt_out_number(out, line->line);
		} else if (function.object[0] != '\0') {
			gt_out_text(out, ",\"file\":");
			gt_out_json(out, function.object);
		}
		gt_out_char(out, '}');
	}
	gt_out_text(out, "]}}\n");
	if (error == GT_EIO && !out->error)
		out->error = state->spool.error;
	return error;
}

static void fini(struct gt_export *export)
{
	struct speedscope *state = export->state;

	gt_spool_fini(&state->spool);
	free(state->frames);
	free(state->functions);
	free(state->profiles);
}

const struct gt_export_format gt_format_speedscope = {
	.name = "speedscope",
	.help = "speedscope's JSON: time order, left heavy and sandwich views",
	.file = "trace.speedscope.json",
	.state_bytes = sizeof(struct speedscope),
	.begin = begin,
	.lane = lane,
	.enter = enter,
	.leave = leave,
	.end = end,
	.fini = fini,
};
