/* SPDX-License-Identifier: MIT */
/*
 * What SQLite itself takes for rows as `graftrace export --to sqlite` has them: nothing but inserting.
 *
 *	sqlite_rows FILE CALLS
 *
 * One transaction, no journal, no index, no lock, 16 rows a statement. All columns are numbers that
 * grow with the rows, so that every row goes to the end of the table: a real recording, whose calls end
 * in another order than they begin, cannot be faster.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS	16
#define COLUMNS 13

static const char head[] =
	"PRAGMA page_size=16384; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
	"PRAGMA locking_mode=EXCLUSIVE;"
	"CREATE TABLE calls(id INTEGER PRIMARY KEY, a, b, c, d, e, f, g, h, i, j, k, l); BEGIN";

static int fail(sqlite3 *db)
{
	fprintf(stderr, "sqlite_rows: %s\n", sqlite3_errmsg(db));
	return 1;
}

int main(int argc, char **argv)
{
	static const char row[] = "(?,?,?,?,?,?,?,?,?,?,?,?,?),";
	char sql[64 + ROWS * sizeof(row)];
	sqlite3_stmt *insert;
	sqlite3 *db;
	long calls = argc == 3 ? atol(argv[2]) : 0;
	int used = snprintf(sql, sizeof(sql), "INSERT INTO calls VALUES");

	for (int i = 0; i < ROWS; i++)
		used += snprintf(sql + used, sizeof(sql) - (size_t)used, "%s", row);
	sql[used - 1] = '\0';
	if (calls == 0 ||
	    sqlite3_open_v2(argv[1], &db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			    NULL) != SQLITE_OK)
		return 2;
	if (sqlite3_exec(db, head, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, sql, -1, &insert, NULL) != SQLITE_OK)
		return fail(db);
	for (long id = 1; id <= calls; id += ROWS) {
		for (int i = 0; i < ROWS; i++)
			for (int column = 0; column < COLUMNS; column++)
				sqlite3_bind_int64(insert, 1 + i * COLUMNS + column,
						   column == 0 ? id + i : id * column >> column);
		if (sqlite3_step(insert) != SQLITE_DONE)
			return fail(db);
		sqlite3_reset(insert);
	}
	sqlite3_finalize(insert);
	if (sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return fail(db);
	return sqlite3_close(db) == SQLITE_OK ? 0 : 1;
}
