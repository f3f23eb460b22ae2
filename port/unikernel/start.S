/* SPDX-License-Identifier: MIT */
/*
 * The first instructions of each processor. QEMU enters the boot processor at start32 as the PVH note
 * says (32-bit, flat, no paging, ebx = struct hvm_start_info); the others begin in 16-bit code that was
 * copied to TRAMPOLINE. Both switch to long mode with the boot tables below, which map the first 4 GiB
 * thrice: as they are, at the direct map and (the first 1 GiB) where the kernel is linked. They are
 * left behind as soon as paging.c has made the real ones. Nothing here is traced.
 */
#include "port/unikernel/layout.h"

#define PHYS(symbol) ((symbol) - KERNEL_BASE)
#define CR0_BITS 0x80010001		/* paging, write protection also for the kernel, protected mode */
#define CR4_BITS 0xa0			/* PAE, global pages */
#define EFER 0xc0000080
#define EFER_BITS 0x900			/* long mode, no-execute */

	.section .note.Xen, "a", @note
	.p2align 2
	.long 4, 8, 18				/* XEN_ELFNOTE_PHYS32_ENTRY */
	.asciz "Xen"
	.quad PHYS(start32)

	.section .text.start, "ax", @progbits
	.code32
	.globl start32
start32:
	cld
	lgdt PHYS(boot_gdt_pointer)
	mov $PHYS(boot_pml4), %eax
	mov %eax, %cr3
	mov $CR4_BITS, %eax
	mov %eax, %cr4
	mov $EFER, %ecx
	rdmsr
	or $EFER_BITS, %eax
	wrmsr
	mov $CR0_BITS, %eax
	mov %eax, %cr0
	ljmp $GDT_CODE, $PHYS(1f)
	.code64
1:	movabs $2f, %rax
	jmp *%rax
2:	mov $GDT_DATA, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	xor %eax, %eax
	mov %eax, %fs
	mov %eax, %gs
	mov $boot_stack_top - 8, %rsp
	xor %ebp, %ebp
	mov %ebx, %edi
	push $0					/* ends walks of the call stack */
	call kernel_start
	ud2

/* Copied to TRAMPOLINE; smp.c writes the stack and the struct cpu after it before each start. */
	.code16
	.globl trampoline_start, trampoline_end, trampoline_stack, trampoline_cpu
trampoline_start:
	cli
	cld
	xor %ax, %ax
	mov %ax, %ds
	lgdtl TRAMPOLINE + trampoline_gdt_pointer - trampoline_start
	mov $PHYS(boot_pml4), %eax
	mov %eax, %cr3
	mov $CR4_BITS, %eax
	mov %eax, %cr4
	mov $EFER, %ecx
	rdmsr
	or $EFER_BITS, %eax
	wrmsr
	mov $CR0_BITS, %eax
	mov %eax, %cr0
	ljmpl $GDT_CODE, $(TRAMPOLINE + trampoline_64 - trampoline_start)
	.code64
trampoline_64:
	mov $GDT_DATA, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	xor %eax, %eax
	mov %eax, %fs
	mov %eax, %gs
	movabs $kernel_tables, %rax
	mov (%rax), %rax
	movabs $1f, %rbx
	mov TRAMPOLINE + trampoline_cpu - trampoline_start, %rdi
	mov TRAMPOLINE + trampoline_stack - trampoline_start, %rdx
	jmp *%rbx
trampoline_gdt_pointer:
	.word boot_gdt_end - boot_gdt - 1
	.long PHYS(boot_gdt)
	.p2align 3
trampoline_stack:
	.quad 0
trampoline_cpu:
	.quad 0
trampoline_end:

	/* Continues at the address where it is linked. */
1:	mov %rax, %cr3
	mov %rdx, %rsp
	xor %ebp, %ebp
	push $0
	call smp_cpu_start
	ud2

	.section .rodata.boot, "a", @progbits
	.p2align 3
boot_gdt:
	.quad 0
	.quad 0x00af9b000000ffff		/* GDT_CODE: 64-bit */
	.quad 0x00cf93000000ffff		/* GDT_DATA */
boot_gdt_end:
boot_gdt_pointer:
	.word boot_gdt_end - boot_gdt - 1
	.long PHYS(boot_gdt)

	.section .data.boot, "aw", @progbits
	.p2align 12
	.globl boot_pml4
boot_pml4:
	.quad PHYS(boot_pdpt) + 3
	.fill 255, 8, 0
	.quad PHYS(boot_pdpt) + 3		/* DIRECT_BASE */
	.fill 254, 8, 0
	.quad PHYS(boot_pdpt_kernel) + 3
boot_pdpt:
	.quad PHYS(boot_pd) + 0x0003
	.quad PHYS(boot_pd) + 0x1003
	.quad PHYS(boot_pd) + 0x2003
	.quad PHYS(boot_pd) + 0x3003
	.fill 508, 8, 0
boot_pdpt_kernel:
	.fill 510, 8, 0
	.quad PHYS(boot_pd) + 3			/* KERNEL_BASE */
	.quad 0
boot_pd:
	.set address, 0
	.rept 2048
	.quad address + 0x83			/* present, writable, 2 MiB */
	.set address, address + 0x200000
	.endr

	.section .bss.boot, "aw", @nobits
	.p2align 4
	.fill BOOT_STACK_BYTES, 1, 0
boot_stack_top:

	.section .note.GNU-stack, "", @progbits
