/* SPDX-License-Identifier: MIT */
/*
 * The list of an object's functions: symbols and call frames, sorted by address, aliases folded to
 * the name that people know, bounds from the symbol, the frame, or the next function.
 */
#define _GNU_SOURCE /* memmem */
#include "attach/object/object_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_BYTES 64 /* of _start, in which the call of __libc_start_main lies */

/* Something that says: a function starts here. */
struct candidate {
	uint64_t address;
	uint64_t bytes;
	const char *name;    /* NULL: a frame */
	uint32_t name_bytes; /* without @version */
	uint32_t flags;
	bool plain;	/* no @version in the name */
	bool weak_type; /* STT_NOTYPE: counts only where a frame starts too */
};

struct candidates {
	struct candidate *list;
	uint32_t count;
	uint32_t room;
	/* From the first module of OCaml's to the last, and its runtime's assembly; 0, 0: none. */
	uint64_t ocaml[2][2];
};

static int add(struct candidates *candidates, const struct candidate *candidate)
{
	if (candidates->count == candidates->room) {
		const uint32_t room = candidates->room ? candidates->room * 2 : 4096;
		struct candidate *grown = realloc(candidates->list, room * sizeof(*grown));

		if (grown == NULL)
			return GT_ENOMEM;
		candidates->list = grown;
		candidates->room = room;
	}
	candidates->list[candidates->count++] = *candidate;
	return 0;
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Names of what runs before or after the program proper, or outside of the calling convention. */
static bool is_start_name(const char *name, uint32_t bytes)
{
	static const char *const names[] = {
		"_start",
		"_init",
		"_fini",
		"deregister_tm_clones",
		"register_tm_clones",
		"__do_global_dtors_aux",
		"frame_dummy",
		"_dl_relocate_static_pie",
		"_dl_start",
		"_dl_start_user",
		"__libc_csu_init",
		"__libc_csu_fini",
		"__libc_start_main",
		"__libc_start_call_main",
		"__libc_start_main_impl",
		"_start_c",
		"_dlstart",
		"_dlstart_c",
		"__dls2",
		"__dls2b",
		"__dls3",
	};

	if (bytes < 5 || name[0] != '_') {
		if (bytes == 0 || (name[0] != 'd' && name[0] != 'r' && name[0] != 'f'))
			return false;
	}
	for (uint32_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == bytes && memcmp(names[i], name, bytes) == 0)
			return true;
	return false;
}

/* gcc's foo.cold, foo.cold.12; clang's the same; g++'s _Zfoo.cold; BOLT's foo.warm; the parts that
 * LLVM lays out apart (foo.__part.1). */
static bool is_cold_name(const char *name, uint32_t bytes)
{
	static const char *const endings[] = { ".cold", ".warm", ".__part" };
	size_t length;

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		const char *at;

		length = strlen(endings[i]);
		at = memmem(name, bytes, endings[i], length);
		if (at != NULL && (at + length == name + bytes || at[length] == '.'))
			return true;
	}
	return false;
}

static bool ends_in(const char *name, uint32_t bytes, const char *end)
{
	const size_t length = strlen(end);

	return bytes >= length && memcmp(name + bytes - length, end, length) == 0;
}

/* camlStdlib__code_begin, since OCaml 5.1 camlStdlib.code_begin: what OCaml has compiled lies
 * between these, from caml_startup to the last module. */
static void note_ocaml(struct candidates *candidates, const struct candidate *symbol)
{
	const bool begins = ends_in(symbol->name, symbol->name_bytes, "code_begin");
	uint64_t *range;

	if (symbol->name_bytes < 14 || memcmp(symbol->name, "caml", 4) != 0 ||
	    (!begins && !ends_in(symbol->name, symbol->name_bytes, "code_end")))
		return;
	range = candidates->ocaml[memcmp(symbol->name, "caml_system", 11) == 0];
	if (begins && (!range[0] || symbol->address < range[0]))
		range[0] = symbol->address;
	else if (!begins && symbol->address > range[1])
		range[1] = symbol->address;
}

static bool is_ocaml(const struct candidates *candidates, uint64_t address)
{
	for (int i = 0; i < 2; i++)
		if (candidates->ocaml[i][0] && address >= candidates->ocaml[i][0] &&
		    address < candidates->ocaml[i][1])
			return true;
	return false;
}

static int add_symbols(struct gt_object *object, const struct gt_symbol_table *table,
		       struct candidates *candidates)
{
	for (uint32_t i = 0; i < table->count; i++) {
		const Elf64_Sym *symbol = &table->symbols[i];
		const uint8_t type = ELF64_ST_TYPE(symbol->st_info);
		const bool local = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL;
		struct candidate candidate = { .address = symbol->st_value,
					       .bytes = symbol->st_size };
		const char *version;
		int error;

		if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC && (type != STT_NOTYPE || local)) ||
		    !gt_object_code_bytes_at(object, symbol->st_value))
			continue;
		candidate.name = symbol->st_name < table->string_bytes
					 ? table->strings + symbol->st_name
					 : "";
		version = strchr(candidate.name, '@');
		candidate.plain = version == NULL;
		candidate.name_bytes =
			(uint32_t)(version != NULL ? (size_t)(version - candidate.name)
						   : strlen(candidate.name));
		if (!candidate.name_bytes)
			continue;
		candidate.weak_type = type == STT_NOTYPE;
		candidate.flags = GT_FUNCTION_SYMBOL;
		if (table->dynamic)
			candidate.flags |= GT_FUNCTION_EXPORTED;
		if (type == STT_GNU_IFUNC)
			candidate.flags |= GT_FUNCTION_IFUNC;
		/* Known only while folding: `local` decides between aliases. */
		if (local)
			candidate.flags |= 1u << 31;
		if (is_start_name(candidate.name, candidate.name_bytes))
			candidate.flags |= GT_FUNCTION_START;
		if (is_cold_name(candidate.name, candidate.name_bytes))
			candidate.flags |= GT_FUNCTION_COLD;
		note_ocaml(candidates, &candidate);
		error = add(candidates, &candidate);
		if (error)
			return error;
	}
	return 0;
}

static int add_frames(struct gt_object *object, struct candidates *candidates,
		      struct gt_message *message)
{
	struct gt_frames frames;
	int error = gt_object_load_frames(object, &frames, message);

	for (uint32_t i = 0; !error && i < frames.count; i++) {
		const struct gt_frame *frame = &frames.frames[i];
		struct candidate candidate = { .address = frame->address,
					       .bytes = frame->bytes,
					       .flags = GT_FUNCTION_FRAME };

		if (!gt_object_code_bytes_at(object, frame->address))
			continue;
		if (frame->cfa8)
			candidate.flags |= GT_FUNCTION_FRAME_CFA8;
		if (frame->signal)
			candidate.flags |= GT_FUNCTION_SIGNAL_FRAME;
		error = add(candidates, &candidate);
	}
	object->catches = frames.catches;
	free(frames.frames);
	return error;
}

struct resolvers {
	struct candidates *candidates;
	int error;
};

/* IRELATIVE relocations name the IFUNC resolvers of stripped objects too. */
static int add_resolver(void *data, const struct gt_object_relocation *relocation)
{
	struct resolvers *resolvers = data;
	struct candidate candidate = { .address = relocation->value,
				       .flags = GT_FUNCTION_IFUNC,
				       .weak_type = true };

	if (relocation->type != R_X86_64_IRELATIVE)
		return 0;
	resolvers->error = add(resolvers->candidates, &candidate);
	return resolvers->error;
}

/* Slots of the global offset table that the loader fills with the address of what has a name. */
struct slot {
	uint64_t address;
	const char *name;
};

struct slots {
	struct slot *list;
	uint32_t count;
	uint32_t room;
};

static int add_slot(void *data, const struct gt_object_relocation *relocation)
{
	struct slots *slots = data;

	if (!*relocation->name ||
	    (relocation->type != R_X86_64_JUMP_SLOT && relocation->type != R_X86_64_GLOB_DAT))
		return 0;
	if (slots->count == slots->room) {
		const uint32_t room = slots->room ? slots->room * 2 : 256;
		struct slot *grown = realloc(slots->list, room * sizeof(*grown));

		if (grown == NULL)
			return GT_ENOMEM;
		slots->list = grown;
		slots->room = room;
	}
	slots->list[slots->count++] = (struct slot){ relocation->address, relocation->name };
	return 0;
}

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* The slot that a linkage stub jumps through: [endbr64] [bnd] jmp *slot(%rip). 0: it is none. */
static uint64_t slot_of_stub(const uint8_t *code, uint64_t address)
{
	uint32_t at = 0;
	int32_t displacement;

	if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0)
		at = 4;
	if (code[at] == 0xf2)
		at++;
	if (code[at] != 0xff || code[at + 1] != 0x25)
		return 0;
	memcpy(&displacement, code + at + 2, 4);
	return address + at + 6 + (uint64_t)(int64_t)displacement;
}

/* The stubs of the linkage table: no symbol names them. */
static int add_stubs(struct gt_object *object, struct candidates *candidates)
{
	struct slots slots = { 0 };
	int error = gt_object_each_relocation(object, add_slot, &slots);

	if (slots.count)
		qsort(slots.list, slots.count, sizeof(*slots.list), compare_slots);
	for (uint32_t i = 0; !error && slots.count && i < object->section_count; i++) {
		const struct gt_object_section *section = &object->sections[i];
		const uint32_t step = strcmp(section->name, ".plt.got") == 0 ? 8 : 16;
		uint8_t *code;

		if (!section->execute || strncmp(section->name, ".plt", 4) != 0)
			continue;
		/* Not the segment: of a library that is not traced nobody else asks for code. */
		code = gt_object_copy_bytes(object, section->address, section->bytes);
		for (uint64_t at = 0; !error && code != NULL && at + 16 <= section->bytes + 8;
		     at += step) {
			struct slot key = { 0 };
			const struct slot *slot;
			struct candidate candidate = { .address = section->address + at,
						       .bytes = step,
						       .flags = GT_FUNCTION_SYMBOL |
								GT_FUNCTION_PLT };
			uint8_t bytes[16] = { 0 };

			memcpy(bytes, code + at,
			       section->bytes - at < 16 ? section->bytes - at : 16);
			key.address = slot_of_stub(bytes, candidate.address);
			slot = key.address ? bsearch(&key, slots.list, slots.count, sizeof(key),
						     compare_slots)
					   : NULL;
			if (slot == NULL)
				continue;
			candidate.name = slot->name;
			candidate.name_bytes = (uint32_t)strcspn(slot->name, "@");
			candidate.plain = !slot->name[candidate.name_bytes];
			if (candidate.name_bytes)
				error = add(candidates, &candidate);
		}
		free(code);
	}
	free(slots.list);
	return error;
}

static uint32_t leading_underscores(const struct candidate *candidate)
{
	uint32_t i = 0;

	while (i < candidate->name_bytes && candidate->name[i] == '_')
		i++;
	return i;
}

/* Whether alias a is the better name for people. */
static bool better_name(const struct candidate *a, const struct candidate *b)
{
	const bool a_local = a->flags >> 31, b_local = b->flags >> 31;
	uint32_t a_under, b_under;
	int order;

	if (b->name == NULL)
		return true;
	if (a_local != b_local)
		return b_local;
	if (a->plain != b->plain)
		return a->plain;
	a_under = leading_underscores(a);
	b_under = leading_underscores(b);
	if (a_under != b_under)
		return a_under < b_under;
	if (a->name_bytes != b->name_bytes)
		return a->name_bytes < b->name_bytes;
	order = memcmp(a->name, b->name, a->name_bytes);
	return order < 0;
}

/* One function from the candidates [first, last) of one address. */
static bool fold(const struct candidate *list, uint32_t count, struct gt_object_function *function,
		 const struct candidate **named)
{
	const struct candidate *best = NULL;
	uint64_t symbol_bytes = 0, frame_bytes = 0;
	uint32_t flags = 0;
	bool strong = false;

	for (uint32_t i = 0; i < count; i++) {
		const struct candidate *candidate = &list[i];

		strong = strong || !candidate->weak_type;
		flags |= candidate->flags;
		if (candidate->name == NULL) {
			if (candidate->bytes > frame_bytes)
				frame_bytes = candidate->bytes;
			continue;
		}
		if (candidate->bytes > symbol_bytes)
			symbol_bytes = candidate->bytes;
		if (best == NULL || better_name(candidate, best))
			best = candidate;
	}
	if (!strong)
		return false;
	*named = best;
	function->address = list[0].address;
	function->bytes = 0;
	flags &= ~(1u << 31);
	if (symbol_bytes || frame_bytes) {
		const uint64_t bytes = symbol_bytes ? symbol_bytes : frame_bytes;

		function->bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
		flags |= GT_FUNCTION_SIZED;
	}
	/* Aliases are cold only if every name says so. */
	if (flags & GT_FUNCTION_COLD && best != NULL && !is_cold_name(best->name, best->name_bytes))
		flags &= ~(uint32_t)GT_FUNCTION_COLD;
	function->flags = flags;
	return true;
}

static const struct gt_object_section *section_at(const struct gt_object *object, uint64_t address)
{
	for (uint32_t i = 0; i < object->section_count; i++)
		if (object->sections[i].execute && address >= object->sections[i].address &&
		    address - object->sections[i].address < object->sections[i].bytes)
			return &object->sections[i];
	return NULL;
}

/* `jmp *slot(%rip)`, also behind endbr64 and with a bnd prefix, or what pushes for the resolver. */
static bool looks_like_plt(struct gt_object *object, uint64_t address)
{
	static const uint8_t endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const uint8_t *bytes = gt_object_bytes(object, address, 12);

	if (bytes == NULL)
		return false;
	if (memcmp(bytes, endbr64, 4) == 0)
		bytes += 4;
	if (bytes[0] == 0xf2)
		bytes++;
	return bytes[0] == 0xff && (bytes[1] == 0x25 || bytes[1] == 0x35);
}

/* Bounds and marks that need the neighbours and the sections. */
static void finish(struct gt_object *object, const struct candidates *candidates)
{
	const struct gt_object_section *section = NULL;

	for (uint32_t i = 0; i < object->function_count; i++) {
		struct gt_object_function *function = &object->functions[i];
		uint64_t room = gt_object_code_bytes_at(object, function->address);

		if (section == NULL || function->address < section->address ||
		    function->address - section->address >= section->bytes)
			section = section_at(object, function->address);
		if (section != NULL &&
		    section->bytes - (function->address - section->address) < room)
			room = section->bytes - (function->address - section->address);
		if (i + 1 < object->function_count &&
		    function[1].address - function->address < room)
			room = function[1].address - function->address;
		if (!function->bytes || function->bytes > room)
			function->bytes = room > UINT32_MAX ? UINT32_MAX : (uint32_t)room;
		if (section != NULL ? strncmp(section->name, ".plt", 4) == 0 ||
					      strcmp(section->name, ".iplt") == 0
				    : !(function->flags & GT_FUNCTION_SYMBOL) &&
					      looks_like_plt(object, function->address))
			function->flags |= GT_FUNCTION_PLT;
		if (function->address == object->header.e_entry ||
		    (object->has_dynamic && (function->address == object->dynamic.init ||
					     function->address == object->dynamic.fini)))
			function->flags |= GT_FUNCTION_START;
		if (section != NULL &&
		    (strcmp(section->name, ".init") == 0 || strcmp(section->name, ".fini") == 0))
			function->flags |= GT_FUNCTION_START;
		if (is_ocaml(candidates, function->address))
			function->flags |= GT_FUNCTION_OCAML;
	}
}

/* Room for all names that need a copy: those with a @version. */
static int keep_names(struct gt_object *object, const struct candidate **named)
{
	size_t bytes = 1;
	char *at;

	for (uint32_t i = 0; i < object->function_count; i++)
		if (named[i] != NULL && !named[i]->plain)
			bytes += named[i]->name_bytes + 1;
	object->strings = malloc(bytes);
	if (object->strings == NULL)
		return GT_ENOMEM;
	at = object->strings;
	*at++ = 0;
	for (uint32_t i = 0; i < object->function_count; i++) {
		if (named[i] == NULL) {
			object->functions[i].name = object->strings;
		} else if (named[i]->plain) {
			object->functions[i].name = named[i]->name;
		} else {
			object->functions[i].name = at;
			memcpy(at, named[i]->name, named[i]->name_bytes);
			at += named[i]->name_bytes;
			*at++ = 0;
		}
	}
	return 0;
}

/*
 * The address of main, as _start hands it to __libc_start_main: in rdi, by `lea main(%rip), %rdi` or `mov $main, %rdi`
 * in front of the call (glibc's start.S, musl's crt1.c). 0: _start is not known so.
 */
static uint64_t find_main(struct gt_object *object)
{
	const uint64_t start = object->header.e_entry;
	uint64_t address = 0;
	uint8_t *code;
	int32_t offset;

	if (!start || gt_object_interpreter(object) == NULL)
		return 0;
	code = gt_object_copy_bytes(object, start, START_BYTES);
	if (code == NULL)
		return 0;
	for (uint32_t at = 0;
	     !address && at + 8 <= START_BYTES && code[at] != 0xf4 /* hlt: its end */; at++) {
		if (code[at] != 0x48 ||
		    (code[at + 7] != 0xe8 && code[at + 7] != 0xff)) /* then the call */
			continue;
		memcpy(&offset, code + at + 3, sizeof(offset));
		if (code[at + 1] == 0x8d && code[at + 2] == 0x3d)
			address = start + at + 7 + (uint64_t)(int64_t)offset;
		else if (code[at + 1] == 0xc7 && code[at + 2] == 0xc7)
			address = (uint64_t)(int64_t)offset;
	}
	free(code);
	return address;
}

/* A stripped program's main has no symbol, and is known all the same. */
static void name_main(struct gt_object *object)
{
	const uint64_t address = find_main(object);
	uint32_t index;

	if (address && gt_object_function_at(object, address, &index) == 0 &&
	    object->functions[index].address == address && !*object->functions[index].name)
		object->functions[index].name = "main";
}

int gt_object_load_functions(struct gt_object *object, struct gt_message *message)
{
	struct candidates candidates = { 0 };
	struct resolvers resolvers = { .candidates = &candidates };
	const struct candidate **named = NULL;
	bool sorted = true;
	uint32_t next;
	int error;

	error = add_symbols(object, &object->tables[0], &candidates);
	if (!error)
		error = add_symbols(object, &object->tables[1], &candidates);
	if (!error)
		error = add_stubs(object, &candidates);
	if (!error)
		error = add_frames(object, &candidates, message);
	if (!error) {
		gt_object_each_relocation(object, add_resolver, &resolvers);
		error = resolvers.error;
	}
	if (error)
		goto no_memory;
	for (uint32_t i = 1; i < candidates.count && sorted; i++)
		sorted = candidates.list[i].address >= candidates.list[i - 1].address;
	if (!sorted)
		qsort(candidates.list, candidates.count, sizeof(*candidates.list),
		      compare_candidates);
	error = GT_ENOMEM;
	object->functions = malloc((candidates.count + 1ul) * sizeof(*object->functions));
	object->names = calloc(candidates.count + 1ul, sizeof(*object->names));
	named = malloc((candidates.count + 1ul) * sizeof(*named));
	if (object->functions == NULL || object->names == NULL || named == NULL)
		goto no_memory;
	for (uint32_t i = 0; i < candidates.count; i = next) {
		for (next = i + 1; next < candidates.count &&
				   candidates.list[next].address == candidates.list[i].address;
		     next++)
			;
		if (fold(&candidates.list[i], next - i, &object->functions[object->function_count],
			 &named[object->function_count]))
			object->function_count++;
	}
	error = keep_names(object, named);
	if (error)
		goto no_memory;
	finish(object, &candidates);
	name_main(object);
	free(named);
	free(candidates.list);
	return 0;

no_memory:
	free(named);
	free(candidates.list);
	return gt_fail(message, error, "'%s': no memory for functions", object->path);
}

uint32_t gt_object_function_count(const struct gt_object *object)
{
	return object->function_count;
}

const struct gt_object_function *gt_object_function(const struct gt_object *object, uint32_t index)
{
	return index < object->function_count ? &object->functions[index] : NULL;
}

int gt_object_function_at(const struct gt_object *object, uint64_t address, uint32_t *index)
{
	uint32_t low = 0, high = object->function_count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (object->functions[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 ||
	    address - object->functions[low - 1].address >= object->functions[low - 1].bytes)
		return GT_ENOENT;
	*index = low - 1;
	return 0;
}

const char *gt_object_function_name(struct gt_object *object, uint32_t index)
{
	const struct gt_object_function *function = gt_object_function(object, index);
	const char *base;
	size_t bytes;

	if (function == NULL)
		return "";
	if (object->names[index] != NULL)
		return object->names[index];
	if (*function->name && function->flags & GT_FUNCTION_PLT) {
		char *plain = gt_object_demangle(function->name);

		bytes = strlen(plain != NULL ? plain : function->name) + 5;
		object->names[index] = malloc(bytes);
		if (object->names[index] != NULL)
			snprintf(object->names[index], bytes, "%s@plt",
				 plain ? plain : function->name);
		free(plain);
		return object->names[index] != NULL ? object->names[index] : function->name;
	}
	if (*function->name) {
		object->names[index] = gt_object_demangle(function->name);
		return object->names[index] != NULL ? object->names[index] : function->name;
	}
	base = strrchr(object->path, '/');
	base = base != NULL ? base + 1 : object->path;
	bytes = strlen(base) + 20;
	object->names[index] = malloc(bytes);
	if (object->names[index] == NULL)
		return "";
	snprintf(object->names[index], bytes, "%s+0x%llx", base,
		 (unsigned long long)function->address);
	return object->names[index];
}
