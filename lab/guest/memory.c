// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Jobs on memory that is swapped, repeatable: the same arguments give the same accesses.
 *
 * memory uniform MIB SEED ACCESSES	touch pages at random, one in four is written to
 * memory zipf MIB SEED ACCESSES	the same, Zipf-distributed with exponent 1.1
 * memory scan MIB SEED ACCESSES	from end to end, again and again
 * memory beside MIB SEED ACCESSES FILE FILE_MIB
 *					by turns a page at random, and one of FILE
 * memory apps MIB SEED ACCESSES N	N applications of MIB each, a process each, visited as a
 *					phone's user does: mostly one of the last, each visit
 *					touches most of its memory
 * memory run COMMAND...		another program
 *
 * Each page says of itself which it is and how often it was written to, and that is checked.
 * Prints "filled" when each page was written to once, and at the end the number of accesses
 * that were counted and the cycles that they took: those of the second half. Of another program
 * it is one access, and all its cycles.
 */
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "draw.h"

#define PAGE 4096UL
#define WRITES 4		/* one in so many */
#define VISIT_SHARE 4		/* a visit leaves out one page in so many */

static uint64_t state;		/* of the random numbers */
static unsigned char *memory;
static uint32_t *versions;	/* of each page */

static uint64_t rnd(void)
{
	return draw(&state);
}

/* Words in the page that are looked at: its beginning, its end, and one at random. */
static uint64_t *word(unsigned long page, unsigned int which)
{
	static const unsigned int at[] = { 0, PAGE / 8 - 1, 137 };

	return (uint64_t *)(memory + page * PAGE) + at[which];
}

/* What a page holds beside the words that are looked at: a third of it is no use to compress. */
static void fill(unsigned long page)
{
	uint64_t *words = (uint64_t *)(memory + page * PAGE);
	unsigned int i;

	for (i = 0; i < PAGE / 8; i++)
		words[i] = i < PAGE / 8 / 3 ? rnd() : page;
}

static void touch(unsigned long page)
{
	uint64_t want = (uint64_t)versions[page] << 32 | page;
	unsigned int i;

	for (i = 0; i < 3; i++)
		if (versions[page] && *word(page, i) != want)
			errx(1, "page %lu is not what was written: %llx, not %llx", page,
			     (unsigned long long)*word(page, i), (unsigned long long)want);
	if (versions[page] && rnd() % WRITES)
		return;
	if (!versions[page])
		fill(page);
	want = (uint64_t)++versions[page] << 32 | page;
	for (i = 0; i < 3; i++)
		*word(page, i) = want;
}

static unsigned long uniform(unsigned long pages, unsigned long accesses)
{
	unsigned long i;

	for (i = 0; i < accesses; i++)
		touch(rnd() % pages);
	return accesses;
}

static unsigned long zipf(unsigned long pages, unsigned long accesses)
{
	static double *sums;
	unsigned long i;

	if (!sums)
		sums = zipf_sums(pages);
	for (i = 0; i < accesses; i++)
		touch(zipf_rank(&state, sums, pages) * SPREAD % pages);
	return accesses;
}

static unsigned long scan(unsigned long pages, unsigned long accesses)
{
	unsigned long i;

	for (i = 0; i < accesses; i++)
		touch(i % pages);
	return accesses;
}

static int file;
static unsigned long file_pages;

static void open_file(const char *name, unsigned long bytes)
{
	file = open(name, O_RDONLY);
	if (file < 0)
		err(1, "%s", name);
	posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
	file_pages = bytes / PAGE;
}

static unsigned long beside(unsigned long pages, unsigned long accesses)
{
	static char page[PAGE];
	unsigned long i;

	for (i = 0; i < accesses; i += 2) {
		touch(rnd() % pages);
		if (pread(file, page, PAGE, rnd() % file_pages * PAGE) != PAGE)
			err(1, "read");
	}
	return accesses;
}

/* Applications: a process each, which waits for its turn. */

#define APPS_MAX 64

static struct app {
	int turn, done;		/* a byte for each */
} applications[APPS_MAX];
static unsigned long number_of_apps;
static unsigned long recent[APPS_MAX];	/* the last one that was used is first */

static void map_pages(unsigned long pages)
{
	memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	versions = calloc(pages, sizeof(*versions));
	if (memory == MAP_FAILED || !versions)
		err(1, "%lu pages", pages);
}

/* The first visit touches all of its memory. */
static void be_application(unsigned long pages, int turn, int done)
{
	unsigned long i;
	bool first;
	char byte;

	map_pages(pages);
	for (first = true; read(turn, &byte, 1) == 1; first = false) {
		for (i = 0; i < pages; i++)
			if (first || rnd() % VISIT_SHARE)
				touch(i);
		if (write(done, &byte, 1) != 1)
			break;
	}
	exit(1);
}

static void visit(unsigned long i)
{
	char byte = 0;

	if (write(applications[i].turn, &byte, 1) != 1 ||
	    read(applications[i].done, &byte, 1) != 1)
		errx(1, "application %lu is gone", i);
}

static void start_apps(unsigned long pages)
{
	int turn[2], done[2];
	unsigned long i;
	pid_t child;

	for (i = 0; i < number_of_apps; i++) {
		if (pipe(turn) || pipe(done))
			err(1, "pipe");
		child = fork();
		if (child < 0)
			err(1, "fork");
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(done[0]);
			state += i + 1;
			be_application(pages, turn[0], done[1]);
		}
		close(turn[0]);
		close(done[1]);
		applications[i] = (struct app){ turn[1], done[0] };
		recent[i] = i;
		visit(i);
	}
}

/* By their place in the list, as on a phone's screen of applications */
static unsigned long apps(unsigned long pages, unsigned long accesses)
{
	unsigned long done = 0, app, rank;

	while (done < accesses) {
		rank = 1 + (rnd() % number_of_apps) * (rnd() % number_of_apps) / number_of_apps;
		if (rank >= number_of_apps)
			rank = number_of_apps - 1;
		app = recent[rank];
		memmove(recent + 1, recent, rank * sizeof(*recent));
		recent[0] = app;
		visit(app);
		done += pages;
	}
	return done;
}

static const struct kind {
	const char *name;
	unsigned long (*run)(unsigned long pages, unsigned long accesses);
} kinds[] = {
	{ "uniform", uniform },
	{ "zipf", zipf },
	{ "scan", scan },
	{ "beside", beside },
	{ "apps", apps },
};

static int run_program(char **command)
{
	unsigned long long start = cycles_now();
	pid_t child = fork();
	int status;

	if (!child) {
		execvp(command[0], command);
		err(1, "%s", command[0]);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		err(1, "%s", command[0]);
	printf("1 %llu\n", cycles_now() - start);
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	unsigned long pages, accesses, page, done;
	unsigned long long start;
	unsigned int i;

	if (argc > 2 && !strcmp(argv[1], "run"))
		return run_program(argv + 2);
	if (argc < 5)
		errx(2, "usage: memory KIND MIB SEED ACCESSES [N | FILE FILE_MIB] | run COMMAND...");
	for (i = 0; strcmp(kinds[i].name, argv[1]); i++)
		if (i + 1 == sizeof(kinds) / sizeof(*kinds))
			errx(2, "unknown job %s", argv[1]);
	if (kinds[i].run == beside) {
		if (argc < 7)
			errx(2, "beside what?");
		open_file(argv[5], strtoul(argv[6], NULL, 0) << 20);
	}
	pages = (strtoul(argv[2], NULL, 0) << 20) / PAGE;
	state = strtoul(argv[3], NULL, 0);
	accesses = strtoul(argv[4], NULL, 0);
	if (kinds[i].run == apps) {
		number_of_apps = argc > 5 ? strtoul(argv[5], NULL, 0) : 0;
		if (!number_of_apps || number_of_apps > APPS_MAX)
			errx(2, "how many applications, 1 to %u?", APPS_MAX);
		start_apps(pages);
	} else {
		map_pages(pages);
		for (page = 0; page < pages; page++)
			touch(page);
	}
	puts("filled");
	fflush(stdout);
	kinds[i].run(pages, accesses / 2);
	start = cycles_now();
	done = kinds[i].run(pages, accesses / 2);
	printf("%lu %llu\n", done, cycles_now() - start);
	return 0;
}
