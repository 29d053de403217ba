/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the experiments share. */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "allocators.h"

#define MEMORY (7u << 20) /* the paper's */

extern const struct allocator *a; /* the one that is measured */

struct cost {
	uint64_t instructions; /* of the operation, less those of calling it */
	uint64_t copied; /* bytes */
};

/* Start with empty memory, if the allocator is bounded, and with the same random numbers. */
void begin(void);

/* One operation, single-stepped. */
uint64_t counted_alloc(const struct allocator *which, size_t size, struct cost *cost);
void counted_release(const struct allocator *which, uint64_t object, struct cost *cost);

uint64_t rnd(void);

/* Print what all experiments' JSON begins with. */
void print_head(const char *experiment);

/* The experiment of worst.c. */
void worst(void);

#endif
