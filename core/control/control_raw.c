/* SPDX-License-Identifier: MIT */
/*
 * What programs that read the binary trace need: per_cpu/cpuN/trace_pipe_raw, the formats of what
 * is in it, and the names of addresses. The formats are those of Linux 6.1 (raw_page.h has the same
 * as structures); other events are control_events.c's. kallsyms stands here because a program's
 * functions are not in /proc/kallsyms.
 */
#include "core/control/control_row.h"
#include "core/control/control_table.h"
#include "core/text/raw.h"

#define COMMON                                                                         \
	"format:\n"                                                                    \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"                     \
	"\n"

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

static const char header_event[] = "# compressed entry header\n"
				   "\ttype_len    :    5 bits\n"
				   "\ttime_delta  :   27 bits\n"
				   "\tarray       :   32 bits\n"
				   "\n"
				   "\tpadding     : type == 29\n"
				   "\ttime_extend : type == 30\n"
				   "\ttime_stamp : type == 31\n"
				   "\tdata max type_len  == 28\n";

static const char function[] =
	"name: function\nID: 1\n" COMMON
	"\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:unsigned long parent_ip;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\n"
	"print fmt: \" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip\n";

static const char funcgraph_entry[] =
	"name: funcgraph_entry\nID: 11\n" COMMON
	"\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:int depth;\toffset:16;\tsize:4;\tsigned:1;\n"
	"\n"
	"print fmt: \"--> %ps (%d)\", (void *)REC->func, REC->depth\n";

static const char funcgraph_exit[] =
	"name: funcgraph_exit\nID: 10\n" COMMON
	"\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:int depth;\toffset:16;\tsize:4;\tsigned:1;\n"
	"\tfield:unsigned int overrun;\toffset:20;\tsize:4;\tsigned:0;\n"
	"\tfield:unsigned long long calltime;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:unsigned long long rettime;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\n"
	"print fmt: \"<-- %ps (%d) (start: %llx  end: %llx) over: %d\", (void *)REC->func, "
	"REC->depth, REC->calltime, REC->rettime, REC->depth\n";

static const char print[] =
	"name: print\nID: 5\n" COMMON "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:1;\n"
	"\n"
	"print fmt: \"%ps: %s\", (void *)REC->ip, REC->buf\n";

static const char context_switch[] =
	"name: context_switch\nID: 2\n" COMMON
	"\tfield:unsigned int prev_pid;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:unsigned int next_pid;\toffset:12;\tsize:4;\tsigned:0;\n"
	"\tfield:unsigned int next_cpu;\toffset:16;\tsize:4;\tsigned:0;\n"
	"\tfield:unsigned char prev_prio;\toffset:20;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char prev_state;\toffset:21;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char next_prio;\toffset:22;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char next_state;\toffset:23;\tsize:1;\tsigned:0;\n"
	"\n"
	"print fmt: \"%u:%u:%u  ==> %u:%u:%u [%03u]\", REC->prev_pid, REC->prev_prio, "
	"REC->prev_state, REC->next_pid, REC->next_prio, REC->next_state, REC->next_cpu\n";

/* `caller` is declared with eight elements, as in Linux; readers go on to the end of the record. */
static const char kernel_stack[] =
	"name: kernel_stack\nID: 4\n" COMMON "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n"
	"\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n"
	"\n"
	"print fmt: \"\\t=> %ps\\n\\t=> %ps\\n\\t=> %ps\\n\", (void *)REC->caller[0], "
	"(void *)REC->caller[1], (void *)REC->caller[2]\n";

/* By the rows' argument. */
static const char *const texts[] = { header_page,    header_event, function,	   funcgraph_entry,
				     funcgraph_exit, print,	   context_switch, kernel_stack };

enum { HEADER_PAGE, HEADER_EVENT, FUNCTION, GRAPH_ENTRY, GRAPH_EXIT, PRINT, SWITCH, STACK };

static int64_t read_fixed(struct gt_control_handle *handle, char *buffer, size_t bytes,
			  struct gt_message *message)
{
	const struct gt_row_line line = { { texts[handle->file->argument] } };
	size_t given = 0;

	(void)message;
	if (handle->line == 0)
		gt_row_give_line(handle, &line, buffer, bytes, &given);
	return (int64_t)given;
}

/* The number of the row's argument. */
static int open_number(struct gt_control_handle *handle, unsigned access,
		       struct gt_message *message)
{
	(void)message;
	if (access & GT_CONTROL_READ)
		append(handle, "%u\n", (unsigned)handle->file->argument);
	return 0;
}

/* events/ftrace/enable: calls cannot be switched as events. */

static int64_t write_enable(struct gt_control_handle *handle, const char *bytes, size_t count,
			    struct gt_message *message)
{
	uint64_t value = 0;
	int error = gt_row_number(bytes, count, UINT64_MAX, &value, message);

	(void)handle;
	if (error == 0 && value != 0)
		return REFUSE(message, GT_EINVAL, "there are no events here but calls");
	return error != 0 ? error : (int64_t)count;
}

/* Names of addresses */

static int open_names(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	int error;

	if (!(access & GT_CONTROL_READ))
		return 0;
	if (target->ops->list_open == NULL)
		return gt_row_not_here(message);
	error = target->ops->list_open(target, GT_CONTROL_AVAILABLE, &handle->opened, message);
	handle->unset = error == 1;
	return error < 0 ? error : 0;
}

/* Writes a name without blanks, at which names of /proc/kallsyms end: C++ names have some inside. */
static void append_symbol(struct gt_control_handle *handle, const char *name)
{
	for (size_t i = 0; name[i] != '\0' && handle->text_bytes + 8 < sizeof(handle->text); i++) {
		bool behind_comma = i > 0 && name[i - 1] == ',';
		unsigned char byte = (unsigned char)name[i];

		if (byte > ' ' && byte != 0x7f)
			handle->text[handle->text_bytes++] = name[i];
		else if (!behind_comma)
			handle->text[handle->text_bytes++] = '_';
	}
	handle->text[handle->text_bytes] = '\0';
}

static int64_t read_names(struct gt_control_handle *handle, char *buffer, size_t bytes,
			  struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	size_t given = 0;

	(void)message;
	while (given < bytes) {
		struct gt_control_name name = { NULL, NULL, 0, NULL };
		struct gt_row_line line = { { handle->text, NULL } };

		handle->text_bytes = 0;
		if (handle->line == 0) {
			append(handle, "%016llx t tracing_mark_write\n",
			       (unsigned long long)GT_RAW_MARK_ADDRESS);
		} else if (handle->unset || target->ops->list_read(target, handle->opened,
								   handle->line - 1, &name) != 0) {
			break;
		} else {
			append(handle, "%016llx t ", (unsigned long long)name.address);
			append_symbol(handle, name.name);
			line.part[1] = "\n";
			if (name.module != NULL && name.module[0] != '\0') {
				line.part[1] = "\t[";
				line.part[2] = name.module;
				line.part[3] = "]\n";
			}
		}
		if (!gt_row_give_line(handle, &line, buffer, bytes, &given))
			break;
	}
	return (int64_t)given;
}

static int close_names(struct gt_control_handle *handle, struct gt_message *message)
{
	(void)message;
	if ((handle->access & GT_CONTROL_READ) && !handle->unset)
		handle->target->ops->list_close(handle->target, handle->opened);
	return 0;
}

/* Pages */

static bool has_raw(const struct gt_control_target *target)
{
	return target->ops->raw_open != NULL;
}

static int open_raw(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	if (!(access & GT_CONTROL_READ))
		return 0;
	return handle->target->ops->raw_open(handle->target, (uint32_t)handle->number,
					     &handle->opened, message);
}

static int64_t read_raw(struct gt_control_handle *handle, char *buffer, size_t bytes,
			struct gt_message *message)
{
	return handle->target->ops->raw_read(handle->target, handle->opened, buffer, bytes,
					     message);
}

static int close_raw(struct gt_control_handle *handle, struct gt_message *message)
{
	(void)message;
	if (handle->access & GT_CONTROL_READ)
		handle->target->ops->raw_close(handle->target, handle->opened);
	return 0;
}

#define TEXT(path_, help_, argument_)                                                       \
	ROW(path_, help_, GT_CONTROL_ALL, .flags = GT_CONTROL_TOP, .argument = (argument_), \
	    .read = read_fixed)

static const struct gt_control_file files[] = {
	ROW("per_cpu/cpu#/trace_pipe_raw", "one CPU: its part of the ring in pages of 4096 bytes",
	    GT_CONTROL_ALL, .numbers = &gt_row_cpus, .flags = GT_CONTROL_WAITS | GT_CONTROL_BINARY,
	    .exists = has_raw, .open = open_raw, .read = read_raw, .close = close_raw),
	/* Linux does not have this file, but those of other systems: libtracefs wants to find one. */
	ROW("events/ftrace/enable", "calls: 0", GT_CONTROL_ALL, .writable = GT_CONTROL_ALL,
	    .argument = 0, .open = open_number, .read = gt_row_read_text, .write = write_enable),
	TEXT("events/header_page", "the format of a page of trace_pipe_raw", HEADER_PAGE),
	TEXT("events/header_event", "the format of what stands in front of each event",
	     HEADER_EVENT),
	TEXT("events/ftrace/function/format", "the format of function's calls", FUNCTION),
	TEXT("events/ftrace/funcgraph_entry/format", "the format of function_graph's entries",
	     GRAPH_ENTRY),
	TEXT("events/ftrace/funcgraph_exit/format", "the format of function_graph's returns",
	     GRAPH_EXIT),
	TEXT("events/ftrace/print/format", "the format of what trace_marker takes", PRINT),
	TEXT("events/ftrace/context_switch/format", "the format of a thread's change", SWITCH),
	TEXT("events/ftrace/kernel_stack/format", "the format of a call's stack", STACK),
	ROW("kallsyms", "addresses and names of functions, as /proc/kallsyms has the kernel's",
	    GT_CONTROL_ALL, .flags = GT_CONTROL_TOP, .open = open_names, .read = read_names,
	    .close = close_names),
};

const struct gt_control_group gt_control_raw_files = { files, COUNT(files) };
