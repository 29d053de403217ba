/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _MM_CAMC_H
#define _MM_CAMC_H

#include <linux/bitmap.h>
#include <linux/mmzone.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <uapi/linux/camc.h>

#define CAMC_MAX_BITS		10	/* ilog2(CAMC_MAX_COLORS) */
#define CAMC_MAX_REGIONS	32
#define CAMC_NAME		64
#define CAMC_ADDRESS_BITS	52	/* of a physical address, the most that any CPU has */
#define CAMC_TABLES		5	/* of 8 bits, for a page frame number of 40 */
#define CAMC_NO_COLOR		CAMC_MAX_COLORS

/* ------ the address map (camc_map.c) ------------------------------------ */

/* Page frame numbers from @start up to, not including, @end */
struct camc_region {
	unsigned long start;
	unsigned long end;
	unsigned long off;
	unsigned int node;
	unsigned int nr_bits;
	u64 masks[CAMC_MAX_BITS];	/* of the address less @off: nothing is squeezed out */

	/* The color is the XOR of an entry of each, by the bytes of the number less @off. */
	u16 table[CAMC_TABLES][256];
	/* All pages of a block of this order have one color. */
	unsigned int uniform;
	/* By which colors the pages of a block of an order differ from that of its first page */
	DECLARE_BITMAP(span[NR_PAGE_ORDERS], CAMC_MAX_COLORS);
};

struct camc_map {
	char name[CAMC_NAME];
	unsigned int nr_bits;
	unsigned int nr_colors;
	unsigned int nr_regions;
	struct camc_region regions[];
};

struct camc_map *camc_map_parse(const char *text);
int camc_map_check(const struct camc_map *map);

/* Regions are sorted, so that all lookups with zone->lock held are cheap: O(log regions) */
static inline const struct camc_region *camc_region(const struct camc_map *map, unsigned long pfn)
{
	unsigned int low = 0, high = map->nr_regions;

	while (low < high) {
		unsigned int middle = (low + high) / 2;
		const struct camc_region *r = &map->regions[middle];

		if (pfn < r->start)
			high = middle;
		else if (pfn >= r->end)
			low = middle + 1;
		else
			return r;
	}
	return NULL;
}

static inline unsigned int camc_region_color(const struct camc_region *r, unsigned long pfn)
{
	pfn -= r->off;
	return r->table[0][pfn & 0xff] ^ r->table[1][pfn >> 8 & 0xff] ^
	       r->table[2][pfn >> 16 & 0xff] ^ r->table[3][pfn >> 24 & 0xff] ^
	       r->table[4][pfn >> 32 & 0xff];
}

/* The color of a page frame, or CAMC_NO_COLOR outside of the map: O(log regions) */
static inline unsigned int camc_map_color(const struct camc_map *map, unsigned long pfn)
{
	const struct camc_region *r = camc_region(map, pfn);

	return r ? camc_region_color(r, pfn) : CAMC_NO_COLOR;
}

/* Has a naturally aligned block a page of this color? O(log regions) */
static inline bool camc_block_has_color(const struct camc_map *map, unsigned long pfn,
					unsigned int order, unsigned int color)
{
	const struct camc_region *r = camc_region(map, pfn);

	return r && test_bit(color ^ camc_region_color(r, pfn), r->span[order]);
}

/* Bit i of the result is bit i ^ @by of the word. */
static inline unsigned long camc_xor_bits(unsigned long word, unsigned int by)
{
	static const unsigned long low[] = {
		0x5555555555555555, 0x3333333333333333, 0x0f0f0f0f0f0f0f0f,
		0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(low); i++)
		if (by & 1U << i)
			word = (word >> (1U << i) & low[i]) | (word & low[i]) << (1U << i);
	return word;
}

/*
 * Word @at of the bitmap of the colors that a block has, of which @first is that of its first
 * page: those of the span, each XORed with @first. O(1), and next to nothing for a word of 0.
 */
static inline unsigned long camc_block_word(const struct camc_region *r, unsigned int order,
					    unsigned int first, unsigned int at)
{
	unsigned long word = r->span[order][at ^ first / BITS_PER_LONG];

	return word ? camc_xor_bits(word, first % BITS_PER_LONG) : 0;
}

/* Has a naturally aligned block a page of these colors? O(log regions + colors / BITS_PER_LONG) */
static inline bool camc_block_has(const struct camc_map *map, unsigned long pfn,
				  unsigned int order, const unsigned long *colors)
{
	const struct camc_region *r = camc_region(map, pfn);
	unsigned int first, at;

	if (!r)
		return false;
	first = camc_region_color(r, pfn);
	if (!order)
		return test_bit(first, colors);
	for (at = 0; at < BITS_TO_LONGS(map->nr_colors); at++)
		if (camc_block_word(r, order, first, at) & colors[at])
			return true;
	return false;
}

/* ------ color lists (camc.c) -------------------------------------------- */

/* What is counted: in each zone, under zone->lock, ... */
enum camc_zone_stat {
	CAMC_ALLOCATED,
	CAMC_REFILLS,
	CAMC_REFILLED,
	CAMC_RETURNED,
	CAMC_DRAINED,
	CAMC_SCANNED,
	CAMC_NR_ZONE_STATS
};

/* ... and in the machine. Documentation/admin-guide/mm/camc.rst tells their meaning. */
enum camc_event {
	CAMC_SPILLED,
	CAMC_EXHAUSTED,
	CAMC_FOREIGN,
	CAMC_KEPT,
	CAMC_LOST,
	CAMC_NR_EVENTS
};

/* Pages of CMA areas are not for everybody. */
enum { CAMC_ANY, CAMC_CMA, CAMC_KINDS };

struct camc_list {
	struct list_head pages;
	unsigned long nr;
};

/**
 * struct camc_zone - the color lists of a zone; all of it is protected by zone->lock
 *
 * @lists: by kind and color; the freshest page is the first
 * @listed: of which colors there are pages on the lists, by kind
 * @has: of which colors the zone has memory at all
 * @total: how many pages of each, used or not
 * @nr: pages on all lists
 * @nr_cma: those of CMA areas among them
 * @max: how many of what is freed are kept by all, and collected by one set
 * @watch: colors that a search began for of which nothing was freed since
 * @scarce: those of @watch that a refill did not find
 * @empty: those of @watch that a search did not find
 * @missed: how often pages of so many colors each were freed while these were watched
 * @forgot: how often these three were forgotten
 * @forget: when they are, in jiffies
 * @prolonged: that was put off, for a search that took long
 * @search: how long searches of the whole zone take, in jiffies
 * @scan: where the search goes on
 * @stats: counters
 */
struct camc_zone {
	struct camc_list *lists[CAMC_KINDS];
	DECLARE_BITMAP(listed[CAMC_KINDS], CAMC_MAX_COLORS);
	DECLARE_BITMAP(has, CAMC_MAX_COLORS);
	unsigned int *total;
	unsigned long nr;
	unsigned long nr_cma;
	unsigned long max;
	DECLARE_BITMAP(watch, CAMC_MAX_COLORS);
	DECLARE_BITMAP(scarce, CAMC_MAX_COLORS);
	DECLARE_BITMAP(empty, CAMC_MAX_COLORS);
	unsigned int missed[BITS_TO_LONGS(CAMC_MAX_COLORS)];
	unsigned int forgot;
	unsigned long forget;
	bool prolonged;
	unsigned long search;
	unsigned long scan;
	unsigned long stats[CAMC_NR_ZONE_STATS];
};

enum camc_refill { CAMC_DIRECTED, CAMC_WALK };

extern const struct camc_map *camc_map;		/* NULL until one is loaded, then constant */
extern enum camc_refill camc_refill_mode;
extern atomic_long_t camc_events[CAMC_NR_EVENTS];

int camc_load(const struct camc_map *map);
unsigned long camc_fill(const unsigned long *colors, unsigned long nr, bool limited);
unsigned long camc_drain_list(struct zone *zone, struct camc_zone *cz, unsigned int kind,
			      unsigned int color);
void camc_drain_colors(const unsigned long *colors);
void camc_forget_all(void);

/* The map, or NULL as long as none is loaded */
static inline const struct camc_map *camc_loaded(void)
{
	/* Pairs with camc_load(). */
	return smp_load_acquire(&camc_map);
}

static inline void camc_count(enum camc_event event)
{
	atomic_long_inc(&camc_events[event]);
}

/* ------ sets of colors (camc_set.c) ------------------------------------- */

/**
 * struct camc_set - colors that one or more threads have
 *
 * @colors: grows, under camc_mutex, and is read without it; the first: see camc_uses_others()
 * @ref: of each thread and each cgroup that has it
 * @id: tells sets apart in /proc/camc
 * @flags: CAMC_STRICT, CAMC_FORK, CAMC_EXEC, CAMC_SHARE
 * @limited: counts against the limit
 * @cgroup: belongs to a cgroup
 * @nid: the NUMA node of which one more color is looked for first
 * @other: whose place it takes, or who takes its: what both have counts once; under camc_mutex
 * @siblings: of all sets, under camc_mutex
 */
struct camc_set {
	DECLARE_BITMAP(colors, CAMC_MAX_COLORS);
	refcount_t ref;
	unsigned int id;
	unsigned int flags;
	bool limited;
	bool cgroup;
	int nid;
	struct camc_set *other;
	struct list_head siblings;
	struct rcu_head rcu;
};

extern struct mutex camc_mutex;
extern struct list_head camc_sets;

struct camc_set *camc_set_create(const struct camc_policy *policy, struct camc_set *old,
				 bool limited);
void camc_set_put(struct camc_set *set);
unsigned int camc_nr_taken(void);

#endif /* _MM_CAMC_H */
