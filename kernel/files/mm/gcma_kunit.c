// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guaranteed contiguous memory: tests of the frame table
 *
 * Part of gcma.c. Each test has an area of its own, of ordinary pages, beside the
 * areas of the machine, and a file on a medium whose content it sets. Pages enter
 * and leave the page cache of the file by the functions that everybody uses:
 * readers, reclaim, invalidation, truncation. Tracepoints in these functions stop
 * them where a race has its window, and the test does there what the other side
 * would do, on another CPU where it might sleep.
 */

#undef CREATE_TRACE_POINTS
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/mm_inline.h>
#include <linux/prandom.h>
#include <trace/events/filemap.h>
#include <trace/events/vmscan.h>

#define KUNIT_PAGES	512UL
#define KUNIT_MEDIUM	0xee	/* what a page holds that was not stored */

struct gcma_kunit;
typedef void (*kunit_window_fn)(struct gcma_kunit *k, unsigned long frame);

/* Where the functions of the page cache can be stopped, once. */
enum kunit_window {
	KUNIT_CLOSED,
	KUNIT_ISOLATED,	/* reclaim: has isolated the victim, not yet locked it */
	KUNIT_LOCKED,	/* reclaim: has locked the folio, not yet copied it */
	KUNIT_COPIED,	/* reclaim: has copied it, not yet frozen it */
	KUNIT_PUBLISHED, /* reclaim: is about to replace its slots, all locks held */
	KUNIT_FILLED,	/* reader: has filled a folio, not yet added it */
	KUNIT_ADDED,	/* reader: has added a folio that it has to read */
};

/**
 * struct gcma_kunit - what each test gets
 * @cma: the area
 * @g: its tenants
 * @memory: its pages
 * @inode: the file
 * @sb: the file system that the file pretends to be on
 * @index: page of the file that kunit_index() returned last
 * @medium: what a page is read as that is not resident
 * @reads: how many were
 * @dirtied: a folio was added with something in @private
 * @victim: what is to be found isolated
 * @window: where to stop
 * @fn: what to do there
 */
struct gcma_kunit {
	struct cma cma;
	struct gcma *g;
	void *memory;
	struct inode inode;
	struct super_block sb;
	pgoff_t index;
	u8 medium;
	atomic_t reads;
	bool dirtied;
	struct folio *victim;
	enum kunit_window window;
	kunit_window_fn fn;
};

static struct gcma_kunit *kunit_of(const struct address_space *mapping)
{
	return container_of(mapping->host, struct gcma_kunit, inode);
}

/* ------ windows ------------------------------------------------------- */

static void kunit_open(struct gcma_kunit *k, enum kunit_window window,
		       kunit_window_fn fn)
{
	k->fn = fn;
	WRITE_ONCE(k->window, window);
}

static void kunit_stop(struct gcma_kunit *k, enum kunit_window window,
		       unsigned long frame)
{
	if (cmpxchg(&k->window, window, KUNIT_CLOSED) == window)
		k->fn(k, frame);
}

static bool kunit_read_ours(const struct address_space *mapping);

static void kunit_at_copy(void *data, struct address_space *mapping,
			  pgoff_t index, unsigned long pfn)
{
	if (kunit_read_ours(mapping)) {
		struct gcma_kunit *k = kunit_of(mapping);

		kunit_stop(k, KUNIT_COPIED, pfn - k->cma.base_pfn);
	}
}

static void kunit_at_store(void *data, struct address_space *mapping,
			   pgoff_t index, unsigned long pfn)
{
	if (kunit_read_ours(mapping)) {
		struct gcma_kunit *k = kunit_of(mapping);

		kunit_stop(k, KUNIT_PUBLISHED, pfn - k->cma.base_pfn);
	}
}

static void kunit_at_fill(void *data, struct address_space *mapping,
			  pgoff_t index, unsigned long pfn)
{
	if (kunit_read_ours(mapping)) {
		struct gcma_kunit *k = kunit_of(mapping);

		/* of a large folio, that is the last */
		if (index == k->index)
			kunit_stop(k, KUNIT_FILLED, pfn - k->cma.base_pfn);
	}
}

static void kunit_at_add(void *data, struct folio *folio)
{
	if (kunit_read_ours(folio->mapping)) {
		struct gcma_kunit *k = kunit_of(folio->mapping);

		/* Whoever finds it may look for buffers, without its lock. */
		k->dirtied |= !!folio->private;
		kunit_stop(k, KUNIT_ADDED, 0);
	}
}

/* The tracepoint does not tell whose LRU lists are scanned: one test at a time. */
static struct gcma_kunit *kunit_isolating;

static void kunit_at_isolate(void *data, int highest_zoneidx, int order,
			     unsigned long requested, unsigned long scanned,
			     unsigned long skipped, unsigned long taken, int lru)
{
	struct gcma_kunit *k = READ_ONCE(kunit_isolating);

	if (k && !folio_test_lru(k->victim))
		kunit_stop(k, KUNIT_ISOLATED, 0);
}

/* Something that may sleep, in a window that must not: on another CPU. */
struct kunit_aside {
	struct task_struct *task;
	struct completion go;
	struct gcma_kunit *k;
	void (*fn)(struct gcma_kunit *k);
	bool done;
};

static struct kunit_aside kunit_aside;

static int kunit_aside_thread(void *unused)
{
	wait_for_completion(&kunit_aside.go);
	kunit_aside.fn(kunit_aside.k);
	/* all that was done: pairs with kunit_run_aside() */
	smp_store_release(&kunit_aside.done, true);
	return 0;
}

static void kunit_run_aside(struct gcma_kunit *k, unsigned long frame)
{
	complete(&kunit_aside.go);
	/* pairs with kunit_aside_thread() */
	while (!smp_load_acquire(&kunit_aside.done))
		cpu_relax();
}

/* The same, until it waits for a lock that is held here. */
static void kunit_run_into_lock(struct gcma_kunit *k, unsigned long frame)
{
	unsigned int us = 0;

	complete(&kunit_aside.go);
	while (!spin_is_contended(&k->inode.i_lock) && us++ < 20000)
		udelay(1);
}

/* Open a window in which another CPU runs @fn from its beginning to its end. */
static void kunit_open_aside(struct kunit *test, enum kunit_window window,
			     void (*fn)(struct gcma_kunit *k))
{
	unsigned int cpu = cpumask_any_but(cpu_online_mask,
					   raw_smp_processor_id());
	struct gcma_kunit *k = test->priv;

	if (cpu >= nr_cpu_ids)
		kunit_skip(test, "needs a second CPU");
	kunit_aside = (struct kunit_aside){ .k = k, .fn = fn };
	init_completion(&kunit_aside.go);
	set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
	kunit_aside.task = kthread_create(kunit_aside_thread, NULL, "gcma_kunit");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, kunit_aside.task);
	kthread_bind(kunit_aside.task, cpu);
	get_task_struct(kunit_aside.task);
	wake_up_process(kunit_aside.task);
	kunit_open(k, window, kunit_run_aside);
}

/* Was the window passed? */
static void kunit_close_aside(struct kunit *test)
{
	unsigned int waited = 0;

	/* pairs with kunit_aside_thread() */
	while (!smp_load_acquire(&kunit_aside.done) && waited++ < 100)
		msleep(20);
	KUNIT_EXPECT_TRUE(test, kunit_aside.done);
	complete(&kunit_aside.go);
	kthread_stop(kunit_aside.task);
	put_task_struct(kunit_aside.task);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

/* ------ a page's life -------------------------------------------------- */

static int kunit_read_folio(struct file *file, struct folio *folio)
{
	struct gcma_kunit *k = kunit_of(folio->mapping);

	memset(folio_address(folio), READ_ONCE(k->medium), folio_size(folio));
	atomic_inc(&k->reads);
	folio_end_read(folio, true);
	return 0;
}

/* Reclaim asks before it copies, if the folio has private data. */
static bool kunit_release_folio(struct folio *folio, gfp_t gfp)
{
	folio_detach_private(folio);
	kunit_stop(kunit_of(folio->mapping), KUNIT_LOCKED, 0);
	return true;
}

static const struct address_space_operations kunit_aops = {
	.read_folio = kunit_read_folio,
	.release_folio = kunit_release_folio,
};

static bool kunit_read_ours(const struct address_space *mapping)
{
	return mapping->a_ops == &kunit_aops;
}

/* The list of a page, if it is hot where that is the sample of such. */
static enum gcma_list kunit_list(struct gcma_kunit *k, u32 hash)
{
	enum gcma_list list = gcma_hot(k->g, hash);

	return list == GCMA_HOT_SAMPLE ? list : gcma_sample(hash);
}

/* The next page of the file that goes to @list of the area under test. */
static pgoff_t kunit_index(struct gcma_kunit *k, enum gcma_list list)
{
	u32 hash;

	do {
		k->index += 1UL << GCMA_MAX_ORDER;
		hash = gcma_hash(&k->inode.i_data, k->index);
	} while (gcma_pick(hash) != k->g || kunit_list(k, hash) != list);
	return k->index;
}

static void *kunit_slot(struct gcma_kunit *k, pgoff_t index)
{
	return xa_load(&k->inode.i_data.i_pages, index);
}

static bool kunit_is_tenant(struct gcma_kunit *k, pgoff_t index)
{
	return gcma_is_tenant(kunit_slot(k, index));
}

/* What is left of an evicted page that is no tenant. */
static bool kunit_is_shadow(struct gcma_kunit *k, pgoff_t index)
{
	void *entry = kunit_slot(k, index);

	return xa_is_value(entry) && !gcma_is_tenant(entry);
}

static bool kunit_filled(struct folio *folio, u8 pattern)
{
	return !memchr_inv(folio_address(folio), pattern, folio_size(folio));
}

static bool kunit_forget(struct gcma_kunit *k, pgoff_t index)
{
	loff_t pos = (loff_t)index << PAGE_SHIFT;

	truncate_inode_pages_range(&k->inode.i_data, pos, pos + PAGE_SIZE - 1);
	return !kunit_slot(k, index);
}

/* Make the page resident, with @pattern if it has to be read from the medium. */
static struct folio *kunit_read(struct gcma_kunit *k, pgoff_t index, u8 pattern)
{
	struct folio *folio;

	WRITE_ONCE(k->medium, pattern);
	do {
		folio = read_mapping_folio(&k->inode.i_data, index, NULL);
	} while (IS_ERR(folio));
	return folio;
}

/* A folio of several pages: filled from tenants, or with @pattern. */
static struct folio *kunit_add_large(struct gcma_kunit *k, pgoff_t index,
				     unsigned int order, u8 pattern)
{
	struct folio *folio;

	folio = folio_alloc(GFP_KERNEL | __GFP_NOFAIL, order);
	while (filemap_add_folio(&k->inode.i_data, folio, index, GFP_KERNEL)) {
		if (folio_test_uptodate(folio))
			return folio;
		cond_resched();
	}
	memset(folio_address(folio), pattern, folio_size(folio));
	folio_end_read(folio, true);
	return folio;
}

/* As reclaim does it, of a folio of which the caller has the only reference, on @list. */
static void kunit_isolate(struct kunit *test, struct folio *folio,
			  struct list_head *list)
{
	lru_add_drain_all();
	KUNIT_ASSERT_TRUE(test, folio_isolate_lru(folio));
	folio_put(folio);
	list_add(&folio->lru, list);
}

/* Reclaim the folio of which the caller has a reference. Is it gone? */
static bool kunit_reclaim(struct gcma_kunit *k, struct folio *folio)
{
	struct address_space *mapping = &k->inode.i_data;
	pgoff_t index = folio->index;
	unsigned int tries = 100;

	while (tries--) {
		unsigned long passes = gcma_passes();
		LIST_HEAD(list);

		lru_add_drain();
		if (folio_isolate_lru(folio)) {
			folio_put(folio);
			list_add(&folio->lru, &list);
			if (reclaim_pages(&list, passes))
				return true;
		} else {
			folio_put(folio);
		}
		/* another CPU has a reference, on its way to a list */
		lru_add_drain_all();
		folio = filemap_get_folio(mapping, index);
		if (IS_ERR(folio))
			return true;
	}
	folio_put(folio);
	return false;
}

/* Read and evict a page. Did it become a tenant? */
static bool kunit_evict(struct gcma_kunit *k, pgoff_t index, u8 pattern)
{
	kunit_forget(k, index);
	kunit_reclaim(k, kunit_read(k, index, pattern));
	return kunit_is_tenant(k, index);
}

/* Did the page come from a frame, with the right content? */
static bool kunit_load(struct gcma_kunit *k, pgoff_t index, u8 pattern)
{
	int reads = atomic_read(&k->reads);
	struct folio *folio = kunit_read(k, index, KUNIT_MEDIUM);
	bool good = kunit_filled(folio, pattern);

	folio_put(folio);
	kunit_forget(k, index);
	return good && atomic_read(&k->reads) == reads;
}

/* The frame of the tenant at @index. */
static unsigned long kunit_frame(struct gcma_kunit *k, pgoff_t index)
{
	u32 frame;

	gcma_rd_entry(kunit_slot(k, index), &frame);
	return frame;
}

/* Become owner of the tenant, whoever's it is. */
static bool kunit_claim(void *entry)
{
	u32 frame;

	return gcma_claim(entry, &frame, NULL, 0);
}

static unsigned long kunit_tenants(struct gcma_kunit *k)
{
	unsigned long frame, sum = 0;

	for (frame = 0; frame < k->cma.count; frame++)
		sum += gcma_frame_state(&k->g->frames[frame]) == GCMA_STORED &&
		       !gcma_revoked(k->g, frame);
	return sum;
}

/* A primary of one's choice, where cma_alloc() would choose itself. */
static void kunit_take(struct gcma_kunit *k, unsigned long frame,
		       unsigned long count)
{
	unsigned long flags;

	spin_lock_irqsave(&k->cma.lock, flags);
	bitmap_set(k->cma.bitmap, frame, count);
	spin_unlock_irqrestore(&k->cma.lock, flags);
	cma_reserve_take(&k->cma, gcma_pfn(k->g, frame), count, GFP_KERNEL);
	memset(page_address(cma_page(&k->cma, frame)), 0xff, count << PAGE_SHIFT);
}

static void kunit_release(struct gcma_kunit *k, unsigned long frame,
			  unsigned long count)
{
	cma_reserve_release(&k->cma, gcma_pfn(k->g, frame), count);
}

static void kunit_fill_area(struct gcma_kunit *k)
{
	while (k->g->len[GCMA_FREE_LIST])
		kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1);
}

/* ------ invariants ---------------------------------------------------- */

static bool kunit_linked(const struct gcma_frame *f)
{
	return f->next != GCMA_UNLINKED;
}

/* Is each frame of the list linked both ways, and where its state wants it? */
static void kunit_check_list(struct kunit *test, enum gcma_list list,
			     unsigned long *seen)
{
	struct gcma_kunit *k = test->priv;
	struct gcma *g = k->g;
	unsigned long head = k->cma.count + list, len = 0;
	unsigned long prev = head, frame;

	for (frame = g->frames[head].next; frame != head;
	     prev = frame, frame = g->frames[frame].next) {
		struct gcma_frame *f = &g->frames[frame];

		KUNIT_ASSERT_LT(test, frame, k->cma.count);
		KUNIT_ASSERT_EQ(test, f->prev, prev);
		KUNIT_ASSERT_FALSE(test, __test_and_set_bit(frame, seen));
		if (gcma_frame_state(f) == GCMA_FREE)
			KUNIT_ASSERT_EQ(test, list, GCMA_FREE_LIST);
		else
			KUNIT_ASSERT_EQ(test, list, gcma_list_of(atomic_read(&f->word)));
		len++;
	}
	KUNIT_ASSERT_EQ(test, g->frames[head].prev, prev);
	KUNIT_ASSERT_EQ(test, g->len[list], len);
}

/* Every frame is on one list, or free, on none and a primary's. */
static void kunit_check(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	DECLARE_BITMAP(seen, KUNIT_PAGES) = {};
	unsigned long frame;
	int list;

	for (list = 0; list < GCMA_NR_LISTS; list++)
		kunit_check_list(test, list, seen);
	for_each_clear_bit(frame, seen, k->cma.count) {
		struct gcma_frame *f = &k->g->frames[frame];

		KUNIT_ASSERT_FALSE(test, kunit_linked(f));
		KUNIT_ASSERT_EQ(test, gcma_frame_state(f), GCMA_FREE);
		KUNIT_ASSERT_TRUE_MSG(test, gcma_revoked(k->g, frame) ||
				      PageHWPoison(cma_page(&k->cma, frame)),
				      "frame %lu is lost", frame);
	}
}

/* Nothing is on its way: every frame with a tenant is STORED. */
static void kunit_check_settled(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	unsigned long frame, stored = 0;

	kunit_check(test);
	for (frame = 0; frame < k->cma.count; frame++) {
		enum gcma_state state = gcma_frame_state(&k->g->frames[frame]);

		KUNIT_ASSERT_NE(test, state, GCMA_OWNED);
		KUNIT_ASSERT_NE(test, state, GCMA_LOST);
		stored += state == GCMA_STORED;
	}
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_stores),
			gcma_counter(k->g, GCMA_loads) +
			gcma_counter(k->g, GCMA_recycles) +
			gcma_counter(k->g, GCMA_dropped) +
			gcma_counter(k->g, GCMA_revoked) + stored);
	KUNIT_ASSERT_TRUE(test, bitmap_empty(gcma_copying, nr_cpu_ids));
	KUNIT_EXPECT_FALSE(test, k->dirtied);
}

/* ------ entries ------------------------------------------------------- */

#define KUNIT_WORD(gen, state)	((u32)(gen) << GCMA_GEN_SHIFT | (state))

static void __init gcma_test_entry(struct kunit *test)
{
	static const u32 gens[] = { 0, 1, 2, 3, 4, 0x155, 0x1ff, 0x200,
				    U32_MAX >> GCMA_GEN_SHIFT };
	struct gcma_kunit *k = test->priv;
	u32 frame, got_frame;
	void *entry;
	int i;

	for (i = 0; i < ARRAY_SIZE(gens); i++) {
		u32 owned = KUNIT_WORD(gens[i], GCMA_OWNED);
		u32 stored = KUNIT_WORD(gens[i], GCMA_STORED);
		u32 next = KUNIT_WORD(gens[i] + 1, GCMA_STORED);

		frame = i * KUNIT_PAGES / ARRAY_SIZE(gens);
		entry = gcma_mk_entry(k->g, frame, owned);

		KUNIT_EXPECT_TRUE(test, gcma_is_tenant(entry));
		KUNIT_EXPECT_PTR_EQ(test, gcma_rd_entry(entry, &got_frame), k->g);
		KUNIT_EXPECT_EQ(test, got_frame, frame);
		KUNIT_EXPECT_EQ(test, xa_to_value(entry) >> GCMA_FRAME_BITS &
				GCMA_GEN_MASK, gens[i] & GCMA_GEN_MASK);
		KUNIT_EXPECT_TRUE(test, gcma_holds(k->g, frame, stored, entry));
		KUNIT_EXPECT_FALSE(test, gcma_holds(k->g, frame, owned, entry));
		KUNIT_EXPECT_FALSE(test, gcma_holds(k->g, frame, next, entry));
	}
	KUNIT_EXPECT_FALSE(test, gcma_is_tenant(NULL));
	KUNIT_EXPECT_FALSE(test, gcma_is_tenant(xa_mk_value(0x5ad0)));
	KUNIT_EXPECT_FALSE(test, gcma_is_tenant(k->g));
}

/* The last frame of each area and the first of the next: the areas are told apart. */
static void __init gcma_test_areas(struct kunit *test)
{
	struct gcma *g;
	u32 frame;

	for (g = gcma_areas; g < gcma_areas + gcma_nr_areas; g++) {
		frame = g->first;
		KUNIT_EXPECT_PTR_EQ(test, gcma_locate(&frame), g);
		KUNIT_EXPECT_EQ(test, frame, 0);
		frame = g->first + g->cma->count - 1;
		KUNIT_EXPECT_PTR_EQ(test, gcma_locate(&frame), g);
		KUNIT_EXPECT_EQ(test, frame, g->cma->count - 1);
	}
}

/*
 * As many generations as an entry tells apart, then the first again. The word counts
 * on, and from its last generation to the first: no state gets lost.
 */
static void __init gcma_test_generation_wrap(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct gcma_frame *f = &k->g->frames[KUNIT_PAGES - 1];

	atomic_set(&f->word, KUNIT_WORD(GCMA_GEN_MASK, GCMA_FREE));
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 1));
	KUNIT_ASSERT_EQ(test, kunit_frame(k, index), KUNIT_PAGES - 1);
	KUNIT_EXPECT_PTR_EQ(test, kunit_slot(k, index),
			    gcma_mk_entry(k->g, KUNIT_PAGES - 1, 0));
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index, 1));

	atomic_set(&f->word, KUNIT_WORD(U32_MAX, GCMA_FREE));
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 2));
	KUNIT_ASSERT_EQ(test, kunit_frame(k, index), KUNIT_PAGES - 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->word),
			GCMA_STORED | GCMA_FOLLOW << GCMA_LIST_SHIFT);
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index, 2));
}

/*
 * After a wrap an old entry names another page's tenant with the generation
 * that it has now. Neither loads the other's content, neither harms the frame.
 */
static void __init gcma_test_wrapped_entry(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t ours = kunit_index(k, GCMA_FOLLOW);
	pgoff_t old = kunit_index(k, GCMA_FOLLOW);
	u32 frame;

	/* one page is the tenant of a frame, the other one's entry says so too */
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, old, 9));
	KUNIT_ASSERT_TRUE(test, kunit_load(k, old, 9));
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, ours, 1));
	xa_store(&k->inode.i_data.i_pages, old, kunit_slot(k, ours), GFP_KERNEL);

	KUNIT_EXPECT_FALSE(test, kunit_load(k, old, 1));
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_misses), 1);
	kunit_check_settled(test);

	/* Dropped by the wrong entry: lost, not wrong. */
	KUNIT_EXPECT_FALSE(test, kunit_load(k, ours, 1));
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, ours, 2));
	KUNIT_EXPECT_NULL(test, gcma_claim(kunit_slot(k, ours), &frame,
					   &k->inode.i_data, old));
	KUNIT_EXPECT_TRUE(test, kunit_load(k, ours, 2));
}

/* ------ a tenant's life ----------------------------------------------- */

static void __init gcma_test_store_load(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio;

	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 7));
	KUNIT_EXPECT_EQ(test, atomic_read(&k->reads), 1);
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 1);
	KUNIT_EXPECT_TRUE(test, xa_is_value(gcma_shadow(kunit_slot(k, index), true)));
	kunit_check_settled(test);

	folio = kunit_read(k, index, KUNIT_MEDIUM);
	KUNIT_EXPECT_TRUE(test, kunit_filled(folio, 7));
	KUNIT_EXPECT_EQ(test, atomic_read(&k->reads), 1);
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);
	folio_put(folio);

	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_stores), 1);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_loads), 1);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_misses), 0);
}

/* A writer's folio stays empty, and the tenant goes. */
static void __init gcma_test_not_for_writers(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio;

	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 1));
	folio = folio_alloc(GFP_KERNEL | __GFP_NOFAIL, 0);
	KUNIT_EXPECT_EQ(test, filemap_add_folio(&k->inode.i_data, folio, index,
						GFP_KERNEL | __GFP_WRITE), 0);
	KUNIT_EXPECT_FALSE(test, folio_test_uptodate(folio));
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_dropped), 1);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_misses), 0);
	folio_unlock(folio);
	folio_put(folio);
}

/* The eviction fails after the copy was made: somebody got a reference. */
static struct folio *kunit_got;

static void kunit_get_folio(struct gcma_kunit *k, unsigned long frame)
{
	kunit_got = filemap_get_folio(&k->inode.i_data, k->index);
	WRITE_ONCE(k->medium, KUNIT_MEDIUM);
}

static void __init gcma_test_store_not_committed(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio = kunit_read(k, index, 1);
	unsigned long passes = gcma_passes();
	LIST_HEAD(list);

	kunit_open(k, KUNIT_COPIED, kunit_get_folio);
	kunit_isolate(test, folio, &list);
	KUNIT_EXPECT_EQ(test, reclaim_pages(&list, passes), 0);
	KUNIT_EXPECT_EQ(test, k->window, KUNIT_CLOSED);
	KUNIT_EXPECT_PTR_EQ(test, kunit_slot(k, index), folio);
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_refused_kept), 1);
	kunit_check_settled(test);
	KUNIT_EXPECT_EQ(test, k->g->len[GCMA_FREE_LIST], KUNIT_PAGES);
	folio_put(kunit_got);
}

/* Callers other than reclaim do not want the content back. */
static void __init gcma_test_only_reclaim_stores(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);

	folio_put(kunit_read(k, index, 1));
	lru_add_drain_all();
	KUNIT_EXPECT_EQ(test, invalidate_mapping_pages(&k->inode.i_data, index,
						       index), 1);
	KUNIT_EXPECT_NULL(test, kunit_slot(k, index));
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_stores), 0);
}

/* Readahead looked before the page became a tenant: it is read from the medium. */
static void __init gcma_test_hint(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct address_space *mapping = &k->inode.i_data;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio = folio_alloc(GFP_KERNEL | __GFP_NOFAIL, 0);

	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 1));
	gcma_load_hint(folio, GCMA_AHEAD_LOAD);
	KUNIT_EXPECT_NULL(test, folio->private);
	gcma_load_hint(folio, GCMA_AHEAD_READ);
	KUNIT_EXPECT_PTR_EQ(test, folio->private, GCMA_ABSENT);
	/* or it looks again, to forget who was there */
	clear_bit(folio_pfn(folio) % GCMA_PASSED, gcma_passed_lately);
	KUNIT_ASSERT_EQ(test, filemap_add_folio(mapping, folio, index, GFP_KERNEL), 0);
	KUNIT_EXPECT_FALSE(test, folio_test_uptodate(folio));
	KUNIT_EXPECT_NULL(test, folio->private);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_dropped), 1);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_misses), 1);
	kunit_check_settled(test);
	folio_unlock(folio);
	folio_put(folio);
	kunit_forget(k, index);
}

/*
 * What readahead does at @index, with @begun pages in its batch that are to be read, up
 * to @last, in folios of *@order at most.
 */
static enum gcma_ahead kunit_ahead(struct gcma_kunit *k, unsigned int begun,
				   pgoff_t index, pgoff_t last, unsigned int *order)
{
	DEFINE_READAHEAD(ractl, NULL, NULL, &k->inode.i_data, index - begun);

	ractl._nr_pages = begun;
	return gcma_ahead(&ractl, index, last, order);
}

/* Of which order is the next folio, if readahead begins at @index and ends with it? */
static unsigned int kunit_order(struct gcma_kunit *k, pgoff_t index, unsigned int order)
{
	kunit_ahead(k, 0, index, index + (1UL << order) - 1, &order);
	return order;
}

/* A request goes on over a few tenants, but for those at its ends. */
static void __init gcma_test_run(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned int i, order = 0;

	KUNIT_EXPECT_EQ(test, kunit_ahead(k, 4, index, index + 31, &order),
			GCMA_AHEAD_READ);
	for (i = 8; i < 8 + GCMA_RUN; i++) {
		KUNIT_ASSERT_TRUE(test, kunit_evict(k, index + i, i));
		order = 0;
		/* it begins with them, is amid, and ends with them */
		KUNIT_EXPECT_EQ(test, kunit_ahead(k, 0, index + 8, index + 31, &order),
				GCMA_AHEAD_LOAD);
		KUNIT_EXPECT_EQ(test, kunit_ahead(k, 1, index + 8, index + 31, &order),
				i == 7 + GCMA_RUN ? GCMA_AHEAD_LOAD : GCMA_AHEAD_OVER);
		KUNIT_EXPECT_EQ(test, kunit_ahead(k, 1, index + 8, index + i, &order),
				GCMA_AHEAD_LOAD);
		KUNIT_EXPECT_EQ(test, order, 0);
	}
	/* A large folio over a few of them, up to more of them, in all of them */
	order = 3;
	KUNIT_EXPECT_EQ(test, kunit_ahead(k, 0, index, index + 31, &order), GCMA_AHEAD_READ);
	KUNIT_EXPECT_EQ(test, order, 3);
	order = 5;
	KUNIT_EXPECT_EQ(test, kunit_ahead(k, 0, index, index + 31, &order), GCMA_AHEAD_READ);
	KUNIT_EXPECT_EQ(test, order, 3);
	order = 3;
	KUNIT_EXPECT_EQ(test, kunit_ahead(k, 8, index + 8, index + 31, &order), GCMA_AHEAD_LOAD);
	KUNIT_EXPECT_EQ(test, order, 3);
	KUNIT_EXPECT_TRUE(test, kunit_forget(k, index + 15));
	order = 5;
	KUNIT_EXPECT_EQ(test, kunit_ahead(k, 0, index, index + 31, &order), GCMA_AHEAD_OVER);
	KUNIT_EXPECT_EQ(test, order, 5);
	/* or up to a page that is resident */
	folio_put(kunit_read(k, index + 15, 1));
	KUNIT_EXPECT_EQ(test, kunit_ahead(k, 8, index + 8, index + 31, &order), GCMA_AHEAD_LOAD);
	KUNIT_EXPECT_EQ(test, order, 2);
}

/* A large folio goes and leaves its shadow alone, for somebody passed it by. */
static void kunit_evict_uncopied(struct kunit *test, pgoff_t index, unsigned int order)
{
	struct gcma_kunit *k = test->priv;
	unsigned int i;
	LIST_HEAD(list);

	for (i = 0; i < 1U << order; i++)
		kunit_forget(k, index + i);
	kunit_isolate(test, kunit_add_large(k, index, order, 1), &list);
	KUNIT_ASSERT_EQ(test, reclaim_pages(&list, 0), 1UL << order);
	KUNIT_ASSERT_EQ(test, xa_get_order(&k->inode.i_data.i_pages, index), order);
}

static void kunit_narrow(struct kunit *test, pgoff_t at, pgoff_t start,
			 unsigned int size, unsigned int async)
{
	struct gcma_kunit *k = test->priv;
	struct file_ra_state ra = { .start = k->index, .size = 32, .async_size = 8 };

	gcma_narrow(&k->inode.i_data, k->index + at, &ra);
	KUNIT_EXPECT_EQ(test, ra.start, k->index + start);
	KUNIT_EXPECT_EQ(test, ra.size, size);
	KUNIT_EXPECT_EQ(test, ra.async_size, async);
}

/* A fault reads the pages around it up to the next tenants. */
static void __init gcma_test_narrow(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct file_ra_state ra = { .size = 32 };
	struct folio *folios[GCMA_RUN];
	int i;

	kunit_narrow(test, 16, 0, 32, 8);
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index + 3, 1));
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index + 10, 1));
	kunit_narrow(test, 0, 0, 3, 0);
	kunit_narrow(test, 2, 0, 3, 0);
	kunit_narrow(test, 6, 4, 6, 0);
	kunit_narrow(test, 11, 11, 21, 8);
	kunit_narrow(test, 31, 11, 21, 8);
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index + 12, 1));
	kunit_narrow(test, 11, 11, 1, 0);
	/* who goes on, all pages before being there, reads over few, but not over many */
	for (i = 0; i < GCMA_RUN; i++)
		folios[i] = kunit_read(k, index + 13 + i, 1);
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index + 23, 1));
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index + 31, 1));
	kunit_narrow(test, 20, 13, 10, 0);
	kunit_narrow(test, 21, 13, 19, 8);
	for (i = 24; i < 23 + GCMA_RUN; i++)
		KUNIT_ASSERT_TRUE(test, kunit_evict(k, index + i, 1));
	kunit_narrow(test, 21, 13, 10, 0);
	for (i = 23; i < 23 + GCMA_RUN; i++)
		KUNIT_ASSERT_TRUE(test, kunit_load(k, index + i, 1));
	KUNIT_ASSERT_TRUE(test, kunit_load(k, index + 31, 1));
	for (i = 0; i < GCMA_RUN; i++)
		kunit_reclaim(k, folios[i]);
	for (i = 0; i < GCMA_RUN; i++)
		KUNIT_ASSERT_TRUE(test, kunit_load(k, index + 13 + i, 1));
	/* what is resident does not end it, nor what was a tenant */
	KUNIT_ASSERT_TRUE(test, kunit_load(k, index + 3, 1));
	kunit_take(k, kunit_frame(k, index + 10), 1);
	kunit_narrow(test, 8, 0, 12, 0);
	kunit_release(k, kunit_frame(k, index + 10), 1);

	/* Another reader of the same struct file has just moved it elsewhere. */
	ra.start = index + 100;
	gcma_narrow(&k->inode.i_data, index, &ra);
	KUNIT_EXPECT_EQ(test, ra.start, index + 100);
	ra.start = 0;
	gcma_narrow(&k->inode.i_data, index + 32, &ra);
	KUNIT_EXPECT_EQ(test, ra.start, 0);
	KUNIT_EXPECT_EQ(test, ra.size, 32);
}

/* A fault amid the shadow of a large folio looks at both sides of it. */
static void __init gcma_test_narrow_amid(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW), node = round_up(index + 32, XA_CHUNK_SIZE);
	struct file_ra_state ra;
	unsigned int at;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "no large folios");
	k->g->admission = GCMA_ADMIT_ALWAYS;
	kunit_evict_uncopied(test, index + 8, 2);
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index + 7, 1));
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index + 12, 1));
	for (at = 8; at < 12; at++)
		kunit_narrow(test, at, 8, 4, 0);

	/* at the end of a node, and at the begin of the next one */
	kunit_evict_uncopied(test, node - 4, 2);
	kunit_evict_uncopied(test, node, 2);
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, node + 4, 1));
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, node - 5, 1));
	for (index = node - 4; index < node + 4; index++) {
		ra = (struct file_ra_state){ .start = node - 16, .size = 32, .async_size = 8 };
		gcma_narrow(&k->inode.i_data, index, &ra);
		KUNIT_EXPECT_EQ(test, ra.start, node - 4);
		KUNIT_EXPECT_EQ(test, ra.size, 8);
	}
}

/* A medium that has its pages in blocks: who reads one of them gets all. */
#define KUNIT_BLOCK	(4 * GCMA_RUN)

static void kunit_read_blocks(struct readahead_control *ractl)
{
	struct gcma_kunit *k = kunit_of(ractl->mapping);
	pgoff_t first = round_down(readahead_index(ractl), KUNIT_BLOCK);
	pgoff_t end = round_up(readahead_index(ractl) + readahead_count(ractl), KUNIT_BLOCK);
	struct folio *folio;

	atomic_add((end - first) / KUNIT_BLOCK, &k->reads);
	readahead_expand(ractl, (loff_t)first << PAGE_SHIFT, (end - first) << PAGE_SHIFT);
	while ((folio = readahead_folio(ractl))) {
		memset(folio_address(folio), k->medium, folio_size(folio));
		folio_end_read(folio, true);
	}
}

static const struct address_space_operations kunit_block_aops = {
	.read_folio = kunit_read_folio,
	.readahead = kunit_read_blocks,
};

/* Evict the pages of a block from @from to @to, and read @ra. How many blocks were read? */
static int kunit_blocks(struct kunit *test, pgoff_t block, unsigned int from, unsigned int to,
			struct file_ra_state *ra, bool large)
{
	struct gcma_kunit *k = test->priv;
	DEFINE_READAHEAD(ractl, NULL, ra, &k->inode.i_data, ra->start);
	int reads;

	while (from < to)
		KUNIT_EXPECT_TRUE(test, kunit_evict(k, block + from++, 1));
	k->inode.i_data.a_ops = &kunit_block_aops;
	k->medium = 1;
	reads = atomic_read(&k->reads);
	if (large)
		page_cache_ra_order(&ractl, ra, 0);
	else
		page_cache_ra_unbounded(&ractl, ra->size, ra->async_size);
	k->inode.i_data.a_ops = &kunit_aops;
	return atomic_read(&k->reads) - reads;
}

/* What is read as a whole anyway is read once, over tenants too. */
static void __init gcma_test_blocks(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t i, block = round_up(kunit_index(k, GCMA_FOLLOW), KUNIT_BLOCK);
	struct file_ra_state ra;
	unsigned int large;

	if (KUNIT_BLOCK > 1UL << GCMA_MAX_ORDER)
		kunit_skip(test, "a block is more than a folio of tenants");
	i_size_write(&k->inode, MAX_LFS_FILESIZE);
	for (large = 0; large <= IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE); large++) {
		ra = (struct file_ra_state){ .start = block, .size = KUNIT_BLOCK };
		KUNIT_EXPECT_EQ(test, kunit_blocks(test, block, GCMA_RUN, 2 * GCMA_RUN, &ra,
						   large), 1);
		KUNIT_EXPECT_EQ(test, ra.size, KUNIT_BLOCK);
		KUNIT_EXPECT_EQ(test, ra.async_size, 0);
		for (i = block; i < block + KUNIT_BLOCK; i++)
			KUNIT_EXPECT_TRUE(test, kunit_slot(k, i) && !kunit_is_tenant(k, i));
		lru_add_drain_all();
		invalidate_inode_pages2(&k->inode.i_data);
	}

	/* A fault between tenants: read around it as far as they are */
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, block + 2, 1));
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, block + 6, 1));
	ra = (struct file_ra_state){ .start = block, .size = KUNIT_BLOCK };
	gcma_narrow(&k->inode.i_data, block + 4, &ra);
	KUNIT_EXPECT_EQ(test, ra.start, block + 3);
	KUNIT_EXPECT_EQ(test, ra.size, 3);
	KUNIT_EXPECT_EQ(test, kunit_blocks(test, block, 0, 0, &ra, false), 1);
	for (i = block; i < block + KUNIT_BLOCK; i++)
		KUNIT_EXPECT_TRUE(test, kunit_slot(k, i) && !kunit_is_tenant(k, i));
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);
	lru_add_drain_all();
	invalidate_inode_pages2(&k->inode.i_data);
}

/* Pages of files that came back, and were known to. */
static long kunit_refaults(void)
{
	long sum = global_node_page_state(WORKINGSET_REFAULT_FILE);
	struct pglist_data *node;
	int cpu;

	for_each_online_pgdat(node)
		for_each_online_cpu(cpu)
			sum += per_cpu_ptr(node->per_cpu_nodestats, cpu)
				->vm_node_stat_diff[WORKINGSET_REFAULT_FILE];
	return sum;
}

/* A page is read although it has a tenant: the page cache knows it all the same. */
static void __init gcma_test_over(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct address_space *mapping = &k->inode.i_data;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio;
	long refaults;

	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 1));
	refaults = kunit_refaults();
	folio = folio_alloc(GFP_KERNEL | __GFP_NOFAIL, 0);
	gcma_load_hint(folio, GCMA_AHEAD_OVER);
	KUNIT_ASSERT_EQ(test, filemap_add_folio(mapping, folio, index, GFP_KERNEL), 0);
	KUNIT_EXPECT_FALSE(test, folio_test_uptodate(folio));
	KUNIT_EXPECT_NULL(test, folio->private);
	KUNIT_EXPECT_EQ(test, kunit_refaults(), refaults + 1);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_dropped), 1);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_misses), 0);
	/* What is resident is no shadow. */
	KUNIT_EXPECT_NULL(test, __gcma_load_begin(mapping, folio, index, GFP_KERNEL, GCMA_OVER));
	kunit_check_settled(test);
	folio_unlock(folio);
	folio_put(folio);
	kunit_forget(k, index);
}

/* A page that readahead marked, and nobody read that far, is as good as any. */
static void __init gcma_test_readahead_mark(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio = kunit_read(k, index, 1);

	folio_set_readahead(folio);
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index, 1));
}

static void kunit_take_release(struct gcma_kunit *k, unsigned long frame)
{
	kunit_take(k, frame, 1);
	kunit_release(k, frame, 1);
}

static void __init gcma_test_large_folio(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio;
	unsigned int i;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "no large folios");
	/* Stored as single pages, each of which can be loaded. */
	folio = kunit_add_large(k, index, 2, 3);
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 4);
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index + 2, 3));
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 3);

	/* A large folio over some tenants is read from disk, and they go. */
	folio = kunit_add_large(k, index, 2, 4);
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);
	KUNIT_EXPECT_TRUE(test, kunit_filled(folio, 4));

	/* A frame scrubbed meanwhile: its page keeps the shadow. */
	kunit_open(k, KUNIT_COPIED, kunit_take_release);
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
	KUNIT_EXPECT_TRUE(test, kunit_is_shadow(k, index));
	for (i = 1; i < 4; i++)
		KUNIT_EXPECT_TRUE(test, kunit_load(k, index + i, 4));
}

/* A large folio is filled if all its pages have tenants. */
static void __init gcma_test_large_load(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct address_space *mapping = &k->inode.i_data;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio;
	unsigned int i;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "no large folios");
	KUNIT_EXPECT_EQ(test, kunit_order(k, index, 0), 0);
	KUNIT_EXPECT_EQ(test, kunit_order(k, index, 9), 9);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_TRUE(test, kunit_evict(k, index + i, i));
	KUNIT_EXPECT_EQ(test, kunit_order(k, index, 5), 3);
	KUNIT_EXPECT_EQ(test, kunit_order(k, index, 2), 2);
	KUNIT_EXPECT_EQ(test, kunit_order(k, index, 0), 0);
	/* not what is there already, of which nobody knows how large it can be */
	folio = kunit_add_large(k, index, 3, 9);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_NULL(test, memchr_inv(folio_address(folio) +
						   (i << PAGE_SHIFT), i, PAGE_SIZE));
	KUNIT_EXPECT_FALSE(test, folio_test_locked(folio));
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 9);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_loads), 8);
	kunit_check_settled(test);

	/* A part of them is gone, or in use by others: the whole is read. */
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 8);
	kunit_take(k, kunit_frame(k, index + 5), 1);
	KUNIT_EXPECT_EQ(test, kunit_order(k, index, 3), 2);
	KUNIT_EXPECT_EQ(test, kunit_order(k, index + 4, 2), 0);
	KUNIT_EXPECT_EQ(test, kunit_order(k, index + 6, 1), 1);
	kunit_release(k, kunit_frame(k, index + 5), 1);
	KUNIT_EXPECT_EQ(test, kunit_order(k, index, 3), 2);
	KUNIT_EXPECT_TRUE(test, kunit_forget(k, index + 4));
	/* a gap before them is read at once */
	KUNIT_EXPECT_EQ(test, kunit_order(k, index + 4, 2), 1);
	folio = kunit_add_large(k, index, 3, 9);
	KUNIT_EXPECT_TRUE(test, kunit_filled(folio, 9));
	folio_put(folio);
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_loads), 8);
	kunit_check_settled(test);

	/* Who writes may rely on an empty folio. */
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, kunit_read(k, index, 9)));
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 8);
	folio = folio_alloc(GFP_KERNEL | __GFP_NOFAIL, 3);
	KUNIT_ASSERT_EQ(test, filemap_add_folio(mapping, folio, index,
						GFP_KERNEL | __GFP_WRITE), 0);
	KUNIT_EXPECT_FALSE(test, folio_test_uptodate(folio));
	folio_unlock(folio);
	folio_put(folio);
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);
	kunit_check_settled(test);
}

static void __init gcma_test_drop(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct address_space *mapping = &k->inode.i_data;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long frame;
	void *entry;
	int i;

	/* a part of the page is truncated: nothing is left in the slot */
	kunit_evict(k, index, 1);
	entry = kunit_slot(k, index);
	frame = kunit_frame(k, index);
	truncate_inode_pages_range(mapping, (index << PAGE_SHIFT) + 10,
				   (index << PAGE_SHIFT) + 19);
	KUNIT_EXPECT_NULL(test, kunit_slot(k, index));
	KUNIT_EXPECT_NULL(test, gcma_shadow(entry, true));
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_dropped), 1);

	/* the entry stays worthless when its frame is lent again */
	kunit_evict(k, index + 1, 1);
	KUNIT_EXPECT_EQ(test, kunit_frame(k, index + 1), frame);
	KUNIT_EXPECT_FALSE(test, gcma_alive(entry));

	/* by range, as truncation and invalidation do */
	for (i = 0; i < 4; i++)
		kunit_evict(k, index + i, 1);
	truncate_inode_pages_range(mapping, (index + 1) << PAGE_SHIFT,
				   ((index + 3) << PAGE_SHIFT) - 1);
	KUNIT_EXPECT_FALSE(test, kunit_slot(k, index + 1));
	KUNIT_EXPECT_FALSE(test, kunit_slot(k, index + 2));
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index + 3, 1));
	invalidate_mapping_pages(mapping, index, index);
	KUNIT_EXPECT_NULL(test, kunit_slot(k, index));
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);

	/* the page at the edge of a truncation changes in part */
	kunit_evict(k, index, 1);
	truncate_inode_pages(mapping, (index << PAGE_SHIFT) + 100);
	KUNIT_EXPECT_FALSE(test, kunit_load(k, index, 1));
}

/* The shadow shrinker is about to delete a whole node. */
static void __init gcma_test_drop_node(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	XA_STATE(xas, &k->inode.i_data.i_pages, index);

	kunit_evict(k, index, 1);
	kunit_evict(k, index + 1, 1);
	xas_lock_irq(&xas);
	xas_load(&xas);
	gcma_drop_node(xas.xa_node);
	xas_unlock_irq(&xas);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_dropped), 2);
	KUNIT_EXPECT_FALSE(test, kunit_load(k, index, 1));
	KUNIT_EXPECT_FALSE(test, kunit_load(k, index + 1, 1));
}

/* Evict a page that was in use, or had been before. */
static bool kunit_evict_hot(struct gcma_kunit *k, pgoff_t index)
{
	struct folio *folio = kunit_read(k, index, 1);

	folio_set_workingset(folio);
	kunit_reclaim(k, folio);
	return kunit_is_tenant(k, index);
}

/* As if so many more pages of files were evicted of the oldest generation, if there are any. */
static void kunit_count_evicted(struct gcma_kunit *k, long nr)
{
#ifdef CONFIG_LRU_GEN
	struct pglist_data *pgdat = page_pgdat(cma_page(&k->cma, 0));
	struct lru_gen_folio *lrugen = &mem_cgroup_lruvec(NULL, pgdat)->lrugen;
	int hist = lru_hist_from_seq(lrugen->min_seq[1]);

	atomic_long_add(nr, &lrugen->evicted[hist][1][1]);
#endif
}

/* The oldest tenant makes room; its entry is then worthless. */
static void __init gcma_test_recycle(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t oldest = kunit_index(k, GCMA_FOLLOW);
	pgoff_t newest;
	void *entry, *shadow, *own;

	k->g->admission = GCMA_ADMIT_ALWAYS;
	kunit_evict(k, oldest, 1);
	entry = kunit_slot(k, oldest);
	kunit_fill_area(k);
	KUNIT_EXPECT_PTR_EQ(test, kunit_slot(k, oldest), entry);

	newest = kunit_index(k, GCMA_FOLLOW);
	KUNIT_ASSERT_TRUE(test, kunit_evict_hot(k, newest));
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_recycles), 1);
	KUNIT_EXPECT_FALSE(test, gcma_alive(entry));
	/* its shadow is about that of the newest, older by as many evictions as there are frames */
	own = gcma_shadow(kunit_slot(k, newest), true);
	kunit_count_evicted(k, gcma_nr_frames);
	shadow = gcma_shadow(entry, true);
	if (GCMA_LONG) {
		KUNIT_EXPECT_TRUE(test, xa_is_value(shadow) && !gcma_is_tenant(shadow));
		KUNIT_EXPECT_PTR_EQ(test, shadow, workingset_older(own, true, gcma_nr_frames));
		/* with generations, who was evicted of the same one has the same */
		if (!lru_gen_enabled())
			KUNIT_EXPECT_PTR_NE(test, shadow, workingset_older(own, true, 0));
		KUNIT_EXPECT_NULL(test, workingset_older(own, true, ULONG_MAX));
	}
	kunit_count_evicted(k, -(long)gcma_nr_frames);
	/* a generation is of one kind of pages */
	if (lru_gen_enabled())
		KUNIT_EXPECT_NULL(test, gcma_shadow(entry, false));
	KUNIT_EXPECT_FALSE(test, kunit_load(k, oldest, 1));
	KUNIT_EXPECT_TRUE(test, kunit_load(k, newest, 1));
}

/* How long a primary had the frame nobody knows: the shadow stays lost. */
static void __init gcma_test_shadow_revoked(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long frame;
	void *entry;

	k->g->admission = GCMA_ADMIT_ALWAYS;
	kunit_evict(k, index, 1);
	entry = kunit_slot(k, index);
	frame = kunit_frame(k, index);
	kunit_fill_area(k);
	kunit_take(k, frame, 1);
	KUNIT_EXPECT_NOT_NULL(test, gcma_shadow(entry, true));
	/* a store comes across it */
	kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1);
	KUNIT_EXPECT_EQ(test, gcma_frame_state(&k->g->frames[frame]), GCMA_FREE);
	KUNIT_EXPECT_NOT_NULL(test, gcma_shadow(entry, true));
	kunit_release(k, frame, 1);
	KUNIT_EXPECT_NULL(test, gcma_shadow(entry, true));
	kunit_fill_area(k);
	KUNIT_EXPECT_EQ(test, gcma_frame_state(&k->g->frames[frame]), GCMA_STORED);
	/* where generations are few for debugging, so many later it is one of the next */
	if (GCMA_LONG <= GCMA_GEN_MASK)
		KUNIT_EXPECT_NULL(test, gcma_shadow(entry, true));
}

/* ------ invalidation in the windows of reclaim and readers ------------ */

/* The medium changed, and the page cache is told. */
static void kunit_invalidate_once(struct gcma_kunit *k)
{
	WRITE_ONCE(k->medium, 2);
	invalidate_mapping_pages(&k->inode.i_data, 0, -1);
}

/* The same, and many folios are passed by later: which was the last is forgotten. */
static void kunit_invalidate(struct gcma_kunit *k)
{
	unsigned int i;

	kunit_invalidate_once(k);
	for (i = 0; i < ARRAY_SIZE(gcma_passed_table); i++)
		WRITE_ONCE(gcma_passed_table[i].last, 0);
}

/* The same, and a reader without locks clears the mark of readahead. */
static void kunit_invalidate_clear(struct gcma_kunit *k)
{
	struct folio *folio = filemap_get_folio(&k->inode.i_data, k->index);

	kunit_invalidate(k);
	if (!IS_ERR(folio)) {
		folio_clear_readahead(folio);
		folio_put(folio);
	}
}

static void kunit_truncate(struct gcma_kunit *k)
{
	WRITE_ONCE(k->medium, 2);
	truncate_inode_pages_range(&k->inode.i_data,
				   (k->index << PAGE_SHIFT) + 10,
				   (k->index << PAGE_SHIFT) + 19);
}

static void kunit_invalidate_locked(struct gcma_kunit *k, unsigned long frame)
{
	kunit_invalidate(k);
}

/* After an invalidation a page is what the medium says. */
static void kunit_expect_new(struct kunit *test, pgoff_t index)
{
	struct gcma_kunit *k = test->priv;
	struct folio *folio = read_mapping_folio(&k->inode.i_data, index, NULL);

	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	KUNIT_EXPECT_TRUE(test, kunit_filled(folio, 2));
	folio_put(folio);
	kunit_check_settled(test);
	kunit_forget(k, index);
}

static void __init gcma_test_invalidate_while_storing(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	unsigned int order;

	for (order = 0; order <= 2; order += 2) {
		pgoff_t index = kunit_index(k, GCMA_FOLLOW);
		struct folio *folio;

		if (order && !IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
			break;
		folio = order ? kunit_add_large(k, index, order, 1) :
				kunit_read(k, index, 1);
		kunit_open_aside(test, KUNIT_COPIED, kunit_invalidate);
		KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
		kunit_close_aside(test);
		KUNIT_EXPECT_FALSE(test, kunit_is_tenant(k, index));
		kunit_expect_new(test, index);
	}
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_refused_passed),
			IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE) ? 5 : 1);
}

static void kunit_invalidate2(struct gcma_kunit *k)
{
	WRITE_ONCE(k->medium, 2);
	invalidate_inode_pages2(&k->inode.i_data);
}

/* Two pages of a large folio, which is omitted. */
static void kunit_invalidate_part(struct gcma_kunit *k)
{
	WRITE_ONCE(k->medium, 2);
	invalidate_mapping_pages(&k->inode.i_data, k->index + 2, k->index + 3);
}

/*
 * The slots of a large folio change one by one, and who invalidates has looked at them:
 * it waits for the lock that is held.
 */
static void __init gcma_test_invalidate_while_publishing(struct kunit *test)
{
	static const struct {
		void (*fn)(struct gcma_kunit *k);
		unsigned int at;
	} ways[] = {
		{ kunit_invalidate2, 0 },
		{ kunit_invalidate, 0 },
		{ kunit_truncate, 0 },
		{ kunit_invalidate_part, 3 },
	};
	struct gcma_kunit *k = test->priv;
	unsigned int i;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "no large folios");
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		pgoff_t index = kunit_index(k, GCMA_FOLLOW);
		struct folio *folio = kunit_add_large(k, index, 3, 1);

		kunit_open_aside(test, KUNIT_PUBLISHED, ways[i].fn);
		k->fn = kunit_run_into_lock;
		KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
		kunit_close_aside(test);
		/* who finds that a slot has changed looks at its neighbours too */
		KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);
		kunit_expect_new(test, index + ways[i].at);
		invalidate_inode_pages2(&k->inode.i_data);
	}
}

/* A direct write to a file of which nothing but tenants is in memory */
static void __init gcma_test_direct_write(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct file *file = kunit_kzalloc(test, sizeof(*file), GFP_KERNEL);
	struct kiocb iocb = { .ki_filp = file, .ki_pos = (loff_t)index << PAGE_SHIFT };

	KUNIT_ASSERT_NOT_NULL(test, file);
	file->f_mapping = &k->inode.i_data;
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 1));
	KUNIT_ASSERT_EQ(test, k->inode.i_data.nrpages, 0);
	WRITE_ONCE(k->medium, 2);
	kiocb_invalidate_post_direct_write(&iocb, PAGE_SIZE);
	kunit_expect_new(test, index);
}

static void kunit_put(struct address_space *mapping, struct xa_state *xas, void *entry)
{
	mapping_set_update(xas, mapping);
	do {
		xas_lock_irq(xas);
		xas_store(xas, entry);
		xas_unlock_irq(xas);
	} while (xas_nomem(xas, GFP_KERNEL));
}

/* Tenants of a large folio share an entry while they become visible: each is one all the same. */
static void __init gcma_test_invalidate_shared(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct address_space *mapping = &k->inode.i_data;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW), start = index + 2, indices[PAGEVEC_SIZE];
	XA_STATE_ORDER(shared, &mapping->i_pages, index, 3);
	XA_STATE(own, &mapping->i_pages, index);
	struct folio_batch batch;
	void *entry;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "no large folios");
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 1));
	entry = kunit_slot(k, index);
	kunit_put(mapping, &shared, entry);
	folio_batch_init(&batch);
	KUNIT_EXPECT_GT(test, find_lock_entries(mapping, &start, index + 3, &batch, indices), 0);
	/* as it was */
	xas_set_order(&shared, index, 3);
	kunit_put(mapping, &shared, NULL);
	kunit_put(mapping, &own, entry);
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index, 1));
}

/* Reclaim splits what it has isolated: who was passed by before? */
static void __init gcma_test_invalidate_split(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long passes = gcma_passes();
	struct folio *folio;
	LIST_HEAD(list);

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "no large folios");
	i_size_write(&k->inode, MAX_LFS_FILESIZE);
	folio = kunit_add_large(k, index, 3, 1);
	kunit_isolate(test, folio, &list);
	kunit_invalidate(k);
	folio_lock(folio);
	KUNIT_EXPECT_EQ(test, split_folio_to_list(folio, &list), 0);
	folio_unlock(folio);
	KUNIT_EXPECT_EQ(test, reclaim_pages(&list, passes), 8);
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);
	kunit_expect_new(test, index);
}

/* A folio is omitted if only a part of it is to be invalidated. */
static void __init gcma_test_invalidate_part(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long passes = gcma_passes();
	struct folio *folio;
	LIST_HEAD(list);

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "no large folios");
	folio = kunit_add_large(k, index, 2, 1);
	kunit_isolate(test, folio, &list);
	kunit_invalidate_part(k);
	KUNIT_EXPECT_EQ(test, reclaim_pages(&list, passes), 4);
	kunit_expect_new(test, index + 2);
}

/* The count is a number that comes round again on 32-bit machines. */
static void __init gcma_test_passes_wrap(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	long count = atomic_long_read(&gcma_pass_count);
	struct gcma_passed *p;
	unsigned long passes;
	struct folio *folio;
	LIST_HEAD(list);

	atomic_long_set(&gcma_pass_count, LONG_MAX);
	passes = gcma_passes();
	folio = kunit_read(k, index, 1);
	kunit_isolate(test, folio, &list);
	p = &gcma_passed_table[folio_pfn(folio) % GCMA_PASSED];
	atomic_long_set(&p->at, LONG_MAX);
	kunit_invalidate(k);
	KUNIT_EXPECT_EQ(test, reclaim_pages(&list, passes), 1);
	KUNIT_EXPECT_FALSE(test, kunit_is_tenant(k, index));
	atomic_long_set(&gcma_pass_count, count);
	atomic_long_set(&p->at, count);
	kunit_expect_new(test, index);
}

/* No reader may undo what invalidation told reclaim. */
static void __init gcma_test_invalidate_and_read(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio = kunit_read(k, index, 1);

	kunit_open_aside(test, KUNIT_COPIED, kunit_invalidate_clear);
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
	kunit_close_aside(test);
	kunit_expect_new(test, index);
}

/* Reclaim has the folio locked and has not begun to copy it. */
static void __init gcma_test_invalidate_before_store(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio = kunit_read(k, index, 1);

	folio_attach_private(folio, k);
	kunit_open(k, KUNIT_LOCKED, kunit_invalidate_locked);
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
	KUNIT_EXPECT_EQ(test, k->window, KUNIT_CLOSED);
	kunit_expect_new(test, index);
}

/* Who evicts folios has isolated one, and evicts it or puts it back. */
static void __init gcma_test_invalidate_isolated(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	unsigned int put_back;

	for (put_back = 0; put_back < 2; put_back++) {
		pgoff_t index = kunit_index(k, GCMA_FOLLOW);
		struct folio *folio = kunit_read(k, index, 1);
		unsigned long passes = gcma_passes();
		LIST_HEAD(list);

		kunit_isolate(test, folio, &list);
		if (put_back)
			kunit_invalidate_once(k);
		else
			kunit_invalidate(k);
		KUNIT_EXPECT_PTR_EQ(test, kunit_slot(k, index), folio);
		if (put_back) {
			list_del(&folio->lru);
			folio_get(folio);
			folio_putback_lru(folio);
			KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
		} else {
			KUNIT_EXPECT_EQ(test, reclaim_pages(&list, passes), 1);
		}
		KUNIT_EXPECT_FALSE(test, kunit_is_tenant(k, index));
		kunit_expect_new(test, index);
		/* That was the folio's: what is read anew is as good as any. */
		KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
		kunit_forget(k, index);
	}
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_refused_passed), 2);
}

#ifdef CONFIG_MEMCG
/* The same in the midst of reclaim for lack of memory. */
static void __init gcma_test_invalidate_scanned(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned int tries = 100;

	k->victim = kunit_read(k, index, 1);
	folio_put(k->victim);
	lru_add_drain_all();
	kunit_open_aside(test, KUNIT_ISOLATED, kunit_invalidate);
	WRITE_ONCE(kunit_isolating, k);
	while (k->window == KUNIT_ISOLATED && tries--)
		try_to_free_mem_cgroup_pages(root_mem_cgroup, SWAP_CLUSTER_MAX,
					     GFP_KERNEL, 0, NULL);
	WRITE_ONCE(kunit_isolating, NULL);
	kunit_close_aside(test);
	KUNIT_EXPECT_FALSE(test, kunit_is_tenant(k, index));
	kunit_expect_new(test, index);
}
#endif

/* A reader has the old content in its hands, and nobody sees its folio. */
static void __init gcma_test_invalidate_while_loading(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);

	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 1));
	kunit_open_aside(test, KUNIT_FILLED, kunit_invalidate);
	kunit_expect_new(test, index);
	kunit_close_aside(test);
	KUNIT_EXPECT_NULL(test, kunit_slot(k, index));
}

static void __init gcma_test_truncate_while_loading(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);

	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 1));
	kunit_open_aside(test, KUNIT_FILLED, kunit_truncate);
	kunit_expect_new(test, index);
	kunit_close_aside(test);
}

/* Another reader finds the tenant in use, and reads the medium. */
static void kunit_read_too(struct gcma_kunit *k)
{
	folio_put(kunit_read(k, k->index, 2));
}

static void __init gcma_test_two_readers(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);

	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 1));
	kunit_open_aside(test, KUNIT_FILLED, kunit_read_too);
	kunit_expect_new(test, index);
	kunit_close_aside(test);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_loads), 0);
}

static void kunit_invalidate_rest(struct gcma_kunit *k)
{
	WRITE_ONCE(k->medium, 2);
	invalidate_mapping_pages(&k->inode.i_data, k->index + 1, k->index + 7);
}

static void kunit_forget_one(struct gcma_kunit *k)
{
	WRITE_ONCE(k->medium, 2);
	kunit_forget(k, k->index + 5);
}

/* A large folio is filled, and nobody sees it: some of its slots change, or all. */
static void __init gcma_test_invalidate_while_loading_large(struct kunit *test)
{
	static void (*const ways[])(struct gcma_kunit *k) = {
		kunit_invalidate, kunit_invalidate2, kunit_truncate,
		kunit_invalidate_part, kunit_invalidate_rest, kunit_forget_one,
	};
	struct gcma_kunit *k = test->priv;
	unsigned int i;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "no large folios");
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		pgoff_t index = kunit_index(k, GCMA_FOLLOW);
		struct folio *folio = kunit_add_large(k, index, 3, 1);

		KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
		KUNIT_EXPECT_EQ(test, kunit_tenants(k), 8);
		kunit_open_aside(test, KUNIT_FILLED, ways[i]);
		folio = kunit_add_large(k, index, 3, 2);
		kunit_close_aside(test);
		KUNIT_EXPECT_TRUE(test, kunit_filled(folio, 2));
		KUNIT_EXPECT_FALSE(test, k->dirtied);
		folio_put(folio);
		KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);
		invalidate_inode_pages2(&k->inode.i_data);
	}
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_loads), 0);
	kunit_check_settled(test);
}

static void kunit_read_one_too(struct gcma_kunit *k)
{
	folio_put(kunit_read(k, k->index + 5, 2));
}

/* Another reader is faster with one of the pages. */
static void __init gcma_test_two_readers_large(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio;
	unsigned int i;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "no large folios");
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, kunit_add_large(k, index, 3, 1)));
	kunit_open_aside(test, KUNIT_FILLED, kunit_read_one_too);
	folio = folio_alloc(GFP_KERNEL | __GFP_NOFAIL, 3);
	KUNIT_EXPECT_EQ(test, filemap_add_folio(&k->inode.i_data, folio, index,
						GFP_KERNEL), -EEXIST);
	kunit_close_aside(test);
	KUNIT_EXPECT_FALSE(test, folio_test_uptodate(folio));
	KUNIT_EXPECT_NULL(test, folio->private);
	folio_put(folio);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_loads), 0);
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);
	kunit_expect_new(test, index + 5);
	/* what they remember of each other is no shadow when a primary has them */
	for (i = 0; i < 5; i++) {
		unsigned long frame = kunit_frame(k, index + i);

		kunit_take(k, frame, 1);
		KUNIT_EXPECT_NULL(test, gcma_shadow(kunit_slot(k, index + i), true));
		kunit_release(k, frame, 1);
	}
	kunit_check_settled(test);
}

#ifdef CONFIG_FAILSLAB
static void kunit_run_aside_then_fail(struct gcma_kunit *k, unsigned long frame)
{
	kunit_run_aside(k, frame);
	current->fail_nth = 1;
}

/*
 * Only the first of the slots is as it was, and is the last of the file: the page cache
 * needs memory, does not get it at once, and looks at the slots once more.
 */
static void __init gcma_test_large_load_retried(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct address_space *mapping = &k->inode.i_data;
	struct folio *folio;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "no large folios");
	k->index = 0; /* in whichever area */
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, kunit_add_large(k, 0, 2, 1)));
	KUNIT_ASSERT_EQ(test, kunit_order(k, 0, 2), 2);
	folio = folio_alloc(GFP_KERNEL | __GFP_NOFAIL, 2);
	kunit_open_aside(test, KUNIT_FILLED, kunit_invalidate_rest);
	k->fn = kunit_run_aside_then_fail;
	KUNIT_EXPECT_EQ(test, filemap_add_folio(mapping, folio, 0, GFP_KERNEL), 0);
	kunit_close_aside(test);
	KUNIT_EXPECT_EQ(test, current->fail_nth, 0);
	current->fail_nth = 0;
	KUNIT_EXPECT_FALSE(test, folio_test_uptodate(folio));
	folio_unlock(folio);
	folio_put(folio);
	kunit_expect_new(test, 0);
}
#endif

/*
 * Invalidation of a part has looked at the slots, single pages, and waits for a lock. A
 * reader makes one large folio of them and of others.
 */
static void __init gcma_test_invalidate_part_refilled(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct address_space *mapping = &k->inode.i_data;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio;
	int ret;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "no large folios");
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, kunit_add_large(k, index, 3, 1)));
	folio = folio_alloc(GFP_KERNEL | __GFP_NOFAIL, 3);
	kunit_open_aside(test, KUNIT_CLOSED, kunit_invalidate_rest);
	spin_lock(&k->inode.i_lock);
	kunit_run_into_lock(k, 0);
	ret = filemap_add_folio(mapping, folio, index, GFP_ATOMIC);
	folio_put(folio);
	lru_add_drain();
	spin_unlock(&k->inode.i_lock);
	kunit_close_aside(test);
	KUNIT_EXPECT_EQ(test, ret, -EEXIST);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_loads), 8);
	kunit_expect_new(test, index + 1);
}

/* Who finds a filled folio finds it unlocked: the last moment for an invalidation. */
static void kunit_trylock_added(struct gcma_kunit *k, unsigned long frame)
{
	struct folio *folio = filemap_get_folio(&k->inode.i_data, k->index);

	WRITE_ONCE(k->medium, 2);	/* not there */
	if (IS_ERR(folio))
		return;
	if (folio_trylock(folio)) {
		WRITE_ONCE(k->medium, folio_test_uptodate(folio) ? 3 : 4);
		folio_unlock(folio);
	} else {
		WRITE_ONCE(k->medium, 5);
	}
	folio_put(folio);
}

/* Who adds a folio that gets filled finds it as if another had: one access is one. */
static void kunit_note_referenced(struct gcma_kunit *k, unsigned long frame)
{
	struct folio *folio = filemap_get_folio(&k->inode.i_data, k->index);

	if (!IS_ERR(folio)) {
		WRITE_ONCE(k->medium, folio_test_referenced(folio) ? 4 : 3);
		folio_put(folio);
	}
}

static void __init gcma_test_accessed_once(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio;

	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 1));
	kunit_open(k, KUNIT_ADDED, kunit_note_referenced);
	folio = __filemap_get_folio(&k->inode.i_data, index,
				    FGP_ACCESSED | FGP_CREAT | FGP_LOCK,
				    GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	KUNIT_EXPECT_TRUE(test, kunit_filled(folio, 1));
	KUNIT_EXPECT_EQ(test, k->medium, 3);
	folio_unlock(folio);
	folio_put(folio);
}

static void __init gcma_test_never_seen_locked(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio;

	/* not in the page cache while it is being filled */
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 1));
	kunit_open(k, KUNIT_FILLED, kunit_trylock_added);
	folio = read_mapping_folio(&k->inode.i_data, index, NULL);
	KUNIT_EXPECT_EQ(test, k->medium, 2);
	folio_put(folio);
	kunit_forget(k, index);

	/* and uptodate and unlocked as soon as it is, whoever looks */
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 1));
	kunit_open(k, KUNIT_ADDED, kunit_trylock_added);
	folio = read_mapping_folio(&k->inode.i_data, index, NULL);
	KUNIT_EXPECT_EQ(test, k->medium, 3);
	KUNIT_EXPECT_TRUE(test, kunit_filled(folio, 1));
	folio_put(folio);
}

/* ------ primaries in the windows --------------------------------------- */

/* STORING, taken and released: the copy is the primary's rubbish. */
static void __init gcma_test_scrub_while_storing(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio = kunit_read(k, index, 1);

	kunit_open(k, KUNIT_COPIED, kunit_take_release);
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
	KUNIT_EXPECT_EQ(test, k->window, KUNIT_CLOSED);
	KUNIT_EXPECT_TRUE(test, kunit_is_shadow(k, index));
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_stores), 0);
	kunit_check_settled(test);
}

static void kunit_take_keep(struct gcma_kunit *k, unsigned long frame)
{
	kunit_take(k, frame, 1);
}

/* STORING, taken and kept: published, and of no use to anybody. */
static void __init gcma_test_take_while_storing(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio = kunit_read(k, index, 1);
	unsigned long frame;

	kunit_open(k, KUNIT_COPIED, kunit_take_keep);
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
	KUNIT_ASSERT_TRUE(test, kunit_is_tenant(k, index));
	frame = kunit_frame(k, index);
	KUNIT_EXPECT_TRUE(test, gcma_revoked(k->g, frame));
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);

	KUNIT_EXPECT_FALSE(test, kunit_load(k, index, 1));
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_misses), 1);
	kunit_check_settled(test);
	kunit_release(k, frame, 1);
}

/* STORED, taken and released: the entry outlives its tenant. */
static void __init gcma_test_scrub_while_stored(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long frame;

	kunit_evict(k, index, 1);
	frame = kunit_frame(k, index);
	kunit_take(k, frame, 1);
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);
	kunit_release(k, frame, 1);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_revoked), 1);
	kunit_check_settled(test);
	KUNIT_EXPECT_FALSE(test, kunit_load(k, index, 1));
}

/* Scrubbed, bit not clear yet: a store that comes now must not find the frames. */
static void __init gcma_test_store_while_scrubbing(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;

	k->g->admission = GCMA_ADMIT_ALWAYS;
	kunit_fill_area(k);
	kunit_take(k, 0, GCMA_SCAN);
	gcma_scrub(k->cma.reserve, 0, GCMA_SCAN);
	KUNIT_EXPECT_EQ(test, k->g->len[GCMA_FREE_LIST], 0);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	kunit_release(k, 0, GCMA_SCAN);
	KUNIT_EXPECT_EQ(test, k->g->len[GCMA_FREE_LIST], GCMA_SCAN);
}

/* Many pages a bit: interrupts are off for a batch at a time all the same. */
#define KUNIT_BATCH	256UL

static unsigned long kunit_scrubbed, kunit_lent, kunit_largest;

static void kunit_scrub(struct cma_reserve *r, unsigned long frame,
			unsigned long count)
{
	kunit_scrubbed += count;
	kunit_largest = max(kunit_largest, count);
	gcma_scrub(r, frame, count);
}

static void kunit_lend(struct cma_reserve *r, unsigned long frame,
		       unsigned long count)
{
	kunit_lent += count;
	kunit_largest = max(kunit_largest, count);
	gcma_lend(r, frame, count);
}

static void __init gcma_test_scrub_in_batches(struct kunit *test)
{
	static const struct cma_policy ops = {
		.revoke = gcma_revoke,
		.scrub = kunit_scrub,
		.lend = kunit_lend,
	};
	struct gcma_kunit *k = test->priv;
	struct page *page;

	/* all of the area is one bit, as a huge page is of an area of these */
	BUILD_BUG_ON(KUNIT_PAGES < 2 * KUNIT_BATCH);
	k->cma.order_per_bit = ilog2(KUNIT_PAGES);
	kunit_scrubbed = 0;
	kunit_lent = 0;
	kunit_largest = 0;
	k->cma.reserve->ops = &ops;
	page = cma_alloc(&k->cma, KUNIT_PAGES, 0, true);
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page, KUNIT_PAGES));
	k->cma.reserve->ops = &gcma_policy;
	KUNIT_EXPECT_EQ(test, kunit_scrubbed, KUNIT_PAGES);
	KUNIT_EXPECT_EQ(test, kunit_lent, KUNIT_PAGES);
	KUNIT_EXPECT_EQ(test, kunit_largest, KUNIT_BATCH);
}

/* LOADING, copied, taken and released: the copy was made in time. */
static void __init gcma_test_take_after_fill(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);

	kunit_evict(k, index, 1);
	kunit_open(k, KUNIT_FILLED, kunit_take_release);
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index, 1));
	kunit_check_settled(test);
}

/* The first pages of a large folio, of which the last two are filled */
static void kunit_take_folio(struct gcma_kunit *k, unsigned long frame)
{
	pgoff_t index;

	for (index = k->index - 2; index < k->index + 2; index++)
		kunit_take(k, kunit_frame(k, index), 1);
}

/* LOADING, some are copied, the others taken: all that were owned are given back, once. */
static void __init gcma_test_take_while_loading_large(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long frames[4];
	struct folio *folio;
	unsigned int i;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "no large folios");
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, kunit_add_large(k, index, 2, 1)));
	for (i = 0; i < ARRAY_SIZE(frames); i++)
		frames[i] = kunit_frame(k, index + i);
	k->index = index + 2;
	kunit_open(k, KUNIT_FILLED, kunit_take_folio);
	folio = kunit_add_large(k, index, 2, 2);
	KUNIT_EXPECT_EQ(test, k->window, KUNIT_CLOSED);
	k->index = index;
	KUNIT_EXPECT_TRUE(test, kunit_filled(folio, 2));
	folio_put(folio);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_revoked), 1);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_dropped), 3);
	for (i = 0; i < ARRAY_SIZE(frames); i++)
		kunit_release(k, frames[i], 1);
	kunit_check_settled(test);
}

/* LOADING, taken and released: the loader must not copy, and gives it back. */
static void __init gcma_test_scrub_while_loading(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long frame;
	void *entry;

	kunit_evict(k, index, 1);
	entry = kunit_slot(k, index);
	frame = kunit_frame(k, index);
	KUNIT_ASSERT_TRUE(test, kunit_claim(entry));

	kunit_take(k, frame, 1);
	KUNIT_EXPECT_FALSE(test, gcma_enter(k->g, frame));
	kunit_release(k, frame, 1);
	kunit_check(test);
	KUNIT_EXPECT_FALSE(test, gcma_enter(k->g, frame));
	gcma_put(k->g, frame, GCMA_dropped);
	kunit_check_settled(test);
	KUNIT_EXPECT_FALSE(test, kunit_claim(entry));
}

/* LOADING, taken, given back to the free list, released. */
static void __init gcma_test_put_while_taken(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long frame;

	kunit_evict(k, index, 1);
	frame = kunit_frame(k, index);
	KUNIT_ASSERT_TRUE(test, kunit_claim(kunit_slot(k, index)));
	kunit_take(k, frame, 1);
	gcma_put(k->g, frame, GCMA_dropped);
	kunit_check_settled(test);

	/* It is the first on the list, and must not be lent. */
	index = kunit_index(k, GCMA_FOLLOW);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
	KUNIT_EXPECT_NE(test, kunit_frame(k, index), frame);
	KUNIT_EXPECT_FALSE(test, kunit_linked(&k->g->frames[frame]));
	kunit_release(k, frame, 1);
	KUNIT_EXPECT_TRUE(test, kunit_linked(&k->g->frames[frame]));
	kunit_check_settled(test);
}

/* LOADING: neither a drop, nor a second load, nor a store gets the frame. */
static void __init gcma_test_owned_while_loading(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	pgoff_t other;
	unsigned long frame;
	u32 word;

	k->g->admission = GCMA_ADMIT_ALWAYS;
	kunit_evict(k, index, 1);
	frame = kunit_frame(k, index);
	kunit_fill_area(k);
	KUNIT_ASSERT_TRUE(test, kunit_claim(kunit_slot(k, index)));
	word = atomic_read(&k->g->frames[frame].word);
	KUNIT_ASSERT_EQ(test, word & GCMA_STATE_MASK, GCMA_OWNED);

	KUNIT_EXPECT_FALSE(test, kunit_claim(kunit_slot(k, index)));
	gcma_drop(kunit_slot(k, index));
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_dropped), 0);

	/* It is the oldest, and passed over. */
	other = kunit_index(k, GCMA_FOLLOW);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, other, 1));
	KUNIT_EXPECT_NE(test, kunit_frame(k, other), frame);
	KUNIT_EXPECT_EQ(test, atomic_read(&k->g->frames[frame].word), word);
	kunit_check(test);
	gcma_put(k->g, frame, GCMA_dropped);
}

/* A victim that a primary holds is discarded, not reused. */
static void __init gcma_test_recycle_while_taken(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long frame;

	k->g->admission = GCMA_ADMIT_ALWAYS;
	kunit_evict(k, index, 1);
	frame = kunit_frame(k, index);
	kunit_fill_area(k);
	kunit_take(k, frame, 1);

	index = kunit_index(k, GCMA_FOLLOW);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
	KUNIT_EXPECT_NE(test, kunit_frame(k, index), frame);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_revoked), 1);
	kunit_check_settled(test);
	kunit_release(k, frame, 1);
	KUNIT_EXPECT_EQ(test, k->g->len[GCMA_FREE_LIST], 1);
}

/* ------ copying against revocation ------------------------------------ */

struct kunit_copier {
	struct gcma *g;
	unsigned long frame;
	struct completion entered;
	bool copied;
};

static int kunit_copy_slowly(void *data)
{
	struct kunit_copier *copier = data;

	if (!gcma_enter(copier->g, copier->frame)) {
		complete(&copier->entered);
		return -EBUSY;
	}
	complete(&copier->entered);
	mdelay(50);
	WRITE_ONCE(copier->copied, true);
	gcma_exit();
	return 0;
}

/* Another CPU begins to load the tenant at @index; it takes its time. */
static struct task_struct *kunit_start_copier(struct kunit *test,
					      struct kunit_copier *copier,
					      pgoff_t index)
{
	struct gcma_kunit *k = test->priv;
	unsigned int cpu = cpumask_any_but(cpu_online_mask,
					   raw_smp_processor_id());
	struct task_struct *task;

	if (cpu >= nr_cpu_ids)
		kunit_skip(test, "needs a second CPU");

	copier->g = k->g;
	copier->frame = kunit_frame(k, index);
	KUNIT_ASSERT_TRUE(test, kunit_claim(kunit_slot(k, index)));
	init_completion(&copier->entered);
	set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
	task = kthread_create(kunit_copy_slowly, copier, "gcma_kunit");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	kthread_bind(task, cpu);
	get_task_struct(task);
	wake_up_process(task);
	wait_for_completion(&copier->entered);
	return task;
}

static void kunit_end_copier(struct kunit *test, struct kunit_copier *copier,
			     struct task_struct *task)
{
	KUNIT_EXPECT_EQ(test, kthread_stop(task), 0);
	put_task_struct(task);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	gcma_put(copier->g, copier->frame, GCMA_dropped);
}

/* An allocator waits for who copies in its range, and for nobody else. */
static void __init gcma_test_wait_for_copies(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct kunit_copier copier = {};
	struct task_struct *task;

	kunit_evict(k, index, 1);
	task = kunit_start_copier(test, &copier, index);
	kunit_take(k, copier.frame - 16, 16);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(copier.copied));
	kunit_take(k, copier.frame, 1);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(copier.copied));
	kunit_end_copier(test, &copier, task);
	kunit_release(k, copier.frame - 16, 17);
}

/* All pages of a bit are the allocator's, so it waits for all of them. */
static void __init gcma_test_wait_for_bits(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct kunit_copier copier = {};
	struct task_struct *task;
	unsigned long frame;
	pgoff_t index;

	k->cma.order_per_bit = 2;
	do {
		index = kunit_index(k, GCMA_FOLLOW);
		kunit_evict(k, index, 1);
		frame = kunit_frame(k, index);
	} while (IS_ALIGNED(frame, 4));

	task = kunit_start_copier(test, &copier, index);
	frame = ALIGN_DOWN(frame, 4);
	spin_lock_irq(&k->cma.lock);
	set_bit(frame >> 2, k->cma.bitmap);
	spin_unlock_irq(&k->cma.lock);
	cma_reserve_take(&k->cma, gcma_pfn(k->g, frame), 1, GFP_KERNEL);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(copier.copied));
	kunit_end_copier(test, &copier, task);
	kunit_release(k, frame, 1);
}

#define KUNIT_STORM_PAGES	96
#define KUNIT_STORM_ROUNDS	4000

struct kunit_storm {
	struct gcma_kunit *k;
	atomic_t *running;
	pgoff_t index[KUNIT_STORM_PAGES];
	u8 version[KUNIT_STORM_PAGES];
	unsigned int reads;
	unsigned int wrong;
};

/* What the storm's pages hold on the medium: who reads it must have lost a tenant. */
static int kunit_storm_thread(void *data)
{
	struct kunit_storm *s = data;
	struct gcma_kunit *k = s->k;
	struct rnd_state rnd;
	unsigned int round;

	prandom_seed_state(&rnd, s->index[0]);
	for (round = 0; round < KUNIT_STORM_ROUNDS; round++) {
		unsigned int i = prandom_u32_state(&rnd) % KUNIT_STORM_PAGES;
		struct folio *folio;

		folio = read_mapping_folio(&k->inode.i_data, s->index[i], NULL);
		if (IS_ERR(folio))
			continue;
		folio_lock(folio);
		if (folio->mapping && !kunit_filled(folio, KUNIT_MEDIUM)) {
			s->reads++;
			s->wrong += !kunit_filled(folio, s->version[i]);
		}
		/* a new version, which no medium has; it is clean all the same */
		s->version[i] = (s->version[i] + 1) % 0x80;
		memset(folio_address(folio), s->version[i], PAGE_SIZE);
		folio_unlock(folio);
		kunit_reclaim(k, folio);
		cond_resched();
	}
	atomic_dec(s->running);
	return 0;
}

/* Tenants come and go while primaries scribble over the area. */
static void __init gcma_test_storm(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct kunit_storm *storm;
	struct rnd_state rnd;
	atomic_t running = ATOMIC_INIT(0);
	unsigned int t, i, foreign = 0, failed = 0;

	k->g->admission = GCMA_ADMIT_ALWAYS;
	storm = kunit_kcalloc(test, 3, sizeof(*storm), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, storm);
	for (t = 0; t < 3; t++) {
		storm[t].k = k;
		storm[t].running = &running;
		for (i = 0; i < KUNIT_STORM_PAGES; i++)
			storm[t].index[i] = kunit_index(k, GCMA_FOLLOW);
	}
	for (t = 0; t < 3; t++) {
		atomic_inc(&running);
		if (IS_ERR(kthread_run(kunit_storm_thread, &storm[t],
				       "gcma_kunit")))
			atomic_dec(&running);
	}

	prandom_seed_state(&rnd, 1);
	while (atomic_read(&running)) {
		unsigned long count = 1 + prandom_u32_state(&rnd) % 128;
		struct page *page = cma_alloc(&k->cma, count, 0, true);

		if (page) {
			memset(page_address(page), 0xff, count << PAGE_SHIFT);
			cond_resched();
			foreign += !!memchr_inv(page_address(page), 0xff,
						count << PAGE_SHIFT);
			cma_release(&k->cma, page, count);
		} else {
			failed++;
		}
		cond_resched();
	}

	for (t = 0; t < 3; t++) {
		KUNIT_EXPECT_EQ(test, storm[t].wrong, 0);
		KUNIT_EXPECT_GT(test, storm[t].reads, 0);
	}
	KUNIT_EXPECT_GT(test, gcma_counter(k->g, GCMA_loads), 0);
	KUNIT_EXPECT_EQ(test, foreign, 0);
	KUNIT_EXPECT_EQ(test, failed, 0);
}

/* ------ placement and admission --------------------------------------- */

static void __init gcma_test_placement(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t first = kunit_index(k, GCMA_FOLLOW);
	pgoff_t second = kunit_index(k, GCMA_FOLLOW);
	struct page *page;

	/* tenants from the top, primaries from the bottom */
	kunit_evict(k, first, 1);
	KUNIT_EXPECT_EQ(test, kunit_frame(k, first), KUNIT_PAGES - 1);
	page = cma_alloc(&k->cma, 8, 0, true);
	KUNIT_EXPECT_PTR_EQ(test, page, cma_page(&k->cma, 0));
	cma_release(&k->cma, page, 8);
	KUNIT_EXPECT_TRUE(test, kunit_load(k, first, 1));

	/* frames that a primary used are lent last */
	kunit_take(k, KUNIT_PAGES - GCMA_SCAN, GCMA_SCAN);
	KUNIT_EXPECT_FALSE(test, kunit_evict(k, first, 1));
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_refused_busy), 1);
	kunit_release(k, KUNIT_PAGES - GCMA_SCAN, GCMA_SCAN);
	kunit_evict(k, second, 1);
	KUNIT_EXPECT_EQ(test, kunit_frame(k, second),
			KUNIT_PAGES - GCMA_SCAN - 1);
}

static void __init gcma_test_admission(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct gcma *g = k->g;
	unsigned int i, admitted = 0;

	if (!IS_ENABLED(CONFIG_GCMA_ADMISSION))
		kunit_skip(test, "needs CONFIG_GCMA_ADMISSION");
	/* not while there is room */
	g->admission = GCMA_ADMIT_SELDOM;
	kunit_fill_area(k);
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), KUNIT_PAGES);
	KUNIT_EXPECT_EQ(test, gcma_counter(g, GCMA_refused_admission), 0);

	/* one in so many, and those behind it */
	g->skipped = 0;
	for (i = 0; i < GCMA_SELDOM_RUN * GCMA_SELDOM_RATE; i++) {
		admitted += kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1);
		KUNIT_EXPECT_EQ(test, admitted, min(i + 1, GCMA_SELDOM_RUN));
	}
	KUNIT_EXPECT_EQ(test, gcma_counter(g, GCMA_refused_admission),
			GCMA_SELDOM_RUN * (GCMA_SELDOM_RATE - 1));
	KUNIT_EXPECT_EQ(test, gcma_counter(g, GCMA_recycles), GCMA_SELDOM_RUN);
}

/* Of many pages of @list that find the area full, are but few admitted? */
static bool kunit_seldom(struct gcma_kunit *k, enum gcma_list list)
{
	unsigned int i, admitted = 0;

	for (i = 0; i < GCMA_SELDOM_RUN * GCMA_SELDOM_RATE; i++)
		admitted += gcma_admit(k->g, gcma_rule(k->g, list), 1);
	return admitted == GCMA_SELDOM_RUN;
}

/*
 * The rule after a window in which the samples had so many hits, half of them before, and
 * all others came back too late.
 */
static enum gcma_admission kunit_judge(struct gcma *g, unsigned int always,
				       unsigned int seldom)
{
	g->offers[GCMA_ALWAYS] = GCMA_WINDOW;
	g->offers[GCMA_SELDOM] = GCMA_WINDOW;
	g->since = GCMA_WINDOW - 1;
	g->hits[GCMA_ALWAYS] = always;
	g->hits[GCMA_SELDOM] = seldom;
	g->lost[GCMA_ALWAYS] = GCMA_WINDOW - always;
	g->lost[GCMA_SELDOM] = 0;
	g->fresh = (always + seldom) / 2;
	gcma_offer(g, GCMA_ALWAYS);
	return g->better;
}

static void __init gcma_test_samples(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct gcma *g = k->g;
	unsigned int fresh;
	pgoff_t index;
	int i;

	if (!IS_ENABLED(CONFIG_GCMA_ADMISSION))
		kunit_skip(test, "needs CONFIG_GCMA_ADMISSION");

	/* what was never filled was not, however often a primary has it */
	for (i = 0; i < 3; i++) {
		kunit_take(k, 0, KUNIT_PAGES);
		KUNIT_EXPECT_FALSE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
		kunit_release(k, 0, KUNIT_PAGES);
		KUNIT_EXPECT_EQ(test, g->unfilled, KUNIT_PAGES);
	}
	/* each sample gets its share of a full area, and no more */
	kunit_fill_area(k);
	KUNIT_EXPECT_EQ(test, g->unfilled, 0);
	for (i = 0; i < 24; i++) {
		index = kunit_index(k, GCMA_ALWAYS);
		KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
	}
	KUNIT_EXPECT_EQ(test, g->len[GCMA_ALWAYS],
			KUNIT_PAGES >> GCMA_SAMPLE_SHIFT);

	/* the others follow the one that has more loads of what it is offered */
	KUNIT_EXPECT_EQ(test, kunit_judge(g, 50, 60), GCMA_ADMIT_ALWAYS);
	KUNIT_EXPECT_EQ(test, kunit_judge(g, 50, 80), GCMA_ADMIT_SELDOM);
	KUNIT_EXPECT_TRUE(test, kunit_seldom(k, GCMA_FOLLOW));
	KUNIT_EXPECT_FALSE(test, kunit_seldom(k, GCMA_ALWAYS));
	KUNIT_EXPECT_TRUE(test, kunit_seldom(k, GCMA_SELDOM));
	KUNIT_EXPECT_FALSE(test, kunit_seldom(k, GCMA_HOT));

	/* nor all, if few of them come back, though no more of the other sample do */
	KUNIT_EXPECT_EQ(test, kunit_judge(g, 32, 0), GCMA_ADMIT_ALWAYS);
	KUNIT_EXPECT_EQ(test, kunit_judge(g, 31, 0), GCMA_ADMIT_SELDOM);
	KUNIT_EXPECT_EQ(test, g->lost[GCMA_ALWAYS], (GCMA_WINDOW - 31) / 2);

	/* neither is worth a copy: hardly any page is, but the samples go on */
	KUNIT_EXPECT_EQ(test, kunit_judge(g, 4, 4), GCMA_ADMIT_SELDOM);
	g->loads = GCMA_WINDOW / GCMA_HARDLY_RATE << (GCMA_SAMPLE_SHIFT - 1);
	KUNIT_EXPECT_EQ(test, kunit_judge(g, 1, 1), GCMA_ADMIT_SELDOM);
	KUNIT_EXPECT_EQ(test, g->loads, 0);
	/* what is nowhere else was kept without being asked for: its loads say nothing */
	scoped_guard(spinlock_irqsave, &g->lock)
		gcma_note_hit(g, GCMA_DIRTY);
	KUNIT_EXPECT_EQ(test, g->loads, 0);
	KUNIT_EXPECT_EQ(test, kunit_judge(g, 1, 2), GCMA_ADMIT_HARDLY);
	KUNIT_EXPECT_FALSE(test, gcma_admit(g, gcma_rule(g, GCMA_FOLLOW), 1));
	KUNIT_EXPECT_TRUE(test, gcma_admit(g, gcma_rule(g, GCMA_ALWAYS), 1));
	KUNIT_EXPECT_TRUE(test, gcma_admit(g, gcma_rule(g, GCMA_HOT), 1));
	/* not even a copy that replaces none */
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index, 1));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_FREE_LIST], 1);
	KUNIT_EXPECT_FALSE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_FREE_LIST], 1);
	/* nor to what a primary left, but a new area is filled once */
	kunit_take(k, 0, 2);
	kunit_release(k, 0, 2);
	KUNIT_EXPECT_EQ(test, g->len[GCMA_FREE_LIST], 3);
	KUNIT_EXPECT_FALSE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	KUNIT_EXPECT_EQ(test, g->unused, 0);
	g->unused = 2;
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	KUNIT_EXPECT_FALSE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_FREE_LIST], 1);
	/* an administrator's word is above that */
	g->admission = GCMA_ADMIT_ALWAYS;
	index = kunit_index(k, GCMA_FOLLOW);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
	g->admission = GCMA_ADMIT_ADAPTIVE;
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index, 1));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_FREE_LIST], 1);
	/* until some come back, of what was offered lately, not of one window */
	g->offers[GCMA_ALWAYS] = GCMA_WINDOW;
	g->offers[GCMA_SELDOM] = GCMA_WINDOW;
	g->hits[GCMA_ALWAYS] = 0;
	g->hits[GCMA_SELDOM] = 0;
	while (g->hits[GCMA_SELDOM] < 2 * GCMA_WINDOW / GCMA_HARDLY_RATE - 1)
		gcma_note_hit(g, GCMA_SELDOM);
	gcma_note_hit(g, GCMA_FOLLOW);
	KUNIT_EXPECT_EQ(test, g->better, GCMA_ADMIT_HARDLY);
	gcma_note_hit(g, GCMA_SELDOM);
	KUNIT_EXPECT_EQ(test, g->better, GCMA_ADMIT_SELDOM);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_FREE_LIST], 0);

	/* one window without loads, and it was worth nothing lately */
	KUNIT_EXPECT_EQ(test, kunit_judge(g, 0, GCMA_WINDOW), GCMA_ADMIT_SELDOM);
	for (i = 0; g->better == GCMA_ADMIT_SELDOM && i < 2 * GCMA_WINDOW; i++)
		gcma_offer(g, i % 2 ? GCMA_ALWAYS : GCMA_SELDOM);
	KUNIT_EXPECT_EQ(test, g->better, GCMA_ADMIT_HARDLY);
	KUNIT_EXPECT_EQ(test, i, GCMA_WINDOW);
	KUNIT_EXPECT_GT(test, g->hits[GCMA_SELDOM], 0);

	/* votes are of evicted pages */
	index = kunit_index(k, GCMA_SELDOM);
	i = g->offers[GCMA_SELDOM];
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
	KUNIT_EXPECT_EQ(test, g->offers[GCMA_SELDOM], i + 1);
	i = g->hits[GCMA_SELDOM];
	fresh = g->fresh;
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index, 1));
	KUNIT_EXPECT_EQ(test, g->hits[GCMA_SELDOM], i + 1);
	KUNIT_EXPECT_EQ(test, g->fresh, fresh + 1);

	/* an administrator has the last word; of large folios, as many pages */
	g->admission = GCMA_ADMIT_SELDOM;
	g->skipped = 0;
	for (i = 0; i < GCMA_SELDOM_RATE; i++)
		KUNIT_EXPECT_EQ(test, !i,
				gcma_admit(g, gcma_rule(g, GCMA_FOLLOW), GCMA_SELDOM_RUN));
	KUNIT_EXPECT_TRUE(test, kunit_seldom(k, GCMA_ALWAYS));
	g->admission = GCMA_ADMIT_ALWAYS;
	KUNIT_EXPECT_FALSE(test, kunit_seldom(k, GCMA_SELDOM));
}

/* Mappings in slabs, one behind the other: each sample gets about its share of them. */
static void __init gcma_test_balance(struct kunit *test)
{
	unsigned int classes[2][1U << GCMA_SAMPLE_SHIFT] = {}, i, j;
	unsigned long mapping = 0xc1234000UL;

	if (!IS_ENABLED(CONFIG_GCMA_ADMISSION))
		kunit_skip(test, "needs CONFIG_GCMA_ADMISSION");
	for (i = 0; i < 1024; i++, mapping += 600) {
		classes[0][gcma_hash((void *)mapping, 0) % ARRAY_SIZE(classes[0])]++;
		/* as on a 32-bit machine */
		classes[1][gcma_hash_32(mapping / 4) % ARRAY_SIZE(classes[1])]++;
	}
	for (i = 0; i < ARRAY_SIZE(classes); i++) {
		/* see gcma_sample() and gcma_hot() */
		for (j = 0; j < 3; j++) {
			KUNIT_EXPECT_GE(test, classes[i][j], 1024 / ARRAY_SIZE(classes[0]) / 2);
			KUNIT_EXPECT_LE(test, classes[i][j], 1024 / ARRAY_SIZE(classes[0]) * 2);
		}
	}
}

/* While primaries leave the samples no frame, nothing is learned from them. */
static void __init gcma_test_no_share(struct kunit *test)
{
	static const enum gcma_list lists[] = { GCMA_ALWAYS, GCMA_SELDOM, GCMA_HOT_SAMPLE };
	struct gcma_kunit *k = test->priv;
	enum gcma_admission better = k->g->better;
	struct gcma *g = k->g;
	unsigned int since, i, j;
	pgoff_t lost[2];

	if (!IS_ENABLED(CONFIG_GCMA_ADMISSION))
		kunit_skip(test, "needs CONFIG_GCMA_ADMISSION");
	for (i = 0; i < ARRAY_SIZE(lost); i++) {
		lost[i] = kunit_index(k, lists[i]);
		KUNIT_EXPECT_TRUE(test, kunit_evict(k, lost[i], 1));
		g->offers[lists[i]] = 0;
	}
	kunit_take(k, 0, KUNIT_PAGES);
	kunit_release(k, 0, KUNIT_PAGES);
	since = g->since;
	kunit_take(k, 0, KUNIT_PAGES);
	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		for (j = 0; j < GCMA_WINDOW; j++)
			KUNIT_EXPECT_TRUE(test, gcma_offer(g, lists[i]));
		KUNIT_EXPECT_EQ(test, g->offers[lists[i]], 0);
	}
	for (i = 0; i < ARRAY_SIZE(lost); i++) {
		KUNIT_EXPECT_FALSE(test, kunit_load(k, lost[i], 1));
		KUNIT_EXPECT_EQ(test, g->lost[lists[i]], 0);
	}
	KUNIT_EXPECT_FALSE(test, g->cool);
	KUNIT_EXPECT_EQ(test, g->better, better);
	KUNIT_EXPECT_EQ(test, g->since, since);
	kunit_release(k, 0, KUNIT_PAGES);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
}

/* One visit of a primary to all of a large area is no reason to forget what hot pages are worth. */
static void __init gcma_test_one_visit(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct gcma *g = k->g;
	unsigned int i, hits = 2048;

	if (!IS_ENABLED(CONFIG_GCMA_ADMISSION))
		kunit_skip(test, "needs CONFIG_GCMA_ADMISSION");
	g->hits[GCMA_HOT_SAMPLE] = hits;
	g->nr_frames = SZ_1G >> PAGE_SHIFT;
	for (i = 0; i < g->nr_frames >> GCMA_SAMPLE_SHIFT; i++)
		gcma_note_revoked(g, GCMA_HOT_SAMPLE);
	g->nr_frames = KUNIT_PAGES;
	KUNIT_EXPECT_FALSE(test, g->cool);
	KUNIT_EXPECT_GE(test, g->hits[GCMA_HOT_SAMPLE], hits / 4);
}

/* As readahead adds a large folio where it saw no tenant. */
static int kunit_add_ahead(struct gcma_kunit *k, pgoff_t index, unsigned int order)
{
	struct folio *folio = folio_alloc(GFP_KERNEL | __GFP_NOFAIL, order);
	int ret;

	gcma_load_hint(folio, GCMA_AHEAD_READ);
	/* usual: no other bit of the place is set */
	clear_bit(folio_pfn(folio) % GCMA_PASSED, gcma_passed_lately);
	ret = filemap_add_folio(&k->inode.i_data, folio, index, GFP_KERNEL);
	if (!ret)
		folio_end_read(folio, true);
	folio_put(folio);
	return ret;
}

/* What comes back too late is what was recycled, not what never comes back. */
static void __init gcma_test_lost(struct kunit *test)
{
	static const enum gcma_list lists[] = { GCMA_ALWAYS, GCMA_SELDOM };
	struct gcma_kunit *k = test->priv;
	struct gcma *g = k->g;
	unsigned int i;

	if (!IS_ENABLED(CONFIG_GCMA_ADMISSION))
		kunit_skip(test, "needs CONFIG_GCMA_ADMISSION");

	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		pgoff_t index = kunit_index(k, lists[i]);

		KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
		kunit_take(k, 0, KUNIT_PAGES);
		kunit_release(k, 0, KUNIT_PAGES);
		KUNIT_EXPECT_EQ(test, g->lost[lists[i]], 0);
		KUNIT_EXPECT_FALSE(test, kunit_load(k, index, 1));
		KUNIT_EXPECT_EQ(test, g->lost[lists[i]], 1);
		/* and once only */
		KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
		KUNIT_EXPECT_TRUE(test, kunit_load(k, index, 1));
		KUNIT_EXPECT_EQ(test, g->lost[lists[i]], 1);
	}
	/* of a large folio each that is lost: each counts when it is offered, and loaded */
	if (IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE)) {
		pgoff_t index = kunit_index(k, GCMA_ALWAYS);
		struct folio *folio;
		unsigned long frame;
		void *entry;

		for (i = 0; i < 8; i++)
			KUNIT_EXPECT_TRUE(test, kunit_evict(k, index + i, 1));
		kunit_take(k, 0, KUNIT_PAGES);
		kunit_release(k, 0, KUNIT_PAGES);
		i = gcma_counter(g, GCMA_misses);
		/* but not yet while one is there, for then it is read otherwise */
		folio = kunit_read(k, index + 5, 1);
		KUNIT_EXPECT_EQ(test, g->lost[GCMA_ALWAYS], 1 + 1);
		KUNIT_EXPECT_EQ(test, kunit_add_ahead(k, index, 3), -EEXIST);
		KUNIT_EXPECT_EQ(test, g->lost[GCMA_ALWAYS], 1 + 1);
		folio_put(folio);
		kunit_forget(k, index + 5);
		/* nor those that are there, or that another reader is about to load */
		KUNIT_EXPECT_TRUE(test, kunit_evict(k, index + 5, 1));
		KUNIT_EXPECT_TRUE(test, kunit_evict(k, index + 6, 1));
		entry = kunit_slot(k, index + 6);
		frame = kunit_frame(k, index + 6);
		KUNIT_ASSERT_TRUE(test, kunit_claim(entry));
		KUNIT_EXPECT_EQ(test, kunit_add_ahead(k, index, 3), 0);
		gcma_put(g, frame, GCMA_dropped);
		KUNIT_EXPECT_EQ(test, g->lost[GCMA_ALWAYS], 1 + 1 + 6);
		KUNIT_EXPECT_EQ(test, gcma_counter(g, GCMA_misses), i + 1 + 6);
	}
	/* and in the end no more than fade away in some windows: hot pages are never offered */
	for (i = 0; i < 100 * GCMA_WINDOW; i++)
		gcma_note_loss(g, 1);
	KUNIT_EXPECT_EQ(test, g->lost[GCMA_SELDOM], 2 * GCMA_ALWAYS_RATE * GCMA_WINDOW);

	/* few come back, but all of them in time */
	g->offers[GCMA_ALWAYS] = GCMA_WINDOW;
	g->since = GCMA_WINDOW - 1;
	g->fresh = GCMA_WINDOW / GCMA_HARDLY_RATE;
	g->hits[GCMA_ALWAYS] = GCMA_WINDOW / GCMA_HARDLY_RATE;
	g->hits[GCMA_SELDOM] = 0;
	g->lost[GCMA_ALWAYS] = g->hits[GCMA_ALWAYS] * (GCMA_ALWAYS_RATE - 1);
	gcma_offer(g, GCMA_ALWAYS);
	KUNIT_EXPECT_EQ(test, g->better, GCMA_ADMIT_ALWAYS);
	KUNIT_EXPECT_FALSE(test, g->losing);

	/* what a primary left is filled, unless both samples lose what comes back */
	KUNIT_ASSERT_GT(test, g->unfilled, 0);
	KUNIT_EXPECT_EQ(test, kunit_judge(g, 31, GCMA_WINDOW / GCMA_HARDLY_RATE),
			GCMA_ADMIT_SELDOM);
	KUNIT_EXPECT_FALSE(test, g->losing);
	KUNIT_EXPECT_TRUE(test, gcma_room(g, gcma_rule(g, GCMA_FOLLOW)));
	g->hits[GCMA_ALWAYS] = GCMA_FEW_HITS;
	g->hits[GCMA_SELDOM] = GCMA_FEW_HITS;
	g->lost[GCMA_ALWAYS] = GCMA_FEW_HITS * GCMA_ALWAYS_RATE;
	g->lost[GCMA_SELDOM] = GCMA_FEW_HITS * GCMA_ALWAYS_RATE;
	g->fresh = GCMA_WINDOW;
	g->since = GCMA_WINDOW - 1;
	gcma_offer(g, GCMA_ALWAYS);
	KUNIT_EXPECT_EQ(test, g->better, GCMA_ADMIT_SELDOM);
	KUNIT_EXPECT_TRUE(test, g->losing);
	/* others may be: no more than there are, of which most are those of loads */
	g->unfilled = g->len[GCMA_FREE_LIST] - 2;
	g->skipped = GCMA_SELDOM_RUN;
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1), i < 2);
	KUNIT_EXPECT_EQ(test, g->unfilled, g->len[GCMA_FREE_LIST]);
	/* and of the samples a part is kept, until a primary is not in the way any more */
	i = 1U << GCMA_SAMPLE_SHIFT;
	KUNIT_EXPECT_EQ(test, gcma_cold(g, i), GCMA_FOLLOW);
	KUNIT_EXPECT_EQ(test, gcma_cold(g, i << GCMA_SPARE_SHIFT), GCMA_ALWAYS);
	KUNIT_EXPECT_EQ(test, gcma_hot(g, i + 2), GCMA_HOT_SAMPLE);
	i = g->unfilled;
	g->unfilled = 0;
	KUNIT_EXPECT_EQ(test, gcma_cold(g, 1U << GCMA_SAMPLE_SHIFT), GCMA_ALWAYS);
	g->unfilled = i;
	/* hardly any is worth a copy then, and no free frame either */
	KUNIT_EXPECT_EQ(test, kunit_judge(g, 0, 0), GCMA_ADMIT_HARDLY);
	KUNIT_EXPECT_FALSE(test, g->losing);
	KUNIT_EXPECT_EQ(test, gcma_room(g, gcma_rule(g, GCMA_FOLLOW)), !!g->unused);
	g->unused = 1;
	KUNIT_EXPECT_TRUE(test, gcma_room(g, gcma_rule(g, GCMA_FOLLOW)));
	g->losing = true;
	KUNIT_EXPECT_FALSE(test, gcma_room(g, gcma_rule(g, GCMA_FOLLOW)));

	/* an administrator has the last word here, too */
	g->admission = GCMA_ADMIT_SELDOM;
	KUNIT_EXPECT_EQ(test, gcma_room(g, gcma_rule(g, GCMA_FOLLOW)), !!g->len[GCMA_FREE_LIST]);
	KUNIT_EXPECT_EQ(test, gcma_cold(g, 1U << GCMA_SAMPLE_SHIFT), GCMA_ALWAYS);
}

/* Frames that a primary has had from the beginning are none that others may fill. */
static void __init gcma_test_held(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct gcma *g = k->g;
	u32 hash;

	if (!IS_ENABLED(CONFIG_GCMA_ADMISSION))
		kunit_skip(test, "needs CONFIG_GCMA_ADMISSION");
	hash = gcma_hash(&k->inode.i_data, kunit_index(k, GCMA_FOLLOW));
	kunit_take(k, 0, KUNIT_PAGES / 2);
	kunit_fill_area(k);
	KUNIT_EXPECT_EQ(test, kunit_judge(g, 0, 0), GCMA_ADMIT_HARDLY);
	KUNIT_EXPECT_GT(test, g->unused, 0);
	KUNIT_EXPECT_EQ(test, g->unfilled, 0);
	KUNIT_EXPECT_FALSE(test, gcma_room(g, GCMA_ADMIT_HARDLY));
	KUNIT_EXPECT_TRUE(test, gcma_is_closed(g, hash));
	kunit_release(k, 0, KUNIT_PAGES / 2);
	KUNIT_EXPECT_EQ(test, g->unfilled, KUNIT_PAGES / 2);
	KUNIT_EXPECT_TRUE(test, gcma_room(g, GCMA_ADMIT_HARDLY));
	KUNIT_EXPECT_FALSE(test, gcma_is_closed(g, hash));
}

#ifdef CONFIG_LRU_GEN_ENABLED
/* Of a generation, so many of which were evicted, it is that of who has the frame, if in use. */
static void __init gcma_test_recycle_generations(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t once = kunit_index(k, GCMA_FOLLOW), often;
	void *own;

	k->g->admission = GCMA_ADMIT_ALWAYS;
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, once, 1));
	often = kunit_index(k, GCMA_FOLLOW);
	KUNIT_ASSERT_TRUE(test, kunit_evict_hot(k, often));
	own = gcma_shadow(kunit_slot(k, often), true);
	KUNIT_EXPECT_PTR_EQ(test, workingset_older(own, true, 1), own);
	KUNIT_EXPECT_NULL(test, workingset_older(own, true, INT_MAX));
	own = gcma_shadow(kunit_slot(k, once), true);
	KUNIT_EXPECT_NULL(test, workingset_older(own, true, 1));
}
#endif

/* Pages that were read once make room for those in use, but keep some of it. */
static void __init gcma_test_hot(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct gcma *g = k->g;
	pgoff_t first;
	int i;

	if (!IS_ENABLED(CONFIG_GCMA_ADMISSION))
		kunit_skip(test, "needs CONFIG_GCMA_ADMISSION");
	g->admission = GCMA_ADMIT_ALWAYS;
	kunit_fill_area(k);
	first = kunit_index(k, GCMA_ALWAYS);
	KUNIT_ASSERT_TRUE(test, kunit_evict_hot(k, first));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_HOT], 1);

	for (i = 0; i < KUNIT_PAGES; i++)
		KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	KUNIT_EXPECT_TRUE(test, kunit_is_tenant(k, first));
	/* it is what it was when it was evicted, however long ago that is */
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, kunit_read(k, first, 1)));
	KUNIT_EXPECT_TRUE(test, kunit_is_tenant(k, first));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_HOT], 1);
	KUNIT_EXPECT_TRUE(test, kunit_load(k, first, 1));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_HOT], 0);

	for (i = 0; i < KUNIT_PAGES; i++)
		KUNIT_EXPECT_TRUE(test, kunit_evict_hot(k, kunit_index(k, GCMA_FOLLOW)));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_FOLLOW], KUNIT_PAGES >> GCMA_COLD_SHIFT);

	/* an eighth of what a primary leaves: it takes seven, hot frames are the oldest */
	first = kunit_index(k, GCMA_FOLLOW);
	kunit_take(k, 0, KUNIT_PAGES / 8 * 7);
	for (i = 0; i < KUNIT_PAGES; i++)
		kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1);
	KUNIT_EXPECT_TRUE(test, kunit_evict_hot(k, first));
	for (i = 0; i < KUNIT_PAGES; i++)
		KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	KUNIT_EXPECT_TRUE(test, kunit_load(k, first, 1));
	kunit_release(k, 0, KUNIT_PAGES / 8 * 7);
	kunit_check_settled(test);
}

/* What was in use once makes room for others in the end, and what is in use stays. */
static void __init gcma_test_hot_turn(struct kunit *test)
{
	const unsigned long hot = KUNIT_PAGES - (KUNIT_PAGES >> GCMA_COLD_SHIFT) - 1;
	const unsigned long turn = GCMA_HOT_TURN * KUNIT_PAGES;
	struct gcma_kunit *k = test->priv;
	struct gcma *g = k->g;
	unsigned long i;
	pgoff_t last;
	u32 oldest;

	if (!IS_ENABLED(CONFIG_GCMA_ADMISSION))
		kunit_skip(test, "needs CONFIG_GCMA_ADMISSION");
	g->admission = GCMA_ADMIT_ALWAYS;
	kunit_fill_area(k);
	for (i = 0; i < KUNIT_PAGES; i++) {
		last = kunit_index(k, GCMA_FOLLOW);
		KUNIT_ASSERT_TRUE(test, kunit_evict_hot(k, last));
	}
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	KUNIT_ASSERT_EQ(test, g->len[GCMA_HOT], hot);

	/* the oldest of them, so that all of them would in so many turns */
	oldest = g->frames[g->nr_frames + GCMA_HOT].next;
	g->turn = 0;
	for (i = 1; i < DIV_ROUND_UP(turn, hot); i++)
		KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_HOT], hot);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_HOT], hot - 1);
	KUNIT_EXPECT_EQ(test, gcma_list_of(atomic_read(&g->frames[oldest].word)), GCMA_FOLLOW);

	/* so all but what is loaded now and then */
	for (i = 2; i < hot; i++) {
		if (i % (hot / 4) == 0)
			KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, kunit_read(k, last, 1)));
		g->turn = turn - 1;
		KUNIT_ASSERT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	}
	KUNIT_EXPECT_EQ(test, g->len[GCMA_HOT], 1);
	KUNIT_EXPECT_EQ(test, gcma_counter(g, GCMA_loads), 4);
	KUNIT_EXPECT_TRUE(test, kunit_load(k, last, 1));

	/* of what a primary leaves */
	KUNIT_EXPECT_TRUE(test, kunit_evict_hot(k, last));
	kunit_take(k, 0, KUNIT_PAGES / 8 * 7);
	kunit_evict_hot(k, kunit_index(k, GCMA_FOLLOW));
	for (i = 0; i < KUNIT_PAGES; i++)
		kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1);
	KUNIT_EXPECT_TRUE(test, kunit_evict_hot(k, kunit_index(k, GCMA_FOLLOW)));
	g->turn = turn / 8 - 1;
	i = g->len[GCMA_HOT];
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_HOT], i - 1);
	kunit_release(k, 0, KUNIT_PAGES / 8 * 7);
	kunit_check_settled(test);
}

/* Where the samples have no frame nothing makes room for others: what is there stays. */
static void __init gcma_test_no_share_stays(struct kunit *test)
{
	static const enum gcma_list lists[] = { GCMA_ALWAYS, GCMA_SELDOM, GCMA_FOLLOW };
	const unsigned long left = (1UL << GCMA_SAMPLE_SHIFT) - 1;
	struct gcma_kunit *k = test->priv;
	pgoff_t first, index;
	unsigned int i;

	if (!IS_ENABLED(CONFIG_GCMA_ADMISSION))
		kunit_skip(test, "needs CONFIG_GCMA_ADMISSION");
	k->g->better = GCMA_ADMIT_ALWAYS;
	kunit_take(k, left, KUNIT_PAGES - left);
	/* some meet frames of the primary */
	for (i = 0, first = 0; i < KUNIT_PAGES; i++) {
		index = kunit_index(k, GCMA_FOLLOW);
		if (kunit_evict_hot(k, index) && !first)
			first = index;
	}
	KUNIT_ASSERT_NE(test, first, 0);
	for (i = 0; i < KUNIT_PAGES; i++) {
		kunit_evict_hot(k, kunit_index(k, GCMA_FOLLOW));
		kunit_evict(k, kunit_index(k, lists[i % ARRAY_SIZE(lists)]), 1);
	}
	KUNIT_EXPECT_TRUE(test, kunit_is_tenant(k, first));
	KUNIT_EXPECT_TRUE(test, kunit_load(k, first, 1));
	kunit_release(k, left, KUNIT_PAGES - left);
	kunit_check_settled(test);
}

/* Hot pages of which too few come back are as all others, until more do. */
static void __init gcma_test_cool(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct gcma *g = k->g;
	unsigned int share = KUNIT_PAGES >> GCMA_SAMPLE_SHIFT, i;
	unsigned long followers;
	pgoff_t hot, index;

	if (!IS_ENABLED(CONFIG_GCMA_ADMISSION))
		kunit_skip(test, "needs CONFIG_GCMA_ADMISSION");
	kunit_fill_area(k);
	hot = kunit_index(k, GCMA_FOLLOW);
	KUNIT_EXPECT_TRUE(test, kunit_evict_hot(k, hot));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_HOT], 1);

	/* the sample has its share, and is judged by what it recycles */
	for (i = 0; i < share + GCMA_WINDOW - 1; i++) {
		index = kunit_index(k, GCMA_HOT_SAMPLE);
		KUNIT_EXPECT_TRUE(test, kunit_evict_hot(k, index));
	}
	KUNIT_EXPECT_EQ(test, g->len[GCMA_HOT_SAMPLE], share);
	KUNIT_EXPECT_EQ(test, g->offers[GCMA_HOT_SAMPLE], GCMA_WINDOW - 1);
	KUNIT_EXPECT_FALSE(test, g->cool);
	g->hits[GCMA_HOT_SAMPLE] = GCMA_WINDOW / GCMA_HOT_RATE - 1;
	KUNIT_EXPECT_TRUE(test, kunit_evict_hot(k, kunit_index(k, GCMA_HOT_SAMPLE)));
	KUNIT_EXPECT_TRUE(test, g->cool);

	/* hot ones make room first, and others follow the samples */
	KUNIT_EXPECT_TRUE(test, kunit_is_tenant(k, hot));
	KUNIT_EXPECT_TRUE(test, kunit_evict_hot(k, kunit_index(k, GCMA_FOLLOW)));
	KUNIT_EXPECT_FALSE(test, kunit_load(k, hot, 1));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_HOT], 0);
	g->better = GCMA_ADMIT_HARDLY;
	KUNIT_EXPECT_FALSE(test, kunit_evict_hot(k, kunit_index(k, GCMA_FOLLOW)));
	/* but for the sample, and where an administrator has the last word */
	KUNIT_EXPECT_TRUE(test, kunit_evict_hot(k, kunit_index(k, GCMA_HOT_SAMPLE)));
	g->admission = GCMA_ADMIT_ALWAYS;
	KUNIT_EXPECT_TRUE(test, kunit_evict_hot(k, kunit_index(k, GCMA_FOLLOW)));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_HOT], 1);
	/* to whom others make room then */
	followers = g->len[GCMA_FOLLOW];
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	KUNIT_EXPECT_EQ(test, g->len[GCMA_FOLLOW], followers);
	KUNIT_EXPECT_EQ(test, g->len[GCMA_HOT], 1);
	g->admission = GCMA_ADMIT_ADAPTIVE;

	/* one that comes back is hot, as it was, and a vote */
	index = kunit_index(k, GCMA_HOT_SAMPLE);
	KUNIT_EXPECT_TRUE(test, kunit_evict_hot(k, index));
	i = g->hits[GCMA_HOT_SAMPLE];
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index, 1));
	KUNIT_EXPECT_EQ(test, g->hits[GCMA_HOT_SAMPLE], i + 1);
	KUNIT_EXPECT_TRUE(test, kunit_evict_hot(k, kunit_index(k, GCMA_HOT_SAMPLE)));

	/* it takes twice as many to be hot again */
	g->offers[GCMA_HOT_SAMPLE] = GCMA_WINDOW - 1;
	g->hits[GCMA_HOT_SAMPLE] = 2 * GCMA_WINDOW / GCMA_HOT_RATE - 1;
	g->since_hot = GCMA_WINDOW - 1;
	KUNIT_EXPECT_TRUE(test, kunit_evict_hot(k, kunit_index(k, GCMA_HOT_SAMPLE)));
	KUNIT_EXPECT_TRUE(test, g->cool);
	g->offers[GCMA_HOT_SAMPLE] = GCMA_WINDOW - 1;
	g->hits[GCMA_HOT_SAMPLE] = 2 * GCMA_WINDOW / GCMA_HOT_RATE;
	g->since_hot = GCMA_WINDOW - 1;
	KUNIT_EXPECT_TRUE(test, kunit_evict_hot(k, kunit_index(k, GCMA_HOT_SAMPLE)));
	KUNIT_EXPECT_FALSE(test, g->cool);

	/* so it is if all come back, and none makes room; and hits are no credit for long */
	g->cool = true;
	g->offers[GCMA_HOT_SAMPLE] = 2 * GCMA_WINDOW;
	g->hits[GCMA_HOT_SAMPLE] = 0;
	for (i = 0; i < 10 * GCMA_WINDOW; i++) {
		KUNIT_EXPECT_EQ(test, g->cool, i < GCMA_WINDOW);
		gcma_note_hit(g, GCMA_HOT_SAMPLE);
	}
	KUNIT_EXPECT_LT(test, g->hits[GCMA_HOT_SAMPLE], GCMA_WINDOW);
	kunit_check_settled(test);

	/* those do not come back, either, whose frames a primary takes */
	g->since_hot = 0;
	i = g->offers[GCMA_HOT_SAMPLE] + g->len[GCMA_HOT_SAMPLE];
	kunit_take(k, 0, KUNIT_PAGES);
	kunit_release(k, 0, KUNIT_PAGES);
	KUNIT_EXPECT_EQ(test, g->offers[GCMA_HOT_SAMPLE], i);
}

/* ------ nodes of shadows ------------------------------------------------ */

#ifdef CONFIG_MEMCG
/* A group gets no more nodes for tenants than there are tenants, or it has pages. */
static void __init gcma_test_node_pages(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	unsigned long all = global_node_page_state_pages(WORKINGSET_NODES);
	unsigned long before = gcma_node_pages(NULL, ULONG_MAX >> 20), after;

	kunit_fill_area(k);
	after = gcma_node_pages(NULL, ULONG_MAX >> 20);
	KUNIT_EXPECT_EQ(test, after, before + KUNIT_PAGES);
	KUNIT_EXPECT_EQ(test, gcma_node_pages(NULL, 0), 0);
	all = max(all, global_node_page_state_pages(WORKINGSET_NODES));
	KUNIT_EXPECT_LE(test, gcma_node_pages(NULL, all / 2 + 1),
			after * (all / 2 + 1) / max(all, 1UL) + 1);
}

static void kunit_charged(struct mem_cgroup *group, unsigned long pages, unsigned long max,
			  unsigned long high)
{
	atomic_long_set(&group->memory.usage, pages);
	group->memory.max = max;
	group->memory.high = high;
}

/* Nor more than it, and those that it is in, may still use. */
static void __init gcma_test_node_pages_limit(struct kunit *test)
{
	struct mem_cgroup *group = kunit_kzalloc(test, sizeof(*group), GFP_KERNEL);
	struct mem_cgroup *parent = kunit_kzalloc(test, sizeof(*parent), GFP_KERNEL);
	const unsigned long nodes = ULONG_MAX >> 20, none = PAGE_COUNTER_MAX;

	KUNIT_ASSERT_NOT_NULL(test, group);
	KUNIT_ASSERT_NOT_NULL(test, parent);
	group->css.parent = &parent->css;
	kunit_fill_area(test->priv);
	KUNIT_ASSERT_GE(test, gcma_node_pages(NULL, nodes), 8);
	kunit_charged(parent, 1000, none, none);
	kunit_charged(group, 1000, none, none);
	KUNIT_EXPECT_EQ(test, gcma_node_pages(group, nodes), gcma_node_pages(NULL, nodes));
	kunit_charged(group, 1000, 1007, none);
	KUNIT_EXPECT_EQ(test, gcma_node_pages(group, nodes), 7);
	kunit_charged(group, 1000, none, 1006);
	KUNIT_EXPECT_EQ(test, gcma_node_pages(group, nodes), 6);
	kunit_charged(group, 1000, 1000, none);
	KUNIT_EXPECT_EQ(test, gcma_node_pages(group, nodes), 0);
	kunit_charged(group, 1000, none, 900); /* beyond it, as it may be for a while */
	KUNIT_EXPECT_EQ(test, gcma_node_pages(group, nodes), 0);
	kunit_charged(group, 1000, 1007, none);
	kunit_charged(parent, 1000, 1005, none);
	KUNIT_EXPECT_EQ(test, gcma_node_pages(group, nodes), 5);
	kunit_charged(parent, 1000, none, 0);
	KUNIT_EXPECT_EQ(test, gcma_node_pages(group, nodes), 0);
}
#endif

/* ------ refusals ------------------------------------------------------ */

static bool __init kunit_refused(struct gcma_kunit *k, enum vm_event_item cause)
{
	unsigned long before = gcma_counter(k->g, cause);

	return !kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1) &&
	       gcma_counter(k->g, cause) == before + 1;
}

static void __init gcma_test_refused_fs(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;

	clear_bit(AS_TENANTS, &k->inode.i_data.flags);
	KUNIT_EXPECT_TRUE(test, kunit_refused(k, GCMA_refused_fs));
	mapping_set_tenants(&k->inode.i_data);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
}

/* Writes that nobody invalidates after; and a file that goes, or on f2fs only its content. */
static void __init gcma_test_refused_ended(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct address_space *mapping = &k->inode.i_data;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);

	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 1));
	mapping_end_tenants(mapping);
	KUNIT_EXPECT_TRUE(test, kunit_refused(k, GCMA_refused_fs));
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index, 1));
	mapping_set_tenants(mapping);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));

	set_bit(AS_EXITING, &mapping->flags);
	KUNIT_EXPECT_TRUE(test, kunit_refused(k, GCMA_refused_fs));
	clear_bit(AS_EXITING, &mapping->flags);
}

/* An invalidation that waits, and fails for the folio */
static void __init gcma_test_invalidate_busy(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio = kunit_read(k, index, 1);

	/* as with a buffer that somebody holds */
	set_bit(PG_dirty, &folio->flags);
	KUNIT_EXPECT_EQ(test, invalidate_inode_pages2_range(&k->inode.i_data, index, index),
			-EBUSY);
	clear_bit(PG_dirty, &folio->flags);
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
	KUNIT_EXPECT_TRUE(test, kunit_is_shadow(k, index));
}

static void __init gcma_test_refused_private(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;

	k->inode.i_flags = S_ENCRYPTED;
	KUNIT_EXPECT_TRUE(test, kunit_refused(k, GCMA_refused_private));
	k->inode.i_flags = 0;
}

static void __init gcma_test_refused_partial(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio = kunit_read(k, index, 1);

	/* as a buffer head leaves a page of which it read a block */
	folio_clear_uptodate(folio);
	KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
	KUNIT_EXPECT_TRUE(test, kunit_is_shadow(k, index));
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_refused_partial), 1);
}

static void __init gcma_test_refused_failed(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;

	mapping_set_error(&k->inode.i_data, -EIO);
	KUNIT_EXPECT_TRUE(test, kunit_refused(k, GCMA_refused_failed));
	k->inode.i_data.wb_err = 0;
}

/* The error is noted when the page was evicted already. */
static void __init gcma_test_failed_later(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);

	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 1));
	mapping_set_error(&k->inode.i_data, -EIO);
	KUNIT_EXPECT_FALSE(test, kunit_load(k, index, 1));
	k->inode.i_data.wb_err = 0;
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_loads), 0);
}

static void __init gcma_test_refused_large(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct folio *folio;
	pgoff_t index;

	if (IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE)) {
		do {
			index = kunit_index(k, GCMA_FOLLOW);
		} while (!IS_ALIGNED(index, 2 << GCMA_MAX_ORDER));
		folio = kunit_add_large(k, index, GCMA_MAX_ORDER + 1, 1);
		KUNIT_EXPECT_TRUE(test, kunit_reclaim(k, folio));
		KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_refused_large),
				2 << GCMA_MAX_ORDER);
	}
	if (IS_ENABLED(CONFIG_64BIT)) {
		KUNIT_EXPECT_FALSE(test, kunit_evict(k, 1UL + U32_MAX, 1));
		KUNIT_EXPECT_TRUE(test, kunit_evict(k, U32_MAX, 1));
	}
}

/* A frame whose memory failed is not lent, read, or given to a primary. */
static void __init gcma_test_poison(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long frame;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "needs CONFIG_MEMORY_FAILURE");

	kunit_evict(k, index, 1);
	frame = kunit_frame(k, index);
	SetPageHWPoison(cma_page(&k->cma, frame));
	KUNIT_EXPECT_FALSE(test, kunit_load(k, index, 1));
	kunit_check_settled(test);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
	KUNIT_EXPECT_NE(test, kunit_frame(k, index), frame);
	ClearPageHWPoison(cma_page(&k->cma, frame));

	/* the frame left the list; a primary that passes through restores it */
	kunit_take(k, frame, 1);
	kunit_release(k, frame, 1);
}

/* ------ primaries ----------------------------------------------------- */

static void __init gcma_test_alloc_release(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct page *page, *rest;

	KUNIT_EXPECT_NULL(test, cma_alloc(&k->cma, 0, 0, true));
	KUNIT_EXPECT_NULL(test, cma_alloc(&k->cma, KUNIT_PAGES + 1, 0, true));

	/* the whole area, full of tenants; released in parts */
	kunit_fill_area(k);
	page = cma_alloc(&k->cma, KUNIT_PAGES, 0, true);
	KUNIT_ASSERT_PTR_EQ(test, page, cma_page(&k->cma, 0));
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), 0);
	KUNIT_EXPECT_NULL(test, cma_alloc(&k->cma, 1, 0, true));
	KUNIT_EXPECT_FALSE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));

	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page + 16, 16));
	rest = cma_alloc(&k->cma, 8, 3, true);
	KUNIT_EXPECT_PTR_EQ(test, rest, page + 16);
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page, 24));
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page + 32,
					    KUNIT_PAGES - 32));
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_revoked), KUNIT_PAGES);
	KUNIT_EXPECT_EQ(test, k->g->len[GCMA_FREE_LIST], KUNIT_PAGES);
}

#ifdef CONFIG_GCMA_DIRTY
/* Own a frame for a page that is going to be nowhere else. Returns its entry. */
static void *kunit_own_dirty(struct kunit *test, u32 frame)
{
	struct gcma_kunit *k = test->priv;
	void *entry;

	scoped_guard(spinlock_irqsave, &k->g->lock) {
		KUNIT_EXPECT_TRUE(test, gcma_take_frame(k->g, frame));
		entry = gcma_own(k->g, frame, GCMA_DIRTY, &k->inode.i_data, 0, NULL);
		set_bit(frame, k->g->dirty);
		atomic_inc(&k->g->nr_dirty);
	}
	return entry;
}

/* Such a page, which no slot has: it cannot be placed anywhere. */
static void *kunit_store_dirty(struct kunit *test, u32 frame)
{
	struct gcma_kunit *k = test->priv;
	void *entry = kunit_own_dirty(test, frame);

	gcma_disown(k->g, frame);
	return entry;
}

static void kunit_drop_dirty(struct kunit *test, void *entry)
{
	struct gcma_kunit *k = test->priv;
	u32 frame;

	KUNIT_EXPECT_PTR_EQ(test, gcma_claim(entry, &frame, &k->inode.i_data, 0), k->g);
	gcma_put(k->g, frame, GCMA_refused_busy);
}

static long kunit_take_far(struct gcma_kunit *k, u32 first)
{
	guard(spinlock_irqsave)(&k->g->lock);
	return gcma_take_far(k->g, first);
}

static void kunit_put_far(struct gcma_kunit *k, u32 frame)
{
	scoped_guard(spinlock_irqsave, &k->g->lock)
		gcma_own(k->g, frame, GCMA_DIRTY, &k->inode.i_data, 0, NULL);
	gcma_put(k->g, frame, GCMA_refused_busy);
}

/* However many runs of frames are primaries' or dirty, the one that is free is found. */
static void __init gcma_test_dirty_far(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	u32 frame;

	for (frame = 0; frame < 80; frame += 2) {
		__set_bit(frame, k->cma.bitmap);
		__set_bit(frame + 1, k->g->dirty);
	}
	bitmap_set(k->g->dirty, 81, KUNIT_PAGES - 81);
	k->g->hand = KUNIT_PAGES;
	frame = kunit_take_far(k, 0);
	KUNIT_ASSERT_EQ(test, frame, 80);
	kunit_put_far(k, frame);
	/* also if the search begins behind it */
	KUNIT_ASSERT_EQ(test, kunit_take_far(k, 0), 80);
	kunit_put_far(k, 80);
	KUNIT_EXPECT_EQ(test, kunit_take_far(k, 81), -1);
	__set_bit(80, k->g->dirty);
	KUNIT_EXPECT_EQ(test, kunit_take_far(k, 0), -1);
	__clear_bit(0, k->cma.bitmap);
	KUNIT_ASSERT_EQ(test, kunit_take_far(k, 0), 0);
	kunit_put_far(k, 0);
	bitmap_zero(k->cma.bitmap, KUNIT_PAGES);
	bitmap_zero(k->g->dirty, KUNIT_PAGES);
}

/*
 * The last frames are a primary's, dirty or bad: reclaim leaves no folio dirty for want of one
 * until one of them comes back. It does if somebody owns one: he is about to let go of it.
 */
static void __init gcma_test_dirty_full(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	u32 first = KUNIT_PAGES - k->g->dirty_max, last = KUNIT_PAGES - 1;
	void *entry;

	static_branch_inc(&gcma_dirty_key);
	bitmap_set(k->cma.bitmap, first, last - first);
	entry = kunit_store_dirty(test, last);
	KUNIT_EXPECT_FALSE(test, k->g->full);
	KUNIT_EXPECT_EQ(test, kunit_take_far(k, first), -1);
	KUNIT_EXPECT_TRUE(test, k->g->full);
	kunit_drop_dirty(test, entry);
	KUNIT_EXPECT_FALSE(test, k->g->full);

	KUNIT_ASSERT_EQ(test, kunit_take_far(k, first), last);
	scoped_guard(spinlock_irqsave, &k->g->lock)
		gcma_own(k->g, last, GCMA_FOLLOW, &k->inode.i_data, 0, NULL);
	KUNIT_EXPECT_EQ(test, kunit_take_far(k, first), -1);
	KUNIT_EXPECT_FALSE(test, k->g->full);
	gcma_put(k->g, last, GCMA_refused_busy);

	if (IS_ENABLED(CONFIG_MEMORY_FAILURE)) {
		SetPageHWPoison(cma_page(&k->cma, last));
		KUNIT_EXPECT_EQ(test, kunit_take_far(k, first), -1);
		KUNIT_EXPECT_TRUE(test, k->g->full);
		/* of more frames than the last ones that is not said */
		KUNIT_EXPECT_EQ(test, gcma_set_dirty_max(k->g, KUNIT_PAGES), 0);
		KUNIT_EXPECT_FALSE(test, k->g->full);
		KUNIT_EXPECT_EQ(test, gcma_set_dirty_max(k->g, KUNIT_PAGES - first), 0);
		KUNIT_EXPECT_EQ(test, kunit_take_far(k, first), -1);
		KUNIT_EXPECT_TRUE(test, k->g->full);
		ClearPageHWPoison(cma_page(&k->cma, last));
	}

	bitmap_clear(k->cma.bitmap, first, last - first);
	gcma_lend(k->cma.reserve, first, last - first + 1);
	KUNIT_EXPECT_FALSE(test, k->g->full);
	static_branch_dec(&gcma_dirty_key);
}

/* Whatever a bit of the bitmap stands for */
static void __init gcma_test_dirty_far_order(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	unsigned int order;
	u32 frame;

	for (order = 0; order <= ilog2(KUNIT_PAGES); order++) {
		k->cma.order_per_bit = order;
		frame = KUNIT_PAGES - (1 << order);
		bitmap_set(k->cma.bitmap, 0, frame >> order);
		if (order)
			__set_bit(frame++, k->g->dirty);
		k->g->hand = 1;
		KUNIT_ASSERT_EQ(test, kunit_take_far(k, 0), frame);
		kunit_put_far(k, frame);
		bitmap_zero(k->cma.bitmap, KUNIT_PAGES);
		bitmap_zero(k->g->dirty, KUNIT_PAGES);
	}
}

/* Frames that cannot be taken just now are in the way of one search, not of the next. */
static void __init gcma_test_dirty_hand(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	const u32 first = 400, nr = 40;
	unsigned int tries = 0;
	long frame;
	u32 i;

	scoped_guard(spinlock_irqsave, &k->g->lock) {
		for (i = first; i < first + nr; i++) {
			KUNIT_EXPECT_TRUE(test, gcma_take_frame(k->g, i));
			gcma_own(k->g, i, GCMA_FOLLOW, &k->inode.i_data, 0, NULL);
		}
	}
	k->g->hand = first;
	do {
		frame = kunit_take_far(k, first);
	} while (frame < 0 && ++tries < nr);
	KUNIT_EXPECT_EQ(test, frame, first + nr);
	KUNIT_EXPECT_LE(test, tries, 3);
	if (frame >= 0)
		kunit_put_far(k, frame);
	for (i = first; i < first + nr; i++)
		gcma_put(k->g, i, GCMA_refused_busy);
}

/* Who copies a page into a frame does not get to run: a primary looks elsewhere. */
static void __init gcma_test_dirty_owner(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct page *page;
	u32 frame = 3;

	static_branch_inc(&gcma_dirty_key);
	kunit_own_dirty(test, frame);
	page = cma_alloc(&k->cma, 8, 3, true);
	KUNIT_EXPECT_PTR_EQ(test, page, cma_page(&k->cma, 8));
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page, 8));

	gcma_put(k->g, frame, GCMA_refused_busy);
	page = cma_alloc(&k->cma, 8, 3, true);
	KUNIT_EXPECT_PTR_EQ(test, page, cma_page(&k->cma, 0));
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page, 8));
	static_branch_dec(&gcma_dirty_key);
}

/* A primary that was killed waits for nobody, and does not look elsewhere. */
static void __init gcma_test_dirty_owner_killed(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	void *entry;
	u32 frame = 3;

	static_branch_inc(&gcma_dirty_key);
	kunit_own_dirty(test, frame);
	allow_signal(SIGKILL);
	send_sig(SIGKILL, current, 1);
	KUNIT_EXPECT_NULL(test, cma_alloc(&k->cma, 8, 3, true));
	gcma_put(k->g, frame, GCMA_refused_busy);
	entry = kunit_store_dirty(test, frame);
	KUNIT_EXPECT_NULL(test, cma_alloc(&k->cma, 8, 3, true));
	flush_signals(current);
	disallow_signal(SIGKILL);
	kunit_drop_dirty(test, entry);
	kunit_check_settled(test);
	static_branch_dec(&gcma_dirty_key);
}

/* Somebody has a slot for himself: a primary looks elsewhere. */
static void __init gcma_test_dirty_held(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct page *page;
	void *entry;

	static_branch_inc(&gcma_dirty_key);
	entry = kunit_store_dirty(test, 3);
	page = cma_alloc(&k->cma, 8, 3, true);
	KUNIT_EXPECT_PTR_EQ(test, page, cma_page(&k->cma, 8));
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page, 8));
	KUNIT_EXPECT_EQ(test, gcma_set_swap_policy(k->g, GCMA_PUT_BACK), -EBUSY);
	KUNIT_EXPECT_EQ(test, k->g->swap_policy, GCMA_WRITE_THROUGH);
	kunit_drop_dirty(test, entry);
	static_branch_dec(&gcma_dirty_key);
}

/* What could not be drained is tried again, whatever the limit was before. */
static void __init gcma_test_dirty_max(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	void *entry;

	static_branch_inc(&gcma_dirty_key);
	entry = kunit_store_dirty(test, 3);
	KUNIT_EXPECT_NE(test, gcma_set_dirty_max(k->g, 16), 0);
	KUNIT_EXPECT_NE(test, gcma_set_dirty_max(k->g, 16), 0);
	KUNIT_EXPECT_NE(test, gcma_set_dirty_max(k->g, 17), 0);
	KUNIT_EXPECT_EQ(test, gcma_set_dirty_max(k->g, KUNIT_PAGES - 3), 0);
	KUNIT_EXPECT_EQ(test, gcma_set_dirty_max(k->g, KUNIT_PAGES + 1), -EINVAL);
	kunit_drop_dirty(test, entry);
	KUNIT_EXPECT_EQ(test, gcma_set_dirty_max(k->g, 16), 0);
	static_branch_dec(&gcma_dirty_key);
}

struct kunit_settles {
	struct timer_list timer;
	struct gcma *g;
};

#define KUNIT_AHEAD	9	/* frames that are drained, one after the other */
#define KUNIT_BEHIND	4

/* A primary moves what is waited for to where the drain has been; some time later it is gone. */
static void kunit_moves(struct timer_list *timer)
{
	struct kunit_settles *settles = from_timer(settles, timer, timer);

	if (!test_bit(KUNIT_AHEAD, settles->g->dirty)) {
		clear_bit(KUNIT_BEHIND, settles->g->dirty);
		return;
	}
	set_bit(KUNIT_BEHIND, settles->g->dirty);
	clear_bit(KUNIT_AHEAD, settles->g->dirty);
	mod_timer(timer, jiffies + 4);
}

/* When fewer are allowed none is left beyond the limit, whatever moved meanwhile. */
static void __init gcma_test_dirty_behind(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct kunit_settles settles = { .g = k->g };

	timer_setup_on_stack(&settles.timer, kunit_moves, 0);
	set_bit(KUNIT_AHEAD, k->g->dirty);
	mod_timer(&settles.timer, jiffies + 4);
	KUNIT_EXPECT_EQ(test, gcma_set_dirty_max(k->g, KUNIT_PAGES - KUNIT_AHEAD - 1), 0);
	KUNIT_EXPECT_FALSE(test, test_bit(KUNIT_AHEAD, k->g->dirty));
	KUNIT_EXPECT_FALSE(test, test_bit(KUNIT_BEHIND, k->g->dirty));
	timer_delete_sync(&settles.timer);
	destroy_timer_on_stack(&settles.timer);
	clear_bit(KUNIT_BEHIND, k->g->dirty);
}

static void kunit_settle(struct timer_list *timer)
{
	struct kunit_settles *settles = from_timer(settles, timer, timer);

	atomic_dec(&settles->g->nr_dirty);
}

/* Who waits for a tenant that is not in sight, as one that is moved is not, can be killed. */
static void __init gcma_test_dirty_killed(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct kunit_settles settles = { .g = k->g };

	timer_setup_on_stack(&settles.timer, kunit_settle, 0);
	atomic_inc(&k->g->nr_dirty);
	mod_timer(&settles.timer, jiffies + HZ / 2);
	allow_signal(SIGKILL);
	send_sig(SIGKILL, current, 1);
	KUNIT_EXPECT_EQ(test, gcma_set_swap_policy(k->g, GCMA_WRITE_THROUGH), -EINTR);
	flush_signals(current);
	disallow_signal(SIGKILL);
	KUNIT_EXPECT_EQ(test, gcma_set_swap_policy(k->g, GCMA_WRITE_THROUGH), 0);
	timer_delete_sync(&settles.timer);
	destroy_timer_on_stack(&settles.timer);
}

static int kunit_set;

static void kunit_set_policy(struct gcma_kunit *k)
{
	kunit_set = gcma_set_swap_policy(k->g, GCMA_WRITE_THROUGH);
}

/* So can be who waits for the one who waits. */
static void __init gcma_test_dirty_second_killed(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct kunit_settles settles = { .g = k->g };

	kunit_open_aside(test, KUNIT_CLOSED, kunit_set_policy);
	timer_setup_on_stack(&settles.timer, kunit_settle, 0);
	atomic_inc(&k->g->nr_dirty);
	mod_timer(&settles.timer, jiffies + HZ);
	complete(&kunit_aside.go);
	msleep(50);
	allow_signal(SIGKILL);
	send_sig(SIGKILL, current, 1);
	KUNIT_EXPECT_EQ(test, gcma_set_dirty_max(k->g, KUNIT_PAGES), -EINTR);
	KUNIT_EXPECT_EQ(test, gcma_set_swap_policy(k->g, GCMA_WRITE_THROUGH), -EINTR);
	flush_signals(current);
	disallow_signal(SIGKILL);
	KUNIT_EXPECT_EQ(test, gcma_nr_dirty(k->g), 1);
	KUNIT_EXPECT_EQ(test, k->g->dirty_max, KUNIT_PAGES / 2);
	kunit_close_aside(test);
	KUNIT_EXPECT_EQ(test, kunit_set, 0);
	timer_delete_sync(&settles.timer);
	destroy_timer_on_stack(&settles.timer);
}

static bool kunit_gave_up;

static void kunit_give_up(struct gcma_kunit *k)
{
	kunit_gave_up = gcma_give_up(&k->inode.i_data, k->index);
}

/* The tenant that readahead gives up is another one by now, which is nowhere else. */
static void __init gcma_test_dirty_not_given_up(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct xarray *pages = &k->inode.i_data.i_pages;
	unsigned int us = 0;
	u32 frame;

	static_branch_inc(&gcma_dirty_key);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
	frame = kunit_frame(k, index);
	kunit_open_aside(test, KUNIT_CLOSED, kunit_give_up);
	xa_lock_irq(pages);
	complete(&kunit_aside.go);
	while (!spin_is_contended(&pages->xa_lock) && us++ < 100000)
		udelay(1);
	set_bit(frame, k->g->dirty);
	atomic_inc(&k->g->nr_dirty);
	xa_unlock_irq(pages);
	kunit_close_aside(test);
	KUNIT_EXPECT_FALSE(test, kunit_gave_up);
	KUNIT_EXPECT_TRUE(test, kunit_is_tenant(k, index));
	if (gcma_is_dirty(k->g, frame))
		gcma_dirty_clear(k->g, frame);
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index, 1));
	static_branch_dec(&gcma_dirty_key);
}

/* Of a large folio any frame may fail, not only the last. */
static void __init gcma_test_dirty_failed(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	void *copies = NULL;
	u32 frame;

	static_branch_inc(&gcma_dirty_key);
	for (frame = 3; frame < 6; frame++) {
		void *entry = kunit_own_dirty(test, frame);

		WRITE_ONCE(k->g->frames[frame].shadow, copies);
		copies = entry;
	}
	KUNIT_EXPECT_FALSE(test, gcma_copies_failed(copies));
	for (frame = 3; IS_ENABLED(CONFIG_MEMORY_FAILURE) && frame < 6; frame++) {
		SetPageHWPoison(cma_page(&k->cma, frame));
		KUNIT_EXPECT_TRUE(test, gcma_copies_failed(copies));
		ClearPageHWPoison(cma_page(&k->cma, frame));
	}
	gcma_put_all(copies, GCMA_refused_failed);
	kunit_check_settled(test);
	static_branch_dec(&gcma_dirty_key);
}

static bool kunit_has(struct gcma_kunit *k, unsigned long frame, u8 pattern)
{
	return !memchr_inv(page_address(cma_page(&k->cma, frame)), pattern, PAGE_SIZE);
}

/* With init_on_free nothing is left of those tenants that went before a range was refused. */
static void __init gcma_test_refused_cleared(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	bool was = want_init_on_free();
	unsigned long frame;
	void *entry;

	static_branch_enable(&init_on_free);
	static_branch_inc(&gcma_dirty_key);
	kunit_fill_area(k);
	entry = kunit_store_dirty(test, 3);
	memset(page_address(cma_page(&k->cma, 3)), 2, PAGE_SIZE);
	bitmap_set(k->cma.bitmap, 0, 8);
	KUNIT_EXPECT_NE(test, cma_reserve_take(&k->cma, gcma_pfn(k->g, 0), 8, GFP_KERNEL), 0);
	for (frame = 0; frame < 9; frame++)
		KUNIT_EXPECT_TRUE(test, kunit_has(k, frame, frame == 3 ? 2 : frame == 8));
	kunit_drop_dirty(test, entry);
	KUNIT_EXPECT_TRUE(test, kunit_has(k, 3, 0));
	static_branch_dec(&gcma_dirty_key);
	if (!was)
		static_branch_disable(&init_on_free);
}

#define KUNIT_OWNED	5	/* frame that is about to be dirty */

/* Give back a frame that a primary came for, once he has wiped what is before it. */
static void kunit_come_too_late(struct gcma_kunit *k)
{
	unsigned int waited = 0;

	while (!kunit_has(k, KUNIT_OWNED - 1, 0) && waited++ < 1000)
		usleep_range(1000, 2000);
	usleep_range(1000, 2000);
	gcma_dirty_clear(k->g, KUNIT_OWNED);
	gcma_put(k->g, KUNIT_OWNED, GCMA_refused_busy);
}

/* Nor is of what was in a frame that nothing was copied into. */
static void __init gcma_test_refused_uncopied(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	bool was = want_init_on_free();
	void *entry;

	kunit_open_aside(test, KUNIT_CLOSED, kunit_come_too_late);
	static_branch_enable(&init_on_free);
	static_branch_inc(&gcma_dirty_key);
	kunit_fill_area(k);
	entry = kunit_store_dirty(test, 3);
	kunit_own_dirty(test, KUNIT_OWNED);
	bitmap_set(k->cma.bitmap, 0, 8);
	complete(&kunit_aside.go);
	KUNIT_EXPECT_NE(test, gcma_revoke(k->cma.reserve, 0, 8), 0);
	kunit_close_aside(test);
	KUNIT_EXPECT_FALSE(test, kunit_has(k, 3, 0));
	KUNIT_EXPECT_TRUE(test, kunit_has(k, KUNIT_OWNED, 0));
	kunit_drop_dirty(test, entry);
	atomic_long_sub(8, &k->cma.reserve->nr_available);
	kunit_release(k, 0, 8);
	static_branch_dec(&gcma_dirty_key);
	if (!was)
		static_branch_disable(&init_on_free);
}
#endif

/* Nor is a large folio read of which any page failed, and not only the first. */
static void __init gcma_test_poison_large(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	long failed = gcma_counter(k->g, GCMA_refused_failed);
	struct folio *folio;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE) || !IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "needs CONFIG_MEMORY_FAILURE and large folios");
	folio = kunit_add_large(k, index, 2, 1);
	folio_lock(folio);
	folio_set_has_hwpoisoned(folio);
	KUNIT_EXPECT_NULL(test, gcma_store_begin(folio->mapping, folio, gcma_passes()));
	folio_clear_has_hwpoisoned(folio);
	KUNIT_EXPECT_EQ(test, gcma_counter(k->g, GCMA_refused_failed), failed + 4);
	folio_unlock(folio);
	folio_put(folio);
}

/* Nobody touches memory that failed, even to clear it. */
static void __init gcma_test_poison_untouched(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	bool was = want_init_on_free();
	unsigned long frame;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "needs CONFIG_MEMORY_FAILURE");

	static_branch_enable(&init_on_free);
	kunit_evict(k, index, 1);
	frame = kunit_frame(k, index);
	SetPageHWPoison(cma_page(&k->cma, frame));
	KUNIT_EXPECT_TRUE(test, kunit_forget(k, index));
	ClearPageHWPoison(cma_page(&k->cma, frame));
	KUNIT_EXPECT_EQ(test, *(u8 *)page_address(cma_page(&k->cma, frame)), 1);
	if (!was)
		static_branch_disable(&init_on_free);
}

/* An area that could not be activated has a policy and no tenants. */
static void __init gcma_test_dead_area(struct kunit *test)
{
	struct cma dead = { .policy = &gcma_policy };
	struct gcma_kunit *k = test->priv;

	KUNIT_EXPECT_NULL(test, gcma_of(&dead));
	KUNIT_EXPECT_PTR_EQ(test, gcma_of(&k->cma), k->g);
	k->cma.policy = NULL;
	KUNIT_EXPECT_NULL(test, gcma_of(&k->cma));
	k->cma.policy = &gcma_policy;
}

/* A page in use when it is released holds no tenant before it is given up. */
static void __init gcma_test_quarantine(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct page *page = cma_alloc(&k->cma, 8, 0, true);
	unsigned long frame = page_to_pfn(page) - k->cma.base_pfn;

	get_page(page + 3);
	cma_release(&k->cma, page, 8);
	KUNIT_EXPECT_TRUE(test, gcma_revoked(k->g, frame + 3));
	kunit_fill_area(k);
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), KUNIT_PAGES - 1);
	kunit_check_settled(test);

	put_page(page + 3);
	mod_delayed_work(system_wq, &k->cma.reserve->work, 0);
	flush_delayed_work(&k->cma.reserve->work);
	KUNIT_EXPECT_EQ(test, k->g->len[GCMA_FREE_LIST], 1);
}

/* One bit for four pages: what shares it is not lent either. */
static void __init gcma_test_order_per_bit(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct page *page;

	k->cma.order_per_bit = 2;
	page = cma_alloc(&k->cma, 5, 0, true);
	kunit_fill_area(k);
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), KUNIT_PAGES - 8);
	cma_release(&k->cma, page, 5);
	kunit_fill_area(k);
	KUNIT_EXPECT_EQ(test, kunit_tenants(k), KUNIT_PAGES);
}

/* With init_on_free a primary finds nothing in them, either. */
static void __init gcma_test_order_per_bit_cleared(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	bool was = want_init_on_free();
	struct page *page;

	static_branch_enable(&init_on_free);
	k->cma.order_per_bit = 2;
	kunit_fill_area(k);
	page = cma_alloc(&k->cma, 5, 0, true);
	KUNIT_EXPECT_PTR_EQ(test, page, cma_page(&k->cma, 0));
	KUNIT_EXPECT_NULL(test, memchr_inv(k->memory, 0, 8 * PAGE_SIZE));
	KUNIT_EXPECT_NULL(test, memchr_inv(k->memory + 8 * PAGE_SIZE, 1, PAGE_SIZE));
	cma_release(&k->cma, page, 5);
	if (!was)
		static_branch_disable(&init_on_free);
}

/* Nor stays in what shares a bit with failed memory, which is never given up. */
static void __init gcma_test_order_per_bit_poisoned(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	bool was = want_init_on_free();
	struct page *page, *poisoned = cma_page(&k->cma, 1);

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "needs CONFIG_MEMORY_FAILURE");
	static_branch_enable(&init_on_free);
	k->cma.order_per_bit = 2;
	kunit_fill_area(k);
	SetPageHWPoison(poisoned);
	num_poisoned_pages_inc(page_to_pfn(poisoned));
	page = cma_alloc(&k->cma, 4, 0, true);
	KUNIT_EXPECT_PTR_EQ(test, page, cma_page(&k->cma, 4));
	KUNIT_EXPECT_NULL(test, memchr_inv(k->memory, 0, PAGE_SIZE));
	KUNIT_EXPECT_NULL(test, memchr_inv(k->memory + PAGE_SIZE, 1, PAGE_SIZE));
	KUNIT_EXPECT_NULL(test, memchr_inv(k->memory + 2 * PAGE_SIZE, 0, 6 * PAGE_SIZE));
	num_poisoned_pages_sub(page_to_pfn(poisoned), 1);
	ClearPageHWPoison(poisoned);
	cma_release(&k->cma, page, 4);
	flush_delayed_work(&k->cma.reserve->work);
	if (!was)
		static_branch_disable(&init_on_free);
}

/* ------ the area and the file of each test ---------------------------- */

static int __init kunit_suite_init(struct kunit_suite *suite)
{
	return register_trace_gcma_copy(kunit_at_copy, NULL) ?:
	       register_trace_gcma_store(kunit_at_store, NULL) ?:
	       register_trace_gcma_fill(kunit_at_fill, NULL) ?:
	       register_trace_mm_filemap_add_to_page_cache(kunit_at_add, NULL) ?:
	       register_trace_mm_vmscan_lru_isolate(kunit_at_isolate, NULL);
}

static void __init kunit_suite_exit(struct kunit_suite *suite)
{
	unregister_trace_mm_vmscan_lru_isolate(kunit_at_isolate, NULL);
	unregister_trace_mm_filemap_add_to_page_cache(kunit_at_add, NULL);
	unregister_trace_gcma_fill(kunit_at_fill, NULL);
	unregister_trace_gcma_store(kunit_at_store, NULL);
	unregister_trace_gcma_copy(kunit_at_copy, NULL);
	tracepoint_synchronize_unregister();
}

static void __init kunit_init_file(struct gcma_kunit *k)
{
	struct inode *inode = &k->inode;

	inode_init_once(inode);
	spin_lock_init(&inode->i_lock);
	init_rwsem(&inode->i_data.invalidate_lock);
	atomic_set(&inode->i_count, 1);	/* keeps it off its LRU list */
	inode->i_sb = &k->sb;
	inode->i_mode = S_IFREG;
	inode->i_mapping = &inode->i_data;
	inode->i_data.host = inode;
	inode->i_data.a_ops = &kunit_aops;
	mapping_set_gfp_mask(&inode->i_data, GFP_KERNEL);
	mapping_set_large_folios(&inode->i_data);
	mapping_set_tenants(&inode->i_data);
}

static int __init gcma_kunit_init(struct kunit *test)
{
	struct gcma_kunit *k;

	k = kunit_kzalloc(test, sizeof(*k), GFP_KERNEL);
	if (!k)
		return -ENOMEM;

	k->memory = alloc_pages_exact(KUNIT_PAGES << PAGE_SHIFT, GFP_KERNEL);
	k->cma.bitmap = bitmap_zalloc(KUNIT_PAGES, GFP_KERNEL);
	if (!k->memory || !k->cma.bitmap)
		return -ENOMEM; /* once, at boot: let it leak */
	strscpy(k->cma.name, "kunit");
	k->cma.base_pfn = PHYS_PFN(virt_to_phys(k->memory));
	k->cma.count = KUNIT_PAGES;
	k->cma.policy = &gcma_policy;
	spin_lock_init(&k->cma.lock);
	if (cma_reserve_create(&k->cma))
		return -ENOMEM;

	k->g = gcma_of(&k->cma);
	kunit_init_file(k);
	test->priv = k;
	return 0;
}

/* Every test leaves all frames where they belong, and truncation empties them. */
static void __init gcma_kunit_exit(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;

	if (!k)
		return;
	kunit_check_settled(test);
	truncate_inode_pages(&k->inode.i_data, 0);
	KUNIT_EXPECT_TRUE(test, mapping_empty(&k->inode.i_data));
	kunit_check_settled(test);

	static_branch_dec(&gcma_key);
	gcma_nr_frames -= KUNIT_PAGES;
	gcma_nr_areas--;

	cancel_delayed_work_sync(&k->cma.reserve->work);
	gcma_dirty_free(k->g);
	vfree(k->g->frames);
	free_percpu(k->g->counters);
	memset(k->g, 0, sizeof(*k->g));
	cma_reserve_free(k->cma.reserve);
	bitmap_free(k->cma.bitmap);
	free_pages_exact(k->memory, KUNIT_PAGES << PAGE_SHIFT);
}

static struct kunit_case __refdata gcma_kunit_cases[] = {
	KUNIT_CASE(gcma_test_entry),
	KUNIT_CASE(gcma_test_areas),
	KUNIT_CASE(gcma_test_generation_wrap),
	KUNIT_CASE(gcma_test_wrapped_entry),
	KUNIT_CASE(gcma_test_store_load),
	KUNIT_CASE(gcma_test_not_for_writers),
	KUNIT_CASE(gcma_test_store_not_committed),
	KUNIT_CASE(gcma_test_only_reclaim_stores),
	KUNIT_CASE(gcma_test_readahead_mark),
	KUNIT_CASE(gcma_test_large_folio),
	KUNIT_CASE(gcma_test_large_load),
	KUNIT_CASE(gcma_test_drop),
	KUNIT_CASE(gcma_test_drop_node),
	KUNIT_CASE(gcma_test_recycle),
#ifdef CONFIG_LRU_GEN_ENABLED
	KUNIT_CASE(gcma_test_recycle_generations),
#endif
	KUNIT_CASE(gcma_test_shadow_revoked),
	KUNIT_CASE(gcma_test_invalidate_while_storing),
	KUNIT_CASE(gcma_test_invalidate_and_read),
	KUNIT_CASE(gcma_test_invalidate_before_store),
	KUNIT_CASE(gcma_test_invalidate_isolated),
	KUNIT_CASE(gcma_test_invalidate_while_publishing),
	KUNIT_CASE(gcma_test_invalidate_split),
	KUNIT_CASE(gcma_test_direct_write),
	KUNIT_CASE(gcma_test_invalidate_shared),
	KUNIT_CASE(gcma_test_invalidate_part),
	KUNIT_CASE(gcma_test_passes_wrap),
#ifdef CONFIG_MEMCG
	KUNIT_CASE(gcma_test_invalidate_scanned),
#endif
	KUNIT_CASE(gcma_test_invalidate_while_loading),
	KUNIT_CASE(gcma_test_invalidate_while_loading_large),
	KUNIT_CASE(gcma_test_truncate_while_loading),
	KUNIT_CASE(gcma_test_two_readers),
	KUNIT_CASE(gcma_test_two_readers_large),
#ifdef CONFIG_FAILSLAB
	KUNIT_CASE(gcma_test_large_load_retried),
#endif
	KUNIT_CASE(gcma_test_invalidate_part_refilled),
	KUNIT_CASE(gcma_test_accessed_once),
	KUNIT_CASE(gcma_test_never_seen_locked),
	KUNIT_CASE(gcma_test_scrub_while_storing),
	KUNIT_CASE(gcma_test_take_while_storing),
	KUNIT_CASE(gcma_test_scrub_while_stored),
	KUNIT_CASE(gcma_test_store_while_scrubbing),
	KUNIT_CASE(gcma_test_scrub_in_batches),
	KUNIT_CASE(gcma_test_take_after_fill),
	KUNIT_CASE(gcma_test_take_while_loading_large),
	KUNIT_CASE(gcma_test_scrub_while_loading),
	KUNIT_CASE(gcma_test_put_while_taken),
	KUNIT_CASE(gcma_test_owned_while_loading),
	KUNIT_CASE(gcma_test_recycle_while_taken),
	KUNIT_CASE(gcma_test_wait_for_copies),
	KUNIT_CASE(gcma_test_wait_for_bits),
	KUNIT_CASE_SLOW(gcma_test_storm),
	KUNIT_CASE(gcma_test_placement),
	KUNIT_CASE(gcma_test_admission),
	KUNIT_CASE(gcma_test_samples),
	KUNIT_CASE(gcma_test_balance),
	KUNIT_CASE(gcma_test_no_share),
	KUNIT_CASE(gcma_test_one_visit),
	KUNIT_CASE(gcma_test_lost),
	KUNIT_CASE(gcma_test_held),
	KUNIT_CASE(gcma_test_hot),
	KUNIT_CASE(gcma_test_no_share_stays),
	KUNIT_CASE(gcma_test_hot_turn),
	KUNIT_CASE(gcma_test_cool),
	KUNIT_CASE(gcma_test_hint),
	KUNIT_CASE(gcma_test_run),
	KUNIT_CASE(gcma_test_narrow),
	KUNIT_CASE(gcma_test_narrow_amid),
	KUNIT_CASE(gcma_test_blocks),
	KUNIT_CASE(gcma_test_over),
#ifdef CONFIG_MEMCG
	KUNIT_CASE(gcma_test_node_pages),
	KUNIT_CASE(gcma_test_node_pages_limit),
#endif
	KUNIT_CASE(gcma_test_refused_fs),
	KUNIT_CASE(gcma_test_refused_ended),
	KUNIT_CASE(gcma_test_invalidate_busy),
	KUNIT_CASE(gcma_test_failed_later),
	KUNIT_CASE(gcma_test_refused_private),
	KUNIT_CASE(gcma_test_refused_partial),
	KUNIT_CASE(gcma_test_refused_failed),
	KUNIT_CASE(gcma_test_refused_large),
	KUNIT_CASE(gcma_test_poison),
	KUNIT_CASE(gcma_test_poison_large),
	KUNIT_CASE(gcma_test_poison_untouched),
	KUNIT_CASE(gcma_test_alloc_release),
#ifdef CONFIG_GCMA_DIRTY
	KUNIT_CASE(gcma_test_dirty_far),
	KUNIT_CASE(gcma_test_dirty_full),
	KUNIT_CASE(gcma_test_dirty_far_order),
	KUNIT_CASE(gcma_test_dirty_hand),
	KUNIT_CASE(gcma_test_dirty_owner),
	KUNIT_CASE(gcma_test_dirty_owner_killed),
	KUNIT_CASE(gcma_test_dirty_held),
	KUNIT_CASE(gcma_test_dirty_max),
	KUNIT_CASE(gcma_test_dirty_behind),
	KUNIT_CASE(gcma_test_dirty_killed),
	KUNIT_CASE(gcma_test_dirty_second_killed),
	KUNIT_CASE(gcma_test_dirty_failed),
	KUNIT_CASE(gcma_test_dirty_not_given_up),
	KUNIT_CASE(gcma_test_refused_cleared),
	KUNIT_CASE(gcma_test_refused_uncopied),
#endif
	KUNIT_CASE(gcma_test_dead_area),
	KUNIT_CASE(gcma_test_quarantine),
	KUNIT_CASE(gcma_test_order_per_bit),
	KUNIT_CASE(gcma_test_order_per_bit_cleared),
	KUNIT_CASE(gcma_test_order_per_bit_poisoned),
	{}
};

static struct kunit_suite __refdata gcma_kunit_suite = {
	.name = "gcma",
	.suite_init = kunit_suite_init,
	.suite_exit = kunit_suite_exit,
	.init = gcma_kunit_init,
	.exit = gcma_kunit_exit,
	.test_cases = gcma_kunit_cases,
};

kunit_test_init_section_suite(gcma_kunit_suite);
