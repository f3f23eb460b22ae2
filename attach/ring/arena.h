/* SPDX-License-Identifier: MIT */
/*
 * The host's hold on the arena (graftrace/arena.h): made here, mapped into each traced process,
 * read and drained here. What the target can write is never trusted: the geometry is kept
 * privately, indexes and words that come out of the memory are checked by whoever reads them, and
 * no loop's length depends on them.
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
 * written to. A page serves 64 functions of one thread. */
#define GT_ARENA_PROFILE_BYTES(buffer_bytes) (16 * (uint64_t)(buffer_bytes))

/* A buffer that has to be smaller than was asked for has at least half of this. */
#define GT_ARENA_BUFFER_LEAST (1ull << 20)

/* buffer_bytes: of the sub-buffers in all, 0 = 64 MB. GT_EINVAL: too small or too large; GT_ENOMEM;
 * GT_EIO. */
int gt_arena_create(struct gt_arena *arena, uint64_t buffer_bytes, struct gt_message *message);

/* The same, made smaller as long as all of it has more than most_bytes. */
int gt_arena_create_within(struct gt_arena *arena, uint64_t buffer_bytes, uint64_t most_bytes,
			   struct gt_message *message);

/* Another one with the same host's part: laid out alike, with the settings that stand in `first` in what targets
 * write. It is put behind the last one of first->next, and destroyed before `first`. GT_ENOSPC: there are
 * GT_ARENAS already; GT_ENOMEM; GT_EIO. */
int gt_arena_create_beside(struct gt_arena *arena, struct gt_arena *first,
			   struct gt_message *message);
/* … out of the list again. */
void gt_arena_unlink(struct gt_arena *first, const struct gt_arena *arena);
void gt_arena_destroy(struct gt_arena *arena);

/* The writers' numbers of the arena are beyond this one, so many at most. */
uint32_t gt_arena_writers_from(const struct gt_arena *arena);
uint32_t gt_arena_writers_most(const struct gt_arena *arena);
/* The number of the arena that a writer with this number is of. */
uint32_t gt_arena_number_of_writer(uint32_t writer);

/* What is written to file `path` comes from here: for who finds this memory without us. */
void gt_arena_note_recording(struct gt_arena *arena, const char *path, uint64_t tsc_base,
			     uint64_t ns_base);

/* A copy, in private memory, of what another host has made: of its header, which the caller has read
 * somewhere and which nobody vouches for. All else of it is zero. GT_EFORMAT: no arena of this version is
 * laid out so; GT_ENOMEM. */
int gt_arena_copy(struct gt_arena *arena, const struct graftrace_arena *header,
		  struct gt_message *message);

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

/* Of a sub-buffer: those from sub_buffer_count on are small. */
static inline uint32_t gt_arena_bytes_of(const struct gt_arena *arena, uint32_t index)
{
	return index < arena->sub_buffer_count ? arena->sub_buffer_bytes : GRAFTRACE_SMALL_BYTES;
}

/* Indexes of sub-buffers that can be in use lie below. */
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

/* Words of a sub-buffer behind its header. */
static inline uint32_t gt_arena_words(const struct gt_arena *arena, uint32_t index)
{
	return (gt_arena_bytes_of(arena, index) - (uint32_t)sizeof(struct graftrace_sub_buffer)) /
	       8;
}

/* Zeroes page `index` of the function profiler's and puts it on its free stack. */
void gt_arena_profile_free(struct gt_arena *arena, uint32_t index);

/* Puts stream `index`, which is FREE, on its free stack. */
void gt_arena_free_stream(struct gt_arena *arena, uint32_t index);

/* Zeroes sub-buffer `index`, puts it on the free stack, wakes writers that wait for one. */
void gt_arena_free(struct gt_arena *arena, uint32_t index);

/* Wakes whoever waits for the doorbell (the host itself, from another of its threads). */
void gt_arena_ring(struct gt_arena *arena);

/* Waits until the doorbell of one of them (arena, arena->next …) differs from what was seen there, seen[number],
 * or timeout_us is over. */
void gt_arena_wait(struct gt_arena *arena, const uint32_t seen[GT_ARENAS], uint64_t timeout_us);
uint32_t gt_arena_doorbell(const struct gt_arena *arena);

void gt_arena_wake(uint32_t *word);

#endif
