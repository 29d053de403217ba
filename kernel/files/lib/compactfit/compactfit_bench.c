// SPDX-License-Identifier: GPL-2.0-only
/*
 * compactfit beside zsmalloc: /sys/kernel/debug/compactfit/
 *
 * pages: write pages of memory: they are compressed, and their compressed sizes
 *	are what is allocated later. Opening it forgets what was written before.
 * run: write a command, read what it found, a name and a number a line.
 *
 *	"fill COMPRESSOR ALLOCATOR PAGE_SIZE PERCENT": an object for each page, as
 *	large as COMPRESSOR (lzo-rle or lz4) made it; PERCENT of them are freed at
 *	random, the allocator compacts what it left, as many are allocated again.
 *	"worst ALLOCATOR PAGE_SIZE": for each size-class up to a page, the longest
 *	that compaction keeps an allocation of that size waiting: "SIZE CYCLES".
 *
 *	ALLOCATOR is zsmalloc, moving or non-moving; the latter two are compactfit
 *	with pages of PAGE_SIZE bytes, which zsmalloc does not use.
 *
 * Memory is in bytes, time in get_cycles(), with interrupts disabled, but for
 * zs_compact(). Under "qemu -icount shift=0" a cycle is one instruction.
 */
#include <linux/compactfit.h>
#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/lz4.h>
#include <linux/lzo.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/sizes.h>
#include <linux/sort.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timex.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/zsmalloc.h>

#define BENCH_PAGES	SZ_256K
#define BENCH_TEXT	SZ_64K
#define BENCH_ROUNDS	3	/* of what an interrupt can fall into: the least counts */
#define BENCH_OBJECTS	SZ_32K

enum bench_compressor {
	BENCH_LZO_RLE,
	BENCH_LZ4,
	BENCH_NR_COMPRESSORS,
};

static const char * const bench_compressors[] = { "lzo-rle", "lz4" };

union bench_object {
	unsigned long zs;
	cf_handle cf;
};

struct bench_heap;

/**
 * struct bench_allocator - what is compared
 * @name: what it is called in commands
 * @engine: of compactfit
 * @open: begin with an empty heap for objects of so many bytes in all
 * @close: give its memory back
 * @alloc: a new object; false if there is no memory
 * @free: free an object
 * @map: address of an object's bytes, the first @length of them
 * @unmap: the address is not used any more; NULL if nothing is to be done
 * @used: bytes that are of no use for any other size of object
 */
struct bench_allocator {
	const char *name;
	enum cf_engine engine;
	int (*open)(struct bench_heap *heap, size_t bytes);
	void (*close)(struct bench_heap *heap);
	bool (*alloc)(struct bench_heap *heap, size_t size, union bench_object *object);
	void (*free)(struct bench_heap *heap, union bench_object object);
	void *(*map)(struct bench_heap *heap, union bench_object object, size_t *length);
	void (*unmap)(struct bench_heap *heap, union bench_object object);
	size_t (*used)(struct bench_heap *heap);
};

/**
 * struct bench_heap - a heap of either allocator
 * @ops: which
 * @objects: how many there are
 * @pool: zsmalloc's
 * @cf: compactfit's
 * @config: of @cf
 * @lock: of @cf: zsmalloc has locks too
 * @memory: of @cf
 * @blocks: block-frames of @cf, if it is non-moving
 */
struct bench_heap {
	const struct bench_allocator *ops;
	size_t objects;
	struct zs_pool *pool;
	struct cf_heap *cf;
	struct cf_config config;
	spinlock_t lock; /* the heap */
	void *memory;
	size_t blocks;
};

static DEFINE_MUTEX(bench_lock); /* all below */
static u16 *bench_sizes[BENCH_NR_COMPRESSORS];
static size_t bench_nr_pages;
static size_t bench_nr_same; /* pages of one byte all over: nobody stores them */
static char *bench_text;
static size_t bench_text_length;

/* ------ zsmalloc ------------------------------------------------------ */

static int bench_zs_open(struct bench_heap *heap, size_t bytes)
{
	heap->pool = zs_create_pool("compactfit_bench");
	return heap->pool ? 0 : -ENOMEM;
}

static void bench_zs_close(struct bench_heap *heap)
{
	zs_destroy_pool(heap->pool);
}

/* Interrupts may be disabled. */
static bool bench_zs_alloc(struct bench_heap *heap, size_t size, union bench_object *object)
{
	object->zs = zs_malloc(heap->pool, size, GFP_NOWAIT | __GFP_NOWARN);
	return !IS_ERR_VALUE(object->zs);
}

static void bench_zs_free(struct bench_heap *heap, union bench_object object)
{
	zs_free(heap->pool, object.zs);
}

static void *bench_zs_map(struct bench_heap *heap, union bench_object object, size_t *length)
{
	return zs_map_object(heap->pool, object.zs, ZS_MM_RW);
}

static void bench_zs_unmap(struct bench_heap *heap, union bench_object object)
{
	zs_unmap_object(heap->pool, object.zs);
}

/* Handles are words of a slab of zsmalloc's. What describes its pages is not known here. */
static size_t bench_zs_used(struct bench_heap *heap)
{
	return zs_get_total_pages(heap->pool) * PAGE_SIZE + heap->objects * sizeof(unsigned long);
}

/* ------ compactfit ---------------------------------------------------- */

static void bench_cf_lock(void *arg)
	__acquires(&((struct bench_heap *)arg)->lock)
{
	struct bench_heap *heap = arg;

	spin_lock(&heap->lock);
}

static void bench_cf_unlock(void *arg)
	__releases(&((struct bench_heap *)arg)->lock)
{
	struct bench_heap *heap = arg;

	spin_unlock(&heap->lock);
}

static int bench_cf_open(struct bench_heap *heap, size_t bytes)
{
	struct cf_stats stats;

	spin_lock_init(&heap->lock);
	heap->config.lock = bench_cf_lock;
	heap->config.unlock = bench_cf_unlock;
	heap->config.lock_arg = heap;
	/* more than will ever be used: each size-class may have a page that is not full */
	bytes = 2 * bytes + CF_MAX_CLASSES * heap->config.page_size;
	heap->memory = vmalloc(bytes);
	if (!heap->memory)
		return -ENOMEM;
	heap->cf = cf_init(heap->memory, bytes, &heap->config);
	if (!heap->cf) {
		vfree(heap->memory);
		return -EINVAL;
	}
	cf_get_stats(heap->cf, &stats);
	heap->blocks = stats.free_blocks;
	return 0;
}

static void bench_cf_close(struct bench_heap *heap)
{
	vfree(heap->memory);
}

static bool bench_cf_alloc(struct bench_heap *heap, size_t size, union bench_object *object)
{
	return cf_malloc(heap->cf, size, &object->cf) == CF_OK;
}

static void bench_cf_free(struct bench_heap *heap, union bench_object object)
{
	cf_free(heap->cf, object.cf);
}

static void *bench_cf_map(struct bench_heap *heap, union bench_object object, size_t *length)
{
	return cf_at(heap->cf, object.cf, 0, length);
}

/*
 * What is not a free page, with its header of 64 bytes; and in a non-moving heap,
 * where a page is a word for each block-frame that fits into PAGE_SIZE, the
 * block-frames that are not free, with a slot each.
 */
static size_t bench_cf_used(struct bench_heap *heap)
{
	const struct cf_config *config = &heap->config;
	size_t page = config->page_size;
	struct cf_stats stats;

	cf_get_stats(heap->cf, &stats);
	if (config->engine == CF_NONMOVING)
		page = page / config->block_size * sizeof(u32);
	return (stats.pages - stats.free_pages) * (page + 64) +
	       (heap->blocks - stats.free_blocks) * (config->block_size + sizeof(u32));
}

#define BENCH_COMPACTFIT(_name, _engine)	\
	{					\
		.name = _name,			\
		.engine = _engine,		\
		.open = bench_cf_open,		\
		.close = bench_cf_close,	\
		.alloc = bench_cf_alloc,	\
		.free = bench_cf_free,		\
		.map = bench_cf_map,		\
		.used = bench_cf_used,		\
	}

static const struct bench_allocator bench_allocators[] = {
	{
		.name = "zsmalloc",
		.open = bench_zs_open,
		.close = bench_zs_close,
		.alloc = bench_zs_alloc,
		.free = bench_zs_free,
		.map = bench_zs_map,
		.unmap = bench_zs_unmap,
		.used = bench_zs_used,
	},
	BENCH_COMPACTFIT("moving", CF_MOVING),
	BENCH_COMPACTFIT("non-moving", CF_NONMOVING),
};

static int bench_open(struct bench_heap *heap, const char *name, unsigned int page_size,
		      size_t bytes)
{
	unsigned int i;

	memset(heap, 0, sizeof(*heap));
	for (i = 0; i < ARRAY_SIZE(bench_allocators); i++) {
		if (strcmp(name, bench_allocators[i].name))
			continue;
		heap->ops = &bench_allocators[i];
		heap->config.page_size = page_size;
		heap->config.engine = heap->ops->engine;
		heap->config.block_size = CF_BLOCK_SIZE;
		return heap->ops->open(heap, bytes);
	}
	return -EINVAL;
}

/* ------ one operation, measured --------------------------------------- */

static bool bench_alloc(struct bench_heap *heap, size_t size, union bench_object *object,
			u32 *cost)
{
	unsigned long flags;
	u64 start;
	bool ok;

	local_irq_save(flags);
	start = get_cycles();
	ok = heap->ops->alloc(heap, size, object);
	*cost = get_cycles() - start;
	local_irq_restore(flags);
	heap->objects += ok;
	return ok;
}

static void bench_free(struct bench_heap *heap, union bench_object object, u32 *cost)
{
	unsigned long flags;
	u64 start;

	local_irq_save(flags);
	start = get_cycles();
	heap->ops->free(heap, object);
	*cost = get_cycles() - start;
	local_irq_restore(flags);
	heap->objects--;
}

/* Write an object's number to where its first and last words are, or see whether it is there. */
static bool bench_access(struct bench_heap *heap, union bench_object object, size_t size,
			 u32 number, bool write, u32 *cost)
{
	size_t length = size, last = round_down(size, sizeof(u32)) - sizeof(u32);
	unsigned long flags;
	u64 start;
	bool good;
	u32 *word;

	local_irq_save(flags);
	start = get_cycles();
	word = heap->ops->map(heap, object, &length);
	*cost = get_cycles() - start;
	if (length < size)
		last = 0; /* of a non-moving object: the first block-frame */
	if (write) {
		word[0] = number;
		word[last / sizeof(u32)] = number;
	}
	good = word[0] == number && word[last / sizeof(u32)] == number;
	start = get_cycles();
	if (heap->ops->unmap)
		heap->ops->unmap(heap, object);
	*cost += get_cycles() - start;
	local_irq_restore(flags);
	return good;
}

static __printf(1, 2) void bench_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	bench_text_length += vscnprintf(bench_text + bench_text_length,
					BENCH_TEXT - bench_text_length, format, args);
	va_end(args);
}

static int bench_compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* Percentiles are nearest-rank. */
static void bench_say_costs(const char *what, u32 *costs, size_t nr)
{
	u64 sum = 0;
	size_t i;

	if (!nr)
		return;
	for (i = 0; i < nr; i++)
		sum += costs[i];
	sort(costs, nr, sizeof(*costs), bench_compare, NULL);
	bench_say("%s_mean %llu\n%s_p99 %u\n%s_max %u\n", what, div64_u64(sum + nr / 2, nr), what,
		  costs[DIV_ROUND_UP(nr * 99, 100) - 1], what, costs[nr - 1]);
}

/* ------ a heap of compressed pages ------------------------------------ */

static void bench_shuffle(u32 *order, size_t nr)
{
	struct rnd_state rnd;
	size_t i;

	prandom_seed_state(&rnd, nr);
	for (i = 0; i < nr; i++)
		order[i] = i;
	for (i = nr; i > 1; i--) {
		size_t other = prandom_u32_state(&rnd) % i; /* swap() evaluates twice */

		swap(order[i - 1], order[other]);
	}
}

static void bench_compact(struct bench_heap *heap)
{
	u64 start;

	if (!heap->pool)
		return;
	start = get_cycles();
	bench_say("compacted_pages %lu\n", zs_compact(heap->pool));
	bench_say("compact %llu\n", get_cycles() - start);
}

static int bench_fill_heap(struct bench_heap *heap, const u16 *sizes, size_t nr,
			   unsigned int percent, union bench_object *objects, u32 *order,
			   u32 *costs)
{
	size_t i, freed = nr * percent / 100, payload = 0;
	u32 cost;

	for (i = 0; i < nr; i++) {
		payload += sizes[i];
		if (!bench_alloc(heap, sizes[i], &objects[i], &costs[i]))
			return -ENOMEM;
		bench_access(heap, objects[i], sizes[i], i, true, &cost);
		cond_resched();
	}
	bench_say("objects %zu\npayload %zu\nfilled %zu\n", nr, payload, heap->ops->used(heap));
	bench_say_costs("alloc", costs, nr);

	for (i = 0; i < nr; i++)
		if (!bench_access(heap, objects[i], sizes[i], i, false, &costs[i]))
			return -EIO;
	bench_say_costs("access", costs, nr);

	bench_shuffle(order, nr);
	for (i = 0; i < freed; i++) {
		payload -= sizes[order[i]];
		bench_free(heap, objects[order[i]], &costs[i]);
		cond_resched();
	}
	bench_say("kept_payload %zu\nfreed %zu\n", payload, heap->ops->used(heap));
	bench_say_costs("free", costs, freed);
	bench_compact(heap);
	bench_say("compacted %zu\n", heap->ops->used(heap));

	/* as many objects of the same sizes, in another order */
	for (i = 0; i < freed; i++) {
		u32 number = order[freed - 1 - i];

		if (!bench_alloc(heap, sizes[number], &objects[number], &costs[i]))
			return -ENOMEM;
		bench_access(heap, objects[number], sizes[number], number, true, &cost);
		cond_resched();
	}
	bench_say("refilled %zu\n", heap->ops->used(heap));
	bench_say_costs("again", costs, freed);

	for (i = 0; i < nr; i++) {
		if (!bench_access(heap, objects[i], sizes[i], i, false, &cost))
			return -EIO;
		bench_free(heap, objects[i], &cost);
	}
	bench_say("emptied %zu\n", heap->ops->used(heap));
	return 0;
}

static int bench_fill(const char *compressor, const char *allocator, unsigned int page_size,
		      unsigned int percent)
{
	int which = match_string(bench_compressors, BENCH_NR_COMPRESSORS, compressor);
	union bench_object *objects;
	size_t nr = bench_nr_pages;
	struct bench_heap heap;
	u32 *order, *costs;
	int ret;

	if (which < 0 || percent > 100 || !nr)
		return -EINVAL;
	objects = vcalloc(nr, sizeof(*objects));
	order = vcalloc(nr, sizeof(*order));
	costs = vcalloc(nr, sizeof(*costs));
	ret = objects && order && costs ? 0 : -ENOMEM;
	if (!ret)
		ret = bench_open(&heap, allocator, page_size, nr * PAGE_SIZE / 2);
	if (!ret) {
		bench_say("same %zu\n", bench_nr_same);
		ret = bench_fill_heap(&heap, bench_sizes[which], nr, percent, objects, order,
				      costs);
		heap.ops->close(&heap);
	}
	vfree(objects);
	vfree(order);
	vfree(costs);
	return ret;
}

/* ------ the longest wait ---------------------------------------------- */

static u64 bench_zs_compact(struct bench_heap *heap)
{
	u64 start = get_cycles();

	zs_compact(heap->pool);
	return get_cycles() - start;
}

/*
 * zsmalloc keeps its locks until a group of pages (a zspage) is full. At the worst
 * all groups have a single object, so that as many as fit into one are moved.
 * Returns 0 if a group has but one object, or too many.
 */
static u64 bench_worst_zs(struct bench_heap *heap, size_t size, union bench_object *objects)
{
	size_t in_group = 0, nr = 0, kept = 0, i;
	unsigned long group = 0;
	u64 cost;
	u32 unused;

	do {
		if (!bench_alloc(heap, size, &objects[nr], &unused))
			break;
		nr++;
		if (nr == 1)
			group = zs_get_total_pages(heap->pool);
		if (!in_group && zs_get_total_pages(heap->pool) > group)
			in_group = nr - 1;
	} while (nr < BENCH_OBJECTS && (!in_group || nr < in_group * in_group));
	for (i = 0; i < nr; i++) {
		if (in_group && i % in_group == 0)
			objects[kept++] = objects[i];
		else
			bench_free(heap, objects[i], &unused);
	}
	cost = bench_zs_compact(heap);
	if (in_group < 2 || zs_get_total_pages(heap->pool) > group)
		cost = 0;
	for (i = 0; i < kept; i++)
		bench_free(heap, objects[i], &unused);
	return cost;
}

/*
 * compactfit moves an object in the free that asks for it: one in a full page,
 * while another page is not full. Freed in turns, objects of two pages are.
 */
static u64 bench_worst_cf(struct bench_heap *heap, size_t size, union bench_object *objects)
{
	int class = cf_class_of(heap->cf, size);
	size_t in_page = cf_class_per_page(heap->cf, class), nr = 2 * in_page, i;
	u64 worst = 0;
	u32 cost;

	for (i = 0; i < nr; i++)
		if (!bench_alloc(heap, size, &objects[i], &cost))
			return 0;
	for (i = 0; i < nr; i++) {
		bench_free(heap, objects[i % 2 * in_page + i / 2], &cost);
		worst = max_t(u64, worst, cost);
	}
	return worst;
}

static int bench_worst(const char *allocator, unsigned int page_size)
{
	union bench_object *objects = vcalloc(BENCH_OBJECTS, sizeof(*objects));
	struct bench_heap heap;
	size_t size;
	int ret;

	if (!objects)
		return -ENOMEM;
	ret = bench_open(&heap, allocator, page_size, SZ_1M);
	if (ret)
		goto out;
	for (size = 64; size <= PAGE_SIZE; size += 64) {
		u64 least = U64_MAX, cost, none;
		unsigned int round;

		for (round = 0; round < BENCH_ROUNDS; round++) {
			if (heap.pool) {
				cost = bench_worst_zs(&heap, size, objects);
				none = bench_zs_compact(&heap);
				cost = cost > none ? cost - none : 0;
			} else {
				cost = bench_worst_cf(&heap, size, objects);
			}
			least = min(least, cost);
			cond_resched();
		}
		if (least)
			bench_say("%zu %llu\n", size, least);
	}
	heap.ops->close(&heap);
out:
	vfree(objects);
	return ret;
}

/* ------ files --------------------------------------------------------- */

static int bench_pages_open(struct inode *inode, struct file *file)
{
	int ret = 0;
	unsigned int i;

	mutex_lock(&bench_lock);
	bench_nr_pages = 0;
	bench_nr_same = 0;
	for (i = 0; i < BENCH_NR_COMPRESSORS; i++) {
		if (!bench_sizes[i])
			bench_sizes[i] = vcalloc(BENCH_PAGES, sizeof(*bench_sizes[i]));
		if (!bench_sizes[i])
			ret = -ENOMEM;
	}
	mutex_unlock(&bench_lock);
	return ret ? ret : nonseekable_open(inode, file);
}

/* What does not become smaller is kept as it is. @page is aligned. */
static void bench_compress(const u8 *page, u8 *to, void *work)
{
	size_t length = lzo1x_worst_compress(PAGE_SIZE);

	if (!memchr_inv(page, page[0], PAGE_SIZE)) {
		bench_nr_same++;
		return;
	}
	if (lzorle1x_1_compress(page, PAGE_SIZE, to, &length, work) != LZO_E_OK)
		length = PAGE_SIZE;
	bench_sizes[BENCH_LZO_RLE][bench_nr_pages] = min(length, PAGE_SIZE);
	length = LZ4_compress_default(page, to, PAGE_SIZE, PAGE_SIZE, work);
	bench_sizes[BENCH_LZ4][bench_nr_pages] = length ?: PAGE_SIZE;
	bench_nr_pages++;
}

static ssize_t bench_pages_write(struct file *file, const char __user *buf, size_t len,
				 loff_t *ppos)
{
	size_t work_size = max(LZO1X_1_MEM_COMPRESS, LZ4_MEM_COMPRESS), done;
	u8 *page = vmalloc(PAGE_SIZE), *to = vmalloc(lzo1x_worst_compress(PAGE_SIZE));
	void *work = vmalloc(work_size);
	ssize_t ret = len;

	if (!page || !to || !work)
		ret = -ENOMEM;
	else if (len % PAGE_SIZE)
		ret = -EINVAL;
	mutex_lock(&bench_lock);
	for (done = 0; ret > 0 && done < len; done += PAGE_SIZE) {
		if (bench_nr_pages == BENCH_PAGES)
			ret = -ENOSPC;
		else if (copy_from_user(page, buf + done, PAGE_SIZE))
			ret = -EFAULT;
		else
			bench_compress(page, to, work);
		cond_resched();
	}
	mutex_unlock(&bench_lock);
	vfree(page);
	vfree(to);
	vfree(work);
	return ret;
}

static const struct file_operations bench_pages_fops = {
	.open		= bench_pages_open,
	.write		= bench_pages_write,
};

static ssize_t bench_run_write(struct file *file, const char __user *buf, size_t len,
			       loff_t *ppos)
{
	char text[64] = {}, compressor[16], allocator[16];
	unsigned int page_size, percent;
	int ret = -EINVAL;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, len))
		return -EFAULT;
	mutex_lock(&bench_lock);
	bench_text_length = 0;
	if (!bench_text)
		bench_text = vmalloc(BENCH_TEXT);
	if (!bench_text)
		ret = -ENOMEM;
	else if (sscanf(text, "fill %15s %15s %u %u", compressor, allocator, &page_size,
			&percent) == 4)
		ret = bench_fill(compressor, allocator, page_size, percent);
	else if (sscanf(text, "worst %15s %u", allocator, &page_size) == 2)
		ret = bench_worst(allocator, page_size);
	mutex_unlock(&bench_lock);
	return ret ? ret : len;
}

static ssize_t bench_run_read(struct file *file, char __user *buf, size_t len, loff_t *ppos)
{
	ssize_t ret;

	mutex_lock(&bench_lock);
	ret = simple_read_from_buffer(buf, len, ppos, bench_text, bench_text_length);
	mutex_unlock(&bench_lock);
	return ret;
}

static const struct file_operations bench_run_fops = {
	.open		= simple_open,
	.write		= bench_run_write,
	.read		= bench_run_read,
};

static int __init bench_init(void)
{
	struct dentry *dir = debugfs_create_dir("compactfit", NULL);

	debugfs_create_file("pages", 0200, dir, NULL, &bench_pages_fops);
	debugfs_create_file("run", 0600, dir, NULL, &bench_run_fops);
	return 0;
}
late_initcall(bench_init);
