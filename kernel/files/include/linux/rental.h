/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rental memory: what drivers and the rest of mm see of it.
 *
 * Idle frames of a CMA area of policy "rental" are lent to clean pages of the page cache,
 * which live in them as in any other memory until the device needs the frames again. See
 * Documentation/mm/rental.rst.
 */
#ifndef _LINUX_RENTAL_H
#define _LINUX_RENTAL_H

#include <linux/jump_label.h>
#include <linux/pagemap.h>

struct cma;

DECLARE_STATIC_KEY_FALSE(rental_key);

/*
 * True from the moment the first area of policy rental is active. Without CONFIG_RENTAL all
 * hooks are dead code, and what they would call does not exist.
 */
static inline bool rental_enabled(void)
{
	return IS_ENABLED(CONFIG_RENTAL) && static_branch_unlikely(&rental_key);
}

bool __rental_lent(const struct page *page);
bool __rental_spared(struct folio *folio);
void __rental_unevictable(struct folio *folio, long nr);
unsigned long __rental_nr_lent(int nid);
unsigned long __rental_nr_spared(int nid);
unsigned long __rental_zone_lent(struct zone *zone);
struct folio *__rental_alloc(struct address_space *mapping, gfp_t gfp,
			     unsigned int order, bool write);
bool __rental_free(struct page *page, unsigned int order);
struct folio *__rental_before_write(struct folio *folio, bool nowait);
bool __rental_lock(struct folio *folio);
vm_fault_t __rental_fault(struct folio *folio, pgoff_t index);
void __rental_dirtied(struct folio *folio);
bool __rental_take_over(struct folio *folio);

int rent_memory(struct cma *cma, unsigned long offset, unsigned long count);
int return_memory(struct cma *cma, unsigned long offset, unsigned long count);

/* Is the page a lent one? O(areas) */
static inline bool rental_lent(const struct page *page)
{
	return rental_enabled() && __rental_lent(page);
}

/**
 * rental_filemap_alloc() - allocate a folio for file data that is read
 * @mapping: of the file
 * @gfp: for filemap_alloc_folio(), if no area has room
 * @order: of the folio
 * @write: it may be written to at once: lent only if the area's scheme is "noclean"
 *
 * Context: as @gfp says. Return: a folio, or NULL.
 */
static inline struct folio *rental_filemap_alloc(struct address_space *mapping, gfp_t gfp,
						 unsigned int order, bool write)
{
	struct folio *folio = NULL;

	if (rental_enabled())
		folio = __rental_alloc(mapping, gfp, order, write);
	return folio ?: filemap_alloc_folio(gfp, order);
}

/* A page of an area comes home: true, and the caller is done with it. Any context. */
static inline bool rental_free(struct page *page, unsigned int order)
{
	return rental_enabled() && __rental_free(page, order);
}

/**
 * rental_before_write() - somebody is about to write to a folio
 * @folio: locked, in the page cache; the caller has a reference
 * @nowait: do not sleep
 *
 * If it is lent, a folio of other memory takes its place, with the caller's lock and
 * reference. It stays if somebody else holds it or there is no memory: rental_dirtied() will
 * know. If there is memory, but not for all of it in one piece, it is split, unless it is
 * locked in memory.
 *
 * Context: may sleep unless @nowait. Return: the folio to write to; NULL if it was split, and the
 * caller has to look the page up again; or ERR_PTR(-EAGAIN), if @nowait. If it is not @folio, that
 * is not locked any more, and the caller's reference is gone.
 */
static inline struct folio *rental_before_write(struct folio *folio, bool nowait)
{
	return rental_lent(&folio->page) ? __rental_before_write(folio, nowait) : folio;
}

/**
 * rental_lock() - a fault waits for the lock of a folio
 * @folio: of the page cache, or it was; referenced
 *
 * If it is lent, somebody who has the lock may be about to replace it before it is written to,
 * or split, which the caller's reference does not keep him from. So the caller must look, when he
 * has the lock, whether it is in the page cache still, and the page he wants is in it.
 *
 * Context: may sleep, until a read ends or he is killed, then until the lock is free. Return: true
 * if @folio is locked; false if that is not worth the trouble.
 */
static inline bool rental_lock(struct folio *folio)
{
	return rental_lent(&folio->page) && __rental_lock(folio);
}

/**
 * rental_fault() - a page is about to be mapped writable
 * @folio: of a shared mapping of a file; referenced, not locked
 * @index: the page, in the file
 *
 * Context: of a fault that may sleep. Return: 0, or %VM_FAULT_NOPAGE if another folio took the
 * place of @folio, or it was split, and the fault has to be taken again.
 */
static inline vm_fault_t rental_fault(struct folio *folio, pgoff_t index)
{
	return rental_lent(&folio->page) ? __rental_fault(folio, index) : 0;
}

/* A folio was marked dirty: it must not be a lent one. Any context, i_pages locked. */
static inline void rental_dirtied(struct folio *folio)
{
	if (rental_lent(&folio->page))
		__rental_dirtied(folio);
}

/* Would reclaim gain nothing by evicting the folio, for its area has frames to lend? */
static inline bool rental_spared(struct folio *folio)
{
	return rental_enabled() && __rental_spared(folio);
}

/* So many pages of a folio come to a list of unevictable ones, or leave it. Any context. */
static inline void rental_unevictable(struct folio *folio, long nr)
{
	if (rental_enabled())
		__rental_unevictable(folio, nr);
}

/*
 * Reclaim may evict a folio: clean, locked, isolated. If an area has room and nobody else has
 * a reference to it, a folio there takes its place in the page cache, and true is returned:
 * reclaim has the last reference to @folio then, or somebody who comes too late has it.
 */
static inline bool rental_take_over(struct folio *folio)
{
	return rental_enabled() && __rental_take_over(folio);
}

/*
 * Pages of the node's, or NUMA_NO_NODE, page cache that cannot become dirty where they are. Those
 * of scheme "noclean" can.
 */
static inline unsigned long rental_nr_lent(int nid)
{
	return rental_enabled() ? __rental_nr_lent(nid) : 0;
}

/* Pages on the node's lists of files for which rental_spared() is true */
static inline unsigned long rental_nr_spared(int nid)
{
	return rental_enabled() ? __rental_nr_spared(nid) : 0;
}

/* Lent pages on a zone's lists of files: to evict them gives an allocation nothing */
static inline unsigned long rental_zone_lent(struct zone *zone)
{
	return rental_enabled() ? __rental_zone_lent(zone) : 0;
}

#endif /* _LINUX_RENTAL_H */
