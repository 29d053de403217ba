// SPDX-License-Identifier: GPL-2.0-only
/*
 * CMA areas that stay out of the buddy allocator: tests
 *
 * Part of cma_reserve.c. Each test has an area of its own, of ordinary pages, beside
 * the areas of the machine. Its policy remembers what it was asked to do and looks
 * at the bitmap whenever it is.
 */

#include <kunit/test.h>
#include <linux/initrd.h>
#include <linux/sched/clock.h>

#include "cma_reserve_debug.h"

#define KUNIT_PAGES	256UL

/**
 * struct cma_kunit - what each test gets
 * @cma: the area
 * @memory: its pages
 * @lent: frames that the policy may use, by its own account
 * @scrubbed: frames between scrub() and lend()
 * @busy: frames before this one it does not let go of
 * @hasty: a primary that takes what is lent as soon as it is: how many pages
 * @taken: what it got
 * @least: @nr_available then
 * @wrong: calls that came in another order than they should
 */
struct cma_kunit {
	struct cma cma;
	void *memory;
	DECLARE_BITMAP(lent, KUNIT_PAGES);
	DECLARE_BITMAP(scrubbed, KUNIT_PAGES);
	unsigned long busy;
	unsigned long hasty;
	struct page *taken;
	long least;
	unsigned int wrong;
};

/* ------ a policy that checks how it is called ------------------------- */

static struct cma_kunit *kunit_of(struct cma_reserve *r)
{
	return container_of(r->cma, struct cma_kunit, cma);
}

/* Are the bits of a range all set, or all clear? */
static bool kunit_bits(const struct cma *cma, unsigned long frame,
		       unsigned long count, bool set)
{
	unsigned long i;

	for (i = frame; i < frame + count; i++)
		if (test_bit(i >> cma->order_per_bit, cma->bitmap) != set)
			return false;
	return true;
}

static int kunit_create(struct cma_reserve *r)
{
	bitmap_fill(kunit_of(r)->lent, KUNIT_PAGES);
	return 0;
}

static int kunit_revoke(struct cma_reserve *r, unsigned long frame,
			unsigned long count)
{
	struct cma_kunit *k = kunit_of(r);

	k->wrong += !kunit_bits(r->cma, frame, count, true);
	k->wrong += find_next_zero_bit(k->lent, frame + count, frame) <
		    frame + count;
	bitmap_clear(k->lent, frame, count);
	return frame < k->busy ? -EBUSY : 0;
}

static void kunit_scrub(struct cma_reserve *r, unsigned long frame,
			unsigned long count)
{
	struct cma_kunit *k = kunit_of(r);

	k->wrong += !kunit_bits(r->cma, frame, count, true);
	k->wrong += find_next_bit(k->lent, frame + count, frame) < frame + count;
	bitmap_set(k->scrubbed, frame, count);
}

static void kunit_lend(struct cma_reserve *r, unsigned long frame,
		       unsigned long count)
{
	struct cma_kunit *k = kunit_of(r);

	k->wrong += !kunit_bits(r->cma, frame, count, false);
	k->wrong += find_next_zero_bit(k->scrubbed, frame + count, frame) <
		    frame + count;
	bitmap_clear(k->scrubbed, frame, count);
	bitmap_set(k->lent, frame, count);
	if (k->hasty) {
		unsigned long hasty = k->hasty;

		k->hasty = 0;
		k->taken = cma_alloc(r->cma, hasty, 0, true);
		k->least = atomic_long_read(&r->nr_available);
	}
}

static const struct cma_policy kunit_policy = {
	.name = "kunit",
	.create = kunit_create,
	.revoke = kunit_revoke,
	.scrub = kunit_scrub,
	.lend = kunit_lend,
};

/* ------ primaries ----------------------------------------------------- */

/* Pages that nobody holds are lent, and the counter knows how many they are. */
static void kunit_check(struct kunit *test)
{
	struct cma_kunit *k = test->priv;
	struct cma *cma = &k->cma;
	unsigned long held = bitmap_weight(cma->bitmap, cma_bitmap_maxno(cma)) <<
			     cma->order_per_bit;

	KUNIT_EXPECT_EQ(test, k->wrong, 0);
	KUNIT_EXPECT_EQ(test, bitmap_weight(k->lent, KUNIT_PAGES),
			KUNIT_PAGES - held);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->scrubbed, KUNIT_PAGES));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&cma->reserve->nr_available),
			KUNIT_PAGES - held);
}

static bool kunit_held(struct cma_kunit *k, unsigned long frame)
{
	return test_bit(frame >> k->cma.order_per_bit, k->cma.bitmap);
}

static void kunit_run_quarantine_work(struct cma_kunit *k)
{
	mod_delayed_work(system_wq, &k->cma.reserve->work, 0);
	flush_delayed_work(&k->cma.reserve->work);
}

static unsigned long kunit_quarantined(struct cma_kunit *k)
{
	return bitmap_weight(k->cma.reserve->quarantine,
			     cma_bitmap_maxno(&k->cma));
}

static void __init cma_test_alloc_release(struct kunit *test)
{
	struct cma_kunit *k = test->priv;
	struct page *page, *rest;

	KUNIT_EXPECT_NULL(test, cma_alloc(&k->cma, 0, 0, true));
	KUNIT_EXPECT_NULL(test, cma_alloc(&k->cma, KUNIT_PAGES + 1, 0, true));

	/* the whole area, released in parts */
	page = cma_alloc(&k->cma, KUNIT_PAGES, 0, true);
	KUNIT_ASSERT_PTR_EQ(test, page, cma_page(&k->cma, 0));
	kunit_check(test);
	KUNIT_EXPECT_NULL(test, cma_alloc(&k->cma, 1, 0, true));

	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page + 16, 16));
	rest = cma_alloc(&k->cma, 8, 3, true);
	KUNIT_EXPECT_PTR_EQ(test, rest, page + 16);
	kunit_check(test);
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page, 24));
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page + 32,
					    KUNIT_PAGES - 32));
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->cma.bitmap, KUNIT_PAGES));
}

/* What is given back may be a primary's again at once: it was available in between. */
static void __init cma_test_alloc_while_lending(struct kunit *test)
{
	struct cma_kunit *k = test->priv;
	struct page *page = cma_alloc(&k->cma, KUNIT_PAGES, 0, true);

	KUNIT_ASSERT_NOT_NULL(test, page);
	k->hasty = KUNIT_PAGES;
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page, KUNIT_PAGES));
	KUNIT_ASSERT_PTR_EQ(test, k->taken, page);
	KUNIT_EXPECT_GE(test, k->least, 0);
	kunit_check(test);
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page, KUNIT_PAGES));
}

/* A range that the policy does not let go of is given back as it was, and the next tried. */
static void __init cma_test_alloc_busy(struct kunit *test)
{
	struct cma_kunit *k = test->priv;
	struct page *page;

	memset(k->memory, 0xff, KUNIT_PAGES * PAGE_SIZE);
	k->busy = 64;
	page = cma_alloc(&k->cma, 32, 5, true);
	KUNIT_EXPECT_PTR_EQ(test, page, cma_page(&k->cma, 64));
	kunit_check(test);
	/* also with init_on_free: the policy needs what is in it */
	KUNIT_EXPECT_NULL(test, memchr_inv(k->memory, 0xff, 64 * PAGE_SIZE));
	KUNIT_EXPECT_NULL(test, cma_alloc(&k->cma, KUNIT_PAGES - 32, 0, true));
	kunit_check(test);
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page, 32));
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->cma.bitmap, KUNIT_PAGES));
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->cma.reserve->leaving, KUNIT_PAGES));
}

/* Double release, and the like: cma_reserve_release() warns of what is refused here. */
static void __init cma_test_refused_release(struct kunit *test)
{
	struct cma_kunit *k = test->priv;
	struct page *page = cma_alloc(&k->cma, 8, 0, true);

	KUNIT_ASSERT_PTR_EQ(test, page, cma_page(&k->cma, 0));
	/* nothing, more than the area, what is free, what is free in part */
	KUNIT_EXPECT_FALSE(test, cma_leave(&k->cma, 4, 4));
	KUNIT_EXPECT_FALSE(test, cma_leave(&k->cma, 0, KUNIT_PAGES + 1));
	KUNIT_EXPECT_FALSE(test, cma_leave(&k->cma, 8, 9));
	KUNIT_EXPECT_FALSE(test, cma_leave(&k->cma, 4, 9));

	/* what is being released, also in part, and what was */
	KUNIT_EXPECT_TRUE(test, cma_leave(&k->cma, 0, 4));
	KUNIT_EXPECT_FALSE(test, cma_leave(&k->cma, 0, 4));
	KUNIT_EXPECT_FALSE(test, cma_leave(&k->cma, 3, 5));
	cma_settle(&k->cma, 0, 4);
	KUNIT_EXPECT_FALSE(test, cma_leave(&k->cma, 0, 4));

	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page + 4, 4));
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->cma.bitmap, KUNIT_PAGES));
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->cma.reserve->leaving,
					     KUNIT_PAGES));
}

static void __init cma_test_zeroed(struct kunit *test)
{
	struct cma_kunit *k = test->priv;
	struct page *page;

	memset(k->memory, 0xff, 4 * PAGE_SIZE);
	spin_lock_irq(&k->cma.lock);
	bitmap_set(k->cma.bitmap, 0, 4);
	spin_unlock_irq(&k->cma.lock);
	page = cma_page(&k->cma, 0);
	KUNIT_EXPECT_EQ(test, cma_reserve_take(&k->cma, page_to_pfn(page), 4,
					       GFP_KERNEL | __GFP_ZERO), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(k->memory, 0, 4 * PAGE_SIZE));
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page, 4));
}

static void __init cma_test_quarantine(struct kunit *test)
{
	struct cma_kunit *k = test->priv;
	struct page *page = cma_alloc(&k->cma, 8, 0, true);
	unsigned long frame = page_to_pfn(page) - k->cma.base_pfn;

	get_page(page + 3);
	cma_release(&k->cma, page, 8);
	KUNIT_EXPECT_EQ(test, kunit_quarantined(k), 1);
	KUNIT_EXPECT_TRUE(test, kunit_held(k, frame + 3));
	KUNIT_EXPECT_FALSE(test, kunit_held(k, frame + 2));
	KUNIT_EXPECT_FALSE(test, kunit_held(k, frame + 4));
	KUNIT_EXPECT_NULL(test, cma_alloc(&k->cma, KUNIT_PAGES, 0, true));
	kunit_check(test);

	/* still held: stays */
	kunit_run_quarantine_work(k);
	KUNIT_EXPECT_TRUE(test, kunit_held(k, frame + 3));

	put_page(page + 3);
	kunit_run_quarantine_work(k);
	KUNIT_EXPECT_EQ(test, kunit_quarantined(k), 0);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->cma.reserve->leaving,
					     KUNIT_PAGES));
	KUNIT_EXPECT_FALSE(test, kunit_held(k, frame + 3));
}

static void __init cma_test_compound(struct kunit *test)
{
	struct cma_kunit *k = test->priv;
	struct folio *folio;
	unsigned long i, ram;

	wait_for_initramfs(); /* which gives its memory back meanwhile */
	ram = totalram_pages();
	folio = cma_alloc_folio(&k->cma, 3, GFP_KERNEL | __GFP_COMP);
	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_EXPECT_EQ(test, folio_order(folio), 3);
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 1);
	KUNIT_EXPECT_EQ(test, totalram_pages(), ram + 8);

	/* held as a whole, quarantined as a whole */
	folio_get(folio);
	cma_release(&k->cma, &folio->page, 8);
	KUNIT_EXPECT_EQ(test, kunit_quarantined(k), 8);
	folio_put(folio);
	kunit_run_quarantine_work(k);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->cma.bitmap, KUNIT_PAGES));
	KUNIT_EXPECT_EQ(test, totalram_pages(), ram);

	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_FALSE(test, PageCompound(cma_page(&k->cma, i)));
		KUNIT_EXPECT_EQ(test, page_count(cma_page(&k->cma, i)), 1);
	}

	/* who looked for something else has the head, or a tail, for a moment */
	for (i = 0; i < 8; i += 7) {
		get_page(cma_page(&k->cma, i));
		folio = cma_alloc_folio(&k->cma, 3, GFP_KERNEL | __GFP_COMP);
		KUNIT_ASSERT_NOT_NULL(test, folio);
		KUNIT_EXPECT_PTR_NE(test, &folio->page, cma_page(&k->cma, 0));
		put_page(cma_page(&k->cma, i));
		cma_release(&k->cma, &folio->page, 8);
		kunit_run_quarantine_work(k);
		KUNIT_EXPECT_TRUE(test, bitmap_empty(k->cma.bitmap, KUNIT_PAGES));
		KUNIT_EXPECT_EQ(test, totalram_pages(), ram);
	}
}

/* A huge page of one bit that fails is none any more, as soon as nobody has it. */
static void __init cma_test_compound_poison(struct kunit *test)
{
	struct cma_kunit *k = test->priv;
	struct folio *folio;
	unsigned long i, ram;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "needs CONFIG_MEMORY_FAILURE");

	wait_for_initramfs();
	ram = totalram_pages();
	k->cma.order_per_bit = 3;
	for (i = 0; i < 2; i++) {
		folio = cma_alloc_folio(&k->cma, 3, GFP_KERNEL | __GFP_COMP);
		KUNIT_ASSERT_NOT_NULL(test, folio);
		SetPageHWPoison(folio_page(folio, i));
		atomic_long_inc(&num_poisoned_pages);
		if (i)
			folio_get(folio);
		cma_release(&k->cma, &folio->page, 8);
		kunit_run_quarantine_work(k);
		if (i) {
			/* longer than the work waits */
			KUNIT_EXPECT_TRUE(test, delayed_work_pending(&k->cma.reserve->work));
			folio_put(folio);
			kunit_run_quarantine_work(k);
		}
		KUNIT_EXPECT_EQ(test, totalram_pages(), ram);
		KUNIT_EXPECT_FALSE(test, PageCompound(folio_page(folio, 1)));
		KUNIT_EXPECT_EQ(test, kunit_quarantined(k), 1);
		KUNIT_EXPECT_FALSE(test, delayed_work_pending(&k->cma.reserve->work));

		ClearPageHWPoison(folio_page(folio, i));
		atomic_long_dec(&num_poisoned_pages);
		kunit_run_quarantine_work(k);
		KUNIT_EXPECT_TRUE(test, bitmap_empty(k->cma.bitmap, KUNIT_PAGES / 8));
	}
}

/* One bit for four pages: what is not asked for is not lent either. */
static void __init cma_test_order_per_bit(struct kunit *test)
{
	struct cma_kunit *k = test->priv;
	struct page *page;

	k->cma.order_per_bit = 2;
	/* in whole bits the last number is 0 */
	KUNIT_EXPECT_NULL(test, cma_alloc(&k->cma, KUNIT_PAGES + 1, 0, true));
	KUNIT_EXPECT_NULL(test, cma_alloc(&k->cma, ULONG_MAX, 0, true));
	kunit_check(test);

	page = cma_alloc(&k->cma, 5, 0, true);
	KUNIT_EXPECT_PTR_EQ(test, page, cma_page(&k->cma, 0));
	KUNIT_EXPECT_TRUE(test, kunit_held(k, 7));
	KUNIT_EXPECT_FALSE(test, kunit_held(k, 8));
	kunit_check(test);

	/* in whole bits only */
	KUNIT_EXPECT_FALSE(test, cma_leave(&k->cma, 2, 8));
	KUNIT_EXPECT_FALSE(test, cma_leave(&k->cma, 0, 6));

	/* a page in use keeps those that share its bit */
	get_page(page + 5);
	cma_release(&k->cma, page, 5);
	KUNIT_EXPECT_FALSE(test, kunit_held(k, 3));
	KUNIT_EXPECT_TRUE(test, kunit_held(k, 4));
	kunit_check(test);
	put_page(page + 5);
	kunit_run_quarantine_work(k);
	KUNIT_EXPECT_FALSE(test, kunit_held(k, 4));
}

/* A poisoned page is passed over, and kept out of the way for good. */
static void __init cma_test_alloc_poison(struct kunit *test)
{
	struct cma_kunit *k = test->priv;
	struct page *page;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "needs CONFIG_MEMORY_FAILURE");

	SetPageHWPoison(cma_page(&k->cma, 20));
	atomic_long_inc(&num_poisoned_pages);
	page = cma_alloc(&k->cma, 32, 0, true);
	KUNIT_EXPECT_PTR_EQ(test, page, cma_page(&k->cma, 21));
	KUNIT_EXPECT_EQ(test, kunit_quarantined(k), 1);
	KUNIT_EXPECT_TRUE(test, test_bit(20, k->cma.reserve->quarantine));
	kunit_check(test);
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page, 32));

	atomic_long_dec(&num_poisoned_pages);
	ClearPageHWPoison(cma_page(&k->cma, 20));
	kunit_run_quarantine_work(k);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(k->cma.bitmap, KUNIT_PAGES));
}

static bool __init kunit_may_go(unsigned long action, unsigned long pfn, unsigned long count)
{
	struct memory_notify range = { .start_pfn = pfn, .nr_pages = count };

	return !notifier_to_errno(cma_memory_notify(NULL, action, &range));
}

/* Memory of an area does not go offline, whatever zone it is in. */
static void __init cma_test_offline(struct kunit *test)
{
	struct cma_kunit *k = test->priv;
	unsigned long first = k->cma.base_pfn, end = first + KUNIT_PAGES;
	struct cma *cma = dev_get_cma_area(NULL);
	static const struct {
		long from, to;	/* from the first page, and from the last */
		bool meets;
	} ranges[] = {
		{ 0, 0, true }, { -1, 1, true }, { 1, -1, true },
		{ -1, 1 - (long)KUNIT_PAGES, true }, { KUNIT_PAGES - 1, 1, true },
		{ -1, -(long)KUNIT_PAGES, false }, { KUNIT_PAGES, 1, false },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		struct memory_notify range = {
			.start_pfn = first + ranges[i].from,
			.nr_pages = end + ranges[i].to - first - ranges[i].from,
		};

		KUNIT_EXPECT_EQ(test, cma_meets(&k->cma, &range), ranges[i].meets);
	}
	if (!cma || !cma_reserved(cma))
		kunit_skip(test, "the default area of this machine is movable");
	first = cma->base_pfn;
	end = first + cma->count;
	KUNIT_EXPECT_FALSE(test, kunit_may_go(MEM_GOING_OFFLINE, end - 1, 1));
	KUNIT_EXPECT_FALSE(test, kunit_may_go(MEM_GOING_OFFLINE, first - 1, 2));
	KUNIT_EXPECT_TRUE(test, kunit_may_go(MEM_GOING_ONLINE, first, 1));
	KUNIT_EXPECT_TRUE(test, kunit_may_go(MEM_CANCEL_OFFLINE, first, 1));
	/* that of a test is none of the machine's */
	KUNIT_EXPECT_TRUE(test, kunit_may_go(MEM_GOING_OFFLINE, k->cma.base_pfn, KUNIT_PAGES));
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

static void __init cma_test_choice(struct kunit *test)
{
	const struct kunit_choice *c = test->param_value;
	struct cma_kunit *k = test->priv;
	struct cma *cma = c->area ? &k->cma : dev_get_cma_area(NULL);

	if (!cma)
		kunit_skip(test, "this machine has no default area");
	if (c->area)
		strscpy(k->cma.name, c->area);
	KUNIT_EXPECT_STREQ(test, cma_choice_for(cma, c->choice) ?: "another",
			   c->policy ?: "another");
}

static void __init cma_test_set_policy(struct kunit *test)
{
	static const char * const unknown[] = {
		NULL, "", "NONE", "none ", "camera", "none:",
	};
	struct cma_kunit *k = test->priv;
	int i;

	for (i = 0; i < ARRAY_SIZE(cma_policies); i++) {
		cma_set_policy(&k->cma, cma_policies[i]->name);
		KUNIT_EXPECT_PTR_EQ(test, k->cma.policy, cma_policies[i]);
	}
	cma_set_policy(&k->cma, "none");
	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		cma_set_policy(&k->cma, unknown[i]);
		KUNIT_EXPECT_PTR_EQ(test, k->cma.policy, &cma_none);
	}
}

#ifdef CONFIG_CMA_DEBUGFS
static void __init cma_test_latency(struct kunit *test)
{
	struct cma_kunit *k = test->priv;
	unsigned int i, sum = 0;
	struct page *page;

	/* the clock of another CPU may be ahead */
	cma_latency_end(&k->cma, cma_latency_begin() + NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, atomic_read(&k->cma.latency[0]), 1);
	/* 0.8 s, far from both ends of the bucket */
	cma_latency_end(&k->cma, local_clock() - (3ULL << 28));
	KUNIT_EXPECT_EQ(test, atomic_read(&k->cma.latency[30]), 1);
	cma_latency_end(&k->cma, local_clock() - 100ULL * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, atomic_read(&k->cma.latency[31]), 1);
	/* and each allocation, however fast */
	for (i = 0; i < CMA_LATENCY_BUCKETS; i++)
		atomic_set(&k->cma.latency[i], 0);
	page = cma_alloc(&k->cma, 1, 0, true);
	KUNIT_EXPECT_TRUE(test, cma_release(&k->cma, page, 1));
	for (i = 0; i < CMA_LATENCY_BUCKETS; i++)
		sum += atomic_read(&k->cma.latency[i]);
	KUNIT_EXPECT_EQ(test, sum, 1);
}
#endif

/* ------ the area of each test ----------------------------------------- */

static int __init cma_kunit_init(struct kunit *test)
{
	struct cma_kunit *k = kunit_kzalloc(test, sizeof(*k), GFP_KERNEL);

	if (!k)
		return -ENOMEM;
	k->memory = alloc_pages_exact(KUNIT_PAGES << PAGE_SHIFT, GFP_KERNEL);
	k->cma.bitmap = bitmap_zalloc(KUNIT_PAGES, GFP_KERNEL);
	if (!k->memory || !k->cma.bitmap)
		return -ENOMEM; /* once, at boot: let it leak */
	strscpy(k->cma.name, "kunit");
	k->cma.base_pfn = PHYS_PFN(virt_to_phys(k->memory));
	k->cma.count = KUNIT_PAGES;
	k->cma.policy = &kunit_policy;
	spin_lock_init(&k->cma.lock);
	test->priv = k;
	return cma_reserve_create(&k->cma);
}

/* Every test gives back what it took. */
static void __init cma_kunit_exit(struct kunit *test)
{
	struct cma_kunit *k = test->priv;

	if (!k || !k->cma.reserve)
		return;
	kunit_check(test);
	KUNIT_EXPECT_EQ(test, bitmap_weight(k->lent, KUNIT_PAGES), KUNIT_PAGES);
	cancel_delayed_work_sync(&k->cma.reserve->work);
	cma_reserve_free(k->cma.reserve);
	bitmap_free(k->cma.bitmap);
	free_pages_exact(k->memory, KUNIT_PAGES << PAGE_SHIFT);
}

static struct kunit_case __refdata cma_kunit_cases[] = {
	KUNIT_CASE(cma_test_alloc_release),
	KUNIT_CASE(cma_test_alloc_while_lending),
	KUNIT_CASE(cma_test_alloc_busy),
	KUNIT_CASE(cma_test_refused_release),
	KUNIT_CASE(cma_test_zeroed),
	KUNIT_CASE(cma_test_quarantine),
	KUNIT_CASE(cma_test_compound),
	KUNIT_CASE(cma_test_order_per_bit),
	KUNIT_CASE(cma_test_alloc_poison),
	KUNIT_CASE(cma_test_compound_poison),
	KUNIT_CASE(cma_test_offline),
	KUNIT_CASE_PARAM(cma_test_choice, kunit_choice_gen_params),
	KUNIT_CASE(cma_test_set_policy),
#ifdef CONFIG_CMA_DEBUGFS
	KUNIT_CASE(cma_test_latency),
#endif
	{}
};

static struct kunit_suite __refdata cma_kunit_suite = {
	.name = "cma_reserve",
	.init = cma_kunit_init,
	.exit = cma_kunit_exit,
	.test_cases = cma_kunit_cases,
};

kunit_test_init_section_suite(cma_kunit_suite);
