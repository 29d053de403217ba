/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Random numbers that are the same on each machine. */
#ifndef XORSHIFT_H
#define XORSHIFT_H

#include <stdint.h>

/* xorshift64*, Marsaglia and Vigna. Anything but 0 is a state to begin with. */
static inline uint64_t xorshift(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 2685821657736338717u;
}

#endif
