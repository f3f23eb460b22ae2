/* SPDX-License-Identifier: MIT */
/*
 * Options: trace_options, and options/ with a file for each. One table says for each its name, its
 * bit, the tracer whose it is and what it does. Behaviour: kernel/trace/trace.c (trace_set_options,
 * trace_options_write).
 */
#include "core/control/control_row.h"
#include "core/control/control_table.h"

/* X(name, bit, tracer whose it is or -1, kinds of targets, help), in Linux's order. */
#define OPTIONS(X)                                                                                \
	X("print-parent", PRINT_PARENT, -1, "function: show the caller")                          \
	X("sym-offset", SYM_OFFSET, -1, "function: name+0xoffset/0xsize")                         \
	X("sym-addr", SYM_ADDR, -1, "function: addresses beside names")                           \
	X("verbose", VERBOSE, -1, "with latency-format: everything of each record")               \
	X("raw", RAW, -1, "function: records as numbers")                                         \
	X("hex", HEX, -1, "function: records as hexadecimal numbers")                             \
	X("bin", BIN, -1, "function: records as bytes")                                           \
	X("block", BLOCK, -1, "poll of trace_pipe says at once that there is something")          \
	X("trace_printk", TRACE_PRINTK, -1, "off: printk-msg-only means nothing")                 \
	X("annotate", ANNOTATE, -1, "say where the buffer of a CPU begins")                       \
	X("printk-msg-only", PRINTK_MSG_ONLY, -1, "of markers the text alone")                    \
	X("context-info", CONTEXT_INFO, -1, "function: task, CPU and time stamp")                 \
	X("latency-format", LATENCY_FORMAT, -1, "the text of latency tracers")                    \
	X("record-cmd", RECORD_CMD, -1, "names of threads are shown")                             \
	X("record-tgid", RECORD_TGID, -1, "function: the process beside the thread")              \
	X("overwrite", OVERWRITE, -1, "a full ring drops the oldest, not the newest")             \
	X("disable_on_free", DISABLE_ON_FREE, -1, "closing free_buffer switches tracing off")     \
	X("irq-info", IRQ_INFO, -1, "function: the column of flags")                              \
	X("markers", MARKERS, -1, "trace_marker can be written")                                  \
	X("pause-on-trace", PAUSE_ON_TRACE, -1, "tracing pauses while trace is open")             \
	X("event-fork", EVENT_FORK, -1,                                                           \
	  "set_event_pid: what a listed thread starts is listed too")                             \
	X("function-fork", FUNCTION_FORK, -1,                                                     \
	  "set_ftrace_pid: what a listed thread starts is listed too")                            \
	X("stacktrace", STACKTRACE, -1, "events: the calls that are open, below each one's line") \
	X("func_stack_trace", FUNC_STACK, GRAFTRACE_TRACER_FUNCTION,                              \
	  "function: the calls that led there, below each line")                                  \
	X("func-no-repeats", FUNC_NO_REPEATS, GRAFTRACE_TRACER_FUNCTION,                          \
	  "function: repeated lines become a count")                                              \
	X("test_nop_accept", TEST_NOP_ACCEPT, GRAFTRACE_TRACER_NOP, "nop: can be changed")        \
	X("test_nop_refuse", TEST_NOP_REFUSE, GRAFTRACE_TRACER_NOP, "nop: refuses every change")  \
	X("funcgraph-overrun", GRAPH_OVERRUN, GRAFTRACE_TRACER_FUNCTION_GRAPH,                    \
	  "function_graph: calls too deep to be recorded, behind every }")                        \
	X("funcgraph-cpu", GRAPH_CPU, GRAFTRACE_TRACER_FUNCTION_GRAPH,                            \
	  "function_graph: the CPU column")                                                       \
	X("funcgraph-overhead", GRAPH_OVERHEAD, GRAFTRACE_TRACER_FUNCTION_GRAPH,                  \
	  "function_graph: + ! # * @ $ marks")                                                    \
	X("funcgraph-proc", GRAPH_PROC, GRAFTRACE_TRACER_FUNCTION_GRAPH,                          \
	  "function_graph: the task of each line")                                                \
	X("funcgraph-duration", GRAPH_DURATION, GRAFTRACE_TRACER_FUNCTION_GRAPH,                  \
	  "function_graph: durations")                                                            \
	X("funcgraph-abstime", GRAPH_ABSTIME, GRAFTRACE_TRACER_FUNCTION_GRAPH,                    \
	  "function_graph: time stamps")                                                          \
	X("funcgraph-irqs", GRAPH_IRQS, GRAFTRACE_TRACER_FUNCTION_GRAPH,                          \
	  "function_graph: what interrupts call is shown")                                        \
	X("funcgraph-tail", GRAPH_TAIL, GRAFTRACE_TRACER_FUNCTION_GRAPH,                          \
	  "function_graph: names behind every }")                                                 \
	X("funcgraph-args", GRAPH_ARGS, GRAFTRACE_TRACER_FUNCTION_GRAPH,                          \
	  "function_graph: what functions are called with")                                       \
	X("funcgraph-retval", GRAPH_RETVAL, GRAFTRACE_TRACER_FUNCTION_GRAPH,                      \
	  "function_graph: what they return")                                                     \
	X("funcgraph-retval-hex", RETVAL_HEX, GRAFTRACE_TRACER_FUNCTION_GRAPH,                    \
	  "function_graph: returned numbers as hexadecimal ones")                                 \
	X("func-args", FUNC_ARGS, GRAFTRACE_TRACER_FUNCTION,                                      \
	  "function: what functions are called with")                                             \
	X("sleep-time", SLEEP_TIME, GRAFTRACE_TRACER_FUNCTION_GRAPH,                              \
	  "function_graph: durations count the time off the CPU")                                 \
	X("graph-time", GRAPH_TIME, GRAFTRACE_TRACER_FUNCTION_GRAPH,                              \
	  "function profiler: times count what was called")

#define X(name, bit, tracer, help) { name, GT_OPTION_##bit, tracer },
static const struct {
	const char *name;
	uint64_t bit;
	int tracer; /* listed in trace_options only while this is the tracer; -1: always */
} options[] = { OPTIONS(X) };
#undef X

uint64_t gt_control_option(const char *name, size_t bytes)
{
	for (size_t i = 0; i < COUNT(options); i++) {
		if (gt_row_is_word(name, bytes, options[i].name))
			return options[i].bit;
	}
	return 0;
}

static int open_option(struct gt_control_handle *handle, unsigned access,
		       struct gt_message *message)
{
	uint64_t set = 0;
	int error;

	if (!(access & GT_CONTROL_READ))
		return 0;
	error = gt_row_get(handle, GT_CONTROL_OPTIONS, &set, message);
	if (error == 0)
		append(handle, "%c\n", set & handle->file->argument ? '1' : '0');
	return error;
}

static int change_option(struct gt_control_handle *handle, uint64_t bit, bool on,
			 struct gt_message *message)
{
	uint64_t set = 0;
	int error = gt_row_get(handle, GT_CONTROL_OPTIONS, &set, message);

	if (error != 0)
		return error;
	if (on == ((set & bit) != 0))
		return 0;
	if (bit == GT_OPTION_TEST_NOP_REFUSE)
		return REFUSE(message, GT_EINVAL, "this option refuses to be changed");
	/* Sets this option only: others may be changed by other threads. */
	return gt_row_set(handle, on ? GT_CONTROL_OPTIONS_ON : GT_CONTROL_OPTIONS_OFF, bit,
			  message);
}

static int64_t write_option(struct gt_control_handle *handle, const char *bytes, size_t count,
			    struct gt_message *message)
{
	uint64_t value = 0;
	int error = gt_row_number(bytes, count, UINT64_MAX, &value, message);

	if (error != 0)
		return error;
	if (value > 1)
		return REFUSE(message, GT_EINVAL, "0 or 1 is wanted, not %llu",
			      (unsigned long long)value);
	error = change_option(handle, handle->file->argument, value == 1, message);
	return error != 0 ? error : (int64_t)count;
}

/* Of a recording there are those that say how it is shown; a kernel has no events of
 * threads. */
#define KINDS_OF(bit)                                                                \
	((bit) == GT_OPTION_STACKTRACE	 ? GT_CONTROL_PROGRAM | GT_CONTROL_RECORDING \
	 : (bit) == GT_OPTION_EVENT_FORK ? GT_CONTROL_PROGRAM                        \
	 : (bit)&GT_OPTIONS_OF_VALUES	 ? GT_CONTROL_PROGRAM | GT_CONTROL_RECORDING \
	 : (bit)&GT_OPTIONS_OF_TEXT	 ? GT_CONTROL_ALL                            \
					 : GT_CONTROL_LIVE)

static bool is_there(const struct gt_control_target *target, uint64_t bit)
{
	return target->kind & KINDS_OF(bit);
}

/* As on Linux a tracer's own options are taken here only while it is the tracer. */
static bool is_listed(struct gt_control_handle *handle, uint64_t bit)
{
	struct gt_message unused;
	uint64_t tracer = 0;
	size_t i = 0;

	while (options[i].bit != bit)
		i++;
	return options[i].tracer < 0 ||
	       (gt_row_get(handle, GT_CONTROL_TRACER, &tracer, &unused) == 0 &&
		(uint64_t)options[i].tracer == tracer);
}

static int open_options(struct gt_control_handle *handle, unsigned access,
			struct gt_message *message)
{
	uint64_t set = 0;
	uint64_t tracer = 0;
	int error;

	if (!(access & GT_CONTROL_READ))
		return 0;
	error = gt_row_get(handle, GT_CONTROL_OPTIONS, &set, message);
	if (error == 0)
		error = gt_row_get(handle, GT_CONTROL_TRACER, &tracer, message);
	if (error != 0)
		return error;
	for (size_t i = 0; i < COUNT(options); i++) {
		if (options[i].tracer >= 0 && (uint64_t)options[i].tracer != tracer)
			continue;
		if (!is_there(handle->target, options[i].bit))
			continue;
		append(handle, "%s%s\n", set & options[i].bit ? "" : "no", options[i].name);
	}
	return 0;
}

static int64_t write_options(struct gt_control_handle *handle, const char *bytes, size_t count,
			     struct gt_message *message)
{
	int64_t taken = (int64_t)count;
	const char *start = bytes;
	bool on = true;
	uint64_t bit;
	int error;

	gt_row_strip(&bytes, &count);
	handle->bad_at = (size_t)(bytes - start);
	bit = gt_control_option(bytes, count);
	if (bit == 0 && count > 2 && bytes[0] == 'n' && bytes[1] == 'o') {
		on = false;
		bit = gt_control_option(bytes + 2, count - 2);
	}
	if (bit == 0 || !is_there(handle->target, bit) || !is_listed(handle, bit))
		return REFUSE(message, GT_EINVAL,
			      "no option '%.*s'; reading trace_options lists them",
			      SHOWN(bytes, count));
	error = change_option(handle, bit, on, message);
	return error != 0 ? error : taken;
}

#define X(name, bit, tracer, help)                                                         \
	ROW("options/" name, help, KINDS_OF(GT_OPTION_##bit), .argument = GT_OPTION_##bit, \
	    .writable = GT_CONTROL_ALL, .open = open_option, .read = gt_row_read_text,     \
	    .write = write_option),

static const struct gt_control_file files[] = {
	ROW("trace_options", "options by name; noname switches one off", GT_CONTROL_ALL,
	    .writable = GT_CONTROL_ALL, .open = open_options, .read = gt_row_read_text,
	    .write = write_options),
	OPTIONS(X)
};

const struct gt_control_group gt_control_options_files = { files, COUNT(files) };
