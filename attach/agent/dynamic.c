/* SPDX-License-Identifier: MIT */
/* Dynamic probes: see dynamic.h. What was removed is kept, out of sight: records may have its number. */
#define _GNU_SOURCE
#include "attach/agent/dynamic.h"
#include "core/trace/message.h"
#include "attach/plan/instruction.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static void free_probe(struct gt_probe *probe)
{
	if (probe != NULL)
		free((void *)(uintptr_t)probe->literals);
	free(probe);
}

static void free_dynamic(struct gt_dynamic *dynamic)
{
	if (dynamic == NULL)
		return;
	for (uint32_t i = 0; i < dynamic->probe_count; i++)
		free_probe(dynamic->probes[i]);
	free(dynamic->probes);
	free(dynamic->events);
	free(dynamic->path);
	free(dynamic->text);
	free(dynamic);
}

void gt_dynamics_fini(struct gt_catalog *catalog)
{
	for (uint32_t i = 0; i < catalog->dynamic_count; i++)
		free_dynamic(catalog->dynamics[i]);
	free(catalog->dynamics);
	if (catalog->looked_at != NULL)
		gt_object_close(catalog->looked_at);
	free(catalog->looked_path);
	catalog->looked_at = NULL;
	catalog->looked_path = NULL;
	catalog->dynamics = NULL;
	catalog->dynamic_count = 0;
}

/* ---- places ---- */

static uint64_t address_of_offset(const struct gt_object *object, uint64_t offset)
{
	for (uint32_t i = 0; i < gt_object_segment_count(object); i++) {
		const struct gt_object_segment *segment = gt_object_segment(object, i);

		if (segment->execute && offset - segment->file_offset < segment->file_bytes)
			return segment->address + (offset - segment->file_offset);
	}
	return 0;
}

static uint64_t offset_of_address(const struct gt_object *object, uint64_t address)
{
	for (uint32_t i = 0; i < gt_object_segment_count(object); i++) {
		const struct gt_object_segment *segment = gt_object_segment(object, i);

		if (segment->execute && address - segment->address < segment->file_bytes)
			return segment->file_offset + (address - segment->address);
	}
	return UINT64_MAX;
}

/* By its name as it is shown, or as the linker knows it. */
static bool find_function(struct gt_object *object, const char *name, bool shown, uint64_t *address,
			  uint64_t *bytes)
{
	for (uint32_t i = 0; i < gt_object_function_count(object); i++) {
		const struct gt_object_function *function = gt_object_function(object, i);
		const char *own = shown ? gt_object_function_name(object, i) : function->name;

		if (function->flags & GT_FUNCTION_PLT || strcmp(own, name) != 0)
			continue;
		*address = function->address;
		*bytes = function->bytes;
		return true;
	}
	return false;
}

/* Where the definition's place is in the object: its address, or 0. */
static uint64_t resolve(struct gt_object *object, const struct gt_probe_definition *definition,
			const char **why)
{
	char name[256];
	uint64_t address, bytes;

	*why = gt_probe_error_address;
	if (definition->symbol_bytes == 0) {
		if (definition->path_bytes == 0) /* an address of the object */
			return offset_of_address(object, definition->offset) == UINT64_MAX
				       ? 0
				       : definition->offset;
		*why = gt_probe_error_offset;
		return address_of_offset(object, definition->offset);
	}
	if (definition->symbol_bytes >= sizeof(name))
		return 0;
	memcpy(name, definition->symbol, definition->symbol_bytes);
	name[definition->symbol_bytes] = 0;
	if ((!find_function(object, name, false, &address, &bytes) &&
	     !find_function(object, name, true, &address, &bytes)) ||
	    definition->offset >= bytes)
		return 0;
	return address + definition->offset;
}

/* Decoded from the function's start, as the kernel does for kprobes. */
static bool is_boundary(struct gt_object *object, uint64_t address)
{
	struct gt_instruction instruction;
	uint32_t index;
	uint64_t at;

	if (gt_object_function_at(object, address, &index))
		return true; /* nobody can tell */
	for (at = gt_object_function(object, index)->address; at < address;
	     at += instruction.bytes) {
		uint64_t room = 16;
		const uint8_t *code = NULL;

		while (room && (code = gt_object_bytes(object, at, room)) == NULL)
			room--;
		if (code == NULL || !gt_instruction_decode(code, room, at, &instruction))
			return false;
	}
	return at == address;
}

static bool is_entry(struct gt_object *object, uint64_t address)
{
	uint32_t index;

	return !gt_object_function_at(object, address, &index) &&
	       gt_object_function(object, index)->address == address;
}

/* ---- probes ---- */

/* The fields before the arguments. */
static void add_hidden(struct gt_probe *probe, const char *name, enum graftrace_probe_place place)
{
	const uint32_t index = probe->argument_count++;

	probe->arguments[index] = (struct graftrace_probe_argument){
		.place = (uint8_t)place,
		.bytes = 8,
		.base = GRAFTRACE_NO_REGISTER,
		.index = GRAFTRACE_NO_REGISTER,
		.value = place == GRAFTRACE_PLACE_CONSTANT ? (int64_t)probe->address : 0,
	};
	probe->is_relative[index] = place == GRAFTRACE_PLACE_CONSTANT;
	probe->fields[index] = (struct gt_probe_field){ .name = name,
							.type = "unsigned long",
							.show = GT_SHOW_HEX };
}

/* False: what it needs is not in the object; the field cannot be read then. */
static void add_argument(struct gt_object *object, struct gt_probe *probe, char *literals,
			 size_t *used, uint64_t file_offset, const struct gt_probe_argument *from)
{
	const uint32_t index = probe->argument_count++;
	struct graftrace_probe_argument *argument = &probe->arguments[index];
	struct gt_event_field field;
	char name[256];
	uint64_t address;

	*argument = from->fetch;
	gt_probe_argument_field(from, &field);
	probe->fields[index] = (struct gt_probe_field){
		.name = field.name,
		.type = field.type,
		.show = field.show,
	};
	switch (from->base) {
	case GT_PROBE_AS_IT_IS:
		break;
	case GT_PROBE_FILE_OFFSET:
		/* as the kernel: from where the code's mapping has the file's first byte */
		argument->value += (int64_t)(probe->address - file_offset);
		probe->is_relative[index] = true;
		break;
	case GT_PROBE_OWN_ADDRESS:
		argument->value = (int64_t)probe->address;
		probe->is_relative[index] = true;
		break;
	case GT_PROBE_SYMBOL:
		memcpy(name, from->symbol, from->symbol_bytes < 255 ? from->symbol_bytes : 255);
		name[from->symbol_bytes < 255 ? from->symbol_bytes : 255] = 0;
		if (gt_object_symbol(object, name, &address))
			argument->place = GRAFTRACE_PLACE_UNKNOWN;
		else
			argument->value += (int64_t)address;
		probe->is_relative[index] = true;
		break;
	case GT_PROBE_LITERAL:
		argument->value = (int64_t)*used;
		probe->is_literal[index] = true;
		memcpy(literals + *used, from->symbol, from->symbol_bytes);
		*used += from->symbol_bytes;
		literals[(*used)++] = 0;
		break;
	}
}

static struct gt_probe *make_probe(struct gt_object *object, const struct gt_dynamic *dynamic,
				   uint64_t address)
{
	const struct gt_probe_definition *definition = &dynamic->definition;
	struct gt_probe *probe = calloc(1, sizeof(*probe));
	size_t literal_bytes = 1, used = 0;
	char *literals;

	for (uint32_t i = 0; i < definition->argument_count; i++)
		if (definition->arguments[i].base == GT_PROBE_LITERAL)
			literal_bytes += definition->arguments[i].symbol_bytes + 1;
	literals = calloc(1, literal_bytes);
	if (probe == NULL || literals == NULL) {
		free(probe);
		free(literals);
		return NULL;
	}
	probe->system = definition->group;
	probe->name = definition->name;
	probe->text = dynamic->text;
	probe->address = address;
	probe->flags = definition->returns ? GRAFTRACE_PROBE_RETURN : 0;
	probe->step_count = definition->step_count;
	probe->steps = definition->steps;
	add_hidden(probe, definition->returns ? GT_EVENT_PROBE_FUNC : GT_EVENT_PROBE_IP,
		   GRAFTRACE_PLACE_CONSTANT);
	if (definition->returns)
		add_hidden(probe, GT_EVENT_RETURN_IP, GRAFTRACE_PLACE_CALLER);
	for (uint32_t i = 0; i < definition->argument_count; i++)
		add_argument(object, probe, literals, &used, dynamic->offset,
			     &definition->arguments[i]);
	probe->literals = literals;
	probe->literal_bytes = (uint32_t)used;
	return probe;
}

static bool is_of_file(const struct gt_dynamic *dynamic, const struct gt_catalog_file *file)
{
	return file->object != NULL && dynamic->inode == file->inode &&
	       dynamic->device_major == file->device_major &&
	       dynamic->device_minor == file->device_minor;
}

static int add_to_file(struct gt_catalog *catalog, struct gt_dynamic *dynamic,
		       struct gt_catalog_file *file)
{
	void *grown =
		realloc(dynamic->probes, (dynamic->probe_count + 1) * sizeof(*dynamic->probes));
	struct gt_catalog_probe *added;
	struct gt_probe *probe;
	uint32_t *events =
		realloc(dynamic->events, (dynamic->probe_count + 1) * sizeof(*dynamic->events));

	if (grown != NULL)
		dynamic->probes = grown;
	if (events != NULL)
		dynamic->events = events;
	if (grown == NULL || events == NULL)
		return GT_ENOMEM;
	probe = make_probe(file->object, dynamic, dynamic->address);
	added = probe != NULL ? gt_catalog_add_probe(catalog, file, probe) : NULL;
	if (added == NULL) {
		free_probe(probe);
		return GT_ENOMEM;
	}
	added->dynamic = dynamic;
	dynamic->events[dynamic->probe_count] = added->event;
	dynamic->probes[dynamic->probe_count++] = probe;
	return 0;
}

int gt_dynamics_opened(struct gt_catalog *catalog, struct gt_catalog_file *file)
{
	int error = 0;

	for (uint32_t i = 0; !error && i < catalog->dynamic_count; i++)
		if (!catalog->dynamics[i]->removed && is_of_file(catalog->dynamics[i], file))
			error = add_to_file(catalog, catalog->dynamics[i], file);
	return error;
}

/* ---- setting ---- */

static int fail_at(struct gt_probe_error *error, const char *text, size_t at)
{
	*error = (struct gt_probe_error){ text, at };
	return GT_EINVAL;
}

/* The file's object: the catalog's, or one that is kept for the next probe of the same file. */
static struct gt_object *object_of(struct gt_catalog *catalog, const struct gt_dynamic *dynamic,
				   struct gt_message *message)
{
	for (size_t i = 0; i < catalog->file_count; i++)
		if (is_of_file(dynamic, catalog->files[i]))
			return catalog->files[i]->object;
	if (catalog->looked_at != NULL && strcmp(catalog->looked_path, dynamic->path) == 0)
		return catalog->looked_at;
	if (catalog->looked_at != NULL)
		gt_object_close(catalog->looked_at);
	free(catalog->looked_path);
	catalog->looked_at = NULL;
	catalog->looked_path = strdup(dynamic->path);
	if (catalog->looked_path == NULL ||
	    gt_object_open(dynamic->path, &catalog->looked_at, message) != 0)
		catalog->looked_at = NULL;
	return catalog->looked_at;
}

/* The file, and the place in it. */
static int look_at_file(struct gt_catalog *catalog, struct gt_dynamic *dynamic,
			struct gt_probe_error *error, struct gt_message *message)
{
	const struct gt_probe_definition *definition = &dynamic->definition;
	struct gt_object *object;
	struct stat status;
	const char *why;
	int result = 0;

	if (stat(dynamic->path, &status) != 0) {
		fail_at(error, gt_probe_error_file, definition->place_at);
		return GT_ENOENT;
	}
	if (!S_ISREG(status.st_mode))
		return fail_at(error, gt_probe_error_regular, definition->place_at);
	dynamic->inode = status.st_ino;
	dynamic->device_major = major(status.st_dev);
	dynamic->device_minor = minor(status.st_dev);
	object = object_of(catalog, dynamic, message);
	if (object == NULL)
		return fail_at(error, gt_probe_error_register, definition->place_at);
	dynamic->address = resolve(object, definition, &why);
	if (!dynamic->address)
		result = fail_at(error, why, definition->offset_at);
	else if (!is_boundary(object, dynamic->address))
		result = fail_at(error, gt_probe_error_boundary, definition->offset_at);
	else if (definition->returns && !is_entry(object, dynamic->address))
		result = fail_at(error, gt_probe_error_return, definition->offset_at);
	dynamic->offset = offset_of_address(object, dynamic->address);
	return result;
}

static int check_event(const struct gt_catalog *catalog, const struct gt_dynamic *dynamic,
		       struct gt_probe_error *error)
{
	const struct gt_probe_definition *definition = &dynamic->definition;
	int result = 0;

	for (uint32_t k = 0; !result && k < catalog->dynamic_count; k++) {
		const struct gt_dynamic *other = catalog->dynamics[k];

		if (!other->removed && strcmp(other->definition.group, definition->group) == 0 &&
		    strcmp(other->definition.name, definition->name) == 0)
			result = gt_probe_compare(&other->definition, definition,
						  other->inode == dynamic->inode &&
							  other->address == dynamic->address,
						  dynamic->text, error);
	}
	for (size_t i = 0; !result && i < catalog->file_count; i++)
		for (uint32_t k = 0; !result && k < catalog->files[i]->probe_count; k++) {
			const struct gt_catalog_probe *probe = &catalog->files[i]->probes[k];

			if (probe->dynamic == NULL &&
			    strcmp(probe->probe->system, definition->group) == 0 &&
			    strcmp(probe->probe->name, definition->name) == 0) {
				fail_at(error, gt_probe_error_exists, 0);
				result = GT_EEXIST;
			}
		}
	return result;
}

static struct gt_dynamic *new_dynamic(struct gt_catalog *catalog, const char *text, size_t bytes)
{
	void *grown = realloc(catalog->dynamics,
			      (catalog->dynamic_count + 1ul) * sizeof(*catalog->dynamics));
	struct gt_dynamic *dynamic = calloc(1, sizeof(*dynamic));

	if (grown != NULL)
		catalog->dynamics = grown;
	if (dynamic != NULL)
		dynamic->text = strndup(text, bytes);
	if (grown != NULL && dynamic != NULL && dynamic->text != NULL)
		return dynamic;
	free_dynamic(dynamic);
	return NULL;
}

int gt_dynamics_add(struct gt_catalog *catalog, const char *text, size_t bytes,
		    enum gt_probe_kinds kinds, const char *path, struct gt_dynamic **out,
		    struct gt_probe_error *error, struct gt_message *message)
{
	struct gt_dynamic *dynamic = new_dynamic(catalog, text, bytes);
	struct gt_probe_definition *definition;
	int result;

	*error = (struct gt_probe_error){ "", 0 };
	if (dynamic == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for a probe");
	definition = &dynamic->definition;
	result = gt_probe_parse(dynamic->text, bytes, kinds, definition, error);
	if (!result && definition->removes)
		result = fail_at(error, gt_probe_error_address, 0);
	if (!result && definition->path_bytes)
		dynamic->path = strndup(definition->path, definition->path_bytes);
	else if (!result)
		dynamic->path = strdup(path != NULL ? path : "");
	if (!result && dynamic->path == NULL)
		result = gt_fail(message, GT_ENOMEM, "no memory for a probe");
	if (!result)
		result = look_at_file(catalog, dynamic, error, message);
	if (!result)
		result = check_event(catalog, dynamic, error);
	for (size_t i = 0; !result && i < catalog->file_count; i++)
		if (is_of_file(dynamic, catalog->files[i]) &&
		    add_to_file(catalog, dynamic, catalog->files[i]))
			result = gt_fail(message, GT_ENOMEM, "no memory for a probe");
	/* What a file has of it stays with it. */
	if (result && !dynamic->probe_count) {
		free_dynamic(dynamic);
		return result;
	}
	dynamic->removed = result != 0;
	catalog->dynamics[catalog->dynamic_count++] = dynamic;
	*out = dynamic;
	return result;
}

void gt_dynamics_remove(struct gt_catalog *catalog, struct gt_dynamic *dynamic)
{
	dynamic->removed = true;
	for (size_t i = 0; i < catalog->file_count; i++)
		for (uint32_t k = 0; k < catalog->files[i]->probe_count; k++)
			if (catalog->files[i]->probes[k].dynamic == dynamic)
				catalog->files[i]->probes[k].removed = true;
}
