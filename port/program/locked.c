/* SPDX-License-Identifier: MIT */
/*
 * Programs that keep their memory in RAM (mlockall). The arena is more than a gigabyte of addresses
 * of which little is ever used: mlockall would make the kernel fill all of them with pages, and count
 * them against RLIMIT_MEMLOCK. The regions and the agent's memory would count, too. So what it does to
 * the mappings that are there is done here, mapping by mapping, without these; what it says of later
 * ones it says itself.
 *
 * Runs on the program's stack, with its signals as they are.
 */
#include "port/program/agent.h"
#include "core/record/port.h"
#include "port/program/syscall.h"

#define SYS_READ       0
#define SYS_CLOSE      3
#define SYS_OPENAT     257
#define SYS_MLOCK      149
#define SYS_MUNLOCK    150
#define SYS_MUNLOCKALL 152
#define SYS_MLOCK2     325

#define AT_FDCWD	(-100)
#define O_CLOEXEC	02000000
#define MLOCK_ONFAULT	1
#define USER_SPACE_ENDS (1ull << 47)

static bool locks_later; /* mlockall(MCL_FUTURE) is in force */

/* The end of the region that holds `address`. 0: none does. */
static uint64_t end_of_region(uint64_t address)
{
	const uint32_t count = __atomic_load_n(&gt_agent_state.region_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < count && i < GRAFTRACE_AGENT_REGIONS; i++) {
		const uint64_t start = gt_agent_state.regions[i].start;

		if (address - start < gt_agent_state.regions[i].bytes)
			return start + gt_agent_state.regions[i].bytes;
	}
	return 0;
}

/* Whether arena, regions and the agent's memory are all that lies in a mapping: the kernel merges
 * those that touch and are alike. */
static bool is_recorders(uint64_t start, uint64_t end)
{
	const uint64_t arena = gt_agent_state.arena, bytes = gt_port_arena()->bytes;
	uint64_t at = start;

	if (start >= arena && end <= arena + bytes)
		return true;
	while (at != 0 && at < end) {
		const uint64_t next = end_of_region(at);

		at = next != 0 ? next : gt_memory_end(at);
	}
	return at != 0;
}

/* Locks one mapping. False: over the kernel's limit, or the mapping has just gone. */
static bool lock_one(uint64_t start, uint64_t end, bool on_fault)
{
	if (end <= start || end > USER_SPACE_ENDS || is_recorders(start, end))
		return true;
	if (gt_syscall_failed(
		    gt_syscall3(SYS_MLOCK2, (long)start, (long)(end - start), MLOCK_ONFAULT)))
		return false;
	/* Mappings without access have no pages to lock: that is no failure. */
	if (!on_fault)
		gt_syscall3(SYS_MLOCK, (long)start, (long)(end - start), 0);
	return true;
}

/* The parser of lines of /proc/PID/maps, byte by byte: "START-END …\n". */
struct line {
	uint64_t number[2];
	uint32_t field; /* 0: START, 1: END, 2: the rest */
};

static bool read_byte(struct line *line, uint8_t byte, bool on_fault)
{
	bool done = true;

	if (byte == '\n') {
		done = lock_one(line->number[0], line->number[1], on_fault);
		*line = (struct line){ { 0, 0 }, 0 };
	} else if (line->field < 2 && (byte == '-' || byte == ' ')) {
		line->field++;
	} else if (line->field < 2) {
		line->number[line->field] = line->number[line->field] << 4 |
					    (uint64_t)(byte <= '9' ? byte - '0' : byte - 'a' + 10);
	}
	return done;
}

static bool lock_each(bool on_fault)
{
	struct line line = { { 0, 0 }, 0 };
	uint8_t bytes[256];
	bool done = true;
	long got = 1;
	long fd = gt_syscall4(SYS_OPENAT, AT_FDCWD, (long)"/proc/self/maps", O_CLOEXEC, 0);

	if (gt_syscall_failed(fd))
		return false;
	while (done && got > 0) {
		got = gt_syscall3(SYS_READ, fd, (long)bytes, sizeof(bytes));
		for (long i = 0; done && i < got; i++)
			done = read_byte(&line, bytes[i], on_fault);
	}
	gt_syscall3(SYS_CLOSE, fd, 0, 0);
	return done && got == 0;
}

/* Later mappings come first, so that none that another thread makes meanwhile is left out. */
static bool lock_all(uint64_t flags)
{
	const bool before = __atomic_load_n(&locks_later, __ATOMIC_RELAXED);

	if (flags & GT_MCL_FUTURE) {
		if (gt_syscall_failed(gt_syscall3(SYS_MLOCKALL,
						  (long)(flags & ~(uint64_t)GT_MCL_CURRENT), 0, 0)))
			return false;
	} else if (before) {
		gt_syscall3(SYS_MUNLOCKALL, 0, 0, 0);
	}
	if (lock_each(flags & GT_MCL_ONFAULT))
		return true;
	if (!before)
		gt_syscall3(SYS_MUNLOCKALL, 0, 0, 0);
	return false;
}

/* May a filter forbid system calls that the program has not made itself? */
static bool is_filtered(void)
{
	return gt_agent_sandboxed() || gt_agent_state.flags & GRAFTRACE_AGENT_PLAIN_LOCKS;
}

bool gt_locked_all(uint64_t *flags)
{
	const uint64_t known = GT_MCL_CURRENT | GT_MCL_FUTURE | GT_MCL_ONFAULT;
	bool done = false;

	if (*flags & ~known || !(*flags & (GT_MCL_CURRENT | GT_MCL_FUTURE)))
		return false; /* the kernel returns the error */
	if (*flags & GT_MCL_CURRENT) {
		done = !is_filtered() && lock_all(*flags);
		/* Not done: the kernel's call then either fails in the same way or, with
		 * MCL_ONFAULT, locks pages only when they are touched: the arena's, and the
		 * program's as well. */
		if (!done)
			*flags |= GT_MCL_ONFAULT;
	}
	__atomic_store_n(&locks_later, (*flags & GT_MCL_FUTURE) != 0, __ATOMIC_RELAXED);
	return done;
}

bool gt_locks_later(void)
{
	return __atomic_load_n(&locks_later, __ATOMIC_RELAXED) && !is_filtered();
}

void gt_locked_give_free(void *memory, uint64_t bytes)
{
	if (gt_locks_later())
		gt_syscall3(SYS_MUNLOCK, (long)memory, (long)bytes, 0);
}
