/* SPDX-License-Identifier: MIT */
/* Arguments and results of functions: see values.h. Under the session's lock. */
#define _GNU_SOURCE
#include "attach/agent/values.h"
#include "attach/agent/patcher.h"
#include "attach/agent/places.h"
#include "attach/object/lines.h"
#include "core/trace/glob.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one word asks for. */
struct rule {
	bool results; /* else arguments */
	char *glob;
	char *spec; /* NULL: what is known of the function */
};

struct gt_values {
	struct rule *rules;
	uint32_t count;
	bool all[2]; /* arguments, results */
};

struct gt_file_values {
	struct gt_lines *lines;
	bool opened;
	bool is_c_library;
	/* [function_count]; valid where looked[] is set */
	struct gt_signature **signatures;
	uint8_t *looked;
};

/* ---- what is asked for ---- */

void gt_values_free(struct gt_values *values)
{
	if (values == NULL)
		return;
	for (uint32_t i = 0; i < values->count; i++) {
		free(values->rules[i].glob);
		free(values->rules[i].spec);
	}
	free(values->rules);
	free(values);
}

/* One of several with ';' between them. */
static int add_rule(struct gt_values *values, bool results, const char *text, size_t bytes,
		    struct gt_message *message)
{
	struct rule *rules = realloc(values->rules, (values->count + 1) * sizeof(*rules));
	const char *at = memchr(text, '@', bytes);
	const size_t glob_bytes = at != NULL ? (size_t)(at - text) : bytes;
	struct gt_signature *signature;
	struct rule *rule;
	int error;

	if (rules == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for arguments");
	values->rules = rules;
	rule = &rules[values->count];
	*rule = (struct rule){ .results = results, .glob = strndup(text, glob_bytes) };
	if (at != NULL)
		rule->spec = strndup(at + 1, bytes - glob_bytes - 1);
	values->count++;
	if (rule->glob == NULL || (at != NULL && rule->spec == NULL))
		return gt_fail(message, GT_ENOMEM, "no memory for arguments");
	if (!*rule->glob)
		return gt_fail(message, GT_EINVAL, "'%.*s' names no function", (int)bytes, text);
	if (at == NULL)
		return 0;
	error = gt_signature_of_spec(rule->spec, NULL, &signature, message);
	gt_signature_free(signature);
	return error;
}

static int add_rules(struct gt_values *values, bool results, const char *text,
		     struct gt_message *message)
{
	int error = 0;

	while (!error && *text) {
		const size_t bytes = strcspn(text, ";");

		if (bytes)
			error = add_rule(values, results, text, bytes, message);
		text += bytes + (text[bytes] == ';');
	}
	return error;
}

int gt_values_new(const char *const *words, struct gt_values **out, struct gt_message *message)
{
	struct gt_values *values;
	int error = 0;

	*out = NULL;
	if (words == NULL || *words == NULL)
		return 0;
	values = calloc(1, sizeof(*values));
	if (values == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for arguments");
	for (; !error && *words != NULL; words++) {
		if (strcmp(*words, "a") == 0 || strcmp(*words, "r") == 0)
			values->all[**words == 'r'] = true;
		else
			error = add_rules(values, **words == 'R', *words + 1, message);
	}
	if (error)
		gt_values_free(values);
	else
		*out = values;
	return error;
}

/* The last one that names the function counts. */
static const struct rule *rule_of(const struct gt_values *values, bool results, const char *plain,
				  const char *shown)
{
	for (uint32_t i = values->count; i-- > 0;)
		if (values->rules[i].results == results &&
		    (gt_glob_match(values->rules[i].glob, plain) ||
		     (shown != plain && gt_glob_match(values->rules[i].glob, shown))))
			return &values->rules[i];
	return NULL;
}

/* ---- what is known ---- */

void gt_file_values_free(struct gt_file_values *values, uint32_t function_count)
{
	if (values == NULL)
		return;
	for (uint32_t i = 0; values->signatures != NULL && i < function_count; i++)
		gt_signature_free(values->signatures[i]);
	gt_lines_close(values->lines);
	free(values->signatures);
	free(values->looked);
	free(values);
}

static bool is_c_library(const char *path)
{
	static const char *const names[] = { "libc.so",	    "libc-",	 "libm.so",
					     "libpthread.", "ld-linux-", "libdl.so" };
	const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static struct gt_file_values *values_of(struct gt_catalog_file *file)
{
	struct gt_file_values *values = file->values;

	if (values != NULL)
		return values;
	values = calloc(1, sizeof(*values));
	if (values == NULL)
		return NULL;
	values->signatures = calloc(file->function_count + 1ul, sizeof(*values->signatures));
	values->looked = calloc(file->function_count + 1ul, 1);
	values->is_c_library = is_c_library(file->path);
	if (values->signatures == NULL || values->looked == NULL) {
		gt_file_values_free(values, 0);
		return NULL;
	}
	file->values = values;
	return values;
}

/* The file as the catalog has it open: its path may be another's by now, or in a container. */
static struct gt_lines *lines_of(struct gt_catalog_file *file, struct gt_file_values *values)
{
	struct gt_lines_of of = { .until_ns = UINT64_MAX };
	char path[64];

	if (values->opened)
		return values->lines;
	values->opened = true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	of.path = path;
	of.build_id_bytes = gt_object_build_id(file->object, &of.build_id);
	if (gt_lines_open(&of, &values->lines))
		values->lines = NULL;
	return values->lines;
}

static struct gt_signature *known_signature(struct gt_catalog_file *file,
					    struct gt_file_values *values, uint32_t index)
{
	const struct gt_object_function *function = gt_object_function(file->object, index);
	struct gt_lines *lines = lines_of(file, values);
	struct gt_signature *signature = NULL;

	if (lines != NULL)
		signature = gt_signature_of_lines(lines, function->address, function->name);
	if (signature == NULL && (values->is_c_library || function->flags & GT_FUNCTION_PLT))
		signature = gt_signature_of_prototype(function->name);
	return signature;
}

/* Takes what `from` has of one sort over; the rest stays there. */
static struct gt_signature *join(struct gt_signature *arguments, struct gt_signature *results)
{
	const uint32_t first = arguments != NULL ? arguments->argument_count : 0;
	const uint32_t second = results != NULL ? results->result_count : 0;
	struct gt_signature *joined = gt_signature_new(first, second);

	for (uint32_t i = 0; joined != NULL && i < first + second; i++) {
		struct gt_signature_value *from =
			i < first ? &arguments->values[i]
				  : &results->values[results->argument_count + i - first];

		joined->values[i] = *from;
		*from = (struct gt_signature_value){ 0 };
	}
	return joined;
}

/* By whatever says it: a specification, or what is known. */
static struct gt_signature *make_signature(const struct gt_values *values,
					   struct gt_catalog_file *file, uint32_t index,
					   const char *plain, const char *shown)
{
	const struct rule *rules[2] = { rule_of(values, false, plain, shown),
					rule_of(values, true, plain, shown) };
	struct gt_signature *known = known_signature(file, file->values, index);
	struct gt_signature *said[2] = { NULL, NULL }, *joined;

	for (int i = 0; i < 2; i++)
		if (rules[i] != NULL && rules[i]->spec != NULL)
			gt_signature_of_spec(rules[i]->spec, known, &said[i], NULL);
	/* "-A FUNC@arg1,retval" says both. */
	if (said[1] == NULL && said[0] != NULL && said[0]->result_count)
		joined = join(said[0], said[0]);
	else
		joined = join(said[0] != NULL ? said[0] : known, said[1] != NULL ? said[1] : known);
	gt_signature_free(said[0]);
	gt_signature_free(said[1]);
	gt_signature_free(known);
	return joined;
}

uint8_t gt_values_role(const struct gt_values *values, struct gt_catalog_file *file, uint32_t index,
		       const char *plain, const char *shown)
{
	const struct rule *arguments, *results;
	struct gt_file_values *known;
	const struct gt_signature *signature;
	bool asked[2];

	if (values == NULL)
		return 0;
	arguments = rule_of(values, false, plain, shown);
	results = rule_of(values, true, plain, shown);
	asked[0] = values->all[0] || arguments != NULL;
	asked[1] = values->all[1] || results != NULL ||
		   (arguments != NULL && arguments->spec != NULL &&
		    strstr(arguments->spec, "retval") != NULL);
	if ((!asked[0] && !asked[1]) || (known = values_of(file)) == NULL)
		return 0;
	if (!known->looked[index]) {
		known->signatures[index] = make_signature(values, file, index, plain, shown);
		known->looked[index] = 1;
	}
	signature = known->signatures[index];
	if (signature == NULL)
		return 0;
	return (asked[0] && signature->argument_count ? GT_ROLE_ARGUMENTS : 0) |
	       (asked[1] && signature->result_count ? GT_ROLE_RESULT : 0);
}

/* ---- stubs ---- */

#define TOLD_MAX                                                                \
	(sizeof(struct graftrace_probe_site) + sizeof(struct graftrace_probe) + \
	 GRAFTRACE_PROBE_FIELDS *                                               \
		 (sizeof(struct graftrace_probe_argument) + GT_SIGNATURE_STEPS * sizeof(int64_t)))

/* What the agent finds behind a stub at `at`; returns how many bytes. */
static size_t told_of(const struct gt_signature_value *values, uint32_t count, uint32_t event,
		      uint16_t flags, uint64_t at, uint8_t out[TOLD_MAX])
{
	const struct graftrace_probe_site site = { .first = at + sizeof(site) };
	const struct graftrace_probe probe = { .event = event,
					       .argument_count = (uint16_t)count,
					       .flags = flags };
	uint8_t *argument_at = out + sizeof(site) + sizeof(probe), *step_at;
	uint16_t steps = 0;

	memcpy(out, &site, sizeof(site));
	memcpy(out + sizeof(site), &probe, sizeof(probe));
	step_at = argument_at + count * sizeof(struct graftrace_probe_argument);
	for (uint32_t i = 0; i < count; i++) {
		struct graftrace_probe_argument argument = values[i].place;

		argument.first_step = steps;
		steps += argument.step_count;
		memcpy(argument_at, &argument, sizeof(argument));
		argument_at += sizeof(argument);
		memcpy(step_at, values[i].steps, argument.step_count * sizeof(int64_t));
		step_at += argument.step_count * sizeof(int64_t);
	}
	return (size_t)(step_at - out);
}

struct values_stub {
	const struct gt_signature_value *values;
	uint32_t count;
	uint32_t event;
	uint16_t flags;
	uint32_t target; /* offset in the hot text */
	uint64_t stands; /* address of the instruction that it stands for … */
	uint8_t place;	 /* … and GRAFTRACE_PLACES_PUSHED */
};

static bool is_number_in(const struct graftrace_probe_argument *place, uint8_t number)
{
	return place->place == GRAFTRACE_PLACE_REGISTER && place->base == number &&
	       place->take == GRAFTRACE_TAKE_NUMBER && !place->step_count && !place->value;
}

/* Offset in the hot text of what records the values: numbers in registers have it short. */
static uint32_t recorder_of(const struct values_stub *stub,
			    const struct graftrace_agent_image *header)
{
	static const uint8_t general[GRAFTRACE_ARGUMENTS_MAX] = { 7, 6, 2, 1, 8, 9 };

	if (stub->flags & GRAFTRACE_PROBE_RETURN)
		return stub->count == 1 && is_number_in(&stub->values[0].place, 0) ? header->result
										   : header->event;
	for (uint32_t i = 0; i < stub->count; i++)
		if (i == GRAFTRACE_ARGUMENTS_MAX ||
		    !is_number_in(&stub->values[i].place, general[i]))
			return header->event;
	return header->arguments + (stub->count - 1) * GRAFTRACE_ARGUMENTS_BYTES;
}

/* Made once at *at (0: not yet), and written again. */
static int put_stub(struct gt_patcher *patcher, const struct values_stub *stub, uint64_t *at)
{
	uint8_t bytes[GRAFTRACE_STUB_BYTES], told[TOLD_MAX], places[GRAFTRACE_PLACES_BYTES];
	size_t told_bytes = told_of(stub->values, stub->count, stub->event, stub->flags, 0, told);
	const bool fresh = !*at;
	int error;

	if (fresh)
		*at = gt_region_alloc(patcher->region, sizeof(bytes) + told_bytes,
				      GRAFTRACE_STUB_BYTES);
	if (!*at)
		return GT_ENOSPC;
	told_of(stub->values, stub->count, stub->event, stub->flags, *at + sizeof(bytes), told);
	error = gt_region_values_stub(patcher->region, *at,
				      recorder_of(stub, &patcher->tracee->agent.header),
				      stub->target, bytes);
	if (!error)
		error = gt_editor_put(&patcher->moved, *at, bytes, sizeof(bytes));
	if (!error)
		error = gt_editor_put(&patcher->moved, *at + sizeof(bytes), told, told_bytes);
	memset(places, stub->place, sizeof(places));
	for (uint32_t from = 0; !error && fresh && from < sizeof(bytes);
	     from += GRAFTRACE_PLACES_BYTES)
		error = gt_patcher_put_places(patcher, *at + from, stub->stands, places);
	return error;
}

int gt_values_put(struct gt_patcher *patcher, uint32_t index, const struct gt_plan_entry *plan,
		  uint16_t role, uint32_t entry, uint64_t *call, uint64_t *jump)
{
	struct gt_tracee_object *object = patcher->object;
	const uint32_t number = patcher->region->first_number + object->slot + index;
	const struct gt_signature *signature =
		object->file->values != NULL ? object->file->values->signatures[index] : NULL;
	struct gt_tracee_values *made;
	struct values_stub stub;
	int error = 0;

	*call = *jump = 0;
	if (signature == NULL || !(role & (GT_ROLE_ARGUMENTS | GT_ROLE_RESULT)) ||
	    number > GRAFTRACE_VALUES_FUNCTION)
		return 0;
	if (object->values == NULL)
		object->values = calloc(object->file->function_count + 1ul, sizeof(*made));
	if (object->values == NULL)
		return GT_ENOMEM;
	made = &object->values[index];
	if (role & GT_ROLE_ARGUMENTS) {
		stub = (struct values_stub){
			.values = signature->values,
			.count = signature->argument_count,
			.event = GRAFTRACE_VALUES | number,
			.flags = GRAFTRACE_PROBE_OF_CALL |
				 (role & GT_ROLE_ROOT ? GRAFTRACE_PROBE_OF_ROOT : 0),
			.target = entry,
			.stands = plan->patch_address + object->bias,
			.place = GRAFTRACE_PLACES_PUSHED,
		};
		error = put_stub(patcher, &stub, &made->arguments);
		*call = made->arguments;
	}
	if (!error && role & GT_ROLE_RESULT) {
		stub = (struct values_stub){
			.values = signature->values + signature->argument_count,
			.count = signature->result_count,
			.event = GRAFTRACE_VALUES | GRAFTRACE_VALUES_RESULT | number,
			.flags = GRAFTRACE_PROBE_OF_CALL | GRAFTRACE_PROBE_RETURN,
			.target = patcher->tracee->agent.header.exit,
			/* the jump in the function's stub that leads here */
			.stands = gt_region_stub_address(patcher->region, object->slot + index) +
				  GRAFTRACE_STUB_LEAVES,
		};
		error = put_stub(patcher, &stub, &made->result);
		*jump = made->result;
	}
	/* Without room the calls are recorded all the same. */
	if (error == GT_ENOSPC || error == GT_ENOTSUP) {
		*call = *jump = 0;
		error = 0;
	}
	return error;
}

/* ---- memory that stays ---- */

static const struct gt_tracee_object *object_named(const struct gt_tracee *tracee,
						   const char *soname)
{
	for (size_t i = 0; i < tracee->object_count; i++)
		if (!tracee->objects[i]->gone &&
		    strcmp(gt_object_soname(tracee->objects[i]->file->object), soname) == 0)
			return tracee->objects[i];
	return NULL;
}

/* Whether the program needs the object, itself or by another that it needs. */
static bool is_needed(const struct gt_tracee *tracee, const struct gt_tracee_object *object)
{
	const struct gt_tracee_object *needed[GRAFTRACE_AGENT_CONSTANTS];
	uint32_t count = 0, k;

	for (size_t n = 0; n < tracee->object_count && !count; n++)
		if (tracee->objects[n]->program)
			needed[count++] = tracee->objects[n];
	for (uint32_t at = 0; at < count; at++) {
		const struct gt_object *file = needed[at]->file->object;

		if (needed[at] == object)
			return true;
		for (uint32_t i = 0; i < gt_object_needed_count(file); i++) {
			const struct gt_tracee_object *other =
				object_named(tracee, gt_object_needed(file, i));

			for (k = 0; k < count && needed[k] != other; k++)
				;
			if (other != NULL && k == count && count < GRAFTRACE_AGENT_CONSTANTS)
				needed[count++] = other;
		}
	}
	return false;
}

int gt_values_tell_constants(struct gt_tracee *tracee, const struct gt_tracee_object *object)
{
	const struct gt_object *file = object->file->object;
	int error = 0;

	if (!is_needed(tracee, object))
		return 0;
	for (uint32_t i = 0; !error && i < gt_object_segment_count(file); i++) {
		const struct gt_object_segment *segment = gt_object_segment(file, i);
		const uint64_t start = (segment->address + object->bias) & ~4095ull;

		if (!segment->write && segment->file_bytes)
			error = gt_inject_constant(&tracee->process, &tracee->agent, start,
						   segment->address + object->bias +
							   segment->file_bytes);
	}
	return error;
}

/* ---- what is told ---- */

int gt_values_describe(const struct gt_catalog_file *file, uint32_t index, uint32_t number,
		       struct gt_event_format *format)
{
	const struct gt_signature *signature =
		file->values != NULL ? file->values->signatures[index] : NULL;
	const bool is_result = number & GRAFTRACE_VALUES_RESULT;
	const struct gt_signature_value *values;

	if (signature == NULL)
		return GT_ENOENT;
	values = signature->values + (is_result ? signature->argument_count : 0);
	*format = (struct gt_event_format){
		.number = number,
		.field_count = is_result ? signature->result_count : signature->argument_count,
		.system = is_result ? "result" : "arguments",
		.name = "",
		.object = "",
	};
	for (uint32_t i = 0; i < format->field_count; i++)
		format->fields[i] = (struct gt_event_field){
			.name = values[i].name,
			.type = values[i].type,
			.kind = values[i].kind,
			.bytes = values[i].place.bytes,
			.is_signed = values[i].place.is_signed,
			.is_string = values[i].place.take == GRAFTRACE_TAKE_STRING,
			.is_float = values[i].is_float,
		};
	return 0;
}

static int tell(const struct gt_tracee_object *object, uint32_t index, uint32_t number,
		const struct gt_sink *sink)
{
	struct gt_event_format format;

	if (gt_values_describe(object->file, index, number, &format))
		return 0;
	return sink->event(sink->data, &format);
}

int gt_values_tell(const struct gt_tracee *tracee, struct gt_tracee_object *object,
		   const struct gt_sink *sink)
{
	uint32_t first;
	int error = 0;

	if (sink == NULL || sink->event == NULL || object->values == NULL || object->region < 0)
		return 0;
	first = tracee->agent.regions[object->region].first_number + object->slot;
	for (uint32_t i = 0; !error && i < object->file->function_count; i++) {
		struct gt_tracee_values *made = &object->values[i];

		if (made->arguments && !made->told_arguments)
			error = tell(object, i, GRAFTRACE_VALUES | (first + i), sink);
		if (!error && made->result && !made->told_result)
			error = tell(object, i,
				     GRAFTRACE_VALUES | GRAFTRACE_VALUES_RESULT | (first + i),
				     sink);
		made->told_arguments = made->arguments != 0;
		made->told_result = made->result != 0;
	}
	return error;
}
