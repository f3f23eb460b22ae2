/* SPDX-License-Identifier: MIT */
/* Lines of source that code comes from: see variables.h. */
#include "attach/object/variables_private.h"
#include "core/trace/message.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

struct lines_work {
	const char *file;
	const char *path; /* the whole of it; NULL: no code comes from there */
	uint32_t first, last;
	uint8_t *code;
};

static void note_lines(struct lines_work *work, Dwarf_Die *unit)
{
	Dwarf_Lines *lines;
	size_t count = 0;

	if (dwarf_getsrclines(unit, &lines, &count) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		const char *file = dwarf_linesrc(line, NULL, NULL);
		bool begins = false;
		int number;

		if (file != NULL && dwarf_lineno(line, &number) == 0 &&
		    number >= (int)work->first && number <= (int)work->last &&
		    gt_variables_ends_with(file, work->file) &&
		    dwarf_linebeginstatement(line, &begins) == 0 && begins) {
			work->code[(uint32_t)number - work->first] = 1;
			work->path = file;
		}
	}
}

/* The last line that the function has code of. */
static uint32_t last_line(Dwarf_Die *function, Dwarf_Die *unit, const char *own)
{
	Dwarf_Lines *lines;
	size_t count = 0;
	uint32_t last = 0;

	if (dwarf_getsrclines(unit, &lines, &count) != 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		const char *file = dwarf_linesrc(line, NULL, NULL);
		Dwarf_Addr address;
		int number;

		if (file != NULL && strcmp(file, own) == 0 && dwarf_lineaddr(line, &address) == 0 &&
		    dwarf_haspc(function, address) == 1 && dwarf_lineno(line, &number) == 0 &&
		    (uint32_t)number > last)
			last = (uint32_t)number;
	}
	return last;
}

int gt_variables_each_line(struct gt_variables *variables, const struct gt_source_place *place,
			   int (*each)(void *data, const char *file, uint32_t line, bool code),
			   void *data, struct gt_message *message)
{
	struct lines_work work = { .file = place->file, .first = place->line };
	Dwarf_Die function, unit;
	Dwarf_CU *next = NULL;
	uint8_t type;
	int line, result = 0;

	work.last = place->last ? place->last : work.first + 20;
	if (place->function != NULL) {
		if (!gt_variables_find_function(variables, place, &function) ||
		    dwarf_decl_line(&function, &line) != 0 || dwarf_decl_file(&function) == NULL ||
		    dwarf_diecu(&function, &unit, NULL, NULL) == NULL)
			return gt_variables_no_function(place, message);
		work.file = dwarf_decl_file(&function);
		work.first = (uint32_t)line;
		work.last = last_line(&function, &unit, work.file);
	}
	if (work.last < work.first || work.last - work.first > 1000000)
		return gt_fail(message, GT_ENOENT, "no code comes from there");
	work.code = calloc(work.last - work.first + 1, 1);
	if (work.code == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory");
	while (dwarf_get_units(variables->dwarf, next, &next, NULL, &type, &unit, NULL) == 0)
		if (type == DW_UT_compile)
			note_lines(&work, &unit);
	for (uint32_t i = work.first; work.path != NULL && !result && i <= work.last; i++)
		result = each(data, work.path, i, work.code[i - work.first]);
	free(work.code);
	return work.path != NULL ? result : gt_fail(message, GT_ENOENT, "no code comes from there");
}
