/* SPDX-License-Identifier: MIT */
/*
 * What the files of the object reader share: object.c (an object's life), object_load.c (headers,
 * segments, sections, dynamic section), object_symbols.c (symbols and relocations), object_frames.c (call frame information) and
 * object_functions.c (the list of functions).
 */
#ifndef GT_ATTACH_OBJECT_PRIVATE_H
#define GT_ATTACH_OBJECT_PRIVATE_H

#include <elf.h>
#include <stdint.h>
#include "core/trace/message.h"
#include "attach/object/object.h"

#define GT_OBJECT_PART_MAX (1ull << 32) /* largest segment or table that is taken */

struct gt_segment_bytes {
	uint8_t *bytes; /* NULL: not read yet */
	bool failed;	/* reading was tried and failed */
};

struct gt_symbol_table {
	Elf64_Sym *symbols;
	uint32_t count;
	char *strings; /* string_bytes of them and a zero byte behind */
	uint64_t string_bytes;
	uint16_t *versions; /* .dynsym: DT_VERSYM, NULL none */
	bool dynamic;
};

/* The dynamic section's entries that matter; addresses, 0: not there. */
struct gt_dynamic {
	uint64_t strtab, strsz, symtab, hash, gnu_hash, versym;
	uint64_t rela, relasz, jmprel, pltrelsz, relr, relrsz;
	uint64_t init, fini, soname, runpath, rpath, flags_1;
	bool has_soname, has_runpath, has_rpath;
};

/* One FDE. */
struct gt_frame {
	uint64_t address;
	uint64_t bytes;
	bool cfa8;   /* its first CFA is rsp + 8 */
	bool signal; /* augmentation 'S' */
};

struct gt_frames {
	struct gt_frame *frames; /* sorted by address */
	uint32_t count;
	bool catches; /* one of the functions catches exceptions */
};

struct gt_object {
	char *path;
	gt_object_read *read;
	void *read_data;
	uint64_t size; /* bytes that can be read */
	int fd;	       /* of our own, -1 none */
	bool memory;

	Elf64_Ehdr header;
	Elf64_Phdr *program_headers;
	struct gt_object_segment *segments;
	struct gt_segment_bytes *segment_bytes;
	uint32_t segment_count;
	uint64_t span_start;

	Elf64_Shdr *section_headers;
	uint32_t section_header_count;
	char *section_names;
	uint64_t section_names_bytes;
	struct gt_object_section *sections; /* the allocated ones */
	uint32_t section_count;

	bool has_dynamic;
	struct gt_dynamic dynamic;
	const char **needed; /* in the dynamic string table */
	uint32_t needed_count;
	char *interpreter;
	uint8_t build_id[64];
	uint32_t build_id_bytes;

	struct gt_symbol_table tables[2]; /* .symtab, .dynsym */

	struct gt_object_function *functions;
	uint32_t function_count;
	bool catches;		       /* one of them catches exceptions */
	char **names;		       /* demangled, filled as asked for */
	char *strings;		       /* names without @version */
	struct gt_object_notes *notes; /* static probes; NULL: not read yet */
};

/* Reads into new memory (one zero byte behind it), checked against the file's size. what: for the
 * message. */
int gt_object_load(struct gt_object *object, uint64_t offset, uint64_t bytes, const char *what,
		   void **result, struct gt_message *message);

/* object_load.c: all there is, for gt_object_open … */
int gt_object_load_all(struct gt_object *object, struct gt_message *message);
/* … and the names of libraries, and no symbol. */
int gt_object_load_names_only(struct gt_object *object, struct gt_message *message);

/* object_symbols.c: fills object->tables. */
int gt_object_load_symbols(struct gt_object *object, struct gt_message *message);
void gt_object_free_symbols(struct gt_object *object);
/* Only the strings of tables[1], by the dynamic section; none where that has none. */
void gt_object_load_dynamic_strings(struct gt_object *object);

/* object_debug.c: fills tables[0] of a stripped object, if names of it can be had elsewhere. */
void gt_object_load_debug_names(struct gt_object *object);

/* object_frames.c: all FDEs; an object without any has none and that is no error. Records that make
 * no sense end the reading there: what came before is given. */
int gt_object_load_frames(struct gt_object *object, struct gt_frames *frames,
			  struct gt_message *message);

/* object_functions.c: fills object->functions. */
int gt_object_load_functions(struct gt_object *object, struct gt_message *message);

/* object_probes.c */
void gt_object_free_notes(struct gt_object *object);

/* Whether the address lies in an executable segment, and how many bytes the file has from there. */
uint64_t gt_object_code_bytes_at(const struct gt_object *object, uint64_t address);

#endif
