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
 * of what it was offered of late, or the other one few of what was read again: where
 * both rules do well, as when nearly all fits, always is the one that follows a change.
 * If neither has had any loads to speak of lately, as with a stream, hardly any page is
 * worth a copy, even to a free frame, but for the first fill of a new area, as many free
 * frames as it has (see gcma_room()): none is but the samples'. Nor are frames filled that
 * a primary left while both samples lose what is read again: if it has them again and
 * again, it takes a shadow with each page. All counts fade as pages are offered, so a
 * rule is not judged by what it was worth before the load changed. (Set dueling: Qureshi
 * et al., "Adaptive insertion policies for high performance caching", ISCA 2007; that a
 * hashed sample predicts the whole: Waldspurger et al., "Efficient MRC construction with
 * SHARDS", FAST 2015.)
 *
 * Pages that the page cache knows as its working set are not part of this, but that
 * one of them, if it comes back too late, counts as lost for the sample of its hash,
 * for nobody knows any more what it was, while its loads count for its own list. They
 * are admitted always, and replace those that were read once as long as these have
 * more than an eighth of the frames: so a scan does not push out what is in use,
 * and what was in use long ago makes room for what is now, and for others in the end.
 * That is so while of a third sample, of these pages alone, one is loaded while eight
 * are recycled. A set in use that is larger than memory and area is as good as a scan,
 * and worse: what is recycled loses its shadow, by which the page cache would have
 * known that the page is in use when it is read again.
 */

#include "gcma_admission.h"

/* Of what is read again of a sample, are few pages loaded? */
static bool gcma_loses(const struct gcma *g, enum gcma_list list)
{
	return g->hits[list] * GCMA_ALWAYS_RATE < g->hits[list] + g->lost[list];
}

/* The rule that the samples say is better. Context: gcma.lock held. */
static enum gcma_admission gcma_judge(struct gcma *g)
{
	const unsigned int *hits = g->hits, *offers = g->offers;
	bool few = g->fresh * GCMA_HARDLY_RATE < g->since;

	WRITE_ONCE(g->losing, gcma_loses(g, GCMA_ALWAYS) && gcma_loses(g, GCMA_SELDOM));
	/*
	 * What is read together is in one sample, or in none, so a sample may have hits by
	 * the dozen or not at all. All pages, of which the samples are 2 of
	 * 2^GCMA_SAMPLE_SHIFT, are less of a chance, if they are admitted; if not, the
	 * windows before are.
	 */
	if (g->better == GCMA_ADMIT_HARDLY)
		few = few || (hits[GCMA_ALWAYS] + hits[GCMA_SELDOM]) * GCMA_HARDLY_RATE <
			     offers[GCMA_ALWAYS] + offers[GCMA_SELDOM];
	else
		few = few && g->loads * GCMA_HARDLY_RATE < g->since << (GCMA_SAMPLE_SHIFT - 1);
	if (few)
		return GCMA_ADMIT_HARDLY;
	if (gcma_loses(g, GCMA_ALWAYS))
		return GCMA_ADMIT_SELDOM;
	return 2ULL * hits[GCMA_SELDOM] * offers[GCMA_ALWAYS] >
	       3ULL * hits[GCMA_ALWAYS] * offers[GCMA_SELDOM] ?
	       GCMA_ADMIT_SELDOM : GCMA_ADMIT_ALWAYS;
}

/* After so many offers older ones count half. */
static unsigned long gcma_window(const struct gcma *g)
{
	return max(GCMA_WINDOW, gcma_share(g) / 2);
}

bool __gcma_offer(struct gcma *g, enum gcma_list list)
{
	enum gcma_list i;

	/* Without a frame for them the samples tell nothing. */
	if (!gcma_share(g))
		return true;
	g->offers[list]++;
	if (++g->since >= gcma_window(g)) {
		WRITE_ONCE(g->better, gcma_judge(g));
		for (i = GCMA_ALWAYS; i <= GCMA_SELDOM; i++) {
			g->offers[i] /= 2;
			g->hits[i] /= 2;
			g->lost[i] /= 2;
		}
		g->since = 0;
		g->fresh = 0;
		g->loads = 0;
	}
	return g->len[list] >= gcma_share(g);
}

static void gcma_judge_hot(struct gcma *g)
{
	unsigned int rate = g->cool ? GCMA_HOT_RATE / 2 : GCMA_HOT_RATE;

	WRITE_ONCE(g->cool, g->hits[GCMA_HOT_SAMPLE] * rate < g->offers[GCMA_HOT_SAMPLE]);
	g->offers[GCMA_HOT_SAMPLE] /= 2;
	g->hits[GCMA_HOT_SAMPLE] /= 2;
	g->since_hot = 0;
}

/* A tenant of the sample of hot pages is lost: it makes room. */
static void gcma_note_hot_gone(struct gcma *g)
{
	g->offers[GCMA_HOT_SAMPLE]++;
	if (++g->since_hot >= gcma_window(g))
		gcma_judge_hot(g);
}

/*
 * Or a primary took its frame. He may take all of them at once: the window is that of an area that
 * is all available, or the hits before would have faded away in one visit.
 */
void __gcma_note_hot_revoked(struct gcma *g)
{
	g->offers[GCMA_HOT_SAMPLE]++;
	if (++g->since_hot >= max(GCMA_WINDOW, g->nr_frames >> (GCMA_SAMPLE_SHIFT + 1)))
		gcma_judge_hot(g);
}

/*
 * A hot page of the sample is evicted. Offers are counted that make room of another: as
 * long as all that is in use fits, nothing is lost.
 */
bool __gcma_offer_hot(struct gcma *g)
{
	if (g->len[GCMA_HOT_SAMPLE] < gcma_share(g))
		return false;
	/* Nor does this one: see __gcma_offer(). */
	if (gcma_share(g))
		gcma_note_hot_gone(g);
	return true;
}

/* Where all of them come back there are no offers, so that a window of hits will do. */
void __gcma_note_hot(struct gcma *g)
{
	if (++g->hits[GCMA_HOT_SAMPLE] >= gcma_window(g))
		gcma_judge_hot(g);
}

void __gcma_note_hit(struct gcma *g, enum gcma_list list)
{
	g->hits[list]++;
	g->fresh++;
	/* That copies are worth something again need not wait. */
	if (g->better == GCMA_ADMIT_HARDLY && g->fresh >= GCMA_FEW_HITS)
		WRITE_ONCE(g->better, gcma_judge(g));
}
