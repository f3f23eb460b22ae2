/* SPDX-License-Identifier: MIT */
/*
 * A hostile traced program: it writes over the recorder's memory while it is traced. What it knows
 * of that is what is installed (graftrace/arena.h) and its own /proc/self/maps.
 *
 *	arena_scribbler MODE MILLISECONDS SEED [wait]
 *
 * states: words of the sub-buffers' states; streams: the writers' own numbers; mail: letters;
 * subs: sub-buffers, headers and words; header: everything that both sides write; all: the whole of
 * what it can write; forge: letters in the names of others; grow: threads that never were; zero:
 * each number to 0; huge: the writers' counters to the largest. Ends with 0, or by its own doing.
 * wait: it says "ready" and begins when a line is there, to be attached to before.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <graftrace/arena.h>

static struct graftrace_arena *arena;
static uint64_t seed;
static volatile int over;

/* xorshift64*, the same for everyone who has the seed. */
static uint64_t next(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * 0x2545f4914f6cdd1dull;
}

/* Numbers that are often on an edge. */
static uint64_t value(void)
{
	static const uint64_t edges[] = { 0,	      1,	  2,	      3,
					  4095,	      4096,	  0xffffff,   0x7fffffff,
					  0xffffffff, 1ull << 32, 1ull << 40, 1ull << 47,
					  1ull << 63, ~0ull,	  ~0ull - 1,  0x8000000000ull };
	uint64_t one = next();
	return one & 1 ? edges[(one >> 8) % 16] : next() >> (one >> 8) % 64;
}

static void find_arena(void)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long start;
		if (!arena && strstr(line, "/memfd:graftrace") && sscanf(line, "%lx", &start) == 1)
			arena = (struct graftrace_arena *)start;
	}
	if (maps)
		fclose(maps);
	if (!arena || arena->magic != GRAFTRACE_ARENA_MAGIC) {
		puts("not traced");
		exit(3);
	}
}

static void scribble(uint64_t offset, uint64_t bytes)
{
	uint64_t *words = (uint64_t *)((char *)arena + offset);
	__atomic_store_n(&words[next() % (bytes / 8)], value(), __ATOMIC_RELAXED);
}

static void states(void)
{
	struct graftrace_sub_buffer_entry *entry =
		&graftrace_arena_states(arena)[next() % arena->sub_buffer_count];
	if (next() & 1)
		entry->word = graftrace_state_word((enum graftrace_sub_buffer_state)(next() & 3),
						   (uint32_t)next() & 7, value());
	else
		scribble(arena->states_offset, arena->sub_buffer_count * sizeof(*entry));
}

static void streams(void)
{
	scribble(arena->streams_offset, 16 * sizeof(struct graftrace_stream));
}

static void mail(void)
{
	struct graftrace_mail *letter = &graftrace_arena_mail(arena)[next() % arena->mail_count];
	letter->kind = (uint32_t)next() % 8;
	letter->pid = next() & 1 ? (uint32_t)getpid() : (uint32_t)next() % 40000;
	letter->tid = letter->pid;
	for (int i = 0; i < 4; i++)
		letter->argument[i] = value();
	__atomic_store_n(&letter->state, (uint32_t)next() % 5, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&arena->doorbell, 1, __ATOMIC_SEQ_CST);
}

static void forge(void)
{
	struct graftrace_mail *letter = &graftrace_arena_mail(arena)[next() % arena->mail_count];
	letter->kind = GRAFTRACE_MAIL_TRIGGER;
	letter->pid = letter->tid = (uint32_t)getppid();
	letter->argument[0] = (GRAFTRACE_TRIGGER_SNAPSHOT + next() % 4) << 32 | next() % 64;
	letter->argument[2] = letter->argument[3] = next();
	__atomic_store_n(&letter->state, GRAFTRACE_MAIL_POSTED, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&arena->doorbell, 1, __ATOMIC_SEQ_CST);
}

static void subs(void)
{
	uint32_t index = (uint32_t)next() % (next() & 1 ? 8 : arena->sub_buffer_count);
	scribble(arena->sub_buffers_offset + (uint64_t)index * arena->sub_buffer_bytes,
		 next() & 1 ? sizeof(struct graftrace_sub_buffer) : arena->sub_buffer_bytes);
}

static void header(void)
{
	scribble(GRAFTRACE_ARENA_SHARED, sizeof(*arena) - GRAFTRACE_ARENA_SHARED);
}

static void all(void)
{
	/* what is behind the sub-buffers is the profiler's and mostly not there */
	uint64_t end = next() % 8 ? arena->sub_buffers_offset + (1 << 20) : arena->triggers_offset;
	scribble(GRAFTRACE_ARENA_SHARED, end - GRAFTRACE_ARENA_SHARED);
}

static void grow(void)
{
	struct graftrace_stream *stream =
		&graftrace_arena_streams(arena)[64 + next() % (arena->stream_count - 64)];
	stream->pid = (uint32_t)getpid();
	stream->tid = (uint32_t)next();
	stream->block = 1;
	stream->generation = (uint32_t)next() | 1;
	__atomic_store_n(&stream->state, GRAFTRACE_STREAM_ENDED, __ATOMIC_SEQ_CST);
	__atomic_store_n(&arena->stream_next, arena->stream_count, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&arena->generations, 1, __ATOMIC_SEQ_CST);
}

static void zero(void)
{
	uint64_t offset = GRAFTRACE_ARENA_SHARED +
			  next() % (arena->sub_buffers_offset - GRAFTRACE_ARENA_SHARED);
	*(uint64_t *)((char *)arena + (offset & ~7ull)) = 0;
}

static void huge(void)
{
	struct graftrace_stream *stream = &graftrace_arena_streams(arena)[next() % 8];
	stream->sequence = ~0ull - next() % 1000000;
	for (int i = 0; i < GRAFTRACE_LOST_CAUSES; i++)
		stream->lost[i] = next();
}

static const struct {
	const char *name;
	void (*once)(void);
} modes[] = { { "states", states }, { "streams", streams }, { "mail", mail },	{ "subs", subs },
	      { "header", header }, { "all", all },	    { "forge", forge }, { "grow", grow },
	      { "zero", zero },	    { "huge", huge } };

static void *scribbler(void *data)
{
	void (*once)(void) = *(void (**)(void))data;
	while (!over)
		once();
	return NULL;
}

__attribute__((noinline)) int work(int x)
{
	__asm__ volatile("" : : : "memory");
	return x * 3 + 1;
}

int main(int argc, char **argv)
{
	void (*once)(void) = NULL;
	struct timespec now, end;
	pthread_t thread;
	int sum = 0;
	for (size_t i = 0; argc >= 4 && i < sizeof(modes) / sizeof(*modes); i++)
		if (strcmp(argv[1], modes[i].name) == 0)
			once = modes[i].once;
	if (!once)
		return 2;
	seed = strtoull(argv[3], NULL, 0) | 1;
	if (argc == 5) {
		puts("ready");
		fflush(stdout);
		if (getchar() == EOF)
			return 2;
	}
	sum = work(sum); /* the arena is in use */
	find_arena();
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += atol(argv[2]) % 1000 * 1000000;
	end.tv_sec += atol(argv[2]) / 1000 + end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	if (pthread_create(&thread, NULL, scribbler, &once))
		return 2;
	do {
		for (int i = 0; i < 1000; i++)
			sum = work(sum);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec ||
		 (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
	over = 1;
	pthread_join(thread, NULL);
	puts("done");
	return 0;
}
