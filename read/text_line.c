/* SPDX-License-Identifier: MIT */
/*
 * Parses one line of function_graph text from left to right without backtracking: the columns up to
 * the duration's bar, then the function. The layout of nearly all lines (" 0)   0.071 us |
 * name();") has a fast path; every other choice of columns is recognised by the text between the
 * bars. Linux's layouts are those that kernel/trace/trace_functions_graph.c prints, 3.x to 6.x.
 */
#define _GNU_SOURCE
#include "read/text_line.h"

#include <endian.h>
#include <string.h>

/* 10^15 us are 31 years; ns of that still fit in 63 bits. */
#define DURATION_DIGITS_MAX 15
#define CPU_DIGITS_MAX	    9
#define PID_DIGITS_MAX	    15
#define COLUMNS_MAX	    8

static inline bool is_digit(char c)
{
	return (unsigned char)(c - '0') < 10;
}

/* Half of a line is blanks, whose number a processor predicts badly: eight bytes are tested at
 * once, and the first other byte is computed, not searched. */
static inline const char *skip_blanks(const char *p, const char *end)
{
	uint64_t word;

	for (; end - p >= 8; p += 8) {
		memcpy(&word, p, 8);
		word = le64toh(word) ^ 0x2020202020202020u;
		if (word != 0)
			return p + __builtin_ctzll(word) / 8;
	}
	while (p < end && *p == ' ')
		p++;
	return p;
}

static inline const char *trim_end(const char *begin, const char *end)
{
	while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return end;
}

static bool starts_with(const char *p, const char *end, const char *word)
{
	size_t len = strlen(word);

	return (size_t)(end - p) >= len && memcmp(p, word, len) == 0;
}

static void other(struct gt_text_line *line, const char *why)
{
	line->kind = GT_TEXT_OTHER;
	line->why = why;
}

/* Reads digits at *p into *value; false if there are none or more than digits_max. */
static inline bool read_number(const char **p, const char *end, int digits_max, uint64_t *value)
{
	const char *q = *p;
	uint64_t sum = 0;

	while (q < end && is_digit(*q))
		sum = sum * 10 + (uint64_t)(*q++ - '0');
	if (q == *p || q - *p > digits_max)
		return false;
	*p = q;
	*value = sum;
	return true;
}

/* Reads "[mark ]123.456 us" at *p, up to after the unit. The fraction has as many digits as its
 * writer had room for: Linux cuts it so that the number has at most 7. Nanos writes seven digits
 * with a point and nothing after it: `2343574. us`. */
static inline bool read_duration(const char **p, const char *end, uint64_t *ns)
{
	const char *q = *p;
	uint64_t us;
	uint64_t fraction = 0;
	int digits = 0;

	if (q < end && memchr("+!#*@$", *q, 6) != NULL)
		q = skip_blanks(q + 1, end);
	if (!read_number(&q, end, DURATION_DIGITS_MAX, &us))
		return false;
	if (q < end && *q == '.') {
		for (q++; q < end && is_digit(*q); q++) {
			if (digits < 3)
				fraction = fraction * 10 + (uint64_t)(*q - '0');
			else if (digits == 3 && *q >= '5')
				fraction++;
			digits++;
		}
		if (digits == 0 && us < 1000000)
			return false;
		for (; digits < 3; digits++)
			fraction *= 10;
	}
	q = skip_blanks(q, end);
	if (end - q < 2 || q[0] != 'u' || q[1] != 's')
		return false;
	*p = q + 2;
	*ns = us * 1000 + fraction;
	return true;
}

/* Is a byte of the word below a blank (the classic "has a byte below n")? */
static inline bool word_has_control(const char *p)
{
	uint64_t word;

	memcpy(&word, p, 8);
	return ((word - 0x2020202020202020u) & ~word & 0x8080808080808080u) != 0;
}

/* Is there a control character, which no function's name has? The last two words overlap, which
 * saves a branch. */
static bool has_control(const char *p, size_t len)
{
	const char *end = p + len;

	if (len >= 8) {
		for (; end - p > 8; p += 8)
			if (word_has_control(p))
				return true;
		return word_has_control(end - 8);
	}
	for (; p < end; p++)
		if ((unsigned char)*p < 0x20)
			return true;
	return false;
}

/* Finds the end of the name in "name()" or "name(arguments)". Only a final "()" is certainly the
 * writer's; with arguments, the bracket that matches the last one is taken. */
static const char *name_end(const char *begin, const char *end)
{
	const char *p;
	int depth = 0;

	if (end - begin < 3 || end[-1] != ')')
		return NULL;
	if (end[-2] == '(')
		return end - 2;
	for (p = end - 1; p > begin; p--) {
		if (*p == ')')
			depth++;
		else if (*p == '(' && --depth == 0)
			return p;
	}
	p = memchr(begin, '(', (size_t)(end - begin));
	return p != NULL && p > begin ? p : NULL;
}

bool gt_text_line_ends_comment(const char *text, size_t len)
{
	const char *end = trim_end(text, text + len);

	return end - text >= 2 && end[-1] == '/' && end[-2] == '*';
}

/* Cuts off a comment at the end: kernels that print return values put them in one after the ';'. */
static const char *cut_comment(const char *begin, const char *end)
{
	const char *p;

	if (end - begin < 4 || end[-1] != '/' || end[-2] != '*')
		return end;
	for (p = end - 4; p > begin; p--)
		if (p[0] == '/' && p[1] == '*')
			return trim_end(begin, p);
	return end;
}

static void exit_part(const char *p, const char *end, struct gt_text_line *line)
{
	line->kind = GT_TEXT_EXIT;
	p = skip_blanks(p + 1, end);
	if (p == end)
		return;
	if (end - p < 5 || p[0] != '/' || p[1] != '*' || end[-1] != '/' || end[-2] != '*') {
		other(line, "something unknown follows the closing brace");
		return;
	}
	p = skip_blanks(p + 2, end);
	end = trim_end(p, end - 2);
	if (end <= p || has_control(p, (size_t)(end - p))) {
		other(line, "the name behind the closing brace is not a name");
		return;
	}
	line->name = p;
	line->name_len = (size_t)(end - p);
}

/* Parses what follows the duration's bar; p is right after the bar. Sets kind, indent and name
 * for a line that has a duration or, where it may be blank, needs none. */
static void function_part(const char *p, const char *end, bool timed, struct gt_text_line *line)
{
	const char *begin = skip_blanks(p, end);
	const char *stop;

	/* Every writer puts two blanks after its bar; fewer means that blanks were collapsed. */
	line->indent = begin - p >= 2 ? (int32_t)(begin - p) : -1;
	if (begin == end) {
		other(line, "no function follows the columns");
		return;
	}
	if (*begin == '}') {
		exit_part(begin, end, line);
		if (line->kind == GT_TEXT_EXIT && !timed)
			other(line, "a return without a duration");
		return;
	}
	if (begin[0] == '/' && end - begin >= 2 && begin[1] == '*') {
		line->kind = GT_TEXT_EVENT;
		line->goes_on = !gt_text_line_ends_comment(begin, (size_t)(end - begin));
		return;
	}
	if (end[-1] == '/')
		end = cut_comment(begin, end);
	if (end[-1] == '{') {
		line->kind = GT_TEXT_ENTRY;
	} else if (end[-1] == ';') {
		line->kind = GT_TEXT_LEAF;
		if (!timed) {
			other(line, "a call without a duration");
			return;
		}
	} else {
		other(line, "neither a call nor a return");
		return;
	}
	end = trim_end(begin, end - 1);
	stop = name_end(begin, end);
	if (stop == NULL || stop <= begin || has_control(begin, (size_t)(stop - begin))) {
		other(line, "no function name");
		return;
	}
	line->name = begin;
	line->name_len = (size_t)(stop - begin);
}

/* Parses from the duration column on: mark, duration, bar, function. False, with nothing set, if
 * this is no duration column. */
static inline bool duration_on(const char *p, const char *end, struct gt_text_line *line)
{
	uint64_t ns;

	if (p == end)
		return false;
	if (*p == '|') {
		function_part(p + 1, end, false, line);
		return true;
	}
	if (!read_duration(&p, end, &ns))
		return false;
	p = skip_blanks(p, end);
	if (p == end || *p != '|')
		return false;
	line->duration_ns = ns;
	function_part(p + 1, end, true, line);
	return true;
}

/* Returns the number after the last dash of "name-123", or -1. Names may contain blanks and
 * dashes. */
static int64_t task_number(const char *begin, const char *end)
{
	const char *p = end;
	uint64_t pid;

	while (p > begin && is_digit(p[-1]))
		p--;
	if (p == end || p - begin < 2 || p[-1] != '-')
		return -1;
	return read_number(&p, end, PID_DIGITS_MAX, &pid) ? (int64_t)pid : -1;
}

/* Parses " 0)     sh-86      =>    cat-133    ", p after the bracket. */
static bool task_switch(const char *p, const char *end, struct gt_text_line *line)
{
	const char *arrow = p;
	int64_t from;
	int64_t to;

	while ((arrow = memchr(arrow, '=', (size_t)(end - arrow))) != NULL) {
		if (end - arrow > 2 && arrow[1] == '>') {
			const char *left = skip_blanks(p, arrow);
			const char *right = skip_blanks(arrow + 2, end);

			from = task_number(left, trim_end(left, arrow));
			to = task_number(right, end);
			if (from >= 0 && to >= 0) {
				line->kind = GT_TEXT_SWITCH;
				line->pid = from;
				line->next_pid = to;
				return true;
			}
		}
		arrow++;
	}
	return false;
}

/* Is it irqs-off, need-resched, hardirq/softirq, preempt-depth, migrate-disable: "d.h1."? */
static bool is_flags(const char *p, const char *end)
{
	if (end - p < 4 || end - p > 6)
		return false;
	for (; p < end; p++)
		if (memchr(".0123456789abcdefBDNLlnpPhHsSzZX", *p, 31) == NULL)
			return false;
	return true;
}

/* Is it an absolute time: digits with at most one point? */
static bool is_time(const char *p, const char *end)
{
	int points = 0;

	if (p == end || !is_digit(*p))
		return false;
	for (; p < end; p++) {
		if (*p == '.')
			points++;
		else if (!is_digit(*p))
			return false;
	}
	return points <= 1 && is_digit(end[-1]);
}

/* "12.345678" is in seconds; a number without a point is in a unknown unit, such as nanoseconds. */
static uint64_t read_time(const char *p, const char *end)
{
	uint64_t whole = 0, fraction = 0, unit = 1000000000;
	bool has_point = false;

	for (; p < end; p++) {
		if (*p == '.') {
			has_point = true;
		} else if (!has_point) {
			whole = whole * 10 + (uint64_t)(*p - '0');
		} else if (unit > 1) {
			fraction = fraction * 10 + (uint64_t)(*p - '0');
			unit /= 10;
		}
	}
	whole = has_point ? whole * 1000000000 + fraction * unit : whole;
	return whole == GT_TEXT_NO_TIME ? 0 : whole;
}

/* Reads "12)" at *p and moves *p after it. */
static inline bool read_cpu(const char **p, const char *end, struct gt_text_line *line)
{
	const char *q = *p;
	uint64_t cpu;

	if (!read_number(&q, end, CPU_DIGITS_MAX, &cpu) || q == end || *q != ')' ||
	    cpu > GT_TEXT_CPU_MAX)
		return false;
	line->cpu = (int32_t)cpu;
	*p = q + 1;
	return true;
}

/* Parses any choice of columns; p at the line's first byte that is not blank. */
static void columns(const char *p, const char *end, struct gt_text_line *line)
{
	for (int i = 0; i < COLUMNS_MAX; i++) {
		const char *bar;
		const char *stop;
		uint64_t ns;
		const char *q;

		p = skip_blanks(p, end);
		if (line->cpu < 0 && read_cpu(&p, end, line)) {
			if (task_switch(p, end, line))
				return;
			q = p;
			p = skip_blanks(p, end);
		} else {
			q = p;
		}
		bar = p < end ? memchr(p, '|', (size_t)(end - p)) : NULL;
		if (bar == NULL)
			bar = end;
		stop = trim_end(p, bar);
		if (bar < end) {
			if (stop == p) {
				function_part(bar + 1, end, false, line);
				return;
			}
			/* An interrupt begins or ends: its arrow is in the duration's column. */
			if (starts_with(p, stop, "=====") || starts_with(p, stop, "<====")) {
				line->kind = GT_TEXT_EVENT;
				return;
			}
			/* Latency layouts print the time since the trace's beginning before the
			 * CPU. */
			if (line->cpu < 0 && read_duration(&p, stop, &ns) && p == stop) {
				struct gt_text_line ahead = { .cpu = -1 };
				const char *next = skip_blanks(bar + 1, end);

				if (!read_cpu(&next, end, &ahead)) {
					line->duration_ns = ns;
					function_part(bar + 1, end, true, line);
					return;
				}
				p = bar + 1;
				continue;
			}
			if (duration_on(p, end, line))
				return;
			/* Test for a task first: the letters of "sh-37" could be flags, too. */
			if (line->pid < 0) {
				line->pid = task_number(p, stop);
				if (line->pid >= 0) {
					p = bar + 1;
					continue;
				}
			}
			if (is_time(p, stop)) {
				line->time_ns = read_time(p, stop);
				p = bar + 1;
				continue;
			}
			if (is_flags(p, stop)) {
				p = bar + 1;
				continue;
			}
		}
		/* There is no column: the function comes first, in a layout without durations. */
		if (line->cpu < 0 && line->pid < 0) {
			other(line, "not a line of a trace");
			return;
		}
		function_part(q, end, true, line);
		if (line->kind == GT_TEXT_ENTRY || line->kind == GT_TEXT_LEAF ||
		    line->kind == GT_TEXT_EXIT)
			line->kind = GT_TEXT_UNTIMED;
		/* "1.5 ms | f();" has a column that is unknown here, not a name. */
		if (line->kind == GT_TEXT_UNTIMED && line->name != NULL && is_digit(*line->name) &&
		    memchr(line->name, '|', line->name_len) != NULL)
			other(line, "an unknown column");
		return;
	}
	other(line, "too many columns");
}

/* Parses "   cat-91    [000]  d..1.   7.360082: funcgraph_entry: ..." of trace-cmd report,
 * backwards from the colon after the time: task names may contain anything. False: it is another
 * text. */
static bool task_and_cpu(const char *begin, const char *colon, struct gt_text_line *line)
{
	const char *p = colon;
	const char *word;
	uint64_t cpu;

	while (p > begin && (is_digit(p[-1]) || p[-1] == '.'))
		p--;
	if (p == colon || p == begin || p[-1] != ' ')
		return false;
	line->time_ns = read_time(p, colon);
	p = trim_end(begin, p);
	for (word = p; word > begin && word[-1] != ' ';)
		word--;
	if (p > begin && p[-1] != ']') {
		const char *before = trim_end(begin, word);

		if (before > begin && before[-1] == ']') {
			p = before; /* the word was the flags' column */
			for (word = p; word > begin && word[-1] != ' ';)
				word--;
		}
	}
	if (word < p && *word == '[')
		word++;
	if (!read_number(&word, p, CPU_DIGITS_MAX, &cpu) || cpu > GT_TEXT_CPU_MAX)
		return false;
	for (p = word; p > begin && (is_digit(p[-1]) || p[-1] == '[');)
		p--;
	p = trim_end(begin, p);
	if (p > begin && p[-1] == ')') { /* record-tgid's column, "(  91)" */
		while (p > begin && p[-1] != '(')
			p--;
		p = trim_end(begin, p > begin ? p - 1 : p);
	}
	line->pid = task_number(begin, p);
	line->cpu = (int32_t)cpu;
	return line->pid >= 0;
}

/* Parses lines that begin with a task: trace-cmd's calls, and events of any kind. */
static bool task_line(const char *line_begin, const char *p, const char *end,
		      struct gt_text_line *line)
{
	static const char mark[] = ": funcgraph_e";
	const char *colon = memmem(p, (size_t)(end - p), mark, sizeof mark - 1);
	bool entry = false;

	if (colon != NULL && task_and_cpu(p, colon, line)) {
		p = colon + sizeof mark - 1;
		if (starts_with(p, end, "ntry:")) {
			p += 5;
			entry = true;
		} else if (starts_with(p, end, "xit:")) {
			p += 4;
		} else {
			other(line, "an unknown funcgraph event");
			return true;
		}
		if (!duration_on(skip_blanks(p, end), end, line))
			other(line, "a funcgraph event without its duration column");
		else if (line->kind != GT_TEXT_OTHER && entry != (line->kind != GT_TEXT_EXIT))
			other(line, "a funcgraph event that is neither entry nor exit");
		return true;
	}
	/* "comm-12 [000] d..1. 12.345678: event: text", "comm-12 [000] 12.3: f <-g" */
	for (colon = p; (colon = memchr(colon, ':', (size_t)(end - colon))) != NULL; colon++) {
		if (colon > p && is_digit(colon[-1]) && colon + 1 < end && colon[1] == ' ' &&
		    task_and_cpu(p, colon, line)) {
			line->kind = GT_TEXT_EVENT;
			line->event = (int32_t)(colon + 1 - line_begin);
			return true;
		}
		if (colon - p > 128)
			break;
	}
	return false;
}

/* "CPU:1 [LOST 61190 EVENTS]", trace-cmd's "CPU:1 [61190 EVENTS DROPPED]", "CPU 1 is empty". */
static bool cpu_line(const char *p, const char *end, struct gt_text_line *line)
{
	uint64_t number;

	p += 3;
	if (p == end || (*p != ':' && *p != ' '))
		return false;
	p++;
	if (!read_number(&p, end, CPU_DIGITS_MAX, &number) || number > GT_TEXT_CPU_MAX)
		return false;
	line->cpu = (int32_t)number;
	if (starts_with(p, end, " is empty")) {
		line->kind = GT_TEXT_HEADER;
		return true;
	}
	if (!starts_with(p, end, " ["))
		return false;
	p += 2;
	if (starts_with(p, end, "LOST "))
		p += 5;
	if (read_number(&p, end, 18, &line->lost))
		p = skip_blanks(p, end);
	if (!starts_with(p, end, "EVENTS"))
		return false;
	line->kind = GT_TEXT_LOST;
	return true;
}

static void header(const char *p, const char *end, struct gt_text_line *line)
{
	static const char started[] = "##### CPU ";
	static const char tracer[] = "# tracer: ";
	uint64_t cpu;

	line->kind = GT_TEXT_HEADER;
	if (starts_with(p, end, tracer)) {
		line->kind = GT_TEXT_TRACER;
		line->name = skip_blanks(p + sizeof tracer - 1, end);
		line->name_len = (size_t)(end - line->name);
	} else if (starts_with(p, end, started)) {
		p += sizeof started - 1;
		if (read_number(&p, end, CPU_DIGITS_MAX, &cpu) && cpu <= GT_TEXT_CPU_MAX &&
		    starts_with(p, end, " buffer started")) {
			line->kind = GT_TEXT_STARTED;
			line->cpu = (int32_t)cpu;
		}
	}
}

static bool is_rule(const char *p, const char *end)
{
	if (end - p < 4)
		return false;
	for (; p < end; p++)
		if (*p != '-')
			return false;
	return true;
}

static void uncommon(const char *line_begin, const char *p, const char *end,
		     struct gt_text_line *line)
{
	switch (*p) {
	case '#':
		header(p, end, line);
		return;
	case '-':
		if (is_rule(p, end)) {
			line->kind = GT_TEXT_BLANK;
			return;
		}
		break;
	case '(':
		if (starts_with(p, end, "(Overruns: ")) {
			line->kind = GT_TEXT_EVENT;
			return;
		}
		break;
	case 'C':
		if (starts_with(p, end, "CPU") && cpu_line(p, end, line))
			return;
		line->cpu = -1;
		line->lost = 0;
		break;
	case 'c':
	case 'v':
		if (starts_with(p, end, "cpus=") || starts_with(p, end, "version = ")) {
			line->kind = GT_TEXT_HEADER;
			return;
		}
		break;
	default:
		break;
	}
	if (!is_digit(*p) && task_line(line_begin, p, end, line))
		return;
	line->cpu = -1;
	line->pid = -1;
	columns(p, end, line);
	if (is_digit(*p) && line->kind == GT_TEXT_OTHER && line->cpu < 0) {
		struct gt_text_line again = { .cpu = -1,
					      .pid = -1,
					      .next_pid = -1,
					      .indent = -1,
					      .time_ns = GT_TEXT_NO_TIME,
					      .event = -1 };

		if (task_line(line_begin, p, end, &again))
			*line = again;
	}
}

void gt_text_line_parse(const char *text, size_t len, struct gt_text_line *line)
{
	const char *end = text + len;
	const char *p;

	*line = (struct gt_text_line){ .cpu = -1,
				       .pid = -1,
				       .next_pid = -1,
				       .indent = -1,
				       .time_ns = GT_TEXT_NO_TIME,
				       .event = -1 };
	if (end > text && end[-1] == '\r')
		end--;
	end = trim_end(text, end);
	p = skip_blanks(text, end);
	if (p == end) {
		line->kind = GT_TEXT_BLANK;
		return;
	}
	if (is_digit(*p)) {
		if (read_cpu(&p, end, line)) {
			p = skip_blanks(p, end);
			if (duration_on(p, end, line))
				return;
			line->cpu = -1;
		}
		p = skip_blanks(text, end);
	} else if (*p == '|' || memchr("+!#*@$", *p, 6) != NULL) {
		/* Without a CPU column the duration comes first. '#' may be a mark or a comment. */
		if (duration_on(p, end, line))
			return;
	}
	uncommon(text, p, end, line);
}

bool gt_text_tail_names(const char *tail, size_t tail_len, const char *name, size_t name_len)
{
	if (tail_len < name_len || memcmp(tail, name, name_len) != 0)
		return false;
	return tail_len == name_len || tail[name_len] == ' ';
}
