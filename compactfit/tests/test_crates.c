/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Tests of the allocators of crates.io behind their C interface, in KTAP: do they keep to their memory? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bench/crates.h"
#include "rival.h"

#define MEMORY (1u << 20)
#define GUARD 4096u
#define OBJECTS (MEMORY / 16)
#define ROUNDS 20u

static const struct {
	const char *name;
	struct crate_heap *(*init)(void *memory, size_t size);
	void *(*alloc)(struct crate_heap *heap, size_t size);
	void (*release)(struct crate_heap *heap, void *object, size_t size);
} crates[] = {
	{ "dlmalloc", crate_dlmalloc_init, crate_dlmalloc_alloc, crate_dlmalloc_free },
	{ "rlsf", crate_rlsf_init, crate_rlsf_alloc, crate_rlsf_free },
	{ "talc", crate_talc_init, crate_talc_alloc, crate_talc_free },
};

#define CRATES (sizeof(crates) / sizeof(crates[0]))

/* Fill the memory, free a random part of it, fill it again, ... Returns what is wrong, or NULL. */
static const char *try_crate(size_t which, unsigned char *memory)
{
	static unsigned char *objects[OBJECTS];
	static size_t sizes[OBJECTS];
	struct crate_heap *heap = crates[which].init(memory, MEMORY);
	size_t i, round, held = 0;

	if (!heap)
		return "it begins in a MiB";
	memset(objects, 0, sizeof(objects));
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < OBJECTS; i++) {
			if (objects[i])
				continue;
			sizes[i] = 1 + rnd() % (rnd() % 8 ? 100 : 5000);
			objects[i] = crates[which].alloc(heap, sizes[i]);
			if (!objects[i])
				break;
			if ((uintptr_t)objects[i] % 16)
				return "an object is aligned to 16 bytes";
			if (objects[i] < memory || objects[i] + sizes[i] > memory + MEMORY)
				return "an object lies in the memory that was given";
			memset(objects[i], (int)(i & 0xff), sizes[i]);
			held += sizes[i];
		}
		if (i == OBJECTS)
			return "the memory is full at some time";
		if (held < MEMORY / 3)
			return "a third of the memory is payload";
		for (i = 0; i < OBJECTS; i++) {
			if (!objects[i] || (round + 1 < ROUNDS && rnd() % 2))
				continue;
			if (!filled(objects[i], (unsigned char)i, sizes[i]))
				return "an object keeps its bytes";
			crates[which].release(heap, objects[i], sizes[i]);
			objects[i] = NULL;
			held -= sizes[i];
		}
	}
	return crates[which].alloc(heap, MEMORY / 2 - 65536) ? NULL : "all is free again, in one piece";
}

int main(void)
{
	unsigned char *memory = aligned_alloc(GUARD, MEMORY + 2 * GUARD);
	size_t i, wrong = 0;

	printf("TAP version 14\n1..%zu\n", 2 * CRATES);
	for (i = 0; i < CRATES; i++) {
		const char *problem;

		memset(memory, 0xa5, MEMORY + 2 * GUARD);
		problem = try_crate(i, memory + GUARD);
		if (!problem && (!filled(memory, 0xa5, GUARD) ||
				 !filled(memory + GUARD + MEMORY, 0xa5, GUARD)))
			problem = "nothing is written beside the memory";
		if (problem)
			printf("# not so: %s\nnot ", problem);
		printf("ok %zu full, half freed, full again: %s\n", 2 * i + 1, crates[i].name);
		wrong += !!problem;
		if (crates[i].init(memory, 100)) {
			printf("not ");
			wrong++;
		}
		printf("ok %zu too little memory is refused: %s\n", 2 * i + 2, crates[i].name);
	}
	free(memory);
	return wrong != 0;
}
