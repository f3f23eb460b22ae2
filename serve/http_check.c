/* SPDX-License-Identifier: MIT */
/* Which requests are refused before anything is looked up: see http.h. */
#include "serve/http_private.h"

#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/http/http_request.h"

struct gt_http_client *gt_http_client_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info != NULL ? info->socket_context : NULL;
}

static enum MHD_Result count_header(void *data, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	unsigned *counts = data;

	(void)kind;
	(void)value;
	counts[0] += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
	counts[1] += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
	counts[1] += strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
	counts[2] += strcasecmp(name, MHD_HTTP_HEADER_AUTHORIZATION) == 0;
	return MHD_YES;
}

/* Returns NULL, or the reason why two programs could parse the request differently (RFC 9112,
 * 3.2 and 6.3). */
static const char *ambiguous(struct MHD_Connection *connection)
{
	unsigned counts[3] = { 0 };

	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, counts);
	if (counts[0] > 1)
		return "the request has two Host headers";
	if (counts[1] > 1)
		return "the request says its length twice";
	return counts[2] > 1 ? "the request has two Authorization headers" : NULL;
}

/* Returns the token of the request, from `Authorization: Bearer` or `?token=`; NULL: none. */
static const char *token_of(struct MHD_Connection *connection)
{
	const char *bearer = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_AUTHORIZATION);

	if (bearer != NULL && strncasecmp(bearer, "Bearer ", 7) == 0)
		return bearer + 7 + strspn(bearer + 7, " ");
	return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");
}

/* Returns 0, or the status with which the request is refused, and the reason. */
static unsigned refuse_client(const struct gt_http_server *server,
			      struct MHD_Connection *connection, char *why, size_t room)
{
	const struct gt_http_client *client = gt_http_client_of(connection);
	const struct gt_peer *peer = client != NULL ? gt_http_client_peer(client) : NULL;
	const char *token = token_of(connection);

	if (client == NULL || gt_http_client_is_refused(client)) {
		snprintf(why, room, "too many connections");
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	}
	if (gt_access_allows_peer(&server->access, peer) ||
	    (token != NULL && gt_access_allows_token(&server->access, token, strlen(token))))
		return 0;
	if (server->access.token[0] != '\0') {
		snprintf(why, room,
			 "%s: show it as 'Authorization: Bearer TOKEN' or '?token=TOKEN'",
			 token != NULL ? "this is not the token" : "a token is wanted here");
		return MHD_HTTP_UNAUTHORIZED;
	}
	if (peer->local)
		snprintf(why, room,
			 "this trace is of user %u, and of root: start graftrace with "
			 "--allow-users %u, or with --token FILE, for user %u to see and change it",
			 (unsigned)geteuid(), (unsigned)peer->uid, (unsigned)peer->uid);
	else
		snprintf(why, room,
			 "this trace is of user %u of that machine, and of root: start graftrace "
			 "with --token FILE for others to see and change it",
			 (unsigned)geteuid());
	return MHD_HTTP_FORBIDDEN;
}

/* Returns NULL, or the reason why the request is refused as one of another site's page. */
static const char *foreign(const struct gt_http_server *server, struct MHD_Connection *connection)
{
	const char *host =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	const char *origin =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN);
	const char *site =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");

	/* HTTP/1.0 has no Host. Only browsers have to be kept out here, and they all send one. */
	if (host != NULL &&
	    !gt_http_host_is_allowed(host, strlen(host), server->bound, server->any_address))
		return "this host name is not served here: use localhost, 127.0.0.1 or [::1]";
	if (origin != NULL &&
	    (host == NULL || !gt_http_origin_is_own(origin, strlen(origin), host, strlen(host))))
		return "requests from other web pages are refused";
	if (site != NULL && strcasecmp(site, "same-origin") != 0 && strcasecmp(site, "none") != 0)
		return "requests from other web pages are refused";
	return NULL;
}

unsigned gt_http_check(const struct gt_http_server *server, struct MHD_Connection *connection,
		       char *why, size_t room)
{
	unsigned refused = refuse_client(server, connection, why, room);
	const char *reason;

	if (refused != 0)
		return refused;
	if ((reason = ambiguous(connection)) != NULL)
		refused = MHD_HTTP_BAD_REQUEST;
	else if ((reason = foreign(server, connection)) != NULL)
		refused = MHD_HTTP_FORBIDDEN;
	if (refused != 0)
		snprintf(why, room, "%s", reason);
	return refused;
}

void gt_http_carry_token(const struct gt_http_server *server, struct MHD_Connection *connection,
			 char *query, size_t room)
{
	const char *token = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");

	if (token != NULL && gt_access_allows_token(&server->access, token, strlen(token)))
		snprintf(query, room, "?token=%s", token);
	else
		query[0] = '\0';
}
