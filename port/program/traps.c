/* SPDX-License-Identifier: MIT */
/*
 * Breakpoints: see traps.h. The kernel kills a thread that traps while SIGTRAP is blocked or
 * ignored, so the kernel is never told of either: the program's action is kept in the agent's
 * state, and whether the signal is blocked in the thread's block. A SIGTRAP that is sent meanwhile
 * is kept as the kernel would keep it (one pending), and sent again when the program unblocks it.
 * No breakpoint may be hit here: no function of the program is called with signals blocked.
 */
#include "port/program/traps.h"
#include "core/record/port.h"
#include "port/program/syscall.h"

#define SYS_RT_SIGACTION      13
#define SYS_RT_SIGPENDING     127
#define SYS_RT_SIGSUSPEND     130
#define SYS_PSELECT6	      270
#define SYS_PPOLL	      271
#define SYS_EPOLL_PWAIT	      281
#define SYS_RT_TGSIGQUEUEINFO 297
#define SYS_EPOLL_PWAIT2      441

#define TRAP	     GRAFTRACE_TRAP_SIGNAL
#define TRAP_BIT     (1ull << (TRAP - 1))
#define SI_KERNEL    0x80
#define SA_RESTORER  0x04000000ull
#define SA_ONSTACK   0x08000000ull
#define SA_RESTART   0x10000000ull
#define SA_NODEFER   0x40000000ull
#define SA_RESETHAND 0x80000000ull
#define SA_SIGINFO   4ull
#define BLOCK	     0
#define UNBLOCK	     1
#define SETMASK	     2

/* Layout of the C library's structures. */
#define UCONTEXT_RIP	 168
#define UCONTEXT_SIGMASK 296
#define SIGSET_WORDS	 16
#define MASKS		 32

struct action { /* sigaction(2), as the C library has it */
	uint64_t handler;
	uint64_t mask[SIGSET_WORDS];
	int32_t flags;
	int32_t pad;
	uint64_t restorer;
};

struct kernel_action {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

struct siginfo {
	int32_t signal;
	int32_t error;
	int32_t code;
	int32_t pad;
	uint64_t rest[14];
};

extern const char gt_trap_entry[] __attribute__((visibility("hidden")));
uint64_t gt_agent_trap(struct siginfo *info, uint8_t *ucontext);

/* Masks without SIGTRAP, which system calls get in place of the program's: an entry never
 * changes, so a handler in between does no harm. */
static uint64_t masks[MASKS][SIGSET_WORDS];
/* The same in the form of pselect6(2): with their size. */
static uint64_t sized_masks[MASKS][2];
static uint32_t mask_count;
/* The last SIGTRAP that was sent while blocked. */
static struct siginfo kept;

static struct graftrace_traps *traps(void)
{
	return &gt_agent_state.traps;
}

static bool is_active(void)
{
	return __atomic_load_n(&traps()->active, __ATOMIC_RELAXED) != 0;
}

static uint64_t stub_of(uint64_t address)
{
	uint32_t i = GRAFTRACE_TRAP_HASH(address);
	for (uint32_t tries = 0; tries < GRAFTRACE_TRAPS; tries++) {
		uint64_t there = __atomic_load_n(&traps()->table[i].address, __ATOMIC_ACQUIRE);
		if (there == address)
			return traps()->table[i].stub;
		if (there == 0)
			return 0;
		i = (i + 1) % GRAFTRACE_TRAPS;
	}
	return 0;
}

static struct kernel_action programs_action(void)
{
	struct graftrace_traps *state = traps();
	struct kernel_action action;
	uint32_t before, after;
	do {
		before = __atomic_load_n(&state->sequence, __ATOMIC_ACQUIRE);
		action = (struct kernel_action){ state->handler, state->flags, state->restorer,
						 state->mask };
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		after = __atomic_load_n(&state->sequence, __ATOMIC_RELAXED);
	} while (before != after || before & 1);
	return action;
}

/* With signals masked: a nested handler would wait for its own thread. */
static void lock_tables(void)
{
	gt_threads_tell_of_fork();
	gt_port_lock();
}

void gt_traps_forked(void)
{
	uint32_t *sequence = &traps()->sequence;
	*sequence = (*sequence + 1) & ~1u;
}

static void set_programs_action(const struct kernel_action *action)
{
	struct graftrace_traps *state = traps();
	lock_tables();
	__atomic_fetch_add(&state->sequence, 1, __ATOMIC_SEQ_CST);
	state->handler = action->handler;
	state->flags = action->flags;
	state->restorer = action->restorer;
	state->mask = action->mask;
	__atomic_fetch_add(&state->sequence, 1, __ATOMIC_SEQ_CST);
	gt_port_unlock();
}

static void send_again(const struct siginfo *info)
{
	struct siginfo copy = *info;
	gt_syscall4(SYS_RT_TGSIGQUEUEINFO, gt_syscall3(SYS_GETPID, 0, 0, 0),
		    gt_syscall3(SYS_GETTID, 0, 0, 0), TRAP, (long)&copy);
}

/* Ends the process as the kernel would: resets the action to the default and sends the signal
 * again. */
static void end_by(const struct siginfo *info)
{
	struct kernel_action action = { 0 };
	gt_syscall4(SYS_RT_SIGACTION, TRAP, (long)&action, 0, 8);
	send_again(info);
}

/* Called from trap.S only, all signals blocked. Returns the program's handler to continue in, or
 * 0. */
uint64_t gt_agent_trap(struct siginfo *info, uint8_t *ucontext)
{
	uint64_t *rip = (uint64_t *)(ucontext + UCONTEXT_RIP);
	uint64_t *mask = (uint64_t *)(ucontext + UCONTEXT_SIGMASK);
	if (info->code == SI_KERNEL) {
		uint64_t stub = stub_of(*rip - 1);
		if (stub != 0) {
			*rip = stub;
			return 0;
		}
	}
	struct gt_thread *thread = gt_threads_try_current();
	if (info->code <= 0 && thread != NULL && thread->trap & GRAFTRACE_TRAP_BLOCKED) {
		if (!(thread->trap & GRAFTRACE_TRAP_PENDING))
			kept = *info;
		thread->trap |= GRAFTRACE_TRAP_PENDING;
		return 0;
	}
	struct kernel_action action = programs_action();
	if (action.handler == 1 /* SIG_IGN */ && info->code <= 0)
		return 0;
	/* The kernel lets no trap be ignored or blocked. */
	if (action.handler <= 1 ||
	    (info->code > 0 && thread != NULL && thread->trap & GRAFTRACE_TRAP_BLOCKED)) {
		end_by(info);
		return 0;
	}
	if (action.flags & SA_RESETHAND) {
		struct kernel_action none = { 0 };
		set_programs_action(&none);
	}
	uint64_t blocked = (*mask | action.mask) & ~TRAP_BIT;
	gt_syscall4(SYS_RT_SIGPROCMASK, SETMASK, (long)&blocked, 0, 8);
	return action.handler;
}

/* Returns a permanent mask of these signals. */
static uint64_t *lasting_mask(uint64_t signals)
{
	uint64_t saved;
	uint64_t *found = NULL;
	gt_signals_mask(&saved);
	lock_tables();
	for (uint32_t i = 0; i < mask_count && found == NULL; i++)
		if (masks[i][0] == signals)
			found = masks[i];
	if (found == NULL) {
		/* If the table is full, its last entry is reused. */
		if (mask_count < MASKS)
			mask_count++;
		found = masks[mask_count - 1];
		found[0] = signals;
	}
	gt_port_unlock();
	gt_signals_restore(&saved);
	return found;
}

/* Reads the mask at `set`; true if it has SIGTRAP. */
static bool has_trap(uint64_t set, uint64_t *mask)
{
	return set != 0 && gt_port_peek(set, mask) && (*mask & TRAP_BIT) != 0;
}

static void take_out(uint64_t *set)
{
	uint64_t mask;
	if (has_trap(*set, &mask))
		*set = (uint64_t)lasting_mask(mask & ~TRAP_BIT);
}

static void take_out_sized(uint64_t *set)
{
	uint64_t inner, mask, bytes;
	if (*set == 0 || !gt_port_peek(*set, &inner) || !has_trap(inner, &mask) ||
	    !gt_port_peek(*set + 8, &bytes))
		return;
	uint64_t *found = lasting_mask(mask & ~TRAP_BIT);
	uint64_t *sized = sized_masks[(found - masks[0]) / SIGSET_WORDS];
	sized[0] = (uint64_t)found; /* every thread writes the same value */
	sized[1] = bytes;
	*set = (uint64_t)sized;
}

/* Returns this thread's state, and makes its block if it has none. NULL: it can have none. */
static uint32_t *trap_state(void)
{
	uint64_t saved;
	gt_signals_mask(&saved);
	struct gt_thread *thread = gt_threads_current();
	gt_signals_restore(&saved);
	return thread != NULL ? &thread->trap : NULL;
}

int gt_traps_sigmask(struct gt_hook_frame *frame)
{
	uint32_t how = (uint32_t)frame->rdi;
	uint64_t mask = 0, signals, before;
	/* One of the C library's functions passes the mask on to another hooked one. */
	if (frame->rsi - (uint64_t)masks < sizeof(masks))
		return 0;
	if (!is_active() || how > SETMASK || (frame->rsi != 0 && !gt_port_peek(frame->rsi, &mask)))
		return 0;
	struct gt_thread *known = gt_threads_try_current();
	bool has = (mask & TRAP_BIT) != 0;
	if (!has && (known == NULL || known->trap == 0))
		return 0;
	/* A vfork child uses its parent's block, and the parent waits: the child blocks the
	 * signal in the kernel instead. */
	uint32_t *state = gt_threads_is_vfork_child() ? NULL : trap_state();
	uint32_t was = state != NULL ? *state : 0;
	if (frame->rsi != 0 && state != NULL && has && how != UNBLOCK)
		*state |= GRAFTRACE_TRAP_BLOCKED;
	if (frame->rsi != 0 && state != NULL &&
	    ((has && how == UNBLOCK) || (!has && how == SETMASK)))
		*state = 0;
	if (has)
		frame->rsi = (uint64_t)lasting_mask(mask & ~TRAP_BIT);
	if (was & GRAFTRACE_TRAP_PENDING && state != NULL && !(*state & GRAFTRACE_TRAP_PENDING))
		send_again(&kept);
	if (frame->rdx == 0 || !(was & GRAFTRACE_TRAP_BLOCKED))
		return 0;
	/* The old mask is asked for: the call is made here, as the C library makes it. */
	signals = mask &
		  ~(TRAP_BIT | 3ull << 31); /* << 31); glibc's own two signals are never blocked */
	if (gt_syscall_failed(gt_syscall4(SYS_RT_SIGPROCMASK, (long)how,
					  frame->rsi != 0 ? (long)&signals : 0, (long)&before, 8)))
		return 0;
	*(uint64_t *)frame->rdx = before | TRAP_BIT;
	frame->rax = 0;
	return 1;
}

void gt_traps_wait_mask(struct gt_hook_frame *frame, uint64_t which)
{
	uint64_t *const arguments[] = { &frame->rdi, &frame->rsi, &frame->rdx,
					&frame->rcx, &frame->r8,  &frame->r9 };
	if (is_active() && which < 6)
		take_out(arguments[which]);
}

int gt_traps_pending(struct gt_hook_frame *frame)
{
	struct gt_thread *thread = gt_threads_try_current();
	if (thread == NULL || !(thread->trap & GRAFTRACE_TRAP_PENDING) ||
	    gt_syscall_failed(gt_syscall3(SYS_RT_SIGPENDING, (long)frame->rdi, 8, 0)))
		return 0;
	*(uint64_t *)frame->rdi |= TRAP_BIT;
	frame->rax = 0;
	return 1;
}

int gt_traps_wait(struct gt_hook_frame *frame, bool with_info)
{
	struct gt_thread *thread = gt_threads_try_current();
	uint64_t mask;
	if (thread == NULL || !(thread->trap & GRAFTRACE_TRAP_PENDING) ||
	    !has_trap(frame->rdi, &mask))
		return 0;
	thread->trap &= ~(uint32_t)GRAFTRACE_TRAP_PENDING;
	if (with_info && frame->rsi != 0)
		*(struct siginfo *)frame->rsi = kept;
	else if (!with_info)
		*(int *)frame->rsi = TRAP;
	frame->rax = with_info ? TRAP : 0;
	return 1;
}

void gt_traps_context(uint64_t ucontext)
{
	uint64_t mask;
	if (is_active() && has_trap(ucontext + UCONTEXT_SIGMASK, &mask))
		*(uint64_t *)(ucontext + UCONTEXT_SIGMASK) = mask & ~TRAP_BIT;
}

/* sigaction of SIGTRAP itself: the kernel keeps our handler, with the program's flags for stack
 * and restart, and the C library's restorer, since signal frames may outlive the agent. */
static void set_trap_action(const struct action *wanted, uint64_t body)
{
	int (*set)(int, const struct action *, struct action *) =
		(int (*)(int, const struct action *, struct action *))body;
	struct kernel_action programs = { wanted->handler, (uint32_t)wanted->flags,
					  wanted->restorer, wanted->mask[0] };
	struct action ours = { .handler = (uint64_t)gt_trap_entry }, set_now;
	uint64_t saved;
	ours.flags = (int32_t)((programs.flags & (SA_ONSTACK | SA_RESTART)) | SA_SIGINFO);
	memset(ours.mask, 0xff, sizeof(ours.mask));
	__atomic_fetch_add(&gt_agent_state.called_out, 1, __ATOMIC_SEQ_CST);
	gt_signals_mask(&saved);
	if (set(TRAP, &ours, NULL) == 0 && set(TRAP, NULL, &set_now) == 0) {
		programs.flags |= (uint32_t)set_now.flags & SA_RESTORER;
		programs.restorer = set_now.restorer;
	}
	set_programs_action(&programs);
	gt_signals_restore(&saved);
	__atomic_fetch_sub(&gt_agent_state.called_out, 1, __ATOMIC_SEQ_CST);
}

static bool read_action(uint64_t address, struct action *action)
{
	uint64_t *words = (uint64_t *)action;
	for (size_t i = 0; i < sizeof(*action) / 8; i++)
		if (!gt_port_peek(address + i * 8, &words[i]))
			return false;
	return true;
}

int gt_traps_sigaction(struct gt_hook_frame *frame, uint64_t body)
{
	uint32_t signal = (uint32_t)frame->rdi;
	struct action wanted;
	if (!is_active() || signal - 1 >= 64 ||
	    (frame->rsi != 0 && !read_action(frame->rsi, &wanted)))
		return 0;
	uint64_t bit = 1ull << (signal - 1);
	bool child =
		gt_threads_is_vfork_child(); /* it shares this memory, but has its own actions */
	struct action *old = (struct action *)frame->rdx;
	if (signal == TRAP) {
		struct kernel_action was = programs_action();
		if (frame->rsi != 0 && !child)
			set_trap_action(&wanted, body);
		if (old != NULL) {
			memset(old, 0, sizeof(*old));
			old->handler = was.handler;
			old->flags = (int32_t)was.flags;
			old->restorer = was.restorer;
			old->mask[0] = was.mask;
		}
		frame->rax = 0;
		return 1;
	}
	bool had = (__atomic_load_n(&traps()->in_masks, __ATOMIC_RELAXED) & bit) != 0;
	bool has = frame->rsi != 0 && (wanted.mask[0] & TRAP_BIT) != 0;
	if (!had && !has)
		return 0;
	int (*set)(int, const struct action *, struct action *) =
		(int (*)(int, const struct action *, struct action *))body;
	wanted.mask[0] &= ~TRAP_BIT;
	__atomic_fetch_add(&gt_agent_state.called_out, 1, __ATOMIC_SEQ_CST);
	int result = set((int)signal, frame->rsi != 0 ? &wanted : NULL, old);
	__atomic_fetch_sub(&gt_agent_state.called_out, 1, __ATOMIC_SEQ_CST);
	if (result == 0 && old != NULL && had)
		old->mask[0] |= TRAP_BIT;
	if (result == 0 && frame->rsi != 0 && !child) {
		if (has)
			__atomic_fetch_or(&traps()->in_masks, bit, __ATOMIC_RELAXED);
		else
			__atomic_fetch_and(&traps()->in_masks, ~bit, __ATOMIC_RELAXED);
	}
	frame->rax = (uint64_t)(int64_t)result;
	return 1;
}

/* syscall(SYS_rt_sigaction, …) */
static int raw_sigaction(struct gt_hook_frame *frame)
{
	struct kernel_action wanted, was = programs_action();
	uint64_t *words = (uint64_t *)&wanted;
	for (size_t i = 0; frame->rdx != 0 && i < sizeof(wanted) / 8; i++)
		if (!gt_port_peek(frame->rdx + i * 8, &words[i]))
			return 0;
	if (frame->rsi == TRAP) {
		uint64_t saved;
		gt_signals_mask(&saved);
		if (frame->rdx != 0 && !gt_threads_is_vfork_child())
			set_programs_action(&wanted);
		gt_signals_restore(&saved);
		if (frame->rcx != 0)
			*(struct kernel_action *)frame->rcx = was;
		frame->rax = 0;
		return 1;
	}
	if (frame->rdx == 0 || !(wanted.mask & TRAP_BIT))
		return 0;
	wanted.mask &= ~TRAP_BIT;
	if (gt_syscall_failed(gt_syscall4(SYS_RT_SIGACTION, (long)frame->rsi, (long)&wanted,
					  (long)frame->rcx, (long)frame->r8)))
		return 0;
	frame->rax = 0;
	return 1;
}

int gt_traps_syscall(struct gt_hook_frame *frame)
{
	if (!is_active())
		return 0;
	switch (frame->rdi) {
	case SYS_RT_SIGACTION:
		return raw_sigaction(frame);
	case SYS_RT_SIGPROCMASK:
		if (frame->rsi != UNBLOCK)
			take_out(&frame->rdx);
		return 0;
	case SYS_RT_SIGSUSPEND:
		take_out(&frame->rsi);
		return 0;
	case SYS_PPOLL:
		take_out(&frame->r8);
		return 0;
	case SYS_PSELECT6: /* its sixth argument is the seventh of syscall(3) */
		take_out_sized(&frame->return_address + 1);
		return 0;
	case SYS_EPOLL_PWAIT:
	case SYS_EPOLL_PWAIT2:
		take_out(&frame->r9);
		return 0;
	default:
		return 0;
	}
}

int gt_traps_exec(struct gt_hook_frame *frame, uint64_t body)
{
	struct gt_thread *thread = gt_threads_try_current();
	bool blocked = thread != NULL && thread->trap & GRAFTRACE_TRAP_BLOCKED;
	struct kernel_action ignore = { .handler = 1 }, ours;
	uint64_t trap = TRAP_BIT;
	if (!is_active())
		return 0;
	bool ignored = programs_action().handler == 1;
	if (!blocked && !ignored)
		return 0;
	long (*execute)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) =
		(long (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))body;
	bool shared = gt_threads_is_vfork_child();
	if (!shared)
		__atomic_fetch_add(&gt_agent_state.called_out, 1, __ATOMIC_SEQ_CST);
	if (ignored)
		gt_syscall4(SYS_RT_SIGACTION, TRAP, (long)&ignore, (long)&ours, 8);
	if (blocked)
		gt_syscall4(SYS_RT_SIGPROCMASK, BLOCK, (long)&trap, 0, 8);
	frame->rax = (uint64_t)execute(frame->rdi, frame->rsi, frame->rdx, frame->rcx, frame->r8);
	/* exec failed. */
	if (blocked)
		gt_syscall4(SYS_RT_SIGPROCMASK, UNBLOCK, (long)&trap, 0, 8);
	if (ignored)
		gt_syscall4(SYS_RT_SIGACTION, TRAP, (long)&ours, 0, 8);
	if (!shared)
		__atomic_fetch_sub(&gt_agent_state.called_out, 1, __ATOMIC_SEQ_CST);
	return 1;
}
