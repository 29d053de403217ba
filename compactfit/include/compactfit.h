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
 * An object larger than a page lies in pages of its own and, with its last bytes, beside smaller
 * ones; it too is reached piece by piece, by cf_at(), and has to be asked for: see
 * cf_config.pieces.
 *
 * Freestanding C11: no libc, no memory but the caller's buffer, no globals. Any number of heaps.
 *
 * Time is given in terms of the request: "constant" means bounded by a number of instructions that
 * depends on nothing; O(size) on the size of one object. The heap's size never matters. How many
 * instructions that are is derived from the machine code: docs/compactfit.md has the ceilings.
 *
 * A handle of an object that was freed is refused: always in a wide heap, which each heap above 8
 * MiB is. In the others there is one exception: it is accepted, as that of another object, if
 * that uses the same slot and was allocated 2^b stamps later or a multiple of that. An object
 * takes a stamp, one in pieces two. 2^b is 256 in a heap of 8 MiB, 2,048 in one of 1 MiB, 32,768 in
 * one of 64 KiB. Whatever a handle is, the heap stays sound. See cf_check_handle().
 *
 * Concurrency: calls for one heap must not overlap, unless the heap was given lock hooks. What
 * cf_deref() and cf_at() return is valid until the next cf_free(), cf_realloc(), cf_unpin() or
 * cf_compact() of anybody, in a heap with remote frees until the next allocation, even one that
 * fails, or cf_drain() too; that of a pinned object until it is unpinned.
 *
 * For many cores: a heap for each, without locks. Its owner pins an object and hands its address
 * and handle to another core, which gives it back with cf_free_remote(); the owner frees it in
 * time.
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
 * An object: the paper's abstract address and a stamp that tells its objects apart, in a heap
 * that is not wide but for those that are 2^b allocations apart, see cf_check_handle(). It stays
 * the same, wherever the object moves, until the object is freed. All zero: no object.
 */
typedef struct cf_handle {
	uint32_t slot;
	uint32_t stamp;
} cf_handle;

/* Results. Whatever is not CF_OK changed nothing, but that remote frees that were due were done. */
enum cf_status {
	CF_OK = 0,
	CF_ENOMEM = -1, /* no memory for this size now */
	CF_ESIZE = -2, /* a size of 0, or more than cf_max_size() */
	CF_EINVAL = -3, /* an argument that is never right */
	CF_ESTALE = -4, /* not the handle of a live object of this heap: freed, or foreign */
	CF_EPINNED = -5, /* the object is pinned */
	CF_EPINS = -6, /* pinned CF_MAX_PINS times, or to be unpinned and not pinned */
	CF_EAGAIN = -7, /* the ring of remote frees is full: later */
};

enum cf_engine {
	CF_MOVING,
	CF_NONMOVING,
};

#define CF_PAGE_SIZE 16384u /* bytes of a page: the paper's, Section 3.1 */
#define CF_BLOCK_SIZE 64u /* default bytes of a block-frame */
#define CF_MAX_CLASSES 80 /* size-classes a heap can have */
#define CF_MAX_PINS 5 /* times an object can be pinned at once */
#define CF_MAX_REMOTE 65536u /* entries of a ring of remote frees */
#define CF_UNLIMITED 0xffffu /* as max_not_full: never compact */

/* What a heap shall be; all zero is a good choice. */
struct cf_config {
	enum cf_engine engine;
	/*
	 * Bytes of a page, a power of two of 256 to 65,536: the largest object that is in one
	 * piece. 0: what suits the buffer's size. That is CF_PAGE_SIZE from 1 MiB on, less below:
	 * a 128th of the buffer, rounded down to a power of two, 512 at least; and twice
	 * CF_PAGE_SIZE from 6 MiB on, on machines of 64 bits. Non-moving: CF_PAGE_SIZE.
	 */
	uint32_t page_size;
	/*
	 * Non-moving: bytes of a block-frame, a power of two of 16 to page_size. 0: CF_BLOCK_SIZE.
	 */
	uint32_t block_size;
	/*
	 * The paper's K: pages of a size-class that may be not full. 0: 1, always compact.
	 * Non-moving: more of them leave less memory for block-frames, up to an eighth of the
	 * heap.
	 */
	uint16_t max_not_full;
	/* Leave compaction to cf_compact(). */
	bool deferred;
	/*
	 * 8 bytes an object instead of 4 for its slot: no stale handle is accepted, ever. Heaps
	 * above 8 MiB are wide anyway. A free takes 14 instructions more, a malloc 7 to 12.
	 */
	bool wide;
	/*
	 * Moving: allow objects larger than a page, which are in pieces and reached by cf_at().
	 * They are refused else, so that all of an object may be written at the address that
	 * cf_deref() gives. A non-moving heap always has them: there any object above block_size
	 * is in pieces.
	 */
	bool pieces;
	/*
	 * Entries of the ring for cf_free_remote(), 8 bytes each, up to CF_MAX_REMOTE, rounded up
	 * to a power of two. 0: no remote frees. More is wrong where the compiler has no lock-free
	 * atomic integers.
	 */
	uint32_t remote_frees;
	/*
	 * Where stamps start, beside the heap's address. Another one (1, 2, 3, ... will do) each
	 * time a heap is made in the same buffer makes handles of the earlier one those of another
	 * heap, see cf_check_handle(); with the same one they are as good as the new one's.
	 */
	uint32_t seed;
	/* K for each size-class, CF_MAX_CLASSES of them, 0: as max_not_full. NULL: all alike. */
	const uint16_t *class_max_not_full;
	/*
	 * Called with lock_arg around each operation; both or neither. They must return (no
	 * exception, no longjmp()), and must not call anything of the heap that they lock: the
	 * heap is being changed, and nothing would notice.
	 */
	void (*lock)(void *arg);
	void (*unlock)(void *arg);
	void *lock_arg;
};

/* A heap at one moment. */
struct cf_stats {
	size_t pages; /* pages for objects and handles */
	size_t free_pages;
	size_t handle_pages;
	size_t large_pages; /* of objects larger than a page */
	size_t not_full_pages;
	size_t stuck_pages; /* not full, and all of their objects pinned */
	size_t objects;
	size_t pinned; /* pinned objects */
	size_t free_blocks; /* non-moving: free block-frames */
	size_t remote_failed; /* remote frees that came to nothing: stale, or pinned twice */
	uint64_t moves; /* objects moved since cf_init(); of each size-class modulo 2^32 */
	uint64_t moved_bytes;
};

/**
 * cf_init() - make a heap of a buffer
 * @buffer: memory that the heap may use; any alignment
 * @size: its bytes; what is before the first multiple of the page size is lost, in a non-moving
 *	heap of the block size
 * @config: NULL: all defaults; not used after the call
 *
 * O(remote_frees): nothing but the heap's own tables of constant size is written, and the ring of
 * remote frees.
 * Return: the heap, which lies in the buffer and dies with it; NULL if the configuration is wrong,
 * or the buffer larger than 8 GiB or too small: the heap itself takes 3 KB with pages of 512 bytes,
 * 8 KB with pages of 16 KiB, and what describes pages, in a moving heap rounded up to whole pages;
 * and there have to be two pages.
 */
struct cf_heap *cf_init(void *buffer, size_t size, const struct cf_config *config);

/**
 * cf_malloc() - allocate an object
 * @heap: the heap
 * @size: bytes, 1 to cf_max_size()
 * @handle: set to the new object; to all zero on failure. In a heap with remote frees it must not
 *	lie in an object of that heap that is not pinned: the object may move before
 *
 * The object's content is undefined. It is aligned as a C object of that size can ask for: to the
 * largest power of two that divides @size, up to 16.
 *
 * Moving: constant time, O(@size) above cf_max_contiguous(). Non-moving: O(@size). Fails if and
 * only if neither a not-full page of the size-class nor a free page is left, or no memory for the
 * handle, or, in a non-moving heap, fewer free block-frames than the object needs; if the object is
 * larger than a page, for any of its parts.
 * Return: CF_OK, CF_ESIZE, CF_ENOMEM.
 */
int cf_malloc(struct cf_heap *heap, size_t size, cf_handle *handle);

/**
 * cf_calloc() - allocate an object that is zeroed
 * @heap: the heap
 * @count: elements
 * @size: bytes of an element
 * @handle: set to the new object, as by cf_malloc()
 *
 * O(@count * @size).
 * Return: as cf_malloc() for @count * @size bytes, CF_ESIZE if that overflows.
 */
int cf_calloc(struct cf_heap *heap, size_t count, size_t size, cf_handle *handle);

/**
 * cf_aligned_alloc() - cf_malloc() at a multiple of @align, wherever the object moves
 * @heap: the heap
 * @align: a power of two, up to the page size, or up to the block size in a non-moving heap
 * @size: bytes, 1 to cf_max_size()
 * @handle: set to the new object, as by cf_malloc()
 *
 * Takes the smallest block whose size is a multiple of @align. Blocks are as large as their pages
 * allow, so most are multiples of 16 and of no more: above 16 the block may be 2.1 times that of
 * cf_malloc(), above an eighth of @size up to a whole page.
 * Return: as cf_malloc(), CF_EINVAL for another @align.
 */
int cf_aligned_alloc(struct cf_heap *heap, size_t align, size_t size, cf_handle *handle);

/**
 * cf_realloc() - change the size of an object
 * @heap: the heap
 * @handle: the object
 * @size: the new size in bytes
 *
 * The handle stays. Content is kept up to the lesser of both sizes. Nothing is done while the
 * size-class stays the same. The moving engine copies the content otherwise; the non-moving engine
 * adds or removes block-frames. Of an object larger than a page the pages stay, as many as are
 * needed, and the rest is copied. What is not needed any more is freed as by cf_free(). An
 * alignment beyond that of cf_malloc() is not kept.
 *
 * O(old and new size). The new block, of an object larger than a page its spine and its last bytes,
 * is taken before the old one is given back: even to get smaller needs memory.
 * Return: CF_OK, CF_ESIZE, CF_ENOMEM, CF_ESTALE, CF_EPINNED.
 */
int cf_realloc(struct cf_heap *heap, cf_handle handle, size_t size);

/**
 * cf_free() - free an object
 * @heap: the heap
 * @handle: the object, or any 64 bits: what cf_check_handle() does not take for an object is
 *	refused. The handle of no object, all zero, is: unlike free(NULL), it gets CF_ESTALE, and
 *	nothing is done; ignore the result where that is wanted
 *
 * May move one other object of the size-class into its place (the paper's Rule 2): if the object's
 * page was full and the size-class has K not-full pages already, and the heap is not deferred. That
 * needs K - 1 earlier frees in the size-class that no allocation followed, as long as nothing is
 * pinned (Proposition 1, corrected: see docs/compactfit.md).
 *
 * Moving: constant time, O(size) if it moves an object. Non-moving: O(size). An object larger than
 * a page is two objects and its pages: O(pages), and it may move two.
 * Return: CF_OK, CF_ESTALE (also for a double free that cf_check_handle() knows for one),
 * CF_EPINNED.
 */
int cf_free(struct cf_heap *heap, cf_handle handle);

/**
 * cf_free_remote() - ask the owner of a heap to free an object
 * @heap: a heap of any core, with remote_frees in its configuration
 * @handle: the object
 *
 * For any core, and any number of them at once, in any context: takes no lock, the heap's hooks are
 * not called. (A core that stops halfway keeps the owner from what comes behind, until it goes on.)
 * The object must not be used any more. It is freed when the owner calls cf_malloc(), cf_calloc(),
 * cf_aligned_alloc() or cf_free(), which take two remote frees each before what they are called
 * for, or cf_drain(). The object may be pinned once, and that pin ends too: by it the owner keeps
 * the object where it is while others use it.
 *
 * Constant time, and again for each time that another core was faster. An operation of the owner
 * that takes two frees is bounded by its own size and theirs.
 * Return: CF_OK, CF_EAGAIN (nothing was done), CF_ESTALE for no object, CF_EINVAL for a heap
 * without remote frees. What else may be wrong shows later, in cf_stats.remote_failed.
 */
int cf_free_remote(struct cf_heap *heap, cf_handle handle);

/**
 * cf_drain() - do remote frees now
 * @heap: the heap
 * @most: how many at most
 *
 * For the heap's owner. Time: that of as many cf_free().
 * Return: how many there were.
 */
size_t cf_drain(struct cf_heap *heap, size_t most);

/**
 * cf_check_handle() - is this a live object?
 * @heap: the heap
 * @handle: any 64 bits
 *
 * A handle whose object was freed is refused. In a wide heap (cf_config.wide, and any above 8
 * MiB) that is certain: stamps are counted by slot, and after 2^29 uses a slot is never used
 * again, which loses its 8 bytes, in a non-moving heap a block-frame.
 *
 * In any other heap it is accepted if its slot is used again by an object that has the stamp that
 * comes 2^b stamps after its own, or a multiple of that. Each allocation of an object takes one,
 * whatever its slot; of an object in pieces two, and more when it is resized. So a program
 * that frees and allocates the same slot all the time gets CF_ESTALE for 2^b - 1 reuses of it, if
 * its objects are in pieces for half as many, and CF_OK at the next. b is the bits of a stamp: 31
 * less the binary logarithm of the heap's bytes, rounded up (8 for 8 MiB, 9 for 3 MiB, 15 for 64
 * KiB).
 *
 * A handle of another heap passes in one case of 2^b, b being 29 in a wide heap.
 *
 * Constant time.
 * Return: CF_OK or CF_ESTALE.
 */
int cf_check_handle(struct cf_heap *heap, cf_handle handle);

/**
 * cf_usable_size() - bytes that the object may use
 * @heap: the heap
 * @handle: the object
 *
 * Constant time.
 * Return: at least what was asked for; 0 if the handle is stale.
 */
size_t cf_usable_size(struct cf_heap *heap, cf_handle handle);

/**
 * cf_deref_checked() - what cf_deref() and cf_deref_nonmoving() are where CF_DEBUG is defined
 * @heap: the heap
 * @handle: the object
 * @offset: of the byte in the object, or the first one behind it
 * @block_size: that of a non-moving heap, 0 for a moving one
 *
 * Ends the program (CF_FAULT() of the library, a trap unless it is defined) if the handle is not
 * that of a live object, the object lies in pieces, @offset is beyond it, or the heap is of the
 * other engine or has other block-frames. Takes no lock, as they take none, but reads what other
 * calls change: in a heap with lock hooks hold the lock, or use cf_at(). Constant time.
 * Return: the address.
 */
void *cf_deref_checked(const struct cf_heap *heap, cf_handle handle, size_t offset,
		       uint32_t block_size);

/**
 * cf_deref() - address of a byte of an object of a moving heap
 * @heap: the heap
 * @handle: the object
 * @offset: of the byte in the object
 *
 * The paper's dereference(): one load more than a plain pointer costs, nothing checked. Not for
 * objects larger than cf_max_contiguous(): they have no one address.
 *
 * Where CF_DEBUG is defined, a handle that is stale, of an object in pieces or all zero, and an
 * @offset beyond the object end the program: see cf_deref_checked(). Where it is not, a stale
 * handle may lead anywhere in the heap, on machines of 64 bits also 8 to 16 GiB behind its
 * beginning, as free slots do. All zero leads to address 0, on machines of 64 bits 16
 * GiB behind the heap: where there is a memory management unit and nothing is mapped there, that
 * faults, and it never is the heap.
 * Return: the address.
 */
static inline void *cf_deref(const struct cf_heap *heap, cf_handle handle, size_t offset)
{
#ifdef CF_DEBUG
	return cf_deref_checked(heap, handle, offset, 0);
#else
	const uint32_t *words = (const uint32_t *)heap;

	/* a number, as in 32 bits that of all zero wraps, which a pointer must not */
	return (void *)((uintptr_t)heap + ((uintptr_t)words[handle.slot] << 2) + offset);
#endif
}

/**
 * cf_deref_nonmoving() - address of a byte of an object of a non-moving heap
 * @heap: the heap
 * @handle: the object
 * @offset: of the byte in the object
 * @block_size: that of the heap; faster if it is a constant
 *
 * The paper's dereference() there: two loads more than a plain pointer costs, nothing checked. What
 * is contiguous ends at the next multiple of @block_size. Not for objects larger than a page.
 * Where CF_DEBUG is defined it is checked, as cf_deref() is.
 * Return: the address.
 */
static inline void *cf_deref_nonmoving(const struct cf_heap *heap, cf_handle handle, size_t offset,
				       uint32_t block_size)
{
#ifdef CF_DEBUG
	return cf_deref_checked(heap, handle, offset, block_size);
#else
	/* the second one: where block-frame 0 were */
	const uint32_t *words = (const uint32_t *)heap;
	uint32_t slot = words[words[handle.slot] + (uint32_t)offset / block_size];

	return (char *)(uintptr_t)heap + ((size_t)(words[1] + slot * (block_size / 4)) << 2) +
	       (offset & (block_size - 1));
#endif
}

/**
 * cf_at() - address of a byte of an object, checked, in a heap of either engine
 * @heap: the heap
 * @handle: the object
 * @offset: of the byte in the object
 * @length: set to the bytes from there that are contiguous, to 0 if there are none; may be NULL
 *
 * Constant time.
 * Return: the address; NULL if the handle is stale or @offset beyond the object.
 */
void *cf_at(struct cf_heap *heap, cf_handle handle, size_t offset, size_t *length);

/**
 * cf_pin() - keep an object where it is, and alive
 * @heap: the heap
 * @handle: the object
 *
 * Nests up to CF_MAX_PINS. A page all of whose objects are pinned cannot be compacted; each pinned
 * object may cost one page beyond the bound of K (cf_bound() knows).
 * Constant time.
 * Return: CF_OK, CF_ESTALE, CF_EPINS.
 */
int cf_pin(struct cf_heap *heap, cf_handle handle);

/**
 * cf_unpin() - take one cf_pin() back
 * @heap: the heap
 * @handle: the object
 *
 * May move the object at once, if its page could not be compacted before. O(size).
 * Return: CF_OK, CF_ESTALE, CF_EPINS.
 */
int cf_unpin(struct cf_heap *heap, cf_handle handle);

/**
 * cf_compact() - do compaction that was deferred
 * @heap: the heap
 * @budget: bytes that may be moved
 *
 * Moves objects, each whole, until no size-class has more than K not-full pages, or the next object
 * would exceed the budget. Time: O(@budget), at most O(one page) per not-full page.
 * Return: bytes moved. Nothing is left to do if cf_debt() is 0.
 */
size_t cf_compact(struct cf_heap *heap, size_t budget);

/**
 * cf_debt() - how much compaction was deferred
 * @heap: the heap
 *
 * O(size-classes).
 * Return: not-full pages beyond K, which cf_compact() would remove.
 */
size_t cf_debt(struct cf_heap *heap);

/**
 * cf_bound() - how many more objects of a size will be had, whatever happened before
 * @heap: the heap
 * @size: bytes
 *
 * Counts what is live now, by size-class, as if it lay as badly as it possibly could (see
 * docs/compactfit.md); so it holds for any history, and for frees in between, not for more pins.
 * What cf_malloc() really allocates may be more, never less.
 *
 * O(size-classes), 29 times at most: it is a binary search.
 * Return: the number of objects, 0 for a wrong size.
 */
size_t cf_bound(struct cf_heap *heap, size_t size);

/**
 * cf_max_size() - the largest object that the heap's configuration allows
 * @heap: the heap
 *
 * A page; if it may have objects in pieces, as many pages as numbers of pages have room in the
 * block of a whole page: a quarter of the page size less 5 (with pages of 16 KiB 64 MiB in all),
 * in a non-moving heap the block-frames of a page less 5. One page at least. Constant time.
 * Return: its bytes.
 */
size_t cf_max_size(const struct cf_heap *heap);

/**
 * cf_max_contiguous() - the largest object that lies in one piece
 * @heap: the heap
 *
 * Constant time.
 * Return: bytes of a page, in a non-moving heap of a block-frame.
 */
size_t cf_max_contiguous(const struct cf_heap *heap);

/**
 * cf_class_count() - how many size-classes the heap has
 * @heap: the heap
 *
 * Constant time.
 * Return: their number.
 */
unsigned int cf_class_count(const struct cf_heap *heap);

/**
 * cf_class_size() - how large the objects of a size-class are
 * @heap: the heap
 * @index: of the size-class
 *
 * Constant time.
 * Return: bytes of its blocks; 0 if there is no such size-class.
 */
size_t cf_class_size(const struct cf_heap *heap, unsigned int index);

/**
 * cf_class_per_page() - how many objects of a size-class a page has
 * @heap: the heap
 * @index: of the size-class
 *
 * Constant time.
 * Return: their number; 0 if there is no such size-class.
 */
unsigned int cf_class_per_page(const struct cf_heap *heap, unsigned int index);

/**
 * cf_class_of() - the size-class that serves a size
 * @heap: the heap
 * @size: bytes
 *
 * Constant time.
 * Return: its index; -1 if none does, or several.
 */
int cf_class_of(const struct cf_heap *heap, size_t size);

/**
 * cf_get_stats() - what the heap holds
 * @heap: the heap
 * @stats: set to that
 *
 * O(size-classes).
 */
void cf_get_stats(struct cf_heap *heap, struct cf_stats *stats);

/**
 * cf_verify() - do all invariants hold?
 * @heap: the heap
 *
 * For tests. O(heap).
 * Return: NULL, or the sentence that does not hold.
 */
const char *cf_verify(struct cf_heap *heap);

#ifdef __cplusplus
}
#endif

#endif /* COMPACTFIT_H */
