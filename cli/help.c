/* SPDX-License-Identifier: MIT */
/*
 * Texts of --help. They are written as lines; a line longer than a terminal's 80 columns is
 * continued on the next one, indented to the column of its description.
 */
#include "cli/command.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WIDTH	 79
#define LINE_MAX 1024

/* The column at which a line's description begins: after an option and at least two blanks. */
static size_t words_at(const char *line, size_t length)
{
	size_t at = strspn(line, " ");

	if (at == 0 || at >= 20)
		return at;
	for (size_t i = at; i + 2 < length; i++)
		if (line[i] != ' ' && line[i + 1] == ' ' && line[i + 2] == ' ')
			return i + 1 + strspn(line + i + 1, " ");
	return at;
}

/* The rest of a line that did not fit, and the column of its description. */
struct rest {
	char text[LINE_MAX];
	size_t indent;
};

/* Does this line continue the description of the line before? */
static bool goes_on(const struct rest *rest, const char *line, size_t length)
{
	size_t blanks = strspn(line, " ");

	return length > 0 && blanks < length && blanks == rest->indent;
}

/* Writes as much of a line as fits; keeps the rest. */
static void put_line(const char *line, struct rest *rest)
{
	char whole[2 * LINE_MAX];
	size_t length, cut;

	snprintf(whole, sizeof(whole), "%s", line);
	rest->text[0] = '\0';
	while ((length = strlen(whole)) > WIDTH) {
		rest->indent = words_at(whole, length);
		for (cut = WIDTH; cut > rest->indent && whole[cut] != ' '; cut--)
			;
		if (cut <= rest->indent)
			break; /* one long word */
		printf("%.*s\n", (int)cut, whole);
		snprintf(rest->text, sizeof(rest->text), "%s", whole + cut + 1);
		snprintf(whole, sizeof(whole), "%*s%s", (int)rest->indent, "", rest->text);
		if (strlen(whole) <= WIDTH)
			return;
	}
	rest->text[0] = '\0';
	puts(whole);
}

static void put_rest(struct rest *rest)
{
	if (rest->text[0])
		printf("%*s%s\n", (int)rest->indent, "", rest->text);
	rest->text[0] = '\0';
}

int gt_print_help(const char *text)
{
	struct rest rest = { .indent = 0 };

	while (*text) {
		size_t length = strcspn(text, "\n");
		char line[2 * LINE_MAX];

		if (rest.text[0] && goes_on(&rest, text, length)) {
			snprintf(line, sizeof(line), "%*s%s %.*s", (int)rest.indent, "", rest.text,
				 (int)(length - rest.indent), text + rest.indent);
		} else {
			put_rest(&rest);
			snprintf(line, sizeof(line), "%.*s", (int)length, text);
		}
		put_line(line, &rest);
		text += length + (text[length] == '\n');
	}
	put_rest(&rest);
	return fflush(stdout) == 0 ? GT_EXIT_DONE : GT_EXIT_FAILED;
}
