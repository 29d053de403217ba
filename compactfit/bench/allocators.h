/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* One interface for all that is compared. */
#ifndef ALLOCATORS_H
#define ALLOCATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is asked of compact-fit, 0: nothing; others do as they do. */
struct setup {
	unsigned int k;
	uint32_t page_size;
	uint32_t block_size;
};

/* Of an allocator whose objects are not addresses. */
struct handles {
	/* Address of a byte; *length: bytes from there that are contiguous. */
	void *(*at)(uint64_t object, size_t offset, size_t *length);
	size_t (*max_size)(void); /* of an object; NULL: that of the memory */
};

struct allocator {
	const char *name;
	const char *title;
	const char *preload; /* library to be loaded before libc, or NULL */
	bool bounded; /* lives in the memory it is given, and in no other */
	bool (*begin)(void *memory, size_t size, const struct setup *setup);
	uint64_t (*alloc)(size_t size); /* what release() wants; 0: no memory */
	void (*release)(uint64_t object);
	void (*pin)(uint64_t object); /* it must not move, or NULL if there is no such thing */
	/* Costs what calling it costs, and does nothing. */
	const struct allocator *call;
	/* Returns the object, changed; 0: no memory, it is as before. NULL if there is no such thing. */
	uint64_t (*resize)(uint64_t object, size_t size);
	const struct handles *handles; /* NULL: objects are addresses */
};

extern const struct allocator allocators[];
extern const size_t nr_allocators;

/* NULL if there is none. */
const struct allocator *allocator_named(const char *name);

/* Start this program again with the allocator's library before libc's, if that is not so yet. */
void allocator_preload(const struct allocator *allocator, char **argv);

#endif
