/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#define _GNU_SOURCE
#include "allocators.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "compactfit.h"
#include "rivals.h"

/* ------ compact-fit ------------------------------------------------------------------------------ */

static struct cf_heap *heap;

static bool begin_with(void *memory, size_t size, struct cf_config config, unsigned int k)
{
	config.max_not_full = (uint16_t)(k > CF_UNLIMITED ? CF_UNLIMITED : k);
	heap = cf_init(memory, size, &config);
	return heap;
}

static bool cfm_begin(void *memory, size_t size, unsigned int k)
{
	return begin_with(memory, size, (struct cf_config){ 0 }, k);
}

static bool cfm_wide_begin(void *memory, size_t size, unsigned int k)
{
	return begin_with(memory, size, (struct cf_config){ .wide = true }, k);
}

/* the paper's block-frames are of 32 bytes */
static bool cfnm_begin(void *memory, size_t size, unsigned int k)
{
	return begin_with(memory, size,
			  (struct cf_config){ .engine = CF_NONMOVING, .block_size = 32 }, k);
}

static bool cfnm_64_begin(void *memory, size_t size, unsigned int k)
{
	return begin_with(memory, size,
			  (struct cf_config){ .engine = CF_NONMOVING, .block_size = 64 }, k);
}

static bool cfnm_128_begin(void *memory, size_t size, unsigned int k)
{
	return begin_with(memory, size,
			  (struct cf_config){ .engine = CF_NONMOVING, .block_size = 128 }, k);
}

static __attribute__((noinline)) int no_malloc(struct cf_heap *of, size_t size, cf_handle *handle)
{
	__asm__ volatile("" ::"r"(of), "r"(size), "r"(handle) : "memory");
	return 0;
}

static __attribute__((noinline)) int no_free(struct cf_heap *of, cf_handle handle)
{
	__asm__ volatile("" ::"r"(of), "r"(handle.slot) : "memory");
	return 0;
}

#define CALLS(prefix, malloc_function, free_function)    \
	static uint64_t prefix##_alloc(size_t size)      \
	{                                                \
		union {                                  \
			cf_handle handle;                \
			uint64_t object;                 \
		} u;                                     \
                                                         \
		malloc_function(heap, size, &u.handle);  \
		return u.object;                         \
	}                                                \
                                                         \
	static void prefix##_release(uint64_t object)    \
	{                                                \
		union {                                  \
			uint64_t object;                 \
			cf_handle handle;                \
		} u = { .object = object };              \
                                                         \
		free_function(heap, u.handle);           \
	}

CALLS(cf, cf_malloc, cf_free)
CALLS(no_cf, no_malloc, no_free)

static uint64_t cf_resize(uint64_t object, size_t size)
{
	union {
		uint64_t object;
		cf_handle handle;
	} u = { .object = object };

	return cf_realloc(heap, u.handle, size) ? 0 : object;
}

static void *cf_byte(uint64_t object, size_t offset, size_t *length)
{
	union {
		uint64_t object;
		cf_handle handle;
	} u = { .object = object };

	return cf_at(heap, u.handle, offset, length);
}

static size_t cf_largest(void)
{
	return cf_max_size(heap);
}

static const struct handles cf_handles = { cf_byte, cf_largest };

/* ------ the paper's rivals ------------------------------------------------------------------------ */

static struct rival *rival;

#define RIVAL(name)                                                        \
	static bool name##_start(void *memory, size_t size, unsigned int k) \
	{                                                                  \
		(void)k;                                                   \
		rival = rival_init(memory, size);                          \
		name##_begin(rival);                                       \
		return true;                                               \
	}                                                                  \
	static uint64_t name##_object(size_t size)                         \
	{                                                                  \
		return (uintptr_t)name##_alloc(rival, size);               \
	}                                                                  \
	static void name##_release(uint64_t object)                        \
	{                                                                  \
		name##_free(rival, (void *)(uintptr_t)object);             \
	}

RIVAL(first_fit)
RIVAL(best_fit)
RIVAL(half_fit)
RIVAL(tlsf)

/* ------ allocators of the whole process ----------------------------------------------------------- */

/* glibc's, or that of the package that was loaded before it: see preload. */
static bool process_begin(void *memory, size_t size, unsigned int k)
{
	(void)memory;
	(void)size;
	(void)k;
	return true;
}

static bool jemalloc_begin(void *memory, size_t size, unsigned int k)
{
	return process_begin(memory, size, k) && dlsym(RTLD_DEFAULT, "mallctl");
}

static bool mimalloc_begin(void *memory, size_t size, unsigned int k)
{
	return process_begin(memory, size, k) && dlsym(RTLD_DEFAULT, "mi_malloc");
}

static uint64_t process_object(size_t size)
{
	return (uintptr_t)malloc(size);
}

static void process_release(uint64_t object)
{
	free((void *)(uintptr_t)object);
}

static uint64_t process_resize(uint64_t object, size_t size)
{
	return (uintptr_t)realloc((void *)(uintptr_t)object, size);
}

static uint64_t no_object(size_t size)
{
	return size;
}

static void no_release(uint64_t object)
{
	__asm__ volatile("" ::"r"(object));
}

/* ------ all of them ------------------------------------------------------------------------------- */

static const struct allocator no_cf = { .alloc = no_cf_alloc, .release = no_cf_release };
static const struct allocator nothing = { .alloc = no_object, .release = no_release };

#define COMPACTFIT(name, title) \
	{ #name, title, NULL, true, name##_begin, cf_alloc, cf_release, &no_cf, \
	  cf_resize, &cf_handles }
#define OWN(name, title) \
	{ #name, title, NULL, true, name##_start, name##_object, name##_release, &nothing, \
	  NULL, NULL }
#define PROCESS(name, title, preload, begin) \
	{ name, title, preload, false, begin, process_object, process_release, &nothing, \
	  process_resize, NULL }

const struct allocator allocators[] = {
	COMPACTFIT(cfm, "compact-fit, moving"),
	COMPACTFIT(cfm_wide, "compact-fit, moving, wide references"),
	COMPACTFIT(cfnm, "compact-fit, non-moving, 32 B"),
	COMPACTFIT(cfnm_64, "compact-fit, non-moving, 64 B"),
	COMPACTFIT(cfnm_128, "compact-fit, non-moving, 128 B"),
	OWN(first_fit, "First-fit"),
	OWN(best_fit, "Best-fit"),
	OWN(half_fit, "Half-fit"),
	OWN(tlsf, "TLSF"),
	PROCESS("glibc", "glibc", NULL, process_begin),
	PROCESS("jemalloc", "jemalloc", "libjemalloc.so.2", jemalloc_begin),
	PROCESS("mimalloc", "mimalloc", "libmimalloc.so.2", mimalloc_begin),
};

const size_t nr_allocators = sizeof(allocators) / sizeof(allocators[0]);

const struct allocator *allocator_named(const char *name)
{
	size_t i;

	for (i = 0; i < nr_allocators; i++)
		if (!strcmp(allocators[i].name, name))
			return &allocators[i];
	return NULL;
}
