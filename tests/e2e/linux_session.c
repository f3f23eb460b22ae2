/* SPDX-License-Identifier: MIT */
/*
 * Types a list of steps into a directory of control files, and prints what came of each: the same
 * program is a real kernel's first process and works on the mount of a traced program.
 *
 *	linux_session DIRECTORY STEPS TO FROM    (as process 1: /tracing /steps)
 *
 * A step is a line:
 *	echo TEXT > FILE, >> FILE, <> FILE   open with O_TRUNC, O_APPEND or neither, write TEXT and a
 *	printf TEXT > FILE                   line feed, or TEXT alone (\n \t \0 \xNN), until all is
 *	                                     taken
 *	cat FILE | head N FILE | pipe FILE   read to the end, N lines, to the end without waiting
 *	hold N FILE, take N, drop N          open without waiting, read once, close
 *	mkdir, rmdir, ls, mode PATH
 *	calls N                              poll() of N eventfds; or N is written to TO, FROM
 *	                                     answers
 *	rename NAME SCORE                    the same of PR_SET_NAME and /proc/self/oom_score_adj
 * Other lines are passed over. Of a step is printed `@LINE<tab>RESULT<tab>TEXT`: RESULT is
 * ok, the numbers that write returned, or an errno's name; what is not printable in TEXT is escaped.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define HELD	    10
#define POLLED_MOST 16

static char text[1 << 18];
static int line_number;
static int held[HELD];
static int calls_to = -1;
static int calls_from = -1;

static void say(const char *result, size_t bytes)
{
	printf("@%d\t%s\t", line_number, result);
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\n')
			fputs("\\n", stdout);
		else if (c == '\\')
			fputs("\\\\", stdout);
		else if (c < ' ' || c > '~')
			printf("\\x%02x", c);
		else
			putchar(c);
	}
	putchar('\n');
	fflush(stdout);
}

static void say_done(int returned)
{
	say(returned < 0 ? strerrorname_np(errno) : "ok", 0);
}

/* Takes the escapes out of a text, in its place. */
static size_t unescape(char *from)
{
	char *start = from;
	char *to = from;

	for (; *from != '\0'; from++) {
		char digits[3] = "";

		if (*from != '\\') {
			*to++ = *from;
			continue;
		}
		switch (*++from) {
		case 'n':
			*to++ = '\n';
			break;
		case 't':
			*to++ = '\t';
			break;
		case '0':
			*to++ = '\0';
			break;
		case 'x':
			memcpy(digits, from + 1, 2);
			*to++ = (char)strtol(digits, NULL, 16);
			from += 2;
			break;
		default:
			*to++ = *from;
		}
	}
	return (size_t)(to - start);
}

/* `TEXT > FILE`: as a shell's echo, which goes on behind a short count. */
static void write_file(char *rest, bool line_feed)
{
	char result[256] = "";
	char *sign = strstr(rest, "> ");
	int flags = O_WRONLY;
	size_t bytes;
	int file;

	if (sign == NULL || (sign > rest && sign[-1] == '<'))
		sign = strstr(rest, "<> ");
	else if (sign > rest && sign[-1] == '>')
		sign--;
	if (sign == NULL) {
		say("no file", 0);
		return;
	}
	flags |= sign[0] == '<' ? 0 : sign[1] == '>' ? O_APPEND : O_TRUNC;
	file = open(strchr(sign, ' ') + 1, flags);
	if (file < 0) {
		snprintf(result, sizeof(result), "open %s", strerrorname_np(errno));
		say(result, 0);
		return;
	}
	/* one blank stands between the text and the sign */
	sign[sign > rest ? -1 : 0] = '\0';
	bytes = unescape(rest);
	if (line_feed)
		rest[bytes++] = '\n';
	for (size_t at = 0; at < bytes && strlen(result) < 200;) {
		ssize_t taken = write(file, rest + at, bytes - at);
		size_t end = strlen(result);

		if (taken < 0)
			snprintf(result + end, sizeof(result) - end, "%s ", strerrorname_np(errno));
		else
			snprintf(result + end, sizeof(result) - end, "%zd ", taken);
		if (taken <= 0)
			break;
		at += (size_t)taken;
	}
	if (close(file) < 0)
		strcat(result, "close ");
	say(result, 0);
}

static void read_file(const char *path, int flags, int lines)
{
	int file = open(path, O_RDONLY | flags);
	const char *result = "ok";
	size_t bytes = 0;
	int seen = 0;

	if (file < 0) {
		say_done(-1);
		return;
	}
	while (bytes < sizeof(text)) {
		ssize_t got = read(file, text + bytes, sizeof(text) - bytes);

		if (got < 0)
			result = strerrorname_np(errno);
		if (got <= 0)
			break;
		for (size_t end = bytes + (size_t)got; bytes < end && (lines == 0 || seen < lines);)
			seen += text[bytes++] == '\n';
		if (lines != 0 && seen == lines)
			break;
	}
	close(file);
	say(result, bytes);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list(const char *path)
{
	static char *names[1024];
	size_t count = 0;
	size_t bytes = 0;
	struct dirent *entry;
	DIR *directory = opendir(path);

	if (directory == NULL) {
		say_done(-1);
		return;
	}
	while ((entry = readdir(directory)) != NULL && count < 1024)
		if (entry->d_name[0] != '.')
			names[count++] = strdup(entry->d_name);
	closedir(directory);
	qsort(names, count, sizeof(names[0]), compare);
	for (size_t i = 0; i < count; i++) {
		bytes += (size_t)snprintf(text + bytes, sizeof(text) - bytes, "%s\n", names[i]);
		free(names[i]);
	}
	say("ok", bytes);
}

static void show_mode(const char *path)
{
	struct stat state;

	if (stat(path, &state) != 0)
		say_done(-1);
	else
		say("ok",
		    (size_t)sprintf(text, "%o %lld\n", state.st_mode, (long long)state.st_size));
}

static void make_calls(int count)
{
	static struct pollfd polled[POLLED_MOST];
	char answer[16];

	if (calls_to >= 0) {
		if (dprintf(calls_to, "%d\n", count) < 0 ||
		    read(calls_from, answer, sizeof(answer)) <= 0)
			exit(3);
		return;
	}
	for (int i = 0; i < count; i++) {
		if (polled[i].fd == 0)
			polled[i].fd = eventfd(0, 0);
		polled[i].events = POLLIN;
	}
	poll(polled, (nfds_t)count, 0);
}

static void rename_as(const char *name, const char *score)
{
	char answer[16];
	int file;

	if (calls_to >= 0) {
		if (dprintf(calls_to, "rename %s %s\n", name, score) < 0 ||
		    read(calls_from, answer, sizeof(answer)) <= 0)
			exit(3);
		return;
	}
	file = open("/proc/self/oom_score_adj", O_WRONLY);
	if (file < 0 || write(file, score, strlen(score)) < 0)
		perror("oom_score_adj");
	close(file);
	prctl(PR_SET_NAME, name);
}

static void step(char *line)
{
	char *rest = strchr(line, ' ');
	int number;

	if (rest == NULL)
		return;
	*rest++ = '\0';
	number = atoi(rest);
	if (strcmp(line, "echo") == 0 || strcmp(line, "printf") == 0)
		write_file(rest, *line == 'e');
	else if (strcmp(line, "cat") == 0)
		read_file(rest, 0, 0);
	else if (strcmp(line, "head") == 0)
		read_file(strchr(rest, ' ') + 1, 0, number);
	else if (strcmp(line, "pipe") == 0)
		read_file(rest, O_NONBLOCK, 0);
	else if (strcmp(line, "mkdir") == 0)
		say_done(mkdir(rest, 0755));
	else if (strcmp(line, "rmdir") == 0)
		say_done(rmdir(rest));
	else if (strcmp(line, "ls") == 0)
		list(rest);
	else if (strcmp(line, "mode") == 0)
		show_mode(rest);
	else if (strcmp(line, "hold") == 0)
		say_done(held[number % HELD] = open(strchr(rest, ' ') + 1, O_RDONLY | O_NONBLOCK));
	else if (strcmp(line, "drop") == 0)
		say_done(close(held[number % HELD]));
	else if (strcmp(line, "take") == 0) {
		ssize_t got = read(held[number % HELD], text, sizeof(text));

		say(got < 0 ? strerrorname_np(errno) : "ok", got < 0 ? 0 : (size_t)got);
	} else if (strcmp(line, "rename") == 0) {
		char *score = strchr(rest, ' ');

		*score++ = '\0';
		rename_as(rest, score);
		say("ok", 0);
	} else if (strcmp(line, "calls") == 0) {
		make_calls(number < POLLED_MOST ? number : POLLED_MOST);
		say("ok", 0);
	}
}

int main(int count, char **words)
{
	bool first = getpid() == 1;
	static char line[4096];
	FILE *steps;

	if (first) {
		mkdir("/tracing", 0755);
		mount("none", "/tracing", "tracefs", 0, NULL);
		mkdir("/proc", 0755);
		mount("none", "/proc", "proc", 0, NULL);
	} else if (count != 5) {
		fprintf(stderr, "usage: linux_session DIRECTORY STEPS TO FROM\n");
		return 2;
	} else {
		calls_to = atoi(words[3]);
		calls_from = atoi(words[4]);
	}
	steps = fopen(first ? "/steps" : words[2], "r");
	if (steps == NULL || chdir(first ? "/tracing" : words[1]) != 0) {
		perror("linux_session");
		return 1;
	}
	while (fgets(line, sizeof(line) / 2, steps) != NULL) {
		line_number++;
		line[strcspn(line, "\n")] = '\0';
		step(line);
	}
	puts("@end");
	fflush(stdout);
	if (first) {
		tcdrain(1); /* the console's bytes go out */
		reboot(RB_POWER_OFF);
	}
	return 0;
}
