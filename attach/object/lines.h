/* SPDX-License-Identifier: MIT */
/*
 * Source lines of an object's functions: what DWARF says of them (.debug_info, .debug_line), in the
 * file itself or in its separate debug file. libdw reads it (elfutils); a unit's when one of its
 * addresses is asked for. The files are hostile as all objects: what makes no sense has no lines.
 *
 * One thread at a time for each struct gt_lines.
 */
#ifndef GT_ATTACH_LINES_H
#define GT_ATTACH_LINES_H

#include <stddef.h>
#include <stdint.h>

struct gt_lines;

/* The file that is asked for, as it was when its code ran. */
struct gt_lines_of {
	const char *path;
	const uint8_t *build_id; /* `build_id_bytes` of them; 0: the file has none */
	uint32_t build_id_bytes;
	uint64_t until_ns; /* without a build ID: no change since then (ns since 1970) */
};

/*
 * GT_ENOENT: the file is gone or is another one by now and there is no debug file of its build ID, or
 * neither has line tables; GT_ENOMEM. *lines is NULL then.
 */
int gt_lines_open(const struct gt_lines_of *of, struct gt_lines **lines);

/* Where the function that begins at an address (the object's own) is declared or, where nothing says
 * that, which line its code comes from. *file, a path, is the lines' own.
 * GT_ENOENT. */
int gt_lines_at(struct gt_lines *lines, uint64_t address, const char **file, uint32_t *line);

/* When the file with the code was last written, ns since 1970; 0: it is gone. */
uint64_t gt_lines_made_ns(const struct gt_lines *lines);

void gt_lines_close(struct gt_lines *lines);

/* Path of the separate debug file of a build ID, whether it is there or not: below /usr/lib/debug, or, where
 * there is none, what debuginfod's client has fetched. GT_ENOENT: no such path can be. */
int gt_debug_path(const uint8_t *build_id, uint32_t build_id_bytes, char *path, size_t bytes);

#endif
