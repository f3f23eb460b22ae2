/* SPDX-License-Identifier: MIT */
/*
 * The arena's memory, its free stack and its futexes: see arena.h. gt_arena_free, _ring, _wait may
 * run beside each other and beside the target.
 *
 * The free stack is Treiber's, with a tag that each push and each pop increments in the head's high
 * half. The host only pushes, and never follows `next`, which the target can write.
 */
#define _GNU_SOURCE
#include "attach/arena.h"
#include "attach/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ull

static uint64_t pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) & ~(PAGE - 1);
}

static uint32_t sub_buffer_size(uint64_t buffer_bytes)
{
	uint64_t size = 4096;

	while (size < 65536 && size * 2 <= buffer_bytes / 2048)
		size *= 2;
	return (uint32_t)size;
}

static void lay_out(struct gt_arena *arena, uint64_t buffer_bytes)
{
	arena->sub_buffer_bytes = sub_buffer_size(buffer_bytes);
	arena->sub_buffer_count = (uint32_t)(buffer_bytes / arena->sub_buffer_bytes);
	arena->stream_count = GRAFTRACE_ARENA_STREAMS;
	arena->mail_count = GRAFTRACE_ARENA_MAIL;
	arena->streams_offset = PAGE;
	arena->states_offset = arena->streams_offset + pages((uint64_t)arena->stream_count *
							     sizeof(struct graftrace_stream));
	arena->mail_offset =
		arena->states_offset + pages((uint64_t)arena->sub_buffer_count *
					     sizeof(struct graftrace_sub_buffer_entry));
	/* aligned to their size: see graftrace_arena.sub_buffer_bytes */
	arena->sub_buffers_offset = arena->mail_offset + pages((uint64_t)arena->mail_count *
							       sizeof(struct graftrace_mail));
	arena->sub_buffers_offset += arena->sub_buffer_bytes - 1;
	arena->sub_buffers_offset &= ~(uint64_t)(arena->sub_buffer_bytes - 1);
	arena->trigger_count = GRAFTRACE_ARENA_TRIGGERS;
	arena->triggers_offset = arena->sub_buffers_offset +
				 (uint64_t)arena->sub_buffer_count * arena->sub_buffer_bytes;
	arena->profile_page_count =
		(uint32_t)(GT_ARENA_PROFILE_BYTES(buffer_bytes) / GRAFTRACE_PROFILE_PAGE_BYTES);
	arena->selected_offset = arena->triggers_offset +
				 pages(arena->trigger_count * sizeof(struct graftrace_trigger));
	arena->profile_states_offset =
		arena->selected_offset + pages(sizeof(struct graftrace_selected));
	arena->profile_pages_offset =
		arena->profile_states_offset +
		pages((uint64_t)arena->profile_page_count * sizeof(struct graftrace_profile_state));
	arena->bytes = arena->profile_pages_offset +
		       (uint64_t)arena->profile_page_count * GRAFTRACE_PROFILE_PAGE_BYTES;
}

_Static_assert(sizeof(struct graftrace_arena) <= PAGE, "the header is one page");

static void fill(struct gt_arena *arena)
{
	struct graftrace_arena *memory = arena->memory;
	uint32_t i;

	*memory = (struct graftrace_arena){
		.magic = GRAFTRACE_ARENA_MAGIC,
		.bytes = arena->bytes,
		.sub_buffer_bytes = arena->sub_buffer_bytes,
		.sub_buffer_count = arena->sub_buffer_count,
		.stream_count = arena->stream_count,
		.mail_count = arena->mail_count,
		.streams_offset = arena->streams_offset,
		.states_offset = arena->states_offset,
		.mail_offset = arena->mail_offset,
		.sub_buffers_offset = arena->sub_buffers_offset,
		.triggers_offset = arena->triggers_offset,
		.trigger_count = arena->trigger_count,
		.host_pid = (uint64_t)getpid(),
		.host_start = gt_process_start_time(getpid()),
		.profile_page_count = arena->profile_page_count,
		.profile_states_offset = arena->profile_states_offset,
		.profile_pages_offset = arena->profile_pages_offset,
		.selected_offset = arena->selected_offset,
		.host_alive = 1,
		.free_head = 1, /* sub-buffer 0, then in order: early ones lie close together */
		.free_count = arena->sub_buffer_count,
	};
	for (i = 0; i < arena->sub_buffer_count; i++)
		gt_arena_state(arena, i)->next = i + 1 < arena->sub_buffer_count ? i + 2 : 0;
}

int gt_arena_create(struct gt_arena *arena, uint64_t buffer_bytes, struct gt_message *message)
{
	struct stat status;
	int error;

	*arena = (struct gt_arena){ .fd = -1 };
	if (!buffer_bytes)
		buffer_bytes = GT_ARENA_BUFFER_DEFAULT;
	if (buffer_bytes < 4 * PAGE || buffer_bytes > GT_ARENA_BUFFER_MAX)
		return gt_fail(message, GT_EINVAL,
			       "a buffer of %llu bytes: it must have 16 KiB to 1 TiB",
			       (unsigned long long)buffer_bytes);
	lay_out(arena, buffer_bytes);
	arena->fd = memfd_create("graftrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (arena->fd < 0)
		return gt_fail(message, GT_EIO, "cannot make shared memory: %s", strerror(errno));
	if (ftruncate(arena->fd, (off_t)arena->bytes) != 0 ||
	    fcntl(arena->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 ||
	    fstat(arena->fd, &status) != 0) {
		error = gt_fail(message, GT_ENOMEM, "cannot make %llu bytes of shared memory: %s",
				(unsigned long long)arena->bytes, strerror(errno));
		goto close_fd;
	}
	arena->device = status.st_dev;
	arena->inode = status.st_ino;
	arena->memory = mmap(NULL, arena->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			     arena->fd, 0);
	if (arena->memory == MAP_FAILED) {
		error = gt_fail(message, GT_ENOMEM, "cannot map %llu bytes of shared memory: %s",
				(unsigned long long)arena->bytes, strerror(errno));
		goto close_fd;
	}
	madvise(arena->memory, arena->bytes, MADV_DONTDUMP);
	fill(arena);
	return 0;

close_fd:
	close(arena->fd);
	*arena = (struct gt_arena){ .fd = -1 };
	return error;
}

void gt_arena_destroy(struct gt_arena *arena)
{
	if (arena->memory) {
		__atomic_store_n(&arena->memory->host_alive, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&arena->memory->host_pid, 0, __ATOMIC_RELEASE);
		munmap(arena->memory, arena->bytes);
	}
	if (arena->fd >= 0)
		close(arena->fd);
	*arena = (struct gt_arena){ .fd = -1 };
}

void gt_arena_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void gt_arena_free(struct gt_arena *arena, uint32_t index)
{
	struct graftrace_sub_buffer_entry *entry = gt_arena_state(arena, index);
	struct graftrace_arena *memory = arena->memory;
	uint64_t head, next;

	memset(gt_arena_sub_buffer(arena, index), 0, arena->sub_buffer_bytes);
	__atomic_store_n(&entry->word, GRAFTRACE_SUB_BUFFER_FREE, __ATOMIC_RELEASE);
	head = __atomic_load_n(&memory->free_head, __ATOMIC_RELAXED);
	do {
		__atomic_store_n(&entry->next, (uint32_t)head, __ATOMIC_RELAXED);
		next = ((head >> 32) + 1) << 32 | (index + 1);
		/* Release: the zeroes and `next` before the head; partner: the writer's pop. */
	} while (!__atomic_compare_exchange_n(&memory->free_head, &head, next, false,
					      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	__atomic_fetch_add(&memory->free_count, 1, __ATOMIC_RELAXED);
	/* A waiting writer counts itself, looks at the futex, looks at the stack and sleeps: either
	 * it finds the sub-buffer, or the futex changed under it, or we see it counted. */
	__atomic_fetch_add(&memory->free_futex, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&memory->waiters, __ATOMIC_SEQ_CST))
		gt_arena_wake(&memory->free_futex);
}

void gt_arena_profile_free(struct gt_arena *arena, uint32_t index)
{
	struct graftrace_profile_state *state = gt_arena_profile_state(arena, index);
	struct graftrace_arena *memory = arena->memory;
	uint64_t head, next;

	memset(gt_arena_profile_page(arena, index), 0, GRAFTRACE_PROFILE_PAGE_BYTES);
	__atomic_store_n(&state->generation, 0, __ATOMIC_RELAXED);
	head = __atomic_load_n(&memory->profile_free, __ATOMIC_RELAXED);
	do {
		__atomic_store_n(&state->next, (uint32_t)head, __ATOMIC_RELAXED);
		next = ((head >> 32) + 1) << 32 | (index + 1);
		/* Release: the zeroes and `next` before the head; partner: the writer's pop. */
	} while (!__atomic_compare_exchange_n(&memory->profile_free, &head, next, false,
					      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void gt_arena_ring(struct gt_arena *arena)
{
	__atomic_fetch_add(&arena->memory->doorbell, 1, __ATOMIC_SEQ_CST);
	gt_arena_wake(&arena->memory->doorbell);
}

uint32_t gt_arena_doorbell(const struct gt_arena *arena)
{
	return __atomic_load_n(&arena->memory->doorbell, __ATOMIC_ACQUIRE);
}

void gt_arena_wait(struct gt_arena *arena, uint32_t seen, uint64_t timeout_us)
{
	struct timespec time = { (time_t)(timeout_us / 1000000),
				 (long)(timeout_us % 1000000) * 1000 };
	struct graftrace_arena *memory = arena->memory;

	__atomic_store_n(&memory->host_sleeping, 1, __ATOMIC_SEQ_CST);
	/* The kernel compares: a ring since `seen` was read is not slept over. */
	syscall(SYS_futex, &memory->doorbell, FUTEX_WAIT, seen, &time, NULL, 0);
	__atomic_store_n(&memory->host_sleeping, 0, __ATOMIC_SEQ_CST);
}
