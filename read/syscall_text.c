/* SPDX-License-Identifier: MIT */
/* See syscall_text.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "read/syscall_names.h"
#include "read/syscall_put.h"
#include "read/syscall_text.h"

#define ERROR_MOST 4095 /* of the kernel's error numbers */

/* A call's event while it is written. */
struct call {
	const struct gt_event_format *format;
	const struct gt_record *record;
	const char *name; /* as programs know it */
};

/* ---- arguments ---- */

/* *value: the data to which argument `name` points. False: the event does not have them, or they could not be read. */
static bool find_behind(const struct call *call, const char *name, struct gt_event_value *value)
{
	const uint32_t index = gt_event_field_behind(call->format, name);

	if (index == 0)
		return false;
	gt_event_value(call->format, call->record, index, value);
	return value->kind == GT_EVENT_STRING || value->kind == GT_EVENT_ARRAY;
}

static uint64_t value_of(const struct call *call, const char *name)
{
	struct gt_event_value value;

	for (uint32_t i = 0; i < call->format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		if (strcmp(call->format->fields[i].name, name) == 0) {
			gt_event_value(call->format, call->record, i, &value);
			return value.kind == GT_EVENT_NUMBER ? value.number : 0;
		}
	}
	return 0;
}

static bool is_one_of(const char *type, const char *const types[])
{
	for (; *types != NULL; types++)
		if (strcmp(type, *types) == 0)
			return true;
	return false;
}

/* Whether the type has four bytes: then the upper half of the register is ignored. */
static bool is_half(const char *type, bool *is_signed)
{
	static const char *const with_sign[] = { "int",	  "pid_t",   "const clockid_t", "clockid_t",
						 "key_t", "timer_t", "key_serial_t",	NULL };
	static const char *const without[] = { "unsigned int", "unsigned", "u32",
					       "uid_t",	       "gid_t",	   "umode_t",
					       "qid_t",	       "__u32",	   NULL };

	*is_signed = is_one_of(type, with_sign);
	return *is_signed || is_one_of(type, without);
}

static void put_by_type(struct gt_syscall_output *output, const char *type, uint64_t value)
{
	bool is_signed;

	if (gt_syscall_is_of(type, "*") || gt_syscall_is_of(type, "sighandler")) {
		gt_syscall_put(output, value ? "0x%" PRIx64 : "NULL", value);
	} else if (strcmp(type, "umode_t") == 0) {
		gt_syscall_put(output, "%#03o", (unsigned)(value & 0xffff));
	} else if (is_half(type, &is_signed)) {
		gt_syscall_put(output, is_signed ? "%" PRId64 : "%" PRIu64,
			       is_signed ? (uint64_t)(int64_t)(int32_t)value
					 : (uint64_t)(uint32_t)value);
	} else if (gt_syscall_is_of(type, "off_t") || strcmp(type, "long") == 0) {
		gt_syscall_put(output, "%" PRId64, (int64_t)value);
	} else {
		gt_syscall_put(output, "%" PRIu64, value);
	}
}

/* Bytes of an array's element of that type; 0: it leads to no array. */
static uint32_t element_bytes(const char *type, bool behind)
{
	if (gt_syscall_is_of(type, "pollfd"))
		return 8;
	if (gt_syscall_is_of(type, "iovec"))
		return 16;
	return behind && gt_syscall_is_of(type, "epoll_event") ? 12 : 0;
}

/* Behind the call those descriptors are told of at which something is, as strace does. */
static bool is_told(const char *type, const char *element, bool behind)
{
	return !behind || !gt_syscall_is_of(type, "pollfd") ||
	       gt_syscall_word_at(element, 6, 2) != 0;
}

/* An array of `count` structures, of which the first ones are recorded: [{…}, {…}], and [{…}, ...] if there are more.
 * behind: `count` of them are told of. */
static bool put_array(struct gt_syscall_output *output, const char *type,
		      const struct gt_event_value *value, uint64_t count, bool behind)
{
	const uint32_t bytes = element_bytes(type, behind);
	uint64_t told = 0;

	if (!bytes)
		return false;
	gt_syscall_put(output, "[");
	for (uint32_t at = 0; told < count && at + bytes <= value->text_bytes; at += bytes) {
		if (!is_told(type, value->text + at, behind))
			continue;
		if (told++)
			gt_syscall_put(output, ", ");
		gt_syscall_put_structure(output, type, value->text + at, bytes, behind);
	}
	if (told < count)
		gt_syscall_put(output, told ? ", ..." : "...");
	gt_syscall_put(output, "]");
	return true;
}

static bool put_behind(struct gt_syscall_output *output, const struct call *call,
		       const struct gt_event_field *field, uint64_t address)
{
	struct gt_event_value value;

	if (!address || !find_behind(call, field->name, &value))
		return false;
	if (value.kind == GT_EVENT_STRING) {
		gt_syscall_put_quoted(output, value.text, value.text_bytes, false);
		return true;
	}
	if (put_array(output, field->type, &value,
		      (uint32_t)value_of(call, "nfds") | value_of(call, "vlen"), false) ||
	    gt_syscall_put_structure(output, field->type, value.text, value.text_bytes, false))
		return true;
	if (strcmp(call->name, "setsockopt") == 0 && value.text_bytes == 4) {
		gt_syscall_put(output, "[%" PRId32 "]",
			       (int32_t)gt_syscall_word_at(value.text, 0, 4));
		return true;
	}
	/* A buffer, whose length is another argument. */
	gt_syscall_put_quoted(output, value.text, value.text_bytes,
			      value.text_bytes < value_of(call, "count") ||
				      value.text_bytes < value_of(call, "len"));
	return true;
}

static void put_clone_flags(struct gt_syscall_output *output, const struct gt_syscall_words *words,
			    uint64_t value)
{
	if (value & ~0xffull)
		gt_syscall_put_words(output, words, value & ~0xffull);
	if (value & 0xff) {
		gt_syscall_put(output, value & ~0xffull ? "|" : "");
		gt_syscall_put_signal(output, value & 0xff);
	}
}

static void put_argument(struct gt_syscall_output *output, const struct call *call,
			 const struct gt_event_field *field, uint64_t value)
{
	const struct gt_syscall_words *words = NULL;
	bool is_signed;
	const uint64_t own = is_half(field->type, &is_signed) ? (uint32_t)value : value;

	if (put_behind(output, call, field, value))
		return;
	if (strcmp(call->name, "fcntl") == 0 && strcmp(field->name, "arg") == 0 &&
	    gt_syscall_fcntl_argument(value_of(call, "cmd"), &words) && words != NULL) {
		if (words->mask == ~0ull)
			gt_syscall_put(output, "%" PRId32, (int32_t)value);
		else
			gt_syscall_put_words(output, words, value);
		return;
	}
	switch (gt_syscall_way_of(call->name, field->name, &words)) {
	case GT_SYSCALL_WORDS:
		if (words->mask == ~0ull && gt_syscall_find(words->numbers, own) == NULL)
			put_by_type(output, field->type, value);
		else
			gt_syscall_put_words(output, words, own);
		break;
	case GT_SYSCALL_CLONE:
		put_clone_flags(output, words, value);
		break;
	case GT_SYSCALL_INT:
		gt_syscall_put(output, "%" PRId32, (int32_t)value);
		break;
	case GT_SYSCALL_HEX:
		gt_syscall_put(output, value ? "0x%" PRIx64 : "0", value);
		break;
	case GT_SYSCALL_ADDRESS:
		gt_syscall_put(output, value ? "0x%" PRIx64 : "NULL", value);
		break;
	case GT_SYSCALL_OCTAL:
		gt_syscall_put(output, "%#03o", (unsigned)value);
		break;
	case GT_SYSCALL_SIGNAL:
		gt_syscall_put_signal(output, own);
		break;
	default:
		put_by_type(output, field->type, value);
	}
}

/* Whether the call does not use the argument: the mode if no file is made, the third one of most commands of fcntl. */
static bool is_left_out(const struct call *call, const char *name)
{
	const struct gt_syscall_words *words;

	if (strcmp(name, "mode") == 0 &&
	    (strcmp(call->name, "open") == 0 || strcmp(call->name, "openat") == 0)) {
		const uint64_t flags = value_of(call, "flags");

		return !(flags & O_CREAT) && (flags & O_TMPFILE) != O_TMPFILE;
	}
	return strcmp(call->name, "fcntl") == 0 && strcmp(name, "arg") == 0 &&
	       !gt_syscall_fcntl_argument(value_of(call, "cmd"), &words);
}

static void put_enter(struct gt_syscall_output *output, const struct call *call)
{
	gt_syscall_put(output, "%s(", call->name);
	for (uint32_t i = 1; i < call->format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		const struct gt_event_field *field = &call->format->fields[i];
		struct gt_event_value value;

		if (strncmp(field->name, "__", 2) == 0 || is_left_out(call, field->name))
			continue;
		if (i > 1)
			gt_syscall_put(output, ", ");
		gt_event_value(call->format, call->record, i, &value);
		put_argument(output, call, field, value.kind == GT_EVENT_NUMBER ? value.number : 0);
	}
	gt_syscall_put(output, ")");
}

/* The C type of data that the kernel has written, which follow the result, by the field's name: the field itself does not
 * have the argument's type. */
static const char *type_of_out(const char *field)
{
	static const char *const types[][2] = {
		{ "__upeer_sockaddr_val", "struct sockaddr *" },
		{ "__usockaddr_val", "struct sockaddr *" },
		{ "__fildes_val", "int *" },
		{ "__usockvec_val", "int *" },
		{ "__statbuf_val", "struct stat *" },
		{ "__buffer_val", "struct statx *" },
		{ "__rlim_val", "struct rlimit *" },
		{ "__old_rlim_val", "struct rlimit *" },
		{ "__ufds_val", "struct pollfd *" },
		{ "__events_val", "struct epoll_event *" },
		{ "__oset_val", "sigset_t *" },
		{ "__oact_val", "struct sigaction *" },
		{ "__tp_val", "struct timespec *" },
		{ "__tv_val", "struct timeval *" },
		{ "__uoss_val", "stack_t *" },
		{ "__name_val", "struct new_utsname *" },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(field, types[i][0]) == 0)
			return types[i][1];
	return "char *";
}

static void put_status(struct gt_syscall_output *output, uint32_t status)
{
	if (WIFEXITED(status)) {
		gt_syscall_put(output, "[{WIFEXITED(s) && WEXITSTATUS(s) == %d}]",
			       WEXITSTATUS(status));
	} else if (WIFSIGNALED(status) || WIFSTOPPED(status)) {
		const bool stopped = WIFSTOPPED(status);

		gt_syscall_put(output, stopped ? "[{WIFSTOPPED(s) && WSTOPSIG(s) == "
					       : "[{WIFSIGNALED(s) && WTERMSIG(s) == ");
		gt_syscall_put_signal(output,
				      (uint64_t)(stopped ? WSTOPSIG(status) : WTERMSIG(status)));
		gt_syscall_put(output, !stopped && WCOREDUMP(status) ? " && WCOREDUMP(s)}]" : "}]");
	} else {
		gt_syscall_put(output, "[0x%x]", status);
	}
}

static void put_written(struct gt_syscall_output *output, const struct call *call, int64_t result)
{
	struct gt_event_value value;
	const char *name;

	if (call->format->field_count < 3)
		return;
	gt_event_value(call->format, call->record, 2, &value);
	if (value.kind != GT_EVENT_ARRAY)
		return;
	gt_syscall_put(output, " ");
	name = call->format->fields[2].name;
	if (strcmp(name, "__stat_addr_val") == 0 && value.text_bytes == 4)
		put_status(output, (uint32_t)gt_syscall_word_at(value.text, 0, 4));
	else if (strcmp(name, "__optval_val") == 0 && value.text_bytes == 4)
		gt_syscall_put(output, "[%" PRId32 "]",
			       (int32_t)gt_syscall_word_at(value.text, 0, 4));
	else if (!put_array(output, type_of_out(name), &value, (uint64_t)result, true) &&
		 !gt_syscall_put_structure(output, type_of_out(name), value.text, value.text_bytes,
					   true))
		gt_syscall_put_quoted(output, value.text, value.text_bytes,
				      value.text_bytes < result);
}

static bool returns_an_address(const char *name)
{
	static const char *const names[] = { "brk", "mmap", "mremap", "shmat", NULL };

	return is_one_of(name, names);
}

static void put_exit(struct gt_syscall_output *output, const struct call *call)
{
	const int64_t result = (int64_t)value_of(call, "ret");
	const char *name = NULL;

	gt_syscall_put(output, "%s = ", call->name);
	if (result < 0 && result >= -ERROR_MOST) {
		name = strerrorname_np((int)-result);
		if (name != NULL)
			gt_syscall_put(output, "-1 %s (%s)", name, strerrordesc_np((int)-result));
		else
			gt_syscall_put(output, "-1 (errno %" PRId64 ")", -result);
	} else if (returns_an_address(call->name)) {
		gt_syscall_put(output, "0x%" PRIx64, (uint64_t)result);
	} else if (strcmp(call->name, "umask") == 0) {
		gt_syscall_put(output, "%#03o", (unsigned)result);
	} else {
		gt_syscall_put(output, "%" PRId64, result);
		put_written(output, call, result);
	}
}

char *gt_syscall_text_put(const struct gt_event_format *format, const struct gt_record *record,
			  char *at, size_t room)
{
	struct call call = { format, record, NULL };
	struct gt_syscall_output output = { at, at + room };

	if (strcmp(format->system, "syscalls") != 0 || format->print != NULL ||
	    !format->field_count || strcmp(format->fields[0].name, "__syscall_nr") != 0)
		return NULL;
	if (strncmp(format->name, "sys_enter_", 10) == 0) {
		call.name = gt_syscall_program_name(format->name + 10);
		put_enter(&output, &call);
	} else if (strncmp(format->name, "sys_exit_", 9) == 0) {
		call.name = gt_syscall_program_name(format->name + 9);
		put_exit(&output, &call);
	} else {
		return NULL;
	}
	return output.at;
}
