/* SPDX-License-Identifier: MIT */
/*
 * An SQLite database: tables `calls`, `functions` and `threads`, `events` and `event_fields`, and `run` with facts
 * about the recording. SQLite writes it in one transaction without a journal: the file is moved to its place
 * only when it is complete. A statement inserts ROWS calls: starting and ending a statement costs as much as
 * a call.
 */
#define _GNU_SOURCE
#include "export/columns.h"
#include "export/format_events.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/message.h"

static const char schema[] =
	"PRAGMA page_size=16384; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA "
	"locking_mode=EXCLUSIVE;"
	"CREATE TABLE run(name TEXT PRIMARY KEY, value);"
	"CREATE TABLE functions(id INTEGER PRIMARY KEY, name TEXT NOT NULL, object TEXT NOT NULL,"
	" address INTEGER NOT NULL, size INTEGER NOT NULL);"
	"CREATE TABLE threads(id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, tid INTEGER NOT NULL,"
	" stack INTEGER NOT NULL, name TEXT NOT NULL);"
	"CREATE TABLE calls(id INTEGER PRIMARY KEY, parent INTEGER, thread INTEGER NOT NULL"
	" REFERENCES threads, function INTEGER NOT NULL REFERENCES functions, depth INTEGER NOT "
	"NULL,"
	" cpu INTEGER, start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL,"
	" self_ns INTEGER NOT NULL, on_cpu_ns INTEGER, end TEXT NOT NULL, arguments TEXT, result "
	"TEXT);"
	/* A field's value has its own type: INTEGER, REAL, TEXT, NULL where it could not be read. */
	"CREATE TABLE events(id INTEGER PRIMARY KEY, call INTEGER, thread INTEGER NOT NULL"
	" REFERENCES threads, cpu INTEGER, time_ns INTEGER NOT NULL, system TEXT NOT NULL, event "
	"TEXT"
	" NOT NULL);"
	"CREATE TABLE event_fields(event_id INTEGER NOT NULL REFERENCES events, field TEXT NOT "
	"NULL,"
	" value);"
	/* All columns of a call, as in csv and clickhouse. */
	"CREATE VIEW graftrace_calls AS SELECT c.start_ns, c.depth, c.id, c.parent, c.cpu, t.pid, "
	"t.tid,"
	" t.name AS thread, f.name AS function, f.object, c.duration_ns, c.self_ns, c.on_cpu_ns, "
	"c.end,"
	" c.arguments, c.result"
	" FROM calls c JOIN threads t ON t.id = c.thread JOIN functions f ON f.id = c.function;"
	"BEGIN";

#define ROWS	16u
#define COLUMNS 13u

/* A call that waits for its statement. UNKNOWN: NULL in the table. */
struct row {
	int64_t numbers[COLUMNS - 3]; /* in the columns' order */
	const char *end;
	char *arguments, *result; /* NULL: not recorded */
};
#define UNKNOWN INT64_MIN

struct database {
	sqlite3 *db;
	sqlite3_stmt *calls; /* inserts ROWS calls */
	sqlite3_stmt *function, *thread, *event, *field;
	sqlite3_int64 events;
	struct row rows[ROWS];
	unsigned row_count;
	bool off_cpu;
};

/* Fails with SQLite's message. */
static int fail(struct gt_export *export)
{
	struct database *state = export->state;

	return gt_fail(export->message, GT_EIO, "%s",
		       state->db != NULL ? sqlite3_errmsg(state->db) : "SQLite: out of memory");
}

static int prepare(struct gt_export *export, const char *sql, sqlite3_stmt **statement)
{
	struct database *state = export->state;

	return sqlite3_prepare_v2(state->db, sql, -1, statement, NULL) == SQLITE_OK ? 0
										    : fail(export);
}

static int step(struct gt_export *export, sqlite3_stmt *statement)
{
	int result = sqlite3_step(statement);

	sqlite3_reset(statement);
	return result == SQLITE_DONE ? 0 : fail(export);
}

static void bind_text(sqlite3_stmt *statement, int column, const char *text)
{
	sqlite3_bind_text(statement, column, text, -1, SQLITE_TRANSIENT);
}

/* NULL: they were not recorded. */
static void bind_values(sqlite3_stmt *statement, int column, const char *text)
{
	if (text != NULL)
		bind_text(statement, column, text);
	else
		sqlite3_bind_null(statement, column);
}

static int note(struct gt_export *export, const char *name, const char *text, uint64_t number)
{
	sqlite3_stmt *statement;
	int error = prepare(export, "INSERT INTO run VALUES(?, ?)", &statement);

	if (error != 0)
		return error;
	bind_text(statement, 1, name);
	if (text != NULL)
		bind_text(statement, 2, text);
	else
		sqlite3_bind_int64(statement, 2, (sqlite3_int64)number);
	error = step(export, statement);
	sqlite3_finalize(statement);
	return error;
}

/* Makes the statement that inserts so many calls. */
static int prepare_calls(struct gt_export *export, unsigned rows, sqlite3_stmt **statement)
{
	static const char row[] = "(?,?,?,?,?,?,?,?,?,?,?,?,?),";
	char sql[64 + ROWS * sizeof(row)];
	size_t used = (size_t)snprintf(sql, sizeof(sql), "INSERT INTO calls VALUES");

	for (unsigned i = 0; i < rows; i++)
		used += (size_t)snprintf(sql + used, sizeof(sql) - used, "%s", row);
	sql[used - 1] = '\0'; /* the last comma */
	return prepare(export, sql, statement);
}

static int begin(struct gt_export *export)
{
	struct database *state = export->state;
	char path[40];
	int error;

	state->off_cpu = gt_target_has_off_cpu(export->target);
	/* The descriptor's name: SQLite follows the link to the file. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", export->fd);
	if (sqlite3_open_v2(path, &state->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
		    SQLITE_OK ||
	    sqlite3_exec(state->db, schema, NULL, NULL, NULL) != SQLITE_OK)
		return fail(export);
	error = prepare_calls(export, ROWS, &state->calls);
	if (error == 0)
		error = prepare(export, "INSERT INTO functions VALUES(?,?,?,?,?)",
				&state->function);
	if (error == 0)
		error = prepare(export, "INSERT OR REPLACE INTO threads VALUES(?,?,?,?,?)",
				&state->thread);
	if (error == 0)
		error = prepare(export, "INSERT INTO events VALUES(?,?,?,?,?,?,?)", &state->event);
	if (error == 0)
		error = prepare(export, "INSERT INTO event_fields VALUES(?,?,?)", &state->field);
	if (error == 0)
		error = note(export, "command", export->about.command_line, 0);
	if (error == 0)
		error = note(export, "host", export->about.host, 0);
	if (error == 0)
		error = note(export, "made_by", export->about.made_by, 0);
	if (error == 0)
		error = note(export, "started_ns", NULL, export->about.realtime_ns);
	return error;
}

static int lane(struct gt_export *export, struct gt_lane *lane)
{
	struct database *state = export->state;
	char name[GT_LANE_NAME_BYTES];

	gt_lane_name(lane, name);
	sqlite3_bind_int64(state->thread, 1, lane->number);
	sqlite3_bind_int64(state->thread, 2, lane->pid);
	sqlite3_bind_int64(state->thread, 3, lane->tid);
	sqlite3_bind_int64(state->thread, 4, lane->stack);
	bind_text(state->thread, 5, name);
	return step(export, state->thread);
}

static int add_function(struct gt_export *export, uint32_t number)
{
	struct database *state = export->state;
	struct gt_function function;
	char text[24];

	if (number > export->function_end || export->function_seen[number])
		return 0;
	export->function_seen[number] = 1;
	gt_export_name(export, number, text, &function);
	sqlite3_bind_int64(state->function, 1, number);
	bind_text(state->function, 2, function.name);
	bind_text(state->function, 3, function.object);
	sqlite3_bind_int64(state->function, 4, (sqlite3_int64)function.address);
	sqlite3_bind_int64(state->function, 5, function.size);
	return step(export, state->function);
}

static void bind_row(sqlite3_stmt *statement, int column, struct row *row)
{
	for (unsigned i = 0; i < COLUMNS - 3; i++, column++) {
		if (row->numbers[i] == UNKNOWN)
			sqlite3_bind_null(statement, column);
		else
			sqlite3_bind_int64(statement, column, row->numbers[i]);
	}
	sqlite3_bind_text(statement, column++, row->end, -1, SQLITE_STATIC);
	bind_values(statement, column++, row->arguments);
	bind_values(statement, column, row->result);
	free(row->arguments);
	free(row->result);
	row->arguments = row->result = NULL;
}

/* Inserts the calls that wait: as many as the statement takes. */
static int insert_rows(struct gt_export *export, sqlite3_stmt *statement)
{
	struct database *state = export->state;

	for (unsigned i = 0; i < state->row_count; i++)
		bind_row(statement, (int)(1 + i * COLUMNS), &state->rows[i]);
	state->row_count = 0;
	return step(export, statement);
}

/* Inserts the last calls, fewer than ROWS. */
static int insert_rest(struct gt_export *export)
{
	struct database *state = export->state;
	sqlite3_stmt *statement;
	int error;

	if (state->row_count == 0)
		return 0;
	error = prepare_calls(export, state->row_count, &statement);
	if (error == 0)
		error = insert_rows(export, statement);
	sqlite3_finalize(statement);
	return error;
}

/* Copies a text that ends with the call; *copy NULL: it has none. */
static int keep(const char *text, char **copy)
{
	*copy = text != NULL ? strdup(text) : NULL;
	return text != NULL && *copy == NULL ? GT_ENOMEM : 0;
}

static int64_t on_cpu_ns(const struct gt_export *export, const struct gt_lane *lane,
			 const struct gt_stack_call *call, uint64_t end)
{
	const struct database *state = export->state;
	uint64_t took = end - call->start, off;

	if (!state->off_cpu)
		return UNKNOWN;
	off = gt_target_off_cpu(export->target, lane->tid, call->start, end);
	return (int64_t)gt_export_duration_ns(export, off < took ? took - off : 0);
}

static int leave(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call,
		 uint64_t end)
{
	struct database *state = export->state;
	struct row *row = &state->rows[state->row_count];
	int error = add_function(export, call->function);

	*row = (struct row){
		.numbers = {
			(int64_t)call->id,
			lane->open > 0 ? (int64_t)lane->calls[lane->open - 1].id : UNKNOWN,
			lane->number,
			call->function,
			lane->open,
			call->cpu != UINT32_MAX ? call->cpu : UNKNOWN,
			(int64_t)gt_export_ns(export, call->start),
			(int64_t)gt_export_duration_ns(export, end - call->start),
			(int64_t)gt_export_duration_ns(export, gt_export_self(call, end)),
			on_cpu_ns(export, lane, call, end),
		},
		.end = call->flags & GT_STACK_OPEN	  ? "open"
		       : call->flags & GT_STACK_NO_RETURN ? "unwound"
							  : "return",
	};
	if (error == 0)
		error = keep(call->arguments, &row->arguments);
	if (error == 0)
		error = keep(call->result, &row->result);
	if (error != 0) {
		free(row->arguments);
		return error;
	}
	state->row_count++;
	return state->row_count == ROWS ? insert_rows(export, state->calls) : 0;
}

static int add_field(struct gt_export *export, const struct gt_event_cell *cell)
{
	struct database *state = export->state;

	sqlite3_bind_int64(state->field, 1, state->events);
	bind_text(state->field, 2, cell->name);
	if (cell->kind == GT_CELL_NUMBER)
		sqlite3_bind_int64(state->field, 3, (sqlite3_int64)cell->number);
	else if (cell->kind == GT_CELL_FRACTION)
		sqlite3_bind_double(state->field, 3, cell->fraction);
	else
		bind_values(state->field, 3, cell->kind == GT_CELL_TEXT ? cell->text : NULL);
	return step(export, state->field);
}

static int moment(struct gt_export *export, struct gt_lane *lane, const struct gt_moment *moment)
{
	struct database *state = export->state;
	const struct gt_stack_call *call = gt_event_call(lane);
	sqlite3_stmt *row = state->event;
	struct gt_event_cell cell;
	uint32_t at = 0;
	int error;

	if (moment->kind != GT_MOMENT_MARK)
		return 0;
	sqlite3_bind_int64(row, 1, ++state->events);
	if (call != NULL)
		sqlite3_bind_int64(row, 2, (sqlite3_int64)call->id);
	else
		sqlite3_bind_null(row, 2);
	sqlite3_bind_int64(row, 3, lane->number);
	if (moment->cpu != UINT32_MAX)
		sqlite3_bind_int64(row, 4, moment->cpu);
	else
		sqlite3_bind_null(row, 4);
	sqlite3_bind_int64(row, 5, (sqlite3_int64)gt_export_ns(export, moment->clock));
	bind_text(row, 6, gt_event_system(moment));
	bind_text(row, 7, gt_event_name(moment));
	error = step(export, row);
	while (error == 0 && gt_event_fields_next(moment, &at, &cell))
		error = add_field(export, &cell);
	return error;
}

static int end(struct gt_export *export, const struct gt_stack_report *report)
{
	struct database *state = export->state;
	int error = insert_rest(export);

	if (error == 0)
		error = note(export, "records_lost", NULL, report->lost);
	if (error != 0)
		return error;
	return sqlite3_exec(state->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(export);
}

static void fini(struct gt_export *export)
{
	struct database *state = export->state;

	for (unsigned i = 0; i < state->row_count; i++) {
		free(state->rows[i].arguments);
		free(state->rows[i].result);
	}
	sqlite3_finalize(state->calls);
	sqlite3_finalize(state->function);
	sqlite3_finalize(state->thread);
	sqlite3_finalize(state->event);
	sqlite3_finalize(state->field);
	sqlite3_close(state->db);
}

const struct gt_export_format gt_format_sqlite = {
	.name = "sqlite",
	.help = "an SQLite database with calls, functions, threads and events",
	.file = "trace.sqlite",
	.needs_file = true,
	.state_bytes = sizeof(struct database),
	.begin = begin,
	.lane = lane,
	.leave = leave,
	.moment = moment,
	.end = end,
	.fini = fini,
};
