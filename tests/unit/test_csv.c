/* SPDX-License-Identifier: MIT */
/*
 * The CSV of calls, written and read back: numbers, quoting, columns in any order, bad rows.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "export/csv.h"
#include "read/csv.h"

struct rows {
	char text[8192];
	size_t used;
	uint64_t count;
	int result;
};

static int take(void *user, const struct gt_csv_row *row)
{
	struct rows *rows = user;

	rows->count++;
	if (rows->used < sizeof rows->text - 500)
		rows->used += (size_t)snprintf(
			rows->text + rows->used, sizeof rows->text - rows->used,
			"<%.*s> %lld %lld %lld\n", (int)row->function_len, row->function,
			(long long)row->tid, (long long)row->latency_ns, (long long)row->self_ns);
	return rows->result;
}

static int read_text(const char *text, size_t len, struct rows *rows, struct gt_csv_report *report,
		     struct gt_message *message)
{
	FILE *file = tmpfile();
	int result;

	assert_int_equal(fwrite(text, 1, len, file), len);
	rewind(file);
	memset(rows, 0, sizeof *rows);
	message->text[0] = '\0';
	result = gt_csv_read(fileno(file), take, rows, report, message);
	fclose(file);
	return result;
}

static struct gt_csv_report expect(const char *text, const char *wanted)
{
	struct gt_csv_report report;
	struct gt_message message;
	struct rows rows;

	assert_int_equal(read_text(text, strlen(text), &rows, &report, &message), GT_OK);
	assert_string_equal(rows.text, wanted);
	assert_int_equal(report.rows, rows.count);
	assert_int_equal(report.bytes, strlen(text));
	return report;
}

#define HEADER "function,tid,latency_us,latency_us_self\n"

static void what_is_written_is_read_back(void **state)
{
	static const char *const names[] = { "main", "a,b", "say \"hi\"", "two\nlines", "\r", "x" };
	struct gt_csv_writer writer;
	struct gt_message message = { "" };
	struct gt_csv_report report;
	struct rows rows = { .count = 0 };
	FILE *file = tmpfile();

	(void)state;
	assert_int_equal(gt_csv_writer_init(&writer, fileno(file)), GT_OK);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(gt_csv_write_call(&writer, names[i], strlen(names[i]),
						   (int64_t)i - 2, 1000 * i + 7, i),
				 GT_OK);
	assert_int_equal(gt_csv_writer_flush(&writer, &message), GT_OK);
	gt_csv_writer_fini(&writer);
	rewind(file);
	assert_int_equal(gt_csv_read(fileno(file), take, &rows, &report, &message), GT_OK);
	assert_string_equal(rows.text, "<main> -2 7 0\n<a,b> -1 1007 1\n<say \"hi\"> 0 2007 2\n"
				       "<two\nlines> 1 3007 3\n<\r> 2 4007 4\n<x> 3 5007 5\n");
	assert_int_equal(report.lines, 8);
	fclose(file);
}

static void numbers_are_written_exactly(void **state)
{
	static const char wanted[] = HEADER "f,0,0.000,0.000\n"
					    "f,9223372036854775807,0.009,0.099\n"
					    "f,-9223372036854775808,18446744073709551.615,0.999\n"
					    "f,100,1.000,99.100\n"
					    "f,7,1000.001,123456.789\n";
	struct gt_csv_writer writer;
	struct gt_message message;
	char text[512] = "";
	FILE *file = tmpfile();

	(void)state;
	gt_csv_writer_init(&writer, fileno(file));
	gt_csv_write_call(&writer, "f", 1, 0, 0, 0);
	gt_csv_write_call(&writer, "f", 1, INT64_MAX, 9, 99);
	gt_csv_write_call(&writer, "f", 1, INT64_MIN, UINT64_MAX, 999);
	gt_csv_write_call(&writer, "f", 1, 100, 1000, 99100);
	gt_csv_write_call(&writer, "f", 1, 7, 1000001, 123456789);
	assert_int_equal(gt_csv_writer_flush(&writer, &message), GT_OK);
	gt_csv_writer_fini(&writer);
	assert_int_equal(pread(fileno(file), text, sizeof text - 1, 0), sizeof wanted - 1);
	assert_string_equal(text, wanted);
	fclose(file);
}

static void names_of_any_length_are_written_whole(void **state)
{
	static const size_t lengths[] = { 262144 - 80, 262144 - 79, 262144, 262145, 700000 };
	struct gt_message message;

	(void)state;
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		for (int quote = 0; quote < 2; quote++) {
			char *name = malloc(lengths[i]);
			FILE *file = tmpfile();
			struct gt_csv_writer writer;
			struct gt_csv_report report;
			struct rows rows = { .count = 0 };

			memset(name, 'n', lengths[i]);
			name[lengths[i] / 2] = quote ? '"' : 'n';
			gt_csv_writer_init(&writer, fileno(file));
			for (int n = 0; n < 3; n++)
				assert_int_equal(
					gt_csv_write_call(&writer, name, lengths[i], 1, 2, 3),
					GT_OK);
			assert_int_equal(gt_csv_writer_flush(&writer, &message), GT_OK);
			assert_int_equal(writer.bytes,
					 strlen(HEADER) + 3 * (lengths[i] + (quote ? 3 : 0) + 15));
			gt_csv_writer_fini(&writer);
			rewind(file);
			rows.used = sizeof rows.text;
			assert_int_equal(gt_csv_read(fileno(file), take, &rows, &report, &message),
					 GT_OK);
			assert_int_equal(rows.count, 3);
			fclose(file);
			free(name);
		}
	}
}

static void a_full_disk_is_reported(void **state)
{
	struct gt_csv_writer writer;
	struct gt_message message;
	FILE *full = fopen("/dev/full", "w");
	int result = GT_OK;

	(void)state;
	gt_csv_writer_init(&writer, fileno(full));
	for (int i = 0; i < 100000 && result == GT_OK; i++)
		result = gt_csv_write_call(&writer, "function", 8, 1, 2, 3);
	assert_int_equal(result, GT_EIO);
	assert_int_equal(gt_csv_writer_flush(&writer, &message), GT_EIO);
	assert_non_null(strstr(message.text, "No space left"));
	gt_csv_writer_fini(&writer);
	fclose(full);
}

static void columns_are_found_by_name(void **state)
{
	(void)state;
	expect("\xef\xbb\xbf,latency_us_self, tid ,\"function\",latency_us\r\n"
	       "0,1.5,7,f,2.5\r\n"
	       "1,-0.5,7.0,g,1e-3\r\n",
	       "<f> 7 2500 1500\n<g> 7 1 -500\n");
	expect(HEADER "f,1,2,3", "<f> 1 2000 3000\n");
	expect(HEADER "\n\r\nf,1,2,3\n\n", "<f> 1 2000 3000\n");
	expect(HEADER "\"a\"\"b\"\"\",1,\"2\",3\n", "<a\"b\"> 1 2000 3000\n");
	expect(HEADER "f,1,2,3,further,columns\n", "<f> 1 2000 3000\n");
}

static void a_first_line_without_the_columns_is_refused(void **state)
{
	static const char *const texts[] = {
		"",	     "\n",	     "function,tid,latency_us\n",
		"f,1,2,3\n", "\"unending\n", "function;tid;latency_us;latency_us_self\n",
		"\"a\"b,c\n"
	};
	struct gt_csv_report report;
	struct gt_message message;
	struct rows rows;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		assert_int_equal(read_text(texts[i], strlen(texts[i]), &rows, &report, &message),
				 GT_EFORMAT);
		assert_true(message.text[0] != '\0');
		assert_int_equal(rows.count, 0);
	}
	read_text("function,tid,latency_us\n", 24, &rows, &report, &message);
	assert_non_null(strstr(message.text, "'latency_us_self'"));
}

static void bad_rows_are_counted_and_named_and_cost_no_other(void **state)
{
	struct gt_csv_report report = expect(HEADER "f,1,2,3\n"
						    "f,x,2,3\n"
						    "f,1,,3\n"
						    "f,1,2,nan\n"
						    ",1,2,3\n"
						    "f,1\n"
						    "\"f\"g,1,2,3\n"
						    "f,1,2e99,3\n"
						    "\"no end,1,2,3\n"
						    "g,1,2,3\n",
					     "<f> 1 2000 3000\n<g> 1 2000 3000\n");

	(void)state;
	assert_int_equal(report.bad.count, 8);
	assert_int_equal(report.bad.kept[0].line, 3);
	assert_int_equal(report.bad.kept[0].offset, strlen(HEADER) + 8);
	assert_string_equal(report.bad.kept[0].text, "f,x,2,3");
	assert_string_equal(report.bad.kept[0].why, "the tid is no number");
	assert_int_equal(report.bad.kept[4].line, 7);
}

static void numbers_of_pandas_and_people_are_read(void **state)
{
	static const struct {
		const char *text;
		int result;
		int64_t ns;
	} cases[] = {
		{ "0", GT_OK, 0 },
		{ "1", GT_OK, 1000 },
		{ "0.071", GT_OK, 71 },
		{ "0.07100000000000001", GT_OK, 71 },
		{ "12.5", GT_OK, 12500 },
		{ "12.", GT_OK, 12000 },
		{ ".5", GT_OK, 500 },
		{ "-0.5", GT_OK, -500 },
		{ "+3", GT_OK, 3000 },
		{ "1e-05", GT_OK, 0 },
		{ "1.5E3", GT_OK, 1500000 },
		{ "999999999999999", GT_OK, 999999999999999000 },
		{ "9999999999999999", GT_EINVAL, 0 },
		{ "1e400", GT_EINVAL, 0 },
		{ "", GT_EFORMAT, 0 },
		{ "-", GT_EFORMAT, 0 },
		{ "1,5", GT_EFORMAT, 0 },
		{ "1 000", GT_EFORMAT, 0 },
		{ "nan", GT_EFORMAT, 0 },
		{ "inf", GT_EFORMAT, 0 },
		{ "0x10", GT_EFORMAT, 0 },
		{ "1.2.3", GT_EFORMAT, 0 },
		{ "1e", GT_EFORMAT, 0 },
		{ "00000000000000000000000000000000000000000000000000000000000000001", GT_EFORMAT,
		  0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int64_t ns = 0;

		if (gt_csv_parse_us(cases[i].text, strlen(cases[i].text), &ns) != cases[i].result)
			fail_msg("'%s'", cases[i].text);
		assert_int_equal(ns, cases[i].ns);
	}
}

static void rows_across_blocks_are_whole(void **state)
{
	/* Quoted names with line ends and doubled quotes, so that every kind of cut occurs. */
	static const char row[] = "\"na\"\"me,\n\",1,2.000,3.000\n";
	const size_t count = 150000;
	size_t len = strlen(HEADER) + count * strlen(row);
	char *text = malloc(len + 1);
	struct gt_csv_report report;
	struct gt_message message;
	struct rows rows;

	(void)state;
	strcpy(text, HEADER);
	for (size_t i = 0; i < count; i++)
		memcpy(text + strlen(HEADER) + i * strlen(row), row, strlen(row) + 1);
	assert_int_equal(read_text(text, len, &rows, &report, &message), GT_OK);
	assert_int_equal(rows.count, count);
	assert_int_equal(report.bad.count, 0);
	assert_int_equal(report.lines, 1 + 2 * count);
	assert_memory_equal(rows.text, "<na\"me,\n> 1 2000 3000\n", 22);
	free(text);
}

static void a_row_over_the_limit_is_bad_and_the_next_is_read(void **state)
{
	size_t longer = 5u << 20;
	size_t len = strlen(HEADER) + longer + 20;
	char *text = malloc(len + 1);
	struct gt_csv_report report;
	struct gt_message message;
	struct rows rows;

	(void)state;
	for (int quoted = 0; quoted < 2; quoted++) {
		memset(text, 'x', len);
		memcpy(text, HEADER, strlen(HEADER));
		text[strlen(HEADER)] = quoted ? '"' : 'x';
		memcpy(text + strlen(HEADER) + longer, "\ng,1,2,3\n", 10);
		assert_int_equal(read_text(text, strlen(text), &rows, &report, &message), GT_OK);
		assert_string_equal(rows.text, "<g> 1 2000 3000\n");
		assert_true(report.bad.count >= 1);
	}
	free(text);
}

static void every_cut_of_a_file_is_read_without_a_wrong_row(void **state)
{
	static const char text[] = HEADER "\"a\"\"b\",1,2.000,3.000\r\nccc,11,22.000,33.000\n";
	struct gt_csv_report report;
	struct gt_message message;
	struct rows rows;

	(void)state;
	for (size_t len = strlen(HEADER); len < sizeof text; len++) {
		assert_int_equal(read_text(text, len, &rows, &report, &message), GT_OK);
		assert_true(rows.count <= 2);
	}
}

static void the_callbacks_error_stops_the_reader(void **state)
{
	struct rows rows = { .result = GT_ENOMEM };
	struct gt_csv_report report;
	struct gt_message message = { "" };
	FILE *file = tmpfile();

	(void)state;
	fputs(HEADER "f,1,2,3\nf,1,2,3\n", file);
	rewind(file);
	assert_int_equal(gt_csv_read(fileno(file), take, &rows, &report, &message), GT_ENOMEM);
	assert_int_equal(rows.count, 1);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(numbers_are_written_exactly),
		cmocka_unit_test(names_of_any_length_are_written_whole),
		cmocka_unit_test(a_full_disk_is_reported),
		cmocka_unit_test(columns_are_found_by_name),
		cmocka_unit_test(a_first_line_without_the_columns_is_refused),
		cmocka_unit_test(bad_rows_are_counted_and_named_and_cost_no_other),
		cmocka_unit_test(numbers_of_pandas_and_people_are_read),
		cmocka_unit_test(rows_across_blocks_are_whole),
		cmocka_unit_test(a_row_over_the_limit_is_bad_and_the_next_is_read),
		cmocka_unit_test(every_cut_of_a_file_is_read_without_a_wrong_row),
		cmocka_unit_test(the_callbacks_error_stops_the_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
