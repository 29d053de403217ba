/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Where compactfit.c, the portable source, looks for its header. */
#include <linux/compactfit.h>
