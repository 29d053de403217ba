/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include <stddef.h>

int log_capacity(void *memory, size_t size);

static char memory[1 << 20];

int main(void)
{
	return log_capacity(memory, sizeof(memory)) < 1000;
}
