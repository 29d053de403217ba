/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <compactfit.h>

int log_capacity(void *memory, size_t size)
{
	struct cf_heap *heap = cf_init(memory, size, NULL);

	return heap ? (int)cf_bound(heap, 100) : 0;
}
