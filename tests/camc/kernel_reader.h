/* SPDX-License-Identifier: GPL-2.0-only */
/* Of kernel_map.c: what the kernel makes of a map. */

/* The number of its colors, or -1 if it is refused */
int kernel_read(const char *text);

/* Of the map that was read last: -1 outside of it */
int kernel_color(unsigned long long address);
int kernel_spans_are_right(unsigned long long address);
