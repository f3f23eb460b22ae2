/* SPDX-License-Identifier: MIT */
/*
 * Threads, from their creation to their end.
 */
#include "port/unikernel/thread.h"

#include "port/unikernel/events.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/trace.h"
#include "port/unikernel/include/string.h"

extern const char thread_first_steps[];

static struct spinlock ring_lock;
static struct list ring = { &ring, &ring };
static uint32_t last_number;
static struct thread idle_threads[CPU_MAX];

void thread_run(struct thread *previous) __attribute__((noreturn));

void thread_init_idle(struct cpu *cpu, uint64_t stack_low, uint64_t stack_top)
{
	struct thread *thread = &idle_threads[cpu->number];
	list_init(&thread->link);
	thread->state = THREAD_RUNNING;
	thread->on_cpu = 1;
	thread->cpu = cpu->number;
	strncpy(thread->name, "idle", THREAD_NAME_BYTES);
	thread->stack_low = stack_low;
	thread->stack_top = stack_top;
	cpu->current = thread;
}

struct thread *thread_create(const char *name, void *(*function)(void *), void *argument,
			     uint64_t stack_bytes, bool detached)
{
	struct thread *thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	uint64_t top =
		stack_allocate(stack_bytes ? stack_bytes : THREAD_STACK_BYTES, &thread->stack_low);
	if (!top) {
		free(thread);
		return NULL;
	}
	thread->stack_top = top;
	thread->function = function;
	thread->argument = argument;
	thread->detached = detached;
	thread->program = thread_this()->program;
	thread->cpu = cpu_this()->number;
	thread->state = THREAD_WAITING;
	list_init(&thread->link);
	strncpy(thread->name, name, THREAD_NAME_BYTES - 1);
	/* What switch_stacks pops: six registers and the return address. */
	uint64_t *stack = (uint64_t *)top - 9;
	memset(stack, 0, 9 * sizeof(*stack));
	stack[6] = (uint64_t)thread_first_steps;
	thread->sp = (uint64_t)stack;
	thread->number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
	trace_thread_init(thread);
	event_sched_process_fork(thread_this(), thread);

	uint64_t flags = spin_lock(&ring_lock);
	list_insert_before(&ring, &thread->all);
	spin_unlock(&ring_lock, flags);
	thread_make_ready(thread);
	return thread;
}

/* Called in the new thread with interrupts off. */
void thread_run(struct thread *previous)
{
	struct thread *thread = thread_this();
	schedule_arrive(previous);
	interrupts_on();
	thread_exit(thread->function(thread->argument));
}

/* See thread.h. */
void thread_bury(struct thread *thread)
{
	while (__atomic_load_n(&thread->on_cpu, __ATOMIC_ACQUIRE))
		cpu_pause();
	trace_thread_fini(thread);
	uint64_t flags = spin_lock(&ring_lock);
	list_remove(&thread->all);
	spin_unlock(&ring_lock, flags);
	stack_release(thread->stack_low);
	free(thread);
}

void thread_exit(void *result)
{
	struct thread *thread = thread_this();
	thread->result = result;
	event_sched_process_exit(thread);
	uint64_t flags = spin_lock(&thread->ended.lock);
	thread->over = 1;
	wake_all_locked(&thread->ended);
	thread->unattended = thread->detached;
	thread->state = THREAD_OVER;
	/* Interrupts stay off from here: a thread that sees `over` waits only until this stack
	 * is left. */
	spin_unlock(&thread->ended.lock, 0);
	(void)flags;
	schedule();
	__builtin_unreachable();
}

void *thread_join(struct thread *thread)
{
	uint64_t flags = spin_lock(&thread->ended.lock);
	while (!thread->over) {
		wait_locked(&thread->ended, flags, TIMER_NEVER);
		flags = spin_lock(&thread->ended.lock);
	}
	spin_unlock(&thread->ended.lock, flags);
	void *result = thread->result;
	thread_bury(thread);
	return result;
}

void thread_detach(struct thread *thread)
{
	uint64_t flags = spin_lock(&thread->ended.lock);
	bool over = thread->over;
	thread->detached = 1;
	spin_unlock(&thread->ended.lock, flags);
	if (over)
		thread_bury(thread);
}

bool thread_is_there(const struct thread *thread)
{
	for (struct list *at = ring.next; at != &ring; at = at->next)
		if (at == &thread->all)
			return true;
	return false;
}

void threads_visit(bool (*visit)(struct thread *thread, void *argument), void *argument)
{
	uint64_t flags = spin_lock(&ring_lock);
	for (struct list *at = ring.next; at != &ring; at = at->next)
		if (!visit(list_entry(at, struct thread, all), argument))
			break;
	spin_unlock(&ring_lock, flags);
}
