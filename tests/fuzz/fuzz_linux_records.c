/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as records of Linux, in any order on any CPU, with losses: no crash, and what goes to the
 * sink is whole. A record is five bytes (length, two of time, CPU, loss) and its bytes; behind it lie
 * zeros. Strings are not among the formats: the library prints what a record claims to have, which is
 * why a file is read in a process of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event-parse.h>

#include "linux/records.h"

#define BEHIND (128u << 10)

#define COMMON                                                                         \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static const struct {
	const char *system, *format;
} formats[] = {
	{ "ftrace", "name: function\nID: 1\nformat:\n" COMMON
		    "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
		    "\tfield:unsigned long parent_ip;\toffset:16;\tsize:8;\tsigned:0;\n\n"
		    "print fmt: \" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip\n" },
	{ "ftrace", "name: funcgraph_exit\nID: 10\nformat:\n" COMMON
		    "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
		    "\tfield:int depth;\toffset:16;\tsize:4;\tsigned:1;\n"
		    "\tfield:unsigned int overrun;\toffset:20;\tsize:4;\tsigned:0;\n"
		    "\tfield:unsigned long long calltime;\toffset:24;\tsize:8;\tsigned:0;\n"
		    "\tfield:unsigned long long rettime;\toffset:32;\tsize:8;\tsigned:0;\n\n"
		    "print fmt: \"<-- %ps (%d)\", (void *)REC->func, REC->depth\n" },
	{ "ftrace", "name: funcgraph_entry\nID: 11\nformat:\n" COMMON
		    "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
		    "\tfield:int depth;\toffset:16;\tsize:4;\tsigned:1;\n\n"
		    "print fmt: \"--> %ps (%d)\", (void *)REC->func, REC->depth\n" },
	{ "sched", "name: sched_switch\nID: 320\nformat:\n" COMMON
		   "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		   "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
		   "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
		   "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
		   "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
		   "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
		   "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n"
		   "print fmt: \"prev_pid=%d ==> next_pid=%d\", REC->prev_pid, REC->next_pid\n" },
	{ "sched", "name: sched_waking\nID: 324\nformat:\n" COMMON
		   "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		   "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
		   "\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\n"
		   "print fmt: \"pid=%d prio=%d\", REC->pid, REC->prio\n" },
};

/* Every byte that is given was read. */
static volatile uint64_t seen;

static int take_functions(void *data, uint32_t pid, uint32_t first,
			  const struct gt_function *functions, uint32_t count)
{
	(void)data;
	(void)pid;
	for (uint32_t i = 0; i < count; i++)
		if (!first || !functions[i].name ||
		    strcmp(functions[i].object, functions[0].object) != 0)
			abort();
	return GT_OK;
}

static int take_writer(void *data, const struct gt_writer *writer)
{
	(void)data;
	if (!writer->generation || (writer->end && writer->end <= writer->start))
		abort();
	return GT_OK;
}

static int take_sub_buffer(void *data, const struct graftrace_sub_buffer *sub, uint32_t words)
{
	const uint64_t *at = (const uint64_t *)(const void *)(sub + 1);
	uint64_t sum = 0;

	(void)data;
	if (sub->magic != GRAFTRACE_SUB_BUFFER_MAGIC || sub->used != words || !words ||
	    sub->bytes != sizeof(*sub) + words * 8u || sub->open_calls > GRAFTRACE_OPEN_CALLS)
		abort();
	for (uint32_t i = 0; i < words; i++)
		sum += at[i];
	seen = sum;
	return GT_OK;
}

static int take_switches(void *data, uint64_t start, uint64_t lost,
			 const struct gt_switch *switches, uint32_t count)
{
	uint64_t sum = start + lost;

	(void)data;
	for (uint32_t i = 0; i < count; i++)
		sum += switches[i].clock;
	seen = sum;
	return GT_OK;
}

static int take_format(void *data, const struct gt_event_format *event)
{
	(void)data;
	if (!event->number || !event->field_count || strcmp(event->system, "graftrace") != 0)
		abort();
	return GT_OK;
}

static struct tep_handle *make_tep(void)
{
	struct tep_handle *tep = tep_alloc();

	tep_set_loglevel(TEP_LOG_NONE);
	for (size_t i = 0; tep && i < sizeof(formats) / sizeof(formats[0]); i++)
		if (tep_parse_event(tep, formats[i].format, strlen(formats[i].format),
				    formats[i].system) != 0)
			abort();
	return tep;
}

static void take_all(struct gt_linux_records *records, const uint8_t *data, size_t size)
{
	uint8_t *bytes = calloc(1, BEHIND);
	uint64_t clock = 1000000;

	while (bytes && size >= 5) {
		size_t count = data[0] < size - 5 ? data[0] : size - 5;
		struct tep_record record = {
			.ts = clock += data[1] | (uint64_t)data[2] << 8,
			.cpu = data[3] & 7,
			.missed_events = data[4] == 255	 ? -1
					 : data[4] > 250 ? data[4]
							 : 0,
			.size = (int)count,
			.data = bytes,
		};
		memset(bytes, 0, 512);
		memcpy(bytes, data + 5, count);
		if ((data[3] & 8 ? gt_linux_records_pass : gt_linux_records_take)(records,
										  &record) != GT_OK)
			abort();
		data += 5 + count;
		size -= 5 + count;
	}
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tep_handle *tep;
	struct gt_sink sink = {
		.functions = take_functions,
		.writer = take_writer,
		.sub_buffer = take_sub_buffer,
		.switches = take_switches,
		.event = take_format,
	};
	struct gt_linux_records *records;
	struct gt_linux_totals totals;

	if (!tep)
		tep = make_tep();
	if (!size)
		return 0;
	struct gt_linux_options options = {
		.tep = tep,
		.sink = &sink,
		.tracer = data[0] & 1 ? GRAFTRACE_TRACER_FUNCTION : GRAFTRACE_TRACER_FUNCTION_GRAPH,
		.slack = 1000000,
		.clock = { .mult = 1 },
		.has_chosen = data[0] & 2,
		.no_switches = data[0] & 4,
	};
	if (gt_linux_records_create(&options, &records) != GT_OK)
		abort();
	take_all(records, data + 1, size - 1);
	if (gt_linux_records_finish(records, &totals) != GT_OK)
		abort();
	gt_linux_records_destroy(records);
	return 0;
}
