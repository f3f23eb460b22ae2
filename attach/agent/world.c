/* SPDX-License-Identifier: MIT */
/*
 * The stopped world: see world.h.
 */
#define _GNU_SOURCE
#include "attach/agent/world.h"
#include "attach/agent/suspended.h"
#include "attach/process/seccomp.h"
#include "attach/agent/probes.h"
#include "attach/agent/tracee_private.h"
#include "attach/process/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

/* The kernel's rt_sigframe is a return address (the restorer of the C library), then a ucontext,
 * whose saved rsp and rip stand here: */
#define FRAME_RSP  (8 + 40 + 15 * 8)
#define FRAME_RIP  (8 + 40 + 16 * 8)
#define STACK_MOST (64ull << 20)
/* Of stacks that signal frames lead to, one after the other. */
#define STACKS_MOST	8
#define CHANGE_LIMIT_MS 5000
/* Between two stops: as long as the one before it was, but within these. */
#define PAUSE_LEAST_MS 20
#define PAUSE_MOST_MS  500

int gt_world_stop(struct gt_process *process, struct gt_stopped_threads *threads, int limit_ms,
		  struct gt_message *message)
{
	const uint64_t start = gt_monotonic_ms();
	uint64_t begun, took;

	for (begun = start;; begun = gt_monotonic_ms()) {
		pid_t late = 0;
		int error = gt_threads_stop(process, threads, message);
		bool too_long;

		/* GT_EAGAIN: a debugger may be about to leave */
		if (error && error != GT_EAGAIN)
			return error;
		for (size_t i = 0; !error && i < threads->count; i++)
			if (threads->late[i])
				late = threads->tids[i];
		if (!error && !late)
			return 0;
		if (!error)
			gt_threads_resume(process, threads);
		too_long = gt_monotonic_ms() - start > (uint64_t)limit_ms;
		if (error && too_long)
			return GT_EPERM;
		if (too_long)
			return gt_fail(
				message, GT_EBUSY,
				"thread %d of process %d sleeps in the kernel where it cannot "
				"be stopped (it waits for a vfork child, a disk or a file "
				"server): try again later",
				(int)late, (int)process->pid);
		/* Where others want the processors, too, the threads have to get their turn. Not so that each vfork
		 * child among them waits for us, until the next stop finds its parent waiting for it. */
		took = gt_monotonic_ms() - begun;
		gt_threads_pause(process, took < PAUSE_LEAST_MS	 ? PAUSE_LEAST_MS
					  : took > PAUSE_MOST_MS ? PAUSE_MOST_MS
								 : (uint32_t)took);
	}
}

/* mov $15, %rax; syscall */
static const uint8_t restorer_code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
#define RESTORER_CALL 7 /* where its second instruction begins */

/* Any word may come here: one that points below a stack makes the kernel extend that if it is read.
 */
bool gt_world_is_restorer(const struct gt_process *process, const struct gt_maps *maps,
			  uint64_t address)
{
	const struct gt_map *map = gt_maps_find(maps, address);
	uint8_t bytes[sizeof(restorer_code)];

	return map != NULL && map->executable &&
	       gt_process_read(process, address, bytes, sizeof(bytes)) == 0 &&
	       memcmp(bytes, restorer_code, sizeof(bytes)) == 0;
}

static uint64_t frames_begin(const struct gt_process *process, const struct gt_maps *maps,
			     const struct user_regs_struct *registers)
{
	static const uint32_t stands[] = { 0, RESTORER_CALL, sizeof(restorer_code) };

	for (size_t i = 0; i < sizeof(stands) / sizeof(*stands); i++)
		if (gt_world_is_restorer(process, maps, registers->rip - stands[i]))
			return registers->rsp - sizeof(uint64_t);
	return registers->rsp;
}

/* As much of the stack's mapping above `at` as can be read, up to the thread's block if that lies there (many stacks may
 * lie in one mapping). *count words; NULL: none. */
static uint64_t *read_stack(const struct gt_process *process, const struct gt_map *stack,
			    uint64_t at, uint64_t block, size_t *count)
{
	uint64_t bytes = (block > at && block < stack->end ? block : stack->end) - at;
	uint64_t *words;

	if (bytes > STACK_MOST)
		bytes = STACK_MOST;
	words = malloc(bytes + 8);
	if (words != NULL && gt_process_read(process, at, words, bytes)) {
		free(words);
		return NULL;
	}
	*count = bytes / 8;
	return words;
}

/* block: of the thread that runs there; 0: not known. */
static int signal_frames(const struct gt_process *process, const struct gt_maps *maps, uint64_t sp,
			 uint64_t block, bool (*wants)(const void *data, uint64_t rip),
			 int (*each)(void *data, const struct gt_frame_place *place), void *data)
{
	uint64_t restorer = 0, other = 0;
	int result = 0;

	for (int stacks = 0; !result && sp && stacks < STACKS_MOST; stacks++) {
		const struct gt_map *stack = gt_maps_find(maps, sp);
		uint64_t at = sp & ~7ull, *words, next = 0;
		size_t count;

		if (stack == NULL || !stack->writable)
			return 0;
		words = read_stack(process, stack, at, block, &count);
		if (words == NULL)
			return 0;
		for (size_t i = 0; !result && i + FRAME_RIP / 8 + 2 < count; i++) {
			uint64_t rip = words[i + FRAME_RIP / 8], saved = words[i + FRAME_RSP / 8];
			struct gt_frame_place place = { at + i * 8 + FRAME_RIP, rip, saved };
			bool leaves = saved < stack->start || saved >= stack->end;

			const uint64_t *state = &words[i + FRAME_RIP / 8 + 1];

			if (words[i] < 65536)
				continue;
			/* Most words fail here; only those that would matter are looked up. */
			if (!wants(data, rip) && !(leaves && gt_maps_find(maps, saved) != NULL))
				continue;
			/* A traced handler returns to its stub: as its other calls do, which are none. */
			if (words[i] != restorer && !gt_world_is_state(state[0], state[1])) {
				if (words[i] == other ||
				    !gt_world_is_restorer(process, maps, words[i])) {
					other = words[i];
					continue;
				}
				restorer = words[i];
			}
			if (leaves)
				next = saved;
			if (wants(data, rip))
				result = each(data, &place);
		}
		free(words);
		sp = next;
	}
	return result;
}

int gt_world_signal_frames(const struct gt_process *process, const struct gt_maps *maps,
			   uint64_t sp, bool (*wants)(const void *data, uint64_t rip),
			   int (*each)(void *data, const struct gt_frame_place *place), void *data)
{
	return signal_frames(process, maps, sp, 0, wants, each, data);
}

int gt_world_thread_frames(const struct gt_process *process, const struct gt_maps *maps,
			   const struct user_regs_struct *registers,
			   bool (*wants)(const void *data, uint64_t rip),
			   int (*each)(void *data, const struct gt_frame_place *place), void *data)
{
	return signal_frames(process, maps, frames_begin(process, maps, registers),
			     registers->fs_base, wants, each, data);
}

static bool has_guard(const struct gt_maps *maps, const struct gt_map *stack)
{
	const struct gt_map *below = gt_maps_find(maps, stack->start - 1);

	return below != NULL && !below->readable && !below->writable && !below->executable;
}

bool gt_world_is_own_stack(const struct gt_process *process, const struct gt_maps *maps, pid_t tid,
			   const struct user_regs_struct *registers, uint64_t address)
{
	const struct gt_map *stack = gt_maps_find(maps, registers->rsp);

	if (stack == NULL || address < stack->start || address >= stack->end)
		return false;
	if (tid == process->pid && strcmp(stack->path, "[stack]") == 0)
		return true;
	/* A thread that has forked is the child's first one. The first one's block lies elsewhere, by
	 * chance in one mapping with other stacks: no guard is below them. */
	return registers->fs_base < stack->end && registers->rsp < registers->fs_base &&
	       address < registers->fs_base && (tid != process->pid || has_guard(maps, stack));
}

static bool stands_in_displaced(const void *data, uint64_t rip)
{
	const struct gt_tracee *tracee = data;

	return gt_edits_displaced(&tracee->edits, rip) != NULL;
}

static uint64_t place_of_displaced(const void *data, uint64_t rip)
{
	const struct gt_tracee *tracee = data;
	const struct gt_displaced *displaced = gt_edits_displaced(&tracee->edits, rip);

	return displaced != NULL ? gt_edits_new_place(displaced, rip) : 0;
}

static int move_frame(void *data, const struct gt_frame_place *frame)
{
	struct gt_tracee *tracee = data;
	uint64_t place = place_of_displaced(tracee, frame->rip);

	return place ? gt_process_write(&tracee->process, frame->rip_at, &place, sizeof(place)) : 0;
}

/* Where the thread goes on, 0: where it is. A system call that will be restarted goes back by the
 * two bytes of its instruction. */
static uint64_t moved_rip(const struct gt_edits *edits, const struct user_regs_struct *registers)
{
	const bool restarts = gt_thread_restarts(registers);
	const struct gt_displaced *displaced;
	uint64_t rip = registers->rip, place;

	if (restarts) {
		displaced = gt_edits_displaced(edits, rip - 2);
		place = displaced != NULL ? gt_edits_new_place(displaced, rip - 2) : 0;
		if (place)
			return place + 2;
	}
	displaced = gt_edits_displaced(edits, rip);
	/* The call is not the first of what is replaced, but stands before a jump that goes again: it stays. */
	if (restarts && displaced != NULL && displaced->start != rip - 2)
		return 0;
	return displaced != NULL ? gt_edits_new_place(displaced, rip) : 0;
}

/* Out of what is replaced, and %gs where the agent needs it; and contexts that no thread runs, at these places.
 * copies: wherever they stand, as where a thread runs on a stack that is not its own (coroutines that switch by
 * code of their own). */
static int move_threads(struct gt_tracee *tracee, const struct gt_stopped_threads *threads,
			const struct gt_suspended_places *places, const struct gt_maps *maps,
			bool copies)
{
	struct gt_edits *edits = &tracee->edits;
	int error = 0;

	gt_edits_sort_displaced(edits);
	for (size_t i = 0; !error && i < threads->count; i++) {
		struct user_regs_struct registers;
		bool changed = false;
		uint64_t place;

		if (threads->late[i] || gt_thread_registers(threads->tids[i], &registers))
			continue;
		if (edits->displaced_count) {
			error = gt_world_thread_frames(&tracee->process, maps, &registers,
						       stands_in_displaced, move_frame, tracee);
			copies = copies ||
				 !gt_world_is_own_stack(&tracee->process, maps, threads->tids[i],
							&registers, registers.rsp);
			place = moved_rip(edits, &registers);
			if (place) {
				registers.rip = place;
				changed = true;
			}
		}
		if (tracee->entering) {
			registers.gs_base =
				tracee->agent.image + tracee->agent.header.null_block_offset;
			changed = true;
		}
		if (!error && changed)
			error = gt_thread_set_registers(threads->tids[i], &registers);
		if (error == GT_EGONE)
			error = 0; /* killed meanwhile */
	}
	if (!error && edits->displaced_count)
		error = gt_suspended_each(&tracee->process, maps, places, threads, copies,
					  stands_in_displaced, move_frame, tracee);
	return error;
}

int gt_world_check_gs(struct gt_process *process, uint64_t gs_base, struct gt_message *message)
{
	uint8_t byte;

	if (!gs_base || gt_process_read(process, gs_base, &byte, 1))
		return 0; /* or one that points nowhere: left over */
	return gt_fail(
		message, GT_ENOTSUP,
		"process %d uses the %%gs register itself (is it Wine?): it cannot be traced",
		(int)process->pid);
}

/* What a thread has in %gs now it may have noted elsewhere as well: once traced, it may put there
 * no address at which the agent finds nothing. */
static int check_registers(struct gt_tracee *tracee, const struct gt_stopped_threads *threads,
			   struct gt_message *message)
{
	const uint64_t ours = tracee->agent.image + tracee->agent.header.null_block_offset;
	struct user_regs_struct registers;
	int error = 0;

	for (size_t i = 0; !error && i < threads->count; i++)
		if (!threads->late[i] && !gt_thread_registers(threads->tids[i], &registers) &&
		    registers.gs_base != ours)
			error = gt_world_check_gs(&tracee->process, registers.gs_base, message);
	return error;
}

/* The agent is still where it was put: no exec has come in between. */
static bool is_same_image(const struct gt_tracee *tracee)
{
	uint64_t magic = 0;

	return gt_process_read(&tracee->process, tracee->agent.image, &magic, sizeof(magic)) == 0 &&
	       magic == tracee->agent.header.magic;
}

/* What was prepared while the process ran, it may have unloaded since. */
static int look_again(struct gt_tracee *tracee, struct gt_maps *maps, struct gt_message *message)
{
	int error = tracee->edits.count ? gt_process_maps(tracee->process.pid, maps, message) : 0;

	/* Of a process that ends none are told. */
	if (!error && maps->count)
		gt_tracee_drop_unloaded(tracee, maps);
	return error;
}

/* Whether it is still as it was when the changes were prepared, while it ran. *maps: of now, if code changes. */
static int check_stopped(struct gt_tracee *tracee, const struct gt_stopped_threads *threads,
			 struct gt_maps *maps, struct gt_message *message)
{
	int error = 0;

	if (!is_same_image(tracee))
		return gt_fail(message, GT_EAGAIN, "process %d has executed another program",
			       (int)tracee->process.pid);
	if (tracee->entering)
		error = check_registers(tracee, threads, message);
	/* From here on a hook sees it enter a sandbox. */
	if (!error && tracee->entering)
		error = gt_seccomp_check_image(tracee->process.pid, threads->tids[0], message);
	return error ? error : look_again(tracee, maps, message);
}

int gt_tracee_apply(struct gt_tracee *tracee, struct gt_message *message)
{
	struct gt_suspended_places places = { 0 };
	struct gt_stopped_threads threads;
	struct gt_maps maps = { 0 };
	bool displaces = tracee->edits.displaced_count, copies;
	uint64_t start;
	int error = 0;

	if (!tracee->edits.count && !tracee->entering)
		return 0;
	copies = displaces && gt_suspended_known(tracee);
	if (displaces && gt_suspended_look(&tracee->process, &places) == GT_ENOMEM)
		error = gt_fail(message, GT_ENOMEM, "no memory to look through process %d",
				(int)tracee->process.pid);
	start = gt_monotonic_ns();
	if (!error)
		error = gt_world_stop(&tracee->process, &threads, CHANGE_LIMIT_MS, message);
	if (error) {
		gt_suspended_free(&places);
		return error;
	}
	error = check_stopped(tracee, &threads, &maps, message);
	if (!error && move_threads(tracee, &threads, &places, &maps, copies))
		error = gt_fail(message, GT_EIO, "cannot move threads of process %d",
				(int)tracee->process.pid);
	if (!error && gt_edits_apply(&tracee->edits, &tracee->process))
		error = gt_process_is_ending(&tracee->process)
				? gt_fail(message, GT_EGONE, "process %d has ended",
					  (int)tracee->process.pid)
				: gt_fail(message, GT_EIO, "cannot patch process %d",
					  (int)tracee->process.pid);
	if (!error)
		gt_probes_settle(tracee);
	gt_threads_resume(&tracee->process, &threads);
	gt_suspended_free(&places);
	gt_maps_free(&maps);
	start = gt_monotonic_ns() - start;
	if (start > tracee->stopped_ns)
		tracee->stopped_ns = start;
	gt_edits_clear(&tracee->edits);
	return error;
}
