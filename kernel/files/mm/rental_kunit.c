// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rental memory: tests
 *
 * Part of rental.c. Each test has an area of its own, of ordinary pages, and a file whose
 * page cache it fills, and goes through the functions that the rest of mm calls.
 */

#include <kunit/test.h>
#include <linux/anon_inodes.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/sched/mm.h>
#include <linux/writeback.h>

#define KUNIT_FRAMES	(2 * pageblock_nr_pages)

/**
 * struct rental_kunit - what each test gets
 * @cma: the area
 * @memory: its pages
 * @r: its rental pool
 * @second: another area, if the test has made one
 * @inode: a file, of @sb on @bdi
 * @released: what kunit_put_later() puts
 */
struct rental_kunit {
	struct cma cma;
	struct page *memory;
	struct rental *r;
	struct cma *second;
	struct inode inode;
	struct super_block sb;
	struct backing_dev_info *bdi;
	struct folio *released;
	struct delayed_work work;
};

/* What a file keeps of a folio as long as it has it, as a journal does for a while */
static char kunit_note;

/* As UBIFS does it, of a dirty folio too: its filesystem knows nothing of it then. */
static bool kunit_release_folio(struct folio *folio, gfp_t gfp)
{
	if (folio_get_private(folio) == &kunit_note)
		return false;
	folio_detach_private(folio);
	return true;
}

static int kunit_read_folio(struct file *file, struct folio *folio)
{
	memset(folio_address(folio), folio->index % 251, folio_size(folio));
	folio_mark_uptodate(folio);
	folio_unlock(folio);
	return 0;
}

static const struct address_space_operations kunit_aops = {
	.read_folio = kunit_read_folio,
	.dirty_folio = filemap_dirty_folio,
	.release_folio = kunit_release_folio,
	.migrate_folio = filemap_migrate_folio,
};

static const struct file_operations kunit_fops = {
	.read_iter = generic_file_read_iter,
};

/* Of what cannot be read */
static const struct file_operations kunit_no_fops = {};

static struct address_space *kunit_mapping(struct rental_kunit *k)
{
	return &k->inode.i_data;
}

static bool kunit_ours(struct rental_kunit *k, struct folio *folio)
{
	return folio_pfn(folio) - k->cma.base_pfn < k->cma.count;
}

/* A folio for a read, in the area or not; not in the page cache yet */
static struct folio *kunit_alloc(struct rental_kunit *k, unsigned int order, bool write)
{
	return rental_filemap_alloc(kunit_mapping(k), GFP_KERNEL, order, write);
}

/* The page cache has a folio at @index that was read; each page says where it belongs. */
static struct folio *kunit_read(struct kunit *test, pgoff_t index, unsigned int order)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_alloc(k, order, false);
	unsigned long i;

	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_ASSERT_EQ(test, filemap_add_folio(kunit_mapping(k), folio, index, GFP_KERNEL), 0);
	for (i = 0; i < folio_nr_pages(folio); i++)
		memset(page_address(folio_page(folio, i)), (index + i) % 251, PAGE_SIZE);
	folio_mark_uptodate(folio);
	folio_unlock(folio);
	return folio;
}

/* The same, and the page cache has the only reference */
static void kunit_fill(struct kunit *test, pgoff_t index, unsigned long nr)
{
	while (nr--)
		folio_put(kunit_read(test, index++, 0));
	lru_add_drain_all();
}

static void kunit_check_page(struct kunit *test, struct folio *folio, pgoff_t index)
{
	u8 *page = page_address(folio_file_page(folio, index));

	KUNIT_EXPECT_NULL(test, memchr_inv(page, index % 251, PAGE_SIZE));
}

static long kunit_counter(struct rental_kunit *k, enum vm_event_item item)
{
	return rental_counter(k->r, item);
}

/* Each frame is idle, lent or a primary's, and the numbers say how many are. */
static void kunit_check(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	unsigned long frame, idle = 0, lent = 0;

	for (frame = 0; frame < k->cma.count; frame++) {
		bool is_idle = test_bit(frame, k->r->idle), is_lent = test_bit(frame, k->r->lent);

		idle += is_idle;
		lent += is_lent;
		KUNIT_EXPECT_EQ(test, is_idle + is_lent + rental_taken(k->r, frame), 1);
		if (is_idle)
			KUNIT_EXPECT_EQ(test, page_count(k->memory + frame), 1);
	}
	KUNIT_EXPECT_EQ(test, k->r->nr_idle, idle);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, lent);
}

static struct page *kunit_take(struct rental_kunit *k, unsigned long count)
{
	return cma_alloc(&k->cma, count, 0, true);
}

/* As many pages of other memory as the area has */
static void kunit_fill_elsewhere(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct page *page = kunit_take(k, KUNIT_FRAMES);

	KUNIT_ASSERT_NOT_NULL(test, page);
	kunit_fill(test, KUNIT_FRAMES, KUNIT_FRAMES);
	cma_release(&k->cma, page, KUNIT_FRAMES);
}

static void kunit_put_now(struct work_struct *work)
{
	struct rental_kunit *k = container_of(work, struct rental_kunit, work.work);

	folio_put(k->released);
}

static void kunit_put_later(struct rental_kunit *k, struct folio *folio, unsigned int ms)
{
	k->released = folio;
	schedule_delayed_work(&k->work, msecs_to_jiffies(ms));
}

/* Unlocks a folio after a while. */
static int kunit_unlock(void *folio)
{
	msleep(300);
	folio_unlock(folio);
	return 0;
}

/* ------ areas --------------------------------------------------------- */

/* If it fails, once, at boot, it leaks. */
static int kunit_create(struct cma *cma)
{
	struct page *memory = alloc_contig_pages(KUNIT_FRAMES, GFP_KERNEL, numa_mem_id(), NULL);

	cma->bitmap = bitmap_zalloc(KUNIT_FRAMES, GFP_KERNEL);
	if (!memory || !cma->bitmap)
		return -ENOMEM;
	strscpy(cma->name, "kunit");
	cma->base_pfn = page_to_pfn(memory);
	cma->count = KUNIT_FRAMES;
	cma->policy = &rental_policy;
	spin_lock_init(&cma->lock);
	return cma_reserve_create(cma);
}

/* The last one that was made, when all its frames are home */
static void kunit_destroy(struct kunit *test, struct cma *cma)
{
	struct rental *r = rental_of(cma);
	unsigned long i;

	KUNIT_EXPECT_EQ(test, r->nr_idle, KUNIT_FRAMES);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&r->nr_unevictable), 0);
	static_branch_dec(&rental_key);
	rental_nr_areas--;
	cancel_delayed_work_sync(&r->clean_work);
	cancel_delayed_work_sync(&cma->reserve->work);
	for (i = 0; i < KUNIT_FRAMES; i += pageblock_nr_pages)
		set_pageblock_migratetype(cma_page(cma, i), MIGRATE_MOVABLE);
	rental_free_area(r);
	cma_reserve_free(cma->reserve);
	bitmap_free(cma->bitmap);
	free_contig_range(cma->base_pfn, KUNIT_FRAMES);
}

/* ------ the pool ------------------------------------------------------ */

static void rental_test_lend(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	LIST_HEAD(lent);
	struct folio *folio, *next;
	unsigned long i, nr, all;
	unsigned int flags;

	/* what is to be pinned for long would have to leave */
	flags = memalloc_pin_save();
	folio = kunit_alloc(k, 0, false);
	memalloc_pin_restore(flags);
	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	folio_put(folio);

	for (i = 0; i < KUNIT_FRAMES; i++) {
		folio = kunit_alloc(k, 0, false);
		KUNIT_ASSERT_NOT_NULL(test, folio);
		KUNIT_EXPECT_TRUE(test, kunit_ours(k, folio));
		KUNIT_EXPECT_TRUE(test, rental_lent(&folio->page));
		KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 1);
		list_add(&folio->lru, &lent);
	}
	kunit_check(test);
	KUNIT_EXPECT_EQ(test, k->r->nr_idle, 0);
	nr = rental_nr_lent(rental_nid(k->r));
	KUNIT_EXPECT_GE(test, nr, KUNIT_FRAMES);
	all = rental_nr_lent(NUMA_NO_NODE);
	KUNIT_EXPECT_GE(test, all, nr);
	KUNIT_EXPECT_EQ(test, rental_nr_lent(MAX_NUMNODES), 0);
	k->r->scheme = RENTAL_NOCLEAN; /* they can become dirty */
	KUNIT_EXPECT_EQ(test, rental_nr_lent(rental_nid(k->r)), nr - KUNIT_FRAMES);
	KUNIT_EXPECT_EQ(test, rental_nr_lent(NUMA_NO_NODE), all - KUNIT_FRAMES);
	k->r->scheme = RENTAL_LAZY;

	/* full */
	folio = kunit_alloc(k, 0, false);
	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	folio_put(folio);

	list_for_each_entry_safe(folio, next, &lent, lru)
		folio_put(folio);
	kunit_check(test);
	KUNIT_EXPECT_EQ(test, k->r->nr_idle, KUNIT_FRAMES);
}

static void rental_test_large(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *large, *small = kunit_alloc(k, 0, false);
	unsigned int order;

	for (order = 1; order <= pageblock_order; order++) {
		large = kunit_alloc(k, order, false);
		KUNIT_ASSERT_NOT_NULL(test, large);
		KUNIT_EXPECT_TRUE(test, kunit_ours(k, large));
		KUNIT_EXPECT_EQ(test, folio_order(large), order);
		KUNIT_EXPECT_TRUE(test, IS_ALIGNED(folio_pfn(large), 1UL << order));
		KUNIT_EXPECT_EQ(test, page_count(folio_page(large, 1)), 1); /* its head's */
		kunit_check(test);
		folio_put(large);
		kunit_check(test);
	}
	folio_put(small);
}

/*
 * Frames that came home one by one, of several owners, are lent as one. With page_owner=on the
 * kernel warns if more pages are taken from an owner than he had.
 */
static void rental_test_owner(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *small[4], *large;
	int i;

	for (i = 0; i < ARRAY_SIZE(small); i++) {
		small[i] = kunit_alloc(k, 0, false);
		KUNIT_ASSERT_NOT_NULL(test, small[i]);
	}
	folio_put(small[0]);
	for (i = 1; i < ARRAY_SIZE(small); i++)
		folio_put(small[i]);
	k->r->hand = 0;
	large = kunit_alloc(k, 2, false);
	KUNIT_ASSERT_NOT_NULL(test, large);
	KUNIT_EXPECT_PTR_EQ(test, &large->page, k->memory);
	folio_put(large);
	kunit_check(test);
}

static void rental_test_no_run(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *large;
	unsigned long i;

	/* every second frame */
	for (i = 0; i < KUNIT_FRAMES; i++)
		kunit_alloc(k, 0, false);
	for (i = 0; i < KUNIT_FRAMES; i += 2)
		folio_put(page_folio(k->memory + i));
	KUNIT_EXPECT_EQ(test, k->r->nr_idle, KUNIT_FRAMES / 2);
	large = kunit_alloc(k, 1, false);
	KUNIT_ASSERT_NOT_NULL(test, large);
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, large));
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_no_run), 1);
	folio_put(large);
	for (i = 1; i < KUNIT_FRAMES; i += 2)
		folio_put(page_folio(k->memory + i));
	kunit_check(test);
}

/* Who looked for something else holds an idle page for a moment. */
static void kunit_late_lookup(struct kunit *test, unsigned long first)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio;
	unsigned long i;

	/* It would be counted as another one when it is part of a large folio. */
	for (i = first; i < KUNIT_FRAMES; i += 2)
		get_page(k->memory + i);
	folio = kunit_alloc(k, 1, false);
	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	folio_put(folio);
	KUNIT_EXPECT_EQ(test, k->r->nr_idle, KUNIT_FRAMES);
	k->r->hand = first;
	folio = kunit_alloc(k, 0, false);
	KUNIT_EXPECT_PTR_EQ(test, &folio->page, k->memory + first);
	for (i = first; i < KUNIT_FRAMES; i += 2)
		put_page(k->memory + i);
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 1);
	folio_put(folio);
	kunit_check(test);
	KUNIT_EXPECT_EQ(test, k->r->nr_idle, KUNIT_FRAMES);
}

static void rental_test_late_lookup(struct kunit *test)
{
	kunit_late_lookup(test, 0);
	kunit_late_lookup(test, 1);
}

static void rental_test_not_lent(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_alloc(k, 0, true);

	/* to who writes */
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	folio_put(folio);
	k->r->scheme = RENTAL_NOCLEAN;
	folio = kunit_alloc(k, 0, true);
	KUNIT_EXPECT_TRUE(test, kunit_ours(k, folio));
	folio_put(folio);
	/* to other mappings */
	k->inode.i_mode = S_IFBLK;
	folio = kunit_alloc(k, 0, false);
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	folio_put(folio);
	k->inode.i_mode = S_IFREG;
	k->bdi->capabilities = 0;
	folio = kunit_alloc(k, 0, false);
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	folio_put(folio);
	k->bdi->capabilities = BDI_CAP_WRITEBACK;
	k->inode.i_fop = &kunit_no_fops;
	folio = kunit_alloc(k, 0, false);
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	folio_put(folio);
	k->inode.i_fop = &kunit_fops;
	mapping_set_unevictable(kunit_mapping(k));
	folio = kunit_alloc(k, 0, false);
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	folio_put(folio);
	mapping_clear_unevictable(kunit_mapping(k));
	mapping_set_release_always(kunit_mapping(k));
	folio = kunit_alloc(k, 0, false);
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	folio_put(folio);
	mapping_clear_release_always(kunit_mapping(k));
	folio = kunit_alloc(k, 0, false);
	KUNIT_EXPECT_TRUE(test, kunit_ours(k, folio));
	folio_put(folio);
	kunit_check(test);
}

#ifdef CONFIG_NUMA
/* Nor to a task that says where its memory is to be. */
static void rental_test_policy(struct kunit *test)
{
	struct mempolicy policy = { .refcnt = ATOMIC_INIT(1), .mode = MPOL_LOCAL };
	struct rental_kunit *k = test->priv;
	struct mempolicy *before = current->mempolicy;
	struct folio *folio;

	current->mempolicy = &policy;
	folio = kunit_alloc(k, 0, false);
	current->mempolicy = before;
	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	folio_put(folio);
	kunit_check(test);
}
#endif

/* The second area lends when the first one is full; each gets back what is its own. */
static void rental_test_two_areas(struct kunit *test)
{
	struct cma *second = kunit_kzalloc(test, sizeof(*second), GFP_KERNEL);
	struct rental_kunit *k = test->priv;
	struct folio *folio;
	struct page *page;
	struct rental *r;

	KUNIT_ASSERT_NOT_NULL(test, second);
	KUNIT_ASSERT_EQ(test, kunit_create(second), 0);
	k->second = second;
	r = rental_of(second);
	kunit_fill(test, 0, KUNIT_FRAMES + 8);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, KUNIT_FRAMES);
	KUNIT_EXPECT_EQ(test, r->nr_lent, 8);
	KUNIT_EXPECT_TRUE(test, rental_lent(k->memory));
	KUNIT_EXPECT_EQ(test, rental_counter(r, RENTAL_lends), 8);
	KUNIT_EXPECT_EQ(test, __rental_nr_lent(NUMA_NO_NODE), KUNIT_FRAMES + 8);
	KUNIT_EXPECT_EQ(test, __rental_nr_lent(rental_nid(r)), KUNIT_FRAMES + 8);
	/* only this one has room */
	KUNIT_EXPECT_EQ(test, __rental_nr_spared(rental_nid(r)), 8);
	folio = filemap_get_folio(kunit_mapping(k), KUNIT_FRAMES);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	KUNIT_EXPECT_TRUE(test, rental_lent(&folio->page));
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	kunit_check_page(test, folio, KUNIT_FRAMES);
	folio_put(folio);

	page = kunit_take(k, KUNIT_FRAMES);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, 0);
	KUNIT_EXPECT_EQ(test, r->nr_lent, 8);
	kunit_fill(test, 0, 1);
	KUNIT_EXPECT_EQ(test, r->nr_lent, 9);
	cma_release(&k->cma, page, KUNIT_FRAMES);
	page = cma_alloc(second, KUNIT_FRAMES, 0, true);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, r->nr_lent, 0);
	cma_release(second, page, KUNIT_FRAMES);
	KUNIT_EXPECT_EQ(test, r->nr_idle, KUNIT_FRAMES);
	kunit_check(test);
}

/* Without readahead a fault allocates, as who looks a page up to write to it does. */
static void rental_test_lend_fault(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio;

	folio = __filemap_get_folio(kunit_mapping(k), 0, FGP_CREAT | FGP_FOR_MMAP, GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	KUNIT_EXPECT_TRUE(test, kunit_ours(k, folio));
	folio_put(folio);
	folio = __filemap_get_folio(kunit_mapping(k), 1, FGP_CREAT | FGP_LOCK, GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	folio_unlock(folio);
	folio_put(folio);
	kunit_check(test);
}

/* Nor does read() need readahead. */
static void rental_test_lend_read(struct kunit *test)
{
	struct file *file = anon_inode_getfile("rental-kunit", &kunit_fops, NULL, O_RDONLY);
	struct rental_kunit *k = test->priv;
	struct folio *folio;
	loff_t pos = PAGE_SIZE;
	u8 byte;

	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	file->f_mapping = kunit_mapping(k);
	file->f_flags |= O_NOATIME;
	file->f_ra.ra_pages = 0;
	k->bdi->io_pages = 0;
	k->sb.s_maxbytes = MAX_LFS_FILESIZE;
	i_size_write(&k->inode, 2 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, kernel_read(file, &byte, 1, &pos), 1);
	KUNIT_EXPECT_EQ(test, byte, 1);
	fput(file);
	folio = filemap_get_folio(kunit_mapping(k), 1);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	KUNIT_EXPECT_TRUE(test, kunit_ours(k, folio));
	folio_put(folio);
	kunit_check(test);
}

#ifdef CONFIG_MEMORY_FAILURE
static void rental_test_poison(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio;
	unsigned long i;

	SetPageHWPoison(k->memory);
	num_poisoned_pages_inc(k->cma.base_pfn);
	for (i = 0; i < KUNIT_FRAMES; i++) {
		folio = kunit_alloc(k, 0, false);
		KUNIT_EXPECT_PTR_NE(test, &folio->page, k->memory);
		folio_put(folio);
	}
	/* it is nobody's, and in the way of who wants it */
	KUNIT_EXPECT_NULL(test, kunit_take(k, KUNIT_FRAMES));
	num_poisoned_pages_sub(k->cma.base_pfn, 1);
	ClearPageHWPoison(k->memory);
	flush_delayed_work(&k->cma.reserve->work);
	kunit_check(test);
}

/*
 * A page of a large folio that somebody holds, and nothing else of it is in the range: the folio
 * stays whole, also when there is no other reference than his.
 */
static void rental_test_poison_large(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read(test, 0, 2);
	unsigned long frame = folio_pfn(folio) - k->cma.base_pfn + 3;
	unsigned long memory = totalram_pages();

	lru_add_drain_all();
	SetPageHWPoison(k->memory + frame);
	num_poisoned_pages_inc(k->cma.base_pfn + frame);
	KUNIT_EXPECT_EQ(test, return_memory(&k->cma, frame, 1), -EBUSY);
	folio_lock(folio);
	filemap_remove_folio(folio);
	folio_unlock(folio);
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 1);
	mod_delayed_work(system_wq, &k->cma.reserve->work, 0);
	flush_delayed_work(&k->cma.reserve->work);
	KUNIT_EXPECT_TRUE(test, folio_test_large(folio));
	KUNIT_EXPECT_TRUE(test, folio_test_lru(folio));
	KUNIT_EXPECT_EQ(test, totalram_pages(), memory);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, 4);
	folio_put(folio);
	/* its frames came home, and this one is lent to nobody */
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, 0);
	KUNIT_EXPECT_EQ(test, return_memory(&k->cma, frame, 1), -EBUSY);
	num_poisoned_pages_sub(k->cma.base_pfn + frame, 1);
	ClearPageHWPoison(k->memory + frame);
	mod_delayed_work(system_wq, &k->cma.reserve->work, 0);
	flush_delayed_work(&k->cma.reserve->work);
	kunit_check(test);
}
#endif

/* ------ return -------------------------------------------------------- */

static void rental_test_take_idle(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct page *page = kunit_take(k, KUNIT_FRAMES);
	struct folio *folio = kunit_alloc(k, 0, false);

	KUNIT_ASSERT_NOT_NULL(test, page);
	kunit_check(test);
	KUNIT_EXPECT_EQ(test, k->r->nr_idle, 0);
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	folio_put(folio);
	cma_release(&k->cma, page, KUNIT_FRAMES);
	kunit_check(test);
	KUNIT_EXPECT_EQ(test, k->r->nr_idle, KUNIT_FRAMES);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_returns), 0);
}

/* A lent frame that comes home belongs to the primary who waits for it. */
static void rental_test_home_while_taken(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_alloc(k, 0, false);
	struct page *page;

	kunit_put_later(k, folio, 50);
	page = kunit_take(k, KUNIT_FRAMES);
	KUNIT_ASSERT_NOT_NULL(test, page);
	kunit_check(test);
	KUNIT_EXPECT_EQ(test, k->r->nr_idle, 0);
	cma_release(&k->cma, page, KUNIT_FRAMES);
	kunit_check(test);
}

static void rental_test_discard(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct page *page;

	kunit_fill(test, 0, 100);
	folio_put(kunit_read(test, 128, 4));
	lru_add_drain_all();
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, 116);
	page = kunit_take(k, KUNIT_FRAMES);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_discarded), 116);
	KUNIT_EXPECT_EQ(test, kunit_mapping(k)->nrpages, 0);
	kunit_check(test);
	cma_release(&k->cma, page, KUNIT_FRAMES);
}

/* Nothing is lost for a page that somebody holds. */
static void rental_test_pin(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *pinned;
	struct page *page;

	kunit_fill(test, 0, 50);
	pinned = kunit_read(test, 50, 0);
	kunit_fill(test, 51, 50);
	KUNIT_EXPECT_NULL(test, kunit_take(k, KUNIT_FRAMES));
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_busy), 1);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_discarded), 0);
	KUNIT_EXPECT_EQ(test, kunit_mapping(k)->nrpages, 101);
	kunit_check(test);

	/* for a moment only, and not just after the first */
	msleep(150);
	kunit_put_later(k, pinned, 50);
	page = kunit_take(k, KUNIT_FRAMES);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_discarded), 101);
	cma_release(&k->cma, page, KUNIT_FRAMES);
	kunit_check(test);
}

/* Nor for one that was locked when it was looked at first. */
static void rental_test_pin_locked(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *pinned;

	kunit_fill(test, 0, 50);
	pinned = kunit_read(test, 50, 0);
	lru_add_drain_all();
	folio_lock(pinned);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(kunit_unlock, pinned, "rental-kunit")));
	KUNIT_EXPECT_NULL(test, kunit_take(k, KUNIT_FRAMES));
	folio_wait_locked(pinned);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_discarded), 0);
	KUNIT_EXPECT_EQ(test, kunit_mapping(k)->nrpages, 51);
	folio_put(pinned);
	kunit_check(test);
}

/* A glance at a page tells whether anybody is there, but for the usual ones. */
static void rental_test_alone(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_alloc(k, 0, false);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_EXPECT_FALSE(test, rental_alone(&folio->page)); /* on its way */
	folio_put(folio);

	folio = kunit_read(test, 0, 0);
	lru_add_drain_all();
	KUNIT_EXPECT_FALSE(test, rental_alone(&folio->page));
	folio_put(folio);
	KUNIT_EXPECT_TRUE(test, rental_alone(&folio->page));
	folio_lock(folio);
	folio_attach_private(folio, k);
	KUNIT_EXPECT_TRUE(test, rental_alone(&folio->page));
	folio_detach_private(folio);
	folio_unlock(folio);
	/* as if it was mapped */
	folio_get(folio);
	atomic_inc(&folio->_mapcount);
	KUNIT_EXPECT_TRUE(test, rental_alone(&folio->page));
	folio_get(folio);
	KUNIT_EXPECT_FALSE(test, rental_alone(&folio->page));
	folio_put(folio);
	atomic_dec(&folio->_mapcount);
	folio_put(folio);

	/* of a large one each page is looked at in another way */
	folio = kunit_read(test, 4, 2);
	lru_add_drain_all();
	folio_put(folio);
	KUNIT_EXPECT_FALSE(test, rental_alone(folio_page(folio, 0)));
	KUNIT_EXPECT_FALSE(test, rental_alone(folio_page(folio, 1)));
}

static int kunit_let_go(void *data)
{
	struct folio **folios = data;

	msleep(RENTAL_RETURN_MS + RENTAL_PIN_MS / 4);
	folio_unlock(folios[0]);
	folio_put(folios[0]);
	msleep(RENTAL_PIN_MS / 4);
	folio_put(folios[1]);
	return 0;
}

/* How long pages are locked takes nothing from the patience with who holds others. */
static void rental_test_locked_then_pin(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folios[] = { kunit_read(test, 0, 0), kunit_read(test, 1, 0) };
	struct page *page;

	lru_add_drain_all();
	folio_lock(folios[0]);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(kunit_let_go, folios, "rental-kunit")));
	page = kunit_take(k, KUNIT_FRAMES);
	KUNIT_EXPECT_NOT_NULL(test, page);
	msleep(page ? 0 : RENTAL_PIN_MS); /* until both are put */
	if (page)
		cma_release(&k->cma, page, KUNIT_FRAMES);
	kunit_check(test);
}

/* A page that stays locked is waited for once, and pages are lost for it once. */
static void rental_test_stays_locked(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read(test, 0, 0);
	u64 start;
	int i;

	kunit_fill(test, 1, 50);
	folio_lock(folio);
	folio_put(folio);
	KUNIT_EXPECT_NULL(test, kunit_take(k, KUNIT_FRAMES));
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_discarded), 50);
	kunit_fill(test, 1, 50);
	start = ktime_get_ns();
	/* the time since the last one counts */
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_NULL(test, kunit_take(k, KUNIT_FRAMES));
		msleep(30);
	}
	KUNIT_EXPECT_LT(test, ktime_get_ns() - start, NSEC_PER_MSEC * RENTAL_RETURN_MS);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_discarded), 50);
	folio_unlock(folio);
	kunit_check(test);
}

/*
 * Several of them, each in a range that cma_alloc() tries and none before it is in: others are not
 * waited for as long as the first one.
 */
static void rental_test_stay_locked(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folios[4];
	struct page *page;
	u64 start;
	int i;

	for (i = 0; i < ARRAY_SIZE(folios); i++) {
		folios[i] = kunit_read(test, i, 0);
		folio_lock(folios[i]);
		folio_put(folios[i]);
	}
	kunit_fill(test, ARRAY_SIZE(folios), 50);
	start = ktime_get_ns();
	page = kunit_take(k, KUNIT_FRAMES - ARRAY_SIZE(folios));
	KUNIT_EXPECT_LT(test, ktime_get_ns() - start, 2 * NSEC_PER_MSEC * RENTAL_RETURN_MS);
	KUNIT_EXPECT_NOT_NULL(test, page);
	if (page)
		cma_release(&k->cma, page, KUNIT_FRAMES - ARRAY_SIZE(folios));
	for (i = 0; i < ARRAY_SIZE(folios); i++)
		folio_unlock(folios[i]);
	kunit_check(test);
}

/* One that is written back for so long is waited for once, too, and pages are lost for it once. */
static void rental_test_stays_written(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	unsigned long ranges = 17, count = KUNIT_FRAMES - ranges + 1;
	struct folio *folio;

	kunit_fill(test, 0, KUNIT_FRAMES / 2);
	folio = kunit_read(test, KUNIT_FRAMES / 2, 0);
	kunit_fill(test, KUNIT_FRAMES / 2 + 1, KUNIT_FRAMES / 2 - 1);
	atomic_long_inc(&k->r->dirtied);
	folio_lock(folio);
	set_bit(PG_writeback, &folio->flags);
	folio_unlock(folio);
	folio_put(folio);
	KUNIT_EXPECT_NULL(test, kunit_take(k, count));
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_busy), ranges);
	/* of the first range; of all of them if a CPU was away for long now and then */
	KUNIT_EXPECT_LT(test, kunit_counter(k, RENTAL_discarded), KUNIT_FRAMES - 1);
	folio_lock(folio);
	clear_bit(PG_writeback, &folio->flags);
	folio_unlock(folio);
	kunit_check(test);
}

/* Reclaim has taken it out of the page cache, and does not free it while it waits for others. */
static void rental_test_stays_frozen(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read(test, 0, 0);
	bool frozen;
	u64 start;

	kunit_fill(test, 1, 50);
	folio_lock(folio);
	filemap_remove_folio(folio);
	folio_unlock(folio);
	frozen = folio_ref_freeze(folio, 1);
	KUNIT_EXPECT_TRUE(test, frozen);
	KUNIT_EXPECT_NULL(test, kunit_take(k, KUNIT_FRAMES));
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_discarded), 50);
	kunit_fill(test, 1, 50);
	start = ktime_get_ns();
	KUNIT_EXPECT_NULL(test, kunit_take(k, KUNIT_FRAMES));
	KUNIT_EXPECT_LT(test, ktime_get_ns() - start, NSEC_PER_MSEC * RENTAL_PIN_MS);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_discarded), 50);
	if (frozen)
		folio_ref_unfreeze(folio, 1);
	folio_put(folio);
	kunit_check(test);
}

/* What is remembered is the page, not who has its frame next, and is only being read. */
static void rental_test_next_in_frame(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio;
	struct page *page;

	kunit_fill(test, 0, KUNIT_FRAMES - 1);
	folio = kunit_read(test, KUNIT_FRAMES - 1, 0);
	lru_add_drain_all();
	KUNIT_EXPECT_NULL(test, kunit_take(k, KUNIT_FRAMES));
	folio_lock(folio);
	filemap_remove_folio(folio);
	folio_unlock(folio);
	folio_put(folio);
	folio = kunit_alloc(k, 0, false);
	KUNIT_ASSERT_TRUE(test, kunit_ours(k, folio));
	KUNIT_ASSERT_EQ(test, filemap_add_folio(kunit_mapping(k), folio, KUNIT_FRAMES,
						GFP_KERNEL), 0);
	folio_put(folio);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(kunit_unlock, folio, "rental-kunit")));
	page = kunit_take(k, KUNIT_FRAMES);
	KUNIT_EXPECT_NOT_NULL(test, page);
	msleep(page ? 0 : 2 * RENTAL_PIN_MS); /* until it is unlocked */
	if (page)
		cma_release(&k->cma, page, KUNIT_FRAMES);
	kunit_check(test);
}

/* Nor if neither of them was in a file when it was looked at; the first one is not waited for. */
static void rental_test_next_in_frame_not_added(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio;
	unsigned long frame;
	struct page *page;
	u64 start;
	int i;

	kunit_fill(test, 0, KUNIT_FRAMES - 1);
	folio = kunit_alloc(k, 0, false);
	KUNIT_ASSERT_TRUE(test, kunit_ours(k, folio));
	frame = folio_pfn(folio) - k->cma.base_pfn;
	KUNIT_EXPECT_EQ(test, return_memory(&k->cma, frame, 1), -EBUSY);
	KUNIT_EXPECT_TRUE(test, k->r->stuck);
	start = ktime_get_ns();
	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_EQ(test, return_memory(&k->cma, frame, 1), -EBUSY);
	KUNIT_EXPECT_LT(test, ktime_get_ns() - start, NSEC_PER_MSEC * RENTAL_RETURN_MS / 2);
	folio_put(folio);
	folio = kunit_alloc(k, 0, false);
	KUNIT_ASSERT_EQ(test, folio_pfn(folio) - k->cma.base_pfn, frame);
	/* others have 0.2 s now */
	kunit_put_later(k, folio, RENTAL_RETURN_MS / 20);
	page = kunit_take(k, KUNIT_FRAMES);
	KUNIT_EXPECT_NOT_NULL(test, page);
	flush_delayed_work(&k->work);
	if (page)
		cma_release(&k->cma, page, KUNIT_FRAMES);
	kunit_check(test);
}

/* Who is killed ends his wait, and does not look elsewhere. */
static void rental_test_killed(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read(test, 0, 0);

	folio_lock(folio);
	folio_put(folio);
	allow_signal(SIGKILL);
	send_sig(SIGKILL, current, 1);
	KUNIT_EXPECT_EQ(test, return_memory(&k->cma, 0, KUNIT_FRAMES), -EINTR);
	KUNIT_EXPECT_NULL(test, kunit_take(k, KUNIT_FRAMES - 1));
	flush_signals(current);
	disallow_signal(SIGKILL);
	kunit_check(test);
	folio_unlock(folio);
}

/* Locks a folio half of the time. */
static int kunit_touch(void *folio)
{
	while (!kthread_should_stop()) {
		folio_lock(folio);
		usleep_range(500, 1000);
		folio_unlock(folio);
		usleep_range(500, 1000);
	}
	return 0;
}

/* One that is held is found before a page is lost, though others lock it again and again. */
static void rental_test_pin_touched(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct task_struct *other;
	struct folio *pinned;
	u64 start;

	kunit_fill(test, 0, 50);
	pinned = kunit_read(test, 50, 0);
	lru_add_drain_all();
	other = kthread_run(kunit_touch, pinned, "rental-kunit");
	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	start = ktime_get_ns();
	KUNIT_EXPECT_NULL(test, kunit_take(k, KUNIT_FRAMES));
	KUNIT_EXPECT_LT(test, ktime_get_ns() - start, NSEC_PER_MSEC * RENTAL_RETURN_MS);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_discarded), 0);
	kthread_stop(other);
	folio_put(pinned);
	kunit_check(test);
}

/* What a filesystem does not let go of is moved. */
static void rental_test_not_released(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read(test, 0, 0);
	struct page *page;

	folio_lock(folio);
	folio_attach_private(folio, &kunit_note);
	folio_unlock(folio);
	folio_put(folio);
	lru_add_drain_all();
	page = kunit_take(k, KUNIT_FRAMES);
	KUNIT_EXPECT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_moved_out), 1);
	if (page)
		cma_release(&k->cma, page, KUNIT_FRAMES);
	folio = filemap_lock_folio(kunit_mapping(k), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	KUNIT_EXPECT_PTR_EQ(test, folio_get_private(folio), (void *)&kunit_note);
	kunit_check_page(test, folio, 0);
	folio_detach_private(folio);
	folio_unlock(folio);
	folio_put(folio);
}

/* Room is made of other memory, though lent pages could be evicted just as well. */
static void rental_test_room(struct kunit *test)
{
	struct rental_kunit *k = test->priv;

	kunit_fill(test, 0, KUNIT_FRAMES);
	reclaim_clean_file(NODE_DATA(rental_nid(k->r)), KUNIT_FRAMES);
	KUNIT_EXPECT_EQ(test, kunit_mapping(k)->nrpages, KUNIT_FRAMES);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, KUNIT_FRAMES);
}

/* Reclaim looks for pages of the area's node, which are not found. */
static void kunit_reclaim_node(struct rental_kunit *k)
{
	struct pglist_data *pgdat = NODE_DATA(rental_nid(k->r));
	unsigned long min_slab = pgdat->min_slab_pages;
	int mode = node_reclaim_mode;

	pgdat->min_slab_pages = 0; /* what to look at it for */
	node_reclaim_mode = RECLAIM_WRITE | RECLAIM_UNMAP;
	node_reclaim(pgdat, GFP_KERNEL, MAX_PAGE_ORDER);
	node_reclaim_mode = mode;
	pgdat->min_slab_pages = min_slab;
}

#ifdef CONFIG_LRU_GEN
/* Nor do they get younger by that, not even those that were read often, and count as in use. */
static void rental_test_room_no_younger(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct lru_gen_folio *lrugen;
	struct folio *folio;
	int gen, i;

	if (!lru_gen_enabled())
		return;
	/* the oldest generation has to be none of those in use: nothing is looked at there */
	lrugen = &mem_cgroup_lruvec(NULL, NODE_DATA(rental_nid(k->r)))->lrugen;
	for (i = 0; i < 20 && lrugen->min_seq[LRU_GEN_FILE] + MIN_NR_GENS > lrugen->max_seq; i++)
		kunit_reclaim_node(k);
	kunit_fill(test, 0, 1);
	folio = filemap_get_folio(kunit_mapping(k), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	lru_add_drain_all();
	deactivate_file_folio(folio);
	lru_add_drain_all();
	for (i = 0; i <= BIT(LRU_REFS_WIDTH); i++)
		folio_mark_accessed(folio);
	gen = folio_lru_gen(folio);
	KUNIT_EXPECT_EQ(test, gen, lru_gen_from_seq(lrugen->min_seq[LRU_GEN_FILE]));
	KUNIT_EXPECT_LE(test, lrugen->min_seq[LRU_GEN_FILE] + MIN_NR_GENS, lrugen->max_seq);
	reclaim_clean_file(NODE_DATA(rental_nid(k->r)), ULONG_MAX);
	KUNIT_EXPECT_EQ(test, folio_lru_gen(folio), gen);
	folio_put(folio);
}
#endif

/*
 * Lent pages that are evicted, or passed over, are no cost of files beside anonymous memory. This
 * leaves others little to reclaim, and so comes last.
 */
static void rental_test_no_cost(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	int nid = rental_nid(k->r);
	struct lruvec *lruvec = mem_cgroup_lruvec(NULL, NODE_DATA(nid));
	long cost, evicted;

	/* no room: they are evicted in their turn */
	kunit_fill(test, 0, KUNIT_FRAMES);
	cost = lruvec->file_cost;
	try_to_free_pages(node_zonelist(nid, GFP_KERNEL), 0, GFP_KERNEL, NULL);
	cost = (long)lruvec->file_cost - cost;
	evicted = KUNIT_FRAMES - k->r->nr_lent;
	kunit_info(test, "%ld pages of %lu were evicted, and cost %ld\n", evicted, KUNIT_FRAMES,
		   cost);
	/* generations are not weighed by it, and may be young */
	if (!lru_gen_enabled())
		KUNIT_EXPECT_GT(test, evicted, 0);
	/* what is noted is halved when it is more than a quarter of what is left */
	KUNIT_EXPECT_LT(test, cost, SWAP_CLUSTER_MAX / 4);
	kunit_check(test);
}

/* Those that are spared, between pages that are evicted: one look finds both. Last, too. */
static void rental_test_no_cost_spared(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	int nid = rental_nid(k->r);
	struct lruvec *lruvec = mem_cgroup_lruvec(NULL, NODE_DATA(nid));
	unsigned int index, flags;
	unsigned long reclaimed;
	long cost;

	for (index = 0; index < KUNIT_FRAMES; index += 2) {
		folio_put(kunit_read(test, index, 0));
		flags = memalloc_pin_save(); /* of other memory */
		folio_put(kunit_read(test, index + 1, 0));
		memalloc_pin_restore(flags);
	}
	lru_add_drain_all();
	cost = lruvec->file_cost;
	reclaimed = try_to_free_pages(node_zonelist(nid, GFP_KERNEL), 0, GFP_KERNEL, NULL);
	cost = (long)lruvec->file_cost - cost;
	kunit_info(test, "%lu pages were reclaimed, and cost %ld\n", reclaimed, cost);
	if (!lru_gen_enabled())
		KUNIT_EXPECT_GE(test, reclaimed, SWAP_CLUSTER_MAX / 2);
	KUNIT_EXPECT_LT(test, cost, SWAP_CLUSTER_MAX / 4);
	kunit_check(test);
}

/*
 * Pages are on lists though their zone manages none, as one that is nothing but an area: they are
 * found there. Generations do not ask.
 */
static void rental_test_room_unmanaged(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct pglist_data *pgdat = NODE_DATA(rental_nid(k->r));
	unsigned long managed[MAX_NR_ZONES], nr;
	int i;

	kunit_fill_elsewhere(test);
	for (i = 0; i < MAX_NR_ZONES; i++) {
		managed[i] = zone_managed_pages(pgdat->node_zones + i);
		atomic_long_sub(managed[i], &pgdat->node_zones[i].managed_pages);
	}
	nr = reclaim_clean_file(pgdat, 1);
	for (i = 0; i < MAX_NR_ZONES; i++)
		atomic_long_add(managed[i], &pgdat->node_zones[i].managed_pages);
	if (!lru_gen_enabled())
		KUNIT_EXPECT_GT(test, nr, 0);
}

/* The pages of kunit_fill_elsewhere() */
static void kunit_dirty_elsewhere(struct kunit *test, bool dirty)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio;
	pgoff_t index;

	for (index = KUNIT_FRAMES; index < 2 * KUNIT_FRAMES; index++) {
		folio = filemap_lock_folio(k->inode.i_mapping, index);
		KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
		if (dirty)
			folio_mark_dirty(folio);
		else
			folio_cancel_dirty(folio);
		folio_unlock(folio);
		folio_put(folio);
	}
}

/* Is our device, which has something to write, asked to begin? It is on the list meanwhile. */
static bool kunit_flushes(struct kunit *test, struct pglist_data *pgdat, bool clean)
{
	struct rental_kunit *k = test->priv;
	struct bdi_writeback *wb = &k->bdi->wb;

	clear_bit(WB_start_all, &wb->state);
	spin_lock_bh(&bdi_lock);
	list_add_tail_rcu(&k->bdi->bdi_list, &bdi_list);
	spin_unlock_bh(&bdi_lock);
	if (clean)
		reclaim_clean_file(pgdat, KUNIT_FRAMES);
	else
		try_to_free_pages(node_zonelist(pgdat->node_id, GFP_KERNEL), 0, GFP_KERNEL, NULL);
	spin_lock_bh(&bdi_lock);
	list_del_rcu(&k->bdi->bdi_list);
	spin_unlock_bh(&bdi_lock);
	synchronize_rcu();
	INIT_LIST_HEAD(&k->bdi->bdi_list);
	return test_bit(WB_start_all, &wb->state);
}

/* Who makes room has nothing written for it: that is for who is short of memory. Last, too. */
static void rental_test_room_no_io(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct pglist_data *pgdat = NODE_DATA(rental_nid(k->r));
	struct bdi_writeback *wb = &k->bdi->wb;

	kunit_fill_elsewhere(test);
	kunit_dirty_elsewhere(test, true);
	set_bit(WB_has_dirty_io, &wb->state);
	atomic_long_set(&k->bdi->tot_write_bandwidth, 1);
	list_add_tail_rcu(&wb->bdi_node, &k->bdi->wb_list);
	KUNIT_EXPECT_FALSE(test, kunit_flushes(test, pgdat, true));
	if (!lru_gen_enabled()) /* generations have another way to tell */
		KUNIT_EXPECT_TRUE(test, kunit_flushes(test, pgdat, false));
	list_del_rcu(&wb->bdi_node);
	INIT_LIST_HEAD(&wb->bdi_node);
	atomic_long_set(&k->bdi->tot_write_bandwidth, 0);
	wb->state = 0;
	kunit_dirty_elsewhere(test, false);
}

static void rental_test_adaptive(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio;
	struct page *page;
	long kept;
	pgoff_t i;

	k->r->scheme = RENTAL_ADAPTIVE;
	kunit_fill(test, 0, 20);
	for (i = 0; i < 10; i++) {
		folio = filemap_get_folio(kunit_mapping(k), i);
		folio_activate(folio);
		folio_put(folio);
	}
	lru_add_drain_all();
	page = kunit_take(k, KUNIT_FRAMES);
	KUNIT_ASSERT_NOT_NULL(test, page);
	kept = kunit_counter(k, RENTAL_activated);
	/* of two generations, both count as in use */
	KUNIT_EXPECT_TRUE(test, lru_gen_enabled() ? kept >= 10 : kept == 10);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_discarded), 20 - kept);
	KUNIT_EXPECT_EQ(test, kunit_mapping(k)->nrpages, kept);
	for (i = 0; i < 10; i++) {
		folio = filemap_get_folio(kunit_mapping(k), i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
		KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
		kunit_check_page(test, folio, i);
		folio_put(folio);
	}
	cma_release(&k->cma, page, KUNIT_FRAMES);
}

/* What a filesystem notes about a dirty page in use moves with it. */
static void rental_test_adaptive_dirty(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read(test, 0, 0);
	struct page *page;

	k->r->scheme = RENTAL_NOCLEAN;
	folio_lock(folio);
	folio_attach_private(folio, k);
	folio_mark_dirty(folio);
	folio_unlock(folio);
	lru_add_drain_all();
	folio_activate(folio);
	folio_put(folio);
	lru_add_drain_all();
	k->r->scheme = RENTAL_ADAPTIVE;
	page = kunit_take(k, KUNIT_FRAMES);
	KUNIT_ASSERT_NOT_NULL(test, page);
	cma_release(&k->cma, page, KUNIT_FRAMES);
	folio = filemap_lock_folio(kunit_mapping(k), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	KUNIT_EXPECT_TRUE(test, folio_test_dirty(folio));
	KUNIT_EXPECT_PTR_EQ(test, folio_get_private(folio), (void *)k);
	kunit_check_page(test, folio, 0);
	folio_cancel_dirty(folio);
	if (folio_test_private(folio))
		folio_detach_private(folio);
	folio_unlock(folio);
	folio_put(folio);
}

/* A page that was lent a moment ago is nobody's who holds it for long, even if he is slow. */
static void rental_test_on_its_way(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct page *page;

	kunit_put_later(k, kunit_alloc(k, 0, false), 3 * RENTAL_PIN_MS);
	page = kunit_take(k, KUNIT_FRAMES);
	KUNIT_ASSERT_NOT_NULL(test, page);
	cma_release(&k->cma, page, KUNIT_FRAMES);
}

/* A failure of long ago, when jiffies had not wrapped, makes nobody impatient. */
static void rental_test_failed_long_ago(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct page *page;

	k->r->held_until = jiffies + LONG_MAX / 2;
	kunit_put_later(k, kunit_read(test, 0, 0), RENTAL_PIN_MS / 2);
	page = kunit_take(k, KUNIT_FRAMES);
	KUNIT_ASSERT_NOT_NULL(test, page);
	cma_release(&k->cma, page, KUNIT_FRAMES);
}

static void rental_test_ranges(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct cma *cma = &k->cma;

	KUNIT_EXPECT_EQ(test, return_memory(NULL, 0, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, rent_memory(NULL, 0, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, return_memory(cma, 0, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, return_memory(cma, 0, KUNIT_FRAMES + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, return_memory(cma, 1, KUNIT_FRAMES), -EINVAL);
	KUNIT_EXPECT_EQ(test, return_memory(cma, KUNIT_FRAMES, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, return_memory(cma, ULONG_MAX, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, return_memory(cma, 1, ULONG_MAX), -EINVAL);
	KUNIT_EXPECT_EQ(test, return_memory(cma, 7, 13), 0);
	KUNIT_EXPECT_EQ(test, return_memory(cma, 0, 8), -EBUSY);
	KUNIT_EXPECT_EQ(test, return_memory(cma, 19, 1), -EBUSY);
	KUNIT_EXPECT_EQ(test, return_memory(cma, 0, 7), 0);
	kunit_check(test);
	KUNIT_EXPECT_EQ(test, rent_memory(cma, 0, 20), 0);
	kunit_check(test);
	KUNIT_EXPECT_EQ(test, rent_memory(cma, 0, KUNIT_FRAMES + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, k->r->nr_idle, KUNIT_FRAMES);
}

/* What KASAN knows pages by is of each its own when they come home, and of all one thereafter. */
static void rental_test_tags(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	unsigned long i;

	kunit_fill(test, 0, KUNIT_FRAMES);
	KUNIT_ASSERT_EQ(test, return_memory(&k->cma, 0, KUNIT_FRAMES), 0);
	for (i = 0; i < KUNIT_FRAMES; i++)
		KUNIT_EXPECT_EQ(test, page_kasan_tag(k->memory + i), 0xff);
	KUNIT_EXPECT_EQ(test, rent_memory(&k->cma, 0, KUNIT_FRAMES), 0);
}

/* ------ the exchange -------------------------------------------------- */

static void kunit_write(struct kunit *test, unsigned int order)
{
	struct rental_kunit *k = test->priv;
	pgoff_t i, nr = 1UL << order;
	struct folio *new;

	folio_put(kunit_read(test, 0, order));
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, nr);
	new = __filemap_get_folio(kunit_mapping(k), nr - 1, FGP_WRITEBEGIN, GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(new));
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, new));
	KUNIT_EXPECT_TRUE(test, folio_test_locked(new));
	KUNIT_EXPECT_TRUE(test, folio_test_uptodate(new));
	KUNIT_EXPECT_EQ(test, folio_order(new), order);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_replaced), nr);
	KUNIT_EXPECT_EQ(test, kunit_mapping(k)->nrpages, nr);
	for (i = 0; i < nr; i++)
		kunit_check_page(test, new, i);
	folio_unlock(new);
	folio_put(new);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, 0);
	kunit_check(test);
}

static void rental_test_write(struct kunit *test)
{
	kunit_write(test, 0);
}

static void rental_test_write_large(struct kunit *test)
{
	kunit_write(test, 3);
}

static void rental_test_write_noclean(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *old = kunit_read(test, 0, 0), *new;

	k->r->scheme = RENTAL_NOCLEAN;
	new = __filemap_get_folio(kunit_mapping(k), 0, FGP_WRITEBEGIN, GFP_KERNEL);
	KUNIT_EXPECT_PTR_EQ(test, new, old);
	folio_unlock(new);
	folio_put(new);
	folio_put(old);
}

/* btrfs does not say that it writes. */
static void rental_test_write_stable(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *new;

	kunit_fill(test, 0, 1);
	new = __filemap_get_folio(kunit_mapping(k), 0, FGP_LOCK | FGP_ACCESSED | FGP_CREAT |
				  FGP_STABLE | FGP_NOWAIT, GFP_NOWAIT);
	KUNIT_ASSERT_FALSE(test, IS_ERR(new));
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, new));
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_replaced), 1);
	/* and the rest is done with it that is done with every other page */
	KUNIT_EXPECT_TRUE(test, folio_test_referenced(new));
	folio_unlock(new);
	folio_put(new);
}

/* Who must not wait does not for those who change the file's mappings. */
static void rental_test_nowait_mapped(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read(test, 0, 0), *new;

	lru_add_drain_all();
	folio_put(folio);
	i_mmap_lock_write(kunit_mapping(k));
	atomic_inc(&folio->_mapcount); /* as if it was mapped */
	new = __filemap_get_folio(kunit_mapping(k), 0, FGP_WRITEBEGIN | FGP_NOWAIT, GFP_NOWAIT);
	atomic_dec(&folio->_mapcount);
	i_mmap_unlock_write(kunit_mapping(k));
	KUNIT_EXPECT_PTR_EQ(test, new, ERR_PTR(-EAGAIN));
}

/* A write to the lent page at @index finds another one in its place. */
static void kunit_write_moves(struct kunit *test, pgoff_t index)
{
	struct rental_kunit *k = test->priv;
	struct folio *new = __filemap_get_folio(kunit_mapping(k), index, FGP_WRITEBEGIN,
						GFP_KERNEL);

	KUNIT_ASSERT_FALSE(test, IS_ERR(new));
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, new));
	folio_unlock(new);
	folio_put(new);
}

/* Memory has no two free pages beside each other. */
static struct folio *kunit_no_run(gfp_t gfp, unsigned int order)
{
	return order ? NULL : filemap_alloc_folio(gfp, order);
}

#define KUNIT_ORDER	3

/* A large folio, for whose copy there is no run of other memory */
static struct folio *kunit_read_no_run(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "large folios cannot be split");
	i_size_write(&k->inode, PAGE_SIZE << KUNIT_ORDER);
	folio = kunit_read(test, 0, KUNIT_ORDER);
	lru_add_drain_all();
	kunit_activate_static_stub(test, rental_alloc_copy, kunit_no_run);
	return folio;
}

/* Of what was a large folio one page is elsewhere, and the others are lent still. */
static void kunit_expect_split(struct kunit *test, pgoff_t index)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio;
	pgoff_t i;

	for (i = 0; i < 1 << KUNIT_ORDER; i++) {
		folio = filemap_get_folio(kunit_mapping(k), i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
		KUNIT_EXPECT_FALSE(test, folio_test_large(folio));
		KUNIT_EXPECT_TRUE(test, folio_test_uptodate(folio));
		KUNIT_EXPECT_EQ(test, kunit_ours(k, folio), i != index);
		kunit_check_page(test, folio, i);
		folio_put(folio);
	}
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_replaced), 1);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_held), 0);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_no_memory), 0);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, (1 << KUNIT_ORDER) - 1);
	kunit_check(test);
}

/* Without a run of other memory the page that is written to leaves alone. */
static void rental_test_write_split(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *new;

	folio_put(kunit_read_no_run(test));
	/* who must not wait does not wait for the locks of a split */
	new = __filemap_get_folio(kunit_mapping(k), 5, FGP_WRITEBEGIN | FGP_NOWAIT, GFP_NOWAIT);
	KUNIT_EXPECT_PTR_EQ(test, new, ERR_PTR(-EAGAIN));
	kunit_write_moves(test, 5);
	kunit_expect_split(test, 5);
}

/* It is not split for who writes to it while somebody holds it, and is as it was then. */
static void rental_test_write_split_held(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read_no_run(test), *new;

	new = __filemap_get_folio(kunit_mapping(k), 5, FGP_WRITEBEGIN, GFP_KERNEL);
	KUNIT_EXPECT_PTR_EQ(test, new, folio);
	KUNIT_EXPECT_EQ(test, folio_order(new), KUNIT_ORDER);
	KUNIT_EXPECT_EQ(test, folio_ref_count(new), 2 + (1 << KUNIT_ORDER));
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_held), 1 << KUNIT_ORDER);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_no_memory), 0);
	folio_unlock(new);
	folio_put(new);
	folio_put(folio);
	kunit_write_moves(test, 5);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_replaced), 1);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, (1 << KUNIT_ORDER) - 1);
	kunit_check(test);
}

/* A mapping of one page that is locked in memory, which need not be there for that */
static struct vm_area_struct *kunit_mlock(struct kunit *test, pgoff_t index)
{
	struct vm_area_struct *vma = kunit_kzalloc(test, sizeof(*vma), GFP_KERNEL);
	struct address_space *mapping = kunit_mapping(test->priv);

	KUNIT_ASSERT_NOT_NULL(test, vma);
	vma->vm_mm = &init_mm; /* has no page there: whoever looks finds none */
	vma->vm_end = PAGE_SIZE;
	vma->vm_pgoff = index;
	vm_flags_init(vma, VM_LOCKED);
	i_mmap_lock_write(mapping);
	vma_interval_tree_insert(vma, &mapping->i_mmap);
	i_mmap_unlock_write(mapping);
	return vma;
}

static void kunit_munlock(struct kunit *test, struct vm_area_struct *vma)
{
	struct address_space *mapping = kunit_mapping(test->priv);

	i_mmap_lock_write(mapping);
	vma_interval_tree_remove(vma, &mapping->i_mmap);
	i_mmap_unlock_write(mapping);
}

/* Nor if it is locked in memory: it would be unmapped. */
static void rental_test_write_split_mlocked(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read_no_run(test), *new;
	struct vm_area_struct *vma = kunit_mlock(test, (1 << KUNIT_ORDER) - 1);

	folio_put(folio);
	new = __filemap_get_folio(kunit_mapping(k), 5, FGP_WRITEBEGIN, GFP_KERNEL);
	KUNIT_EXPECT_PTR_EQ(test, new, folio);
	KUNIT_EXPECT_EQ(test, folio_order(new), KUNIT_ORDER);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_no_memory), 1 << KUNIT_ORDER);
	folio_unlock(new);
	folio_put(new);
	kunit_munlock(test, vma);
}

/* What is locked in memory just beside it is not in the way. */
static void rental_test_write_split_beside(struct kunit *test)
{
	struct vm_area_struct *vma;

	folio_put(kunit_read_no_run(test));
	vma = kunit_mlock(test, 1 << KUNIT_ORDER);
	kunit_write_moves(test, 5);
	kunit_munlock(test, vma);
	kunit_expect_split(test, 5);
}

/* There are single pages only. */
static struct folio *kunit_no_large_target(struct folio *folio, unsigned long mtc)
{
	return folio_test_large(folio) ? NULL : alloc_migration_target(folio, mtc);
}

/* What has to be moved out is not split for that if it is locked in memory. */
static void kunit_clean_large(struct kunit *test, bool mlocked)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read_no_run(test);
	struct vm_area_struct *vma = mlocked ? kunit_mlock(test, 0) : NULL;
	pgoff_t i;

	kunit_activate_static_stub(test, rental_target, kunit_no_large_target);
	folio_lock(folio);
	folio_mark_dirty(folio);
	folio_unlock(folio);
	folio_put(folio);
	/* the stub is for this thread only */
	cancel_delayed_work_sync(&k->r->clean_work);
	rental_clean(&k->r->clean_work.work);
	folio = filemap_get_folio(kunit_mapping(k), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	KUNIT_EXPECT_EQ(test, folio_order(folio), mlocked ? KUNIT_ORDER : 0);
	KUNIT_EXPECT_EQ(test, kunit_ours(k, folio), mlocked);
	KUNIT_EXPECT_EQ(test, rental_may_be_dirty(k->r), mlocked);
	kunit_check_page(test, folio, 0);
	folio_put(folio);
	if (vma)
		kunit_munlock(test, vma);
	kunit_deactivate_static_stub(test, rental_target);
	flush_delayed_work(&k->r->clean_work);
	KUNIT_EXPECT_FALSE(test, rental_may_be_dirty(k->r));
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, 0);
	for (i = 0; i < 1 << KUNIT_ORDER; i++) {
		folio = filemap_lock_folio(kunit_mapping(k), i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
		folio_cancel_dirty(folio);
		folio_unlock(folio);
		folio_put(folio);
	}
}

static void rental_test_slipped_large(struct kunit *test)
{
	kunit_clean_large(test, false);
}

static void rental_test_slipped_large_mlocked(struct kunit *test)
{
	kunit_clean_large(test, true);
}

/* Memory has no free page. */
static struct folio *kunit_no_memory(gfp_t gfp, unsigned int order)
{
	return NULL;
}

static void rental_test_write_no_memory(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *new;

	kunit_fill(test, 0, 1);
	kunit_activate_static_stub(test, rental_alloc_copy, kunit_no_memory);
	new = __filemap_get_folio(kunit_mapping(k), 0, FGP_WRITEBEGIN | FGP_NOWAIT, GFP_NOWAIT);
	KUNIT_EXPECT_PTR_EQ(test, new, ERR_PTR(-EAGAIN));
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_no_memory), 0);
	new = __filemap_get_folio(kunit_mapping(k), 0, FGP_WRITEBEGIN, GFP_KERNEL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(new));
	KUNIT_EXPECT_TRUE(test, kunit_ours(k, new));
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_no_memory), 1);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_held), 0);
	folio_unlock(new);
	folio_put(new);
}

/* Has a page until somebody else has waited for it for a while. */
static int kunit_hold(void *folio)
{
	while (!folio_test_locked(folio))
		cond_resched();
	udelay(300);
	folio_put(folio);
	return 0;
}

static void rental_test_write_waits(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *old = kunit_read(test, 0, 0);

	lru_add_drain_all();
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(kunit_hold, old, "rental-kunit")));
	kunit_write_moves(test, 0);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_replaced), 1);
	kunit_check(test);
}

/* Who reads on waits for the disk meanwhile. */
static void rental_test_write_waits_for_reader(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *held[] = { kunit_read(test, 0, 0), kunit_read(test, 1, 0),
				 kunit_read(test, 2, 0) }, *new;
	u64 start;
	int i;

	lru_add_drain_all();
	kunit_put_later(k, held[0], RENTAL_PIN_MS / 2);
	kunit_write_moves(test, 0);
	flush_delayed_work(&k->work);

	/* those that stay held are not each waited for as long; what was in vain elsewhere is */
	*rental_vain(k->r, kunit_mapping(k)) = (struct rental_vain){ .until = jiffies + HZ };
	start = ktime_get_ns();
	for (i = 1; i < ARRAY_SIZE(held); i++) {
		new = __filemap_get_folio(kunit_mapping(k), i, FGP_WRITEBEGIN, GFP_KERNEL);
		KUNIT_EXPECT_PTR_EQ(test, new, held[i]);
		folio_unlock(new);
		folio_put(new);
		folio_put(held[i]);
	}
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, NSEC_PER_MSEC * RENTAL_PIN_MS);
	KUNIT_EXPECT_LT(test, ktime_get_ns() - start, NSEC_PER_MSEC * 2 * RENTAL_PIN_MS);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_replaced), 1);
	KUNIT_EXPECT_PTR_EQ(test, rental_vain(k->r, kunit_mapping(k))->mapping, kunit_mapping(k));
	kunit_check(test);
}

/* Has a page as long as he waits for its lock. */
static int kunit_wait_for_lock(void *data)
{
	struct folio *folio = data;

	folio_lock(folio);
	folio_unlock(folio);
	folio_put(folio);
	return 0;
}

/* It is no use to wait for who waits for the writer, nor while the page is written back. */
static void rental_test_write_no_use(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read(test, 0, 0);
	struct task_struct *other;
	u64 start;

	lru_add_drain_all();
	folio_get(folio);
	folio_lock(folio);
	other = kthread_create(kunit_wait_for_lock, folio, "rental-kunit");
	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	get_task_struct(other);
	wake_up_process(other);
	while (!folio_test_waiters(folio))
		usleep_range(1000, 2000);
	start = ktime_get_ns();
	KUNIT_EXPECT_PTR_EQ(test, rental_before_write(folio, false), folio);
	KUNIT_EXPECT_LT(test, ktime_get_ns() - start, NSEC_PER_MSEC * RENTAL_PIN_MS / 2);
	folio_unlock(folio);
	kthread_stop_put(other);

	folio_lock(folio);
	set_bit(PG_writeback, &folio->flags);
	start = ktime_get_ns();
	KUNIT_EXPECT_PTR_EQ(test, rental_before_write(folio, false), folio);
	KUNIT_EXPECT_LT(test, ktime_get_ns() - start, NSEC_PER_MSEC * RENTAL_PIN_MS / 2);
	clear_bit(PG_writeback, &folio->flags);
	folio_unlock(folio);
	folio_put(folio);
	KUNIT_EXPECT_NULL(test, rental_vain(k->r, kunit_mapping(k))->mapping);
	kunit_check(test);
}

/* Something that keeps a CPU busy which has a page in its lists, so that they are to be drained */
struct kunit_block {
	struct work_struct work;
	struct address_space *mapping;
	struct folio *folio; /* of other memory */
	bool begun;
};

static void kunit_block(struct work_struct *work)
{
	struct kunit_block *block = container_of(work, struct kunit_block, work);
	unsigned long end, spins = 0;

	if (!filemap_add_folio(block->mapping, block->folio, 2, GFP_KERNEL))
		folio_unlock(block->folio);
	preempt_disable();
	WRITE_ONCE(block->begun, true);
	/* not mdelay(): emulators are slow to pause, but have to, for the other CPU */
	end = jiffies + msecs_to_jiffies(5 * RENTAL_PIN_MS);
	while (time_before(jiffies, end)) {
		if (!(spins++ % 1024))
			cpu_relax();
		barrier();
	}
	preempt_enable();
}

/*
 * A CPU that does not come to drain its lists keeps nobody from a page that is in none of them, but
 * held by somebody for a while: neither who writes to it, nor who returns it.
 */
static void rental_test_blocked_drain(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	unsigned int cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	struct kunit_block block = { .mapping = kunit_mapping(k) };
	struct folio *folio;
	struct page *page;
	u64 start;

	if (cpu >= nr_cpu_ids)
		kunit_skip(test, "one CPU only");
	block.folio = kunit_alloc(k, 0, true);
	KUNIT_ASSERT_NOT_NULL(test, block.folio);
	kunit_fill(test, 0, 2);
	INIT_WORK_ONSTACK(&block.work, kunit_block);
	schedule_work_on(cpu, &block.work);
	while (!READ_ONCE(block.begun))
		usleep_range(50, 200);
	folio = filemap_get_folio(kunit_mapping(k), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	kunit_put_later(k, folio, RENTAL_PIN_MS / 10);
	start = ktime_get_ns();
	kunit_write_moves(test, 0);
	flush_delayed_work(&k->work);

	folio = filemap_get_folio(kunit_mapping(k), 1);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	kunit_put_later(k, folio, RENTAL_PIN_MS / 10);
	page = kunit_take(k, KUNIT_FRAMES);
	KUNIT_EXPECT_LT(test, ktime_get_ns() - start, NSEC_PER_MSEC * 2 * RENTAL_PIN_MS);
	KUNIT_EXPECT_NOT_NULL(test, page);
	if (page)
		cma_release(&k->cma, page, KUNIT_FRAMES);
	flush_work(&block.work);
	destroy_work_on_stack(&block.work);
	folio_put(block.folio);
	kunit_check(test);
}

static int kunit_take_all(void *data)
{
	struct rental_kunit *k = data;
	struct page *page = kunit_take(k, KUNIT_FRAMES);

	if (page)
		cma_release(&k->cma, page, KUNIT_FRAMES);
	return !page;
}

/* Nor does a return that waits for a page keep it where it is. */
static void rental_test_write_while_returned(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct task_struct *other;
	struct folio *folio, *new;
	unsigned int ms = 0;

	kunit_fill(test, 0, 1);
	folio = filemap_lock_folio(kunit_mapping(k), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	other = kthread_create(kunit_take_all, k, "rental-kunit");
	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	get_task_struct(other);
	wake_up_process(other);
	while (!kunit_counter(k, RENTAL_returns) && ms++ < 10000)
		usleep_range(1000, 2000);
	msleep(20);
	new = rental_before_write(folio, false);
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, new));
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_replaced), 1);
	folio_unlock(new);
	folio_put(new);
	KUNIT_EXPECT_EQ(test, kthread_stop_put(other), 0);
	kunit_check(test);
}

/* What a primary has is his, whatever he does with it. */
static void rental_test_of_primary(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct page *page = kunit_take(k, 2);

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_FALSE(test, rental_lent(page));
	KUNIT_EXPECT_FALSE(test, rental_fault(page_folio(page), 0));
	cma_release(&k->cma, page, 2);
}

static void rental_test_fault(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read(test, 0, 0);

	KUNIT_EXPECT_TRUE(test, rental_fault(folio, 0) == VM_FAULT_NOPAGE);
	KUNIT_EXPECT_NULL(test, folio->mapping);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, 1); /* until the fault is over */
	/* as if it was truncated */
	KUNIT_EXPECT_TRUE(test, rental_fault(folio, 0) == VM_FAULT_NOPAGE);
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 1);
	folio_put(folio);
	folio = filemap_get_folio(kunit_mapping(k), 0);
	KUNIT_EXPECT_FALSE(test, rental_fault(folio, 0));
	folio_put(folio);
	kunit_check(test);
}

static pgoff_t kunit_fault_index;

static int kunit_fault(void *folio)
{
	vm_fault_t ret = rental_fault(folio, kunit_fault_index);

	folio_put(folio);
	return ret != VM_FAULT_NOPAGE;
}

/* Other faults wait for the lock, with references: they do not keep the page where it is. */
static void rental_test_two_faults(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read(test, 0, 0), *new;
	struct task_struct *others[2];
	unsigned int ms = 0;
	int i;

	kunit_fault_index = 0;
	lru_add_drain_all();
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		others[i] = kthread_create(kunit_fault, folio, "rental-kunit");
		KUNIT_ASSERT_FALSE(test, IS_ERR(others[i]));
		get_task_struct(others[i]);
		folio_get(folio);
	}
	folio_lock(folio);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		wake_up_process(others[i]);
	while (rental_nr_waiters(folio) < 2 && ms++ < 10000)
		usleep_range(1000, 2000);
	/* who has it otherwise does, and then they have theirs still */
	new = filemap_alloc_folio(GFP_KERNEL, 0);
	KUNIT_ASSERT_NOT_NULL(test, new);
	folio_get(folio);
	KUNIT_EXPECT_FALSE(test, rental_replace(folio, new));
	folio_put(folio);
	folio_put(new);
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 4); /* the page cache's, too */
	new = rental_before_write(folio, false);
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, new));
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_replaced), 1);
	folio_unlock(new);
	folio_put(new);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		KUNIT_EXPECT_EQ(test, kthread_stop_put(others[i]), 0);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, 0);
	kunit_check(test);
}

/* Nor do they keep it in one piece. They look what they have got, which need not be their page. */
static void rental_test_split_fault(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read_no_run(test);
	struct task_struct *other;
	unsigned int ms = 0;

	kunit_fault_index = 5;
	other = kthread_create(kunit_fault, folio, "rental-kunit");
	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	get_task_struct(other);
	folio_get(folio);
	folio_lock(folio);
	wake_up_process(other);
	while (!rental_nr_waiters(folio) && ms++ < 10000)
		usleep_range(1000, 2000);
	KUNIT_EXPECT_NULL(test, rental_to_write(folio, false));
	/* Somebody writes to the first page, where it is, before the fault has the lock. */
	folio_mark_dirty(folio);
	folio_unlock(folio);
	folio_put(folio);
	KUNIT_EXPECT_EQ(test, kthread_stop_put(other), 0);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_replaced), 0);
	flush_delayed_work(&k->r->clean_work);
	folio = filemap_lock_folio(kunit_mapping(k), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	folio_cancel_dirty(folio);
	folio_unlock(folio);
	folio_put(folio);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, (1 << KUNIT_ORDER) - 1);
	kunit_check(test);
}

static int kunit_filemap_fault(void *vmf)
{
	return filemap_fault(vmf);
}

/* The same for faults that read: each finds its own page, whoever split the folio meanwhile. */
static void rental_test_split_read_fault(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read_no_run(test), *found;
	struct vm_area_struct *vma = kunit_kzalloc(test, sizeof(*vma), GFP_KERNEL);
	struct file *file = kunit_kzalloc(test, sizeof(*file), GFP_KERNEL);
	/* not the first time, so it neither reads ahead nor lets go of locks of an mm */
	struct vm_fault vmf = { .vma = vma, .pgoff = 5, .flags = FAULT_FLAG_TRIED };
	struct task_struct *other;
	unsigned int ms = 0;

	KUNIT_ASSERT_NOT_NULL(test, vma);
	KUNIT_ASSERT_NOT_NULL(test, file);
	file->f_mapping = kunit_mapping(k);
	vma->vm_file = file;
	other = kthread_create(kunit_filemap_fault, &vmf, "rental-kunit");
	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	get_task_struct(other);
	folio_lock(folio);
	wake_up_process(other);
	while (!rental_nr_waiters(folio) && ms++ < 10000)
		usleep_range(1000, 2000);
	KUNIT_EXPECT_EQ(test, rental_nr_waiters(folio), 1);
	KUNIT_EXPECT_NULL(test, rental_to_write(folio, false));
	folio_unlock(folio);
	folio_put(folio);
	KUNIT_EXPECT_EQ(test, kthread_stop_put(other), VM_FAULT_LOCKED);
	KUNIT_ASSERT_NOT_NULL(test, vmf.page);
	found = page_folio(vmf.page);
	KUNIT_EXPECT_EQ(test, found->index, 5);
	kunit_check_page(test, found, 5);
	folio_unlock(found);
	folio_put(found);
	kunit_check(test);
}

/* A fault that splits a folio is taken again, and finds a small one. */
static void rental_test_fault_split(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read_no_run(test);

	KUNIT_EXPECT_TRUE(test, rental_fault(folio, 5) == VM_FAULT_NOPAGE);
	KUNIT_EXPECT_FALSE(test, folio_test_large(folio));
	KUNIT_EXPECT_FALSE(test, folio_test_locked(folio));
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 2);
	folio_put(folio);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, 1 << KUNIT_ORDER);
	folio = filemap_get_folio(kunit_mapping(k), 5);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	KUNIT_EXPECT_TRUE(test, rental_fault(folio, 5) == VM_FAULT_NOPAGE);
	folio_put(folio);
	kunit_expect_split(test, 5);
}

/* Who holds a page keeps it where it is, but for no longer than he holds it. */
static void rental_test_slipped(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read(test, 0, 0), *new;

	kunit_fill(test, 1, 1);
	/* who does not wait does not write to it, and who does not know that it is held, waits */
	new = __filemap_get_folio(kunit_mapping(k), 0, FGP_WRITEBEGIN | FGP_NOWAIT, GFP_NOWAIT);
	KUNIT_EXPECT_PTR_EQ(test, new, ERR_PTR(-EAGAIN));
	new = __filemap_get_folio(kunit_mapping(k), 0, FGP_WRITEBEGIN, GFP_KERNEL);
	KUNIT_EXPECT_PTR_EQ(test, new, folio);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_replaced), 0);
	folio_mark_dirty(folio);
	folio_unlock(folio);
	folio_put(folio);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_slipped), 1);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_held), 1);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_no_memory), 0);
	flush_delayed_work(&k->r->clean_work);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, 2);
	KUNIT_EXPECT_TRUE(test, rental_may_be_dirty(k->r));
	folio_put(folio);
	flush_delayed_work(&k->r->clean_work);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, 1);
	/* so what is dirty the next time is told */
	KUNIT_EXPECT_FALSE(test, rental_may_be_dirty(k->r));
	folio = filemap_get_folio(kunit_mapping(k), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	KUNIT_EXPECT_FALSE(test, kunit_ours(k, folio));
	KUNIT_EXPECT_TRUE(test, folio_test_dirty(folio));
	kunit_check_page(test, folio, 0);
	folio_lock(folio);
	folio_cancel_dirty(folio);
	folio_unlock(folio);
	folio_put(folio);
}

/* No page is lent any more, and the first one lies elsewhere. */
static void kunit_expect_moved_out(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio;

	KUNIT_EXPECT_EQ(test, k->r->nr_lent, 0);
	folio = filemap_lock_folio(kunit_mapping(k), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	folio_cancel_dirty(folio);
	folio_unlock(folio);
	folio_put(folio);
}

/* Who moves dirty pages out does not wait for one of them. */
static void rental_test_slipped_locked(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read(test, 0, 0);

	lru_add_drain_all();
	folio_lock(folio);
	folio_mark_dirty(folio);
	/* nobody asked before */
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_slipped), 1);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_held), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(kunit_unlock, folio, "rental-kunit")));
	flush_delayed_work(&k->r->clean_work);
	KUNIT_EXPECT_TRUE(test, folio_test_locked(folio));
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&k->r->clean_work));
	folio_wait_locked(folio);
	folio_put(folio);
	flush_delayed_work(&k->r->clean_work);
	kunit_expect_moved_out(test);
}

/* Nor does he forget one that is about to be written back, and not dirty any more. */
static void rental_test_slipped_written(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_read(test, 0, 0);

	lru_add_drain_all();
	folio_lock(folio);
	folio_mark_dirty(folio);
	folio_clear_dirty_for_io(folio);
	flush_delayed_work(&k->r->clean_work);
	KUNIT_EXPECT_TRUE(test, rental_may_be_dirty(k->r));
	folio_unlock(folio);
	folio_put(folio);
	flush_delayed_work(&k->r->clean_work);
	KUNIT_EXPECT_FALSE(test, rental_may_be_dirty(k->r));
}

/* Nor one that nobody gets a reference to, as it is being split; but what goes home is no such. */
static void rental_test_slipped_frozen(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_alloc(k, 0, false);
	bool frozen;

	KUNIT_ASSERT_NOT_NULL(test, folio);
	atomic_long_inc(&k->r->dirtied);
	frozen = folio_ref_freeze(folio, 1);
	KUNIT_EXPECT_TRUE(test, frozen);
	rental_clean(&k->r->clean_work.work);
	KUNIT_EXPECT_FALSE(test, rental_may_be_dirty(k->r));
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&k->r->clean_work));
	if (frozen)
		folio_ref_unfreeze(folio, 1);
	folio_put(folio);

	folio = kunit_read(test, 0, 0);
	lru_add_drain_all();
	folio_lock(folio);
	folio_mark_dirty(folio);
	cancel_delayed_work_sync(&k->r->clean_work);
	frozen = folio_ref_freeze(folio, 2);
	KUNIT_EXPECT_TRUE(test, frozen);
	rental_clean(&k->r->clean_work.work);
	if (frozen)
		folio_ref_unfreeze(folio, 2);
	KUNIT_EXPECT_TRUE(test, rental_may_be_dirty(k->r));
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&k->r->clean_work));
	folio_unlock(folio);
	folio_put(folio);
	flush_delayed_work(&k->r->clean_work);
	KUNIT_EXPECT_FALSE(test, rental_may_be_dirty(k->r));
	kunit_expect_moved_out(test);
}

/* What reclaim would evict */
static struct folio *kunit_isolated(struct kunit *test, unsigned int order)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio;

	k->r->scheme = RENTAL_NOCLEAN; /* so that it is not exchanged by who looks it up */
	folio = filemap_alloc_folio(GFP_KERNEL, order);
	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_ASSERT_EQ(test, filemap_add_folio(kunit_mapping(k), folio, 0, GFP_KERNEL), 0);
	memset(folio_address(folio), 0, folio_size(folio));
	folio_mark_uptodate(folio);
	folio_unlock(folio);
	lru_add_drain_all();
	KUNIT_ASSERT_TRUE(test, folio_isolate_lru(folio));
	node_stat_mod_folio(folio, NR_ISOLATED_FILE, folio_nr_pages(folio));
	folio_put(folio);
	k->r->scheme = RENTAL_LAZY;
	return folio;
}

/* Scheme "clean" has nothing in lent frames but what was read there. */
static void rental_test_clean(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_isolated(test, 0);
	LIST_HEAD(list);

	k->r->scheme = RENTAL_CLEAN;
	list_add(&folio->lru, &list);
	KUNIT_EXPECT_EQ(test, reclaim_clean_pages_from_list(folio_zone(folio), &list), 1);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_taken_over), 0);
	KUNIT_EXPECT_EQ(test, kunit_mapping(k)->nrpages, 0);
	kunit_check(test);
}

static void rental_test_take_over(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_isolated(test, 0), *old = folio;
	LIST_HEAD(list);

	list_add(&folio->lru, &list);
	KUNIT_EXPECT_EQ(test, reclaim_clean_pages_from_list(folio_zone(folio), &list), 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&list));
	/* free, or somebody's by now */
	KUNIT_EXPECT_GE(test, folio_ref_count(old), 0);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_taken_over), 1);
	folio = filemap_get_folio(kunit_mapping(k), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(folio));
	KUNIT_EXPECT_TRUE(test, kunit_ours(k, folio));
	kunit_check_page(test, folio, 0);
	folio_put(folio);
	kunit_check(test);
}

static void kunit_get(void *folio, struct folio *from, struct folio *to)
{
	if (from == folio)
		folio_get(from);
}

/* Who looked the page up just before has what it was, until he puts it. */
static void rental_test_take_over_looked_up(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct folio *folio = kunit_isolated(test, 0);
	LIST_HEAD(list);

	KUNIT_ASSERT_EQ(test, register_trace_rental_take_over(kunit_get, folio), 0);
	list_add(&folio->lru, &list);
	KUNIT_EXPECT_EQ(test, reclaim_clean_pages_from_list(folio_zone(folio), &list), 1);
	unregister_trace_rental_take_over(kunit_get, folio);
	tracepoint_synchronize_unregister();
	KUNIT_EXPECT_TRUE(test, list_empty(&list));
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_taken_over), 1);
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 1);
	KUNIT_EXPECT_FALSE(test, folio_test_locked(folio));
	folio_put(folio);
	kunit_check(test);
}

#ifdef CONFIG_MEMCG
/* A group that is gone is not kept by pages that were to be evicted. */
static void rental_test_group_gone(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct cgroup_subsys_state *css;
	struct folio *folio;

	if (mem_cgroup_disabled())
		kunit_skip(test, "there are no groups");
	folio = kunit_isolated(test, 0);
	css = &folio_memcg(folio)->css;
	folio_lock(folio);
	css->flags &= ~CSS_ONLINE; /* as if it was gone: it is that of all */
	KUNIT_EXPECT_FALSE(test, rental_take_over(folio));
	css->flags |= CSS_ONLINE;
	folio_unlock(folio);
	KUNIT_EXPECT_EQ(test, kunit_counter(k, RENTAL_taken_over), 0);
	node_stat_mod_folio(folio, NR_ISOLATED_FILE, -1);
	folio_putback_lru(folio);
	kunit_check(test);
}
#endif

#ifdef CONFIG_ARCH_WANT_BATCHED_UNMAP_TLB_FLUSH
/* Nobody reads the old page any more when there is a new one. */
static void rental_test_flush(struct kunit *test)
{
	struct folio *folio = kunit_isolated(test, 0);

	folio_lock(folio);
	current->tlb_ubc.flush_required = true; /* as if it was mapped */
	KUNIT_EXPECT_TRUE(test, rental_take_over(folio));
	KUNIT_EXPECT_FALSE(test, current->tlb_ubc.flush_required);
	folio_unlock(folio);
	node_stat_mod_folio(folio, NR_ISOLATED_FILE, -1);
	folio_put(folio);
}
#endif

static void kunit_expect_reclaimable(struct kunit *test, unsigned long expected)
{
	struct rental_kunit *k = test->priv;
	unsigned long nr = zone_reclaimable_pages(page_zone(k->memory));

	/* somebody else may read, or evict, a page or two */
	KUNIT_EXPECT_LT(test, nr, expected + KUNIT_FRAMES / 4);
	KUNIT_EXPECT_GT(test, nr, expected - KUNIT_FRAMES / 4);
}

/* An allocation does not hope for lent pages, or it would take long until it fails. */
static void rental_test_not_reclaimable(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	unsigned long before, i;

	kunit_fill_elsewhere(test);
	before = zone_reclaimable_pages(page_zone(k->memory));
	kunit_fill(test, 0, KUNIT_FRAMES);
	KUNIT_EXPECT_EQ(test, k->r->nr_lent, KUNIT_FRAMES);
	kunit_expect_reclaimable(test, before);

	/* Those locked in memory were none it hoped for. */
	for (i = 0; i < KUNIT_FRAMES / 2; i++)
		mlock_folio(page_folio(k->memory + i));
	lru_add_drain_all();
	KUNIT_EXPECT_EQ(test, atomic_long_read(&k->r->nr_unevictable), KUNIT_FRAMES / 2);
	kunit_expect_reclaimable(test, before);
	for (i = 0; i < KUNIT_FRAMES / 2; i++)
		munlock_folio(page_folio(k->memory + i));
	lru_add_drain_all();
	kunit_expect_reclaimable(test, before);
}

#ifdef CONFIG_NUMA
/* A node is as full as if it had no lent pages. */
static void rental_test_node_full(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	struct pglist_data *pgdat = NODE_DATA(rental_nid(k->r));
	unsigned long min_unmapped = pgdat->min_unmapped_pages, min_slab = pgdat->min_slab_pages;

	kunit_fill_elsewhere(test);
	kunit_fill(test, 0, KUNIT_FRAMES);
	pgdat->min_slab_pages = ULONG_MAX;
	pgdat->min_unmapped_pages = node_page_state(pgdat, NR_INACTIVE_FILE) +
				    node_page_state(pgdat, NR_ACTIVE_FILE) - KUNIT_FRAMES / 2;
	KUNIT_EXPECT_EQ(test, node_reclaim(pgdat, GFP_NOWAIT, 0), NODE_RECLAIM_FULL);
	pgdat->min_unmapped_pages -= KUNIT_FRAMES;
	KUNIT_EXPECT_NE(test, node_reclaim(pgdat, GFP_NOWAIT, 0), NODE_RECLAIM_FULL);
	pgdat->min_unmapped_pages = min_unmapped;
	pgdat->min_slab_pages = min_slab;
}

/* So many that the area has room still */
#define KUNIT_SPARED	(KUNIT_FRAMES - 2 * KUNIT_FRAMES / RENTAL_ROOM)

/* That it has too little is no distress: the next one is asked. */
static void rental_test_one_node(struct kunit *test)
{
	struct rental_kunit *k = test->priv;

	kunit_fill(test, 0, KUNIT_SPARED);
	kunit_reclaim_node(k);
	KUNIT_EXPECT_GE(test, k->r->nr_lent, KUNIT_SPARED);
}

static unsigned long kunit_active(struct rental_kunit *k)
{
	unsigned long i, nr = 0;

	for (i = 0; i < KUNIT_FRAMES; i++)
		nr += test_bit(i, k->r->lent) &&
		      folio_test_active(page_folio(k->memory + i));
	return nr;
}

/* Reclaim leaves lent pages where they are, but not among those in use if nobody uses them. */
static void rental_test_grows_old(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	unsigned int tries;
	unsigned long i;

	kunit_fill(test, 0, KUNIT_SPARED);
	for (i = 0; i < KUNIT_FRAMES; i++)
		if (test_bit(i, k->r->lent))
			folio_activate(page_folio(k->memory + i));
	lru_add_drain_all();
	/* generations grow old by themselves */
	KUNIT_ASSERT_EQ(test, kunit_active(k), lru_gen_enabled() ? 0 : KUNIT_SPARED);
	/* It may find enough elsewhere before it has looked at all. */
	for (tries = 0; tries < 20 && kunit_active(k) > KUNIT_SPARED / 2; tries++)
		kunit_reclaim_node(k);
	KUNIT_EXPECT_LE(test, kunit_active(k), KUNIT_SPARED / 2);
	KUNIT_EXPECT_GE(test, k->r->nr_lent, KUNIT_SPARED);
}
#endif

static void rental_test_spared(struct kunit *test)
{
	struct folio *folio = kunit_read(test, 0, 0);

	KUNIT_EXPECT_TRUE(test, rental_spared(folio));
	kunit_fill(test, 1, KUNIT_FRAMES - 1 - KUNIT_FRAMES / RENTAL_ROOM);
	KUNIT_EXPECT_FALSE(test, rental_spared(folio));
	folio_put(folio);
}

/* Who wants contiguous memory tries an area's range, too, and leaves it as it was. */
static void rental_test_contig(struct kunit *test)
{
	struct rental_kunit *k = test->priv;
	unsigned long i, pfn = k->cma.base_pfn;
	struct folio *folio = kunit_read(test, 0, 0);

	KUNIT_EXPECT_EQ(test, alloc_contig_range(pfn, pfn + KUNIT_FRAMES, MIGRATE_MOVABLE,
						 GFP_KERNEL), -EBUSY);
	for (i = 0; i < KUNIT_FRAMES; i += pageblock_nr_pages)
		KUNIT_EXPECT_TRUE(test, is_migrate_isolate_page(k->memory + i));
	folio_put(folio);
}

/* ------ the area and the file of each test ---------------------------- */

static int rental_kunit_init(struct kunit *test)
{
	struct rental_kunit *k = kunit_kzalloc(test, sizeof(*k), GFP_KERNEL);
	struct inode *inode;

	if (!k)
		return -ENOMEM;
	inode = &k->inode;
	inode_init_once(inode);
	spin_lock_init(&inode->i_lock);
	init_rwsem(&inode->i_data.invalidate_lock);
	atomic_set(&inode->i_count, 1); /* keeps it off its LRU list */
	k->bdi = bdi_alloc(NUMA_NO_NODE);
	k->sb.s_bdi = k->bdi;
	inode->i_sb = &k->sb;
	inode->i_mode = S_IFREG;
	inode->i_fop = &kunit_fops;
	inode->i_mapping = &inode->i_data;
	inode->i_data.host = inode;
	inode->i_data.a_ops = &kunit_aops;
	mapping_set_gfp_mask(&inode->i_data, GFP_KERNEL);
	mapping_set_large_folios(&inode->i_data);
	INIT_DELAYED_WORK(&k->work, kunit_put_now);

	if (!k->bdi || kunit_create(&k->cma))
		return -ENOMEM;
	k->memory = cma_page(&k->cma, 0);
	k->r = rental_of(&k->cma);
	test->priv = k;
	return 0;
}

/* All frames are home when the file is gone. */
static void rental_kunit_exit(struct kunit *test)
{
	struct rental_kunit *k = test->priv;

	if (!k)
		return;
	flush_delayed_work(&k->work);
	truncate_inode_pages(kunit_mapping(k), 0);
	lru_add_drain_all();
	kunit_check(test);
	if (k->second)
		kunit_destroy(test, k->second);
	kunit_destroy(test, &k->cma);
	bdi_put(k->bdi);
}

static struct kunit_case rental_kunit_cases[] = {
	KUNIT_CASE(rental_test_lend),
	KUNIT_CASE(rental_test_large),
	KUNIT_CASE(rental_test_owner),
	KUNIT_CASE(rental_test_no_run),
	KUNIT_CASE(rental_test_late_lookup),
	KUNIT_CASE(rental_test_not_lent),
#ifdef CONFIG_NUMA
	KUNIT_CASE(rental_test_policy),
#endif
	KUNIT_CASE(rental_test_two_areas),
	KUNIT_CASE(rental_test_lend_fault),
	KUNIT_CASE(rental_test_lend_read),
#ifdef CONFIG_MEMORY_FAILURE
	KUNIT_CASE(rental_test_poison),
	KUNIT_CASE(rental_test_poison_large),
#endif
	KUNIT_CASE(rental_test_contig),
	KUNIT_CASE(rental_test_take_idle),
	KUNIT_CASE(rental_test_home_while_taken),
	KUNIT_CASE(rental_test_discard),
	KUNIT_CASE(rental_test_pin),
	KUNIT_CASE(rental_test_pin_locked),
	KUNIT_CASE(rental_test_alone),
	KUNIT_CASE(rental_test_locked_then_pin),
	KUNIT_CASE(rental_test_stays_locked),
	KUNIT_CASE(rental_test_stay_locked),
	KUNIT_CASE(rental_test_stays_written),
	KUNIT_CASE(rental_test_stays_frozen),
	KUNIT_CASE(rental_test_next_in_frame),
	KUNIT_CASE(rental_test_next_in_frame_not_added),
	KUNIT_CASE(rental_test_killed),
	KUNIT_CASE(rental_test_pin_touched),
	KUNIT_CASE(rental_test_not_released),
	KUNIT_CASE(rental_test_room),
#ifdef CONFIG_LRU_GEN
	KUNIT_CASE(rental_test_room_no_younger),
#endif
	KUNIT_CASE(rental_test_room_unmanaged),
	KUNIT_CASE(rental_test_adaptive),
	KUNIT_CASE(rental_test_adaptive_dirty),
	KUNIT_CASE(rental_test_on_its_way),
	KUNIT_CASE(rental_test_failed_long_ago),
	KUNIT_CASE(rental_test_ranges),
	KUNIT_CASE(rental_test_tags),
	KUNIT_CASE(rental_test_write),
	KUNIT_CASE(rental_test_write_large),
	KUNIT_CASE(rental_test_write_split),
	KUNIT_CASE(rental_test_write_split_held),
	KUNIT_CASE(rental_test_write_split_mlocked),
	KUNIT_CASE(rental_test_write_split_beside),
	KUNIT_CASE(rental_test_write_no_memory),
	KUNIT_CASE(rental_test_write_noclean),
	KUNIT_CASE(rental_test_write_stable),
	KUNIT_CASE(rental_test_nowait_mapped),
	KUNIT_CASE(rental_test_write_waits),
	KUNIT_CASE(rental_test_write_waits_for_reader),
	KUNIT_CASE(rental_test_write_no_use),
	KUNIT_CASE(rental_test_blocked_drain),
	KUNIT_CASE(rental_test_write_while_returned),
	KUNIT_CASE(rental_test_of_primary),
	KUNIT_CASE(rental_test_fault),
	KUNIT_CASE(rental_test_two_faults),
	KUNIT_CASE(rental_test_split_fault),
	KUNIT_CASE(rental_test_split_read_fault),
	KUNIT_CASE(rental_test_fault_split),
	KUNIT_CASE(rental_test_slipped),
	KUNIT_CASE(rental_test_slipped_locked),
	KUNIT_CASE(rental_test_slipped_written),
	KUNIT_CASE(rental_test_slipped_frozen),
	KUNIT_CASE(rental_test_slipped_large),
	KUNIT_CASE(rental_test_slipped_large_mlocked),
	KUNIT_CASE(rental_test_clean),
	KUNIT_CASE(rental_test_take_over),
	KUNIT_CASE(rental_test_take_over_looked_up),
#ifdef CONFIG_MEMCG
	KUNIT_CASE(rental_test_group_gone),
#endif
#ifdef CONFIG_ARCH_WANT_BATCHED_UNMAP_TLB_FLUSH
	KUNIT_CASE(rental_test_flush),
#endif
	KUNIT_CASE(rental_test_not_reclaimable),
#ifdef CONFIG_NUMA
	KUNIT_CASE(rental_test_node_full),
	KUNIT_CASE(rental_test_one_node),
	KUNIT_CASE(rental_test_grows_old),
#endif
	KUNIT_CASE(rental_test_spared),
	KUNIT_CASE(rental_test_no_cost),
	KUNIT_CASE(rental_test_no_cost_spared),
	KUNIT_CASE(rental_test_room_no_io),
	{}
};

static struct kunit_suite rental_kunit_suite = {
	.name = "rental",
	.init = rental_kunit_init,
	.exit = rental_kunit_exit,
	.test_cases = rental_kunit_cases,
};

kunit_test_suite(rental_kunit_suite);
