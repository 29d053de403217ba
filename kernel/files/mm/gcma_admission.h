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

/*
 * One page in so many is admitted to a full area under "seldom", so many in a row: pages
 * that are read together are evicted together.
 */
#define GCMA_SELDOM_RATE	32
#define GCMA_SELDOM_RUN		32

/*
 * If fewer than one of so many is loaded again, hardly any is admitted: a copy takes about
 * 1 us, a read from fast flash 30.
 */
#define GCMA_HARDLY_RATE	32

/*
 * Nor are all admitted if fewer than one of so many that are read again is loaded: what was
 * recycled lost its shadow, by which the page cache would have known that the page is in use.
 */
#define GCMA_ALWAYS_RATE	4

/* Older offers and hits count half after so many offers, or half of a sample's share. */
#define GCMA_WINDOW		128UL

/* So many hits are no chance. */
#define GCMA_FEW_HITS		4

/*
 * Hot pages are as all others if fewer than one comes back while so many are recycled, and hot
 * again from twice as many on: with its shadow a page loses that it was in use.
 */
#define GCMA_HOT_RATE		8

/* One frame in 2^GCMA_COLD_SHIFT is for pages that are not hot. */
#define GCMA_COLD_SHIFT		3

/*
 * Now and then a page takes the frame of the oldest hot one all the same, so often that as many as
 * there are hot ones now would while tenants make room for so many times the frames of the area:
 * what was in use once would stay for good beside a load that has no hot pages.
 */
#define GCMA_HOT_TURN		64

/* While a primary takes it again and again, 1 in 2^shift is kept of all samples but the hot one. */
#define GCMA_SPARE_SHIFT	2

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

/* The frames that a sample may have */
static inline unsigned long gcma_share(const struct gcma *g)
{
	return atomic_long_read(&g->cma->reserve->nr_available) >> GCMA_SAMPLE_SHIFT;
}

/* Is what comes back of both samples lost? An administrator's word is above that. */
static inline bool gcma_is_losing(const struct gcma *g)
{
	return READ_ONCE(g->losing) && READ_ONCE(g->admission) == GCMA_ADMIT_ADAPTIVE;
}

/* Is a page of a sample not kept, while a primary may take the area again? */
static inline bool gcma_spares(const struct gcma *g, u32 hash)
{
	/* A snapshot of a number that changes. */
	bool emptied = data_race(g->unfilled);

	return gcma_is_losing(g) && emptied &&
	       (hash >> GCMA_SAMPLE_SHIFT) & ((1U << GCMA_SPARE_SHIFT) - 1);
}

/* The list that a page that is not hot is offered to. */
static inline enum gcma_list gcma_cold(const struct gcma *g, u32 hash)
{
	return gcma_spares(g, hash) ? GCMA_FOLLOW : gcma_sample(hash);
}

/*
 * How are pages of @list admitted now? Where primaries leave the samples no frame nobody knows what
 * a copy is worth, and one that makes room for the next has lost its shadow for nothing.
 */
static inline enum gcma_admission gcma_rule(struct gcma *g, enum gcma_list list)
{
	enum gcma_admission admission = READ_ONCE(g->admission);

	if (admission != GCMA_ADMIT_ADAPTIVE)
		return admission;
	if (!gcma_share(g))
		return GCMA_ADMIT_HARDLY;
	if (list == GCMA_FOLLOW)
		return READ_ONCE(g->better);
	return list == GCMA_SELDOM ? GCMA_ADMIT_SELDOM : GCMA_ADMIT_ALWAYS;
}

/* May a folio of @nr pages, of a list with this @rule, take frames of tenants? */
static inline bool gcma_admit(struct gcma *g, enum gcma_admission rule, unsigned int nr)
{
	if (rule == GCMA_ADMIT_SELDOM)
		/* An addition may get lost: one page in about so many. */
		return !((data_race(g->skipped += nr) - nr) / GCMA_SELDOM_RUN % GCMA_SELDOM_RATE);
	return rule != GCMA_ADMIT_HARDLY;
}

/*
 * Is a free frame to be had for pages that are in no sample? Under any @rule as often as a new
 * area has frames: it is filled once, but for what loads gave back meanwhile and was filled again.
 * What a primary left is not if what is read again is lost.
 */
static inline bool gcma_room(struct gcma *g, enum gcma_admission rule)
{
	if (rule == GCMA_ADMIT_HARDLY)
		/* Snapshots of numbers; a primary may have those that were never filled. */
		return data_race(g->unused && g->len[GCMA_FREE_LIST]) && !gcma_is_losing(g);
	/* So are these. */
	return data_race(g->len[GCMA_FREE_LIST] > (gcma_is_losing(g) ? g->unfilled : 0));
}

/*
 * Would gcma_rule() and gcma_room() refuse a page that is not hot, whatever primaries leave the
 * samples? Most of a stream is found out here.
 */
static inline bool gcma_is_closed(const struct gcma *g, u32 hash)
{
	/* Snapshots of numbers that change. */
	return gcma_sample(hash) == GCMA_FOLLOW &&
	       !data_race(g->unused && g->len[GCMA_FREE_LIST]) &&
	       READ_ONCE(g->better) == GCMA_ADMIT_HARDLY &&
	       READ_ONCE(g->admission) == GCMA_ADMIT_ADAPTIVE;
}

/* Are hot pages as all others? */
static inline bool gcma_is_cool(const struct gcma *g)
{
	return READ_ONCE(g->cool) && READ_ONCE(g->admission) == GCMA_ADMIT_ADAPTIVE;
}

/* The list of a page that was in use when it was evicted, or had been before. */
static inline enum gcma_list gcma_hot(const struct gcma *g, u32 hash)
{
	if ((hash & ((1U << GCMA_SAMPLE_SHIFT) - 1)) == 2)
		return GCMA_HOT_SAMPLE;
	if (gcma_is_cool(g))
		return gcma_cold(g, hash);
	return GCMA_HOT;
}

/*
 * The list whose oldest tenant makes room for others, of the frames that primaries leave. Context:
 * gcma.lock held.
 */
static inline enum gcma_list gcma_victims(struct gcma *g)
{
	unsigned long nr = atomic_long_read(&g->cma->reserve->nr_available);

	if (!g->len[GCMA_HOT])
		return GCMA_FOLLOW;
	if (g->len[GCMA_FOLLOW] <= nr >> GCMA_COLD_SHIFT || gcma_is_cool(g))
		return GCMA_HOT;
	g->turn += g->len[GCMA_HOT];
	if (g->turn < GCMA_HOT_TURN * nr)
		return GCMA_FOLLOW;
	g->turn = 0;
	return GCMA_HOT;
}

bool __gcma_offer(struct gcma *g, enum gcma_list list);
bool __gcma_offer_hot(struct gcma *g);
void __gcma_note_hot_revoked(struct gcma *g);
void __gcma_note_hit(struct gcma *g, enum gcma_list list);
void __gcma_note_hot(struct gcma *g);

/*
 * A page of @list is evicted. Is that a sample that has its share of the frames? It
 * lives on its own then. Context: gcma.lock held.
 */
static inline bool gcma_offer(struct gcma *g, enum gcma_list list)
{
	if (list == GCMA_HOT_SAMPLE)
		return __gcma_offer_hot(g);
	return (list == GCMA_ALWAYS || list == GCMA_SELDOM) && __gcma_offer(g, list);
}

/* A tenant of @list was loaded. Context: gcma.lock held. */
static inline void gcma_note_hit(struct gcma *g, enum gcma_list list)
{
	g->loads += !gcma_is_hot(list) && list != GCMA_DIRTY; /* which nobody offered */
	if (list == GCMA_HOT_SAMPLE)
		__gcma_note_hot(g);
	if (list == GCMA_ALWAYS || list == GCMA_SELDOM)
		__gcma_note_hit(g, list);
}

/*
 * A page was read whose tenant had been recycled, or whose frame a primary took. Takes no lock: an
 * addition may get lost, or a halving. Where the samples have no frames nothing fades.
 */
static inline void gcma_note_loss(struct gcma *g, u32 hash)
{
	enum gcma_list list = gcma_sample(hash);
	/* As many as any number of hits is few beside: hot pages are lost, but not offered. */
	unsigned long many = GCMA_ALWAYS_RATE * max(2 * GCMA_WINDOW, gcma_share(g));

	if (list != GCMA_FOLLOW && gcma_share(g) && data_race(g->lost[list]) < many)
		data_race(g->lost[list]++); /* as it says above */
}

/* A primary took the frame of a tenant of @list. Context: gcma.lock held. */
static inline void gcma_note_revoked(struct gcma *g, enum gcma_list list)
{
	if (list == GCMA_HOT_SAMPLE)
		__gcma_note_hot_revoked(g);
}

#else /* what is evicted last is admitted */

static inline enum gcma_list gcma_sample(u32 hash)
{
	return GCMA_FOLLOW;
}

static inline enum gcma_list gcma_cold(const struct gcma *g, u32 hash)
{
	return GCMA_FOLLOW;
}

static inline enum gcma_admission gcma_rule(struct gcma *g, enum gcma_list list)
{
	return GCMA_ADMIT_ALWAYS;
}

static inline bool gcma_admit(struct gcma *g, enum gcma_admission rule, unsigned int nr)
{
	return true;
}

static inline bool gcma_room(struct gcma *g, enum gcma_admission rule)
{
	return true;
}

static inline bool gcma_is_closed(const struct gcma *g, u32 hash)
{
	return false;
}

static inline enum gcma_list gcma_hot(const struct gcma *g, u32 hash)
{
	return GCMA_FOLLOW;
}

static inline enum gcma_list gcma_victims(struct gcma *g)
{
	return GCMA_FOLLOW;
}

static inline bool gcma_offer(struct gcma *g, enum gcma_list list)
{
	return false;
}

static inline void gcma_note_hit(struct gcma *g, enum gcma_list list) { }

static inline void gcma_note_loss(struct gcma *g, u32 hash) { }
static inline void gcma_note_revoked(struct gcma *g, enum gcma_list list) { }

#endif

#endif /* __MM_GCMA_ADMISSION_H */
