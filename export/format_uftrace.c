/* SPDX-License-Identifier: MIT */
/*
 * A folder as uftrace keeps its data, for uftrace report, graph, replay, dump: `info`, `task.txt`, a
 * map and a symbol table for one made-up module that holds all functions, TID.dat with 16 bytes an
 * entry or exit, and perf-cpu0.dat: there alone threads can have names of their own, in records of
 * perf_event_open(2). uftrace knows threads, not their other stacks: what ran on a coroutine's stack is
 * put below a thread number of its own, from 2^22 on (Linux's highest is 2^22). Depths above 1,023 do
 * not fit into a record.
 *
 * Layout: uftrace's utils/data-file.c, utils/perf.h, libmcount/record.c and doc/uftrace-data.md, of
 * version 0.13.
 */
#define _GNU_SOURCE
#include "export/export.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/trace/message.h"
#include "export/spool.h"

#define MODULE_START   UINT64_C(0x400000)
#define FUNCTION_BYTES UINT64_C(16)
#define SESSION	       "0123456789abcdef"
#define OTHER_STACKS   (1u << 22)
#define RECORD_MAGIC   5u
#define COMM_BYTES     16
enum { RECORD_ENTRY = 0, RECORD_EXIT = 1, RECORD_LOST = 2 };
enum {
	FEATURE_TASK_SESSION = 2,
	FEATURE_SYM_REL_ADDR = 32,
	FEATURE_MAX_STACK = 64,
	FEATURE_PERF_EVENT = 256
};
enum { INFO_EXE_NAME = 1, INFO_CMDLINE = 8, INFO_TASKINFO = 128 };

struct info_header {
	char magic[8];
	uint32_t version;
	uint16_t header_size;
	uint8_t endian, elf_class;
	uint64_t features, info;
	uint16_t max_stack, unused1;
	uint32_t unused2;
};

/* PERF_RECORD_COMM with PERF_SAMPLE_TID and PERF_SAMPLE_TIME. */
struct comm_event {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[COMM_BYTES];
	uint32_t sample_pid, sample_tid;
	uint64_t time; /* ns */
};

struct task {
	uint32_t pid, tid;
	uint64_t start; /* ns */
	uint64_t last;
	char name[17];
	bool any;
};

struct uftrace {
	struct gt_spool spool;
	struct task *tasks; /* by lane */
	uint32_t room;
	uint64_t base; /* CLOCK_MONOTONIC of time 0, in ns */
};

static int fail(struct gt_export *export, const char *name, int error)
{
	return gt_fail(export->message, GT_EIO, "%s: %s", name, strerror(error));
}

static int begin(struct gt_export *export)
{
	struct uftrace *state = export->state;

	gt_spool_init(&state->spool);
	state->base = gt_clock_ns(&export->target->clock, export->about.start);
	return 0;
}

static int lane(struct gt_export *export, struct gt_lane *lane)
{
	struct uftrace *state = export->state;

	if (lane->number >= state->room) {
		uint32_t room = (lane->number + 1) * 2;
		struct task *grown = realloc(state->tasks, room * sizeof(*grown));

		if (grown == NULL)
			return GT_ENOMEM;
		memset(grown + state->room, 0, (room - state->room) * sizeof(*grown));
		state->tasks = grown;
		state->room = room;
	}
	struct task *task = &state->tasks[lane->number];
	task->pid = lane->pid ? lane->pid : 1;
	task->tid = lane->stack == 0 && lane->tid ? lane->tid : OTHER_STACKS + lane->number;
	return 0;
}

static int record(struct gt_export *export, struct gt_lane *lane, unsigned type, uint64_t ticks,
		  uint32_t depth, uint64_t address)
{
	struct uftrace *state = export->state;
	struct task *task = &state->tasks[lane->number];
	uint64_t words[2] = { state->base + gt_export_ns(export, ticks), 0 };
	int error;

	if (task->any && words[0] < task->last)
		words[0] = task->last;
	if (!task->any)
		task->start = words[0];
	task->any = true;
	task->last = words[0];
	memcpy(task->name, lane->name, sizeof(lane->name));
	words[1] = type | RECORD_MAGIC << 3 | (uint64_t)(depth & 1023) << 6 | address << 16;
	error = gt_spool_add(&state->spool, lane->number, words, sizeof(words));
	return error == GT_EIO ? fail(export, "a temporary file", state->spool.error) : error;
}

static uint64_t address_of(struct gt_export *export, uint32_t function)
{
	uint32_t number = function <= export->function_end ? function : 0;

	export->function_seen[number] = 1;
	return MODULE_START + number * FUNCTION_BYTES;
}

static int enter(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call)
{
	return record(export, lane, RECORD_ENTRY, call->start, lane->open - 1,
		      address_of(export, call->function));
}

static int leave(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call,
		 uint64_t end)
{
	return record(export, lane, RECORD_EXIT, end, lane->open,
		      address_of(export, call->function));
}

static int moment(struct gt_export *export, struct gt_lane *lane, const struct gt_moment *moment)
{
	int error;

	switch (moment->kind) {
	case GT_MOMENT_LOST:
		return record(export, lane, RECORD_LOST, moment->clock, 0, moment->value);
	case GT_MOMENT_CALL:
		error = record(export, lane, RECORD_ENTRY, moment->clock, lane->open,
			       address_of(export, moment->function));
		return error == 0 ? record(export, lane, RECORD_EXIT, moment->clock, lane->open,
					   address_of(export, moment->function))
				  : error;
	default:
		return 0;
	}
}

static int write_file(struct gt_export *export, const char *name,
		      int (*fill)(struct gt_export *export, struct gt_out *out, uint32_t number),
		      uint32_t number)
{
	struct gt_out out;
	int fd = openat(export->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	int error, problem;

	if (fd < 0)
		return fail(export, name, errno);
	if (gt_out_init(&out, fd) != 0) {
		close(fd);
		return GT_ENOMEM;
	}
	error = fill(export, &out, number);
	if (gt_out_flush(&out) != 0 && error == 0)
		error = GT_EIO;
	problem = out.error;
	gt_out_fini(&out);
	if (close(fd) != 0 && problem == 0)
		problem = errno;
	if (problem != 0)
		return fail(export, name, problem);
	return error == GT_EIO ? fail(export, "a temporary file", EIO) : error;
}

/* A line of `info`: uftrace stops at one that it does not know. */
static void put_line(struct gt_out *out, const char *name, const char *text)
{
	gt_out_printf(out, "%s:", name);
	for (size_t i = 0; text[i] != '\0' && i < 2000; i++)
		gt_out_char(out, gt_clean_char(text[i]));
	gt_out_char(out, '\n');
}

static int fill_info(struct gt_export *export, struct gt_out *out, uint32_t number)
{
	struct uftrace *state = export->state;
	const struct info_header header = {
		.magic = "Ftrace!",
		.version = 4,
		.header_size = sizeof(header),
		.endian = 1,
		.elf_class = 2,
		.features = FEATURE_TASK_SESSION | FEATURE_SYM_REL_ADDR | FEATURE_MAX_STACK |
			    FEATURE_PERF_EVENT,
		.info = INFO_EXE_NAME | INFO_CMDLINE | INFO_TASKINFO,
		.max_stack = 1024,
	};
	uint32_t count = 0;

	(void)number;
	for (uint32_t i = 0; i < state->room; i++)
		count += state->tasks[i].any;
	gt_out_bytes(out, &header, sizeof(header));
	put_line(out, "exename", export->about.program);
	put_line(out, "cmdline", export->about.command_line);
	gt_out_printf(out, "taskinfo:lines=2\ntaskinfo:nr_tid=%" PRIu32 "\ntaskinfo:tids=", count);
	count = 0;
	for (uint32_t i = 0; i < state->room; i++)
		if (state->tasks[i].any)
			gt_out_printf(out, "%s%" PRIu32, count++ ? "," : "", state->tasks[i].tid);
	gt_out_char(out, '\n');
	return 0;
}

static void stamp(struct gt_out *out, const char *kind, uint64_t ns)
{
	gt_out_printf(out, "%s timestamp=%" PRIu64 ".%09" PRIu64, kind, ns / 1000000000,
		      ns % 1000000000);
}

static int fill_tasks(struct gt_export *export, struct gt_out *out, uint32_t number)
{
	struct uftrace *state = export->state;

	(void)number;
	for (uint32_t i = 0; i < state->room; i++) {
		const struct task *task = &state->tasks[i];
		bool known = false;

		if (!task->any)
			continue;
		for (uint32_t before = 0; before < i && !known; before++)
			known = state->tasks[before].any && state->tasks[before].pid == task->pid;
		if (!known) {
			stamp(out, "SESS", state->base);
			gt_out_printf(out, " pid=%" PRIu32 " sid=" SESSION " exename=\"%.1000s\"\n",
				      task->pid, export->about.program);
		}
		stamp(out, "TASK", task->start);
		gt_out_printf(out, " tid=%" PRIu32 " pid=%" PRIu32 "\n", task->tid, task->pid);
	}
	return 0;
}

static int by_start(const void *one, const void *other)
{
	const struct task *const *a = one, *const *b = other;

	return ((*a)->start > (*b)->start) - ((*a)->start < (*b)->start);
}

/* Whether uftrace would call it so by itself, as the program. */
static bool is_program(const struct gt_export *export, const char *name)
{
	const char *program = strrchr(export->about.program, '/');

	program = program != NULL ? program + 1 : export->about.program;
	return strncmp(name, program, COMM_BYTES - 1) == 0;
}

/* Of an event before the first call uftrace prints no line. */
static void put_comm(struct gt_out *out, const struct task *task)
{
	struct comm_event event = {
		.header = { .type = PERF_RECORD_COMM, .size = sizeof(event) },
		.pid = task->pid,
		.tid = task->tid,
		.sample_pid = task->pid,
		.sample_tid = task->tid,
		.time = task->start - 1,
	};

	for (unsigned i = 0; i + 1 < COMM_BYTES && task->name[i] != '\0'; i++)
		event.comm[i] = gt_clean_char(task->name[i]);
	gt_out_bytes(out, &event, sizeof(event));
}

static int fill_names(struct gt_export *export, struct gt_out *out, uint32_t number)
{
	struct uftrace *state = export->state;
	const struct task **named = calloc(state->room + 1, sizeof(*named));
	uint32_t count = 0;

	(void)number;
	if (named == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < state->room; i++) {
		const struct task *task = &state->tasks[i];

		if (task->any && task->name[0] != '\0' && !is_program(export, task->name))
			named[count++] = task;
	}
	qsort(named, count, sizeof(*named), by_start);
	for (uint32_t i = 0; i < count; i++)
		put_comm(out, named[i]);
	free(named);
	return 0;
}

static int fill_map(struct gt_export *export, struct gt_out *out, uint32_t number)
{
	uint64_t end = MODULE_START + (export->function_end + UINT64_C(2)) * FUNCTION_BYTES;

	(void)number;
	gt_out_printf(out, "%012" PRIx64 "-%012" PRIx64 " r-xp 00000000 00:00 0 %.1000s\n",
		      MODULE_START, (end + 4095) & ~UINT64_C(4095), export->about.program);
	gt_out_text(out, "7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]\n");
	return 0;
}

static int fill_symbols(struct gt_export *export, struct gt_out *out, uint32_t number)
{
	uint32_t count = 0;
	char text[24];

	(void)number;
	for (uint32_t i = 0; i <= export->function_end; i++)
		count += export->function_seen[i];
	gt_out_printf(out, "# symbols: %" PRIu32 "\n# path name: %.1000s\n", count + 1,
		      export->about.program);
	for (uint32_t i = 0; i <= export->function_end; i++) {
		if (!export->function_seen[i])
			continue;
		gt_out_printf(out, "%016" PRIx64 " T ", i * FUNCTION_BYTES);
		gt_out_text(out, gt_export_name(export, i, text, NULL));
		gt_out_char(out, '\n');
	}
	gt_out_printf(out, "%016" PRIx64 " T __sym_end\n",
		      (export->function_end + UINT64_C(1)) * FUNCTION_BYTES);
	return 0;
}

static int fill_data(struct gt_export *export, struct gt_out *out, uint32_t number)
{
	struct uftrace *state = export->state;

	return gt_spool_copy(&state->spool, number, out);
}

static int end(struct gt_export *export, const struct gt_stack_report *report)
{
	struct uftrace *state = export->state;
	const char *program = strrchr(export->about.program, '/');
	char name[300];
	int error;

	(void)report;
	program = program != NULL ? program + 1 : export->about.program;
	error = write_file(export, "info", fill_info, 0);
	if (error == 0)
		error = write_file(export, "perf-cpu0.dat", fill_names, 0);
	if (error == 0)
		error = write_file(export, "task.txt", fill_tasks, 0);
	if (error == 0)
		error = write_file(export, "sid-" SESSION ".map", fill_map, 0);
	snprintf(name, sizeof(name), "%.250s.sym", program);
	if (error == 0)
		error = write_file(export, name, fill_symbols, 0);
	for (uint32_t i = 0; error == 0 && i < state->room; i++) {
		snprintf(name, sizeof(name), "%" PRIu32 ".dat", state->tasks[i].tid);
		if (state->tasks[i].any)
			error = write_file(export, name, fill_data, i);
	}
	return error;
}

static void fini(struct gt_export *export)
{
	struct uftrace *state = export->state;

	gt_spool_fini(&state->spool);
	free(state->tasks);
}

const struct gt_export_format gt_format_uftrace = {
	.name = "uftrace",
	.help = "a folder of uftrace's: uftrace report, graph, replay, tui",
	.file = "uftrace.data",
	.is_directory = true,
	.writes_at_end = true,
	.state_bytes = sizeof(struct uftrace),
	.begin = begin,
	.lane = lane,
	.enter = enter,
	.leave = leave,
	.moment = moment,
	.end = end,
	.fini = fini,
};
