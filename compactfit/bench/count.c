/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "count.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>

static volatile uint64_t steps;
static uint64_t own_steps; /* of count_end() */
static uint64_t copy_steps; /* of count_copy(), its counted part */
static uint64_t copies, copied;

static void step(int signal)
{
	(void)signal;
	steps++;
}

uint64_t count_taken(void)
{
	uint64_t taken = steps - own_steps - copies * copy_steps;

	steps = 0;
	copies = 0;
	return taken;
}

uint64_t count_copied(void)
{
	uint64_t bytes = copied;

	copied = 0;
	return bytes;
}

__attribute__((noinline)) void count_copy(uint32_t *to, const uint32_t *from, uint32_t words)
{
	bool counting;
	uint64_t flags;

	__asm__ volatile("pushfq; popq %0" : "=r"(flags)::"memory");
	counting = flags & 0x100;
	count_end();
	memcpy(to, from, words * sizeof(*to));
	copied += words * sizeof(*to);
	copies += counting;
	if (counting)
		count_begin();
}

void count_setup(void)
{
	struct sigaction action = { .sa_handler = step };
	uint32_t word = 0, to;

	sigaction(SIGTRAP, &action, NULL);
	count_begin();
	count_end();
	own_steps = steps;
	steps = 0;
	count_begin();
	count_copy(&to, &word, 1);
	count_end();
	copy_steps = steps - own_steps;
	steps = 0;
	copies = 0;
	copied = 0;
}
