/* SPDX-License-Identifier: MIT */
/*
 * Symbol tables and relocations of an object. .symtab is found by its section header; .dynsym by
 * its own, or, where there are none (sstrip, images in memory), through the dynamic section, whose
 * hash tables say how many symbols there are.
 */
#include "attach/object/object_private.h"

#include <stdlib.h>
#include <string.h>
#include <libiberty/demangle.h>

#define VERSION_HIDDEN 0x8000

static void drop_table(struct gt_symbol_table *table)
{
	free(table->symbols);
	free(table->strings);
	free(table->versions);
	memset(table, 0, sizeof(*table));
}

/* A table by its section header. One that is broken is an error: names would be missing in silence.
 */
static int load_table(struct gt_object *object, const Elf64_Shdr *section,
		      struct gt_symbol_table *table, struct gt_message *message)
{
	const Elf64_Shdr *strings;
	void *loaded;
	int error;

	if (section->sh_link >= object->section_header_count ||
	    section->sh_entsize != sizeof(Elf64_Sym))
		return gt_fail(message, GT_EFORMAT,
			       "'%s': the symbol table at byte %llu has no strings (section "
			       "%u) or entries of %llu bytes",
			       object->path, (unsigned long long)section->sh_offset,
			       section->sh_link, (unsigned long long)section->sh_entsize);
	strings = &object->section_headers[section->sh_link];
	error = gt_object_load(object, section->sh_offset, section->sh_size, "the symbol table",
			       &loaded, message);
	if (error)
		return error;
	table->symbols = loaded;
	table->count = (uint32_t)(section->sh_size / sizeof(Elf64_Sym));
	error = gt_object_load(object, strings->sh_offset, strings->sh_size, "symbol names",
			       &loaded, message);
	if (error) {
		drop_table(table);
		return error;
	}
	table->strings = loaded;
	table->string_bytes = strings->sh_size;
	return 0;
}

static uint32_t word_at(struct gt_object *object, uint64_t address, bool *there)
{
	const uint8_t *bytes = gt_object_bytes(object, address, 4);
	uint32_t word = 0;

	if (bytes != NULL)
		memcpy(&word, bytes, 4);
	else
		*there = false;
	return word;
}

/* The GNU hash table names the last symbol only by the end of its chain. */
static uint32_t count_by_gnu_hash(struct gt_object *object)
{
	const uint64_t table = object->dynamic.gnu_hash;
	bool there = true;
	const uint32_t buckets = word_at(object, table, &there);
	const uint32_t first = word_at(object, table + 4, &there);
	const uint32_t bloom = word_at(object, table + 8, &there);
	const uint64_t bucket = table + 16 + (uint64_t)bloom * 8;
	const uint64_t chain = bucket + (uint64_t)buckets * 4;
	uint32_t last = 0;

	for (uint32_t i = 0; there && i < buckets; i++) {
		const uint32_t symbol = word_at(object, bucket + (uint64_t)i * 4, &there);

		if (symbol > last)
			last = symbol;
	}
	if (!there || last < first)
		return there ? first : 0;
	while (there && !(word_at(object, chain + (uint64_t)(last - first) * 4, &there) & 1))
		last++;
	return there ? last + 1 : 0;
}

void gt_object_load_dynamic_strings(struct gt_object *object)
{
	const struct gt_dynamic *dynamic = &object->dynamic;
	struct gt_symbol_table *table = &object->tables[1];

	if (!dynamic->strtab || !dynamic->strsz)
		return;
	table->strings = (char *)gt_object_copy_bytes(object, dynamic->strtab, dynamic->strsz);
	table->string_bytes = table->strings != NULL ? dynamic->strsz : 0;
}

static int load_dynamic_table(struct gt_object *object, struct gt_symbol_table *table,
			      struct gt_message *message)
{
	const struct gt_dynamic *dynamic = &object->dynamic;
	const uint8_t *symbols;
	bool there = true;
	uint32_t count;

	gt_object_load_dynamic_strings(object);
	if (table->strings == NULL)
		return 0;
	count = dynamic->hash ? word_at(object, dynamic->hash + 4, &there) : 0;
	if (!there || (!count && dynamic->gnu_hash))
		count = count_by_gnu_hash(object);
	symbols = dynamic->symtab && count ? gt_object_bytes(object, dynamic->symtab,
							     (uint64_t)count * sizeof(Elf64_Sym))
					   : NULL;
	if (symbols != NULL) {
		table->symbols = malloc((uint64_t)count * sizeof(Elf64_Sym));
		if (table->symbols == NULL)
			return gt_fail(message, GT_ENOMEM, "'%s': no memory for symbols",
				       object->path);
		memcpy(table->symbols, symbols, (uint64_t)count * sizeof(Elf64_Sym));
		table->count = count;
	}
	return 0;
}

int gt_object_load_symbols(struct gt_object *object, struct gt_message *message)
{
	int error;

	for (uint32_t i = 0; i < object->section_header_count; i++) {
		const Elf64_Shdr *section = &object->section_headers[i];
		struct gt_symbol_table *table = NULL;

		if (section->sh_type == SHT_SYMTAB)
			table = &object->tables[0];
		else if (section->sh_type == SHT_DYNSYM)
			table = &object->tables[1];
		if (table == NULL || table->symbols != NULL)
			continue;
		error = load_table(object, section, table, message);
		if (error)
			return error;
	}
	object->tables[1].dynamic = true;
	if (object->tables[1].strings == NULL && object->has_dynamic) {
		error = load_dynamic_table(object, &object->tables[1], message);
		if (error)
			return error;
	}
	if (object->tables[1].count && object->dynamic.versym) {
		struct gt_symbol_table *table = &object->tables[1];
		const uint8_t *versions =
			gt_object_bytes(object, object->dynamic.versym, (uint64_t)table->count * 2);

		if (versions != NULL) {
			table->versions = malloc((uint64_t)table->count * 2);
			if (table->versions == NULL)
				return gt_fail(message, GT_ENOMEM, "'%s': no memory for symbols",
					       object->path);
			memcpy(table->versions, versions, (uint64_t)table->count * 2);
		}
	}
	return 0;
}

void gt_object_free_symbols(struct gt_object *object)
{
	drop_table(&object->tables[0]);
	drop_table(&object->tables[1]);
}

static const char *symbol_name(const struct gt_symbol_table *table, const Elf64_Sym *symbol)
{
	return symbol->st_name < table->string_bytes ? table->strings + symbol->st_name : "";
}

/* Whether a symbol's name, without its @version, is `name`. */
static bool has_name(const char *symbol, const char *name)
{
	while (*name && *symbol == *name) {
		symbol++;
		name++;
	}
	return *name == 0 && (*symbol == 0 || *symbol == '@');
}

int gt_object_symbol(const struct gt_object *object, const char *name, uint64_t *address)
{
	int best = 0;

	for (int i = 1; i >= 0; i--) {
		const struct gt_symbol_table *table = &object->tables[i];

		for (uint32_t k = 0; k < table->count; k++) {
			const Elf64_Sym *symbol = &table->symbols[k];
			const char *is = symbol_name(table, symbol);
			int rank;

			if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS ||
			    *is != *name || !has_name(is, name) ||
			    ELF64_ST_TYPE(symbol->st_info) == STT_TLS)
				continue;
			rank = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL ? 1 : 2;
			if (rank == 2 && table->dynamic &&
			    !(table->versions != NULL && table->versions[k] & VERSION_HIDDEN))
				rank = 3;
			if (rank > best) {
				best = rank;
				*address = symbol->st_value;
			}
		}
	}
	return best ? 0 : GT_ENOENT;
}

int gt_object_each_symbol(const struct gt_object *object,
			  int (*each)(void *data, const struct gt_object_symbol *symbol),
			  void *data)
{
	int stop;

	for (int i = 0; i < 2; i++) {
		const struct gt_symbol_table *table = &object->tables[i];

		for (uint32_t k = 0; k < table->count; k++) {
			const Elf64_Sym *symbol = &table->symbols[k];
			const uint8_t type = ELF64_ST_TYPE(symbol->st_info);
			struct gt_object_symbol found;
			char plain[256];
			const char *version;

			if (type == STT_SECTION || type == STT_FILE || symbol->st_name == 0)
				continue;
			found.name = symbol_name(table, symbol);
			version = strchr(found.name, '@');
			if (version != NULL && (size_t)(version - found.name) < sizeof(plain)) {
				memcpy(plain, found.name, (size_t)(version - found.name));
				plain[version - found.name] = 0;
				found.name = plain;
			}
			found.address = symbol->st_shndx == SHN_UNDEF ? 0 : symbol->st_value;
			found.bytes = symbol->st_size;
			found.type = type;
			found.global = ELF64_ST_BIND(symbol->st_info) != STB_LOCAL;
			found.dynamic = table->dynamic;
			stop = each(data, &found);
			if (stop)
				return stop;
		}
	}
	return 0;
}

/* One table of RELA entries in memory. */
static int each_rela(struct gt_object *object, uint64_t address, uint64_t bytes,
		     int (*each)(void *, const struct gt_object_relocation *), void *data)
{
	const struct gt_symbol_table *table = &object->tables[1];
	const uint8_t *at = bytes ? gt_object_bytes(object, address, bytes) : NULL;
	int stop;

	for (uint64_t i = 0; at != NULL && i < bytes / sizeof(Elf64_Rela); i++) {
		struct gt_object_relocation found;
		uint32_t index;
		Elf64_Rela rela;

		memcpy(&rela, at + i * sizeof(rela), sizeof(rela));
		index = (uint32_t)ELF64_R_SYM(rela.r_info);
		found.address = rela.r_offset;
		found.type = (uint32_t)ELF64_R_TYPE(rela.r_info);
		found.name = "";
		found.value = (uint64_t)rela.r_addend;
		found.defined = true;
		if (index && index < table->count) {
			const Elf64_Sym *symbol = &table->symbols[index];

			found.name = symbol_name(table, symbol);
			found.defined = symbol->st_shndx != SHN_UNDEF;
			found.value += symbol->st_value;
		}
		stop = each(data, &found);
		if (stop)
			return stop;
	}
	return 0;
}

/* RELR: an even word is an address, an odd one a bitmap of the 63 words behind the last address. */
static int each_relr(struct gt_object *object,
		     int (*each)(void *, const struct gt_object_relocation *), void *data)
{
	const uint64_t bytes = object->dynamic.relrsz;
	const uint8_t *at = bytes ? gt_object_bytes(object, object->dynamic.relr, bytes) : NULL;
	struct gt_object_relocation found = { .type = R_X86_64_RELATIVE,
					      .name = "",
					      .defined = true };
	uint64_t next = 0;
	int stop;

	for (uint64_t i = 0; at != NULL && i < bytes / 8; i++) {
		uint64_t word, address = next;

		memcpy(&word, at + i * 8, 8);
		if (!(word & 1)) {
			address = word;
			next = word + 8;
			word = 3;
		} else {
			next += 63 * 8;
		}
		for (uint64_t bit = 1; bit < 64 && word >> bit; bit++, address += 8) {
			const uint8_t *value;

			if (!(word >> bit & 1))
				continue;
			value = gt_object_bytes(object, address, 8);
			if (value == NULL)
				continue;
			found.address = address;
			memcpy(&found.value, value, 8);
			stop = each(data, &found);
			if (stop)
				return stop;
		}
	}
	return 0;
}

int gt_object_each_relocation(struct gt_object *object,
			      int (*each)(void *data,
					  const struct gt_object_relocation *relocation),
			      void *data)
{
	const struct gt_dynamic *dynamic = &object->dynamic;
	int stop = 0;

	if (dynamic->rela || dynamic->jmprel || dynamic->relr) {
		stop = each_rela(object, dynamic->rela, dynamic->relasz, each, data);
		if (!stop && (dynamic->jmprel < dynamic->rela ||
			      dynamic->jmprel >= dynamic->rela + dynamic->relasz))
			stop = each_rela(object, dynamic->jmprel, dynamic->pltrelsz, each, data);
		return stop ? stop : each_relr(object, each, data);
	}
	/* A static program: its IFUNC relocations have a section only. */
	for (uint32_t i = 0; !stop && i < object->section_header_count; i++) {
		const Elf64_Shdr *section = &object->section_headers[i];

		if (section->sh_type == SHT_RELA && section->sh_flags & SHF_ALLOC)
			stop = each_rela(object, section->sh_addr, section->sh_size, each, data);
	}
	return stop;
}

char *gt_object_demangle(const char *name)
{
	char *plain;

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R'))
		return NULL;
	/* Rust's legacy names are C++ names with a hash at the end: rust_demangle takes that away.
	 */
	plain = rust_demangle(name, DMGL_NO_OPTS);
	return plain != NULL ? plain : cplus_demangle_v3(name, DMGL_NO_OPTS);
}
