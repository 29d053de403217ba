// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policies of CMA areas: /sys/kernel/debug/cma/<area>/latency, how long cma_alloc()
 * took, on areas of every policy
 */

#include <linux/cma.h>
#include <linux/debugfs.h>
#include <linux/sched/clock.h>
#include <linux/seq_file.h>

#include "cma_reserve.h"

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

/* Add the file of an area to its directory. */
void __init cma_latency_add(struct cma *cma, struct dentry *dir)
{
	debugfs_create_file("latency", 0444, dir, cma, &latency_fops);
}
