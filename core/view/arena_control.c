/* SPDX-License-Identifier: MIT */
/* The operations behind a kernel's control files: see arena_control.h. Any thread. */
#include "core/view/arena_control.h"
#include "core/view/control_row.h"
#include "core/view/glob.h"
#include "core/view/text.h"

/* Bits of marks. */
enum {
	FILTER = 1,
	NOTRACE = 2,
	GRAPH = 4,
	GRAPH_NOTRACE = 8,
};

/* A reader of the trace as text. */
struct reader {
	bool consumes;
	struct gt_arena_target target;
	struct gt_filter filter;
	struct gt_text text;
};

struct list {
	enum gt_control_list which;
	uint64_t index;	 /* of the line after the one given last … */
	uint32_t number; /* … and where its search goes on */
};

struct edit {
	unsigned bit;
	uint8_t marks[];
};

static struct gt_arena_control *self(struct gt_control_target *target)
{
	return target->data;
}

static void lock(struct gt_arena_control *control)
{
	control->machine->lock(control->machine->data);
}

static void unlock(struct gt_arena_control *control)
{
	control->machine->unlock(control->machine->data);
}

static int no_memory(struct gt_message *message)
{
	gt_message_set(message, "no memory");
	return GT_ENOMEM;
}

/* ---- values ---- */

static int get(struct gt_control_target *target, enum gt_control_value which, uint64_t *value)
{
	struct gt_arena_control *control = self(target);
	const struct graftrace_arena *arena = control->ring->arena;
	switch (which) {
	case GT_CONTROL_TRACING_ON:
		*value = __atomic_load_n(&arena->tracing_on, __ATOMIC_RELAXED);
		return GT_OK;
	case GT_CONTROL_TRACER:
		*value = __atomic_load_n(&arena->tracer, __ATOMIC_RELAXED);
		return GT_OK;
	case GT_CONTROL_MAX_DEPTH:
		*value = __atomic_load_n(&arena->max_depth, __ATOMIC_RELAXED);
		return GT_OK;
	case GT_CONTROL_THRESHOLD_NS:
		*value = control->threshold_ns;
		return GT_OK;
	case GT_CONTROL_OPTIONS:
		*value = control->options;
		return GT_OK;
	case GT_CONTROL_BUFFER_BYTES:
	case GT_CONTROL_TOTAL_BYTES:
		*value = (uint64_t)arena->sub_buffer_count * arena->sub_buffer_bytes;
		return GT_OK;
	case GT_CONTROL_CLOCK_ID:
		*value = control->clock_id;
		return GT_OK;
	case GT_CONTROL_NOW_NS:
		*value = control->machine->now_ns(control->machine->data);
		return GT_OK;
	case GT_CONTROL_CMDLINES:
		*value = control->cmdlines;
		return GT_OK;
	default:
		if (which < GT_CONTROL_CPUMASK || which >= GT_CONTROL_CPUMASK_END)
			return GT_ENOTSUP;
		*value = control->cpumask[which - GT_CONTROL_CPUMASK];
		return GT_OK;
	}
}

static void set_threshold(struct gt_arena_control *control, uint64_t ns)
{
	const struct gt_clock *clock = &control->ring->clock;
	/* ns << shift / mult, with 64 bits: a kernel's mult has less than 64 - shift */
	uint64_t ticks = ((ns / clock->mult) << clock->shift) +
			 ((ns % clock->mult) << clock->shift) / clock->mult;
	control->threshold_ns = ns;
	control->machine->set_threshold(control->machine->data, ns && !ticks ? 1 : ticks);
}

static int set_options(struct gt_arena_control *control, uint64_t options,
		       struct gt_message *message)
{
	const struct gt_arena_machine *machine = control->machine;
	uint64_t changed = options ^ control->options;
	if (changed & ~(GT_OPTIONS_OF_TEXT | GT_OPTION_OVERWRITE | GT_OPTION_FUNC_STACK))
		return REFUSE(message, GT_ENOTSUP, "this kernel's recorder has no such option");
	__atomic_store_n(&control->ring->arena->mode,
			 options & GT_OPTION_OVERWRITE ? GRAFTRACE_MODE_OVERWRITE
						       : GRAFTRACE_MODE_RING,
			 __ATOMIC_RELAXED);
	control->options = options;
	if (changed & GT_OPTION_FUNC_STACK) {
		machine->set_func_stack(machine->data, options & GT_OPTION_FUNC_STACK);
		gt_arena_control_patch(control);
	}
	return GT_OK;
}

static int set_locked(struct gt_arena_control *control, enum gt_control_value which, uint64_t value,
		      struct gt_message *message)
{
	const struct gt_arena_machine *machine = control->machine;
	switch (which) {
	case GT_CONTROL_TRACING_ON:
		machine->set_tracing_on(machine->data, value != 0);
		return GT_OK;
	case GT_CONTROL_TRACER:
		if (value > GRAFTRACE_TRACER_FUNCTION_GRAPH)
			return REFUSE(message, GT_EINVAL, "this kernel has no such tracer");
		machine->set_tracer(machine->data, (enum graftrace_tracer)value);
		gt_arena_control_patch(control);
		return GT_OK;
	case GT_CONTROL_MAX_DEPTH:
		machine->set_max_depth(machine->data, (uint32_t)value);
		return GT_OK;
	case GT_CONTROL_THRESHOLD_NS:
		set_threshold(control, value);
		return GT_OK;
	case GT_CONTROL_OPTIONS:
		return set_options(control, value, message);
	case GT_CONTROL_BUFFER_BYTES:
	case GT_CONTROL_TOTAL_BYTES:
		return REFUSE(message, GT_ENOTSUP,
			      "the ring has the size that the kernel was booted with (BUFFER=)");
	case GT_CONTROL_CLOCK_ID:
		if (value >= GT_CLOCKS)
			return GT_EINVAL;
		control->clock_id = (uint32_t)value;
		return GT_OK;
	case GT_CONTROL_CMDLINES:
		control->cmdlines = value;
		return GT_OK;
	default:
		return REFUSE(message, GT_ENOTSUP, "this kernel cannot change that");
	}
}

static int set(struct gt_control_target *target, enum gt_control_value which, uint64_t value,
	       struct gt_message *message)
{
	struct gt_arena_control *control = self(target);
	lock(control);
	int error = set_locked(control, which, value, message);
	unlock(control);
	return error;
}

/* ---- lists of functions ---- */

static unsigned bit_of(enum gt_control_list which)
{
	switch (which) {
	case GT_CONTROL_FILTER:
		return FILTER;
	case GT_CONTROL_NOTRACE:
		return NOTRACE;
	case GT_CONTROL_GRAPH:
		return GRAPH;
	case GT_CONTROL_GRAPH_NOTRACE:
		return GRAPH_NOTRACE;
	default:
		return 0;
	}
}

static unsigned place_of(unsigned bit)
{
	return (unsigned)__builtin_ctz(bit);
}

static bool is_on(const struct gt_arena_control *control, uint32_t index)
{
	uint8_t marks = control->marks[index];
	return (!control->set[place_of(FILTER)] || marks & FILTER) && !(marks & NOTRACE);
}

void gt_arena_control_patch(struct gt_arena_control *control)
{
	const struct gt_arena_machine *machine = control->machine;
	bool off = control->ring->arena->tracer == GRAFTRACE_TRACER_NOP;
	bool stacks = control->ring->arena->tracer == GRAFTRACE_TRACER_FUNCTION &&
		      control->options & GT_OPTION_FUNC_STACK;
	for (uint32_t i = 0; i < control->function_count; i++) {
		uint8_t marks = control->marks[i];
		control->wanted[i] = off ? GT_ARENA_ENTRY_OFF
				     : !is_on(control, i)
					     ? stacks ? GT_ARENA_ENTRY_SILENT : GT_ARENA_ENTRY_OFF
				     : marks & GRAPH_NOTRACE ? GT_ARENA_ENTRY_NOTRACE
				     : marks & GRAPH	     ? GT_ARENA_ENTRY_ROOT
							     : GT_ARENA_ENTRY_ON;
	}
	machine->patch(machine->data, control->wanted);
}

static int list_open(struct gt_control_target *target, enum gt_control_list which, void **out,
		     struct gt_message *message)
{
	struct gt_arena_control *control = self(target);
	unsigned bit = bit_of(which);
	if (bit && !control->set[place_of(bit)])
		return 1;
	struct list *list = gt_memory_get(&control->memory, sizeof(*list));
	if (!list)
		return no_memory(message);
	*list = (struct list){ .which = which, .number = 1 };
	*out = list;
	return GT_OK;
}

static bool is_listed(const struct gt_arena_control *control, enum gt_control_list which,
		      uint32_t number)
{
	unsigned bit = bit_of(which);
	if (bit)
		return control->marks[number - 1] & bit;
	if (which == GT_CONTROL_AVAILABLE)
		return true;
	return control->ring->arena->tracer != GRAFTRACE_TRACER_NOP && is_on(control, number - 1);
}

static int list_read(struct gt_control_target *target, void *opened, uint64_t index,
		     struct gt_control_name *name)
{
	struct gt_arena_control *control = self(target);
	const struct gt_arena_names *names = control->ring->names;
	struct list *list = opened;
	/* lines are read in order, the last one perhaps again */
	if (index != list->index) {
		list->number = 1;
		list->index = 0;
	}
	for (; list->number <= control->function_count; list->number++) {
		struct gt_function function;
		if (!is_listed(control, list->which, list->number) ||
		    names->function(names->data, list->number, &function) != GT_OK)
			continue;
		if (list->index++ != index)
			continue;
		list->number++;
		*name = (struct gt_control_name){ .name = function.name,
						  .address = function.address };
		return GT_OK;
	}
	return GT_ENOENT;
}

static void list_close(struct gt_control_target *target, void *opened)
{
	gt_memory_put(&self(target)->memory, opened, sizeof(struct list));
}

static size_t edit_bytes(const struct gt_arena_control *control)
{
	return sizeof(struct edit) + control->function_count;
}

static int edit_open(struct gt_control_target *target, enum gt_control_list which, bool empty,
		     void **out, struct gt_message *message)
{
	struct gt_arena_control *control = self(target);
	unsigned bit = bit_of(which);
	if (!bit)
		return REFUSE(message, GT_ENOTSUP, "this list cannot be changed");
	struct edit *edit = gt_memory_get(&control->memory, edit_bytes(control));
	if (!edit)
		return no_memory(message);
	edit->bit = bit;
	for (uint32_t i = 0; i < control->function_count; i++)
		edit->marks[i] = !empty && control->marks[i] & bit;
	*out = edit;
	return GT_OK;
}

static bool is_same(const char *a, const char *b)
{
	size_t length = gt_row_length(a);
	return length == gt_row_length(b) && __builtin_memcmp(a, b, length) == 0;
}

/* Sets or takes off the mark of all that match; how many. */
static int mark(struct gt_arena_control *control, struct edit *edit, const char *glob, size_t bytes,
		bool plain, bool value, struct gt_message *message)
{
	const struct gt_arena_names *names = control->ring->names;
	char text[256];
	bool any = false;
	if (bytes >= sizeof(text))
		return REFUSE(message, GT_EINVAL, "a name of %zu bytes", bytes);
	__builtin_memcpy(text, glob, bytes);
	text[bytes] = 0;
	for (uint32_t i = 0; i < control->function_count; i++) {
		struct gt_function function;
		if (names->function(names->data, i + 1, &function) != GT_OK)
			continue;
		if (plain ? !is_same(text, function.name) : !gt_glob_match(text, function.name))
			continue;
		if (value || edit->marks[i])
			any = true;
		edit->marks[i] = value;
	}
	if (!any)
		return REFUSE(message, GT_EINVAL, "no function matches '%s'", text);
	return GT_OK;
}

static int edit_add(struct gt_control_target *target, void *opened, const char *glob, size_t bytes,
		    const char *module, size_t module_bytes, bool plain, struct gt_message *message)
{
	(void)module_bytes;
	if (module)
		return REFUSE(message, GT_EINVAL, "a kernel has one object only");
	return mark(self(target), opened, glob, bytes, plain, true, message);
}

static int edit_remove(struct gt_control_target *target, void *opened, const char *glob,
		       size_t bytes, const char *module, size_t module_bytes,
		       struct gt_message *message)
{
	(void)module_bytes;
	if (module)
		return REFUSE(message, GT_EINVAL, "a kernel has one object only");
	return mark(self(target), opened, glob, bytes, false, false, message);
}

static int edit_close(struct gt_control_target *target, void *opened, struct gt_message *message)
{
	struct gt_arena_control *control = self(target);
	const struct gt_arena_machine *machine = control->machine;
	struct edit *edit = opened;
	bool any = false;
	(void)message;
	lock(control);
	for (uint32_t i = 0; i < control->function_count; i++) {
		any = any || edit->marks[i];
		control->marks[i] &= (uint8_t)~edit->bit;
		if (edit->marks[i])
			control->marks[i] |= (uint8_t)edit->bit;
	}
	control->set[place_of(edit->bit)] = any;
	if (edit->bit == GRAPH)
		machine->set_graph_only(machine->data, any);
	gt_arena_control_patch(control);
	unlock(control);
	gt_memory_put(&control->memory, edit, edit_bytes(control));
	return GT_OK;
}

/* ---- the trace ---- */

static int text_open(struct gt_control_target *target, const struct gt_control_scope *scope,
		     bool consume, void **out, struct gt_message *message)
{
	struct gt_arena_control *control = self(target);
	struct gt_arena_ring *ring = control->ring;
	if (consume && scope->kind != GT_SCOPE_ALL)
		return REFUSE(message, GT_ENOTSUP, "only the whole trace can be taken out");
	struct reader *reader = gt_memory_get(&control->memory, sizeof(*reader));
	if (!reader)
		return no_memory(message);
	if (consume && __atomic_exchange_n(&ring->consuming, 1, __ATOMIC_ACQUIRE)) {
		gt_memory_put(&control->memory, reader, sizeof(*reader));
		return REFUSE(message, GT_EBUSY, "another reader takes the trace out");
	}
	reader->consumes = consume;
	gt_arena_target_init(&reader->target, ring);
	__builtin_memset(&reader->filter, 0, sizeof(reader->filter));
	if (scope->kind == GT_SCOPE_THREAD)
		reader->filter.tid = scope->number;
	if (scope->kind == GT_SCOPE_CPU && scope->number < 64 * GT_FILTER_CPU_WORDS)
		reader->filter.cpus[scope->number / 64] = 1ull << scope->number % 64;
	struct gt_text_options options = {
		.options = control->options,
		.mode = consume ? GT_MERGE_CONSUME : GT_MERGE_SNAPSHOT,
		.header = !consume,
		.filter = scope->kind == GT_SCOPE_ALL ? NULL : &reader->filter,
	};
	int error = gt_text_init(&reader->text, &reader->target.target, &control->memory, &options);
	if (error != GT_OK) {
		if (consume)
			__atomic_store_n(&ring->consuming, 0, __ATOMIC_RELEASE);
		gt_memory_put(&control->memory, reader, sizeof(*reader));
		return no_memory(message);
	}
	gt_merge_skip_given(&reader->text.merge, ring->given, GT_ARENA_WRITERS);
	*out = reader;
	return GT_OK;
}

static int64_t text_read(struct gt_control_target *target, void *opened, char *buffer, size_t bytes,
			 struct gt_message *message)
{
	struct reader *reader = opened;
	(void)target;
	(void)message;
	return gt_text_read(&reader->text, buffer, bytes);
}

static void text_close(struct gt_control_target *target, void *opened)
{
	struct gt_arena_control *control = self(target);
	struct gt_arena_ring *ring = control->ring;
	struct reader *reader = opened;
	if (reader->consumes) {
		/* What was given of sub-buffers that are being written cannot be freed: the next
		 * reader leaves it out. */
		for (uint32_t i = 0; i < GT_ARENA_WRITERS; i++) {
			struct gt_merge_given given = gt_merge_given(&reader->text.merge, i);
			if (given.sequence > ring->given[i].sequence ||
			    (given.sequence == ring->given[i].sequence &&
			     given.words > ring->given[i].words))
				ring->given[i] = given;
		}
	}
	gt_text_fini(&reader->text);
	if (reader->consumes)
		__atomic_store_n(&ring->consuming, 0, __ATOMIC_RELEASE);
	gt_memory_put(&control->memory, reader, sizeof(*reader));
}

static int clear(struct gt_control_target *target, const struct gt_control_scope *scope,
		 struct gt_message *message)
{
	struct gt_arena_ring *ring = self(target)->ring;
	if (scope->kind != GT_SCOPE_ALL)
		return REFUSE(message, GT_ENOTSUP, "only the whole trace can be emptied");
	if (__atomic_exchange_n(&ring->consuming, 1, __ATOMIC_ACQUIRE))
		return REFUSE(message, GT_EBUSY, "somebody takes the trace out");
	gt_arena_ring_clear(ring);
	__atomic_store_n(&ring->consuming, 0, __ATOMIC_RELEASE);
	return GT_OK;
}

static const struct gt_control_ops operations = {
	.get = get,
	.set = set,
	.list_open = list_open,
	.list_read = list_read,
	.list_close = list_close,
	.edit_open = edit_open,
	.edit_add = edit_add,
	.edit_remove = edit_remove,
	.edit_close = edit_close,
	.text_open = text_open,
	.text_read = text_read,
	.text_close = text_close,
	.clear = clear,
};

int gt_arena_control_init(struct gt_arena_control *control, struct gt_arena_ring *ring,
			  const struct gt_arena_machine *machine, const struct gt_memory *memory,
			  uint32_t function_count, const char *title)
{
	__builtin_memset(control, 0, sizeof(*control));
	control->ring = ring;
	control->machine = machine;
	control->memory = *memory;
	control->title = title;
	control->function_count = function_count;
	control->options =
		GT_OPTIONS_DEFAULT |
		(ring->arena->mode == GRAFTRACE_MODE_OVERWRITE ? GT_OPTION_OVERWRITE : 0);
	control->clock_id = GT_CLOCK_LOCAL;
	control->cmdlines = 128;
	for (int i = 0; i < 4; i++)
		control->cpumask[i] = ~0ull;
	control->marks = gt_memory_get(memory, function_count);
	control->wanted = gt_memory_get(memory, function_count);
	if (!control->marks || !control->wanted)
		return GT_ENOMEM;
	__builtin_memset(control->marks, 0, function_count);
	gt_arena_target_init(&control->view, ring);
	control->control = (struct gt_control_target){
		.ops = &operations,
		.data = control,
		.kind = GT_CONTROL_KERNEL,
		.view = &control->view.target,
		.groups = &gt_arena_files,
		.group_count = 1,
		.log = &control->log,
	};
	return GT_OK;
}
