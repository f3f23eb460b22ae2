/* SPDX-License-Identifier: MIT */
/*
 * The page at `/` and the questions that it asks below `/api/`, over HTTP. The records are
 * read when the page or a question is first asked for, by a thread of its own; until that has ended, answers have its
 * progress: {"progress": 0.4}. Questions in addition to those of export/page/page.h:
 *
 *   about             {"live": is it a program, no file?, "running": does it run yet?}
 *   look seconds      reads the records again; of a running program only the last seconds, 0: all.
 *                     Until that has ended, answers come from the records read before.
 *   progress          {"progress": of what is being read, "looks": how often the records were read}
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
	/* Fills in what is to be read; called by the reading thread, once for each reading. The target
	 * is used by that thread and by those of connections, one at a time; it and the strings must
	 * live as long as the server. 0, or an error with the message, which answers then have. */
	int (*prepare)(void *user, struct gt_page_options *options);
};

/* Makes a server; copies *source. Nothing is read yet. GT_ENOMEM. */
int gt_page_server_create(const struct gt_page_source *source, struct gt_page_server **server,
			  struct gt_message *message);
/* Stops the reading, waits for its thread and frees. No request may be under way. */
void gt_page_server_destroy(struct gt_page_server *server);

/* The program of a live source has ended; what it has recorded is still served. From any thread. */
void gt_page_server_program_ended(struct gt_page_server *server);

/* Is this path the page's, or one of its questions'? */
bool gt_page_server_has(const char *url);
/* Answers GET and HEAD of such a path, in the connection's thread, any number at once. Returns MHD_YES,
 * or MHD_NO: close the connection. Errors are answers with a status. */
int gt_page_server_answer(struct gt_page_server *server, struct MHD_Connection *connection,
			  const char *url);

#endif
