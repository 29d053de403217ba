/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rental memory: what is counted, in pages unless said. The events of /proc/vmstat (rental_<name>,
 * all areas) and the files of /sys/kernel/mm/cma/<area>/ (<name>) are made of this list: who
 * includes it defines RENTAL_COUNTER(name) before.
 */
#ifdef CONFIG_RENTAL
RENTAL_COUNTER(lends)		/* lent to the page cache, for a read */
RENTAL_COUNTER(taken_over)	/* lent to pages that reclaim would have evicted */
RENTAL_COUNTER(replaced)	/* left the area before they were written to */
RENTAL_COUNTER(slipped)		/* found dirty there: held, no_memory, or in a way not known */
RENTAL_COUNTER(held)		/* stayed before they were written to: in use, or held by the fs */
RENTAL_COUNTER(no_memory)	/* stayed before they were written to: no memory for a copy */
RENTAL_COUNTER(discarded)	/* dropped by a return */
RENTAL_COUNTER(moved_out)	/* moved to other memory by a return: mlocked, dirty */
RENTAL_COUNTER(activated)	/* moved to other memory by a return: in use */
RENTAL_COUNTER(returns)		/* returns that found pages, a number */
RENTAL_COUNTER(busy)		/* returns that failed, for a page that is held or a kill, a number */
RENTAL_COUNTER(no_run)		/* large folios for which there were frames, but no run */
#endif
#undef RENTAL_COUNTER
