/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One heap of blocks, four ways to file those that are free. The functions that differ take the kind as
 * a constant and are inlined, so that each allocator costs what it would cost alone.
 */
#include "rivals.h"

#include <stdbool.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

enum kind { FIRST_FIT, BEST_FIT, HALF_FIT, TLSF };

#define FREE 1u /* in a block's size: the block is free */
#define BEFORE_FREE 2u /* and that before it */
#define FLAGS ((size_t)7)
#define OVERHEAD offsetof(struct block, next)
#define LEAST 24u /* bytes of the smallest object: two links, and what the next block needs of it */

/* TLSF: 32 second-level lists for each power of two; sizes below 256 bytes share the first one. */
#define SL_LOG2 5
#define SL (1u << SL_LOG2)
#define SMALL_LOG2 (SL_LOG2 + 3)
#define FL (40 - SMALL_LOG2 + 1)

struct block {
	struct block *before; /* in memory; valid if that is free: its last word else */
	size_t size; /* of the object, and flags */
	struct block *next; /* these two only in free blocks */
	struct block *prev;
};

struct rival {
	struct block *list; /* First-fit, Best-fit */
	uint64_t bits; /* Half-fit: lists that are not empty; TLSF: first levels */
	uint32_t second[FL];
	struct block *lists[FL * SL];
	struct block *first; /* of all, in memory */
};

INLINE size_t size_of(const struct block *block)
{
	return block->size & ~FLAGS;
}

INLINE struct block *after(struct block *block)
{
	return (struct block *)((char *)block + offsetof(struct block, next) + size_of(block) -
				sizeof(void *));
}

INLINE unsigned int log2_of(size_t size)
{
	return 63 - (unsigned int)__builtin_clzl(size);
}

/* ------ where free blocks are filed ---------------------------------------------------------------- */

INLINE void tlsf_map(size_t size, unsigned int *fl, unsigned int *sl)
{
	unsigned int top;

	if (size < 1u << SMALL_LOG2) {
		*fl = 0;
		*sl = (unsigned int)(size >> 3);
		return;
	}
	top = log2_of(size);
	*fl = top - SMALL_LOG2 + 1;
	*sl = (unsigned int)(size >> (top - SL_LOG2)) - SL;
}

INLINE struct block **head_for(enum kind kind, struct rival *heap, size_t size)
{
	unsigned int fl, sl;

	if (kind == HALF_FIT)
		return &heap->lists[log2_of(size)];
	if (kind == TLSF) {
		tlsf_map(size, &fl, &sl);
		return &heap->lists[fl * SL + sl];
	}
	return &heap->list;
}

INLINE void file(enum kind kind, struct rival *heap, struct block *block)
{
	struct block **head = head_for(kind, heap, size_of(block));
	unsigned int fl, sl;

	block->prev = NULL;
	block->next = *head;
	if (*head)
		(*head)->prev = block;
	*head = block;
	if (kind == HALF_FIT) {
		heap->bits |= (uint64_t)1 << log2_of(size_of(block));
	} else if (kind == TLSF) {
		tlsf_map(size_of(block), &fl, &sl);
		heap->bits |= (uint64_t)1 << fl;
		heap->second[fl] |= 1u << sl;
	}
}

INLINE void unfile(enum kind kind, struct rival *heap, struct block *block)
{
	unsigned int fl, sl;

	if (block->next)
		block->next->prev = block->prev;
	if (block->prev) {
		block->prev->next = block->next;
		return;
	}
	*head_for(kind, heap, size_of(block)) = block->next;
	if (block->next)
		return;
	if (kind == HALF_FIT) {
		heap->bits &= ~((uint64_t)1 << log2_of(size_of(block)));
	} else if (kind == TLSF) {
		tlsf_map(size_of(block), &fl, &sl);
		heap->second[fl] &= ~(1u << sl);
		if (!heap->second[fl])
			heap->bits &= ~((uint64_t)1 << fl);
	}
}

/* A free block of at least @size bytes, or NULL. */
INLINE struct block *find(enum kind kind, struct rival *heap, size_t size)
{
	struct block *block = NULL, *best = NULL;
	unsigned int fl, sl, index;
	uint64_t bits;
	uint32_t seconds;

	switch (kind) {
	case FIRST_FIT:
		for (block = heap->list; block; block = block->next)
			if (size_of(block) >= size)
				break;
		return block;
	case BEST_FIT:
		for (block = heap->list; block; block = block->next)
			if (size_of(block) >= size && (!best || size_of(block) < size_of(best)))
				best = block;
		return best;
	case HALF_FIT:
		/* a list all of whose blocks fit: that is what loses up to half of the memory */
		index = log2_of(size);
		index += !!(size & (size - 1));
		bits = heap->bits >> index;
		return bits ? heap->lists[index + (unsigned int)__builtin_ctzl(bits)] : NULL;
	case TLSF:
		/* likewise, in steps of 1/32 */
		if (size >= 1u << SMALL_LOG2)
			size += ((size_t)1 << (log2_of(size) - SL_LOG2)) - 1;
		tlsf_map(size, &fl, &sl);
		seconds = heap->second[fl] & ~0u << sl;
		if (!seconds) {
			bits = heap->bits & (fl < 63 ? ~(uint64_t)0 << (fl + 1) : 0);
			if (!bits)
				return NULL;
			fl = (unsigned int)__builtin_ctzl(bits);
			seconds = heap->second[fl];
		}
		return heap->lists[fl * SL + (unsigned int)__builtin_ctz(seconds)];
	}
	return NULL;
}

/* ------ blocks ------------------------------------------------------------------------------------- */

INLINE void *alloc(enum kind kind, struct rival *heap, size_t size)
{
	struct block *block, *rest;

	size = (size + 7) & ~(size_t)7;
	if (size < LEAST)
		size = LEAST;
	block = find(kind, heap, size);
	if (!block)
		return NULL;
	unfile(kind, heap, block);
	if (size_of(block) >= size + sizeof(*block)) {
		/* what is left over: its header is one word, the other belongs to the object before */
		rest = (struct block *)((char *)block + OVERHEAD + size - sizeof(void *));
		rest->size = (size_of(block) - size - sizeof(rest->size)) | FREE;
		block->size = size | (block->size & FLAGS);
		after(rest)->before = rest;
		file(kind, heap, rest);
	} else {
		after(block)->size &= ~(size_t)BEFORE_FREE;
	}
	block->size &= ~(size_t)FREE;
	return &block->next;
}

INLINE void release(enum kind kind, struct rival *heap, void *object)
{
	struct block *block = (struct block *)((char *)object - OVERHEAD);
	struct block *next = after(block), *before;

	if (block->size & BEFORE_FREE) {
		before = block->before;
		unfile(kind, heap, before);
		before->size += size_of(block) + sizeof(block->size);
		block = before;
	}
	if (next->size & FREE) {
		unfile(kind, heap, next);
		block->size += size_of(next) + sizeof(next->size);
		next = after(block);
	}
	block->size |= FREE;
	next->size |= BEFORE_FREE;
	next->before = block;
	file(kind, heap, block);
}

struct rival *rival_init(void *memory, size_t size)
{
	struct rival *heap = memory;
	struct block *last;
	size_t i;

	heap->list = NULL;
	heap->bits = 0;
	for (i = 0; i < FL; i++)
		heap->second[i] = 0;
	for (i = 0; i < FL * SL; i++)
		heap->lists[i] = NULL;
	/* one free block, and an end that is never free: its size word is all there is of it */
	heap->first = (struct block *)(heap + 1);
	heap->first->size = ((size - sizeof(*heap) - OVERHEAD - sizeof(last->size)) & ~FLAGS) | FREE;
	last = after(heap->first);
	last->size = BEFORE_FREE;
	last->before = heap->first;
	return heap;
}

#define ALLOCATOR(name, kind)                                      \
	void name##_begin(struct rival *heap)                      \
	{                                                          \
		file(kind, heap, heap->first);                     \
	}                                                          \
	void *name##_alloc(struct rival *heap, size_t size)        \
	{                                                          \
		return alloc(kind, heap, size);                    \
	}                                                          \
	void name##_free(struct rival *heap, void *object)         \
	{                                                          \
		release(kind, heap, object);                       \
	}

ALLOCATOR(first_fit, FIRST_FIT)
ALLOCATOR(best_fit, BEST_FIT)
ALLOCATOR(half_fit, HALF_FIT)
ALLOCATOR(tlsf, TLSF)

const char *rival_verify(struct rival *heap)
{
	struct block *block = heap->first, *next;
	size_t in_memory = 0, listed = 0, i;

	for (; size_of(block); block = next) {
		next = after(block);
		if (!!(next->size & BEFORE_FREE) != !!(block->size & FREE))
			return "a block knows whether the one before is free";
		if (block->size & FREE) {
			if (next->before != block)
				return "a block knows where the free one before begins";
			if (next->size & FREE)
				return "free neighbours are one block";
			in_memory++;
		}
	}
	for (block = heap->list; block; block = block->next)
		listed++;
	for (i = 0; i < FL * SL; i++)
		for (block = heap->lists[i]; block; block = block->next) {
			if (!(block->size & FREE))
				return "a listed block is free";
			listed++;
		}
	return in_memory == listed ? NULL : "each free block is listed once";
}
