/* SPDX-License-Identifier: MIT */
/*
 * Clocks of the processors: each one's is compared with the boot processor's when it starts, by
 * questions and answers of which the shortest round trip counts (core/record/offset.h). One that is
 * apart by more than the measurement can be wrong is moved, in the trace; what was found is said on
 * the console.
 *
 * OPTIONS="skew=TICKS" makes the second processor's clock differ by so much: it has to be found.
 */
#include "port/unikernel/trace_private.h"

#include "core/record/arch.h"
#include "core/record/layout.h"
#include "core/record/offset.h"
#include "port/unikernel/boot.h"
#include "port/unikernel/clock.h"
#include "port/unikernel/console.h"
#include "port/unikernel/cpu.h"
#include "port/unikernel/trace.h"

#define TRIPS	   64
#define GOOD_NS	   20000     /* tries go on until the error is so small, … */
#define LIMIT_NS   100000000 /* … or this has passed: both need a processor of the host at once */
#define MORE_NS	   2000000000 /* … if no answer came by then */
#define SKEWED_CPU 1

_Static_assert(GT_KERNEL_CLOCK_ADD + 8 <= CPU_RECORDER_BYTES, "the recorder's part of struct cpu");

/* Shared by the boot processor and the one that starts. */
static struct {
	uint32_t question, answer; /* numbers; the answer's clock is stored before its number */
	uint64_t clock;
	uint32_t over; /* number of the last processor that was measured */
} trip __attribute__((aligned(64)));

static struct gt_offset widest; /* the largest error among those that agree */
static uint32_t widest_cpu;

static uint64_t *clock_add(struct cpu *cpu)
{
	return (uint64_t *)((uint8_t *)cpu->recorder + GT_KERNEL_CLOCK_ADD);
}

void trace_clock_answer(struct cpu *cpu)
{
	uint32_t answered = __atomic_load_n(&trip.answer, __ATOMIC_RELAXED);
	while (__atomic_load_n(&trip.over, __ATOMIC_ACQUIRE) < cpu->number) {
		uint32_t question = __atomic_load_n(&trip.question, __ATOMIC_ACQUIRE);
		if (question != answered) {
			trip.clock = cpu_ticks() + *clock_add(cpu);
			__atomic_store_n(&trip.answer, answered = question, __ATOMIC_RELEASE);
		}
		cpu_pause();
	}
}

static uint64_t ns_of(uint64_t ticks)
{
	return ticks * 1000000 / (clock_ticks_per_second() / 1000);
}

static bool is_known(const struct gt_offset *offset)
{
	return offset->error != ~0ull && ns_of(offset->error) <= GOOD_NS;
}

static void measure(struct gt_offset *offset)
{
	uint64_t start = clock_ns();
	for (unsigned i = 0; (i < TRIPS || !is_known(offset)) && clock_ns() - start < LIMIT_NS;
	     i++) {
		uint64_t before = cpu_ticks();
		uint32_t question = trip.question + 1;
		__atomic_store_n(&trip.question, question, __ATOMIC_RELEASE);
		while (__atomic_load_n(&trip.answer, __ATOMIC_ACQUIRE) != question) {
			if (clock_ns() - start > MORE_NS)
				return;
			cpu_pause();
		}
		gt_offset_sample(offset, before, trip.clock, cpu_ticks());
	}
}

static void say(uint32_t cpu, const struct gt_offset *offset, const char *what_then)
{
	bool behind = offset->ticks < 0;
	console_print("trace: the clock of CPU %u is %lu ns %s, wrong by %lu at most: %s\n", cpu,
		      ns_of((uint64_t)(behind ? -offset->ticks : offset->ticks)),
		      behind ? "behind" : "ahead", ns_of(offset->error), what_then);
}

void trace_clock_measure(struct cpu *cpu)
{
	uint64_t flags = interrupts_save();
	struct gt_offset offset;
	gt_offset_init(&offset);
	if (cpu->number == SKEWED_CPU)
		*clock_add(cpu) = option_number("skew", 0);
	if (cpu->online)
		measure(&offset);
	*clock_add(cpu) = gt_offset_apply(&offset, *clock_add(cpu));
	if (!gt_offset_applies(&offset) && is_known(&offset) && offset.error >= widest.error) {
		widest = offset;
		widest_cpu = cpu->number;
	}
	__atomic_store_n(&trip.over, cpu->number, __ATOMIC_RELEASE);
	interrupts_restore(flags);
	if (gt_offset_applies(&offset)) {
		say(cpu->number, &offset, "corrected");
		gt_arch_clocks_apart();
	} else if (offset.error == ~0ull) {
		console_print("trace: the clock of CPU %u is unknown: it gave no answer\n",
			      cpu->number);
	} else if (!is_known(&offset)) {
		say(cpu->number, &offset, "left as it is");
	}
}

void trace_clock_report(void)
{
	if (widest.error)
		say(widest_cpu, &widest, "agrees (others that do are known better)");
}
