/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guaranteed contiguous memory: what mm/cma*.c and mm/gcma*.c share.
 */
#ifndef __MM_GCMA_H
#define __MM_GCMA_H

#include <linux/atomic.h>
#include <linux/gcma.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "cma.h"

/* Is the time of each cma_alloc() counted? */
#define CMA_LATENCY \
	(IS_ENABLED(CONFIG_GCMA) && IS_ENABLED(CONFIG_CMA_DEBUGFS))

/*
 * States of a frame, in the low bits of gcma_frame.word; the rest of the word
 * is the generation, which changes whenever the frame loses its tenant.
 *
 *   FREE --store_begin--> STORING --commit--> STORED --load,drop--> LOADING
 *    ^                       | end              | recycle: STORING     |
 *    +-----------------------+------------------+----------------------+
 *
 * STORING and LOADING have an owner, the task that brought the frame there: it
 * alone may touch the key and the shadow and must bring the frame out again.
 * Every way out of STORED is a cmpxchg, so that only one task becomes owner.
 */
enum gcma_state {
	GCMA_FREE,
	GCMA_STORING,
	GCMA_STORED,
	GCMA_LOADING,
};

#define GCMA_STATE_BITS	2
#define GCMA_STATE_MASK	((1U << GCMA_STATE_BITS) - 1)

/* A frame is on one of these lists, or on none after it was found revoked. */
enum gcma_list {
	GCMA_FREE_LIST,		/* frames to lend, in the order to lend them */
	GCMA_ALWAYS,		/* sample of pages that are always admitted */
	GCMA_SELDOM,		/* sample of pages that are seldom admitted */
	GCMA_FOLLOW,		/* all others follow the better sample */
	GCMA_NR_LISTS
};

#define GCMA_UNLINKED	U32_MAX

/**
 * struct gcma_frame - one page of an area
 * @word: generation << GCMA_STATE_BITS | state
 * @index: key: page offset of the tenant in @mapping
 * @mapping: key: never dereferenced, its owner may be gone
 * @shadow: the shadow entry of the evicted page
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

/* Counters of an area, in pages; gcma_count_pages() knows the order. */
enum gcma_stat {
	GCMA_STORES,
	GCMA_LOADS,
	GCMA_MISSES,		/* a tenant entry was found but not its tenant */
	GCMA_RECYCLES,		/* tenants replaced by others, never loaded */
	GCMA_DROPPED,		/* tenants whose page was truncated, ... */
	GCMA_REVOKED,		/* tenants whose frame a primary took */
	GCMA_REFUSED_FS,
	GCMA_REFUSED_LARGE,
	GCMA_REFUSED_PRIVATE,
	GCMA_REFUSED_ADMISSION,
	GCMA_REFUSED_BUSY,
	GCMA_NR_STATS
};

struct gcma_stats {
	unsigned long n[GCMA_NR_STATS];
};

enum gcma_admission {
	GCMA_ADMIT_ADAPTIVE,
	GCMA_ADMIT_ALWAYS,
	GCMA_ADMIT_SELDOM,
};

/**
 * struct gcma - an area whose frames never enter the buddy allocator
 * @cma: the area; a bit set in @cma->bitmap means a primary holds the frame
 * @id: position in gcma_areas[], part of every tenant entry
 * @nr_frames: size of @frames; 0 for policy none, which has no tenants
 * @nr_available: pages not held by primaries
 * @lock: protects the lists and admission; nests inside i_pages, outermost of
 *	its own; irqs off because i_pages is taken in interrupts
 * @frames: the frame table, then GCMA_NR_LISTS list heads
 * @len: frames on each list
 * @hits: loads from each sample, aged
 * @skipped: refusals since the last page admitted under "seldom"
 * @admission: how to admit; adaptive unless an administrator said otherwise
 * @stats: counters
 * @leaving: bits that were released and are not free yet
 * @quarantine: subset of @leaving that waits for somebody's page reference
 * @work: looks after @quarantine
 */
struct gcma {
	struct cma *cma;
	unsigned int id;
	unsigned long nr_frames;
	atomic_long_t nr_available;

	spinlock_t lock; /* see above */
	struct gcma_frame *frames;
	unsigned long len[GCMA_NR_LISTS];
	unsigned int hits[GCMA_NR_LISTS];
	unsigned int skipped;
	enum gcma_admission admission;
	struct gcma_stats __percpu *stats;

	unsigned long *leaving;
	unsigned long *quarantine;
	struct delayed_work work;
};

extern const char * const gcma_policies[];

unsigned long gcma_stat(const struct gcma *g, enum gcma_stat item);
unsigned long gcma_count_tenants(const struct gcma *g);
bool gcma_revoked(const struct gcma *g, unsigned long frame);

static inline enum gcma_state gcma_frame_state(const struct gcma_frame *f)
{
	return atomic_read(&f->word) & GCMA_STATE_MASK;
}

/* Frames of the area stay out of the buddy allocator: policies none and gcma. */
static inline bool cma_reserved(const struct cma *cma)
{
	return IS_ENABLED(CONFIG_GCMA) && cma->gcma;
}

bool __init gcma_activate(struct cma *cma);

void gcma_latency_end(struct cma *cma, u64 start);
void gcma_debugfs_add(struct cma *cma, struct dentry *dir);
int gcma_take_range(struct cma *cma, unsigned long pfn, unsigned long count,
		    gfp_t gfp);
bool gcma_release_range(struct cma *cma, unsigned long pfn,
			unsigned long count);

#endif /* __MM_GCMA_H */
