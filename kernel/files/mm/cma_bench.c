// SPDX-License-Identifier: GPL-2.0-only
/*
 * CMA micro-benchmark: /sys/kernel/debug/cma/<area>/bench_*
 *
 * bench_alloc: write "PAGES REPETITIONS": that many times cma_alloc() and
 *	cma_release(); read: a line each, "ALLOC RELEASE OK", in get_cycles().
 *	Under "qemu -icount shift=0" a cycle is one instruction of the guest.
 * bench_hold: write "PAGES": allocate and keep, every word holds its address;
 *	write "0": check that it still does and release.
 * bench_lend: write "FD FOLIOS", of a file: allocate so many folios that reads of it
 *	would fill, and free them, first of memory that is not the area's, then lent
 *	frames; read: a line each, as above, of all folios together. OK: they were.
 *
 * Measured here rather than from a shell so that nothing but the allocator is.
 */

#include <linux/cma.h>
#include <linux/debugfs.h>
#include <linux/file.h>
#include <linux/highmem.h>
#include <linux/kstrtox.h>
#include <linux/mutex.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/timex.h>
#include <linux/uaccess.h>

#include "../kernel/time/tick-internal.h"
#include "cma.h"

#ifdef CONFIG_RENTAL
#include <linux/rental.h>
#else
static struct folio *rental_filemap_alloc(struct address_space *mapping, gfp_t gfp,
					  unsigned int order, bool write)
{
	return filemap_alloc_folio(gfp, order);
}
#endif

#define BENCH_MAX	100000

/* Measure when no timer is due for so long, but do not wait for that for ever. */
#define BENCH_QUIET	(20 * NSEC_PER_USEC)
#define BENCH_TRIES	100000

struct bench_sample {
	u64 alloc;
	u64 release;
	bool ok;
};

struct bench_block {
	struct list_head list;
	struct page *page;
	unsigned long count;
};

struct cma_bench {
	struct cma *cma;
	struct mutex lock; /* all below */
	struct bench_sample *samples;
	unsigned int nr_samples;
	struct list_head held;
};

/*
 * Timer interrupts do not belong to what is measured, and some are longer than
 * it. Where QEMU counts instructions it runs one CPU at a time, up to the next
 * timer of any: the other CPUs' instructions do not belong to it either.
 */
static void bench_wait_for_quiet(void)
{
	unsigned int tries, cpu;

	for (tries = 0; tries < BENCH_TRIES; tries++) {
		ktime_t next = KTIME_MAX;

		cond_resched();
		for_each_online_cpu(cpu)
			next = min(next, READ_ONCE(tick_get_device(cpu)->evtdev->next_event));
		if (next - ktime_get() > BENCH_QUIET)
			return;
		cpu_relax();
	}
}

/* Aligned as dma_alloc_contiguous() would. */
static void bench_one(struct cma *cma, unsigned long pages,
		      struct bench_sample *sample)
{
	unsigned int align = min(get_order(pages << PAGE_SHIFT),
				 CONFIG_CMA_ALIGNMENT);
	struct page *page;
	cycles_t start;

	bench_wait_for_quiet();
	start = get_cycles();
	page = cma_alloc(cma, pages, align, true);
	sample->alloc = get_cycles() - start;
	sample->ok = page;
	if (!page)
		return;
	start = get_cycles();
	cma_release(cma, page, pages);
	sample->release = get_cycles() - start;
}

static int bench_run(struct cma_bench *bench, unsigned long pages,
		     unsigned int repetitions)
{
	struct bench_sample *samples;

	samples = kvcalloc(repetitions, sizeof(*samples), GFP_KERNEL);
	if (!samples)
		return -ENOMEM;
	kvfree(bench->samples);
	bench->samples = samples;
	for (bench->nr_samples = 0; bench->nr_samples < repetitions;
	     bench->nr_samples++) {
		if (fatal_signal_pending(current))
			return -EINTR;
		bench_one(bench->cma, pages, &samples[bench->nr_samples]);
		cond_resched();
	}
	return 0;
}

static void bench_folios(struct cma *cma, struct address_space *mapping, bool lent,
			 struct folio **folios, unsigned int nr, struct bench_sample *sample)
{
	gfp_t gfp = mapping_gfp_mask(mapping);
	cycles_t start;
	unsigned int i;

	bench_wait_for_quiet();
	start = get_cycles();
	for (i = 0; i < nr; i++)
		folios[i] = lent ? rental_filemap_alloc(mapping, gfp, 0, false) :
				   filemap_alloc_folio(gfp, 0);
	sample->alloc = get_cycles() - start;
	sample->ok = true;
	for (i = 0; i < nr; i++)
		sample->ok &= folios[i] &&
			      (folio_pfn(folios[i]) - cma->base_pfn < cma->count) == lent;
	start = get_cycles();
	for (i = 0; i < nr; i++)
		if (folios[i])
			folio_put(folios[i]);
	sample->release = get_cycles() - start;
}

static int bench_lend(struct cma_bench *bench, struct file *file, unsigned int nr)
{
	struct bench_sample *samples = kvcalloc(2, sizeof(*samples), GFP_KERNEL);
	struct folio **folios = kvcalloc(nr, sizeof(*folios), GFP_KERNEL);

	if (!samples || !folios) {
		kvfree(folios);
		kvfree(samples);
		return -ENOMEM;
	}
	bench_folios(bench->cma, file->f_mapping, false, folios, nr, &samples[0]);
	bench_folios(bench->cma, file->f_mapping, true, folios, nr, &samples[1]);
	kvfree(folios);
	kvfree(bench->samples);
	bench->samples = samples;
	bench->nr_samples = 2;
	return 0;
}

/* Two numbers that were written */
static int bench_numbers(const char __user *buf, size_t len, unsigned long *first,
			 unsigned int *second)
{
	char text[64] = {};

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, len))
		return -EFAULT;
	if (sscanf(text, "%lu %u", first, second) != 2 || *second > BENCH_MAX)
		return -EINVAL;
	return 0;
}

static ssize_t bench_alloc_write(struct file *file, const char __user *buf,
				 size_t len, loff_t *ppos)
{
	struct cma_bench *bench = file_inode(file)->i_private;
	unsigned int repetitions;
	unsigned long pages;
	int ret;

	ret = bench_numbers(buf, len, &pages, &repetitions);
	if (ret)
		return ret;
	mutex_lock(&bench->lock);
	ret = bench_run(bench, pages, repetitions);
	mutex_unlock(&bench->lock);
	return ret ? ret : len;
}

static int bench_alloc_show(struct seq_file *m, void *unused)
{
	struct cma_bench *bench = m->private;
	unsigned int i;

	mutex_lock(&bench->lock);
	for (i = 0; i < bench->nr_samples; i++)
		seq_printf(m, "%llu %llu %d\n", bench->samples[i].alloc,
			   bench->samples[i].release, bench->samples[i].ok);
	mutex_unlock(&bench->lock);
	return 0;
}

static int bench_alloc_open(struct inode *inode, struct file *file)
{
	return single_open(file, bench_alloc_show, inode->i_private);
}

static const struct file_operations bench_alloc_fops = {
	.owner		= THIS_MODULE,
	.open		= bench_alloc_open,
	.read		= seq_read,
	.write		= bench_alloc_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

static ssize_t bench_lend_write(struct file *file, const char __user *buf,
				size_t len, loff_t *ppos)
{
	struct cma_bench *bench = file_inode(file)->i_private;
	unsigned int folios;
	struct file *data;
	unsigned long fd;
	int ret;

	ret = bench_numbers(buf, len, &fd, &folios);
	if (ret)
		return ret;
	data = fget(fd);
	if (!data)
		return -EBADF;
	mutex_lock(&bench->lock);
	ret = bench_lend(bench, data, folios);
	mutex_unlock(&bench->lock);
	fput(data);
	return ret ? ret : len;
}

static const struct file_operations bench_lend_fops = {
	.owner		= THIS_MODULE,
	.open		= bench_alloc_open,
	.read		= seq_read,
	.write		= bench_lend_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

static void bench_fill(struct bench_block *block)
{
	unsigned long i, word;

	for (i = 0; i < block->count; i++) {
		unsigned long *p = kmap_local_page(nth_page(block->page, i));

		for (word = 0; word < PAGE_SIZE / sizeof(*p); word++)
			p[word] = (page_to_pfn(block->page) + i) << PAGE_SHIFT |
				  word;
		kunmap_local(p);
	}
}

static bool bench_check(struct bench_block *block)
{
	unsigned long i, word;
	bool good = true;

	for (i = 0; i < block->count && good; i++) {
		unsigned long *p = kmap_local_page(nth_page(block->page, i));

		for (word = 0; word < PAGE_SIZE / sizeof(*p); word++)
			good &= p[word] == ((page_to_pfn(block->page) + i) <<
					    PAGE_SHIFT | word);
		kunmap_local(p);
	}
	return good;
}

static int bench_hold(struct cma_bench *bench, unsigned long pages)
{
	struct bench_block *block = kzalloc(sizeof(*block), GFP_KERNEL);

	if (!block)
		return -ENOMEM;
	block->count = pages;
	block->page = cma_alloc(bench->cma, pages, 0, true);
	if (!block->page) {
		kfree(block);
		return -ENOMEM;
	}
	bench_fill(block);
	list_add(&block->list, &bench->held);
	return 0;
}

static int bench_release_all(struct cma_bench *bench)
{
	struct bench_block *block, *next;
	int ret = 0;

	list_for_each_entry_safe(block, next, &bench->held, list) {
		if (!bench_check(block))
			ret = -EIO;
		cma_release(bench->cma, block->page, block->count);
		list_del(&block->list);
		kfree(block);
	}
	return ret;
}

static ssize_t bench_hold_write(struct file *file, const char __user *buf,
				size_t len, loff_t *ppos)
{
	struct cma_bench *bench = file->private_data;
	unsigned long pages;
	int ret;

	ret = kstrtoul_from_user(buf, len, 0, &pages);
	if (ret)
		return ret;
	mutex_lock(&bench->lock);
	ret = pages ? bench_hold(bench, pages) : bench_release_all(bench);
	mutex_unlock(&bench->lock);
	return ret ? ret : len;
}

static const struct file_operations bench_hold_fops = {
	.owner		= THIS_MODULE,
	.open		= simple_open,
	.write		= bench_hold_write,
};

static int bench_add(struct cma *cma, void *data)
{
	struct dentry *dir = debugfs_lookup(cma->name, data);
	struct cma_bench *bench = kzalloc(sizeof(*bench), GFP_KERNEL);

	if (!dir || !bench) {
		dput(dir);
		kfree(bench);
		return dir ? -ENOMEM : 0;
	}
	bench->cma = cma;
	mutex_init(&bench->lock);
	INIT_LIST_HEAD(&bench->held);
	debugfs_create_file("bench_alloc", 0600, dir, bench, &bench_alloc_fops);
	debugfs_create_file("bench_hold", 0200, dir, bench, &bench_hold_fops);
	debugfs_create_file("bench_lend", 0600, dir, bench, &bench_lend_fops);
	dput(dir);
	return 0;
}

static int __init bench_init(void)
{
	struct dentry *root = debugfs_lookup("cma", NULL);
	int ret = 0;

	if (root)
		ret = cma_for_each_area(bench_add, root);
	dput(root);
	return ret;
}
late_initcall_sync(bench_init);
