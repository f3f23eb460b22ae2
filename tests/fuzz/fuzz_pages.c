/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as pages of Linux's ring: read record by record, nothing beyond them is touched; packed,
 * they come out the same. And any bytes as packed pages are decoded or refused.
 */
#include <stdlib.h>
#include <string.h>
#include "read/kernel_page.h"
#include "read/pages.h"

#define PAGE 256u
#define MOST (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t seen;

static void read_records(const uint8_t *page, size_t bytes)
{
	struct gt_kernel_page reader;
	const uint8_t *record;
	uint32_t length;

	if (!gt_kernel_page_open(&reader, page, bytes))
		return;
	while ((record = gt_kernel_page_next(&reader, &length)) != NULL) {
		if (record < page || length > (size_t)(page + bytes - record))
			abort();
		for (uint32_t i = 0; i < length; i++)
			seen += record[i];
	}
}

static void there_and_back(const uint8_t *data, size_t size)
{
	size_t bytes = (size + PAGE - 1) / PAGE * PAGE, count;
	uint8_t *pages = calloc(bytes / PAGE + 1, PAGE), *back, *copy;
	struct gt_pages_encoder *encoder = gt_pages_encoder_create();
	const uint8_t *packed;

	memcpy(pages, data, size);
	for (size_t at = 0; at < bytes; at += PAGE)
		read_records(pages + at, PAGE);
	for (int round = 0; round < 2; round++) {
		int64_t length = gt_pages_encode(encoder, pages, bytes, PAGE, &packed);
		if (length < 0)
			abort();
		copy = malloc((size_t)length); /* of exactly that length: reading on is noticed */
		memcpy(copy, packed, (size_t)length);
		if (gt_pages_decode(copy, (size_t)length, bytes, &back, &count) != 0 ||
		    count != bytes || memcmp(back, pages, bytes) != 0)
			abort();
		free(copy);
		free(back);
	}
	gt_pages_encoder_destroy(encoder);
	free(pages);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size), *pages;
	size_t count;

	memcpy(copy, data, size);
	read_records(copy, size);
	if (gt_pages_decode(copy, size, MOST, &pages, &count) == 0)
		read_records(pages, count);
	free(pages);
	free(copy);
	there_and_back(data, size);
	return 0;
}
