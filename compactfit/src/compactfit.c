/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory is counted in words of 32 bits from the heap's start, which is page aligned; so every
 * reference is 32 bits wide and a heap has up to 8 GiB. A buffer holds:
 *
 * moving:     the heap, page headers | pages: objects of one size-class each, or handles
 * non-moving: the heap, page headers, slots | virtual pages: block tables | block-frames
 *
 * What the two share is nearly all: a page is a number of blocks of c->units words each, with two
 * bitmaps (which are free, which are pinned; two-dimensional with the header's row masks) and a
 * reference from each block back to its slot at the page's end. A block holds an object in the
 * moving engine; in the non-moving engine it holds the slots of the object's block-frames, a word
 * each: the paper's block table, spread over its virtual pages (Section 3.3). Moving a block's
 * words and pointing its slot at the new place is compaction in both.
 *
 * A slot is the paper's abstract address: a word that says where the object's block is, or, marked
 * CF_FREE, which slot is free next. Slots of a moving heap lie in pages of their own, taken when
 * needed. In a non-moving heap there is one for each block-frame, the free slots are the free
 * block-frames, and an object's slot is that of its first one.
 *
 * An object larger than a page has a block too, its spine: the numbers of pages that are its own,
 * and a handle of an object with the rest of its bytes, its tail. Its pages never move, spine and
 * tail do as any object does. In the non-moving engine its pages are block tables, and the spine
 * has one block-frame: its slot.
 *
 * How an object is reached: its handle names a slot, the slot says where its block is, and the
 * block's reference names the slot again. So a handle that somebody made up is found out: the two
 * do not agree. A fast free in a wide heap makes sure of the slot itself instead.
 *
 * An allocation takes a slot, and a block of the size-class's open page, the last one on its list
 * of pages that are not full. A free gives both back. If it made a full page not full, and the
 * size-class has as many of those as it may have, one object of the first page on the list moves
 * into the gap: cf_give_block_of_full(). Nothing else has to be done later, and nothing is ever
 * searched for.
 *
 * Nearly all calls are for moving heaps without lock hooks and remote frees, and find nothing
 * unusual. They have code of their own, the functions called fast, compiled once for each width of
 * references; it calls the general code as soon as anything is out of the ordinary, and always as
 * the last thing that it does. So it has few registers to save.
 */
#include "compactfit.h"

#define CF_FREE 0x80000000u /* in a slot: free; the rest is the next free slot */
#define CF_PIN_BITS 3
#define CF_WIDE_STAMP_ONE (1u << CF_PIN_BITS) /* in a wide heap */
/* Bits that no handle has there: a slot takes two words, a stamp is above the pins. */
#define CF_WIDE_NEVER ((uint64_t)(CF_WIDE_STAMP_ONE - 1) << 32 | 1)
#define CF_TAIL (CF_MAX_PINS + 1) /* as a number of pins: a tail, its spine's alone */
#define CF_LARGE (CF_MAX_PINS + 2) /* a spine; the number of pins is in there */
#define CF_WIDE_ABOVE (8u << 20) /* bytes of a heap above which 32 bits make too short a stamp */
#define CF_STEPS_LOG2 3 /* size-classes grow by 1/8, the paper's p (Section 2.3), or fill a page */
#define CF_FINE_LOG2 6 /* sizes are looked up in finer steps: a class fills its page */
#define CF_SINGLE_LOG2 7 /* and one unit long below 2^this units */
#define CF_SINGLE (1u << CF_SINGLE_LOG2)
#define CF_SKIPPED (CF_SINGLE - ((CF_SINGLE_LOG2 - CF_FINE_LOG2 + 1) << CF_FINE_LOG2))
#define CF_MAX_ROWS (8 * (uint32_t)sizeof(cf_rows))
#define CF_ROW(row) ((cf_rows)1 << (row))
#define CF_MIN_UNITS 4u /* moving: 16 bytes */
#define CF_MIN_PAGES 2u
#define CF_LEAST_SUITED 512u /* bytes of a page that the heap chooses itself, at least */
#define CF_PAPER_PAGES_FROM (1u << 20) /* bytes of a heap that chooses the paper's pages */
#define CF_LARGE_PAGES_FROM (6u << 20) /* bytes of a heap that chooses pages above the paper's */
#define CF_ASIDE 8u /* blocks of a page that are described outside of it, at most */
#define CF_ASIDE_FROM 2048u /* bytes of a page from which on; of smaller ones one, in the header */

#define CF_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define CF_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#ifndef CF_INLINE
#define CF_INLINE static inline __attribute__((always_inline))
#endif
#define CF_SELDOM static __attribute__((__noinline__)) /* plain noinline is a macro in Linux */
#ifndef CF_ATOMIC
#define CF_ATOMIC (__GCC_ATOMIC_INT_LOCK_FREE == 2) /* what remote frees need */
#endif

/* What ends the program, in cf_deref_checked(). It must not return. */
#ifndef CF_FAULT
#define CF_FAULT() __builtin_trap()
#endif

/*
 * What a program does without can be left out, by -DCF_WITH_...=0 for the library; a call of what
 * is left out does not link, and cf_init() refuses a configuration that asks for it.
 */
#ifndef CF_WITH_NONMOVING
#define CF_WITH_NONMOVING 1 /* the non-moving engine */
#endif
#ifndef CF_WITH_LARGE
#define CF_WITH_LARGE 1 /* objects larger than a page */
#endif
#ifndef CF_WITH_PINS
#define CF_WITH_PINS 1 /* cf_pin(), cf_unpin() */
#endif
#ifndef CF_WITH_REMOTE
#define CF_WITH_REMOTE CF_ATOMIC /* cf_free_remote(), cf_drain() */
#endif
#ifndef CF_WITH_CHECKS
#define CF_WITH_CHECKS 1 /* cf_verify(); no handle is checked less without */
#endif
#ifndef CF_WITH_FAST
#define CF_WITH_FAST 1 /* code of its own for usual calls: the ceilings are those of it */
#endif

/*
 * A bit for each row of a page's bitmap: as many as the machine handles at once. Numbers of
 * blocks in a page are small; on a small machine memory is, too.
 */
#if __SIZEOF_POINTER__ == 8
typedef uint64_t cf_rows;
typedef uint32_t cf_count;
#else
typedef uint32_t cf_rows;
typedef uint16_t cf_count;
#endif

/*
 * The lists of a size-class's pages. Pages that are full are on none, as nobody ever looks for one,
 * nor are those of slots; these are told by their mark from all others.
 */
enum cf_list {
	CF_NOT_FULL, /* an object of it can be moved */
	CF_STUCK, /* not full, all objects pinned */
	CF_NR_LISTS,
	CF_FULL = CF_NR_LISTS,
	CF_SLOTS,
};

/*
 * The words of a spine: the block of an object larger than a page, which says where its pieces are.
 */
enum cf_spine {
	CF_SPINE_SLOT, /* in the non-moving engine the first word of any block */
	CF_SPINE_PINS,
	CF_SPINE_PAGES, /* how many */
	CF_SPINE_TAIL, /* its handle: slot, stamp; all zero if there is none */
	CF_SPINE_TAIL_STAMP,
	CF_SPINE_FIRST, /* its pages; 0: taken away */
};

/*
 * An entry of the ring of remote frees: an object that the owner of the heap shall free. @slot
 * tells whether the entry is empty, so it is written last by who fills it, and cleared by the owner
 * once both words were read.
 */
struct cf_remote {
	uint32_t slot; /* 0: the entry is empty; written last */
	uint32_t stamp;
};

/*
 * The ring. Other cores write or read its counters: not beside each other, nor beside what the
 * owner needs in each operation.
 */
struct cf_ring {
	uint32_t apart[15];
	uint32_t begun; /* wrapping: entries that were given out, by anybody */
	uint32_t apart_too[15];
	uint32_t done; /* wrapping: those that were emptied, by the owner */
	struct cf_remote entries[];
};

/*
 * What is known of a page. The headers lie together before all pages, so that one is found by the
 * page's number, and pages stay aligned. A header is written when its page is used for the first
 * time.
 */
struct cf_page {
	uint32_t class; /* bytes from the heap to its size-class; valid even if not used */
	uint32_t where; /* its first word */
	uint32_t meta; /* where the bitmaps and then the references are */
	uint32_t page; /* its number */
	/*
	 * A page of one block is on no list while that is used. If the page is small, bitmaps and
	 * reference are these three words then: so cf_row_full() finds that no page was before it,
	 * as no object is pinned.
	 */
	uint32_t next; /* page numbers, 0: none */
	uint32_t prev;
	uint32_t single;
	cf_count pinned;
	cf_count list;
	cf_count used;
	cf_rows rows_used; /* rows with a used block; the words of the others are not initialised */
	cf_rows rows_free; /* rows of the bitmap with a free block */
	cf_rows rows_movable; /* rows with a used one that is not pinned */
};

/*
 * A size-class: its pages, and numbers that follow from its size of blocks. They are computed once,
 * so that no operation has to divide.
 */
struct cf_class {
	struct cf_page *open; /* the last not-full page, or no_page: objects are allocated there */
	uint32_t units; /* words of a block */
	uint32_t inverse; /* 2^16 / units, rounded up */
	cf_count half; /* of the blocks in a page */
	cf_count last_row; /* of the bitmap */
	cf_count single_row; /* the last one, if it has a single block */
	cf_count refs; /* words from the bitmaps to the references */
	uint32_t last_all; /* mask of the last row's blocks */
	cf_rows rows_all; /* mask of the rows */
	uint32_t first_all; /* mask of the first row's blocks */
	uint32_t objects;
	uint32_t max_not_full; /* the paper's K */
	uint32_t limit; /* not-full pages from which on a free compacts: K, none if deferred */
	uint32_t first[CF_NR_LISTS]; /* page numbers, 0: none */
	uint32_t last[CF_NR_LISTS];
	uint32_t nr[CF_NR_LISTS];
	uint32_t pinned;
	uint32_t moves; /* since cf_init(), wrapping */
	uint32_t per_page;
	uint32_t meta; /* words to the bitmaps of page 0, if there were one */
	uint32_t meta_step; /* and from those of one page to those of the next */
};

/* The heap, at the start of the buffer. What a usual malloc or free reads comes first. */
struct cf_heap {
	uint32_t nowhere; /* the slot of no object: cf_deref() of all zero reads it */
	uint32_t frames; /* non-moving: where that of slot 0 were; cf_deref_nonmoving() reads it */
	uint32_t free_slot; /* a list that ends in fresh_slot */
	uint32_t end_slot;
	uint32_t fresh_slot; /* it and those behind, up to end_slot, were never used; 0: none */
	uint32_t stamp; /* of the last object; wide: the first one of each slot */
	uint32_t stamp_one;
	uint32_t stamp_low; /* bits that are no stamp's */
	uint32_t pin_one;
	uint32_t pin_shift;
	uint32_t page_shift; /* of words of a page: of objects, or of a block table */
	uint32_t page_mask;
	uint32_t first_page;
	uint32_t begun_pages; /* the others were never used */
	uint32_t pages;
	uint32_t words; /* of the heap */
	/*
	 * The same and page_bytes, of moving heaps without lock hooks and remote frees; else 0. Of
	 * wide ones page_bytes alone.
	 */
	uint32_t fast_words;
	uint32_t fast_size;
	uint32_t wide_size;
	bool wide;
	bool nonmoving;
	bool deferred;
	uint32_t tag_at; /* wide: words from a slot to its tag */
	uint32_t slot_words; /* from one to the next */
	uint32_t slot_mask; /* bits of a reference that are the slot */
	uint32_t retired; /* wide: slots that have had all stamps */
	uint32_t page_bytes; /* the largest object that is not a large one */
	uint32_t page_bytes_shift;
	uint32_t max_size;
	uint32_t unit_shift; /* of bytes that a word of a block stands for */
	uint32_t free_page; /* 0: none */
	uint32_t large_pages;
	uint32_t free_pages; /* fresh ones counted */
	uint32_t tails;
	uint32_t handle_pages;
	uint32_t bare_pinned; /* pinned large objects without a tail */
	uint32_t remote_size; /* entries of the ring, a power of two; 0: none */
	uint32_t remote_failed;
	uint32_t nr_classes;
	uint32_t first_slot; /* non-moving: that of block-frame 0 */
	uint32_t free_frames; /* non-moving */
	struct cf_ring *ring;
	size_t headers; /* bytes from the heap to the header of page 0, if there were one */
	uint32_t aside_words; /* of each page: room for bitmaps and references of few blocks */
	uint32_t aside_step; /* words from those of one page to those of the next */
	struct cf_page no_page; /* looks as if its first row had yet to be begun */
	void (*lock)(void *arg);
	void (*unlock)(void *arg);
	void *lock_arg;
	uint32_t classes; /* bytes from the heap to them; they are as many as its pages need */
	uint16_t class_of[]; /* bytes from the heap to the class, by steps of sizes */
};

/* A live object that was found by its handle: all that the operation will need, looked up once. */
struct cf_object {
	struct cf_class *class;
	struct cf_page *header;
	uint32_t *meta;
	uint32_t index; /* of its block in the page */
	uint32_t where;
	uint32_t tag;
};

_Static_assert(sizeof(cf_rows) == 4 || sizeof(struct cf_page) == 64,
	       "the header of a page is found by a shift");
_Static_assert(CF_LARGE == (1 << CF_PIN_BITS) - 1, "a pin count fills its bits");

/* ------ words, pages, bits -------------------------------------------------------------------- */

/*
 * Slots and lists hold numbers of words and of pages, not pointers: these take half of the room on
 * a 64-bit machine, and one comparison tells whether a number that somebody made up is in the heap.
 */

CF_INLINE bool cf_is_nonmoving(const struct cf_heap *heap)
{
	return CF_WITH_NONMOVING && heap->nonmoving;
}

CF_INLINE uint32_t *cf_word(struct cf_heap *heap, uint32_t word)
{
	return (uint32_t *)heap + word;
}

/* The header of a page, one shift and one addition away from its number. */
CF_INLINE struct cf_page *cf_page(struct cf_heap *heap, uint32_t page)
{
	return (struct cf_page *)((char *)heap + (heap->headers + page * sizeof(struct cf_page)));
}

static struct cf_class *cf_classes(const struct cf_heap *heap)
{
	return (struct cf_class *)((uintptr_t)heap + heap->classes);
}

/* The lowest bit that is set. There has to be one: machines do not agree on what 0 gives. */
static uint32_t cf_lowest(uint32_t bits)
{
	return (uint32_t)__builtin_ctz(bits);
}

/* The same for rows. */
static uint32_t cf_lowest_row(cf_rows rows)
{
	return (uint32_t)(sizeof(rows) == 8 ? __builtin_ctzll(rows) :
					      __builtin_ctz((uint32_t)rows));
}

/* The binary logarithm, rounded down; not for 0 either. */
static uint32_t cf_log2(uint32_t bits)
{
	return 31u - (uint32_t)__builtin_clz(bits);
}

static uint32_t cf_min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* A heap without hooks is serialised by its user. */
static void cf_lock(struct cf_heap *heap)
{
	if (heap->lock)
		heap->lock(heap->lock_arg);
}

static void cf_unlock(struct cf_heap *heap)
{
	if (heap->unlock)
		heap->unlock(heap->lock_arg);
}

/*
 * The compiler shall not make a call of memcpy() or memset() of a loop: firmware may have none. So
 * each turn of the loop hands it a pointer that it knows nothing of, as an asm statement could
 * have changed it.
 */
#define CF_HIDE(pointer) __asm__("" : "+r"(pointer))

/*
 * A word of an object, whatever its user stored in it: the compiler must not take it for a number
 * of the heap's that cannot have changed.
 */
typedef uint32_t __attribute__((may_alias)) cf_any;

/* Four words, which machines copy by one instruction or two. */
typedef struct cf_four {
	uint32_t words[4];
} __attribute__((may_alias)) cf_four;

/*
 * Copy words that do not overlap. A round is 64 bytes, all of them loaded before the first is
 * stored; what is left over is the last 64, 32 or 16 bytes, some of them once more, so that there
 * is no loop whose rounds a processor had to guess. Who has a better copy defines it: CF_COPY(to,
 * from, words).
 */
#ifndef CF_COPY
CF_INLINE void cf_copy_16(cf_any *to, const cf_any *from)
{
	const cf_four *source = (const cf_four *)from;
	cf_four a = source[0], b = source[1], c = source[2], d = source[3], *target = (cf_four *)to;

	target[0] = a;
	target[1] = b;
	target[2] = c;
	target[3] = d;
}

static void cf_copy(cf_any *to, const cf_any *from, uint32_t words)
{
	const cf_any *from_end = from + words;
	cf_any *end = to + words;

	if (words >= 16) {
		for (; words > 16; words -= 16, to += 16, from += 16) {
			CF_HIDE(to);
			cf_copy_16(to, from);
		}
		cf_copy_16(end - 16, from_end - 16);
	} else if (words >= 8) {
		cf_four a = *(const cf_four *)from, b = *(const cf_four *)(from + 4);
		cf_four c = *(const cf_four *)(from_end - 8), d = *(const cf_four *)(from_end - 4);

		*(cf_four *)to = a;
		*(cf_four *)(to + 4) = b;
		*(cf_four *)(end - 8) = c;
		*(cf_four *)(end - 4) = d;
	} else if (words >= 4) {
		cf_four a = *(const cf_four *)from, b = *(const cf_four *)(from_end - 4);

		*(cf_four *)to = a;
		*(cf_four *)(end - 4) = b;
	} else {
		while (words--) {
			CF_HIDE(to);
			*to++ = *from++;
		}
	}
}

#define CF_COPY(to, from, words) cf_copy(to, from, words)
#endif

/* Zero words, for cf_calloc() and for a heap that is made. */
static void cf_clear(cf_any *to, uint32_t words)
{
	while (words--) {
		CF_HIDE(to);
		*to++ = 0;
	}
}

/* ------ free pages: LIFO, and the rest that was never used ------------------------------------ */

/*
 * A free page serves any size-class, slots, and objects larger than a page. Pages that were never
 * used are not on the list, as cf_init() would have to write them all.
 */

/* A page that nobody uses; NULL if there is none. Of one for the first time more has to be set. */
CF_INLINE struct cf_page *cf_take_page(struct cf_heap *heap)
{
	uint32_t page = heap->free_page;
	struct cf_page *header;

	if (page) {
		header = cf_page(heap, page);
		heap->free_page = header->next;
	} else {
		if (heap->begun_pages == heap->pages)
			return NULL;
		page = heap->first_page + heap->begun_pages++;
		header = cf_page(heap, page);
		header->page = page;
		header->where = page << heap->page_shift;
		header->pinned = 0;
	}
	heap->free_pages--;
	return header;
}

/* The page has no objects; perhaps it never had any. */
CF_INLINE void cf_blank_page(struct cf_page *header)
{
	header->used = 0;
	header->rows_used = 0;
	header->rows_movable = 0;
}

/*
 * A page that will have no objects, but slots, or a piece of a large one: with what cf_locate()
 * reads of any page, as a handle that somebody made up may lead here.
 */
CF_INLINE struct cf_page *cf_take_plain_page(struct cf_heap *heap, uint32_t list)
{
	struct cf_page *header = cf_take_page(heap);

	cf_blank_page(header);
	header->list = (cf_count)list;
	header->class = heap->classes;
	return header;
}

/* The page is free for anybody; its used count and its used rows are 0 already. */
static void cf_give_page(struct cf_heap *heap, struct cf_page *header)
{
	header->next = heap->free_page;
	heap->free_page = header->page;
	heap->free_pages++;
}

/* ------ slots --------------------------------------------------------------------------------- */

/*
 * Free slots are a list that ends in those that were never used, up to end_slot: so no page of
 * slots has to be written when it is taken, just its first word when that slot is used.
 */

/*
 * Moving: all slots are in use, and there is a free page. It becomes one of slots, for good, as
 * slots never move. A non-moving heap has as many slots as block-frames.
 */
CF_INLINE void cf_more_slots(struct cf_heap *heap)
{
	struct cf_page *header = cf_take_plain_page(heap, CF_SLOTS);

	heap->handle_pages++;
	heap->end_slot = header->where + heap->page_mask + 1;
	heap->fresh_slot = header->where;
	heap->free_slot = header->where;
}

/* Wide: the tag of the object that has the slot; of a free slot, that of the next one. */
CF_INLINE uint32_t *cf_tag(struct cf_heap *heap, uint32_t slot)
{
	return cf_word(heap, slot + heap->tag_at);
}

/*
 * A slot for a new object; there is one. The list and what was never used are told apart by one
 * comparison.
 */
CF_INLINE uint32_t cf_take_slot(struct cf_heap *heap, bool wide)
{
	uint32_t slot = heap->free_slot, next;

	if (slot != heap->fresh_slot) {
		next = *cf_word(heap, slot) & ~CF_FREE;
	} else {
		next = slot + (wide ? heap->slot_words : 1);
		if (CF_UNLIKELY(next == heap->end_slot))
			next = 0;
		heap->fresh_slot = next;
		if (wide)
			*cf_tag(heap, slot) = heap->stamp;
	}
	heap->free_slot = next;
	return slot;
}

/*
 * Wide: a slot that has had all stamps is never used again, as an old handle would be as good as a
 * new one. Once in 2^29 uses of a slot eight bytes are lost, or a block-frame.
 */
CF_SELDOM void cf_retire_slot(struct cf_heap *heap)
{
	heap->retired++;
	if (cf_is_nonmoving(heap))
		heap->free_frames--;
}

/*
 * The slot is free. It is marked so, in a bit that no block's place has: who comes with the old
 * handle finds no page there.
 */
CF_INLINE void cf_give_slot(struct cf_heap *heap, uint32_t slot, bool wide)
{
	uint32_t *tag = cf_tag(heap, slot), next;

	*cf_word(heap, slot) = CF_FREE | heap->free_slot;
	if (wide) {
		next = (*tag | (CF_WIDE_STAMP_ONE - 1)) + 1;
		*tag = next;
		if (CF_UNLIKELY(next == heap->stamp)) {
			cf_retire_slot(heap);
			return;
		}
	}
	heap->free_slot = slot;
}

/* Non-moving: the block-frame of a slot. There is one for each slot, so its place is computed. */
static uint32_t *cf_frame(struct cf_heap *heap, uint32_t slot)
{
	return cf_word(heap, heap->frames + (slot << (heap->unit_shift - 2)));
}

/*
 * Non-moving: fill words @from to @to of the block table at @where with block-frames, of which
 * there are enough. Those on the list come first, what is left over is of those that were never
 * used, which are numbers in a row.
 */
CF_SELDOM void cf_take_frames(struct cf_heap *heap, uint32_t where, uint32_t from, uint32_t to)
{
	uint32_t *entry = cf_word(heap, where + from);
	uint32_t never = heap->fresh_slot ? heap->end_slot - heap->fresh_slot : 0;
	uint32_t listed = cf_min(heap->free_frames - never, to - from);
	uint32_t slot = heap->free_slot;

	heap->free_frames -= to - from;
	to -= listed;
	for (; listed; listed--) {
		*entry++ = slot;
		slot = *cf_word(heap, slot) & ~CF_FREE;
	}
	if (from < to) {
		to += slot - from;
		if (heap->wide) {
			uint32_t *tag = cf_tag(heap, 0), stamp = heap->stamp;

			/* block-frames now, and slots later */
			for (; slot < to; slot++) {
				*entry++ = slot;
				tag[slot] = stamp;
			}
		} else {
			for (; slot < to; slot++)
				*entry++ = slot;
		}
		if (slot == heap->end_slot)
			slot = 0;
		heap->fresh_slot = slot;
	}
	heap->free_slot = slot;
}

/*
 * Non-moving: give the block-frames of words @from to @to back. The list is chained in one pass,
 * and its head written once.
 */
CF_SELDOM void cf_give_frames(struct cf_heap *heap, uint32_t where, uint32_t from, uint32_t to)
{
	const uint32_t *entry = cf_word(heap, where + from), *end = cf_word(heap, where + to);
	uint32_t free = heap->free_slot;

	heap->free_frames += to - from;
	for (; entry < end; entry++) {
		*cf_word(heap, *entry) = CF_FREE | free;
		free = *entry;
	}
	heap->free_slot = free;
}

/*
 * References lead from a block to its slot. Each object has a tag: a stamp and, in multiples of
 * pin_one below it, its pins. In 32 bits the tag is above the slot in the reference, so that few
 * bits are left for the stamp, and stamps are counted up by all objects of the heap: a stamp
 * tells a handle from those of objects that had the slot before, until stamps begin again. In a
 * wide heap the tag has a word beside the slot, and stamps are counted up by the objects of that
 * slot alone: none is used twice.
 */

/*
 * @wide is the heap's, or a constant: then the compiler leaves out what is not for it. So in the
 * functions below.
 */
CF_INLINE void cf_set_ref(struct cf_heap *heap, uint32_t *refs, uint32_t index, uint32_t slot,
			  uint32_t tag, bool wide)
{
	if (wide) {
		refs[index] = slot;
		*cf_tag(heap, slot) = tag;
	} else {
		refs[index] = slot | tag;
	}
}

/* The slot of the block; *tag is set to its object's tag. */
CF_INLINE uint32_t cf_get_ref(struct cf_heap *heap, const uint32_t *refs, uint32_t index,
			      uint32_t *tag)
{
	if (heap->wide) {
		*tag = *cf_tag(heap, refs[index]);
		return refs[index];
	}
	*tag = refs[index] & -heap->pin_one;
	return refs[index] & (heap->pin_one - 1);
}

/*
 * Take the reference of a block along to another one. Returns the slot, which the caller has to
 * change.
 */
CF_INLINE uint32_t cf_move_ref(const struct cf_heap *heap, const uint32_t *from, uint32_t index,
			       uint32_t *to, uint32_t to_index)
{
	to[to_index] = from[index];
	return from[index] & heap->slot_mask;
}

/*
 * The number of pins in an object's tag; or CF_LARGE of a spine, which has its own count, or
 * CF_TAIL.
 */
static uint32_t cf_pins(const struct cf_heap *heap, uint32_t tag)
{
	return tag >> heap->pin_shift & CF_LARGE;
}

/* ------ lists of pages ------------------------------------------------------------------------ */

/*
 * A page that is not full is on one of two lists of its size-class: CF_NOT_FULL, from which
 * compaction takes objects and of which there are K at most, or CF_STUCK, if all of its objects are
 * pinned, so that it cannot help. The last page of CF_NOT_FULL is the open one, a pointer of its
 * own, as each malloc begins there.
 */

/* The last not-full page is another one, or there is none: malloc shall know. */
static void cf_reopen(struct cf_heap *heap, struct cf_class *class)
{
	uint32_t page = class->last[CF_NOT_FULL];

	class->open = page ? cf_page(heap, page) : &heap->no_page;
}

/*
 * Take a page off the list that it is on. The list is an argument, as cf_move() knows it without
 * looking.
 */
CF_INLINE void cf_unlink_from(struct cf_heap *heap, struct cf_class *class,
			      struct cf_page *header, uint32_t list)
{
	if (header->prev)
		cf_page(heap, header->prev)->next = header->next;
	else
		class->first[list] = header->next;
	if (header->next) {
		cf_page(heap, header->next)->prev = header->prev;
	} else {
		class->last[list] = header->prev;
		cf_reopen(heap, class);
	}
	class->nr[list]--;
}

/* The same for a page that may be full, and on no list. */
static void cf_unlink(struct cf_heap *heap, struct cf_class *class, struct cf_page *header)
{
	if (header->list != CF_FULL)
		cf_unlink_from(heap, class, header, header->list);
}

/*
 * A page becomes the last of the not-full ones, the open one: cf_link() for a page of which it is
 * known.
 */
CF_INLINE void cf_append(struct cf_heap *heap, struct cf_class *class, struct cf_page *header)
{
	uint32_t before = class->last[CF_NOT_FULL], page = header->page;

	header->list = CF_NOT_FULL;
	header->next = 0;
	header->prev = before;
	if (before)
		cf_page(heap, before)->next = page;
	else
		class->first[CF_NOT_FULL] = page;
	class->last[CF_NOT_FULL] = page;
	class->nr[CF_NOT_FULL]++;
	class->open = header;
}

/* The same while there is no other. */
CF_INLINE void cf_append_first(struct cf_class *class, struct cf_page *header)
{
	header->list = CF_NOT_FULL;
	header->next = 0;
	header->prev = 0;
	class->first[CF_NOT_FULL] = header->page;
	class->last[CF_NOT_FULL] = header->page;
	class->nr[CF_NOT_FULL] = 1;
	class->open = header;
}

/*
 * Put a page on a list. Objects are allocated from the last page and moved away from the first. As
 * in the paper (Section 3.4), a page more than half full comes last, one at most half full to the
 * front, but behind the first. So the first page alone may have blocks that were free from the
 * start: of all others each free block is one that was freed and not allocated again since, so
 * there are at most as many pages, and one, as there were such frees. That is what Proposition 1
 * needs; with the paper's own order it does not hold.
 */
static void cf_link(struct cf_heap *heap, struct cf_class *class, struct cf_page *header,
		    uint32_t list)
{
	uint32_t before, after;

	header->list = (cf_count)list;
	before = header->used > class->half ? class->last[list] : class->first[list];
	after = before ? cf_page(heap, before)->next : 0;
	header->prev = before;
	header->next = after;
	if (before)
		cf_page(heap, before)->next = header->page;
	else
		class->first[list] = header->page;
	if (after) {
		cf_page(heap, after)->prev = header->page;
	} else {
		class->last[list] = header->page;
		cf_reopen(heap, class);
	}
	class->nr[list]++;
}

/*
 * A page that is not full, nor empty, changed: its first object that can be moved came, or the last
 * one went. To the list that it belongs to. Always CF_OK.
 */
CF_SELDOM int cf_relist(struct cf_heap *heap, struct cf_class *class, struct cf_page *header)
{
	uint32_t list = header->rows_movable ? CF_NOT_FULL : CF_STUCK;

	if (list != header->list) {
		cf_unlink(heap, class, header);
		cf_link(heap, class, header, list);
	}
	return CF_OK;
}

/*
 * A not-full page is only half full now: as cf_link() would put it, behind the first one. It is
 * neither that nor the next. Always CF_OK.
 */
CF_SELDOM int cf_to_front(struct cf_heap *heap, struct cf_class *class, struct cf_page *header)
{
	struct cf_page *first = cf_page(heap, class->first[CF_NOT_FULL]);
	struct cf_page *before = cf_page(heap, header->prev);
	uint32_t next = header->next;

	before->next = next;
	if (next) {
		cf_page(heap, next)->prev = before->page;
	} else {
		class->last[CF_NOT_FULL] = before->page;
		class->open = before;
	}
	cf_page(heap, first->next)->prev = header->page;
	header->next = first->next;
	header->prev = first->page;
	first->next = header->page;
	return CF_OK;
}

/* ------ blocks -------------------------------------------------------------------------------- */

/*
 * A page's bitmaps are rows of 32 blocks, and its header has words with a bit for each row: so two
 * instructions find a free block among 1,024, and as few an object that can be moved, however many
 * are pinned. Rows are written when their first block is taken (rows_used says which are), as a
 * page that is begun must not cost a walk.
 */

/* The blocks that a row has: 32, but in the last one. */
static uint32_t cf_row_all(const struct cf_class *class, uint32_t row)
{
	return row == class->last_row ? class->last_all : UINT32_MAX;
}

/* The row of pinned blocks that goes with a row of free ones. */
static uint32_t *cf_pinned_row(const struct cf_class *class, uint32_t *meta, uint32_t row)
{
	return &meta[class->last_row + 1 + row];
}

/* The first word of a block. */
CF_INLINE uint32_t cf_where(const struct cf_class *class, const struct cf_page *header,
			    uint32_t index)
{
	return header->where + index * class->units;
}

/* The block that begins there: divided by the units of a block. */
CF_INLINE uint32_t cf_index(const struct cf_class *class, const struct cf_page *header,
			    uint32_t where)
{
	return ((where - header->where) * class->inverse) >> 16;
}

/*
 * A row without an object that can be moved gets one: begin it, unless its objects are all pinned.
 */
CF_INLINE void cf_begin_row(struct cf_class *class, struct cf_page *header, uint32_t *meta,
			    uint32_t row)
{
	cf_rows bit = CF_ROW(row);

	header->rows_movable |= bit;
	if (header->rows_used & bit)
		return;
	header->rows_used |= bit;
	meta[row] = cf_row_all(class, row);
	*cf_pinned_row(class, meta, row) = 0;
}

/* Blocks of a row whose objects can be moved; bits above the row's last block are not 0. */
CF_INLINE uint32_t cf_movable(const struct cf_class *class, uint32_t *meta, uint32_t row)
{
	return ~(meta[row] | (CF_WITH_PINS ? *cf_pinned_row(class, meta, row) : 0));
}

/* An object of the row, of a page with pinned ones, was pinned or is gone: can others move? */
CF_INLINE void cf_mark_row(const struct cf_class *class, struct cf_page *header, uint32_t *meta,
			   uint32_t row)
{
	if (!(cf_movable(class, meta, row) & cf_row_all(class, row)))
		header->rows_movable &= ~CF_ROW(row);
}

/*
 * A row has no free block any more, so the page may be full: then it leaves the list. It is the
 * open one, the last not-full page, as nobody allocates elsewhere: so there is no next page to be
 * thought of. Always CF_OK, for a caller that is done.
 */
CF_SELDOM int cf_row_full(struct cf_heap *heap, struct cf_class *class, struct cf_page *header)
{
	header->rows_free &= header->rows_free - 1;
	if (!header->rows_free) {
		header->list = CF_FULL;
		class->last[CF_NOT_FULL] = header->prev;
		class->nr[CF_NOT_FULL]--;
		if (header->prev) {
			class->open = cf_page(heap, header->prev);
			class->open->next = 0;
		} else {
			class->first[CF_NOT_FULL] = 0;
			class->open = &heap->no_page;
		}
	}
	return CF_OK;
}

/*
 * A page that was free is one of @class. If it has few blocks, bitmaps and references are not in it
 * but in words of its own behind all headers: so that blocks of half a page, a quarter, an eighth
 * fill it.
 */
CF_INLINE void cf_begin_page(struct cf_heap *heap, struct cf_class *class, struct cf_page *header)
{
	header->class = (uint32_t)((char *)class - (char *)heap);
	cf_blank_page(header);
	header->rows_free = class->rows_all;
	header->meta = class->meta + header->page * class->meta_step;
}

/* There is no open page: the last one on CF_STUCK, of which there is one, gets an object. */
CF_SELDOM struct cf_page *cf_open_stuck(struct cf_heap *heap, struct cf_class *class)
{
	struct cf_page *header = cf_page(heap, class->last[CF_STUCK]);

	cf_unlink_from(heap, class, header, CF_STUCK);
	cf_append_first(class, header);
	return header;
}

/*
 * There is no open page: open one. A page on CF_STUCK comes first, as it costs no memory, and the
 * new object is one that can be moved. Else a free page. Returns NULL if there is no memory.
 */
CF_INLINE struct cf_page *cf_open_page(struct cf_heap *heap, struct cf_class *class)
{
	struct cf_page *header;

	if (CF_WITH_PINS && CF_UNLIKELY(class->last[CF_STUCK]))
		return cf_open_stuck(heap, class);
	header = cf_take_page(heap);
	if (!header)
		return NULL;
	cf_begin_page(heap, class, header);
	cf_append_first(class, header);
	return header;
}

/*
 * Take a block of the class's open page, for an object that has its slot already. Returns its
 * index.
 */
static uint32_t cf_take_block(struct cf_heap *heap, struct cf_class *class, struct cf_page *header)
{
	uint32_t *meta = cf_word(heap, header->meta);
	uint32_t row = cf_lowest_row(header->rows_free), index;

	if (!(header->rows_movable >> row & 1))
		cf_begin_row(class, header, meta, row);
	index = row * 32 + cf_lowest(meta[row]);
	meta[row] &= meta[row] - 1;
	header->used++;
	if (!meta[row])
		cf_row_full(heap, class, header);
	return index;
}

/*
 * Mark a block free. A row without a used block is as if it had never been begun. If objects of the
 * page are pinned, others of the row too perhaps, and the page belongs to another list: the caller
 * sees to that.
 */
CF_INLINE void cf_drop_block(struct cf_class *class, struct cf_page *header, uint32_t *meta,
			     uint32_t index)
{
	uint32_t row = index / 32;
	uint32_t blocks = meta[row] | 1u << index % 32;

	meta[row] = blocks;
	header->rows_free |= CF_ROW(row);
	if (CF_UNLIKELY(blocks == cf_row_all(class, row))) {
		header->rows_used &= ~CF_ROW(row);
		header->rows_movable &= ~CF_ROW(row);
	}
	header->used--;
}

/*
 * What is left to do after a block was marked free, in a page that has pinned objects, and others
 * or not. Always CF_OK.
 */
CF_SELDOM int cf_dropped_beside_pins(struct cf_heap *heap, struct cf_class *class,
				     struct cf_page *header, uint32_t row)
{
	cf_mark_row(class, header, cf_word(heap, header->meta), row);
	if (CF_UNLIKELY(!header->rows_movable))
		return cf_relist(heap, class, header);
	return CF_OK;
}

/* The last block of a page is not used any more: the page is free for anybody. Always CF_OK. */
CF_SELDOM int cf_empty(struct cf_heap *heap, struct cf_class *class, struct cf_page *header)
{
	header->used = 0;
	header->rows_used = 0;
	header->rows_movable = 0;
	cf_unlink(heap, class, header);
	cf_give_page(heap, header);
	return CF_OK;
}

/* Take the first page of a list off it: cf_unlink_from() for a page of which it is known. */
CF_INLINE void cf_unlink_first(struct cf_heap *heap, struct cf_class *class,
			       struct cf_page *header, uint32_t list)
{
	uint32_t next = header->next;

	class->nr[list]--;
	class->first[list] = next;
	if (next) {
		cf_page(heap, next)->prev = 0;
	} else {
		class->last[list] = 0;
		class->open = &heap->no_page;
	}
}

/*
 * Move the object in block @index of a page on @list, the first one if that is CF_NOT_FULL, to
 * block @to_index of page @to: the only thing that compaction does. The block's words, its
 * reference, and the slot that says where the block is: whoever has the handle notices nothing. The
 * block that it leaves is freed, and its page with it if it was the last one. Always CF_OK.
 */
CF_INLINE int cf_move(struct cf_heap *heap, struct cf_class *class, struct cf_page *from,
		      uint32_t list, uint32_t index, struct cf_page *to, uint32_t to_index)
{
	uint32_t *meta = cf_word(heap, from->meta);
	uint32_t where = cf_where(class, to, to_index);
	uint32_t slot = cf_move_ref(heap, meta + class->refs, index,
				    cf_word(heap, to->meta) + class->refs, to_index);

	*cf_word(heap, slot) = where;
	class->moves++;
	CF_COPY(cf_word(heap, where), cf_word(heap, cf_where(class, from, index)), class->units);
	if (from->used == 1) {
		from->used = 0;
		from->rows_used = 0;
		from->rows_movable = 0;
		if (list == CF_NOT_FULL)
			cf_unlink_first(heap, class, from, list);
		else
			cf_unlink_from(heap, class, from, list);
		cf_give_page(heap, from);
		return CF_OK;
	}
	cf_drop_block(class, from, meta, index);
	if (CF_WITH_PINS && CF_UNLIKELY(from->pinned))
		return cf_dropped_beside_pins(heap, class, from, index / 32);
	return CF_OK;
}

/*
 * Fill a block with an object of the first not-full page. Of the first, as new objects go into the
 * last: so pages at the front empty, and are free again. Always CF_OK.
 */
CF_SELDOM int cf_fill(struct cf_heap *heap, struct cf_class *class, struct cf_page *to,
		      uint32_t to_index)
{
	struct cf_page *from = cf_page(heap, class->first[CF_NOT_FULL]);
	uint32_t row = cf_lowest_row(from->rows_movable), index;

	/* Blocks that do not exist are above those that do, of which one can be moved. */
	index = row * 32 + cf_lowest(cf_movable(class, cf_word(heap, from->meta), row));
	return cf_move(heap, class, from, CF_NOT_FULL, index, to, to_index);
}

/*
 * A block of a full page is not used any more: the paper's compaction, Listing 1. The page becomes
 * a not-full one (Rule 1), or is filled again (Rule 2). Always CF_OK.
 */
CF_SELDOM int cf_give_block_of_full(struct cf_heap *heap, struct cf_class *class,
				    struct cf_page *header, uint32_t index)
{
	uint32_t row = index / 32;

	/* Rule 2: the page stays full, so none of its words changes but those of the block. */
	if (class->nr[CF_NOT_FULL] >= class->limit)
		return cf_fill(heap, class, header, index);
	if (CF_UNLIKELY(header->used == 1))
		return cf_empty(heap, class, header);
	/*
	 * Rule 1. All rows were full, so this one has a single free block, and the page a single
	 * such row.
	 */
	*cf_word(heap, header->meta + row) = 1u << index % 32;
	header->rows_free = CF_ROW(row);
	if (CF_UNLIKELY(row == class->single_row)) {
		header->rows_used ^= CF_ROW(row);
		header->rows_movable ^= CF_ROW(row);
	}
	header->used--;
	cf_append(heap, class, header);
	if (CF_WITH_PINS && CF_UNLIKELY(header->pinned))
		return cf_dropped_beside_pins(heap, class, header, row);
	return CF_OK;
}

/* A not-full page has lost an object: is it half full, and neither the first page nor the next? */
CF_INLINE bool cf_for_front(const struct cf_class *class, const struct cf_page *header)
{
	return header->used == class->half && header->prev &&
	       header->prev != class->first[CF_NOT_FULL];
}

/* cf_give_block() of a page that is not full, with pinned objects and others. Always CF_OK. */
CF_SELDOM int cf_give_block_beside_pins(struct cf_heap *heap, struct cf_class *class,
					struct cf_page *header, uint32_t index)
{
	uint32_t *meta = cf_word(heap, header->meta);

	cf_drop_block(class, header, meta, index);
	cf_mark_row(class, header, meta, index / 32);
	if (!header->rows_movable)
		return cf_relist(heap, class, header);
	if (cf_for_front(class, header))
		return cf_to_front(heap, class, header);
	return CF_OK;
}

/*
 * A block is not used any more: of a full page as above; of one that is not, it is just marked
 * free, and the page goes where it now belongs. Always CF_OK. Not inlined, so that who calls it
 * last needs few registers.
 */
CF_SELDOM int cf_give_block(struct cf_heap *heap, struct cf_class *class, struct cf_page *header,
			    uint32_t index)
{
	if (CF_UNLIKELY(header->list == CF_FULL))
		return cf_give_block_of_full(heap, class, header, index);
	if (CF_UNLIKELY(header->used == 1))
		return cf_empty(heap, class, header);
	if (CF_WITH_PINS && CF_UNLIKELY(header->pinned))
		return cf_give_block_beside_pins(heap, class, header, index);
	cf_drop_block(class, header, cf_word(heap, header->meta), index);
	if (CF_UNLIKELY(cf_for_front(class, header)))
		return cf_to_front(heap, class, header);
	return CF_OK;
}

/* ------ objects ------------------------------------------------------------------------------- */

/*
 * An object is a slot, a block and, in between, what binds them. Here are malloc and free but for
 * their locks: the fast ones, and the general ones.
 */

/* The step of sizes that cf_class_for() looks up for this many units, less one. */
CF_INLINE uint32_t cf_step(uint32_t less)
{
	uint32_t shift;

	if (CF_LIKELY(less < CF_SINGLE))
		return less;
	shift = cf_log2(less) - CF_FINE_LOG2;
	return CF_SKIPPED + (shift << CF_FINE_LOG2) + (less >> shift);
}

/*
 * The size-class for a size, NULL if it is 0 or too large. Looked up in a table, as size-classes
 * are as large as their pages allow and follow no formula: a step for each size that is small, 64
 * steps a power of two above. The last two arguments are the heap's; @max_size of 0 makes any size
 * too large, which is how heaps that are not fast are told apart.
 */
CF_INLINE struct cf_class *cf_class_for(struct cf_heap *heap, size_t size, uint32_t max_size,
					uint32_t unit_shift)
{
	if (CF_UNLIKELY(size - 1 >= max_size))
		return NULL;
	return (struct cf_class *)((char *)heap +
				   heap->class_of[cf_step((uint32_t)(size - 1) >> unit_shift)]);
}

/* The same in a heap of any kind; NULL for objects larger than a page too. */
static struct cf_class *cf_class_of_size(struct cf_heap *heap, size_t size)
{
	return cf_class_for(heap, size, heap->page_bytes, heap->unit_shift);
}

/*
 * The size-class for spines of @pages pages. In a non-moving heap a word of a block stands for a
 * block-frame, so the size that is asked for is that of as many block-frames.
 */
static struct cf_class *cf_class_of_spine(struct cf_heap *heap, uint32_t pages)
{
	return cf_class_of_size(heap, (size_t)(CF_SPINE_FIRST + pages) << heap->unit_shift);
}

/*
 * The object in block @index is that of @slot from now on, with a new stamp. All three know of each
 * other: the handle, the slot and the reference.
 */
CF_INLINE void cf_bind(struct cf_heap *heap, struct cf_class *class, struct cf_page *header,
		       uint32_t *meta, uint32_t index, uint32_t slot, bool wide, cf_handle *handle)
{
	uint32_t tag;

	handle->slot = slot;
	if (wide) {
		tag = *cf_tag(heap, slot);
		meta[class->refs + index] = slot;
	} else {
		tag = heap->stamp + heap->stamp_one;
		heap->stamp = tag;
		meta[class->refs + index] = slot | tag;
	}
	class->objects++;
	*cf_word(heap, slot) = cf_where(class, header, index);
	handle->stamp = tag;
}

/*
 * Take a block of the open page for an object, bind them, and mark the block used. Returns the
 * row's free blocks.
 */
CF_INLINE uint32_t cf_place(struct cf_heap *heap, struct cf_class *class, struct cf_page *header,
			    uint32_t row, uint32_t slot, bool wide, cf_handle *handle)
{
	uint32_t *meta = cf_word(heap, header->meta);
	uint32_t blocks = meta[row], index = row * 32 + cf_lowest(blocks);

	header->used++;
	cf_bind(heap, class, header, meta, index, slot, wide, handle);
	blocks &= blocks - 1;
	meta[row] = blocks;
	return blocks;
}

/* The same where it is not done often. What may be left to do is called last. */
CF_INLINE int cf_place_last(struct cf_heap *heap, struct cf_class *class, struct cf_page *header,
			    uint32_t row, uint32_t slot, cf_handle *handle)
{
	if (CF_UNLIKELY(!cf_place(heap, class, header, row, slot, heap->wide, handle)))
		return cf_row_full(heap, class, header);
	return CF_OK;
}

/* No memory. */
CF_SELDOM int cf_refuse(cf_handle *handle)
{
	*handle = (cf_handle){ 0, 0 };
	return CF_ENOMEM;
}

/*
 * The general malloc of a non-moving heap, with block-frames; a spine has one only, its slot. All
 * or nothing: slots are block-frames, so there is a slot if there is a block-frame.
 */
CF_SELDOM int cf_allocate_frames(struct cf_heap *heap, struct cf_class *class, bool spine,
				 cf_handle *handle)
{
	struct cf_page *header = class->open;
	uint32_t row, slot, where;

	if (heap->free_frames < (spine ? 1 : class->units))
		return cf_refuse(handle);
	if (header == &heap->no_page) {
		header = cf_open_page(heap, class);
		if (!header)
			return cf_refuse(handle);
	}
	/* From here on nothing can fail. The page is open, so it has a free row. */
	row = cf_lowest_row(header->rows_free);
	if (!(header->rows_movable >> row & 1))
		cf_begin_row(class, header, cf_word(heap, header->meta), row);
	slot = cf_take_slot(heap, heap->wide);
	heap->free_frames--;
	cf_place_last(heap, class, header, row, slot, handle);
	/* The slot's own block-frame is the object's first one. */
	where = *cf_word(heap, slot);
	*cf_word(heap, where) = slot;
	if (!spine)
		cf_take_frames(heap, where, 1, class->units);
	return CF_OK;
}

/*
 * There are slots, and a page to be opened that is not free, but stuck; or one that is open, of
 * which a row has to be begun.
 */
CF_SELDOM int cf_allocate_open(struct cf_heap *heap, struct cf_class *class, cf_handle *handle)
{
	struct cf_page *header = class->open;
	uint32_t row;

	if (CF_WITH_PINS && !header->page)
		header = cf_open_stuck(heap, class);
	row = cf_lowest_row(header->rows_free);
	if (!(header->rows_movable >> row & 1))
		cf_begin_row(class, header, cf_word(heap, header->meta), row);
	return cf_place_last(heap, class, header, row, cf_take_slot(heap, heap->wide), handle);
}

/*
 * There are slots, but no open page with a row that was begun. Nearly always a free page is opened:
 * then its row and its list are known, and nothing is read that was just written.
 */
CF_SELDOM int cf_allocate_begin(struct cf_heap *heap, struct cf_class *class, cf_handle *handle)
{
	struct cf_page *header;
	uint32_t *meta;

	if (class->open != &heap->no_page || (CF_WITH_PINS && class->last[CF_STUCK]))
		return cf_allocate_open(heap, class, handle);
	header = cf_take_page(heap);
	if (!header)
		return cf_refuse(handle);
	cf_begin_page(heap, class, header);
	header->used = 1;
	header->rows_used = 1;
	header->rows_movable = 1;
	meta = cf_word(heap, header->meta);
	meta[0] = class->first_all - 1;
	*cf_pinned_row(class, meta, 0) = 0;
	cf_bind(heap, class, header, meta, 0, cf_take_slot(heap, heap->wide), heap->wide, handle);
	if (class->per_page > 1) {
		cf_append_first(class, header);
	} else {
		header->rows_free = 0;
		header->list = CF_FULL;
	}
	return CF_OK;
}

/*
 * All slots are in use. A page of them is taken first, if there is one beside that which the object
 * may have to open: so that neither has to be given back.
 */
CF_SELDOM int cf_allocate_slots(struct cf_heap *heap, struct cf_class *class, cf_handle *handle)
{
	if (heap->free_pages < 2 && (!heap->free_pages || (class->open == &heap->no_page &&
							   !class->last[CF_STUCK])))
		return cf_refuse(handle);
	cf_more_slots(heap);
	return cf_allocate_begin(heap, class, handle);
}

/*
 * The malloc of a moving heap. Nearly always the open page has a row that was begun, and there is a
 * slot. Without an open page, no_page looks as if its row had yet to be begun; and of a row whose
 * objects are all pinned the header has to be told that it gets one that is not: so one test finds
 * all of them.
 */
CF_INLINE int cf_allocate_moving(struct cf_heap *heap, struct cf_class *class, bool wide,
				 cf_handle *handle)
{
	struct cf_page *header = class->open;
	uint32_t row = cf_lowest_row(header->rows_free), slot, blocks;

	if (CF_UNLIKELY(!heap->free_slot))
		return cf_allocate_slots(heap, class, handle);
	if (CF_UNLIKELY(!(header->rows_movable >> row & 1)))
		return cf_allocate_begin(heap, class, handle);
	slot = cf_take_slot(heap, wide);
	CF_HIDE(header); /* what was read of it is not kept: fewer registers to save */
	blocks = cf_place(heap, class, header, row, slot, wide, handle);
	/* Whether the row is full nobody can guess: no branch for that. The page seldom is. */
	header->rows_free ^= (cf_rows)(blocks ? 0u : 1u) << row;
	if (CF_UNLIKELY(!header->rows_free))
		return cf_row_full(heap, class, header);
	return CF_OK;
}

/* The general malloc of an object up to a page, once for all of its callers. */
CF_SELDOM int cf_allocate(struct cf_heap *heap, struct cf_class *class, cf_handle *handle)
{
	if (cf_is_nonmoving(heap))
		return cf_allocate_frames(heap, class, false, handle);
	return cf_allocate_moving(heap, class, heap->wide, handle);
}

/* The same for the block of a spine. */
static int cf_allocate_spine(struct cf_heap *heap, struct cf_class *class, cf_handle *handle)
{
	if (cf_is_nonmoving(heap))
		return cf_allocate_frames(heap, class, true, handle);
	return cf_allocate(heap, class, handle);
}

/*
 * Where is the object that the handle is said to be of? False if there is none. Nothing is
 * believed that a handle leads to: each number is compared with what there is before it is used,
 * and any word of the heap may stand where a slot should be; that this is one is all that was
 * seen to. A page without objects has no used rows.
 */
CF_INLINE bool cf_locate(struct cf_heap *heap, uint32_t slot, struct cf_object *object)
{
	struct cf_class *class;
	struct cf_page *header;
	uint32_t where, page, row;

	where = *cf_word(heap, slot);
	page = where >> heap->page_shift; /* of a free slot: none */
	if (CF_UNLIKELY(page - heap->first_page >= heap->begun_pages))
		return false;
	header = cf_page(heap, page);
	class = (struct cf_class *)((char *)heap + header->class);
	/* A place within a block gives that block's index, and its reference will not agree. */
	object->index = cf_index(class, header, where);
	object->header = header;
	object->class = class;
	object->where = where;
	row = object->index / 32;
	if (CF_UNLIKELY(object->index >= class->per_page || !(header->rows_used >> row & 1)))
		return false;
	object->meta = cf_word(heap, header->meta); /* not set before a page has objects */
	return CF_LIKELY(!(object->meta[row] >> object->index % 32 & 1));
}

/*
 * Find the object; false if the handle is stale. Any 64 bits may be asked about: a used block of a
 * page of objects, whose reference is the handle's slot and stamp, is the object of that handle, or
 * one with the same slot that was allocated 2^b allocations later, or a multiple (see
 * cf_check_handle()). These cannot be told apart, but neither harms the heap.
 */
static bool cf_find(struct cf_heap *heap, cf_handle handle, struct cf_object *object)
{
	uint32_t slot;

	if (handle.slot >= heap->words || !cf_locate(heap, handle.slot, object))
		return false;
	slot = cf_get_ref(heap, object->meta + object->class->refs, object->index, &object->tag);
	return slot == handle.slot && (object->tag & -heap->stamp_one) == handle.stamp;
}

/*
 * The same for a handle that somebody gave: that of a tail is nobody's, as its spine counts on it.
 */
static bool cf_find_own(struct cf_heap *heap, cf_handle handle, struct cf_object *object)
{
	return cf_find(heap, handle, object) &&
	       !(CF_WITH_LARGE && cf_pins(heap, object->tag) == CF_TAIL);
}

/*
 * Free the block and the slot of an object. The slot first: what gives the block back may move
 * another object and must be the last call. Non-moving: @frames block-frames, that of the slot too.
 */
CF_INLINE void cf_release(struct cf_heap *heap, const struct cf_object *object, uint32_t slot,
			  uint32_t frames)
{
	if (cf_is_nonmoving(heap)) {
		cf_give_frames(heap, object->where, 1, frames);
		heap->free_frames++;
	}
	cf_give_slot(heap, slot, heap->wide);
	object->class->objects--;
	cf_give_block(heap, object->class, object->header, object->index);
}

/* ------ objects larger than a page ------------------------------------------------------------ */

/*
 * Such an object is two blocks, spine and tail, and pages of its own. The blocks are allocated,
 * moved and freed as those of any object: so all that is new here is to know beforehand that
 * everything will be had, and to find the piece that is asked for.
 */

/* A spine, marked by a number of pins that no object has. */
CF_INLINE bool cf_is_large(const struct cf_heap *heap, const struct cf_object *object)
{
	/* Whoever asks has found the object. NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
	return CF_WITH_LARGE && cf_pins(heap, object->tag) == CF_LARGE;
}

/*
 * The words of a large object's block. In a non-moving heap too these are words of the block, not
 * of a block-frame.
 */
static uint32_t *cf_spine(struct cf_heap *heap, const struct cf_object *object)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): as above */
	return cf_word(heap, object->where);
}

/* The tail of a large object; false if it has none, as its size is one of whole pages. */
static bool cf_find_tail(struct cf_heap *heap, const uint32_t *spine, struct cf_object *tail)
{
	cf_handle handle = { spine[CF_SPINE_TAIL], spine[CF_SPINE_TAIL_STAMP] };

	return handle.slot && cf_find(heap, handle, tail);
}

/* The pages of its own that an object has: none up to the size of a page. */
static uint32_t cf_whole_pages(const struct cf_heap *heap, size_t size)
{
	if (!CF_WITH_LARGE || size <= heap->page_bytes)
		return 0;
	return (uint32_t)(size >> heap->page_bytes_shift);
}

/* The bytes of a large object that its tail holds. */
static uint32_t cf_rest(const struct cf_heap *heap, size_t size)
{
	return (uint32_t)size & (heap->page_bytes - 1);
}

/*
 * Pages that @blocks blocks more of a size-class take, two at most: each page that is not full has
 * room for one, and only if there is a single one has its room to be counted.
 */
static uint32_t cf_pages_for(struct cf_heap *heap, const struct cf_class *class, uint32_t blocks)
{
	uint32_t loose = class->nr[CF_NOT_FULL] + class->nr[CF_STUCK], page;

	if (loose >= blocks)
		return 0;
	if (loose) { /* the only one */
		page = class->first[class->nr[CF_NOT_FULL] ? CF_NOT_FULL : CF_STUCK];
		blocks -= cf_min(blocks, class->per_page - cf_page(heap, page)->used);
	}
	return (blocks + class->per_page - 1) / class->per_page;
}

/*
 * Pages that @slots slots more take: none, or one. The list is followed for as many slots, two at
 * most.
 */
static uint32_t cf_pages_for_slots(struct cf_heap *heap, uint32_t slots)
{
	uint32_t slot;

	for (slot = heap->free_slot; slots && slot && slot != heap->fresh_slot; slots--)
		slot = *cf_word(heap, slot) & ~CF_FREE;
	return slots && (!slot || heap->end_slot - slot < slots * heap->slot_words);
}

/*
 * Is there memory for a large object with @pages pages of its own? Asked before anything is taken,
 * as nothing would know how to give half of one back. @tail: NULL for none.
 */
static bool cf_have_room(struct cf_heap *heap, uint32_t pages, const struct cf_class *spine,
			 const struct cf_class *tail)
{
	/* no overflow: a spine has fewer than page_mask numbers, of 16 bits at most */
	uint32_t frames = (pages << heap->page_shift) + 1 + (tail ? tail->units : 0);

	pages += cf_pages_for(heap, spine, spine == tail ? 2 : 1);
	if (tail && tail != spine)
		pages += cf_pages_for(heap, tail, 1);
	if (cf_is_nonmoving(heap))
		return heap->free_pages >= pages && heap->free_frames >= frames;
	return heap->free_pages >= pages + cf_pages_for_slots(heap, tail ? 2 : 1);
}

/*
 * The size-class for blocks of at least @size bytes, at multiples of @align; NULL if there is none.
 * Wherever such an object moves, it is aligned, as all blocks of its class are.
 */
static struct cf_class *cf_aligned_class(struct cf_heap *heap, size_t align, size_t size)
{
	struct cf_class *class = cf_class_of_size(heap, size);

	/* Blocks lie one after the other from the page's start. The last class is a page. */
	while (class && ((size_t)class->units << heap->unit_shift) & (align - 1))
		class++;
	return class;
}

/*
 * Allocate an object larger than a page, its first @without pages left out: they are the caller's
 * to give, who has them from an object that changes its size. Pages are aligned to whatever may be
 * asked for.
 */
static int cf_allocate_large(struct cf_heap *heap, size_t align, size_t size, uint32_t without,
			     cf_handle *handle)
{
	struct cf_class *tail_class = cf_aligned_class(heap, align, cf_rest(heap, size));
	uint32_t pages = cf_whole_pages(heap, size), i;
	struct cf_class *spine_class = cf_class_of_spine(heap, pages);
	cf_handle tail = { 0, 0 };
	struct cf_object object;
	struct cf_page *header;
	uint32_t *spine;

	if (!cf_have_room(heap, pages - without, spine_class, tail_class))
		return CF_ENOMEM;
	if (tail_class) {
		cf_allocate(heap, tail_class, &tail);
		/* It was just allocated, so it is found; the mark keeps everybody else from it. */
		cf_find(heap, tail, &object);
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
		cf_set_ref(heap, object.meta + object.class->refs, object.index, tail.slot,
			   tail.stamp + CF_TAIL * heap->pin_one, heap->wide);
		heap->tails++;
	}
	cf_allocate_spine(heap, spine_class, handle);
	cf_find(heap, *handle, &object);
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	cf_set_ref(heap, object.meta + object.class->refs, object.index, handle->slot,
		   handle->stamp + CF_LARGE * heap->pin_one, heap->wide);
	spine = cf_spine(heap, &object);
	spine[CF_SPINE_SLOT] = handle->slot;
	spine[CF_SPINE_PINS] = 0;
	spine[CF_SPINE_PAGES] = pages;
	spine[CF_SPINE_TAIL] = tail.slot;
	spine[CF_SPINE_TAIL_STAMP] = tail.stamp;
	heap->large_pages += pages - without;
	for (i = without; i < pages; i++) {
		header = cf_take_plain_page(heap, CF_FULL);
		spine[CF_SPINE_FIRST + i] = header->page;
		if (cf_is_nonmoving(heap))
			cf_take_frames(heap, header->where, 0, heap->page_mask + 1);
	}
	return CF_OK;
}

/*
 * Allocate an object of any size, in @class if that is not NULL; without its first pages as by
 * cf_allocate_large().
 */
CF_INLINE int cf_allocate_any(struct cf_heap *heap, struct cf_class *class, size_t align,
			      size_t size, uint32_t without, cf_handle *handle)
{
	if (CF_LIKELY(class))
		return cf_allocate(heap, class, handle);
	*handle = (cf_handle){ 0, 0 };
	if (!CF_WITH_LARGE || size - 1 >= heap->max_size)
		return CF_ESIZE;
	return cf_allocate_large(heap, align, size, without, handle);
}

/*
 * Free the pages, the spine and the tail of a large object. Pages that were taken away from it are
 * 0 in the spine. What is needed of the spine is read before its block is freed, as another object
 * may move there; that may be the tail, so it is looked up again.
 */
CF_SELDOM void cf_release_large(struct cf_heap *heap, const struct cf_object *object, uint32_t slot)
{
	const uint32_t *spine = cf_spine(heap, object);
	struct cf_object found;
	cf_handle tail;
	uint32_t i;

	for (i = 0; i < spine[CF_SPINE_PAGES]; i++) {
		struct cf_page *header;

		if (!spine[CF_SPINE_FIRST + i])
			continue;
		header = cf_page(heap, spine[CF_SPINE_FIRST + i]);
		if (cf_is_nonmoving(heap))
			cf_give_frames(heap, header->where, 0, heap->page_mask + 1);
		cf_give_page(heap, header);
		heap->large_pages--;
	}
	tail = (cf_handle){ spine[CF_SPINE_TAIL], spine[CF_SPINE_TAIL_STAMP] };
	cf_release(heap, object, slot, 1);
	if (tail.slot) {
		heap->tails--;
		cf_find(heap, tail, &found);
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
		cf_release(heap, &found, tail.slot, found.class->units);
	}
}

/* Free an object of any size that was found, and is not pinned. */
CF_INLINE void cf_release_any(struct cf_heap *heap, const struct cf_object *object, uint32_t slot)
{
	if (CF_UNLIKELY(cf_is_large(heap, object)))
		cf_release_large(heap, object, slot);
	else
		cf_release(heap, object, slot, object->class->units);
}

/* ------ pinned objects ------------------------------------------------------------------------ */

/*
 * Pins are counted in the object's reference, where a free sees them without looking elsewhere, and
 * the bitmap says which blocks are pinned, for compaction. A page whose objects are all pinned can
 * give none away: it is stuck, and not counted in K.
 */

/*
 * How often is the object pinned? A spine counts in a word of its own, as its tag says that it is
 * one.
 */
CF_INLINE uint32_t cf_pins_of(struct cf_heap *heap, const struct cf_object *object)
{
	if (!CF_WITH_PINS)
		return 0;
	return cf_is_large(heap, object) ? cf_spine(heap, object)[CF_SPINE_PINS] :
					   cf_pins(heap, object->tag);
}

#if CF_WITH_PINS || CF_WITH_REMOTE
/*
 * Keep the bitmap and the counts of an object's first pin, or of its last. The page may belong to
 * another list now: the caller sees to that.
 */
static void cf_set_pinned(struct cf_object *object, bool pinned)
{
	struct cf_class *class = object->class;
	uint32_t *row = cf_pinned_row(class, object->meta, object->index / 32);

	*row ^= 1u << object->index % 32;
	if (pinned)
		cf_mark_row(class, object->header, object->meta, object->index / 32);
	else
		object->header->rows_movable |= CF_ROW(object->index / 32);
	object->header->pinned = (cf_count)(object->header->pinned + (pinned ? 1u : UINT32_MAX));
	class->pinned += pinned ? 1 : UINT32_MAX;
}
#endif

#if CF_WITH_PINS
/*
 * An object of a page on CF_STUCK can be moved again: then the page would be one not-full page
 * more. If there are as many as there may be, the object moves away at once, and the page is stuck
 * again, or empty.
 */
static void cf_unstick(struct cf_heap *heap, struct cf_object *object)
{
	struct cf_class *class = object->class;
	struct cf_page *to = class->open;

	if (class->nr[CF_NOT_FULL] < class->limit)
		cf_relist(heap, class, object->header);
	else
		cf_move(heap, class, object->header, CF_STUCK, object->index, to,
			cf_take_block(heap, class, to));
}

/* Pins are counted in the reference, those of a large object in its spine. */
static void cf_count_pin(struct cf_heap *heap, struct cf_object *object, uint32_t slot, uint32_t by)
{
	if (cf_is_large(heap, object))
		cf_spine(heap, object)[CF_SPINE_PINS] += by;
	else
		cf_set_ref(heap, object->meta + object->class->refs, object->index, slot,
			   object->tag + by * heap->pin_one, heap->wide);
}
#endif

#if CF_WITH_PINS || CF_WITH_REMOTE
/*
 * The first pin is set, or the last one taken away: of the tail, if the object is large, as its
 * pages do not move anyway. Makes the object the one that is pinned; false if there is none to
 * move.
 */
static bool cf_mark_pinned(struct cf_heap *heap, struct cf_object *object, bool pinned)
{
	if (cf_is_large(heap, object) && !cf_find_tail(heap, cf_spine(heap, object), object)) {
		heap->bare_pinned += pinned ? 1 : UINT32_MAX;
		return false;
	}
	cf_set_pinned(object, pinned);
	return true;
}
#endif

/* ------ remote frees -------------------------------------------------------------------------- */

/*
 * Other cores ask the owner of a heap to free objects, through a ring of handles in the heap. Only
 * the owner ever changes the heap, so no operation of its own has to wait for anybody, nor has any
 * of theirs.
 *
 * Both ends of the ring are counters that wrap. begun counts entries that were given out: a
 * core takes the next one by a compare-and-swap, and has it alone from then on. done counts
 * those that the owner has emptied. An entry is filled when its slot is not 0: so a core may have
 * taken an entry and not have filled it yet, and the owner stops there until it has. An entry is
 * emptied before done says so, as that is what lets it be given out again.
 */

/* The other cores' end: an entry is taken, then filled, its slot last. */
int cf_free_remote(struct cf_heap *heap, cf_handle handle)
{
#if CF_WITH_REMOTE
	struct cf_remote *entry;
	uint32_t begun, done;

	if (!heap->remote_size)
		return CF_EINVAL;
	if (!handle.slot)
		return CF_ESTALE;
	for (;;) {
		/*
		 * In this order, so that entries given out are never fewer than those emptied.
		 * Pairs with the store in cf_drain_one().
		 */
		done = __atomic_load_n(&heap->ring->done, __ATOMIC_ACQUIRE);
		begun = __atomic_load_n(&heap->ring->begun, __ATOMIC_RELAXED);
		if (begun - done < heap->remote_size) {
			if (__atomic_compare_exchange_n(&heap->ring->begun, &begun, begun + 1,
							true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
				break;
		} else if (__atomic_load_n(&heap->ring->done, __ATOMIC_RELAXED) == done) {
			/* nothing was emptied between the two */
			return CF_EAGAIN;
		}
	}
	entry = &heap->ring->entries[begun & (heap->remote_size - 1)];
	entry->stamp = handle.stamp;
	__atomic_store_n(&entry->slot, handle.slot, __ATOMIC_RELEASE);
	return CF_OK;
#else
	(void)heap;
	(void)handle;
	return CF_EINVAL;
#endif
}

/*
 * The owner's end: free an object of the ring; false if there is none. What is no object, or pinned
 * by more than the core that gave it back, is counted, as nobody is there to be told.
 */
CF_SELDOM bool cf_drain_one(struct cf_heap *heap)
{
#if CF_WITH_REMOTE
	struct cf_remote *entry = &heap->ring->entries[heap->ring->done & (heap->remote_size - 1)];
	struct cf_object object, pinned;
	cf_handle handle;

	/*
	 * Pairs with the store that ends cf_free_remote(): what was done to the object, and the
	 * stamp.
	 */
	handle.slot = __atomic_load_n(&entry->slot, __ATOMIC_ACQUIRE);
	if (!handle.slot)
		return false;
	handle.stamp = entry->stamp;
	__atomic_store_n(&entry->slot, 0, __ATOMIC_RELAXED);
	/* Pairs with the load in cf_free_remote(): who sees this finds the entry empty. */
	__atomic_store_n(&heap->ring->done, heap->ring->done + 1, __ATOMIC_RELEASE);
	if (!cf_find_own(heap, handle, &object) || cf_pins_of(heap, &object) > 1) {
		heap->remote_failed++;
		return true;
	}
	/*
	 * The pin that kept it where it is for the other core. Not unpinned: it would move before
	 * it is freed.
	 */
	pinned = object;
	if (cf_pins_of(heap, &object))
		cf_mark_pinned(heap, &pinned, false);
	cf_release_any(heap, &object, handle.slot);
	return true;
#else
	(void)heap;
	return false;
#endif
}

/*
 * Lock the heap for an operation that does some remote frees besides: two, so that a ring that gets
 * one for each of the owner's operations becomes empty, and that the operation stays bounded.
 */
CF_INLINE void cf_enter(struct cf_heap *heap)
{
	cf_lock(heap);
	if (CF_WITH_REMOTE && CF_UNLIKELY(heap->remote_size) && cf_drain_one(heap))
		cf_drain_one(heap);
}

size_t cf_drain(struct cf_heap *heap, size_t most)
{
	size_t done = 0;

	cf_lock(heap);
	if (CF_WITH_REMOTE && heap->remote_size)
		while (done < most && cf_drain_one(heap))
			done++;
	cf_unlock(heap);
	return done;
}

/* ------ the calls ----------------------------------------------------------------------------- */

/*
 * The general way, for all heaps and sizes. @class: NULL for a size that is wrong, or of a large
 * object.
 */
CF_SELDOM int cf_malloc_any(struct cf_heap *heap, struct cf_class *class, size_t align, size_t size,
			    cf_handle *handle)
{
	int status;

	cf_enter(heap);
	status = cf_allocate_any(heap, class, align, size, 0, handle);
	cf_unlock(heap);
	return status;
}

#if CF_WITH_FAST
/*
 * What cf_malloc() has no time to tell apart: a wide heap, which is as fast but for this second
 * look; a heap that is not moving, has lock hooks or remote frees; a size for which there is no
 * class.
 */
CF_SELDOM int cf_malloc_other(struct cf_heap *heap, size_t size, cf_handle *handle)
{
	struct cf_class *class = cf_class_for(heap, size, heap->wide_size, 2);

	if (CF_LIKELY(class))
		return cf_allocate_moving(heap, class, true, handle);
	return cf_malloc_any(heap, cf_class_of_size(heap, size), 1, size, handle);
}
#endif

/*
 * In a heap that is not fast, fast_size is 0, so that no size has a class: one test for the size
 * and for the heap.
 */
int cf_malloc(struct cf_heap *heap, size_t size, cf_handle *handle)
{
#if CF_WITH_FAST
	struct cf_class *class = cf_class_for(heap, size, heap->fast_size, 2);

	if (CF_LIKELY(class))
		return cf_allocate_moving(heap, class, false, handle);
	return cf_malloc_other(heap, size, handle);
#else
	return cf_malloc_any(heap, cf_class_of_size(heap, size), 1, size, handle);
#endif
}

/* All blocks of a size-class are aligned alike, so the right one is all that has to be found. */
int cf_aligned_alloc(struct cf_heap *heap, size_t align, size_t size, cf_handle *handle)
{
	if (!align || align & (align - 1) || align > cf_max_contiguous(heap)) {
		*handle = (cf_handle){ 0, 0 };
		return CF_EINVAL;
	}
	return cf_malloc_any(heap, cf_aligned_class(heap, align, size), align, size, handle);
}

/* Bytes of an object: those of its block, or of its pages and its tail. */
static size_t cf_usable(struct cf_heap *heap, const struct cf_object *object)
{
	const uint32_t *spine = cf_spine(heap, object);
	struct cf_object tail;
	size_t size;

	if (!cf_is_large(heap, object))
		return (size_t)object->class->units << heap->unit_shift;
	size = (size_t)spine[CF_SPINE_PAGES] * heap->page_bytes;
	if (cf_find_tail(heap, spine, &tail))
		size += (size_t)tail.class->units << heap->unit_shift;
	return size;
}

/*
 * Byte @offset of an object, and how many there are contiguous from there on; NULL and 0 if none.
 */
static void *cf_piece(struct cf_heap *heap, const struct cf_object *object, size_t offset,
		      size_t *length)
{
	size_t end = (size_t)object->class->units << heap->unit_shift, page;
	const uint32_t *spine = cf_spine(heap, object);
	uint32_t where = object->where, slot;
	struct cf_object tail;

	if (cf_is_large(heap, object)) {
		page = offset >> heap->page_bytes_shift;
		end = 0;
		if (page < spine[CF_SPINE_PAGES]) {
			offset &= heap->page_bytes - 1;
			where = spine[CF_SPINE_FIRST + page] << heap->page_shift;
			end = heap->page_bytes;
		} else if (cf_find_tail(heap, spine, &tail)) {
			offset -= (size_t)spine[CF_SPINE_PAGES] * heap->page_bytes;
			where = tail.where;
			end = (size_t)tail.class->units << heap->unit_shift;
		}
	}
	*length = 0;
	if (offset >= end)
		return NULL;
	if (cf_is_nonmoving(heap)) {
		slot = *cf_word(heap, where + (uint32_t)(offset >> heap->unit_shift));
		end = (size_t)1 << heap->unit_shift;
		offset &= end - 1;
		*length = end - offset;
		return (char *)cf_frame(heap, slot) + offset;
	}
	*length = end - offset;
	return (char *)heap + ((size_t)where << 2) + offset;
}

void *cf_deref_checked(const struct cf_heap *heap, cf_handle handle, size_t offset,
		       uint32_t block_size)
{
	struct cf_heap *of = (struct cf_heap *)(uintptr_t)heap;
	size_t end, length;
	struct cf_object object;
	char *start;

	if (block_size != (cf_is_nonmoving(of) ? 1u << of->unit_shift : 0) ||
	    !cf_find_own(of, handle, &object) || cf_is_large(of, &object))
		CF_FAULT();
	end = cf_usable(of, &object);
	if (offset > end)
		CF_FAULT();
	/* behind the last byte there is no piece */
	start = (char *)cf_piece(of, &object, offset < end ? offset : end - 1, &length);
	return start + (offset == end);
}

int cf_calloc(struct cf_heap *heap, size_t count, size_t size, cf_handle *handle)
{
	struct cf_object object;
	size_t at, length;
	int status;
	void *piece;

	if (!size || count > heap->max_size / size) {
		*handle = (cf_handle){ 0, 0 };
		return CF_ESIZE;
	}
	cf_enter(heap);
	status = cf_allocate_any(heap, cf_class_of_size(heap, count * size), 1, count * size, 0,
				 handle);
	if (!status && cf_find(heap, *handle, &object)) {
		/* to the last word asked for */
		size = (count * size + 3) & ~(size_t)3;
		/* Piece by piece: an object need not be contiguous. */
		for (at = 0; at < size; at += length) {
			piece = cf_piece(heap, &object, at, &length);
			if (length > size - at)
				length = size - at;
			cf_clear((cf_any *)piece, (uint32_t)length / 4);
		}
	}
	cf_unlock(heap);
	return status;
}

/* Free an object of any heap, by its owner. */
CF_INLINE int cf_free_locked(struct cf_heap *heap, cf_handle handle)
{
	struct cf_object object;

	if (!cf_find_own(heap, handle, &object))
		return CF_ESTALE;
	if (cf_pins_of(heap, &object))
		return CF_EPINNED;
	cf_release_any(heap, &object, handle.slot);
	return CF_OK;
}

/*
 * The general way, for all heaps and objects. This and the next take a handle as one number, slot
 * below stamp: so compilers leave it in its register.
 */
CF_SELDOM int cf_free_any(struct cf_heap *heap, uint64_t number)
{
	cf_handle handle = { (uint32_t)number, (uint32_t)(number >> 32) };
	int status;

	cf_enter(heap);
	status = cf_free_locked(heap, handle);
	cf_unlock(heap);
	return status;
}

#if CF_WITH_FAST
/*
 * Wide: is this a slot that some object had or has? Any number may be asked about. What is in such
 * a slot is believed: that it is free, or where its object is. So the block's reference is not
 * looked at, which saves a cache miss in a large heap.
 */
CF_INLINE bool cf_is_slot(struct cf_heap *heap, uint32_t slot)
{
	uint32_t page = slot >> heap->page_shift;

	return page - heap->first_page < heap->begun_pages &&
	       cf_page(heap, page)->list == CF_SLOTS &&
	       (slot < heap->fresh_slot || slot >= heap->end_slot || !heap->fresh_slot);
}

/*
 * What cf_free() has no time to tell apart. A wide heap has a fast way too, for the same objects:
 * of all others the tag is no stamp.
 */
CF_SELDOM int cf_free_other(struct cf_heap *heap, uint64_t number)
{
	uint32_t slot = (uint32_t)number, stamp = (uint32_t)(number >> 32), where, index;
	struct cf_class *class;
	struct cf_page *header;

	if (CF_UNLIKELY(!heap->wide_size || number & CF_WIDE_NEVER || !cf_is_slot(heap, slot)))
		return cf_free_any(heap, number);
	where = *cf_word(heap, slot);
	if (CF_UNLIKELY(where & CF_FREE || *cf_tag(heap, slot) != stamp))
		return cf_free_any(heap, number);
	header = cf_page(heap, where >> heap->page_shift);
	class = (struct cf_class *)((char *)heap + header->class);
	index = cf_index(class, header, where);
	cf_give_slot(heap, slot, true);
	class->objects--;
	return cf_give_block(heap, class, header, index);
}
#endif

/*
 * The fast way is cf_free_any() in a moving heap without lock hooks and remote frees that is not
 * wide, for an object that is not pinned, nor a spine or a tail: all of these have more in their
 * references than slot and stamp. In any other case the general way finds out what there is to say.
 * In a heap that is not fast, fast_words is 0, so that no slot is in the heap: one test for the
 * handle and for the heap.
 */
int cf_free(struct cf_heap *heap, cf_handle handle)
{
	uint64_t number = handle.slot | (uint64_t)handle.stamp << 32;
#if CF_WITH_FAST
	uint32_t slot = (uint32_t)number, stamp = (uint32_t)(number >> 32);
	struct cf_object object;

	if (CF_UNLIKELY(slot >= heap->fast_words || stamp & heap->stamp_low ||
			!cf_locate(heap, slot, &object) ||
			object.meta[object.class->refs + object.index] != (slot | stamp)))
		return cf_free_other(heap, number);
	cf_give_slot(heap, slot, false);
	object.class->objects--;
	return cf_give_block(heap, object.class, object.header, object.index);
#else
	return cf_free_any(heap, number);
#endif
}

/*
 * Give the object a block of another size-class; its slot, and so its handle, stays. The new block
 * is taken first, as the free of the old one may move an object. Non-moving: only the block-frames
 * that one has more than the other are taken or given.
 */
static int cf_change_class(struct cf_heap *heap, struct cf_object *object, uint32_t slot,
			   struct cf_class *class)
{
	struct cf_class *old = object->class;
	uint32_t common = cf_min(old->units, class->units);
	struct cf_page *header = class->open;
	uint32_t index, where;

	if (cf_is_nonmoving(heap) && heap->free_frames < class->units - common)
		return CF_ENOMEM;
	if (header == &heap->no_page)
		header = cf_open_page(heap, class);
	if (!header)
		return CF_ENOMEM;
	index = cf_take_block(heap, class, header);
	where = cf_where(class, header, index);
	CF_COPY(cf_word(heap, where), cf_word(heap, object->where), common);
	if (cf_is_nonmoving(heap)) {
		cf_give_frames(heap, object->where, common, old->units);
		cf_take_frames(heap, where, common, class->units);
	}
	cf_set_ref(heap, cf_word(heap, header->meta) + class->refs, index, slot, object->tag,
		   heap->wide);
	*cf_word(heap, slot) = where;
	class->objects++;
	old->objects--;
	cf_give_block(heap, old, object->header, object->index);
	return CF_OK;
}

/* Copy what both objects have of the bytes from @at on. */
static void cf_copy_from(struct cf_heap *heap, const struct cf_object *from,
			 const struct cf_object *to, size_t at)
{
	size_t end = cf_usable(heap, from), length, length_to;
	const void *piece;
	void *piece_to;

	if (end > cf_usable(heap, to))
		end = cf_usable(heap, to);
	for (; at < end; at += length) {
		piece = cf_piece(heap, from, at, &length);
		piece_to = cf_piece(heap, to, at, &length_to);
		if (length > length_to)
			length = length_to;
		CF_COPY((cf_any *)piece_to, (const cf_any *)piece, (uint32_t)length / 4);
	}
}

/* cf_realloc() where the old or the new size is larger than a page. */
static int cf_change_large(struct cf_heap *heap, struct cf_object *old, cf_handle handle,
			   size_t size)
{
	uint32_t pages = cf_whole_pages(heap, size), common = 0, i;
	uint32_t *from = cf_spine(heap, old), *to;
	struct cf_class *tail_class = cf_class_of_size(heap, cf_rest(heap, size));
	struct cf_object object;
	cf_handle other;
	int status;

	if (cf_is_large(heap, old)) {
		common = cf_min(pages, from[CF_SPINE_PAGES]);
		if (!cf_find_tail(heap, from, &object))
			object.class = NULL;
		if (pages == from[CF_SPINE_PAGES] && tail_class == object.class)
			return CF_OK;
	}
	/*
	 * A new object without the pages that both have: these change hands below, and are not
	 * copied.
	 */
	status = cf_allocate_any(heap, cf_class_of_size(heap, size), 1, size, common, &other);
	if (status)
		return status;
	cf_find(heap, other, &object);
	to = cf_spine(heap, &object);
	for (i = 0; i < common; i++) {
		to[CF_SPINE_FIRST + i] = from[CF_SPINE_FIRST + i];
		from[CF_SPINE_FIRST + i] = 0;
	}
	cf_copy_from(heap, old, &object, (size_t)common * heap->page_bytes);

	/* The new one gets the old one's handle, which is freed as if it had the other. */
	cf_set_ref(heap, object.meta + object.class->refs, object.index, handle.slot,
		   handle.stamp + (object.tag & heap->stamp_low), heap->wide);
	*cf_word(heap, handle.slot) = object.where;
	if (cf_is_nonmoving(heap) && !cf_is_large(heap, &object))
		/* a slot is a block-frame: that of the object's first bytes */
		CF_COPY(cf_frame(heap, handle.slot), cf_frame(heap, other.slot),
			1u << (heap->unit_shift - 2));
	if (cf_is_nonmoving(heap) || cf_is_large(heap, &object))
		*cf_word(heap, object.where) = handle.slot;
	cf_release_any(heap, old, other.slot);
	return CF_OK;
}

/*
 * Nothing is done within a size-class. What is larger than a page before or after goes its own way.
 */
int cf_realloc(struct cf_heap *heap, cf_handle handle, size_t size)
{
	struct cf_class *class = cf_class_of_size(heap, size);
	struct cf_object object;
	int status = CF_OK;

	cf_lock(heap);
	if (!cf_find_own(heap, handle, &object))
		status = CF_ESTALE;
	else if (cf_pins_of(heap, &object))
		status = CF_EPINNED;
	else if (size - 1 >= heap->max_size)
		status = CF_ESIZE;
	else if (CF_WITH_LARGE && (!class || cf_is_large(heap, &object)))
		status = cf_change_large(heap, &object, handle, size);
	else if (class != object.class)
		status = cf_change_class(heap, &object, handle.slot, class);
	cf_unlock(heap);
	return status;
}

int cf_check_handle(struct cf_heap *heap, cf_handle handle)
{
	struct cf_object object;
	int status;

	cf_lock(heap);
	status = cf_find_own(heap, handle, &object) ? CF_OK : CF_ESTALE;
	cf_unlock(heap);
	return status;
}

size_t cf_usable_size(struct cf_heap *heap, cf_handle handle)
{
	struct cf_object object;
	size_t size = 0;

	cf_lock(heap);
	if (cf_find_own(heap, handle, &object))
		size = cf_usable(heap, &object);
	cf_unlock(heap);
	return size;
}

void *cf_at(struct cf_heap *heap, cf_handle handle, size_t offset, size_t *length)
{
	struct cf_object object;
	size_t contiguous = 0;
	void *byte = NULL;

	cf_lock(heap);
	if (cf_find_own(heap, handle, &object))
		byte = cf_piece(heap, &object, offset, &contiguous);
	cf_unlock(heap);
	if (length)
		*length = contiguous;
	return byte;
}

/* ------ pins ---------------------------------------------------------------------------------- */

/*
 * The calls count, and relist the page if its first object that can be moved came or its last one
 * went.
 */

#if CF_WITH_PINS
int cf_pin(struct cf_heap *heap, cf_handle handle)
{
	struct cf_object object;
	int status = CF_OK;
	uint32_t pins;

	cf_lock(heap);
	if (!cf_find_own(heap, handle, &object)) {
		status = CF_ESTALE;
		goto out;
	}
	pins = cf_pins_of(heap, &object);
	if (pins == CF_MAX_PINS) {
		status = CF_EPINS;
		goto out;
	}
	cf_count_pin(heap, &object, handle.slot, 1);
	if (!pins && cf_mark_pinned(heap, &object, true) && object.header->list == CF_NOT_FULL)
		cf_relist(heap, object.class, object.header);
out:
	cf_unlock(heap);
	return status;
}

int cf_unpin(struct cf_heap *heap, cf_handle handle)
{
	struct cf_object object;
	int status = CF_OK;
	uint32_t pins;

	cf_lock(heap);
	if (!cf_find_own(heap, handle, &object)) {
		status = CF_ESTALE;
		goto out;
	}
	pins = cf_pins_of(heap, &object);
	if (!pins) {
		status = CF_EPINS;
		goto out;
	}
	cf_count_pin(heap, &object, handle.slot, UINT32_MAX);
	if (pins == 1 && cf_mark_pinned(heap, &object, false) && object.header->list == CF_STUCK)
		cf_unstick(heap, &object);
out:
	cf_unlock(heap);
	return status;
}
#endif

/* ------ deferred compaction ------------------------------------------------------------------- */

/*
 * A deferred heap has no limit to its not-full pages: a free leaves them, and this does later what
 * frees would have done at once, in the same way.
 */

/* Not-full pages of a size-class beyond K. */
static uint32_t cf_class_debt(const struct cf_class *class)
{
	uint32_t nr = class->nr[CF_NOT_FULL];

	return nr > class->max_not_full ? nr - class->max_not_full : 0;
}

size_t cf_debt(struct cf_heap *heap)
{
	size_t debt = 0;
	uint32_t i;

	cf_lock(heap);
	for (i = 0; i < heap->nr_classes; i++)
		debt += cf_class_debt(&cf_classes(heap)[i]);
	cf_unlock(heap);
	return debt;
}

/*
 * An object of the first not-full page moves into the last one, again and again: so the first one
 * empties and the last one fills, and either makes one page less.
 */
size_t cf_compact(struct cf_heap *heap, size_t budget)
{
	struct cf_class *class = cf_classes(heap), *end = class + heap->nr_classes;
	struct cf_page *to;
	size_t bytes, moved = 0;

	cf_lock(heap);
	for (; class < end; class++) {
		bytes = (size_t)class->units << 2;
		while (cf_class_debt(class)) {
			if (bytes > budget - moved)
				goto out;
			to = class->open;
			cf_fill(heap, class, to, cf_take_block(heap, class, to));
			moved += bytes;
		}
	}
out:
	cf_unlock(heap);
	return moved;
}

/* ------ what the heap guarantees, what it holds ----------------------------------------------- */

size_t cf_max_size(const struct cf_heap *heap)
{
	return heap->max_size;
}

size_t cf_max_contiguous(const struct cf_heap *heap)
{
	return cf_is_nonmoving(heap) ? (size_t)1 << heap->unit_shift : heap->page_bytes;
}

unsigned int cf_class_count(const struct cf_heap *heap)
{
	return heap->nr_classes;
}

size_t cf_class_size(const struct cf_heap *heap, unsigned int index)
{
	return index < heap->nr_classes ?
		       (size_t)cf_classes(heap)[index].units << heap->unit_shift : 0;
}

unsigned int cf_class_per_page(const struct cf_heap *heap, unsigned int index)
{
	return index < heap->nr_classes ? cf_classes(heap)[index].per_page : 0;
}

int cf_class_of(const struct cf_heap *heap, size_t size)
{
	const struct cf_class *class =
		cf_class_of_size((struct cf_heap *)(uintptr_t)heap, size);

	return class ? (int)(class - cf_classes(heap)) : -1;
}

/*
 * The most pages that @objects of a class can occupy: as many as allowed are not full and hold one
 * each, those with nothing but pinned objects likewise, the others are full.
 */
static uint32_t cf_worst_pages(const struct cf_heap *heap, const struct cf_class *class,
			       uint32_t objects)
{
	uint64_t loose = (uint64_t)class->max_not_full + class->pinned;

	if (class->per_page == 1 || heap->deferred || loose > objects)
		return objects;
	return (uint32_t)loose + (objects - (uint32_t)loose) / class->per_page;
}

/* Pages for slots of @objects, beyond those that there are. */
static uint32_t cf_slot_pages(const struct cf_heap *heap, uint32_t objects)
{
	uint32_t words = (objects + heap->retired) * heap->slot_words;
	uint32_t pages = (words + heap->page_mask) >> heap->page_shift;

	if (cf_is_nonmoving(heap) || pages <= heap->handle_pages)
		return 0;
	return pages - heap->handle_pages;
}

/*
 * The most pages that will be occupied with @more objects more, of which each adds one to @class,
 * if that is not NULL, one to @spine likewise, and has @whole pages of its own.
 */
static uint64_t cf_worst_with(const struct cf_heap *heap, const struct cf_class *class,
			      const struct cf_class *spine, uint32_t whole, uint32_t more)
{
	uint64_t pages = heap->large_pages + (uint64_t)whole * more;
	uint32_t i, objects, all = 0;

	for (i = 0; i < heap->nr_classes; i++) {
		objects = cf_classes(heap)[i].objects;
		objects += class == &cf_classes(heap)[i] ? more : 0;
		objects += spine == &cf_classes(heap)[i] ? more : 0;
		all += objects;
		pages += cf_worst_pages(heap, &cf_classes(heap)[i], objects);
	}
	return pages + cf_slot_pages(heap, all);
}

size_t cf_bound(struct cf_heap *heap, size_t size)
{
	uint32_t whole = cf_whole_pages(heap, size), frames, low = 0, high, middle;
	const struct cf_class *class, *spine = NULL;

	if (size - 1 >= heap->max_size)
		return 0;
	class = cf_class_of_size(heap, whole ? cf_rest(heap, size) : size);
	if (whole)
		spine = cf_class_of_spine(heap, whole);
	cf_lock(heap);
	frames = (whole << heap->page_shift) + (class ? class->units : 0) + !!spine;
	/* A size has whole pages, or a size-class, or both: so neither can be missing here. */
	if (cf_is_nonmoving(heap))
		high = heap->free_frames / frames; /* NOLINT(clang-analyzer-core.DivideZero) */
	else if (whole)
		high = heap->pages / whole;
	else
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
		high = heap->pages * class->per_page;
	while (low < high) {
		middle = low + (high - low + 1) / 2;
		if (cf_worst_with(heap, class, spine, whole, middle) <=
		    heap->pages - heap->handle_pages)
			low = middle;
		else
			high = middle - 1;
	}
	cf_unlock(heap);
	return low;
}

void cf_get_stats(struct cf_heap *heap, struct cf_stats *stats)
{
	uint32_t i;

	cf_lock(heap);
	stats->large_pages = heap->large_pages;
	stats->remote_failed = heap->remote_failed;
	stats->pages = heap->pages;
	stats->free_pages = heap->free_pages;
	stats->handle_pages = heap->handle_pages;
	stats->not_full_pages = 0;
	stats->stuck_pages = 0;
	/* a tail is no object of its own, and pinned instead of its spine */
	stats->objects = (size_t)0 - heap->tails;
	stats->pinned = heap->bare_pinned;
	stats->free_blocks = cf_is_nonmoving(heap) ? heap->free_frames : 0;
	stats->moves = 0;
	stats->moved_bytes = 0;
	for (i = 0; i < heap->nr_classes; i++) {
		stats->not_full_pages += cf_classes(heap)[i].nr[CF_NOT_FULL];
		stats->stuck_pages += cf_classes(heap)[i].nr[CF_STUCK];
		stats->objects += cf_classes(heap)[i].objects;
		stats->pinned += cf_classes(heap)[i].pinned;
		stats->moves += cf_classes(heap)[i].moves;
		stats->moved_bytes += (uint64_t)cf_classes(heap)[i].moves *
				      cf_classes(heap)[i].units * 4;
	}
	cf_unlock(heap);
}

#if CF_WITH_CHECKS
/* ------ invariants ---------------------------------------------------------------------------- */

/* What the heap consists of, counted. */
struct cf_census {
	uint32_t pinned; /* blocks */
	uint32_t frames;
	uint32_t large_pages;
	uint32_t tails;
	uint32_t bare_pinned;
};

/*
 * A spine, the pages that it names, and its tail. Adds to the census, by which cf_verify() finds
 * what belongs to nobody.
 */
static const char *cf_verify_large(struct cf_heap *heap, struct cf_object *object, uint32_t slot,
				   struct cf_census *census)
{
	const uint32_t *spine = cf_spine(heap, object);
	struct cf_object tail;
	uint32_t i, page, row;

	if (spine[CF_SPINE_SLOT] != slot ||
	    object->class->units < CF_SPINE_FIRST + spine[CF_SPINE_PAGES])
		return "a large object's block is its spine";
	for (i = 0; i < spine[CF_SPINE_PAGES]; i++) {
		page = spine[CF_SPINE_FIRST + i];
		if (page - heap->first_page >= heap->begun_pages || cf_page(heap, page)->used)
			return "a large object's pages are its own";
	}
	census->large_pages += spine[CF_SPINE_PAGES];
	census->frames += 1 + (spine[CF_SPINE_PAGES] << heap->page_shift);
	if (!spine[CF_SPINE_TAIL]) {
		census->bare_pinned += !!spine[CF_SPINE_PINS];
		return NULL;
	}
	census->tails++;
	if (!cf_find_tail(heap, spine, &tail) || cf_pins(heap, tail.tag) != CF_TAIL)
		return "a large object has its tail";
	row = *cf_pinned_row(tail.class, tail.meta, tail.index / 32);
	if ((row >> tail.index % 32 & 1) != !!spine[CF_SPINE_PINS])
		return "a tail is pinned if its object is";
	return NULL;
}

/* The page's bitmaps and references agree with its header and with the slots. */
static const char *cf_verify_page(struct cf_heap *heap, struct cf_page *header,
				  struct cf_census *census)
{
	struct cf_class *class = (struct cf_class *)((char *)heap + header->class);
	uint32_t *meta = cf_word(heap, header->meta);
	uint32_t used = 0, pins = 0, index;
	const char *wrong;

	for (index = 0; index < class->per_page; index++) {
		struct cf_object object = { .class = class,
					    .where = cf_where(class, header, index) };
		uint32_t row = index / 32, bit = 1u << index % 32, slot, pins_of;
		bool pinned, should_be;

		if (!(header->rows_used & CF_ROW(row)))
			continue;
		pinned = (*cf_pinned_row(class, meta, row) & bit) != 0;
		if (meta[row] & bit) {
			if (pinned)
				return "a free block is not pinned";
			continue;
		}
		slot = cf_get_ref(heap, meta + class->refs, index, &object.tag);
		if (*cf_word(heap, slot) != object.where)
			return "a block's slot says where the block is";
		if (cf_is_nonmoving(heap) && *cf_word(heap, object.where) != slot)
			return "the slot of a block is that of its first block-frame";
		used++;
		pins += pinned ? 1 : 0;
		if (cf_is_large(heap, &object)) {
			wrong = cf_verify_large(heap, &object, slot, census);
			if (wrong)
				return wrong;
		} else {
			census->frames += class->units;
		}
		pins_of = cf_pins(heap, object.tag);
		should_be = pins_of && pins_of != CF_LARGE;
		if (pins_of != CF_TAIL && pinned != should_be)
			return "a block's pins agree with the bitmap";
	}
	for (index = 0; index <= class->last_row; index++) {
		bool any_free = !(header->rows_used & CF_ROW(index)) || meta[index];
		bool marked_free = (header->rows_free & CF_ROW(index)) != 0;

		if (header->rows_used & CF_ROW(index) && meta[index] == cf_row_all(class, index))
			return "a row marked used has a used block";
		if ((header->rows_used >> index & 1 &&
		     cf_movable(class, meta, index) & cf_row_all(class, index)) !=
		    (header->rows_movable >> index & 1))
			return "a row marked movable has an object that is not pinned";
		if (any_free != marked_free)
			return "a row marked free has a free block";
	}
	if (!used || used != header->used || pins != header->pinned)
		return "a page's counts are those of its blocks";
	if (header->list != (used == class->per_page ? CF_FULL :
			     used == pins ? CF_STUCK : CF_NOT_FULL))
		return "a page is on the list that its blocks call for";
	census->pinned += pins;
	return NULL;
}

/* The lists of a size-class, and Invariant 1. */
static const char *cf_verify_class(struct cf_heap *heap, struct cf_class *class)
{
	uint32_t list, page, before, nr;

	for (list = CF_NOT_FULL; list < CF_NR_LISTS; list++) {
		nr = 0;
		before = 0;
		for (page = class->first[list]; page; page = cf_page(heap, page)->next) {
			if (cf_page(heap, page)->prev != before ||
			    cf_page(heap, page)->list != list ||
			    cf_page(heap, page)->class != (size_t)((char *)class - (char *)heap))
				return "lists are linked both ways, pages of one size-class";
			before = page;
			nr++;
		}
		if (class->last[list] != before || class->nr[list] != nr)
			return "a list's end and length are right";
	}
	if (class->open != (class->last[CF_NOT_FULL] ?
			    cf_page(heap, class->last[CF_NOT_FULL]) : &heap->no_page))
		return "the open page is the last not-full one";
	if (!heap->deferred && cf_class_debt(class))
		return "a size-class has at most K not-full pages (Invariant 1)";
	return NULL;
}

/*
 * Each page and each slot is counted where it is used, and where it is listed as free. If both
 * together are all that there are, none was lost and none is used twice.
 */
const char *cf_verify(struct cf_heap *heap)
{
	uint32_t page, i, slot, objects = 0, listed[CF_NR_LISTS + 1] = { 0, 0, 0 };
	uint32_t others = 0, of_slots = 0, total = 0;
	uint32_t slots = heap->fresh_slot ?
		(heap->end_slot - heap->fresh_slot) / heap->slot_words : 0;
	struct cf_census census = { 0, 0, 0, 0, 0 };
	const char *wrong = NULL;

	cf_lock(heap);
	for (i = 0; i < heap->begun_pages && !wrong; i++) {
		struct cf_page *header = cf_page(heap, heap->first_page + i);

		if (!header->used) {
			others++;
			of_slots += header->list == CF_SLOTS ? 1u : 0u;
			continue;
		}
		wrong = cf_verify_page(heap, header, &census);
		objects += header->used;
		total += header->used;
		if (!wrong)
			listed[header->list]++;
	}
	for (i = 0; i < heap->nr_classes && !wrong; i++) {
		struct cf_class *class = &cf_classes(heap)[i];

		wrong = cf_verify_class(heap, class);
		objects -= class->objects;
		census.pinned -= class->pinned;
		listed[CF_NOT_FULL] -= class->nr[CF_NOT_FULL];
		listed[CF_STUCK] -= class->nr[CF_STUCK];
	}
	if (!wrong && (objects || census.pinned || listed[CF_NOT_FULL] || listed[CF_STUCK]))
		wrong = "the size-classes' counts are those of their pages";
	for (page = heap->free_page; page && !wrong; page = cf_page(heap, page)->next, others--)
		if (cf_page(heap, page)->used)
			wrong = "a page on the list of free pages is free";
	if (!wrong && others != heap->handle_pages + heap->large_pages)
		wrong = "each page is for objects, a large object's, for handles or listed as free";
	if (!wrong && (census.large_pages != heap->large_pages || census.tails != heap->tails ||
		       census.bare_pinned != heap->bare_pinned))
		wrong = "the heap's counts are those of its large objects";
	if (!wrong && of_slots != heap->handle_pages)
		wrong = "pages of slots are marked, and no others";
	for (slot = heap->free_slot; slot != heap->fresh_slot && !wrong; slots++) {
		if (!(*cf_word(heap, slot) & CF_FREE))
			wrong = "a slot on the list of free slots is free";
		slot = *cf_word(heap, slot) & ~CF_FREE;
	}
	if (!wrong && cf_is_nonmoving(heap) &&
	    (slots != heap->free_frames ||
	     census.frames + slots + heap->retired != heap->end_slot - heap->first_slot))
		wrong = "each block-frame is an object's or free";
	slots += total + heap->retired;
	if (!wrong && !cf_is_nonmoving(heap) &&
	    slots * heap->slot_words != heap->handle_pages << heap->page_shift)
		wrong = "each slot is an object's or free";
	cf_unlock(heap);
	return wrong;
}
#endif /* CF_WITH_CHECKS */

/* ------ making a heap ------------------------------------------------------------------------- */

/*
 * What is written are the heap's own tables, and nothing of the memory that they describe: so a
 * heap is made in constant time, however large its buffer is.
 */

/* Bytes for the two bitmaps of so many blocks and for their references. */
static uint32_t cf_meta_bytes(uint32_t blocks)
{
	return (blocks + 31) / 32 * 8 + blocks * 4;
}

/* Bytes for them in the page: none if there is room aside. */
static uint32_t cf_meta_inside(const struct cf_heap *heap, uint32_t blocks)
{
	uint32_t bytes = cf_meta_bytes(blocks);

	return bytes > 4 * heap->aside_words ? bytes : 0;
}

/* Blocks of @units words that a page has room for, with what describes them. */
static uint32_t cf_fit(const struct cf_heap *heap, uint32_t units)
{
	uint32_t bytes = 4u << heap->page_shift;
	uint32_t blocks = bytes / (units > 1 ? units * 4 : 4);

	while (blocks > 1 && blocks * units * 4 + cf_meta_inside(heap, blocks) > bytes)
		blocks--;
	return blocks;
}

/*
 * The size-class of at least @units words a block. As large as the page allows for as many blocks,
 * if a larger block costs nothing: not if each word is a block-frame.
 */
static void cf_make_class(struct cf_heap *heap, struct cf_class *class, uint32_t units)
{
	uint32_t words = heap->page_mask + 1;
	uint32_t blocks = cf_fit(heap, units);
	uint32_t rows, meta, more;

	class->per_page = blocks;
	meta = cf_meta_inside(heap, blocks);
	/* What is left over is for the blocks, in steps that keep them aligned to 16 bytes. */
	more = cf_is_nonmoving(heap) ? 0 : (words - meta / 4) / blocks & ~3u;
	/* No more than cf_class_for() sends here: the end of one of its steps. */
	if (more > CF_SINGLE)
		more &= (uint32_t)-1 << (cf_log2(more - 1) - CF_FINE_LOG2);
	class->units = more > units ? more : units;
	/* of those aside the place is known later, see cf_lay_out() */
	class->meta = meta ? words - meta / 4 : 0;
	class->meta_step = meta ? words : heap->aside_step;
	rows = (class->per_page + 31) / 32;
	class->half = (cf_count)(class->per_page / 2);
	class->rows_all = (cf_rows)-1 >> (CF_MAX_ROWS - rows);
	class->last_row = (cf_count)(rows - 1);
	class->last_all = UINT32_MAX >> (rows * 32 - class->per_page);
	class->first_all = cf_row_all(class, 0);
	class->single_row = class->last_all == 1 ? class->last_row : (cf_count)-1;
	class->refs = (cf_count)(rows * 2);
	class->inverse = (0x10000u + class->units - 1) / class->units;
}

/*
 * The size-classes, from the smallest blocks to a whole page, and the table by which
 * cf_class_for() finds them: both lie behind the heap itself. It goes through the steps of that
 * table: a step whose sizes the last class is too small for makes a new one, which may serve the
 * steps that follow too. Returns the bytes from the heap to their end; 0 if that is more than
 * @most.
 */
static size_t cf_make_classes(struct cf_heap *heap, const struct cf_config *config, size_t most)
{
	uint32_t words = heap->page_mask + 1;
	uint32_t least = cf_is_nonmoving(heap) ? 1 : CF_MIN_UNITS;
	uint32_t step, shift, coarse, units = 0;
	size_t end = sizeof(*heap) + (cf_step(words - 1) + 1) * sizeof(heap->class_of[0]);

	end = (end + sizeof(size_t) - 1) & ~(sizeof(size_t) - 1);
	heap->classes = (uint32_t)end;

	/* A page has no more blocks than CF_MAX_ROWS rows have bits. */
	if (least < words / (CF_MAX_ROWS * 32))
		least = words / (CF_MAX_ROWS * 32);
	for (step = 0; units < words; step++) {
		struct cf_class *class = cf_classes(heap) + heap->nr_classes;
		uint16_t max_not_full = config->max_not_full;

		/* the largest size, in units, that cf_class_for() sends here */
		units = step + 1;
		if (step >= CF_SINGLE) {
			shift = ((step - CF_SKIPPED) >> CF_FINE_LOG2) - 1;
			units = (units - CF_SKIPPED - (shift << CF_FINE_LOG2)) << shift;
		}
		units = units < least ? least : cf_min(units, words);
		if (!heap->nr_classes || units > class[-1].units) {
			end += sizeof(*class);
			if (end > most)
				return 0;
			cf_clear((uint32_t *)class, sizeof(*class) / 4);
			/* up to the next multiple of 1/8 */
			coarse = cf_log2(units - !!(units - 1));
			coarse = coarse > CF_STEPS_LOG2 ? (1u << (coarse - CF_STEPS_LOG2)) - 1 : 0;
			cf_make_class(heap, class, cf_min((units + coarse) & ~coarse, words));
			if (config->class_max_not_full &&
			    config->class_max_not_full[heap->nr_classes])
				max_not_full = config->class_max_not_full[heap->nr_classes];
			class->max_not_full = max_not_full ? max_not_full : 1;
			if (max_not_full == CF_UNLIMITED)
				class->max_not_full = UINT32_MAX;
			class->open = &heap->no_page;
			class->limit = heap->deferred ? UINT32_MAX : class->max_not_full;
			heap->nr_classes++;
		}
		heap->class_of[step] = (uint16_t)(heap->classes +
						  (heap->nr_classes - 1) * sizeof(*class));
	}
	return end;
}

/* Is what describes few blocks in the headers, or behind all of them? */
static bool cf_aside_in_header(const struct cf_heap *heap)
{
	return heap->page_bytes < CF_ASIDE_FROM;
}

/* What is kept of a page outside of it. */
static size_t cf_header_bytes(const struct cf_heap *heap)
{
	size_t aside = cf_aside_in_header(heap) ? 0 : 4 * (size_t)heap->aside_words;

	return sizeof(struct cf_page) + aside;
}

/*
 * How many block-frames, and how many virtual pages for them. Even if each page holds the class
 * that fits it worst, and each class has its not-full pages, the block-frames shall be used up
 * first. An eighth of the memory is all that is given to not-full pages beyond one a class.
 */
static uint32_t cf_count_frames(const struct cf_heap *heap, size_t bytes, uint32_t *pages)
{
	size_t page_bytes = ((size_t)4 << heap->page_shift) + cf_header_bytes(heap);
	size_t frame_bytes = ((size_t)1 << heap->unit_shift) + (heap->wide ? 8 : 4);
	size_t of_256, frames, loose = 0;
	uint32_t i, in_page = UINT32_MAX;

	for (i = 0; i < heap->nr_classes; i++) {
		const struct cf_class *class = &cf_classes(heap)[i];

		in_page = cf_min(in_page, class->per_page * class->units);
		loose += cf_min(class->max_not_full, CF_UNLIMITED);
	}
	if (loose > bytes / 8 / page_bytes)
		loose = bytes / 8 / page_bytes;
	/* what alignment of the three parts may cost, and the page begun */
	loose += 2;
	if (bytes < loose * page_bytes + 2 * frame_bytes)
		return 0;
	bytes -= loose * page_bytes + 2 * frame_bytes;
	/* in portions of 256, as their share of a page is no whole number of bytes */
	of_256 = 256 * frame_bytes + (256 * page_bytes + in_page - 1) / in_page;
	frames = bytes / of_256 * 256 + bytes % of_256 / ((of_256 + 255) / 256);
	*pages = (uint32_t)(frames / in_page + loose - 1);
	return (uint32_t)frames;
}

/*
 * Lay out the buffer of @bytes behind the heap's @own: headers and pages, and in a non-moving heap
 * slots and block-frames. Headers are as many as pages, so both are counted together. Returns false
 * if that leaves too few pages.
 */
static bool cf_lay_out(struct cf_heap *heap, size_t bytes, size_t own)
{
	uint32_t page_words = 1u << heap->page_shift;
	uint32_t pages = 0, frames, aside, i;

	if (cf_is_nonmoving(heap)) {
		frames = bytes > own ? cf_count_frames(heap, bytes - own, &pages) : 0;
		if (!frames)
			return false;
		heap->first_slot = (uint32_t)((own + pages * cf_header_bytes(heap)) / 4);
		heap->fresh_slot = heap->first_slot;
		heap->free_slot = heap->first_slot;
		heap->end_slot = heap->first_slot + frames;
		heap->free_frames = frames;
		heap->tag_at = frames;
		heap->first_page = heap->end_slot + (heap->wide ? frames : 0);
		heap->first_page = (heap->first_page + page_words - 1) >> heap->page_shift;
		heap->frames = (heap->first_page + pages) << heap->page_shift;
		heap->frames = ((heap->frames - 1) | ((1u << (heap->unit_shift - 2)) - 1)) + 1;
		heap->frames -= heap->first_slot << (heap->unit_shift - 2);
	} else {
		uint32_t all = (uint32_t)(bytes >> heap->unit_shift >> heap->page_shift);

		if (bytes < own)
			return false;
		pages = (uint32_t)((bytes - own) / (page_words * 4 + cf_header_bytes(heap)));
		while (pages && own + pages * cf_header_bytes(heap) >
				(size_t)(all - pages) * page_words * 4)
			pages--;
		heap->first_page = all - pages;
	}
	if (pages < CF_MIN_PAGES)
		return false;
	heap->pages = pages;
	heap->free_pages = pages;
	heap->headers = own - heap->first_page * sizeof(struct cf_page);
	own += cf_aside_in_header(heap) ? offsetof(struct cf_page, next) :
					  pages * sizeof(struct cf_page);
	aside = (uint32_t)(own / 4);
	for (i = 0; i < heap->nr_classes; i++)
		if (!cf_classes(heap)[i].meta)
			cf_classes(heap)[i].meta = aside - heap->first_page * heap->aside_step;
	return true;
}

static bool cf_is_power(uint32_t value, uint32_t least, uint32_t most)
{
	return value >= least && value <= most && !(value & (value - 1));
}

/*
 * The page size for a buffer whose user names none. Below 1 MiB a 128th of it, so that
 * size-classes in use may each have a page that is not full. Above the paper's, and twice that in
 * a large heap, if rows allow for as many blocks: larger pages fit objects of a fraction of them
 * better. In a non-moving heap pages are virtual and small: the paper's.
 */
static uint32_t cf_suited_page(size_t size, enum cf_engine engine)
{
	uint32_t page_size = CF_PAGE_SIZE;

	if (engine == CF_MOVING && size >= CF_LARGE_PAGES_FROM && CF_MAX_ROWS > 32)
		return 2 * page_size;
	if (engine == CF_NONMOVING || size >= CF_PAPER_PAGES_FROM)
		return page_size;
	while (page_size > CF_LEAST_SUITED && page_size > size / 128)
		page_size /= 2;
	return page_size;
}

/*
 * Whatever is wrong is found before the first word is written, but a buffer that is too small for
 * its tables and pages, which is known once they are laid out.
 */
struct cf_heap *cf_init(void *buffer, size_t size, const struct cf_config *config)
{
	static const struct cf_config defaults = { .engine = CF_MOVING };
	uint32_t page_size, block_size, remote;
	struct cf_heap *heap;
	uintptr_t start, align;
	size_t own;

	if (!config)
		config = &defaults;
	page_size = config->page_size ? config->page_size : cf_suited_page(size, config->engine);
	block_size = config->block_size ? config->block_size : CF_BLOCK_SIZE;
	if (!buffer || !cf_is_power(page_size, 256, 65536) ||
	    !cf_is_power(block_size, 16, page_size) || !config->lock != !config->unlock ||
	    config->remote_frees > CF_MAX_REMOTE || (config->remote_frees && !CF_WITH_REMOTE) ||
	    (config->pieces && !CF_WITH_LARGE) ||
	    (config->engine != CF_MOVING && (config->engine != CF_NONMOVING || !CF_WITH_NONMOVING)))
		return NULL;
	align = config->engine == CF_MOVING ? page_size : block_size;
	start = ((uintptr_t)buffer + align - 1) & ~(align - 1);
	if (start < (uintptr_t)buffer || start - (uintptr_t)buffer > size)
		return NULL;
	size -= start - (uintptr_t)buffer;
	for (remote = 1; remote < config->remote_frees; remote *= 2)
		;
	remote = config->remote_frees ? remote : 0;
	if (size < sizeof(*heap) + page_size || size / 4 > (uint32_t)1 << 31)
		return NULL;

	heap = (struct cf_heap *)start;
	cf_clear((uint32_t *)heap, sizeof(*heap) / 4);
	heap->remote_size = remote;
	heap->nonmoving = config->engine == CF_NONMOVING;
	heap->wide = config->wide || size > CF_WIDE_ABOVE;
	heap->deferred = config->deferred;
	heap->page_bytes = page_size;
	heap->page_bytes_shift = cf_log2(page_size);
	heap->lock = config->lock;
	heap->unlock = config->unlock;
	heap->lock_arg = config->lock_arg;
	heap->page_shift = heap->page_bytes_shift - 2;
	heap->unit_shift = 2;
	if (cf_is_nonmoving(heap)) {
		heap->unit_shift = cf_log2(block_size);
		heap->page_shift = heap->page_bytes_shift - heap->unit_shift;
	}
	heap->page_mask = (1u << heap->page_shift) - 1;
	/* the largest spine is a page's block */
	heap->max_size = heap->page_bytes;
	if (CF_WITH_LARGE && (config->pieces || config->engine == CF_NONMOVING) &&
	    heap->page_mask > CF_SPINE_FIRST)
		heap->max_size *= heap->page_mask + 1 - CF_SPINE_FIRST;
	heap->words = (uint32_t)(size / 4);
	/* in 32 bits the place from which it is as far to the heap as the heap is from address 0 */
	heap->nowhere = sizeof(start) == 4 ? (uint32_t)(0 - start) / 4 : UINT32_MAX;
	if (!cf_is_nonmoving(heap) && !config->lock && !remote && heap->wide) {
		heap->wide_size = heap->page_bytes;
	} else if (!cf_is_nonmoving(heap) && !config->lock && !remote) {
		heap->fast_words = heap->words;
		heap->fast_size = heap->page_bytes;
	}
	heap->slot_words = heap->wide && !cf_is_nonmoving(heap) ? 2 : 1;
	heap->tag_at = 1;
	heap->pin_shift = heap->wide ? 0 : cf_log2(heap->words - 1) + 1;
	heap->pin_one = 1u << heap->pin_shift;
	heap->stamp_one = heap->pin_one << CF_PIN_BITS;
	heap->stamp_low = heap->stamp_one - 1;
	heap->slot_mask = heap->wide ? UINT32_MAX : heap->pin_one - 1;
	/* Seeds of 1, 2, 3, ... shall be far apart: by the golden ratio of all stamps. */
	heap->stamp = config->seed * 0x9e3779b1u + (uint32_t)(start >> 8) * 0x85ebca6bu;
	heap->stamp &= ~heap->stamp_low;
	heap->no_page.rows_free = 1;
	heap->aside_words = cf_meta_bytes(cf_aside_in_header(heap) ? 1 : CF_ASIDE) / 4;
	heap->aside_step = cf_aside_in_header(heap) ? sizeof(struct cf_page) / 4 :
						      heap->aside_words;
	own = cf_make_classes(heap, config, size);
	if (!own)
		return NULL;
	if (CF_WITH_REMOTE && remote) {
		size_t bytes = sizeof(*heap->ring) + remote * sizeof(heap->ring->entries[0]);

		if (bytes > size - own)
			return NULL;
		heap->ring = (struct cf_ring *)(start + own);
		cf_clear((uint32_t *)heap->ring, (uint32_t)(bytes / 4));
		own += bytes;
	}
	if (!cf_lay_out(heap, size, own))
		return NULL;
	/* Not in the first allocation, which has a page to open. */
	if (!cf_is_nonmoving(heap))
		cf_more_slots(heap);
	return heap;
}
