/* SPDX-License-Identifier: MIT */
/*
 * Runs a program under a session and prints what the sink was given: for tests of attach/ alone,
 * without files and commands. Usage: session_run [OPTIONS] -- PROGRAM [ARG…]; see usage(). Prints,
 * on stderr or in -o FILE: one line a function that was called ("entries returns name"), then the
 * totals.
 */
#define _GNU_SOURCE
#include "attach/session/session.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/host/memory.h"

#define NUMBERS (1u << 22)

static char *names[NUMBERS];
static uint64_t entries[NUMBERS];
static uint64_t returns[NUMBERS];
static uint64_t specials[16], holes, sub_buffers, objects, writers;
static bool dump;

static int on_functions(void *data, uint32_t pid, uint32_t first,
			const struct gt_function *functions, uint32_t count)
{
	(void)data, (void)pid;
	for (uint32_t i = 0; i < count && first + i < NUMBERS; i++)
		names[first + i] = strdup(functions[i].name);
	return 0;
}

static int on_object(void *data, uint32_t pid, const char *path, uint64_t start, uint64_t end,
		     uint64_t bias, const uint8_t *build_id, uint32_t build_id_bytes)
{
	(void)data, (void)pid, (void)path, (void)start, (void)end, (void)bias;
	(void)build_id, (void)build_id_bytes;
	objects++;
	return 0;
}

static int on_writer(void *data, const struct gt_writer *writer)
{
	(void)data, (void)writer;
	writers++;
	return 0;
}

static void count(uint32_t function, uint64_t *table)
{
	if (function < NUMBERS)
		table[function]++;
}

static int on_sub_buffer(void *data, const struct graftrace_sub_buffer *sub_buffer, uint32_t words)
{
	const uint64_t *word = (const uint64_t *)(sub_buffer + 1);
	uint32_t step = sub_buffer->tracer == GRAFTRACE_TRACER_FUNCTION ? 2 : 1;

	(void)data;
	sub_buffers++;
	for (uint32_t i = 0; i < words; i += step) {
		uint32_t function = graftrace_word_function(word[i]);

		if (dump)
			fprintf(stderr, "%u.%" PRIu64 "[%u] %016" PRIx64 "\n",
				sub_buffer->generation, sub_buffer->sequence, i, word[i]);
		if (!word[i]) {
			holes++;
		} else if (function < GRAFTRACE_SPECIAL) {
			count(function, graftrace_word_is_return(word[i]) ? returns : entries);
		} else {
			specials[function & 15]++;
			if (function - GRAFTRACE_SPECIAL != GRAFTRACE_SPECIAL_EVENT)
				continue;
			if ((uint32_t)word[i] >> 16 == GRAFTRACE_EVENT_LONG_RETURN)
				count(graftrace_word_function(word[i + 1]), returns);
			if ((uint32_t)word[i] >> 16 == GRAFTRACE_EVENT_ENTRY_ONLY)
				count(graftrace_word_function(word[i + 1]), entries);
			i += (word[i] & 0xffff) + 1 - step;
		}
	}
	return 0;
}

static void usage(void)
{
	fprintf(stderr, "session_run [-o FILE] [-d] [-F] [-L] [-U] [-O] [-t function|nop] [-b "
			"BYTES] [-w MS] "
			"[-l GLOB]… [-n GLOB]… [-g GLOB]… -- PROGRAM [ARG…]\n");
	exit(2);
}

int main(int argc, char **argv)
{
	const struct gt_sink sink = {
		.functions = on_functions,
		.object = on_object,
		.writer = on_writer,
		.sub_buffer = on_sub_buffer,
	};
	int option, status, result;
	struct gt_session_options options = {
		.size = sizeof(options),
		.settings = { .tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH, .on = true },
		.wait_ms = 1000,
		.sink = &sink,
	};
	struct gt_session_totals totals;
	struct gt_message message = { "" };
	struct gt_session *session;
	FILE *out = stderr;

	while ((option = getopt(argc, argv, "+o:dFLUOt:b:w:l:n:g:")) != -1) {
		const char *const word[] = { optarg, NULL };

		if (option == 'l' || option == 'n' || option == 'g') {
			const enum gt_list list = option == 'l'	  ? GT_LIST_FILTER
						  : option == 'n' ? GT_LIST_NOTRACE
								  : GT_LIST_GRAPH;

			if (gt_trace_settings_append(&options.settings, list, &gt_host_memory,
						     word))
				return 126;
		} else if (option == 'o') {
			out = fopen(optarg, "we");
			if (!out)
				usage();
		} else if (option == 'd') {
			dump = true;
		} else if (option == 'F') {
			options.no_fork = true;
		} else if (option == 'L') {
			options.libraries = true;
		} else if (option == 'U') {
			options.unprepared = true;
		} else if (option == 'O') {
			options.settings.on = false;
		} else if (option == 't') {
			options.settings.tracer = strcmp(optarg, "nop") == 0
							  ? GRAFTRACE_TRACER_NOP
							  : GRAFTRACE_TRACER_FUNCTION;
		} else if (option == 'b') {
			options.buffer_bytes = strtoull(optarg, NULL, 0);
		} else if (option == 'w') {
			options.wait_ms = (uint32_t)strtoul(optarg, NULL, 0);
		} else {
			usage();
		}
	}
	if (optind >= argc)
		usage();
	options.argv = argv + optind;
	result = gt_session_start(&options, &session, &message);
	gt_trace_settings_fini(&options.settings);
	if (result) {
		fprintf(stderr, "session_run: %s\n", message.text);
		return result == GT_ENOENT ? 127 : 126;
	}
	while ((result = gt_session_poll(session, 100, &message)) > 0)
		;
	if (result < 0)
		fprintf(stderr, "session_run: %s\n", message.text);
	gt_session_totals(session, &totals);
	for (uint32_t i = 0; i < NUMBERS; i++)
		if (entries[i] || returns[i])
			fprintf(out, "%" PRIu64 " %" PRIu64 " %s\n", entries[i], returns[i],
				names[i] ? names[i] : "?");
	fprintf(out, "total words %" PRIu64 " calls %" PRIu64 " threads %u processes %u",
		totals.words, totals.calls, totals.threads, totals.processes);
	fprintf(out, " holes %" PRIu64 " sub_buffers %" PRIu64 " objects %" PRIu64 "\n", holes,
		sub_buffers, objects);
	fprintf(out, "lost");
	for (int i = 0; i < GRAFTRACE_LOST_CAUSES; i++)
		fprintf(out, " %" PRIu64, totals.lost[i]);
	fprintf(out, "\nspecials");
	for (int i = 0; i < 16; i++)
		fprintf(out, " %" PRIu64, specials[i]);
	fprintf(out, "\n");
	status = gt_session_exit_status(session);
	gt_session_destroy(session);
	if (WIFSIGNALED(status)) {
		const struct rlimit none = { 0, 0 };

		fflush(out);
		setrlimit(RLIMIT_CORE, &none); /* the program has dumped already */
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	return WEXITSTATUS(status);
}
