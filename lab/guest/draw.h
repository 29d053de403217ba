/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random numbers that are the same each time: all alike, or by Zipf's law. */
#ifndef DRAW_H
#define DRAW_H

#include <err.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#define ZIPF		1.1
#define SPREAD		2654435761UL	/* a prime: neighbours in rank are no neighbours */

/* splitmix64 */
static inline uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* The cumulated weights of the ranks. */
static inline double *zipf_sums(unsigned long ranks)
{
	double *sums = malloc(ranks * sizeof(double)), sum = 0;
	unsigned long rank;

	if (!sums)
		err(1, "zipf");
	for (rank = 0; rank < ranks; rank++)
		sums[rank] = sum += pow(rank + 1, -ZIPF);
	return sums;
}

/* A rank below @ranks, the small ones often. */
static inline unsigned long zipf_rank(uint64_t *state, const double *sums, unsigned long ranks)
{
	double at = (draw(state) >> 11) * 0x1p-53 * sums[ranks - 1];
	unsigned long low = 0, high = ranks - 1;

	while (low < high) {
		unsigned long middle = (low + high) / 2;

		if (sums[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#endif
