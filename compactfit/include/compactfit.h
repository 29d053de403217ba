/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * compactfit: a compacting allocator with bounded time and bounded fragmentation.
 *
 * After Craciunas, Kirsch, Payer, Sokolova, Stadler, Staudinger: "A Compacting Real-Time Memory
 * Management System", USENIX ATC 2008 ("the paper" below). Objects are reached through handles, so
 * that freeing one object may move one other of the same size-class into its place: a size-class
 * never has more than K pages that are not full. Time is constant, or linear in the size of the
 * object at hand; memory that can be allocated depends on the live objects, not on the past.
 *
 * Two engines, chosen for each heap:
 *
 * - moving (the paper's CFM): an object is contiguous, compaction copies it;
 * - non-moving (CFNM): an object is a row of block-frames that never move, compaction copies their
 *   numbers. Its bytes are reached piece by piece.
 *
 * Freestanding C11: no libc, no memory but the caller's buffer, no globals. Any number of heaps.
 *
 * Time is given in terms of the request: "constant" means bounded by a number of instructions that
 * depends on nothing; O(size) on the size of one object. The heap's size never matters.
 *
 * Concurrency: calls for one heap must not overlap, unless the heap was given lock hooks. What
 * cf_deref() and cf_at() return is valid until the next cf_free(), cf_realloc(), cf_unpin() or
 * cf_compact() of anybody; that of a pinned object until it is unpinned.
 */
#ifndef COMPACTFIT_H
#define COMPACTFIT_H

#ifdef __KERNEL__ /* Linux: it has these types, and none of the headers */
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct cf_heap;

/*
 * An object: the paper's abstract address and a stamp that tells its objects apart. It stays the
 * same, wherever the object moves, until the object is freed. All zero: no object.
 */
typedef struct cf_handle {
	uint32_t slot;
	uint32_t stamp;
} cf_handle;

/* Results. Whatever is not CF_OK changed nothing. */
enum cf_status {
	CF_OK = 0,
	CF_ENOMEM = -1, /* no memory for this size now */
	CF_ESIZE = -2, /* a size of 0, or more than cf_max_size() */
	CF_EINVAL = -3, /* an argument that is never right */
	CF_ESTALE = -4, /* not the handle of a live object of this heap: freed, or foreign */
	CF_EPINNED = -5, /* the object is pinned */
	CF_EPINS = -6, /* pinned CF_MAX_PINS times, or to be unpinned and not pinned */
};

enum cf_engine {
	CF_MOVING,
	CF_NONMOVING,
};

#define CF_PAGE_SIZE 16384u /* default bytes of a page: the paper's, Section 3.1 */
#define CF_BLOCK_SIZE 64u /* default bytes of a block-frame */
#define CF_MAX_CLASSES 80 /* size-classes a heap can have */
#define CF_MAX_PINS 7 /* times an object can be pinned at once */
#define CF_UNLIMITED 0xffffu /* as max_not_full: never compact */

/* What a heap shall be; all zero is a good choice. */
struct cf_config {
	enum cf_engine engine;
	/* Bytes of a page, a power of two of 256 to 65,536. 0: CF_PAGE_SIZE. */
	uint32_t page_size;
	/* Non-moving: bytes of a block-frame, a power of two of 16 to page_size. 0: CF_BLOCK_SIZE. */
	uint32_t block_size;
	/* The paper's K: pages of a size-class that may be not full. 0: 1, always compact. */
	uint16_t max_not_full;
	/* K for each size-class, CF_MAX_CLASSES of them, 0: as max_not_full. NULL: all alike. */
	const uint16_t *class_max_not_full;
	/* Leave compaction to cf_compact(). */
	bool deferred;
	/* 8 bytes an object instead of 4 for its reference: stamps of 29 bits in any heap. */
	bool wide;
	/*
	 * Where stamps start, beside the heap's address. Another one each time a heap is made in the same
	 * buffer keeps handles of the earlier one from being taken for the new one's.
	 */
	uint32_t seed;
	/* Called with lock_arg around each operation; both or neither. */
	void (*lock)(void *arg);
	void (*unlock)(void *arg);
	void *lock_arg;
};

/* A heap at one moment. */
struct cf_stats {
	size_t pages; /* pages for objects and handles */
	size_t free_pages;
	size_t handle_pages;
	size_t not_full_pages;
	size_t stuck_pages; /* not full, and all of their objects pinned */
	size_t objects;
	size_t pinned; /* pinned objects */
	size_t free_blocks; /* non-moving: free block-frames */
	uint64_t moves; /* objects moved since cf_init(); of each size-class modulo 2^32 */
	uint64_t moved_bytes;
};

/**
 * cf_init() - make a heap of a buffer
 * @buffer: memory that the heap may use; any alignment
 * @size: its bytes; what is before the first multiple of the page size is lost
 * @config: NULL: all defaults; not used after the call
 *
 * Constant time: nothing but the heap's own tables of constant size is written.
 * Return: the heap, which lies in the buffer and dies with it; NULL if the configuration is wrong, or
 * the buffer larger than 8 GiB or too small: the heap itself takes 10 KB, and there have to be two pages.
 */
struct cf_heap *cf_init(void *buffer, size_t size, const struct cf_config *config);

/**
 * cf_malloc() - allocate an object
 * @heap: the heap
 * @size: bytes, 1 to cf_max_size()
 * @handle: set to the new object; to all zero on failure
 *
 * The object's content is undefined. It is aligned as a C object of that size can ask for: to the
 * largest power of two that divides @size, up to 16.
 *
 * Moving: constant time. Non-moving: O(@size). Fails if and only if neither a not-full page of the
 * size-class nor a free page is left, or no memory for the handle.
 * Return: CF_OK, CF_ESIZE, CF_ENOMEM.
 */
int cf_malloc(struct cf_heap *heap, size_t size, cf_handle *handle);

/** cf_calloc() - cf_malloc(@count * @size), zeroed; CF_ESIZE if that overflows. O(size). */
int cf_calloc(struct cf_heap *heap, size_t count, size_t size, cf_handle *handle);

/**
 * cf_aligned_alloc() - cf_malloc() at a multiple of @align, wherever the object moves
 * @align: a power of two, up to the page size, or up to the block size in a non-moving heap
 *
 * Takes a block whose size is a multiple of @align: as good as free up to an eighth of @size, else up
 * to a whole page.
 * Return: as cf_malloc(), CF_EINVAL for another @align.
 */
int cf_aligned_alloc(struct cf_heap *heap, size_t align, size_t size, cf_handle *handle);

/**
 * cf_realloc() - change the size of an object
 * @size: the new size in bytes
 *
 * The handle stays. Content is kept up to the lesser of both sizes. Nothing is done while the
 * size-class stays the same. The moving engine copies the content otherwise; the non-moving engine
 * adds or removes block-frames. The old block is freed as by cf_free(). An alignment beyond that of
 * cf_malloc() is not kept.
 *
 * O(old and new size).
 * Return: CF_OK, CF_ESIZE, CF_ENOMEM, CF_ESTALE, CF_EPINNED.
 */
int cf_realloc(struct cf_heap *heap, cf_handle handle, size_t size);

/**
 * cf_free() - free an object
 *
 * May move one other object of the size-class into its place (the paper's Rule 2): if the object's
 * page was full and the size-class has K not-full pages already, and the heap is not deferred. That
 * needs K - 1 earlier frees in the size-class that no allocation followed, as long as nothing is pinned
 * (Proposition 1, corrected: see docs/compactfit.md).
 *
 * Moving: constant time, O(size) if it moves an object. Non-moving: O(size).
 * Return: CF_OK, CF_ESTALE (also for a double free), CF_EPINNED.
 */
int cf_free(struct cf_heap *heap, cf_handle handle);

/**
 * cf_check_handle() - is this a live object?
 *
 * Whose object was freed is found out, but if its slot was used again and a multiple of 2^b allocations
 * after its own has made the object that is there now. b is the bits of a stamp: 29 in wide heaps and
 * those above 8 MiB, else 31 less the binary logarithm of the heap's bytes (8 for 8 MiB, 15 for 64 KiB).
 * A handle of another heap passes in one case of 2^b.
 *
 * Constant time. Return: CF_OK or CF_ESTALE.
 */
int cf_check_handle(struct cf_heap *heap, cf_handle handle);

/**
 * cf_usable_size() - bytes that the object may use: at least what was asked for; 0 if stale
 *
 * Constant time.
 */
size_t cf_usable_size(struct cf_heap *heap, cf_handle handle);

/**
 * cf_deref() - address of a byte of an object of a moving heap
 *
 * The paper's dereference(): one load more than a plain pointer costs, nothing checked.
 */
static inline void *cf_deref(const struct cf_heap *heap, cf_handle handle, size_t offset)
{
	const uint32_t *words = (const uint32_t *)heap;

	return (char *)(uintptr_t)heap + ((size_t)words[handle.slot] << 2) + offset;
}

/**
 * cf_at() - address of a byte of an object, checked, in a heap of either engine
 * @length: set to the bytes from there that are contiguous; may be NULL
 *
 * Constant time. Return: NULL if the handle is stale or @offset beyond the object.
 */
void *cf_at(struct cf_heap *heap, cf_handle handle, size_t offset, size_t *length);

/**
 * cf_pin() - keep an object where it is, and alive
 *
 * Nests up to CF_MAX_PINS. A page all of whose objects are pinned cannot be compacted; each pinned
 * object may cost one page beyond the bound of K (cf_bound() knows).
 * Constant time. Return: CF_OK, CF_ESTALE, CF_EPINS.
 */
int cf_pin(struct cf_heap *heap, cf_handle handle);

/**
 * cf_unpin() - take one cf_pin() back
 *
 * May move the object at once, if its page could not be compacted before. O(size).
 * Return: CF_OK, CF_ESTALE, CF_EPINS.
 */
int cf_unpin(struct cf_heap *heap, cf_handle handle);

/**
 * cf_compact() - do compaction that was deferred
 * @budget: bytes that may be moved
 *
 * Moves objects, each whole, until no size-class has more than K not-full pages, or the next object
 * would exceed the budget. Time: O(@budget), at most O(one page) per not-full page.
 * Return: bytes moved. Nothing is left to do if cf_debt() is 0.
 */
size_t cf_compact(struct cf_heap *heap, size_t budget);

/** cf_debt() - not-full pages beyond K that cf_compact() would remove. O(size-classes). */
size_t cf_debt(struct cf_heap *heap);

/**
 * cf_bound() - how many more objects of a size will be had, whatever happened before
 * @size: bytes
 *
 * Counts what is live now, by size-class, as if it lay as badly as it possibly could (see
 * docs/compactfit.md); so it holds for any history, and for frees in between, not for more pins. What
 * cf_malloc() really allocates may be more, never less.
 *
 * O(size-classes). Return: the number of objects, 0 for a wrong size.
 */
size_t cf_bound(struct cf_heap *heap, size_t size);

/** cf_max_size() - the largest object that the heap's configuration allows. Constant. */
size_t cf_max_size(const struct cf_heap *heap);

/** cf_class_count() - size-classes of the heap. Constant. */
unsigned int cf_class_count(const struct cf_heap *heap);

/** cf_class_size() - bytes of an object of size-class @index; 0 if there is none. Constant. */
size_t cf_class_size(const struct cf_heap *heap, unsigned int index);

/** cf_class_per_page() - objects in a page of size-class @index; 0 if there is none. Constant. */
unsigned int cf_class_per_page(const struct cf_heap *heap, unsigned int index);

/** cf_class_of() - the size-class that serves @size; -1 if none does. Constant. */
int cf_class_of(const struct cf_heap *heap, size_t size);

/** cf_get_stats() - what the heap holds. O(size-classes). */
void cf_get_stats(struct cf_heap *heap, struct cf_stats *stats);

/**
 * cf_verify() - do all invariants hold?
 *
 * For tests. O(heap). Return: NULL, or the sentence that does not hold.
 */
const char *cf_verify(struct cf_heap *heap);

#ifdef __cplusplus
}
#endif

#endif /* COMPACTFIT_H */
