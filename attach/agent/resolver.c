/* SPDX-License-Identifier: MIT */
/*
 * V8's resolver of return addresses: see resolver.h. It is a word of V8's, null unless somebody has
 * set it, and read at each frame of a walk: so it may be set at any time before the first return
 * slot is taken, and needs no call.
 */
#include "attach/agent/resolver.h"

#include <string.h>

/* A walk has its notes within so many bytes of the stack. */
#define WALK_BYTES 16384u

static uint64_t resolver_of(const struct graftrace_agent_image *header, uint64_t image)
{
	return image + header->resolver;
}

int gt_resolver_set(struct gt_tracee *tracee, struct gt_tracee_object *object)
{
	const struct gt_agent *agent = &tracee->agent;
	const uint64_t ours = resolver_of(&agent->header, agent->image);
	const uint64_t state = agent->image + agent->header.state_offset;
	uint64_t word = gt_plan_resolver(object->file->plan), there;
	uint64_t words[GRAFTRACE_AGENT_RESOLVERS];
	uint32_t i;
	int error;

	if (!word)
		return 0;
	word += object->bias;
	object->entry_only = true;
	error = gt_process_read(&tracee->process, word, &there, sizeof(there));
	if (error || (there && there != ours))
		return error;
	error = gt_process_read(&tracee->process,
				state + offsetof(struct graftrace_agent_state, resolvers), words,
				sizeof(words));
	for (i = 0; i < GRAFTRACE_AGENT_RESOLVERS && words[i] && words[i] != word; i++)
		;
	if (error || i == GRAFTRACE_AGENT_RESOLVERS)
		return error;
	error = gt_process_write(&tracee->process,
				 state + offsetof(struct graftrace_agent_state, resolvers) +
					 i * sizeof(word),
				 &word, sizeof(word));
	if (!error)
		error = gt_process_write(&tracee->process, word, &ours, sizeof(ours));
	object->entry_only = error != 0;
	return error;
}

static bool has_any(const struct graftrace_agent_state *state)
{
	return state->resolvers[0] != 0;
}

/* A return slot of the stack at `rsp`, in its mirror. */
static bool is_mirrored(uint64_t word, uint64_t rsp)
{
	const uint64_t slot = word ^ GRAFTRACE_MIRROR;

	return slot >= rsp && slot - rsp < (64u << 20) && word % 8 == 0;
}

bool gt_resolver_in_use(const struct gt_process *process,
			const struct graftrace_agent_image *header, uint64_t image,
			const struct graftrace_agent_state *state,
			const struct gt_stopped_threads *threads)
{
	const uint64_t ours = resolver_of(header, image);
	uint64_t words[WALK_BYTES / 8];

	for (size_t i = 0; has_any(state) && i < threads->count; i++) {
		struct user_regs_struct registers;
		const uint64_t *general = (const uint64_t *)&registers;
		uint64_t bytes = WALK_BYTES;

		if (gt_thread_registers(threads->tids[i], &registers))
			continue;
		for (size_t k = 0; k < 15; k++) /* r15 … rdi */
			if (general[k] == ours || is_mirrored(general[k], registers.rsp))
				return true;
		if ((long)registers.orig_rax >= 0)
			continue; /* it waits in the kernel: no walk does */
		while (bytes && gt_process_read(process, registers.rsp & ~7ull, words, bytes))
			bytes /= 2;
		for (size_t k = 0; k < bytes / 8; k++)
			if (words[k] == ours || is_mirrored(words[k], registers.rsp))
				return true;
	}
	return false;
}

int gt_resolver_reset(const struct gt_process *process, const struct graftrace_agent_image *header,
		      uint64_t image, const struct graftrace_agent_state *state)
{
	const uint64_t ours = resolver_of(header, image), none = 0;
	uint64_t there;
	int error = 0;

	for (uint32_t i = 0; !error && i < GRAFTRACE_AGENT_RESOLVERS; i++)
		/* A library that was unloaded is not there any more. */
		if (state->resolvers[i] &&
		    gt_process_read(process, state->resolvers[i], &there, sizeof(there)) == 0 &&
		    there == ours)
			error = gt_process_write(process, state->resolvers[i], &none, sizeof(none));
	return error;
}
