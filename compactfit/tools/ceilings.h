/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The most instructions that malloc and free take: no path through the code is longer.
 * lab/compactfit/ceilings.py derives them from the machine code; tests/test_ceilings.c has the patterns
 * that come nearest, tests/search_ceilings.c looks for others. The tests fail if a path is longer, or
 * anything is found that takes more.
 */
#ifndef CEILINGS_H
#define CEILINGS_H

#include "compactfit.h"

enum operation {
	MALLOC,
	FREE, /* moves nothing */
	FREE_MOVING,
	PINNED_MALLOC, /* objects of the heap are pinned, or were */
	PINNED_FREE,
	OPERATIONS,
};

#define CEILINGS_NAMES \
	{ \
		"malloc", "free that moves nothing", "free that moves an object", \
			"malloc beside pins", "free beside pins", \
	}
#define CEILINGS_MEMORY (7u << 20) /* in which they are measured */
#define CEILINGS_ALIGNMENT 65536u

/* A lock hook that does nothing. */
static inline void ceilings_hook(void *arg)
{
	(void)arg;
}

/*
 * gcc 12, -O2, x86-64: a constant, and so many more for each block of the object. Neither copying is
 * counted nor what lock hooks do. Objects of up to a page. With K > 2 a page that becomes half full goes
 * to the front of its list. With remote frees, the two that an operation does first are counted.
 */
static const struct engine {
	const char *name;
	struct cf_config config;
	bool few; /* not all size-classes are measured: they cost what those of the others do */
	struct {
		unsigned int constant, block;
	} ceiling[OPERATIONS];
} engines[] = {
	{ "moving", { 0 }, false,
	  { { 200, 0 }, { 100, 0 }, { 145, 0 }, { 235, 0 }, { 240, 0 } } },
	{ "moving, wide", { .wide = true }, false,
	  { { 205, 0 }, { 125, 0 }, { 170, 0 }, { 240, 0 }, { 265, 0 } } },
	{ "moving, K = 3", { .max_not_full = 3 }, false,
	  { { 200, 0 }, { 125, 0 }, { 145, 0 }, { 235, 0 }, { 240, 0 } } },
	{ "moving, wide, K = 3", { .wide = true, .max_not_full = 3 }, false,
	  { { 205, 0 }, { 150, 0 }, { 170, 0 }, { 240, 0 }, { 265, 0 } } },
	{ "moving, pages of 64 KiB", { .page_size = 65536 }, true,
	  { { 200, 0 }, { 100, 0 }, { 145, 0 }, { 235, 0 }, { 240, 0 } } },
	{ "moving, wide, pages of 64 KiB", { .page_size = 65536, .wide = true }, true,
	  { { 205, 0 }, { 125, 0 }, { 170, 0 }, { 240, 0 }, { 265, 0 } } },
	{ "moving, lock hooks", { .lock = ceilings_hook, .unlock = ceilings_hook }, true,
	  { { 265, 0 }, { 200, 0 }, { 245, 0 }, { 295, 0 }, { 340, 0 } } },
	{ "moving, remote frees", { .remote_frees = 16 }, true,
	  { { 765, 0 }, { 745, 0 }, { 745, 0 }, { 1265, 0 }, { 1305, 0 } } },
	{ "moving, wide, pages of 64 KiB, remote frees",
	  { .page_size = 65536, .wide = true, .remote_frees = 16 }, true,
	  { { 780, 0 }, { 770, 0 }, { 770, 0 }, { 1275, 0 }, { 1325, 0 } } },
	{ "non-moving", { .engine = CF_NONMOVING }, false,
	  { { 300, 6 }, { 220, 7 }, { 265, 7 }, { 305, 6 }, { 360, 7 } } },
};

#endif
