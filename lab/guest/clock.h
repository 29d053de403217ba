/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The counter that costs are taken with: an exact guest's goes by instructions. */
#ifndef GCMA_GUEST_CLOCK_H
#define GCMA_GUEST_CLOCK_H

#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>

static inline uint64_t cycles_now(void)
{
	return __rdtsc();
}
#elif defined(__aarch64__)
static inline uint64_t cycles_now(void)
{
	uint64_t now;

	asm volatile("isb; mrs %0, cntvct_el0" : "=r"(now) : : "memory");
	return now;
}
#else
#error "which counter does this architecture have?"
#endif

#endif
