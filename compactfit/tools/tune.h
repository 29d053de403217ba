/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What a trace says of the K that its program needs, by size-class, and of the memory. */
#ifndef TUNE_H
#define TUNE_H

#include "compactfit.h"
#include "trace.h"

struct tune_class {
	size_t size; /* bytes of an object */
	unsigned int per_page;
	uint64_t allocations;
	uint64_t live, peak; /* objects */
	uint64_t count; /* Proposition 1's: frees that no allocation followed */
	uint64_t max_count;
	uint16_t k; /* chosen */
	uint64_t may_move; /* frees of the trace that Proposition 1 does not except with this K */
	uint64_t pages; /* that the peak takes, whatever happened before */
};

struct tune {
	struct tune_class classes[CF_MAX_CLASSES];
	unsigned int nr_classes;
	bool wide; /* references of 8 bytes */
	size_t max_size; /* of an object */
	uint64_t slots, peak; /* at once: of objects, two of those that have a spine and a tail */
	uint64_t large_pages; /* of objects larger than a page, at once */
	uint64_t refused; /* allocations above max_size or aligned to more than a page, left out of all else */
	uint64_t refused_size; /* of the largest of them */
	uint64_t pages; /* for the peaks of all size-classes together, and for handles */
	uint64_t memory; /* bytes of a buffer with so many pages */
	uint64_t least_memory; /* the same if K were 1 */
};

/**
 * tune_trace() - choose K for each size-class of a moving heap
 * @trace: what the program does
 * @memory: bytes that the heap may have; 0: as many as are needed
 * @tune: filled
 *
 * Without a limit of memory K is 1 more than Proposition 1's counter ever was, or CF_UNLIMITED: then
 * the trace moves nothing. With one, and if that is too much, K is at most the same number for all
 * size-classes, the largest that fits. In a heap of tune->memory bytes no allocation fails as long as no
 * size-class has more objects than its peak, and those larger than a page no more pages, in whatever order
 * they come and go: all the peaks may be reached at once.
 *
 * O(calls). Return: NULL, or a sentence that says why not.
 */
const char *tune_trace(const struct trace *trace, uint64_t memory, struct tune *tune);

#endif
