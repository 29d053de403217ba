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
	REFUSED_FREE, /* the handle is stale, or the object pinned */
	OPERATIONS,
};

#define CEILINGS_NAMES \
	{ \
		"malloc", "free that moves nothing", "free that moves an object", \
			"malloc beside pins", "free beside pins", "free that is refused", \
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
 * to the front of its list. With remote frees, the two that an operation does first are counted, in a
 * non-moving heap as if their objects had as many blocks. 0: that cannot be.
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
	  { { 200, 0 }, { 95, 0 }, { 145, 0 }, { 235, 0 }, { 235, 0 }, { 160, 0 } } },
	{ "moving, wide", { .wide = true }, false,
	  { { 210, 0 }, { 120, 0 }, { 170, 0 }, { 240, 0 }, { 260, 0 }, { 155, 0 } } },
	{ "moving, K = 3", { .max_not_full = 3 }, false,
	  { { 200, 0 }, { 125, 0 }, { 145, 0 }, { 235, 0 }, { 235, 0 }, { 160, 0 } } },
	{ "moving, wide, K = 3", { .wide = true, .max_not_full = 3 }, false,
	  { { 210, 0 }, { 150, 0 }, { 170, 0 }, { 240, 0 }, { 260, 0 }, { 155, 0 } } },
	{ "moving, deferred", { .deferred = true }, true,
	  { { 200, 0 }, { 125, 0 }, { 0, 0 }, { 235, 0 }, { 235, 0 }, { 160, 0 } } },
	{ "moving, wide, deferred", { .deferred = true, .wide = true }, true,
	  { { 210, 0 }, { 150, 0 }, { 0, 0 }, { 240, 0 }, { 260, 0 }, { 155, 0 } } },
	{ "moving, pages of 64 KiB", { .page_size = 65536 }, true,
	  { { 200, 0 }, { 95, 0 }, { 145, 0 }, { 235, 0 }, { 235, 0 }, { 160, 0 } } },
	{ "moving, wide, pages of 64 KiB", { .page_size = 65536, .wide = true }, true,
	  { { 210, 0 }, { 120, 0 }, { 170, 0 }, { 240, 0 }, { 260, 0 }, { 155, 0 } } },
	{ "moving, lock hooks", { .lock = ceilings_hook, .unlock = ceilings_hook }, true,
	  { { 260, 0 }, { 195, 0 }, { 245, 0 }, { 290, 0 }, { 335, 0 }, { 125, 0 } } },
	{ "moving, remote frees", { .remote_frees = 16 }, true,
	  { { 760, 0 }, { 745, 0 }, { 745, 0 }, { 1255, 0 }, { 1300, 0 }, { 1300, 0 } } },
	{ "moving, wide, pages of 64 KiB, remote frees",
	  { .page_size = 65536, .wide = true, .remote_frees = 16 }, true,
	  { { 775, 0 }, { 765, 0 }, { 765, 0 }, { 1270, 0 }, { 1320, 0 }, { 1320, 0 } } },
	{ "moving, wide, K = 3, lock hooks",
	  { .wide = true, .max_not_full = 3, .lock = ceilings_hook, .unlock = ceilings_hook }, true,
	  { { 260, 0 }, { 230, 0 }, { 250, 0 }, { 290, 0 }, { 345, 0 }, { 125, 0 } } },
	{ "moving, wide, K = 3, lock hooks, remote frees",
	  { .wide = true, .max_not_full = 3, .remote_frees = 16,
	    .lock = ceilings_hook, .unlock = ceilings_hook }, true,
	  { { 780, 0 }, { 775, 0 }, { 775, 0 }, { 1275, 0 }, { 1325, 0 }, { 1325, 0 } } },
	{ "non-moving", { .engine = CF_NONMOVING }, false,
	  { { 305, 6 }, { 220, 7 }, { 265, 7 }, { 315, 6 }, { 360, 7 }, { 120, 0 } } },
	{ "non-moving, wide", { .engine = CF_NONMOVING, .wide = true }, true,
	  { { 305, 6 }, { 225, 7 }, { 275, 7 }, { 315, 6 }, { 365, 7 }, { 120, 0 } } },
	{ "non-moving, wide, K = 3, lock hooks",
	  { .engine = CF_NONMOVING, .wide = true, .max_not_full = 3,
	    .lock = ceilings_hook, .unlock = ceilings_hook }, true,
	  { { 315, 6 }, { 260, 7 }, { 280, 7 }, { 320, 6 }, { 370, 7 }, { 125, 0 } } },
	{ "non-moving, wide, K = 3, lock hooks, remote frees",
	  { .engine = CF_NONMOVING, .wide = true, .max_not_full = 3, .remote_frees = 16,
	    .lock = ceilings_hook, .unlock = ceilings_hook }, true,
	  { { 890, 20 }, { 855, 21 }, { 855, 21 }, { 1355, 20 }, { 1410, 21 }, { 1410, 21 } } },
};

#endif
