/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rental

#if !defined(_TRACE_RENTAL_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_RENTAL_H

#include <linux/pagemap.h>
#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(rental_move,

	TP_PROTO(struct folio *from, struct folio *to),

	TP_ARGS(from, to),

	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(unsigned long, ino)
		__field(pgoff_t, index)
		__field(unsigned long, from)
		__field(unsigned long, to)
		__field(unsigned int, order)
	),

	TP_fast_assign(
		__entry->dev = to->mapping->host->i_sb->s_dev;
		__entry->ino = to->mapping->host->i_ino;
		__entry->index = to->index;
		__entry->from = folio_pfn(from);
		__entry->to = folio_pfn(to);
		__entry->order = folio_order(to);
	),

	TP_printk("dev=%d:%d ino=%lx index=%lu pfn=0x%lx to=0x%lx order=%u",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->ino,
		  __entry->index, __entry->from, __entry->to, __entry->order)
);

/* A lent page leaves the area: it is written to, or in use while its range is returned. */
DEFINE_EVENT(rental_move, rental_replace,

	TP_PROTO(struct folio *from, struct folio *to),

	TP_ARGS(from, to)
);

/* Reclaim would have evicted a page: it has a lent frame now. */
DEFINE_EVENT(rental_move, rental_take_over,

	TP_PROTO(struct folio *from, struct folio *to),

	TP_ARGS(from, to)
);

/* A lent page became dirty where it is: held, no memory for a copy, or in a way not known. */
DEFINE_EVENT(rental_move, rental_slipped,

	TP_PROTO(struct folio *from, struct folio *to),

	TP_ARGS(from, to)
);

/* A range of which pages were lent is returned (0), or not (-EBUSY). */
TRACE_EVENT(rental_return,

	TP_PROTO(const char *name, unsigned long frame, unsigned long count, int ret,
		 u64 ns),

	TP_ARGS(name, frame, count, ret, ns),

	TP_STRUCT__entry(
		__string(name, name)
		__field(unsigned long, frame)
		__field(unsigned long, count)
		__field(int, ret)
		__field(u64, ns)
	),

	TP_fast_assign(
		__assign_str(name);
		__entry->frame = frame;
		__entry->count = count;
		__entry->ret = ret;
		__entry->ns = ns;
	),

	TP_printk("area=%s frame=%lu count=%lu ret=%d ns=%llu", __get_str(name),
		  __entry->frame, __entry->count, __entry->ret, __entry->ns)
);

#endif /* _TRACE_RENTAL_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
