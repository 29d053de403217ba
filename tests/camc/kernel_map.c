/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's reader of maps; with MAIN defined as a program:
 *
 * kernel_map MAP <ADDRESSES	the color of each hexadecimal address, "-" outside of the map; or
 *				the kernel's line and 2 if it refuses the map
 */
#include "kernel_map.h"
#include "../../kernel/files/mm/camc_map.c"
#include "kernel_reader.h"

static struct camc_map *map;

int kernel_read(const char *text)
{
	free(map);
	map = camc_map_parse(text);
	if (!IS_ERR(map))
		return map->nr_colors;
	map = NULL;
	return -1;
}

int kernel_color(unsigned long long address)
{
	unsigned int color = camc_map_color(map, PHYS_PFN(address));

	return color == CAMC_NO_COLOR ? -1 : (int)color;
}

/* Has a block, by the spans that the allocator looks at, the colors that its pages have? */
int kernel_spans_are_right(unsigned long long address)
{
	unsigned long pfn = PHYS_PFN(address) & ~(BIT(MAX_PAGE_ORDER) - 1), i;
	DECLARE_BITMAP(colors, CAMC_MAX_COLORS) = { 0 };

	if (!camc_region(map, pfn))
		return 1;
	for (i = 0; i < BIT(MAX_PAGE_ORDER); i++)
		set_bit(camc_map_color(map, pfn + i), colors);
	for (i = 0; i < map->nr_colors; i++)
		if (test_bit(i, colors) != camc_block_has_color(map, pfn, MAX_PAGE_ORDER, i))
			return 0;
	return 1;
}

#ifdef MAIN
int main(int argc, char **argv)
{
	static char text[65536];
	unsigned long long address;
	FILE *file = fopen(argc == 2 ? argv[1] : "", "r");

	if (!file || !fread(text, 1, sizeof(text) - 1, file))
		return 1;
	fclose(file);
	if (kernel_read(text) < 0) {
		fputs(kernel_log, stdout);
		return 2;
	}
	while (scanf("%llx", &address) == 1) {
		if (!kernel_spans_are_right(address))
			return 3;
		if (kernel_color(address) < 0)
			puts("-");
		else
			printf("%d\n", kernel_color(address));
	}
	return 0;
}
#endif
