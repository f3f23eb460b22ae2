/* SPDX-License-Identifier: MIT */
/* The operations behind a kernel's control files: see kernel_control.h. Any thread. */
#include "core/kernel/kernel_private.h"
#include "core/trace/glob.h"

/* Bits of marks. */
enum {
	FILTER = 1,
	NOTRACE = 2,
	GRAPH = 4,
	GRAPH_NOTRACE = 8,
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

/* ---- values ---- */

static bool has_tracer(const struct gt_arena_control *control, uint64_t tracer)
{
	return tracer <= GRAFTRACE_TRACER_FUNCTION_GRAPH ||
	       (tracer < GRAFTRACE_TRACERS && control->machine->set_tracer != NULL &&
		(tracer == GRAFTRACE_TRACER_BLK ? control->has_blocks : control->has_latencies));
}

/* What the recorder does for a tracer. */
static enum graftrace_tracer recorded(const struct gt_arena_control *control, uint64_t tracer)
{
	return tracer <= GRAFTRACE_TRACER_FUNCTION_GRAPH ? (enum graftrace_tracer)tracer
	       : tracer == GRAFTRACE_TRACER_BLK		 ? GRAFTRACE_TRACER_NOP
	       : control->display_graph			 ? GRAFTRACE_TRACER_FUNCTION_GRAPH
							 : GRAFTRACE_TRACER_FUNCTION;
}

static int get(struct gt_control_target *target, enum gt_control_value which, uint64_t *value)
{
	struct gt_arena_control *control = self(target);
	const struct graftrace_arena *arena = control->ring->arena;
	switch (which) {
	case GT_CONTROL_TRACING_ON:
		*value = __atomic_load_n(&arena->tracing_on, __ATOMIC_RELAXED);
		return 0;
	case GT_CONTROL_TRACER:
		*value = gt_arena_tracer(control);
		return 0;
	case GT_CONTROL_TRACERS:
		*value = 0;
		for (uint32_t i = GRAFTRACE_TRACER_BLK; i < GRAFTRACE_TRACERS; i++)
			*value |= (uint64_t)has_tracer(control, i) << i;
		return 0;
	case GT_CONTROL_MAX_DEPTH:
		*value = __atomic_load_n(&arena->max_depth, __ATOMIC_RELAXED);
		return 0;
	case GT_CONTROL_THRESHOLD_NS:
		*value = control->threshold_ns;
		return 0;
	case GT_CONTROL_OPTIONS:
		*value = control->options;
		return 0;
	case GT_CONTROL_BUFFER_BYTES:
	case GT_CONTROL_TOTAL_BYTES:
		*value = (uint64_t)arena->sub_buffer_count * arena->sub_buffer_bytes;
		return 0;
	case GT_CONTROL_CLOCK_ID:
		*value = control->clock_id;
		return 0;
	case GT_CONTROL_NOW_NS:
		*value = control->machine->now_ns(control->machine->data);
		return 0;
	case GT_CONTROL_CMDLINES:
		*value = control->cmdlines;
		return 0;
	case GT_CONTROL_PROFILE:
		*value = __atomic_load_n(&arena->profile, __ATOMIC_RELAXED);
		return 0;
	default:
		if (which < GT_CONTROL_CPUMASK || which >= GT_CONTROL_CPUMASK_END)
			return GT_ENOTSUP;
		*value = control->cpumask[which - GT_CONTROL_CPUMASK];
		return 0;
	}
}

/* What the kernel has not supplied. */
static int cannot(struct gt_message *message, const char *what)
{
	return REFUSE(message, GT_ENOTSUP, "this kernel cannot change %s", what);
}

/* A latency tracer's is about latencies, any other one's about calls. */
static void publish_threshold(const struct gt_arena_control *control)
{
	const struct gt_arena_machine *machine = control->machine;
	uint64_t ticks = gt_arena_ticks(control, control->threshold_ns);
	bool latency = gt_arena_is_latency(control->tracer);
	if (control->threshold_ns != 0 && ticks == 0)
		ticks = 1;
	if (machine->set_threshold != NULL)
		machine->set_threshold(machine->data, latency ? 0 : ticks);
	if (control->has_latencies)
		machine->latency_set_threshold(machine->data, latency ? ticks : 0);
}

static int set_threshold(struct gt_arena_control *control, uint64_t ns, struct gt_message *message)
{
	if (control->machine->set_threshold == NULL)
		return cannot(message, "the threshold");
	if (ns != 0 && control->ring->arena->profile)
		return REFUSE(message, GT_EBUSY,
			      "the function profiler does not run beside tracing_thresh");
	control->threshold_ns = ns;
	publish_threshold(control);
	return 0;
}

static int set_options(struct gt_arena_control *control, uint64_t options,
		       struct gt_message *message)
{
	const struct gt_arena_machine *machine = control->machine;
	uint64_t changed = options ^ control->options;
	if (changed & ~(GT_OPTIONS_OF_TEXT | GT_OPTION_OVERWRITE | GT_OPTION_FUNCTION_FORK |
			GT_OPTION_GRAPH_TIME | GT_OPTION_MARKERS | GT_OPTION_PAUSE_ON_TRACE |
			GT_OPTION_FUNC_STACK))
		return REFUSE(message, GT_ENOTSUP, "this kernel's recorder has no such option");
	if (changed & GT_OPTION_OVERWRITE && gt_arena_is_latency(control->tracer))
		return REFUSE(message, GT_EINVAL, "latency tracers keep the newest");
	if (changed & GT_OPTION_SLEEP_TIME)
		return REFUSE(message, GT_ENOTSUP,
			      "this kernel keeps no times off the CPU: 'graftrace show -O "
			      "nosleep-time' of its recording takes them out");
	if (changed & GT_OPTION_FUNC_STACK && machine->set_func_stack == NULL)
		return cannot(message, "func_stack_trace");
	__atomic_store_n(&control->ring->arena->mode,
			 options & GT_OPTION_OVERWRITE ? GRAFTRACE_MODE_OVERWRITE
						       : GRAFTRACE_MODE_RING,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&control->ring->arena->children_follow,
			 (options & GT_OPTION_FUNCTION_FORK) != 0, __ATOMIC_RELAXED);
	control->options = options;
	if (changed & GT_OPTION_FUNC_STACK) {
		machine->set_func_stack(machine->data, options & GT_OPTION_FUNC_STACK);
		gt_arena_control_patch(control);
	}
	return 0;
}

/* All that was recorded up to here, also where a recording (which has whole sub-buffers) begins
 * next. The caller consumes. */
static void clear_ring(struct gt_arena_control *control)
{
	if (control->machine->close_all != NULL)
		control->machine->close_all(control->machine->data);
	gt_arena_ring_clear(control->ring);
}

/* As in Linux, where a tracer or a clock changes. What a reader takes out meanwhile stays. */
static void empty(struct gt_arena_control *control)
{
	struct gt_arena_ring *ring = control->ring;
	if (__atomic_exchange_n(&ring->consuming, 1, __ATOMIC_ACQUIRE))
		return;
	clear_ring(control);
	__atomic_store_n(&ring->consuming, 0, __ATOMIC_RELEASE);
}

static unsigned place_of(unsigned bit)
{
	return (unsigned)__builtin_ctz(bit);
}

/* The tracer function knows no functions below which calls are looked for, as on Linux. A kernel
 * that cannot look for them has none (edit_open). */
static void publish_roots(struct gt_arena_control *control)
{
	const struct gt_arena_machine *machine = control->machine;
	const struct graftrace_arena *arena = control->ring->arena;

	if (machine->set_graph_only != NULL)
		machine->set_graph_only(machine->data,
					control->set[place_of(GRAPH)] &&
						arena->tracer != GRAFTRACE_TRACER_FUNCTION);
}

int gt_arena_choose_tracer(struct gt_arena_control *control, uint32_t tracer,
			   struct gt_message *message)
{
	const struct gt_arena_machine *machine = control->machine;
	if (recorded(control, tracer) == GRAFTRACE_TRACER_FUNCTION && control->ring->arena->profile)
		return REFUSE(message, GT_EBUSY,
			      "the function profiler does not run beside that tracer");
	uint32_t before = gt_arena_tracer(control);
	__atomic_store_n(&control->tracer, tracer, __ATOMIC_RELAXED);
	machine->set_tracer(machine->data, recorded(control, tracer));
	gt_arena_latency_options(control, before, tracer);
	publish_threshold(control);
	publish_roots(control);
	gt_arena_control_patch(control);
	gt_arena_events_patch(control, NULL);
	empty(control);
	gt_arena_latency_begin(control, before);
	return 0;
}

static int set_locked(struct gt_arena_control *control, enum gt_control_value which, uint64_t value,
		      struct gt_message *message)
{
	const struct gt_arena_machine *machine = control->machine;
	switch (which) {
	case GT_CONTROL_TRACING_ON:
		machine->set_tracing_on(machine->data, value != 0);
		return 0;
	case GT_CONTROL_TRACER:
		if (machine->set_tracer == NULL)
			return cannot(message, "the tracer");
		if (!has_tracer(control, value))
			return REFUSE(message, GT_EINVAL, "this kernel has no such tracer");
		return gt_arena_choose_tracer(control, (uint32_t)value, message);
	case GT_CONTROL_MAX_DEPTH:
		if (machine->set_max_depth == NULL)
			return cannot(message, "the depth");
		machine->set_max_depth(machine->data, (uint32_t)value);
		return 0;
	case GT_CONTROL_THRESHOLD_NS:
		return set_threshold(control, value, message);
	case GT_CONTROL_PROFILE:
		return gt_arena_set_profile(control, value != 0, message);
	case GT_CONTROL_OPTIONS_ON:
	case GT_CONTROL_OPTIONS_OFF:
		return set_options(control, gt_control_options_with(control->options, which, value),
				   message);
	case GT_CONTROL_BUFFER_BYTES:
	case GT_CONTROL_TOTAL_BYTES:
		return REFUSE(message, GT_ENOTSUP,
			      "the ring has the size that the kernel was booted with (BUFFER=)");
	case GT_CONTROL_CLOCK_ID:
		if (value >= GT_CLOCKS)
			return GT_EINVAL;
		control->clock_id = (uint32_t)value;
		empty(control);
		return 0;
	case GT_CONTROL_CMDLINES:
		control->cmdlines = value;
		return 0;
	default:
		if (which < GT_CONTROL_CPUMASK || which >= GT_CONTROL_CPUMASK_END)
			return REFUSE(message, GT_ENOTSUP, "this kernel cannot change that");
		control->cpumask[which - GT_CONTROL_CPUMASK] = value;
		return 0;
	}
}

static int set(struct gt_control_target *target, enum gt_control_value which, uint64_t value,
	       struct gt_message *message)
{
	struct gt_arena_control *control = self(target);
	gt_arena_lock(control);
	int error = set_locked(control, which, value, message);
	gt_arena_unlock(control);
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

static bool is_on(const struct gt_arena_control *control, uint32_t index)
{
	uint8_t marks = control->marks[index];
	return (!control->set[place_of(FILTER)] || marks & FILTER) && !(marks & NOTRACE);
}

void gt_arena_control_patch(struct gt_arena_control *control)
{
	const struct gt_arena_machine *machine = control->machine;
	const struct graftrace_arena *arena = control->ring->arena;
	bool silent = gt_arena_is_latency(control->tracer) && !control->function_trace;
	bool off = (arena->tracer == GRAFTRACE_TRACER_NOP || silent) && !arena->profile;
	bool flat = arena->tracer == GRAFTRACE_TRACER_FUNCTION;
	bool stacks = flat && control->options & GT_OPTION_FUNC_STACK;
	for (uint32_t i = 0; i < control->function_count; i++) {
		uint8_t marks = control->marks[i];
		control->wanted[i] = off ? GRAFTRACE_ENTRY_OFF
				     : !is_on(control, i)
					     ? stacks ? GRAFTRACE_ENTRY_SILENT : GRAFTRACE_ENTRY_OFF
				     : marks & GRAPH_NOTRACE  ? GRAFTRACE_ENTRY_NOTRACE
				     : marks & GRAPH && !flat ? GRAFTRACE_ENTRY_ROOT
							      : GRAFTRACE_ENTRY_ON;
	}
	gt_arena_command_patch(control);
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
	if (list == NULL)
		return gt_arena_no_memory(message);
	*list = (struct list){ .which = which, .number = 1 };
	*out = list;
	return 0;
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
		    names->function(names->data, list->number, &function) != 0)
			continue;
		if (list->index++ != index)
			continue;
		list->number++;
		*name = (struct gt_control_name){ .name = function.name,
						  .address = function.address };
		return 0;
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
	if (bit == GRAPH && control->machine->set_graph_only == NULL)
		return cannot(message, "whose calls are followed");
	struct edit *edit = gt_memory_get(&control->memory, edit_bytes(control));
	if (edit == NULL)
		return gt_arena_no_memory(message);
	edit->bit = bit;
	for (uint32_t i = 0; i < control->function_count; i++)
		edit->marks[i] = !empty && control->marks[i] & bit;
	*out = edit;
	return 0;
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
		if (names->function(names->data, i + 1, &function) != 0)
			continue;
		if (plain ? !is_same(text, function.name) : !gt_glob_match(text, function.name))
			continue;
		any = any || value || edit->marks[i] || edit->bit == FILTER || edit->bit == NOTRACE;
		edit->marks[i] = value;
	}
	if (!any)
		return REFUSE(message, GT_EINVAL,
			      "no function matches '%.80s'; available_filter_functions lists them",
			      text);
	return 0;
}

static int edit_add(struct gt_control_target *target, void *opened, const char *glob, size_t bytes,
		    const char *module, size_t module_bytes, bool plain, struct gt_message *message)
{
	(void)module_bytes;
	if (module != NULL)
		return REFUSE(message, GT_EINVAL, "a kernel has one object only");
	return mark(self(target), opened, glob, bytes, plain, true, message);
}

static int edit_remove(struct gt_control_target *target, void *opened, const char *glob,
		       size_t bytes, const char *module, size_t module_bytes,
		       struct gt_message *message)
{
	(void)module_bytes;
	if (module != NULL)
		return REFUSE(message, GT_EINVAL, "a kernel has one object only");
	return mark(self(target), opened, glob, bytes, false, false, message);
}

static int edit_close(struct gt_control_target *target, void *opened, struct gt_message *message)
{
	struct gt_arena_control *control = self(target);
	struct edit *edit = opened;
	bool any = false;
	(void)message;
	gt_arena_lock(control);
	for (uint32_t i = 0; i < control->function_count; i++) {
		any = any || edit->marks[i];
		control->marks[i] &= (uint8_t)~edit->bit;
		if (edit->marks[i])
			control->marks[i] |= (uint8_t)edit->bit;
	}
	control->set[place_of(edit->bit)] = any;
	if (edit->bit == GRAPH)
		publish_roots(control);
	gt_arena_control_patch(control);
	gt_arena_unlock(control);
	gt_memory_put(&control->memory, edit, edit_bytes(control));
	return 0;
}

/* ---- the trace ---- */

static void pause_locked(struct gt_arena_control *control, int step)
{
	const struct gt_arena_machine *machine = control->machine;
	control->paused += (uint32_t)step;
	if (control->paused == (step > 0))
		machine->set_tracing_on(machine->data, step < 0);
}

/* What of the ring the options, and the file that is read, let through. */
static void set_filter(struct gt_arena_control *control, const struct gt_control_scope *scope,
		       struct gt_filter *filter)
{
	__builtin_memset(filter, 0, sizeof(*filter));
	for (int i = 0; i < GT_FILTER_CPU_WORDS; i++)
		filter->cpus[i] = control->cpumask[i];
	if (scope->kind == GT_SCOPE_THREAD)
		filter->tid = scope->number;
	if (scope->kind == GT_SCOPE_CPU && scope->number < 64 * GT_FILTER_CPU_WORDS) {
		__builtin_memset(filter->cpus, 0, sizeof(filter->cpus));
		filter->cpus[scope->number / 64] = 1ull << scope->number % 64;
	}
}

static bool shows_all(const struct gt_filter *filter)
{
	uint64_t cpus = ~0ull;
	for (int i = 0; i < GT_FILTER_CPU_WORDS; i++)
		cpus &= filter->cpus[i];
	return filter->tid == 0 && cpus == ~0ull;
}

/* All clocks run with the counter, and all but these two are the time since boot. */
static void set_clock(const struct gt_arena_control *control, struct gt_text_options *options)
{
	options->other_clock =
		control->clock_id == GT_CLOCK_TSC || control->clock_id == GT_CLOCK_UPTIME;
	if (control->clock_id == GT_CLOCK_COUNTER) {
		options->counts = true;
		options->units = 1;
	} else if (control->clock_id == GT_CLOCK_TSC) {
		options->clock = (struct gt_clock){ .mult = 1 };
		options->units = 1;
	} else if (control->clock_id == GT_CLOCK_UPTIME) {
		options->clock = control->ring->clock;
		options->units = 10000000;
	}
}

int gt_arena_reader_open(struct gt_arena_control *control, const struct gt_control_scope *scope,
			 bool consume, struct gt_arena_snapshot *snapshot, void **out,
			 struct gt_message *message)
{
	struct gt_arena_ring *ring = control->ring;
	struct gt_arena_reader *reader = gt_memory_get(&control->memory, sizeof(*reader));
	if (reader == NULL)
		return gt_arena_no_memory(message);
	bool latency = gt_arena_is_latency(control->tracer) && snapshot == NULL;
	if (consume && latency) {
		gt_memory_put(&control->memory, reader, sizeof(*reader));
		return REFUSE(message, GT_EBUSY, "a latency tracer keeps the trace: see trace");
	}
	if (consume && __atomic_exchange_n(&ring->consuming, 1, __ATOMIC_ACQUIRE)) {
		gt_memory_put(&control->memory, reader, sizeof(*reader));
		return REFUSE(message, GT_EBUSY, "another reader takes the trace out");
	}
	reader->keeps = false;
	reader->consumes = consume;
	reader->pauses = false;
	reader->snapshot = snapshot;
	gt_arena_target_init(&reader->target, ring);
	reader->target.target.tracer = (enum graftrace_tracer)gt_arena_tracer(control);
	set_filter(control, scope, &reader->filter);
	struct gt_text_options options = {
		.options = control->options,
		.mode = consume ? GT_MERGE_CONSUME : GT_MERGE_SNAPSHOT,
		.header = !consume,
		.filter = shows_all(&reader->filter) ? NULL : &reader->filter,
	};
	set_clock(control, &options);
	if (latency)
		gt_arena_latency_open(control, reader, &options);
	struct gt_target *target =
		snapshot != NULL ? gt_arena_snapshot_target(snapshot) : &reader->target.target;
	int error = gt_text_init(&reader->text, target, &control->memory, &options);
	if (error != 0) {
		if (consume)
			__atomic_store_n(&ring->consuming, 0, __ATOMIC_RELEASE);
		gt_arena_latency_close(control, reader);
		gt_memory_put(&control->memory, reader, sizeof(*reader));
		return gt_arena_no_memory(message);
	}
	gt_merge_skip_given(&reader->text.merge,
			    snapshot != NULL ? gt_arena_snapshot_given(snapshot) : ring->given,
			    GT_ARENA_WRITERS);
	gt_arena_lock(control);
	reader->pauses = !consume && snapshot == NULL &&
			 control->options & GT_OPTION_PAUSE_ON_TRACE &&
			 (control->paused || ring->arena->tracing_on);
	if (reader->pauses)
		pause_locked(control, 1);
	gt_arena_unlock(control);
	*out = reader;
	return 0;
}

void gt_arena_reader_close(struct gt_arena_control *control, struct gt_arena_reader *reader)
{
	struct gt_arena_ring *ring = control->ring;
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
	gt_arena_latency_close(control, reader);
	if (reader->snapshot != NULL)
		gt_arena_snapshot_put(control, reader->snapshot);
	if (reader->pauses) {
		gt_arena_lock(control);
		pause_locked(control, -1);
		gt_arena_unlock(control);
	}
	gt_memory_put(&control->memory, reader, sizeof(*reader));
}

static int text_open(struct gt_control_target *target, const struct gt_control_scope *scope,
		     bool consume, void **out, struct gt_message *message)
{
	if (consume && scope->kind != GT_SCOPE_ALL)
		return REFUSE(message, GT_ENOTSUP, "only the whole trace can be taken out");
	return gt_arena_reader_open(self(target), scope, consume, NULL, out, message);
}

static int64_t text_read(struct gt_control_target *target, void *opened, char *buffer, size_t bytes,
			 struct gt_message *message)
{
	struct gt_arena_reader *reader = opened;
	(void)target;
	(void)message;
	return gt_text_read(&reader->text, buffer, bytes);
}

static void text_close(struct gt_control_target *target, void *opened)
{
	gt_arena_reader_close(self(target), opened);
}

static int mark_text(struct gt_control_target *target, const struct gt_control_writer *writer,
		     const char *bytes, size_t count, bool raw, struct gt_message *message)
{
	const struct gt_arena_machine *machine = self(target)->machine;
	(void)writer; /* of a kernel it is the thread that serves */
	if (machine->mark == NULL)
		return REFUSE(message, GT_ENOTSUP, "this kernel takes no marks");
	if (!machine->mark(machine->data, bytes, count, raw))
		return REFUSE(message, GT_EBADF, "tracing is off, or the ring is full");
	return 0;
}

static int clear(struct gt_control_target *target, const struct gt_control_scope *scope,
		 struct gt_message *message)
{
	struct gt_arena_ring *ring = self(target)->ring;
	if (scope->kind != GT_SCOPE_ALL)
		return REFUSE(message, GT_ENOTSUP, "only the whole trace can be emptied");
	if (__atomic_exchange_n(&ring->consuming, 1, __ATOMIC_ACQUIRE))
		return REFUSE(message, GT_EBUSY, "somebody takes the trace out");
	clear_ring(self(target));
	gt_arena_latency_forget(self(target));
	__atomic_store_n(&ring->consuming, 0, __ATOMIC_RELEASE);
	return 0;
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
	.stats = gt_arena_stats,
	.mark = mark_text,
	.command_set = gt_arena_command_set,
	.command_remove = gt_arena_command_remove,
	.command_read = gt_arena_command_read,
	.thread = gt_arena_thread,
	.threads_set = gt_arena_threads_set,
	.profile_open = gt_arena_profile_open,
	.profile_read = gt_arena_profile_read,
	.profile_close = gt_arena_profile_close,
	.snapshot = gt_arena_snapshot,
	.snapshot_open = gt_arena_snapshot_open,
	.known_thread = gt_arena_known_thread,
	.event = gt_arena_event,
	.event_set = gt_arena_event_set,
	.event_filter_set = gt_arena_filter_set,
	.event_filter_read = gt_arena_filter_read,
	.event_trigger_set = gt_arena_trigger_set,
	.event_trigger_get = gt_arena_trigger_get,
	.event_hist_check = gt_arena_hist_check,
	.event_hists_open = gt_arena_hists_open,
	.event_hists_read = gt_arena_hists_read,
	.event_hists_close = gt_arena_hists_close,
	.probe_set = gt_arena_probe_set,
	.probes_remove = gt_arena_probes_remove,
	.probe = gt_arena_probe,
	.probe_hits = gt_arena_probe_hits,
	.synthetic_set = gt_arena_synthetic_set,
	.synthetics_remove = gt_arena_synthetics_remove,
	.synthetic = gt_arena_synthetic,
};

static void *resize(void *data, void *old, size_t old_bytes, size_t new_bytes)
{
	const struct gt_arena_control *control = data;
	if (new_bytes > GT_ARENA_PIECE_BYTES)
		return NULL;
	return control->given.resize(control->given.data, old, old_bytes, new_bytes);
}

int gt_arena_control_init(struct gt_arena_control *control, struct gt_arena_ring *ring,
			  const struct gt_arena_machine *machine, const struct gt_memory *memory,
			  uint32_t function_count, const char *title)
{
	__builtin_memset(control, 0, sizeof(*control));
	if (machine->lock == NULL || machine->unlock == NULL || machine->set_tracing_on == NULL ||
	    machine->patch == NULL || machine->now_ns == NULL || machine->thread_number == NULL)
		return GT_EINVAL;
	control->ring = ring;
	control->machine = machine;
	control->given = *memory;
	control->memory = (struct gt_memory){ resize, control };
	control->title = title;
	control->function_count = function_count;
	control->options =
		GT_OPTIONS_DEFAULT |
		(ring->arena->mode == GRAFTRACE_MODE_OVERWRITE ? GT_OPTION_OVERWRITE : 0);
	control->clock_id = GT_CLOCK_LOCAL;
	control->cmdlines = 128;
	control->snapshot_state = GT_SNAPSHOT_FREED;
	for (int i = 0; i < 4; i++)
		control->cpumask[i] = ~0ull;
	control->marks = gt_memory_get(&control->memory, function_count);
	control->wanted = gt_memory_get(&control->memory, function_count);
	if (control->marks == NULL || control->wanted == NULL)
		return GT_ENOMEM;
	__builtin_memset(control->marks, 0, function_count);
	gt_arena_target_init(&control->view, ring);
	control->function_trace = true;
	control->groups[0] = gt_arena_files;
	control->groups[1] = gt_arena_latency_files;
	if (gt_arena_events_init(control) != 0)
		return GT_ENOMEM;
	control->control = (struct gt_control_target){
		.ops = &operations,
		.data = control,
		.kind = GT_CONTROL_KERNEL,
		.view = &control->view.target,
		.groups = control->groups,
		.group_count = control->event_count != 0 ? GT_ARENA_GROUPS : 1,
		.log = &control->log,
	};
	return 0;
}
