/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guaranteed contiguous memory: which evicted pages a full area takes, and which of
 * its tenants make room.
 */
#ifndef __MM_GCMA_ADMISSION_H
#define __MM_GCMA_ADMISSION_H

#include "gcma.h"

/* Pages per 2^GCMA_SAMPLE_SHIFT in each of the two admission samples. */
#define GCMA_SAMPLE_SHIFT	5

/* One page in so many is admitted to a full area under "seldom". */
#define GCMA_SELDOM_RATE	32

/* Sample hits after which older ones count half. */
#define GCMA_HITS_MAX		1024

#ifdef CONFIG_GCMA_ADMISSION

/* The sample that a page belongs to, by its hash. */
static inline enum gcma_list gcma_sample(u32 hash)
{
	switch (hash & ((1U << GCMA_SAMPLE_SHIFT) - 1)) {
	case 0:
		return GCMA_ALWAYS;
	case 1:
		return GCMA_SELDOM;
	default:
		return GCMA_FOLLOW;
	}
}

/* Has a sample its share of the frames? It lives on its own then. */
static inline bool gcma_has_share(const struct gcma *g, enum gcma_list list)
{
	return list != GCMA_FOLLOW &&
	       g->len[list] >=
	       atomic_long_read(&g->cma->reserve->nr_available) >>
	       GCMA_SAMPLE_SHIFT;
}

/* Are pages of @list admitted seldom now? */
static inline bool gcma_seldom(struct gcma *g, enum gcma_list list)
{
	enum gcma_admission admission = READ_ONCE(g->admission);

	if (admission != GCMA_ADMIT_ADAPTIVE)
		return admission == GCMA_ADMIT_SELDOM;
	if (list == GCMA_FOLLOW)
		return READ_ONCE(g->hits[GCMA_SELDOM]) * 2 >
		       READ_ONCE(g->hits[GCMA_ALWAYS]) * 3;
	return list == GCMA_SELDOM;
}

/* May a folio of @list take the frame of a tenant of its own list? */
static inline bool gcma_admit(struct gcma *g, enum gcma_list list)
{
	if (!gcma_seldom(g, list))
		return true;
	/* An increment may get lost: one page in about so many. */
	return !(data_race(g->skipped++) % GCMA_SELDOM_RATE);
}

void __gcma_note_hit(struct gcma *g, enum gcma_list list);

static inline void gcma_note_hit(struct gcma *g, enum gcma_list list)
{
	if (list != GCMA_FOLLOW)
		__gcma_note_hit(g, list);
}

#else /* what is evicted last is admitted */

static inline enum gcma_list gcma_sample(u32 hash)
{
	return GCMA_FOLLOW;
}

static inline bool gcma_has_share(const struct gcma *g, enum gcma_list list)
{
	return false;
}

static inline bool gcma_admit(struct gcma *g, enum gcma_list list)
{
	return true;
}

static inline void gcma_note_hit(struct gcma *g, enum gcma_list list)
{
}

#endif

#endif /* __MM_GCMA_ADMISSION_H */
