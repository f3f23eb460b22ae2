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

	/* here come the hot text's own offsets: .image_header.hot, in hot_program.h */

	.section .image_header.tail, "a", @progbits
	/* offset 92: agent.c checks it */
#define AT_TAIL(symbol) .long symbol - gt_image_tail + 92
gt_image_tail:
	AT_TAIL(gt_glue_entry)
	AT_TAIL(gt_glue_exit)
	AT_TAIL(gt_glue_hook)
	AT_TAIL(gt_trap_entry)
	AT_TAIL(gt_trap_restorer)
	AT_TAIL(gt_agent_resolve)
	AT_TAIL(gt_image_fork)
	AT_TAIL(gt_image_eh_frame_hdr)
	AT_TAIL(gt_glue_event)
	AT_TAIL(gt_turn)
	AT_TAIL(gt_turn_end)

	/* What dl_iterate_phdr says of the image (hooks.c): two Elf64_Phdr. */
#define QUAD_TAIL(symbol) .quad symbol - gt_image_tail + 92
	.globl gt_image_phdrs
	.hidden gt_image_phdrs
gt_image_phdrs:
	.long 1, 5			/* PT_LOAD, PF_R | PF_X */
	.quad 0, 0, 0
	QUAD_TAIL(gt_image_text_end)
	QUAD_TAIL(gt_image_text_end)
	.quad 4096
	.long 0x6474e550, 4		/* PT_GNU_EH_FRAME, PF_R */
	QUAD_TAIL(gt_image_eh_frame_hdr)
	QUAD_TAIL(gt_image_eh_frame_hdr)
	QUAD_TAIL(gt_image_eh_frame_hdr)
	.quad 0, 0, 4

	.section .note.GNU-stack, "", @progbits
