/* SPDX-License-Identifier: MIT */
/*
 * Checks that a traced call changes no register but the flags: general ones, vector ones (as wide
 * as the machine has them), masks, x87 stack and control words, at every alignment of the stack,
 * with the direction flag either way; thousands of times, so that each slow path of a recorder
 * comes by, and as the first traced call of a thread.
 */
#include "tests/programs/registers.h"
#include "tests/programs/count.h"
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(offsetof(struct count_site, calls) == SITE_CALLS, "as registers.S has it");
_Static_assert(offsetof(struct registers, stack) == REGISTERS_STACK, "as registers.S has it");
_Static_assert(offsetof(struct registers, vector) == REGISTERS_VECTORS, "as registers.S has it");
_Static_assert(offsetof(struct registers, mask) == REGISTERS_MASKS, "as registers.S has it");
_Static_assert(offsetof(struct registers, x87) == REGISTERS_X87, "as registers.S has it");
_Static_assert(offsetof(struct registers, mxcsr) == REGISTERS_MXCSR, "as registers.S has it");
_Static_assert(offsetof(struct registers, control) == REGISTERS_CONTROL, "as registers.S has it");

#define TARGETS 5

struct count_site bare_leaf_site = { .name = "bare_leaf", .light = 1 };
struct count_site red_leaf_site = { .name = "red_leaf", .light = 1 };
struct count_site near_caller_site = { .name = "near_caller", .light = 1 };
struct count_site tail_caller_site = { .name = "tail_caller", .light = 1 };
struct count_site odd_frame_site = { .name = "odd_frame", .light = 1 };

struct registers registers_before, registers_after;
int registers_level, registers_direction;
long registers_shift;
void (*registers_target)(void);
extern void (*const registers_targets[TARGETS])(void);
void registers_round(void);

static const char *const general_names[15] = { "rax", "rbx", "rcx", "rdx", "rsi",
					       "rdi", "rbp", "r8",  "r9",  "r10",
					       "r11", "r12", "r13", "r14", "r15" };
static uint64_t seed = 88172645463325252ull;
static int wrong;

COUNT_PLAIN static uint64_t random64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

COUNT_PLAIN static void fill(void)
{
	struct registers *r = &registers_before;

	for (int i = 0; i < 15; i++)
		r->general[i] = random64();
	for (int i = 0; i < 32; i++)
		for (int j = 0; j < 8; j++)
			r->vector[i][j] = random64();
	for (int i = 0; i < 8; i++) {
		r->mask[i] = (uint16_t)random64();
		long double value = (long double)(int64_t)random64();
		memcpy(r->x87[i], &value, 10);
	}
	/* Every exception masked; rounding, denormals and precision any. */
	r->mxcsr = 0x1f80 | (uint32_t)(random64() & 0xe040);
	r->control = (uint16_t)(0x007f | (random64() & 0x0f00));
}

COUNT_PLAIN static void report(int round, const char *what, int number)
{
	if (wrong++ < 20)
		printf("round %d: %s%d changed (target %d, shift %ld, direction %d)\n", round, what,
		       number, round % TARGETS, registers_shift, registers_direction);
}

COUNT_PLAIN static void check(int round)
{
	const struct registers *a = &registers_before, *b = &registers_after;
	static const int words[3] = { 2, 4, 8 };

	for (int i = 0; i < 15; i++)
		if (a->general[i] != b->general[i])
			report(round, general_names[i], 0);
	if (a->stack != b->stack)
		report(round, "rsp", 0);
	for (int i = 0; i < (registers_level == 2 ? 32 : 16); i++)
		if (memcmp(a->vector[i], b->vector[i], 8 * (size_t)words[registers_level]))
			report(round, "vector", i);
	for (int i = 1; i < 8 && registers_level == 2; i++)
		if (a->mask[i] != b->mask[i])
			report(round, "mask", i);
	for (int i = 0; i < 8; i++)
		if (memcmp(a->x87[i], b->x87[i], 10))
			report(round, "st", i);
	if (a->mxcsr != b->mxcsr)
		report(round, "mxcsr", 0);
	if (a->control != b->control)
		report(round, "x87 control", 0);
}

COUNT_PLAIN static void one(int round)
{
	fill();
	registers_target = registers_targets[round % TARGETS];
	registers_shift = round / TARGETS % 16;
	registers_direction = round / 80 % 2;
	memset(&registers_after, 0, sizeof registers_after);
	registers_round();
	check(round);
}

/* Not traced where a compiler prepares: the first traced call is the assembly function's. */
COUNT_PLAIN static void *fresh(void *round)
{
	one((int)(long)round);
	return NULL;
}

int main(int argc, char **argv)
{
	ENTER();
	int rounds = argc > 1 ? atoi(argv[1]) : 40000;

	count_list(&bare_leaf_site);
	count_list(&red_leaf_site);
	count_list(&near_caller_site);
	count_list(&tail_caller_site);
	count_list(&odd_frame_site);
	registers_level = __builtin_cpu_supports("avx512f") ? 2
			  : __builtin_cpu_supports("avx")   ? 1
							    : 0;
	if (argc > 2)
		registers_level = atoi(argv[2]);
	for (int round = 0; round < rounds; round++)
		one(round);
	/* So long that the low half of the clock is at another turn. */
	for (int i = 0; i < 4; i++) {
		usleep(300000);
		one(i);
	}
	for (int i = 0; i < 100; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, fresh, (void *)(long)i);
		pthread_join(thread, NULL);
	}
	printf("%d wrong\n", wrong);
	LEAVE();
	return wrong != 0;
}
