// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guaranteed contiguous memory: /sys/kernel/debug/cma/<area>/
 *
 * latency: how long cma_alloc() took, on areas of every policy
 * frames:  what each frame of a gcma area is used for
 */

#include <linux/cma.h>
#include <linux/debugfs.h>
#include <linux/sched/clock.h>
#include <linux/seq_file.h>

#include "gcma.h"

/* local_clock() may jump a little when the caller changes CPUs: no matter here. */
void gcma_latency_end(struct cma *cma, u64 start)
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

static char gcma_frame_char(const struct gcma *g, unsigned long frame)
{
	unsigned long bit = frame >> g->cma->order_per_bit;

	if (test_bit(bit, g->quarantine))
		return 'Q';
	if (gcma_revoked(g, frame))
		return '#';
	return ".sTl"[gcma_frame_state(&g->frames[frame])]; /* enum gcma_state */
}

/* '#' primary, 'Q' quarantined, 'T' tenant, '.' free; 64 frames a line. */
static int frames_show(struct seq_file *m, void *unused)
{
	struct gcma *g = m->private;
	unsigned long frame;

	for (frame = 0; frame < g->nr_frames; frame++) {
		seq_putc(m, gcma_frame_char(g, frame));
		if (frame % 64 == 63 || frame == g->nr_frames - 1)
			seq_putc(m, '\n');
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(frames);

/* Add the files of an area to its directory. */
void __init gcma_debugfs_add(struct cma *cma, struct dentry *dir)
{
	debugfs_create_file("latency", 0444, dir, cma, &latency_fops);
	if (cma->gcma && cma->gcma->nr_frames)
		debugfs_create_file("frames", 0444, dir, cma->gcma,
				    &frames_fops);
}
