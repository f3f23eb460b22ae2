/* SPDX-License-Identifier: MIT */
/*
 * Requests to the disk. Each waits in its own queue until the device's interrupt reports it as
 * done.
 */
#include "port/unikernel/block.h"

#include "port/unikernel/console.h"
#include "port/unikernel/events.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/thread.h"
#include "port/unikernel/virtio.h"

#define TYPE_READ  0
#define TYPE_WRITE 1
#define LARGEST	   65536

struct request {
	/* read by the device */
	uint32_t type, reserved;
	uint64_t sector;
	/* written by the device: 0 is success */
	uint8_t status;
	/* ours */
	uint32_t bytes;
	bool done; /* under the lock of `waiting` */
	struct wait_queue waiting;
};

static struct virtio_device device;
static struct virtio_queue queue;
static struct wait_queue room; /* threads that found the queue full */
static uint64_t sectors;

/* As Linux's rwbs; unused if no tracing is compiled in. */
static __attribute__((unused)) const char *direction_of(const struct request *request)
{
	return request->type == TYPE_WRITE ? "W" : "R";
}

static void handle(void *argument)
{
	struct request *request;
	uint32_t bytes;
	(void)argument;
	while ((request = virtio_queue_take(&queue, &bytes))) {
		EVENT_COMPLETE(request->sector, request->bytes / BLOCK_SECTOR,
			       direction_of(request), request->status ? -5 : 0);
		uint64_t flags = spin_lock(&request->waiting.lock);
		request->done = true;
		wake_one_locked(&request->waiting);
		spin_unlock(&request->waiting.lock, flags);
		flags = spin_lock(&room.lock);
		wake_one_locked(&room);
		spin_unlock(&room.lock, flags);
	}
}

void block_init(struct pci_device *pci)
{
	pci->name = "virtio-blk";
	if (!virtio_init(&device, pci, 0) ||
	    !virtio_queue_init(&device, &queue, 0, cpu_count - 1, handle, NULL)) {
		console_print("the disk cannot be used\n");
		return;
	}
	virtio_ready(&device);
	sectors = *(volatile uint64_t *)device.specific;
}

uint64_t block_bytes(void)
{
	return sectors * BLOCK_SECTOR;
}

bool block_transfer(uint64_t sector, void *buffer, uint32_t bytes, bool write)
{
	if (bytes > LARGEST || bytes % BLOCK_SECTOR || sector + bytes / BLOCK_SECTOR > sectors)
		return false;
	struct request *request = calloc(1, sizeof(*request));
	if (!request)
		return false;
	request->type = write ? TYPE_WRITE : TYPE_READ;
	request->sector = sector;
	request->status = 0xff;
	request->bytes = bytes;
	const uint32_t sectors_asked = bytes / BLOCK_SECTOR;
	(void)sectors_asked;
	EVENT_BIO(block_bio_queue, sector, sectors_asked, direction_of(request));
	EVENT_BIO(block_getrq, sector, sectors_asked, direction_of(request));
	struct virtio_buffer pieces[] = {
		{ request, 16, false },
		{ buffer, bytes, !write },
		{ &request->status, 1, true },
	};
	EVENT_REQUEST(block_rq_insert, sector, sectors_asked, direction_of(request));
	uint64_t flags = spin_lock(&room.lock);
	/* before the device gets it: it may be done before this thread continues */
	EVENT_REQUEST(block_rq_issue, sector, sectors_asked, direction_of(request));
	while (!virtio_queue_add(&queue, pieces, 3, request)) {
		wait_locked(&room, flags, TIMER_NEVER);
		flags = spin_lock(&room.lock);
	}
	spin_unlock(&room.lock, flags);
	virtio_queue_ring(&queue);
	flags = spin_lock(&request->waiting.lock);
	while (!request->done) {
		wait_locked(&request->waiting, flags, TIMER_NEVER);
		flags = spin_lock(&request->waiting.lock);
	}
	spin_unlock(&request->waiting.lock, flags);
	bool ok = request->status == 0;
	free(request);
	return ok;
}
