// SPDX-License-Identifier: GPL-2.0-only
/*
 * Controller- and bank-aware memory coloring (CAMC)
 *
 * After "NUMA-Aware Memory Coloring for Multicore Real-Time Systems" (Pan, Mueller), here "the
 * paper". A task that has colors gets order-0 movable pages, which is all of its address
 * space, from lists of free pages by color. This file keeps those lists; camc_map.c says
 * which color a page has, camc_set.c who has which colors.
 *
 * A free page is on a color list, on a per-CPU list or in the buddy allocator. One on a color list
 * is as one on a per-CPU list: it has passed free_pages_prepare(), has no reference, is not
 * PageBuddy, and is not counted in NR_FREE_PAGES but in camc_nr_free().
 *
 * All lists of a zone, and struct camc_zone, are protected by zone->lock. What follows from that:
 *
 *   - A page goes from the buddy allocator to a color list, and back, within one hold of the lock,
 *     and its pageblock's type is looked up within it. Isolation changes the type under the same
 *     lock, so that a page of an isolated pageblock comes to no list. After
 *     set_migratetype_isolate() and one drain none is left there, which is more than per-CPU
 *     lists promise. (Refill mode "walk" holds a block in between, as anybody who just allocated
 *     it would.)
 *   - zone_pcp_disable() sets pcp->high_max of all CPUs to 0 and then drains: who frees or refills
 *     looks at it with the lock held, which the drain takes at least once, so either comes before
 *     the drain or sees 0. A refill that sees 0 brings no more than the one page that is asked for.
 *   - Pages come to the beginning of a list, and go from there. A drain takes as many from its end
 *     as were there when it began: all of those, or somebody has allocated them. So it ends whoever
 *     refills, and has none in its hands while it does not hold the lock: others, who may need
 *     just these, find them on the list or in the buddy allocator.
 *
 * current->camc, ->camc_colors, ->camc_debt and ->camc_lapse are written and read by their task
 * only (/proc looks at the first under RCU, and sets are freed by RCU).
 */

#define pr_fmt(fmt) "camc: " fmt

#include <linux/camc.h>
#include <linux/cpuset.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/page-isolation.h>
#include <linux/sched/signal.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/swap.h>

#include "internal.h"
#include "camc.h"

#define CREATE_TRACE_POINTS
#include <trace/events/camc.h>

/*
 * How much is done in one hold of a lock, with interrupts off: pages that go to the lists or come
 * from them (a refill: about so many, and at most twice as many if all of its colors are together),
 * pages that are searched, and blocks of a free list that are looked at. How many instructions
 * that takes together is told in Documentation/mm/camc.rst.
 */
#define CAMC_BATCH		16
#define CAMC_SEARCH		32UL

/* A list that no refill leaves so long */
#define CAMC_LONG		(4 * CAMC_BATCH)

/* Blocks of one free list that are looked at, if the first ones did not do */
#define CAMC_LOOK		8

/* The largest block that pages are picked from; of a larger one, a part of that size */
#define CAMC_PICK_ORDER		8

/* Freed pages are kept on lists as long as these have less than one page in so many of the zone. */
#define CAMC_KEEP		8

/* Mode "walk" files no more than one page in so many. */
#define CAMC_WALK_KEEP		4

/* How long the per-CPU lists are left alone at least after a drain of them for colored tasks */
#define CAMC_PAUSE		DIV_ROUND_UP(HZ, 100)

/*
 * How long a color is believed to be used up at most, even if nobody freed a page of it: so long,
 * or so many times as long as searches of the whole zone take, if that is not too long
 */
#define CAMC_FORGET		HZ
#define CAMC_FORGET_SEARCHES	4
#define CAMC_FORGET_MOST	(30 * HZ)

/*
 * How many pages may be searched, in the mean, each time that one is to be moved to its color: some
 * 30 us, if 64 GiB take half a second, which is an estimate. And how many beside, for searches
 * differ: as long as of some hundred pages one is free and has the color, each may have its search.
 */
#define CAMC_CREDIT		1024UL
#define CAMC_OVERDRAFT		(16 * CAMC_CREDIT)

DEFINE_STATIC_KEY_DEFERRED_FALSE(camc_key, HZ);

const struct camc_map *camc_map;
enum camc_refill camc_refill_mode;
atomic_long_t camc_events[CAMC_NR_EVENTS];

/* camc_extract() relies on 256 aligned pages being in one region. */
static_assert(MAX_PAGE_ORDER >= CAMC_PICK_ORDER);

static unsigned int camc_color(const struct page *page)
{
	return camc_map_color(camc_map, page_to_pfn(page));
}

/* Has kswapd work to do? Then what is freed comes to no list, nor does "walk" or a fill add any. */
static bool camc_is_short(struct zone *zone)
{
	return zone_page_state(zone, NR_FREE_PAGES) <= high_wmark_pages(zone);
}

/* ------ lists ----------------------------------------------------------- */

static void camc_list_add(struct zone *zone, struct page *page, unsigned int color, int mt)
{
	struct camc_zone *cz = zone->camc;
	unsigned int kind = is_migrate_cma(mt) ? CAMC_CMA : CAMC_ANY;
	struct camc_list *list = &cz->lists[kind][color];

	list_add(&page->pcp_list, &list->pages);
	__set_bit(color, cz->listed[kind]);
	list->nr++;
	cz->nr++;
	cz->nr_cma += kind == CAMC_CMA;
}

static __always_inline void camc_list_del(struct camc_zone *cz, struct page *page,
					  unsigned int kind, unsigned int color)
{
	struct camc_list *list = &cz->lists[kind][color];

	list_del(&page->pcp_list);
	if (!--list->nr)
		__clear_bit(color, cz->listed[kind]);
	cz->nr--;
	cz->nr_cma -= kind == CAMC_CMA;
}

/* The freshest page of a list that has some; NULL: it is broken */
static struct page *camc_list_take(struct camc_zone *cz, unsigned int kind, unsigned int color)
{
	struct camc_list *list = &cz->lists[kind][color];
	struct page *page = list_first_entry(&list->pages, struct page, pcp_list);

	camc_list_del(cz, page, kind, color);
	/* Broken since it was freed: nobody gets it, as in free_pages_prepare(). */
	if (PageHWPoison(page))
		return NULL;
	cz->stats[CAMC_ALLOCATED]++;
	return page;
}

/* From how many kinds of lists a request may have pages */
static unsigned int camc_kinds(unsigned int alloc_flags)
{
	return alloc_flags & ALLOC_CMA ? CAMC_KINDS : CAMC_CMA;
}

static struct page *camc_pop(struct zone *zone, unsigned int color, unsigned int alloc_flags)
{
	unsigned int kind, kinds = camc_kinds(alloc_flags);
	struct camc_zone *cz = zone->camc;
	struct page *page = NULL;

	for (kind = CAMC_ANY; kind < kinds && !page; kind++)
		while (!page && cz->lists[kind][color].nr)
			page = camc_list_take(cz, kind, color);
	return page;
}

/* A page of one of the colors: O(colors of the map / BITS_PER_LONG) */
static struct page *camc_pop_any(struct zone *zone, const unsigned long *colors,
				 unsigned int alloc_flags)
{
	unsigned int kind, kinds = camc_kinds(alloc_flags), color, nr = camc_map->nr_colors;
	struct camc_zone *cz = zone->camc;
	struct page *page = NULL;

	for (kind = CAMC_ANY; kind < kinds && !page; kind++) {
		while (!page) {
			color = find_first_and_bit(colors, cz->listed[kind], nr);
			if (color >= nr)
				break;
			page = camc_list_take(cz, kind, color);
		}
	}
	return page;
}

/*
 * Pages on color lists of a node, or NUMA_NO_NODE: of the machine. They change as we add. Without a
 * map it costs one look: those who write to files come here.
 */
static unsigned long camc_nr(int nid)
{
	unsigned long sum = 0;
	struct zone *zone;

	if (!camc_loaded())
		return 0;
	for_each_populated_zone(zone)
		if (zone->camc && (nid == NUMA_NO_NODE || zone_to_nid(zone) == nid))
			sum += data_race(zone->camc->nr); /* as said */
	return sum;
}

unsigned long camc_nr_free(void)
{
	return camc_nr(NUMA_NO_NODE);
}

unsigned long camc_nr_free_node(int nid)
{
	return camc_nr(nid);
}

/* Once there is a map, zone->camc does not change any more. */
unsigned long camc_nr_free_zone(const struct zone *zone)
{
	return camc_loaded() && zone->camc ? data_race(zone->camc->nr) : 0; /* as above */
}

unsigned long camc_nr_free_cma(void)
{
	unsigned long sum = 0;
	struct zone *zone;

	if (!camc_loaded())
		return 0;
	for_each_populated_zone(zone)
		sum += zone->camc ? data_race(zone->camc->nr_cma) : 0; /* as above */
	return sum;
}

/* ------ refill ---------------------------------------------------------- */

/* What is looked for in free blocks, and taken */
struct camc_wish {
	unsigned int color;		/* a block has to have this one, or CAMC_NO_COLOR: any of */
	const unsigned long *colors;	/* all of which are taken, if they are met */
	unsigned int alloc_flags;
	unsigned int orders;		/* blocks of this order and of larger ones are left alone */
	bool all;			/* the request may have any page of the zone */
};

static bool camc_grants(const struct camc_wish *wish, unsigned long pfn, unsigned int order)
{
	if (wish->color == CAMC_NO_COLOR)
		return camc_block_has(camc_map, pfn, order, wish->colors);
	return camc_block_has_color(camc_map, pfn, order, wish->color);
}

/*
 * Between zone_pcp_disable() and zone_pcp_enable() nothing comes to lists but what is taken from
 * them before the lock is released, and one page of each fill that is under way. Called with
 * zone->lock held.
 */
static bool camc_lists_disabled(struct zone *zone)
{
	return !READ_ONCE(raw_cpu_ptr(zone->per_cpu_pageset)->high_max);
}

/* How large a block yields about CAMC_BATCH pages of the colors, if they are spread evenly */
static unsigned int camc_pick_order(const struct camc_region *r, const unsigned long *colors)
{
	unsigned int mine = bitmap_weight(colors, camc_map->nr_colors);
	unsigned int order = ilog2((CAMC_BATCH << camc_map->nr_bits) / max(mine, 1U) | 1);

	/* All of that size have one color. */
	if (r->uniform >= ilog2(CAMC_BATCH))
		return ilog2(CAMC_BATCH);
	return min(order, CAMC_PICK_ORDER);
}

/*
 * Give pages from @pfn up to @end, which are free and next to none that is, back as blocks as large
 * as possible. Their buddies are not free: the smallest block of both has a page that was taken.
 * What is split is counted at the end: what comes back was free before.
 */
static void camc_give_back(struct zone *zone, unsigned long pfn, unsigned long end, int mt)
{
	while (pfn < end) {
		unsigned int order = min(__ffs(pfn | 1UL << MAX_PAGE_ORDER), __fls(end - pfn));

		camc_buddy_add(zone, pfn_to_page(pfn), order, mt);
		pfn += 1UL << order;
	}
}

/*
 * Split a free block that grants the wish: a part of it that grants it too is cut out, at most
 * 2^CAMC_PICK_ORDER pages; of these, those of the colors go to the lists, all others back to the
 * free lists. While lists are disabled, the part is one page. It lies in 256 aligned pages: the
 * color of a page is that of the first of these, XORed with one table entry.
 */
static void camc_extract(struct zone *zone, struct page *page, unsigned int order, int mt,
			 const struct camc_wish *wish)
{
	unsigned long pfn = page_to_pfn(page), end, free;
	const struct camc_region *r = camc_region(camc_map, pfn);
	unsigned int pick = camc_lists_disabled(zone) ? 0 : camc_pick_order(r, wish->colors);
	bool met = wish->color == CAMC_NO_COLOR;
	unsigned int first, color, step;
	int nr = 0;

	camc_buddy_del(zone, page, order, mt);
	while (order > pick) {
		unsigned long half = 1UL << --order;
		bool lower = camc_grants(wish, pfn, order);

		camc_buddy_add(zone, pfn_to_page(lower ? pfn + half : pfn), order, mt);
		pfn += lower ? 0 : half;
	}
	end = pfn + (1UL << order);
	first = camc_region_color(r, pfn & ~0xffUL);
	step = 1U << min(r->uniform, order);
	for (free = pfn; pfn < end; pfn += step) {
		unsigned int i;

		color = first ^ r->table[0][pfn & 0xff];
		if (!test_bit(color, wish->colors))
			continue;
		/* Enough, but the one that is asked for has to be among them. */
		if (nr >= 2 * CAMC_BATCH && (met || color != wish->color))
			continue;
		met |= color == wish->color;
		camc_give_back(zone, free, pfn, mt);
		for (i = 0; i < step; i++)
			camc_list_add(zone, pfn_to_page(pfn + i), color, mt);
		nr += step;
		free = pfn + step;
	}
	camc_give_back(zone, free, end, mt);
	camc_buddy_account(zone, -nr, mt);
	zone->camc->stats[CAMC_REFILLS]++;
	zone->camc->stats[CAMC_REFILLED] += nr;
	trace_camc_refill(zone, nr);
}

/*
 * Look at the first @look blocks of each free list of a type, small ones first: O(log regions) each
 */
static bool camc_look(struct zone *zone, int mt, unsigned int look, const struct camc_wish *wish)
{
	unsigned int order, seen;
	struct page *page;

	for (order = 0; order < wish->orders; order++) {
		seen = 0;
		list_for_each_entry(page, &zone->free_area[order].free_list[mt], buddy_list) {
			if (camc_grants(wish, page_to_pfn(page), order)) {
				camc_extract(zone, page, order, mt, wish);
				return true;
			}
			if (++seen == look)
				break;
		}
	}
	return false;
}

/* Let interrupts in. What is on lists may be gone then. */
static void camc_breathe(struct zone *zone, unsigned long *flags)
{
	spin_unlock_irqrestore(&zone->lock, *flags);
	spin_lock_irqsave(&zone->lock, *flags);
}

/* A kernel without CMA does not know the type, and never asks for it. */
#ifdef CONFIG_CMA
#define CAMC_MT_CMA	MIGRATE_CMA
#else
#define CAMC_MT_CMA	MIGRATE_MOVABLE
#endif

/* Has a request seen all of the zone when it has seen what it may have? Most have no CMA area. */
static bool camc_sees_all(struct zone *zone, unsigned int alloc_flags)
{
	return !zone_cma_pages(zone) || alloc_flags & ALLOC_CMA;
}

/* Where most free pages are, in the order of __rmqueue() */
static bool camc_refill_first(struct zone *zone, const struct camc_wish *wish, bool cma)
{
	if (cma && zone_page_state(zone, NR_FREE_CMA_PAGES) >
	    zone_page_state(zone, NR_FREE_PAGES) / 2 &&
	    camc_look(zone, CAMC_MT_CMA, 1, wish))
		return true;
	return camc_look(zone, MIGRATE_MOVABLE, 1, wish) ||
	       (cma && camc_look(zone, CAMC_MT_CMA, 1, wish));
}

/* At more blocks, and at those of other types, which no pageblock changes here */
static bool camc_refill_more(struct zone *zone, const struct camc_wish *wish, bool cma,
			     unsigned long *flags)
{
	camc_breathe(zone, flags);
	if (camc_look(zone, MIGRATE_MOVABLE, CAMC_LOOK, wish))
		return true;
	camc_breathe(zone, flags);
	if (cma && camc_look(zone, CAMC_MT_CMA, CAMC_LOOK, wish))
		return true;
	camc_breathe(zone, flags);
	return !(wish->alloc_flags & ALLOC_NOFRAGMENT) &&
	       (camc_look(zone, MIGRATE_RECLAIMABLE, 1, wish) ||
		camc_look(zone, MIGRATE_UNMOVABLE, 1, wish));
}

/*
 * Algorithms 2 and 3 of the paper, as they are meant: take the first block of the smallest order
 * that has one, file each of its pages under its color, and go on until one of the task's is
 * met. What the paper leaves open is bounded: pages per hold of the lock, and pages on lists,
 * since they would be drained under pressure just to be filed again; and free memory is left.
 */
static bool camc_walk(struct zone *zone, const unsigned long *colors, unsigned long *flags)
{
	struct camc_zone *cz = zone->camc;
	unsigned int order, held = 0;
	bool found = false;

	for (order = 0; order < NR_PAGE_ORDERS && !found; ) {
		struct list_head *list = &zone->free_area[order].free_list[MIGRATE_MOVABLE];
		unsigned long i, filed = 0;
		struct page *page;
		unsigned int color;
		int mt;

		if (cz->nr > zone_managed_pages(zone) / CAMC_WALK_KEEP ||
		    camc_lists_disabled(zone) || camc_is_short(zone))
			return false;
		if (list_empty(list)) {
			order++;
			continue;
		}
		page = list_first_entry(list, struct page, buddy_list);
		camc_buddy_del(zone, page, order, MIGRATE_MOVABLE);
		camc_buddy_account(zone, -(1 << order), MIGRATE_MOVABLE);
		for (i = 0; i < 1UL << order; i++, page++) {
			mt = get_pageblock_migratetype(page);
			color = camc_color(page);
			if (color == CAMC_NO_COLOR || is_migrate_isolate(mt) ||
			    camc_lists_disabled(zone)) {
				camc_buddy_free(zone, page, mt);
			} else {
				camc_list_add(zone, page, color, mt);
				found |= test_bit(color, colors);
				filed++;
			}
			if (++held % CAMC_BATCH == 0)
				camc_breathe(zone, flags);
		}
		cz->stats[CAMC_REFILLS]++;
		cz->stats[CAMC_REFILLED] += filed;
		trace_camc_refill(zone, filed);
		/* It is back where it was, beyond the map perhaps, and would be the first again. */
		if (!filed)
			break;
	}
	return found;
}

/* ------ the last pages of a color --------------------------------------- */

/*
 * What is used up stays so until a page of it is freed; who looks again for each
 * page spends most of its time so. A search sets bits in @watch before it begins, each block
 * that comes to the free lists clears those of its colors, and colors that are still
 * watched when the search has seen the whole zone are empty, unless something was freed in
 * the meantime that somebody watched: another search may have set the bit again. Before it comes
 * to a search, colors that refills do not find any more are watched too, and are scarce.
 */
static void camc_unwatch_word(struct camc_zone *cz, unsigned int at, unsigned long freed)
{
	freed &= cz->watch[at];
	if (!freed)
		return;
	cz->watch[at] &= ~freed;
	cz->scarce[at] &= ~freed;
	cz->empty[at] &= ~freed;
	cz->missed[at]++;
}

/* How often pages of these colors, or of near ones, were freed while somebody watched them */
static unsigned int camc_missed(const struct camc_zone *cz, const unsigned long *colors)
{
	unsigned int sum = cz->forgot, at; /* it only grows, and wraps */

	for (at = 0; at < BITS_TO_LONGS(camc_map->nr_colors); at++)
		sum += colors[at] ? cz->missed[at] : 0;
	return sum;
}

static void camc_unwatch(struct zone *zone, unsigned int color)
{
	struct camc_zone *cz = zone->camc;

	if (!test_bit(color, cz->watch))
		return;
	camc_unwatch_word(cz, BIT_WORD(color), BIT_MASK(color));
	zone->camc_watch = !bitmap_empty(cz->watch, camc_map->nr_colors);
}

void __camc_freed(struct zone *zone, unsigned long pfn, unsigned int order)
{
	struct camc_zone *cz = zone->camc;
	const struct camc_region *r = camc_region(camc_map, pfn);
	unsigned int first, at;

	if (!r)
		return;
	first = camc_region_color(r, pfn);
	/* Nearly all that is freed is one page. */
	if (!order) {
		camc_unwatch(zone, first);
		return;
	}
	for (at = 0; at < BITS_TO_LONGS(camc_map->nr_colors); at++)
		camc_unwatch_word(cz, at, camc_block_word(r, order, first, at));
	zone->camc_watch = !bitmap_empty(cz->watch, camc_map->nr_colors);
}

/* What is used up may be so no more: free pages came from where nobody searches. */
void __camc_forget(struct zone *zone)
{
	struct camc_zone *cz = zone->camc;

	bitmap_zero(cz->watch, CAMC_MAX_COLORS);
	bitmap_zero(cz->scarce, CAMC_MAX_COLORS);
	bitmap_zero(cz->empty, CAMC_MAX_COLORS);
	cz->forgot++; /* for searches that are under way */
	zone->camc_watch = false;
}

void camc_forget_all(void)
{
	unsigned long flags;
	struct zone *zone;

	for_each_populated_zone(zone) {
		if (zone->camc) {
			spin_lock_irqsave(&zone->lock, flags);
			__camc_forget(zone);
			spin_unlock_irqrestore(&zone->lock, flags);
		}
	}
}

static void camc_forget(struct zone *zone)
{
	if (zone->camc_watch && !time_before(jiffies, zone->camc->forget))
		__camc_forget(zone);
}

/* Is nothing left of all of these colors? */
static bool camc_used_up(struct zone *zone, const unsigned long *colors)
{
	DECLARE_BITMAP(left, CAMC_MAX_COLORS);
	struct camc_zone *cz = zone->camc;

	bitmap_and(left, colors, cz->has, camc_map->nr_colors);
	return !bitmap_andnot(left, left, cz->empty, camc_map->nr_colors);
}

static unsigned long camc_forget_after(const struct camc_zone *cz)
{
	return clamp_t(unsigned long, CAMC_FORGET_SEARCHES * cz->search, CAMC_FORGET,
		       CAMC_FORGET_MOST);
}

static void camc_watch_begin(struct zone *zone)
{
	struct camc_zone *cz = zone->camc;

	if (!zone->camc_watch) {
		cz->forget = jiffies + camc_forget_after(cz);
		cz->prolonged = false;
	}
	zone->camc_watch = true;
}

/*
 * The whole zone was searched. If it took longer than it used to, what was found lasts longer; but
 * once only, or those who search all the time would have it last for ever. A fast search may be
 * followed by slow ones, who need what they find, too.
 */
static void camc_searched(struct camc_zone *cz, unsigned long took)
{
	bool longer = took > cz->search;

	cz->search = max(took, cz->search / 2);
	if (longer && !cz->prolonged) {
		cz->forget = jiffies + camc_forget_after(cz);
		cz->prolonged = true;
	}
}

static void camc_watch(struct zone *zone, unsigned int color)
{
	camc_watch_begin(zone);
	__set_bit(color, zone->camc->watch);
}

/*
 * Bring pages of the wish to the lists. True: there are some, one of its color among them. If there
 * are none, and the request may have any page, the color is scarce. May release the lock, with
 * interrupts on meanwhile, before it finds something.
 */
static bool camc_refill(struct zone *zone, const struct camc_wish *wish, unsigned long *flags)
{
	bool cma = IS_ENABLED(CONFIG_CMA) && wish->alloc_flags & ALLOC_CMA;
	struct camc_zone *cz = zone->camc;

	if (camc_refill_first(zone, wish, cma))
		return true;
	/* What is freed while we breathe may be missed: then nobody watches it any more. */
	if (wish->all)
		camc_watch(zone, wish->color);
	if (camc_refill_more(zone, wish, cma, flags)) {
		if (wish->all)
			camc_unwatch(zone, wish->color);
		return true;
	}
	if (wish->all && test_bit(wish->color, cz->watch))
		__set_bit(wish->color, cz->scarce);
	return false;
}

/* How many pages are searched in one hold of the lock: they lie in one pageblock */
static unsigned long camc_search_nr(void)
{
	return min(CAMC_SEARCH, pageblock_nr_pages);
}

/*
 * A free block of the zone that begins before @pfn, and has it: its order, or 0 if there is none.
 * What is of another zone may be allocated meanwhile, and its order be anything.
 */
static unsigned int camc_block_around(const struct zone *zone, unsigned long pfn)
{
	unsigned int order;

	for (order = __ffs(pfn | 1UL << MAX_PAGE_ORDER) + 1; order < NR_PAGE_ORDERS; order++) {
		struct page *head = pfn_to_page(round_down(pfn, 1UL << order));

		if (PageBuddy(head) && page_zone(head) == zone && buddy_order(head) >= order)
			return buddy_order(head);
	}
	return 0;
}

/*
 * Split the first free block of this part of a pageblock that grants the wish. One that begins
 * before is looked at again: its head may have been freed after it was passed by.
 */
static bool camc_search_part(struct zone *zone, unsigned long pfn, const struct camc_wish *wish)
{
	unsigned long end = min(pfn + camc_search_nr(), zone_end_pfn(zone));
	unsigned int around;
	struct page *page;
	int mt;

	/* The zone may begin in the middle of a part. */
	pfn = max(pfn, zone->zone_start_pfn);
	page = pfn_to_online_page(pfn);
	if (!page || page_zone(page) != zone)
		return false;
	mt = get_pageblock_migratetype(page);
	if (mt >= MIGRATE_PCPTYPES && !(is_migrate_cma(mt) && wish->alloc_flags & ALLOC_CMA))
		return false;
	around = camc_block_around(zone, pfn);
	pfn = around ? round_down(pfn, 1UL << around) : pfn;
	while (pfn < end) {
		unsigned int order = 0;

		page = pfn_to_page(pfn);
		if (PageBuddy(page)) {
			order = buddy_order(page);
			if (camc_grants(wish, pfn, order)) {
				camc_extract(zone, page, order, mt, wish);
				return true;
			}
		}
		pfn += 1UL << order;
	}
	return false;
}

/*
 * Search the zone, a part of a pageblock per hold of the lock, from where the last search ended.
 * May sleep. O(pages of the zone), but a color that was found to be used up is not searched for
 * again. Who is being killed gives up: it may have any page.
 */
static struct page *camc_search(struct zone *zone, gfp_t gfp, unsigned int alloc_flags,
				const unsigned long *colors)
{
	DECLARE_BITMAP(mine, CAMC_MAX_COLORS);
	const struct camc_wish wish = {
		.color = CAMC_NO_COLOR, .colors = mine, .alloc_flags = alloc_flags,
	};
	unsigned long start = pageblock_start_pfn(zone->zone_start_pfn), flags;
	unsigned long parts = DIV_ROUND_UP(zone_end_pfn(zone) - start, camc_search_nr());
	unsigned int nr = camc_map->nr_colors;
	struct camc_zone *cz = zone->camc;
	unsigned long begun = jiffies, pfn, left = parts;
	struct page *page = NULL;
	unsigned int missed;

	/* Another thread may add some, which were not searched for from the beginning. */
	bitmap_copy(mine, colors, nr);
	spin_lock_irqsave(&zone->lock, flags);
	camc_watch_begin(zone);
	bitmap_or(cz->watch, cz->watch, mine, nr);
	missed = camc_missed(cz, mine);
	/* Others search at the same time, for other colors: each goes all the way. */
	pfn = cz->scan;
	while (left && !page && !fatal_signal_pending(current)) {
		left--;
		if (pfn < start || pfn >= zone_end_pfn(zone))
			pfn = start;
		cz->scan = pfn;
		if (!camc_search_part(zone, pfn, &wish))
			pfn += camc_search_nr();
		cz->stats[CAMC_SCANNED] += camc_search_nr();
		page = camc_pop_any(zone, mine, alloc_flags);
		if (!page) {
			spin_unlock_irqrestore(&zone->lock, flags);
			cond_resched();
			spin_lock_irqsave(&zone->lock, flags);
		}
	}
	if (!left)
		camc_searched(cz, jiffies - begun);
	/* Who may not use CMA areas has not seen all, nor has who was overtaken. */
	if (!page && !left && missed == camc_missed(cz, mine) &&
	    camc_sees_all(zone, alloc_flags)) {
		bitmap_and(mine, mine, cz->watch, nr);
		bitmap_or(cz->empty, cz->empty, mine, nr);
	}
	spin_unlock_irqrestore(&zone->lock, flags);
	trace_camc_search(zone, (parts - left) * camc_search_nr());
	/* as __camc_migration_target() asks */
	if (camc_uses_others() && gfp & __GFP_NORETRY) {
		current->camc_debt += (parts - left) * camc_search_nr();
		current->camc_lapse = jiffies + CAMC_FORGET_MOST;
	}
	return page;
}

/* ------ allocation and freeing ------------------------------------------ */

bool camc_has_memory(const struct zone *zone)
{
	return zone->camc && bitmap_intersects(current->camc_colors, zone->camc->has,
					       camc_map->nr_colors);
}

bool camc_owns(const struct page *page)
{
	unsigned int color = camc_color(page);

	return color != CAMC_NO_COLOR && test_bit(color, current->camc->colors);
}

/* The color that is to be used next, or CAMC_NO_COLOR if all are scarce: the last one's next */
static unsigned int camc_next(const struct camc_zone *cz, const unsigned long *colors)
{
	DECLARE_BITMAP(left, CAMC_MAX_COLORS);
	unsigned int color, nr = camc_map->nr_colors;

	bitmap_and(left, colors, cz->has, nr);
	if (!bitmap_andnot(left, left, cz->scarce, nr))
		return CAMC_NO_COLOR;
	color = find_next_bit(left, nr, current->camc_last + 1);
	return color < nr ? color : find_first_bit(left, nr);
}

/* Of a long list, after CAMC_FILL or a large munmap(), CAMC_BATCH pages are used in a row. */
static bool camc_turn_ends(const struct camc_list *list)
{
	return list->nr >= CAMC_LONG && list->nr % CAMC_BATCH == 0;
}

/* A page of the last color, as long as it has its turn: refills bring some of each */
static struct page *camc_rmqueue_last(struct camc_zone *cz)
{
	unsigned int color = current->camc_last;
	const struct camc_list *list;

	if (!test_bit(color, current->camc_colors))
		return NULL;
	list = &cz->lists[CAMC_ANY][color];
	if (!list->nr || camc_turn_ends(list))
		return NULL;
	return camc_list_take(cz, CAMC_ANY, color);
}

/* A page of the next color, so that all of them are used alike */
static struct page *camc_rmqueue_next(struct zone *zone, const struct camc_wish *wish,
				      unsigned long *flags)
{
	struct page *page;

	current->camc_last = wish->color;
	page = camc_pop(zone, wish->color, wish->alloc_flags);
	if (page)
		return page;
	/* Even if it finds nothing: others may have brought some meanwhile. */
	camc_refill(zone, wish, flags);
	return camc_pop(zone, wish->color, wish->alloc_flags);
}

/* The next color has its turn. Drops zone->lock. */
static noinline struct page *camc_rmqueue_turn(struct zone *zone, gfp_t gfp,
					       unsigned int alloc_flags, unsigned long flags)
	__releases(&zone->lock)
{
	struct camc_wish wish = {
		.colors = current->camc_colors,
		.alloc_flags = alloc_flags,
		.orders = NR_PAGE_ORDERS,
		.all = camc_sees_all(zone, alloc_flags) && !(alloc_flags & ALLOC_NOFRAGMENT),
	};
	unsigned int last = current->camc_last, failed = 0;
	struct camc_zone *cz = zone->camc;
	struct page *page;
	bool used_up;

	if (test_bit(last, wish.colors)) {
		if (camc_turn_ends(&cz->lists[CAMC_ANY][last]))
			current->camc_last = find_next_and_bit_wrap(wish.colors,
								    cz->listed[CAMC_ANY],
								    camc_map->nr_colors, last + 1);
		page = camc_pop(zone, current->camc_last, alloc_flags);
		if (page) {
			spin_unlock_irqrestore(&zone->lock, flags);
			return page;
		}
	}
	camc_forget(zone);
	if (READ_ONCE(camc_refill_mode) == CAMC_WALK) {
		page = camc_pop_any(zone, wish.colors, alloc_flags);
		if (!page && camc_walk(zone, wish.colors, &flags))
			page = camc_pop_any(zone, wish.colors, alloc_flags);
		if (page)
			goto out;
	}
	for (;;) {
		wish.color = camc_next(cz, wish.colors);
		if (wish.color != CAMC_NO_COLOR)
			page = camc_rmqueue_next(zone, &wish, &flags);
		else
			page = camc_pop_any(zone, wish.colors, alloc_flags);
		if (page || wish.color == CAMC_NO_COLOR ||
		    ++failed >= bitmap_weight(wish.colors, camc_map->nr_colors))
			break;
		/* one refill a hold of the lock */
		camc_breathe(zone, &flags);
	}
out:
	/* true as well if the zone has no memory of these colors */
	used_up = !page && camc_used_up(zone, wish.colors);
	spin_unlock_irqrestore(&zone->lock, flags);
	if (!page && !used_up && !(alloc_flags & ALLOC_NOFRAGMENT) &&
	    gfpflags_allow_blocking(gfp))
		page = camc_search(zone, gfp, alloc_flags, wish.colors);
	return page;
}

/*
 * A page of the colors of the task, or NULL: for get_page_from_freelist(), which looked at
 * watermarks, and will check and prepare it. O(1) if there is one on the lists. Without
 * ALLOC_NOFRAGMENT and with __GFP_DIRECT_RECLAIM, NULL means that there is none in the zone.
 */
struct page *camc_rmqueue(struct zone *zone, gfp_t gfp, unsigned int alloc_flags)
{
	struct camc_zone *cz = zone->camc;
	unsigned long flags;
	struct page *page;

	if (!cz)
		return NULL;
	spin_lock_irqsave(&zone->lock, flags);
	page = camc_rmqueue_last(cz);
	if (unlikely(!page))
		return camc_rmqueue_turn(zone, gfp, alloc_flags, flags);
	spin_unlock_irqrestore(&zone->lock, flags);
	return page;
}

/* Whatever others have collected, each color may have its share of what may be on lists. */
static bool camc_has_enough(const struct camc_zone *cz, unsigned int color)
{
	unsigned long nr = cz->lists[CAMC_ANY][color].nr + cz->lists[CAMC_CMA][color].nr;

	return cz->nr >= cz->max && nr >= cz->total[color] / CAMC_KEEP;
}

/* Does the task need a block of several pages, and moves others out of its way? */
static bool camc_compacts(void)
{
#ifdef CONFIG_COMPACTION
	return current->capture_control;
#else
	return false;
#endif
}

/*
 * Take a page of the task's colors that is being freed. While memory is short it goes to all. One
 * that stays on a per-CPU list keeps its buddies apart, so what does not go to a color list is
 * merged at once: when the task exits, when the lists have enough, and when it compacts, or the
 * block that it moves pages out of would never be a free one. Called with zone->lock held.
 */
static bool camc_take(struct zone *zone, struct page *page)
{
	struct camc_zone *cz = zone->camc;
	unsigned int color = camc_color(page);
	int mt = get_pageblock_migratetype(page);

	/* What is isolated has ways of its own. */
	if (is_migrate_isolate(mt))
		return false;
	if (current->flags & PF_EXITING || camc_compacts() || is_migrate_highatomic(mt) ||
	    camc_has_enough(cz, color) || camc_lists_disabled(zone) || camc_is_short(zone)) {
		camc_buddy_free(zone, page, mt);
	} else {
		camc_list_add(zone, page, color, mt);
		cz->stats[CAMC_RETURNED]++;
	}
	__count_vm_event(PGFREE);
	return true;
}

bool __camc_free(struct zone *zone, struct page *page)
{
	unsigned long flags;
	bool taken;

	if (!zone->camc || !camc_owns(page))
		return false;
	spin_lock_irqsave(&zone->lock, flags);
	taken = camc_take(zone, page);
	spin_unlock_irqrestore(&zone->lock, flags);
	return taken;
}

/* What is left in the batch is others' to free. */
void __camc_free_folios(struct folio_batch *folios)
{
	unsigned int i = 0, left = 0, end;
	unsigned long flags;

	while (i < folios->nr) {
		struct zone *zone = folio_zone(folios->folios[i]);

		if (!zone->camc) {
			folios->folios[left++] = folios->folios[i++];
			continue;
		}
		end = min(i + CAMC_BATCH, (unsigned int)folios->nr);
		spin_lock_irqsave(&zone->lock, flags);
		for (; i < end && folio_zone(folios->folios[i]) == zone; i++) {
			struct folio *folio = folios->folios[i];

			/* ->private is the order */
			if (folio->private || !camc_owns(&folio->page) ||
			    !camc_take(zone, &folio->page))
				folios->folios[left++] = folio;
		}
		spin_unlock_irqrestore(&zone->lock, flags);
	}
	folios->nr = left;
}

/*
 * Each of many pages that are moved may need a search, and others wait for an area or for memory to
 * go offline: so a task pays for what it searched, and does without before it has, or half a minute
 * went by.
 */
static bool camc_owes(void)
{
	unsigned long paid = min(current->camc_debt, CAMC_CREDIT);

	if (current->camc_debt && time_after(jiffies, current->camc_lapse))
		paid = current->camc_debt;
	current->camc_debt -= paid;
	return current->camc_debt > CAMC_OVERDRAFT;
}

/*
 * Where a page of a taken color is to be moved, so that it keeps its color. NULL: any
 * page will do, since none of the color was found, or nobody has it. It does: who pins the page for
 * long, or takes memory offline, fails if it cannot be moved. So the caller asks again, without
 * colors, whether or not the task has some.
 */
struct folio *__camc_migration_target(struct folio *src, gfp_t gfp, int nid, nodemask_t *nodes)
{
	DECLARE_BITMAP(colors, CAMC_MAX_COLORS);
	unsigned int color = camc_color(&src->page);
	const unsigned long *own;
	struct folio *folio;

	bitmap_zero(colors, CAMC_MAX_COLORS);
	__set_bit(color, colors);
	gfp = (gfp & ~(__GFP_RETRY_MAYFAIL | __GFP_NOFAIL)) | __GFP_NORETRY | __GFP_NOWARN;
	/* and leaves alone what is kept for who cannot sleep */
	if (camc_owes())
		gfp = (gfp & ~__GFP_DIRECT_RECLAIM) | __GFP_NOMEMALLOC;
	own = camc_use_colors(colors);
	folio = __folio_alloc(gfp, 0, nid, nodes);
	camc_use_colors(own);
	/* Reclaim that moves pages to another tier asks for any. */
	camc_count(folio && camc_color(&folio->page) == color ? CAMC_KEPT : CAMC_LOST);
	return folio;
}

/* ------ at the end of the colors ---------------------------------------- */

/*
 * Pages of the colors may be on per-CPU lists. Bring all of these to the free lists, but leave them
 * alone for CAMC_PAUSE then: a task at its end could go on to empty others' all the time.
 * Who comes earlier waits, at most for two such times and two drains, so that it misses nothing;
 * what was begun after it came will do. May sleep. drain_all_pages() would not do: it gives up if
 * anybody else drains, and takes others' color lists along.
 */
void camc_drain_pcp(void)
{
	static unsigned long begun = INITIAL_JIFFIES, ended = INITIAL_JIFFIES;
	static DEFINE_MUTEX(mutex);
	unsigned long came = jiffies;
	struct zone *zone;

	guard(mutex)(&mutex);
	if (time_after(begun, came))
		return;
	while (time_before(jiffies, ended + CAMC_PAUSE))
		schedule_timeout_uninterruptible(1);
	begun = jiffies;
	for_each_populated_zone(zone)
		if (zone->camc)
			camc_pcp_drain(zone, CAMC_BATCH);
	ended = jiffies;
}

void camc_foreign(void)
{
	camc_count(CAMC_FOREIGN);
}

void camc_lost(void)
{
	camc_count(CAMC_LOST);
}

/* The allocation fails for want of colors: a fault ends by SIGBUS, or it would be repeated. */
void camc_exhausted(void)
{
	camc_count(CAMC_EXHAUSTED);
	trace_camc_exhausted(current->camc->id);
	current->camc_failed = true;
}

vm_fault_t __camc_fault(vm_fault_t fault)
{
	if (!current->camc || !current->camc_failed || task_in_memcg_oom(current))
		return fault;
	current->camc_failed = false;
	return (fault & ~VM_FAULT_OOM) | VM_FAULT_SIGBUS;
}

/* ------ drain ----------------------------------------------------------- */

/* @cz: the lists of the zone, or those of a test */
unsigned long camc_drain_list(struct zone *zone, struct camc_zone *cz, unsigned int kind,
			      unsigned int color)
{
	struct camc_list *list = &cz->lists[kind][color];
	unsigned long flags, nr = 0, most;

	spin_lock_irqsave(&zone->lock, flags);
	for (most = list->nr; list->nr && nr < most; nr++) {
		struct page *page = list_last_entry(&list->pages, struct page, pcp_list);

		camc_list_del(cz, page, kind, color);
		/*
		 * A broken one only for memory_failure(), which disables the lists and looks for
		 * it there: from the free lists anybody would get it.
		 */
		if (!PageHWPoison(page) || camc_lists_disabled(zone))
			camc_buddy_free(zone, page, get_pageblock_migratetype(page));
		if (++cz->stats[CAMC_DRAINED] % CAMC_BATCH == 0) {
			spin_unlock_irqrestore(&zone->lock, flags);
			cond_resched();
			spin_lock_irqsave(&zone->lock, flags);
		}
	}
	spin_unlock_irqrestore(&zone->lock, flags);
	return nr;
}

/* Bring what the lists of the zone have of these colors (NULL: of all) back. */
static void camc_drain_zone(struct zone *zone, const unsigned long *colors)
{
	DECLARE_BITMAP(listed[CAMC_KINDS], CAMC_MAX_COLORS);
	struct camc_zone *cz = zone->camc;
	unsigned int kind, color;
	unsigned long flags, nr;

	if (!cz)
		return;
	/*
	 * With the lock: who holds it may have read high_max before zone_pcp_disable() cleared it,
	 * and be about to add a page.
	 */
	spin_lock_irqsave(&zone->lock, flags);
	nr = cz->nr;
	memcpy(listed, cz->listed, sizeof(listed));
	spin_unlock_irqrestore(&zone->lock, flags);
	if (!nr)
		return;
	nr = 0;
	for (kind = 0; kind < CAMC_KINDS; kind++)
		for_each_set_bit(color, listed[kind], camc_map->nr_colors)
			if (!colors || test_bit(color, colors))
				nr += camc_drain_list(zone, cz, kind, color);
	trace_camc_drain(zone, nr);
}

void camc_drain_colors(const unsigned long *colors)
{
	struct zone *zone;

	for_each_populated_zone(zone)
		camc_drain_zone(zone, colors);
}

/* All pages that are on the color lists of the zone (NULL: of all) go back. May sleep. */
void camc_drain(struct zone *zone)
{
	if (zone)
		camc_drain_zone(zone, NULL);
	else
		camc_drain_colors(NULL);
}

/*
 * All of the zones of a node up to @highest: it is free memory, and others already look for some
 * there. Reclaim of the whole node begins with it: the shrinker is asked only where reclaim comes
 * to the root of the memory cgroups. Next to nothing if there are none, else bounded by what is
 * there. May sleep.
 */
void __camc_drain_node(int nid, int highest)
{
	struct zone *zone;

	for_each_populated_zone(zone)
		if (zone_to_nid(zone) == nid && zone_idx(zone) <= highest &&
		    camc_nr_free_zone(zone))
			camc_drain(zone);
}

/* Who reclaims for himself has use for some zones; kswapd and who drops caches want all. */
static int camc_shrink_highest(const struct shrink_control *sc)
{
	if (current->flags & PF_MEMALLOC && !current_is_kswapd())
		return gfp_zone(sc->gfp_mask);
	return MAX_NR_ZONES - 1;
}

static unsigned long camc_nr_shrinkable(const struct shrink_control *sc)
{
	int highest = camc_shrink_highest(sc);
	unsigned long sum = 0;
	struct zone *zone;

	for_each_populated_zone(zone)
		if (zone_to_nid(zone) == sc->nid && zone_idx(zone) <= highest)
			sum += camc_nr_free_zone(zone);
	return sum;
}

static unsigned long camc_shrink_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	return camc_nr_shrinkable(sc) ?: SHRINK_EMPTY;
}

static unsigned long camc_shrink_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	unsigned long before = camc_nr_shrinkable(sc), after;

	__camc_drain_node(sc->nid, camc_shrink_highest(sc));
	after = camc_nr_shrinkable(sc);
	return before > after ? before - after : SHRINK_STOP;
}

/* ------ load, fill ------------------------------------------------------ */

/* Pages of the colors on the lists of a zone, which change as we add */
static unsigned long camc_nr_listed(const struct camc_zone *cz, const unsigned long *colors)
{
	unsigned int kind, color;
	unsigned long sum = 0;

	for_each_set_bit(color, colors, camc_map->nr_colors)
		for (kind = 0; kind < CAMC_KINDS; kind++)
			sum += data_race(cz->lists[kind][color].nr); /* as said */
	return sum;
}

/*
 * Would a fault of the task get more of this zone, if memory were short? Not what is kept for
 * requests that may have no other.
 */
static bool camc_may_collect(struct zone *zone)
{
	return zone_watermark_ok(zone, 0, high_wmark_pages(zone),
				 gfp_zone(GFP_HIGHUSER_MOVABLE), 0);
}

/*
 * Have @nr pages of the colors on the lists, as far as there are: how many there are then. In the
 * order in which faults of the task look for pages, and of each zone as many as all together keep
 * of what they free: who has these is not served by the next zone, while there is more in this one.
 * Who is @limited breaks up no block that may become a huge page: nobody accounts for that.
 * May sleep.
 */
unsigned long camc_fill(const unsigned long *colors, unsigned long nr, bool limited)
{
	unsigned int tries, most = bitmap_weight(colors, camc_map->nr_colors);
	unsigned long flags, sum = 0, here;
	struct zoneref *ref;
	struct zone *zone;

	for_each_zone_zonelist(zone, ref, node_zonelist(numa_mem_id(), GFP_HIGHUSER_MOVABLE),
			       gfp_zone(GFP_HIGHUSER_MOVABLE)) {
		struct camc_zone *cz = zone->camc;
		struct camc_wish wish = {
			.colors = colors,
			.orders = limited ? pageblock_order : NR_PAGE_ORDERS,
		};
		bool more = cz && bitmap_intersects(colors, cz->has, camc_map->nr_colors) &&
			    cpuset_zone_allowed(zone, GFP_HIGHUSER_MOVABLE);

		here = 0;
		/* all of them in turn, until one after the other had none */
		for (tries = 0; more; ) {
			here = camc_nr_listed(cz, colors);
			spin_lock_irqsave(&zone->lock, flags);
			more = sum + here < nr && here < cz->max && tries < most &&
			       !camc_lists_disabled(zone) && !fatal_signal_pending(current) &&
			       camc_may_collect(zone);
			if (more) {
				wish.color = find_next_bit(colors, camc_map->nr_colors,
							   wish.color + 1);
				if (wish.color >= camc_map->nr_colors)
					wish.color = find_first_bit(colors, camc_map->nr_colors);
				tries = camc_refill(zone, &wish, &flags) ? 0 : tries + 1;
			}
			spin_unlock_irqrestore(&zone->lock, flags);
			if (!more)
				sum += here;
			cond_resched();
		}
		if (cz && here >= cz->max)
			break;
	}
	return sum;
}

static void camc_zone_free(struct camc_zone *cz)
{
	unsigned int kind;

	if (!cz)
		return;
	for (kind = 0; kind < CAMC_KINDS; kind++)
		kvfree(cz->lists[kind]);
	kvfree(cz->total);
	kfree(cz);
}

static struct camc_zone *camc_zone_create(const struct camc_map *map, struct zone *zone)
{
	unsigned int kind, color, nr = map->nr_colors;
	struct camc_zone *cz = kzalloc(sizeof(*cz), GFP_KERNEL);
	unsigned long pfn;

	if (!cz)
		return NULL;
	cz->total = kvcalloc(nr, sizeof(*cz->total), GFP_KERNEL);
	for (kind = 0; kind < CAMC_KINDS; kind++) {
		cz->lists[kind] = kvcalloc(nr, sizeof(*cz->lists[kind]), GFP_KERNEL);
		if (!cz->lists[kind] || !cz->total) {
			camc_zone_free(cz);
			return NULL;
		}
		for (color = 0; color < nr; color++)
			INIT_LIST_HEAD(&cz->lists[kind][color].pages);
	}
	for (pfn = zone->zone_start_pfn; pfn < zone_end_pfn(zone); pfn++) {
		struct page *page = pfn_to_online_page(pfn);

		color = camc_map_color(map, pfn);
		if (page && page_zone(page) == zone && color != CAMC_NO_COLOR) {
			cz->total[color]++;
			__set_bit(color, cz->has);
		}
		if (!(pfn % pageblock_nr_pages))
			cond_resched();
	}
	cz->max = zone_managed_pages(zone) / CAMC_KEEP;
	cz->scan = pageblock_start_pfn(zone->zone_start_pfn);
	return cz;
}

/*
 * Begin to use a map, for good. Zones that get their first memory later have no colored pages.
 * Called once, before there are sets.
 */
int camc_load(const struct camc_map *map)
{
	struct camc_zone **made = kvcalloc(MAX_NUMNODES * MAX_NR_ZONES, sizeof(*made), GFP_KERNEL);
	struct shrinker *shrinker = shrinker_alloc(SHRINKER_NUMA_AWARE, "mm-camc");
	unsigned int nr = 0, i = 0;
	struct zone *zone;
	int err = -ENOMEM;

	if (!made || !shrinker)
		goto out;
	get_online_mems();
	for_each_populated_zone(zone) {
		made[nr] = camc_zone_create(map, zone);
		if (!made[nr++])
			goto unlock;
	}
	for_each_populated_zone(zone)
		/* Whoever drains or counts may look at it from now on, and finds it complete. */
		smp_store_release(&zone->camc, made[i++]);
	err = 0;
unlock:
	put_online_mems();
	if (err)
		goto out;
	/* Pairs with camc_loaded(): whoever sees the map may make sets. */
	smp_store_release(&camc_map, map);
	shrinker->count_objects = camc_shrink_count;
	shrinker->scan_objects = camc_shrink_scan;
	/* They are free pages: the least pressure brings them back, and all at once. */
	shrinker->seeks = 0;
	shrinker->batch = 1;
	shrinker_register(shrinker);
	kvfree(made);
	return 0;
out:
	while (nr)
		camc_zone_free(made[--nr]);
	kvfree(made);
	if (shrinker)
		shrinker_free(shrinker);
	return err;
}
