/* SPDX-License-Identifier: MIT */
/*
 * Matching globs without recursion: on a mismatch only the last * takes one character more, which
 * is enough, as an earlier * that took more could match nothing that the last one cannot.
 */
#include "core/trace/glob.h"

#include <stddef.h>

/* One character against the set at `set` (behind its '['). Returns what follows the ']', or NULL if
 * the set is not closed. A ']' that comes first is a member. */
static const char *match_set(const char *set, unsigned char c, bool *matches)
{
	bool inverted = *set == '!' || *set == '^';
	bool found = false;
	const char *p = set + inverted;
	const char *first = p;
	while (*p && (*p != ']' || p == first)) {
		unsigned char low, high;
		if (*p == '\\' && p[1])
			p++;
		low = high = (unsigned char)*p++;
		if (p[0] == '-' && p[1] && p[1] != ']') {
			p++;
			if (*p == '\\' && p[1])
				p++;
			high = (unsigned char)*p++;
		}
		if (low <= c && c <= high)
			found = true;
	}
	if (!*p)
		return NULL;
	*matches = found != inverted;
	return p + 1;
}

bool gt_glob_match(const char *glob, const char *text)
{
	const char *star = NULL, *star_text = NULL;
	for (;;) {
		const char *next = NULL;
		bool matches = false;
		if (*glob == '*') {
			star = ++glob;
			star_text = text;
			if (!*star)
				return true;
			continue;
		}
		if (!*text)
			return !*glob;
		if (*glob == '?') {
			matches = true;
			next = glob + 1;
		} else if (*glob == '[') {
			next = match_set(glob + 1, (unsigned char)*text, &matches);
		} else if (*glob == '\\' && glob[1]) {
			matches = glob[1] == *text;
			next = glob + 2;
		}
		if (next == NULL) { /* a plain character, or a '[' that nothing closes */
			matches = *glob == *text;
			next = glob + 1;
		}
		if (matches) {
			glob = next;
			text++;
		} else if (star != NULL) {
			glob = star;
			text = ++star_text;
		} else {
			return false;
		}
	}
}
