/* SPDX-License-Identifier: MIT */
/* An answer with the headers that every answer of the server has. */
#ifndef GT_SERVE_HTTP_ANSWER_H
#define GT_SERVE_HTTP_ANSWER_H

struct MHD_Connection;
struct MHD_Response;

/* Queues the response (NULL: there was no memory for it) and gives it up. policy: what a browser may
 * do with it (Content-Security-Policy). MHD_YES or MHD_NO. */
int gt_http_send(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response,
		 const char *type, const char *policy);

#endif
