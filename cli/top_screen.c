/* SPDX-License-Identifier: MIT */
/*
 * The screen of graftrace top: see top_screen.h. It uses only bold and reversed text, which every
 * terminal has.
 */
#define _GNU_SOURCE
#define NCURSES_WIDECHAR 1
#include "cli/top_screen.h"

#include <curses.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/control/control.h"
#include "core/text/text.h"
#include "core/trace/glob.h"
#include "core/trace/message.h"
#include "export/short_names.h"
#include "export/stacks.h"
#include "port/host/memory.h"

#define TEXT_MAX  (4u << 20) /* << 20) bytes of a call's text at most */
#define NAME_ROOM 16	     /* columns that are kept for a name */
#define HEAD_ROWS 3
#define OPEN_ROWS 5 /* callers, and callees, below an opened function */

/* What a line of the table is. */
enum kind { LINE_FUNCTION, LINE_CALLER, LINE_CALLEE };

struct line {
	enum kind kind;
	const struct gt_report_row *row;
};

/* A text that covers the table. */
struct text_view {
	char *bytes; /* NUL-terminated; NULL: there is none */
	char **lines;
	size_t count, first;
	char title[256];
};

struct gt_top_screen {
	SCREEN *screen;
	FILE *terminal;
	struct gt_target *target;
	uint64_t from_ns, to_ns;
	struct gt_report *report, *callers, *callees;
	struct line *lines;
	size_t line_count, line_room;
	size_t selected, first;
	char chosen[GT_SHORT_NAME_MAX]; /* full name of the selected function */
	char opened[GT_SHORT_NAME_MAX]; /* full name of the opened function; "" none */
	unsigned sort;			/* in columns[] */
	char filter[64];
	bool typing; /* the filter is being edited */
	char status[160];
	struct text_view text;
};

/* ---- columns ---- */

enum column { PART, CALLS, SELF, TOTAL, P50, P99, MAXIMUM, NAME, COLUMNS };

static const struct {
	const char *title;
	int width;
	enum gt_report_key key;
	int from; /* least width of the terminal at which it is shown */
} columns[COLUMNS] = {
	[PART] = { "Self%", 6, GT_REPORT_SELF, 0 },
	[CALLS] = { "Calls", 9, GT_REPORT_CALLS, 40 },
	[SELF] = { "Self", 9, GT_REPORT_SELF, 0 },
	[TOTAL] = { "Total", 9, GT_REPORT_TOTAL, 50 },
	[P50] = { "p50", 9, GT_REPORT_P50, 70 },
	[P99] = { "p99", 9, GT_REPORT_P99, 60 },
	[MAXIMUM] = { "Max", 9, GT_REPORT_MAXIMUM, 90 },
	[NAME] = { "Function", 0, GT_REPORT_NAME, 0 },
};

/* Four significant digits, at most eight columns. */
static void time_text(char text[24], uint64_t ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	double size = (double)ns;
	unsigned unit = 0;

	while (unit < 3 && size >= 999.95) {
		size /= 1000;
		unit++;
	}
	snprintf(text, 24, "%.*f %s", unit == 0 ? 0 : size < 10 ? 2 : 1, size, units[unit]);
}

static void cell(const struct gt_top_screen *screen, const struct gt_report_row *row,
		 enum column column, char text[24])
{
	const uint64_t times[COLUMNS] = {
		[SELF] = row->self, [TOTAL] = row->total,     [P50] = row->p50,
		[P99] = row->p99,   [MAXIMUM] = row->maximum,
	};
	uint64_t all = screen->report->self;

	if (column == PART)
		snprintf(text, 24, "%.1f", all ? 100.0 * (double)row->self / (double)all : 0.0);
	else if (column == CALLS && row->calls >= 100000000)
		snprintf(text, 24, "%.1fM", (double)row->calls / 1e6);
	else if (column == CALLS)
		snprintf(text, 24, "%llu", (unsigned long long)row->calls);
	else if (!row->returned)
		snprintf(text, 24, "-");
	else if (column >= P50 && times[column] < GT_REPORT_GRAIN_NS)
		snprintf(text, 24, "<20 ns");
	else
		time_text(text, times[column]);
}

/* ---- lines ---- */

static bool passes(const struct gt_top_screen *screen, const char *name)
{
	if (!screen->filter[0])
		return true;
	return strpbrk(screen->filter, "*?[") != NULL ? gt_glob_match(screen->filter, name)
						      : strcasestr(name, screen->filter) != NULL;
}

static void add_line(struct gt_top_screen *screen, enum kind kind, const struct gt_report_row *row)
{
	if (screen->line_count == screen->line_room) {
		size_t room = screen->line_room ? screen->line_room * 2 : 256;
		struct line *grown = realloc(screen->lines, room * sizeof(*grown));

		if (grown == NULL)
			return; /* the table has fewer lines */
		screen->lines = grown;
		screen->line_room = room;
	}
	screen->lines[screen->line_count++] = (struct line){ kind, row };
}

static void add_opened(struct gt_top_screen *screen, enum kind kind, const struct gt_report *report)
{
	for (size_t i = 0; report != NULL && i < report->row_count && i < OPEN_ROWS; i++)
		add_line(screen, kind, &report->rows[i]);
}

/* Makes the lines of the table and finds the selected function's. */
static void lay_out(struct gt_top_screen *screen)
{
	screen->line_count = 0;
	for (size_t i = 0; screen->report != NULL && i < screen->report->row_count; i++) {
		const struct gt_report_row *row = &screen->report->rows[i];

		if (!passes(screen, row->name))
			continue;
		if (strncmp(row->name, screen->chosen, sizeof(screen->chosen) - 1) == 0)
			screen->selected = screen->line_count;
		add_line(screen, LINE_FUNCTION, row);
		if (screen->opened[0] && strcmp(row->name, screen->opened) == 0) {
			add_opened(screen, LINE_CALLER, screen->callers);
			add_opened(screen, LINE_CALLEE, screen->callees);
		}
	}
	if (screen->selected >= screen->line_count)
		screen->selected = screen->line_count ? screen->line_count - 1 : 0;
}

static void choose(struct gt_top_screen *screen, size_t line)
{
	if (!screen->line_count)
		return;
	screen->selected = line < screen->line_count ? line : screen->line_count - 1;
	if (screen->lines[screen->selected].kind == LINE_FUNCTION)
		snprintf(screen->chosen, sizeof(screen->chosen), "%s",
			 screen->lines[screen->selected].row->name);
	else
		screen->chosen[0] = '\0';
}

/* ---- reading ---- */

/* Makes a glob that matches the name: a character that is special in globs becomes '?'. */
static void glob_of(const char *name, char glob[GT_SHORT_NAME_MAX])
{
	size_t used = 0;

	for (; *name && used + 1 < GT_SHORT_NAME_MAX; name++)
		glob[used++] = strchr("*?[]\\", *name) != NULL ? '?' : *name;
	glob[used] = '\0';
}

static int read_report(struct gt_top_screen *screen, enum gt_report_by by,
		       struct gt_report **report)
{
	char glob[GT_SHORT_NAME_MAX];
	const struct gt_report_options options = {
		.by = by, .of = glob, .from_ns = screen->from_ns, .to_ns = screen->to_ns
	};
	struct gt_report *made = NULL;
	int error;

	glob_of(screen->opened, glob);
	error = gt_report_make(screen->target, &options, &made, NULL);
	if (error != 0)
		return error;
	gt_report_destroy(*report);
	*report = made;
	gt_report_sort(made, columns[screen->sort].key);
	return 0;
}

/* Callers and callees of the opened function. */
static int read_opened(struct gt_top_screen *screen)
{
	int error = 0;

	if (!screen->opened[0] || screen->target->tracer == GRAFTRACE_TRACER_FUNCTION)
		return 0;
	error = read_report(screen, GT_REPORT_CALLER, &screen->callers);
	return error == 0 ? read_report(screen, GT_REPORT_CALLEE, &screen->callees) : error;
}

int gt_top_screen_read(struct gt_top_screen *screen, struct gt_target *target, uint64_t from_ns,
		       uint64_t to_ns)
{
	int error;

	screen->target = target;
	screen->from_ns = from_ns;
	screen->to_ns = to_ns;
	screen->line_count = 0; /* lines point into the report that is replaced */
	error = read_report(screen, GT_REPORT_FUNCTION, &screen->report);
	if (error == 0)
		error = read_opened(screen);
	lay_out(screen);
	return error;
}

/* ---- the slowest call ---- */

struct slowest {
	struct gt_target *target;
	const char *name;
	uint32_t known[256]; /* a cache of compared functions, by number modulo its size */
	bool same[256];
	uint64_t from_ns; /* calls that end before are none of the table's */
	uint64_t start, end;
	uint32_t tid;
};

static bool is_it(struct slowest *slowest, uint32_t number)
{
	uint32_t place = number % 256;
	struct gt_function function;

	if (slowest->known[place] == number)
		return slowest->same[place];
	slowest->known[place] = number;
	slowest->same[place] = gt_target_function(slowest->target, number, &function) == 0 &&
			       function.name != NULL && strcmp(function.name, slowest->name) == 0;
	return slowest->same[place];
}

static int compare_call(void *user, struct gt_lane *lane, struct gt_stack_call *call, uint64_t end)
{
	struct slowest *slowest = user;

	if (!(call->flags & (GT_STACK_NO_RETURN | GT_STACK_OPEN)) &&
	    gt_clock_ns(&slowest->target->clock, end) >= slowest->from_ns &&
	    end - call->start >= slowest->end - slowest->start && is_it(slowest, call->function)) {
		slowest->start = call->start;
		slowest->end = end;
		slowest->tid = lane->tid;
	}
	return 0;
}

static void close_text(struct gt_top_screen *screen)
{
	free(screen->text.bytes);
	free(screen->text.lines);
	memset(&screen->text, 0, sizeof(screen->text));
}

/* Takes ownership of the text, which is malloc'ed. */
static void open_text(struct gt_top_screen *screen, char *bytes, const char *title)
{
	struct text_view *view = &screen->text;
	size_t count = 1;

	close_text(screen);
	for (const char *at = bytes; *at; at++)
		count += *at == '\n';
	view->lines = calloc(count, sizeof(*view->lines));
	if (view->lines == NULL) {
		free(bytes);
		return;
	}
	view->bytes = bytes;
	snprintf(view->title, sizeof(view->title), "%s", title);
	for (char *at = strtok(bytes, "\n"); at != NULL; at = strtok(NULL, "\n"))
		view->lines[view->count++] = at;
}

/* What a thread did in a span of time, as graftrace show prints it. NULL: no memory. */
static char *text_of(struct gt_top_screen *screen, struct gt_filter *filter)
{
	struct gt_short_names names = { .names = NULL };
	const struct gt_text_options options = {
		.options = GT_OPTIONS_DEFAULT,
		.header = true,
		.filter = filter,
		.rename = gt_short_names_keep,
		.rename_data = &names,
	};
	struct gt_text *text = malloc(sizeof(*text));
	char *bytes = malloc(TEXT_MAX + 1);
	size_t used = 0;
	int64_t got;

	if (text == NULL || bytes == NULL ||
	    gt_text_init(text, screen->target, &gt_host_memory, &options) != 0) {
		free(text);
		free(bytes);
		return NULL;
	}
	while (used < TEXT_MAX && (got = gt_text_read(text, bytes + used, TEXT_MAX - used)) > 0)
		used += (size_t)got;
	bytes[used] = '\0';
	gt_text_fini(text);
	free(text);
	gt_short_names_fini(&names);
	return bytes;
}

static void show_slowest(struct gt_top_screen *screen)
{
	struct gt_filter *filter = calloc(1, sizeof(*filter));
	struct slowest slowest = { .target = screen->target,
				   .name = screen->chosen,
				   .from_ns = screen->from_ns };
	const struct gt_stack_sink sink = { .user = &slowest, .leave = compare_call };
	const struct gt_clock *clock = &screen->target->clock;
	struct gt_stack_report report;
	char title[256], brief[GT_SHORT_NAME_MAX], took[24];
	char *text = NULL;

	if (filter == NULL || !screen->chosen[0]) {
		free(filter);
		snprintf(screen->status, sizeof(screen->status), "choose a function first");
		return;
	}
	/* From before the table's time: a call that had begun then is shown whole, with its entry. */
	filter->to_ns = screen->to_ns;
	if (gt_stacks_read(screen->target, filter, &sink, &report) == 0 && slowest.tid) {
		memset(filter, 0, sizeof(*filter));
		filter->tid = slowest.tid;
		filter->from_ns = gt_clock_ns(clock, slowest.start);
		filter->to_ns = gt_clock_ns(clock, slowest.end);
		text = text_of(screen, filter);
	}
	free(filter);
	if (text == NULL) {
		snprintf(screen->status, sizeof(screen->status),
			 "no call of it that has returned is there");
		return;
	}
	gt_short_name(screen->chosen, brief);
	time_text(took, gt_clock_duration_ns(clock, slowest.end - slowest.start));
	snprintf(title, sizeof(title), "slowest call of %.120s: %s, thread %u", brief, took,
		 slowest.tid);
	open_text(screen, text, title);
}

static void show_help(struct gt_top_screen *screen)
{
	static const char help[] =
		"  Up, Down, PgUp, PgDn, Home, End   choose a function\n"
		"  Enter     open it: who called it, whom it called; again: close it\n"
		"  m         its slowest call, with what happened in it\n"
		"  s, S      sort by the next, the previous column\n"
		"  /         show only functions with what you type (or a glob); Esc: all\n"
		"  Space     stop and start the recording\n"
		"  q         leave: the table, or what is in front of it\n";

	char *text = strdup(help);
	if (text != NULL)
		open_text(screen, text, "keys of graftrace top");
}

/* ---- drawing ---- */

static int put_head(const struct gt_top_screen *screen, const struct gt_top_head *head)
{
	const struct gt_report *report = screen->report;
	uint64_t lost = 0;
	unsigned long long calls = report != NULL ? report->calls : 0;
	unsigned threads = report != NULL ? report->threads : 0;
	char window[24] = "";

	for (unsigned i = 0; i < GRAFTRACE_LOST_CAUSES; i++)
		lost += report != NULL && i != GRAFTRACE_LOST_OVERRUN &&
					i != GRAFTRACE_LOST_OVERRUN_CALLS
				? report->lost[i]
				: 0;
	if (head->window_ns)
		time_text(window, head->window_ns);
	attron(A_BOLD);
	mvprintw(0, 0, "%.*s", COLS, head->title);
	attroff(A_BOLD);
	clrtoeol();
	mvprintw(1, 0, "%s%s%s  %llu call%s, %u thread%s", head->state, window[0] ? ", last " : "",
		 window, calls, calls == 1 ? "" : "s", threads, threads == 1 ? "" : "s");
	if (lost)
		printw(", %llu lost", (unsigned long long)lost);
	if (screen->filter[0] || screen->typing)
		printw("  /%s%s", screen->filter, screen->typing ? "_" : "");
	clrtoeol();
	return 2;
}

static int name_column(void)
{
	int at = 0;

	for (unsigned i = 0; i < NAME; i++)
		if (COLS >= columns[i].from)
			at += columns[i].width;
	return at + 1;
}

static void put_titles(const struct gt_top_screen *screen, int y)
{
	int x = 0;

	attron(A_REVERSE);
	mvhline(y, 0, ' ', COLS);
	for (unsigned i = 0; i < COLUMNS; i++) {
		char title[24];

		if (i != NAME && COLS < columns[i].from)
			continue;
		snprintf(title, sizeof(title), screen->sort == i ? ">%s" : "%s", columns[i].title);
		if (i == NAME)
			mvprintw(y, name_column(), "%s", title);
		else
			mvprintw(y, x, "%*s", columns[i].width, title);
		x += columns[i].width;
	}
	attroff(A_REVERSE);
}

static void put_name(int y, int x, const char *before, const char *name)
{
	char brief[GT_SHORT_NAME_MAX + 4];
	int room = COLS - x - (int)strlen(before);

	gt_short_name(name, brief);
	for (char *at = brief; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	if (room < 4)
		return;
	gt_cut_middle(brief, (uint32_t)room);
	mvprintw(y, x, "%s%s", before, brief);
}

static void put_line(const struct gt_top_screen *screen, int y, const struct line *line,
		     bool selected)
{
	static const char *const before[] = { "", "  < ", "  > " };
	int x = 0;

	if (selected)
		attron(A_REVERSE);
	mvhline(y, 0, ' ', COLS);
	for (unsigned i = 0; i < NAME; i++) {
		char text[24];

		if (COLS < columns[i].from)
			continue;
		if (i == PART && line->kind != LINE_FUNCTION)
			text[0] = '\0';
		else
			cell(screen, line->row, i, text);
		mvprintw(y, x, "%*s", columns[i].width, text);
		x += columns[i].width;
	}
	put_name(y, x + 1, before[line->kind], line->row->name);
	if (selected)
		attroff(A_REVERSE);
}

static void put_table(struct gt_top_screen *screen)
{
	size_t rows = LINES > HEAD_ROWS + 1 ? (size_t)(LINES - HEAD_ROWS - 1) : 1;

	put_titles(screen, HEAD_ROWS - 1);
	if (screen->selected < screen->first)
		screen->first = screen->selected;
	if (screen->selected >= screen->first + rows)
		screen->first = screen->selected - rows + 1;
	if (screen->first + rows > screen->line_count)
		screen->first = screen->line_count > rows ? screen->line_count - rows : 0;
	for (size_t i = 0; i < rows; i++) {
		size_t at = screen->first + i;

		move(HEAD_ROWS + (int)i, 0);
		clrtoeol();
		if (at < screen->line_count)
			put_line(screen, HEAD_ROWS + (int)i, &screen->lines[at],
				 at == screen->selected);
	}
	if (!screen->line_count)
		mvprintw(HEAD_ROWS, 2, "%s",
			 screen->filter[0] ? "no function with that in its name was called"
					   : "no function that is traced was called");
}

static void put_text(struct gt_top_screen *screen)
{
	struct text_view *view = &screen->text;
	size_t rows = LINES > 2 ? (size_t)(LINES - 2) : 1;

	if (view->first + rows > view->count)
		view->first = view->count > rows ? view->count - rows : 0;
	erase();
	attron(A_REVERSE);
	mvhline(0, 0, ' ', COLS);
	mvprintw(0, 0, "%.*s", COLS, view->title);
	attroff(A_REVERSE);
	for (size_t i = 0; i < rows && view->first + i < view->count; i++)
		mvaddnstr(1 + (int)i, 0, view->lines[view->first + i], COLS);
}

void gt_top_screen_draw(struct gt_top_screen *screen, const struct gt_top_head *head)
{
	if (screen->text.bytes != NULL) {
		put_text(screen);
		mvprintw(LINES - 1, 0, "q back  Up Down PgUp PgDn");
	} else {
		put_head(screen, head);
		put_table(screen);
		mvprintw(LINES - 1, 0, "%.*s", COLS - 1,
			 screen->status[0]
				 ? screen->status
				 : "? keys  s sort  / filter  Enter callers  m slowest call  Space "
				   "stop  q quit");
	}
	clrtoeol();
	refresh();
}

/* ---- keys ---- */

static void type(struct gt_top_screen *screen, int key)
{
	size_t length = strlen(screen->filter);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		screen->typing = false;
	} else if (key == 27) {
		screen->typing = false;
		screen->filter[0] = '\0';
	} else if (key == KEY_BACKSPACE || key == 127 || key == 8) {
		if (length)
			screen->filter[length - 1] = '\0';
	} else if (key >= ' ' && key < 256 && length + 1 < sizeof(screen->filter)) {
		screen->filter[length] = (char)key;
		screen->filter[length + 1] = '\0';
	}
	lay_out(screen);
}

static void open_or_close(struct gt_top_screen *screen)
{
	bool same = strcmp(screen->opened, screen->chosen) == 0;

	gt_report_destroy(screen->callers);
	gt_report_destroy(screen->callees);
	screen->callers = screen->callees = NULL;
	memcpy(screen->opened, screen->chosen, sizeof(screen->opened));
	if (same)
		screen->opened[0] = '\0';
	if (read_opened(screen) != 0)
		snprintf(screen->status, sizeof(screen->status), "out of memory");
	lay_out(screen);
}

/* Sorts by the next column that is shown (with COLUMNS - 1: by the previous one). */
static void sort_by(struct gt_top_screen *screen, unsigned step)
{
	do {
		screen->sort = (screen->sort + step) % COLUMNS;
	} while (columns[screen->sort].from > COLS || screen->sort == PART);
	screen->line_count = 0;
	if (screen->report != NULL)
		gt_report_sort(screen->report, columns[screen->sort].key);
	if (screen->callers != NULL)
		gt_report_sort(screen->callers, columns[screen->sort].key);
	if (screen->callees != NULL)
		gt_report_sort(screen->callees, columns[screen->sort].key);
	lay_out(screen);
	choose(screen, 0);
}

/* How many lines a key moves the selection; 0: it is no such key. */
static long distance(int key)
{
	long page = LINES > HEAD_ROWS + 2 ? LINES - HEAD_ROWS - 2 : 1;

	switch (key) {
	case KEY_UP:
	case 'k':
		return -1;
	case KEY_DOWN:
	case 'j':
		return 1;
	case KEY_PPAGE:
		return -page;
	case KEY_NPAGE:
		return page;
	case KEY_HOME:
		return -1000000;
	case KEY_END:
		return 1000000;
	default:
		return 0;
	}
}

static size_t moved(size_t from, long by, size_t count)
{
	if (by < 0)
		return from > (size_t)-by ? from - (size_t)-by : 0;
	return from + (size_t)by < count ? from + (size_t)by : count ? count - 1 : 0;
}

static enum gt_top_wish key_in_table(struct gt_top_screen *screen, int key)
{
	long by = distance(key);

	if (by) {
		choose(screen, moved(screen->selected, by, screen->line_count));
		return GT_TOP_NOTHING;
	}
	switch (key) {
	case 'q':
	case 3: /* Ctrl-C */
		return GT_TOP_QUIT;
	case ' ':
		return GT_TOP_STOP_OR_START;
	case 's':
		sort_by(screen, 1);
		break;
	case 'S':
		sort_by(screen, COLUMNS - 1);
		break;
	case '/':
		screen->typing = true;
		screen->filter[0] = '\0';
		lay_out(screen);
		break;
	case 27:
		screen->filter[0] = '\0';
		lay_out(screen);
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		choose(screen, screen->selected);
		if (screen->chosen[0])
			open_or_close(screen);
		break;
	case 'm':
		choose(screen, screen->selected);
		show_slowest(screen);
		break;
	case '?':
	case 'h':
		show_help(screen);
		break;
	default:
		break;
	}
	return GT_TOP_NOTHING;
}

enum gt_top_wish gt_top_screen_key(struct gt_top_screen *screen, int timeout_ms)
{
	int key;

	timeout(timeout_ms);
	key = getch();
	if (key == ERR || key == KEY_RESIZE)
		return GT_TOP_NOTHING;
	screen->status[0] = '\0';
	if (screen->text.bytes != NULL) {
		screen->text.first = moved(screen->text.first, distance(key), screen->text.count);
		if (key == 'q' || key == 27 || key == 3) {
			close_text(screen);
			erase();
		}
		return GT_TOP_NOTHING;
	}
	if (screen->typing && key != 3) {
		type(screen, key);
		return GT_TOP_NOTHING;
	}
	return key_in_table(screen, key);
}

bool gt_top_screen_is_busy(const struct gt_top_screen *screen)
{
	return screen->text.bytes != NULL;
}

/* ---- the terminal ---- */

int gt_top_screen_open(struct gt_top_screen **made, struct gt_message *message)
{
	struct gt_top_screen *screen = calloc(1, sizeof(*screen));

	if (screen == NULL)
		return gt_fail(message, GT_ENOMEM, "out of memory");
	/* The terminal is opened apart from stdin and stdout, which the program may have. */
	screen->terminal = fopen("/dev/tty", "r+e");
	setlocale(LC_CTYPE, "");
	if (screen->terminal != NULL)
		screen->screen = newterm(NULL, screen->terminal, screen->terminal);
	if (screen->screen == NULL) {
		gt_message_set(message, "this needs a terminal, and TERM that names it; elsewhere "
					"'graftrace profile' and 'graftrace report' print a table");
		gt_top_screen_close(screen);
		return GT_EIO;
	}
	set_term(screen->screen);
	raw();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	screen->sort = SELF;
	*made = screen;
	return 0;
}

void gt_top_screen_close(struct gt_top_screen *screen)
{
	if (screen->screen != NULL) {
		endwin();
		delscreen(screen->screen);
	}
	if (screen->terminal != NULL)
		fclose(screen->terminal);
	close_text(screen);
	gt_report_destroy(screen->report);
	gt_report_destroy(screen->callers);
	gt_report_destroy(screen->callees);
	free(screen->lines);
	free(screen);
}
