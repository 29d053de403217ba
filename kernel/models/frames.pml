/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The states of frames: two tasks that store, load and drop, a primary that allocates and
 * releases and then is the worker that looks after the quarantine, and somebody who holds
 * references to its pages; two frames, two pages of a file. Each goes on for ever, and all
 * that can happen is looked at. Documentation/mm/gcma.rst tells the protocol, and what
 * this model leaves out.
 *
 * A step is what others may see done in one piece, and steps are merged where it makes no
 * difference: a section under gcma.lock is one step, for others look at one word at a time
 * without the lock; a page is locked together with the first look at its frame, and unlocked
 * together with the last, for nobody else touches a locked page. Announcing a frame and
 * looking at its bit are one, and so are the second look, the copy and the end of the
 * announcement, for the allocator waits for the last. Memory is in order: hazard.pml has the
 * barriers, what is between these steps, and why one word of memory stands for a page. What
 * nobody may look at again is wiped, which makes fewer states and hides nothing.
 *
 * While a page is loaded nobody else loads it, drops it or writes to it: it is locked first,
 * unlike in the kernel, where the entry stays in its slot until the copy is made. loads.pml
 * has that.
 *
 * An entry names a frame and no generation, as after a wrap: what it may be
 * mistaken for must be found out by the key. The generation in the word does not
 * wrap while somebody remembers it: a new one is any that nobody remembers.
 * The order on a list is left open: any frame of it may be the first. The frames are alike,
 * and so are the pages: it is always the first frame that is allocated alone or quarantined,
 * and the first page that is written to.
 *
 * step                         kernel
 * ----                         ------
 * TAKE_FREE, TAKE_VICTIM       gcma_copy_page(), gcma_take_from()
 * LOOK, CLAIM                  gcma_claim()
 * ANNOUNCE, COPY               gcma_enter(), gcma_copy_data(), gcma_exit()
 * put()                        gcma_put()
 * EVICT, LOAD, DROP            __remove_mapping(), filemap_add_folio(), gcma_drop()
 * settle()                     cma_give_back(), gcma_scrub(), gcma_lend()
 *
 * With -DLEAVE_OUT=name one look or order is left out; see hazard.pml.
 */
#define ENTER_BIT	1  /* mutant: gcma_enter(): look at the frame's bit */
#define ENTER_WORD	2  /* mutant: gcma_enter(): look at the word, which may say LOST */
#define SET_SLOT	3  /* mutant: gcma_enter(): announces the frame */
#define ALLOC_WAIT	4  /* mutant: gcma_revoke() */
#define CLAIM_KEY	5  /* mutant: gcma_claim(): look at the key */
#define CLAIM_WORD	6  /* mutant: gcma_claim(): only if the word is the same */
#define COMMIT_WORD	7  /* mutant: gcma_publish(): only if the frame is not LOST */
#define STORE_GEN	8  /* mutant: gcma_copy_page(): a new generation */
#define RECYCLE_STORED	9  /* mutant: gcma_take_from(): only frames that are STORED */
#define SCRUB_LOST	10 /* mutant: gcma_scrub(): what has an owner is LOST */
#define SCRUB_UNLINK	11 /* mutant: gcma_scrub(): what was STORED leaves its list */
#define SCRUB_FIRST	12 /* mutant: cma_give_back(): scrub before the bits are cleared */
#define LEND_LAST	13 /* mutant: cma_give_back(): lend after the bits are cleared */
#define LEND_UNLINKED	14 /* mutant: gcma_lend(): only frames that are on no list */
#define IDLE		15 /* mutant: cma_idle(): look at the references */

#ifndef LEAVE_OUT
#define LEAVE_OUT	0
#endif
#define KEPT(what)	(LEAVE_OUT != what)
#define NEED(what, condition)	(!KEPT(what) || (condition))

#define NONE		7

/* States and lists of a frame. */
#define FREE		0
#define STORED		1
#define LOST		2
#define OWNED		3
#define FREE_LIST	1
#define TENANTS		2

byte state[2];
byte gen[2];				/* the rest of the word */
byte list[2] = NONE;
byte key[2];
byte memory[2];
byte owner[2] = NONE;			/* nobody looks at it but assertions */

/*
 * What stands in the slot of a page, besides the frame that a tenant entry names. A page
 * that is not there is read from disk at once.
 */
#define RESIDENT	11
#define LOCKED		12		/* the folio is being evicted or loaded */

byte page[2] = RESIDENT;
bit version;				/* of the first page's content; 0 if it is resident */

#define CONTENT(k)	(k -> 3 : 1 + version)
#define RUBBISH		4		/* what a primary writes */

byte bits;				/* the area's bitmap */
byte settling;				/* bits that were cleared just now */
byte quarantine;
byte references;			/* to pages that the primary released */

/* What each task is at. */
byte slot[2] = NONE;			/* its CPU's */
byte frame[2] = NONE;			/* the frame whose word it remembers */
byte word[2];

#define SET(mask, f)	((mask) & (1 << (f)))

#define REMEMBERED(f, value)							\
	((frame[0] == f && word[0] == value) || (frame[1] == f && word[1] == value))

byte fresh;				/* of next_gen() */

/* A generation that nobody remembers. */
inline next_gen(f, what)
{
	if
	:: !KEPT(what)
	:: else ->
		fresh = 0;
		do
		:: REMEMBERED(f, fresh) -> fresh++
		:: else -> break
		od;
		gen[f] = fresh;
		fresh = 0
	fi
}

/* A frame is on the list that fits its state, and a free one on none only if a bit tells. */
#define SOUND(f)								\
	((state[f] == FREE || list[f] == TENANTS) &&				\
	 (state[f] != FREE || list[f] == FREE_LIST || SET(bits | settling, f)))

inline link(f, to)
{
	assert(list[f] == NONE);
	list[f] = to
}

inline unlink(f, from)
{
	assert(list[f] == from);
	list[f] = NONE
}

/* Not what a primary may still look at. */
inline wipe(f)
{
	key[f] = 0;
	memory[f] = (SET(bits, f) -> memory[f] : 0)
}

inline own(f)
{
	assert(owner[f] == NONE);
	owner[f] = me
}

inline put(f)
{
	assert(owner[f] == me);
	owner[f] = NONE;
	unlink(f, TENANTS);
	state[f] = FREE;
	wipe(f);
	link(f, FREE_LIST);
	assert(SOUND(0) && SOUND(1));
	f = NONE
}

inline store(f)
{
	own(f);
	key[f] = k;
	next_gen(f, STORE_GEN);
	state[f] = OWNED;
	link(f, TENANTS)
}

#define TAKE_FREE(which)							\
	d_step { list[which] == FREE_LIST ->					\
		unlink(which, FREE_LIST);					\
		if								\
		:: !SET(bits, which) ->				\
			f = which;						\
			store(f)						\
		:: else								\
		fi }

#define TAKE_VICTIM(which)							\
	d_step { list[which] == TENANTS &&					\
		 NEED(RECYCLE_STORED, state[which] == STORED) ->		\
		state[which] = FREE;						\
		unlink(which, TENANTS);						\
		wipe(which);							\
		if								\
		:: !SET(bits, which) ->				\
			f = which;						\
			store(f)						\
		:: else								\
		fi }

/* May the task copy now? The slot is set then, until COPY. */
#define ANNOUNCE								\
	d_step {								\
		ok = NEED(ENTER_BIT, !SET(bits, f));				\
		slot[me] = (ok && KEPT(SET_SLOT) -> f : NONE) }

#define COPY(to, from)								\
	d_step {								\
		ok = ok && NEED(ENTER_WORD, state[f] != LOST);			\
		to = (ok -> from : to);						\
		slot[me] = NONE }

/* The first look at the word, and at the key: NONE if the tenant is not there. */
#define LOOK(keyed)								\
	if									\
	:: state[f] == STORED && NEED(CLAIM_KEY, !keyed || key[f] == k) ->	\
		frame[me] = f;							\
		word[me] = gen[f]						\
	:: else ->								\
		f = NONE							\
	fi

#define CLAIM									\
	d_step {								\
		if								\
		:: f == NONE							\
		:: f != NONE &&							\
		   NEED(CLAIM_WORD, state[f] == STORED && gen[f] == word[me]) ->	\
			own(f);							\
			state[f] = OWNED					\
		:: else ->							\
			f = NONE						\
		fi;								\
		frame[me] = NONE;						\
		word[me] = 0 }

proctype task(byte me)
{
	byte k, f = NONE, got;
	bool ok;

next:	do
	/* EVICT. */
	:: atomic {
		if
		:: page[0] == RESIDENT -> k = 0
		:: page[1] == RESIDENT -> k = 1
		fi;
		if
		:: TAKE_FREE(0)
		:: TAKE_FREE(1)
		:: TAKE_VICTIM(0)
		:: TAKE_VICTIM(1)
		:: else
		fi;
		if
		:: f == NONE ->		/* there is none, or it is a primary's */
			k = 0;
			goto next
		:: f != NONE ->
			page[k] = LOCKED
		:: f != NONE && k == 0 ->	/* it was written to */
			page[k] = LOCKED;
			version = 1
		fi
	   }
		ANNOUNCE;
		COPY(memory[f], CONTENT(k));
		if
		/* From here on the frame may be recycled. */
		:: d_step { ok && NEED(COMMIT_WORD, state[f] != LOST) ->
			state[f] = STORED;
			owner[f] = NONE;
			page[k] = f;
			ok = false; f = NONE; k = 0 }
		/* The copy, the commit or the eviction fails. */
		:: d_step { true ->
			page[k] = RESIDENT;
			put(f);
			version = (k -> version : 0); ok = false; k = 0 }
		fi

	/* LOAD: as if the page were locked all the time. */
	:: atomic {
		if
		:: page[0] <= 1 -> k = 0
		:: page[1] <= 1 -> k = 1
		fi;
		f = page[k];
		page[k] = LOCKED;
		LOOK(true)
	   }
		CLAIM;
		if
		:: d_step { f == NONE ->
			page[k] = RESIDENT;	/* read from disk */
			version = (k -> version : 0); k = 0 }
		:: f != NONE ->
			ANNOUNCE;
			COPY(got, memory[f]);
			d_step {
				/* No load returns anything but what was stored. */
				assert(!ok || got == CONTENT(k));
				page[k] = RESIDENT;
				put(f);
				version = (k -> version : 0); ok = false; got = 0; k = 0
			}
		fi

	/* DROP: truncation, or the shadow shrinker. */
	:: atomic {
		if
		:: page[0] <= 1 -> k = 0
		:: page[1] <= 1 -> k = 1
		fi;
		f = page[k];
		page[k] = RESIDENT;
		version = (k -> version : 0);
		LOOK(false);
		k = 0
	   }
		CLAIM;
		if
		:: f == NONE
		:: d_step { f != NONE -> put(f) }
		fi
	od
}

#define SCRUB(f)								\
	if									\
	:: SET(range, f) ->							\
		if								\
		:: state[f] == OWNED && KEPT(SCRUB_LOST) ->			\
			state[f] = LOST						\
		:: state[f] == STORED ->					\
			state[f] = FREE;					\
			key[f] = 0;						\
			if							\
			:: KEPT(SCRUB_UNLINK) -> unlink(f, TENANTS)		\
			:: else							\
			fi							\
		:: else								\
		fi								\
	:: else									\
	fi

#define LEND(f)									\
	if									\
	:: SET(range, f) && NEED(LEND_UNLINKED, list[f] == NONE) ->		\
		link(f, FREE_LIST)						\
	:: else									\
	fi

inline scrub()
{
	d_step { SCRUB(0); SCRUB(1) }
}

/* That a frame on no list is FREE, which gcma_lend() looks at too, follows. */
inline lend()
{
	d_step {
		LEND(0);
		LEND(1);
		settling = 0;
		assert(SOUND(0) && SOUND(1))
	}
}

#define WIPE(f)									\
	memory[f] = (SET(range, f) && state[f] == FREE -> 0 : memory[f])

inline clear_bits()
{
	d_step {
		settling = (KEPT(LEND_LAST) -> range : 0);
		bits = bits & ~range;
		quarantine = quarantine & ~range;
		WIPE(0);
		WIPE(1);
		assert(SOUND(0) && SOUND(1))
	}
}

/* Gives the range back to the area. */
inline settle()
{
#if LEAVE_OUT == SCRUB_FIRST
	clear_bits(); scrub(); lend();
#elif LEAVE_OUT == LEND_LAST
	scrub(); lend(); clear_bits();
#else
	scrub(); clear_bits(); lend();
#endif
	range = 0
}

#define NAMED(cpu)	(slot[cpu] != NONE && SET(range, slot[cpu]))
#define KEEPS_RUBBISH(pages)							\
	((!SET(pages, 0) || memory[0] == RUBBISH) && (!SET(pages, 1) || memory[1] == RUBBISH))

/* Somebody may hold references to released pages, which are not settled then. */
#define RELEASE(held)								\
	d_step { (range & (held)) == (held) ->					\
		assert(KEEPS_RUBBISH(range));					\
		references = references | (held);				\
		quarantine = quarantine | (KEPT(IDLE) -> held : 0);		\
		range = (KEPT(IDLE) -> range & ~(held) : range) }

/* Allocates, uses and releases; or is the worker that settles what is in quarantine. */
proctype primary()
{
	byte range;

	do
	:: atomic {
		if
		:: !SET(bits, 0) -> range = 1
		:: !bits -> range = 3
		fi;
		bits = bits | range
	   }
		d_step { NEED(ALLOC_WAIT, !NAMED(0) && !NAMED(1)) ->
			memory[0] = (SET(range, 0) -> RUBBISH : memory[0]);
			memory[1] = (SET(range, 1) -> RUBBISH : memory[1])
		}
		if
		:: RELEASE(0)
		:: RELEASE(1)
		fi;
		if
		:: range -> settle()
		:: !range
		fi

	:: d_step { quarantine & ~references -> range = quarantine & ~references }
		settle()
	od
}

/* Who pinned pages of a primary may still look at them, and write to them. */
proctype user()
{
	do
	:: d_step { SET(references, 0) ->
		assert(memory[0] == RUBBISH);
		references = references & ~1 }
	od
}

init {
	atomic {
		list[0] = FREE_LIST;
		list[1] = FREE_LIST;
		run task(0);
		run task(1);
		run primary();
		run user()
	}
}
