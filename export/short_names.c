/* SPDX-License-Identifier: MIT */
/* Short names: see short_names.h. */
#include "export/short_names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ELLIPSIS "\xe2\x80\xa6"

struct writing {
	char *at, *end;
};

static void put(struct writing *out, const char *bytes, size_t count)
{
	if ((size_t)(out->end - out->at) < count)
		count = (size_t)(out->end - out->at);
	memcpy(out->at, bytes, count);
	out->at += count;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Returns the length of "operator<<" and similar names at `text`, in which < and > are no
 * brackets; 0: there is none. */
static size_t operator_length(const char *text, const char *begin)
{
	static const char *const signs[] = { "<=>", "<<=", ">>=", "->*", "<<", ">>",
					     "<=",  ">=",  "->",  "<",	 ">" };
	char before = text > begin ? text[-1] : ' ';

	if (!begins(text, "operator") || before == '_' || (before >= '0' && before <= '9') ||
	    (before >= 'A' && before <= 'Z') || (before >= 'a' && before <= 'z'))
		return 0;
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (begins(text + 8, signs[i]))
			return 8 + strlen(signs[i]);
	return 0;
}

/* Returns the place after the bracket that closes the one at `text`, or the end if none does. */
static const char *behind_bracket(const char *text, const char *begin)
{
	unsigned depth = 0;

	while (*text) {
		size_t sign = operator_length(text, begin);

		if (sign) {
			text += sign;
			continue;
		}
		if (*text == '<')
			depth++;
		else if (*text == '>' && (text == begin || text[-1] != '-') && --depth == 0)
			return text + 1;
		text++;
	}
	return text;
}

/* Common parts of names, and their short forms. Longer ones come first. */
static const struct {
	const char *full, *brief;
} replaced[] = {
	{ "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >",
	  "std::string" },
	{ "std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string" },
	{ "std::basic_string_view<char, std::char_traits<char> >", "std::string_view" },
	{ "std::basic_ostream<char, std::char_traits<char> >", "std::ostream" },
	{ "std::basic_istream<char, std::char_traits<char> >", "std::istream" },
	{ "std::__cxx11::", "std::" },
	{ "(anonymous namespace)::", "" },
	{ "[abi:cxx11]", "" },
};

static void shorten(struct writing *out, const char *text, const char *end);

/* "<Type as Trait>" at the beginning of a Rust name: writes the last part of each. */
static void put_type_as_trait(struct writing *out, const char *from, const char *to)
{
	const char *part = from;
	unsigned depth = 0;

	for (const char *at = from; at < to; at++) {
		if (*at == '<' || *at == '(' || *at == '[')
			depth++;
		else if (*at == '>' || *at == ')' || *at == ']')
			depth -= depth > 0;
		if (depth == 0 && at + 1 < to && at[0] == ':' && at[1] == ':')
			part = at + 2;
		if (depth == 0 && begins(at, " as ") && at + 4 < to) {
			shorten(out, part, at);
			put(out, " as ", 4);
			part = at + 4;
			at += 3;
		}
	}
	shorten(out, part, to);
}

static void shorten(struct writing *out, const char *text, const char *end)
{
	const char *begin = text;

	while (text < end) {
		size_t sign = operator_length(text, begin);
		bool is_replaced = false;

		if (sign) {
			put(out, text, sign);
			text += sign;
			continue;
		}
		for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]) && !is_replaced; i++)
			if (begins(text, replaced[i].full)) {
				put(out, replaced[i].brief, strlen(replaced[i].brief));
				text += strlen(replaced[i].full);
				is_replaced = true;
			}
		if (is_replaced)
			continue;
		if (*text != '<') {
			put(out, text++, 1);
			continue;
		}
		const char *behind = behind_bracket(text, begin);
		if (behind > end)
			behind = end;
		if (text == begin && behind < end && behind[-1] == '>') {
			put(out, "<", 1);
			put_type_as_trait(out, text + 1, behind - 1);
			put(out, ">", 1);
		} else if (text > begin && text[-1] == ':' && behind[-1] != '>') {
			put(out, text, (size_t)(behind - text)); /* the bracket is not closed */
		} else {
			put(out, "<" ELLIPSIS ">", 5);
		}
		text = behind;
	}
}

void gt_short_name(const char *full, char *out)
{
	struct writing writing = { out, out + GT_SHORT_NAME_MAX - 1 };

	shorten(&writing, full, full + strlen(full));
	*writing.at = '\0';
}

/* ---- cutting ---- */

static bool is_first(char byte)
{
	return ((unsigned char)byte & 0xc0) != 0x80;
}

uint32_t gt_text_columns(const char *text)
{
	uint32_t columns = 0;

	for (; *text; text++)
		columns += is_first(*text);
	return columns;
}

/* Returns the first byte of character number `column`. */
static char *at_column(char *text, uint32_t column)
{
	for (; *text; text++)
		if (is_first(*text) && column-- == 0)
			break;
	return text;
}

/* Returns the last part, with the "::" before it; the whole name if it has no parts. */
static char *last_part(char *text)
{
	char *last = text;
	unsigned depth = 0;

	for (char *at = text; *at; at++) {
		size_t sign = operator_length(at, text);

		if (sign) {
			at += sign - 1;
			continue;
		}
		depth += *at == '<';
		depth -= *at == '>' && depth > 0;
		if (depth == 0 && at > text && at[0] == ':' && at[1] == ':')
			last = at;
	}
	return last;
}

void gt_cut_middle(char *text, uint32_t columns)
{
	uint32_t all = gt_text_columns(text), end;
	char *last = last_part(text), *cut;

	if (all <= columns)
		return;
	end = gt_text_columns(last);
	if (last == text || end + 1 >= columns) {
		/* The last part alone is too long: drops what is before it, and cuts its end. */
		if (last != text)
			memmove(text, last + 2, strlen(last + 2) + 1);
		if (gt_text_columns(text) <= columns)
			return;
		cut = at_column(text, columns - 1);
		memcpy(cut, ELLIPSIS, sizeof(ELLIPSIS));
		return;
	}
	cut = at_column(text, columns - end - 1);
	memmove(cut + sizeof(ELLIPSIS) - 1, last, strlen(last) + 1);
	memcpy(cut, ELLIPSIS, sizeof(ELLIPSIS) - 1);
}

/* ---- cache ---- */

#define NUMBERS_MAX (1u << 22) /* << 22) only damaged files have higher ones */

static bool has_room(struct gt_short_names *names, uint32_t number)
{
	uint32_t room = (number + 1) * 2;
	char **grown;

	if (number < names->room)
		return true;
	if (number >= NUMBERS_MAX)
		return false;
	grown = realloc(names->names, room * sizeof(*grown));
	if (grown == NULL)
		return false;
	memset(grown + names->room, 0, (room - names->room) * sizeof(*grown));
	names->names = grown;
	names->room = room;
	return true;
}

const char *gt_short_names_keep(void *data, uint32_t number, const char *full)
{
	struct gt_short_names *names = data;
	char brief[GT_SHORT_NAME_MAX];

	if (strpbrk(full, "<[(") == NULL || !has_room(names, number))
		return full;
	if (names->names[number] == NULL) {
		gt_short_name(full, brief);
		names->names[number] = strdup(brief);
	}
	return names->names[number] != NULL ? names->names[number] : full;
}

void gt_short_names_fini(struct gt_short_names *names)
{
	for (uint32_t i = 0; i < names->room; i++)
		free(names->names[i]);
	free(names->names);
	*names = (struct gt_short_names){ .names = NULL };
}
