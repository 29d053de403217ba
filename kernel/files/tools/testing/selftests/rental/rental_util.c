// SPDX-License-Identifier: GPL-2.0-only
/* What the selftests of rental memory share; see rental_util.h. */
#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rental_util.h"

#define PAGEMAP_PRESENT	0x8000000000000000ull
#define PAGEMAP_PFN	((1ull << 55) - 1)
#define DRIVER_PARAMETERS "/sys/module/rental_example/parameters"
#define LOOKS		1000	/* at a page that is on its way */
#define FORGET_TRIES	100
#define CLEAN_TRIES	1000
#define CHUNK		512	/* pages whose flags are read at once */
#define PIECE		KIB(128)	/* of a file that is read or written at once */
#define METADATA	KIB(64)	/* that may have to be read again */
#define HUGE		MIB(16)	/* of the hog, while there is plenty */
#define PLENTY_KIB	(64 << 10)

#define MKFS_EXT4	"mkfs.ext4 -q -F "
#define MKFS_XFS	"mkfs.xfs --unsupported -q -f -m reflink=1 "

const struct kind kinds[] = {
	{ .volume = { .name = "ext4", .type = "ext4", .mkfs = MKFS_EXT4 "-b 4096 %s" } },
	{ .volume = { .name = "ext4 with 1 KiB blocks", .type = "ext4",
		      .mkfs = MKFS_EXT4 "-b 1024 %s" } },
	{ .volume = { .name = "ext4 with journaled data", .type = "ext4",
		      .mkfs = MKFS_EXT4 "-b 4096 %1$s && tune2fs -o journal_data %1$s" } },
	{ .volume = { .name = "xfs", .type = "xfs", .mkfs = MKFS_XFS "%s" } },
	{ .volume = { .name = "xfs with large folios", .type = "xfs", .mkfs = MKFS_XFS "%s" },
	  .large = true },
	{ .volume = { .name = "f2fs", .type = "f2fs", .mkfs = "mkfs.f2fs -q -f %s" } },
	{ .volume = { .name = "btrfs", .type = "btrfs", .mkfs = "mkfs.btrfs -q -f -M %s" } },
};

const unsigned int nr_kinds = ARRAY_SIZE(kinds);

const struct kind *kind_named(const char *name)
{
	unsigned int k = 0;

	while (strcmp(kinds[k].volume.name, name))
		k++;
	return &kinds[k];
}

/* The area */

struct area area;

static unsigned long base_pfn;
static int heap = -1;

void set_scheme(const char *scheme)
{
	char path[PATH_MAX];
	int ret;

	snprintf(path, sizeof(path), CMA_SYSFS "/%s/scheme", area.name);
	ret = write_file(path, "%s", scheme);
	if (ret)
		fail("scheme %s: %s", scheme, strerror(-ret));
}

unsigned long count_of(const char *counter)
{
	return area_number(&area, counter);
}

struct writes writes_so_far(void)
{
	return (struct writes){
		.replaced = count_of("replaced"),
		.held = count_of("held"),
		.no_memory = count_of("no_memory"),
		.slipped = count_of("slipped"),
	};
}

void expect_seldom_held(const struct volume *v, const struct writes *before, bool memory_fails)
{
	struct writes now = writes_so_far();
	unsigned long replaced = now.replaced - before->replaced;
	unsigned long held = now.held - before->held;
	unsigned long no_memory = now.no_memory - before->no_memory;
	unsigned long slipped = now.slipped - before->slipped;

	diag("%lu pages were replaced before they were written to, %lu held, %lu without memory",
	     replaced, held, no_memory);
	if (slipped > dirtied_at_most(v, held + no_memory))
		fail("%lu pages were written to in the area, and %lu had a reason to stay",
		     slipped, held + no_memory);
	if (no_memory && !memory_fails)
		fail("%lu pages were written to in the area for want of memory", no_memory);
	/* one folio may be held, and have 32 pages, where few were written */
	if (held > replaced / SELDOM + 32)
		fail("%lu pages were written to in the area because somebody held them", held);
}

void one_list(void)
{
	run_on(0);
}

void begin(const char *scheme)
{
	need_policy(&area, "rental");
	base_pfn = area_debug(&area, "base_pfn");
	set_scheme(scheme);
	/* Whatever else was read since boot has its frames there, too. */
	if (count_of("lent") > area.pages / 4)
		close(take_all());
}

int take(size_t pages)
{
	if (heap < 0)
		heap = area_heap(&area);
	if (heap < 0)
		lack("heap", "area %s has no dma-buf heap", area.name);
	return heap_alloc(heap, pages * page_size);
}

unsigned long most(void)
{
	return area_debug(&area, "maxchunk");
}

int driver_open(unsigned long first, unsigned long pages)
{
	int ret = write_file(DRIVER_PARAMETERS "/first", "%lu", first);

	if (!ret)
		ret = write_file(DRIVER_PARAMETERS "/pages", "%lu", pages);
	if (ret)
		lack("sample", DRIVER_PARAMETERS ": %s", strerror(-ret));
	return open("/dev/rental-example", O_RDWR | O_CLOEXEC);
}

void expect_refused(unsigned long first, unsigned long pages, int error)
{
	int device = driver_open(first, pages);

	if (device >= 0 || errno != error)
		fail("%lu pages from %lu: %s", pages, first,
		     device < 0 ? strerror(errno) : "had");
}

int take_all(void)
{
	unsigned long pages = most(), lent = count_of("lent");
	u64 start = now_ns();
	int buffer = take(pages);

	if (buffer < 0)
		fail("the area, with %lu pages lent of %lu, could not be taken: %s", lent, pages,
		     strerror(errno));
	diag("taken with %lu pages lent of %lu, in %llu ms", lent, pages,
	     (unsigned long long)(now_ns() - start) / 1000000);
	return buffer;
}

/* Pages of files */

size_t pages_in(size_t bytes)
{
	return (bytes + page_size - 1) / page_size;
}

/* The frame of a page that is in the page cache, and may move while it is looked for */
static u64 frame_of(int pagemap, const char *at)
{
	u64 entry;

	for (int looks = 0; looks < LOOKS; looks++) {
		touch_page(at);
		pread_all(pagemap, &entry, sizeof(entry),
			  (uintptr_t)at / page_size * sizeof(entry));
		if (entry & PAGEMAP_PRESENT)
			return entry & PAGEMAP_PFN;
	}
	fail("a page is not mapped when it was just touched");
}

static long major_faults(void)
{
	struct rusage usage;

	MUST(getrusage(RUSAGE_SELF, &usage));
	return usage.ru_majflt;
}

void find_pages(int fd, u64 *pfns, size_t pages)
{
	size_t bytes = pages * page_size;
	unsigned char *in_core;
	int pagemap;
	char *map;

	if (!pages)
		return;
	in_core = page_buffer(pages);
	pagemap = MUST(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
	map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	/* neither readahead nor accesses that count */
	MUST(madvise(map, bytes, MADV_RANDOM));
	MUST(mincore(map, bytes, in_core));
	for (size_t i = 0; i < pages; i++) {
		long faults = major_faults();

		pfns[i] = in_core[i] & 1 ? frame_of(pagemap, map + i * page_size) : 0;
		/* evicted meanwhile, and read anew */
		in_core[i] = major_faults() != faults;
		if (in_core[i])
			pfns[i] = 0;
	}
	close(pagemap);
	munmap(map, bytes);
	for (size_t i = 0; i < pages; i++)
		if (in_core[i])
			posix_fadvise(fd, i * page_size, page_size, POSIX_FADV_DONTNEED);
	munmap(in_core, pages);
}

bool in_area(u64 pfn)
{
	return pfn >= base_pfn && pfn < base_pfn + area.pages;
}

unsigned long frame_in_area(u64 pfn)
{
	return pfn - base_pfn;
}

unsigned long lent_pages(int fd, size_t pages)
{
	u64 *pfns = page_buffer(pages * sizeof(*pfns));
	unsigned long count = 0;

	find_pages(fd, pfns, pages);
	for (size_t i = 0; i < pages; i++)
		count += in_area(pfns[i]);
	munmap(pfns, pages * sizeof(*pfns));
	return count;
}

void expect_lent(int fd, size_t pages)
{
	unsigned long count = lent_pages(fd, pages);

	if (count < pages)
		fail("of %zu pages that were read %lu are lent frames: nothing is tested", pages,
		     count);
}

unsigned long area_unclean(void)
{
	struct letters letters = area_letters(&area);

	return letters.of['D'] + letters.of['A'];
}

void expect_clean(void)
{
	struct letters letters = area_letters(&area);

	if (letters.of['D'] + letters.of['A'])
		fail("%lu pages do not belong there (%lu of them not of the page cache)",
		     letters.of['D'] + letters.of['A'], letters.of['A']);
}

void wait_until_clean(void)
{
	/* others may write: it has to be clean once */
	for (int tries = 0; tries < CLEAN_TRIES; tries++) {
		if (!area_unclean())
			return;
		usleep(10000);
	}
	expect_clean();
}

void forget(int fd)
{
	struct cachestat cs;

	for (int tries = 0; tries < FORGET_TRIES; tries++) {
		MUST(fsync(fd));
		MUST(syncfs(fd));
		if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
			fail("posix_fadvise");
		page_cache_state(fd, &cs);
		if (!cs.nr_cache)
			return;
		usleep(10000);
	}
	fail("%llu pages stay in the page cache (dirty %llu, under writeback %llu)",
	     (unsigned long long)cs.nr_cache, (unsigned long long)cs.nr_dirty,
	     (unsigned long long)cs.nr_writeback);
}

/* Content */

void file_written(int fd, unsigned int id, size_t bytes)
{
	char *buf = page_buffer(PIECE);

	for (size_t off = 0; off < bytes; off += PIECE) {
		stamp(buf, off, PIECE, id, 1);
		pwrite_all(fd, buf, PIECE, off);
	}
	munmap(buf, PIECE);
}

int file_made(const struct volume *v, const char *name, unsigned int id, size_t bytes)
{
	int fd = MUST(volume_file(v, name, O_RDWR | O_CREAT | O_TRUNC));

	file_written(fd, id, bytes);
	forget(fd);
	return fd;
}

void file_check(int fd, unsigned int id, size_t bytes)
{
	char *got = page_buffer(PIECE), *want = page_buffer(PIECE);

	for (size_t off = 0; off < bytes; off += PIECE) {
		pread_all(fd, got, PIECE, off);
		stamp(want, off, PIECE, id, 1);
		expect("read", off, got, want, PIECE);
	}
	munmap(got, PIECE);
	munmap(want, PIECE);
}

void map_check(const char *map, unsigned int id, size_t bytes)
{
	char *want = page_buffer(PIECE);

	for (size_t off = 0; off < bytes; off += PIECE) {
		stamp(want, off, PIECE, id, 1);
		expect("mapped", off, map + off, want, PIECE);
	}
	munmap(want, PIECE);
}

int file_lent(const struct volume *v, const char *name, unsigned int id, size_t bytes)
{
	int fd = file_made(v, name, id, bytes);

	file_check(fd, id, bytes);
	expect_lent(fd, pages_in(bytes));
	return fd;
}

char *map_fd(int fd, size_t bytes, int prot)
{
	char *map = mmap(NULL, bytes, prot, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	return map;
}

void touch_pages(const char *map, size_t bytes)
{
	for (size_t off = 0; off < bytes; off += page_size)
		touch_page(map + off);
}

void expect_few_reads(const struct volume *v, unsigned long before, unsigned long pages)
{
	unsigned long bytes = disk_reads(v) - before;

	if (bytes > METADATA + pages * page_size)
		fail("%lu bytes were read from the disk again", bytes);
}

/* Little memory */

static unsigned long hog_leaves;

static void hog_loop(void)
{
	write_file("/proc/self/oom_score_adj", "1000");
	for (;;) {
		unsigned long kib = memory_kib("MemFree:");
		size_t bytes = MIB(1);
		char *mem;

		if (kib <= hog_leaves + bytes / KIB(1)) {
			usleep(10000);
			continue;
		}
		if (kib > hog_leaves + PLENTY_KIB)
			bytes = HUGE;
		else
			usleep(1000);
		mem = page_buffer(bytes);
		/* far less faults, while huge pages are to be had */
		if (bytes == HUGE)
			madvise(mem, bytes, MADV_HUGEPAGE);
		for (size_t off = 0; off < bytes; off += page_size)
			mem[off] = 1;
	}
}

pid_t hog(unsigned long leave_kib)
{
	hog_leaves = leave_kib;
	return background(hog_loop);
}

pid_t hog_again(pid_t pid)
{
	int status;

	if (!MUST(waitpid(pid, &status, WNOHANG)))
		return pid;
	if (WIFEXITED(status))
		fail("who leaves little memory gave up");
	return hog(hog_leaves);
}

#define BOOST	"/proc/sys/vm/watermark_boost_factor"

static unsigned long boost;

void boosts_end(void)
{
	if (!read_number(BOOST, &boost) || write_file(BOOST, "0"))
		boost = 0;
}

void boosts_restore(void)
{
	if (boost)
		write_file(BOOST, "%lu", boost);
}
