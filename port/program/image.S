/* SPDX-License-Identifier: MIT */
/* The image's header: struct graftrace_agent_image, at offset 0. */
#define AT(symbol) .long symbol - gt_image_start
#define HOT(symbol) .long symbol - gt_hot_start

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
	HOT(gt_hot_end)
	HOT(gt_hot_entry)
	HOT(gt_hot_entry_root)
	HOT(gt_hot_entry_only)
	HOT(gt_hot_exit)
	HOT(gt_hot_hook)
	/* variants: nop, function, function_graph, -, function_graph with a threshold */
	HOT(gt_hot_variant_nop)
	HOT(gt_hot_variant_function)
	HOT(gt_hot_variant_graph)
	HOT(gt_hot_variant_nop)
	HOT(gt_hot_variant_threshold)
	HOT(gt_hot_variant_nop)
	HOT(gt_hot_variant_nop)
	HOT(gt_hot_variant_nop)
	AT(gt_glue_entry)
	AT(gt_glue_exit)
	AT(gt_glue_hook)
	.long 0, 0, 0, 0, 0

	.section .note.GNU-stack, "", @progbits
