/* SPDX-License-Identifier: MIT */
/* The page as it was built: one HTML file with its style and scripts (tools/bundle_page). */
#ifndef GT_EXPORT_PAGE_BUILT_IN_H
#define GT_EXPORT_PAGE_BUILT_IN_H

/* From `gt_page_page` to `gt_page_page_end`. Where GT_PAGE_MARK stands go the figures, as JSON in which
 * no '<' is; nothing there: the page asks its server. */
extern const char gt_page_page[];
extern const char gt_page_page_end[];

#define GT_PAGE_MARK "@@data@@"

#endif
