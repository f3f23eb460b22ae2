/* SPDX-License-Identifier: MIT */
/*
 * A log-linear histogram of durations: 32 steps to each power of two, so that a quantile is right
 * to a thirty-second of itself, whatever the durations are. Memory is taken for a power of two when
 * the first duration falls into it, and never grows with the number of durations. All zero: empty. One thread at a time.
 */
#ifndef GT_EXPORT_HISTOGRAM_H
#define GT_EXPORT_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_HISTOGRAM_STEPS   32
#define GT_HISTOGRAM_OCTAVES 40 /* up to five hours; what is longer counts as that long */

struct gt_histogram {
	uint64_t *octaves[GT_HISTOGRAM_OCTAVES]; /* each of GT_HISTOGRAM_STEPS counts, or NULL */
};

/* False: no memory; it is as it was. */
bool gt_histogram_add_slow(struct gt_histogram *histogram, unsigned octave, unsigned step);

/* Counts a duration: 0 … 31 have a step each, then [32 << n, 64 << n) steps of 1 << n. False: no memory. */
static inline bool gt_histogram_add(struct gt_histogram *histogram, uint64_t ns)
{
	unsigned octave = 0, step = (unsigned)ns;

	if (ns >= GT_HISTOGRAM_STEPS) {
		octave = 59u - (unsigned)__builtin_clzll(ns);
		step = (unsigned)(ns >> (octave - 1)) % GT_HISTOGRAM_STEPS;
		if (__builtin_expect(octave >= GT_HISTOGRAM_OCTAVES, 0)) {
			octave = GT_HISTOGRAM_OCTAVES - 1;
			step = GT_HISTOGRAM_STEPS - 1;
		}
	}
	if (__builtin_expect(histogram->octaves[octave] == NULL, 0))
		return gt_histogram_add_slow(histogram, octave, step);
	histogram->octaves[octave][step]++;
	return true;
}

/* Adds all that `from` has. False: no memory, and a part of it is added. */
bool gt_histogram_merge(struct gt_histogram *histogram, const struct gt_histogram *from);

uint64_t gt_histogram_count(const struct gt_histogram *histogram);

/* The duration (in ns) below or at which `part` (0 … 1) of all durations are; 0 if there is none. */
uint64_t gt_histogram_quantile(const struct gt_histogram *histogram, double part);

/* How many are in [low, high). Both must be powers of two, or `low` 0. */
uint64_t gt_histogram_between(const struct gt_histogram *histogram, uint64_t low, uint64_t high);

/* The shortest duration that a step of an octave counts. */
uint64_t gt_histogram_low(unsigned octave, unsigned step);

/* Frees its memory, and makes it empty. */
void gt_histogram_fini(struct gt_histogram *histogram);

#endif
