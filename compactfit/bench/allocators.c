/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#define _GNU_SOURCE
#include "allocators.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compactfit.h"
#include "crates.h"
#include "rivals.h"

/* ------ compact-fit ------------------------------------------------------------------------------ */

static struct cf_heap *heap;

static bool begin_with(void *memory, size_t size, struct cf_config config, const struct setup *setup)
{
	config.max_not_full = (uint16_t)(setup->k > CF_UNLIMITED ? CF_UNLIMITED : setup->k);
	config.page_size = setup->page_size;
	config.pieces = true;
	heap = cf_init(memory, size, &config);
	return heap;
}

static bool cfm_begin(void *memory, size_t size, const struct setup *setup)
{
	return begin_with(memory, size, (struct cf_config){ 0 }, setup);
}

static bool cfm_wide_begin(void *memory, size_t size, const struct setup *setup)
{
	return begin_with(memory, size, (struct cf_config){ .wide = true }, setup);
}

/* the paper's block-frames are of 32 bytes */
static bool cfnm_begin(void *memory, size_t size, const struct setup *setup)
{
	uint32_t block_size = setup->block_size ? setup->block_size : 32;

	return begin_with(memory, size,
			  (struct cf_config){ .engine = CF_NONMOVING, .block_size = block_size },
			  setup);
}

static void cf_object_pin(uint64_t object)
{
	union {
		uint64_t object;
		cf_handle handle;
	} u = { .object = object };

	cf_pin(heap, u.handle);
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
		} u = { .object = 0 };                                   \
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
	static bool name##_start(void *memory, size_t size, const struct setup *setup) \
	{                                                                  \
		(void)setup;                                               \
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

/* ------ o1heap ------------------------------------------------------------------------------------ */

static struct O1HeapInstance *o1heap;

static bool o1heap_start(void *memory, size_t size, const struct setup *setup)
{
	(void)setup;
	o1heap = o1heapInit(memory, size);
	return o1heap;
}

static uint64_t o1heap_object(size_t size)
{
	return (uintptr_t)o1heapAllocate(o1heap, size);
}

static void o1heap_release(uint64_t object)
{
	o1heapFree(o1heap, (void *)(uintptr_t)object);
}

/* ------ crates ------------------------------------------------------------------------------------ */

static struct crate_heap *crate;
static char *crate_memory;

#define CRATE_BEGIN(name)                                                              \
	static bool name##_start(void *memory, size_t size, const struct setup *setup) \
	{                                                                              \
		(void)setup;                                                           \
		crate_memory = memory;                                                 \
		crate = crate_##name##_init(memory, size);                             \
		return crate;                                                          \
	}

/* They want to know the size again: an object is where it is, and its size above that. */
#define CRATE(name)                                                                                \
	static uint64_t name##_object(size_t size)                                                 \
	{                                                                                          \
		char *object = crate_##name##_alloc(crate, size);                                  \
                                                                                                   \
		return object ? (uint64_t)size << 32 | (uint32_t)(object - crate_memory) : 0;      \
	}                                                                                          \
                                                                                                   \
	static void name##_release(uint64_t object)                                                \
	{                                                                                          \
		crate_##name##_free(crate, crate_memory + (uint32_t)object, (size_t)(object >> 32)); \
	}

CRATE_BEGIN(dlmalloc)
CRATE(dlmalloc)
CRATE_BEGIN(rlsf)
CRATE(rlsf)
CRATE_BEGIN(talc)
CRATE(talc)

static void *crate_byte(uint64_t object, size_t offset, size_t *length)
{
	*length = (size_t)(object >> 32) - offset;
	return crate_memory + (uint32_t)object + offset;
}

static const struct handles crate_handles = { crate_byte, NULL };

static __attribute__((noinline)) void *crate_no_alloc(struct crate_heap *of, size_t size)
{
	__asm__ volatile("" ::"r"(of), "r"(size) : "memory");
	return crate_memory + 1;
}

static __attribute__((noinline)) void crate_no_free(struct crate_heap *of, void *object, size_t size)
{
	__asm__ volatile("" ::"r"(of), "r"(object), "r"(size) : "memory");
}

CRATE(no)

/* ------ allocators of the whole process ----------------------------------------------------------- */

/* glibc's, or that of the package that was loaded before it: see preload. */
static bool process_begin(void *memory, size_t size, const struct setup *setup)
{
	(void)memory;
	(void)size;
	(void)setup;
	return true;
}

static bool jemalloc_begin(void *memory, size_t size, const struct setup *setup)
{
	return process_begin(memory, size, setup) && dlsym(RTLD_DEFAULT, "mallctl");
}

static bool mimalloc_begin(void *memory, size_t size, const struct setup *setup)
{
	return process_begin(memory, size, setup) && dlsym(RTLD_DEFAULT, "mi_malloc");
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

/* What is called in all of them beside compact-fit and the crates: with an argument more or less. */
static __attribute__((noinline)) void *nothing_alloc(const void *of, size_t size)
{
	__asm__ volatile("" ::"r"(of), "r"(size) : "memory");
	return NULL;
}

static __attribute__((noinline)) void nothing_free(const void *of, void *object)
{
	__asm__ volatile("" ::"r"(of), "r"(object) : "memory");
}

static uint64_t nothing_object(size_t size)
{
	return (uintptr_t)nothing_alloc(rival, size);
}

static void nothing_release(uint64_t object)
{
	nothing_free(rival, (void *)(uintptr_t)object);
}

/* ------ all of them ------------------------------------------------------------------------------- */

static const struct allocator no_cf = { .alloc = no_cf_alloc, .release = no_cf_release };
static const struct allocator no_crate = { .alloc = no_object, .release = no_release };
static const struct allocator nothing = { .alloc = nothing_object, .release = nothing_release };

#define COMPACTFIT(name, title)                                                                   \
	{ #name, title, NULL, true, name##_begin, cf_alloc, cf_release, cf_object_pin, &no_cf,     \
	  cf_resize, &cf_handles }
#define OWN(name, title)                                                                          \
	{ #name, title, NULL, true, name##_start, name##_object, name##_release, NULL, &nothing,   \
	  NULL, NULL }
#define OF_CRATE(name, title)                                                                     \
	{ #name, title, NULL, true, name##_start, name##_object, name##_release, NULL, &no_crate,  \
	  NULL, &crate_handles }
#define PROCESS(name, title, preload, begin)                                                      \
	{ name, title, preload, false, begin, process_object, process_release, NULL, &nothing,     \
	  process_resize, NULL }

const struct allocator allocators[] = {
	COMPACTFIT(cfm, "compact-fit, moving"),
	COMPACTFIT(cfm_wide, "compact-fit, moving, wide references"),
	COMPACTFIT(cfnm, "compact-fit, non-moving"),
	OWN(first_fit, "First-fit"),
	OWN(best_fit, "Best-fit"),
	OWN(half_fit, "Half-fit"),
	OWN(tlsf, "TLSF"),
	OWN(o1heap, "o1heap"),
	OF_CRATE(dlmalloc, "dlmalloc"),
	OF_CRATE(rlsf, "rlsf (TLSF)"),
	OF_CRATE(talc, "talc"),
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

void allocator_preload(const struct allocator *allocator, char **argv)
{
	if (!allocator->preload || getenv("LD_PRELOAD"))
		return;
	setenv("LD_PRELOAD", allocator->preload, 1);
	execv("/proc/self/exe", argv);
	perror("cannot start again");
	exit(2);
}
