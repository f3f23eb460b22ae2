/* SPDX-License-Identifier: MIT */
/*
 * per_cpu/cpuN/trace_pipe_raw of a session. The ring belongs to threads, its readers to CPUs: each
 * has a merge of its own over all writers, of which it gives its CPU's records. A sub-buffer leaves
 * the ring when the readers of all CPUs have passed it. Where only some CPUs are read it stays, for
 * whoever reads the others, until the ring is three quarters full.
 *
 * The place of each CPU outlives its reader: who opens it next goes on there, and `trace` leaves
 * out what all CPUs have given. trace_pipe and these files exclude each other; the one that comes
 * next takes over where the other one stopped. All of this is under reading.lock.
 */
#include "serve/live/live_instance.h"

#include <stdlib.h>
#include <string.h>

#include "core/text/raw.h"
#include "port/host/memory.h"

#define FULL_PERCENT  75
#define DISCARD_PAGES (1 << 20)

/* The read position of one CPU. */
struct place {
	struct gt_live *live;
	uint32_t cpu;
	struct gt_target view; /* the session's target, but consume() only notes the position */
	struct gt_ring_ops ring;
	struct gt_raw *raw;	      /* NULL: not open */
	bool ever;		      /* was open since the set was made */
	struct gt_merge_given *given; /* if not open: the read positions; `given_count` */
	uint32_t given_count;
	uint64_t switches_given; /* if not open: context switches were given up to this clock */
	uint64_t *passed; /* by writer: sub-buffers before this one were read; `passed_count` */
	uint32_t passed_count;
};

struct gt_live_raw {
	uint32_t open;
	uint64_t *done; /* by writer: sub-buffers before this one have been freed */
	uint32_t done_count;
	struct gt_merge_given *base; /* positions when the set was made … */
	uint32_t base_count;
	uint64_t base_switches; /* … and of context switches */
	uint32_t place_count;
	struct place places[];
};

/* Makes room for element `index`, all zero. */
static bool need(uint64_t **array, uint32_t *count, uint32_t index)
{
	uint32_t wanted = (index | 63) + 1;
	uint64_t *grown;

	if (index < *count)
		return true;
	grown = realloc(*array, wanted * sizeof(*grown));
	if (grown == NULL)
		return false;
	memset(grown + *count, 0, (wanted - *count) * sizeof(*grown));
	*array = grown;
	*count = wanted;
	return true;
}

/* Notes that the merge has read all of that sub-buffer. */
static int note_passed(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct place *place = (struct place *)((char *)target - offsetof(struct place, view));

	if (!need(&place->passed, &place->passed_count, index))
		return GT_ENOMEM;
	if (place->passed[index] < sequence + 1)
		place->passed[index] = sequence + 1;
	return 0;
}

/* Frees the sub-buffers that the readers of all CPUs have passed. */
static void advance(struct gt_live *live)
{
	struct gt_live_raw *set = live->reading.raw;
	bool full = gt_session_buffer_use(live->session) >= FULL_PERCENT;
	uint32_t writers = 0;

	for (uint32_t i = 0; i < set->place_count; i++) {
		if (!set->places[i].ever && !full)
			return;
		if (set->places[i].passed_count > writers)
			writers = set->places[i].passed_count;
	}
	for (uint32_t writer = 0; writer < writers; writer++) {
		uint64_t passed = UINT64_MAX;

		for (uint32_t i = 0; i < set->place_count; i++) {
			const struct place *place = &set->places[i];
			uint64_t own = writer < place->passed_count ? place->passed[writer] : 0;

			if (place->ever && own < passed)
				passed = own;
		}
		if (passed == UINT64_MAX || passed == 0 ||
		    !need(&set->done, &set->done_count, writer) || passed <= set->done[writer])
			continue;
		live->view.ring->consume(&live->view, writer, passed - 1);
		set->done[writer] = passed;
	}
}

static struct gt_merge_given given_of(const struct place *place, uint32_t writer)
{
	if (place->raw != NULL)
		return gt_merge_given(&place->raw->merge, writer);
	return writer < place->given_count ? place->given[writer] : (struct gt_merge_given){ 0, 0 };
}

static bool is_before(struct gt_merge_given a, struct gt_merge_given b)
{
	return a.sequence != b.sequence ? a.sequence < b.sequence : a.words < b.words;
}

int gt_live_raw_given(struct gt_live *live, struct gt_merge_given **given_out, uint32_t *count)
{
	const struct gt_live_raw *set = live->reading.raw;
	uint32_t writers = set->base_count;
	bool all = true;
	struct gt_merge_given *given;

	for (uint32_t i = 0; i < set->place_count; i++) {
		const struct place *place = &set->places[i];
		uint32_t own =
			place->raw != NULL ? place->raw->merge.source_count : place->given_count;

		all &= place->ever;
		writers = own > writers ? own : writers;
	}
	given = calloc(writers + 1, sizeof(*given));
	if (given == NULL)
		return GT_ENOMEM;
	for (uint32_t writer = 0; writer < writers; writer++) {
		if (writer < set->base_count)
			given[writer] = set->base[writer];
		if (!all)
			continue;
		given[writer] = given_of(&set->places[0], writer);
		for (uint32_t i = 1; i < set->place_count; i++) {
			struct gt_merge_given own = given_of(&set->places[i], writer);

			if (is_before(own, given[writer]))
				given[writer] = own;
		}
	}
	*given_out = given;
	*count = writers;
	return 0;
}

uint64_t gt_live_raw_switches_given(const struct gt_live *live)
{
	const struct gt_live_raw *set = live->reading.raw;
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < set->place_count; i++) {
		const struct place *place = &set->places[i];
		uint64_t own = !place->ever	    ? set->base_switches
			       : place->raw != NULL ? place->raw->merge.switches_given
						    : place->switches_given;

		least = own < least ? own : least;
	}
	return least;
}

void gt_live_raw_destroy(struct gt_live *live)
{
	struct gt_live_raw *set = live->reading.raw;

	if (set == NULL)
		return;
	for (uint32_t i = 0; i < set->place_count; i++) {
		if (set->places[i].raw != NULL)
			gt_raw_fini(set->places[i].raw);
		free(set->places[i].raw);
		free(set->places[i].given);
		free(set->places[i].passed);
	}
	free(set->done);
	free(set->base);
	free(set);
	live->reading.raw = NULL;
}

static int make_set(struct gt_live *live)
{
	uint32_t count = live->view.cpu_count != 0 ? live->view.cpu_count : 1;
	struct gt_live_raw *set = calloc(1, sizeof(*set) + count * sizeof(set->places[0]));

	if (set == NULL)
		return GT_ENOMEM;
	set->place_count = count;
	if (live->reading.pipe != NULL &&
	    gt_text_reader_given(live->reading.pipe, &set->base, &set->base_count) != 0) {
		free(set);
		return GT_ENOMEM;
	}
	if (live->reading.pipe != NULL)
		set->base_switches = gt_text_reader_switches_given(live->reading.pipe);
	for (uint32_t i = 0; i < count; i++) {
		struct place *place = &set->places[i];

		place->live = live;
		place->cpu = i;
		place->ring = *live->view.ring;
		place->ring.consume = note_passed;
		place->view = live->view;
		place->view.ring = &place->ring;
	}
	live->reading.raw = set;
	return 0;
}

static int open_place(struct place *place, bool ticks)
{
	const struct gt_live_raw *set = place->live->reading.raw;
	struct gt_raw_options options = {
		.cpu = place->cpu,
		.ticks = ticks,
		.mode = GT_MERGE_CONSUME,
	};
	struct gt_text_look look;
	int error;

	gt_live_get_look(place->live, &look);
	options.switches = look.switches;
	options.switch_window_count = look.switch_window_count;
	memcpy(options.switch_windows, look.switch_windows, sizeof(options.switch_windows));
	options.masks = look.masks;
	options.stacks = (look.options & GT_OPTION_STACKTRACE) != 0;
	place->raw = malloc(sizeof(*place->raw));
	if (place->raw == NULL)
		return GT_ENOMEM;
	error = gt_raw_init(place->raw, &place->view, &gt_host_memory, &options);
	if (error != 0) {
		free(place->raw);
		place->raw = NULL;
		return error;
	}
	if (place->ever)
		gt_merge_skip_given(&place->raw->merge, place->given, place->given_count);
	else
		gt_merge_skip_given(&place->raw->merge, set->base, set->base_count);
	gt_merge_skip_switches(&place->raw->merge,
			       place->ever ? place->switches_given : set->base_switches);
	place->ever = true;
	return 0;
}

int gt_live_raw_open(struct gt_control_target *target, uint32_t cpu, void **raw,
		     struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	uint64_t clock = 0;
	int error = 0;
	bool busy;

	target->ops->get(target, GT_CONTROL_CLOCK_ID, &clock);
	gt_live_settle_clock(live);
	pthread_mutex_lock(&live->reading.lock);
	pthread_mutex_lock(&live->lock);
	busy = (live->pipe_busy && (live->reading.raw == NULL || live->reading.raw->open == 0)) ||
	       live->cpus_busy > 0;
	if (!busy)
		live->pipe_busy = true;
	pthread_mutex_unlock(&live->lock);
	if (busy) {
		gt_message_set(message, "trace_pipe is being read by somebody else");
		error = GT_EBUSY;
	} else if (live->reading.raw == NULL) {
		error = make_set(live);
	}
	if (error == 0 &&
	    (cpu >= live->reading.raw->place_count || live->reading.raw->places[cpu].raw != NULL)) {
		gt_message_set(message, "this CPU's part is being read by somebody else");
		error = GT_EBUSY;
	}
	if (error == 0)
		error = open_place(&live->reading.raw->places[cpu], clock == GT_CLOCK_TSC);
	if (error == 0) {
		gt_live_hold(live);
		live->reading.raw->open++;
		*raw = &live->reading.raw->places[cpu];
	} else if (!busy && (live->reading.raw == NULL || live->reading.raw->open == 0)) {
		pthread_mutex_lock(&live->lock);
		live->pipe_busy = false;
		pthread_mutex_unlock(&live->lock);
	}
	if (error == GT_ENOMEM)
		gt_message_set(message, "no memory");
	pthread_mutex_unlock(&live->reading.lock);
	return error;
}

int64_t gt_live_raw_read(struct gt_control_target *target, void *raw, char *buffer, size_t bytes,
			 struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct place *place = raw;
	struct gt_text_look look;
	int64_t got;

	(void)message;
	gt_live_pull(live);
	gt_live_get_look(live, &look);
	pthread_mutex_lock(&live->reading.lock);
	gt_raw_set_switches(place->raw, look.switches, look.switch_windows,
			    look.switch_window_count);
	gt_raw_set_masks(place->raw, &look.masks);
	gt_raw_set_stacks(place->raw, (look.options & GT_OPTION_STACKTRACE) != 0);
	if (atomic_load(&live->ended))
		gt_merge_finish(&place->raw->merge);
	got = gt_raw_read(place->raw, buffer, bytes);
	advance(live);
	pthread_mutex_unlock(&live->reading.lock);
	return got;
}

/* Keeps its positions. */
static void close_place(struct place *place)
{
	const uint32_t count = place->raw->merge.source_count;
	struct gt_merge_given *given = calloc(count + 1, sizeof(*given));

	for (uint32_t i = 0; given != NULL && i < count; i++)
		given[i] = gt_merge_given(&place->raw->merge, i);
	place->switches_given = place->raw->merge.switches_given;
	gt_raw_fini(place->raw);
	free(place->raw);
	place->raw = NULL;
	if (given != NULL) { /* without them it continues from an earlier position */
		free(place->given);
		place->given = given;
		place->given_count = count;
	}
}

void gt_live_raw_close(struct gt_control_target *target, void *raw)
{
	struct gt_live *live = live_of(target);

	pthread_mutex_lock(&live->reading.lock);
	close_place(raw);
	if (--live->reading.raw->open == 0) {
		pthread_mutex_lock(&live->lock);
		live->pipe_busy = false;
		pthread_mutex_unlock(&live->lock);
	}
	pthread_mutex_unlock(&live->reading.lock);
	gt_live_release(live);
}

bool gt_live_raw_is_open(const struct gt_live *live)
{
	return live->reading.raw != NULL && live->reading.raw->open != 0;
}

static void discard_place(struct gt_raw *one, uint64_t begun)
{
	char page[GT_RAW_PAGE_BYTES];

	for (int n = 0; n < DISCARD_PAGES; n++) {
		if (gt_raw_read(one, page, sizeof(page)) <= 0 ||
		    (one->merge.current != NULL && one->merge.current->record.clock > begun))
			break;
	}
}

/* The same of a CPU whose file is not open. Whether it was ever open decides who waits for its reader: that
 * stays. False: no memory. */
static bool discard_closed(struct place *place, uint64_t begun)
{
	if (open_place(place, false) != 0)
		return false;
	discard_place(place->raw, begun);
	close_place(place);
	return true;
}

/* Where the places have come to by now, the next ones begin. */
static void move_base(struct gt_live *live)
{
	struct gt_live_raw *set = live->reading.raw;
	struct gt_merge_given *given;
	uint32_t count;

	set->base_switches = gt_live_raw_switches_given(live);
	if (gt_live_raw_given(live, &given, &count) != 0)
		return;
	free(set->base);
	set->base = given;
	set->base_count = count;
}

bool gt_live_raw_discard(struct gt_live *live, uint64_t begun)
{
	struct gt_live_raw *set = live->reading.raw;
	bool *ever; /* of each place, before */
	bool all;

	if (set == NULL || set->open == 0)
		return false;
	ever = calloc(set->place_count, sizeof(*ever));
	all = ever != NULL;
	for (uint32_t i = 0; i < set->place_count; i++) {
		struct place *place = &set->places[i];

		if (place->raw != NULL) {
			discard_place(place->raw, begun);
		} else if (ever != NULL) {
			ever[i] = place->ever;
			all &= discard_closed(place, begun);
		}
	}
	if (all)
		move_base(live);
	for (uint32_t i = 0; ever != NULL && i < set->place_count; i++)
		if (set->places[i].raw == NULL)
			set->places[i].ever = ever[i];
	free(ever);
	advance(live);
	return true;
}
