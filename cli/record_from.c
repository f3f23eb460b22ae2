/* SPDX-License-Identifier: MIT */
/*
 * Drains /ftrace/trace_pipe.data of a kernel. The kernel sends a recording without end until
 * somebody writes 0 into that file; this is done at the end over a second connection, and the
 * kernel then sends what it has recorded up to that moment. The stream is cut into its blocks; each
 * is checked by its header and written whole; the END block is made from the blocks that were
 * received. So the file is a whole recording whenever and however the connection ends.
 *
 * With this machine's kernel beside (record_host.h), the first block is written here and all others
 * there, with new places in the file.
 */
#define _GNU_SOURCE
#include "cli/record_from.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <graftrace/file.h>
#include "attach/process/clock.h"
#include "cli/command.h"
#include "cli/record_host.h"
#include "cli/running.h"
#include "read/crc32c.h"
#include "read/recording_file.h"

#define NAME	   "record"
#define PATH	   "/ftrace/trace_pipe.data"
#define HEAD_BYTES 8192
#define POLL_MS	   100
#define HOST_MS	   20		 /* the same while this machine's kernel is recorded, too */
#define BUSY_NS	   2000000000ull /* so long a kernel may take an earlier reader as connected */
#define LAST_NS	   5000000000ull /* of silence, after the end was asked for */
#define REST_NS	   300000000ull	 /* for data under way, if that request failed */

struct drain {
	const char *url, *path;
	char host[256], port[16];
	int socket, file;
	uint8_t *held; /* received and not written yet */
	size_t held_bytes, capacity;
	uint64_t
		received; /* bytes of blocks that were taken: the place of the next one, as it says */
	uint64_t offset; /* bytes written so far, but for those that `host` writes */
	uint64_t blocks;
	struct gt_record_host *host_kernel; /* this machine's goes to the file, too; NULL: not */
	struct graftrace_file_start start;
	bool ended; /* the END block was received: the kernel has sent all */
	struct graftrace_file_end end;
	uint64_t first_clock, last_clock;
	uint64_t lost[64][GRAFTRACE_LOST_CAUSES]; /* the last counts of each CPU */
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

/* Returns a connection, or -1 and a message; with `quiet` without a message, and with a shorter
 * time limit. */
static int connect_to(const struct drain *drain, bool quiet)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL, *at;
	struct timeval limit = { .tv_sec = LAST_NS / 1000000000 };
	int error = getaddrinfo(drain->host, drain->port, &hints, &found);
	int made = -1;

	if (error != 0) {
		if (!quiet)
			gt_complain(NAME, "%s: %s", drain->host, gai_strerror(error));
		return -1;
	}
	for (at = found; at != NULL && made < 0; at = at->ai_next) {
		made = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0);
		if (quiet && made >= 0)
			setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		if (made < 0 || connect(made, at->ai_addr, at->ai_addrlen) == 0)
			continue;
		error = errno;
		close(made);
		made = -1;
	}
	freeaddrinfo(found);
	if (made < 0 && !quiet)
		gt_complain(NAME, "cannot connect to %s:%s: %s", drain->host, drain->port,
			    strerror(error));
	return made;
}

static bool is_over(uint64_t deadline)
{
	return gt_run_interrupted || gt_run_to_forward ||
	       (deadline != 0 && gt_monotonic_ns() >= deadline);
}

/* Returns > 0: bytes; 0: the end, or time to stop; -1: the connection broke. */
static ssize_t receive(int from, void *buffer, size_t bytes, uint64_t deadline,
		       struct gt_record_host *host)
{
	for (;;) {
		struct pollfd wait = { .fd = from, .events = POLLIN };

		gt_record_host_take(host);
		if (is_over(deadline) || gt_record_host_failed(host))
			return 0;
		if (poll(&wait, 1, host != NULL ? HOST_MS : POLL_MS) <= 0)
			continue;
		ssize_t got = recv(from, buffer, bytes, 0);
		if (got >= 0 || errno != EINTR)
			return got;
	}
}

/* An answer as far as it was received. */
struct answer {
	char text[HEAD_BYTES];
	size_t held;
	char *body;   /* after the head; NULL: not received */
	int status;   /* 0: not an answer of an HTTP server */
	size_t there; /* bytes of the body */
};

/* Sends a request and reads the head of its answer; if that is a refusal, the whole body too. */
static bool ask(int to, const char *request, struct answer *answer, uint64_t deadline)
{
	size_t length = strlen(request);
	ssize_t got = 1;

	*answer = (struct answer){ 0 };
	if (send(to, request, length, MSG_NOSIGNAL) != (ssize_t)length)
		return false;
	while (answer->held < sizeof(answer->text) - 1 &&
	       (answer->body == NULL || answer->status != 200)) {
		got = receive(to, answer->text + answer->held,
			      sizeof(answer->text) - 1 - answer->held, deadline, NULL);
		if (got <= 0)
			break;
		answer->held += (size_t)got;
		answer->body = memmem(answer->text, answer->held, "\r\n\r\n", 4);
		if (answer->body != NULL && strncmp(answer->text, "HTTP/1.", 7) == 0)
			answer->status = atoi(answer->text + 8);
	}
	if (answer->body != NULL) {
		answer->body += 4;
		answer->there = answer->held - (size_t)(answer->body - answer->text);
	}
	return answer->held != 0;
}

/* The reason of a refusal: the first line of its body, else its status line. */
static const char *refusal_of(struct answer *answer)
{
	char *line = answer->body;

	if (answer->status == 0)
		return "the other side is no graftrace kernel";
	if (line == NULL || strcspn(line, "\r\n") == 0)
		line = answer->text + 9;
	line[strcspn(line, "\r\n")] = '\0';
	return line;
}

/* The kernel notices a moment late that an earlier reader is gone. While it still refuses a
 * second one, the request is repeated. */
static bool request(struct drain *drain, uint64_t deadline)
{
	struct answer answer;
	char text[sizeof(drain->host) + 128];
	uint64_t patience = gt_monotonic_ns() + BUSY_NS;

	snprintf(text, sizeof(text), "GET " PATH " HTTP/1.0\r\nHost: %s:%s\r\n\r\n", drain->host,
		 drain->port);
	for (;;) {
		drain->socket = connect_to(drain, false);
		if (drain->socket < 0)
			return false;
		if (!ask(drain->socket, text, &answer, deadline)) {
			if (!is_over(deadline))
				gt_complain(NAME, "%s: the connection ended before an answer came",
					    drain->url);
			return false;
		}
		if (answer.status == 200)
			break;
		if (answer.status == 0 && is_over(deadline))
			return false;
		if (answer.status != 409 || gt_monotonic_ns() >= patience || is_over(deadline)) {
			gt_complain(NAME, "%s: %s", drain->url, refusal_of(&answer));
			return false;
		}
		close(drain->socket);
		poll(NULL, 0, POLL_MS);
	}
	drain->held_bytes = answer.there;
	memcpy(drain->held, answer.body, answer.there);
	return true;
}

/* Asks the kernel to send what it has, and to end. Returns false if it cannot, or is gone. */
static bool ask_for_end(const struct drain *drain)
{
	struct answer answer = { 0 };
	char text[sizeof(drain->host) + 128];
	int to = connect_to(drain, true);

	if (to < 0)
		return false;
	snprintf(text, sizeof(text),
		 "PUT " PATH " HTTP/1.0\r\nHost: %s:%s\r\nContent-Length: 2\r\n\r\n0\n",
		 drain->host, drain->port);
	ask(to, text, &answer, gt_monotonic_ns() + LAST_NS);
	close(to);
	return answer.status == 204;
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
	struct graftrace_file_functions functions;
	struct graftrace_file_end end;

	switch (block->type) {
	case GRAFTRACE_BLOCK_START:
		if (block->payload_bytes >= sizeof(drain->start)) {
			memcpy(&drain->start, payload, sizeof(drain->start));
			drain->end.clock = drain->start.clock;
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
		if (block->payload_bytes < sizeof(end))
			break;
		memcpy(&end, payload, sizeof(end));
		if (end.threads > drain->end.threads) /* those without a name, too */
			drain->end.threads = end.threads;
		break;
	}
}

/* What the kernel is called in requests. */
static void name_host(const struct drain *drain, char *name, size_t bytes)
{
	snprintf(name, bytes, "%s:%s", drain->host, drain->port);
}

/* Lets this machine's kernel into the file, behind its first block. */
static bool begin_host(struct drain *drain)
{
	char name[sizeof(drain->host) + 16];
	int connection = connect_to(drain, false);

	name_host(drain, name, sizeof(name));
	bool done = connection >= 0 && gt_record_host_begin(drain->host_kernel, drain->offset,
							    &drain->start, connection, name);
	if (connection >= 0)
		close(connection);
	return done;
}

/* The clocks are compared while the kernel still records: nothing more of that is in the trace then. */
static bool finish_host(struct drain *drain)
{
	char name[sizeof(drain->host) + 16];
	int connection = connect_to(drain, true);

	name_host(drain, name, sizeof(name));
	bool done = gt_record_host_finish(drain->host_kernel, connection, name);
	if (connection >= 0)
		close(connection);
	return done;
}

/* Groups of sub-buffers have checksums of their own, which stay. */
static bool is_whole(const struct graftrace_block *block, const uint8_t *payload, size_t padded)
{
	return gt_crc32c(0, payload, block->head_bytes) == block->head_crc &&
	       (block->type == GRAFTRACE_BLOCK_SUB_BUFFERS ||
		gt_crc32c(0, payload + block->head_bytes, padded - block->head_bytes) ==
			block->body_crc);
}

static bool put_block(struct drain *drain, const uint8_t *bytes, size_t count)
{
	struct graftrace_block block;

	memcpy(&block, bytes, sizeof(block));
	/* a block that is written anew gets checksums of what came */
	if (drain->host_kernel != NULL &&
	    !is_whole(&block, bytes + sizeof(block), count - sizeof(block))) {
		gt_complain(NAME, "%s: the block at byte %llu is damaged", drain->url,
			    (unsigned long long)drain->received);
		return false;
	}
	if (drain->host_kernel != NULL && drain->blocks > 0)
		return gt_record_host_put(drain->host_kernel, &block, bytes + sizeof(block));
	if (!put(drain, bytes, count))
		return false;
	drain->blocks++;
	return drain->host_kernel == NULL || begin_host(drain);
}

/* Writes the whole blocks that have been received. Returns false after a reported error. */
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
		used = drain->received = GRAFTRACE_FILE_MAGIC_BYTES;
	}
	while (drain->offset != 0 && drain->held_bytes - used >= sizeof(block)) {
		memcpy(&block, drain->held + used, sizeof(block));
		if (block.magic != GRAFTRACE_BLOCK_MAGIC || block.offset != drain->received ||
		    block.payload_bytes > GRAFTRACE_BLOCK_MAX ||
		    block.head_bytes > block.payload_bytes ||
		    block.header_crc !=
			    gt_crc32c(0, &block, offsetof(struct graftrace_block, header_crc))) {
			gt_complain(NAME, "%s: at byte %llu is no block of a recording", drain->url,
				    (unsigned long long)drain->received);
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
		if (drain->ended) { /* put_end writes more than was received */
			used = drain->held_bytes;
			break;
		}
		if (!put_block(drain, drain->held + used, whole))
			return false;
		drain->received += whole;
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
	if (drain->host_kernel != NULL && drain->blocks > 0)
		return finish_host(drain) && gt_record_host_put(drain->host_kernel, &block, end);
	block.body_crc = gt_crc32c(0, end, sizeof(*end));
	block.header_crc = gt_crc32c(0, &block, offsetof(struct graftrace_block, header_crc));
	return put(drain, &block, sizeof(block)) && put(drain, end, sizeof(*end));
}

/* ---- the file ---- */

static bool create(struct drain *drain)
{
	drain->file = gt_recording_file_create(drain->path);
	if (drain->file < 0)
		gt_complain(NAME, "cannot open '%s': %s", drain->path, strerror(errno));
	return drain->file >= 0;
}

static bool pump(struct drain *drain, uint64_t deadline)
{
	bool asked = false, answered = false;

	for (;;) {
		if (!take_blocks(drain))
			return false;
		if (drain->ended)
			return true;
		ssize_t got =
			receive(drain->socket, drain->held + drain->held_bytes,
				drain->capacity - drain->held_bytes, deadline, drain->host_kernel);
		if (gt_record_host_failed(drain->host_kernel))
			return false;
		if (got < 0)
			gt_complain(NAME, "%s: %s; what came is kept", drain->url, strerror(errno));
		if (got == 0 && !asked && is_over(deadline)) {
			/* a second Ctrl-C stops at once */
			gt_run_interrupted = gt_run_to_forward = 0;
			asked = true;
			answered = ask_for_end(drain);
			deadline = gt_monotonic_ns() + REST_NS;
		} else if (got <= 0) {
			return take_blocks(drain);
		}
		drain->held_bytes += (size_t)got;
		if (answered)
			deadline = gt_monotonic_ns() + LAST_NS;
	}
}

int gt_record_from(const struct gt_record_options *options)
{
	const char *output = options->output;
	struct drain drain = { .url = options->from, .path = output, .socket = -1, .file = -1 };

	if (!parse_url(&drain)) {
		gt_complain(NAME, "--from wants http://HOST:PORT, not '%s'", options->from);
		return GT_EXIT_USAGE;
	}
	gt_run_handle_signals();
	int code = gt_record_host_create(options, &drain.host_kernel);
	if (code != 0)
		return code;
	code = GT_EXIT_FAILED;
	uint64_t deadline = options->for_ns != 0 ? gt_monotonic_ns() + options->for_ns : 0;
	drain.capacity = 1 << 20;
	drain.held = malloc(drain.capacity);
	if (drain.held == NULL)
		gt_complain(NAME, "no memory");
	else if (request(&drain, deadline) && create(&drain) && pump(&drain, deadline) &&
		 put_end(&drain))
		code = GT_EXIT_DONE;
	if (code == GT_EXIT_DONE)
		fprintf(stderr, "graftrace: %llu records, %u threads, %llu lost, %s (%.1f MB)\n",
			(unsigned long long)drain.end.words, drain.end.threads,
			(unsigned long long)drain.end.lost[GRAFTRACE_LOST_FULL], output,
			(double)(drain.host_kernel ? gt_record_host_bytes(drain.host_kernel)
						   : drain.offset) /
				1e6);
	gt_record_host_destroy(drain.host_kernel);
	free(drain.held);
	if (drain.socket >= 0)
		close(drain.socket);
	if (drain.file >= 0)
		close(drain.file);
	return code;
}
