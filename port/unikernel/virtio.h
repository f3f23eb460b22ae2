/* SPDX-License-Identifier: MIT */
/*
 * Virtio devices over PCI, version 1 ("modern"), with split queues and an MSI-X vector each. The
 * specification: OASIS, Virtual I/O Device (VIRTIO) Version 1.1.
 */
#ifndef PORT_UNIKERNEL_VIRTIO_H
#define PORT_UNIKERNEL_VIRTIO_H

#include <stdbool.h>
#include <stdint.h>
#include "port/unikernel/pci.h"
#include "port/unikernel/spinlock.h"

#define VIRTIO_VENDOR	     0x1af4
#define VIRTIO_DEVICE_NET    0x1041
#define VIRTIO_DEVICE_BLOCK  0x1042
#define VIRTIO_QUEUE_ENTRIES 256

struct virtio_device {
	struct pci_device *pci;
	volatile uint8_t *common, *notify, *specific;
	uint32_t notify_multiplier;
	uint64_t features; /* that both sides know */
};

/* One piece of a request. */
struct virtio_buffer {
	void *address; /* in the direct map */
	uint32_t bytes;
	bool written; /* by the device */
};

struct virtio_descriptor {
	uint64_t address;
	uint32_t bytes;
	uint16_t flags, next;
};

struct virtio_available {
	uint16_t flags, index;
	uint16_t ring[VIRTIO_QUEUE_ENTRIES];
};

struct virtio_used {
	uint16_t flags, index;
	struct {
		uint32_t id, bytes;
	} ring[VIRTIO_QUEUE_ENTRIES];
};

struct virtio_queue {
	struct spinlock lock;
	struct virtio_descriptor *descriptors;
	struct virtio_available *available;
	struct virtio_used *used;
	volatile uint16_t *bell;
	uint16_t number, size;
	uint16_t first_free, free_count; /* descriptors, chained by `next` */
	uint16_t seen;			 /* used entries taken so far */
	void *owners[VIRTIO_QUEUE_ENTRIES];
};

/* Resets the device and agrees on features. False (said on the console): it cannot be used. */
bool virtio_init(struct virtio_device *device, struct pci_device *pci, uint64_t wanted);
/* Makes a queue, whose interrupts call handler(argument) on processor `cpu`. handler NULL: none. */
bool virtio_queue_init(struct virtio_device *device, struct virtio_queue *queue, uint16_t number,
		       uint32_t cpu, interrupt_handler *handler, void *argument);
/* All queues are made: the device may begin. */
void virtio_ready(struct virtio_device *device);

/* Hands a request to the device; false: no descriptors left. The bell is rung apart. */
bool virtio_queue_add(struct virtio_queue *queue, const struct virtio_buffer *buffers,
		      unsigned count, void *owner);
void virtio_queue_ring(struct virtio_queue *queue);
/* The owner of a request that is done, or NULL; *bytes: what the device wrote. */
void *virtio_queue_take(struct virtio_queue *queue, uint32_t *bytes);
/* Wants an interrupt for the next request that is done. True: one is done already. */
bool virtio_queue_want_interrupt(struct virtio_queue *queue, bool want);

#endif
