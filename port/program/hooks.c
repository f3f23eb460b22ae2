/* SPDX-License-Identifier: MIT */
/*
 * The functions of libc, libgcc and the dynamic loader that the host hooks at their entries: those
 * that leave frames without returning, change stacks, load code, replace the image, enter a
 * sandbox, forbid the clock, take %gs, and those of unwinders (unwind.c).
 * No hook changes what its function does, except for unwinders'.
 */
#include "port/program/agent.h"
#include "core/record/port.h"
#include "port/program/syscall.h"
#include "port/program/syscalls.h"
#include "port/program/traps.h"
#include "port/program/unwind.h"

#define JMP_BUF_SP     6   /* index of the saved stack pointer, glibc and musl */
#define UCONTEXT_STACK 16  /* offset of ss_sp in ucontext_t, which ss_flags and ss_size follow */
#define UCONTEXT_RSP   160 /* … of the saved stack pointer */
#define R_DEBUG_STATE  24  /* offset of r_state in struct r_debug */
/* While the host lives: it is planning and patching, and no new code may run meanwhile. */
#define OBJECTS_WAIT_MS 30000
#define EXEC_WAIT_MS	2000
#define HANDLER_WAIT_MS 2000
#define SANDBOX_WAIT_MS 5000
/* Much longer than a thread waits for a host at a time, and for a processor. */
#define WAITS_MS      1000
#define LEAVE_WAIT_MS 5000

#define CLONE_VM     0x00000100u
#define CLONE_VFORK  0x00004000u
#define CLONE_SETTLS 0x00080000u

#define SYS_SECCOMP	317
#define PR_SET_NAME	15
#define PR_SET_SECCOMP	22
#define PR_SET_TSC	26
#define PR_TSC_SIGSEGV	2
#define PR_SET_DISPATCH 59 /* PR_SET_SYSCALL_USER_DISPATCH */
#define ARCH_SET_GS	0x1001

extern const char gt_clone_start[] __attribute__((visibility("hidden")));
void gt_agent_clone_start(struct gt_thread *block);
/* turn.S */
void gt_turn(uint32_t *word, uint64_t ticks) __attribute__((visibility("hidden")));

/* Called from glue.S only: 0: go on with the function, 1: it is done, rax is its result. */
int gt_agent_hook(struct gt_hook_frame *frame);

/* How much of a stack is searched for an interrupted context, and how much at once. */
#define LOOK_BYTES   16384
#define LOOK_AT_ONCE 64
/* The kernel's frame has rdx, rax, rcx, rsp and rip one after the other. */
#define BEFORE_RIP 4
/* Of an event that a straight line records: head, clock, number and fields. */
#define LONGEST_PLACE (8 * (3 + GRAFTRACE_PROBE_FIELDS))

/* words[i] may be the rip of a kernel's frame. Is it one of the straight line, which is left now?
 * Then, and on the way from there to where signals are masked, rcx, rdx or rax is the place that was
 * reserved, if any is. Of an event that C stores it is noted. */
static bool leaves_straight_line(struct gt_thread *thread, const uint64_t *words, long i)
{
	const struct graftrace_region *region = gt_agent_region(words[i]);
	bool is_line =
		region != NULL && words[i] - (uint64_t)region < GRAFTRACE_REGION_STUBS_OFFSET;
	/* Of an event's straight line a part stands in the region, too. */
	if (region != NULL || gt_agent_is_image(words[i])) {
		const uint64_t rdx = words[i - 4], rax = words[i - 3], rcx = words[i - 2];

		/* While a line takes a place of several words at rax, rcx lies further up. */
		if (!is_line || rcx - rax - 1 >= LONGEST_PLACE)
			gt_record_give_up_place(thread, rcx);
		gt_record_give_up_place(thread, rdx);
		gt_record_give_up_place(thread, rax);
	}
	if (gt_agent_is_image(words[i]) && thread->storing != 0) {
		gt_record_give_up_place(thread, thread->storing);
		thread->storing = 0;
	}
	return is_line;
}

/* Did a signal interrupt the straight line between [from, to) of the running stack, or of the
 * alternate one that `from` is on? Then the kernel's signal frame there has an address of the
 * hot text. Old frames may be found as well: then the depth is written once more than needed.
 * The two addresses may be on different stacks, with unmapped memory between. */
static bool left_straight_line(struct gt_thread *thread, uint64_t from, uint64_t to)
{
	uint64_t words[BEFORE_RIP + LOOK_AT_ONCE] = { 0 }, low, high;
	long pid = gt_syscall3(SYS_GETPID, 0, 0, 0);
	bool left = false;
	low = thread->base->low;
	high = thread->base->high;
	/* A jump from one coroutine's stack to another leaves no handler. */
	if (from < to && to - from <= LOOK_BYTES)
		;
	else if (from < to && from >= low && to <= high)
		to = from + LOOK_BYTES;
	else if (gt_port_alternate_stack(&low, &high) && from >= low && from < high)
		to = high - from > LOOK_BYTES ? from + LOOK_BYTES : high;
	else
		return false;
	for (uint64_t at = from; at < to; at += LOOK_AT_ONCE * 8) {
		struct {
			uint64_t base, bytes;
		} local = { (uint64_t)(words + BEFORE_RIP), LOOK_AT_ONCE * 8 },
		  remote = { at, LOOK_AT_ONCE * 8 };
		if (remote.bytes > to - at)
			local.bytes = remote.bytes = to - at;
		long got = gt_syscall6(SYS_PROCESS_VM_READV, pid, (long)&local, 1, (long)&remote, 1,
				       0);
		if (got <= 0)
			return left;
		for (long i = BEFORE_RIP; i < BEFORE_RIP + got / 8; i++)
			left |= leaves_straight_line(thread, words, i);
		for (long i = 0; i < BEFORE_RIP; i++)
			words[i] = words[LOOK_AT_ONCE + i];
	}
	return left;
}

/* A longjmp from `from` to stack pointer `sp`: the calls between have ended. */
static void leave_frames(uint64_t from, uint64_t sp)
{
	uint64_t saved;
	if (gt_agent_sandboxed())
		return;
	gt_signals_mask(&saved);
	struct gt_thread *thread = gt_threads_try_current();
	if (thread != NULL) {
		bool left = from != sp - 8 && left_straight_line(thread, from, sp);
		gt_frames_resolve(thread, sp, false);
		if (left) {
			/* A record may have been written without its frame, or the frame without
			 * its record: the depth is written for readers. */
			gt_frames_drop_in_flight(thread);
			thread->resume |= GT_RESUME_DEPTH;
		}
		gt_stream_settle(thread);
	}
	gt_signals_restore(&saved);
}

/*
 * What saves its own return address, to go on there later, and was reached by a tail jump from a
 * traced function, finds a stub's return point in its slot. Saved, that would lead to the mirror
 * long after the slot had other calls, or after we have left. So the traced call ends here, and the
 * slot gets the address that it returns to, as if the tail jump were a call behind its return.
 */
static void end_tail_call(struct gt_hook_frame *frame)
{
	uint64_t slot = (uint64_t)&frame->return_address;
	uint64_t saved;
	if (!gt_port_is_stub_return(frame->return_address))
		return;
	if (!gt_agent_sandboxed()) {
		gt_signals_mask(&saved);
		struct gt_thread *thread = gt_threads_try_current();
		uint32_t function;
		if (thread != NULL) {
			do
				gt_record_exit(thread, slot, NULL);
			while (gt_record_is_chained(thread, slot, &function));
		}
		gt_signals_restore(&saved);
	}
	frame->return_address = *(const uint64_t *)gt_program_mirror(slot);
}

/* slot: of the call of swapcontext or setcontext, which continues at the ucontext's address. */
static void switch_stack(uint64_t slot, uint64_t ucontext)
{
	uint64_t saved;
	uint64_t sp = *(const uint64_t *)(ucontext + UCONTEXT_RSP);
	uint64_t low = *(const uint64_t *)(ucontext + UCONTEXT_STACK);
	uint64_t bytes = *(const uint64_t *)(ucontext + UCONTEXT_STACK + 16);
	if (gt_agent_sandboxed())
		return;
	gt_signals_mask(&saved);
	struct gt_thread *thread = gt_threads_try_current();
	if (thread != NULL) {
		gt_frames_switch(thread, slot + 8, sp, low, low + bytes);
		gt_stream_settle(thread);
	}
	gt_signals_restore(&saved);
}

static void on_new_thread(void)
{
	uint64_t saved;
	if (gt_agent_sandboxed())
		return;
	gt_signals_mask(&saved);
	gt_threads_before_new();
	gt_signals_restore(&saved);
}

/* Will the child of clone read what this thread reads at its thread pointer? Without a thread pointer of
 * its own, or with one that leads to the same word: a copy of this thread's storage, or what a runtime has
 * there in all of its threads. */
static bool shares_pointer(const struct gt_hook_frame *frame)
{
	uint64_t word;
	if (!(frame->rdx & CLONE_SETTLS))
		return true;
	return gt_port_peek(frame->r9, &word) && word == gt_threads_pointer();
}

/* clone: a child that shares this thread's memory and thread pointer, and runs at the same time,
 * would be taken for it. So it begins in gt_clone_start, which gives it a block that says it is
 * not traced. (A child for which the caller waits, by vfork's flag, acts as the caller
 * meanwhile.) */
static void on_clone(struct gt_hook_frame *frame)
{
	uint64_t flags = frame->rdx, saved;
	uint64_t *stack = (uint64_t *)(frame->rsi & ~15ull) - 4;
	if (!(flags & CLONE_VM) || flags & CLONE_VFORK || frame->rdi == 0 || frame->rsi == 0 ||
	    gt_agent_sandboxed())
		return;
	gt_signals_mask(&saved);
	struct gt_thread *block = NULL;
	if (shares_pointer(frame))
		block = gt_threads_left_out_block();
	else
		gt_threads_before_new();
	gt_signals_restore(&saved);
	if (block == NULL)
		return;
	stack[0] = (uint64_t)block;
	stack[1] = frame->rdi;
	stack[2] = frame->rcx;
	frame->rdi = (uint64_t)gt_clone_start;
	frame->rsi = (uint64_t)stack;
	frame->rcx = (uint64_t)stack;
	/* Our code stays mapped until the child has passed it; for ever if there is no child. */
	__atomic_fetch_add(&gt_agent_state.called_out, 1, __ATOMIC_SEQ_CST);
}

/* Called from clone.S only, by the child. */
void gt_agent_clone_start(struct gt_thread *block)
{
	gt_threads_leave_out(block);
	__atomic_fetch_sub(&gt_agent_state.called_out, 1, __ATOMIC_SEQ_CST);
}

/* The caller may be a vfork child on its parent's stack: frames that are open now never return
 * if exec succeeds, so the parent must check them before use. */
static void expect_stale_frames(void)
{
	struct gt_thread *thread = gt_threads_try_current();
	if (thread == NULL)
		return;
	thread->verify = 1;
	thread->limit = 0;
}

/* glibc mangles the pointer (rotated by 17, then XOR with the guard at %fs:0x30), musl does not. */
static void on_longjmp(const struct gt_hook_frame *frame)
{
	uint64_t from = (uint64_t)&frame->return_address;
	uint64_t kept = ((const uint64_t *)frame->rdi)[JMP_BUF_SP];
	uint64_t guard;
	__asm__("mov %%fs:0x30, %0" : "=r"(guard));
	uint64_t plain = (kept >> 17 | kept << 47) ^ guard;
	if (plain % 8 == 0 && plain > 65536 && plain < 1ull << 47)
		leave_frames(from, plain);
	else if (kept % 8 == 0 && kept > 65536 && kept < 1ull << 47)
		leave_frames(from, kept);
}

/* A handler that the host waits for: the host puts a trigger on it first. */
static void on_sigaction(const struct gt_hook_frame *frame)
{
	uint64_t signals = __atomic_load_n(&gt_port_arena()->signals, __ATOMIC_RELAXED);
	uint32_t signal = (uint32_t)frame->rdi;
	uint64_t handler;
	if (signals == 0 || signal - 1 >= 64 || !(signals >> (signal - 1) & 1) || frame->rsi == 0)
		return;
	if (gt_port_peek(frame->rsi, &handler) && handler > 1 /* SIG_DFL, SIG_IGN */)
		gt_mail_send(GRAFTRACE_MAIL_HANDLER, handler, HANDLER_WAIT_MS);
}

/* 1: a thread tells the host of its sandbox. In a fork's child nobody does. */
static uint32_t *entering(void)
{
	return (uint32_t *)(gt_image_fork + 3);
}

/* Waits for another thread that tells of its sandbox: it makes system calls meanwhile, and ours may be one for all
 * threads. This wait makes none, for the same reason, and is bounded: the other one may have ended. It is longer than
 * the other one's, which does not count what it waits for processors. */
static void wait_for_turn(void)
{
	gt_turn(entering(), 2 * SANDBOX_WAIT_MS * gt_agent_state.tsc_per_ms);
}

/* strict mode, or a filter (struct sock_fprog). A null pointer only asks whether filters are
 * available. */
static void on_sandbox(bool strict, uint64_t filter)
{
	if (!strict && filter == 0)
		return;
	wait_for_turn();
	__atomic_fetch_or(&gt_agent_state.flags, GRAFTRACE_AGENT_PLAIN_LOCKS, __ATOMIC_SEQ_CST);
	/* A host that has not set it, dead or busy, has not looked whether others wait for it yet; each wait is a short one. */
	if (!gt_agent_sandboxed() &&
	    gt_mail_send(GRAFTRACE_MAIL_SANDBOX, strict ? 0 : filter, SANDBOX_WAIT_MS) != 1 &&
	    !__atomic_exchange_n(&gt_agent_state.sandboxed, 1, __ATOMIC_SEQ_CST))
		gt_turn(&(uint32_t){ 1 }, WAITS_MS * gt_agent_state.tsc_per_ms);
	__atomic_store_n(entering(), 0, __ATOMIC_RELEASE);
}

/* The thread gets another name, which readers of the recording see as soon as its stream has it. */
static void on_name(uint64_t address)
{
	char name[sizeof(((struct graftrace_stream *)NULL)->comm)] = { 0 };
	uint64_t saved;
	/* A vfork child's name is not that of the thread whose stream it uses. */
	if (gt_agent_sandboxed() || !gt_port_listens(gt_port_arena()) ||
	    gt_threads_is_vfork_child())
		return;
	gt_signals_mask(&saved);
	const struct gt_thread *thread = gt_threads_try_current();
	if (thread != NULL && thread->stream != NULL &&
	    thread->stream->generation == thread->generation) {
		const uint32_t bytes = gt_events_copy_text(address, name, sizeof(name),
							   (uint64_t)name + GRAFTRACE_RED_ZONE);
		memset(name + bytes, 0, sizeof(name) - bytes);
		if (bytes != 0)
			memcpy(thread->stream->comm, name, sizeof(name));
	}
	gt_signals_restore(&saved);
}

static void on_prctl(uint64_t what, uint64_t mode, uint64_t filter)
{
	if ((uint32_t)what == PR_SET_SECCOMP)
		on_sandbox(mode == 1, filter);
	else if ((uint32_t)what == PR_SET_NAME)
		on_name(mode);
	else if ((uint32_t)what == PR_SET_TSC && (uint32_t)mode == PR_TSC_SIGSEGV)
		gt_mail_send(GRAFTRACE_MAIL_LEAVE, GRAFTRACE_LEAVE_CLOCK, LEAVE_WAIT_MS);
	else if ((uint32_t)what == PR_SET_DISPATCH && mode != 0 &&
		 __atomic_load_n(&gt_port_arena()->syscalls_on, __ATOMIC_RELAXED) != 0)
		gt_mail_send(GRAFTRACE_MAIL_LEAVE, GRAFTRACE_LEAVE_DISPATCH, LEAVE_WAIT_MS);
}

static void on_arch_prctl(uint64_t what)
{
	if ((uint32_t)what == ARCH_SET_GS)
		gt_mail_send(GRAFTRACE_MAIL_LEAVE, GRAFTRACE_LEAVE_GS, LEAVE_WAIT_MS);
}

void gt_hooks_call(uint64_t number, uint64_t first, uint64_t second, uint64_t third)
{
	/* (op, flags, filter); strict mode with flags only asks what is available */
	if (number == SYS_SECCOMP && ((uint32_t)first == 1 || (uint32_t)(first | second) == 0))
		on_sandbox((uint32_t)first == 0, third);
	else if (number == SYS_PRCTL)
		on_prctl(first, second, third);
	else if (number == SYS_ARCH_PRCTL)
		on_arch_prctl(first);
}

/* Existing mappings are locked without the arena: see locked.c. */
static int on_mlockall(struct gt_hook_frame *frame, uint64_t *flags)
{
	*flags = (uint32_t)*flags;
	if (!gt_locked_all(flags))
		return 0;
	frame->rax = 0;
	return 1;
}

/* The function that reports has just been entered: it is the innermost call. */
static void on_tsan_entry(struct gt_hook_frame *frame)
{
	struct gt_thread *thread = gt_threads_try_current();
	if (thread == NULL || !gt_port_is_stub_return(frame->rdi) ||
	    gt_thread_top(thread) == thread->context->frames)
		return;
	const struct gt_frame *top = gt_frames_settled(thread);
	if (top != thread->context->frames)
		frame->rdi = *(const uint64_t *)gt_program_mirror(top->slot);
}

int gt_agent_hook(struct gt_hook_frame *frame)
{
	uint64_t index = frame->site & 0xffffffff;
	if (index >= gt_agent_state.hook_count || index >= GRAFTRACE_AGENT_HOOKS)
		return 0;
	const struct graftrace_hook_site *site = &gt_agent_state.hooks[index];
	uint64_t slot = (uint64_t)&frame->return_address;
	switch (site->kind) {
	case GRAFTRACE_HOOK_LONGJMP:
		on_longjmp(frame);
		return 0;
	case GRAFTRACE_HOOK_UNWIND_SETIP: {
		/* the frame of the landing has its own return slot one word below its CFA */
		uint64_t (*get_cfa)(uint64_t) = (uint64_t(*)(uint64_t))site->argument;
		uint64_t cfa;
		if (get_cfa == NULL)
			return 0;
		__atomic_fetch_add(&gt_agent_state.looking, 1, __ATOMIC_SEQ_CST);
		cfa = get_cfa(frame->rdi);
		__atomic_fetch_sub(&gt_agent_state.looking, 1, __ATOMIC_SEQ_CST);
		leave_frames(slot, cfa - 8);
		return 0;
	}
	case GRAFTRACE_HOOK_LEAVE:
		leave_frames(slot, slot + 8);
		return 0;
	case GRAFTRACE_HOOK_TSAN:
		on_tsan_entry(frame);
		return 0;
	case GRAFTRACE_HOOK_GETCONTEXT:
		end_tail_call(frame);
		return 0;
	case GRAFTRACE_HOOK_SETCONTEXT:
		gt_traps_context(frame->rdi);
		switch_stack(slot, frame->rdi);
		return 0;
	case GRAFTRACE_HOOK_SWAPCONTEXT:
		end_tail_call(frame);
		gt_traps_context(frame->rsi);
		switch_stack(slot, frame->rsi);
		return 0;
	case GRAFTRACE_HOOK_DEBUG_STATE:
		if (site->argument == 0 || *(const int *)(site->argument + R_DEBUG_STATE) == 0)
			gt_mail_send(GRAFTRACE_MAIL_OBJECTS, site->argument, OBJECTS_WAIT_MS);
		return 0;
	case GRAFTRACE_HOOK_EXEC:
		expect_stale_frames();
		gt_mail_send(GRAFTRACE_MAIL_EXEC, 0, EXEC_WAIT_MS);
		return gt_traps_exec(frame, site->body);
	case GRAFTRACE_HOOK_FIND_OBJECT:
		return gt_unwind_find_object(frame, site);
	case GRAFTRACE_HOOK_ITERATE_PHDR:
		return gt_unwind_iterate_phdr(frame, site);
	case GRAFTRACE_HOOK_SIGACTION:
		on_sigaction(frame);
		return gt_traps_sigaction(frame, site->body);
	case GRAFTRACE_HOOK_SIGMASK:
		return gt_traps_sigmask(frame);
	case GRAFTRACE_HOOK_WAITMASK:
		gt_traps_wait_mask(frame, site->argument);
		return 0;
	case GRAFTRACE_HOOK_SIGPENDING:
		return gt_traps_pending(frame);
	case GRAFTRACE_HOOK_SIGWAIT:
		return gt_traps_wait(frame, site->argument != 0);
	case GRAFTRACE_HOOK_SYSCALL:
		if (frame->rdi == SYS_MLOCKALL)
			return on_mlockall(frame, &frame->rsi);
		gt_hooks_call(frame->rdi, frame->rsi, frame->rdx, frame->rcx);
		return gt_traps_syscall(frame);
	case GRAFTRACE_HOOK_PRCTL:
		on_prctl(frame->rdi, frame->rsi, frame->rdx);
		return 0;
	case GRAFTRACE_HOOK_ARCH_PRCTL:
		on_arch_prctl(frame->rdi);
		return 0;
	case GRAFTRACE_HOOK_MLOCKALL:
		return on_mlockall(frame, &frame->rdi);
	case GRAFTRACE_HOOK_THREAD:
		on_new_thread();
		return 0;
	case GRAFTRACE_HOOK_CLONE:
		on_clone(frame);
		return 0;
	case GRAFTRACE_HOOK_UNWIND_BACKTRACE:
		return gt_unwind_backtrace(frame, site);
	default:
		return 0;
	}
}
