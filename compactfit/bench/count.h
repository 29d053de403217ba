/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Counts instructions by single-stepping: the processor traps after each one while its trap flag is set,
 * as in the paper's measurements, which used ptrace for it. Some 50,000 instructions a second. x86-64,
 * Linux, one thread.
 */
#ifndef COUNT_H
#define COUNT_H

#include <stdint.h>

/* Before the first count_begin(). */
void count_setup(void);

/* Nothing may be on the stack below the stack pointer: compile with -mno-red-zone. */
static inline __attribute__((always_inline)) void count_begin(void)
{
	__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static inline __attribute__((always_inline)) void count_end(void)
{
	__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

/* Instructions since the last call, less what count_begin() and count_end() are themselves. */
uint64_t count_taken(void);

/* Copy words without counting: how the library copies if this header was included before it. */
void count_copy(uint32_t *to, const uint32_t *from, uint32_t words);

#define CF_COPY(to, from, words) count_copy(to, from, words)

/* Bytes that count_copy() copied since the last call. */
uint64_t count_copied(void);

#endif
