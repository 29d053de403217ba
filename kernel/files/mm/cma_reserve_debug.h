/* SPDX-License-Identifier: GPL-2.0-only */
/* What of the policies of CMA areas is shown in /sys/kernel/debug/cma/<area>/ */
#ifndef __MM_CMA_RESERVE_DEBUG_H
#define __MM_CMA_RESERVE_DEBUG_H

#include <linux/types.h>

struct cma;
struct dentry;

#if IS_ENABLED(CONFIG_CMA_RESERVE) && IS_ENABLED(CONFIG_CMA_DEBUGFS)
u64 cma_latency_begin(void);
void cma_latency_end(struct cma *cma, u64 start);
void cma_reserve_debugfs_add(struct cma *cma, struct dentry *dir);
#else
static inline u64 cma_latency_begin(void)
{
	return 0;
}

static inline void cma_latency_end(struct cma *cma, u64 start) { }

static inline void cma_reserve_debugfs_add(struct cma *cma, struct dentry *dir) { }
#endif

#endif /* __MM_CMA_RESERVE_DEBUG_H */
