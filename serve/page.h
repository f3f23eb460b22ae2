/* SPDX-License-Identifier: MIT */
/*
 * The page at `/` and the questions that it asks below `/api/`, over HTTP. What is looked at is read
 * when the page is first asked for, by a thread of its own; until it is read, answers say how far that
 * is: {"progress": 0.4}. Beside the questions of export/page/page.h:
 *
 *   about             {"live": is it a program that runs?}
 *   look seconds      reads anew, for what has happened since; of a running program the last seconds,
 *                     0: all that there is. Until that is read, answers are of what was read before.
 *   progress          {"progress": of what is being read, "looks": how many were read}
 */
#ifndef GT_SERVE_PAGE_H
#define GT_SERVE_PAGE_H

#include <stdbool.h>
#include "export/page/page.h"

struct MHD_Connection;
struct gt_page_server;

struct gt_page_source {
	void *user;
	bool live;
	/* What is to be read now. Its target is called by the reading thread, and by those of
	 * connections, one at a time; it and its strings must live as long as the server. */
	int (*prepare)(void *user, struct gt_page_options *options);
};

/* GT_ENOMEM. */
int gt_page_server_create(const struct gt_page_source *source, struct gt_page_server **server,
			  struct gt_message *message);
/* No request may be under way. Ends the reading. */
void gt_page_server_destroy(struct gt_page_server *server);

/* Is this path the page's, or one of its questions'? */
bool gt_page_server_has(const char *url);
/* Answers GET and HEAD of such a path: MHD_YES or MHD_NO. */
int gt_page_server_answer(struct gt_page_server *server, struct MHD_Connection *connection,
			  const char *url);

#endif
