/* SPDX-License-Identifier: MIT */
/*
 * See probe_lines.h.
 *
 *	[[GROUP:]EVENT=]FUNC[@FILE][+OFFSET|%return|:LINE] [[NAME=]ARG[:TYPE] …]
 *	[[GROUP:]EVENT=]FILE:LINE [[NAME=]ARG[:TYPE] …]
 *
 * ARG is a variable with members as C has them, $vars, $params, or a fetch argument of uprobe_events.
 */
#include "cli/probe_lines.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/object/object.h"
#include "attach/object/variables.h"
#include "core/trace/message.h"
#include "core/trace/probe.h"

#define LINE_BYTES 2048

struct spec {
	char text[LINE_BYTES]; /* the bytes that the strings point into */
	char *group;
	char *event;
	char *place;
	char *rest; /* the arguments */
	struct gt_source_place source;
	bool returns;
	bool has_offset;
	uint64_t offset;
};

struct work {
	const char *program;
	int (*each)(void *data, const char *line, const char *event);
	void *data;
	struct gt_message *message;
	struct spec spec;
	struct gt_variables *variables; /* opened at the first argument that is a variable */
	uint32_t lines;
	int error; /* of the callback */
};

static int wrong(struct gt_message *message, const char *text, const char *what)
{
	return gt_fail(message, GT_EINVAL, "'%s': %s", text, what);
}

/* A line of uprobe_events begins with p, r or rN. */
static bool is_line(const char *text)
{
	size_t digits = text[0] == 'r' ? strspn(text + 1, "0123456789") : 0;

	if (text[0] != 'p' && text[0] != 'r')
		return false;
	if (text[1 + digits] == ':')
		return strchr(text, ' ') != NULL &&
		       strchr(text, ' ')[1 + strspn(strchr(text, ' '), " ") - 1] == '/';
	return isspace((unsigned char)text[1 + digits]) &&
	       text[1 + digits + strspn(text + 1 + digits, " \t")] == '/';
}

static int give(struct work *work, const char *line)
{
	struct gt_probe_definition probe;
	struct gt_probe_error error;
	char event[2 * GT_PROBE_NAME_MAX + 4];

	if (gt_probe_parse(line, strlen(line), GT_PROBES_PROGRAM, &probe, &error) != 0 ||
	    probe.removes) {
		return gt_fail(work->message, GT_EINVAL, "'%s': %s, at '%s'", line,
			       probe.removes ? "it removes a probe" : error.text,
			       line + (error.at < strlen(line) ? error.at : strlen(line)));
	}
	snprintf(event, sizeof(event), "%s:%s", probe.group, probe.name);
	work->lines++;
	work->error = work->each(work->data, line, event);
	return work->error;
}

/* ---- places ---- */

static bool is_number(const char *text, uint32_t *number)
{
	char *end;
	const unsigned long value = strtoul(text, &end, 10);

	*number = (uint32_t)value;
	return isdigit((unsigned char)*text) && *end == '\0' && value <= UINT32_MAX;
}

/* `place` is changed. */
static int parse_place(char *place, struct spec *spec, struct gt_message *message)
{
	struct gt_source_place *source = &spec->source;
	char *percent = strchr(place, '%'), *colon, *plus, *at;
	char *end;

	if (percent != NULL) {
		if (strcmp(percent, "%return") != 0)
			return wrong(message, place, "only %return may stand behind a '%'");
		*percent = '\0';
		spec->returns = true;
	}
	plus = strchr(place, '+');
	if (plus != NULL) {
		spec->offset = strtoull(plus + 1, &end, 0);
		if (!isdigit((unsigned char)plus[1]) || *end != '\0')
			return wrong(message, place, "an offset is a number");
		spec->has_offset = true;
		*plus = '\0';
	}
	colon = strrchr(place, ':');
	if (colon != NULL && colon > place && colon[-1] != ':') {
		if (!is_number(colon + 1, &source->line))
			return wrong(message, place, "a line is a number");
		source->has_line = true;
		*colon = '\0';
	}
	at = strchr(place, '@');
	if (at != NULL) {
		*at = '\0';
		source->file = at + 1;
	}
	/* A file's name has a dot or a slash, a function's in C and C++ has neither. */
	if (source->has_line && at == NULL &&
	    (strchr(place, '.') != NULL || strchr(place, '/') != NULL))
		source->file = place;
	else
		source->function = place;
	if (*place == '\0')
		return wrong(message, place, "which function?");
	if (spec->returns && (source->has_line || spec->has_offset))
		return wrong(message, place, "%return wants a function alone");
	if (source->has_line && spec->has_offset)
		return wrong(message, place, "either a line or an offset");
	return 0;
}

int gt_probe_place(const char *text, struct gt_source_place *place, char *room, size_t size,
		   struct gt_message *message)
{
	struct spec spec = { .group = NULL };
	int error;

	if ((size_t)snprintf(room, size, "%s", text) >= size)
		return wrong(message, text, "it is too long");
	error = parse_place(room, &spec, message);
	*place = spec.source;
	return error;
}

static int parse_spec(const char *text, struct spec *spec, struct gt_message *message)
{
	size_t bytes;
	char *equal;

	memset(spec, 0, sizeof(*spec));
	if (strlen(text) >= sizeof(spec->text))
		return wrong(message, text, "it is too long");
	strcpy(spec->text, text + strspn(text, " \t"));
	bytes = strcspn(spec->text, " \t");
	spec->rest = spec->text + bytes;
	if (*spec->rest != '\0')
		*spec->rest++ = '\0';
	spec->place = spec->text;
	equal = strchr(spec->text, '=');
	if (equal != NULL) {
		char *colon;

		*equal = '\0';
		spec->place = equal + 1;
		spec->event = spec->text;
		colon = strchr(spec->event, ':');
		if (colon != NULL) {
			*colon = '\0';
			spec->group = spec->event;
			spec->event = colon + 1;
		}
	}
	return parse_place(spec->place, spec, message);
}

/* ---- lines ---- */

static int want_variables(struct work *work)
{
	return work->variables != NULL
		       ? 0
		       : gt_variables_open(work->program, &work->variables, work->message);
}

/* Writes a name, without the characters that names of events must not have. */
static void put_name(char *out, size_t size, const char *prefix, const char *text)
{
	size_t used = (size_t)snprintf(out, size, "%s", prefix);

	for (; *text != '\0' && used + 1 < size; text++)
		out[used++] = isalnum((unsigned char)*text) ? *text : '_';
	out[used] = '\0';
}

/* Is the argument a fetch argument, not a variable? It is by its first character. */
static bool is_fetch(const char *argument)
{
	return strchr("%@+-\\$", *argument) != NULL;
}

struct line {
	struct work *work;
	char text[LINE_BYTES];
	size_t used;
	uint64_t address;
	const char *skip; /* parameters that $vars leaves out */
};

static int put(struct line *line, const char *format, const char *a, const char *b)
{
	const int bytes =
		snprintf(line->text + line->used, sizeof(line->text) - line->used, format, a, b);

	if (bytes < 0 || (size_t)bytes >= sizeof(line->text) - line->used)
		return wrong(line->work->message, line->work->spec.place, "its line is too long");
	line->used += (size_t)bytes;
	return 0;
}

/* The name of an argument: that of the variable's last member. */
static void name_of(const char *expression, char *out, size_t size)
{
	const char *last = expression + strlen(expression), *end;

	while (last > expression && !isalnum((unsigned char)last[-1]) && last[-1] != '_')
		last--;
	end = last;
	while (last > expression && (isalnum((unsigned char)last[-1]) || last[-1] == '_'))
		last--;
	if (isdigit((unsigned char)*last)) { /* an element is named after its array */
		put_name(out, size, "", expression);
		return;
	}
	snprintf(out, size, "%.*s", (int)(end - last), last);
}

static int put_variable(struct line *line, const char *name, const char *expression,
			const char *type)
{
	struct work *work = line->work;
	char fetch[600], own[GT_PROBE_NAME_MAX + 1];
	int error = want_variables(work);

	if (error == 0)
		error = gt_variables_fetch(work->variables, line->address, expression, type, fetch,
					   sizeof(fetch), work->message);
	if (error != 0)
		return error;
	name_of(expression, own, sizeof(own));
	return put(line, " %s=%s", name != NULL ? name : own, fetch);
}

static int put_each(void *data, const char *type, const char *name)
{
	struct line *line = data;
	struct gt_message *message = line->work->message;
	const size_t used = line->used;

	(void)type;
	/* A variable without a simple value is left out. */
	if (put_variable(line, NULL, name, NULL) != 0) {
		line->used = used;
		line->text[used] = '\0';
		gt_message_clear(message);
	}
	return 0;
}

/* Is it "$retval", alone or with a member or a type after it? Its own type is the function's. */
static bool is_result(const char *argument)
{
	const size_t bytes = strlen(GT_VARIABLES_RESULT);

	return strncmp(argument, GT_VARIABLES_RESULT, bytes) == 0 &&
	       (argument[bytes] == '\0' || argument[bytes] == '-' || argument[bytes] == '[' ||
		strcmp(argument + bytes, ":string") == 0 ||
		strcmp(argument + bytes, ":ustring") == 0);
}

static int put_argument(struct line *line, char *argument)
{
	struct work *work = line->work;
	static char result_name[] = "ret";
	char *equal = strchr(argument, '='), *name = NULL, *type;
	int error;

	if (strcmp(argument, "$vars") == 0 || strcmp(argument, "$params") == 0) {
		error = want_variables(work);
		return error != 0 ? error
				  : gt_variables_each(work->variables, line->address,
						      argument[1] == 'p', put_each, line,
						      work->message);
	}
	if (equal != NULL && *argument != '\\') {
		*equal = '\0';
		name = argument;
		argument = equal + 1;
	}
	if (strncmp(argument, GT_VARIABLES_RESULT, strlen(GT_VARIABLES_RESULT)) == 0 &&
	    name == NULL)
		name = strpbrk(argument, "->[") != NULL ? NULL : result_name;
	if (is_fetch(argument) && (!is_result(argument) || line->address == UINT64_MAX)) {
		error = name != NULL ? put(line, " %s=", name, NULL) : put(line, " ", NULL, NULL);
		return error != 0 ? error : put(line, "%s", argument, NULL);
	}
	type = strrchr(argument, ':');
	if (type != NULL)
		*type++ = '\0';
	return put_variable(line, name, argument, type);
}

static bool has_variables(const char *rest)
{
	char text[LINE_BYTES], *next, *word;

	snprintf(text, sizeof(text), "%s", rest);
	for (word = strtok_r(text, " \t", &next); word != NULL;
	     word = strtok_r(NULL, " \t", &next)) {
		const char *argument = strchr(word, '=') != NULL ? strchr(word, '=') + 1 : word;

		if (!is_fetch(argument) || strcmp(argument, "$vars") == 0 ||
		    strcmp(argument, "$params") == 0 ||
		    (is_result(argument) && argument[strlen(GT_VARIABLES_RESULT)] != '\0'))
			return true;
	}
	return false;
}

/* Writes the event's group: if none is given, it is named after the program, as perf does it. */
static void put_group(const struct work *work, char *out, size_t size)
{
	const char *slash = strrchr(work->program, '/');
	char name[GT_PROBE_NAME_MAX - 8];

	snprintf(name, sizeof(name), "%.*s",
		 (int)strcspn(slash != NULL ? slash + 1 : work->program, ".-"),
		 slash != NULL ? slash + 1 : work->program);
	put_name(out, size, "probe_", name);
}

static void put_event(const struct work *work, char *out, size_t size)
{
	const struct spec *spec = &work->spec;
	const char *file = spec->source.file, *slash = file != NULL ? strrchr(file, '/') : NULL;
	char text[GT_PROBE_NAME_MAX];

	if (spec->source.function == NULL)
		snprintf(text, sizeof(text), "%.40s_L%u", slash != NULL ? slash + 1 : file,
			 spec->source.line);
	else if (spec->source.has_line)
		snprintf(text, sizeof(text), "%.40s_L%u", spec->source.function, spec->source.line);
	else
		snprintf(text, sizeof(text), "%.40s%s", spec->source.function,
			 spec->returns ? "__return" : "");
	put_name(out, size, isdigit((unsigned char)*text) ? "_" : "", text);
}

/* Makes the line for an address of the object, or, with UINT64_MAX, for the function's name. */
static int make_line(struct work *work, uint64_t address)
{
	const struct spec *spec = &work->spec;
	struct line line = { .work = work, .address = address };
	char rest[LINE_BYTES], *next, *word, group[GT_PROBE_NAME_MAX + 1],
		event[GT_PROBE_NAME_MAX + 1], place[400];
	struct gt_object *object = NULL;
	int error = 0;

	put_group(work, group, sizeof(group));
	put_event(work, event, sizeof(event));
	if (address == UINT64_MAX) {
		snprintf(place, sizeof(place), "%.300s+%llu%s", spec->source.function,
			 (unsigned long long)spec->offset, spec->returns ? "%return" : "");
	} else {
		uint64_t offset = UINT64_MAX;

		error = gt_object_open(work->program, &object, work->message);
		for (uint32_t i = 0; error == 0 && i < gt_object_segment_count(object); i++) {
			const struct gt_object_segment *segment = gt_object_segment(object, i);

			if (segment->execute && address - segment->address < segment->file_bytes)
				offset = segment->file_offset + (address - segment->address);
		}
		if (object != NULL)
			gt_object_close(object);
		snprintf(place, sizeof(place), "0x%llx%s", (unsigned long long)offset,
			 spec->returns ? "%return" : "");
	}
	if (error == 0)
		error = put(&line, "p:%s/%s", spec->group != NULL ? spec->group : group,
			    spec->event != NULL ? spec->event : event);
	if (error == 0)
		error = put(&line, " %s:%s", work->program, place);
	snprintf(rest, sizeof(rest), "%s", spec->rest);
	for (word = strtok_r(rest, " \t", &next); error == 0 && word != NULL;
	     word = strtok_r(NULL, " \t", &next))
		error = put_argument(&line, word);
	return error != 0 ? error : give(work, line.text);
}

static int no_address(void *data, uint64_t address)
{
	(void)data;
	(void)address;
	return 0;
}

static int take_address(void *data, uint64_t address)
{
	struct work *work = data;

	return make_line(work, address + work->spec.offset);
}

/* Is the type of "$retval" known, if that is used? Otherwise it is a number. */
static bool has_result_type(struct work *work)
{
	struct gt_message message = { "" };
	struct gt_message *own = work->message;
	bool known = false;

	if (strstr(work->spec.rest, GT_VARIABLES_RESULT) == NULL)
		return false;
	work->message = &message;
	known = want_variables(work) == 0 &&
		gt_variables_each_address(work->variables, &work->spec.source, true, no_address,
					  NULL, &message) == 0;
	work->message = own;
	return known;
}

int gt_probe_lines(const char *text, const char *program,
		   int (*each)(void *data, const char *line, const char *event), void *data,
		   struct gt_message *message)
{
	struct work work = { .program = program, .each = each, .data = data, .message = message };
	char path[PATH_MAX];
	int error;

	gt_message_clear(message);
	if (is_line(text))
		return give(&work, text);
	if (realpath(program, path) != NULL)
		work.program = path;
	error = parse_spec(text, &work.spec, message);
	if (error != 0)
		return error;
	if (work.spec.source.function != NULL && !work.spec.source.has_line &&
	    work.spec.source.file == NULL && !has_variables(work.spec.rest) &&
	    !(work.spec.returns && has_result_type(&work)))
		return make_line(&work, UINT64_MAX);
	error = want_variables(&work);
	if (error == 0)
		error = gt_variables_each_address(work.variables, &work.spec.source,
						  work.spec.returns || work.spec.has_offset,
						  take_address, &work, message);
	gt_variables_close(work.variables);
	return error;
}
