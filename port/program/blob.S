/* SPDX-License-Identifier: MIT */
/* The agent's image as data of the host side (port/program/image.h). */
	.section .rodata
	.globl gt_agent_image
	.p2align 12
gt_agent_image:
	.incbin GT_AGENT_IMAGE
1:
	.globl gt_agent_image_size
	.p2align 3
gt_agent_image_size:
	.quad 1b - gt_agent_image

	.section .note.GNU-stack, "", @progbits
