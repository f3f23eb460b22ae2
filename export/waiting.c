/* SPDX-License-Identifier: MIT */
/*
 * Recognises names of functions that sleep or wait, by the words in them.
 */
#include "export/waiting.h"

#include <string.h>

#define WORD_MAX 32

/* Whole words. A '*' at the beginning stands for any letters: "*sleep" matches usleep,
 * nanosleep. */
static const char *const words[] = {
	"*sleep",    "sleeping",     "sleeper",	    "wait",	   "waits",	"waiting",
	"waiter",    "wait4",	     "waitid",	    "waitpid",	   "waitqueue", "sigwait",
	"timedwait", "sigtimedwait", "sigwaitinfo", "semtimedop",  "poll",	"polling",
	"epoll",     "ppoll",	     "pollfds",	    "select",	   "pselect",	"pselect6",
	"selectors", "futex",	     "idle",	    "nap",	   "pause",	"sigsuspend",
	"suspend",   "recv",	     "recvfrom",    "recvmsg",	   "recvmmsg",	"accept",
	"accept4",   "join",	     "timedjoin",   "clockjoin",   "tryjoin",	"cond",
	"condvar",   "condwait",     "park",	    "parked",	   "halt",	"hlt",
	"mwait",     "schedule",     "rendezvous",  "barrierwait",
};

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool word_waits(const char *word, size_t len)
{
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		const char *known = words[i];
		size_t known_len;

		if (known[0] == '*') {
			known_len = strlen(known + 1);
			if (len >= known_len &&
			    memcmp(word + len - known_len, known + 1, known_len) == 0)
				return true;
			continue;
		}
		known_len = strlen(known);
		if (len == known_len && memcmp(word, known, len) == 0)
			return true;
	}
	return false;
}

bool gt_name_waits(const char *name, size_t len)
{
	char word[WORD_MAX];
	size_t used = 0;
	bool too_long = false;
	const char *parameters = memchr(name, '(', len);

	if (parameters != NULL && parameters > name)
		len = (size_t)(parameters - name);
	for (size_t i = 0; i <= len; i++) {
		char c = i < len ? name[i] : '_';
		bool letter = is_lower(c) || is_upper(c) || is_digit(c);
		/* A word begins at B in aB, and at the last capital of ABc. */
		bool begins = is_upper(c) && i > 0 &&
			      (is_lower(name[i - 1]) ||
			       (i + 1 < len && is_lower(name[i + 1]) && is_upper(name[i - 1])));

		if (!letter || begins) {
			if (!too_long && used > 0 && word_waits(word, used))
				return true;
			used = 0;
			too_long = false;
		}
		if (!letter)
			continue;
		if (used == sizeof word)
			too_long = true;
		else
			word[used++] = is_upper(c) ? (char)(c - 'A' + 'a') : c;
	}
	return false;
}
