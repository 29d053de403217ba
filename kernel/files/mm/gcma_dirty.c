// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guaranteed contiguous memory: swapped-out pages that are nowhere else
 *
 * Under a swap policy other than write-through, reclaim does not write a dirty folio of the
 * swap cache to the device: it leaves copies of its pages in frames, as tenants of their
 * slots. They are *dirty* tenants. Nobody may throw one away as long as the slot is in use:
 * it leaves its frame when it is swapped in (the folio is dirty again then), when the slot
 * is freed, or when a primary comes, which has to get it out of its way first:
 *
 *   move-aside	copies it to another frame
 *   put-back	reads it into the swap cache, where it is an ordinary dirty folio
 *   write-back	does the same, and begins to write that folio to the device
 *
 * If a frame for a copy, or memory for a folio, is not to be had, the other way is tried.
 *
 * gcma.dirty has a bit for each frame that holds a dirty tenant, or is about to. It is set by
 * who copies a page into a frame, and cleared by who owns the frame and gives it back.
 *
 *   allocator                            who keeps a page (gcma_dirty_copy)
 *   ---------                            ----------------------------------
 *   set the bits of the range            set the dirty bit
 *   smp_mb()                             smp_mb()
 *   look for dirty bits in the range,    give the frame back if its bit
 *     and wait until there are none        is set, else copy
 *
 * One of the two sees the other. That takes the place of gcma_hazard: who owns a frame with
 * a dirty bit may touch its memory, whether a primary has come or not.
 *
 * A slot is left alone by all but who has SWAP_HAS_CACHE of it, and who moves its tenant. So
 * who loads it finds either the tenant, or where it was moved to.
 */

#include <linux/delay.h>
#include <linux/highmem.h>
#include <linux/memcontrol.h>
#include <linux/mempolicy.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/suspend.h>
#include <linux/swap.h>
#include <linux/swap_cgroup.h>
#include <linux/swapops.h>
#include <linux/vmalloc.h>
#include <linux/writeback.h>
#include <linux/zswap.h>
#include <trace/events/gcma.h>

#include "gcma.h"
#include "internal.h"
#include "swap.h"

#ifdef CONFIG_CAMC
#include <linux/camc.h>
#else /* without memory coloring, or in a tree without it */
static const unsigned long *camc_use_colors(const unsigned long *colors) { return NULL; }
#endif

/* Looks at frames before giving up: bounds a store. */
#define GCMA_DIRTY_SCAN		16

/*
 * Spins that a copy of a page takes at most, by far; who owns a frame longer was preempted, or
 * copies a folio of many pages.
 */
#define GCMA_DIRTY_SPINS	10000

/* Of a slot in the swap cache: its page was lost with the memory of its frame. */
#define GCMA_LOST_MARK		XA_MARK_0

DEFINE_STATIC_KEY_FALSE(gcma_dirty_key);

int gcma_dirty_create(struct gcma *g)
{
	/* kmalloc() has no more than 4 MiB, which are the bits of 128 GiB. */
	g->dirty = vzalloc(array_size(BITS_TO_LONGS(g->nr_frames), sizeof(long)));
	g->dirty_max = g->nr_frames / 2;
	return g->dirty ? 0 : -ENOMEM;
}

void gcma_dirty_free(struct gcma *g)
{
	vfree(g->dirty);
}

/* The copy is not needed any more. Context: the caller owns the frame. */
void gcma_dirty_clear(struct gcma *g, u32 frame)
{
	/* Who finds that may touch the memory: pairs with gcma_evacuate(), gcma_nr_dirty(). */
	clear_bit_unlock(frame, g->dirty);
	atomic_dec_return_release(&g->nr_dirty);
}

/* ------ keeping -------------------------------------------------------- */

/* The frames of the word that @frame begins, of those that are dirty or a primary's. */
static unsigned long gcma_near(const struct gcma *g, unsigned long frame)
{
	unsigned int order = g->cma->order_per_bit, i;
	unsigned long word = READ_ONCE(g->dirty[BIT_WORD(frame)]);

	if (!order)
		return word | READ_ONCE(g->cma->bitmap[BIT_WORD(frame)]);
	for (i = 0; i < BITS_PER_LONG; i += 1U << order)
		if (gcma_revoked(g, frame + i))
			word |= GENMASK(min(i + (1U << order), BITS_PER_LONG) - 1, i);
	return word;
}

/*
 * The next frame from @frame on, before @end, that is neither dirty nor a primary's; or one
 * that is not before @end. Whatever runs they are in, each word is looked at once, or of an
 * area with a few frames a bit each of those.
 */
static unsigned long gcma_next_far(const struct gcma *g, unsigned long frame, unsigned long end)
{
	unsigned long word, far;

	while (frame < end) {
		word = round_down(frame, BITS_PER_LONG);
		far = ~gcma_near(g, word) & BITMAP_FIRST_WORD_MASK(frame);
		if (far)
			return word + __ffs(far);
		frame = word + BITS_PER_LONG;
	}
	return frame;
}

/*
 * Find a frame from @first on that is neither dirty nor a primary's, or -1: what is in it is
 * thrown away. Frames are tried in turn, from where the last search ended, so that those that
 * cannot be taken just now are not in the way of the next one. If there is none but of bad memory
 * the area is full, as far as dirty tenants are let in, until a frame is given back. Context:
 * gcma.lock held. Cost: GCMA_DIRTY_SCAN frames, and O(frames of @g / BITS_PER_LONG) if most are
 * dirty or a primary's.
 */
long gcma_take_far(struct gcma *g, u32 first)
{
	unsigned long begin = g->hand < first || g->hand >= g->nr_frames ? first : g->hand;
	unsigned long frame = begin, end = g->nr_frames;
	unsigned int tries = GCMA_DIRTY_SCAN;
	bool owned = false;

	for (;;) {
		frame = gcma_next_far(g, frame, end);
		if (frame >= end) {
			if (end == begin) {
				if (first <= g->nr_frames - g->dirty_max)
					WRITE_ONCE(g->full, !owned);
				break;
			}
			frame = first;
			end = begin;
			continue;
		}
		g->hand = frame + 1;
		if (gcma_take_frame(g, frame))
			return frame;
		/* Off all lists is what is bad, or what gcma_lend() is about to see. */
		owned |= g->frames[frame].next != GCMA_UNLINKED;
		frame++;
		if (!--tries)
			break;
	}
	return -1;
}

/*
 * Own a frame for a page that is going to be nowhere else, if the policy of the area allows
 * one more; to @move one needs no leave. Returns its entry, as gcma_own(), or NULL.
 */
static void *gcma_dirty_own(struct gcma *g, struct address_space *mapping, pgoff_t index,
			    void *copies, bool move)
{
	void *entry;
	long frame;

	scoped_guard(spinlock_irqsave, &g->lock) {
		if (!move && (g->swap_policy == GCMA_WRITE_THROUGH || g->hibernates || g->full ||
			      gcma_nr_dirty(g) >= g->dirty_max))
			return NULL;
		frame = gcma_take_far(g, g->nr_frames - g->dirty_max);
		if (frame < 0 && move)
			frame = gcma_take_far(g, 0);
		if (frame < 0)
			return NULL;
		entry = gcma_own(g, frame, GCMA_DIRTY, mapping, index, copies);
		set_bit(frame, g->dirty);
		atomic_inc(&g->nr_dirty);
	}
	smp_mb__after_atomic(); /* pairs with gcma_revoke() */
	if (gcma_revoked(g, frame)) {
		gcma_dirty_clear(g, frame); /* the memory is not ours */
		gcma_put(g, frame, GCMA_refused_busy);
		return NULL;
	}
	return entry;
}

static unsigned long gcma_frame_pfn(const struct gcma *g, u32 frame)
{
	return g->base_pfn + frame;
}

static struct page *gcma_frame_page(const struct gcma *g, u32 frame)
{
	return pfn_to_page(gcma_frame_pfn(g, frame));
}

/* Copy all pages of a folio, or none. Returns the copies, as gcma_copy_page(). */
static void *gcma_dirty_copy(struct address_space *mapping, struct folio *folio)
{
	pgoff_t index = swap_cache_index(folio->swap);
	void *copies = NULL, *entry;
	struct gcma *g;
	long i;
	u32 frame;

	for (i = 0; i < folio_nr_pages(folio); i++) {
		g = gcma_area(mapping, index + i);
		entry = gcma_dirty_own(g, mapping, index + i, copies, false);
		if (!entry) {
			gcma_put_all(copies, GCMA_refused_busy);
			return NULL;
		}
		gcma_rd_entry(entry, &frame);
		gcma_copy_data(gcma_frame_page(g, frame), folio_page(folio, i));
		trace_gcma_copy(mapping, index + i, gcma_frame_pfn(g, frame));
		copies = entry;
	}
	return copies;
}

/*
 * Has the memory of one of the copies failed since it was copied into, or while? The pages are
 * still here. Context: @copies are owned.
 */
bool gcma_copies_failed(void *copies)
{
	while (copies) {
		u32 frame;
		struct gcma *g = gcma_rd_entry(copies, &frame);

		if (PageHWPoison(gcma_frame_page(g, frame)))
			return true;
		copies = g->frames[frame].shadow;
	}
	return false;
}

/* Pages of zeroes are only marked in a bitmap, if all of a folio are. */
static bool gcma_all_zeroes(struct folio *folio)
{
	size_t at, size = folio_size(folio);
	bool zeroes = true;

	for (at = 0; zeroes && at < size; at += PAGE_SIZE) {
		const void *data = kmap_local_folio(folio, at);

		zeroes = !memchr_inv(data, 0, PAGE_SIZE);
		kunmap_local(data);
	}
	return zeroes;
}

/* zswap comes first. What it still has of a slot would be written over what is there later. */
static bool gcma_is_zswaps(const struct folio *folio)
{
	swp_entry_t entry = folio->swap;
	long i;

	if (zswap_is_enabled())
		return true;
	for (i = 0; !zswap_never_enabled() && i < folio_nr_pages(folio); i++, entry.val++)
		if (zswap_holds(entry))
			return true;
	return false;
}

/* Is a slot needed by nobody but who has it for himself? Context: the device is there. */
static bool gcma_slot_unused(swp_entry_t slot)
{
	/* That may become true at any time, and stays so while a folio is locked and unmapped. */
	return !(data_race(swp_swap_info(slot)->swap_map[swp_offset(slot)]) & ~SWAP_HAS_CACHE);
}

/* What nobody needs is freed instead of being written. */
static bool gcma_is_needed(const struct folio *folio)
{
	swp_entry_t slot = folio->swap;
	long i;

	for (i = 0; i < folio_nr_pages(folio); i++, slot.val++)
		if (!gcma_slot_unused(slot))
			return true;
	return false;
}

bool __gcma_swap_keeps(struct folio *folio)
{
	pgoff_t index = swap_cache_index(folio->swap);
	const struct gcma *g = gcma_area(swap_address_space(folio->swap), index);

	/* What is left dirty for nothing is taken for young, and written when it is old again. */
	return READ_ONCE(g->swap_policy) != GCMA_WRITE_THROUGH && !READ_ONCE(g->hibernates) &&
	       !READ_ONCE(g->full) &&
	       gcma_nr_dirty(g) + folio_nr_pages(folio) <= READ_ONCE(g->dirty_max) &&
	       folio_test_uptodate(folio) && !folio_contain_hwpoisoned_page(folio) &&
	       !gcma_swap_fast(folio) && gcma_is_needed(folio) && !gcma_is_zswaps(folio) &&
	       !gcma_all_zeroes(folio);
}

bool __gcma_swap_evict(struct folio *folio, struct mem_cgroup *target_memcg)
{
	swp_entry_t swap = folio->swap;
	struct address_space *mapping = swap_address_space(swap);
	enum vm_event_item what = GCMA_refused_kept;
	int refs = 1 + folio_nr_pages(folio);
	void *copies;

	if (folio_test_writeback(folio) || folio_ref_count(folio) != refs ||
	    arch_prepare_to_swap(folio))
		return false;
	/*
	 * Who writes to it from now on holds a reference already, or takes one, and marks it
	 * dirty before dropping the reference: it is found here, as in __remove_mapping().
	 */
	folio_clear_dirty(folio);
	smp_mb__after_atomic(); /* clean before it is copied */
	copies = gcma_dirty_copy(mapping, folio);
	if (!copies)
		goto dirty;
	xa_lock_irq(&mapping->i_pages);
	if (!folio_ref_freeze(folio, refs))
		goto unlock;
	/* Failed memory is looked for last: from now on it is as that of any page that is lost. */
	if (gcma_copies_failed(copies))
		what = GCMA_refused_failed;
	else if (!folio_test_dirty(folio))
		goto commit;
	folio_ref_unfreeze(folio, refs);
unlock:
	xa_unlock_irq(&mapping->i_pages);
	gcma_put_all(copies, what);
dirty:
	folio_set_dirty(folio);
	return false;
commit:
	/* There always is a shadow, and nothing invalidates what is in swap. */
	__gcma_store_commit(copies, mapping, folio, workingset_eviction(folio, target_memcg), 0);
	mem_cgroup_swapout(folio, swap);
	xa_unlock_irq(&mapping->i_pages);
	put_swap_folio(folio, swap);
	return true;
}

/* ------ loading --------------------------------------------------------- */

/*
 * Somebody else owns a frame: he copies a folio, or was preempted while he did. Returns true
 * if that took a tick.
 */
static bool gcma_dirty_wait(unsigned int *spins)
{
	if (++*spins % GCMA_DIRTY_SPINS) {
		cpu_relax();
		return false;
	}
	schedule_timeout_uninterruptible(1);
	return true;
}

/* The page was lost: who touches it gets SIGBUS, see swap_read_folio(). */
static void gcma_dirty_lose(struct address_space *mapping, pgoff_t index)
{
	xa_lock_irq(&mapping->i_pages);
	__xa_set_mark(&mapping->i_pages, index, GCMA_LOST_MARK);
	xa_unlock_irq(&mapping->i_pages);
}

bool __gcma_swap_lost(const struct folio *folio)
{
	return folio_test_swapcache(folio) &&
	       xa_get_mark(&swap_address_space(folio->swap)->i_pages,
			   swap_cache_index(folio->swap), GCMA_LOST_MARK);
}

/*
 * Own the dirty tenant that the slot has, if it has one; NULL if not. Context: the caller has
 * SWAP_HAS_CACHE of the slot.
 */
static struct gcma *gcma_dirty_claim(struct address_space *mapping, pgoff_t index, u32 *frame)
{
	unsigned int spins = 0;

	for (;;) {
		void *entry = xa_load(&mapping->i_pages, index);
		bool there, same;
		struct gcma *g;

		if (!gcma_is_tenant(entry))
			return NULL;
		g = gcma_rd_entry(entry, frame);
		if (gcma_is_dirty(g, *frame) && gcma_claim(entry, frame, mapping, index))
			return g;
		/*
		 * Not there, or moved? Nobody moves it while we look: without the lock it might
		 * go and be back where the entry is the same again, if the generation wrapped.
		 */
		xa_lock_irq(&mapping->i_pages);
		same = xa_load(&mapping->i_pages, index) == entry;
		there = gcma_is_dirty(g, *frame) &&
			gcma_names(g, *frame, entry, mapping, index);
		xa_unlock_irq(&mapping->i_pages);
		if (same && !there)
			return NULL;
		if (same)
			gcma_dirty_wait(&spins);
	}
}

/**
 * gcma_dirty_load() - fill a folio from the dirty tenant of its slot
 * @mapping: part of the swap cache
 * @folio: a single page: new, charged, locked; nobody else can find it
 * @index: of its slot, of which the caller has SWAP_HAS_CACHE
 * @shadow: set to the shadow behind the tenant
 *
 * The tenant stays until the folio is in the swap cache: see gcma_swap_added(). The folio is
 * dirty then, for the device has nothing of it. If the memory of the frame is bad the folio is
 * not filled, and never will be.
 *
 * Context: process context, no spinlock held; may sleep if who owns the frame was preempted.
 * Return: false if the slot has no dirty tenant.
 */
bool gcma_dirty_load(struct address_space *mapping, struct folio *folio, pgoff_t index,
		     void **shadow)
{
	struct gcma *g;
	u32 frame;

	if (!gcma_dirty_enabled())
		return false;
	g = gcma_dirty_claim(mapping, index, &frame);
	if (!g)
		return false;
	*shadow = g->frames[frame].shadow;
	if (PageHWPoison(gcma_frame_page(g, frame))) {
		gcma_dirty_lose(mapping, index);
	} else {
		gcma_copy_data(folio_page(folio, 0), gcma_frame_page(g, frame));
		flush_dcache_folio(folio);
		folio_mark_uptodate(folio);
		folio_set_dirty(folio);
		trace_gcma_fill(mapping, index, gcma_frame_pfn(g, frame));
	}
	gcma_disown(g, frame);
	return true;
}

/*
 * Must a node of the swap cache, full of value entries, stay? A tenant that is nowhere else is
 * in it, or a slot whose page was lost. Context: i_pages lock held.
 */
bool __gcma_swap_node_stays(const struct xa_node *node)
{
	unsigned int i, left = node->count;
	void *entry;
	u32 frame;

	if (!bitmap_empty(node->marks[(__force unsigned int)GCMA_LOST_MARK], XA_CHUNK_SIZE))
		return true;
	for (i = 0; left && i < XA_CHUNK_SIZE; i++) {
		entry = rcu_dereference_protected(node->slots[i], true);
		left -= !!entry;
		if (gcma_is_tenant(entry)) {
			struct gcma *g = gcma_rd_entry(entry, &frame);

			if (gcma_is_dirty(g, frame) && gcma_is_of(g, frame, entry))
				return true;
		}
	}
	return false;
}

/* ------ leaving --------------------------------------------------------- */

/*
 * As gcma_claim(), but of a dirty tenant only. What was seen to be dirty may have been loaded, and
 * its frame been lent to a clean one of the same slot or another, if no primary has come for it.
 * That one is dropped: a primary may have come since, so it cannot be left alone again.
 */
static bool gcma_claim_dirty(struct gcma *g, u32 frame, void *entry,
			     struct address_space *mapping, pgoff_t index)
{
	if (!gcma_claim(entry, &frame, mapping, index))
		return false;
	if (gcma_is_dirty(g, frame))
		return true;
	gcma_put(g, frame, GCMA_dropped);
	return false;
}

/*
 * What became of a tenant that is not in its slot any more, where there is @now: the slot was
 * freed, or a folio was added that has the content. Context: i_pages lock held.
 */
static enum vm_event_item gcma_gone(void *now)
{
	return now && !xa_is_value(now) && folio_test_uptodate(now) ? GCMA_loads : GCMA_dropped;
}

/*
 * Move a dirty tenant to another frame of its area. Returns 0; -EAGAIN if it is about to go,
 * or has moved; -ENOMEM if there is no other frame. Context: the device is there.
 */
static int gcma_move_aside(struct gcma *g, u32 from, void *entry,
			   struct address_space *mapping, pgoff_t index)
{
	XA_STATE(xas, &mapping->i_pages, index);
	enum vm_event_item what = GCMA_moved_aside;
	void *there;
	u32 to;

	if (!gcma_claim_dirty(g, from, entry, mapping, index))
		return -EAGAIN;
	there = PageHWPoison(gcma_frame_page(g, from)) ? NULL :
		gcma_dirty_own(g, mapping, index, NULL, true);
	if (!there) {
		gcma_disown(g, from);
		return -ENOMEM;
	}
	gcma_rd_entry(there, &to);
	gcma_copy_data(gcma_frame_page(g, to), gcma_frame_page(g, from));
	WRITE_ONCE(g->frames[to].shadow, g->frames[from].shadow);
	xas_lock_irq(&xas);
	if (xas_load(&xas) != entry) {
		what = gcma_gone(xas_load(&xas));
	} else if (PageHWPoison(gcma_frame_page(g, to))) {
		/* Looked for last, as in __gcma_swap_evict() */
		what = GCMA_refused_failed;
		gcma_disown(g, from);
	} else {
		/* Who takes it out of the slot next has to be able to claim it. */
		gcma_disown(g, to);
		xas_store(&xas, there); /* in place: no memory needed */
	}
	xas_unlock_irq(&xas);
	if (what == GCMA_refused_failed) {
		gcma_put(g, to, what);
		return -EAGAIN;
	}
	if (what != GCMA_moved_aside)
		gcma_put(g, to, GCMA_refused_busy);
	else
		trace_gcma_move_aside(mapping, index, gcma_frame_pfn(g, to));
	gcma_put(g, from, what);
	return 0;
}

/* Has somebody a slot for himself just now? Context: the device is there. */
static bool gcma_slot_held(swp_entry_t slot)
{
	/* He may let go of it at any time. */
	return data_race(swp_swap_info(slot)->swap_map[swp_offset(slot)]) & SWAP_HAS_CACHE;
}

/*
 * The memory of a dirty tenant is bad: leave its shadow, and note that the page was lost. That
 * takes neither a frame nor memory. Returns 0, or -EAGAIN as gcma_move_aside(), or if somebody
 * has the slot for himself: he may have read the page in time.
 */
static int gcma_leave_lost(struct gcma *g, u32 frame, void *entry,
			   struct address_space *mapping, pgoff_t index, swp_entry_t slot)
{
	XA_STATE(xas, &mapping->i_pages, index);

	if (!gcma_claim_dirty(g, frame, entry, mapping, index))
		return -EAGAIN;
	/* He had the slot before he claimed the frame: who did so before us is seen here. */
	if (gcma_slot_held(slot)) {
		gcma_disown(g, frame);
		return -EAGAIN;
	}
	xas_lock_irq(&xas);
	/* Not if the slot was freed, or a folio was added: see gcma_dirty_load(). */
	if (xas_load(&xas) == entry) {
		xas_store(&xas, g->frames[frame].shadow);
		xas_set_mark(&xas, GCMA_LOST_MARK);
	}
	xas_unlock_irq(&xas);
	gcma_put(g, frame, GCMA_dropped);
	return 0;
}

/*
 * Drop a dirty tenant that nobody can need any more: of a slot that is free, but was not given
 * back yet, or that has something else by now. False if it is not so.
 */
static bool gcma_drop_unused(struct gcma *g, u32 frame, void *entry,
			     struct swap_info_struct *si, swp_entry_t slot)
{
	struct address_space *mapping = swap_address_space(slot);
	pgoff_t index = swap_cache_index(slot);
	enum vm_event_item what = GCMA_dropped;
	bool unused;
	void *now;

	if (!gcma_claim_dirty(g, frame, entry, mapping, index))
		return false;
	unused = !swap_swapcount(si, slot);
	/*
	 * Under the lock he who stores it lets go of the frame first, and he who adds a folio
	 * for the slot claims it first: either he can, or it is not in the slot and left to us.
	 */
	xa_lock_irq(&mapping->i_pages);
	now = xa_load(&mapping->i_pages, index);
	if (now != entry) {
		unused = true;
		what = gcma_gone(now);
	}
	if (!unused)
		gcma_disown(g, frame);
	xa_unlock_irq(&mapping->i_pages);
	if (unused)
		gcma_put(g, frame, what);
	return unused;
}

/*
 * Begin to write a folio that was put back. Context: it is locked, and has been since it was
 * added to the swap cache, so that nobody has mapped it: a CPU that may write to it by a
 * stale translation, as after reclaim unmapped it and before it flushes, there is none.
 */
static void gcma_write_back(struct gcma *g, struct folio *folio)
{
	struct writeback_control wbc = { .sync_mode = WB_SYNC_NONE };
	swp_entry_t slot = folio->swap;
	unsigned int flags;
	int ret;

	if (!folio_clear_dirty_for_io(folio)) {
		folio_unlock(folio);
		return;
	}
	folio_set_reclaim(folio);
	/* Who switches zswap on just now has it take the page as from reclaim. */
	flags = memalloc_noreclaim_save();
	ret = swap_writepage(&folio->page, &wbc);
	memalloc_noreclaim_restore(flags);
	if (ret == AOP_WRITEPAGE_ACTIVATE) {
		/* Its group has swap for zswap only: it is dirty again. */
		folio_unlock(folio);
	} else {
		gcma_count(g, GCMA_written_back, 1);
		trace_gcma_write_back(swap_address_space(slot), swap_cache_index(slot),
				      folio_pfn(folio));
	}
	if (!folio_test_writeback(folio))
		folio_clear_reclaim(folio);
}

#ifdef CONFIG_MEMCG
/*
 * What a group is above memory.high or swap.high is noted with the task that charges it, which is
 * none of its own here: it would wait for that, a kernel thread at once. The group sees it when it
 * charges next. Returns what was noted before, with which to call it again.
 */
static unsigned int gcma_note_high(unsigned int pages)
{
	unsigned int before = current->memcg_nr_pages_over_high;

	current->memcg_nr_pages_over_high = pages;
	return before;
}

/*
 * Who is charged for a page that is put back: its group, or the nearest one above that is not
 * gone. Takes a reference; NULL if there are no groups.
 */
static struct mem_cgroup *gcma_charged(swp_entry_t slot)
{
	struct mem_cgroup *memcg;

	if (mem_cgroup_disabled())
		return NULL;
	rcu_read_lock();
	memcg = mem_cgroup_from_id(lookup_swap_cgroup_id(slot)) ?: root_mem_cgroup;
	while (!css_tryget_online(&memcg->css))
		memcg = parent_mem_cgroup(memcg);
	rcu_read_unlock();
	return memcg;
}
#else
static unsigned int gcma_note_high(unsigned int pages)
{
	return 0;
}

static struct mem_cgroup *gcma_charged(swp_entry_t slot)
{
	return NULL;
}
#endif

/*
 * Read a dirty tenant into the swap cache, as readahead would, and write it perhaps. Returns 0;
 * -EAGAIN if somebody has the slot for himself just now; -ENOMEM if there is no memory. The
 * memory policy and colors of this task do not count, nor does its group; its cpuset does.
 */
static int gcma_put_back(struct gcma *g, swp_entry_t slot, gfp_t gfp, bool write)
{
	struct mem_cgroup *charged = gcma_charged(slot), *old = set_active_memcg(charged);
	const unsigned long *colors = camc_use_colors(NULL);
	unsigned int high = gcma_note_high(0);
	struct folio *folio;
	bool fresh;

	folio = __read_swap_cache_async(slot, gfp | __GFP_NOWARN,
					get_task_policy(&init_task), NO_INTERLEAVE_INDEX,
					&fresh, true);
	gcma_note_high(high);
	camc_use_colors(colors);
	set_active_memcg(old);
	mem_cgroup_put(charged);
	if (!folio)
		return gcma_slot_held(slot) ? -EAGAIN : -ENOMEM;
	if (fresh) {
		/* Unless the slot has something else by now */
		if (folio_test_dirty(folio)) {
			gcma_count(g, GCMA_put_back, 1);
			trace_gcma_put_back(swap_address_space(slot), swap_cache_index(slot),
					    folio_pfn(folio));
		}
		/* Only reclaim gives pages to zswap: it charges their groups, by all means. */
		if (write && !zswap_is_enabled() && folio_test_uptodate(folio))
			gcma_write_back(g, folio);
		else
			swap_read_folio(folio, NULL);
	}
	folio_put(folio);
	return 0;
}

/*
 * What is tried in turn; memory is only reclaimed for it to try @hard. A task that frees memory,
 * or that must not do I/O or enter filesystems, gets what it can get without, and no reserve of
 * memory is for what others own. It reads a page from the device all the same where the slot gets
 * another one just then: that one cannot be taken from the swap cache again, as swapoff() would
 * find it there, and not uptodate.
 */
static int gcma_evacuate_by(struct gcma *g, u32 frame, void *entry,
			    struct swap_info_struct *si, swp_entry_t slot,
			    enum gcma_swap_policy policy, bool hard)
{
	struct address_space *mapping = swap_address_space(slot);
	pgoff_t index = swap_cache_index(slot);
	gfp_t gfp = GFP_HIGHUSER_MOVABLE | __GFP_NORETRY | __GFP_NOMEMALLOC;
	bool write = policy == GCMA_WRITE_BACK &&
		     gfp_has_io_fs(current_gfp_context(GFP_KERNEL) & gfp_allowed_mask);
	bool back = !(current->flags & PF_MEMALLOC);
	int ret = -ENOMEM;

	/* A CPU keeps the slots that it is to free for a while. */
	if (gcma_slot_unused(slot) && gcma_drop_unused(g, frame, entry, si, slot))
		return 0;
	if (PageHWPoison(gcma_frame_page(g, frame))) {
		ret = gcma_leave_lost(g, frame, entry, mapping, index, slot);
		return ret && gcma_drop_unused(g, frame, entry, si, slot) ? 0 : ret;
	}
	if (policy != GCMA_MOVE_ASIDE && back)
		ret = gcma_put_back(g, slot, gfp & ~__GFP_DIRECT_RECLAIM, write);
	if (ret && policy != GCMA_WRITE_THROUGH)
		ret = gcma_move_aside(g, frame, entry, mapping, index);
	if (!ret && !gcma_is_dirty(g, frame))
		return 0;
	if (gcma_drop_unused(g, frame, entry, si, slot))
		return 0;
	if (ret != -ENOMEM)
		return -EAGAIN;
	return back && hard ? gcma_put_back(g, slot, gfp, write) : ret;
}

/* Is there a tick left to wait? Counts it down and returns 0; if not @err, or -EINTR. */
static int gcma_dirty_tick(unsigned int *tries, int err)
{
	if (fatal_signal_pending(current))
		return -EINTR;
	if (!*tries)
		return err;
	--*tries;
	return 0;
}

/*
 * Wait until a frame is not dirty any more, and see to it, for *@tries ticks at most, which count
 * down. Returns 0; -EBUSY if who owns it, or has its slot for himself, does not let go of it;
 * -ENOMEM; -EINTR if this task was killed.
 */
static int gcma_evacuate_frame(struct gcma *g, u32 frame, enum gcma_swap_policy policy,
			       unsigned int *tries)
{
	struct gcma_frame *f = &g->frames[frame];
	unsigned int spins = 0;

	while (gcma_is_dirty(g, frame)) {
		u32 word = atomic_read_acquire(&f->word);
		struct address_space *mapping = READ_ONCE(f->mapping);
		pgoff_t index = READ_ONCE(f->index);
		struct swap_info_struct *si;
		swp_entry_t slot;
		int ret;

		smp_rmb(); /* the key is that of the tenant if the word has not changed */
		if ((word & GCMA_STATE_MASK) != GCMA_STORED || atomic_read(&f->word) != word) {
			ret = gcma_dirty_wait(&spins) ? gcma_dirty_tick(tries, -EBUSY) : 0;
			if (ret)
				return ret;
			continue;
		}
		slot = swap_cache_slot(mapping, index);
		si = get_swap_device(slot);
		ret = -EAGAIN;
		/* It may be another device by now, if the tenant has gone with the slot. */
		if (si && swap_address_space(slot) == mapping && atomic_read(&f->word) == word)
			ret = gcma_evacuate_by(g, frame, gcma_mk_entry(g, frame, word), si, slot,
					       policy, *tries && !fatal_signal_pending(current));
		if (si)
			put_swap_device(si);
		/* It may have gone by itself. */
		if (!ret || !gcma_is_dirty(g, frame))
			continue;
		ret = gcma_dirty_tick(tries, ret == -ENOMEM ? -ENOMEM : -EBUSY);
		if (ret)
			return ret;
		schedule_timeout_uninterruptible(1);
	}
	return 0;
}

/**
 * gcma_evacuate() - get dirty tenants out of the way of a primary
 * @g: the area
 * @frame: first frame of a range, whose bits were set
 * @count: frames
 *
 * Context: may sleep, no lock held. Cost: O(@count / BITS_PER_LONG), and for each dirty tenant in
 * the range what the policy takes: move-aside a page copy and, to find a frame in an area full of
 * dirty ones, O(frames of @g / BITS_PER_LONG); put-back a swap-in without I/O, unless the slot
 * gets another page just then, which is read ahead; write-back the same and to submit a write.
 * What cannot be placed is tried again GCMA_DIRTY_TRIES times, a tick apart, and reclaims memory
 * before each; who does not run is waited for as many ticks, in each range that is tried:
 * cma_alloc() of so many pages tries up to count >> align that have the same frame.
 * Return: 0; -EBUSY if who copies a page into one of the frames, or swaps one in, does not get on:
 * there may be room elsewhere; -ENOMEM if one of them could be placed nowhere; -EINTR if the task
 * was killed before all were. What was placed until then stays where it is.
 */
int gcma_evacuate(struct gcma *g, u32 frame, u32 count)
{
	enum gcma_swap_policy policy = READ_ONCE(g->swap_policy);
	unsigned long end = frame + count, at = frame;
	unsigned int tries;
	int ret = 0;

	/* A policy that was switched, and could not drain all of it */
	if (policy == GCMA_WRITE_THROUGH)
		policy = GCMA_PUT_BACK;
	for_each_set_bit_from(at, g->dirty, end) {
		tries = GCMA_DIRTY_TRIES;
		ret = fatal_signal_pending(current) ? -EINTR :
		      gcma_evacuate_frame(g, at, policy, &tries);
		if (ret)
			break;
		cond_resched();
	}
	smp_mb(); /* no bit is set: nobody touches the memory. Pairs with gcma_dirty_clear() */
	return ret;
}

/**
 * gcma_dirty_stays() - has a frame a dirty tenant, after its range was refused?
 * @g: the area
 * @frame: the frame; its bit is set
 * @tries: ticks to wait for owners, of all frames together
 *
 * Who owns it may give it back as it was, see gcma_dirty_own(): it has to be wiped then, if
 * that is asked for, once he is done.
 *
 * Context: may sleep. Return: false if its memory may be touched.
 */
bool gcma_dirty_stays(struct gcma *g, u32 frame, unsigned int *tries)
{
	unsigned int spins = 0;

	while (gcma_is_dirty(g, frame)) {
		if (gcma_frame_state(&g->frames[frame]) == GCMA_STORED || !*tries)
			return true;
		*tries -= gcma_dirty_wait(&spins);
	}
	smp_mb(); /* he is done with it: pairs with gcma_dirty_clear() */
	return false;
}

/* ------ settings -------------------------------------------------------- */

/* Put back the dirty tenants of these frames, which get no new ones. */
static int gcma_drain(struct gcma *g, u32 end)
{
	unsigned long frame;
	unsigned int tries;
	int ret;

	for_each_set_bit(frame, g->dirty, end) {
		tries = GCMA_DIRTY_TRIES;
		ret = fatal_signal_pending(current) ? -EINTR :
		      gcma_evacuate_frame(g, frame, GCMA_WRITE_THROUGH, &tries);
		if (ret)
			return ret;
		cond_resched();
	}
	return 0;
}

/* Until none is left there, of all frames: nor one that a primary moves just now. */
static int gcma_drain_all(struct gcma *g, u32 end)
{
	int ret;

	while (!(ret = gcma_drain(g, end)) &&
	       (end == g->nr_frames ? gcma_nr_dirty(g) : find_first_bit(g->dirty, end) < end)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		schedule_timeout_uninterruptible(1);
	}
	return ret;
}

static int gcma_switch(struct gcma *g, enum gcma_swap_policy policy)
{
	int ret;

	if (policy != GCMA_WRITE_THROUGH && !gcma_dirty_enabled())
		static_branch_enable(&gcma_dirty_key);
	scoped_guard(spinlock_irqsave, &g->lock)
		WRITE_ONCE(g->swap_policy, GCMA_WRITE_THROUGH);
	ret = gcma_drain_all(g, g->nr_frames);
	if (ret)
		return ret;
	scoped_guard(spinlock_irqsave, &g->lock)
		WRITE_ONCE(g->swap_policy, policy);
	return 0;
}

/* Held as long as a drain takes: who waits for it can be killed. */
static DEFINE_MUTEX(gcma_settings);

/*
 * Switch the policy: there are no dirty tenants left then. If they can be placed nowhere
 * it is write-through, and those that are left stay. Returns 0, -ENOMEM, -EBUSY or -EINTR;
 * with the latter it may be as it was, if another setting did not end.
 */
int gcma_set_swap_policy(struct gcma *g, enum gcma_swap_policy policy)
{
	int ret = mutex_lock_killable(&gcma_settings);

	if (ret)
		return ret;
	ret = gcma_switch(g, policy);
	mutex_unlock(&gcma_settings);
	return ret;
}

/*
 * How many dirty tenants there may be; what is not in as many frames at the end is put back.
 * Returns 0 or -EINVAL; -ENOMEM, -EBUSY or -EINTR if some are left there, or as above.
 */
int gcma_set_dirty_max(struct gcma *g, u32 max)
{
	u32 end;
	int ret;

	if (max > g->nr_frames)
		return -EINVAL;
	end = g->nr_frames - max;
	ret = mutex_lock_killable(&gcma_settings);
	if (ret)
		return ret;
	scoped_guard(spinlock_irqsave, &g->lock) {
		WRITE_ONCE(g->dirty_max, max);
		gcma_dirty_room(g);
	}
	ret = gcma_drain_all(g, end);
	mutex_unlock(&gcma_settings);
	return ret;
}

/* ------ hibernation ------------------------------------------------------- */

#ifdef CONFIG_HIBERNATION
/* Put back what can be; *@tries ticks, which count down, are waited for all others together. */
static void gcma_drain_most(struct gcma *g, unsigned int *tries)
{
	unsigned long frame;

	for_each_set_bit(frame, g->dirty, g->nr_frames) {
		if (fatal_signal_pending(current))
			return;
		/* Who owns it was waited for long enough. */
		if (!*tries && gcma_frame_state(&g->frames[frame]) != GCMA_STORED)
			continue;
		gcma_evacuate_frame(g, frame, GCMA_WRITE_THROUGH, tries);
		cond_resched();
	}
}

/* What cannot be put back is in the image, as all of the area is. */
static int gcma_hibernate(struct cma *cma, void *event)
{
	bool prepare = *(unsigned long *)event == PM_HIBERNATION_PREPARE;
	unsigned int tries = GCMA_DIRTY_TRIES;
	struct gcma *g = gcma_of(cma);
	int pass;

	if (!g)
		return 0;
	scoped_guard(spinlock_irqsave, &g->lock)
		WRITE_ONCE(g->hibernates, prepare);
	/* Twice: a primary may move one behind where we look. */
	for (pass = 0; prepare && pass < 2 && gcma_nr_dirty(g); pass++)
		gcma_drain_most(g, &tries);
	return 0;
}

static int gcma_pm_event(struct notifier_block *nb, unsigned long event, void *unused)
{
	if (event == PM_HIBERNATION_PREPARE || event == PM_POST_HIBERNATION)
		cma_for_each_area(gcma_hibernate, &event);
	return NOTIFY_DONE;
}

static int __init gcma_pm_init(void)
{
	pm_notifier(gcma_pm_event, 0);
	return 0;
}
late_initcall(gcma_pm_init);
#endif
