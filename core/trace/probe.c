/* SPDX-License-Identifier: MIT */
/*
 * Parsing of dynamic probes: see probe.h. What is accepted and what is said of what is not follow
 * kernel/trace/trace_probe.c, trace_uprobe.c and trace_kprobe.c.
 */
#include "core/trace/probe_private.h"
#include "core/trace/message.h"

const char gt_probe_error_file[] = "Failed to find the given file";
const char gt_probe_error_regular[] = "Not a regular file";
const char gt_probe_error_address[] = "Invalid probed address or symbol";
const char gt_probe_error_offset[] = "Invalid uprobe offset";
const char gt_probe_error_boundary[] = "Probe point is not an instruction boundary";
const char gt_probe_error_return[] = "Retprobe address must be an function entry";
const char gt_probe_error_exists[] = "Given group/event name is already used by another event";
const char gt_probe_error_same[] = "There is already the exact same probe event";
const char gt_probe_error_differs[] = "Argument type or name is different from existing probe";
const char gt_probe_error_type[] = "Probe type is different from existing probe";
const char gt_probe_error_register[] = "Failed to register probe event";

#define MAXACTIVE_MAX 4096u

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

/* Until the next blank; strings in quotes are one word. */
static struct gt_span next_word(struct gt_span *rest)
{
	struct gt_span word;
	bool quoted = false;

	while (rest->bytes > 0 && is_blank(*rest->at))
		*rest = skip(*rest, 1);
	word = (struct gt_span){ rest->at, 0 };
	while (word.bytes < rest->bytes && (quoted || !is_blank(rest->at[word.bytes]))) {
		quoted ^= rest->at[word.bytes] == '"';
		word.bytes++;
	}
	*rest = skip(*rest, word.bytes);
	return word;
}

/* ---- the head ---- */

/* [GRP/][EVENT] */
static int take_event(struct gt_probe_parser *parser, struct gt_span name)
{
	struct gt_probe_definition *probe = parser->probe;
	size_t slash = find(name, '/');

	if (slash == name.bytes)
		slash = find(name, '.');
	if (slash < name.bytes) {
		const struct gt_span group = { name.at, slash };

		if (slash == 0)
			return fail(parser, name.at, "Group name is not specified");
		if (slash > GT_PROBE_NAME_MAX)
			return fail(parser, name.at, "Group name is too long");
		if (!is_name(group))
			return fail(parser, name.at,
				    "Group name must follow the same rules as C identifiers");
		copy_name(probe->group, group);
		name = skip(name, slash + 1);
		if (name.bytes == 0)
			return 0;
	}
	if (name.bytes == 0)
		return fail(parser, name.at, "Event name is not specified");
	if (name.bytes > GT_PROBE_NAME_MAX)
		return fail(parser, name.at, "Event name is too long");
	if (!is_name(name))
		return fail(parser, name.at,
			    "Event name must follow the same rules as C identifiers");
	copy_name(probe->name, name);
	probe->is_named = true;
	return 0;
}

/* p, r, rN, -, and the event behind a colon. */
static int take_head(struct gt_probe_parser *parser, struct gt_span word)
{
	struct gt_probe_definition *probe = parser->probe;
	const size_t colon = find(word, ':');
	const struct gt_span kind = { word.at, colon };
	uint64_t number;

	if (kind.bytes == 0 || (kind.at[0] != 'p' && kind.at[0] != 'r' && kind.at[0] != '-'))
		return fail(parser, word.at, "Invalid command");
	probe->removes = kind.at[0] == '-';
	probe->returns = kind.at[0] == 'r';
	if (kind.bytes > 1) {
		if (!probe->returns)
			return fail(parser, word.at + 1, "Maxactive is only for function exit");
		if (!take_number(skip(kind, 1), &number) || number > UINT32_MAX)
			return fail(parser, word.at + 1, "Invalid maxactive number");
		if (number > MAXACTIVE_MAX)
			return fail(parser, word.at + 1, "Maxactive is too big");
		probe->has_max = true;
		probe->max_active = (uint32_t)number;
	}
	if (colon == word.bytes)
		return probe->removes ? fail(parser, word.at + 1, "Event name is not specified")
				      : 0;
	return take_event(parser, skip(word, colon + 1));
}

/* ---- the place ---- */

static void name_by(struct gt_probe_parser *parser, struct gt_span from, const char *format,
		    uint64_t offset)
{
	struct gt_probe_definition *probe = parser->probe;
	char text[GT_PROBE_NAME_MAX + 1];
	size_t i;

	if (from.bytes > 40)
		from.bytes = 40;
	gt_format(text, sizeof(text), format, probe->returns ? 'r' : 'p', (int)from.bytes, from.at,
		  (unsigned long long)offset);
	for (i = 0; text[i]; i++)
		probe->name[i] = is_letter(text[i]) || is_digit(text[i]) ? text[i] : '_';
	probe->name[i] = 0;
}

/* PATH:OFFSET[(REF)][%return] */
static int take_file_place(struct gt_probe_parser *parser, struct gt_span word)
{
	struct gt_probe_definition *probe = parser->probe;
	const size_t colon = find_last(word, ':');
	struct gt_span offset, tail;
	size_t brace, suffix;

	if (colon == word.bytes)
		return fail(parser, word.at, gt_probe_error_address);
	offset = skip(word, colon + 1);
	probe->path = word.at;
	probe->path_bytes = colon;
	probe->offset_at = (size_t)(offset.at - parser->text);
	brace = find(offset, '(');
	if (brace < offset.bytes) {
		struct gt_span reference = skip(offset, brace + 1);
		const size_t end = find(reference, ')');

		if (end == reference.bytes)
			return fail(parser, reference.at + reference.bytes,
				    "Reference counter brace is not closed");
		tail = skip(reference, end + 1);
		if (tail.bytes > 0 && *tail.at != '%')
			return fail(parser, tail.at, "Reference counter has wrong suffix");
		if (!take_number((struct gt_span){ reference.at, end }, &probe->reference))
			return fail(parser, reference.at, "Invalid reference counter offset");
		offset.bytes = brace;
	} else {
		tail = skip(offset, find(offset, '%'));
	}
	suffix = find(offset, '%');
	offset.bytes = suffix < offset.bytes ? suffix : offset.bytes;
	if (tail.bytes > 0) {
		if (!is_text(tail, "%return"))
			return fail(parser, tail.at, "Invalid probed address suffix");
		probe->returns = true;
	}
	if (offset.bytes > 0 && is_letter(offset.at[0])) {
		/* Not in Linux, which leaves that to perf: a function of the file, and more. */
		const size_t plus = find(offset, '+');

		probe->symbol = offset.at;
		probe->symbol_bytes = plus;
		if (plus < offset.bytes && !take_number(skip(offset, plus + 1), &probe->offset))
			return fail(parser, offset.at + plus, gt_probe_error_offset);
	} else if (!take_number(offset, &probe->offset)) {
		return fail(parser, offset.at, gt_probe_error_offset);
	}
	if (!probe->is_named) {
		struct gt_span base = skip(word, 0);
		size_t slash, i;

		base.bytes = colon;
		slash = find_last(base, '/');
		if (slash < base.bytes)
			base = skip(base, slash + 1);
		for (i = 0;
		     i < base.bytes && base.at[i] != '.' && base.at[i] != '-' && base.at[i] != '_';)
			i++;
		base.bytes = i;
		if (probe->symbol_bytes > 0)
			base = (struct gt_span){ probe->symbol, probe->symbol_bytes };
		name_by(parser, base, probe->symbol_bytes > 0 ? "%c_%.*s_%llu" : "%c_%.*s_0x%llx",
			probe->offset);
	}
	return 0;
}

/* [MOD:]SYM[+OFFS|-OFFS][%return], or an address */
static int take_symbol_place(struct gt_probe_parser *parser, struct gt_span word)
{
	struct gt_probe_definition *probe = parser->probe;
	const size_t percent = find(word, '%');
	struct gt_span place = { word.at, percent };
	size_t sign;

	if (percent < word.bytes) {
		if (!is_text(skip(word, percent), "%return"))
			return fail(parser, word.at + percent, "Invalid probed address suffix");
		probe->returns = true;
	}
	if (place.bytes > 0 && is_digit(place.at[0])) {
		if (!take_number(place, &probe->offset))
			return fail(parser, place.at, gt_probe_error_address);
		if (!probe->is_named)
			name_by(parser, (struct gt_span){ place.at, 0 }, "%c_%.*s0x%llx",
				probe->offset);
		return 0;
	}
	for (sign = 0; sign < place.bytes && place.at[sign] != '+' && place.at[sign] != '-'; sign++)
		;
	for (size_t i = 0; i < sign; i++)
		if (!is_letter(place.at[i]) && !is_digit(place.at[i]) && place.at[i] != '.' &&
		    place.at[i] != ':' && place.at[i] != '$' && place.at[i] != '~')
			return fail(parser, place.at, gt_probe_error_address);
	if (sign == 0)
		return fail(parser, place.at, gt_probe_error_address);
	probe->symbol = place.at;
	probe->symbol_bytes = sign;
	probe->offset_at = (size_t)(place.at + sign - parser->text);
	if (sign < place.bytes) {
		int64_t offset;

		if (!take_signed(skip(place, sign), &offset) || offset < 0)
			return fail(parser, place.at, gt_probe_error_address);
		probe->offset = (uint64_t)offset;
	}
	if (!probe->is_named)
		name_by(parser, (struct gt_span){ place.at, sign }, "%c_%.*s_%llu", probe->offset);
	return 0;
}

static int take_place(struct gt_probe_parser *parser, struct gt_span word)
{
	struct gt_probe_definition *probe = parser->probe;
	const bool is_file = find(word, '/') < word.bytes;

	probe->place_at = probe->offset_at = (size_t)(word.at - parser->text);
	if (!(parser->kinds & GT_PROBES_PROGRAM) && is_file)
		return fail(parser, word.at, gt_probe_error_address);
	if (!probe->group[0])
		copy_name(probe->group, parser->kinds & GT_PROBES_PROGRAM
						? (struct gt_span){ "uprobes", 7 }
						: (struct gt_span){ "kprobes", 7 });
	if (probe->has_max && is_file)
		return fail(parser, parser->text + 1, "Maxactive is only for function exit");
	return is_file ? take_file_place(parser, word) : take_symbol_place(parser, word);
}

/* ---- the whole line ---- */

int gt_probe_parse(const char *text, size_t bytes, enum gt_probe_kinds kinds,
		   struct gt_probe_definition *probe, struct gt_probe_error *error)
{
	struct gt_probe_parser parser = { text, bytes, kinds, probe, error };
	struct gt_span rest = { text, bytes }, word;
	int result;

	*probe = (struct gt_probe_definition){ 0 };
	*error = (struct gt_probe_error){ "", 0 };
	result = take_head(&parser, next_word(&rest));
	word = next_word(&rest);
	if (result != 0 || probe->removes)
		return result == 0 && word.bytes > 0 ? fail(&parser, word.at, "Invalid command")
						     : result;
	if (word.bytes == 0)
		return fail(&parser, word.at, gt_probe_error_address);
	result = take_place(&parser, word);
	while (result == 0 && (word = next_word(&rest)).bytes > 0)
		result = gt_probe_take_argument(&parser, word);
	return result == 0 ? gt_probe_check_room(&parser) : result;
}

static size_t print_arguments(const struct gt_probe_definition *probe, size_t used, char *out,
			      size_t size)
{
	for (uint32_t i = 0; i < probe->argument_count; i++)
		used += gt_format(out + used, size - used, " %s=%.*s", probe->arguments[i].name,
				  (int)probe->arguments[i].text_bytes, probe->arguments[i].text);
	return used;
}

size_t gt_probe_print(const struct gt_probe_definition *probe, const char *path, uint64_t offset,
		      char *out, size_t size)
{
	size_t used = gt_format(out, size, "%c:%s/%s %s:0x%016llx", probe->returns ? 'r' : 'p',
				probe->group, probe->name, path, (unsigned long long)offset);

	if (probe->reference)
		used += gt_format(out + used, size - used, "(0x%llx)",
				  (unsigned long long)probe->reference);
	return print_arguments(probe, used, out, size);
}

size_t gt_probe_print_symbol(const struct gt_probe_definition *probe, char *out, size_t size)
{
	size_t used = gt_format(out, size, "%c", probe->returns ? 'r' : 'p');

	if (probe->max_active != 0)
		used += gt_format(out + used, size - used, "%u", probe->max_active);
	used += gt_format(out + used, size - used, ":%s/%s ", probe->group, probe->name);
	if (probe->symbol_bytes == 0)
		used += gt_format(out + used, size - used, "0x%llx",
				  (unsigned long long)probe->offset);
	else
		used += gt_format(out + used, size - used, "%.*s", (int)probe->symbol_bytes,
				  probe->symbol);
	if (probe->symbol_bytes != 0 && probe->offset != 0)
		used += gt_format(out + used, size - used, "+%llu",
				  (unsigned long long)probe->offset);
	return print_arguments(probe, used, out, size);
}

static bool is_same(struct gt_span a, struct gt_span b)
{
	return a.bytes == b.bytes && __builtin_memcmp(a.at, b.at, a.bytes) == 0;
}

static bool is_same_argument(const struct gt_probe_argument *a, const struct gt_probe_argument *b)
{
	size_t i = 0;

	while (a->name[i] != 0 && a->name[i] == b->name[i])
		i++;
	return a->name[i] == b->name[i] && a->fetch.bytes == b->fetch.bytes &&
	       a->fetch.take == b->fetch.take && a->fetch.count == b->fetch.count &&
	       a->fetch.is_signed == b->fetch.is_signed && a->show == b->show;
}

/* Where the argument begins in the text, with its name. */
static size_t argument_at(const struct gt_probe_argument *argument, const char *text)
{
	const char *at = argument->text;

	while (at > text && !is_blank(at[-1]))
		at--;
	return (size_t)(at - text);
}

int gt_probe_compare(const struct gt_probe_definition *known,
		     const struct gt_probe_definition *added, bool at, const char *text,
		     struct gt_probe_error *error)
{
	bool same = at;

	*error = (struct gt_probe_error){ gt_probe_error_differs, added->place_at };
	if (known->returns != added->returns) {
		*error = (struct gt_probe_error){ gt_probe_error_type, 0 };
		return GT_EINVAL;
	}
	if (known->argument_count < added->argument_count)
		error->at = argument_at(&added->arguments[known->argument_count], text);
	if (known->argument_count != added->argument_count)
		return GT_EINVAL;
	for (uint32_t i = 0; i < known->argument_count; i++) {
		const struct gt_probe_argument *a = &known->arguments[i], *b = &added->arguments[i];

		error->at = argument_at(b, text);
		if (!is_same_argument(a, b))
			return GT_EINVAL;
		same &= is_same((struct gt_span){ a->text, a->text_bytes },
				(struct gt_span){ b->text, b->text_bytes });
	}
	*error = (struct gt_probe_error){ same ? gt_probe_error_same : "", 0 };
	return same ? GT_EEXIST : 0;
}
