/* SPDX-License-Identifier: MIT */
/*
 * Detaching, C: who is inside, and who holds addresses of ours.
 *
 * What a thread can do only shrinks once the code has its bytes back (A) and each round puts the
 * slots back (B), so each question is asked of each thread until the answer was once the good one:
 *  - Has it *left*? A thread that was once seen outside our code never takes a slot again, for only
 *    a stub does, and no code leads to one. When all have left, nothing of ours is in any slot.
 *  - Is it *clean*? An unwinder has read slots and holds what it read: a stub's return point, which
 *    it will look up, or the place of a return address in the mirror, which it will read. One that
 *    is seen without, after all have left, never gets one again, however often it unwinds.
 * A thread that throws all the time is so waited for no longer than the exception takes that was
 * under way when the slots came back.
 */
#define _GNU_SOURCE
#include "attach/agent/detach_private.h"
#include "attach/agent/patch.h"
#include "attach/agent/suspended.h"
#include "attach/agent/traps.h"
#include "attach/process/proc.h"
#include "attach/agent/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* Without such, it can be an unwinder that is not known as one, but only near the stack pointer and
 * not for long: so much CPU time (clock ticks, 10 ms each) is more than any step of it takes. */
#define UNKNOWN_BYTES 8192u
#define UNKNOWN_TICKS 5u

/* Where the kernel saves the instruction pointer, in a ucontext_t. */
#define SAVED_RIP offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP])

struct looker {
	struct gt_detach *out;
	const struct gt_stopped_threads *all;
	bool frames; /* this thread has a signal frame that goes back to our code */
	uint64_t words[GT_DETACH_STACK_WORDS];
};

static bool is_ours(const void *data, uint64_t address)
{
	return gt_detach_is_ours(((const struct looker *)data)->out, address);
}

/* Under a hook's jump that stays for now: the program's instruction is not there yet. */
static bool is_kept(const struct gt_detach *out, uint64_t place)
{
	for (uint32_t i = 0; out->stage < GT_DETACH_HAS_NONE && i < out->kept_count; i++)
		if (place - out->kept[i].address < out->kept[i].bytes)
			return true;
	return false;
}

/* Where a thread that stands in moved code can go on, 0: nowhere. */
static uint64_t old_place(const struct gt_detach *out, uint64_t address)
{
	uint64_t place = out->tracee != NULL ? gt_patch_old_place(out->tracee, address)
					     : gt_detach_place_of_call(out, address);

	return place && !is_kept(out, place) ? place : 0;
}

/* Of the floating point state in a signal's frame (asm/sigcontext.h): what the kernel looks for before it restores it. */
#define HAS_XSTATE 1ull /* in uc_flags */
#define MAGIC_AT   464
#define MAGIC	   0x46505853u
#define MAGIC_END  0x46505845u

/* Whether a frame on the stack that it leads to has been written over since: its end is not there any more. */
static bool is_damaged(const struct gt_detach *out, const struct gt_frame_place *saved)
{
	struct {
		uint32_t magic;
		uint32_t bytes;
		uint64_t features;
		uint32_t state_bytes;
	} state = { 0 };
	const uint64_t context = saved->rip_at - SAVED_RIP;
	uint64_t flags = 0, at = 0;
	uint32_t end = 0;

	gt_process_read(out->process, context, &flags, sizeof(flags));
	gt_process_read(out->process, context + offsetof(ucontext_t, uc_mcontext.fpregs), &at,
			sizeof(at));
	if (!(flags & HAS_XSTATE) || at < saved->rip_at || at >= saved->rsp ||
	    gt_process_read(out->process, at + MAGIC_AT, &state, sizeof(state)))
		return false;
	return state.magic != MAGIC || state.state_bytes >= saved->rsp - at ||
	       gt_process_read(out->process, at + state.state_bytes, &end, sizeof(end)) ||
	       end != MAGIC_END;
}

static int note_frame(void *data, const struct gt_frame_place *frame)
{
	struct looker *looker = data;
	uint64_t place;

	if (is_damaged(looker->out, frame)) /* left over in room that a call has not filled */
		return 0;
	place = old_place(looker->out, frame->rip);
	if (place)
		return gt_process_write(looker->out->process, frame->rip_at, &place, sizeof(place));
	looker->frames = true;
	return 0;
}

bool gt_detach_has_mirror(const struct gt_detach *out, uint64_t address)
{
	uint64_t key = (address >> GRAFTRACE_GRANULE_SHIFT) + 2;
	size_t low = 0, high = out->granule_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (out->granules[middle].key == key)
			return true;
		if (out->granules[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* What an unwinder gets from a slot of ours: a stub's return point, the byte before it (by which it
 * is looked up), the region's unwind data, a place in the mirror. */
static bool is_held(const struct gt_detach *out, uint64_t word)
{
	if (word < 65536 || word >= GT_DETACH_HIGHEST)
		return false;
	for (uint32_t i = 0; i < out->state.region_count; i++)
		if (word - out->state.regions[i].start < GT_DETACH_PAGE)
			return true;
	return gt_detach_is_stub_return(out, word) || gt_detach_is_stub_return(out, word + 1) ||
	       gt_detach_has_mirror(out, word ^ GT_DETACH_MIRROR);
}

size_t gt_detach_read_stack(const struct gt_detach *out, const struct user_regs_struct *registers,
			    uint64_t words[GT_DETACH_STACK_WORDS], uint64_t *at)
{
	const struct gt_map *stack = gt_maps_find(&out->maps, registers->rsp);
	uint64_t low = (registers->rsp & ~7ull) - GT_DETACH_RED_ZONE, bytes;

	if (stack == NULL || !stack->writable)
		return 0;
	if (low < stack->start)
		low = stack->start;
	bytes = stack->end - low;
	if (bytes > GT_DETACH_STACK_WORDS * 8)
		bytes = GT_DETACH_STACK_WORDS * 8;
	*at = low;
	return gt_process_read(out->process, low, words, bytes) ? 0 : bytes / 8;
}

static size_t read_stack(struct looker *looker, const struct user_regs_struct *registers)
{
	uint64_t at;

	return gt_detach_read_stack(looker->out, registers, looker->words, &at);
}

enum held { HELD_NOTHING, HELD_BY_UNKNOWN, HELD_BY_UNWINDER };

/* What the thread holds in one of its contexts. */
static enum held context_holds(struct looker *looker, const struct user_regs_struct *registers)
{
	const size_t count = read_stack(looker, registers);
	const uint64_t *general = (const uint64_t *)registers;
	size_t i, seen = ~(size_t)0, pending = ~(size_t)0;
	enum held held = HELD_NOTHING;

	if (gt_detach_is_unwinder(looker->out, registers->rip))
		seen = 0;
	for (i = 0; i < 15; i++) /* r15 … rdi */
		if (is_held(looker->out, general[i]))
			held = HELD_BY_UNKNOWN;
	if (held)
		pending = 0;
	for (i = 0; i < count; i++) {
		if (gt_detach_is_unwinder(looker->out, looker->words[i])) {
			seen = i;
			if (pending != ~(size_t)0 && i - pending < GT_DETACH_NEAR_WORDS)
				return HELD_BY_UNWINDER;
		}
		if (!is_held(looker->out, looker->words[i]))
			continue;
		pending = i;
		if (i < UNKNOWN_BYTES / 8)
			held = HELD_BY_UNKNOWN;
		if (seen != ~(size_t)0 && i - seen < GT_DETACH_NEAR_WORDS)
			return HELD_BY_UNWINDER;
	}
	return held && seen == 0 ? HELD_BY_UNWINDER : held;
}

static enum held holds(struct looker *looker, pid_t tid, const struct user_regs_struct *registers)
{
	struct user_regs_struct all[GT_DETACH_CONTEXTS];
	const size_t count = gt_detach_contexts(looker->out, tid, registers, all);
	enum held held = HELD_NOTHING;

	for (size_t i = 0; i < count && held != HELD_BY_UNWINDER; i++) {
		const enum held more = context_holds(looker, &all[i]);

		held = more > held ? more : held;
	}
	return held && gt_detach_only_waits(looker->out, tid, registers) ? HELD_NOTHING : held;
}

/* CPU time of a thread in clock ticks: proc(5), utime and stime. */
static uint64_t ticks_of(pid_t tid)
{
	unsigned long user = 0, system = 0;
	char text[1024];
	const char *fields = gt_proc_stat(text, sizeof(text), tid, tid);

	if (fields == NULL || sscanf(fields, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
				     &user, &system) != 2)
		return 0;
	return (uint64_t)user + system;
}

struct gt_seen_thread *gt_detach_seen_thread(struct gt_detach *out, pid_t tid)
{
	for (size_t i = 0; i < out->thread_count; i++)
		if (out->threads[i].tid == tid)
			return &out->threads[i];
	if (out->thread_count == out->thread_room) {
		size_t room = out->thread_room ? out->thread_room * 2 : 64;
		struct gt_seen_thread *bigger = realloc(out->threads, room * sizeof(*bigger));

		if (bigger == NULL)
			return NULL;
		out->threads = bigger;
		out->thread_room = room;
	}
	out->threads[out->thread_count] = (struct gt_seen_thread){ .tid = tid, .new = true };
	return &out->threads[out->thread_count++];
}

/* Moved out of moved code, or inside. */
static int look_at_thread(struct looker *looker, struct gt_seen_thread *seen)
{
	struct gt_detach *out = looker->out;
	struct user_regs_struct registers;
	uint64_t place, back;
	bool inside = false;
	int error = gt_thread_registers(seen->tid, &registers);

	if (error) {
		seen->left = seen->left || error == GT_EGONE;
		seen->past_walks = seen->past_walks || error == GT_EGONE;
		return error == GT_EGONE ? 0 : error;
	}
	out->elsewhere =
		out->elsewhere || !gt_world_is_own_stack(out->process, &out->maps, seen->tid,
							 &registers, registers.rsp);
	back = gt_thread_restarts(&registers) ? 2 : 0;
	if (is_ours(looker, registers.rip) || (back && is_ours(looker, registers.rip - back))) {
		place = old_place(out, registers.rip - back);
		if (place) {
			registers.rip = place + back;
			error = gt_thread_set_registers(seen->tid, &registers);
			if (error)
				return error == GT_EGONE ? 0 : error;
		} else {
			inside = true;
		}
	}
	/* It has met a breakpoint, and was stopped before its signal: the handler has to be there. */
	inside = inside || gt_traps_is_on_its_way(out->process, &out->state, seen->tid);
	looker->frames = false;
	error = gt_world_thread_frames(out->process, &out->maps, &registers, is_ours, note_frame,
				       looker);
	inside = inside || looker->frames;
	out->handling = out->handling || looker->frames;
	if (inside)
		out->inside = true;
	else if (!error)
		seen->left = true;
	seen->past_walks =
		seen->past_walks || (!inside && !error && out->stage >= GT_DETACH_HAS_LOOKUPS);
	return error;
}

/* Whether the thread may be in an unwinder, as far as return addresses into one near its stack pointers tell. */
static bool may_unwind(struct looker *looker, pid_t tid, const struct user_regs_struct *registers)
{
	struct gt_detach *out = looker->out;
	struct user_regs_struct all[GT_DETACH_CONTEXTS];
	const size_t contexts = gt_detach_contexts(out, tid, registers, all);
	bool found = false;

	for (size_t i = 0; !found && i < contexts; i++) {
		size_t count = read_stack(looker, &all[i]);

		found = gt_detach_is_unwinder(out, all[i].rip);
		if (count > GT_DETACH_RED_ZONE / 8 + GT_DETACH_NEAR_WORDS)
			count = GT_DETACH_RED_ZONE / 8 + GT_DETACH_NEAR_WORDS;
		for (size_t k = 0; !found && k < count; k++)
			found = gt_detach_is_unwinder(out, looker->words[k]);
	}
	return found && !gt_detach_only_waits(out, tid, registers);
}

/* Whether an exception that a call of the program's has thrown may still be on its way through our frames. An unwinder
 * that was there once, and is not any more, leaves its return addresses: that many clock ticks are more than it takes. */
static int check_past_calls(struct looker *looker, struct gt_seen_thread *seen)
{
	struct user_regs_struct registers;
	uint64_t ticks;
	bool unwinds;
	int error = gt_thread_registers(seen->tid, &registers);

	if (error) {
		seen->past_calls = error == GT_EGONE;
		return error == GT_EGONE ? 0 : error;
	}
	unwinds = may_unwind(looker, seen->tid, &registers);
	ticks = ticks_of(seen->tid);
	if (unwinds && !seen->throws)
		seen->ticks = ticks;
	seen->past_calls = !unwinds || (seen->throws && ticks - seen->ticks >= UNKNOWN_TICKS);
	seen->throws = unwinds;
	return 0;
}

static int check_clean(struct looker *looker, struct gt_seen_thread *seen)
{
	struct user_regs_struct registers;
	enum held held;
	uint64_t ticks;
	int error = gt_thread_registers(seen->tid, &registers);

	if (error) {
		seen->clean = seen->clean || error == GT_EGONE;
		return error == GT_EGONE ? 0 : error;
	}
	held = holds(looker, seen->tid, &registers);
	if (held == HELD_BY_UNKNOWN) {
		ticks = ticks_of(seen->tid);
		if (seen->new)
			seen->ticks = ticks;
		else if (ticks - seen->ticks >= UNKNOWN_TICKS)
			held = HELD_NOTHING;
		seen->new = false;
	}
	seen->clean = held == HELD_NOTHING;
	return 0;
}

/* Of struct pthread: its own address, twice; the thread's number, 0 or -1 once it has
 * ended; whether the program has given it its stack (glibc on x86-64). */
#define BLOCK_SELF  0x10
#define BLOCK_TID   0x2d0
#define BLOCK_GIVEN 0x612
#define BLOCK_MOST  (1u << 20)
#define BLOCK_WORDS 512u
#define BLOCK_NOTES (0x700u / 8)

/* Where the stack of the thread begins and how large it is, as its block notes it, and whether it does: the initial
 * thread's has no such note. */
static bool stack_of_block(const struct gt_detach *out, uint64_t block, uint64_t *start,
			   uint64_t *bytes)
{
	uint64_t words[BLOCK_NOTES];

	if (gt_process_read(out->process, block, words, sizeof(words)))
		return false;
	for (size_t i = 0; i + 1 < BLOCK_NOTES; i++) {
		*start = words[i];
		*bytes = words[i + 1];
		if (*start >= 65536 && *start < block && *start + *bytes - block < 16384)
			return true;
	}
	return false;
}

static bool is_kept_stack(const struct gt_detach *out, const struct gt_map *stack, uint64_t block,
			  uint64_t address)
{
	uint64_t start, bytes;
	uint8_t given = 1;
	int32_t tid = 1;

	return gt_process_read(out->process, block + BLOCK_TID, &tid, sizeof(tid)) == 0 &&
	       tid <= 0 &&
	       gt_process_read(out->process, block + BLOCK_GIVEN, &given, sizeof(given)) == 0 &&
	       !given && stack_of_block(out, block, &start, &bytes) && start < stack->start &&
	       address - start < bytes;
}

/* The C library keeps stacks of threads that have ended: with the block of the thread above, and what guards the stack
 * below. Memory that the program has made a stack of is its own again, whatever is left above. */
static bool is_of_ended_thread(const struct gt_detach *out, const struct gt_map *stack,
			       uint64_t address)
{
	uint64_t words[BLOCK_WORDS], self;

	for (uint64_t at = address & ~7ull; at < stack->end; at += sizeof(words)) {
		const uint64_t rest = stack->end - at;
		const size_t bytes = rest < sizeof(words) ? rest : sizeof(words);

		if (at - address > BLOCK_MOST || gt_process_read(out->process, at, words, bytes))
			return false;
		for (size_t i = 0; i < bytes / 8; i++)
			if (words[i] == at + i * 8 &&
			    gt_process_read(out->process, words[i] + BLOCK_SELF, &self,
					    sizeof(self)) == 0 &&
			    self == words[i])
				return is_kept_stack(out, stack, self, address);
	}
	return false;
}

/* Whether the thread runs on its own stack, and the address is there. In one mapping there may be others. */
static bool is_on_own_stack(const struct gt_detach *out, pid_t tid,
			    const struct user_regs_struct *registers, uint64_t address)
{
	uint64_t start, bytes;

	return gt_world_is_own_stack(out->process, &out->maps, tid, registers, address) &&
	       (!stack_of_block(out, registers->fs_base, &start, &bytes) ||
		(address - start < bytes && registers->rsp - start < bytes));
}

/*
 * Whether registers that were saved are only left over from a handler that has returned, as far as the frame
 * itself and the threads' stack pointers tell. They are where they stand, as a handler's frame, on an alternate stack (the
 * kernel has saved its bounds beside them) and no thread runs on it; where a thread runs on its own stack
 * and they lead to that one; where they stand below a stack pointer and lead to above it. What stands above
 * a thread's stack pointer was looked at with the thread.
 */
static bool is_left_over(const struct looker *looker, const struct gt_frame_place *saved)
{
	const struct gt_detach *out = looker->out;
	const struct gt_map *stack = gt_maps_find(&out->maps, saved->rsp);
	struct user_regs_struct registers;
	struct {
		uint64_t restorer;
		ucontext_t context;
	} frame = { 0 };
	const stack_t *alternate = &frame.context.uc_stack;
	bool on_alternate, is_frame;

	if (stack == NULL)
		return true;
	is_frame = gt_suspended_is_frame(&out->maps, saved);
	if (is_frame && (is_damaged(out, saved) || is_of_ended_thread(out, stack, saved->rsp)))
		return true;
	gt_process_read(out->process, saved->rip_at - SAVED_RIP - sizeof(frame.restorer), &frame,
			sizeof(frame.restorer) + SAVED_RIP);
	on_alternate = saved->rip_at - (uint64_t)alternate->ss_sp < alternate->ss_size &&
		       gt_world_is_restorer(out->process, &out->maps, frame.restorer);
	for (size_t i = 0; i < looker->all->count; i++) {
		if (gt_thread_registers(looker->all->tids[i], &registers))
			continue;
		if (registers.rsp - (uint64_t)alternate->ss_sp < alternate->ss_size)
			on_alternate = false;
		if (registers.rsp < stack->start || registers.rsp >= stack->end)
			continue;
		if (is_on_own_stack(out, looker->all->tids[i], &registers, saved->rsp) ||
		    (is_frame && saved->rip_at < registers.rsp && saved->rsp >= registers.rsp))
			return true;
	}
	return on_alternate;
}

static int note_suspended(void *data, const struct gt_frame_place *saved)
{
	struct looker *looker = data;
	const uint64_t place = old_place(looker->out, saved->rip);

	if (place)
		return gt_process_write(looker->out->process, saved->rip_at, &place, sizeof(place));
	looker->frames = looker->frames || !is_left_over(looker, saved);
	return 0;
}

/* Stacks that no thread is on now (coroutines): signal frames there. */
static int look_at_stacks(struct looker *looker, const struct gt_stopped_threads *threads)
{
	struct gt_detach *out = looker->out;
	const struct gt_map *last = NULL;
	int error = 0;

	looker->frames = false;
	for (size_t i = 0; !error && i < out->granule_count; i++) {
		uint64_t low = gt_detach_stack_of(&out->granules[i]);
		const struct gt_map *stack = gt_maps_find(&out->maps, low);
		bool used = stack == NULL || stack == last;

		for (size_t k = 0; !used && k < threads->count; k++) {
			struct user_regs_struct registers;

			used = gt_thread_registers(threads->tids[k], &registers) == 0 &&
			       registers.rsp >= stack->start && registers.rsp < stack->end;
		}
		if (!used)
			error = gt_world_signal_frames(out->process, &out->maps,
						       low > stack->start ? low : stack->start,
						       is_ours, note_suspended, looker);
		last = stack;
	}
	out->inside = out->inside || looker->frames;
	return error;
}

/* Sets `quiet`, once and for all: a new thread comes from one that has left, and no slot was left. left: all
 * threads have. One that has can run what was suspended inside, so they have to be outside at once; whoever is
 * inside then is suspended somewhere, which is looked for before the next round. */
static int look_for_quiet(struct looker *looker, bool left)
{
	struct gt_detach *out = looker->out;
	int error;

	if (!left || looker->frames || out->left.count || out->inside)
		return 0;
	out->outside = true;
	if (!out->looked)
		return 0;
	/* No code of ours is entered any more, so all of them were there when the places were found. */
	error = gt_suspended_each(out->process, &out->maps, &out->places, NULL,
				  out->state.suspends || out->elsewhere, is_ours, note_suspended,
				  looker);
	out->quiet = !error && !looker->frames;
	return error;
}

int gt_detach_look_inside(struct gt_detach *out, const struct gt_stopped_threads *threads)
{
	struct looker *looker = calloc(1, sizeof(*looker));
	bool left = true, called;
	int error = 0;

	if (looker == NULL)
		return GT_ENOMEM;
	looker->out = out;
	looker->all = threads;
	out->inside = out->handling = false;
	out->walking = out->state.walking != 0;
	for (size_t i = 0; !error && i < threads->count; i++) {
		struct gt_seen_thread *seen = gt_detach_seen_thread(out, threads->tids[i]);

		error = seen != NULL ? look_at_thread(looker, seen) : GT_ENOMEM;
		left = left && !error && seen->left;
		out->walking = out->walking || error || !seen->past_walks;
	}
	if (!error)
		error = look_at_stacks(looker, threads);
	if (!error && !out->quiet)
		error = look_for_quiet(looker, left);
	/* A call that we have made comes back to us; but it takes no slot any more. */
	called = out->state.called_out != 0;
	out->inside = out->inside || looker->frames || called || out->state.looking != 0;
	out->throwing = called;
	for (size_t i = 0;
	     !error && out->stage >= GT_DETACH_HAS_LEFT && !called && i < threads->count; i++) {
		struct gt_seen_thread *seen = gt_detach_seen_thread(out, threads->tids[i]);

		error = seen == NULL	   ? GT_ENOMEM
			: seen->past_calls ? 0
					   : check_past_calls(looker, seen);
		out->throwing = out->throwing || error || !seen->past_calls;
	}
	out->clean = out->quiet;
	for (size_t i = 0; !error && out->quiet && i < threads->count; i++) {
		struct gt_seen_thread *seen = gt_detach_seen_thread(out, threads->tids[i]);

		error = seen == NULL ? GT_ENOMEM : seen->clean ? 0 : check_clean(looker, seen);
		out->clean = out->clean && !error && seen->clean;
	}
	free(looker);
	return error;
}
