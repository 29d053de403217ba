/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guaranteed contiguous memory: what is counted, in pages. The events of /proc/vmstat
 * (gcma_<name>, all areas) and the files of /sys/kernel/mm/cma/<area>/ (<name>) are
 * made of this list: who includes it defines GCMA_COUNTER(name) before.
 */
#ifdef CONFIG_GCMA
GCMA_COUNTER(stores)		/* evicted pages that became tenants */
GCMA_COUNTER(stores_swap)	/* of these, swapped-out pages */
GCMA_COUNTER(stores_dirty)	/* of these, those that were not written to swap */
GCMA_COUNTER(loads)		/* tenants that a page was filled from */
GCMA_COUNTER(loads_swap)	/* of these, swapped-out pages */
GCMA_COUNTER(misses)		/* tenant entries whose tenant was gone; see gcma_fill_page() */
GCMA_COUNTER(recycles)		/* tenants replaced by others, never loaded */
GCMA_COUNTER(dropped)		/* tenants whose page went, or was read anew */
GCMA_COUNTER(revoked)		/* tenants whose frame a primary took, or failed */
GCMA_COUNTER(moved_aside)	/* tenants moved to another frame before a primary */
GCMA_COUNTER(put_back)		/* tenants read back into memory before a primary */
GCMA_COUNTER(written_back)	/* of these, those that were written to swap then */
GCMA_COUNTER(refused_fs)	/* the address_space does not allow tenants */
GCMA_COUNTER(refused_large)	/* too large a folio, too far into its file */
GCMA_COUNTER(refused_private)	/* plaintext of an encrypted file */
GCMA_COUNTER(refused_partial)	/* not all blocks of the page were read */
GCMA_COUNTER(refused_cheap)	/* swapped out, but all zeroes, or in zswap */
GCMA_COUNTER(refused_failed)	/* its memory or a write of its file failed */
GCMA_COUNTER(refused_admission)	/* not worth a page of the area */
GCMA_COUNTER(refused_busy)	/* no frame, or a primary took it meanwhile */
GCMA_COUNTER(refused_kept)	/* copied, and then not evicted after all */
GCMA_COUNTER(refused_passed)	/* an invalidation passed the folio by */
#endif
#undef GCMA_COUNTER
