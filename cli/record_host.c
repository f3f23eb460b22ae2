/* SPDX-License-Identifier: MIT */
/*
 * The host's kernel beside a drained one: two sources, one file, one thread. The drained kernel's blocks
 * and the pages of this one's follow each other as they come.
 */
#include "cli/record_host.h"

#include <stdio.h>
#include <stdlib.h>

#include "attach/process/clock.h"
#include "cli/command.h"
#include "cli/guest_clock.h"
#include "cli/record_kernel.h"
#include "linux/tracer.h"
#include "read/writer.h"

#define NAME	"record"
#define TAKE_NS 20000000ull

struct gt_record_host {
	const struct gt_record_options *options;
	struct gt_kernel_tracer *tracer;
	struct gt_file_writer *writer; /* NULL: not begun */
	struct gt_clock clock;	       /* of the drained kernel */
	struct gt_kernel_apart apart;
	uint64_t taken_ns; /* when pages were taken last */
	bool has_failed;
};

int gt_record_host_create(const struct gt_record_options *options, struct gt_record_host **out)
{
	struct gt_record_host *host;
	struct gt_kernel_tracer *tracer = NULL;

	*out = NULL;
	int code = options->kernel ? gt_record_kernel_create(options, &tracer) : 0;
	if (code != 0 || tracer == NULL)
		return code;
	host = calloc(1, sizeof(*host));
	if (host == NULL) {
		gt_record_kernel_end(&tracer, NULL);
		gt_complain(NAME, "no memory");
		return GT_EXIT_FAILED;
	}
	host->options = options;
	host->tracer = tracer;
	*out = host;
	return 0;
}

static bool fail(struct gt_record_host *host, const char *text)
{
	if (!host->has_failed)
		gt_complain(NAME, "%s", text);
	host->has_failed = true;
	return false;
}

static bool fail_writing(struct gt_record_host *host)
{
	return fail(host, gt_file_writer_error(host->writer));
}

static bool open_writer(struct gt_record_host *host, uint64_t bytes)
{
	struct gt_file_writer_options file = {
		.size = sizeof(file),
		.path = host->options->output,
		.compress = host->options->compress,
		.level = host->options->level,
		.clock = host->clock,
		.append_at = bytes,
		.append_number = 1,
	};
	struct gt_message message = { "" };

	return gt_file_writer_create(&file, &host->writer, &message) == 0 ||
	       fail(host, message.text);
}

bool gt_record_host_begin(struct gt_record_host *host, uint64_t bytes,
			  const struct graftrace_file_start *start, int connection,
			  const char *name)
{
	host->clock = (struct gt_clock){ start->clock.tsc_base, start->clock.ns_base,
					 start->clock.mult, start->clock.shift };
	if (host->clock.mult == 0 || host->clock.shift >= 64)
		return fail(host, "the kernel that is drained tells no clock");
	if (!open_writer(host, bytes))
		return false;
	if (!gt_guest_clock_measure(connection, name, &host->clock, host->tracer, &host->apart))
		return fail(host,
			    "the clock of the kernel that is drained cannot be compared with this "
			    "machine's: it does not answer what stats says");
	gt_kernel_tracer_set_apart(host->tracer, &host->apart, NULL);
	if (gt_record_kernel_start(host->tracer, host->writer) != 0)
		host->has_failed = true; /* it has said why */
	return !host->has_failed;
}

bool gt_record_host_put(struct gt_record_host *host, const struct graftrace_block *block,
			const void *payload)
{
	return gt_file_writer_block(host->writer, block, payload) == 0 || fail_writing(host);
}

void gt_record_host_take(struct gt_record_host *host)
{
	if (host == NULL || host->writer == NULL || host->has_failed)
		return;
	uint64_t now = gt_monotonic_ns();
	if (now - host->taken_ns < TAKE_NS)
		return;
	host->taken_ns = now;
	if (gt_kernel_tracer_take(host->tracer, host->writer) != 0)
		fail_writing(host);
}

bool gt_record_host_failed(const struct gt_record_host *host)
{
	return host != NULL && host->has_failed;
}

bool gt_record_host_finish(struct gt_record_host *host, int connection, const char *name)
{
	if (host->has_failed)
		return false;
	if (connection >= 0)
		gt_guest_clock_measure(connection, name, &host->clock, host->tracer, &host->apart);
	if (gt_kernel_tracer_set_apart(host->tracer, &host->apart, host->writer) != 0)
		return fail_writing(host);
	gt_record_kernel_end(&host->tracer, host->writer);
	return gt_file_writer_flush(host->writer) == 0 || fail_writing(host);
}

uint64_t gt_record_host_bytes(const struct gt_record_host *host)
{
	return gt_file_writer_bytes(host->writer);
}

void gt_record_host_destroy(struct gt_record_host *host)
{
	if (host == NULL)
		return;
	gt_record_kernel_end(&host->tracer, NULL);
	gt_file_writer_destroy(host->writer);
	free(host);
}
