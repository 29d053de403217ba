/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tests of what compact-fit is compared with, in KTAP: allocators have to be right to be rivals, and the sizes
 * that all are asked for have to be those that are worst for somebody.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bench/rivals.h"
#include "../bench/sizes.h"
#include "rival.h"

#define MEMORY (1u << 20)
#define OBJECTS 2048u
#define OPERATIONS 200000u

static const struct {
	const char *name;
	void (*begin)(struct rival *heap);
	void *(*alloc)(struct rival *heap, size_t size);
	void (*release)(struct rival *heap, void *object);
} rivals[] = {
	{ "First-fit", first_fit_begin, first_fit_alloc, first_fit_free },
	{ "Best-fit", best_fit_begin, best_fit_alloc, best_fit_free },
	{ "Half-fit", half_fit_begin, half_fit_alloc, half_fit_free },
	{ "TLSF", tlsf_begin, tlsf_alloc, tlsf_free },
};

#define RIVALS (sizeof(rivals) / sizeof(rivals[0]))

/* Returns what is wrong, or NULL. */
static const char *try_rival(size_t which, void *memory)
{
	static unsigned char *objects[OBJECTS];
	static size_t sizes[OBJECTS];
	struct rival *heap = rival_init(memory, MEMORY);
	size_t i, step, largest;

	memset(objects, 0, sizeof(objects));
	rivals[which].begin(heap);
	/* what it can allocate of an empty heap, it can again when all is free */
	for (largest = MEMORY; largest; largest -= 8) {
		void *object = rivals[which].alloc(heap, largest);

		if (object) {
			rivals[which].release(heap, object);
			break;
		}
	}
	if (largest < MEMORY / 2 - 16384)
		return "half of the memory can be had in one piece";
	for (step = 0; step < OPERATIONS; step++) {
		i = rnd() % OBJECTS;
		if (objects[i]) {
			if (!filled(objects[i], (unsigned char)i, sizes[i]))
				return "an object keeps its bytes";
			rivals[which].release(heap, objects[i]);
			objects[i] = NULL;
		} else {
			sizes[i] = 1 + rnd() % (rnd() % 8 ? 500 : 5000);
			objects[i] = rivals[which].alloc(heap, sizes[i]);
			if (objects[i] && (uintptr_t)objects[i] % 8)
				return "an object is aligned to 8 bytes";
			if (objects[i])
				memset(objects[i], (int)(i & 0xff), sizes[i]);
		}
		if (step % 256 == 0 && rival_verify(heap))
			return rival_verify(heap);
	}
	for (i = 0; i < OBJECTS; i++)
		if (objects[i])
			rivals[which].release(heap, objects[i]);
	if (rival_verify(heap))
		return rival_verify(heap);
	return rivals[which].alloc(heap, largest) ? NULL : "all is one free block again";
}

/* Returns what is wrong, or NULL. */
static const char *try_sizes(void)
{
	size_t size, next, power = 32;

	for (size = FIRST_SIZE; size <= LAST_SIZE; size = next) {
		next = next_size(size);
		if (next <= size)
			return "sizes grow";
		if (size > power)
			return "no power of two is left out";
		if (size == power)
			power *= 2;
	}
	return power > LAST_SIZE ? NULL : "no power of two is left out";
}

int main(void)
{
	unsigned char *memory = aligned_alloc(16, MEMORY + 64);
	const char *problem;
	size_t i, wrong = 0;

	printf("TAP version 14\n1..%zu\n", RIVALS + 1);
	for (i = 0; i < RIVALS; i++) {
		memset(memory, 0xa5, MEMORY + 64);
		problem = try_rival(i, memory);
		if (!problem && !filled(memory + MEMORY, 0xa5, 64))
			problem = "nothing is written behind the memory";
		if (problem)
			printf("# not so: %s\nnot ", problem);
		printf("ok %zu random operations: %s\n", i + 1, rivals[i].name);
		wrong += !!problem;
	}
	problem = try_sizes();
	if (problem)
		printf("# not so: %s\nnot ", problem);
	printf("ok %zu sizes to ask for\n", RIVALS + 1);
	wrong += !!problem;
	free(memory);
	return wrong != 0;
}
