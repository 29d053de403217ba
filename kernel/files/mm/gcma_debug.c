// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guaranteed contiguous memory: /sys/kernel/debug/cma/<area>/frames, what each
 * frame of the area is used for
 */

#include <linux/cma.h>
#include <linux/debugfs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "gcma.h"

static char gcma_frame_char(const struct gcma *g, unsigned long frame)
{
	unsigned long bit = frame >> g->cma->order_per_bit;

	if (test_bit(bit, g->cma->reserve->quarantine))
		return 'Q';
	if (gcma_revoked(g, frame))
		return '#';
	return ".Tcc"[gcma_frame_state(&g->frames[frame])]; /* enum gcma_state */
}

/* '#' primary, 'Q' quarantined, 'T' tenant, '.' free; 64 frames a line. */
static int frames_show(struct seq_file *m, void *unused)
{
	struct gcma *g = m->private;
	unsigned long frame;

	for (frame = 0; frame < g->cma->count; frame++) {
		seq_putc(m, gcma_frame_char(g, frame));
		if (frame % 64 == 63 || frame == g->cma->count - 1)
			seq_putc(m, '\n');
		cond_resched();
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(frames);

static int __init gcma_debugfs_add(struct cma *cma, void *root)
{
	struct dentry *dir;

	if (!gcma_of(cma))
		return 0;
	dir = debugfs_lookup(cma->name, root);
	if (dir)
		debugfs_create_file("frames", 0444, dir, gcma_of(cma),
				    &frames_fops);
	dput(dir);
	return 0;
}

/* After cma_debugfs_init(), which makes the directories. */
static int __init gcma_debugfs_init(void)
{
	struct dentry *root = debugfs_lookup("cma", NULL);

	if (root)
		cma_for_each_area(gcma_debugfs_add, root);
	dput(root);
	return 0;
}
late_initcall_sync(gcma_debugfs_init);
