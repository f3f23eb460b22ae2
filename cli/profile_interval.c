/* SPDX-License-Identifier: MIT */
/* The figures of graftrace profile, interval by interval: see profile_interval.h. */
#define _GNU_SOURCE
#include "cli/profile_interval.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attach/object/object.h"
#include "cli/command.h"
#include "cli/looking.h"
#include "cli/output.h"
#include "cli/push.h"
#include "core/trace/message.h"

#define BUILD_BYTES 65 /* of 32 bytes, with a NUL */

/* Build IDs of the objects whose functions were counted. */
struct build {
	struct build *next;
	char id[BUILD_BYTES];
	char object[];
};

struct gt_intervals {
	struct gt_intervals_options options;
	struct gt_counted counted;
	char host[256];
	struct gt_push *push; /* NULL: no server */
	int fd;		      /* the output that is appended to; -1: none */
	bool own_fd;
	uint64_t start_ns, from_ns; /* since 1970 */
	uint64_t pushed_ns;	    /* end of the interval that is being sent */
	bool made;		    /* the server has the table */
	bool makes;		    /* the request that makes it is being sent */
	bool fails;		    /* the server refused the last request; reported */
	bool begun;		    /* the stream's head is written */
	struct build *builds;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool is_url(const char *output)
{
	return output != NULL && strstr(output, "://") != NULL;
}

static int open_push(struct gt_intervals *intervals, struct gt_message *message)
{
	const struct gt_counted_format *format = intervals->options.format;
	char path[512];

	if (format == NULL)
		return gt_fail(message, GT_EINVAL, "a server takes the formats of --to, no tables");
	/* Only the format's own text has a place for a host's name. */
	const char *mark = strstr(format->path, "%s");
	if (mark != NULL)
		snprintf(path, sizeof(path), "%.*s%s%s", (int)(mark - format->path), format->path,
			 intervals->host, mark + 2);
	else
		snprintf(path, sizeof(path), "%s", format->path);
	return gt_push_create(intervals->options.output, path, format->content_type,
			      &intervals->push, message);
}

int gt_intervals_create(const struct gt_intervals_options *options, struct gt_intervals **made,
			struct gt_message *message)
{
	struct gt_intervals *intervals = calloc(1, sizeof(*intervals));
	const char *output = options->output;
	int error = 0;

	*made = NULL;
	if (intervals == NULL)
		return gt_fail(message, GT_ENOMEM, "out of memory");
	intervals->options = *options;
	intervals->fd = options->fd;
	intervals->start_ns = intervals->from_ns = now_ns();
	gethostname(intervals->host, sizeof(intervals->host) - 1);
	if (is_url(output)) {
		error = open_push(intervals, message);
	} else if (output != NULL && strcmp(output, "-") == 0) {
		intervals->fd = STDOUT_FILENO;
	} else if (output != NULL && !(options->format != NULL && options->format->whole)) {
		intervals->fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		intervals->own_fd = intervals->fd >= 0;
		if (intervals->fd < 0) {
			gt_message_set(message, "cannot write '%s': %s", output, strerror(errno));
			error = GT_EIO;
		}
	}
	if (error == 0)
		*made = intervals;
	else
		gt_intervals_destroy(intervals);
	return error;
}

static const char *build_of(struct gt_intervals *intervals, const char *path)
{
	struct gt_object *object;
	struct build *one;
	const uint8_t *id;
	uint32_t bytes;

	for (one = intervals->builds; one != NULL; one = one->next)
		if (strcmp(one->object, path) == 0)
			return one->id;
	one = calloc(1, sizeof(*one) + strlen(path) + 1);
	if (one == NULL)
		return "";
	strcpy(one->object, path);
	one->next = intervals->builds;
	intervals->builds = one;
	if (gt_object_open(path, &object, NULL) != 0)
		return one->id;
	bytes = gt_object_build_id(object, &id);
	for (uint32_t i = 0; i < bytes && 2 * i + 2 < BUILD_BYTES; i++)
		snprintf(one->id + 2 * i, 3, "%02x", id[i]);
	gt_object_close(object);
	return one->id;
}

static int take(struct gt_intervals *intervals, const struct gt_profile_row *rows, uint32_t count)
{
	struct gt_counted_row *counted = calloc(count + 1u, sizeof(*counted));
	int error;

	if (counted == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		counted[i] = (struct gt_counted_row){
			.function = rows[i].named.name,
			.object = rows[i].named.object,
			.build = intervals->options.format != NULL
					 ? build_of(intervals, rows[i].named.object)
					 : "",
			.calls = rows[i].hits,
			.total_ns = rows[i].time_ns,
			.self_ns = rows[i].self_ns,
		};
	error = gt_counted_take(&intervals->counted, counted, count);
	free(counted);
	return error;
}

/* ---- tables ---- */

static int write_table(struct gt_intervals *intervals, uint64_t to_ns)
{
	const struct gt_counted *counted = &intervals->counted;
	struct gt_profile_row *rows = calloc(counted->count + 1u, sizeof(*rows));
	struct gt_profile_table table = intervals->options.table;
	char *text = NULL, clock[32] = "";
	size_t bytes = 0;
	uint32_t count = 0;
	FILE *memory = rows != NULL ? open_memstream(&text, &bytes) : NULL;
	time_t seconds = (time_t)(to_ns / 1000000000);
	struct tm local;
	int error;

	if (memory == NULL) {
		free(rows);
		return GT_ENOMEM;
	}
	for (uint32_t i = 0; i < counted->count; i++) {
		const struct gt_counted_row since = gt_counted_since(counted, i);

		if (since.calls == 0 && since.total_ns == 0)
			continue;
		rows[count].named.name = since.function;
		rows[count].named.object = since.object;
		rows[count].hits = since.calls;
		rows[count].time_ns = since.total_ns;
		rows[count++].self_ns = since.self_ns;
	}
	gt_profile_table_sort(rows, count);
	table.no_deviation = true;
	table.no_head = intervals->begun;
	table.from_ns = intervals->from_ns;
	table.to_ns = to_ns;
	if (!table.csv && localtime_r(&seconds, &local) != NULL)
		strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	if (!table.csv)
		fprintf(memory, "%s%s, the last %.1f s%s\n", intervals->begun ? "\n" : "", clock,
			(double)(to_ns - intervals->from_ns) / 1e9,
			count ? "" : ": no function that is counted was called");
	if (table.csv || count > 0)
		gt_profile_table_print(memory, &table, rows, count);
	fclose(memory);
	error = gt_look_write(intervals->fd, text, bytes);
	free(text);
	free(rows);
	return error == 1 ? GT_ENOENT : error;
}

/* ---- formats ---- */

static void about(const struct gt_intervals *intervals, struct gt_session *session, uint64_t to_ns,
		  struct gt_counted_about *about)
{
	struct gt_session_totals totals;

	gt_session_totals(session, &totals);
	*about = (struct gt_counted_about){
		.host = intervals->host,
		.program = intervals->options.program,
		.version = GRAFTRACE_VERSION,
		.pid = intervals->options.pid,
		.start_ns = intervals->start_ns,
		.from_ns = intervals->from_ns,
		.to_ns = to_ns,
		.lost = totals.lost[GRAFTRACE_LOST_PROFILE] + totals.lost[GRAFTRACE_LOST_DEPTH],
	};
}

static int write_whole(struct gt_intervals *intervals, const struct gt_out *out)
{
	struct gt_message message = { "" };
	struct gt_output output;
	int error = gt_output_open(&output, intervals->options.output, &message);

	if (error == 0 && gt_look_write(output.fd, out->buffer, out->used) < 0) {
		gt_message_set(&message, "cannot write '%s': %s", intervals->options.output,
			       strerror(errno));
		gt_output_abandon(&output);
		error = GT_EIO;
	} else if (error == 0) {
		error = gt_output_commit(&output, &message);
	}
	if (error != 0)
		gt_complain(intervals->options.command, "%s", message.text);
	return error;
}

static int write_stream(struct gt_intervals *intervals, const struct gt_out *out)
{
	int error = gt_look_write(intervals->fd, out->buffer, out->used);

	if (error == 1)
		return GT_ENOENT;
	if (error != 0)
		gt_complain(intervals->options.command, "cannot write: %s", strerror(errno));
	return error;
}

/* Handles the end of the request under way, if it has ended. Returns true if none is under way. */
static bool look_at_push(struct gt_intervals *intervals)
{
	struct gt_message message = { "" };

	switch (gt_push_state(intervals->push, &message)) {
	case GT_PUSH_UNDER_WAY:
		return false;
	case GT_PUSH_DONE:
		if (intervals->fails)
			gt_complain(intervals->options.command, "the server takes figures again");
		intervals->fails = false;
		if (!intervals->makes) {
			gt_counted_next(&intervals->counted);
			intervals->from_ns = intervals->pushed_ns;
		}
		intervals->made = true;
		break;
	case GT_PUSH_FAILED:
		if (!intervals->fails)
			gt_complain(intervals->options.command,
				    "%s; what was counted goes with the next interval's",
				    message.text);
		intervals->fails = true;
		break;
	case GT_PUSH_IDLE:
		break;
	}
	intervals->makes = false;
	return true;
}

/* Sends the figures if no request is under way. First comes the request that makes the table, if
 * the format needs one and the address names only the server. */
static int push(struct gt_intervals *intervals, const struct gt_out *out, uint64_t to_ns)
{
	const struct gt_counted_format *format = intervals->options.format;
	bool sent;

	intervals->makes = !intervals->made && format->create_table != NULL &&
			   gt_push_has_default_path(intervals->push);
	if (intervals->makes) {
		sent = gt_push_start(intervals->push, "POST", "/", format->create_table,
				     strlen(format->create_table));
	} else {
		intervals->pushed_ns = to_ns;
		sent = gt_push_start(intervals->push, format->whole ? "PUT" : "POST", NULL,
				     out->buffer, out->used);
	}
	return sent ? 0 : GT_ENOMEM;
}

/* Sends what is left, and waits for its end. */
static int push_last(struct gt_intervals *intervals, const struct gt_out *out, uint64_t to_ns)
{
	int error;

	do {
		error = push(intervals, out, to_ns);
		gt_push_wait(intervals->push);
		/* The table has been made: now send the rows. */
		bool again = intervals->makes;
		look_at_push(intervals);
		if (!again || intervals->fails)
			break;
	} while (error == 0);
	return error == 0 && intervals->fails ? GT_EIO : error;
}

static int deliver(struct gt_intervals *intervals, struct gt_session *session, uint64_t to_ns,
		   bool last)
{
	const struct gt_intervals_options *options = &intervals->options;
	struct gt_counted_about run;
	struct gt_out out;
	int error;

	about(intervals, session, to_ns, &run);
	if (gt_out_init_memory(&out) != 0)
		return GT_ENOMEM;
	options->format->put(&intervals->counted, &run, &out);
	if (out.error)
		error = GT_ENOMEM;
	else if (intervals->push != NULL)
		error = last ? push_last(intervals, &out, to_ns) : push(intervals, &out, to_ns);
	else if (options->format->whole && options->output != NULL &&
		 strcmp(options->output, "-") != 0)
		error = write_whole(intervals, &out);
	else
		error = write_stream(intervals, &out);
	gt_out_fini(&out);
	return error;
}

int gt_intervals_tick(struct gt_intervals *intervals, struct gt_session *session, bool last)
{
	struct gt_profile_row *rows;
	uint64_t to_ns = now_ns();
	uint32_t count;
	int error;

	if (intervals->push != NULL && last)
		gt_push_wait(intervals->push);
	/* With a slow server the interval gets longer. */
	if (intervals->push != NULL && !look_at_push(intervals))
		return 0;
	error = gt_session_profile(session, 0, false, &rows, &count);
	if (error == 0)
		error = take(intervals, rows, count);
	free(rows);
	if (error == 0)
		error = intervals->options.format != NULL ? deliver(intervals, session, to_ns, last)
							  : write_table(intervals, to_ns);
	if (error == GT_ENOMEM)
		gt_complain(intervals->options.command, "out of memory");
	if (error != 0 || intervals->push != NULL)
		return error;
	intervals->begun = true;
	intervals->from_ns = to_ns;
	gt_counted_next(&intervals->counted);
	return 0;
}

void gt_intervals_destroy(struct gt_intervals *intervals)
{
	if (intervals->push != NULL)
		gt_push_destroy(intervals->push);
	if (intervals->own_fd)
		close(intervals->fd);
	while (intervals->builds != NULL) {
		struct build *next = intervals->builds->next;

		free(intervals->builds);
		intervals->builds = next;
	}
	gt_counted_fini(&intervals->counted);
	free(intervals);
}
