/* SPDX-License-Identifier: MIT */
/*
 * Groups of sub-buffers in columns (doc/format.md, "Columns"): each word becomes a byte that says
 * which function was entered or returned from and a byte of clock difference, gathered apart so
 * that zstd packs each well. A return that follows from the calls before it is a zero.
 *
 * The encoder is for one thread at a time. A decoded group is not changed by reading it: several threads may
 * read it at once. The functions that destroy and close take NULL; those with a message take NULL for it.
 */
#ifndef GT_READ_COLUMNS_H
#define GT_READ_COLUMNS_H

#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>
#include <graftrace/file.h>

struct gt_columns_encoder;

/* level: of zstd; 0: the one that was measured to be best. NULL: no memory. */
struct gt_columns_encoder *gt_columns_encoder_create(int level);
void gt_columns_encoder_destroy(struct gt_columns_encoder *encoder);

/* A sub-buffer to encode: its header, with the open calls behind that, and its words, which may lie
 * elsewhere. */
struct gt_columns_input {
	const struct graftrace_sub_buffer *header;
	const uint64_t *words;
	uint32_t word_count;
};

/* How hard to pack. */
enum gt_columns_effort {
	GT_COLUMNS_BARE = 0, /* the columns as they are: about a quarter of the words' size */
	GT_COLUMNS_ZSTD = 1,
};

/* The most bytes that the group may take in columns. */
size_t gt_columns_bound(const struct gt_columns_input *inputs, uint32_t count);

/*
 * Encodes a group to `out`, which has room for gt_columns_bound bytes, at any alignment: the group's bytes in
 * the block's body, without its entries in the block's head. Returns its length, a multiple of 8, or
 * GT_ENOMEM.
 */
int64_t gt_columns_encode(struct gt_columns_encoder *encoder, const struct gt_columns_input *inputs,
			  uint32_t count, enum gt_columns_effort effort, uint8_t *out);

struct gt_columns_group;
struct gt_columns_decoder; /* memory for opening groups; for one thread at a time */

struct gt_columns_decoder *gt_columns_decoder_create(void); /* NULL: no memory */
void gt_columns_decoder_destroy(struct gt_columns_decoder *decoder);

/*
 * Opens a group of `count` sub-buffers, whose lengths are in `entries`, from its stored bytes
 * (which are not needed any more afterwards, nor is the decoder): decompresses the columns and checks that
 * they fit. The bytes may be anything; the entries' numbers of words and open calls must be checked before.
 * GT_EFORMAT with a message, GT_ENOMEM without: *group is not set.
 */
int gt_columns_open(struct gt_columns_decoder *decoder, const uint8_t *stored, size_t stored_bytes,
		    const struct graftrace_file_sub_buffer *entries, uint32_t count,
		    struct gt_columns_group **group, struct gt_message *message);

/* Memory that the group holds. */
size_t gt_columns_bytes(const struct gt_columns_group *group);

/*
 * Makes sub-buffer `index` (below the group's `count`) whole again: its header with its open calls, and words.
 * `out` has room for both: sizeof(*out) and 8 bytes a word of its entry. The header is what was stored, not
 * compared with the entry. GT_EFORMAT with a message: the columns have impossible values.
 */
int gt_columns_sub_buffer(const struct gt_columns_group *group, uint32_t index,
			  struct graftrace_sub_buffer *out, struct gt_message *message);

void gt_columns_close(struct gt_columns_group *group);

#endif
