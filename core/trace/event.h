/* SPDX-License-Identifier: MIT */
/*
 * What is known of an event with fields (GRAFTRACE_EVENT_PROBE), and its fields out of a record.
 * Freestanding, reentrant, no locks; records are hostile, formats were checked. gt_event_put_named() and
 * gt_target_put_values() call operations of the target's names. Nothing here fails. Each ..._put_...() writes at most
 * `room` bytes at `at`, without a zero byte, and returns where its text ends; what has no room is left out.
 */
#ifndef GT_CORE_TRACE_EVENT_H
#define GT_CORE_TRACE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/record.h>

/* How a number is printed. */
enum gt_event_show {
	GT_SHOW_AS_TYPE = 0, /* as its C type says: addresses and u64 in hex */
	GT_SHOW_DECIMAL = 1,
	GT_SHOW_HEX = 2,
	GT_SHOW_CHAR = 3,
	GT_SHOW_SYMBOL = 4, /* an address in code */
	GT_SHOWS,
};

struct gt_event_field {
	const char *name;
	/* As C has it, for people. Behind that of an enumeration its names: "enum e {A=0,B=1}". */
	const char *type;
	uint8_t bytes; /* 1, 2, 4, 8; of a string's address 8 */
	bool is_signed;
	bool is_string;
	bool is_float;
	uint8_t show;  /* enum gt_event_show */
	uint8_t count; /* elements of an array, of strings too; 0: it is none */
	uint8_t kind;  /* of a call's value: enum graftrace_value_kind */
};

/* The system of events that histograms make (synthetic.h). They are shown as Linux shows them: strings without
 * quotation marks. */
#define GT_EVENT_SYNTHETIC "synthetic"

/* What tracefs shows as the event's number: Linux' own are below. */
#define GT_EVENT_FIRST_ID 1000u

/* The strings belong to the target, and live as long as it does. */
struct gt_event_format {
	uint32_t number; /* in records */
	uint32_t field_count;
	uint64_t address; /* where it stands in the process's code, 0 unknown */
	const char *system;
	const char *name;
	const char *object; /* path of the object it lies in, "" unknown */
	const char *print;  /* as GRAFTRACE_EVENT_PRINTED has it; NULL: "field=value …" */
	struct gt_event_field fields[GRAFTRACE_PROBE_FIELDS];
};

/* The value of a field. */
enum gt_event_value_kind {
	GT_EVENT_FAULT = 0,  /* it could not be read, or is not there */
	GT_EVENT_NUMBER = 1, /* number, with its sign as the field says */
	GT_EVENT_STRING = 2, /* text, text_bytes */
	GT_EVENT_ARRAY =
		4, /* text, text_bytes: elements of field.bytes, or texts with their zeros */
	GT_EVENT_FRACTION = 3, /* number: the bits of a float (4 bytes) or a double */
};

struct gt_event_value {
	enum gt_event_value_kind kind;
	uint32_t text_bytes;
	uint64_t number;
	const char *text; /* in the record */
};

/* Whether the two have one system and name, and fields of the same names, types, looks (`show`) and counts in the same
 * order. */
bool gt_event_is_same_format(const struct gt_event_format *a, const struct gt_event_format *b);

/* Whether one word of a list names the event: "system:name", each a glob, or a system or a name
 * alone; an empty part is any. */
bool gt_event_word_matches(const char *word, const char *system, const char *name);

/* A word "WORD:mod:OBJECT": the path has the object as its last part, and the word before matches. "": any
 * event. False of other words. */
#define GT_EVENT_IN ":mod:"
bool gt_event_word_in(const char *word, const char *object, const char *system, const char *name);

/* Whether a list of such words, each with a '!' before it or without, names the event: the last word that
 * matches it decides. words: NULL-terminated; NULL: none. object: the path of the event's, "" unknown; words
 * may be as of gt_event_word_in(). otherwise: the answer if no word matches it. */
bool gt_event_words_match(const char *const *words, const char *system, const char *name,
			  const char *object, bool otherwise);

/* Whether it is the event of <graftrace/mark.h>, which is recorded without being asked for. */
bool gt_event_is_mark(const char *system, const char *name);

/* What the first fields of a dynamic probe's event are called: the place; of a function's return the
 * function, and where it has returned to. */
#define GT_EVENT_PROBE_IP   "__probe_ip"
#define GT_EVENT_PROBE_FUNC "__probe_func"
#define GT_EVENT_RETURN_IP  "__probe_ret_ip"
/* How many of them the event has: 0, 1 or 2. Linux prints them in brackets. */
uint32_t gt_event_hidden_fields(const struct gt_event_format *format);

/* Which event of a program's system calls a format is of (event_syscall.c). */
enum gt_event_call {
	GT_EVENT_NO_CALL = 0,
	GT_EVENT_ENTER,
	GT_EVENT_EXIT,
	GT_EVENT_RAW_ENTER, /* of raw_syscalls: each call's */
	GT_EVENT_RAW_EXIT,
};

enum gt_event_call gt_event_call_of(const struct gt_event_format *format);

/* The index of the field with the text or the bytes that the call's argument leads to, which is called
 * "__ARGUMENT_val". 0: there is none (field 0 is the call's number). */
uint32_t gt_event_field_behind(const struct gt_event_format *format, const char *argument);

struct gt_record;

/* Sets *value to field `index` of the record, an EVENT; GT_EVENT_FAULT where there is no such field. A text points into the
 * record's. */
void gt_event_value(const struct gt_event_format *format, const struct gt_record *record,
		    uint32_t index, struct gt_event_value *value);

/* What people see of an event: "NAME: name=value name=value", of a mark its text alone and ": value". with_system:
 * "SYSTEM:NAME". */
char *gt_event_put(const struct gt_event_format *format, const struct gt_record *record,
		   bool with_system, char *at, size_t room);

/* The same, with functions named: values that are `symbol`s and, of a kernel, where a dynamic probe has happened, as
 * Linux prints those of kprobes. Of a program that place is a number, as of uprobes. target: who knows the functions; NULL:
 * they are numbers. pid: of the process that the event is of. */
#define GT_EVENT_KERNEL "kernel" /* a kernel's own object */
struct gt_target;
char *gt_event_put_named(const struct gt_event_format *format, const struct gt_record *record,
			 bool with_system, struct gt_target *target, uint32_t pid, char *at,
			 size_t room);

/* "name=value name=value" for people, as Linux prints fields; of a format with a `print`, what that says. What could steer
 * a terminal becomes '?'. */
#define GT_EVENT_TEXT_MAX 1024
char *gt_event_put_fields(const struct gt_event_format *format, const struct gt_record *record,
			  char *at, size_t room);

/* What an event says by its `print`, which must not be NULL, and the same text for Linux's format files
 * (event_print.c). */
char *gt_event_put_printed(const struct gt_event_format *format, const struct gt_record *record,
			   char *at, size_t room);
char *gt_event_put_printed_format(const struct gt_event_format *format, char *at, size_t room);

/* Sets *format to that of a kernel's static event, whose strings it keeps. Fields beyond GRAFTRACE_PROBE_FIELDS are left
 * out. */
struct graftrace_kernel_event;
void gt_event_of_kernel(const struct graftrace_kernel_event *event, struct gt_event_format *format);

/* A field's value by itself, in quotes if it is a text; "(fault)". */
char *gt_event_put_value(const struct gt_event_field *field, const struct gt_event_value *value,
			 char *at, size_t room);

/* Who knows the function that begins at an address: its name, which must stay until the next call, or NULL. */
struct gt_event_names {
	const char *(*at)(void *data, uint64_t address);
	void *data;
};

/* A function's arguments as Linux's function tracers print them since 6.15, "a=1, b=0x2"; or its result,
 * without a name. record: as gt_record_values() makes it. hex: numbers as such (options/funcgraph-retval-hex). names: may
 * be NULL. */
char *gt_event_put_values(const struct gt_event_format *format, const struct gt_record *record,
			  const struct gt_event_names *names, bool hex, char *at, size_t room);

/* The same of a call's record (an entry, a return), with what its target knows. pid: whose it is.
 * NULL: it has no values, or nobody knows what they are. */
#define GT_VALUES_TEXT_MAX 1000
struct gt_target;
char *gt_target_put_values(struct gt_target *target, uint32_t pid, const struct gt_record *record,
			   bool hex, char *at, size_t room);

/* The printf text of Linux's format files, `"…", REC->a, REC->b`. */
char *gt_event_put_print_format(const struct gt_event_format *format, char *at, size_t room);

#endif
