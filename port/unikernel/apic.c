/* SPDX-License-Identifier: MIT */
/* xAPIC by its mapped registers. Intel's manual, volume 3, chapter "APIC". */
#include "port/unikernel/apic.h"

#include "port/unikernel/acpi.h"
#include "port/unikernel/cpu.h"
#include "port/unikernel/crash.h"
#include "port/unikernel/interrupts.h"
#include "port/unikernel/memory.h"

#define REGISTER_ID	      0x20
#define REGISTER_TASK	      0x80
#define REGISTER_END	      0xb0
#define REGISTER_SPURIOUS     0xf0
#define REGISTER_COMMAND      0x300
#define REGISTER_COMMAND_HIGH 0x310
#define REGISTER_TIMER	      0x320
#define REGISTER_LINT0	      0x350
#define REGISTER_LINT1	      0x360
#define REGISTER_ERROR	      0x370
#define REGISTER_INITIAL      0x380
#define REGISTER_CURRENT      0x390
#define REGISTER_DIVIDE	      0x3e0

#define ENABLED	     0x100
#define MASKED	     0x10000
#define DIVIDE_16    3
#define PENDING	     0x1000
#define MODE_NMI     0x400
#define MODE_INIT    0x500
#define MODE_START   0x600
#define LEVEL_ASSERT 0x4000
#define TO_SELF	     0x40000 /* whatever REGISTER_COMMAND_HIGH says */

#define PIC_1_MASK 0x21
#define PIC_2_MASK 0xa1

#define LONGEST_NS 60000000000ull
#define SOON_NS	   50000

static volatile uint32_t *registers;
static uint64_t timer_rate; /* counts a second */

static inline __attribute__((always_inline)) uint32_t get(uint32_t offset)
{
	return registers[offset / 4];
}

static inline __attribute__((always_inline)) void set(uint32_t offset, uint32_t value)
{
	registers[offset / 4] = value;
}

void apic_map(void)
{
	/* Masks the old interrupt controllers. */
	port_write_8(PIC_1_MASK, 0xff);
	port_write_8(PIC_2_MASK, 0xff);
	registers = paging_map_device(acpi_apic_address, PAGE_BYTES);
	if (!registers)
		crash("no memory to map the APIC");
}

void apic_init(void)
{
	set(REGISTER_SPURIOUS, ENABLED | VECTOR_SPURIOUS);
	set(REGISTER_TASK, 0);
	set(REGISTER_LINT0, MASKED);
	set(REGISTER_LINT1, MODE_NMI); /* QEMU's monitor: nmi */
	set(REGISTER_ERROR, MASKED);
	set(REGISTER_DIVIDE, DIVIDE_16);
	set(REGISTER_TIMER, VECTOR_TIMER);
}

uint32_t apic_id(void)
{
	return get(REGISTER_ID) >> 24;
}

void apic_end_of_interrupt(void)
{
	set(REGISTER_END, 0);
}

static UNTRACED void send(uint32_t id, uint32_t command)
{
	uint64_t flags = interrupts_save();
	while (get(REGISTER_COMMAND) & PENDING)
		cpu_pause();
	set(REGISTER_COMMAND_HIGH, id << 24);
	set(REGISTER_COMMAND, command);
	interrupts_restore(flags);
}

void apic_send(uint32_t id, uint32_t vector)
{
	send(id, LEVEL_ASSERT | vector);
}

UNTRACED void apic_send_nmi(uint32_t id)
{
	send(id, LEVEL_ASSERT | MODE_NMI);
}

UNTRACED void apic_send_self(uint32_t vector)
{
	while (get(REGISTER_COMMAND) & PENDING)
		cpu_pause();
	set(REGISTER_COMMAND, TO_SELF | LEVEL_ASSERT | vector);
	while (get(REGISTER_COMMAND) & PENDING)
		cpu_pause();
}

void apic_send_init(uint32_t id)
{
	send(id, LEVEL_ASSERT | MODE_INIT);
}

void apic_send_startup(uint32_t id, uint32_t physical)
{
	send(id, LEVEL_ASSERT | MODE_START | physical >> 12);
}

void apic_timer_free_run(void)
{
	set(REGISTER_TIMER, MASKED | VECTOR_TIMER);
	set(REGISTER_INITIAL, ~0u);
}

uint32_t apic_timer_left(void)
{
	return get(REGISTER_CURRENT);
}

void apic_timer_set_rate(uint64_t per_second)
{
	timer_rate = per_second;
	set(REGISTER_INITIAL, 0);
	set(REGISTER_TIMER, VECTOR_TIMER);
}

void apic_timer_arm(uint64_t nanoseconds)
{
	if (nanoseconds > LONGEST_NS)
		nanoseconds = LONGEST_NS;
	uint64_t count = nanoseconds * timer_rate / 1000000000;
	set(REGISTER_INITIAL, count ? (uint32_t)count : 1);
}

UNTRACED void apic_timer_soon(void)
{
	set(REGISTER_INITIAL, (uint32_t)(SOON_NS * timer_rate / 1000000000) | 1);
}
