/* SPDX-License-Identifier: MIT */
/* Names of threads while they are recorded: see thread_names.h. From the recording's thread alone, or with its sink
 * locked. */
#define _GNU_SOURCE
#include "cli/thread_names.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/process/clock.h"

#define THREADS_MAX   4096	  /* more at a time keep the names that they began with */
#define PROCESSES_MAX 64	  /* that are remembered as traced */
#define LOOKS	      128u	  /* threads that are asked for at a time: half a millisecond */
#define BETWEEN_NS    50000000ull /* … from the last time */

struct named {
	struct gt_writer writer; /* as it was given to the sink last */
	char told[16]; /* by the thread itself: its name, as far as it has set it by prctl(2) */
	bool is_ours; /* its number is that of a traced process here, not of another PID namespace */
};

/* A thread has the place of its generation modulo THREADS_MAX, if that is free or its thread has ended. */
struct gt_thread_names {
	struct named threads[THREADS_MAX];
	uint32_t living[THREADS_MAX]; /* generation; 0: none, or it has ended */
	uint32_t traced[PROCESSES_MAX];
	uint32_t next;
	uint64_t looked_ns;
	bool looks; /* the sink is given a name that was asked for */
};

struct gt_thread_names *gt_thread_names_create(void)
{
	return calloc(1, sizeof(struct gt_thread_names));
}

void gt_thread_names_destroy(struct gt_thread_names *names)
{
	free(names);
}

static struct named *find(struct gt_thread_names *names, uint32_t generation)
{
	struct named *thread = &names->threads[generation % THREADS_MAX];

	return thread->writer.generation == generation ? thread : NULL;
}

/* Does the process have the recorder's memory? */
static bool has_agent(uint32_t pid)
{
	char path[64], line[512];
	bool found = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	maps = fopen(path, "re");
	while (maps != NULL && !found && fgets(line, sizeof(line), maps) != NULL)
		found = strstr(line, "/memfd:graftrace") != NULL;
	if (maps != NULL)
		fclose(maps);
	return found;
}

static bool is_ours(struct gt_thread_names *names, uint32_t pid)
{
	uint32_t *known = &names->traced[pid % PROCESSES_MAX];

	if (*known != pid && has_agent(pid))
		*known = pid;
	return *known == pid;
}

static void note(struct gt_thread_names *names, const struct gt_writer *writer)
{
	uint32_t place = writer->generation % THREADS_MAX;

	if (names->living[place] != 0)
		return;
	names->living[place] = writer->generation;
	names->threads[place] =
		(struct named){ .writer = *writer, .is_ours = is_ours(names, writer->pid) };
	memcpy(names->threads[place].told, writer->comm, sizeof(writer->comm));
}

static void set_ended(struct gt_thread_names *names, uint32_t generation)
{
	if (names->living[generation % THREADS_MAX] == generation)
		names->living[generation % THREADS_MAX] = 0;
}

void gt_thread_names_see(void *data, struct gt_writer *writer)
{
	struct gt_thread_names *names = data;
	struct named *thread;

	if (names == NULL || writer->pid == 0 || names->looks)
		return;
	thread = find(names, writer->generation);
	if (thread == NULL) {
		if (writer->end == 0)
			note(names, writer);
		return;
	}
	/* What it tells itself may be older than what was asked for: others name it, too. */
	if (memcmp(writer->comm, thread->told, sizeof(writer->comm)) == 0)
		memcpy(writer->comm, thread->writer.comm, sizeof(writer->comm));
	else
		memcpy(thread->told, writer->comm, sizeof(writer->comm));
	thread->writer = *writer;
	if (writer->end != 0)
		set_ended(names, writer->generation);
}

/* Asks the system for the thread's name. False: it is as it was, or the thread is not there any more. */
static bool has_other_name(struct named *thread)
{
	char path[80], name[17] = "";
	ssize_t bytes;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", thread->writer.pid,
		 thread->writer.tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	bytes = fd >= 0 ? read(fd, name, sizeof(name) - 1) : 0;
	if (fd >= 0)
		close(fd);
	/* The system ends it with a newline; there may be others in it. */
	name[bytes > 0 ? bytes - 1 : 0] = '\0';
	if (name[0] == '\0' || strcmp(name, thread->writer.comm) == 0)
		return false;
	memset(thread->writer.comm, 0, sizeof(thread->writer.comm));
	memcpy(thread->writer.comm, name, strnlen(name, sizeof(thread->writer.comm) - 1));
	return true;
}

/* Notes the threads of a ring, and which of them have ended. */
static void note_ring(struct gt_thread_names *names, struct gt_target *target)
{
	uint32_t count = target->ring->writer_count(target);
	struct gt_writer writer;

	for (uint32_t i = 0; i < count && count <= THREADS_MAX; i++) {
		if (target->ring->writer(target, i, &writer) != 0 || writer.pid == 0)
			continue;
		if (writer.end != 0)
			set_ended(names, writer.generation);
		else if (find(names, writer.generation) == NULL)
			note(names, &writer);
	}
}

void gt_thread_names_look(struct gt_thread_names *names, const struct gt_sink *sink,
			  struct gt_target *target)
{
	uint64_t now = gt_monotonic_ns();

	if (names == NULL || now - names->looked_ns < BETWEEN_NS)
		return;
	names->looked_ns = now;
	if (target != NULL)
		note_ring(names, target);
	for (uint32_t i = 0, asked = 0; i < THREADS_MAX && asked < LOOKS; i++) {
		uint32_t place = names->next++ % THREADS_MAX;
		struct named *thread = &names->threads[place];

		if (names->living[place] == 0 || !thread->is_ours)
			continue;
		asked++;
		names->looks = true;
		if (has_other_name(thread) && target == NULL)
			sink->writer(sink->data, &thread->writer);
		names->looks = false;
	}
}
