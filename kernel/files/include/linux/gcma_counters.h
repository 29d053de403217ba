/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guaranteed contiguous memory: what is counted, in pages. The events of /proc/vmstat
 * (gcma_<name>, all areas) and the files of /sys/kernel/mm/cma/<area>/ (<name>) are
 * made of this list.
 */
#ifndef _LINUX_GCMA_COUNTERS_H
#define _LINUX_GCMA_COUNTERS_H

#define GCMA_COUNTERS(COUNTER)						\
	/* evicted pages that became tenants */				\
	COUNTER(STORES, stores)						\
	/* tenants that a page was filled from */			\
	COUNTER(LOADS, loads)						\
	/* tenant entries that were found, but their tenant was gone */	\
	COUNTER(MISSES, misses)						\
	/* tenants replaced by others before they were loaded */	\
	COUNTER(RECYCLES, recycles)					\
	/* tenants whose page was truncated, invalidated, rewritten */	\
	COUNTER(DROPPED, dropped)					\
	/* tenants whose frame a primary took */			\
	COUNTER(REVOKED, revoked)					\
	/* refused: the file's address_space does not allow tenants */	\
	COUNTER(REFUSED_FS, refused_fs)					\
	/* refused: too large a folio, or too far into its file */	\
	COUNTER(REFUSED_LARGE, refused_large)				\
	/* refused: plaintext of an encrypted file */			\
	COUNTER(REFUSED_PRIVATE, refused_private)			\
	/* refused: only some blocks of the page were ever read */	\
	COUNTER(REFUSED_PARTIAL, refused_partial)			\
	/* refused: its memory, or an earlier write of the file, failed */ \
	COUNTER(REFUSED_FAILED, refused_failed)				\
	/* refused: the area is full of what is worth more */		\
	COUNTER(REFUSED_ADMISSION, refused_admission)			\
	/* refused: no frame at hand, or a primary took it meanwhile */	\
	COUNTER(REFUSED_BUSY, refused_busy)				\
	/* refused: meanwhile an invalidation passed the folio by */	\
	COUNTER(REFUSED_PASSED, refused_passed)

#endif /* _LINUX_GCMA_COUNTERS_H */
