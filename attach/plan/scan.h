/* SPDX-License-Identifier: MIT */
/*
 * What an object's code and data say about its code: where branches, calls, pointers and jump
 * tables lead. A patch must not stand on a byte that something else jumps to, so this errs to the
 * careful side: data that is decoded as code only marks bytes that nobody will patch.
 */
#ifndef GT_ATTACH_SCAN_H
#define GT_ATTACH_SCAN_H

#include "attach/plan/instruction.h"
#include "attach/object/object.h"

/* Marks of a byte of code. */
enum gt_mark {
	GT_MARK_CALLED = 1,  /* a direct call leads here */
	GT_MARK_JUMPED = 2,  /* a direct jump of another function */
	GT_MARK_COND = 4,    /* a conditional jump of another function */
	GT_MARK_POINTED = 8, /* an address in data, a relocation, or taken by lea or an immediate */
	GT_MARK_TABLE = 16,  /* an entry of a jump table (so it seems) */
	GT_MARK_INNER = 32,  /* a jump of the same function */
	GT_MARK_WORD = 64,   /* with _POINTED: by a word of the data, or a relocation */
	GT_MARK_USED = 128,  /* a patch stands here */
};
#define GT_MARK_TARGET                                                                      \
	(GT_MARK_CALLED | GT_MARK_JUMPED | GT_MARK_COND | GT_MARK_POINTED | GT_MARK_TABLE | \
	 GT_MARK_INNER)

/* Functions of other objects (or of the C library in a static program) whose calls matter. */
enum gt_special {
	GT_SPECIAL_NONE = 0,
	GT_SPECIAL_MCOUNT,
	GT_SPECIAL_FENTRY,
	GT_SPECIAL_CYG_ENTER,
	GT_SPECIAL_CYG_EXIT,
	GT_SPECIAL_TSAN,  /* __tsan_func_entry: is told the return address, and only remembers it */
	GT_SPECIAL_TWICE, /* setjmp, vfork and their kind */
	GT_SPECIAL_CALLER, /* dlsym and its kind: they ask who called them */
};

/* A call or jump to one of them. */
struct gt_special_site {
	uint64_t address;
	uint8_t bytes;
	uint8_t special; /* enum gt_special */
	bool call;
};

/* A direct jump that leads near the start of a function: behind its first byte, or, of the function
 * itself, to it. */
struct gt_inward_jump {
	uint64_t target;
	uint64_t address;
	uint8_t bytes;
	uint8_t target_offset; /* of the displacement in the instruction */
	uint8_t target_bytes;
	bool own; /* of the function itself */
};
#define GT_INWARD_BYTES 32 /* how far behind the function's start */

struct gt_scan;

/* Cheap: knows the special functions, but not the code yet. */
int gt_scan_create(struct gt_object *object, struct gt_scan **scan, struct gt_message *message);
void gt_scan_destroy(struct gt_scan *scan);

const struct gt_object *gt_scan_object(const struct gt_scan *scan);

/* Reads all code and data, once; about 15 ms a megabyte of code. */
int gt_scan_all(struct gt_scan *scan, struct gt_message *message);
bool gt_scan_is_complete(const struct gt_scan *scan);

/*
 * A shorter way for few functions: tells for each of [address, address + 5) whether anything that
 * could be a branch leads behind its first byte. Looks at every byte of the code that could end a
 * branch's opcode, so it finds too much rather than too little; what it finds is looked at closely.
 * reached: count of them, filled.
 */
int gt_scan_some(struct gt_scan *scan, const uint64_t *addresses, uint32_t count, bool *reached,
		 struct gt_message *message);

/* The marks of one byte, of gt_scan_all; 0 outside of the code. */
uint8_t gt_scan_marks(const struct gt_scan *scan, uint64_t address);
/* All marks of [address, address + bytes) together. */
uint8_t gt_scan_marks_of(const struct gt_scan *scan, uint64_t address, uint64_t bytes);
/* Marks bytes as taken: padding, or code that a patch stands on; is kept when gt_scan_all comes
 * later. And the other way round, after gt_scan_all. */
void gt_scan_use(struct gt_scan *scan, uint64_t address, uint64_t bytes);
void gt_scan_give_back(struct gt_scan *scan, uint64_t address, uint64_t bytes);

/* What the target of a relative or rip-relative branch is: a special function itself, its linkage
 * stub, or its slot (for an indirect one). Works without gt_scan_all. */
enum gt_special gt_scan_special(struct gt_scan *scan, const struct gt_instruction *instruction);
/* Whether the object refers to this special function at all. */
bool gt_scan_has(const struct gt_scan *scan, enum gt_special special);

/* The sites in [start, end), sorted by address: *first is the index of the first; returns the
 * count. */
uint32_t gt_scan_sites(const struct gt_scan *scan, uint64_t start, uint64_t end,
		       const struct gt_special_site **first);
/* Those that lead to [start, end), sorted by target. */
uint32_t gt_scan_inward_jumps(const struct gt_scan *scan, uint64_t start, uint64_t end,
			      const struct gt_inward_jump **first);

/* Bytes of code in all. */
uint64_t gt_scan_code_bytes(const struct gt_scan *scan);
/* Bytes of code from the address up to the end of its section (or segment); NULL and 0: no code. */
const uint8_t *gt_scan_code(struct gt_scan *scan, uint64_t address, uint64_t *room);

#endif
