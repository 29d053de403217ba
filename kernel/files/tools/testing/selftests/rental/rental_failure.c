// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that fails while it is lent: files hold what they held, and nobody gets the frame.
 *
 * A page with an error that the hardware told of is dropped and read again; one that is taken out
 * of use before it fails moves, or is read again. The frames are lost for the rest of the boot, so
 * no program that wants the whole area can follow this one.
 */
#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rental_util.h"

#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE 101
#endif

#define BYTES		MIB(1)
#define VICTIM		37	/* page of the file: in the middle of a large folio */
#define ALIGNED		256	/* pages: where what a heap gives may begin (CMA_ALIGNMENT) */

static const struct kind *kind;
static struct volume volume;
static int advice;		/* of this test */

static void child_lives(void)
{
	for (;;)
		pause();
}

static void page_fails(void)
{
	size_t pages = pages_in(BYTES);
	u64 *before = page_buffer(pages * sizeof(u64)), *after = page_buffer(pages * sizeof(u64));
	unsigned long frame, disk;
	int fd, device, buffer;
	pid_t other;
	char *map;

	need_volume(&volume);
	begin("lazy");
	fd = file_lent(&volume, "file", 1, BYTES);
	map = map_fd(fd, BYTES, PROT_READ);
	touch_pages(map, BYTES);
	other = background(child_lives); /* with these mappings */
	find_pages(fd, before, pages);
	frame = frame_in_area(before[VICTIM]);

	disk = disk_reads(&volume);
	if (madvise(map + VICTIM * page_size, page_size, advice)) {
		if (errno == EINVAL)
			lack("poison", "no memory failures (CONFIG_MEMORY_FAILURE)");
		fail("madvise: %s", strerror(errno));
	}
	if (!(page_flags(before[VICTIM]) & FLAG(KPF_HWPOISON)))
		fail("the page did not fail: nothing is tested");
	map_check(map, 1, BYTES);
	file_check(fd, 1, BYTES);
	expect_few_reads(&volume, disk, 1);
	find_pages(fd, after, pages);
	for (size_t i = 0; i < pages; i++) {
		if (after[i] == before[VICTIM])
			fail("page %zu lies in the frame that failed", i);
		if (i != VICTIM && !kind->large && after[i] != before[i])
			fail("page %zu did not fail, and is elsewhere", i);
	}

	/* It is nobody's, but all others can be had. */
	expect_refused(frame, 1, EBUSY);
	device = driver_open(frame_in_area(before[VICTIM + 1]), 1);
	if (device < 0)
		fail("the frame of the next page: %s", strerror(errno));
	close(device);
	if (most() >= area.pages)
		fail("the whole area can still be asked for");
	buffer = take(most() - ALIGNED);
	if (buffer < 0)
		fail("not even %lu pages could be had: %s", most() - ALIGNED, strerror(errno));
	map_check(map, 1, BYTES);
	file_check(fd, 1, BYTES);
	close(buffer);

	/* Lent again is all but what failed. */
	stop(other);
	munmap(map, BYTES);
	forget(fd);
	map = map_fd(fd, BYTES, PROT_READ);
	map_check(map, 1, BYTES);
	file_check(fd, 1, BYTES);
	find_pages(fd, after, pages);
	for (size_t i = 0; i < pages; i++)
		if (after[i] == before[VICTIM])
			fail("page %zu was lent the frame that failed", i);
}

static const struct test {
	const char *name;
	int advice;
} tests[] = {
	{ "of a lent page with an error the frame is nobody's", MADV_HWPOISON },
	{ "of a lent page that is taken out of use the frame is nobody's", MADV_SOFT_OFFLINE },
};

static const char * const on[] = { "ext4", "xfs with large folios", "f2fs", "btrfs" };

int main(void)
{
	start(ARRAY_SIZE(on) * ARRAY_SIZE(tests));
	for (unsigned int k = 0; k < ARRAY_SIZE(on); k++) {
		kind = kind_named(on[k]);
		volume_open(&volume, &kind->volume);
		for (unsigned int i = 0; i < ARRAY_SIZE(tests); i++) {
			advice = tests[i].advice;
			run(page_fails, NEED_NOTHING, "%s: %s", on[k], tests[i].name);
		}
		volume_close(&volume);
	}
	return finish();
}
