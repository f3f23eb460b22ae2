/* SPDX-License-Identifier: MIT */
/*
 * Names of functions and tasks in a text: two hash tables.
 */
#define _GNU_SOURCE
#include "linux/text_names.h"
#include "core/trace/hash.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PENDING_MAX   512u
#define FUNCTIONS_MAX (4u << 20)
#define NAME_MAX_LEN  1024u
#define TASKS	      4096u /* a power of two; further tasks have no names */
#define ADDRESS_STEP  16u

struct name {
	char *text; /* NULL: a free slot */
	uint32_t bytes, number;
};

struct task {
	uint32_t tid; /* 0: a free slot */
	char comm[16];
};

struct gt_text_names {
	const struct gt_sink *sink;
	struct name *functions;
	uint32_t room, used;
	struct gt_function pending[PENDING_MAX];
	uint32_t pending_count;
	struct task tasks[TASKS];
	uint32_t task_count;
};

int gt_text_names_create(const struct gt_sink *sink, struct gt_text_names **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return GT_ENOMEM;
	(*out)->sink = sink;
	return 0;
}

/* ---- functions ---- */

static struct name *place_of(const struct gt_text_names *names, const char *text, size_t bytes)
{
	uint32_t hash = gt_hash_bytes(GT_HASH_BEGIN, text, bytes), mask = names->room - 1;

	for (uint32_t at = hash & mask;; at = (at + 1) & mask) {
		struct name *name = &names->functions[at];
		if (name->text == NULL ||
		    (name->bytes == bytes && memcmp(name->text, text, bytes) == 0))
			return name;
	}
}

static int grow(struct gt_text_names *names)
{
	struct name *old = names->functions;
	uint32_t old_room = names->room, room = old_room ? old_room * 2 : 1024;
	struct name *bigger = calloc(room, sizeof(*bigger));

	if (bigger == NULL)
		return GT_ENOMEM;
	names->functions = bigger;
	names->room = room;
	for (uint32_t i = 0; i < old_room; i++)
		if (old[i].text != NULL)
			*place_of(names, old[i].text, old[i].bytes) = old[i];
	free(old);
	return 0;
}

uint64_t gt_text_names_address(uint32_t number)
{
	return (uint64_t)number * ADDRESS_STEP;
}

static int add_pending(struct gt_text_names *names, const char *text, uint32_t number)
{
	char *name = strdup(text), *open = name != NULL ? strstr(name, " [") : NULL, *object;
	bool has_object = open != NULL && name[strlen(name) - 1] == ']';

	object = name != NULL ? strdup(has_object ? open + 1 : "") : NULL;
	if (has_object)
		*open = '\0';
	/* the sink gets the functions of one object at a time */
	if (object == NULL ||
	    ((names->pending_count == PENDING_MAX ||
	      (names->pending_count && strcmp(names->pending[0].object, object) != 0)) &&
	     gt_text_names_flush(names) != 0)) {
		free(name);
		free(object);
		return GT_ENOMEM;
	}
	names->pending[names->pending_count++] = (struct gt_function){
		.name = name,
		.object = object,
		.address = gt_text_names_address(number),
		.size = ADDRESS_STEP,
	};
	return 0;
}

uint32_t gt_text_names_number(struct gt_text_names *names, const char *text, size_t bytes)
{
	if (bytes > NAME_MAX_LEN)
		bytes = NAME_MAX_LEN;
	if (names->used * 2 >= names->room && grow(names) != 0)
		return 0;
	struct name *name = place_of(names, text, bytes);
	if (name->text != NULL)
		return name->number;
	char *copy = names->used < FUNCTIONS_MAX ? strndup(text, bytes) : NULL;
	if (copy == NULL || add_pending(names, copy, names->used + 1) != 0) {
		free(copy);
		return 0;
	}
	*name = (struct name){ copy, (uint32_t)bytes, ++names->used };
	return name->number;
}

int gt_text_names_flush(struct gt_text_names *names)
{
	uint32_t count = names->pending_count;
	int error = 0;

	if (count)
		error = names->sink->functions(names->sink->data, 0,
					       (uint32_t)(names->pending[0].address / ADDRESS_STEP),
					       names->pending, count);
	for (uint32_t i = 0; i < count; i++) {
		free((void *)names->pending[i].name);
		free((void *)names->pending[i].object);
	}
	names->pending_count = 0;
	return error;
}

/* ---- tasks ---- */

static struct task *place_of_task(const struct gt_text_names *names, uint32_t tid)
{
	uint32_t at = tid * 0x9e3779b9u & (TASKS - 1);

	while (names->tasks[at].tid && names->tasks[at].tid != tid)
		at = (at + 1) & (TASKS - 1);
	return (struct task *)&names->tasks[at];
}

/* Keeps the name before "-PID", which begins after two blanks, a bracket or a bar. *from: where
 * the search continues. */
static void keep(struct gt_text_names *names, const char *begin, const char *end, const char **from,
		 int64_t pid)
{
	char number[24];
	int bytes = snprintf(number, sizeof(number), "-%lld", (long long)pid);
	const char *dash = memmem(*from, (size_t)(end - *from), number, (size_t)bytes), *first;

	if (dash == NULL || pid <= 0 || pid >= INT32_MAX)
		return;
	*from = dash + bytes;
	for (first = dash; first > begin && first[-1] != ')' && first[-1] != '|' &&
			   first[-1] != '>' &&
			   (first[-1] != ' ' || first - begin < 2 || first[-2] != ' ');)
		first--;
	while (first < dash && *first == ' ')
		first++;
	struct task *task = place_of_task(names, (uint32_t)pid);
	if (first == dash || (!task->tid && names->task_count * 2 >= TASKS))
		return;
	names->task_count += !task->tid;
	/* a line of a switch has the name cut to seven characters */
	if (task->tid && strlen(task->comm) > (size_t)(dash - first))
		return;
	task->tid = (uint32_t)pid;
	snprintf(task->comm, sizeof(task->comm), "%.*s", (int)(dash - first), first);
}

void gt_text_names_of_tasks(struct gt_text_names *names, const char *bytes, size_t count,
			    const struct gt_text_line *line)
{
	const char *from = bytes;

	if (line->pid > 0)
		keep(names, bytes, bytes + count, &from, line->pid);
	if (line->kind == GT_TEXT_SWITCH && line->next_pid > 0)
		keep(names, bytes, bytes + count, &from, line->next_pid);
}

const char *gt_text_names_task(const struct gt_text_names *names, uint32_t tid)
{
	const struct task *task = place_of_task(names, tid);

	return task->tid ? task->comm : NULL;
}

void gt_text_names_destroy(struct gt_text_names *names)
{
	if (names == NULL)
		return;
	names->sink = NULL;
	for (uint32_t i = 0; i < names->pending_count; i++) {
		free((void *)names->pending[i].name);
		free((void *)names->pending[i].object);
	}
	for (uint32_t i = 0; i < names->room; i++)
		free(names->functions[i].text);
	free(names->functions);
	free(names);
}
