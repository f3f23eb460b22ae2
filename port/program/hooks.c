/* SPDX-License-Identifier: MIT */
/*
 * The agent's interest in a few functions of libc, libgcc and the dynamic loader, which the host
 * hooks at their entries: those that leave frames without returning, that change stacks, load code,
 * replace the image, enter a sandbox, and those by which unwinders find the unwind data of code.
 * None changes what its function does, but for _dl_find_object and dl_iterate_phdr, which also know
 * the stubs, and backtrace, which does not show them.
 */
#include "port/program/agent.h"
#include "core/record/port.h"
#include "port/program/syscall.h"
#include "port/program/traps.h"

#define JMP_BUF_SP    6	  /* index of the saved stack pointer, glibc and musl */
#define UCONTEXT_RSP  160 /* offset of the saved stack pointer in ucontext_t */
#define R_DEBUG_STATE 24  /* offset of r_state in struct r_debug */
/* While the host lives: it is planning and patching, and nothing may run there meanwhile. */
#define OBJECTS_WAIT_MS 30000
#define EXEC_WAIT_MS	2000
#define HANDLER_WAIT_MS 2000
#define SANDBOX_WAIT_MS 5000

#define SYS_SECCOMP    317
#define PR_SET_SECCOMP 22

/* Called from glue.S only: 0: go on with the function, 1: it is done, rax is its result. */
int gt_agent_hook(struct gt_hook_frame *frame);

/* A longjmp to stack pointer sp: what lies below has ended. */
static void leave_frames(uint64_t sp)
{
	uint64_t saved;
	if (gt_agent_sandboxed())
		return;
	gt_signals_mask(&saved);
	struct gt_thread *thread = gt_threads_try_current();
	if (thread != NULL) {
		gt_frames_resolve(thread, sp, false);
		gt_stream_settle(thread);
	}
	gt_signals_restore(&saved);
}

static void switch_stack(uint64_t left, uint64_t sp)
{
	uint64_t saved;
	if (gt_agent_sandboxed())
		return;
	gt_signals_mask(&saved);
	struct gt_thread *thread = gt_threads_try_current();
	if (thread != NULL) {
		gt_frames_switch(thread, left, sp);
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

/* The caller may be a vfork child on its parent's stack: frames that are open now never return when
 * the exec succeeds, and the parent has to look before it trusts them. */
static void expect_stale_frames(void)
{
	struct gt_thread *thread = gt_threads_try_current();
	if (thread == NULL)
		return;
	thread->verify = 1;
	thread->limit = NULL;
}

/* glibc mangles the pointer (rotated by 17, then XOR with the guard at %fs:0x30), musl does not. */
static void on_longjmp(const struct gt_hook_frame *frame)
{
	uint64_t kept = ((const uint64_t *)frame->rdi)[JMP_BUF_SP];
	uint64_t guard;
	__asm__("mov %%fs:0x30, %0" : "=r"(guard));
	uint64_t plain = (kept >> 17 | kept << 47) ^ guard;
	if (plain % 8 == 0 && plain > 65536 && plain < 1ull << 47)
		leave_frames(plain);
	else if (kept % 8 == 0 && kept > 65536 && kept < 1ull << 47)
		leave_frames(kept);
}

/* A handler that is waited for: the host puts a trigger on it first. */
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

/* strict mode, or a filter (struct sock_fprog). A null pointer asks whether there are filters. */
static void on_sandbox(bool strict, uint64_t filter)
{
	if (!strict && filter == 0)
		return;
	if (!gt_agent_sandboxed() &&
	    gt_mail_send(GRAFTRACE_MAIL_SANDBOX, strict ? 0 : filter, SANDBOX_WAIT_MS) != 1)
		__atomic_store_n(&gt_agent_state.sandboxed, 1, __ATOMIC_SEQ_CST);
}

static void on_prctl(uint64_t what, uint64_t mode, uint64_t filter)
{
	if ((uint32_t)what == PR_SET_SECCOMP)
		on_sandbox(mode == 1, filter);
}

struct dl_find_object {
	unsigned long long flags;
	uint64_t map_start;
	uint64_t map_end;
	uint64_t link_map;
	uint64_t eh_frame;
	unsigned long long reserved[7];
};

static const struct graftrace_region *region_at(uint64_t address)
{
	for (uint32_t i = 0; i < gt_agent_state.region_count && i < GRAFTRACE_AGENT_REGIONS; i++)
		if (address - gt_agent_state.regions[i].start < gt_agent_state.regions[i].bytes)
			return (const struct graftrace_region *)gt_agent_state.regions[i].start;
	return NULL;
}

static int on_find_object(struct gt_hook_frame *frame)
{
	const struct graftrace_region *region = region_at(frame->rdi);
	struct dl_find_object *found = (struct dl_find_object *)frame->rsi;
	if (region == NULL)
		return 0;
	memset(found, 0, sizeof(*found));
	found->map_start = (uint64_t)region;
	for (uint32_t i = 0; i < gt_agent_state.region_count; i++)
		if (gt_agent_state.regions[i].start == (uint64_t)region)
			found->map_end = (uint64_t)region + gt_agent_state.regions[i].bytes;
	found->eh_frame = (uint64_t)region->eh_frame_hdr;
	frame->rax = 0;
	return 1;
}

struct dl_phdr_info {
	uint64_t address;
	const char *name;
	const void *headers;
	uint16_t header_count;
	uint64_t adds, subs;
	uint64_t tls_module, tls_data;
};

typedef int phdr_callback(struct dl_phdr_info *info, size_t bytes, void *data);

struct phdr_call {
	phdr_callback *callback;
	void *data;
	uint64_t adds, subs;
	size_t bytes;
};

static int on_phdr(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct phdr_call *call = data;
	call->bytes = bytes;
	if (bytes >= offsetof(struct dl_phdr_info, tls_module)) {
		call->adds = info->adds;
		call->subs = info->subs;
	}
	return call->callback(info, bytes, call->data);
}

static void on_iterate_phdr(struct gt_hook_frame *frame, const struct graftrace_hook_site *site)
{
	struct phdr_call call = { (phdr_callback *)frame->rdi, (void *)frame->rsi, 0, 0, 0 };
	int (*body)(phdr_callback *, void *) = (int (*)(phdr_callback *, void *))site->body;
	/* Our code is returned to: it stays while this is not 0 (for ever after an exception). */
	__atomic_fetch_add(&gt_agent_state.called_out, 1, __ATOMIC_SEQ_CST);
	int result = body(on_phdr, &call);
	for (uint32_t i = 0; result == 0 && i < gt_agent_state.region_count; i++) {
		const struct graftrace_region *region =
			(const struct graftrace_region *)gt_agent_state.regions[i].start;
		struct dl_phdr_info info = { 0 };
		info.address = (uint64_t)region;
		info.name = "[graftrace]";
		info.headers = region->phdrs;
		info.header_count = 2;
		info.adds = call.adds;
		info.subs = call.subs;
		result = call.callback(&info, call.bytes < sizeof(info) ? call.bytes : sizeof(info),
				       call.data);
	}
	__atomic_fetch_sub(&gt_agent_state.called_out, 1, __ATOMIC_SEQ_CST);
	frame->rax = (uint64_t)(int64_t)result;
}

/* The function that tells has just been entered: it is the innermost call. */
static void on_tsan_entry(struct gt_hook_frame *frame)
{
	struct gt_thread *thread = gt_threads_try_current();
	if (thread == NULL || !gt_port_is_stub_return(frame->rdi) ||
	    thread->top == thread->context->frames)
		return;
	const struct gt_frame *top = gt_frames_settled(thread);
	if (top != thread->context->frames)
		frame->rdi = *(const uint64_t *)gt_program_mirror(top->slot);
}

/* backtrace(3) has returned: the stubs' own frames are taken out. */
static void on_backtrace(struct gt_hook_frame *frame)
{
	void **buffer = (void **)frame->rdi;
	int count = (int)frame->rax;
	int kept = 0;
	for (int i = 0; i < count; i++)
		if (region_at((uint64_t)buffer[i]) == NULL)
			buffer[kept++] = buffer[i];
	frame->rax = (uint64_t)kept;
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
		/* the frame that is landed in keeps its own return slot, one word below its CFA */
		uint64_t (*get_cfa)(uint64_t) = (uint64_t(*)(uint64_t))site->argument;
		uint64_t cfa;
		if (get_cfa == NULL)
			return 0;
		__atomic_fetch_add(&gt_agent_state.called_out, 1, __ATOMIC_SEQ_CST);
		cfa = get_cfa(frame->rdi);
		__atomic_fetch_sub(&gt_agent_state.called_out, 1, __ATOMIC_SEQ_CST);
		leave_frames(cfa - 8);
		return 0;
	}
	case GRAFTRACE_HOOK_LEAVE:
		leave_frames(slot + 8);
		return 0;
	case GRAFTRACE_HOOK_TSAN:
		on_tsan_entry(frame);
		return 0;
	case GRAFTRACE_HOOK_SETCONTEXT:
		gt_traps_context(frame->rdi);
		switch_stack(slot + 8, *(const uint64_t *)(frame->rdi + UCONTEXT_RSP));
		return 0;
	case GRAFTRACE_HOOK_SWAPCONTEXT:
		gt_traps_context(frame->rsi);
		switch_stack(slot + 8, *(const uint64_t *)(frame->rsi + UCONTEXT_RSP));
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
		return on_find_object(frame);
	case GRAFTRACE_HOOK_ITERATE_PHDR:
		on_iterate_phdr(frame, site);
		return 1;
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
		/* (op, flags, filter); strict mode with flags only asks what there is */
		if (frame->rdi == SYS_SECCOMP &&
		    ((uint32_t)frame->rsi == 1 || (uint32_t)(frame->rsi | frame->rdx) == 0))
			on_sandbox((uint32_t)frame->rsi == 0, frame->rcx);
		else if (frame->rdi == SYS_PRCTL)
			on_prctl(frame->rsi, frame->rdx, frame->rcx);
		return gt_traps_syscall(frame);
	case GRAFTRACE_HOOK_PRCTL:
		on_prctl(frame->rdi, frame->rsi, frame->rdx);
		return 0;
	case GRAFTRACE_HOOK_THREAD:
		on_new_thread();
		return 0;
	case GRAFTRACE_HOOK_BACKTRACE:
		on_backtrace(frame);
		return 1;
	default:
		return 0;
	}
}
