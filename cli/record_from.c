/* SPDX-License-Identifier: MIT */
/*
 * Drains /ftrace/trace_pipe.data of a kernel: a recording file that never ends. What comes is cut
 * into its blocks, each is checked by its header and written whole; at the end an END block is
 * made of what went by. So the file is a whole recording whenever and however the connection ends.
 */
#define _GNU_SOURCE
#include "cli/record_from.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <graftrace/file.h>
#include "attach/clock.h"
#include "cli/command.h"
#include "cli/running.h"
#include "read/crc32c.h"

#define NAME	   "record"
#define PATH	   "/ftrace/trace_pipe.data"
#define HEAD_BYTES 8192
#define POLL_MS	   100

struct drain {
	const char *url, *path;
	char host[256], port[16];
	int socket, file;
	uint8_t *held; /* what came and is not written yet */
	size_t held_bytes, capacity;
	uint64_t offset; /* written so far */
	uint64_t blocks;
	bool ended; /* the other side said END */
	struct graftrace_file_end end;
	uint64_t first_clock, last_clock;
	uint64_t lost[64][GRAFTRACE_LOST_CAUSES]; /* the last that was said of each CPU */
};

/* ---- the connection ---- */

static bool parse_url(struct drain *drain)
{
	const char *host = drain->url;
	size_t length;

	if (strncmp(host, "http://", 7) == 0)
		host += 7;
	length = strcspn(host, "/:");
	if (length == 0 || length >= sizeof(drain->host))
		return false;
	memcpy(drain->host, host, length);
	host += length;
	strcpy(drain->port, "9090");
	if (*host == ':') {
		length = strspn(++host, "0123456789");
		if (length == 0 || length > 5)
			return false;
		memcpy(drain->port, host, length);
		drain->port[length] = '\0';
		host += length;
	}
	return *host == '\0' || strcmp(host, "/") == 0 || strncmp(host, "/ftrace", 7) == 0;
}

static bool connect_to(struct drain *drain)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL, *at;
	int error = getaddrinfo(drain->host, drain->port, &hints, &found);

	if (error != 0) {
		gt_complain(NAME, "%s: %s", drain->host, gai_strerror(error));
		return false;
	}
	for (at = found; at != NULL; at = at->ai_next) {
		drain->socket = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0);
		if (drain->socket < 0)
			continue;
		if (connect(drain->socket, at->ai_addr, at->ai_addrlen) == 0)
			break;
		error = errno;
		close(drain->socket);
		drain->socket = -1;
	}
	freeaddrinfo(found);
	if (drain->socket < 0)
		gt_complain(NAME, "cannot connect to %s:%s: %s", drain->host, drain->port,
			    strerror(error));
	return drain->socket >= 0;
}

static bool is_over(uint64_t deadline)
{
	return gt_run_interrupted || gt_run_to_forward ||
	       (deadline != 0 && gt_monotonic_ns() >= deadline);
}

/* > 0: bytes; 0: the end, or it is time to end; -1: the connection broke. */
static ssize_t receive(struct drain *drain, void *buffer, size_t bytes, uint64_t deadline)
{
	for (;;) {
		struct pollfd wait = { .fd = drain->socket, .events = POLLIN };

		if (is_over(deadline))
			return 0;
		if (poll(&wait, 1, POLL_MS) <= 0)
			continue;
		ssize_t got = recv(drain->socket, buffer, bytes, 0);
		if (got >= 0 || errno != EINTR)
			return got;
	}
}

static bool request(struct drain *drain, uint64_t deadline)
{
	char head[HEAD_BYTES];
	size_t held = 0;
	char *body = NULL;
	int length = snprintf(head, sizeof(head), "GET " PATH " HTTP/1.0\r\nHost: %s:%s\r\n\r\n",
			      drain->host, drain->port);

	if (send(drain->socket, head, (size_t)length, MSG_NOSIGNAL) != length) {
		gt_complain(NAME, "%s: %s", drain->url, strerror(errno));
		return false;
	}
	while (body == NULL) {
		ssize_t got = receive(drain, head + held, sizeof(head) - 1 - held, deadline);

		if (got <= 0) {
			if (!is_over(deadline))
				gt_complain(NAME, "%s: the connection ended before an answer came",
					    drain->url);
			return false;
		}
		held += (size_t)got;
		head[held] = '\0';
		body = memmem(head, held, "\r\n\r\n", 4);
		if (body == NULL && held == sizeof(head) - 1)
			break;
	}
	if (body == NULL || strncmp(head, "HTTP/1.", 7) != 0 || strncmp(head + 8, " 200", 4) != 0) {
		char *line = body != NULL ? body + 4 : head;

		line[strcspn(line, "\r\n")] = '\0';
		gt_complain(NAME, "%s: %s", drain->url,
			    *line != '\0' ? line : "the other side is no graftrace kernel");
		return false;
	}
	drain->held_bytes = held - (size_t)(body + 4 - head);
	memcpy(drain->held, body + 4, drain->held_bytes);
	return true;
}

/* ---- blocks ---- */

static bool put(struct drain *drain, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;

	while (count > 0) {
		ssize_t done = write(drain->file, at, count);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			gt_complain(NAME, "cannot write '%s': %s", drain->path, strerror(errno));
			return false;
		}
		at += done;
		count -= (size_t)done;
		drain->offset += (uint64_t)done;
	}
	return true;
}

static void take_writers(struct drain *drain, const uint8_t *payload, size_t bytes)
{
	struct graftrace_file_writers head;
	struct graftrace_file_writer writer;

	if (bytes < sizeof(head))
		return;
	memcpy(&head, payload, sizeof(head));
	for (uint32_t i = 0; i < head.count && head.record_bytes >= sizeof(writer); i++) {
		size_t at = sizeof(head) + (size_t)i * head.record_bytes;

		if (at + sizeof(writer) > bytes)
			return;
		memcpy(&writer, payload + at, sizeof(writer));
		drain->end.threads += writer.generation >= GRAFTRACE_CONTEXT_INTERRUPT;
		if (writer.generation < 64)
			memcpy(drain->lost[writer.generation], writer.lost, sizeof(writer.lost));
	}
}

static void take_sub_buffers(struct drain *drain, const uint8_t *payload, size_t head_bytes)
{
	struct graftrace_file_sub_buffers head;
	struct graftrace_file_sub_buffer sub;

	if (head_bytes < sizeof(head))
		return;
	memcpy(&head, payload, sizeof(head));
	for (uint32_t i = 0; i < head.sub_buffer_count; i++) {
		size_t at = sizeof(head) +
			    (size_t)head.group_count * sizeof(struct graftrace_file_group) +
			    i * sizeof(sub);

		if (at + sizeof(sub) > head_bytes)
			return;
		memcpy(&sub, payload + at, sizeof(sub));
		drain->end.words += sub.words;
		drain->end.sub_buffers++;
		if (drain->first_clock == 0)
			drain->first_clock = sub.clock;
		if (sub.clock > drain->last_clock)
			drain->last_clock = sub.clock;
	}
}

static void take_block(struct drain *drain, const struct graftrace_block *block,
		       const uint8_t *payload)
{
	struct graftrace_file_start start;
	struct graftrace_file_functions functions;

	switch (block->type) {
	case GRAFTRACE_BLOCK_START:
		if (block->payload_bytes >= sizeof(start)) {
			memcpy(&start, payload, sizeof(start));
			drain->end.clock = start.clock;
		}
		break;
	case GRAFTRACE_BLOCK_FUNCTIONS:
		if (block->payload_bytes >= sizeof(functions)) {
			memcpy(&functions, payload, sizeof(functions));
			drain->end.functions += functions.count;
		}
		break;
	case GRAFTRACE_BLOCK_WRITERS:
		take_writers(drain, payload, block->payload_bytes);
		break;
	case GRAFTRACE_BLOCK_SUB_BUFFERS:
		take_sub_buffers(drain, payload, block->head_bytes);
		break;
	case GRAFTRACE_BLOCK_END:
		drain->ended = true;
		break;
	}
}

/* Writes the whole blocks of what is held. False: said. */
static bool take_blocks(struct drain *drain)
{
	struct graftrace_block block;
	size_t used = 0;

	if (drain->offset == 0 && drain->held_bytes >= GRAFTRACE_FILE_MAGIC_BYTES) {
		if (memcmp(drain->held, GRAFTRACE_FILE_MAGIC, GRAFTRACE_FILE_MAGIC_BYTES) != 0) {
			gt_complain(NAME, "%s: what comes is no recording", drain->url);
			return false;
		}
		if (!put(drain, drain->held, GRAFTRACE_FILE_MAGIC_BYTES))
			return false;
		used = GRAFTRACE_FILE_MAGIC_BYTES;
	}
	while (drain->offset != 0 && drain->held_bytes - used >= sizeof(block)) {
		memcpy(&block, drain->held + used, sizeof(block));
		if (block.magic != GRAFTRACE_BLOCK_MAGIC || block.offset != drain->offset ||
		    block.payload_bytes > GRAFTRACE_BLOCK_MAX ||
		    block.head_bytes > block.payload_bytes ||
		    block.header_crc !=
			    gt_crc32c(0, &block, offsetof(struct graftrace_block, header_crc))) {
			gt_complain(NAME, "%s: at byte %llu is no block of a recording", drain->url,
				    (unsigned long long)drain->offset);
			return false;
		}
		size_t whole = sizeof(block) + ((block.payload_bytes + 7) & ~7ull);
		if (drain->held_bytes - used < whole) {
			if (whole <= drain->capacity)
				break;
			uint8_t *bigger = realloc(drain->held, whole + HEAD_BYTES);
			if (bigger == NULL) {
				gt_complain(NAME, "no memory");
				return false;
			}
			drain->held = bigger;
			drain->capacity = whole + HEAD_BYTES;
			break;
		}
		take_block(drain, &block, drain->held + used + sizeof(block));
		if (!put(drain, drain->held + used, whole))
			return false;
		drain->blocks++;
		used += whole;
	}
	drain->held_bytes -= used;
	memmove(drain->held, drain->held + used, drain->held_bytes);
	return true;
}

static bool put_end(struct drain *drain)
{
	struct graftrace_file_end *end = &drain->end;
	struct graftrace_block block = {
		.magic = GRAFTRACE_BLOCK_MAGIC,
		.offset = drain->offset,
		.number = drain->blocks,
		.type = GRAFTRACE_BLOCK_END,
		.version = 1,
		.payload_bytes = sizeof(*end),
		.raw_bytes = sizeof(*end),
	};
	__extension__ typedef unsigned __int128 u128;

	for (size_t i = 0; i < 64; i++)
		for (size_t cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
			end->lost[cause] += drain->lost[i][cause];
	end->processes = 1;
	if (end->clock.shift < 64)
		end->ns = (uint64_t)((u128)(drain->last_clock - drain->first_clock) *
					     end->clock.mult >>
				     end->clock.shift);
	block.body_crc = gt_crc32c(0, end, sizeof(*end));
	block.header_crc = gt_crc32c(0, &block, offsetof(struct graftrace_block, header_crc));
	return put(drain, &block, sizeof(block)) && put(drain, end, sizeof(*end));
}

/* ---- the file ---- */

static bool create(struct drain *drain)
{
	char *old = NULL;

	if (access(drain->path, F_OK) == 0 && asprintf(&old, "%s.old", drain->path) >= 0) {
		rename(drain->path, old);
		free(old);
	}
	drain->file = open(drain->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (drain->file < 0)
		gt_complain(NAME, "cannot open '%s': %s", drain->path, strerror(errno));
	return drain->file >= 0;
}

static bool pump(struct drain *drain, uint64_t deadline)
{
	for (;;) {
		if (!take_blocks(drain))
			return false;
		ssize_t got = receive(drain, drain->held + drain->held_bytes,
				      drain->capacity - drain->held_bytes, deadline);
		if (got < 0)
			gt_complain(NAME, "%s: %s; what came is kept", drain->url, strerror(errno));
		if (got <= 0)
			return take_blocks(drain);
		drain->held_bytes += (size_t)got;
	}
}

int gt_record_from(const char *url, const char *output, uint64_t for_ns)
{
	struct drain drain = { .url = url, .path = output, .socket = -1, .file = -1 };
	uint64_t deadline = for_ns != 0 ? gt_monotonic_ns() + for_ns : 0;
	int code = GT_EXIT_FAILED;

	if (!parse_url(&drain)) {
		gt_complain(NAME, "--from wants http://HOST:PORT, not '%s'", url);
		return GT_EXIT_USAGE;
	}
	gt_run_handle_signals();
	drain.capacity = 1 << 20;
	drain.held = malloc(drain.capacity);
	if (drain.held == NULL)
		gt_complain(NAME, "no memory");
	else if (connect_to(&drain) && request(&drain, deadline) && create(&drain) &&
		 pump(&drain, deadline) && (drain.ended || put_end(&drain)))
		code = GT_EXIT_DONE;
	if (code == GT_EXIT_DONE)
		fprintf(stderr, "graftrace: %llu records, %u threads, %llu lost, %s (%.1f MB)\n",
			(unsigned long long)drain.end.words, drain.end.threads,
			(unsigned long long)drain.end.lost[GRAFTRACE_LOST_FULL], output,
			(double)drain.offset / 1e6);
	free(drain.held);
	if (drain.socket >= 0)
		close(drain.socket);
	if (drain.file >= 0)
		close(drain.file);
	return code;
}
