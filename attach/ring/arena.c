/* SPDX-License-Identifier: MIT */
/*
 * The arena's memory, its free stack and its futexes: see arena.h. gt_arena_free, _ring, _wait may
 * run beside each other and beside the target.
 *
 * The free stack is Treiber's, with a tag that each push and each pop increments in the head's high
 * half. The host only pushes, and never follows `next`, which the target can write.
 */
#define _GNU_SOURCE
#include "attach/ring/arena.h"
#include "attach/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

/* Of small sub-buffers: five eighths of the buffer, where its sub-buffers are larger. More writers
 * than half of what there can be do not live at a time, mostly. */
static uint32_t small_of(uint64_t buffer_bytes)
{
	uint64_t count = buffer_bytes / 8 * 5 / GRAFTRACE_SMALL_BYTES;

	if (sub_buffer_size(buffer_bytes) == GRAFTRACE_SMALL_BYTES)
		return 0;
	return count < GRAFTRACE_ARENA_STREAMS / 2 ? (uint32_t)count : GRAFTRACE_ARENA_STREAMS / 2;
}

static uint64_t answers_bytes(const struct gt_arena *arena)
{
	return pages(arena->mail_count * sizeof(struct graftrace_answer));
}

/* The memfd of what the host alone writes has the header's page, then the rest, then the answers of one arena after
 * the other. The other memfd has all that lies between. */
static void lay_out_parts(struct gt_arena *arena)
{
	const uint64_t rest = arena->answers_offset - arena->triggers_offset;

	arena->parts[0] = (struct gt_arena_part){ 0, 0, PAGE, true };
	arena->parts[1] = (struct gt_arena_part){ PAGE, 0, arena->triggers_offset - PAGE, false };
	arena->parts[2] = (struct gt_arena_part){ arena->triggers_offset, PAGE, rest, true };
	arena->parts[3] =
		(struct gt_arena_part){ arena->answers_offset,
					PAGE + rest + arena->number * answers_bytes(arena),
					answers_bytes(arena), true };
	arena->host_bytes = PAGE + rest + GT_ARENAS * answers_bytes(arena);
}

static void lay_out(struct gt_arena *arena, uint64_t buffer_bytes, uint64_t profile_bytes,
		    uint32_t small_count, uint64_t hists_bytes)
{
	arena->sub_buffer_bytes = sub_buffer_size(buffer_bytes);
	arena->sub_buffer_count = (uint32_t)(buffer_bytes / arena->sub_buffer_bytes);
	arena->small_count = small_count;
	arena->stream_count = GRAFTRACE_ARENA_STREAMS;
	arena->mail_count = GRAFTRACE_ARENA_MAIL;
	arena->streams_offset = pages(sizeof(struct graftrace_arena));
	arena->states_offset = arena->streams_offset + pages((uint64_t)arena->stream_count *
							     sizeof(struct graftrace_stream));
	arena->mail_offset =
		arena->states_offset + pages(((uint64_t)arena->sub_buffer_count + small_count) *
					     sizeof(struct graftrace_sub_buffer_entry));
	/* aligned to their size: see graftrace_arena.sub_buffer_bytes */
	arena->sub_buffers_offset = arena->mail_offset + pages((uint64_t)arena->mail_count *
							       sizeof(struct graftrace_mail));
	arena->sub_buffers_offset += arena->sub_buffer_bytes - 1;
	arena->sub_buffers_offset &= ~(uint64_t)(arena->sub_buffer_bytes - 1);
	arena->trigger_count = GRAFTRACE_ARENA_TRIGGERS;
	arena->trigger_hits_offset =
		arena->sub_buffers_offset +
		((uint64_t)arena->sub_buffer_count + small_count) * arena->sub_buffer_bytes;
	arena->profile_page_count = (uint32_t)(profile_bytes / GRAFTRACE_PROFILE_PAGE_BYTES);
	arena->rule_words_offset =
		arena->trigger_hits_offset + pages(arena->trigger_count * sizeof(uint64_t));
	arena->event_hits_offset =
		arena->rule_words_offset + pages(GRAFTRACE_ARENA_WORDS * sizeof(uint64_t));
	arena->selected_offset =
		arena->event_hits_offset + pages(GRAFTRACE_ARENA_EVENTS * sizeof(uint64_t));
	arena->profile_states_offset =
		arena->selected_offset + pages(sizeof(struct graftrace_selected));
	arena->profile_pages_offset =
		arena->profile_states_offset +
		pages((uint64_t)arena->profile_page_count * sizeof(struct graftrace_profile_state));
	arena->hists_bytes = hists_bytes;
	arena->hists_offset = arena->profile_pages_offset +
			      (uint64_t)arena->profile_page_count * GRAFTRACE_PROFILE_PAGE_BYTES;
	arena->triggers_offset = arena->hists_offset + hists_bytes;
	arena->event_table_offset = arena->triggers_offset +
				    pages(arena->trigger_count * sizeof(struct graftrace_trigger));
	arena->rules_offset =
		arena->event_table_offset + pages(GRAFTRACE_ARENA_EVENTS * sizeof(uint32_t));
	arena->syscalls_offset = arena->rules_offset + GRAFTRACE_ARENA_RULES;
	arena->answers_offset = arena->syscalls_offset + pages((GRAFTRACE_ARENA_SYSCALLS + 1) *
							       sizeof(struct graftrace_syscall));
	arena->bytes = arena->answers_offset + answers_bytes(arena);
	lay_out_parts(arena);
}

_Static_assert(GRAFTRACE_ARENA_SHARED == PAGE, "the header's first page is the host's");
_Static_assert(GT_ARENA_FIRST_WRITERS + (GT_ARENAS - 1) * GT_ARENA_OTHER_WRITERS <= 1u << 31,
	       "contexts have the highest bit");

uint32_t gt_arena_writers_from(const struct gt_arena *arena)
{
	return arena->number ? GT_ARENA_FIRST_WRITERS + (arena->number - 1) * GT_ARENA_OTHER_WRITERS
			     : 0;
}

uint32_t gt_arena_writers_most(const struct gt_arena *arena)
{
	return arena->number ? GT_ARENA_OTHER_WRITERS : GT_ARENA_FIRST_WRITERS;
}

uint32_t gt_arena_number_of_writer(uint32_t writer)
{
	return writer <= GT_ARENA_FIRST_WRITERS
		       ? 0
		       : (writer - 1 - GT_ARENA_FIRST_WRITERS) / GT_ARENA_OTHER_WRITERS + 1;
}

/* What targets write. */
static void fill_shared(struct gt_arena *arena)
{
	struct graftrace_arena *memory = arena->memory;

	memory->free_head = 1; /* sub-buffer 0, then in order: early ones lie close together */
	memory->free_count = arena->sub_buffer_count;
	memory->generations = gt_arena_writers_from(arena);
	for (uint32_t i = 0; i < arena->sub_buffer_count; i++)
		gt_arena_state(arena, i)->next = i + 1 < arena->sub_buffer_count ? i + 2 : 0;
}

static void fill(struct gt_arena *arena)
{
	struct graftrace_arena *memory = arena->memory;

	*memory = (struct graftrace_arena){
		.magic = GRAFTRACE_ARENA_MAGIC,
		.bytes = arena->bytes,
		.sub_buffer_bytes = arena->sub_buffer_bytes,
		.sub_buffer_count = arena->sub_buffer_count,
		.small_count = arena->small_count,
		.stream_count = arena->stream_count,
		.mail_count = arena->mail_count,
		.streams_offset = arena->streams_offset,
		.states_offset = arena->states_offset,
		.mail_offset = arena->mail_offset,
		.sub_buffers_offset = arena->sub_buffers_offset,
		.triggers_offset = arena->triggers_offset,
		.trigger_hits_offset = arena->trigger_hits_offset,
		.answers_offset = arena->answers_offset,
		.trigger_count = arena->trigger_count,
		.event_count = GRAFTRACE_ARENA_EVENTS,
		.rule_word_count = GRAFTRACE_ARENA_WORDS,
		.rule_words_offset = arena->rule_words_offset,
		.event_hits_offset = arena->event_hits_offset,
		.event_table_offset = arena->event_table_offset,
		.rules_offset = arena->rules_offset,
		.rules_bytes = GRAFTRACE_ARENA_RULES,
		.hists_offset = arena->hists_offset,
		.hists_bytes = arena->hists_bytes,
		.syscalls_offset = arena->syscalls_offset,
		.host_pid = (uint64_t)getpid(),
		.host_start = gt_process_start_time(getpid()),
		.profile_page_count = arena->profile_page_count,
		.profile_states_offset = arena->profile_states_offset,
		.profile_pages_offset = arena->profile_pages_offset,
		.selected_offset = arena->selected_offset,
		.host_alive = 1,
	};
	fill_shared(arena);
}

/* The limit of files' sizes is not meant for memory: it is raised for this moment, where that is
 * allowed. Beyond it the kernel would send SIGXFSZ. */
static int set_size(int fd, uint64_t bytes)
{
	struct rlimit limit, more;
	bool raised = false;
	int result = -1, number = EFBIG;

	if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
		limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
	more = limit;
	if (limit.rlim_cur < bytes) {
		more.rlim_cur = bytes;
		if (more.rlim_max < bytes)
			more.rlim_max = bytes;
		raised = setrlimit(RLIMIT_FSIZE, &more) == 0;
	}
	if (raised || limit.rlim_cur >= bytes) {
		result = ftruncate(fd, (off_t)bytes);
		number = errno;
	}
	if (raised)
		setrlimit(RLIMIT_FSIZE, &limit);
	errno = number;
	return result;
}

static int make_fd(int *fd, uint64_t bytes, struct gt_message *message)
{
	*fd = memfd_create("graftrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return gt_fail(message, GT_EIO, "cannot make shared memory: %s", strerror(errno));
	if (set_size(*fd, bytes) != 0)
		return errno == EFBIG
			       ? gt_fail(message, GT_ENOMEM,
					 "the limit of files' sizes (ulimit -f) counts for %llu "
					 "bytes of shared memory, too: raise it, or take a smaller "
					 "--buffer-size",
					 (unsigned long long)bytes)
			       : gt_fail(message, GT_ENOMEM,
					 "cannot make %llu bytes of shared memory: %s",
					 (unsigned long long)bytes, strerror(errno));
	return 0;
}

/* The same pages once more. A new mapping of the file could not be written: see seal(). */
static bool map_again(const struct gt_arena *first, const struct gt_arena_part *part, void *at)
{
	return mremap((char *)first->host_memory + part->at, 0, part->bytes,
		      MREMAP_MAYMOVE | MREMAP_FIXED, at) != MAP_FAILED;
}

static bool map_part(struct gt_arena *arena, const struct gt_arena *first,
		     const struct gt_arena_part *part, void *at)
{
	if (part->host_only && first != NULL)
		return map_again(first, part, at);
	return mmap(at, part->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
		    part->host_only ? arena->host_fd : arena->fd, (off_t)part->at) != MAP_FAILED;
}

/* As one range. first: what the host alone writes is mapped there already; NULL: it is not. */
static int map(struct gt_arena *arena, const struct gt_arena *first, struct gt_message *message)
{
	void *room = mmap(NULL, arena->bytes, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool mapped = room != MAP_FAILED;

	for (int i = 0; mapped && i < GT_ARENA_PARTS; i++)
		mapped = map_part(arena, first, &arena->parts[i],
				  (char *)room + arena->parts[i].offset);
	if (mapped) {
		arena->memory = room;
		return 0;
	}
	gt_fail(message, GT_ENOMEM, "cannot map %llu bytes of shared memory: %s",
		(unsigned long long)arena->bytes, strerror(errno));
	if (room != MAP_FAILED)
		munmap(room, arena->bytes);
	return GT_ENOMEM;
}

/* All that arenas to come share with this one. */
static int map_host(struct gt_arena *arena, struct gt_message *message)
{
	void *memory = mmap(NULL, arena->host_bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_NORESERVE, arena->host_fd, 0);

	if (memory == MAP_FAILED)
		return gt_fail(message, GT_ENOMEM, "cannot map %llu bytes of shared memory: %s",
			       (unsigned long long)arena->host_bytes, strerror(errno));
	arena->host_memory = memory;
	return 0;
}

/* From now on nobody can map what is the host's to write into it: we have. */
static int seal(const struct gt_arena *arena, struct gt_message *message)
{
	const int size = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	if (fcntl(arena->fd, F_ADD_SEALS, size) != 0 ||
	    fcntl(arena->host_fd, F_ADD_SEALS, size | F_SEAL_FUTURE_WRITE) != 0)
		return gt_fail(message, GT_ENOTSUP,
			       "cannot seal shared memory (it needs Linux 5.1): %s",
			       strerror(errno));
	return 0;
}

/* Without small sub-buffers and histograms; then halves the function profiler's tables, then the buffer
 * too, until all fits. */
static void lay_out_within(struct gt_arena *arena, uint64_t buffer_bytes, uint64_t most_bytes)
{
	uint64_t profile_bytes = GT_ARENA_PROFILE_BYTES(buffer_bytes);

	lay_out(arena, buffer_bytes, profile_bytes, small_of(buffer_bytes), GRAFTRACE_ARENA_HISTS);
	if (arena->bytes > most_bytes)
		lay_out(arena, buffer_bytes, profile_bytes, 0, 0);
	while (arena->bytes > most_bytes && buffer_bytes >= 2 * GT_ARENA_BUFFER_LEAST) {
		if (profile_bytes > buffer_bytes / 4)
			profile_bytes /= 2;
		else
			buffer_bytes /= 2;
		lay_out(arena, buffer_bytes, profile_bytes, 0, 0);
	}
}

int gt_arena_create(struct gt_arena *arena, uint64_t buffer_bytes, struct gt_message *message)
{
	return gt_arena_create_within(arena, buffer_bytes, UINT64_MAX, message);
}

static int note_inode(struct gt_arena *arena, struct gt_message *message)
{
	struct stat status;

	if (fstat(arena->fd, &status) != 0)
		return gt_fail(message, GT_EIO, "cannot make shared memory: %s", strerror(errno));
	arena->device = status.st_dev;
	arena->inode = status.st_ino;
	return 0;
}

int gt_arena_create_within(struct gt_arena *arena, uint64_t buffer_bytes, uint64_t most_bytes,
			   struct gt_message *message)
{
	int error;

	*arena = (struct gt_arena){ .fd = -1, .host_fd = -1 };
	if (!buffer_bytes)
		buffer_bytes = GT_ARENA_BUFFER_DEFAULT;
	if (buffer_bytes < 4 * PAGE || buffer_bytes > GT_ARENA_BUFFER_MAX)
		return gt_fail(message, GT_EINVAL,
			       "a buffer of %llu bytes: it must have 16 KiB to 1 TiB",
			       (unsigned long long)buffer_bytes);
	lay_out_within(arena, buffer_bytes, most_bytes);
	error = make_fd(&arena->fd, arena->parts[1].bytes, message);
	if (!error)
		error = make_fd(&arena->host_fd, arena->host_bytes, message);
	if (!error)
		error = note_inode(arena, message);
	if (!error)
		error = map(arena, NULL, message);
	if (!error)
		error = map_host(arena, message);
	if (!error)
		error = seal(arena, message);
	if (error) {
		gt_arena_destroy(arena);
		return error;
	}
	madvise(arena->memory, arena->bytes, MADV_DONTDUMP);
	fill(arena);
	return 0;
}

static void copy_words(struct gt_arena *arena, const struct gt_arena *first, uint64_t offset,
		       uint64_t bytes)
{
	uint64_t *to = (uint64_t *)((char *)arena->memory + offset);
	const uint64_t *from = (const uint64_t *)((const char *)first->memory + offset);

	for (uint64_t i = 0; i < bytes / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

int gt_arena_create_beside(struct gt_arena *arena, struct gt_arena *first,
			   struct gt_message *message)
{
	struct gt_arena *last = first;
	int error;

	while (last->next != NULL)
		last = last->next;
	if (last->number + 1 == GT_ARENAS)
		return gt_fail(message, GT_ENOSPC, "there are %d sets of credentials already",
			       GT_ARENAS);
	*arena = *first;
	arena->memory = arena->host_memory = NULL;
	arena->next = NULL;
	arena->fd = -1;
	arena->number = last->number + 1;
	lay_out_parts(arena);
	arena->host_fd = fcntl(first->host_fd, F_DUPFD_CLOEXEC, 0);
	error = arena->host_fd < 0
			? gt_fail(message, GT_EIO, "cannot share memory: %s", strerror(errno))
			: make_fd(&arena->fd, arena->parts[1].bytes, message);
	if (!error)
		error = note_inode(arena, message);
	if (!error)
		error = map(arena, first, message);
	if (!error && fcntl(arena->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		error = gt_fail(message, GT_EIO, "cannot seal shared memory: %s", strerror(errno));
	if (error) {
		gt_arena_destroy(arena);
		return error;
	}
	madvise(arena->memory, arena->bytes, MADV_DONTDUMP);
	fill_shared(arena);
	arena->memory->tracing_on = __atomic_load_n(&first->memory->tracing_on, __ATOMIC_SEQ_CST);
	copy_words(arena, first, arena->rule_words_offset,
		   GRAFTRACE_ARENA_WORDS * sizeof(uint64_t));
	copy_words(arena, first, arena->trigger_hits_offset,
		   arena->trigger_count * sizeof(uint64_t));
	last->next = arena;
	return 0;
}

void gt_arena_unlink(struct gt_arena *first, const struct gt_arena *arena)
{
	while (first->next != NULL && first->next != arena)
		first = first->next;
	if (first->next != NULL)
		first->next = arena->next;
}

void gt_arena_note_recording(struct gt_arena *arena, const char *path, uint64_t tsc_base,
			     uint64_t ns_base)
{
	if (strlen(path) >= GRAFTRACE_ARENA_PATH)
		return;
	strcpy(arena->memory->recording, path);
	arena->memory->recording_tsc = tsc_base;
	arena->memory->recording_ns = ns_base;
}

static bool is_laid_out_so(const struct gt_arena *arena, const struct graftrace_arena *header)
{
	return arena->bytes == header->bytes &&
	       arena->sub_buffer_bytes == header->sub_buffer_bytes &&
	       arena->sub_buffer_count == header->sub_buffer_count &&
	       arena->stream_count == header->stream_count &&
	       arena->streams_offset == header->streams_offset &&
	       arena->states_offset == header->states_offset &&
	       arena->sub_buffers_offset == header->sub_buffers_offset;
}

int gt_arena_copy(struct gt_arena *arena, const struct graftrace_arena *header,
		  struct gt_message *message)
{
	const uint64_t buffer_bytes = (uint64_t)header->sub_buffer_bytes * header->sub_buffer_count;
	void *memory;

	*arena = (struct gt_arena){ .fd = -1, .host_fd = -1 };
	if (header->magic != GRAFTRACE_ARENA_MAGIC || buffer_bytes < 4 * PAGE ||
	    buffer_bytes > GT_ARENA_BUFFER_MAX || header->small_count > GRAFTRACE_ARENA_STREAMS ||
	    header->hists_bytes > GRAFTRACE_ARENA_HISTS || header->hists_bytes % PAGE != 0)
		return gt_fail(message, GT_EFORMAT, "it is none of this version's");
	lay_out(arena, buffer_bytes,
		(uint64_t)header->profile_page_count * GRAFTRACE_PROFILE_PAGE_BYTES,
		header->small_count, header->hists_bytes);
	if (!is_laid_out_so(arena, header))
		return gt_fail(message, GT_EFORMAT, "it is none of this version's");
	memory = mmap(NULL, arena->bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return gt_fail(message, GT_ENOMEM, "no memory for a copy of it");
	arena->memory = memory;
	*arena->memory = *header;
	return 0;
}

void gt_arena_destroy(struct gt_arena *arena)
{
	if (arena->memory != NULL && !arena->number) {
		__atomic_store_n(&arena->memory->host_alive, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&arena->memory->host_pid, 0, __ATOMIC_RELEASE);
	}
	if (arena->memory != NULL)
		munmap(arena->memory, arena->bytes);
	if (arena->host_memory != NULL)
		munmap(arena->host_memory, arena->host_bytes);
	if (arena->fd >= 0)
		close(arena->fd);
	if (arena->host_fd >= 0)
		close(arena->host_fd);
	*arena = (struct gt_arena){ .fd = -1, .host_fd = -1 };
}

void gt_arena_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Release: the zeroes and `next` before the head; partner: the writer's pop. */
static void push(struct gt_arena *arena, uint64_t *stack, uint32_t index)
{
	struct graftrace_sub_buffer_entry *entry = gt_arena_state(arena, index);
	uint64_t head = __atomic_load_n(stack, __ATOMIC_RELAXED), next;

	do {
		__atomic_store_n(&entry->next, (uint32_t)head, __ATOMIC_RELAXED);
		next = ((head >> 32) + 1) << 32 | (index + 1);
	} while (!__atomic_compare_exchange_n(stack, &head, next, false, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
}

void gt_arena_free(struct gt_arena *arena, uint32_t index)
{
	struct graftrace_sub_buffer_entry *entry = gt_arena_state(arena, index);
	struct graftrace_arena *memory = arena->memory;

	memset(gt_arena_sub_buffer(arena, index), 0, gt_arena_bytes_of(arena, index));
	__atomic_store_n(&entry->word, GRAFTRACE_SUB_BUFFER_FREE, __ATOMIC_RELEASE);
	if (index >= arena->sub_buffer_count) {
		push(arena, &memory->small_free, index);
		__atomic_fetch_sub(&memory->small_used, 1, __ATOMIC_RELAXED);
		return;
	}
	push(arena, &memory->free_head, index);
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

void gt_arena_free_stream(struct gt_arena *arena, uint32_t index)
{
	struct graftrace_stream *stream = gt_arena_stream(arena, index);
	struct graftrace_arena *memory = arena->memory;
	uint64_t head = __atomic_load_n(&memory->stream_free, __ATOMIC_RELAXED), next;

	do {
		__atomic_store_n(&stream->next, (uint32_t)head, __ATOMIC_RELAXED);
		next = ((head >> 32) + 1) << 32 | (index + 1);
		/* Release: all of the stream before the head; partner: the claim. */
	} while (!__atomic_compare_exchange_n(&memory->stream_free, &head, next, false,
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

static void set_sleeping(struct gt_arena *arena, uint32_t sleeping)
{
	for (; arena != NULL; arena = arena->next)
		__atomic_store_n(&arena->memory->host_sleeping, sleeping, __ATOMIC_SEQ_CST);
}

static void wait_for_one(struct gt_arena *arena, uint32_t seen, uint64_t timeout_us)
{
	struct timespec time = { (time_t)(timeout_us / 1000000),
				 (long)(timeout_us % 1000000) * 1000 };

	syscall(SYS_futex, &arena->memory->doorbell, FUTEX_WAIT, seen, &time, NULL, 0);
}

/* Linux 5.16. False: it has no such call. */
static bool wait_for_any(struct gt_arena *arena, const uint32_t seen[GT_ARENAS],
			 uint64_t timeout_us)
{
	struct {
		uint64_t value;
		uint64_t address;
		uint32_t flags;
		uint32_t reserved;
	} words[GT_ARENAS];
	struct timespec until;
	unsigned count = 0;

	for (; arena != NULL && count < GT_ARENAS; arena = arena->next, count++) {
		words[count].value = seen[arena->number];
		words[count].address = (uint64_t)&arena->memory->doorbell;
		words[count].flags = 2; /* FUTEX_32, shared */
		words[count].reserved = 0;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(timeout_us % 1000000) * 1000;
	until.tv_sec += (time_t)(timeout_us / 1000000) + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return syscall(449 /* futex_waitv */, words, count, 0, &until, CLOCK_MONOTONIC) >= 0 ||
	       errno != ENOSYS;
}

void gt_arena_wait(struct gt_arena *arena, const uint32_t seen[GT_ARENAS], uint64_t timeout_us)
{
	set_sleeping(arena, 1);
	/* The kernel compares: a ring since `seen` was read is not slept over. */
	if (arena->next == NULL)
		wait_for_one(arena, seen[arena->number], timeout_us);
	else if (!wait_for_any(arena, seen, timeout_us))
		wait_for_one(arena, seen[arena->number], timeout_us < 1000 ? timeout_us : 1000);
	set_sleeping(arena, 0);
}
