// SPDX-License-Identifier: GPL-2.0-only
/*
 * A page that was evicted and comes back holds what was written, on every filesystem and by
 * every way to read.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../cma/cma_util.h"

/* Reading the file may take the disk for metadata that reclaim evicted with the data. */
#define METADATA_BYTES	KIB(64)

static void by_read(int fd, char *buf)
{
	MUST(lseek(fd, 0, SEEK_SET));
	for (size_t done = 0; done < DATA_BYTES;)
		done += MUST(read(fd, buf + done, DATA_BYTES - done));
}

/* Odd pieces, backwards: no readahead, pages in parts */
static void by_pread(int fd, char *buf)
{
	const size_t piece = 3001;

	for (off_t off = DATA_BYTES / piece * piece; off >= 0; off -= piece)
		pread_all(fd, buf + off, MIN(piece, DATA_BYTES - off), off);
}

static void by_mmap(int fd, char *buf)
{
	char *map = mmap(NULL, DATA_BYTES, PROT_READ, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	memcpy(buf, map, DATA_BYTES);
	munmap(map, DATA_BYTES);
}

/* Single faults in an order that no readahead foresees */
static void by_random_faults(int fd, char *buf)
{
	char *map = mmap(NULL, DATA_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
	size_t pages = DATA_BYTES / page_size;

	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	MUST(madvise(map, DATA_BYTES, MADV_RANDOM));
	for (size_t i = 0; i < pages; i++) {
		size_t off = i * 167 % pages * page_size;

		memcpy(buf + off, map + off, page_size);
	}
	munmap(map, DATA_BYTES);
}

static void by_splice(int fd, char *buf)
{
	int ends[2];

	MUST(pipe(ends));
	for (size_t done = 0; done < DATA_BYTES;) {
		off_t off = done;
		ssize_t part = MUST(splice(fd, &off, ends[1], NULL, KIB(64), 0));

		if (!part)
			fail("end of file at %zu", done);
		for (ssize_t copied = 0; copied < part;)
			copied += MUST(read(ends[0], buf + done + copied, part - copied));
		done += part;
	}
}

static void by_readahead(int fd, char *buf)
{
	MUST(readahead(fd, 0, DATA_BYTES));
	by_read(fd, buf);
}

static const struct way {
	const char *name;
	void (*read)(int fd, char *buf);
} ways[] = {
	{ "read", by_read },
	{ "pread of odd parts", by_pread },
	{ "mmap", by_mmap },
	{ "page faults in random order", by_random_faults },
	{ "splice", by_splice },
	{ "readahead and read", by_readahead },
};

static struct volume volume;
static const struct way *way;		/* of this test */
static char *want, *got;

static int data_file(void)
{
	int fd = volume_file(&volume, "data", volume.kind->readonly ? O_RDONLY : O_RDWR);

	return MUST(fd);
}

/* Pieces of a page, so that the folios are of order 0 where the size of a write decides that. */
static void pages_write(int fd)
{
	for (size_t off = 0; off < DATA_BYTES; off += page_size)
		if (pwrite(fd, want + off, page_size, off) != (ssize_t)page_size)
			diag("data cannot be written: %s", strerror(errno));
	fsync(fd);
}

static void data_write(void)
{
	int fd;

	if (volume.missing[0] || volume.kind->readonly)
		return;
	fd = volume_file(&volume, "data", O_RDWR | O_CREAT);
	pages_write(fd);
	close(fd);
	/* Filesystems set up a file that is there apart from one that is made. */
	volume_umount(&volume);
	if (!volume_mount(&volume))
		diag("data cannot be mounted again: %s", strerror(errno));
}

static void content(void)
{
	int fd;

	need_volume(&volume);
	fd = data_file();
	for (int round = 0; round < 2; round++) {
		evict(fd);
		way->read(fd, got);
		expect(way->name, 0, got, want, DATA_BYTES);
	}
}

static void content_direct(void)
{
	unsigned long before;
	int fd, direct;

	need_volume(&volume);
	fd = data_file();
	direct = volume_file(&volume, "data", O_RDONLY | O_DIRECT);
	if (direct < 0 || pread(direct, got, page_size, 0) < 0)
		skip("no direct reads: %s", strerror(errno));
	evict(fd);
	before = disk_reads(&volume);
	pread_all(direct, got, DATA_BYTES, 0);
	expect("direct read", 0, got, want, DATA_BYTES);
	if (disk_reads(&volume) - before < DATA_BYTES)
		fail("a direct read of %zu bytes took %lu from the disk", DATA_BYTES,
		     disk_reads(&volume) - before);
}

/*
 * Whole large folios: how many of them have tenants is the policy's choice, what they hold is
 * not.
 */
static void content_large(void)
{
	int fd;

	need_volume(&volume);
	fd = MUST(volume_file(&volume, "large", O_RDWR | O_CREAT | O_TRUNC));
	pwrite_all(fd, want, DATA_BYTES, 0);
	for (int round = 0; round < 3; round++) {
		evict(fd);
		by_read(fd, got);
		expect("large writes", 0, got, want, DATA_BYTES);
	}
}

static void bring_all_to_area(int fd)
{
	unsigned long stored, pages = DATA_BYTES / page_size;

	evict(fd);
	stored = counter("stores");
	/* one by one: folios of order 0 */
	by_random_faults(fd, got);
	evict(fd);
	stored = counter("stores") - stored;
	if (stored < pages)
		fail("of %lu pages %lu were stored", pages, stored);
}

/* All of the file is in the area, as single pages. */
static int all_in_area(void)
{
	int fd;

	need_gcma();
	need_volume(&volume);
	fd = data_file();
	bring_all_to_area(fd);
	return fd;
}

/* Filesystems set up a file without a name apart from others. */
static void without_a_name(void)
{
	int fd;

	need_gcma();
	need_volume(&volume);
	fd = open(volume.dir, O_TMPFILE | O_RDWR, 0600);
	if (fd < 0)
		fail("O_TMPFILE: %s", strerror(errno));
	pages_write(fd);
	bring_all_to_area(fd);
	by_read(fd, got);
	expect("read", 0, got, want, DATA_BYTES);
}

/* squashfs sets up a file of two names apart from others. */
static void of_two_names(void)
{
	char path[128];
	int fd;

	need_gcma();
	need_volume(&volume);
	if (volume.kind->readonly) {
		fd = MUST(volume_file(&volume, LINKED, O_RDONLY));
	} else {
		fd = MUST(volume_file(&volume, LINKED, O_RDWR | O_CREAT));
		pages_write(fd);
		snprintf(path, sizeof(path), "%s/" LINKED, volume.dir);
		snprintf(got, DATA_BYTES, "%s/another", volume.dir);
		MUST(link(path, got));
	}
	bring_all_to_area(fd);
	by_read(fd, got);
	expect("read", 0, got, want, DATA_BYTES);
}

static void served_by_area(void)
{
	unsigned long loaded, disk, pages = DATA_BYTES / page_size;
	int fd = all_in_area();

	loaded = counter("loads");
	disk = disk_reads(&volume);
	way->read(fd, got);
	loaded = counter("loads") - loaded;
	disk = disk_reads(&volume) - disk;
	expect(way->name, 0, got, want, DATA_BYTES);
	if (loaded < pages || disk > METADATA_BYTES)
		fail("%lu pages: %lu loads, %lu bytes read from the disk", pages, loaded, disk);
	if (counter("loads") - loaded > counter("stores"))
		fail("more loads than stores");
}

static void forget(int fd, size_t page, size_t pages)
{
	if (posix_fadvise(fd, page * page_size, pages * page_size, POSIX_FADV_DONTNEED))
		fail("posix_fadvise");
}

static void fault_on(const char *map, size_t page, unsigned long loads)
{
	unsigned long before = counter("loads");

	expect("fault", page * page_size, map + page * page_size, want + page * page_size,
	       page_size);
	before = counter("loads") - before;
	if (before != loads)
		fail("a fault loaded %lu pages, not %lu", before, loads);
}

/* A fault loads its page and no other, whether that is in the area or on the disk. */
static void faults_load_what_they_need(void)
{
	int fd = all_in_area();
	const char *map = mmap(NULL, DATA_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	unsigned long disk;

	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	fault_on(map, 100, 1);
	forget(fd, 103, 1);
	fault_on(map, 103, 0);
	fault_on(map, 104, 1);
	/* nor those around it from the disk */
	forget(fd, 40, 10);
	forget(fd, 51, 10);
	disk = disk_reads(&volume);
	fault_on(map, 50, 1);
	disk = disk_reads(&volume) - disk;
	if (disk)
		fail("a fault that loaded its page read %lu bytes", disk);
}

/* Readahead of large folios takes from the area what is there, around what is not. */
static void load_in_part(void)
{
	unsigned long loads, pages = DATA_BYTES / page_size;
	int fd = all_in_area();

	forget(fd, 9, 2);
	forget(fd, 64, 16);
	loads = counter("loads");
	by_read(fd, got);
	loads = counter("loads") - loads;
	expect("read", 0, got, want, DATA_BYTES);
	if (loads != pages - 18)
		fail("of %lu pages that were there %lu were loaded", pages - 18, loads);
}

/* No request ends for the sake of a page. */
static void few_are_read_over(void)
{
	unsigned long loads, pages = DATA_BYTES / page_size;
	int fd = all_in_area();

	for (size_t page = 0; page < pages; page += 8) {
		forget(fd, page, 5);
		forget(fd, page + 6, 2);
	}
	loads = counter("loads");
	by_read(fd, got);
	loads = counter("loads") - loads;
	expect("read", 0, got, want, DATA_BYTES);
	if (loads)
		fail("%lu pages were loaded one by one", loads);
}

static struct stat status;

static bool is_of_the_file(const char *fields)
{
	unsigned long ino, index, pfn;
	unsigned int maj, min;

	return sscanf(fields, "dev=%u:%u ino=%lx index=%lu pfn=0x%lx", &maj, &min, &ino, &index,
		      &pfn) == 5 && maj == major(status.st_dev) && min == minor(status.st_dev) &&
	       ino == status.st_ino && index < DATA_BYTES / page_size;
}

static void traced(void)
{
	static const char * const names[] = { "gcma_copy", "gcma_store", "gcma_fill", "gcma_load" };
	unsigned long number;
	int fd;

	need_gcma();
	need_volume(&volume);
	events_begin("gcma");
	fd = data_file();
	MUST(fstat(fd, &status));
	bring_all_to_area(fd);
	by_read(fd, got);
	events_end("gcma");
	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		number = events(names[i], is_of_the_file);
		if (number < DATA_BYTES / page_size)
			fail("%lu of %lu pages were told by %s", number, DATA_BYTES / page_size,
			     names[i]);
	}
}

static const struct test {
	void (*fn)(void);
	enum need need;
	const char *name;
	bool ways, writes;
} tests[] = {
	{ content, NEED_LOADS, "evicted pages come back unchanged", .ways = true },
	{ content_direct, NEED_STORES, "a direct read of evicted pages takes the disk's content",
	  .ways = false },
	{ content_large, NEED_LOADS, "pages written in one large write come back unchanged",
	  .writes = true },
	{ without_a_name, NEED_LOADS, "a file without a name is kept as others are",
	  .writes = true },
	{ of_two_names, NEED_LOADS, "a file of two names is kept as others are",
	  .writes = false },
	{ faults_load_what_they_need, NEED_LOADS, "a fault loads its page and no other",
	  .writes = true },
	{ load_in_part, NEED_LOADS, "what is there is loaded around what is not",
	  .writes = true },
	{ few_are_read_over, NEED_STORES,
	  "few pages that are there are read with those that are not", .writes = true },
	{ traced, NEED_LOADS, "evicted pages are told by tracepoints", .writes = true },
	{ served_by_area, NEED_LOADS, "all is loaded and nothing read from the disk",
	  .ways = true },
};

/* The tests on a kind of filesystem: how many, or, if @go, what becomes of them */
static unsigned int kind_tests(unsigned int k, bool go)
{
	const char *kind = volume_kinds[k].name;
	unsigned int nr = 0, at = 0, writable = 0;

	while (writable < nr_volume_kinds && !volume_kinds[writable].readonly)
		writable++;
	for (const struct test *test = tests; test < tests + ARRAY_SIZE(tests); test++) {
		for (way = ways; way < ways + (test->ways ? ARRAY_SIZE(ways) : 1); way++) {
			unsigned int kinds = test->writes ? writable : nr_volume_kinds;

			at++;
			if (k >= kinds || !has_turn(at, k, kinds))
				continue;
			nr++;
			if (go && test->ways)
				run(test->fn, test->need, "%s: %s through %s", kind, test->name,
				    way->name);
			else if (go)
				run(test->fn, test->need, "%s: %s", kind, test->name);
		}
	}
	return nr;
}

int main(void)
{
	unsigned int nr = 0;

	for (unsigned int k = 0; k < nr_volume_kinds; k++)
		nr += kind_tests(k, false);
	start(nr);
	want = page_buffer(DATA_BYTES);
	got = page_buffer(DATA_BYTES);
	stamp(want, 0, DATA_BYTES, 1, 1);

	for (unsigned int k = 0; k < nr_volume_kinds; k++) {
		volume_open(&volume, &volume_kinds[k]);
		data_write();
		kind_tests(k, true);
		volume_close(&volume);
	}
	return finish();
}
