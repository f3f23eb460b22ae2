/* SPDX-License-Identifier: MIT */
/*
 * Trace Event Format, as chrome://tracing, Perfetto's page and speedscope read it ("Trace Event
 * Format", the JSON object form): a complete event (ph X) a call, written when it ends; thread and
 * process names as metadata (ph M), marks and losses as instants (ph i). Microseconds with three
 * decimals. A lane that is not a thread's own stack gets a thread number of its own behind those of
 * the system: viewers nest calls by thread.
 */
#include "export/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTHER_STACKS (UINT64_C(1) << 32)

/* How an event of a call ends that has nothing but its function's name and line. */
struct ending {
	char *text; /* NULL: not asked for yet */
	size_t bytes;
};

struct chrome {
	bool any;
	struct ending *endings; /* by function, once one was asked for */
	/* What all events of the thread that had the last one begin with, behind the kind: most of the next are its
	 * own. */
	uint32_t pid;
	uint64_t thread;
	size_t thread_bytes; /* 0: there was none */
	char thread_text[64];
};

static uint64_t thread_number(const struct gt_lane *lane)
{
	return lane->stack == 0 ? lane->tid : OTHER_STACKS + lane->number;
}

static void begin_thread(struct chrome *chrome, uint32_t pid, uint64_t thread)
{
	chrome->pid = pid;
	chrome->thread = thread;
	chrome->thread_bytes =
		(size_t)snprintf(chrome->thread_text, sizeof(chrome->thread_text),
				 "\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu64, pid, thread);
}

/* Writes the beginning of an event, with the fields that all events have. */
static inline void event(struct gt_export *export, const struct gt_lane *lane, const char *kind)
{
	struct chrome *chrome = export->state;
	struct gt_out *out = &export->out;
	const uint64_t thread = thread_number(lane);

	if (!chrome->thread_bytes || chrome->pid != lane->pid || chrome->thread != thread)
		begin_thread(chrome, lane->pid, thread);
	gt_out_text(out, chrome->any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
	chrome->any = true;
	gt_out_text(out, kind);
	gt_out_bytes(out, chrome->thread_text, chrome->thread_bytes);
}

static int begin(struct gt_export *export)
{
	gt_out_text(&export->out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"made_by\":");
	gt_out_json(&export->out, export->about.made_by);
	gt_out_text(&export->out, ",\"command\":");
	gt_out_json(&export->out, export->about.command_line);
	gt_out_text(&export->out, ",\"host\":");
	gt_out_json(&export->out, export->about.host);
	gt_out_text(&export->out, "},\"traceEvents\":[");
	return 0;
}

static int lane(struct gt_export *export, struct gt_lane *lane)
{
	char name[80];

	gt_export_lane_name(lane, name, sizeof(name));
	event(export, lane, "M");
	gt_out_text(&export->out, ",\"name\":\"thread_name\",\"args\":{\"name\":");
	gt_out_json(&export->out, name);
	gt_out_text(&export->out, "}}");
	if (lane->tid != lane->pid || lane->stack != 0)
		return 0;
	/* After an exec the last name is the one that stays. */
	event(export, lane, "M");
	gt_out_text(&export->out, ",\"name\":\"process_name\",\"args\":{\"name\":");
	snprintf(name, sizeof(name), "%.16s", lane->name);
	gt_out_json(&export->out, name);
	gt_out_text(&export->out, "}}");
	return 0;
}

static void begin_argument(struct gt_out *out, const char *name, bool *any)
{
	gt_out_text(out, *any ? ",\"" : ",\"args\":{\"");
	gt_out_text(out, name);
	gt_out_text(out, "\":");
	*any = true;
}

/* Writes the arguments, which viewers show for a selected call. */
static void arguments(struct gt_export *export, struct gt_out *out,
		      const struct gt_stack_call *call)
{
	const struct gt_export_line *line = gt_export_line(export, call->function);
	const char *end = call->flags & GT_STACK_OPEN	     ? "\"still open\""
			  : call->flags & GT_STACK_NO_RETURN ? "\"without a return\""
							     : NULL;

	const struct {
		const char *name;
		const char *text;
	} texts[] = { { "arguments", call->arguments }, { "returns", call->result } };
	bool any = false;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].text == NULL)
			continue;
		begin_argument(out, texts[i].name, &any);
		gt_out_json(out, texts[i].text);
	}
	if (end != NULL) {
		begin_argument(out, "end", &any);
		gt_out_text(out, end);
	}
	if (line->line) {
		begin_argument(out, "file", &any);
		gt_out_json(out, line->file);
		begin_argument(out, "line", &any);
		gt_out_number(out, line->line);
	}
	if (any)
		gt_out_char(out, '}');
}

static void end_event(struct gt_export *export, struct gt_out *out,
		      const struct gt_stack_call *call)
{
	char number[24];

	gt_out_text(out, ",\"name\":");
	gt_out_json(out, gt_export_name(export, call->function, number, NULL));
	arguments(export, out, call);
	gt_out_char(out, '}');
}

/* The function's ending, made at its first call; NULL: the call has more to tell, or there is no memory. */
static const struct ending *ending_of(struct gt_export *export, const struct gt_stack_call *call)
{
	const struct gt_stack_call plain = { .function = call->function };
	struct chrome *chrome = export->state;
	struct ending *ending;
	struct gt_out text;

	if (call->arguments != NULL || call->result != NULL ||
	    call->flags & (GT_STACK_OPEN | GT_STACK_NO_RETURN))
		return NULL;
	if (chrome->endings == NULL)
		chrome->endings = calloc(export->function_end + 1u, sizeof(*chrome->endings));
	if (chrome->endings == NULL || call->function > export->function_end)
		return NULL;
	ending = &chrome->endings[call->function];
	if (ending->text == NULL && gt_out_init_memory(&text) == 0) {
		end_event(export, &text, &plain);
		ending->text = text.error ? NULL : malloc(text.used);
		if (ending->text != NULL) {
			memcpy(ending->text, text.buffer, text.used);
			ending->bytes = text.used;
		}
		gt_out_fini(&text);
	}
	return ending->text != NULL ? ending : NULL;
}

static int leave(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call,
		 uint64_t end)
{
	const struct ending *ending = ending_of(export, call);
	struct gt_out *out = &export->out;

	event(export, lane, "X");
	gt_out_text(out, ",\"ts\":");
	gt_out_us(out, gt_export_ns(export, call->start));
	gt_out_text(out, ",\"dur\":");
	gt_out_us(out, gt_export_duration_ns(export, end - call->start));
	if (ending != NULL)
		gt_out_bytes(out, ending->text, ending->bytes);
	else
		end_event(export, out, call);
	return out->error ? GT_EIO : 0;
}

static int moment(struct gt_export *export, struct gt_lane *lane, const struct gt_moment *moment)
{
	struct gt_out *out = &export->out;
	char text[512], number[24];

	switch (moment->kind) {
	case GT_MOMENT_MARK:
		__builtin_snprintf(text, sizeof(text), "%.*s",
				   (int)(moment->text_bytes < 500 ? moment->text_bytes : 500),
				   moment->text);
		break;
	case GT_MOMENT_CALL:
		__builtin_snprintf(text, sizeof(text), "%s",
				   gt_export_name(export, moment->function, number, NULL));
		break;
	case GT_MOMENT_LOST:
		gt_export_lost(moment, text, sizeof(text));
		break;
	}
	event(export, lane, "i");
	gt_out_text(out, ",\"s\":\"t\",\"ts\":");
	gt_out_us(out, gt_export_ns(export, moment->clock));
	gt_out_text(out, ",\"name\":");
	gt_out_json(out, text);
	gt_out_char(out, '}');
	return out->error ? GT_EIO : 0;
}

static int end(struct gt_export *export, const struct gt_stack_report *report)
{
	(void)report;
	gt_out_text(&export->out, "\n]}\n");
	return 0;
}

static void fini(struct gt_export *export)
{
	struct chrome *chrome = export->state;

	for (uint32_t i = 0; chrome->endings != NULL && i <= export->function_end; i++)
		free(chrome->endings[i].text);
	free(chrome->endings);
	*chrome = (struct chrome){ .any = false };
}

const struct gt_export_format gt_format_chrome = {
	.name = "chrome",
	.help = "Trace Event JSON: chrome://tracing, ui.perfetto.dev, speedscope",
	.file = "trace.json",
	.in_any_order = true,
	.state_bytes = sizeof(struct chrome),
	.begin = begin,
	.lane = lane,
	.leave = leave,
	.moment = moment,
	.end = end,
	.fini = fini,
};
