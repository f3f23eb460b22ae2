/* SPDX-License-Identifier: MIT */
/*
 * Chooses the way for each function: what the compiler left, else moving its first instructions,
 * else borrowing the padding behind or near it. doc/design/patching.md argues why this is safe.
 */
#include "attach/plan.h"
#include "attach/rules.h"
#include "attach/scan.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define JUMP_BYTES  5
#define SHORT_BYTES 2
#define NO_ENTRY    UINT32_MAX

struct gt_plan {
	struct gt_object *object;
	struct gt_scan *scan;
	uint32_t *planned; /* by function: index in entries, NO_ENTRY: not planned yet */
	struct gt_plan_entry *entries;
	uint32_t entry_count;
	uint32_t entry_room;
	struct gt_plan_extra *extras;
	uint32_t extra_count;
	uint32_t extra_room;
	struct gt_rule_scratch scratch;
	int prepared; /* -1: not looked yet */
	bool no_memory;
};

/* One function while it is planned. */
struct work {
	struct gt_plan *plan;
	const struct gt_object_function *function;
	struct gt_plan_entry *entry;
	uint32_t index;
	bool quick;   /* for a hook: no marks, `reached` instead */
	bool reached; /* something leads into the bytes behind the first */
};

static const char no_room[] = "is shorter than a jump, and no padding is near it";
static const char reached_inside[] = "a jump leads into its first bytes";
static const char call_inside[] = "calls within its first bytes, and no padding is near it";
static const char own_loop[] = "its own loop begins at its first byte, and no padding is near it";
static const char no_code[] = "its first bytes are no instructions";
static const char unbounded[] = "its end is not known";

static const uint8_t endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };

static bool add_extra(struct work *work, const struct gt_plan_extra *extra)
{
	struct gt_plan *plan = work->plan;

	if (work->entry->extra_count == UINT8_MAX)
		return false;
	if (plan->extra_count == plan->extra_room) {
		const uint32_t room = plan->extra_room ? plan->extra_room * 2 : 64;
		struct gt_plan_extra *grown = realloc(plan->extras, room * sizeof(*grown));

		if (!grown) {
			plan->no_memory = true;
			return false;
		}
		plan->extras = grown;
		plan->extra_room = room;
	}
	plan->extras[plan->extra_count++] = *extra;
	work->entry->extra_count++;
	return true;
}

/* Takes back what was added for a way that did not work out. */
static void drop_extras(struct work *work)
{
	work->plan->extra_count -= work->entry->extra_count;
	work->entry->extra_count = 0;
}

/* ---- What the compiler left ---- */

/* Bytes of nops from the start: whole instructions, in `covered` those that a jump needs. */
static uint32_t nops_at(const uint8_t *code, uint64_t room, uint32_t *covered)
{
	struct gt_instruction instruction;
	uint32_t bytes = 0;

	*covered = 0;
	while (bytes < 256 && gt_decode(code + bytes, room - bytes, 0, &instruction) &&
	       instruction.kind == GT_INSTRUCTION_NOP) {
		bytes += instruction.bytes;
		if (bytes >= JUMP_BYTES && !*covered)
			*covered = bytes;
	}
	return bytes;
}

/* The quick first look: does the function begin with something that a compiler put there? */
static enum gt_plan_way prepared_way(struct gt_plan *plan, uint64_t address, const uint8_t *code,
				     uint64_t room, uint32_t *covered, uint32_t *body)
{
	struct gt_instruction instruction;

	if (room < JUMP_BYTES)
		return GT_PLAN_NONE;
	if (*code == 0x90 || *code == 0x0f || *code == 0x66) {
		const uint32_t bytes = nops_at(code, room, covered);

		*body = bytes;
		return *covered ? GT_PLAN_NOPS : GT_PLAN_NONE;
	}
	if (*code != 0xe8 && *code != 0xff && *code != 0x67)
		return GT_PLAN_NONE;
	if (!gt_scan_has(plan->scan, GT_SPECIAL_FENTRY) ||
	    !gt_decode(code, room, address, &instruction) ||
	    (instruction.kind != GT_INSTRUCTION_CALL &&
	     instruction.kind != GT_INSTRUCTION_CALL_INDIRECT) ||
	    gt_scan_special(plan->scan, &instruction) != GT_SPECIAL_FENTRY)
		return GT_PLAN_NONE;
	*covered = instruction.bytes;
	*body = instruction.bytes;
	return GT_PLAN_FENTRY;
}

/* Bytes from the address to the next function's first. */
static uint64_t bytes_to_next(const struct work *work, uint64_t address, uint64_t room)
{
	const struct gt_object *object = work->plan->object;
	const uint32_t next = work->index + 1;

	if (next >= gt_object_function_count(object))
		return room;
	const uint64_t start = gt_object_function(object, next)->address;
	return start - address < room ? start - address : room;
}

static bool plan_prepared(struct work *work)
{
	struct gt_plan_entry *entry = work->entry;
	uint64_t room;
	const uint8_t *code = gt_scan_code(work->plan->scan, entry->patch_address, &room);
	uint32_t covered = 0, body = 0;
	enum gt_plan_way way = GT_PLAN_NONE;

	if (code) {
		room = bytes_to_next(work, entry->patch_address, room);
		way = prepared_way(work->plan, entry->patch_address, code, room, &covered, &body);
	}
	/* Nothing but nops up to the next function: call frame information that starts in the
	 * padding before it (assembly that aligns behind .cfi_startproc). */
	if (way == GT_PLAN_NONE || covered > GT_PLAN_ORIGINAL_MAX || body >= room)
		return false;
	entry->way = (uint8_t)way;
	entry->prepared = way == GT_PLAN_NOPS ? GT_PREPARED_PATCHABLE : GT_PREPARED_FENTRY;
	entry->patch_bytes = JUMP_BYTES;
	entry->covered_bytes = (uint8_t)covered;
	entry->body = entry->patch_address + body;
	memcpy(entry->original, code, covered);
	return true;
}

/* Calls of mcount and __cyg_profile_* in the function, once it is known how it is patched. */
static void neutralise(struct work *work)
{
	static const uint8_t nops[2][6] = { { 0x0f, 0x1f, 0x44, 0x00, 0x00 },
					    { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 } };
	struct gt_plan_entry *entry = work->entry;
	const struct gt_object_function *function = work->function;
	const struct gt_special_site *sites;
	const uint32_t count = gt_scan_sites(work->plan->scan, function->address,
					     function->address + function->bytes, &sites);
	uint32_t i;

	for (i = 0; i < count; i++) {
		const struct gt_special_site *site = &sites[i];
		struct gt_plan_extra extra = { .address = site->address, .bytes = site->bytes };
		const uint64_t offset = site->address - entry->patch_address;
		const uint8_t *code;
		uint64_t room;

		if (!site->call ||
		    (site->special != GT_SPECIAL_MCOUNT && site->special != GT_SPECIAL_CYG_ENTER &&
		     site->special != GT_SPECIAL_CYG_EXIT))
			continue;
		if (site->address >= entry->patch_address && offset < entry->covered_bytes) {
			entry->neutral = (uint8_t)(offset + 1);
			continue;
		}
		code = gt_scan_code(work->plan->scan, site->address, &room);
		if (!code || site->bytes < 5 || site->bytes > 6 || room < site->bytes)
			continue;
		memcpy(extra.original, code, site->bytes);
		memcpy(extra.replacement, nops[site->bytes - 5], site->bytes);
		/* Without room for one more it stays a call, which does no harm. */
		if (!add_extra(work, &extra))
			return;
	}
}

static enum gt_plan_prepared prepared_by_calls(struct work *work)
{
	const struct gt_object_function *function = work->function;
	const struct gt_special_site *sites;
	const uint32_t count = gt_scan_sites(work->plan->scan, function->address,
					     function->address + function->bytes, &sites);
	enum gt_plan_prepared prepared = GT_PREPARED_NONE;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (!sites[i].call)
			continue;
		if (sites[i].special == GT_SPECIAL_MCOUNT)
			return GT_PREPARED_MCOUNT;
		if (sites[i].special == GT_SPECIAL_CYG_ENTER)
			prepared = GT_PREPARED_CYG;
	}
	return prepared;
}

/* ---- Padding ---- */

/* Whether nothing runs on behind the function's last instruction. */
static bool ends_for_good(struct gt_plan *plan, const struct gt_object_function *function)
{
	uint64_t room;
	const uint8_t *code = gt_scan_code(plan->scan, function->address, &room);
	struct gt_instruction instruction = { .kind = GT_INSTRUCTION_OTHER };
	uint32_t at = 0;

	if (!code || room < function->bytes)
		return false;
	while (at < function->bytes) {
		if (!gt_decode(code + at, function->bytes - at, function->address + at,
			       &instruction))
			return false;
		at += instruction.bytes;
	}
	/* Behind a call that never returns there is nothing either: a call is never the last
	 * instruction of a function that goes on into the next. */
	return gt_instruction_ends(&instruction) || instruction.kind == GT_INSTRUCTION_CALL ||
	       instruction.kind == GT_INSTRUCTION_INT3;
}

/* How many bytes of padding begin here: nops, int3, or nothing but zeroes up to `limit`. */
static uint64_t padding_at(struct gt_plan *plan, uint64_t address, uint64_t limit)
{
	uint64_t room, bytes = 0;
	const uint8_t *code = gt_scan_code(plan->scan, address, &room);
	struct gt_instruction instruction;

	if (!code)
		return 0;
	if (limit - address < room)
		room = limit - address;
	while (bytes < room && code[bytes] == 0)
		bytes++;
	if (bytes == room)
		return bytes;
	bytes = 0;
	while (bytes < room &&
	       gt_decode(code + bytes, room - bytes, address + bytes, &instruction) &&
	       (instruction.kind == GT_INSTRUCTION_NOP || instruction.kind == GT_INSTRUCTION_INT3))
		bytes += instruction.bytes;
	return bytes;
}

/* The gap behind the function `index`, NULL-function: none. Returns its padding. */
static uint64_t gap_behind(struct gt_plan *plan, uint32_t index, uint64_t *start)
{
	const struct gt_object_function *function = gt_object_function(plan->object, index);
	const struct gt_object_function *next = gt_object_function(plan->object, index + 1);

	*start = function->address + function->bytes;
	return padding_at(plan, *start, next ? next->address : *start + 64);
}

/* Five free bytes of padding that a short jump, which ends at `from`, reaches. 0: none. */
static uint64_t find_padding(struct work *work, uint64_t from)
{
	struct gt_plan *plan = work->plan;
	const uint32_t count = gt_object_function_count(plan->object);
	uint32_t low = work->index, high;

	while (low > 0 && gt_object_function(plan->object, low - 1)->address + 160 > from)
		low--;
	low = low > 0 ? low - 1 : 0;
	for (high = low; high < count; high++) {
		const struct gt_object_function *function = gt_object_function(plan->object, high);
		uint64_t at, start, bytes;

		if (function->address > from + 127)
			break;
		if (!(function->flags & GT_FUNCTION_SIZED))
			continue;
		bytes = gap_behind(plan, high, &start);
		if (bytes < JUMP_BYTES || start > from + 127 || start + bytes + 128 < from ||
		    !ends_for_good(plan, function))
			continue;
		for (at = start; at + JUMP_BYTES <= start + bytes; at++) {
			const int64_t distance = (int64_t)(at - from);

			if (distance < INT8_MIN || distance > INT8_MAX)
				continue;
			if (!(gt_scan_marks_of(plan->scan, at, JUMP_BYTES) &
			      (GT_MARK_TARGET | GT_MARK_USED)))
				return at;
		}
	}
	return 0;
}

static bool take_padding(struct work *work, uint64_t address, enum gt_plan_extra_kind kind)
{
	struct gt_plan_extra extra = { .address = address,
				       .kind = (uint8_t)kind,
				       .bytes = JUMP_BYTES };
	uint64_t room;
	const uint8_t *code = gt_scan_code(work->plan->scan, address, &room);

	if (!code || room < JUMP_BYTES)
		return false;
	memcpy(extra.original, code, JUMP_BYTES);
	if (!add_extra(work, &extra))
		return false;
	gt_scan_use(work->plan->scan, address, JUMP_BYTES);
	return true;
}

/* ---- Moving ---- */

/* What stands in the first bytes. */
struct cover {
	uint32_t bytes;	    /* whole instructions, at least what was asked for unless `reason` */
	bool runs_out;	    /* the function ends before */
	bool ends;	    /* the last one does not go on */
	bool calls;	    /* a call would return into the replaced bytes */
	const char *reason; /* it cannot be moved */
};

static void cover_bytes(struct work *work, const uint8_t *code, uint64_t room, uint32_t need,
			struct cover *cover)
{
	const struct gt_plan_entry *entry = work->entry;
	const uint64_t end = work->function->address + work->function->bytes;
	const uint64_t limit =
		end - entry->patch_address < room ? end - entry->patch_address : room;

	memset(cover, 0, sizeof(*cover));
	while (cover->bytes < need && !cover->ends) {
		struct gt_instruction instruction;
		const uint64_t at = entry->patch_address + cover->bytes;

		if (cover->bytes >= limit) {
			cover->runs_out = true;
			return;
		}
		if (!gt_decode(code + cover->bytes, room - cover->bytes, at, &instruction) ||
		    instruction.kind == GT_INSTRUCTION_INT3 ||
		    (instruction.kind == GT_INSTRUCTION_XBEGIN && instruction.target_bytes != 4)) {
			cover->reason = no_code;
			return;
		}
		cover->bytes += instruction.bytes;
		if (cover->bytes > limit && work->function->flags & GT_FUNCTION_SIZED) {
			cover->reason = no_code;
			return;
		}
		cover->ends = gt_instruction_ends(&instruction);
		if ((instruction.kind == GT_INSTRUCTION_CALL ||
		     instruction.kind == GT_INSTRUCTION_CALL_INDIRECT) &&
		    cover->bytes < need)
			cover->calls = true;
	}
}

/* Whether the `need` bytes at the patch may be replaced. */
static const char *check_marks(struct work *work, uint32_t need)
{
	uint8_t marks;

	if (work->quick)
		return work->reached ? reached_inside : NULL;
	marks = gt_scan_marks_of(work->plan->scan, work->entry->patch_address + 1, need - 1);
	return marks & (GT_MARK_TARGET | GT_MARK_USED) ? reached_inside : NULL;
}

/*
 * The function's jumps to its own start must not count as calls: they go to the moved code. Those
 * among the moved instructions do so anyway.
 */
static const char *redirect_own_jumps(struct work *work)
{
	struct gt_plan_entry *entry = work->entry;
	const struct gt_object_function *function = work->function;
	const struct gt_own_jump *jumps;
	const uint32_t count = gt_scan_own_jumps(work->plan->scan, function->address,
						 function->address + function->bytes, &jumps);
	uint64_t padding = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		const struct gt_own_jump *jump = &jumps[i];
		struct gt_plan_extra extra = { .address = jump->address, .bytes = jump->bytes };
		const uint64_t next = jump->address + jump->bytes;
		const uint8_t *code;
		uint64_t room;

		if (jump->address >= entry->patch_address &&
		    jump->address - entry->patch_address < entry->covered_bytes)
			continue;
		code = gt_scan_code(work->plan->scan, jump->address, &room);
		if (!code || room < jump->bytes || jump->bytes > sizeof(extra.original))
			return own_loop;
		memcpy(extra.original, code, jump->bytes);
		memcpy(extra.replacement, code, jump->bytes);
		if (jump->target_bytes == 4 && jump->target_offset + 4 == jump->bytes) {
			extra.kind = GT_EXTRA_BRANCH;
		} else if (jump->target_bytes == 1) {
			const int64_t distance = (int64_t)(padding - next);

			if (!padding || distance < INT8_MIN || distance > INT8_MAX) {
				padding = find_padding(work, next);
				if (!padding || !take_padding(work, padding, GT_EXTRA_JUMP))
					return own_loop;
			}
			extra.kind = GT_EXTRA_BYTES;
			extra.replacement[jump->target_offset] = (uint8_t)(padding - next);
		} else {
			return own_loop;
		}
		if (!add_extra(work, &extra))
			return own_loop;
	}
	return NULL;
}

/* Sets the entry for moving `covered` bytes, of which patch_bytes are replaced. */
static const char *settle(struct work *work, enum gt_plan_way way, uint32_t patch_bytes,
			  uint32_t covered, const uint8_t *code)
{
	struct gt_plan_entry *entry = work->entry;
	uint8_t moved[GT_PLAN_MOVED_MAX];
	int bytes;

	entry->way = (uint8_t)way;
	entry->patch_bytes = (uint8_t)patch_bytes;
	entry->covered_bytes = (uint8_t)covered;
	memcpy(entry->original, code, covered);
	/* Addresses as in a process, where the longer forms are needed. */
	bytes = gt_plan_move(entry, 0x7f0000000000ull + entry->patch_address,
			     0x7f0000000000ull + entry->patch_address + 4096, moved, sizeof(moved),
			     NULL);
	if (bytes < 0)
		return "its first instructions cannot be moved";
	entry->moved_bytes_max = (uint8_t)bytes;
	return redirect_own_jumps(work);
}

/* A short jump at the entry, and the jump to the stub in padding nearby. */
static const char *plan_short(struct work *work, const uint8_t *code, uint64_t room,
			      const char *why)
{
	struct gt_plan_entry *entry = work->entry;
	struct cover cover;
	uint64_t padding;

	if (work->quick)
		return why;
	cover_bytes(work, code, room, SHORT_BYTES, &cover);
	if (cover.reason || cover.calls || cover.bytes < SHORT_BYTES ||
	    cover.bytes > GT_PLAN_ORIGINAL_MAX || check_marks(work, SHORT_BYTES))
		return why;
	padding = find_padding(work, entry->patch_address + SHORT_BYTES);
	if (!padding || !take_padding(work, padding, GT_EXTRA_STUB))
		return why;
	if (settle(work, GT_PLAN_SHORT, SHORT_BYTES, cover.bytes, code))
		return why;
	return NULL;
}

static const char *plan_moved_here(struct work *work)
{
	struct gt_plan_entry *entry = work->entry;
	const struct gt_object_function *function = work->function;
	struct cover cover;
	uint64_t room, gap;
	const uint8_t *code = gt_scan_code(work->plan->scan, entry->patch_address, &room);
	const char *reason;

	if (!code || entry->patch_address >= function->address + function->bytes)
		return no_room;
	cover_bytes(work, code, room, JUMP_BYTES, &cover);
	if (cover.reason)
		return cover.reason;
	if (cover.bytes >= JUMP_BYTES) {
		/* Without known bounds a jump over the end would not be seen. */
		reason = check_marks(work, JUMP_BYTES);
		if (!reason && !cover.calls && cover.bytes <= GT_PLAN_ORIGINAL_MAX)
			return settle(work, GT_PLAN_MOVED, JUMP_BYTES, cover.bytes, code);
		return plan_short(work, code, room, reason ? reason : call_inside);
	}
	if (!(function->flags & GT_FUNCTION_SIZED))
		return unbounded;
	if (!cover.ends)
		return "goes on into the next function within its first bytes";
	/* The rest of the five bytes: dead code of the function itself, then padding. */
	gap = function->address + function->bytes;
	if (gap < entry->patch_address + JUMP_BYTES) {
		const uint64_t padding = gap_behind(work->plan, work->index, &gap);

		if (gap + padding < entry->patch_address + JUMP_BYTES)
			return plan_short(work, code, room, no_room);
		reason = check_marks(work, JUMP_BYTES);
		if (reason)
			return plan_short(work, code, room, reason);
		reason = settle(work, GT_PLAN_PADDING, JUMP_BYTES, JUMP_BYTES, code);
	} else {
		reason = check_marks(work, JUMP_BYTES);
		if (reason)
			return plan_short(work, code, room, reason);
		reason = settle(work, GT_PLAN_MOVED, JUMP_BYTES, JUMP_BYTES, code);
	}
	if (!reason && gap < entry->patch_address + JUMP_BYTES)
		gt_scan_use(work->plan->scan, gap, entry->patch_address + JUMP_BYTES - gap);
	return reason;
}

/* Behind endbr64 where that is possible, else on it. */
static const char *plan_moved(struct work *work)
{
	struct gt_plan_entry *entry = work->entry;
	const char *reason = plan_moved_here(work);

	if (reason && entry->patch_address != entry->address) {
		drop_extras(work);
		entry->patch_address = entry->address;
		if (!plan_moved_here(work))
			return NULL;
		entry->patch_address = entry->address + sizeof(endbr64);
	}
	if (reason) {
		drop_extras(work);
		entry->way = GT_PLAN_NONE;
	}
	return reason;
}

/*
 * A piece without a name that only its own function enters: nothing calls it or has its address,
 * and it begins in the middle of a frame, or conditional jumps lead to it.
 */
static bool is_cold_part(struct work *work)
{
	const struct gt_object_function *function = work->function;
	const uint8_t marks = gt_scan_marks(work->plan->scan, function->address);

	return !(function->flags & GT_FUNCTION_SYMBOL) &&
	       !(marks & (GT_MARK_CALLED | GT_MARK_POINTED)) &&
	       (!(function->flags & GT_FUNCTION_FRAME_CFA8) || marks & GT_MARK_COND);
}

static int plan_entry(struct work *work, struct gt_message *message)
{
	struct gt_plan_entry *entry = work->entry;
	struct gt_plan *plan = work->plan;
	const struct gt_object_function *function = work->function;
	const uint8_t *code;
	uint64_t room;
	const char *reason;
	int error;

	entry->function = work->index;
	entry->address = function->address;
	entry->patch_address = function->address;
	entry->extra_first = plan->extra_count;
	entry->reason = "";
	code = gt_scan_code(plan->scan, function->address, &room);
	if (!code) {
		entry->reason = "is in no section of code";
		return 0;
	}
	if (room > sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
		entry->patch_address += sizeof(endbr64);
	if (!work->quick) {
		reason = gt_rule_never(plan->object, function);
		if (reason) {
			entry->reason = reason;
			return 0;
		}
		if (gt_scan_has(plan->scan, GT_SPECIAL_MCOUNT) ||
		    gt_scan_has(plan->scan, GT_SPECIAL_CYG_ENTER)) {
			error = gt_scan_all(plan->scan, message);
			if (error)
				return error;
		}
	}
	if (!plan_prepared(work)) {
		if (!work->quick) {
			error = gt_scan_all(plan->scan, message);
			if (error)
				return error;
			if (is_cold_part(work)) {
				entry->reason = "is a part of another function";
				return 0;
			}
			entry->prepared = (uint8_t)prepared_by_calls(work);
		}
		reason = plan_moved(work);
		if (reason) {
			entry->reason = reason;
			return 0;
		}
	}
	neutralise(work);
	if (work->quick)
		return 0;
	reason = gt_rule_entry_only(function);
	if (!reason)
		reason = gt_rule_code(plan->scan, function, entry->prepared == GT_PREPARED_CYG,
				      &plan->scratch);
	if (reason) {
		entry->entry_only = true;
		entry->reason = reason;
	}
	return 0;
}

/* ---- The plan as a whole ---- */

int gt_plan_create(struct gt_object *object, struct gt_plan **plan, struct gt_message *message)
{
	struct gt_plan *created = calloc(1, sizeof(*created));
	const uint32_t count = gt_object_function_count(object);
	int error = GT_ENOMEM;

	*plan = NULL;
	if (!created)
		goto no_memory;
	created->object = object;
	created->prepared = -1;
	created->planned = malloc((count + 1ul) * sizeof(*created->planned));
	if (!created->planned)
		goto no_memory;
	memset(created->planned, 0xff, (count + 1ul) * sizeof(*created->planned));
	error = gt_scan_create(object, &created->scan, message);
	if (error) {
		gt_plan_destroy(created);
		return error;
	}
	*plan = created;
	return 0;

no_memory:
	gt_plan_destroy(created);
	if (message)
		strcpy(message->text, "no memory for the patch plan");
	return error;
}

void gt_plan_destroy(struct gt_plan *plan)
{
	if (!plan)
		return;
	gt_scan_destroy(plan->scan);
	free(plan->planned);
	free(plan->entries);
	free(plan->extras);
	free(plan->scratch.depths);
	free(plan);
}

static int plan_function(struct gt_plan *plan, uint32_t index, bool quick, bool reached,
			 struct gt_plan_entry *entry, struct gt_message *message)
{
	struct gt_plan_entry made;
	struct work work = { .plan = plan,
			     .function = gt_object_function(plan->object, index),
			     .entry = &made,
			     .index = index,
			     .quick = quick,
			     .reached = reached };
	int error;

	memset(&made, 0, sizeof(made));
	error = plan_entry(&work, message);
	if (!error && plan->no_memory) {
		error = GT_ENOMEM;
		if (message)
			strcpy(message->text, "no memory for the patch plan");
	}
	if (error)
		return error;
	*entry = made;
	return 0;
}

int gt_plan_function(struct gt_plan *plan, uint32_t index, struct gt_plan_entry *entry,
		     struct gt_message *message)
{
	int error;

	if (index >= gt_object_function_count(plan->object))
		return GT_EINVAL;
	if (plan->planned[index] != NO_ENTRY) {
		*entry = plan->entries[plan->planned[index]];
		return 0;
	}
	error = plan_function(plan, index, false, false, entry, message);
	if (error)
		return error;
	/* Kept: padding is taken once only, and asking twice must give the same answer. */
	if (plan->entry_count == plan->entry_room) {
		const uint32_t room = plan->entry_room ? plan->entry_room * 2 : 256;
		struct gt_plan_entry *grown = realloc(plan->entries, room * sizeof(*grown));

		if (!grown) {
			if (message)
				strcpy(message->text, "no memory for the patch plan");
			return GT_ENOMEM;
		}
		plan->entries = grown;
		plan->entry_room = room;
	}
	plan->planned[index] = plan->entry_count;
	plan->entries[plan->entry_count++] = *entry;
	return 0;
}

int gt_plan_hooks(struct gt_plan *plan, const uint64_t *addresses, uint32_t count,
		  struct gt_plan_entry *entries, struct gt_message *message)
{
	uint64_t *patches = calloc(count + 1ul, sizeof(*patches));
	bool *reached = calloc(count + 1ul, sizeof(*reached));
	uint32_t i, index;
	int error = GT_ENOMEM;

	if (!patches || !reached) {
		if (message)
			strcpy(message->text, "no memory for the patch plan");
		goto done;
	}
	for (i = 0; i < count; i++) {
		uint64_t room;
		const uint8_t *code = gt_scan_code(plan->scan, addresses[i], &room);
		const bool marked = code && room > sizeof(endbr64) &&
				    memcmp(code, endbr64, sizeof(endbr64)) == 0;

		patches[i] = addresses[i] + (marked ? sizeof(endbr64) : 0);
	}
	error = gt_scan_some(plan->scan, patches, count, reached, message);
	for (i = 0; !error && i < count; i++) {
		if (gt_object_function_at(plan->object, addresses[i], &index) ||
		    gt_object_function(plan->object, index)->address != addresses[i]) {
			memset(&entries[i], 0, sizeof(entries[i]));
			entries[i].address = addresses[i];
			entries[i].reason = "is no function that is known here";
			continue;
		}
		error = plan_function(plan, index, true, reached[i], &entries[i], message);
	}

done:
	free(patches);
	free(reached);
	return error;
}

bool gt_plan_is_prepared(struct gt_plan *plan)
{
	const struct gt_object_section *section =
		gt_object_section_named(plan->object, "__patchable_function_entries");
	const uint32_t count = gt_object_function_count(plan->object);
	uint32_t i, covered, body;

	if (plan->prepared >= 0)
		return plan->prepared;
	plan->prepared =
		(section && section->bytes) ||
		/* The C library has these functions, but does not call them. */
		(!gt_rule_is_libc(plan->object) && (gt_scan_has(plan->scan, GT_SPECIAL_FENTRY) ||
						    gt_scan_has(plan->scan, GT_SPECIAL_MCOUNT) ||
						    gt_scan_has(plan->scan, GT_SPECIAL_CYG_ENTER)));
	for (i = 0; i < count && !plan->prepared; i++) {
		const struct gt_object_function *function = gt_object_function(plan->object, i);
		uint64_t address = function->address, room;
		const uint8_t *code = gt_scan_code(plan->scan, address, &room);

		if (!code || gt_rule_never(plan->object, function))
			continue;
		if (room > sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0) {
			code += sizeof(endbr64);
			address += sizeof(endbr64);
			room -= sizeof(endbr64);
		}
		plan->prepared =
			prepared_way(plan, address, code, room, &covered, &body) != GT_PLAN_NONE;
	}
	return plan->prepared;
}

const struct gt_plan_extra *gt_plan_extra(const struct gt_plan *plan,
					  const struct gt_plan_entry *entry, uint32_t index)
{
	return index < entry->extra_count ? &plan->extras[entry->extra_first + index] : NULL;
}

const char *gt_plan_way_name(enum gt_plan_way way)
{
	static const char *const names[] = {
		"none", "nops", "fentry", "moved", "padding", "short"
	};

	return way < sizeof(names) / sizeof(*names) ? names[way] : "?";
}

const char *gt_plan_prepared_name(enum gt_plan_prepared prepared)
{
	static const char *const names[] = { "none", "patchable", "fentry", "mcount", "cyg" };

	return prepared < sizeof(names) / sizeof(*names) ? names[prepared] : "?";
}
