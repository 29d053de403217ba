/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hazard protocol on a weakly ordered machine: two CPUs that copy, a primary
 * that allocates and releases, two frames. Documentation/mm/gcma.rst tells the
 * protocol under "Revocation" and what this model leaves out.
 *
 * The machine. A process is a set of steps, each one access to memory that all
 * others share. It does them in any order that the guards allow, and a guard names
 * nothing but what the kernel's code may rely on: a barrier, an acquire or release, an
 * earlier access to the same location, and, for stores, the branch they stand
 * behind. So a store waits in a store buffer, from which it leaves before or after
 * others of the same CPU, as long as its step is not done; and a load is done early, also
 * behind a branch that is not decided, or late, after stores that follow it. What
 * is missing is a store that some CPUs see before others do, as on PowerPC.
 *
 * A frame is one word of memory here: words do not know of each other, so a copy
 * that is wrong in part is wrong in one of them. The primary uses one frame of its
 * range. Nobody looks at free lists or keys: frames.pml does.
 *
 * One CPU makes two attempts to copy, which overlap as far as the machine lets them;
 * more would not overlap, for the second one's smp_mb() comes after all of the first.
 * The other makes one. With one attempt each the primary comes and goes twice.
 *
 * Each attempt and each round ends, so a wait that does not is a deadlock here.
 *
 * step                      kernel
 * ----                      ------
 * attempt: its begin        gcma_copy_page() up to gcma_enter(), gcma_claim()
 *   SLOT ... WORD           gcma_enter()
 *   COPY                    gcma_copy_data()
 *   UNSLOT, UNMASK          gcma_exit(), or the end of gcma_enter() if it fails
 *   END                     __gcma_store_commit(), gcma_put()
 * primary: BITS             cma_alloc()
 *   LOOK, WAIT              gcma_revoke()
 *   READ ... CHECK          the primary's own use of the memory
 *   SCRUB                   gcma_scrub()
 *   UNBITS                  cma_give_back(), bitmap_clear()
 *
 * With -DLEAVE_OUT=name the order or look of that name is left out. Each of them is
 * needed: tests/test_models.py sees the model without it rejected. What the kernel
 * has beyond them, by stronger operations, is not relied on: set_bit() and
 * clear_bit() are atomic and unordered here, the read-modify-write of gcma_scrub() is
 * a release, not a full barrier. Slot and mask are set, cleared and looked at in any order.
 */
#define COPIER_MB	1  /* mutant: gcma_enter(): full barrier after slot and mask */
#define ALLOC_MB	2  /* mutant: gcma_revoke(): full barrier after the bits */
#define SET_SLOT	3  /* mutant: gcma_enter() announces the frame */
#define SET_MASK	4  /* mutant: gcma_enter() sets the bit of its CPU in the mask */
#define ENTER_BIT	5  /* mutant: gcma_enter(): look at the frame's bit */
#define ENTER_RMB	6  /* mutant: gcma_enter(): read barrier between bit and word */
#define ENTER_WORD	7  /* mutant: gcma_enter(): look at the word, which may say LOST */
#define SLOT_RELEASE	8  /* mutant: gcma_exit(): the slot is cleared after the copy */
#define MASK_RELEASE	9  /* mutant: gcma_exit(): the mask is cleared after the copy */
#define CLEAR_SLOT	10 /* mutant: gcma_exit() clears the slot, not only the mask */
#define SLOT_ACQUIRE	11 /* mutant: gcma_revoke(): use after the last look at a slot */
#define MASK_ACQUIRE	12 /* mutant: gcma_revoke(): use after the look at the mask */
#define ALLOC_WAIT	13 /* mutant: gcma_revoke(): wait while a slot names the frame */
#define SCRUB_LOST	14 /* mutant: gcma_scrub(): what has an owner is LOST */
#define SCRUB_RELEASE	15 /* mutant: gcma_scrub(): after all use of the memory */
#define SETTLE_WMB	16 /* mutant: cma_give_back(): the bits are cleared after the words changed */
#define COMMIT_WORD	17 /* mutant: gcma_publish(): only if the frame is not LOST */
#define COMMIT_RELEASE	18 /* mutant: __gcma_store_commit(): after the copy */

#ifndef LEAVE_OUT
#define LEAVE_OUT	0
#endif
#define KEPT(what)	(LEAVE_OUT != what)

#define FRAMES		2
#define CPUS		2
#ifndef ATTEMPTS
#define ATTEMPTS	2		/* of the first CPU; the second makes one */
#endif
#ifndef ROUNDS
#define ROUNDS		1		/* of the primary */
#endif

/* STORING and LOADING are both OWNED in the kernel, or LOST if scrubbed. */
#define FREE		0
#define STORING		1
#define STORED		2
#define LOADING		3

/* Contents of a frame: an attempt's number + 1, or */
#define BEFORE		14		/* a tenant from before the model begins */
#define RUBBISH		15		/* what the primary writes */

byte state[FRAMES];
bool scrubbed[FRAMES];			/* the word says LOST */
byte memory[FRAMES];
byte tenant[FRAMES];			/* what the frame's tenant was when it was stored */
byte bits;				/* the area's bitmap */
byte slot[CPUS];			/* the frame + 1, 0: none */
bool mask[CPUS];
byte done[2 * CPUS];			/* by each attempt */

#define DID(set, steps)		(((set) & (steps)) == (steps))
#define NEED(what, condition)	(!KEPT(what) || (condition))

/* The steps of an attempt. */
#define SLOT		1
#define MASK		2
#define BIT		4
#define WORD		8
#define COPY		16
#define UNSLOT		32
#define UNMASK		64
#define END		128
#define ALL		255

#define TODO(step)	!(done[me] & (step))
#define AFTER(steps)	DID(done[me], steps)
/* Always true for the first attempt of a CPU. */
#define AFTER_PREVIOUS(steps)	(!(me % 2) || DID(done[me - 1], steps))
#define AFTER_MB	NEED(COPIER_MB, AFTER(SLOT | MASK) &&			\
			     AFTER_PREVIOUS(COPY | UNSLOT | UNMASK))

/*
 * Become owner of a frame, by gcma.lock or by compare-and-exchange; either is an
 * acquire. That a free frame's bit is looked at before is not relied on.
 */
#define OWN(frame, from, to, loads)						\
	atomic { AFTER_PREVIOUS(BIT | WORD) && state[frame] == from ->		\
		f = frame;							\
		load = loads;							\
		scrubbed[f] = false;						\
		state[f] = to }

proctype attempt(byte me)
{
	byte f, got;
	bool load, ok = true;

	if
	:: OWN(0, FREE, STORING, false)
	:: OWN(1, FREE, STORING, false)
	:: OWN(0, STORED, STORING, false)
	:: OWN(1, STORED, STORING, false)
	:: OWN(0, STORED, LOADING, true)
	:: OWN(1, STORED, LOADING, true)
	fi;

	do
	:: d_step { TODO(SLOT) && NEED(CLEAR_SLOT, AFTER_PREVIOUS(UNSLOT)) ->
		slot[me / 2] = (KEPT(SET_SLOT) -> f + 1 : 0);
		done[me] = done[me] | SLOT }

	:: d_step { TODO(MASK) && AFTER_PREVIOUS(UNMASK) ->
		mask[me / 2] = KEPT(SET_MASK);
		done[me] = done[me] | MASK }

	:: d_step { TODO(BIT) && AFTER_MB ->
		if
		:: KEPT(ENTER_BIT) && (bits & (1 << f)) ->
			ok = false;
			done[me] = done[me] | BIT | WORD | COPY
		:: else ->
			done[me] = done[me] | BIT
		fi }

	:: d_step { TODO(WORD) && AFTER_MB && NEED(ENTER_RMB, AFTER(BIT)) ->
		if
		:: KEPT(ENTER_WORD) && scrubbed[f] ->
			ok = false;
			done[me] = done[me] | WORD | COPY
		:: else ->
			done[me] = done[me] | WORD
		fi }

	/* A store stands behind both branches, a load may come too early. */
	:: d_step { TODO(COPY) && !load && AFTER(BIT | WORD) ->
		memory[f] = me + 1;
		done[me] = done[me] | COPY }

	:: d_step { TODO(COPY) && load && AFTER_MB ->
		got = memory[f];
		done[me] = done[me] | COPY }

	:: d_step { TODO(UNSLOT) && AFTER(SLOT | BIT | WORD) && NEED(SLOT_RELEASE, AFTER(COPY)) ->
		slot[me / 2] = (KEPT(CLEAR_SLOT) -> 0 : slot[me / 2]);
		done[me] = done[me] | UNSLOT }

	:: d_step { TODO(UNMASK) && AFTER(MASK | BIT | WORD) && NEED(MASK_RELEASE, AFTER(COPY)) ->
		mask[me / 2] = false;
		done[me] = done[me] | UNMASK }

	:: d_step { TODO(END) && AFTER(BIT | WORD) &&
		    (load -> AFTER(COPY) : NEED(COMMIT_RELEASE, AFTER(COPY))) ->
		/* No load returns anything but what was stored. */
		assert(!load || !ok || got == tenant[f]);
		if
		:: !load && ok && NEED(COMMIT_WORD, !scrubbed[f]) ->
			state[f] = STORED;
			tenant[f] = me + 1
		:: else ->
			state[f] = FREE;
			tenant[f] = 0
		fi;
		got = 0;
		scrubbed[f] = false;
		done[me] = done[me] | END }

	:: atomic { done[me] == ALL ->
		f = 0; got = 0; load = false; ok = true;
		break }
	od
}

/* The steps of a primary; LOOK and WAIT are the first of one for each CPU. */
#undef TODO
#undef AFTER
#define TODO(step)	!(did & (step))
#define AFTER(steps)	DID(did, steps)

#define BITS		1
#define LOOK		2
#define WAIT		8
#define READ		32
#define WRITE		64
#define CHECK		128
#define SCRUB		256
#define UNBITS		512
#define EVERYTHING	1023

#define AFTER_BITS	NEED(ALLOC_MB, AFTER(BITS))
#define NAMED(cpu)	(slot[cpu] && (range & (1 << (slot[cpu] - 1))) &&		\
			 (KEPT(CLEAR_SLOT) || mask[cpu]))
/* The wait is behind us, as far as branches tell: a store may follow, not a load. */
#define WAITED		AFTER(LOOK | LOOK << 1 | WAIT | WAIT << 1)
#define SCRUBBED(f)								\
	if									\
	:: range & (1 << f) ->							\
		scrubbed[f] = KEPT(SCRUB_LOST) && (state[f] == STORING || state[f] == LOADING); \
		state[f] = (state[f] == STORED -> FREE : state[f])		\
	:: else									\
	fi

/*
 * A CPU that is not in the mask needs no look at its slot. If it is, a load that was
 * done too early, on the other branch, is done again.
 */
#define LOOKED(cpu)								\
	d_step { TODO(LOOK << cpu) && AFTER_BITS ->				\
		did = (mask[cpu] -> did & ~READ : did | WAIT << cpu);		\
		did = did | LOOK << cpu }
#define WAITED_FOR(cpu)								\
	d_step { TODO(WAIT << cpu) && AFTER_BITS &&				\
		 NEED(ALLOC_WAIT, !NAMED(cpu)) ->				\
		did = did | WAIT << cpu }
/* What follows the last look at the slot, if there is one. */
#define ACQUIRED(cpu)								\
	(NEED(MASK_ACQUIRE, AFTER(LOOK << cpu)) &&				\
	 NEED(SLOT_ACQUIRE, TODO(LOOK << cpu) || AFTER(WAIT << cpu)))

proctype primary()
{
	byte range, mine, seen, round;
	short did;

	do
	:: round == ROUNDS -> break
	:: round < ROUNDS ->
		atomic {
			if
			:: range = 1; mine = 0
			:: range = 2; mine = 1
			:: range = 3; mine = 0
			:: range = 3; mine = 1
			fi
		}
		do
		:: d_step { TODO(BITS) ->
			bits = bits | range;
			did = did | BITS }

		:: LOOKED(0)
		:: LOOKED(1)
		:: WAITED_FOR(0)
		:: WAITED_FOR(1)

		/* What it finds in the memory does not change while it has it. */
		:: d_step { TODO(READ) && AFTER_BITS && ACQUIRED(0) && ACQUIRED(1) ->
			seen = memory[mine];
			did = did | READ }

		:: d_step { TODO(WRITE) && WAITED && AFTER(READ) ->
			assert(memory[mine] == seen);
			seen = 0;
			memory[mine] = RUBBISH;
			did = did | WRITE }

		:: d_step { TODO(CHECK) && AFTER(WRITE) ->
			assert(memory[mine] == RUBBISH);
			did = did | CHECK }

		:: d_step { TODO(SCRUB) && WAITED && NEED(SCRUB_RELEASE, AFTER(CHECK)) ->
			SCRUBBED(0);
			SCRUBBED(1);
			did = did | SCRUB }

		:: d_step { TODO(UNBITS) && AFTER(BITS) && WAITED &&
			    NEED(SETTLE_WMB, AFTER(SCRUB | WRITE)) ->
			bits = bits & ~range;
			did = did | UNBITS }

		:: atomic { did == EVERYTHING ->
			did = 0; seen = 0; range = 0; mine = 0;
			round++;
			break }
		od
	od
}

init {
	atomic {
		state[0] = STORED;
		tenant[0] = BEFORE;
		memory[0] = BEFORE;
		run attempt(0);
#if ATTEMPTS == 2
		run attempt(1);
#endif
		run attempt(2);
		run primary()
	}
}
