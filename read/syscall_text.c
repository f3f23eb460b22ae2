/* SPDX-License-Identifier: MIT */
/* See syscall_text.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "read/syscall_names.h"
#include "read/syscall_text.h"

#define ERROR_MOST 4095 /* of the kernel's error numbers */

struct output {
	char *at;
	char *end;
};

/* A call's event while it is written. */
struct call {
	const struct gt_event_format *format;
	const struct gt_record *record;
	const char *name; /* as programs know it */
};

static void put(struct output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct output *output, const char *format, ...)
{
	char text[256];
	va_list list;
	int bytes;

	va_start(list, format);
	bytes = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (bytes > (int)sizeof(text) - 1)
		bytes = (int)sizeof(text) - 1;
	if (bytes > output->end - output->at)
		bytes = (int)(output->end - output->at);
	if (bytes > 0) {
		memcpy(output->at, text, (size_t)bytes);
		output->at += bytes;
	}
}

/* In quotes, as C and strace write it: what cannot be printed in octal. */
static void put_quoted(struct output *output, const char *text, size_t bytes, bool cut)
{
	static const char letters[] = "tnvfr"; /* 9 … 13 */
	size_t i;

	put(output, "\"");
	for (i = 0; i < bytes; i++) {
		const unsigned char c = (unsigned char)text[i];
		const bool digit = i + 1 < bytes && text[i + 1] >= '0' && text[i + 1] <= '7';

		if (c == '"' || c == '\\')
			put(output, "\\%c", c);
		else if (c >= 9 && c <= 13)
			put(output, "\\%c", letters[c - 9]);
		else if (c >= ' ' && c < 0x7f)
			put(output, "%c", c);
		else
			put(output, digit ? "\\%03o" : "\\%o", c);
	}
	put(output, cut ? "\"..." : "\"");
}

static const struct gt_syscall_word *find(const struct gt_syscall_word *words, uint64_t value)
{
	for (; words && words->name; words++)
		if (words->value == value)
			return words;
	return NULL;
}

static void put_words(struct output *output, const struct gt_syscall_words *words, uint64_t value)
{
	const struct gt_syscall_word *number = find(words->numbers, value & words->mask), *flag;
	uint64_t rest = value;
	bool any = false;

	/* A name for "no flags at all" stands alone; that of a number always. */
	if (number && (words->mask || !value)) {
		put(output, "%s", number->name);
		rest &= ~words->mask;
		any = true;
	}
	for (flag = words->flags; flag && flag->name && rest; flag++) {
		if (!flag->value || (rest & flag->value) != flag->value)
			continue;
		put(output, any ? "|%s" : "%s", flag->name);
		rest &= ~flag->value;
		any = true;
	}
	if (rest)
		put(output, any ? "|0x%" PRIx64 : "0x%" PRIx64, rest);
	else if (!any)
		put(output, "0");
}

static void put_signal(struct output *output, uint64_t number)
{
	const char *name = number && number < 32 ? sigabbrev_np((int)number) : NULL;

	if (name)
		put(output, "SIG%s", name);
	else if (number >= 32 && number <= 64)
		put(output, "SIGRT_%" PRIu64, number - 32);
	else
		put(output, "%" PRId32, (int32_t)number);
}

static uint64_t word_at(const char *bytes, size_t offset, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, bytes + offset, size);
	return value;
}

/* ---- structures ---- */

static void put_signals(struct output *output, uint64_t set)
{
	bool any = false;
	int i;

	/* As strace: a set of nearly all by those that are missing. */
	if (__builtin_popcountll(set) > 32) {
		put(output, "~");
		set = ~set;
	}
	put(output, "[");
	for (i = 1; i <= 64; i++) {
		const char *name = i < 32 ? sigabbrev_np(i) : NULL;

		if (!(set >> (i - 1) & 1))
			continue;
		if (name)
			put(output, any ? " %s" : "%s", name);
		else
			put(output, any ? " RT_%d" : "RT_%d", i - 32);
		any = true;
	}
	put(output, "]");
}

static void put_unix_address(struct output *output, const char *bytes, size_t count)
{
	const size_t path = count - 2;

	if (path == 0)
		return;
	put(output, ", sun_path=");
	if (bytes[2] == 0) {
		put(output, "@");
		put_quoted(output, bytes + 3, path - 1, false);
	} else {
		const size_t length = strnlen(bytes + 2, path);

		put_quoted(output, bytes + 2, length, length == path);
	}
}

static bool put_address(struct output *output, const char *bytes, size_t count)
{
	char text[INET6_ADDRSTRLEN];
	uint16_t family, port = 0;

	if (count < 2)
		return false;
	family = (uint16_t)word_at(bytes, 0, 2);
	put(output, "{sa_family=");
	put_words(output, &gt_syscall_families, family);
	if (count >= 8)
		port = ntohs((uint16_t)word_at(bytes, 2, 2));
	if (family == AF_INET && count >= 8) {
		inet_ntop(AF_INET, bytes + 4, text, sizeof(text));
		put(output, ", sin_port=htons(%u), sin_addr=inet_addr(\"%s\")", port, text);
	} else if (family == AF_INET6 && count >= 28) {
		inet_ntop(AF_INET6, bytes + 8, text, sizeof(text));
		put(output,
		    ", sin6_port=htons(%u), sin6_flowinfo=htonl(%u), "
		    "inet_pton(AF_INET6, \"%s\", &sin6_addr), sin6_scope_id=%" PRIu64,
		    port, ntohl((uint32_t)word_at(bytes, 4, 4)), text, word_at(bytes, 24, 4));
	} else if (family == AF_UNIX) {
		put_unix_address(output, bytes, count);
	} else if (family == AF_NETLINK && count >= 12) {
		put(output, ", nl_pid=%" PRIu64 ", nl_groups=%#" PRIx64, word_at(bytes, 4, 4),
		    word_at(bytes, 8, 4));
	} else {
		put(output, ", ...");
	}
	put(output, "}");
	return true;
}

static bool put_time(struct output *output, const char *bytes, const char *part)
{
	put(output, "{tv_sec=%" PRId64 ", tv_%s=%" PRId64 "}", (int64_t)word_at(bytes, 0, 8), part,
	    (int64_t)word_at(bytes, 8, 8));
	return true;
}

static void put_timer(struct output *output, const char *bytes, const char *part)
{
	put(output, "{it_interval=");
	put_time(output, bytes, part);
	put(output, ", it_value=");
	put_time(output, bytes + 16, part);
	put(output, "}");
}

static void put_state(struct output *output, uint32_t mode, uint64_t bytes, const char *prefix)
{
	put(output, "{%smode=", prefix);
	put_words(output, &gt_syscall_kinds, mode & S_IFMT);
	put(output, "|%04o, %ssize=%" PRIu64 ", ...}", mode & 07777, prefix, bytes);
}

static void put_action(struct output *output, const char *bytes)
{
	const uint64_t handler = word_at(bytes, 0, 8);

	put(output, "{sa_handler=");
	if (handler == 0 || handler == 1)
		put(output, handler ? "SIG_IGN" : "SIG_DFL");
	else
		put(output, "0x%" PRIx64, handler);
	put(output, ", sa_mask=");
	put_signals(output, word_at(bytes, 24, 8));
	put(output, ", sa_flags=");
	put_words(output, &gt_syscall_actions, word_at(bytes, 8, 8));
	put(output, "}");
}

static void put_status(struct output *output, uint32_t status)
{
	if (WIFEXITED(status)) {
		put(output, "[{WIFEXITED(s) && WEXITSTATUS(s) == %d}]", WEXITSTATUS(status));
	} else if (WIFSIGNALED(status) || WIFSTOPPED(status)) {
		const bool stopped = WIFSTOPPED(status);

		put(output, stopped ? "[{WIFSTOPPED(s) && WSTOPSIG(s) == "
				    : "[{WIFSIGNALED(s) && WTERMSIG(s) == ");
		put_signal(output, (uint64_t)(stopped ? WSTOPSIG(status) : WTERMSIG(status)));
		put(output, !stopped && WCOREDUMP(status) ? " && WCOREDUMP(s)}]" : "}]");
	} else {
		put(output, "[0x%x]", status);
	}
}

static void put_limit(struct output *output, const char *bytes)
{
	size_t i;

	for (i = 0; i < 2; i++) {
		const uint64_t limit = word_at(bytes, 8 * i, 8);

		put(output, i ? ", rlim_max=" : "{rlim_cur=");
		if (limit == ~0ull)
			put(output, "RLIM64_INFINITY");
		else if (limit && limit % 1024 == 0)
			put(output, "%" PRIu64 "*1024", limit / 1024);
		else
			put(output, "%" PRIu64, limit);
	}
	put(output, "}");
}

static void put_poll(struct output *output, const char *bytes, bool behind)
{
	put(output, "{fd=%" PRId32 ", %s=", (int32_t)word_at(bytes, 0, 4),
	    behind ? "revents" : "events");
	put_words(output, &gt_syscall_polls, word_at(bytes, behind ? 6 : 4, 2));
	put(output, "}");
}

static void put_epoll(struct output *output, const char *bytes)
{
	put(output, "{events=");
	put_words(output, &gt_syscall_epolls, word_at(bytes, 0, 4));
	put(output, ", data={u32=%" PRIu64 ", u64=%" PRIu64 "}}", word_at(bytes, 4, 4),
	    word_at(bytes, 4, 8));
}

static void put_clone(struct output *output, const char *bytes)
{
	put(output, "{flags=");
	put_words(output, &gt_syscall_clones, word_at(bytes, 0, 8));
	put(output, ", exit_signal=");
	put_signal(output, word_at(bytes, 32, 8));
	put(output, ", stack=0x%" PRIx64 ", stack_size=0x%" PRIx64 ", ...}", word_at(bytes, 40, 8),
	    word_at(bytes, 48, 8));
}

static bool is_of(const char *type, const char *what)
{
	return strstr(type, what) != NULL;
}

static bool is_int(const char *type)
{
	return strncmp(type, "int", 3) == 0;
}

/* The structure that an argument of this type leads to. False: its bytes are not enough of one, or nobody
 * knows it. */
static bool put_structure(struct output *output, const char *type, const char *bytes, size_t count,
			  bool behind)
{
	if (is_of(type, "sockaddr"))
		return put_address(output, bytes, count);
	if (is_of(type, "itimerspec") && count >= 32)
		put_timer(output, bytes, "nsec");
	else if (is_of(type, "itimerval") && count >= 32)
		put_timer(output, bytes, "usec");
	else if (is_of(type, "timespec") && count >= 16)
		put_time(output, bytes, "nsec");
	else if (is_of(type, "timeval") && count >= 16)
		put_time(output, bytes, "usec");
	else if (is_of(type, "struct statx") && count >= 48)
		put_state(output, (uint32_t)word_at(bytes, 28, 2), word_at(bytes, 40, 8), "stx_");
	else if (is_of(type, "struct stat ") && count >= 56)
		put_state(output, (uint32_t)word_at(bytes, 24, 4), word_at(bytes, 48, 8), "st_");
	else if (is_of(type, "sigset_t") && count >= 8)
		put_signals(output, word_at(bytes, 0, 8));
	else if (is_of(type, "struct sigaction") && count >= 32)
		put_action(output, bytes);
	else if (is_of(type, "rlimit") && count >= 16)
		put_limit(output, bytes);
	else if (is_of(type, "pollfd") && count >= 8)
		put_poll(output, bytes, behind);
	else if (is_of(type, "epoll_event") && count >= 12)
		put_epoll(output, bytes);
	else if (is_of(type, "clone_args") && count >= 56)
		put_clone(output, bytes);
	else if (is_of(type, "iovec") && count >= 16)
		put(output, "{iov_base=0x%" PRIx64 ", iov_len=%" PRIu64 "}", word_at(bytes, 0, 8),
		    word_at(bytes, 8, 8));
	else if (is_of(type, "stack_t") && count >= 24)
		put(output, "{ss_sp=0x%" PRIx64 ", ss_flags=%" PRIu64 ", ss_size=%" PRIu64 "}",
		    word_at(bytes, 0, 8), word_at(bytes, 8, 4), word_at(bytes, 16, 8));
	else if (is_of(type, "new_utsname") && count >= 64)
		put_quoted(output, bytes, strnlen(bytes, count), false);
	else if (is_int(type) && count == 8)
		put(output, "[%" PRId32 ", %" PRId32 "]", (int32_t)word_at(bytes, 0, 4),
		    (int32_t)word_at(bytes, 4, 4));
	else
		return false;
	return true;
}

/* ---- arguments ---- */

/* What argument `name` leads to. False: the event does not have it, or it was not readable. */
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
	uint32_t i;

	for (i = 0; i < call->format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		if (strcmp(call->format->fields[i].name, name) == 0) {
			gt_event_value(call->format, call->record, i, &value);
			return value.kind == GT_EVENT_NUMBER ? value.number : 0;
		}
	}
	return 0;
}

static bool is_one_of(const char *type, const char *const types[])
{
	for (; *types; types++)
		if (strcmp(type, *types) == 0)
			return true;
	return false;
}

/* Types of four bytes: what stands above them in the register is nothing. */
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

static void put_by_type(struct output *output, const char *type, uint64_t value)
{
	bool is_signed;

	if (is_of(type, "*") || is_of(type, "sighandler")) {
		put(output, value ? "0x%" PRIx64 : "NULL", value);
	} else if (strcmp(type, "umode_t") == 0) {
		put(output, "%#03o", (unsigned)(value & 0xffff));
	} else if (is_half(type, &is_signed)) {
		put(output, is_signed ? "%" PRId64 : "%" PRIu64,
		    is_signed ? (uint64_t)(int64_t)(int32_t)value : (uint64_t)(uint32_t)value);
	} else if (is_of(type, "off_t") || strcmp(type, "long") == 0) {
		put(output, "%" PRId64, (int64_t)value);
	} else {
		put(output, "%" PRIu64, value);
	}
}

static bool put_behind(struct output *output, const struct call *call,
		       const struct gt_event_field *field, uint64_t address)
{
	struct gt_event_value value;

	if (!address || !find_behind(call, field->name, &value))
		return false;
	if (value.kind == GT_EVENT_STRING) {
		put_quoted(output, value.text, value.text_bytes, false);
		return true;
	}
	if (put_structure(output, field->type, value.text, value.text_bytes, false))
		return true;
	if (strcmp(call->name, "setsockopt") == 0 && value.text_bytes == 4) {
		put(output, "[%" PRId32 "]", (int32_t)word_at(value.text, 0, 4));
		return true;
	}
	/* A buffer: how long it is an argument says. */
	put_quoted(output, value.text, value.text_bytes,
		   value.text_bytes < value_of(call, "count") ||
			   value.text_bytes < value_of(call, "len"));
	return true;
}

static void put_clone_flags(struct output *output, const struct gt_syscall_words *words,
			    uint64_t value)
{
	if (value & ~0xffull)
		put_words(output, words, value & ~0xffull);
	if (value & 0xff) {
		put(output, value & ~0xffull ? "|" : "");
		put_signal(output, value & 0xff);
	}
}

static void put_argument(struct output *output, const struct call *call,
			 const struct gt_event_field *field, uint64_t value)
{
	const struct gt_syscall_words *words = NULL;
	bool is_signed;
	const uint64_t own = is_half(field->type, &is_signed) ? (uint32_t)value : value;

	if (put_behind(output, call, field, value))
		return;
	if (strcmp(call->name, "fcntl") == 0 && strcmp(field->name, "arg") == 0 &&
	    gt_syscall_fcntl_argument(value_of(call, "cmd"), &words) && words) {
		if (words->mask == ~0ull)
			put(output, "%" PRId32, (int32_t)value);
		else
			put_words(output, words, value);
		return;
	}
	switch (gt_syscall_way_of(call->name, field->name, &words)) {
	case GT_SYSCALL_WORDS:
		if (words->mask == ~0ull && !find(words->numbers, own))
			put_by_type(output, field->type, value);
		else
			put_words(output, words, own);
		break;
	case GT_SYSCALL_CLONE:
		put_clone_flags(output, words, value);
		break;
	case GT_SYSCALL_INT:
		put(output, "%" PRId32, (int32_t)value);
		break;
	case GT_SYSCALL_HEX:
		put(output, value ? "0x%" PRIx64 : "0", value);
		break;
	case GT_SYSCALL_ADDRESS:
		put(output, value ? "0x%" PRIx64 : "NULL", value);
		break;
	case GT_SYSCALL_OCTAL:
		put(output, "%#03o", (unsigned)value);
		break;
	case GT_SYSCALL_SIGNAL:
		put_signal(output, own);
		break;
	default:
		put_by_type(output, field->type, value);
	}
}

/* Arguments that say nothing in this call: the mode of a file that is not made, what fcntl does not ask for. */
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

static void put_enter(struct output *output, const struct call *call)
{
	uint32_t i;

	put(output, "%s(", call->name);
	for (i = 1; i < call->format->field_count && i < GRAFTRACE_PROBE_FIELDS; i++) {
		const struct gt_event_field *field = &call->format->fields[i];
		struct gt_event_value value;

		if (strncmp(field->name, "__", 2) == 0 || is_left_out(call, field->name))
			continue;
		if (i > 1)
			put(output, ", ");
		gt_event_value(call->format, call->record, i, &value);
		put_argument(output, call, field, value.kind == GT_EVENT_NUMBER ? value.number : 0);
	}
	put(output, ")");
}

/* What the kernel has written, behind the result. The field's name says the argument's, but no field has the
 * argument's type: it is known by the call's name and the size. */
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
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(field, types[i][0]) == 0)
			return types[i][1];
	return "char *";
}

static void put_written(struct output *output, const struct call *call, int64_t result)
{
	struct gt_event_value value;
	const char *name;

	if (call->format->field_count < 3)
		return;
	gt_event_value(call->format, call->record, 2, &value);
	if (value.kind != GT_EVENT_ARRAY)
		return;
	put(output, " ");
	name = call->format->fields[2].name;
	if (strcmp(name, "__stat_addr_val") == 0 && value.text_bytes == 4)
		put_status(output, (uint32_t)word_at(value.text, 0, 4));
	else if (strcmp(name, "__optval_val") == 0 && value.text_bytes == 4)
		put(output, "[%" PRId32 "]", (int32_t)word_at(value.text, 0, 4));
	else if (!put_structure(output, type_of_out(name), value.text, value.text_bytes, true))
		put_quoted(output, value.text, value.text_bytes, value.text_bytes < result);
}

static bool returns_an_address(const char *name)
{
	static const char *const names[] = { "brk", "mmap", "mremap", "shmat", NULL };

	return is_one_of(name, names);
}

static void put_exit(struct output *output, const struct call *call)
{
	const int64_t result = (int64_t)value_of(call, "ret");
	const char *name = NULL;

	put(output, "%s = ", call->name);
	if (result < 0 && result >= -ERROR_MOST) {
		name = strerrorname_np((int)-result);
		if (name)
			put(output, "-1 %s (%s)", name, strerrordesc_np((int)-result));
		else
			put(output, "-1 (errno %" PRId64 ")", -result);
	} else if (returns_an_address(call->name)) {
		put(output, "0x%" PRIx64, (uint64_t)result);
	} else if (strcmp(call->name, "umask") == 0) {
		put(output, "%#03o", (unsigned)result);
	} else {
		put(output, "%" PRId64, result);
		put_written(output, call, result);
	}
}

char *gt_syscall_text_put(const struct gt_event_format *format, const struct gt_record *record,
			  char *at, size_t room)
{
	struct call call = { format, record, NULL };
	struct output output = { at, at + room };

	if (strcmp(format->system, "syscalls") != 0 || format->print || !format->field_count ||
	    strcmp(format->fields[0].name, "__syscall_nr") != 0)
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
