// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Many small files.
 *
 * files make DIR COUNT BYTES		make them: holes, so that they take no disk
 * files read DIR FIRST COUNT ROUNDS	read some of them from end to end, in turn
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK	8192

static int open_file(unsigned long number, int flags)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "%lu", number);
	fd = open(name, flags, 0600);
	if (fd < 0)
		err(1, "%s", name);
	return fd;
}

static void make_files(unsigned long count, off_t bytes)
{
	unsigned long number;
	int fd;

	for (number = 0; number < count; number++) {
		fd = open_file(number, O_WRONLY | O_CREAT);
		if (ftruncate(fd, bytes))
			err(1, "ftruncate");
		close(fd);
	}
}

static void read_files(unsigned long first, unsigned long count)
{
	static char block[BLOCK];
	unsigned long number;
	ssize_t got;
	int fd;

	for (number = first; number < first + count; number++) {
		fd = open_file(number, O_RDONLY);
		while ((got = read(fd, block, sizeof(block))) > 0)
			;
		if (got < 0)
			err(1, "read");
		close(fd);
	}
}

int main(int argc, char **argv)
{
	unsigned long rounds;

	if (argc < 5)
		errx(2, "usage: files make DIR COUNT BYTES | files read DIR FIRST COUNT ROUNDS");
	if (chdir(argv[2]))
		err(1, "%s", argv[2]);
	if (!strcmp(argv[1], "make")) {
		make_files(strtoul(argv[3], NULL, 0), strtol(argv[4], NULL, 0));
		return 0;
	}
	if (strcmp(argv[1], "read") || argc != 6)
		errx(2, "unknown command %s, or not its arguments", argv[1]);
	for (rounds = strtoul(argv[5], NULL, 0); rounds; rounds--)
		read_files(strtoul(argv[3], NULL, 0), strtoul(argv[4], NULL, 0));
	return 0;
}
