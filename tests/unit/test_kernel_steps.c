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
#include "tests/unit/kernel_steps_port.h"

#define STACK_BYTES 65536
#define RING_BYTES  (32u << 20)
#define ROUNDS	    12
#define FUNCTIONS   12
#define TRAP_FLAG   0x100

extern const char gt_hot_start[] __attribute__((visibility("hidden"))),
	gt_hot_end[] __attribute__((visibility("hidden"))),
	gt_apart_start[] __attribute__((visibility("hidden"))),
	gt_apart_end[] __attribute__((visibility("hidden")));
const char gt_recorder_text_start[1], gt_recorder_text_end[1];

/* Behind the block stands what is added to the clock where clocks are apart. */
static struct {
	struct gt_thread thread;
	uint64_t clock_add;
} cpu __attribute__((aligned(64)));
#define block cpu.thread
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
static unsigned acts_at; /* the so-many-th interrupt acts; 0: none does */
static void (*act)(void);
static bool is_alone;	  /* no interrupt comes but that one */
static bool is_other_cpu; /* nor that: another CPU acts */
static bool is_exception; /* it is one on the stack that runs, which is no context of its own */
static bool calls_inner;  /* it calls what runs, too */

bool gt_port_is_stub_return(uint64_t address)
{
	return gt_sites_is_stub_return(&sites, address);
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

/* Its frame may have a high half of later, as where an interrupt came before the frame was written.
 * It returns into another sub-buffer's epoch, perhaps the first of a new round of them. */
static bool is_late, begins_anew;

TRACED static void displaced(void)
{
	block.top->high += is_late;
	do
		block.epoch = gt_epoch_next();
	while (begins_anew && block.epoch >= GT_EPOCH_STEP * 2);
	gt_kernel_set_gate(&block);
}

/* Of registers that hold arguments and results. */
TRACED static unsigned __int128 wide(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
				     uint64_t f)
{
	__asm__ volatile("" ::: "memory");
	return (unsigned __int128)(a + 10 * b + 100 * c) << 64 | (d + 10 * e + 100 * f);
}

static unsigned (*const volatile goes_on_with)(unsigned) = inner;

/* A call at its end becomes a jump: one slot, two calls. */
TRACED static unsigned tail(unsigned number)
{
	return goes_on_with(number + 1);
}

static void *jump_to[5];

/* A sanitizer would look for the bounds of the stack, which it does not know. */
__attribute__((no_sanitize("address", "undefined"))) TRACED static void leave_by_jump(void)
{
	__builtin_longjmp(jump_to, 1);
}

/* Returns where the frame of a call that never returned is on top. */
__attribute__((no_sanitize("address", "undefined"))) TRACED static void jump(void)
{
	if (__builtin_setjmp(jump_to) == 0)
		leave_by_jump();
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

/* As an act: the first record behind the interrupt has another high half of the clock. */
static void make_high_new(void)
{
}

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
	else if (rip - (uint64_t)gt_apart_start >= (uint64_t)(gt_apart_end - gt_apart_start))
		return;
	bool acts = acts_at != 0 && --acts_at == 0;
	if (is_alone && !acts)
		return;
	if (is_alone)
		((ucontext_t *)data)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	if (is_other_cpu) {
		act();
		return;
	}
	interrupts++;
	if (!is_exception)
		gt_kernel_enter(&interrupt_context, rip);
	if (acts)
		act();
	if (closing == 1)
		gt_kernel_close(&block);
	interrupted();
	if (calls_inner)
		inner(0);
	if (closing == 2)
		gt_kernel_close(&block);
	if (acts)
		closing = 0;
	if (!is_exception)
		gt_kernel_leave();
	if (acts && act == make_high_new)
		block.high--;
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

static unsigned around(unsigned number);
static unsigned work(unsigned number);
static unsigned opened(unsigned number);
static uint32_t number_of(void *address);
static uint8_t wanted[FUNCTIONS];

static void set_up(uint64_t *stack)
{
	static uint64_t entries[FUNCTIONS];
	static uint8_t states[FUNCTIONS];
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
	entries[5] = (uint64_t)around;
	entries[6] = (uint64_t)wide;
	entries[7] = (uint64_t)tail;
	entries[8] = (uint64_t)work;
	entries[9] = (uint64_t)jump;
	entries[10] = (uint64_t)leave_by_jump;
	entries[11] = (uint64_t)opened;
	memset(wanted, GRAFTRACE_ENTRY_ON, sizeof(wanted));
	gt_sites_init(&sites, entries, states, FUNCTIONS, (uint64_t)stubs);
	assert_int_equal(gt_sites_apply(&sites, wanted), FUNCTIONS);

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
	uint32_t number = 1;

	while (gt_sites_address(&sites, number) != (uint64_t)address)
		assert_true(number++ < sites.count);
	return number;
}

/* What is in the ring, from its beginning. */
static void begin_to_read(struct gt_merge *merge)
{
	static const struct gt_arena_names names = { function, function_at, thread_name, NULL,
						     NULL };
	static struct gt_arena_ring ring;
	static struct gt_arena_target target;
	ring.arena = arena;
	ring.names = &names;
	ring.clock = (struct gt_clock){ .mult = 1 };
	gt_arena_target_init(&target, &ring);
	assert_int_equal(
		gt_merge_init(merge, &target.target, &gt_host_memory, GT_MERGE_SNAPSHOT, NULL), 0);
}

static void nothing_is_lost_torn_or_out_of_order(void **state)
{
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

	begin_to_read(&merge);
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

static void check_records(void)
{
	struct gt_merge merge;
	struct gt_source *source;
	begin_to_read(&merge);
	while (gt_merge_next(&merge, &source) > 0) {
		const struct gt_record *record = &source->record;
		assert_int_not_equal(record->kind, GT_RECORD_GAP);
		if (record->kind == GT_RECORD_UNWOUND && !(record->flags & GT_RECORD_UNSEEN))
			assert_int_equal(record->function, number_of((void *)leave_by_jump));
		if (record->kind == GT_RECORD_RETURN)
			assert_int_equal(record->flags & GT_RECORD_START_UNKNOWN, 0);
	}
	assert_int_equal(merge.damaged + source->decode.damaged, 0);
	assert_int_equal(block.stream->lost[GRAFTRACE_LOST_FULL], 0);
	gt_merge_fini(&merge);
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
	is_late = true;
	call_on(thread_context.high - 64, run_displaced);
	is_late = false;
	const uint64_t *event = (const uint64_t *)block.cur - 4;
	assert_int_equal(event[0], GT_LONG_RETURN_WORD);
	assert_in_range(event[2], displaced_began, gt_arch_clock());
}

/* Frames of the straight line have no epoch, which is that of none. */
static void epochs_may_begin_anew(void **state)
{
	(void)state;
	begins_anew = true;
	call_on(thread_context.high - 64, run_displaced);
	begins_anew = false;
	assert_int_equal(((const uint64_t *)block.cur)[-4], GT_LONG_RETURN_WORD);
	assert_int_not_equal(block.epoch, 0);
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

/* ---- settings that change in an interrupt ---- */

enum setting {
	GRAPH,
	THRESHOLD,
	FUNCTION,
	NOP,
	PROFILE,
	PROFILE_GRAPH,
	SHALLOW,
	OFF,
	FULL,
	SETTINGS
};

static void set(enum setting setting)
{
	gt_kernel_set_tracer(setting == FUNCTION ? GRAFTRACE_TRACER_FUNCTION
			     : setting == NOP || setting == PROFILE
				     ? GRAFTRACE_TRACER_NOP
				     : GRAFTRACE_TRACER_FUNCTION_GRAPH);
	gt_kernel_set_threshold(setting == THRESHOLD ? 1ull << 50 : 0);
	gt_kernel_set_max_depth(setting == SHALLOW ? 1 : 0);
	gt_kernel_set_profile(setting == PROFILE || setting == PROFILE_GRAPH);
	gt_kernel_set_tracing_on(setting != OFF);
	block.full = setting == FULL;
	gt_thread_close_gate(&block);
}

static enum setting change_to;

static void change(void)
{
	set(change_to);
}

/* Stands below the call that is interrupted, and returns behind that. */
TRACED static unsigned around(unsigned number)
{
	interrupting = true;
	step(true);
	number = inner(number);
	step(false);
	interrupting = false;
	return number;
}

static void run_around(void)
{
	result = inner(1);
	result = around(10);
	result += inner(10);
}

static void run_on(struct gt_context *context, void (*function)(void), unsigned wanted_result)
{
	gt_kernel_switch(context, 0);
	call_on(context->high - 8, function);
	assert_int_equal(result, wanted_result);
	assert_ptr_equal(block.top, context->frames);
	gt_kernel_switch(&thread_context, 0);
}

/* True: a call has so many instructions. */
static bool act_at(unsigned instruction, struct gt_context *context)
{
	acts_at = instruction;
	closing = 0;
	run_on(context, run_around, 22);
	return acts_at == 0;
}

static void a_setting_may_change_at_each_instruction(void **state)
{
	static struct graftrace_profile_entry profile[GRAFTRACE_PROFILE_FUNCTIONS];
	static struct graftrace_profile_entry *profile_pages[] = { profile };
	bool goes_on = true;
	(void)state;
	gt_kernel_profile_table(0, profile_pages, 1);
	act = change;
	for (unsigned i = 0; i < 4 * SETTINGS; i++) {
		enum setting other = i / 4;
		change_to = i % 2 ? GRAPH : other;
		is_other_cpu = i / 2 % 2;
		is_alone = i % 4 != 0 || other != OFF;
		for (unsigned at = 1; at == 1 || goes_on; at++) {
			set(i % 2 ? other : GRAPH);
			goes_on = act_at(at, &thread_context);
		}
	}
	is_alone = is_other_cpu = false;
	set(GRAPH);
	check_records();
}

static uint64_t count_of(const struct graftrace_profile_entry *profile, void *function)
{
	const struct graftrace_profile_entry *entry = &profile[number_of(function)];
	uint64_t buckets[GRAFTRACE_PROFILE_BUCKETS], sum = 0;
	graftrace_profile_histogram(entry, buckets);
	for (uint32_t i = 0; i < GRAFTRACE_PROFILE_BUCKETS; i++)
		sum += buckets[i];
	assert_int_equal(sum, entry->hits);
	return sum;
}

static void a_profile_has_each_call_of_interrupts_at_each_instruction(void **state)
{
	static struct graftrace_profile_entry profile[GRAFTRACE_PROFILE_FUNCTIONS];
	static struct graftrace_profile_entry *profile_pages[] = { profile };
	(void)state;
	gt_kernel_profile_table(0, profile_pages, 1);
	calls_inner = true;
	acts_at = 0;
	for (enum setting setting = PROFILE; setting <= PROFILE_GRAPH; setting++) {
		memset(profile, 0, sizeof(profile));
		set(setting);
		const uint32_t before = interrupts, called = inners;
		run_on(&thread_context, run_around, 22);
		assert_true(interrupts - before > 100);
		assert_int_equal(count_of(profile, (void *)interrupted), interrupts - before);
		assert_int_equal(count_of(profile, (void *)inner), inners - called);
		assert_int_equal(count_of(profile, (void *)around), 1);
	}
	calls_inner = false;
	set(GRAPH);
	check_records();
}

/* When it returns, no frame above its own has flags or is of another epoch. */
TRACED static unsigned opened(unsigned number)
{
	gt_kernel_pause();
	gt_kernel_resume();
	interrupting = true;
	step(true);
	return number;
}

static void run_opened(void)
{
	result = opened(1);
	step(false);
	interrupting = false;
}

static void run_inner(void)
{
	result = inner(1);
}

static void do_nothing(void)
{
}

static void what_is_above_the_gate_is_known_behind_each_instruction(void **state)
{
	bool goes_on = true;
	(void)state;
	is_alone = true;
	for (unsigned round = 0; round < 3; round++) {
		act = round == 0 ? do_nothing : change;
		change_to = OFF;
		is_other_cpu = round == 2;
		for (unsigned at = 1; at == 1 || goes_on; at++) {
			set(GRAPH);
			call_on(thread_context.high - 64, run_inner);
			acts_at = at;
			call_on(thread_context.high - 64, run_opened);
			goes_on = acts_at == 0;
			assert_int_equal(result, 1);
			bool is_closed = block.gate == GT_GATE_CLOSED;
			assert_true(is_closed || act != change || !goes_on);
			assert_true(is_closed ? block.gate_top == ~0ull
					      : block.gate_top <= (uint64_t)(thread_frames + 1));
		}
	}
	is_alone = is_other_cpu = false;
	set(GRAPH);
	check_records();
}

static void close_first(void)
{
	closing = 1;
}

static void close_last(void)
{
	closing = 2;
}

/* Of a stack with so many frames, all of which are taken by one call below another. */
static struct gt_context *make_context(uint32_t number, uint32_t frame_count)
{
	static struct gt_frame frames[FEW_FRAMES];
	static struct gt_context context;
	static uint64_t stack;
	if (stack == 0)
		stack = make_stack((1ull << 44) + (1ull << 38));
	gt_kernel_context_init(&context, number, stack, stack + STACK_BYTES, frames, frame_count);
	return &context;
}

static void act_at_each(void (*what)(void), struct gt_context *context)
{
	act = what;
	for (unsigned at = 1; act_at(at, context); at++)
		;
	acts_at = 0;
}

static void a_sub_buffer_may_end_at_each_instruction(void **state)
{
	(void)state;
	act_at_each(close_first, &thread_context);
	act_at_each(close_last, &thread_context);
	act_at_each(make_high_new, &thread_context);
	/* on the general line */
	act_at_each(close_first, make_context(100, 3));
	check_records();
}

/* ---- each way, interrupted at each instruction ---- */

#define WORK 7

TRACED static unsigned work(unsigned number)
{
	unsigned __int128 numbers = wide(1, 2, 3, 4, 5, 6);
	number += (uint64_t)numbers == 654 && numbers >> 64 == 321;
	jump();
	number = tail(number);
	return number + deeper(3);
}

static void run_work(void)
{
	result = work(1);
	interrupting = true;
	step(true);
	result += work(1);
	step(false);
	interrupting = false;
	result += work(1);
}

static void run_paused(void)
{
	result = work(1);
	gt_kernel_pause();
	interrupting = true;
	step(true);
	result += work(1);
	step(false);
	interrupting = false;
	gt_kernel_resume();
	result += work(1);
}

static void a_setting_may_be_interrupted_at_each_instruction(void **state)
{
	(void)state;
	for (enum setting setting = 0; setting < SETTINGS; setting++) {
		for (closing = 0; closing < (setting == GRAPH ? 3 : 1); closing++) {
			set(setting);
			run_on(&thread_context, run_work, 3 * WORK);
			run_on(make_context(200 + setting * 3 + closing, 4), run_work, 3 * WORK);
		}
	}
	closing = 0;
	set(GRAPH);
	run_on(&thread_context, run_paused, 3 * WORK);
	check_records();
}

static void make_entries(enum graftrace_entry kind)
{
	wanted[number_of((void *)jump)] = wanted[number_of((void *)wide)] = (uint8_t)kind;
	wanted[number_of((void *)tail)] = (uint8_t)kind;
	gt_sites_apply(&sites, wanted);
	gt_kernel_set_graph_only(kind == GRAFTRACE_ENTRY_ROOT);
}

static void an_entry_of_each_kind_may_be_interrupted_at_each_instruction(void **state)
{
	static const enum graftrace_entry kinds[] = { GRAFTRACE_ENTRY_ROOT, GRAFTRACE_ENTRY_ONLY,
						      GRAFTRACE_ENTRY_NOTRACE,
						      GRAFTRACE_ENTRY_SILENT,
						      GRAFTRACE_ENTRY_TRIGGER };
	(void)state;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		make_entries(kinds[i]);
		set(GRAPH);
		run_on(&thread_context, run_work, 3 * WORK);
		set(i % 2 ? FUNCTION : PROFILE);
		run_on(&thread_context, run_work, 3 * WORK);
		set(OFF);
		run_on(&thread_context, run_work, 3 * WORK);
	}
	make_entries(GRAFTRACE_ENTRY_ON);
	set(GRAPH);
	check_records();
}

static void take_traps_on(int flags)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | flags };
	assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
}

/* Of calls of `interrupted` in the thread's own context: how many were recorded, each at its depth. */
static uint32_t exceptions_recorded(void)
{
	struct gt_merge merge;
	struct gt_source *source;
	uint32_t entries = 0, returns = 0, depth = 0, in_thread = 0;
	begin_to_read(&merge);
	while (gt_merge_next(&merge, &source) > 0) {
		const struct gt_record *record = &source->record;
		if (record->kind == GT_RECORD_CONTEXT)
			in_thread = record->value == thread_context.number;
		if (!in_thread || record->function != number_of((void *)interrupted))
			continue;
		entries += record->kind == GT_RECORD_ENTRY;
		returns += record->kind == GT_RECORD_RETURN;
		if (record->kind == GT_RECORD_ENTRY)
			depth = record->depth;
		if (record->kind == GT_RECORD_RETURN)
			assert_int_equal(record->depth, depth);
	}
	gt_merge_fini(&merge);
	assert_int_equal(entries, returns);
	return entries;
}

static void an_exception_may_call_at_each_instruction(void **state)
{
	const uint32_t before = interrupts, recorded = exceptions_recorded();
	(void)state;
	take_traps_on(0);
	is_exception = true;
	for (closing = 0; closing < 3; closing++)
		run_on(&thread_context, run_around, 22);
	is_exception = false;
	closing = 0;
	take_traps_on(SA_ONSTACK);
	assert_int_equal(exceptions_recorded() - recorded, interrupts - before);
	assert_true(interrupts - before >= 3 * 54);
	check_records();
}

static struct gt_context *context_at(uint64_t address)
{
	return address - thread_context.low < STACK_BYTES      ? &thread_context
	       : address - interrupt_context.low < STACK_BYTES ? &interrupt_context
							       : NULL;
}

static void suspend(void)
{
	gt_kernel_suspend(&block, context_at);
}

static void run_interrupt_until_suspended(unsigned instruction)
{
	gt_kernel_enter(&interrupt_context, 0);
	acts_at = instruction;
	call_on(interrupt_context.high - 64, run_around);
	assert_int_equal(result, 22);
}

/* Of an interrupt's call, while `thread` is what it interrupts: at each. True: there is one more. */
static bool suspend_at(unsigned instruction, struct gt_context *thread)
{
	struct gt_frame *const top = block.top;
	run_interrupt_until_suspended(instruction);
	const bool is_suspended = acts_at == 0;
	if (is_suspended)
		gt_kernel_wake(&block, thread, &interrupt_context);
	assert_ptr_equal(block.top, interrupt_frames);
	gt_kernel_leave();
	assert_ptr_equal(block.top, top);
	return is_suspended;
}

static void begin_to_suspend(bool begins)
{
	take_traps_on(begins ? 0 : SA_ONSTACK);
	act = suspend;
	acts_at = 0;
	is_alone = is_other_cpu = begins;
}

/* By then the block has the frames of the thread. */
static void an_interrupt_that_is_suspended_leaves_the_frames_of_the_thread(void **state)
{
	(void)state;
	begin_to_suspend(true);
	for (unsigned at = 1; suspend_at(at, &thread_context); at++) {
		assert_int_equal(thread_frames[0].slot, thread_context.high);
		run_on(&thread_context, run_inner, 2);
	}
	begin_to_suspend(false);
	check_records();
}

static void an_interrupt_that_is_suspended_needs_no_frame_of_the_thread(void **state)
{
	static struct gt_frame frames[FEW_FRAMES + 1];
	static struct gt_context full;
	const struct gt_frame behind = { .slot = 1, .word = 2, .children = 3 };
	(void)state;
	const uint64_t stack = make_stack((1ull << 44) + (3ull << 37));
	begin_to_suspend(true);
	bool goes_on = true;
	for (unsigned at = 1; goes_on; at++) {
		gt_kernel_context_init(&full, 3, stack, stack + STACK_BYTES, frames, FEW_FRAMES);
		for (unsigned i = 1; i < FEW_FRAMES; i++)
			frames[i] = (struct gt_frame){ .slot = full.high - 64 * i };
		full.top = &frames[FEW_FRAMES - 1];
		frames[FEW_FRAMES] = behind;
		gt_kernel_switch(&full, 0);
		goes_on = suspend_at(at, &full);
		assert_memory_equal(&frames[FEW_FRAMES], &behind, sizeof(behind));
		gt_kernel_switch(&thread_context, 0);
	}
	begin_to_suspend(false);
}

/* Last: there is no way back. */
static void clocks_may_be_apart(void **state)
{
	gt_arch_clocks_apart();
	cpu.clock_add = 1ull << 40;
	(void)state;
	memset(wanted, GRAFTRACE_ENTRY_OFF, sizeof(wanted));
	gt_sites_apply(&sites, wanted);
	memset(wanted, GRAFTRACE_ENTRY_ON, sizeof(wanted));
	gt_sites_apply(&sites, wanted);
	act_at_each(close_first, &thread_context);
	run_on(&thread_context, run_work, 3 * WORK);
	check_records();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_torn_or_out_of_order),
		cmocka_unit_test(a_call_does_not_begin_after_its_return),
		cmocka_unit_test(epochs_may_begin_anew),
		cmocka_unit_test(a_recorded_call_takes_54_instructions_behind_its_jump),
		cmocka_unit_test(calls_that_have_no_frame_are_lost_and_the_others_return),
		cmocka_unit_test(a_setting_may_change_at_each_instruction),
		cmocka_unit_test(a_profile_has_each_call_of_interrupts_at_each_instruction),
		cmocka_unit_test(what_is_above_the_gate_is_known_behind_each_instruction),
		cmocka_unit_test(a_sub_buffer_may_end_at_each_instruction),
		cmocka_unit_test(a_setting_may_be_interrupted_at_each_instruction),
		cmocka_unit_test(an_entry_of_each_kind_may_be_interrupted_at_each_instruction),
		cmocka_unit_test(an_exception_may_call_at_each_instruction),
		cmocka_unit_test(an_interrupt_that_is_suspended_leaves_the_frames_of_the_thread),
		cmocka_unit_test(an_interrupt_that_is_suspended_needs_no_frame_of_the_thread),
		cmocka_unit_test(clocks_may_be_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
