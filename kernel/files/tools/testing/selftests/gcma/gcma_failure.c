// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that fails while it holds a copy: what is on a disk, too, is read there; of what is
 * nowhere else, who touches it gets SIGBUS, and nobody another page. Nobody gets the frame.
 *
 * The frames are lost for the rest of the boot, so no program that wants the whole area can follow
 * this one.
 */
#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../cma/cma_util.h"

#define CORRUPT		"/sys/kernel/debug/hwpoison/corrupt-pfn"
#define BYTES		MIB(1)
#define SWAP_BYTES	MIB(8)
#define VICTIM		37	/* page whose copy fails */
#define OUT_SECONDS	60	/* that reclaim is given, on a busy machine */
#define CHUNK		64	/* pages that a primary takes at a time */

static struct volume volume, disk;
static const char *policy;
static bool by_primary;		/* the frame is wanted before anybody touches the page */

static size_t pages_in(size_t bytes)
{
	return bytes / page_size;
}

/* ------ the frame of a copy --------------------------------------------- */

static unsigned long ino, slot, frame;	/* which copy, and where events say that it is */

static bool of_the_copy(const char *fields)
{
	unsigned long of, index, pfn;

	if (sscanf(fields, "dev=%*u:%*u ino=%lx index=%lu pfn=0x%lx", &of, &index, &pfn) != 3 ||
	    of != ino || index != slot)
		return false;
	frame = pfn;
	return true;
}

static bool in_the_frame(const char *fields)
{
	unsigned long pfn;

	return sscanf(fields, "dev=%*u:%*u ino=%*x index=%*u pfn=0x%lx", &pfn) == 1 &&
	       pfn == frame;
}

static void copy_fails(void)
{
	if (!events("gcma_store", of_the_copy))
		fail("no copy of page %d was kept", VICTIM);
	/* an error, maybe: that it is not known whose the page is */
	write_file(CORRUPT, "%#lx", frame);
	if (!(page_flags(frame) & FLAG(KPF_HWPOISON)))
		fail("the frame did not fail: nothing is tested");
}

static void prepare(void)
{
	need_gcma();
	if (access(CORRUPT, W_OK))
		lack("poison", "no " CORRUPT " (CONFIG_HWPOISON_INJECT)");
	events_begin("gcma");
}

/* All that can be had in pieces, and so everything but what failed, is in a primary's hands. */
static void take_what_there_is(void)
{
	struct area area;
	int heap;

	need_area(&area);
	heap = area_heap(&area);
	if (heap < 0)
		lack("heap", "no dma-buf heap of the area");
	for (unsigned int pages = CHUNK; pages; pages /= 2)
		while (heap_alloc(heap, pages * page_size) >= 0)
			;
	if (heap_alloc(heap, page_size) >= 0 || !(page_flags(frame) & FLAG(KPF_HWPOISON)))
		fail("the frame that failed was given to a primary");
}

/* ------ files ----------------------------------------------------------- */

static void file_page(void)
{
	char *want = page_buffer(BYTES), *got = page_buffer(BYTES);
	unsigned long reads, loads;
	struct stat stat;
	int fd;

	need_volume(&volume);
	prepare();
	fd = volume_file(&volume, "file", O_RDWR | O_CREAT | O_TRUNC);
	stamp(want, 0, BYTES, 1, 1);
	pwrite_all(fd, want, BYTES, 0);
	MUST(fsync(fd));
	evict_to_area(fd);
	MUST(fstat(fd, &stat));
	ino = stat.st_ino;
	slot = VICTIM;
	copy_fails();
	reads = disk_reads(&volume);
	loads = counter("loads");
	pread_all(fd, got, BYTES, 0);
	expect("the file", 0, got, want, BYTES);
	reads = disk_reads(&volume) - reads;
	loads = counter("loads") - loads;
	if (reads < page_size || reads > BYTES / 4 || loads < pages_in(BYTES) / 4 * 3)
		fail("%lu bytes were read, %lu pages loaded", reads, loads);
	events_end("gcma");
	events_begin("gcma");
	for (int i = 0; i < 3; i++) {
		evict(fd);
		pread_all(fd, got, BYTES, 0);
		expect("the file", 0, got, want, BYTES);
	}
	if (events("gcma_store", in_the_frame))
		fail("a copy was put into the frame that failed");
	take_what_there_is();
	pread_all(fd, got, BYTES, 0);
	expect("the file", 0, got, want, BYTES);
	events_end("gcma");
}

/* ------ swapped-out pages ------------------------------------------------- */

static char *memory, *want;

static void swap_begin(void)
{
	int fd;

	snprintf(disk.image, sizeof(disk.image), "/tmp/disk");
	fd = MUST(open(disk.image, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	MUST(-posix_fallocate(fd, 0, SWAP_BYTES));
	close(fd);
	if (!loop_open(&disk, SWAP_BYTES))
		lack("swap", "no swap device %s: %s", disk.dev, disk.missing);
	MUST(make_swap(disk.dev));
	if (swapon(disk.dev, 0))
		lack("swap", "swapon: %s", strerror(errno));
}

/* Until all of them have left the swap cache, and are copies */
static void swap_out(void)
{
	unsigned long begin = counter("stores_swap"), stores = 0;
	u64 end = now_ns() + OUT_SECONDS * 1000000000ull;

	while (stores < pages_in(BYTES)) {
		if (now_ns() > end)
			fail("%lu of %zu pages went to the area", stores, pages_in(BYTES));
		if (!resident_pages(memory, BYTES)) {
			/* one that somebody held for a moment was evicted without a copy */
			memcpy(memory, want, BYTES);
			begin = counter("stores_swap");
		}
		MUST(madvise(memory, BYTES, MADV_PAGEOUT));
		flush_statistics();
		push_out(BYTES);
		stores = counter("stores_swap") - begin;
	}
}

static void others_check(void)
{
	for (size_t i = 0; i < pages_in(BYTES); i++)
		if (i != VICTIM)
			expect("a page", i * page_size, memory + i * page_size,
			       want + i * page_size, page_size);
}

static void victim_check(void)
{
	expect("the page", VICTIM * page_size, memory + VICTIM * page_size,
	       want + VICTIM * page_size, page_size);
}

static bool touch_dies(void)
{
	pid_t pid = background(victim_check);
	int status;

	MUST(waitpid(pid, &status, 0));
	if (status && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS))
		fail("who touches the page ends with status %#x", status);
	return status;
}

/* The page in the swap cache whose content is not there: what was lost with the frame */
static unsigned long lost_page(void)
{
	unsigned long pfn = 0, found = 0, nr = 0;
	int fd = MUST(open("/proc/kpageflags", O_RDONLY | O_CLOEXEC));
	u64 flags[512];
	ssize_t got;

	while ((got = MUST(read(fd, flags, sizeof(flags)))) > 0)
		for (size_t i = 0; i < got / sizeof(*flags); i++, pfn++)
			if (flags[i] & FLAG(KPF_SWAPCACHE) && !(flags[i] & FLAG(KPF_UPTODATE))) {
				found = pfn;
				nr++;
			}
	close(fd);
	if (nr != 1)
		fail("%lu pages of the swap cache have no content", nr);
	return found;
}

static void swapped_page(void)
{
	unsigned long reads;

	prepare();
	swap_begin();
	if (policy && areas_write("swap_policy", "%s", policy))
		lack("dirty", "no swap policy %s (CONFIG_GCMA_DIRTY)", policy);
	want = page_buffer(BYTES);
	stamp(want, 0, BYTES, 1, 1);
	MUST(mlockall(MCL_CURRENT));
	memory = page_buffer(BYTES);
	memcpy(memory, want, BYTES);
	swap_out();
	/* one that somebody held for a moment was written */
	if (policy && counter("tenants_dirty") < pages_in(BYTES) * 15 / 16)
		fail("%lu of %zu pages are in the area only", counter("tenants_dirty"),
		     pages_in(BYTES));
	if (!is_swapped(memory + VICTIM * page_size))
		fail("page %d is not swapped out", VICTIM);
	ino = 0;
	slot = swap_offset(memory + VICTIM * page_size);
	copy_fails();
	if (by_primary)
		take_what_there_is();
	reads = vm_event("pswpin");
	if (touch_dies() != !!policy)
		fail("who touches the page %s", policy ? "sees something" : "dies");
	reads = vm_event("pswpin") - reads;
	if (!policy && !reads)
		fail("the page was not read from swap");
	others_check();
	if (policy && !touch_dies())
		fail("who touches the page again sees something");
	if (!by_primary)
		take_what_there_is();
	others_check();
	/* The page that holds its place fails as well, and cannot be read again either. */
	if (policy) {
		write_file(CORRUPT, "%#lx", lost_page());
		if (!touch_dies())
			fail("who touches the page after a second failure sees something");
	}
	/* and it is in nobody's way when it is gone */
	MUST(munmap(memory, BYTES));
	MUST(swapoff(disk.dev));
	if (counter("tenants_dirty"))
		fail("%lu pages are in the area only", counter("tenants_dirty"));
	events_end("gcma");
}

static void swap_end(void)
{
	swapoff(disk.dev);
	volume_close(&disk);
	areas_restore("swap_policy");
}

static const struct test {
	const char *policy;
	bool by_primary;
	const char *name;
} tests[] = {
	{ NULL, false, "swapped out: with its copy a page is not lost" },
	{ NULL, true, "swapped out: with its copy a page is not lost, if a primary comes" },
	{ "put-back", false, "put-back: who touches what was nowhere else dies" },
	{ "put-back", true, "put-back: who touches what was in a primary's way dies" },
	{ "write-back", true, "write-back: who touches what was in a primary's way dies" },
	{ "move-aside", true, "move-aside: who touches what was in a primary's way dies" },
};

int main(void)
{
	start(1 + ARRAY_SIZE(tests));
	/* or its own pages are swapped out beside those of the tests, and counted */
	MUST(mlockall(MCL_CURRENT));
	volume_open(&volume, &volume_kinds[0]);
	run(file_page, NEED_LOADS, "%s: with its copy a page is not lost", volume_kinds[0].name);
	volume_close(&volume);
	for (unsigned int i = 0; i < ARRAY_SIZE(tests); i++) {
		policy = tests[i].policy;
		by_primary = tests[i].by_primary;
		run(swapped_page, NEED_STORES, "%s", tests[i].name);
		swap_end();
	}
	return finish();
}
