/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Invalidation that does not wait against reclaim: two invalidations, reclaim, and a third one
 * who holds a folio or its lock for a while; two folios that are noted in the same place.
 * Documentation/mm/gcma.rst tells the protocol. All that can happen is looked at.
 *
 * What is promised: if an invalidation passes a folio by while reclaim has it isolated, and
 * reclaim evicts it then, no copy is kept. Who has put it back in between was free to do so:
 * it was resident then. The last folio that was passed by, which is remembered for that case,
 * is left out: this holds without.
 *
 * A step is what others may see done in one piece. Memory is in order: between any two steps of
 * a task that others look at stands an atomic operation that returns a value, or a lock.
 *
 * step                         kernel
 * ----                         ------
 * ISOLATE                      isolate_lru_folios(), folio_isolate_lru()
 * LOCK, FREEZE, COMMIT         shrink_folio_list(), __remove_mapping(), __gcma_store_commit()
 * FIND, EVICT                  find_lock_entries(), mapping_evict_folio()
 * COUNT, NOTE                  __gcma_pass_by()
 *
 * With -DLEAVE_OUT=name one look or order is left out.
 */
#define ASK_FIRST	1 /* mutant: shrink_inactive_list(): read the count before isolation */
#define COMPARE		2 /* mutant: __gcma_store_commit(): compare with what is noted */
#define PASS_LOCKED	3 /* mutant: find_lock_entries(): count who is locked */
#define PASS_HELD	4 /* mutant: mapping_try_invalidate(): count who is held */
#define HOLD		5 /* mutant: mapping_try_invalidate(): drop the reference last */
#define NOTE_LATER	6 /* mutant: __gcma_pass_by(): do not replace a later count */
#define FREEZE		7 /* mutant: __remove_mapping(): no copy while there are references */

#ifndef LEAVE_OUT
#define LEAVE_OUT	0
#endif
#define KEPT(what)	(LEAVE_OUT != what)

#define ROUNDS		2	/* of each invalidation: the count stays small */

bit present[2] = 1;
bit lru[2] = 1;
bit locked[2];
byte refs[2] = 1;		/* the page cache's, while present */
bit passed[2];			/* since it was isolated; nobody looks at it but assertions */

byte count = 1;
byte noted;

proctype reclaim()
{
	byte asked, f;

end:	do
	:: d_step { f = 0; asked = count }
	   goto isolate
	:: d_step { f = 1; asked = count }
isolate:   if
	   :: d_step { present[f] && lru[f] -> lru[f] = 0; refs[f]++; passed[f] = 0 }
	   :: d_step { !(present[f] && lru[f]) -> asked = 0; f = 0 }
	      goto end
	   fi;
	   if
	   :: !KEPT(ASK_FIRST) -> asked = count
	   :: else
	   fi;
	   if
	   :: d_step { locked[f] -> refs[f]--; lru[f] = 1 }	/* put back */
	      goto end
	   :: d_step { !locked[f] -> locked[f] = 1 }
	   fi;
	   /* The copy is made here. */
	   if
	   :: d_step { refs[f] != 2 && KEPT(FREEZE) ->
		       locked[f] = 0; refs[f]--; lru[f] = 1 }
	      goto end
	   :: d_step { refs[f] == 2 || !KEPT(FREEZE) -> present[f] = 0; refs[f] = refs[f] - 2 }
	   fi;
	   d_step {
		   if
		   :: noted > asked && KEPT(COMPARE)
		   :: else -> assert(!passed[f])	/* a copy is kept */
		   fi;
		   /* Another page is read into another folio at once. */
		   locked[f] = 0;
		   passed[f] = 0;
		   asked = 0
	   }
	   if
	   :: d_step { refs[f] == 0 -> present[f] = 1; lru[f] = 1; refs[f] = 1; f = 0 }
	   fi
	od
}

proctype invalidation()
{
	byte f, now, at, round;

	do
	:: d_step { round == ROUNDS -> f = 0; now = 0; at = 0 }
	   break
	:: d_step { round < ROUNDS -> round++; f = 0 }
	   goto find
	:: d_step { round < ROUNDS -> round++; f = 1 }
find:	   if
	   :: d_step { present[f] -> refs[f]++ }
	   :: d_step { !present[f] -> f = 0 }
	      goto next
	   fi;
	   if
	   :: d_step { locked[f] -> passed[f] = 1 }
	      if
	      :: !KEPT(PASS_LOCKED) -> goto drop
	      :: else
	      fi
	   :: d_step { !locked[f] -> locked[f] = 1 }
	      if
	      :: d_step { refs[f] == 2 ->		/* evicted, and read anew */
			  locked[f] = 0; refs[f]--; f = 0 }
		 goto next
	      :: d_step { refs[f] != 2 -> passed[f] = 1 }
	      fi;
	      locked[f] = 0;
	      if
	      :: !KEPT(PASS_HELD) -> goto drop
	      :: else
	      fi
	   fi;
	   if
	   :: !KEPT(HOLD) -> refs[f]--
	   :: else
	   fi;
	   d_step { count++; now = count }
	   at = noted;
	   do
	   :: d_step { at >= now && KEPT(NOTE_LATER) -> at = 0; now = 0 }
	      break
	   :: d_step { (at < now || !KEPT(NOTE_LATER)) &&
		       (noted == at || !KEPT(NOTE_LATER)) -> noted = now; at = 0; now = 0 }
	      break
	   :: d_step { at < now && noted != at && KEPT(NOTE_LATER) -> at = noted }
	   od;
	   if
	   :: !KEPT(HOLD) -> goto next
	   :: else
	   fi;
drop:	   refs[f]--;
next:	   skip
	od
}

/* Holds a folio, or locks it, and gives it back. */
proctype third()
{
	byte f;

end:	do
	:: f = 0
	   goto hold
	:: f = 1
hold:	   if
	   :: d_step { present[f] -> refs[f]++ }
	   :: d_step { !present[f] -> f = 0 }
	      goto end
	   fi;
	   if
	   :: d_step { !locked[f] -> locked[f] = 1 }
	      d_step { locked[f] = 0; refs[f]--; f = 0 }
	   :: d_step { refs[f]--; f = 0 }
	   fi
	od
}

init {
	atomic {
		run reclaim();
		run invalidation();
		run invalidation();
		run third()
	}
}
