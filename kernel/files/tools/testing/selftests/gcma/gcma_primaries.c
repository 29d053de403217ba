// SPDX-License-Identifier: GPL-2.0-only
/* Primaries and tenants share the area and never each other's bytes. */
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../cma/cma_util.h"

#define FILES		8
#define FILE_BYTES	MIB(1)

static struct volume volume;
static struct area area;
static int heap;		/* the area's */
static const char *kind;	/* that fsx is to run on */

/* What the primary process has done, shared with the test */
static struct {
	unsigned long allocations, failures, pages;
} *primary;

static void check_zero(const char *map, size_t bytes)
{
	static const char zeroes[4096];

	for (size_t off = 0; off < bytes; off += sizeof(zeroes))
		expect("a new buffer", off, map + off, zeroes, sizeof(zeroes));
}

static void check_scribble(const unsigned long *map, size_t words, unsigned long seed)
{
	for (size_t i = 0; i < words; i++)
		if (map[i] != seed + i)
			fail("word %zu of a primary's buffer is 0x%lx instead of 0x%lx", i, map[i],
			     seed + i);
}

/*
 * Allocates up to the whole area, for tenants live at the far end, and nobody else allocates: there
 * is always a free run.
 */
static void use_heap(void)
{
	u64 rnd = 1;

	for (unsigned long seed = 1;; seed++) {
		size_t pages = 1 + random_below(&rnd, area.pages / (1 + random_below(&rnd, 16)));
		size_t bytes = pages * page_size, words = bytes / sizeof(long);
		int buffer = heap_alloc(heap, bytes);
		unsigned long *map;

		primary->allocations++;
		if (buffer < 0) {
			primary->failures++;
			continue;
		}
		primary->pages += pages;
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, buffer, 0);
		if (map == MAP_FAILED)
			fail("mmap of a buffer: %s", strerror(errno));
		check_zero((char *)map, bytes);
		for (size_t i = 0; i < words; i++)
			map[i] = seed + i;
		usleep(random_below(&rnd, 5000));
		check_scribble(map, words, seed);
		munmap(map, bytes);
		close(buffer);
	}
}

static void need_heap(void)
{
	need_area(&area);
	heap = area_heap(&area);
	if (heap < 0)
		lack("heap", "area %s has no dma-buf heap", area.name);
}

static pid_t start_primary(void)
{
	need_heap();
	memset(primary, 0, sizeof(*primary));
	return background(use_heap);
}

static void stop_primary(pid_t pid)
{
	stop(pid);
	diag("%lu allocations of %lu pages in all, %lu failed", primary->allocations,
	     primary->pages, primary->failures);
	if (!primary->allocations)
		fail("nothing was allocated");
	if (area.gcma && primary->failures)
		fail("%lu of %lu allocations failed", primary->failures, primary->allocations);
}

static int file_create(unsigned int id)
{
	char *buf = page_buffer(FILE_BYTES);
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "file%u", id);
	fd = MUST(volume_file(&volume, name, O_RDWR | O_CREAT | O_TRUNC));
	stamp(buf, 0, FILE_BYTES, id, 1);
	for (size_t off = 0; off < FILE_BYTES; off += page_size)
		pwrite_all(fd, buf + off, page_size, off);
	munmap(buf, FILE_BYTES);
	return fd;
}

static void file_check(int fd, unsigned int id)
{
	char *want = page_buffer(FILE_BYTES), *got = page_buffer(FILE_BYTES);

	stamp(want, 0, FILE_BYTES, id, 1);
	pread_all(fd, got, FILE_BYTES, 0);
	expect("file", 0, got, want, FILE_BYTES);
	munmap(want, FILE_BYTES);
	munmap(got, FILE_BYTES);
}

static void files_under_primaries(void)
{
	int fds[FILES], rounds = soaking() ? 1000 : short_form() ? 4 : 12;
	pid_t pid;

	need_volume(&volume);
	for (unsigned int i = 0; i < FILES; i++)
		fds[i] = file_create(i + 1);
	pid = start_primary();
	for (int round = 0; round < rounds; round++) {
		for (unsigned int i = 0; i < FILES; i++)
			evict(fds[i]);
		for (unsigned int i = 0; i < FILES; i++)
			file_check(fds[i], i + 1);
	}
	stop_primary(pid);
}

static void fsx_under_primaries(void)
{
	char self[256] = "", log[512];
	unsigned int ops;
	int status;
	pid_t pid;

	MUST(readlink("/proc/self/exe", self, sizeof(self) - 1));
	pid = start_primary();
	ops = soaking() ? 100000 : short_form() ? 300 : 1000;
	status = shell("%s/gcma_fsx -t %s -N %u", dirname(self), kind, ops);
	stop_primary(pid);
	if (status) {
		FILE *file = fopen(SHELL_LOG, "re");

		while (file && fgets(log, sizeof(log), file))
			printf("# %s", log);
		fail("fsx on %s failed", kind);
	}
}

/*
 * The whole area: every tenant has to go. A file that is read meanwhile comes from the disk, and
 * one that is read only afterwards as well, though the frames are free again and hold the
 * primary's bytes.
 */
static void whole_area(void)
{
	int during, after, buffer;
	size_t bytes;
	char *map;

	need_volume(&volume);
	need_heap();
	during = file_create(1);
	after = file_create(2);
	evict_to_area(during);
	evict_to_area(after);
	bytes = area_free(&area) * page_size;
	buffer = heap_alloc(heap, bytes);
	if (buffer < 0) {
		if (area.gcma)
			fail("the whole area could not be allocated: %s", strerror(errno));
		skip("not to be had on a movable area: %s", strerror(errno));
	}
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, buffer, 0);
	if (map == MAP_FAILED)
		fail("mmap of a buffer: %s", strerror(errno));
	check_zero(map, bytes);
	if (area.gcma && area_number(&area, "tenants_file"))
		fail("%lu tenants are left", area_number(&area, "tenants_file"));
	memset(map, 0xa5, bytes);
	file_check(during, 1);
	evict(during);
	munmap(map, bytes);
	close(buffer);
	file_check(after, 2);
	file_check(during, 1);
}

/* A pattern that the kernel writes and checks, without a mapping of it */
static void kernel_pattern(void)
{
	unsigned int rounds = soaking() ? 500 : short_form() ? 4 : 10;
	char path[320];
	int fd, ret;

	need_volume(&volume);
	need_area(&area);
	snprintf(path, sizeof(path), CMA_DEBUGFS "/%s/bench_hold", area.name);
	if (access(path, W_OK))
		lack("bench", "no %s (CONFIG_CMA_BENCH)", path);
	fd = file_create(1);
	for (unsigned int round = 0; round < rounds; round++) {
		/* all of the area, then three quarters, so that there are tenants beside them */
		for (unsigned int i = round % 2; i < 4; i++) {
			ret = write_file(path, "%lu", area.pages / 4);
			if (ret && area.gcma)
				fail("bench_hold: %s", strerror(-ret));
		}
		evict(fd);
		file_check(fd, 1);
		ret = write_file(path, "0");
		if (ret)
			fail("the kernel's pattern was damaged: %s", strerror(-ret));
		evict(fd);
		file_check(fd, 1);
	}
}

/* Refusals */

static void expect_refused(int ret, unsigned long free_before, const char *what)
{
	if (ret >= 0)
		fail("%s was allocated", what);
	if (area_free(&area) != free_before)
		fail("after %s was refused %lu pages are free instead of %lu", what,
		     area_free(&area), free_before);
	if (area.gcma && area_number(&area, "available_pages") != free_before)
		fail("available_pages is %lu instead of %lu", area_number(&area, "available_pages"),
		     free_before);
}

static void refuse_nothing(void)
{
	need_heap();
	expect_refused(heap_alloc(heap, 0), area_free(&area), "an allocation of 0 bytes");
}

static void refuse_more_than_area(void)
{
	need_heap();
	expect_refused(heap_alloc(heap, (area.pages + 1) * page_size), area_free(&area),
		       "more than the area");
}

static void refuse_more_than_free(void)
{
	unsigned long all, left;
	int buffer;

	need_heap();
	all = area_free(&area);
	buffer = heap_alloc(heap, all / 4 * 3 * page_size);
	if (buffer < 0 && area.gcma)
		fail("three quarters of the area could not be allocated: %s", strerror(errno));
	if (buffer < 0)
		skip("three quarters of a movable area are not to be had: %s", strerror(errno));
	left = area_free(&area);
	expect_refused(heap_alloc(heap, (left + 1) * page_size), left, "more than is free");
	close(buffer);
	if (area_free(&area) != all)
		fail("%lu pages are free instead of %lu", area_free(&area), all);
	buffer = heap_alloc(heap, all / 4 * 3 * page_size);
	if (buffer < 0)
		fail("what was allocated before could not be allocated again");
	close(buffer);
}

static void refuse_debugfs(void)
{
	char path[320];

	need_area(&area);
	snprintf(path, sizeof(path), CMA_DEBUGFS "/%s/alloc", area.name);
	if (access(path, W_OK))
		lack("debugfs", "no %s", path);
	expect_refused(write_file(path, "0"), area_free(&area), "an allocation of 0 pages");
	expect_refused(write_file(path, "%lu", area.pages + 1), area_free(&area),
		       "more than the area");
}

static const char * const kinds[] = { "ext4", "xfs" };

int main(void)
{
	start(9);
	primary = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (primary == MAP_FAILED)
		return EXIT_FAILURE;
	volume_open(&volume, &volume_kinds[0]);
	run(refuse_nothing, NEED_NOTHING, "an allocation of nothing is refused");
	run(refuse_more_than_area, NEED_NOTHING, "an allocation of more than the area is refused");
	run(refuse_more_than_free, NEED_NOTHING,
	    "an allocation of more than is free is refused and what is free stays so");
	run(refuse_debugfs, NEED_NOTHING, "debugfs refuses the same");
	run(whole_area, NEED_STORES, "an allocation of the whole area ends every tenant");
	run(kernel_pattern, NEED_LOADS, "no tenant is written into what a primary holds");
	run(files_under_primaries, NEED_LOADS,
	    "files keep their content while primaries allocate and scribble");
	for (unsigned int k = 0; k < ARRAY_SIZE(kinds); k++) {
		kind = kinds[k];
		run(fsx_under_primaries, NEED_LOADS,
		    "fsx on %s passes while primaries allocate and scribble", kind);
	}
	volume_close(&volume);
	return finish();
}
