/* SPDX-License-Identifier: MIT */
/*
 * Mail to the host, and the agent's waits, each bounded and documented: for the answer to a letter
 * (new code, exec), and for a free sub-buffer while recording to a file.
 */
#include "port/program/agent.h"
#include "core/record/port.h"
#include "port/program/syscall.h"

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

/* The host copies the ring meanwhile. */
#define TRIGGER_WAIT_MS 500
/* For a slot, where many send at once; and how long it is asked for again. */
#define SLOT_WAIT_MS	  10
#define SLOT_WAIT_MOST_MS 5000

static void futex_wait(uint32_t *word, uint32_t seen, uint32_t milliseconds)
{
	struct {
		long seconds, nanoseconds;
	} timeout = { milliseconds / 1000, (long)(milliseconds % 1000) * 1000000 };
	gt_syscall4(SYS_FUTEX, (long)word, FUTEX_WAIT, seen, (long)&timeout);
}

/*
 * A host that was killed cannot say so: its heartbeat stands still. No thread of this process waits
 * for it from then on, unless it beats again: it was only stopped. Waits are 10 or 20 ms each, of
 * any number of threads: a moment of silence counts for all of them, so it is measured in ticks.
 * A look counts for at most LOOK_MS: a machine that stood still as a whole (a virtual machine that
 * was paused, or had no processor for seconds) says nothing about the host.
 */
#define SILENCE_MS 3000
#define LOOK_MS	   100

static uint32_t heard;	       /* the last heartbeat that a thread has read */
static uint64_t looked_ticks;  /* when a thread last read it */
static uint64_t silence_ticks; /* sum of the time without a heartbeat while threads looked */
static uint32_t silent;	       /* 1: the host is taken for dead */

static uint64_t ticks(void)
{
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

static void listen_for_host(struct graftrace_arena *arena)
{
	uint32_t beat = __atomic_load_n(&arena->heartbeat, __ATOMIC_RELAXED);
	uint64_t per_ms = gt_agent_state.tsc_per_ms, now = ticks();
	uint64_t before = __atomic_exchange_n(&looked_ticks, now, __ATOMIC_RELAXED);
	if (beat != __atomic_load_n(&heard, __ATOMIC_RELAXED)) {
		__atomic_store_n(&heard, beat, __ATOMIC_RELAXED);
		__atomic_store_n(&silence_ticks, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&silent, 0, __ATOMIC_RELAXED);
		return;
	}
	uint64_t passed = now > before ? now - before : 0;
	if (passed > LOOK_MS * per_ms)
		passed = LOOK_MS * per_ms;
	if (__atomic_add_fetch(&silence_ticks, passed, __ATOMIC_RELAXED) > SILENCE_MS * per_ms &&
	    per_ms != 0)
		__atomic_store_n(&silent, 1, __ATOMIC_RELAXED);
}

bool gt_port_listens(struct graftrace_arena *arena)
{
	if (__atomic_load_n(&silent, __ATOMIC_RELAXED))
		listen_for_host(arena);
	return __atomic_load_n(&arena->host_alive, __ATOMIC_RELAXED) != 0 &&
	       !__atomic_load_n(&gt_agent_state.deserted, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&silent, __ATOMIC_RELAXED);
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

static void fill(struct graftrace_letter *letter, uint32_t kind, const uint64_t argument[3],
		 uint32_t wait_ms)
{
	/* Tickets are unique in a process, and in the program that it executes next. */
	uint32_t ticket = (uint32_t)(ticks() >> 4);
	letter->ticket = ticket != 0 ? ticket : 1;
	letter->kind = kind;
	letter->pid = (uint32_t)gt_syscall3(SYS_GETPID, 0, 0, 0);
	letter->tid = (uint32_t)gt_syscall3(SYS_GETTID, 0, 0, 0);
	letter->argument[0] = argument[0];
	letter->argument[1] = wait_ms;
	letter->argument[2] = argument[1];
	letter->argument[3] = argument[2];
}

/* Is this the answer to that letter, for this process? */
static bool is_answered(const struct graftrace_answer *answer,
			const struct graftrace_letter *letter, uint64_t *value)
{
	if (__atomic_load_n(&answer->ticket, __ATOMIC_ACQUIRE) != letter->ticket ||
	    __atomic_load_n(&answer->pid, __ATOMIC_RELAXED) != letter->pid)
		return false;
	*value = __atomic_load_n(&answer->value, __ATOMIC_RELAXED);
	/* The host clears the ticket before it writes another answer. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&answer->ticket, __ATOMIC_RELAXED) == letter->ticket;
}

/* Waits for the answer to letter `i`; 0: there was none. */
static uint64_t wait_for_answer(struct graftrace_arena *arena, uint32_t i, uint32_t wait_ms)
{
	struct graftrace_answer *answer = &graftrace_arena_answers(arena)[i];
	struct graftrace_letter *letter = &gt_agent_state.letters[i];
	uint64_t value;
	for (uint32_t waited = 0; waited < wait_ms && gt_port_listens(arena); waited += 20) {
		uint32_t seen = __atomic_load_n(&answer->ticket, __ATOMIC_ACQUIRE);
		if (is_answered(answer, letter, &value))
			return value;
		futex_wait(&answer->ticket, seen, 20);
		listen_for_host(arena);
	}
	return is_answered(answer, letter, &value) ? value : 0;
}

/* *answer: 0 if there is none. False: no slot is free. */
static bool post(struct graftrace_arena *arena, uint32_t kind, const uint64_t argument[3],
		 uint32_t wait_ms, uint64_t *answer)
{
	struct graftrace_mail *mail = graftrace_arena_mail(arena);
	*answer = 0;
	for (uint32_t i = 0; i < arena->mail_count && i < GRAFTRACE_ARENA_MAIL; i++, mail++) {
		struct graftrace_letter *letter = &gt_agent_state.letters[i];
		uint32_t unused = GRAFTRACE_MAIL_FREE;
		if (!__atomic_compare_exchange_n(&mail->state, &unused, GRAFTRACE_MAIL_CLAIMED,
						 false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		/* The slot may be another thread's, if another process has overwritten it. */
		uint32_t old = __atomic_load_n(&letter->state, __ATOMIC_RELAXED);
		if (old == GRAFTRACE_MAIL_CLAIMED || old == GRAFTRACE_MAIL_POSTED ||
		    !__atomic_compare_exchange_n(&letter->state, &old, GRAFTRACE_MAIL_CLAIMED,
						 false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			__atomic_store_n(&mail->state, GRAFTRACE_MAIL_FREE, __ATOMIC_RELEASE);
			continue;
		}
		fill(letter, kind, argument, wait_ms);
		__atomic_store_n(&letter->state,
				 wait_ms > 0 ? GRAFTRACE_MAIL_POSTED : GRAFTRACE_MAIL_ABANDONED,
				 __ATOMIC_RELEASE);
		mail->kind = kind;
		mail->pid = letter->pid;
		mail->tid = letter->tid;
		memcpy(mail->argument, letter->argument, sizeof(mail->argument));
		__atomic_store_n(&mail->state, GRAFTRACE_MAIL_POSTED, __ATOMIC_SEQ_CST);
		gt_port_ring_doorbell(arena);
		*answer = wait_ms > 0 ? wait_for_answer(arena, i, wait_ms) : 0;
		uint32_t posted = GRAFTRACE_MAIL_POSTED;
		if (wait_ms > 0)
			__atomic_store_n(&letter->state, GRAFTRACE_MAIL_ABANDONED,
					 __ATOMIC_SEQ_CST);
		/* Not waited for, or given up: the host frees the slot. */
		if (!__atomic_compare_exchange_n(&mail->state, &posted, GRAFTRACE_MAIL_ABANDONED,
						 false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) &&
		    posted == GRAFTRACE_MAIL_ANSWERED)
			__atomic_store_n(&mail->state, GRAFTRACE_MAIL_FREE, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/* Returns the answer, 0 if there is none. Who needs one waits for a slot, too. */
static uint64_t send(uint32_t kind, const uint64_t argument[3], uint32_t wait_ms)
{
	struct graftrace_arena *arena = gt_port_arena();
	const uint32_t most = graftrace_mail_needs_answer(kind) ? SLOT_WAIT_MOST_MS : 0;
	uint32_t nobody = 0;
	uint64_t answer = 0;
	if (gt_agent_sandboxed())
		return 0;
	for (uint32_t waited = 0; gt_port_listens(arena); waited += SLOT_WAIT_MS) {
		if (post(arena, kind, argument, wait_ms, &answer) || waited >= most)
			break;
		futex_wait(&nobody, nobody, SLOT_WAIT_MS);
		listen_for_host(arena);
	}
	return answer;
}

void gt_mail_forked(uint32_t pid)
{
	for (uint32_t i = 0; i < GRAFTRACE_ARENA_MAIL; i++) {
		struct graftrace_letter *letter = &gt_agent_state.letters[i];
		/* Another thread of the child may have sent one before the child's first traced call, or
		 * may be about to: then the state changes between these two. */
		uint32_t state = __atomic_load_n(&letter->state, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&letter->pid, __ATOMIC_RELAXED) != pid)
			__atomic_compare_exchange_n(&letter->state, &state, GRAFTRACE_MAIL_FREE,
						    false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
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
