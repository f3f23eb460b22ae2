/* SPDX-License-Identifier: MIT */
/*
 * Plans the system calls of an object: the places of its `syscall` instructions, which move out of line,
 * each with a stub before and one behind it (doc/design/syscalls.md). Five bytes become a jump: from the
 * instruction on, or from the one that loads the call's number before it. Nothing may lead into these bytes, nor to the
 * instruction itself. Where anything else is known of a place it is left alone.
 */
#define _GNU_SOURCE
#include "attach/plan/plan_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define SYSCALL_BYTES 2
#define BEFORE_MAX    3 /* instructions before it that move with it, at most */

static const uint8_t syscall_bytes[SYSCALL_BYTES] = { 0x0f, 0x05 };

struct finder {
	struct gt_plan *plan;
	struct gt_plan_entry *entries;
	uint32_t count;
	uint32_t room;
	uint64_t last; /* address of the place before */
	bool no_memory;
	bool kept;  /* the place that stays as it is: is_kept() */
	bool fixed; /* there is one that always makes the same call */
};

/* One place while it is planned. */
struct place {
	struct gt_plan *plan;
	struct gt_plan_entry *entry;
	const struct gt_object_function *function;
	uint32_t index;
	uint64_t address;	     /* of the instruction */
	const uint8_t *code;	     /* of the function */
	uint64_t at;		     /* offset of the instruction there … */
	uint64_t before[BEFORE_MAX]; /* … and of those before it, the nearest first */
	uint32_t before_count;	     /* that go on to it, and leave the stack as it is */
	uint64_t end;		     /* of the function */
	uint64_t room;		     /* up to the section's end */
};

static bool stands_before(const struct place *place, const void *bytes, size_t count)
{
	return place->at >= count && memcmp(place->code + place->at - count, bytes, count) == 0;
}

static bool stands_behind(const struct place *place, const void *bytes, size_t count)
{
	const uint64_t from = place->at + SYSCALL_BYTES;

	return place->end - from >= count && memcmp(place->code + from, bytes, count) == 0;
}

/* mov $15,%eax or %rax: a signal's way back, which unwinders and debuggers know by these bytes. */
static bool is_restorer(const struct place *place)
{
	return stands_before(place, "\xb8\x0f\0\0\0", 5) ||
	       stands_before(place, "\x48\xc7\xc0\x0f\0\0\0", 7);
}

/*
 * The one of the C library through which threads are cancelled (glibc from 2.41 on, musl): a signal's
 * handler compares the interrupted address with the bounds of this code. mov %r11,8(%rsp); syscall; ret
 */
static bool is_compared(const struct place *place)
{
	static const char *const names[] = { "__syscall_cancel_arch", "__syscall_cp_asm",
					     "__cp_begin" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strncmp(place->function->name, names[i], strlen(names[i])) == 0)
			return true;
	return stands_before(place, "\x4c\x89\x5c\x24\x08", 5) && stands_behind(place, "\xc3", 1);
}

/* A thread that unmaps its own stack, then ends (musl's __unmapself): neither place has one. */
static bool is_without_stack(const struct place *place)
{
	static const uint8_t unmap[] = { 0xb8, 0x0b, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t leave[] = { 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05 };
	const uint64_t from = place->at >= 24 ? place->at - 24 : 0;
	const uint64_t end = place->end - place->at < 24 ? place->end : place->at + 24;
	const uint8_t *first = memmem(place->code + from, end - from, unmap, sizeof(unmap));
	const uint8_t *then = first != NULL ? memmem(first, (size_t)(place->code + end - first),
						     leave, sizeof(leave))
					    : NULL;

	return then != NULL && (first + sizeof(unmap) - SYSCALL_BYTES == place->code + place->at ||
				then + sizeof(leave) - SYSCALL_BYTES == place->code + place->at);
}

static bool is_static_program(const struct gt_object *object)
{
	return gt_object_is_program(object) && gt_object_interpreter(object) == NULL;
}

/* mov $number,%eax; syscall; ret: it makes one call, and none that the agent has to be told of before. */
static bool is_fixed(const struct place *place)
{
	uint32_t number;

	if (place->at < 5 || place->code[place->at - 5] != 0xb8 || !stands_behind(place, "\xc3", 1))
		return false;
	memcpy(&number, place->code + place->at - 4, sizeof(number));
	return number != SYS_prctl && number != SYS_arch_prctl && number != SYS_seccomp;
}

/* The host makes calls in a thread's name by a `syscall; ret` (attach/process/remote.c): one of the
 * process stays. The loader is in each, but for static programs: there rather one at which no filter is
 * set (gt_hooks_call). */
static bool is_kept(struct finder *finder, const struct place *place)
{
	const struct gt_object *object = finder->plan->object;

	if (finder->kept || !stands_behind(place, "\xc3", 1) ||
	    !(gt_object_is_loader(object) || is_static_program(object)) ||
	    (finder->fixed && !is_fixed(place)))
		return false;
	finder->kept = true;
	return true;
}

static enum gt_plan_reason rules(struct finder *finder, const struct place *place)
{
	struct gt_plan *plan = finder->plan;
	enum gt_plan_reason reason;

	if (plan->object_never)
		return plan->object_reason;
	/* The loader's functions are not traced for what a call's record needs; here it is no call. */
	reason = gt_rule_never(plan->object, place->function);
	if (reason && reason != GT_REASON_LOADER)
		return reason;
	if (plan->object_reason == GT_REASON_NO_UNWINDER)
		return GT_REASON_CANCELS;
	if (is_restorer(place))
		return GT_REASON_SIGNAL_RETURN;
	if (is_compared(place))
		return GT_REASON_PLACE_COMPARED;
	if (is_without_stack(place))
		return GT_REASON_NO_STACK;
	if (is_kept(finder, place))
		return GT_REASON_OWN_CALLS;
	return gt_plan_is_code(plan, place->address) ? GT_REASON_NONE : GT_REASON_NO_INSTRUCTIONS;
}

static bool is_free(const struct gt_plan *plan, uint64_t address, uint64_t bytes)
{
	for (uint32_t i = 0; i < plan->hooked_count; i++) {
		const struct gt_plan_entry *hook = &plan->hooked[i];

		if (hook->patch_address < address + bytes &&
		    address < hook->patch_address + hook->covered_bytes)
			return false;
	}
	return !(gt_scan_marks_of(plan->scan, address, bytes) & GT_MARK_USED) &&
	       !gt_plan_is_taken(plan, address, bytes);
}

/* Whole instructions from offset `from` of the function on, the call among them, five bytes or more.
 * Behind a function that ends there its padding is used. */
static enum gt_plan_reason cover(const struct place *place, uint64_t from, uint64_t *covered,
				 bool *padded)
{
	const uint64_t start = place->function->address + from;
	const uint64_t until = place->at + SYSCALL_BYTES;
	bool ends = false;

	*padded = false;
	*covered = 0;
	while ((*covered < GT_JUMP_BYTES || from + *covered < until) && !ends) {
		struct gt_instruction instruction;
		const uint64_t at = from + *covered;

		if (!gt_instruction_decode(place->code + at, place->end - at,
					   place->function->address + at, &instruction) ||
		    instruction.kind == GT_INSTRUCTION_INT3 ||
		    instruction.kind == GT_INSTRUCTION_XBEGIN ||
		    instruction.kind == GT_INSTRUCTION_LOOP)
			return at < place->end ? GT_REASON_UNMOVABLE : GT_REASON_RUNS_ON;
		if (instruction.target_bytes &&
		    instruction.target - start <=
			    (until - from < GT_JUMP_BYTES ? GT_JUMP_BYTES : until - from))
			return GT_REASON_OWN_LOOP;
		*covered += instruction.bytes;
		ends = gt_instruction_ends(&instruction);
		if ((instruction.kind == GT_INSTRUCTION_CALL ||
		     instruction.kind == GT_INSTRUCTION_CALL_INDIRECT) &&
		    *covered < GT_JUMP_BYTES)
			return GT_REASON_CALL_INSIDE;
	}
	if (*covered >= GT_JUMP_BYTES)
		return *covered <= GT_PLAN_ORIGINAL_MAX ? GT_REASON_NONE : GT_REASON_RUNS_ON;
	/* An unwinder goes to where an exception is caught, and no mark is there: only what lies
	 * behind the function is surely reached by nobody. */
	if (from + *covered != place->end ||
	    gt_plan_padding_behind(place->plan, place->index) < GT_JUMP_BYTES - *covered ||
	    from + GT_JUMP_BYTES > place->room)
		return GT_REASON_NO_ROOM;
	*covered = GT_JUMP_BYTES;
	*padded = true;
	return GT_REASON_NONE;
}

static enum gt_plan_reason plan_from(struct place *place, uint64_t from)
{
	const uint64_t address = place->function->address + from, inside = place->at - from;
	struct gt_plan_entry *entry = place->entry;
	uint8_t moved[GT_PLAN_MOVED_MAX];
	enum gt_plan_reason reason;
	uint64_t covered;
	bool padded;
	int bytes;

	if (!gt_plan_on_one_page(address, GT_JUMP_BYTES))
		return GT_REASON_TWO_PAGES;
	if (place->room - from < GT_JUMP_BYTES)
		return GT_REASON_RUNS_ON;
	if (gt_scan_marks_of(place->plan->scan, address + 1,
			     inside < GT_JUMP_BYTES ? GT_JUMP_BYTES - 1 : inside) &
	    GT_MARK_TARGET)
		return GT_REASON_REACHED_INSIDE;
	reason = cover(place, from, &covered, &padded);
	if (reason)
		return reason;
	if (!is_free(place->plan, address, covered))
		return GT_REASON_BORROWED;
	entry->way = padded ? GT_PLAN_PADDING : GT_PLAN_MOVED;
	entry->patch_address = address;
	entry->patch_bytes = GT_JUMP_BYTES;
	entry->covered_bytes = (uint8_t)covered;
	entry->syscall = (uint8_t)(inside + 1);
	memcpy(entry->original, place->code + from, covered);
	bytes = gt_plan_move(place->plan, entry, 0, address + 4096, moved, sizeof(moved), NULL);
	if (bytes > 0) {
		entry->moved_bytes_max = (uint8_t)bytes;
		return GT_REASON_NONE;
	}
	entry->way = GT_PLAN_NONE;
	return GT_REASON_UNMOVABLE;
}

/* From the instruction on, or from one before it. */
static enum gt_plan_reason plan_place(struct place *place)
{
	const enum gt_plan_reason reason = plan_from(place, place->at);

	if (!reason)
		return reason;
	for (uint32_t i = 0; i < place->before_count; i++) {
		const uint64_t from = place->before[i];

		/* The function itself may be patched at its entry. */
		if (from > GT_ENDBR64_BYTES &&
		    gt_plan_is_code(place->plan, place->function->address + from) &&
		    !plan_from(place, from))
			return GT_REASON_NONE;
	}
	return reason;
}

static void add_place(struct finder *finder, struct place *place)
{
	struct gt_plan_entry *entry;
	enum gt_plan_reason reason;

	/* Of functions that lie in one another. */
	if (finder->count && finder->last == place->address)
		return;
	if (finder->count == finder->room) {
		const uint32_t room = finder->room ? finder->room * 2 : 64;
		void *grown = realloc(finder->entries, room * sizeof(*finder->entries));

		finder->no_memory = finder->no_memory || grown == NULL;
		if (grown == NULL)
			return;
		finder->entries = grown;
		finder->room = room;
	}
	finder->last = place->address;
	entry = &finder->entries[finder->count++];
	*entry =
		(struct gt_plan_entry){ .function = place->index, .patch_address = place->address };
	place->entry = entry;
	reason = rules(finder, place);
	if (!reason)
		reason = plan_place(place);
	entry->reason = (uint8_t)reason;
	if (!reason)
		gt_scan_use(finder->plan->scan, entry->patch_address, entry->covered_bytes);
}

/* Past an instruction. */
static void step(struct place *place, const struct gt_instruction *instruction)
{
	/* Not from one call over to the next. */
	if (instruction->kind != GT_INSTRUCTION_OTHER || instruction->stack ||
	    memcmp(place->code + place->at, syscall_bytes, SYSCALL_BYTES) == 0) {
		place->before_count = 0;
	} else {
		for (uint32_t i = BEFORE_MAX - 1; i > 0; i--)
			place->before[i] = place->before[i - 1];
		place->before[0] = place->at;
		if (place->before_count < BEFORE_MAX)
			place->before_count++;
	}
	place->at += instruction->bytes;
}

/* look: only whether there is one. */
static bool find_in(struct finder *finder, uint32_t index, bool look)
{
	struct gt_plan *plan = finder->plan;
	const struct gt_object_function *function = gt_object_function(plan->object, index);
	struct place place = { .plan = plan, .function = function, .index = index };
	struct gt_instruction instruction;
	bool found = false;

	if (function->flags & GT_FUNCTION_PLT)
		return false;
	place.code = gt_scan_code(plan->scan, function->address, &place.room);
	place.end = place.room < function->bytes ? place.room : function->bytes;
	if (place.code == NULL ||
	    memmem(place.code, place.end, syscall_bytes, SYSCALL_BYTES) == NULL)
		return false;
	while (place.at < place.end &&
	       gt_instruction_decode(place.code + place.at, place.end - place.at,
				     function->address + place.at, &instruction)) {
		if (instruction.bytes == SYSCALL_BYTES &&
		    memcmp(place.code + place.at, syscall_bytes, SYSCALL_BYTES) == 0) {
			found = true;
			finder->fixed = finder->fixed || is_fixed(&place);
			place.address = function->address + place.at;
			if (!look)
				add_place(finder, &place);
		}
		step(&place, &instruction);
	}
	return found;
}

int gt_plan_syscalls(struct gt_plan *plan, struct gt_plan_entry **entries, uint32_t *count,
		     struct gt_message *message)
{
	const uint32_t functions = gt_object_function_count(plan->object);
	const bool is_static = is_static_program(plan->object);
	struct finder finder = { .plan = plan };
	bool any = false;
	int error = 0;

	for (uint32_t i = 0; i < functions && !(any && (finder.fixed || !is_static)); i++)
		any = find_in(&finder, i, true) || any;
	if (any)
		error = gt_plan_prepare_places(plan, message);
	for (uint32_t i = 0; any && !error && i < functions; i++)
		find_in(&finder, i, false);
	if (!error && finder.no_memory)
		error = GT_ENOMEM;
	if (error) {
		free(finder.entries);
		finder.entries = NULL;
		finder.count = 0;
	}
	*entries = finder.entries;
	*count = finder.count;
	return error;
}
