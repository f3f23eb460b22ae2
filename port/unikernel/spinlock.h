/* SPDX-License-Identifier: MIT */
/*
 * Ticket locks for what is held for microseconds. Taking one keeps interrupts off, so a lock may be
 * used by interrupts and threads alike; none is held across a switch.
 */
#ifndef PORT_UNIKERNEL_SPINLOCK_H
#define PORT_UNIKERNEL_SPINLOCK_H

#include "port/unikernel/cpu.h"

struct spinlock {
	uint32_t next;	  /* ticket to draw */
	uint32_t serving; /* ticket whose turn it is */
};

/* 1: a crash has stopped all other processors (crash.c): nobody waits for anything any more. */
extern uint32_t crash_is_alone;

/* Waits for the ticket's turn. */
void spin_wait(struct spinlock *lock, uint32_t ticket) __attribute__((cold, noinline));

/* Returns the flags for spin_unlock. */
static inline __attribute__((always_inline)) uint64_t spin_lock(struct spinlock *lock)
{
	uint64_t flags = interrupts_save();
	uint32_t ticket = __atomic_fetch_add(&lock->next, 1, __ATOMIC_RELAXED);
	/* acquire: pairs with the release in spin_unlock */
	if (__builtin_expect(__atomic_load_n(&lock->serving, __ATOMIC_ACQUIRE) != ticket, 0))
		spin_wait(lock, ticket);
	return flags;
}

static inline __attribute__((always_inline)) void spin_unlock(struct spinlock *lock, uint64_t flags)
{
	__atomic_store_n(&lock->serving, lock->serving + 1, __ATOMIC_RELEASE);
	interrupts_restore(flags);
}

#endif
