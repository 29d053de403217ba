// SPDX-License-Identifier: GPL-2.0-only
/* What takes memory from a CMA area works on a gcma area as it is. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../cma/cma_util.h"

static struct area area;

/* dma-buf heap */

static void heap_accounting(void)
{
	const unsigned long sizes[] = { 1, 2, 64, 255, 1024 };
	int heap;

	need_area(&area);
	heap = area_heap(&area);
	if (heap < 0)
		lack("heap", "area %s has no dma-buf heap", area.name);
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		unsigned long pages = sizes[i], got = area_number(&area, "alloc_pages_success");
		unsigned long back = area_number(&area, "release_pages_success");
		int buffer = MUST(heap_alloc(heap, pages * page_size));
		char *map = mmap(NULL, pages * page_size, PROT_READ | PROT_WRITE, MAP_SHARED,
				 buffer, 0);

		if (map == MAP_FAILED)
			fail("mmap: %s", strerror(errno));
		got = area_number(&area, "alloc_pages_success") - got;
		if (got != pages)
			fail("%lu pages were asked for, %lu counted", pages, got);
		stamp(map, 0, pages * page_size, 7, 1);
		munmap(map, pages * page_size);
		close(buffer);
		back = area_number(&area, "release_pages_success") - back;
		if (back != pages)
			fail("%lu pages were released, %lu counted", pages, back);
	}
}

/* hugetlb: 1 GiB pages */

#define HUGE_BYTES	MIB(1024)
#define HUGE_NUMBER	"/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"

#ifndef MAP_HUGE_1GB
#define MAP_HUGE_1GB	(30 << 26)
#endif

static unsigned long huge_pages(unsigned long wanted)
{
	unsigned long number;

	if (write_file(HUGE_NUMBER, "%lu", wanted) || !read_number(HUGE_NUMBER, &number))
		lack("hugetlb", "no 1 GiB pages on this machine");
	return number;
}

/* Frees what the area has given, so that the test can say whether it did. */
static unsigned long hugetlb_areas_used(void)
{
	DIR *dir = opendir(CMA_DEBUGFS);
	unsigned long used = 0, number;
	struct dirent *entry;
	char path[PATH_MAX];

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), CMA_DEBUGFS "/%s/used", entry->d_name);
		if (!strncmp(entry->d_name, "hugetlb", 7) && read_number(path, &number))
			used += number;
	}
	if (dir)
		closedir(dir);
	return used;
}

static void need_hugetlb(void)
{
	char cmdline[4096] = "", policy[64] = "movable";
	unsigned long limit;

	read_word("/proc/cmdline", cmdline, sizeof(cmdline));
	if (!strstr(cmdline, "hugetlb_cma="))
		lack("hugetlb", "no hugetlb_cma= on the command line");
	if (huge_pages(0))
		lack("hugetlb", "1 GiB pages are in use");
	limit = memory_kib("CommitLimit:");
	if (huge_pages(1) != 1)
		fail("no 1 GiB page was allocated");
	if (hugetlb_areas_used() != HUGE_BYTES / page_size)
		fail("the 1 GiB page is not from the area: %lu pages used", hugetlb_areas_used());
	/* it is taken off memory that has it; of a movable area it was there before */
	read_word(CMA_SYSFS "/hugetlb0/policy", policy, sizeof(policy));
	if (strcmp(policy, "movable") && memory_kib("CommitLimit:") != limit)
		fail("CommitLimit is %lu kB, before the 1 GiB page it was %lu kB",
		     memory_kib("CommitLimit:"), limit);
}

static char *huge_map(void)
{
	char *map = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_1GB, -1, 0);

	if (map == MAP_FAILED)
		fail("mmap of a 1 GiB page: %s", strerror(errno));
	return map;
}

static void hugetlb_page(void)
{
	char *map, *want = page_buffer(page_size);

	need_hugetlb();
	map = huge_map();
	for (size_t off = 0; off < HUGE_BYTES; off += MIB(1)) {
		stamp(want, off, page_size, 8, 1);
		memcpy(map + off, want, page_size);
	}
	for (size_t off = 0; off < HUGE_BYTES; off += MIB(1)) {
		stamp(want, off, page_size, 8, 1);
		expect("1 GiB page", off, map + off, want, page_size);
	}
	munmap(map, HUGE_BYTES);
	if (huge_pages(0))
		fail("the 1 GiB page cannot be given back");
	if (hugetlb_areas_used())
		fail("%lu pages of the area are still used", hugetlb_areas_used());
}

/* A reference outlives the mapping and the pool: the page may not be lent before it is gone. */
static void hugetlb_held(void)
{
	struct iovec vec = { .iov_len = page_size };
	char *want = page_buffer(page_size), *got = page_buffer(page_size);
	int ends[2];
	char *map;

	need_hugetlb();
	map = huge_map();
	stamp(want, 0, page_size, 9, 1);
	memcpy(map, want, page_size);
	MUST(pipe(ends));
	vec.iov_base = map;
	MUST(vmsplice(ends[1], &vec, 1, 0));
	munmap(map, HUGE_BYTES);
	huge_pages(0);
	if (!hugetlb_areas_used())
		fail("the area took back a page that a pipe holds");
	MUST(read(ends[0], got, page_size));
	expect("what the pipe held", 0, got, want, page_size);
	huge_pages(0);
	/* quarantined pages are looked at from time to time */
	for (int i = 0; i < 100 && hugetlb_areas_used(); i++)
		usleep(100000);
	if (hugetlb_areas_used())
		fail("%lu pages of the area are still used", hugetlb_areas_used());
}

/* Camera: vivid with buffers from vb2-dma-contig */

#define PHOTO_BUFFERS	4
#define PHOTO_BYTES	(1920ul * 1080 * 2)
#define PHOTO_FORMAT	"width=1920,height=1080,pixelformat=YUYV"

static void photo(void)
{
	unsigned long pages = PHOTO_BUFFERS * ((PHOTO_BYTES + page_size - 1) / page_size);
	unsigned long got, free_before, frame[PHOTO_BUFFERS];
	char allocators[64] = "";
	FILE *file;

	need_area(&area);
	if (access("/dev/video0", F_OK) ||
	    !read_word("/sys/module/vivid/parameters/allocators", allocators, sizeof(allocators)))
		lack("camera", "no vivid camera");
	if (allocators[0] != '1')
		lack("camera", "vivid.allocators=1 is not set: no buffers from an area");
	if (area.pages < 2 * pages)
		lack("camera", "the area is too small for %d shots", PHOTO_BUFFERS);

	free_before = area_free(&area);
	got = area_number(&area, "alloc_pages_success");
	if (shell("v4l2-ctl -d /dev/video0 --set-fmt-video=" PHOTO_FORMAT
		  " --stream-mmap=%d --stream-count=1 --stream-to=/tmp/shot", PHOTO_BUFFERS))
		lack("camera", "v4l2-ctl does not work here");
	got = area_number(&area, "alloc_pages_success") - got;
	if (got < pages)
		fail("the camera took %lu pages from the area instead of %lu", got, pages);
	if (area_free(&area) != free_before)
		fail("%lu pages are free instead of %lu", area_free(&area), free_before);

	/* The test picture is not black. */
	file = fopen("/tmp/shot", "re");
	if (!file || fseek(file, PHOTO_BYTES / 2, SEEK_SET) ||
	    fread(frame, sizeof(frame), 1, file) != 1 || !frame[0])
		fail("there is no picture");
	fclose(file);
}

int main(void)
{
	start(4);
	run(heap_accounting, NEED_NOTHING, "a dma-buf heap takes and returns what was asked for");
	run(hugetlb_page, NEED_NOTHING, "a 1 GiB page comes from the area and goes back");
	run(hugetlb_held, NEED_NOTHING,
	    "a 1 GiB page that a pipe holds is not lent before the pipe is empty");
	run(photo, NEED_NOTHING, "a camera streams from buffers of the area");
	return finish();
}
