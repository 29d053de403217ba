// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guaranteed contiguous memory: admission
 *
 * A page cache eviction is worth a frame if the page is read again before the
 * frame is recycled. First in first out, which is what recycling the oldest
 * tenant amounts to, makes the area the tail of the page cache's LRU, and an LRU
 * is worth nothing for a loop a little longer than it is. Admitting seldom makes
 * some of the loop stay, but is slow to follow a change of the working set.
 *
 * Two samples of all pages, told by their hash, tell which is better: each has
 * its share of the frames for itself and always lives by one of the two rules.
 * The others are admitted seldom only while that sample had clearly more loads
 * of late: where both rules do well, as when nearly all fits, always is the one
 * that follows a change. (Set dueling: Qureshi et al., "Adaptive insertion
 * policies for high performance caching", ISCA 2007; that a hashed sample
 * predicts the whole: Waldspurger et al., "Efficient MRC construction with
 * SHARDS", FAST 2015.)
 */

#include "gcma_admission.h"

/* A tenant of @list, a sample, was loaded. Context: gcma.lock held. */
void __gcma_note_hit(struct gcma *g, enum gcma_list list)
{
	if (++g->hits[list] > GCMA_HITS_MAX) {
		g->hits[GCMA_ALWAYS] /= 2;
		g->hits[GCMA_SELDOM] /= 2;
	}
}
