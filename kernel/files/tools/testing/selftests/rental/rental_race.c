// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random steps of several threads, each with a file of its own and a model of it, while a primary
 * takes and gives random ranges, memory is scarce, and the scheme changes.
 *
 *	rental_race [-s seconds] [-S seed] [-t kind]
 *
 * A thread also looks into the files of the others. It does not know what it is to find there, but
 * whose it is: every byte is of that file and that offset, or zero. A primary, who allocates or is
 * a driver that has its place, finds what it has written to its frames, and nothing fails for which
 * there is a free run: nobody holds pages for long. That is not so under scheme "noclean", where
 * dirty pages have to leave first: there it is counted. So it is where allocations fail, those of
 * reads, writes and the primary.
 *
 * Who looks at a page holds it for a moment, and who writes to it then may do so in the area. That
 * is to be seldom, and where allocations fail it may be so for want of memory; there is no other
 * reason.
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rental_util.h"

#define THREADS		3
#define FILE_MAX	KIB(512)
#define OP_MAX		KIB(64)
#define BUFFERS		4
#define ALIGNMENT	255	/* pages that the alignment of a buffer may cost */
#define FREE_KIB	(32 << 10)
#define CACHE_BYTES	MIB(64)	/* read again and again: more than is free */
#define WORD		8	/* bytes that a stamp makes of one piece */
#define LATE		60000000000ull	/* ns, until a primary has something on a busy machine */

static struct {
	unsigned int seconds;
	u64 seed;
	const char *kind;
} options;

static struct volume volume;
static bool unclean;		/* schemes of this test: all, or those that keep the area clean */
static bool faults;		/* allocations of this test fail */
static const char * const schemes[] = { "noclean", "clean", "lazy", "adaptive" };

static struct {
	unsigned long allocations, pages, failures;
} *primary;			/* shared with its process */

static struct owner {
	unsigned int id;
	int fd;
	u64 rnd;
	off_t size;
	unsigned int version;
	char *model, *got;	/* beyond size the model is zero */
	unsigned long steps;
	char what[80];		/* the step */
} owners[THREADS];

static atomic_bool ended;

static void check(struct owner *o, off_t off, const char *got, size_t len)
{
	if (differs(o->what, off, got, o->model + off, len))
		fail("file %u, step %lu, seed %llu", o->id, o->steps,
		     (unsigned long long)options.seed);
}

static void transfer(struct owner *o, bool write, char *at, size_t len, off_t off)
{
	if (faults) {
		if (transfer_failing(o->fd, write, at, len, off) != (ssize_t)len)
			fail("%s: %s", o->what, strerror(errno));
	} else if (write) {
		pwrite_all(o->fd, at, len, off);
	} else {
		pread_all(o->fd, at, len, off);
	}
}

/* Steps. Ranges are of whole words, so that others may read while words change. */

static off_t random_offset(struct owner *o, off_t end)
{
	return random_below(&o->rnd, end / WORD) * WORD;
}

static size_t random_length(struct owner *o, off_t off, off_t end)
{
	return (1 + random_below(&o->rnd, MIN((off_t)OP_MAX, end - off) / WORD)) * WORD;
}

static void step_read(struct owner *o, off_t off, size_t len)
{
	len = MIN((off_t)len, MAX(o->size - off, 0));
	if (!len)
		return;
	transfer(o, false, o->got, len, off);
	check(o, off, o->got, len);
}

static void step_read_all(struct owner *o, off_t off, size_t len)
{
	(void)off;
	(void)len;
	transfer(o, false, o->got, o->size, 0);
	check(o, 0, o->got, o->size);
}

static void stamp_next(struct owner *o, off_t off, size_t len)
{
	stamp(o->model + off, off, len, o->id, ++o->version);
	o->size = MAX(o->size, off + (off_t)len);
}

static void step_write(struct owner *o, off_t off, size_t len)
{
	stamp_next(o, off, len);
	transfer(o, true, o->model + off, len, off);
}

static char *map_range(struct owner *o, off_t *off, size_t *len, int prot)
{
	char *map;

	*len += *off % page_size;
	*off -= *off % page_size;
	map = mmap(NULL, *len, prot, MAP_SHARED, o->fd, *off);
	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	return map;
}

static void step_map_read(struct owner *o, off_t off, size_t len)
{
	char *map;

	len = MIN((off_t)len, MAX(o->size - off, 0));
	if (!len)
		return;
	map = map_range(o, &off, &len, PROT_READ);
	check(o, off, map, pages_in(len) * page_size);
	munmap(map, len);
}

static void step_map_write(struct owner *o, off_t off, size_t len)
{
	off_t from = off;
	size_t written = len;
	char *map;

	if (off + (off_t)len > o->size)
		MUST(ftruncate(o->fd, off + len));
	stamp_next(o, off, len);
	map = map_range(o, &off, &len, PROT_READ | PROT_WRITE);
	if (random_below(&o->rnd, 2))
		check(o, off, map, from - off);
	memcpy(map + (from - off), o->model + from, written);
	if (!random_below(&o->rnd, 4))
		MUST(msync(map, len, MS_SYNC));
	munmap(map, len);
}

static void step_truncate(struct owner *o, off_t off, size_t len)
{
	(void)len;
	MUST(ftruncate(o->fd, off));
	if (off < o->size)
		memset(o->model + off, 0, o->size - off);
	o->size = off;
}

static void step_punch(struct owner *o, off_t off, size_t len)
{
	MUST(fallocate(o->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len));
	memset(o->model + off, 0, len);
}

static void step_sync(struct owner *o, off_t off, size_t len)
{
	(void)off;
	(void)len;
	MUST(fsync(o->fd));
}

/* What is clean goes, and is lent when it is read again. */
static void step_drop(struct owner *o, off_t off, size_t len)
{
	(void)off;
	(void)len;
	posix_fadvise(o->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void step_advise(struct owner *o, off_t off, size_t len)
{
	static const int advice[] = {
		POSIX_FADV_NORMAL, POSIX_FADV_RANDOM, POSIX_FADV_SEQUENTIAL, POSIX_FADV_WILLNEED,
	};

	posix_fadvise(o->fd, off, len, advice[random_below(&o->rnd, ARRAY_SIZE(advice))]);
}

/* Zero, or the byte that belongs there: the version is not known. */
static bool belongs(const char *got, off_t off, unsigned int id)
{
	char want[WORD];

	stamp(want, off, WORD, id, 0);
	for (unsigned int i = 0; i < WORD; i++)
		if (i != 4 && i != 5 && got[i] && got[i] != want[i])
			return false;
	return true;
}

static void step_look(struct owner *o, off_t off, size_t len)
{
	const struct owner *other = &owners[random_below(&o->rnd, THREADS)];
	ssize_t part = MUST(pread(other->fd, o->got, len, off));

	for (ssize_t at = 0; at + WORD <= part; at += WORD) {
		u64 word;

		if (belongs(o->got + at, off + at, other->id))
			continue;
		memcpy(&word, o->got + at, sizeof(word));
		fail("file %u, offset 0x%llx: 0x%016llx does not belong there, seed %llu",
		     other->id, (unsigned long long)(off + at), (unsigned long long)word,
		     (unsigned long long)options.seed);
	}
}

static const struct step {
	const char *name;
	void (*fn)(struct owner *o, off_t off, size_t len);
	unsigned int weight;
} steps[] = {
	{ "read", step_read, 10 },
	{ "read of all", step_read_all, 5 },
	{ "write", step_write, 8 },
	{ "mapped read", step_map_read, 8 },
	{ "mapped write", step_map_write, 8 },
	{ "truncate", step_truncate, 2 },
	{ "punch hole", step_punch, 2 },
	{ "sync", step_sync, 2 },
	{ "drop", step_drop, 3 },
	{ "advise", step_advise, 2 },
	{ "look", step_look, 8 },
};

static const struct step *choose(u64 *rnd)
{
	unsigned int total = 0, at;
	const struct step *step = steps;

	for (unsigned int i = 0; i < ARRAY_SIZE(steps); i++)
		total += steps[i].weight;
	for (at = random_below(rnd, total); at >= step->weight; step++)
		at -= step->weight;
	return step;
}

static void *work(void *arg)
{
	struct owner *o = arg;

	for (; !atomic_load(&ended); o->steps++) {
		const struct step *step = choose(&o->rnd);
		off_t off = random_offset(o, FILE_MAX);
		size_t len = random_length(o, off, FILE_MAX);

		snprintf(o->what, sizeof(o->what), "%s 0x%llx + 0x%zx, size 0x%llx", step->name,
			 (unsigned long long)off, len, (unsigned long long)o->size);
		step->fn(o, off, len);
	}
	snprintf(o->what, sizeof(o->what), "the end");
	step_read_all(o, 0, 0);
	return NULL;
}

/* The primary */

struct buffer {
	int fd;
	bool drivers;		/* or allocated */
	size_t pages;
	unsigned long *map, seed;
};

static unsigned long *word_of(const struct buffer *b, size_t page)
{
	return b->map + page * (page_size / sizeof(long));
}

/* Of a range in which somebody else has something a driver gets nothing. */
static void buffer_take(struct buffer *b, u64 *rnd, bool all_free, unsigned long seed)
{
	unsigned long longest = b->drivers ? area.pages : most(), refused;

	if (!all_free && !b->drivers)
		longest -= MIN(longest, ALIGNMENT);
	if (!longest)
		return;
	b->pages = 1 + random_below(rnd, MAX(longest >> random_below(rnd, 6), 1ul));
	b->seed = seed;
	refused = count_of("alloc_pages_fail");
	if (b->drivers) {
		b->fd = driver_open(random_below(rnd, area.pages - b->pages + 1), b->pages);
		if (b->fd < 0 && errno == EBUSY && !all_free)
			return;
	} else {
		if (faults)
			fail_allocations(true);
		b->fd = take(b->pages);
		if (faults)
			fail_allocations(false);
		/* there was no memory for the heap's own table */
		if (b->fd < 0 && count_of("alloc_pages_fail") == refused)
			return;
	}
	primary->allocations++;
	if (b->fd < 0) {
		primary->failures++;
		return;
	}
	primary->pages += b->pages;
	b->map = mmap(NULL, b->pages * page_size, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	if (b->map == MAP_FAILED)
		fail("mmap of a buffer: %s", strerror(errno));
	for (size_t page = 0; page < b->pages; page++)
		*word_of(b, page) = seed + page;
}

static void buffer_give(struct buffer *b)
{
	for (size_t page = 0; page < b->pages; page++)
		if (*word_of(b, page) != b->seed + page)
			fail("page %zu of a primary's buffer has 0x%lx instead of 0x%lx", page,
			     *word_of(b, page), b->seed + page);
	munmap(b->map, b->pages * page_size);
	close(b->fd);
	b->fd = -1;
}

static void take_and_give(void)
{
	struct buffer buffers[BUFFERS];
	unsigned int held = 0;
	u64 rnd = options.seed;

	if (faults && !prepare_faults())
		fail("no allocation can be made to fail");
	for (unsigned int i = 0; i < BUFFERS; i++)
		buffers[i] = (struct buffer){ .fd = -1, .drivers = !i };
	for (unsigned long seed = 1;; seed++) {
		struct buffer *b = &buffers[random_below(&rnd, BUFFERS)];

		if (b->fd >= 0) {
			buffer_give(b);
			held--;
		} else {
			buffer_take(b, &rnd, !held, seed << 32);
			held += b->fd >= 0;
		}
		usleep(random_below(&rnd, 20000));
	}
}

/* Holes: their pages are like any other. */
static void fill_cache(void)
{
	int fd = MUST(volume_file(&volume, "sparse", O_RDWR | O_CREAT));
	char *buf = page_buffer(MIB(1));

	MUST(ftruncate(fd, CACHE_BYTES));
	for (;;) {
		for (off_t off = 0; off < (off_t)CACHE_BYTES; off += MIB(1)) {
			pread_all(fd, buf, MIB(1), off);
			usleep(1000);
		}
	}
}

static bool got_nothing(void)
{
	return primary->allocations == primary->failures;
}

static void race(void)
{
	unsigned int least = unclean ? 0 : 1;
	unsigned long steps_done = 0;
	struct writes before;
	u64 rnd = options.seed, end;
	pthread_t threads[THREADS];
	pid_t hogging, filling, taking;

	if (faults && !prepare_faults())
		lack("faults",
		     "this kernel injects no faults (CONFIG_FAILSLAB, CONFIG_FAIL_PAGE_ALLOC)");
	need_volume(&volume);
	begin("lazy");
	close(take_all());
	before = writes_so_far();
	memset(primary, 0, sizeof(*primary));
	for (unsigned int i = 0; i < THREADS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "owner%u", i);
		owners[i] = (struct owner){
			.id = i + 1,
			.fd = MUST(volume_file(&volume, name, O_RDWR | O_CREAT | O_TRUNC)),
			.rnd = options.seed * THREADS + i,
			.model = page_buffer(FILE_MAX),
			.got = page_buffer(FILE_MAX),
		};
	}
	hogging = hog(FREE_KIB);
	while (memory_kib("MemFree:") > 2 * FREE_KIB)
		usleep(10000);
	filling = background(fill_cache);
	taking = background(take_and_give);
	for (unsigned int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, &owners[i]))
			fail("no thread");
	end = now_ns() + options.seconds * 1000000000ull;
	while (now_ns() < end || (got_nothing() && now_ns() < end + LATE)) {
		set_scheme(schemes[least + random_below(&rnd, ARRAY_SIZE(schemes) - least)]);
		usleep(random_below(&rnd, 200000));
	}
	stop(taking);
	atomic_store(&ended, true);
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		steps_done += owners[i].steps;
	}
	stop(filling);
	stop(hogging);
	set_scheme("lazy");
	wait_until_clean();
	close(take_all());
	for (unsigned int i = 0; i < THREADS; i++) {
		forget(owners[i].fd);
		snprintf(owners[i].what, sizeof(owners[i].what), "from the disk");
		step_read_all(&owners[i], 0, 0);
	}
	diag("seed %llu: %lu steps; %lu allocations of %lu pages, %lu failed",
	     (unsigned long long)options.seed, steps_done, primary->allocations, primary->pages,
	     primary->failures);
	diag("in all %lu lent, %lu taken over, %lu discarded, %lu moved, %lu kept",
	     count_of("lends"), count_of("taken_over"), count_of("discarded"),
	     count_of("moved_out"), count_of("activated"));
	if (got_nothing())
		fail("a primary got nothing");
	/* What is allowed under one scheme is seen under the next. */
	if (!unclean)
		expect_seldom_held(&volume, &before, faults);
	/* for want of memory */
	if (primary->failures && !unclean && !faults)
		fail("%lu of %lu allocations failed", primary->failures, primary->allocations);
}

static void parse(int argc, char **argv)
{
	int c;

	options.seconds = soaking() ? 600 : 2;
	options.seed = soaking() ? now_ns() : 1;
	while ((c = getopt(argc, argv, "s:S:t:")) != -1) {
		if (c == 's')
			options.seconds = strtoul(optarg, NULL, 0);
		else if (c == 'S')
			options.seed = strtoull(optarg, NULL, 0);
		else if (c == 't')
			options.kind = optarg;
		else
			exit(EXIT_FAILURE);
	}
}

static const char * const on[] = { "ext4", "xfs", "f2fs" };

#define TESTS	3	/* on each */

int main(int argc, char **argv)
{
	parse(argc, argv);
	start(options.kind ? TESTS : TESTS * ARRAY_SIZE(on));
	primary = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (primary == MAP_FAILED)
		return EXIT_FAILURE;
	boosts_end();
	for (unsigned int k = 0; k < ARRAY_SIZE(on); k++) {
		if (options.kind && strcmp(options.kind, on[k]))
			continue;
		volume_open(&volume, &kind_named(on[k])->volume);
		unclean = false;
		run(race, NEED_NOTHING, "%s: files are their models while a primary comes and goes",
		    on[k]);
		unclean = true;
		run(race, NEED_NOTHING, "%s: the same with scheme noclean in between", on[k]);
		unclean = false;
		faults = true;
		run(race, NEED_NOTHING, "%s: the same while allocations fail", on[k]);
		faults = false;
		volume_close(&volume);
	}
	boosts_restore();
	return finish();
}
