/* SPDX-License-Identifier: MIT */
/*
 * Synthetic events of a session (core/trace/synthetic.h): defined by a line, made by actions of histograms in the
 * traced processes. None is taken out of the list, for records may have its number. Under the session's lock.
 */
#ifndef GT_ATTACH_AGENT_SYNTHETICS_H
#define GT_ATTACH_AGENT_SYNTHETICS_H

#include "attach/agent/catalog.h"
#include "core/trace/synthetic.h"

struct gt_synthetic_event {
	struct gt_synthetic definition; /* its format has the number */
	bool removed;
	bool told; /* the sink knows it */
};

/* Defines the event of a line. GT_EINVAL, GT_EEXIST: *error says what is wrong, and where; GT_ENOSPC: there are too many; GT_ENOMEM. */
int gt_synthetics_add(struct gt_catalog *catalog, const char *text, size_t bytes,
		      struct gt_probe_error *error, struct gt_message *message);
/* The event of that name which is not removed; NULL: there is none. */
struct gt_synthetic_event *gt_synthetics_find(const struct gt_catalog *catalog, const char *name);
/* Fills in *event for event `number`, removed or not. GT_ENOENT: there is none. */
int gt_synthetics_event(const struct gt_catalog *catalog, uint32_t number,
			struct gt_event_format *event);
void gt_synthetics_fini(struct gt_catalog *catalog);

#endif
