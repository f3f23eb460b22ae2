/* SPDX-License-Identifier: MIT */
/* What the files of the decoder share: decode.c and decode_contexts.c. */
#ifndef GT_CORE_TRACE_DECODE_PRIVATE_H
#define GT_CORE_TRACE_DECODE_PRIVATE_H

#include "core/trace/decode.h"

#define GT_DECODE_NO_UNWINDING UINT32_MAX /* of unwind_to */

/* The running context's slot is brought up to date; that one becomes the running one. */
void gt_decode_save_context(struct gt_decode *decode);
void gt_decode_load_context(struct gt_decode *decode, uint32_t slot);

/* Were the open calls of context `number` followed up to where it ran last? Not if it never ran, or
 * if sub-buffers are missing since. */
bool gt_decode_knows_context(const struct gt_decode *decode, uint32_t number);

/* Makes context `number` the running one; a new one has no calls. GT_ENOMEM: it is as before. */
int gt_decode_switch_context(struct gt_decode *decode, uint32_t number);

/* Room for one frame more. Where there is no memory the outermost known frame is forgotten; without
 * any frame at all nothing can be known: false. */
bool gt_decode_make_room(struct gt_decode *decode);

#endif
