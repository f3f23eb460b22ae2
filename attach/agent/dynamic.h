/* SPDX-License-Identifier: MIT */
/*
 * Dynamic probes (core/trace/probe.h) of the files in a catalog: each is resolved in the files that it
 * names, those that are known and those that come later, and is a probe of theirs from then on. Under
 * the session's lock.
 */
#ifndef GT_ATTACH_DYNAMIC_H
#define GT_ATTACH_DYNAMIC_H

#include "attach/agent/catalog.h"
#include "core/trace/probe.h"

/* A probe that was set. */
struct gt_dynamic {
	char *text; /* as it was given; the definition points into it */
	struct gt_probe_definition definition;
	char *path; /* of the file */
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	uint64_t offset;	  /* in the file, found out from the symbol */
	uint64_t address;	  /* the object's */
	struct gt_probe **probes; /* made of it, one a file */
	uint32_t *events;	  /* … and the number of each in records */
	uint32_t probe_count;
	bool removed;
};

/*
 * Sets a probe. path: of the file that `definition` means, NULL: it says so itself. The place is looked
 * at in the file itself: GT_ENOENT, GT_EINVAL with *error (at: in `text`); GT_EILSEQ-like ones are
 * GT_EINVAL, too. GT_ENOMEM. *dynamic: what was made; its event is recorded where it is asked for.
 */
int gt_dynamics_add(struct gt_catalog *catalog, const char *text, size_t bytes,
		    enum gt_probe_kinds kinds, const char *path, struct gt_dynamic **dynamic,
		    struct gt_probe_error *error, struct gt_message *message);
/* It is not recorded any more. What has its number keeps its name. */
void gt_dynamics_remove(struct gt_catalog *catalog, struct gt_dynamic *dynamic);

/* A file has come: those that are set for it become its probes. GT_ENOMEM. */
int gt_dynamics_opened(struct gt_catalog *catalog, struct gt_catalog_file *file);
void gt_dynamics_fini(struct gt_catalog *catalog);

#endif
