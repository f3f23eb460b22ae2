/* SPDX-License-Identifier: MIT */
/*
 * The functions that lwIP needs of an operating system (its sys_arch), and its checksum.
 */
#include <lwip/err.h>
#include <lwip/opt.h>
#include <lwip/sys.h>
#include "port/unikernel/clock.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/thread.h"

void sys_init(void)
{
}

u32_t sys_now(void)
{
	return (u32_t)(clock_ns() / 1000000);
}

uint32_t sys_protector, sys_protections;

/* ---- mutexes: there is lwIP's core lock, taken by LOCK_TCPIP_CORE (lwipopts.h) ---- */

err_t sys_mutex_new(sys_mutex_t *mutex)
{
	*mutex = calloc(1, sizeof(**mutex));
	if (!*mutex)
		return ERR_MEM;
	(*mutex)->name = "lwIP";
	return ERR_OK;
}

/* ---- semaphores ---- */

err_t sys_sem_new(sys_sem_t *sem, u8_t count)
{
	*sem = calloc(1, sizeof(**sem));
	if (!*sem)
		return ERR_MEM;
	(*sem)->count = count;
	return ERR_OK;
}

void sys_sem_signal(sys_sem_t *sem)
{
	struct semaphore *s = *sem;
	uint64_t flags = spin_lock(&s->waiting.lock);
	s->count++;
	wake_one_locked(&s->waiting);
	spin_unlock(&s->waiting.lock, flags);
}

static uint64_t deadline_after(u32_t milliseconds)
{
	return milliseconds ? clock_ns() + milliseconds * 1000000ull : TIMER_NEVER;
}

u32_t sys_arch_sem_wait(sys_sem_t *sem, u32_t timeout)
{
	struct semaphore *s = *sem;
	uint64_t deadline = deadline_after(timeout);
	uint64_t flags = spin_lock(&s->waiting.lock);
	while (!s->count) {
		bool woken = wait_locked(&s->waiting, flags, deadline);
		flags = spin_lock(&s->waiting.lock);
		if (!woken && !s->count) {
			spin_unlock(&s->waiting.lock, flags);
			return SYS_ARCH_TIMEOUT;
		}
	}
	s->count--;
	spin_unlock(&s->waiting.lock, flags);
	return 0;
}

void sys_sem_free(sys_sem_t *sem)
{
	free(*sem);
}

/* ---- mailboxes ---- */

err_t sys_mbox_new(sys_mbox_t *mbox, int size)
{
	*mbox = calloc(1, sizeof(**mbox) + (size_t)size * sizeof(void *));
	if (!*mbox)
		return ERR_MEM;
	(*mbox)->messages = (void **)(*mbox + 1);
	(*mbox)->size = (uint32_t)size;
	return ERR_OK;
}

static void put_locked(struct mailbox *box, void *message)
{
	box->messages[(box->first + box->count++) % box->size] = message;
	wake_one_locked(&box->readers);
}

static void *get_locked(struct mailbox *box)
{
	void *message = box->messages[box->first];
	box->first = (box->first + 1) % box->size;
	box->count--;
	return message;
}

static void room_made(struct mailbox *box)
{
	uint64_t flags = spin_lock(&box->writers.lock);
	wake_all_locked(&box->writers);
	spin_unlock(&box->writers.lock, flags);
}

err_t sys_mbox_trypost(sys_mbox_t *mbox, void *message)
{
	struct mailbox *box = *mbox;
	uint64_t flags = spin_lock(&box->readers.lock);
	bool room = box->count < box->size;
	if (room)
		put_locked(box, message);
	spin_unlock(&box->readers.lock, flags);
	return room ? ERR_OK : ERR_MEM;
}

err_t sys_mbox_trypost_fromisr(sys_mbox_t *mbox, void *message)
{
	return sys_mbox_trypost(mbox, message);
}

void sys_mbox_post(sys_mbox_t *mbox, void *message)
{
	struct mailbox *box = *mbox;
	while (sys_mbox_trypost(mbox, message) != ERR_OK) {
		/* The second test sees a reader that made room after the first one. */
		uint64_t flags = spin_lock(&box->writers.lock);
		if (__atomic_load_n(&box->count, __ATOMIC_SEQ_CST) < box->size)
			spin_unlock(&box->writers.lock, flags);
		else
			wait_locked(&box->writers, flags, TIMER_NEVER);
	}
}

u32_t sys_arch_mbox_tryfetch(sys_mbox_t *mbox, void **message)
{
	struct mailbox *box = *mbox;
	void *taken = NULL;
	uint64_t flags = spin_lock(&box->readers.lock);
	bool any = box->count > 0;
	if (any)
		taken = get_locked(box);
	spin_unlock(&box->readers.lock, flags);
	if (message)
		*message = taken;
	if (!any)
		return SYS_MBOX_EMPTY;
	room_made(box);
	return 0;
}

u32_t sys_arch_mbox_fetch(sys_mbox_t *mbox, void **message, u32_t timeout)
{
	struct mailbox *box = *mbox;
	uint64_t deadline = deadline_after(timeout);
	uint64_t flags = spin_lock(&box->readers.lock);
	while (!box->count) {
		bool woken = wait_locked(&box->readers, flags, deadline);
		flags = spin_lock(&box->readers.lock);
		if (!woken && !box->count) {
			spin_unlock(&box->readers.lock, flags);
			if (message)
				*message = NULL;
			return SYS_ARCH_TIMEOUT;
		}
	}
	void *taken = get_locked(box);
	spin_unlock(&box->readers.lock, flags);
	if (message)
		*message = taken;
	room_made(box);
	return 0;
}

void sys_mbox_free(sys_mbox_t *mbox)
{
	free(*mbox);
}

/* ---- threads ---- */

sys_thread_t sys_thread_new(const char *name, lwip_thread_fn function, void *argument,
			    int stack_bytes, int priority)
{
	(void)stack_bytes;
	(void)priority;
	/* The function never returns, so its missing result does not matter. */
	return thread_create(name, (void *(*)(void *))(uintptr_t)function, argument, 0, true);
}

/* ---- the one's complement sum of RFC 1071, eight bytes at a time ---- */

uint16_t net_checksum(const void *data, int bytes)
{
	const uint8_t *at = data;
	uint64_t sum = 0, word;
	for (; bytes >= 8; bytes -= 8, at += 8) {
		__builtin_memcpy(&word, at, 8);
		sum += word;
		sum += sum < word;
	}
	word = 0;
	for (int i = 0; i < bytes; i++)
		word |= (uint64_t)at[i] << 8 * i;
	sum += word;
	sum += sum < word;
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return (uint16_t)sum;
}
