/* SPDX-License-Identifier: MIT */
/* Answers, with the headers that every answer of the server has. The functions that send return MHD_YES, or
 * MHD_NO: the connection is to be closed. Call them from the connection's thread. Texts are copied. */
#ifndef GT_SERVE_HTTP_ANSWER_H
#define GT_SERVE_HTTP_ANSWER_H

#include <stdint.h>

#include "core/control/control.h"

struct MHD_Connection;
struct MHD_Response;

/* Queues the response (NULL: there was no memory for it) and gives it up. policy: what a browser may
 * do with it (Content-Security-Policy). */
int gt_http_send(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response,
		 const char *type, const char *policy);
/* The same with a policy that allows nothing but styles in the page itself. */
int gt_http_send_strict(struct MHD_Connection *connection, unsigned status,
			struct MHD_Response *response, const char *type);
/* Answers with one line that has the reason; `allow` and `location` may be NULL. */
int gt_http_send_words(struct MHD_Connection *connection, unsigned status, const char *words,
		       const char *allow, const char *location);
/* Refuses the request, and closes its connection. */
int gt_http_send_refusal(struct MHD_Connection *connection, unsigned status, const char *words);
/* Answers a request that the table of control files has refused. error: an enum gt_error; message: the reason. */
int gt_http_send_error(struct MHD_Connection *connection, const struct gt_control_node *node,
		       int64_t error, const struct gt_message *message);
/* The methods that the node takes, as in the header Allow: static text. */
const char *gt_http_methods(const struct gt_control_node *node);

#endif
