/* SPDX-License-Identifier: MIT */
/*
 * latency-format, and with it verbose: the header of the latency tracers, and lines with the time
 * since the trace began and a mark for the time to the next record of any thread. So a line is
 * complete only when the next record is known: its time is filled in afterwards. Layout:
 * kernel/trace/trace.c (print_trace_header) and trace_output.c (trace_print_lat_context).
 */
#include "core/text/text_parts.h"

#define RELEASE_MOST 64

/* Rounded as tracing_max_latency is: to the nearest. */
static uint64_t latency_us(const struct gt_text *text)
{
	const struct graftrace_latency *worst = &text->options.latency->worst;
	return (gt_clock_duration_ns(&text->target->clock, worst->to.clock - worst->from.clock) +
		500) /
	       1000;
}

char *gt_text_put_latency_header(struct gt_text *text, char *at)
{
	static const char help[] = "#                    _------=> CPU#            \n"
				   "#                   / _-----=> irqs-off/BH-disabled\n"
				   "#                  | / _----=> need-resched    \n"
				   "#                  || / _---=> hardirq/softirq \n"
				   "#                  ||| / _--=> preempt-depth   \n"
				   "#                  |||| / _-=> migrate-disable \n"
				   "#                  ||||| /     delay           \n"
				   "#  cmd     pid     |||||| time  |   caller     \n"
				   "#     \\   /        ||||||  \\    |    /       \n";
	const char *release = text->options.release != NULL ? text->options.release : "graftrace";
	unsigned tracer = text->target->tracer;
	const char *name = gt_text_tracer_name(tracer);
	const struct gt_text_latency *latency = text->options.latency;
	uint64_t lost = 0;
	uint64_t entries = latency != NULL ? latency->worst.number ? latency->records + 2 : 0
					   : gt_text_count_entries(text, &lost);

	if (entries == 0)
		return at;
	at = GT_PUT_LITERAL(at, "# ");
	at = gt_put_bytes(at, name, gt_text_length(name, 32));
	at = GT_PUT_LITERAL(at, " latency trace v1.1.5 on ");
	at = gt_put_clean(at, release, gt_text_length(release, RELEASE_MOST));
	at = GT_PUT_LITERAL(at, "\n# -----------------------------------"
				"---------------------------------\n# latency: ");
	at = gt_put_number(at, latency != NULL ? latency_us(text) : 0);
	at = GT_PUT_LITERAL(at, " us, #");
	at = gt_put_number(at, entries);
	*at++ = '/';
	at = gt_put_number(at, entries + lost);
	at = GT_PUT_LITERAL(at, ", CPU#");
	at = gt_put_number(at, latency != NULL ? latency->worst.cpu : 0);
	at = GT_PUT_LITERAL(at, " | (M:preempt VP:0, KP:0, SP:0 HP:0 #P:");
	at = gt_put_number(at, text->target->cpu_count);
	at = GT_PUT_LITERAL(at, ")\n#    -----------------\n#    | task: ");
	if (latency != NULL)
		at = gt_put_clean(at, latency->comm, gt_text_length(latency->comm, 16));
	*at++ = '-';
	at = gt_put_number(at, latency != NULL ? latency->worst.tid : 0);
	at = GT_PUT_LITERAL(at, " (uid:0 nice:0 policy:0 rt_prio:0)\n"
				"#    -----------------\n");
	if (latency != NULL) {
		at = GT_PUT_LITERAL(at, "#  => started at: ");
		at = gt_text_put_caller(text, latency->worst.from.caller, at);
		at = GT_PUT_LITERAL(at, "\n#  => ended at:   ");
		at = gt_text_put_caller(text, latency->worst.to.caller, at);
		at = GT_PUT_LITERAL(at, "\n#\n");
	}
	at = GT_PUT_LITERAL(at, "#\n");
	if (!gt_text_is_graph(text) && !has(text, GT_OPTION_VERBOSE))
		at = GT_PUT_LITERAL(at, help);
	return at;
}

char *gt_text_put_latency_context(struct gt_text *text, const struct gt_source *source, char *line,
				  char *at)
{
	const struct gt_record *record = &source->record;
	uint32_t cpu = cpu_of(text, record->cpu)->cpu;
	const char *comm = comm_of(text, source);
	size_t length;
	bool verbose = has(text, GT_OPTION_VERBOSE);
	size_t width = verbose ? 16 : 8;

	if (!text->options.time_start)
		text->options.time_start = record->clock;
	length = gt_text_length(comm, width);
	at = gt_put_fill(at, ' ', width - length);
	at = gt_put_clean(at, comm, length);
	*at++ = verbose ? ' ' : '-';
	if (verbose) {
		at = gt_put_right(at, source->tid, 7);
		*at++ = ' ';
		at = gt_put_right(at, cpu, 3);
		at = GT_PUT_LITERAL(at, " 0 00000000 ");
		at = gt_put_hex(at, text->shown - 1, 8);
		*at++ = ' ';
	} else {
		char *start = at;

		at = gt_put_number(at, source->tid);
		if (at - start < 7)
			at = gt_put_fill(at, ' ', (size_t)(7 - (at - start)));
		*at++ = ' ';
		at = gt_put_right(at, cpu, 3);
		at = gt_text_put_state(text, at, record);
	}
	text->late_at = (uint32_t)(at - line);
	text->late_clock = record->clock;
	return at;
}

/* Writes microseconds as milliseconds with three decimals. */
static char *put_milliseconds(char *at, uint64_t us)
{
	at = gt_put_number(at, us / 1000);
	*at++ = '.';
	at = gt_put_padded(at, us % 1000, 3);
	return GT_PUT_LITERAL(at, "ms");
}

static char *put_times(struct gt_text *text, uint64_t next_clock, char *at)
{
	uint64_t units = text->options.units;
	uint64_t now = stamp_of(text, text->late_clock);
	uint64_t start = stamp_of(text, text->options.time_start);
	uint64_t next = stamp_of(text, next_clock);
	uint64_t since = now > start ? now - start : 0;
	uint64_t to_next = next > now ? next - now : 0;

	if (units && has(text, GT_OPTION_VERBOSE)) {
		*at++ = '[';
		at = gt_put_hex(at, now / units, 16);
		at = GT_PUT_LITERAL(at, "] ");
		at = gt_put_number(at, since / units);
		at = GT_PUT_LITERAL(at, " (+");
		at = gt_put_number(at, to_next / units);
		return GT_PUT_LITERAL(at, "): ");
	}
	if (has(text, GT_OPTION_VERBOSE)) {
		*at++ = '[';
		at = gt_put_hex(at, (now + 500) / 1000, 8);
		at = GT_PUT_LITERAL(at, "] ");
		at = put_milliseconds(at, (since + 500) / 1000);
		at = GT_PUT_LITERAL(at, " (+");
		at = put_milliseconds(at, (to_next + 500) / 1000);
		return GT_PUT_LITERAL(at, "): ");
	}
	*at++ = ' ';
	if (units) {
		at = gt_put_right(at, since / units, 4);
	} else {
		at = gt_put_right(at, (since + 500) / 1000, 4);
		at = GT_PUT_LITERAL(at, "us");
		*at++ = gt_text_mark((to_next + 500) / 1000 * 1000);
	}
	return GT_PUT_LITERAL(at, ": ");
}

size_t gt_text_finish_line(struct gt_text *text, char *line, size_t length, uint64_t next_clock)
{
	char times[128];
	size_t more = (size_t)(put_times(text, next_clock, times) - times);

	for (size_t i = length; i-- > text->late_at;)
		line[i + more] = line[i];
	for (size_t i = 0; i < more; i++)
		line[text->late_at + i] = times[i];
	return length + more;
}
