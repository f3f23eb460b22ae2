/* SPDX-License-Identifier: MIT */
/* Steps through the recording path by the trap flag, with a traced call after each instruction. */
#include <stdint.h>
#include <stdio.h>
#include "port/unikernel/interrupts.h"
#include "port/unikernel/trace.h"

#define SPARSE	  5000 /* rounds, some 30,000 words of what is stepped through */
#define ROUNDS	  200
#define TEXT_SIZE 65536
#define HEAD_SIZE 4096

/* Of the linker script; with TRACE=ftrace the recorder lies between them, and the straight lines
 * that are run at the head of each page of stubs. */
extern const char gt_recorder_text_start[], gt_recorder_text_end[];
/* The ways into the slow half and out of it. */
extern __attribute__((weak)) const char gt_glue_entry[], gt_glue_hook[];

static unsigned long outers, inners, steps, late; /* calls; late: steps_after among `steps` */
/* By the offset in the recorder's text, and in a page of stubs. */
static uint8_t seen[TEXT_SIZE], seen_in_head[HEAD_SIZE];
/* Only the slow half's steps call something: else it is they that come to the end of nearly each
 * sub-buffer, and what is stepped through takes the slow half by luck. */
static bool sparse = true;

__attribute__((noinline)) void steps_after(void)
{
	steps++;
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) unsigned steps_inner(unsigned number)
{
	inners++;
	__asm__ volatile("" ::: "memory");
	return number + 1;
}

__attribute__((noinline)) unsigned steps_outer(unsigned number)
{
	outers++;
	unsigned sum = steps_inner(number);
	__asm__ volatile("" ::: "memory");
	return sum + steps_inner(number);
}

/* An instruction is over. In the recorder's slow half the kernel calls this later, when interrupts
 * are let through again. */
static UNTRACED bool take_step(struct registers *registers)
{
	uint64_t offset = registers ? registers->rip - (uint64_t)gt_recorder_text_start : TEXT_SIZE;
	late += !registers;
	if (offset < TEXT_SIZE && registers->rip < (uint64_t)gt_recorder_text_end)
		seen[offset] = 1;
	else if (registers && !trace_may_switch(registers->rip))
		seen_in_head[registers->rip % HEAD_SIZE] = 1;
	if (!sparse || !registers ||
	    registers->rip - (uint64_t)gt_glue_entry < (uint64_t)(gt_glue_hook - gt_glue_entry))
		steps_after();
	return true;
}

static UNTRACED __attribute__((noinline)) unsigned step_through(unsigned round)
{
	__asm__ volatile("pushf; orl $0x100, (%%rsp); popf" ::: "memory", "cc");
	unsigned sum = steps_outer(round);
	__asm__ volatile("pushf; andl $~0x100, (%%rsp); popf" ::: "memory", "cc");
	return sum;
}

int main(void)
{
	unsigned places = 0, in_head = 0;

	steps_outer(1);
	exception_set(VECTOR_DEBUG, take_step);
	for (unsigned round = 0; round < SPARSE + ROUNDS; round++) {
		sparse = round < SPARSE;
		/* not the same one of them comes to each sub-buffer's end */
		if (round % 7 == 0)
			steps_inner(round);
		step_through(round);
	}
	exception_set(VECTOR_DEBUG, NULL);
	for (unsigned i = 0; i < TEXT_SIZE; i++)
		places += seen[i];
	for (unsigned i = 0; i < HEAD_SIZE; i++)
		in_head += seen_in_head[i];
	printf("steps: %u instructions of the recorder, %u of its straight lines, %lu calls waited "
	       "for it\n",
	       places, in_head, late);
	printf("steps: calls steps_outer %lu steps_inner %lu steps_after %lu\n", outers, inners,
	       steps);
	return 0;
}
