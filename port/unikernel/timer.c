/* SPDX-License-Identifier: MIT */
/*
 * Each processor keeps its timers in a list sorted by deadline, and arms its APIC timer for the
 * first of them or for the end of the running thread's turn. Without a deadline there is no
 * interrupt.
 */
#include "port/unikernel/timer.h"

#include "port/unikernel/apic.h"
#include "port/unikernel/clock.h"
#include "port/unikernel/crash.h"
#include "port/unikernel/events.h"
#include "port/unikernel/interrupts.h"
#include "port/unikernel/spinlock.h"

struct queue {
	struct spinlock lock;
	struct list timers;
	uint64_t turn_end; /* 0: none */
	uint64_t armed;	   /* deadline that the APIC timer is set for; 0: none */
} __attribute__((aligned(64)));

static struct queue queues[CPU_MAX];

/* Called on the queue's own processor. */
static void arm_locked(struct queue *queue)
{
	uint64_t first = TIMER_NEVER;
	if (!list_is_empty(&queue->timers))
		first = list_entry(queue->timers.next, struct timer, link)->deadline;
	if (queue->turn_end && queue->turn_end < first)
		first = queue->turn_end;
	if (first == TIMER_NEVER || (queue->armed && first == queue->armed))
		return;
	uint64_t now = clock_ns();
	queue->armed = first;
	apic_timer_arm(first > now ? first - now : 0);
}

static void handle(void *argument)
{
	struct cpu *cpu = cpu_this();
	struct queue *queue = &queues[cpu->number];
	(void)argument;
	uint64_t flags = spin_lock(&queue->lock);
	uint64_t now = clock_ns();
	queue->armed = 0;
	while (!list_is_empty(&queue->timers)) {
		struct timer *timer = list_entry(queue->timers.next, struct timer, link);
		if (timer->deadline > now)
			break;
		list_remove(&timer->link);
		timer->firing = 1;
		/* release: a thread that sees it as not running also sees it firing (timer_stop) */
		__atomic_store_n(&timer->cpu, 0, __ATOMIC_RELEASE);
		/* Interrupts stay off, as for a thread that waits in timer_stop: no VECTOR_STOP
		 * in between. */
		spin_unlock(&queue->lock, 0);
		event_timer_expire_entry(timer, now);
		timer->expired(timer);
		event_timer_expire_exit(timer);
		/* release: timer_stop may free the timer's memory after this */
		__atomic_store_n(&timer->firing, 0, __ATOMIC_RELEASE);
		spin_lock(&queue->lock);
	}
	if (queue->turn_end && queue->turn_end <= now) {
		queue->turn_end = 0;
		cpu->needs_switch = 1;
	}
	arm_locked(queue);
	spin_unlock(&queue->lock, flags);
}

void timer_init(void)
{
	for (uint32_t i = 0; i < CPU_MAX; i++)
		list_init(&queues[i].timers);
	interrupt_set(VECTOR_TIMER, handle, NULL);
}

void timer_start(struct timer *timer)
{
	struct cpu *cpu = cpu_this();
	struct queue *queue = &queues[cpu->number];
	uint64_t flags = spin_lock(&queue->lock);
	if (timer->cpu)
		crash("a timer was started that waits already");
	struct list *place = queue->timers.next;
	while (place != &queue->timers &&
	       list_entry(place, struct timer, link)->deadline <= timer->deadline)
		place = place->next;
	list_insert_before(place, &timer->link);
	timer->cpu = cpu->number + 1;
	event_timer_start(timer);
	arm_locked(queue);
	spin_unlock(&queue->lock, flags);
}

void timer_stop(struct timer *timer)
{
	uint32_t number = __atomic_load_n(&timer->cpu, __ATOMIC_ACQUIRE);
	if (number) {
		struct queue *queue = &queues[number - 1];
		uint64_t flags = spin_lock(&queue->lock);
		if (timer->cpu) {
			list_remove(&timer->link);
			timer->cpu = 0;
			event_timer_cancel(timer);
		}
		spin_unlock(&queue->lock, flags);
	}
	while (__atomic_load_n(&timer->firing, __ATOMIC_ACQUIRE))
		cpu_pause();
}

void timer_set_turn(uint64_t nanoseconds)
{
	struct queue *queue = &queues[cpu_this()->number];
	uint64_t flags = spin_lock(&queue->lock);
	queue->turn_end = nanoseconds ? clock_ns() + nanoseconds : 0;
	if (nanoseconds)
		arm_locked(queue);
	spin_unlock(&queue->lock, flags);
}
