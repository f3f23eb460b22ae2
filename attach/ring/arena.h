/* SPDX-License-Identifier: MIT */
/*
 * The host's hold on the arena (graftrace/arena.h): made here, mapped into each traced process,
 * read and drained here. What the target can write is never trusted: the geometry is kept
 * privately, indexes and words that come out of the memory are checked by whoever reads them, and
 * no loop's length depends on them.
 *
 * No function takes a lock. What changes the list of arenas (`next`) or frees a stream, a sub-buffer or a page
 * of the profiler is called with the session's lock held, or before another thread knows the arena. Only the
 * thread that calls gt_arena_wait() changes the list: that reads it without the lock. Writers in traced processes
 * may work on the same memory meanwhile. Everything else may be called by any thread. Indexes that are passed in
 * must be below their count.
 */
#ifndef GT_ATTACH_ARENA_H
#define GT_ATTACH_ARENA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <graftrace/arena.h>
#include <graftrace/error.h>
#include <graftrace/profile.h>
#include <graftrace/selected.h>

#define GT_ARENA_PARTS	 4
#define GT_ARENA_OWN	 1 /* the part that targets write */
#define GT_ARENA_ANSWERS 3
#define GT_ARENAS	 16 /* of a recording, with one host's part, at most */

struct gt_arena_part {
	uint64_t offset; /* in the range */
	uint64_t at;	 /* in the file */
	uint64_t bytes;
	bool host_only; /* targets may read it */
};

/* Where the numbers of an arena's writers begin: they differ from those of its recording's other arenas, and
 * have the highest bit clear. */
#define GT_ARENA_FIRST_WRITERS (1u << 30)
#define GT_ARENA_OTHER_WRITERS (1u << 26)

struct gt_arena {
	struct graftrace_arena *memory; /* shared with the target */
	int fd;				/* of what targets write */
	int host_fd;			/* of what they may only read */
	void *host_memory;		/* all of that; of the first arena alone */
	uint64_t host_bytes;
	uint32_t number;       /* among those that have the host's part in common */
	struct gt_arena *next; /* the next one of those; NULL: this is the last */
	struct gt_arena_part parts[GT_ARENA_PARTS];
	dev_t device; /* of `fd`: how its mapping is known in /proc/PID/maps */
	ino_t inode;
	uint64_t bytes;
	uint32_t sub_buffer_bytes;
	uint32_t sub_buffer_count;
	uint32_t small_count;
	uint32_t stream_count;
	uint32_t mail_count;
	uint64_t streams_offset;
	uint64_t states_offset;
	uint64_t mail_offset;
	uint64_t sub_buffers_offset;
	uint64_t triggers_offset;
	uint64_t trigger_hits_offset;
	uint64_t rule_words_offset;
	uint64_t event_table_offset;
	uint64_t syscalls_offset;
	uint64_t rules_offset;
	uint64_t hists_offset;
	uint64_t hists_bytes; /* 0: too little room for histograms */
	uint64_t event_hits_offset;
	uint64_t answers_offset;
	uint32_t trigger_count;
	uint32_t profile_page_count;
	uint64_t profile_states_offset;
	uint64_t profile_pages_offset;
	uint64_t selected_offset;
};

#define GT_ARENA_BUFFER_DEFAULT (64ull << 20)
#define GT_ARENA_BUFFER_MAX	(1ull << 40)
/* The function profiler's tables have 16 times the ring's size: addresses only, until they are
 * written to. A page serves 16 functions of one thread. */
#define GT_ARENA_PROFILE_BYTES(buffer_bytes) (16 * (uint64_t)(buffer_bytes))

/* A buffer that has to be smaller than was asked for has at least so many bytes. */
#define GT_ARENA_BUFFER_LEAST (1ull << 20)

/* Makes the first arena of a recording, empty. buffer_bytes: of the sub-buffers in all, 16 KiB to 1 TiB; 0: 64 MB.
 * The caller owns it: gt_arena_destroy(). GT_EINVAL: too small or too large; GT_ENOTSUP: the kernel cannot seal
 * shared memory; GT_ENOMEM; GT_EIO. After an error *arena is empty, and may be destroyed. */
int gt_arena_create(struct gt_arena *arena, uint64_t buffer_bytes, struct gt_message *message);

/* The same with room for at most most_bytes of address space: if need be without small sub-buffers and
 * histograms, then with a smaller table of the profiler and a smaller buffer (GT_ARENA_BUFFER_LEAST). If it is
 * still too large then, it is made nevertheless. */
int gt_arena_create_within(struct gt_arena *arena, uint64_t buffer_bytes, uint64_t most_bytes,
			   struct gt_message *message);

/* Makes another arena of the recording. It shares the host's part with `first`, has the same layout, and begins
 * with copies of the settings that stand in the part of `first` that targets write. It is appended to the list
 * first->next and must be destroyed before `first`. GT_ENOSPC: there are GT_ARENAS already, *arena is not
 * written; GT_ENOMEM; GT_EIO: *arena is empty. */
int gt_arena_create_beside(struct gt_arena *arena, struct gt_arena *first,
			   struct gt_message *message);
/* Takes an arena out of the list of `first`; it is not destroyed. No effect if it is not in the list. */
void gt_arena_unlink(struct gt_arena *first, const struct gt_arena *arena);
/* Unmaps the memory and closes its files; of the first arena it also tells the agents that the host has gone. The
 * struct is empty then: a second call does nothing. It stays in the list of first->next (gt_arena_unlink). No other
 * thread may use the arena any more. */
void gt_arena_destroy(struct gt_arena *arena);

/* Writers of the arena have numbers (`generation`) n with from < n ≤ from + most. */
uint32_t gt_arena_writers_from(const struct gt_arena *arena);
uint32_t gt_arena_writers_most(const struct gt_arena *arena);
/* The arena (gt_arena.number) to which a writer with this number belongs. */
uint32_t gt_arena_number_of_writer(uint32_t writer);

/* Notes in the memory to which file the arena is recorded, for a later graftrace that finds the memory after this
 * one was killed (attach/session/leftover.h). The bases are those of the file's clock: ticks of the TSC and ns at
 * the same moment. A path of GRAFTRACE_ARENA_PATH bytes or more is not noted, nor are the bases then. */
void gt_arena_note_recording(struct gt_arena *arena, const char *path, uint64_t tsc_base,
			     uint64_t ns_base);

/* Makes an arena in private memory with the layout that `header` says, another host's, which the caller has read
 * from somewhere and has not checked. It gets a copy of the header; all else is zero, for the caller to fill in. The
 * caller owns it: gt_arena_destroy().
 * GT_EFORMAT: no arena of this version has such a header; GT_ENOMEM. *arena is empty then. */
int gt_arena_copy(struct gt_arena *arena, const struct graftrace_arena *header,
		  struct gt_message *message);

/*
 * Where things lie in the mapped memory: pointers that are valid until gt_arena_destroy(). An index is not
 * checked here.
 */

static inline struct graftrace_stream *gt_arena_stream(const struct gt_arena *arena, uint32_t index)
{
	return (struct graftrace_stream *)((char *)arena->memory + arena->streams_offset) + index;
}

static inline struct graftrace_sub_buffer_entry *gt_arena_state(const struct gt_arena *arena,
								uint32_t index)
{
	return (struct graftrace_sub_buffer_entry *)((char *)arena->memory + arena->states_offset) +
	       index;
}

static inline struct graftrace_mail *gt_arena_mail(const struct gt_arena *arena, uint32_t index)
{
	return (struct graftrace_mail *)((char *)arena->memory + arena->mail_offset) + index;
}

/* The size of sub-buffer `index` in bytes, its header included: those from sub_buffer_count on are small. */
static inline uint32_t gt_arena_bytes_of(const struct gt_arena *arena, uint32_t index)
{
	return index < arena->sub_buffer_count ? arena->sub_buffer_bytes : GRAFTRACE_SMALL_BYTES;
}

/* All sub-buffers that can be in use have indexes below this. */
static inline uint32_t gt_arena_index_limit(const struct gt_arena *arena)
{
	uint32_t small = __atomic_load_n(&arena->memory->small_next, __ATOMIC_ACQUIRE);

	return arena->sub_buffer_count + (small < arena->small_count ? small : arena->small_count);
}

static inline struct graftrace_sub_buffer *gt_arena_sub_buffer(const struct gt_arena *arena,
							       uint32_t index)
{
	return (struct graftrace_sub_buffer *)((char *)arena->memory + arena->sub_buffers_offset +
					       ((uint64_t)index + 1) * arena->sub_buffer_bytes -
					       gt_arena_bytes_of(arena, index));
}

static inline struct graftrace_trigger *gt_arena_trigger(const struct gt_arena *arena,
							 uint32_t index)
{
	return (struct graftrace_trigger *)((char *)arena->memory + arena->triggers_offset) + index;
}

static inline uint64_t *gt_arena_trigger_hits(const struct gt_arena *arena, uint32_t index)
{
	return (uint64_t *)((char *)arena->memory + arena->trigger_hits_offset) + index;
}

static inline struct graftrace_answer *gt_arena_answer(const struct gt_arena *arena, uint32_t index)
{
	return (struct graftrace_answer *)((char *)arena->memory + arena->answers_offset) + index;
}

static inline struct graftrace_profile_state *gt_arena_profile_state(const struct gt_arena *arena,
								     uint32_t index)
{
	return (struct graftrace_profile_state *)((char *)arena->memory +
						  arena->profile_states_offset) +
	       index;
}

static inline struct graftrace_profile_entry *gt_arena_profile_page(const struct gt_arena *arena,
								    uint32_t index)
{
	return (struct graftrace_profile_entry *)((char *)arena->memory +
						  arena->profile_pages_offset +
						  (uint64_t)index * GRAFTRACE_PROFILE_PAGE_BYTES);
}

static inline struct graftrace_selected *gt_arena_selected(const struct gt_arena *arena)
{
	return (struct graftrace_selected *)((char *)arena->memory + arena->selected_offset);
}

/* How many words sub-buffer `index` has behind its header. */
static inline uint32_t gt_arena_words(const struct gt_arena *arena, uint32_t index)
{
	return (gt_arena_bytes_of(arena, index) - (uint32_t)sizeof(struct graftrace_sub_buffer)) /
	       8;
}

/* Zeroes page `index` of the function profiler and puts it on their free stack. No writer has it. */
void gt_arena_profile_free(struct gt_arena *arena, uint32_t index);

/* Puts stream `index`, whose state is FREE, on the free stack. */
void gt_arena_free_stream(struct gt_arena *arena, uint32_t index);

/* Zeroes sub-buffer `index`, sets its state to FREE, and puts it on the free stack of its size. If it is no small
 * one, wakes writers that wait for room. The caller has taken it: no writer or reader has it. */
void gt_arena_free(struct gt_arena *arena, uint32_t index);

/* Rings the doorbell: wakes the thread that is in gt_arena_wait(). */
void gt_arena_ring(struct gt_arena *arena);

/* Waits until the doorbell of one of the arenas (arena, arena->next …) differs from seen[number], what
 * gt_arena_doorbell() gave before, or timeout_us is over. It may return earlier. One thread at a time; `arena` is
 * the first of the list, which must not change meanwhile. */
void gt_arena_wait(struct gt_arena *arena, const uint32_t seen[GT_ARENAS], uint64_t timeout_us);
/* How often the doorbell was rung, modulo 2^32. */
uint32_t gt_arena_doorbell(const struct gt_arena *arena);

/* Wakes all threads of all processes that wait for the word, a shared futex. */
void gt_arena_wake(uint32_t *word);

#endif
