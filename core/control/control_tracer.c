/* SPDX-License-Identifier: MIT */
/*
 * What is recorded, and by which clock and of which CPUs it is shown: tracing_on, current_tracer,
 * trace_clock and their like. A refused value changes nothing. Behaviour: kernel/trace/trace.c.
 */
#include "core/control/control_row.h"
#include "core/control/control_table.h"

static const char *const tracers[GRAFTRACE_TRACERS] = {
	[GRAFTRACE_TRACER_NOP] = "nop",
	[GRAFTRACE_TRACER_FUNCTION] = "function",
	[GRAFTRACE_TRACER_FUNCTION_GRAPH] = "function_graph",
	[GRAFTRACE_TRACER_BLK] = "blk",
	[GRAFTRACE_TRACER_IRQSOFF] = "irqsoff",
	[GRAFTRACE_TRACER_PREEMPTOFF] = "preemptoff",
	[GRAFTRACE_TRACER_PREEMPTIRQSOFF] = "preemptirqsoff",
};

static const char *const clocks[GT_CLOCKS] = {
	[GT_CLOCK_COUNTER] = "counter",	  [GT_CLOCK_LOCAL] = "local", [GT_CLOCK_GLOBAL] = "global",
	[GT_CLOCK_UPTIME] = "uptime",	  [GT_CLOCK_PERF] = "perf",   [GT_CLOCK_MONO] = "mono",
	[GT_CLOCK_MONO_RAW] = "mono_raw", [GT_CLOCK_BOOT] = "boot",   [GT_CLOCK_TAI] = "tai",
	[GT_CLOCK_TSC] = "x86-tsc",
};

int gt_control_tracer(const char *name, size_t bytes)
{
	for (size_t i = 0; i < COUNT(tracers); i++) {
		if (gt_row_is_word(name, bytes, tracers[i]))
			return (int)i;
	}
	return -1;
}

const char *gt_control_tracer_name(uint32_t tracer)
{
	return tracer < COUNT(tracers) ? tracers[tracer] : "unknown";
}

/* Whether the target has that tracer. */
static bool has_tracer(struct gt_control_target *target, uint32_t tracer)
{
	uint64_t more = 0;

	if (tracer <= GRAFTRACE_TRACER_FUNCTION_GRAPH)
		return true;
	return target->ops->get != NULL &&
	       target->ops->get(target, GT_CONTROL_TRACERS, &more) == 0 && more >> tracer & 1;
}

/* Numbers */

static void append_clocks(struct gt_control_handle *handle, uint64_t current)
{
	for (uint32_t i = 0; i < COUNT(clocks); i++)
		append(handle, i == current ? "%s[%s]" : "%s%s", i > 0 ? " " : "", clocks[i]);
}

static int open_value(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	uint64_t value = 0;
	int error;

	if (!(access & GT_CONTROL_READ))
		return 0;
	error = gt_row_get(handle, (enum gt_control_value)handle->file->argument, &value, message);
	if (error != 0)
		return error;
	switch (handle->file->argument) {
	case GT_CONTROL_TRACER:
		append(handle, "%s", gt_control_tracer_name((uint32_t)value));
		break;
	case GT_CONTROL_CLOCK_ID:
		append_clocks(handle, value);
		break;
	case GT_CONTROL_THRESHOLD_NS:
		append(handle, "%llu", (unsigned long long)(value / 1000));
		break;
	default:
		append(handle, "%llu", (unsigned long long)value);
	}
	append(handle, "\n");
	return 0;
}

static int parse_value(enum gt_control_value which, const char *bytes, size_t count,
		       uint64_t *value, struct gt_message *message)
{
	int error = 0;
	int tracer;

	switch (which) {
	case GT_CONTROL_TRACER:
		tracer = gt_control_tracer(bytes, count);
		if (tracer < 0)
			return REFUSE(message, GT_EINVAL,
				      "no tracer '%.*s'; available_tracers lists them",
				      SHOWN(bytes, count));
		*value = (uint64_t)tracer;
		break;
	case GT_CONTROL_CLOCK_ID:
		while (*value < COUNT(clocks) && !gt_row_is_word(bytes, count, clocks[*value]))
			(*value)++;
		if (*value == COUNT(clocks))
			return REFUSE(message, GT_EINVAL, "no clock '%.*s'; trace_clock lists them",
				      SHOWN(bytes, count));
		break;
	case GT_CONTROL_TRACING_ON:
		error = gt_row_number(bytes, count, UINT64_MAX, value, message);
		*value = *value != 0;
		break;
	case GT_CONTROL_THRESHOLD_NS:
		error = gt_row_number(bytes, count, UINT64_MAX / 1000, value, message);
		*value *= 1000;
		break;
	default:
		error = gt_row_number(bytes, count, UINT32_MAX, value, message);
	}
	return error;
}

static int64_t write_value(struct gt_control_handle *handle, const char *bytes, size_t count,
			   struct gt_message *message)
{
	int64_t taken = (int64_t)count;
	enum gt_control_value which = (enum gt_control_value)handle->file->argument;
	const char *start = bytes;
	uint64_t value = 0;
	int error;

	if (which == GT_CONTROL_TRACER || which == GT_CONTROL_CLOCK_ID)
		gt_row_strip(&bytes, &count);
	handle->bad_at = (size_t)(bytes - start);
	error = parse_value(which, bytes, count, &value, message);
	if (error == 0 && which == GT_CONTROL_TRACER &&
	    !has_tracer(handle->target, (uint32_t)value))
		error = REFUSE(message, GT_EINVAL, "there is no tracer %s here",
			       gt_control_tracer_name((uint32_t)value));
	if (error == 0)
		error = gt_row_set(handle, which, value, message);
	return error != 0 ? error : taken;
}

static int open_available_tracers(struct gt_control_handle *handle, unsigned access,
				  struct gt_message *message)
{
	(void)access;
	(void)message;
	/* in Linux's order */
	static const uint8_t order[] = {
		GRAFTRACE_TRACER_BLK,
		GRAFTRACE_TRACER_FUNCTION_GRAPH,
		GRAFTRACE_TRACER_PREEMPTIRQSOFF,
		GRAFTRACE_TRACER_PREEMPTOFF,
		GRAFTRACE_TRACER_IRQSOFF,
		GRAFTRACE_TRACER_FUNCTION,
	};
	for (size_t i = 0; i < COUNT(order); i++)
		if (has_tracer(handle->target, order[i]))
			append(handle, "%s ", tracers[order[i]]);
	append(handle, "nop\n");
	return 0;
}

static int open_timestamp_mode(struct gt_control_handle *handle, unsigned access,
			       struct gt_message *message)
{
	(void)access;
	(void)message;
	append(handle, "[delta] absolute\n");
	return 0;
}

/* tracing_enable/on and off act also when they are read: users of Nanos can only read. */

static int switch_tracing(struct gt_control_handle *handle, struct gt_message *message)
{
	return gt_row_set(handle, GT_CONTROL_TRACING_ON, handle->file->argument, message);
}

static int open_switch(struct gt_control_handle *handle, unsigned access,
		       struct gt_message *message)
{
	if (!(access & GT_CONTROL_READ))
		return 0;
	append(handle, "%llu\n", (unsigned long long)handle->file->argument);
	return switch_tracing(handle, message);
}

static int64_t write_switch(struct gt_control_handle *handle, const char *bytes, size_t count,
			    struct gt_message *message)
{
	int error = switch_tracing(handle, message);

	(void)bytes;
	return error != 0 ? error : (int64_t)count;
}

/* tracing_cpumask: hexadecimal, a comma between groups of eight digits */

#define MASK_WORDS (GT_CONTROL_CPUMASK_END - GT_CONTROL_CPUMASK)

static uint32_t cpu_count(const struct gt_control_target *target)
{
	uint32_t count = target->view != NULL ? target->view->cpu_count : 1;

	return count == 0 ? 1 : count > MASK_WORDS * 64 ? MASK_WORDS * 64 : count;
}

static int open_cpumask(struct gt_control_handle *handle, unsigned access,
			struct gt_message *message)
{
	uint32_t digits = (cpu_count(handle->target) + 3) / 4;
	uint64_t mask[MASK_WORDS] = { 0 };

	if (!(access & GT_CONTROL_READ))
		return 0;
	for (uint32_t i = 0; i < (cpu_count(handle->target) + 63) / 64; i++) {
		int error = gt_row_get(handle, (enum gt_control_value)(GT_CONTROL_CPUMASK + i),
				       &mask[i], message);

		if (error != 0)
			return error;
	}
	while (digits-- > 0) {
		append(handle, "%x", (unsigned)(mask[digits / 16] >> digits % 16 * 4 & 15));
		if (digits % 8 == 0)
			append(handle, "%c", digits > 0 ? ',' : '\n');
	}
	return 0;
}

static int64_t write_cpumask(struct gt_control_handle *handle, const char *bytes, size_t count,
			     struct gt_message *message)
{
	int64_t taken = (int64_t)count;
	uint32_t cpus = cpu_count(handle->target);
	uint64_t mask[MASK_WORDS] = { 0 };
	const char *start = bytes;
	uint32_t digits = 0;

	gt_row_strip(&bytes, &count);
	for (size_t i = count; i-- > 0;) {
		char c = bytes[i];
		uint64_t digit = c >= '0' && c <= '9'	? (uint64_t)(c - '0')
				 : c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a' + 10)
				 : c >= 'A' && c <= 'F' ? (uint64_t)(c - 'A' + 10)
							: 16;

		handle->bad_at = (size_t)(bytes - start) + i;
		if (c == ',' && digits > 0 && i > 0)
			continue;
		if (digit == 16)
			return REFUSE(message, GT_EINVAL, "a hexadecimal mask is wanted");
		if (digit != 0 && digits >= MASK_WORDS * 16)
			return REFUSE(message, GT_EINVAL, "the mask is too long");
		if (digits < MASK_WORDS * 16)
			mask[digits / 16] |= digit << digits % 16 * 4;
		digits++;
	}
	for (uint32_t i = 0; i < MASK_WORDS; i++) {
		uint64_t there = cpus >= (i + 1) * 64 ? ~UINT64_C(0)
				 : cpus > i * 64      ? (UINT64_C(1) << (cpus - i * 64)) - 1
						      : 0;

		mask[i] &= there; /* as in Linux, bits of CPUs that do not exist are ignored */
	}
	for (uint32_t i = 0; i < (cpus + 63) / 64; i++) {
		int error = gt_row_set(handle, (enum gt_control_value)(GT_CONTROL_CPUMASK + i),
				       mask[i], message);

		if (error != 0)
			return error;
	}
	return taken;
}

#define VALUE(path, help, kinds, which, ...)                                                      \
	ROW(path, help, kinds, .argument = (which), .open = open_value, .read = gt_row_read_text, \
	    .write = write_value, ##__VA_ARGS__)

static const struct gt_control_file files[] = {
	ROW("available_tracers", "the tracers that current_tracer takes", GT_CONTROL_ALL,
	    .open = open_available_tracers, .read = gt_row_read_text),
	VALUE("current_tracer", "what is recorded: nop, function or function_graph", GT_CONTROL_ALL,
	      GT_CONTROL_TRACER),
	VALUE("tracing_on", "1 while calls are recorded; write 0 to pause, 1 to go on",
	      GT_CONTROL_ALL, GT_CONTROL_TRACING_ON, .writable = GT_CONTROL_ALL),
	ROW("tracing_enable/on", "reading or writing it switches tracing on", GT_CONTROL_LIVE,
	    .flags = GT_CONTROL_ACTS | GT_CONTROL_TOP, .argument = 1, .open = open_switch,
	    .read = gt_row_read_text, .write = write_switch),
	ROW("tracing_enable/off", "reading or writing it switches tracing off", GT_CONTROL_LIVE,
	    .flags = GT_CONTROL_ACTS | GT_CONTROL_TOP, .argument = 0, .open = open_switch,
	    .read = gt_row_read_text, .write = write_switch),
	VALUE("max_graph_depth", "calls deeper than this are not recorded; 0: no limit",
	      GT_CONTROL_LIVE, GT_CONTROL_MAX_DEPTH),
	VALUE("tracing_thresh", "only calls that took longer, in microseconds; 0: all",
	      GT_CONTROL_LIVE, GT_CONTROL_THRESHOLD_NS),
	VALUE("trace_clock", "the clock of the time stamps, in brackets", GT_CONTROL_ALL,
	      GT_CONTROL_CLOCK_ID),
	ROW("timestamp_mode", "how time stamps are kept in the ring", GT_CONTROL_ALL,
	    .open = open_timestamp_mode, .read = gt_row_read_text),
	ROW("tracing_cpumask", "only these CPUs are traced, a hexadecimal mask", GT_CONTROL_LIVE,
	    .open = open_cpumask, .read = gt_row_read_text, .write = write_cpumask),
};

const struct gt_control_group gt_control_tracer_files = { files, COUNT(files) };
