/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What operations cost at most, in instructions, for each size-class: measured beside the ceilings of
 * tools/ceilings.h. gcc 12, -O2, x86-64, by single-stepping; copying is not counted. In KTAP.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bench/count.h"
#include "../tools/ceilings.h"
#include "compactfit.h"

#define MEMORY (7u << 20)
#define ALIGNMENT 65536u

static const char *const names[OPERATIONS] = { "malloc", "free that moves nothing",
					       "free that moves an object" };

static struct cf_heap *heap;
static uint64_t call[2]; /* instructions of a call */
static struct {
	uint64_t cost, blocks;
} worst[OPERATIONS];

static void note(enum operation operation, uint64_t cost, uint64_t blocks)
{
	if (cost > worst[operation].cost) {
		worst[operation].cost = cost;
		worst[operation].blocks = blocks;
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
	count_begin();
	function(heap, handle);
	count_end();
	return count_taken();
}

/* What @cost may be, beyond the constant, is for the blocks of the object. */
static uint64_t without_blocks(const struct engine *engine, enum operation operation, uint64_t cost,
			       size_t size)
{
	uint64_t blocks = engine->config.engine ? size / CF_BLOCK_SIZE : 0;

	blocks *= engine->ceiling[operation].block;
	return cost > blocks ? cost - blocks : 0;
}

static void release(const struct engine *engine, size_t size, cf_handle handle)
{
	struct cf_stats before, after;
	uint64_t cost;

	cf_get_stats(heap, &before);
	cost = count_free(cf_free, handle) - call[1];
	cf_get_stats(heap, &after);
	if (before.moves == after.moves)
		note(FREE, without_blocks(engine, FREE, cost, size), size);
	else
		note(FREE_MOVING, without_blocks(engine, FREE_MOVING, cost, size), size);
}

/* Pages of a size-class, two more than may be not full: each kind of allocation, each kind of free. */
static void measure(const struct engine *engine, unsigned int index)
{
	unsigned int k = engine->config.max_not_full ? engine->config.max_not_full : 1;
	unsigned int n = cf_class_per_page(heap, index), nr = (k + 2) * n + 1, i;
	size_t size = cf_class_size(heap, index);
	cf_handle *handles = calloc(nr, sizeof(*handles));
	uint64_t cost;

	for (i = 0; i < nr; i++) {
		unsigned int at = i % n;

		/* at the ends of pages and of rows of their bitmaps something happens */
		if (at < 2 || at + 2 >= n || at % 32 == 31 || (at % 32 == 0 && at < 128)) {
			cost = count_malloc(cf_malloc, size, &handles[i]) - call[0];
			note(MALLOC, without_blocks(engine, MALLOC, cost, size), size);
		} else {
			cf_malloc(heap, size, &handles[i]);
		}
	}
	/* of full pages, as many as may become not full, and more */
	for (i = 0; i < k + 2; i++)
		release(engine, size, handles[i * n]);
	if (n > 1)
		release(engine, size, handles[2 * n - 1]);
	/* until they are half full, until they are empty: the last of the not-full ones, the first */
	for (i = 1; i < 2 * n; i++) {
		cf_handle handle = handles[i < n ? (k - 1) * n + i : i - n];

		if (i % n < 4 || i % n + 4 > n || i % n - n / 2 < 2)
			release(engine, size, handle);
		else
			cf_free(heap, handle);
	}
	for (i = n; i < nr; i++)
		cf_free(heap, handles[i]);
	free(handles);
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

static bool deref(enum cf_engine engine, void *memory, size_t number)
{
	const struct cf_config config = { .engine = engine };
	cf_handle handle;
	uint64_t cost;
	bool holds;

	heap = cf_init(memory, MEMORY, &config);
	cf_calloc(heap, 1, 200, &handle);
	cost = count_deref(engine == CF_MOVING ? deref_moving : deref_nonmoving, handle);
	cost += 1 - count_deref(deref_plain, handle);
	holds = cost && cost <= deref_ceiling[engine];
	printf("# dereference: %llu\n%sok %zu %s: dereference takes at most %u instructions\n",
	       (unsigned long long)cost, holds ? "" : "not ", number,
	       engine == CF_MOVING ? "moving" : "non-moving", deref_ceiling[engine]);
	return holds;
}

int main(void)
{
	void *memory = aligned_alloc(ALIGNMENT, MEMORY);
	size_t nr = sizeof(engines) / sizeof(engines[0]), number = 0, wrong = 0, e;
	unsigned int index, operation;
	cf_handle handle = { 0, 0 };

	memset(memory, 0x5a, MEMORY);
	count_setup();
	call[0] = count_malloc(no_malloc, 8, &handle);
	call[1] = count_free(no_free, handle);
	printf("TAP version 14\n1..%zu\n", nr * OPERATIONS + 2);
	for (e = 0; e < nr; e++) {
		const struct engine *engine = &engines[e];

		memset(worst, 0, sizeof(worst));
		heap = cf_init(memory, MEMORY, &engine->config);
		for (index = 0; index < cf_class_count(heap); index++)
			measure(engine, index);
		for (operation = 0; operation < OPERATIONS; operation++) {
			unsigned int constant = engine->ceiling[operation].constant;
			unsigned int block = engine->ceiling[operation].block;
			bool holds = worst[operation].cost && worst[operation].cost <= constant;

			printf("# %s, %s: %llu at %llu bytes\n", engine->name, names[operation],
			       (unsigned long long)worst[operation].cost,
			       (unsigned long long)worst[operation].blocks);
			printf("%sok %zu %s: %s takes at most %u instructions", holds ? "" : "not ",
			       ++number, engine->name, names[operation], constant);
			if (block)
				printf(" and %u a block", block);
			printf("\n");
			wrong += !holds;
		}
	}
	wrong += !deref(CF_MOVING, memory, ++number);
	wrong += !deref(CF_NONMOVING, memory, ++number);
	free(memory);
	return wrong != 0;
}
