/* SPDX-License-Identifier: MIT */
/*
 * Parsing of values on the command line. Guarantees: an overflow is an error, text after a value is
 * an error, and there is no floating point (1.1ms is exactly 1100000 ns).
 */
#include "cli/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/trace/message.h"

/* Reads digits; false if there are none or too many. */
static int take_digits(const char **text, uint64_t *number)
{
	uint64_t value = 0;
	const char *at = *text;

	while (*at >= '0' && *at <= '9') {
		uint64_t digit = (uint64_t)(*at - '0');

		if (value > (UINT64_MAX - digit) / 10)
			return 0;
		value = value * 10 + digit;
		at++;
	}
	if (at == *text)
		return 0;
	*text = at;
	*number = value;
	return 1;
}

int gt_value_size(const char *text, uint64_t *bytes, struct gt_message *message)
{
	static const char units[] = "kmgt";
	const char *at = text;
	uint64_t value;
	unsigned shift = 0;
	const char *unit;

	if (!take_digits(&at, &value))
		goto wrong;
	if (*at != '\0' && (unit = strchr(units, *at | 0x20)) != NULL && *unit != '\0') {
		shift = 10 * (unsigned)(unit - units + 1);
		at++;
		if (*at == 'i' && at[1] == 'B')
			at++;
	}
	if (*at == 'B')
		at++;
	if (*at != '\0' || value == 0 || value > UINT64_MAX >> shift)
		goto wrong;
	*bytes = value << shift;
	return 0;

wrong:
	return gt_fail(message, GT_EINVAL,
		       "'%.80s' is not a size: use a number of bytes, such as 512k, 64M or 1G",
		       text);
}

int gt_value_time(const char *text, uint64_t unit_ns, uint64_t *ns, struct gt_message *message)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "ns", 1 },
		      { "us", 1000 },
		      { "ms", 1000 * 1000 },
		      { "s", 1000 * 1000 * 1000 },
		      { "m", UINT64_C(60) * 1000 * 1000 * 1000 },
		      { "min", UINT64_C(60) * 1000 * 1000 * 1000 },
		      { "h", UINT64_C(3600) * 1000 * 1000 * 1000 } };
	const char *at = text;
	const char *fraction;
	uint64_t whole;
	uint64_t part = 0;
	uint64_t unit = unit_ns;

	if (!take_digits(&at, &whole))
		goto wrong;
	fraction = at;
	if (*at == '.') {
		at++;
		while (*at >= '0' && *at <= '9')
			at++;
		if (at == fraction + 1)
			goto wrong;
	}
	if (*at != '\0') {
		size_t i = 0;

		while (i < sizeof(units) / sizeof(units[0]) && strcmp(at, units[i].name) != 0)
			i++;
		if (i == sizeof(units) / sizeof(units[0]))
			goto wrong;
		unit = units[i].ns;
	}
	if (*fraction == '.') {
		uint64_t place = unit; /* of a one in this decimal place, if whole */

		for (fraction++; *fraction >= '0' && *fraction <= '9'; fraction++) {
			uint64_t digit = (uint64_t)(*fraction - '0');

			if (digit != 0 && (place < 10 || place % 10 != 0))
				goto wrong;
			place /= 10;
			part += digit * place;
		}
	}
	if (whole > (UINT64_MAX - part) / unit)
		goto wrong;
	*ns = whole * unit + part;
	return 0;

wrong:
	return gt_fail(message, GT_EINVAL,
		       "'%.80s' is not a duration: use a number and ns, us, ms or s, such as 10us "
		       "or 1.5ms",
		       text);
}

int gt_value_number(const char *text, uint64_t low, uint64_t high, uint64_t *number,
		    struct gt_message *message)
{
	const char *at = text;
	uint64_t value;

	if (take_digits(&at, &value) && *at == '\0' && low <= value && value <= high) {
		*number = value;
		return 0;
	}
	return gt_fail(message, GT_EINVAL, "'%.80s' is not a number from %llu to %llu", text,
		       (unsigned long long)low, (unsigned long long)high);
}

int gt_value_pids(const char *text, int32_t **pids, size_t *count, struct gt_message *message)
{
	for (;;) {
		size_t length = strcspn(text, ",");
		int32_t *grown = realloc(*pids, (*count + 1) * sizeof(*grown));
		uint64_t number;
		char word[32];
		int error;

		if (grown == NULL)
			return gt_fail(message, GT_ENOMEM, "no memory");
		*pids = grown;
		gt_format(word, sizeof(word), "%.*s", (int)(length < 31 ? length : 31), text);
		error = gt_value_number(word, 1, INT32_MAX, &number, message);
		if (error != 0 && strspn(word, "0123456789-") == 0 && word[0] != '\0')
			gt_message_set(
				message,
				"'%s' is not a number of a process: -P $(pgrep -d, %s) has them "
				"by name",
				word, word);
		if (error != 0)
			return error;
		grown[(*count)++] = (int32_t)number;
		if (text[length] == '\0')
			return 0;
		text += length + 1;
	}
}

void gt_value_program(const char *name, char *path, size_t size)
{
	const char *directory = getenv("PATH");

	snprintf(path, size, "%s", name);
	if (strchr(name, '/') != NULL || access(name, F_OK) == 0)
		return;
	while (directory != NULL && *directory) {
		const size_t bytes = strcspn(directory, ":");

		if (bytes &&
		    snprintf(path, size, "%.*s/%s", (int)bytes, directory, name) < (int)size &&
		    access(path, X_OK) == 0)
			return;
		directory += bytes + (directory[bytes] != 0);
	}
	snprintf(path, size, "%s", name);
}
