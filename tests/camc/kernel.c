/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stands in for the kernel behind camc in its tests: linked with --wrap=prctl,--wrap=write. What it
 * is asked for goes to the file $CAMC_FAKE_LOG, one line a call; what it answers is in
 * $CAMC_FAKE_ERRNO (of CAMC_SET), $CAMC_FAKE_PAGES (how many CAMC_FILL finds) and
 * $CAMC_FAKE_WRITE_ERRNO.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "../../kernel/files/include/uapi/linux/camc.h"

ssize_t __real_write(int file, const void *data, size_t size);

static int number(const char *name)
{
	const char *value = getenv(name);

	return value ? atoi(value) : 0;
}

ssize_t __wrap_write(int file, const void *data, size_t size)
{
	errno = number("CAMC_FAKE_WRITE_ERRNO");
	return errno ? -1 : __real_write(file, data, size);
}

int __wrap_prctl(int what, ...)
{
	const char *path = getenv("CAMC_FAKE_LOG");
	FILE *log = path ? fopen(path, "a") : NULL;
	struct camc_policy *policy;
	unsigned long op, size;
	va_list arguments;
	unsigned int i;

	va_start(arguments, what);
	op = va_arg(arguments, unsigned long);
	policy = va_arg(arguments, struct camc_policy *);
	size = va_arg(arguments, unsigned long);
	va_end(arguments);
	if (!log || what != PR_CAMC || size != CAMC_POLICY_SIZE_VER0)
		abort();
	fprintf(log, "%lu %u %u %d %u", op, policy->flags, policy->nr_colors, policy->node,
		policy->nr_pages);
	for (i = 0; i < CAMC_MAX_COLORS; i++)
		if (policy->colors[i / 64] >> i % 64 & 1)
			fprintf(log, " %u", i);
	fputc('\n', log);
	fclose(log);
	if (op == CAMC_FILL) {
		/* The kernel wants the rest to be 0. */
		if (policy->flags || policy->nr_colors || policy->node || policy->colors[0])
			abort();
		policy->nr_pages = number("CAMC_FAKE_PAGES");
		return 0;
	}
	errno = number("CAMC_FAKE_ERRNO");
	return errno ? -1 : 0;
}
