/* SPDX-License-Identifier: MIT */
/* Histograms of durations: see histogram.h. */
#include "export/histogram.h"

#include <stdlib.h>
#include <string.h>

bool gt_histogram_add_slow(struct gt_histogram *histogram, unsigned octave, unsigned step)
{
	uint64_t **counts = &histogram->octaves[octave];

	if (*counts == NULL)
		*counts = calloc(GT_HISTOGRAM_STEPS, sizeof(**counts));
	if (*counts == NULL)
		return false;
	(*counts)[step]++;
	return true;
}

bool gt_histogram_merge(struct gt_histogram *histogram, const struct gt_histogram *from)
{
	for (unsigned octave = 0; octave < GT_HISTOGRAM_OCTAVES; octave++) {
		uint64_t **counts = &histogram->octaves[octave];

		if (from->octaves[octave] == NULL)
			continue;
		if (*counts == NULL)
			*counts = calloc(GT_HISTOGRAM_STEPS, sizeof(**counts));
		if (*counts == NULL)
			return false;
		for (unsigned step = 0; step < GT_HISTOGRAM_STEPS; step++)
			(*counts)[step] += from->octaves[octave][step];
	}
	return true;
}

uint64_t gt_histogram_low(unsigned octave, unsigned step)
{
	return octave == 0 ? step : (uint64_t)(GT_HISTOGRAM_STEPS + step) << (octave - 1);
}

static uint64_t width_of(unsigned octave)
{
	return octave == 0 ? 1 : (uint64_t)1 << (octave - 1);
}

uint64_t gt_histogram_between(const struct gt_histogram *histogram, uint64_t low, uint64_t high)
{
	uint64_t count = 0;

	for (unsigned octave = 0; octave < GT_HISTOGRAM_OCTAVES; octave++)
		for (unsigned step = 0;
		     histogram->octaves[octave] != NULL && step < GT_HISTOGRAM_STEPS; step++)
			if (gt_histogram_low(octave, step) >= low &&
			    gt_histogram_low(octave, step) < high)
				count += histogram->octaves[octave][step];
	return count;
}

uint64_t gt_histogram_count(const struct gt_histogram *histogram)
{
	return gt_histogram_between(histogram, 0, UINT64_MAX);
}

uint64_t gt_histogram_quantile(const struct gt_histogram *histogram, double part)
{
	uint64_t count = gt_histogram_count(histogram), before = 0;
	uint64_t rank = (uint64_t)(part * (double)count);

	if ((double)rank < part * (double)count || rank == 0)
		rank++; /* the nearest rank, from 1 */
	if (rank > count)
		rank = count;
	for (unsigned octave = 0; octave < GT_HISTOGRAM_OCTAVES; octave++)
		for (unsigned step = 0;
		     histogram->octaves[octave] != NULL && step < GT_HISTOGRAM_STEPS; step++) {
			uint64_t here = histogram->octaves[octave][step];

			if (before + here < rank) {
				before += here;
				continue;
			}
			/* Assumes that a step's durations are spread evenly over it. */
			if (here == 0)
				continue;
			double within = ((double)(rank - before) - 0.5) / (double)here;
			return gt_histogram_low(octave, step) +
			       (uint64_t)(within * (double)width_of(octave));
		}
	return 0;
}

void gt_histogram_fini(struct gt_histogram *histogram)
{
	for (unsigned octave = 0; octave < GT_HISTOGRAM_OCTAVES; octave++)
		free(histogram->octaves[octave]);
	memset(histogram, 0, sizeof(*histogram));
}
