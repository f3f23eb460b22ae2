/* SPDX-License-Identifier: MIT */
/*
 * Latencies of a kernel: how long interrupts, preemption or either were off on a CPU, for the tracers
 * irqsoff, preemptoff and preemptirqsoff. A kernel has the macros below where it switches them; each is a
 * site of a static event (preemptirq:irq_disable … of Linux) and costs a nop while nobody measures.
 *
 * The worst case is kept whole: the CPU's sub-buffers in which it lies are held (READING) until a worse
 * one comes. Times are of the CPU on which it was.
 */
#ifndef GT_CORE_RECORD_LATENCY_H
#define GT_CORE_RECORD_LATENCY_H

#include <stdbool.h>
#include <stdint.h>
#include <graftrace/event_kernel.h>
#include <graftrace/latency.h>

/* Measures these kinds, all together, from now on (0: none). What was found is forgotten, what was
 * held goes on as any sub-buffer. While all other CPUs stand still, interrupts off. */
void gt_latency_measure(uint32_t kinds);
/* Only longer ones than this are a new worst case (tracing_max_latency); any CPU, any time. */
void gt_latency_set_max(uint64_t ticks);
uint64_t gt_latency_max(void);
/* Not 0: each that is at least so long is the newest case, and tracing_max_latency its time, as with
 * Linux's tracing_thresh. */
void gt_latency_set_threshold(uint64_t ticks);
/* While somebody keeps the case, no other one comes in its place (they nest). Any CPU. */
void gt_latency_keep(bool keep);
/* The newest case. False: there is none. Any CPU, interrupts on or off. */
bool gt_latency_worst(struct graftrace_latency *worst);

/* What a site calls. frame: of the function that it is in; address: where the site goes on, 0: the caller's.
 * off: it has been switched off just now; else it will be on in a moment. Interrupts off, or (preemption)
 * as they are. */
void gt_latency_edge(const struct graftrace_kernel_event *event, uint32_t kind, bool off,
		     const void *frame, uint64_t address) __attribute__((cold, noinline));

#ifdef GT_KERNEL
/*
 * There is a site in each lock. A call as the ABI has it would make the function around it save registers
 * and move values to them, whether the site is on or not; so this one keeps all but the flags
 * (gt_arch_latency_edge, arch.h). A kernel has no red zone. The last operand is unused:
 * with it %rbp is the frame's pointer, which gt_arch_latency_edge reads.
 */
#define GT_LATENCY_CALL_(event, kind, off)                                              \
	__asm__ volatile("call gt_arch_latency_edge"                                    \
			 :                                                              \
			 : "D"(&(event)), "S"((uint32_t)(kind) | (uint32_t)(off) << 8), \
			   "r"(__builtin_frame_address(0))                              \
			 : "cc")
#else
#define GT_LATENCY_CALL_(event, kind, off) \
	gt_latency_edge(&(event), kind, off, __builtin_frame_address(0), 0)
#endif

#define GT_LATENCY_SITE_(name_, kind, off, condition)                              \
	do {                                                                       \
		__label__ gt_event_on;                                             \
		static const struct graftrace_event_field gt_event_fields[] = {    \
			{ "caller", "void *", 8, 0 }, { "parent", "void *", 8, 0 } \
		};                                                                 \
		static struct graftrace_kernel_event gt_event = {                  \
			.system = "preemptirq",                                    \
			.name = #name_,                                            \
			.print = "caller=%(caller) parent=%(parent)",              \
			.field_count = 2,                                          \
			.fields = gt_event_fields                                  \
		};                                                                 \
		GRAFTRACE_EVENT_SITE_(gt_event, gt_event_on);                      \
		break;                                                             \
	gt_event_on:                                                               \
		__attribute__((unused));                                           \
		if (condition)                                                     \
			GT_LATENCY_CALL_(gt_event, kind, off);                     \
	} while (0)

/* Interrupts have been switched off here, if they were on (condition). */
#define GT_LATENCY_IRQS_OFF(condition) \
	GT_LATENCY_SITE_(irq_disable, GRAFTRACE_LATENCY_IRQS, true, condition)
/* They will be on behind this. */
#define GT_LATENCY_IRQS_ON(condition) \
	GT_LATENCY_SITE_(irq_enable, GRAFTRACE_LATENCY_IRQS, false, condition)
#define GT_LATENCY_PREEMPT_OFF(condition) \
	GT_LATENCY_SITE_(preempt_disable, GRAFTRACE_LATENCY_PREEMPT, true, condition)
#define GT_LATENCY_PREEMPT_ON(condition) \
	GT_LATENCY_SITE_(preempt_enable, GRAFTRACE_LATENCY_PREEMPT, false, condition)

#endif
