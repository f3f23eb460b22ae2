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
 * Sets a probe. text: its line. path: the file for a place without a path; NULL: none. The place is checked in the file
 * itself. GT_EINVAL, GT_ENOENT, GT_EEXIST: *error says what is wrong, and where in `text`; GT_ENOMEM, with the message.
 * *dynamic: the new probe, which belongs to the catalog; its event is recorded where it is asked for.
 */
int gt_dynamics_add(struct gt_catalog *catalog, const char *text, size_t bytes,
		    enum gt_probe_kinds kinds, const char *path, struct gt_dynamic **dynamic,
		    struct gt_probe_error *error, struct gt_message *message);
/* Removes a probe: it is not recorded any more. It stays in the catalog, since records may have its number. */
void gt_dynamics_remove(struct gt_catalog *catalog, struct gt_dynamic *dynamic);

/* Call when a file was opened: adds the dynamic probes that are set for it to the file's. GT_ENOMEM. */
int gt_dynamics_opened(struct gt_catalog *catalog, struct gt_catalog_file *file);
void gt_dynamics_fini(struct gt_catalog *catalog);

#endif
