/* SPDX-License-Identifier: MIT */
/* Histograms of durations: see durations.h. */
#include "core/trace/durations.h"
#include "core/trace/message.h"

#define FIXED_COLUMNS (GT_DURATIONS_COLUMNS - GT_DURATIONS_BAR)
#define LEAST_BAR     8

void gt_durations_starts(const struct gt_clock *clock, uint64_t starts_ns[GT_DURATIONS])
{
	for (uint32_t i = 0; i < GT_DURATIONS; i++)
		starts_ns[i] = gt_clock_duration_ns(clock, graftrace_profile_bucket_start(i));
}

uint64_t gt_durations_sum(const struct gt_durations *durations)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < GT_DURATIONS; i++)
		sum += durations->counts[i];
	return sum;
}

bool gt_durations_range(const struct gt_durations *durations, uint32_t *first, uint32_t *last)
{
	bool any = false;

	for (uint32_t i = 0; i < GT_DURATIONS; i++) {
		if (durations->counts[i] == 0)
			continue;
		*first = any ? *first : i;
		*last = i;
		any = true;
	}
	return any;
}

/* part / whole of `of`, with part <= whole. */
static uint64_t share(uint64_t of, uint64_t part, uint64_t whole)
{
	while (whole >> 32 != 0) {
		whole >>= 1;
		part >>= 1;
	}
	if (of >> 32 != 0)
		return share(of >> 1, part, whole) << 1;
	return whole != 0 ? of * part / whole : 0;
}

/* In 12 columns with three decimals, in the unit that leaves at most three digits before the point; or as whole
 * nanoseconds. rough: in as many columns as it takes, with three digits in all. */
static size_t put_time(char *text, size_t bytes, uint64_t ns, bool rough)
{
	static const char *const units[] = { "us", "ms", "s" };
	uint64_t unit = 1000;
	uint32_t i = 0;

	if (ns < 1000)
		return gt_format(text, bytes, rough ? "%u ns" : "%9u ns", (unsigned)ns);
	for (; i < 2 && ns / unit >= 1000; i++)
		unit *= 1000;
	const unsigned whole = (unsigned)(ns / unit), rest = (unsigned)(ns % unit / (unit / 1000));

	if (!rough)
		return gt_format(text, bytes, "%5u.%03u %-2s", whole, rest, units[i]);
	if (whole < 10)
		return gt_format(text, bytes, "%u.%02u %s", whole, rest / 10, units[i]);
	if (whole < 100)
		return gt_format(text, bytes, "%u.%u %s", whole, rest / 100, units[i]);
	return gt_format(text, bytes, "%u %s", whole, units[i]);
}

/* What `percent` of the calls took at most: as if those of a bucket were spread evenly in it. Of the first
 * bucket and the last only the one bound is known. */
static size_t put_percentile(char *text, size_t bytes, const struct gt_durations *durations,
			     uint64_t sum, unsigned percent)
{
	const uint64_t rank = sum / 100 * percent + (sum % 100 * percent + 99) / 100;
	const uint64_t *starts = durations->starts_ns;
	uint64_t before = 0;
	uint32_t i = 0;

	for (; i + 1 < GT_DURATIONS && durations->counts[i] < rank - before; i++)
		before += durations->counts[i];
	const char *word = i == 0 ? "below" : i + 1 == GT_DURATIONS ? "above" : "about";
	uint64_t ns = i == 0 ? starts[1] : starts[i];

	if (i != 0 && i + 1 < GT_DURATIONS) {
		const uint64_t width = starts[i + 1] - starts[i], count = durations->counts[i];

		ns += share(width, rank - before, count) - width / count / 2;
	}
	size_t used =
		gt_format(text, bytes, "%s p%u %s ", percent == 50 ? ":" : ",", percent, word);
	return used + put_time(text + used, bytes - used, ns, true);
}

size_t gt_durations_head(const struct gt_durations *durations, uint64_t hits, char *text,
			 size_t bytes)
{
	const uint64_t sum = gt_durations_sum(durations);
	size_t used = gt_format(text, bytes, "%llu call%s", (unsigned long long)hits,
				hits == 1 ? "" : "s");

	if (sum < hits) /* they are open, or nobody sees their returns */
		used += gt_format(text + used, bytes - used, ", %llu not timed",
				  (unsigned long long)(hits - sum));
	if (sum == 0)
		return used;
	used += put_percentile(text + used, bytes - used, durations, sum, 50);
	used += put_percentile(text + used, bytes - used, durations, sum, 90);
	return used + put_percentile(text + used, bytes - used, durations, sum, 99);
}

size_t gt_durations_line(const struct gt_durations *durations, uint32_t bucket, uint32_t columns,
			 char *line, size_t bytes)
{
	const uint64_t *counts = durations->counts;
	uint64_t most = 1;
	uint32_t bar = GT_DURATIONS_BAR;

	if (columns != 0 && columns < GT_DURATIONS_COLUMNS)
		bar = columns > FIXED_COLUMNS + LEAST_BAR ? columns - FIXED_COLUMNS : LEAST_BAR;
	for (uint32_t i = 0; i < GT_DURATIONS; i++)
		most = counts[i] > most ? counts[i] : most;
	size_t used = put_time(line, bytes, durations->starts_ns[bucket], false);
	used += gt_format(line + used, bytes - used, " - ");
	if (bucket + 1 < GT_DURATIONS)
		used += put_time(line + used, bytes - used, durations->starts_ns[bucket + 1],
				 false);
	else
		used += gt_format(line + used, bytes - used, "%12s", "and more");
	used += gt_format(line + used, bytes - used, " %11llu |",
			  (unsigned long long)counts[bucket]);
	/* one at least for what is there at all */
	uint32_t filled = (uint32_t)share(bar, counts[bucket], most);
	filled += filled < bar && counts[bucket] != 0;
	for (uint32_t i = 0; i < bar; i++)
		used += gt_format(line + used, bytes - used, i < filled ? "#" : " ");
	return used + gt_format(line + used, bytes - used, "|");
}
