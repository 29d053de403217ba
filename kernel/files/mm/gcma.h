/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guaranteed contiguous memory: what mm/gcma*.c share.
 */
#ifndef __MM_GCMA_H
#define __MM_GCMA_H

#include <linux/gcma.h>
#include <linux/percpu.h>
#include <linux/vmstat.h>

#include "cma_reserve.h"

/*
 * States of a frame, in the low bits of gcma_frame.word; the list that the page belongs on
 * follows, and a bit that tells whether it was swapped out; the rest of the word is the
 * generation, which changes whenever the frame is lent.
 *
 *   FREE --store_begin--> OWNED --store_commit--> STORED --load, drop--> OWNED
 *    ^                      | end                   | recycle             | end
 *    +----------------------+-----------------------+---------------------+
 *
 * An owned frame is that of the task that brought it there: it alone may touch the
 * key and the shadow and must bring the frame out again. Every way out of STORED is
 * atomic, so that only one task becomes owner. A primary that comes and goes leaves
 * nothing INTACT: what was STORED is FREE, what was OWNED is LOST, which its owner
 * finds out.
 */
#define GCMA_INTACT	1U
#define GCMA_OWNER	2U

enum gcma_state {
	GCMA_FREE,
	GCMA_STORED = GCMA_INTACT,
	GCMA_LOST = GCMA_OWNER,
	GCMA_OWNED = GCMA_OWNER | GCMA_INTACT,
};

#define GCMA_STATE_MASK	3U
#define GCMA_LIST_SHIFT	2
#define GCMA_LIST_MASK	(7U << GCMA_LIST_SHIFT)
#define GCMA_SWAP_BIT	32U
#define GCMA_GEN_SHIFT	6

/* A frame is on one of these lists, or on none after it was found revoked. */
enum gcma_list {
	GCMA_FREE_LIST,		/* frames to lend, in the order to lend them */
	GCMA_ALWAYS,		/* sample of pages that are always admitted */
	GCMA_SELDOM,		/* sample of pages that are seldom admitted */
	GCMA_FOLLOW,		/* all others follow the better sample, but for */
	GCMA_HOT,		/* those that were in use: part of the working set, but for */
	GCMA_HOT_SAMPLE,	/* a sample of these, which tells whether they come back */
	GCMA_FAST,		/* those on a device as fast as memory: make room first */
	GCMA_DIRTY,		/* those that are nowhere else: never make room */
	GCMA_NR_LISTS
};

static_assert(GCMA_NR_LISTS - 1 <= GCMA_LIST_MASK >> GCMA_LIST_SHIFT);

static inline bool gcma_is_hot(enum gcma_list list)
{
	return list == GCMA_HOT || list == GCMA_HOT_SAMPLE;
}

/* What becomes of a page that is to be written to swap, and then of its frame */
enum gcma_swap_policy {
	GCMA_WRITE_THROUGH,	/* it is written: the copy can be thrown away */
	GCMA_WRITE_BACK,	/* it is kept: put back and written when a primary comes */
	GCMA_PUT_BACK,		/* the same: put back into memory */
	GCMA_MOVE_ASIDE,	/* the same: moved to another frame */
};

#define GCMA_UNLINKED	U32_MAX

/**
 * struct gcma_frame - one page of an area
 * @word: generation << GCMA_GEN_SHIFT | swapped out or not | list | state
 * @index: key: page offset of the tenant in @mapping
 * @mapping: key: never dereferenced, its owner may be gone
 * @shadow: the shadow entry of the evicted page; before, the copy of another page of
 *	the same folio
 * @prev: neighbour on its list, an index into gcma.frames
 * @next: the same; GCMA_UNLINKED if on no list
 *
 * 32 bytes on 64-bit machines: 0.8 % of the area.
 */
struct gcma_frame {
	atomic_t word;
	u32 index;
	struct address_space *mapping;
	void *shadow;
	u32 prev;
	u32 next;
};

#define GCMA_NR_COUNTERS	(GCMA_refused_passed - GCMA_stores + 1)

enum gcma_admission {
	GCMA_ADMIT_ADAPTIVE,
	GCMA_ADMIT_ALWAYS,
	GCMA_ADMIT_SELDOM,
	GCMA_ADMIT_HARDLY,	/* not for an administrator to choose */
};

/**
 * struct gcma - the tenants of an area
 * @cma: the area
 * @base_pfn: its first page
 * @nr_frames: its size, and that of @frames without the list heads
 * @first: frames of the areas before it: number of its first one in tenant entries
 * @lock: protects the lists and admission; nests inside i_pages, outermost of
 *	its own; irqs off because i_pages is taken in interrupts
 * @frames: the frame table, then GCMA_NR_LISTS list heads
 * @len: frames on each list
 * @unfilled: free frames that held nothing since they were new or a primary left them, as far
 *	as that is known: see gcma_filled()
 * @unused: so many free frames are filled yet under any rule, at first as many as there are; one
 *	that is given back by a load and filled again counts again
 * @offers: pages of each sample that were evicted, aged
 * @hits: loads from each sample, aged with the offers
 * @lost: pages of each sample that were read again too late, aged likewise
 * @since: offers to both samples since they were last halved
 * @fresh: the same of hits
 * @loads: the same of hits of all lists but those of hot and of dirty ones
 * @since_hot: offers to the sample of hot pages since they were last halved
 * @turn: the more the nearer is the turn of a hot one to make room: see GCMA_HOT_TURN
 * @cool: hot pages do not come back before they make room: they are as all others
 * @losing: what is read again of both samples is lost
 * @skipped: pages that "seldom" was asked about
 * @admission: how to admit; adaptive unless an administrator said otherwise
 * @better: how to admit what follows the samples
 * @counters: see include/linux/gcma_counters.h
 * @swap_policy: what becomes of pages that are to be written to swap
 * @dirty_max: how many tenants may be nowhere else; new ones are in the last frames
 * @nr_dirty: how many are, or are about to be
 * @hand: behind the last frame that was tried for one
 * @full: none of these frames is to be had, as far as that is known: each is dirty, a primary's,
 *	or its memory is bad
 * @hibernates: there are to be none, for the system is to hibernate
 * @dirty: which frames hold them; see mm/gcma_dirty.c
 */
struct gcma {
	struct cma *cma;
	unsigned long base_pfn;
	u32 nr_frames;
	u32 first;
	spinlock_t lock; /* see above */
	struct gcma_frame *frames;
	unsigned long len[GCMA_NR_LISTS];
	u32 unfilled;
	u32 unused;
	unsigned int offers[GCMA_NR_LISTS];
	unsigned int hits[GCMA_NR_LISTS];
	unsigned int lost[GCMA_NR_LISTS];
	unsigned int since;
	unsigned int fresh;
	unsigned int loads;
	unsigned int since_hot;
	unsigned long turn;
	bool cool;
	bool losing;
	unsigned int skipped;
	enum gcma_admission admission;
	enum gcma_admission better;
	unsigned long __percpu *counters;
#ifdef CONFIG_GCMA_DIRTY
	enum gcma_swap_policy swap_policy;
	u32 dirty_max;
	atomic_t nr_dirty;
	u32 hand;
	bool full;
	bool hibernates;
	unsigned long *dirty;
#endif
};

/* The tenants of an area; NULL if its policy is another, or it is not active. */
static inline struct gcma *gcma_of(const struct cma *cma)
{
	return cma->reserve && cma->policy == &gcma_policy ?
	       cma->reserve->tenants : NULL;
}

static inline enum gcma_state gcma_frame_state(const struct gcma_frame *f)
{
	return atomic_read(&f->word) & GCMA_STATE_MASK;
}

/* True if a primary holds the frame, or has released it and it is not scrubbed. */
static inline bool gcma_revoked(const struct gcma *g, unsigned long frame)
{
	return test_bit(frame >> g->cma->order_per_bit, g->cma->bitmap);
}

/* Counts pages, for the area and for /proc/vmstat. */
static __always_inline void gcma_count(struct gcma *g, enum vm_event_item item,
				       long pages)
{
	this_cpu_add(g->counters[item - GCMA_stores], pages);
	count_vm_events(item, pages);
}

unsigned long gcma_counter(const struct gcma *g, enum vm_event_item item);
void *gcma_mk_entry(const struct gcma *g, u32 frame, u32 word);
struct gcma *gcma_area(const struct address_space *mapping, pgoff_t index);
bool gcma_take_frame(struct gcma *g, u32 frame);
void *gcma_own(struct gcma *g, u32 frame, enum gcma_list list,
	       struct address_space *mapping, pgoff_t index, void *copies);
void gcma_disown(struct gcma *g, u32 frame);
bool gcma_is_of(const struct gcma *g, u32 frame, void *entry);
bool gcma_names(const struct gcma *g, u32 frame, void *entry,
		const struct address_space *mapping, pgoff_t index);
struct gcma *gcma_claim(void *entry, u32 *frame, const struct address_space *mapping,
			pgoff_t index);
void gcma_put(struct gcma *g, u32 frame, enum vm_event_item what);
void gcma_copy_data(struct page *to, struct page *from);
void *gcma_fill(struct address_space *mapping, struct folio *folio, pgoff_t index,
		void **shadow);
struct gcma *gcma_rd_entry(void *entry, u32 *frame);
bool gcma_give_up(struct address_space *mapping, pgoff_t index);
void gcma_miss(void *entry, const struct address_space *mapping, pgoff_t index);
void gcma_put_all(void *copies, enum vm_event_item what);

#ifdef CONFIG_GCMA_SWAP
bool gcma_swap_cheap(const struct folio *folio);
bool gcma_swap_fast(const struct folio *folio);
#else
static inline bool gcma_swap_cheap(const struct folio *folio)
{
	return false;
}

static inline bool gcma_swap_fast(const struct folio *folio)
{
	return false;
}
#endif

/* How often to try what did not work, or look for what is about to go, a tick each. */
#define GCMA_DIRTY_TRIES	32U

#ifdef CONFIG_GCMA_DIRTY
/* Does the frame hold what is nowhere else, or is about to? */
static inline bool gcma_is_dirty(const struct gcma *g, u32 frame)
{
	return gcma_dirty_enabled() && test_bit(frame, g->dirty);
}

static inline unsigned long gcma_nr_dirty(const struct gcma *g)
{
	return atomic_read_acquire(&g->nr_dirty); /* pairs with gcma_dirty_clear() */
}

/* One of the last frames may be had for a dirty tenant again. Context: gcma.lock held. */
static inline void gcma_dirty_room(struct gcma *g)
{
	WRITE_ONCE(g->full, false);
}

int gcma_dirty_create(struct gcma *g);
void gcma_dirty_free(struct gcma *g);
void gcma_dirty_clear(struct gcma *g, u32 frame);
long gcma_take_far(struct gcma *g, u32 first);
bool gcma_copies_failed(void *copies);
bool gcma_dirty_load(struct address_space *mapping, struct folio *folio, pgoff_t index,
		     void **shadow);
int gcma_evacuate(struct gcma *g, u32 frame, u32 count);
bool gcma_dirty_stays(struct gcma *g, u32 frame, unsigned int *tries);
int gcma_set_swap_policy(struct gcma *g, enum gcma_swap_policy policy);
int gcma_set_dirty_max(struct gcma *g, u32 max);
#else
static inline bool gcma_is_dirty(const struct gcma *g, u32 frame)
{
	return false;
}

static inline unsigned long gcma_nr_dirty(const struct gcma *g)
{
	return 0;
}

static inline void gcma_dirty_room(struct gcma *g)
{
}

static inline int gcma_dirty_create(struct gcma *g)
{
	return 0;
}

static inline void gcma_dirty_free(struct gcma *g)
{
}

static inline void gcma_dirty_clear(struct gcma *g, u32 frame)
{
}

static inline bool gcma_dirty_load(struct address_space *mapping, struct folio *folio,
				   pgoff_t index, void **shadow)
{
	return false;
}

static inline int gcma_evacuate(struct gcma *g, u32 frame, u32 count)
{
	return 0;
}

static inline bool gcma_dirty_stays(struct gcma *g, u32 frame, unsigned int *tries)
{
	return false;
}
#endif

#endif /* __MM_GCMA_H */
