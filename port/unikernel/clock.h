/* SPDX-License-Identifier: MIT */
/* Time: the processors' tick counters, which QEMU keeps in step, measured against the ACPI timer.
 */
#ifndef PORT_UNIKERNEL_CLOCK_H
#define PORT_UNIKERNEL_CLOCK_H

#include <stdint.h>

/* Measures both the tick counter and the APIC timer. Once, on the boot processor. */
void clock_init(void);
/* Nanoseconds since the boot. From anywhere. */
uint64_t clock_ns(void);
uint64_t clock_ticks_per_second(void);
/* Nanoseconds since the boot that processors did not wait through, of all of them together. */
uint64_t clock_busy_ns(void);
/* Real time at the boot, in nanoseconds since 1970 (from the real-time clock: whole seconds). */
uint64_t clock_boot_time(void);

#endif
