// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of compactfit
 *
 * Random operations on a heap, and on a table of what has to be in it.
 */
#include <kunit/test.h>
#include <linux/compactfit.h>
#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

#define CF_TEST_PAGES		128	/* of the size that the heap is configured for */
#define CF_TEST_OBJECTS		192
#define CF_TEST_STEPS		3000
#define CF_TEST_VERIFY		128	/* steps between two looks at the whole heap */

#define CF_TEST_THREADS		4
#define CF_TEST_THREAD_STEPS	2000
#define CF_TEST_SHARED_SIZE	64	/* most time shall go into the heap, not into contents */
#define CF_TEST_PERIOD		(100 * NSEC_PER_USEC)
#define CF_TEST_TICKS		8	/* at least, for each thread */

/**
 * struct cf_test_object - an object as it has to be
 * @handle: the object; all zero if there is none
 * @size: bytes asked for
 * @align: alignment asked for; 1 if none was
 * @pins: how many times it is pinned
 * @where: its first byte, while it is pinned
 * @seed: of its content
 */
struct cf_test_object {
	cf_handle handle;
	size_t size;
	size_t align;
	unsigned int pins;
	void *where;
	u8 seed;
};

/**
 * struct cf_test_model - a heap and what has to be in it
 * @heap: the heap
 * @rnd: what happens next
 * @objects: all of its objects
 * @nr_objects: how many there can be
 * @max_size: of most objects, bytes
 * @max_align: of an object, bytes, a power of two
 * @wrong: what was found wrong first; NULL so far
 *
 * Without KUnit's assertions: they do not work in an interrupt handler.
 */
struct cf_test_model {
	struct cf_heap *heap;
	struct rnd_state rnd;
	struct cf_test_object *objects;
	unsigned int nr_objects;
	size_t max_size;
	size_t max_align;
	const char *wrong;
};

static void cf_test_wrong(struct cf_test_model *m, bool wrong, const char *what)
{
	if (wrong && !m->wrong)
		m->wrong = what;
}

static u32 cf_test_random(struct cf_test_model *m, u32 below)
{
	return prandom_u32_state(&m->rnd) % below;
}

/* As many small objects as large ones; now and then one larger than @max_size. */
static size_t cf_test_size(struct cf_test_model *m)
{
	size_t most = m->max_size >> cf_test_random(m, 6);

	if (!cf_test_random(m, 16))
		most = 3 * m->max_size;

	return 1 + cf_test_random(m, most);
}

static u8 cf_test_byte(u8 seed, size_t at)
{
	return seed + at * 7 + (at >> 8);
}

/*
 * Look at the bytes from @from to @to of an object, or write them. The object has
 * to be pinned if others use the heap.
 */
static void cf_test_content(struct cf_test_model *m, struct cf_test_object *object,
			    size_t from, size_t to, bool write)
{
	size_t length, i;
	u8 *bytes;

	for (; from < to; from += length) {
		bytes = cf_at(m->heap, object->handle, from, &length);
		cf_test_wrong(m, !bytes, "each byte of an object has an address");
		if (!bytes)
			return;
		length = min(length, to - from);
		for (i = 0; i < length && write; i++)
			bytes[i] = cf_test_byte(object->seed, from + i);
		for (i = 0; i < length; i++)
			cf_test_wrong(m, bytes[i] != cf_test_byte(object->seed, from + i),
				      "objects keep their content");
	}
}

static void cf_test_pin(struct cf_test_model *m, struct cf_test_object *object)
{
	int status = cf_pin(m->heap, object->handle);

	if (object->pins == CF_MAX_PINS) {
		cf_test_wrong(m, status != CF_EPINS, "pins are limited");
		return;
	}
	cf_test_wrong(m, status, "an object can be pinned");
	if (!object->pins++)
		object->where = cf_at(m->heap, object->handle, 0, NULL);
}

static void cf_test_unpin(struct cf_test_model *m, struct cf_test_object *object)
{
	int status = cf_unpin(m->heap, object->handle);

	if (!object->pins) {
		cf_test_wrong(m, status != CF_EPINS, "what is not pinned cannot be unpinned");
		return;
	}
	cf_test_wrong(m, status, "a pinned object can be unpinned");
	object->pins--;
}

static void cf_test_check(struct cf_test_model *m, struct cf_test_object *object)
{
	void *where;

	cf_test_wrong(m, cf_usable_size(m->heap, object->handle) < object->size,
		      "an object is as large as was asked for");
	if (cf_pin(m->heap, object->handle) == CF_EPINS)
		return;
	where = cf_at(m->heap, object->handle, 0, NULL);
	cf_test_wrong(m, object->pins && where != object->where, "a pinned object stays");
	cf_test_wrong(m, !IS_ALIGNED((unsigned long)where, object->align),
		      "an object stays aligned");
	cf_test_content(m, object, 0, object->size, false);
	cf_test_wrong(m, cf_unpin(m->heap, object->handle), "a pin can be taken back");
}

static void cf_test_fill(struct cf_test_model *m, struct cf_test_object *object, size_t from)
{
	if (cf_pin(m->heap, object->handle) == CF_EPINS)
		return;
	cf_test_content(m, object, from, object->size, true);
	cf_test_wrong(m, cf_unpin(m->heap, object->handle), "a pin can be taken back");
}

static void cf_test_zeroed(struct cf_test_model *m, struct cf_test_object *object)
{
	size_t at, length, i;
	u8 *bytes;

	cf_pin(m->heap, object->handle);
	for (at = 0; at < object->size; at += length) {
		bytes = cf_at(m->heap, object->handle, at, &length);
		length = min(length, object->size - at);
		for (i = 0; i < length; i++)
			cf_test_wrong(m, bytes[i], "cf_calloc() clears");
	}
	cf_unpin(m->heap, object->handle);
}

static void cf_test_allocate(struct cf_test_model *m, struct cf_test_object *object)
{
	size_t size = cf_test_size(m);
	u32 how = cf_test_random(m, 4);
	int status;

	object->align = 1;
	if (!how) {
		status = cf_calloc(m->heap, 1, size, &object->handle);
	} else if (how == 1) {
		object->align = m->max_align >> cf_test_random(m, 5);
		status = cf_aligned_alloc(m->heap, object->align, size, &object->handle);
	} else {
		status = cf_malloc(m->heap, size, &object->handle);
	}
	if (status) {
		cf_test_wrong(m, status != CF_ENOMEM, "allocations fail for want of memory");
		cf_test_wrong(m, object->handle.slot, "there is no object then");
		return;
	}
	object->size = size;
	object->pins = 0;
	object->seed = cf_test_random(m, 256);
	if (!how)
		cf_test_zeroed(m, object);
	cf_test_fill(m, object, 0);
}

static void cf_test_free(struct cf_test_model *m, struct cf_test_object *object)
{
	int status = cf_free(m->heap, object->handle);

	if (object->pins) {
		cf_test_wrong(m, status != CF_EPINNED, "a pinned object is not freed");
		return;
	}
	cf_test_wrong(m, status, "an object can be freed");
	cf_test_wrong(m, cf_free(m->heap, object->handle) != CF_ESTALE,
		      "an object is freed but once");
	object->handle = (cf_handle){};
}

static void cf_test_resize(struct cf_test_model *m, struct cf_test_object *object)
{
	size_t size = cf_test_size(m), before = object->size;
	int status = cf_realloc(m->heap, object->handle, size);

	if (object->pins) {
		cf_test_wrong(m, status != CF_EPINNED, "a pinned object keeps its size");
	} else if (status) {
		cf_test_wrong(m, status != CF_ENOMEM, "objects grow while there is memory");
	} else {
		object->size = size;
		object->align = 1;
		cf_test_fill(m, object, before);
	}
}

static void cf_test_step(struct cf_test_model *m)
{
	struct cf_test_object *object = &m->objects[cf_test_random(m, m->nr_objects)];

	if (!object->handle.slot) {
		cf_test_allocate(m, object);
		return;
	}
	cf_test_check(m, object);
	switch (cf_test_random(m, 8)) {
	case 0:
		cf_test_pin(m, object);
		break;
	case 1:
	case 2:
		cf_test_unpin(m, object);
		break;
	case 3:
	case 4:
		cf_test_resize(m, object);
		break;
	default:
		cf_test_free(m, object);
	}
}

static void cf_test_free_all(struct cf_test_model *m)
{
	struct cf_test_object *object;

	for (object = m->objects; object < m->objects + m->nr_objects; object++) {
		if (!object->handle.slot)
			continue;
		cf_test_check(m, object);
		while (object->pins)
			cf_test_unpin(m, object);
		cf_test_free(m, object);
	}
}

/* ------ fixtures ------------------------------------------------------ */

KUNIT_DEFINE_ACTION_WRAPPER(cf_test_vfree, vfree, const void *);

static void *cf_test_memory(struct kunit *test, size_t bytes)
{
	void *memory = vmalloc(bytes);

	KUNIT_ASSERT_NOT_NULL(test, memory);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, cf_test_vfree, memory));
	return memory;
}

static size_t cf_test_bytes(const struct cf_config *config)
{
	return CF_TEST_PAGES * (config->page_size ?: CF_PAGE_SIZE);
}

static struct cf_heap *cf_test_heap(struct kunit *test, const struct cf_config *config)
{
	size_t bytes = cf_test_bytes(config);
	struct cf_heap *heap = cf_init(cf_test_memory(test, bytes), bytes, config);

	KUNIT_ASSERT_NOT_NULL(test, heap);
	return heap;
}

static void cf_test_model_init(struct kunit *test, struct cf_test_model *m,
			       struct cf_heap *heap, unsigned int nr_objects, size_t max_size,
			       u64 seed)
{
	memset(m, 0, sizeof(*m));
	m->heap = heap;
	m->nr_objects = nr_objects;
	m->max_size = max_size;
	m->max_align = 16; /* the least that a block-frame can have */
	m->objects = kunit_kcalloc(test, nr_objects, sizeof(*m->objects), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m->objects);
	prandom_seed_state(&m->rnd, seed);
}

static void cf_test_expect_right(struct kunit *test, struct cf_test_model *m)
{
	const char *wrong = cf_verify(m->heap);

	KUNIT_EXPECT_NULL_MSG(test, m->wrong, "not so: %s", m->wrong);
	KUNIT_EXPECT_NULL_MSG(test, wrong, "not so: %s", wrong);
}

/* Nothing is left but pages that hold handles. */
static void cf_test_expect_empty(struct kunit *test, struct cf_heap *heap)
{
	struct cf_stats stats;

	cf_get_stats(heap, &stats);
	KUNIT_EXPECT_EQ(test, stats.objects, 0);
	KUNIT_EXPECT_EQ(test, stats.pinned, 0);
	KUNIT_EXPECT_EQ(test, stats.free_pages + stats.handle_pages, stats.pages);
}

static size_t cf_test_page_size(struct cf_heap *heap)
{
	return cf_class_size(heap, cf_class_count(heap) - 1);
}

/* ------ one user ------------------------------------------------------ */

static const struct cf_test_config {
	const char *name;
	struct cf_config config;
} cf_test_configs[] = {
	{ "moving", { .page_size = 1024, .pieces = true } },
	{ "moving, wide", { .page_size = 1024, .wide = true, .pieces = true } },
	{ "moving, K = 3", { .page_size = 1024, .max_not_full = 3, .pieces = true } },
	{ "moving, deferred", { .page_size = 1024, .deferred = true, .pieces = true } },
	{ "moving, 16 KiB", { .page_size = CF_PAGE_SIZE, .pieces = true } },
	{ "non-moving", { .engine = CF_NONMOVING, .page_size = 1024, .block_size = 16 } },
	{ "non-moving, K = 3",
	  { .engine = CF_NONMOVING, .page_size = 1024, .block_size = 32, .max_not_full = 3 } },
	{ "non-moving, deferred",
	  { .engine = CF_NONMOVING, .page_size = 1024, .block_size = 16, .deferred = true } },
	{ "non-moving, 16 KiB", { .engine = CF_NONMOVING } },
};

KUNIT_ARRAY_PARAM_DESC(cf_test, cf_test_configs, name);

static void cf_test_compact(struct kunit *test, struct cf_test_model *m)
{
	size_t budget = 2 * cf_test_page_size(m->heap);

	while (cf_debt(m->heap)) {
		size_t moved = cf_compact(m->heap, budget);

		KUNIT_ASSERT_GT(test, moved, 0);
		KUNIT_ASSERT_LE(test, moved, budget);
	}
}

/* Random operations: contents, handles, pins, alignment; and that objects moved at all. */
static void cf_test_random_steps(struct kunit *test)
{
	const struct cf_test_config *param = test->param_value;
	struct cf_heap *heap = cf_test_heap(test, &param->config);
	struct cf_test_model m;
	struct cf_stats stats;
	unsigned int step;

	cf_test_model_init(test, &m, heap, CF_TEST_OBJECTS, cf_test_page_size(heap), 1);
	for (step = 0; step < CF_TEST_STEPS && !m.wrong; step++) {
		cf_test_step(&m);
		if (step % CF_TEST_VERIFY)
			continue;
		if (param->config.deferred)
			cf_test_compact(test, &m);
		cf_test_expect_right(test, &m);
		cond_resched();
	}
	cf_get_stats(heap, &stats);
	KUNIT_EXPECT_GT(test, stats.moves, 0);
	cf_test_free_all(&m);
	cf_test_expect_right(test, &m);
	cf_test_expect_empty(test, heap);
}

/* After any history: as many objects as cf_bound() says; when no more can be had, it says 0. */
static void cf_test_bound(struct kunit *test)
{
	static const size_t sizes[] = { 1, 16, 24, 100, 500, 1024 };
	const struct cf_test_config *param = test->param_value;
	struct cf_heap *heap = cf_test_heap(test, &param->config);
	size_t most = cf_test_bytes(&param->config) / 16; /* no object takes less */
	cf_handle *handles = cf_test_memory(test, most * sizeof(*handles));
	struct cf_test_model m;
	unsigned int i, step;

	cf_test_model_init(test, &m, heap, CF_TEST_OBJECTS, 1024, 2);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t bound, nr = 0, failed = 0;

		for (step = 0; step < CF_TEST_STEPS / 8; step++)
			cf_test_step(&m);
		bound = cf_bound(heap, sizes[i]);
		while (nr < most && !cf_malloc(heap, sizes[i], &handles[nr]))
			nr++;
		KUNIT_EXPECT_GE(test, nr, bound);
		KUNIT_EXPECT_EQ(test, cf_bound(heap, sizes[i]), 0);
		while (nr)
			failed += !!cf_free(heap, handles[--nr]);
		KUNIT_EXPECT_EQ(test, failed, 0);
		cond_resched();
	}
	cf_test_free_all(&m);
	cf_test_expect_right(test, &m);
}

/* What is asked wrong is refused, and changes nothing. */
static void cf_test_misuse(struct kunit *test)
{
	const struct cf_test_config *param = test->param_value;
	struct cf_heap *heap = cf_test_heap(test, &param->config);
	struct cf_heap *other = cf_test_heap(test, &param->config);
	cf_handle object, pinned, freed, reused, foreign, none = {}, handle;
	size_t most = cf_max_size(heap), length;
	struct cf_stats before, after;
	struct cf_test_model m;
	int i;

	cf_test_model_init(test, &m, heap, 1, most, 3);
	KUNIT_ASSERT_EQ(test, cf_malloc(heap, 100, &object), CF_OK);
	KUNIT_ASSERT_EQ(test, cf_malloc(heap, 100, &pinned), CF_OK);
	KUNIT_ASSERT_EQ(test, cf_malloc(heap, 100, &freed), CF_OK);
	KUNIT_ASSERT_EQ(test, cf_free(heap, freed), CF_OK);
	KUNIT_ASSERT_EQ(test, cf_malloc(heap, 200, &reused), CF_OK);
	KUNIT_ASSERT_EQ(test, reused.slot, freed.slot);
	for (i = 0; i < 5; i++)
		KUNIT_ASSERT_EQ(test, cf_malloc(other, 100, &foreign), CF_OK);
	for (i = 0; i < CF_MAX_PINS; i++)
		KUNIT_ASSERT_EQ(test, cf_pin(heap, pinned), CF_OK);
	cf_get_stats(heap, &before);

	KUNIT_EXPECT_EQ(test, cf_malloc(heap, 0, &handle), CF_ESIZE);
	KUNIT_EXPECT_EQ(test, cf_malloc(heap, most + 1, &handle), CF_ESIZE);
	KUNIT_EXPECT_EQ(test, cf_malloc(heap, SIZE_MAX, &handle), CF_ESIZE);
	KUNIT_EXPECT_EQ(test, cf_calloc(heap, SIZE_MAX / 2, 4, &handle), CF_ESIZE);
	KUNIT_EXPECT_EQ(test, cf_aligned_alloc(heap, 3, 8, &handle), CF_EINVAL);
	KUNIT_EXPECT_EQ(test, cf_aligned_alloc(heap, 0, 8, &handle), CF_EINVAL);
	KUNIT_EXPECT_EQ(test, cf_aligned_alloc(heap, 2 * most, 8, &handle), CF_EINVAL);
	KUNIT_EXPECT_EQ(test, handle.slot, 0);
	KUNIT_EXPECT_EQ(test, cf_realloc(heap, object, 0), CF_ESIZE);
	KUNIT_EXPECT_EQ(test, cf_realloc(heap, object, most + 1), CF_ESIZE);
	KUNIT_EXPECT_EQ(test, cf_realloc(heap, pinned, 200), CF_EPINNED);
	KUNIT_EXPECT_EQ(test, cf_free(heap, pinned), CF_EPINNED);
	KUNIT_EXPECT_EQ(test, cf_pin(heap, pinned), CF_EPINS);
	KUNIT_EXPECT_EQ(test, cf_unpin(heap, object), CF_EPINS);
	KUNIT_EXPECT_NULL(test, cf_at(heap, object, cf_usable_size(heap, object), &length));
	KUNIT_EXPECT_EQ(test, length, 0);
	KUNIT_EXPECT_EQ(test, cf_bound(heap, 0), 0);
	KUNIT_EXPECT_EQ(test, cf_bound(heap, most + 1), 0);
	/* that of an object whose slot is another's now, that of another heap, none, any numbers */
	for (i = 0; i < 1000 + 3; i++) {
		handle = i == 0 ? freed : i == 1 ? foreign : none;
		if (i > 2) {
			handle.slot = cf_test_random(&m, cf_test_bytes(&param->config));
			handle.stamp = prandom_u32_state(&m.rnd);
		}
		KUNIT_EXPECT_EQ(test, cf_check_handle(heap, handle), CF_ESTALE);
		KUNIT_EXPECT_EQ(test, cf_free(heap, handle), CF_ESTALE);
		KUNIT_EXPECT_EQ(test, cf_realloc(heap, handle, 8), CF_ESTALE);
		KUNIT_EXPECT_EQ(test, cf_pin(heap, handle), CF_ESTALE);
		KUNIT_EXPECT_EQ(test, cf_unpin(heap, handle), CF_ESTALE);
		KUNIT_EXPECT_EQ(test, cf_usable_size(heap, handle), 0);
		KUNIT_EXPECT_NULL(test, cf_at(heap, handle, 0, NULL));
	}

	cf_get_stats(heap, &after);
	KUNIT_EXPECT_MEMEQ(test, &before, &after, sizeof(before));
	KUNIT_EXPECT_EQ(test, cf_check_handle(heap, object), CF_OK);
	KUNIT_EXPECT_EQ(test, cf_check_handle(heap, pinned), CF_OK);
	cf_test_expect_right(test, &m);
}

static void cf_test_lock_nothing(void *arg)
{
}

static void cf_test_init(struct kunit *test)
{
	static const struct cf_config wrong[] = {
		{ .page_size = 128 },
		{ .page_size = 1000 },
		{ .page_size = SZ_128K },
		{ .block_size = 8 },
		{ .engine = CF_NONMOVING, .block_size = SZ_32K },
		{ .engine = 2 },
		{ .lock = cf_test_lock_nothing },
		{ .unlock = cf_test_lock_nothing },
	};
	u8 *memory = cf_test_memory(test, SZ_64K);
	const size_t kept = 64;
	size_t size, i;

	KUNIT_EXPECT_NULL(test, cf_init(NULL, SZ_64K, NULL));
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		KUNIT_EXPECT_NULL_MSG(test, cf_init(memory, SZ_64K, &wrong[i]),
				      "configuration %zu", i);
	/* at any address, of any size: whatever it does stays in between */
	for (size = 0; size < SZ_32K; size += 999) {
		const struct cf_config small = { .page_size = 256 };
		cf_handle handle;
		struct cf_heap *heap;

		memset(memory, 0x5a, SZ_64K);
		heap = cf_init(memory + kept + size % 61, size, &small);
		while (heap && !cf_calloc(heap, 1, 100, &handle))
			;
		for (i = 0; i < kept + size % 61; i++)
			KUNIT_ASSERT_EQ(test, memory[i], 0x5a);
		for (i = kept + size % 61 + size; i < SZ_64K; i++)
			KUNIT_ASSERT_EQ(test, memory[i], 0x5a);
		if (size > SZ_16K)
			KUNIT_EXPECT_NOT_NULL(test, heap);
	}
}

/* ------ many users ---------------------------------------------------- */

/**
 * struct cf_test_lock - what the lock hooks of a shared heap use
 * @lock: the lock
 * @flags: the interrupt state before @lock was taken; under @lock
 */
struct cf_test_lock {
	spinlock_t lock; /* the heap */
	unsigned long flags;
};

static void cf_test_spin_lock(void *arg)
	__acquires(&((struct cf_test_lock *)arg)->lock)
{
	struct cf_test_lock *lock = arg;

	spin_lock(&lock->lock);
}

static void cf_test_spin_unlock(void *arg)
	__releases(&((struct cf_test_lock *)arg)->lock)
{
	struct cf_test_lock *lock = arg;

	spin_unlock(&lock->lock);
}

static void cf_test_irq_lock(void *arg)
	__acquires(&((struct cf_test_lock *)arg)->lock)
{
	struct cf_test_lock *lock = arg;
	unsigned long flags;

	spin_lock_irqsave(&lock->lock, flags);
	lock->flags = flags;
}

static void cf_test_irq_unlock(void *arg)
	__releases(&((struct cf_test_lock *)arg)->lock)
{
	struct cf_test_lock *lock = arg;
	unsigned long flags = lock->flags;

	spin_unlock_irqrestore(&lock->lock, flags);
}

/**
 * struct cf_test_thread - a thread, and an interrupt handler, that use a heap
 * @model: what the thread uses
 * @irq_model: what the handler uses
 * @timer: runs the handler every CF_TEST_PERIOD, on the CPU where the thread began
 * @ticks: how often the handler ran
 * @interrupts: the handler does use the heap
 * @done: the thread is
 *
 * Emulated CPUs that take turns change places when a timer expires: then it may be in the midst of
 * an operation, which is what heaps without their lock hooks do not survive.
 */
struct cf_test_thread {
	struct cf_test_model model;
	struct cf_test_model irq_model;
	struct hrtimer timer;
	unsigned int ticks;
	bool interrupts;
	struct completion done;
};

static int cf_test_thread(void *arg)
{
	struct cf_test_thread *thread = arg;
	unsigned int step;

	hrtimer_start(&thread->timer, CF_TEST_PERIOD, HRTIMER_MODE_REL_PINNED_HARD);
	for (step = 0; step < CF_TEST_THREAD_STEPS || READ_ONCE(thread->ticks) < CF_TEST_TICKS;
	     step++) {
		cf_test_step(&thread->model);
		if (thread->model.wrong || READ_ONCE(thread->irq_model.wrong))
			break;
		cond_resched();
	}
	hrtimer_cancel(&thread->timer);
	kthread_complete_and_exit(&thread->done, 0);
}

static enum hrtimer_restart cf_test_tick(struct hrtimer *timer)
{
	struct cf_test_thread *thread = container_of(timer, struct cf_test_thread, timer);

	if (thread->interrupts)
		cf_test_step(&thread->irq_model);
	WRITE_ONCE(thread->ticks, thread->ticks + 1);
	if (thread->irq_model.wrong)
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, CF_TEST_PERIOD);
	return HRTIMER_RESTART;
}

static const struct cf_test_config cf_test_shared_configs[] = {
	{ "threads, moving", { .page_size = 1024, .pieces = true, .lock = cf_test_spin_lock } },
	{ "threads, non-moving",
	  { .engine = CF_NONMOVING, .page_size = 1024, .lock = cf_test_spin_lock } },
	{ "threads and interrupts, moving", { .page_size = 1024, .lock = cf_test_irq_lock } },
	{ "threads and interrupts, non-moving",
	  { .engine = CF_NONMOVING, .page_size = 1024, .lock = cf_test_irq_lock } },
};

KUNIT_ARRAY_PARAM_DESC(cf_test_shared, cf_test_shared_configs, name);

/* Threads, and interrupt handlers, on one heap. */
static void cf_test_shared(struct kunit *test)
{
	const struct cf_test_config *param = test->param_value;
	unsigned int i, running, nr_objects = CF_TEST_OBJECTS / (2 * CF_TEST_THREADS);
	struct cf_config config = param->config;
	bool interrupts = config.lock == cf_test_irq_lock;
	struct cf_test_thread *threads, *thread;
	struct cf_test_lock lock;
	struct task_struct *task;
	struct cf_heap *heap;

	/* lockdep tells locks apart by where they are initialised: interrupts take but one kind */
	if (interrupts) {
		spin_lock_init(&lock.lock);
		config.unlock = cf_test_irq_unlock;
	} else {
		spin_lock_init(&lock.lock);
		config.unlock = cf_test_spin_unlock;
	}
	config.lock_arg = &lock;
	heap = cf_test_heap(test, &config);
	threads = kunit_kcalloc(test, CF_TEST_THREADS, sizeof(*threads), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, threads);
	for (i = 0; i < CF_TEST_THREADS; i++) {
		thread = &threads[i];
		cf_test_model_init(test, &thread->model, heap, nr_objects, CF_TEST_SHARED_SIZE,
				   2 * i);
		cf_test_model_init(test, &thread->irq_model, heap, nr_objects,
				   CF_TEST_SHARED_SIZE, 2 * i + 1);
		thread->interrupts = interrupts;
		hrtimer_init(&thread->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		thread->timer.function = cf_test_tick;
		init_completion(&thread->done);
	}

	for (running = 0; running < CF_TEST_THREADS; running++) {
		task = kthread_run(cf_test_thread, &threads[running], "cf_test/%u", running);
		if (IS_ERR(task))
			break;
	}
	for (i = 0; i < running; i++)
		wait_for_completion(&threads[i].done);

	KUNIT_EXPECT_EQ(test, running, CF_TEST_THREADS);
	for (i = 0; i < running; i++) {
		cf_test_free_all(&threads[i].model);
		cf_test_expect_right(test, &threads[i].model);
		cf_test_free_all(&threads[i].irq_model);
		cf_test_expect_right(test, &threads[i].irq_model);
	}
	cf_test_expect_empty(test, heap);
}

static struct kunit_case cf_test_cases[] = {
	KUNIT_CASE_PARAM(cf_test_random_steps, cf_test_gen_params),
	KUNIT_CASE_PARAM(cf_test_bound, cf_test_gen_params),
	KUNIT_CASE_PARAM(cf_test_misuse, cf_test_gen_params),
	KUNIT_CASE(cf_test_init),
	KUNIT_CASE_PARAM(cf_test_shared, cf_test_shared_gen_params),
	{}
};

static struct kunit_suite cf_test_suite = {
	.name = "compactfit",
	.test_cases = cf_test_cases,
};

kunit_test_suite(cf_test_suite);
