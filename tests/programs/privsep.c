/* SPDX-License-Identifier: MIT */
/*
 * A daemon of root's whose worker has dropped its rights to those of user 65534, and turns on its
 * parent by what they share: the recorder's memory.
 *
 *	privsep worker		the parent's read-only memory, by all blocks that streams can name
 *	privsep header		what the host alone writes: to be mapped or made writable
 *	privsep exec PROGRAM…	the worker executes a program
 *	privsep claim		the worker, once it has memory of its own, says that the parent's thread was one of its
 *				own and has ended, until a file "end" is there
 *	privsep list		the worker puts the parent's thread into its own list of threads that are traced, until a
 *				file "end" is there
 *	privsep look		says who it is, and which memory of the recorder's it has
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <graftrace/arena.h>
#include <graftrace/selected.h>
#include "tests/programs/recorder_memory.h"

#define USER 65534
#define BYTE 0x55

static const unsigned char text[16384] __attribute__((aligned(4096))) = { [0 ... 16383] = BYTE };
static unsigned long arena_at;

__attribute__((noinline)) int work(int x)
{
	__asm__ volatile("" : : : "memory");
	return x * 3 + 1;
}

static struct graftrace_arena *find_arena(void)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps))
		if (!arena_at && strstr(line, "/memfd:graftrace"))
			sscanf(line, "%lx", &arena_at);
	if (maps)
		fclose(maps);
	return (struct graftrace_arena *)arena_at;
}

static void drop(void)
{
	if (setgroups(0, NULL) || setresgid(USER, USER, USER) || setresuid(USER, USER, USER))
		exit(4);
}

/* Claims each stream for the parent, and names one address of it after another as its block: as an
 * address, and as a number. */
__attribute__((noinline)) static void attack(struct graftrace_arena *arena, pid_t parent)
{
	struct timespec pause = { 0, 20000000 };
	struct graftrace_stream *streams = graftrace_arena_streams(arena);
	for (uint64_t round = 0; round < 40; round++) {
		for (uint32_t i = 0; i < 16; i++) {
			uint64_t target = (uint64_t)(text + 4096 + round * 64 + i * 2 - 8);
			streams[i].pid = (uint32_t)parent;
			streams[i].tid = (uint32_t)parent;
			streams[i].block = round & 1 ? target : round * 16 + i + 1;
			if (streams[i].generation == 0)
				streams[i].generation = 1000 + i;
			__atomic_store_n(&streams[i].stopped_full, 1, __ATOMIC_SEQ_CST);
			__atomic_store_n(&streams[i].state, GRAFTRACE_STREAM_LIVE,
					 __ATOMIC_SEQ_CST);
		}
		if (arena->stream_next < 16)
			arena->stream_next = 16;
		__atomic_fetch_add(&arena->generations, 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&arena->doorbell, 1, __ATOMIC_SEQ_CST);
		nanosleep(&pause, NULL);
	}
}

static const struct timespec moment = { 0, 2000000 };

static void wait_for_own_memory(const char *what)
{
	const unsigned long from = arena_inode();
	for (int sum = 0; arena_inode() == from; nanosleep(&moment, NULL))
		sum = work(sum);
	puts(what);
	fflush(stdout);
}

__attribute__((noinline)) static void list(struct graftrace_arena *arena, pid_t parent)
{
	wait_for_own_memory("lists");
	for (int sum = 0; access("end", F_OK) != 0; nanosleep(&moment, NULL)) {
		graftrace_selected_add(graftrace_arena_selected(arena)->only, (uint32_t)parent);
		sum = work(sum);
	}
}

/* A stream after the other. */
__attribute__((noinline)) static void claim(struct graftrace_arena *arena, pid_t parent)
{
	struct graftrace_stream *streams = graftrace_arena_streams(arena);
	wait_for_own_memory("claims");
	for (uint32_t i = 8; access("end", F_OK) != 0; i = i < 4000 ? i + 1 : 8) {
		streams[i].pid = (uint32_t)getpid();
		streams[i].tid = (uint32_t)parent;
		streams[i].generation =
			__atomic_add_fetch(&arena->generations, 1, __ATOMIC_SEQ_CST);
		__atomic_store_n(&streams[i].state, GRAFTRACE_STREAM_LIVE, __ATOMIC_SEQ_CST);
		if (arena->stream_next <= i)
			arena->stream_next = i + 1;
		__atomic_fetch_add(&arena->doorbell, 1, __ATOMIC_SEQ_CST);
		nanosleep(&moment, NULL);
	}
}

/* Every way to get at it that an unprivileged process has. */
__attribute__((noinline)) static void try_to_write(struct graftrace_arena *arena)
{
	uint64_t parts[2] = { (uint64_t)arena, (uint64_t)arena + arena->triggers_offset };
	char path[64];
	for (int i = 0; i < 2; i++) {
		void *again;
		int fd;
		printf("mprotect %d\n", mprotect((void *)parts[i], 4096, PROT_READ | PROT_WRITE));
		snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", parts[i],
			 parts[i] + 4096);
		fd = open(path, O_RDWR);
		again = fd < 0 ? MAP_FAILED
			       : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		printf("map_files %d\n", again == MAP_FAILED ? -1 : 0);
		fd = open("/proc/self/mem", O_RDWR);
		printf("mem %d\n", pwrite(fd, "x", 1, (off_t)parts[i] + 8) == 1 ? 0 : -1);
		close(fd);
	}
	/* And what is writable cannot be made smaller under the others. */
	printf("truncated %d\n", truncate("/proc/self/map_files/0", 0) == 0 ? 0 : -1);
}

__attribute__((noinline)) static int look(void)
{
	printf("uid %d secure %lu arena %lu\n", (int)geteuid(), getauxval(AT_SECURE),
	       arena_inode());
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	struct graftrace_arena *arena;
	pid_t parent = getpid(), child;
	int status, sum = work(1), tells;
	size_t changed = 0;

	if (argc > 1 && strcmp(argv[1], "look") == 0)
		return look();
	arena = find_arena();
	if (argc < 2 || !arena)
		return 3;
	tells = strcmp(argv[1], "exec") == 0;
	if (tells)
		look();
	child = fork();
	if (child == 0) {
		drop();
		sum = work(sum); /* the child is one of the recording's */
		if (tells)
			look();
		if (strcmp(argv[1], "worker") == 0)
			attack(arena, parent);
		else if (strcmp(argv[1], "header") == 0)
			try_to_write(arena);
		else if (strcmp(argv[1], "claim") == 0)
			claim(arena, parent);
		else if (strcmp(argv[1], "list") == 0)
			list(arena, parent);
		else if (strcmp(argv[1], "exec") == 0)
			execv(argv[2], argv + 2);
		fflush(stdout);
		_exit(0);
	}
	while (waitpid(child, &status, WNOHANG) == 0)
		sum = work(sum);
	for (size_t i = 0; i < sizeof(text); i++)
		changed += ((const volatile unsigned char *)text)[i] != BYTE;
	printf("worker %d, changed %zu\n", status, changed);
	return 0;
}
