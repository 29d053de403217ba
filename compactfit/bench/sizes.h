/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The sizes that Fig. 8 asks for. */
#ifndef SIZES_H
#define SIZES_H

#include <stddef.h>

#define FIRST_SIZE 20u
#define LAST_SIZE 16000u

/*
 * The size after @size, in steps that grow, and every power of two between them: an allocator that keeps
 * anything beside an object has its worst sizes there.
 */
static inline size_t next_size(size_t size)
{
	size_t step = size < 200 ? 20 : size < 2000 ? 100 : 250;
	size_t next = size - size % step + step, power = 1;

	while (power <= size)
		power *= 2;
	return power < next ? power : next;
}

#endif
