/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The dearest malloc and free that were found, in instructions; test_ceilings.c has the patterns that reach
 * them, and fails if one takes more. They are observed, not derived from the code's paths.
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

/*
 * gcc 12, -O2, x86-64, rounded up: a constant, and so many more for each block of the object. Neither
 * copying is counted nor what lock hooks do. Objects of up to a page. With K > 2 a page that becomes half full goes to
 * the front of its list. With remote frees, the two that an operation does first are counted.
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
	  { { 235, 0 }, { 100, 0 }, { 150, 0 }, { 235, 0 }, { 585, 0 } } },
	{ "moving, wide", { .wide = true }, false,
	  { { 245, 0 }, { 112, 0 }, { 168, 0 }, { 245, 0 }, { 550, 0 } } },
	{ "moving, K = 3", { .max_not_full = 3 }, false,
	  { { 235, 0 }, { 126, 0 }, { 150, 0 }, { 235, 0 }, { 590, 0 } } },
	{ "moving, wide, K = 3", { .wide = true, .max_not_full = 3 }, false,
	  { { 245, 0 }, { 142, 0 }, { 168, 0 }, { 245, 0 }, { 555, 0 } } },
	{ "moving, pages of 64 KiB", { .page_size = 65536 }, true,
	  { { 235, 0 }, { 100, 0 }, { 150, 0 }, { 235, 0 }, { 641, 0 } } },
	{ "moving, wide, pages of 64 KiB", { .page_size = 65536, .wide = true }, true,
	  { { 245, 0 }, { 112, 0 }, { 168, 0 }, { 245, 0 }, { 648, 0 } } },
	{ "moving, remote frees", { .remote_frees = 16 }, true,
	  { { 675, 0 }, { 550, 0 }, { 700, 0 }, { 1585, 0 }, { 1945, 0 } } },
	{ "moving, wide, pages of 64 KiB, remote frees",
	  { .page_size = 65536, .wide = true, .remote_frees = 16 }, true,
	  { { 690, 0 }, { 550, 0 }, { 715, 0 }, { 1700, 0 }, { 2125, 0 } } },
	{ "non-moving", { .engine = CF_NONMOVING }, false,
	  { { 225, 10 }, { 190, 10 }, { 240, 10 }, { 235, 10 }, { 370, 10 } } },
};

#endif
