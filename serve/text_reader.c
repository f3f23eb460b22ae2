/* SPDX-License-Identifier: MIT */
/* See text_reader.h. */
#include "serve/text_reader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "core/trace/message.h"
#include "core/text/text.h"
#include "port/host/memory.h"

struct gt_text_reader {
	struct gt_text text;
	struct gt_filter filter;
	struct gt_merge_given *given;
	struct gt_merge_cpu_given *cpus;
	uint32_t cpu_count;
	struct utsname system;
};

static void set_filter(struct gt_filter *filter, const struct gt_text_look *look)
{
	uint32_t cpu = look->scope.number;

	memset(filter, 0, sizeof(*filter));
	filter->masks = look->masks;
	if (look->scope.kind == GT_SCOPE_THREAD)
		filter->tid = look->scope.number;
	if (look->scope.kind == GT_SCOPE_CPU && cpu < GT_FILTER_CPU_WORDS * 64)
		filter->cpus[cpu / 64] = UINT64_C(1) << cpu % 64;
}

/* Returns 0 if the clock cannot be read. */
static uint64_t read_clock(clockid_t id)
{
	struct timespec now;

	return clock_gettime(id, &now) == 0
		       ? (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec
		       : 0;
}

/* Sets the target's clock, moved to another clock's time: all clocks run at one rate, except
 * mono_raw, which drifts by the system's corrections. */
static void set_clock(struct gt_text_options *text, const struct gt_target *target,
		      enum gt_control_clock which)
{
	clockid_t id = which == GT_CLOCK_MONO_RAW ? CLOCK_MONOTONIC_RAW
		       : which == GT_CLOCK_TAI	  ? CLOCK_TAI
						  : CLOCK_BOOTTIME;

	text->other_clock = true;
	text->clock = target->clock;
	switch (which) {
	case GT_CLOCK_COUNTER:
		text->counts = true;
		text->units = 1;
		break;
	case GT_CLOCK_TSC:
		text->clock = (struct gt_clock){ .mult = 1 };
		text->units = 1;
		break;
	case GT_CLOCK_MONO_RAW:
	case GT_CLOCK_BOOT:
	case GT_CLOCK_TAI:
	case GT_CLOCK_UPTIME:
		text->clock.ns_base += read_clock(id) - read_clock(CLOCK_MONOTONIC);
		text->units = which == GT_CLOCK_UPTIME ? 10000000 : 0;
		break;
	default:
		text->other_clock = false;
	}
}

int gt_text_reader_open(struct gt_target *target, const struct gt_text_look *look, bool consume,
			struct gt_text_reader **reader_out, struct gt_message *message)
{
	struct gt_text_options text = {
		.options = look->options,
		.mode = !consume      ? GT_MERGE_SNAPSHOT
			: look->stays ? GT_MERGE_FOLLOW
				      : GT_MERGE_CONSUME,
		.header = !consume,
		.time_start = look->time_start,
		.names_kept = look->names_kept,
		.switches = look->switches,
		.switch_window_count = look->switch_window_count,
	};
	struct gt_text_reader *reader = malloc(sizeof(*reader));
	int error = GT_ENOMEM;

	memcpy(text.switch_windows, look->switch_windows, sizeof(text.switch_windows));
	set_clock(&text, target, look->clock);
	if (reader != NULL) {
		set_filter(&reader->filter, look);
		text.filter = &reader->filter;
		text.release = uname(&reader->system) == 0 ? reader->system.release : NULL;
		error = gt_text_init(&reader->text, target, &gt_host_memory, &text);
	}
	if (error != 0) {
		free(reader);
		return gt_fail(message, error, "no memory for the trace's text");
	}
	reader->given = NULL;
	reader->cpus = NULL;
	reader->cpu_count = 0;
	*reader_out = reader;
	return 0;
}

int gt_text_reader_given(const struct gt_text_reader *reader, struct gt_merge_given **given,
			 uint32_t *count)
{
	*count = reader->text.merge.source_count;
	*given = calloc(*count + 1, sizeof(**given));
	if (*given == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < *count; i++)
		(*given)[i] = gt_merge_given(&reader->text.merge, i);
	return 0;
}

int gt_text_reader_shown(const struct gt_text_reader *reader, struct gt_merge_given **given,
			 uint32_t *count)
{
	*count = reader->text.merge.source_count;
	*given = calloc(*count + 1, sizeof(**given));
	if (*given == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < *count; i++)
		(*given)[i] = gt_merge_shown(&reader->text.merge, i);
	return 0;
}

void gt_text_reader_skip(struct gt_text_reader *reader, struct gt_merge_given *given,
			 uint32_t count)
{
	free(reader->given);
	reader->given = given;
	gt_merge_skip_given(&reader->text.merge, given, count);
}

int gt_text_reader_skip_given(struct gt_text_reader *reader, const struct gt_text_reader *pipe)
{
	struct gt_merge_given *given;
	uint32_t count;

	if (gt_text_reader_given(pipe, &given, &count) != 0)
		return GT_ENOMEM;
	gt_text_reader_skip(reader, given, count);
	gt_text_reader_skip_switches(reader, gt_text_reader_switches_given(pipe));
	return 0;
}

void gt_text_reader_skip_switches(struct gt_text_reader *reader, uint64_t clock)
{
	gt_merge_skip_switches(&reader->text.merge, clock);
}

static void free_cpus(struct gt_text_reader *reader)
{
	for (uint32_t i = 0; i < reader->cpu_count; i++)
		free(reader->cpus[i].given);
	free(reader->cpus);
	reader->cpus = NULL;
	reader->cpu_count = 0;
}

int gt_text_reader_skip_cpus(struct gt_text_reader *reader, const struct gt_merge_cpu_given *cpus,
			     uint32_t count)
{
	free_cpus(reader);
	reader->cpus = calloc(count + 1, sizeof(*reader->cpus));
	if (reader->cpus == NULL)
		return GT_ENOMEM;
	reader->cpu_count = count;
	for (uint32_t i = 0; i < count; i++) {
		size_t bytes = cpus[i].count * sizeof(*cpus[i].given);

		if (bytes == 0)
			continue;
		reader->cpus[i].given = malloc(bytes);
		if (reader->cpus[i].given == NULL)
			return GT_ENOMEM;
		memcpy(reader->cpus[i].given, cpus[i].given, bytes);
		reader->cpus[i].count = cpus[i].count;
	}
	gt_merge_skip_cpus(&reader->text.merge, reader->cpus, count);
	return 0;
}

int64_t gt_text_reader_read(struct gt_text_reader *reader, char *buffer, size_t bytes,
			    struct gt_message *message)
{
	int64_t got = gt_text_read(&reader->text, buffer, bytes);

	if (got < 0 && got != GT_EAGAIN)
		gt_message_set(message, "the trace cannot be read");
	return got;
}

void gt_text_reader_update(struct gt_text_reader *reader, const struct gt_text_look *look)
{
	gt_text_set_switches(&reader->text, look->switches, look->switch_windows,
			     look->switch_window_count);
	reader->filter.masks = look->masks;
	gt_merge_set_filter(&reader->text.merge, &reader->filter);
}

void gt_text_reader_discard(struct gt_text_reader *reader, uint64_t until, char *buffer,
			    size_t bytes)
{
	const struct gt_merge *merge = &reader->text.merge;

	for (int i = 0; i < GT_TEXT_DISCARDS_MOST; i++)
		if (gt_text_read(&reader->text, buffer, bytes) <= 0 ||
		    (merge->current != NULL && merge->current->record.clock > until))
			break;
}

uint64_t gt_text_reader_switches_given(const struct gt_text_reader *reader)
{
	return reader->text.merge.switches_given;
}

void gt_text_reader_finish(struct gt_text_reader *reader)
{
	gt_text_finish(&reader->text);
}

void gt_text_reader_close(struct gt_text_reader *reader)
{
	gt_text_fini(&reader->text);
	free_cpus(reader);
	free(reader->given);
	free(reader);
}
