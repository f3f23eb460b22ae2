/* SPDX-License-Identifier: MIT */
/* Flame graphs of differences: see diff_flame.h. */
#include "export/diff_flame.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/hash.h"
#include "export/call_tree.h"
#include "export/diff.h"
#include "export/flame.h"

/* Common numbers for the functions of all runs, from 1. */
struct names {
	char **names; /* "name\0object" */
	uint32_t count, room;
	uint32_t *table; /* number by name and object; 0: empty */
	uint32_t table_mask;
};

struct times {
	uint64_t calls, total, self;
};

struct gt_diff_flame {
	struct gt_tree tree; /* in ns */
	struct names names;
	uint32_t runs[2];
	struct times *first; /* of the first side, by node; [first_count] */
	uint32_t first_count;
	struct gt_target *target; /* of the run that is being read … */
	const char *program;	  /* … and its program */
	uint32_t *numbers; /* by its functions: the number in `names`; 0: not looked up yet */
	uint32_t number_count;
};

/* ---- names ---- */

static const char *object_of(const char *name)
{
	return name + strlen(name) + 1;
}

static uint32_t name_place(const struct names *names, const char *name, const char *object)
{
	uint64_t at = gt_hash64_text(gt_hash64_text(GT_HASH64_BEGIN, name), object);

	for (at ^= at >> 32;; at++) {
		uint32_t number = names->table[at & names->table_mask];
		const char *known = number ? names->names[number - 1] : NULL;

		if (known == NULL ||
		    (strcmp(known, name) == 0 && strcmp(object_of(known), object) == 0))
			return (uint32_t)at & names->table_mask;
	}
}

static int grow_names(struct names *names)
{
	uint32_t room = names->room ? names->room * 2 : 1024;
	char **grown = realloc(names->names, room * sizeof(*grown));
	uint32_t *table;

	if (grown == NULL)
		return GT_ENOMEM;
	names->names = grown;
	table = calloc((size_t)room * 4, sizeof(*table));
	if (table == NULL)
		return GT_ENOMEM;
	free(names->table);
	names->table = table;
	names->table_mask = room * 4 - 1;
	names->room = room;
	for (uint32_t i = 0; i < names->count; i++)
		table[name_place(names, grown[i], object_of(grown[i]))] = i + 1;
	return 0;
}

/* 0: no memory. */
static uint32_t number_of(struct names *names, const char *name, const char *object)
{
	size_t name_bytes = strlen(name) + 1, object_bytes = strlen(object) + 1;
	uint32_t place;
	char *both;

	if (names->count == names->room && grow_names(names) != 0)
		return 0;
	place = name_place(names, name, object);
	if (names->table[place])
		return names->table[place];
	both = malloc(name_bytes + object_bytes);
	if (both == NULL)
		return 0;
	memcpy(both, name, name_bytes);
	memcpy(both + name_bytes, object, object_bytes);
	names->names[names->count++] = both;
	return names->table[place] = names->count;
}

/* ---- reading a run ---- */

/* Returns the common number of a function of the run that is being read; 0: no memory. */
static uint32_t common_number(struct gt_diff_flame *flame, uint32_t function)
{
	struct gt_function found = { .name = NULL };
	char number[24];

	if (function < flame->number_count && flame->numbers[function])
		return flame->numbers[function];
	if (function >= flame->number_count) {
		uint32_t count = (function + 1) * 2;
		uint32_t *grown = realloc(flame->numbers, count * sizeof(*grown));

		if (grown == NULL)
			return 0;
		memset(grown + flame->number_count, 0,
		       (count - flame->number_count) * sizeof(*grown));
		flame->numbers = grown;
		flame->number_count = count;
	}
	if (gt_target_function(flame->target, function, &found) != 0 || found.name == NULL) {
		snprintf(number, sizeof(number), "function#%" PRIu32, function);
		found.name = number;
	}
	return flame->numbers[function] = number_of(
		       &flame->names, found.name,
		       gt_diff_object(found.object != NULL ? found.object : "", flame->program));
}

static int enter(void *user, struct gt_lane *lane, struct gt_stack_call *call)
{
	struct gt_diff_flame *flame = user;
	uint32_t common = common_number(flame, call->function);

	return common ? gt_tree_enter(&flame->tree, lane, common) : GT_ENOMEM;
}

static int leave(void *user, struct gt_lane *lane, struct gt_stack_call *call, uint64_t end)
{
	struct gt_diff_flame *flame = user;
	const struct gt_clock *clock = &flame->target->clock;
	struct gt_stack_call in_ns = *call;

	in_ns.start = 0;
	in_ns.children = gt_clock_duration_ns(clock, call->children);
	gt_tree_leave(&flame->tree, lane, &in_ns, gt_clock_duration_ns(clock, end - call->start));
	return 0;
}

struct gt_diff_flame *gt_diff_flame_create(void)
{
	struct gt_diff_flame *flame = calloc(1, sizeof(*flame));

	if (flame != NULL && gt_tree_init(&flame->tree, UINT32_MAX - 1) != 0) {
		gt_diff_flame_destroy(flame);
		return NULL;
	}
	return flame;
}

/* Keeps the first side's sums, before the second side's are added to the tree. */
static int keep_first(struct gt_diff_flame *flame)
{
	flame->first_count = flame->tree.count;
	flame->first = calloc(flame->first_count, sizeof(*flame->first));
	if (flame->first == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < flame->first_count; i++) {
		const struct gt_tree_node *node = &flame->tree.nodes[i];

		flame->first[i] = (struct times){ node->calls, node->total, node->self };
	}
	return 0;
}

int gt_diff_flame_add(struct gt_diff_flame *flame, unsigned side, struct gt_target *target,
		      const char *program)
{
	const struct gt_stack_sink sink = { .user = flame, .enter = enter, .leave = leave };
	struct gt_stack_report report;
	int error = 0;

	if (side == 1 && flame->first == NULL)
		error = keep_first(flame);
	if (error != 0)
		return error;
	flame->runs[side]++;
	flame->target = target;
	flame->program = program;
	if (flame->tree.lanes != NULL)
		memset(flame->tree.lanes, 0, flame->tree.lane_room * sizeof(*flame->tree.lanes));
	error = gt_stacks_read(target, NULL, &sink, &report);
	free(flame->numbers);
	flame->numbers = NULL;
	flame->number_count = 0;
	return error;
}

/* ---- the picture ---- */

static struct times of_first(const struct gt_diff_flame *flame, uint32_t node)
{
	return node < flame->first_count ? flame->first[node] : (struct times){ .calls = 0 };
}

/* Returns a node's mean times in a run of each side. */
static void both_of(const struct gt_diff_flame *flame, uint32_t at, double total[2], double self[2])
{
	const struct gt_tree_node *node = &flame->tree.nodes[at];
	struct times first = of_first(flame, at);

	total[0] = (double)first.total / (flame->runs[0] ? flame->runs[0] : 1);
	self[0] = (double)first.self / (flame->runs[0] ? flame->runs[0] : 1);
	total[1] = (double)(node->total - first.total) / (flame->runs[1] ? flame->runs[1] : 1);
	self[1] = (double)(node->self - first.self) / (flame->runs[1] ? flame->runs[1] : 1);
}

/* The tree with its mean times, and the sums that these are computed from. */
struct picture {
	const struct gt_diff_flame *flame;
	struct gt_tree tree;
};

static const char *name_of(void *user, uint32_t node)
{
	struct picture *picture = user;

	return picture->flame->names.names[picture->tree.nodes[node].function - 1];
}

static void words_of(void *user, uint32_t node, char text[GT_FLAME_WORDS])
{
	struct picture *picture = user;
	double total[2], self[2];
	char times[4][32];

	both_of(picture->flame, node, total, self);
	for (unsigned i = 0; i < 2; i++) {
		gt_flame_time(times[i], (uint64_t)total[i]);
		gt_flame_time(times[2 + i], (uint64_t)self[i]);
	}
	snprintf(text, GT_FLAME_WORDS, "in all %s -> %s (%+.1f %%), of its own %s -> %s", times[0],
		 times[1], total[0] > 0 ? 100 * (total[1] - total[0]) / total[0] : 100.0, times[2],
		 times[3]);
}

/* Red for longer, blue for shorter; the deeper, the larger the difference is in the frame's
 * time. */
static void color_of(void *user, uint32_t node, unsigned color[3])
{
	struct picture *picture = user;
	double total[2], self[2], most, part;

	both_of(picture->flame, node, total, self);
	most = total[0] > total[1] ? total[0] : total[1];
	part = most > 0 ? (total[1] - total[0]) / most : 0;
	unsigned pale = 235 - (unsigned)(165 * (part < 0 ? -part : part));
	color[0] = part > 0 ? 235 : pale;
	color[1] = pale;
	color[2] = part < 0 ? 235 : pale;
}

int gt_diff_flame_write(struct gt_diff_flame *flame, const char *title, struct gt_out *out)
{
	struct picture picture = { .flame = flame, .tree = flame->tree };
	int error = GT_ENOMEM;

	if (flame->first == NULL && keep_first(flame) != 0)
		return GT_ENOMEM;
	picture.tree.nodes = calloc(flame->tree.count, sizeof(*picture.tree.nodes));
	if (picture.tree.nodes == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < flame->tree.count; i++) {
		struct gt_tree_node *node = &picture.tree.nodes[i];
		double total[2], self[2];

		*node = flame->tree.nodes[i];
		both_of(flame, i, total, self);
		node->total = (uint64_t)((total[0] + total[1]) / 2);
		node->self = (uint64_t)((self[0] + self[1]) / 2);
	}
	if (gt_tree_finish(&picture.tree) == 0) {
		const struct gt_flame drawn = { .tree = &picture.tree,
						.title = title,
						.user = &picture,
						.name = name_of,
						.words = words_of,
						.color = color_of };
		error = gt_flame_write(&drawn, out);
	}
	free(picture.tree.nodes);
	return error;
}

void gt_diff_flame_destroy(struct gt_diff_flame *flame)
{
	if (flame == NULL)
		return;
	for (uint32_t i = 0; i < flame->names.count; i++)
		free(flame->names.names[i]);
	free(flame->names.names);
	free(flame->names.table);
	free(flame->first);
	free(flame->numbers);
	gt_tree_fini(&flame->tree);
	free(flame);
}
