/* SPDX-License-Identifier: MIT */
/*
 * Reads a recording for the page: see page.h.
 */
#include "export/page/page_private.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void fini_lane(struct gt_page_lane *lane)
{
	for (uint32_t i = 0; i < lane->track_count; i++)
		gt_track_fini(&lane->tracks[i]);
	free(lane->tracks);
	free(lane->off);
}

/* Forgets all that was read. */
static void forget(struct gt_page *page)
{
	for (uint32_t i = 0; i < page->lane_count; i++)
		fini_lane(&page->lanes[i]);
	for (uint32_t i = 0; i < page->moment_count; i++)
		free(page->moments[i].text);
	gt_page_forget_values(page);
	gt_page_functions_fini(&page->functions);
	gt_tree_fini(&page->tree);
	free(page->threads);
	free(page->lanes);
	free(page->node_again);
	free(page->node_off);
	free(page->node_sums);
	free(page->moments);
	memset((char *)page + offsetof(struct gt_page, start), 0,
	       offsetof(struct gt_page, has_off_cpu) - offsetof(struct gt_page, start));
}

/* Begins with nothing read. */
static int begin(struct gt_page *page)
{
	page->start = page->options.about.start;
	return gt_page_functions_init(&page->functions, page->options.target) == 0 &&
			       gt_tree_init(&page->tree, UINT32_MAX) == 0
		       ? 0
		       : GT_ENOMEM;
}

int gt_page_create(const struct gt_page_options *options, struct gt_page **page_out)
{
	struct gt_page *page = calloc(1, sizeof(*page));

	if (page == NULL)
		return GT_ENOMEM;
	page->options = *options;
	if (page->options.most_calls == 0)
		page->options.most_calls = GT_PAGE_CALLS;
	pthread_mutex_init(&page->lock, NULL);
	if (begin(page) != 0) {
		gt_page_destroy(page);
		return GT_ENOMEM;
	}
	page->has_off_cpu = gt_target_has_off_cpu(options->target);
	gt_page_helper_start(page);
	*page_out = page;
	return 0;
}

void gt_page_destroy(struct gt_page *page)
{
	gt_page_helper_end(page);
	forget(page);
	for (uint32_t i = 0; i < GT_PAGE_SELECTIONS; i++) {
		gt_tree_fini(&page->selections[i].tree);
		free(page->selections[i].off);
	}
	pthread_mutex_destroy(&page->lock);
	free(page);
}

void gt_page_stop(struct gt_page *page)
{
	atomic_store(&page->stopped, true);
}

double gt_page_progress(const struct gt_page *page)
{
	uint64_t entered = atomic_load(&page->entered), expected = page->options.expected_calls;

	if (atomic_load(&page->ready))
		return 1;
	if (expected == 0 || entered == 0)
		return 0;
	return entered < expected ? 0.99 * (double)entered / (double)expected : 0.99;
}

/* Lanes are reported at their first record, and found by number. */
static struct gt_page_lane *lane_of(struct gt_page *page, const struct gt_lane *lane)
{
	return &page->lanes[(uintptr_t)lane->user];
}

/* All stacks of a thread share its times off the CPU. */
static int find_thread(struct gt_page *page, const struct gt_lane *lane, uint32_t *thread)
{
	for (uint32_t i = page->lane_count; lane->stack != 0 && i > 0; i--) {
		if (page->lanes[i - 1].tid == lane->tid && page->lanes[i - 1].pid == lane->pid) {
			*thread = page->lanes[i - 1].thread;
			return 0;
		}
	}
	if (page->thread_count == page->thread_room) {
		uint32_t room = page->thread_room ? page->thread_room * 2 : 64;
		struct gt_page_thread *threads = realloc(page->threads, room * sizeof(*threads));

		if (threads == NULL)
			return GT_ENOMEM;
		page->threads = threads;
		page->thread_room = room;
	}
	page->threads[page->thread_count] =
		(struct gt_page_thread){ .pid = lane->pid, .tid = lane->tid };
	*thread = page->thread_count++;
	return 0;
}

static int take_lane(void *user, struct gt_lane *lane)
{
	struct gt_page *page = user;
	struct gt_page_lane made = {
		.pid = lane->pid, .tid = lane->tid, .stack = lane->stack, .first = UINT64_MAX
	};
	int error = 0;

	if (page->lane_count == page->lane_room) {
		uint32_t room = page->lane_room ? page->lane_room * 2 : 64;
		struct gt_page_lane *lanes;

		gt_page_helper_wait(page);
		lanes = realloc(page->lanes, room * sizeof(*lanes));
		if (lanes == NULL || room > GT_PAGE_LANES_MAX)
			return GT_ENOMEM;
		page->lanes = lanes;
		page->lane_room = room;
	}
	memcpy(made.name, lane->name, sizeof(made.name));
	error = find_thread(page, lane, &made.thread);
	if (error == 0)
		error = gt_tree_split(&page->tree, lane, GT_PAGE_LANE_NODE | page->lane_count,
				      &made.node);
	lane->user = (void *)(uintptr_t)page->lane_count;
	page->lanes[page->lane_count++] = made;
	return error;
}

/* Grows the arrays that are indexed by the tree's nodes. */
static int grow_nodes(struct gt_page *page)
{
	uint32_t room = page->tree.room;
	uint8_t *again = realloc(page->node_again, room * sizeof(*again));
	uint64_t *off;

	if (again != NULL)
		page->node_again = again;
	off = realloc(page->node_off, room * sizeof(*off));
	if (off != NULL)
		page->node_off = off;
	if (again == NULL || off == NULL)
		return GT_ENOMEM;
	memset(again + page->node_room, 0, (room - page->node_room) * sizeof(*again));
	memset(off + page->node_room, 0, (room - page->node_room) * sizeof(*off));
	page->node_room = room;
	return 0;
}

/* Notes for new nodes whether a call of the same function is around them. */
static int know_nodes(struct gt_page *page)
{
	if (page->tree.count > page->node_room && grow_nodes(page) != 0)
		return GT_ENOMEM;
	for (; page->node_known < page->tree.count; page->node_known++) {
		const struct gt_tree_node *nodes = page->tree.nodes;
		uint32_t node = page->node_known, up = nodes[node].parent;

		while (up != 0 && nodes[up].function != nodes[node].function)
			up = nodes[up].parent;
		page->node_again[node] = up != 0;
	}
	return 0;
}

static int take_off_cpu_slow(struct gt_page *page, struct gt_page_lane *lane, uint32_t open,
			     uint64_t clock)
{
	struct gt_page_thread *thread = &page->threads[lane->thread];
	uint64_t ticks;

	if (open >= lane->off_room) {
		uint32_t room = open + 16;
		struct gt_page_off *off = realloc(lane->off, room * sizeof(*off));

		if (off == NULL)
			return GT_ENOMEM;
		memset(off + lane->off_room, 0, (room - lane->off_room) * sizeof(*off));
		lane->off = off;
		lane->off_room = room;
	}
	if (clock < thread->off_cpu.until)
		return 0;
	ticks = gt_off_cpu_move(&thread->off_cpu, page->options.target, thread->tid, clock);
	if (open > 0)
		lane->off[open - 1].own += ticks;
	return 0;
}

/* The time that the thread was off the CPU since its last record belongs to the innermost call. */
static inline int take_off_cpu(struct gt_page *page, struct gt_page_lane *lane, uint32_t open,
			       uint64_t clock)
{
	return !page->has_off_cpu || (open < lane->off_room &&
				      clock < page->threads[lane->thread].off_cpu.until)
		       ? 0
		       : take_off_cpu_slow(page, lane, open, clock);
}

/* If it is unknown when the recording began, times count from the first record. */
static void begin_at(struct gt_page *page, uint64_t clock)
{
	if (page->start == 0)
		page->start = clock;
}

/* The number of a function; UINT32_MAX: no memory. */
static uint32_t find_function(struct gt_page *page, uint32_t number)
{
	uint32_t known = gt_page_functions_known(&page->functions, number);

	if (known != UINT32_MAX)
		return known;
	if (page->functions.count == page->functions.room)
		gt_page_helper_wait(page); /* the items are moved */
	return gt_page_functions_add(&page->functions, number);
}

static int take_enter(void *user, struct gt_lane *lane, struct gt_stack_call *call)
{
	struct gt_page *page = user;
	struct gt_page_lane *own = lane_of(page, lane);
	uint32_t function = find_function(page, call->function);
	int error;

	if (function == UINT32_MAX || function + 1 >= GT_BOX_FUNCTIONS)
		return GT_ENOMEM;
	begin_at(page, call->start);
	call->user = (void *)(uintptr_t)function;
	error = take_off_cpu(page, own, lane->open - 1, call->start);
	if (error == 0 && page->has_off_cpu)
		own->off[lane->open - 1] = (struct gt_page_off){ 0, 0 };
	if (error == 0)
		error = gt_tree_enter(&page->tree, lane, function + 1);
	if (error == 0 && page->node_known < page->tree.count)
		error = know_nodes(page);
	if (error == 0 && atomic_load_explicit(&page->stopped, memory_order_relaxed))
		error = GT_EAGAIN;
	atomic_store_explicit(&page->entered, call->id, memory_order_relaxed);
	return error;
}

/* Is a call of the same function around the one that has ended? */
static bool is_again(const struct gt_page *page, const struct gt_lane *lane, uint32_t node,
		     void *function)
{
	if (lane->open < GT_TREE_DEPTH_MAX)
		return page->node_again[node];
	for (uint32_t i = lane->open; i > 0; i--)
		if (lane->calls[i - 1].user == function)
			return true;
	return false;
}

static int take_leave(void *user, struct gt_lane *lane, struct gt_stack_call *call, uint64_t end)
{
	struct gt_page *page = user;
	struct gt_page_lane *own = lane_of(page, lane);
	struct gt_page_left *left = page->next_left; /* filled in where it is handed over */
	uint64_t off = 0;
	int error = take_off_cpu(page, own, lane->open + 1, end);

	if (error != 0)
		return error;
	if (page->has_off_cpu) {
		off = own->off[lane->open].own;
		if (lane->open > 0)
			own->off[lane->open - 1].callees += off + own->off[lane->open].callees;
	}
	left->start = call->start;
	left->took = end - call->start;
	left->self = gt_export_self(call, end);
	left->off = off;
	left->lane = (uint32_t)(uintptr_t)lane->user;
	left->function = (uint32_t)(uintptr_t)call->user;
	left->depth = lane->open;
	left->cpu = call->cpu;
	left->flags = call->flags;
	left->node = gt_tree_pop(&page->tree, lane);
	left->again = is_again(page, lane, left->node, call->user);
	memcpy(own->name, lane->name, sizeof(own->name));
	if (call->arguments != NULL || call->result != NULL)
		error = gt_page_add_values(page, left->lane, left->depth, left->start,
					   call->arguments, call->result);
	return error == 0 ? gt_page_helper_give(page) : error;
}

/* Takes marks and losses while there is room; counts calls of which only the entry is recorded. */
static int take_moment(void *user, struct gt_lane *lane, const struct gt_moment *moment)
{
	struct gt_page *page = user;
	struct gt_page_moment made = {
		.lane = (uint32_t)(uintptr_t)lane->user,
		.kind = moment->kind,
		.value = moment->value,
	};

	begin_at(page, moment->clock);
	made.at = gt_page_at(page, moment->clock);
	if (made.at > page->length)
		page->length = made.at;
	if (moment->kind == GT_MOMENT_CALL) {
		uint32_t function = find_function(page, moment->function);

		if (function == UINT32_MAX)
			return GT_ENOMEM;
		page->functions.items[function].entries_only++;
		return 0;
	}
	if (page->moment_count == GT_PAGE_MOMENTS) {
		page->moments_left_out++;
		return 0;
	}
	if (page->moment_count == page->moment_room) {
		uint32_t room = page->moment_room ? page->moment_room * 2 : 64;
		struct gt_page_moment *moments = realloc(page->moments, room * sizeof(*moments));

		if (moments == NULL)
			return GT_ENOMEM;
		page->moments = moments;
		page->moment_room = room;
	}
	if (moment->kind == GT_MOMENT_MARK) {
		made.text = strndup(moment->text, moment->text_bytes);
		if (made.text == NULL)
			return GT_ENOMEM;
		page->lanes[made.lane].marks++;
	}
	page->moments[page->moment_count++] = made;
	return 0;
}

static int again(void *user)
{
	struct gt_page *page = user;

	gt_page_helper_wait(page);
	forget(page);
	return begin(page);
}

struct gt_stack_sink gt_page_sink(struct gt_page *page)
{
	return (struct gt_stack_sink){
		.user = page,
		.again = again,
		.lane = take_lane,
		.enter = take_enter,
		.leave = take_leave,
		.moment = take_moment,
	};
}

/* All calls are added: what is known of a function or a lane only now. */
static void finish_sums(struct gt_page *page)
{
	struct gt_tree_node *nodes = page->tree.nodes;

	for (uint32_t i = 0; i < page->node_sum_room && i < page->node_known; i++) {
		nodes[i].calls = page->node_sums[i].calls;
		nodes[i].total = page->node_sums[i].total;
		nodes[i].self = page->node_sums[i].self;
		page->node_off[i] = page->node_sums[i].off;
	}
	free(page->node_sums);
	page->node_sums = NULL;
	page->node_sum_room = 0;
	for (uint32_t i = 0; i < page->functions.count; i++)
		page->functions.items[i].calls += page->functions.items[i].entries_only;
	for (uint32_t i = 0; i < page->lane_count; i++) {
		struct gt_page_lane *lane = &page->lanes[i];

		for (uint32_t child = nodes[lane->node].child; child; child = nodes[child].sibling)
			nodes[lane->node].total += nodes[child].total;
		if (lane->last > page->length)
			page->length = lane->last;
		free(lane->off);
		lane->off = NULL;
	}
}

/* Returns what threads count as lost. Records tell of it only where others came after it: what a full ring lost
 * up to now stands in the counts alone. */
static uint64_t count_lost(struct gt_target *target)
{
	uint32_t count = target->ring->writer_count(target);
	struct gt_writer writer;
	uint64_t lost = 0;

	for (uint32_t i = 0; i < count; i++)
		if (target->ring->writer(target, i, &writer) == 0)
			lost += graftrace_lost_calls(writer.lost);
	return lost;
}

int gt_page_finish(struct gt_page *page, const struct gt_stack_report *report)
{
	uint64_t lost = count_lost(page->options.target);
	int error = gt_page_helper_end(page);

	page->report = *report;
	if (lost > report->lost)
		page->report.lost = lost;
	if (error == 0) {
		finish_sums(page);
		gt_page_sort_values(page);
		error = gt_page_finish_tracks(page);
	}
	if (error == 0)
		error = gt_tree_finish(&page->tree);
	if (error == 0)
		atomic_store(&page->ready, true);
	return error;
}

int gt_page_read(struct gt_page *page, struct gt_filter *filter)
{
	const struct gt_stack_sink sink = gt_page_sink(page);
	struct gt_stack_report report;
	int error = gt_stacks_read(page->options.target, filter, &sink, &report);

	return error == 0 ? gt_page_finish(page, &report) : error;
}

/* What the tree of a selection is made from. */
struct selecting {
	struct gt_page *page;
	struct gt_page_selection *selection;
	uint32_t room; /* capacity of selection->off */
};

static int add_selected(void *user, uint32_t node, uint32_t from)
{
	struct selecting *selecting = user;
	struct gt_page_selection *selection = selecting->selection;

	if (node >= selecting->room) {
		uint32_t room = selection->tree.room;
		uint64_t *off = realloc(selection->off, room * sizeof(*off));

		if (off == NULL)
			return GT_ENOMEM;
		memset(off + selecting->room, 0, (room - selecting->room) * sizeof(*off));
		selection->off = off;
		selecting->room = room;
	}
	selection->off[node] += selecting->page->node_off[from];
	return 0;
}

/* Parses "all", "pid:N" or "lane:N". */
static int parse_selection(const struct gt_page *page, const char *of, uint32_t *pid,
			   uint32_t *lane)
{
	char *end = NULL;
	unsigned long number;

	*pid = *lane = UINT32_MAX;
	if (strcmp(of, "all") == 0)
		return 0;
	if (strncmp(of, "pid:", 4) != 0 && strncmp(of, "lane:", 5) != 0)
		return GT_EINVAL;
	number = strtoul(strchr(of, ':') + 1, &end, 10);
	if (*end != '\0' || end[-1] == ':' || number >= UINT32_MAX)
		return GT_EINVAL;
	if (of[0] == 'p')
		*pid = (uint32_t)number;
	else
		*lane = (uint32_t)number;
	return of[0] == 'l' && number >= page->lane_count ? GT_ENOENT : 0;
}

int gt_page_select(struct gt_page *page, const char *of, struct gt_page_selection **selection_out)
{
	struct gt_page_selection *selection = &page->selections[0];
	struct selecting selecting = { .page = page };
	uint32_t pid, lane, lanes = 0;
	int error;

	for (uint32_t i = 0; i < GT_PAGE_SELECTIONS; i++) {
		if (strcmp(page->selections[i].of, of) == 0 && of[0] != '\0') {
			page->selections[i].used = ++page->asked;
			*selection_out = &page->selections[i];
			return 0;
		}
		if (page->selections[i].used < selection->used)
			selection = &page->selections[i];
	}
	error = strlen(of) < sizeof(selection->of) ? parse_selection(page, of, &pid, &lane)
						   : GT_EINVAL;
	if (error != 0)
		return error;
	gt_tree_fini(&selection->tree);
	free(selection->off);
	*selection = (struct gt_page_selection){ .used = ++page->asked };
	selecting.selection = selection;
	error = gt_tree_init(&selection->tree, UINT32_MAX);
	for (uint32_t i = 0; i < page->lane_count && error == 0; i++) {
		if ((lane != UINT32_MAX && lane != i) ||
		    (pid != UINT32_MAX && pid != page->lanes[i].pid))
			continue;
		lanes++;
		error = gt_tree_merge(&selection->tree, &page->tree, page->lanes[i].node,
				      add_selected, &selecting);
	}
	if (error == 0 && lanes == 0 && page->lane_count > 0)
		error = GT_ENOENT;
	if (error == 0)
		error = gt_tree_finish(&selection->tree);
	if (error != 0)
		return error;
	strcpy(selection->of, of);
	*selection_out = selection;
	return 0;
}
