// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guaranteed contiguous memory: tenants of CMA areas
 *
 * The idle frames of an area of policy "gcma" hold tenants: copies of clean pages that
 * reclaim evicted, see include/linux/gcma.h; mm/gcma_swap.c has what is different about
 * swapped-out ones. How an area stays out of the buddy allocator, and its ranges pass
 * from hand to hand, is told in mm/cma_reserve.c.
 *
 * The index of the tenants is the page cache itself, or the swap cache. An eviction leaves a
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
 * primary releases it, before its bit is cleared: it has no tenant then, and the
 * next one has another generation, so all older entries that name it are worthless.
 *
 * An entry has room for few generation bits on 32-bit machines. It would do
 * without any: a slot holds what the latest eviction from this slot left there,
 * so if the frame it names carries the key of the slot, that eviction was the
 * one that filled the frame.
 *
 * Locking: gcma.lock nests inside the i_pages lock; cma->lock is taken inside neither. The
 * allocator takes neither, but for ranges that it gives back, which are scrubbed and lent under
 * gcma.lock: those with memory that failed, those that cannot be one compound page now; and but
 * for dirty tenants.
 */

#define CREATE_TRACE_POINTS

#include <linux/dax.h>
#include <linux/hash.h>
#include <linux/highmem.h>
#include <linux/kmsan.h>
#include <linux/math64.h>
#include <linux/memcontrol.h>
#include <linux/shmem_fs.h>
#include <linux/swap.h>
#include <linux/vmalloc.h>
#include <trace/events/gcma.h>

#include "gcma.h"
#include "gcma_admission.h"
#include "internal.h"
#include "swap.h"

/* ------ tunables ------------------------------------------------------ */

/* Looks at frames of a list before giving up: bounds a store. */
#define GCMA_SCAN		16

/*
 * As dear as a request: to read so many pages more. Flash takes 20 to 200 us to begin
 * with, and 4 to 40 us a page.
 */
#define GCMA_RUN		8UL

/* Nodes of shadows are kept for tenants of no more than this part of memory. */
#define GCMA_NODE_SHARE		8

/* ------ data ---------------------------------------------------------- */

DEFINE_STATIC_KEY_FALSE(gcma_key);

/* The tenant entry: tag, generation, number of the frame among those of all areas. */
#define GCMA_FRAME_BITS	(IS_ENABLED(CONFIG_64BIT) ? 31 : 21)
#define GCMA_GEN_BITS	(IS_ENABLED(CONFIG_GCMA_DEBUG_GENERATION) ? 2 :	\
			 BITS_PER_XA_VALUE - GCMA_TAG_BITS - GCMA_FRAME_BITS)
#define GCMA_FRAME_MASK	((1UL << GCMA_FRAME_BITS) - 1)
#define GCMA_GEN_MASK	((1UL << GCMA_GEN_BITS) - 1)

/*
 * A frame that was lent so often since tells nothing of the page that it held, and one that a
 * primary had, for nobody knows how long, counts as lent so often. With few generations, which
 * are soon the same again, none tells anything.
 */
#define GCMA_LONG	(IS_ENABLED(CONFIG_64BIT) ? 16U : 0)

static struct gcma gcma_areas[MAX_CMA_AREAS + 1]; /* one of them for the tests */
static unsigned int gcma_nr_areas;
static u32 gcma_nr_frames; /* of all of them */

/*
 * The frame that each CPU is copying into or out of, by pfn; 0: none. The CPUs that
 * copy, so that the allocator needs not look at all of them: see gcma_enter().
 */
static DEFINE_PER_CPU(unsigned long, gcma_hazard);
static unsigned long gcma_copying[BITS_TO_LONGS(NR_CPUS)];

void *gcma_mk_entry(const struct gcma *g, u32 frame, u32 word)
{
	unsigned long gen = word >> GCMA_GEN_SHIFT & GCMA_GEN_MASK;

	return xa_mk_value(GCMA_TAG | gen << GCMA_FRAME_BITS | (g->first + frame));
}

/* The area of the frame that is number *@frame of all, and its number there. */
static struct gcma *gcma_locate(u32 *frame)
{
	struct gcma *g = gcma_areas;

	while (*frame >= g->nr_frames)
		*frame -= g++->nr_frames;
	return g;
}

/* The area of an entry, and the frame that it names. */
struct gcma *gcma_rd_entry(void *entry, u32 *frame)
{
	*frame = xa_to_value(entry) & GCMA_FRAME_MASK;
	return gcma_locate(frame);
}

/* Does @word say that the frame holds the tenant of @entry? */
static bool gcma_holds(const struct gcma *g, u32 frame, u32 word, void *entry)
{
	return (word & GCMA_STATE_MASK) == GCMA_STORED &&
	       gcma_mk_entry(g, frame, word) == entry;
}

static unsigned long gcma_pfn(const struct gcma *g, u32 frame)
{
	return g->base_pfn + frame;
}

/*
 * The lowest bits of a product of 32 tell no more than the lowest of @key, which slabs make the
 * same for many. They tell the sample, so bits from the middle are folded in; the upper ones,
 * which choose the area, stay.
 */
static u32 gcma_hash_32(u32 key)
{
	u32 hash = hash_32(key, 32);

	return hash ^ hash >> 16;
}

/*
 * Neighbouring pages are evicted and read together, so they share the area, which the upper
 * bits choose, and the sample.
 */
static u32 gcma_hash(const struct address_space *mapping, pgoff_t index)
{
	unsigned long key = (unsigned long)mapping / sizeof(long) +
			    (index >> GCMA_MAX_ORDER) * GOLDEN_RATIO_32;

	return BITS_PER_LONG == 32 ? gcma_hash_32(key) : hash_long(key, 32);
}

static struct gcma *gcma_pick(u32 hash)
{
	/* The areas with so many frames are there: pairs with gcma_create(). */
	u32 at = reciprocal_scale(hash, smp_load_acquire(&gcma_nr_frames));

	return gcma_locate(&at);
}

/* The area that a page would be kept in. */
struct gcma *gcma_area(const struct address_space *mapping, pgoff_t index)
{
	return gcma_pick(gcma_hash(mapping, index));
}

/* ------ lists, all under gcma.lock ------------------------------------ */

/* The list that a frame with this word is on, if on any. */
static enum gcma_list gcma_list_of(u32 word)
{
	return word & GCMA_STATE_MASK ? (word & GCMA_LIST_MASK) >> GCMA_LIST_SHIFT :
					GCMA_FREE_LIST;
}

static __always_inline void gcma_link(struct gcma *g, u32 frame,
				      enum gcma_list list, bool tail)
{
	struct gcma_frame *frames = g->frames;
	u32 head = g->nr_frames + list;
	u32 prev = tail ? frames[head].prev : head;
	u32 next = frames[prev].next;

	frames[frame].prev = prev;
	frames[frame].next = next;
	frames[next].prev = frame;
	frames[prev].next = frame;
	g->len[list]++;
}

static void gcma_unlink(struct gcma *g, u32 frame, enum gcma_list list)
{
	struct gcma_frame *frames = g->frames, *f = &frames[frame];

	frames[f->prev].next = f->next;
	frames[f->next].prev = f->prev;
	f->next = GCMA_UNLINKED;
	g->len[list]--;
}

/*
 * The data and nothing else: memory tags, which copy_highpage() takes along, are those of a
 * mapping, not of the page in its file or slot.
 */
void gcma_copy_data(struct page *to, struct page *from)
{
	void *src = kmap_local_page(from), *dst = kmap_local_page(to);

	copy_page(dst, src);
	kmsan_copy_page_meta(to, from);
	kunmap_local(dst);
	kunmap_local(src);
}

/* ------ copying against revocation ------------------------------------ */

static __always_inline void gcma_exit(void)
{
	/* The copy is complete: both pair with gcma_revoke(). */
	smp_store_release(this_cpu_ptr(&gcma_hazard), 0);
	clear_bit_unlock(smp_processor_id(), gcma_copying);
	preempt_enable();
}

/*
 * Returns true, with preemption off, if no primary came since the caller became owner
 * of the frame, and he may touch its memory until gcma_exit(). Must not nest, so it is
 * not for interrupts.
 *
 * Slot and mask need no order between them: the allocator sees both, or we see
 * its bits.
 */
static __always_inline bool gcma_enter(struct gcma *g, u32 frame)
{
	preempt_disable();
	VM_WARN_ON_ONCE(__this_cpu_read(gcma_hazard));
	this_cpu_write(gcma_hazard, gcma_pfn(g, frame));
	set_bit(smp_processor_id(), gcma_copying);
	smp_mb__after_atomic(); /* pairs with gcma_revoke() */
	if (!gcma_revoked(g, frame)) {
		/*
		 * A clear bit may also mean that a primary came and went since
		 * we became owner. It was scrubbed then before the bit was
		 * cleared: pairs with smp_wmb() in cma_give_back().
		 */
		smp_rmb();
		if (gcma_frame_state(&g->frames[frame]) != GCMA_LOST)
			return true;
	}
	gcma_exit();
	return false;
}

/* Wait until no CPU copies to or from the range, whose bits are set. */
static __always_inline void gcma_wait(unsigned long pfn, unsigned long count)
{
	unsigned int word, cpu;

	for (word = 0; word < BITS_TO_LONGS(nr_cpu_ids); word++) {
		/* pairs with gcma_exit() */
		unsigned long copying = smp_load_acquire(&gcma_copying[word]);

		for (; copying; copying &= copying - 1) {
			cpu = word * BITS_PER_LONG + __ffs(copying);
			/* pairs with gcma_exit() */
			smp_cond_load_acquire(per_cpu_ptr(&gcma_hazard, cpu),
					      VAL - pfn >= count);
		}
	}
}

/* Memory that failed is left alone. */
static void gcma_wipe(const struct gcma *g, u32 frame)
{
	struct page *page = pfn_to_page(gcma_pfn(g, frame));

	if (!PageHWPoison(page))
		clear_highpage(page);
}

static noinline int gcma_revoke_dirty(struct gcma *g, unsigned long frame, unsigned long count)
{
	int ret = gcma_evacuate(g, frame, count);
	unsigned int tries = GCMA_DIRTY_TRIES;

	gcma_wait(gcma_pfn(g, frame), count);
	/* The others go, too, and no primary clears their frames. */
	for (; ret && want_init_on_free() && count--; frame++)
		if (!gcma_dirty_stays(g, frame, &tries))
			gcma_wipe(g, frame);
	return ret;
}

/* After this no CPU touches the memory of the range, whose bits are set. */
static int gcma_revoke(struct cma_reserve *r, unsigned long frame,
		       unsigned long count)
{
	struct gcma *g = r->tenants;

	smp_mb(); /* pairs with gcma_enter(), and with gcma_dirty_copy() */
	if (unlikely(gcma_nr_dirty(g)))
		return gcma_revoke_dirty(g, frame, count);
	gcma_wait(gcma_pfn(g, frame), count);
	return 0;
}

/* ------ ownership of frames ------------------------------------------- */

/*
 * Lend the frame again, which the caller owns, and count @what became of its copy.
 * gcma_take() finds out if it must not be lent.
 */
void gcma_put(struct gcma *g, u32 frame, enum vm_event_item what)
{
	struct gcma_frame *f = &g->frames[frame];
	bool dirty = gcma_is_dirty(g, frame);
	enum gcma_list list;

	gcma_count(g, what, 1);
	if (what == GCMA_loads && atomic_read(&f->word) & GCMA_SWAP_BIT)
		gcma_count(g, GCMA_loads_swap, 1);
	if (what == GCMA_loads && trace_gcma_load_enabled())
		trace_gcma_load(f->mapping, f->index, gcma_pfn(g, frame));
	/* What is dirty is the owner's, whether a primary has come or not. */
	if (want_init_on_free() && (dirty || gcma_enter(g, frame))) {
		gcma_wipe(g, frame);
		if (!dirty)
			gcma_exit();
	}
	if (dirty)
		gcma_dirty_clear(g, frame);
	scoped_guard(spinlock_irqsave, &g->lock) {
		VM_WARN_ON_ONCE(!(atomic_read(&f->word) & GCMA_OWNER));
		list = gcma_list_of(atomic_read(&f->word));
		if (what == GCMA_loads)
			gcma_note_hit(g, list);
		gcma_unlink(g, frame, list);
		atomic_andnot(GCMA_STATE_MASK, &f->word);
		/* Last that is a primary's now */
		gcma_link(g, frame, GCMA_FREE_LIST, what == GCMA_moved_aside);
		if (list == GCMA_DIRTY)
			gcma_dirty_room(g);
	}
}

/*
 * Become owner of the tenant of @entry, if it is there; with @mapping also only if it
 * is the tenant of that page: what an entry has room for of the generation may have
 * wrapped. Returns its area then and sets *@frame; NULL if the tenant is gone.
 *
 * The key is read between two looks at the word, and a frame changes it between two
 * generations only, while it holds no tenant: it is that of the tenant if the second
 * look, the cmpxchg, finds all 32 bits of the first.
 */
struct gcma *gcma_claim(void *entry, u32 *frame, const struct address_space *mapping,
			pgoff_t index)
{
	struct gcma *g = gcma_rd_entry(entry, frame);
	struct gcma_frame *f = &g->frames[*frame];
	u32 word = atomic_read_acquire(&f->word);

	if (!gcma_holds(g, *frame, word, entry))
		return NULL;
	/* What is nowhere else must not be lost. */
	if (mapping ? READ_ONCE(f->mapping) != mapping || READ_ONCE(f->index) != index :
		      gcma_is_dirty(g, *frame))
		return NULL;
	return atomic_cmpxchg(&f->word, word, word | GCMA_OWNER) == word ? g : NULL;
}

/*
 * Take a frame off @list, and its tenant with it. One that cannot be lent leaves the list,
 * once: gcma_lend() links it again. Tenants that have an owner are his to put.
 */
static __always_inline bool gcma_take_off(struct gcma *g, u32 frame, enum gcma_list list)
{
	struct gcma_frame *f = &g->frames[frame];
	u32 word = atomic_read(&f->word);
	bool lend;

	if (word & GCMA_OWNER ||
	    (word & GCMA_INTACT &&
	     atomic_cmpxchg(&f->word, word, word & ~GCMA_INTACT) != word))
		return false;
	gcma_unlink(g, frame, list);
	/* Not if it is a primary's, nor if its memory is bad: both count as revoked. */
	lend = !gcma_revoked(g, frame) && !PageHWPoison(pfn_to_page(gcma_pfn(g, frame)));
	if (word & GCMA_INTACT)
		gcma_count(g, lend ? GCMA_recycles : GCMA_revoked, 1);
	else if (!lend)
		/* No more than there are: those that a primary has are not to be filled. */
		g->unfilled = min_t(unsigned long, g->unfilled, g->len[GCMA_FREE_LIST]);
	return lend;
}

/* Take the first frame of @list, or -1: the oldest, but of free ones what was given back last. */
static __always_inline long gcma_take_from(struct gcma *g, enum gcma_list list)
{
	u32 head = g->nr_frames + list, frame = g->frames[head].next, next;
	int tries = GCMA_SCAN;

	for (; tries-- && frame != head; frame = next) {
		next = g->frames[frame].next;
		if (gcma_take_off(g, frame, list))
			return frame;
	}
	return -1;
}

/*
 * A free frame was taken. One that nothing was in since a primary had it, or another? That is not
 * known: those that loads gave back are first on the list. It counts as one of the former as long
 * as there are any, but for those who may have the others only: see gcma_room().
 */
static void gcma_filled(struct gcma *g)
{
	g->unused -= !!g->unused;
	if (!g->losing || g->unfilled > g->len[GCMA_FREE_LIST])
		g->unfilled -= !!g->unfilled;
}

/* Take this very frame, if it is lent to nobody who needs it. */
bool gcma_take_frame(struct gcma *g, u32 frame)
{
	enum gcma_list list = gcma_list_of(atomic_read(&g->frames[frame].word));

	if (list == GCMA_DIRTY || g->frames[frame].next == GCMA_UNLINKED ||
	    !gcma_take_off(g, frame, list))
		return false;
	if (list == GCMA_FREE_LIST)
		gcma_filled(g);
	return true;
}

/*
 * Find a frame for a page of @list, or -1. A sample may fill its share of the
 * frames and then lives on its own; the rest is for all others, but for what is read
 * again as fast as memory: that takes free frames, or those of its kind.
 */
static __always_inline long __gcma_take(struct gcma *g, enum gcma_list list, bool admit)
{
	bool share = gcma_offer(g, list);
	long frame = -1;

	if (!share) {
		frame = gcma_take_from(g, GCMA_FREE_LIST);
		if (frame >= 0) {
			gcma_filled(g);
			return frame;
		}
		if (list != GCMA_FAST &&
		    (admit || (list != GCMA_FOLLOW && gcma_rule(g, list) != GCMA_ADMIT_HARDLY)))
			frame = gcma_take_from(g, g->len[GCMA_FAST] ? GCMA_FAST :
							gcma_victims(g));
	}
	if (frame < 0 && admit)
		frame = gcma_take_from(g, list);
	if (frame < 0)
		gcma_count(g, admit ? GCMA_refused_busy : GCMA_refused_admission, 1);
	return frame;
}

static noinline long gcma_take(struct gcma *g, enum gcma_list list, bool admit)
{
	return __gcma_take(g, list, admit);
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
 * to note the latest count in a place that pages share: whose was noted by mistake is
 * not kept. All pages of a folio are noted, for reclaim may split it (demotion).
 *
 * If a third one holds the folio at that time, or its lock, or reclaim puts it back,
 * then it stays what it is, as it does without tenants. It need not live on in a frame
 * as well: who was passed by last is remembered until it is evicted. Who fills a folio
 * from a tenant is no such third one by its lock, see gcma_load_commit(), nor by its
 * references: see invalidate_bdev().
 */
/* Starts at 1: 0 stands for "keep no copy". */
atomic_long_t gcma_pass_count = ATOMIC_LONG_INIT(1);

static struct gcma_passed {
	atomic_long_t at;	/* the count then */
	unsigned long last;	/* page frame, may be another's by now; 0: none */
} gcma_passed_table[GCMA_PASSED];

/* Where there is a last one, about. */
DECLARE_BITMAP(gcma_passed_lately, GCMA_PASSED);

void __gcma_pass_by(const struct folio *folio)
{
	long now = atomic_long_inc_return(&gcma_pass_count);
	unsigned long pfn = page_to_pfn(&folio->page);
	/* More pages share the same places. */
	unsigned long end = pfn + min(folio_nr_pages(folio), GCMA_PASSED);

	for (; pfn < end; pfn++) {
		struct gcma_passed *p = &gcma_passed_table[pfn % GCMA_PASSED];
		long at = atomic_long_read(&p->at);

		WRITE_ONCE(p->last, pfn);
		set_bit(pfn % GCMA_PASSED, gcma_passed_lately);
		/* Another one, with a later count, may be here as well. */
		while (at - now < 0 &&
		       !atomic_long_try_cmpxchg(&p->at, &at, now))
			;
	}
}

/* Was the folio passed by last? It is forgotten. */
static __always_inline bool gcma_passed_last(const struct folio *folio)
{
	unsigned long pfn = page_to_pfn(&folio->page);
	struct gcma_passed *p = &gcma_passed_table[pfn % GCMA_PASSED];

	if (READ_ONCE(p->last) != pfn || cmpxchg(&p->last, pfn, 0) != pfn)
		return false;
	clear_bit(pfn % GCMA_PASSED, gcma_passed_lately);
	return true;
}

/* ------ the copies of a folio ----------------------------------------- */

/*
 * Each of them, which the caller owns, remembers the next one. Put them all, and count
 * @what became of them.
 */
void gcma_put_all(void *copies, enum vm_event_item what)
{
	while (copies) {
		u32 frame;
		struct gcma *g = gcma_rd_entry(copies, &frame);
		struct gcma_frame *f = &g->frames[frame];

		copies = f->shadow;
		gcma_put(g, frame, what);
	}
}

/* ------ store --------------------------------------------------------- */

/* The swap cache is nobody's. */
static bool gcma_is_swap(const struct address_space *mapping)
{
	return !mapping->host;
}

/*
 * A store is made twice, for pages of files and for those in swap: where it says @swap,
 * the compiler knows which.
 */

/* Why a page must not become a tenant; GCMA_stores if it may. */
static __always_inline enum vm_event_item
gcma_refusal(const struct address_space *mapping, struct folio *folio, pgoff_t index,
	     unsigned int nr, bool swap)
{
	if (!mapping_keeps_tenants(mapping))
		return GCMA_refused_fs;
	if ((nr > 1U << GCMA_MAX_ORDER && !swap) ||
	    mapping_min_folio_order(mapping) || index > U32_MAX)
		return GCMA_refused_large;
	if (swap && gcma_swap_cheap(folio))
		return GCMA_refused_cheap;
	/* Plaintext must not outlive the key in a frame. */
	if (!swap && IS_ENCRYPTED(mapping->host))
		return GCMA_refused_private;
	/* Metadata that is read block by block. */
	if (!folio_test_uptodate(folio))
		return GCMA_refused_partial;
	/* After a failed write a clean page need not be what is on disk; in swap it is dirty. */
	if (folio_contain_hwpoisoned_page(folio) || (!swap && READ_ONCE(mapping->wb_err)))
		return GCMA_refused_failed;
	return GCMA_stores;
}

/*
 * Own a frame that was taken from a list, for the copy of a page. Returns the entry that
 * will name it; the frame remembers the other @copies of the folio meanwhile.
 */
static __always_inline void *__gcma_own(struct gcma *g, u32 frame, enum gcma_list list,
					struct address_space *mapping, pgoff_t index,
					void *copies, bool swap)
{
	struct gcma_frame *f = &g->frames[frame];
	u32 word;

	WRITE_ONCE(f->mapping, mapping);
	WRITE_ONCE(f->index, index);
	WRITE_ONCE(f->shadow, copies);
	word = (atomic_read(&f->word) + BIT(GCMA_GEN_SHIFT)) | GCMA_OWNED;
	word &= ~(GCMA_LIST_MASK | GCMA_SWAP_BIT);
	word |= list << GCMA_LIST_SHIFT;
	word |= swap ? GCMA_SWAP_BIT : 0;
	atomic_set(&f->word, word);
	gcma_link(g, frame, list, true);
	return gcma_mk_entry(g, frame, word);
}

void *gcma_own(struct gcma *g, u32 frame, enum gcma_list list,
	       struct address_space *mapping, pgoff_t index, void *copies)
{
	return __gcma_own(g, frame, list, mapping, index, copies, gcma_is_swap(mapping));
}

/* The tenant is there to stay: whoever finds it may claim it. */
void gcma_disown(struct gcma *g, u32 frame)
{
	atomic_fetch_andnot_release(GCMA_OWNER, &g->frames[frame].word);
}

/* Does the frame hold what @entry names, whoever owns it? */
bool gcma_is_of(const struct gcma *g, u32 frame, void *entry)
{
	u32 word = atomic_read_acquire(&g->frames[frame].word);

	return gcma_holds(g, frame, word & ~GCMA_OWNER, entry);
}

/* The same, and is it that page's? What an entry has room for may have wrapped. */
bool gcma_names(const struct gcma *g, u32 frame, void *entry,
		const struct address_space *mapping, pgoff_t index)
{
	const struct gcma_frame *f = &g->frames[frame];

	return gcma_is_of(g, frame, entry) && READ_ONCE(f->mapping) == mapping &&
	       READ_ONCE(f->index) == index;
}

/* Copy a page into a frame of its own, if there is one: see gcma_own(). */
static __always_inline void *
gcma_copy_page(struct gcma *g, enum gcma_list list, bool admit, struct address_space *mapping,
	       pgoff_t index, struct page *page, void *copies, bool swap)
{
	unsigned long flags;
	void *entry = copies;
	long frame;

	spin_lock_irqsave(&g->lock, flags);
	/* A call is a good part of what it takes, beside writing to swap it is nothing. */
	frame = swap ? gcma_take(g, list, admit) : __gcma_take(g, list, admit);
	if (frame >= 0)
		entry = __gcma_own(g, frame, list, mapping, index, copies, swap);
	spin_unlock_irqrestore(&g->lock, flags);
	if (frame < 0)
		return copies;
	if (!gcma_enter(g, frame)) {
		gcma_put(g, frame, GCMA_refused_busy);
		return copies;
	}
	gcma_copy_data(pfn_to_page(gcma_pfn(g, frame)), page);
	gcma_exit();
	if (trace_gcma_copy_enabled())
		trace_gcma_copy(mapping, index, gcma_pfn(g, frame));
	return entry;
}

/* What becomes of pages that reclaim offers. */
struct gcma_answer {
	struct gcma *g;		/* NULL: they are refused, and counted */
	enum gcma_list list;
	bool admit;		/* may they take frames of tenants? */
};

/* Of @nr pages of a folio that share area and sample: see gcma_hash(). */
static __always_inline struct gcma_answer
gcma_answer(struct address_space *mapping, struct folio *folio, pgoff_t index,
	    unsigned int nr, bool swap)
{
	u32 hash = gcma_hash(mapping, index);
	struct gcma *g = gcma_pick(hash);
	bool hot = folio_test_workingset(folio), admit;
	enum vm_event_item refusal;
	enum gcma_admission rule;
	enum gcma_list list;

	if (!hot && gcma_is_closed(g, hash) && mapping_tenants(mapping)) {
		gcma_count(g, GCMA_refused_admission, nr);
		return (struct gcma_answer){ };
	}
	list = hot ? gcma_hot(g, hash) : gcma_cold(g, hash);
	rule = gcma_rule(g, list);
	admit = gcma_admit(g, rule, nr);
	if (swap && (list == GCMA_FOLLOW || gcma_is_hot(list)) && gcma_swap_fast(folio))
		list = GCMA_FAST;
	/* Nobody waits for a lock just to be refused. */
	if (!admit && (list == GCMA_FOLLOW || list == GCMA_FAST) && mapping_tenants(mapping) &&
	    !gcma_room(g, rule))
		refusal = GCMA_refused_admission;
	else
		refusal = gcma_refusal(mapping, folio, index, nr, swap);
	if (refusal == GCMA_stores)
		return (struct gcma_answer){ g, list, admit };
	gcma_count(g, refusal, nr);
	return (struct gcma_answer){ };
}

/* The usual one. Those that are refused do without what it has to keep. */
static noinline void *gcma_copy_file_page(struct gcma *g, enum gcma_list list, bool admit,
					  struct folio *folio)
{
	return gcma_copy_page(g, list, admit, folio->mapping, folio->index, &folio->page,
			      NULL, false);
}

static __always_inline void *
gcma_copy_pages(struct address_space *mapping, struct folio *folio, pgoff_t index,
		unsigned int first, unsigned int nr, void *copies, bool swap)
{
	struct gcma_answer answer = gcma_answer(mapping, folio, index, nr, swap);
	unsigned int i;

	if (!answer.g)
		return copies;
	/* Without what a loop would have to keep */
	if (nr == 1)
		return swap ? gcma_copy_page(answer.g, answer.list, answer.admit, mapping, index,
					     &folio->page, copies, true) :
			      gcma_copy_file_page(answer.g, answer.list, answer.admit, folio);
	for (i = 0; i < nr; i++)
		copies = gcma_copy_page(answer.g, answer.list, answer.admit, mapping, index + i,
					folio_page(folio, first + i), copies, swap);
	return copies;
}

/* More than one page of a file. */
static noinline void *gcma_copy_large(struct address_space *mapping, struct folio *folio)
{
	return gcma_copy_pages(mapping, folio, folio->index, 0, folio_nr_pages(folio), NULL,
			       false);
}

/* Only swapped-out folios may be larger than what shares area and sample. */
static noinline void *gcma_copy_swapped(struct address_space *mapping, struct folio *folio,
					unsigned int nr)
{
	unsigned int step = min(nr, 1U << GCMA_MAX_ORDER), i;
	pgoff_t index = folio_index(folio);
	void *copies = NULL;

	for (i = 0; i < nr; i += step)
		copies = gcma_copy_pages(mapping, folio, index + i, i, step, copies, true);
	return copies;
}

void *__gcma_store_begin(struct address_space *mapping, struct folio *folio)
{
	unsigned int nr = folio_nr_pages(folio);

	/* Not worth a copy: the eviction is going to fail. */
	if (folio_test_dirty(folio) || folio_ref_count(folio) != 1 + nr)
		return NULL;
	if (gcma_is_swap(mapping))
		return gcma_copy_swapped(mapping, folio, nr);
	if (nr > 1)
		return gcma_copy_large(mapping, folio);
	return gcma_copy_pages(mapping, folio, folio->index, 0, 1, NULL, false);
}

/*
 * The copies were made before the folio was frozen and found clean. Whoever
 * changed it since then held a reference and marked it dirty before dropping
 * the reference, and nobody can have cleaned it since, for we hold its lock.
 *
 * Takes the first of @copies off. Returns what has to stand at its @index: its entry, or
 * @shadow if the frame was scrubbed since it was filled.
 */
static __always_inline void *gcma_publish(void **copies, pgoff_t *index, void *shadow)
{
	void *entry = *copies;
	u32 frame;
	struct gcma *g = gcma_rd_entry(entry, &frame);
	struct gcma_frame *f = &g->frames[frame];
	u32 word = atomic_read(&f->word) | GCMA_OWNED;
	struct address_space *mapping = f->mapping;

	*index = f->index;
	*copies = f->shadow;
	WRITE_ONCE(f->shadow, shadow);
	if (atomic_cmpxchg_release(&f->word, word, word & ~GCMA_OWNER) != word) {
		gcma_put(g, frame, GCMA_refused_busy);
		return shadow;
	}
	/* From here on the frame may be recycled. */
	trace_gcma_store(mapping, *index, gcma_pfn(g, frame));
	gcma_count(g, GCMA_stores, 1);
	if (word & GCMA_SWAP_BIT) {
		gcma_count(g, GCMA_stores_swap, 1);
		if (gcma_list_of(word) == GCMA_DIRTY)
			gcma_count(g, GCMA_stores_dirty, 1);
	}
	return entry;
}

/* Leave @entry in all slots of a folio. */
static __always_inline void gcma_remove(struct folio *folio, void *entry, bool swap)
{
	if (swap)
		__delete_from_swap_cache(folio, folio->swap, entry);
	else
		__filemap_remove_folio(folio, entry);
}

static noinline void gcma_commit_large(void *copies, struct address_space *mapping,
				       struct folio *folio, void *shadow)
{
	pgoff_t first = folio_index(folio), last = first + folio_nr_pages(folio) - 1, index;
	XA_STATE(xas, &mapping->i_pages, first);
	bool swap = gcma_is_swap(mapping);
	void *hole, *entry;

	/*
	 * Who looks without the lock sees the slots change one by one, and in the page cache
	 * no shadow must stand where a tenant will: who wants to remove it would find another
	 * entry under the lock and be content. So an entry stands there meanwhile that looks
	 * like a tenant's, of another generation. One stands for all pages first: orders
	 * below XA_CHUNK_SHIFT split in place.
	 */
	hole = swap ? shadow : xa_mk_value(xa_to_value(copies) ^ BIT(GCMA_FRAME_BITS));
	gcma_remove(folio, hole, swap);
	mapping_set_update(&xas, mapping);
	if (!swap)
		xas_split(&xas, hole, folio_order(folio));
	while (copies) {
		entry = gcma_publish(&copies, &index, shadow);
		xas_set(&xas, index);
		xas_store(&xas, entry);
	}
	if (swap)
		return;
	xas_set(&xas, first);
	xas_for_each(&xas, entry, last)
		if (entry == hole)
			xas_store(&xas, shadow);
}

bool __gcma_store_commit(void *copies, struct address_space *mapping,
			 struct folio *folio, void *shadow, unsigned long passes)
{
	long at = atomic_long_read(&gcma_passed_table[folio_pfn(folio) %
						      GCMA_PASSED].at);
	bool swap = gcma_is_swap(mapping);
	pgoff_t index;

	/* Passed by meanwhile, or last? Nothing invalidates what is in swap. */
	if (!shadow || (!swap &&
			((long)(at - passes) > 0 || gcma_passed_last(folio)))) {
		__gcma_store_end(copies, shadow);
		return false;
	}
	if (folio_test_large(folio))
		gcma_commit_large(copies, mapping, folio, shadow);
	else
		gcma_remove(folio, gcma_publish(&copies, &index, shadow), swap);
	return true;
}

/* @passed: they were good, but the content was to be invalidated. Or they are of no use. */
void __gcma_store_end(void *copies, bool passed)
{
	gcma_put_all(copies, passed ? GCMA_refused_passed : GCMA_refused_kept);
}

/* ------ load ---------------------------------------------------------- */

/*
 * Fill page @i of the folio from its tenant, if there is one: the frame remembers the
 * others that the folio was @filled from. Returns its entry. If it is the first page, its
 * shadow is all the same the caller's.
 */
static __always_inline void *gcma_fill_page(struct address_space *mapping,
					    struct folio *folio, pgoff_t index,
					    unsigned int i, void *filled,
					    void **shadow)
{
	void *entry = xa_load(&mapping->i_pages, index + i);
	struct gcma_frame *f;
	struct gcma *g;
	u32 frame;

	g = gcma_is_tenant(entry) ? gcma_claim(entry, &frame, mapping, index + i) : NULL;
	if (!g)
		return NULL;
	f = &g->frames[frame];
	if (!i)
		*shadow = f->shadow;
	/*
	 * A poisoned frame takes its data with it: read the disk. Of a large folio the others
	 * are dropped, and no misses.
	 */
	if (PageHWPoison(pfn_to_page(gcma_pfn(g, frame))) || !gcma_enter(g, frame)) {
		gcma_count(g, GCMA_misses, 1);
		gcma_put(g, frame, GCMA_revoked);
		return NULL;
	}
	gcma_copy_data(folio_page(folio, i), pfn_to_page(gcma_pfn(g, frame)));
	gcma_exit();
	if (trace_gcma_fill_enabled())
		trace_gcma_fill(mapping, index + i, gcma_pfn(g, frame));
	/* However far it was: it is what it was, as if it had been here. */
	if (!i && gcma_is_hot(gcma_list_of(atomic_read(&f->word))))
		folio_set_workingset(folio);
	WRITE_ONCE(f->shadow, filled);
	return entry;
}

/*
 * Fill a folio, which nobody else can find or write to, from the tenants of all its pages.
 * Returns the entry of the first, and each of their frames remembers the next one; NULL
 * if there was none for one of them: the others are dropped then. If the first had one, its
 * @shadow is set, with which the caller has to account the refault.
 */
void *gcma_fill(struct address_space *mapping, struct folio *folio, pgoff_t index,
		void **shadow)
{
	unsigned int i = folio_nr_pages(folio);
	void *entry, *filled = NULL;

	do {
		entry = gcma_fill_page(mapping, folio, index, --i, filled, shadow);
		if (!entry) {
			gcma_put_all(filled, GCMA_dropped);
			return NULL;
		}
		filled = entry;
	} while (i);
	flush_dcache_folio(folio);
	return filled;
}

/*
 * The shadow of the page that has the frame now, or NULL; whether that is one of a file, and how
 * often the frame was lent since @entry.
 */
static void *gcma_latest(void *entry, u32 *later, bool *file)
{
	u32 frame, word;
	struct gcma *g = gcma_rd_entry(entry, &frame);
	struct gcma_frame *f = &g->frames[frame];
	void *shadow;
	bool there;

	word = atomic_read_acquire(&f->word);
	shadow = READ_ONCE(f->shadow);
	smp_rmb(); /* the frame may change owners while we look */
	*later = ((word >> GCMA_GEN_SHIFT) - (xa_to_value(entry) >> GCMA_FRAME_BITS)) &
		 GCMA_GEN_MASK & (U32_MAX >> GCMA_GEN_SHIFT);
	*file = !(word & GCMA_SWAP_BIT);
	there = (word & GCMA_STATE_MASK) == GCMA_STORED;
	/*
	 * A store that came across a frame that a primary has made it a free one, and left it as
	 * it was. It is lent to others only after its bit, which is looked at now, was cleared.
	 * But what an owner gave back, or has just taken, remembers other copies.
	 */
	if ((word & GCMA_STATE_MASK) == GCMA_FREE && !*later)
		there = gcma_revoked(g, frame) && !gcma_is_tenant(shadow);
	return there && atomic_read(&f->word) == word ? shadow : NULL;
}

/*
 * What was recycled lost its shadow: that of the tenant that has the frame now, but older, is
 * about it. Lists are queues, and samples have as many of the frames as of the pages: where all
 * are admitted, so many are evicted before a frame is recycled as there are frames, in all areas.
 * It is a guess: too old where stores failed or hot pages leave the others few frames, too young
 * where few are admitted. Generations are those of files or of other pages.
 */
void *__gcma_shadow(void *entry, bool file)
{
	bool latest;
	u32 later;
	void *shadow = gcma_latest(entry, &later, &latest);

	if (!shadow || !later)
		return shadow;
	if (later >= GCMA_LONG || (lru_gen_enabled() && latest != file))
		return NULL;
	return workingset_older(shadow, file,
				(unsigned long)later * READ_ONCE(gcma_nr_frames));
}

bool __gcma_alive(void *entry)
{
	u32 frame;
	struct gcma *g = gcma_rd_entry(entry, &frame);

	return gcma_holds(g, frame, atomic_read(&g->frames[frame].word), entry) &&
	       !gcma_revoked(g, frame);
}

/* What stands at @index was a tenant, and is read from the disk now. */
void gcma_miss(void *entry, const struct address_space *mapping, pgoff_t index)
{
	u32 frame;
	struct gcma *g = gcma_rd_entry(entry, &frame);

	gcma_count(g, GCMA_misses, 1);
	gcma_note_loss(g, gcma_hash(mapping, index));
}

/*
 * Is no shadow and no tenant about where a folio of @order will be? Nodes count what is no
 * pointer, which is a fifth of what it takes to look at each slot.
 */
static bool gcma_is_clear(struct xarray *pages, pgoff_t index, unsigned int order)
{
	XA_STATE(xas, pages, index);

	if (order > XA_CHUNK_SHIFT)
		return false;
	guard(rcu)();
	if (xas_load(&xas))
		return false;
	/* A snapshot: shadows and tenants come and go. */
	return !xas_is_node(&xas) || xas.xa_node->shift || !data_race(xas.xa_node->nr_values);
}

/*
 * Readahead is about to add a large folio: count what is lost of it page by page, as pages are
 * offered and loaded. Nothing if one is resident, for then smaller folios are added instead. Who
 * owns a tenant may be about to load it.
 */
static void gcma_miss_large(struct address_space *mapping, struct folio *folio, pgoff_t first)
{
	pgoff_t last = first + folio_nr_pages(folio) - 1;
	XA_STATE(xas, &mapping->i_pages, first);
	struct gcma *g;
	void *entry;
	u32 frame;

	/* A stream: empty slots are looked at one by one, too. */
	if (gcma_is_clear(&mapping->i_pages, first, folio_order(folio)))
		return;
	guard(rcu)();
	xas_for_each(&xas, entry, last)
		if (!xas_retry(&xas, entry) && !xa_is_value(entry))
			return;
	xas_set(&xas, first);
	xas_for_each(&xas, entry, last) {
		if (xas_retry(&xas, entry) || !gcma_is_tenant(entry))
			continue;
		g = gcma_rd_entry(entry, &frame);
		if (!gcma_is_of(g, frame, entry) || gcma_revoked(g, frame))
			gcma_miss(entry, mapping, xas.xa_index);
	}
}

void *__gcma_load_begin(struct address_space *mapping, struct folio *folio,
			pgoff_t index, gfp_t gfp, const void *hint)
{
	/* What failed to be written may have become a tenant before that was noted. */
	bool over = hint == GCMA_OVER || READ_ONCE(mapping->wb_err);
	bool absent = hint == GCMA_ABSENT, file;
	unsigned long nr = folio_nr_pages(folio), i = index;
	void *entry, *own, *filled = NULL, *shadow = NULL;
	u32 later;

	if (!mapping_tenants(mapping))
		return NULL;
	gcma_passed_last(folio); /* that was another one, if any */
	if (nr > 1 && (absent || over))
		gcma_miss_large(mapping, folio, index);
	if (absent)
		return NULL;
	if (!over && !(gfp & __GFP_WRITE) && !folio->private &&
	    nr <= 1UL << GCMA_MAX_ORDER)
		filled = gcma_fill(mapping, folio, index, &shadow);
	if (filled) {
		/* Now, while the folio is locked and nobody else's. */
		workingset_refault(folio, shadow);
		folio->private = filled;
		return filled;
	}
	/* Those in its way would go anyway, but with interrupts off, and their shadows. */
	if (over || nr > 1)
		xa_for_each_range(&mapping->i_pages, i, entry, index, index + nr - 1) {
			if (!gcma_is_tenant(entry))
				continue;
			own = gcma_latest(entry, &later, &file);
			shadow = own && !later ? own : shadow;
			__gcma_drop(entry);
		}
	return shadow;
}

/*
 * Does what the folio was @filled from still stand in all its slots? Frames that are
 * owned keep their keys and generations, so what an entry names is what it named.
 */
bool __gcma_load_commit(void *filled, const struct folio *folio)
{
	pgoff_t index = folio->index;

	while (filled) {
		u32 frame;
		struct gcma *g = gcma_rd_entry(filled, &frame);

		if (xa_load(&folio->mapping->i_pages, index++) != filled)
			return false;
		filled = g->frames[frame].shadow;
	}
	return true;
}

bool __gcma_load_end(void *filled, struct folio *folio, void **entry, int added,
		     gfp_t gfp)
{
	void *shadow = gcma_is_tenant(filled) ? NULL : filled;
	bool loaded;

	filled = shadow ? NULL : filled;
	loaded = filled && !added && *entry == folio;
	if (filled && !loaded) {
		folio->private = NULL;
		folio_clear_active(folio);
		folio_clear_workingset(folio);
	}
	gcma_put_all(filled, loaded ? GCMA_loads : GCMA_dropped);
	if (!loaded && !added && gcma_is_tenant(*entry)) {
		/* Of a large one they were counted before: see gcma_miss_large(). */
		if (!(gfp & __GFP_WRITE) && !shadow && !folio_test_large(folio))
			gcma_miss(*entry, folio->mapping, folio->index);
		*entry = shadow ?: __gcma_shadow(*entry, !gcma_is_swap(folio->mapping));
	}
	return loaded;
}

/* How many tenants follow each other at @index, of @max? */
static unsigned long gcma_run(struct xarray *pages, pgoff_t index, pgoff_t last,
			      unsigned long max)
{
	unsigned long run = 0;

	while (run < max && index + run <= last && gcma_alive(xa_load(pages, index + run)))
		run++;
	return run;
}

/* Does a request that would contain the @run of tenants at @index end there anyway? */
static bool gcma_run_is_last(struct xarray *pages, pgoff_t index, unsigned long run,
			     pgoff_t last)
{
	void *entry;

	if (index + run > last)
		return true;
	entry = xa_load(pages, index + run);
	return entry && !xa_is_value(entry);
}

enum gcma_ahead __gcma_ahead(const struct readahead_control *ractl, pgoff_t index,
			     pgoff_t last, unsigned int *order)
{
	struct xarray *pages = &ractl->mapping->i_pages;
	unsigned long size = 1UL << *order, max = min(size, 1UL << GCMA_MAX_ORDER);
	pgoff_t i = index, seen = index, end = index + size - 1;
	enum gcma_ahead ahead = GCMA_AHEAD_READ;
	void *entry;

	if (gcma_is_clear(pages, index, *order))
		return ahead;
	xa_for_each_range(pages, i, entry, index, end) {
		bool begins = i == index && !ractl->_nr_pages;
		unsigned long run;

		if (i < seen || !gcma_alive(entry))
			continue;
		run = gcma_run(pages, i, last, begins ? max : max(max, GCMA_RUN));
		if (begins || run >= GCMA_RUN || gcma_run_is_last(pages, i, run, last)) {
			if (i == index)
				ahead = GCMA_AHEAD_LOAD;
			*order = min_t(unsigned int, *order, ilog2(i - index ?: run ?: 1));
			break;
		}
		ahead = GCMA_AHEAD_OVER;
		seen = i + run;
	}
	return ahead;
}

/* Does a reader go on here? Then the pages before are all resident. */
static bool gcma_walked(struct xarray *pages, pgoff_t index)
{
	pgoff_t first = index - min(index, GCMA_RUN);
	void *entry;

	while (index > first) {
		entry = xa_load(pages, --index);
		if (!entry || xa_is_value(entry))
			return false;
	}
	return true;
}

/* Begin a walk. Amid the shadow of a large folio xas_load() would begin it at the first page. */
static void gcma_walk_from(struct xa_state *xas)
{
	xas_load(xas);
	if (xas_is_node(xas) && !xas->xa_node->shift)
		xas->xa_offset = xas->xa_index & XA_CHUNK_MASK;
}

void __gcma_narrow(struct address_space *mapping, pgoff_t index,
		   struct file_ra_state *ra)
{
	/* Whoever else reads by the same struct file changes them, too. */
	pgoff_t start = READ_ONCE(ra->start), size = READ_ONCE(ra->size);
	unsigned long run = 0, enough = gcma_walked(&mapping->i_pages, index) ? GCMA_RUN : 1;
	XA_STATE(before, &mapping->i_pages, index);
	XA_STATE(behind, &mapping->i_pages, index);
	pgoff_t first = index, next = index;

	if (index - start >= size)
		return;
	/* A walk, not a look each: what is no tenant is often all there is. */
	scoped_guard(rcu) {
		gcma_walk_from(&before);
		gcma_walk_from(&behind);
		while (first > start && !gcma_alive(xas_prev(&before)))
			first--;
		while (run < enough && ++next < start + size)
			run = gcma_alive(xas_next(&behind)) ? run + 1 : 0;
	}
	ra->start = first;
	ra->size = (run < enough ? next : next - enough + 1) - first;
	/* Who goes on to tenants needs nothing read behind them. */
	if (run == enough)
		ra->async_size = 0;
}

/* ------ drop ---------------------------------------------------------- */

/* If the generation wrapped this may be another's tenant: lost, not wrong. */
void __gcma_drop(void *entry)
{
	u32 frame;
	struct gcma *g = gcma_claim(entry, &frame, NULL, 0);

	if (g)
		gcma_put(g, frame, GCMA_dropped);
}

/* Leave the shadow of the tenant of a slot, if there is one; false if it is still there. */
bool gcma_give_up(struct address_space *mapping, pgoff_t index)
{
	void *entry = xa_load(&mapping->i_pages, index);
	struct gcma *g;
	u32 frame;

	if (!gcma_alive(entry))
		return true;
	g = gcma_rd_entry(entry, &frame);
	if (gcma_is_dirty(g, frame))
		return false;
	xa_lock_irq(&mapping->i_pages);
	g = gcma_claim(entry, &frame, mapping, index);
	if (g && gcma_is_dirty(g, frame) && xa_load(&mapping->i_pages, index) == entry) {
		/* Stored since we looked, and the generation has wrapped. */
		gcma_disown(g, frame);
		xa_unlock_irq(&mapping->i_pages);
		return false;
	}
	/* What is dirty and in no slot was left to whoever comes. */
	if (g && xa_load(&mapping->i_pages, index) == entry)
		__xa_store(&mapping->i_pages, index, g->frames[frame].shadow, 0);
	xa_unlock_irq(&mapping->i_pages);
	if (g)
		gcma_put(g, frame, GCMA_dropped);
	return g || !gcma_alive(entry);
}

void *__gcma_drop_later(struct address_space *mapping, pgoff_t index, void *entry,
			void *others)
{
	u32 frame;
	struct gcma *g = gcma_claim(entry, &frame, mapping, index);

	if (!g)
		return others;
	WRITE_ONCE(g->frames[frame].shadow, others);
	return entry;
}

void __gcma_drop_all(void *dropped)
{
	gcma_put_all(dropped, GCMA_dropped);
}

/**
 * gcma_drop_node() - the shadow shrinker is about to delete a whole node
 * @node: full of value entries. Context: i_pages lock held.
 */
void gcma_drop_node(struct xa_node *node)
{
	void __rcu **slot = node->slots, **end = slot + XA_CHUNK_SIZE;
	unsigned int left = node->count;

	/* Of a file that is read at random most slots are empty. */
	for (; slot < end; slot++) {
		void *entry = rcu_dereference_protected(*slot, true);

		if (!entry)
			continue;
		gcma_drop(entry);
		if (!--left)
			break;
	}
}

/* ------ nodes of shadows ----------------------------------------------- */

#ifdef CONFIG_MEMCG
/*
 * How many pages of @memcg, which has @nodes, need shadow nodes without being resident?
 *
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
unsigned long gcma_node_pages(struct mem_cgroup *memcg, unsigned long nodes)
{
	unsigned long all = global_node_page_state_pages(WORKINGSET_NODES);
	unsigned long tenants = 0, pages, limit;
	struct gcma *g;

	/* A snapshot of a number that changes. */
	for (g = gcma_areas; g < gcma_areas + data_race(gcma_nr_areas); g++)
		/* So are these. */
		tenants += data_race(g->len[GCMA_ALWAYS] + g->len[GCMA_SELDOM] +
				     g->len[GCMA_FOLLOW] + g->len[GCMA_HOT] +
				     g->len[GCMA_HOT_SAMPLE] + g->len[GCMA_FAST] +
				     g->len[GCMA_DIRTY]);
	tenants = min(tenants, totalram_pages() / GCMA_NODE_SHARE);
	pages = div64_ul((u64)tenants * nodes, max3(all, nodes, 1UL));
	for (; memcg; memcg = parent_mem_cgroup(memcg)) {
		limit = min(READ_ONCE(memcg->memory.max),
			    READ_ONCE(memcg->memory.high));
		pages = min(pages, limit -
			    min(limit, page_counter_read(&memcg->memory)));
	}
	return pages;
}
#endif

/* ------ the policy ---------------------------------------------------- */

/*
 * Discard the tenants of frames that a primary is done with. Their bits are still set,
 * so they cannot be lent. If a frame has an owner, he finds it LOST and puts it.
 */
static void gcma_scrub(struct cma_reserve *r, unsigned long frame,
		       unsigned long count)
{
	struct gcma *g = r->tenants;

	scoped_guard(spinlock_irqsave, &g->lock)
		for (; count--; frame++) {
			struct gcma_frame *f = &g->frames[frame];
			u32 word;

			/* The primary did not get it: see gcma_revoke(). */
			if (gcma_is_dirty(g, frame))
				continue;
			word = atomic_fetch_andnot(GCMA_INTACT, &f->word);
			/* Who does not own it reads it only, without the lock. */
			if (!(word & GCMA_OWNER))
				atomic_add(GCMA_LONG << GCMA_GEN_SHIFT, &f->word);
			if ((word & GCMA_STATE_MASK) == GCMA_STORED) {
				gcma_unlink(g, frame, gcma_list_of(word));
				gcma_note_revoked(g, gcma_list_of(word));
				gcma_count(g, GCMA_revoked, 1);
			}
		}
}

/*
 * Lend scrubbed frames again, after all others. Only now that their bits are clear, or
 * gcma_take_from() would drop them from the list for good.
 */
static void gcma_lend(struct cma_reserve *r, unsigned long frame,
		      unsigned long count)
{
	struct gcma *g = r->tenants;

	scoped_guard(spinlock_irqsave, &g->lock) {
		gcma_dirty_room(g);
		for (; count--; frame++)
			if (gcma_frame_state(&g->frames[frame]) == GCMA_FREE &&
			    g->frames[frame].next == GCMA_UNLINKED) {
				gcma_link(g, frame, GCMA_FREE_LIST, true);
				/* It may have been one of them before. */
				g->unfilled += g->unfilled < g->len[GCMA_FREE_LIST];
			}
	}
}

static int gcma_create(struct cma_reserve *r)
{
	struct gcma *g = &gcma_areas[gcma_nr_areas];
	u32 nr = r->cma->count, frame;

	if (r->cma->count > GCMA_FRAME_MASK - gcma_nr_frames)
		return -E2BIG; /* tenant entries have no room for it */
	g->cma = r->cma;
	g->base_pfn = r->cma->base_pfn;
	g->nr_frames = nr;
	g->first = gcma_nr_frames;
	spin_lock_init(&g->lock);
	g->counters = __alloc_percpu(GCMA_NR_COUNTERS * sizeof(long), sizeof(long));
	g->frames = vzalloc(array_size(nr + GCMA_NR_LISTS, sizeof(*g->frames)));
	if (!g->counters || !g->frames || gcma_dirty_create(g)) {
		vfree(g->frames);
		free_percpu(g->counters);
		return -ENOMEM;
	}
	for (frame = nr; frame < nr + GCMA_NR_LISTS; frame++)
		g->frames[frame] = (struct gcma_frame){ .prev = frame, .next = frame };
	/* Highest frames first, primaries take the lowest run: they meet last. */
	for (frame = nr; frame--;)
		gcma_link(g, frame, GCMA_FREE_LIST, true);
	g->unfilled = nr;
	g->unused = nr;
	r->tenants = g;
	gcma_nr_areas++;
	/* Complete before it is found: who has an entry of it asks nothing. */
	synchronize_rcu();
	/* pairs with gcma_pick() */
	smp_store_release(&gcma_nr_frames, gcma_nr_frames + nr);
	static_branch_inc(&gcma_key);
	return 0;
}

static char gcma_letter(const struct cma_reserve *r, unsigned long frame)
{
	const struct gcma *g = r->tenants;

	return ".Tcc"[gcma_frame_state(&g->frames[frame])]; /* enum gcma_state */
}

const struct cma_policy gcma_policy = {
	.name = "gcma",
	.create = gcma_create,
	.revoke = gcma_revoke,
	.scrub = gcma_scrub,
	.lend = gcma_lend,
	.letter = gcma_letter,
};

unsigned long gcma_counter(const struct gcma *g, enum vm_event_item item)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(g->counters, cpu)[item - GCMA_stores];
	return sum;
}

#ifdef CONFIG_GCMA_KUNIT_TEST
#include "gcma_kunit.c"
#endif
