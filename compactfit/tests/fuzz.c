/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Fuzzing over the whole API: bytes make a heap, then operations on it, right and wrong ones, each
 * answer compared with a model's. By libFuzzer, or alone: fuzz FILE... runs files that it kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compactfit.h"

#define OBJECTS 512
#define BUFFER (512u << 10)
#define GUARD 65536u /* bytes before a heap's buffer, which nobody may write to */

struct object {
	cf_handle handle;
	size_t size;
	size_t align; /* that it has to keep */
	unsigned int pins;
	uint32_t pattern;
	const void *pinned_at;
};

static const uint8_t *input, *input_end;
static struct cf_heap *heap;
static struct cf_config config;
static struct object objects[OBJECTS];
static size_t nr;
static cf_handle old[16]; /* of objects that were freed */
static unsigned int nr_old;
static int held;

static void wrong_at(int line, const char *what)
{
	fprintf(stderr, "fuzz.c:%d: %s\n", line, what);
	abort();
}

#define expect(condition) ((condition) ? (void)0 : wrong_at(__LINE__, #condition))

/* ------ input ------------------------------------------------------------------------------------ */

static uint32_t byte(void)
{
	return input < input_end ? *input++ : 0;
}

static uint32_t word(void)
{
	uint32_t value = byte() << 24;

	value |= byte() << 16;
	value |= byte() << 8;
	return value | byte();
}

/* All sizes, those at the border between two size-classes, those that are wrong. */
static size_t any_size(void)
{
	uint32_t kind = byte();
	size_t most = cf_max_size(heap), fit = most < BUFFER / 2 ? most : BUFFER / 2;

	switch (kind >> 5) {
	case 0:
		return cf_class_size(heap, byte() % cf_class_count(heap)) + (kind & 3) - 1;
	case 1: /* as many of each magnitude */
		return 1 + (word() % fit >> (kind & 7));
	case 2:
		return most - (kind & 7);
	case 3:
		return kind & 16 ? SIZE_MAX - (kind & 15) : most + (kind & 15);
	default:
		return 1 + ((kind & 31) << 8 | byte()) % (most < 600 ? most : 600);
	}
}

/* ------ contents --------------------------------------------------------------------------------- */

static uint8_t content(const struct object *object, size_t i)
{
	return (uint8_t)((object->pattern + i) * 2654435761u >> 24);
}

#define END 2048u /* bytes at each end that are looked at: large objects would take all the time */

static size_t after(size_t at, size_t size)
{
	return ++at == END && size > 2 * END ? size - END : at;
}

static void each_byte(const struct object *object, size_t from, size_t to, bool write)
{
	size_t length = 0, start = 0, i;
	uint8_t *piece = NULL;

	for (i = from; i < to; i = after(i, object->size)) {
		if (!piece || i < start || i - start >= length) {
			start = i;
			piece = cf_at(heap, object->handle, i, &length);
			expect(piece && length);
		}
		if (write)
			piece[i - start] = content(object, i);
		else
			expect(piece[i - start] == content(object, i));
	}
}

/* ------ operations -------------------------------------------------------------------------------- */

static void verify(void)
{
	const char *sentence = cf_verify(heap);

	if (sentence)
		wrong_at(__LINE__, sentence);
}

/* The live object that a handle is of: whatever the handle was made of. */
static struct object *find(cf_handle handle)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (objects[i].handle.slot == handle.slot &&
		    objects[i].handle.stamp == handle.stamp)
			return &objects[i];
	return NULL;
}

/* Nearly always that of a live object. */
static cf_handle any_handle(void)
{
	uint32_t kind = byte();
	cf_handle handle = { 0, 0 };

	if (nr)
		handle = objects[(kind < 240 ? kind : byte()) % nr].handle;
	switch (kind) {
	case 240:
	case 241:
		return (cf_handle){ word(), word() };
	case 242:
		return (cf_handle){ word() % (BUFFER / 4), handle.stamp };
	case 243:
		handle.stamp ^= 1u << byte() % 32;
		return handle;
	case 244:
		handle.slot ^= 1u << byte() % 32;
		return handle;
	case 245:
	case 246:
	case 247:
		return old[byte() % 16];
	default:
		return handle;
	}
}

/* What cf_malloc() aligns to. */
static size_t natural(size_t size)
{
	size_t align = size & -size;

	return align > 16 ? 16 : align;
}

static bool is_right(size_t size)
{
	return size && size <= cf_max_size(heap);
}

static bool allocate(size_t size, uint32_t how)
{
	struct object *object = &objects[nr];
	size_t bound = cf_bound(heap, size), align = 0, i;
	int status;

	if (nr == OBJECTS)
		return false;
	*object = (struct object){ .size = size, .pattern = (uint32_t)(nr * 40503u + size) };
	expect(is_right(size) || !bound);
	if (how < 200) {
		status = cf_malloc(heap, size, &object->handle);
	} else if (how < 230) {
		size_t count = how & 1 ? 1 : 1 + how % 5;

		status = cf_calloc(heap, count, size, &object->handle);
		if (count > 1 || !size) {
			bound = 0;
			if (size && size > SIZE_MAX / count)
				expect(status == CF_ESIZE);
			else
				expect((status == CF_ESIZE) == !is_right(size * count));
			if (status == CF_OK)
				object->size = size * count;
		}
	} else {
		bound = 0;
		align = how == 255 ? byte() : (size_t)1 << (how - 230);
		status = cf_aligned_alloc(heap, align, size, &object->handle);
		if (!align || align & (align - 1))
			expect(status == CF_EINVAL);
		if (status == CF_EINVAL && align && !(align & (align - 1)))
			expect(align > (config.engine == CF_MOVING ?
						config.page_size :
						config.block_size));
	}
	if (status) {
		expect(status != CF_ENOMEM || !bound);
		expect(status != CF_ESIZE || how >= 200 || !is_right(size));
		expect(!object->handle.slot && !object->handle.stamp);
		return false;
	}
	nr++;
	object->align = how < 230 ? natural(size) : align;
	expect(cf_usable_size(heap, object->handle) >= object->size);
	if (how >= 200 && how < 230)
		for (i = 0; i < object->size; i = after(i, object->size))
			expect(*(uint8_t *)cf_at(heap, object->handle, i, NULL) == 0);
	each_byte(object, 0, object->size, true);
	return true;
}

static void release(cf_handle handle)
{
	struct object *object = find(handle);
	int status;

	if (object)
		each_byte(object, 0, object->size, false);
	status = cf_free(heap, handle);
	if (!object) {
		expect(status == CF_ESTALE);
	} else if (object->pins) {
		expect(status == CF_EPINNED);
	} else {
		expect(status == CF_OK);
		expect(cf_free(heap, handle) == CF_ESTALE);
		old[nr_old++ % 16] = handle;
		*object = objects[--nr];
	}
}

static void resize(cf_handle handle, size_t size)
{
	struct object *object = find(handle);
	int status = cf_realloc(heap, handle, size);
	size_t common;

	if (!object) {
		expect(status == CF_ESTALE);
	} else if (object->pins) {
		expect(status == CF_EPINNED);
	} else if (!is_right(size)) {
		expect(status == CF_ESIZE);
	} else {
		expect(status == CF_OK || status == CF_ENOMEM);
		if (status)
			return;
		common = size < object->size ? size : object->size;
		/* of the larger one each_byte() skips other bytes */
		if ((size > object->size ? size : object->size) > 2 * END && common > END)
			common = END;
		each_byte(object, 0, common, false);
		object->size = size;
		object->align = natural(size);
		each_byte(object, 0, size, true);
	}
}

static void pin(cf_handle handle)
{
	struct object *object = find(handle);
	int status = cf_pin(heap, handle);

	expect(status == (!object ? CF_ESTALE : object->pins == CF_MAX_PINS ? CF_EPINS : CF_OK));
	if (!status && !object->pins++)
		object->pinned_at = cf_at(heap, handle, 0, NULL);
}

static void unpin(cf_handle handle)
{
	struct object *object = find(handle);
	int status;

	if (object && object->pins)
		expect(object->pinned_at == cf_at(heap, handle, 0, NULL));
	status = cf_unpin(heap, handle);
	expect(status == (!object ? CF_ESTALE : object->pins ? CF_OK : CF_EPINS));
	if (!status)
		object->pins--;
}

static void look(cf_handle handle)
{
	struct object *object = find(handle);
	size_t usable = cf_usable_size(heap, handle), offset = byte() & 1 ? word() : any_size(), length;
	const void *at = cf_at(heap, handle, offset, &length);

	expect(cf_check_handle(heap, handle) == (object ? CF_OK : CF_ESTALE));
	expect(object ? usable >= object->size : !usable);
	expect((at != NULL) == (offset < usable) && (at != NULL) == (length != 0));
	expect(length <= usable);
	if (object) {
		at = cf_at(heap, handle, 0, NULL);
		expect((uintptr_t)at % object->align == 0);
		if (config.engine == CF_MOVING && object->size <= config.page_size)
			expect(at == cf_deref(heap, handle, 0));
		each_byte(object, 0, object->size, false);
	}
}

/* As many objects of a size as the bound says are had, whatever is freed in between. */
static void fill_to_bound(size_t size, bool frees, bool stay)
{
	size_t bound = cf_bound(heap, size), from = nr, i;

	expect(!bound || is_right(size));
	if (stay || bound <= OBJECTS - nr) {
		for (i = 0; i < bound && nr < OBJECTS; i++) {
			expect(allocate(size, 0));
			if (frees && from && !objects[i % from].pins && nr < OBJECTS) {
				release(objects[i % from].handle);
				from--;
			}
		}
	} else {
		cf_handle *handles = malloc(bound * sizeof(*handles));

		for (i = 0; i < bound; i++)
			expect(cf_malloc(heap, size, &handles[i]) == CF_OK);
		verify();
		while (i--)
			expect(cf_free(heap, handles[i]) == CF_OK);
		free(handles);
	}
}

/*
 * What costs a heap most pages: many objects of a size, pinned every so often or not, of which all are freed
 * but every so manyeth.
 */
static void comb(size_t size, uint32_t n, bool pinned)
{
	size_t from = nr, keep, i;
	int class = cf_class_of(heap, size);

	if (!(n & 7) && class >= 0)
		n = cf_class_per_page(heap, (unsigned int)class);
	n = n ? n : 1;
	keep = byte() % n;
	while (allocate(size, 0))
		;
	for (i = from + keep; pinned && i < nr; i += n)
		pin(objects[i].handle);
	/* downwards: what takes a freed one's number is one that is kept */
	for (i = nr; i-- > from;)
		if ((i - from) % n != keep)
			release(objects[i].handle);
	fill_to_bound(any_size(), false, false);
}

/* Or one page more with a single object, in each size-class or some. */
static void spread(uint32_t first, uint32_t step)
{
	unsigned int class, n;
	size_t from;

	for (class = first; class < cf_class_count(heap); class += 1 + step) {
		n = cf_class_per_page(heap, class);
		for (from = nr; nr - from < n;)
			if (!allocate(cf_class_size(heap, class), 0))
				break;
		while (nr > from + 1)
			release(objects[nr - 1].handle);
	}
	fill_to_bound(any_size(), false, false);
}

static void compact(void)
{
	size_t budget = byte() & 1 ? SIZE_MAX : word() >> 16, moved = cf_compact(heap, budget);

	expect(moved <= budget);
	expect(budget != SIZE_MAX || !cf_debt(heap));
	expect(config.deferred || !moved);
}

static void operation(void)
{
	uint32_t kind = byte(), how;

	switch (kind >> 4) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
		how = byte();
		allocate(any_size(), how);
		break;
	case 5:
	case 6:
	case 7:
	case 8:
		release(any_handle());
		break;
	case 9: {
		cf_handle handle = any_handle();

		resize(handle, any_size());
		break;
	}
	case 10:
		pin(any_handle());
		break;
	case 11:
		unpin(any_handle());
		break;
	case 12:
		look(any_handle());
		break;
	case 13:
		fill_to_bound(any_size(), kind & 1, kind & 2);
		break;
	case 14:
		how = byte();
		if (kind & 1)
			comb(any_size(), how >> 1, how & 1);
		else
			spread(how >> 3, how & 7);
		break;
	default:
		compact();
	}
}

/* ------ heaps ------------------------------------------------------------------------------------ */

static void take_lock(void *arg)
{
	expect(arg == &held && held++ == 0);
}

static void drop_lock(void *arg)
{
	expect(arg == &held && --held == 0);
}

static void whole_heap(void)
{
	struct cf_stats stats;
	size_t i, pinned = 0;

	verify();
	cf_get_stats(heap, &stats);
	for (i = 0; i < nr; i++) {
		each_byte(&objects[i], 0, objects[i].size, false);
		expect((uintptr_t)cf_at(heap, objects[i].handle, 0, NULL) % objects[i].align == 0);
		pinned += !!objects[i].pins;
	}
	expect(stats.objects == nr && stats.pinned == pinned);
}

static void empty_heap(void)
{
	struct cf_stats stats;

	while (nr) {
		while (objects[nr - 1].pins)
			unpin(objects[nr - 1].handle);
		release(objects[nr - 1].handle);
	}
	verify();
	cf_get_stats(heap, &stats);
	expect(!stats.objects && stats.free_pages + stats.handle_pages == stats.pages);
	expect(!held);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void configure(void)
{
	static uint16_t per_class[CF_MAX_CLASSES];
	uint32_t flags = byte(), i;

	config = (struct cf_config){
		.engine = flags & 1 ? CF_NONMOVING : CF_MOVING,
		.wide = flags & 2,
		.deferred = flags & 4,
		.pieces = flags & 128,
		.page_size = 256u << byte() % 9,
		.max_not_full = flags & 8 ? CF_UNLIMITED : flags & 16 ? (uint16_t)byte() : 0,
	};
	config.block_size = 16u << byte() % 9;
	if (config.block_size > config.page_size)
		config.block_size = config.page_size;
	if (flags & 32) {
		for (i = 0; i < CF_MAX_CLASSES; i++)
			per_class[i] = (uint16_t)(i * flags % 5);
		config.class_max_not_full = per_class;
	}
	if (flags & 64) {
		config.lock = take_lock;
		config.unlock = drop_lock;
		config.lock_arg = &held;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t *memory;
	size_t bytes, count = 0, i;
	uint8_t *buffer;

	/* A heap depends on its alignment, and on what is in its buffer no more than it should. */
	if (!memory)
		memory = aligned_alloc(65536, GUARD + BUFFER);
	memset(memory, 0xa5, GUARD + BUFFER);
	memset(old, 0, sizeof(old));
	nr = 0;
	input = data;
	input_end = data + size;
	configure();
	bytes = (word() % BUFFER) >> byte() % 6;
	/* up to the memory's end, which address sanitizers guard */
	buffer = memory + GUARD + BUFFER - bytes;
	heap = cf_init(buffer, bytes, &config);
	if (!heap)
		return 0;
	verify();
	while (input < input_end) {
		operation();
		if (++count % 8 == 0)
			verify();
	}
	whole_heap();
	empty_heap();
	for (i = 1; i <= GUARD; i++)
		expect(*(buffer - i) == 0xa5);
	return 0;
}

#ifndef CF_LIBFUZZER
int main(int argc, char **argv)
{
	static uint8_t data[1 << 20];
	int i;

	for (i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "rb");

		if (!file) {
			perror(argv[i]);
			return 2;
		}
		LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof(data), file));
		fclose(file);
	}
	return 0;
}
#endif
