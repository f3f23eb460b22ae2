/* SPDX-License-Identifier: MIT */
/*
 * Splits blocks into lines, applies each line to the stacks, and makes the report. Blocks are
 * parsed in place; only a line that is cut by the end of a block is copied.
 */
#include "read/text_trace.h"
#include "core/trace/message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read/levels.h"
#include "read/text_line.h"
#include "read/text_stacks.h"

/* Large enough that the cost of read() vanishes, small enough for the second-level cache. */
#define BLOCK_BYTES (256u << 10)

/* After so many ends without a beginning, the text is one with tracing_thresh. */
#define ENDS_ALONE 1024

/* The end of a call whose beginning is not in the text. */
struct end {
	uint64_t line, offset, duration_ns;
	int64_t tid;
	int32_t indent;
	uint32_t name_len;
	char name[]; /* of the function, or empty */
};

struct gt_text_trace {
	int (*call)(void *user, const struct gt_text_call *call);
	void *user;
	struct gt_text_stacks stacks;
	struct gt_text_trace_report report;
	char *carry; /* the beginning of a line, from earlier blocks */
	size_t carry_len;
	bool skipping; /* inside a line that is too long */
	/* A text with tracing_thresh has only ends of calls, and each stands for a whole call.
	 * Ends are kept here until a call begins, or until there are ENDS_ALONE of them. */
	struct end *ends[ENDS_ALONE];
	uint32_t end_count;
	bool begins;	/* a call has begun: an end alone is that of a call from before the text */
	bool ends_only; /* it is a text with tracing_thresh */
	struct gt_levels levels;
	bool in_comment; /* inside a marker's text of several lines */
	/* The file to look ahead in, until its end; then NULL. */
	char *ahead;
	size_t ahead_kept; /* bytes kept from the block before, at its beginning */
	off_t ahead_offset;
	int ahead_fd;
	char looked_ahead[GT_TEXT_CPU_MAX + 1]; /* by CPU: there is nothing more to find */
};

static void left_open(void *user, const char *name, size_t name_len, int64_t tid)
{
	struct gt_text_trace *trace = user;

	gt_cases_keep(&trace->report.open_at_end, 0, 0, tid, NULL, name, name_len);
}

static int row(struct gt_text_trace *trace, int64_t tid, const char *name, size_t name_len,
	       uint64_t latency_ns, uint64_t self_ns)
{
	const struct gt_text_call call = {
		.function = name,
		.function_len = name_len,
		.tid = tid,
		.latency_ns = latency_ns,
		.self_ns = self_ns,
	};

	trace->report.calls++;
	return trace->call(trace->user, &call);
}

/* A line is on a CPU whose task is unknown: looks ahead for the CPU's first switch. Most texts
 * have it near; a text without one is read to its end once, for all CPUs together. */
static __attribute__((noinline, cold)) int look_ahead_slow(struct gt_text_trace *trace, int32_t cpu)
{
	while (trace->ahead != NULL && !trace->looked_ahead[cpu]) {
		char *block = trace->ahead;
		ssize_t count = pread(trace->ahead_fd, block + trace->ahead_kept, BLOCK_BYTES,
				      trace->ahead_offset);
		size_t len = trace->ahead_kept;

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0) { /* an error is reported when this part is read in its turn */
			free(trace->ahead);
			trace->ahead = NULL;
			break;
		}
		trace->ahead_offset += count;
		len += (size_t)count;
		if (gt_text_trace_peek(trace, block, len) != 0)
			return GT_ENOMEM;
		trace->ahead_kept = len < GT_TEXT_PEEK_OVERLAP ? len : GT_TEXT_PEEK_OVERLAP;
		memmove(block, block + len - trace->ahead_kept, trace->ahead_kept);
	}
	trace->looked_ahead[cpu] = 1;
	return 0;
}

/* In an unknown layout, depth is given by indentation alone. */
static int give_end(struct gt_text_trace *trace, const struct end *end)
{
	uint64_t self_ns =
		gt_levels_end(&trace->levels, (uint64_t)end->tid,
			      end->indent > 0 ? (uint32_t)end->indent / 2 : 0, end->duration_ns);

	return row(trace, end->tid, end->name, end->name_len, end->duration_ns, self_ns);
}

/* Takes the ends that were kept as calls, or as ends of calls from before the text. */
static int take_ends(struct gt_text_trace *trace, bool are_calls)
{
	int result = 0;

	for (uint32_t i = 0; i < trace->end_count; i++) {
		const struct end *end = trace->ends[i];

		if (result >= 0 && are_calls && end->name_len > 0)
			result = give_end(trace, end);
		else if (result >= 0)
			gt_cases_keep(&trace->report.open_at_start, end->line, end->offset,
				      end->tid, NULL, end->name, end->name_len);
		free(trace->ends[i]);
	}
	trace->end_count = 0;
	return result;
}

/* Handles an end without a beginning. */
static int end_line(struct gt_text_trace *trace, const struct gt_text_line *line, int64_t tid,
		    uint64_t offset)
{
	size_t name_len = line->name != NULL ? line->name_len : 0;
	struct end *end = malloc(sizeof(*end) + name_len + 1);
	int result = 0;

	if (end == NULL)
		return GT_ENOMEM;
	*end = (struct end){ .line = trace->report.lines,
			     .offset = offset,
			     .duration_ns = line->duration_ns,
			     .tid = tid,
			     .indent = line->indent,
			     .name_len = (uint32_t)name_len };
	memcpy(end->name, name_len > 0 ? line->name : "", name_len);
	trace->ends[trace->end_count++] = end;
	if (trace->end_count == ENDS_ALONE && !trace->begins)
		trace->ends_only = true;
	if (trace->begins || trace->ends_only)
		result = take_ends(trace, trace->ends_only);
	return result;
}

static int call_line(struct gt_text_trace *trace, const struct gt_text_line *line, uint64_t offset)
{
	struct gt_text_stacks *stacks = &trace->stacks;
	struct gt_text_closed closed;
	struct gt_text_task *task;

	if (line->pid < 0 && line->cpu >= 0 && !trace->looked_ahead[line->cpu] &&
	    look_ahead_slow(trace, line->cpu) != 0)
		return GT_ENOMEM;
	task = gt_text_stacks_task(stacks, line->cpu, line->pid);
	if (task == NULL)
		return GT_ENOMEM;
	if (line->kind != GT_TEXT_EXIT && !trace->begins) {
		trace->begins = true;
		take_ends(trace, false);
	}
	if (line->kind == GT_TEXT_ENTRY)
		return gt_text_stacks_enter(stacks, task, line->name, line->name_len, line->indent);
	if (line->kind == GT_TEXT_LEAF) {
		gt_text_stacks_leaf(stacks, task, line->indent, line->duration_ns);
		return row(trace, gt_text_task_tid(task), line->name, line->name_len,
			   line->duration_ns, line->duration_ns);
	}
	if (!gt_text_stacks_leave(stacks, task, line->indent, line->name, line->name_len,
				  line->duration_ns, &closed))
		return end_line(trace, line, gt_text_task_tid(task), offset);
	trace->report.children_exceed += closed.children_exceed;
	return row(trace, gt_text_task_tid(task), closed.name, closed.name_len, line->duration_ns,
		   closed.self_ns);
}

static int begin_trace(struct gt_text_trace *trace, const struct gt_text_line *line)
{
	struct gt_text_trace_report *report = &trace->report;
	size_t len = line->name_len;
	int result = 0;

	/* Texts that were concatenated: open calls end here. */
	if (report->traces++ > 0 || report->trace_lines > 0) {
		result = take_ends(trace, !trace->begins);
		gt_text_stacks_end(&trace->stacks);
		trace->begins = trace->ends_only = false;
	}
	if (len > sizeof report->tracer - 1)
		len = sizeof report->tracer - 1;
	for (size_t i = 0; i < len; i++)
		report->tracer[i] =
			line->name[i] > 0x20 && line->name[i] < 0x7f ? line->name[i] : '?';
	report->tracer[len] = '\0';
	return result;
}

/* Can such a line be part of a marker's text? That ends at the latest at the next line of the
 * trace. */
static bool may_be_text(enum gt_text_kind kind)
{
	return kind == GT_TEXT_OTHER || kind == GT_TEXT_EVENT || kind == GT_TEXT_BLANK ||
	       kind == GT_TEXT_UNTIMED;
}

static int take_line(struct gt_text_trace *trace, const char *text, size_t len, uint64_t offset)
{
	struct gt_text_trace_report *report = &trace->report;
	struct gt_text_line line;

	if (report->lines++ == 0 && len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3; /* a byte order mark */
		len -= 3;
	}
	gt_text_line_parse(text, len, &line);
	if (trace->in_comment && may_be_text(line.kind)) {
		trace->in_comment = !gt_text_line_ends_comment(text, len);
		return 0;
	}
	trace->in_comment = line.goes_on;
	switch (line.kind) {
	case GT_TEXT_ENTRY:
	case GT_TEXT_LEAF:
	case GT_TEXT_EXIT:
		report->trace_lines++;
		return call_line(trace, &line, offset);
	case GT_TEXT_SWITCH:
		report->trace_lines++;
		report->switches++;
		return gt_text_stacks_switch(&trace->stacks, line.cpu, line.pid, line.next_pid);
	case GT_TEXT_LOST:
		report->trace_lines++;
		report->lost_marks++;
		report->lost_events += line.lost;
		return gt_text_stacks_lost(&trace->stacks, line.cpu);
	case GT_TEXT_STARTED:
		return gt_text_stacks_lost(&trace->stacks, line.cpu);
	case GT_TEXT_TRACER:
		return begin_trace(trace, &line);
	case GT_TEXT_EVENT:
		report->trace_lines++;
		report->events++;
		return 0;
	case GT_TEXT_UNTIMED:
		report->trace_lines++;
		report->untimed++;
		return 0;
	case GT_TEXT_BLANK:
	case GT_TEXT_HEADER:
		return 0;
	case GT_TEXT_OTHER:
		break;
	}
	gt_cases_keep(&report->other, report->lines, offset, 0, line.why, text, len);
	return 0;
}

static void too_long(struct gt_text_trace *trace, const char *text, size_t len, uint64_t offset)
{
	trace->report.lines++;
	gt_cases_keep(&trace->report.other, trace->report.lines, offset, 0,
		      "longer than 65,536 bytes", text, len);
}

int gt_text_trace_create(struct gt_text_trace **out,
			 int (*call)(void *user, const struct gt_text_call *call), void *user)
{
	struct gt_text_trace *trace = calloc(1, sizeof *trace);

	if (trace == NULL)
		return GT_ENOMEM;
	trace->carry = malloc(GT_TEXT_LINE_MAX);
	if (trace->carry == NULL || gt_text_stacks_init(&trace->stacks) != 0) {
		free(trace->carry);
		free(trace);
		return GT_ENOMEM;
	}
	trace->call = call;
	trace->user = user;
	trace->stacks.left_open = left_open;
	trace->stacks.user = trace;
	*out = trace;
	return 0;
}

int gt_text_trace_peek(struct gt_text_trace *trace, const char *block, size_t len)
{
	const char *end = block + len;
	const char *at = block;

	while ((at = memchr(at, '=', (size_t)(end - at))) != NULL) {
		const char *begin = at;
		const char *stop;
		struct gt_text_line line;

		if (end - at < 2 || at[1] != '>') {
			at++;
			continue;
		}
		while (begin > block && begin[-1] != '\n' && at - begin < GT_TEXT_PEEK_OVERLAP)
			begin--;
		stop = memchr(at, '\n', (size_t)(end - at));
		at += 2;
		if (stop == NULL || (begin > block && begin[-1] != '\n') ||
		    stop - begin > GT_TEXT_PEEK_OVERLAP)
			continue;
		gt_text_line_parse(begin, (size_t)(stop - begin), &line);
		if (line.kind == GT_TEXT_SWITCH && !trace->looked_ahead[line.cpu]) {
			trace->looked_ahead[line.cpu] = 1;
			if (gt_text_stacks_first(&trace->stacks, line.cpu, line.pid) != 0)
				return GT_ENOMEM;
		}
	}
	return 0;
}

int gt_text_trace_feed(struct gt_text_trace *trace, const char *block, size_t len)
{
	const char *end = block + len;
	const char *p = block;
	const uint64_t before = trace->report.bytes;
	int result = 0;

	trace->report.bytes += len;
	if (trace->carry_len > 0 || trace->skipping) {
		const char *stop = memchr(p, '\n', len);
		size_t part = (size_t)((stop != NULL ? stop : end) - p);
		uint64_t offset = before - trace->carry_len;

		if (!trace->skipping && trace->carry_len + part > GT_TEXT_LINE_MAX) {
			too_long(trace, trace->carry, trace->carry_len, offset);
			trace->skipping = true;
			trace->carry_len = 0;
		}
		if (!trace->skipping) {
			memcpy(trace->carry + trace->carry_len, p, part);
			trace->carry_len += part;
		}
		if (stop == NULL)
			return 0;
		p = stop + 1;
		if (!trace->skipping)
			result = take_line(trace, trace->carry, trace->carry_len, offset);
		trace->skipping = false;
		trace->carry_len = 0;
	}
	while (result >= 0 && p < end) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		uint64_t offset = before + (uint64_t)(p - block);

		if (stop == NULL) {
			if ((size_t)(end - p) > GT_TEXT_LINE_MAX) {
				too_long(trace, p, (size_t)(end - p), offset);
				trace->skipping = true;
			} else {
				memcpy(trace->carry, p, (size_t)(end - p));
				trace->carry_len = (size_t)(end - p);
			}
			break;
		}
		if ((size_t)(stop - p) > GT_TEXT_LINE_MAX)
			too_long(trace, p, (size_t)(stop - p), offset);
		else
			result = take_line(trace, p, (size_t)(stop - p), offset);
		p = stop + 1;
	}
	return result < 0 ? result : 0;
}

int gt_text_trace_finish(struct gt_text_trace *trace)
{
	struct gt_text_trace_report *report = &trace->report;
	int result = 0;

	if (trace->carry_len > 0)
		result = take_line(trace, trace->carry, trace->carry_len,
				   report->bytes - trace->carry_len);
	trace->carry_len = 0;
	trace->skipping = false;
	if (result >= 0)
		result = take_ends(trace, !trace->begins);
	gt_text_stacks_end(&trace->stacks);
	report->never_returned = trace->stacks.counts.never_returned;
	report->cut_by_loss = trace->stacks.counts.cut_by_loss;
	report->forgotten = trace->stacks.counts.forgotten;
	return result < 0 ? result : 0;
}

const struct gt_text_trace_report *gt_text_trace_report(const struct gt_text_trace *trace)
{
	return &trace->report;
}

void gt_text_trace_destroy(struct gt_text_trace *trace)
{
	if (trace == NULL)
		return;
	for (uint32_t i = 0; i < trace->end_count; i++)
		free(trace->ends[i]);
	gt_levels_fini(&trace->levels);
	gt_text_stacks_fini(&trace->stacks);
	free(trace->carry);
	free(trace);
}

static int read_failed(struct gt_message *message, uint64_t offset)
{
	return gt_fail(message, GT_EIO, "cannot read at byte %llu: %s", (unsigned long long)offset,
		       strerror(errno));
}

static int feed_fd(struct gt_text_trace *trace, int fd, char *block, bool peeked,
		   struct gt_message *message)
{
	for (;;) {
		ssize_t count = read(fd, block, BLOCK_BYTES);
		int result;

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return read_failed(message, trace->report.bytes);
		if (count == 0)
			return gt_text_trace_finish(trace);
		if (!peeked && gt_text_trace_peek(trace, block, (size_t)count) != 0)
			return GT_ENOMEM;
		peeked = true;
		result = gt_text_trace_feed(trace, block, (size_t)count);
		if (result < 0)
			return result;
	}
}

int gt_text_trace_read(struct gt_text_trace *trace, int fd, struct gt_message *message)
{
	char *block = malloc(BLOCK_BYTES);
	struct stat status;
	bool is_file;
	int result;

	if (block == NULL)
		return GT_ENOMEM;
	trace->ahead_fd = fd;
	trace->ahead_offset = lseek(fd, 0, SEEK_CUR);
	is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && trace->ahead_offset >= 0;
	if (is_file) {
		trace->ahead = malloc(BLOCK_BYTES + GT_TEXT_PEEK_OVERLAP);
		if (trace->ahead == NULL) {
			free(block);
			return GT_ENOMEM;
		}
	}
	result = feed_fd(trace, fd, block, is_file, message);
	free(block);
	free(trace->ahead);
	trace->ahead = NULL;
	return result;
}
