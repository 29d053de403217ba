// SPDX-License-Identifier: GPL-2.0-only
/*
 * CAMC: from a physical address to the color of its page
 *
 * A map is text; Documentation/admin-guide/mm/camc.rst tells its form. All of it is linear over
 * GF(2) within a region, so that the color of a page is a XOR of table entries, and the colors
 * of a naturally aligned block are those of its first page, each XORed with the same numbers.
 */

#define pr_fmt(fmt) "camc: map: " fmt

#include <linux/ctype.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "camc.h"

/* Regions consist of whole blocks, so that each block lies in one. */
#define CAMC_ALIGN		(PAGE_SIZE << MAX_PAGE_ORDER)

enum camc_kind { CAMC_CONTROLLER, CAMC_RANK, CAMC_BANK, CAMC_NOT_A_MASK };

/* One pass over the text */
struct camc_parser {
	struct camc_map *map;
	struct camc_region *region;	/* the last one */
	enum camc_kind kind;		/* of the last mask of it */
	unsigned int nr[CAMC_NOT_A_MASK];	/* of its masks of each kind */
	unsigned int first[CAMC_NOT_A_MASK];	/* of those of the first region */
	u64 removed;			/* bits that are squeezed out of its addresses */
	unsigned int line;
	bool named;
};

#define camc_refuse(p, fmt, ...) \
	(pr_err("line %u: " fmt "\n", (p)->line, ##__VA_ARGS__), -EINVAL)

static char *camc_word(char **rest)
{
	char *word;

	*rest = skip_spaces(*rest);
	word = strsep(rest, " \t\r");
	if (!*rest)
		*rest = word + strlen(word);
	return word;
}

static bool camc_hex(const char *word, u64 *value)
{
	return *word && *word != '+' && !kstrtou64(word, 16, value);
}

/* The bits of an address that those of the normalised address are; bit 63 if one is beyond all */
static u64 camc_unsqueeze(u64 mask, u64 removed)
{
	u64 result = 0;
	int bit;

	for (bit = 0; bit < 64; bit++) {
		if (removed & BIT_ULL(bit))
			continue;
		if (mask & 1)
			result |= BIT_ULL(bit);
		mask >>= 1;
	}
	return mask ? BIT_ULL(63) : result;
}

static int camc_parse_map(struct camc_parser *p, char *rest)
{
	char *name = camc_word(&rest);

	if (p->named)
		return camc_refuse(p, "a second map: only one is loaded at a time");
	if (!*name || *camc_word(&rest))
		return camc_refuse(p, "write: map NAME");
	if (strscpy(p->map->name, name) < 0)
		return camc_refuse(p, "the name is longer than %d", CAMC_NAME - 1);
	p->named = true;
	return 0;
}

static int camc_parse_remove(struct camc_parser *p, char *fields)
{
	while (fields) {
		char *low = strsep(&fields, ","), *high = strsep(&low, ":");
		unsigned int from, to;

		if (!low || kstrtouint(high, 10, &to) || kstrtouint(low, 10, &from) ||
		    from > to || to >= CAMC_ADDRESS_BITS)
			return camc_refuse(p, "write bits to remove as HI:LO, below %d",
					   CAMC_ADDRESS_BITS);
		p->removed |= GENMASK_ULL(to, from);
	}
	return 0;
}

static int camc_parse_option(struct camc_parser *p, char *option, char **rest)
{
	struct camc_region *r = p->region;
	char *value = camc_word(rest);
	u64 off;

	if (!strcmp(option, "node")) {
		if (kstrtouint(value, 10, &r->node) || r->node >= CAMC_MAX_COLORS)
			return camc_refuse(p, "write: node N, below %d", CAMC_MAX_COLORS);
	} else if (!strcmp(option, "offset")) {
		if (!camc_hex(value, &off) || !IS_ALIGNED(off, CAMC_ALIGN) ||
		    off > PFN_PHYS(r->start))
			return camc_refuse(p, "the offset has to be a multiple of %#lx up to START",
					   CAMC_ALIGN);
		r->off = PHYS_PFN(off);
	} else if (!strcmp(option, "remove")) {
		return camc_parse_remove(p, value);
	} else {
		return camc_refuse(p, "unknown option %s: node, offset or remove", option);
	}
	return 0;
}

/* The last region is complete: has it masks as the first one, of which a color is made? */
static int camc_check_region(struct camc_parser *p)
{
	if (p->map->nr_regions == 1)
		memcpy(p->first, p->nr, sizeof(p->first));
	if (memcmp(p->first, p->nr, sizeof(p->first)))
		return camc_refuse(p,
				   "%u, %u, %u controller, rank, bank masks after %u, %u, %u: give all the same",
				   p->nr[0], p->nr[1], p->nr[2],
				   p->first[0], p->first[1], p->first[2]);
	memset(p->nr, 0, sizeof(p->nr));
	return 0;
}

static int camc_parse_region(struct camc_parser *p, char *rest)
{
	char *end = camc_word(&rest), *start = strsep(&end, "-"), *option;
	struct camc_map *map = p->map;
	u64 from, to;
	unsigned int i;
	int err;

	err = camc_check_region(p);
	if (err)
		return err;
	if (map->nr_regions == CAMC_MAX_REGIONS)
		return camc_refuse(p, "more than %d regions", CAMC_MAX_REGIONS);
	if (!end || !camc_hex(start, &from) || !camc_hex(end, &to) || from >= to ||
	    to > BIT_ULL(CAMC_ADDRESS_BITS))
		return camc_refuse(p, "write: region START-END, hexadecimal, END exclusive");
	if (!IS_ALIGNED(from | to, CAMC_ALIGN))
		return camc_refuse(p, "START and END have to be multiples of %#lx", CAMC_ALIGN);
	for (i = 0; i < map->nr_regions; i++)
		if (from < PFN_PHYS(map->regions[i].end) && PFN_PHYS(map->regions[i].start) < to)
			return camc_refuse(p, "the region overlaps region %u", i + 1);
	p->region = &map->regions[map->nr_regions++];
	p->region->start = PHYS_PFN(from);
	p->region->end = PHYS_PFN(to);
	p->kind = CAMC_CONTROLLER;
	p->removed = 0;
	while (*(option = camc_word(&rest))) {
		err = camc_parse_option(p, option, &rest);
		if (err)
			return err;
	}
	return 0;
}

/* Are the masks linearly independent? Reduces each by those before it. */
static bool camc_independent(const u64 *masks, unsigned int nr)
{
	u64 reduced[CAMC_MAX_BITS];
	unsigned int i, j;

	for (i = 0; i < nr; i++) {
		reduced[i] = masks[i];
		for (j = 0; j < i; j++)
			if (reduced[i] & BIT_ULL(__fls(reduced[j])))
				reduced[i] ^= reduced[j];
		if (!reduced[i])
			return false;
	}
	return true;
}

static int camc_parse_mask(struct camc_parser *p, enum camc_kind kind, char *rest)
{
	struct camc_region *r = p->region;
	char *word = camc_word(&rest);
	u64 mask;

	if (!r)
		return camc_refuse(p, "a mask before the first region");
	if (!camc_hex(word, &mask) || *camc_word(&rest))
		return camc_refuse(p, "write one hexadecimal mask");
	if (kind < p->kind)
		return camc_refuse(p, "the order is controller, rank, bank");
	if (r->nr_bits == CAMC_MAX_BITS)
		return camc_refuse(p, "more than %d masks", CAMC_MAX_BITS);
	mask = camc_unsqueeze(mask, p->removed);
	if (mask & ~PAGE_MASK)
		return camc_refuse(p, "the mask has bits within a page: camc map eliminates them");
	if (mask >> CAMC_ADDRESS_BITS)
		return camc_refuse(p, "the mask has bits above bit %d", CAMC_ADDRESS_BITS - 1);
	p->kind = kind;
	p->nr[kind]++;
	r->masks[r->nr_bits++] = mask;
	if (!camc_independent(r->masks, r->nr_bits))
		return camc_refuse(p, "the mask is the XOR of some before it: leave it out");
	return 0;
}

static int camc_parse_line(struct camc_parser *p, char *line)
{
	static const char * const kinds[] = { "controller", "rank", "bank" };
	char *rest = strsep(&line, "#"), *word = camc_word(&rest);
	int kind;

	if (!*word)
		return 0;
	if (!strcmp(word, "map"))
		return camc_parse_map(p, rest);
	if (!p->named)
		return camc_refuse(p, "the first statement has to be: map NAME");
	if (!strcmp(word, "region"))
		return camc_parse_region(p, rest);
	kind = match_string(kinds, ARRAY_SIZE(kinds), word);
	if (kind >= 0)
		return camc_parse_mask(p, kind, rest);
	return camc_refuse(p, "unknown statement %s: map, region, controller, rank or bank", word);
}

/* The color bits that bit @bit of a page frame number less the offset changes */
static unsigned int camc_column(const struct camc_region *r, unsigned int bit)
{
	unsigned int i, column = 0;

	for (i = 0; i < r->nr_bits; i++)
		column = column << 1 | (r->masks[i] >> (bit + PAGE_SHIFT) & 1);
	return column;
}

static void camc_tabulate(struct camc_region *r)
{
	unsigned int i, j, order, bits = CAMC_ADDRESS_BITS - PAGE_SHIFT;
	unsigned long *span;

	for (i = 0; i < CAMC_TABLES; i++) {
		for (j = 1; j < 256; j++) {
			unsigned int bit = __ffs(j), at = i * 8 + bit;

			r->table[i][j] = r->table[i][j & (j - 1)] ^
					 (at < bits ? camc_column(r, at) : 0);
		}
	}
	for (j = 0; j < 256; j++)
		r->table[CAMC_TABLES - 1][j] |= r->node << r->nr_bits;

	set_bit(0, r->span[0]);
	for (order = 1; order < NR_PAGE_ORDERS; order++) {
		unsigned int column = camc_column(r, order - 1);

		if (!column && r->uniform == order - 1)
			r->uniform = order;
		span = r->span[order];
		bitmap_copy(span, r->span[order - 1], CAMC_MAX_COLORS);
		for_each_set_bit(i, r->span[order - 1], CAMC_MAX_COLORS)
			set_bit(i ^ column, span);
	}
}

static int camc_by_start(const void *a, const void *b)
{
	const struct camc_region *first = a, *second = b;

	return first->start < second->start ? -1 : 1; /* they do not overlap */
}

static int camc_parse(struct camc_parser *p, char *text)
{
	struct camc_map *map = p->map;
	unsigned int i, nodes = 0;
	char *line;
	int err;

	while ((line = strsep(&text, "\n"))) {
		p->line++;
		err = camc_parse_line(p, line);
		if (err)
			return err;
	}
	if (!map->nr_regions)
		return camc_refuse(p, "no region");
	err = camc_check_region(p);
	if (err)
		return err;
	map->nr_bits = map->regions[0].nr_bits;
	for (i = 0; i < map->nr_regions; i++)
		nodes = max(nodes, map->regions[i].node + 1);
	if (nodes > CAMC_MAX_COLORS >> map->nr_bits)
		return camc_refuse(p, "%u nodes of %lu colors: at most %d colors", nodes,
				   BIT(map->nr_bits), CAMC_MAX_COLORS);
	map->nr_colors = nodes << map->nr_bits;
	for (i = 0; i < map->nr_regions; i++)
		camc_tabulate(&map->regions[i]);
	sort(map->regions, map->nr_regions, sizeof(*map->regions), camc_by_start, NULL);
	return 0;
}

/*
 * Read a map; what is wrong with it is in the kernel log. kvfree() it. An error pointer: EINVAL or
 * ENOMEM. Whether it fits the machine is camc_map_check()'s to say.
 */
struct camc_map *camc_map_parse(const char *text)
{
	struct camc_parser parser = { };
	char *copy = kstrdup(text, GFP_KERNEL);
	int err = -ENOMEM;

	parser.map = kvzalloc(struct_size(parser.map, regions, CAMC_MAX_REGIONS), GFP_KERNEL);
	if (copy && parser.map)
		err = camc_parse(&parser, copy);
	kfree(copy);
	if (!err)
		return parser.map;
	kvfree(parser.map);
	return ERR_PTR(err);
}

/* Has the pageblock no memory that is allocated from? What a section lacks is reserved, too. */
static bool camc_is_hole(unsigned long pfn)
{
	unsigned long i;

	for (i = 0; i < pageblock_nr_pages; i++) {
		struct page *page = pfn_to_online_page(pfn + i);

		if (page && !PageReserved(page))
			return false;
	}
	return true;
}

static int camc_check_zones(const struct camc_map *map)
{
	struct zone *zone;

	for_each_populated_zone(zone) {
		unsigned long pfn = pageblock_start_pfn(zone->zone_start_pfn), from = 0;
		bool hole = false;

		for (; pfn < zone_end_pfn(zone); pfn += pageblock_nr_pages) {
			bool open = !camc_region(map, pfn) && !camc_is_hole(pfn);

			if (hole && !open)
				break;
			if (open && !hole)
				from = pfn;
			hole = open;
			cond_resched();
		}
		if (hole) {
			phys_addr_t start = PFN_PHYS(from), end = PFN_PHYS(pfn);

			pr_err("memory at %pa-%pa lies in no region: is the map of this machine?\n",
			       &start, &end);
			return -EINVAL;
		}
	}
	return 0;
}

/* Does the map cover all memory that the buddy allocator has? Says in the log what it does not. */
int camc_map_check(const struct camc_map *map)
{
	int err;

	/* It looks at struct pages, which a hot-remove takes away. */
	get_online_mems();
	err = camc_check_zones(map);
	put_online_mems();
	return err;
}
