// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * alloc BENCH REPETITIONS PAUSE_US FILL SIZE...
 *
 * Allocate and release SIZE pages through BENCH, debugfs bench_alloc, with a
 * pause of PAUSE_US after each. Before each, read as many pages and more of the
 * file FILL ("-": none), until the area is in use again. With a FILL of "load"
 * others use it: wait until reclaim has evicted as many pages and more for them.
 * A SIZE of "rN" is a random size from 1 to N. Prints "PAGES ALLOC RELEASE OK":
 * the pages, what the kernel measured.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_MAX	(1 << 20)
#define PAGE		4096UL
#define FILL_PAGES	256UL	/* read at a time */
#define FILL_MAX	131072UL
#define FREE_MAX	8192UL	/* pages of a movable area that may be free */
#define LOAD		"load"
#define LOAD_MORE	2048UL	/* pages evicted beyond five fourths of those needed */
#define LOAD_LOOK_NS	5000000	/* from one look to the next */
#define LOAD_LOOKS	20000

/* The sum of what /proc/vmstat says of all names that begin so. */
static unsigned long vmstat(const char *name)
{
	FILE *file = fopen("/proc/vmstat", "r");
	unsigned long sum = 0;
	char line[128];

	if (!file)
		err(1, "/proc/vmstat");
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			sum += strtoul(strchr(line, ' '), NULL, 10);
	fclose(file);
	return sum;
}

/* Pages of movable areas that nothing uses; areas of other policies have none. */
static unsigned long free_cma(void)
{
	return vmstat("nr_free_cma ");
}

/* Of pages, and of what was swapped. Each page is counted once more by its kind. */
static unsigned long evicted(void)
{
	return vmstat("pgsteal_anon ") + vmstat("pgsteal_file ");
}

/* Memory that was released is not reclaimed for, before it is used. */
static void wait_for_load(unsigned long pages)
{
	unsigned long enough = evicted() + pages + pages / 4 + LOAD_MORE;
	struct timespec look = { .tv_nsec = LOAD_LOOK_NS };
	int looks;

	for (looks = 0; evicted() < enough; looks++) {
		if (looks == LOAD_LOOKS)
			errx(1, "nothing uses the area");
		nanosleep(&look, NULL);
	}
}

/*
 * A movable area that is not in use has nothing to migrate. Others would take it
 * too, but they take long, and their turn is the pause.
 */
static void fill(int fd, unsigned long pages)
{
	static char buf[FILL_PAGES * PAGE];
	static off_t at;
	unsigned long done;
	ssize_t got;

	setpriority(PRIO_PROCESS, 0, -20);
	for (done = 0; done < pages || (free_cma() > FREE_MAX && done < FILL_MAX);
	     done += FILL_PAGES) {
		got = pread(fd, buf, sizeof(buf), at);
		if (got < 0)
			err(1, "read");
		at = got < (ssize_t)sizeof(buf) ? 0 : at + got;
	}
	setpriority(PRIO_PROCESS, 0, 0);
}

static unsigned long pages_of(const char *size)
{
	static uint64_t state = 1;

	if (*size != 'r')
		return strtoul(size, NULL, 0);
	state = state * 6364136223846793005 + 1442695040888963407;
	return 1 + (state >> 33) % strtoul(size + 1, NULL, 0);
}

static void once(int fd, unsigned long pages)
{
	char text[64];
	ssize_t len;

	len = snprintf(text, sizeof(text), "%lu 1", pages);
	if (write(fd, text, len) != len)
		err(1, "bench_alloc, write");
	len = pread(fd, text, sizeof(text), 0);
	if (len <= 0)
		err(1, "bench_alloc, read");
	printf("%lu %.*s", pages, (int)len, text);
}

int main(int argc, char **argv)
{
	struct timespec pause = {};
	int fd, data = -1, repetitions, size, i, load;

	if (argc < 6)
		errx(2, "usage: alloc BENCH REPETITIONS PAUSE_US FILL SIZE...");
	/* to print is work for other CPUs: at the end */
	setvbuf(stdout, NULL, _IOFBF, OUTPUT_MAX);
	repetitions = atoi(argv[2]);
	pause.tv_nsec = atol(argv[3]) * 1000;
	load = !strcmp(argv[4], LOAD);
	if (!load && strcmp(argv[4], "-")) {
		data = open(argv[4], O_RDONLY);
		if (data < 0)
			err(1, "%s", argv[4]);
	}
	for (size = 5; size < argc; size++) {
		for (i = 0; i < repetitions; i++) {
			unsigned long pages = pages_of(argv[size]);

			if (data >= 0)
				fill(data, pages);
			if (load)
				wait_for_load(pages);
			/* a seq_file is read from its start: opened anew */
			fd = open(argv[1], O_RDWR);
			if (fd < 0)
				err(1, "%s", argv[1]);
			once(fd, pages);
			close(fd);
			nanosleep(&pause, NULL);
		}
	}
	return 0;
}
