/* SPDX-License-Identifier: MIT */
/*
 * System calls in a thread's name: see threads.h.
 *
 * A host can be killed between any two of its own instructions, and the kernel then lets the thread
 * go with whatever registers and mask it has been given. So it is given none that it could not go
 * on with: a signal frame of our making lies on its stack, with its own registers, vector registers
 * and mask, as the kernel makes them for handlers. The thread is parked at the C library's
 * rt_sigreturn, which takes the frame; and a call is made by a `syscall; ret` that stands somewhere
 * in its code and returns to there. Whenever we are gone, it comes back to what it was doing.
 *
 *	frame:  &rt_sigreturn code	<- rsp of a call; popped by its ret
 *		ucontext		<- rsp while parked
 *		vector registers
 *		128 bytes of red zone
 *		the thread's own stack	<- its rsp
 *
 * Where no such code is found (a program without a C library), the vdso's `syscall` is used without
 * a frame: a host that is killed there harms the program.
 */
#define _GNU_SOURCE
#include "attach/process/proc.h"
#include "attach/process/process.h"
#include "attach/process/seccomp.h"
#include "attach/process/threads.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define SYSCALL_STOP (SIGTRAP | 0x80)
#define RED_ZONE     128
#define XSTATE_MOST  16384
/* Of the vector registers: up to AVX-512 and PKRU. What lies behind (AMX) is the kernel's to keep
 * only for threads that have asked for it. */
#define XSTATE_KEPT	2696u
#define XSTATE_FEATURES 0x2ffull
#define XSTATE_SOFTWARE 464 /* struct _fpx_sw_bytes in the legacy area */
#define XSTATE_HEADER	512
#define UC_FLAGS	7	    /* UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS */
#define STACK_UNCHANGED 0x40	    /* no valid ss_flags: the alternate stack stays as it is */
#define CODE_MOST	(16u << 20) /* of each mapping that is looked through */
#define PIECE_BYTES	(64u << 10)

/* The kernel's struct rt_sigframe, as far as rt_sigreturn reads it. */
struct frame {
	uint64_t pretcode;
	uint64_t flags;
	uint64_t link;
	struct {
		uint64_t pointer;
		uint32_t flags;
		uint32_t pad;
		uint64_t size;
	} stack;
	struct sigcontext registers;
	uint64_t mask;
	uint8_t info[128];
};

_Static_assert(offsetof(struct frame, registers) == 48, "the kernel's ucontext");
_Static_assert(offsetof(struct frame, mask) == 48 + 256, "the kernel's ucontext");

/* On to the next entry or exit of a system call. The one signal that no mask holds back, SIGSTOP, is
 * delivered at once: sent anew later it would come after a SIGCONT that belongs to it, and the process would
 * stay stopped. What it stops we continue; the kernel stops it again when it is let go of, unless the SIGCONT
 * has come (ptrace(2), "Group-stop"). */
static int next_syscall_stop(pid_t tid, struct gt_message *message)
{
	long signal = 0;

	for (;;) {
		int status;

		if (ptrace(PTRACE_SYSCALL, tid, 0, signal) != 0 ||
		    gt_thread_wait_long(tid, &status) != 0 || !WIFSTOPPED(status))
			return gt_fail(message, GT_EGONE, "thread %d has ended", (int)tid);
		if (status >> 16 == 0 && WSTOPSIG(status) == SYSCALL_STOP)
			return 0;
		signal = 0;
		if (status >> 16 == 0 && WSTOPSIG(status) == SIGSTOP)
			signal = SIGSTOP;
		else if (status >> 16 == 0)
			return gt_fail(message, GT_EIO, "thread %d got signal %d", (int)tid,
				       WSTOPSIG(status));
	}
}

int gt_thread_finish_exec(pid_t tid, struct gt_message *message)
{
	/* Signals are delivered behind the exit of the call, so none can come in between. */
	return next_syscall_stop(tid, message);
}

static uint64_t find_in(const uint8_t *bytes, size_t size, uint64_t start, const uint8_t *code,
			size_t code_size)
{
	const uint8_t *at = memmem(bytes, size, code, code_size);

	return at != NULL ? start + (uint64_t)(at - bytes) : 0;
}

/* `syscall; ret` and `mov $15,%rax; syscall` (rt_sigreturn): glibc and musl have both. */
static const uint8_t call_code[] = { 0x0f, 0x05, 0xc3 };
static const uint8_t back_code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

/* By pieces, as glibc has a megabyte and a half of code and both stand in its first half. */
static void find_code_in(struct gt_remote *remote, const struct gt_map *map, uint8_t *piece)
{
	const uint64_t over = sizeof(back_code) - 1; /* they may lie across pieces */
	uint64_t end = map->end;

	if (end - map->start > CODE_MOST)
		end = map->start + CODE_MOST;
	for (uint64_t at = map->start; at < end && !(remote->instruction && remote->back);
	     at += PIECE_BYTES - over) {
		size_t size = end - at < PIECE_BYTES ? end - at : PIECE_BYTES;

		if (gt_process_read(remote->process, at, piece, size) != 0)
			return;
		if (!remote->instruction)
			remote->instruction =
				find_in(piece, size, at, call_code, sizeof(call_code));
		if (!remote->back)
			remote->back = find_in(piece, size, at, back_code, sizeof(back_code));
	}
}

/* From above: what was mapped first, the loader and its C library, which stay; a later one, of a namespace of its own
 * (dlmopen), may go while a thread waits in it. */
static void find_code(struct gt_remote *remote)
{
	uint8_t *piece = malloc(PIECE_BYTES);
	struct gt_maps maps;

	if (piece == NULL || gt_process_maps(remote->process->pid, &maps, NULL)) {
		free(piece);
		return;
	}
	for (size_t i = maps.count; i-- > 0 && !(remote->instruction && remote->back);)
		if (maps.entries[i].executable && maps.entries[i].path[0] == '/')
			find_code_in(remote, &maps.entries[i], piece);
	gt_maps_free(&maps);
	free(piece);
}

static void fill_registers(struct sigcontext *to, const struct user_regs_struct *from)
{
	to->r8 = from->r8;
	to->r9 = from->r9;
	to->r10 = from->r10;
	to->r11 = from->r11;
	to->r12 = from->r12;
	to->r13 = from->r13;
	to->r14 = from->r14;
	to->r15 = from->r15;
	to->rdi = from->rdi;
	to->rsi = from->rsi;
	to->rbp = from->rbp;
	to->rbx = from->rbx;
	to->rdx = from->rdx;
	to->rax = from->rax;
	to->rcx = from->rcx;
	to->rsp = from->rsp;
	to->rip = from->rip;
	to->eflags = from->eflags;
	to->cs = (uint16_t)from->cs;
	to->__pad0 = (uint16_t)from->ss; /* ss in the kernel's header */
	/* The frame's way back restarts nothing: the call is made anew. */
	if (gt_thread_restarts(from)) {
		to->rip -= 2;
		to->rax = from->orig_rax;
	}
}

/* The vector registers as a signal frame has them. Returns their size, 0: unknown. */
static size_t read_vectors(pid_t tid, uint8_t *xstate)
{
	struct iovec io = { xstate, XSTATE_MOST - 64 };
	struct _fpx_sw_bytes software = { .magic1 = FP_XSTATE_MAGIC1 };
	const uint32_t magic2 = FP_XSTATE_MAGIC2;
	uint64_t features;
	size_t size;

	if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &io) != 0 ||
	    io.iov_len < XSTATE_HEADER + 64)
		return 0;
	size = io.iov_len > XSTATE_KEPT ? XSTATE_KEPT : io.iov_len;
	memcpy(&features, xstate + XSTATE_SOFTWARE, sizeof(features)); /* the kernel's XCR0 */
	features &= XSTATE_FEATURES;
	software.extended_size = (uint32_t)size + FP_XSTATE_MAGIC2_SIZE;
	software.xstate_bv = features;
	software.xstate_size = (uint32_t)size;
	memcpy(xstate + XSTATE_SOFTWARE, &software, sizeof(software));
	memcpy(&features, xstate + XSTATE_HEADER, sizeof(features));
	features &= XSTATE_FEATURES;
	memcpy(xstate + XSTATE_HEADER, &features, sizeof(features));
	memcpy(xstate + size, &magic2, sizeof(magic2));
	return size + sizeof(magic2);
}

/* Writes the frame below the thread's stack pointer. False: it cannot be; the stack is as before.
 */
static bool put_frame(struct gt_remote *remote)
{
	uint8_t *xstate = calloc(1, XSTATE_MOST);
	size_t vector_bytes = xstate != NULL ? read_vectors(remote->tid, xstate) : 0;
	struct frame frame = {
		.pretcode = remote->back,
		.flags = UC_FLAGS,
		.stack = { .flags = STACK_UNCHANGED },
		.mask = remote->mask,
	};
	uint64_t vectors, at;
	bool done;

	if (!vector_bytes) {
		free(xstate);
		return false;
	}
	vectors = (remote->saved.rsp - RED_ZONE - vector_bytes) & ~63ull;
	at = ((vectors - sizeof(frame)) & ~15ull) - 8; /* as at a handler's entry */
	fill_registers(&frame.registers, &remote->saved);
	frame.registers.fpstate = (void *)vectors;
	done = gt_process_write(remote->process, vectors, xstate, vector_bytes) == 0 &&
	       gt_process_write(remote->process, at, &frame, sizeof(frame)) == 0;
	free(xstate);
	if (done)
		remote->frame = at;
	return done;
}

static int park(struct gt_remote *remote)
{
	struct user_regs_struct registers = remote->saved;

	registers.rip = remote->back;
	registers.rsp = remote->frame + 8;
	registers.orig_rax = (unsigned long)-1;
	return gt_thread_set_registers(remote->tid, &registers);
}

/* A `syscall` instruction that is there always: the vdso has some. */
static uint64_t find_syscall(const struct gt_process *process)
{
	static const uint8_t code[2] = { 0x0f, 0x05 };
	uint64_t base = gt_process_auxv(process->pid, AT_SYSINFO_EHDR), at = 0;
	uint8_t page[4096];

	for (int i = 0; base && !at && i < 4; i++) {
		uint64_t start = base + (uint64_t)i * sizeof(page);

		if (gt_process_read(process, start, page, sizeof(page)))
			break;
		at = find_in(page, sizeof(page), start, code, sizeof(code));
	}
	return at;
}

/* Without a frame. No vdso either: at the thread's own instruction, for as long as we need it. */
static int begin_bare(struct gt_remote *remote, struct gt_message *message)
{
	static const uint8_t code[2] = { 0x0f, 0x05 };
	struct gt_process *process = remote->process;
	int error;

	remote->back = 0;
	remote->instruction = find_syscall(process);
	if (remote->instruction)
		return 0;
	remote->instruction = remote->saved.rip;
	error = gt_process_read(process, remote->instruction, remote->original, 2);
	if (!error)
		error = gt_process_write(process, remote->instruction, code, 2);
	if (error)
		return gt_fail(message, error, "cannot write into process %d", (int)process->pid);
	remote->written = true;
	return 0;
}

int gt_remote_begin(struct gt_remote *remote, struct gt_process *process, pid_t tid,
		    struct gt_message *message)
{
	uint64_t all = ~0ull;
	int error;

	*remote = (struct gt_remote){ .process = process, .tid = tid };
	remote->filters = gt_seccomp_filters(process->pid, tid);
	error = gt_thread_registers(tid, &remote->saved);
	if (error)
		return gt_fail(message, error, "cannot read the registers of thread %d", (int)tid);
	if (remote->saved.cs != 0x33)
		return gt_fail(message, GT_ENOTSUP, "thread %d runs 32-bit code", (int)tid);
	if (ptrace(PTRACE_GETSIGMASK, tid, sizeof(remote->mask), &remote->mask) != 0)
		return gt_fail(message, GT_EGONE, "thread %d has ended", (int)tid);
	find_code(remote);
	if (remote->instruction && remote->back && put_frame(remote))
		error = park(remote); /* the mask comes after it: the frame has the right one */
	else
		error = begin_bare(remote, message);
	if (!error && ptrace(PTRACE_SETSIGMASK, tid, sizeof(all), &all) != 0)
		error = GT_EGONE;
	if (error == GT_EGONE)
		return gt_fail(message, error, "thread %d has ended", (int)tid);
	return error;
}

int gt_remote_call(struct gt_remote *remote, long number, const uint64_t arguments[6],
		   int64_t *result, struct gt_message *message)
{
	struct user_regs_struct registers = remote->saved;
	int error;

	if (gt_seccomp_filters(remote->process->pid, remote->tid) != remote->filters)
		return gt_fail(
			message, GT_EAGAIN,
			"process %d has entered a sandbox (seccomp) in this moment: try again",
			(int)remote->process->pid);
	error = gt_seccomp_check_call(remote->process, remote->tid, remote->filters, number,
				      arguments, message);
	if (error)
		return error;
	registers.rip = remote->instruction;
	if (remote->frame)
		registers.rsp = remote->frame;
	registers.rax = (unsigned long)number;
	registers.orig_rax = (unsigned long)-1; /* no call to restart */
	registers.rdi = arguments[0];
	registers.rsi = arguments[1];
	registers.rdx = arguments[2];
	registers.r10 = arguments[3];
	registers.r8 = arguments[4];
	registers.r9 = arguments[5];
	error = gt_thread_set_registers(remote->tid, &registers);
	if (!error)
		error = next_syscall_stop(remote->tid, message); /* entry */
	if (!error)
		error = next_syscall_stop(remote->tid, message); /* exit */
	if (!error)
		error = gt_thread_registers(remote->tid, &registers);
	if (error)
		return error;
	*result = (int64_t)registers.rax;
	return 0;
}

int gt_remote_end(struct gt_remote *remote, struct gt_message *message)
{
	pid_t tid = remote->tid;
	int error = 0;

	if (remote->written)
		error = gt_process_write(remote->process, remote->instruction, remote->original, 2);
	/* The interrupt is asked for first: it is taken before any signal that the mask lets in
	 * now, and before the call that our stop had interrupted is restarted (or not). */
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0 ||
	    ptrace(PTRACE_SETSIGMASK, tid, sizeof(remote->mask), &remote->mask) != 0 ||
	    gt_thread_set_registers(tid, &remote->saved) || ptrace(PTRACE_CONT, tid, 0, 0) != 0)
		return gt_fail(message, GT_EGONE, "thread %d has ended", (int)tid);
	if (!error)
		error = gt_thread_reach_stop(tid, message);
	return error;
}
