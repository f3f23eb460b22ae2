/* SPDX-License-Identifier: MIT */
/* See syscall_put.h. */
#include "read/syscall_put.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gt_syscall_put(struct gt_syscall_output *output, const char *format, ...)
{
	char text[256];
	va_list list;
	int bytes;

	va_start(list, format);
	bytes = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (bytes > (int)sizeof(text) - 1)
		bytes = (int)sizeof(text) - 1;
	if (bytes > output->end - output->at)
		bytes = (int)(output->end - output->at);
	if (bytes > 0) {
		memcpy(output->at, text, (size_t)bytes);
		output->at += bytes;
	}
}

void gt_syscall_put_quoted(struct gt_syscall_output *output, const char *text, size_t bytes,
			   bool cut)
{
	static const char letters[] = "tnvfr"; /* 9 … 13 */

	gt_syscall_put(output, "\"");
	for (size_t i = 0; i < bytes; i++) {
		const unsigned char c = (unsigned char)text[i];
		const bool digit = i + 1 < bytes && text[i + 1] >= '0' && text[i + 1] <= '7';

		if (c == '"' || c == '\\')
			gt_syscall_put(output, "\\%c", c);
		else if (c >= 9 && c <= 13)
			gt_syscall_put(output, "\\%c", letters[c - 9]);
		else if (c >= ' ' && c < 0x7f)
			gt_syscall_put(output, "%c", c);
		else
			gt_syscall_put(output, digit ? "\\%03o" : "\\%o", c);
	}
	gt_syscall_put(output, cut ? "\"..." : "\"");
}

const struct gt_syscall_word *gt_syscall_find(const struct gt_syscall_word *words, uint64_t value)
{
	for (; words != NULL && words->name != NULL; words++)
		if (words->value == value)
			return words;
	return NULL;
}

void gt_syscall_put_words(struct gt_syscall_output *output, const struct gt_syscall_words *words,
			  uint64_t value)
{
	const struct gt_syscall_word *number = gt_syscall_find(words->numbers, value & words->mask),
				     *flag;
	uint64_t rest = value;
	bool any = false;

	/* The name of the number; a name for "no flags at all" only if there are none. */
	if (number != NULL && (words->mask || !value)) {
		gt_syscall_put(output, "%s", number->name);
		rest &= ~words->mask;
		any = true;
	}
	for (flag = words->flags; flag != NULL && flag->name != NULL && rest; flag++) {
		if (!flag->value || (rest & flag->value) != flag->value)
			continue;
		gt_syscall_put(output, any ? "|%s" : "%s", flag->name);
		rest &= ~flag->value;
		any = true;
	}
	if (rest)
		gt_syscall_put(output, any ? "|0x%" PRIx64 : "0x%" PRIx64, rest);
	else if (!any)
		gt_syscall_put(output, "0");
}

void gt_syscall_put_signal(struct gt_syscall_output *output, uint64_t number)
{
	const char *name = number && number < 32 ? sigabbrev_np((int)number) : NULL;

	if (name != NULL)
		gt_syscall_put(output, "SIG%s", name);
	else if (number >= 32 && number <= 64)
		gt_syscall_put(output, "SIGRT_%" PRIu64, number - 32);
	else
		gt_syscall_put(output, "%" PRId32, (int32_t)number);
}

uint64_t gt_syscall_word_at(const char *bytes, size_t offset, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, bytes + offset, size);
	return value;
}
