/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A gateway keeps messages of 20 to 600 bytes in a fixed memory until they are sent. Now and then it
 * has to take a firmware image, in blocks of 4 KiB: however the messages came and went, there shall be
 * room for it.
 */
#include <compactfit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY (1024 * 1024)
#define BLOCK 4096
#define BLOCKS 100 /* of a firmware image */
#define MOST_MESSAGES 4096

static unsigned char memory[MEMORY];
static cf_handle queue[MOST_MESSAGES];
static size_t sizes[MOST_MESSAGES];

/* The message's bytes until the next cf_free(): a free may move it. */
static unsigned char *bytes_of(struct cf_heap *heap, size_t number)
{
	return cf_deref(heap, queue[number], 0);
}

int main(void)
{
	/* Each size-class may have a page that is not full: small pages, as there are many sizes. */
	struct cf_config config = { .page_size = BLOCK };
	struct cf_heap *heap = cf_init(memory, sizeof(memory), &config);
	size_t messages = 0, sent = 0, blocks = 0, promised, number;
	struct cf_stats stats;
	cf_handle block;

	/* Is the memory large enough for what has to work? Asked once, before anything happens. */
	if (!heap || cf_bound(heap, BLOCK) < BLOCKS) {
		fprintf(stderr, "%d bytes are too few for %d blocks\n", MEMORY, BLOCKS);
		return 1;
	}
	printf("empty: %zu blocks of %d bytes for certain\n", cf_bound(heap, BLOCK), BLOCK);

	/* Messages come until the memory is full of them. */
	for (; messages < MOST_MESSAGES; messages++) {
		sizes[messages] = 20 + (size_t)rand() % 581;
		if (cf_malloc(heap, sizes[messages], &queue[messages]) != CF_OK)
			break;
		memset(bytes_of(heap, messages), (int)(messages & 0xff), sizes[messages]);
	}
	printf("full: %zu messages, %zu blocks for certain\n", messages, cf_bound(heap, BLOCK));

	/* Three of four are sent, in no order: holes everywhere. */
	for (number = 0; number < messages; number++) {
		if (rand() % 4 == 0)
			continue;
		if (cf_free(heap, queue[number]) != CF_OK)
			return 1;
		sizes[number] = 0;
		sent++;
	}
	promised = cf_bound(heap, BLOCK);
	cf_get_stats(heap, &stats);
	printf("%zu sent, %llu others moved: %zu blocks for certain\n", sent,
	       (unsigned long long)stats.moves, promised);

	/* The image arrives. */
	while (cf_malloc(heap, BLOCK, &block) == CF_OK)
		blocks++;
	printf("%zu blocks allocated\n", blocks);
	if (promised < BLOCKS || blocks < promised)
		return 1;

	/* The messages that are left are what they were. */
	for (number = 0; number < messages; number++)
		if (sizes[number] && (bytes_of(heap, number)[0] != (number & 0xff) ||
				      bytes_of(heap, number)[sizes[number] - 1] != (number & 0xff)))
			return 1;
	printf("%zu messages are as they were\n", messages - sent);
	return 0;
}
