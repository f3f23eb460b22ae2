/* SPDX-License-Identifier: MIT */
/*
 * The kernel's static events, with the names, fields and texts of Linux 6.1 (include/trace/events/).
 * Each is a nop while nobody listens, and nothing at all without TRACE=ftrace. doc/porting.md says
 * what another kernel needs to have the same.
 */
#ifndef PORT_UNIKERNEL_EVENTS_H
#define PORT_UNIKERNEL_EVENTS_H

#include <stdint.h>
#include "port/unikernel/interrupts.h"
#include "port/unikernel/thread.h"

#ifdef GT_TRACE
#define GRAFTRACE_KERNEL
#include <graftrace/event.h>
#define EVENT GRAFTRACE_EVENT_PRINTED
#else
#define EVENT(...) \
	do {       \
	} while (0)
#endif

#define PRIORITY 120 /* each thread has Linux's usual one */

/* Linux's TASK_…, of an enum thread_state; a thread that would go on is 0. */
static inline long event_state(const struct thread *thread)
{
	return thread->state == THREAD_WAITING ? 1 : thread->state == THREAD_OVER ? 16 : 0;
}

/* ---- sched ---- */

static inline __attribute__((always_inline)) void event_sched_switch(const struct thread *from,
								     const struct thread *to)
{
	(void)from, (void)to;
	EVENT(sched, sched_switch,
	      "prev_comm=%(prev_comm) prev_pid=%(prev_pid) prev_prio=%(prev_prio) "
	      "prev_state=%(prev_state:|1=S,2=D,4=T,8=t,16=X,32=Z,64=P,128=I?R) ==> "
	      "next_comm=%(next_comm) next_pid=%(next_pid) next_prio=%(next_prio)",
	      GRAFTRACE_STRING(prev_comm, from->name), GRAFTRACE_INT(int, prev_pid, from->number),
	      GRAFTRACE_INT(int, prev_prio, PRIORITY),
	      GRAFTRACE_INT(long, prev_state, event_state(from)),
	      GRAFTRACE_STRING(next_comm, to->name), GRAFTRACE_INT(int, next_pid, to->number),
	      GRAFTRACE_INT(int, next_prio, PRIORITY));
}

#define EVENT_WAKEUP(name_, thread, cpu)                                                         \
	EVENT(sched, name_, "comm=%(comm) pid=%(pid) prio=%(prio) target_cpu=%(target_cpu:03)",  \
	      GRAFTRACE_STRING(comm, (thread)->name), GRAFTRACE_INT(int, pid, (thread)->number), \
	      GRAFTRACE_INT(int, prio, PRIORITY), GRAFTRACE_INT(int, target_cpu, cpu))

/* Where somebody begins to wake it; a new thread is not woken. */
static inline __attribute__((always_inline)) void event_sched_waking(const struct thread *thread)
{
	if (thread->has_run)
		EVENT_WAKEUP(sched_waking, thread, thread->cpu);
}

static inline __attribute__((always_inline)) void event_sched_wakeup(const struct thread *thread,
								     uint32_t cpu)
{
	(void)cpu;
	if (!thread->has_run)
		EVENT_WAKEUP(sched_wakeup_new, thread, cpu);
	else
		EVENT_WAKEUP(sched_wakeup, thread, cpu);
}

static inline __attribute__((always_inline)) void
event_sched_migrate_task(const struct thread *thread, uint32_t from, uint32_t to)
{
	(void)thread, (void)from, (void)to;
	EVENT(sched, sched_migrate_task,
	      "comm=%(comm) pid=%(pid) prio=%(prio) orig_cpu=%(orig_cpu) dest_cpu=%(dest_cpu)",
	      GRAFTRACE_STRING(comm, thread->name), GRAFTRACE_INT(int, pid, thread->number),
	      GRAFTRACE_INT(int, prio, PRIORITY), GRAFTRACE_INT(int, orig_cpu, from),
	      GRAFTRACE_INT(int, dest_cpu, to));
}

static inline __attribute__((always_inline)) void
event_sched_process_fork(const struct thread *parent, const struct thread *child)
{
	(void)parent, (void)child;
	EVENT(sched, sched_process_fork,
	      "comm=%(parent_comm) pid=%(parent_pid) child_comm=%(child_comm) "
	      "child_pid=%(child_pid)",
	      GRAFTRACE_STRING(parent_comm, parent->name),
	      GRAFTRACE_INT(int, parent_pid, parent->number),
	      GRAFTRACE_STRING(child_comm, child->name),
	      GRAFTRACE_INT(int, child_pid, child->number));
}

static inline __attribute__((always_inline)) void
event_sched_process_exit(const struct thread *thread)
{
	(void)thread;
	EVENT(sched, sched_process_exit, "comm=%(comm) pid=%(pid) prio=%(prio)",
	      GRAFTRACE_STRING(comm, thread->name), GRAFTRACE_INT(int, pid, thread->number),
	      GRAFTRACE_INT(int, prio, PRIORITY));
}

/* ---- irq, and irq_vectors: those of the processor itself ---- */

#define EVENT_VECTOR(name_, vector_) \
	EVENT(irq_vectors, name_, "vector=%(vector)", GRAFTRACE_INT(int, vector, vector_))

static inline __attribute__((always_inline)) void event_irq_entry(uint32_t vector, const char *name)
{
	(void)name;
	if (vector == VECTOR_TIMER)
		EVENT_VECTOR(local_timer_entry, vector);
	else if (vector == VECTOR_RESCHEDULE)
		EVENT_VECTOR(reschedule_entry, vector);
	else if (vector >= VECTOR_STOP)
		EVENT_VECTOR(call_function_entry, vector);
	else
		EVENT(irq, irq_handler_entry, "irq=%(irq) name=%(name)",
		      GRAFTRACE_INT(int, irq, vector), GRAFTRACE_STRING(name, name));
}

static inline __attribute__((always_inline)) void event_irq_exit(uint32_t vector, bool handled)
{
	(void)handled;
	if (vector == VECTOR_TIMER)
		EVENT_VECTOR(local_timer_exit, vector);
	else if (vector == VECTOR_RESCHEDULE)
		EVENT_VECTOR(reschedule_exit, vector);
	else if (vector >= VECTOR_STOP)
		EVENT_VECTOR(call_function_exit, vector);
	else
		EVENT(irq, irq_handler_exit, "irq=%(irq) ret=%(ret:0=unhandled,1=handled)",
		      GRAFTRACE_INT(int, irq, vector), GRAFTRACE_INT(int, ret, handled));
}

/* ---- timer ---- */

static inline __attribute__((always_inline)) void event_timer_start(const struct timer *timer)
{
	(void)timer;
	EVENT(timer, hrtimer_start,
	      "hrtimer=%(hrtimer) function=%(function) expires=%(expires) "
	      "softexpires=%(softexpires) mode=%(mode:0=ABS,1=REL)",
	      GRAFTRACE_POINTER(hrtimer, timer), GRAFTRACE_POINTER(function, timer->expired),
	      GRAFTRACE_INT(long long, expires, timer->deadline),
	      GRAFTRACE_INT(long long, softexpires, timer->deadline), GRAFTRACE_INT(int, mode, 0));
}

static inline __attribute__((always_inline)) void
event_timer_expire_entry(const struct timer *timer, uint64_t now_)
{
	(void)timer, (void)now_;
	EVENT(timer, hrtimer_expire_entry, "hrtimer=%(hrtimer) function=%(function) now=%(now)",
	      GRAFTRACE_POINTER(hrtimer, timer), GRAFTRACE_INT(long long, now, now_),
	      GRAFTRACE_POINTER(function, timer->expired));
}

static inline __attribute__((always_inline)) void event_timer_expire_exit(const void *timer)
{
	(void)timer;
	EVENT(timer, hrtimer_expire_exit, "hrtimer=%(hrtimer)", GRAFTRACE_POINTER(hrtimer, timer));
}

static inline __attribute__((always_inline)) void event_timer_cancel(const void *timer)
{
	(void)timer;
	EVENT(timer, hrtimer_cancel, "hrtimer=%(hrtimer)", GRAFTRACE_POINTER(hrtimer, timer));
}

/* ---- net ---- */

#define EVENT_FRAME(name_, frame, bytes)                                                  \
	EVENT(net, name_, "dev=%(name) skbaddr=%(skbaddr) len=%(len)",                    \
	      GRAFTRACE_POINTER(skbaddr, frame), GRAFTRACE_INT(unsigned int, len, bytes), \
	      GRAFTRACE_STRING(name, "en0"))

static inline __attribute__((always_inline)) void event_net_receive(const void *frame,
								    uint32_t bytes)
{
	(void)frame, (void)bytes;
	EVENT_FRAME(netif_receive_skb, frame, bytes);
}

static inline __attribute__((always_inline)) void event_net_queue(const void *frame, uint32_t bytes)
{
	(void)frame, (void)bytes;
	EVENT_FRAME(net_dev_queue, frame, bytes);
}

static inline __attribute__((always_inline)) void event_net_xmit(const void *frame, uint32_t bytes,
								 int rc_)
{
	(void)frame, (void)bytes, (void)rc_;
	EVENT(net, net_dev_xmit, "dev=%(name) skbaddr=%(skbaddr) len=%(len) rc=%(rc)",
	      GRAFTRACE_POINTER(skbaddr, frame), GRAFTRACE_INT(unsigned int, len, bytes),
	      GRAFTRACE_INT(int, rc, rc_), GRAFTRACE_STRING(name, "en0"));
}

/* ---- lock ---- */

#define CONTENTION_SPIN	 1
#define CONTENTION_MUTEX 32

static inline __attribute__((always_inline)) void event_contention_begin(const void *lock_,
									 unsigned flags_)
{
	(void)lock_, (void)flags_;
	EVENT(lock, contention_begin,
	      "%(lock_addr) (flags=%(flags:|1=SPIN,2=READ,4=WRITE,8=RT,16=PERCPU,32=MUTEX))",
	      GRAFTRACE_POINTER(lock_addr, lock_), GRAFTRACE_INT(unsigned int, flags, flags_));
}

static inline __attribute__((always_inline)) void event_contention_end(const void *lock_, int ret_)
{
	(void)lock_, (void)ret_;
	EVENT(lock, contention_end, "%(lock_addr) (ret=%(ret))",
	      GRAFTRACE_POINTER(lock_addr, lock_), GRAFTRACE_INT(int, ret, ret_));
}

/* ---- block ---- */

#define DISK_DEVICE (254u << 20) /* vda, as Linux numbers it */

#define EVENT_BIO(name_, sector_, sectors_, rwbs_)                                              \
	EVENT(block, name_, "%(dev:/MM),%(dev:/mm) %(rwbs) %(sector) + %(nr_sector) [%(comm)]", \
	      GRAFTRACE_INT(unsigned int, dev, DISK_DEVICE),                                    \
	      GRAFTRACE_INT(unsigned long, sector, sector_),                                    \
	      GRAFTRACE_INT(unsigned int, nr_sector, sectors_), GRAFTRACE_STRING(rwbs, rwbs_),  \
	      GRAFTRACE_STRING(comm, thread_this()->name))

#define EVENT_REQUEST(name_, sector_, sectors_, rwbs_)                                           \
	EVENT(block, name_,                                                                      \
	      "%(dev:/MM),%(dev:/mm) %(rwbs) %(bytes) (%(cmd)) %(sector) + %(nr_sector) "        \
	      "[%(comm)]",                                                                       \
	      GRAFTRACE_INT(unsigned int, dev, DISK_DEVICE),                                     \
	      GRAFTRACE_INT(unsigned long, sector, sector_),                                     \
	      GRAFTRACE_INT(unsigned int, nr_sector, sectors_),                                  \
	      GRAFTRACE_INT(unsigned int, bytes, (sectors_)*512), GRAFTRACE_STRING(rwbs, rwbs_), \
	      GRAFTRACE_STRING(comm, thread_this()->name), GRAFTRACE_STRING(cmd, ""))

#define EVENT_COMPLETE(sector_, sectors_, rwbs_, error_)                                           \
	EVENT(block, block_rq_complete,                                                            \
	      "%(dev:/MM),%(dev:/mm) %(rwbs) (%(cmd)) %(sector) + %(nr_sector) [%(error)]",        \
	      GRAFTRACE_INT(unsigned int, dev, DISK_DEVICE),                                       \
	      GRAFTRACE_INT(unsigned long, sector, sector_),                                       \
	      GRAFTRACE_INT(unsigned int, nr_sector, sectors_), GRAFTRACE_INT(int, error, error_), \
	      GRAFTRACE_STRING(rwbs, rwbs_), GRAFTRACE_STRING(cmd, ""))

/* ---- printk ---- */

static inline __attribute__((always_inline)) void event_printk_console(const char *text)
{
	(void)text;
	EVENT(printk, console, "%(msg)", GRAFTRACE_STRING(msg, text));
}

#endif
