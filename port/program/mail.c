/* SPDX-License-Identifier: MIT */
/*
 * Mail to the host and the waits that the agent may do, each bounded and documented: for the answer
 * to a letter (new code, exec), and for a free sub-buffer while recording to a file.
 */
#include "port/program/agent.h"
#include "core/record/port.h"
#include "port/program/syscall.h"

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

/* The host copies the ring meanwhile. */
#define TRIGGER_WAIT_MS 500

static void futex_wait(uint32_t *word, uint32_t seen, uint32_t milliseconds)
{
	struct {
		long seconds, nanoseconds;
	} timeout = { milliseconds / 1000, (long)(milliseconds % 1000) * 1000000 };
	gt_syscall4(SYS_FUTEX, (long)word, FUTEX_WAIT, seen, (long)&timeout);
}

/*
 * A host that was killed cannot say so: its heartbeat stands still. Whoever has waited long for
 * that says it for all; a host that was only stopped takes it back. Waits are 10 or 20 ms each, of
 * any number of threads: a moment of silence counts for all of them, so it is measured in ticks.
 */
#define SILENCE_MS 3000

static uint32_t heard;	     /* the last heartbeat that anyone saw */
static uint64_t heard_ticks; /* and when */

static uint64_t ticks(void)
{
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

static void listen_for_host(struct graftrace_arena *arena)
{
	uint32_t beat = __atomic_load_n(&arena->heartbeat, __ATOMIC_RELAXED);
	uint64_t now = ticks();
	uint64_t since = __atomic_load_n(&heard_ticks, __ATOMIC_RELAXED);
	if (since == 0 || beat != __atomic_load_n(&heard, __ATOMIC_RELAXED) || now < since) {
		__atomic_store_n(&heard, beat, __ATOMIC_RELAXED);
		__atomic_store_n(&heard_ticks, now, __ATOMIC_RELAXED);
		return;
	}
	if ((now - since) / SILENCE_MS > gt_agent_state.tsc_per_ms &&
	    gt_agent_state.tsc_per_ms != 0) {
		__atomic_store_n(&arena->host_alive, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&arena->wait_ms, 0, __ATOMIC_RELAXED);
	}
}

void gt_port_wait(struct graftrace_arena *arena, uint32_t seen, uint32_t milliseconds)
{
	futex_wait(&arena->free_futex, seen, milliseconds);
	listen_for_host(arena);
}

void gt_port_ring_doorbell(struct graftrace_arena *arena)
{
	__atomic_fetch_add(&arena->doorbell, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&arena->host_sleeping, __ATOMIC_SEQ_CST))
		gt_syscall3(SYS_FUTEX, (long)&arena->doorbell, FUTEX_WAKE, 1);
}

/* The answer, 0 if there is none. */
static uint64_t send(uint32_t kind, const uint64_t argument[3], uint32_t wait_ms)
{
	struct graftrace_arena *arena = gt_port_arena();
	struct graftrace_mail *mail = graftrace_arena_mail(arena);
	uint64_t answer = 0;
	if (gt_agent_sandboxed() || !__atomic_load_n(&arena->host_alive, __ATOMIC_RELAXED))
		return 0;
	for (uint32_t i = 0; i < arena->mail_count; i++, mail++) {
		uint32_t unused = GRAFTRACE_MAIL_FREE;
		if (!__atomic_compare_exchange_n(&mail->state, &unused, GRAFTRACE_MAIL_CLAIMED,
						 false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		mail->kind = kind;
		mail->pid = (uint32_t)gt_syscall3(SYS_GETPID, 0, 0, 0);
		mail->tid = (uint32_t)gt_syscall3(SYS_GETTID, 0, 0, 0);
		mail->argument[0] = argument[0];
		mail->argument[1] = wait_ms;
		mail->argument[2] = argument[1];
		mail->argument[3] = argument[2];
		mail->answer = 0;
		__atomic_store_n(&mail->state, GRAFTRACE_MAIL_POSTED, __ATOMIC_SEQ_CST);
		gt_port_ring_doorbell(arena);
		for (uint32_t waited = 0; waited < wait_ms; waited += 20) {
			uint32_t state = __atomic_load_n(&mail->state, __ATOMIC_ACQUIRE);
			if (state != GRAFTRACE_MAIL_POSTED ||
			    !__atomic_load_n(&arena->host_alive, __ATOMIC_RELAXED))
				break;
			futex_wait(&mail->state, GRAFTRACE_MAIL_POSTED, 20);
			listen_for_host(arena);
		}
		uint32_t posted = GRAFTRACE_MAIL_POSTED;
		/* Not waited for, or waited long enough: the host frees it. */
		if (!__atomic_compare_exchange_n(&mail->state, &posted, GRAFTRACE_MAIL_ABANDONED,
						 false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) &&
		    posted == GRAFTRACE_MAIL_ANSWERED) {
			answer = mail->answer;
			__atomic_store_n(&mail->state, GRAFTRACE_MAIL_FREE, __ATOMIC_RELEASE);
		}
		return answer;
	}
	return 0;
}

uint64_t gt_mail_send(uint32_t kind, uint64_t argument, uint32_t wait_ms)
{
	const uint64_t arguments[3] = { argument, 0, 0 };
	return send(kind, arguments, wait_ms);
}

void gt_port_trigger(uint32_t action, uint32_t function, uint64_t clock, uint64_t took)
{
	const uint64_t arguments[3] = { (uint64_t)action << 32 | function, clock, took };
	bool waits = action == GRAFTRACE_TRIGGER_SNAPSHOT || action == GRAFTRACE_TRIGGER_DUMP ||
		     action == GRAFTRACE_TRIGGER_CPUDUMP;
	send(GRAFTRACE_MAIL_TRIGGER, arguments, waits ? TRIGGER_WAIT_MS : 0);
}
