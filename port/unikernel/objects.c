/* SPDX-License-Identifier: MIT */
/*
 * The object allocator: malloc and its kin. Small objects come from slabs of 16 KiB, with one list
 * of slabs for each size; larger ones are runs of pages, or mapped pieces that are never freed.
 */
#include "port/unikernel/memory.h"

#include "port/unikernel/console.h"
#include "port/unikernel/list.h"
#include "port/unikernel/spinlock.h"
#include "port/unikernel/include/string.h"

#define SLAB_ORDER    2
#define SLAB_BYTES    (PAGE_BYTES << SLAB_ORDER)
#define MARK_SLAB     1
#define MAPPED_HEADER 64 /* before a mapped piece: its size */

static const uint16_t sizes[] = { 16,  32,  48,	 64,   96,   128,  192,	 256,
				  384, 512, 768, 1024, 1536, 2048, 4048, 8160 };
#define SIZE_COUNT (sizeof(sizes) / sizeof(sizes[0]))

struct slab {
	struct list link; /* in its size's list while it has room */
	void *objects;	  /* free ones, chained by their first words */
	uint32_t used;
	uint32_t size; /* index into sizes */
	uint64_t pad[4];
};
_Static_assert(sizeof(struct slab) == 64, "objects stay aligned to 16 bytes");

struct size_class {
	struct spinlock lock;
	struct list slabs; /* those with room */
};

static struct size_class classes[SIZE_COUNT];

static struct slab *new_slab(uint32_t size)
{
	struct slab *slab = pages_allocate(SLAB_ORDER);
	if (!slab)
		return NULL;
	pages_set_mark(slab, MARK_SLAB);
	slab->used = 0;
	slab->size = size;
	slab->objects = NULL;
	for (char *at = (char *)slab + SLAB_BYTES - sizes[size]; at >= (char *)(slab + 1);
	     at -= sizes[size]) {
		*(void **)at = slab->objects;
		slab->objects = at;
	}
	return slab;
}

static inline __attribute__((always_inline)) void *allocate_small(uint32_t size)
{
	struct size_class *class = &classes[size];
	uint64_t flags = spin_lock(&class->lock);
	if (!class->slabs.next)
		list_init(&class->slabs);
	if (list_is_empty(&class->slabs)) {
		struct slab *slab = new_slab(size);
		if (!slab) {
			spin_unlock(&class->lock, flags);
			return NULL;
		}
		list_insert_before(&class->slabs, &slab->link);
	}
	struct slab *slab = list_entry(class->slabs.next, struct slab, link);
	void *object = slab->objects;
	slab->objects = *(void **)object;
	slab->used++;
	if (!slab->objects)
		list_remove(&slab->link);
	spin_unlock(&class->lock, flags);
	return object;
}

void *malloc(size_t bytes)
{
	if (bytes <= sizes[SIZE_COUNT - 1]) {
		uint32_t size = 0;
		while (sizes[size] < bytes)
			size++;
		return allocate_small(size);
	}
	if (bytes > (size_t)PAGE_BYTES << PAGES_ORDER_MAX) {
		uint64_t *piece = map_allocate(bytes + MAPPED_HEADER);
		if (!piece)
			return NULL;
		piece[0] = bytes;
		return (char *)piece + MAPPED_HEADER;
	}
	unsigned order = 0;
	while ((size_t)PAGE_BYTES << order < bytes)
		order++;
	void *pages = pages_allocate(order);
	if (pages)
		pages_set_mark(pages, 0);
	return pages;
}

/* Returns the slab of an object, or NULL: it is a run of pages (its order is set). */
static inline struct slab *slab_of(void *object, unsigned *order)
{
	if ((uint64_t)object >= MAP_BASE) {
		*order = PAGES_ORDER_MAX + 1;
		return NULL;
	}
	struct slab *slab = (struct slab *)((uint64_t)object & -(uint64_t)SLAB_BYTES);
	if (object != slab && pages_mark(slab, order) == MARK_SLAB && *order == SLAB_ORDER)
		return slab;
	if (pages_mark(object, order) < 0)
		*order = ~0u;
	return NULL;
}

void free(void *object)
{
	unsigned order;
	if (!object)
		return;
	struct slab *slab = slab_of(object, &order);
	if (!slab) {
		if (order <= PAGES_ORDER_MAX)
			pages_release(object, order);
		else if (order == ~0u)
			console_print("memory: free of %p, which was not allocated\n", object);
		return;
	}
	struct size_class *class = &classes[slab->size];
	uint64_t flags = spin_lock(&class->lock);
	if (!slab->objects)
		list_insert_before(class->slabs.next, &slab->link);
	*(void **)object = slab->objects;
	slab->objects = object;
	/* The last slab of a size is kept. */
	bool empty = --slab->used == 0 && class->slabs.next->next != &class->slabs;
	if (empty)
		list_remove(&slab->link);
	spin_unlock(&class->lock, flags);
	if (empty)
		pages_release(slab, SLAB_ORDER);
}

void *calloc(size_t count, size_t bytes)
{
	size_t all;
	if (__builtin_mul_overflow(count, bytes, &all))
		return NULL;
	void *object = malloc(all);
	return object ? memset(object, 0, all) : NULL;
}

void *realloc(void *object, size_t bytes)
{
	unsigned order;
	if (!object)
		return malloc(bytes);
	struct slab *slab = slab_of(object, &order);
	size_t had = slab ? sizes[slab->size] : (size_t)PAGE_BYTES << order;
	if (!slab && order > PAGES_ORDER_MAX)
		had = *(uint64_t *)((char *)object - MAPPED_HEADER);
	if (had >= bytes)
		return object;
	void *larger = malloc(bytes);
	if (larger) {
		memcpy(larger, object, had);
		free(object);
	}
	return larger;
}
