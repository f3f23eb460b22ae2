/* SPDX-License-Identifier: MIT */
/*
 * Index pages. Guarantees: every text from outside is escaped; links are relative, so one page fits
 * every address. Any thread.
 */
#include "serve/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_html(FILE *to, const char *text)
{
	for (; *text != '\0'; text++) {
		switch (*text) {
		case '<':
			fputs("&lt;", to);
			break;
		case '>':
			fputs("&gt;", to);
			break;
		case '&':
			fputs("&amp;", to);
			break;
		case '"':
			fputs("&quot;", to);
			break;
		default:
			fputc((unsigned char)*text < ' ' ? '?' : *text, to);
		}
	}
}

static void put_json(FILE *to, const char *text)
{
	fputc('"', to);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', to);
		if ((unsigned char)*text < ' ')
			fprintf(to, "\\u%04x", (unsigned char)*text);
		else
			fputc(*text, to);
	}
	fputc('"', to);
}

static const char *kind_name(enum gt_control_kind kind)
{
	return kind == GT_CONTROL_RECORDING ? "recording"
	       : kind == GT_CONTROL_KERNEL  ? "kernel"
					    : "program";
}

static void make_json(FILE *to, const struct gt_control_node *directory, const char *path,
		      const char *title)
{
	struct gt_control_walk walk = { 0, 0 };
	struct gt_control_entry entry;

	fputs("{\"path\":", to);
	put_json(to, path);
	fprintf(to, ",\"kind\":\"%s\",\"target\":", kind_name(directory->target->kind));
	put_json(to, title);
	fputs(",\"entries\":[", to);
	for (uint32_t i = 0; gt_control_list_next(directory, &walk, i, &entry) == 0; i++) {
		const struct gt_control_file *file = entry.node.file;
		unsigned access = file != NULL ? gt_control_access(directory->target, file) : 0;

		fputs(i > 0 ? ",\n{\"name\":" : "\n{\"name\":", to);
		put_json(to, entry.name);
		if (file == NULL) {
			fputs(",\"directory\":true}", to);
			continue;
		}
		fprintf(to, ",\"directory\":false,\"read\":%s,\"write\":%s,\"help\":",
			access & GT_CONTROL_READ ? "true" : "false",
			access & GT_CONTROL_WRITE ? "true" : "false");
		put_json(to, file->help);
		fputc('}', to);
	}
	fputs("\n]}\n", to);
}

static void make_html(FILE *to, const struct gt_control_node *directory, const char *path,
		      const char *title, const char *query)
{
	struct gt_control_walk walk = { 0, 0 };
	struct gt_control_entry entry;

	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
	      "charset=\"utf-8\">\n<title>graftrace: ",
	      to);
	put_html(to, title);
	fputs("</title>\n<style>body{font:15px/1.5 sans-serif;max-width:60em;margin:2em "
	      "auto;padding:0 "
	      "1em}\ntd,th{text-align:left;padding:.1em 1.5em .1em 0;vertical-align:top}\n"
	      "td:first-child,code{font-family:monospace}\nth{border-bottom:1px solid}</style>"
	      "</head><body>\n<h1>/ftrace/",
	      to);
	put_html(to, path);
	fputs("</h1>\n<p>", to);
	put_html(to, title);
	fputs("</p>\n<table><tr><th>file</th><th></th><th>what it is for</th></tr>\n", to);
	if (path[0] != '\0')
		fprintf(to, "<tr><td><a href=\"../%s\">../</a></td><td></td><td></td></tr>\n",
			query);
	for (uint32_t i = 0; gt_control_list_next(directory, &walk, i, &entry) == 0; i++) {
		const struct gt_control_file *file = entry.node.file;
		const char *slash = file == NULL ? "/" : "";
		unsigned access = file != NULL ? gt_control_access(directory->target, file) : 0;

		fputs("<tr><td>", to);
		/* A file that acts when it is read gets no link: following links must be
		 * harmless. */
		if (file == NULL ||
		    ((access & GT_CONTROL_READ) && !(file->flags & GT_CONTROL_ACTS))) {
			fputs("<a href=\"", to);
			put_html(to, entry.name);
			fprintf(to, "%s%s\">", slash, query);
			put_html(to, entry.name);
			fprintf(to, "%s</a>", slash);
		} else {
			put_html(to, entry.name);
		}
		fprintf(to, "</td><td>%s%s</td><td>", access & GT_CONTROL_READ ? "r" : "",
			access & GT_CONTROL_WRITE ? "w" : "");
		put_html(to, file != NULL ? file->help : "");
		fputs("</td></tr>\n", to);
	}
	fputs("</table>\n<p>GET reads, PUT writes as <code>echo &gt;</code> does, POST as "
	      "<code>echo "
	      "&gt;&gt;</code>: <code>curl -X PUT -d 0 …/ftrace/tracing_on</code></p>\n"
	      "</body></html>\n",
	      to);
}

char *gt_index_make(const struct gt_control_node *directory, const char *path, const char *title,
		    const char *query, bool json, size_t *bytes)
{
	char *page = NULL;
	FILE *to = open_memstream(&page, bytes);

	if (to == NULL)
		return NULL;
	if (json)
		make_json(to, directory, path, title);
	else
		make_html(to, directory, path, title, query);
	if (fclose(to) != 0) {
		free(page);
		return NULL;
	}
	return page;
}
