/* SPDX-License-Identifier: MIT */
/*
 * Static probes: see probes.h. The notes' layout is that of SystemTap's wiki,
 * UserSpaceProbeImplementation; operands are as the assembler writes them (AT&T syntax). What makes
 * no sense is left out: a probe that cannot be placed, or the value of an argument.
 */
#define _GNU_SOURCE
#include "attach/object/probes.h"
#include "attach/object/object_private.h"

#include <stdlib.h>
#include <string.h>

#define NOTE_STAPSDT  3
#define NOTE_FIELDS   1
#define NOTES_MAX     (64u << 20)
#define PROBES_MAX    65536u
#define NAME_MAX_TEXT 200u

static const char system_prefix[] = "usdt_";

struct gt_object_notes {
	struct gt_probe *probes;
	uint32_t count;
	uint32_t room;
	char *bytes[2]; /* of the two sections, with a zero byte behind */
	char **made;	/* strings that stand in neither */
	uint32_t made_count;
	bool no_memory;
};

static const Elf64_Shdr *section_header(const struct gt_object *object, const char *name)
{
	for (uint32_t i = 0; i < object->section_header_count; i++) {
		const Elf64_Shdr *section = &object->section_headers[i];

		if (section->sh_name < object->section_names_bytes &&
		    strcmp(object->section_names + section->sh_name, name) == 0)
			return section;
	}
	return NULL;
}

/* The section's bytes, NULL: there is none. */
static char *load_section(struct gt_object *object, const char *name, uint64_t *bytes)
{
	const Elf64_Shdr *section = section_header(object, name);
	void *loaded;

	*bytes = 0;
	if (section == NULL || section->sh_type == SHT_NOBITS || section->sh_size > NOTES_MAX ||
	    gt_object_load(object, section->sh_offset, section->sh_size, name, &loaded, NULL))
		return NULL;
	*bytes = section->sh_size;
	return loaded;
}

/* A string of our own; it lives as long as the object. */
static const char *make_string(struct gt_object_notes *notes, const char *prefix, const char *text,
			       size_t bytes)
{
	const size_t before = strlen(prefix);
	char **grown = realloc(notes->made, (notes->made_count + 1) * sizeof(*grown));
	char *made = malloc(before + bytes + 1);

	if (grown != NULL)
		notes->made = grown;
	if (grown == NULL || made == NULL) {
		free(made);
		notes->no_memory = true;
		return "";
	}
	memcpy(made, prefix, before);
	memcpy(made + before, text, bytes);
	made[before + bytes] = 0;
	notes->made[notes->made_count++] = made;
	return made;
}

/* ---- operands ---- */

struct operand {
	struct gt_object *object;
	const char *at;
	const char *end;
};

static bool take(struct operand *operand, char wanted)
{
	if (operand->at == operand->end || *operand->at != wanted)
		return false;
	operand->at++;
	return true;
}

static bool is_name_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || byte == '_' || byte == '.' || byte == '@';
}

static size_t name_bytes(const struct operand *operand)
{
	size_t bytes = 0;

	while (operand->at + bytes < operand->end && is_name_byte(operand->at[bytes]))
		bytes++;
	return bytes;
}

static bool take_number(struct operand *operand, int64_t *value)
{
	const size_t bytes = name_bytes(operand);
	char text[32], *end;

	if (!bytes || bytes >= sizeof(text) || *operand->at < '0' || *operand->at > '9')
		return false;
	memcpy(text, operand->at, bytes);
	text[bytes] = 0;
	*value = (int64_t)strtoull(text, &end, 0);
	operand->at += bytes;
	return *end == 0;
}

static bool take_symbol(struct operand *operand, int64_t *value)
{
	const size_t bytes = name_bytes(operand);
	char text[NAME_MAX_TEXT];
	uint64_t address;

	if (!bytes || bytes >= sizeof(text))
		return false;
	memcpy(text, operand->at, bytes);
	text[bytes] = 0;
	operand->at += bytes;
	if (gt_object_symbol(operand->object, text, &address))
		return false;
	*value = (int64_t)address;
	return true;
}

/* Numbers and names of data, added up. */
static bool take_sum(struct operand *operand, int64_t *sum)
{
	bool minus = take(operand, '-');

	*sum = 0;
	for (;;) {
		int64_t value = 0;

		if (!(operand->at < operand->end && *operand->at >= '0' && *operand->at <= '9'
			      ? take_number(operand, &value)
			      : take_symbol(operand, &value)))
			return false;
		*sum = (int64_t)((uint64_t)*sum + (minus ? 0 - (uint64_t)value : (uint64_t)value));
		if (take(operand, '-'))
			minus = true;
		else if (take(operand, '+'))
			minus = take(operand, '-');
		else
			return true;
	}
}

/* 0 … 15 and the bit that its value begins at; or -1. */
static int register_number(const char *name, size_t bytes, int64_t *shift)
{
	static const char *const names[8][4] = {
		{ "rax", "eax", "ax", "al" },  { "rcx", "ecx", "cx", "cl" },
		{ "rdx", "edx", "dx", "dl" },  { "rbx", "ebx", "bx", "bl" },
		{ "rsp", "esp", "sp", "spl" }, { "rbp", "ebp", "bp", "bpl" },
		{ "rsi", "esi", "si", "sil" }, { "rdi", "edi", "di", "dil" },
	};
	static const char *const highs[] = { "ah", "ch", "dh", "bh" };
	int number;

	*shift = 0;
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 4; k++)
			if (strlen(names[i][k]) == bytes && memcmp(names[i][k], name, bytes) == 0)
				return i;
	for (int i = 0; i < 4; i++)
		if (bytes == 2 && memcmp(highs[i], name, 2) == 0) {
			*shift = 8;
			return i;
		}
	if (bytes < 2 || bytes > 4 || name[0] != 'r' || name[1] < '0' || name[1] > '9')
		return -1;
	number = name[1] - '0';
	if (bytes > 2 && name[2] >= '0' && name[2] <= '9')
		number = number * 10 + name[2] - '0';
	return number >= 8 && number <= 15 ? number : -1;
}

/* %rax, %r8d, %xmm3 … */
static bool take_register(struct operand *operand, struct graftrace_probe_argument *argument)
{
	size_t bytes;
	int number;

	if (!take(operand, '%'))
		return false;
	bytes = name_bytes(operand);
	number = register_number(operand->at, bytes, &argument->value);
	argument->place = GRAFTRACE_PLACE_REGISTER;
	if (number < 0 && bytes > 3 && bytes < 6 && memcmp(operand->at, "xmm", 3) == 0) {
		number = atoi((char[3]){ operand->at[3], bytes > 4 ? operand->at[4] : (char)0, 0 });
		argument->place = GRAFTRACE_PLACE_VECTOR;
	}
	operand->at += bytes;
	if (number < 0 || number > 15)
		return false;
	argument->base = (uint8_t)number;
	return true;
}

/* One of the two registers in brackets; only whole ones. */
static bool take_address_register(struct operand *operand, uint8_t *number)
{
	size_t bytes;
	int64_t shift;
	int found;

	if (!take(operand, '%'))
		return false;
	bytes = name_bytes(operand);
	found = register_number(operand->at, bytes, &shift);
	if (found < 0 || operand->at[0] != 'r' ||
	    (bytes > 2 && operand->at[bytes - 1] > '9' && found >= 8))
		return false;
	*number = (uint8_t)found;
	operand->at += bytes;
	return true;
}

/* (base,index,scale), (%rip) … behind the displacement. */
static bool take_brackets(struct operand *operand, struct graftrace_probe_argument *argument,
			  bool *relative)
{
	int64_t scale;

	if (!take(operand, '('))
		return false;
	if (operand->end - operand->at >= 5 && memcmp(operand->at, "%rip)", 5) == 0) {
		operand->at += 5;
		*relative = true;
		return true;
	}
	if (operand->at < operand->end && *operand->at != ',' &&
	    !take_address_register(operand, &argument->base))
		return false;
	if (take(operand, ',')) {
		if (!take_address_register(operand, &argument->index))
			return false;
		if (take(operand, ',')) {
			if (!take_number(operand, &scale) ||
			    (scale != 1 && scale != 2 && scale != 4 && scale != 8))
				return false;
			while (1 << argument->shift < scale)
				argument->shift++;
		}
	}
	return take(operand, ')');
}

static bool parse_operand(struct operand *operand, struct graftrace_probe_argument *argument,
			  bool *relative)
{
	bool sum;

	argument->base = argument->index = GRAFTRACE_NO_REGISTER;
	if (operand->at < operand->end && *operand->at == '%')
		return take_register(operand, argument) && operand->at == operand->end;
	if (take(operand, '$')) {
		argument->place = GRAFTRACE_PLACE_CONSTANT;
		return take_sum(operand, &argument->value) && operand->at == operand->end;
	}
	argument->place = GRAFTRACE_PLACE_MEMORY;
	sum = operand->at < operand->end && *operand->at != '(';
	if (sum && !take_sum(operand, &argument->value))
		return false;
	if (operand->at == operand->end) { /* an address by itself */
		*relative = true;
		return sum;
	}
	return take_brackets(operand, argument, relative) && operand->at == operand->end;
}

/* -4@%eax, 8f@%xmm0, 8@16(%rdi), or an operand alone. */
static void parse_argument(struct gt_object *object, const char *text, size_t bytes,
			   struct gt_probe *probe)
{
	static const char *const types[2][4] = { { "u8", "u16", "u32", "u64" },
						 { "s8", "s16", "s32", "s64" } };
	static const char *const names[GRAFTRACE_PROBE_FIELDS] = {
		"arg1", "arg2",	 "arg3",  "arg4",  "arg5",  "arg6",  "arg7",  "arg8",
		"arg9", "arg10", "arg11", "arg12", "arg13", "arg14", "arg15", "arg16",
	};
	const uint32_t index = probe->argument_count++;
	struct graftrace_probe_argument *argument = &probe->arguments[index];
	const char *mark = memchr(text, '@', bytes);
	struct operand operand = { object, text, text + bytes };
	int64_t size = 8;
	int log = 3;

	if (mark != NULL && mark > text && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'))) {
		struct operand head = { object, text, mark };

		argument->is_signed = take(&head, '-');
		size = *head.at - '0';
		probe->fields[index].is_float = head.at + 1 < mark && head.at[1] == 'f';
		operand.at = mark + 1;
	}
	for (log = 0; log < 3 && 1 << log != size; log++)
		;
	argument->bytes = (uint8_t)(1 << log);
	if ((1 << log) != size || !parse_operand(&operand, argument, &probe->is_relative[index])) {
		argument->place = GRAFTRACE_PLACE_UNKNOWN;
		probe->is_relative[index] = false;
	}
	probe->fields[index].name = names[index];
	probe->fields[index].type = probe->fields[index].is_float ? (log == 2 ? "float" : "double")
								  : types[argument->is_signed][log];
}

static void parse_arguments(struct gt_object *object, struct gt_probe *probe)
{
	const char *at = probe->text;

	for (;;) {
		size_t bytes;

		at += strspn(at, " ");
		bytes = strcspn(at, " ");
		if (!bytes || probe->argument_count == GRAFTRACE_PROBE_FIELDS)
			return;
		parse_argument(object, at, bytes, probe);
		at += bytes;
	}
}

/* ---- notes ---- */

/* The string at *at, which is moved behind it; NULL: it has no end before `end`. */
static const char *next_string(const char **at, const char *end)
{
	const char *text = *at, *zero = *at < end ? memchr(*at, 0, (size_t)(end - *at)) : NULL;

	if (zero == NULL)
		return NULL;
	*at = zero + 1;
	return text;
}

static struct gt_probe *add_probe(struct gt_object_notes *notes)
{
	if (notes->count == PROBES_MAX)
		return NULL;
	if (notes->count == notes->room) {
		const uint32_t room = notes->room ? notes->room * 2 : 32;
		struct gt_probe *grown = realloc(notes->probes, room * sizeof(*grown));

		if (grown == NULL) {
			notes->no_memory = true;
			return NULL;
		}
		notes->probes = grown;
		notes->room = room;
	}
	memset(&notes->probes[notes->count], 0, sizeof(*notes->probes));
	return &notes->probes[notes->count++];
}

static uint64_t word_at(const char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* Names go into control files and onto command lines. */
static bool is_plain(const char *name)
{
	size_t i;

	for (i = 0; name[i]; i++)
		if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f ||
		    strchr(":!,/*?[]", name[i]) != NULL)
			return false;
	return i > 0 && i <= NAME_MAX_TEXT;
}

struct note_reader {
	struct gt_object *object;
	struct gt_object_notes *notes;
	uint64_t base; /* where .stapsdt.base is, 0: not known */
};

/* Only data of the object is written to. */
static bool is_data(const struct gt_object *object, uint64_t address)
{
	for (uint32_t i = 0; i < object->segment_count; i++) {
		const struct gt_object_segment *segment = &object->segments[i];

		if (segment->write && !segment->execute && address >= segment->address &&
		    address - segment->address < segment->memory_bytes &&
		    segment->memory_bytes - (address - segment->address) >= sizeof(uint16_t))
			return true;
	}
	return false;
}

/* location, base, semaphore; provider, name, arguments. A linker or prelink that moved the object
 * left the note as it was: by its own base it tells how far. */
static void take_stapsdt(struct note_reader *reader, const char *at, const char *end)
{
	const char *provider, *name, *text, *strings = at + 24;
	struct gt_probe *probe;
	uint64_t moved;

	if (end - at < 24)
		return;
	provider = next_string(&strings, end);
	name = provider != NULL ? next_string(&strings, end) : NULL;
	text = name != NULL ? next_string(&strings, end) : NULL;
	if (text == NULL || !is_plain(provider) || !is_plain(name))
		return;
	probe = add_probe(reader->notes);
	if (probe == NULL)
		return;
	moved = reader->base && word_at(at + 8) ? reader->base - word_at(at + 8) : 0;
	probe->address = word_at(at) + moved;
	probe->semaphore = word_at(at + 16) ? word_at(at + 16) + moved : 0;
	if (!is_data(reader->object, probe->semaphore))
		probe->semaphore = 0;
	probe->system = make_string(reader->notes, system_prefix, provider, strlen(provider));
	probe->name = name;
	probe->text = text;
	parse_arguments(reader->object, probe);
}

/* location, base; fields as "type name;" one behind the other. Of a probe that came before. */
static void take_fields(struct note_reader *reader, const char *at, const char *end)
{
	const char *strings = at + 16, *text;
	struct gt_probe *probe = NULL;
	uint64_t address;

	if (end - at < 16 || (text = next_string(&strings, end)) == NULL)
		return;
	address = word_at(at) +
		  (reader->base && word_at(at + 8) ? reader->base - word_at(at + 8) : 0);
	for (uint32_t i = 0; i < reader->notes->count; i++)
		if (reader->notes->probes[i].address == address)
			probe = &reader->notes->probes[i];
	if (probe == NULL)
		return;
	probe->system += strncmp(probe->system, system_prefix, sizeof(system_prefix) - 1) == 0
				 ? sizeof(system_prefix) - 1
				 : 0;
	for (uint32_t i = 0; i < probe->argument_count; i++) {
		const size_t bytes = strcspn(text, ";");
		const char *blank = memrchr(text, ' ', bytes);

		if (text[bytes] != ';' || blank == NULL || blank == text)
			return;
		probe->fields[i].type =
			make_string(reader->notes, "", text, (size_t)(blank - text));
		probe->fields[i].name = make_string(reader->notes, "", blank + 1,
						    (size_t)(text + bytes - blank - 1));
		if (strcmp(probe->fields[i].type, "const char *") == 0)
			probe->arguments[i].take = GRAFTRACE_TAKE_STRING;
		text += bytes + 1;
	}
}

static void read_notes(struct note_reader *reader, const char *bytes, uint64_t size,
		       const char *owner, uint32_t type,
		       void (*note)(struct note_reader *reader, const char *at, const char *end))
{
	uint64_t at = 0;

	while (size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr head;
		uint64_t name, text;

		memcpy(&head, bytes + at, sizeof(head));
		name = at + sizeof(head);
		text = name + ((uint64_t)head.n_namesz + 3) / 4 * 4;
		if (text > size || head.n_descsz > size - text)
			return;
		if (head.n_type == type && head.n_namesz == strlen(owner) + 1 &&
		    memcmp(bytes + name, owner, head.n_namesz) == 0)
			note(reader, bytes + text, bytes + text + head.n_descsz);
		at = text + ((uint64_t)head.n_descsz + 3) / 4 * 4;
		if (at > size)
			return;
	}
}

const struct gt_probe *gt_object_probes(struct gt_object *object, uint32_t *count)
{
	const struct gt_object_section *base = gt_object_section_named(object, ".stapsdt.base");
	struct note_reader reader = { .object = object, .base = base != NULL ? base->address : 0 };
	struct gt_object_notes *notes = object->notes;
	uint64_t bytes;

	if (notes == NULL) {
		notes = object->notes = calloc(1, sizeof(*notes));
		reader.notes = notes;
		if (notes != NULL &&
		    (notes->bytes[0] = load_section(object, ".note.stapsdt", &bytes)) != NULL)
			read_notes(&reader, notes->bytes[0], bytes, "stapsdt", NOTE_STAPSDT,
				   take_stapsdt);
		if (notes != NULL && notes->count &&
		    (notes->bytes[1] = load_section(object, ".note.graftrace", &bytes)) != NULL)
			read_notes(&reader, notes->bytes[1], bytes, "graftrace", NOTE_FIELDS,
				   take_fields);
	}
	*count = notes != NULL && !notes->no_memory ? notes->count : 0;
	return notes != NULL ? notes->probes : NULL;
}

void gt_object_free_notes(struct gt_object *object)
{
	struct gt_object_notes *notes = object->notes;

	if (notes == NULL)
		return;
	for (uint32_t i = 0; i < notes->made_count; i++)
		free(notes->made[i]);
	free(notes->made);
	free(notes->bytes[0]);
	free(notes->bytes[1]);
	free(notes->probes);
	free(notes);
}
