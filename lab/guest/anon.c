// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * anon FILE COMMAND [ARGUMENT...]
 *
 * Run COMMAND, and when it is about to exit write its anonymous pages that are in memory, those
 * that would be swapped out, to FILE one by one. Prints how many there were.
 */
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE		4096UL
#define PRESENT		(1ULL << 63)	/* in pagemap: Documentation/admin-guide/mm/pagemap.rst */
#define FILE_OR_SHARED	(1ULL << 61)

static int open_of(pid_t pid, const char *name, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, flags);
	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

static unsigned long write_pages(pid_t pid, int out)
{
	int mem = open_of(pid, "mem", O_RDONLY), map = open_of(pid, "pagemap", O_RDONLY);
	FILE *maps = fdopen(open_of(pid, "maps", O_RDONLY), "r");
	unsigned long start, end, pages = 0;
	char line[512], page[PAGE];
	uint64_t entry;

	while (fgets(line, sizeof(line), maps)) {
		/* no process's own: the kernel's pages */
		if (strstr(line, "[v") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		for (; start < end; start += PAGE) {
			if (pread(map, &entry, 8, start / PAGE * 8) != 8)
				err(1, "pagemap");
			if (!(entry & PRESENT) || entry & FILE_OR_SHARED)
				continue;
			if (pread(mem, page, PAGE, start) != PAGE)
				err(1, "mem");
			if (write(out, page, PAGE) != PAGE)
				err(1, "write");
			pages++;
		}
	}
	fclose(maps);
	close(map);
	close(mem);
	return pages;
}

int main(int argc, char **argv)
{
	unsigned long pages = 0;
	int out, status;
	pid_t pid;

	if (argc < 3)
		errx(2, "usage: anon FILE COMMAND [ARGUMENT...]");
	out = open(argv[1], O_WRONLY);
	if (out < 0)
		err(1, "%s", argv[1]);
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		close(out);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		execvp(argv[2], argv + 2);
		err(1, "%s", argv[2]);
	}
	if (waitpid(pid, &status, 0) < 0 ||
	    ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACEEXIT))
		err(1, "ptrace");
	while (!WIFEXITED(status) && !WIFSIGNALED(status)) {
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8))
			pages = write_pages(pid, out);
		/* the trap of execve() is not the command's, nor is the stop at the start */
		ptrace(PTRACE_CONT, pid, NULL, NULL);
		if (waitpid(pid, &status, 0) < 0)
			err(1, "waitpid");
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		errx(1, "%s failed", argv[2]);
	printf("%lu\n", pages);
	return 0;
}
