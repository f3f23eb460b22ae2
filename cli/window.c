/* SPDX-License-Identifier: MIT */
/* Windows of time: see window.h. */
#include "cli/window.h"

#include <string.h>

#include "cli/looking.h"
#include "cli/values.h"
#include "core/trace/message.h"

static int parse_side(const char *text, size_t length, struct gt_window_side *side,
		      struct gt_message *message)
{
	char copy[64];

	if (length == 0)
		return 0;
	side->set = true;
	if (*text == '+') {
		side->relative = true;
		text++;
		length--;
	}
	if (length >= sizeof(copy))
		return gt_fail(message, GT_EINVAL, "'%s' is too long for a time", text);
	memcpy(copy, text, length);
	copy[length] = '\0';
	return gt_value_time(copy, 1000000000, &side->ns, message);
}

int gt_window_parse(const char *text, struct gt_window *window, struct gt_message *message)
{
	const char *dash = strchr(text, '-');
	int error;

	if (dash == NULL || strchr(dash + 1, '-') != NULL || !text[1])
		return gt_fail(message, GT_EINVAL,
			       "time '%s' is not FROM-TO, such as 7.5-7.6 or +10ms-+20ms", text);
	error = parse_side(text, (size_t)(dash - text), &window->from, message);
	if (error == 0)
		error = parse_side(dash + 1, strlen(dash + 1), &window->to, message);
	if (error == 0 && window->from.set && window->to.set &&
	    window->from.relative == window->to.relative && window->to.ns < window->from.ns)
		return gt_fail(message, GT_EINVAL, "time '%s' ends before it begins", text);
	return error;
}

void gt_window_set(const struct gt_window *window, struct gt_recording *recording,
		   struct gt_filter *filter)
{
	uint64_t start = gt_look_start_ns(recording);
	const struct gt_window_side *from = &window->from, *to = &window->to;

	if (from->set)
		filter->from_ns = from->relative ? start + from->ns : from->ns;
	if (to->set)
		filter->to_ns = to->relative ? start + to->ns : to->ns;
	if (to->set && filter->to_ns == 0)
		filter->to_ns = 1; /* 0 stands for no end */
}
