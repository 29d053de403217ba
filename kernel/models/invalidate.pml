/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Invalidation that does not wait, against reclaim that stores and readers that load:
 * one page of a file whose medium changes once, and a counter of the mapping that
 * invalidation bumps when it has to leave a folio. Documentation/mm/gcma.rst tells it
 * under "Why the data stays right", and what this model leaves out.
 *
 * Who begins to read after the invalidation has returned must not get the old content,
 * unless he might without tenants, from a page that was resident all the time: when the
 * invalidation passed by a folio that a third party had locked or referenced, that was being
 * read from the medium, or that reclaim had and did not evict.
 *
 * step                         kernel
 * ----                         ------
 * invalidator                  mapping_try_invalidate(), find_lock_entries()
 * reclaim                      shrink_folio_list(), __remove_mapping()
 * reader                       filemap_add_folio(), filemap_read_folio(), read_pages()
 * third                        a page fault, migration, ...
 *
 * Reclaim samples before it has a reference to the folio. If it does so only before it tries
 * to lock it (-DSAMPLE_AT_TRYLOCK), another folio has to be excused: one that reclaim had
 * isolated, whose reference kept the invalidation from removing it, and had not sampled for.
 *
 * Memory is in order. Where it is not, a sample that is no acquire may happen after the
 * folio is locked or added, as in the mutants RECLAIM_SAMPLE and LOAD_SAMPLE.
 *
 * With -DLEAVE_OUT=name one order or look is left out; see hazard.pml.
 */
#define RECLAIM_SAMPLE	1  /* mutant: reclaim samples before it has the folio */
#define RECLAIM_COMPARE	2  /* mutant: reclaim compares before it leaves a tenant entry */
#define LOAD_SAMPLE	3  /* mutant: the reader samples before it has added the folio */
#define LOAD_COMPARE	4  /* mutant: the reader compares before the folio is uptodate */
#define LOAD_UNLOCK	5  /* mutant: the reader unlocks the folio where it compared */
#define BUMP		6  /* mutant: the invalidator bumps the counter */
#define BUMP_LOCKED	7  /* mutant: it does so under the i_pages lock */
#define SECOND_TRYLOCK	8  /* mutant: it tries again to lock the folio under that lock */
#define BUMP_LAST	9  /* mutant: it bumps after that, not before */
#define BUMP_BUSY	10 /* mutant: it bumps as well if it locked a folio and cannot remove it */
#define LOOK_AGAIN	11 /* mutant: it looks again at a slot whose tenant entry is gone */

#ifndef LEAVE_OUT
#define LEAVE_OUT	0
#endif
#define KEPT(what)	(LEAVE_OUT != what)

/* Contents. */
#define OLD		1
#define NEW		2

/* Who has the folio locked. */
#define NOBODY		0
#define THIRD		1
#define INVALIDATOR	2
#define RECLAIM		3
#define LOADER		4		/* fills it from a tenant */
#define MEDIUM		5		/* fills it from the medium */

byte medium = OLD;
byte seq;
bool tree;				/* the i_pages lock */
bool returned;				/* from the invalidation */

/* What stands in the slot: a folio, else a tenant entry, else nothing. */
bool resident = true;
byte tenant;				/* its content, 0: none */

/* The folio. */
bool uptodate = true;
byte content = OLD;
byte holder;
bool found, isolated, pinned;		/* references: the invalidator's, reclaim's, others' */

bool sampled;				/* by reclaim, which has the folio isolated */
bool left;				/* by the invalidation, for reclaim has it */
bool excused;				/* without tenants the old content might be there too */

#define LOCK_TREE	atomic { !tree -> tree = true }

inline remove()
{
	resident = false;
	uptodate = false;
	content = 0
}

proctype invalidator()
{
	medium = NEW;
look:	if
	:: d_step { resident -> found = true }
	:: !resident && tenant -> goto entry
	:: !resident && !tenant -> goto out
	fi;

	if
	:: d_step { holder == NOBODY -> holder = INVALIDATOR }
		goto evict
	:: holder != NOBODY
	fi;
	/* Who had it locked may have finished; who has it now is told. */
	if
	:: KEPT(BUMP_LOCKED) -> LOCK_TREE
	:: !KEPT(BUMP_LOCKED)
	fi;
	seq = seq + !KEPT(BUMP_LAST);
	if
	:: d_step { holder == NOBODY && KEPT(SECOND_TRYLOCK) ->
		holder = INVALIDATOR;
		tree = (KEPT(BUMP_LOCKED) -> false : tree) }
		goto evict
	:: d_step { holder != NOBODY || !KEPT(SECOND_TRYLOCK) ->
		excused = excused || holder == THIRD || holder == MEDIUM;
		left = (holder == RECLAIM) }
	fi;
	d_step {
		seq = seq + (KEPT(BUMP) && KEPT(BUMP_LAST));
		tree = (KEPT(BUMP_LOCKED) -> false : tree)
	}
	found = false;
	goto out;

evict:	LOCK_TREE;
	d_step {
		if
		:: pinned || isolated ->
			seq = seq + KEPT(BUMP_BUSY);
			excused = excused || pinned || !sampled;
			left = isolated
		:: else ->
			remove()
		fi;
		holder = NOBODY;
		found = false;
		tree = false
	}
	goto out;

entry:	atomic { !tree ->
		if
		:: resident || !tenant ->
			skip
		:: else ->
			tenant = 0
		fi }
	if
	:: KEPT(LOOK_AGAIN) -> goto look
	:: !KEPT(LOOK_AGAIN)
	fi;
out:	returned = true
}

/* Reclaim has a folio no more, and it is still there. */
inline keep()
{
	excused = excused || left;
	left = false;
	isolated = false
}

proctype reclaim()
{
	byte sample, copy;

	do
#ifdef SAMPLE_AT_TRYLOCK
	:: d_step { resident && uptodate -> isolated = true }
		d_step { sample = seq; sampled = true }
#else
	:: d_step { sample = seq; sampled = true }
		d_step { resident && uptodate -> isolated = true }
#endif
		if
		:: d_step { holder != NOBODY -> keep() }
		:: d_step { holder == NOBODY -> holder = RECLAIM }
			sample = (KEPT(RECLAIM_SAMPLE) -> sample : seq);
			copy = content;
			LOCK_TREE;
			d_step {
				if
				:: found || pinned ->
					keep()
				:: else ->
					remove();
					tenant = (sample == seq || !KEPT(RECLAIM_COMPARE) ->
						  copy : 0);
					left = false;
					isolated = false
				fi;
				holder = NOBODY;
				tree = false
			}
		fi;
		d_step { sample = 0; copy = 0; sampled = false }
	od
}

proctype reader()
{
	byte sample, copy;

	do
	/* Needs no lock. */
	:: d_step { resident && uptodate && returned ->
		assert(content == NEW || left || excused) }

	:: !resident ->
		sample = seq;
		if
		:: d_step { !tree && resident -> sample = 0 }	/* another was faster */
		:: d_step { !tree && !resident && tenant ->
			resident = true;
			holder = LOADER;
			copy = tenant;
			tenant = 0 }
			sample = (KEPT(LOAD_SAMPLE) -> sample : seq);
			content = copy;
			LOCK_TREE;
			if
			:: d_step { sample != seq && KEPT(LOAD_COMPARE) ->
				holder = MEDIUM;
				tree = false }
				content = medium;
				d_step { uptodate = true; holder = NOBODY }
			:: d_step { sample == seq || !KEPT(LOAD_COMPARE) ->
				uptodate = true;
				holder = (KEPT(LOAD_UNLOCK) -> NOBODY : LOADER);
				tree = false }
				if
				:: KEPT(LOAD_UNLOCK)
				:: !KEPT(LOAD_UNLOCK) -> holder = NOBODY
				fi
			fi;
			d_step { sample = 0; copy = 0 }
		:: d_step { !tree && !resident && !tenant ->
			resident = true;
			holder = MEDIUM;
			sample = 0 }
			content = medium;
			d_step { uptodate = true; holder = NOBODY }
		fi
	od
}

proctype third()
{
	do
	:: d_step { resident && holder == NOBODY -> holder = THIRD }
		holder = NOBODY
	:: d_step { resident && uptodate -> pinned = true }
		pinned = false
	od
}

init {
	atomic {
		run invalidator();
		run reclaim();
		run reader();
		run reader();
		run third()
	}
}
