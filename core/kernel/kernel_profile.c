/* SPDX-License-Identifier: MIT */
/*
 * The function profiler of a kernel: a table a CPU, of pages of 16 functions, made when it is first
 * switched on and kept. Any thread; the machine's lock is held while it is switched.
 */
#include <graftrace/profile.h>
#include "core/kernel/kernel_private.h"

__extension__ typedef unsigned __int128 u128;

/* Rows of a table lie in pieces: what is asked of the kernel at once stays below 2 MiB. */
#define PIECE_ROWS 32768u

struct row {
	uint32_t function;
	struct gt_control_profile_row row;
};

struct table {
	uint32_t count, room;
	uint32_t cpu;
	/* of the row that was read last, as they are by then */
	uint64_t buckets[GT_DURATIONS], starts_ns[GT_DURATIONS];
	struct row *pieces[];
};

_Static_assert(PIECE_ROWS * sizeof(struct row) <= GT_ARENA_PIECE_BYTES, "a piece");

static uint32_t pages_of(const struct gt_arena_control *control)
{
	return control->function_count / GRAFTRACE_PROFILE_FUNCTIONS + 1; /* numbers from 1 */
}

/* The tables of all CPUs, zero. What was made stays when there is no memory for the rest. */
static int make_tables(struct gt_arena_control *control)
{
	uint32_t pages = pages_of(control);
	uint32_t cpus = control->view.target.ring->writer_count(&control->view.target);
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		struct graftrace_profile_entry **table = control->profile[cpu];
		if (table == NULL) {
			table = gt_memory_get(&control->memory, pages * sizeof(*table));
			if (table == NULL)
				return GT_ENOMEM;
			__builtin_memset(table, 0, pages * sizeof(*table));
			control->profile[cpu] = table;
		}
		for (uint32_t i = 0; i < pages; i++) {
			if (table[i] == NULL)
				table[i] = gt_memory_get(&control->memory,
							 GRAFTRACE_PROFILE_PAGE_BYTES);
			if (table[i] == NULL)
				return GT_ENOMEM;
			__builtin_memset(table[i], 0, GRAFTRACE_PROFILE_PAGE_BYTES);
		}
		control->machine->profile_table(control->machine->data, cpu, table, pages);
	}
	return 0;
}

int gt_arena_set_profile(struct gt_arena_control *control, bool on, struct gt_message *message)
{
	const struct gt_arena_machine *machine = control->machine;
	const struct graftrace_arena *arena = control->ring->arena;
	if (on == (arena->profile != 0))
		return 0;
	if (machine->set_profile == NULL || machine->profile_table == NULL)
		return REFUSE(message, GT_ENOTSUP, "this kernel has no function profiler");
	if (on && arena->tracer == GRAFTRACE_TRACER_FUNCTION)
		return REFUSE(message, GT_EBUSY,
			      "the function profiler needs returns: it runs beside the tracers nop "
			      "and function_graph, not function");
	if (on && control->threshold_ns != 0)
		return REFUSE(message, GT_EBUSY,
			      "the function profiler does not run beside tracing_thresh");
	if (on && make_tables(control) != 0)
		return gt_arena_no_memory(message);
	machine->set_profile(machine->data, on);
	/* nop patches nothing but for this; and who was counting when it was switched off is done
	 */
	gt_arena_control_patch(control);
	return 0;
}

/* a / b, without what a compiler would call for it. */
static u128 divide(u128 a, u128 b)
{
	u128 quotient = 0, rest = 0;
	for (int bit = 127; bit >= 0; bit--) {
		rest = rest << 1 | (a >> bit & 1);
		quotient <<= 1;
		if (rest >= b) {
			rest -= b;
			quotient |= 1;
		}
	}
	return quotient;
}

/* As Linux: the sample's variance, in ns² / 1000. */
static uint64_t variance(const struct gt_clock *clock, uint64_t hits, uint64_t ticks,
			 const uint64_t squares[2])
{
	u128 all = (u128)squares[1] << 64 | squares[0], sum = (u128)ticks * ticks;
	if (hits <= 1 || squares[1] >> 32 != 0 || hits >> 32 != 0)
		return 0; /* more than years of calls */
	all *= hits;
	if (all <= sum)
		return 0;
	u128 value = divide(all - sum, (u128)hits * (hits - 1));
	for (int i = 0; i < 2; i++) {
		if (value >> 64 != 0)
			return UINT64_MAX;
		value = value * clock->mult >> clock->shift;
	}
	return value >> 64 != 0 ? UINT64_MAX : (uint64_t)value / 1000;
}

static bool is_before(const struct row *a, const struct row *b)
{
	if (a->row.time_ns != b->row.time_ns)
		return a->row.time_ns > b->row.time_ns;
	if (a->row.hits != b->row.hits)
		return a->row.hits > b->row.hits;
	return a->function < b->function;
}

static struct row *row_at(const struct table *table, uint32_t index)
{
	return &table->pieces[index / PIECE_ROWS][index % PIECE_ROWS];
}

static void sort(struct table *table)
{
	for (uint32_t gap = table->count / 2; gap != 0; gap /= 2) {
		for (uint32_t i = gap; i < table->count; i++) {
			struct row row = *row_at(table, i);
			uint32_t at = i;
			for (; at >= gap && is_before(&row, row_at(table, at - gap)); at -= gap)
				*row_at(table, at) = *row_at(table, at - gap);
			*row_at(table, at) = row;
		}
	}
}

static uint32_t pieces_of(uint32_t rows)
{
	return (rows + PIECE_ROWS - 1) / PIECE_ROWS;
}

static size_t table_bytes(uint32_t rows)
{
	return sizeof(struct table) + pieces_of(rows) * sizeof(struct row *);
}

static size_t piece_bytes(uint32_t rows, uint32_t piece)
{
	uint32_t left = rows - piece * PIECE_ROWS;
	return (left < PIECE_ROWS ? left : PIECE_ROWS) * sizeof(struct row);
}

static void put_table(const struct gt_memory *memory, struct table *table)
{
	for (uint32_t i = 0; i < pieces_of(table->room); i++)
		gt_memory_put(memory, table->pieces[i], piece_bytes(table->room, i));
	gt_memory_put(memory, table, table_bytes(table->room));
}

static struct table *make_table(const struct gt_memory *memory, uint32_t rows)
{
	struct table *table = gt_memory_get(memory, table_bytes(rows));
	bool made = table != NULL;
	if (!made)
		return NULL;
	__builtin_memset(table, 0, table_bytes(rows));
	table->room = rows;
	for (uint32_t i = 0; made && i < pieces_of(rows); i++) {
		table->pieces[i] = gt_memory_get(memory, piece_bytes(rows, i));
		made = table->pieces[i] != NULL;
	}
	if (made)
		return table;
	put_table(memory, table);
	return NULL;
}

/* A function's entry in a CPU's table, NULL: it was never called there. */
static const struct graftrace_profile_entry *entry_of(const struct gt_arena_control *control,
						      uint32_t cpu, uint32_t function)
{
	struct graftrace_profile_entry **pages =
		cpu < GT_ARENA_WRITERS ? control->profile[cpu] : NULL;
	const struct graftrace_profile_entry *page =
		pages != NULL ? pages[function / GRAFTRACE_PROFILE_FUNCTIONS] : NULL;
	if (page == NULL || page[function % GRAFTRACE_PROFILE_FUNCTIONS].hits == 0)
		return NULL;
	return &page[function % GRAFTRACE_PROFILE_FUNCTIONS];
}

int gt_arena_profile_open(struct gt_control_target *target, const struct gt_control_scope *scope,
			  void **opened, struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);
	const struct gt_clock *clock = &control->ring->clock;
	const struct gt_arena_names *names = control->ring->names;
	bool whole = control->options & GT_OPTION_GRAPH_TIME;
	uint32_t called = 0;
	for (uint32_t i = 1; i <= control->function_count; i++)
		called += entry_of(control, scope->number, i) != NULL;
	struct table *table = make_table(&control->memory, called);
	if (table == NULL)
		return gt_arena_no_memory(message);
	table->cpu = scope->number;
	gt_durations_starts(clock, table->starts_ns);
	for (uint32_t i = 1; i <= control->function_count && table->count < called; i++) {
		const struct graftrace_profile_entry *entry = entry_of(control, scope->number, i);
		struct gt_function function;
		if (entry == NULL || names->function(names->data, i, &function) != 0)
			continue;
		uint64_t ticks = whole ? entry->ticks : entry->self_ticks;
		const uint64_t *squares = whole ? entry->squares : entry->self_squares;
		*row_at(table, table->count++) = (struct row){
			.function = i,
			.row = { .name = function.name,
				 .hits = entry->hits,
				 .time_ns = gt_clock_duration_ns(clock, ticks),
				 .variance = variance(clock, entry->hits, ticks, squares) },
		};
	}
	sort(table);
	*opened = table;
	return 0;
}

int gt_arena_profile_read(struct gt_control_target *target, void *opened, uint64_t index,
			  struct gt_control_profile_row *row)
{
	struct table *table = opened;
	if (index >= table->count)
		return GT_ENOENT;
	const struct row *kept = row_at(table, (uint32_t)index);
	const struct graftrace_profile_entry *entry =
		entry_of(gt_arena_self(target), table->cpu, kept->function);
	*row = kept->row;
	__builtin_memset(table->buckets, 0, sizeof(table->buckets));
	if (entry != NULL) /* else it was switched on anew meanwhile */
		graftrace_profile_histogram(entry, table->buckets);
	row->durations = (struct gt_durations){ table->buckets, table->starts_ns };
	return 0;
}

void gt_arena_profile_close(struct gt_control_target *target, void *opened)
{
	put_table(&gt_arena_self(target)->memory, opened);
}
