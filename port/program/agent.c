/* SPDX-License-Identifier: MIT */
/*
 * The agent's entry points, called from the recording path through the glue: they mask signals,
 * find the thread's block and call core/record. The functions that core/record needs of the process
 * are here, too.
 */
#include "port/program/agent.h"
#include "core/record/port.h"
#include "port/program/syscall.h"

/* A function's patch is this near to its start. */
#define PATCH_NEAR 16

struct graftrace_agent_state gt_agent_state;
/* %gs points here before a thread has a block of its own. */
struct gt_thread gt_null_block __attribute__((aligned(64)));

_Static_assert(offsetof(struct graftrace_agent_image, entry_slow) == 92,
	       "image.S and hot.S write the header's parts");

/* Called from glue.S only. */
int gt_agent_entry(uint64_t slot, uint32_t function, uint64_t *hole, uint32_t kind);
uint64_t gt_agent_exit(uint64_t slot, uint32_t function, uint64_t *hole);
uint64_t gt_agent_resolve(uint64_t slot) __attribute__((used));

struct graftrace_arena *gt_port_arena(void)
{
	return (struct graftrace_arena *)gt_agent_state.arena;
}

/*
 * A page fault with SIGSEGV blocked kills, so the stack is looked at before: where it has no room
 * for the slow half, the program gets its SIGSEGV here, as it would a little deeper, with nothing
 * locked and nothing half done. It may leave by a jump (a call that has not begun is nobody's), or
 * make room and return. Read, for what lies below a small stack may be another's. Without this one
 * instruction a program that handles its stack's overflow would be killed now and then.
 */
static inline void look_for_stack(void)
{
	__asm__ volatile("testb $0, %c0(%%rsp)" : : "i"(-GT_SLOW_STACK_BYTES) : "cc", "memory");
}

void gt_signals_mask(uint64_t *saved)
{
	uint64_t all = ~0ull;
	look_for_stack();
	gt_syscall4(SYS_RT_SIGPROCMASK, 2 /* SIG_SETMASK */, (long)&all, (long)saved, 8);
}

void gt_signals_restore(const uint64_t *saved)
{
	gt_syscall4(SYS_RT_SIGPROCMASK, 2, (long)saved, 0, 8);
}

/* Linux keeps the number in a segment's limit (arch/x86/include/asm/segment.h, vdso_read_cpunode), where
 * its own getcpu reads it: no system call, which a sandbox may forbid and which costs more than an event. */
#define CPU_SEGMENT 0x7bu
#define CPU_MASK    0xfffu

uint32_t gt_port_cpu(void)
{
	uint32_t cpu = ~0u, limit;
	bool found;

	__asm__("lsl %2, %0" : "=r"(limit), "=@ccz"(found) : "r"(CPU_SEGMENT));
	if (found)
		return limit & CPU_MASK;
	if (gt_syscall_failed(gt_syscall3(SYS_GETCPU, (long)&cpu, 0, 0)))
		return ~0u;
	return cpu;
}

bool gt_port_is_stub_return(uint64_t address)
{
	if (address % GRAFTRACE_STUB_BYTES != GRAFTRACE_STUB_RETURN)
		return false;
	uint32_t count = __atomic_load_n(&gt_agent_state.region_count, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < count && i < GRAFTRACE_AGENT_REGIONS; i++) {
		const uint64_t start = gt_agent_state.regions[i].start;
		const struct graftrace_region *region = (const struct graftrace_region *)start;

		/* The region has other addresses, which an unwinder may have on its stack: unwind data. */
		if (address - (start + GRAFTRACE_REGION_STUBS_OFFSET) <
		    region->journal_mains * (uint64_t)GRAFTRACE_STUB_BYTES)
			return true;
	}
	return false;
}

/* Called by the program (V8), also from signal handlers: returns where the return address of
 * this slot is. It may be written there, too: the call returns to what is there. */
uint64_t gt_agent_resolve(uint64_t slot)
{
	return gt_port_is_stub_return(*(const uint64_t *)slot) ? gt_program_mirror(slot) : slot;
}

/* The function's stub, and the patch that leads to it. 0: no region has one of it. */
static uint64_t stub_of(uint32_t function, const struct graftrace_patch **patch)
{
	const uint32_t count = __atomic_load_n(&gt_agent_state.region_count, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < count && i < GRAFTRACE_AGENT_REGIONS; i++) {
		const uint64_t start = gt_agent_state.regions[i].start;
		const struct graftrace_region *region = (const struct graftrace_region *)start;
		const uint64_t stubs = start + GRAFTRACE_REGION_STUBS_OFFSET;
		const uint64_t stub = region->bias - 5 + (uint64_t)function * GRAFTRACE_STUB_BYTES;

		if (stub - stubs >= (uint64_t)region->journal_mains * GRAFTRACE_STUB_BYTES)
			continue;
		*patch = (const struct graftrace_patch *)region->journal +
			 (stub - stubs) / GRAFTRACE_STUB_BYTES;
		return stub;
	}
	return 0;
}

/* Returns the address in its stub to which the body of a function returns. 0: as above. */
static uint64_t stub_return_of(uint32_t function)
{
	const struct graftrace_patch *patch;
	const uint64_t stub = stub_of(function, &patch);

	return stub != 0 ? stub + GRAFTRACE_STUB_RETURN : 0;
}

/* Whether the call that returns to `address` is a direct one, and *of_it: of that function. */
static bool is_direct(uint64_t address, uint32_t function, bool *of_it)
{
	const struct graftrace_patch *patch;
	uint8_t code[5];
	int32_t distance;

	if (stub_of(function, &patch) == 0 || patch->bytes == 0 ||
	    !gt_peek_bytes(address - sizeof(code), code, sizeof(code)) || code[0] != 0xe8)
		return false;
	memcpy(&distance, code + 1, sizeof(distance));
	/* The jump may stand in the padding before the function, or behind its endbr64. */
	*of_it = address + (uint64_t)(int64_t)distance - patch->address + PATCH_NEAR <
		 2 * PATCH_NEAR;
	return true;
}

/*
 * The slot of the call that returns, where the stack pointer says `slot` (gt_record_slot_of). If a handler takes
 * turns with coroutines, the innermost frame can have the slot of one call and the function of another: the
 * calls at both slots tell. One of another function alone says nothing: that may be a stub of a linkage table, or have
 * jumped on.
 */
static uint64_t slot_of(struct gt_thread *thread, uint64_t slot, uint32_t function)
{
	uint64_t found, address;
	bool of_it;

	gt_frames_keep_within(thread);
	found = gt_record_slot_of(thread, slot, function);
	if (found != slot && gt_port_peek(gt_program_mirror(slot), &address) &&
	    is_direct(address, function, &of_it) && of_it &&
	    is_direct(*(const uint64_t *)gt_program_mirror(found), function, &of_it) && !of_it)
		found = slot;
	return found;
}

/* Does what gt_record_entry does for a function that needs its real return address, while
 * nothing can be recorded. A function with a trigger may be such a one. */
static void put_back(uint64_t slot, uint32_t kind)
{
	kind &= ~(uint32_t)GT_ENTRY_PROBED;
	if ((kind == GT_ENTRY_ONLY || kind == GT_ENTRY_NOTHING || kind == GT_ENTRY_TRIGGER) &&
	    gt_port_is_stub_return(*(const uint64_t *)slot))
		*(uint64_t *)slot = *(const uint64_t *)gt_program_mirror(slot);
}

/* Returns the thread's block. A hole was reserved with the block that was there: if that block
 * is gone, the process forked in between, and the reserved word is the parent's. */
static struct gt_thread *current(uint64_t **hole)
{
	struct gt_thread *thread = gt_threads_try_current();
	if (thread != NULL)
		return thread;
	*hole = NULL;
	return gt_threads_current();
}

/* In a sandbox no other sub-buffer is opened. A place behind the end of the open one came here because it is none of a
 * sub-buffer's words; those that are taken next have to be such ones, too: from 0 on, again with every call. */
static void fill_hole_in_sandbox(uint64_t *hole)
{
	struct gt_thread *thread = gt_threads_at_hand();
	gt_record_fill_hole(hole);
	if (hole == NULL || thread == NULL || (uint64_t)hole & thread->inside)
		return;
	__atomic_store_n(&thread->cur, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&thread->cur_pair, 0, __ATOMIC_RELAXED);
}

int gt_agent_entry(uint64_t slot, uint32_t function, uint64_t *hole, uint32_t kind)
{
	uint64_t saved;
	int traced = 0;
	if (gt_agent_sandboxed()) {
		fill_hole_in_sandbox(hole);
		put_back(slot, kind);
		return 0;
	}
	gt_signals_mask(&saved);
	struct gt_thread *thread = current(&hole);
	if (thread != NULL)
		traced = gt_record_entry(thread, slot, function, kind, hole);
	else
		put_back(slot, kind);
	gt_signals_restore(&saved);
	return traced;
}

uint64_t gt_agent_exit(uint64_t slot, uint32_t function, uint64_t *hole)
{
	uint64_t saved;
	if (gt_agent_sandboxed()) {
		fill_hole_in_sandbox(hole);
		return *(const uint64_t *)gt_program_mirror(slot);
	}
	gt_signals_mask(&saved);
	struct gt_thread *thread = current(&hole);
	if (thread != NULL)
		slot = slot_of(thread, slot, function);
	uint64_t address = *(const uint64_t *)gt_program_mirror(slot);
	if (thread != NULL) {
		gt_record_exit(thread, slot, hole);
		/* its results are those of the function that jumped to it */
		if (gt_record_is_chained(thread, slot, &function) && stub_return_of(function) != 0)
			address = stub_return_of(function);
	}
	gt_signals_restore(&saved);
	return address;
}
