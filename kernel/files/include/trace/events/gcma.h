/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM gcma

#if !defined(_TRACE_GCMA_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_GCMA_H

#include <linux/fs.h>
#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(gcma_tenant,

	TP_PROTO(struct address_space *mapping, pgoff_t index, unsigned long pfn),

	TP_ARGS(mapping, index, pfn),

	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(unsigned long, ino)
		__field(pgoff_t, index)
		__field(unsigned long, pfn)
	),

	TP_fast_assign(
		struct inode *host = mapping->host;

		/* 0:0 is the swap cache, a part of which has its index for itself */
		__entry->dev = !host ? 0 : S_ISBLK(host->i_mode) ?
			       host->i_rdev : host->i_sb->s_dev;
		__entry->ino = host ? host->i_ino : 0;
		__entry->index = index;
		__entry->pfn = pfn;
	),

	TP_printk("dev=%d:%d ino=%lx index=%lu pfn=0x%lx",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->ino,
		  __entry->index, __entry->pfn)
);

/* Reclaim copied a page that it may evict. */
DEFINE_EVENT(gcma_tenant, gcma_copy,

	TP_PROTO(struct address_space *mapping, pgoff_t index, unsigned long pfn),

	TP_ARGS(mapping, index, pfn)
);

/* It evicted the page: the copy is a tenant. */
DEFINE_EVENT(gcma_tenant, gcma_store,

	TP_PROTO(struct address_space *mapping, pgoff_t index, unsigned long pfn),

	TP_ARGS(mapping, index, pfn)
);

/* A reader filled a page from a tenant, and may add it. */
DEFINE_EVENT(gcma_tenant, gcma_fill,

	TP_PROTO(struct address_space *mapping, pgoff_t index, unsigned long pfn),

	TP_ARGS(mapping, index, pfn)
);

/* It added the page: the tenant is gone. */
DEFINE_EVENT(gcma_tenant, gcma_load,

	TP_PROTO(struct address_space *mapping, pgoff_t index, unsigned long pfn),

	TP_ARGS(mapping, index, pfn)
);

/* A page that was nowhere else made way for a primary: it is in this frame now. */
DEFINE_EVENT(gcma_tenant, gcma_move_aside,

	TP_PROTO(struct address_space *mapping, pgoff_t index, unsigned long pfn),

	TP_ARGS(mapping, index, pfn)
);

/* The same, behind gcma_load: it is in this page of the swap cache. */
DEFINE_EVENT(gcma_tenant, gcma_put_back,

	TP_PROTO(struct address_space *mapping, pgoff_t index, unsigned long pfn),

	TP_ARGS(mapping, index, pfn)
);

/* The same, behind gcma_put_back: the device is to have it, too. */
DEFINE_EVENT(gcma_tenant, gcma_write_back,

	TP_PROTO(struct address_space *mapping, pgoff_t index, unsigned long pfn),

	TP_ARGS(mapping, index, pfn)
);

#endif /* _TRACE_GCMA_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
