/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guaranteed contiguous memory: what the rest of mm sees of it.
 *
 * A *tenant* is the copy of a clean page that reclaim evicted from the page cache or
 * the swap cache, kept in an idle frame of a CMA area of policy "gcma". It is known by
 * a *tenant entry*, a tagged value entry that stands there where the shadow entry of
 * the evicted page would stand. See Documentation/mm/gcma.rst.
 */
#ifndef _LINUX_GCMA_H
#define _LINUX_GCMA_H

#include <linux/jump_label.h>
#include <linux/pagemap.h>

/*
 * The topmost bit of a value entry tells a tenant from a shadow: shadows leave
 * it zero, see EVICTION_SHIFT in mm/workingset.c.
 */
#define GCMA_TAG_BITS	IS_ENABLED(CONFIG_GCMA)
#define GCMA_TAG	(1UL << (BITS_PER_XA_VALUE - 1))

/*
 * Folios up to this order may become tenants, each page in a frame of its own, and come
 * back as one: as long as the slots of all pages are in one node, no memory is needed.
 */
#define GCMA_MAX_ORDER	(XA_CHUNK_SHIFT - 1)

DECLARE_STATIC_KEY_FALSE(gcma_key);
DECLARE_STATIC_KEY_FALSE(gcma_dirty_key);

/*
 * True from the moment the first area of policy gcma is active. Without
 * CONFIG_GCMA all hooks are dead code, and what they would call does not exist.
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

/* The same, of any mapping: others keep values of their own. */
static inline bool gcma_is_tenant_of(const struct address_space *mapping,
				     const void *entry)
{
	return gcma_is_tenant(entry) && mapping_tenants(mapping);
}

extern atomic_long_t gcma_pass_count;
extern unsigned long gcma_passed_lately[];

void __gcma_pass_by(const struct folio *folio);
void *__gcma_store_begin(struct address_space *mapping, struct folio *folio);
bool __gcma_store_commit(void *copies, struct address_space *mapping,
			 struct folio *folio, void *shadow, unsigned long passes);
void __gcma_store_end(void *copies, bool passed);
void *__gcma_load_begin(struct address_space *mapping, struct folio *folio,
			pgoff_t index, gfp_t gfp, const void *hint);
bool __gcma_load_end(void *filled, struct folio *folio, void **entry, int added,
		     gfp_t gfp);
bool __gcma_load_commit(void *filled, const struct folio *folio);
bool __gcma_alive(void *entry);
void __gcma_drop(void *entry);
void gcma_drop_node(struct xa_node *node);
unsigned long gcma_node_pages(struct mem_cgroup *memcg, unsigned long nodes);
void *__gcma_shadow(void *entry, bool file);
void *__gcma_drop_later(struct address_space *mapping, pgoff_t index, void *entry,
			void *others);
void __gcma_drop_all(void *dropped);
void *__gcma_swap_load(struct folio *folio, swp_entry_t entry);
bool __gcma_swap_alive(swp_entry_t entry);
bool __gcma_swap_over(swp_entry_t entry);
void *__gcma_swap_added(struct address_space *mapping, pgoff_t index, void *entry,
			const struct folio *folio, void *shadow);
bool __gcma_swap_keeps(struct folio *folio);
bool __gcma_swap_evict(struct folio *folio, struct mem_cgroup *target_memcg);
bool __gcma_swap_node_stays(const struct xa_node *node);
bool __gcma_swap_lost(const struct folio *folio);

/* ------ invalidation that does not wait -------------------------------- */

/**
 * gcma_passes() - how many folios were passed by until now?
 *
 * For gcma_store_begin(). Context: any. Return: 0 if GCMA is not enabled. If it is, 0 only
 * for a moment when the count wraps: what is isolated then is not copied.
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
 * @mapping: the page cache or swap cache that it is in
 * @folio: locked, clean, unmapped
 * @passes: gcma_passes() of before reclaim isolated @folio; 0: it is not evicted for
 *	lack of memory, or that is not known, and so it is not copied
 *
 * The copies are not visible before gcma_store_commit(). Whatever becomes of the
 * eviction, that or gcma_store_end() must follow.
 *
 * Context: process context, no spinlock held; does not sleep, allocates nothing.
 * Cost: O(pages of @folio), preemption is off for one page copy at a time.
 * Return: the copies, NULL if there are none. A folio may be copied in part.
 */
static inline void *gcma_store_begin(struct address_space *mapping,
				     struct folio *folio, unsigned long passes)
{
	return gcma_enabled() && passes ? __gcma_store_begin(mapping, folio) : NULL;
}

/**
 * gcma_store_commit() - remove a folio from its mapping, leaving its copies
 * @copies: what gcma_store_begin() returned
 * @mapping: as for gcma_store_begin()
 * @folio: frozen and found clean, so that its content is final
 * @shadow: the shadow to leave where there is no copy; NULL: leave nothing
 * @passes: as for gcma_store_begin()
 *
 * Context: i_pages lock held since @folio was frozen.
 * Return: false if there are no copies to leave: the caller has to remove @folio.
 */
static inline bool gcma_store_commit(void *copies, struct address_space *mapping,
				     struct folio *folio, void *shadow,
				     unsigned long passes)
{
	return gcma_enabled() && copies &&
	       __gcma_store_commit(copies, mapping, folio, shadow, passes);
}

/**
 * gcma_store_end() - the folio is not evicted: give back the frames of its copies
 * @copies: what gcma_store_begin() returned
 *
 * Context: not from interrupts; the i_pages lock may be held.
 */
static inline void gcma_store_end(void *copies)
{
	if (gcma_enabled())
		__gcma_store_end(copies, false);
}

/* ------ load ------------------------------------------------------------ */

/* Places for notes on folios that were passed by: pages share them by their number. */
#define GCMA_PASSED	1024L

/* In folio->private: no tenant stands where it will be added, or it is not to be loaded. */
#define GCMA_ABSENT	((void *)xa_mk_value(GCMA_TAG))
#define GCMA_OVER	((void *)xa_mk_value(GCMA_TAG | 1))

/* What readahead does with the next pages. */
enum gcma_ahead {
	GCMA_AHEAD_READ,	/* no tenants: reads them */
	GCMA_AHEAD_OVER,	/* few tenants, amid others: reads them, too */
	GCMA_AHEAD_LOAD,	/* tenants: ends its batch before them */
};

enum gcma_ahead __gcma_ahead(const struct readahead_control *ractl, pgoff_t index,
			     pgoff_t last, unsigned int *order);

/**
 * gcma_ahead() - shall readahead end its batch, for tenants are next?
 * @ractl: the batch; its mapping has no minimum order if it has tenants
 * @index: where it goes on, a multiple of the size of the next folio
 * @last: the last page that it is to read
 * @order: of the next folio at most; set to the largest at which all its pages are
 *	loaded, or none
 *
 * A request costs as much as reading some pages more, so few tenants are read over, if
 * pages are read on both sides of them.
 *
 * Context: any. Cost: O(pages of the folio), and a few more.
 */
static inline enum gcma_ahead gcma_ahead(const struct readahead_control *ractl,
					 pgoff_t index, pgoff_t last, unsigned int *order)
{
	return gcma_enabled() && mapping_tenants(ractl->mapping) ?
	       __gcma_ahead(ractl, index, last, order) : GCMA_AHEAD_READ;
}

void __gcma_narrow(struct address_space *mapping, pgoff_t index,
		   struct file_ra_state *ra);

/**
 * gcma_narrow() - do not read around a fault what GCMA keeps
 * @mapping: the mapping
 * @index: the page that is missing, and no tenant
 * @ra: what is to be read; narrowed to the pages about @index that are no tenants, but for
 *	few in the way of a reader who goes on: see gcma_ahead()
 *
 * Context: any. Cost: O(pages of @ra).
 */
static inline void gcma_narrow(struct address_space *mapping, pgoff_t index,
			       struct file_ra_state *ra)
{
	if (gcma_enabled() && mapping_tenants(mapping))
		__gcma_narrow(mapping, index, ra);
}

/**
 * gcma_load_hint() - say what to do about tenants where a folio will be added
 * @folio: new, nobody's
 * @ahead: what gcma_ahead() returned
 *
 * Saves filemap_add_folio() a second look. If a tenant comes there in between, it is
 * dropped.
 */
static inline void gcma_load_hint(struct folio *folio, enum gcma_ahead ahead)
{
	if (gcma_enabled() && ahead != GCMA_AHEAD_LOAD)
		folio->private = ahead == GCMA_AHEAD_READ ? GCMA_ABSENT : GCMA_OVER;
}

/**
 * gcma_load_begin() - fill a folio that is about to be added from its tenant
 * @mapping: the mapping @folio will be added to
 * @folio: new, charged, locked; nobody can find it yet
 * @index: where it will be added
 * @gfp: of the caller. With %__GFP_WRITE the folio stays empty: who writes may rely
 *	on a folio that was not there not being uptodate
 *
 * The content is not valid before gcma_load_commit(). Whatever becomes of the folio,
 * gcma_load_end() must follow.
 *
 * A large folio is filled if all its pages have tenants, as gcma_ahead() tells.
 *
 * Context: process context, no spinlock held; does not sleep, allocates nothing.
 * Cost: a look at the slot; if there is a tenant, or @folio is large, O(pages of @folio),
 * preemption is off for one page copy at a time.
 * Return: what has to stand in the first slot when @folio is added, also in
 * @folio->private. If it was not filled, the shadow of a tenant that is dropped, or NULL.
 */
static inline void *gcma_load_begin(struct address_space *mapping,
				    struct folio *folio, pgoff_t index, gfp_t gfp)
{
	void *hint = folio->private;

	if (!gcma_enabled())
		return NULL;
	if (hint == GCMA_ABSENT || hint == GCMA_OVER)
		folio->private = NULL;
	/* Of a large one dead tenants are counted before they are replaced. */
	return hint == GCMA_ABSENT && !folio_test_large(folio) &&
	       !test_bit(folio_pfn(folio) % GCMA_PASSED, gcma_passed_lately) ?
	       NULL : __gcma_load_begin(mapping, folio, index, gfp, hint);
}

/**
 * gcma_load_end() - a folio was added, or not
 * @filled: what gcma_load_begin() returned
 * @folio: the folio
 * @entry: what it replaced, or @folio; if that was a tenant entry, its shadow
 *	afterwards, or NULL
 * @added: 0, or why it was not added
 * @gfp: of the caller
 *
 * If the folio was not added where its tenant entry stood, it is locked and ours, or
 * not in the page cache at all: forget what it was filled with.
 *
 * Gives the frame back. Context: process context, no spinlock held; does not sleep.
 * Return: true if @folio was filled, and so is uptodate and not locked.
 */
static inline bool gcma_load_end(void *filled, struct folio *folio, void **entry,
				 int added, gfp_t gfp)
{
	return (filled || gcma_is_tenant(*entry)) &&
	       __gcma_load_end(filled, folio, entry, added, gfp);
}

/**
 * gcma_load_commit() - a folio is going to replace what stands in its slots
 * @folio: gcma_load_begin() left in @folio->private what it was filled from
 * @entry: what stands in the last of its slots; set to @folio if that is filled
 *
 * If that still stands there, no page was changed, nor read by another, nor
 * invalidated since: it has been resident all the time, as it were. So it appears in
 * the page cache uptodate and unlocked; nobody who does not wait for locks passes it
 * by for a lock of ours. Else it stays locked, to be read from disk.
 *
 * Context: i_pages lock held until @folio is in the slot, which cannot fail then. Once
 * the lock is dropped, @folio may be anybody's.
 */
static inline void gcma_load_commit(struct folio *folio, void **entry)
{
	if (!gcma_is_tenant(folio->private))
		return;
	if (folio_test_large(folio) ? __gcma_load_commit(folio->private, folio) :
				      folio->private == *entry) {
		*entry = folio;
		/* Who finds it there accounts the access that adds it once more. */
		folio_clear_referenced(folio);
		__folio_mark_uptodate(folio);
		__folio_clear_locked(folio);
	}
	/* Else __find_get_block() would take it for buffers. */
	folio->private = NULL;
}

/* ------ swapped-out pages --------------------------------------------------- */

static inline bool gcma_swap_enabled(void)
{
	return IS_ENABLED(CONFIG_GCMA_SWAP) && gcma_enabled();
}

/* True from the moment an area got a swap policy other than write-through. */
static inline bool gcma_dirty_enabled(void)
{
	return IS_ENABLED(CONFIG_GCMA_DIRTY) && static_branch_unlikely(&gcma_dirty_key);
}

/**
 * gcma_swap_load() - fill a folio that is swapped in from its tenants
 * @folio: new, charged, locked; nobody else can find it
 * @entry: its first slot, of whose slots the caller has SWAP_HAS_CACHE: so they are
 *	neither freed nor swapped in by others
 *
 * Gives the frames back: the slots are left to who adds the folio to the swap cache, or
 * frees them. A folio that was filled is uptodate, and swap_read_folio() has nothing to do.
 *
 * A large folio is filled if all its pages have tenants.
 *
 * Context: process context, no spinlock held; allocates nothing; sleeps only if the page is
 * nowhere else, and who owns its frame was preempted.
 * Cost: a look at the slot; if there is a tenant, O(pages of @folio), preemption is off
 * for one page copy at a time.
 * Return: the shadow behind the first tenant, for workingset_refault(), or NULL.
 */
static inline void *gcma_swap_load(struct folio *folio, swp_entry_t entry)
{
	return gcma_swap_enabled() ? __gcma_swap_load(folio, entry) : NULL;
}

/**
 * gcma_swap_alive() - would a page be swapped in without I/O, from its tenant?
 * @entry: its slot, which may be freed
 *
 * Readahead is not begun for such a page, nor does it begin or end with one: to read it
 * later costs nothing.
 * Return: true if there was a tenant a moment ago. Context: any.
 */
static inline bool gcma_swap_alive(swp_entry_t entry)
{
	return gcma_swap_enabled() && __gcma_swap_alive(entry);
}

/**
 * gcma_swap_over() - pages on both sides of a page are read: so shall be the page
 * @entry: its slot, which may be freed
 *
 * To read a few pages more costs less than another request. Drops the tenant.
 * Return: false if the page has a tenant nevertheless. Context: not from interrupts.
 */
static inline bool gcma_swap_over(swp_entry_t entry)
{
	return !gcma_swap_enabled() || __gcma_swap_over(entry);
}

/**
 * gcma_swap_added() - a folio was added where an entry stood in the swap cache
 * @mapping: the part of the swap cache
 * @index: of the slot
 * @entry: a shadow or a tenant entry
 * @folio: what was added: if it was filled from a tenant that stayed, that was a load
 * @shadow: what was returned for another slot of @folio before, or what gcma_swap_load() had, or
 *	NULL
 *
 * Gives the frame back. Context: i_pages lock held, not from interrupts.
 * Return: the shadow of @folio, or NULL.
 */
static inline void *gcma_swap_added(struct address_space *mapping, pgoff_t index,
				    void *entry, const struct folio *folio, void *shadow)
{
	return gcma_swap_enabled() ?
	       __gcma_swap_added(mapping, index, entry, folio, shadow) : entry;
}

/**
 * gcma_swap_keeps() - is a folio to be left dirty, for gcma_swap_evict()?
 * @folio: locked, in the swap cache
 *
 * Return: true if it is needed, and there probably are frames for it, by the policy of the area
 * of its first page.
 * Context: may read the pages of @folio.
 */
static inline bool gcma_swap_keeps(struct folio *folio)
{
	return gcma_dirty_enabled() && __gcma_swap_keeps(folio);
}

/**
 * gcma_swap_left() - was a folio left dirty in the swap cache, for gcma_swap_evict()?
 * @folio: that was to be written
 *
 * Context: any.
 */
static inline bool gcma_swap_left(const struct folio *folio)
{
	return gcma_dirty_enabled() && folio_test_swapcache(folio) &&
	       folio_test_dirty(folio);
}

/**
 * gcma_swap_evict() - evict a folio of the swap cache that is dirty, without a write
 * @folio: locked, dirty, unmapped, with no stale writable mapping in a TLB
 * @target_memcg: as for workingset_eviction()
 *
 * Its copies are nowhere else then.
 *
 * Context: process context, no spinlock held; sleeps and allocates only if
 * arch_prepare_to_swap() does (arm64 MTE).
 * Cost: O(pages of @folio).
 * Return: true if it was removed from the swap cache, with a reference count of 0; false if
 * it is dirty as before, and has to be written.
 */
static inline bool gcma_swap_evict(struct folio *folio, struct mem_cgroup *target_memcg)
{
	return gcma_swap_left(folio) && __gcma_swap_keeps(folio) &&
	       __gcma_swap_evict(folio, target_memcg);
}

/**
 * gcma_swap_node_stays() - has a node of shadows what is nowhere else?
 * @mapping: the node's
 * @node: full of value entries
 *
 * Return: true if the shadow shrinker must not delete it. Context: i_pages lock held.
 * Cost: O(entries).
 */
static inline bool gcma_swap_node_stays(const struct address_space *mapping,
					const struct xa_node *node)
{
	return gcma_dirty_enabled() && !mapping->host && __gcma_swap_node_stays(node);
}

/**
 * gcma_swap_lost() - was the content of a folio lost with the memory of a frame?
 * @folio: locked, not uptodate
 *
 * There is nothing to read for it on the device. Context: any.
 */
static inline bool gcma_swap_lost(const struct folio *folio)
{
	return gcma_dirty_enabled() && __gcma_swap_lost(folio);
}

/* ------ entries that go, or are looked at -------------------------------- */

/**
 * gcma_alive() - could a folio be filled from what stands in its slot?
 * @entry: any entry of the page cache, looked up without a lock
 *
 * Return: true if it names a tenant that was there a moment ago. Context: any.
 */
static inline bool gcma_alive(void *entry)
{
	return gcma_is_tenant(entry) && __gcma_alive(entry);
}

/**
 * gcma_drop() - a tenant entry was taken out of the page cache, or will be
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
 * gcma_drop_later() - the same, if there are locks that it should not be done under
 * @entry: as for gcma_drop()
 * @others: what was returned for others before, NULL if there were none
 *
 * Return: what gcma_drop_all() gives back the frames of.
 */
static inline void *gcma_drop_later(struct address_space *mapping, pgoff_t index,
				    void *entry, void *others)
{
	return gcma_is_tenant(entry) ?
	       __gcma_drop_later(mapping, index, entry, others) : others;
}

static inline void gcma_drop_all(void *dropped)
{
	if (dropped)
		__gcma_drop_all(dropped);
}

/**
 * gcma_shadow() - look at the shadow behind an entry, leaving the tenant alone
 * @entry: a shadow or a tenant entry
 * @file: whether it is of a page of a file
 *
 * Return: the shadow, or if it is gone one that is made up, which may depend on who asks: see
 * workingset_older(); else NULL. Context: any.
 */
static inline void *gcma_shadow(void *entry, bool file)
{
	return gcma_is_tenant(entry) ? __gcma_shadow(entry, file) : entry;
}

#endif /* _LINUX_GCMA_H */
