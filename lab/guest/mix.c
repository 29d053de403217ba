// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mix FILE: a fixed mix of system calls, page faults and file reads.
 * mix swap RECLAIM: anonymous memory and tmpfs, swapped out and touched again. There is swap, and
 *           RECLAIM is the memory.reclaim of our group in cgroup v2. Tells last how many pages were
 *           to go out, and to come back.
 *
 * Prints "NAME CYCLES" for each part: the median of several passes, for what the
 * kernel does in the background (ticks, RCU callbacks, writeback) falls into one
 * part or another by chance. FILE has at least 8 MiB. Nothing here depends on
 * the time or on random numbers.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define PAGE 4096UL
#define PAGES 2048UL
#define ROUNDS 4
#define PASSES 15

static const char *path;
static int file;
static char buf[16 * PAGE];

static void calls(void)
{
	struct stat st;
	int i;

	for (i = 0; i < 20000; i++)
		syscall(SYS_getppid);
	for (i = 0; i < 2000; i++)
		if (stat(path, &st))
			err(1, "stat");
	for (i = 0; i < 2000; i++)
		close(open(path, O_RDONLY));
}

static void pipes(void)
{
	int end[2], i;

	if (pipe(end))
		err(1, "pipe");
	for (i = 0; i < 2000; i++)
		if (write(end[1], buf, 512) != 512 || read(end[0], buf, 512) != 512)
			err(1, "pipe");
	close(end[0]);
	close(end[1]);
}

static void processes(void)
{
	int i;

	for (i = 0; i < 50; i++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
}

static void touch(int flags, int fd, int prot)
{
	volatile char *memory = mmap(NULL, PAGES * PAGE, prot, flags, fd, 0);
	unsigned long i;

	if (memory == MAP_FAILED)
		err(1, "mmap");
	for (i = 0; i < PAGES; i++)
		if (prot & PROT_WRITE)
			memory[i * PAGE] = 1;
		else
			(void)memory[i * PAGE];
	munmap((void *)memory, PAGES * PAGE);
}

static void anonymous_faults(void)
{
	int i;

	for (i = 0; i < ROUNDS; i++)
		touch(MAP_PRIVATE | MAP_ANONYMOUS, -1, PROT_READ | PROT_WRITE);
}

static void file_faults(void)
{
	int i;

	for (i = 0; i < ROUNDS; i++)
		touch(MAP_SHARED, file, PROT_READ);
}

static void read_all(unsigned long step)
{
	unsigned long at;

	for (at = 0; at < PAGES * PAGE; at += step)
		if (pread(file, buf, step, at) != (ssize_t)step)
			err(1, "read");
}

static void cached_reads(void)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		read_all(PAGE);
		read_all(16 * PAGE);
	}
}

static void uncached_reads(void)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
		read_all(16 * PAGE);
	}
}

static void writes(void)
{
	unsigned long at;

	for (at = 0; at < PAGES * PAGE; at += PAGE)
		if (pwrite(file, buf, PAGE, at) != PAGE)
			err(1, "write");
	fsync(file);
}

/* ------ swap ------------------------------------------------------------ */

#define WRITTEN_US 50000 /* until the disk has written all of them */

static char *anonymous, *tmpfs;
static int reclaim;
static unsigned long long waited;

/* Written, not read: it is dirty again, and swap keeps no copy. Nor is it a page of zeroes. */
static void touch_all(volatile char *memory)
{
	unsigned long i;

	for (i = 0; i < PAGES; i++)
		memory[i * PAGE] = 1;
}

static char *map_all(int flags)
{
	char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		err(1, "mmap");
	touch_all(memory);
	return memory;
}

/* KiB of the swap cache */
static unsigned long swap_cached(void)
{
	FILE *info = fopen("/proc/meminfo", "r");
	char line[128];
	unsigned long kib;

	while (info && fgets(line, sizeof(line), info))
		if (sscanf(line, "SwapCached: %lu kB", &kib) == 1) {
			fclose(info);
			return kib;
		}
	errx(1, "/proc/meminfo has no SwapCached");
}

/*
 * What was written at once is gone at once. Other pages stay in the swap cache until somebody
 * reclaims them after they were written. The wait for that is no part of what is measured.
 */
static void out(char *memory)
{
	unsigned long long start;
	unsigned long left;
	char order[64];

	if (madvise(memory, PAGES * PAGE, MADV_PAGEOUT))
		err(1, "madvise");
	start = cycles_now();
	usleep(WRITTEN_US);
	left = swap_cached();
	waited += cycles_now() - start;
	if (!left)
		return;
	snprintf(order, sizeof(order), "%luK swappiness=200", left);
	/* EAGAIN: some pages are needed */
	if (write(reclaim, order, strlen(order)) < 0 && errno != EAGAIN)
		err(1, "memory.reclaim");
}

static void anonymous_out(void)
{
	out(anonymous);
}

static void anonymous_in(void)
{
	touch_all(anonymous);
}

static void tmpfs_out(void)
{
	out(tmpfs);
}

static void tmpfs_in(void)
{
	touch_all(tmpfs);
}

/* ------ measuring ------------------------------------------------------- */

struct part {
	const char *name;
	void (*run)(void);
};

static const struct part mix[] = {
	{ "calls", calls },
	{ "pipes", pipes },
	{ "processes", processes },
	{ "anonymous_faults", anonymous_faults },
	{ "cached_reads", cached_reads },
	{ "file_faults", file_faults },
	{ "uncached_reads", uncached_reads },
	{ "writes", writes },
};

static const struct part swapped[] = {
	{ "anonymous_out", anonymous_out },
	{ "anonymous_in", anonymous_in },
	{ "tmpfs_out", tmpfs_out },
	{ "tmpfs_in", tmpfs_in },
};

#define COUNT(parts) (sizeof(parts) / sizeof(*(parts)))

static int compare(const void *a, const void *b)
{
	const unsigned long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void measure(const struct part *parts, unsigned int count)
{
	static unsigned long long taken[COUNT(mix)][PASSES];
	unsigned int i, pass;

	_Static_assert(COUNT(mix) >= COUNT(swapped), "taken is too small");
	for (pass = 0; pass < PASSES; pass++)
		for (i = 0; i < count; i++) {
			unsigned long long start = cycles_now();

			waited = 0;
			parts[i].run();
			taken[i][pass] = cycles_now() - start - waited;
		}
	for (i = 0; i < count; i++) {
		qsort(taken[i], PASSES, sizeof(*taken[i]), compare);
		printf("%s %llu\n", parts[i].name, taken[i][PASSES / 2]);
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "swap")) {
		reclaim = open(argv[2], O_WRONLY);
		if (reclaim < 0)
			err(1, "%s", argv[2]);
		anonymous = map_all(MAP_PRIVATE);
		tmpfs = map_all(MAP_SHARED); /* a file of tmpfs without a name */
		measure(swapped, COUNT(swapped));
		printf("pages %lu\n", 2 * PAGES * PASSES);
		return 0;
	}
	if (argc != 2)
		errx(2, "usage: mix FILE, or: mix swap RECLAIM");
	path = argv[1];
	file = open(path, O_RDWR);
	if (file < 0)
		err(1, "%s", path);
	read_all(PAGE);
	measure(mix, COUNT(mix));
	return 0;
}
