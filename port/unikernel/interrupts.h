/* SPDX-License-Identifier: MIT */
/*
 * Interrupts and exceptions. Interrupts run on their processor's interrupt stack, with those of a
 * higher class let through; exceptions run where they happened, NMI, debug and double faults on
 * stacks of their own.
 */
#ifndef PORT_UNIKERNEL_INTERRUPTS_H
#define PORT_UNIKERNEL_INTERRUPTS_H

#include "port/unikernel/cpu.h"

/* Stacks of the task state, counted from 1. */
#define STACK_NMI	 1
#define STACK_DOUBLE	 2
#define STACK_DEBUG	 3
#define INTERRUPT_STACKS 3

enum vector {
	VECTOR_DEBUG = 1,
	VECTOR_NMI = 2,
	VECTOR_BREAKPOINT = 3,
	VECTOR_DOUBLE_FAULT = 8,
	VECTOR_PAGE_FAULT = 14,
	VECTOR_EXCEPTIONS = 32,
	VECTOR_DEVICES = 0x40, /* to 0x7f; handed out by interrupt_allocate */
	VECTOR_RESCHEDULE = 0xd0,
	VECTOR_TIMER = 0xe0,
	VECTOR_STOP = 0xf0,
	VECTOR_LATER = 0xf1, /* handlers of NMIs that could not run */
	VECTOR_SPURIOUS = 0xff,
};

typedef void interrupt_handler(void *argument);
/* True: handled, go on. NULL: it is called later than it happened (exception_set). */
typedef bool exception_handler(struct registers *registers);

void interrupts_init(void);	  /* the table, once */
void interrupts_load_table(void); /* on each processor */
/* A vector for a device of that name, 0: none left. The handler runs with interrupts of higher classes on. */
uint32_t interrupt_allocate(interrupt_handler *handler, void *argument, const char *name);
void interrupt_set(uint32_t vector, interrupt_handler *handler, void *argument);
/* Takes an exception (a vector below 32) before the crash report does. NULL: none. NMIs and debug
 * exceptions interrupt whatever runs: their handlers take no lock and wake nobody. One that finds
 * the tracer at work, or text being changed, is called as soon as interrupts are let through. */
void exception_set(uint32_t vector, exception_handler *handler);

/* From interrupts.S. */
void interrupt_dispatch(struct registers *registers);
void exception_dispatch(struct registers *registers);
void interrupt_switch(struct registers *registers);

#endif
