/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Time of a free and a malloc, compact-fit / TLSF, as a ratio in one run: both hold as many objects of the
 * same random sizes, random ones are freed and allocated again, in turns of a few milliseconds. Copying is
 * in it, by the library's own loop. Prints JSON.
 *
 *	speed OBJECTS LEAST MOST		the ratio
 *	speed OBJECTS LEAST MOST cfm|tlsf PAIRS	so many pairs on one of them, for cachegrind
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compactfit.h"
#include "rivals.h"
#include "xorshift.h"

#define TURNS 41 /* of each, odd: the median is of one of them */
#define PAIRS 20000u /* of a turn */
#define ALIGNMENT 65536u

static struct cf_heap *heap;
static struct rival *rival;
static cf_handle *handles;
static void **pointers;
static size_t nr, least, most;

static void fail(const char *why)
{
	fprintf(stderr, "speed: %s\n", why);
	exit(2);
}

/* A size and an object: both allocators are asked for the same ones. */
static size_t any(uint64_t *state, size_t *size)
{
	uint64_t value = xorshift(state);

	*size = least + (value >> 40) % (most - least + 1);
	return (size_t)((value & 0xffffffff) * nr >> 32);
}

static void cfm_alloc(size_t i, size_t size)
{
	if (cf_malloc(heap, size, &handles[i]))
		fail("no memory");
	/* as a program would write to it */
	*(char *)cf_deref(heap, handles[i], 0) = 1;
}

static void tlsf_take(size_t i, size_t size)
{
	pointers[i] = tlsf_alloc(rival, size);
	if (!pointers[i])
		fail("no memory");
	*(char *)pointers[i] = 1;
}

static void cfm_pairs(uint64_t *state, size_t pairs)
{
	size_t i, size;

	while (pairs--) {
		i = any(state, &size);
		cf_free(heap, handles[i]);
		cfm_alloc(i, size);
	}
}

static void tlsf_pairs(uint64_t *state, size_t pairs)
{
	size_t i, size;

	while (pairs--) {
		i = any(state, &size);
		tlsf_free(rival, pointers[i]);
		tlsf_take(i, size);
	}
}

static void *memory_of(size_t bytes)
{
	void *memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);

	if (!memory)
		fail("no memory");
	/* so that no page fault is timed */
	memset(memory, 0, bytes);
	return memory;
}

static void begin(bool cfm, bool tlsf)
{
	size_t bytes = nr * (most + 32) + (8u << 20), i, size;
	uint64_t state = 1;

	if (cfm) {
		heap = cf_init(memory_of(bytes), bytes, NULL);
		handles = calloc(nr, sizeof(*handles));
		for (i = 0; i < nr; i++) {
			any(&state, &size);
			cfm_alloc(i, size);
		}
	}
	state = 1;
	if (tlsf) {
		rival = rival_init(memory_of(bytes), bytes);
		pointers = calloc(nr, sizeof(*pointers));
		tlsf_begin(rival);
		for (i = 0; i < nr; i++) {
			any(&state, &size);
			tlsf_take(i, size);
		}
	}
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x > *y ? 1 : -(*x < *y);
}

int main(int argc, char **argv)
{
	static double ratios[TURNS], cfm[TURNS], tlsf[TURNS];
	uint64_t cfm_state = 2, tlsf_state = 2;
	bool both = argc == 4;
	double start;
	size_t turn;

	if (argc != 4 && argc != 6) {
		fprintf(stderr, "usage: speed OBJECTS LEAST MOST [cfm|tlsf PAIRS]\n");
		return 1;
	}
	nr = strtoul(argv[1], NULL, 0);
	least = strtoul(argv[2], NULL, 0);
	most = strtoul(argv[3], NULL, 0);
	if (!nr || !least || most < least)
		fail("wrong sizes");
	begin(both || !strcmp(argv[4], "cfm"), both || !strcmp(argv[4], "tlsf"));
	if (!both) {
		if (heap)
			cfm_pairs(&cfm_state, strtoul(argv[5], NULL, 0));
		else
			tlsf_pairs(&tlsf_state, strtoul(argv[5], NULL, 0));
		return 0;
	}
	for (turn = 0; turn < TURNS; turn++) {
		start = now();
		cfm_pairs(&cfm_state, PAIRS);
		cfm[turn] = (now() - start) / PAIRS;
		start = now();
		tlsf_pairs(&tlsf_state, PAIRS);
		tlsf[turn] = (now() - start) / PAIRS;
		ratios[turn] = cfm[turn] / tlsf[turn];
	}
	qsort(ratios, TURNS, sizeof(ratios[0]), by_value);
	qsort(cfm, TURNS, sizeof(cfm[0]), by_value);
	qsort(tlsf, TURNS, sizeof(tlsf[0]), by_value);
	printf("{\"objects\": %zu, \"least\": %zu, \"most\": %zu, \"ratio\": %.3f, \"cfm\": %.1f, \"tlsf\": %.1f}\n",
	       nr, least, most, ratios[TURNS / 2], cfm[TURNS / 2], tlsf[TURNS / 2]);
	return 0;
}
