/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tests of the library against a reference model, in KTAP. Usage: test_compactfit [OPERATIONS [SEED]]
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

static unsigned long operations = CF_TEST_OPERATIONS;
static unsigned int number;
static bool failed; /* the case that runs */
static bool any_failed;

static bool check_at(bool holds, int line, const char *what)
{
	if (!holds && !failed)
		printf("# line %d: %s\n", line, what);
	failed |= !holds;
	return holds;
}

#define check(condition) check_at(condition, __LINE__, #condition)

static bool sound_at(struct cf_heap *heap, int line)
{
	const char *wrong = cf_verify(heap);

	return check_at(!wrong, line, wrong);
}

#define sound(heap) sound_at(heap, __LINE__)

__attribute__((format(printf, 1, 2))) static void done(const char *format, ...)
{
	va_list args;

	printf("%s %u ", failed ? "not ok" : "ok", ++number);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	any_failed |= failed;
	failed = false;
}

/* A board may have too little memory for a test. */
static bool has_room(size_t needed, const char *name)
{
	if (needed <= CF_TEST_MEMORY)
		return true;
	printf("ok %u %s # SKIP it needs %lu KiB of memory\n", ++number, name,
	       (unsigned long)(needed >> 10));
	return false;
}

/* ------ a heap and its configuration ------------------------------------------------------------- */

static void *buffer;
static enum cf_engine engine; /* of the heap in it */
static const size_t guard = 64; /* bytes behind the buffer that nobody may write to */

static struct cf_heap *make(const struct setup *setup)
{
	struct cf_heap *heap;

	free(buffer);
	engine = setup->config.engine;
	buffer = malloc(setup->size + guard);
	memset(buffer, 0xa5, setup->size + guard);
	heap = cf_init(buffer, setup->size, &setup->config);
	if (check(heap))
		sound(heap);
	return heap;
}

static void unmake(const struct setup *setup)
{
	size_t i;

	for (i = 0; i < guard; i++)
		check(((unsigned char *)buffer)[setup->size + i] == 0xa5);
	free(buffer);
	buffer = NULL;
}

/* ------ the model: what each object holds -------------------------------------------------------- */

struct object {
	cf_handle handle;
	size_t size;
	unsigned int pins;
	uint32_t pattern;
	uint64_t pinned_at;
};

static unsigned char byte_of(const struct object *object, size_t i)
{
	return (unsigned char)((object->pattern + i) * 2654435761u >> 24);
}

static void fill(struct cf_heap *heap, const struct object *object, size_t from)
{
	size_t length, i;
	unsigned char *at;

	while (from < object->size) {
		at = cf_at(heap, object->handle, from, &length);
		if (!check(at && length))
			return;
		for (i = 0; i < length && from < object->size; i++, from++)
			at[i] = byte_of(object, from);
	}
}

static bool holds(struct cf_heap *heap, const struct object *object, size_t size)
{
	size_t length, i, from = 0;
	unsigned char *at;

	while (from < size) {
		at = cf_at(heap, object->handle, from, &length);
		if (!at || !length)
			return false;
		for (i = 0; i < length && from < size; i++, from++)
			if (at[i] != byte_of(object, from))
				return false;
	}
	return true;
}

static size_t page_size(const struct cf_heap *heap)
{
	return cf_class_size(heap, cf_class_count(heap) - 1);
}

static size_t some_size(const struct cf_heap *heap)
{
	size_t page = page_size(heap), most = cf_max_size(heap);

	switch (below(16)) {
	case 0:
		return 1 + below(most < 5 * page ? most : 5 * page);
	case 1:
		return most < 5 * page ? page : page + below(2) + page * below(3);
	case 2:
		return 1 + below(page);
	case 3:
		return cf_class_size(heap, (unsigned int)below(cf_class_count(heap)));
	default:
		return 1 + below(page < 300 ? page : 300);
	}
}

/* A number for where all the pieces of an object are, each of them aligned. */
static uint64_t places(struct cf_heap *heap, const struct object *object, size_t align)
{
	uint32_t block = (uint32_t)cf_max_contiguous(heap);
	size_t from, length;
	uint64_t sum = 0;
	char *at;

	for (from = 0; from < object->size; from += length) {
		at = cf_at(heap, object->handle, from, &length);
		if (!check(at && length))
			return 0;
		check(((uintptr_t)at - from) % align == 0);
		if (object->size <= page_size(heap))
			check(at == (engine == CF_NONMOVING ?
					     cf_deref_nonmoving(heap, object->handle, from, block) :
					     cf_deref(heap, object->handle, from)));
		sum = sum * 31 + (uintptr_t)at;
	}
	return sum;
}

#define OBJECTS 4096

struct model {
	struct cf_heap *heap;
	const struct setup *setup;
	struct object objects[OBJECTS];
	size_t nr;
	cf_handle stale; /* of an object that was freed */
};

static void step_malloc(struct model *m)
{
	struct object *object = &m->objects[m->nr];
	size_t align = 1, guaranteed;
	int status;

	if (m->nr == OBJECTS)
		return;
	*object = (struct object){ .size = some_size(m->heap), .pattern = (uint32_t)rnd() };
	guaranteed = cf_bound(m->heap, object->size);
	if (below(8)) {
		status = cf_malloc(m->heap, object->size, &object->handle);
		align = object->size & -object->size;
		if (align > 16)
			align = 16;
	} else {
		align = (size_t)1 << below(m->setup->config.engine ? 5 : 9);
		status = cf_aligned_alloc(m->heap, align, object->size, &object->handle);
		guaranteed = 0;
	}
	check(status == CF_OK || status == CF_ENOMEM);
	check(status == CF_OK || !guaranteed);
	if (status) {
		sound(m->heap);
		return;
	}
	check(cf_usable_size(m->heap, object->handle) >= object->size);
	places(m->heap, object, align);
	fill(m->heap, object, 0);
	m->nr++;
}

static void step_free(struct model *m, size_t i)
{
	struct object *object = &m->objects[i];

	check(holds(m->heap, object, object->size));
	if (object->pins > (m->setup->config.remote_frees ? 1 : 0)) {
		check(cf_free(m->heap, object->handle) == CF_EPINNED);
		return;
	}
	if (object->pins || (m->setup->config.remote_frees && below(2))) {
		if (cf_free_remote(m->heap, object->handle) == CF_EAGAIN) {
			check(cf_drain(m->heap, SIZE_MAX) >= m->setup->config.remote_frees);
			check(cf_free_remote(m->heap, object->handle) == CF_OK);
		}
		check(cf_check_handle(m->heap, object->handle) == CF_OK);
		check(below(2) || cf_drain(m->heap, SIZE_MAX));
	} else {
		check(cf_free(m->heap, object->handle) == CF_OK);
		check(cf_free(m->heap, object->handle) == CF_ESTALE);
	}
	m->stale = object->handle;
	*object = m->objects[--m->nr];
}

static void step_realloc(struct model *m, size_t i)
{
	struct object *object = &m->objects[i];
	size_t size = some_size(m->heap);
	size_t common = size < object->size ? size : object->size;
	int status = cf_realloc(m->heap, object->handle, size);

	if (object->pins) {
		check(status == CF_EPINNED);
		return;
	}
	check(status == CF_OK || status == CF_ENOMEM);
	if (status) {
		check(holds(m->heap, object, object->size));
		return;
	}
	check(holds(m->heap, object, common));
	object->size = size;
	fill(m->heap, object, common);
}

static void step_pin(struct model *m, size_t i)
{
	struct object *object = &m->objects[i];
	int status;

	if (below(2)) {
		status = cf_pin(m->heap, object->handle);
		check(status == (object->pins == CF_MAX_PINS ? CF_EPINS : CF_OK));
		if (status)
			return;
		if (!object->pins++)
			object->pinned_at = places(m->heap, object, 1);
	} else {
		if (object->pins)
			check(object->pinned_at == places(m->heap, object, 1));
		status = cf_unpin(m->heap, object->handle);
		check(status == (object->pins ? CF_OK : CF_EPINS));
		object->pins -= !status;
	}
}

/* As many objects as the bound says, of one size, are there. */
static void step_bound(struct model *m)
{
	size_t size = some_size(m->heap), bound = cf_bound(m->heap, size), i;
	cf_handle *handles = malloc((bound + 1) * sizeof(*handles));

	for (i = 0; i < bound; i++)
		check(cf_malloc(m->heap, size, &handles[i]) == CF_OK);
	sound(m->heap);
	while (i--)
		check(cf_free(m->heap, handles[i]) == CF_OK);
	free(handles);
}

static void step_compact(struct model *m)
{
	size_t budget = below(4) ? below(4096) : SIZE_MAX;
	size_t moved = cf_compact(m->heap, budget);

	check(moved <= budget);
	if (budget == SIZE_MAX)
		check(cf_debt(m->heap) == 0);
	if (!m->setup->config.deferred)
		check(moved == 0);
}

static void step(struct model *m)
{
	unsigned int kind = (unsigned int)below(1000);
	size_t i = m->nr ? below(m->nr) : 0;

	if (kind < 450 || !m->nr)
		step_malloc(m);
	else if (kind < 840)
		step_free(m, i);
	else if (kind < 900)
		step_realloc(m, i);
	else if (kind < 990)
		step_pin(m, kind < 940 ? i : below(m->nr < 8 ? m->nr : 8));
	else if (kind < 999)
		step_compact(m);
	else
		step_bound(m);
}

static void test_model(const struct setup *setup)
{
	struct model *m = calloc(1, sizeof(*m));
	struct cf_stats stats;
	unsigned long i;

	m->setup = setup;
	m->heap = make(setup);
	for (i = 0; i < operations && !failed; i++) {
		step(m);
		if (i % 64 == 0)
			sound(m->heap);
		/* now and then all but nothing is left */
		if (i % 4096 == 4095)
			while (m->nr > 16 && !failed) {
				while (m->objects[m->nr - 1].pins--)
					cf_unpin(m->heap, m->objects[m->nr - 1].handle);
				m->objects[m->nr - 1].pins = 0;
				step_free(m, m->nr - 1);
			}
	}
	while (m->nr && !failed) {
		while (m->objects[0].pins) {
			check(cf_unpin(m->heap, m->objects[0].handle) == CF_OK);
			m->objects[0].pins--;
		}
		step_free(m, 0);
	}
	cf_drain(m->heap, SIZE_MAX);
	sound(m->heap);
	cf_get_stats(m->heap, &stats);
	check(!stats.objects && !stats.pinned && !stats.not_full_pages && !stats.stuck_pages);
	check(!stats.large_pages && !stats.remote_failed);
	check(stats.free_pages + stats.handle_pages == stats.pages);
	unmake(setup);
	free(m);
	done("random operations keep every byte and every invariant: %s", setup->name);
}

/* ------ misuse ----------------------------------------------------------------------------------- */

static void test_misuse(const struct setup *setup)
{
	struct cf_heap *heap = make(setup);
	cf_handle a, b, made_up;
	size_t length = 1;
	int i;

	check(cf_malloc(heap, 0, &a) == CF_ESIZE && !a.slot);
	/* the handle of no object leads out of the heap, so that a program that writes there faults */
	if (setup->config.engine == CF_MOVING) {
		/* the compiler knows that the sum of a pointer and a number is not NULL */
		volatile uintptr_t at = (uintptr_t)cf_deref(heap, a, 0);

		check(sizeof(at) == 4 ? !at : at - (uintptr_t)heap > (uint64_t)8 << 30);
	}
	/* what is not in one piece is refused unless it was asked for */
	check(setup->config.pieces || setup->config.engine == CF_NONMOVING ||
	      (cf_malloc(heap, cf_max_contiguous(heap) + 1, &a) == CF_ESIZE && !a.slot &&
	       cf_max_size(heap) == cf_max_contiguous(heap)));
	check(cf_malloc(heap, cf_max_size(heap) + 1, &a) == CF_ESIZE);
	check(cf_malloc(heap, SIZE_MAX, &a) == CF_ESIZE);
	check(cf_calloc(heap, 0, 8, &a) == CF_ESIZE);
	check(cf_calloc(heap, 8, 0, &a) == CF_ESIZE);
	check(cf_calloc(heap, SIZE_MAX / 2, 3, &a) == CF_ESIZE);
	check(cf_aligned_alloc(heap, 0, 8, &a) == CF_EINVAL);
	check(cf_aligned_alloc(heap, 24, 8, &a) == CF_EINVAL);
	check(cf_aligned_alloc(heap, 2 * cf_max_size(heap), 8, &a) == CF_EINVAL);
	check(cf_aligned_alloc(heap, 8, 0, &a) == CF_ESIZE);
	check(cf_bound(heap, 0) == 0 && cf_bound(heap, SIZE_MAX) == 0);
	check(cf_class_of(heap, 0) == -1 && cf_class_size(heap, CF_MAX_CLASSES) == 0);
	check(cf_class_per_page(heap, CF_MAX_CLASSES) == 0);
	for (i = 0; i < cf_class_count(heap); i++)
		check(cf_class_of(heap, cf_class_size(heap, (unsigned int)i)) == (int)i);
	sound(heap);

	check(cf_malloc(heap, 100, &a) == CF_OK);
	memset(cf_at(heap, a, 0, NULL), 0x11, 16);
	check(cf_free(heap, a) == CF_OK);
	check(cf_calloc(heap, 5, 20, &a) == CF_OK);
	check(cf_malloc(heap, 100, &b) == CF_OK);
	for (i = 0; i < 100; i++)
		check(*(char *)cf_at(heap, a, (size_t)i, NULL) == 0);
	check(!cf_at(heap, a, cf_usable_size(heap, a), &length) && !length);
	check(!cf_at(heap, a, SIZE_MAX, NULL));
	check(cf_unpin(heap, a) == CF_EPINS);
	check(cf_realloc(heap, a, 0) == CF_ESIZE);
	check(cf_realloc(heap, a, SIZE_MAX) == CF_ESIZE);
	check(cf_free(heap, a) == CF_OK);
	check(cf_check_handle(heap, a) == CF_ESTALE && cf_check_handle(heap, b) == CF_OK);
	check(cf_free(heap, a) == CF_ESTALE);
	check(cf_realloc(heap, a, 8) == CF_ESTALE);
	check(cf_realloc(heap, a, 0) == CF_ESTALE);
	check(cf_pin(heap, a) == CF_ESTALE && cf_unpin(heap, a) == CF_ESTALE);
	check(cf_usable_size(heap, a) == 0 && !cf_at(heap, a, 0, NULL));

	/* the slot is used again: another stamp */
	made_up = a;
	check(cf_malloc(heap, 100, &a) == CF_OK && a.slot == made_up.slot);
	check(cf_free(heap, made_up) == CF_ESTALE);
	made_up = a;
	made_up.stamp--;
	check(cf_free(heap, made_up) == CF_ESTALE);
	/* of a pinned object too, and whatever bits are changed */
	for (i = 0; i < 64; i++) {
		check(i < 32 || cf_pin(heap, a) == (i < 32 + CF_MAX_PINS ? CF_OK : CF_EPINS));
		made_up = a;
		made_up.stamp ^= 1u << i % 32;
		check(cf_check_handle(heap, made_up) == CF_ESTALE);
		check(cf_free(heap, made_up) == CF_ESTALE);
		made_up.stamp = a.stamp + (1u << i % 32);
		check(cf_free(heap, made_up) == CF_ESTALE);
	}
	for (i = 0; i < CF_MAX_PINS; i++)
		check(cf_free(heap, a) == CF_EPINNED && cf_unpin(heap, a) == CF_OK);
	/* any 64 bits for a handle */
	for (i = 0; i < 200000; i++) {
		made_up.slot = (uint32_t)rnd() >> below(32);
		made_up.stamp = below(4) ? (uint32_t)rnd() | 0x100 : a.stamp;
		if (made_up.slot != a.slot && made_up.slot != b.slot)
			check(cf_free(heap, made_up) == CF_ESTALE);
	}
	check(cf_free(heap, (cf_handle){ 0, 0 }) == CF_ESTALE);
	sound(heap);
	check(cf_free(heap, a) == CF_OK && cf_free(heap, b) == CF_OK);
	unmake(setup);
	done("misuse is answered and changes nothing: %s", setup->name);
}

/* What the header says of stale handles is exact: after so many reuses of its slot one is accepted. */
static void test_reused(size_t size, uint32_t stamps)
{
	struct setup setup = { "", size, { 0 } };
	struct cf_heap *heap = make(&setup);
	cf_handle stale, handle;
	uint32_t reuses;

	check(cf_malloc(heap, 40, &stale) == CF_OK && cf_free(heap, stale) == CF_OK);
	for (reuses = 1; reuses < stamps; reuses++) {
		check(cf_malloc(heap, 40, &handle) == CF_OK && handle.slot == stale.slot);
		check(cf_check_handle(heap, stale) == CF_ESTALE);
		check(cf_free(heap, handle) == CF_OK);
	}
	check(cf_malloc(heap, 40, &handle) == CF_OK && handle.slot == stale.slot);
	check(cf_check_handle(heap, stale) == CF_OK);
	check(cf_free(heap, stale) == CF_OK && cf_free(heap, handle) == CF_ESTALE);
	unmake(&setup);
	done("a stale handle passes after %u reuses of its slot, not before: %lu KiB",
	     (unsigned int)stamps, (unsigned long)(size >> 10));
}

/* A word of an object in place of a slot, leading to any word of the heap: it is no slot. */
static void test_forged(const struct setup *setup)
{
	cf_handle holder = { 0, 0 }, small, last = { 0, 0 }, forged;
	uint32_t word, *object;
	struct cf_heap *heap;

	/* pages of the smallest objects up to the end of the memory */
	buffer = aligned_alloc(65536, setup->size);
	memset(buffer, 0x68, setup->size); /* what nobody wrote must not be used */
	heap = cf_init(buffer, setup->size, &setup->config);
	check(heap && cf_malloc(heap, 64, &holder) == CF_OK);
	while (!cf_malloc(heap, 16, &small))
		last = small;
	object = cf_at(heap, holder, 0, NULL);
	forged.slot = (uint32_t)(object - (uint32_t *)heap);
	for (word = 0; word < setup->size / 4; word++) {
		*object = word;
		forged.stamp = word & 1 ? last.stamp : 0;
		check(cf_check_handle(heap, forged) == CF_ESTALE);
	}
	check(cf_check_handle(heap, last) == CF_OK);
	free(buffer);
	buffer = NULL;
	done("an object's words are no slots: %s", setup->name);
}

/* A heap is made again in the same buffer, or another one elsewhere: handles are of no use in it. */
static void test_again(const struct setup *setup)
{
	struct cf_config config = setup->config;
	struct cf_heap *heap, *other;
	cf_handle old[256], handle;
	int round, i, nr;

	/* Side by side: how far apart their stamps are is no matter of luck. */
	buffer = aligned_alloc(65536, 2 * setup->size);
	memset(buffer, 0xa5, 2 * setup->size);
	heap = cf_init(buffer, setup->size, &config);
	other = cf_init((char *)buffer + setup->size, setup->size, &config);
	for (round = 0; round < 8; round++) {
		for (nr = 0; nr < 256; nr++)
			if (cf_malloc(heap, 40, &old[nr]))
				break;
		check(cf_malloc(other, 40, &handle) == CF_OK);
		for (i = 0; i < nr; i++)
			check(cf_free(other, old[i]) == CF_ESTALE);
		config.seed++;
		heap = cf_init(buffer, setup->size, &config);
		for (i = 0; i < 16; i++)
			check(cf_malloc(heap, 40, &handle) == CF_OK);
		for (i = 0; i < nr; i++)
			check(cf_free(heap, old[i]) == CF_ESTALE);
		sound(heap);
	}
	free(buffer);
	buffer = NULL;
	done("handles of another heap are stale: %s", setup->name);
}

static int held;

static void take(void *arg)
{
	check(arg == &held && held++ == 0);
}

static void drop(void *arg)
{
	check(arg == &held && --held == 0);
}

static void test_lock(void)
{
	struct setup setup = { "", 1 << 20,
			       { .lock = take, .unlock = drop, .lock_arg = &held } };
	struct model *m = calloc(1, sizeof(*m));
	int i;

	m->setup = &setup;
	m->heap = make(&setup);
	for (i = 0; i < 2000; i++)
		step(m);
	check(held == 0);
	unmake(&setup);
	free(m);
	done("lock hooks are called in pairs, never nested");
}

static void test_init(void)
{
	static const struct cf_config wrong[] = {
		{ .engine = (enum cf_engine)2 },
		{ .page_size = 128 },
		{ .page_size = 131072 },
		{ .page_size = 3000 },
		{ .engine = CF_NONMOVING, .block_size = 8 },
		{ .engine = CF_NONMOVING, .block_size = 32768 },
		{ .engine = CF_NONMOVING, .block_size = 48 },
		{ .lock = take },
		{ .unlock = drop },
		{ .remote_frees = CF_MAX_REMOTE + 1 },
		{ .remote_frees = UINT32_MAX },
	};
	static const struct cf_config nonmoving = { .engine = CF_NONMOVING };
	size_t i, size, offset, at;

	buffer = malloc(1 << 20);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		check(!cf_init(buffer, 1 << 20, &wrong[i]));
	check(!cf_init(NULL, 1 << 20, NULL));
	check(!cf_init(buffer, 0, NULL));
	check(!cf_init(buffer, 3072, NULL));
	for (size = 0; size < 3072; size += 512) {
		check(!cf_init(buffer, size, NULL));
		check(!cf_init(buffer, size, &nonmoving));
	}
	check(!cf_init((void *)(UINTPTR_MAX - 100), 50, NULL));
	check(!cf_init((void *)(UINTPTR_MAX - 100), SIZE_MAX, NULL));
	if (SIZE_MAX > UINT32_MAX)
		check(!cf_init(buffer, (size_t)(((uint64_t)8 << 30) + 65536), NULL));
	free(buffer);
	done("a wrong configuration makes no heap");

	/* whatever the size and alignment, what is allocated lies in the buffer */
	for (i = 0; i < SETUPS * 200; i++) {
		struct setup setup = setups[i % SETUPS];
		struct cf_heap *heap;
		cf_handle handle;

		size = below(setup.size / 4);
		offset = below(32768);
		buffer = malloc(size + offset + guard);
		memset((char *)buffer + offset + size, 0xa5, guard);
		heap = cf_init((char *)buffer + offset, size, &setup.config);
		if (heap) {
			check((char *)heap >= (char *)buffer + offset);
			while (!cf_malloc(heap, 1 + below(100), &handle)) {
				size_t length, last = cf_usable_size(heap, handle) - 1;
				char *byte = cf_at(heap, handle, last, &length);

				check(byte >= (char *)buffer + offset && length == 1);
				check(byte < (char *)buffer + offset + size);
				*byte = 0;
			}
			sound(heap);
		}
		for (at = 0; at < guard; at++)
			check(((unsigned char *)buffer)[offset + size + at] == 0xa5);
		free(buffer);
	}
	buffer = NULL;
	done("a heap stays within its buffer");
}

/* A larger buffer makes no smaller heap: with 32 bits, what is multiplied to count block-frames overflows. */
static void test_growing(void)
{
	static const struct cf_config config = { .engine = CF_NONMOVING, .page_size = 65536,
						 .block_size = 65536 };
	size_t size, most = 18 << 20, before = 0;

	buffer = aligned_alloc(65536, most);
	for (size = 16 << 20; size <= most; size += 1024) {
		struct cf_heap *heap = cf_init(buffer, size, &config);
		struct cf_stats stats = { 0 };

		if (check(heap))
			cf_get_stats(heap, &stats);
		check(stats.free_blocks >= before);
		before = stats.free_blocks;
	}
	free(buffer);
	buffer = NULL;
	done("a larger buffer makes no smaller heap");
}

/* ------ objects larger than a page ---------------------------------------------------------------- */

static const size_t parts[][2] = { /* pages, bytes beyond */
	{ 0, 10 }, { 1, 0 }, { 1, 1 }, { 1, 100 }, { 2, 0 }, { 2, 100 }, { 2, 101 }, { 3, 200 }, { 5, 0 },
};

#define PARTS (sizeof(parts) / sizeof(parts[0]))

/* Made to any size from any other, an object keeps its handle, its content and no more memory. */
static void test_large(const struct setup *setup)
{
	struct cf_heap *heap = make(setup);
	size_t page = page_size(heap), i, j, common, whole, length;
	struct cf_stats before, after;
	struct object object, small;
	uint64_t at;

	small = (struct object){ .size = 100, .pattern = 7 };
	check(cf_malloc(heap, small.size, &small.handle) == CF_OK);
	fill(heap, &small, 0);
	for (i = 0; i < PARTS * PARTS; i++) {
		object = (struct object){ .pattern = (uint32_t)rnd() };
		object.size = parts[i / PARTS][0] * page + parts[i / PARTS][1];
		cf_get_stats(heap, &before);
		check(cf_malloc(heap, object.size, &object.handle) == CF_OK);
		check(cf_usable_size(heap, object.handle) >= object.size);
		fill(heap, &object, 0);
		j = i % PARTS;
		common = object.size;
		object.size = parts[j][0] * page + parts[j][1];
		common = common < object.size ? common : object.size;
		check(cf_realloc(heap, object.handle, object.size) == CF_OK);
		check(holds(heap, &object, common));
		fill(heap, &object, common);
		sound(heap);
		/* one of its size uses as much */
		cf_get_stats(heap, &after);
		whole = object.size > page ? object.size / page : 0;
		check(after.large_pages == before.large_pages + whole);
		check(after.objects == before.objects + 1);
		check(holds(heap, &object, object.size) && holds(heap, &small, small.size));
		/* the same size again: nothing is done */
		at = places(heap, &object, 1);
		check(cf_realloc(heap, object.handle, object.size) == CF_OK);
		check(places(heap, &object, 1) == at);
		length = 1;
		check(!cf_at(heap, object.handle, cf_usable_size(heap, object.handle), &length));
		check(!cf_at(heap, object.handle, object.size + page, NULL) && !length);
		for (j = 0; j < CF_MAX_PINS; j++)
			check(cf_pin(heap, object.handle) == CF_OK);
		check(cf_pin(heap, object.handle) == CF_EPINS);
		check(cf_realloc(heap, object.handle, 2 * page) == CF_EPINNED);
		check(cf_free(heap, object.handle) == CF_EPINNED);
		cf_get_stats(heap, &after);
		check(after.pinned == before.pinned + 1);
		sound(heap);
		while (j--)
			check(cf_unpin(heap, object.handle) == CF_OK);
		check(cf_unpin(heap, object.handle) == CF_EPINS);
		check(cf_free(heap, object.handle) == CF_OK);
		check(cf_free(heap, object.handle) == CF_ESTALE);
		cf_get_stats(heap, &after);
		check(after.pinned == before.pinned && after.objects == before.objects);
		check(after.free_blocks == before.free_blocks);
		check(after.free_pages + after.handle_pages ==
		      before.free_pages + before.handle_pages);
	}
	unmake(setup);
	done("an object larger than a page is like any other: %s", setup->name);
}

/* Nobody but its object can use a tail, whose handle may be guessed: of the stamp and a slot before. */
static void test_tail(const struct setup *setup)
{
	struct cf_heap *heap = make(setup);
	size_t page = page_size(heap);
	struct cf_stats before, after;
	struct object object = { .size = 2 * page + 100, .pattern = 3 };
	cf_handle tail = { 0, 0 };
	uint32_t one;

	check(cf_malloc(heap, object.size, &object.handle) == CF_OK);
	fill(heap, &object, 0);
	cf_get_stats(heap, &before);
	for (one = 1; one; one <<= 1)
		for (tail.slot = object.handle.slot - 16; tail.slot < object.handle.slot; tail.slot++) {
			tail.stamp = object.handle.stamp - one;
			if (!check(cf_check_handle(heap, tail) == CF_ESTALE))
				break;
			check(cf_pin(heap, tail) == CF_ESTALE);
			check(cf_unpin(heap, tail) == CF_ESTALE);
			check(cf_realloc(heap, tail, 2 * page) == CF_ESTALE);
			check(cf_free(heap, tail) == CF_ESTALE);
			check(!cf_at(heap, tail, 0, NULL) && !cf_usable_size(heap, tail));
		}
	cf_get_stats(heap, &after);
	check(!memcmp(&before, &after, sizeof(before)));
	check(holds(heap, &object, object.size));
	sound(heap);
	unmake(setup);
	done("a tail is its object's alone: %s", setup->name);
}

/* What a heap promises of large objects, and holds, is nearly what it has. */
static void test_large_bound(const struct setup *setup)
{
	size_t size, bound, i, nr;
	struct cf_heap *heap;
	struct cf_stats stats;
	cf_handle handle;

	for (i = 3; i < PARTS; i++) {
		heap = make(setup);
		size = parts[i][0] * page_size(heap) + parts[i][1];
		cf_get_stats(heap, &stats);
		bound = cf_bound(heap, size);
		for (nr = 0; !cf_malloc(heap, size, &handle); nr++)
			check(cf_bound(heap, size) + nr + 1 >= bound);
		check(nr >= bound && bound >= nr - nr / 8 - 2);
		/* a page for spines, one for tails, one for handles; what is left is too little for one more */
		check(engine || nr >= (stats.free_pages - 3) / (parts[i][0] + 1));
		check(cf_bound(heap, size) == 0);
		sound(heap);
	}
	unmake(setup);
	done("large objects to be had are as many as there is memory for: %s", setup->name);
}

/* Does a large object that is refused lack memory for its parts? Allocate what is as large as they are. */
static bool lacks_parts(struct cf_heap *heap, size_t size)
{
	size_t page = page_size(heap);
	struct cf_stats stats;
	cf_handle handle;

	if (cf_malloc(heap, size % page, &handle))
		return true;
	/* non-moving: a spine takes a block-frame, whatever its block */
	if (cf_malloc(heap, engine ? 1 : 4 * (5 + size / page), &handle))
		return true;
	cf_get_stats(heap, &stats);
	return stats.free_pages < size / page ||
	       (engine && stats.free_blocks < size / page * (page / cf_max_contiguous(heap)));
}

/*
 * However many blocks, handles, pages or block-frames are left, a large object is had if its parts can be,
 * and nothing is taken if not. @beyond: such that spine and tail are of one size-class, with few blocks a page.
 * @freed: pages that are left were used, and their handles.
 */
static void test_large_edges(const struct cf_config *config, size_t beyond, bool freed)
{
	struct setup setup = { "", 40 << 10, *config };
	cf_handle handle, pages[512];
	size_t nr, left, size, had = 0, refused = 0, i, back;
	struct cf_stats before, after;
	struct cf_heap *heap;

	for (nr = 0; nr < 80; nr++)
		for (left = 0; left < 6; left++) {
			heap = make(&setup);
			size = 2 * page_size(heap) + beyond;
			for (i = 0; i < nr; i++)
				check(cf_malloc(heap, beyond, &handle) == CF_OK);
			for (i = 0; i < 512; i++) {
				cf_get_stats(heap, &before);
				if (!freed && before.free_pages <= left)
					break;
				if (cf_malloc(heap, page_size(heap), &pages[i]))
					break;
			}
			check(i > left && i < 512);
			for (back = 0; freed && back < left; back++)
				check(cf_free(heap, pages[--i]) == CF_OK);
			cf_get_stats(heap, &before);
			if (!cf_malloc(heap, size, &handle)) {
				had++;
				sound(heap);
				check(cf_free(heap, handle) == CF_OK);
				sound(heap);
				continue;
			}
			refused++;
			cf_get_stats(heap, &after);
			check(!memcmp(&before, &after, sizeof(before)));
			check(lacks_parts(heap, size));
		}
	check(had && refused);
	unmake(&setup);
	done("a large object is had if its parts can be, with pages of %u bytes%s",
	     (unsigned int)config->page_size, freed ? " that were freed" : "");
}

/* Non-moving: there may be block-frames enough, but no pages for their numbers; or the other way round. */
static void test_without_pages(void)
{
	const struct setup setup = { "", 64 << 10,
				     { .engine = CF_NONMOVING, .page_size = 1024, .block_size = 64,
				       .max_not_full = CF_UNLIMITED } };
	struct cf_heap *heap = make(&setup);
	size_t n = 1, nr = 0, i, size, left;
	bool apart = false;
	struct object object = { .size = 2048 + 64, .pattern = 9 };
	cf_handle handles[1024], large;
	struct cf_stats stats;

	/* an object in each page */
	for (size = 64; size <= 128; size += 64) {
		n = cf_class_per_page(heap, (unsigned int)cf_class_of(heap, size));
		for (nr = 0; nr < 1024 && !cf_malloc(heap, size, &handles[nr]); nr++)
			;
		for (i = 0; i < nr; i++)
			if (i % n)
				check(cf_free(heap, handles[i]) == CF_OK);
	}
	/* and page by page they are free again */
	for (left = 0; left < nr; left += n) {
		cf_get_stats(heap, &stats);
		for (i = 2; i < 9; i++)
			if (!cf_malloc(heap, i * 1024, &large))
				check(cf_free(heap, large) == CF_OK);
			else
				apart |= stats.free_pages == i && stats.free_blocks >= 16 * i + 1;
		sound(heap);
		check(cf_free(heap, handles[left]) == CF_OK);
	}
	check(apart);
	unmake(&setup);

	/* to change the spine or the tail takes one block-frame, however many numbers there are */
	heap = make(&setup);
	check(cf_malloc(heap, object.size, &object.handle) == CF_OK);
	fill(heap, &object, 0);
	for (nr = 0; nr < 1024 && !cf_malloc(heap, 64, &handles[nr]); nr++)
		;
	check(cf_free(heap, handles[0]) == CF_OK);
	object.size = 2048;
	check(cf_realloc(heap, object.handle, object.size) == CF_OK);
	check(holds(heap, &object, object.size));
	sound(heap);
	unmake(&setup);
	done("block-frames and pages for their numbers run out apart");
}

/* The largest object, in a heap that it fits. */
static void test_largest(void)
{
	struct setup setup = { "", 5 << 20, { .page_size = 4096, .pieces = true } };
	struct cf_heap *heap = make(&setup);
	struct object object = { .size = cf_max_size(heap), .pattern = 5 };

	check(object.size == (4096 / 4 - 5) * 4096);
	check(cf_malloc(heap, object.size + 1, &object.handle) == CF_ESIZE);
	check(cf_bound(heap, object.size) == 1 && cf_bound(heap, object.size + 1) == 0);
	check(cf_malloc(heap, object.size, &object.handle) == CF_OK);
	fill(heap, &object, 0);
	check(holds(heap, &object, object.size));
	sound(heap);
	/* a page more or less, with no memory for a second one */
	check(cf_realloc(heap, object.handle, object.size + 1) == CF_ESIZE);
	object.size -= 4096;
	check(cf_realloc(heap, object.handle, object.size) == CF_OK);
	check(holds(heap, &object, object.size));
	check(cf_realloc(heap, object.handle, object.size + 4096) == CF_OK);
	check(holds(heap, &object, object.size));
	check(cf_free(heap, object.handle) == CF_OK);
	unmake(&setup);

	/* spines need not be small: block-frames of an eighth of a page make some of eight numbers */
	setup = (struct setup){ "", 2 << 20,
				{ .engine = CF_NONMOVING, .page_size = 4096, .block_size = 512 } };
	heap = make(&setup);
	object.size = 3 * 4096;
	check(cf_max_size(heap) == object.size);
	check(cf_malloc(heap, object.size, &object.handle) == CF_OK);
	fill(heap, &object, 0);
	check(holds(heap, &object, object.size));
	unmake(&setup);
	done("the largest object");
}

/* Whichever part of a large object there is no memory for, nothing is taken. */
static void test_large_exhaustion(const struct setup *setup)
{
	struct cf_heap *heap = make(setup);
	size_t page = page_size(heap), i, nr, guaranteed;
	cf_handle *handles = malloc(65536 * sizeof(*handles)), large, zero;
	struct cf_stats before, after;

	for (nr = 0; nr < 65536 && !cf_malloc(heap, 40 + below(60), &handles[nr]); nr++)
		;
	while (nr && !failed) {
		check(cf_free(heap, handles[--nr]) == CF_OK);
		for (i = 0; i < PARTS; i++) {
			size_t size = parts[i][0] * page + parts[i][1];
			int status;

			guaranteed = cf_bound(heap, size);
			cf_get_stats(heap, &before);
			status = cf_malloc(heap, size, &large);
			check(!guaranteed || !status);
			check(status == CF_OK || status == CF_ENOMEM || size > cf_max_size(heap));
			if (!status)
				check(cf_free(heap, large) == CF_OK);
			else
				check(!large.slot && !large.stamp);
			cf_get_stats(heap, &after);
			/* but that moved, by freeing it again */
			after.moves = before.moves;
			after.moved_bytes = before.moved_bytes;
			if (status)
				check(!memcmp(&before, &after, sizeof(before)));
			check(before.free_blocks == after.free_blocks);
			check(before.large_pages == after.large_pages);
			check(before.objects == after.objects);
			if (nr % 64 == 0)
				sound(heap);
		}
	}
	check(cf_malloc(heap, cf_max_size(heap), &large) == CF_OK ||
	      cf_max_size(heap) > setup->size / 2);
	check(cf_calloc(heap, 3, page, &zero) == CF_OK || cf_max_size(heap) < 3 * page ||
	      setup->size < 8 * page);
	for (i = 0; zero.slot && i < 3 * page; i++)
		check(*(char *)cf_at(heap, zero, i, NULL) == 0);
	free(handles);
	unmake(setup);
	done("an object larger than a page that does not fit takes nothing: %s", setup->name);
}

/* ------ remote frees ------------------------------------------------------------------------------ */

#if __GCC_ATOMIC_INT_LOCK_FREE == 2
static void test_remote(void)
{
	struct setup setup = { "", 1 << 20, { .remote_frees = 3, .pieces = true } };
	struct cf_heap *heap = make(&setup);
	cf_handle handles[8], other;
	struct cf_stats stats;
	uint64_t moves;
	int i;

	for (i = 0; i < 8; i++)
		check(cf_malloc(heap, 40, &handles[i]) == CF_OK);
	check(cf_free_remote(heap, (cf_handle){ 0, 0 }) == CF_ESTALE);
	check(cf_drain(heap, 10) == 0);
	for (i = 0; i < 4; i++) /* as many as the next power of two */
		check(cf_free_remote(heap, handles[i]) == CF_OK);
	check(cf_free_remote(heap, handles[4]) == CF_EAGAIN);
	check(cf_malloc(heap, 100, &other) == CF_OK); /* takes two */
	check(cf_check_handle(heap, handles[1]) == CF_ESTALE);
	check(cf_check_handle(heap, handles[2]) == CF_OK);
	check(cf_calloc(heap, 1, 13, &other) == CF_OK); /* the other two */
	check(cf_check_handle(heap, handles[3]) == CF_ESTALE);
	/* what cannot be freed is counted */
	check(cf_pin(heap, handles[4]) == CF_OK && cf_pin(heap, handles[4]) == CF_OK);
	check(cf_free_remote(heap, handles[4]) == CF_OK);
	check(cf_free_remote(heap, handles[0]) == CF_OK);
	check(cf_free_remote(heap, handles[5]) == CF_OK);
	check(cf_drain(heap, 1) == 1 && cf_drain(heap, 10) == 2);
	cf_get_stats(heap, &stats);
	check(stats.remote_failed == 2 && stats.objects == 5 && stats.pinned == 1);
	check(cf_check_handle(heap, handles[4]) == CF_OK);
	/* but one pin is that of who hands it over, of a large object too */
	check(cf_unpin(heap, handles[4]) == CF_OK && cf_unpin(heap, handles[4]) == CF_OK);
	check(cf_unpin(heap, handles[4]) == CF_EPINS && cf_pin(heap, handles[4]) == CF_OK);
	check(cf_malloc(heap, 40000, &other) == CF_OK && cf_pin(heap, other) == CF_OK);
	check(cf_free_remote(heap, handles[4]) == CF_OK);
	check(cf_free_remote(heap, other) == CF_OK);
	check(cf_drain(heap, 10) == 2);
	cf_get_stats(heap, &stats);
	check(stats.remote_failed == 2 && stats.objects == 4 && !stats.pinned);
	sound(heap);
	/* what is freed is not moved before */
	moves = stats.moves;
	for (i = 0; i < 8; i++)
		check(cf_malloc(heap, 3000, &handles[i]) == CF_OK && cf_pin(heap, handles[i]) == CF_OK);
	for (i = 0; i < 8; i++) {
		check(cf_free_remote(heap, handles[i]) == CF_OK);
		check(cf_drain(heap, 1) == 1);
		sound(heap);
	}
	cf_get_stats(heap, &stats);
	check(stats.moves == moves && !stats.pinned && stats.objects == 4);
	unmake(&setup);
	setup.config.remote_frees = 0;
	heap = make(&setup);
	check(cf_malloc(heap, 40, &other) == CF_OK);
	check(cf_free_remote(heap, other) == CF_EINVAL);
	check(cf_drain(heap, 1) == 0);
	unmake(&setup);
	/* a ring that the buffer has no room for */
	setup.config.remote_frees = CF_MAX_REMOTE;
	buffer = malloc(CF_MAX_REMOTE * 8);
	check(!cf_init(buffer, CF_MAX_REMOTE * 8, &setup.config));
	free(buffer);
	buffer = NULL;
	done("the ring of remote frees");
}
#endif

/* ------ the paper's statements ------------------------------------------------------------------- */

/* Rule 1, Rule 2 and the three cases in which nothing moves. */
static void test_rules(void)
{
	struct cf_heap *heap = make(&setups[0]);
	unsigned int n = cf_class_per_page(heap, (unsigned int)cf_class_of(heap, 1000)), i;
	cf_handle handles[64] = { { 0, 0 } };
	struct cf_stats stats;

	check(3 * n <= 64 && n > 3);
	for (i = 0; i < 3 * n; i++)
		check(cf_malloc(heap, 1000, &handles[i]) == CF_OK);
	cf_get_stats(heap, &stats);
	check(stats.not_full_pages == 0 && stats.moves == 0);

	/* no not-full page: Rule 1 */
	check(cf_free(heap, handles[0]) == CF_OK);
	cf_get_stats(heap, &stats);
	check(stats.not_full_pages == 1 && stats.moves == 0);
	/* an object of the not-full page: nothing moves */
	check(cf_free(heap, handles[1]) == CF_OK);
	cf_get_stats(heap, &stats);
	check(stats.not_full_pages == 1 && stats.moves == 0);
	/* an object of a full page: Rule 2, one moves */
	check(cf_free(heap, handles[n]) == CF_OK);
	cf_get_stats(heap, &stats);
	check(stats.not_full_pages == 1 && stats.moves == 1);
	/* until the not-full page is empty and free for all */
	for (i = 2; i < n - 1; i++)
		check(cf_free(heap, handles[2 * n + i]) == CF_OK);
	cf_get_stats(heap, &stats);
	check(stats.not_full_pages == 0 && stats.moves == n - 2);
	check(stats.free_pages + stats.handle_pages + 2 == stats.pages);
	sound(heap);
	unmake(&setups[0]);
	done("Rule 1 and Rule 2 move what they say");
}

/* Objects are moved away from pages that are at most half full, allocated in those that are more. */
static void test_order(void)
{
	struct cf_heap *heap = make(&setups[2]); /* K = 3 */
	unsigned int n = cf_class_per_page(heap, (unsigned int)cf_class_of(heap, 1000)), i;
	cf_handle handles[64] = { { 0, 0 } }, fresh;
	void *half, *most, *at;

	check(4 * n <= 64 && n > 3);
	for (i = 0; i < 4 * n; i++)
		check(cf_malloc(heap, 1000, &handles[i]) == CF_OK);
	/* of the pages, the first loses an object, the second too, the third half of its */
	check(cf_free(heap, handles[0]) == CF_OK);
	check(cf_free(heap, handles[n]) == CF_OK);
	for (i = 0; i < n - n / 2; i++)
		check(cf_free(heap, handles[2 * n + i]) == CF_OK);
	most = cf_at(heap, handles[2 * n - 1], 0, NULL);
	half = cf_at(heap, handles[3 * n - 1], 0, NULL);
	check(cf_malloc(heap, 1000, &fresh) == CF_OK);
	at = cf_at(heap, fresh, 0, NULL);
	check((uintptr_t)at / CF_PAGE_SIZE == (uintptr_t)most / CF_PAGE_SIZE);
	check((uintptr_t)at / CF_PAGE_SIZE != (uintptr_t)half / CF_PAGE_SIZE);
	sound(heap);
	unmake(&setups[2]);
	done("objects are allocated in pages more than half full");
}

/* Each block of full pages is freed once, and is the only one of its row or page in some size-classes. */
static void test_each_block(const struct setup *setup)
{
	struct cf_heap *heap = make(setup);
	unsigned int class, n, i, j;
	cf_handle *handles = malloc(1024 * sizeof(*handles));

	for (class = 0; class < cf_class_count(heap); class++) {
		size_t size = cf_class_size(heap, class);

		n = cf_class_per_page(heap, class);
		for (i = 0; i < n; i++)
			check(cf_malloc(heap, size, &handles[i]) == CF_OK);
		for (i = 0; i < n; i++) {
			check(cf_free(heap, handles[i]) == CF_OK);
			sound(heap);
			check(cf_malloc(heap, size, &handles[i]) == CF_OK);
		}
		for (j = 0; j < n; j++)
			check(cf_free(heap, handles[j]) == CF_OK);
		sound(heap);
	}
	free(handles);
	unmake(setup);
	done("each block of a full page can be freed: %s", setup->name);
}

/* An allocation for which there is no handle leaves a page of pinned objects what it was. */
static void test_stuck_exhaustion(void)
{
	struct cf_config config = { .page_size = 256 };
	cf_handle pinned, others[3], handle;
	struct cf_stats stats;
	bool happened = false;
	struct cf_heap *heap;
	size_t size;
	int i;

	for (size = 32 << 10; size < 64 << 10; size += 256) {
		buffer = malloc(size);
		heap = cf_init(buffer, size, &config);
		if (!check(heap && !cf_malloc(heap, 100, &pinned) && !cf_pin(heap, pinned)))
			break;
		/* a page of a pinned object and one that is freed, a full page */
		for (i = 0; i < 3; i++)
			check(cf_malloc(heap, 100, &others[i]) == CF_OK);
		check(cf_free(heap, others[0]) == CF_OK);
		while (!cf_malloc(heap, 200, &handle))
			;
		cf_get_stats(heap, &stats);
		if (cf_malloc(heap, 100, &handle) == CF_ENOMEM && stats.stuck_pages)
			happened = true;
		sound(heap);
		check(cf_free(heap, others[1]) == CF_OK);
		sound(heap);
		free(buffer);
	}
	buffer = NULL;
	check(happened);
	done("an allocation without a handle leaves pinned pages alone");
}

/* K without limit is without limit in a heap of more pages than 65,535 as well. */
static void test_unlimited(void)
{
	struct setup setup = { "", 40 << 20, { .page_size = 256, .max_not_full = CF_UNLIMITED } };
	struct cf_heap *heap = make(&setup);
	size_t nr = 140000, i;
	cf_handle *handles = malloc(nr * sizeof(*handles));
	struct cf_stats stats;

	for (i = 0; i < nr; i++)
		check(cf_malloc(heap, 100, &handles[i]) == CF_OK);
	for (i = 0; i < nr; i += 2)
		check(cf_free(heap, handles[i]) == CF_OK);
	cf_get_stats(heap, &stats);
	check(stats.not_full_pages > 65535 && !stats.moves);
	free(handles);
	unmake(&setup);
	done("K without limit never moves anything");
}

/* A non-moving object takes the block-frames that it needs, and an eighth of that at most. */
static void test_block_frames(const struct setup *setup)
{
	struct cf_heap *heap = make(setup);
	size_t block = setup->config.block_size ? setup->config.block_size : CF_BLOCK_SIZE;
	struct cf_stats before, after;
	size_t size, needed, least;
	cf_handle handle;

	least = cf_class_size(heap, 0) / block;
	for (size = 1; size <= page_size(heap); size += 1 + below(block)) {
		cf_get_stats(heap, &before);
		check(cf_malloc(heap, size, &handle) == CF_OK);
		cf_get_stats(heap, &after);
		needed = (size + block - 1) / block;
		if (needed < least)
			needed = least;
		check(before.free_blocks - after.free_blocks >= needed);
		check(before.free_blocks - after.free_blocks <= needed + needed / 8);
		check(cf_free(heap, handle) == CF_OK);
	}
	unmake(setup);
	done("an object takes few block-frames more than it needs: %s", setup->name);
}

/* An allocation that fails takes no memory, be it a page for the object or for handles that is missing. */
static void test_exhaustion(void)
{
	struct cf_config config = { .page_size = 256 };
	bool page_left = false, none_left = false;
	struct cf_stats before, after;
	struct cf_heap *heap;
	cf_handle handle;
	size_t size;

	for (size = 32 << 10; size < 96 << 10; size += 256) {
		buffer = malloc(size);
		heap = cf_init(buffer, size, &config);
		if (!check(heap))
			break;
		do
			cf_get_stats(heap, &before);
		while (!cf_malloc(heap, 256, &handle));
		cf_get_stats(heap, &after);
		check(!memcmp(&before, &after, sizeof(before)));
		check(!handle.slot && !handle.stamp);
		check(after.free_pages <= 1);
		page_left |= after.free_pages == 1;
		none_left |= !after.free_pages;
		sound(heap);
		free(buffer);
	}
	buffer = NULL;
	check(page_left && none_left);
	done("an allocation that fails takes nothing");
}

/*
 * Proposition 1: a free moves nothing as long as fewer than K - 1 were not followed by an allocation.
 * (The paper says K, and forgets the not-full page that an allocation begins.)
 */
static void test_proposition(const struct setup *setup)
{
	struct cf_heap *heap = make(setup);
	unsigned int k = setup->config.max_not_full, count = 0, i;
	struct cf_stats before, after;
	size_t nr = 0, pick;
	cf_handle *handles = malloc(sizeof(*handles) * 8192);

	for (i = 0; i < operations && !failed; i++) {
		if ((below(2) || !nr) && nr < 8192) {
			if (!cf_malloc(heap, 200, &handles[nr])) {
				nr++;
				count -= !!count;
			}
			continue;
		}
		pick = below(nr);
		cf_get_stats(heap, &before);
		check(before.not_full_pages <= count + 1 || count + 1 >= k);
		check(cf_free(heap, handles[pick]) == CF_OK);
		cf_get_stats(heap, &after);
		check(count + 1 >= k || before.moves == after.moves);
		count++;
		handles[pick] = handles[--nr];
	}
	free(handles);
	unmake(setup);
	done("a free that Proposition 1 speaks of moves nothing: %s", setup->name);
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc > 1)
		operations = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	printf("TAP version 14\n");
	test_init();
	if (has_room(18 << 20, "a larger buffer"))
		test_growing();
	test_reused(64 << 10, 1u << 15);
	if (has_room(1 << 20, "a handle and its slot's reuses"))
		test_reused(1 << 20, 1u << 11);
	if (has_room(3 << 20, "a handle and its slot's reuses"))
		test_reused(3 << 20, 1u << 9); /* as in 4 MiB */
	if (has_room(8 << 20, "a handle and its slot's reuses"))
		test_reused(8 << 20, 1u << 8);
	for (i = 0; i < SETUPS; i++) {
		bool pieces = setups[i].config.engine == CF_NONMOVING ?
			setups[i].config.block_size < CF_PAGE_SIZE : setups[i].config.pieces;

		/* one heap, two of them in test_again() */
		if (has_room(setups[i].size, setups[i].name)) {
			test_model(&setups[i]);
			test_misuse(&setups[i]);
			test_forged(&setups[i]);
			if (setups[i].size >= 1 << 20 && pieces)
				test_large(&setups[i]);
			if (setups[i].size == 1 << 20 && pieces)
				test_tail(&setups[i]);
			if (setups[i].size == 1 << 20 && pieces && !setups[i].config.deferred &&
			    setups[i].config.max_not_full != CF_UNLIMITED)
				test_large_bound(&setups[i]);
			if (setups[i].size <= 1 << 20)
				test_large_exhaustion(&setups[i]);
		}
		if (has_room(2 * setups[i].size, setups[i].name))
			test_again(&setups[i]);
	}
	test_large_edges(&(struct cf_config){ .page_size = 256, .pieces = true }, 28, true);
	test_large_edges(&(struct cf_config){ .page_size = 256, .pieces = true }, 28, false);
	test_large_edges(&(struct cf_config){ .page_size = 512, .wide = true, .pieces = true }, 28, true);
	test_large_edges(&(struct cf_config){ .engine = CF_NONMOVING, .page_size = 1024,
					      .block_size = 64 }, 64, true);
	test_without_pages();
	if (has_room(5 << 20, "the largest object"))
		test_largest();
#if __GCC_ATOMIC_INT_LOCK_FREE == 2
	test_remote();
#endif
	test_lock();
	test_rules();
	test_each_block(&setups[0]);
	test_order();
	test_exhaustion();
	test_stuck_exhaustion();
	if (has_room(64 << 20, "K without limit"))
		test_unlimited();
	for (i = 0; i < SETUPS; i++)
		if (setups[i].config.engine == CF_NONMOVING)
			test_block_frames(&setups[i]);
	test_proposition(&setups[2]);
	test_proposition(&setups[12]);
	printf("1..%u\n", number);
	return any_failed;
}
