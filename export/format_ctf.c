/* SPDX-License-Identifier: MIT */
/*
 * Common Trace Format 1.8, as LTTng-UST's lttng-ust-cyg-profile-fast writes it, so that Trace
 * Compass' call stack view takes it: OUT/trace has the metadata and a stream for each lane,
 * OUT/functions.map the names of addresses in nm's style, for that view's symbol provider. Each entry
 * has its function's name besides (`name`), for readers that look nothing up.
 *
 * Events: lttng_ust_cyg_profile_fast:func_entry (addr), :func_exit, and graftrace:mark (text),
 * graftrace:call (of which no return is recorded), graftrace:flags before the exit of a call that
 * ended without a return. Records that were lost are the packet's events_discarded. Contexts:
 * _vpid, _vtid, _procname. The layout is CTF 1.8.3's (sections 5 to 7), the field names are those of
 * LTTng-UST 2.13.
 */
#define _GNU_SOURCE
#include "export/export.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/trace/message.h"
#include "export/spool.h"

enum { EVENT_ENTRY = 0, EVENT_EXIT = 1, EVENT_MARK = 2, EVENT_CALL = 3, EVENT_FLAGS = 4 };

static const char metadata[] =
	"/* CTF 1.8 */\n\n"
	"typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
	"typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
	"typealias integer { size = 32; align = 8; signed = true; } := int32_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; base = 16; } := address_t;\n\n"
	"trace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"%s\";\n\tbyte_order = le;\n"
	"\tpacket.header := struct {\n\t\tuint32_t magic;\n\t\tuint8_t uuid[16];\n"
	"\t\tuint32_t stream_id;\n\t\tuint64_t stream_instance_id;\n\t};\n};\n\n"
	"env {\n\thostname = \"%s\";\n\tdomain = \"ust\";\n\ttracer_name = \"lttng-ust\";\n"
	"\ttracer_major = 2;\n\ttracer_minor = 13;\n\tmade_by = \"%s\";\n\tcommand = "
	"\"%s\";\n};\n\n"
	"clock {\n\tname = \"monotonic\";\n\tuuid = \"%s\";\n\tdescription = \"Monotonic Clock\";\n"
	"\tfreq = 1000000000;\n\toffset = %" PRIu64 ";\n};\n\n"
	"typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } "
	":= clock_t;\n\n"
	"stream {\n\tid = 0;\n"
	"\tevent.header := struct {\n\t\tuint8_t id;\n\t\tclock_t timestamp;\n\t};\n"
	"\tpacket.context := struct {\n\t\tclock_t timestamp_begin;\n\t\tclock_t timestamp_end;\n"
	"\t\tuint64_t content_size;\n\t\tuint64_t packet_size;\n\t\tuint64_t packet_seq_num;\n"
	"\t\tuint64_t events_discarded;\n\t\tuint32_t cpu_id;\n\t};\n"
	"\tevent.context := struct {\n\t\tint32_t _vpid;\n\t\tint32_t _vtid;\n"
	"\t\tinteger { size = 8; align = 8; signed = false; encoding = UTF8; } "
	"_procname[17];\n\t};\n"
	"};\n\n"
	"event {\n\tname = \"lttng_ust_cyg_profile_fast:func_entry\";\n\tid = 0;\n\tstream_id = "
	"0;\n"
	"\tloglevel = 12;\n\tfields := struct {\n\t\taddress_t _addr;\n\t\tstring "
	"_name;\n\t};\n};\n\n"
	"event {\n\tname = \"lttng_ust_cyg_profile_fast:func_exit\";\n\tid = 1;\n\tstream_id = 0;\n"
	"\tloglevel = 12;\n\tfields := struct {\n\t};\n};\n\n"
	"event {\n\tname = \"graftrace:mark\";\n\tid = 2;\n\tstream_id = 0;\n"
	"\tfields := struct {\n\t\tstring _text;\n\t};\n};\n\n"
	"event {\n\tname = \"graftrace:call\";\n\tid = 3;\n\tstream_id = 0;\n"
	"\tfields := struct {\n\t\taddress_t _addr;\n\t\tstring _name;\n\t};\n};\n\n"
	"event {\n\tname = \"graftrace:flags\";\n\tid = 4;\n\tstream_id = 0;\n"
	"\tfields := struct {\n\t\tstring _end;\n\t};\n};\n";

struct packet_start {
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t stream_id;
	uint64_t stream_instance_id;
	uint64_t timestamp_begin, timestamp_end;
	uint64_t content_size, packet_size; /* bits */
	uint64_t packet_seq_num;
	uint64_t events_discarded;
	uint32_t cpu_id;
} __attribute__((packed));

struct event_start {
	uint8_t id;
	uint64_t timestamp;
	int32_t vpid, vtid;
	char procname[17];
} __attribute__((packed));

struct stream {
	uint64_t first, last, bytes, lost;
	bool any;
};

struct ctf {
	struct gt_spool spool;
	struct stream *streams; /* by lane */
	uint32_t room;
	uint8_t uuid[16];
	int trace; /* OUT/trace */
};

static void make_uuid(const struct gt_export *export, uint8_t uuid[16])
{
	uint64_t state = export->about.realtime_ns ^ export->about.start;

	for (unsigned i = 0; i < 16; i++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		uuid[i] = (uint8_t)(state >> 56);
	}
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40); /* RFC 4122: version 4 */
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

static int fail(struct gt_export *export, const char *name, int error)
{
	return gt_fail(export->message, GT_EIO, "%s: %s", name, strerror(error));
}

static int begin(struct gt_export *export)
{
	struct ctf *state = export->state;

	gt_spool_init(&state->spool);
	make_uuid(export, state->uuid);
	state->trace = -1;
	/* It is there when the export begins anew. */
	if (mkdirat(export->fd, "trace", 0777) != 0 && errno != EEXIST)
		return fail(export, "trace", errno);
	state->trace = openat(export->fd, "trace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return state->trace >= 0 ? 0 : fail(export, "trace", errno);
}

static int lane(struct gt_export *export, struct gt_lane *lane)
{
	struct ctf *state = export->state;

	if (lane->number >= state->room) {
		uint32_t room = (lane->number + 1) * 2;
		struct stream *grown = realloc(state->streams, room * sizeof(*grown));

		if (grown == NULL)
			return GT_ENOMEM;
		memset(grown + state->room, 0, (room - state->room) * sizeof(*grown));
		state->streams = grown;
		state->room = room;
	}
	return 0;
}

static int event(struct gt_export *export, struct gt_lane *lane, uint8_t id, uint64_t ticks,
		 const void *fields, size_t bytes)
{
	struct ctf *state = export->state;
	struct stream *stream = &state->streams[lane->number];
	uint64_t ns = gt_export_ns(export, ticks);
	struct event_start start = { .id = id,
				     .vpid = (int32_t)lane->pid,
				     .vtid = (int32_t)lane->tid };
	int error;

	/* Marks have their own clocks, which can be earlier than the last event's. */
	if (stream->any && ns < stream->last)
		ns = stream->last;
	if (!stream->any)
		stream->first = ns;
	stream->any = true;
	stream->last = ns;
	stream->bytes += sizeof(start) + bytes;
	start.timestamp = ns;
	memcpy(start.procname, lane->name, sizeof(lane->name));
	error = gt_spool_add(&state->spool, lane->number, &start, sizeof(start));
	if (error == 0 && bytes > 0)
		error = gt_spool_add(&state->spool, lane->number, fields, bytes);
	return error == GT_EIO ? fail(export, "a temporary file", state->spool.error) : error;
}

/* A function without an address gets one that no code can have. */
static uint64_t address_of(const struct gt_function *function, uint32_t number)
{
	return function->address ? function->address : UINT64_C(0xfffe000000000000) + number;
}

static int function_event(struct gt_export *export, struct gt_lane *lane, uint8_t id,
			  uint64_t ticks, uint32_t number)
{
	struct gt_function function;
	char text[24], fields[8 + 512];
	const char *name = gt_export_name(export, number, text, &function);
	uint64_t address = address_of(&function, number);
	size_t length = strnlen(name, sizeof(fields) - 9);

	memcpy(fields, &address, 8);
	memcpy(fields + 8, name, length);
	fields[8 + length] = '\0';
	export->function_seen[number <= export->function_end ? number : 0] = 1;
	return event(export, lane, id, ticks, fields, 8 + length + 1);
}

static int enter(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call)
{
	return function_event(export, lane, EVENT_ENTRY, call->start, call->function);
}

static int leave(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call,
		 uint64_t end)
{
	const char *how = call->flags & GT_STACK_OPEN	     ? "open"
			  : call->flags & GT_STACK_NO_RETURN ? "unwound"
							     : NULL;
	int error = how != NULL ? event(export, lane, EVENT_FLAGS, end, how, strlen(how) + 1) : 0;

	return error == 0 ? event(export, lane, EVENT_EXIT, end, NULL, 0) : error;
}

static int moment(struct gt_export *export, struct gt_lane *lane, const struct gt_moment *moment)
{
	struct ctf *state = export->state;
	char text[1024];
	size_t length;

	switch (moment->kind) {
	case GT_MOMENT_CALL:
		return function_event(export, lane, EVENT_CALL, moment->clock, moment->function);
	case GT_MOMENT_MARK:
		length = moment->text_bytes < sizeof(text) - 1 ? moment->text_bytes
							       : sizeof(text) - 1;
		memcpy(text, moment->text, length);
		text[length] = '\0';
		return event(export, lane, EVENT_MARK, moment->clock, text, strlen(text) + 1);
	default:
		state->streams[lane->number].lost += moment->value ? moment->value : 1;
		return 0;
	}
}

/* Opens a new file for `out` in the folder. */
static int open_file(struct gt_export *export, struct gt_out *out, int folder, const char *name)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return fail(export, name, errno);
	if (gt_out_init(out, fd) != 0) {
		close(fd);
		return GT_ENOMEM;
	}
	return 0;
}

static int close_file(struct gt_export *export, struct gt_out *out, const char *name)
{
	int error = gt_out_flush(out), problem = out->error;

	gt_out_fini(out);
	if (close(out->fd) != 0 && problem == 0)
		problem = errno;
	return error == 0 && problem == 0 ? 0 : fail(export, name, problem);
}

static int write_stream(struct gt_export *export, uint32_t number)
{
	struct ctf *state = export->state;
	const struct stream *stream = &state->streams[number];
	struct packet_start start = {
		.magic = 0xc1fc1fc1,
		.stream_instance_id = number,
		.timestamp_begin = stream->first,
		.timestamp_end = stream->last,
		.content_size = (sizeof(start) + stream->bytes) * 8,
		.packet_size = (sizeof(start) + stream->bytes) * 8,
		.events_discarded = stream->lost,
	};
	struct gt_out out;
	char name[32];
	int error, closed;

	memcpy(start.uuid, state->uuid, 16);
	snprintf(name, sizeof(name), "stream_%" PRIu32, number);
	error = open_file(export, &out, state->trace, name);
	if (error != 0)
		return error;
	gt_out_bytes(&out, &start, sizeof(start));
	error = gt_spool_copy(&state->spool, number, &out);
	closed = close_file(export, &out, name);
	if (error == GT_EIO && closed == 0)
		return fail(export, "a temporary file", state->spool.error);
	return error == 0 || error == GT_EIO ? closed : error;
}

/* Escapes a string of CTF's metadata; writes no quotes. */
static void quote(char *to, size_t bytes, const char *text)
{
	size_t used = 0;

	for (; *text && used + 3 < bytes; text++) {
		if (*text == '"' || *text == '\\')
			to[used++] = '\\';
		to[used++] = (unsigned char)*text < ' ' ? ' ' : *text;
	}
	to[used] = '\0';
}

static int write_metadata(struct gt_export *export)
{
	struct ctf *state = export->state;
	const uint8_t *u = state->uuid;
	char uuid[40], host[128], made_by[64], command[1024];
	struct gt_out out;
	int error = open_file(export, &out, state->trace, "metadata");

	if (error != 0)
		return error;
	snprintf(uuid, sizeof(uuid),
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
		 u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
		 u[15]);
	quote(host, sizeof(host), export->about.host);
	quote(made_by, sizeof(made_by), export->about.made_by);
	quote(command, sizeof(command), export->about.command_line);
	gt_out_printf(&out, metadata, uuid, host, made_by, command, uuid,
		      export->about.realtime_ns);
	return close_file(export, &out, "metadata");
}

static int write_map(struct gt_export *export)
{
	struct gt_out out;
	int error = open_file(export, &out, export->fd, "functions.map");

	for (uint32_t i = 1; error == 0 && i <= export->function_end; i++) {
		struct gt_function function;
		char number[24];

		if (!export->function_seen[i])
			continue;
		gt_export_name(export, i, number, &function);
		gt_out_printf(&out, "%016" PRIx64 " T ", address_of(&function, i));
		gt_out_text(&out, function.name);
		gt_out_char(&out, '\n');
	}
	return error == 0 ? close_file(export, &out, "functions.map") : error;
}

static int end(struct gt_export *export, const struct gt_stack_report *report)
{
	struct ctf *state = export->state;
	int error = write_metadata(export);

	(void)report;
	for (uint32_t i = 0; error == 0 && i < state->room; i++)
		if (state->streams[i].any)
			error = write_stream(export, i);
	return error == 0 ? write_map(export) : error;
}

static void fini(struct gt_export *export)
{
	struct ctf *state = export->state;

	gt_spool_fini(&state->spool);
	free(state->streams);
	if (state->trace >= 0)
		close(state->trace);
}

const struct gt_export_format gt_format_ctf = {
	.name = "ctf",
	.help = "a folder with a CTF 1.8 trace: Trace Compass, babeltrace2",
	.file = "ctf",
	.is_directory = true,
	.writes_at_end = true,
	.state_bytes = sizeof(struct ctf),
	.begin = begin,
	.lane = lane,
	.enter = enter,
	.leave = leave,
	.moment = moment,
	.end = end,
	.fini = fini,
};
