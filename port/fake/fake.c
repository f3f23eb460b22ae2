/* SPDX-License-Identifier: MIT */
/* The machine made up for tests: see fake.h. In one thread of the test's own process. */
#define _GNU_SOURCE
#include "port/fake/fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <graftrace/agent.h>
#include "core/record/arch.h"
#include "core/record/port.h"

#define STUBS	  0x100000ull /* where this machine says its stubs are: none is ever run */
#define FUNCTIONS 4096
#define STACKS	  64
/* Calls leave this much of the stack between their return slots. */
#define CALL_BYTES 64

int gt_agent_entry(uint64_t slot, uint32_t function, uint64_t *hole, uint32_t kind);
uint64_t gt_agent_exit(uint64_t slot, uint32_t function, uint64_t *hole);

const char gt_recorder_text_start[1], gt_recorder_text_end[1];

#define RULES_BYTES (1ull << 20) /* for gt_fake_rules */

static struct graftrace_arena *arena;
static uint64_t arena_bytes;
static uint64_t rules_at; /* in the arena's mapping: behind it */
static struct gt_fake_cpu cpus[GT_FAKE_CPUS];
static uint32_t running;
static uint64_t ticks;
static struct gt_fake_stack *stacks[STACKS];
static uint32_t stack_count;
static uint32_t contexts;

/* ---- what the recorder asks of its machine ---- */

void *gt_port_allocate(size_t bytes)
{
	return calloc(1, bytes);
}

void gt_port_release(void *memory, size_t bytes)
{
	(void)bytes;
	free(memory);
}

bool gt_port_mirror_open(uint64_t low, uint64_t high)
{
	(void)low;
	(void)high;
	return false; /* stacks have theirs from the start */
}

void gt_port_wait(struct graftrace_arena *of, uint32_t seen, uint32_t milliseconds)
{
	(void)of;
	(void)seen;
	(void)milliseconds;
}

void gt_port_ring_doorbell(struct graftrace_arena *of)
{
	(void)of;
}

void (*gt_fake_trigger)(uint32_t action);

void gt_port_trigger(uint32_t action, uint32_t of, uint64_t clock, uint64_t took)
{
	if (gt_fake_trigger != NULL)
		gt_fake_trigger(action);
	(void)of;
	(void)clock;
	(void)took;
}

const char *gt_port_comm(void)
{
	static char name[16];
	uint32_t tid = gt_arch_block()->tid, digits = 1;

	for (uint32_t rest = tid; rest > 9; rest /= 10)
		digits++;
	memset(name, 0, sizeof(name));
	name[0] = 't';
	for (; digits > 0; tid /= 10)
		name[digits--] = (char)('0' + tid % 10); /* a small stack is enough for this */
	return name;
}

uint32_t gt_port_cpu(void)
{
	return running;
}

void gt_port_lock(void)
{
}

void gt_port_unlock(void)
{
}

bool gt_port_peek(uint64_t address, uint64_t *value)
{
	*value = *(const uint64_t *)address;
	return true;
}

bool gt_port_is_stub_return(uint64_t address)
{
	return address - STUBS < FUNCTIONS * GT_STUB_BYTES &&
	       (address - STUBS) % GT_STUB_BYTES == GT_STUB_RETURN;
}

uint32_t gt_port_context_number(void)
{
	return 0x80000000u | ++contexts;
}

uint64_t gt_arch_clock(void)
{
	return ticks++ + cpus[running].clock_offset;
}

void gt_arch_clear_words(uint64_t *words, uint64_t count)
{
	memset(words, 0, count * 8);
}

bool gt_arch_is_stub_head(uint64_t address)
{
	(void)address;
	return false;
}

struct gt_thread *gt_arch_block(void)
{
	return cpus[running].block.self;
}

uint64_t gt_arch_interrupts_off(void)
{
	return 0;
}

void gt_arch_interrupts_restore(uint64_t saved)
{
	(void)saved;
}

bool gt_arch_interrupts_were_on(uint64_t saved)
{
	(void)saved;
	return !cpus[running].interrupts_off;
}

uint32_t gt_port_state(void)
{
	return cpus[running].state;
}

/* ---- the machine ---- */

void gt_fake_start(uint64_t ring_bytes, uint32_t sub_buffer_bytes)
{
	if (arena != NULL)
		munmap(arena, arena_bytes);
	for (uint32_t i = 0; i < stack_count; i++) {
		uint64_t bytes = stacks[i]->context.high - stacks[i]->low;
		munmap((void *)stacks[i]->low, bytes);
		munmap((void *)gt_kernel_mirror(stacks[i]->low), bytes);
		free(stacks[i]->frames);
		free(stacks[i]);
	}
	stack_count = 0;
	memset(cpus, 0, sizeof(cpus));
	running = 0;
	ticks = 1ull << 40;
	rules_at = gt_kernel_arena_bytes(ring_bytes, sub_buffer_bytes, GT_FAKE_CPUS);
	arena_bytes = rules_at + RULES_BYTES;
	arena = mmap(NULL, arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED)
		abort();
	gt_kernel_arena_init(arena, ring_bytes, sub_buffer_bytes, GT_FAKE_CPUS);
	arena->tracing_on = 1;
}

void gt_fake_rules(uint32_t events, uint64_t hists_bytes)
{
	if (gt_kernel_rules_bytes(events, hists_bytes) > RULES_BYTES)
		abort();
	gt_kernel_rules_init(arena, (char *)arena + rules_at, events, hists_bytes);
}

struct graftrace_arena *gt_fake_arena(void)
{
	return arena;
}

/* Where the twin's place is free as well. */
static uint64_t map_stack(uint64_t bytes)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	for (uint64_t at = 1ull << 44; at < 1ull << 45; at += 1 << 24) {
		void *low = mmap((void *)at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
		if (low == MAP_FAILED)
			continue;
		if (mmap((void *)gt_kernel_mirror(at), bytes, PROT_READ | PROT_WRITE, flags, -1,
			 0) != MAP_FAILED)
			return at;
		munmap(low, bytes);
	}
	abort();
}

struct gt_fake_stack *gt_fake_stack_of(uint32_t number, uint64_t bytes, uint32_t frames)
{
	struct gt_fake_stack *stack = calloc(1, sizeof(*stack));
	if (stack == NULL || stack_count == STACKS)
		abort();
	stacks[stack_count++] = stack;
	stack->frames = calloc(frames, sizeof(*stack->frames));
	if (stack->frames == NULL)
		abort();
	stack->low = map_stack(bytes);
	stack->sp = stack->low + bytes;
	gt_kernel_context_init(&stack->context, number, stack->low, stack->sp, stack->frames,
			       frames);
	return stack;
}

struct gt_fake_stack *gt_fake_stack(uint32_t number)
{
	return gt_fake_stack_of(number, GT_FAKE_STACK_BYTES, GT_FAKE_FRAMES);
}

void gt_fake_run(uint32_t cpu)
{
	running = cpu;
}

struct gt_fake_cpu *gt_fake_cpu(uint32_t cpu)
{
	return &cpus[cpu];
}

void gt_fake_cpu_start(uint32_t cpu, struct gt_fake_stack *stack)
{
	running = cpu;
	cpus[cpu].running = stack;
	if (!gt_kernel_cpu_start(&cpus[cpu].block, cpu, &stack->context, "cpu"))
		abort();
}

void gt_fake_clock(uint64_t to)
{
	ticks = to;
}

/* Return slots hold the stub's return point of a traced call, and this of one that is not. */
#define CALLER 0x1000
static bool call(uint32_t function, uint32_t kind)
{
	struct gt_fake_stack *stack = cpus[running].running;
	stack->sp -= CALL_BYTES;
	*(uint64_t *)stack->sp = CALLER;
	bool traced = gt_agent_entry(stack->sp, function, NULL, kind);
	if (traced)
		*(uint64_t *)stack->sp =
			STUBS + (uint64_t)function * GT_STUB_BYTES + GT_STUB_RETURN;
	return traced;
}

bool gt_fake_call(uint32_t function)
{
	return call(function, GT_ENTRY_ON);
}

bool gt_fake_call_root(uint32_t function)
{
	return call(function, GT_ENTRY_ROOT);
}

void gt_fake_return(void)
{
	struct gt_fake_stack *stack = cpus[running].running;
	uint64_t stub = *(const uint64_t *)stack->sp;
	if (stub != CALLER)
		gt_agent_exit(stack->sp, (uint32_t)((stub - STUBS) / GT_STUB_BYTES), NULL);
	stack->sp += CALL_BYTES;
}

void gt_fake_jump_out(uint32_t calls)
{
	cpus[running].running->sp += (uint64_t)calls * CALL_BYTES;
}

void gt_fake_switch(struct gt_fake_stack *next, uint32_t state)
{
	gt_kernel_switch(&next->context, state);
	cpus[running].running = next;
}

void gt_fake_interrupt(struct gt_fake_stack *stack)
{
	struct gt_fake_cpu *cpu = &cpus[running];
	cpu->interrupted[cpu->nested++] = cpu->running;
	cpu->running = stack;
	stack->sp = stack->context.high;
	gt_kernel_enter(&stack->context, 0);
}

void gt_fake_interrupt_end(void)
{
	struct gt_fake_cpu *cpu = &cpus[running];
	gt_kernel_leave();
	cpu->running = cpu->interrupted[--cpu->nested];
}

/* The recorder asks by a slot, or by where its own caller runs: here on the test's stack. */
static struct gt_context *context_at(uint64_t address)
{
	for (uint32_t i = 0; i < stack_count; i++)
		if (address >= stacks[i]->low && address < stacks[i]->context.high)
			return &stacks[i]->context;
	return &cpus[running].running->context;
}

void gt_fake_suspend(void)
{
	for (uint32_t i = 0; i < GT_FAKE_CPUS; i++)
		if (cpus[i].block.self != NULL)
			gt_kernel_suspend(&cpus[i].block, context_at);
}

void gt_fake_wake(void)
{
	for (uint32_t i = 0; i < GT_FAKE_CPUS; i++) {
		struct gt_fake_cpu *cpu = &cpus[i];
		if (cpu->running == NULL)
			continue;
		struct gt_fake_stack *thread =
			cpu->nested != 0 ? cpu->interrupted[0] : cpu->running;
		gt_kernel_wake(&cpu->block, &thread->context,
			       cpu->nested != 0 ? &cpu->running->context : NULL);
	}
}
