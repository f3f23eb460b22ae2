/* SPDX-License-Identifier: MIT */
/*
 * Pages of Linux's ring in columns (doc/format.md, "Packed pages"): records of one event stand together,
 * field by field, clocks as differences, repeated bytes as numbers of a dictionary. Then zstd has a quarter
 * as much to pack, and packs it to a fifth of the size. No format of an event is known here. Decoding gives
 * back the same pages, whatever they hold.
 */
#ifndef GT_READ_PAGES_H
#define GT_READ_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>

struct gt_pages_encoder; /* for one thread at a time */

struct gt_pages_encoder *gt_pages_encoder_create(void); /* NULL: no memory */
/* NULL is allowed. */
void gt_pages_encoder_destroy(struct gt_pages_encoder *encoder);

/*
 * Encodes `bytes` bytes of pages, a multiple of page_bytes, up to 16 MiB. Returns the length of *out, which
 * the encoder keeps until the next call or until it is destroyed; GT_EINVAL: there are more bytes, they are
 * no multiple, or page_bytes is not within GRAFTRACE_PAGE_MIN … GRAFTRACE_PAGE_MAX; GT_ENOMEM. No contents
 * of the pages are an error.
 */
int64_t gt_pages_encode(struct gt_pages_encoder *encoder, const uint8_t *pages, size_t bytes,
			size_t page_bytes, const uint8_t **out);

/*
 * Decodes to *pages, `*count` bytes, which are the caller's to free(). `packed` may be anything. GT_EFORMAT:
 * it is not what gt_pages_encode makes, or is of more than `most` bytes of pages; GT_ENOMEM. With an error
 * *pages is NULL. From any thread.
 */
int gt_pages_decode(const uint8_t *packed, size_t bytes, size_t most, uint8_t **pages,
		    size_t *count);

#endif
