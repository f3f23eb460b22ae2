/* SPDX-License-Identifier: MIT */
/*
 * Chooses the way for each function: what the compiler left, else moving its first instructions
 * (plan_moved.c). doc/design/patching.md argues why this is safe.
 */
#include "attach/plan/plan_private.h"
#include "core/trace/message.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool gt_plan_add_extra(struct gt_plan_work *work, const struct gt_plan_extra *extra)
{
	struct gt_plan *plan = work->plan;

	if (work->entry->extra_count == UINT8_MAX)
		return false;
	if (plan->extra_count == plan->extra_room) {
		const uint32_t room = plan->extra_room ? plan->extra_room * 2 : 64;
		struct gt_plan_extra *grown = realloc(plan->extras, room * sizeof(*grown));

		if (grown == NULL) {
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

/* ---- What the compiler left ---- */

/* Bytes of nops from the start: whole instructions, in `covered` those that a jump needs. */
static uint32_t nops_at(const uint8_t *code, uint64_t room, uint32_t *covered)
{
	struct gt_instruction instruction;
	uint32_t bytes = 0;

	*covered = 0;
	while (bytes < 256 && gt_instruction_decode(code + bytes, room - bytes, 0, &instruction) &&
	       instruction.kind == GT_INSTRUCTION_NOP) {
		bytes += instruction.bytes;
		if (bytes >= GT_JUMP_BYTES && !*covered)
			*covered = bytes;
	}
	return bytes;
}

/* The quick first look: does the function begin with something that a compiler put there? Nothing
 * but nops up to the next function is call frame information that starts in the padding before it
 * (assembly that aligns behind .cfi_startproc), and no function at all. */
static enum gt_plan_way prepared_way(struct gt_plan *plan, uint64_t address, const uint8_t *code,
				     uint64_t room, uint32_t *covered, uint32_t *body)
{
	struct gt_instruction instruction;

	if (room < GT_JUMP_BYTES)
		return GT_PLAN_NONE;
	if (*code == 0x90 || *code == 0x0f || *code == 0x66 || *code == 0x2e) {
		const uint32_t bytes = nops_at(code, room, covered);

		*body = bytes;
		return *covered && bytes < room ? GT_PLAN_NOPS : GT_PLAN_NONE;
	}
	if (*code != 0xe8 && *code != 0xff && *code != 0x67)
		return GT_PLAN_NONE;
	if (!gt_scan_has(plan->scan, GT_SPECIAL_FENTRY) ||
	    !gt_instruction_decode(code, room, address, &instruction) ||
	    (instruction.kind != GT_INSTRUCTION_CALL &&
	     instruction.kind != GT_INSTRUCTION_CALL_INDIRECT) ||
	    gt_scan_special(plan->scan, &instruction) != GT_SPECIAL_FENTRY)
		return GT_PLAN_NONE;
	*covered = instruction.bytes;
	*body = instruction.bytes;
	return GT_PLAN_FENTRY;
}

/*
 * Where the function's own instructions begin, behind endbr64, and how many bytes there are up to
 * the next function. NULL: no code.
 */
static const uint8_t *entry_code(struct gt_plan *plan, uint32_t index, uint64_t *address,
				 uint64_t *room)
{
	const struct gt_object_function *function = gt_object_function(plan->object, index);
	const struct gt_object_function *next = gt_object_function(plan->object, index + 1);
	const uint8_t *code = gt_scan_code(plan->scan, function->address, room);

	*address = function->address;
	if (code == NULL)
		return NULL;
	if (next != NULL && next->address - function->address < *room)
		*room = next->address - function->address;
	if (*room > GT_ENDBR64_BYTES && memcmp(code, GT_ENDBR64, GT_ENDBR64_BYTES) == 0) {
		code += GT_ENDBR64_BYTES;
		*address += GT_ENDBR64_BYTES;
		*room -= GT_ENDBR64_BYTES;
	}
	return code;
}

/*
 * Whether the compiler left nops before or at the entry (-fpatchable-function-entry=N,M): its list
 * names the first of the nops, and there are only nops from there to the entry.
 */
static bool is_patchable(struct gt_plan *plan, uint64_t address)
{
	uint32_t low = 0, high = plan->patchable_count, covered;
	uint64_t first, room;
	const uint8_t *code;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (plan->patchable[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;
	first = plan->patchable[low - 1];
	if (first == address)
		return true;
	code = address - first <= 256 ? gt_scan_code(plan->scan, first, &room) : NULL;
	return code != NULL && room >= address - first &&
	       nops_at(code, address - first, &covered) == address - first;
}

static bool plan_prepared(struct gt_plan_work *work)
{
	struct gt_plan_entry *entry = work->entry;
	uint32_t covered, body;
	uint64_t address, room;
	const uint8_t *code = entry_code(work->plan, work->index, &address, &room);
	const enum gt_plan_way way =
		code != NULL ? prepared_way(work->plan, address, code, room, &covered, &body)
			     : GT_PLAN_NONE;

	if (way == GT_PLAN_NONE || covered > GT_PLAN_ORIGINAL_MAX ||
	    !gt_plan_on_one_page(entry->patch_address, GT_JUMP_BYTES))
		return false;
	entry->way = (uint8_t)way;
	entry->prepared = way == GT_PLAN_NOPS ? GT_PREPARED_PATCHABLE : GT_PREPARED_FENTRY;
	entry->patch_bytes = GT_JUMP_BYTES;
	entry->covered_bytes = (uint8_t)covered;
	entry->body = entry->patch_address + body;
	memcpy(entry->original, code, covered);
	return true;
}

/* Calls of mcount and __cyg_profile_* in the function, once it is known how it is patched. */
static void neutralise(struct gt_plan_work *work)
{
	static const uint8_t nops[2][6] = { { 0x0f, 0x1f, 0x44, 0x00, 0x00 },
					    { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 } };
	struct gt_plan_entry *entry = work->entry;
	const struct gt_object_function *function = work->function;
	const struct gt_special_site *sites;
	const uint32_t count = gt_scan_sites(work->plan->scan, function->address,
					     function->address + function->bytes, &sites);

	for (uint32_t i = 0; i < count; i++) {
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
		/* Such a one stays a call, which does no harm. */
		if (code == NULL || site->bytes < 5 || site->bytes > 6 || room < site->bytes ||
		    !gt_plan_on_one_page(site->address, site->bytes))
			continue;
		memcpy(extra.original, code, site->bytes);
		memcpy(extra.replacement, nops[site->bytes - 5], site->bytes);
		if (!gt_plan_add_extra(work, &extra))
			return;
	}
}

static enum gt_plan_prepared prepared_by_calls(struct gt_plan_work *work)
{
	const struct gt_object_function *function = work->function;
	const struct gt_special_site *sites;
	const uint32_t count = gt_scan_sites(work->plan->scan, function->address,
					     function->address + function->bytes, &sites);
	enum gt_plan_prepared prepared = GT_PREPARED_NONE;

	for (uint32_t i = 0; i < count; i++) {
		if (!sites[i].call)
			continue;
		if (sites[i].special == GT_SPECIAL_MCOUNT)
			return GT_PREPARED_MCOUNT;
		if (sites[i].special == GT_SPECIAL_CYG_ENTER)
			prepared = GT_PREPARED_CYG;
	}
	return prepared;
}

/* ---- One function ---- */

/*
 * A piece that only its own function enters: nothing calls it or has its address, and it begins in
 * the middle of a frame, or, without a name, conditional jumps lead to it. A name proves nothing
 * where a frame has begun: BOLT's foo.warm, Propeller's foo.__part.1 and the like are not all
 * known, and in a leaf function such a piece finds its values below the stack pointer. What is
 * exported is somebody's to call.
 */
static bool is_cold_part(struct gt_plan_work *work)
{
	const struct gt_object_function *function = work->function;
	const uint8_t marks = gt_scan_marks(work->plan->scan, function->address);

	if (function->flags & GT_FUNCTION_EXPORTED || marks & GT_MARK_CALLED)
		return false;
	if (function->flags & GT_FUNCTION_SYMBOL)
		return (function->flags & (GT_FUNCTION_FRAME | GT_FUNCTION_FRAME_CFA8)) ==
		       GT_FUNCTION_FRAME;
	/* A switch's table may lead here too: an address of it proves nothing then. */
	if (!(function->flags & GT_FUNCTION_FRAME_CFA8))
		return true;
	return !(marks & GT_MARK_POINTED) && marks & GT_MARK_COND;
}

/* A function has one jump at its entry. */
static bool is_hooked(const struct gt_plan *plan, uint64_t address)
{
	for (uint32_t i = 0; i < plan->hooked_count; i++)
		if (plan->hooked[i].address == address)
			return true;
	return false;
}

static int plan_entry(struct gt_plan_work *work)
{
	struct gt_plan_entry *entry = work->entry;
	struct gt_plan *plan = work->plan;
	const struct gt_object_function *function = work->function;
	const uint8_t *code;
	uint64_t room;
	uint32_t covered;
	enum gt_plan_reason reason;

	entry->function = work->index;
	entry->address = function->address;
	entry->patch_address = function->address;
	entry->extra_first = plan->extra_count;
	entry->reason = GT_REASON_NONE;
	code = entry_code(plan, work->index, &entry->patch_address, &room);
	if (code == NULL) {
		entry->reason = GT_REASON_NO_CODE_SECTION;
		return 0;
	}
	if (nops_at(code, room, &covered) == room) {
		entry->reason = GT_REASON_PADDING;
		return 0;
	}
	if (!work->quick) {
		reason = gt_rule_never(plan->object, function);
		if (!reason && plan->object_never)
			reason = plan->object_reason;
		if (!reason && is_hooked(plan, function->address))
			reason = GT_REASON_HOOKED;
		if (!reason && gt_plan_is_abort_handler(plan, function->address))
			reason = GT_REASON_PART;
		if (!reason && plan->object_reason == GT_REASON_NO_UNWINDER &&
		    gt_cancels_in(&plan->cancels, plan->scan, work->index))
			reason = GT_REASON_CANCELS;
		if (reason) {
			entry->reason = (uint8_t)reason;
			return 0;
		}
		if (gt_scan_has(plan->scan, GT_SPECIAL_MCOUNT) ||
		    gt_scan_has(plan->scan, GT_SPECIAL_CYG_ENTER)) {
			if (!gt_scan_is_complete(plan->scan))
				return GT_PLAN_NEEDS_ALL;
		}
	}
	if (!plan_prepared(work)) {
		if (!work->quick) {
			if (!gt_scan_is_complete(plan->scan))
				return GT_PLAN_NEEDS_ALL;
			if (is_cold_part(work)) {
				entry->reason = GT_REASON_PART;
				return 0;
			}
			entry->prepared = is_patchable(plan, entry->address) ||
							  is_patchable(plan, entry->patch_address)
						  ? GT_PREPARED_PATCHABLE
						  : (uint8_t)prepared_by_calls(work);
		}
		reason = gt_plan_find_moved(work);
		if (reason) {
			entry->reason = (uint8_t)reason;
			return 0;
		}
	}
	neutralise(work);
	if (work->quick)
		return 0;
	reason = plan->object_reason ? plan->object_reason : gt_rule_entry_only(function);
	if (!reason)
		reason = gt_rule_code(plan->scan, function, entry->prepared == GT_PREPARED_CYG,
				      &plan->scratch);
	if (reason) {
		entry->entry_only = true;
		entry->reason = (uint8_t)reason;
	}
	return 0;
}

/* ---- The plan as a whole ---- */

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int add_patchable(struct gt_plan *plan, uint64_t address)
{
	if (plan->patchable_count == plan->patchable_room) {
		const uint32_t room = plan->patchable_room ? plan->patchable_room * 2 : 256;
		uint64_t *grown = realloc(plan->patchable, room * sizeof(*grown));

		if (grown == NULL)
			return GT_ENOMEM;
		plan->patchable = grown;
		plan->patchable_room = room;
	}
	plan->patchable[plan->patchable_count++] = address;
	return 0;
}

struct patchable_search {
	struct gt_plan *plan;
	const struct gt_object_section *section;
};

static int take_patchable(void *data, const struct gt_object_relocation *relocation)
{
	const struct patchable_search *search = data;

	if (relocation->address - search->section->address >= search->section->bytes)
		return 0;
	return add_patchable(search->plan, relocation->value);
}

/* The list stands in the file in a fixed object, in relocations elsewhere (or in both). */
static int load_patchable(struct gt_plan *plan)
{
	const struct gt_object_section *section =
		gt_object_section_named(plan->object, "__patchable_function_entries");
	struct patchable_search search = { plan, section };
	const uint8_t *bytes =
		section != NULL ? gt_object_bytes(plan->object, section->address, section->bytes)
				: NULL;
	uint64_t address;
	int error;

	if (bytes == NULL)
		return 0;
	error = gt_object_each_relocation(plan->object, take_patchable, &search);
	for (uint64_t i = 0; !error && i + 8 <= section->bytes; i += 8) {
		memcpy(&address, bytes + i, 8);
		if (address)
			error = add_patchable(plan, address);
	}
	if (plan->patchable_count)
		qsort(plan->patchable, plan->patchable_count, sizeof(*plan->patchable),
		      compare_addresses);
	return error;
}

int gt_plan_create(struct gt_object *object, struct gt_plan **plan, struct gt_message *message)
{
	struct gt_plan *created = calloc(1, sizeof(*created));
	const uint32_t count = gt_object_function_count(object);
	int error = GT_ENOMEM;

	*plan = NULL;
	if (created == NULL)
		goto no_memory;
	created->object = object;
	created->prepared = -1;
	created->cache_fd = -1;
	created->object_reason = gt_rule_object(object, &created->object_never);
	created->planned = malloc((count + 1ul) * sizeof(*created->planned));
	if (created->planned == NULL)
		goto no_memory;
	memset(created->planned, 0xff, (count + 1ul) * sizeof(*created->planned));
	if (load_patchable(created) != 0)
		goto no_memory;
	error = gt_scan_create(object, &created->scan, message);
	if (error) {
		gt_plan_destroy(created);
		return error;
	}
	if (gt_plan_keep_sequences(created) != 0) {
		error = GT_ENOMEM;
		goto no_memory;
	}
	created->resolver = gt_rule_resolver(created->scan, object);
	if (created->resolver && !created->object_never)
		created->object_reason = GT_REASON_NONE; /* V8's */
	*plan = created;
	return 0;

no_memory:
	gt_plan_destroy(created);
	return gt_fail(message, error, "no memory for the patch plan");
}

void gt_plan_use_cache(struct gt_plan *plan, const char *directory)
{
	char path[4096];

	if (directory == NULL) {
		if (gt_plan_cache_directory(path, sizeof(path)))
			return;
		directory = path;
	}
	free(plan->cache);
	plan->cache = strdup(directory);
}

static int is_in_libc(void *data, const struct gt_object_symbol *symbol)
{
	(void)data;
	return symbol->address && (strcmp(symbol->name, "pthread_sigmask") == 0 ||
				   strcmp(symbol->name, "sigprocmask") == 0 ||
				   strcmp(symbol->name, "__libc_start_main") == 0);
}

void gt_plan_allow_breakpoints(struct gt_plan *plan)
{
	plan->breakpoints = true;
	plan->blocks_signals = gt_object_interpreter(plan->object) == NULL &&
			       gt_object_needed_count(plan->object) == 0;
	if (gt_object_each_symbol(plan->object, is_in_libc, NULL))
		plan->blocks_signals = true;
}

uint64_t gt_plan_resolver(const struct gt_plan *plan)
{
	return plan->resolver;
}

bool gt_plan_has_breakpoints(const struct gt_plan *plan)
{
	return plan->breakpoints;
}

bool gt_plan_blocks_signals(const struct gt_plan *plan)
{
	return plan->blocks_signals;
}

void gt_plan_destroy(struct gt_plan *plan)
{
	if (plan == NULL)
		return;
	gt_scan_destroy(plan->scan);
	free(plan->planned);
	free(plan->entries);
	free(plan->extras);
	free(plan->patchable);
	free(plan->hooked);
	gt_rule_scratch_free(&plan->scratch);
	gt_cancels_free(&plan->cancels);
	if (plan->cache_fd >= 0)
		close(plan->cache_fd);
	free(plan->cache);
	free(plan);
}

static int plan_work(struct gt_plan_work *work, struct gt_plan_entry *entry,
		     struct gt_message *message)
{
	struct gt_plan_entry made;
	int error;

	memset(&made, 0, sizeof(made));
	work->function = gt_object_function(work->plan->object, work->index);
	work->entry = &made;
	error = plan_entry(work);
	if (!error && work->plan->no_memory) {
		error = GT_ENOMEM;
		gt_message_set(message, "no memory for the patch plan");
	}
	if (error)
		return error;
	*entry = made;
	return 0;
}

int gt_plan_one(struct gt_plan *plan, uint32_t index, bool may_borrow, struct gt_plan_entry *entry,
		struct gt_message *message)
{
	struct gt_plan_work work = { .plan = plan, .index = index, .may_borrow = may_borrow };

	return plan_work(&work, entry, message);
}

bool gt_plan_reserve(struct gt_plan *plan, uint32_t entries, uint32_t extras)
{
	const size_t entry_room = (size_t)plan->entry_count + entries + 1;
	const size_t extra_room = (size_t)plan->extra_count + extras + 1;
	void *grown;

	if (entry_room > UINT32_MAX / 2 || extra_room > UINT32_MAX / 2)
		return false;
	if (entry_room > plan->entry_room) {
		grown = realloc(plan->entries, entry_room * sizeof(*plan->entries));
		if (grown == NULL)
			return false;
		plan->entries = grown;
		plan->entry_room = (uint32_t)entry_room;
	}
	if (extra_room > plan->extra_room) {
		grown = realloc(plan->extras, extra_room * sizeof(*plan->extras));
		if (grown == NULL)
			return false;
		plan->extras = grown;
		plan->extra_room = (uint32_t)extra_room;
	}
	return true;
}

int gt_plan_keep(struct gt_plan *plan, const struct gt_plan_entry *entry,
		 struct gt_message *message)
{
	if (plan->entry_count == plan->entry_room) {
		const uint32_t room = plan->entry_room ? plan->entry_room * 2 : 256;
		struct gt_plan_entry *grown = realloc(plan->entries, room * sizeof(*grown));

		if (grown == NULL)
			return gt_fail(message, GT_ENOMEM, "no memory for the patch plan");
		plan->entries = grown;
		plan->entry_room = room;
	}
	plan->planned[entry->function] = plan->entry_count;
	plan->entries[plan->entry_count++] = *entry;
	return 0;
}

int gt_plan_function(struct gt_plan *plan, uint32_t index, struct gt_plan_entry *entry,
		     struct gt_message *message)
{
	int error = 0;

	if (index >= gt_object_function_count(plan->object))
		return GT_EINVAL;
	/* Kept: room is taken once only, and asking twice must give the same answer. */
	if (plan->planned[index] == GT_PLAN_NO_ENTRY) {
		error = gt_plan_one(plan, index, false, entry, message);
		/* What it may borrow shows when all have been planned. */
		if (error == GT_PLAN_NEEDS_ALL ||
		    (!error && entry->way == GT_PLAN_NONE && gt_plan_may_borrow(entry->reason)))
			error = gt_plan_all(plan, message);
		else if (!error)
			error = gt_plan_keep(plan, entry, message);
	}
	if (error)
		return error;
	*entry = plan->entries[plan->planned[index]];
	/* What is left over shows when all have been planned. */
	if (plan->breakpoints && entry->way == GT_PLAN_NONE && gt_plan_may_break(entry->reason)) {
		error = gt_plan_all(plan, message);
		if (!error)
			gt_plan_breakpoint(plan, entry);
	}
	return error;
}

int gt_plan_hooks(struct gt_plan *plan, const uint64_t *addresses, uint32_t count,
		  struct gt_plan_entry *entries, struct gt_message *message)
{
	uint64_t *patches = calloc(count + 1ul, sizeof(*patches));
	bool *reached = calloc(count + 1ul, sizeof(*reached));
	struct gt_plan_entry *hooked = calloc(count + 1ul, sizeof(*hooked));
	uint32_t index;
	int error = GT_ENOMEM;

	if (patches == NULL || reached == NULL || hooked == NULL) {
		gt_message_set(message, "no memory for the patch plan");
		goto done;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint64_t room;
		const uint8_t *code = gt_scan_code(plan->scan, addresses[i], &room);
		const bool marked = code != NULL && room > GT_ENDBR64_BYTES &&
				    memcmp(code, GT_ENDBR64, GT_ENDBR64_BYTES) == 0;

		patches[i] = addresses[i] + (marked ? GT_ENDBR64_BYTES : 0);
	}
	error = gt_scan_some(plan->scan, patches, count, reached, message);
	for (uint32_t i = 0; !error && i < count; i++) {
		if (gt_object_function_at(plan->object, addresses[i], &index) ||
		    gt_object_function(plan->object, index)->address != addresses[i]) {
			memset(&entries[i], 0, sizeof(entries[i]));
			entries[i].address = addresses[i];
			entries[i].reason = GT_REASON_UNKNOWN;
			continue;
		}
		error = plan_work(&(struct gt_plan_work){ .plan = plan,
							  .index = index,
							  .quick = true,
							  .reached = reached[i] },
				  &entries[i], message);
	}
	if (!error) {
		free(plan->hooked);
		plan->hooked = hooked;
		plan->hooked_count = 0;
		for (uint32_t i = 0; i < count; i++)
			if (entries[i].way != GT_PLAN_NONE)
				hooked[plan->hooked_count++] = entries[i];
		hooked = NULL;
	}

done:
	free(patches);
	free(reached);
	free(hooked);
	return error;
}

bool gt_plan_is_prepared(struct gt_plan *plan)
{
	const uint32_t count = gt_object_function_count(plan->object);
	uint32_t covered, body, found = 0;

	if (plan->prepared >= 0)
		return plan->prepared;
	plan->prepared =
		plan->patchable_count ||
		/* The C library has these functions, but does not call them. */
		(!gt_rule_is_libc(plan->object) && (gt_scan_has(plan->scan, GT_SPECIAL_FENTRY) ||
						    gt_scan_has(plan->scan, GT_SPECIAL_MCOUNT) ||
						    gt_scan_has(plan->scan, GT_SPECIAL_CYG_ENTER)));
	/* Nops that no list names (-mnop-mcount, or a file without sections): one function that
	 * begins with some may be anybody's assembly. */
	for (uint32_t i = 0; i < count && !plan->prepared; i++) {
		uint64_t address, room;
		const uint8_t *code = entry_code(plan, i, &address, &room);

		if (code == NULL ||
		    prepared_way(plan, address, code, room, &covered, &body) == GT_PLAN_NONE ||
		    gt_rule_never(plan->object, gt_object_function(plan->object, i)))
			continue;
		found++;
		plan->prepared = found > count / 16;
	}
	return plan->prepared;
}

bool gt_plan_may_be_prepared(struct gt_plan *plan, uint32_t index)
{
	uint64_t address, room;
	uint32_t covered, body;
	const uint8_t *code;

	if (index >= gt_object_function_count(plan->object))
		return false;
	/* Calls of mcount and __cyg_profile_* stand anywhere in a function: planning tells. */
	if (!gt_rule_is_libc(plan->object) && (gt_scan_has(plan->scan, GT_SPECIAL_MCOUNT) ||
					       gt_scan_has(plan->scan, GT_SPECIAL_CYG_ENTER)))
		return true;
	code = entry_code(plan, index, &address, &room);
	return code != NULL &&
	       prepared_way(plan, address, code, room, &covered, &body) != GT_PLAN_NONE;
}

const struct gt_plan_extra *gt_plan_extra(const struct gt_plan *plan,
					  const struct gt_plan_entry *entry, uint32_t index)
{
	return index < entry->extra_count ? &plan->extras[entry->extra_first + index] : NULL;
}

const char *gt_plan_way_name(enum gt_plan_way way)
{
	static const char *const names[] = { "none",	"nops",	 "fentry", "moved",
					     "padding", "short", "int3" };

	return way < sizeof(names) / sizeof(*names) ? names[way] : "?";
}

const char *gt_plan_prepared_name(enum gt_plan_prepared prepared)
{
	static const char *const names[] = { "none", "patchable", "fentry", "mcount", "cyg" };

	return prepared < sizeof(names) / sizeof(*names) ? names[prepared] : "?";
}
