// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guaranteed contiguous memory: tests of the frame table
 *
 * Part of gcma.c. Each test has an area of its own, of ordinary pages, beside the
 * areas of the machine, and the page cache of a file that does not exist. Pages
 * enter and leave this page cache step by step, as readers and reclaim make
 * them, so that an allocation or a release can be put between any two steps.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/prandom.h>
#include <linux/sched/clock.h>

#define KUNIT_PAGES	256UL
#define KUNIT_SHADOW	xa_mk_value(0x5ad0)

/**
 * struct gcma_kunit - what each test gets
 * @cma: the area
 * @g: its frames
 * @memory: its pages
 * @inode: the file
 * @sb: the file system that the file pretends to be on
 * @index: page of the file that kunit_index() returned last
 */
struct gcma_kunit {
	struct cma cma;
	struct gcma *g;
	void *memory;
	struct inode inode;
	struct super_block sb;
	pgoff_t index;
};

static int kunit_read_folio(struct file *file, struct folio *folio)
{
	return -EIO;
}

static const struct address_space_operations kunit_aops = {
	.read_folio = kunit_read_folio,
};

/* ------ a page's life, step by step ----------------------------------- */

/* The next page of the file that goes to @list of the area under test. */
static pgoff_t kunit_index(struct gcma_kunit *k, enum gcma_list list)
{
	u32 hash;

	do {
		k->index += 1UL << GCMA_MAX_ORDER;
		hash = gcma_hash(&k->inode.i_data, k->index);
	} while (gcma_pick(hash) != k->g || gcma_sample(hash) != list);
	return k->index;
}

static void *kunit_slot(struct gcma_kunit *k, pgoff_t index)
{
	return xa_load(&k->inode.i_data.i_pages, index);
}

static void kunit_fill(struct folio *folio, u8 pattern)
{
	memset(folio_address(folio), pattern, folio_size(folio));
	folio_mark_uptodate(folio);
}

static bool kunit_filled(struct folio *folio, u8 pattern)
{
	return !memchr_inv(folio_address(folio), pattern, folio_size(folio));
}

/* A reader adds a folio. It is uptodate if it was loaded. */
static struct folio *kunit_add(struct gcma_kunit *k, pgoff_t index,
			       unsigned int order, void **shadow)
{
	struct folio *folio = folio_alloc(GFP_KERNEL | __GFP_NOFAIL, order);
	void *entry = NULL;

	__folio_set_locked(folio);
	while (__filemap_add_folio(&k->inode.i_data, folio, index,
				   GFP_KERNEL | __GFP_NOFAIL, &entry))
		cond_resched();
	entry = gcma_load(folio, entry);
	if (shadow)
		*shadow = entry;
	return folio;
}

static void kunit_free(struct folio *folio)
{
	long nr = folio_nr_pages(folio);

	folio_unlock(folio);
	folio_put_refs(folio, nr + 1);
}

/* Take a folio out of the page cache, for reclaim if there is a @store. */
static void kunit_remove(struct gcma_kunit *k, struct folio *folio,
			 struct gcma_store *store)
{
	struct address_space *mapping = &k->inode.i_data;
	struct gcma_store none = {};
	void *shadow = store ? KUNIT_SHADOW : NULL;

	if (!store)
		store = &none;
	xa_lock_irq(&mapping->i_pages);
	shadow = gcma_store_commit(store, folio, shadow);
	__filemap_remove_folio(folio, shadow);
	gcma_store_spread(store, mapping, folio, shadow);
	xa_unlock_irq(&mapping->i_pages);
	gcma_store_end(store);
	kunit_free(folio);
}

/* Reclaim chose the folio: copied, not yet removed. */
static struct folio *kunit_begin(struct gcma_kunit *k, struct gcma_store *store,
				 pgoff_t index, unsigned int order, u8 pattern)
{
	struct folio *folio = kunit_add(k, index, order, NULL);

	kunit_fill(folio, pattern);
	gcma_store_begin(store, &k->inode.i_data, folio, true);
	return folio;
}

/* Returns true if the page became a tenant. */
static bool kunit_evict(struct gcma_kunit *k, pgoff_t index, u8 pattern)
{
	struct gcma_store store;
	struct folio *folio = kunit_begin(k, &store, index, 0, pattern);

	kunit_remove(k, folio, &store);
	return gcma_is_tenant(kunit_slot(k, index));
}

/* Returns true if the page came from a frame with the right content. */
static bool kunit_load(struct gcma_kunit *k, pgoff_t index, u8 pattern)
{
	struct folio *folio = kunit_add(k, index, 0, NULL);
	bool good = folio_test_uptodate(folio) && kunit_filled(folio, pattern);

	kunit_remove(k, folio, NULL);
	return good;
}

/* The frame of the tenant at @index, and its word. */
static unsigned long kunit_frame(struct gcma_kunit *k, pgoff_t index, u32 *gen)
{
	unsigned long frame;

	gcma_rd_entry(kunit_slot(k, index), &frame, gen);
	return frame;
}

/* A primary of one's choice, where cma_alloc() would choose itself. */
static void kunit_take(struct gcma_kunit *k, unsigned long frame,
		       unsigned long count)
{
	spin_lock_irq(&k->cma.lock);
	bitmap_set(k->cma.bitmap, frame, count);
	spin_unlock_irq(&k->cma.lock);
	gcma_take_range(&k->cma, gcma_pfn(k->g, frame), count, GFP_KERNEL);
	memset(page_address(gcma_page(k->g, frame)), 0xff, count << PAGE_SHIFT);
}

static void kunit_release(struct gcma_kunit *k, unsigned long frame,
			  unsigned long count)
{
	gcma_release_range(&k->cma, gcma_pfn(k->g, frame), count);
}

static void kunit_fill_area(struct gcma_kunit *k)
{
	while (k->g->len[GCMA_FREE_LIST])
		kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1);
}

/* ------ invariants ---------------------------------------------------- */

/* Is each frame of the list linked both ways, and where its state wants it? */
static void kunit_check_list(struct kunit *test, enum gcma_list list,
			     unsigned long *seen)
{
	struct gcma_kunit *k = test->priv;
	struct gcma *g = k->g;
	unsigned long head = g->nr_frames + list, len = 0;
	unsigned long prev = head, frame;

	for (frame = g->frames[head].next; frame != head;
	     prev = frame, frame = g->frames[frame].next) {
		struct gcma_frame *f = &g->frames[frame];

		KUNIT_ASSERT_LT(test, frame, g->nr_frames);
		KUNIT_ASSERT_EQ(test, f->prev, prev);
		KUNIT_ASSERT_FALSE(test, __test_and_set_bit(frame, seen));
		if (gcma_frame_state(f) == GCMA_FREE)
			KUNIT_ASSERT_EQ(test, list, GCMA_FREE_LIST);
		else
			KUNIT_ASSERT_EQ(test, list, gcma_list_of(f));
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
	for_each_clear_bit(frame, seen, k->g->nr_frames) {
		struct gcma_frame *f = &k->g->frames[frame];

		KUNIT_ASSERT_FALSE(test, gcma_linked(f));
		KUNIT_ASSERT_EQ(test, gcma_frame_state(f), GCMA_FREE);
		KUNIT_ASSERT_FALSE_MSG(test, gcma_lendable(k->g, frame),
				       "frame %lu is lost", frame);
	}
}

/* Nothing is on its way: every frame with a tenant is STORED. */
static void kunit_check_settled(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	unsigned long frame;

	kunit_check(test);
	for (frame = 0; frame < k->g->nr_frames; frame++) {
		enum gcma_state state = gcma_frame_state(&k->g->frames[frame]);

		KUNIT_ASSERT_NE(test, state, GCMA_STORING);
		KUNIT_ASSERT_NE(test, state, GCMA_LOADING);
	}
	KUNIT_ASSERT_EQ(test, atomic_long_read(&k->g->nr_available),
			k->cma.count - (bitmap_weight(k->cma.bitmap,
						cma_bitmap_maxno(&k->cma)) <<
					k->cma.order_per_bit));
}

/* ------ entries ------------------------------------------------------- */

static void __init gcma_test_entry(struct kunit *test)
{
	static const u32 gens[] = { 0, 1, 2, 3, 4, 0x155, 0x1ff, 0x200,
				    U32_MAX >> GCMA_STATE_BITS };
	struct gcma_kunit *k = test->priv;
	unsigned long frame, got_frame;
	u32 word, gen;
	void *entry;
	int i;

	for (i = 0; i < ARRAY_SIZE(gens); i++) {
		frame = i * KUNIT_PAGES / ARRAY_SIZE(gens);
		word = gens[i] << GCMA_STATE_BITS | GCMA_STORED;
		entry = gcma_mk_entry(k->g, frame, word);

		KUNIT_EXPECT_TRUE(test, gcma_is_tenant(entry));
		KUNIT_EXPECT_PTR_EQ(test, gcma_rd_entry(entry, &got_frame, &gen),
				    k->g);
		KUNIT_EXPECT_EQ(test, got_frame, frame);
		KUNIT_EXPECT_EQ(test, gen, gens[i] & GCMA_GEN_MASK);
		KUNIT_EXPECT_TRUE(test, gcma_same_gen(word, gen));
		word = gcma_next_gen(word, GCMA_STORED);
		KUNIT_EXPECT_FALSE(test, gcma_same_gen(word, gen));
	}
	KUNIT_EXPECT_FALSE(test, gcma_is_tenant(NULL));
	KUNIT_EXPECT_FALSE(test, gcma_is_tenant(KUNIT_SHADOW));
	KUNIT_EXPECT_FALSE(test, gcma_is_tenant(k->g));
}

/* As many generations as an entry tells apart, then the first again. */
static void __init gcma_test_generation_wrap(struct kunit *test)
{
	u32 last = GCMA_GEN_MASK << GCMA_STATE_BITS | GCMA_STORED;
	u32 word = gcma_next_gen(last, GCMA_STORED);

	KUNIT_EXPECT_TRUE(test, gcma_same_gen(word, 0));
	KUNIT_EXPECT_EQ(test, word & GCMA_STATE_MASK, GCMA_STORED);
	KUNIT_EXPECT_EQ(test, gcma_next_gen(~GCMA_STATE_MASK, GCMA_LOADING),
			GCMA_LOADING);
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

	KUNIT_ASSERT_TRUE(test, kunit_evict(k, ours, 1));
	xa_store(&k->inode.i_data.i_pages, old, kunit_slot(k, ours), GFP_KERNEL);

	KUNIT_EXPECT_FALSE(test, kunit_load(k, old, 1));
	KUNIT_EXPECT_EQ(test, gcma_stat(k->g, GCMA_MISSES), 1);
	kunit_check_settled(test);
	KUNIT_EXPECT_TRUE(test, kunit_load(k, ours, 1));

	/* Dropped by the wrong entry: lost, not wrong. */
	KUNIT_ASSERT_TRUE(test, kunit_evict(k, ours, 2));
	gcma_drop(kunit_slot(k, ours));
	KUNIT_EXPECT_FALSE(test, kunit_load(k, ours, 2));
}

/* ------ a tenant's life ----------------------------------------------- */

static void __init gcma_test_store_load(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct folio *folio;
	void *shadow;

	KUNIT_ASSERT_TRUE(test, kunit_evict(k, index, 7));
	KUNIT_EXPECT_EQ(test, gcma_count_tenants(k->g), 1);
	KUNIT_EXPECT_PTR_EQ(test, gcma_shadow(kunit_slot(k, index)),
			    KUNIT_SHADOW);
	kunit_check_settled(test);

	folio = kunit_add(k, index, 0, &shadow);
	KUNIT_EXPECT_TRUE(test, gcma_loaded(folio));
	KUNIT_EXPECT_TRUE(test, kunit_filled(folio, 7));
	KUNIT_EXPECT_PTR_EQ(test, shadow, KUNIT_SHADOW);
	KUNIT_EXPECT_EQ(test, gcma_count_tenants(k->g), 0);
	kunit_remove(k, folio, NULL);

	KUNIT_EXPECT_EQ(test, gcma_stat(k->g, GCMA_STORES), 1);
	KUNIT_EXPECT_EQ(test, gcma_stat(k->g, GCMA_LOADS), 1);
	KUNIT_EXPECT_EQ(test, gcma_stat(k->g, GCMA_MISSES), 0);
}

static void __init gcma_test_store_not_committed(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct gcma_store store;
	struct folio *folio = kunit_begin(k, &store, index, 0, 1);

	KUNIT_EXPECT_EQ(test, store.nr, 1);
	KUNIT_EXPECT_EQ(test, gcma_count_tenants(k->g), 0);
	kunit_check(test);
	gcma_store_end(&store);
	kunit_check_settled(test);
	kunit_remove(k, folio, NULL);
	KUNIT_EXPECT_EQ(test, k->g->len[GCMA_FREE_LIST], KUNIT_PAGES);
}

/* Callers other than reclaim do not want the content back. */
static void __init gcma_test_only_reclaim_stores(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct folio *folio = kunit_add(k, kunit_index(k, GCMA_FOLLOW), 0, NULL);
	struct gcma_store store;

	kunit_fill(folio, 1);
	gcma_store_begin(&store, &k->inode.i_data, folio, false);
	KUNIT_EXPECT_EQ(test, store.nr, 0);
	kunit_remove(k, folio, NULL);
}

static void __init gcma_test_large_folio(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct gcma_store store;
	struct folio *folio;

	/* Stored as single pages, each of which can be loaded. */
	folio = kunit_begin(k, &store, index, 2, 3);
	KUNIT_EXPECT_EQ(test, store.nr, 4);
	kunit_remove(k, folio, &store);
	KUNIT_EXPECT_EQ(test, gcma_count_tenants(k->g), 4);
	KUNIT_EXPECT_EQ(test, gcma_ra_order(&k->inode.i_data, index, 2), 0);
	KUNIT_EXPECT_EQ(test, gcma_ra_order(&k->inode.i_data, index + 4, 2), 2);
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index + 2, 3));
	KUNIT_EXPECT_EQ(test, gcma_count_tenants(k->g), 3);

	/* A large folio over tenants is read from disk and replaces them. */
	folio = kunit_add(k, index, 2, NULL);
	KUNIT_EXPECT_FALSE(test, folio_test_uptodate(folio));
	KUNIT_EXPECT_EQ(test, gcma_count_tenants(k->g), 0);
	kunit_remove(k, folio, NULL);

	/* A frame scrubbed meanwhile: its page keeps the shadow. */
	folio = kunit_begin(k, &store, index, 2, 4);
	kunit_take(k, store.copy[1].frame, 1);
	kunit_release(k, store.copy[1].frame, 1);
	kunit_remove(k, folio, &store);
	KUNIT_EXPECT_PTR_EQ(test, kunit_slot(k, index + 1), KUNIT_SHADOW);
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index, 4));
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index + 2, 4));
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index + 3, 4));
}

static void __init gcma_test_drop(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct address_space *mapping = &k->inode.i_data;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	XA_STATE(xas, &mapping->i_pages, index);
	unsigned long frame;
	void *entry;
	u32 gen;
	int i;

	/* a part of the page is truncated: nothing is left in the slot */
	kunit_evict(k, index, 1);
	entry = kunit_slot(k, index);
	frame = kunit_frame(k, index, &gen);
	truncate_inode_pages_range(mapping, (index << PAGE_SHIFT) + 10,
				   (index << PAGE_SHIFT) + 19);
	KUNIT_EXPECT_NULL(test, kunit_slot(k, index));
	KUNIT_EXPECT_NULL(test, gcma_shadow(entry));
	KUNIT_EXPECT_EQ(test, gcma_stat(k->g, GCMA_DROPPED), 1);

	/* the entry stays worthless when its frame is lent again */
	kunit_evict(k, index + 1, 1);
	KUNIT_EXPECT_EQ(test, kunit_frame(k, index + 1, &gen), frame);
	KUNIT_EXPECT_NULL(test, gcma_shadow(entry));

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
	KUNIT_EXPECT_EQ(test, gcma_count_tenants(k->g), 0);

	/* the page at the edge of a truncation changes in part */
	kunit_evict(k, index, 1);
	truncate_inode_pages(mapping, (index << PAGE_SHIFT) + 100);
	KUNIT_EXPECT_FALSE(test, kunit_load(k, index, 1));

	/* by node, as the shadow shrinker does */
	kunit_evict(k, index, 1);
	kunit_evict(k, index + 1, 1);
	xas_lock_irq(&xas);
	xas_load(&xas);
	gcma_drop_node(xas.xa_node);
	xas_unlock_irq(&xas);
	KUNIT_EXPECT_EQ(test, gcma_count_tenants(k->g), 0);
	KUNIT_EXPECT_FALSE(test, kunit_load(k, index, 1));
	KUNIT_EXPECT_FALSE(test, kunit_load(k, index + 1, 1));
}

/* The oldest tenant makes room; its entry is then worthless. */
/*
 * Invalidation comes while reclaim has the folio locked: it passes it by, and the
 * eviction must not leave a tenant.
 */
static void __init gcma_test_invalidate_while_storing(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct address_space *mapping = &k->inode.i_data;
	unsigned int order;

	for (order = 0; order <= 2; order += 2) {
		pgoff_t index = kunit_index(k, GCMA_FOLLOW);
		struct gcma_store store;
		struct folio *folio;

		if (order && !IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
			break;
		folio = kunit_begin(k, &store, index, order, 1);
		KUNIT_EXPECT_EQ(test, store.nr, 1 << order);
		invalidate_mapping_pages(mapping, index, index + 3);
		KUNIT_EXPECT_PTR_EQ(test, kunit_slot(k, index), folio);
		kunit_remove(k, folio, &store);
		KUNIT_EXPECT_FALSE(test, gcma_is_tenant(kunit_slot(k, index)));
	}
	kunit_check_settled(test);
}

static void __init gcma_test_recycle(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t oldest = kunit_index(k, GCMA_FOLLOW);
	pgoff_t newest;
	void *entry;

	k->g->admission = GCMA_ADMIT_ALWAYS;
	kunit_evict(k, oldest, 1);
	entry = kunit_slot(k, oldest);
	kunit_fill_area(k);
	KUNIT_EXPECT_PTR_EQ(test, kunit_slot(k, oldest), entry);

	newest = kunit_index(k, GCMA_FOLLOW);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, newest, 2));
	KUNIT_EXPECT_EQ(test, gcma_stat(k->g, GCMA_RECYCLES), 1);
	KUNIT_EXPECT_NULL(test, gcma_shadow(entry));
	KUNIT_EXPECT_FALSE(test, kunit_load(k, oldest, 1));
	KUNIT_EXPECT_TRUE(test, kunit_load(k, newest, 2));
}

/* ------ races, forced at each transition ------------------------------ */

/* STORING, taken and released: the copy is the primary's rubbish. */
static void __init gcma_test_scrub_while_storing(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct gcma_store store;
	struct folio *folio = kunit_begin(k, &store, index, 0, 1);

	kunit_take(k, store.copy[0].frame, 1);
	kunit_release(k, store.copy[0].frame, 1);
	kunit_check(test);

	kunit_remove(k, folio, &store);
	KUNIT_EXPECT_PTR_EQ(test, kunit_slot(k, index), KUNIT_SHADOW);
	KUNIT_EXPECT_EQ(test, gcma_stat(k->g, GCMA_STORES), 0);
	kunit_check_settled(test);
}

/* STORING, taken and kept: published, and of no use to anybody. */
static void __init gcma_test_take_while_storing(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	struct gcma_store store;
	struct folio *folio = kunit_begin(k, &store, index, 0, 1);
	unsigned long frame = store.copy[0].frame;
	void *shadow;

	kunit_take(k, frame, 1);
	kunit_remove(k, folio, &store);
	KUNIT_EXPECT_TRUE(test, gcma_is_tenant(kunit_slot(k, index)));
	KUNIT_EXPECT_EQ(test, gcma_count_tenants(k->g), 0);

	folio = kunit_add(k, index, 0, &shadow);
	KUNIT_EXPECT_FALSE(test, folio_test_uptodate(folio));
	KUNIT_EXPECT_PTR_EQ(test, shadow, KUNIT_SHADOW);
	kunit_remove(k, folio, NULL);
	kunit_check_settled(test);
	kunit_release(k, frame, 1);
}

/* STORED, taken and released: the entry outlives its tenant. */
static void __init gcma_test_scrub_while_stored(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long frame;
	u32 gen;

	kunit_evict(k, index, 1);
	frame = kunit_frame(k, index, &gen);
	kunit_take(k, frame, 1);
	KUNIT_EXPECT_EQ(test, gcma_count_tenants(k->g), 0);
	kunit_release(k, frame, 1);
	KUNIT_EXPECT_EQ(test, gcma_stat(k->g, GCMA_REVOKED), 1);
	kunit_check_settled(test);
	KUNIT_EXPECT_FALSE(test, kunit_load(k, index, 1));
	KUNIT_EXPECT_FALSE(test, kunit_load(k, index, 0xff));
}

/* Scrubbed, bit not clear yet: a store that comes now must not find the frames. */
static void __init gcma_test_store_while_scrubbing(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;

	k->g->admission = GCMA_ADMIT_ALWAYS;
	kunit_fill_area(k);
	kunit_take(k, 0, GCMA_SCAN);
	gcma_scrub(k->g, 0, GCMA_SCAN);
	KUNIT_EXPECT_EQ(test, k->g->len[GCMA_FREE_LIST], 0);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
	kunit_release(k, 0, GCMA_SCAN);
	KUNIT_EXPECT_EQ(test, k->g->len[GCMA_FREE_LIST], GCMA_SCAN);
}

/* LOADING, taken and released: the loader must not copy, and gives it back. */
static void __init gcma_test_scrub_while_loading(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long frame;
	u32 gen, word;

	kunit_evict(k, index, 1);
	frame = kunit_frame(k, index, &gen);
	word = gcma_claim(k->g, frame, gen, NULL);
	KUNIT_ASSERT_NE(test, word, 0);

	kunit_take(k, frame, 1);
	KUNIT_EXPECT_FALSE(test, gcma_enter(k->g, frame, word));
	kunit_release(k, frame, 1);
	kunit_check(test);
	KUNIT_EXPECT_FALSE(test, gcma_enter(k->g, frame, word));
	gcma_put(k->g, frame, word);
	kunit_check_settled(test);
	KUNIT_EXPECT_FALSE(test, gcma_claim(k->g, frame, gen, NULL));
}

/* LOADING, taken, given back to the free list, released. */
static void __init gcma_test_put_while_taken(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long frame;
	u32 gen, word;

	kunit_evict(k, index, 1);
	frame = kunit_frame(k, index, &gen);
	word = gcma_claim(k->g, frame, gen, NULL);
	kunit_take(k, frame, 1);
	gcma_put(k->g, frame, word);
	kunit_check_settled(test);

	/* It is the first on the list, and must not be lent. */
	index = kunit_index(k, GCMA_FOLLOW);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
	KUNIT_EXPECT_NE(test, kunit_frame(k, index, &gen), frame);
	KUNIT_EXPECT_FALSE(test, gcma_linked(&k->g->frames[frame]));
	kunit_release(k, frame, 1);
	KUNIT_EXPECT_TRUE(test, gcma_linked(&k->g->frames[frame]));
	kunit_check_settled(test);
}

/* LOADING: neither a drop, nor a second load, nor a store gets the frame. */
static void __init gcma_test_owned_while_loading(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	pgoff_t other;
	unsigned long frame;
	u32 gen, word;

	k->g->admission = GCMA_ADMIT_ALWAYS;
	kunit_evict(k, index, 1);
	frame = kunit_frame(k, index, &gen);
	kunit_fill_area(k);
	word = gcma_claim(k->g, frame, gen, NULL);
	KUNIT_ASSERT_NE(test, word, 0);

	KUNIT_EXPECT_EQ(test, gcma_claim(k->g, frame, gen, NULL), 0);
	gcma_drop(kunit_slot(k, index));
	KUNIT_EXPECT_EQ(test, gcma_stat(k->g, GCMA_DROPPED), 0);

	/* It is the oldest, and passed over. */
	other = kunit_index(k, GCMA_FOLLOW);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, other, 1));
	KUNIT_EXPECT_NE(test, kunit_frame(k, other, &gen), frame);
	KUNIT_EXPECT_EQ(test, atomic_read(&k->g->frames[frame].word), word);
	kunit_check(test);
	gcma_put(k->g, frame, word);
}

/* A victim that a primary holds is discarded, not reused. */
static void __init gcma_test_recycle_while_taken(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long frame;
	u32 gen;

	k->g->admission = GCMA_ADMIT_ALWAYS;
	kunit_evict(k, index, 1);
	frame = kunit_frame(k, index, &gen);
	kunit_fill_area(k);
	kunit_take(k, frame, 1);

	index = kunit_index(k, GCMA_FOLLOW);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
	KUNIT_EXPECT_NE(test, kunit_frame(k, index, &gen), frame);
	KUNIT_EXPECT_EQ(test, gcma_stat(k->g, GCMA_REVOKED), 1);
	kunit_check_settled(test);
	kunit_release(k, frame, 1);
	KUNIT_EXPECT_EQ(test, k->g->len[GCMA_FREE_LIST], 1);
}

/* ------ copying against revocation ------------------------------------ */

struct kunit_copier {
	struct gcma *g;
	unsigned long frame;
	u32 word;
	struct completion entered;
	bool copied;
};

static int kunit_copy_slowly(void *data)
{
	struct kunit_copier *copier = data;

	if (!gcma_enter(copier->g, copier->frame, copier->word)) {
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
	u32 gen;

	if (cpu >= nr_cpu_ids)
		kunit_skip(test, "needs a second CPU");

	copier->g = k->g;
	copier->frame = kunit_frame(k, index, &gen);
	copier->word = gcma_claim(k->g, copier->frame, gen, NULL);
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
	gcma_put(copier->g, copier->frame, copier->word);
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
	u32 gen;

	k->cma.order_per_bit = 2;
	do {
		index = kunit_index(k, GCMA_FOLLOW);
		kunit_evict(k, index, 1);
		frame = kunit_frame(k, index, &gen);
	} while (IS_ALIGNED(frame, 4));

	task = kunit_start_copier(test, &copier, index);
	frame = ALIGN_DOWN(frame, 4);
	spin_lock_irq(&k->cma.lock);
	set_bit(frame >> 2, k->cma.bitmap);
	spin_unlock_irq(&k->cma.lock);
	gcma_take_range(&k->cma, gcma_pfn(k->g, frame), 1, GFP_KERNEL);
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
	unsigned int loads;
	unsigned int wrong;
};

static int kunit_storm_thread(void *data)
{
	struct kunit_storm *s = data;
	struct rnd_state rnd;
	unsigned int round;

	prandom_seed_state(&rnd, s->index[0]);
	for (round = 0; round < KUNIT_STORM_ROUNDS; round++) {
		unsigned int i = prandom_u32_state(&rnd) % KUNIT_STORM_PAGES;
		struct folio *folio = kunit_add(s->k, s->index[i], 0, NULL);

		if (folio_test_uptodate(folio)) {
			s->loads++;
			s->wrong += !kunit_filled(folio, s->version[i]);
		}
		kunit_remove(s->k, folio, NULL);
		s->version[i] = (s->version[i] + 1) % 0x80;
		kunit_evict(s->k, s->index[i], s->version[i]);
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
		KUNIT_EXPECT_GT(test, storm[t].loads, 0);
	}
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
	u32 gen;

	/* tenants from the top, primaries from the bottom */
	kunit_evict(k, first, 1);
	KUNIT_EXPECT_EQ(test, kunit_frame(k, first, &gen), KUNIT_PAGES - 1);
	page = cma_alloc(&k->cma, 8, 0, true);
	KUNIT_EXPECT_PTR_EQ(test, page, gcma_page(k->g, 0));
	cma_release(&k->cma, page, 8);
	KUNIT_EXPECT_TRUE(test, kunit_load(k, first, 1));

	/* frames that a primary used are lent last */
	kunit_take(k, KUNIT_PAGES - GCMA_SCAN, GCMA_SCAN);
	KUNIT_EXPECT_FALSE(test, kunit_evict(k, first, 1));
	KUNIT_EXPECT_EQ(test, gcma_stat(k->g, GCMA_REFUSED_BUSY), 1);
	kunit_release(k, KUNIT_PAGES - GCMA_SCAN, GCMA_SCAN);
	kunit_evict(k, second, 1);
	KUNIT_EXPECT_EQ(test, kunit_frame(k, second, &gen),
			KUNIT_PAGES - GCMA_SCAN - 1);
}

static void __init gcma_test_admission(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct gcma *g = k->g;
	unsigned int i, admitted = 0;

	/* not while there is room */
	g->admission = GCMA_ADMIT_SELDOM;
	kunit_fill_area(k);
	KUNIT_EXPECT_EQ(test, gcma_count_tenants(g), KUNIT_PAGES);
	KUNIT_EXPECT_EQ(test, gcma_stat(g, GCMA_REFUSED_ADMISSION), 0);

	for (i = 0; i < 4 * GCMA_SELDOM_RATE; i++)
		admitted += kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1);
	KUNIT_EXPECT_EQ(test, admitted, 4);
	KUNIT_EXPECT_EQ(test, gcma_stat(g, GCMA_REFUSED_ADMISSION),
			4 * (GCMA_SELDOM_RATE - 1));
	KUNIT_EXPECT_EQ(test, gcma_stat(g, GCMA_RECYCLES), 4);
}

static void __init gcma_test_samples(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct gcma *g = k->g;
	pgoff_t index;
	int i;

	/* each sample gets its share of a full area, and no more */
	kunit_fill_area(k);
	for (i = 0; i < 12; i++) {
		index = kunit_index(k, GCMA_ALWAYS);
		KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
	}
	KUNIT_EXPECT_EQ(test, g->len[GCMA_ALWAYS],
			KUNIT_PAGES >> GCMA_SAMPLE_SHIFT);

	/* a load from a sample is a vote, the others follow the majority */
	index = kunit_index(k, GCMA_SELDOM);
	KUNIT_EXPECT_FALSE(test, gcma_seldom(g, GCMA_FOLLOW));
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
	KUNIT_EXPECT_TRUE(test, kunit_load(k, index, 1));
	KUNIT_EXPECT_EQ(test, g->hits[GCMA_SELDOM], 1);
	KUNIT_EXPECT_TRUE(test, gcma_seldom(g, GCMA_FOLLOW));
	KUNIT_EXPECT_FALSE(test, gcma_seldom(g, GCMA_ALWAYS));
	KUNIT_EXPECT_TRUE(test, gcma_seldom(g, GCMA_SELDOM));
	gcma_note_hit(g, GCMA_FOLLOW);
	KUNIT_EXPECT_EQ(test, g->hits[GCMA_FOLLOW], 0);

	/* old votes fade */
	for (i = 0; i < GCMA_HITS_MAX + 1; i++)
		gcma_note_hit(g, GCMA_ALWAYS);
	KUNIT_EXPECT_EQ(test, g->hits[GCMA_ALWAYS], (GCMA_HITS_MAX + 1) / 2);
	KUNIT_EXPECT_EQ(test, g->hits[GCMA_SELDOM], 0);
	KUNIT_EXPECT_FALSE(test, gcma_seldom(g, GCMA_FOLLOW));

	/* an administrator has the last word */
	g->admission = GCMA_ADMIT_SELDOM;
	KUNIT_EXPECT_TRUE(test, gcma_seldom(g, GCMA_ALWAYS));
	g->admission = GCMA_ADMIT_ALWAYS;
	KUNIT_EXPECT_FALSE(test, gcma_seldom(g, GCMA_SELDOM));
}

/* ------ refusals ------------------------------------------------------ */

static bool __init kunit_refused(struct gcma_kunit *k, enum gcma_stat cause)
{
	unsigned long before = gcma_stat(k->g, cause);

	return !kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1) &&
	       gcma_stat(k->g, cause) == before + 1;
}

static void __init gcma_test_refused_fs(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;

	k->inode.i_mode = S_IFDIR;
	KUNIT_EXPECT_TRUE(test, kunit_refused(k, GCMA_REFUSED_FS));
	k->inode.i_mode = S_IFREG;
	k->inode.i_flags = S_DAX;
	KUNIT_EXPECT_EQ(test, kunit_refused(k, GCMA_REFUSED_FS),
			IS_ENABLED(CONFIG_FS_DAX));
	k->inode.i_flags = 0;
	k->inode.i_data.a_ops = &empty_aops;
	KUNIT_EXPECT_TRUE(test, kunit_refused(k, GCMA_REFUSED_FS));
	k->inode.i_data.a_ops = &kunit_aops;
	k->sb.s_bdev = NULL;
	KUNIT_EXPECT_TRUE(test, kunit_refused(k, GCMA_REFUSED_FS));
	k->sb.s_magic = NFS_SUPER_MAGIC;
	KUNIT_EXPECT_TRUE(test, kunit_refused(k, GCMA_REFUSED_FS));
	k->sb.s_magic = BDEVFS_MAGIC;
	k->inode.i_mode = S_IFBLK;
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));
}

static void __init gcma_test_refused_private(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct folio *folio = kunit_add(k, kunit_index(k, GCMA_FOLLOW), 0, NULL);

	k->inode.i_flags = S_ENCRYPTED;
	KUNIT_EXPECT_TRUE(test, kunit_refused(k, GCMA_REFUSED_PRIVATE));
	k->inode.i_flags = 0;
	mapping_set_error(&k->inode.i_data, -EIO);
	KUNIT_EXPECT_TRUE(test, kunit_refused(k, GCMA_REFUSED_PRIVATE));
	k->inode.i_data.wb_err = 0;

	KUNIT_EXPECT_EQ(test, gcma_refusal(&k->inode.i_data, folio),
			GCMA_REFUSED_PRIVATE);	/* not uptodate */
	kunit_fill(folio, 1);
	KUNIT_EXPECT_EQ(test, gcma_refusal(&k->inode.i_data, folio),
			GCMA_STORES);
	kunit_remove(k, folio, NULL);
}

static void __init gcma_test_refused_large(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct folio *folio;

	if (IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE)) {
		folio = kunit_add(k, 0, GCMA_MAX_ORDER + 1, NULL);
		kunit_fill(folio, 1);
		KUNIT_EXPECT_EQ(test, gcma_refusal(&k->inode.i_data, folio),
				GCMA_REFUSED_LARGE);
		kunit_remove(k, folio, NULL);
	}
	if (IS_ENABLED(CONFIG_64BIT)) {
		folio = kunit_add(k, U32_MAX, 0, NULL);
		kunit_fill(folio, 1);
		KUNIT_EXPECT_EQ(test, gcma_refusal(&k->inode.i_data, folio),
				GCMA_REFUSED_LARGE);
		kunit_remove(k, folio, NULL);
	}
}

/* A frame whose memory failed is not lent, read, or given to a primary. */
static void __init gcma_test_poison(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	pgoff_t index = kunit_index(k, GCMA_FOLLOW);
	unsigned long frame;
	u32 gen;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "needs CONFIG_MEMORY_FAILURE");

	kunit_evict(k, index, 1);
	frame = kunit_frame(k, index, &gen);
	SetPageHWPoison(gcma_page(k->g, frame));
	KUNIT_EXPECT_FALSE(test, kunit_load(k, index, 1));
	kunit_check_settled(test);
	KUNIT_EXPECT_TRUE(test, kunit_evict(k, index, 1));
	KUNIT_EXPECT_NE(test, kunit_frame(k, index, &gen), frame);
	ClearPageHWPoison(gcma_page(k->g, frame));

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
	KUNIT_ASSERT_PTR_EQ(test, page, gcma_page(k->g, 0));
	KUNIT_EXPECT_EQ(test, gcma_count_tenants(k->g), 0);
	KUNIT_EXPECT_NULL(test, cma_alloc(&k->cma, 1, 0, true));
	KUNIT_EXPECT_FALSE(test, kunit_evict(k, kunit_index(k, GCMA_FOLLOW), 1));

	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page + 16, 16));
	rest = cma_alloc(&k->cma, 8, 3, true);
	KUNIT_EXPECT_PTR_EQ(test, rest, page + 16);
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page, 24));
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page + 32,
					    KUNIT_PAGES - 32));
	KUNIT_EXPECT_EQ(test, gcma_stat(k->g, GCMA_REVOKED), KUNIT_PAGES);
	KUNIT_EXPECT_EQ(test, k->g->len[GCMA_FREE_LIST], KUNIT_PAGES);
}

/* Double release, and the like: gcma_release_range() warns of what is refused here. */
static void __init gcma_test_refused_release(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct page *page = cma_alloc(&k->cma, 8, 0, true);

	KUNIT_ASSERT_PTR_EQ(test, page, gcma_page(k->g, 0));
	/* nothing, more than the area, what is free, what is free in part */
	KUNIT_EXPECT_FALSE(test, gcma_leave(k->g, 4, 4));
	KUNIT_EXPECT_FALSE(test, gcma_leave(k->g, 0, KUNIT_PAGES + 1));
	KUNIT_EXPECT_FALSE(test, gcma_leave(k->g, 8, 9));
	KUNIT_EXPECT_FALSE(test, gcma_leave(k->g, 4, 9));

	/* what is being released, also in part, and what was */
	KUNIT_EXPECT_TRUE(test, gcma_leave(k->g, 0, 4));
	KUNIT_EXPECT_FALSE(test, gcma_leave(k->g, 0, 4));
	KUNIT_EXPECT_FALSE(test, gcma_leave(k->g, 3, 5));
	gcma_settle(k->g, 0, 4);
	KUNIT_EXPECT_FALSE(test, gcma_leave(k->g, 0, 4));

	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page + 4, 4));
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->cma.bitmap, KUNIT_PAGES));
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->g->leaving, KUNIT_PAGES));
}

static void __init gcma_test_zeroed(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	void *memory = page_address(gcma_page(k->g, 0));

	memset(memory, 0xff, 4 * PAGE_SIZE);
	spin_lock_irq(&k->cma.lock);
	bitmap_set(k->cma.bitmap, 0, 4);
	spin_unlock_irq(&k->cma.lock);
	KUNIT_EXPECT_EQ(test, gcma_take_range(&k->cma, gcma_pfn(k->g, 0), 4,
					      GFP_KERNEL | __GFP_ZERO), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(memory, 0, 4 * PAGE_SIZE));
	kunit_release(k, 0, 4);
}

static void __init kunit_run_quarantine_work(struct gcma_kunit *k)
{
	mod_delayed_work(system_wq, &k->g->work, 0);
	flush_delayed_work(&k->g->work);
}

static void __init gcma_test_quarantine(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct page *page = cma_alloc(&k->cma, 8, 0, true);
	unsigned long frame = page_to_pfn(page) - k->cma.base_pfn;

	get_page(page + 3);
	cma_release(&k->cma, page, 8);
	KUNIT_EXPECT_EQ(test, bitmap_weight(k->g->quarantine, KUNIT_PAGES), 1);
	KUNIT_EXPECT_TRUE(test, gcma_revoked(k->g, frame + 3));
	KUNIT_EXPECT_FALSE(test, gcma_revoked(k->g, frame + 2));
	KUNIT_EXPECT_FALSE(test, gcma_revoked(k->g, frame + 4));
	KUNIT_EXPECT_NULL(test, cma_alloc(&k->cma, KUNIT_PAGES, 0, true));
	kunit_fill_area(k);
	KUNIT_EXPECT_EQ(test, gcma_count_tenants(k->g), KUNIT_PAGES - 1);
	kunit_check_settled(test);

	/* still held: stays */
	kunit_run_quarantine_work(k);
	KUNIT_EXPECT_TRUE(test, gcma_revoked(k->g, frame + 3));

	put_page(page + 3);
	kunit_run_quarantine_work(k);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->g->quarantine, KUNIT_PAGES));
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->g->leaving, KUNIT_PAGES));
	KUNIT_EXPECT_FALSE(test, gcma_revoked(k->g, frame + 3));
	KUNIT_EXPECT_EQ(test, k->g->len[GCMA_FREE_LIST], 1);
}

static void __init gcma_test_compound(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct folio *folio;
	unsigned long i;

	folio = cma_alloc_folio(&k->cma, 3, GFP_KERNEL | __GFP_COMP);
	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_EXPECT_EQ(test, folio_order(folio), 3);
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 1);

	/* held as a whole, quarantined as a whole */
	folio_get(folio);
	cma_release(&k->cma, &folio->page, 8);
	KUNIT_EXPECT_EQ(test, bitmap_weight(k->g->quarantine, KUNIT_PAGES), 8);
	folio_put(folio);
	kunit_run_quarantine_work(k);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->cma.bitmap, KUNIT_PAGES));

	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_FALSE(test, PageCompound(gcma_page(k->g, i)));
		KUNIT_EXPECT_EQ(test, page_count(gcma_page(k->g, i)), 1);
	}
}

/* One bit for four pages: what is not asked for is not lent either. */
static void __init gcma_test_order_per_bit(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct page *page;

	k->cma.order_per_bit = 2;
	page = cma_alloc(&k->cma, 5, 0, true);
	KUNIT_EXPECT_PTR_EQ(test, page, gcma_page(k->g, 0));
	KUNIT_EXPECT_TRUE(test, gcma_revoked(k->g, 7));
	KUNIT_EXPECT_FALSE(test, gcma_revoked(k->g, 8));
	kunit_check_settled(test);

	/* in whole bits only */
	KUNIT_EXPECT_FALSE(test, gcma_leave(k->g, 2, 8));
	KUNIT_EXPECT_FALSE(test, gcma_leave(k->g, 0, 6));

	/* a page in use keeps those that share its bit */
	get_page(page + 5);
	cma_release(&k->cma, page, 5);
	KUNIT_EXPECT_FALSE(test, gcma_revoked(k->g, 3));
	KUNIT_EXPECT_TRUE(test, gcma_revoked(k->g, 4));
	kunit_check_settled(test);
	put_page(page + 5);
	kunit_run_quarantine_work(k);
	KUNIT_EXPECT_FALSE(test, gcma_revoked(k->g, 4));

	kunit_fill_area(k);
	KUNIT_EXPECT_EQ(test, gcma_count_tenants(k->g), KUNIT_PAGES);
}

/* A poisoned page is passed over, and kept out of the way for good. */
static void __init gcma_test_alloc_poison(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;
	struct page *page;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "needs CONFIG_MEMORY_FAILURE");

	kunit_fill_area(k);
	SetPageHWPoison(gcma_page(k->g, 20));
	atomic_long_inc(&num_poisoned_pages);
	page = cma_alloc(&k->cma, 32, 0, true);
	KUNIT_EXPECT_EQ(test, page_to_pfn(page), gcma_pfn(k->g, 21));
	KUNIT_EXPECT_EQ(test, bitmap_weight(k->g->quarantine, KUNIT_PAGES), 1);
	KUNIT_EXPECT_TRUE(test, test_bit(20, k->g->quarantine));
	kunit_check_settled(test);
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page, 32));

	atomic_long_dec(&num_poisoned_pages);
	ClearPageHWPoison(gcma_page(k->g, 20));
	kunit_run_quarantine_work(k);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->cma.bitmap, KUNIT_PAGES));
}

/* ------ policy, latency ----------------------------------------------- */

struct kunit_choice {
	const char *choice;
	const char *area;	/* NULL: the default area */
	const char *policy;	/* NULL: another area is meant */
};

static const struct kunit_choice kunit_choices[] = {
	{ "gcma", NULL, "gcma" },
	{ ":none", NULL, "none" },
	{ "", NULL, "" },
	{ ":", NULL, "" },
	{ "gcma", "gcma", NULL },
	{ ":gcma", "camera", NULL },
	{ "camera:gcma", "camera", "gcma" },
	{ "camera:gcma", NULL, NULL },
	{ "camera:gcma", "cam", NULL },
	{ "cam:gcma", "camera", NULL },
	{ "cam:era:none", "cam:era", "none" },
	{ "cam:era:none", "cam", NULL },
	{ "gcma:camera", "gcma", "camera" },
	{ "camera:", "camera", "" },
	{ "123456789012345678901234567890123456789012345678901234567890123:gcma",
	  "123456789012345678901234567890123456789012345678901234567890123",
	  "gcma" },
	{ "1234567890123456789012345678901234567890123456789012345678901234:gcma",
	  "123456789012345678901234567890123456789012345678901234567890123",
	  NULL },
};

static void kunit_choice_desc(const struct kunit_choice *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "'%s' for %s", c->choice,
		 c->area ?: "the default area");
}

KUNIT_ARRAY_PARAM(kunit_choice, kunit_choices, kunit_choice_desc);

static void __init gcma_test_choice(struct kunit *test)
{
	const struct kunit_choice *c = test->param_value;
	struct gcma_kunit *k = test->priv;
	struct cma *cma = c->area ? &k->cma : dev_get_cma_area(NULL);

	if (!cma)
		kunit_skip(test, "this machine has no default area");
	if (c->area)
		strscpy(k->cma.name, c->area);
	KUNIT_EXPECT_STREQ(test, gcma_choice_for(cma, c->choice) ?: "another",
			   c->policy ?: "another");
}

static void __init gcma_test_set_policy(struct kunit *test)
{
	static const char * const unknown[] = {
		NULL, "", "GCMA", "gcma ", "camera", "gcma:",
	};
	struct gcma_kunit *k = test->priv;
	int i;

	cma_set_policy(&k->cma, "none");
	KUNIT_EXPECT_EQ(test, k->cma.policy, CMA_NONE);
	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		cma_set_policy(&k->cma, unknown[i]);
		KUNIT_EXPECT_EQ(test, k->cma.policy, CMA_NONE);
	}
	cma_set_policy(&k->cma, "movable");
	KUNIT_EXPECT_EQ(test, k->cma.policy, CMA_MOVABLE);
	cma_set_policy(&k->cma, "gcma");
	KUNIT_EXPECT_EQ(test, k->cma.policy, CMA_GCMA);
}

static void __init gcma_test_latency(struct kunit *test)
{
	struct gcma_kunit *k = test->priv;

	if (!IS_ENABLED(CONFIG_CMA_DEBUGFS))
		kunit_skip(test, "needs CONFIG_CMA_DEBUGFS");

	/* the clock of another CPU may be ahead */
	gcma_latency_end(&k->cma, local_clock() + NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, atomic_read(&k->cma.latency[0]), 1);
	/* 0.8 s, far from both ends of the bucket */
	gcma_latency_end(&k->cma, local_clock() - (3ULL << 28));
	KUNIT_EXPECT_EQ(test, atomic_read(&k->cma.latency[30]), 1);
	gcma_latency_end(&k->cma, local_clock() - 100ULL * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, atomic_read(&k->cma.latency[31]), 1);
}

/* ------ the area and the file of each test ---------------------------- */

static void __init kunit_init_file(struct gcma_kunit *k)
{
	struct inode *inode = &k->inode;

	/* only looked at for being there */
	k->sb.s_bdev = (struct block_device *)k;
	k->sb.s_magic = EXT4_SUPER_MAGIC;
	inode_init_once(inode);
	spin_lock_init(&inode->i_lock);
	atomic_set(&inode->i_count, 1);
	inode->i_sb = &k->sb;
	inode->i_mode = S_IFREG;
	inode->i_mapping = &inode->i_data;
	inode->i_data.host = inode;
	inode->i_data.a_ops = &kunit_aops;
	mapping_set_large_folios(&inode->i_data);
}

static int __init gcma_kunit_init(struct kunit *test)
{
	struct gcma_kunit *k;

	if (gcma_nr_areas == ARRAY_SIZE(gcma_areas))
		kunit_skip(test, "no room for another area");
	k = kunit_kzalloc(test, sizeof(*k), GFP_KERNEL);
	if (!k)
		return -ENOMEM;

	k->memory = alloc_pages_exact(KUNIT_PAGES << PAGE_SHIFT, GFP_KERNEL);
	k->cma.bitmap = bitmap_zalloc(KUNIT_PAGES, GFP_KERNEL);
	strscpy(k->cma.name, "kunit");
	k->cma.base_pfn = PHYS_PFN(virt_to_phys(k->memory));
	k->cma.count = KUNIT_PAGES;
	k->cma.policy = CMA_GCMA;
	spin_lock_init(&k->cma.lock);
	k->g = gcma_create(&k->cma);
	if (!k->memory || !k->cma.bitmap || !k->g)
		return -ENOMEM; /* once, at boot: let it leak */

	k->cma.gcma = k->g;
	gcma_areas[gcma_nr_areas++] = k->g;
	gcma_nr_frames += KUNIT_PAGES;
	static_branch_inc(&gcma_key);
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
	gcma_areas[--gcma_nr_areas] = NULL;

	cancel_delayed_work_sync(&k->g->work);
	vfree(k->g->frames);
	free_percpu(k->g->stats);
	bitmap_free(k->g->quarantine);
	bitmap_free(k->g->leaving);
	kfree(k->g);
	bitmap_free(k->cma.bitmap);
	free_pages_exact(k->memory, KUNIT_PAGES << PAGE_SHIFT);
}

static struct kunit_case __refdata gcma_kunit_cases[] = {
	KUNIT_CASE(gcma_test_entry),
	KUNIT_CASE(gcma_test_generation_wrap),
	KUNIT_CASE(gcma_test_wrapped_entry),
	KUNIT_CASE(gcma_test_store_load),
	KUNIT_CASE(gcma_test_store_not_committed),
	KUNIT_CASE(gcma_test_only_reclaim_stores),
	KUNIT_CASE(gcma_test_large_folio),
	KUNIT_CASE(gcma_test_drop),
	KUNIT_CASE(gcma_test_invalidate_while_storing),
	KUNIT_CASE(gcma_test_recycle),
	KUNIT_CASE(gcma_test_scrub_while_storing),
	KUNIT_CASE(gcma_test_take_while_storing),
	KUNIT_CASE(gcma_test_scrub_while_stored),
	KUNIT_CASE(gcma_test_store_while_scrubbing),
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
	KUNIT_CASE(gcma_test_refused_fs),
	KUNIT_CASE(gcma_test_refused_private),
	KUNIT_CASE(gcma_test_refused_large),
	KUNIT_CASE(gcma_test_poison),
	KUNIT_CASE(gcma_test_alloc_release),
	KUNIT_CASE(gcma_test_refused_release),
	KUNIT_CASE(gcma_test_zeroed),
	KUNIT_CASE(gcma_test_quarantine),
	KUNIT_CASE(gcma_test_compound),
	KUNIT_CASE(gcma_test_order_per_bit),
	KUNIT_CASE(gcma_test_alloc_poison),
	KUNIT_CASE_PARAM(gcma_test_choice, kunit_choice_gen_params),
	KUNIT_CASE(gcma_test_set_policy),
	KUNIT_CASE(gcma_test_latency),
	{}
};

static struct kunit_suite __refdata gcma_kunit_suite = {
	.name = "gcma",
	.init = gcma_kunit_init,
	.exit = gcma_kunit_exit,
	.test_cases = gcma_kunit_cases,
};

kunit_test_init_section_suite(gcma_kunit_suite);
