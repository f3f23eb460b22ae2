/* SPDX-License-Identifier: MIT */
/*
 * See live_events.h. Any thread.
 */
#include "serve/live/live_events.h"

#include <stdlib.h>
#include <string.h>

#define FAMILY_MAX 64 /* generations: a thread, its creator, the creator's creator … */

static uint64_t now(void)
{
	return __builtin_ia32_rdtsc();
}

/* sched_switch */

static void show_from(struct gt_live *live, bool on, uint64_t clock)
{
	struct gt_merge_window *windows = live->shown.switch_windows;
	uint32_t *count = &live->shown.switch_window_count;

	if (*count > 0 && windows[*count - 1].to == UINT64_MAX) {
		if (!on)
			windows[*count - 1].to = clock;
	} else if (on && *count < GT_MERGE_WINDOWS) {
		windows[(*count)++] = (struct gt_merge_window){ clock, UINT64_MAX };
	} else if (on) { /* too many windows: the last two become one */
		windows[*count - 1].to = UINT64_MAX;
	}
}

void gt_live_events_show(struct gt_live *live, bool on)
{
	show_from(live, on, now());
}

void gt_live_events_switched(struct gt_live *live, bool on, uint64_t clock)
{
	const struct gt_merge_window *last =
		live->shown.switch_window_count > 0
			? &live->shown.switch_windows[live->shown.switch_window_count - 1]
			: NULL;
	uint64_t least = last == NULL ? 0 : last->to != UINT64_MAX ? last->to : last->from;
	uint64_t at = now();

	show_from(live, on && live->shown.sched_switch, clock >= least && clock < at ? clock : at);
}

/* tracing_cpumask */

/* The CPU mask before the first write: all CPUs that exist. */
static void get_masks(const struct gt_live *live, uint64_t cpus[GT_FILTER_CPU_WORDS])
{
	const struct gt_filter_masks *masks = &live->shown.masks;

	memset(cpus, 0, GT_FILTER_CPU_WORDS * sizeof(*cpus));
	if (masks->count > 0) {
		memcpy(cpus, masks->mask[masks->count - 1].cpus, sizeof(masks->mask[0].cpus));
		return;
	}
	for (uint32_t cpu = 0; cpu < live->view.cpu_count && cpu / 64 < GT_FILTER_CPU_WORDS; cpu++)
		cpus[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

uint64_t gt_live_events_mask(const struct gt_live *live, uint32_t word)
{
	uint64_t cpus[GT_FILTER_CPU_WORDS];

	get_masks(live, cpus);
	return cpus[word];
}

void gt_live_events_set_mask(struct gt_live *live, uint32_t word, uint64_t set)
{
	struct gt_filter_masks *masks = &live->shown.masks;
	uint64_t cpus[GT_FILTER_CPU_WORDS];

	get_masks(live, cpus);
	if (cpus[word] == set)
		return;
	cpus[word] = set;
	if (masks->count == GT_FILTER_MASKS) {
		memmove(&masks->mask[0], &masks->mask[1],
			sizeof(masks->mask) - sizeof(masks->mask[0]));
		masks->mask[0].from = 0;
		masks->count--;
	}
	masks->mask[masks->count].from = now();
	memcpy(masks->mask[masks->count].cpus, cpus, sizeof(cpus));
	masks->count++;
}

/* set_event_pid */

static int list_of(enum gt_control_threads which)
{
	return which == GT_CONTROL_EVENT_NOTRACE_PIDS;
}

static const struct gt_live_view_threads *threads_at(const struct gt_live_view *view,
						     uint64_t clock)
{
	uint32_t at = view->event_thread_count;

	while (at > 0 && view->event_threads[at - 1].from > clock)
		at--;
	return at > 0 ? &view->event_threads[at - 1] : NULL;
}

static bool is_in_list(const struct gt_live_view_threads *threads, int list, uint32_t tid)
{
	for (uint32_t i = 0; i < threads->count[list]; i++) {
		if (threads->tids[list][i] == tid)
			return true;
	}
	return false;
}

/* Is the thread listed, or a descendant of a listed thread? */
static bool is_listed(const struct gt_live_view *view, const struct gt_live_view_threads *threads,
		      int list, uint32_t tid)
{
	uint64_t clock;

	for (int i = 0; i < FAMILY_MAX && tid != 0; i++) {
		if (is_in_list(threads, list, tid))
			return true;
		if (threads->fork == 0 || threads->count[list] == 0 || view->session == NULL)
			return false;
		tid = gt_session_creator(view->session, tid, &clock);
		if (tid != 0 && clock < threads->fork)
			return false;
	}
	return false;
}

static bool takes(const struct gt_live_view *view, const struct gt_live_view_threads *threads,
		  uint32_t tid)
{
	return threads == NULL || ((threads->count[0] == 0 || is_listed(view, threads, 0, tid)) &&
				   !is_listed(view, threads, 1, tid));
}

bool gt_live_events_have_threads(struct gt_live_view *view)
{
	const struct gt_live_view_threads *threads;
	bool have;

	pthread_mutex_lock(&view->lock);
	threads = threads_at(view, UINT64_MAX);
	have = threads != NULL && (threads->count[0] > 0 || threads->count[1] > 0);
	pthread_mutex_unlock(&view->lock);
	return have;
}

bool gt_live_events_take_thread(struct gt_live_view *view, uint32_t tid)
{
	bool wanted;

	pthread_mutex_lock(&view->lock);
	wanted = takes(view, threads_at(view, UINT64_MAX), tid);
	pthread_mutex_unlock(&view->lock);
	return wanted;
}

uint32_t gt_live_events_of_threads(struct gt_live_view *view, struct gt_switch *switches,
				   uint32_t count)
{
	uint32_t kept = 0;

	pthread_mutex_lock(&view->lock);
	for (uint32_t i = 0; i < count; i++) {
		const struct gt_live_view_threads *threads = threads_at(view, switches[i].clock);

		if (takes(view, threads, switches[i].tid))
			switches[kept++] = switches[i];
	}
	pthread_mutex_unlock(&view->lock);
	return kept;
}

int gt_live_event_thread(struct gt_live_view *view, enum gt_control_threads which, uint32_t index,
			 uint32_t *tid)
{
	const struct gt_live_view_threads *threads;
	int error = GT_ENOENT;

	pthread_mutex_lock(&view->lock);
	threads = threads_at(view, UINT64_MAX);
	if (threads != NULL && index < threads->count[list_of(which)]) {
		*tid = threads->tids[list_of(which)][index];
		error = 0;
	}
	pthread_mutex_unlock(&view->lock);
	return error;
}

static void forget_first(struct gt_live_view *view)
{
	free(view->event_threads[0].tids[0]);
	free(view->event_threads[0].tids[1]);
	view->event_thread_count--;
	memmove(&view->event_threads[0], &view->event_threads[1],
		view->event_thread_count * sizeof(view->event_threads[0]));
}

static uint32_t *copy_of(const uint32_t *tids, uint32_t count)
{
	uint32_t *copy = calloc(count + 1, sizeof(*copy));

	if (copy != NULL && count > 0)
		memcpy(copy, tids, count * sizeof(*copy));
	return copy;
}

/* Under the view's lock. Begins a new window with the settings of the last one, except for one
 * list (-1: none) and `fork`. False: no memory. */
static bool add_threads(struct gt_live_view *view, int list, const uint32_t *tids, uint32_t count,
			uint64_t fork)
{
	static const struct gt_live_view_threads none;
	const struct gt_live_view_threads *last = threads_at(view, UINT64_MAX);
	struct gt_live_view_threads next = { .from = now(), .fork = fork };

	last = last != NULL ? last : &none;
	for (int i = 0; i < 2; i++) {
		next.count[i] = i == list ? count : last->count[i];
		next.tids[i] = copy_of(i == list ? tids : last->tids[i], next.count[i]);
	}
	if (next.tids[0] == NULL || next.tids[1] == NULL) {
		free(next.tids[0]);
		free(next.tids[1]);
		return false;
	}
	if (view->event_thread_count == GT_LIVE_VIEW_THREADS) {
		forget_first(view);
		view->event_threads[0].from = 0;
	}
	view->event_threads[view->event_thread_count++] = next;
	return true;
}

int gt_live_event_threads_set(struct gt_live_view *view, enum gt_control_threads which,
			      const uint32_t *tids, uint32_t count, struct gt_message *message)
{
	const struct gt_live_view_threads *last;
	bool added;

	pthread_mutex_lock(&view->lock);
	last = threads_at(view, UINT64_MAX);
	added = add_threads(view, list_of(which), tids, count, last != NULL ? last->fork : 0);
	pthread_mutex_unlock(&view->lock);
	return added ? 0 : no_memory(message);
}

int gt_live_event_fork(struct gt_live_view *view, bool on, struct gt_message *message)
{
	bool added;

	pthread_mutex_lock(&view->lock);
	added = add_threads(view, -1, NULL, 0, on ? now() : 0);
	pthread_mutex_unlock(&view->lock);
	return added ? 0 : no_memory(message);
}

void gt_live_events_forget_threads(struct gt_live_view *view, uint32_t keep)
{
	pthread_mutex_lock(&view->lock);
	while (view->event_thread_count > keep)
		forget_first(view);
	pthread_mutex_unlock(&view->lock);
}

/* All of them */

void gt_live_events_clear(struct gt_live *live)
{
	struct gt_filter_masks *masks = &live->shown.masks;
	bool on = live->shown.switch_window_count > 0 &&
		  live->shown.switch_windows[live->shown.switch_window_count - 1].to == UINT64_MAX;

	memset(live->shown.switch_windows, 0, sizeof(live->shown.switch_windows));
	live->shown.switch_window_count = 0;
	gt_live_events_show(live, on);
	if (masks->count > 1) {
		masks->mask[0] = masks->mask[masks->count - 1];
		memset(&masks->mask[1], 0, sizeof(masks->mask) - sizeof(masks->mask[0]));
		masks->count = 1;
	}
	gt_live_events_forget_threads(&live->over, 1);
}

void gt_live_events_count(struct gt_live *live, const struct gt_control_scope *scope,
			  uint64_t given, struct gt_control_stats *stats)
{
	struct gt_target *view = live->control.view;
	struct gt_text_look look;
	struct gt_switch some[64];
	uint64_t cursor = 0;
	uint32_t count;

	gt_live_get_look(live, &look);
	if (!look.switches)
		return;
	while ((count = gt_target_read_switches(view, &cursor, some, 64)) > 0) {
		for (uint32_t i = 0; i < count; i++) {
			bool shown = false;

			for (uint32_t k = 0; k < look.switch_window_count; k++)
				shown |= some[i].clock >= look.switch_windows[k].from &&
					 some[i].clock < look.switch_windows[k].to;
			if (!shown ||
			    (scope->kind == GT_SCOPE_CPU && scope->number != some[i].cpu) ||
			    (scope->kind == GT_SCOPE_THREAD && scope->number != some[i].tid))
				continue;
			stats->read += some[i].clock <= given;
			stats->entries += some[i].clock > given;
		}
	}
	stats->bytes = stats->entries * 8;
}
