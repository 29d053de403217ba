/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Worst cases. Each pattern is what makes one of the allocators slow, and all of them run all patterns:
 * what an allocator's worst operation costs is the dearest that is found in any.
 *
 * Bounded allocators are asked too which request they refuse first while most of their memory is free.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

/* What a pattern found of malloc or of free. */
struct costs {
	size_t nr;
	uint64_t instructions[4096];
};

static struct {
	struct costs alloc, release;
} *found; /* shared with the process of a pattern */

static void note(struct costs *costs, struct cost cost)
{
	if (costs->nr < sizeof(costs->instructions) / sizeof(costs->instructions[0]))
		costs->instructions[costs->nr++] = cost.instructions;
}

static uint64_t noted_alloc(size_t size)
{
	struct cost cost;
	uint64_t object = counted_alloc(a, size, &cost);

	note(&found->alloc, cost);
	return object;
}

static void noted_release(uint64_t object)
{
	struct cost cost;

	if (!object)
		return;
	counted_release(a, object, &cost);
	note(&found->release, cost);
}

static void release(uint64_t object)
{
	if (object)
		a->release(object);
}

/* ------ patterns ---------------------------------------------------------------------------------- */

#define OBJECTS 4000u
#define HOLES 2000u

static uint64_t objects[OBJECTS], between[OBJECTS];

/* What they cost usually: random sizes, a third of the objects is replaced again and again. */
static void usual(void)
{
	size_t i, step;

	for (step = 0; step < 3 * OBJECTS; step++) {
		i = rnd() % 1000;
		release(objects[i]);
		objects[i] = a->alloc(16 + rnd() % (rnd() % 8 ? 500 : 5000));
	}
	for (step = 0; step < 150; step++) {
		i = rnd() % 1000;
		noted_release(objects[i]);
		objects[i] = noted_alloc(16 + rnd() % (rnd() % 8 ? 500 : 5000));
	}
}

/*
 * Begins pages, slabs, rows of bitmaps, and flushes thread caches: many of a size, the first after others
 * are all full.
 */
static void run(void)
{
	static const size_t sizes[] = { 16, 48, 250, 1500, 6000 };
	size_t i, nr, of;

	for (of = 0; of < sizeof(sizes) / sizeof(sizes[0]); of++) {
		nr = sizes[of] > 1000 ? 40 : 150;
		for (i = 0; i < nr; i++)
			objects[i] = noted_alloc(sizes[of]);
		for (i = 0; i < nr; i++)
			noted_release(objects[i]);
	}
}

/* First-fit and Best-fit pass by all free blocks, as none fits; glibc sorts them first. */
static void holes(void)
{
	size_t i;

	for (i = 0; i < HOLES; i++) {
		objects[i] = a->alloc(64);
		between[i] = a->alloc(64);
	}
	for (i = 0; i < HOLES; i++)
		release(objects[i]);
	noted_release(noted_alloc(3000));
	noted_release(noted_alloc(65));
}

/*
 * glibc puts freed blocks into bins sorted by size when it next allocates, and inserts each by going
 * through those that are larger: the smallest was freed first, the others in descending order.
 * dlmalloc has a trie of them, deep as they differ in all bits; merging two blocks removes both.
 */
static void sorted(void)
{
	size_t i;

	for (i = 0; i < 200; i++) {
		objects[i] = a->alloc(10240 + 16 * (i ? 220 - i : 0));
		between[i] = a->alloc(1100);
	}
	for (i = 0; i < 200; i++)
		release(objects[i]);
	noted_release(noted_alloc(14000));
	noted_release(noted_alloc(10300));
	/* each merges the blocks on both sides of it */
	for (i = 0; i < 40; i++)
		noted_release(between[i * 5]);
}

/* glibc keeps small free blocks unmerged until a large one is freed. */
static void consolidated(void)
{
	uint64_t last;
	size_t i;

	for (i = 0; i < HOLES; i++) {
		objects[i] = a->alloc(64);
		between[i] = a->alloc(64);
	}
	last = a->alloc(4000);
	for (i = 0; i < HOLES; i++)
		release(objects[i]);
	noted_release(last);
}

/* compact-fit moves an object in each free, as each frees one of a full page. */
static void moved(void)
{
	static const size_t sizes[] = { 16, 100, 1500, 8000 };
	size_t i, nr, of, step;

	for (of = 0; of < sizeof(sizes) / sizeof(sizes[0]); of++) {
		nr = 1000000 / sizes[of] < HOLES ? 1000000 / sizes[of] : HOLES;
		step = nr / 25;
		for (i = 0; i < nr; i++)
			objects[i] = a->alloc(sizes[of]);
		for (i = 0; i < nr; i += step) {
			noted_release(objects[i]);
			objects[i] = 0;
		}
		/* now the first of a page that all others have left */
		for (i = 0; i < nr; i += step)
			objects[i] = noted_alloc(sizes[of]);
		for (i = 0; i < nr; i++)
			release(objects[i]);
	}
}

/* Half of the objects are pinned: compact-fit seeks others, and puts pages from list to list. */
static void pinned(void)
{
	size_t i;

	if (!a->pin)
		return;
	for (i = 0; i < OBJECTS; i++) {
		objects[i] = a->alloc(100);
		if (rnd() % 2) {
			a->pin(objects[i]);
			objects[i] = 0;
		}
	}
	for (i = 0; i < OBJECTS; i++) {
		if (i % 8)
			release(objects[i]);
		else
			noted_release(objects[i]);
	}
	for (i = 0; i < 400; i++)
		noted_alloc(100);
}

/*
 * compact-fit's slots come from pages, of 8,192 by default. The malloc that opens a page for its object and
 * finds the slots used up has to open one for them, too.
 */
static void slots(void)
{
	size_t i;

	for (i = 0; i < 8192; i++)
		a->alloc(16);
	noted_release(noted_alloc(16384));
}

/*
 * compact-fit fills the gap in a full page from another one where all objects are pinned but the last. A
 * page has 1,618 blocks of 16 bytes, by default.
 */
static void behind_pins(void)
{
	uint64_t first;
	size_t i;

	if (!a->pin)
		return;
	first = a->alloc(16);
	for (i = 1; i < 1618; i++)
		a->alloc(16);
	for (i = 0; i < 1600; i++)
		a->pin(a->alloc(16));
	a->alloc(16);
	noted_release(first);
}

/* A large block is cut down again and again, by the most different sizes, and put together again. */
static void cut(void)
{
	size_t i;

	for (i = 0; i < 80; i++)
		objects[i] = noted_alloc(16 + (i * 2654435761u >> 7) % 15000);
	for (i = 0; i < 80; i += 2)
		noted_release(objects[i]);
	for (i = 1; i < 80; i += 2)
		noted_release(objects[i]);
}

static const struct {
	const char *name;
	void (*run)(void);
} patterns[] = {
	{ "usual", usual }, /* the first one */
	{ "run", run },
	{ "cut", cut },
	{ "holes", holes },
	{ "sorted", sorted },
	{ "consolidated", consolidated },
	{ "moved", moved },
	{ "pinned", pinned },
	{ "slots", slots },
	{ "behind pins", behind_pins },
};

#define PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

/* ------ what is refused --------------------------------------------------------------------------- */

#define MOST 16384u /* bytes of a request */

/*
 * All memory full of small objects, and each @keep-th is kept: free memory is everywhere, in small pieces.
 * Returns the smallest request that is refused, or 0. @percent: of the objects' bytes that are free.
 */
static size_t refused(size_t keep, double *percent)
{
	static uint64_t small[MEMORY / 32];
	size_t nr, i, kept = 0, size;
	uint64_t object;

	begin();
	for (nr = 0; nr < MEMORY / 32; nr++) {
		small[nr] = a->alloc(32);
		if (!small[nr])
			break;
	}
	for (i = 0; i < nr; i++) {
		if (i % keep)
			a->release(small[i]);
		else
			kept++;
	}
	*percent = 100.0 * (double)(nr - kept) / (double)nr;
	for (size = 16; size <= MOST; size += 8 + size / 32 / 8 * 8) {
		object = a->alloc(size);
		if (!object)
			return size;
		a->release(object);
	}
	return 0;
}

/* ------ the experiment ---------------------------------------------------------------------------- */

static void print_costs(const char *name, const struct costs *costs)
{
	size_t i;

	printf("\"%s\": [", name);
	for (i = 0; i < costs->nr; i++)
		printf("%s%" PRIu64, i ? "," : "", costs->instructions[i]);
	printf("]");
}

/* Each pattern in a process of its own: an allocator of the whole process cannot begin again. */
static void run_pattern(size_t which)
{
	int status;
	pid_t child;

	found->alloc.nr = 0;
	found->release.nr = 0;
	child = fork();
	if (!child) {
		begin();
		patterns[which].run();
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status) {
		fprintf(stderr, "bench: pattern %s did not end well\n", patterns[which].name);
		exit(2);
	}
}

void worst(void)
{
	static const size_t keeps[] = { 2, 10, 100 };
	double percent;
	size_t i, size;

	found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (found == MAP_FAILED) {
		perror("bench: no memory");
		exit(2);
	}
	print_head("worst");
	printf(", \"patterns\": {");
	for (i = 0; i < PATTERNS; i++) {
		/* what is not printed yet would be the child's to print, too */
		fflush(stdout);
		run_pattern(i);
		printf("%s\"%s\": {", i ? ", " : "", patterns[i].name);
		print_costs("alloc", &found->alloc);
		printf(", ");
		print_costs("free", &found->release);
		printf("}");
	}
	printf("}, \"refused\": [");
	for (i = 0; a->bounded && i < sizeof(keeps) / sizeof(keeps[0]); i++) {
		size = refused(keeps[i], &percent);
		printf("%s{\"percent\": %.1f, \"size\": %zu}", i ? ", " : "", percent, size);
	}
	printf("]}\n");
}
