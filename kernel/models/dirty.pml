/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Dirty tenants, swapped-out pages that are nowhere else: reclaim, which keeps a page or writes
 * it; somebody who holds a reference to the page and writes to it; who swaps it in; a primary
 * that gets tenants out of its way; and a third one who does all else, one after the other: he
 * frees the slot and uses it anew, drains, shrinks shadows, reads over tenants, drops what an
 * old entry names, and fills frames with other pages. Two frames and a slot. Each goes on for
 * ever, and all that can happen is looked at. mm/gcma_dirty.c and Documentation/mm/gcma.rst tell
 * the protocol, and what this model leaves out.
 *
 * What is promised: as long as the slot is in use, who reads it gets what was last in the page,
 * from a frame or from the device; nobody touches a frame that a primary has; and whenever
 * nobody is at work, who has owned a frame has let go of it, and a dirty bit is that of a tenant
 * that stands in its slot.
 *
 * With -DOTHERS there is a second slot, whose page is nowhere else from time to time, instead of
 * who writes to the first one's. With -DFAILING memory fails under tenants, and a page that was
 * in it is lost, but none that somebody has read in time. With -DFEWER the third one does less.
 *
 * A step is what others may see done in one piece. A section under gcma.lock is one. So is a
 * claim, which finds the tenant and its key and changes the word: frames.pml and loads.pml have
 * its parts. A clean tenant is stored, loaded and recycled in one step, unless its frame is a
 * primary's, for they have that, too. A word, once changed, is not again what somebody
 * remembers. Whatever comes between two steps of different kinds is full order, but where the
 * code relies on a barrier, an acquire or a release: without that, a store is done too late, or
 * a load too early, as store buffers do. Each of these is about two places in memory, of which
 * others look at one and then at the other. The order of the dirty bit and the count of such
 * bits makes no difference.
 *
 * A page is put back by who swaps it in: a primary waits for him, or gives up, at any time. It
 * takes one frame at a time. It moves a tenant to the other one, which no other primary wants,
 * or finds no frame, or memory. Who takes a frame does not know yet whether it is a primary's.
 *
 * An entry names a frame and no generation, as after a wrap.
 *
 * Content is NEW as long as it is what the page has; who writes to the page, or frees its slot,
 * makes all of it OLD. Frames that are free are wiped: that hides nothing.
 *
 * step                         kernel
 * ----                         ------
 * WRITE, EVICT                 pageout(), __remove_mapping()
 * CLEAN, COPY                  __gcma_swap_evict(), gcma_dirty_copy()
 * OWN, LOOK_BIT                gcma_dirty_own()
 * COMMIT                       __gcma_store_commit(), put_swap_folio()
 * ENTRY, THERE, AGAIN          gcma_dirty_claim()
 * FILL, CLEAN_ONE              gcma_dirty_load(), gcma_fill()
 * ADD                          add_to_swap_cache(), gcma_swap_added()
 * BITS, EVACUATE               gcma_revoke(), gcma_evacuate()
 * MOVE                         gcma_move_aside()
 * LEAVE_LOST                   gcma_leave_lost()
 * drop_unused()                gcma_drop_unused()
 * SCRUB                        gcma_scrub()
 * cleanse(), put()             gcma_dirty_clear(), gcma_put()
 * FREE_SLOT                    swap_entry_range_free(), clear_shadow_from_swap_cache()
 * SHRINK                       shadow_lru_isolate(), gcma_swap_node_stays()
 * OVER                         gcma_give_up()
 * STALE                        __gcma_drop()
 *
 * With -DLEAVE_OUT=name one look or order is left out; see hazard.pml.
 */
#define OWN_MB		1  /* mutant: gcma_dirty_own(): full barrier after the dirty bit */
#define OWN_BIT		2  /* mutant: gcma_dirty_own(): look at the frame's bit */
#define OWN_LOCK	3  /* mutant: gcma_dirty_own(): dirty before gcma.lock is dropped */
#define TAKE_CLEAN	4  /* mutant: gcma_take_frame(): not what is dirty */
#define EVICT_MB	5  /* mutant: __gcma_swap_evict(): clean before it is copied */
#define EVICT_FREEZE	6  /* mutant: __gcma_swap_evict(): only if nobody holds it */
#define EVICT_AGAIN	7  /* mutant: __gcma_swap_evict(): only if it is still clean */
#define EVICT_ORDER	8  /* mutant: __gcma_swap_evict(): look at that after nobody holds it */
#define COMMIT_RELEASE	9  /* mutant: gcma_publish(): after the copy */
#define COMMIT_LOCK	10 /* mutant: __gcma_store_commit(): i_pages lock when the frame is let go */
#define ALLOC_MB	11 /* mutant: gcma_revoke(): full barrier after the bits */
#define ALLOC_WAIT	12 /* mutant: gcma_evacuate_frame(): wait until it is not dirty */
#define EVACUATED_MB	13 /* mutant: gcma_evacuate(): full barrier before the memory is used */
#define NR_ACQUIRE	14 /* mutant: gcma_nr_dirty(): the memory is used afterwards */
#define NR_RELEASE	15 /* mutant: gcma_dirty_clear(): counted after the memory was used */
#define CLEAR_RELEASE	16 /* mutant: gcma_dirty_clear(): clear after the memory was used */
#define SCRUB_DIRTY	17 /* mutant: gcma_scrub(): not what is dirty */
#define LOAD_WAIT	18 /* mutant: gcma_dirty_claim(): wait for who owns the frame */
#define LOAD_AGAIN	19 /* mutant: gcma_dirty_claim(): look at the slot again */
#define LOAD_LOCK	20 /* mutant: gcma_dirty_claim(): i_pages lock meanwhile */
#define LOAD_KEY	21 /* mutant: gcma_dirty_claim(): the frame's key */
#define LOAD_DIRTY	22 /* mutant: gcma_dirty_load(): the folio is dirty */
#define LOAD_STAYS	23 /* mutant: gcma_dirty_load(): the tenant stays */
#define LOAD_RELEASE	24 /* mutant: gcma_disown(): after the page was loaded */
#define ADD_DROP	25 /* mutant: add_to_swap_cache(): drop the tenant */
#define ADD_KEY		26 /* mutant: __gcma_swap_added(): the frame's key */
#define MOVE_SAME	27 /* mutant: gcma_move_aside(): only if the slot has the entry */
#define MOVE_LOCK	28 /* mutant: gcma_move_aside(): i_pages lock from that look on */
#define MOVE_LATE	29 /* mutant: gcma_move_aside(): let go of it under the lock */
#define MOVE_SLOT	30 /* mutant: gcma_move_aside(): the slot changes before the frame */
#define MOVE_RELEASE	31 /* mutant: gcma_disown(): after the page was moved */
#define MOVE_FAILED	32 /* mutant: gcma_evacuate_by(): what has lost its slot is dropped */
#define DROP_COUNT	33 /* mutant: gcma_drop_unused(): not if the slot is in use */
#define DROP_SLOT	34 /* mutant: gcma_drop_unused(): if it is not in its slot */
#define DROP_LOCK	35 /* mutant: gcma_drop_unused(): i_pages lock */
#define FREE_DROP	36 /* mutant: clear_shadow_from_swap_cache(): drop the tenant */
#define FREE_KEY	37 /* mutant: __gcma_drop_later(): the frame's key */
#define SHRINK_STAYS	38 /* mutant: shadow_lru_isolate(): not what is dirty */
#define SHRINK_OWNED	39 /* mutant: __gcma_swap_node_stays(): also if it has an owner */
#define OVER_DIRTY	40 /* mutant: gcma_give_up(): look for dirt again, as owner */
#define OVER_LOCK	41 /* mutant: gcma_give_up(): i_pages lock before it is owner */
#define STALE_DIRTY	42 /* mutant: gcma_claim(): without a key, not what is dirty */
#define STALE_ORDER	43 /* mutant: gcma_claim(): look at the word before that */
#define LOST_HELD	44 /* mutant: gcma_leave_lost(): not if somebody has the slot */
#define LOST_ORDER	45 /* mutant: gcma_leave_lost(): owns the frame before it looks */
#define LOST_SAME	46 /* mutant: gcma_leave_lost(): only if the slot has the entry */
#define LOST_LOCK	47 /* mutant: gcma_leave_lost(): i_pages lock */
#define OVER_SLOT	48 /* mutant: gcma_give_up(): put what is not in its slot */
#define DRAIN_CLEAN	49 /* mutant: gcma_drop_unused(): put what is clean */
#define LOST_CLEAN	50 /* mutant: gcma_leave_lost(): put what is clean */

#ifndef LEAVE_OUT
#define LEAVE_OUT	0
#endif
#define KEPT(what)	(LEAVE_OUT != what)
#define NEED(what, condition)	(!KEPT(what) || (condition))

#define NONE		7

/* What is in memory, or on the device. */
#define NEW		1
#define OLD		2
#define OTHER		3	/* another page's */
#define RUBBISH		4	/* what a primary writes */
#define NOTHING		5	/* it was lost with the memory */

/* States of a frame. */
#define FREE		0
#define STORED		1
#define LOST		2
#define OWNED		3

byte state[2];
bit key[2];			/* the slot */
byte memory[2];
bit dirty[2];
byte nr_dirty;
byte owner[2] = NONE;		/* nobody looks at it but assertions */

byte bits;			/* the area's bitmap */
byte used;			/* by the primary; nobody looks at it but assertions */
byte seen;			/* in its memory, before it writes there */

#define SET(mask, f)	((mask) & (1 << (f)))

/* What stands in a slot, besides the frame that a tenant entry names. */
#define FOLIO		2
#define EMPTY		3	/* or a shadow */
#define ENTRY(what)	((what) < FOLIO)

byte slot[2] = EMPTY;		/* the first has a folio, see init */
bit lock;			/* of i_pages; who holds it for one step leaves it alone */
bit needed = 1;			/* the first slot's count */
bit cached = 1;			/* its SWAP_HAS_CACHE */
bit returned;			/* it is to be freed, and cached until it is */
byte device = OLD;

#ifdef FAILING
bit bad[2];			/* the memory of a frame */
bit lost;			/* the mark of the first slot */
#define BAD(f)		bad[f]
#else
#define BAD(f)		0
#define lost		0
#endif

/* The folio, which has what the page has, unless that was lost. */
bit valid = 1;
bit soiled = 1;			/* it is dirty */
bit locked;
bit held;			/* who writes to it has a reference */

#define USED(k)		((k) || needed)

/* Who is who. */
#define RECLAIM		0
#define LOADER		1
#define THIRD		2
#define PRIMARY		3

byte busy;
byte looked = NONE;		/* the frame whose word, unchanged since, the third one does */

#define AGE(copy)	copy = (copy == NEW -> OLD : copy)

inline age()
{
	AGE(memory[0]);
	AGE(memory[1]);
	AGE(seen);
	AGE(device)
}

inline change(f, into)
{
	state[f] = into;
	looked = (looked == f -> NONE : looked)
}

/* No owner who has gone, no dirty tenant without its slot, nor the other way round. */
#define SOUND(f)								\
	((state[f] == FREE || state[f] == STORED) && owner[f] == NONE &&	\
	 (!dirty[f] || (state[f] == STORED && slot[key[f]] == f)) &&		\
	 (slot[1] != f || (dirty[f] && key[f])))

inline leave()
{
	busy--;
	assert(busy || (SOUND(0) && SOUND(1) && nr_dirty == dirty[0] + dirty[1]))
}

/* May a frame be taken, and what is in it be thrown away? For a clean page, too? */
#define LENT(f)									\
	(!BAD(f) &&								\
	 (state[f] == FREE || (state[f] == STORED && NEED(TAKE_CLEAN, !dirty[f]))))
#define CLEAN(f)	(LENT(f) && !dirty[f] && !SET(bits, f))

#define EVICTABLE	(slot[0] == FOLIO && !locked && !lock && !soiled && !held)

inline evict(left)
{
	assert(device == NEW || !needed || !valid);
	slot[0] = left;
	uncache()
}

inline soil(f)
{
	dirty[f] = 1;
	nr_dirty++
}

/* Not what a primary may look at. */
inline wipe(f)
{
	memory[f] = (SET(bits, f) -> memory[f] : 0)
}

inline own(f, k)
{
	assert(owner[f] == NONE);
	owner[f] = me;
	key[f] = k;
	wipe(f);
	change(f, OWNED)
}

#define CLAIMABLE(f, k)	(state[f] == STORED && key[f] == (k))

inline claim(f)
{
	assert(owner[f] == NONE);
	owner[f] = me;
	change(f, OWNED)
}

inline disown(f)
{
	assert(owner[f] == me && state[f] == OWNED);
	owner[f] = NONE;
	change(f, STORED)
}

/* The rest of it is in the next step. */
inline cleanse(f)
{
	nr_dirty = nr_dirty - dirty[f];
	dirty[f] = 0
}

inline put(f)
{
	assert(owner[f] == me && !dirty[f]);
	owner[f] = NONE;
	key[f] = 0;
	wipe(f);
	change(f, FREE)
}

#define IDLE(f)		assert(!SET(used, f))

/* put_swap_folio() */
inline uncache()
{
	if
	:: needed -> cached = 0
	:: else -> returned = 1
	fi
}

/* Without the barrier, the look is done before others see the dirty bit. */
#define REVOKED		(KEPT(OWN_BIT) && SET((KEPT(OWN_MB) -> bits : revoked), f))

#define HELD		(held && KEPT(EVICT_FREEZE))
#define SOILED		(KEPT(EVICT_AGAIN) && (KEPT(EVICT_ORDER) -> soiled : revoked))

/* Keeps the page, or writes it. */
proctype reclaim()
{
	byte me = RECLAIM, f = NONE, revoked;

end:	do
	/* WRITE, and EVICT when the device has it. */
	:: d_step { slot[0] == FOLIO && !locked && soiled ->
		device = NEW; soiled = 0 }
	:: d_step { EVICTABLE -> evict(EMPTY) }
	:: d_step { EVICTABLE && valid && CLEAN(0) -> own(0, 0); memory[0] = NEW; disown(0); evict(0) }
	:: d_step { EVICTABLE && valid && CLEAN(1) -> own(1, 0); memory[1] = NEW; disown(1); evict(1) }

	/* CLEAN, OWN. */
	:: d_step { slot[0] == FOLIO && !locked && soiled ->
		busy++;
		locked = 1;
		soiled = !KEPT(EVICT_MB);
		revoked = (KEPT(OWN_MB) -> 0 : bits) }
	   atomic {
		if
		:: LENT(0) -> f = 0
		:: LENT(1) -> f = 1
		:: else -> goto fail
		fi;
		own(f, 0);
#if LEAVE_OUT == OWN_LOCK
	   }
	   d_step {
#endif
		soil(f)
	   }
	   /* LOOK_BIT. */
	   if
	   :: d_step { REVOKED -> revoked = 0; cleanse(f) }
	      goto fail
	   :: d_step { !REVOKED -> revoked = 0 }
	   fi;
	   /* COPY. */
#if LEAVE_OUT != COMMIT_RELEASE && LEAVE_OUT != NR_RELEASE && LEAVE_OUT != CLEAR_RELEASE
	   d_step { IDLE(f); memory[f] = NEW }
#endif
#if LEAVE_OUT == EVICT_MB
	   soiled = 0;
#endif
#if LEAVE_OUT == EVICT_ORDER
	   revoked = soiled;
#endif
	   /* COMMIT. */
	   if
	   :: d_step { HELD || SOILED -> revoked = 0 }
#if LEAVE_OUT == NR_RELEASE
	      d_step { nr_dirty-- }
	      d_step { IDLE(f); memory[f] = NEW; nr_dirty++ }
#endif
	      d_step { cleanse(f) }
#if LEAVE_OUT == CLEAR_RELEASE
	      d_step { IDLE(f); memory[f] = NEW }
#endif
	      goto fail
	   :: d_step { !lock && !HELD && !SOILED ->
		   /* If it was scrubbed, the page is lost. */
		   assert(state[f] == OWNED);
#if LEAVE_OUT == NR_RELEASE || LEAVE_OUT == CLEAR_RELEASE
		   memory[f] = NEW;
#endif
		   lock = KEPT(COMMIT_LOCK);
		   soiled = 0;
		   disown(f) }
	   fi;
	   d_step {
		   slot[0] = f;
		   lock = (KEPT(COMMIT_LOCK) -> 0 : lock);
		   locked = 0
	   }
#if LEAVE_OUT == COMMIT_RELEASE
	   d_step { memory[f] = NEW }
#endif
	   d_step { uncache(); f = NONE; leave() }
	   goto end;
fail:	   if
	   :: d_step { true ->
		   if
		   :: f != NONE -> put(f); f = NONE
		   :: else
		   fi;
		   revoked = 0; soiled = 1; locked = 0; leave() }
	   fi
	od
}

/* Writes to the folio, which is marked dirty before the reference is dropped. */
proctype writer()
{
end:	do
	:: d_step { slot[0] == FOLIO && !locked && valid -> held = 1 }
	   d_step { age() }
	   d_step { soiled = 1; held = 0 }
	od
}

#ifdef FAILING
#define LOSE(condition)	lost = lost || (condition)
#define FIND		lost = 0
#else
#define FIND		skip
#define LOSE(condition)	skip
#endif

#define WAITS(f)	((state[f] == STORED || state[f] == OWNED) && key[f] == 0 && KEPT(LOAD_WAIT))

/* Swaps in: who needs the page, or a primary that puts it back. */
proctype loader()
{
	byte me = LOADER, f = NONE, got;
	bit there;

end:	do
	:: d_step { slot[0] != FOLIO && needed && !cached ->
		busy++;
		cached = 1 }
	   /* ENTRY. */
find:	   if
	   :: d_step { !ENTRY(slot[0]) -> f = NONE }
	      goto clean
	   :: d_step { ENTRY(slot[0]) -> f = slot[0] }
	   fi;
	   /* THERE: first the dirty bit, then the word. FILL if it can be claimed. */
	   there = dirty[f];
	   if
	   :: d_step { there && state[f] == STORED && NEED(LOAD_KEY, key[f] == 0) ->
		   claim(f);
		   IDLE(f);
		   got = (BAD(f) -> NOTHING : memory[f]) }
	      goto filled
	   :: d_step { !(there && state[f] == STORED && NEED(LOAD_KEY, key[f] == 0)) ->
		   there = there && WAITS(f) }
	   fi;
	   /* AGAIN, while nobody moves it. */
	   if
	   :: d_step { NEED(LOAD_LOCK, !lock) ->
		   there = (KEPT(LOAD_LOCK) -> dirty[f] && WAITS(f) : there);
		   there = there || (slot[0] != f && KEPT(LOAD_AGAIN));
		   f = NONE }
	   fi;
	   if
	   :: d_step { there -> there = 0 }
	      goto find
	   :: !there -> goto clean
	   fi;

filled:	   if
	   :: d_step { true ->
		   there = KEPT(LOAD_DIRTY) && got != NOTHING;
		   LOSE(got == NOTHING);
		   if
		   :: KEPT(LOAD_STAYS) -> disown(f)
		   :: else -> cleanse(f); put(f)
		   fi }
	   fi;
#if LEAVE_OUT == LOAD_RELEASE
	   got = memory[f];
#endif
	   goto add;

	   /* CLEAN_ONE, if there is one, and no primary has it. */
clean:	   if
	   :: d_step { ENTRY(slot[0]) && CLAIMABLE(slot[0], 0) ->
		   f = slot[0];
		   claim(f);
		   got = (SET(bits, f) || BAD(f) -> 0 : memory[f]);
		   cleanse(f);
		   put(f) }
	   :: d_step { !(ENTRY(slot[0]) && CLAIMABLE(slot[0], 0)) -> f = NONE }
	   fi;

	   /* ADD, or there is no memory. */
add:	   if
	   :: d_step { true -> uncache(); there = 0; got = 0; f = NONE; leave() }
	   :: d_step { !lock ->
		   lock = 1;
		   f = slot[0];
		   if
		   :: ENTRY(f) && KEPT(ADD_DROP) && state[f] == STORED &&
		      NEED(ADD_KEY, key[f] == 0) -> claim(f); cleanse(f); put(f)
		   :: else
		   fi;
		   f = NONE }
	      d_step {
		   /* No read returns anything but what was last in the page, if it was not lost. */
		   valid = !lost;
		   assert(!needed || (got -> got : device) == NEW || !valid);
		   assert(valid || got != NEW);
		   slot[0] = FOLIO;
		   soiled = there;
		   lock = 0;
		   there = 0; got = 0; leave() }
	   fi
	od
}

/* What a drain finds may be clean by now; no primary's that is dirty can be. */
#define FOUND(f)	(state[f] == STORED && (dirty[f] || me == THIRD))
#define TOO_LATE(f, who)	(!dirty[f] && KEPT(who))

/* What cannot be needed any more is dropped; else the frame is let go. */
inline drop_unused(f, owned)
{
	if
	:: d_step { FOUND(f) -> k = key[f]; claim(f) }
	   unused = !USED(k) || !KEPT(DROP_COUNT);
	   d_step { TOO_LATE(f, DRAIN_CLEAN) || NEED(DROP_LOCK, !lock) ->
		if
		:: TOO_LATE(f, DRAIN_CLEAN) -> put(f)
		:: else ->
		if
		:: unused || (slot[k] != f && KEPT(DROP_SLOT)) -> cleanse(f); put(f)
		:: else -> disown(f)
		fi
		fi;
		unused = 0; failed = 0; k = 0 }
	/* Somebody owns it. */
	:: d_step { !dirty[f] || (state[f] != STORED && (owned)) -> failed = 0 }
	fi
}

#define SCRUB(f)								\
	if									\
	:: SET(range, f) && NEED(SCRUB_DIRTY, !dirty[f]) ->			\
		if								\
		:: state[f] == OWNED -> change(f, LOST)				\
		:: state[f] == STORED -> change(f, FREE); key[f] = 0		\
		:: else								\
		fi;								\
		memory[f] = (state[f] == FREE -> 0 : memory[f])			\
	:: else									\
	fi

/* Gets what is dirty out of its way; what cannot go for now is in its way. */
proctype primary()
{
	byte me = PRIMARY, range, at, to, n;
	bit k, unused, same, failed;

end:	do
	:: atomic {
		if
		:: range = 1; at = 0
		:: range = 2; at = 1
		fi;
		to = 1 - at;
		busy++;
		n = nr_dirty
	   }
	   /* BITS. */
	   d_step {
		   bits = range;
#if LEAVE_OUT == EVACUATED_MB || LEAVE_OUT == NR_ACQUIRE
		   seen = memory[at]
#endif
	   }
#if LEAVE_OUT != ALLOC_MB
	   n = nr_dirty;
#endif
	   /* EVACUATE. */
again:
#if LEAVE_OUT == LOST_ORDER
	   same = cached;
#endif
	   if
	   :: n && dirty[at] && KEPT(ALLOC_WAIT) -> goto back
	   :: n && dirty[at] && KEPT(ALLOC_WAIT) -> goto drop
	   :: n && dirty[at] && KEPT(ALLOC_WAIT) && !BAD(at) -> goto move
#ifdef FAILING
	   :: n && dirty[at] && KEPT(ALLOC_WAIT) && BAD(at) -> goto lose
#endif
	   :: !n || !dirty[at] || !KEPT(ALLOC_WAIT)
	   fi;
	   d_step {
#if LEAVE_OUT == EVACUATED_MB
		   assert(!n || memory[at] == seen);
#elif LEAVE_OUT == NR_ACQUIRE
		   assert(n || memory[at] == seen);
#endif
		   seen = 0;
		   used = range;
		   memory[at] = RUBBISH
	   }
	   d_step { assert(memory[at] == RUBBISH); used = 0 }
back:	   if
	   :: d_step { true -> SCRUB(0); SCRUB(1) }
	   fi;
	   d_step {
		   bits = 0; seen = 0; range = 0; at = 0; to = 0; n = 0; same = 0;
		   leave()
	   }
	   goto end;

	   /* MOVE. */
move:	   if
	   :: d_step { !(dirty[at] && state[at] == STORED) -> skip }
	      goto again
	   :: d_step { dirty[at] && state[at] == STORED -> k = key[at]; claim(at) }
	   fi;
	   if
	   :: d_step { true -> disown(at); k = 0 }	/* there is none, or a primary's */
#if LEAVE_OUT == MOVE_FAILED
	      goto again
#else
	      goto drop
#endif
	   :: d_step { LENT(to) && !BAD(at) ->
		   own(to, k);
		   soil(to);
		   IDLE(at);
		   IDLE(to);
		   memory[to] = (KEPT(MOVE_RELEASE) -> memory[at] : 0) }
	   fi;
#if LEAVE_OUT == MOVE_SLOT
	   d_step { cleanse(at) }
#endif
	   d_step { !lock ->
		   lock = KEPT(MOVE_LOCK);
		   same = slot[k] == at || !KEPT(MOVE_SAME);
		   if
		   :: same && KEPT(MOVE_LATE) -> disown(to)
		   :: else
		   fi
	   }
	   d_step {
		   lock = (KEPT(MOVE_LOCK) -> 0 : lock);
		   if
		   :: same -> slot[k] = to
		   :: else -> cleanse(to); put(to)
		   fi
	   }
#if LEAVE_OUT == MOVE_LATE
	   d_step {
		   if
		   :: same -> disown(to)
		   :: else
		   fi
	   }
#elif LEAVE_OUT == MOVE_RELEASE
	   d_step { memory[to] = (same -> memory[at] : memory[to]) }
#endif
	   d_step { same = 0; k = 0; cleanse(at) }
	   d_step { put(at) }
	   goto again;

#ifdef FAILING
	   /* LEAVE_LOST. */
lose:	   if
	   :: d_step { !(dirty[at] && state[at] == STORED) -> same = 0 }
	      goto again
	   :: d_step { dirty[at] && state[at] == STORED -> k = key[at]; claim(at) }
	   fi;
	   same = (KEPT(LOST_ORDER) -> cached : same) && k == 0 && KEPT(LOST_HELD);
	   if
	   :: d_step { same -> disown(at); same = 0; k = 0; failed = 1 }
	      goto drop
	   :: d_step { !same && NEED(LOST_LOCK, !lock) ->
		   lock = (KEPT(LOST_LOCK) -> 1 : lock);
		   same = slot[k] == at || !KEPT(LOST_SAME) }
	   fi;
	   d_step {
		   lock = (KEPT(LOST_LOCK) -> 0 : lock);
		   slot[k] = (same -> EMPTY : slot[k]);
		   LOSE(same && k == 0);
		   same = 0; k = 0;
		   cleanse(at);
		   put(at)
	   }
	   goto again;
#endif
drop:	   drop_unused(at, !failed);
	   goto again
	od
}

/* All else. */
proctype third()
{
	byte me = THIRD, f = NONE, revoked;
	bit k, unused, stays, failed;

end:	do
	/* The slot is not needed any more, and a CPU keeps it; or its folio leaves it. */
	:: d_step { needed ->
		needed = 0;
		if
		:: !cached -> cached = 1; returned = 1
		:: else
		fi }
	:: d_step { slot[0] == FOLIO && !needed && !locked && !held && !lock ->
		slot[0] = EMPTY; returned = 1 }
	/* FREE_SLOT. */
	:: d_step { returned && !lock ->
		busy++;
		f = slot[0];
		slot[0] = EMPTY;
		if
		:: ENTRY(f) && KEPT(FREE_DROP) && state[f] == STORED &&
		   NEED(FREE_KEY, key[f] == 0) -> claim(f)
		:: else -> f = NONE
		fi }
	   d_step {
		if
		:: f != NONE -> cleanse(f); put(f); f = NONE
		:: else
		fi;
		FIND;
		returned = 0; cached = 0; age(); leave() }
	/* Another page has it. */
	:: d_step { !needed && !cached && !lock ->
		assert(slot[0] == EMPTY);
		needed = 1; cached = 1; slot[0] = FOLIO; soiled = 1; valid = 1 }
#ifdef FAILING
	/* Memory fails, and another frame takes its place. */
	:: d_step { !bad[0] && !bad[1] && !used -> bad[0] = 1 }
	:: d_step { !bad[0] && !bad[1] && !used -> bad[1] = 1 }
	:: d_step { bad[0] && state[0] == FREE -> bad[0] = 0 }
	:: d_step { bad[1] && state[1] == FREE -> bad[1] = 0 }
#endif

	/* Drains. */
	:: dirty[0] && state[0] == STORED -> f = 0; goto drain
	:: dirty[1] && state[1] == STORED -> f = 1;
drain:	   busy++;
#ifdef FAILING
	   /* LEAVE_LOST, if memory fails meanwhile. */
	   if
	   :: d_step { !bad[1 - f] && !used && FOUND(f) && key[f] == 0 -> bad[f] = 1; claim(f) }
	      if
	      :: d_step { TOO_LATE(f, LOST_CLEAN) -> put(f) }
	      :: d_step { !TOO_LATE(f, LOST_CLEAN) && cached && KEPT(LOST_HELD) -> disown(f) }
	      :: d_step { !TOO_LATE(f, LOST_CLEAN) && !(cached && KEPT(LOST_HELD)) && !lock ->
		      if
		      :: slot[0] == f ->
			      /* what the device has is not lost */
			      assert(dirty[f] || device != NEW);
			      LOSE(true);
			      slot[0] = EMPTY
		      :: else
		      fi;
		      cleanse(f);
		      put(f) }
	      fi
	   :: true
	   fi;
#endif
	   drop_unused(f, true);
	   d_step { f = NONE; leave() }

#ifndef FEWER
	/* SHRINK. */
	:: d_step { !lock && ENTRY(slot[0]) ->
		busy++;
		lock = 1;
		f = slot[0];
		stays = KEPT(SHRINK_STAYS) && dirty[f] &&
			(state[f] == STORED || (state[f] == OWNED && KEPT(SHRINK_OWNED))) }
	   d_step {
		if
		:: stays
		:: else ->
			if
			:: state[f] == STORED && !dirty[f] -> claim(f); put(f)
			:: else
			fi;
			slot[0] = EMPTY
		fi;
		lock = 0; stays = 0; f = NONE; leave() }

	/* OVER. */
	:: d_step { ENTRY(slot[0]) && state[slot[0]] == STORED && !dirty[slot[0]] ->
		busy++;
		f = slot[0] }
	   if
	   :: d_step { NEED(OVER_LOCK, !lock) && CLAIMABLE(f, 0) ->
		   lock = (KEPT(OVER_LOCK) -> 1 : lock);
		   claim(f) }
	      d_step { NEED(OVER_LOCK, lock) ->
		   if
		   :: dirty[f] && KEPT(OVER_DIRTY) && (slot[0] == f || !KEPT(OVER_SLOT)) -> disown(f)
		   :: else ->
			   slot[0] = (slot[0] == f -> EMPTY : slot[0]);
			   cleanse(f);
			   put(f)
		   fi;
		   lock = (KEPT(OVER_LOCK) -> 0 : lock);
		   f = NONE; leave() }
	   :: d_step { !CLAIMABLE(f, 0) -> f = NONE; leave() }
	   fi

	/* STALE. */
	:: f = 0; goto stale
	:: f = 1;
stale:	   if
	   :: d_step { true ->
		   busy++;
		   stays = dirty[f] && KEPT(STALE_DIRTY);
		   looked = (state[f] == STORED -> f : NONE) }
	   fi;
#if LEAVE_OUT == STALE_ORDER
	   looked = (state[f] == STORED -> f : NONE);
#else
	   stays = dirty[f] && KEPT(STALE_DIRTY);
#endif
	   d_step {
		   if
		   :: looked == f && !stays -> claim(f); cleanse(f); put(f)
		   :: else
		   fi;
		   looked = NONE; stays = 0; f = NONE; leave() }

	/* Another page, clean, that is forgotten. */
	:: d_step { CLEAN(0) -> own(0, 1); memory[0] = OTHER; disown(0) }
	:: d_step { CLEAN(1) -> own(1, 1); memory[1] = OTHER; disown(1) }
#endif
#ifdef OTHERS
	/* Another one that is nowhere else. */
	:: atomic { slot[1] == EMPTY ->
		if
		:: CLEAN(0) -> f = 0
		:: CLEAN(1) -> f = 1
		fi;
		busy++;
		own(f, 1);
		soil(f)
	   }
	   if
	   :: d_step { SET(bits, f) -> cleanse(f); put(f); f = NONE; leave() }
	   :: d_step { !SET(bits, f) && !lock ->
		   IDLE(f);
		   memory[f] = OTHER;
		   slot[1] = f;
		   disown(f);
		   f = NONE; leave() }
	   fi
	:: d_step { ENTRY(slot[1]) && state[slot[1]] == STORED && !lock ->
		f = slot[1];
		assert(key[f] && dirty[f] && memory[f] == OTHER);
		claim(f);
		slot[1] = EMPTY;
		cleanse(f);
		put(f);
		f = NONE }
#endif
	od
}

init {
	atomic {
		slot[0] = FOLIO;
		run reclaim();
#ifndef OTHERS
		run writer();
#endif
		run loader();
		run primary();
		run third()
	}
}
