/* SPDX-License-Identifier: MIT */
/* Any bytes as a request head: no read outside them, and what is taken obeys the header's promises.
 */
#include <stdlib.h>
#include <string.h>

#include "core/http/http_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_http_request request;
	struct gt_message message;
	char *bytes = malloc(size + 1); /* its end is guarded by the sanitizer */

	memcpy(bytes, data, size);
	if (gt_http_request_parse(&request, bytes, size, &message) == 0) {
		if (request.head_bytes > size || request.path_bytes == 0 ||
		    strlen(request.path) != request.path_bytes || request.path[0] != '/' ||
		    strstr(request.path, "/../") != NULL)
			abort();
		if (request.host.text != NULL)
			gt_http_host_is_allowed(request.host.text, request.host.bytes,
						"10.0.2.15:9090", true);
		if (request.host.text != NULL && request.origin.text != NULL)
			gt_http_origin_is_own(request.origin.text, request.origin.bytes,
					      request.host.text, request.host.bytes);
	}
	free(bytes);
	return 0;
}
