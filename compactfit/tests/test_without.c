/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The library without all that can be left out (CF_WITH_...), in KTAP: what is left works, and what is not
 * there is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define MEMORY 65536u
#define OBJECTS 400u
#define ROUNDS 20000u

static unsigned int number, wrong;

static void result(bool holds, const char *what)
{
	wrong += !holds;
	printf("%sok %u %s\n", holds ? "" : "not ", ++number, what);
}

static bool refuses(void *buffer)
{
	const struct cf_config nonmoving = { .engine = CF_NONMOVING }, remote = { .remote_frees = 4 };
	const struct cf_config pieces = { .pieces = true };
	struct cf_heap *heap = cf_init(buffer, MEMORY, NULL);
	cf_handle handle;

	if (cf_malloc(heap, cf_max_contiguous(heap) + 1, &handle) != CF_ESIZE ||
	    cf_max_size(heap) != cf_max_contiguous(heap) || cf_bound(heap, cf_max_size(heap) + 1))
		return false;
	return !cf_init(buffer, MEMORY, &nonmoving) && !cf_init(buffer, MEMORY, &remote) &&
	       !cf_init(buffer, MEMORY, &pieces);
}

static bool holds_byte(struct cf_heap *heap, cf_handle handle, size_t size, unsigned char byte)
{
	const unsigned char *bytes = cf_deref(heap, handle, 0);

	while (size--)
		if (*bytes++ != byte)
			return false;
	return true;
}

/* Random operations, contents checked, and a stale handle refused now and then. */
static bool works(void *buffer)
{
	static cf_handle handles[OBJECTS];
	static unsigned char bytes[OBJECTS];
	static size_t sizes[OBJECTS];
	struct cf_heap *heap = cf_init(buffer, MEMORY, NULL);
	unsigned int round;
	size_t bound;

	for (round = 0; round < ROUNDS; round++) {
		size_t i = below(OBJECTS), size = 1 + below(round % 8 ? 100 : 500);
		cf_handle old = handles[i];

		if (!sizes[i]) {
			bound = cf_bound(heap, size);
			if (cf_malloc(heap, size, &handles[i])) {
				if (bound)
					return false;
				continue;
			}
			sizes[i] = size;
			bytes[i] = (unsigned char)round;
			memset(cf_deref(heap, handles[i], 0), bytes[i], size);
			continue;
		}
		if (!holds_byte(heap, old, sizes[i], bytes[i]))
			return false;
		if (round % 4 == 0 && !cf_realloc(heap, old, size)) {
			sizes[i] = size < sizes[i] ? size : sizes[i];
			continue;
		}
		if (cf_free(heap, old) != CF_OK)
			return false;
		if (cf_free(heap, old) != CF_ESTALE)
			return false;
		sizes[i] = 0;
	}
	return true;
}

int main(void)
{
	void *buffer = malloc(MEMORY);

	printf("TAP version 14\n1..2\n");
	result(refuses(buffer), "the library without its parts refuses what it has not");
	result(works(buffer), "the library without its parts allocates, moves and frees");
	free(buffer);
	return wrong != 0;
}
