/* SPDX-License-Identifier: MIT */
/* Any path and any bytes written to it, on a made-up target: taken or refused with a reason,
 * nothing stays open, and reading in pieces gives what reading at once does. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/fake_control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t read_all(const struct gt_control_node *node, size_t piece, char *text, size_t room)
{
	struct gt_control_handle handle;
	struct gt_message message;
	size_t total = 0;
	int64_t got;

	if (gt_control_open(&handle, node, GT_CONTROL_READ, &message) != 0)
		return 0;
	do {
		got = gt_control_read(&handle, text + total,
				      piece < room - total ? piece : room - total, &message);
		if (got > 0)
			total += (size_t)got;
	} while (got > 0 && total < room);
	gt_control_close(&handle, &message);
	return total;
}

/* The path, a newline, the value. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char whole[16384];
	static char pieces[16384];
	const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
	size_t path_bytes = end != NULL ? (size_t)(end - data) : size;
	size_t value_bytes = end != NULL ? size - path_bytes - 1 : 0;
	struct fake_control fake;
	struct gt_control_node node;
	struct gt_message message;
	char *path = malloc(path_bytes + 1);
	char *value = malloc(value_bytes + 1);

	memcpy(path, data, path_bytes);
	if (value_bytes > 0)
		memcpy(value, end + 1, value_bytes);
	fake_control_init(&fake, GT_CONTROL_PROGRAM);
	fake.pipe_ended = true;
	if (gt_control_find(&fake.control, path, path_bytes, &node) == 0) {
		size_t bytes;

		message.text[0] = '\0';
		/* The made-up target's lists are short. */
		if (value_bytes < 64 &&
		    gt_control_put(&node, true, value, value_bytes, &message) != 0 &&
		    message.text[0] == '\0')
			abort();
		bytes = read_all(&node, sizeof(whole), whole, sizeof(whole));
		fake.pipe_at = 0;
		if (read_all(&node, 3, pieces, sizeof(pieces)) != bytes ||
		    memcmp(whole, pieces, bytes) != 0)
			abort();
	}
	if (fake.opened != 0)
		abort();
	free(path);
	free(value);
	return 0;
}
