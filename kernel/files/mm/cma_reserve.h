/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CMA areas that stay out of the buddy allocator: what mm/cma*.c and the
 * policies of such areas share.
 */
#ifndef __MM_CMA_RESERVE_H
#define __MM_CMA_RESERVE_H

#include <linux/atomic.h>
#include <linux/cma.h>
#include <linux/workqueue.h>

#include "cma.h"

struct cma_reserve;

/**
 * struct cma_policy - what an area is used for while nobody has allocated it
 * @name: as it is written on the command line and in the device tree
 * @create: the area becomes active: make @tenants. Boot, may sleep. 0 or an error
 * @revoke: the bits of the range were just set: when this returns 0, nobody touches
 *	its memory any more; else the range is given back. Process context, no lock held
 * @scrub: a primary left the range, whose bits are still set: forget what was in
 *	its frames before. Any context, no lock held: the last reference to a huge page may go
 *	in a hard interrupt, when I/O ends
 * @lend: the bits of the range were just cleared: it may be used again. As @scrub
 * @letter: what a frame that no primary has is used for, for the file frames: '.' is
 *	nothing. Just now: nothing is locked. May sleep
 *
 * @scrub and @lend get large ranges in parts, and may keep interrupts off for each.
 *
 * A policy that does nothing with its idle frames needs no operations. Those it has
 * come together. Ranges are in frames: pages from the beginning of the area.
 */
struct cma_policy {
	const char *name;
	int (*create)(struct cma_reserve *r);
	int (*revoke)(struct cma_reserve *r, unsigned long frame, unsigned long count);
	void (*scrub)(struct cma_reserve *r, unsigned long frame, unsigned long count);
	void (*lend)(struct cma_reserve *r, unsigned long frame, unsigned long count);
	char (*letter)(const struct cma_reserve *r, unsigned long frame);
};

/**
 * struct cma_reserve - an area whose frames never enter the buddy allocator
 * @cma: the area; a bit set in @cma->bitmap means a primary holds the frames
 * @ops: operations of its policy, NULL if it has none
 * @tenants: what the policy keeps in idle frames, NULL if nothing
 * @nr_available: pages not held by primaries; more for a moment, never fewer than there are
 * @leaving: bits that were released and are not free yet
 * @quarantine: subset of @leaving that waits for somebody's page reference
 * @work: looks after @quarantine
 *
 * @leaving and @quarantine are protected by @cma->lock, as @cma->bitmap is.
 */
struct cma_reserve {
	struct cma *cma;
	const struct cma_policy *ops;
	void *tenants;
	atomic_long_t nr_available;
	unsigned long *leaving;
	unsigned long *quarantine;
	struct delayed_work work;
};

/* A row of cma_policies[] each. */
extern const struct cma_policy gcma_policy;
extern const struct cma_policy rental_policy;

/* Frames of the area stay out of the buddy allocator. */
static inline bool cma_reserved(const struct cma *cma)
{
	return IS_ENABLED(CONFIG_CMA_RESERVE) && cma->reserve;
}

static inline struct page *cma_page(const struct cma *cma, unsigned long frame)
{
	return pfn_to_page(cma->base_pfn + frame);
}

int cma_reserve_create(struct cma *cma);
void cma_reserve_free(struct cma_reserve *r);
bool cma_reserve_activate(struct cma *cma);
int cma_reserve_take(struct cma *cma, unsigned long pfn, unsigned long count, gfp_t gfp);
bool cma_reserve_release(struct cma *cma, unsigned long pfn, unsigned long count);
bool cma_make_compound(struct page *page, unsigned long count);

#endif /* __MM_CMA_RESERVE_H */
