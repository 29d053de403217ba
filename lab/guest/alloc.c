// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * alloc FILE REPETITIONS PAUSE_US SIZE...
 *
 * Allocate and release SIZE pages through debugfs bench_alloc, with a pause after
 * each, that other tasks may use the area. A SIZE of "rN" is a random size from 1
 * to N. Prints "PAGES ALLOC RELEASE OK": the pages, what the kernel measured.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static unsigned long pages_of(const char *size)
{
	static uint64_t state = 1;

	if (*size != 'r')
		return strtoul(size, NULL, 0);
	state = state * 6364136223846793005 + 1442695040888963407;
	return 1 + (state >> 33) % strtoul(size + 1, NULL, 0);
}

static void once(int fd, unsigned long pages)
{
	char text[64];
	ssize_t len;

	len = snprintf(text, sizeof(text), "%lu 1", pages);
	if (write(fd, text, len) != len)
		err(1, "bench_alloc, write");
	len = pread(fd, text, sizeof(text), 0);
	if (len <= 0)
		err(1, "bench_alloc, read");
	printf("%lu %.*s", pages, (int)len, text);
}

int main(int argc, char **argv)
{
	int fd, repetitions, size, i;
	struct timespec pause;

	if (argc < 5)
		errx(2, "usage: alloc FILE REPETITIONS PAUSE_US SIZE...");
	repetitions = atoi(argv[2]);
	pause.tv_sec = atoi(argv[3]) / 1000000;
	pause.tv_nsec = atoi(argv[3]) % 1000000 * 1000L;
	for (size = 4; size < argc; size++) {
		for (i = 0; i < repetitions; i++) {
			/* a seq_file is read from its start: opened anew */
			fd = open(argv[1], O_RDWR);
			if (fd < 0)
				err(1, "%s", argv[1]);
			once(fd, pages_of(argv[size]));
			close(fd);
			nanosleep(&pause, NULL);
		}
	}
	return 0;
}
