/* SPDX-License-Identifier: MIT */
/*
 * per_cpu/cpuN/trace_pipe of a program. The ring has a stream for each thread, in which records of
 * several CPUs are mixed. So what a CPU's reader has consumed is noted as a position in each
 * writer, for that CPU: every other reader skips that CPU's records up to there. A sub-buffer is
 * freed when the readers of all CPUs have passed it; if some CPU has no reader, sub-buffers stay
 * until the whole trace is read or cleared. All under reading.lock.
 */
#include "serve/live/live_private.h"

#include <stdlib.h>
#include <string.h>

struct gt_live_cpus {
	uint32_t count;
	struct gt_text_reader **readers;  /* NULL: that CPU has no reader */
	struct gt_merge_cpu_given *given; /* positions, since the ring was cleared */
};

static struct gt_live_cpus *make(uint32_t count)
{
	struct gt_live_cpus *cpus = calloc(1, sizeof(*cpus));

	if (cpus == NULL)
		return NULL;
	cpus->count = count;
	cpus->readers = calloc(count + 1, sizeof(*cpus->readers));
	cpus->given = calloc(count + 1, sizeof(*cpus->given));
	if (cpus->readers != NULL && cpus->given != NULL)
		return cpus;
	free(cpus->readers);
	free(cpus->given);
	free(cpus);
	return NULL;
}

void gt_live_cpus_empty(struct gt_live *live, uint64_t begun, char *text, size_t bytes)
{
	struct gt_live_cpus *cpus = live->reading.cpu_pipes;

	for (uint32_t i = 0; cpus != NULL && i < cpus->count; i++) {
		if (cpus->readers[i] != NULL)
			gt_text_reader_discard(cpus->readers[i], begun, text, bytes);
		free(cpus->given[i].given);
		cpus->given[i] = (struct gt_merge_cpu_given){ NULL, 0 };
	}
}

void gt_live_cpus_destroy(struct gt_live *live)
{
	struct gt_live_cpus *cpus = live->reading.cpu_pipes;

	if (cpus == NULL)
		return;
	for (uint32_t i = 0; i < cpus->count; i++)
		free(cpus->given[i].given);
	free(cpus->readers);
	free(cpus->given);
	free(cpus);
	live->reading.cpu_pipes = NULL;
}

int gt_live_cpus_skip(struct gt_live *live, struct gt_text_reader *reader)
{
	const struct gt_live_cpus *cpus = live->reading.cpu_pipes;

	return cpus == NULL ? 0 : gt_text_reader_skip_cpus(reader, cpus->given, cpus->count);
}

int gt_live_cpu_open(struct gt_live *live, const struct gt_text_look *look,
		     struct gt_text_reader **reader, struct gt_message *message)
{
	uint32_t cpu = look->scope.number;
	struct gt_text_look own = *look;
	struct gt_merge_given *given;
	uint32_t count;
	int error;

	if (live->reading.cpu_pipes == NULL)
		live->reading.cpu_pipes = make(live->view.cpu_count);
	if (live->reading.cpu_pipes == NULL)
		return no_memory(message);
	if (cpu >= live->reading.cpu_pipes->count)
		return gt_fail(message, GT_ENOENT, "there is no such CPU");
	if (live->reading.cpu_pipes->readers[cpu] != NULL)
		return gt_fail(message, GT_EBUSY, "trace_pipe is being read by somebody else");
	own.stays = true;
	if (gt_live_given(live, &given, &count) != 0)
		return no_memory(message);
	error = gt_text_reader_open(live->control.view, &own, true, reader, message);
	if (error != 0) {
		free(given);
		return error;
	}
	gt_text_reader_skip(*reader, given, count);
	if (gt_live_cpus_skip(live, *reader) != 0) {
		gt_text_reader_close(*reader);
		return no_memory(message);
	}
	live->reading.cpu_pipes->readers[cpu] = *reader;
	return 0;
}

static bool is_before(struct gt_merge_given a, struct gt_merge_given b)
{
	return a.sequence < b.sequence || (a.sequence == b.sequence && a.words < b.words);
}

/* Frees the sub-buffers that the readers of all CPUs have passed. */
static void free_passed(struct gt_live *live)
{
	const struct gt_live_cpus *cpus = live->reading.cpu_pipes;
	struct gt_target *view = live->control.view;
	uint32_t writers = cpus->given[0].count;

	if (view->ring->consume == NULL)
		return;
	for (uint32_t i = 1; i < cpus->count; i++)
		writers = cpus->given[i].count < writers ? cpus->given[i].count : writers;
	for (uint32_t index = 0; index < writers; index++) {
		struct gt_merge_given least = cpus->given[0].given[index];
		struct gt_writer writer;

		for (uint32_t i = 1; i < cpus->count; i++) {
			if (is_before(cpus->given[i].given[index], least))
				least = cpus->given[i].given[index];
		}
		if (view->ring->writer(view, index, &writer) != 0)
			continue;
		for (uint64_t at = writer.first; at < writer.next && at < least.sequence;
		     at = gt_target_next_sequence(view, index, at + 1))
			view->ring->consume(view, index, at);
	}
}

void gt_live_cpu_note(struct gt_live *live, uint32_t cpu)
{
	struct gt_live_cpus *cpus = live->reading.cpu_pipes;
	struct gt_merge_given *given;
	uint32_t count;

	/* without memory the next reader gives some records again */
	if (gt_text_reader_shown(cpus->readers[cpu], &given, &count) != 0)
		return;
	free(cpus->given[cpu].given);
	cpus->given[cpu] = (struct gt_merge_cpu_given){ given, count };
	free_passed(live);
}

/* The whole trace's reader has read ahead into records that this one has given, so it is made
 * anew. */
void gt_live_cpu_close(struct gt_live *live, uint32_t cpu)
{
	struct gt_text_reader *reader = live->reading.cpu_pipes->readers[cpu];
	struct gt_text_reader *pipe = NULL;

	gt_live_cpu_note(live, cpu);
	live->reading.cpu_pipes->readers[cpu] = NULL;
	gt_text_reader_close(reader);
	if (live->reading.pipe == NULL ||
	    gt_text_reader_open(live->control.view, &live->reading.pipe_look, true, &pipe, NULL) !=
		    0)
		return;
	if (gt_text_reader_skip_given(pipe, live->reading.pipe) != 0 ||
	    gt_live_cpus_skip(live, pipe) != 0) {
		gt_text_reader_close(pipe);
		return;
	}
	gt_text_reader_close(live->reading.pipe);
	live->reading.pipe = pipe;
}
