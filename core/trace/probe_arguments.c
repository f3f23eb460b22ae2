/* SPDX-License-Identifier: MIT */
/*
 * Arguments of dynamic probes: what is fetched (FETCHARG), and what it is shown as (TYPE).
 */
#include "core/trace/probe_private.h"
#include "core/trace/message.h"

#define STEPS_EACH	   12u /* dereferences of one argument: FETCH_INSN_MAX less what else there is */
#define ARRAY_MAX	   64u
#define ARGUMENT_BYTES_MAX 128u
#define NONE		   GRAFTRACE_NO_REGISTER
#define RSP		   4

static bool begins(struct gt_span span, const char *text)
{
	size_t i = 0;

	for (; text[i]; i++)
		if (i == span.bytes || span.at[i] != text[i])
			return false;
	return true;
}

/* As struct pt_regs names them. */
static const struct {
	const char *name;
	uint8_t number;
} registers[] = {
	{ "ax", 0 },   { "cx", 1 },   { "dx", 2 },   { "bx", 3 },   { "sp", 4 },     { "bp", 5 },
	{ "si", 6 },   { "di", 7 },   { "r8", 8 },   { "r9", 9 },   { "r10", 10 },   { "r11", 11 },
	{ "r12", 12 }, { "r13", 13 }, { "r14", 14 }, { "r15", 15 }, { "flags", 16 },
};

/* What they hold in a program, whatever it does. */
static const struct {
	const char *name;
	int64_t value;
} constants[] = {
	{ "cs", 0x33 },
	{ "ss", 0x2b },
	{ "orig_ax", -1 },
};

/* Of the calling convention. */
static const uint8_t argument_registers[6] = { 7, 6, 2, 1, 8, 9 };

/* One argument in work. Text is taken from the outside in, so steps come last first. */
struct fetch {
	struct gt_probe_parser *parser;
	struct gt_probe_argument *argument;
	int64_t steps[STEPS_EACH]; /* from the outside */
	uint32_t step_count;
	bool is_memory; /* what it is has an address */
	bool is_comm;
};

static void set_register(struct graftrace_probe_argument *fetch, uint8_t number)
{
	fetch->place = GRAFTRACE_PLACE_REGISTER;
	fetch->base = number;
}

static void set_stack(struct graftrace_probe_argument *fetch, uint64_t word)
{
	fetch->place = GRAFTRACE_PLACE_MEMORY;
	fetch->base = RSP;
	fetch->value = (int64_t)(word * 8);
}

/* May arguments be asked for there? In a kernel only where the line names an entry, in programs anywhere. */
static bool is_at_entry(const struct gt_probe_parser *parser)
{
	return parser->kinds != GT_PROBES_KERNEL ||
	       (parser->probe->symbol_bytes != 0 && parser->probe->offset == 0);
}

static int take_variable(struct fetch *work, struct gt_span name)
{
	static const char bad_variable[] = "Invalid $-variable specified";
	struct graftrace_probe_argument *fetch = &work->argument->fetch;
	struct gt_probe_parser *parser = work->parser;
	uint64_t number;

	if (is_text(name, "retval")) {
		if (!parser->probe->returns)
			return fail(parser, name.at - 1, "$retval is not available on probe");
		set_register(fetch, 0);
		return 0;
	}
	if (is_text(name, "stack")) {
		set_register(fetch, RSP);
		return 0;
	}
	if (begins(name, "stack")) {
		if (!take_number(skip(name, 5), &number))
			return fail(parser, name.at - 1, bad_variable);
		if (number >= 16384 / 8)
			return fail(parser, name.at - 1, "Invalid stack number");
		set_stack(fetch, number);
		return 0;
	}
	if (is_text(name, "comm") || is_text(name, "COMM")) {
		fetch->place = GRAFTRACE_PLACE_COMM;
		work->is_memory = work->is_comm = true;
		return 0;
	}
	if (begins(name, "arg")) {
		if (parser->probe->returns || !is_at_entry(parser) ||
		    !take_number(skip(name, 3), &number))
			return fail(parser, name.at - 1, bad_variable);
		if (number == 0 || number > 64)
			return fail(parser, name.at - 1, "Invalid argument number");
		if (number <= 6)
			set_register(fetch, argument_registers[number - 1]);
		else /* behind the return address */
			set_stack(fetch, number - 6);
		return 0;
	}
	return fail(parser, name.at - 1, bad_variable);
}

static int take_register(struct fetch *work, struct gt_span name)
{
	struct graftrace_probe_argument *fetch = &work->argument->fetch;

	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
		if (is_text(name, registers[i].name)) {
			set_register(fetch, registers[i].number);
			return 0;
		}
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
		if (is_text(name, constants[i].name)) {
			fetch->place = GRAFTRACE_PLACE_CONSTANT;
			fetch->value = constants[i].value;
			return 0;
		}
	if (is_text(name, "ip")) {
		fetch->place = GRAFTRACE_PLACE_CONSTANT;
		work->argument->base = GT_PROBE_OWN_ADDRESS;
		return 0;
	}
	return fail(work->parser, name.at - 1, "Invalid register name");
}

static int add_step(struct fetch *work, const char *at, int64_t step)
{
	if (work->step_count == STEPS_EACH)
		return fail(work->parser, at, "Dereference is too much nested");
	work->steps[work->step_count++] = step;
	return 0;
}

/* @ADDR, @SYM[+|-OFFS], @+OFFS: what lies there. */
static int take_memory(struct fetch *work, struct gt_span text)
{
	struct gt_probe_argument *argument = work->argument;
	struct gt_probe_parser *parser = work->parser;
	const struct gt_span rest = skip(text, 1);
	int64_t offset = 0;
	uint64_t number;
	size_t sign;

	argument->fetch.place = GRAFTRACE_PLACE_CONSTANT;
	work->is_memory = true;
	if (rest.bytes > 0 && is_digit(rest.at[0])) {
		if (!take_number(rest, &number))
			return fail(parser, text.at, "Invalid memory address");
		argument->fetch.value = (int64_t)number;
	} else if (rest.bytes > 0 && rest.at[0] == '+') {
		if (!(parser->kinds & GT_PROBES_PROGRAM))
			return fail(parser, text.at, "File offset is not available with kprobe");
		if (!take_number(skip(rest, 1), &number))
			return fail(parser, text.at, "Invalid file offset value");
		argument->fetch.value = (int64_t)number;
		argument->base = GT_PROBE_FILE_OFFSET;
	} else {
		if (parser->probe->path_bytes > 0 && parser->kinds == GT_PROBES_PROGRAM)
			return fail(parser, text.at, "Symbol is not available with uprobe");
		for (sign = 0; sign < rest.bytes && rest.at[sign] != '+' && rest.at[sign] != '-';)
			sign++;
		if (sign == 0 || (sign < rest.bytes && !take_signed(skip(rest, sign), &offset)))
			return fail(parser, text.at, "Invalid memory address");
		argument->fetch.value = offset;
		argument->base = GT_PROBE_SYMBOL;
		argument->symbol = rest.at;
		argument->symbol_bytes = sign;
	}
	return add_step(work, text.at, 0);
}

/* \IMM, \"TEXT" */
static int take_immediate(struct fetch *work, struct gt_span text)
{
	struct gt_probe_argument *argument = work->argument;
	struct gt_span rest = skip(text, 1);
	int64_t value;

	argument->fetch.place = GRAFTRACE_PLACE_CONSTANT;
	if (rest.bytes > 0 && rest.at[0] == '"') {
		if (rest.bytes < 2 || rest.at[rest.bytes - 1] != '"')
			return fail(work->parser, rest.at + rest.bytes,
				    "String is not closed with '\"'");
		argument->base = GT_PROBE_LITERAL;
		argument->symbol = rest.at + 1;
		argument->symbol_bytes = rest.bytes - 2;
		work->is_memory = true;
		return 0;
	}
	if (!take_signed(rest, &value))
		return fail(work->parser, rest.at, "Invalid immediate value");
	argument->fetch.value = value;
	return 0;
}

/* The fetch argument, without its type. Dereferences lead inwards. */
static int take_body(struct fetch *work, struct gt_span text)
{
	struct gt_probe_parser *parser = work->parser;

	while (text.bytes > 0 && (text.at[0] == '+' || text.at[0] == '-')) {
		const bool user = text.bytes > 1 && text.at[1] == 'u';
		const size_t brace = find(text, '('), end = find_last(text, ')');
		struct gt_span number = { text.at + 1 + user, 0 };
		int64_t step;
		int error;

		if (brace == text.bytes)
			return fail(parser, text.at, "Dereference needs a brace");
		number.bytes = (size_t)(text.at + brace - number.at);
		if (number.at > text.at + brace || !take_signed(number, &step) ||
		    (number.bytes > 0 && !is_digit(number.at[0])))
			return fail(parser, text.at, "Invalid dereference offset");
		if (end == text.bytes || end < brace || end + 1 != text.bytes)
			return fail(parser, text.at + text.bytes,
				    "Dereference brace is not closed");
		if (work->step_count == 0)
			work->argument->is_user = user;
		error = add_step(work, text.at, text.at[0] == '-' ? -step : step);
		if (error != 0)
			return error;
		text = (struct gt_span){ text.at + brace + 1, end - brace - 1 };
		work->is_memory = true;
	}
	if (text.bytes == 0)
		return fail(parser, text.at, "Invalid fetch argument");
	switch (text.at[0]) {
	case '$': {
		const uint32_t steps = work->step_count;
		const int error = take_variable(work, skip(text, 1));

		return error == 0 && work->is_comm && steps > 0
			       ? fail(parser, text.at, "$comm can not be dereferenced")
			       : error;
	}
	case '%':
		return take_register(work, skip(text, 1));
	case '@':
		return take_memory(work, text);
	case '\\':
		return take_immediate(work, text);
	default:
		return fail(parser, text.at, "Invalid fetch argument");
	}
}

static const struct {
	const char *name;
	uint8_t bytes;
	bool is_signed;
	uint8_t show;
	uint8_t take;
	bool is_user;
} types[] = {
	{ "u8", 1, false, GT_SHOW_DECIMAL, 0, false },
	{ "u16", 2, false, GT_SHOW_DECIMAL, 0, false },
	{ "u32", 4, false, GT_SHOW_DECIMAL, 0, false },
	{ "u64", 8, false, GT_SHOW_DECIMAL, 0, false },
	{ "s8", 1, true, GT_SHOW_DECIMAL, 0, false },
	{ "s16", 2, true, GT_SHOW_DECIMAL, 0, false },
	{ "s32", 4, true, GT_SHOW_DECIMAL, 0, false },
	{ "s64", 8, true, GT_SHOW_DECIMAL, 0, false },
	{ "x8", 1, false, GT_SHOW_HEX, 0, false },
	{ "x16", 2, false, GT_SHOW_HEX, 0, false },
	{ "x32", 4, false, GT_SHOW_HEX, 0, false },
	{ "x64", 8, false, GT_SHOW_HEX, 0, false },
	{ "char", 1, false, GT_SHOW_CHAR, 0, false },
	{ "symbol", 8, false, GT_SHOW_SYMBOL, 0, false },
	{ "string", 8, false, GT_SHOW_AS_TYPE, GRAFTRACE_TAKE_STRING, false },
	{ "ustring", 8, false, GT_SHOW_AS_TYPE, GRAFTRACE_TAKE_STRING, true },
};
#define X64    11
#define STRING 14

static bool take_type_name(struct gt_span name, size_t *index)
{
	for (*index = 0; *index < sizeof(types) / sizeof(types[0]); ++*index)
		if (is_text(name, types[*index].name))
			return true;
	return false;
}

/* bW@O/C */
static bool take_bit_field(struct gt_span name, struct graftrace_probe_argument *fetch)
{
	const size_t at = find(name, '@'), slash = find(name, '/');
	uint64_t width, offset, container;

	if (at == name.bytes || slash == name.bytes || slash < at ||
	    !take_number((struct gt_span){ name.at + 1, at - 1 }, &width) ||
	    !take_number((struct gt_span){ name.at + at + 1, slash - at - 1 }, &offset) ||
	    !take_number(skip(name, slash + 1), &container) ||
	    (container != 8 && container != 16 && container != 32 && container != 64) ||
	    width == 0 || width > container || offset > container - width)
		return false;
	fetch->bytes = (uint8_t)(container / 8);
	fetch->bit_first = (uint8_t)offset;
	fetch->bit_count = width == 64 ? 0 : (uint8_t)width;
	return true;
}

/* [N] behind a type. */
static int take_count(struct fetch *work, struct gt_span *type)
{
	const size_t open = find(*type, '[');
	struct gt_span number;
	uint64_t count;
	size_t close;

	if (open == type->bytes)
		return 0;
	number = skip(*type, open + 1);
	close = find(number, ']');
	if (close == number.bytes)
		return fail(work->parser, number.at + number.bytes, "Array is not closed");
	if (close + 1 != number.bytes)
		return fail(work->parser, number.at + close + 1, "Array has wrong suffix");
	number.bytes = close;
	if (!take_number(number, &count) || count == 0)
		return fail(work->parser, number.at, "Invalid array size");
	if (count > ARRAY_MAX)
		return fail(work->parser, number.at, "Array number is too big");
	work->argument->fetch.count = (uint8_t)count;
	type->bytes = open;
	return 0;
}

/* text: the whole argument, for where its type stands. */
static int take_type(struct fetch *work, struct gt_span type)
{
	static const char bad_string[] = "String accepts only memory argument";
	struct gt_probe_argument *argument = work->argument;
	struct graftrace_probe_argument *fetch = &argument->fetch;
	const bool literal = argument->base == GT_PROBE_LITERAL;
	size_t index = work->is_comm || literal ? STRING : X64;
	const char *const start = type.at;
	int error = take_count(work, &type);

	if (error != 0)
		return error;
	if (type.bytes > 1 && type.at[0] == 'b' && is_digit(type.at[1]) &&
	    find(type, '/') != type.bytes) {
		if (!take_bit_field(type, fetch))
			return fail(work->parser, type.at, "Invalid bitfield");
		argument->show = GT_SHOW_DECIMAL;
	} else {
		if (type.bytes > 0 && !take_type_name(type, &index))
			return fail(work->parser, type.at, "Unknown type is specified");
		fetch->bytes = types[index].bytes;
		fetch->is_signed = types[index].is_signed;
		fetch->take = types[index].take;
		argument->show = types[index].show;
		argument->is_user |= types[index].is_user;
	}
	if ((work->is_comm || literal) && fetch->take != GRAFTRACE_TAKE_STRING)
		return fail(work->parser, start,
			    "$comm and immediate-string only accepts string type");
	if (fetch->take == GRAFTRACE_TAKE_STRING && !work->is_memory)
		return fail(work->parser, start, bad_string);
	if (fetch->count != 0) {
		if (work->step_count == 0)
			return fail(work->parser, start, bad_string);
		fetch->take = fetch->take == GRAFTRACE_TAKE_STRING ? GRAFTRACE_TAKE_STRINGS
								   : GRAFTRACE_TAKE_ARRAY;
	}
	return 0;
}

static void settle_steps(struct fetch *work)
{
	struct gt_probe_definition *probe = work->parser->probe;
	struct graftrace_probe_argument *fetch = &work->argument->fetch;

	fetch->first_step = probe->step_count;
	fetch->step_count = (uint8_t)work->step_count;
	while (work->step_count > 0)
		probe->steps[probe->step_count++] = work->steps[--work->step_count];
}

/* FETCHARG[:TYPE] */
static int take_fetch(struct gt_probe_parser *parser, struct gt_probe_argument *argument,
		      struct gt_span text)
{
	struct fetch work = { .parser = parser, .argument = argument };
	struct gt_span body = text;
	size_t colon;
	int error;

	argument->fetch.base = argument->fetch.index = NONE;
	argument->text = text.at;
	argument->text_bytes = text.bytes;
	if (text.bytes > ARGUMENT_BYTES_MAX)
		return fail(parser, text.at, "Argument expression is too long");
	if (text.bytes == 0)
		return fail(parser, text.at, "No argument expression");
	/* A text's own colons are its own. */
	colon = text.bytes > 1 && text.at[1] == '"' ? find_last(text, '"') : 0;
	colon += find(skip(text, colon), ':');
	body.bytes = colon;
	error = take_body(&work, body);
	if (error == 0 && colon < text.bytes && colon + 1 == text.bytes)
		error = fail(parser, text.at + colon + 1, "Unknown type is specified");
	if (error == 0)
		error = take_type(&work, skip(text, colon < text.bytes ? colon + 1 : colon));
	if (error == 0 && work.step_count + parser->probe->step_count > GRAFTRACE_PROBE_STEPS)
		error = fail(parser, text.at, "Dereference is too much nested");
	if (error == 0)
		settle_steps(&work);
	return error;
}

/* [NAME=]FETCHARG[:TYPE] */
int gt_probe_take_argument(struct gt_probe_parser *parser, struct gt_span word)
{
	struct gt_probe_definition *probe = parser->probe;
	struct gt_probe_argument *argument = &probe->arguments[probe->argument_count];
	const size_t equal = find(word, '=');
	struct gt_span name = { word.at, equal };
	const char *const start = word.at;

	if (probe->argument_count == GT_PROBE_ARGUMENTS_MAX)
		return fail(parser, word.at, "Too many arguments are specified");
	if (equal < word.bytes && word.at[0] != '\\') {
		if (equal == 0)
			return fail(parser, word.at, "Argument name is not specified");
		if (equal > GT_PROBE_NAME_MAX - 32)
			return fail(parser, word.at, "Argument name is too long");
		if (!is_name(name))
			return fail(parser, word.at,
				    "Argument name must follow the same rules as C identifiers");
		copy_name(argument->name, name);
		word = skip(word, equal + 1);
	} else {
		gt_format(argument->name, sizeof(argument->name), "arg%u",
			  probe->argument_count + 1);
	}
	name.bytes = 0;
	while (argument->name[name.bytes])
		name.bytes++;
	name.at = argument->name;
	for (uint32_t i = 0; i < probe->argument_count; i++)
		if (is_text(name, probe->arguments[i].name))
			return fail(parser, start, "This argument name is already used");
	if (begins(name, "common_") || begins(name, "__probe_"))
		return fail(parser, start, "This argument name is already used");
	probe->argument_count++;
	return take_fetch(parser, argument, word);
}

/* What is recorded of all of them has to have room in a record. */
int gt_probe_check_room(struct gt_probe_parser *parser)
{
	const struct gt_probe_definition *probe = parser->probe;
	const uint32_t room = 28 * 8;
	uint32_t used = 8 * (GT_PROBE_HIDDEN(probe->returns) + probe->argument_count);

	for (uint32_t i = 0; i < probe->argument_count; i++) {
		const struct graftrace_probe_argument *fetch = &probe->arguments[i].fetch;

		if (fetch->take == GRAFTRACE_TAKE_ARRAY)
			used += (fetch->count * fetch->bytes + 7u) & ~7u;
		if (used > room)
			return fail(parser, probe->arguments[i].text, "Array number is too big");
	}
	return 0;
}

void gt_probe_argument_field(const struct gt_probe_argument *argument, struct gt_event_field *field)
{
	static const char *const names[2][4] = { { "u8", "u16", "u32", "u64" },
						 { "s8", "s16", "s32", "s64" } };
	const struct graftrace_probe_argument *fetch = &argument->fetch;
	const uint32_t log = fetch->bytes == 1	 ? 0
			     : fetch->bytes == 2 ? 1
			     : fetch->bytes == 4 ? 2
						 : 3;
	const bool texts =
		fetch->take == GRAFTRACE_TAKE_STRING || fetch->take == GRAFTRACE_TAKE_STRINGS;

	*field = (struct gt_event_field){
		.name = argument->name,
		.type = texts ? "const char *" : names[fetch->is_signed][log],
		.bytes = texts ? 8 : fetch->bytes,
		.is_signed = fetch->is_signed,
		.is_string = texts,
		.show = argument->show,
		.count = fetch->count,
	};
}
