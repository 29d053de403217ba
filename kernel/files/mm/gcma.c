// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guaranteed contiguous memory
 *
 * A CMA area of policy "none" or "gcma" keeps its frames out of the buddy
 * allocator, so that cma_alloc() finds nothing to migrate: it succeeds whenever
 * a run of clear bits is long enough, at the cost of setting them. Under "gcma"
 * the idle frames hold tenants: copies of clean page cache pages that reclaim
 * evicted, see include/linux/gcma.h.
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
 *   allocator                          copier (preemption off)
 *   ---------                          ------
 *   set the bits                       announce the frame in gcma_hazard
 *   smp_mb()                           smp_mb()
 *   wait while a CPU announces         give up if the bit is set
 *     a frame in the range             copy, clear gcma_hazard
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
#include <linux/dma-map-ops.h>
#include <linux/hash.h>
#include <linux/highmem.h>
#include <linux/init.h>
#include <linux/magic.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/vmalloc.h>
#include <linux/vmstat.h>
#include <trace/events/gcma.h>

#include "gcma.h"
#include "internal.h"

/* ------ tunables ------------------------------------------------------ */

/* Looks at frames of a list before giving up: bounds a store. */
#define GCMA_SCAN		16

/* Pages per 2^GCMA_SAMPLE_SHIFT in each of the two admission samples. */
#define GCMA_SAMPLE_SHIFT	5

/* One page in so many is admitted to a full area under "seldom". */
#define GCMA_SELDOM_RATE	32

/* Sample hits after which older ones count half. */
#define GCMA_HITS_MAX		1024

/* Pages given back to the area at a time: bounds the time with irqs off. */
#define GCMA_SETTLE		256UL

/* How long to wait before looking at quarantined pages again. */
#define GCMA_QUARANTINE_DELAY	HZ

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
unsigned long gcma_nr_frames;

/*
 * The frame that each CPU is copying into or out of, by pfn; 0: none. An array,
 * for the allocator looks at all of them.
 */
struct gcma_hazard {
	unsigned long pfn;
} ____cacheline_aligned_in_smp;

static struct gcma_hazard *gcma_hazard __ro_after_init;

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

/* Counts for the area, and for /proc/vmstat what has a counter there. */
static __always_inline void gcma_count_pages(struct gcma *g,
					     enum gcma_stat item, long pages)
{
	static_assert(GCMA_STORE + (int)GCMA_RECYCLES == GCMA_RECYCLE);

	this_cpu_add(g->stats->n[item], pages);
	if (item <= GCMA_RECYCLES)
		count_vm_events(GCMA_STORE + (int)item, pages);
	else if (item >= GCMA_REFUSED_FS)
		count_vm_events(GCMA_REFUSE, pages);
}

static __always_inline void gcma_count(struct gcma *g, enum gcma_stat item)
{
	gcma_count_pages(g, item, 1);
}

static unsigned long gcma_pfn(const struct gcma *g, unsigned long frame)
{
	return g->cma->base_pfn + frame;
}

static struct page *gcma_page(const struct gcma *g, unsigned long frame)
{
	return pfn_to_page(gcma_pfn(g, frame));
}

/* True if a primary holds the frame, or has released it and it is not scrubbed. */
bool gcma_revoked(const struct gcma *g, unsigned long frame)
{
	return test_bit(frame >> g->cma->order_per_bit, g->cma->bitmap);
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

static enum gcma_list gcma_sample(u32 hash)
{
	switch (hash & ((1U << GCMA_SAMPLE_SHIFT) - 1)) {
	case 0:
		return GCMA_ALWAYS;
	case 1:
		return GCMA_SELDOM;
	default:
		return GCMA_FOLLOW;
	}
}

static struct gcma *gcma_pick(u32 hash)
{
	unsigned long at = ((u64)hash * gcma_nr_frames) >> 32;
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

/*
 * Returns true, with preemption off, if the caller owns the frame, as @word says,
 * and may touch its memory until gcma_exit(). Must not nest, so it is not for
 * interrupts.
 */
static bool gcma_enter(struct gcma *g, unsigned long frame, u32 word)
{
	unsigned long *hazard;

	preempt_disable();
	hazard = &gcma_hazard[smp_processor_id()].pfn;
	VM_WARN_ON_ONCE(*hazard);
	WRITE_ONCE(*hazard, gcma_pfn(g, frame));
	smp_mb(); /* pairs with gcma_wait_for_copies() */
	if (!gcma_revoked(g, frame)) {
		/*
		 * A clear bit may also mean that a primary came and went since
		 * we became owner. It was scrubbed then before the bit was
		 * cleared: pairs with smp_wmb() in gcma_settle().
		 */
		smp_rmb();
		if (atomic_read(&g->frames[frame].word) == word)
			return true;
	}
	WRITE_ONCE(*hazard, 0);
	preempt_enable();
	return false;
}

static void gcma_exit(void)
{
	/* The copy is complete: pairs with gcma_wait_for_copies(). */
	smp_store_release(&gcma_hazard[smp_processor_id()].pfn, 0);
	preempt_enable();
}

/* After this no CPU touches the memory of the range, whose bits are set. */
static void gcma_wait_for_copies(unsigned long pfn, unsigned long count)
{
	struct gcma_hazard *hazard = gcma_hazard, *end = hazard + nr_cpu_ids;

	smp_mb(); /* pairs with gcma_enter() */
	for (; hazard < end; hazard++)
		/* pairs with gcma_exit() */
		while (smp_load_acquire(&hazard->pfn) - pfn < count)
			cpu_relax();
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
 * @folio also only if it is the tenant of this page: what an entry has room for of
 * the generation may have wrapped. Returns the word of the frame then, 0 if the
 * tenant is gone.
 *
 * The key is read between two looks at the word, and a frame changes it in another
 * generation only: it is that of the tenant if the second look, the cmpxchg, finds
 * all 30 bits of the first.
 */
static u32 gcma_claim(struct gcma *g, unsigned long frame, u32 gen,
		      const struct folio *folio)
{
	struct gcma_frame *f = &g->frames[frame];
	u32 word = atomic_read_acquire(&f->word);
	u32 claimed = gcma_in_state(word, GCMA_LOADING);

	if (!gcma_same_gen(word, gen) ||
	    (word & GCMA_STATE_MASK) != GCMA_STORED)
		return 0;
	if (folio && (READ_ONCE(f->mapping) != folio->mapping ||
		      READ_ONCE(f->index) != folio->index))
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
			gcma_count(g, GCMA_RECYCLES);
			return frame;
		}
		gcma_count(g, GCMA_REVOKED);
	}
	return -1;
}

/*
 * Admission.
 *
 * A page cache eviction is worth a frame if the page is read again before the
 * frame is recycled. First in first out, which is what recycling the oldest
 * tenant amounts to, makes the area the tail of the page cache's LRU, and an LRU
 * is worth nothing for a loop a little longer than it is. Admitting seldom makes
 * some of the loop stay, but is slow to follow a change of the working set.
 *
 * Two samples of all pages, told by their hash, tell which is better: each has
 * its share of the frames for itself and always lives by one of the two rules.
 * The others are admitted seldom only while that sample had clearly more loads
 * of late: where both rules do well, as when nearly all fits, always is the one
 * that follows a change. (Set dueling: Qureshi et al., "Adaptive insertion
 * policies for high performance caching", ISCA 2007; that a hashed sample
 * predicts the whole: Waldspurger et al., "Efficient MRC construction with
 * SHARDS", FAST 2015.)
 */
static bool gcma_seldom(struct gcma *g, enum gcma_list list)
{
	enum gcma_admission admission = READ_ONCE(g->admission);

	if (admission != GCMA_ADMIT_ADAPTIVE)
		return admission == GCMA_ADMIT_SELDOM;
	if (list == GCMA_FOLLOW)
		return READ_ONCE(g->hits[GCMA_SELDOM]) * 2 >
		       READ_ONCE(g->hits[GCMA_ALWAYS]) * 3;
	return list == GCMA_SELDOM;
}

/* May a folio of @list take the frame of a tenant of its own list? */
static bool gcma_admit(struct gcma *g, enum gcma_list list)
{
	if (!gcma_seldom(g, list))
		return true;
	/* An increment may get lost: one page in about so many. */
	return !(data_race(g->skipped++) % GCMA_SELDOM_RATE);
}

static void gcma_note_hit(struct gcma *g, enum gcma_list list)
{
	unsigned long flags;

	if (list == GCMA_FOLLOW)
		return;
	spin_lock_irqsave(&g->lock, flags);
	if (++g->hits[list] > GCMA_HITS_MAX) {
		g->hits[GCMA_ALWAYS] /= 2;
		g->hits[GCMA_SELDOM] /= 2;
	}
	spin_unlock_irqrestore(&g->lock, flags);
}

/*
 * Find a frame for a page of @list, or -1. A sample may fill its share of the
 * frames and then lives on its own; the rest is for all others.
 */
static long gcma_take(struct gcma *g, enum gcma_list list, bool admit)
{
	bool grown = list != GCMA_FOLLOW &&
		     g->len[list] >= atomic_long_read(&g->nr_available) >>
				     GCMA_SAMPLE_SHIFT;
	long frame = -1;

	if (!grown) {
		frame = gcma_take_free(g);
		if (frame < 0 && list != GCMA_FOLLOW)
			frame = gcma_take_victim(g, GCMA_FOLLOW);
		if (frame >= 0)
			return frame;
	}
	if (!admit) {
		gcma_count(g, GCMA_REFUSED_ADMISSION);
		return -1;
	}
	frame = gcma_take_victim(g, list);
	if (frame < 0)
		gcma_count(g, GCMA_REFUSED_BUSY);
	return frame;
}

/* ------ store --------------------------------------------------------- */

/*
 * Filesystems whose every change of a file's blocks behind the page cache was
 * found to invalidate the page cache, shadow entries included, and that pass
 * the selftests. Network and stacking filesystems do not.
 */
static bool gcma_allowed_fs(const struct super_block *sb)
{
	switch (sb->s_magic) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case EROFS_SUPER_MAGIC_V1:
	case SQUASHFS_MAGIC:
		return sb->s_bdev;
	case BDEVFS_MAGIC:
		return true;
	default:
		return false;
	}
}

/* Why a page must not become a tenant; GCMA_STORES if it may. */
static enum gcma_stat gcma_refusal(struct address_space *mapping,
				   struct folio *folio)
{
	struct inode *inode = mapping->host;

	/*
	 * Only what the page cache of a file or block device holds: filesystems
	 * keep other things in mappings of inodes that are neither, or whose mode
	 * says nothing but that are never read page by page; DAX and shmem keep
	 * other values in the slots.
	 */
	if (!(S_ISREG(inode->i_mode) || S_ISBLK(inode->i_mode)) ||
	    !gcma_allowed_fs(inode->i_sb) || IS_DAX(inode) ||
	    !mapping->a_ops->read_folio)
		return GCMA_REFUSED_FS;
	if (folio_order(folio) > GCMA_MAX_ORDER ||
	    mapping_min_folio_order(mapping) ||
	    folio_next_index(folio) > U32_MAX)
		return GCMA_REFUSED_LARGE;
	/*
	 * Plaintext must not outlive the key in a frame. After a failed write a
	 * clean page need not be what is on disk.
	 */
	if (IS_ENCRYPTED(inode) || folio_test_hwpoison(folio) ||
	    !folio_test_uptodate(folio) || READ_ONCE(mapping->wb_err))
		return GCMA_REFUSED_PRIVATE;
	return GCMA_STORES;
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
		gcma_count(g, GCMA_REFUSED_BUSY);
		gcma_put(g, frame, word);
		return;
	}
	copy_highpage(gcma_page(g, frame), folio_page(folio, i));
	gcma_exit();
	store->copy[store->nr++] = (struct gcma_copy){ frame, word };
}

/* Anonymous, dirty, or unwanted: see gcma_unwanted(). */
#define GCMA_UNFIT	(BIT(PG_swapbacked) | BIT(PG_dirty) | BIT(PG_readahead))

void __gcma_store_begin(struct gcma_store *store, struct address_space *mapping,
			struct folio *folio)
{
	u32 hash = gcma_hash(mapping, folio->index);
	enum gcma_list list = gcma_sample(hash);
	struct gcma *g = gcma_pick(hash);
	enum gcma_stat refusal;
	unsigned int i;
	bool admit;

	/* Not worth a copy if the eviction is going to fail. */
	if (READ_ONCE(folio->flags) & GCMA_UNFIT ||
	    folio_ref_count(folio) != 1 + folio_nr_pages(folio))
		return;
	refusal = gcma_refusal(mapping, folio);
	if (refusal != GCMA_STORES) {
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
void *__gcma_store_commit(struct gcma_store *store, void *shadow)
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
	gcma_count(g, GCMA_STORES);
	return gcma_mk_entry(g, copy.frame, copy.word);
}

/* One shadow stands for all pages: orders below XA_CHUNK_SHIFT split in place. */
void __gcma_store_spread(struct gcma_store *store,
			 struct address_space *mapping, struct folio *folio,
			 void *shadow)
{
	XA_STATE(xas, &mapping->i_pages, folio->index);

	mapping_set_update(&xas, mapping);
	xas_split(&xas, shadow, folio_order(folio));
	while (store->nr) {
		u32 frame = store->copy[store->nr - 1].frame;

		xas_set(&xas, store->area->frames[frame].index);
		xas_store(&xas, __gcma_store_commit(store, shadow));
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

void *__gcma_load(struct folio *folio, void *entry)
{
	bool loaded = false;
	void *shadow = NULL;
	unsigned long frame;
	struct gcma *g;
	u32 gen, word;

	g = gcma_rd_entry(entry, &frame, &gen);
	word = gcma_claim(g, frame, gen, folio);
	if (word) {
		struct gcma_frame *f = &g->frames[frame];

		shadow = f->shadow;
		if (!folio_test_large(folio) && gcma_enter(g, frame, word)) {
			struct page *page = gcma_page(g, frame);

			/* A poisoned frame takes its data with it: read the disk. */
			loaded = !PageHWPoison(page);
			if (loaded)
				copy_highpage(folio_page(folio, 0), page);
			gcma_exit();
		}
		if (loaded) {
			flush_dcache_folio(folio);
			folio_mark_uptodate(folio);
			gcma_note_hit(g, gcma_list_of(f));
			trace_gcma_load(folio->mapping, folio->index,
					gcma_pfn(g, frame));
		}
		gcma_put(g, frame, word);
	}
	gcma_count(g, loaded ? GCMA_LOADS : GCMA_MISSES);
	return shadow;
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
	word = gcma_claim(g, frame, gen, NULL);
	if (!word)
		return;
	gcma_count(g, GCMA_DROPPED);
	gcma_put(g, frame, word);
}

/* ------ primaries ----------------------------------------------------- */

/* cma_alloc_folio() wants a compound page, of which only the head is referenced. */
static void gcma_make_compound(struct page *page, unsigned long count)
{
	unsigned long i;

	for (i = 1; i < count; i++)
		set_page_count(nth_page(page, i), 0);
	prep_compound_page(page, ilog2(count));
}

/* What the primary left behind, the next one must not inherit. */
static void gcma_reset_page(struct page *page)
{
	page->flags &= ~PAGE_FLAGS_CHECK_AT_PREP;
	page->mapping = NULL;
	set_page_private(page, 0);
}

static void gcma_unmake_compound(struct page *head, unsigned long count)
{
	while (count--) {
		struct page *page = nth_page(head, count);

		clear_compound_head(page);
		atomic_set(&page->_mapcount, -1);
		gcma_reset_page(page);
		set_page_count(page, 1);
	}
}

/* Memory failures are rare enough to look only after the first. */
static bool gcma_poisoned(unsigned long pfn, unsigned long count)
{
	unsigned long i;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE) ||
	    !atomic_long_read(&num_poisoned_pages))
		return false;
	for (i = 0; i < count; i++)
		if (PageHWPoison(pfn_to_page(pfn + i)))
			return true;
	return false;
}

/**
 * gcma_take_range() - make a range of an area a primary's
 * @cma: the area
 * @pfn: first page; the bits of the range were just set by the caller
 * @count: pages
 * @gfp: %__GFP_COMP: as one compound page; %__GFP_ZERO or init_on_alloc: zeroed
 *
 * Context: process context, no lock held; waits for at most one page copy per
 * CPU. Cost: O(CPUs), plus O(@count) for what @gfp asks for.
 * Return: 0, or -EBUSY if a page of the range is poisoned: the range is released
 * then, but for the poisoned page, which stays in quarantine.
 */
int gcma_take_range(struct cma *cma, unsigned long pfn, unsigned long count,
		    gfp_t gfp)
{
	unsigned long taken = ALIGN(count, 1UL << cma->order_per_bit);
	struct gcma *g = cma->gcma;
	unsigned long i;

	atomic_long_sub(taken, &g->nr_available);
	if (g->nr_frames)
		gcma_wait_for_copies(pfn, taken);
	if (gcma_poisoned(pfn, count)) {
		gcma_release_range(cma, pfn, count);
		return -EBUSY;
	}
	/* A tenant was freed, in a sense, when its frame was revoked. */
	if (want_init_on_alloc(gfp) || (g->nr_frames && want_init_on_free()))
		for (i = 0; i < count; i++)
			clear_highpage(pfn_to_page(pfn + i));
	if (gfp & __GFP_COMP)
		gcma_make_compound(pfn_to_page(pfn), count);
	trace_gcma_revoke(cma->name, pfn, count);
	return 0;
}

/*
 * Discard the tenants of frames that a primary is done with. Their bits are
 * still set, so they cannot be lent. Who owns one of them finds the word changed
 * and puts it.
 */
static void gcma_scrub(struct gcma *g, unsigned long frame, unsigned long end)
{
	unsigned long flags;

	spin_lock_irqsave(&g->lock, flags);
	for (; frame < end; frame++) {
		struct gcma_frame *f = &g->frames[frame];
		u32 word = atomic_read(&f->word);
		enum gcma_state state;

		do {
			state = word & GCMA_STATE_MASK;
		} while (!atomic_try_cmpxchg(&f->word, (int *)&word,
				gcma_next_gen(word, state == GCMA_STORED ?
						    GCMA_FREE : state)));
		if (state == GCMA_STORED) {
			gcma_unlink(g, frame, gcma_list_of(f));
			gcma_count(g, GCMA_REVOKED);
		}
	}
	spin_unlock_irqrestore(&g->lock, flags);
}

/*
 * Lend scrubbed frames again, after all others. Only now that their bits are
 * clear, or gcma_take_free() would drop them from the list for good.
 */
static void gcma_lend(struct gcma *g, unsigned long frame, unsigned long end)
{
	unsigned long flags;

	spin_lock_irqsave(&g->lock, flags);
	for (; frame < end; frame++) {
		struct gcma_frame *f = &g->frames[frame];

		if (gcma_frame_state(f) == GCMA_FREE && !gcma_linked(f))
			gcma_link(g, frame, GCMA_FREE_LIST, true);
	}
	spin_unlock_irqrestore(&g->lock, flags);
}

/*
 * Is the page the area's alone again? The area holds one reference to each of
 * its pages; a compound page is taken apart as soon as nobody else uses it. A
 * poisoned page is never idle again.
 */
static bool gcma_idle(struct page *page)
{
	struct page *head = compound_head(page);

	if (PageHWPoison(page) || page_count(head) != 1)
		return false;
	/* Nobody can get a reference to a frozen page. */
	if (PageHead(head)) {
		if (!page_ref_freeze(head, 1))
			return false;
		gcma_unmake_compound(head, compound_nr(head));
	} else {
		gcma_reset_page(page);
	}
	return true;
}

/* Give released bits back to the area, those at least that are idle. */
static void gcma_settle(struct gcma *g, unsigned long bit, unsigned long end)
{
	struct cma *cma = g->cma;
	unsigned int order = cma->order_per_bit;
	unsigned long flags;

	while (bit < end) {
		unsigned long first = bit << order, frame = first;
		unsigned long last = min(end, bit + max(GCMA_SETTLE >> order, 1));

		/* the longest idle run of whole bits from here */
		while (frame < last << order && gcma_idle(gcma_page(g, frame)))
			frame++;
		last = frame >> order;
		if (last == bit) {
			spin_lock_irqsave(&cma->lock, flags);
			set_bit(bit, g->quarantine);
			spin_unlock_irqrestore(&cma->lock, flags);
			trace_gcma_quarantine(cma->name, gcma_pfn(g, first),
					      1UL << order);
			bit++;
			continue;
		}
		if (want_init_on_free())
			for (frame = first; frame < last << order; frame++)
				clear_highpage(gcma_page(g, frame));
		if (g->nr_frames)
			gcma_scrub(g, first, last << order);
		smp_wmb(); /* pairs with smp_rmb() in gcma_enter() */
		spin_lock_irqsave(&cma->lock, flags);
		bitmap_clear(g->quarantine, bit, last - bit);
		bitmap_clear(g->leaving, bit, last - bit);
		bitmap_clear(cma->bitmap, bit, last - bit);
		spin_unlock_irqrestore(&cma->lock, flags);
		if (g->nr_frames)
			gcma_lend(g, first, last << order);
		atomic_long_add((last - bit) << order, &g->nr_available);
		bit = last;
	}
}

static void gcma_quarantine_work(struct work_struct *work)
{
	struct gcma *g = container_of(work, struct gcma, work.work);
	unsigned long bit, frame;
	bool again = false;

	for_each_set_bit(bit, g->quarantine, cma_bitmap_maxno(g->cma)) {
		gcma_settle(g, bit, bit + 1);
		frame = bit << g->cma->order_per_bit;
		again |= test_bit(bit, g->quarantine) &&
			 !gcma_poisoned(gcma_pfn(g, frame),
					1UL << g->cma->order_per_bit);
	}
	if (again)
		schedule_delayed_work(&g->work, GCMA_QUARANTINE_DELAY);
}

/* Begin the release of frames; false if they are not whole, allocated bits. */
static bool gcma_leave(struct gcma *g, unsigned long frame, unsigned long last)
{
	struct cma *cma = g->cma;
	unsigned int order = cma->order_per_bit;
	unsigned long bit = frame >> order, end = last >> order;
	unsigned long flags;
	bool held;

	spin_lock_irqsave(&cma->lock, flags);
	held = bit < end && end <= cma_bitmap_maxno(cma) &&
	       IS_ALIGNED(frame | last, 1UL << order) &&
	       find_next_zero_bit(cma->bitmap, end, bit) >= end &&
	       find_next_bit(g->leaving, end, bit) >= end;
	if (held)
		bitmap_set(g->leaving, bit, end - bit);
	spin_unlock_irqrestore(&cma->lock, flags);
	return held;
}

/**
 * gcma_release_range() - a primary is done with a range
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
bool gcma_release_range(struct cma *cma, unsigned long pfn, unsigned long count)
{
	unsigned int order = cma->order_per_bit;
	unsigned long frame = pfn - cma->base_pfn;
	unsigned long last = frame + ALIGN(count, 1UL << order);
	unsigned long bit = frame >> order, end = last >> order;
	struct gcma *g = cma->gcma;

	if (WARN(!gcma_leave(g, frame, last),
		 "%s: release of %lu pages at pfn %#lx that are not allocated\n",
		 cma->name, count, pfn))
		return false;

	gcma_settle(g, bit, end);
	trace_gcma_release(cma->name, pfn, count);
	if (find_next_bit(g->quarantine, end, bit) < end) {
		pr_warn_ratelimited("%s: released pages at pfn %#lx are still in use, quarantined\n",
				    cma->name, pfn);
		schedule_delayed_work(&g->work, GCMA_QUARANTINE_DELAY);
	}
	return true;
}

/* ------ policy -------------------------------------------------------- */

const char * const gcma_policies[] = {
	[CMA_MOVABLE]	= "movable",
	[CMA_NONE]	= "none",
	[CMA_GCMA]	= "gcma",
};

/* What the command line said, each POLICY or NAME:POLICY. */
static char *gcma_choices[MAX_CMA_AREAS] __initdata;
static unsigned int gcma_nr_choices __initdata;

static int __init gcma_early_policy(char *arg)
{
	char *choice;

	while ((choice = strsep(&arg, ",")))
		if (gcma_nr_choices < ARRAY_SIZE(gcma_choices))
			gcma_choices[gcma_nr_choices++] = choice;
		else
			pr_err("cma_policy=: too many areas, '%s' ignored\n",
			       choice);
	return 0;
}
early_param("cma_policy", gcma_early_policy);

/* The policy that @choice has for the area, NULL if it means another one. */
static const char *__init gcma_choice_for(const struct cma *cma,
					   const char *choice)
{
	const char *colon = strrchr(choice, ':');
	bool meant;

	if (colon && colon != choice)
		meant = str_has_prefix(choice, cma->name) == colon - choice;
	else
		meant = cma == dev_get_cma_area(NULL);
	if (!meant)
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
	int ret;

	if (!policy)
		return;
	ret = match_string(gcma_policies, ARRAY_SIZE(gcma_policies), policy);
	if (ret < 0)
		pr_err("%s: policy '%s' ignored, policies are movable, none, gcma\n",
		       cma->name, policy);
	else
		cma->policy = ret;
}

static int __init gcma_is_chosen(struct cma *cma, void *choice)
{
	return !!gcma_choice_for(cma, choice);
}

static int __init gcma_check_choices(void)
{
	unsigned int i;

	for (i = 0; i < gcma_nr_choices; i++)
		if (!cma_for_each_area(gcma_is_chosen, gcma_choices[i]))
			pr_err("cma_policy=: there is no area for '%s'\n",
			       gcma_choices[i]);
	return 0;
}
subsys_initcall(gcma_check_choices);

/* ------ activation ---------------------------------------------------- */

/* Highest frames first, primaries take the lowest run: they meet last. */
static void __init gcma_init_frames(struct gcma *g)
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

static struct gcma *__init gcma_create(struct cma *cma)
{
	struct gcma *g = kzalloc(sizeof(*g), GFP_KERNEL);

	if (!g)
		return NULL;
	g->cma = cma;
	g->id = gcma_nr_areas;
	spin_lock_init(&g->lock);
	atomic_long_set(&g->nr_available, cma->count);
	INIT_DELAYED_WORK(&g->work, gcma_quarantine_work);
	g->leaving = bitmap_zalloc(cma_bitmap_maxno(cma), GFP_KERNEL);
	g->quarantine = bitmap_zalloc(cma_bitmap_maxno(cma), GFP_KERNEL);
	g->stats = alloc_percpu(struct gcma_stats);
	if (!g->leaving || !g->quarantine || !g->stats)
		goto free;
	if (cma->policy == CMA_NONE)
		return g;

	if (!gcma_hazard)
		gcma_hazard = kcalloc(nr_cpu_ids, sizeof(*gcma_hazard),
				      GFP_KERNEL);
	g->frames = vzalloc(array_size(cma->count + GCMA_NR_LISTS,
				       sizeof(*g->frames)));
	if (!g->frames || !gcma_hazard)
		goto free;
	g->nr_frames = cma->count;
	gcma_init_frames(g);
	return g;
free:
	vfree(g->frames);
	free_percpu(g->stats);
	bitmap_free(g->quarantine);
	bitmap_free(g->leaving);
	kfree(g);
	return NULL;
}

/**
 * gcma_activate() - keep an area out of the buddy allocator if its policy says so
 * @cma: an area whose bitmap is allocated and whose pages are still reserved
 *
 * Return: false if the area is to be a movable one: by its policy, or because
 * another one is not possible, which is logged.
 */
bool __init gcma_activate(struct cma *cma)
{
	const char *why = "no memory for the frame table";
	unsigned long pfn;
	unsigned int i;

	for (i = 0; i < gcma_nr_choices; i++)
		cma_set_policy(cma, gcma_choice_for(cma, gcma_choices[i]));
	if (cma->policy == CMA_MOVABLE)
		return false;

	if (cma->policy == CMA_GCMA &&
	    (gcma_nr_areas == ARRAY_SIZE(gcma_areas) ||
	     (cma->count - 1) >> GCMA_FRAME_BITS))
		why = "too many areas, or too large a one, for tenant entries";
	else
		cma->gcma = gcma_create(cma);
	if (!cma->gcma) {
		pr_err("%s: %s, falling back to movable\n", cma->name, why);
		cma->policy = CMA_MOVABLE;
		return false;
	}

	/* The reference that boot gave them stays: they are never freed. */
	for (pfn = cma->base_pfn; pfn < cma->base_pfn + cma->count; pfn++)
		__ClearPageReserved(pfn_to_page(pfn));
	if (cma->policy == CMA_GCMA) {
		gcma_areas[gcma_nr_areas++] = cma->gcma;
		gcma_nr_frames += cma->count;
		static_branch_enable(&gcma_key);
	}
	pr_info("%s: %lu pages, policy %s\n", cma->name, cma->count,
		gcma_policies[cma->policy]);
	return true;
}

/* ------ statistics ---------------------------------------------------- */

unsigned long gcma_stat(const struct gcma *g, enum gcma_stat item)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(g->stats, cpu)->n[item];
	return sum;
}

/* Frames whose tenant can be loaded. O(area), a snapshot of moving things. */
unsigned long gcma_count_tenants(const struct gcma *g)
{
	unsigned long frame, sum = 0;

	for (frame = 0; frame < g->nr_frames; frame++)
		sum += gcma_frame_state(&g->frames[frame]) == GCMA_STORED &&
		       !gcma_revoked(g, frame);
	return sum;
}

#ifdef CONFIG_GCMA_KUNIT_TEST
#include "gcma_kunit.c"
#endif
