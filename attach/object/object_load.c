/* SPDX-License-Identifier: MIT */
/*
 * Reads an ELF file's headers, segments, sections and dynamic section. Parts are read when they are
 * needed, so a program with a gigabyte of debug information costs no more than its symbols.
 */
#include "attach/object/object_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES	4096ull
#define INTERPRETER_MAX 4096ull	      /* bytes of a name that are believed */
#define NOTES_MAX	(64ull << 10) /* bytes of notes that are looked through for a build ID */

static int read_at(struct gt_object *object, uint64_t offset, void *buffer, uint64_t bytes,
		   const char *what, struct gt_message *message)
{
	int error;

	if (offset > object->size || bytes > object->size - offset)
		return gt_fail(message, GT_EFORMAT,
			       "'%s': %s at byte %llu (%llu bytes) goes beyond the file's end "
			       "at byte %llu",
			       object->path, what, (unsigned long long)offset,
			       (unsigned long long)bytes, (unsigned long long)object->size);
	error = object->read(object->read_data, offset, buffer, bytes);
	if (error)
		return gt_fail(message, error, "'%s': cannot read %s at byte %llu: %s",
			       object->path, what, (unsigned long long)offset,
			       error == GT_ECUT ? "the file has become shorter" : strerror(errno));
	return 0;
}

int gt_object_load(struct gt_object *object, uint64_t offset, uint64_t bytes, const char *what,
		   void **result, struct gt_message *message)
{
	uint8_t *memory;
	int error;

	*result = NULL;
	if (bytes > GT_OBJECT_PART_MAX || offset > object->size || bytes > object->size - offset)
		return gt_fail(message, GT_EFORMAT,
			       "'%s': %s at byte %llu (%llu bytes) goes beyond the file's end "
			       "at byte %llu",
			       object->path, what, (unsigned long long)offset,
			       (unsigned long long)bytes, (unsigned long long)object->size);
	memory = malloc(bytes + 1);
	if (memory == NULL)
		return gt_fail(message, GT_ENOMEM, "'%s': no memory for %s", object->path, what);
	error = read_at(object, offset, memory, bytes, what, message);
	if (error) {
		free(memory);
		return error;
	}
	memory[bytes] = 0;
	*result = memory;
	return 0;
}

/* The words for what is no ELF file of ours. */
static int check_header(struct gt_object *object, uint64_t got, struct gt_message *message)
{
	const Elf64_Ehdr *header = &object->header;
	const uint8_t *ident = header->e_ident;
	const char *path = object->path;

	if (got == 0)
		return gt_fail(message, GT_EFORMAT, "'%s' is empty", path);
	if (got >= 2 && ident[0] == '#' && ident[1] == '!')
		return gt_fail(message, GT_ENOTSUP,
			       "'%s' is a script: name the interpreter's program instead", path);
	if (got < SELFMAG || memcmp(ident, ELFMAG, SELFMAG) != 0)
		return gt_fail(message, GT_EFORMAT, "'%s' is no ELF file", path);
	if (got < EI_NIDENT)
		return gt_fail(message, GT_EFORMAT, "'%s': the ELF header is cut at byte %llu",
			       path, (unsigned long long)got);
	if (ident[EI_CLASS] != ELFCLASS64)
		return gt_fail(message, GT_ENOTSUP,
			       "'%s' is a 32-bit ELF file: only x86-64 can be traced", path);
	if (ident[EI_DATA] != ELFDATA2LSB)
		return gt_fail(message, GT_ENOTSUP,
			       "'%s' is for a big-endian machine: only x86-64 can be traced", path);
	if (got < sizeof(*header))
		return gt_fail(message, GT_EFORMAT, "'%s': the ELF header is cut at byte %llu",
			       path, (unsigned long long)got);
	if (header->e_machine != EM_X86_64)
		return gt_fail(message, GT_ENOTSUP,
			       "'%s' is for another machine (ELF number %u): only x86-64 can "
			       "be traced",
			       path, header->e_machine);
	if (header->e_type == ET_REL)
		return gt_fail(message, GT_ENOTSUP,
			       "'%s' is a relocatable file: link it to a program first", path);
	if (header->e_type == ET_CORE)
		return gt_fail(message, GT_ENOTSUP, "'%s' is a core dump, no program", path);
	if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
		return gt_fail(message, GT_EFORMAT, "'%s': unknown type %u at byte 16", path,
			       header->e_type);
	if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0 ||
	    header->e_phnum == PN_XNUM)
		return gt_fail(message, GT_EFORMAT,
			       "'%s': no usable program headers (%u of %u bytes, byte 54)", path,
			       header->e_phnum, header->e_phentsize);
	return 0;
}

static int compare_segments(const void *a, const void *b)
{
	const struct gt_object_segment *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static int load_segments(struct gt_object *object, struct gt_message *message)
{
	const uint32_t count = object->header.e_phnum;
	uint64_t base = UINT64_MAX;
	void *loaded;
	int error;

	error = gt_object_load(object, object->header.e_phoff, (uint64_t)count * sizeof(Elf64_Phdr),
			       "the program header table", &loaded, message);
	if (error)
		return error;
	object->program_headers = loaded;
	object->segments = calloc(count, sizeof(*object->segments));
	object->segment_bytes = calloc(count, sizeof(*object->segment_bytes));
	if (object->segments == NULL || object->segment_bytes == NULL)
		return gt_fail(message, GT_ENOMEM, "'%s': no memory", object->path);
	for (uint32_t i = 0; i < count; i++) {
		const Elf64_Phdr *header = &object->program_headers[i];

		if (header->p_type == PT_LOAD && (header->p_vaddr & -PAGE_BYTES) < base)
			base = header->p_vaddr & -PAGE_BYTES;
	}
	for (uint32_t i = 0; i < count; i++) {
		const Elf64_Phdr *header = &object->program_headers[i];
		struct gt_object_segment *segment = &object->segments[object->segment_count];
		const uint64_t offset = object->memory ? header->p_vaddr - base : header->p_offset;

		if (header->p_type != PT_LOAD || header->p_memsz == 0)
			continue;
		if (header->p_vaddr + header->p_memsz < header->p_vaddr ||
		    header->p_vaddr + header->p_memsz > 1ull << 47)
			return gt_fail(
				message, GT_EFORMAT,
				"'%s': segment %u at 0x%llx (0x%llx bytes) is beyond the address "
				"space",
				object->path, i, (unsigned long long)header->p_vaddr,
				(unsigned long long)header->p_memsz);
		segment->address = header->p_vaddr;
		segment->file_offset = header->p_offset;
		segment->memory_bytes = header->p_memsz;
		segment->file_bytes =
			header->p_filesz < header->p_memsz ? header->p_filesz : header->p_memsz;
		segment->execute = (header->p_flags & PF_X) != 0;
		segment->write = (header->p_flags & PF_W) != 0;
		if (segment->file_bytes > GT_OBJECT_PART_MAX || offset > object->size ||
		    segment->file_bytes > object->size - offset)
			return gt_fail(message, GT_EFORMAT,
				       "'%s': the segment at byte %llu (%llu bytes) goes "
				       "beyond the file's "
				       "end at byte %llu: the file is cut",
				       object->path, (unsigned long long)offset,
				       (unsigned long long)segment->file_bytes,
				       (unsigned long long)object->size);
		object->segment_count++;
	}
	if (!object->segment_count)
		return gt_fail(message, GT_EFORMAT, "'%s' has nothing to load: no program",
			       object->path);
	qsort(object->segments, object->segment_count, sizeof(*object->segments), compare_segments);
	object->span_start = base;
	for (uint32_t i = 0; i < object->segment_count; i++) {
		const struct gt_object_segment *segment = &object->segments[i];

		if (i && segment->address < segment[-1].address + segment[-1].memory_bytes)
			return gt_fail(message, GT_EFORMAT, "'%s': two segments overlap at 0x%llx",
				       object->path, (unsigned long long)segment->address);
	}
	return 0;
}

/* Sections help but are not needed (sstrip): a table that makes no sense counts as missing. */
static int load_sections(struct gt_object *object, struct gt_message *message)
{
	const Elf64_Ehdr *header = &object->header;
	const Elf64_Shdr *names;
	void *loaded;

	if (object->memory || header->e_shnum == 0 || header->e_shentsize != sizeof(Elf64_Shdr) ||
	    header->e_shstrndx >= header->e_shnum)
		return 0;
	if (gt_object_load(object, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr),
			   "the section header table", &loaded, NULL) != 0)
		return 0;
	object->section_headers = loaded;
	names = &object->section_headers[header->e_shstrndx];
	if (names->sh_type != SHT_STRTAB || gt_object_load(object, names->sh_offset, names->sh_size,
							   "section names", &loaded, NULL)) {
		free(object->section_headers);
		object->section_headers = NULL;
		return 0;
	}
	object->section_names = loaded;
	object->section_names_bytes = names->sh_size;
	object->section_header_count = header->e_shnum;
	object->sections = calloc(header->e_shnum, sizeof(*object->sections));
	if (object->sections == NULL)
		return gt_fail(message, GT_ENOMEM, "'%s': no memory", object->path);
	for (uint32_t i = 0; i < object->section_header_count; i++) {
		const Elf64_Shdr *section = &object->section_headers[i];
		struct gt_object_section *to = &object->sections[object->section_count];

		if (!(section->sh_flags & SHF_ALLOC) || section->sh_type == SHT_NULL ||
		    section->sh_addr + section->sh_size < section->sh_addr)
			continue;
		to->name = section->sh_name < object->section_names_bytes
				   ? object->section_names + section->sh_name
				   : "";
		to->address = section->sh_addr;
		to->file_offset = section->sh_offset;
		to->bytes = section->sh_size;
		to->execute = (section->sh_flags & SHF_EXECINSTR) != 0;
		object->section_count++;
	}
	return 0;
}

static void take_build_id(struct gt_object *object, const uint8_t *note, uint64_t bytes)
{
	uint64_t at = 0;

	while (note != NULL && bytes - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr header;
		uint64_t name, description;

		memcpy(&header, note + at, sizeof(header));
		name = at + sizeof(header);
		description = name + ((header.n_namesz + 3ull) & ~3ull);
		if (description > bytes || header.n_descsz > bytes - description)
			return;
		if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
		    memcmp(note + name, "GNU", 4) == 0 &&
		    header.n_descsz <= sizeof(object->build_id)) {
			memcpy(object->build_id, note + description, header.n_descsz);
			object->build_id_bytes = header.n_descsz;
			return;
		}
		at = description + ((header.n_descsz + 3ull) & ~3ull);
		if (at > bytes)
			return;
	}
}

static void take_dynamic_entry(struct gt_object *object, const Elf64_Dyn *entry)
{
	struct gt_dynamic *dynamic = &object->dynamic;
	const uint64_t value = entry->d_un.d_val;

	switch (entry->d_tag) {
	case DT_STRTAB:
		dynamic->strtab = value;
		break;
	case DT_STRSZ:
		dynamic->strsz = value;
		break;
	case DT_SYMTAB:
		dynamic->symtab = value;
		break;
	case DT_HASH:
		dynamic->hash = value;
		break;
	case DT_GNU_HASH:
		dynamic->gnu_hash = value;
		break;
	case DT_VERSYM:
		dynamic->versym = value;
		break;
	case DT_RELA:
		dynamic->rela = value;
		break;
	case DT_RELASZ:
		dynamic->relasz = value;
		break;
	case DT_JMPREL:
		dynamic->jmprel = value;
		break;
	case DT_PLTRELSZ:
		dynamic->pltrelsz = value;
		break;
	case DT_RELR:
		dynamic->relr = value;
		break;
	case DT_RELRSZ:
		dynamic->relrsz = value;
		break;
	case DT_INIT:
		dynamic->init = value;
		break;
	case DT_FINI:
		dynamic->fini = value;
		break;
	case DT_FLAGS_1:
		dynamic->flags_1 = value;
		break;
	case DT_SONAME:
		dynamic->soname = value;
		dynamic->has_soname = true;
		break;
	case DT_RUNPATH:
		dynamic->runpath = value;
		dynamic->has_runpath = true;
		break;
	case DT_RPATH:
		dynamic->rpath = value;
		dynamic->has_rpath = true;
		break;
	case DT_NEEDED:
		object->needed_count++;
		break;
	default:
		break;
	}
}

static int load_dynamic(struct gt_object *object, const Elf64_Phdr *header,
			struct gt_message *message)
{
	const uint64_t count = header->p_filesz / sizeof(Elf64_Dyn);
	uint8_t *bytes = gt_object_copy_bytes(object, header->p_vaddr, header->p_filesz);
	Elf64_Dyn entry;

	if (bytes == NULL)
		return gt_fail(message, GT_EFORMAT,
			       "'%s': the dynamic section at 0x%llx (%llu bytes) is in no segment",
			       object->path, (unsigned long long)header->p_vaddr,
			       (unsigned long long)header->p_filesz);
	object->has_dynamic = true;
	for (uint64_t i = 0; i < count; i++) {
		memcpy(&entry, bytes + i * sizeof(entry), sizeof(entry));
		if (entry.d_tag == DT_NULL)
			break;
		take_dynamic_entry(object, &entry);
	}
	free(bytes);
	return 0;
}

/* After the symbols are there: the names of the needed libraries point into their strings. */
static int load_needed(struct gt_object *object, struct gt_message *message)
{
	const struct gt_symbol_table *table = &object->tables[1];
	uint32_t found = 0;

	if (!object->needed_count || table->strings == NULL) {
		object->needed_count = 0;
		return 0;
	}
	object->needed = calloc(object->needed_count, sizeof(*object->needed));
	if (object->needed == NULL)
		return gt_fail(message, GT_ENOMEM, "'%s': no memory", object->path);
	for (uint32_t i = 0; i < object->header.e_phnum; i++) {
		const Elf64_Phdr *header = &object->program_headers[i];
		uint8_t *bytes;

		if (header->p_type != PT_DYNAMIC)
			continue;
		bytes = gt_object_copy_bytes(object, header->p_vaddr, header->p_filesz);
		for (uint64_t at = 0; bytes != NULL && at + sizeof(Elf64_Dyn) <= header->p_filesz;
		     at += sizeof(Elf64_Dyn)) {
			Elf64_Dyn entry;

			memcpy(&entry, bytes + at, sizeof(entry));
			if (entry.d_tag == DT_NULL)
				break;
			if (entry.d_tag == DT_NEEDED && found < object->needed_count &&
			    entry.d_un.d_val < table->string_bytes)
				object->needed[found++] = table->strings + entry.d_un.d_val;
		}
		free(bytes);
		break;
	}
	object->needed_count = found;
	return 0;
}

/* The small segments: notes, the interpreter's name, the dynamic section. */
static int load_small(struct gt_object *object, const Elf64_Phdr *header,
		      struct gt_message *message)
{
	uint64_t count = header->p_filesz;
	uint8_t *bytes;

	if (header->p_type == PT_DYNAMIC)
		return object->has_dynamic ? 0 : load_dynamic(object, header, message);
	if (header->p_type == PT_NOTE
		    ? object->build_id_bytes != 0
		    : header->p_type != PT_INTERP || object->interpreter != NULL || !count ||
			      count > INTERPRETER_MAX)
		return 0;
	if (count > NOTES_MAX)
		count = NOTES_MAX;
	bytes = gt_object_copy_bytes(object, header->p_vaddr, count);
	if (bytes != NULL && header->p_type == PT_NOTE)
		take_build_id(object, bytes, count);
	else if (bytes != NULL)
		object->interpreter = strndup((const char *)bytes, count);
	free(bytes);
	return 0;
}

/* What there is before symbols. */
static int load_headers(struct gt_object *object, struct gt_message *message)
{
	const uint64_t head =
		object->size < sizeof(object->header) ? object->size : sizeof(object->header);
	int error;

	error = read_at(object, 0, &object->header, head, "the ELF header", message);
	if (error)
		return error;
	error = check_header(object, head, message);
	if (error)
		return error;
	error = load_segments(object, message);
	if (error)
		return error;
	error = load_sections(object, message);
	if (error)
		return error;
	for (uint32_t i = 0; !error && i < object->header.e_phnum; i++)
		error = load_small(object, &object->program_headers[i], message);
	return error;
}

int gt_object_load_all(struct gt_object *object, struct gt_message *message)
{
	int error = load_headers(object, message);

	if (error)
		return error;
	error = gt_object_load_symbols(object, message);
	if (error)
		return error;
	gt_object_load_debug_names(object);
	error = load_needed(object, message);
	if (error)
		return error;
	return gt_object_load_functions(object, message);
}

int gt_object_load_names_only(struct gt_object *object, struct gt_message *message)
{
	int error = load_headers(object, message);

	if (error)
		return error;
	gt_object_load_dynamic_strings(object);
	return load_needed(object, message);
}
