/* SPDX-License-Identifier: MIT */
/*
 * The recording file, graftrace.data, as structures: doc/format.md is the specification, with the
 * rules for readers. Little endian; every structure starts at a multiple of 8 bytes of the file and
 * has no hidden padding. Written front to back:
 *
 *	file magic (16) | block | block | ... | END block
 *
 * and each block is a header (64 bytes), its payload and zero bytes to the next multiple of 8.
 */
#ifndef GRAFTRACE_FILE_H
#define GRAFTRACE_FILE_H

#include <stdint.h>
#include <graftrace/record.h>

#define GRAFTRACE_FILE_MAGIC	   "graftrace.data\n" /* 16 bytes with its zero byte */
#define GRAFTRACE_FILE_MAGIC_BYTES 16
#define GRAFTRACE_FILE_MAJOR	   1 /* readers refuse a higher one */
#define GRAFTRACE_FILE_MINOR	   4 /* readers read a higher one: what is new can be skipped */

#define GRAFTRACE_BLOCK_MAGIC 0x0a4b4c4254465247ull /* "GRFTBLK\n" */

/* No block may be longer, stored or decompressed; writers split what is. */
#define GRAFTRACE_BLOCK_MAX (64u << 20)
/* What decompresses may be longer than what is stored by at most this, so that a small file is
 * small work: a block's payload by the first ratio, the columns of a group together by the second.
 */
#define GRAFTRACE_EXPANSION_BASE    4096u
#define GRAFTRACE_EXPANSION_BLOCK   64u
#define GRAFTRACE_EXPANSION_COLUMNS 1024u

enum graftrace_block_type {
	GRAFTRACE_BLOCK_START = 1,	 /* the first: clock, machine, command line */
	GRAFTRACE_BLOCK_OPTIONS = 2,	 /* what the recording was asked for: strings */
	GRAFTRACE_BLOCK_OBJECT = 3,	 /* one object mapped in one process */
	GRAFTRACE_BLOCK_FUNCTIONS = 4,	 /* functions with consecutive numbers, of one object */
	GRAFTRACE_BLOCK_WRITERS = 5,	 /* writers: new, renamed, ended */
	GRAFTRACE_BLOCK_SUB_BUFFERS = 6, /* the trace */
	GRAFTRACE_BLOCK_END = 7,      /* the last: totals and losses. None: recording was killed */
	GRAFTRACE_BLOCK_SWITCHES = 8, /* threads' context switches; flag OPTIONAL */
	GRAFTRACE_BLOCK_KERNEL = 9,   /* of Linux, recorded beside; flag OPTIONAL */
	/* An event with fields, before the first record of it; flag OPTIONAL. */
	GRAFTRACE_BLOCK_EVENT = 15,
};

/* The whole payload is one zstd frame of raw_bytes (never in SUB_BUFFERS blocks). */
#define GRAFTRACE_BLOCK_ZSTD 1u
/* A reader that does not know this type may pass it over without a word. */
#define GRAFTRACE_BLOCK_OPTIONAL 2u

struct graftrace_block {
	uint64_t magic;		/* GRAFTRACE_BLOCK_MAGIC */
	uint64_t offset;	/* of this header in the file */
	uint64_t number;	/* of this block, from 0, without gaps */
	uint16_t type;		/* enum graftrace_block_type */
	uint16_t version;	/* of this type's payload: 1. Higher ones only add to its end */
	uint32_t flags;		/* GRAFTRACE_BLOCK_ZSTD ... */
	uint64_t payload_bytes; /* as stored, without the zero bytes behind it */
	uint64_t raw_bytes;	/* when decompressed; = payload_bytes if it is not compressed */
	uint32_t head_bytes;	/* of the payload's beginning that has its own checksum */
	uint32_t head_crc;	/* CRC-32C of those bytes */
	uint32_t body_crc;   /* CRC-32C of the rest of the payload and the zero bytes behind it */
	uint32_t header_crc; /* CRC-32C of the 60 bytes before this field */
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_block) == 64, "a block header is 64 bytes");

/* A string of a list: this, `bytes` bytes, a zero byte, zero bytes to a multiple of 8. */
struct graftrace_file_string {
	uint32_t tag;	/* enum graftrace_string_tag; unknown ones are skipped */
	uint32_t bytes; /* without the zero byte */
};

enum graftrace_string_tag {
	GRAFTRACE_STRING_ARGUMENT = 1,	/* of the command line, the program first */
	GRAFTRACE_STRING_PROGRAM = 2,	/* path of the program's file */
	GRAFTRACE_STRING_DIRECTORY = 3, /* where it was started */
	GRAFTRACE_STRING_SYSTEM = 4,	/* system, release and machine, as uname has them */
	GRAFTRACE_STRING_HOST = 5,	/* name of the machine */
	GRAFTRACE_STRING_CPU = 6,	/* model of the processor */
	GRAFTRACE_STRING_MADE_BY = 7,	/* program and version that wrote the file */
	GRAFTRACE_STRING_OPTION = 8,	/* name=value */
	GRAFTRACE_STRING_HISTS = 9,	/* system:name of an event, a line feed, and the text of its
					   histograms */
};

/* Time stamp counter to CLOCK_MONOTONIC: ns = ns_base + ((tsc - tsc_base) * mult >> shift), with
 * 128 bits in between. */
struct graftrace_file_clock {
	uint64_t tsc_base;
	uint64_t ns_base;
	uint64_t mult;
	uint32_t shift; /* < 64 */
	uint32_t reserved;
};

/* Payload of START; `string_bytes` bytes of strings follow. */
struct graftrace_file_start {
	uint32_t major;
	uint32_t minor;
	struct graftrace_file_clock clock;
	uint64_t realtime_ns;	   /* CLOCK_REALTIME at the start, since 1970 */
	uint32_t tracer;	   /* enum graftrace_tracer at the start */
	uint32_t cpu_count;	   /* of the machine; 0 unknown */
	uint32_t sub_buffer_bytes; /* largest sub-buffer, header included */
	uint32_t string_bytes;
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_file_start) == 64, "START is 64 bytes and strings");

/* Payload of OBJECT; the build ID and then the path follow, and a zero byte. */
struct graftrace_file_object {
	uint32_t pid;
	uint32_t build_id_bytes;
	uint64_t start; /* of its code in the process */
	uint64_t end;
	uint64_t bias; /* address in the process less address in the object's file */
	uint32_t path_bytes;
	uint32_t reserved;
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_file_object) == 40,
			"OBJECT is 40 bytes, build ID, path");

/* Payload of FUNCTIONS: this, `count` graftrace_file_function, `string_bytes` bytes of zero-ended
 * strings; the first string is the object's path. */
struct graftrace_file_functions {
	uint32_t pid;
	uint32_t first; /* number of the first one */
	uint32_t count;
	uint32_t string_bytes;
};

struct graftrace_file_function {
	uint64_t address; /* of its entry in the process */
	uint32_t size;	  /* bytes, 0 unknown */
	uint32_t name;	  /* offset in the strings; demangled */
};

/* Payload of WRITERS: this, `count` records of `record_bytes`; a later one of the same writer
 * replaces an earlier one. */
struct graftrace_file_writers {
	uint32_t count;
	uint32_t record_bytes;
};

struct graftrace_file_writer {
	uint32_t generation;
	uint32_t pid;
	uint32_t tid;
	uint32_t reserved;
	char comm[16];
	uint64_t next;	/* sub-buffers opened so far, those lost included */
	uint64_t start; /* tsc */
	uint64_t end;	/* tsc; 0 = it lives, or was killed */
	uint64_t lost[GRAFTRACE_LOST_CAUSES];
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_file_writer) == 120, "a writer is 120 bytes");

/*
 * Payload of SUB_BUFFERS. Head (head_bytes): this, `group_count` graftrace_file_group, then for
 * each group in order its `sub_buffer_count` graftrace_file_sub_buffer. Body: the groups' bytes,
 * one behind the other, each with its own checksum (body_crc of the block's header is zero).
 */
struct graftrace_file_sub_buffers {
	uint32_t group_count;
	uint32_t sub_buffer_count; /* of all groups */
	uint64_t reserved;
};

enum graftrace_file_encoding {
	/* For each sub-buffer: its header (128 bytes), its open calls (16 bytes each), its words.
	 */
	GRAFTRACE_ENCODING_PLAIN = 0,
	/* Codes, clock differences and the rest in columns, each of them perhaps a zstd frame. */
	GRAFTRACE_ENCODING_COLUMNS = 1,
};

/* Sub-buffers of one writer with consecutive sequences. */
struct graftrace_file_group {
	uint32_t generation;
	uint32_t sub_buffer_count; /* at least 1 */
	uint64_t first_sequence;
	uint32_t encoding;     /* enum graftrace_file_encoding */
	uint32_t stored_bytes; /* in the body, a multiple of 8 */
	uint32_t crc;	       /* CRC-32C of those bytes */
	uint32_t reserved;
};

struct graftrace_file_sub_buffer {
	uint64_t clock;	     /* tsc when it was opened */
	uint32_t words;	     /* that are stored, at most GRAFTRACE_WORDS_MAX */
	uint16_t open_calls; /* that are stored, at most GRAFTRACE_OPEN_CALLS */
	uint16_t reserved;
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_file_group) == 32, "a group is 32 bytes");
GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_file_sub_buffer) == 16, "a sub-buffer is 16 bytes");

#define GRAFTRACE_WORDS_MAX    (2u << 20) /* of a sub-buffer */
#define GRAFTRACE_HEADER_BYTES 128	  /* of a sub-buffer's header without its open calls */

enum graftrace_file_section {
	GRAFTRACE_SECTION_META = 0,	  /* the dictionary, and the headers of the sub-buffers */
	GRAFTRACE_SECTION_CODES = 1,	  /* one byte a word: which symbol */
	GRAFTRACE_SECTION_CLOCKS = 2,	  /* one byte a word: clock difference */
	GRAFTRACE_SECTION_CODE_EXTRA = 3, /* what did not fit in those bytes */
	GRAFTRACE_SECTION_CLOCK_EXTRA = 4,
	GRAFTRACE_SECTIONS = 5,
};

/* A group in columns begins with this; the sections follow, one behind the other, and zero bytes
 * to a multiple of 8. A section with stored = raw is as it is, any other is a zstd frame. */
struct graftrace_file_columns {
	struct {
		uint32_t stored_bytes;
		uint32_t raw_bytes;
	} section[GRAFTRACE_SECTIONS];
};

/* META: this, `symbol_count` 64-bit values, `symbol_count` bytes of kinds and zero bytes to a
 * multiple of 8, then for each sub-buffer a graftrace_file_extent, its header (128 bytes) and its
 * open calls (16 bytes each). */
struct graftrace_file_meta {
	uint32_t symbol_count; /* at most GRAFTRACE_SYMBOLS_MAX */
	uint32_t reserved;
};

/* A sub-buffer's part of the two columns whose length is not its number of words. */
struct graftrace_file_extent {
	uint32_t code_extra_bytes;
	uint32_t clock_extra_bytes;
};

enum graftrace_file_symbol {
	GRAFTRACE_SYMBOL_ENTRY = 0,  /* value | clock; the value with R set goes on the stack */
	GRAFTRACE_SYMBOL_RETURN = 1, /* value | clock; takes one off the stack */
	GRAFTRACE_SYMBOL_WORD = 2,   /* the value as it is */
};

/*
 * Codes: 0 the return that the stack's top says (value | clock; takes it off); 1 ... 207 symbol
 * code - 1; 208 ... 254 one byte of CODE_EXTRA, symbol 207 + (code - 208) * 256 + byte; 255 eight
 * bytes of CODE_EXTRA: the word as it is.
 */
#define GRAFTRACE_CODE_RETURN 0
#define GRAFTRACE_CODE_LONG   208
#define GRAFTRACE_CODE_WORD   255
#define GRAFTRACE_SYMBOLS_MAX (207 + 47 * 256)
#define GRAFTRACE_CODE_STACK  1024 /* the stack is a ring of this many values */

/*
 * Clock codes: differences to the clock of the last word that had one (modulo 2^32). 0 ... 191 the
 * difference; 192 ... 239 one byte of CLOCK_EXTRA, 192 + (code - 192) * 256 + byte; 240 ... 254
 * two, 12480 + (code - 240) * 65536 + bytes; 255 four: the difference. Words without a clock have
 * code 0.
 */
#define GRAFTRACE_CLOCK_SHORT  192
#define GRAFTRACE_CLOCK_MEDIUM 240
#define GRAFTRACE_CLOCK_FULL   255
#define GRAFTRACE_CLOCK_BASE1  192u
#define GRAFTRACE_CLOCK_BASE2  12480u

/* Payload of SWITCHES: this, `count` records of `record_bytes`, in order of their clocks. One
 * without records says that switches were watched. */
struct graftrace_file_switches {
	uint32_t count;
	uint32_t record_bytes;
	uint64_t start; /* tsc since when all switches are there … */
	uint64_t lost;	/* … but for so many, until now */
};

struct graftrace_file_switch {
	uint64_t clock; /* tsc, less that of the record before in this block (the first: itself) */
	uint32_t tid;
	uint16_t cpu;
	uint16_t flags; /* 1: off the CPU, else on it again; 2: with 1, it would have gone on */
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_file_switch) == 16, "a switch is 16 bytes");

/* Payload of KERNEL: this, `name_bytes` bytes of a zero-ended name, then `bytes` bytes. */
struct graftrace_file_kernel {
	uint32_t kind; /* enum graftrace_file_kernel_kind */
	uint32_t cpu;  /* of PAGES */
	uint32_t name_bytes;
	uint32_t reserved;
	uint64_t bytes;
};

enum graftrace_file_kernel_kind {
	/* Pages of a CPU's ring as trace_pipe_raw gives them, the oldest first. */
	GRAFTRACE_KERNEL_PAGES = 1,
	/* A whole file: its name below tracefs, or kallsyms. */
	GRAFTRACE_KERNEL_FILE = 2,
	/* PAGES, packed: graftrace_file_pages and what follows it. Since minor version 4. */
	GRAFTRACE_KERNEL_PACKED_PAGES = 3,
	/* Several whole files: of each a graftrace_file_kernel_file, its name, its bytes. Since minor
	 * version 4. */
	GRAFTRACE_KERNEL_FILES = 4,
};

struct graftrace_file_kernel_file {
	uint32_t name_bytes; /* with its zero */
	uint32_t bytes;
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_file_kernel) == 24, "KERNEL is 24 bytes and more");

/* Bytes of PACKED_PAGES: this, `classes` graftrace_file_page_class, a byte for each code, EXTRA, CLOCKS,
 * then the columns of the first class, of the second … */
struct graftrace_file_pages {
	uint32_t page_bytes;
	uint32_t pages;
	uint32_t classes;
	uint32_t codes;
	uint32_t extra_bytes;
	uint32_t clock_bytes;
};

/* Records of one length. Codes below GRAFTRACE_PAGE_RAW are the numbers of these. */
struct graftrace_file_page_class {
	uint32_t type;	 /* the low five bits of the records' heads: 1 ... 28, or 0 */
	uint32_t length; /* of type 0: the word behind the head; else 0 */
	uint32_t rows;	 /* the number of its records */
	uint32_t reserved;
};

#define GRAFTRACE_PAGE_MIN     64u /* bytes of a page … */
#define GRAFTRACE_PAGE_MAX     65536u
#define GRAFTRACE_PAGE_CLASSES 250u /* at most */
#define GRAFTRACE_PAGE_RAW     254u /* bytes as they stand: EXTRA has a u32 length, and them */
#define GRAFTRACE_PAGE_NEXT    255u /* a page begins: EXTRA has its first 16 bytes */

/* Eight bytes (the last ones: four, if the data's length is no multiple of eight) of all records of a
 * class: this, then `bytes` bytes. */
struct graftrace_file_page_column {
	uint32_t values; /* in the column's dictionary; 0: it has differences */
	uint32_t bytes;
};

/* Payload of EVENT: this, `field_count` graftrace_file_event_field, `string_bytes` bytes of
 * zero-ended strings, in which the others are offsets. */
struct graftrace_file_event {
	uint32_t number;      /* in records, see GRAFTRACE_EVENT_PROBE */
	uint32_t field_count; /* at most GRAFTRACE_PROBE_FIELDS */
	uint64_t address;     /* where it stands in the process's code, 0 unknown */
	uint32_t system;
	uint32_t name;
	uint32_t object; /* path of the object it lies in */
	uint32_t string_bytes;
};

struct graftrace_file_event_field {
	uint32_t name;
	uint32_t type;	/* as C has it, for people */
	uint16_t bytes; /* 1, 2, 4, 8: of the word that the record has of it; of a string 8 */
	uint16_t flags; /* GRAFTRACE_FIELD_… */
	uint8_t show; /* enum graftrace_file_event_show; of a call's value enum graftrace_value_kind */
	uint8_t count;	/* elements of an array, the word is as a string's; 0: it is none */
	uint16_t print; /* of the first field: how the event is printed (event_kernel.h), a string;
			 * 0: as "field=value …". Of the others 0 */
};

/* How a number is printed. */
enum graftrace_file_event_show {
	GRAFTRACE_SHOW_AS_TYPE = 0, /* as its C type says: addresses and u64 in hex */
	GRAFTRACE_SHOW_DECIMAL = 1,
	GRAFTRACE_SHOW_HEX = 2,
	GRAFTRACE_SHOW_CHAR = 3,
	GRAFTRACE_SHOW_SYMBOL = 4, /* an address in code */
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_file_event) == 32, "EVENT is 32 bytes, fields");
GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_file_event_field) == 16, "a field is 16 bytes");

/* Payload of END. */
struct graftrace_file_end {
	uint64_t words;	      /* records in the file's sub-buffers as the recorder counted them */
	uint64_t calls;	      /* entries among them */
	uint64_t sub_buffers; /* in the file */
	uint64_t ns;	      /* from start to end */
	uint32_t threads;
	uint32_t processes;
	int32_t exit_status;		      /* of the program, as waitpid gives it */
	uint32_t functions;		      /* in the file */
	uint64_t lost[GRAFTRACE_LOST_CAUSES]; /* all in all */
	struct graftrace_file_clock clock;    /* as in START, or measured over the whole run */
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_file_end) == 144, "END is 144 bytes");

#endif
