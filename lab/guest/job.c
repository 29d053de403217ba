// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Background jobs on files, repeatable: the same arguments give the same
 * accesses.
 *
 * job fill DIR MIB SEED		make the files that the others use
 * job uniform DIR MIB SEED PAGES	read pages at random
 * job zipf DIR MIB SEED PAGES		the same, Zipf-distributed with exponent 1.1
 * job scan DIR MIB SEED PAGES		read the file from end to end, again and again
 * job pages DIR MIB SEED PAGES	the same without read-ahead
 * job mix DIR MIB SEED PAGES		random reads and writes of 4 pages, 3 to 1
 * job rndrd DIR MIB SEED PAGES		as sysbench's of that name: random reads of 4 pages,
 * job rndrw DIR MIB SEED PAGES		random reads and writes of them, 3 to 2,
 * job seqwr DIR MIB SEED PAGES		writes of them from end to end, again and again
 * job compile DIR MIB SEED PAGES [WORK]
 *					read a source and its headers, work in memory,
 *					write an object; link them now and then; with
 *					WORK, in some pages of so many MiB
 * job half DIR MIB SEED PAGES		every second page
 * job twice DIR MIB SEED PAGES		scan, each MiB of it read once more
 * job chunks DIR MIB SEED PAGES	scan, 64 KiB at a time
 * job faults DIR MIB SEED PAGES	touch pages of a mapping at random
 * job walk DIR MIB SEED PAGES		the same from end to end, again and again
 * job synced DIR MIB SEED PAGES	random reads of 4 pages and writes of one that have to be
 *					on the disk, 3 to 1
 * job patch DIR MIB SEED PAGES	write to a part of pages at random: those that are not
 *					there are read first
 * job make DIR MIB SEED		make files of 2 pages
 * job small DIR MIB SEED PAGES		read them, Zipf-distributed
 * job again DIR MIB SEED PAGES N MIB	scan, and each N-th page once more, MIB later
 * job beside DIR MIB SEED PAGES OTHER MIB
 *					by turns one page at random, and the next of
 *					OTHER, from end to end, again and again
 *
 * The file is "data" in DIR, or DIR itself if that is none.
 * PAGES is the number of pages to access, 0: until killed. Prints the number of
 * pages accessed and the cycles that it took.
 */
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "draw.h"

#define PAGE 4096UL
#define MIX_PAGES 4
#define SMALL_PAGES 2UL		/* of a small file */
#define PATCH 512UL		/* bytes */
#define CHUNK_PAGES 16
#define TWICE_PAGES 256UL	/* are read, and then once more */

/* Shape of the compile job: see compile(). */
#define SOURCE_PAGES 8UL
#define HEADERS 12
#define WORK_PAGES 512
#define LINK_EVERY 64
#define WORK_WRITES 4		/* one page in so many is written to */

struct job {
	char path[256];
	int fd;			/* of the file, */
	int dir;		/* or of the folder of small ones */
	unsigned long pages;	/* of the file */
	unsigned long limit;	/* accesses to do, 0: no limit */
	unsigned long done;
	uint64_t state;		/* of the random numbers */
	char **more;		/* arguments */
	char buf[CHUNK_PAGES * PAGE];
};

static uint64_t rnd(struct job *job)
{
	return draw(&job->state);
}

static int running(const struct job *job)
{
	return !job->limit || job->done < job->limit;
}

static void get(struct job *job, unsigned long page, unsigned long count)
{
	if (pread(job->fd, job->buf, count * PAGE, page * PAGE) !=
	    (ssize_t)(count * PAGE))
		err(1, "read of page %lu", page);
	job->done += count;
}

static void put(struct job *job, unsigned long page, unsigned long count)
{
	memset(job->buf, rnd(job), count * PAGE);
	if (pwrite(job->fd, job->buf, count * PAGE, page * PAGE) !=
	    (ssize_t)(count * PAGE))
		err(1, "write of page %lu", page);
	job->done += count;
}

static void fill(struct job *job)
{
	unsigned long page, word;

	for (page = 0; page < job->pages; page++) {
		for (word = 0; word < PAGE / 8; word += 64)
			((uint64_t *)job->buf)[word] = page;
		if (pwrite(job->fd, job->buf, PAGE, page * PAGE) != PAGE)
			err(1, "write of page %lu", page);
	}
	if (fsync(job->fd))
		err(1, "fsync");
	job->done = job->pages;
}

static void uniform(struct job *job)
{
	while (running(job))
		get(job, rnd(job) % job->pages, 1);
}

static void zipf(struct job *job)
{
	const double *sums = zipf_sums(job->pages);

	while (running(job))
		get(job, zipf_rank(&job->state, sums, job->pages) * SPREAD % job->pages, 1);
}

static void scan(struct job *job)
{
	while (running(job))
		get(job, job->done % job->pages, 1);
}

static void scan_half(struct job *job)
{
	while (running(job))
		get(job, job->done * 2 % job->pages, 1);
}

static void scan_twice(struct job *job)
{
	while (running(job))
		get(job, (job->done / (2 * TWICE_PAGES) * TWICE_PAGES + job->done % TWICE_PAGES) %
		    job->pages, 1);
}

static void again(struct job *job)
{
	unsigned long next = 0, every, lag;

	if (!job->more[0] || !job->more[1])
		errx(2, "which pages again, and when?");
	every = strtoul(job->more[0], NULL, 0);
	lag = strtoul(job->more[1], NULL, 0) << 20 >> 12;
	if (!every)
		errx(2, "each 0-th page is none");
	for (; running(job); next++) {
		get(job, next % job->pages, 1);
		if (next >= lag && (next - lag) % every == 0)
			get(job, (next - lag) % job->pages, 1);
	}
}

static void chunks(struct job *job)
{
	while (running(job))
		get(job, job->done % job->pages, CHUNK_PAGES);
}

static volatile const char *mapping(struct job *job)
{
	volatile const char *map = mmap(NULL, job->pages * PAGE, PROT_READ, MAP_SHARED, job->fd, 0);

	if (map == MAP_FAILED)
		err(1, "mmap");
	return map;
}

static void faults(struct job *job)
{
	volatile const char *map = mapping(job);

	for (; running(job); job->done++)
		(void)map[rnd(job) % job->pages * PAGE];
}

static void walk(struct job *job)
{
	volatile const char *map = mapping(job);

	for (; running(job); job->done++)
		(void)map[job->done % job->pages * PAGE];
}

static int open_data(char *path, size_t size, const char *name, int flags)
{
	struct stat status;
	int fd;

	if (stat(name, &status))
		err(1, "%s", name);
	snprintf(path, size, S_ISDIR(status.st_mode) ? "%s/data" : "%s", name);
	fd = open(path, flags, 0600);
	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

static void beside(struct job *job)
{
	unsigned long pages, next = 0;
	int fd;

	if (!job->more[0] || !job->more[1])
		errx(2, "beside what?");
	fd = open_data(job->path, sizeof(job->path), job->more[0], O_RDONLY);
	pages = strtoul(job->more[1], NULL, 0) << 20 >> 12;
	while (running(job)) {
		get(job, rnd(job) % job->pages, 1);
		if (pread(fd, job->buf, PAGE, next++ % pages * PAGE) != PAGE)
			err(1, "read of %s", job->path);
	}
}

static unsigned long random_place(struct job *job)
{
	return rnd(job) % (job->pages / MIX_PAGES) * MIX_PAGES;
}

static void mix(struct job *job)
{
	while (running(job)) {
		unsigned long page = random_place(job);

		if (rnd(job) % 4)
			get(job, page, MIX_PAGES);
		else
			put(job, page, MIX_PAGES);
	}
}

static void rndrd(struct job *job)
{
	while (running(job))
		get(job, random_place(job), MIX_PAGES);
}

static void rndrw(struct job *job)
{
	unsigned long turn;

	for (turn = 0; running(job); turn++)
		(turn % 5 % 2 ? put : get)(job, random_place(job), MIX_PAGES);
}

static void synced(struct job *job)
{
	unsigned long turn;

	for (turn = 1; running(job); turn++) {
		if (turn % 4) {
			get(job, random_place(job), MIX_PAGES);
			continue;
		}
		put(job, rnd(job) % job->pages, 1);
		if (fdatasync(job->fd))
			err(1, "fdatasync");
	}
}

static void patch(struct job *job)
{
	for (; running(job); job->done++) {
		unsigned long page = rnd(job) % job->pages;

		memset(job->buf, job->done, PATCH);
		if (pwrite(job->fd, job->buf, PATCH, page * PAGE + PATCH) != (ssize_t)PATCH)
			err(1, "write to page %lu", page);
	}
}

static void open_small(struct job *job, unsigned long number, int flags)
{
	char name[32];

	snprintf(name, sizeof(name), "small-%lu", number);
	job->fd = openat(job->dir, name, flags, 0600);
	if (job->fd < 0)
		err(1, "%s", name);
}

static void make(struct job *job)
{
	unsigned long number;

	for (number = 0; number < job->pages / SMALL_PAGES; number++) {
		open_small(job, number, O_WRONLY | O_CREAT | O_TRUNC);
		put(job, 0, SMALL_PAGES);
		close(job->fd);
	}
	sync();
}

static void small(struct job *job)
{
	unsigned long files = job->pages / SMALL_PAGES;
	const double *sums = zipf_sums(files);

	while (running(job)) {
		open_small(job, zipf_rank(&job->state, sums, files) * SPREAD % files, O_RDONLY);
		get(job, 0, SMALL_PAGES);
		close(job->fd);
	}
}

static void seqwr(struct job *job)
{
	while (running(job))
		put(job, job->done % job->pages, MIX_PAGES);
}

/* Memory that is swapped: a third of a page is no use to compress. */
static char *large_work(struct job *job, unsigned long pages)
{
	uint64_t *work = malloc(pages * PAGE);
	unsigned long i;

	if (!work)
		err(1, "work");
	for (i = 0; i < pages * PAGE / 8; i++)
		work[i] = i % (PAGE / 8) < PAGE / 8 / 3 ? rnd(job) : i * 8 / PAGE;
	return (char *)work;
}

static void use_large_work(struct job *job, volatile char *work, unsigned long pages)
{
	unsigned long i;

	for (i = 0; i < WORK_PAGES; i++) {
		volatile char *at = work + rnd(job) % pages * PAGE;

		if (rnd(job) % WORK_WRITES)
			(void)*at;
		else
			*at = i;
	}
}

/*
 * The file is cut into sources of SOURCE_PAGES: its first quarter are headers,
 * popular by Zipf's law, half are sources, visited in a shuffled order again and
 * again, the last quarter are objects, written and, at every link, read.
 */
static void compile(struct job *job)
{
	unsigned long units = job->pages / SOURCE_PAGES, headers = units / 4;
	unsigned long sources = units / 2, objects = units - headers - sources;
	unsigned long large = job->more[0] ? strtoul(job->more[0], NULL, 0) << 20 >> 12 : 0;
	const double *sums = zipf_sums(headers);
	unsigned long unit, i, object;
	char *work = large ? large_work(job, large) : malloc(WORK_PAGES * PAGE);

	if (!work)
		err(1, "work");
	for (unit = 0; running(job); unit++) {
		unsigned long source = unit * SPREAD % sources;

		object = headers + sources + source % objects;
		for (i = 0; i < SOURCE_PAGES; i++)
			get(job, (headers + source) * SOURCE_PAGES + i, 1);
		for (i = 0; i < HEADERS; i++)
			get(job, (zipf_rank(&job->state, sums, headers) * 40503 % headers) *
			    SOURCE_PAGES + rnd(job) % SOURCE_PAGES, 1);
		if (large)
			use_large_work(job, work, large);
		else
			for (i = 0; i < WORK_PAGES; i++)
				work[i * PAGE] = i;
		for (i = 0; i < SOURCE_PAGES; i += MIX_PAGES)
			put(job, object * SOURCE_PAGES + i, MIX_PAGES);
		if (unit % LINK_EVERY)
			continue;
		for (i = 0; i < LINK_EVERY && running(job); i++)
			get(job, (headers + sources + (source + i) % objects) *
			    SOURCE_PAGES, 1);
	}
}

static const struct {
	const char *name;
	void (*run)(struct job *job);
	int flags;
	int advice;
} kinds[] = {
	{ "fill", fill, O_RDWR | O_CREAT | O_TRUNC, POSIX_FADV_NORMAL },
	{ "uniform", uniform, O_RDONLY, POSIX_FADV_RANDOM },
	{ "zipf", zipf, O_RDONLY, POSIX_FADV_RANDOM },
	{ "scan", scan, O_RDONLY, POSIX_FADV_NORMAL },
	{ "pages", scan, O_RDONLY, POSIX_FADV_RANDOM },
	{ "half", scan_half, O_RDONLY, POSIX_FADV_RANDOM },
	{ "twice", scan_twice, O_RDONLY, POSIX_FADV_NORMAL },
	{ "again", again, O_RDONLY, POSIX_FADV_RANDOM },
	{ "mix", mix, O_RDWR, POSIX_FADV_RANDOM },
	{ "rndrd", rndrd, O_RDONLY, POSIX_FADV_RANDOM },
	{ "rndrw", rndrw, O_RDWR, POSIX_FADV_RANDOM },
	{ "synced", synced, O_RDWR, POSIX_FADV_RANDOM },
	{ "patch", patch, O_RDWR, POSIX_FADV_RANDOM },
	{ "make", make, O_DIRECTORY, POSIX_FADV_NORMAL },
	{ "small", small, O_DIRECTORY, POSIX_FADV_NORMAL },
	{ "seqwr", seqwr, O_RDWR, POSIX_FADV_NORMAL },
	{ "compile", compile, O_RDWR, POSIX_FADV_NORMAL },
	{ "chunks", chunks, O_RDONLY, POSIX_FADV_NORMAL },
	{ "faults", faults, O_RDONLY, POSIX_FADV_NORMAL },
	{ "walk", walk, O_RDONLY, POSIX_FADV_NORMAL },
	{ "beside", beside, O_RDONLY, POSIX_FADV_RANDOM },
};

int main(int argc, char **argv)
{
	static struct job job;
	unsigned long long start;
	unsigned int i;

	if (argc < 5)
		errx(2, "usage: job KIND DIR MIB SEED [PAGES]");
	for (i = 0; strcmp(kinds[i].name, argv[1]); i++)
		if (i + 1 == sizeof(kinds) / sizeof(*kinds))
			errx(2, "unknown job %s", argv[1]);
	job.pages = strtoul(argv[3], NULL, 0) << 20 >> 12;
	job.state = strtoul(argv[4], NULL, 0);
	job.limit = argc > 5 ? strtoul(argv[5], NULL, 0) : 0;
	job.more = argc > 5 ? argv + 6 : argv + argc;
	if (kinds[i].flags & O_DIRECTORY) {
		job.dir = open(argv[2], kinds[i].flags);
		if (job.dir < 0)
			err(1, "%s", argv[2]);
	} else {
		job.fd = open_data(job.path, sizeof(job.path), argv[2], kinds[i].flags);
		posix_fadvise(job.fd, 0, 0, kinds[i].advice);
	}
	start = cycles_now();
	kinds[i].run(&job);
	printf("%lu %llu\n", job.done, cycles_now() - start);
	return 0;
}
