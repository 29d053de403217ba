/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM cma_reserve

#if !defined(_TRACE_CMA_RESERVE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_CMA_RESERVE_H

#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(cma_reserve_range,

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

/* A range became a primary's. */
DEFINE_EVENT(cma_reserve_range, cma_reserve_take,

	TP_PROTO(const char *name, unsigned long pfn, unsigned long count),

	TP_ARGS(name, pfn, count)
);

/* A primary gave it back. */
DEFINE_EVENT(cma_reserve_range, cma_reserve_release,

	TP_PROTO(const char *name, unsigned long pfn, unsigned long count),

	TP_ARGS(name, pfn, count)
);

/* Some of the pages that it gave back are still in use. */
DEFINE_EVENT(cma_reserve_range, cma_reserve_quarantine,

	TP_PROTO(const char *name, unsigned long pfn, unsigned long count),

	TP_ARGS(name, pfn, count)
);

#endif /* _TRACE_CMA_RESERVE_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
