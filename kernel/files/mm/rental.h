/* SPDX-License-Identifier: GPL-2.0-only */
/* Rental memory: what mm/rental*.c share. */
#ifndef __MM_RENTAL_H
#define __MM_RENTAL_H

#include <linux/rental.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>

#include "cma_reserve.h"

#define RENTAL_COUNTER(name) + 1
enum {
	RENTAL_NR_COUNTERS = 0
#include <linux/rental_counters.h>
};

/* How an area is lent and returned, as the paper names it (section 6.2): each adds to the last. */
enum rental_scheme {
	RENTAL_NOCLEAN,		/* only to the page cache */
	RENTAL_CLEAN,		/* only to clean pages of it */
	RENTAL_LAZY,		/* also to those that reclaim would evict */
	RENTAL_ADAPTIVE,	/* a return keeps pages in use for which there is room */
};

#define RENTAL_NR_VAIN	8

/*
 * Who wrote to a page of the file waited in vain for who has it, a second before @until (jiffies).
 * @mapping is compared only, as it may be gone.
 */
struct rental_vain {
	const struct address_space *mapping;
	unsigned long until;
};

/**
 * struct rental - the idle frames of an area, and who has them
 * @cma: the area
 * @lock: protects what follows, up to @hand; innermost, taken with interrupts off
 * @idle: frames that may be lent
 * @lent: frames that somebody has; idle ones and these have nothing in common, and neither
 *	lie in a range that a primary has, but for the time of its return
 * @nr_idle: bits of @idle
 * @nr_lent: bits of @lent
 * @nr_unevictable: lent pages on lists of unevictable ones
 * @held: frame for which a return failed, known until @held_until (jiffies)
 * @held_until: see there
 * @held_mapping: whose page it had, to be compared only
 * @held_index: which; %RENTAL_FROZEN if it was out of the page cache and not free yet
 * @stuck: it did not come home, and nobody was seen to hold it
 * @in_vain: files, by the hash of their address, whose writers waited in vain
 * @hand: where to look for the next idle frame
 * @scheme: see there
 * @dirtied: how often a folio was marked dirty there
 * @cleaned: @dirtied before the last look at all of them, of which none stays dirty
 * @clean_work: moves dirty pages out
 * @counters: events since boot
 */
struct rental {
	struct cma *cma;
	spinlock_t lock; /* of idle, lent, their numbers and hand */
	unsigned long *idle;
	unsigned long *lent;
	unsigned long nr_idle;
	unsigned long nr_lent;
	unsigned long hand;
	unsigned long held;
	unsigned long held_until;
	const void *held_mapping;
	pgoff_t held_index;
	bool stuck;
	struct rental_vain in_vain[RENTAL_NR_VAIN];
	enum rental_scheme scheme;
	atomic_long_t nr_unevictable;
	atomic_long_t dirtied;
	long cleaned;
	struct delayed_work clean_work;
	atomic_long_t counters[RENTAL_NR_COUNTERS];
};

/* The rental pool of an area, NULL if its policy is another one */
static inline struct rental *rental_of(const struct cma *cma)
{
	return cma->reserve && cma->reserve->ops == &rental_policy ?
	       cma->reserve->tenants : NULL;
}

static inline long rental_counter(const struct rental *r, enum vm_event_item item)
{
	return atomic_long_read(&r->counters[item - RENTAL_lends]);
}

#endif /* __MM_RENTAL_H */
