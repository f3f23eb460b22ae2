/* SPDX-License-Identifier: MIT */
/*
 * Detaching: see detach.h. The rounds, with the world stopped in each:
 *  A. the code gets its bytes back, so nobody comes in any more. Only the hooks stay by which
 *     unwinders find what belongs to a stub, until C says that none will ask for one, and the one by
 *     which they do not tell of stubs, until there are none in any slot;
 *  B. return slots that lead to stubs get the mirror's address, so nobody comes back;
 *  C. whoever stands in our code (or has a signal frame there) or holds an address of it is looked
 *     for: while there is one, all go on for a moment, and B and C are done again;
 *  D. %gs is cleared and everything is unmapped, the image last: it is what a later host looks for.
 */
#define _GNU_SOURCE
#include "attach/process/clock.h"
#include "attach/agent/detach_private.h"
#include "attach/agent/editor.h"
#include "attach/agent/inject.h"
#include "attach/agent/probes.h"
#include "attach/process/proc.h"
#include "attach/agent/resolver.h"
#include "attach/process/tracer.h"
#include "attach/agent/world.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATCHES_AT_ONCE 4096u
#define INT3		0xcc
/* The pause after the first round; it doubles a few times. None is shorter than the stop before it:
 * where others want the processors, too, the threads have to get their turn. */
#define PAUSE_NS      1000000ull
#define PAUSE_DOUBLES 3
/* Who was seen inside, or unwinding, has to run meanwhile, or the next round sees the same: so long it is waited
 * for that, unless the process rests. */
#define RUN_NS	    300000ull
#define RUN_MOST_NS 50000000ull
/* Before these, the time that is allowed is so much longer: whoever is inside has hardly run. */
#define ROUNDS_LEAST 50
#define LIMIT_LONGER 4
/* Rounds that wait for lookups under way. */
#define LOOKUPS_MOST 100u
/* Rounds for which the hooks of prctl and syscall stay: where threads call these all the time, someone is always there. */
#define CALLS_MOST 20u
/* Rounds that wait for walks of V8's: what looks like one may be left over on a stack. */
#define WALKS_MOST 100u

uint64_t gt_detach_find(const struct gt_process *process, const struct gt_maps *maps)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct gt_map *map = &maps->entries[i];
		struct graftrace_agent_image header;

		/* Read and write only: an injection that was not finished. */
		if ((!map->executable && !map->writable) || map->path[0] || map->shared)
			continue;
		if (gt_process_read(process, map->start, &header, sizeof(header)) == 0 &&
		    header.magic == GRAFTRACE_AGENT_MAGIC)
			return map->start;
	}
	return 0;
}

/* Sockets that a host had the process open, and was killed before it had noted them. A pair has
 * inodes behind each other: else these numbers are somebody else's by now. */
static void find_passing(struct gt_detach *out)
{
	struct graftrace_agent_state *state = &out->state;
	int32_t pair[2];
	uint64_t inodes[2] = { 0 };

	if (state->passing[0].descriptor != GRAFTRACE_PASSING)
		return;
	if (gt_process_read(out->process, state->passing[0].inode, pair, sizeof(pair)))
		pair[0] = pair[1] = -1;
	for (int i = 0; i < 2 && pair[0] >= 0 && pair[1] >= 0; i++)
		inodes[i] = gt_proc_socket(out->process->pid, pair[i]);
	memset(state->passing, 0, sizeof(state->passing));
	for (int i = 0; i < 2 && inodes[0] && inodes[1] == inodes[0] + 1; i++) {
		state->passing[i].descriptor = (uint64_t)pair[i];
		state->passing[i].inode = inodes[i];
	}
}

bool gt_detach_region(const struct gt_detach *out, uint32_t index, struct graftrace_region *page)
{
	const uint64_t start = out->state.regions[index].start;
	const uint64_t bytes = out->state.regions[index].bytes;

	return start && gt_process_read(out->process, start, page, sizeof(*page)) == 0 &&
	       page->journal >= start && page->journal - start <= bytes &&
	       page->journal_used <= page->journal_room &&
	       page->journal_mains <= page->journal_used &&
	       (bytes - (page->journal - start)) / sizeof(struct graftrace_patch) >=
		       page->journal_used;
}

static void find_stubs(struct gt_detach *out)
{
	for (uint32_t i = 0; i < out->state.region_count; i++) {
		struct graftrace_region page;
		const bool found = gt_detach_region(out, i, &page);

		out->stubs[i].start = out->state.regions[i].start + GRAFTRACE_REGION_STUBS_OFFSET;
		out->stubs[i].bytes =
			found ? page.journal_mains * (uint64_t)GRAFTRACE_STUB_BYTES : 0;
	}
}

int gt_detach_read_agent(struct gt_detach *out, struct gt_message *message)
{
	struct graftrace_agent_state *state = &out->state;

	if (gt_process_read(out->process, out->image, &out->header, sizeof(out->header)) ||
	    out->header.magic != GRAFTRACE_AGENT_MAGIC || out->header.state_offset > (64u << 20) ||
	    gt_process_read(out->process, out->image + out->header.state_offset, state,
			    sizeof(*state)))
		return gt_fail(message, GT_EFORMAT, "process %d has no agent that can be read",
			       (int)out->process->pid);
	find_passing(out);
	if (state->magic != GRAFTRACE_AGENT_MAGIC) {
		/* Put there, but never filled: nothing is patched. */
		struct graftrace_agent_state empty = { 0 };

		memcpy(empty.passing, state->passing, sizeof(empty.passing));
		*state = empty;
	}
	if (state->region_count > GRAFTRACE_AGENT_REGIONS)
		return gt_fail(message, GT_EFORMAT, "process %d has overwritten the agent's state",
			       (int)out->process->pid);
	find_stubs(out);
	return 0;
}

pid_t gt_detach_host(const struct gt_process *process, uint64_t image)
{
	struct gt_process copy = *process;
	struct gt_detach *out = calloc(1, sizeof(*out));
	struct graftrace_arena arena;
	pid_t host = 0;

	if (out == NULL)
		return 0;
	out->process = &copy;
	out->image = image;
	if (gt_detach_read_agent(out, NULL) == 0 && out->state.arena &&
	    gt_process_read(process, out->state.arena, &arena, sizeof(arena)) == 0 &&
	    arena.magic == GRAFTRACE_ARENA_MAGIC && arena.host_pid && arena.host_pid < 1u << 30 &&
	    gt_process_start_time((pid_t)arena.host_pid) == arena.host_start)
		host = (pid_t)arena.host_pid;
	free(out);
	return host;
}

uint64_t gt_detach_arena(const struct gt_process *process, uint64_t image)
{
	struct gt_process copy = *process;
	struct gt_detach *out = calloc(1, sizeof(*out));
	uint64_t arena = 0;

	if (out == NULL)
		return 0;
	out->process = &copy;
	out->image = image;
	if (gt_detach_read_agent(out, NULL) == 0)
		arena = out->state.arena;
	free(out);
	return arena;
}

bool gt_detach_is_ours(const struct gt_detach *out, uint64_t address)
{
	return address - out->image < out->header.text_bytes || gt_detach_in_region(out, address);
}

bool gt_detach_in_region(const struct gt_detach *out, uint64_t address)
{
	for (uint32_t i = 0; i < out->state.region_count; i++)
		if (address - out->state.regions[i].start < out->state.regions[i].bytes)
			return true;
	return false;
}

bool gt_detach_is_stub_return(const struct gt_detach *out, uint64_t address)
{
	if (address % GRAFTRACE_STUB_BYTES != GRAFTRACE_STUB_RETURN)
		return false;
	for (uint32_t i = 0; i < out->state.region_count; i++)
		if (address - out->stubs[i].start < out->stubs[i].bytes)
			return true;
	return false;
}

/* A: code. */

/* The first stage that does not need the patch: of a hook's jump. It leads to the hook's stub, or to an island with a
 * jump there. *hook: whether it is one. Of any other patch, and of other hooks, the first of all. */
static enum gt_detach_stage needed_before(struct gt_detach *out,
					  const struct graftrace_patch *patch, bool *hook)
{
	uint8_t jump[5], stub[6];
	uint64_t at = patch->address;
	int32_t distance;
	uint32_t site;

	/* one by itself: a breakpoint */
	*hook = patch->bytes == 1;
	memcpy(jump, patch->patched, sizeof(jump));
	if (patch->bytes >= 2 && jump[0] == 0xeb) {
		at += 2 + (uint64_t)(int64_t)(int8_t)jump[1];
		if (gt_process_read(out->process, at, jump, sizeof(jump)))
			return GT_DETACH_HAS_WALKS;
	} else if (patch->bytes < sizeof(jump)) {
		return GT_DETACH_HAS_WALKS;
	}
	memcpy(&distance, jump + 1, sizeof(distance));
	at += sizeof(jump) + (uint64_t)(int64_t)distance;
	if (jump[0] != 0xe9 || !gt_detach_in_region(out, at) ||
	    gt_process_read(out->process, at, stub, sizeof(stub)) || stub[5] != 0xe8)
		return GT_DETACH_HAS_WALKS;
	*hook = stub[0] == 0x48; /* a probe's */
	if (stub[0] != 0x68)
		return GT_DETACH_HAS_WALKS;
	memcpy(&site, stub + 1, sizeof(site));
	if (site >= out->state.hook_count || site >= GRAFTRACE_AGENT_HOOKS)
		return GT_DETACH_HAS_WALKS;
	*hook = true;
	switch (out->state.hooks[site].kind) {
	case GRAFTRACE_HOOK_FIND_OBJECT:
		return GT_DETACH_HAS_NONE;
	case GRAFTRACE_HOOK_ITERATE_PHDR:
		return GT_DETACH_HAS_FINDS;
	case GRAFTRACE_HOOK_UNWIND_BACKTRACE:
		return GT_DETACH_HAS_LOOKUPS;
	case GRAFTRACE_HOOK_PRCTL:
	case GRAFTRACE_HOOK_SYSCALL:
		/* A sandbox must not meet a thread in a call of the agent's: it is waited for. */
		return out->keeps_calls ? GT_DETACH_HAS_LOOKUPS : GT_DETACH_HAS_WALKS;
	default:
		return GT_DETACH_HAS_WALKS;
	}
}

/* Whether an appended entry of the journal stays for now: such a hook's jump, and what follows it
 * up to the next hook's: its patches elsewhere. */
static bool is_kept(struct gt_detach *out, const struct graftrace_patch *patch,
		    enum gt_detach_stage stage, bool *keeps)
{
	bool hook;
	enum gt_detach_stage needed = needed_before(out, patch, &hook);

	if (hook)
		*keeps = stage < needed && out->kept_count < GT_DETACH_KEPT;
	if (needed && *keeps) {
		out->kept[out->kept_count].address = patch->address;
		out->kept[out->kept_count++].bytes = patch->bytes;
	}
	return *keeps;
}

static int undo_patch(struct gt_detach *out, struct gt_editor *code,
		      const struct graftrace_patch *patch)
{
	static const uint8_t nop5[5] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	const uint8_t *bytes;
	uint32_t same = 0;

	if (!patch->bytes || patch->bytes > sizeof(patch->original))
		return 0;
	bytes = gt_editor_look(code, patch->address, patch->bytes);
	if (bytes == NULL || memcmp(bytes, patch->original, patch->bytes) == 0)
		return 0; /* unloaded, or off */
	if (memcmp(bytes, patch->patched, patch->bytes) == 0 ||
	    (patch->neutral && patch->bytes == sizeof(nop5) &&
	     memcmp(bytes, nop5, sizeof(nop5)) == 0))
		return gt_editor_put(code, patch->address, patch->original, patch->bytes);
	/* A breakpoint in the midst of our bytes, which will put one of them back some day? Or
	 * another object at the same place? */
	for (uint32_t i = 0; i < patch->bytes; i++)
		same += bytes[i] == patch->patched[i];
	if (same + 1 >= patch->bytes) {
		out->foreign = true;
		out->breakpoint = out->breakpoint || bytes[0] == INT3;
	}
	return 0;
}

struct undoing {
	struct gt_detach *out;
	struct gt_editor *code;
	enum gt_detach_stage stage;
	bool keeps;
};

static int undo_unless_kept(void *data, const struct graftrace_patch *patch)
{
	struct undoing *undoing = data;

	if (undoing->stage < GT_DETACH_HAS_NONE &&
	    is_kept(undoing->out, patch, undoing->stage, &undoing->keeps))
		return 0;
	return undo_patch(undoing->out, undoing->code, patch);
}

int gt_detach_each_patch(const struct gt_detach *out, uint64_t journal, uint32_t first,
			 uint32_t end, int (*each)(void *data, const struct graftrace_patch *patch),
			 void *data)
{
	struct graftrace_patch *patches = malloc(PATCHES_AT_ONCE * sizeof(*patches));
	int error = patches != NULL ? 0 : GT_ENOMEM;

	while (!error && first < end) {
		uint32_t count = end - first;

		if (count > PATCHES_AT_ONCE)
			count = PATCHES_AT_ONCE;
		error = gt_process_read(out->process, journal + (uint64_t)first * sizeof(*patches),
					patches, count * sizeof(*patches));
		for (uint32_t i = 0; !error && i < count; i++)
			error = each(data, &patches[i]);
		first += count;
	}
	free(patches);
	return error;
}

static int undo_range(struct gt_detach *out, struct gt_editor *code, uint64_t journal,
		      uint32_t first, uint32_t end, enum gt_detach_stage stage)
{
	struct undoing undoing = { out, code, stage, false };
	int error = gt_detach_each_patch(out, journal, first, end, undo_unless_kept, &undoing);

	return error ? error : gt_editor_flush(code);
}

/* Functions' jumps first, then hooks' and the patches elsewhere that they needed. */
static int undo_code(struct gt_detach *out, const struct gt_stopped_threads *threads,
		     enum gt_detach_stage stage)
{
	struct gt_editor *code = malloc(sizeof(*code));
	int error = code != NULL ? gt_detach_leave_jumps(out, threads) : GT_ENOMEM;

	out->kept_count = 0;
	for (int pass = 0; !error && pass < 2; pass++) {
		for (uint32_t i = 0; !error && i < out->state.region_count; i++) {
			struct graftrace_region page;

			if (!gt_detach_region(out, i, &page))
				continue;
			gt_editor_init(code, out->process);
			error = undo_range(out, code, page.journal, pass ? page.journal_mains : 0,
					   pass ? page.journal_used : page.journal_mains,
					   pass ? stage : GT_DETACH_HAS_NONE);
		}
	}
	free(code);
	return error;
}

void gt_detach_free(struct gt_detach *out)
{
	free(out->granules);
	free(out->left.at);
	free(out->restored.at);
	free(out->fixed.at);
	free(out->threads);
	gt_suspended_free(&out->places);
	for (size_t i = 0; i < out->wanted_count; i++)
		gt_detach_free_walk(&out->wanted[i]);
	free(out);
}

/* Sets a uint32_t of the agent's state to 1. */
static int set_flag(const struct gt_detach *out, size_t offset)
{
	return gt_agent_set_flag(out->process, out->image, &out->header, offset);
}

/* B and C. */
static int put_back_and_look(struct gt_detach *out, const struct gt_stopped_threads *threads,
			     struct gt_message *message)
{
	int error = gt_process_maps(out->process->pid, &out->maps, message);

	if (error)
		return error;
	error = gt_detach_put_back(out, threads);
	if (!error)
		error = gt_detach_look_inside(out, threads);
	gt_maps_free(&out->maps);
	return error;
}

/* Whether somebody needs one of the last hooks, for the agent's own frames. Lookups, which are short, may be under way at
 * each stop, where many threads throw: they are waited for only so long. */
static bool needs_lookups(struct gt_detach *out)
{
	return !out->clean || out->throwing || out->handling ||
	       (out->state.looking && out->lookup_rounds++ < LOOKUPS_MOST);
}

/*
 * One stage a round:
 *  1. No slot leads to us any more: there is nothing that a walk would have to keep quiet about.
 *  2. Those that have begun in the hook of walks have ended. From now on the agent makes no calls of the program's
 *     that may throw.
 *  3. Those that it has made have ended, and their exceptions have landed; no signal's handler runs on top of the
 *     agent's code, whose frames it may walk over: the hook of dl_iterate_phdr goes.
 *  4. In the next round, under the same conditions, that of _dl_find_object.
 */
static int undo_hooks(struct gt_detach *out, const struct gt_stopped_threads *threads)
{
	const enum gt_detach_stage next = out->stage + 1;
	bool ready = false;
	int error;

	if (!out->kept_count && out->clean)
		out->stage = GT_DETACH_HAS_NONE;
	switch (out->stage) {
	case GT_DETACH_HAS_WALKS:
		ready = out->quiet;
		break;
	case GT_DETACH_HAS_LOOKUPS:
		ready = out->clean && !out->walking;
		break;
	case GT_DETACH_HAS_LEFT:
	case GT_DETACH_HAS_FINDS:
		ready = !needs_lookups(out);
		break;
	case GT_DETACH_HAS_NONE:
		break;
	}
	if (!ready)
		return 0;
	error = next == GT_DETACH_HAS_LEFT
			? set_flag(out, offsetof(struct graftrace_agent_state, leaving))
			: undo_code(out, threads, next);
	if (!error)
		out->stage = next;
	return error;
}

/* One stop of the world. *done: all is out, or the process has executed another program. */
static int round_of(struct gt_detach *out, int limit_ms, bool first, bool *done,
		    struct gt_message *message)
{
	struct gt_stopped_threads threads;
	bool walked = false;
	uint64_t start = gt_monotonic_ns();
	int error = gt_world_stop(out->process, &threads, limit_ms, message);

	if (error) {
		*done = gt_process_has_executed(out->process);
		return *done ? 0 : error;
	}
	out->rounds++;
	out->clean = false;
	error = gt_detach_read_agent(out, message);
	if (out->rounds == CALLS_MOST)
		out->keeps_calls = false;
	if (!error && (first || (out->rounds == CALLS_MOST && out->stage == GT_DETACH_HAS_WALKS)))
		error = undo_code(out, &threads, GT_DETACH_HAS_WALKS);
	if (!error)
		error = gt_detach_read_granules(out);
	/* A walk of V8's that holds a place of the mirror may write there: all waits for it. */
	if (!error && out->walks < WALKS_MOST)
		walked = gt_resolver_in_use(out->process, &out->header, out->image, &out->state,
					    &threads);
	out->walks += walked;
	if (!error && !walked)
		error = put_back_and_look(out, &threads, message);
	if (!error && !walked)
		error = undo_hooks(out, &threads);
	*done = !error && out->stage == GT_DETACH_HAS_NONE && !out->inside && !out->foreign &&
		!walked;
	if (*done)
		error = gt_detach_unmap(out, &threads, message);
	gt_threads_resume(out->process, &threads);
	start = gt_monotonic_ns() - start;
	out->stop_ns = start;
	if (out->tracee != NULL && start > out->tracee->left_ns)
		out->tracee->left_ns = start;
	if (error && gt_process_is_ending(out->process))
		return gt_fail(message, GT_EGONE, "process %d has ended", (int)out->process->pid);
	if (!error)
		return 0;
	/* In the memory of another program nothing is ours. */
	*done = gt_process_has_executed(out->process);
	return *done ? 0
		     : gt_fail(message, error, "cannot put process %d back as it was",
			       (int)out->process->pid);
}

/* Threads that wait for a host that has been killed need not: after it nobody waits for long. */
static void end_waits(struct gt_detach *out)
{
	if (gt_detach_read_agent(out, NULL) == 0)
		set_flag(out, offsetof(struct graftrace_agent_state, deserted));
}

/* Where contexts are saved that no thread runs, once all threads were seen outside. */
static int look_for_suspended(struct gt_detach *out)
{
	int error = 0;

	if (out->outside && !out->looked) {
		error = gt_suspended_look(out->process, &out->places);
		out->looked = error == 0;
	}
	return error == GT_ENOMEM ? error : 0;
}

/* CPU time of all threads of the process (ns); 0: not known. */
static uint64_t run_time(const struct gt_process *process)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(process->pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
		return 0;
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Until the next round; false: it takes too long. */
static bool pause_for(struct gt_detach *out, uint64_t begun_ms, uint64_t limit_ms)
{
	uint32_t doubles = out->rounds - 1 < PAUSE_DOUBLES ? out->rounds - 1 : PAUSE_DOUBLES;
	uint64_t ns = PAUSE_NS << doubles, passed = gt_monotonic_ms() - begun_ms;
	const uint64_t ran = run_time(out->process);
	struct timespec pause;
	uint64_t paused = 0;

	if (passed > limit_ms * (out->rounds < ROUNDS_LEAST ? LIMIT_LONGER : 1))
		return false;
	if (ns < out->stop_ns)
		ns = out->stop_ns;
	pause = (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	do {
		nanosleep(&pause, NULL);
		paused += ns;
	} while ((out->inside || !out->clean) && out->runs && paused < RUN_MOST_NS &&
		 run_time(out->process) - ran < RUN_NS);
	out->runs = out->runs || run_time(out->process) - ran >= RUN_NS;
	return true;
}

static int detach(struct gt_process *process, struct gt_tracee *tracee, int limit_ms,
		  void (*led_nowhere)(void *data), void *data, enum gt_detach_left *left,
		  struct gt_message *message)
{
	struct gt_detach *out = calloc(1, sizeof(*out));
	uint64_t start = gt_monotonic_ms(), magic = 0;
	bool done = false;
	struct gt_maps maps;
	int error = 0;

	*left = GT_DETACH_ALL_GONE;
	if (out == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory to detach");
	out->process = process;
	/* Who is answered after the first round may have taken away what the agent needs: no call leads there then. */
	out->keeps_calls = led_nowhere == NULL;
	/* A child that has executed something else has another agent, or none. */
	if (tracee != NULL &&
	    gt_process_read(process, tracee->agent.image, &magic, sizeof(magic)) == 0 &&
	    magic == GRAFTRACE_AGENT_MAGIC) {
		out->tracee = tracee;
		out->image = tracee->agent.image;
		gt_probes_leave(tracee);
	} else {
		error = gt_process_maps(process->pid, &maps, message);
		if (!error) {
			out->image = gt_detach_find(process, &maps);
			gt_maps_free(&maps);
		}
		/* Who is answered goes on when no call leads to the agent, and not before. */
		if (!error && out->image && led_nowhere == NULL)
			end_waits(out);
	}
	if (!error && out->image && gt_detach_read_agent(out, NULL) == 0 &&
	    gt_detach_has_jumps(out) && gt_suspended_look(process, &out->places) == GT_ENOMEM)
		error = gt_fail(message, GT_ENOMEM, "no memory to detach");
	while (!error && !done && out->image) {
		error = round_of(out, limit_ms, out->rounds == 0, &done, message);
		gt_detach_walk(out);
		if (!error && led_nowhere != NULL)
			led_nowhere(data);
		if (!error && !done && look_for_suspended(out))
			error = gt_fail(message, GT_ENOMEM, "no memory to detach");
		if (!error && !done &&
		    ((out->foreign && out->stage == GT_DETACH_HAS_NONE) ||
		     !pause_for(out, start, (uint64_t)limit_ms)))
			break;
	}
	if (!error && !done && out->image)
		*left = out->breakpoint ? GT_DETACH_LEFT_BREAKPOINT
			: out->foreign	? GT_DETACH_LEFT_PATCH
					: GT_DETACH_LEFT_THREAD;
	gt_detach_free(out);
	return error;
}

struct detach_work {
	struct gt_process *process;
	struct gt_tracee *tracee;
	int limit_ms;
	void (*led_nowhere)(void *data);
	void *data;
	enum gt_detach_left *left;
	struct gt_message *message;
};

static int detach_work(void *data)
{
	const struct detach_work *work = data;

	return detach(work->process, work->tracee, work->limit_ms, work->led_nowhere, work->data,
		      work->left, work->message);
}

int gt_detach_process(struct gt_process *process, struct gt_tracee *tracee, int limit_ms,
		      enum gt_detach_left *left, struct gt_message *message)
{
	struct detach_work work = {
		process, tracee, limit_ms, NULL, NULL, left, message,
	};

	return gt_tracer_run(detach_work, &work);
}

int gt_detach_waiting(struct gt_process *process, struct gt_tracee *tracee, int limit_ms,
		      void (*led_nowhere)(void *data), void *data, enum gt_detach_left *left,
		      struct gt_message *message)
{
	struct detach_work work = {
		process, tracee, limit_ms, led_nowhere, data, left, message,
	};

	return gt_tracer_run(detach_work, &work);
}
