/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "tune.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MEMORY_MAX ((uint64_t)8 << 30) /* of a heap */
#define MEMORY_NARROW ((uint64_t)8 << 20) /* above it references are wide */
#define SLOT_BYTES 4u /* twice as many in a wide heap */
#define UNALIGNED (CF_PAGE_SIZE - 1) /* bytes before its first page that a heap may lose */
#define NO_CLASS (-1)
#ifndef CF_WITH_LARGE /* what the library was built with */
#define CF_WITH_LARGE 1
#endif
/* Bytes of a spine, and of a page's number in it: docs/compactfit.md, "What memory is lost". */
#define SPINE_BYTES 20u
#define SPINE_PAGE_BYTES 4u

/* What an object consists of: one block, or a tail and a spine and pages. */
struct parts {
	int class[2]; /* NO_CLASS: none */
	uint64_t pages;
};

/* A heap that nothing is allocated in: pages are never written, and cost no memory. */
static struct cf_heap *heap_of(void *buffer, uint64_t size, bool wide)
{
	struct cf_config config = { .page_size = CF_PAGE_SIZE, .wide = wide, .pieces = CF_WITH_LARGE };

	return cf_init(buffer, size, &config);
}

static void *reserve(uint64_t size)
{
	void *buffer = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return buffer == MAP_FAILED ? NULL : buffer;
}

/* What the size-classes are. */
static const char *ask(struct tune *tune)
{
	uint64_t size = MEMORY_NARROW / 2;
	void *buffer = reserve(size);
	struct cf_heap *heap;
	unsigned int i;

	if (!buffer)
		return "there is no memory to make a heap in";
	heap = heap_of(buffer, size, tune->wide);
	tune->nr_classes = cf_class_count(heap);
	tune->max_size = cf_max_size(heap);
	for (i = 0; i < tune->nr_classes; i++)
		tune->classes[i] = (struct tune_class){
			.size = cf_class_size(heap, i),
			.per_page = cf_class_per_page(heap, i),
		};
	munmap(buffer, size);
	return NULL;
}

static int class_of(const struct tune *tune, uint64_t size)
{
	unsigned int low = 0, high = tune->nr_classes;

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (tune->classes[middle].size < size)
			low = middle + 1;
		else
			high = middle;
	}
	return low < tune->nr_classes ? (int)low : NO_CLASS;
}

/* That of cf_aligned_alloc(): a page, the last size-class, is a multiple of each @align. */
static int aligned_class_of(const struct tune *tune, uint64_t size, uint64_t align)
{
	int class = class_of(tune, size);

	while (class != NO_CLASS && tune->classes[class].size % align)
		class++;
	return class;
}

static struct parts parts_of(const struct tune *tune, uint64_t size, unsigned int shift)
{
	uint64_t page = tune->classes[tune->nr_classes - 1].size, align = (uint64_t)1 << shift;
	struct parts parts = { { NO_CLASS, NO_CLASS }, 0 };

	if (!size)
		size = 1; /* what malloc(0) is elsewhere */
	if (align > page)
		return parts;
	if (size <= page) {
		parts.class[0] = aligned_class_of(tune, size, align);
	} else if (page && size <= tune->max_size) {
		parts.pages = size / page;
		if (size % page)
			parts.class[0] = aligned_class_of(tune, size % page, align);
		parts.class[1] = class_of(tune, SPINE_BYTES + SPINE_PAGE_BYTES * parts.pages);
	}
	return parts;
}

static bool is_none(const struct parts *parts)
{
	return parts->class[0] == NO_CLASS && parts->class[1] == NO_CLASS;
}

/* Blocks and their slots come, and then go. */
static void add_blocks(struct tune *tune, const struct parts *parts)
{
	size_t i;

	for (i = 0; i < 2; i++)
		if (parts->class[i] != NO_CLASS) {
			struct tune_class *c = &tune->classes[parts->class[i]];

			c->allocations++;
			c->count -= c->count > 0;
			if (++c->live > c->peak)
				c->peak = c->live;
			tune->slots++;
		}
	if (tune->slots > tune->peak)
		tune->peak = tune->slots;
}

static void drop_blocks(struct tune *tune, const struct parts *parts)
{
	size_t i;

	for (i = 0; i < 2; i++)
		if (parts->class[i] != NO_CLASS) {
			struct tune_class *c = &tune->classes[parts->class[i]];

			c->may_move += c->k && c->k != CF_UNLIMITED && c->per_page > 1 &&
				       c->count >= c->k - 1u;
			if (++c->count > c->max_count)
				c->max_count = c->count;
			c->live--;
			tune->slots--;
		}
}

/* Go through the trace, with or without choices of K. */
static const char *walk(const struct trace *trace, struct tune *tune)
{
	struct parts *live = malloc((trace->slots + 1) * sizeof(*live)); /* of the live objects */
	uint64_t pages = 0;
	size_t i;

	if (!live)
		return "there is not enough memory for this trace";
	for (i = 0; i < tune->nr_classes; i++) {
		tune->classes[i].live = tune->classes[i].count = tune->classes[i].may_move = 0;
		tune->classes[i].allocations = 0;
	}
	tune->slots = tune->refused = 0;
	for (i = 0; i < trace->nr_calls; i++) {
		const struct trace_call *call = &trace->calls[i];
		struct parts before = parts_of(tune, UINT64_MAX, 0), after = before;
		bool in_place;

		if (call->operation == TRACE_FREE || call->operation == TRACE_RESIZE)
			before = live[call->object];
		if (call->operation != TRACE_FREE) {
			after = parts_of(tune, call->size, call->shift);
			live[call->object] = after;
			if (is_none(&after)) {
				tune->refused++;
				if (call->size > tune->refused_size)
					tune->refused_size = call->size;
			}
		}
		/* a resize within the size-classes does nothing */
		if (!memcmp(&before, &after, sizeof(before)))
			continue;
		/* one between blocks of pages keeps its slot */
		in_place = !before.pages && !after.pages && !is_none(&before) && !is_none(&after);
		tune->slots -= in_place;
		/* else it allocates, then frees; pages that both have stay */
		add_blocks(tune, &after);
		if (after.pages > before.pages)
			pages += after.pages - before.pages;
		if (pages > tune->large_pages)
			tune->large_pages = pages;
		if (before.pages > after.pages)
			pages -= before.pages - after.pages;
		tune->slots += in_place;
		drop_blocks(tune, &before);
	}
	free(live);
	return NULL;
}

/* docs/compactfit.md: pages that m objects take in the worst case. */
static uint64_t worst_pages(const struct tune_class *class)
{
	uint64_t m = class->peak, k = class->k, n = class->per_page, open = m < k ? m : k;

	if (k == CF_UNLIMITED)
		open = m;
	return n > 1 ? open + (m - open) / n : m;
}

/* K of every size-class: what Proposition 1 asks for, but no more than @limit. */
static void choose(struct tune *tune, uint64_t limit)
{
	uint64_t in_page = CF_PAGE_SIZE / (tune->wide ? 2 * SLOT_BYTES : SLOT_BYTES), slots = 0;
	unsigned int i;

	tune->pages = tune->large_pages;
	for (i = 0; i < tune->nr_classes; i++) {
		struct tune_class *class = &tune->classes[i];
		/* a page of one object is full or empty */
		uint64_t k = class->per_page > 1 ? class->max_count + 1 : 1;

		k = k < limit ? k : limit;
		class->k = (uint16_t)(k < CF_UNLIMITED ? k : CF_UNLIMITED);
		class->pages = worst_pages(class);
		tune->pages += class->pages;
		/* the peaks may come at the same time another time */
		slots += class->peak;
	}
	tune->pages += (slots + in_page - 1) / in_page;
}

/*
 * The least memory in which a heap has tune->pages, wherever it begins; more than MEMORY_MAX if it is
 * more than that.
 */
static const char *measure(struct tune *tune)
{
	uint64_t low = tune->pages * CF_PAGE_SIZE, high = low + (low >> 6) + (1u << 20);
	uint64_t reserved = high + UNALIGNED;
	struct cf_stats stats;
	struct cf_heap *heap;
	char *memory, *buffer;

	if (reserved > MEMORY_MAX) {
		tune->memory = reserved;
		return NULL;
	}
	memory = reserve(reserved);
	if (!memory)
		return "there is no memory to make a heap in";
	buffer = memory + (-(uintptr_t)memory & UNALIGNED);
	while (low + 64 < high) {
		uint64_t middle = (low + high) / 2;

		heap = heap_of(buffer, middle, tune->wide);
		if (heap)
			cf_get_stats(heap, &stats);
		if (heap && stats.pages >= tune->pages)
			high = middle;
		else
			low = middle;
	}
	munmap(memory, reserved);
	tune->memory = high + UNALIGNED;
	return NULL;
}

/* Choose the largest K that fits; @memory is not 0. */
static const char *fit(struct tune *tune, uint64_t memory)
{
	static char too_little[80];
	uint64_t low = 1, high = CF_UNLIMITED;
	const char *wrong;

	choose(tune, low);
	wrong = measure(tune);
	if (wrong)
		return wrong;
	tune->least_memory = tune->memory;
	if (tune->memory > MEMORY_MAX)
		return "it needs more than the 8 GiB that a heap can have";
	if (tune->memory > memory) {
		snprintf(too_little, sizeof(too_little), "even K = 1 needs %" PRIu64 " bytes",
			 tune->memory);
		return too_little;
	}
	choose(tune, high);
	wrong = measure(tune);
	if (wrong || tune->memory <= memory)
		return wrong;
	/* low fits, high does not */
	while (low + 1 < high) {
		uint64_t middle = (low + high) / 2;

		choose(tune, middle);
		wrong = measure(tune);
		if (wrong)
			return wrong;
		if (tune->memory <= memory)
			low = middle;
		else
			high = middle;
	}
	choose(tune, low);
	return measure(tune);
}

const char *tune_trace(const struct trace *trace, uint64_t memory, struct tune *tune)
{
	const char *wrong;

	if (memory > MEMORY_MAX)
		return "a heap can have 8 GiB at most";
	if (!memory)
		memory = MEMORY_MAX;
	memset(tune, 0, sizeof(*tune));
	for (;;) { /* narrow first: which it is decides how many objects a page has */
		wrong = ask(tune);
		if (!wrong)
			wrong = walk(trace, tune);
		if (!wrong && !tune->peak)
			wrong = "it has no allocation that a heap could take";
		if (!wrong)
			wrong = fit(tune, memory);
		if (wrong || tune->wide || tune->memory <= MEMORY_NARROW)
			break;
		memset(tune, 0, sizeof(*tune));
		tune->wide = true;
	}
	return wrong ? wrong : walk(trace, tune);
}
