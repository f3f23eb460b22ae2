/* SPDX-License-Identifier: MIT */
/*
 * Buffered bytes to a file descriptor: what the formats write through. Numbers and JSON strings are
 * written without printf, which would be most of the work of an export. The first failed write is kept: nothing
 * reaches the descriptor after it. One thread at a time, no locks; the descriptor is the caller's and is never closed.
 */
#ifndef GT_EXPORT_OUT_H
#define GT_EXPORT_OUT_H

#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>

#define GT_OUT_BYTES (256u << 10)

struct gt_out {
	int fd;		/* -1: the bytes stay in the buffer, which grows */
	int error;	/* errno of the first write that failed, ENOMEM of memory; 0 none */
	uint64_t bytes; /* given to write(2) so far, of those that succeeded */
	size_t used, room;
	char *buffer;
};

/* Begins to write to a descriptor, which stays the caller's. GT_ENOMEM: there is nothing to be freed. */
int gt_out_init(struct gt_out *out, int fd);
/* Begins to write to memory: `buffer` has the `used` bytes that were written, unless `error` is ENOMEM (then some are
 * missing). It stays `out`'s and moves when it grows. GT_ENOMEM: there is nothing to be freed. */
int gt_out_init_memory(struct gt_out *out);
/* Writes what is buffered; of memory, only looks at the error. GT_EIO once any write has failed (`error` says why), and
 * what was buffered is gone; GT_ENOMEM: memory was missing for some of the bytes. */
int gt_out_flush(struct gt_out *out);
/* Begins anew: empties the file, a regular one that was empty at first, or the memory, and forgets what is buffered and
 * the error. GT_EIO: the file cannot be emptied; `error` is set then. */
int gt_out_again(struct gt_out *out);
/* Frees the buffer; what was not flushed is gone. Once more, or after an error of init, it does nothing. */
void gt_out_fini(struct gt_out *out);

/* Where the next byte will stand, counted from the first that was written to `out`. Without meaning after an error. */
static inline uint64_t gt_out_position(const struct gt_out *out)
{
	return out->bytes + out->used;
}

/* The functions below write; they report no error, which gt_out_flush() and `error` do. Texts end with a zero byte. */

/* The cold half of gt_out_bytes(), which calls it where the buffer lacks room. */
void gt_out_bytes_slow(struct gt_out *out, const void *bytes, size_t count);

static inline void gt_out_bytes(struct gt_out *out, const void *bytes, size_t count)
{
	if (__builtin_expect(count > out->room - out->used, 0)) {
		gt_out_bytes_slow(out, bytes, count);
		return;
	}
	__builtin_memcpy(out->buffer + out->used, bytes, count);
	out->used += count;
}

static inline void gt_out_text(struct gt_out *out, const char *text)
{
	gt_out_bytes(out, text, __builtin_strlen(text));
}

static inline void gt_out_char(struct gt_out *out, char byte)
{
	gt_out_bytes(out, &byte, 1);
}

/* A character of a name that somebody else has chosen, for a terminal: '?' for one that could control it. */
static inline char gt_clean_char(char character)
{
	return (unsigned char)character < ' ' || character == 0x7f ? '?' : character;
}

/* A decimal number. */
void gt_out_number(struct gt_out *out, uint64_t number);
/* Nanoseconds as microseconds with three decimals: nothing is rounded. */
void gt_out_us(struct gt_out *out, uint64_t ns);
/* A string of JSON with its quotes; control characters are escaped, bytes that are no UTF-8 become U+FFFD. */
void gt_out_json(struct gt_out *out, const char *text);
/* A field of CSV (RFC 4180): quoted if it has a comma, a quote or a line end. All bytes stay. */
void gt_out_csv(struct gt_out *out, const char *text);
/* A field of ClickHouse's TabSeparated: backslashes, tabs and line feeds are escaped. */
void gt_out_tab_text(struct gt_out *out, const char *text);
/* Text of XML and HTML: <, >, &, " are escaped; bytes below 0x20, line ends too, and bad UTF-8 become U+FFFD. */
void gt_out_xml(struct gt_out *out, const char *text);
/* Formatted as by printf; a result of more than 4095 bytes is cut. */
void gt_out_printf(struct gt_out *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Length of the UTF-8 character that begins at `text`, 0 if none does (RFC 3629, section 4). The zero byte at the end of
 * a text is a character of one byte; nothing behind it is read. */
unsigned gt_utf8_length(const char *text);

#endif
