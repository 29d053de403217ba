/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The paper's experiments (Section 5), one allocator and one of them a run, as JSON:
 *
 *   bench incremental ALLOCATOR K	Fig. 6: objects of growing size, every second one freed, allocated again
 *   bench periodic ALLOCATOR K		Fig. 7: five periodic tasks
 *   bench fragmentation ALLOCATOR K	Fig. 8: what can be allocated once a fifth of all objects was freed
 *   bench list				the allocators
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocators.h"
#include "count.h"

#define MEMORY (7u << 20) /* the paper's */
#define ALIGNMENT 65536u
#define STREAM 1u /* seed of all that is random */

static const struct allocator *a;
static unsigned int k;
static uint64_t call_cost[2]; /* instructions of calling an allocator that does nothing */

struct cost {
	uint64_t instructions;
	uint64_t copied; /* bytes */
};

/* ------ operations, counted ----------------------------------------------------------------------- */

__attribute__((noinline)) static uint64_t counted_alloc(const struct allocator *which, size_t size,
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

__attribute__((noinline)) static void counted_release(const struct allocator *which, uint64_t object,
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

static void begin(void)
{
	static void *memory;

	if (!memory) {
		memory = aligned_alloc(ALIGNMENT, MEMORY);
		/* no page faults later on, and nothing that a heap could take for its own */
		memset(memory, 0x5a, MEMORY);
	}
	if (!a->begin(memory, MEMORY, k)) {
		fprintf(stderr, "bench: %s does not start: is its package installed?\n", a->title);
		exit(2);
	}
}

/* Start again with the allocator's library instead of libc's malloc(), if that is not so yet. */
static void preload(char **argv)
{
	if (!a->preload || getenv("LD_PRELOAD"))
		return;
	setenv("LD_PRELOAD", a->preload, 1);
	execv("/proc/self/exe", argv);
	perror("bench: cannot start again");
	exit(2);
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

static void print_series(const char *name, const struct series *s)
{
	printf(", \"%s\": {", name);
	print_numbers("size", s->size, s->nr);
	printf(", ");
	print_numbers("instructions", s->instructions, s->nr);
	printf(", ");
	print_numbers("copied", s->copied, s->nr);
	printf("}");
}

static void print_head(const char *experiment)
{
	printf("{\"experiment\": \"%s\", \"allocator\": \"%s\", \"k\": %u, \"memory\": %u",
	       experiment, a->name, k, MEMORY);
}

/* ------ Fig. 6 ------------------------------------------------------------------------------------- */

static void incremental(void)
{
	static uint64_t objects[8192];
	struct series allocs = { 0 }, frees = { 0 };
	size_t nr, i, size, used = 0;
	struct cost cost;

	begin();
	/* until the memory is full; for those that take more of the system, until it would be */
	for (nr = 0, size = 8; nr < 8192; nr++, size += 4) {
		if (size > 16384 || used + size > MEMORY)
			break;
		objects[nr] = a->alloc(size);
		if (!objects[nr])
			break;
		used += size;
	}
	for (i = 0; i < nr; i += 2) {
		counted_release(a, objects[i], &cost);
		add(&frees, 8 + 4 * i, cost);
	}
	for (i = 0; i < nr; i += 2) {
		objects[i] = counted_alloc(a, 8 + 4 * i, &cost);
		if (objects[i])
			add(&allocs, 8 + 4 * i, cost);
	}
	print_head("incremental");
	printf(", \"objects\": %zu", nr);
	print_series("free", &frees);
	print_series("alloc", &allocs);
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
#define TICKS 2000u

static uint64_t state = STREAM;

/* xorshift64*, Marsaglia and Vigna */
static uint64_t rnd(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 2685821657736338717u;
}

struct held {
	uint64_t object;
	size_t size;
	unsigned int until;
};

static void periodic(void)
{
	static struct held held[TASKS][TICKS];
	size_t first[TASKS] = { 0 }, last[TASKS] = { 0 }, t, size, failures = 0;
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
				failures++;
				continue;
			}
			add(&allocs, size, cost);
			/* half of the time to as long again: neighbours die apart */
			held[t][last[t]++] = (struct held){
				object, size, tick + tasks[t].hold / 2 +
					(unsigned int)(rnd() % tasks[t].hold) };
		}
	print_head("periodic");
	printf(", \"failures\": %zu", failures);
	print_series("free", &frees);
	print_series("alloc", &allocs);
	printf("}\n");
}

/* ------ Fig. 8 ------------------------------------------------------------------------------------- */

static void fragmentation(void)
{
	static uint64_t objects[MEMORY / 20], more[MEMORY / 20];
	static size_t sizes[MEMORY / 20];
	size_t nr, i, count, size, payload = 0, freed = 0;
	const char *comma = "";
	uint64_t swap;

	begin();
	for (nr = 0; nr < MEMORY / 20; nr++) {
		size = 20 + rnd() % 81;
		objects[nr] = a->alloc(size);
		if (!objects[nr])
			break;
		sizes[nr] = size;
		payload += size;
	}
	for (i = 0; i < nr; i++)
		if (rnd() % 5 == 0) {
			a->release(objects[i]);
			freed += sizes[i];
		}
	print_head("fragmentation");
	printf(", \"objects\": %zu, \"payload\": %zu, \"freed\": %zu, \"allocatable\": {", nr,
	       payload, freed);
	for (size = 20; size <= 16000; size += size < 200 ? 20 : size < 2000 ? 100 : 1000) {
		for (count = 0; count < MEMORY / 20; count++) {
			more[count] = a->alloc(size);
			if (!more[count])
				break;
		}
		printf("%s\"%zu\": %zu", comma, size, count);
		comma = ", ";
		/* in any order but that of allocation */
		for (i = 0; i < count; i++) {
			size_t j = i + rnd() % (count - i);

			swap = more[i];
			more[i] = more[j];
			more[j] = swap;
			a->release(more[i]);
		}
	}
	printf("}}\n");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} experiments[] = {
		{ "incremental", incremental },
		{ "periodic", periodic },
		{ "fragmentation", fragmentation },
	};
	size_t i;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (i = 0; i < nr_allocators; i++)
			printf("%s\t%s\t%s\n", allocators[i].name,
			       allocators[i].bounded ? "bounded" : "process", allocators[i].title);
		return 0;
	}
	for (i = 0; argc == 4 && i < sizeof(experiments) / sizeof(experiments[0]); i++) {
		a = allocator_named(argv[2]);
		if (!a || strcmp(argv[1], experiments[i].name))
			continue;
		k = (unsigned int)strtoul(argv[3], NULL, 0);
		preload(argv);
		calibrate();
		experiments[i].run();
		return 0;
	}
	fprintf(stderr, "usage: bench list | bench incremental|periodic|fragmentation ALLOCATOR K\n");
	return 1;
}
