/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What an operation costs at most: compact-fit's promise, checked by test_ceilings.c. */
#ifndef CEILINGS_H
#define CEILINGS_H

#include "compactfit.h"

enum operation { MALLOC, FREE, FREE_MOVING, OPERATIONS };

/*
 * Instructions: a constant, and so many more for each block of the object. Copying is not counted, and
 * nothing is pinned. With K > 2 a page that becomes half full goes to the front of its list.
 */
static const struct engine {
	const char *name;
	struct cf_config config;
	struct {
		unsigned int constant, block;
	} ceiling[OPERATIONS];
} engines[] = {
	{ "moving", { 0 }, { { 128, 0 }, { 100, 0 }, { 150, 0 } } },
	{ "moving, wide", { .wide = true }, { { 138, 0 }, { 112, 0 }, { 168, 0 } } },
	{ "moving, K = 3", { .max_not_full = 3 }, { { 128, 0 }, { 126, 0 }, { 150, 0 } } },
	{ "moving, wide, K = 3", { .wide = true, .max_not_full = 3 },
	  { { 138, 0 }, { 142, 0 }, { 168, 0 } } },
	{ "non-moving", { .engine = CF_NONMOVING }, { { 225, 10 }, { 190, 10 }, { 240, 10 } } },
};

#endif
