/* SPDX-License-Identifier: MIT */
/* A directory for one test, with the path of a recording in it. Include behind cmocka.h, in one file of a
 * program. */
#ifndef GT_TESTS_UNIT_RECORDING_DIRECTORY_H
#define GT_TESTS_UNIT_RECORDING_DIRECTORY_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[64];
static char path[128];

static inline int make_directory(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/test_recording.XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/graftrace.data", directory);
	return 0;
}

static inline int remove_directory(void **state)
{
	char old[160];

	(void)state;
	snprintf(old, sizeof(old), "%s.old", path);
	unlink(old);
	unlink(path);
	return rmdir(directory);
}

#endif
