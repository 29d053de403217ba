// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * primary DEBUG COUNTER MOVED RECLAIM AREA PAGES TENANTS
 *
 * Allocate PAGES of an area of AREA pages that is full of our own swapped-out pages, but for as
 * many frames at its end, which are free. All of the PAGES hold tenants, or, with TENANTS 0, none.
 *
 * DEBUG is the area's folder in debugfs. COUNTER is its file in sysfs that tells how many such
 * tenants there are; "-": there cannot be any, and nothing is swapped out. MOVED counts those that
 * had to go another way than away; "-": none. RECLAIM is the file memory.reclaim of a group in
 * which is nobody but us. Afterwards every page is looked at: is it what it was?
 *
 * Prints "PAGES ALLOC RELEASE OK", what the kernel measured; "moved N", what MOVED gained; "left N",
 * the tenants afterwards.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	4096UL
#define WORDS	(PAGE / sizeof(uint64_t))
#define TRIES	2000
/* Some pages are not admitted: they are written to swap, and others have to do. */
#define MORE	4		/* one in so many */
#define SLACK	256UL

static const char *debug, *counter, *moved, *reclaim;
static uint64_t *memory;
static unsigned long pages;	/* of the memory */

/* No buffers of stdio: what is allocated later could be swapped out. */
static void tell(const char *folder, const char *name, const char *text)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err(1, "%s to %s", text, path);
	close(fd);
}

static void tell_number(const char *name, unsigned long number)
{
	char text[32];

	snprintf(text, sizeof(text), "%lu", number);
	tell(debug, name, text);
}

/* 0, if there is no such file on this machine. */
static unsigned long number_in(const char *path)
{
	char text[32] = "";
	int fd;

	if (!path)
		return 0;
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		err(1, "%s", path);
	close(fd);
	return strtoul(text, NULL, 10);
}

/* It differs from every other, and all of it is of no use to compress. */
static uint64_t word_of(unsigned long page, unsigned long word)
{
	return (page * WORDS + word + 1) * 0x9e3779b97f4a7c15;
}

static void fill(void)
{
	unsigned long page, word;

	memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (memory == MAP_FAILED)
		err(1, "%lu pages", pages);
	for (page = 0; page < pages; page++)
		for (word = 0; word < WORDS; word++)
			memory[page * WORDS + word] = word_of(page, word);
}

static void check(void)
{
	unsigned long page, word;

	for (page = 0; page < pages; page++)
		for (word = 0; word < WORDS; word++)
			if (memory[page * WORDS + word] != word_of(page, word))
				errx(1, "page %lu is not what it was", page);
}

/* Until so many frames have tenants. Reclaim evicts some more, for which there is no frame. */
static void swap_out(unsigned long enough)
{
	unsigned long there;
	char text[32];
	int fd, tries;

	for (tries = 0; (there = number_in(counter)) < enough; tries++) {
		if (tries == TRIES)
			errx(1, "%lu tenants, not %lu", there, enough);
		snprintf(text, sizeof(text), "%lu", (enough - there) * PAGE);
		fd = open(reclaim, O_WRONLY);
		/* fewer pages than asked for: EAGAIN */
		if (fd < 0 || (write(fd, text, strlen(text)) < 0 && errno != EAGAIN))
			err(1, "%s", reclaim);
		close(fd);
	}
	if (there > enough)
		errx(1, "%lu tenants, not %lu: whose?", there, enough);
}

static void allocate(unsigned long count)
{
	unsigned long before = number_in(moved);
	char path[256], text[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "%s/bench_alloc", debug);
	fd = open(path, O_RDWR);
	len = snprintf(text, sizeof(text), "%lu 1", count);
	if (fd < 0 || write(fd, text, len) != len)
		err(1, "%s", path);
	len = pread(fd, text, sizeof(text), 0);
	if (len <= 0)
		err(1, "%s", path);
	close(fd);
	before = number_in(moved) - before;
	printf("%lu %.*smoved %lu\nleft %lu\n", count, (int)len, text, before, number_in(counter));
}

int main(int argc, char **argv)
{
	unsigned long area, count, wanted, others;

	if (argc != 8)
		errx(2, "usage: primary DEBUG COUNTER MOVED RECLAIM AREA PAGES TENANTS");
	debug = argv[1];
	counter = strcmp(argv[2], "-") ? argv[2] : NULL;
	moved = strcmp(argv[3], "-") ? argv[3] : NULL;
	reclaim = argv[4];
	area = strtoul(argv[5], NULL, 0);
	count = strtoul(argv[6], NULL, 0);
	wanted = strtoul(argv[7], NULL, 0);
	if (!count || 2 * count > area || (wanted && wanted != count))
		errx(2, "%lu pages with %lu tenants, of %lu?", count, wanted, area);
	others = area - 2 * count;
	if (number_in(counter))
		errx(1, "there are tenants already");
	/* What is ours beside that memory stays where it is. */
	if (mlockall(MCL_CURRENT))
		err(1, "mlockall");
	if (counter) {
		pages = (wanted + others) * (MORE + 1) / MORE + SLACK;
		fill();
	}
	/*
	 * A primary gets the lowest run: [0, count). All else is held meanwhile, so that tenants
	 * have no choice, and let go from its beginning on.
	 */
	tell_number("bench_hold", count);
	tell_number("alloc", area - count);
	if (wanted) {
		tell_number("bench_hold", 0);
		if (counter)
			swap_out(wanted);
	}
	tell_number("free", others);
	if (counter)
		swap_out(wanted + others);
	if (!wanted)
		tell_number("bench_hold", 0);
	tell_number("free", count);
	allocate(count);
	check();
	return 0;
}
