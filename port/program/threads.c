/* SPDX-License-Identifier: MIT */
/*
 * Threads of the traced program: each gets a block (what %gs points to), a base context and a
 * stream at its first traced call. Nobody tells the agent that a thread was born or died: a new
 * thread inherits its creator's %gs and is recognised by its thread pointer; dead ones are looked
 * for when new ones come. A program may use %gs itself for a while, and give back what it found
 * there: meanwhile its blocks are found by thread pointers, in the slow half.
 *
 * Blocks lie in memory that fork wipes (MADV_WIPEONFORK), so a child, by whichever system call it
 * came, starts with none; what must survive (frames, contexts) lies in `struct home`. Blocks are
 * never unmapped: some thread's inherited %gs may still point there.
 *
 * A fork's child is known by a mark in a page of the image, which fork wipes and which was set
 * before any thread could look. The one thread that finds it wiped and claims it (claim_child)
 * takes the locks from threads that are not here, and frees what was theirs; all others wait. Since
 * a fork can come at any instruction of another thread, what is freed is first taken out of its
 * home.
 */
#include "port/program/agent.h"
#include "core/record/port.h"
#include <graftrace/selected.h>
#include "port/program/syscall.h"
#include "port/program/syscalls.h"
#include "port/program/traps.h"

#define CHUNK_BLOCKS GRAFTRACE_BLOCKS
#define CHUNKS	     GRAFTRACE_BLOCK_CHUNKS

_Static_assert(sizeof(struct gt_thread) == GRAFTRACE_BLOCK_BYTES, "as the host knows it");

/* The part of a thread that survives a fork. */
struct home {
	struct gt_thread *block;
	struct gt_context base;
	struct gt_context *running;
	struct graftrace_stream *stream;
	struct graftrace_profile_entry **profile; /* gt_thread.profile */
	struct gt_thread *left_out; /* gt_threads_left_out_block(); stays with the home */
	uint64_t pointer;	    /* gt_threads_pointer() */
	uint32_t generation;	    /* of the stream, as claimed by this thread */
	uint32_t tid;		    /* 0 = free */
	bool apart; /* made while the program used %gs itself: %gs may still have its value */
};

static struct {
	struct gt_thread *blocks;
	struct home *homes;
	struct gt_open_calls *open_calls;
} chunks[CHUNKS];
static uint32_t chunk_count;
static uint32_t process_id;
static uint32_t context_numbers;
static uint32_t collector;   /* where the search for dead threads continues */
static uint32_t lowest_free; /* all homes below are in use */
static uint32_t homes_used;  /* all homes from here on are free */
static uint64_t
	stack_note; /* offset in glibc's thread descriptor where the stack is noted; 0 = unknown */

static bool any_apart; /* some home was made apart */

static uint64_t dropped; /* count for blocks without a stream */

uint64_t gt_threads_pointer(void)
{
	uint64_t pointer;
	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
}

static uint64_t get_gs(void)
{
	uint64_t base = 0;
	if (gt_agent_state.flags & GRAFTRACE_AGENT_FSGSBASE)
		__asm__ volatile("rdgsbase %0" : "=r"(base));
	else
		gt_syscall3(SYS_ARCH_PRCTL, 0x1004 /* ARCH_GET_GS */, (long)&base, 0);
	return base;
}

/* 0: static programs call functions before they set up thread-local storage. */
static uint64_t get_fs(void)
{
	uint64_t base = 0;
	if (gt_agent_state.flags & GRAFTRACE_AGENT_FSGSBASE)
		__asm__("rdfsbase %0" : "=r"(base));
	else
		gt_syscall3(SYS_ARCH_PRCTL, 0x1003 /* ARCH_GET_FS */, (long)&base, 0);
	return base;
}

static void set_gs(uint64_t base)
{
	if (gt_agent_state.flags & GRAFTRACE_AGENT_FSGSBASE)
		__asm__ volatile("wrgsbase %0" : : "r"(base));
	else
		gt_syscall3(SYS_ARCH_PRCTL, 0x1001 /* ARCH_SET_GS */, (long)base, 0);
}

/* Returns the running thread's block, which may be marked as left out; NULL: none. */
static struct gt_thread *block_here(void)
{
	struct gt_thread *self;
	uint64_t owner;
	__asm__ volatile("mov %%gs:0, %0" : "=r"(owner));
	if (owner == 0 || owner != gt_threads_pointer())
		return NULL;
	__asm__ volatile("mov %%gs:%c1, %0" : "=r"(self) : "i"(offsetof(struct gt_thread, self)));
	return self;
}

struct gt_thread *gt_threads_at_hand(void)
{
	return block_here();
}

/* Is it the block that belongs to no thread, gt_threads_left_out_block()? */
static bool is_left_out_block(const struct gt_thread *block)
{
	return block->context == NULL;
}

/* Where the fork's mark is set: this process's number, unless it shares another's memory. 0: unknown. */
static uint32_t owner_of_memory(void)
{
	return process_id != 0 ? process_id : gt_agent_state.process;
}

bool gt_threads_is_vfork_child(void)
{
	uint32_t pid = (uint32_t)gt_syscall3(SYS_GETPID, 0, 0, 0);
	uint32_t owner = owner_of_memory();
	return __atomic_load_n(gt_image_fork, __ATOMIC_ACQUIRE) == GRAFTRACE_FORK_TOLD &&
	       owner != 0 && pid != owner;
}

/* The lock of the thread that reports a fork's child. It is in the page that fork wipes: free in
 * a child. */
static struct gt_lock *telling_lock(void)
{
	return (struct gt_lock *)(gt_image_fork + 1);
}

/* Is this a fork's child that has not been reported yet? Then the caller reports it, sets the
 * mark and releases the lock. */
static bool claim_child(void)
{
	if (__atomic_load_n(gt_image_fork, __ATOMIC_ACQUIRE) == GRAFTRACE_FORK_TOLD)
		return false;
	gt_lock(telling_lock());
	if (__atomic_load_n(gt_image_fork, __ATOMIC_ACQUIRE) == GRAFTRACE_FORK_CHILD) {
		__atomic_store_n(gt_image_fork, GRAFTRACE_FORK_CLAIMED, __ATOMIC_RELEASE);
		return true;
	}
	gt_unlock(telling_lock());
	return false;
}

void gt_threads_tell_of_fork(void)
{
	if (__atomic_load_n(gt_image_fork, __ATOMIC_ACQUIRE) != GRAFTRACE_FORK_TOLD)
		gt_threads_current();
}

uint32_t gt_port_context_number(void)
{
	return 0x80000000u | __atomic_add_fetch(&context_numbers, 1, __ATOMIC_RELAXED);
}

static bool add_chunk(void)
{
	if (chunk_count == CHUNKS)
		return false;
	struct gt_thread *blocks = gt_port_allocate(CHUNK_BLOCKS * sizeof(*blocks) + 4096);
	struct home *homes = gt_port_allocate(CHUNK_BLOCKS * sizeof(*homes));
	struct gt_open_calls *calls = gt_port_allocate(CHUNK_BLOCKS * sizeof(*calls));
	if (blocks == NULL || homes == NULL || calls == NULL)
		return false;
	if (gt_syscall_failed(gt_syscall3(SYS_MADVISE, (long)blocks,
					  (long)(CHUNK_BLOCKS * sizeof(*blocks)),
					  18 /* MADV_WIPEONFORK */)))
		return false;
	for (uint32_t i = 0; i < CHUNK_BLOCKS; i++)
		homes[i].block = &blocks[i];
	chunks[chunk_count].blocks = blocks;
	chunks[chunk_count].homes = homes;
	chunks[chunk_count].open_calls = calls;
	__atomic_store_n(&gt_agent_state.blocks[chunk_count], (uint64_t)blocks, __ATOMIC_RELEASE);
	__atomic_store_n(&chunk_count, chunk_count + 1, __ATOMIC_RELEASE);
	return true;
}

struct gt_thread *gt_port_thread(uint32_t index)
{
	if (index / CHUNK_BLOCKS >= __atomic_load_n(&chunk_count, __ATOMIC_ACQUIRE))
		return NULL;
	return &chunks[index / CHUNK_BLOCKS].blocks[index % CHUNK_BLOCKS];
}

static struct home *home_of(uint64_t block)
{
	uint32_t count = __atomic_load_n(&chunk_count, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t first = (uint64_t)chunks[i].blocks;
		if (block >= first && block < first + CHUNK_BLOCKS * sizeof(struct gt_thread))
			return &chunks[i].homes[(block - first) / sizeof(struct gt_thread)];
	}
	return NULL;
}

struct gt_open_calls *gt_threads_open_calls(const struct gt_thread *thread)
{
	const uint64_t block = (uint64_t)thread;
	uint32_t count = __atomic_load_n(&chunk_count, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t first = (uint64_t)chunks[i].blocks;
		if (block >= first && block < first + CHUNK_BLOCKS * sizeof(struct gt_thread))
			return &chunks[i].open_calls[(block - first) / sizeof(struct gt_thread)];
	}
	return NULL;
}

/* Does %gs have a value of ours, or does the program use the register? */
static bool has_our_gs(void)
{
	uint64_t base = get_gs();
	uint32_t count = __atomic_load_n(&chunk_count, __ATOMIC_ACQUIRE);
	if (base == (uint64_t)&gt_null_block || home_of(base) != NULL)
		return true;
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < CHUNK_BLOCKS; j++)
			if (chunks[i].homes[j].left_out == (struct gt_thread *)base)
				return base != 0;
	return false;
}

/* Returns the running thread's home, whatever %gs has. A dead thread with the same thread
 * pointer had another number. */
static struct home *home_of_thread(uint32_t tid)
{
	uint64_t pointer = gt_threads_pointer();
	uint32_t count = __atomic_load_n(&chunk_count, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = 0; j < CHUNK_BLOCKS; j++) {
			struct home *home = &chunks[i].homes[j];
			if (home->tid == tid && home->pointer == pointer &&
			    home->block->owner == pointer)
				return home;
		}
	}
	return NULL;
}

/* The program has put a base of its own into %gs (a compiled WebAssembly module has its memory
 * there while it runs, also in calls out of it): the value is kept, and the block is searched
 * for. */
static struct gt_thread *find_without_gs(void)
{
	uint32_t tid = (uint32_t)gt_syscall3(SYS_GETTID, 0, 0, 0);
	const struct home *home = home_of_thread(gt_threads_is_vfork_child() ? process_id : tid);
	return home != NULL ? home->block : NULL;
}

struct gt_thread *gt_threads_try_current(void)
{
	struct gt_thread *block = block_here();
	if (block != NULL)
		return is_left_out_block(block) ? NULL : block;
	return has_our_gs() || get_fs() == 0 ? NULL : find_without_gs();
}

static struct home *home_at(uint32_t index)
{
	return &chunks[index / CHUNK_BLOCKS].homes[index % CHUNK_BLOCKS];
}

static void free_number_locked(struct home *home)
{
	uint32_t chunk = 0;
	home->tid = 0;
	while (home < chunks[chunk].homes || home >= chunks[chunk].homes + CHUNK_BLOCKS)
		chunk++;
	uint32_t index = chunk * CHUNK_BLOCKS + (uint32_t)(home - chunks[chunk].homes);
	if (index < lowest_free)
		lowest_free = index;
	while (homes_used > 0 && home_at(homes_used - 1)->tid == 0)
		homes_used--;
}

static void free_home_locked(struct home *home)
{
	struct gt_context *base = &home->base;
	uint64_t low = base->win_low, high = base->win_high;
	struct gt_frame *frames = base->frames, *outgrown = base->outgrown;
	struct graftrace_profile_entry **profile = home->profile;
	bool small = gt_frames_are_small(base);
	gt_context_forget(base);
	/* Removed from the home first: if a fork comes in between, the child frees it again. */
	home->running = NULL;
	home->profile = NULL;
	base->win_low = base->win_high = 0;
	base->frames = base->outgrown = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	gt_mirror_close(low, high);
	if (!small && frames != NULL)
		gt_port_release(gt_frames_memory(frames), gt_frames_bytes(base->capacity));
	if (outgrown != NULL)
		gt_port_release(gt_frames_memory(outgrown), gt_frames_bytes(GT_SOME_FRAMES));
	gt_profile_release(&profile);
	home->block->owner = 0;
	home->stream = NULL;
	free_number_locked(home);
}

/* Frees homes of ended threads; checks two of them for each new thread. */
static void collect_locked(uint32_t pid)
{
	uint32_t looked = 0;
	for (uint32_t i = homes_used; i > 0 && looked < 2; i--) {
		collector = collector + 1 < homes_used ? collector + 1 : 0;
		struct home *home = home_at(collector);
		if (home->tid == 0)
			continue;
		looked++;
		if (gt_syscall3(SYS_TGKILL, pid, home->tid, 0) != -3 /* ESRCH */)
			continue;
		if (home->stream != NULL)
			gt_stream_end(gt_port_arena(), home->stream, home->generation, home->block);
		free_home_locked(home);
	}
}

static struct home *take_home_locked(uint32_t tid)
{
	while (lowest_free < chunk_count * CHUNK_BLOCKS && home_at(lowest_free)->tid != 0)
		lowest_free++;
	if (lowest_free == chunk_count * CHUNK_BLOCKS && !add_chunk())
		return NULL;
	home_at(lowest_free)->tid = tid;
	if (lowest_free >= homes_used)
		homes_used = lowest_free + 1;
	return home_at(lowest_free++);
}

/* Do the two words at that offset of a thread's descriptor describe its stack? is_there: the descriptor is where %fs
 * is based; what a program that is not glibc's has in the word there may be no address at all. */
static bool notes_stack(struct gt_context *base, uint64_t descriptor, bool is_there,
			uint64_t offset)
{
	const uint64_t at = descriptor + offset;
	uint64_t note[2];
	if (offset == 0)
		return false;
	/* the page of %fs:0 is there: its word has been read */
	if (is_there && at >> 12 == descriptor >> 12 &&
	    (at + sizeof(note) - 1) >> 12 == descriptor >> 12)
		memcpy(note, (const void *)at, sizeof(note));
	else if (!gt_peek_bytes(at, note, sizeof(note)))
		return false;
	uint64_t block = note[0], bytes = note[1];
	if (block == 0 || (block & 4095) != 0 || block >= descriptor || bytes < 16384 ||
	    bytes > 1ull << 40 || block + bytes <= descriptor ||
	    block + bytes - descriptor > 1 << 20)
		return false;
	base->low = block;
	base->high = descriptor;
	return true;
}

/* Finds a thread's own stack. The initial thread's is known from the host. glibc notes a
 * thread's stack in its descriptor, at the thread pointer: two words, the address and the size
 * of a block that contains the descriptor. Otherwise it is assumed to be the 8 MiB below the
 * thread pointer. */
static void find_stack(struct gt_context *base, bool initial, uint64_t fs)
{
	uint64_t descriptor = gt_threads_pointer();
	const bool is_there = descriptor == fs;
	base->known = 1;
	if (initial && gt_agent_state.stack_high != 0) {
		base->low = gt_agent_state.stack_low;
		base->high = gt_agent_state.stack_high;
		base->grows = 1;
		return;
	}
	if (notes_stack(base, descriptor, is_there, stack_note))
		return;
	for (uint64_t offset = 0x400; offset < 0x900; offset += 8)
		if (notes_stack(base, descriptor, is_there, offset)) {
			stack_note = offset;
			return;
		}
	base->known = 2;
	base->high = descriptor;
	base->low = descriptor > 8ul << 20 ? descriptor - (8ul << 20) : 65536;
}

bool gt_port_alternate_stack(uint64_t *low, uint64_t *high)
{
	struct {
		uint64_t start;
		uint32_t flags, pad;
		uint64_t bytes;
	} stack = { 0 };
	if (gt_syscall_failed(gt_syscall3(SYS_SIGALTSTACK, 0, (long)&stack, 0)) ||
	    !(stack.flags & 1 /* SS_ONSTACK */))
		return false;
	*low = stack.start;
	*high = stack.start + stack.bytes;
	return true;
}

/* Returns the newest home with this thread pointer. */
static struct home *newest_home(void)
{
	struct home *newest = NULL;
	for (uint32_t i = 0; i < chunk_count; i++) {
		for (uint32_t j = 0; j < CHUNK_BLOCKS; j++) {
			struct home *home = &chunks[i].homes[j];
			if (home->tid != 0 && home->pointer == gt_threads_pointer() &&
			    (newest == NULL || home->generation > newest->generation))
				newest = home;
		}
	}
	return newest;
}

/* In a fork's child only the thread that called fork exists. Its frames are kept, all else is
 * freed. A new thread of the child cannot know whether the home of its creator was its own. */
static struct home *adopt_locked(bool is_new)
{
	struct home *home = has_our_gs() ? home_of(get_gs()) : newest_home();
	/* the fork may have interrupted a change of these */
	lowest_free = 0;
	homes_used = chunk_count * CHUNK_BLOCKS;
	if (home != NULL && (home->tid == 0 || (!is_new && home->pointer != gt_threads_pointer())))
		home = NULL;
	for (uint32_t i = 0; i < chunk_count; i++) {
		for (uint32_t j = 0; j < CHUNK_BLOCKS; j++) {
			struct home *other = &chunks[i].homes[j];
			if (other != home && other->tid != 0)
				free_home_locked(other);
		}
	}
	return home;
}

/* A child of vfork acted for a process that had not been reported yet, reported it as its own,
 * and has ended: what it made belongs to this process. */
static void inherit_locked(uint32_t pid)
{
	uint32_t gone = process_id;
	if (gt_syscall3(SYS_TGKILL, gone, gone, 0) != -3 /* ESRCH */)
		return;
	process_id = pid;
	for (uint32_t i = 0; i < chunk_count; i++)
		for (uint32_t j = 0; j < CHUNK_BLOCKS; j++)
			if (chunks[i].homes[j].tid == gone)
				chunks[i].homes[j].tid = pid;
}

/* Returns the creator of this thread: the new thread has inherited its %gs. 0: the creator was
 * not traced. */
static uint32_t creator_of_thread(void)
{
	const struct home *home = home_of(get_gs());
	return home != NULL ? home->tid : 0;
}

/* set_ftrace_pid and set_ftrace_notrace_pid. The thread is added to its creator's lists, if
 * children follow. */
static bool is_left_out(struct graftrace_arena *arena, uint32_t tid, uint32_t creator)
{
	struct graftrace_selected *selected = graftrace_arena_selected(arena);
	if (__atomic_load_n(&arena->children_follow, __ATOMIC_RELAXED) != 0 && creator != tid) {
		if (graftrace_selected_has(selected->only, creator))
			graftrace_selected_add(selected->only, tid);
		if (graftrace_selected_has(selected->except, creator))
			graftrace_selected_add(selected->except, tid);
	}
	return graftrace_selected_leaves_out(arena, tid);
}

/* The block's number in graftrace_stream.block. */
static uint64_t number_of(const struct gt_thread *thread)
{
	for (uint32_t i = 0; i < chunk_count; i++)
		if (thread >= chunks[i].blocks && thread < chunks[i].blocks + CHUNK_BLOCKS)
			return i * CHUNK_BLOCKS + (uint64_t)(thread - chunks[i].blocks) + 1;
	return 0;
}

/* forked: the thread's number in the parent; 0 = it is not the first thread of a child. */
static void start_stream(struct gt_thread *thread, struct graftrace_stream *stream, uint32_t forked)
{
	struct graftrace_arena *arena = gt_port_arena();
	thread->stream = stream;
	thread->generation = stream->generation;
	thread->lost_full = &stream->lost[GRAFTRACE_LOST_FULL];
	memset(stream->comm, 0, sizeof(stream->comm));
	gt_syscall3(SYS_PRCTL, 16 /* PR_GET_NAME */, (long)stream->comm, 0);
	thread->outside = arena->graph_only != 0;
	/* Published first, then read: the host sets the word first, then searches the blocks. */
	__atomic_store_n(&stream->block, number_of(thread), __ATOMIC_SEQ_CST);
	thread->host = __atomic_load_n(&arena->tracing_on, __ATOMIC_SEQ_CST) == 0 &&
		       __atomic_load_n(&arena->profile, __ATOMIC_SEQ_CST) == 0;
	if (__atomic_load_n(&arena->selected, __ATOMIC_SEQ_CST) != 0 ||
	    __atomic_load_n(&arena->left_out, __ATOMIC_SEQ_CST) != 0) {
		uint32_t creator = forked != 0 ? forked : creator_of_thread();
		if (is_left_out(arena, thread->tid, creator))
			thread->host |= GRAFTRACE_STOP_LEFT_OUT;
	}
}

static struct gt_thread *make_current(void)
{
	const uint64_t fs = get_fs();
	/* No block can be known again by a pointer that is 0: each call would make one. */
	if (fs == 0 || gt_threads_pointer() == 0)
		return NULL;
	struct graftrace_arena *arena = gt_port_arena();
	uint32_t pid = (uint32_t)gt_syscall3(SYS_GETPID, 0, 0, 0);
	uint32_t tid = (uint32_t)gt_syscall3(SYS_GETTID, 0, 0, 0);
	bool wiped = claim_child();
	bool apart = !has_our_gs();
	struct home *home = NULL;
	uint32_t parent = process_id;

	if (!apart && !wiped && __atomic_load_n(&any_apart, __ATOMIC_ACQUIRE)) {
		/* %gs is still what it was before this thread had a block */
		home = home_of_thread(tid);
		if (home != NULL && home->apart) {
			set_gs((uint64_t)home->block);
			return home->block;
		}
		home = NULL;
	}

	if (wiped) {
		gt_locks_forked();
		gt_mail_forked(pid);
		gt_traps_forked();
	}
	gt_port_lock();
	if (process_id == 0)
		process_id = gt_agent_state.process;
	if (process_id == 0 || wiped)
		process_id = pid;
	else if (pid != process_id)
		inherit_locked(pid);
	uint32_t forked = 0;
	if (wiped) {
		home = adopt_locked(tid != pid);
		forked = home != NULL ? home->tid : 0;
		if (home != NULL && tid != pid) {
			/* The forked thread, whose %gs this new one inherited, has made no call
			 * yet: its frames are kept for it. */
			home->tid = pid;
			home->stream = NULL;
			home = NULL;
		}
		__atomic_store_n(gt_image_fork, GRAFTRACE_FORK_TOLD, __ATOMIC_RELEASE);
		gt_unlock(telling_lock());
	} else if (tid == pid) {
		home = home_of(get_gs());
		if (home != NULL && (home->tid != tid || home->block->owner != 0 ||
				     home->pointer != gt_threads_pointer()))
			home = NULL;
	}
	bool is_vfork_child = pid != process_id;
	if (is_vfork_child)
		pid = tid = process_id; /* it acts for its parent */
	bool adopted = home != NULL;
	if (adopted) {
		/* Its pages are the parent's. The directory stays mapped: the fork may have come
		 * in a handler that interrupted a straight line holding its address. */
		home->profile = NULL;
	} else {
		home = take_home_locked(tid);
		if (home == NULL)
			goto fail;
	}
	home->tid = tid;
	home->pointer = gt_threads_pointer();
	home->apart = apart;
	if (apart)
		__atomic_store_n(&any_apart, true, __ATOMIC_RELEASE);
	if (!is_vfork_child) /* which may not see these numbers, in a namespace of its own */
		collect_locked(pid);
	gt_port_unlock();

	struct gt_thread *thread = home->block;
	bool clean = wiped && arena->fork_policy == GRAFTRACE_FORK_CLEAN;
	memset(thread, 0, sizeof(*thread));
	thread->self = thread;
	thread->pid = pid;
	thread->tid = tid;
	thread->running = &home->running;
	thread->profile_home = &home->profile;
	thread->base = &home->base;
	thread->lost_full = &dropped;
	if (clean) {
		thread->host = 1;
		thread->mode = GT_MODE_GRAPH;
	} else {
		home->stream = gt_stream_claim(arena, pid, tid);
		if (home->stream == NULL) {
			gt_port_lock();
			if (adopted) {
				/* its frames are still needed: it is not recorded */
				thread->host = 1;
				thread->mode = GT_MODE_GRAPH;
				gt_port_unlock();
			} else {
				free_number_locked(home);
				goto fail;
			}
		} else {
			home->generation = home->stream->generation;
			start_stream(thread, home->stream, forked);
		}
	}
	if (adopted && home->running != NULL) {
		home->running->top = gt_frames_recover(home->running);
		gt_frames_load(thread, home->running);
	} else {
		gt_context_init(&home->base, thread->generation);
		find_stack(&home->base, tid == pid, fs);
		gt_frames_load(thread, &home->base);
	}
	thread->owner = gt_threads_pointer();
	if (!apart)
		set_gs((uint64_t)thread);
	if (wiped)
		gt_mail_send(GRAFTRACE_MAIL_FORK, parent,
			     gt_port_arena()->fork_policy != GRAFTRACE_FORK_FOLLOW ? 1000 : 0);
	return thread;
fail:
	gt_port_unlock();
	return NULL;
}

void gt_threads_before_new(void)
{
	uint64_t owner, self;
	__asm__ volatile("mov %%gs:0, %0" : "=r"(owner));
	__asm__ volatile("mov %%gs:%c1, %0" : "=r"(self) : "i"(offsetof(struct gt_thread, self)));
	if (owner == gt_threads_pointer())
		return;
	if (!has_our_gs()) {
		gt_threads_tell_of_fork();
		return;
	}
	if (self == 0)
		return;
	if (__atomic_load_n(&gt_port_arena()->children_follow, __ATOMIC_RELAXED) == 0 ||
	    make_current() == NULL)
		set_gs((uint64_t)&gt_null_block);
}

struct gt_thread *gt_threads_left_out_block(void)
{
	struct gt_thread *thread = gt_threads_try_current();
	struct home *home = thread != NULL ? home_of((uint64_t)thread) : NULL;
	if (home == NULL)
		return NULL;
	if (home->left_out == NULL)
		home->left_out = gt_port_allocate(sizeof(*home->left_out));
	struct gt_thread *block = home->left_out;
	if (block != NULL) {
		block->self = block;
		block->host = GRAFTRACE_STOP_LEFT_OUT;
		block->mode = GT_MODE_GRAPH;
		block->owner = gt_threads_pointer();
	}
	return block;
}

void gt_threads_leave_out(struct gt_thread *block)
{
	set_gs((uint64_t)block);
}

struct gt_thread *gt_threads_current(void)
{
	struct gt_thread *block = block_here();
	if (block == NULL)
		return make_current();
	return is_left_out_block(block) ? NULL : block;
}
