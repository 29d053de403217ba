// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory groups that read more small files than they may remember, and what that leaves in each.
 *
 *	gcma_groups [-g groups] [-m limit in KiB] [-p limit of all in KiB] [-n files of a group]
 *		[-f pages of a file]
 *
 * The inode of a file whose pages are all evicted stays as long as its mapping has a node with
 * shadow entries; how many of those a group may have, the kernel decides by the group's size. The
 * figures are printed for a comparison with another policy:
 *
 *	figures: killed=<groups> kernel=<bytes> nodes_reclaimed=<nodes>
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../cma/cma_util.h"

#define MAX_PAGES_OF_FILE	16
#define ROUNDS		2

static unsigned int groups = 1, files = 11000;
static unsigned int pages_of_file = 2; /* one page would need no node */
static unsigned long limit = KIB(12288); /* 0: none */
static unsigned long limit_of_all; /* 0: none */
static struct volume volume;

static int file_open(unsigned int group, unsigned int i, int flags)
{
	char name[32];

	snprintf(name, sizeof(name), "%u/%u", group, i);
	return MUST(volume_file(&volume, name, flags));
}

/* Holes: their pages are like any other, and the disk has room for them. */
static void files_create(unsigned int group)
{
	char dir[64];

	snprintf(dir, sizeof(dir), "%s/%u", volume.dir, group);
	MUST(mkdir(dir, 0700));
	for (unsigned int i = 0; i < files; i++) {
		int fd = file_open(group, i, O_RDWR | O_CREAT);

		MUST(ftruncate(fd, pages_of_file * page_size));
		close(fd);
	}
}

static char *group_path(unsigned int group, const char *file)
{
	static char path[128];

	snprintf(path, sizeof(path), CGROUP_ROOT "/gcma-groups/%u/%s", group, file);
	return path;
}

static void set_limits(const char *group, unsigned long bytes)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/memory.max", group);
	if (bytes)
		MUST(-!!write_file(path, "%lu", bytes));
	/* Or it lives on swap. */
	snprintf(path, sizeof(path), "%s/memory.swap.max", group);
	write_file(path, "0");
}

static void parent_create(void)
{
	MUST(mkdir(CGROUP_ROOT "/gcma-groups", 0700));
	MUST(-!!write_file(CGROUP_ROOT "/gcma-groups/cgroup.subtree_control", "+memory"));
	set_limits(CGROUP_ROOT "/gcma-groups", limit_of_all);
}

static void group_create(unsigned int group)
{
	MUST(mkdir(group_path(group, ""), 0700));
	set_limits(group_path(group, ""), limit);
}

static unsigned int reader_group;

static void read_files(void)
{
	static char buf[MAX_PAGES_OF_FILE * 4096];

	MUST(-!!write_file(group_path(reader_group, "cgroup.procs"), "%d", getpid()));
	for (int round = 0; round < ROUNDS; round++) {
		for (unsigned int i = 0; i < files; i++) {
			int fd = file_open(reader_group, i, O_RDONLY);

			pread_all(fd, buf, pages_of_file * page_size, 0);
			close(fd);
		}
	}
}

/* A number of memory.stat or memory.events */
static unsigned long group_number(unsigned int group, const char *file, const char *key)
{
	unsigned long number;
	char name[64];
	FILE *stream = fopen(group_path(group, file), "re");

	while (stream && fscanf(stream, "%63s %lu", name, &number) == 2) {
		if (!strcmp(name, key)) {
			fclose(stream);
			return number;
		}
	}
	fail("%s: no %s", group_path(group, file), key);
}

static void groups_live(void)
{
	unsigned long killed = 0, kernel = 0, nodes = 0;

	need_volume(&volume);
	for (unsigned int group = 0; group < groups; group++)
		files_create(group);
	/* Whoever reads them next has their inodes charged. */
	volume_umount(&volume);
	MUST(volume_mount(&volume) ? 0 : -1);
	parent_create();
	for (reader_group = 0; reader_group < groups; reader_group++) {
		int status;

		group_create(reader_group);
		MUST(waitpid(background(read_files), &status, 0));
		if (WIFEXITED(status) && WEXITSTATUS(status))
			fail("the reader of group %u gave up", reader_group);
	}
	/*
	 * As if others needed the memory: what is left is what it clings to. Reclaim goes by
	 * statistics, whose small changes are added up every other second.
	 */
	for (unsigned int i = 0; i < 2 * groups; i++) {
		if (i % groups == 0)
			sleep(3);
		write_file(group_path(i % groups, "memory.reclaim"), "%lu", limit ?: KIB(12288));
	}
	sleep(3);
	for (unsigned int group = 0; group < groups; group++) {
		killed += group_number(group, "memory.events", "oom_kill");
		kernel += group_number(group, "memory.stat", "kernel");
		nodes += group_number(group, "memory.stat", "workingset_nodereclaim");
	}
	diag("figures: killed=%lu kernel=%lu nodes_reclaimed=%lu", killed, kernel, nodes);
	if (killed)
		fail("of %u groups %lu were killed", groups, killed);
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "f:g:m:n:p:")) != -1) {
		if (c == 'g')
			groups = strtoul(optarg, NULL, 0);
		else if (c == 'm')
			limit = KIB(strtoul(optarg, NULL, 0));
		else if (c == 'n')
			files = strtoul(optarg, NULL, 0);
		else if (c == 'f')
			pages_of_file = strtoul(optarg, NULL, 0) % (MAX_PAGES_OF_FILE + 1);
		else if (c == 'p')
			limit_of_all = KIB(strtoul(optarg, NULL, 0));
		else
			exit(EXIT_FAILURE);
	}
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	start(1);
	volume_open(&volume, &volume_kinds[0]);
	run(groups_live, NEED_STORES, "groups that read many small files live");
	volume_umount(&volume);
	for (unsigned int group = 0; group < groups; group++)
		rmdir(group_path(group, ""));
	rmdir(CGROUP_ROOT "/gcma-groups");
	volume_close(&volume);
	return finish();
}
