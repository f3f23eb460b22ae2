/* SPDX-License-Identifier: MIT */
/*
 * Dynamic probes of a kernel, as operations of the control files: a line is parsed (core/trace/probe.h), its place found
 * among the kernel's functions, and what the recorder needs of it made (graftrace/probe_kernel.h). Their events are like
 * all that come later (kernel_later.c): a format stays for ever, the probe itself goes with its line. Any thread; all of
 * it takes the kernel's lock.
 */
#include "core/kernel/kernel_private.h"
#include "core/trace/strings.h"

/* A line of kprobe_events. */
struct gt_arena_probe {
	struct gt_probe_definition definition;
	struct graftrace_kernel_probe recorded;
	uint32_t event; /* its index among the later ones (kernel_later.c) */
	size_t bytes;	/* of all of this */
	const char *text;
	size_t text_bytes;
	struct graftrace_probe *fetch; /* behind this, with its arguments and steps; then texts */
};

/* What the format of a probe's event needs to live. */
struct kept_format {
	struct gt_event_format format;
	char group[GT_PROBE_NAME_MAX + 1];
	char name[GT_PROBE_NAME_MAX + 1];
	char arguments[GRAFTRACE_PROBE_FIELDS][GT_PROBE_NAME_MAX + 1];
};

static int refuse(struct gt_probe_error *error, int result, const char *text, size_t at,
		  struct gt_message *message)
{
	*error = (struct gt_probe_error){ text, at };
	return gt_fail(message, result, "%s", text);
}

/* ---- places ---- */

static bool is_name(const char *name, const char *text, size_t bytes)
{
	return gt_string_bytes(name) == bytes && __builtin_memcmp(name, text, bytes) == 0;
}

/* The function of that name that can be traced, and its number; 0: there is none. */
static uint32_t find_function(const struct gt_arena_control *control, const char *text,
			      size_t bytes, struct gt_function *function)
{
	const struct gt_arena_names *names = control->ring->names;

	for (uint32_t number = 1; number <= control->function_count; number++)
		if (names->function(names->data, number, function) == 0 &&
		    is_name(function->name, text, bytes))
			return number;
	return 0;
}

/* The one that has the address. */
static uint32_t find_address(const struct gt_arena_control *control, uint64_t address,
			     struct gt_function *function)
{
	const struct gt_arena_names *names = control->ring->names;

	for (uint32_t number = 1; number <= control->function_count; number++)
		if (names->function(names->data, number, function) == 0 &&
		    address - function->address < (function->size != 0 ? function->size : 1))
			return number;
	return 0;
}

/* Linux' words and, behind them, the reason. */
static int refuse_place(const struct gt_arena_probe *probe, int result, const char *why,
			struct gt_probe_error *error, struct gt_message *message)
{
	refuse(error, result, gt_probe_error_register, probe->definition.place_at, message);
	return REFUSE(message, result, "%s: %s", gt_probe_error_register, why);
}

/* Not at the function's entry. */
static int find_inside(const struct gt_arena_control *control, struct gt_arena_probe *probe,
		       const struct gt_function *function, struct gt_probe_error *error,
		       struct gt_message *message)
{
	static const char *const reasons[] = {
		[GRAFTRACE_KERNEL_PLACE_UNKNOWN] =
			"its instruction, or one before it in the function, is not known",
		[GRAFTRACE_KERNEL_PLACE_UNMOVABLE] = "its instruction works at its own place only",
		[GRAFTRACE_KERNEL_PLACE_PATCHED] = "a static event is there",
		[GRAFTRACE_KERNEL_PLACE_FULL] =
			"this kernel has had as many places inside functions as it has room for",
	};
	const struct gt_arena_machine *machine = control->machine;
	struct graftrace_kernel_probe *recorded = &probe->recorded;
	enum graftrace_kernel_place found;

	if (machine->find_place == NULL)
		return refuse_place(probe, GT_ENOTSUP, "this kernel has probes at entries alone",
				    error, message);
	found = machine->find_place(machine->data, function->address,
				    function->address + function->size, recorded->address,
				    &recorded->place);
	if (found == GRAFTRACE_KERNEL_PLACE_OK)
		return 0;
	if (found == GRAFTRACE_KERNEL_PLACE_BOUNDARY)
		return refuse(error, GT_EINVAL, gt_probe_error_boundary, probe->definition.place_at,
			      message);
	return refuse_place(probe, found == GRAFTRACE_KERNEL_PLACE_FULL ? GT_ENOSPC : GT_ENOTSUP,
			    reasons[found], error, message);
}

static int find_place(const struct gt_arena_control *control, struct gt_arena_probe *probe,
		      struct gt_probe_error *error, struct gt_message *message)
{
	const struct gt_probe_definition *definition = &probe->definition;
	struct gt_function function = { 0 };
	uint32_t number;
	uint64_t offset = definition->offset;

	if (definition->symbol_bytes != 0) {
		number = find_function(control, definition->symbol, definition->symbol_bytes,
				       &function);
	} else {
		number = find_address(control, offset, &function);
		offset -= function.address;
	}
	if (number == 0 || (function.size != 0 && offset >= function.size))
		return refuse(error, GT_EINVAL, gt_probe_error_address, definition->place_at,
			      message);
	if (definition->returns && offset != 0)
		return refuse(error, GT_EINVAL, gt_probe_error_return, definition->place_at,
			      message);
	probe->recorded.address = function.address + offset;
	probe->recorded.function = number;
	return offset != 0 ? find_inside(control, probe, &function, error, message) : 0;
}

/* ---- what the recorder gets ---- */

/* Bytes of the texts that arguments are themselves. */
static size_t literal_bytes(const struct gt_probe_definition *definition)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < definition->argument_count; i++)
		if (definition->arguments[i].base == GT_PROBE_LITERAL)
			bytes += definition->arguments[i].symbol_bytes + 1;
	return bytes;
}

static size_t fetch_bytes(const struct gt_probe_definition *definition)
{
	return sizeof(struct graftrace_probe) +
	       (definition->argument_count + GT_PROBE_HIDDEN(definition->returns)) *
		       sizeof(struct graftrace_probe_argument) +
	       definition->step_count * sizeof(int64_t);
}

/* The address of what is called so: 0: nothing is. */
static uint64_t address_of(const struct gt_arena_control *control, const char *text, size_t bytes)
{
	const struct gt_arena_machine *machine = control->machine;
	struct gt_function function;
	uint64_t address = 0;

	if (machine->symbol != NULL && machine->symbol(machine->data, text, bytes, &address) == 0)
		return address;
	return find_function(control, text, bytes, &function) != 0 ? function.address : 0;
}

static struct graftrace_probe_argument hidden(enum graftrace_probe_place place, uint64_t value)
{
	return (struct graftrace_probe_argument){
		.place = (uint8_t)place,
		.bytes = 8,
		.base = GRAFTRACE_NO_REGISTER,
		.index = GRAFTRACE_NO_REGISTER,
		.value = (int64_t)value,
	};
}

/* literals: where there is room for such a text; moved behind it. */
static struct graftrace_probe_argument fetched(const struct gt_arena_control *control,
					       const struct gt_arena_probe *probe,
					       const struct gt_probe_argument *from,
					       char **literals)
{
	struct graftrace_probe_argument to = from->fetch;
	uint64_t address;

	switch (from->base) {
	case GT_PROBE_AS_IT_IS:
		break;
	case GT_PROBE_OWN_ADDRESS:
		to.value = (int64_t)probe->recorded.address;
		break;
	case GT_PROBE_SYMBOL:
		address = address_of(control, from->symbol, from->symbol_bytes);
		to.value += (int64_t)address;
		if (address == 0)
			to.place = GRAFTRACE_PLACE_UNKNOWN;
		break;
	case GT_PROBE_LITERAL:
		to.value = (int64_t)*literals;
		__builtin_memcpy(*literals, from->symbol, from->symbol_bytes);
		(*literals)[from->symbol_bytes] = 0;
		*literals += from->symbol_bytes + 1;
		break;
	default:
		to.place = GRAFTRACE_PLACE_UNKNOWN;
	}
	return to;
}

static void make_fetch(const struct gt_arena_control *control, struct gt_arena_probe *probe,
		       char *literals)
{
	const struct gt_probe_definition *definition = &probe->definition;
	struct graftrace_probe_argument *to = (struct graftrace_probe_argument *)(probe->fetch + 1);

	*to++ = hidden(GRAFTRACE_PLACE_CONSTANT, probe->recorded.address);
	if (definition->returns)
		*to++ = hidden(GRAFTRACE_PLACE_CALLER, 0);
	for (uint32_t i = 0; i < definition->argument_count; i++)
		*to++ = fetched(control, probe, &definition->arguments[i], &literals);
	__builtin_memcpy(to, definition->steps, definition->step_count * sizeof(int64_t));
	*probe->fetch = (struct graftrace_probe){
		.argument_count = (uint16_t)(definition->argument_count +
					     GT_PROBE_HIDDEN(definition->returns)),
		.flags = definition->returns ? GRAFTRACE_PROBE_RETURN : 0,
	};
	probe->recorded.fetch = probe->fetch;
	probe->recorded.max_active = definition->max_active;
}

/* ---- events ---- */

static void put_hidden(struct gt_event_field *field, const char *name)
{
	*field = (struct gt_event_field){
		.name = name,
		.type = "unsigned long",
		.bytes = 8,
		.show = GT_SHOW_HEX,
	};
}

static void make_format(struct kept_format *kept, const struct gt_arena_probe *probe)
{
	const struct gt_probe_definition *definition = &probe->definition;
	struct gt_event_format *format = &kept->format;

	__builtin_memcpy(kept->group, definition->group, sizeof(kept->group));
	__builtin_memcpy(kept->name, definition->name, sizeof(kept->name));
	*format = (struct gt_event_format){
		.system = kept->group,
		.name = kept->name,
		.object = GT_EVENT_KERNEL,
		.address = probe->recorded.address,
	};
	put_hidden(&format->fields[format->field_count++],
		   definition->returns ? GT_EVENT_PROBE_FUNC : GT_EVENT_PROBE_IP);
	if (definition->returns)
		put_hidden(&format->fields[format->field_count++], GT_EVENT_RETURN_IP);
	for (uint32_t i = 0; i < definition->argument_count; i++) {
		struct gt_event_field *field = &format->fields[format->field_count++];

		gt_probe_argument_field(&definition->arguments[i], field);
		__builtin_memcpy(kept->arguments[i], field->name, sizeof(kept->arguments[i]));
		field->name = kept->arguments[i];
	}
}

/* One that was removed and is the same; false: there is none. */
static bool find_removed(const struct gt_arena_control *control,
			 const struct gt_event_format *format, uint32_t *index)
{
	for (*index = 0; *index < gt_arena_later_count(control); ++*index)
		if (!control->later[*index].is_there &&
		    gt_event_is_same_format(control->ring->later[*index], format))
			return true;
	return false;
}

/* Its number is told. */
static int make_event(struct gt_arena_control *control, struct gt_arena_probe *probe,
		      struct gt_message *message)
{
	struct kept_format *kept = gt_memory_get(&control->memory, sizeof(*kept));
	bool is_known;
	int error;

	if (kept == NULL)
		return gt_arena_no_memory(message);
	make_format(kept, probe);
	is_known = find_removed(control, &kept->format, &probe->event);
	error = is_known ? gt_arena_later_show(control, probe->event)
			 : gt_arena_later_add(control, &kept->format, &probe->event);
	if (is_known || error != 0)
		gt_memory_put(&control->memory, kept, sizeof(*kept));
	if (error == GT_ENOSPC)
		return REFUSE(
			message, error,
			"this kernel has had %u events that came later, and has room for no more",
			gt_arena_later_count(control));
	return error == 0 ? 0 : gt_arena_no_memory(message);
}

static bool has_static_event(const struct gt_arena_control *control, const char *group,
			     const char *name)
{
	struct gt_event_format format;

	for (uint32_t i = 0; i < control->event_count; i++)
		if (gt_arena_event_format(control, i, &format) == 0 &&
		    gt_string_is(format.system, group) && gt_string_is(format.name, name))
			return true;
	return false;
}

/* The event may be there already: of another probe of the same kind. */
static int join_event(struct gt_arena_control *control, struct gt_arena_probe *probe,
		      struct gt_probe_error *error, struct gt_message *message)
{
	const struct gt_probe_definition *definition = &probe->definition;
	bool joins = false;

	for (uint32_t i = 0; i < control->probe_count; i++) {
		struct gt_arena_probe *other = control->probes[i];
		int result;

		if (!gt_string_is(other->definition.group, definition->group) ||
		    !gt_string_is(other->definition.name, definition->name))
			continue;
		result = gt_probe_compare(&other->definition, definition,
					  other->recorded.address == probe->recorded.address,
					  probe->text, error);
		if (result != 0)
			return gt_fail(message, result, "%s", error->text);
		probe->event = other->event;
		joins = true;
	}
	if (joins)
		return 0;
	if (has_static_event(control, definition->group, definition->name) ||
	    gt_arena_later_find(control, definition->group, definition->name, &probe->event))
		return refuse(error, GT_EEXIST, gt_probe_error_exists, 0, message);
	return make_event(control, probe, message);
}

/* ---- operations ---- */

static void drop(struct gt_arena_control *control, struct gt_arena_probe *probe)
{
	gt_memory_put(&control->memory, probe, probe->bytes);
}

/* The line, parsed; it is copied. NULL: no memory, or *result. */
static struct gt_arena_probe *parse(struct gt_arena_control *control, const char *line,
				    size_t bytes, struct gt_probe_error *error, int *result,
				    struct gt_message *message)
{
	struct gt_probe_definition *scratch = gt_memory_get(&control->memory, sizeof(*scratch));
	struct gt_arena_probe *probe = NULL;
	size_t all, fetch;

	*result = scratch != NULL ? gt_probe_parse(line, bytes, GT_PROBES_KERNEL, scratch, error)
				  : gt_arena_no_memory(message);
	if (scratch != NULL && *result != 0)
		gt_fail(message, *result, "%s", error->text);
	if (*result == 0) {
		fetch = (fetch_bytes(scratch) + 7) & ~7ul;
		all = sizeof(*probe) + fetch + bytes + literal_bytes(scratch);
		probe = gt_memory_get(&control->memory, all);
	}
	if (probe != NULL) {
		char *text = (char *)(probe + 1) + fetch;

		__builtin_memset(probe, 0, all);
		probe->bytes = all;
		probe->fetch = (struct graftrace_probe *)(probe + 1);
		__builtin_memcpy(text, line, bytes);
		probe->text = text;
		probe->text_bytes = bytes;
		*result = gt_probe_parse(text, bytes, GT_PROBES_KERNEL, &probe->definition, error);
	} else if (*result == 0) {
		*result = gt_arena_no_memory(message);
	}
	gt_memory_put(&control->memory, scratch, sizeof(*scratch));
	return probe;
}

static int add(struct gt_arena_control *control, struct gt_arena_probe *probe,
	       struct gt_probe_error *error, struct gt_message *message)
{
	int result;

	if (probe->definition.removes)
		return refuse(error, GT_EINVAL, gt_probe_error_address, 0, message);
	if (control->probe_count == GT_ARENA_PROBES)
		return REFUSE(message, GT_ENOSPC, "a kernel has %u probes at most",
			      GT_ARENA_PROBES);
	result = find_place(control, probe, error, message);
	if (result != 0)
		return result;
	make_fetch(control, probe, (char *)(uintptr_t)probe->text + probe->text_bytes);
	result = join_event(control, probe, error, message);
	if (result != 0)
		return result;
	probe->fetch->event = control->ring->later_first + probe->event;
	control->recorded[control->probe_count] = &probe->recorded;
	control->probes[control->probe_count++] = probe;
	gt_arena_probes_patch(
		control); /* its event may be on: another's, whose rules are as they were */
	return 0;
}

/* The lists, when the first probe comes. */
static bool need_lists(struct gt_arena_control *control)
{
	const size_t bytes = GT_ARENA_PROBES * sizeof(*control->probes);

	if (control->probes == NULL)
		control->probes = gt_memory_get(&control->memory, bytes);
	if (control->recorded == NULL)
		control->recorded = gt_memory_get(&control->memory, bytes);
	return control->probes != NULL && control->recorded != NULL;
}

int gt_arena_probe_set(struct gt_control_target *target, const char *line, size_t bytes,
		       enum gt_probe_kinds kinds, struct gt_probe_error *error,
		       struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);
	struct gt_arena_probe *probe;
	int result;

	(void)kinds;
	*error = (struct gt_probe_error){ "", 0 };
	if (control->machine->patch_probes == NULL)
		return REFUSE(message, GT_ENOTSUP, "this kernel has no room for probes");
	gt_arena_lock(control);
	probe = parse(control, line, bytes, error, &result, message);
	if (result == 0 && !need_lists(control))
		result = gt_arena_no_memory(message);
	if (result == 0)
		result = add(control, probe, error, message);
	if (result != 0 && probe != NULL)
		drop(control, probe);
	gt_arena_unlock(control);
	return result;
}

/* ---- what is on ---- */

bool gt_arena_probe_acts(const struct gt_arena_control *control, uint32_t index)
{
	struct gt_event_format format;

	return gt_arena_later_event(control, index, &format) &&
	       gt_arena_event_acts(control, &format);
}

static uint32_t is_wanted(const struct gt_arena_control *control, uint32_t index)
{
	uint32_t wanted = control->later[index].on ? GRAFTRACE_EVENT_RECORDED : 0;

	if (gt_arena_probe_acts(control, index))
		wanted |= GRAFTRACE_EVENT_RECORDED | GRAFTRACE_EVENT_ACTS;
	return wanted;
}

void gt_arena_probes_patch(struct gt_arena_control *control)
{
	const struct gt_arena_machine *machine = control->machine;
	bool changed = false;

	for (uint32_t i = 0; i < control->probe_count; i++) {
		const uint32_t wanted = is_wanted(control, control->probes[i]->event);

		changed |= control->recorded[i]->wanted != wanted;
		control->recorded[i]->wanted = wanted;
	}
	if (changed)
		machine->patch_probes(machine->data, control->recorded, control->probe_count);
}

/* ---- removal ---- */

static bool is_named(const struct gt_arena_probe *probe, const char *group, const char *name)
{
	return (*group == 0 || gt_string_is(probe->definition.group, group)) &&
	       (*name == 0 || gt_string_is(probe->definition.name, name));
}

static bool is_in_use(const struct gt_arena_control *control, uint32_t index)
{
	struct gt_event_format format;

	return gt_arena_later_event(control, index, &format) &&
	       (gt_arena_event_is_on(control, control->later[index].on, &format) ||
		gt_arena_event_acts(control, &format));
}

/* Its event goes with the last of its probes. */
static int forget_event(struct gt_arena_control *control, uint32_t index,
			struct gt_message *message)
{
	struct gt_event_format format;
	char word[2 * GT_PROBE_NAME_MAX + 2];
	int error = 0;

	if (!gt_arena_later_event(control, index, &format))
		return 0;
	gt_format(word, sizeof(word), "%s:%s", format.system, format.name);
	if (control->has_rules)
		error = gt_event_rules_set_filter(&control->rules, word, NULL, message);
	if (error == 0 && control->has_rules)
		error = gt_arena_rule_arm(control, &format, true, message); /* without one */
	if (error == 0 && gt_filter_texts_set(&control->filter_texts, word, "", 0, NULL) != 0)
		error = gt_arena_no_memory(message);
	if (error == 0)
		gt_arena_later_remove(control, index);
	return error;
}

/* Takes those out of the lists, from where the recorder knows them, and gives their memory back. */
static void take_out(struct gt_arena_control *control, const char *group, const char *name)
{
	const struct gt_arena_machine *machine = control->machine;
	uint32_t kept = 0, count = control->probe_count;

	for (uint32_t i = 0; i < count; i++) {
		struct gt_arena_probe *probe = control->probes[i];

		if (is_named(probe, group, name))
			continue;
		control->probes[i] = control->probes[kept];
		control->recorded[kept] = &probe->recorded;
		control->probes[kept++] = probe;
	}
	control->probe_count = kept;
	machine->patch_probes(machine->data, control->recorded, kept);
	while (count-- > kept)
		drop(control, control->probes[count]);
}

static int remove_named(struct gt_arena_control *control, const char *group, const char *name,
			struct gt_message *message)
{
	bool found = *group == 0 && *name == 0;
	int error = 0;

	for (uint32_t i = 0; i < control->probe_count; i++) {
		if (!is_named(control->probes[i], group, name))
			continue;
		found = true;
		if (is_in_use(control, control->probes[i]->event))
			return gt_fail(message, GT_EBUSY,
				       "the event is recorded: switch it off first");
	}
	if (!found)
		return gt_fail(message, GT_ENOENT, "there is no such probe");
	for (uint32_t i = 0; error == 0 && i < control->probe_count; i++)
		if (is_named(control->probes[i], group, name))
			error = forget_event(control, control->probes[i]->event, message);
	if (error == 0 && control->probe_count != 0)
		take_out(control, group, name);
	return error;
}

int gt_arena_probes_remove(struct gt_control_target *target, const char *group, const char *name,
			   struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);

	gt_arena_lock(control);
	const int error = remove_named(control, group, name, message);
	gt_arena_unlock(control);
	return error;
}

/* ---- what the files show ---- */

int gt_arena_probe(struct gt_control_target *target, uint64_t index, char *line, size_t bytes)
{
	struct gt_arena_control *control = gt_arena_self(target);
	int error = GT_ENOENT;

	gt_arena_lock(control);
	if (index < control->probe_count) {
		gt_probe_print_symbol(&control->probes[index]->definition, line, bytes);
		error = 0;
	}
	gt_arena_unlock(control);
	return error;
}

/* As probes_profile_seq_show of trace_kprobe.c. */
int gt_arena_probe_hits(struct gt_control_target *target, uint64_t index, char *line, size_t bytes)
{
	struct gt_arena_control *control = gt_arena_self(target);
	int error = GT_ENOENT;

	gt_arena_lock(control);
	if (index < control->probe_count) {
		const struct graftrace_kernel_probe *probe = control->recorded[index];

		gt_format(line, bytes, "  %-44s %15llu %15llu",
			  control->probes[index]->definition.name,
			  (unsigned long long)__atomic_load_n(&probe->hits, __ATOMIC_RELAXED),
			  (unsigned long long)__atomic_load_n(&probe->missed, __ATOMIC_RELAXED));
		error = 0;
	}
	gt_arena_unlock(control);
	return error;
}
