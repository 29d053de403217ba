// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mix FILE: a fixed mix of system calls, page faults and file reads.
 *
 * Prints "NAME CYCLES" for each part: the median of several passes, for what the
 * kernel does in the background (ticks, RCU callbacks, writeback) falls into one
 * part or another by chance. FILE has at least 8 MiB. Nothing here depends on
 * the time or on random numbers.
 */
#define _GNU_SOURCE
#include <err.h>
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

static const struct {
	const char *name;
	void (*run)(void);
} parts[] = {
	{ "calls", calls },
	{ "pipes", pipes },
	{ "processes", processes },
	{ "anonymous_faults", anonymous_faults },
	{ "cached_reads", cached_reads },
	{ "file_faults", file_faults },
	{ "uncached_reads", uncached_reads },
	{ "writes", writes },
};

#define PARTS (sizeof(parts) / sizeof(*parts))

static int compare(const void *a, const void *b)
{
	const unsigned long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
	static unsigned long long taken[PARTS][PASSES];
	unsigned int i, pass;

	if (argc != 2)
		errx(2, "usage: mix FILE");
	path = argv[1];
	file = open(path, O_RDWR);
	if (file < 0)
		err(1, "%s", path);
	read_all(PAGE);
	for (pass = 0; pass < PASSES; pass++)
		for (i = 0; i < PARTS; i++) {
			unsigned long long start = cycles_now();

			parts[i].run();
			taken[i][pass] = cycles_now() - start;
		}
	for (i = 0; i < PARTS; i++) {
		qsort(taken[i], PASSES, sizeof(*taken[i]), compare);
		printf("%s %llu\n", parts[i].name, taken[i][PASSES / 2]);
	}
	return 0;
}
