/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loads of a page while the same page is loaded, invalidated, written to or evicted anew: two
 * readers, an invalidation, reclaim with its shrinker; two frames, one page of a file and
 * others who want frames. Documentation/mm/gcma.rst tells the protocol. Each goes on for ever,
 * and all that can happen is looked at.
 *
 * What is promised: no load returns what was written over in the page cache, nor what an
 * invalidation was to remove that has ended, nor another's page; and no tenant of the page
 * stays in a frame without its entry.
 *
 * A reader looks at the slot, looks at the frame, claims it and copies, and only then takes the
 * i_pages lock and looks at the slot again. Its entry stays where it is until then, for
 * everybody to remove or to find as well, also when its frame is long free or another's.
 * An entry names a frame and no generation, as after a wrap. The word of a frame has one: once
 * changed, it is not again what somebody remembers.
 *
 * A step is what others may see done in one piece. Memory is in order: hazard.pml has the
 * barriers. Claim and copy are one, for nobody else touches the memory of a frame that has
 * an owner but a primary. That shows here as a tenant that is gone, or a copy or a commit
 * that fails; frames.pml has the rest of it, and the lists. An invalidation finds a folio
 * and removes it in one step, for it holds a reference. It waits for reclaim (passes.pml has
 * those that do not), but not for who reads: that one reads from disk later. The disk is read
 * and the folio unlocked in one step.
 *
 * A frame remembers the shadow of its page, but the next one's entry while it has an owner, or when
 * an owner has given it back. Who adds a large folio takes the shadow, which must not be an entry:
 * that would pass for what the folio was filled from.
 *
 * step                         kernel
 * ----                         ------
 * SLOT                         gcma_load_begin(): xa_load()
 * look(), claim()              gcma_claim()
latest()                     gcma_latest()
 * ADD, COMMIT                  __filemap_add_folio(), gcma_load_commit()
 * END                          gcma_load_end()
 * FIND, CLEAR                  find_get_entries(), __clear_shadow_entry()
 * EVICT, SHRINK                __remove_mapping(), gcma_drop_node()
 * others()                     gcma_take_from(), gcma_scrub()
 *
 * With -DLEAVE_OUT=name one look or order is left out.
 */
#define LOOK_KEY	1 /* mutant: gcma_claim(): look at the key */
#define CLAIM_WORD	2 /* mutant: gcma_claim(): only if the word is the same */
#define COMMIT_SAME	3 /* mutant: gcma_load_commit(): only if the slot still has the entry */
#define COMMIT_UNLOCKED	4 /* mutant: gcma_load_commit(): nobody sees the folio locked */
#define END_PUT		5 /* mutant: gcma_load_end(): the frame is given back after the commit */
#define ADD_DROP	6 /* mutant: __filemap_add_folio(): drop another's entry */
#define CLEAR_SAME	7 /* mutant: __clear_shadow_entry(): only if the slot still has the entry */
#define CLEAR_AGAIN	8 /* mutant: clear_shadow_entries(): look again if it has not */
#define CLEAR_DROP	9 /* mutant: __clear_shadow_entry(): drop the entry */
#define LATEST_WORD	10 /* mutant: gcma_latest(): only if the word is the same */
#define LATEST_SHADOW	11 /* mutant: gcma_latest(): of a free frame, only what is no entry */

#ifndef LEAVE_OUT
#define LEAVE_OUT	0
#endif
#define KEPT(what)	(LEAVE_OUT != what)
#define NEED(what, condition)	(!KEPT(what) || (condition))

#define NONE		7

/* What a frame, a folio or a reader holds, if anything. */
#define OTHER		1	/* another page, and its key with it */
#define NEW		2	/* what is on disk */
#define OLD		3	/* what was there before, until it is invalidated */
#define STALE		4	/* what nobody may read any more */

/* States of a frame. */
#define FREE		0
#define STORED		1
#define OWNED		2

byte state[2];
byte memory[2];
byte owner[2] = NONE;		/* nobody looks at it but assertions */
bit next[2];			/* remembers the next page's entry, no shadow */

/* What stands in the slot, besides the frame that a tenant entry names. */
#define RESIDENT	2
#define READING		3	/* a folio, locked by a reader */
#define EVICTING	4	/* a folio, locked by reclaim */
#define EMPTY		5	/* or a shadow */

byte slot = RESIDENT;
byte content = NEW;		/* of the folio, 0 if it is not read yet */
bit lock;			/* of i_pages; who holds it for one step leaves it alone */

#define ENTRY(what)	((what) < RESIDENT)
#define FOLIO(what)	(!ENTRY(what) && (what) != EMPTY)

/* Two readers, who is called by number, and these. */
#define INVALIDATION	2
#define RECLAIM		3

byte got[2];			/* in the readers' folios */
byte looked[4] = NONE;		/* the frame whose word, unchanged since, is remembered */
byte busy;			/* readers and invalidations */

#define AGE(copy, from)	copy = (copy == from -> from + 1 : copy)

inline age(from)
{
	AGE(memory[0], from);
	AGE(memory[1], from);
	AGE(got[0], from);
	AGE(got[1], from);
	AGE(content, from)
}

inline change(f, to)
{
	state[f] = to;
	looked[0] = (looked[0] == f -> NONE : looked[0]);
	looked[1] = (looked[1] == f -> NONE : looked[1]);
	looked[2] = (looked[2] == f -> NONE : looked[2]);
	looked[3] = (looked[3] == f -> NONE : looked[3])
}

inline put(f)
{
	assert(owner[f] == me);
	owner[f] = NONE;
	memory[f] = 0;
	change(f, FREE)
}

/* The first look at the word, and at the key. */
#define look(f, keyed)								\
	d_step {								\
		if								\
		:: state[f] == STORED &&					\
		   NEED(LOOK_KEY, !(keyed) || memory[f] != OTHER) ->		\
			looked[me] = f						\
		:: else ->							\
			f = NONE						\
		fi }

/* To be used in a d_step. */
inline claim(f)
{
	if
	:: f != NONE && state[f] == STORED && NEED(CLAIM_WORD, looked[me] == f) ->
		assert(owner[f] == NONE);
		owner[f] = me;
		change(f, OWNED)
	:: else ->
		f = NONE
	fi;
	looked[me] = NONE
}

inline drop(f)
{
	look(f, false);
	d_step {
		claim(f);
		if
		:: f != NONE -> put(f); f = NONE
		:: else
		fi
	}
}

/* What the frame remembers, read between two looks at the word */
inline latest(f)
{
	d_step {
		if
		:: state[f] != OWNED -> looked[me] = f; there = state[f]
		:: else
		fi
	}
	d_step {
		if
		:: there == FREE && next[f] && KEPT(LATEST_SHADOW) -> there = NONE
		:: there == STORED || (there == FREE && NEED(LATEST_SHADOW, !next[f])) -> there = next[f]
		:: else
		fi
	}
	d_step {
		if
		:: there != NONE && NEED(LATEST_WORD, looked[me] == f) -> assert(!there)
		:: else
		fi;
		looked[me] = NONE;
		there = NONE
	}
}

#define NAMED(f)	(state[f] != STORED || memory[f] == OTHER || slot == f)

inline leave()
{
	busy--;
	assert(busy || (NAMED(0) && NAMED(1)))
}

/* No load returns anything but what was stored, and may still be read. */
#define GOOD(copy)	((copy) == NEW || (copy) == OLD)

proctype reader(byte me)
{
	byte f = NONE, there = NONE;
	bool mine;

	do
	/* It is going to write. */
	:: d_step { !FOLIO(slot) -> busy++ }
	   goto add
	/* It adds a large folio. */
	:: d_step { ENTRY(slot) -> busy++; f = slot }
	   latest(f);
	   drop(f);
	   goto add
	/* SLOT. */
	:: d_step { ENTRY(slot) -> busy++; f = slot }
	   look(f, true);
	   d_step {
		   claim(f);
		   if
		   :: f != NONE ->
			   got[me] = memory[f];
			   next[f] = 1;
			   mine = true
		   :: else
		   fi
	   }
#if LEAVE_OUT == END_PUT
	   d_step {
		   if
		   :: mine -> put(f); mine = false
		   :: else
		   fi
	   }
#endif
	   /* The copy fails. */
	   if
	   :: d_step { f != NONE && KEPT(END_PUT) -> got[me] = 0; mine = false; put(f); f = NONE }
	   :: true
	   fi;
add:	   if
	   :: d_step { !lock && FOLIO(slot) -> got[me] = 0 }	/* -EEXIST */
	      goto end
	   :: d_step { f != NONE -> got[me] = 0 }		/* there is no memory */
	      goto end
	   :: d_step { !lock && !FOLIO(slot) && (!ENTRY(slot) || slot == f || !KEPT(ADD_DROP)) ->
		       lock = 1 }
	   :: d_step { !lock && ENTRY(slot) && slot != f && KEPT(ADD_DROP) ->
		       lock = 1; there = slot }
	      drop(there)
	   fi;
	   /* COMMIT. */
	   if
	   :: d_step { f != NONE && NEED(COMMIT_SAME, slot == f) && KEPT(COMMIT_UNLOCKED) ->
		       assert(GOOD(got[me]));
		       slot = RESIDENT; content = got[me]; got[me] = 0; lock = 0 }
	   :: d_step { f != NONE && slot == f && !KEPT(COMMIT_UNLOCKED) ->
		       slot = READING; lock = 0 }
	      d_step { assert(GOOD(got[me]));
		       slot = RESIDENT; content = got[me]; got[me] = 0 }
	   :: d_step { f == NONE || (KEPT(COMMIT_SAME) && slot != f) ->
		       slot = READING; got[me] = 0; lock = 0 }
	      d_step { assert(slot == READING && !content);
		       slot = RESIDENT; content = NEW }
	   fi;
	   /* END. */
end:	   if
	   :: d_step { true ->
		   if
		   :: mine -> put(f); mine = false
		   :: else
		   fi;
		   f = NONE;
		   leave() }
	   fi
	od
}

/* The disk is written to, and what was there has to go from the page cache. */
proctype invalidation()
{
	byte me = INVALIDATION, f = NONE;

	do
	:: d_step { true -> busy++; age(NEW) }
again:	   if
	   /* FIND. */
	   :: d_step { slot == EMPTY || slot == READING -> skip }
	   :: d_step { !lock && slot == RESIDENT -> slot = EMPTY; content = 0 }
	   :: d_step { ENTRY(slot) -> f = slot }
	      /* CLEAR. */
	      if
	      :: d_step { !lock && slot != f && KEPT(CLEAR_SAME) -> f = NONE }
		 if
		 :: KEPT(CLEAR_AGAIN) -> goto again
		 :: else
		 fi
	      :: d_step { !lock && NEED(CLEAR_SAME, slot == f) ->
			  lock = 1; slot = EMPTY; content = 0 }
		 if
		 :: KEPT(CLEAR_DROP) -> drop(f)
		 :: else
		 fi;
		 lock = 0
	      fi
	   fi;
	   d_step {
		   age(OLD);
		   assert(content != STALE);
		   f = NONE;
		   leave()
	   }
	od
}

/* Somebody may write to the page before it is evicted. */
proctype reclaim()
{
	byte me = RECLAIM, f;

	do
	/* EVICT. */
	:: d_step { !lock && slot == RESIDENT -> slot = EMPTY; content = 0 }
	:: d_step { slot == RESIDENT -> age(NEW); age(OLD); content = NEW }
	:: atomic {
		if
		:: slot == RESIDENT && state[0] != OWNED -> f = 0
		:: slot == RESIDENT && state[1] != OWNED -> f = 1
		fi;
		slot = EVICTING;
		assert(owner[f] == NONE);
		owner[f] = me;
		change(f, OWNED);
		next[f] = 1;
		memory[f] = content
	   }
	   if
	   :: d_step { !lock ->
		       slot = f; content = 0; owner[f] = NONE; next[f] = 0; change(f, STORED); f = 0 }
	   :: d_step { slot == EVICTING -> slot = RESIDENT; put(f); f = 0 }
	   :: d_step { !lock -> slot = EMPTY; content = 0; put(f); f = 0 }
	   fi

	/* SHRINK: the frame first, the slot after it. */
	:: d_step { !lock && ENTRY(slot) -> lock = 1; f = slot }
	   drop(f);
	   d_step { slot = EMPTY; lock = 0; f = 0 }
	od
}

/* Recycle frames, fill them with other pages, and take those out again. */
proctype others()
{
	do
	:: d_step { state[0] != OWNED -> memory[0] = OTHER; next[0] = 0; change(0, STORED) }
	:: d_step { state[1] != OWNED -> memory[1] = OTHER; next[1] = 0; change(1, STORED) }
	:: d_step { state[0] == STORED -> memory[0] = 0; change(0, FREE) }
	:: d_step { state[1] == STORED -> memory[1] = 0; change(1, FREE) }
	od
}

init {
	atomic {
		run reader(0);
		run reader(1);
		run invalidation();
		run reclaim();
		run others()
	}
}
