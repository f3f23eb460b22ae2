/* SPDX-License-Identifier: MIT */
/*
 * The functions that a scan calls special, by their names: where they are, which slots of the global
 * offset table lead to them, and which branches do.
 */
#include "attach/plan/scan_private.h"

#include <elf.h>

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
	struct gt_scan_slot slot = { .address = relocation->address };

	if (!*relocation->name ||
	    (relocation->type != R_X86_64_GLOB_DAT && relocation->type != R_X86_64_JUMP_SLOT &&
	     relocation->type != R_X86_64_64))
		return 0;
	slot.special = (uint8_t)special_of_name(relocation->name);
	if (slot.special == GT_SPECIAL_NONE)
		return 0;
	scan->has[slot.special] = true;
	return gt_scan_push(scan, &scan->slots, &slot, sizeof(slot)) ? 0 : GT_ENOMEM;
}

/* `ret` and nothing else, also behind endbr64: the C library's empty __cyg_profile_func_enter. */
static bool is_empty(struct gt_object *object, uint64_t address)
{
	const uint8_t *code = gt_object_bytes(object, address, 1);
	const uint8_t *more = gt_object_bytes(object, address, 5);

	return (code != NULL && *code == 0xc3) ||
	       (more != NULL && memcmp(more, "\xf3\x0f\x1e\xfa\xc3", 5) == 0);
}

static int take_function(void *data, const struct gt_object_symbol *symbol)
{
	struct gt_scan *scan = data;
	struct gt_scan_slot slot = { .address = symbol->address };

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
	return gt_scan_push(scan, &scan->functions, &slot, sizeof(slot)) ? 0 : GT_ENOMEM;
}

static int compare_slots(const void *a, const void *b)
{
	const struct gt_scan_slot *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

bool gt_scan_find_specials(struct gt_scan *scan)
{
	if (gt_object_each_relocation(scan->object, take_slot, scan) ||
	    gt_object_each_symbol(scan->object, take_function, scan))
		return false;
	if (scan->slots.count)
		qsort(scan->slots.items, scan->slots.count, sizeof(struct gt_scan_slot),
		      compare_slots);
	if (scan->functions.count)
		qsort(scan->functions.items, scan->functions.count, sizeof(struct gt_scan_slot),
		      compare_slots);
	return true;
}

static enum gt_special find_slot(const struct gt_scan_list *list, uint64_t address)
{
	const struct gt_scan_slot key = { .address = address };
	const struct gt_scan_slot *found =
		list->count ? bsearch(&key, list->items, list->count, sizeof(key), compare_slots)
			    : NULL;

	return found != NULL ? (enum gt_special)found->special : GT_SPECIAL_NONE;
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
	if (code == NULL || room < 11)
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
