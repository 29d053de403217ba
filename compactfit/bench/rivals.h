/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The allocators that the paper compares itself with, each written from its own description: First-fit
 * and Best-fit (Knuth, The Art of Computer Programming, vol. 1, 2.5, with boundary tags), Half-fit
 * (Ogasawara, RTCSA 1995) and TLSF (Masmano, Ripoll, Crespo, Real, ECRTS 2004). What they share is a
 * heap of blocks with boundary tags that are coalesced at once.
 */
#ifndef RIVALS_H
#define RIVALS_H

#include <stddef.h>

struct rival;

/* Each makes its heap of the memory, which is aligned to 16 bytes. */
struct rival *rival_init(void *memory, size_t size);

void *first_fit_alloc(struct rival *heap, size_t size);
void first_fit_free(struct rival *heap, void *object);
void *best_fit_alloc(struct rival *heap, size_t size);
void best_fit_free(struct rival *heap, void *object);
void *half_fit_alloc(struct rival *heap, size_t size);
void half_fit_free(struct rival *heap, void *object);
void *tlsf_alloc(struct rival *heap, size_t size);
void tlsf_free(struct rival *heap, void *object);

/* To be called before the first allocation: how the free block of the heap is filed. */
void first_fit_begin(struct rival *heap);
void best_fit_begin(struct rival *heap);
void half_fit_begin(struct rival *heap);
void tlsf_begin(struct rival *heap);

/* For tests: NULL, or what is wrong. */
const char *rival_verify(struct rival *heap);

#endif
