/* SPDX-License-Identifier: MIT */
/* Steps through the recording path by the trap flag, with a traced call after each instruction. */
#include <stdint.h>
#include <stdio.h>
#include "port/unikernel/interrupts.h"
#include "port/unikernel/trace.h"

#define SPARSE	  5000 /* rounds, which make about 30,000 words */
#define ROUNDS	  200
#define TEXT_SIZE 65536
#define HEAD_SIZE 4096

/* From the linker script; with TRACE=ftrace the recorder's text is between them, and so are the
 * straight lines at the head of each page of stubs. */
extern const char gt_recorder_text_start[], gt_recorder_text_end[];
/* The entries to the slow half and the exits from it. */
extern __attribute__((weak)) const char gt_glue_entry[], gt_glue_hook[];

static unsigned long outers, inners, steps, late; /* calls; late: steps_after among `steps` */
/* By offset in the recorder's text, and in a page of stubs. */
static uint8_t seen[TEXT_SIZE], seen_in_head[HEAD_SIZE];
/* Only steps in the slow half make a traced call: otherwise nearly every end of a sub-buffer
 * would come in such a call, and the stepped path would rarely take the slow half. */
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

/* Called after each instruction. In the recorder's slow half the kernel calls this later, when
 * interrupts are enabled again. */
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
		/* varies which of the calls meets a sub-buffer's end */
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
