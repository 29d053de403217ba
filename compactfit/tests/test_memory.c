/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How much of its memory a heap can use, in KTAP: pages that are filled by every size, small heaps, and
 * what can be had again after frees at random.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define PAPERS (7u << 20) /* the paper's memory, Section 5.3 */
#define LEAST 20u /* bytes of the objects that fill a memory, as in the paper's Fig. 8 */
#define MOST 100u
#define FILLINGS 20u
#define WIDE_MACHINE (sizeof(void *) == 8)
#define AGAIN_FROM 33u /* bytes from which on most of what was freed must be had again */
#define AGAIN_TO 8192u
#define TABLES (256u << 10) /* bytes in which a heap of any page size can be made */
#define LOSS 16u /* percent of a block that an object leaves unused, where a page has NINE */
#define NINE 9u
#define LEAST_BLOCK 16u

static unsigned int number, wrong;

static void result(bool holds, const char *what)
{
	wrong += !holds;
	printf("%sok %u %s\n", holds ? "" : "not ", ++number, what);
}

static void skip(const char *what)
{
	printf("ok %u %s # SKIP not enough memory\n", ++number, what);
}

/* Objects of a size that an empty heap has room for. */
static size_t count(struct cf_heap *heap, size_t size)
{
	cf_handle handle;
	size_t nr = 0;

	while (!cf_malloc(heap, size, &handle))
		nr++;
	return nr;
}

/* No page may have room for another object of the size beside those that fill it. */
static void pages_are_full(bool wide)
{
	const struct cf_config config = { .page_size = CF_PAGE_SIZE, .wide = wide };
	static const size_t sizes[] = { 1024, 2048, 4096, 8192, 16384 };
	size_t memory = 40 * CF_PAGE_SIZE, i, nr;
	void *buffer = aligned_alloc(CF_PAGE_SIZE, memory);
	struct cf_stats stats;
	struct cf_heap *heap;
	bool holds = true;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		heap = cf_init(buffer, memory, &config);
		nr = count(heap, sizes[i]);
		cf_get_stats(heap, &stats);
		nr *= sizes[i];
		printf("# %zu B: %zu bytes in pages for %zu\n", sizes[i], nr,
		       (stats.pages - stats.handle_pages) * CF_PAGE_SIZE);
		/* sixteen of a page have what describes them in it */
		if (sizes[i] == 1024)
			nr += (stats.pages - stats.handle_pages) * 1024;
		holds &= nr == (stats.pages - stats.handle_pages) * CF_PAGE_SIZE;
	}
	free(buffer);
	result(holds, wide ? "objects of powers of two fill pages of a wide heap" :
			     "objects of powers of two fill pages");
}

/* Percent of a buffer that are payload of objects of random sizes: the mean of some fillings. */
static void payload(size_t memory, unsigned int least, const char *what)
{
	void *buffer = aligned_alloc(CF_PAGE_SIZE, memory);
	uint64_t bytes = 0;
	unsigned int permille, filling;

	for (filling = 1; buffer && filling <= FILLINGS; filling++) {
		struct cf_heap *heap = cf_init(buffer, memory, NULL);
		cf_handle handle;
		size_t size;

		seed = filling;
		for (;;) {
			size = LEAST + below(MOST - LEAST + 1);
			if (!heap || cf_malloc(heap, size, &handle))
				break;
			bytes += size;
		}
	}
	permille = (unsigned int)(bytes * 1000 / FILLINGS / memory);
	printf("# %u.%u %%\n", permille / 10, permille % 10);
	result(permille >= 10 * least, what);
	free(buffer);
}

/*
 * A memory full of small objects, of which a fifth is freed at random: of those bytes, what can be had
 * again in objects of each size? Asked for each size-class and the smallest size in it, which is the worst
 * of them. Very small ones have less payload for their references and slots anyway.
 */
static void again(void)
{
	/* machines of 32 bits have pages of 16 KiB there, of which two objects above 5,440 B fill two thirds */
	const char *what = WIDE_MACHINE ?
		"of what was freed 85 % can be had again in any size from 33 B to 8 KiB" :
		"of what was freed 74 % can be had again in any size from 33 B to 8 KiB";
	void *buffer = PAPERS > CF_TEST_MEMORY / 2 ? NULL : aligned_alloc(65536, PAPERS);
	void *copy = buffer ? malloc(PAPERS) : NULL;
	cf_handle *handles = copy ? malloc(PAPERS / LEAST * sizeof(*handles)) : NULL;
	unsigned char *sizes = handles ? malloc(PAPERS / LEAST) : NULL;
	unsigned int least = UINT32_MAX, had;
	size_t size, nr = 0, freed = 0, i, worst = 0;
	struct cf_heap *heap;
	int last = -1;

	if (!sizes) {
		skip(what);
		goto out;
	}
	heap = cf_init(buffer, PAPERS, NULL);
	seed = 1;
	for (;;) {
		size = LEAST + below(MOST - LEAST + 1);
		if (cf_malloc(heap, size, &handles[nr]))
			break;
		sizes[nr++] = (unsigned char)size;
	}
	for (i = 0; i < nr; i++)
		if (below(5) == 0) {
			cf_free(heap, handles[i]);
			freed += sizes[i];
		}
	if (!freed) {
		result(false, what);
		goto out;
	}
	memcpy(copy, buffer, PAPERS);
	for (size = 1; size <= AGAIN_TO; size++) {
		if (cf_class_of(heap, size) == last)
			continue;
		last = cf_class_of(heap, size);
		memcpy(buffer, copy, PAPERS);
		had = (unsigned int)(count(heap, size) * size * 1000 / freed);
		if (size >= AGAIN_FROM && had < least) {
			least = had;
			worst = size;
		}
		if (size < AGAIN_FROM)
			printf("# %zu B: %u.%u %%\n", size, had / 10, had % 10);
	}
	printf("# %u.%u %% at %zu B\n", least / 10, least % 10, worst);
	result(least >= (WIDE_MACHINE ? 850 : 740), what);
out:
	free(sizes);
	free(handles);
	free(copy);
	free(buffer);
}

/* What the header and the documentation say of blocks, for each size of pages and of objects. */
static void blocks(bool wide)
{
	static const char *const what[][2] = {
		{ "of a block 16 % at most are unused if a page has nine",
		  "alignment takes 2.1 times the block up to an eighth of the size, up to 16 nothing" },
		{ "the same in a wide heap, unused", "the same in a wide heap, alignment" },
	};
	void *buffer = TABLES > CF_TEST_MEMORY / 2 ? NULL : aligned_alloc(65536, TABLES);
	unsigned int index, heaps = 0;
	size_t size, align, block;
	bool loss = true, aligned = true;
	uint32_t page;

	for (page = 256; buffer && page <= 65536; page *= 2) {
		const struct cf_config config = { .page_size = page, .wide = wide };
		struct cf_heap *heap = cf_init(buffer, TABLES, &config);

		heaps++;
		for (size = 1; heap && size <= page; size++) {
			index = (unsigned int)cf_class_of(heap, size);
			block = cf_class_size(heap, index);
			if (size > LEAST_BLOCK && size > page / 1024 &&
			    cf_class_per_page(heap, index) >= NINE)
				loss &= (block - size) * 100 <= LOSS * block;
			for (align = 1; align <= size / 8; align *= 2) {
				while (cf_class_size(heap, index) % align)
					index++;
				aligned &= cf_class_size(heap, index) * 10 <=
					   block * (align > LEAST_BLOCK ? 21 : 10);
			}
		}
		loss &= !!heap;
	}
	if (heaps) {
		result(loss, what[wide][0]);
		result(aligned, what[wide][1]);
	} else {
		skip(what[wide][0]);
		skip(what[wide][1]);
	}
	free(buffer);
}

int main(void)
{
	printf("TAP version 14\n1..10\n");
	pages_are_full(false);
	pages_are_full(true);
	payload(16384, 40, "a heap of 16 KiB holds 40 % payload");
	payload(65536, WIDE_MACHINE ? 63 : 65,
		WIDE_MACHINE ? "a heap of 64 KiB holds 63 % payload" :
			       "a heap of 64 KiB holds 65 % payload");
	payload(1 << 20, 70, "a heap of 1 MiB holds 70 % payload");
	again();
	blocks(false);
	blocks(true);
	return wrong != 0;
}
