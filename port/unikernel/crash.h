/* SPDX-License-Identifier: MIT */
/*
 * Reports of what must not happen. A fault of a thread is reported and ends that thread, while the
 * others live on for LINGER seconds (the option linger; 0 if it is not given) so that the trace can be
 * fetched; a fault of the kernel itself stops the machine, which serves the trace alone for as long.
 */
#ifndef PORT_UNIKERNEL_CRASH_H
#define PORT_UNIKERNEL_CRASH_H

#include <stdint.h>
#include "port/unikernel/cpu.h"

/* The kernel cannot go on: a report, then the machine ends with a failure. From anywhere. */
void crash(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* An exception that nobody wanted. Comes back only if it was a thread's: `registers` then lead to where the thread
 * waits for ever. */
void crash_exception(struct registers *registers);
/* An NMI: stops the processor if it was sent for that, or says where it is if that was asked, or if
 * nobody else takes NMIs (`wanted`). False: it is somebody else's. */
bool crash_nmi(struct registers *registers, bool wanted);
/* Prints a call stack by name, beginning at a frame pointer, up to what cannot be a frame, or the 40th call. */
void crash_print_stack(uint64_t frame_pointer);
/* Has another processor print where it is, even with interrupts off. From a thread. Does not wait for it: who was
 * asked before and has not answered yet is forgotten. */
void crash_ask_cpu(struct cpu *cpu);
/* The machine ends now. From anywhere. */
void power_off(bool failed) __attribute__((noreturn));
/* The program is over: after LINGER seconds (if asked for, or after a failure) the machine ends,
 * with an exit code of QEMU's that tells success from failure. From a thread. */
void machine_end(bool failed) __attribute__((noreturn));

#endif
