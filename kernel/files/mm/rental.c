// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rental memory: idle frames of a CMA area lent to clean pages of the page cache
 *
 * After "Rigorous Rental Memory Management for Embedded Systems" (Jeong et al., ACM TECS
 * 12(1), 2013), here "the paper". Where gcma copies a page into the area and out again, a
 * lent frame is the page: it is mapped and read in place. What makes it fast to get back is
 * what may be there (sections 4.1 and 4.2): clean pages of files only, which can be dropped
 * without I/O and without memory to put them.
 *
 * A frame is idle, lent, or a primary's:
 *
 *   idle    bit in @idle; its page has one reference, the area's
 *   lent    bit in @lent; an ordinary folio, whose last reference brings it home through
 *           rental_free(): to @idle, or, if its bit in the bitmap of the area is set by
 *           now, to the primary that waits for it
 *   taken   bit in cma->bitmap
 *
 * Who returns a range has set its bits in cma->bitmap, so nothing that comes home becomes
 * idle; then takes its idle frames out of @idle, so nothing is lent any more; and what is
 * left is in @lent, from where it can only leave.
 *
 * A lent page does not become dirty. Who is going to make it dirty locks the folio before that, or
 * maps it writable with the folio locked, and looks there whether it is lent: if so, a folio of
 * other memory takes its place in the page cache. That needs the only reference, as for
 * migration: who has another one may rely on it to keep the folio in the page cache, and
 * go on to use it there. So a writer waits for who reads it, but not for long: what is left is
 * written to where it is, counted, and moved out as soon as nobody holds it.
 */

#define pr_fmt(fmt) "rental: " fmt

#include <kunit/static_stub.h>
#include <linux/backing-dev.h>
#include <linux/cma.h>
#include <linux/cpuset.h>
#include <linux/dax.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/memcontrol.h>
#include <linux/migrate.h>
#include <linux/mm_inline.h>
#include <linux/page-isolation.h>
#include <linux/page_owner.h>
#include <linux/pagevec.h>
#include <linux/rmap.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/swap.h>

#ifdef CONFIG_CAMC
#include <linux/camc.h>
#else /* without memory coloring, or in a tree without it */
static inline bool camc_colored(gfp_t gfp, unsigned int order, int mt) { return false; }
static inline bool camc_keeps_color(unsigned long pfn) { return false; }
#endif

#include "internal.h"
#include "rental.h"

#define CREATE_TRACE_POINTS
#include <trace/events/rental.h>

/*
 * How long a return waits until nobody has an unexpected reference to a page, in ms; a tenth of
 * it if another one just failed for that
 */
#define RENTAL_PIN_MS		200

/* And until pages that are being read, or on their way, come home: a slow disk's read */
#define RENTAL_RETURN_MS	2000

/*
 * How often a writer looks again whether nobody else has a reference to a lent page, whoever has
 * it, and how often he tries to replace it. If it is worth while he waits for RENTAL_PIN_MS then:
 * who reads a file has some of its pages while he waits for the next one.
 */
#define RENTAL_WRITE_WAITS	20

/* A page is not held because of few looks, however much time is between them. */
#define RENTAL_LOOKS		8

/* The index, as it is remembered, of a page that reclaim has evicted and not yet freed */
#define RENTAL_FROZEN		ULONG_MAX

/* Runs of idle frames looked at for a large folio, with interrupts off */
#define RENTAL_RUNS		64

/* Frames of a return whose bits are looked at with interrupts off, in 2,048 runs at most */
#define RENTAL_BITS		4096UL

/* Reclaim evicts lent pages too as long as less than one in so many frames is idle. */
#define RENTAL_ROOM		64

/* How long until dirty pages are moved out; ten times of it until it is tried again */
#define RENTAL_CLEAN_DELAY	(HZ / 10)

/* Looks at a locked page, some 0.1 ms apart, before it is taken for one that stays locked */
#define RENTAL_CLEAN_TRIES	10

DEFINE_STATIC_KEY_FALSE(rental_key);

/* Written at boot only, but by tests; read without a lock. */
static struct rental *rental_areas[MAX_CMA_AREAS];
static unsigned int rental_nr_areas;

/* For the area and for /proc/vmstat. */
static __always_inline void rental_count(struct rental *r, enum vm_event_item item, long nr)
{
	atomic_long_add(nr, &r->counters[item - RENTAL_lends]);
	count_vm_events(item, nr);
}

/* ------ the pool ------------------------------------------------------ */

static unsigned int rental_nr(void)
{
	/* The areas with smaller numbers are there: pairs with rental_create(). */
	return smp_load_acquire(&rental_nr_areas);
}

static struct rental *rental_at(unsigned long pfn)
{
	unsigned int i, nr = rental_nr();

	for (i = 0; i < nr; i++) {
		struct rental *r = rental_areas[i];

		if (pfn - r->cma->base_pfn < r->cma->count)
			return r;
	}
	return NULL;
}

static struct rental *rental_at_folio(struct folio *folio)
{
	return rental_at(folio_pfn(folio));
}

static int rental_nid(const struct rental *r)
{
	return page_to_nid(cma_page(r->cma, 0));
}

/* Does a primary have the frame, or is it about to? */
static inline bool rental_taken(const struct rental *r, unsigned long frame)
{
	return test_bit(frame >> r->cma->order_per_bit, r->cma->bitmap);
}

bool __rental_lent(const struct page *page)
{
	unsigned long pfn = page_to_pfn(page);
	struct rental *r = rental_at(pfn);

	/* or a primary's, who may map it for user space */
	return r && test_bit(pfn - r->cma->base_pfn, r->lent);
}

static bool rental_has_room(const struct rental *r)
{
	/* It may change at once. */
	return data_race(r->nr_idle) > r->cma->count / RENTAL_ROOM;
}

bool __rental_spared(struct folio *folio)
{
	struct rental *r = rental_at_folio(folio);

	return r && rental_has_room(r);
}

void __rental_unevictable(struct folio *folio, long nr)
{
	struct rental *r = rental_at_folio(folio);

	if (r)
		atomic_long_add(nr, &r->nr_unevictable);
}

/* Lent pages on lists of files, or on their way there or from there */
static unsigned long rental_listed(const struct rental *r)
{
	/* of numbers that change */
	return max(0L, (long)data_race(r->nr_lent) - atomic_long_read(&r->nr_unevictable));
}

unsigned long __rental_nr_lent(int nid)
{
	unsigned int i, nr = rental_nr();
	unsigned long sum = 0;

	for (i = 0; i < nr; i++) {
		struct rental *r = rental_areas[i];

		if ((nid == NUMA_NO_NODE || rental_nid(r) == nid) &&
		    READ_ONCE(r->scheme) != RENTAL_NOCLEAN)
			sum += rental_listed(r);
	}
	return sum;
}

unsigned long __rental_nr_spared(int nid)
{
	unsigned int i, nr = rental_nr();
	unsigned long sum = 0;

	for (i = 0; i < nr; i++)
		if (rental_nid(rental_areas[i]) == nid && rental_has_room(rental_areas[i]))
			sum += rental_listed(rental_areas[i]);
	return sum;
}

unsigned long __rental_zone_lent(struct zone *zone)
{
	unsigned int i, nr = rental_nr();
	unsigned long sum = 0;

	for (i = 0; i < nr; i++)
		if (page_zone(cma_page(rental_areas[i]->cma, 0)) == zone)
			sum += rental_listed(rental_areas[i]);
	return sum;
}

/* Memory failures are rare enough to look only after the first. */
static bool rental_poison(void)
{
	return IS_ENABLED(CONFIG_MEMORY_FAILURE) && atomic_long_read(&num_poisoned_pages);
}

static bool rental_poisoned(const struct page *page, unsigned long nr)
{
	if (rental_poison())
		while (nr--)
			if (PageHWPoison(page + nr))
				return true;
	return false;
}

/*
 * The next naturally aligned run of idle frames from @from that ends before @end, or @end if
 * there is none, or if many idle frames are in no such run
 */
static unsigned long rental_find(const struct rental *r, unsigned long from,
				 unsigned long end, unsigned long nr)
{
	unsigned long first = find_next_bit(r->idle, end, from), last;
	unsigned int tries;

	for (tries = 0; tries < RENTAL_RUNS; tries++) {
		first = ALIGN(first, nr);
		if (first + nr > end)
			break;
		last = find_next_zero_bit(r->idle, first + nr, first);
		if (last == first + nr)
			return first;
		first = find_next_bit(r->idle, end, last);
	}
	return end;
}

static void rental_move(unsigned long *from, unsigned long *to, unsigned long frame,
			unsigned long nr)
{
	if (nr == 1) {
		__clear_bit(frame, from);
		__set_bit(frame, to);
	} else {
		bitmap_clear(from, frame, nr);
		bitmap_set(to, frame, nr);
	}
}

/* Idle frames, now lent, from @frame on; false if there are none. */
static bool rental_lend_frames(struct rental *r, unsigned long nr, unsigned long *frame)
{
	unsigned long count = r->cma->count, first;

	/* Without the lock: most areas are full most of the time. */
	if (data_race(r->nr_idle) < nr)
		return false;
	spin_lock_irq(&r->lock);
	first = r->hand;
	if (nr > 1 || !test_bit(first, r->idle)) {
		first = rental_find(r, first, count, nr);
		if (first == count)
			first = rental_find(r, 0, count, nr);
	}
	if (first < count) {
		rental_move(r->idle, r->lent, first, nr);
		r->nr_idle -= nr;
		r->nr_lent += nr;
		r->hand = first + nr < count ? first + nr : 0;
	} else if (nr > 1) {
		rental_count(r, RENTAL_no_run, 1);
	}
	spin_unlock_irq(&r->lock);
	*frame = first;
	return first < count;
}

/* A frame is not lent any more: it is idle, or the primary's who waits for it. Locked. */
static inline void rental_home(struct rental *r, unsigned long frame)
{
	/* a poisoned one may have been given up before */
	if (!__test_and_clear_bit(frame, r->lent))
		return;
	r->nr_lent--;
	if (!rental_taken(r, frame)) {
		__set_bit(frame, r->idle);
		r->nr_idle++;
	}
}

/*
 * For page_owner=on, which counts the pages of each owner, those of a folio as of the first one's:
 * they may have come home one by one.
 */
static void rental_own(struct page *page, unsigned int order)
{
	unsigned long i;

	for (i = 0; i < 1UL << order; i++)
		reset_page_owner(page + i, 0);
	set_page_owner(page, order, GFP_NOWAIT);
}

/* A folio of the area, with one reference, or NULL: O(1) unless few frames are idle */
static noinline struct folio *rental_folio(struct rental *r, unsigned int order)
{
	unsigned long nr = 1UL << order, frame, i;
	struct page *page;

	if (!rental_lend_frames(r, nr, &frame))
		return NULL;
	page = cma_page(r->cma, frame);
	if (!rental_poisoned(page, nr) && (!order || cma_make_compound(page, nr))) {
		rental_own(page, order);
		page->index = jiffies; /* for rental_remembered(), until it is in a file */
		return order ? page_rmappable_folio(page) : (struct folio *)page;
	}
	/* Poisoned ones stay lent, to nobody. */
	spin_lock_irq(&r->lock);
	for (i = 0; i < nr; i++)
		if (!PageHWPoison(page + i))
			rental_home(r, frame + i);
	spin_unlock_irq(&r->lock);
	return NULL;
}

/*
 * May the pages of a mapping be lent frames? Those of regular files that can be opened: what
 * filesystems keep for themselves is written to in ways of their own. Shared mappings of files
 * are read-only until a fault tells of a write, or for ever. Files that are cached locally are
 * made dirty when they are read. No block device is a regular file: see inode_to_bdi().
 */
static __always_inline bool rental_may_lend(struct address_space *mapping)
{
	const struct inode *host = mapping->host;

	return host && S_ISREG(host->i_mode) && host->i_fop->read_iter &&
	       host->i_sb->s_bdi->capabilities & BDI_CAP_WRITEBACK && !dax_mapping(mapping) &&
	       !mapping_unevictable(mapping) && !mapping_release_always(mapping);
}

static bool rental_task_has_policy(void)
{
#ifdef CONFIG_NUMA
	return current->mempolicy;
#else
	return false;
#endif
}

/* May the task have memory of the area? */
static bool rental_allowed(const struct rental *r, gfp_t gfp)
{
	return cpuset_zone_allowed(page_zone(cma_page(r->cma, 0)), gfp);
}

/* Is something lent whose frame the task might have? */
static bool rental_may_come_home(gfp_t gfp)
{
	unsigned int i, nr = rental_nr();

	for (i = 0; i < nr; i++)
		if (rental_listed(rental_areas[i]) && rental_allowed(rental_areas[i], gfp))
			return true;
	return false;
}

/* Calls are a good part of what that takes. */
static __always_inline struct folio *rental_alloc_any(gfp_t gfp, unsigned int order, bool write)
{
	unsigned int i, nr = rental_nr();
	struct folio *folio;

	for (i = 0; i < nr; i++) {
		struct rental *r = rental_areas[i];

		if (write && READ_ONCE(r->scheme) != RENTAL_NOCLEAN)
			continue;
		if (!rental_allowed(r, gfp))
			continue;
		folio = rental_folio(r, order);
		if (folio) {
			rental_count(r, RENTAL_lends, 1L << order);
			return folio;
		}
	}
	return NULL;
}

/* Pages of files that reclaim has evicted since boot, those that were lent a frame among them */
static unsigned long rental_nr_stolen(void)
{
	unsigned long nr = 0;
#ifdef CONFIG_VM_EVENT_COUNTERS
	int cpu;

	for_each_online_cpu(cpu)
		nr += per_cpu(vm_event_states, cpu).event[PGSTEAL_FILE];
#endif
	return nr;
}

/*
 * Reclaim for other memory evicts lent pages, too, and their frames will do: nobody is to
 * be killed for a page before that was tried as often in vain as the page allocator tries. It
 * is not in vain while pages of files are evicted: those in other memory take over what comes
 * home, until there are none any more. Once as many were as there are at first, tries count
 * again, or others who read all the time could make this endless. Without __GFP_FS nobody is
 * killed, but waits for ever: here, where he gets either kind of memory.
 */
static noinline struct folio *rental_alloc_late(gfp_t gfp, unsigned int order)
{
	unsigned long stolen = 0, enough = 0, before;
	unsigned int tries = 0;
	struct folio *folio;

	while ((tries < MAX_RECLAIM_RETRIES || !(gfp & __GFP_FS)) &&
	       rental_may_come_home(gfp) && !fatal_signal_pending(current)) {
		folio = filemap_alloc_folio(gfp | __GFP_RETRY_MAYFAIL | __GFP_NOWARN, order);
		if (!folio)
			folio = rental_alloc_any(gfp, order, false);
		if (folio)
			return folio;
		/* seldom: a full area comes here for each page, and has it from other memory */
		before = stolen;
		stolen = rental_nr_stolen();
		if (!enough)
			enough = stolen + global_node_page_state(NR_FILE_PAGES);
		tries = stolen != before && (long)(enough - stolen) > 0 ? 0 : tries + 1;
	}
	/* The last that was lent may have come home since. */
	return enough ? rental_alloc_any(gfp, order, false) : NULL;
}

struct folio *__rental_alloc(struct address_space *mapping, gfp_t gfp, unsigned int order,
			     bool write)
{
	struct folio *folio;

	if (order > pageblock_order || !rental_may_lend(mapping))
		return NULL;
	/*
	 * Who says where its memory is to be, or of which colors, means this memory, too; and what
	 * is to be pinned for long would have to leave at once.
	 */
	if (rental_task_has_policy() || camc_colored(gfp, 0, MIGRATE_MOVABLE) ||
	    current->flags & PF_MEMALLOC_PIN)
		return NULL;
	folio = rental_alloc_any(gfp, order, write);
	/* nobody is killed for want of a larger one */
	if (folio || write || order > PAGE_ALLOC_COSTLY_ORDER || !(gfp & __GFP_DIRECT_RECLAIM) ||
	    gfp & (__GFP_NORETRY | __GFP_RETRY_MAYFAIL | __GFP_NOFAIL))
		return folio;
	return rental_alloc_late(gfp, order);
}

bool __rental_free(struct page *page, unsigned int order)
{
	unsigned long pfn = page_to_pfn(page), end = pfn + (1UL << order), flags;
	struct rental *r = rental_at(pfn);

	if (!r)
		return false;
	/* Idle frames are as allocated ones: a primary takes them without a look. */
	post_alloc_hook(page, order, GFP_NOWAIT);
	split_page_owner(page, order, 0); /* or who migrates a single page takes it for large */
	spin_lock_irqsave(&r->lock, flags);
	for (; pfn < end; pfn++, page++) {
		set_page_count(page, 1);
		rental_home(r, pfn - r->cma->base_pfn);
	}
	spin_unlock_irqrestore(&r->lock, flags);
	return true;
}

/* ------ one folio for another ----------------------------------------- */

/*
 * Faults that wait for the lock of a lent folio. Two who store to the same page would each wait
 * until the other has no reference. But theirs keep nothing where it is: with the lock they look
 * whether the folio is in the page cache still. So who has the lock puts these references, and
 * takes them again before he unlocks it.
 */
struct rental_waiter {
	struct list_head list;
	struct folio *folio;
};

static LIST_HEAD(rental_waiters);
static DEFINE_SPINLOCK(rental_waiters_lock); /* innermost */

static void rental_folio_lock(struct folio *folio)
{
	struct rental_waiter waiter = { .folio = folio };

	if (folio_trylock(folio))
		return;
	spin_lock(&rental_waiters_lock);
	list_add(&waiter.list, &rental_waiters);
	spin_unlock(&rental_waiters_lock);
	folio_lock(folio);
	spin_lock(&rental_waiters_lock);
	list_del(&waiter.list);
	spin_unlock(&rental_waiters_lock);
}

bool __rental_lock(struct folio *folio)
{
	/* All who wait for a read are woken at its end, who wait for the lock one by one. */
	if (!folio_test_uptodate(folio) && folio_wait_locked_killable(folio))
		return false;
	/* What is not going to be replaced may be locked for long. */
	if (!folio_test_uptodate(folio) || folio_test_dirty(folio) || folio_test_writeback(folio))
		return false;
	rental_folio_lock(folio);
	return true;
}

/* How many wait for the lock of a folio, which the caller has: they wait until he unlocks it. */
static int rental_nr_waiters(const struct folio *folio)
{
	const struct rental_waiter *waiter;
	int nr = 0;

	spin_lock(&rental_waiters_lock);
	list_for_each_entry(waiter, &rental_waiters, list)
		nr += waiter->folio == folio;
	spin_unlock(&rental_waiters_lock);
	return nr;
}

/*
 * Put @new where @old is in the page cache: both locked, of one size; @old is isolated from the
 * LRU, with one reference for that. False if somebody else has a reference, who may rely on it
 * to keep the folio where it is.
 */
static bool rental_exchange(struct folio *old, struct folio *new)
{
	/*
	 * Reclaim unmaps folios and flushes TLBs later: to be written to, what it evicts has to be
	 * read again, or written as a whole. @new may be at once, and nobody may read @old then.
	 */
	try_to_unmap_flush();
	__folio_set_locked(new);
	if (folio_test_private(old) || folio_test_private_2(old) || folio_test_writeback(old) ||
	    folio_mapped(old) || migrate_folio(old->mapping, new, old, MIGRATE_ASYNC)) {
		__folio_clear_locked(new);
		return false;
	}
	old->mapping = NULL;
	flush_dcache_folio(new);
	folio_add_lru(new);
	return true;
}

/*
 * Put @new, of other memory, in the place of a lent folio that is locked and to which the caller
 * has the only reference, but for those of rental_waiters: true, and @new is locked. False if @old
 * has to stay for now.
 */
static bool rental_replace(struct folio *old, struct folio *new)
{
	bool mapped = folio_mapped(old), mlocked = folio_test_mlocked(old), done;
	int waiters;

	/* What its filesystem notes about a dirty folio has to move with it: rental_migrate() */
	if (folio_test_dirty(old))
		return false;
	if (folio_test_pmd_mappable(old) && !thp_migration_supported())
		return false;
	if (folio_needs_release(old) && !filemap_release_folio(old, 0))
		return false;
	if (!folio_isolate_lru(old))
		return false;
	folio_put(old); /* the one of the isolation is the caller's */
	if (mapped)
		try_to_migrate(old, TTU_SYNC);
	waiters = rental_nr_waiters(old);
	if (waiters)
		folio_ref_sub(old, waiters);
	done = rental_exchange(old, new);
	if (waiters)
		folio_ref_add(old, waiters);
	if (done)
		trace_rental_replace(old, new);
	else
		folio_add_lru(old);
	/* It can be isolated again, and the mlock_count of @new begins on the LRU. */
	if (!done || mlocked)
		lru_add_drain();
	if (mapped)
		remove_migration_ptes(old, done ? new : old, 0);
	return done;
}

/*
 * May a lent folio be split? That unmaps it, which locked memory is not to be. Whether it is
 * locked only its mappings tell: a large folio that is mapped where memory is locked already is
 * not marked. Who locks it from now on may meet a fault, and find it read anew. Context: it is
 * locked; may sleep.
 */
static bool rental_may_split(struct folio *folio)
{
	struct address_space *mapping = folio->mapping;
	struct vm_area_struct *vma;
	bool locked = false;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE) ||
	    folio_order(folio) <= mapping_min_folio_order(mapping))
		return false;
	i_mmap_lock_read(mapping);
	vma_interval_tree_foreach(vma, &mapping->i_mmap, folio->index,
				  folio_next_index(folio) - 1) {
		locked = vma->vm_flags & VM_LOCKED;
		if (locked)
			break;
	}
	i_mmap_unlock_read(mapping);
	return !locked;
}

/*
 * Split a lent folio, as rental_replace() would replace it: 0, and its first part has the
 * caller's lock and reference, and those of rental_waiters, who look what they have got. Or
 * -ENOMEM, for the page cache's own needs; -EAGAIN, -EBUSY if somebody holds it.
 */
static int rental_split(struct folio *folio)
{
	unsigned int flags = memalloc_nofs_save(); /* see rental_to_write() */
	int waiters = rental_nr_waiters(folio), ret;

	if (waiters)
		folio_ref_sub(folio, waiters);
	ret = split_folio_to_order(folio, mapping_min_folio_order(folio->mapping));
	if (waiters)
		folio_ref_add(folio, waiters);
	memalloc_nofs_restore(flags);
	return ret;
}

/* Drop a locked folio from the page cache, if it is clean; false if that is not possible now. */
static bool rental_discard(struct folio *folio)
{
	struct address_space *mapping = folio->mapping;

	if (folio_mapped(folio)) {
		try_to_unmap(folio, TTU_BATCH_FLUSH |
			     (folio_test_large(folio) ? TTU_SYNC : 0) |
			     (folio_test_pmd_mappable(folio) ? TTU_SPLIT_HUGE_PMD : 0));
		if (folio_mapped(folio))
			return false;
	}
	if (folio_test_dirty(folio) || folio_test_writeback(folio))
		return false;
	if ((folio_has_private(folio) || mapping_release_always(mapping)) &&
	    !filemap_release_folio(folio, 0))
		return false;
	return remove_mapping(mapping, folio);
}

/*
 * References that are none of the page cache, page tables or private data are somebody's, but
 * for those that are the caller's.
 */
static inline bool rental_referenced(const struct folio *folio, int mine)
{
	int refs = folio_ref_count(folio) - mine;

	if (folio->mapping)
		refs -= folio_nr_pages(folio) + folio_has_private(folio);
	return refs > 0 && refs > folio_mapcount(folio);
}

static void rental_drain(struct work_struct *work)
{
	lru_add_drain();
}

static DEFINE_PER_CPU(struct work_struct, rental_drain_work);

static int __init rental_drain_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		INIT_WORK(per_cpu_ptr(&rental_drain_work, cpu), rental_drain);
	return 0;
}
core_initcall(rental_drain_init);

/*
 * Wait a little, for the @times-th time. Each CPU has lists of pages on their way to the LRU, which
 * hold references. That they are drained is not waited for, nor does one CPU wait for another: a
 * busy one may not run a worker for long, but its lists are soon full and empty themselves. One
 * that has nothing in them, as an isolated one, is left alone, unless it has looked up buffers:
 * see cpu_needs_drain().
 */
static void rental_wait(unsigned int times)
{
	unsigned int cpu;

	if (times % 128 == 2)
		for_each_online_cpu(cpu)
			if (cpu_needs_drain(cpu))
				queue_work_on(cpu, mm_percpu_wq,
					      per_cpu_ptr(&rental_drain_work, cpu));
	usleep_range(50, 200);
}

static struct rental_vain *rental_vain(struct rental *r, const struct address_space *mapping)
{
	return &r->in_vain[hash_ptr(mapping, ilog2(RENTAL_NR_VAIN))];
}

/* Did a writer of the file just wait in vain? A guess, as files may be at the same address. */
static bool rental_in_vain(struct rental *r, const struct address_space *mapping)
{
	const struct rental_vain *vain = rental_vain(r, mapping);

	return READ_ONCE(vain->mapping) == mapping && READ_ONCE(vain->until) - jiffies - 1 < HZ;
}

/*
 * Wait for who else has a reference to a locked folio that is to be written to: false if that is
 * not why it stays, or not worth while any longer. @times: looks at it @since then.
 */
static bool rental_wait_to_write(struct rental *r, struct folio *folio, unsigned long since,
				 unsigned int *times)
{
	int waiters;

	if (folio_test_dirty(folio) || folio_test_writeback(folio))
		return false;
	for (;;) {
		waiters = rental_nr_waiters(folio);
		if (!rental_referenced(folio, 1 + waiters))
			return true;
		if (*times == RENTAL_WRITE_WAITS && rental_in_vain(r, folio->mapping))
			return false;
		/* Truncation and others keep their reference as long as they wait for our lock. */
		if (*times >= RENTAL_WRITE_WAITS && folio_test_waiters(folio) && !waiters)
			return false;
		if (time_after(jiffies, since + msecs_to_jiffies(RENTAL_PIN_MS)) &&
		    *times > RENTAL_WRITE_WAITS) {
			WRITE_ONCE(rental_vain(r, folio->mapping)->mapping, folio->mapping);
			WRITE_ONCE(rental_vain(r, folio->mapping)->until, jiffies + HZ);
			return false;
		}
		rental_wait(++*times);
	}
}

/* Other memory, for what is going to be written to */
static struct folio *rental_alloc_copy(gfp_t gfp, unsigned int order)
{
	KUNIT_STATIC_STUB_REDIRECT(rental_alloc_copy, gfp, order);
	return filemap_alloc_folio(gfp, order);
}

/*
 * What is to be written instead of @old, which is locked and stays so: a folio of other memory,
 * locked, or @old, if it cannot leave now, or there is no memory. NULL if @old was split, because
 * there is none in one piece: who looks for the page again finds a smaller folio. Without waiting
 * it fails then.
 */
static struct folio *rental_to_write(struct folio *old, bool nowait)
{
	struct rental *r = rental_at_folio(old);
	unsigned int times = 0, tries = 0;
	int ret = -ENOMEM;
	unsigned long since;
	struct folio *new;
	bool split;
	gfp_t gfp;

	/* dirty: it could not leave when it was written to first */
	if (READ_ONCE(r->scheme) == RENTAL_NOCLEAN || folio_test_dirty(old))
		return old;
	/* The locks under which its page tables are found may be waited for. */
	if (nowait && folio_mapped(old))
		return ERR_PTR(-EAGAIN);
	/*
	 * Reclaim must not wait for somebody who waits for this folio, as filesystems may, nor
	 * kill for it. Apart from that it tries as for other writes: it only tries the locks of
	 * folios, and what it waits for else is bounded. A large folio is not worth that much.
	 */
	gfp = mapping_gfp_mask(old->mapping);
	gfp = nowait ? (gfp & ~GFP_KERNEL) | GFP_NOWAIT : gfp & ~__GFP_FS;
	gfp |= nowait || folio_order(old) > PAGE_ALLOC_COSTLY_ORDER ? __GFP_NORETRY :
								      __GFP_RETRY_MAYFAIL;
	new = rental_alloc_copy(gfp | __GFP_NOWARN, folio_order(old));
	split = !new && !nowait;
	/* Lists of pages on their way to the LRU, or about there, have a reference to each. */
	if (folio_ref_count(old) != folio_expected_ref_count(old) + 1)
		lru_add_drain();
	since = jiffies;
	/* Others may lock memory while we wait. */
	while (new || (split && rental_may_split(old))) {
		if (split) {
			ret = rental_split(old);
			if (!ret)
				return NULL;
		}
		if (new && rental_replace(old, new)) {
			rental_count(r, RENTAL_replaced, folio_nr_pages(new));
			return new;
		}
		if (nowait || ++tries > RENTAL_WRITE_WAITS ||
		    !rental_wait_to_write(r, old, since, &times))
			break;
	}
	if (new)
		folio_put(new);
	if (nowait)
		return ERR_PTR(-EAGAIN);
	/* Written back: it was held when it was written to before. */
	if (times || new || ret != -ENOMEM || folio_test_writeback(old))
		rental_count(r, RENTAL_held, folio_nr_pages(old));
	else
		rental_count(r, RENTAL_no_memory, folio_nr_pages(old));
	return old;
}

struct folio *__rental_before_write(struct folio *old, bool nowait)
{
	struct folio *new = rental_to_write(old, nowait);

	if (new != old) {
		folio_unlock(old);
		folio_put(old);
	}
	return new;
}

vm_fault_t __rental_fault(struct folio *folio, pgoff_t index)
{
	struct folio *new = NULL;

	rental_folio_lock(folio);
	/* Who had the lock before may have replaced it, or split it. */
	if (folio->mapping && folio_contains(folio, index)) {
		new = rental_to_write(folio, false);
		if (new && new != folio) {
			folio_unlock(new);
			folio_put(new);
		}
	}
	folio_unlock(folio);
	return new == folio ? 0 : VM_FAULT_NOPAGE;
}

bool __rental_take_over(struct folio *folio)
{
	unsigned int i, nr = rental_nr();
	struct folio *new;

	if (folio_test_anon(folio) || !folio->mapping || !folio_test_uptodate(folio) ||
	    folio_test_dirty(folio) || rental_at_folio(folio) ||
	    camc_keeps_color(folio_pfn(folio)) || !rental_may_lend(folio->mapping))
		return false;
	/* A group that is gone goes with the last of its pages. */
	if (folio_memcg(folio) && !mem_cgroup_online(folio_memcg(folio)))
		return false;
	for (i = 0; i < nr; i++) {
		struct rental *r = rental_areas[i];

		if (READ_ONCE(r->scheme) < RENTAL_LAZY || rental_nid(r) != folio_nid(folio))
			continue;
		new = rental_folio(r, folio_order(folio));
		if (!new)
			continue;
		if (rental_exchange(folio, new)) {
			rental_count(r, RENTAL_taken_over, folio_nr_pages(new));
			trace_rental_take_over(folio, new);
			/* by who had a reference until the exchange, and no lock */
			if (folio_test_dirty(new)) {
				rental_count(r, RENTAL_held, folio_nr_pages(new));
				__rental_dirtied(new);
			}
			folio_unlock(new);
			folio_put(new);
			return true;
		}
		folio_put(new);
		return false;
	}
	return false;
}

/* ------ what must not be there ---------------------------------------- */

/* Was a folio marked dirty since a look at all of them before which no other was? */
static inline bool rental_may_be_dirty(const struct rental *r)
{
	return READ_ONCE(r->cleaned) != atomic_long_read(&r->dirtied);
}

void __rental_dirtied(struct folio *folio)
{
	struct rental *r = rental_at_folio(folio);

	atomic_long_inc(&r->dirtied);
	if (READ_ONCE(r->scheme) == RENTAL_NOCLEAN)
		return;
	rental_count(r, RENTAL_slipped, folio_nr_pages(folio));
	trace_rental_slipped(folio, folio);
	schedule_delayed_work(&r->clean_work, RENTAL_CLEAN_DELAY);
}

static struct folio *rental_target(struct folio *folio, unsigned long mtc)
{
	KUNIT_STATIC_STUB_REDIRECT(rental_target, folio, mtc);
	return alloc_migration_target(folio, mtc);
}

/*
 * migrate_pages() splits what it has no target for, but for one reason. The parts of what was
 * locked in memory may find no target either, and would be unmapped then, for anybody to drop.
 */
static enum migrate_reason rental_reason(struct folio *folio)
{
	enum migrate_reason reason = MR_NUMA_MISPLACED;

	if (!folio_test_large(folio))
		return MR_CONTIG_RANGE;
	if (folio_trylock(folio)) {
		if (folio->mapping && rental_may_split(folio))
			reason = MR_CONTIG_RANGE;
		folio_unlock(folio);
	}
	return reason;
}

/*
 * Move a folio out that cannot be exchanged: as it is, but not while it is locked or written back.
 * The caller's reference is gone. @moved, if somebody counts: the pages that moved, which may be
 * some of a folio that had to be split.
 */
static bool rental_migrate(struct folio *folio, unsigned int *moved)
{
	enum migrate_reason reason = rental_reason(folio);
	struct migration_target_control mtc = {
		.nid = folio_nid(folio),
		.gfp_mask = GFP_USER | __GFP_MOVABLE | __GFP_RETRY_MAYFAIL,
		.reason = MR_CONTIG_RANGE,
	};
	LIST_HEAD(list);

	if (!folio_isolate_lru(folio)) {
		folio_put(folio);
		return false;
	}
	list_add(&folio->lru, &list);
	node_stat_mod_folio(folio, NR_ISOLATED_ANON + folio_is_file_lru(folio),
			    folio_nr_pages(folio));
	folio_put(folio);
	if (!migrate_pages(&list, rental_target, NULL, (unsigned long)&mtc, MIGRATE_ASYNC, reason,
			   moved))
		return true;
	putback_movable_pages(&list);
	return false;
}

/*
 * The folio that has a lent frame, with a reference; NULL if it is in nobody's hands any more.
 * Without a mapping it is not in the page cache: not yet, and must not be locked, or not any more.
 */
static struct folio *rental_get(const struct rental *r, unsigned long frame)
{
	struct page *page = cma_page(r->cma, frame);
	struct folio *folio = page_folio(page);

	if (!folio_try_get(folio))
		return NULL;
	if (page_folio(page) == folio && test_bit(frame, r->lent))
		return folio;
	folio_put(folio);
	return NULL;
}

/* Go through the folios of lent frames from @frame; @frame is left behind the folio. */
static struct folio *rental_next(const struct rental *r, unsigned long *frame,
				 unsigned long end)
{
	struct folio *folio;

	for (; *frame < end; ++*frame) {
		folio = test_bit(*frame, r->lent) ? rental_get(r, *frame) : NULL;
		if (folio) {
			*frame = round_up(*frame + 1, folio_nr_pages(folio));
			return folio;
		}
	}
	return NULL;
}

/*
 * Is a folio dirty, or written back? Who writes it back locks it, marks it clean, and only then as
 * written back; so that one look at all three flags finds one of them. But many lock what is clean,
 * for a moment, to map it. Who reads it has it locked for long, before it is uptodate. Context:
 * may sleep.
 */
static bool rental_unclean(struct folio *folio)
{
	const unsigned long unclean = BIT(PG_dirty) | BIT(PG_writeback);
	unsigned int tries;

	for (tries = 0; tries < RENTAL_CLEAN_TRIES; tries++) {
		unsigned long flags = READ_ONCE(folio->flags);

		if (flags & unclean)
			return true;
		if (!(flags & BIT(PG_locked)))
			return false;
		usleep_range(50, 200);
	}
	return folio_test_uptodate(folio);
}

/* Whoever made a folio dirty may still hold it: the others do not wait for that. */
static void rental_clean(struct work_struct *work)
{
	struct rental *r = container_of(work, struct rental, clean_work.work);
	long dirtied = atomic_long_read(&r->dirtied);
	unsigned long frame = 0;
	struct folio *folio;
	struct page *page;
	bool again = false;

	lru_add_drain_all();
	while (frame < r->cma->count) {
		folio = test_bit(frame, r->lent) ? rental_get(r, frame) : NULL;
		if (!folio && test_bit(frame, r->lent)) {
			/* Locked, it is being split; else it was just now, or goes home. */
			page = compound_head(cma_page(r->cma, frame));
			if (READ_ONCE(page->flags) & BIT(PG_locked))
				again = true;
			else
				folio = rental_get(r, frame);
		}
		if (!folio) {
			frame++;
			continue;
		}
		frame = round_up(frame + 1, folio_nr_pages(folio));
		if (!folio->mapping || !rental_unclean(folio)) {
			folio_put(folio);
		} else if (!folio_test_dirty(folio) || folio_test_locked(folio) ||
			   folio_test_writeback(folio)) {
			folio_put(folio); /* one that is clean by now stays, but is asked again */
			again = true;
		} else {
			again |= !rental_migrate(folio, NULL);
		}
		cond_resched();
	}
	if (!again)
		WRITE_ONCE(r->cleaned, dirtied);
	else if (READ_ONCE(r->scheme) != RENTAL_NOCLEAN)
		schedule_delayed_work(&r->clean_work, 10 * RENTAL_CLEAN_DELAY);
}

/* ------ return -------------------------------------------------------- */

static void rental_tell(const struct rental *r, struct folio *folio, const char *what)
{
	const char *dev = "no file";
	unsigned long ino = 0;

	/* The file stays as long as a folio of it is locked. */
	if (READ_ONCE(folio->mapping) && folio_trylock(folio)) {
		if (folio->mapping) {
			dev = folio->mapping->host->i_sb->s_id;
			ino = folio->mapping->host->i_ino;
		}
		pr_warn_ratelimited("%s: not returned: page %#lx of %s, inode %lu, offset %lu, %s%s\n",
				    r->cma->name, folio_pfn(folio), dev, ino, folio->index, what,
				    folio_maybe_dma_pinned(folio) ? ", pinned for a device" : "");
		folio_unlock(folio);
	} else {
		pr_warn_ratelimited("%s: not returned: page %#lx, %s by %d\n", r->cma->name,
				    folio_pfn(folio), what, folio_ref_count(folio) - 1);
	}
}

/* Locked: it is being read, or somebody is at it who waits for nothing else. */
static inline bool rental_held(const struct folio *folio, int mine)
{
	return !folio_test_locked(folio) && rental_referenced(folio, mine);
}

/*
 * After a wait: lists of pages that are on their way to the LRU, or about there, are nobody. The
 * folio, with a reference, if it is held; or NULL.
 */
static struct folio *rental_pinned(const struct rental *r, unsigned long frame)
{
	struct folio *folio;

	lru_add_drain_all();
	folio = rental_get(r, frame);
	if (!folio || rental_held(folio, 1))
		return folio;
	folio_put(folio);
	return NULL;
}

/* Did a return fail in the last tenth of a second? */
static bool rental_failed_lately(const struct rental *r)
{
	return READ_ONCE(r->held_until) - jiffies - 1 < HZ / 10;
}

/*
 * Of which page: the frame may be somebody else's when it is asked for. What returns side by side
 * remember may be mixed: as a rule it is about no page then, and the range is gone through.
 */
static void rental_remember(struct rental *r, unsigned long frame, const struct folio *folio,
			    bool stuck)
{
	WRITE_ONCE(r->held, frame);
	WRITE_ONCE(r->held_mapping, folio ? READ_ONCE(folio->mapping) : NULL);
	WRITE_ONCE(r->held_index, folio ? READ_ONCE(folio->index) : RENTAL_FROZEN);
	WRITE_ONCE(r->stuck, stuck);
	WRITE_ONCE(r->held_until, jiffies + HZ / 10);
}

static bool rental_remembered(const struct rental *r, const struct folio *folio)
{
	if (!folio)
		return READ_ONCE(r->held_index) == RENTAL_FROZEN;
	return READ_ONCE(r->held_mapping) == READ_ONCE(folio->mapping) &&
	       READ_ONCE(r->held_index) == READ_ONCE(folio->index);
}

/*
 * How long a return waits without progress, in jiffies. Where the last one failed for a page that
 * stays locked its storage hangs: so may pages in each of the ranges that cma_alloc() tries.
 */
static unsigned long rental_patience(const struct rental *r)
{
	bool hangs = rental_failed_lately(r) && READ_ONCE(r->stuck);

	return msecs_to_jiffies(hangs ? RENTAL_RETURN_MS / 10 : RENTAL_RETURN_MS);
}

/* Lent just now, to somebody who waits for his group's memory before it is in the page cache? */
static bool rental_on_its_way(const struct folio *folio)
{
	return !folio->mapping && !folio_test_lru(folio);
}

/*
 * A glance at a page that may be something else by now: nothing that asserts what it is. Has it
 * no references but the usual ones? Of large folios that is not to be seen without one.
 */
static bool rental_alone(const struct page *page)
{
	int refs = page_ref_count(page);

	if (READ_ONCE(page->mapping))
		refs -= 1 + !!(READ_ONCE(page->flags) & PAGE_FLAGS_PRIVATE);
	return !PageCompound(page) && refs <= max(atomic_read(&page->_mapcount) + 1, 0);
}

/*
 * Does anybody hold a page who does not let go of it soon? Found before a page is lost for it.
 * Each folio is waited for until it was once seen without other users than the usual ones. If it
 * is locked they may be waiting for that: what stays locked is the next pass's. Who waits has no
 * reference meanwhile, which would keep a writer, who has the lock, from moving the page out.
 */
static int rental_find_pins(struct rental *r, unsigned long start, unsigned long end)
{
	bool again = rental_failed_lately(r);
	unsigned long max_held = msecs_to_jiffies(again ? RENTAL_PIN_MS / 10 : RENTAL_PIN_MS);
	unsigned long max = rental_patience(r), all_busy = 0, all_held = 0;
	unsigned long frame, held, since, waited;
	unsigned int times, looks;
	struct folio *folio;

	for (frame = start; frame < end; frame++) {
		if (!(frame % 1024))
			cond_resched();
		if (!test_bit(frame, r->lent) || rental_alone(cma_page(r->cma, frame)))
			continue;
		held = 0;
		times = 0;
		looks = 0;
		while ((folio = rental_get(r, frame)) && rental_referenced(folio, 1)) {
			bool locked = folio_test_locked(folio);
			bool busy = locked || rental_on_its_way(folio);
			bool late = busy ? all_busy > max : held > max_held || all_held > max;

			folio_put(folio);
			folio = NULL;
			looks += !busy;
			since = jiffies;
			if (late && (busy || looks > RENTAL_LOOKS)) {
				folio = locked ? NULL : rental_pinned(r, frame);
				if (folio) {
					rental_tell(r, folio, "held");
					rental_remember(r, frame, folio, busy);
					folio_put(folio);
					return -EBUSY;
				}
				/* it is locked, or nobody has it */
				if (++all_busy > max)
					break;
				busy = true;
			}
			rental_wait(locked ? 0 : ++times);
			waited = min(jiffies - since, max(max_held / RENTAL_LOOKS, 1UL));
			if (busy) {
				all_busy += waited;
			} else {
				all_held += waited;
				held += waited;
			}
		}
		if (folio) {
			frame = round_up(frame + 1, folio_nr_pages(folio)) - 1;
			folio_put(folio);
			cond_resched();
		}
	}
	return 0;
}

static bool rental_in_use(struct folio *folio)
{
#ifdef CONFIG_LRU_GEN
	/* a guess: the folio may change lists, and its group may go */
	if (lru_gen_enabled()) {
		int gen = folio_lru_gen(folio);

		guard(rcu)();
		return gen >= 0 && lru_gen_is_active(folio_lruvec(folio), gen);
	}
#endif
	return folio_test_active(folio);
}

/* Free pages that the node can spare for files without reclaim */
static unsigned long rental_free_pages(struct pglist_data *pgdat)
{
	unsigned long spare = 0;
	int i;

	for (i = 0; i < MAX_NR_ZONES; i++) {
		struct zone *zone = &pgdat->node_zones[i];
		unsigned long nr = zone_page_state(zone, NR_FREE_PAGES);
		unsigned long kept = high_wmark_pages(zone) + zone->lowmem_reserve[ZONE_MOVABLE];

		if (managed_zone(zone) && nr > kept)
			spare += nr - kept;
	}
	return spare;
}

/*
 * Adaptive activation (section 4.3): room is made once, and as many pages in use are kept as
 * there is room then. What is free already needs not be made free, unlike in the paper.
 */
static void rental_activate(struct rental *r, unsigned long start, unsigned long end)
{
	struct pglist_data *pgdat = NODE_DATA(rental_nid(r));
	unsigned long frame = start, active = 0, room;
	struct folio *folio, *new;

	lru_add_drain_all(); /* some are on their way to those in use */
	while ((folio = rental_next(r, &frame, end))) {
		if (rental_in_use(folio))
			active += folio_nr_pages(folio);
		folio_put(folio);
		cond_resched();
	}
	room = rental_free_pages(pgdat);
	/* not out of reclaim */
	if (room < active && !(current->flags & PF_MEMALLOC))
		room += reclaim_clean_file(pgdat, active - room);

	frame = start;
	while (room && (folio = rental_next(r, &frame, end))) {
		if (rental_in_use(folio) && folio_nr_pages(folio) <= room && folio->mapping &&
		    folio_trylock(folio)) {
			new = NULL;
			if (folio->mapping && folio_test_uptodate(folio))
				new = filemap_alloc_folio(GFP_NOWAIT | __GFP_HIGHMEM |
							  __GFP_MOVABLE, folio_order(folio));
			if (new && rental_replace(folio, new)) {
				room -= folio_nr_pages(new);
				rental_count(r, RENTAL_activated, folio_nr_pages(new));
				folio_unlock(new);
			}
			if (new)
				folio_put(new);
			folio_unlock(folio);
		}
		folio_put(folio);
		cond_resched();
	}
}

/* For debugging: who marks a folio dirty tells of it just after that. */
static inline bool rental_told(const struct rental *r)
{
	unsigned int tries;

	for (tries = 0; !rental_may_be_dirty(r) && tries < 100; tries++)
		usleep_range(50, 200);
	return rental_may_be_dirty(r);
}

/*
 * A lent folio, locked, of the page cache: one of a file, and not dirty unless __rental_dirtied()
 * was told, and rental_clean() is not done with it. Whoever takes a dirty one out of the page cache
 * is warned by filemap_unaccount_folio().
 */
static void rental_check(const struct rental *r, struct folio *folio)
{
	VM_WARN_ON_ONCE_FOLIO(folio_test_anon(folio) || folio_test_swapbacked(folio), folio);
	VM_WARN_ON_ONCE_FOLIO((folio_test_dirty(folio) || folio_test_writeback(folio)) &&
			      !rental_told(r), folio);
}

/*
 * One pass over the range: true if nothing is lent of it any more. What is dropped is put when the
 * TLBs are flushed, what is not at once: a writer may wait for the only reference. If something
 * cannot be moved, for want of memory perhaps, the pass goes on no longer than @until.
 */
static bool rental_vacate_range(struct rental *r, unsigned long start, unsigned long end,
				unsigned long until)
{
	unsigned long frame = start;
	struct folio_batch batch;
	struct folio *folio;

	folio_batch_init(&batch);
	while ((folio = rental_next(r, &frame, end))) {
		bool dropped = false, stays = false, moved;
		unsigned int nr_moved = 0;

		if (READ_ONCE(folio->mapping) && folio_trylock(folio)) {
			if (folio->mapping) {
				rental_check(r, folio);
				dropped = rental_discard(folio);
			}
			if (dropped)
				rental_count(r, RENTAL_discarded, folio_nr_pages(folio));
			else
				try_to_unmap_flush(); /* it can be written to elsewhere */
			/*
			 * mlocked; dirty, of scheme "noclean" or for want of a better way; with
			 * what its filesystem does not let go of
			 */
			stays = !dropped && (folio_mapped(folio) || folio_test_dirty(folio) ||
					     folio_test_writeback(folio) ||
					     folio_has_private(folio));
			folio_unlock(folio);
		}
		if (!stays && !dropped)
			folio_put(folio);
		else if (dropped && folio_batch_add(&batch, folio))
			continue;
		try_to_unmap_flush();
		folios_put(&batch);
		/* memory may be reclaimed for it: who else has a part of a large folio waits */
		moved = stays && rental_migrate(folio, &nr_moved);
		rental_count(r, RENTAL_moved_out, nr_moved);
		cond_resched();
		if (stays && !moved && time_after(jiffies, until))
			break;
	}
	try_to_unmap_flush();
	folios_put(&batch);
	if (find_next_bit(r->lent, end, start) < end)
		return false;
	/* behind whoever cleared the last bit, and wrote to the frame before */
	spin_lock_irq(&r->lock);
	spin_unlock_irq(&r->lock);
	return true;
}

/*
 * Poisoned pages are lent no more: cma_reserve_take() finds them. One of a large folio stays that
 * until the folio is gone, whose frames come home together.
 */
static void rental_forget_poisoned(struct rental *r, unsigned long frame, unsigned long end)
{
	if (!rental_poison())
		return;
	for_each_set_bit_from(frame, r->lent, end) {
		struct page *page = cma_page(r->cma, frame);

		if (!PageHWPoison(page) || PageCompound(page))
			continue;
		spin_lock_irq(&r->lock);
		rental_home(r, frame);
		spin_unlock_irq(&r->lock);
	}
}

static unsigned long rental_nr_lent_in(struct rental *r, unsigned long start,
				       unsigned long end)
{
	unsigned long flags, first, last, stop, nr = 0;

	for (; start < end; start = stop) {
		first = start;
		stop = min(end, start + RENTAL_BITS);
		/* behind whoever cleared the last bit */
		spin_lock_irqsave(&r->lock, flags);
		for_each_set_bitrange_from(first, last, r->lent, stop)
			nr += last - first;
		spin_unlock_irqrestore(&r->lock, flags);
	}
	return nr;
}

/* Held, or locked, and not by who is only about to put it into the page cache */
static bool rental_in_hands(const struct folio *folio)
{
	return !rental_on_its_way(folio) && (folio_test_locked(folio) || rental_held(folio, 1));
}

/*
 * Is the page because of which a return just failed still there, and held, locked, or not to be
 * brought home? cma_alloc() tries many ranges.
 */
static bool rental_still_held(struct rental *r, unsigned long start, unsigned long end)
{
	unsigned long frame = READ_ONCE(r->held);
	bool stuck = READ_ONCE(r->stuck), held = true;
	unsigned long since;
	unsigned int times;
	struct folio *folio;

	if (!rental_failed_lately(r) || frame < start || frame >= end)
		return false;
	for (times = 0; held && times < 10; times++) {
		if (times)
			rental_wait(times);
		folio = rental_get(r, frame);
		held = rental_remembered(r, folio) && (stuck || (folio && rental_in_hands(folio)));
		if (folio)
			folio_put(folio);
		if (held && stuck) {
			since = jiffies;
			held = !rental_vacate_range(r, frame, frame + 1, since);
			/* memory was reclaimed for it, in vain */
			if (jiffies - since > 1)
				break;
		}
	}
	if (held)
		WRITE_ONCE(r->held_until, jiffies + HZ / 10);
	return held;
}

/* Nothing came home for long: tell of the first page, and remember it. */
static void rental_give_up(struct rental *r, unsigned long start, unsigned long end)
{
	unsigned long frame = start;
	struct folio *folio = rental_next(r, &frame, end);

	frame = folio ? max(start, folio_pfn(folio) - r->cma->base_pfn) :
			find_next_bit(r->lent, end, start);
	if (frame >= end)
		return;
	rental_remember(r, frame, folio, true);
	if (folio) {
		rental_tell(r, folio, "does not come home");
		folio_put(folio);
	} else {
		pr_warn_ratelimited("%s: not returned: page %#lx, evicted and not free yet\n",
				    r->cma->name, r->cma->base_pfn + frame);
	}
}

static int rental_return(struct rental *r, unsigned long start, unsigned long end)
{
	unsigned long until, left = end - start + 1, before;
	unsigned long patience = rental_patience(r);
	unsigned int times = 0, looks = 0;
	int ret;

	rental_forget_poisoned(r, start, end);
	ret = rental_still_held(r, start, end) ? -EBUSY : rental_find_pins(r, start, end);
	if (!ret && READ_ONCE(r->scheme) == RENTAL_ADAPTIVE)
		rental_activate(r, start, end);

	until = jiffies + patience;
	while (!ret && !rental_vacate_range(r, start, end, until)) {
		rental_forget_poisoned(r, start, end);
		before = left;
		left = rental_nr_lent_in(r, start, end);
		if (left < before) {
			until = jiffies + patience;
			looks = 0;
		} else if (++looks > RENTAL_LOOKS && time_after(jiffies, until)) {
			rental_give_up(r, start, end);
			ret = -EBUSY;
		} else {
			rental_wait(++times);
		}
		if (!ret && fatal_signal_pending(current))
			ret = -EINTR;
	}
	if (ret && !rental_nr_lent_in(r, start, end))
		ret = 0;
	else if (ret && fatal_signal_pending(current))
		ret = -EINTR; /* nor does he look elsewhere */
	if (ret)
		rental_count(r, RENTAL_busy, 1);
	return ret;
}

/* ------ the policy ---------------------------------------------------- */

/* The range is a primary's: nothing of it is lent any more, and what is comes home. */
static int rental_revoke(struct cma_reserve *reserve, unsigned long frame,
			 unsigned long count)
{
	struct rental *r = reserve->tenants;
	unsigned long flags, end = frame + count, at, stop, first, last;
	bool home = true;
	u64 start;
	int ret;

	/* What comes home meanwhile is not idle: it is taken. */
	for (at = frame; at < end; at = stop) {
		first = at;
		stop = min(end, at + RENTAL_BITS);
		spin_lock_irqsave(&r->lock, flags);
		for_each_set_bitrange_from(first, last, r->idle, stop)
			r->nr_idle -= last - first;
		bitmap_clear(r->idle, at, stop - at);
		home &= find_next_bit(r->lent, stop, at) >= stop;
		spin_unlock_irqrestore(&r->lock, flags);
	}
	if (home)
		return 0;
	rental_count(r, RENTAL_returns, 1);
	start = ktime_get_ns();
	ret = rental_return(r, frame, end);
	trace_rental_return(r->cma->name, frame, count, ret, ktime_get_ns() - start);
	return ret;
}

/* Who is lent a frame fills it. */
static void rental_scrub(struct cma_reserve *reserve, unsigned long frame,
			 unsigned long count)
{
}

static void rental_lend(struct cma_reserve *reserve, unsigned long frame,
			unsigned long count)
{
	struct rental *r = reserve->tenants;
	unsigned long flags, end = frame + count;

	spin_lock_irqsave(&r->lock, flags);
	for (; frame < end; frame++) {
		/* lent: a return failed; taken: another one begins */
		if (!test_bit(frame, r->lent) && !rental_taken(r, frame) &&
		    !__test_and_set_bit(frame, r->idle))
			r->nr_idle++;
	}
	spin_unlock_irqrestore(&r->lock, flags);
}

static void rental_free_area(struct rental *r)
{
	bitmap_free(r->lent);
	bitmap_free(r->idle);
	kfree(r);
}

static int rental_create(struct cma_reserve *reserve)
{
	struct cma *cma = reserve->cma;
	unsigned long pfn, end = cma->base_pfn + cma->count;
	struct rental *r = kzalloc(sizeof(*r), GFP_KERNEL);

	if (!r)
		return -ENOMEM;
	r->cma = cma;
	r->idle = bitmap_alloc(cma->count, GFP_KERNEL);
	r->lent = bitmap_zalloc(cma->count, GFP_KERNEL);
	if (!r->idle || !r->lent || rental_nr_areas == ARRAY_SIZE(rental_areas)) {
		rental_free_area(r);
		return -ENOMEM;
	}
	bitmap_fill(r->idle, cma->count);
	r->nr_idle = cma->count;
	r->scheme = RENTAL_LAZY;
	spin_lock_init(&r->lock);
	INIT_DELAYED_WORK(&r->clean_work, rental_clean);

	/* Nobody allocates there, and what is freed takes the way past rental_free(). */
	for (pfn = cma->base_pfn; pfn < end; pfn += pageblock_nr_pages)
		set_pageblock_migratetype(pfn_to_page(pfn), MIGRATE_ISOLATE);
	reserve->tenants = r;
	rental_areas[rental_nr_areas] = r;
	/* pairs with rental_nr() */
	smp_store_release(&rental_nr_areas, rental_nr_areas + 1);
	static_branch_inc(&rental_key);
	return 0;
}

/*
 * 'T' lent to clean page cache; 'D' the page is dirty or being written, 'A' is none of
 * the page cache. Without a reference the page may become another's at any time, so
 * that what asserts something of it, as the tests of its flags do, cannot be used.
 */
static char rental_letter(const struct cma_reserve *r, unsigned long frame)
{
	const struct rental *rental = r->tenants;
	const struct page *page = compound_head(cma_page(r->cma, frame));
	unsigned long flags = READ_ONCE(page->flags);

	if (!test_bit(frame, rental->lent))
		return '.';
	if (flags & BIT(PG_swapbacked) ||
	    (unsigned long)READ_ONCE(page->mapping) & PAGE_MAPPING_ANON)
		return 'A';
	return flags & (BIT(PG_dirty) | BIT(PG_writeback)) ? 'D' : 'T';
}

const struct cma_policy rental_policy = {
	.name = "rental",
	.create = rental_create,
	.revoke = rental_revoke,
	.scrub = rental_scrub,
	.lend = rental_lend,
	.letter = rental_letter,
};

/* ------ drivers ------------------------------------------------------- */

/* Is the range one of whole bits of the bitmap of an area that keeps its pages? */
static bool rental_range(const struct cma *cma, unsigned long offset, unsigned long count)
{
	return cma && cma_reserved(cma) &&
	       count && offset < cma->count && count <= cma->count - offset &&
	       IS_ALIGNED(offset | count, 1UL << cma->order_per_bit);
}

/**
 * return_memory() - get a range of an area back for its device
 * @cma: an area whose policy is not "movable"
 * @offset: first page, from the beginning of the area
 * @count: pages
 *
 * What cma_alloc() does, for a range that the caller chooses: a driver whose device has its
 * place in memory calls this when it is opened, and rent_memory() when it is closed (section
 * 3.1 of the paper). At first all of an area is lent. Neither counts as an allocation or release of
 * CMA.
 *
 * The pages hold what was there before, which is of files that others read: who shows them to user
 * space clears them.
 *
 * Context: process context, sleeps. Cost: O(@count); of a "rental" area also the time it takes to
 * drop or move each page that is lent. It waits no longer than %RENTAL_RETURN_MS for pages that
 * are held, as long again for those that are locked and held, and no longer than that while no
 * page comes home: with each that does it begins anew. That does not count some looks at each page
 * that is held after that, drains of the lists of all CPUs before it fails, and of scheme
 * "adaptive" one before it begins, nor that memory is reclaimed for pages that cannot be dropped.
 * Return: 0; -EINVAL if there is no such range, or @cma is NULL; -EBUSY if a part of it is not
 * lent, but returned, allocated, in quarantine or poisoned, or another such call is at work on it,
 * or if somebody holds a page of it: the log tells who, as far as that is known; -EINTR if the
 * task was killed and the return did not succeed. What has not come home stays lent then, and
 * what has, but for what is poisoned, can be lent again.
 *
 * Who calls this and rent_memory() does one after the other: a range that is on its way back is
 * nobody's to rent out.
 */
int return_memory(struct cma *cma, unsigned long offset, unsigned long count)
{
	unsigned long bit, end, i;
	bool free;
	int ret;

	if (!rental_range(cma, offset, count))
		return -EINVAL;
	bit = offset >> cma->order_per_bit;
	end = (offset + count) >> cma->order_per_bit;
	spin_lock_irq(&cma->lock);
	free = find_next_bit(cma->bitmap, end, bit) >= end;
	if (free)
		bitmap_set(cma->bitmap, bit, end - bit);
	spin_unlock_irq(&cma->lock);
	ret = free ? cma_reserve_take(cma, cma->base_pfn + offset, count, GFP_KERNEL) : -EBUSY;
	/* Each has a tag of its own: as cma_alloc() does */
	for (i = 0; !ret && i < count; i++)
		page_kasan_tag_reset(cma_page(cma, offset + i));
	return ret;
}
EXPORT_SYMBOL_GPL(return_memory);

/**
 * rent_memory() - lend a range that a device does not use for now
 * @cma: as for return_memory(), which returned it
 * @offset: as there
 * @count: as there, or a part of it
 *
 * Context: does not sleep. Cost: O(@count).
 * Return: 0; -EINVAL if there is no such range, or some of it is lent or idle. Who has it is not
 * seen, nor is it by cma_release(): what cma_alloc() gave to somebody else, or what a return is
 * still at work on, must not be rented out.
 */
int rent_memory(struct cma *cma, unsigned long offset, unsigned long count)
{
	if (!rental_range(cma, offset, count))
		return -EINVAL;
	return cma_reserve_release(cma, cma->base_pfn + offset, count) ? 0 : -EINVAL;
}
EXPORT_SYMBOL_GPL(rent_memory);

#ifdef CONFIG_RENTAL_KUNIT_TEST
#include "rental_kunit.c"
#endif
