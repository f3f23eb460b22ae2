/* SPDX-License-Identifier: MIT */
/*
 * The page at `/` and the questions that it asks below `/api/`, over HTTP. What is looked at is read
 * when the page is first asked for, by a thread of its own; until it is read, answers say how far that
 * is: {"progress": 0.4}.
 */
#ifndef GT_SERVE_PAGE_H
#define GT_SERVE_PAGE_H

#include <stdbool.h>
#include "export/page/page.h"

struct MHD_Connection;
struct gt_page_server;

/* The options' target is called by the reading thread, and by those of connections, one at a time.
 * Strings of the options must outlive it. GT_ENOMEM. */
int gt_page_server_create(const struct gt_page_options *options, struct gt_page_server **server,
			  struct gt_message *message);
/* No request may be under way. Ends the reading. */
void gt_page_server_destroy(struct gt_page_server *server);

/* Is this path the page's, or one of its questions'? */
bool gt_page_server_has(const char *url);
/* Answers GET and HEAD of such a path: MHD_YES or MHD_NO. */
int gt_page_server_answer(struct gt_page_server *server, struct MHD_Connection *connection,
			  const char *url);

#endif
