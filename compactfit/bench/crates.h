/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Allocators of crates.io (see crates/src/lib.rs), each in the memory that it is given: dlmalloc, Doug
 * Lea's, the paper's DL; rlsf, a TLSF; talc. They want the size of an object that is freed, as Rust
 * programs know it. And o1heap, whose crate is C.
 */
#ifndef CRATES_H
#define CRATES_H

#include <stddef.h>

struct crate_heap;

/* The memory is aligned to 4 KiB. NULL if it is too small. */
struct crate_heap *crate_dlmalloc_init(void *memory, size_t size);
struct crate_heap *crate_rlsf_init(void *memory, size_t size);
struct crate_heap *crate_talc_init(void *memory, size_t size);

/* An object aligned to 16 bytes, or NULL. @size is not 0. */
void *crate_dlmalloc_alloc(struct crate_heap *heap, size_t size);
void *crate_rlsf_alloc(struct crate_heap *heap, size_t size);
void *crate_talc_alloc(struct crate_heap *heap, size_t size);

void crate_dlmalloc_free(struct crate_heap *heap, void *object, size_t size);
void crate_rlsf_free(struct crate_heap *heap, void *object, size_t size);
void crate_talc_free(struct crate_heap *heap, void *object, size_t size);

/* o1heap's own interface: see its o1heap.h. The memory is aligned to 32 bytes. */
struct O1HeapInstance *o1heapInit(void *base, size_t size);
void *o1heapAllocate(struct O1HeapInstance *handle, size_t amount);
void o1heapFree(struct O1HeapInstance *handle, void *pointer);

#endif
