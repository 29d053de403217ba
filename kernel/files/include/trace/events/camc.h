/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM camc

#if !defined(_TRACE_CAMC_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_CAMC_H

#include <linux/mmzone.h>
#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(camc_zone,

	TP_PROTO(struct zone *zone, unsigned long pages),

	TP_ARGS(zone, pages),

	TP_STRUCT__entry(
		__field(int, nid)
		__string(zone, zone->name)
		__field(unsigned long, pages)
	),

	TP_fast_assign(
		__entry->nid = zone_to_nid(zone);
		__assign_str(zone);
		__entry->pages = pages;
	),

	TP_printk("nid=%d zone=%s pages=%lu", __entry->nid, __get_str(zone),
		  __entry->pages)
);

/* Pages of a free block came to color lists. */
DEFINE_EVENT(camc_zone, camc_refill,

	TP_PROTO(struct zone *zone, unsigned long pages),

	TP_ARGS(zone, pages)
);

/* What was on color lists went back to the free lists. */
DEFINE_EVENT(camc_zone, camc_drain,

	TP_PROTO(struct zone *zone, unsigned long pages),

	TP_ARGS(zone, pages)
);

/* A search for the last pages of some colors looked at so many. */
DEFINE_EVENT(camc_zone, camc_search,

	TP_PROTO(struct zone *zone, unsigned long pages),

	TP_ARGS(zone, pages)
);

/* The task's set has one more color, for want of pages of its own. */
TRACE_EVENT(camc_spill,

	TP_PROTO(unsigned int set, unsigned int color),

	TP_ARGS(set, color),

	TP_STRUCT__entry(
		__field(unsigned int, set)
		__field(unsigned int, color)
	),

	TP_fast_assign(
		__entry->set = set;
		__entry->color = color;
	),

	TP_printk("set=%u color=%u", __entry->set, __entry->color)
);

/* An allocation failed for want of pages of the colors of the set. */
TRACE_EVENT(camc_exhausted,

	TP_PROTO(unsigned int set),

	TP_ARGS(set),

	TP_STRUCT__entry(
		__field(unsigned int, set)
	),

	TP_fast_assign(
		__entry->set = set;
	),

	TP_printk("set=%u", __entry->set)
);

#endif /* _TRACE_CAMC_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
