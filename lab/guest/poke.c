// SPDX-License-Identifier: GPL-2.0-or-later
/* poke FILE TEXT: write TEXT to FILE, print the cycles that the write took. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

int main(int argc, char **argv)
{
	unsigned long long start, cycles;
	ssize_t done;
	int fd;

	if (argc != 3)
		errx(2, "usage: poke FILE TEXT");
	fd = open(argv[1], O_WRONLY);
	if (fd < 0)
		err(1, "%s", argv[1]);
	start = cycles_now();
	done = write(fd, argv[2], strlen(argv[2]));
	cycles = cycles_now() - start;
	/* memory.reclaim: fewer pages than asked for */
	if (done < 0 && errno != EAGAIN)
		err(1, "%s", argv[1]);
	printf("%llu\n", cycles);
	return 0;
}
