// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of CAMC: address maps, against the formulas and against counting; broken pages */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "camc.h"
#include "internal.h"

static void camc_free_map(void *map)
{
	kvfree(map);
}

static struct camc_map *camc_test_map(struct kunit *test, const char *text)
{
	struct camc_map *map = camc_map_parse(text);

	KUNIT_ASSERT_NOT_ERR_OR_NULL_MSG(test, map, "%s", text);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, camc_free_map, map));
	return map;
}

static unsigned int camc_color_of(const struct camc_map *map, u64 address)
{
	return camc_map_color(map, PHYS_PFN(address));
}

/*
 * The formula of section 3.1, for all banks of its example, which has 2 nodes, 2 channels, 2 ranks
 * and 4 banks. It calls node 1, channel 0, rank 1, bank 3 color 19: by the formula, rank 0's is.
 */
static void camc_test_formula(struct kunit *test)
{
	static const char text[] =
		"map paper # the example\n"
		"region 0-40000000 node 0\ncontroller 20000\nrank 10000\nbank 8000\nbank 4000\n"
		"region 40000000-80000000 node 1\ncontroller 20000\nrank 10000\n"
		"bank 8000\nbank 4000\n";
	struct camc_map *map = camc_test_map(test, text);
	unsigned int i, node, channel, rank, bank, address;

	KUNIT_EXPECT_EQ(test, map->nr_colors, 32);
	for (i = 0; i < 32; i++) {
		node = i >> 4;
		channel = i >> 3 & 1;
		rank = i >> 2 & 1;
		bank = i & 3;
		address = node << 30 | channel << 17 | rank << 16 | bank << 14;
		KUNIT_EXPECT_EQ(test, camc_color_of(map, address),
				((node * 2 + channel) * 2 + rank) * 4 + bank);
	}
	KUNIT_EXPECT_EQ(test, camc_color_of(map, 1ULL << 30 | 1 << 16 | 3 << 14), 23);
	KUNIT_EXPECT_EQ(test, camc_color_of(map, 1ULL << 30 | 3 << 14), 19);
	KUNIT_EXPECT_EQ(test, camc_color_of(map, 0x80000000), CAMC_NO_COLOR);
}

/*
 * Table 1: the ranges of the Opteron's four controllers, 128 colors. The bits within each are
 * made up; what is known of the machine's is in tools/mm/camc-maps.
 */
static void camc_test_table_1(struct kunit *test)
{
	static const char banks[] =
		"controller 8000000\nrank 4000000\nrank 2000000\nbank 10000\nbank 8000\n";
	static const u64 starts[] = { 0, 0x228000000, 0x428000000, 0x628000000, 0x828000000 };
	char *text = kunit_kzalloc(test, 2048, GFP_KERNEL);
	struct camc_map *map;
	unsigned int i, n = 0;

	KUNIT_ASSERT_NOT_NULL(test, text);
	n += scnprintf(text, 2048, "map opteron\n");
	for (i = 0; i < 4; i++)
		n += scnprintf(text + n, 2048 - n, "region %llx-%llx node %u offset %llx\n%s",
			       starts[i], starts[i + 1], i, starts[i], banks);
	map = camc_test_map(test, text);
	KUNIT_EXPECT_EQ(test, map->nr_colors, 128);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, camc_color_of(map, starts[i]), i * 32);
		KUNIT_EXPECT_EQ(test, camc_color_of(map, starts[i + 1] - 1) / 32, i);
		KUNIT_EXPECT_EQ(test, camc_color_of(map, starts[i] + 0xe018000), i * 32 + 31);
	}
	KUNIT_EXPECT_EQ(test, camc_color_of(map, starts[4]), CAMC_NO_COLOR);
}

/* What a map says, bit by bit, without tables */
static unsigned int camc_slow_color(u64 address, u64 off, u64 removed, const u64 *masks,
				    unsigned int nr)
{
	unsigned int i, bit, at = 0, color = 0;
	u64 squeezed = 0;

	address -= off;
	for (bit = 0; bit < 64; bit++)
		if (!(removed >> bit & 1))
			squeezed |= (address >> bit & 1) << at++;
	for (i = 0; i < nr; i++)
		color = color << 1 | (hweight64(squeezed & masks[i]) & 1);
	return color;
}

static void camc_test_normalised(struct kunit *test)
{
	static const u64 masks[] = { 0x8888888000, 0x4010000, 0x2222000 };
	static const char text[] =
		"map hashed\n\n"
		"  region 0x8000000-0x100000000000 offset 8000000 remove 6:6,27:24,40:39\n"
		"controller 8888888000\n\tbank 0x4010000 # squeezed\nbank 2222000\n";
	u64 removed = BIT_ULL(6) | GENMASK_ULL(27, 24) | GENMASK_ULL(40, 39);
	struct camc_map *map = camc_test_map(test, text);
	u64 address = 0x8000000;
	unsigned int i;

	for (i = 0; i < 20000; i++) {
		KUNIT_ASSERT_EQ_MSG(test, camc_color_of(map, address),
				    camc_slow_color(address & PAGE_MASK, 0x8000000, removed,
						    masks, 3),
				    "%llx", address);
		address = 0x8000000 + (address * 6364136223846793005ULL + 1442695040888963407ULL) %
			  0xfff00000000;
	}
}

/* All orders and alignments: does a block have a color, by its span and by its pages? */
static void camc_test_blocks(struct kunit *test)
{
	static const char text[] =
		"map x\nregion 0-10000000\nbank 41000\nbank 6000\nbank 108000\nbank 400000\n";
	struct camc_map *map = camc_test_map(test, text);
	DECLARE_BITMAP(colors, CAMC_MAX_COLORS);
	unsigned int order, color;
	unsigned long pfn, i;

	for (color = 0; color < 16; color++) {
		bitmap_zero(colors, CAMC_MAX_COLORS);
		__set_bit(color, colors);
		for (order = 0; order < NR_PAGE_ORDERS; order++) {
			for (pfn = 0; pfn < 8192; pfn += 1UL << order) {
				bool has = false;

				for (i = 0; i < 1UL << order; i++)
					has |= camc_map_color(map, pfn + i) == color;
				KUNIT_ASSERT_EQ(test, has,
						camc_block_has(map, pfn, order, colors));
			}
		}
	}
}

/* The same for sets of colors, of a map that has as many as there can be */
static void camc_test_sets(struct kunit *test)
{
	struct camc_map *map = camc_test_map(test,
		"map x\nregion 0-10000000\nbank 1401000\nbank 802000\nbank 4000\nbank 108000\n"
		"bank 210000\nbank 420000\nbank 40000\nbank 1081000\nbank 100000\nbank 200000\n");
	DECLARE_BITMAP(colors, CAMC_MAX_COLORS);
	unsigned int order, i, at, nr;
	unsigned long pfn, next = 1;

	KUNIT_ASSERT_EQ(test, map->nr_colors, CAMC_MAX_COLORS);
	for (nr = 1; nr <= CAMC_MAX_COLORS; nr *= 4) {
		bitmap_zero(colors, CAMC_MAX_COLORS);
		for (i = 0; i < nr; i++) {
			next = next * 6364136223846793005UL + 1442695040888963407UL;
			__set_bit(next >> 54, colors);
		}
		for (order = 0; order < NR_PAGE_ORDERS; order++) {
			for (pfn = 0x2c00; pfn < 0x3c00; pfn += 1UL << order) {
				const struct camc_region *r = camc_region(map, pfn);
				DECLARE_BITMAP(there, CAMC_MAX_COLORS);
				DECLARE_BITMAP(found, CAMC_MAX_COLORS);

				bitmap_zero(there, CAMC_MAX_COLORS);
				for (i = 0; i < 1UL << order; i++)
					__set_bit(camc_map_color(map, pfn + i), there);
				for (at = 0; at < BITS_TO_LONGS(CAMC_MAX_COLORS); at++)
					found[at] = camc_block_word(r, order,
								    camc_map_color(map, pfn), at);
				KUNIT_ASSERT_TRUE(test, bitmap_equal(there, found,
								     CAMC_MAX_COLORS));
				KUNIT_ASSERT_EQ(test, camc_block_has(map, pfn, order, colors),
						bitmap_intersects(there, colors, CAMC_MAX_COLORS));
			}
		}
	}
}

/* As many regions as there may be, with holes between them, in no order */
static void camc_test_regions(struct kunit *test)
{
	char *text = kunit_kzalloc(test, 4096, GFP_KERNEL);
	unsigned int i, at, n;
	struct camc_map *map;

	KUNIT_ASSERT_NOT_NULL(test, text);
	n = scnprintf(text, 4096, "map x\n");
	for (i = 0; i < CAMC_MAX_REGIONS; i++) {
		at = i * 7 % CAMC_MAX_REGIONS;
		n += scnprintf(text + n, 4096 - n, "region %x-%x node %u\n", at << 23,
			       (at << 23) + (1 << 22), at);
	}
	map = camc_test_map(test, text);
	for (i = 0; i < CAMC_MAX_REGIONS * 2048; i++)
		KUNIT_ASSERT_EQ(test, camc_map_color(map, i),
				i & 1024 ? CAMC_NO_COLOR : i / 2048);
}

/* Independent masks give each color the same number of pages. */
static void camc_test_balance(struct kunit *test)
{
	static const char text[] =
		"map x\nregion 0-10000000\nrank 81000\nrank 42000\nbank 24000\nbank 18000\n";
	struct camc_map *map = camc_test_map(test, text);
	unsigned int count[16] = { }, i;

	for (i = 0; i < 65536; i++)
		count[camc_map_color(map, i)]++;
	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_EQ(test, count[i], 4096);
}

static void camc_test_limits(struct kunit *test)
{
	char *text = kunit_kzalloc(test, 4096, GFP_KERNEL);
	unsigned int i, n;

	KUNIT_ASSERT_NOT_NULL(test, text);
	n = scnprintf(text, 4096, "map x\nregion 0-400000\n");
	for (i = 0; i < CAMC_MAX_BITS; i++)
		n += scnprintf(text + n, 4096 - n, "bank %x\n", 0x1000 << i);
	KUNIT_EXPECT_EQ(test, camc_test_map(test, text)->nr_colors, CAMC_MAX_COLORS);
	scnprintf(text + n, 4096 - n, "bank %x\n", 0x1000 << i);
	KUNIT_EXPECT_EQ(test, PTR_ERR(camc_map_parse(text)), -EINVAL);

	n = scnprintf(text, 4096, "map x\n");
	for (i = 0; i < CAMC_MAX_REGIONS; i++)
		n += scnprintf(text + n, 4096 - n, "region %x-%x node %u\n", i << 22,
			       (i + 1) << 22, i);
	KUNIT_EXPECT_EQ(test, camc_test_map(test, text)->nr_colors, CAMC_MAX_REGIONS);
	scnprintf(text + n, 4096 - n, "region %x-%x\n", i << 22, (i + 1) << 22);
	KUNIT_EXPECT_EQ(test, PTR_ERR(camc_map_parse(text)), -EINVAL);

	/* no color bits at all: nodes only */
	KUNIT_EXPECT_EQ(test, camc_test_map(test, "map x\nregion 0-400000 node 1023\n")->nr_colors,
			CAMC_MAX_COLORS);
}

static void camc_test_refused(struct kunit *test)
{
	static const char * const bad[] = {
		"", "\n#map x\n", "map\n", "map a b\n", "map x\n",
		"map a\nmap b\nregion 0-400000\n",
		"map a234567890123456789012345678901234567890123456789012345678901234\n"
		"region 0-400000\n",
		"region 0-400000\n", "map x\nbank 1000\n", "map x\nregion\n", "map x\nregion 0\n",
		"map x\nregion -400000\n", "map x\nregion 400000-0\n", "map x\nregion 0-0\n",
		"map x\nregion 0-400001\n", "map x\nregion 1000-400000\n",
		"map x\nregion 0-40000g\n",
		"map x\nregion 0-20000000000000\n", "map x\nregion 0-400000 node\n",
		"map x\nregion 0-400000 node -1\n", "map x\nregion 0-400000 node 1024\n",
		"map x\nregion 0-400000 offset 1000\n", "map x\nregion 0-400000 offset 400000\n",
		"map x\nregion 0-400000 remove\n", "map x\nregion 0-400000 remove 5\n",
		"map x\nregion 0-400000 remove 5:6\n", "map x\nregion 0-400000 remove 6:6,\n",
		"map x\nregion 0-400000 remove 52:52\n", "map x\nregion 0-400000 color 1\n",
		"map x\nregion 0-800000\nregion 400000-c00000\n",
		"map x\nregion 0-800000\nregion 0-800000\n",
		"map x\nregion 0-400000\nbank\n", "map x\nregion 0-400000\nbank 1000 2000\n",
		"map x\nregion 0-400000\nbank 0\n", "map x\nregion 0-400000\nbank zz\n",
		"map x\nregion 0-400000\nbank -1000\n", "map x\nregion 0-400000\nbank +1000\n",
		"map x\nregion 0-400000\nbank 800\n", "map x\nregion 0-400000\nbank 1001\n",
		"map x\nregion 0-400000\nbank 10000000000000\n",
		/* bit 12 is bit 11 if bit 6 is squeezed out */
		"map x\nregion 0-400000 remove 12:12\nbank 1000\nbank 800\n",
		/* bits that would go beyond the 64th */
		"map x\nregion 0-400000 remove 12:12\nbank 8000000000001000\n",
		"map x\nregion 0-400000\nbank 1000\nbank 1000\n",
		"map x\nregion 0-400000\nbank 3000\nbank 5000\nbank 6000\n",
		"map x\nregion 0-400000\nbank 1000\nrank 2000\n",
		"map x\nregion 0-400000\nrank 1000\ncontroller 2000\n",
		"map x\nregion 0-400000\nbank 1000\nregion 400000-800000\n",
		"map x\nregion 0-400000\nregion 400000-800000\nbank 1000\n",
		/* as many, but not of the same kinds */
		"map x\nregion 0-400000\nrank 1000\nregion 400000-800000\nbank 1000\n",
		"map x\nregion 0-400000\ncontroller 1000\nbank 2000\n"
		"region 400000-800000\ncontroller 1000\nrank 2000\nregion 800000-c00000\n"
		"controller 1000\nbank 2000\n",
		"map x\nregion 0-400000\nfoo 1000\n",
		"map x\nregion 0-400000 node 512\nbank 1000\n",
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		struct camc_map *map = camc_map_parse(bad[i]);

		KUNIT_EXPECT_EQ_MSG(test, PTR_ERR_OR_ZERO(map), -EINVAL, "%s", bad[i]);
		if (!IS_ERR(map))
			kvfree(map);
	}
}

/* A map of all addresses covers this machine; one without its memory does not. */
static void camc_test_cover(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 0,
			camc_map_check(camc_test_map(test, "map x\nregion 0-10000000000000\n")));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			camc_map_check(camc_test_map(test, "map x\nregion 0-400000\n")));
}

/* Holes in a section of the memory map are reserved, and need no region. */
static void camc_test_holes(struct kunit *test)
{
	struct page *block = alloc_pages(GFP_KERNEL, MAX_PAGE_ORDER);
	unsigned long i, nr = 1UL << MAX_PAGE_ORDER;
	struct camc_map *map;
	u64 start;
	char *text;

	if (!block)
		kunit_skip(test, "no block of the largest order");
	start = PFN_PHYS(page_to_pfn(block));
	text = kunit_kzalloc(test, 128, GFP_KERNEL);
	if (text)
		scnprintf(text, 128, "map x\nregion 0-%llx\nregion %llx-10000000000000\n", start,
			  start + (nr << PAGE_SHIFT));
	map = text ? camc_map_parse(text) : ERR_PTR(-ENOMEM);
	KUNIT_EXPECT_NOT_ERR_OR_NULL(test, map);
	if (!IS_ERR(map)) {
		KUNIT_EXPECT_EQ(test, -EINVAL, camc_map_check(map));
		for (i = 0; i < nr; i++)
			SetPageReserved(block + i);
		KUNIT_EXPECT_EQ(test, 0, camc_map_check(map));
		ClearPageReserved(block + nr - 1);
		KUNIT_EXPECT_EQ(test, -EINVAL, camc_map_check(map));
		for (i = 0; i < nr; i++)
			ClearPageReserved(block + i);
		kvfree(map);
	}
	__free_pages(block, MAX_PAGE_ORDER);
}

#ifdef CONFIG_MEMORY_FAILURE
/* Nobody gets a broken page from a drain but memory_failure(), which disables lists. */
static void camc_test_broken(struct kunit *test)
{
	struct camc_zone *cz = kunit_kzalloc(test, sizeof(*cz), GFP_KERNEL);
	struct camc_list list = { .pages = LIST_HEAD_INIT(list.pages) };
	struct page *page = alloc_page(GFP_KERNEL);
	struct zone *zone;
	bool left;

	KUNIT_ASSERT_NOT_NULL(test, cz);
	KUNIT_ASSERT_NOT_NULL(test, page);
	zone = page_zone(page);
	cz->lists[CAMC_ANY] = &list;

	/* as a free page on a list */
	set_page_count(page, 0);
	SetPageHWPoison(page);
	list_add(&page->pcp_list, &list.pages);
	list.nr = 1;
	cz->nr = 1;
	KUNIT_EXPECT_EQ(test, 1, camc_drain_list(zone, cz, CAMC_ANY, 0));
	KUNIT_EXPECT_TRUE(test, list_empty(&list.pages) && !list.nr && !cz->nr);
	left = !is_free_buddy_page(page);
	KUNIT_EXPECT_TRUE(test, left);
	if (!left)
		KUNIT_ASSERT_TRUE(test, take_page_off_buddy(page));

	zone_pcp_disable(zone);
	list_add(&page->pcp_list, &list.pages);
	list.nr = 1;
	cz->nr = 1;
	KUNIT_EXPECT_EQ(test, 1, camc_drain_list(zone, cz, CAMC_ANY, 0));
	KUNIT_EXPECT_TRUE(test, take_page_off_buddy(page));
	zone_pcp_enable(zone);

	ClearPageHWPoisonTakenOff(page);
	ClearPageHWPoison(page);
	set_page_count(page, 1);
	__free_page(page);
}
#endif

static struct kunit_case camc_cases[] = {
	KUNIT_CASE(camc_test_formula),
	KUNIT_CASE(camc_test_table_1),
	KUNIT_CASE(camc_test_normalised),
	KUNIT_CASE(camc_test_blocks),
	KUNIT_CASE(camc_test_sets),
	KUNIT_CASE(camc_test_regions),
	KUNIT_CASE(camc_test_balance),
	KUNIT_CASE(camc_test_limits),
	KUNIT_CASE(camc_test_refused),
	KUNIT_CASE(camc_test_cover),
	KUNIT_CASE(camc_test_holes),
#ifdef CONFIG_MEMORY_FAILURE
	KUNIT_CASE(camc_test_broken),
#endif
	{ }
};

static struct kunit_suite camc_suite = {
	.name = "camc",
	.test_cases = camc_cases,
};

kunit_test_suite(camc_suite);
