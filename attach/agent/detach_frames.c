/* SPDX-License-Identifier: MIT */
/*
 * Detaching, and what a thread is in the midst of: the registers that signals have interrupted, and whether
 * its frames show an unwinder at work. Words of a stack alone do not tell: room that a call has not filled keeps
 * return addresses of calls that have long returned. So what matters is copied in the stop, and walked between
 * two rounds (detach_walks.c); a thread that is seen with the same words again has the answer.
 */
#define _GNU_SOURCE
#include "attach/agent/detach_private.h"
#include "attach/agent/world.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* Rounds in which a thread in a system call is taken to be in an unwinder: these make short ones (a lock). */
#define WAITS_ROUNDS 10u

struct contexts {
	const struct gt_detach *out;
	const struct gt_map *code; /* looked up last */
	struct user_regs_struct *at;
	size_t count;
};

static bool is_code(const void *data, uint64_t address)
{
	struct contexts *contexts = (struct contexts *)data;

	if (address < 65536 || address >= GT_DETACH_HIGHEST)
		return false;
	if (contexts->code == NULL || address < contexts->code->start ||
	    address >= contexts->code->end)
		contexts->code = gt_maps_find(&contexts->out->maps, address);
	return contexts->code != NULL && contexts->code->executable;
}

static int add_context(void *data, const struct gt_frame_place *frame)
{
	struct contexts *contexts = data;
	greg_t saved[REG_RIP + 1];

	if (gt_process_read(contexts->out->process, frame->rip_at - REG_RIP * sizeof(*saved), saved,
			    sizeof(saved)) == 0)
		contexts->at[contexts->count++] = (struct user_regs_struct){
			.r15 = (uint64_t)saved[REG_R15],
			.r14 = (uint64_t)saved[REG_R14],
			.r13 = (uint64_t)saved[REG_R13],
			.r12 = (uint64_t)saved[REG_R12],
			.rbp = (uint64_t)saved[REG_RBP],
			.rbx = (uint64_t)saved[REG_RBX],
			.r11 = (uint64_t)saved[REG_R11],
			.r10 = (uint64_t)saved[REG_R10],
			.r9 = (uint64_t)saved[REG_R9],
			.r8 = (uint64_t)saved[REG_R8],
			.rax = (uint64_t)saved[REG_RAX],
			.rcx = (uint64_t)saved[REG_RCX],
			.rdx = (uint64_t)saved[REG_RDX],
			.rsi = (uint64_t)saved[REG_RSI],
			.rdi = (uint64_t)saved[REG_RDI],
			.orig_rax = ~0ull,
			.rip = (uint64_t)saved[REG_RIP],
			.rsp = (uint64_t)saved[REG_RSP],
		};
	return contexts->count == GT_DETACH_CONTEXTS;
}

size_t gt_detach_contexts(struct gt_detach *out, pid_t tid,
			  const struct user_regs_struct *registers,
			  struct user_regs_struct all[GT_DETACH_CONTEXTS])
{
	struct gt_seen_thread *seen = gt_detach_seen_thread(out, tid);
	struct contexts contexts = { .out = out, .at = all, .count = 1 };

	all[0] = *registers;
	if (seen != NULL && seen->alone == out->rounds)
		return 1;
	gt_world_thread_frames(out->process, &out->maps, registers, is_code, add_context,
			       &contexts);
	if (seen != NULL && contexts.count == 1)
		seen->alone = out->rounds;
	return contexts.count;
}

/* What the answer of a walk depends on: 64-bit FNV-1a, by words. */
static void add_to_sum(uint64_t *sum, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		*sum = (*sum ^ words[i]) * 0x100000001b3ull;
}

/* Copies all stacks that the thread goes back to. Returns where the frame of an unwinder can be highest, by their
 * words: its stack pointer; 0: nowhere. walk->sum: of all that lies below. */
static uint64_t copy_stacks(struct gt_detach *out, struct gt_detach_walk *walk, uint64_t *words)
{
	struct user_regs_struct contexts[GT_DETACH_CONTEXTS];

	walk->count = gt_detach_contexts(out, walk->tid, &walk->registers, contexts);
	walk->sum = 0xcbf29ce484222325ull;
	for (size_t i = 0; i < walk->count; i++) {
		struct gt_detach_stack *stack = &walk->stacks[i];
		size_t used;

		stack->words = words + i * GT_DETACH_STACK_WORDS;
		stack->count = gt_detach_read_stack(out, &contexts[i], stack->words, &stack->at);
		used = stack->count;
		while (used && !gt_detach_is_unwinder(out, stack->words[used - 1]))
			used--;
		if (used)
			walk->last = stack->at + used * 8;
		else if (gt_detach_is_unwinder(out, contexts[i].rip))
			walk->last = contexts[i].rsp;
		add_to_sum(&walk->sum, (const uint64_t *)&contexts[i], sizeof(contexts[i]) / 8);
		add_to_sum(&walk->sum, stack->words, used);
	}
	return walk->last;
}

/* Without memory it is asked again in the next round. */
static void want(struct gt_detach *out, const struct gt_detach_walk *walk)
{
	struct gt_detach_walk *wanted = &out->wanted[out->wanted_count];

	if (out->wanted_count == GT_DETACH_WALKS)
		return;
	*wanted = *walk;
	for (size_t i = 0; i < walk->count; i++) {
		wanted->stacks[i].words = malloc((walk->stacks[i].count + 1) * sizeof(uint64_t));
		if (wanted->stacks[i].words == NULL) {
			wanted->count = i;
			gt_detach_free_walk(wanted);
			return;
		}
		memcpy(wanted->stacks[i].words, walk->stacks[i].words,
		       walk->stacks[i].count * sizeof(uint64_t));
	}
	out->wanted_count++;
}

void gt_detach_free_walk(struct gt_detach_walk *walk)
{
	for (size_t i = 0; i < walk->count; i++)
		free(walk->stacks[i].words);
	walk->count = 0;
}

bool gt_detach_only_waits(struct gt_detach *out, pid_t tid,
			  const struct user_regs_struct *registers)
{
	struct gt_detach_walk walk = { .tid = tid, .registers = *registers };
	struct gt_seen_thread *seen;
	bool waits = false;
	uint64_t *words;

	if ((long)registers->orig_rax < 0 || out->rounds <= WAITS_ROUNDS ||
	    gt_detach_is_ours(out, registers->rip))
		return false;
	seen = gt_detach_seen_thread(out, tid);
	words = malloc(GT_DETACH_CONTEXTS * GT_DETACH_STACK_WORDS * sizeof(*words));
	if (seen != NULL && words != NULL) {
		if (!copy_stacks(out, &walk, words))
			waits = true;
		else if (seen->walked && seen->sum == walk.sum)
			waits = !seen->unwinds;
		else
			want(out, &walk);
	}
	free(words);
	return waits;
}
