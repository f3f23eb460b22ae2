/* SPDX-License-Identifier: MIT */
/* Any text as an address to listen on: parsed or refused, never read past its end. */
#include <stdlib.h>
#include <string.h>

#include "serve/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_address address;
	struct gt_message message;
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	if (gt_address_parse(text, &address, &message) == 0 &&
	    strlen(address.host) >= sizeof(address.host))
		abort();
	free(text);
	return 0;
}
