/* SPDX-License-Identifier: MIT */
/*
 * The recorder's port to this kernel: what core/record/port.h asks for, and the kernel's hooks
 * (trace.h) passed on to core/record/kernel.h. Nothing in this file is traced: hooks run in the
 * middle of switches and interrupts.
 */
#include "port/unikernel/trace.h"

#include <graftrace/agent.h>
#include "core/record/kernel.h"
#include "core/record/kernel_place.h"
#include "core/record/kernel_probe.h"
#include "core/record/port.h"
#include "port/unikernel/acpi.h"
#include "port/unikernel/boot.h"
#include "port/unikernel/clock.h"
#include "port/unikernel/console.h"
#include "port/unikernel/cpu.h"
#include "port/unikernel/crash.h"
#include "port/unikernel/interrupts.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/smp.h"
#include "port/unikernel/spinlock.h"
#include "port/unikernel/symbols.h"
#include "port/unikernel/thread.h"
#include "port/unikernel/trace_private.h"
#include "port/unikernel/include/string.h"

#define SUB_BUFFER_BYTES 16384u
#define RING_BYTES_MIN	 (1u << 20)
#define RING_BYTES	 (64u << 20)
/* Memory that the ring leaves to the network and the kernel's own parts, in addition to what
 * pages.c reserves, if it has to be smaller than asked for; and the least size of a ring then. */
#define ROOM_BYTES	   (8u << 20)
#define CPU_ROOM_BYTES	   (1u << 19)
#define CPU_RING_BYTES_MIN (8 * SUB_BUFFER_BYTES)
/* Of the memory that is left, tables of histograms take such a part, at most so many bytes. */
#define HISTS_PART  32
#define HISTS_BYTES (4u << 20)
/* A call takes at least this many bytes of its stack, which bounds the frames of a stack. */
#define CALL_BYTES   32
#define REPORT_CALLS 8

/* A stack's data for the recorder. A thread's is noted in thread->recorder[0]. */
struct trace_stack {
	struct gt_context context;
	struct trace_stack *next; /* in the list of free ones */
	struct gt_frame frames[];
};

struct gt_sites trace_sites;
static struct graftrace_arena *arena;
/* Interrupts' contexts are numbered by one of these and the processor's number. */
#define STACK_KINDS 3
static struct trace_stack *idle_stacks[CPU_MAX], *interrupt_stacks[CPU_MAX][STACK_KINDS];
static const unsigned fault_stacks[STACK_KINDS] = { 0, STACK_NMI, STACK_DEBUG };
static uint32_t lock;

extern uint64_t patchable_entries_start[], patchable_entries_end[];
extern char trace_stubs_start[], probe_stubs_start[], place_cells_start[], place_cells_end[];
extern const struct graftrace_event_site trace_events_start[], trace_events_end[];

/* ---- functions that the recorder needs of its kernel ---- */

void gt_port_trigger(uint32_t action, uint32_t function, uint64_t clock, uint64_t took)
{
	(void)function;
	(void)clock;
	(void)took;
	trace_note_trigger(action);
}

uint32_t gt_port_cpu(void)
{
	return cpu_this()->number;
}

const char *gt_port_comm(void)
{
	return trace_comm(thread_this());
}

uint32_t gt_port_state(void)
{
	const struct cpu *cpu = cpu_this();
	return (cpu->needs_switch ? GRAFTRACE_STATE_NEED_RESCHED : 0) |
	       (cpu->preempt_off & 0xf) << GRAFTRACE_STATE_PREEMPT;
}

void gt_port_lock(void)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) && !crash_is_alone)
		cpu_pause();
}

void gt_port_unlock(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

bool gt_port_peek(uint64_t address, uint64_t *value)
{
	uint64_t low, top;
	if (!stack_bounds(address, &low, &top))
		return false;
	*value = *(const uint64_t *)address;
	return true;
}

/* What a processor may read there without a fault, and without an effect on a device. */
static bool is_readable(uint64_t address)
{
	const uint64_t entry =
		(int64_t)(address << 16) >> 16 == (int64_t)address ? paging_entry(address) : 0;
	return entry && !(entry & MAP_UNCACHED);
}

bool gt_port_peek_bytes(uint64_t address, void *bytes, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		if ((!i || (address + i) % PAGE_BYTES == 0) && !is_readable(address + i))
			return false;
		((uint8_t *)bytes)[i] = ((const volatile uint8_t *)address)[i];
	}
	return true;
}

bool gt_port_is_stub_return(uint64_t address)
{
	return gt_sites_is_stub_return(&trace_sites, address);
}

/* ---- stacks ---- */

/* Free ones of ended threads, of the usual size. A new one has all of its frames written; in
 * these only the few that were still open need it. */
static struct trace_stack *spares;
static struct spinlock spares_lock;

static struct trace_stack *take_spare(uint32_t count)
{
	uint64_t flags = spin_lock(&spares_lock);
	struct trace_stack *stack = spares && spares->context.capacity == count ? spares : NULL;
	if (stack)
		spares = stack->next;
	spin_unlock(&spares_lock, flags);
	for (; stack && stack->context.top != stack->frames; stack->context.top--)
		stack->context.top->slot = GT_SLOT_NONE;
	return stack;
}

static void keep_spare(struct trace_stack *stack)
{
	if (!stack || stack->context.capacity != THREAD_STACK_BYTES / CALL_BYTES) {
		free(stack);
		return;
	}
	uint64_t flags = spin_lock(&spares_lock);
	stack->next = spares;
	spares = stack;
	spin_unlock(&spares_lock, flags);
}

static struct trace_stack *stack_make(uint32_t number, uint64_t low, uint64_t top)
{
	uint32_t count = (uint32_t)((top - low) / CALL_BYTES);
	struct trace_stack *stack = take_spare(count);
	uint32_t dirty = stack ? 1 : count;
	if (!stack)
		stack = malloc(sizeof(*stack) + count * sizeof(struct gt_frame));
	if (!stack)
		return NULL;
	gt_kernel_context_init(&stack->context, number, low, top, stack->frames, dirty);
	stack->context.capacity = count;
	return stack;
}

static struct gt_context *context_of(const struct thread *thread)
{
	struct trace_stack *stack = (struct trace_stack *)thread->recorder[0];
	return stack ? &stack->context : NULL;
}

/* Finds the context of an address among the stacks of this processor. The recorder calls it while
 * the processors are suspended, without a hook. */
static struct gt_context *context_at(uint64_t address)
{
	struct gt_context *context = context_of(thread_this());
	struct trace_stack **apart = interrupt_stacks[cpu_this()->number];
	for (unsigned kind = 0; kind < STACK_KINDS; kind++)
		if (apart[kind] && address >= apart[kind]->context.low &&
		    address < apart[kind]->context.high)
			return &apart[kind]->context;
	return context && address >= context->low && address < context->high ? context : NULL;
}

static void cpu_begin(struct cpu *cpu)
{
	char name[] = "cpu00";
	struct thread *idle = cpu->current;
	uint64_t low, top;
	struct trace_stack *stack = idle_stacks[cpu->number] =
		stack_make(0, idle->stack_low, idle->stack_top);
	idle->recorder[0] = (uint64_t)stack;
	for (unsigned kind = 0; kind < STACK_KINDS; kind++) {
		top = kind ? cpu_fault_stack(cpu, fault_stacks[kind]) : cpu->interrupt_stack;
		stack_bounds(top - 8, &low, &top);
		struct trace_stack *made =
			stack_make(GT_KERNEL_INTERRUPT + kind * CPU_MAX + cpu->number, low, top);
		interrupt_stacks[cpu->number][kind] = made;
		if (!stack || !made)
			return;
	}
	uint64_t slow_top = stack_allocate(GT_KERNEL_SLOW_STACK_BYTES, &low);
	((struct gt_thread *)cpu->recorder)->slow_stack = slow_top;
	name[3] += (char)(cpu->number / 10);
	name[4] += (char)(cpu->number % 10);
	gt_kernel_cpu_start((struct gt_thread *)cpu->recorder, cpu->number, &stack->context, name);
	gt_kernel_suspend((struct gt_thread *)cpu->recorder, context_at);
}

/* ---- suspended: no hook is called while all processors stand still ---- */

void trace_suspend(void)
{
	for (uint32_t i = 0; i < cpu_count; i++)
		if (((struct gt_thread *)cpus[i].recorder)->self)
			gt_kernel_suspend((struct gt_thread *)cpus[i].recorder, context_at);
}

/* The other processors are stopped in an interrupt. */
void trace_wake(void)
{
	for (uint32_t i = 0; i < cpu_count; i++) {
		struct gt_thread *block = (struct gt_thread *)cpus[i].recorder;
		struct gt_context *thread = context_of(cpus[i].current);
		if (block->stream && thread)
			gt_kernel_wake(block, thread,
				       cpus[i].depth ? &interrupt_stacks[i][0]->context : NULL);
	}
}

static void close_all(void *argument)
{
	(void)argument;
	for (uint32_t i = 0; i < cpu_count; i++)
		if (((struct gt_thread *)cpus[i].recorder)->stream)
			gt_kernel_close((struct gt_thread *)cpus[i].recorder);
}

void trace_close(void)
{
	if (crash_is_alone) { /* the others never continue */
		close_all(NULL);
		return;
	}
	gt_kernel_pause();
	smp_stopped(close_all, NULL);
	gt_kernel_resume();
}

/* ---- hooks ---- */

static uint64_t ring_bytes(void)
{
	uint64_t wanted = option_number("buffer", RING_BYTES), bytes = wanted;
	uint64_t room = ROOM_BYTES + acpi_cpu_count * CPU_ROOM_BYTES, all = pages_free_bytes();
	uint64_t most = all / 2 < room ? all - room : all / 2;
	uint64_t least = acpi_cpu_count * CPU_RING_BYTES_MIN;
	if (all < room)
		most = 0;
	if (bytes < RING_BYTES_MIN)
		bytes = RING_BYTES_MIN;
	if (bytes > most)
		bytes = most;
	if (bytes < least)
		bytes = least < RING_BYTES_MIN ? least : RING_BYTES_MIN;
	if (bytes != wanted)
		console_print("trace: the ring has %lu KiB, not %lu: %s\n", bytes >> 10,
			      wanted >> 10,
			      bytes < wanted ? "there is no more memory" : "none is smaller");
	return bytes / SUB_BUFFER_BYTES * SUB_BUFFER_BYTES;
}

/* Filters and triggers of events; without the memory there are none. */
static void rules_begin(uint32_t events)
{
	uint64_t hists = pages_free_bytes() / HISTS_PART;
	if (hists > HISTS_BYTES)
		hists = HISTS_BYTES;
	void *memory = map_allocate(gt_kernel_rules_bytes(events, hists));
	if (memory)
		gt_kernel_rules_init(arena, memory, events, hists);
	else
		console_print("trace: no memory for filters and triggers of events\n");
}

/* A probe inside a function. The CPU goes on where it stood, but for the address. */
static bool on_breakpoint(struct registers *registers)
{
	const uint64_t to = gt_places_trap(registers->rip - 1);
	if (to)
		registers->rip = to;
	return to != 0;
}

static void probes_begin(uint32_t count)
{
	uint32_t cells = (uint32_t)(place_cells_end - place_cells_start) / GT_PLACE_BYTES;
	struct graftrace_kernel_probe **probes = calloc(count, sizeof(*probes));
	uint8_t *probed = calloc(count, 1);
	struct gt_place *places = calloc(cells, sizeof(*places));
	if (!probes || !probed || !places)
		crash("trace: no memory for the probes");
	gt_probes_init(&trace_sites, (uint64_t)probe_stubs_start, probes, probed);
	gt_places_init(&trace_sites, (uint64_t)place_cells_start, places, cells);
	exception_set(VECTOR_BREAKPOINT, on_breakpoint);
}

void trace_init(void)
{
	uint32_t count = (uint32_t)(patchable_entries_end - patchable_entries_start);
	uint64_t bytes = ring_bytes();
	uint64_t *entries = malloc(count * sizeof(*entries));
	uint8_t *states = malloc(count);
	struct graftrace_arena *memory =
		map_allocate(gt_kernel_arena_bytes(bytes, SUB_BUFFER_BYTES, CPU_MAX));
	if (!entries || !states || !memory)
		crash("trace: no memory for the ring");
	memcpy(entries, patchable_entries_start, count * sizeof(*entries));
	gt_kernel_arena_init(memory, bytes, SUB_BUFFER_BYTES, CPU_MAX);
	arena = memory;
	gt_sites_init(&trace_sites, entries, states, count, (uint64_t)trace_stubs_start);
	probes_begin(count);
	uint32_t events = (uint32_t)(trace_events_end - trace_events_start);
	struct graftrace_kernel_event **table = malloc(events * sizeof(*table));
	uint8_t *on = malloc(events);
	if (!table || !on)
		crash("trace: no memory for the events");
	gt_sites_events_init(&trace_sites, trace_events_start, events, table, on);
	rules_begin(trace_sites.event_count);
	cpu_begin(cpu_this());
}

void trace_cpu_init(struct cpu *cpu)
{
	cpu_begin(cpu);
}

static void rewrite(void *sites)
{
	gt_sites_rewrite(sites);
}

void trace_start(void)
{
	trace_clock_report();
	smp_stopped(rewrite, &trace_sites);
	gt_kernel_pause();
	if (trace_files_init())
		trace_serve();
	else
		console_print("trace: no memory for the control files\n");
	gt_kernel_resume();
}

void trace_thread_init(struct thread *thread)
{
	thread->recorder[0] =
		(uint64_t)stack_make(thread->number, thread->stack_low, thread->stack_top);
	trace_name_thread(thread->number, thread->name);
}

void trace_thread_fini(struct thread *thread)
{
	keep_spare((struct trace_stack *)thread->recorder[0]);
	trace_name_over(thread->number);
}

void trace_switch_live(struct cpu *cpu, struct thread *from, struct thread *to)
{
	static const uint8_t states[] = { 0, 0, 1, 16 }; /* Linux's R, R, S, X */
	struct gt_context *next = context_of(to);
	/* There was no memory for its stack's data: its calls are outside of known stacks, and
	 * are counted as lost. The context of `from` must not stay set, since `from` may run
	 * elsewhere. */
	if (!next && idle_stacks[cpu->number])
		next = &idle_stacks[cpu->number]->context;
	if (next)
		gt_kernel_switch(next, states[from->state & 3]);
}

void trace_interrupt_begin_live(struct cpu *cpu, const struct registers *registers)
{
	if (interrupt_stacks[cpu->number][0])
		gt_kernel_enter(&interrupt_stacks[cpu->number][0]->context, registers->rip);
}

void trace_interrupt_end_live(struct cpu *cpu)
{
	trace_interrupt_noted(); /* still in the interrupt's context */
	if (interrupt_stacks[cpu->number][0])
		gt_kernel_leave();
}

static struct gt_context *exception_context(struct cpu *cpu, const struct registers *registers)
{
	unsigned kind = registers->vector == VECTOR_NMI ? 1 : 2;
	struct trace_stack *stack = interrupt_stacks[cpu->number][kind];
	return stack ? &stack->context : NULL;
}

bool trace_exception_begin_live(struct cpu *cpu, const struct registers *registers)
{
	struct gt_context *context = exception_context(cpu, registers);
	return context && gt_kernel_enter_nmi(context, registers->rip);
}

void trace_exception_end_live(struct cpu *cpu, const struct registers *registers)
{
	(void)cpu;
	(void)registers;
	gt_kernel_leave();
}

uint64_t trace_return_address(uint64_t slot, uint64_t value)
{
	uint64_t low, top;
	if (gt_port_is_stub_return(value) && stack_bounds(slot, &low, &top))
		value = *(const uint64_t *)gt_kernel_mirror(slot);
	return gt_probes_return_address(slot, value);
}

uint64_t trace_place(uint64_t address)
{
	return gt_places_origin(address);
}

uint8_t trace_text_byte(uint64_t address)
{
	return gt_places_byte(address);
}

/* ---- the end of a crash report ---- */

static void report_cpu(uint32_t number)
{
	const struct gt_thread *block = (const struct gt_thread *)cpus[number].recorder;
	if (!block->sub_buffer || block->cur == 0)
		return;
	const uint64_t *first = graftrace_sub_buffer_words(block->sub_buffer);
	const uint64_t *word = (const uint64_t *)block->cur;
	uint32_t calls = 0;
	console_print("CPU %u, last call last:\n", number);
	while (word > first && calls < REPORT_CALLS)
		calls += graftrace_word_function(*--word) - 1 < trace_sites.count;
	for (; word < (const uint64_t *)block->cur; word++) {
		uint64_t address = gt_sites_address(&trace_sites, graftrace_word_function(*word));
		if (address)
			console_print("  %s %s\n", graftrace_word_is_return(*word) ? "<-" : "->",
				      symbol_name(symbol_find(address)));
	}
}

void trace_report(void)
{
	static bool has_ended;
	if (!arena)
		return;
	if (has_ended && !arena->tracing_on) {
		console_print("tracing ended with the report before this one\n");
		return;
	}
	has_ended = true;
	gt_kernel_set_tracing_on(false);
	for (uint32_t i = 0; i < cpu_count; i++)
		report_cpu(i);
}
