/* SPDX-License-Identifier: MIT */
/* The processors' blocks, segments and task states. Each processor makes its own. */
#include "port/unikernel/cpu.h"

#include "port/unikernel/crash.h"
#include "port/unikernel/interrupts.h"
#include "port/unikernel/memory.h"

#define MSR_FS_BASE 0xc0000100
#define MSR_GS_BASE 0xc0000101

#define INTERRUPT_STACK_BYTES 32768
#define FAULT_STACK_BYTES     16384

/* Offset in the task state of the stacks for interrupts that use their own. */
#define TSS_IST1   36
#define TSS_IO_MAP 102

struct cpu cpus[CPU_MAX];
uint32_t cpu_count = 1;

UNTRACED void cpu_init(uint32_t number, uint32_t apic_id)
{
	struct cpu *cpu = &cpus[number];
	cpu->self = cpu;
	cpu->number = number;
	cpu->apic_id = apic_id;
	msr_write(MSR_FS_BASE, (uint64_t)cpu);
	msr_write(MSR_GS_BASE, (uint64_t)cpu);
}

static uint64_t new_stack(uint64_t bytes)
{
	uint64_t low, top = stack_allocate(bytes, &low);
	if (!top)
		crash("no memory for a processor's stacks");
	return top;
}

static void put_64(uint8_t *at, uint64_t value)
{
	__builtin_memcpy(at, &value, 8);
}

uint64_t cpu_fault_stack(const struct cpu *cpu, unsigned stack)
{
	uint64_t top;
	__builtin_memcpy(&top, cpu->tss + TSS_IST1 + 8 * (stack - 1), 8);
	return top;
}

void cpu_tables_init(struct cpu *cpu)
{
	struct {
		uint16_t limit;
		uint64_t base;
	} __attribute__((packed)) pointer = { sizeof(cpu->gdt) - 1, (uint64_t)cpu->gdt };
	uint64_t tss = (uint64_t)cpu->tss;

	cpu->interrupt_stack = new_stack(INTERRUPT_STACK_BYTES);
	for (unsigned i = 0; i < INTERRUPT_STACKS; i++)
		put_64(cpu->tss + TSS_IST1 + 8 * i, new_stack(FAULT_STACK_BYTES));
	cpu->tss[TSS_IO_MAP] = sizeof(cpu->tss);

	cpu->gdt[GDT_CODE / 8] = 0x00af9b000000ffff;
	cpu->gdt[GDT_DATA / 8] = 0x00cf93000000ffff;
	cpu->gdt[GDT_TSS / 8] = (sizeof(cpu->tss) - 1) | (tss & 0xffffff) << 16 | 0x89ull << 40 |
				(tss >> 24 & 0xff) << 56;
	cpu->gdt[GDT_TSS / 8 + 1] = tss >> 32;
	__asm__ volatile("lgdt %0; ltr %w1" ::"m"(pointer), "r"(GDT_TSS) : "memory");
	interrupts_load_table();
}
