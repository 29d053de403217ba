// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policies of CMA areas, in /sys/kernel/debug/cma/<area>/: latency, how long
 * cma_alloc() took, on areas of every policy; frames, what each frame is used for,
 * on those that stay out of the buddy allocator
 */

#include <linux/cma.h>
#include <linux/debugfs.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/seq_file.h>

#include "cma_reserve.h"
#include "cma_reserve_debug.h"

u64 cma_latency_begin(void)
{
	return local_clock();
}

/* local_clock() may jump a little when the caller changes CPUs: no matter here. */
void cma_latency_end(struct cma *cma, u64 start)
{
	s64 ns = local_clock() - start;
	unsigned int bucket = ns > 0 ? fls64(ns) : 0;

	atomic_inc(&cma->latency[min(bucket, CMA_LATENCY_BUCKETS - 1)]);
}

/* One line per power of two: least ns, allocations. */
static int latency_show(struct seq_file *m, void *unused)
{
	struct cma *cma = m->private;
	unsigned int i;

	for (i = 0; i < CMA_LATENCY_BUCKETS; i++)
		seq_printf(m, "%llu %u\n", i ? 1ULL << (i - 1) : 0,
			   atomic_read(&cma->latency[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(latency);

static char cma_frame_letter(const struct cma *cma, unsigned long frame)
{
	const struct cma_reserve *r = cma->reserve;
	unsigned long bit = frame >> cma->order_per_bit;

	if (test_bit(bit, r->quarantine))
		return 'Q';
	if (test_bit(bit, cma->bitmap))
		return '#';
	return r->ops ? r->ops->letter(r, frame) : '.';
}

/* '#' primary, 'Q' quarantined, '.' free, others are the policy's; 64 frames a line. */
static int frames_show(struct seq_file *m, void *unused)
{
	const struct cma *cma = m->private;
	unsigned long frame;

	for (frame = 0; frame < cma->count; frame++) {
		seq_putc(m, cma_frame_letter(cma, frame));
		if (frame % 64 == 63 || frame == cma->count - 1)
			seq_putc(m, '\n');
		cond_resched();
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(frames);

/* Add the files of an area to its directory. */
void __init cma_reserve_debugfs_add(struct cma *cma, struct dentry *dir)
{
	debugfs_create_file("latency", 0444, dir, cma, &latency_fops);
	if (cma->reserve)
		debugfs_create_file("frames", 0444, dir, cma, &frames_fops);
}
