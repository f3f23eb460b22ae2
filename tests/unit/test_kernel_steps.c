/* SPDX-License-Identifier: MIT */
/*
 * The recording path of kernels, interrupted behind each of its instructions. The processor's trap
 * flag stops after every instruction; the handler is an interrupt with a stack of its own that
 * makes a traced call; in every other round the open sub-buffer ends there. Nothing may be lost,
 * torn or out of order. Runs the very text that a kernel links, but for the instructions that only
 * a kernel may use.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>
#include "core/record/arch.h"
#include "core/record/kernel.h"
#include "core/record/port.h"
#include "core/record/sites.h"
#include "core/kernel/kernel_target.h"
#include "port/host/memory.h"

#define STACK_BYTES 65536
#define RING_BYTES  (32u << 20)
#define ROUNDS	    12
#define TRAP_FLAG   0x100

extern const char gt_hot_start[] __attribute__((visibility("hidden"))),
	gt_hot_end[] __attribute__((visibility("hidden")));
const char gt_recorder_text_start[1], gt_recorder_text_end[1];

static struct gt_thread block __attribute__((aligned(64)));
static struct graftrace_arena *arena;
static struct gt_sites sites;
static struct gt_context thread_context, interrupt_context;
static struct gt_frame thread_frames[256], interrupt_frames[256];
static uint8_t stubs[4096] __attribute__((aligned(4096)));
/* By the offset in the hot text, and in the stubs: it was interrupted there. */
static uint8_t seen[8192], seen_in_stubs[4096];
static uint32_t interrupts, outers, inners;
static bool interrupting;
static bool counting;
static uint32_t counted; /* instructions of the straight lines and of stubs */
static unsigned closing; /* where in the interrupt the open sub-buffer ends; 0: nowhere */

/* ---- the port ---- */

void *gt_port_allocate(size_t bytes)
{
	(void)bytes;
	return NULL;
}
void gt_port_release(void *memory, size_t bytes)
{
	(void)memory, (void)bytes;
}
bool gt_port_mirror_open(uint64_t low, uint64_t high)
{
	(void)low, (void)high;
	return false;
}
void gt_port_wait(struct graftrace_arena *of, uint32_t word, uint32_t milliseconds)
{
	(void)of, (void)word, (void)milliseconds;
}
void gt_port_ring_doorbell(struct graftrace_arena *of)
{
	(void)of;
}
void gt_port_trigger(uint32_t action, uint32_t function, uint64_t clock, uint64_t took)
{
	(void)action, (void)function, (void)clock, (void)took;
}
uint32_t gt_port_cpu(void)
{
	return 0;
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
	return gt_sites_is_stub_return(&sites, address);
}
uint32_t gt_port_context_number(void)
{
	return 0x80000000u;
}
void gt_port_cpus_stop(void)
{
}
void gt_port_cpus_start(void)
{
}
void gt_port_text_write(uint64_t address, const void *bytes, size_t count)
{
	uint64_t page = address & ~4095ull;
	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		abort();
	memcpy((void *)address, bytes, count);
}

/* ---- what is traced ---- */

#define TRACED __attribute__((noinline, noipa, patchable_function_entry(5, 0)))
#ifdef __clang__
#undef TRACED
#define TRACED __attribute__((noinline, patchable_function_entry(5, 0)))
#endif

TRACED static void interrupted(void)
{
	__asm__ volatile("" ::: "memory");
}

TRACED static unsigned inner(unsigned number)
{
	inners++;
	__asm__ volatile("" ::: "memory");
	return number + 1;
}

TRACED static unsigned outer(unsigned number)
{
	outers++;
	unsigned sum = inner(number);
	__asm__ volatile("" ::: "memory");
	return sum + inner(number);
}

/* Its frame has a high half of later, as where an interrupt came before the frame was written, and
 * it returns into another sub-buffer's epoch. */
TRACED static void displaced(void)
{
	block.top->high++;
	block.epoch = gt_epoch_next();
	gt_kernel_set_gate(&block);
}

#define FEW_FRAMES 8
#define DEEP	   20

static unsigned deepest; /* frames that were in use at once */

TRACED static unsigned deeper(unsigned left)
{
	unsigned frames = (unsigned)(block.top - block.context->frames);
	deepest = frames > deepest ? frames : deepest;
	unsigned below = left == 0 ? 0 : deeper(left - 1) + 1;
	__asm__ volatile("" : "+r"(below));
	return below;
}

/* ---- the interrupt ---- */

static void on_trap(int signal, siginfo_t *info, void *data)
{
	const ucontext_t *context = data;
	uint64_t rip = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
	uint64_t offset = rip - (uint64_t)gt_hot_start, in_stubs = rip - (uint64_t)stubs;
	(void)signal;
	(void)info;
	/* the slow half has its interrupts off */
	if (block.busy != 0)
		return;
	counted += counting && (offset < (uint64_t)(gt_hot_end - gt_hot_start) ||
				in_stubs < sizeof(seen_in_stubs));
	if (!interrupting)
		return;
	if (offset < (uint64_t)(gt_hot_end - gt_hot_start))
		seen[offset] = 1;
	else if (in_stubs < sizeof(seen_in_stubs))
		seen_in_stubs[in_stubs] = 1;
	else
		return;
	interrupts++;
	gt_kernel_enter(&interrupt_context, rip);
	if (closing == 1)
		gt_kernel_close(&block);
	interrupted();
	if (closing == 2)
		gt_kernel_close(&block);
	gt_kernel_leave();
}

static void step(bool on)
{
	if (on)
		__asm__ volatile("pushf; orl $0x100, (%%rsp); popf" ::: "memory", "cc");
	else
		__asm__ volatile("pushf; andl $~0x100, (%%rsp); popf" ::: "memory", "cc");
}

static unsigned result;

static void run_steps(void)
{
	result = outer(1); /* opens the first sub-buffer */
	interrupting = true;
	for (unsigned round = 0; round < ROUNDS; round++) {
		closing = round % 2 ? 1 + round / 2 % 2 : 0;
		step(true);
		result += outer(round);
		step(false);
	}
	interrupting = false;
}

/* ---- setting up ---- */

static uint64_t make_stack(uint64_t near)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	for (uint64_t at = near; at < near + (1ull << 34); at += 1 << 24) {
		if (mmap((void *)at, STACK_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) ==
		    MAP_FAILED)
			continue;
		if (mmap((void *)gt_kernel_mirror(at), STACK_BYTES, PROT_READ | PROT_WRITE, flags,
			 -1, 0) != MAP_FAILED)
			return at;
	}
	abort();
}

static void set_up(uint64_t *stack)
{
	static uint64_t entries[] = { 0, 0, 0, 0, 0 };
	static uint8_t states[5],
		wanted[5] = { GRAFTRACE_ENTRY_ON, GRAFTRACE_ENTRY_ON, GRAFTRACE_ENTRY_ON,
			      GRAFTRACE_ENTRY_ON, GRAFTRACE_ENTRY_ON };
	uint64_t bytes = gt_kernel_arena_bytes(RING_BYTES, 4096, 1);
	arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(arena != MAP_FAILED);
	gt_kernel_arena_init(arena, RING_BYTES, 4096, 1);
	arena->tracing_on = 1;
	entries[0] = (uint64_t)interrupted;
	entries[1] = (uint64_t)inner;
	entries[2] = (uint64_t)outer;
	entries[3] = (uint64_t)displaced;
	entries[4] = (uint64_t)deeper;
	gt_sites_init(&sites, entries, states, 5, (uint64_t)stubs);
	assert_int_equal(gt_sites_apply(&sites, wanted), 5);

	uint64_t interrupt_stack = make_stack((1ull << 44) + (1ull << 36));
	*stack = make_stack(1ull << 44);
	gt_kernel_context_init(&thread_context, 1, *stack, *stack + STACK_BYTES, thread_frames,
			       256);
	gt_kernel_context_init(&interrupt_context, GT_KERNEL_INTERRUPT, interrupt_stack,
			       interrupt_stack + STACK_BYTES, interrupt_frames, 256);
	assert_int_equal(syscall(SYS_arch_prctl, ARCH_SET_GS, &block), 0);
	assert_true(gt_kernel_cpu_start(&block, 0, &thread_context, "cpu"));

	stack_t alternate = { .ss_sp = (void *)interrupt_stack, .ss_size = STACK_BYTES };
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	assert_int_equal(sigaltstack(&alternate, NULL), 0);
	assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
}

static void call_on(uint64_t top, void (*function)(void))
{
	__asm__ volatile("mov %%rsp, %%rbx; mov %0, %%rsp; call *%1; mov %%rbx, %%rsp" ::"r"(top),
			 "r"(function)
			 : "rbx", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
			   "memory", "cc");
}

/* ---- what was recorded ---- */

static int function(void *data, uint32_t number, struct gt_function *out)
{
	(void)data, (void)number, (void)out;
	return GT_ENOENT;
}

static int function_at(void *data, uint64_t address, struct gt_function *out)
{
	(void)data, (void)address, (void)out;
	return GT_ENOENT;
}

static int thread_name(void *data, uint32_t tid, char comm[16])
{
	(void)data, (void)tid, (void)comm;
	return GT_ENOENT;
}

static uint32_t number_of(void *address)
{
	return gt_sites_find(&sites, (uint64_t)address);
}

static void nothing_is_lost_torn_or_out_of_order(void **state)
{
	static const struct gt_arena_names names = { function, function_at, thread_name, NULL,
						     NULL };
	static struct gt_arena_ring ring;
	static struct gt_arena_target target;
	struct gt_merge merge;
	struct gt_source *source;
	uint32_t entries[5] = { 0 }, returns[5] = { 0 }, depth = 0, in_interrupt = 0;
	uint64_t stack, last = 0;
	(void)state;
	set_up(&stack);
	call_on(stack + STACK_BYTES - 64, run_steps);
	assert_true(interrupts > 300); /* of two entries and returns and more a round */
	uint32_t places = 0, in_stubs = 0;
	for (size_t i = 0; i < sizeof(seen); i++)
		places += seen[i];
	for (size_t i = 0; i < sizeof(seen_in_stubs); i++)
		in_stubs += seen_in_stubs[i];
	assert_true(places >= 50);  /* the straight lines have about that many instructions */
	assert_true(in_stubs >= 3); /* each has four, and leaves by them */

	ring.arena = arena;
	ring.names = &names;
	ring.clock = (struct gt_clock){ .mult = 1 };
	gt_arena_target_init(&target, &ring);
	assert_int_equal(
		gt_merge_init(&merge, &target.target, &gt_host_memory, GT_MERGE_SNAPSHOT, NULL), 0);
	while (gt_merge_next(&merge, &source) > 0) {
		const struct gt_record *record = &source->record;
		assert_int_not_equal(record->kind, GT_RECORD_UNWOUND);
		assert_int_not_equal(record->kind, GT_RECORD_GAP);
		if (record->kind == GT_RECORD_CONTEXT)
			in_interrupt = record->value >= GT_KERNEL_INTERRUPT;
		if (record->kind != GT_RECORD_ENTRY && record->kind != GT_RECORD_RETURN)
			continue;
		bool of_interrupt = record->function == number_of((void *)interrupted);
		/* each call stands with its own context, at its own depth */
		assert_int_equal(of_interrupt, in_interrupt);
		if (record->kind == GT_RECORD_ENTRY) {
			entries[record->function]++;
			assert_int_equal(record->depth, of_interrupt ? 0 : depth);
			depth += !of_interrupt;
		} else {
			returns[record->function]++;
			depth -= !of_interrupt;
			assert_int_equal(record->depth, of_interrupt ? 0 : depth);
			assert_int_equal(record->flags & GT_RECORD_START_UNKNOWN, 0);
		}
		if (of_interrupt) {
			assert_true(record->clock >= last);
			last = record->clock;
		}
	}
	assert_int_equal(merge.damaged + source->decode.damaged, 0);
	gt_merge_fini(&merge);
	assert_int_equal(entries[number_of((void *)interrupted)], interrupts);
	assert_int_equal(returns[number_of((void *)interrupted)], interrupts);
	assert_int_equal(entries[number_of((void *)outer)], outers);
	assert_int_equal(returns[number_of((void *)outer)], outers);
	assert_int_equal(entries[number_of((void *)inner)], inners);
	assert_int_equal(returns[number_of((void *)inner)], inners);
	assert_int_equal(outers, ROUNDS + 1);
}

static uint64_t displaced_began;

static void run_displaced(void)
{
	displaced_began = gt_arch_clock();
	displaced();
}

/* Behind the other test, on its stack. */
static void a_call_does_not_begin_after_its_return(void **state)
{
	(void)state;
	call_on(thread_context.high - 64, run_displaced);
	const uint64_t *event = (const uint64_t *)block.cur - 4;
	assert_int_equal(event[0], GT_LONG_RETURN_WORD);
	assert_in_range(event[2], displaced_began, gt_arch_clock());
}

static void run_counted(void)
{
	result = inner(1);
	counting = true;
	step(true);
	result = inner(2);
	step(false);
	counting = false;
}

/* The jump at the function's own entry is one more. */
static void a_recorded_call_takes_54_instructions_behind_its_jump(void **state)
{
	uint32_t least = ~0u;
	(void)state;
	/* one of them may meet the end of a sub-buffer, or a new half of the clock */
	for (int i = 0; i < 3; i++) {
		counted = 0;
		call_on(thread_context.high - 64, run_counted);
		least = counted < least ? counted : least;
	}
	assert_int_equal(least, 54);
}

static void run_deep(void)
{
	result = deeper(DEEP);
}

static void calls_that_have_no_frame_are_lost_and_the_others_return(void **state)
{
	static struct gt_frame frames[FEW_FRAMES + 1];
	static struct gt_context few;
	const struct gt_frame behind = { .slot = 1, .word = 2, .children = 3 };
	uint64_t stack = make_stack((1ull << 44) + (1ull << 37));
	(void)state;
	gt_kernel_context_init(&few, 2, stack, stack + STACK_BYTES, frames, FEW_FRAMES);
	frames[FEW_FRAMES] = behind;
	gt_kernel_switch(&few, 0);
	uint64_t lost = block.stream->lost[GRAFTRACE_LOST_DEPTH];
	call_on(stack + STACK_BYTES - 8, run_deep);
	assert_int_equal(result, DEEP);
	assert_int_equal(deepest, FEW_FRAMES - 1);
	assert_int_equal(block.stream->lost[GRAFTRACE_LOST_DEPTH] - lost,
			 DEEP + 1 - (FEW_FRAMES - 1));
	assert_memory_equal(&frames[FEW_FRAMES], &behind, sizeof(behind));
	assert_ptr_equal(block.top, frames);
	gt_kernel_switch(&thread_context, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_torn_or_out_of_order),
		cmocka_unit_test(a_call_does_not_begin_after_its_return),
		cmocka_unit_test(a_recorded_call_takes_54_instructions_behind_its_jump),
		cmocka_unit_test(calls_that_have_no_frame_are_lost_and_the_others_return),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
