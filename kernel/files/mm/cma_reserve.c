// SPDX-License-Identifier: GPL-2.0-only
/*
 * CMA areas that stay out of the buddy allocator
 *
 * Stock CMA lends an idle area to movable pages and has to migrate them away when
 * contiguous memory is asked for. An area of any other policy keeps its frames, so
 * that setting bits in its bitmap is all there is to an allocation: it succeeds
 * whenever a run of clear bits is long enough. What the idle frames are good for
 * meanwhile is the policy's business, see struct cma_policy; under "none" they are
 * good for nothing.
 *
 * A range goes through these hands:
 *
 *   cma_alloc() sets the bits, revoke() ends all use of the memory: the primary's
 *   cma_release() marks the bits in "leaving", so that nobody releases them twice
 *   a page that somebody else still uses: its bit stays set, in "quarantine" too
 *   the others: scrub(), then the bits are cleared, then lend()
 *
 * The order of the last three is what a policy relies on. While the bits are set it
 * must not touch the memory; scrub() comes before they are cleared, so that who
 * finds them clear again can tell that a primary came and went; and lend() after
 * that, so that who is lent a frame finds its bit clear.
 *
 * The allocator takes cma->lock and no other, but for those that revoke() takes, and
 * those of scrub() and lend() where it gives a range back: revoke() did not let go of it,
 * memory of it failed, or a frame that somebody has a reference to for a moment cannot
 * be part of a compound page. No policy takes cma->lock inside a lock of its own.
 */

#define pr_fmt(fmt) "cma: " fmt

#define CREATE_TRACE_POINTS

#include <linux/cma.h>
#include <linux/cma_policy.h>
#include <linux/dma-map-ops.h>
#include <linux/highmem.h>
#include <linux/init.h>
#include <linux/memory.h>
#include <linux/notifier.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <trace/events/cma_reserve.h>

#include "cma_reserve.h"
#include "internal.h"

/* Pages looked at between two turns with the bitmap: bounds what is undone at once. */
#define CMA_SETTLE		256UL

/* How long to wait before looking at quarantined pages again. */
#define CMA_QUARANTINE_DELAY	HZ

/* ------ allocation ---------------------------------------------------- */

/* Lend a run of bits again: a primary is done with it, or did not get it. */
static void cma_give_back(struct cma *cma, unsigned long bit, unsigned long nr)
{
	unsigned long frame = bit << cma->order_per_bit, count = nr << cma->order_per_bit;
	struct cma_reserve *r = cma->reserve;
	unsigned long flags, i;

	for (i = 0; r->ops && i < count; i += CMA_SETTLE)
		r->ops->scrub(r, frame + i, min(count - i, CMA_SETTLE));
	/* before others can take them, or it were less than none */
	atomic_long_add(count, &r->nr_available);
	smp_wmb(); /* scrubbed before the bits are clear, for who reads them */
	spin_lock_irqsave(&cma->lock, flags);
	bitmap_clear(r->quarantine, bit, nr);
	bitmap_clear(r->leaving, bit, nr);
	bitmap_clear(cma->bitmap, bit, nr);
	spin_unlock_irqrestore(&cma->lock, flags);
	for (i = 0; r->ops && i < count; i += CMA_SETTLE)
		r->ops->lend(r, frame + i, min(count - i, CMA_SETTLE));
}

/*
 * Idle pages of the area become one compound page, of which only the head has a reference, and
 * has it anew: who looked for what was there before may have another one for a moment, which he
 * counted as one of a single page. False if somebody has.
 */
bool cma_make_compound(struct page *page, unsigned long count)
{
	unsigned long i;

	for (i = 0; i < count; i++) {
		if (!page_ref_freeze(nth_page(page, i), 1)) {
			while (i--)
				page_ref_unfreeze(nth_page(page, i), 1);
			return false;
		}
	}
	prep_compound_page(page, ilog2(count));
	set_page_count(page, 1);
	return true;
}

/* Memory failures are rare enough to look only after the first. */
static bool cma_poisoned(unsigned long pfn, unsigned long count)
{
	unsigned long i;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE) || !atomic_long_read(&num_poisoned_pages))
		return false;
	for (i = 0; i < count; i++)
		if (PageHWPoison(pfn_to_page(pfn + i)))
			return true;
	return false;
}

/* Not inline: it would keep registers busy that are not needed else. */
static noinline void cma_not_taken(struct cma *cma, unsigned long pfn, unsigned long count)
{
	unsigned int order = cma->order_per_bit;

	cma_give_back(cma, (pfn - cma->base_pfn) >> order, ALIGN(count, 1UL << order) >> order);
}

/**
 * cma_reserve_take() - make a range of an area a primary's
 * @cma: the area
 * @pfn: first page; the bits of the range were just set by the caller
 * @count: pages
 * @gfp: %__GFP_COMP: as one compound page; %__GFP_ZERO or init_on_alloc: zeroed
 *
 * Context: process context, no lock held. Cost: O(1) and what the policy's revoke()
 * takes, plus O(@count) for what @gfp asks for.
 * Return: 0, or -EBUSY if a page of its bits is poisoned, or one of the range cannot be part of a
 * compound page now, or what the policy says if it cannot let go of it: the range is given back
 * then, but for pages in quarantine. With -EBUSY another range may be tried.
 */
int cma_reserve_take(struct cma *cma, unsigned long pfn, unsigned long count, gfp_t gfp)
{
	unsigned long taken = ALIGN(count, 1UL << cma->order_per_bit);
	struct cma_reserve *r = cma->reserve;
	unsigned long i, cleared;
	int ret;

	atomic_long_sub(taken, &r->nr_available);
	ret = r->ops ? r->ops->revoke(r, pfn - cma->base_pfn, taken) : 0;
	if (unlikely(ret)) {
		cma_not_taken(cma, pfn, count);
		return ret;
	}
	if (cma_poisoned(pfn, taken))
		goto busy;
	cleared = want_init_on_alloc(gfp) ? count : 0;
	/*
	 * What was in a frame was freed, in a sense, when the frame was revoked: that is so of all
	 * frames of the last bit.
	 */
	if (r->ops && want_init_on_free())
		cleared = taken;
	for (i = 0; i < cleared; i++)
		clear_highpage(pfn_to_page(pfn + i));
	if ((gfp & __GFP_COMP) && !cma_make_compound(pfn_to_page(pfn), count))
		goto busy;
	/*
	 * Huge pages are taken off all memory, by vm_commit_limit() and by programs, so they are a
	 * part of it. As those of boot are, see gather_bootmem_prealloc(); but no zone manages
	 * them: it had watermarks for pages that it never has free.
	 */
	if (gfp & __GFP_COMP)
		totalram_pages_add(count);
	trace_cma_reserve_take(cma->name, pfn, count);
	return 0;

busy:
	cma_reserve_release(cma, pfn, count);
	return -EBUSY;
}

/* ------ release ------------------------------------------------------- */

/* What the primary left behind, the next one must not inherit. */
static void cma_reset_page(struct page *page)
{
	/* Not lost is what memory_failure() sets at that moment. */
	if (READ_ONCE(page->flags) & PAGE_FLAGS_CHECK_AT_PREP)
		set_mask_bits(&page->flags, PAGE_FLAGS_CHECK_AT_PREP, 0);
	page->mapping = NULL;
	set_page_private(page, 0);
}

/* What cma_reserve_take() made one. */
static void cma_unmake_compound(struct page *head, unsigned long count)
{
	totalram_pages_add(-count);
	while (count--) {
		struct page *page = nth_page(head, count);

		clear_compound_head(page);
		atomic_set(&page->_mapcount, -1);
		cma_reset_page(page);
		page_ref_unfreeze(page, 1); /* who sees one reference may use what was reset */
	}
}

/*
 * Is the page the area's alone again? The area holds one reference to each of
 * its pages; a compound page is taken apart as soon as nobody else uses it. A
 * poisoned page is never idle again.
 */
static bool cma_idle(struct page *page)
{
	struct page *head = compound_head(page);

	if (page_count(head) != 1)
		return false;
	/*
	 * A compound page may be of several bits, and those be looked at side by side, by its
	 * release and the work after quarantined ones. The other one may have taken it apart since
	 * we looked, and the head be somebody else's now, who may hold it: so it is frozen only
	 * behind a reference, with which nobody makes it part of a compound page, and another
	 * look. If that fails, @page is looked at again later.
	 */
	if (PageHead(head)) {
		if (!get_page_unless_zero(head))
			return false;
		if (compound_head(page) != head || !page_ref_freeze(head, 2)) {
			put_page(head);
			return false;
		}
		cma_unmake_compound(head, compound_nr(head));
	} else if (!PageHWPoison(page)) {
		cma_reset_page(page);
	}
	return !PageHWPoison(page);
}

/* Keep a bit whose pages are still in use. */
static void cma_quarantine(struct cma *cma, unsigned long bit)
{
	scoped_guard(spinlock_irqsave, &cma->lock)
		set_bit(bit, cma->reserve->quarantine);
	trace_cma_reserve_quarantine(cma->name, cma->base_pfn + (bit << cma->order_per_bit),
				     1UL << cma->order_per_bit);
}

/* A bit with failed memory stays in quarantine: what else is in it is wiped now, if need be. */
static void cma_wipe_beside_poison(struct cma *cma, unsigned long bit)
{
	unsigned long frame = bit << cma->order_per_bit, end = (bit + 1) << cma->order_per_bit;

	if (!want_init_on_free() || !cma_poisoned(cma->base_pfn + frame, end - frame))
		return;
	for (; frame < end; frame++)
		if (cma_idle(cma_page(cma, frame)))
			clear_highpage(cma_page(cma, frame));
}

/* Give released bits back to the area, those at least that are idle. */
static void cma_settle(struct cma *cma, unsigned long bit, unsigned long end)
{
	unsigned int order = cma->order_per_bit;

	while (bit < end) {
		unsigned long last = min(end, bit + max(CMA_SETTLE >> order, 1));
		unsigned long frame = bit << order;

		/* the longest idle run of whole bits from here */
		while (frame < last << order && cma_idle(cma_page(cma, frame)))
			frame++;
		last = frame >> order;
		if (last == bit) {
			cma_wipe_beside_poison(cma, bit);
			cma_quarantine(cma, bit++);
		} else {
			for (frame = bit << order; want_init_on_free() && frame < last << order;
			     frame++)
				clear_highpage(cma_page(cma, frame));
			cma_give_back(cma, bit, last - bit);
			bit = last;
		}
	}
}

static void cma_quarantine_work(struct work_struct *work)
{
	struct cma_reserve *r = container_of(work, struct cma_reserve, work.work);
	struct cma *cma = r->cma;
	unsigned long bit, pfn;
	bool again = false;

	for_each_set_bit(bit, r->quarantine, cma_bitmap_maxno(cma)) {
		cma_settle(cma, bit, bit + 1);
		pfn = cma->base_pfn + (bit << cma->order_per_bit);
		again |= test_bit(bit, r->quarantine) &&
			 (PageCompound(pfn_to_page(pfn)) ||
			  !cma_poisoned(pfn, 1UL << cma->order_per_bit));
	}
	if (again)
		schedule_delayed_work(&r->work, CMA_QUARANTINE_DELAY);
}

/* Begin the release of frames; false if they are not whole, allocated bits. */
static bool cma_leave(struct cma *cma, unsigned long frame, unsigned long last)
{
	unsigned int order = cma->order_per_bit;
	unsigned long bit = frame >> order, end = last >> order;
	unsigned long *leaving = cma->reserve->leaving;
	unsigned long flags;
	bool held;

	spin_lock_irqsave(&cma->lock, flags);
	held = bit < end && end <= cma_bitmap_maxno(cma) &&
	       IS_ALIGNED(frame | last, 1UL << order) &&
	       find_next_zero_bit(cma->bitmap, end, bit) >= end &&
	       find_next_bit(leaving, end, bit) >= end;
	if (held)
		bitmap_set(leaving, bit, end - bit);
	spin_unlock_irqrestore(&cma->lock, flags);
	return held;
}

/**
 * cma_reserve_release() - a primary is done with a range
 * @cma: the area
 * @pfn: first page
 * @count: pages, as allocated or a part of it; of an area with several pages a
 *	bit, a part in whole bits
 *
 * Pages to which somebody still holds a reference are quarantined: neither lent
 * nor allocated before the reference is gone. A range that is not allocated is
 * left alone, with a warning.
 *
 * Context: does not sleep. Cost: O(@count).
 * Return: true if the range was allocated.
 */
bool cma_reserve_release(struct cma *cma, unsigned long pfn, unsigned long count)
{
	unsigned int order = cma->order_per_bit;
	unsigned long frame = pfn - cma->base_pfn;
	unsigned long last = frame + ALIGN(count, 1UL << order);
	unsigned long bit = frame >> order, end = last >> order;
	struct cma_reserve *r = cma->reserve;

	if (WARN(!cma_leave(cma, frame, last),
		 "%s: release of %lu pages at pfn %#lx that are not allocated\n",
		 cma->name, count, pfn))
		return false;

	cma_settle(cma, bit, end);
	trace_cma_reserve_release(cma->name, pfn, count);
	if (find_next_bit(r->quarantine, end, bit) < end) {
		pr_warn_ratelimited("%s: released pages at pfn %#lx are still in use, quarantined\n",
				    cma->name, pfn);
		schedule_delayed_work(&r->work, CMA_QUARANTINE_DELAY);
	}
	return true;
}

/* ------ policies ------------------------------------------------------ */

static const struct cma_policy cma_movable = { .name = "movable" };
static const struct cma_policy cma_none = { .name = "none" };

/* All policies that an area can have. Movable is stock CMA. */
static const struct cma_policy * const cma_policies[] = {
	&cma_movable,
	&cma_none,
#ifdef CONFIG_GCMA
	&gcma_policy,
#endif
#ifdef CONFIG_RENTAL
	&rental_policy,
#endif
};

/* What the command line said, each POLICY or NAME:POLICY. */
static char *cma_choices[MAX_CMA_AREAS] __initdata;
static unsigned int cma_nr_choices __initdata;

static int __init cma_early_policy(char *arg)
{
	char *choice;

	while ((choice = strsep(&arg, ",")))
		if (cma_nr_choices < ARRAY_SIZE(cma_choices))
			cma_choices[cma_nr_choices++] = choice;
		else
			pr_err("cma_policy=: too many areas, '%s' ignored\n", choice);
	return 0;
}
early_param("cma_policy", cma_early_policy);

/* The policy that @choice has for the area, NULL if it means another one. */
static const char *__init cma_choice_for(const struct cma *cma, const char *choice)
{
	const char *colon = strrchr(choice, ':');

	if (colon && colon != choice)
		return str_has_prefix(choice, cma->name) == colon - choice ? colon + 1 : NULL;
	if (cma != dev_get_cma_area(NULL))
		return NULL;
	return colon ? colon + 1 : choice;
}

/**
 * cma_set_policy() - choose the policy of an area
 * @cma: the area, not yet active
 * @policy: name of the policy; NULL: as it is; unknown: the same, which is logged
 *
 * By the device tree first, then by the command line, which has the last word.
 */
void __init cma_set_policy(struct cma *cma, const char *policy)
{
	char names[64];
	unsigned int i;
	int len = 0;

	if (!policy)
		return;
	for (i = 0; i < ARRAY_SIZE(cma_policies); i++) {
		if (!strcmp(policy, cma_policies[i]->name)) {
			cma->policy = cma_policies[i];
			return;
		}
		len += scnprintf(names + len, sizeof(names) - len, " %s", cma_policies[i]->name);
	}
	pr_err("%s: policy '%s' ignored, choose one of%s\n", cma->name, policy, names);
}

static int __init cma_is_chosen(struct cma *cma, void *choice)
{
	return !!cma_choice_for(cma, choice);
}

static int __init cma_check_choices(void)
{
	unsigned int i;

	for (i = 0; i < cma_nr_choices; i++)
		if (!cma_for_each_area(cma_is_chosen, cma_choices[i]))
			pr_err("cma_policy=: there is no area for '%s'\n", cma_choices[i]);
	return 0;
}
subsys_initcall(cma_check_choices);

/* ------ activation ---------------------------------------------------- */

/* Undo cma_reserve_create(); no machine loses an area, but tests do. */
void cma_reserve_free(struct cma_reserve *r)
{
	bitmap_free(r->quarantine);
	bitmap_free(r->leaving);
	kfree(r);
}

/**
 * cma_reserve_create() - what an area needs whose frames are its own
 * @cma: the area, with a policy other than movable; its pages have one reference
 *
 * Context: may sleep. Return: 0, or an error and @cma is as it was.
 */
int cma_reserve_create(struct cma *cma)
{
	struct cma_reserve *r = kzalloc(sizeof(*r), GFP_KERNEL);
	int ret = -ENOMEM;

	if (!r)
		return ret;
	r->cma = cma;
	atomic_long_set(&r->nr_available, cma->count);
	INIT_DELAYED_WORK(&r->work, cma_quarantine_work);
	r->leaving = bitmap_zalloc(cma_bitmap_maxno(cma), GFP_KERNEL);
	r->quarantine = bitmap_zalloc(cma_bitmap_maxno(cma), GFP_KERNEL);
	if (r->leaving && r->quarantine) {
		r->ops = cma->policy->create ? cma->policy : NULL;
		cma->reserve = r; /* the policy may be at work before it returns */
		ret = r->ops ? r->ops->create(r) : 0;
	}
	if (ret) {
		cma->reserve = NULL;
		cma_reserve_free(r);
	}
	return ret;
}

/**
 * cma_reserve_activate() - keep an area out of the buddy allocator if its policy
 *	says so
 * @cma: an area whose bitmap is allocated and whose pages are still reserved
 *
 * Return: false if the area is to be a movable one: by its policy, or because
 * another one is not possible, which is logged.
 */
bool __init cma_reserve_activate(struct cma *cma)
{
	unsigned long i;
	int ret;

	cma->policy = cma->policy ?: &cma_movable;
	for (i = 0; i < cma_nr_choices; i++)
		cma_set_policy(cma, cma_choice_for(cma, cma_choices[i]));
	if (cma->policy == &cma_movable)
		return false;

	/* The reference that boot gave them stays: they are never freed. */
	for (i = 0; i < cma->count; i++)
		__ClearPageReserved(cma_page(cma, i));
	ret = cma_reserve_create(cma);
	if (ret) {
		pr_err("%s: policy %s failed with %pe, falling back to movable\n",
		       cma->name, cma->policy->name, ERR_PTR(ret));
		cma->policy = &cma_movable;
		return false;
	}
	pr_info("%s: %lu pages, policy %s\n", cma->name, cma->count, cma->policy->name);
	return true;
}

/* ------ memory that goes offline -------------------------------------- */

static int cma_meets(struct cma *cma, void *data)
{
	const struct memory_notify *range = data;

	return cma->reserve && cma->base_pfn < range->start_pfn + range->nr_pages &&
	       range->start_pfn < cma->base_pfn + cma->count;
}

/*
 * Frames cannot be moved. Of ZONE_MOVABLE, where movablecore= or kernelcore= may have put them,
 * that is believed of PG_reserved pages only: all else is isolated, and offline_pages() would
 * wait until they are free, with the locks of memory hotplug.
 */
static int cma_memory_notify(struct notifier_block *nb, unsigned long action, void *data)
{
	if (action == MEM_GOING_OFFLINE && cma_for_each_area(cma_meets, data))
		return notifier_from_errno(-EBUSY);
	return NOTIFY_OK;
}

static int __init cma_watch_memory(void)
{
	return hotplug_memory_notifier(cma_memory_notify, DEFAULT_CALLBACK_PRI);
}
subsys_initcall(cma_watch_memory);

#ifdef CONFIG_CMA_RESERVE_KUNIT_TEST
#include "cma_reserve_kunit.c"
#endif
