/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tests that look inside, in KTAP: cf_verify() finds what is broken, and the tests of the library rely on
 * that.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jmp_buf fault;

#define CF_FAULT() longjmp(fault, 1)
#include "../src/compactfit.c" /* NOLINT(bugprone-suspicious-include): to look inside */

static struct cf_heap *heap;
static cf_handle first, second, large; /* of one page, which is not full */
static struct cf_page *page;
static uint32_t *meta;
static struct cf_class *class;

struct breakage {
	const char *sentence;
	void (*make)(void);
	enum cf_engine engine;
};

static void pin_bit_of_free(void)
{
	*cf_pinned_row(class, meta, 0) |= 1u << 5;
}

static void slot_elsewhere(void)
{
	++*cf_word(heap, first.slot);
}

static void frame_elsewhere(void)
{
	++*cf_word(heap, *cf_word(heap, first.slot));
}

static void pin_bit_of_unpinned(void)
{
	*cf_pinned_row(class, meta, 0) |= 1;
}

static void row_used_for_nothing(void)
{
	page->rows_used |= 2;
	meta[1] = cf_row_all(class, 1);
	*cf_pinned_row(class, meta, 1) = 0;
}

static void row_not_free(void)
{
	page->rows_free &= ~1u;
}

static void row_not_movable(void)
{
	page->rows_movable &= ~(cf_rows)1;
}

static void count_wrong(void)
{
	page->used++;
}

static void list_wrong(void)
{
	page->list = CF_STUCK;
}

static void link_wrong(void)
{
	page->prev = 1;
}

static void length_wrong(void)
{
	class->nr[CF_NOT_FULL]++;
}

static void open_wrong(void)
{
	class->open = NULL;
}

static void too_many(void)
{
	class->max_not_full = 0;
}

static void objects_wrong(void)
{
	class->objects++;
}

static void free_page_used(void)
{
	heap->free_page = page->page;
}

static void page_lost(void)
{
	heap->handle_pages++;
}

static void slot_not_free(void)
{
	*cf_word(heap, heap->free_slot) &= ~CF_FREE;
}

static void slot_lost(void)
{
	heap->free_slot = heap->fresh_slot;
}

static void frame_lost(void)
{
	heap->free_frames--;
}

static uint32_t *spine_of_large(void)
{
	return cf_word(heap, *cf_word(heap, large.slot));
}

static void spine_too_small(void)
{
	spine_of_large()[CF_SPINE_PAGES] = 100;
}

static void pages_elsewhere(void)
{
	spine_of_large()[CF_SPINE_FIRST] = page->page;
}

static void tail_lost(void)
{
	spine_of_large()[CF_SPINE_TAIL_STAMP]++;
}

static void slot_of_spine(void)
{
	spine_of_large()[CF_SPINE_SLOT]++;
}

static void page_used(void)
{
	spine_of_large()[CF_SPINE_FIRST] = page->page;
}

static void tail_unpinned(void)
{
	spine_of_large()[CF_SPINE_PINS]++;
}

static void pages_lost(void)
{
	heap->large_pages++;
	heap->handle_pages--;
}

static void slots_not_marked(void)
{
	cf_page(heap, heap->fresh_slot >> heap->page_shift)->list = CF_FULL;
}

static const struct breakage breakages[] = {
	{ "a free block is not pinned", pin_bit_of_free, CF_MOVING },
	{ "a block's slot says where the block is", slot_elsewhere, CF_MOVING },
	{ "the slot of a block is that of its first block-frame", frame_elsewhere, CF_NONMOVING },
	{ "a block's pins agree with the bitmap", pin_bit_of_unpinned, CF_MOVING },
	{ "a row marked used has a used block", row_used_for_nothing, CF_MOVING },
	{ "a row marked movable has an object that is not pinned", row_not_movable, CF_MOVING },
	{ "a row marked free has a free block", row_not_free, CF_MOVING },
	{ "a page's counts are those of its blocks", count_wrong, CF_MOVING },
	{ "a page is on the list that its blocks call for", list_wrong, CF_MOVING },
	{ "lists are linked both ways, pages of one size-class", link_wrong, CF_MOVING },
	{ "a list's end and length are right", length_wrong, CF_MOVING },
	{ "the open page is the last not-full one", open_wrong, CF_MOVING },
	{ "a size-class has at most K not-full pages (Invariant 1)", too_many, CF_MOVING },
	{ "the size-classes' counts are those of their pages", objects_wrong, CF_MOVING },
	{ "a page on the list of free pages is free", free_page_used, CF_MOVING },
	{ "each page is for objects, a large object's, for handles or listed as free", page_lost, CF_MOVING },
	{ "a large object's block is its spine", spine_too_small, CF_MOVING },
	{ "a large object's pages are its own", pages_elsewhere, CF_NONMOVING },
	{ "a large object's block is its spine", slot_of_spine, CF_MOVING },
	{ "a large object's pages are its own", page_used, CF_MOVING },
	{ "a large object has its tail", tail_lost, CF_MOVING },
	{ "a tail is pinned if its object is", tail_unpinned, CF_MOVING },
	{ "the heap's counts are those of its large objects", pages_lost, CF_MOVING },
	{ "pages of slots are marked, and no others", slots_not_marked, CF_MOVING },
	{ "a slot on the list of free slots is free", slot_not_free, CF_MOVING },
	{ "each slot is an object's or free", slot_lost, CF_MOVING },
	{ "each block-frame is an object's or free", frame_lost, CF_NONMOVING },
};

/* Does a checked dereference end the program? */
static bool faults(cf_handle handle, size_t offset, uint32_t block_size)
{
	if (setjmp(fault))
		return true;
	cf_deref_checked(heap, handle, offset, block_size);
	return false;
}

/* What CF_DEBUG makes of cf_deref() and cf_deref_nonmoving(): what is right passes, nothing else does. */
static bool derefs_are_checked(void *buffer, size_t size, enum cf_engine engine)
{
	const struct cf_config config = { .engine = engine, .pieces = true };
	uint32_t block = engine == CF_NONMOVING ? CF_BLOCK_SIZE : 0, other = block ? 0 : CF_BLOCK_SIZE;
	cf_handle null = { 0, 0 }, object, stale, pieces;
	size_t end, at;

	heap = cf_init(buffer, size, &config);
	if (cf_malloc(heap, 200, &object) || cf_malloc(heap, 10, &stale) || cf_free(heap, stale) ||
	    cf_malloc(heap, 3 * CF_PAGE_SIZE, &pieces))
		return false;
	end = cf_usable_size(heap, object);
	for (at = 0; at <= end; at++)
		if (faults(object, at, block))
			return false;
	for (at = 0; at < end; at++)
		if (cf_deref_checked(heap, object, at, block) !=
		    (block ? cf_deref_nonmoving(heap, object, at, block) : cf_deref(heap, object, at)))
			return false;
	return faults(object, end + 1, block) && faults(object, SIZE_MAX, block) &&
	       faults(object, 0, other) && faults(null, 0, block) && faults(stale, 0, block) &&
	       faults(pieces, 0, block) && faults((cf_handle){ UINT32_MAX, 8 }, 0, block);
}

/* A slot of a wide heap that has had all stamps is not used again: no handle ever comes back. */
static bool slots_are_retired(void *buffer, size_t size, enum cf_engine engine)
{
	const struct cf_config config = { .engine = engine, .wide = true, .seed = 7 };
	cf_handle object, other, last;
	struct cf_stats stats;
	size_t bound;

	heap = cf_init(buffer, size, &config);
	if (cf_malloc(heap, 60, &other) || cf_malloc(heap, 60, &object) ||
	    object.stamp != heap->stamp)
		return false;
	/* the object of the last stamp before the first comes again */
	last = (cf_handle){ object.slot, heap->stamp - CF_WIDE_STAMP_ONE };
	*cf_tag(heap, object.slot) = last.stamp;
	if (cf_check_handle(heap, object) != CF_ESTALE || cf_free(heap, last) || heap->retired != 1 ||
	    cf_verify(heap))
		return false;
	bound = cf_bound(heap, 60);
	while (!cf_malloc(heap, 60, &other)) {
		if (other.slot == object.slot)
			return false;
		bound -= !!bound;
	}
	cf_get_stats(heap, &stats);
	return !bound && cf_check_handle(heap, object) == CF_ESTALE &&
	       cf_check_handle(heap, last) == CF_ESTALE && !cf_verify(heap) && stats.objects > 1000;
}

/* Each use of a slot has another stamp, however many objects other slots have had. */
static bool stamps_are_the_slots(void *buffer, size_t size)
{
	const struct cf_config config = { .wide = true };
	cf_handle one, more;
	uint32_t stamp, i;

	heap = cf_init(buffer, size, &config);
	if (cf_malloc(heap, 60, &one))
		return false;
	for (i = 0; i < 1000; i++) {
		stamp = one.stamp;
		if (cf_malloc(heap, 60, &more) || cf_free(heap, more) || cf_free(heap, one) ||
		    cf_malloc(heap, 60, &one) || one.stamp != stamp + CF_WIDE_STAMP_ONE)
			return false;
	}
	return true;
}

/* Words that say what the slot of @object does: the same place, the same stamp. @odd: one word later. */
static void lie(uint32_t *words, size_t bytes, cf_handle object, size_t odd)
{
	size_t i;

	for (i = odd; i + 1 < bytes / 4; i += 2) {
		words[i] = *cf_word(heap, object.slot);
		words[i + 1] = object.stamp;
	}
}

/*
 * A free in a wide heap believes a slot. So it must not take anything else for one: not bytes of objects, nor
 * slots that were never used, not free ones either, whatever is in them.
 */
static bool nothing_passes_for_a_slot(void *buffer, size_t size)
{
	const struct cf_config config = { .wide = true, .pieces = true };
	cf_handle object, bytes, pieces, gone;
	uint32_t slot, i;
	size_t odd, length;
	void *piece;

	for (odd = 0; odd < 2; odd++) {
		/* as if all pages that were never used were ones of slots */
		for (i = 0; i < size / 4; i++)
			((uint32_t *)buffer)[i] = CF_SLOTS;
		heap = cf_init(buffer, size, &config);
		/* the stamp shall be no other object's */
		for (i = 0; i < 3; i++)
			if (cf_malloc(heap, 60, &object) || cf_free(heap, object))
				return false;
		if (cf_malloc(heap, 60, &object) || cf_malloc(heap, 8000, &bytes) ||
		    cf_malloc(heap, 2 * CF_PAGE_SIZE, &pieces) || cf_malloc(heap, 60, &gone) ||
		    cf_free(heap, gone))
			return false;
		lie(cf_deref(heap, bytes, 0), 8000, object, odd);
		piece = cf_at(heap, pieces, 0, &length);
		lie(piece, length, object, odd);
		lie(cf_word(heap, heap->fresh_slot), 4 * (heap->end_slot - heap->fresh_slot), object, odd);
		lie(cf_word(heap, heap->words - heap->page_mask - 1), heap->page_bytes, object, odd);
		gone.stamp = *cf_tag(heap, gone.slot);
		if (cf_free(heap, gone) != CF_ESTALE)
			return false;
		for (slot = 0; slot < heap->words; slot++)
			if (slot != object.slot &&
			    cf_free(heap, (cf_handle){ slot, object.stamp }) == CF_OK)
				return false;
		/* a slot's second word, and what follows; and what is not the stamp alone */
		*cf_tag(heap, gone.slot) = *cf_word(heap, object.slot);
		if (cf_free(heap, (cf_handle){ gone.slot + 1, *cf_word(heap, gone.slot + 2) }) == CF_OK ||
		    cf_pin(heap, object) ||
		    cf_free(heap, (cf_handle){ object.slot, *cf_tag(heap, object.slot) }) == CF_OK ||
		    cf_unpin(heap, object))
			return false;
		if (cf_verify(heap) || cf_free(heap, object) || cf_verify(heap))
			return false;
	}
	/* all slots are in use: none of them is taken for one that was never used */
	heap = cf_init(buffer, size, &config);
	while (heap->fresh_slot)
		if (cf_malloc(heap, 16, &object))
			return false;
	return !cf_free(heap, object) && !cf_verify(heap);
}

int main(void)
{
	unsigned int i, nr = sizeof(breakages) / sizeof(breakages[0]), wrong = 0;
	static const char *const checked[] = { "moving", "non-moving" };
	size_t size = 1 << 20;
	void *buffer = malloc(size);

	printf("TAP version 14\n1..%u\n", nr + 6);
	for (i = 0; i < nr; i++) {
		struct cf_config config = { .engine = breakages[i].engine, .pieces = true };
		const char *found = "nothing";
		cf_handle gone;

		heap = cf_init(buffer, size, &config);
		if (!cf_malloc(heap, 60, &first) && !cf_malloc(heap, 60, &second) &&
		    !cf_malloc(heap, 2 * CF_PAGE_SIZE + 1, &large) &&
		    !cf_malloc(heap, 60, &gone) && !cf_free(heap, gone) && !cf_verify(heap)) {
			page = cf_page(heap, *cf_word(heap, first.slot) >> heap->page_shift);
			meta = cf_word(heap, page->meta);
			class = (struct cf_class *)((char *)heap + page->class);
			breakages[i].make();
			found = cf_verify(heap);
		}
		if (!found || strcmp(found, breakages[i].sentence) != 0) {
			printf("# found: %s\nnot ", found ? found : "nothing");
			wrong++;
		}
		printf("ok %u cf_verify() sees to it: %s\n", i + 1, breakages[i].sentence);
	}
	for (i = 0; i < 2; i++) {
		bool holds = derefs_are_checked(buffer, size, i ? CF_NONMOVING : CF_MOVING);

		printf("%sok %u a checked dereference lets nothing wrong pass (%s)\n", holds ? "" : "not ",
		       nr + 1 + i, checked[i]);
		wrong += !holds;
	}
	for (i = 0; i < 2; i++) {
		bool holds = slots_are_retired(buffer, size, i ? CF_NONMOVING : CF_MOVING);

		printf("%sok %u a slot that had all stamps is never used again (%s)\n",
		       holds ? "" : "not ", nr + 3 + i, checked[i]);
		wrong += !holds;
	}
	if (!stamps_are_the_slots(buffer, size)) {
		printf("not ");
		wrong++;
	}
	printf("ok %u wide, each use of a slot has the next stamp\n", nr + 5);
	if (!nothing_passes_for_a_slot(buffer, size)) {
		printf("not ");
		wrong++;
	}
	printf("ok %u wide, nothing else passes for a slot\n", nr + 6);
	free(buffer);
	return wrong != 0;
}
