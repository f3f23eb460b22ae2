/* SPDX-License-Identifier: MIT */
/* The image's header: struct graftrace_agent_image, at offset 0. */
#define AT(symbol) .long symbol - gt_image_start
	.section .image_header, "a", @progbits
	.globl gt_image_start
	.hidden gt_image_start
gt_image_start:
	.quad 0x31544e4547415447		/* GRAFTRACE_AGENT_MAGIC */
	AT(gt_image_text_end)
	AT(gt_image_file_end)
	AT(gt_image_end)
	AT(gt_agent_state)
	AT(gt_null_block)
	AT(gt_hot_start)

	/* here come the hot text's own offsets: .image_header.hot, in hot.S */

	.section .image_header.tail, "a", @progbits
	/* offset 88: agent.c checks it */
#define AT_TAIL(symbol) .long symbol - gt_image_tail + 88
gt_image_tail:
	AT_TAIL(gt_glue_entry)
	AT_TAIL(gt_glue_exit)
	AT_TAIL(gt_glue_hook)
	AT_TAIL(gt_trap_entry)
	AT_TAIL(gt_trap_restorer)
	AT_TAIL(gt_agent_resolve)
	AT_TAIL(gt_image_fork)
	.long 0

	.section .note.GNU-stack, "", @progbits
