/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guaranteed contiguous memory: what the rest of mm sees of it.
 *
 * A *tenant* is the copy of a clean page cache page that reclaim evicted, kept
 * in an idle frame of a CMA area of policy "gcma". It is known by a *tenant
 * entry*, a tagged value entry that stands in the page cache where the shadow
 * entry of the evicted page would stand. See Documentation/mm/gcma.rst.
 */
#ifndef _LINUX_GCMA_H
#define _LINUX_GCMA_H

#include <linux/fs.h>
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/xarray.h>

struct cma;

#ifdef CONFIG_GCMA

/* What the idle part of a CMA area is used for. */
enum cma_policy {
	CMA_MOVABLE,	/* movable pages, as ever */
	CMA_NONE,	/* nothing: pure reservation */
	CMA_GCMA,	/* tenants */
};

/* Power-of-two buckets of the time of cma_alloc(): 1 ns to 2 s and more. */
#define CMA_LATENCY_BUCKETS	32U

void __init cma_set_policy(struct cma *cma, const char *policy);

/*
 * The topmost bit of a value entry tells a tenant from a shadow: shadows leave
 * it zero, see EVICTION_SHIFT in mm/workingset.c.
 */
#define GCMA_TAG_BITS	1
#define GCMA_TAG	(1UL << (BITS_PER_XA_VALUE - GCMA_TAG_BITS))

DECLARE_STATIC_KEY_FALSE(gcma_key);

/* True from the moment the first area of policy gcma is active. */
static inline bool gcma_enabled(void)
{
	return static_branch_unlikely(&gcma_key);
}

static inline bool gcma_is_tenant(const void *entry)
{
	return xa_is_value(entry) && (xa_to_value(entry) & GCMA_TAG);
}

/* Folios up to this order may become tenants, each page in a frame of its own. */
#define GCMA_MAX_ORDER	5

struct gcma;

/* The copy of one page, not visible yet: its frame and the frame's word. */
struct gcma_copy {
	u32 frame;
	u32 word;
};

/**
 * struct gcma_store - the copies made of one folio, on the evictor's stack
 * @area: where they are
 * @nr: how many there are; a folio may be stored in part
 * @copy: the copies
 */
struct gcma_store {
	struct gcma *area;
	unsigned int nr;
	struct gcma_copy copy[1 << GCMA_MAX_ORDER];
};

void __gcma_store_begin(struct gcma_store *store, struct address_space *mapping,
			struct folio *folio);
void __gcma_store_commit(struct gcma_store *store,
			 struct address_space *mapping, struct folio *folio,
			 void *shadow);
void __gcma_store_end(struct gcma_store *store);
void *__gcma_load(struct folio *folio, void *entry);
void __gcma_drop(void *entry);
void __gcma_drop_index(struct address_space *mapping, pgoff_t index);
void __gcma_drop_node(struct xa_node *node);
void *__gcma_shadow(void *entry);
unsigned int __gcma_ra_order(struct address_space *mapping, pgoff_t index,
			     unsigned int order);

/**
 * gcma_store_begin() - copy a folio that is about to be evicted into frames
 * @store: filled in
 * @mapping: the mapping @folio is evicted from
 * @folio: locked, clean, unmapped
 * @reclaimed: reclaim evicts it, for lack of memory and not for its content
 *
 * The copies are not visible before gcma_store_commit(). Whatever becomes of
 * the eviction, gcma_store_end() must follow.
 *
 * Context: process context, no spinlock held; does not sleep, allocates nothing.
 * Cost: O(pages of @folio), preemption is off for one page copy at a time.
 */
static inline void gcma_store_begin(struct gcma_store *store,
				    struct address_space *mapping,
				    struct folio *folio, bool reclaimed)
{
	store->nr = 0;
	if (gcma_enabled() && reclaimed)
		__gcma_store_begin(store, mapping, folio);
}

/**
 * gcma_store_commit() - leave tenant entries where the shadow stands
 * @store: what gcma_store_begin() filled in
 * @mapping: the mapping @folio was just removed from
 * @folio: frozen, so that its content is final
 * @shadow: the shadow that stands in @folio's slots, NULL: leave none
 *
 * Context: i_pages lock of @mapping held since @folio was frozen and found
 * clean.
 */
static inline void gcma_store_commit(struct gcma_store *store,
				     struct address_space *mapping,
				     struct folio *folio, void *shadow)
{
	if (store->nr && shadow)
		__gcma_store_commit(store, mapping, folio, shadow);
}

/**
 * gcma_store_end() - give back what was not committed
 * @store: what gcma_store_begin() filled in
 *
 * Context: no lock held.
 */
static inline void gcma_store_end(struct gcma_store *store)
{
	if (store->nr)
		__gcma_store_end(store);
}

/**
 * gcma_load() - fill a new page cache folio from its tenant
 * @folio: locked, not uptodate, just added where @entry stood
 * @entry: what stood there: NULL, a shadow or a tenant entry
 *
 * On success @folio is uptodate and must not be read from disk: see
 * gcma_loaded().
 *
 * Context: process context, no spinlock held; does not sleep.
 * Return: the shadow of the evicted page, or NULL if there is none any more.
 */
static inline void *gcma_load(struct folio *folio, void *entry)
{
	if (gcma_enabled() && gcma_is_tenant(entry))
		return __gcma_load(folio, entry);
	return entry;
}

/**
 * gcma_loaded() - has the locked, new @folio got its content from a tenant?
 * @folio: locked, just added to the page cache
 */
static inline bool gcma_loaded(const struct folio *folio)
{
	return gcma_enabled() && folio_test_uptodate(folio);
}

/**
 * gcma_drop() - a tenant entry was taken out of the page cache
 * @entry: any value entry; shadows are ignored
 *
 * Gives the frame back. Context: any, the i_pages lock may be held.
 */
static inline void gcma_drop(void *entry)
{
	if (gcma_enabled() && gcma_is_tenant(entry))
		__gcma_drop(entry);
}

/**
 * gcma_drop_index() - a part of the page at @index changes on disk
 * @mapping: the mapping, with no folio at @index a moment ago
 * @index: where a tenant must not survive
 *
 * Context: process context, the lock that keeps folios from being instantiated
 * at @index held (invalidate_lock or i_rwsem), no spinlock held.
 */
static inline void gcma_drop_index(struct address_space *mapping, pgoff_t index)
{
	if (gcma_enabled())
		__gcma_drop_index(mapping, index);
}

/**
 * gcma_drop_node() - the shadow shrinker is about to delete a whole node
 * @node: full of value entries. Context: i_pages lock held.
 */
static inline void gcma_drop_node(struct xa_node *node)
{
	if (gcma_enabled())
		__gcma_drop_node(node);
}

/**
 * gcma_shadow() - look at the shadow behind an entry, leaving the tenant alone
 * @entry: a shadow or a tenant entry
 *
 * Return: the shadow, NULL if it is gone. Context: any.
 */
static inline void *gcma_shadow(void *entry)
{
	return gcma_is_tenant(entry) ? __gcma_shadow(entry) : entry;
}

/**
 * gcma_ra_order() - order of the folio that readahead should add at @index
 * @mapping: the mapping that is read
 * @index: where
 * @order: what readahead had in mind
 *
 * Tenants are single pages: 0 where one of them lies in the way of @order.
 */
static inline unsigned int gcma_ra_order(struct address_space *mapping,
					 pgoff_t index, unsigned int order)
{
	if (gcma_enabled() && order)
		return __gcma_ra_order(mapping, index, order);
	return order;
}

/**
 * mapping_cached() - does the page cache know anything of this mapping's content?
 * @mapping: the mapping
 *
 * For those who skip an invalidation when no folio is resident: a tenant is
 * content as well.
 */
static inline bool mapping_cached(struct address_space *mapping)
{
	return !mapping_empty(mapping);
}

#else /* CONFIG_GCMA */

#define GCMA_TAG_BITS	0

static inline void cma_set_policy(struct cma *cma, const char *policy)
{
}

static inline bool gcma_is_tenant(const void *entry)
{
	return false;
}

struct gcma_store {
};

static inline void gcma_store_begin(struct gcma_store *store,
				    struct address_space *mapping,
				    struct folio *folio, bool reclaimed)
{
}

static inline void gcma_store_commit(struct gcma_store *store,
				     struct address_space *mapping,
				     struct folio *folio, void *shadow)
{
}

static inline void gcma_store_end(struct gcma_store *store)
{
}

static inline void *gcma_load(struct folio *folio, void *entry)
{
	return entry;
}

static inline bool gcma_loaded(const struct folio *folio)
{
	return false;
}

static inline void gcma_drop(void *entry)
{
}

static inline void gcma_drop_index(struct address_space *mapping, pgoff_t index)
{
}

static inline void gcma_drop_node(struct xa_node *node)
{
}

static inline void *gcma_shadow(void *entry)
{
	return entry;
}

static inline unsigned int gcma_ra_order(struct address_space *mapping,
					 pgoff_t index, unsigned int order)
{
	return order;
}

static inline bool mapping_cached(struct address_space *mapping)
{
	return mapping->nrpages;
}

#endif /* CONFIG_GCMA */
#endif /* _LINUX_GCMA_H */
