/* SPDX-License-Identifier: MIT */
/* Structures that system calls take and give, as strace writes them. See syscall_put.h. */
#include "read/syscall_put.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void put_signals(struct gt_syscall_output *output, uint64_t set)
{
	bool any = false;

	/* As strace does: a set of most signals is written by those that are not in it. */
	if (__builtin_popcountll(set) > 32) {
		gt_syscall_put(output, "~");
		set = ~set;
	}
	gt_syscall_put(output, "[");
	for (int i = 1; i <= 64; i++) {
		const char *name = i < 32 ? sigabbrev_np(i) : NULL;

		if (!(set >> (i - 1) & 1))
			continue;
		if (name != NULL)
			gt_syscall_put(output, any ? " %s" : "%s", name);
		else
			gt_syscall_put(output, any ? " RT_%d" : "RT_%d", i - 32);
		any = true;
	}
	gt_syscall_put(output, "]");
}

static void put_unix_address(struct gt_syscall_output *output, const char *bytes, size_t count)
{
	const size_t path = count - 2;

	if (path == 0)
		return;
	gt_syscall_put(output, ", sun_path=");
	if (bytes[2] == 0) {
		gt_syscall_put(output, "@");
		gt_syscall_put_quoted(output, bytes + 3, path - 1, false);
	} else {
		const size_t length = strnlen(bytes + 2, path);

		gt_syscall_put_quoted(output, bytes + 2, length, length == path);
	}
}

static bool put_address(struct gt_syscall_output *output, const char *bytes, size_t count)
{
	char text[INET6_ADDRSTRLEN];
	uint16_t family, port = 0;

	if (count < 2)
		return false;
	family = (uint16_t)gt_syscall_word_at(bytes, 0, 2);
	gt_syscall_put(output, "{sa_family=");
	gt_syscall_put_words(output, &gt_syscall_families, family);
	if (count >= 8)
		port = ntohs((uint16_t)gt_syscall_word_at(bytes, 2, 2));
	if (family == AF_INET && count >= 8) {
		inet_ntop(AF_INET, bytes + 4, text, sizeof(text));
		gt_syscall_put(output, ", sin_port=htons(%u), sin_addr=inet_addr(\"%s\")", port,
			       text);
	} else if (family == AF_INET6 && count >= 28) {
		inet_ntop(AF_INET6, bytes + 8, text, sizeof(text));
		gt_syscall_put(output,
			       ", sin6_port=htons(%u), sin6_flowinfo=htonl(%u), "
			       "inet_pton(AF_INET6, \"%s\", &sin6_addr), sin6_scope_id=%" PRIu64,
			       port, ntohl((uint32_t)gt_syscall_word_at(bytes, 4, 4)), text,
			       gt_syscall_word_at(bytes, 24, 4));
	} else if (family == AF_UNIX) {
		put_unix_address(output, bytes, count);
	} else if (family == AF_NETLINK && count >= 12) {
		gt_syscall_put(output, ", nl_pid=%" PRIu64 ", nl_groups=%#" PRIx64,
			       gt_syscall_word_at(bytes, 4, 4), gt_syscall_word_at(bytes, 8, 4));
	} else {
		gt_syscall_put(output, ", ...");
	}
	gt_syscall_put(output, "}");
	return true;
}

static bool put_time(struct gt_syscall_output *output, const char *bytes, const char *part)
{
	gt_syscall_put(output, "{tv_sec=%" PRId64 ", tv_%s=%" PRId64 "}",
		       (int64_t)gt_syscall_word_at(bytes, 0, 8), part,
		       (int64_t)gt_syscall_word_at(bytes, 8, 8));
	return true;
}

static void put_timer(struct gt_syscall_output *output, const char *bytes, const char *part)
{
	gt_syscall_put(output, "{it_interval=");
	put_time(output, bytes, part);
	gt_syscall_put(output, ", it_value=");
	put_time(output, bytes + 16, part);
	gt_syscall_put(output, "}");
}

static void put_state(struct gt_syscall_output *output, uint32_t mode, uint64_t bytes,
		      const char *prefix)
{
	gt_syscall_put(output, "{%smode=", prefix);
	gt_syscall_put_words(output, &gt_syscall_kinds, mode & S_IFMT);
	gt_syscall_put(output, "|%04o, %ssize=%" PRIu64 ", ...}", mode & 07777, prefix, bytes);
}

static void put_action(struct gt_syscall_output *output, const char *bytes)
{
	const uint64_t handler = gt_syscall_word_at(bytes, 0, 8);

	gt_syscall_put(output, "{sa_handler=");
	if (handler == 0 || handler == 1)
		gt_syscall_put(output, handler ? "SIG_IGN" : "SIG_DFL");
	else
		gt_syscall_put(output, "0x%" PRIx64, handler);
	gt_syscall_put(output, ", sa_mask=");
	put_signals(output, gt_syscall_word_at(bytes, 24, 8));
	gt_syscall_put(output, ", sa_flags=");
	gt_syscall_put_words(output, &gt_syscall_actions, gt_syscall_word_at(bytes, 8, 8));
	gt_syscall_put(output, "}");
}

static void put_limit(struct gt_syscall_output *output, const char *bytes)
{
	for (size_t i = 0; i < 2; i++) {
		const uint64_t limit = gt_syscall_word_at(bytes, 8 * i, 8);

		gt_syscall_put(output, i ? ", rlim_max=" : "{rlim_cur=");
		if (limit == ~0ull)
			gt_syscall_put(output, "RLIM64_INFINITY");
		else if (limit && limit % 1024 == 0)
			gt_syscall_put(output, "%" PRIu64 "*1024", limit / 1024);
		else
			gt_syscall_put(output, "%" PRIu64, limit);
	}
	gt_syscall_put(output, "}");
}

static void put_poll(struct gt_syscall_output *output, const char *bytes, bool behind)
{
	gt_syscall_put(output, "{fd=%" PRId32 ", %s=", (int32_t)gt_syscall_word_at(bytes, 0, 4),
		       behind ? "revents" : "events");
	gt_syscall_put_words(output, &gt_syscall_polls,
			     gt_syscall_word_at(bytes, behind ? 6 : 4, 2));
	gt_syscall_put(output, "}");
}

static void put_epoll(struct gt_syscall_output *output, const char *bytes)
{
	gt_syscall_put(output, "{events=");
	gt_syscall_put_words(output, &gt_syscall_epolls, gt_syscall_word_at(bytes, 0, 4));
	gt_syscall_put(output, ", data={u32=%" PRIu64 ", u64=%" PRIu64 "}}",
		       gt_syscall_word_at(bytes, 4, 4), gt_syscall_word_at(bytes, 4, 8));
}

static void put_clone(struct gt_syscall_output *output, const char *bytes)
{
	gt_syscall_put(output, "{flags=");
	gt_syscall_put_words(output, &gt_syscall_clones, gt_syscall_word_at(bytes, 0, 8));
	gt_syscall_put(output, ", exit_signal=");
	gt_syscall_put_signal(output, gt_syscall_word_at(bytes, 32, 8));
	gt_syscall_put(output, ", stack=0x%" PRIx64 ", stack_size=0x%" PRIx64 ", ...}",
		       gt_syscall_word_at(bytes, 40, 8), gt_syscall_word_at(bytes, 48, 8));
}

static bool is_int(const char *type)
{
	return strncmp(type, "int", 3) == 0;
}

bool gt_syscall_put_structure(struct gt_syscall_output *output, const char *type, const char *bytes,
			      size_t count, bool behind)
{
	if (gt_syscall_is_of(type, "sockaddr"))
		return put_address(output, bytes, count);
	if (gt_syscall_is_of(type, "itimerspec") && count >= 32)
		put_timer(output, bytes, "nsec");
	else if (gt_syscall_is_of(type, "itimerval") && count >= 32)
		put_timer(output, bytes, "usec");
	else if (gt_syscall_is_of(type, "timespec") && count >= 16)
		put_time(output, bytes, "nsec");
	else if (gt_syscall_is_of(type, "timeval") && count >= 16)
		put_time(output, bytes, "usec");
	else if (gt_syscall_is_of(type, "struct statx") && count >= 48)
		put_state(output, (uint32_t)gt_syscall_word_at(bytes, 28, 2),
			  gt_syscall_word_at(bytes, 40, 8), "stx_");
	else if (gt_syscall_is_of(type, "struct stat ") && count >= 56)
		put_state(output, (uint32_t)gt_syscall_word_at(bytes, 24, 4),
			  gt_syscall_word_at(bytes, 48, 8), "st_");
	else if (gt_syscall_is_of(type, "sigset_t") && count >= 8)
		put_signals(output, gt_syscall_word_at(bytes, 0, 8));
	else if (gt_syscall_is_of(type, "struct sigaction") && count >= 32)
		put_action(output, bytes);
	else if (gt_syscall_is_of(type, "rlimit") && count >= 16)
		put_limit(output, bytes);
	else if (gt_syscall_is_of(type, "pollfd") && count >= 8)
		put_poll(output, bytes, behind);
	else if (gt_syscall_is_of(type, "epoll_event") && count >= 12)
		put_epoll(output, bytes);
	else if (gt_syscall_is_of(type, "clone_args") && count >= 56)
		put_clone(output, bytes);
	else if (gt_syscall_is_of(type, "iovec") && count >= 16)
		gt_syscall_put(output, "{iov_base=0x%" PRIx64 ", iov_len=%" PRIu64 "}",
			       gt_syscall_word_at(bytes, 0, 8), gt_syscall_word_at(bytes, 8, 8));
	else if (gt_syscall_is_of(type, "stack_t") && count >= 24)
		gt_syscall_put(output,
			       "{ss_sp=0x%" PRIx64 ", ss_flags=%" PRIu64 ", ss_size=%" PRIu64 "}",
			       gt_syscall_word_at(bytes, 0, 8), gt_syscall_word_at(bytes, 8, 4),
			       gt_syscall_word_at(bytes, 16, 8));
	else if (gt_syscall_is_of(type, "new_utsname") && count >= 64)
		gt_syscall_put_quoted(output, bytes, strnlen(bytes, count), false);
	else if (is_int(type) && count == 8)
		gt_syscall_put(output, "[%" PRId32 ", %" PRId32 "]",
			       (int32_t)gt_syscall_word_at(bytes, 0, 4),
			       (int32_t)gt_syscall_word_at(bytes, 4, 4));
	else
		return false;
	return true;
}
