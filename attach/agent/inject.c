/* SPDX-License-Identifier: MIT */
/*
 * Injection: see inject.h.
 *
 * The arena goes in as two descriptors over a socket pair that the target makes and the host takes one
 * end of (pidfd_getfd): that needs nothing but the right to trace. Opening /proc/HOST/fd/N in the
 * target would also need that it sees the host's /proc entry and may look into it, which a
 * container, another user or hidepid forbids; it is only the second try, for kernels before 5.6.
 * All descriptors are closed again before the program runs.
 */
#define _GNU_SOURCE
#include "attach/agent/inject.h"
#include "attach/agent/told.h"
#include "attach/process/proc.h"
#include "attach/process/shadow_stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linked in: port/program builds it (graftrace/agent.h describes it). */
extern const unsigned char gt_agent_image[];
extern const size_t gt_agent_image_size;

#define PAGE 4096u
#define FDS  2 /* of the arena: what the host alone writes, and the rest */
/* In the page of the mark by which a fork's child is known: the agent has a few words there. */
#define BEHIND_FORK_MARK 256u

static bool inside(uint64_t offset, uint64_t bytes, uint64_t whole)
{
	return offset <= whole && bytes <= whole - offset;
}

int gt_agent_header(struct graftrace_agent_image *header, struct gt_message *message)
{
	if (gt_agent_image_size < sizeof(*header))
		return gt_fail(message, GT_EFORMAT, "the agent's image has only %zu bytes",
			       gt_agent_image_size);
	memcpy(header, gt_agent_image, sizeof(*header));
	if (header->magic != GRAFTRACE_AGENT_MAGIC || header->text_bytes % PAGE ||
	    header->file_bytes > gt_agent_image_size || header->file_bytes > header->image_bytes ||
	    header->text_bytes > header->image_bytes ||
	    !inside(header->state_offset, sizeof(struct graftrace_agent_state),
		    header->image_bytes) ||
	    header->fork_offset % PAGE || !inside(header->fork_offset, PAGE, header->image_bytes) ||
	    !inside(header->hot_source, header->hot_bytes, header->file_bytes) ||
	    header->hot_bytes > GRAFTRACE_REGION_STUBS_OFFSET - GRAFTRACE_REGION_HOT_OFFSET)
		return gt_fail(message, GT_EFORMAT, "the agent's image is not one for this host");
	return 0;
}

int gt_agent_set_flag(const struct gt_process *process, uint64_t image,
		      const struct graftrace_agent_image *header, size_t offset)
{
	const uint32_t yes = 1;

	return gt_process_write(process, image + header->state_offset + offset, &yes, sizeof(yes));
}

static int remote_call(struct gt_remote *remote, int64_t *result, struct gt_message *message,
		       long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		       uint64_t f)
{
	const uint64_t arguments[6] = { a, b, c, d, e, f };

	return gt_remote_call(remote, number, arguments, result, message);
}

static int remote_map(struct gt_remote *remote, uint64_t at, uint64_t bytes, int protection,
		      int flags, int fd, uint64_t offset, uint64_t *address,
		      struct gt_message *message)
{
	int64_t result;
	int error = remote_call(remote, &result, message, SYS_mmap, at, bytes, (uint64_t)protection,
				(uint64_t)flags, (uint64_t)(int64_t)fd, offset);

	if (error)
		return error;
	if (result < 0 && result > -4096)
		return gt_fail(
			message, result == -EEXIST ? GT_EEXIST : GT_ENOMEM,
			"process %d cannot map %llu bytes: %s (is there a limit? ulimit -v, -l; "
			"a smaller -b needs less)",
			(int)remote->process->pid, (unsigned long long)bytes,
			strerror((int)-result));
	*address = (uint64_t)result;
	return 0;
}

static void remote_close(struct gt_remote *remote, int64_t fd)
{
	int64_t result;

	if (fd >= 0)
		remote_call(remote, &result, NULL, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
}

/* What recvmsg needs in the target's memory. */
struct scratch {
	int32_t pair[2];
	char byte[8];
	struct iovec vector;
	struct msghdr header;
	union {
		struct cmsghdr first;
		char bytes[CMSG_SPACE(sizeof(int[FDS]))];
	} control;
};

_Static_assert(sizeof(struct scratch) < sizeof(uint64_t[2 * GRAFTRACE_AGENT_REGIONS]),
	       "it lies where the regions will be");
_Static_assert(offsetof(struct scratch, pair) == 0, "as GRAFTRACE_PASSING says");
_Static_assert(BEHIND_FORK_MARK + sizeof(struct scratch) <= PAGE, "it lies behind the fork mark");

static int send_descriptors(int socket, const struct gt_arena *arena)
{
	struct scratch local = { .byte = "a" };
	struct iovec vector = { local.byte, 1 };
	struct msghdr header = {
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = local.control.bytes,
		.msg_controllen = sizeof(local.control.bytes),
	};
	const int fds[FDS] = { arena->host_fd, arena->fd };
	struct cmsghdr *control = CMSG_FIRSTHDR(&header);

	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(control), fds, sizeof(fds));
	return sendmsg(socket, &header, MSG_NOSIGNAL) == 1 ? 0 : GT_EIO;
}

/* Notes the sockets for whoever cleans up, should this host be killed; 0: they are closed. */
static void note_sockets(struct gt_process *process, uint64_t state, const int32_t *pair)
{
	uint64_t passing[2][2] = { { 0 } };

	for (int i = 0; pair != NULL && i < 2; i++) {
		passing[i][0] = (uint64_t)pair[i];
		passing[i][1] = gt_proc_socket(process->pid, pair[i]);
	}
	gt_process_write(process, state + offsetof(struct graftrace_agent_state, passing), passing,
			 sizeof(passing));
}

/* Over a socket pair: see above. fds: the arena's descriptors in the target. state: the agent's
 * there. at: room for struct scratch. Whoever cleans up finds it. */
static int pass_by_socket(struct gt_remote *remote, uint64_t state, uint64_t at,
			  const struct gt_arena *arena, int64_t *fds)
{
	struct gt_process *process = remote->process;
	const uint64_t begun[2] = { GRAFTRACE_PASSING, at };
	struct scratch local = {
		.pair = {-1, -1},
		.vector = {(void *)(at + offsetof(struct scratch, byte)), 1},
		.header = {
			.msg_iov = (void *)(at + offsetof(struct scratch, vector)),
			.msg_iovlen = 1,
			.msg_control = (void *)(at + offsetof(struct scratch, control)),
			.msg_controllen = CMSG_SPACE(sizeof(int[FDS])),
		},
	};
	int64_t result;
	int32_t passed[FDS];
	int ours, error;

	error = gt_process_write(process, at, &local, sizeof(local));
	if (!error)
		error = gt_process_write(process,
					 state + offsetof(struct graftrace_agent_state, passing),
					 begun, sizeof(begun));
	if (!error)
		error = remote_call(remote, &result, NULL, SYS_socketpair, AF_UNIX,
				    SOCK_DGRAM | SOCK_CLOEXEC, 0,
				    at + offsetof(struct scratch, pair), 0, 0);
	if (error || result < 0) {
		note_sockets(process, state, NULL);
		return error ? error : GT_ENOTSUP;
	}
	error = gt_process_read(process, at, &local.pair, sizeof(local.pair));
	if (error)
		return error;
	note_sockets(process, state, local.pair);
	ours = (int)syscall(SYS_pidfd_getfd, process->pidfd, local.pair[1], 0);
	error = ours < 0 ? GT_ENOTSUP : send_descriptors(ours, arena);
	if (ours >= 0)
		close(ours);
	if (!error)
		error = remote_call(remote, &result, NULL, SYS_recvmsg, (uint64_t)local.pair[0],
				    at + offsetof(struct scratch, header), MSG_CMSG_CLOEXEC, 0, 0,
				    0);
	if (!error && result != 1)
		error = GT_ENOTSUP;
	if (!error)
		error = gt_process_read(process, at, &local, sizeof(local));
	if (!error && (local.control.first.cmsg_type != SCM_RIGHTS ||
		       local.control.first.cmsg_len != CMSG_LEN(sizeof(passed))))
		error = GT_ENOTSUP;
	if (!error) {
		memcpy(passed, CMSG_DATA(&local.control.first), sizeof(passed));
		fds[0] = passed[0];
		fds[1] = passed[1];
	}
	remote_close(remote, local.pair[0]);
	remote_close(remote, local.pair[1]);
	note_sockets(process, state, NULL);
	return error;
}

static int open_by_path(struct gt_remote *remote, uint64_t at, int arena_fd, int flags, int64_t *fd)
{
	char path[64];
	int error;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), arena_fd);
	error = gt_process_write(remote->process, at, path, sizeof(path));
	if (!error)
		error = remote_call(remote, fd, NULL, SYS_openat, (uint64_t)(int64_t)-100, at,
				    (uint64_t)flags | 02000000 /* O_CLOEXEC */, 0, 0, 0);
	return error ? error : *fd < 0 ? GT_ENOTSUP : 0;
}

static int pass_by_path(struct gt_remote *remote, uint64_t at, const struct gt_arena *arena,
			int64_t *fds)
{
	int error = open_by_path(remote, at, arena->host_fd, 0 /* O_RDONLY */, &fds[0]);

	return error ? error : open_by_path(remote, at, arena->fd, 2 /* O_RDWR */, &fds[1]);
}

static uint64_t agent_flags(pid_t pid)
{
	uint64_t flags = gt_process_auxv(pid, AT_HWCAP2) & 2 ? GRAFTRACE_AGENT_FSGSBASE : 0;
	char text[4096];

	/* What its filters say to futexes that few programs use was not asked. */
	if (!gt_proc_read(text, sizeof(text), "/proc/%d/status", (int)pid) ||
	    gt_proc_field(text, "Seccomp") != 0)
		flags |= GRAFTRACE_AGENT_PLAIN_LOCKS;
	return flags;
}

/* Whether the mapping of `bytes` that has just been made is locked in RAM, as all that the process
 * maps (mlockall): then its locked memory is at least that large. */
static bool is_locked(pid_t pid, uint64_t bytes)
{
	char text[4096];

	return gt_proc_read(text, sizeof(text), "/proc/%d/status", (int)pid) &&
	       (uint64_t)gt_proc_field(text, "VmLck") >= bytes / 1024;
}

/* One part of the arena. locked: without access no page comes with the mapping itself. */
static int map_shared(struct gt_remote *remote, const struct gt_arena_part *part, uint64_t at,
		      int64_t fd, bool locked, struct gt_message *message)
{
	const int access = part->host_only ? PROT_READ : PROT_READ | PROT_WRITE;
	uint64_t got;
	int64_t result;
	int error = remote_map(remote, at + part->offset, part->bytes, locked ? PROT_NONE : access,
			       MAP_SHARED | MAP_NORESERVE | MAP_FIXED, (int)fd, part->at, &got,
			       message);

	if (error || !locked)
		return error;
	error = remote_call(remote, &result, message, SYS_munlock, at + part->offset, part->bytes,
			    0, 0, 0, 0);
	if (!error && result == 0)
		error = remote_call(remote, &result, message, SYS_mprotect, at + part->offset,
				    part->bytes, (uint64_t)access, 0, 0, 0);
	if (!error && result != 0)
		error = gt_fail(
			message, GT_ENOMEM,
			"process %d keeps all its memory in RAM (mlockall), and cannot except "
			"the recorder's from that: %s",
			(int)remote->process->pid, strerror((int)-result));
	return error;
}

/* The program's cores are as without it: a kernel that cannot leave it out writes it, too. */
static int map_part(struct gt_remote *remote, const struct gt_arena_part *part, uint64_t at,
		    int64_t fd, bool locked, struct gt_message *message)
{
	int64_t result;
	int error = map_shared(remote, part, at, fd, locked, message);

	return error ? error
		     : remote_call(remote, &result, message, SYS_madvise, at + part->offset,
				   part->bytes, MADV_DONTDUMP, 0, 0, 0);
}

/* At a multiple of the sub-buffers' size: room for it is taken first, and what is too much of it
 * given back. */
static int map_aligned(struct gt_remote *remote, const struct gt_arena *arena, const int64_t *fds,
		       uint64_t *address, struct gt_message *message)
{
	uint64_t alignment = arena->sub_buffer_bytes, room = arena->bytes + alignment;
	uint64_t taken, at, end;
	int64_t result;
	int error = remote_map(remote, 0, room, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, &taken, message);
	bool locked;

	if (error)
		return error;
	locked = is_locked(remote->process->pid, room);
	if (locked && agent_flags(remote->process->pid) & GRAFTRACE_AGENT_PLAIN_LOCKS)
		error = gt_fail(message, GT_ENOTSUP,
				"process %d keeps all its memory in RAM (mlockall) and runs in a "
				"sandbox (seccomp), which may forbid to except the recorder's %llu "
				"bytes from that: it cannot be attached to",
				(int)remote->process->pid, (unsigned long long)arena->bytes);
	at = (taken + alignment - 1) & ~(alignment - 1);
	end = at + arena->bytes;
	for (int i = 0; !error && i < GT_ARENA_PARTS; i++) {
		const struct gt_arena_part *part = &arena->parts[i];

		error = map_part(remote, part, at, fds[part->host_only ? 0 : 1], locked, message);
	}
	if (error) {
		remote_call(remote, &result, NULL, SYS_munmap, taken, room, 0, 0, 0, 0);
		return error;
	}
	*address = at;
	if (at > taken)
		error = remote_call(remote, &result, message, SYS_munmap, taken, at - taken, 0, 0,
				    0, 0);
	if (!error && taken + room > end)
		error = remote_call(remote, &result, message, SYS_munmap, end, taken + room - end,
				    0, 0, 0, 0);
	return error;
}

/* The arena's descriptors come into the target. at: room in it for struct scratch. */
static int pass_descriptors(struct gt_remote *remote, uint64_t state, uint64_t at,
			    const struct gt_arena *arena, int64_t *fds, struct gt_message *message)
{
	int error = pass_by_socket(remote, state, at, arena, fds);

	if (error && error != GT_EGONE)
		error = pass_by_path(remote, at, arena, fds);
	return error ? gt_fail(message, error,
			       "process %d cannot be given the shared memory (no free descriptor, "
			       "or a sandbox forbids sockets)",
			       (int)remote->process->pid)
		     : 0;
}

/* In the place of the old one: what processes write, and the answers. Each is one call, which leaves the old
 * mapping where it fails. */
static int map_other(struct gt_remote *remote, const struct gt_arena *arena, uint64_t at,
		     const int64_t *fds, struct gt_message *message)
{
	int error = 0;

	for (int i = 0; !error && i < GT_ARENA_PARTS; i++)
		if (i == GT_ARENA_OWN || i == GT_ARENA_ANSWERS)
			error = map_part(remote, &arena->parts[i], at,
					 fds[arena->parts[i].host_only ? 0 : 1], false, message);
	return error;
}

int gt_inject_other(struct gt_remote *remote, const struct gt_arena *arena,
		    const struct gt_agent *agent, struct gt_message *message)
{
	const uint64_t state = agent->image + agent->header.state_offset;
	const uint64_t room = agent->image + agent->header.fork_offset + BEHIND_FORK_MARK;
	int64_t fds[FDS] = { -1, -1 };
	char text[4096];
	int error = 0;

	if (!gt_proc_read(text, sizeof(text), "/proc/%d/status", (int)remote->process->pid) ||
	    gt_proc_field(text, "VmLck"))
		error = gt_fail(message, GT_ENOTSUP, "it keeps memory in RAM (mlockall)");
	if (!error)
		error = pass_descriptors(remote, state, room, arena, fds, message);
	if (!error)
		error = map_other(remote, arena, agent->arena, fds, message);
	remote_close(remote, fds[0]);
	remote_close(remote, fds[1]);
	return error;
}

static int map_arena(struct gt_remote *remote, const struct gt_arena *arena, uint64_t state,
		     uint64_t *address, struct gt_message *message)
{
	int64_t fds[FDS] = { -1, -1 };
	int error = pass_descriptors(remote, state,
				     state + offsetof(struct graftrace_agent_state, regions), arena,
				     fds, message);

	if (!error)
		error = map_aligned(remote, arena, fds, address, message);
	remote_close(remote, fds[0]);
	remote_close(remote, fds[1]);
	return error;
}

/* The initial thread's stack: how far it may grow. */
static void find_stack(pid_t pid, uint64_t pointer, struct graftrace_agent_state *state)
{
	struct rlimit limit = { 8 << 20, 8 << 20 };
	const struct gt_map *stack;
	struct gt_maps maps;
	uint64_t below, size;

	if (gt_process_maps(pid, &maps, NULL))
		return;
	stack = gt_maps_find(&maps, pointer);
	for (size_t i = 0; i < maps.count;
	     i++) /* at an attach the pointer may be another thread's */
		if (strcmp(maps.entries[i].path, "[stack]") == 0)
			stack = &maps.entries[i];
	if (stack != NULL) {
		below = stack > maps.entries ? stack[-1].end : 0;
		prlimit(pid, RLIMIT_STACK, NULL, &limit);
		size = limit.rlim_cur > (8ull << 30) ? 8ull << 30 : limit.rlim_cur;
		/* The program may raise its limit; the kernel leaves at least this much free below
		 * the stack (mmap_base() in arch/x86/mm/mmap.c). */
		if (size < 128 << 20)
			size = 128 << 20;
		state->stack_high = stack->end;
		state->stack_low = stack->end - size;
		if (size > stack->end - below)
			state->stack_low = below + (1 << 20);
		if (state->stack_low > stack->start)
			state->stack_low = stack->start;
		state->stack_low &= ~(uint64_t)(PAGE - 1);
	}
	gt_maps_free(&maps);
}

/* The page by which a fork's child is known. */
static int set_fork_mark(struct gt_remote *remote, const struct gt_agent *agent,
			 struct gt_message *message)
{
	const uint64_t page = agent->image + agent->header.fork_offset;
	const uint64_t mark = GRAFTRACE_FORK_TOLD;
	int64_t result = 0;
	int error = remote_call(remote, &result, message, SYS_madvise, page, PAGE, MADV_WIPEONFORK,
				0, 0, 0);

	if (!error && result)
		error = gt_fail(message, GT_ENOTSUP,
				"process %d cannot have memory that fork wipes (Linux 4.14): %s",
				(int)remote->process->pid, strerror((int)-result));
	if (!error && gt_process_write(remote->process, page, &mark, sizeof(mark)))
		error = gt_fail(message, GT_EIO, "cannot write the agent into process %d",
				(int)remote->process->pid);
	return error;
}

/* A thread, and so what it starts and executes, may be forbidden the time stamp counter. */
static int check_clock(struct gt_remote *remote, const struct gt_agent *agent,
		       struct gt_message *message)
{
	const uint64_t at = agent->image + agent->header.state_offset;
	int64_t result = 0;
	int32_t mode = 0;
	int error = remote_call(remote, &result, message, SYS_prctl, PR_GET_TSC, at, 0, 0, 0, 0);

	if (!error && result == 0)
		error = gt_process_read(remote->process, at, &mode, sizeof(mode));
	if (error || mode != PR_TSC_SIGSEGV)
		return error;
	remote_call(remote, &result, NULL, SYS_munmap, agent->image, agent->header.image_bytes, 0,
		    0, 0, 0);
	return gt_fail(message, GT_ENOTSUP,
		       "process %d has forbidden itself the time stamp counter (prctl PR_SET_TSC), "
		       "by which calls are timed",
		       (int)remote->process->pid);
}

int gt_inject_agent(struct gt_remote *remote, const struct gt_arena *arena, uint64_t tsc_per_ms,
		    struct gt_agent *agent, struct gt_message *message)
{
	struct gt_process *process = remote->process;
	struct graftrace_agent_state *state;
	uint64_t bytes;
	bool kept;
	int64_t result;
	int error;

	*agent = (struct gt_agent){ 0 };
	error = gt_agent_header(&agent->header, message);
	if (!error)
		error = gt_shadow_stack_forbid(remote, message);
	if (error)
		return error;
	bytes = (agent->header.image_bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	error = remote_map(remote, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0, &agent->image, message);
	/* The image first, with no arena yet: by it a later host knows what is to be cleaned. */
	if (!error &&
	    gt_process_write(process, agent->image, gt_agent_image, agent->header.file_bytes))
		error = gt_fail(message, GT_EIO, "cannot write the agent into process %d",
				(int)process->pid);
	if (!error)
		error = check_clock(remote, agent, message);
	if (!error)
		error = set_fork_mark(remote, agent, message);
	if (!error)
		error = map_arena(remote, arena, agent->image + agent->header.state_offset,
				  &agent->arena, message);
	if (error)
		return error;
	state = calloc(1, sizeof(*state));
	if (state == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for the agent's state");
	*state = (struct graftrace_agent_state){
		.magic = GRAFTRACE_AGENT_MAGIC,
		.arena = agent->arena,
		.image = agent->image,
		.flags = agent_flags(process->pid),
		.tsc_per_ms = tsc_per_ms,
	};
	state->told = agent->told = gt_told_map(remote, &agent->header, &kept);
	state->told_others = kept;
	find_stack(process->pid, remote->saved.rsp, state);
	if (remote_call(remote, &result, NULL, SYS_getpid, 0, 0, 0, 0, 0, 0) == 0)
		state->process = (uint32_t)result;
	error = gt_process_write(process, agent->image + agent->header.state_offset, state,
				 sizeof(*state));
	free(state);
	if (error)
		return gt_fail(message, error, "cannot write the agent into process %d",
			       (int)process->pid);
	error = remote_call(remote, &result, message, SYS_mprotect, agent->image,
			    agent->header.text_bytes, PROT_READ | PROT_EXEC, 0, 0, 0);
	if (error)
		return error;
	if (result)
		return gt_fail(message, GT_ENOTSUP, "process %d may not have the agent's code: %s",
			       (int)process->pid, strerror((int)-result));
	remote->saved.gs_base = agent->image + agent->header.null_block_offset;
	return 0;
}

static uint64_t state_address(const struct gt_agent *agent)
{
	return agent->image + agent->header.state_offset;
}

static int map_region(struct gt_remote *remote, uint64_t low, uint64_t high, uint64_t bytes,
		      uint64_t *start, struct gt_message *message)
{
	int error = 0;

	for (int tries = 0; tries < 8; tries++) {
		struct gt_maps maps;
		uint64_t got;

		error = gt_process_maps(remote->process->pid, &maps, message);
		if (error)
			return error;
		error = gt_region_place(&maps, low, high, bytes, start);
		gt_maps_free(&maps);
		if (error)
			return gt_fail(message, error,
				       "no room for stubs within 2 GB of the code at 0x%llx",
				       (unsigned long long)low);
		error = remote_map(remote, *start, bytes, PROT_READ | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
					   MAP_FIXED_NOREPLACE,
				   -1, 0, &got, message);
		if (!error && got == *start)
			return 0;
		if (!error) { /* a kernel that takes the address for a hint */
			int64_t result;

			remote_call(remote, &result, NULL, SYS_munmap, got, bytes, 0, 0, 0, 0);
			return gt_fail(message, GT_ENOSPC, "this kernel cannot place a mapping");
		}
		if (error != GT_EEXIST) /* another thread was faster: look again */
			return error;
	}
	return error;
}

int gt_inject_region(struct gt_remote *remote, struct gt_agent *agent, uint64_t low, uint64_t high,
		     uint32_t stub_room, uint64_t moved_bytes, uint32_t first_number,
		     struct gt_region **region, struct gt_message *message)
{
	uint64_t bytes = gt_region_bytes(stub_room, moved_bytes), start, entry[2];
	struct gt_process *process = remote->process;
	struct graftrace_region_unwind unwind;
	struct graftrace_region page;
	struct gt_region *made;
	uint32_t count;
	int error;

	if (agent->region_count == GRAFTRACE_AGENT_REGIONS)
		return gt_fail(message, GT_ENOSPC, "process %d has %d regions of stubs already",
			       (int)process->pid, GRAFTRACE_AGENT_REGIONS);
	error = map_region(remote, low, high, bytes, &start, message);
	if (error)
		return error;
	made = &agent->regions[agent->region_count];
	gt_region_init(made, start, bytes, stub_room, first_number);
	gt_region_header(made, &agent->header, agent->image, &page);
	error = gt_region_unwind(made, &agent->header, gt_agent_image, agent->header.file_bytes,
				 &unwind);
	if (error)
		return gt_fail(message, error, "the agent's unwind data cannot be used");
	error = gt_process_write(process, start, &page, sizeof(page));
	if (!error)
		error = gt_process_write(process, start + GRAFTRACE_REGION_UNWIND_OFFSET, &unwind,
					 sizeof(unwind));
	if (!error)
		error = gt_told_region(process, agent->told, agent->region_count, &unwind);
	if (!error)
		error = gt_process_write(process, start + GRAFTRACE_REGION_HOT_OFFSET,
					 gt_agent_image + agent->header.hot_source,
					 agent->header.hot_bytes);
	/* The entry, then the count. */
	entry[0] = start;
	entry[1] = bytes;
	if (!error)
		error = gt_process_write(process,
					 state_address(agent) +
						 offsetof(struct graftrace_agent_state, regions) +
						 agent->region_count * sizeof(entry),
					 entry, sizeof(entry));
	count = agent->region_count + 1;
	if (!error)
		error = gt_process_write(
			process,
			state_address(agent) + offsetof(struct graftrace_agent_state, region_count),
			&count, sizeof(count));
	if (error)
		return gt_fail(message, error, "cannot write stubs into process %d",
			       (int)process->pid);
	agent->region_count = count;
	*region = made;
	return 0;
}

int gt_inject_set_hook(const struct gt_process *process, const struct gt_agent *agent,
		       uint32_t index, const struct graftrace_hook_site *site)
{
	return gt_process_write(process,
				state_address(agent) +
					offsetof(struct graftrace_agent_state, hooks) +
					index * sizeof(*site),
				site, sizeof(*site));
}

int gt_inject_hook(const struct gt_process *process, struct gt_agent *agent,
		   const struct graftrace_hook_site *site)
{
	uint32_t index = agent->hook_count, count = index + 1;
	int error;

	if (index == GRAFTRACE_AGENT_HOOKS)
		return GT_ENOSPC;
	error = gt_inject_set_hook(process, agent, index, site);
	if (!error)
		error = gt_process_write(process,
					 state_address(agent) +
						 offsetof(struct graftrace_agent_state, hook_count),
					 &count, sizeof(count));
	if (error)
		return error;
	agent->hook_count = count;
	return (int)index;
}

int gt_inject_constant(const struct gt_process *process, struct gt_agent *agent, uint64_t start,
		       uint64_t end)
{
	const uint64_t state = agent->image + agent->header.state_offset;
	const uint64_t range[2] = { start, end };
	const uint32_t index = agent->constant_count, count = index + 1;
	int error;

	if (index == GRAFTRACE_AGENT_CONSTANTS)
		return 0;
	error = gt_process_write(process,
				 state + offsetof(struct graftrace_agent_state, constants) +
					 index * sizeof(range),
				 range, sizeof(range));
	if (!error)
		error = gt_process_write(
			process, state + offsetof(struct graftrace_agent_state, constant_count),
			&count, sizeof(count));
	agent->constant_count += !error;
	return error;
}

int gt_inject_unwinders(const struct gt_process *process, struct gt_agent *agent,
			const struct gt_unwinder_code unwinders[GRAFTRACE_AGENT_UNWINDERS])
{
	int error;

	if (memcmp(agent->unwinders, unwinders, sizeof(agent->unwinders)) == 0)
		return 0;
	error = gt_process_write(
		process, state_address(agent) + offsetof(struct graftrace_agent_state, unwinders),
		unwinders, sizeof(agent->unwinders));
	if (!error)
		memcpy(agent->unwinders, unwinders, sizeof(agent->unwinders));
	return error;
}

int gt_inject_suspends(const struct gt_process *process, struct gt_agent *agent)
{
	const uint32_t yes = 1;
	int error;

	if (agent->suspends)
		return 0;
	error = gt_process_write(
		process, state_address(agent) + offsetof(struct graftrace_agent_state, suspends),
		&yes, sizeof(yes));
	agent->suspends = !error;
	return error;
}
