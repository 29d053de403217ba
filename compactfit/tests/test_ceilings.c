/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Patterns that are made to come near the ceilings of tools/ceilings.h, for each size-class: what is dear
 * about each is known. gcc 12, -O2, x86-64, by single-stepping; copying is not counted. In KTAP.
 * "all": with all size-classes, which takes minutes where each trap ends in a hypervisor.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bench/count.h"
#include "../tools/ceilings.h"
#include "compactfit.h"

#define ANY UINT32_MAX
#define REMOTE 2u /* remote frees that an operation does besides */
#define DEFERRED_PAGES 3u /* not-full pages that a deferred heap is given */

static const char *const names[OPERATIONS] = CEILINGS_NAMES;

static struct cf_heap *heap;
static void *memory;
static bool pins; /* something is pinned, or was */
static int status; /* of the last free that was counted */
static size_t beside; /* of the objects that are freed besides, the largest size; 0: none */
static uint64_t call[2]; /* instructions of a call */
static struct {
	uint64_t cost;
	size_t size; /* of the object */
	const char *pattern;
} worst[OPERATIONS];

static void note(enum operation operation, const char *pattern, uint64_t cost, size_t size)
{
	if (cost > worst[operation].cost) {
		worst[operation].cost = cost;
		worst[operation].size = size;
		worst[operation].pattern = pattern;
	}
}

__attribute__((noinline)) static int no_malloc(struct cf_heap *of, size_t size, cf_handle *handle)
{
	__asm__ volatile("" ::"r"(of), "r"(size), "r"(handle) : "memory");
	return 0;
}

__attribute__((noinline)) static int no_free(struct cf_heap *of, cf_handle handle)
{
	__asm__ volatile("" ::"r"(of), "r"(handle.slot) : "memory");
	return 0;
}

__attribute__((noinline)) static uint64_t count_malloc(int (*function)(struct cf_heap *, size_t,
									cf_handle *),
						       size_t size, cf_handle *handle)
{
	count_begin();
	function(heap, size, handle);
	count_end();
	return count_taken();
}

__attribute__((noinline)) static uint64_t count_free(int (*function)(struct cf_heap *, cf_handle),
						     cf_handle handle)
{
	int result;

	count_begin();
	result = function(heap, handle);
	count_end();
	status = result;
	return count_taken();
}

/* What @cost may be, beyond the constant, is for the blocks of the largest object of the call. */
static uint64_t without_blocks(const struct engine *engine, enum operation operation, uint64_t cost,
			       size_t size)
{
	uint64_t blocks = (size > beside ? size : beside) / CF_BLOCK_SIZE;

	blocks *= engine->ceiling[operation].block;
	return cost > blocks ? cost - blocks : 0;
}

/* cf_malloc(), counted; it may be refused. */
static cf_handle allocate(const struct engine *engine, const char *pattern, size_t size)
{
	enum operation operation = pins ? PINNED_MALLOC : MALLOC;
	cf_handle handle;
	uint64_t cost = count_malloc(cf_malloc, size, &handle) - call[0];

	note(operation, pattern, without_blocks(engine, operation, cost, size), size);
	return handle;
}

/* cf_free(), counted; it may be refused. */
static void release(const struct engine *engine, const char *pattern, size_t size, cf_handle handle)
{
	enum operation operation = PINNED_FREE;
	struct cf_stats before, after;
	uint64_t cost;

	cf_get_stats(heap, &before);
	cost = count_free(cf_free, handle) - call[1];
	cf_get_stats(heap, &after);
	if (status)
		operation = REFUSED_FREE;
	else if (!pins)
		operation = before.moves == after.moves ? FREE : FREE_MOVING;
	note(operation, pattern, without_blocks(engine, operation, cost, size), size);
}

/* cf_malloc(), not counted. */
static cf_handle take(size_t size)
{
	cf_handle handle;

	cf_malloc(heap, size, &handle);
	return handle;
}

static cf_handle take_pinned(size_t size)
{
	cf_handle handle = take(size);

	cf_pin(heap, handle);
	pins = true;
	return handle;
}

static void begin(const struct engine *engine)
{
	heap = cf_init(memory, CEILINGS_MEMORY, &engine->config);
	pins = false;
	beside = 0;
}

/* The K of the heap; of one that is deferred, which has none, one that a page may be behind others with. */
static unsigned int limit_of(const struct engine *engine)
{
	if (engine->config.deferred)
		return DEFERRED_PAGES;
	return engine->config.max_not_full ? engine->config.max_not_full : 1;
}

/* ------ patterns: each for one size-class, in an empty heap --------------------------------------- */

/* Pages, two more than may be not full: each kind of allocation, each kind of free. */
static void usual(const struct engine *engine, unsigned int index)
{
	unsigned int k = limit_of(engine);
	unsigned int n = cf_class_per_page(heap, index), nr = (k + 2) * n + 1, i;
	size_t size = cf_class_size(heap, index);
	cf_handle *handles = calloc(nr, sizeof(*handles));

	for (i = 0; i < nr; i++) {
		unsigned int at = i % n;

		/* at the ends of pages and of rows of their bitmaps something happens */
		if (at < 2 || at + 2 >= n || at % 32 == 31 || (at % 32 == 0 && at < 128))
			handles[i] = allocate(engine, "pages are filled", size);
		else
			handles[i] = take(size);
	}
	/* of full pages, as many as may become not full, and more */
	for (i = 0; i < k + 2; i++)
		release(engine, "full pages", size, handles[i * n]);
	if (n > 1)
		release(engine, "full pages", size, handles[2 * n - 1]);
	/* until they are half full, until they are empty: the last of the not-full ones, the first */
	for (i = 1; i < 2 * n; i++) {
		cf_handle handle = handles[i < n ? (k - 1) * n + i : i - n];

		if (i % n < 4 || i % n + 4 > n || i % n - n / 2 < 2)
			release(engine, "pages are emptied", size, handle);
		else
			cf_free(heap, handle);
	}
	free(handles);
}

/*
 * Use up the slots of the first page of slots, of which @used are used, by objects of another size-class
 * than @index; and all pages but @free_pages, by objects of a page each, if @free_pages is not ANY.
 */
static void use_up_slots(const struct engine *engine, unsigned int index, uint32_t used,
			 uint32_t free_pages)
{
	unsigned int last = cf_class_count(heap) - 1, other = index == 0;
	uint32_t slots = (uint32_t)cf_max_contiguous(heap) / (engine->config.wide ? 8 : 4), n = cf_class_per_page(heap, other);
	struct cf_stats stats;

	if (free_pages != ANY) {
		cf_get_stats(heap, &stats);
		while ((slots - used + n - 1) / n + free_pages < stats.free_pages) {
			take(cf_class_size(heap, last));
			cf_get_stats(heap, &stats);
			used++;
		}
	}
	for (; used < slots; used++)
		take(cf_class_size(heap, other));
}

/* The malloc that opens a page has to get a page of slots too, and may find none. */
static void no_slots(const struct engine *engine, unsigned int index)
{
	size_t size = cf_class_size(heap, index);

	if (engine->config.engine == CF_NONMOVING)
		return; /* its slots are its block-frames */
	use_up_slots(engine, index, 0, ANY);
	allocate(engine, "slots run out as a page is opened", size);
	begin(engine);
	use_up_slots(engine, index, 0, 1);
	allocate(engine, "refused: the last page is opened, none is left for slots", size);
}

/* The same, and the page that is opened has objects, @nr of them, all pinned. */
static void stuck(const struct engine *engine, unsigned int index, unsigned int nr)
{
	static const struct {
		const char *name;
		uint32_t free_pages;
	} patterns[] = {
		{ "slots run out as a page of pinned objects is opened", ANY },
		{ "refused: a page of pinned objects is opened, none is left for slots", 0 },
	};
	size_t size = cf_class_size(heap, index), i;
	unsigned int object;

	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		begin(engine);
		for (object = 0; object < nr; object++)
			take_pinned(size);
		if (engine->config.engine == CF_MOVING)
			use_up_slots(engine, index, nr, patterns[i].free_pages);
		allocate(engine, patterns[i].name, size);
	}
}

/*
 * Objects of a page that is not full, but one: all in rows of the bitmap before that one's, so that the
 * walk for an object that can be moved goes through all of them.
 */
static unsigned int nr_before_last_row(unsigned int n)
{
	return n > 33 ? (n - 2) / 32 * 32 : n - 2;
}

/*
 * The object that fills a full page's gap is the last one of a page where all before it are pinned. Then
 * that page has only pinned objects.
 */
static void behind_pins(const struct engine *engine, unsigned int index)
{
	unsigned int k = limit_of(engine), n = cf_class_per_page(heap, index), i;
	size_t size = cf_class_size(heap, index);
	cf_handle *handles = calloc((size_t)k * n, sizeof(*handles));
	cf_handle last;

	for (i = 0; i < k * n; i++)
		handles[i] = take(size);
	for (i = 0; i < nr_before_last_row(n); i++)
		take_pinned(size);
	last = take(size);
	pins = true;
	for (i = 0; i < k; i++)
		release(engine, "all before the object that moves are pinned", size, handles[i * n]);
	/* the last one that is not pinned is freed: of a full page, of one that is not full */
	for (i = 1; i + 1 < n; i++)
		cf_pin(heap, handles[i]);
	release(engine, "all others of the page are pinned", size, handles[n - 1]);
	release(engine, "all others of the page are pinned", size, last);
	free(handles);
}

/* Frees that are refused: twice, its slot used again in between; a stamp that is wrong; a pinned object. */
static void refused(const struct engine *engine, unsigned int index)
{
	size_t size = cf_class_size(heap, index);
	cf_handle first = take(size), second = take(size), third;

	cf_free(heap, first);
	release(engine, "freed twice, the slot is free", size, first);
	third = take(size);
	release(engine, "freed twice, the slot is another object's", size, first);
	third.stamp ^= 1u << 31;
	release(engine, "a handle with a wrong stamp", size, third);
	cf_pin(heap, second);
	pins = true;
	release(engine, "a pinned object", size, second);
	second.stamp ^= 1;
	release(engine, "a handle with a stamp that there is not", size, second);
}

/* ------ patterns of remote frees: an operation does two of them first ----------------------------- */

enum gap { LEFT, FILLED, FILLED_BEHIND_PINS, GAPS };
enum remote_last { LAST_MALLOC, LAST_FREE, LAST_REFUSED, LASTS };

/*
 * A full page of a size-class, and what becomes of the gap that a free of its first object makes, which is
 * returned: it is left, or filled from a page that is not full, or from one whose other objects are pinned.
 */
static cf_handle full_page(unsigned int index, enum gap gap)
{
	unsigned int n = cf_class_per_page(heap, index), i;
	size_t size = cf_class_size(heap, index);
	cf_handle first = take(size);

	for (i = 1; i < n; i++)
		take(size);
	for (i = 0; gap == FILLED_BEHIND_PINS && i < nr_before_last_row(n); i++)
		take_pinned(size);
	if (gap != LEFT)
		take(size);
	return first;
}

/* Remote frees of two other size-classes, then an operation of this one. */
static void remote(const struct engine *engine, unsigned int index, enum gap gap,
		   enum remote_last last)
{
	static const char *const patterns[GAPS] = { "two remote frees, gaps are left",
						    "two remote frees, gaps are filled",
						    "two remote frees, gaps are filled behind pins" };
	unsigned int of[REMOTE] = { index ? 0 : 2, index > 1 ? 1 : 3 }, i;
	size_t size = cf_class_size(heap, index);
	cf_handle handles[REMOTE], own = { 0, 0 };

	for (i = 0; i < REMOTE; i++) {
		handles[i] = full_page(of[i], gap);
		if (gap == FILLED_BEHIND_PINS)
			cf_pin(heap, handles[i]);
	}
	if (last == LAST_FREE) {
		own = full_page(index, gap);
	} else if (last == LAST_REFUSED) {
		own = take(size);
		cf_free(heap, own);
		take(size);
	} else if (gap == FILLED_BEHIND_PINS) {
		take_pinned(size);
	}
	/* at last, as each call does those that there are */
	for (i = 0; i < REMOTE; i++)
		cf_free_remote(heap, handles[i]);
	if (engine->config.engine == CF_NONMOVING)
		beside = cf_class_size(heap, of[0] > of[1] ? of[0] : of[1]);
	if (last != LAST_MALLOC)
		release(engine, patterns[gap], size, own);
	else
		allocate(engine, patterns[gap], size);
}

/* All patterns, with objects of one size-class. */
static void measure(const struct engine *engine, unsigned int index)
{
	static const unsigned int pinned[] = { 1, 31, 32, 33 };
	unsigned int n, i;

	begin(engine);
	n = cf_class_per_page(heap, index);
	usual(engine, index);
	begin(engine);
	no_slots(engine, index);
	for (i = 0; i < sizeof(pinned) / sizeof(pinned[0]); i++)
		if (pinned[i] + 1 < n)
			stuck(engine, index, pinned[i]);
	if (n > 1) {
		stuck(engine, index, n - 1);
		begin(engine);
		behind_pins(engine, index);
	}
	begin(engine);
	refused(engine, index);
	for (i = 0; engine->config.remote_frees && n > 1 && i < LASTS * GAPS; i++) {
		begin(engine);
		remote(engine, index, i / LASTS, i % LASTS);
	}
}

/* A byte of an object: the counts that the paper gives for its own code (Section 5.1). */
static const unsigned int deref_ceiling[] = { [CF_MOVING] = 7, [CF_NONMOVING] = 11 };

typedef char (*deref_function)(struct cf_heap *of, cf_handle handle, size_t offset);

/* A plain pointer: one instruction. */
static char deref_plain(struct cf_heap *of, cf_handle handle, size_t offset)
{
	(void)handle;
	return ((char *)of)[offset];
}

static char deref_moving(struct cf_heap *of, cf_handle handle, size_t offset)
{
	return *(char *)cf_deref(of, handle, offset);
}

static char deref_nonmoving(struct cf_heap *of, cf_handle handle, size_t offset)
{
	return *(char *)cf_deref_nonmoving(of, handle, offset, CF_BLOCK_SIZE);
}

__attribute__((noinline)) static uint64_t count_deref(deref_function function, cf_handle handle)
{
	count_begin();
	function(heap, handle, 100);
	count_end();
	return count_taken();
}

static bool deref(enum cf_engine engine, size_t number)
{
	const struct cf_config config = { .engine = engine };
	cf_handle handle;
	uint64_t cost;
	bool holds;

	heap = cf_init(memory, CEILINGS_MEMORY, &config);
	cf_calloc(heap, 1, 200, &handle);
	cost = count_deref(engine == CF_MOVING ? deref_moving : deref_nonmoving, handle);
	cost += 1 - count_deref(deref_plain, handle);
	holds = cost && cost <= deref_ceiling[engine];
	printf("# dereference: %llu\n%sok %zu %s: dereference takes at most %u instructions\n",
	       (unsigned long long)cost, holds ? "" : "not ", number,
	       engine == CF_MOVING ? "moving" : "non-moving", deref_ceiling[engine]);
	return holds;
}

/* Each configuration, and what is published of it: for lab/compactfit/ceilings.py. */
static int list(void)
{
	unsigned int operation;
	size_t e;

	for (e = 0; e < sizeof(engines) / sizeof(engines[0]); e++) {
		const struct engine *engine = &engines[e];

		printf("%s\t%d\t%d\t%u\t%d\t%d", engine->name,
		       engine->config.engine == CF_NONMOVING, engine->config.wide, limit_of(engine),
		       !!engine->config.remote_frees, !!engine->config.lock);
		for (operation = 0; operation < OPERATIONS; operation++)
			printf("\t%u+%u", engine->ceiling[operation].constant,
			       engine->ceiling[operation].block);
		printf("\n");
	}
	return 0;
}

int main(int argc, char **argv)
{
	size_t nr = sizeof(engines) / sizeof(engines[0]), number = 0, wrong = 0, e;
	unsigned int index, operation;
	cf_handle handle = { 0, 0 };
	bool all = argc > 1 && !strcmp(argv[1], "all");

	if (argc > 1 && !strcmp(argv[1], "list"))
		return list();
	memory = aligned_alloc(CEILINGS_ALIGNMENT, CEILINGS_MEMORY);
	memset(memory, 0x5a, CEILINGS_MEMORY);
	count_setup();
	call[0] = count_malloc(no_malloc, 8, &handle);
	call[1] = count_free(no_free, handle);
	printf("TAP version 14\n1..%zu\n", nr * OPERATIONS + 2);
	for (e = 0; e < nr; e++) {
		const struct engine *engine = &engines[e];
		unsigned int every = !all ? 32 : engine->few ? 8 : 1;

		memset(worst, 0, sizeof(worst));
		begin(engine);
		for (index = 0; index < cf_class_count(heap); index++)
			if (index < 3 || !(index % every) ||
			    index + 2 >= cf_class_count(heap))
				measure(engine, index);
		for (operation = 0; operation < OPERATIONS; operation++) {
			unsigned int constant = engine->ceiling[operation].constant;
			unsigned int block = engine->ceiling[operation].block;
			bool holds = !worst[operation].cost == !constant &&
				     worst[operation].cost <= constant;

			printf("# %s, %s: %llu at %zu bytes (%s)\n", engine->name, names[operation],
			       (unsigned long long)worst[operation].cost, worst[operation].size,
			       worst[operation].pattern);
			printf("%sok %zu %s: no %s is found that takes more than %u instructions",
			       holds ? "" : "not ", ++number, engine->name, names[operation], constant);
			if (block)
				printf(" and %u a block", block);
			printf("\n");
			wrong += !holds;
		}
	}
	wrong += !deref(CF_MOVING, ++number);
	wrong += !deref(CF_NONMOVING, ++number);
	free(memory);
	return wrong != 0;
}
