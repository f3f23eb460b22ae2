/* SPDX-License-Identifier: MIT */
/*
 * The first instructions, and the switch of stacks. QEMU enters at start32, as the PVH note says:
 * 32-bit, flat, no paging. The tables below map the first gigabyte at its own addresses, in pages
 * of 2 MiB; and, for the tracer, the page of `mirrors` a second time at the addresses of `stacks`
 * XOR 2^46: the mirrors of the stacks in its first 1920 KiB are there (gt_kernel_mirror). Nothing
 * here is traced.
 */
#define CODE 8
#define DATA 16

	.section .note.Xen, "a", @note
	.p2align 2
	.long 4, 8, 18				/* XEN_ELFNOTE_PHYS32_ENTRY */
	.asciz "Xen"
	.quad start32

	.section .text.start, "ax", @progbits
	.code32
	.globl start32
start32:
	cld
	mov $mirrors + 0x83, %eax		/* the mirror of the page of stacks: present, writable, 2 MiB */
	mov $stacks, %edx
	shr $18, %edx				/* its place in the table: 8 bytes for each 2 MiB */
	mov %eax, mirror_pages(%edx)
	lgdt gdt_pointer
	mov $tables, %eax
	mov %eax, %cr3
	mov $0x20, %eax				/* PAE */
	mov %eax, %cr4
	mov $0xc0000080, %ecx			/* EFER: long mode */
	rdmsr
	or $0x100, %eax
	wrmsr
	mov $0x80000001, %eax			/* paging, protected mode */
	mov %eax, %cr0
	ljmp $CODE, $1f
	.code64
1:	mov $DATA, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	mov $stacks + 0x10000, %rsp		/* the first thread's: 64 KiB */
	push $0
	call kernel_main
	ud2

	.text
/* void switch_stacks(uint64_t *save, uint64_t sp): saves the stack pointer in *save and
 * continues at sp. */
	.globl switch_stacks
switch_stacks:
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rsp, (%rdi)
	mov %rsi, %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	ret

/* The address to which a new thread's first switch returns. */
	.globl thread_first_steps
thread_first_steps:
	call thread_run
	ud2

	.section .rodata, "a", @progbits
	.p2align 3
gdt:	.quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
gdt_pointer:
	.word . - gdt - 1
	.long gdt

	.data
	.p2align 12
tables:	.quad identity + 3
	.fill 127, 8, 0
	.quad mirror + 3			/* 2^46 is the 128th of 512 GiB each */
	.fill 383, 8, 0
identity:
	.quad identity_pages + 3
	.fill 511, 8, 0
mirror:	.quad mirror_pages + 3
	.fill 511, 8, 0
identity_pages:
	.set address, 0
	.rept 512
	.quad address + 0x83
	.set address, address + 0x200000
	.endr
mirror_pages:
	.fill 512, 8, 0

	.section .stacks, "aw", @nobits
	.globl stacks
	.p2align 21
stacks:	.fill 0x200000
mirrors:
	.fill 0x200000

	.section .note.GNU-stack, "", @progbits
