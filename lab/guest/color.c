// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What coloring costs, and whether it holds.
 *
 * color map			write a map of 16 colors for all memory to the kernel
 * color touch COLORS PAGES	instructions of the first touch of PAGES pages by a task that has
 *				COLORS colors (0: none), of their unmapping, of the same once
 *				more, and with as many free pages collected before
 * color hold COLORS PAGES	touch them, and exit
 * color end COLORS		touch pages until no color has any, which are strict
 * color answer COLORS strict|spill
 *				the same: instructions of the touch that gets SIGBUS, or one more
 *				color if they are not strict
 * color swap COLORS PAGES	a task with colors and one without touch pages by turns, are swapped
 *				out together (by the cgroup v2 in which both are), and touch them
 *				again, the one without colors first: which pages of the other have
 *				its colors then
 * color hoard MIB		lock all free memory but so much in a process without colors, and
 *				print its number; it stays until it is killed
 * color key			a colored task that does nothing, until it is killed
 * color watch COLORS SECONDS COMMAND [ARGUMENT...]
 *				run COMMAND colored for at most SECONDS and count, ten times a
 *				second, the pages of all processes that share its colors, by the
 *				kind of the mapping and whether they have the colors: those that
 *				the set has then, "colors" at most
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/camc.h>

#include "clock.h"

#define PAGE		4096UL
#define BITS		4
#define PRESENT		(1ULL << 63)	/* in pagemap: Documentation/admin-guide/mm/pagemap.rst */
#define FILE_OR_SHARED	(1ULL << 61)
#define PFN		((1ULL << 55) - 1)
#define KPF_ZERO_PAGE	24		/* include/uapi/linux/kernel-page-flags.h */
#define CHUNK		4096		/* pages of a range that are looked at together */
#define MAPPINGS	2048		/* of a process */

static const char MAP[] =
	"map lab\nregion 0-10000000000\nbank 22000\nbank 44000\nbank 88000\nbank 110000\n";

/* The same, bit by bit */
static unsigned int color_of(uint64_t pfn)
{
	unsigned int color = 0;

	for (int i = 0; i < BITS; i++)
		color = color << 1 | ((pfn >> (1 + i) ^ pfn >> (5 + i)) & 1);
	return color;
}

static void write_map(void)
{
	int fd = open("/sys/kernel/mm/camc/map", O_WRONLY);

	if (fd < 0 || (write(fd, MAP, sizeof(MAP) - 1) < 0 && errno != EBUSY))
		err(1, "the map");
	close(fd);
}

static void set_colors_flags(unsigned int nr, unsigned int flags)
{
	struct camc_policy policy = {
		.flags = CAMC_AUTO | CAMC_FORK | CAMC_EXEC | flags,
		.nr_colors = nr,
		.node = CAMC_NODE_LOCAL,
	};

	if (nr && prctl(PR_CAMC, CAMC_SET, &policy, sizeof(policy), 0))
		err(1, "%u colors", nr);
}

static void set_colors(unsigned int nr)
{
	set_colors_flags(nr, 0);
}

static unsigned int fill(unsigned int pages)
{
	struct camc_policy policy = { .nr_pages = pages };

	if (prctl(PR_CAMC, CAMC_FILL, &policy, sizeof(policy), 0))
		err(1, "fill");
	return policy.nr_pages;
}

/* Pages that have come to color lists from the buddy allocator */
static unsigned long refilled(void)
{
	FILE *file = fopen("/sys/kernel/mm/camc/stats/refilled", "r");
	unsigned long pages;

	if (!file || fscanf(file, "%lu", &pages) != 1)
		err(1, "refilled");
	fclose(file);
	return pages;
}

static char *room(unsigned long pages)
{
	char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED || madvise(at, pages * PAGE, MADV_NOHUGEPAGE))
		err(1, "%lu pages", pages);
	return at;
}

static uint64_t touch(char *at, unsigned long pages)
{
	uint64_t begin = cycles_now();

	for (unsigned long i = 0; i < pages; i++)
		*(volatile char *)(at + i * PAGE) = 1;
	return cycles_now() - begin;
}

static uint64_t unmap(char *at, unsigned long pages)
{
	uint64_t begin = cycles_now();

	munmap(at, pages * PAGE);
	return cycles_now() - begin;
}

/* Who gives his colors back has the lists emptied, so that they are filled anew. */
static void touch_prefilled(unsigned int colors, unsigned long pages)
{
	char *at = room(pages);
	unsigned long before;

	if (prctl(PR_CAMC, CAMC_CLEAR, 0, 0, 0))
		err(1, "clear");
	set_colors(colors);
	before = refilled();
	printf("filled %u\n", fill(pages));
	printf("collected %lu\n", refilled() - before);
	printf("prefilled %lu\n", touch(at, pages));
}

static void touch_all(unsigned int colors, unsigned long pages)
{
	char *at = room(pages);

	set_colors(colors);
	printf("cold %lu\n", touch(at, pages));
	printf("unmap %lu\n", unmap(at, pages));
	at = room(pages);
	printf("warm %lu\n", touch(at, pages));
	unmap(at, pages);
	if (colors)
		touch_prefilled(colors, pages);
}

static void on_sigbus(int sig)
{
	(void)sig;
	_exit(0);
}

static void touch_to_the_end(unsigned int colors)
{
	unsigned long pages = sysconf(_SC_PHYS_PAGES);

	signal(SIGBUS, on_sigbus);
	set_colors_flags(colors, CAMC_STRICT);
	touch(room(pages), pages);
	errx(1, "%u colors have no end", colors);
}

static sigjmp_buf at_end;

static void on_end(int sig)
{
	siglongjmp(at_end, sig);
}

static unsigned int nr_own(void)
{
	struct camc_policy policy = { 0 };

	if (prctl(PR_CAMC, CAMC_GET, &policy, sizeof(policy), 0))
		err(1, "the colors");
	return policy.nr_colors;
}

/* Where the frame of the handler will be: there is no page for it then. */
static void touch_stack(void)
{
	char frame[65536];

	for (size_t i = 0; i < sizeof(frame); i += 1024)
		*(volatile char *)(frame + i) = 1;
}

static void answer(unsigned int colors, bool strict)
{
	static unsigned long pages, done;	/* which longjmp() leaves alone */
	static uint64_t begin, took;
	static char *at;

	pages = sysconf(_SC_PHYS_PAGES);
	at = room(pages);
	signal(SIGBUS, on_end);
	set_colors_flags(colors, strict ? CAMC_STRICT : 0);
	touch_stack();
	if (sigsetjmp(at_end, 1)) {
		took = cycles_now() - begin;
	} else {
		for (; done < pages && nr_own() == colors; done++) {
			begin = cycles_now();
			*(volatile char *)(at + done * PAGE) = 1;
			took = cycles_now() - begin;
		}
	}
	munmap(at, done / 2 * PAGE);	/* or there is none to print with */
	printf("touched %lu\nanswer %lu\nhas %u\n", done, took, nr_own());
}

static void hoard(unsigned long left)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128], byte;
	int ready[2];
	pid_t pid;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemFree: %lu kB", &pages) == 1)
			pages /= PAGE / 1024;
	left <<= 8;
	if (pages <= left || pipe(ready))
		errx(1, "%lu pages are free", pages);
	pid = fork();
	if (!pid) {
		char *at = room(pages - left);

		if (mlock(at, (pages - left) * PAGE) || write(ready[1], "", 1) != 1)
			err(1, "%lu pages", pages - left);
		close(STDOUT_FILENO);	/* or who reads its number waits for its end */
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		errx(1, "there is no memory to lock");
	printf("%d\n", pid);
}

/* ------ swap ------------------------------------------------------------ */

/* Touch all at a byte from the parent, a part of them each time until they are all there. */
static void touch_as_told(char *at, unsigned long pages, unsigned long part, int from, int to)
{
	unsigned long done = 0;
	char byte;

	while (read(from, &byte, 1) == 1) {
		if (done < pages) {
			touch(at + done * PAGE, part);
			done += part;
		} else {
			touch(at, pages);
		}
		if (write(to, "", 1) != 1)
			err(1, "pipe");
	}
}

static void print_own(const char *at, unsigned long pages, uint64_t colors)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	unsigned long i, has = 0, lacks = 0;

	for (i = 0; i < pages; i++) {
		uint64_t entry = 0;

		if (pread(pagemap, &entry, 8, ((uintptr_t)at / PAGE + i) * 8) != 8 ||
		    !(entry & PRESENT) || !(entry & PFN))
			errx(1, "page %lu is not in memory", i);
		if (colors >> color_of(entry & PFN) & 1)
			has++;
		else
			lacks++;
	}
	printf("right %lu\nwrong %lu\n", has, lacks);
	close(pagemap);
}

static uint64_t own_colors(void)
{
	struct camc_policy policy = { 0 };

	if (prctl(PR_CAMC, CAMC_GET, &policy, sizeof(policy), 0))
		err(1, "the colors");
	return policy.colors[0];
}

struct partner {
	pid_t pid;
	int to, from;
};

static struct partner partner(unsigned int colors, unsigned long pages, unsigned long part)
{
	struct partner it;
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		err(1, "pipe");
	it.pid = fork();
	if (!it.pid) {
		char *at = room(pages);

		set_colors(colors);
		close(to[1]);
		touch_as_told(at, pages, part, to[0], from[1]);
		if (colors)
			print_own(at, pages, own_colors());
		fflush(stdout);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	it.to = to[1];
	it.from = from[0];
	return it;
}

static void tell(const struct partner *it)
{
	char byte;

	if (write(it->to, "", 1) != 1 || read(it->from, &byte, 1) != 1)
		errx(1, "a task ended");
}

static void swap(unsigned int colors, unsigned long pages)
{
	const unsigned long part = 4;
	struct partner other = partner(0, pages, part), own = partner(colors, pages, part);
	int reclaim = open("/sys/fs/cgroup/job/memory.reclaim", O_WRONLY);
	char amount[32];
	int i;

	for (unsigned long done = 0; done < pages; done += part) {
		tell(&other);
		tell(&own);
	}
	snprintf(amount, sizeof(amount), "%lu", 2 * pages * PAGE);
	for (i = 0; i < 4; i++)		/* it gives up when it got a part */
		if (write(reclaim, amount, strlen(amount)) < 0 && errno != EAGAIN)
			err(1, "reclaim");
	tell(&other);
	tell(&own);
	close(own.to);
	waitpid(own.pid, NULL, 0);
	close(other.to);	/* of which the other one had a copy */
	waitpid(other.pid, NULL, 0);
}

/* ------ watch ----------------------------------------------------------- */

/*
 * Data: pages of a file that were written to, so that they are the process's own. Text: other pages
 * of programs and libraries, which are files that have a mapping with code.
 */
enum kind { STACK, HEAP, ANONYMOUS, DATA, TEXT, FILES, KINDS };

static const char *const kinds[KINDS] = { "stack", "heap", "anonymous", "data", "text", "file" };
static unsigned long right[KINDS], wrong[KINDS];
static int most_colors;
static int kpageflags;

struct mapping {
	unsigned long start, end, inode;
	char mode[5], device[16], name[32];
};

static enum kind kind_of(uint64_t entry, const struct mapping *it, bool has_code)
{
	if (entry & FILE_OR_SHARED)
		return has_code && it->mode[3] != 's' ? TEXT : FILES;
	if (!strcmp(it->name, "[stack]"))
		return STACK;
	if (!strcmp(it->name, "[heap]"))
		return HEAP;
	return *it->name == '/' ? DATA : ANONYMOUS;
}

/* Those of colors that the set does not have, or did not when it was looked at */
static unsigned long pending[KINDS][1 << BITS];

static void count(enum kind kind, uint64_t entry, uint64_t colors)
{
	unsigned int color = color_of(entry & PFN);
	uint64_t flags = 0;

	if (!(entry & PRESENT) || !(entry & PFN))
		return;
	if (colors >> color & 1) {
		right[kind]++;
		return;
	}
	if (pread(kpageflags, &flags, 8, (entry & PFN) * 8) != 8)
		err(1, "kpageflags");
	if (!(flags >> KPF_ZERO_PAGE & 1))
		pending[kind][color]++;
}

static void judge(uint64_t colors)
{
	for (int kind = 0; kind < KINDS; kind++)
		for (int color = 0; color < 1 << BITS; color++)
			*(colors >> color & 1 ? &right[kind] : &wrong[kind]) += pending[kind][color];
	memset(pending, 0, sizeof(pending));
}

static int read_mappings(pid_t pid, struct mapping *its)
{
	char path[64], line[512];
	FILE *maps;
	int nr = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	while (maps && fgets(line, sizeof(line), maps)) {
		struct mapping *it = &its[nr];

		if (nr == MAPPINGS)
			errx(1, "process %d has more than %d mappings", pid, MAPPINGS);
		*it->name = 0;
		if (sscanf(line, "%lx-%lx %4s %*s %15s %lu %31[^\n]", &it->start, &it->end,
			   it->mode, it->device, &it->inode, it->name) >= 5 &&
		    strncmp(it->name, "[v", 2))
			nr++;
	}
	if (maps)
		fclose(maps);
	return nr;
}

static bool has_code(const struct mapping *its, int nr, const struct mapping *it)
{
	for (int i = 0; it->inode && i < nr; i++)
		if (its[i].mode[2] == 'x' && its[i].inode == it->inode &&
		    !strcmp(its[i].device, it->device))
			return true;
	return false;
}

static void look_at(pid_t pid, uint64_t colors)
{
	static struct mapping its[MAPPINGS];
	static uint64_t entries[CHUNK];
	int nr = read_mappings(pid, its), pagemap;
	unsigned long start, end, n;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	pagemap = open(path, O_RDONLY);
	for (struct mapping *it = its; pagemap >= 0 && it < its + nr; it++) {
		bool code = has_code(its, nr, it);

		for (start = it->start / PAGE, end = it->end / PAGE; start < end; start += n) {
			ssize_t got;

			n = end - start < CHUNK ? end - start : CHUNK;
			got = pread(pagemap, entries, n * 8, start * 8);
			for (ssize_t i = 0; i < got / 8; i++)
				count(kind_of(entries[i], it, code), entries[i], colors);
		}
	}
	if (pagemap >= 0)
		close(pagemap);
}

/* The colors of a set: it may have got more of them. */
static uint64_t colors_of(const char *text)
{
	unsigned int first, last;
	uint64_t colors = 0;
	int used;

	while (sscanf(text, "%u%n", &first, &used) == 1) {
		text += used;
		last = first;
		if (*text == '-' && sscanf(text + 1, "%u%n", &last, &used) == 1)
			text += used + 1;
		for (; first <= last; first++)
			colors |= 1ULL << first;
		if (*text++ != ',')
			break;
	}
	return colors;
}

/* What /proc/camc says of a set; its tasks are looked at, if that is asked for. */
static uint64_t read_set(unsigned int set, bool tasks)
{
	char line[512], list[256], comm[32];
	FILE *file = fopen("/proc/camc", "r");
	unsigned int id, tgid, pid;
	uint64_t colors = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "set %u %*s %255s", &id, list) == 2 && id == set)
			colors = colors_of(list);
		/* this program has pages from before it had colors, and who is about to be another */
		if (tasks && sscanf(line, "task %u %u %u %*u %31s", &tgid, &pid, &id, comm) == 4 &&
		    id == set && tgid == pid && strncmp(comm, "color", 5))
			look_at(tgid, colors);
	}
	if (file)
		fclose(file);
	if (__builtin_popcountll(colors) > most_colors)
		most_colors = __builtin_popcountll(colors);
	return colors;
}

/*
 * All processes that have the set that this one had when it ran the command. It may get more colors
 * meanwhile, and pages of them; it loses none.
 */
static void look(unsigned int set)
{
	read_set(set, true);
	judge(read_set(set, false));
}

static unsigned int own_set(void)
{
	unsigned int pid, id, found = 0;
	FILE *file = fopen("/proc/camc", "r");
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "task %*u %u %u", &pid, &id) == 2 && pid == (unsigned int)getpid())
			found = id;
	if (file)
		fclose(file);
	return found;
}

static int watch(unsigned int colors, int seconds, char **command)
{
	struct timespec nap = { .tv_nsec = 100000000 };
	time_t end = time(NULL) + seconds;
	int status = 0, looks = 0;
	unsigned int set;
	pid_t pid;

	kpageflags = open("/proc/kpageflags", O_RDONLY);
	if (kpageflags < 0)
		err(1, "kpageflags");
	set_colors(colors);
	set = own_set();
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		execvp(*command, command);
		err(1, "%s", *command);
	}
	/* the one who looks is no part of it, but keeps the set */
	while (!waitpid(pid, &status, WNOHANG) && time(NULL) < end) {
		look(set);
		looks++;
		nanosleep(&nap, NULL);
	}
	look(set);
	kill(-pid, SIGKILL);
	for (int kind = 0; kind < KINDS; kind++)
		printf("%s_right %lu\n%s_wrong %lu\n", kinds[kind], right[kind], kinds[kind],
		       wrong[kind]);
	printf("colors %d\nlooks %d\nstatus %d\n", most_colors, looks, status);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "map")) {
		write_map();
	} else if (!strcmp(what, "touch") && argc == 4) {
		touch_all(atoi(argv[2]), atol(argv[3]));
	} else if (!strcmp(what, "hold") && argc == 4) {
		set_colors(atoi(argv[2]));
		touch(room(atol(argv[3])), atol(argv[3]));
	} else if (!strcmp(what, "end") && argc == 3) {
		touch_to_the_end(atoi(argv[2]));
	} else if (!strcmp(what, "swap") && argc == 4) {
		swap(atoi(argv[2]), atol(argv[3]));
	} else if (!strcmp(what, "answer") && argc == 4) {
		answer(atoi(argv[2]), !strcmp(argv[3], "strict"));
	} else if (!strcmp(what, "hoard") && argc == 3) {
		hoard(atol(argv[2]));
	} else if (!strcmp(what, "key")) {
		set_colors(1);
		pause();
	} else if (!strcmp(what, "watch") && argc > 4) {
		return watch(atoi(argv[2]), atoi(argv[3]), argv + 4);
	} else {
		errx(2, "usage: see lab/guest/color.c");
	}
	return 0;
}
