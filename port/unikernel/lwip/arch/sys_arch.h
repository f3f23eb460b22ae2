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

#define sys_sem_valid(sem)	     (*(sem) != NULL)
#define sys_sem_set_invalid(sem)     (*(sem) = NULL)
#define sys_mutex_valid(mutex)	     (*(mutex) != NULL)
#define sys_mutex_set_invalid(mutex) (*(mutex) = NULL)
#define sys_mbox_valid(mbox)	     (*(mbox) != NULL)
#define sys_mbox_set_invalid(mbox)   (*(mbox) = NULL)

#endif
