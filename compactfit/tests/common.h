/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What test programs share: the heaps that are tested, and random numbers.
 */
#ifndef COMMON_H
#define COMMON_H

#include <stdint.h>

#include "../bench/xorshift.h"
#include "compactfit.h"

#ifndef CF_TEST_MEMORY
#define CF_TEST_MEMORY SIZE_MAX /* bytes that a test may take at once; those that need more are skipped */
#endif
#ifndef CF_TEST_OPERATIONS
#define CF_TEST_OPERATIONS 20000 /* random ones of each heap, unless told otherwise */
#endif

struct setup {
	const char *name;
	size_t size;
	struct cf_config config;
};

static const uint16_t per_class[CF_MAX_CLASSES] = { 2, 0, 5, 1, 3 };

static const struct setup setups[] = {
	{ "moving", 1 << 20, { .pieces = true } },
	{ "moving, wide", 1 << 20, { .pieces = true, .wide = true } },
	{ "moving, K = 3", 1 << 20, { .pieces = true, .max_not_full = 3 } },
	{ "moving, never compacting", 1 << 20, { .pieces = true, .max_not_full = CF_UNLIMITED } },
	{ "moving, deferred", 1 << 20, { .pieces = true, .deferred = true } },
	{ "moving, K by size-class", 1 << 20,
	  { .pieces = true, .max_not_full = 2, .class_max_not_full = per_class } },
	{ "moving, 9 MiB", 9 << 20, { .pieces = true } },
	{ "moving, 64 KiB in pages of 1 KiB", 64 << 10, { .pieces = true, .page_size = 1024 } },
	{ "moving, pages of 256 bytes, wide", 64 << 10, { .pieces = true, .page_size = 256, .wide = true } },
	{ "moving, pages of 64 KiB", 4 << 20, { .pieces = true, .page_size = 65536 } },
	{ "non-moving", 1 << 20, { .engine = CF_NONMOVING } },
	{ "non-moving, wide", 1 << 20, { .engine = CF_NONMOVING, .wide = true } },
	{ "non-moving, K = 3", 1 << 20, { .engine = CF_NONMOVING, .max_not_full = 3 } },
	{ "non-moving, deferred", 1 << 20, { .engine = CF_NONMOVING, .deferred = true } },
	{ "non-moving, block-frames of 16 bytes", 1 << 20,
	  { .engine = CF_NONMOVING, .block_size = 16 } },
	{ "non-moving, block-frames of a page", 1 << 20,
	  { .engine = CF_NONMOVING, .block_size = 16384 } },
	{ "non-moving, 64 KiB in pages of 1 KiB", 64 << 10,
	  { .engine = CF_NONMOVING, .page_size = 1024, .block_size = 32 } },
	{ "moving, in one piece", 1 << 20, { 0 } },
#if __GCC_ATOMIC_INT_LOCK_FREE == 2
	{ "moving, remote frees", 1 << 20, { .pieces = true, .remote_frees = 100 } },
	{ "non-moving, remote frees", 1 << 20,
	  { .engine = CF_NONMOVING, .block_size = 32, .remote_frees = 1 } },
#endif
};

#define SETUPS (sizeof(setups) / sizeof(setups[0]))

static uint64_t seed = 1;

static inline uint64_t rnd(void)
{
	return xorshift(&seed);
}

/* Less than a limit of at most 32 bits. */
static inline size_t below(size_t limit)
{
	return (size_t)((rnd() >> 32) * limit >> 32);
}

#endif /* COMMON_H */
