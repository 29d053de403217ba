// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * compactfit in Linux: the portable source with the kernel's memcpy() and
 * memset().
 */
#include <linux/compactfit.h>
#include <linux/limits.h>
#include <linux/string.h>

#define UINT32_MAX			U32_MAX
#define CF_ATOMIC			1
#define CF_COPY(to, from, words)	memcpy(to, from, (size_t)(words) * 4)

#include "compactfit.c"
