// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hold FILE PIPES
 *
 * Hold references to pages without pinning them: every second pipe is full of
 * pages of FILE (splice), the others of anonymous pages (vmsplice). Pipe by pipe,
 * the pages are let go and others taken, until killed. Prints "holding" when all
 * pipes were filled once.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define SLOTS 256		/* pages that a pipe of 1 MiB holds */
#define TURN_NS 1000000L	/* between two pipes */

static unsigned long random_page(unsigned long pages)
{
	static unsigned long state = 1;

	state = state * 6364136223846793005 + 1442695040888963407;
	return (state >> 33) % pages;
}

static void take_file(int fd, unsigned long pages, int pipe)
{
	int i;

	for (i = 0; i < SLOTS; i++) {
		off_t at = random_page(pages) * PAGE;

		if (splice(fd, &at, pipe, NULL, PAGE, SPLICE_F_NONBLOCK) != PAGE)
			return;
	}
}

static void take_memory(int pipe)
{
	char *memory = mmap(NULL, SLOTS * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct iovec range = { memory, SLOTS * PAGE };

	if (memory == MAP_FAILED)
		err(1, "mmap");
	if (vmsplice(pipe, &range, 1, SPLICE_F_NONBLOCK) < 0)
		err(1, "vmsplice");
	munmap(memory, SLOTS * PAGE);	/* the pipe has the only references now */
}

int main(int argc, char **argv)
{
	struct timespec turn = { 0, TURN_NS };
	unsigned long pages, i;
	int fd, pipes, (*ends)[2];
	struct stat st;

	if (argc != 3)
		errx(2, "usage: hold FILE PIPES");
	fd = open(argv[1], O_RDONLY);
	pipes = atoi(argv[2]);
	ends = calloc(pipes, sizeof(*ends));
	if (fd < 0 || fstat(fd, &st) || !ends)
		err(1, "%s", argv[1]);
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	pages = st.st_size / PAGE;
	for (i = 0;; i++) {
		int *end = ends[i % pipes];

		if (i >= (unsigned long)pipes) {
			close(end[0]);
			close(end[1]);
		}
		if (pipe(end) || fcntl(end[1], F_SETPIPE_SZ, SLOTS * PAGE) < 0)
			err(1, "pipe");
		if (i % 2)
			take_memory(end[1]);
		else
			take_file(fd, pages, end[1]);
		if (i + 1 == (unsigned long)pipes) {
			puts("holding");
			fflush(stdout);
		}
		nanosleep(&turn, NULL);
	}
}
