// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guaranteed contiguous memory: tenants of CMA areas
 *
 * The idle frames of an area of policy "gcma" hold tenants: copies of clean page
 * cache pages that reclaim evicted, see include/linux/gcma.h. How an area stays out
 * of the buddy allocator, and its ranges pass from hand to hand, is told in
 * mm/cma_reserve.c.
 *
 * The index of the tenants is the page cache itself. An eviction leaves a
 * shadow entry in the slot of the page, and everything that changes what
 * belongs into that slot removes or replaces the shadow. A tenant entry stands
 * in its place and shares its life; it names a frame and a generation.
 *
 * The CMA bitmap is the revocation. A tenant is valid only while the bit of its
 * frame is clear, so the allocator discards all tenants of a range by setting
 * bits, which it does anyway, and has then only to wait for those CPUs that are
 * copying into or out of the range at this very moment, one page copy at most:
 *
 *   allocator                            copier (preemption off)
 *   ---------                            ------
 *   set the bits                         announce the frame in gcma_hazard,
 *                                          the CPU in gcma_copying
 *   smp_mb()                             smp_mb()
 *   look at the CPUs in gcma_copying,    give up if the bit is set
 *     wait while they announce           copy
 *     a frame in the range               clear gcma_hazard, leave gcma_copying
 *
 * One of the two sees the other. The page cache, the frame table and the lists
 * are not touched at all: they find out later. A frame is scrubbed when the
 * primary releases it, before its bit is cleared, which changes its generation
 * and so makes all older entries that name it worthless.
 *
 * An entry has room for few generation bits on 32-bit machines. It would do
 * without any: a slot holds what the latest eviction from this slot left there,
 * so if the frame it names carries the key of the slot, that eviction was the
 * one that filled the frame.
 *
 * Locking: gcma.lock nests inside the i_pages lock. Neither is taken by the
 * allocator; cma->lock is taken inside neither.
 */

#define pr_fmt(fmt) "gcma: " fmt

#define CREATE_TRACE_POINTS

#include <linux/cma.h>
#include <linux/dax.h>
#include <linux/hash.h>
#include <linux/highmem.h>
#include <linux/math.h>
#include <linux/memcontrol.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/vmalloc.h>
#include <kunit/static_stub.h>
#include <trace/events/gcma.h>

#include "gcma.h"
#include "gcma_admission.h"
#include "internal.h"

/* ------ tunables ------------------------------------------------------ */

/* Looks at frames of a list before giving up: bounds a store. */
#define GCMA_SCAN		16

/* Frames looked at under one hold of gcma.lock: bounds the time with irqs off. */
#define GCMA_BATCH		256UL

/* Nodes of shadows are kept for tenants of no more than this part of memory. */
#define GCMA_NODE_SHARE		8

/* ------ data ---------------------------------------------------------- */

DEFINE_STATIC_KEY_FALSE(gcma_key);

/* The tenant entry: tag, generation, area, frame. */
#ifdef CONFIG_64BIT
#define GCMA_FRAME_BITS	27	/* areas up to 512 GiB */
#define GCMA_AREA_BITS	5
#else
#define GCMA_FRAME_BITS	18	/* areas up to 1 GiB */
#define GCMA_AREA_BITS	3
#endif
#ifdef CONFIG_GCMA_DEBUG_GENERATION
#define GCMA_GEN_BITS	2
#else
#define GCMA_GEN_BITS	(BITS_PER_XA_VALUE - GCMA_TAG_BITS -		\
			 GCMA_AREA_BITS - GCMA_FRAME_BITS)
#endif
#define GCMA_GEN_MASK	((1UL << GCMA_GEN_BITS) - 1)

static struct gcma *gcma_areas[1 << GCMA_AREA_BITS];
static unsigned int gcma_nr_areas;
static unsigned long gcma_nr_frames; /* of all of them */

/*
 * The frame that each CPU is copying into or out of, by pfn; 0: none. The CPUs that
 * copy, so that the allocator needs not look at all of them: see gcma_enter().
 */
static DEFINE_PER_CPU(unsigned long, gcma_hazard);
static unsigned long gcma_copying[BITS_TO_LONGS(NR_CPUS)];

static void *gcma_mk_entry(const struct gcma *g, unsigned long frame, u32 word)
{
	unsigned long value = (word >> GCMA_STATE_BITS) & GCMA_GEN_MASK;

	value = value << GCMA_AREA_BITS | g->id;
	value = value << GCMA_FRAME_BITS | frame;
	return xa_mk_value(value | GCMA_TAG);
}

/* The area of an entry; the frame it names and the generation it means. */
static struct gcma *gcma_rd_entry(void *entry, unsigned long *frame, u32 *gen)
{
	unsigned long value = xa_to_value(entry);

	*frame = value & ((1UL << GCMA_FRAME_BITS) - 1);
	value >>= GCMA_FRAME_BITS;
	*gen = (value >> GCMA_AREA_BITS) & GCMA_GEN_MASK;
	return gcma_areas[value & ((1UL << GCMA_AREA_BITS) - 1)];
}

static struct gcma *gcma_area_of(void *entry)
{
	unsigned long frame;
	u32 gen;

	return gcma_rd_entry(entry, &frame, &gen);
}

static bool gcma_same_gen(u32 word, u32 gen)
{
	return ((word >> GCMA_STATE_BITS) & GCMA_GEN_MASK) == gen;
}

static u32 gcma_next_gen(u32 word, enum gcma_state state)
{
	return ((word & ~GCMA_STATE_MASK) + (1U << GCMA_STATE_BITS)) | state;
}

static u32 gcma_in_state(u32 word, enum gcma_state state)
{
	return (word & ~GCMA_STATE_MASK) | state;
}

static unsigned long gcma_pfn(const struct gcma *g, unsigned long frame)
{
	return g->base_pfn + frame;
}

static struct page *gcma_page(const struct gcma *g, unsigned long frame)
{
	return pfn_to_page(gcma_pfn(g, frame));
}

/*
 * Neighbouring pages are evicted and read together, so they share the area and
 * the sample.
 */
static u32 gcma_hash(struct address_space *mapping, pgoff_t index)
{
	return hash_long((unsigned long)mapping / sizeof(long) +
			 (index >> GCMA_MAX_ORDER) * GOLDEN_RATIO_32, 32);
}

static struct gcma *gcma_pick(u32 hash)
{
	/* The areas with so many frames are there: pairs with gcma_create(). */
	unsigned long at = ((u64)hash * smp_load_acquire(&gcma_nr_frames)) >> 32;
	unsigned int i = 0;

	while (at >= gcma_areas[i]->nr_frames)
		at -= gcma_areas[i++]->nr_frames;
	return gcma_areas[i];
}

/* ------ lists, all under gcma.lock ------------------------------------ */

/* The list that a frame with a key is on, if on any. */
static enum gcma_list gcma_list_of(const struct gcma_frame *f)
{
	return gcma_sample(gcma_hash(f->mapping, f->index));
}

/* Frames with a tenant, about to have one or to lose it. */
static unsigned long gcma_nr_tenants(const struct gcma *g)
{
	/* A snapshot of three numbers that change. */
	return data_race(g->len[GCMA_ALWAYS] + g->len[GCMA_SELDOM] +
			 g->len[GCMA_FOLLOW]);
}

static bool gcma_linked(const struct gcma_frame *f)
{
	return f->next != GCMA_UNLINKED;
}

static void gcma_link(struct gcma *g, unsigned long frame, enum gcma_list list,
		      bool tail)
{
	unsigned long head = g->nr_frames + list;
	unsigned long prev = tail ? g->frames[head].prev : head;
	struct gcma_frame *f = &g->frames[frame];

	f->prev = prev;
	f->next = g->frames[prev].next;
	g->frames[f->next].prev = frame;
	g->frames[prev].next = frame;
	g->len[list]++;
}

static void gcma_unlink(struct gcma *g, unsigned long frame,
			enum gcma_list list)
{
	struct gcma_frame *f = &g->frames[frame];

	g->frames[f->prev].next = f->next;
	g->frames[f->next].prev = f->prev;
	f->next = GCMA_UNLINKED;
	g->len[list]--;
}

/* ------ copying against revocation ------------------------------------ */

static __always_inline void gcma_exit(void)
{
	/* The copy is complete: both pair with gcma_wait_for_copies(). */
	smp_store_release(this_cpu_ptr(&gcma_hazard), 0);
	clear_bit_unlock(smp_processor_id(), gcma_copying);
	preempt_enable();
}

/*
 * Returns true, with preemption off, if the caller owns the frame, as @word says,
 * and may touch its memory until gcma_exit(). Must not nest, so it is not for
 * interrupts.
 *
 * Slot and mask need no order between them: the allocator sees both, or we see
 * its bits.
 */
static __always_inline bool gcma_enter(struct gcma *g, unsigned long frame,
				       u32 word)
{
	preempt_disable();
	VM_WARN_ON_ONCE(__this_cpu_read(gcma_hazard));
	WRITE_ONCE(*this_cpu_ptr(&gcma_hazard), gcma_pfn(g, frame));
	set_bit(smp_processor_id(), gcma_copying);
	smp_mb__after_atomic(); /* pairs with gcma_wait_for_copies() */
	if (!gcma_revoked(g, frame)) {
		/*
		 * A clear bit may also mean that a primary came and went since
		 * we became owner. It was scrubbed then before the bit was
		 * cleared: pairs with smp_wmb() in cma_give_back().
		 */
		smp_rmb();
		if (atomic_read(&g->frames[frame].word) == word)
			return true;
	}
	gcma_exit();
	return false;
}

/* After this no CPU touches the memory of the range, whose bits are set. */
static void gcma_wait_for_copies(unsigned long pfn, unsigned long count)
{
	unsigned int word, cpu;

	smp_mb(); /* pairs with gcma_enter() */
	for (word = 0; word < BITS_TO_LONGS(nr_cpu_ids); word++) {
		/* pairs with gcma_exit() */
		unsigned long copying = smp_load_acquire(&gcma_copying[word]);

		for (; copying; copying &= copying - 1) {
			cpu = word * BITS_PER_LONG + __ffs(copying);
			/* pairs with gcma_exit() */
			while (smp_load_acquire(per_cpu_ptr(&gcma_hazard, cpu)) -
			       pfn < count)
				cpu_relax();
		}
	}
}

/* ------ ownership of frames ------------------------------------------- */

/*
 * Lend the frame again. The caller owns it, in the state that @word says. If a
 * primary holds it, gcma_take_free() will find out.
 */
static void gcma_put(struct gcma *g, unsigned long frame, u32 word)
{
	struct gcma_frame *f = &g->frames[frame];
	unsigned long flags;

	if (want_init_on_free() && gcma_enter(g, frame, word)) {
		clear_highpage(gcma_page(g, frame));
		gcma_exit();
	}

	spin_lock_irqsave(&g->lock, flags);
	gcma_unlink(g, frame, gcma_list_of(f));
	atomic_set(&f->word, gcma_next_gen(atomic_read(&f->word), GCMA_FREE));
	gcma_link(g, frame, GCMA_FREE_LIST, false);
	spin_unlock_irqrestore(&g->lock, flags);
}

/*
 * Become owner of the tenant in @frame, if it is there and of generation @gen; with
 * @mapping also only if it is the tenant of that page: what an entry has room for of
 * the generation may have wrapped. Returns the word of the frame then, 0 if the
 * tenant is gone.
 *
 * The key is read between two looks at the word, and a frame changes it in another
 * generation only: it is that of the tenant if the second look, the cmpxchg, finds
 * all 30 bits of the first.
 */
static u32 gcma_claim(struct gcma *g, unsigned long frame, u32 gen,
		      const struct address_space *mapping, pgoff_t index)
{
	struct gcma_frame *f = &g->frames[frame];
	u32 word = atomic_read_acquire(&f->word);
	u32 claimed = gcma_in_state(word, GCMA_LOADING);

	if (!gcma_same_gen(word, gen) ||
	    (word & GCMA_STATE_MASK) != GCMA_STORED)
		return 0;
	if (mapping && (READ_ONCE(f->mapping) != mapping ||
			READ_ONCE(f->index) != index))
		return 0;
	return atomic_cmpxchg(&f->word, word, claimed) == word ? claimed : 0;
}

/* May the frame be lent? Not to a primary's, nor if its memory is bad. */
static bool gcma_lendable(const struct gcma *g, unsigned long frame)
{
	return !gcma_revoked(g, frame) && !PageHWPoison(gcma_page(g, frame));
}

/*
 * Take a frame off the free list. Those that cannot be lent leave the list on
 * the way, each of them once: scrubbing links them again.
 */
static long gcma_take_free(struct gcma *g)
{
	unsigned long head = g->nr_frames + GCMA_FREE_LIST;
	int tries = GCMA_SCAN;

	while (tries-- && g->frames[head].next != head) {
		unsigned long frame = g->frames[head].next;

		gcma_unlink(g, frame, GCMA_FREE_LIST);
		if (gcma_lendable(g, frame))
			return frame;
	}
	return -1;
}

/* Take the frame of the tenant that is longest on @list. */
static long gcma_take_victim(struct gcma *g, enum gcma_list list)
{
	unsigned long head = g->nr_frames + list;
	unsigned long frame, next;
	int tries = GCMA_SCAN;

	for (frame = g->frames[head].next; tries-- && frame != head;
	     frame = next) {
		struct gcma_frame *f = &g->frames[frame];
		u32 word = atomic_read(&f->word);

		next = f->next;
		if ((word & GCMA_STATE_MASK) != GCMA_STORED ||
		    atomic_cmpxchg(&f->word, word,
				   gcma_next_gen(word, GCMA_FREE)) != word)
			continue; /* its owner will put it */

		gcma_unlink(g, frame, list);
		if (gcma_lendable(g, frame)) {
			gcma_count(g, GCMA_recycles);
			return frame;
		}
		gcma_count(g, GCMA_revoked);
	}
	return -1;
}

/*
 * Find a frame for a page of @list, or -1. A sample may fill its share of the
 * frames and then lives on its own; the rest is for all others.
 */
static long gcma_take(struct gcma *g, enum gcma_list list, bool admit)
{
	long frame;

	if (!gcma_has_share(g, list)) {
		frame = gcma_take_free(g);
		if (frame < 0 && list != GCMA_FOLLOW)
			frame = gcma_take_victim(g, GCMA_FOLLOW);
		if (frame >= 0)
			return frame;
	}
	if (!admit) {
		gcma_count(g, GCMA_refused_admission);
		return -1;
	}
	frame = gcma_take_victim(g, list);
	if (frame < 0)
		gcma_count(g, GCMA_refused_busy);
	return frame;
}

/* ------ invalidation that does not wait ------------------------------- */

/*
 * mapping_try_invalidate() passes by a folio that is locked, or that somebody holds.
 * If it was reclaim that had isolated it, and locked it perhaps, the folio was gone
 * afterwards, before there were tenants, and the next reader got what the medium
 * holds. So no copy of the old content may stay then:
 *
 *   reclaim                          who passes by, holding a reference
 *   -------                          ----------------------------------
 *   read the count
 *   isolate the folio: a reference
 *   lock it, copy it                 fails to lock the folio, or to freeze it
 *                                    count, and note the count with the folio
 *   freeze it: no references left    drop the reference
 *   compare with what is noted,
 *   and keep no copy if it is more
 *
 * Taking a reference, freezing and dropping are full barriers, or need none: reclaim
 * reads the count before it takes its reference, so it has not seen the count of
 * anybody who found the folio isolated or locked by it; and it cannot freeze the
 * folio before they are gone, so it sees all of them when it compares. It is enough
 * to note the latest count with a hash of the page: whose was noted by mistake is not
 * kept. All pages of a folio are noted, for reclaim may split it (demotion).
 *
 * If a third one holds the folio at that time, or its lock, or reclaim puts it back,
 * then it stays what it is, as it does without tenants. It need not live on in a frame
 * as well: who was passed by last is remembered until it is evicted. Who fills a folio
 * from a tenant is no such third one: see gcma_load_commit().
 */
#define GCMA_PASSED_BITS	10

/* Starts at 1: 0 stands for "keep no copy". */
atomic_long_t gcma_pass_count = ATOMIC_LONG_INIT(1);

static struct gcma_passed {
	atomic_long_t at;		/* the count then */
	const struct page *last;	/* not dereferenced, may be free again */
} gcma_passed_table[1 << GCMA_PASSED_BITS];

static struct gcma_passed *gcma_passed_entry(const struct page *page)
{
	return &gcma_passed_table[hash_ptr(page, GCMA_PASSED_BITS)];
}

void __gcma_pass_by(const struct folio *folio)
{
	long now = atomic_long_inc_return(&gcma_pass_count);
	const struct page *page = &folio->page;
	unsigned int i;

	for (i = 0; i < folio_nr_pages(folio); i++) {
		struct gcma_passed *p = gcma_passed_entry(page + i);
		long at = atomic_long_read(&p->at);

		WRITE_ONCE(p->last, page + i);
		/* Another one, with a later count, may be here as well. */
		while (at - now < 0 &&
		       !atomic_long_try_cmpxchg(&p->at, &at, now))
			;
	}
}

/* Was the folio passed by last? It is forgotten. */
static bool gcma_passed_last(const struct folio *folio)
{
	struct gcma_passed *p = gcma_passed_entry(&folio->page);

	return READ_ONCE(p->last) == &folio->page &&
	       cmpxchg(&p->last, &folio->page, NULL) == &folio->page;
}

/* Was the folio passed by since the count was @passes, or last? */
static bool gcma_passed_by(const struct folio *folio, unsigned long passes)
{
	long at = atomic_long_read(&gcma_passed_entry(&folio->page)->at);

	return (long)(at - passes) > 0 || gcma_passed_last(folio);
}

/* ------ store --------------------------------------------------------- */

/* Why a page must not become a tenant; GCMA_stores if it may. */
static enum vm_event_item gcma_refusal(struct address_space *mapping,
				       struct folio *folio)
{
	if (!mapping_tenants(mapping))
		return GCMA_refused_fs;
	if (folio_order(folio) > GCMA_MAX_ORDER ||
	    mapping_min_folio_order(mapping) || folio->index > U32_MAX)
		return GCMA_refused_large;
	/* Plaintext must not outlive the key in a frame. */
	if (IS_ENCRYPTED(mapping->host))
		return GCMA_refused_private;
	/* Metadata that is read block by block. */
	if (!folio_test_uptodate(folio))
		return GCMA_refused_partial;
	/* After a failed write a clean page need not be what is on disk. */
	if (folio_test_hwpoison(folio) || READ_ONCE(mapping->wb_err))
		return GCMA_refused_failed;
	return GCMA_stores;
}

/* Copy page @i of the folio into a frame of its own, if there is one. */
static void gcma_store_page(struct gcma_store *store,
			    struct address_space *mapping, struct folio *folio,
			    unsigned int i, enum gcma_list list, bool admit)
{
	struct gcma *g = store->area;
	struct gcma_frame *f;
	unsigned long flags;
	long frame;
	u32 word;

	spin_lock_irqsave(&g->lock, flags);
	frame = gcma_take(g, list, admit);
	if (frame < 0) {
		spin_unlock_irqrestore(&g->lock, flags);
		return;
	}
	f = &g->frames[frame];
	word = gcma_in_state(atomic_read(&f->word), GCMA_STORING);
	WRITE_ONCE(f->mapping, mapping);
	WRITE_ONCE(f->index, folio->index + i);
	atomic_set(&f->word, word);
	gcma_link(g, frame, list, true);
	spin_unlock_irqrestore(&g->lock, flags);

	if (!gcma_enter(g, frame, word)) {
		gcma_count(g, GCMA_refused_busy);
		gcma_put(g, frame, word);
		return;
	}
	copy_highpage(gcma_page(g, frame), folio_page(folio, i));
	gcma_exit();
	if (trace_gcma_copy_enabled())
		trace_gcma_copy(mapping, folio->index + i, gcma_pfn(g, frame));
	store->copy[store->nr++] = (struct gcma_copy){ frame, word };
}

/* Not worth a copy: anonymous, or the eviction is going to fail. */
static bool gcma_unfit(const struct folio *folio)
{
	return READ_ONCE(folio->flags) & (BIT(PG_swapbacked) | BIT(PG_dirty)) ||
	       folio_ref_count(folio) != 1 + folio_nr_pages(folio);
}

void __gcma_store_begin(struct gcma_store *store, struct address_space *mapping,
			struct folio *folio)
{
	u32 hash = gcma_hash(mapping, folio->index);
	enum gcma_list list = gcma_sample(hash);
	struct gcma *g = gcma_pick(hash);
	enum vm_event_item refusal;
	unsigned int i;
	bool admit;

	if (gcma_unfit(folio))
		return;
	refusal = gcma_refusal(mapping, folio);
	if (refusal != GCMA_stores) {
		gcma_count_pages(g, refusal, folio_nr_pages(folio));
		return;
	}
	store->area = g;
	admit = gcma_admit(g, list);
	for (i = 0; i < folio_nr_pages(folio); i++)
		gcma_store_page(store, mapping, folio, i, list, admit);
}

/*
 * The copies were made before the folio was frozen and found clean. Whoever
 * changed it since then held a reference and marked it dirty before dropping
 * the reference, and nobody can have cleaned it since, for we hold its lock.
 *
 * Returns the tenant entry of the last copy, or @shadow if the frame was
 * scrubbed since it was filled: the word tells.
 */
static void *gcma_publish(struct gcma_store *store, void *shadow)
{
	struct gcma_copy copy = store->copy[--store->nr];
	struct gcma *g = store->area;
	struct gcma_frame *f = &g->frames[copy.frame];
	struct address_space *mapping = f->mapping;
	pgoff_t index = f->index;

	WRITE_ONCE(f->shadow, shadow);
	if (atomic_cmpxchg_release(&f->word, copy.word,
				   gcma_in_state(copy.word, GCMA_STORED)) !=
	    copy.word) {
		gcma_put(g, copy.frame, copy.word);
		return shadow;
	}
	/* From here on the frame may be recycled. */
	trace_gcma_store(mapping, index, gcma_pfn(g, copy.frame));
	gcma_count(g, GCMA_stores);
	return gcma_mk_entry(g, copy.frame, copy.word);
}

void __gcma_store_commit(struct gcma_store *store, struct folio *folio,
			 void *shadow)
{
	struct address_space *mapping = folio->mapping;
	unsigned int order = folio_order(folio);
	pgoff_t first = folio->index, index = first + folio_nr_pages(folio);
	struct gcma *g = store->area;
	struct gcma_copy *copy = store->copy;
	XA_STATE(xas, &mapping->i_pages, first);
	void *hole, *entry;

	if (gcma_passed_by(folio, store->passes)) {
		gcma_count_pages(g, GCMA_refused_passed, store->nr);
		__filemap_remove_folio(folio, shadow);
		return;
	}
	if (!order) {
		__filemap_remove_folio(folio, gcma_publish(store, shadow));
		return;
	}
	/*
	 * Who looks without the lock sees the slots change one by one, and no shadow must
	 * stand where a tenant will: who wants to remove it would find another entry under
	 * the lock and be content. So an entry stands there meanwhile that looks like a
	 * tenant's, of no generation that will be. One entry stands for all pages first:
	 * orders below XA_CHUNK_SHIFT split in place.
	 */
	hole = gcma_mk_entry(g, copy->frame, gcma_next_gen(copy->word, GCMA_FREE));
	__filemap_remove_folio(folio, hole);
	mapping_set_update(&xas, mapping);
	xas_split(&xas, hole, order);
	while (index-- > first) {
		xas_set(&xas, index);
		entry = shadow;
		/* The last copy is that of the last page that has one. */
		if (store->nr && g->frames[copy[store->nr - 1].frame].index == index)
			entry = gcma_publish(store, shadow);
		xas_store(&xas, entry);
	}
}

void __gcma_store_end(struct gcma_store *store)
{
	while (store->nr--) {
		struct gcma_copy *copy = &store->copy[store->nr];

		gcma_put(store->area, copy->frame, copy->word);
	}
}

/* ------ load ---------------------------------------------------------- */

/* Copy the tenant into the folio; false if a primary was faster, or it is no good. */
static bool gcma_fill(struct gcma *g, struct gcma_copy copy, struct folio *folio)
{
	struct page *page = gcma_page(g, copy.frame);
	bool good;

	if (!gcma_enter(g, copy.frame, copy.word))
		return false;
	/* A poisoned frame takes its data with it: read the disk. */
	good = !PageHWPoison(page);
	if (good)
		copy_highpage(folio_page(folio, 0), page);
	gcma_exit();
	if (good)
		flush_dcache_folio(folio);
	return good;
}

/* Tenants are single pages: those in the way of a large folio go. */
static void gcma_drop_range(struct address_space *mapping, pgoff_t first,
			    pgoff_t last)
{
	unsigned long index;
	void *entry;

	xa_for_each_range(&mapping->i_pages, index, entry, first, last)
		gcma_drop(entry);
}

/* Claim the tenant of @entry for its page, and fill the folio from it. */
static bool gcma_claim_fill(struct gcma_load *load, struct folio *folio,
			    void *entry, struct address_space *mapping,
			    pgoff_t index)
{
	unsigned long frame;
	u32 gen;

	load->area = gcma_rd_entry(entry, &frame, &gen);
	load->copy.frame = frame;
	load->copy.word = gcma_claim(load->area, frame, gen, mapping, index);
	if (!load->copy.word)
		return false;
	if (gcma_fill(load->area, load->copy, folio)) {
		if (trace_gcma_fill_enabled())
			trace_gcma_fill(mapping, index,
					gcma_pfn(load->area, frame));
		return true;
	}
	gcma_put(load->area, frame, load->copy.word);
	return false;
}

void __gcma_load_begin(struct gcma_load *load, struct address_space *mapping,
		       struct folio *folio, pgoff_t index, gfp_t gfp)
{
	void *entry = xa_load(&mapping->i_pages, index);

	gcma_passed_last(folio); /* that was another one, if any */
	if (folio_test_large(folio)) {
		gcma_drop_range(mapping, index,
				index + folio_nr_pages(folio) - 1);
	} else if (!(gfp & __GFP_WRITE) && gcma_is_tenant(entry) &&
		   gcma_claim_fill(load, folio, entry, mapping, index)) {
		load->entry = entry;
		/* Now, while the folio is locked and nobody else's. */
		workingset_refault(folio, load->area->frames[load->copy.frame].shadow);
	}
}

/*
 * If the folio was not added where its tenant entry stood, it is locked and ours, or
 * not in the page cache at all: forget what it was filled with.
 */
bool __gcma_load_end(struct gcma_load *load, struct folio *folio, void **entry,
		     int added, gfp_t gfp)
{
	bool loaded = load->entry && !added && *entry == load->entry;

	if (load->entry) {
		struct gcma *g = load->area;
		u32 frame = load->copy.frame;
		struct gcma_frame *f = &g->frames[frame];

		if (loaded) {
			gcma_note_hit(g, gcma_list_of(f));
			if (trace_gcma_load_enabled())
				trace_gcma_load(f->mapping, f->index,
						gcma_pfn(g, frame));
			gcma_count(g, GCMA_loads);
		} else {
			folio_clear_active(folio);
			folio_clear_workingset(folio);
		}
		gcma_put(g, frame, load->copy.word);
	}
	if (!loaded && !added && gcma_is_tenant(*entry)) {
		if (!(gfp & __GFP_WRITE))
			gcma_count(gcma_area_of(*entry), GCMA_misses);
		__gcma_drop(*entry);
		*entry = NULL;
	}
	return loaded;
}

void *__gcma_shadow(void *entry)
{
	struct gcma *g;
	unsigned long frame;
	void *shadow;
	u32 gen, word;

	g = gcma_rd_entry(entry, &frame, &gen);
	word = atomic_read_acquire(&g->frames[frame].word);
	if (!gcma_same_gen(word, gen) ||
	    (word & GCMA_STATE_MASK) != GCMA_STORED)
		return NULL;
	shadow = READ_ONCE(g->frames[frame].shadow);
	smp_rmb(); /* the frame may change owners while we look */
	return atomic_read(&g->frames[frame].word) == word ? shadow : NULL;
}

/* ------ drop ---------------------------------------------------------- */

/* If the generation wrapped this may be another's tenant: lost, not wrong. */
void __gcma_drop(void *entry)
{
	unsigned long frame;
	struct gcma *g;
	u32 gen, word;

	g = gcma_rd_entry(entry, &frame, &gen);
	word = gcma_claim(g, frame, gen, NULL, 0);
	if (!word)
		return;
	gcma_count(g, GCMA_dropped);
	gcma_put(g, frame, word);
}

/* ------ nodes of shadows ----------------------------------------------- */

#ifdef CONFIG_MEMCG
/* How much more the group may use before it reaches @limit. */
static unsigned long gcma_room(struct mem_cgroup *memcg, unsigned long limit)
{
	return limit - min(limit, page_counter_read(&memcg->memory));
}
#endif

/*
 * The shadow shrinker leaves a memory cgroup one node for eight of its resident
 * pages. A group that is pushed out as a whole would lose its tenants with the
 * nodes, so those of its pages that are in frames count too. Who they belong to is
 * not known: a group is credited with the share that it has of all nodes, so that
 * all groups together get no more than there are tenants.
 *
 * Nodes, and the inodes that they pin, cost memory that the groups are charged for,
 * and that reclaim gets back from nobody else. So a group is credited with no more
 * than it, and the groups that it is in, may still use: where one of them is at its
 * limit there is no credit, and reclaim finds what it finds without tenants.
 */
unsigned long __gcma_node_pages(struct mem_cgroup *memcg, unsigned long nodes)
{
	unsigned long all = global_node_page_state_pages(WORKINGSET_NODES);
	unsigned long tenants = 0, pages;
	unsigned int i;

	for (i = 0; i < READ_ONCE(gcma_nr_areas); i++)
		tenants += gcma_nr_tenants(gcma_areas[i]);
	tenants = min(tenants, totalram_pages() / GCMA_NODE_SHARE);
	pages = mult_frac(tenants, nodes, max3(all, nodes, 1UL));
#ifdef CONFIG_MEMCG
	for (; memcg; memcg = parent_mem_cgroup(memcg))
		pages = min3(pages,
			     gcma_room(memcg, READ_ONCE(memcg->memory.max)),
			     gcma_room(memcg, READ_ONCE(memcg->memory.high)));
#endif
	return pages;
}

/* ------ the policy ---------------------------------------------------- */

static void gcma_revoke(struct cma_reserve *r, unsigned long frame,
			unsigned long count)
{
	gcma_wait_for_copies(r->cma->base_pfn + frame, count);
}

/*
 * Discard the tenant of a frame that a primary is done with. Its bit is still set,
 * so it cannot be lent. If the frame has an owner, he finds the word changed and
 * puts it.
 */
static void gcma_scrub_frame(struct gcma *g, unsigned long frame)
{
	struct gcma_frame *f = &g->frames[frame];
	u32 word = atomic_read(&f->word);
	enum gcma_state state;

	do {
		state = word & GCMA_STATE_MASK;
	} while (!atomic_try_cmpxchg(&f->word, (int *)&word,
			gcma_next_gen(word, state == GCMA_STORED ? GCMA_FREE :
								   state)));
	if (state == GCMA_STORED) {
		gcma_unlink(g, frame, gcma_list_of(f));
		gcma_count(g, GCMA_revoked);
	}
}

/*
 * Lend a scrubbed frame again, after all others. Only now that its bit is clear, or
 * gcma_take_free() would drop it from the list for good.
 */
static void gcma_lend_frame(struct gcma *g, unsigned long frame)
{
	struct gcma_frame *f = &g->frames[frame];

	if (gcma_frame_state(f) == GCMA_FREE && !gcma_linked(f))
		gcma_link(g, frame, GCMA_FREE_LIST, true);
}

static __always_inline void
gcma_batch(struct gcma *g, unsigned long frame, unsigned long count,
	   void (*do_frame)(struct gcma *g, unsigned long frame))
{
	unsigned long flags;

	KUNIT_STATIC_STUB_REDIRECT(gcma_batch, g, frame, count, do_frame);
	spin_lock_irqsave(&g->lock, flags);
	while (count--)
		do_frame(g, frame++);
	spin_unlock_irqrestore(&g->lock, flags);
}

static void gcma_scrub(struct cma_reserve *r, unsigned long frame,
		       unsigned long count)
{
	unsigned long end = frame + count;

	for (; frame < end; frame += GCMA_BATCH)
		gcma_batch(r->tenants, frame, min(end - frame, GCMA_BATCH),
			   gcma_scrub_frame);
}

static void gcma_lend(struct cma_reserve *r, unsigned long frame,
		      unsigned long count)
{
	unsigned long end = frame + count;

	for (; frame < end; frame += GCMA_BATCH)
		gcma_batch(r->tenants, frame, min(end - frame, GCMA_BATCH),
			   gcma_lend_frame);
}

/* Highest frames first, primaries take the lowest run: they meet last. */
static void gcma_init_frames(struct gcma *g)
{
	unsigned long frame;
	int list;

	for (list = 0; list < GCMA_NR_LISTS; list++) {
		frame = g->nr_frames + list;
		g->frames[frame].prev = frame;
		g->frames[frame].next = frame;
	}
	for (frame = g->nr_frames; frame--;)
		gcma_link(g, frame, GCMA_FREE_LIST, true);
}

static void gcma_free(struct gcma *g)
{
	vfree(g->frames);
	free_percpu(g->counters);
	kfree(g);
}

static int gcma_create(struct cma_reserve *r)
{
	struct cma *cma = r->cma;
	struct gcma *g;

	if (gcma_nr_areas == ARRAY_SIZE(gcma_areas) ||
	    (cma->count - 1) >> GCMA_FRAME_BITS)
		return -E2BIG; /* tenant entries have no room for it */

	g = kzalloc(sizeof(*g), GFP_KERNEL);
	if (!g)
		return -ENOMEM;
	g->cma = cma;
	g->base_pfn = cma->base_pfn;
	g->nr_frames = cma->count;
	g->id = gcma_nr_areas;
	spin_lock_init(&g->lock);
	g->counters = alloc_percpu(struct gcma_counters);
	g->frames = vzalloc(array_size(cma->count + GCMA_NR_LISTS,
				       sizeof(*g->frames)));
	if (!g->counters || !g->frames) {
		gcma_free(g);
		return -ENOMEM;
	}
	gcma_init_frames(g);
	r->tenants = g;
	gcma_areas[gcma_nr_areas++] = g;
	/* Complete before it is found: pairs with gcma_pick(). */
	smp_store_release(&gcma_nr_frames, gcma_nr_frames + cma->count);
	static_branch_inc(&gcma_key);
	return 0;
}

const struct cma_policy gcma_policy = {
	.name = "gcma",
	.create = gcma_create,
	.revoke = gcma_revoke,
	.scrub = gcma_scrub,
	.lend = gcma_lend,
};

unsigned long gcma_counter(const struct gcma *g, enum vm_event_item item)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(g->counters, cpu)->n[item - GCMA_stores];
	return sum;
}

#ifdef CONFIG_GCMA_KUNIT_TEST
#include "gcma_kunit.c"
#endif
