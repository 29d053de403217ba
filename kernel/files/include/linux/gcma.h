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

/*
 * The topmost bit of a value entry tells a tenant from a shadow: shadows leave
 * it zero, see EVICTION_SHIFT in mm/workingset.c.
 */
#define GCMA_TAG_BITS	IS_ENABLED(CONFIG_GCMA)
#define GCMA_TAG	(1UL << (BITS_PER_XA_VALUE - 1))

DECLARE_STATIC_KEY_FALSE(gcma_key);

/*
 * True from the moment the first area of policy gcma is active. Without
 * CONFIG_GCMA all hooks below are dead code, and their other halves do not exist.
 */
static inline bool gcma_enabled(void)
{
	return IS_ENABLED(CONFIG_GCMA) && static_branch_unlikely(&gcma_key);
}

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
 * @passes: what gcma_passes() said before the folio was isolated
 * @nr: how many there are; a folio may be stored in part
 * @copy: the copies
 */
struct gcma_store {
	struct gcma *area;
	unsigned long passes;
	unsigned int nr;
	struct gcma_copy copy[1 << GCMA_MAX_ORDER];
};

/**
 * struct gcma_load - the filling of one folio, on the stack of who adds it
 * @entry: the tenant entry of the content that the folio has; NULL: it has none
 * @area: where the tenant is
 * @copy: its frame, ours since we found it
 */
struct gcma_load {
	void *entry;
	struct gcma *area;
	struct gcma_copy copy;
};

void __gcma_store_begin(struct gcma_store *store, struct address_space *mapping,
			struct folio *folio);
void __gcma_store_commit(struct gcma_store *store, struct folio *folio,
			 void *shadow);
void __gcma_store_end(struct gcma_store *store);
void __gcma_load_begin(struct gcma_load *load, struct address_space *mapping,
		       struct folio *folio, pgoff_t index, gfp_t gfp);
bool __gcma_load_end(struct gcma_load *load, struct folio *folio, void **entry,
		     int added, gfp_t gfp);
void __gcma_drop(void *entry);
void *__gcma_shadow(void *entry);
unsigned long __gcma_node_pages(struct mem_cgroup *memcg, unsigned long nodes);

/* ------ invalidation that does not wait -------------------------------- */

extern atomic_long_t gcma_pass_count;

void __gcma_pass_by(const struct folio *folio);

/**
 * gcma_passes() - how many folios were passed by until now?
 *
 * For gcma_store_begin(). Context: any. Return: never 0 when GCMA is enabled.
 */
static inline unsigned long gcma_passes(void)
{
	return gcma_enabled() ? atomic_long_read(&gcma_pass_count) : 0;
}

/**
 * gcma_pass_by() - @folio is not invalidated, for somebody has locked it or holds it
 * @folio: referenced by the caller
 *
 * If that is reclaim, which evicts it next, its content must not stay as a tenant.
 * Context: any.
 */
static inline void gcma_pass_by(const struct folio *folio)
{
	if (gcma_enabled())
		__gcma_pass_by(folio);
}

/* ------ store ----------------------------------------------------------- */

/**
 * gcma_store_begin() - copy a folio that is about to be evicted into frames
 * @store: filled in
 * @mapping: the mapping @folio is evicted from
 * @folio: locked, clean, unmapped
 * @passes: gcma_passes() of before reclaim isolated @folio; 0: it is not evicted for
 *	lack of memory, or that is not known, and so it is not copied
 *
 * The copies are not visible before gcma_store_commit(). Whatever becomes of
 * the eviction, gcma_store_end() must follow.
 *
 * Context: process context, no spinlock held; does not sleep, allocates nothing.
 * Cost: O(pages of @folio), preemption is off for one page copy at a time.
 */
static inline void gcma_store_begin(struct gcma_store *store,
				    struct address_space *mapping,
				    struct folio *folio, unsigned long passes)
{
	store->nr = 0;
	if (gcma_enabled() && passes) {
		store->passes = passes;
		__gcma_store_begin(store, mapping, folio);
	}
}

/**
 * gcma_store_commit() - remove a folio from the page cache, leaving its copies
 * @store: what gcma_store_begin() filled in
 * @folio: frozen and found clean, so that its content is final
 * @shadow: the shadow to leave where there is no copy; NULL: leave nothing
 *
 * In place of __filemap_remove_folio(), which it calls.
 *
 * Context: i_pages lock held since @folio was frozen.
 */
static inline void gcma_store_commit(struct gcma_store *store,
				     struct folio *folio, void *shadow)
{
	if (gcma_enabled() && store->nr && shadow)
		__gcma_store_commit(store, folio, shadow);
	else
		__filemap_remove_folio(folio, shadow);
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

/* ------ load ------------------------------------------------------------ */

/**
 * gcma_load_begin() - fill a folio that is about to be added from its tenant
 * @load: filled in
 * @mapping: the mapping @folio will be added to
 * @folio: new, charged, locked; nobody can find it yet
 * @index: where it will be added
 * @gfp: of the caller. With %__GFP_WRITE the folio stays empty: who writes may rely
 *	on a folio that was not there not being uptodate. So does a large one, and
 *	the tenants in its way go
 *
 * The content is not valid before gcma_load_commit(). Whatever becomes of the folio,
 * gcma_load_end() must follow.
 *
 * Context: process context, no spinlock held; does not sleep, allocates nothing.
 * Cost: a look at the slot, at all slots of a large folio; if there is a tenant, a page
 * copy with preemption off.
 * Return: what has to stand in the slot when @folio is added; NULL: anything.
 */
static inline void *gcma_load_begin(struct gcma_load *load,
				    struct address_space *mapping,
				    struct folio *folio, pgoff_t index, gfp_t gfp)
{
	load->entry = NULL;
	if (gcma_enabled())
		__gcma_load_begin(load, mapping, folio, index, gfp);
	return load->entry;
}

/**
 * gcma_filled() - what a folio that is being added was filled from
 * @entry: in: what gcma_load_begin() returned; out: NULL. May be NULL
 */
static inline void *gcma_filled(void **entry)
{
	void *filled = NULL;

	if (gcma_enabled() && entry)
		swap(filled, *entry);
	return filled;
}

/**
 * gcma_load_commit() - a folio is going to replace what stands in its slot
 * @folio: what gcma_load_begin() filled, if it did
 * @filled: what gcma_filled() returned
 * @entry: what stands in the slot
 *
 * If these are the same, the page was neither changed, nor read by another, nor
 * invalidated since: it has been resident all the time, as it were. So it appears in
 * the page cache uptodate and unlocked; nobody who does not wait for locks passes it
 * by for our sake. Else it stays locked, to be read from disk.
 *
 * Context: i_pages lock held until @folio is in the slot, which cannot fail then. Once
 * the lock is dropped, @folio may be anybody's.
 */
static inline void gcma_load_commit(struct folio *folio, void *filled,
				    void *entry)
{
	if (gcma_enabled() && filled && filled == entry) {
		/* Who finds it there accounts the access that adds it once more. */
		folio_clear_referenced(folio);
		__folio_mark_uptodate(folio);
		__folio_clear_locked(folio);
	}
}

/**
 * gcma_load_end() - a folio was added, or not
 * @load: what gcma_load_begin() filled in
 * @folio: the folio
 * @entry: what it replaced; if that was a tenant entry, NULL afterwards
 * @added: 0, or why it was not added
 * @gfp: of the caller
 *
 * Gives the frame back. Context: process context, no spinlock held; does not sleep.
 * Return: true if @folio was filled, and so is uptodate and not locked.
 */
static inline bool gcma_load_end(struct gcma_load *load, struct folio *folio,
				 void **entry, int added, gfp_t gfp)
{
	return gcma_enabled() && (load->entry || gcma_is_tenant(*entry)) &&
	       __gcma_load_end(load, folio, entry, added, gfp);
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

/* ------ entries that go, or are looked at -------------------------------- */

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
 * gcma_node_pages() - how many pages need shadow nodes without being resident?
 * @memcg: the memory cgroup whose nodes are counted
 * @nodes: how many it has
 *
 * Context: any that may walk to the parents of @memcg.
 */
static inline unsigned long gcma_node_pages(struct mem_cgroup *memcg,
					    unsigned long nodes)
{
	return gcma_enabled() ? __gcma_node_pages(memcg, nodes) : 0;
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
