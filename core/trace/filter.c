/* SPDX-License-Identifier: MIT */
/*
 * Filters on records. With `graph`, a frame's mark is 1 + its depth below the call that matched
 * (saturating), 0 outside: a call inherits from its parent's frame, so nothing has to be searched.
 */
#include "core/trace/filter.h"
#include "core/trace/glob.h"

static bool has_cpus(const struct gt_filter *filter)
{
	if (filter->masks.count)
		return true;
	for (int i = 0; i < GT_FILTER_CPU_WORDS; i++)
		if (filter->cpus[i])
			return true;
	return false;
}

/* A CPU that is not known counts as CPU 0, where the text shows it. */
static bool on_cpu(const struct gt_filter *filter, uint32_t cpu, uint64_t clock)
{
	const struct gt_filter_masks *masks = &filter->masks;
	uint64_t any = 0;
	uint32_t at = masks->count;

	if (cpu == UINT32_MAX)
		cpu = 0;
	if (cpu >= GT_FILTER_CPU_WORDS * 64)
		return false;
	for (int i = 0; i < GT_FILTER_CPU_WORDS; i++)
		any |= filter->cpus[i];
	if (any && !(filter->cpus[cpu / 64] >> cpu % 64 & 1))
		return false;
	while (at && masks->mask[at - 1].from > clock)
		at--;
	return !at || masks->mask[at - 1].cpus[cpu / 64] >> cpu % 64 & 1;
}

bool gt_filter_is_needed(const struct gt_filter *filter)
{
	return has_cpus(filter) || filter->from_ns || filter->to_ns || filter->max_depth ||
	       filter->graph != NULL || filter->least_ns;
}

static bool matches(struct gt_filter *filter, struct gt_target *target, uint32_t number)
{
	uint32_t place = number % GT_FILTER_CACHE;
	if (filter->cache_function[place] == number)
		return filter->cache_match[place];
	struct gt_function function;
	bool found = false;
	if (gt_target_function(target, number, &function) == 0)
		for (const char *const *glob = filter->graph; *glob != NULL && !found; glob++)
			found = gt_glob_match(*glob, function.name);
	filter->cache_function[place] = number;
	filter->cache_match[place] = found;
	return found;
}

static uint16_t mark_below(struct gt_filter *filter, struct gt_target *target, uint16_t parent,
			   uint32_t function)
{
	if (parent)
		return parent < UINT16_MAX ? (uint16_t)(parent + 1) : parent;
	return function && matches(filter, target, function);
}

static uint16_t mark_at(struct gt_decode *decode, uint32_t depth)
{
	const struct gt_decode_frame *frame = gt_decode_frame(decode, depth);
	return frame != NULL ? frame->mark : 0;
}

/* The frames that a sub-buffer's header told of have no mark yet: nobody saw their entry. */
static void mark_unseen(struct gt_filter *filter, struct gt_target *target,
			struct gt_decode *decode)
{
	uint32_t from =
		decode->depth > GRAFTRACE_OPEN_CALLS ? decode->depth - GRAFTRACE_OPEN_CALLS : 0;
	if (from < decode->low)
		from = decode->low;
	for (uint32_t depth = from; depth < decode->depth; depth++) {
		struct gt_decode_frame *frame = gt_decode_frame(decode, depth);
		if (!frame->mark && !(frame->flags & GT_RECORD_ENTRY_SEEN))
			frame->mark =
				mark_below(filter, target, depth ? mark_at(decode, depth - 1) : 0,
					   frame->function);
	}
}

/* Is it inside, and how deep? Where a frame's mark is needed it is set here. */
static bool in_graph(struct gt_filter *filter, struct gt_target *target, struct gt_decode *decode,
		     struct gt_record *record)
{
	uint32_t depth = record->depth;
	struct gt_decode_frame *frame;
	uint16_t mark;

	switch (record->kind) {
	case GT_RECORD_ENTRY:
		frame = gt_decode_frame(decode, depth);
		if (depth && (frame = gt_decode_frame(decode, depth - 1)) != NULL && !frame->mark &&
		    !(frame->flags & GT_RECORD_ENTRY_SEEN))
			mark_unseen(filter, target, decode);
		mark = mark_below(filter, target, depth ? mark_at(decode, depth - 1) : 0,
				  record->function);
		frame = gt_decode_frame(decode, depth);
		if (frame != NULL)
			frame->mark = mark;
		break;
	case GT_RECORD_RETURN:
	case GT_RECORD_UNWOUND:
		mark = record->mark;
		if (!mark && !(record->flags & GT_RECORD_ENTRY_SEEN))
			mark = mark_below(filter, target, depth ? mark_at(decode, depth - 1) : 0,
					  record->function);
		break;
	case GT_RECORD_ENTRY_ONLY:
	case GT_RECORD_FUNCTION:
		mark = mark_below(filter, target, depth ? mark_at(decode, depth - 1) : 0,
				  record->function);
		break;
	default: /* a comment: it belongs to the innermost call */
		mark = depth ? mark_at(decode, depth - 1) : 0;
		if (mark && mark < UINT16_MAX)
			mark++;
		break;
	}
	if (mark)
		record->depth = mark - 1u;
	return mark != 0;
}

bool gt_filter_passes(const struct gt_filter *filter, const struct gt_target *target,
		      uint64_t clock, uint32_t tid, uint32_t cpu)
{
	uint64_t ns = gt_clock_ns(&target->clock, clock);
	return (!filter->tid || filter->tid == tid) &&
	       (!has_cpus(filter) || on_cpu(filter, cpu, clock)) && ns >= filter->from_ns &&
	       (!filter->to_ns || ns <= filter->to_ns);
}

/* Of a call that took long enough its return is left, as if nothing else had been recorded. */
static bool is_long(const struct gt_filter *filter, const struct gt_target *target,
		    struct gt_record *record)
{
	switch (record->kind) {
	case GT_RECORD_ENTRY:
	case GT_RECORD_ENTRY_ONLY:
	case GT_RECORD_FUNCTION:
	case GT_RECORD_UNWOUND:
	case GT_RECORD_OPEN:
		return false;
	case GT_RECORD_RETURN:
		record->flags &= (uint8_t)~GT_RECORD_ENTRY_SEEN;
		record->flags |= GT_RECORD_ALONE;
		return !(record->flags & GT_RECORD_START_UNKNOWN) &&
		       gt_clock_duration_ns(&target->clock, record->clock - record->start) >=
			       filter->least_ns;
	default:
		return true;
	}
}

bool gt_filter_record(struct gt_filter *filter, struct gt_target *target, struct gt_decode *decode,
		      struct gt_record *record)
{
	bool inside = filter->graph == NULL || in_graph(filter, target, decode, record);

	if (has_cpus(filter) && !on_cpu(filter, record->cpu, record->clock)) {
		/* Its return may come on a CPU that is wanted: then nobody has seen the entry. */
		struct gt_decode_frame *frame = record->kind == GT_RECORD_ENTRY
							? gt_decode_frame(decode, record->depth)
							: NULL;
		if (frame != NULL)
			frame->flags &= (uint16_t)~GT_RECORD_ENTRY_SEEN;
		return false;
	}
	if (filter->from_ns || filter->to_ns) {
		uint64_t ns = gt_clock_ns(&target->clock, record->clock);
		if (ns < filter->from_ns || (filter->to_ns && ns > filter->to_ns))
			return false;
		if ((record->kind == GT_RECORD_RETURN || record->kind == GT_RECORD_UNWOUND) &&
		    gt_clock_ns(&target->clock, record->start) < filter->from_ns)
			record->flags &= (uint8_t)~GT_RECORD_ENTRY_SEEN;
	}
	/* Which stack a thread is on is told for the sake of the braces: here there are none. */
	if (filter->least_ns && record->kind == GT_RECORD_CONTEXT && !decode->kernel)
		return false;
	if (record->kind == GT_RECORD_LOST || record->kind == GT_RECORD_GAP ||
	    record->kind == GT_RECORD_CONTEXT || record->kind == GT_RECORD_CPU)
		return true;
	return inside && (!filter->max_depth || record->depth < filter->max_depth) &&
	       (!filter->least_ns || is_long(filter, target, record));
}
