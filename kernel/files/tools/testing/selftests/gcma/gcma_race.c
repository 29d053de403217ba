// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a change of a file left behind is what the next read sees, whatever readers and reclaim
 * did meanwhile.
 *
 * While one thread changes the whole file, another reads pages of it and evicts them at once, so
 * that tenants of old content appear in the middle of the change, and a process reclaims. As
 * soon as the change returns, its thread reads the pages and compares them with what it wrote.
 *
 * What changes behind the page cache is followed by an invalidation that does not wait: it passes
 * by what reclaim has isolated or locked, and reclaim must not keep a copy of that then. Nobody
 * reads meanwhile, for a page that is held stays, with stock Linux too. So does one that reclaim
 * could not free: mincore tells it if it is still there, and if it may have gone later, reclaim
 * has looked at more pages than it freed.
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../cma/cma_util.h"

#define PAGES		256
#define BYTES		(PAGES * page_size)
#define CHECKED		16	/* pages, the last ones and others */
#define FILE_ID		1

static struct volume volume, beside;
static const char *name;	/* the file's, in volume.dir */
static int fd, direct;
static char *model, *got;
static atomic_uint floor_version;	/* what every read that starts now has to see at least */

static const struct race {
	const char *name;
	void (*change)(void);
	bool zeroes, device;
} *raced;

/* A write of everything takes long enough to be overtaken. */
static void change_direct_write(void)
{
	pwrite_all(direct, model, BYTES, 0);
}

static void change_write_and_sync(void)
{
	pwrite_all(fd, model, BYTES, 0);
	MUST(fdatasync(fd));
}

static void change_punch(void)
{
	change_write_and_sync();
	memset(model, 0, BYTES);
	MUST(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BYTES));
}

static void change_truncate(void)
{
	change_write_and_sync();
	memset(model + 100, 0, BYTES - 100);
	MUST(ftruncate(fd, 100));
	MUST(ftruncate(fd, BYTES));
}

static void change_clone(void)
{
	struct file_clone_range range = { .src_length = BYTES };
	int from = MUST(volume_file(&volume, "from", O_RDWR | O_CREAT));

	pwrite_all(from, model, BYTES, 0);
	range.src_fd = from;
	if (ioctl(fd, FICLONERANGE, &range))
		skip("no clones: %s", strerror(errno));
	close(from);
}

static void change_zeroout(void)
{
	u64 range[2] = { 0, BYTES };

	change_write_and_sync();
	memset(model, 0, BYTES);
	MUST(ioctl(fd, BLKZEROOUT, range));
}

static void see(const char *page, off_t off, unsigned int least)
{
	for (size_t i = 0; i < page_size; i += 8) {
		unsigned int version, ahead;
		u64 word;

		memcpy(&word, page + i, 8);
		version = (word >> 32) & 0xffff;
		ahead = (version - least) & 0xffff;
		if (word >> 48 != FILE_ID || (u32)word << 3 != off + i || ahead > 0x7fff)
			fail("offset 0x%llx: read 0x%016llx when version %u was written already",
			     (unsigned long long)(off + i), (unsigned long long)word,
			     least & 0xffff);
	}
}

/* Reads the last pages most, for these are written last, and evicts what it read. */
static void *read_and_evict(void *arg)
{
	char *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	char *page = page_buffer(page_size);
	u64 rnd = 1;

	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	for (;;) {
		unsigned int index = PAGES - 1 - random_below(&rnd, 2) * random_below(&rnd, PAGES);
		unsigned int least = atomic_load(&floor_version);
		off_t off = index * page_size;

		/* One that is cut off now is no news; a mapped one would be a signal. */
		if (pread(fd, page, page_size, off) != (ssize_t)page_size)
			continue;
		if (!raced->zeroes)
			see(page, off, least);
		/* Populating maps what is there; reclaim takes only what is mapped. */
		if (!madvise(map + off, page_size, MADV_POPULATE_READ))
			madvise(map + off, page_size, MADV_PAGEOUT);
	}
	return arg;
}

#define MOST	100	/* times as many changes */

static void race(void)
{
	unsigned int changes = soaking() ? 5000 : short_form() ? 8 : 25;
	unsigned long stores = counter("stores"), loads = counter("loads");
	unsigned int version = 1;
	u64 rnd = 1;
	pthread_t thread;
	pid_t reclaimer;

	need_volume(&volume);
	name = raced->device ? volume.dev + strlen("/dev/") : "raced";
	fd = MUST(volume_file(&volume, name, O_RDWR | O_CREAT));
	direct = MUST(volume_file(&volume, name, O_RDWR | O_DIRECT));
	model = page_buffer(BYTES);
	got = page_buffer(BYTES);
	atomic_store(&floor_version, version);
	stamp(model, 0, BYTES, FILE_ID, version);
	change_write_and_sync();

	reclaimer = reclaim_all_the_time();
	if (pthread_create(&thread, NULL, read_and_evict, NULL))
		fail("no thread");
	/* on a busy machine nobody may have got as far as to load a page */
	while (version <= changes ||
	       (have_gcma() && version <= MOST * changes && counter("loads") == loads)) {
		stamp(model, 0, BYTES, FILE_ID, ++version);
		raced->change();
		atomic_store(&floor_version, version);
		for (unsigned int i = 0; i < CHECKED; i++) {
			off_t off =
				(PAGES - 1 - (i < CHECKED / 2 ? i : random_below(&rnd, PAGES))) *
				page_size;

			pread_all(fd, got, page_size, off);
			expect("after the change", off, got, model + off, page_size);
		}
	}
	stop(reclaimer);
	diag("%lu pages stored, %lu loaded", counter("stores") - stores,
	     counter("loads") - loads);
}

/* Invalidation that does not wait */

static bool on_device;		/* the block device itself, not a file */
static pthread_barrier_t begun, ended;

static void *reclaim_by_turns(void *arg)
{
	u64 rnd = 1;

	for (;;) {
		pthread_barrier_wait(&begun);
		push_out((1 + random_below(&rnd, PAGES / 2)) * page_size);
		pthread_barrier_wait(&ended);
	}
	return arg;
}

static void invalidate(void)
{
	if (on_device)
		MUST(ioctl(fd, BLKFLSBUF, 0));
	else if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		fail("posix_fadvise");
}

/*
 * Oldest in the cache is the file, then come other pages: what reclaim could not free is not what
 * it tries next.
 */
static void fill_cache(int filler)
{
	pread_all(fd, got, BYTES, 0);
	if (posix_fadvise(filler, 0, 0, POSIX_FADV_DONTNEED))
		fail("posix_fadvise");
	for (unsigned int i = 0; i < 4; i++)
		pread_all(filler, got, BYTES, i * BYTES);
}

/* How many pages reclaim has looked at and not freed: it may have put them back. */
static unsigned long put_back(void)
{
	return vm_event("pgscan_file") - vm_event("pgsteal_file");
}

/* Returns how many pages had to come from the medium, or from a copy that must not be there. */
static unsigned int check_absent(void *map)
{
	unsigned char in_core[PAGES];
	unsigned int absent = 0;

	MUST(mincore(map, BYTES, in_core));
	for (unsigned int i = 0; i < PAGES; i++) {
		if (in_core[i] & 1)
			continue;
		pread_all(fd, got, page_size, i * page_size);
		expect("after the invalidation", i * page_size, got, model + i * page_size,
		       page_size);
		absent++;
	}
	return absent;
}

/* The file, and how to write its medium: returns where it lies there. */
static off_t open_behind(int *medium)
{
	const char *path = on_device ? volume.image : volume.dev;

	name = on_device ? volume.dev + strlen("/dev/") : "behind";
	fd = MUST(volume_file(&volume, name, O_RDWR | O_CREAT));
	model = page_buffer(BYTES);
	got = page_buffer(BYTES);
	stamp(model, 0, BYTES, FILE_ID, 1);
	if (!on_device)
		MUST(fallocate(fd, 0, 0, BYTES));
	change_write_and_sync();
	*medium = MUST(open(path, O_RDWR | O_CLOEXEC | (on_device ? 0 : O_DIRECT)));
	return on_device ? 0 : data_offset(fd, BYTES);
}

static void race_behind(void)
{
	unsigned int changes = soaking() ? 20000 : short_form() ? 24 : 80;
	unsigned int rounds = 0, absent = 0;
	int medium, filler;
	pthread_t thread;
	off_t at;
	void *map;

	need_volume(&volume);
	need_volume(&beside);
	at = open_behind(&medium);
	filler = MUST(volume_file(&beside, "filler", O_RDWR | O_CREAT));
	MUST(ftruncate(filler, 4 * BYTES));
	map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	pthread_barrier_init(&begun, NULL, 2);
	pthread_barrier_init(&ended, NULL, 2);
	if (pthread_create(&thread, NULL, reclaim_by_turns, NULL))
		fail("no thread");
	for (unsigned int version = 2; version <= changes; version++) {
		unsigned long before;

		fill_cache(filler);
		stamp(model, 0, BYTES, FILE_ID, version);
		pwrite_all(medium, model, BYTES, at);
		before = put_back();
		pthread_barrier_wait(&begun);
		invalidate();
		pthread_barrier_wait(&ended);
		if (put_back() != before)
			continue;
		absent += check_absent(map);
		rounds++;
	}
	diag("%u pages were read anew in %u of %u rounds", absent, rounds, changes - 1);
	if (!absent)
		fail("every page stayed, or reclaim freed none: nothing was tested");
}

static const struct race on_files[] = {
	{ "a direct write", change_direct_write, false, false },
	{ "a buffered write", change_write_and_sync, false, false },
	{ "a punched hole", change_punch, true, false },
	{ "a truncation", change_truncate, true, false },
	{ "a clone", change_clone, false, false },
}, on_devices[] = {
	{ "a direct write", change_direct_write, false, true },
	{ "a zero-out", change_zeroout, true, true },
};

#define BEHIND	"%s: changed behind the page cache, after %s no read sees what was before"

static const char * const kinds[] = { "ext4", "xfs", "f2fs" };

static const struct volume_kind *kind_named(const char *kind)
{
	unsigned int k = 0;

	while (strcmp(volume_kinds[k].name, kind))
		k++;
	return &volume_kinds[k];
}

int main(void)
{
	/* Behind the page cache not on f2fs, whose files need not be in one piece. */
	start(ARRAY_SIZE(kinds) * ARRAY_SIZE(on_files) + ARRAY_SIZE(on_devices) +
	      ARRAY_SIZE(kinds));
	volume_open(&beside, kind_named("ext4"));
	for (unsigned int k = 0; k < ARRAY_SIZE(kinds); k++) {
		volume_open(&volume, kind_named(kinds[k]));
		for (raced = on_files; raced < on_files + ARRAY_SIZE(on_files); raced++)
			run(race, NEED_LOADS, "%s: after %s no read sees what was before", kinds[k],
			    raced->name);
		if (strcmp(kinds[k], "f2fs"))
			run(race_behind, NEED_STORES, BEHIND, kinds[k], "POSIX_FADV_DONTNEED");
		volume_close(&volume);
	}
	volume = (struct volume){ .image = "/tmp/device", .dir = "/dev", .loop = -1 };
	loop_open(&volume, BYTES);
	for (raced = on_devices; raced < on_devices + ARRAY_SIZE(on_devices); raced++)
		run(race, NEED_LOADS, "block device: after %s no read sees what was before",
		    raced->name);
	on_device = true;
	run(race_behind, NEED_STORES, BEHIND, "block device", "BLKFLSBUF");
	close(volume.loop);
	volume_close(&beside);
	return finish();
}
