/* SPDX-License-Identifier: MIT */
/*
 * What all virtio devices have in common: negotiation and queues.
 */
#include "port/unikernel/virtio.h"

#include "port/unikernel/console.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/include/string.h"

#define CAPABILITY_VENDOR 9
#define KIND_COMMON	  1
#define KIND_NOTIFY	  2
#define KIND_SPECIFIC	  4

/* The common registers. */
#define DEVICE_FEATURE_SELECT 0
#define DEVICE_FEATURE	      4
#define DRIVER_FEATURE_SELECT 8
#define DRIVER_FEATURE	      12
#define STATUS		      20
#define QUEUE_SELECT	      22
#define QUEUE_SIZE	      24
#define QUEUE_VECTOR	      26
#define QUEUE_ENABLE	      28
#define QUEUE_NOTIFY	      30
#define QUEUE_DESCRIPTORS     32
#define QUEUE_AVAILABLE	      40
#define QUEUE_USED	      48

#define STATUS_ACKNOWLEDGE 1
#define STATUS_DRIVER	   2
#define STATUS_READY	   4
#define STATUS_FEATURES_OK 8

#define FEATURE_VERSION_1 (1ull << 32)
#define NO_VECTOR	  0xffff
#define FLAG_NEXT	  1
#define FLAG_WRITTEN	  2
#define NO_INTERRUPT	  1
#define NO_NOTIFY	  1 /* the same bit of the device's flags */

static void set_8(struct virtio_device *device, uint32_t offset, uint8_t value)
{
	device->common[offset] = value;
}

static void set_16(struct virtio_device *device, uint32_t offset, uint16_t value)
{
	*(volatile uint16_t *)(device->common + offset) = value;
}

static void set_32(struct virtio_device *device, uint32_t offset, uint32_t value)
{
	*(volatile uint32_t *)(device->common + offset) = value;
}

static void set_64(struct virtio_device *device, uint32_t offset, uint64_t value)
{
	set_32(device, offset, (uint32_t)value);
	set_32(device, offset + 4, (uint32_t)(value >> 32));
}

static uint16_t get_16(struct virtio_device *device, uint32_t offset)
{
	return *(volatile uint16_t *)(device->common + offset);
}

static bool find_registers(struct virtio_device *device)
{
	struct pci_device *pci = device->pci;
	for (uint8_t at = pci_capability(pci, CAPABILITY_VENDOR, 0); at;
	     at = pci_capability(pci, CAPABILITY_VENDOR, at)) {
		uint8_t kind = pci_read_8(pci, at + 3u);
		if (kind != KIND_COMMON && kind != KIND_NOTIFY && kind != KIND_SPECIFIC)
			continue;
		volatile uint8_t *bar = pci_bar(pci, pci_read_8(pci, at + 4u));
		if (!bar)
			continue;
		volatile uint8_t *place = bar + pci_read_32(pci, at + 8u);
		if (kind == KIND_COMMON)
			device->common = place;
		if (kind == KIND_SPECIFIC)
			device->specific = place;
		if (kind == KIND_NOTIFY) {
			device->notify = place;
			device->notify_multiplier = pci_read_32(pci, at + 16u);
		}
	}
	return device->common && device->notify && device->specific;
}

bool virtio_init(struct virtio_device *device, struct pci_device *pci, uint64_t wanted)
{
	device->pci = pci;
	pci_enable(pci);
	if (!find_registers(device)) {
		console_print("virtio device %04x has no registers that this driver knows\n",
			      pci->device);
		return false;
	}
	set_8(device, STATUS, 0);
	set_8(device, STATUS, STATUS_ACKNOWLEDGE | STATUS_DRIVER);
	wanted |= FEATURE_VERSION_1;
	for (uint32_t half = 0; half < 2; half++) {
		set_32(device, DEVICE_FEATURE_SELECT, half);
		uint32_t offered = *(volatile uint32_t *)(device->common + DEVICE_FEATURE);
		uint32_t agreed = offered & (uint32_t)(wanted >> 32 * half);
		device->features |= (uint64_t)agreed << 32 * half;
		set_32(device, DRIVER_FEATURE_SELECT, half);
		set_32(device, DRIVER_FEATURE, agreed);
	}
	set_8(device, STATUS, STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK);
	if (!(device->features & FEATURE_VERSION_1) ||
	    !(device->common[STATUS] & STATUS_FEATURES_OK)) {
		console_print("virtio device %04x does not speak version 1\n", pci->device);
		return false;
	}
	return true;
}

bool virtio_queue_init(struct virtio_device *device, struct virtio_queue *queue, uint16_t number,
		       uint32_t cpu, interrupt_handler *handler, void *argument)
{
	set_16(device, QUEUE_SELECT, number);
	uint16_t size = get_16(device, QUEUE_SIZE);
	if (size > VIRTIO_QUEUE_ENTRIES)
		size = VIRTIO_QUEUE_ENTRIES;
	uint8_t *pages = pages_allocate(2);
	_Static_assert(VIRTIO_QUEUE_ENTRIES * 16 + sizeof(struct virtio_available) <= 8192 &&
			       sizeof(struct virtio_used) <= 8192,
		       "the three parts fit in four pages");
	if (!size || size & (size - 1) || !pages)
		return false;
	memset(pages, 0, (size_t)4 * PAGE_BYTES);
	queue->descriptors = (struct virtio_descriptor *)pages;
	queue->available = (struct virtio_available *)(pages + VIRTIO_QUEUE_ENTRIES * 16);
	queue->used = (struct virtio_used *)(pages + 2 * PAGE_BYTES);
	queue->number = number;
	queue->size = size;
	queue->free_count = size;
	for (uint16_t i = 0; i < size; i++)
		queue->descriptors[i].next = (uint16_t)(i + 1);
	queue->bell = (volatile uint16_t *)(device->notify + get_16(device, QUEUE_NOTIFY) *
								     device->notify_multiplier);
	if (!handler)
		queue->available->flags = NO_INTERRUPT;
	else if (!pci_connect(device->pci, number, cpu, handler, argument))
		return false;
	set_16(device, QUEUE_VECTOR, handler ? number : NO_VECTOR);
	set_16(device, QUEUE_SIZE, size);
	set_64(device, QUEUE_DESCRIPTORS, physical_of_direct(queue->descriptors));
	set_64(device, QUEUE_AVAILABLE, physical_of_direct(queue->available));
	set_64(device, QUEUE_USED, physical_of_direct(queue->used));
	set_16(device, QUEUE_ENABLE, 1);
	return true;
}

void virtio_ready(struct virtio_device *device)
{
	set_8(device, STATUS,
	      STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK | STATUS_READY);
}

bool virtio_queue_add(struct virtio_queue *queue, const struct virtio_buffer *buffers,
		      unsigned count, void *owner)
{
	uint64_t flags = spin_lock(&queue->lock);
	if (queue->free_count < count) {
		spin_unlock(&queue->lock, flags);
		return false;
	}
	uint16_t first = queue->first_free, at = first;
	for (unsigned i = 0; i < count; i++) {
		struct virtio_descriptor *descriptor = &queue->descriptors[at];
		descriptor->address = physical_of_direct(buffers[i].address);
		descriptor->bytes = buffers[i].bytes;
		descriptor->flags = (uint16_t)((buffers[i].written ? FLAG_WRITTEN : 0) |
					       (i + 1 < count ? FLAG_NEXT : 0));
		at = descriptor->next;
	}
	queue->first_free = at;
	queue->free_count = (uint16_t)(queue->free_count - count);
	queue->owners[first] = owner;
	uint16_t index = queue->available->index;
	queue->available->ring[index & (queue->size - 1)] = first;
	/* release: the device sees the request before its number */
	__atomic_store_n(&queue->available->index, (uint16_t)(index + 1), __ATOMIC_RELEASE);
	spin_unlock(&queue->lock, flags);
	return true;
}

void virtio_queue_ring(struct virtio_queue *queue)
{
	/* A busy device clears its "do not notify" flag, then looks at the queue again: so our
	 * index must be written before its flag is read. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&queue->used->flags, __ATOMIC_RELAXED) & NO_NOTIFY)
		return;
	*queue->bell = queue->number;
}

void *virtio_queue_take(struct virtio_queue *queue, uint32_t *bytes)
{
	void *owner = NULL;
	uint64_t flags = spin_lock(&queue->lock);
	/* acquire: what the device wrote before it */
	if (__atomic_load_n(&queue->used->index, __ATOMIC_ACQUIRE) != queue->seen) {
		uint16_t place = queue->seen++ & (queue->size - 1);
		uint16_t first = (uint16_t)(queue->used->ring[place].id & (queue->size - 1u));
		uint16_t last = first;
		*bytes = queue->used->ring[place].bytes;
		queue->free_count++;
		while (queue->descriptors[last].flags & FLAG_NEXT) {
			last = queue->descriptors[last].next;
			queue->free_count++;
		}
		queue->descriptors[last].next = queue->first_free;
		queue->first_free = first;
		owner = queue->owners[first];
	}
	spin_unlock(&queue->lock, flags);
	return owner;
}

bool virtio_queue_want_interrupt(struct virtio_queue *queue, bool want)
{
	__atomic_store_n(&queue->available->flags, want ? 0 : NO_INTERRUPT, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&queue->used->index, __ATOMIC_SEQ_CST) != queue->seen;
}
