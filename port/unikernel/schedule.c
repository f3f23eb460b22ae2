/* SPDX-License-Identifier: MIT */
/*
 * Who runs next. Each processor has a queue, served in turn; one that has nothing takes from the
 * others. Two rules keep a thread from running twice at once:
 *  A. while on_cpu is set, its registers are in a processor: such a thread is only ever queued at
 *     that processor (thread_make_ready), and the others do not take it from there (take_from).
 *  B. on_cpu is cleared by the next thread on that processor, on its own stack (schedule_arrive).
 */
#include "port/unikernel/thread.h"

#include "port/unikernel/apic.h"
#include "port/unikernel/events.h"
#include "port/unikernel/interrupts.h"
#include "port/unikernel/trace.h"

#define TURN_NS 4000000

struct run_queue {
	struct spinlock lock;
	struct list threads;
	uint32_t count;
	uint32_t turn_set; /* a timer ends the running thread's turn */
	struct thread *idle;
} __attribute__((aligned(64)));

static struct run_queue queues[CPU_MAX];
static uint64_t idle_cpus; /* a bit for each processor that waits for an interrupt */

struct thread *switch_stacks(uint64_t *save, uint64_t sp, struct thread *previous);

/* Takes a thread that `cpu` may run off the queue; NULL: none. */
static struct thread *take_from(struct run_queue *queue, uint32_t cpu)
{
	for (struct list *at = queue->threads.next; at != &queue->threads; at = at->next) {
		struct thread *thread = list_entry(at, struct thread, link);
		/* acquire: its registers are all in memory. Pairs with schedule_arrive. */
		if (__atomic_load_n(&thread->on_cpu, __ATOMIC_ACQUIRE) && thread->cpu != cpu)
			continue;
		list_remove(&thread->link);
		queue->count--;
		thread->state = THREAD_RUNNING;
		thread->on_cpu = 1;
		if (thread->cpu != cpu)
			event_sched_migrate_task(thread, thread->cpu, cpu);
		thread->cpu = cpu;
		return thread;
	}
	return NULL;
}

static struct thread *take_from_others(uint32_t cpu)
{
	for (uint32_t i = 1; i < cpu_count; i++) {
		struct run_queue *queue = &queues[(cpu + i) % cpu_count];
		if (!__atomic_load_n(&queue->count, __ATOMIC_RELAXED))
			continue;
		spin_lock(&queue->lock);
		struct thread *thread = take_from(queue, cpu);
		spin_unlock(&queue->lock, 0);
		if (thread)
			return thread;
	}
	return NULL;
}

UNTRACED void schedule_arrive(struct thread *previous)
{
	bool unattended = previous->unattended;
	/* release: pairs with take_from and with thread_bury; from here on a joiner may free it */
	__atomic_store_n(&previous->on_cpu, 0, __ATOMIC_RELEASE);
	if (unattended)
		thread_bury(previous);
}

/* Not part of schedule, so that no traced call is open between the switch of the tracer's
 * context and that of the stack. */
static UNTRACED __attribute__((noinline)) void switch_to(struct cpu *cpu, struct thread *from,
							 struct thread *to)
{
	event_sched_switch(from, to);
	to->has_run = true;
	cpu->current = to;
	trace_switch(cpu, from, to);
	schedule_arrive(switch_stacks(&from->sp, to->sp, from));
}

void schedule(void)
{
	uint64_t flags = interrupts_save();
	struct cpu *cpu = cpu_this();
	struct run_queue *queue = &queues[cpu->number];
	struct thread *from = cpu->current;

	if (crash_is_alone)
		return;
	spin_lock(&queue->lock);
	cpu->needs_switch = 0;
	if (from->state == THREAD_RUNNING && from != queue->idle) {
		from->state = THREAD_READY;
		list_insert_before(&queue->threads, &from->link);
		queue->count++;
	}
	struct thread *to = take_from(queue, cpu->number);
	bool more = queue->count > 0;
	spin_unlock(&queue->lock, 0);
	if (!to)
		to = take_from_others(cpu->number);
	if (!to)
		to = queue->idle;
	if (more || queue->turn_set) {
		queue->turn_set = more;
		timer_set_turn(more ? TURN_NS : 0);
	}
	if (to != from)
		switch_to(cpu, from, to);
	interrupts_restore(flags);
}

void thread_yield(void)
{
	schedule();
}

/* Chooses a processor for a thread whose registers are in memory: where it last ran, if that is
 * idle, else any idle one. */
static uint32_t choose_cpu(const struct thread *thread)
{
	uint64_t idle = __atomic_load_n(&idle_cpus, __ATOMIC_RELAXED);
	if (!idle || idle >> thread->cpu & 1)
		return thread->cpu;
	return (uint32_t)__builtin_ctzll(idle);
}

void thread_make_ready(struct thread *thread)
{
	uint64_t flags = interrupts_save();
	bool left = !__atomic_load_n(&thread->on_cpu, __ATOMIC_ACQUIRE); /* rule A */
	uint32_t number = left ? choose_cpu(thread) : thread->cpu;
	struct run_queue *queue = &queues[number];
	struct cpu *here = cpu_this();

	event_sched_waking(thread);
	spin_lock(&queue->lock);
	if (thread->cpu != number)
		event_sched_migrate_task(thread, thread->cpu, number);
	event_sched_wakeup(thread, number);
	thread->state = THREAD_READY;
	if (left)
		thread->cpu = number;
	list_insert_before(&queue->threads, &thread->link);
	queue->count++;
	spin_unlock(&queue->lock, 0);

	if (number != here->number) {
		__atomic_and_fetch(&idle_cpus, ~(1ull << number), __ATOMIC_RELAXED);
		apic_send(cpus[number].apic_id, VECTOR_RESCHEDULE);
	} else if (here->depth || here->current == queue->idle) {
		here->needs_switch = 1;
	} else if (!queue->turn_set) {
		queue->turn_set = 1;
		timer_set_turn(TURN_NS);
	}
	interrupts_restore(flags);
}

static void handle_reschedule(void *argument)
{
	(void)argument;
	cpu_this()->needs_switch = 1;
}

void schedule_init(void)
{
	for (uint32_t i = 0; i < CPU_MAX; i++)
		list_init(&queues[i].threads);
	interrupt_set(VECTOR_RESCHEDULE, handle_reschedule, NULL);
}

void schedule_idle(void)
{
	struct cpu *cpu = cpu_this();
	struct run_queue *queue = &queues[cpu->number];
	uint64_t bit = 1ull << cpu->number;
	queue->idle = cpu->current;
	for (;;) {
		schedule();
		/* First sets the bit, then looks: a thread that is queued here after the look
		 * was queued by a processor that sees the bit, or that sends an interrupt, which
		 * ends the wait. */
		__atomic_or_fetch(&idle_cpus, bit, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&queue->count, __ATOMIC_SEQ_CST) && !cpu->needs_switch) {
			cpu->idle_since = cpu_ticks();
			cpu_wait_for_interrupt();
		}
		__atomic_and_fetch(&idle_cpus, ~bit, __ATOMIC_RELAXED);
	}
}
