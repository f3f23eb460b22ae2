/* SPDX-License-Identifier: MIT */
/*
 * Protocol buffers' wire format, as much as messages of our own making need: variable-length numbers
 * and fields of bytes, appended to memory that grows. Written from "Encoding" of the protocol
 * buffers' documentation. One thread at a time.
 */
#ifndef GT_EXPORT_PROTO_H
#define GT_EXPORT_PROTO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct gt_proto {
	uint8_t *bytes;
	size_t used, room;
	bool failed; /* there was no memory: some of what was appended is missing */
};

static inline void gt_proto_raw(struct gt_proto *proto, const void *bytes, size_t count)
{
	if (proto->used + count > proto->room) {
		size_t room = (proto->used + count) * 2;
		uint8_t *grown = realloc(proto->bytes, room);

		if (grown == NULL) {
			proto->failed = true;
			return;
		}
		proto->bytes = grown;
		proto->room = room;
	}
	memcpy(proto->bytes + proto->used, bytes, count);
	proto->used += count;
}

static inline void gt_proto_varint(struct gt_proto *proto, uint64_t value)
{
	uint8_t bytes[10];
	size_t count = 0;

	do {
		bytes[count] = (uint8_t)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);
		value >>= 7;
		count++;
	} while (value != 0);
	gt_proto_raw(proto, bytes, count);
}

static inline void gt_proto_number(struct gt_proto *proto, uint32_t field, uint64_t value)
{
	gt_proto_varint(proto, (uint64_t)field << 3);
	gt_proto_varint(proto, value);
}

static inline void gt_proto_bytes(struct gt_proto *proto, uint32_t field, const void *bytes,
				  size_t count)
{
	gt_proto_varint(proto, (uint64_t)field << 3 | 2);
	gt_proto_varint(proto, count);
	gt_proto_raw(proto, bytes, count);
}

static inline void gt_proto_text(struct gt_proto *proto, uint32_t field, const char *text)
{
	gt_proto_bytes(proto, field, text, strlen(text));
}

/* The message `inner` as a field, and `inner` is empty again. */
static inline void gt_proto_message(struct gt_proto *proto, uint32_t field, struct gt_proto *inner)
{
	gt_proto_bytes(proto, field, inner->bytes, inner->used);
	proto->failed |= inner->failed;
	inner->used = 0;
}

static inline void gt_proto_fini(struct gt_proto *proto)
{
	free(proto->bytes);
	*proto = (struct gt_proto){ 0 };
}

#endif
