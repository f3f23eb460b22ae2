/* SPDX-License-Identifier: MIT */
/* See http_answer.h. */
#include "serve/http_answer.h"

#include <microhttpd.h>
#include <stdio.h>

#include "core/http/http_request.h"

int gt_http_send(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response,
		 const char *type, const char *policy)
{
	enum MHD_Result result;

	if (response == NULL)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, "Content-Security-Policy", policy);
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

int gt_http_send_strict(struct MHD_Connection *connection, unsigned status,
			struct MHD_Response *response, const char *type)
{
	return gt_http_send(connection, status, response, type,
			    "default-src 'none'; style-src 'unsafe-inline'");
}

int gt_http_send_words(struct MHD_Connection *connection, unsigned status, const char *words,
		       const char *allow, const char *location)
{
	char text[sizeof(struct gt_message) + 1];
	int bytes = snprintf(text, sizeof(text), "%s\n", words);
	struct MHD_Response *response =
		MHD_create_response_from_buffer((size_t)bytes, text, MHD_RESPMEM_MUST_COPY);

	if (response != NULL && allow != NULL)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allow);
	if (response != NULL && location != NULL)
		MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, location);
	return gt_http_send_strict(connection, status, response, "text/plain; charset=utf-8");
}

int gt_http_send_refusal(struct MHD_Connection *connection, unsigned status, const char *words)
{
	char text[sizeof(struct gt_message) + 1];
	int bytes = snprintf(text, sizeof(text), "%s\n", words);
	struct MHD_Response *response =
		MHD_create_response_from_buffer((size_t)bytes, text, MHD_RESPMEM_MUST_COPY);

	if (response != NULL)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	if (response != NULL && status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	return gt_http_send_strict(connection, status, response, "text/plain; charset=utf-8");
}

const char *gt_http_methods(const struct gt_control_node *node)
{
	unsigned access =
		node->file == NULL ? GT_CONTROL_READ : gt_control_access(node->target, node->file);

	switch (access) {
	case GT_CONTROL_READ | GT_CONTROL_WRITE:
		return "GET, HEAD, PUT, POST";
	case GT_CONTROL_READ:
		return "GET, HEAD";
	default:
		return "PUT, POST";
	}
}

int gt_http_send_error(struct MHD_Connection *connection, const struct gt_control_node *node,
		       int64_t error, const struct gt_message *message)
{
	unsigned status = gt_control_http_status(error);

	return gt_http_send_words(
		connection, status,
		message->text[0] != '\0' ? message->text : "it could not be done",
		status == MHD_HTTP_METHOD_NOT_ALLOWED ? gt_http_methods(node) : NULL, NULL);
}
