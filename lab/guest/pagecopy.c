// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pagecopy: the instructions that a bare copy of a page takes.
 *
 * Both ways that the kernel's copy_page() knows on x86-64, arch/x86/lib/
 * copy_page_64.S; it uses "rep" if /proc/cpuinfo says rep_good. Prints
 * "NAME CYCLES", the loop around it and the call taken away.
 */
#include <stdint.h>
#include <stdio.h>

#include "clock.h"

#define ROUNDS 1000

static char from[4096] __attribute__((aligned(4096)));
static char to[4096] __attribute__((aligned(4096)));

static void copy_rep(void)
{
	void *src = from, *dst = to;
	unsigned long count = sizeof(from) / 8;

	asm volatile("rep movsq" : "+S"(src), "+D"(dst), "+c"(count) : : "memory");
}

/* 64 bytes a turn: eight loads, eight stores, as copy_page_regs */
static void copy_regs(void)
{
	void *src = from, *dst = to;
	unsigned long turns = sizeof(from) / 64;

	asm volatile("1: dec %2\n\t"
		     "movq 0x00(%0), %%rax\n\tmovq 0x08(%0), %%rbx\n\t"
		     "movq 0x10(%0), %%rdx\n\tmovq 0x18(%0), %%r8\n\t"
		     "movq 0x20(%0), %%r9\n\tmovq 0x28(%0), %%r10\n\t"
		     "movq 0x30(%0), %%r11\n\tmovq 0x38(%0), %%r12\n\t"
		     "prefetcht0 320(%0)\n\t"
		     "movq %%rax, 0x00(%1)\n\tmovq %%rbx, 0x08(%1)\n\t"
		     "movq %%rdx, 0x10(%1)\n\tmovq %%r8, 0x18(%1)\n\t"
		     "movq %%r9, 0x20(%1)\n\tmovq %%r10, 0x28(%1)\n\t"
		     "movq %%r11, 0x30(%1)\n\tmovq %%r12, 0x38(%1)\n\t"
		     "lea 64(%0), %0\n\tlea 64(%1), %1\n\tjnz 1b"
		     : "+r"(src), "+r"(dst), "+c"(turns)
		     :
		     : "rax", "rbx", "rdx", "r8", "r9", "r10", "r11", "r12", "memory", "cc");
}

static void nothing(void)
{
	asm volatile("" : : : "memory");
}

static uint64_t cost(void (*volatile copy)(void))
{
	uint64_t best = UINT64_MAX;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		uint64_t start = cycles_now(), cycles;

		copy();
		cycles = cycles_now() - start;
		if (cycles < best)
			best = cycles;
	}
	return best;
}

int main(void)
{
	uint64_t call = cost(nothing);

	printf("rep %lu\nregs %lu\n", cost(copy_rep) - call, cost(copy_regs) - call);
	return 0;
}
