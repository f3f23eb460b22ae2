/* SPDX-License-Identifier: MIT */
/*
 * What the files of rows (control_SUBJECT.c) share: words and numbers as Linux reads them, values
 * made into the handle when it is opened, lists given a line at a time. Freestanding, reentrant: no locks but
 * those of the target's operations, which gt_row_get(), gt_row_set() and the names of folders call. A handle is one
 * thread's at a time.
 */
#ifndef GT_CORE_CONTROL_CONTROL_ROW_H
#define GT_CORE_CONTROL_CONTROL_ROW_H

#include "core/control/control.h"
#include "core/trace/message.h"

#define REFUSE(message, error, ...) (gt_message_set(message, __VA_ARGS__), (error))
#define COUNT(array)		    (sizeof(array) / sizeof((array)[0]))

/* A row; the rest by names of fields. */
#define ROW(path_, help_, kinds_, ...)                                           \
	{                                                                        \
		.path = (path_), .help = (help_), .kinds = (kinds_), __VA_ARGS__ \
	}

/* Bytes of the writer, for a message: not too many of them. */
#define SHOWN(bytes, count) (int)((count) < 80 ? (count) : 80), (bytes)

/* Appends to the handle's text. */
#define append(handle, ...)                               \
	((handle)->text_bytes +=                          \
	 gt_format((handle)->text + (handle)->text_bytes, \
		   sizeof((handle)->text) - (handle)->text_bytes, __VA_ARGS__))

size_t gt_row_length(const char *text); /* strlen */
bool gt_row_is_blank(char byte);	/* a NUL too: kernels' writers end with one */
/* Whether the bytes are that word and no more. */
bool gt_row_is_word(const char *bytes, size_t count, const char *word);
/* Takes blanks off both ends. */
void gt_row_strip(const char **bytes, size_t *count);

/* A whole number as the kernel's kstrtoul with base 10 reads it: a `+` may stand before it and one
 * line feed behind it, no blanks.
 * GT_ERANGE: it has more than 64 bits; GT_EINVAL: it is above `highest`, or no number. */
int gt_row_number(const char *bytes, size_t count, uint64_t highest, uint64_t *value,
		  struct gt_message *message);

/* Sets the message and returns GT_ENOTSUP: the target has no such operation. */
int gt_row_not_here(struct gt_message *message);

/* Get and set a number by the target's operation. GT_ENOTSUP: gt_row_not_here's; any other error of `get` is
 * GT_EGONE here, one of `set` is its own. */
int gt_row_get(struct gt_control_handle *handle, enum gt_control_value which, uint64_t *value,
	       struct gt_message *message);
int gt_row_set(struct gt_control_handle *handle, enum gt_control_value which, uint64_t value,
	       struct gt_message *message);

/* The `read` of rows whose `open` made handle->text. Returns the bytes given, 0 at the end; it cannot fail. */
int64_t gt_row_read_text(struct gt_control_handle *handle, char *buffer, size_t bytes,
			 struct gt_message *message);
/* The `write` of rows that ignore what is written (`echo > trace`): returns `count`. */
int64_t gt_row_write_nothing(struct gt_control_handle *handle, const char *bytes, size_t count,
			     struct gt_message *message);

/* A line made of up to six texts; NULL ends them. */
struct gt_row_line {
	const char *part[6];
};

/* Copies the rest of the line into the rest of the buffer, from *given on, which moves on. true: the line is
 * complete, and the handle is at the next one; false: the buffer is full. */
bool gt_row_give_line(struct gt_control_handle *handle, const struct gt_row_line *line,
		      char *buffer, size_t bytes, size_t *given);

/*
 * The next word of a list that is written: *word is [*word_bytes] the word, in the handle or in
 * `bytes`; *word_bytes 0: none yet (blanks, or a word that may go on in the next write). Returns
 * how many of `bytes` were taken, with one blank after the word as Linux does, or GT_EINVAL: too
 * long.
 */
int64_t gt_row_next_word(struct gt_control_handle *handle, const char *bytes, size_t count,
			 const char **word, size_t *word_bytes, struct gt_message *message);

/* Names of folders: the numbers of the threads that the target knows (or, where it has no such operation, that
 * its ring has), and of its view's CPUs. */
extern const struct gt_control_numbers gt_row_threads __attribute__((visibility("hidden")));
extern const struct gt_control_numbers gt_row_cpus __attribute__((visibility("hidden")));

/* Returns the scope of a row whose argument is enum GT_SCOPE_…: all, a thread or a CPU. */
struct gt_control_scope gt_row_scope(const struct gt_control_handle *handle);

#endif
