/* SPDX-License-Identifier: MIT */
/*
 * The shared libraries that a program will be started with, found as ld.so(8) finds them: the
 * object's RPATH, LD_LIBRARY_PATH, RUNPATH, /etc/ld.so.cache, the default directories. Nothing is
 * run, so what a library loads by dlopen is not among them.
 */
#ifndef GT_ATTACH_LIBRARIES_H
#define GT_ATTACH_LIBRARIES_H

#include "attach/object/object.h"

struct gt_library {
	char *path;  /* NULL: not found */
	char *name;  /* as DT_NEEDED has it; of the first, the program: its path */
	bool system; /* in a directory of the system's libraries */
};

struct gt_libraries {
	struct gt_library *list; /* breadth first, as they are loaded; the loader last */
	uint32_t count;
};

/* All libraries that the program needs, without itself; each once. GT_ENOMEM. Libraries that cannot
 * be opened or read are listed too; what they need in turn stays unknown. */
int gt_libraries_find(const struct gt_object *program, struct gt_libraries *libraries,
		      struct gt_message *message);
void gt_libraries_free(struct gt_libraries *libraries);

#endif
