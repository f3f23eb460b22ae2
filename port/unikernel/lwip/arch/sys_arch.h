/* SPDX-License-Identifier: MIT */
/* lwIP's threads, locks and mailboxes, made of the kernel's (net_system.c). */
#ifndef PORT_UNIKERNEL_LWIP_ARCH_SYS_ARCH_H
#define PORT_UNIKERNEL_LWIP_ARCH_SYS_ARCH_H

#include <stdint.h>
#include "port/unikernel/thread.h"

struct semaphore {
	struct wait_queue waiting;
	uint32_t count;
};

struct mailbox {
	struct wait_queue readers; /* its lock guards the mailbox */
	struct wait_queue writers;
	void **messages;
	uint32_t size, first, count;
};

/* lwIP makes and ends them by name; a pointer says whether there is one. */
typedef struct semaphore *sys_sem_t;
typedef struct mutex *sys_mutex_t;
typedef struct mailbox *sys_mbox_t;
typedef struct thread *sys_thread_t;
typedef uint64_t sys_prot_t;

/* Short protection nests, so it knows its processor. */
extern uint32_t sys_protector; /* number of the processor + 1; 0: nobody */
extern uint32_t sys_protections;

static inline __attribute__((always_inline)) sys_prot_t sys_protect(void)
{
	uint64_t flags = interrupts_save();
	uint32_t self = cpu_this()->number + 1, nobody = 0;
	if (__atomic_load_n(&sys_protector, __ATOMIC_RELAXED) != self)
		while (!__atomic_compare_exchange_n(&sys_protector, &nobody, self, false,
						    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) &&
		       !crash_is_alone) {
			nobody = 0;
			cpu_pause();
		}
	sys_protections++;
	return flags;
}

static inline __attribute__((always_inline)) void sys_unprotect(sys_prot_t flags)
{
	if (!--sys_protections)
		__atomic_store_n(&sys_protector, 0, __ATOMIC_RELEASE);
	interrupts_restore(flags);
}

#define SYS_ARCH_DECL_PROTECT(level) sys_prot_t level
#define SYS_ARCH_PROTECT(level)	     level = sys_protect()
#define SYS_ARCH_UNPROTECT(level)    sys_unprotect(level)

#define sys_sem_valid(sem)	     (*(sem) != NULL)
#define sys_sem_set_invalid(sem)     (*(sem) = NULL)
#define sys_mutex_valid(mutex)	     (*(mutex) != NULL)
#define sys_mutex_set_invalid(mutex) (*(mutex) = NULL)
#define sys_mbox_valid(mbox)	     (*(mbox) != NULL)
#define sys_mbox_set_invalid(mbox)   (*(mbox) = NULL)

#endif
