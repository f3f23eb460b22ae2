/* SPDX-License-Identifier: MIT */
/*
 * Writing numbers and words into a text buffer, by hand: each returns where the next byte goes. The
 * caller has made sure that there is room. Private to the text*.c files.
 */
#ifndef GT_CORE_TEXT_TEXT_WRITE_H
#define GT_CORE_TEXT_TEXT_WRITE_H

#include <stdint.h>
#include <stddef.h>

#define GT_PUT_LITERAL(at, literal) \
	(__builtin_memcpy((at), (literal), sizeof(literal) - 1), (at) + sizeof(literal) - 1)

static inline char *gt_put_fill(char *at, char c, size_t count)
{
	while (count--)
		*at++ = c;
	return at;
}

/* Room for 7 bytes more than `length` is needed: short texts are copied in words. */
static inline char *gt_put_bytes(char *at, const char *from, size_t length)
{
	for (size_t i = 0; i < length; i++)
		at[i] = from[i];
	return at + length;
}

static inline unsigned gt_digits(uint64_t value)
{
	unsigned digits = 1;
	while (value >= 10) {
		value /= 10;
		digits++;
	}
	return digits;
}

static inline char *gt_put_number(char *at, uint64_t value)
{
	char *end = at + gt_digits(value);
	for (char *p = end; p > at; value /= 10)
		*--p = (char)('0' + value % 10);
	return end;
}

/* Exactly `digits` digits, zeros in front. */
static inline char *gt_put_padded(char *at, uint64_t value, unsigned digits)
{
	for (unsigned i = digits; i-- > 0; value /= 10)
		at[i] = (char)('0' + value % 10);
	return at + digits;
}

/* At least `width` bytes, blanks in front. */
static inline char *gt_put_right(char *at, uint64_t value, unsigned width)
{
	unsigned digits = gt_digits(value);
	if (digits < width)
		at = gt_put_fill(at, ' ', width - digits);
	return gt_put_number(at, value);
}

static inline char *gt_put_hex(char *at, uint64_t value, unsigned digits_least)
{
	unsigned digits = 1;
	while (digits < 16 && value >> (4 * digits))
		digits++;
	if (digits < digits_least)
		digits = digits_least;
	for (unsigned i = digits; i-- > 0;)
		*at++ = "0123456789abcdef"[value >> (4 * i) & 15];
	return at;
}

/* Text that may have anything in it, as one line: control characters become '?'. */
static inline char *gt_put_clean(char *at, const char *from, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)from[i];
		*at++ = (char)(c < ' ' || c == 0x7f ? '?' : c);
	}
	return at;
}

/* Length of a text in a field of `room` bytes that may lack its NUL. */
static inline size_t gt_text_length(const char *text, size_t room)
{
	size_t length = 0;
	while (length < room && text[length])
		length++;
	return length;
}

#endif
