/* SPDX-License-Identifier: MIT */
/*
 * Where everything lies in memory, and the offsets that assembly shares with C (checked in cpu.h).
 *
 *	ffff8000 00000000  direct map: all memory at its physical address; writable, not executable;
 *			   read-only where the kernel's text and constants are
 *	ffff8080 00040000  devices, uncached
 *	ffffa000 00000000  the stacks' mirror twins
 *	ffffc000 00000000  large pieces made of scattered pages (map.c)
 *	ffffe000 00000000  stacks, each between unmapped pages
 *	ffffffff 80000000  the kernel, at its physical address, each page writable or executable
 *
 * The tracer keeps real return addresses in the twin of a stack's word, at the word's address +
 * MIRROR_DISTANCE.
 */
#ifndef PORT_UNIKERNEL_LAYOUT_H
#define PORT_UNIKERNEL_LAYOUT_H

#define PAGE_BYTES	 4096
#define LARGE_PAGE_BYTES 0x200000

#define KERNEL_BASE	0xffffffff80000000
#define DIRECT_BASE	0xffff800000000000
#define DIRECT_LIMIT	0x8000000000	   /* bytes: one entry of the top table */
#define DEVICE_BASE	0xffff808000040000 /* place 0 of caches has what each call reads */
#define MAP_BASE	0xffffc00000000000
#define STACK_BASE	0xffffe00000000000
#define STACK_STRIDE	0x200000 /* each stack has this much address space, most of it unmapped */
#define STACK_COUNT	16384
#define MIRROR_DISTANCE (0x20000 - (1ll << 46)) /* gt_kernel_mirror */
#define TRAMPOLINE	0x8000			/* physical; where the other processors begin */

#define BOOT_STACK_BYTES 16384

/* Segments. */
#define GDT_CODE 8
#define GDT_DATA 16
#define GDT_TSS	 24

/* struct cpu, at %gs:0 */
#define CPU_RECORDER_BYTES  1024
#define CPU_SELF	    (CPU_RECORDER_BYTES + 0)
#define CPU_CURRENT	    (CPU_RECORDER_BYTES + 8)
#define CPU_INTERRUPT_STACK (CPU_RECORDER_BYTES + 16)
#define CPU_DEPTH	    (CPU_RECORDER_BYTES + 24)
#define CPU_NEEDS_SWITCH    (CPU_RECORDER_BYTES + 28)
#define CPU_PREEMPT_OFF	    (CPU_RECORDER_BYTES + 32)

/* struct registers */
#define REGISTERS_VECTOR 120
#define REGISTERS_RIP	 136
#define REGISTERS_CS	 144
#define REGISTERS_RFLAGS 152
#define REGISTERS_RSP	 160

#endif
