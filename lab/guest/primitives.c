// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * primitives FILE: context switch, file read, memory read and write, as LMbench
 * has them. Prints "NAME CYCLES", the mean of ROUNDS. FILE has at least 1 MiB.
 */
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define PAGE 4096UL
#define ROUNDS 2000
#define FILE_PAGES 256

static uint64_t words[PAGE / 8];
static int file;

/* A token goes to a second process and back: two switches. */
static void context_switch(void)
{
	int to[2], from[2], i;
	char token = 0;
	pid_t child;

	if (pipe(to) || pipe(from))
		err(1, "pipe");
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (!child) {
		close(to[1]);
		while (read(to[0], &token, 1) == 1)
			if (write(from[1], &token, 1) != 1)
				_exit(1);
		_exit(0);
	}
	for (i = 0; i < ROUNDS / 2; i++)
		if (write(to[1], &token, 1) != 1 || read(from[0], &token, 1) != 1)
			err(1, "token");
	close(to[1]);
	waitpid(child, NULL, 0);
}

static void file_read(void)
{
	int i;

	for (i = 0; i < ROUNDS; i++)
		if (pread(file, words, PAGE, i % FILE_PAGES * PAGE) != PAGE)
			err(1, "read");
}

static void memory_read(void)
{
	volatile uint64_t *word = words;
	unsigned long i, at;

	for (i = 0; i < ROUNDS; i++)
		for (at = 0; at < PAGE / 8; at++)
			(void)word[at];
}

static void memory_write(void)
{
	volatile uint64_t *word = words;
	unsigned long i, at;

	for (i = 0; i < ROUNDS; i++)
		for (at = 0; at < PAGE / 8; at++)
			word[at] = i;
}

static void measure(const char *name, void (*run)(void))
{
	uint64_t start = cycles_now();

	run();
	printf("%s %lu\n", name, (cycles_now() - start) / ROUNDS);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "usage: primitives FILE");
	file = open(argv[1], O_RDONLY);
	if (file < 0)
		err(1, "%s", argv[1]);
	measure("context_switch", context_switch);
	measure("file_read", file_read);
	measure("memory_read", memory_read);
	measure("memory_write", memory_write);
	return 0;
}
