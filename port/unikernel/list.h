/* SPDX-License-Identifier: MIT */
/* Doubly linked rings: a head that points to itself is empty. The owner's lock guards each. */
#ifndef PORT_UNIKERNEL_LIST_H
#define PORT_UNIKERNEL_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *previous;
};

#define list_entry(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

static inline __attribute__((always_inline)) void list_init(struct list *head)
{
	head->next = head->previous = head;
}

static inline __attribute__((always_inline)) bool list_is_empty(const struct list *head)
{
	return head->next == head;
}

static inline __attribute__((always_inline)) void list_insert_before(struct list *place,
								     struct list *link)
{
	link->next = place;
	link->previous = place->previous;
	place->previous->next = link;
	place->previous = link;
}

static inline __attribute__((always_inline)) void list_remove(struct list *link)
{
	link->next->previous = link->previous;
	link->previous->next = link->next;
	list_init(link);
}

#endif
