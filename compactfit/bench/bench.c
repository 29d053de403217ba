/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The paper's experiments (Section 5) and the allocators' worst cases, one allocator and one of them a
 * run, as JSON:
 *
 *   bench EXPERIMENT ALLOCATOR [K [PAGE_SIZE [BLOCK_SIZE]]]
 *   bench list
 *
 *   incremental	Fig. 6: objects of growing size, every second one freed, allocated again
 *   deallocation	the frees of that alone, a few of them: fast enough to count copying, too
 *   periodic		Fig. 7: five periodic tasks
 *   fragmentation	Fig. 8: what can be allocated once a fifth of all objects was freed
 *   worst		see worst.c
 *
 * Only compact-fit has a K, pages and block-frames; without, or 0: its defaults.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "count.h"
#include "sizes.h"
#include "xorshift.h"

#define ALIGNMENT 65536u
#define STREAM 1u /* seed of all that is random */

const struct allocator *a;
static struct setup setup;
static uint64_t call_cost[2]; /* instructions of calling an allocator that does nothing */

/* ------ operations, counted ----------------------------------------------------------------------- */

__attribute__((noinline)) uint64_t counted_alloc(const struct allocator *which, size_t size,
						 struct cost *cost)
{
	uint64_t object;

	count_begin();
	object = which->alloc(size);
	count_end();
	cost->instructions = count_taken() - call_cost[0];
	cost->copied = count_copied();
	return object;
}

__attribute__((noinline)) void counted_release(const struct allocator *which, uint64_t object,
					       struct cost *cost)
{
	count_begin();
	which->release(object);
	count_end();
	cost->instructions = count_taken() - call_cost[1];
	cost->copied = count_copied();
}

static void calibrate(void)
{
	struct cost cost;

	count_setup();
	counted_alloc(a->call, 8, &cost);
	call_cost[0] = cost.instructions;
	counted_release(a->call, 8, &cost);
	call_cost[1] = cost.instructions;
}

static uint64_t state;

uint64_t rnd(void)
{
	return xorshift(&state);
}

void begin(void)
{
	static void *memory;

	if (!memory) {
		memory = aligned_alloc(ALIGNMENT, MEMORY);
		/* no page faults later on, and nothing that a heap could take for its own */
		memset(memory, 0x5a, MEMORY);
	}
	state = STREAM;
	if (!a->begin(memory, MEMORY, &setup)) {
		fprintf(stderr, "bench: %s does not start: is its package installed?\n", a->title);
		exit(2);
	}
}

/* ------ output ------------------------------------------------------------------------------------ */

struct series {
	uint64_t *size, *instructions, *copied;
	size_t nr, room;
};

static void add(struct series *s, size_t size, struct cost cost)
{
	if (s->nr == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->size = realloc(s->size, s->room * sizeof(*s->size));
		s->instructions = realloc(s->instructions, s->room * sizeof(*s->instructions));
		s->copied = realloc(s->copied, s->room * sizeof(*s->copied));
	}
	s->size[s->nr] = size;
	s->instructions[s->nr] = cost.instructions;
	s->copied[s->nr++] = cost.copied;
}

static void print_numbers(const char *name, const uint64_t *values, size_t nr)
{
	size_t i;

	printf("\"%s\": [", name);
	for (i = 0; i < nr; i++)
		printf("%s%" PRIu64, i ? "," : "", values[i]);
	printf("]");
}

/* Print a series, and be done with it. */
static void print_series(const char *name, struct series *s)
{
	printf(", \"%s\": {", name);
	print_numbers("size", s->size, s->nr);
	printf(", ");
	print_numbers("instructions", s->instructions, s->nr);
	printf(", ");
	print_numbers("copied", s->copied, s->nr);
	printf("}");
	free(s->size);
	free(s->instructions);
	free(s->copied);
}

void print_head(const char *experiment)
{
	printf("{\"experiment\": \"%s\", \"allocator\": \"%s\", \"k\": %u, \"memory\": %u",
	       experiment, a->name, setup.k, MEMORY);
}

/* ------ Fig. 6 ------------------------------------------------------------------------------------- */

static uint64_t growing[8192]; /* objects of 8 bytes, 12, 16, ... */

static size_t size_of(size_t index)
{
	return 8 + 4 * index;
}

/* Fill the memory with objects of growing size. Returns how many. */
static size_t grow(void)
{
	size_t nr, used = 0;

	begin();
	/* until the memory is full; for those that take more of the system, until it would be */
	for (nr = 0; nr < 8192 && used + size_of(nr) <= MEMORY; nr++) {
		growing[nr] = a->alloc(size_of(nr));
		if (!growing[nr])
			break;
		used += size_of(nr);
	}
	return nr;
}

static void incremental(void)
{
	struct series allocs = { 0 }, frees = { 0 };
	size_t nr = grow(), refused = 0, i;
	struct cost cost;

	for (i = 0; i < nr; i += 2) {
		counted_release(a, growing[i], &cost);
		add(&frees, size_of(i), cost);
	}
	for (i = 0; i < nr; i += 2) {
		growing[i] = counted_alloc(a, size_of(i), &cost);
		if (growing[i])
			add(&allocs, size_of(i), cost);
		else
			refused++;
	}
	print_head("incremental");
	printf(", \"objects\": %zu, \"refused\": %zu", nr, refused);
	print_series("free", &frees);
	print_series("alloc", &allocs);
	printf("}\n");
}

/* Every second object is freed, one of four is counted. */
static void deallocation(void)
{
	struct series frees = { 0 };
	size_t nr = grow(), i;
	struct cost cost;

	for (i = 0; i < nr; i += 2) {
		if (i % 8) {
			a->release(growing[i]);
			continue;
		}
		/* what was copied until now is not this one's */
		count_copied();
		counted_release(a, growing[i], &cost);
		add(&frees, size_of(i), cost);
	}
	print_head("deallocation");
	print_series("free", &frees);
	printf("}\n");
}

/* ------ Fig. 7 ------------------------------------------------------------------------------------- */

/*
 * The paper gives no numbers: "Three of the tasks allocate larger objects and have long holding times,
 * the other two allocate small objects and have short holding times", periods differ, rate-monotonic:
 * the shorter the period, the earlier the task runs. Times in ticks.
 */
static const struct task {
	unsigned int period;
	unsigned int hold;
	size_t least, most; /* bytes of its objects */
} tasks[] = {
	{ 2, 6, 16, 64 },
	{ 3, 12, 32, 128 },
	{ 5, 150, 400, 1200 },
	{ 7, 280, 1000, 3000 },
	{ 11, 440, 2000, 6000 },
};

#define TASKS (sizeof(tasks) / sizeof(tasks[0]))
#define TICKS 1200u

struct held {
	uint64_t object;
	size_t size;
	unsigned int until;
};

static void periodic(void)
{
	static struct held held[TASKS][TICKS];
	size_t first[TASKS] = { 0 }, last[TASKS] = { 0 }, t, size, refused = 0;
	struct series allocs = { 0 }, frees = { 0 };
	unsigned int tick;
	struct cost cost;
	uint64_t object;

	begin();
	for (tick = 0; tick < TICKS; tick++)
		for (t = 0; t < TASKS; t++) {
			if (tick % tasks[t].period)
				continue;
			for (; first[t] < last[t] && held[t][first[t]].until <= tick; first[t]++) {
				counted_release(a, held[t][first[t]].object, &cost);
				add(&frees, held[t][first[t]].size, cost);
			}
			size = tasks[t].least + rnd() % (tasks[t].most - tasks[t].least + 1);
			object = counted_alloc(a, size, &cost);
			if (!object) {
				refused++;
				continue;
			}
			add(&allocs, size, cost);
			/* half of the time to as long again: neighbours die apart */
			held[t][last[t]++] = (struct held){
				object, size, tick + tasks[t].hold / 2 +
					(unsigned int)(rnd() % tasks[t].hold) };
		}
	print_head("periodic");
	printf(", \"refused\": %zu", refused);
	print_series("free", &frees);
	print_series("alloc", &allocs);
	printf("}\n");
}

/* ------ Fig. 8 ------------------------------------------------------------------------------------- */

struct filling {
	size_t objects;
	size_t payload; /* bytes of them */
	size_t freed; /* bytes of those that were freed again */
};

/* Fill the memory with objects of 20 to 100 bytes, free a fifth of them: the same ones each time. */
static struct filling fill_and_free(void)
{
	static uint64_t objects[MEMORY / 20];
	static size_t sizes[MEMORY / 20];
	struct filling found = { 0 };
	size_t size, i;

	begin();
	for (i = 0; i < MEMORY / 20; i++) {
		size = 20 + rnd() % 81;
		objects[i] = a->alloc(size);
		if (!objects[i])
			break;
		sizes[i] = size;
		found.payload += size;
	}
	found.objects = i;
	for (i = 0; i < found.objects; i++)
		if (rnd() % 5 == 0) {
			a->release(objects[i]);
			found.freed += sizes[i];
		}
	return found;
}

/* How many objects of each size can be had, in memory that was made ready by @prepare. */
static void print_allocatable(const char *name, void (*prepare)(void))
{
	const char *comma = "";
	size_t count, size;

	printf(", \"%s\": {", name);
	for (size = FIRST_SIZE; size <= LAST_SIZE; size = next_size(size)) {
		prepare();
		count = 0;
		while (a->alloc(size))
			count++;
		printf("%s\"%zu\": %zu", comma, size, count);
		comma = ", ";
	}
	printf("}");
}

static void only_fill_and_free(void)
{
	fill_and_free();
}

static void fragmentation(void)
{
	struct filling found = fill_and_free();

	print_head("fragmentation");
	printf(", \"objects\": %zu, \"payload\": %zu, \"freed\": %zu", found.objects,
	       found.payload, found.freed);
	/* each size finds the memory as the frees left it */
	print_allocatable("allocatable", only_fill_and_free);
	print_allocatable("empty", begin);
	printf("}\n");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} experiments[] = {
		{ "incremental", incremental },
		{ "periodic", periodic },
		{ "deallocation", deallocation },
		{ "fragmentation", fragmentation },
		{ "worst", worst },
	};
	size_t i;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (i = 0; i < nr_allocators; i++)
			printf("%s\t%s\t%s\n", allocators[i].name,
			       allocators[i].bounded ? "bounded" : "process", allocators[i].title);
		return 0;
	}
	for (i = 0; argc >= 3 && argc <= 6 && i < sizeof(experiments) / sizeof(experiments[0]); i++) {
		a = allocator_named(argv[2]);
		if (!a || strcmp(argv[1], experiments[i].name) != 0)
			continue;
		if (argc > 3)
			setup.k = (unsigned int)strtoul(argv[3], NULL, 0);
		if (argc > 4)
			setup.page_size = (uint32_t)strtoul(argv[4], NULL, 0);
		if (argc > 5)
			setup.block_size = (uint32_t)strtoul(argv[5], NULL, 0);
		allocator_preload(a, argv);
		calibrate();
		experiments[i].run();
		return 0;
	}
	fprintf(stderr, "usage: bench list | bench EXPERIMENT ALLOCATOR [K [PAGE_SIZE [BLOCK_SIZE]]]\n");
	return 1;
}
