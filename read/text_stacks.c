/* SPDX-License-Identifier: MIT */
/*
 * Call stacks of a function_graph text. The call that a brace closes is found by its indentation,
 * which is the call's depth, and by the name after it, if there is one; only if blanks were
 * collapsed, brackets alone decide. So a call that never returns (longjmp, a task that dies)
 * affects only itself and does not shift every later call.
 */
#include "read/text_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "read/text_line.h"
#include <graftrace/error.h>

/* The indentation of one level of depth in every known text. */
#define INDENT_STEP 2
/* Without indentation a named brace may close a call below others that never returned; this many
 * calls are searched. */
#define SEARCH_MAX 256
/* Finished tasks that are kept for reuse; the rest is freed. */
#define SPARE_MAX 64

struct frame {
	uint64_t children_ns; /* of the direct callees that returned */
	uint32_t name;	      /* offset in the task's names */
	uint32_t name_len;
	int32_t indent; /* -1: unknown */
};

struct gt_text_task {
	struct gt_text_task *next; /* in its bucket, or among the spare */
	uint64_t key;
	int64_t tid;
	int32_t cpu;	       /* where it ran last */
	uint32_t epoch;	       /* of that CPU at that time: another one now means lost events */
	uint32_t running;      /* number of CPUs on which it is the current task */
	uint32_t frames_count; /* open calls */
	uint32_t frames_size;
	uint32_t names_len;
	uint32_t names_size;
	struct frame *frames;
	char *names; /* of the open calls, in the order of `frames` */
};

struct gt_text_cpu {
	struct gt_text_task *current;
	uint32_t epoch;
	bool named; /* `current` is a task that the text names */
};

/* Keys: a task's number; the idle task (0) and the unnamed one exist once for each CPU. */
static uint64_t key_of(int64_t pid, int32_t cpu)
{
	if (pid > 0)
		return (uint64_t)pid;
	return (pid == 0 ? 1ull << 62 : 1ull << 63) | (uint32_t)cpu;
}

static size_t bucket_of(const struct gt_text_stacks *stacks, uint64_t key)
{
	key *= 0x9e3779b97f4a7c15u;
	return (size_t)(key >> 32) & (stacks->buckets_count - 1);
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static struct gt_text_cpu *cpu_at(struct gt_text_stacks *stacks, int32_t cpu)
{
	size_t index = (size_t)(cpu + 1);

	if (index >= stacks->cpus_count) {
		size_t count = stacks->cpus_count;
		struct gt_text_cpu *grown;

		while (count <= index)
			count *= 2;
		grown = realloc(stacks->cpus, count * sizeof *grown);
		if (grown == NULL)
			return NULL;
		memset(grown + stacks->cpus_count, 0, (count - stacks->cpus_count) * sizeof *grown);
		stacks->cpus = grown;
		stacks->cpus_count = count;
	}
	return &stacks->cpus[index];
}

static void task_free(struct gt_text_stacks *stacks, struct gt_text_task *task)
{
	stacks->bytes -= sizeof *task + task->frames_size * sizeof(struct frame) + task->names_size;
	free(task->frames);
	free(task->names);
	free(task);
}

static void task_release(struct gt_text_stacks *stacks, struct gt_text_task *task)
{
	struct gt_text_task **link = &stacks->buckets[bucket_of(stacks, task->key)];

	while (*link != task)
		link = &(*link)->next;
	*link = task->next;
	stacks->tasks_count--;
	if (stacks->spare_count >= SPARE_MAX || task->frames_size > 1024 ||
	    task->names_size > 65536) {
		task_free(stacks, task);
		return;
	}
	task->next = stacks->spare;
	stacks->spare = task;
	stacks->spare_count++;
}

static int grow_buckets(struct gt_text_stacks *stacks)
{
	size_t old_count = stacks->buckets_count;
	struct gt_text_task **old = stacks->buckets;
	struct gt_text_task **grown = calloc(old_count * 2, sizeof *grown);

	if (grown == NULL)
		return GT_ENOMEM;
	stacks->buckets = grown;
	stacks->buckets_count = old_count * 2;
	for (size_t i = 0; i < old_count; i++) {
		struct gt_text_task *task = old[i];

		while (task != NULL) {
			struct gt_text_task *next = task->next;
			size_t bucket = bucket_of(stacks, task->key);

			task->next = grown[bucket];
			grown[bucket] = task;
			task = next;
		}
	}
	free(old);
	return 0;
}

/* Drops all open calls; only tasks that run on a CPU stay. */
static void forget_all(struct gt_text_stacks *stacks, uint64_t *count)
{
	for (size_t i = 0; i < stacks->buckets_count; i++) {
		struct gt_text_task *task = stacks->buckets[i];

		while (task != NULL) {
			struct gt_text_task *next = task->next;

			*count += task->frames_count;
			task->frames_count = 0;
			task->names_len = 0;
			stacks->bytes -=
				task->frames_size * sizeof(struct frame) + task->names_size;
			free(task->frames);
			free(task->names);
			task->frames = NULL;
			task->names = NULL;
			task->frames_size = 0;
			task->names_size = 0;
			if (task->running == 0)
				task_release(stacks, task);
			task = next;
		}
	}
}

static struct gt_text_task *task_find(const struct gt_text_stacks *stacks, uint64_t key)
{
	struct gt_text_task *task = stacks->buckets[bucket_of(stacks, key)];

	while (task != NULL && task->key != key)
		task = task->next;
	return task;
}

static struct gt_text_task *task_get(struct gt_text_stacks *stacks, int64_t pid, int32_t cpu)
{
	uint64_t key = key_of(pid, cpu);
	struct gt_text_task *task = task_find(stacks, key);
	size_t bucket;

	if (task != NULL)
		return task;
	if (stacks->tasks_count >= GT_TEXT_TASKS_MAX)
		forget_all(stacks, &stacks->counts.forgotten);
	if (stacks->tasks_count >= stacks->buckets_count && grow_buckets(stacks) != 0)
		return NULL;
	if (stacks->spare != NULL) {
		task = stacks->spare;
		stacks->spare = task->next;
		stacks->spare_count--;
	} else {
		task = calloc(1, sizeof *task);
		if (task == NULL)
			return NULL;
		stacks->bytes += sizeof *task;
	}
	task->key = key;
	task->tid = pid >= 0 ? pid : cpu > 0 ? -(int64_t)cpu : 0;
	task->cpu = cpu;
	task->epoch = stacks->cpus[cpu + 1].epoch;
	task->running = 0;
	task->frames_count = 0;
	task->names_len = 0;
	bucket = bucket_of(stacks, key);
	task->next = stacks->buckets[bucket];
	stacks->buckets[bucket] = task;
	stacks->tasks_count++;
	return task;
}

static void drop_if_stale(struct gt_text_stacks *stacks, struct gt_text_task *task)
{
	if (task->epoch == stacks->cpus[task->cpu + 1].epoch)
		return;
	stacks->counts.cut_by_loss += task->frames_count;
	task->frames_count = 0;
	task->names_len = 0;
	task->epoch = stacks->cpus[task->cpu + 1].epoch;
}

static void set_current(struct gt_text_stacks *stacks, int32_t cpu, struct gt_text_task *task)
{
	struct gt_text_cpu *at = &stacks->cpus[cpu + 1];
	struct gt_text_task *before = at->current;

	drop_if_stale(stacks, task);
	task->cpu = cpu;
	task->epoch = at->epoch;
	if (before == task)
		return;
	at->current = task;
	task->running++;
	if (before != NULL && --before->running == 0 && before->frames_count == 0)
		task_release(stacks, before);
}

/* The text names the task of a CPU that was unnamed before: `task` takes its open calls over. */
static void adopt(struct gt_text_stacks *stacks, struct gt_text_task *task,
		  struct gt_text_task *unnamed)
{
	struct frame *frames = task->frames;
	char *names = task->names;
	uint32_t frames_size = task->frames_size;
	uint32_t names_size = task->names_size;

	drop_if_stale(stacks, task);
	drop_if_stale(stacks, unnamed);
	if (task->frames_count > 0) {
		/* `task` has open calls from another CPU; which are inside the others is
		 * unknown. */
		stacks->counts.cut_by_loss += unnamed->frames_count;
		unnamed->frames_count = 0;
		unnamed->names_len = 0;
		return;
	}
	task->frames = unnamed->frames;
	task->frames_size = unnamed->frames_size;
	task->frames_count = unnamed->frames_count;
	task->names = unnamed->names;
	task->names_size = unnamed->names_size;
	task->names_len = unnamed->names_len;
	unnamed->frames = frames;
	unnamed->frames_size = frames_size;
	unnamed->frames_count = 0;
	unnamed->names = names;
	unnamed->names_size = names_size;
	unnamed->names_len = 0;
}

int gt_text_stacks_init(struct gt_text_stacks *stacks)
{
	memset(stacks, 0, sizeof *stacks);
	stacks->buckets_count = 64;
	stacks->cpus_count = 16;
	stacks->buckets = calloc(stacks->buckets_count, sizeof(struct gt_text_task *));
	stacks->cpus = calloc(stacks->cpus_count, sizeof(struct gt_text_cpu));
	if (stacks->buckets == NULL || stacks->cpus == NULL) {
		free(stacks->buckets);
		free(stacks->cpus);
		memset(stacks, 0, sizeof *stacks);
		return GT_ENOMEM;
	}
	return 0;
}

struct gt_text_task *gt_text_stacks_task(struct gt_text_stacks *stacks, int32_t cpu, int64_t pid)
{
	struct gt_text_cpu *at = cpu_at(stacks, cpu);
	struct gt_text_task *task;

	if (at == NULL)
		return NULL;
	task = at->current;
	if (task != NULL && (pid < 0 || task->key == key_of(pid, cpu))) {
		if (task->cpu == cpu && task->epoch == at->epoch)
			return task;
		set_current(stacks, cpu, task);
		return task;
	}
	task = task_get(stacks, pid, cpu);
	if (task == NULL)
		return NULL;
	if (pid >= 0 && at->current != NULL && !at->named)
		adopt(stacks, task, at->current);
	at->named = pid >= 0;
	set_current(stacks, cpu, task);
	return task;
}

int gt_text_stacks_switch(struct gt_text_stacks *stacks, int32_t cpu, int64_t from, int64_t to)
{
	struct gt_text_cpu *at = cpu_at(stacks, cpu);
	struct gt_text_task *task;

	if (at == NULL)
		return GT_ENOMEM;
	if (at->current != NULL && !at->named) {
		task = task_get(stacks, from, cpu);
		if (task == NULL)
			return GT_ENOMEM;
		adopt(stacks, task, at->current);
		set_current(stacks, cpu, task);
	}
	task = task_get(stacks, to, cpu);
	if (task == NULL)
		return GT_ENOMEM;
	at->named = true;
	set_current(stacks, cpu, task);
	return 0;
}

int gt_text_stacks_first(struct gt_text_stacks *stacks, int32_t cpu, int64_t pid)
{
	struct gt_text_cpu *at = cpu_at(stacks, cpu);
	struct gt_text_task *task;

	if (at == NULL)
		return GT_ENOMEM;
	if (at->current != NULL)
		return 0;
	task = task_get(stacks, pid, cpu);
	if (task == NULL)
		return GT_ENOMEM;
	at->named = true;
	set_current(stacks, cpu, task);
	return 0;
}

int gt_text_stacks_lost(struct gt_text_stacks *stacks, int32_t cpu)
{
	struct gt_text_cpu *at = cpu_at(stacks, cpu);

	if (at == NULL)
		return GT_ENOMEM;
	at->epoch++;
	return 0;
}

int64_t gt_text_task_tid(const struct gt_text_task *task)
{
	return task->tid;
}

static int grow(struct gt_text_stacks *stacks, struct gt_text_task *task, size_t name_len)
{
	if (task->frames_count == task->frames_size) {
		uint32_t size = task->frames_size == 0 ? 16 : task->frames_size * 2;
		struct frame *grown = realloc(task->frames, size * sizeof *grown);

		if (grown == NULL)
			return GT_ENOMEM;
		stacks->bytes += (size - task->frames_size) * sizeof *grown;
		task->frames = grown;
		task->frames_size = size;
	}
	if (task->names_size - task->names_len < name_len) {
		uint32_t size = task->names_size == 0 ? 512 : task->names_size;
		char *grown;

		while (size - task->names_len < name_len)
			size *= 2;
		grown = realloc(task->names, size);
		if (grown == NULL)
			return GT_ENOMEM;
		stacks->bytes += size - task->names_size;
		task->names = grown;
		task->names_size = size;
	}
	return 0;
}

/* Drops the innermost call; its callees' time is added to its caller's callees. */
static void drop_top(struct gt_text_task *task)
{
	struct frame *top = &task->frames[--task->frames_count];

	task->names_len = top->name;
	if (task->frames_count > 0)
		top[-1].children_ns = add_saturated(top[-1].children_ns, top->children_ns);
}

/* A line at depth `indent` comes: drops open calls of the same depth or deeper. */
static void unwind(struct gt_text_stacks *stacks, struct gt_text_task *task, int32_t indent)
{
	while (task->frames_count > 0 && task->frames[task->frames_count - 1].indent >= indent) {
		drop_top(task);
		stacks->counts.never_returned++;
	}
}

/* A call at `indent` took duration_ns: this is added to the callees' time of the innermost open
 * call if that is its caller. If that is one level further out, a call between them is missing,
 * which will have a time of its own. */
static void charge_caller(struct gt_text_task *task, int32_t indent, uint64_t duration_ns)
{
	struct frame *top;

	if (task->frames_count == 0)
		return;
	top = &task->frames[task->frames_count - 1];
	if (indent < 0 || top->indent < 0 || indent - top->indent <= INDENT_STEP)
		top->children_ns = add_saturated(top->children_ns, duration_ns);
}

int gt_text_stacks_enter(struct gt_text_stacks *stacks, struct gt_text_task *task, const char *name,
			 size_t name_len, int32_t indent)
{
	struct frame *frame;

	if (indent >= 0)
		unwind(stacks, task, indent);
	if (task->frames_count == task->frames_size ||
	    task->names_size - task->names_len < name_len) {
		if (stacks->bytes > GT_TEXT_STACKS_BYTES_MAX)
			forget_all(stacks, &stacks->counts.forgotten);
		if (grow(stacks, task, name_len) != 0)
			return GT_ENOMEM;
	}
	frame = &task->frames[task->frames_count++];
	frame->children_ns = 0;
	frame->name = task->names_len;
	frame->name_len = (uint32_t)name_len;
	frame->indent = indent;
	memcpy(task->names + task->names_len, name, name_len);
	task->names_len += (uint32_t)name_len;
	return 0;
}

void gt_text_stacks_leaf(struct gt_text_stacks *stacks, struct gt_text_task *task, int32_t indent,
			 uint64_t duration_ns)
{
	if (indent >= 0)
		unwind(stacks, task, indent);
	charge_caller(task, indent, duration_ns);
}

static bool frame_is(const struct gt_text_task *task, const struct frame *frame, const char *tail,
		     size_t tail_len)
{
	return gt_text_tail_names(tail, tail_len, task->names + frame->name, frame->name_len);
}

/* Drops the calls above the one that the brace closes. False: it is not open. */
static bool bring_up(struct gt_text_stacks *stacks, struct gt_text_task *task, int32_t indent,
		     const char *tail, size_t tail_len)
{
	uint32_t count;
	uint32_t i;

	if (indent >= 0)
		unwind(stacks, task, indent + 1);
	count = task->frames_count;
	if (count == 0)
		return false;
	if (indent >= 0 && task->frames[count - 1].indent >= 0) {
		if (task->frames[count - 1].indent < indent)
			return false;
		if (tail == NULL || frame_is(task, &task->frames[count - 1], tail, tail_len))
			return true;
		/* The depth is the same, the function another: the open call ended without a
		 * line. */
		drop_top(task);
		stacks->counts.never_returned++;
		return false;
	}
	if (tail == NULL)
		return true;
	for (i = count; i > 0 && count - i < SEARCH_MAX; i--)
		if (frame_is(task, &task->frames[i - 1], tail, tail_len))
			break;
	if (i == 0 || count - i >= SEARCH_MAX)
		return false;
	for (; count > i; count--) {
		drop_top(task);
		stacks->counts.never_returned++;
	}
	return true;
}

bool gt_text_stacks_leave(struct gt_text_stacks *stacks, struct gt_text_task *task, int32_t indent,
			  const char *tail, size_t tail_len, uint64_t duration_ns,
			  struct gt_text_closed *closed)
{
	const struct frame *frame;

	if (!bring_up(stacks, task, indent, tail, tail_len)) {
		charge_caller(task, indent, duration_ns);
		return false;
	}
	frame = &task->frames[--task->frames_count];
	task->names_len = frame->name;
	closed->name = task->names + frame->name;
	closed->name_len = frame->name_len;
	closed->children_exceed = frame->children_ns > duration_ns;
	closed->self_ns = closed->children_exceed ? 0 : duration_ns - frame->children_ns;
	charge_caller(task, frame->indent, duration_ns);
	return true;
}

static void end_task(struct gt_text_stacks *stacks, struct gt_text_task *task)
{
	drop_if_stale(stacks, task);
	stacks->counts.at_end += task->frames_count;
	for (uint32_t i = 0; i < task->frames_count && stacks->left_open != NULL; i++)
		stacks->left_open(stacks->user, task->names + task->frames[i].name,
				  task->frames[i].name_len, task->tid);
}

void gt_text_stacks_end(struct gt_text_stacks *stacks)
{
	for (size_t i = 0; i < stacks->buckets_count; i++) {
		while (stacks->buckets[i] != NULL) {
			struct gt_text_task *task = stacks->buckets[i];

			end_task(stacks, task);
			stacks->buckets[i] = task->next;
			task_free(stacks, task);
		}
	}
	stacks->tasks_count = 0;
	memset(stacks->cpus, 0, stacks->cpus_count * sizeof(struct gt_text_cpu));
}

void gt_text_stacks_fini(struct gt_text_stacks *stacks)
{
	if (stacks->buckets != NULL) {
		stacks->left_open = NULL;
		gt_text_stacks_end(stacks);
	}
	while (stacks->spare != NULL) {
		struct gt_text_task *task = stacks->spare;

		stacks->spare = task->next;
		task_free(stacks, task);
	}
	free(stacks->buckets);
	free(stacks->cpus);
	memset(stacks, 0, sizeof *stacks);
}
