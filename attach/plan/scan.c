/* SPDX-License-Identifier: MIT */
/*
 * Decodes every instruction of an object once, from function to function, and looks through its
 * data and relocations. One byte of marks for each byte of code.
 */
#include "attach/plan/scan.h"
#include "core/trace/message.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_ENTRIES_MAX 65536u
#define TABLE_ENTRIES_MIN 3u /* no compiler makes a smaller one; constants look like one or two */

/* A piece of code: an executable section, or segment where there are no sections. */
struct range {
	uint64_t start;
	uint64_t end;
	const uint8_t *code;
	uint8_t *marks; /* NULL until gt_scan_all */
};

/* Where the dynamic loader stores a special function's address, or where the function is. */
struct slot {
	uint64_t address;
	uint8_t special;
};

struct list {
	void *items;
	uint32_t count;
	uint32_t room;
};

struct gt_scan {
	struct gt_object *object;
	struct range *ranges; /* sorted */
	uint32_t range_count;
	struct list slots;     /* struct slot: of the global offset table */
	struct list functions; /* struct slot: the functions themselves */
	struct list sites;     /* struct gt_special_site */
	struct list inward;    /* struct gt_inward_jump */
	struct list tables;    /* uint64_t: addresses outside of code that lea takes */
	struct list used;      /* uint64_t: bytes of padding that patches have taken */
	bool has[GT_SPECIAL_CALLER + 1];
	bool complete;
	bool no_memory;
};

static bool push(struct gt_scan *scan, struct list *list, const void *item, size_t bytes)
{
	if (list->count == list->room) {
		const uint32_t room = list->room ? list->room * 2 : 64;
		void *grown = realloc(list->items, room * bytes);

		if (!grown) {
			scan->no_memory = true;
			return false;
		}
		list->items = grown;
		list->room = room;
	}
	memcpy((char *)list->items + list->count++ * bytes, item, bytes);
	return true;
}

static enum gt_special special_of_name(const char *name)
{
	static const struct {
		const char *name;
		enum gt_special special;
	} names[] = {
		{ "mcount", GT_SPECIAL_MCOUNT },
		{ "_mcount", GT_SPECIAL_MCOUNT },
		{ "__mcount", GT_SPECIAL_MCOUNT },
		{ "__fentry__", GT_SPECIAL_FENTRY },
		{ "__cyg_profile_func_enter", GT_SPECIAL_CYG_ENTER },
		{ "__cyg_profile_func_exit", GT_SPECIAL_CYG_EXIT },
		{ "__tsan_func_entry", GT_SPECIAL_TSAN },
		{ "setjmp", GT_SPECIAL_TWICE },
		{ "_setjmp", GT_SPECIAL_TWICE },
		{ "__setjmp", GT_SPECIAL_TWICE },
		{ "sigsetjmp", GT_SPECIAL_TWICE },
		{ "__sigsetjmp", GT_SPECIAL_TWICE },
		{ "vfork", GT_SPECIAL_TWICE },
		{ "__vfork", GT_SPECIAL_TWICE },
		{ "getcontext", GT_SPECIAL_TWICE },
		{ "dlsym", GT_SPECIAL_CALLER },
		{ "dlvsym", GT_SPECIAL_CALLER },
		{ "dlopen", GT_SPECIAL_CALLER },
		{ "dlmopen", GT_SPECIAL_CALLER },
	};

	if (name[0] == '_' && name[1] == 'Z')
		return GT_SPECIAL_NONE;
	if (*name != '_' && *name != 'm' && *name != 's' && *name != 'v' && *name != 'g' &&
	    *name != 'd')
		return GT_SPECIAL_NONE;
	for (uint32_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i].name) == 0)
			return names[i].special;
	return GT_SPECIAL_NONE;
}

static int take_slot(void *data, const struct gt_object_relocation *relocation)
{
	struct gt_scan *scan = data;
	struct slot slot = { .address = relocation->address };

	if (!*relocation->name ||
	    (relocation->type != R_X86_64_GLOB_DAT && relocation->type != R_X86_64_JUMP_SLOT &&
	     relocation->type != R_X86_64_64))
		return 0;
	slot.special = (uint8_t)special_of_name(relocation->name);
	if (slot.special == GT_SPECIAL_NONE)
		return 0;
	scan->has[slot.special] = true;
	return push(scan, &scan->slots, &slot, sizeof(slot)) ? 0 : GT_ENOMEM;
}

/* `ret` and nothing else, also behind endbr64: the C library's empty __cyg_profile_func_enter. */
static bool is_empty(struct gt_object *object, uint64_t address)
{
	const uint8_t *code = gt_object_bytes(object, address, 1);
	const uint8_t *more = gt_object_bytes(object, address, 5);

	return (code && *code == 0xc3) || (more && memcmp(more, "\xf3\x0f\x1e\xfa\xc3", 5) == 0);
}

static int take_function(void *data, const struct gt_object_symbol *symbol)
{
	struct gt_scan *scan = data;
	struct slot slot = { .address = symbol->address };

	if (!symbol->address)
		return 0;
	slot.special = (uint8_t)special_of_name(symbol->name);
	if (slot.special == GT_SPECIAL_NONE)
		return 0;
	/* The object's own instrumentation is the program's business. */
	if ((slot.special == GT_SPECIAL_CYG_ENTER || slot.special == GT_SPECIAL_CYG_EXIT) &&
	    !is_empty(scan->object, symbol->address))
		return 0;
	scan->has[slot.special] = true;
	return push(scan, &scan->functions, &slot, sizeof(slot)) ? 0 : GT_ENOMEM;
}

static int add_range(struct gt_scan *scan, uint64_t start, uint64_t bytes)
{
	struct range *grown;
	const uint8_t *code = bytes ? gt_object_bytes(scan->object, start, bytes) : NULL;

	if (!code)
		return 0;
	grown = realloc(scan->ranges, (scan->range_count + 1) * sizeof(*grown));
	if (!grown)
		return GT_ENOMEM;
	scan->ranges = grown;
	/* Sections of one file may stand in any order, and overlap in a broken one. */
	for (uint32_t i = 0; i < scan->range_count; i++)
		if (start < grown[i].end && grown[i].start < start + bytes)
			return 0;
	grown[scan->range_count++] = (struct range){ start, start + bytes, code, NULL };
	return 0;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

int gt_scan_create(struct gt_object *object, struct gt_scan **scan, struct gt_message *message)
{
	struct gt_scan *created = calloc(1, sizeof(*created));
	int error = GT_ENOMEM;

	*scan = NULL;
	if (!created)
		goto no_memory;
	created->object = object;
	for (uint32_t i = 0; i < gt_object_section_count(object); i++) {
		const struct gt_object_section *section = gt_object_section(object, i);

		if (section->execute && add_range(created, section->address, section->bytes))
			goto no_memory;
	}
	if (!created->range_count)
		for (uint32_t i = 0; i < gt_object_segment_count(object); i++) {
			const struct gt_object_segment *segment = gt_object_segment(object, i);

			if (segment->execute &&
			    add_range(created, segment->address, segment->file_bytes))
				goto no_memory;
		}
	if (created->range_count)
		qsort(created->ranges, created->range_count, sizeof(*created->ranges),
		      compare_ranges);
	if (gt_object_each_relocation(object, take_slot, created) ||
	    gt_object_each_symbol(object, take_function, created))
		goto no_memory;
	if (created->slots.count)
		qsort(created->slots.items, created->slots.count, sizeof(struct slot),
		      compare_slots);
	if (created->functions.count)
		qsort(created->functions.items, created->functions.count, sizeof(struct slot),
		      compare_slots);
	*scan = created;
	return 0;

no_memory:
	gt_scan_destroy(created);
	return gt_fail(message, error, "no memory to look through the code");
}

void gt_scan_destroy(struct gt_scan *scan)
{
	if (!scan)
		return;
	for (uint32_t i = 0; i < scan->range_count; i++)
		free(scan->ranges[i].marks);
	free(scan->ranges);
	free(scan->slots.items);
	free(scan->functions.items);
	free(scan->sites.items);
	free(scan->inward.items);
	free(scan->tables.items);
	free(scan->used.items);
	free(scan);
}

const struct gt_object *gt_scan_object(const struct gt_scan *scan)
{
	return scan->object;
}

bool gt_scan_is_complete(const struct gt_scan *scan)
{
	return scan->complete;
}

static struct range *range_at(const struct gt_scan *scan, uint64_t address)
{
	uint32_t low = 0, high = scan->range_count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (scan->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < scan->range_count && address >= scan->ranges[low].start ? &scan->ranges[low]
									     : NULL;
}

uint64_t gt_scan_code_bytes(const struct gt_scan *scan)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < scan->range_count; i++)
		bytes += scan->ranges[i].end - scan->ranges[i].start;
	return bytes;
}

const uint8_t *gt_scan_code(struct gt_scan *scan, uint64_t address, uint64_t *room)
{
	const struct range *range = range_at(scan, address);

	*room = range ? range->end - address : 0;
	return range ? range->code + (address - range->start) : NULL;
}

static enum gt_special find_slot(const struct list *list, uint64_t address)
{
	const struct slot key = { .address = address };
	const struct slot *found =
		list->count ? bsearch(&key, list->items, list->count, sizeof(key), compare_slots)
			    : NULL;

	return found ? (enum gt_special)found->special : GT_SPECIAL_NONE;
}

enum gt_special gt_scan_special(struct gt_scan *scan, const struct gt_instruction *instruction)
{
	uint64_t target = instruction->target;
	const uint8_t *code;
	uint64_t room;
	uint32_t displacement;

	if (!scan->slots.count && !scan->functions.count)
		return GT_SPECIAL_NONE;
	if (instruction->rip_offset)
		return find_slot(&scan->slots, instruction->rip_target);
	if (!instruction->target_bytes)
		return GT_SPECIAL_NONE;
	if (scan->functions.count) {
		const enum gt_special special = find_slot(&scan->functions, target);

		if (special)
			return special;
	}
	/* A linkage stub: [endbr64] [bnd] jmp *slot(%rip) */
	code = scan->slots.count ? gt_scan_code(scan, target, &room) : NULL;
	if (!code || room < 11)
		return GT_SPECIAL_NONE;
	if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0) {
		code += 4;
		target += 4;
	}
	if (*code == 0xf2) {
		code++;
		target++;
	}
	if (code[0] != 0xff || code[1] != 0x25)
		return GT_SPECIAL_NONE;
	memcpy(&displacement, code + 2, 4);
	return find_slot(&scan->slots, target + 6 + (uint64_t)(int64_t)(int32_t)displacement);
}

bool gt_scan_has(const struct gt_scan *scan, enum gt_special special)
{
	return scan->has[special];
}

static void mark(struct gt_scan *scan, uint64_t address, uint8_t marks)
{
	struct range *range = range_at(scan, address);

	if (range && range->marks)
		range->marks[address - range->start] |= marks;
}

/* The last function that begins at or before the address. NULL: none. */
static const struct gt_object_function *function_before(const struct gt_object *object,
							uint64_t address)
{
	uint32_t low = 0, high = gt_object_function_count(object);

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (gt_object_function(object, middle)->address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? gt_object_function(object, low - 1) : NULL;
}

/* The function that is being decoded: [start, end), 0 none. */
struct current {
	uint64_t start;
	uint64_t end;
};

static void note_inward(struct gt_scan *scan, const struct current *current, uint64_t address,
			const struct gt_instruction *instruction, bool inside)
{
	const uint64_t target = instruction->target;
	const struct gt_inward_jump jump = { target,
					     address,
					     instruction->bytes,
					     instruction->target_offset,
					     instruction->target_bytes,
					     inside };
	uint64_t start = current->start;

	if (!inside) {
		const struct gt_object_function *function = function_before(scan->object, target);

		/* To its first byte is a call in tail position. */
		if (!function || function->address == target)
			return;
		start = function->address;
	}
	if (target - start < GT_INWARD_BYTES)
		push(scan, &scan->inward, &jump, sizeof(jump));
}

static void note_branch(struct gt_scan *scan, const struct current *current, uint64_t address,
			const struct gt_instruction *instruction)
{
	const bool inside =
		instruction->target >= current->start && instruction->target < current->end;
	uint8_t marks;

	if (instruction->kind == GT_INSTRUCTION_CALL)
		marks = GT_MARK_CALLED;
	else if (inside)
		marks = GT_MARK_INNER;
	else if (instruction->kind == GT_INSTRUCTION_JMP)
		marks = GT_MARK_JUMPED;
	else
		marks = GT_MARK_COND;
	mark(scan, instruction->target, marks);
	if (marks != GT_MARK_CALLED)
		note_inward(scan, current, address, instruction, inside);
}

static void note_special(struct gt_scan *scan, uint64_t address,
			 const struct gt_instruction *instruction)
{
	struct gt_special_site site = { .address = address, .bytes = instruction->bytes };

	site.special = (uint8_t)gt_scan_special(scan, instruction);
	if (site.special == GT_SPECIAL_NONE)
		return;
	site.call = instruction->kind == GT_INSTRUCTION_CALL ||
		    instruction->kind == GT_INSTRUCTION_CALL_INDIRECT;
	push(scan, &scan->sites, &site, sizeof(site));
}

static void note_instruction(struct gt_scan *scan, const struct current *current, uint64_t address,
			     const uint8_t *code, const struct gt_instruction *instruction,
			     bool fixed)
{
	const bool special = scan->slots.count || scan->functions.count;

	if (instruction->target_bytes) {
		note_branch(scan, current, address, instruction);
		if (special && instruction->kind <= GT_INSTRUCTION_JMP)
			note_special(scan, address, instruction);
	}
	if (instruction->rip_offset) {
		if (range_at(scan, instruction->rip_target))
			mark(scan, instruction->rip_target, GT_MARK_POINTED);
		else if (instruction->is_lea)
			push(scan, &scan->tables, &instruction->rip_target, sizeof(uint64_t));
		if (special && (instruction->kind == GT_INSTRUCTION_CALL_INDIRECT ||
				instruction->kind == GT_INSTRUCTION_JMP_INDIRECT))
			note_special(scan, address, instruction);
	}
	if (fixed && instruction->immediate_offset) {
		uint64_t value = 0;

		memcpy(&value, code + instruction->immediate_offset, instruction->immediate_bytes);
		mark(scan, value, GT_MARK_POINTED);
	}
}

/* From function to function; a known start is always the start of an instruction. */
static void sweep(struct gt_scan *scan, const struct range *range, bool fixed)
{
	const uint32_t count = gt_object_function_count(scan->object);
	struct current current = { 0 };
	uint64_t at = range->start, next_start;
	uint32_t next = 0, high = count;

	while (next < high) {
		const uint32_t middle = next + (high - next) / 2;

		if (gt_object_function(scan->object, middle)->address < at)
			next = middle + 1;
		else
			high = middle;
	}
	next_start = next < count ? gt_object_function(scan->object, next)->address : UINT64_MAX;
	while (at < range->end) {
		const uint8_t *code = range->code + (at - range->start);
		struct gt_instruction instruction;

		while (at >= next_start) {
			const struct gt_object_function *function =
				gt_object_function(scan->object, next++);

			current.start = function->address;
			current.end = function->address + function->bytes;
			next_start = next < count ? gt_object_function(scan->object, next)->address
						  : UINT64_MAX;
		}
		if (!gt_instruction_decode(code, range->end - at, at, &instruction)) {
			at++;
			continue;
		}
		if (at < next_start && instruction.bytes > next_start - at) {
			/* data, or an instruction that shares its bytes */
			note_instruction(scan, &current, at, code, &instruction, fixed);
			at = next_start;
			continue;
		}
		note_instruction(scan, &current, at, code, &instruction, fixed);
		at += instruction.bytes;
	}
}

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Tables of 32-bit offsets from their own start, as compilers make them for switch: from each
 * address that lea takes, for as long as the offsets lead into code, at most up to the next such
 * address.
 */
static uint32_t follow_table(struct gt_scan *scan, uint64_t table, uint64_t end, bool marks)
{
	uint32_t count = 0;

	while (count < TABLE_ENTRIES_MAX && table + count * 4ull < end) {
		const uint8_t *bytes = gt_object_bytes(scan->object, table + count * 4ull, 4);
		int32_t offset;

		if (!bytes)
			break;
		memcpy(&offset, bytes, 4);
		if (!range_at(scan, table + (uint64_t)(int64_t)offset))
			break;
		if (marks)
			mark(scan, table + (uint64_t)(int64_t)offset, GT_MARK_TABLE);
		count++;
	}
	return count;
}

static void follow_tables(struct gt_scan *scan)
{
	uint64_t *tables = scan->tables.items;

	if (!scan->tables.count)
		return;
	qsort(tables, scan->tables.count, sizeof(*tables), compare_addresses);
	for (uint32_t i = 0; i < scan->tables.count; i++) {
		const uint64_t end = i + 1 < scan->tables.count ? tables[i + 1] : UINT64_MAX;

		if (follow_table(scan, tables[i], end, false) >= TABLE_ENTRIES_MIN)
			follow_table(scan, tables[i], end, true);
	}
}

static int mark_relocation(void *data, const struct gt_object_relocation *relocation)
{
	if (relocation->defined)
		mark(data, relocation->value, GT_MARK_POINTED | GT_MARK_WORD);
	return 0;
}

/* Every aligned word of the data that could be an address of code. */
static void scan_data(struct gt_scan *scan)
{
	for (uint32_t i = 0; i < gt_object_segment_count(scan->object); i++) {
		const struct gt_object_segment *segment = gt_object_segment(scan->object, i);
		const uint64_t skip = -segment->address & 7;
		const uint8_t *bytes;
		uint64_t at;

		if (segment->execute || segment->file_bytes <= skip)
			continue;
		bytes = gt_object_bytes(scan->object, segment->address, segment->file_bytes);
		for (at = skip; bytes && at + 8 <= segment->file_bytes; at += 8) {
			uint64_t value;

			memcpy(&value, bytes + at, 8);
			if (value)
				mark(scan, value, GT_MARK_POINTED | GT_MARK_WORD);
		}
	}
}

static int compare_inward(const void *a, const void *b)
{
	const struct gt_inward_jump *x = a, *y = b;

	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

int gt_scan_all(struct gt_scan *scan, struct gt_message *message)
{
	const bool fixed = gt_object_is_fixed(scan->object);

	if (scan->complete)
		return 0;
	for (uint32_t i = 0; i < scan->range_count; i++) {
		struct range *range = &scan->ranges[i];

		if (!range->marks)
			range->marks = calloc(1, range->end - range->start);
		scan->no_memory = scan->no_memory || !range->marks;
	}
	if (!scan->no_memory) {
		for (uint32_t i = 0; i < scan->range_count; i++)
			sweep(scan, &scan->ranges[i], fixed);
		if (scan->inward.count)
			qsort(scan->inward.items, scan->inward.count, sizeof(struct gt_inward_jump),
			      compare_inward);
		follow_tables(scan);
		gt_object_each_relocation(scan->object, mark_relocation, scan);
		if (fixed)
			scan_data(scan);
		for (uint32_t i = 0; i < scan->used.count; i++)
			mark(scan, ((uint64_t *)scan->used.items)[i], GT_MARK_USED);
	}
	if (scan->no_memory)
		return gt_fail(message, GT_ENOMEM, "no memory to look through the code");
	scan->complete = true;
	return 0;
}

uint8_t gt_scan_marks(const struct gt_scan *scan, uint64_t address)
{
	const struct range *range = range_at(scan, address);

	return range && range->marks ? range->marks[address - range->start] : 0;
}

uint8_t gt_scan_marks_of(const struct gt_scan *scan, uint64_t address, uint64_t bytes)
{
	const struct range *range = range_at(scan, address);
	uint8_t marks = 0;

	for (uint64_t i = 0; range && range->marks && i < bytes && address + i < range->end; i++)
		marks |= range->marks[address - range->start + i];
	return marks;
}

void gt_scan_use(struct gt_scan *scan, uint64_t address, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++) {
		const uint64_t byte = address + i;

		mark(scan, byte, GT_MARK_USED);
		if (!scan->complete)
			push(scan, &scan->used, &byte, sizeof(byte));
	}
}

void gt_scan_give_back(struct gt_scan *scan, uint64_t address, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++) {
		const struct range *range = range_at(scan, address + i);

		if (range && range->marks)
			range->marks[address + i - range->start] &= (uint8_t)~GT_MARK_USED;
	}
}

/* Index of the first item whose address is not below `address`; each begins with its address. */
static uint32_t lower_bound(const struct list *list, size_t bytes, uint64_t address)
{
	uint32_t low = 0, high = list->count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		uint64_t at;

		memcpy(&at, (const char *)list->items + middle * bytes, sizeof(at));
		if (at < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t gt_scan_sites(const struct gt_scan *scan, uint64_t start, uint64_t end,
		       const struct gt_special_site **first)
{
	const uint32_t from = lower_bound(&scan->sites, sizeof(**first), start);

	*first =
		from ? (const struct gt_special_site *)scan->sites.items + from : scan->sites.items;
	return lower_bound(&scan->sites, sizeof(**first), end) - from;
}

uint32_t gt_scan_inward_jumps(const struct gt_scan *scan, uint64_t start, uint64_t end,
			      const struct gt_inward_jump **first)
{
	const uint32_t from = lower_bound(&scan->inward, sizeof(**first), start);

	*first = from ? (const struct gt_inward_jump *)scan->inward.items + from
		      : scan->inward.items;
	return lower_bound(&scan->inward, sizeof(**first), end) - from;
}

/* Where instructions begin for sure, at or before the address: a function's start, or its end. */
static bool known_start(const struct gt_scan *scan, uint64_t address, uint64_t *start)
{
	const struct gt_object_function *function = function_before(scan->object, address);

	if (!function)
		return false;
	*start = address - function->address < function->bytes
			 ? function->address
			 : function->address + function->bytes;
	return true;
}

/* Whether the byte at `address` really is in a branch that leads there: decodes from the last place
 * that is known. Where that is not possible, it is. */
static bool is_branch(struct gt_scan *scan, uint64_t address, uint64_t target)
{
	struct gt_instruction instruction;
	uint64_t at, room;

	if (!known_start(scan, address, &at))
		return true;
	for (; at <= address; at += instruction.bytes) {
		const uint8_t *code = gt_scan_code(scan, at, &room);

		if (!code || !gt_instruction_decode(code, room, at, &instruction))
			return true;
		if (instruction.target_bytes && instruction.target == target &&
		    address < at + instruction.bytes)
			return true;
	}
	return false;
}

/* Which of the addresses has `target` among its bytes 1 to 4; -1 none. Few: one after the other. */
static int inside_of(const uint64_t *addresses, uint32_t count, uint64_t target)
{
	for (uint32_t i = 0; i < count; i++)
		if (target > addresses[i] && target < addresses[i] + 5)
			return (int)i;
	return -1;
}

int gt_scan_some(struct gt_scan *scan, const uint64_t *addresses, uint32_t count, bool *reached,
		 struct gt_message *message)
{
	/* Last bytes of the opcodes of call, jmp and xbegin: 2, of jcc, which 0f goes before: 1. */
	static const uint8_t ends_opcode[256] = {
		[0x80 ... 0x8f] = 1, [0xe8] = 2, [0xe9] = 2, [0xf8] = 2
	};
	uint64_t low = UINT64_MAX, high = 0;
	uint8_t *filter;
	int hit;

	memset(reached, 0, count * sizeof(*reached));
	if (!count)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		low = addresses[i] < low ? addresses[i] : low;
		high = addresses[i] + 5 > high ? addresses[i] + 5 : high;
	}
	/* A bit for each 16 bytes: nearly all displacements are turned away by it. */
	filter = calloc(1, (high - low) / 128 + 2);
	if (!filter)
		return gt_fail(message, GT_ENOMEM, "no memory to look through the code");
	for (uint32_t i = 0; i < count; i++)
		for (uint64_t at = addresses[i] + 1; at < addresses[i] + 5; at++)
			filter[(at - low) >> 7] |= (uint8_t)(1u << ((at - low) >> 4 & 7));
	for (uint32_t i = 0; i < scan->range_count; i++) {
		const struct range *range = &scan->ranges[i];
		const uint64_t bytes = range->end - range->start;
		uint64_t o;

		for (o = 1; o + 4 <= bytes; o++) {
			const uint64_t base = range->start + o;
			uint64_t target;
			int32_t offset;

			if (ends_opcode[range->code[o - 1]] <=
			    (o < 2 || range->code[o - 2] != 0x0f))
				continue;
			memcpy(&offset, range->code + o, 4);
			target = base + 4 + (uint64_t)(int64_t)offset;
			if (target - low >= high - low ||
			    !(filter[(target - low) >> 7] >> ((target - low) >> 4 & 7) & 1))
				continue;
			hit = inside_of(addresses, count, target);
			if (hit >= 0 && !reached[hit] && is_branch(scan, base, target))
				reached[hit] = true;
		}
	}
	free(filter);
	for (uint32_t i = 0; i < count; i++)
		for (uint64_t at = addresses[i] > 130 ? addresses[i] - 130 : 0;
		     at < addresses[i] + 135; at++) {
			uint64_t room, target;
			const uint8_t *code = gt_scan_code(scan, at, &room);

			if (!code || room < 2 ||
			    !((code[0] & 0xf0) == 0x70 || code[0] == 0xeb ||
			      (code[0] & 0xfc) == 0xe0))
				continue;
			target = at + 2 + (uint64_t)(int64_t)(int8_t)code[1];
			if (target > addresses[i] && target < addresses[i] + 5 && !reached[i])
				reached[i] = is_branch(scan, at, target);
		}
	return 0;
}
