/* SPDX-License-Identifier: MIT */
/*
 * An object: one ELF64 x86-64 file (a program, a shared library, the dynamic loader), or its image
 * in memory, as far as tracing needs it: segments, build ID, needed libraries and, above all, its
 * functions. They come from .symtab, .dynsym, separate debug files (by build ID, below
 * /usr/lib/debug or $GRAFTRACE_DEBUG_DIRECTORY), .gnu_debugdata and the call frame information
 * (.eh_frame), so stripped files have them too. The content is hostile: every offset is checked,
 * nothing is mapped, and a file that changes while it is read gives an error, never a fault.
 *
 * Addresses are the object's own (p_vaddr, st_value). The address at run time is address + bias,
 * where bias is where the dynamic loader put it (0 for programs that are not PIE).
 *
 * Not thread-safe, but for different objects.
 */
#ifndef GT_ATTACH_OBJECT_H
#define GT_ATTACH_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>

enum gt_object_function_flag {
	GT_FUNCTION_SYMBOL = 1,	    /* a symbol names it */
	GT_FUNCTION_EXPORTED = 2,   /* in .dynsym */
	GT_FUNCTION_FRAME = 4,	    /* call frame information (an FDE) starts at it */
	GT_FUNCTION_FRAME_CFA8 = 8, /* ... whose first CFA is rsp + 8, as at any function's entry */
	GT_FUNCTION_IFUNC = 16, /* a resolver: called by the loader, before relocation is done */
	GT_FUNCTION_START = 32, /* _start, _init, _fini, crtstuff: runs outside the usual rules */
	/* A linkage stub, not a function; called as what it leads to, "puts", for people
	   "puts@plt". */
	GT_FUNCTION_PLT = 64,
	GT_FUNCTION_COLD = 128,		/* the cold part of another function, by its name */
	GT_FUNCTION_SIGNAL_FRAME = 256, /* a signal trampoline (__restore_rt) */
	GT_FUNCTION_SIZED = 512,  /* `bytes` is known, and not only the distance to the next */
	GT_FUNCTION_OCAML = 1024, /* OCaml's compiler made it, or it is its runtime's assembly */
};

/* Aliases are folded into one function. Sorted by address, no two with the same one. */
struct gt_object_function {
	uint64_t address;
	uint32_t bytes;	  /* up to the next function or the section's end where nothing says it */
	uint32_t flags;	  /* enum gt_object_function_flag */
	const char *name; /* as the linker knows it, without @version; "" if it has none */
};

struct gt_object_segment {
	uint64_t address; /* p_vaddr */
	uint64_t file_offset;
	uint64_t file_bytes; /* what the file really has of it */
	uint64_t memory_bytes;
	bool execute;
	bool write;
};

/* Reads exactly `bytes` at `offset`; 0, or a negative enum gt_error. For a memory image the
 * offset counts from the image's first byte. */
typedef int gt_object_read(void *data, uint64_t offset, void *buffer, size_t bytes);

struct gt_object;

/*
 * Opens a file. GT_ENOENT, GT_EPERM, GT_EIO: as the system says; GT_EFORMAT: no ELF file, or broken
 * at the byte that the message names; GT_ENOTSUP: a file of another machine, a script, a
 * relocatable file, a directory (the message says it); GT_ENOMEM.
 */
int gt_object_open(const char *path, struct gt_object **object, struct gt_message *message);
/* Reads only what tells which libraries it needs: its names and those of others, its search path,
 * its segments. There are no symbols, and no functions. The errors are gt_object_open's. */
int gt_object_open_names(const char *path, struct gt_object **object, struct gt_message *message);
/* As gt_object_open for bytes that come from elsewhere: `size` of them. memory: they are laid out as
 * segments in memory ([vdso], a deleted file), not as in a file. `path` is only for its name. */
int gt_object_open_read(const char *path, gt_object_read *read, void *data, uint64_t size,
			bool memory, struct gt_object **object, struct gt_message *message);
void gt_object_close(struct gt_object *object);

const char *gt_object_path(const struct gt_object *object);
/* DT_SONAME, else the last part of the path. */
const char *gt_object_soname(const struct gt_object *object);
/* 0 bytes: it has none. */
uint32_t gt_object_build_id(const struct gt_object *object, const uint8_t **build_id);
/* PT_INTERP, NULL: none. */
const char *gt_object_interpreter(const struct gt_object *object);
bool gt_object_is_loader(const struct gt_object *object); /* the dynamic loader itself */
bool gt_object_is_program(
	const struct gt_object *object);		 /* has an entry point and is no library */
bool gt_object_is_fixed(const struct gt_object *object); /* not position independent */

/* Whether it has functions that catch exceptions (C++, Rust). */
bool gt_object_catches(const struct gt_object *object);

uint32_t gt_object_needed_count(const struct gt_object *object);
const char *gt_object_needed(const struct gt_object *object, uint32_t index);
/* DT_RUNPATH, else DT_RPATH; NULL: none. *is_rpath tells which (may be NULL). */
const char *gt_object_runpath(const struct gt_object *object, bool *is_rpath);

/* Segments, in order of their addresses. */
uint32_t gt_object_segment_count(const struct gt_object *object);
const struct gt_object_segment *gt_object_segment(const struct gt_object *object, uint32_t index);
/* The `bytes` bytes that the file gives for this address, NULL: not all of them there. They belong
 * to the object and stay until it is closed. Segments are read at their first use. */
const uint8_t *gt_object_bytes(struct gt_object *object, uint64_t address, uint64_t bytes);
/* A copy of them, for the caller to free; no more is read than these. NULL: not all of them there,
 * or no memory. */
uint8_t *gt_object_copy_bytes(struct gt_object *object, uint64_t address, uint64_t bytes);
/* Address of the file's byte (for mappings of /proc/PID/maps). GT_ENOENT: in no segment. */
int gt_object_address_of_offset(const struct gt_object *object, uint64_t file_offset,
				uint64_t *address);

struct gt_object_section {
	const char *name;
	uint64_t address;
	uint64_t file_offset;
	uint64_t bytes;
	bool execute;
};
/* Sections that lie in memory (SHF_ALLOC); 0 of them where the file has no section headers. */
uint32_t gt_object_section_count(const struct gt_object *object);
const struct gt_object_section *gt_object_section(const struct gt_object *object, uint32_t index);
const struct gt_object_section *gt_object_section_named(const struct gt_object *object,
							const char *name);

/* The functions, sorted by address. */
uint32_t gt_object_function_count(const struct gt_object *object);
const struct gt_object_function *gt_object_function(const struct gt_object *object, uint32_t index);
/* Index of the function that the address lies in. GT_ENOENT: in none. */
int gt_object_function_at(const struct gt_object *object, uint64_t address, uint32_t *index);
/* Its name for people: demangled (C++, Rust), "object+0x1234" where it has none. Belongs to the
 * object, same pointer at each call. */
const char *gt_object_function_name(struct gt_object *object, uint32_t index);

/* Address of a defined symbol (any alias, the default version first). Data symbols too. GT_ENOENT.
 */
int gt_object_symbol(const struct gt_object *object, const char *name, uint64_t *address);
/* Each defined or undefined symbol of .symtab and .dynsym: calls back until it returns non-zero. */
struct gt_object_symbol {
	const char *name; /* without @version */
	uint64_t address; /* 0: undefined */
	uint64_t bytes;
	uint8_t type; /* STT_… */
	bool global;
	bool dynamic;
};
int gt_object_each_symbol(const struct gt_object *object,
			  int (*each)(void *data, const struct gt_object_symbol *symbol),
			  void *data);

/* Relocations of the dynamic section (RELA, JMPREL, RELR), whichever type. */
struct gt_object_relocation {
	uint64_t address; /* what is relocated */
	uint32_t type;	  /* R_X86_64_… */
	const char *name; /* of its symbol, "" none */
	uint64_t value;	  /* symbol's value + addend: the address that is stored, if the symbol is
			     ours */
	bool defined;	  /* the symbol is ours, or there is none */
};
int gt_object_each_relocation(struct gt_object *object,
			      int (*each)(void *data,
					  const struct gt_object_relocation *relocation),
			      void *data);

/* A linker's name demangled (C++, Rust legacy and v0), without the parameters, into malloc'ed
 * memory; NULL: not mangled. */
char *gt_object_demangle(const char *name);

#endif
