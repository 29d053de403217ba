// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pages TASK...
 *
 * Allocate memory as several tasks would, and print which pages each was given:
 *
 *	NUMBER VIRTUAL PHYSICAL COUNT	the task from 0 on, page numbers, hexadecimal, of the first
 *					of so many pages that follow each other
 *
 * A TASK is CPU:PAGES:POLICY[:POLICY], run on that CPU, with as many pages of 4 KiB. POLICY is
 *
 * local			the CPU's node, the default of the buddy allocator
 * bind=NODE			no other node than this
 * interleave=NODE[,NODE...]	of these nodes by turns
 * colors=COLOR[,COLOR...]	these colors and no others, which tasks may share (CAMC, prctl)
 * auto=COUNT			so many colors, which the kernel chooses on the CPU's node
 *
 * Tasks are processes that touch their pages one task after the other; all keep them to the end.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE		4096UL
#define PRESENT		(1ULL << 63)	/* in pagemap: Documentation/admin-guide/mm/pagemap.rst */
#define PFN		((1ULL << 55) - 1)
#define MAX_TASKS	64

/* <linux/mempolicy.h> */
#define MPOL_BIND	2
#define MPOL_INTERLEAVE	3
#define MPOL_LOCAL	4

/* <linux/camc.h>, which the host's headers do not have */
#define PR_CAMC		0x43414d43
#define CAMC_SET	1
#define CAMC_STRICT	(1 << 0)
#define CAMC_SHARE	(1 << 3)
#define CAMC_AUTO	(1 << 4)
#define CAMC_MAX_COLORS	1024

struct camc_policy {
	uint32_t flags, nr_colors;
	int32_t node;
	uint32_t nr_pages;
	uint64_t colors[CAMC_MAX_COLORS / 64];
};

static void set_bits(const char *list, uint64_t *words, unsigned long limit)
{
	char *end;

	for (;; list = end + 1) {
		unsigned long number = strtoul(list, &end, 10);

		if (end == list || number >= limit || (*end && *end != ','))
			errx(2, "%s is no list of numbers below %lu", list, limit);
		words[number / 64] |= 1ULL << number % 64;
		if (!*end)
			return;
	}
}

static void set_nodes(int mode, const char *list)
{
	uint64_t nodes = 0;

	if (list)
		set_bits(list, &nodes, 64);
	if (syscall(SYS_set_mempolicy, mode, list ? &nodes : NULL, list ? 65UL : 0UL))
		err(1, "set_mempolicy");
}

static void set_colors(const struct camc_policy *camc, const char *policy)
{
	if (prctl(PR_CAMC, CAMC_SET, camc, sizeof(*camc), 0))
		err(1, "the colors %s", policy);
}

static void set_policy(const char *policy)
{
	if (!strcmp(policy, "local")) {
		set_nodes(MPOL_LOCAL, NULL);
	} else if (!strncmp(policy, "bind=", 5)) {
		set_nodes(MPOL_BIND, policy + 5);
	} else if (!strncmp(policy, "interleave=", 11)) {
		set_nodes(MPOL_INTERLEAVE, policy + 11);
	} else if (!strncmp(policy, "colors=", 7)) {
		struct camc_policy camc = { .flags = CAMC_STRICT | CAMC_SHARE, .node = -1 };

		set_bits(policy + 7, camc.colors, CAMC_MAX_COLORS);
		set_colors(&camc, policy + 7);
	} else if (!strncmp(policy, "auto=", 5)) {
		struct camc_policy camc = {
			.flags = CAMC_STRICT | CAMC_AUTO,
			.nr_colors = atoi(policy + 5),
			.node = -1,
		};

		set_colors(&camc, policy + 5);
	} else {
		errx(2, "unknown policy %s", policy);
	}
}

/* One line for pages that follow each other in both memories. */
static void print_pages(int number, const char *memory, unsigned long pages)
{
	uintptr_t first = (uintptr_t)memory / PAGE;
	int map = open("/proc/self/pagemap", O_RDONLY);
	unsigned long i, count = 0, begin = 0;
	uint64_t *entries = calloc(pages, sizeof(*entries));
	ssize_t size = pages * sizeof(*entries);

	if (map < 0 || !entries || pread(map, entries, size, first * sizeof(*entries)) != size)
		err(1, "pagemap");
	for (i = 0; i < pages; i++) {
		if (!(entries[i] & PRESENT) || !(entries[i] & PFN))
			errx(1, "page %lu of task %d is not in memory, or you are not root", i,
			     number);
		count++;
		if (i + 1 < pages && (entries[i + 1] & PFN) == (entries[i] & PFN) + 1)
			continue;
		printf("%d %lx %llx %lu\n", number, first + begin,
		       (unsigned long long)(entries[begin] & PFN), count);
		begin = i + 1;
		count = 0;
	}
	free(entries);
	close(map);
}

static void run(int number, const char *spec)
{
	char policies[4096], *policy;
	unsigned long pages, i;
	cpu_set_t cpus;
	char *memory;
	int cpu;

	if (sscanf(spec, "%d:%lu:%4095s", &cpu, &pages, policies) != 3 || cpu < 0 || !pages)
		errx(2, "%s is not CPU:PAGES:POLICY", spec);
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		err(1, "CPU %d", cpu);
	for (policy = strtok(policies, ":"); policy; policy = strtok(NULL, ":"))
		set_policy(policy);
	memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (memory == MAP_FAILED || madvise(memory, pages * PAGE, MADV_NOHUGEPAGE))
		err(1, "%lu pages", pages);
	for (i = 0; i < pages; i++)
		memory[i * PAGE] = 1;
	print_pages(number, memory, pages);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	pid_t tasks[MAX_TASKS];
	bool failed = false;
	int ready[2], i;
	char byte;

	if (argc < 2 || argc > MAX_TASKS)
		errx(2, "usage: pages CPU:PAGES:POLICY...");
	for (i = 1; i < argc && !failed; i++) {
		if (pipe(ready))
			err(1, "pipe");
		tasks[i] = fork();
		if (tasks[i] < 0)
			err(1, "fork");
		if (!tasks[i]) {
			run(i - 1, argv[i]);
			if (write(ready[1], "", 1) != 1)
				err(1, "pipe");
			for (;;)
				pause();
		}
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 1)
			failed = true;	/* it has said why */
		close(ready[0]);
	}
	while (--i)
		kill(tasks[i], SIGKILL);
	return failed;
}
