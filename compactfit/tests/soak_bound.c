/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Nothing is refused below cf_bound(), in KTAP. Usage: soak_bound [OPERATIONS [SEED [HEAP]]]
 *
 * Runs that many operations on each of the heaps, or on the one of that number (from 1), with no more
 * checks than fit between them: an allocation fails only if cf_bound() is 0, as many succeed in a row as
 * it said, and an object that is freed holds what was written to it. In turns, operations are random, or
 * make what costs a heap most pages: one object left in each page, pages that pins keep from compaction, as
 * many not-full pages in each size-class as there may be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

struct object {
	cf_handle handle;
	uint32_t pins;
};

static const struct setup *setup;
static struct cf_heap *heap;
static struct object *objects;
static size_t nr, room;
static unsigned long spent, operations = 10 * CF_TEST_OPERATIONS, refused, filled;
static bool failed;

static void fail(const char *what)
{
	if (!failed)
		printf("# after %lu operations: %s\n", spent, what);
	failed = true;
}

static bool over(void)
{
	return failed || spent >= operations;
}

static uint32_t mark_of(cf_handle handle)
{
	return handle.slot * 2654435761u ^ handle.stamp;
}

/* All operations begin here. */

static bool take(size_t size)
{
	struct object *object = &objects[nr];
	uint32_t mark;
	int status;

	if (nr == room)
		return false;
	if (++spent % 64)
		status = cf_malloc(heap, size, &object->handle);
	else
		status = cf_calloc(heap, 1, size, &object->handle);
	if (status) {
		refused++;
		if (status != CF_ENOMEM || cf_bound(heap, size))
			fail("refused below cf_bound()");
		return false;
	}
	/* blocks have 16 bytes at least */
	mark = mark_of(object->handle);
	memcpy(cf_at(heap, object->handle, 0, NULL), &mark, sizeof(mark));
	object->pins = 0;
	nr++;
	return true;
}

static void unpin(struct object *object)
{
	spent++;
	if (!object->pins)
		return;
	object->pins--;
	if (cf_unpin(heap, object->handle))
		fail("a pinned object is unpinned");
}

static void pin(struct object *object)
{
	spent++;
	if (object->pins == CF_MAX_PINS)
		return;
	object->pins++;
	if (cf_pin(heap, object->handle))
		fail("an object is pinned");
}

/* Free an object; the last one takes its number. */
static void give(size_t i)
{
	struct object *object = &objects[i];
	const void *at;
	uint32_t mark;

	while (object->pins)
		unpin(object);
	spent++;
	at = cf_at(heap, object->handle, 0, NULL);
	if (at)
		memcpy(&mark, at, sizeof(mark));
	if (!at || mark != mark_of(object->handle))
		fail("an object holds what was written to it");
	if (cf_free(heap, object->handle))
		fail("a live object is freed");
	*object = objects[--nr];
}

static void change(struct object *object, size_t size)
{
	int status = cf_realloc(heap, object->handle, size);

	spent++;
	if (status != CF_OK && status != (object->pins ? CF_EPINNED : CF_ENOMEM))
		fail("an object is resized");
}

/* ------ sizes ------------------------------------------------------------------------------------ */

/* Small ones are as likely as large ones. */
static size_t any_size(void)
{
	size_t most = cf_max_size(heap), size = 1 + below(most);

	return 1 + (size >> below(16)) % most;
}

static unsigned int any_class(void)
{
	return (unsigned int)below(cf_class_count(heap));
}

static size_t some_size(void)
{
	return below(2) ? any_size() : cf_class_size(heap, any_class());
}

/* Objects of a size in a page. */
static size_t per_page(size_t size)
{
	int class = cf_class_of(heap, size);
	unsigned int n = class < 0 ? 1 : cf_class_per_page(heap, (unsigned int)class);

	return n ? n : 1;
}

/* ------ phases ----------------------------------------------------------------------------------- */

/* As many as the bound says, objects that were there being freed in between or not. */
static void fill_to_bound(size_t size)
{
	size_t bound = cf_bound(heap, size), before = nr, said = bound;
	bool frees = !below(4);

	for (; bound && nr < room && !over(); bound--) {
		if (!take(size))
			fail("as many are allocated as cf_bound() said");
		if (frees && before && !below(4))
			give(below(before--));
	}
	filled += said && !bound;
}

static void fill(size_t size)
{
	fill_to_bound(size);
	while (!over() && take(size))
		;
}

static void churn(void)
{
	size_t sizes[4], steps = 1000 + below(1u << below(18)), mallocs = 350 + below(300), i;

	for (i = 0; i < 4; i++)
		sizes[i] = some_size();
	for (i = below(3); steps-- && !over();) {
		size_t kind = below(1000);

		if (!nr || kind < mallocs)
			take(!i ? some_size() : 1 + below(sizes[below(4)]));
		else if (kind < 960)
			give(below(nr));
		else if (kind < 990)
			change(&objects[below(nr)], some_size());
		else if (kind < 995)
			pin(&objects[below(nr)]);
		else
			unpin(&objects[below(nr)]);
	}
}

/* Of pages that are full, leave one object in so many; pin it before, or not. */
static void comb(void)
{
	size_t size = some_size(), from = nr, n = per_page(size), keep, i;
	bool pins = !below(3);

	fill(size);
	if (!below(4))
		n = 2 + below(2 * n);
	keep = below(n);
	if (pins)
		for (i = from + keep; i < nr && !over(); i += n)
			pin(&objects[i]);
	/* downwards: what takes a freed one's number is one that is kept */
	for (i = nr; i-- > from && !over();)
		if ((i - from) % n != keep)
			give(i);
	fill_to_bound(some_size());
	if (pins)
		for (i = from; i < nr && !over(); i++)
			while (objects[i].pins && !over())
				unpin(&objects[i]);
	fill_to_bound(some_size());
}

/* In each size-class, as many pages of one object as may be not full. */
static void spread(void)
{
	unsigned int class, first = any_class(), i;
	size_t pages, n, keep, size, k = setup->config.max_not_full;

	for (i = 0; i < cf_class_count(heap) && !over(); i++) {
		class = (first + i) % cf_class_count(heap);
		size = cf_class_size(heap, class);
		n = per_page(size);
		for (pages = 1 + (k ? below(k < 8 ? k : 8) : 0); pages && !over(); pages--) {
			size_t from = nr, taken;

			for (taken = 0; taken < n && take(size); taken++)
				;
			keep = from + below(n);
			while (nr > from + 1)
				give(nr - 1 == keep ? nr - 2 : nr - 1);
		}
	}
	fill_to_bound(some_size());
}

static void pins(void)
{
	size_t steps = 1 + below(64), from = nr ? below(nr) : 0, i;

	for (i = from; i < nr && i - from < steps && !over(); i++)
		pin(&objects[i]);
	fill_to_bound(some_size());
	for (i = from; i < nr && i - from < steps && !over(); i++)
		unpin(&objects[i]);
}

static void resize(void)
{
	size_t steps = below(1000), size = some_size();

	while (steps-- && nr && !over())
		change(&objects[below(nr)], below(2) ? size : some_size());
	fill_to_bound(size);
}

/* Free from the newest, the oldest or anywhere. */
static void drain(void)
{
	size_t left = nr ? below(nr) >> below(8) : 0, order = below(3);

	while (nr > left && !over())
		give(order == 0 ? nr - 1 : order == 1 ? left % nr : below(nr));
	fill_to_bound(some_size());
}

static void compact(void)
{
	spent++;
	cf_compact(heap, below(2) ? SIZE_MAX : below(1 << 16));
	fill_to_bound(some_size());
}

static void (*const phases[])(void) = { churn, churn, comb, spread, pins, resize, drain, drain, compact };

#define PHASES (sizeof(phases) / sizeof(phases[0]))

static void run(void)
{
	unsigned int round = 0;
	void *buffer = malloc(setup->size);
	const char *wrong;

	spent = refused = filled = nr = 0;
	failed = false;
	room = setup->size / 16;
	objects = malloc(room * sizeof(*objects));
	heap = cf_init(buffer, setup->size, &setup->config);
	if (!objects || !heap)
		fail("there is a heap");
	while (!over()) {
		phases[below(PHASES)]();
		if (++round % 64 == 0 && (wrong = cf_verify(heap)))
			fail(wrong);
	}
	if (!failed && (wrong = cf_verify(heap)))
		fail(wrong);
	/* operations that could have filled the heap a few times have put the bound to the test */
	if (operations / 8 > room && (!refused || !filled))
		fail("some allocations are refused, and some sizes filled up");
	printf("# %lu operations, filled up to the bound %lu times, %lu refused\n", spent, filled, refused);
	free(objects);
	free(buffer);
}

int main(int argc, char **argv)
{
	unsigned long only = 0; /* heap of this number */
	bool any_failed = false;
	size_t i;

	if (argc > 1)
		operations = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	if (argc > 3)
		only = strtoul(argv[3], NULL, 0);
	if (only > SETUPS) {
		fprintf(stderr, "soak_bound: there are %u heaps\n", (unsigned int)SETUPS);
		return 2;
	}
	printf("TAP version 14\n1..%u\n", only ? 1 : (unsigned int)SETUPS);
	for (i = only ? only - 1 : 0; i < (only ? only : SETUPS); i++) {
		const char *comment = "";

		setup = &setups[i];
		/* it, and what is known of its objects */
		if (2 * setup->size > CF_TEST_MEMORY)
			comment = " # SKIP there is too little memory";
		else
			run();
		any_failed |= failed;
		printf("%s %u nothing is refused below cf_bound(): %s%s\n", failed ? "not ok" : "ok",
		       only ? 1 : (unsigned int)i + 1, setup->name, comment);
		fflush(stdout);
	}
	return any_failed;
}
