// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * alloc FILE REPETITIONS PAUSE_US PAGE_NS SIZE...
 *
 * Allocate and release SIZE pages through debugfs bench_alloc, with a pause of
 * PAUSE_US and PAGE_NS a page after each, that other tasks may use the area. A
 * SIZE of "rN" is a random size from 1 to N, to see failures rather than costs:
 * nothing is done against interrupts then. Prints "PAGES ALLOC RELEASE OK": the
 * pages, what the kernel measured.
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
#include <x86intrin.h>

/* In cycles, which are instructions in an exact guest. */
#define INTERRUPT	1000	/* shorter gaps are the loop itself */
#define SWITCH		20000	/* longer ones: others have run */
#define SETTLED		100000	/* after others ran: their requests have completed */
#define QUIET		30000	/* after a tick: the other CPUs' ticks are over too */
#define GAPS		50

/*
 * Return soon after a timer tick that found nothing else to run, so that it is
 * long until the next: interrupts do not belong to what is measured, and some
 * are longer than that. Gives up where other CPUs' work looks like gaps.
 */
static void wait_for_quiet(void)
{
	uint64_t now, last = __rdtsc(), others = last, tick = 0;
	int gaps = 0;

	for (; gaps < GAPS; last = now) {
		now = __rdtsc();
		if (now - last > INTERRUPT) {
			gaps++;
			tick = 0;
			if (now - last > SWITCH)
				others = now;
			else if (now - others > SETTLED)
				tick = now;
		} else if (tick && now - tick > QUIET) {
			return;
		}
	}
}

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
	long pause_us, page_ns;
	int fd, repetitions, size, i;

	if (argc < 6)
		errx(2, "usage: alloc FILE REPETITIONS PAUSE_US PAGE_NS SIZE...");
	repetitions = atoi(argv[2]);
	pause_us = atol(argv[3]);
	page_ns = atol(argv[4]);
	for (size = 5; size < argc; size++) {
		for (i = 0; i < repetitions; i++) {
			unsigned long pages = pages_of(argv[size]);
			long ns = pause_us * 1000 + pages * page_ns;
			struct timespec pause = { ns / 1000000000, ns % 1000000000 };

			/* a seq_file is read from its start: opened anew */
			fd = open(argv[1], O_RDWR);
			if (fd < 0)
				err(1, "%s", argv[1]);
			if (*argv[size] != 'r')
				wait_for_quiet();
			once(fd, pages);
			close(fd);
			nanosleep(&pause, NULL);
		}
	}
	return 0;
}
