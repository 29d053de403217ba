/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the tests of compact-fit's rivals share. */
#ifndef RIVAL_H
#define RIVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../bench/xorshift.h"

static uint64_t state = 1;

static inline uint64_t rnd(void)
{
	return xorshift(&state);
}

static inline bool filled(const unsigned char *at, unsigned char with, size_t size)
{
	while (size--)
		if (*at++ != with)
			return false;
	return true;
}

#endif
