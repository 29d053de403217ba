// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * compactfit in Linux: the portable source with the kernel's memcpy() and
 * memset(), exported.
 */
#include <linux/compactfit.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/string.h>

#define UINT32_MAX			U32_MAX
#define CF_NO_CALLS
#define CF_COPY(to, from, words)	memcpy(to, from, (size_t)(words) * 4)

#include "compactfit.c"

EXPORT_SYMBOL_GPL(cf_init);
EXPORT_SYMBOL_GPL(cf_malloc);
EXPORT_SYMBOL_GPL(cf_calloc);
EXPORT_SYMBOL_GPL(cf_aligned_alloc);
EXPORT_SYMBOL_GPL(cf_realloc);
EXPORT_SYMBOL_GPL(cf_free);
EXPORT_SYMBOL_GPL(cf_check_handle);
EXPORT_SYMBOL_GPL(cf_usable_size);
EXPORT_SYMBOL_GPL(cf_at);
EXPORT_SYMBOL_GPL(cf_pin);
EXPORT_SYMBOL_GPL(cf_unpin);
EXPORT_SYMBOL_GPL(cf_compact);
EXPORT_SYMBOL_GPL(cf_debt);
EXPORT_SYMBOL_GPL(cf_bound);
EXPORT_SYMBOL_GPL(cf_max_size);
EXPORT_SYMBOL_GPL(cf_class_count);
EXPORT_SYMBOL_GPL(cf_class_size);
EXPORT_SYMBOL_GPL(cf_class_per_page);
EXPORT_SYMBOL_GPL(cf_class_of);
EXPORT_SYMBOL_GPL(cf_get_stats);
EXPORT_SYMBOL_GPL(cf_verify);

MODULE_DESCRIPTION("Compacting allocator with bounded time and fragmentation");
MODULE_LICENSE("Dual MIT/GPL");
