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

/* What the idle part of a CMA area is used for. */
enum cma_policy {
	CMA_MOVABLE,	/* movable pages, as ever */
	CMA_NONE,	/* nothing: pure reservation */
	CMA_GCMA,	/* tenants */
};

/* Power-of-two buckets of the time of cma_alloc(): 1 ns to 1 s and more. */
#define CMA_LATENCY_BUCKETS	32U

/*
 * The topmost bit of a value entry tells a tenant from a shadow: shadows leave
 * it zero, see EVICTION_SHIFT in mm/workingset.c.
 */
#define GCMA_TAG_BITS	IS_ENABLED(CONFIG_GCMA)
#define GCMA_TAG	(1UL << (BITS_PER_XA_VALUE - 1))

DECLARE_STATIC_KEY_FALSE(gcma_key);
extern unsigned long gcma_nr_frames;

/*
 * True from the moment the first area of policy gcma is active. Without
 * CONFIG_GCMA all hooks below are dead code, and their other halves do not exist.
 */
static inline bool gcma_enabled(void)
{
	return IS_ENABLED(CONFIG_GCMA) && static_branch_unlikely(&gcma_key);
}

void cma_set_policy(struct cma *cma, const char *policy);

static inline bool gcma_is_tenant(const void *entry)
{
	return gcma_enabled() && xa_is_value(entry) &&
	       (xa_to_value(entry) & GCMA_TAG);
}

/*
 * Folios up to this order may become tenants, each page in a frame of its own:
 * as long as the slots of all pages are in one node, no memory is needed.
 */
#define GCMA_MAX_ORDER	(XA_CHUNK_SHIFT - 1)

struct gcma;

/* The copy of one page, not visible yet: its frame and the frame's word. */
struct gcma_copy {
	u32 frame;
	u32 word;
};

/* Else CONFIG_INIT_STACK_ALL_ZERO fills a store at each eviction; early 6.12 does. */
#ifndef __uninitialized
#define __uninitialized
#endif

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
void *__gcma_store_commit(struct gcma_store *store, void *shadow);
void __gcma_store_spread(struct gcma_store *store,
			 struct address_space *mapping, struct folio *folio,
			 void *shadow);
void __gcma_store_end(struct gcma_store *store);
void *__gcma_load(struct folio *folio, void *entry);
void __gcma_drop(void *entry);
void *__gcma_shadow(void *entry);

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
 * gcma_store_commit() - make the copy of a small folio visible
 * @store: what gcma_store_begin() filled in
 * @folio: frozen and found clean, so that its content is final
 * @shadow: the shadow to leave in its slot, NULL: leave none
 *
 * Context: i_pages lock held since @folio was frozen.
 * Return: what to leave in the slot instead of @shadow.
 */
static inline void *gcma_store_commit(struct gcma_store *store,
				      struct folio *folio, void *shadow)
{
	if (gcma_enabled() && store->nr && shadow && !folio_test_large(folio) &&
	    !folio_test_readahead(folio))
		return __gcma_store_commit(store, shadow);
	return shadow;
}

/**
 * gcma_store_spread() - make the copies of a large folio visible
 * @store: what gcma_store_begin() filled in
 * @mapping: the mapping @folio was just removed from
 * @folio: the folio
 * @shadow: the shadow that stands for all its pages, or NULL
 *
 * Context: i_pages lock held since @folio was frozen.
 */
static inline void gcma_store_spread(struct gcma_store *store,
				     struct address_space *mapping,
				     struct folio *folio, void *shadow)
{
	if (gcma_enabled() && store->nr && shadow && folio_test_large(folio) &&
	    !folio_test_readahead(folio))
		__gcma_store_spread(store, mapping, folio, shadow);
}

/**
 * gcma_unwanted() - @folio cannot be invalidated, for somebody has locked it
 * @folio: referenced by the caller
 *
 * If that is reclaim, which evicts it next, its content must not stay as a tenant.
 * The flag, whose meaning is lost on a folio that goes, is seen by
 * gcma_store_commit(): the eviction has to wait for the caller's reference.
 */
static inline void gcma_unwanted(struct folio *folio)
{
	if (gcma_enabled())
		folio_set_readahead(folio);
}

/**
 * gcma_store_end() - give back what was not committed
 * @store: what gcma_store_begin() filled in
 *
 * Context: no lock held.
 */
static inline void gcma_store_end(struct gcma_store *store)
{
	if (gcma_enabled() && store->nr)
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
	return gcma_is_tenant(entry) ? __gcma_load(folio, entry) : entry;
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
 * Gives the frame back. Context: not from interrupts; the i_pages lock may be
 * held.
 */
static inline void gcma_drop(void *entry)
{
	if (gcma_is_tenant(entry))
		__gcma_drop(entry);
}

/**
 * gcma_drop_node() - the shadow shrinker is about to delete a whole node
 * @node: full of value entries. Context: i_pages lock held.
 */
static inline void gcma_drop_node(struct xa_node *node)
{
	unsigned int i;

	if (gcma_enabled())
		for (i = 0; i < XA_CHUNK_SIZE; i++)
			gcma_drop(rcu_dereference_protected(node->slots[i],
							    true));
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
	XA_STATE(xas, &mapping->i_pages, index);
	void *entry;

	if (!gcma_enabled() || !order)
		return order;
	rcu_read_lock();
	xas_for_each(&xas, entry, index + (1UL << order) - 1) {
		if (gcma_is_tenant(entry)) {
			order = 0;
			break;
		}
	}
	rcu_read_unlock();
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
	return mapping->nrpages || (gcma_enabled() && !mapping_empty(mapping));
}

#endif /* _LINUX_GCMA_H */
