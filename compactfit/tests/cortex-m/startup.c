/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a Cortex-M reads at reset: the stack, and newlib's start with semihosting. There are no handlers: a
 * fault in a test locks the core up, and QEMU ends with an error.
 */
#include <malloc.h>
#include <stddef.h>

extern char cf_test_stack[];
void _start(void);

__attribute__((section(".vectors"), used)) static void (*const vectors[])(void) = {
	(void (*)(void))cf_test_stack,
	_start,
};

/* newlib's aligned_alloc() calls it, but newlib has it on few systems. */
int posix_memalign(void **memory, size_t align, size_t size)
{
	*memory = memalign(align, size);
	return !*memory;
}
