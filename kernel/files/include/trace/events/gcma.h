/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM gcma

#if !defined(_TRACE_GCMA_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_GCMA_H

#include <linux/fs.h>
#include <linux/tracepoint.h>

/* A page went to, or came back from, a frame. */
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
		__entry->dev = S_ISBLK(mapping->host->i_mode) ?
			       mapping->host->i_rdev :
			       mapping->host->i_sb->s_dev;
		__entry->ino = mapping->host->i_ino;
		__entry->index = index;
		__entry->pfn = pfn;
	),

	TP_printk("dev=%d:%d ino=%lx index=%lu pfn=0x%lx",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->ino,
		  __entry->index, __entry->pfn)
);

DEFINE_EVENT(gcma_tenant, gcma_store,

	TP_PROTO(struct address_space *mapping, pgoff_t index, unsigned long pfn),

	TP_ARGS(mapping, index, pfn)
);

DEFINE_EVENT(gcma_tenant, gcma_load,

	TP_PROTO(struct address_space *mapping, pgoff_t index, unsigned long pfn),

	TP_ARGS(mapping, index, pfn)
);

/* A primary took a range from the tenants, or gave it back. */
DECLARE_EVENT_CLASS(gcma_range,

	TP_PROTO(const char *name, unsigned long pfn, unsigned long count),

	TP_ARGS(name, pfn, count),

	TP_STRUCT__entry(
		__string(name, name)
		__field(unsigned long, pfn)
		__field(unsigned long, count)
	),

	TP_fast_assign(
		__assign_str(name);
		__entry->pfn = pfn;
		__entry->count = count;
	),

	TP_printk("name=%s pfn=0x%lx count=%lu", __get_str(name), __entry->pfn,
		  __entry->count)
);

DEFINE_EVENT(gcma_range, gcma_revoke,

	TP_PROTO(const char *name, unsigned long pfn, unsigned long count),

	TP_ARGS(name, pfn, count)
);

DEFINE_EVENT(gcma_range, gcma_release,

	TP_PROTO(const char *name, unsigned long pfn, unsigned long count),

	TP_ARGS(name, pfn, count)
);

/* Some of the pages that it gave back are still in use. */
DEFINE_EVENT(gcma_range, gcma_quarantine,

	TP_PROTO(const char *name, unsigned long pfn, unsigned long count),

	TP_ARGS(name, pfn, count)
);

#endif /* _TRACE_GCMA_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
