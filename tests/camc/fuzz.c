/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Any text goes the way of a map in camc: it is refused, or what comes out is what camc_map.h
 * promises. And as it is to the kernel, as root may write it; what the tool gives to the kernel is
 * read there with the same meaning. For libFuzzer.
 */
#include <stdlib.h>
#include <string.h>

#include "../../kernel/files/tools/mm/camc_map.h"
#include "kernel_reader.h"

#define PAGE_SHIFT	12

static const char iomem[] =
	"00001000-0009fbff : System RAM\n00100000-7fffffff : System RAM\n"
	"  01000000-01ffffff : Kernel code\n100000000-27fffffff : System RAM\n";

static void require(bool holds)
{
	if (!holds)
		abort();
}

static u64 pages_in(const struct camc_memory *memory)
{
	u64 pages = 0;
	unsigned int i;

	for (i = 0; i < memory->ranges; i++)
		pages += (memory->range[i].end - memory->range[i].start) >> PAGE_SHIFT;
	return pages;
}

/* The kernel takes what the tool has made, and both mean the same by it. */
static void compare(const struct camc_map *map, const char *text)
{
	unsigned int i;
	u64 at;

	require(kernel_read(text) > 0);
	for (i = 0; i < map->regions; i++) {
		const struct camc_region *region = &map->region[i];
		u64 size = region->end - region->start;

		/* each bit of the address once, and where the region ends */
		for (at = 0; at < size; at = at ? at << 1 : 1 << PAGE_SHIFT)
			require(kernel_color(region->start + at) ==
				(int)map_color(map, region->start + at));
		require(kernel_color(region->end - 1) == (int)map_color(map, region->end - 1));
		require(kernel_spans_are_right(region->start));
		require(kernel_color(region->end) == (int)map_color(map, region->end));
	}
}

static void follow(struct camc_map *map, const struct camc_memory *memory)
{
	static const struct camc_chipset chipset = { 0x80000000, 0x200000000, 0x80000000 };
	static struct camc_count count;
	static struct camc_map again;
	char error[CAMC_ERROR], text[CAMC_TEXT + 1], second[CAMC_TEXT + 1];
	unsigned int i, j;
	u64 pages = 0;

	if (map_place(map, memory, &chipset, PAGE_SHIFT, error) ||
	    map_check(map, memory, PAGE_SHIFT, error) ||
	    map_eliminate(map, PAGE_SHIFT, error))
		return;
	for (i = 0; i < map->regions; i++)
		for (j = 0; j < map_bits(map); j++)
			require(!(map->region[i].masks[j].bits & ((1 << PAGE_SHIFT) - 1)));
	require(!map_check(map, memory, PAGE_SHIFT, error));
	if (!map_count(map, memory, PAGE_SHIFT, &count, error)) {
		for (i = 0; i < count.colors; i++)
			pages += count.pages[i];
		require(pages == pages_in(memory));
		for (i = 0; i < memory->ranges; i++)
			require(map_color(map, memory->range[i].start) < count.colors);
	}
	if (map_render(map, text, sizeof(text), error))
		return;
	if (map_bits(map) <= CAMC_BITS)
		compare(map, text);
	require(!map_parse(&again, text, error));
	require(!map_render(&again, second, sizeof(second), error) && !strcmp(text, second));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct camc_memory memory, fuzzed;
	static struct camc_map map;
	char error[CAMC_ERROR], *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	kernel_read(text);
	require(!memory_parse(&memory, iomem, PAGE_SHIFT, error));
	memory_parse(&fuzzed, text, PAGE_SHIFT, error);
	if (!(registers_text(text) ? registers_parse(&map, text, error) :
	      map_parse(&map, text, error)))
		follow(&map, &memory);
	free(text);
	return 0;
}
