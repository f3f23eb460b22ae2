/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "attach/process/pages.h"
#include "attach/process/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int gt_pages_open(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)gt_proc_with_memory(pid));
	return open(path, O_RDONLY | O_CLOEXEC);
}

void gt_pages_read(int pagemap, uint64_t address, uint64_t *entries, size_t count)
{
	const size_t bytes = count * sizeof(*entries);

	if (pread(pagemap, entries, bytes, (off_t)(address / GT_PAGE_BYTES * sizeof(*entries))) !=
	    (ssize_t)bytes)
		memset(entries, 0xff, bytes);
}
