/* SPDX-License-Identifier: MIT */
/*
 * Which pages of a process's memory are there (/proc/PID/pagemap, see proc(5)). Most of a large mapping was never
 * touched; and who reads a page that a handler of userfaultfd(2) fills in waits for that handler, which may be a thread
 * that was stopped.
 */
#ifndef GT_ATTACH_PAGES_H
#define GT_ATTACH_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GT_PAGE_BYTES 4096u

/* To be closed by close(2); -1: it cannot be read, then all pages are taken to be there. */
int gt_pages_open(pid_t pid);

/* The entries of `count` pages from the one that `address` lies in. */
void gt_pages_read(int pagemap, uint64_t address, uint64_t *entries, size_t count);

/* In memory, or swapped out. */
static inline bool gt_page_is_there(uint64_t entry)
{
	return entry >> 62 != 0;
}

static inline bool gt_page_is_resident(uint64_t entry)
{
	return entry >> 63 != 0;
}

#endif
