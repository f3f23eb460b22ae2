/* SPDX-License-Identifier: MIT */
/*
 * The page's second thread. The reader decodes, and follows the stacks; of each call that has ended it
 * hands over what the sums and the boxes need (struct gt_page_left), in batches that go round:
 *
 *	reader: fills batches[given]   ->   helper: adds batches[done]
 *
 * Both work on different parts of the page (page_private.h). Before the reader moves an array that
 * the helper uses, it waits until all that it handed over is added.
 */
#define _GNU_SOURCE /* CPU_COUNT */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include "export/page/page_private.h"
#include "port/host/own_thread.h"

#define BATCH	      2048u
#define BATCHES	      8u
#define FINISHERS_MAX 8u

struct batch {
	uint32_t count;
	struct gt_page_left left[BATCH];
};

struct gt_page_helper {
	struct gt_page *page;
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows, up to the batches */
	pthread_cond_t changed;
	uint64_t given, done; /* batches */
	bool ends;
	int error; /* of the first call that could not be added; the others are dropped */
	struct batch batches[BATCHES];
};

static unsigned usable_cpus(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? (unsigned)CPU_COUNT(&cpus) : 1;
}

static int add_batch(struct gt_page *page, const struct batch *batch)
{
	int error = 0;

	for (uint32_t i = 0; i < batch->count && error == 0; i++)
		error = gt_page_add_left(page, &batch->left[i]);
	return error;
}

static void *help(void *data)
{
	struct gt_page_helper *helper = data;

	pthread_mutex_lock(&helper->lock);
	for (;;) {
		const struct batch *batch = &helper->batches[helper->done % BATCHES];
		int error = helper->error;

		if (helper->done == helper->given && helper->ends)
			break;
		if (helper->done == helper->given) {
			pthread_cond_wait(&helper->changed, &helper->lock);
			continue;
		}
		pthread_mutex_unlock(&helper->lock);
		if (error == 0)
			error = add_batch(helper->page, batch);
		pthread_mutex_lock(&helper->lock);
		helper->error = error;
		helper->done++;
		pthread_cond_broadcast(&helper->changed);
	}
	pthread_mutex_unlock(&helper->lock);
	return NULL;
}

/* The batch that the reader fills. `given` changes in the reader's thread only. */
static struct batch *filled_batch(struct gt_page_helper *helper)
{
	return &helper->batches[helper->given % BATCHES];
}

static void fill_batch(struct gt_page *page, struct gt_page_helper *helper)
{
	page->next_left = filled_batch(helper)->left;
	page->left_end = page->next_left + BATCH;
}

static void fill_alone(struct gt_page *page)
{
	page->next_left = &page->alone;
	page->left_end = page->next_left + 1;
}

void gt_page_helper_start(struct gt_page *page)
{
	bool is_wanted = !page->options.one_thread && usable_cpus() > 1;
	struct gt_page_helper *helper = is_wanted ? malloc(sizeof(*helper)) : NULL;

	fill_alone(page);
	if (helper == NULL)
		return;
	helper->page = page;
	helper->given = helper->done = 0;
	helper->ends = false;
	helper->error = 0;
	pthread_mutex_init(&helper->lock, NULL);
	pthread_cond_init(&helper->changed, NULL);
	if (gt_own_thread_start(&helper->thread, help, helper) == 0) {
		page->helper = helper;
		fill_batch(page, helper);
		return;
	}
	pthread_cond_destroy(&helper->changed);
	pthread_mutex_destroy(&helper->lock);
	free(helper);
}

/* Hands over the batch that is being filled; returns when no more than `behind` are not added. */
static int give_batch(struct gt_page *page, uint64_t behind)
{
	struct gt_page_helper *helper = page->helper;
	struct batch *batch = filled_batch(helper);
	int error;

	batch->count = (uint32_t)(page->next_left - batch->left);
	pthread_mutex_lock(&helper->lock);
	if (batch->count > 0) {
		helper->given++;
		pthread_cond_broadcast(&helper->changed);
	}
	while (helper->given - helper->done > behind)
		pthread_cond_wait(&helper->changed, &helper->lock);
	error = helper->error;
	pthread_mutex_unlock(&helper->lock);
	fill_batch(page, helper);
	return error;
}

int gt_page_helper_give_slow(struct gt_page *page)
{
	if (page->helper != NULL)
		return give_batch(page, BATCHES - 1);
	fill_alone(page);
	return gt_page_add_left(page, &page->alone);
}

void gt_page_helper_wait(struct gt_page *page)
{
	if (page->helper != NULL)
		give_batch(page, 0);
}

int gt_page_helper_end(struct gt_page *page)
{
	struct gt_page_helper *helper = page->helper;
	int error;

	if (helper == NULL)
		return 0;
	error = give_batch(page, 0);
	pthread_mutex_lock(&helper->lock);
	helper->ends = true;
	pthread_cond_broadcast(&helper->changed);
	pthread_mutex_unlock(&helper->lock);
	pthread_join(helper->thread, NULL);
	pthread_cond_destroy(&helper->changed);
	pthread_mutex_destroy(&helper->lock);
	free(helper);
	page->helper = NULL;
	fill_alone(page);
	return error;
}

/* The tracks of all lanes, one behind the other, and the next of them that nobody has begun. */
struct finishing {
	struct gt_track **tracks;
	size_t count;
	atomic_size_t next;
	atomic_int error;
};

static void *finish_some(void *data)
{
	struct finishing *finishing = data;
	size_t at;

	while ((at = atomic_fetch_add(&finishing->next, 1)) < finishing->count) {
		int error = gt_track_finish(finishing->tracks[at]);

		if (error != 0)
			atomic_store(&finishing->error, error);
	}
	return NULL;
}

static int list_tracks(const struct gt_page *page, struct finishing *finishing)
{
	size_t count = 0;

	for (uint32_t i = 0; i < page->lane_count; i++)
		count += page->lanes[i].track_count;
	finishing->tracks = malloc((count + 1) * sizeof(*finishing->tracks));
	if (finishing->tracks == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < page->lane_count; i++)
		for (uint32_t j = 0; j < page->lanes[i].track_count; j++)
			finishing->tracks[finishing->count++] = &page->lanes[i].tracks[j];
	return 0;
}

int gt_page_finish_tracks(struct gt_page *page)
{
	struct finishing finishing = { .error = 0 };
	unsigned cpus = page->options.one_thread ? 1 : usable_cpus(), started = 0;
	pthread_t threads[FINISHERS_MAX];

	if (list_tracks(page, &finishing) != 0)
		return GT_ENOMEM;
	while (started + 1 < cpus && started < FINISHERS_MAX && started + 1 < finishing.count &&
	       gt_own_thread_start(&threads[started], finish_some, &finishing) == 0)
		started++;
	finish_some(&finishing);
	while (started > 0)
		pthread_join(threads[--started], NULL);
	free(finishing.tracks);
	return atomic_load(&finishing.error);
}
