/* SPDX-License-Identifier: MIT */
/*
 * Measures the ticks once at boot, and converts them to nanoseconds from then on.
 */
#include "port/unikernel/clock.h"

#include "port/unikernel/acpi.h"
#include "port/unikernel/apic.h"
#include "port/unikernel/cpu.h"

#define ACPI_TIMER_HZ	3579545
#define ACPI_TIMER_MASK 0xffffff
#define MEASURE_TICKS	10000 /* of the ACPI timer: 2.8 ms */
#define TRIES		5

#define RTC_INDEX 0x70
#define RTC_DATA  0x71

static uint64_t boot_ticks;
static uint64_t ticks_per_second = 1000000000;
static uint64_t multiplier; /* nanoseconds a tick, times 2^32 */
static uint64_t boot_time;

struct moment {
	uint64_t ticks;
	uint32_t acpi, apic;
};

/* Reads all three counters at one moment: of several tries, takes the shortest. */
static struct moment look(void)
{
	struct moment best = { 0 };
	uint64_t shortest = ~0ull;
	for (int i = 0; i < TRIES; i++) {
		uint64_t before = cpu_ticks();
		uint32_t acpi = port_read_32(acpi_timer_port) & ACPI_TIMER_MASK;
		uint32_t apic = apic_timer_left();
		uint64_t after = cpu_ticks();
		if (after - before >= shortest)
			continue;
		shortest = after - before;
		best = (struct moment){ before + shortest / 2, acpi, apic };
	}
	return best;
}

static uint32_t rtc(uint8_t index)
{
	port_write_8(RTC_INDEX, index);
	uint8_t bcd = port_read_8(RTC_DATA);
	return bcd / 16u * 10 + bcd % 16u;
}

static uint64_t rtc_seconds(void)
{
	uint64_t year = 2000 + rtc(9), month = rtc(8), day = rtc(7);
	/* Days since 1970 of the Gregorian calendar, years that begin in March. */
	uint64_t y = month <= 2 ? year - 1 : year, m = month <= 2 ? month + 9 : month - 3;
	uint64_t days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
	return ((days * 24 + rtc(4)) * 60 + rtc(2)) * 60 + rtc(0);
}

void clock_init(void)
{
	boot_ticks = cpu_ticks();
	apic_timer_free_run();
	struct moment start = look(), end;
	do {
		cpu_pause();
		end = look();
	} while (((end.acpi - start.acpi) & ACPI_TIMER_MASK) < MEASURE_TICKS);
	uint64_t passed = (end.acpi - start.acpi) & ACPI_TIMER_MASK;
	ticks_per_second = (end.ticks - start.ticks) * ACPI_TIMER_HZ / passed;
	multiplier = (uint64_t)(((__uint128_t)1000000000 << 32) / ticks_per_second);
	apic_timer_set_rate((uint64_t)(start.apic - end.apic) * ACPI_TIMER_HZ / passed);
	boot_time = rtc_seconds() * 1000000000;
}

uint64_t clock_ns(void)
{
	return (uint64_t)((__uint128_t)(cpu_ticks() - boot_ticks) * multiplier >> 32);
}

uint64_t clock_ticks_per_second(void)
{
	return ticks_per_second;
}

uint64_t clock_busy_ns(void)
{
	uint64_t busy = (cpu_ticks() - boot_ticks) * cpu_count;
	for (uint32_t i = 0; i < cpu_count; i++)
		busy -= __atomic_load_n(&cpus[i].idle_ticks, __ATOMIC_RELAXED);
	return (uint64_t)((__uint128_t)busy * multiplier >> 32);
}

uint64_t clock_boot_time(void)
{
	return boot_time;
}
