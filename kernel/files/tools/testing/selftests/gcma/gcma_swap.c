// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages that were swapped out come back as they were, from the area or from the device: anonymous
 * ones and those of tmpfs, single pages and large folios, on a disk, in a file, on zram, behind
 * zswap and on a disk that fails, whatever becomes of their slots meanwhile; also those that
 * were not written and are in the area only, whatever the primaries do.
 */
#include <fcntl.h>
#include <glob.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysinfo.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../cma/cma_util.h"

#define GROUP_TRIES	20
#define MAX_PAGES	1024
#define BYTES		(pages * page_size)
#define SWAP_BYTES	MIB(24)
#define FILE_ID		7
#define OTHER_ID	8	/* what nobody may see */

static unsigned int pages;	/* of the memory that is tested */

/* Policies under which pages are not written, and what becomes of them before a primary */
static const struct policy {
	const char *name;
	const char *counter;
	const char *event;
	bool stay;	/* in the area, as long as there are frames */
	bool written;
} policies[] = {
	{ "write-back", "written_back", "gcma_write_back", false, true },
	{ "put-back", "put_back", "gcma_put_back", false, false },
	{ "move-aside", "moved_aside", "gcma_move_aside", true, false },
};

#define WRITE_BACK	(&policies[0])
#define PUT_BACK	(&policies[1])
#define MOVE_ASIDE	(&policies[2])

static const struct policy *policy;	/* NULL: all pages are written */

/* ------ settings of the kernel, as they were when the program began ------ */

#define KSM		"/sys/kernel/mm/ksm/"
#define THP		"/sys/kernel/mm/transparent_hugepage/"
#define CLUSTER		"/proc/sys/vm/page-cluster"
#define ZSWAP		"/sys/module/zswap/parameters/"
#define FAULTS		"/sys/kernel/debug/fail_page_alloc/"

static struct {
	const char *path;
	char was[64];
} settings[] = {
	{ .path = THP "hugepages-64kB/enabled" },
	{ .path = THP "hugepages-2048kB/enabled" },
	{ .path = ZSWAP "enabled" },
	{ .path = ZSWAP "max_pool_percent" },
	{ .path = ZSWAP "shrinker_enabled" },
	{ .path = CLUSTER },
	{ .path = KSM "pages_to_scan" },
	{ .path = KSM "sleep_millisecs" },
	{ .path = KSM "run" },
	{ .path = FAULTS "min-order" },
	{ .path = FAULTS "ignore-gfp-highmem" },
	{ .path = FAULTS "times" },
};

static void setting_read(const char *path, char *value, size_t size)
{
	char word[64] = "", *at = word;

	read_word(path, word, sizeof(word));
	/* one of several is in brackets */
	if (strchr(word, '[')) {
		at = strchr(word, '[') + 1;
		at[strcspn(at, "]")] = '\0';
	}
	snprintf(value, size, "%s", at);
}

static void settings_keep(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(settings); i++)
		setting_read(settings[i].path, settings[i].was, sizeof(settings[i].was));
}

/* To zswap every write is a sign of life, and then zram gives no large folios back. */
static void settings_restore(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(settings); i++) {
		char now[64];

		setting_read(settings[i].path, now, sizeof(now));
		if (strcmp(now, settings[i].was))
			write_file(settings[i].path, "%s", settings[i].was);
	}
}

/* ------ devices --------------------------------------------------------- */

static struct volume volume, disk, second;
static char swap_path[64];	/* what is swapped to now */
static int swap_flags;
static const char *lacking;	/* without which nothing is */
static char missing[160];	/* and why */

/*
 * A write to it needs no memory. A loop device takes one that was cut short for a whole one: where
 * its file finds no more memory the rest is lost, without an error, and is zeroes afterwards.
 */
static bool device_new(struct volume *device, const char *image, size_t bytes)
{
	int fd;

	snprintf(device->image, sizeof(device->image), "/tmp/%s", image);
	fd = open(device->image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || fallocate(fd, 0, 0, bytes)) {
		snprintf(missing, sizeof(missing), "%s: %s", device->image, strerror(errno));
		return false;
	}
	close(fd);
	if (loop_open(device, bytes))
		return true;
	snprintf(missing, sizeof(missing), "%s", device->missing);
	return false;
}

static bool swap_begin(const char *path, int flags)
{
	int ret;

	snprintf(swap_path, sizeof(swap_path), "%s", path);
	swap_flags = flags;
	*missing = '\0';
	ret = make_swap(path);
	if (ret)
		snprintf(missing, sizeof(missing), "%s: %s", path, strerror(-ret));
	else if (swapon(path, flags))
		snprintf(missing, sizeof(missing), "swapon %s: %s", path, strerror(errno));
	return !*missing;
}

/* Else what is swapped out is lost with the device. A test may have left it off already. */
static void swap_end(const char *path)
{
	if (!swapoff(path) || errno == EINVAL || errno == ENOENT)
		return;
	printf("Bail out! swapoff %s: %s\n", path, strerror(errno));
	exit(EXIT_FAILURE);
}

static void need_swap(void)
{
	if (*missing)
		lack(lacking, "%s", missing);
	need_gcma();
}

/* Before each test, for the last one may have left other settings. */
static void policy_begin(const struct policy *wanted)
{
	int ret;

	policy = wanted;
	if (!policy || *missing)
		return;
	areas_restore("dirty_max");
	ret = areas_write("swap_policy", "%s", policy->name);
	if (ret) {
		lacking = "dirty";
		snprintf(missing, sizeof(missing), "swap_policy: %s", strerror(-ret));
	}
}

static void policy_end(void)
{
	areas_restore("swap_policy");
	areas_restore("dirty_max");
	policy = NULL;
}

static void disk_begin(void)
{
	if (device_new(&disk, "disk", SWAP_BYTES))
		swap_begin(disk.dev, 0);
}

/* Half of the memory of a test finds a place there, if nobody else's does. */
#define SMALL_PAGES	(MAX_PAGES / 2)

static void small_begin(void)
{
	if (device_new(&disk, "disk", SMALL_PAGES * page_size))
		swap_begin(disk.dev, 0);
}

/* As long as there is one, slots are read ahead, and not pages by their addresses. */
static void rotating_begin(void)
{
	char path[64];

	if (!device_new(&disk, "disk", SWAP_BYTES))
		return;
	snprintf(path, sizeof(path), "/sys/block/%s/queue/rotational", strrchr(disk.dev, '/') + 1);
	if (write_file(path, "1"))
		snprintf(missing, sizeof(missing), "no %s", path);
	else
		swap_begin(disk.dev, 0);
}

static void disk_end(void)
{
	swap_end(disk.dev);
	volume_close(&disk);
}

/* The second one is used while the first is full. */
static void disks_begin(void)
{
	if (device_new(&second, "second", MIB(1)) && device_new(&disk, "disk", SWAP_BYTES) &&
	    swap_begin(disk.dev, SWAP_FLAG_PREFER | 1))
		swap_begin(second.dev, SWAP_FLAG_PREFER | 2);
}

static void disks_end(void)
{
	swap_end(second.dev);
	volume_close(&second);
	disk_end();
}

static void file_begin(const char *name)
{
	const struct volume_kind *of = volume_kinds;
	char path[48];

	while (strcmp(of->name, name))
		of++;
	volume_open(&volume, of);
	if (volume.loop < 0 || *volume.missing) {
		snprintf(missing, sizeof(missing), "%s", volume.missing);
		return;
	}
	snprintf(path, sizeof(path), "%s/swap", volume.dir);
	if (shell("dd if=/dev/zero of=%s bs=1M count=20 && chmod 600 %s", path, path))
		snprintf(missing, sizeof(missing), "no room for a swap file");
	else
		swap_begin(path, 0);
}

static void ext4_begin(void)
{
	file_begin("ext4");
}

static void xfs_begin(void)
{
	file_begin("xfs");
}

static void file_end(void)
{
	swap_end(swap_path);
	volume_close(&volume);
}

static void zram_begin(void)
{
	if (write_file("/sys/block/zram0/disksize", "%zu", SWAP_BYTES))
		snprintf(missing, sizeof(missing), "no zram");
	else
		swap_begin("/dev/zram0", 0);
}

static void zram_end(void)
{
	swap_end("/dev/zram0");
	write_file("/sys/block/zram0/reset", "1");
}

static void zswap_begin(void)
{
	disk_begin();
	write_file(ZSWAP "shrinker_enabled", "N");
	if (write_file(ZSWAP "enabled", "Y")) {
		lacking = "zswap";
		snprintf(missing, sizeof(missing), "no zswap");
	}
}

static void zswap_end(void)
{
	write_file(ZSWAP "enabled", "N");
	disk_end();
}

#define NULL_DISK	"/sys/kernel/config/nullb/gcma_swap/"

/* A disk in memory that can fail, and has only what was written */
static void null_begin(size_t bytes, int flags)
{
	lacking = "nullblk";
	snprintf(missing, sizeof(missing), "no null_blk, or no configfs for it");
	if (access("/sys/kernel/config/nullb", F_OK))
		mount("configfs", "/sys/kernel/config", "configfs", 0, NULL);
	if (mkdir(NULL_DISK, 0755) || write_file(NULL_DISK "size", "%zu", bytes >> 20) ||
	    write_file(NULL_DISK "memory_backed", "1") || write_file(NULL_DISK "power", "1") ||
	    access(NULL_DISK "badblocks", F_OK))
		return;
	for (int tries = 0; access("/dev/gcma_swap", F_OK) && tries < 100; tries++)
		usleep(10000);
	swap_begin("/dev/gcma_swap", flags);
}

static void null_end(void)
{
	swap_end("/dev/gcma_swap");
	write_file(NULL_DISK "power", "0");
	rmdir(NULL_DISK);
}

static void failing_begin(void)
{
	null_begin(SWAP_BYTES, 0);
}

static void failing_end(void)
{
	write_file(NULL_DISK "badblocks", "-0-%zu", SWAP_BYTES / 512 - 1);
	null_end();
}

static size_t swap_used(const char *path)
{
	FILE *swaps = fopen("/proc/swaps", "re");
	char line[256], name[64];
	size_t used, kib = 0;

	if (!swaps)
		fail("/proc/swaps: %s", strerror(errno));
	while (fgets(line, sizeof(line), swaps))
		if (sscanf(line, "%63s %*s %*u %zu", name, &used) == 2 && !strcmp(name, path))
			kib = used;
	fclose(swaps);
	return KIB(kib);
}

/*
 * What is swapped out goes to a device that is not the first one, most of it behind the slots of
 * the first of its address spaces: each next cluster is in the next one. So where a copy's slot is
 * has to be found by its mapping and index.
 */
#define SPACE_PAGES	16384	/* slots of an address space: SWAP_ADDRESS_SPACE_PAGES */
#define SPACES		16

static void large_begin(void)
{
	if (device_new(&second, "second", MIB(1)) &&
	    swap_begin(second.dev, SWAP_FLAG_PREFER | 1))
		null_begin(SPACES * SPACE_PAGES * page_size, SWAP_FLAG_PREFER | 2);
}

static void large_end(void)
{
	null_end();
	swap_end(second.dev);
	volume_close(&second);
}

/* ------ memory ---------------------------------------------------------- */

/* Whose memory it is, and of what folios; also bits, of which a test says what it is for. */
enum {
	ANON = 1, TMPFS = 2, ANY = ANON | TMPFS,
	SINGLE = 4, KIB64 = 8, MIB2 = 16, LARGE = KIB64 | MIB2, ALL = ANY | SINGLE | LARGE,
};

static const struct kind {
	const char *name;
	unsigned int is;
	unsigned int pages;
	unsigned int kib;	/* of a large folio */
} kinds[] = {
	{ "anonymous pages", ANON | SINGLE, 256, 0 },
	{ "tmpfs pages", TMPFS | SINGLE, 256, 0 },
	{ "anonymous folios of 64 KiB", ANON | KIB64, 256, 64 },
	{ "anonymous folios of 2 MiB", ANON | MIB2, MAX_PAGES, 2048 },
	{ "tmpfs folios of 2 MiB", TMPFS | MIB2, MAX_PAGES, 2048 },
};

#define HUGE_TMPFS	"/tmp/huge"

static const struct kind *kind;
static bool shared;		/* it belongs to tmpfs */
static char *memory;
static int file;		/* of tmpfs */
static char *want;		/* what is in it */

static void kind_begin(const struct kind *new)
{
	kind = new;
	pages = kind->pages;
	shared = kind->is & TMPFS;
	write_file(THP "hugepages-64kB/enabled", kind->kib == 64 ? "madvise" : "never");
	write_file(THP "hugepages-2048kB/enabled", kind->kib == 2048 ? "madvise" : "never");
}

/* How many folios were swapped out as they were */
static unsigned long large_out(void)
{
	unsigned long number;
	char path[128];

	snprintf(path, sizeof(path), THP "hugepages-%ukB/stats/swpout", kind->kib);
	if (!read_number(path, &number))
		lack("thp", "no %s", path);
	return number;
}

static char *address_space(size_t bytes)
{
	char *at = mmap(NULL, bytes + MIB(2), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	return (char *)roundup((unsigned long)at, MIB(2));
}

static char *memory_map(void)
{
	int flags = MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
	char *at = mmap(address_space(BYTES), BYTES, PROT_READ | PROT_WRITE, flags, file, 0);

	if (at == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	if (kind->kib && !shared && madvise(at, BYTES, MADV_HUGEPAGE))
		lack("thp", "MADV_HUGEPAGE: %s", strerror(errno));
	return at;
}

static void file_new(void)
{
	if (kind->kib)
		file = open(HUGE_TMPFS "/memory", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	else
		file = memfd_create("memory", MFD_CLOEXEC);
	if (file < 0)
		lack("thp", HUGE_TMPFS ": %s", strerror(errno));
	unlink(HUGE_TMPFS "/memory");
	MUST(ftruncate(file, BYTES));
}

static void memory_new(void)
{
	need_swap();
	file = -1;
	if (shared)
		file_new();
	want = page_buffer(BYTES);
	/* what reclaim finds is the memory, and nothing else of this process */
	MUST(mlockall(MCL_CURRENT));
	memory = memory_map();
}

static void memory_gone(void)
{
	MUST(munmap(memory, BYTES));
	MUST(munmap(want, BYTES));
	if (shared)
		close(file);
}

static void memory_write(unsigned int first, unsigned int nr, unsigned int version)
{
	stamp(want + first * page_size, first * page_size, nr * page_size, FILE_ID, version);
	memcpy(memory + first * page_size, want + first * page_size, nr * page_size);
}

static void memory_check(void)
{
	expect("swapped memory", 0, memory, want, BYTES);
}

static void page_check(unsigned int i)
{
	expect("a page", i * page_size, memory + i * page_size, want + i * page_size, page_size);
}

/* Pages of the memory that are mapped, or in the swap cache */
static unsigned long resident(void)
{
	return resident_pages(memory, BYTES);
}

#define OUT_SECONDS	60	/* that reclaim is given, on a busy machine */
#define FEW_SECONDS	2	/* after which a few need not have been offered */

/*
 * Until so many pages have left the swap cache: reclaim tells that by offering them. It offers
 * those, too, that processes left there when they ended, so it is looked whether it was these.
 * One that somebody held for a moment is evicted without a copy, and not offered again.
 * The last ones may be on the active list. Reclaim shortens it when the group's statistics say
 * so, and the kernel adds up small numbers every 2 s only.
 */
static bool out(unsigned long nr)
{
	unsigned long begin = counter("stores_swap") + counter("refused_cheap"), offered;
	unsigned long stay = resident();
	u64 start = now_ns();

	stay -= MIN(stay, nr);
	while (now_ns() - start < OUT_SECONDS * 1000000000ull) {
		MUST(madvise(memory, BYTES, MADV_PAGEOUT));
		flush_statistics();
		push_out(BYTES);
		offered = counter("stores_swap") + counter("refused_cheap") - begin;
		if (now_ns() - start > FEW_SECONDS * 1000000000ull)
			offered += nr / 32;
		if (offered >= nr && resident() <= stay)
			return true;
		usleep(1000);
	}
	return false;
}

static void must_out(unsigned long nr)
{
	unsigned long begin = counter("stores_swap");

	if (!out(nr))
		fail("%lu of %u pages were to leave memory: %lu went to the area, %lu stay", nr,
		     pages, counter("stores_swap") - begin, resident());
}

static void swap_out(void)
{
	must_out(pages);
}

/* The device as it was at first: what former tests left in the swap cache goes, too. */
static void slots_anew(void)
{
	MUST(swapoff(swap_path));
	MUST(swapon(swap_path, swap_flags));
}

static void memory_swapped(unsigned int version)
{
	unsigned long large;

	memory_new();
	memory_write(0, pages, version);
	if (!kind->kib) {
		swap_out();
		return;
	}
	/* with all slots free there is room for large folios */
	slots_anew();
	large = large_out();
	swap_out();
	large = large_out() - large;
	/* only those that are written are counted */
	if (!policy && large < BYTES / KIB(kind->kib))
		fail("%lu of %zu large folios were swapped out as they were", large,
		     BYTES / KIB(kind->kib));
}

/* Bytes of the memory that page tables, or tmpfs, have in swap */
static unsigned long swapped_bytes(void)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	unsigned long start, end, part, kib = 0;
	bool found = false;
	char line[512];

	if (!smaps)
		lack("kpageflags", "no /proc/self/smaps (CONFIG_PROC_PAGE_MONITOR)");
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			found = start >= (unsigned long)memory &&
				end <= (unsigned long)memory + BYTES;
		else if (found && sscanf(line, "Swap: %lu", &part) == 1)
			kib += part;
	}
	fclose(smaps);
	return KIB(kib);
}

/*
 * What is checked takes no I/O. A page or two may be in the swap cache still, or were not
 * copied, for somebody held them for a moment.
 */
static unsigned long loads_begin, reads_begin;

static void loads_watch(void)
{
	loads_begin = counter("loads_swap");
	reads_begin = vm_event("pswpin");
}

static void loads_expect(unsigned long nr)
{
	unsigned long loads = counter("loads_swap") - loads_begin;
	unsigned long reads = vm_event("pswpin") - reads_begin;
	unsigned long few = MAX(nr / 16, 1ul);

	if (reads > few || loads + few < nr)
		fail("%lu pages were read, %lu loaded of %lu", reads, loads, nr);
}

/*
 * Primaries: some of the tenants go, or all. Some are so many that some of this memory's are
 * among them: others may have tenants, too.
 */
static int heap, buffers[1024];
static unsigned int nr_buffers;

static bool take_pages(unsigned long nr)
{
	struct area area;
	int buffer;

	if (!nr_buffers) {
		need_area(&area);
		heap = area_heap(&area);
		if (heap < 0)
			lack("heap", "no dma-buf heap of the area");
	}
	if (nr_buffers == ARRAY_SIZE(buffers))
		fail("%lu tenants stay", counter("tenants_swap"));
	buffer = heap_alloc(heap, nr * page_size);
	if (buffer >= 0)
		buffers[nr_buffers++] = buffer;
	return buffer >= 0;
}

/* More where somebody may have a frame, and no CPU, for longer than a primary waits */
static unsigned int take_tries = 1;

static void must_take(unsigned long nr)
{
	for (unsigned int tries = 1; !take_pages(nr); tries++)
		if (tries == take_tries)
			fail("%lu pages cannot be taken: %s", nr, strerror(errno));
}

static void take(bool all)
{
	unsigned long begin = counter("tenants_swap"), tenants = begin;

	while (tenants && (all || tenants == begin || tenants >= pages)) {
		must_take(all ? 512 : 128);
		tenants = counter("tenants_swap");
	}
}

static void give_back(void)
{
	while (nr_buffers)
		close(buffers[--nr_buffers]);
}

/* ------ tests ----------------------------------------------------------- */

static void come_back(void)
{
	memory_swapped(1);
	if (counter("tenants_swap") < pages - pages / 16)
		fail("%lu tenants", counter("tenants_swap"));
	loads_watch();
	memory_check();
	loads_expect(pages);
}

static void written_and_out_again(void)
{
	memory_swapped(1);
	for (unsigned int version = 2; version < 8; version++) {
		/* every other page; the others stay as they were, some of them in the area */
		for (unsigned int i = version % 2; i < pages; i += 2)
			memory_write(i, 1, version);
		out(pages / 2);
		if (version % 3 == 0)
			memory_check();
	}
	memory_check();
}

static void read_and_out_again(void)
{
	unsigned long writes;

	memory_swapped(1);
	/* read only: they stay on the device as they are, and need not be written again */
	for (int round = 0; round < 3; round++) {
		memory_check();
		writes = vm_event("pswpout");
		out(pages);
	}
	memory_check();
	diag("%lu pages written again", vm_event("pswpout") - writes);
}

static void unmapped(void)
{
	unsigned long dropped;

	memory_swapped(1);
	dropped = counter("dropped");
	memory_gone();
	/* slots are freed by the dozen */
	dropped = counter("dropped") - dropped;
	if (dropped < pages / 2)
		fail("%lu tenants of %u pages that are gone were dropped", dropped, pages);
	memory_new();
	memset(want, 0, BYTES);
	memory_check();
}

/* What they only read is loaded for one of them, and is there for all. */
static void forked(void)
{
	int begin[2], check[2], change[2];
	unsigned long loads;
	pid_t pids[4];
	char byte;

	MUST(pipe(begin));
	MUST(pipe(check));
	MUST(pipe(change));
	memory_swapped(1);
	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = MUST(fork());
		if (pids[i])
			continue;
		close(begin[1]);
		close(change[1]);
		if (MUST(read(begin[0], &byte, 1)) != 1)
			_exit(EXIT_FAILURE);
		memory_check();
		MUST(write(check[1], &byte, 1));
		if (MUST(read(change[0], &byte, 1)) != 1)
			_exit(EXIT_FAILURE);
		if (!shared) {
			memory_write(i * 8, 8, 10 + i);
			out(8);
		}
		memory_check();
		_exit(EXIT_SUCCESS);
	}
	/* who finds an end closed knows that the other died */
	close(check[1]);
	loads_watch();
	MUST(write(begin[1], "all of", ARRAY_SIZE(pids)));
	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++)
		if (MUST(read(check[0], &byte, 1)) != 1)
			fail("a child saw other content");
	memory_check();
	loads_expect(pages);
	loads = counter("loads_swap") - loads_begin;
	if (loads > pages + pages / 16)
		fail("%lu loads of %u pages that %zu processes share", loads, pages,
		     ARRAY_SIZE(pids) + 1);
	MUST(write(change[1], "all of", ARRAY_SIZE(pids)));
	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++) {
		int status;

		MUST(waitpid(pids[i], &status, 0));
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			fail("a child saw other content");
	}
	memory_check();
}

static bool is_zram(void)
{
	return strstr(swap_path, "zram");
}

static void swapped_off(void)
{
	memory_swapped(1);
	MUST(swapoff(swap_path));
	memory_check();
	if (!is_zram())
		MUST(make_swap(swap_path));
	MUST(swapon(swap_path, swap_flags));
	/* in the same slots */
	memory_write(0, pages, 2);
	swap_out();
	memory_check();
}

/* What was in the slots before is neither in the area nor on the device any more. */
static void swapped_on_again(void)
{
	char *other = page_buffer(MIB(1));
	unsigned long tenants;

	stamp(other, 0, MIB(1), OTHER_ID, 1);
	for (unsigned int version = 1; version <= 2; version++) {
		off_t bytes;
		int fd;

		memory_swapped(version);
		/* half of them were loaded, the others are in the area */
		for (unsigned int i = 0; i < pages; i += 2)
			page_check(i);
		memory_gone();
		MUST(swapoff(swap_path));
		tenants = counter("tenants_swap");
		if (tenants)
			fail("%lu tenants of a device that is off", tenants);
		fd = MUST(open(swap_path, O_WRONLY | O_CLOEXEC));
		bytes = MIN(lseek(fd, 0, SEEK_END), (off_t)MIB(2));
		for (off_t at = 0; at < bytes; at += MIB(1))
			pwrite_all(fd, other, MIB(1), at);
		MUST(fsync(fd));
		close(fd);
		MUST(make_swap(swap_path));
		MUST(swapon(swap_path, swap_flags));
	}
	memory_swapped(9);
	loads_watch();
	memory_check();
	loads_expect(pages);
}

static void taken_by_primary(void)
{
	unsigned long left, loads, reads;

	memory_swapped(1);
	take(false);
	left = counter("tenants_swap");
	loads = counter("loads_swap");
	reads = vm_event("pswpin");
	memory_check();
	loads = counter("loads_swap") - loads;
	reads = vm_event("pswpin") - reads;
	/* a large folio of which a page is missing is read as a whole */
	if (!left || (!loads && !kind->kib) || !reads)
		fail("of %lu tenants %lu were loaded, %lu pages were read", left, loads, reads);
	memory_write(0, pages, 2);
	out(pages / 2);
	give_back();
	memory_check();

	memory_write(0, pages, 3);
	swap_out();
	take(true);
	reads = vm_event("pswpin");
	memory_check();
	reads = vm_event("pswpin") - reads;
	if (reads < pages)
		fail("%lu of %u pages were read", reads, pages);
	give_back();
}

static void stay_locked(void)
{
	memory_swapped(1);
	loads_watch();
	MUST(mlock(memory, BYTES));
	loads_expect(pages);
	for (int i = 0; i < 3; i++)
		push_out(BYTES);
	if (swapped_bytes())
		fail("%lu bytes of locked memory are in swap", swapped_bytes());
	memory_check();
	MUST(munlock(memory, BYTES));
	memory_write(0, pages / 2, 2);
	must_out(pages / 2);
	memory_check();
}

/* MADV_FREE: what is swapped out is gone, what is in memory goes or stays. */
static void freed_lazily(void)
{
	unsigned int swapped = 0, kept = 0;
	unsigned long dropped;

	pages = MAX_PAGES;
	memory_swapped(1);
	for (unsigned int i = 0; i < pages / 2; i++)
		page_check(i);
	for (unsigned int i = 0; i < pages; i++) {
		if (is_swapped(memory + i * page_size)) {
			memset(want + i * page_size, 0, page_size);
			swapped++;
		}
	}
	dropped = counter("dropped");
	MUST(madvise(memory, BYTES, MADV_FREE));
	dropped = counter("dropped") - dropped;
	if (!swapped || swapped > pages / 2 || dropped < swapped / 2)
		fail("%u pages were swapped out, %lu tenants dropped", swapped, dropped);
	push_out(BYTES / 4);
	for (unsigned int i = 0; i < pages; i++) {
		if (!is_swapped(memory + i * page_size) && *(u64 *)(memory + i * page_size))
			kept++;
		else
			memset(want + i * page_size, 0, page_size);
		page_check(i);
	}
	diag("%u of %u pages stayed", kept, pages);
	memory_write(0, pages, 2);
	swap_out();
	memory_check();
}

/* Before it is swapped out a large folio loses pages, and after that again. */
static void unmapped_in_part(void)
{
	unsigned long dropped;

	pages = MAX_PAGES;
	memory_new();
	memory_write(0, pages, 1);
	for (unsigned int i = 0; i < pages; i += 8) {
		MUST(madvise(memory + i * page_size, page_size, MADV_DONTNEED));
		memset(want + i * page_size, 0, page_size);
	}
	must_out(pages - pages / 8);
	memory_check();
	memory_gone();

	memory_swapped(2);
	dropped = counter("dropped");
	for (unsigned int i = 0; i < pages; i += 4) {
		MUST(madvise(memory + i * page_size, page_size, MADV_DONTNEED));
		memset(want + i * page_size, 0, page_size);
	}
	dropped = counter("dropped") - dropped;
	if (dropped < pages / 8)
		fail("%lu tenants of %u pages that are gone were dropped", dropped, pages / 4);
	loads_watch();
	memory_check();
	loads_expect(pages - pages / 4);
	memory_write(0, pages, 3);
	swap_out();
	memory_check();
}

/* One fault fills a folio from the tenants of all its pages. */
static void large_loads(void)
{
	unsigned int nr = KIB(kind->kib) / page_size;
	unsigned long loads, misses, taken;

	memory_swapped(1);
	for (unsigned int i = 0; i < pages; i += nr) {
		loads = counter("loads_swap");
		page_check(i + i / nr % nr);
		loads = counter("loads_swap") - loads;
		if (loads != nr)
			fail("a fault in a folio of %u pages loaded %lu (was zswap in use?)", nr,
			     loads);
	}
	loads_watch();
	memory_check();
	loads_expect(0);

	/* Some of its tenants are gone: it is read. */
	memory_write(0, pages, 2);
	swap_out();
	take(false);
	memory_check();
	give_back();

	/* All are gone: it is read as it was, and each of them is missed. */
	memory_write(0, pages, 3);
	swap_out();
	taken = counter("tenants_swap");
	take(true);
	misses = counter("misses");
	memory_check();
	misses = counter("misses") - misses;
	/* not all that were taken need be of this process, and others may have gone */
	if (!taken || misses < taken / 2)
		fail("of %lu tenants that a primary took %lu were missed", taken, misses);
	give_back();
}

#define CONTENTS	8

static void same_content(void)
{
	unsigned long merging = 0;
	u64 end;

	memory_new();
	for (unsigned int i = 0; i < pages; i++)
		stamp(want + i * page_size, i % CONTENTS * page_size, page_size, FILE_ID, 1);
	memcpy(memory, want, BYTES);
	if (madvise(memory, BYTES, MADV_MERGEABLE))
		lack("ksm", "MADV_MERGEABLE: %s", strerror(errno));
	write_file(KSM "pages_to_scan", "%u", 4 * pages);
	write_file(KSM "sleep_millisecs", "1");
	write_file(KSM "run", "1");
	end = now_ns() + OUT_SECONDS * 1000000000ull;
	while (merging < pages - CONTENTS && now_ns() < end) {
		usleep(10000);
		if (!read_number("/proc/self/ksm_merging_pages", &merging))
			lack("ksm", "no /proc/self/ksm_merging_pages");
	}
	if (merging < pages - CONTENTS)
		fail("%lu of %u pages were merged", merging, pages);
	write_file(KSM "run", "0");
	must_out(CONTENTS);
	end = now_ns() + OUT_SECONDS * 1000000000ull;
	while (resident() && now_ns() < end) {
		push_out(BYTES);
		usleep(1000);
	}
	if (resident())
		fail("%lu of %u pages stay in memory", resident(), pages);
	loads_watch();
	memory_check();
	loads_expect(CONTENTS);
	/* some are alone now, some not */
	memory_write(0, pages / 2, 2);
	must_out(pages / 2);
	memory_check();
}

#ifndef UFFDIO_MOVE
struct uffdio_move {
	__u64 dst;
	__u64 src;
	__u64 len;
	__u64 mode;
	__s64 move;
};

#define UFFDIO_MOVE		_IOWR(UFFDIO, 0x05, struct uffdio_move)
#define UFFD_FEATURE_MOVE	0x10000
#endif

static int move_begin(char *to)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_MOVE };
	struct uffdio_register all = {
		.range = { (unsigned long)to, BYTES },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		lack("userfaultfd", "userfaultfd(2): %s", strerror(errno));
	if (ioctl(fd, UFFDIO_API, &api))
		lack("userfaultfd", "no UFFD_FEATURE_MOVE: %s", strerror(errno));
	MUST(ioctl(fd, UFFDIO_REGISTER, &all));
	return fd;
}

static void move(int fd, char *to, char *from, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		struct uffdio_move part = {
			.dst = (unsigned long)to + done,
			.src = (unsigned long)from + done,
			.len = bytes - done,
		};

		if (ioctl(fd, UFFDIO_MOVE, &part) && errno != EAGAIN)
			fail("UFFDIO_MOVE: %s", strerror(errno));
		done += MAX(part.move, 0);
	}
}

/* UFFDIO_MOVE takes swap entries from one address to another, not pages. */
static void other_address(void)
{
	char *from, *nothing;
	int fd;

	memory_swapped(1);
	from = memory;
	memory = memory_map();
	fd = move_begin(memory);
	loads_watch();
	move(fd, memory, from, BYTES);
	if (counter("loads_swap") != loads_begin || swapped_bytes() < BYTES)
		fail("%lu of %zu bytes stayed in swap", swapped_bytes(), BYTES);
	close(fd);
	memory_check();
	loads_expect(pages);
	nothing = page_buffer(BYTES);
	expect("what was moved away", 0, from, nothing, BYTES);
	memory_write(0, pages, 2);
	swap_out();
	memory_check();
}

static void zero(off_t from, size_t bytes)
{
	memset(want + from, 0, bytes);
}

static void punch(off_t from, size_t bytes)
{
	MUST(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, bytes));
	zero(from, bytes);
}

static void holes(void)
{
	unsigned long dropped;

	pages = MAX_PAGES;
	memory_swapped(1);
	dropped = counter("dropped");
	for (unsigned int i = 0; i < pages; i += 8) {
		punch(i * page_size, page_size);
		/* the ends of two, and all of one */
		punch((i + 3) * page_size + 100, 2 * page_size);
	}
	dropped = counter("dropped") - dropped;
	memory_check();
	if (kind->is & SINGLE && dropped < pages / 8)
		fail("%lu tenants of %u pages that are gone were dropped", dropped, pages / 4);
}

static void cut_off(void)
{
	unsigned long dropped;
	size_t half;

	pages = MAX_PAGES;
	half = BYTES / 2 + 100;
	memory_swapped(1);
	dropped = counter("dropped");
	MUST(ftruncate(file, half));
	dropped = counter("dropped") - dropped;
	if (dropped < pages / 4)
		fail("%lu tenants of %u pages that are gone were dropped", dropped, pages / 2);
	MUST(ftruncate(file, BYTES));
	zero(half, BYTES - half);
	memory_check();
	memory_write(0, pages, 2);
	swap_out();
	memory_check();
}

/* read(2) and write(2) */
static void by_system_calls(void)
{
	char *got = page_buffer(BYTES);

	memory_swapped(1);
	loads_watch();
	pread_all(file, got, BYTES, 0);
	expect("the file", 0, got, want, BYTES);
	loads_expect(pages);
	memory_write(0, pages, 2);
	swap_out();
	/* in part: the rest has to come back first */
	for (unsigned int i = 0; i < pages; i += 3) {
		size_t at = i * page_size + 100;

		stamp(want + at, at, page_size / 2, FILE_ID, 3);
		pwrite_all(file, want + at, page_size / 2, at);
	}
	pread_all(file, got, BYTES, 0);
	expect("the file", 0, got, want, BYTES);
	memory_check();
}

/* ------ memory cgroups -------------------------------------------------- */

static char group[64];
static int group_stat;	/* open: reading it again takes no memory of the group */

static unsigned long group_number(const char *name)
{
	unsigned long number;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", group, name);
	if (!read_number(path, &number))
		fail("%s: no number", path);
	return number;
}

static void group_write(const char *name, const char *word)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", group, name);
	MUST(write_file(path, "%s", word));
}

static void group_set(const char *name, unsigned long number)
{
	char word[32];

	snprintf(word, sizeof(word), "%lu", number);
	group_write(name, word);
}

static unsigned long group_event(const char *file, const char *key)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", group, file);
	return event_in(path, key);
}

/* As flush_statistics(), of this group */
static void group_flush(void)
{
	char word[64];

	MUST(pread(group_stat, word, sizeof(word), 0));
}

/* The pages that this process gets from now on are the group's. */
static void group_enter(void)
{
	char path[128];

	group_set("memory.max", MIB(64));
	group_set("memory.swap.max", MIB(64));
	group_set("cgroup.procs", getpid());
	snprintf(path, sizeof(path), "%s/memory.stat", group);
	group_stat = MUST(open(path, O_RDONLY | O_CLOEXEC));
	group_flush();
}

/* True if the group's process was killed for lack of memory. Another failure fails the test. */
static bool killed_in_group(void (*fn)(void))
{
	bool killed = false;
	int status;
	pid_t pid;

	snprintf(group, sizeof(group), CGROUP_ROOT "/gcma-swap-%d", getpid());
	MUST(mkdir(group, 0700));
	pid = background(fn);
	MUST(waitpid(pid, &status, 0));
	if (WIFSIGNALED(status)) {
		killed = group_event("memory.events", "oom_kill");
		diag("killed by signal %d; of the group for lack of memory: %d, of all: %lu",
		     WTERMSIG(status), killed, vm_event("oom_kill"));
	}
	if (status)
		diag("%lu times at its limit, %lu pages found no place in swap",
		     group_event("memory.events", "max"),
		     group_event("memory.swap.events", "fail"));
	rmdir(group);
	if (status && !killed)
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
	return killed;
}

/*
 * Where cgroups control disks, reclaim in a group does not wait for the pages that it writes
 * (writeback_throttling_sane()): it finds none to evict, and kills for that, with an area or not.
 */
static bool reclaim_waits(void)
{
	char word[64], path[128];
	int fd, len;

	snprintf(path, sizeof(path), "%s/cgroup.controllers", CGROUP_ROOT);
	fd = MUST(open(path, O_RDONLY | O_CLOEXEC));
	len = MUST(read(fd, word, sizeof(word) - 1));
	close(fd);
	word[len] = '\0';
	return !strstr(word, "io");
}

/*
 * Makes a group for a process that does the test. The kernel kills it now and then, whatever the
 * policy: see limited_write().
 */
static void in_group(void (*fn)(void))
{
	unsigned int tries = 0;

	need_swap();
	while (killed_in_group(fn)) {
		if (++tries < GROUP_TRIES)
			continue;
		if (!reclaim_waits())
			skip("reclaim in a group does not wait for its writes (CONFIG_BLK_CGROUP)");
		fail("the group's process was killed each time");
	}
}

/*
 * All pages of the group leave memory. A store looks at a few frames only, which may all be a
 * primary's: such a page is evicted without a copy. All may have been activated since the kernel
 * added up the group's statistics, as in limited_write(): it does so within 2 s.
 */
static void group_out(void)
{
	unsigned long stored = counter("stores_swap"), offered, now;
	char path[128];

	offered = stored + counter("refused_busy");
	snprintf(path, sizeof(path), "%s/memory.reclaim", group);
	for (int tries = 0; counter("stores_swap") - stored < pages; tries++) {
		write_file(path, "%zu", BYTES);
		now = counter("stores_swap") + counter("refused_busy") - offered;
		if (tries >= 200 && now >= pages - pages / 16)
			return;
		if (tries == 5000)
			fail("%lu pages went to the area, %lu were offered, %lu are active",
			     counter("stores_swap") - stored, now,
			     group_event("memory.stat", "active_anon") / page_size);
		usleep(1000);
	}
}

/*
 * Reclaim shortens the active list of a group without file pages only if the group's statistics
 * say that the inactive one is short, and the kernel adds them up every 2 s: a group whose pages
 * were all activated in between is killed, without any area too (2 of 80 were).
 */
static void limited_write(unsigned int version)
{
	for (unsigned int i = 0; i < pages; i += 32) {
		memory_write(i, 32, version);
		group_flush();
	}
}

static void limited_check(void)
{
	for (unsigned int i = 0; i < pages; i++) {
		page_check(i);
		if (i % 32 == 31)
			group_flush();
	}
}

static void limits(void)
{
	unsigned long current, swapped;

	pages = MAX_PAGES;
	memory_new();
	group_enter();
	memory_write(0, pages, 1);
	group_out();
	swapped = swapped_bytes();
	current = group_number("memory.swap.current");
	if (swapped != BYTES || current != BYTES)
		fail("%lu bytes are in swap, %lu charged", swapped, current);
	memory_check();
	MUST(munmap(memory, BYTES));
	if (shared) {
		close(file);
		file_new();
	}
	current = group_number("memory.swap.current");
	if (current > BYTES / 4)
		fail("%lu bytes of swap are charged that are free", current);

	/* no room for all of it in memory; kernel memory is charged, too */
	group_set("memory.max", BYTES / 8 * 7);
	group_set("memory.swap.max", 2 * BYTES);
	memory = memory_map();
	for (unsigned int version = 2; version < 5; version++) {
		limited_write(version);
		limited_check();
		swapped = swapped_bytes();
		current = group_number("memory.swap.current");
		if (!swapped || swapped > current || current > 2 * BYTES)
			fail("%lu bytes are in swap, %lu charged", swapped, current);
	}
}

static void limited(void)
{
	in_group(limits);
}

static void only_zeroes(void)
{
	unsigned long stores, cheap = counter("refused_cheap");

	memory_new();
	memset(memory, 1, BYTES);
	memset(memory, 0, BYTES);
	memset(want, 0, BYTES);
	stores = counter("stores_swap");
	swap_out();
	if (counter("refused_cheap") - cheap < pages)
		fail("%lu pages of zeroes went to the area", counter("stores_swap") - stores);
	memory_check();
	/* what follows in the slots is no zeroes */
	memory_write(0, pages, 1);
	swap_out();
	memory_check();
}

/* Zeroes that children see, and change, too */
static void *shared_page(void)
{
	void *page = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			  0);

	if (page == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	return page;
}

/* ------ everything at once ---------------------------------------------- */

#define THREADS		3

static atomic_ulong *checks;	/* of all processes */
static atomic_ulong children;
static unsigned long enough;
static unsigned long (*happens)(void);	/* it goes on until this is more than ... */
static unsigned long happened;
static bool faults;	/* allocations fail now and then */

/* What a thread knows of its part of the pages */
struct part {
	unsigned int first, nr;
	unsigned int versions[MAX_PAGES];
	char *page;
	pid_t children[4];
	unsigned int forks;
};

static void part_check(struct part *part, unsigned int i)
{
	size_t at = i * page_size;

	if (part->versions[i])
		stamp(part->page, at, page_size, FILE_ID, part->versions[i]);
	else
		memset(part->page, 0, page_size);
	expect("a page", at, memory + at, part->page, page_size);
	atomic_fetch_add(checks, 1);
}

/* It sees what was there when it began, whatever becomes of the slots that it shares. */
static void child_checks(struct part *part)
{
	for (unsigned int i = part->first; i < part->first + part->nr; i++) {
		if (!shared && i % 4 == 0) {
			part->versions[i] = part->versions[i] % 0xfffe + 1;
			stamp(memory + i * page_size, i * page_size, page_size, FILE_ID,
			      part->versions[i]);
			MUST(madvise(memory + i * page_size, page_size, MADV_PAGEOUT));
		}
		part_check(part, i);
	}
	fflush(stdout);
	_exit(EXIT_SUCCESS);
}

static void child_ends(pid_t *pid)
{
	int status;

	if (!*pid)
		return;
	/* the kernel writes the status; it is lost if there is no page for it */
	if (faults)
		fail_allocations(false);
	MUST(waitpid(*pid, &status, 0));
	if (faults)
		fail_allocations(true);
	*pid = 0;
	if (WIFSIGNALED(status))
		fail("a child was killed by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status))
		fail("a child saw other content");
	atomic_fetch_add(&children, 1);
}

/* Several live at a time, but what is shared must not change while one of them looks at it. */
static void part_forks(struct part *part)
{
	pid_t *pid = &part->children[part->forks++ % ARRAY_SIZE(part->children)];

	child_ends(pid);
	fflush(stdout);
	*pid = fork();
	if (!*pid)
		child_checks(part);
	if (*pid < 0 && !(faults && errno == ENOMEM))
		fail("fork: %s", strerror(errno));
	if (*pid < 0)
		*pid = 0;
	if (shared)
		child_ends(pid);
}

static bool steps_go_on(void)
{
	return atomic_load(checks) < enough || (happens && happens() == happened);
}

/* Each thread has a part of the pages for itself. */
static void *steps(void *arg)
{
	unsigned long self = (unsigned long)arg;
	struct part part = {
		.first = self * (pages / THREADS), .nr = pages / THREADS,
		.page = page_buffer(page_size),
	};
	unsigned int *versions = part.versions;
	u64 rnd = self + 1;

	if (faults)
		fail_allocations(true);
	for (unsigned long step = 0; steps_go_on(); step++) {
		unsigned int i = part.first + random_below(&rnd, part.nr);
		char *at = memory + i * page_size;

		switch (random_below(&rnd, 8)) {
		case 0:
		case 1:
			versions[i] = 1 + step % 0xfffe;
			stamp(at, i * page_size, page_size, FILE_ID, versions[i]);
			break;
		case 2:
			madvise(memory + part.first * page_size, part.nr * page_size, MADV_PAGEOUT);
			break;
		case 3:
			if (!random_below(&rnd, 8))
				part_forks(&part);
			if (random_below(&rnd, 16))
				break;
			/* the slots are freed */
			MUST(madvise(at, page_size, shared ? MADV_REMOVE : MADV_DONTNEED));
			versions[i] = 0;
			break;
		case 4:
			madvise(at, page_size, MADV_WILLNEED);
			break;
		default:
			part_check(&part, i);
		}
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(part.children); i++)
		child_ends(&part.children[i]);
	/* or who waits for the thread is not told of its end: the kernel writes that, too */
	if (faults)
		fail_allocations(false);
	return NULL;
}

/* Up to half of the area; up to all of it if there is something in it only, at its end. */
static void primaries(void)
{
	struct area area;
	u64 most, rnd = 99;
	int buffer;

	need_area(&area);
	most = policy ? area.pages : area.pages / 2;
	heap = area_heap(&area);
	if (faults)
		fail_allocations(true);
	for (;;) {
		buffer = heap_alloc(heap, (1 + random_below(&rnd, most)) * page_size);
		usleep(random_below(&rnd, 2000));
		if (buffer >= 0)
			close(buffer);
		usleep(random_below(&rnd, 2000));
	}
}

static pthread_t threads[THREADS];

#define SOAK_CHECKS	1000000

static void steps_begin(unsigned long wanted, unsigned long (*fn)(void))
{
	memory_new();
	happens = fn;
	happened = fn ? fn() : 0;
	checks = shared_page();
	enough = wanted;
	for (unsigned long i = 0; i < THREADS; i++)
		MUST(-pthread_create(&threads[i], NULL, steps, (void *)i));
}

static void steps_end(void)
{
	for (unsigned long i = 0; i < THREADS; i++)
		MUST(-pthread_join(threads[i], NULL));
	diag("%lu pages checked, %u by each of %lu children", atomic_load(checks),
	     pages / THREADS, atomic_load(&children));
}

/* So many pages are checked, and @fn is more than before, if it is not NULL. */
static void all_at_once(unsigned long wanted, unsigned long (*fn)(void))
{
	pid_t pids[2];

	need_swap();
	pids[0] = reclaim_all_the_time();
	pids[1] = background(primaries);
	/* in fewer steps a fast kernel does not get to all that goes on beside them */
	steps_begin(soaking() ? SOAK_CHECKS : slow_kernel() ? wanted / 10 : wanted, fn);
	steps_end();
	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++)
		stop(pids[i]);
}

/* How many pages that were in the area only went on where a primary came, or a setting did */
static unsigned long gave_way(void)
{
	return counter("moved_aside") + counter("put_back");
}

static void random_steps(void)
{
	all_at_once(kind->is & SINGLE && !policy ? 22500 : 4500, policy ? gave_way : NULL);
	if (policy)
		diag("%lu pages gave way to primaries", gave_way() - happened);
}

/* ------ zswap in front of a disk ---------------------------------------- */

static void zswap_full(bool full)
{
	MUST(write_file(ZSWAP "max_pool_percent", "%d", full ? 0 : 20));
}

static void swapped_to_zswap(unsigned int version)
{
	unsigned long stores, cheap;

	need_swap();
	zswap_full(false);
	cheap = counter("refused_cheap");
	stores = vm_event("zswpout");
	loads_watch();
	memory_swapped(version);
	stores = vm_event("zswpout") - stores;
	cheap = counter("refused_cheap") - cheap;
	if (stores < pages || cheap < pages)
		fail("%lu pages went to zswap, %lu were refused", stores, cheap);
}

static void in_zswap(void)
{
	unsigned long stores, writes, loads;

	need_swap();
	/*
	 * What zswap was writing back when its process ended stays in the swap cache, clean, until
	 * reclaim finds it, as if it had been swapped out now.
	 */
	slots_anew();
	stores = counter("stores_swap");
	writes = vm_event("pswpout");
	swapped_to_zswap(1);
	stores = counter("stores_swap") - stores;
	writes = vm_event("pswpout") - writes;
	/*
	 * Another process of the group may have pages that do not compress, or that it read back
	 * since: those are evicted without being written.
	 */
	if (stores > pages / 16 || writes > pages / 16)
		fail("%lu pages are in the area, %lu were written", stores, writes);
	loads = vm_event("zswpin");
	memory_check();
	loads = vm_event("zswpin") - loads;
	if (loads < pages)
		fail("%lu of %u pages came from zswap", loads, pages);
}

/* Its shrinker looks at a few pages each time a page is rejected, and twice at each. */
static void zswap_shrink(unsigned long until)
{
	char *reject = page_buffer(page_size);

	zswap_full(true);
	for (int tries = 0; vm_event("zswpwb") < until; tries++) {
		/* a new page each time: the old one may be under writeback */
		MUST(madvise(reject, page_size, MADV_DONTNEED));
		stamp(reject, 0, page_size, OTHER_ID, tries);
		MUST(madvise(reject, page_size, MADV_PAGEOUT));
		if (tries == 1000)
			fail("%lu pages are to be written back", until - vm_event("zswpwb"));
		usleep(1000);
	}
	zswap_full(false);
	munmap(reject, page_size);
}

/* Pages of zswap that its own shrinker may write for our group, after their compression */
static unsigned long zswap_shrinkable(void)
{
	unsigned long ino, nr, ours = 0;
	char path[128], line[128];
	struct stat group;
	glob_t found;
	FILE *counts;

	if (glob("/sys/kernel/debug/shrinker/mm-zswap-*/count", 0, NULL, &found))
		lack("shrinkers", "no shrinkers in debugfs (CONFIG_SHRINKER_DEBUG)");
	snprintf(path, sizeof(path), "%s", found.gl_pathv[0]);
	globfree(&found);
	MUST(stat(cgroup_path(), &group));
	flush_statistics();
	MUST(write_file(ZSWAP "shrinker_enabled", "Y"));
	counts = fopen(path, "r");
	while (counts && fgets(line, sizeof(line), counts))
		if (sscanf(line, "%lu %lu", &ino, &nr) == 2 && ino == group.st_ino)
			ours = nr;
	MUST(write_file(ZSWAP "shrinker_enabled", "N"));
	if (!counts)
		fail("%s: %s", path, strerror(errno));
	fclose(counts);
	return ours;
}

/* The disk has them, and the area. */
static void swapped_past_zswap(void)
{
	unsigned long stores, refaults;
	u64 end;

	swapped_to_zswap(1);
	stores = counter("stores_swap");
	refaults = vm_event("workingset_refault_anon");
	zswap_shrink(vm_event("zswpwb") + pages);
	/* as without an area, even one that had a policy under which pages are not written */
	refaults = vm_event("workingset_refault_anon") - refaults;
	if (refaults < pages / 2)
		fail("%lu refaults of %u pages that were read in to be written", refaults, pages);
	/* they are in the swap cache again, some on the active list: see out() */
	end = now_ns() + OUT_SECONDS * 1000000000ull;
	while (resident() && now_ns() < end) {
		flush_statistics();
		push_out(BYTES);
		usleep(1000);
	}
	if (counter("stores_swap") - stores < pages - pages / 16 || resident())
		fail("%lu of %u pages went to the area, %lu stay in memory",
		     counter("stores_swap") - stores, pages, resident());
}

static void written_back(void)
{
	swapped_past_zswap();
	loads_watch();
	memory_check();
	loads_expect(pages);

	/* to zswap again, over what is on the disk */
	memory_write(0, pages, 2);
	swap_out();
	memory_check();
}

/*
 * zswap's shrinker spares as many pages as came from the disk since it was asked last, and so as
 * many as came from the area, for the disk had to write them. Nothing is read ahead, which would
 * come from zswap.
 */
static void spared(void)
{
	unsigned long may = 0, later, loads;

	MUST(write_file(CLUSTER, "0"));
	swapped_past_zswap();
	memory_write(pages / 2, pages / 2, 2);
	MUST(madvise(memory + BYTES / 2, BYTES / 2, MADV_PAGEOUT));
	/* all that came from a disk before, while nobody asked: it forgets some whenever asked */
	for (unsigned int tries = 0; !may && tries < 10000; tries++)
		may = zswap_shrinkable();
	may = zswap_shrinkable();
	loads = counter("loads_swap");
	for (unsigned int i = 0; i < pages / 4; i++)
		page_check(i);
	loads = counter("loads_swap") - loads;
	later = zswap_shrinkable();
	if (!may || loads < pages / 4 - pages / 64 || later > may - may / 4)
		fail("zswap may write %lu pages, %lu when %lu came from the area", may, later,
		     loads);
	MUST(write_file(CLUSTER, "3"));
	memory_check();
}

static void written_back_and_gone(void)
{
	swapped_to_zswap(1);
	/* some in zswap, some in the area, some in both places one after the other */
	zswap_shrink(vm_event("zswpwb") + pages / 2);
	push_out(BYTES);
	take(true);
	memory_check();
	give_back();
}

static void fill_and_drain(void)
{
	for (bool full = true;; full = !full) {
		zswap_full(full);
		usleep(20000);
	}
}

static unsigned long zswap_wrote(void)
{
	return vm_event("zswpwb");
}

static void steps_in_zswap(void)
{
	unsigned long back = vm_event("zswpwb"), stores = vm_event("zswpout");
	pid_t pid;

	need_swap();
	pid = background(fill_and_drain);
	all_at_once(4500, zswap_wrote);
	stop(pid);
	zswap_full(false);
	back = vm_event("zswpwb") - back;
	stores = vm_event("zswpout") - stores;
	diag("%lu pages to zswap, %lu written back", stores, back);
	if (!stores || !back)
		fail("zswap was not filled and drained");
}

/* ------ a disk that fails ----------------------------------------------- */

static void disk_fails(bool fails)
{
	unsigned long sectors = SWAP_BYTES / 512;

	MUST(write_file(NULL_DISK "badblocks", "%c0-%lu", fails ? '+' : '-', sectors - 1));
}

/* Each other eighth of a MiB */
static void disk_fails_in_part(void)
{
	for (size_t at = 0; at < SWAP_BYTES; at += KIB(256))
		MUST(write_file(NULL_DISK "badblocks", "+%zu-%zu", at / 512,
				(at + KIB(128)) / 512 - 1));
}

static void prepare_failing(void)
{
	need_swap();
	disk_fails(false);
}

static void unread(void)
{
	prepare_failing();
	memory_swapped(1);
	disk_fails(true);
	loads_watch();
	memory_check();
	loads_expect(pages);
	disk_fails(false);
	memory_write(0, pages, 2);
	swap_out();
	/* not even then */
	disk_fails(true);
	MUST(swapoff(swap_path));
	memory_check();
	disk_fails(false);
	MUST(swapon(swap_path, swap_flags));
}

static void area_set(const char *name, const char *word)
{
	int ret = areas_write(name, "%s", word);

	if (ret)
		fail("%s cannot be set to %s: %s", name, word, strerror(-ret));
	if (!areas_have(name, word))
		fail("%s was set to %s, and is not", name, word);
}

static void dirty_max(unsigned long max)
{
	char word[32];

	snprintf(word, sizeof(word), "%lu", max);
	area_set("dirty_max", word);
}

/* Who touches the page sees what was there, or dies, and nobody else. */
static bool dies(unsigned int first, unsigned int nr)
{
	pid_t pid = MUST(fork());
	int status;

	if (!pid) {
		for (unsigned int i = 0; i < nr; i++)
			page_check(first + i);
		_exit(EXIT_SUCCESS);
	}
	MUST(waitpid(pid, &status, 0));
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS)
		return true;
	if (status)
		fail("a page has other content");
	return false;
}

static void touch_dies(unsigned int i)
{
	if (!dies(i, 1))
		fail("page %u was read from a disk that cannot be read", i);
}

/*
 * Folios that could not be read leave the swap cache, where reclaim finds them: they are as young
 * as others that come back. Whoever touches one of tmpfs makes it unreadable for ever.
 */
static void unread_leave(void)
{
	u64 end = now_ns() + OUT_SECONDS * 1000000000ull;

	for (int tries = 0; tries < 3 || (!shared && dies(0, pages)); tries++) {
		if (now_ns() > end)
			fail("a page is not read from the disk, which can be read");
		push_out(BYTES);
	}
}

static void unreadable(void)
{
	unsigned int kept = pages / 4, gone = pages / 2;

	prepare_failing();
	memory_swapped(1);
	/* the first ones are in memory again, the others on the disk only */
	for (unsigned int i = 0; i < kept; i++)
		page_check(i);
	take(true);
	disk_fails(true);
	touch_dies(gone);
	for (unsigned int i = 0; i < kept; i++)
		page_check(i);
	disk_fails(false);
	unread_leave();
	give_back();
	for (unsigned int i = 0; i < pages; i++)
		if (!shared || i != gone)
			page_check(i);
	/* tmpfs remembers what it could not read */
	if (shared)
		touch_dies(gone);
}

static void unwritable(void)
{
	unsigned long stores, writes;

	prepare_failing();
	memory_new();
	memory_write(0, pages, 1);
	stores = counter("stores_swap");
	writes = vm_event("pswpout");
	disk_fails(true);
	for (int i = 0; i < 5; i++) {
		MUST(madvise(memory, BYTES, MADV_PAGEOUT));
		push_out(BYTES);
	}
	stores = counter("stores_swap") - stores;
	writes = vm_event("pswpout") - writes;
	if (stores || writes < pages)
		fail("%lu pages of %lu that could not be written are in the area", stores, writes);
	memory_check();
	memory_write(0, pages, 2);
	disk_fails(false);
	swap_out();
	memory_check();
}

/* What could be written is in the area or on the disk, the rest in memory. */
static void unwritable_in_part(void)
{
	unsigned long stores;

	prepare_failing();
	if (policy)
		dirty_max(pages / 4);
	disk_fails_in_part();
	for (unsigned int version = 1; version < 4; version++) {
		memory_new();
		stores = counter("stores_swap");
		memory_write(0, pages, version);
		for (int i = 0; i < 5; i++) {
			MUST(madvise(memory, BYTES, MADV_PAGEOUT));
			push_out(BYTES);
		}
		stores = counter("stores_swap") - stores;
		diag("%lu of %u pages went to the area", stores, pages);
		if (version % 2) {
			take(true);
			/* also what was nowhere else has to be written now */
			for (int i = 0; i < 3; i++) {
				MUST(madvise(memory, BYTES, MADV_PAGEOUT));
				push_out(BYTES);
			}
		}
		memory_check();
		give_back();
		memory_gone();
	}
	disk_fails(false);
}

/* ------ pages that are nowhere but in the area ---------------------------- */

static void dirty_expect(unsigned long low, unsigned long high)
{
	unsigned long dirty = counter("tenants_dirty");

	if (dirty < low || dirty > high)
		fail("%lu pages are in the area only, not %lu to %lu", dirty, low, high);
}

#define NO_LIMIT	(~0ul)

/* All but those that somebody held for a moment */
static unsigned long nearly(unsigned long nr)
{
	return nr - nr / 16;
}

static void swapped_dirty(unsigned int version)
{
	memory_swapped(version);
	dirty_expect(nearly(pages), NO_LIMIT);
}

static void counters_agree(void)
{
	static const char * const names[] = {
		"stores_dirty", "moved_aside", "put_back", "written_back",
	};
	char key[32];

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(key, sizeof(key), "gcma_%s", names[i]);
		event_expect(key, counter, names[i]);
	}
	if (!areas_at_most("stores_dirty", "stores_swap"))
		fail("an area has more dirty ones than pages that were swapped out");
}

static void unwritten(void)
{
	unsigned long stores, writes;

	need_swap();
	stores = counter("stores_dirty");
	writes = vm_event("pswpout");
	swapped_dirty(1);
	for (unsigned int version = 2; version < 5; version++) {
		loads_watch();
		memory_check();
		loads_expect(pages);
		memory_write(0, pages / 2, version);
		swap_out();
	}
	memory_check();
	stores = counter("stores_dirty") - stores;
	writes = vm_event("pswpout") - writes;
	if (stores < nearly(4 * pages) || writes > pages / 16)
		fail("%lu pages are in the area only, %lu were written", stores, writes);
	counters_agree();
}

/* Nodes with dirty tenants cannot be freed: a look at each is enough, until it changes. */
static void looked_at_once(void)
{
	unsigned long few = MAX_PAGES / 64, others, nodes;

	pages = MAX_PAGES;
	for (unsigned int version = 1; version < 3; version++) {
		memory_new();
		shrink_nodes(vm_event("workingset_nodes") + few);
		others = vm_event("workingset_nodes"); /* of other groups, or just in use */
		memory_write(0, pages, version);
		swap_out();
		dirty_expect(nearly(pages), NO_LIMIT);
		nodes = vm_event("workingset_nodes");
		if (nodes < others + few / 2)
			fail("the shadows of %u pages are in %lu nodes, with %lu of others", pages,
			     nodes, others);
		/* nor is one counted off twice */
		for (int i = 0; i < 4; i++)
			shrink_nodes(nodes + few);
		nodes = vm_event("workingset_nodes");
		if (nodes >= others + few / 2)
			fail("%lu nodes are to be looked at again, %lu of others", nodes, others);
		dirty_expect(nearly(pages), NO_LIMIT);
		memory_check();
	}
}

/* Only folios that are nothing but zeroes are left to the device, which marks them. */
static void zeroes_at_first(void)
{
	unsigned long writes;

	need_swap();
	memory_new();
	memory_write(0, pages, 1);
	for (size_t at = 0; at < BYTES; at += KIB(kind->kib)) {
		memset(memory + at, 0, page_size);
		zero(at, page_size);
	}
	slots_anew();
	writes = vm_event("pswpout");
	swap_out();
	writes = vm_event("pswpout") - writes;
	if (writes > pages / 16)
		fail("%lu pages were written", writes);
	memory_check();
}

/* Primaries have each of so many parts of the area. */
#define PARTS		32
#define MIDDLE		20	/* the first one of those that dirty tenants are in */
#define MIDDLE_PARTS	4	/* they may be in the last half of the area only */

static unsigned long parts(unsigned int nr)
{
	struct area area;

	need_area(&area);
	return area.pages / PARTS * nr;
}

/* There are frames for them above a primary that takes theirs. */
static void all_but_the_middle(void)
{
	/* the lowest part that is free, each time */
	for (unsigned int i = 0; i < PARTS; i++)
		must_take(parts(1));
	for (unsigned int i = 0; i < MIDDLE_PARTS; i++) {
		close(buffers[MIDDLE + i]);
		buffers[MIDDLE + i] = -1;
	}
}

static void swapped_to_the_middle(void)
{
	memory_new();
	memory_write(0, pages, 1);
	all_but_the_middle();
	swap_out();
	give_back();
	dirty_expect(nearly(pages), NO_LIMIT);
}

static void make_way(void)
{
	unsigned long tenants, moves, writes, refaults;

	swapped_to_the_middle();
	tenants = counter("tenants_dirty");
	moves = counter(policy->counter);
	writes = vm_event("pswpout");
	refaults = vm_event("workingset_refault_anon");
	must_take(parts(MIDDLE + MIDDLE_PARTS));
	moves = counter(policy->counter) - moves;
	writes = vm_event("pswpout") - writes;
	if (moves < nearly(tenants) || (policy->written ? writes < nearly(tenants) :
							 writes > pages / 16))
		fail("%lu of %lu pages are %s, %lu were written", moves, tenants, policy->counter,
		     writes);
	refaults = vm_event("workingset_refault_anon") - refaults;
	if (refaults > pages / 16)
		fail("%lu refaults of pages that nobody asked for", refaults);
	dirty_expect(policy->stay ? nearly(tenants) : 0, policy->stay ? tenants : 0);
	memory_check();
	give_back();
	memory_write(0, pages, 2);
	swap_out();
	memory_check();
}

/* The policy is to move them, but there is no frame for them. */
static void no_frame_left(void)
{
	unsigned long tenants, back;

	swapped_to_the_middle();
	must_take(parts(MIDDLE + MIDDLE_PARTS));
	tenants = counter("tenants_dirty");
	back = counter("put_back");
	must_take(parts(PARTS - MIDDLE - MIDDLE_PARTS));
	back = counter("put_back") - back;
	if (tenants < nearly(pages) || back < nearly(tenants))
		fail("%lu of %u pages stayed in the area, and %lu of these were put back", tenants,
		     pages, back);
	dirty_expect(0, 0);
	memory_check();
	give_back();
	memory_check();
}

/* So they are, or the tests of this device are of nothing new. */
static void far(void)
{
	unsigned int found = 0;

	pages = MAX_PAGES;
	swapped_dirty(1);
	for (unsigned int i = 0; i < pages; i++)
		found += is_swapped(memory + i * page_size) &&
			 swap_type(memory + i * page_size) &&
			 swap_offset(memory + i * page_size) >= SPACE_PAGES;
	if (found < pages / 2)
		fail("%u of %u pages are behind the first %u slots of a second device", found,
		     pages, SPACE_PAGES);
	take(true);
	dirty_expect(0, 0);
	give_back();
	memory_check();
}

static void on_both(void)
{
	memory_swapped(1);
	if (!swap_used(disk.dev) || !swap_used(second.dev))
		fail("%zu and %zu bytes are in use of the disks", swap_used(second.dev),
		     swap_used(disk.dev));
	memory_check();
}

static void push_past_the_area(void)
{
	for (int i = 0; i < 3; i++) {
		MUST(madvise(memory, BYTES, MADV_PAGEOUT));
		push_out(BYTES);
	}
}

static void leave_frames(unsigned long nr)
{
	struct area area;

	need_area(&area);
	must_take(area_free(&area) - nr);
}

/* A store looks at a few frames only, which may all be a primary's: the next one finds others. */
static bool fill_frames(unsigned long nr)
{
	for (int tries = 0; counter("tenants_swap") < nr && tries < 100; tries++) {
		memory_write(0, pages, 1);
		push_past_the_area();
	}
	return counter("tenants_swap") >= nr;
}

static void taken_again_and_again(void)
{
	memory_new();
	for (unsigned int version = 1; version < 5; version++) {
		memory_write(0, pages, version);
		swap_out();
		take(true);
		dirty_expect(0, 0);
		if (version % 2)
			memory_check();
		push_past_the_area();
		memory_check();
		give_back();
	}
}

/* Another one, who wants as many slots and frames as there are */
static void hog(void)
{
	size_t bytes = MAX_PAGES * page_size;
	char *own = page_buffer(bytes), *page = page_buffer(page_size);

	/* else he holds them, too */
	give_back();
	for (unsigned int version = 1;; version = version % 0xffff + 1) {
		stamp(own, 0, bytes, OTHER_ID, version);
		madvise(own, bytes, MADV_PAGEOUT);
		for (size_t at = 0; at < bytes; at += page_size) {
			stamp(page, at, page_size, OTHER_ID, version);
			expect("a page of another process", at, own + at, page, page_size);
		}
	}
}

#define FEW_FRAMES	(SMALL_PAGES / 4)
/* Those of admission's samples may have pages of files, and keep them. */
#define MOST_FRAMES	(FEW_FRAMES - FEW_FRAMES / 8)

/* Neither a slot nor a frame is free: they are in swap, in the area, or stay where they are. */
static void all_is_full(void)
{
	unsigned long swapped;
	pid_t pid;

	pages = MAX_PAGES;
	memory_new();
	leave_frames(FEW_FRAMES);
	/* Frames first: while all slots are full reclaim evicts no page that was written. */
	pages = SMALL_PAGES / 2;
	if (!fill_frames(MOST_FRAMES))
		fail("%lu of %u frames are full", counter("tenants_swap"), FEW_FRAMES);
	memory_write(pages, MAX_PAGES - pages, 1);
	pages = MAX_PAGES;
	push_past_the_area();
	swapped = swapped_bytes() / page_size;
	if (swapped > SMALL_PAGES || swapped < nearly(SMALL_PAGES))
		fail("%lu of %u slots are full", swapped, SMALL_PAGES);
	if (policy)
		dirty_expect(MOST_FRAMES, FEW_FRAMES);
	memory_check();
	pid = background(hog);
	/* Who moves a page and has no CPU for some 30 ms is not waited for. */
	take_tries = 16;
	for (unsigned int version = 2; version < 8; version++) {
		memory_write(version % 2, pages - 1, version);
		push_past_the_area();
		if (version % 3 == 0)
			must_take(FEW_FRAMES);
		memory_check();
		if (version % 3 == 0) {
			give_back();
			leave_frames(FEW_FRAMES);
		}
	}
	stop(pid);
}

/* There is no memory for what is in the way of primaries, who get what they can. */
static void no_memory_left(void)
{
	pages = MAX_PAGES;
	memory_new();
	group_enter();
	group_set("memory.max", BYTES / 8 * 7);
	group_set("memory.swap.max", 2 * BYTES);
	for (unsigned int version = 1; version < 4; version++) {
		limited_write(version);
		dirty_expect(1, NO_LIMIT);
		while (counter("tenants_dirty") && take_pages(512))
			;
		diag("%lu pages stayed in the area", counter("tenants_dirty"));
		limited_check();
		give_back();
		limited_check();
	}
}

static void taken_at_the_limit(void)
{
	in_group(no_memory_left);
}

static void group_new(char letter)
{
	snprintf(group, sizeof(group), CGROUP_ROOT "/gcma-swap-%d-%c", getpid(), letter);
	MUST(mkdir(group, 0700));
	group_enter();
}

/* What it was charged for it stays charged for. */
static void group_go(void)
{
	MUST(write_file(CGROUP_ROOT "/cgroup.procs", "%d", getpid()));
	close(group_stat);
}

static void group_leave(void)
{
	group_go();
	MUST(rmdir(group));
}

static unsigned long *glutton_saw;	/* the most pages that were in the area only */

static void group_glutton(void)
{
	MUST(write_file("/proc/self/oom_score_adj", "1000"));
	/* pages of zeroes would not go to the area */
	for (unsigned int version = 1;; version++) {
		char *own = page_buffer(BYTES);

		stamp(own, 0, BYTES, OTHER_ID, version);
		madvise(own, BYTES, MADV_PAGEOUT);
		*glutton_saw = MAX(*glutton_saw, counter("tenants_dirty"));
	}
}

/* Pages, and frames for twice as many, all of which may be dirty */
static void glutton_begin(void)
{
	struct area area;

	pages = MAX_PAGES;
	memory_new();
	need_area(&area);
	dirty_max(area.pages);
	leave_frames(2 * pages);
	glutton_saw = shared_page();
}

/* He is killed for it, as without an area. */
static void glutton_dies(void)
{
	unsigned long killed = group_event("memory.events", "oom_kill");
	int status;
	pid_t pid;

	group_set("cgroup.procs", getpid());
	pid = background(group_glutton);
	group_go();
	MUST(waitpid(pid, &status, 0));
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail("who takes all memory of his group ends with status %#x", status);
	if (group_event("memory.events", "oom_kill") == killed)
		fail("who takes all memory of his group was not killed for that");
}

/*
 * All frames have pages that are nowhere else, all slots of the group are in use, and so is its
 * memory: one of its processes is killed, and what it had in the area is in nobody's way.
 */
static void killed_for_memory(void)
{
	pid_t pid;

	glutton_begin();
	group_new('k');
	memory_write(0, pages, 1);
	group_out();
	group_set("memory.swap.max", 2 * BYTES);
	group_set("memory.max", BYTES + BYTES / 2);
	glutton_dies();
	if (*glutton_saw < nearly(2 * pages))
		fail("%lu pages were in the area only, of %u frames", *glutton_saw, 2 * pages);
	memory_check();
	/* and again, while primaries come and go */
	give_back();
	memory_write(0, pages, 2);
	group_out();
	pid = background(primaries);
	glutton_dies();
	stop(pid);
	take(true);
	dirty_expect(0, 0);
	memory_check();
	give_back();
	memory_gone();
	MUST(rmdir(group));
}

/* Most of the machine's memory at once, and then the rest, with what can be swapped out */
static void glutton(void)
{
	struct sysinfo info;

	MUST(write_file("/proc/self/oom_score_adj", "1000"));
	MUST(sysinfo(&info));
	if (info.freeram > MIB(32)) {
		size_t most = (info.freeram - MIB(32)) & -page_size;

		MUST(mlock(page_buffer(most), most));
	}
	group_glutton();
}

/* The same where it is the machine that has no memory, and no slot is left. */
static void killed_with_all_in_use(void)
{
	unsigned long killed;
	pid_t pid;
	int status;

	glutton_begin();
	memory_write(0, pages, 1);
	swap_out();
	killed = vm_event("oom_kill");
	pid = background(glutton);
	MUST(waitpid(pid, &status, 0));
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail("who takes all memory ends with status %#x", status);
	if (vm_event("oom_kill") - killed != 1)
		fail("%lu processes were killed for memory", vm_event("oom_kill") - killed);
	if (*glutton_saw < nearly(2 * pages))
		fail("%lu pages were in the area only, of %u frames", *glutton_saw, 2 * pages);
	memory_check();
	take(true);
	dirty_expect(0, 0);
	memory_check();
	give_back();
}

/* Memory of the group that reclaim can have at once */
static void group_spare(size_t bytes)
{
	char *spare;

	group_enter();
	spare = page_buffer(bytes);
	memset(spare, 1, bytes);
	MUST(madvise(spare, bytes, MADV_FREE));
	group_go();
}

/*
 * The group of the pages has no memory for them: they are moved aside. No frame is left either:
 * the allocation fails, and they stay. At last there is memory, but has to be reclaimed.
 */
static void no_way_but(void)
{
	unsigned long tenants, moved, back;

	pages = MAX_PAGES;
	memory_new();
	group_new('a');
	memory_write(0, pages, 1);
	all_but_the_middle();
	group_out();
	give_back();
	group_go();
	tenants = counter("tenants_dirty");
	group_set("memory.max", 0);
	moved = counter("moved_aside");
	back = counter("put_back");
	must_take(parts(MIDDLE + MIDDLE_PARTS));
	moved = counter("moved_aside") - moved;
	back = counter("put_back") - back;
	if (tenants < nearly(pages) || moved < nearly(tenants) || back > pages / 16)
		fail("of %lu pages %lu were moved aside, %lu put back", tenants, moved, back);

	tenants = counter("tenants_dirty");
	if (take_pages(parts(PARTS - MIDDLE - MIDDLE_PARTS)))
		fail("a primary got the frames of %lu pages that are nowhere else", tenants);
	dirty_expect(tenants, tenants);

	group_set("memory.max", MIB(64));
	group_spare(2 * BYTES);
	group_set("memory.max", group_number("memory.current") - BYTES / 4);
	back = counter("put_back");
	moved = group_event("memory.events", "max");
	must_take(parts(PARTS - MIDDLE - MIDDLE_PARTS));
	back = counter("put_back") - back;
	moved = group_event("memory.events", "max") - moved;
	if (back < nearly(tenants) || !moved)
		fail("of %lu pages %lu were put back; the group was at its limit %lu times",
		     tenants, back, moved);
	dirty_expect(0, 0);
	give_back();
	group_set("memory.max", MIB(64));
	memory_check();
	memory_gone();
	rmdir(group);
}

#define GROUP_GOES_US	500000	/* until nothing is charged to a group any more */

/* The group of a primary pays nothing for pages that it puts back, whose own group is gone. */
static void group_gone(void)
{
	unsigned long back, before, charged;

	pages = MAX_PAGES;
	memory_new();
	group_new('a');
	memory_write(0, pages, 1);
	group_out();
	dirty_expect(nearly(pages), NO_LIMIT);
	group_leave();
	usleep(GROUP_GOES_US);
	group_new('b');
	back = counter("put_back");
	before = group_number("memory.current");
	take(true);
	back = counter("put_back") - back;
	charged = group_number("memory.current");
	give_back();
	group_leave();
	if (back < nearly(pages) || charged > before + BYTES / 4)
		fail("%lu pages were put back, %lu bytes are charged, and %lu were before", back,
		     charged, before);
	memory_check();
}

/* They are charged to the group that it was in. */
static void group_in_group(void)
{
	unsigned long back, before, charged;
	char parent[60]; /* what is below it has to fit into "group" */

	pages = MAX_PAGES;
	memory_new();
	snprintf(parent, sizeof(parent), CGROUP_ROOT "/gcma-swap-%d", getpid());
	snprintf(group, sizeof(group), "%s", parent);
	MUST(mkdir(group, 0700));
	group_write("cgroup.subtree_control", "+memory");
	group_set("memory.max", MIB(64));
	snprintf(group, sizeof(group), "%s/a", parent);
	MUST(mkdir(group, 0700));
	group_enter();
	memory_write(0, pages, 1);
	group_out();
	dirty_expect(nearly(pages), NO_LIMIT);
	group_leave();
	usleep(GROUP_GOES_US);
	snprintf(group, sizeof(group), "%s", parent);
	back = counter("put_back");
	before = group_number("memory.current");
	area_set("swap_policy", "write-through");
	back = counter("put_back") - back;
	charged = group_number("memory.current");
	area_set("swap_policy", policy->name);
	if (back < nearly(pages) || charged < before + nearly(back) * page_size)
		fail("%lu pages were put back, %lu bytes are charged, and %lu were before", back,
		     charged, before);
	memory_check();
	MUST(rmdir(parent));
}

static const char * const words[] = { "write-through", "move-aside", "put-back", "write-back" };

static void switched(void)
{
	memory_new();
	for (unsigned int w = 0; w < ARRAY_SIZE(words); w++) {
		memory_write(0, pages, w + 1);
		swap_out();
		dirty_expect(nearly(pages), NO_LIMIT);
		area_set("swap_policy", words[w]);
		if (!strcmp(words[w], "write-through"))
			dirty_expect(0, 0);
		memory_check();
		area_set("swap_policy", policy->name);
	}
}

/* Hibernation until all tasks are frozen and room for the image is made, if it can be, and back */
static void before_hibernation(void)
{
	static const char test[] = "/sys/power/pm_test";
	unsigned long left;
	int ret;

	if (access(test, W_OK))
		lack("hibernation", "no %s (CONFIG_HIBERNATION, CONFIG_PM_DEBUG)", test);
	swapped_dirty(1);
	MUST(write_file(test, "freezer"));
	left = counter("put_back");
	ret = write_file("/sys/power/state", "disk");
	MUST(write_file(test, "none"));
	/* It did not begin, or came as far as to make room for the image, which may be too much. */
	if (ret && ret != -ENOMEM)
		fail("%s", strerror(-ret));
	/* what others swap out as soon as they can */
	dirty_expect(0, pages / 16);
	diag("%lu pages were put back", counter("put_back") - left);
	memory_check();
	memory_write(0, pages, 2);
	swap_out();
	dirty_expect(nearly(pages), NO_LIMIT);
}

#define FREED_AT_ONCE	64	/* slots that a CPU keeps until it frees them */

/* Also those that nobody needs any more, and that are not freed yet, make way. */
static void gone(void)
{
	unsigned long left, moved;

	for (int round = 0; round < 2; round++) {
		pages = MAX_PAGES;
		swapped_dirty(1);
		memory_gone();
		dirty_expect(0, FREED_AT_ONCE * sysconf(_SC_NPROCESSORS_ONLN));
		left = counter("tenants_dirty");
		moved = counter("moved_aside") + counter("put_back");
		if (round)
			area_set("swap_policy", "write-through");
		else
			take(true);
		dirty_expect(0, 0);
		moved = counter("moved_aside") + counter("put_back") - moved;
		diag("%lu pages were not freed yet, %lu moved", left, moved);
		if (moved > left / 4)
			fail("%lu of %lu pages that nobody has were moved", moved, left);
		give_back();
	}
}

static void never_dirty(void)
{
	unsigned long stores;

	need_swap();
	stores = counter("stores_dirty");
	memory_swapped(1);
	memory_check();
	memory_write(0, pages, 2);
	swap_out();
	memory_check();
	stores = counter("stores_dirty") - stores;
	if (stores)
		fail("%lu pages were in the area only", stores);
}

static void none_allowed(void)
{
	unsigned long writes = vm_event("pswpout");

	need_swap();
	dirty_max(0);
	never_dirty();
	writes = vm_event("pswpout") - writes;
	if (writes < nearly(2 * pages))
		fail("%lu pages were written", writes);
}

static void more_than_allowed(void)
{
	unsigned long writes;

	memory_new();
	dirty_max(pages / 4);
	for (unsigned int version = 1; version < 4; version++) {
		memory_write(0, pages, version);
		writes = vm_event("pswpout");
		swap_out();
		writes = vm_event("pswpout") - writes;
		dirty_expect(1, pages / 4);
		if (writes < pages / 2)
			fail("%lu pages were written", writes);
		memory_check();
	}
}

/* What reclaim leaves dirty for an area that has no frame for it would be young again. */
static void written_at_once(void)
{
	unsigned long writes;

	memory_new();
	/* what is on its way to a list is seen by a look from the same CPU only */
	run_on(0);
	memory_write(0, pages, 1);
	leave_frames(0);
	writes = vm_event("pswpout");
	MUST(madvise(memory, BYTES, MADV_PAGEOUT));
	writes = vm_event("pswpout") - writes;
	if (writes < nearly(pages))
		fail("%lu of %u pages were written", writes, pages);
	dirty_expect(0, 0);
	give_back();
	memory_check();
	/* and from now on there are frames */
	memory_write(0, pages, 2);
	swap_out();
	dirty_expect(nearly(pages), NO_LIMIT);
	memory_check();
}

static void fewer_allowed(void)
{
	swapped_dirty(1);
	for (unsigned int max = pages / 2; max; max /= 4) {
		dirty_max(max);
		dirty_expect(0, max);
	}
	dirty_max(0);
	dirty_expect(0, 0);
	memory_check();
}

static void wrong_words(void)
{
	static const struct {
		const char *file;
		const char *word;
	} wrong[] = {
		{ "swap_policy", "write" },
		{ "swap_policy", "Put-Back" },
		{ "swap_policy", "move-asides" },
		{ "swap_policy", "put-back move-aside" },
		{ "swap_policy", "1" },
		{ "swap_policy", "\n" },
		{ "dirty_max", "-1" },
		{ "dirty_max", "half" },
		{ "dirty_max", "1 2" },
		{ "dirty_max", "\n" },
		{ "dirty_max", "4294967295" },	/* more than an area has */
	};
	unsigned long max;

	swapped_dirty(1);
	max = counter("dirty_max");
	for (unsigned int i = 0; i < ARRAY_SIZE(wrong); i++) {
		int ret = areas_write(wrong[i].file, "%s", wrong[i].word);

		if (ret != -EINVAL)
			fail("%s takes '%s': %d", wrong[i].file, wrong[i].word, ret);
		if (!areas_have("swap_policy", policy->name) || counter("dirty_max") != max)
			fail("'%s' changed %s", wrong[i].word, wrong[i].file);
	}
	dirty_expect(nearly(pages), NO_LIMIT);
	memory_check();
}

static void switch_all_the_time(void)
{
	struct area area;
	u64 rnd = 5;

	need_area(&area);
	for (;;) {
		const char *word = words[random_below(&rnd, ARRAY_SIZE(words))];
		int ret;

		if (random_below(&rnd, 4))
			ret = areas_write("swap_policy", "%s", word);
		else
			ret = areas_write("dirty_max", "%lu", random_below(&rnd, 2) ? area.pages :
					  (unsigned long)random_below(&rnd, area.pages));
		/* there may be no memory for them just now */
		if (ret && ret != -EBUSY && ret != -ENOMEM)
			fail("a setting of the area: %s", strerror(-ret));
		usleep(random_below(&rnd, 10000));
	}
}

/* To the device, or to the area only */
static unsigned long pages_out(void)
{
	return vm_event("pswpout") + (policy ? counter("stores_dirty") : 0);
}

static void off_and_on(void)
{
	unsigned long out, rounds = 0;
	pid_t pids[3];

	need_swap();
	out = pages_out();
	pids[0] = reclaim_all_the_time();
	pids[1] = background(primaries);
	pids[2] = policy ? background(switch_all_the_time) : 0;
	steps_begin(soaking() ? SOAK_CHECKS : 2250, NULL);
	for (; steps_go_on() || rounds < 3; rounds++) {
		slots_anew();
		usleep(50000);
	}
	steps_end();
	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++)
		if (pids[i])
			stop(pids[i]);
	out = pages_out() - out;
	diag("%lu rounds, %lu pages swapped out", rounds, out);
	if (out < 50)
		fail("%lu pages were swapped out", out);
}

/* All steps together check 50,000 pages; a tenth on slow kernels; in a soak a million each. */
static void steps_while_switched(void)
{
	unsigned long stores, moved, back;
	pid_t pid;

	need_swap();
	stores = counter("stores_dirty");
	moved = counter("moved_aside");
	back = counter("put_back");
	pid = background(switch_all_the_time);
	all_at_once(27000, NULL);
	stop(pid);
	stores = counter("stores_dirty") - stores;
	moved = counter("moved_aside") - moved;
	back = counter("put_back") - back;
	diag("%lu pages in the area only, %lu moved aside, %lu put back", stores, moved, back);
	if (!stores || !(moved + back))
		fail("no policy was at work");
}

#define MANY_FAULTS	1000000

/* Also what puts pages back, or swaps them in, gets no memory at times. */
static void steps_without_memory(void)
{
	unsigned long left;

	need_swap();
	if (!prepare_faults())
		lack("faults",
		     "this kernel injects no faults (CONFIG_FAILSLAB, CONFIG_FAIL_PAGE_ALLOC)");
	/* also of single pages, and of those for user memory */
	MUST(write_file(FAULTS "min-order", "0"));
	MUST(write_file(FAULTS "ignore-gfp-highmem", "N"));
	MUST(write_file(FAULTS "times", "%u", MANY_FAULTS));
	faults = true;
	steps_while_switched();
	if (!read_number(FAULTS "times", &left))
		fail("no " FAULTS "times");
	diag("%lu allocations of pages failed", MANY_FAULTS - left);
	if (left == MANY_FAULTS)
		fail("no allocation failed");
}

static void zswap_use(bool on)
{
	MUST(write_file(ZSWAP "enabled", "%c", on ? 'Y' : 'N'));
}

/* Some pages are in the area only, then others in zswap, in whatever slots. */
static void zswap_comes_and_goes(void)
{
	unsigned long stores;

	need_swap();
	zswap_full(false);
	zswap_use(false);
	swapped_dirty(1);
	zswap_use(true);
	stores = counter("stores_dirty");
	for (unsigned int i = 0; i < pages; i += 2) {
		page_check(i);
		memory_write(i, 1, 2);
	}
	must_out(pages / 2);
	stores = counter("stores_dirty") - stores;
	if (stores)
		fail("%lu pages went past zswap", stores);
	zswap_use(false);
	for (unsigned int i = 0; i < pages; i += 3) {
		page_check(i);
		memory_write(i, 1, 3);
	}
	must_out(pages / 3);
	memory_check();
	memory_write(0, pages, 4);
	swap_out();
	dirty_expect(nearly(pages), NO_LIMIT);
	memory_check();
	zswap_use(true);
}

static void zswap_all_the_time(void)
{
	for (bool on = false;; on = !on) {
		zswap_use(on);
		usleep(on ? 1000 : 4000);
	}
}

static unsigned long written_from_area(void)
{
	return counter("written_back");
}

/* Who writes pages back that are in a primary's way may meet it as it is switched on. */
static void steps_while_zswap_switched(void)
{
	pid_t pid;

	need_swap();
	zswap_full(false);
	pid = background(zswap_all_the_time);
	all_at_once(4500, written_from_area);
	stop(pid);
	zswap_use(true);
	diag("%lu pages were written back", written_from_area() - happened);
}

/* To zswap nothing is written that a primary is in the way of: they are put back. */
static void zswap_before_a_primary(void)
{
	unsigned long back, out;

	need_swap();
	zswap_full(false);
	zswap_use(false);
	swapped_dirty(1);
	zswap_use(true);
	back = counter("put_back");
	out = vm_event("zswpout");
	take(true);
	back = counter("put_back") - back;
	out = vm_event("zswpout") - out;
	if (back < nearly(pages) || out > pages / 16)
		fail("%lu pages were put back, zswap got %lu", back, out);
	give_back();
	memory_check();
}

/* Some were written before a primary came, the others are in memory, or were written for it. */
static void unreadable_in_part(void)
{
	unsigned int touched = 0, died = 0;

	prepare_failing();
	memory_new();
	dirty_max(pages / 4);
	memory_write(0, pages, 1);
	swap_out();
	dirty_expect(1, pages / 4);
	take(true);
	disk_fails(true);
	/* tmpfs remembers what could not be read */
	for (unsigned int i = 0; i < pages; i += 4, touched++)
		died += dies(i, 1);
	disk_fails(false);
	if (died < touched / 2 || (!policy->written && died > nearly(touched)))
		fail("who touched %u of %u pages died", died, touched);
	unread_leave();
	give_back();
	for (unsigned int i = 0; i < pages; i++)
		if (!shared || i % 4)
			page_check(i);
}

/* They are put back, and stay in memory. */
static void unwritable_before_a_primary(void)
{
	unsigned long back;

	prepare_failing();
	swapped_dirty(1);
	disk_fails(true);
	back = counter("put_back");
	take(true);
	back = counter("put_back") - back;
	push_past_the_area();
	memory_check();
	if (back < nearly(pages))
		fail("%lu pages were put back", back);
	give_back();
	/* there is room for them again */
	memory_write(0, pages, 2);
	swap_out();
	area_set("swap_policy", "write-through");
	dirty_expect(0, 0);
	push_past_the_area();
	memory_check();
	disk_fails(false);
	area_set("swap_policy", policy->name);
	swap_out();
	memory_check();
}

/* ------ what is read, and how it is accounted -------------------------------- */

#define BLOCK		8	/* pages: as many as are read ahead */

/* Reads of the disk that were completed */
static unsigned long requests(void)
{
	unsigned long nr;
	char path[64];

	snprintf(path, sizeof(path), "/sys/block/%s/stat", strrchr(disk.dev, '/') + 1);
	if (!read_number(path, &nr))
		fail("no %s", path);
	return nr;
}

static unsigned long requests_to_check(void)
{
	unsigned long begin = requests();

	memory_check();
	return requests() - begin;
}

/* Nothing goes to the area meanwhile. */
static void swap_out_past_the_area(void)
{
	struct area area;
	int buffer;

	need_area(&area);
	buffer = MUST(heap_alloc(area_heap(&area), area_free(&area) * page_size));
	for (int tries = 0; resident() && tries < 200; tries++) {
		MUST(madvise(memory, BYTES, MADV_PAGEOUT));
		push_out(BYTES);
	}
	close(buffer);
}

/* Pages of the test itself may have been swapped out, too: a request each. */
#define OWN_REQUESTS	8

/* Every other block is written again: those are in the area, in slots of their own. */
static void blocks_amid(void)
{
	for (unsigned int i = 0; i < pages; i += 2 * BLOCK)
		memory_write(i, BLOCK, 2);
	must_out(pages / 2);
}

/* Every other page is in the area. */
static void pages_amid(void)
{
	for (unsigned int i = 1; i < pages; i += 2)
		page_check(i);
	must_out(pages / 2 - pages / 16);
}

/*
 * Some of the pages are in the area, or, to compare with, none any more: how many requests it
 * takes to read all of them. What is in memory divides requests, and is none of what to compare.
 */
static unsigned long requests_amid(void (*some_out)(void), bool tenants)
{
	unsigned long there, requests;

	/* each CPU has slots of its own */
	run_on(0);
	memory_new();
	memory_write(0, pages, 1);
	swap_out_past_the_area();
	/* what is only read, one by one, stays where it is */
	MUST(write_file(CLUSTER, "0"));
	some_out();
	MUST(write_file(CLUSTER, "3"));
	there = resident();
	if (!tenants)
		take(true);
	requests = requests_to_check();
	give_back();
	memory_gone();
	diag("%lu requests with%s tenants, %lu pages in memory", requests, tenants ? "" : "out",
	     there);
	/* some twice as many as blocks, for windows grow, or 256 */
	if (!tenants && requests > there + 2 * pages / BLOCK + OWN_REQUESTS)
		fail("%u pages took %lu requests: none is read ahead", pages, requests);
	return tenants ? requests - MIN(requests, there) : requests;
}

/* Readahead reads no less at a time because some of the pages are in the area. */
static void read_in_blocks(void)
{
	unsigned long without = requests_amid(blocks_amid, false);
	unsigned long with = requests_amid(blocks_amid, true);

	if (with > without + OWN_REQUESTS)
		fail("%lu requests, %lu without tenants", with, without);
}

/* To read those between them, too, takes fewer requests. */
static void read_over(void)
{
	unsigned long without = requests_amid(pages_amid, false);
	unsigned long with = requests_amid(pages_amid, true);

	if (with > without + OWN_REQUESTS)
		fail("%lu requests, %lu without tenants", with, without);
}

/* That a primary came makes no difference to the accounting of what is read again. */
static void refault(void)
{
	unsigned long refaults, reads;

	memory_swapped(1);
	take(true);
	refaults = vm_event("workingset_refault_anon");
	reads = vm_event("pswpin");
	memory_check();
	flush_statistics();
	reads = vm_event("pswpin") - reads;
	refaults = vm_event("workingset_refault_anon") - refaults;
	give_back();
	if (reads < pages / 2 || refaults < reads - reads / 8)
		fail("%lu refaults of %lu pages that were read", refaults, reads);
}

static bool have_generations(void)
{
	char word[32];

	return read_word("/sys/kernel/mm/lru_gen/enabled", word, sizeof(word)) &&
	       strtoul(word, NULL, 16) & 1;
}

/*
 * cachestat(2) asks for the shadows of what tmpfs has in swap: those behind the tenants. It takes
 * their generations for those of pages of files.
 */
static void recently(void)
{
	size_t room = 4 * BYTES;
	struct cachestat state;
	char *resident;

	memory_swapped(1);
	/* a working set: what went was there as lately as its pages were */
	resident = page_buffer(room);
	memset(resident, 1, room);
	flush_statistics();
	page_cache_state(file, &state);
	if (counter("tenants_swap") < nearly(pages) || state.nr_evicted != pages ||
	    (state.nr_recently_evicted < nearly(pages) && !have_generations()))
		fail("%lu tenants, %llu of %u pages were evicted, %llu of them lately",
		     counter("tenants_swap"), state.nr_evicted, pages,
		     state.nr_recently_evicted);
	memory_check();
}

/* Swapped out a second time, and a third: the first ones' frames are taken for it. */
static void others_swapped_out(void)
{
	char *first = memory;

	for (int i = 0; i < 2; i++) {
		memory = memory_map();
		memory_write(0, pages, 1);
		swap_out();
	}
	memory = first;
}

static void refaults_expect(bool known)
{
	unsigned long refaults = vm_event("workingset_refault_anon");
	unsigned long reads = vm_event("pswpin");

	memory_check();
	flush_statistics();
	reads = vm_event("pswpin") - reads;
	refaults = vm_event("workingset_refault_anon") - refaults;
	/* some, a batch of reclaim's at times, were evicted without a copy: those are known */
	if (reads < pages / 2 ||
	    (known ? refaults < reads - reads / 4 : refaults > reads / 2))
		fail("%lu refaults of %lu pages that were read, and are %s", refaults, reads,
		     known ? "known" : "not known");
}

/*
 * Who does not go through the swap cache finds the entry of a tenant that is gone. If it made
 * room for others they tell when it went, but with generations; if it was for a primary, nobody
 * does.
 */
static void refault_past_the_cache(void)
{
	unsigned long recycles;

	memory_new();
	leave_frames(2 * pages);
	if (!fill_frames(nearly(pages)))
		fail("%lu tenants of %u pages", counter("tenants_swap"), pages);
	recycles = counter("recycles");
	others_swapped_out();
	recycles = counter("recycles") - recycles;
	if (recycles < nearly(pages))
		fail("%lu tenants of %u pages made room", recycles, pages);
	refaults_expect(!have_generations());
	give_back();
	memory_write(0, pages, 2);
	swap_out();
	take(true);
	give_back();
	refaults_expect(false);
}

static unsigned long first_pfn, area_pages;

/* What events say of swapped-out pages: 0:0, and no inode */
static bool swapped_pfn(const char *fields, unsigned long *pfn)
{
	unsigned int major, minor;
	unsigned long ino, index;

	return sscanf(fields, "dev=%u:%u ino=%lx index=%lu pfn=0x%lx", &major, &minor, &ino, &index,
		      pfn) == 5 && !major && !minor && !ino;
}

static bool in_the_area(const char *fields)
{
	unsigned long pfn;

	return swapped_pfn(fields, &pfn) && pfn - first_pfn < area_pages;
}

static bool in_memory(const char *fields)
{
	unsigned long pfn;

	return swapped_pfn(fields, &pfn) && pfn - first_pfn >= area_pages;
}

static void traced(void)
{
	static const char * const names[] = { "gcma_copy", "gcma_store", "gcma_fill", "gcma_load" };
	unsigned long tenants, number;
	struct area area;

	need_swap();
	need_area(&area);
	first_pfn = area_debug(&area, "base_pfn");
	area_pages = area.pages;
	memory_new();
	events_begin("gcma");
	memory_write(0, pages, 1);
	swap_out();
	memory_check();
	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		number = events(names[i], in_the_area);
		if (number < nearly(pages) || events(names[i], in_memory))
			fail("%lu of %u pages were told by %s", number, pages, names[i]);
	}
	if (policy) {
		memory_write(0, pages, 2);
		all_but_the_middle();
		swap_out();
		give_back();
		tenants = counter("tenants_dirty");
		must_take(parts(MIDDLE + MIDDLE_PARTS));
		number = events(policy->event, policy->stay ? in_the_area : in_memory);
		if (tenants < nearly(pages) || number < nearly(tenants))
			fail("%lu of %lu pages were told by %s", number, tenants, policy->event);
		give_back();
		memory_check();
	}
	events_end("gcma");
}

struct test {
	void (*fn)(void);
	unsigned int kinds;
	enum need need;
	const char *name;
};

static const struct test tests[] = {
	{ come_back, ALL, NEED_LOADS, "come back from the area" },
	{ written_and_out_again, ANY | SINGLE | KIB64, NEED_LOADS,
	  "that are written and swapped out again keep that" },
	{ read_and_out_again, ANY | SINGLE, NEED_LOADS,
	  "that are read and evicted again stay the same" },
	{ unmapped, ALL, NEED_STORES, "that are unmapped leave the area" },
	{ forked, ANY | SINGLE | KIB64, NEED_LOADS,
	  "shared by processes are the same for all until they write" },
	{ swapped_off, ANY | SINGLE | KIB64, NEED_LOADS,
	  "survive swapoff, and others come to their slots" },
	{ swapped_on_again, ANY | SINGLE, NEED_LOADS,
	  "are new on a device that is used again with other content" },
	{ only_zeroes, ANY | SINGLE, NEED_STORES, "of zeroes do not go to the area" },
	{}
};

static const struct test steps_tests[] = {
	{ random_steps, ALL, NEED_LOADS, "survive primaries, reclaim, forks, all at once" },
	{}
};

static const struct test through_tests[] = {
	{ taken_by_primary, ALL, NEED_LOADS, "come from the device when a primary took the area" },
	{}
};

/* A second disk, or a file, is nothing new to these. */
static const struct test more_tests[] = {
	{ stay_locked, ANY | SINGLE, NEED_LOADS, "that are locked in memory stay there" },
	{ freed_lazily, ANON | SINGLE | KIB64, NEED_LOADS,
	  "that may be freed are as they were or zeroes" },
	{ unmapped_in_part, ANON | LARGE, NEED_LOADS, "that lose pages keep the others" },
	{ same_content, ANON | SINGLE, NEED_LOADS, "that were merged are the same for all" },
	{ other_address, ANON | SINGLE | LARGE, NEED_LOADS, "move to another address" },
	{ holes, TMPFS | SINGLE | LARGE, NEED_LOADS, "have holes that were punched meanwhile" },
	{ cut_off, TMPFS | SINGLE | LARGE, NEED_LOADS, "end where their file was truncated" },
	{ by_system_calls, TMPFS | SINGLE | LARGE, NEED_LOADS,
	  "are what read(2) and write(2) see" },
	{ limited, ANY | SINGLE, NEED_LOADS, "are charged to their group, and survive its limits" },
	{}
};

static const struct test off_tests[] = {
	{ off_and_on, ANY | SINGLE, NEED_LOADS, "survive swapoff and swapon again and again" },
	{}
};

static const struct test both_tests[] = {
	{ on_both, ANY | SINGLE, NEED_LOADS, "are on both" },
	{}
};

static const struct test way_tests[] = {
	{ make_way, ALL, NEED_STORES, "make way for a primary" },
	{ taken_again_and_again, ALL, NEED_STORES, "survive primaries that take everything" },
	{}
};

static const struct test far_tests[] = {
	{ far, ANON | SINGLE, NEED_STORES, "are found by mapping and index" },
	{}
};

static const struct test dirty_tests[] = {
	{ unwritten, ALL, NEED_LOADS, "are not written while there is room" },
	{ looked_at_once, ANON | SINGLE, NEED_LOADS,
	  "are looked at by reclaim of nodes only once" },
	{ zeroes_at_first, ANY | LARGE, NEED_STORES,
	  "that begin with a page of zeroes are not, either" },
	{ taken_at_the_limit, ANY | SINGLE, NEED_STORES, "do when their group is at its limit" },
	{ killed_for_memory, ANY | SINGLE, NEED_STORES, "survive one killed for lack of memory" },
	{ switched, ANY | SINGLE, NEED_STORES, "survive another policy" },
	{ gone, ANY | SINGLE, NEED_STORES, "that are gone are in nobody's way" },
	{ before_hibernation, ANY | SINGLE, NEED_STORES, "are in memory before hibernation" },
	{}
};

/* As put-back does write-back */
static const struct test back_tests[] = {
	{ no_way_but, ANY | SINGLE, NEED_STORES, "go the other way, or stay, without memory" },
	{}
};

static const struct test move_aside_tests[] = {
	{ no_frame_left, ANY | SINGLE | LARGE, NEED_STORES, "are put back if no frame is left" },
	{}
};

/* The same under all policies */
static const struct test settings_tests[] = {
	{ none_allowed, ANY | SINGLE, NEED_LOADS, "are written if none may be in the area only" },
	{ more_than_allowed, ANY | SINGLE, NEED_LOADS, "are written that are too many" },
	{ written_at_once, ANY | SINGLE, NEED_STORES,
	  "are written at once if a primary has the frames" },
	{ fewer_allowed, ANY | SINGLE, NEED_STORES, "are in memory when fewer are allowed" },
	{ group_gone, ANY | SINGLE, NEED_STORES,
	  "of a group that is gone are charged to no other" },
	{ group_in_group, ANY | SINGLE, NEED_STORES, "of a gone group are charged to that above" },
	{ wrong_words, ANON | SINGLE, NEED_LOADS, "stay where they are when a setting is wrong" },
	{}
};

static const struct test switch_tests[] = {
	{ steps_while_switched, ANY | SINGLE, NEED_LOADS, "survive policies that change" },
	{ steps_without_memory, ANY | SINGLE, NEED_LOADS,
	  "survive policies that change while allocations fail" },
	{}
};

static const struct test never_tests[] = {
	{ never_dirty, ANY | SINGLE, NEED_LOADS, "are never in the area only" },
	{}
};

static const struct test zswap_dirty_tests[] = {
	{ never_dirty, ANY | SINGLE, NEED_NOTHING, "are never in the area only" },
	{ zswap_comes_and_goes, ANY | SINGLE, NEED_LOADS, "survive zswap coming and going" },
	{ steps_in_zswap, ANY | SINGLE, NEED_NOTHING, "survive a pool that is filled and drained" },
	{}
};

static const struct test zswap_back_tests[] = {
	{ zswap_before_a_primary, ANY | SINGLE, NEED_STORES, "are put back, not given to zswap" },
	{ steps_while_zswap_switched, ANY | SINGLE, NEED_STORES,
	  "survive primaries while zswap comes and goes" },
	{}
};

static const struct test failing_dirty_tests[] = {
	{ unread, ANY | SINGLE, NEED_LOADS, "in the area are not read" },
	{ unwritable_before_a_primary, ANY | SINGLE, NEED_LOADS,
	  "that cannot be written stay in memory" },
	{ unwritable_in_part, ANY | SINGLE, NEED_STORES, "of which some cannot be written do" },
	{ unreadable_in_part, ANY | SINGLE, NEED_STORES,
	  "of which some cannot be read kill who touches those" },
	{}
};

static const struct test traced_tests[] = {
	{ traced, ANY | SINGLE, NEED_LOADS, "are told by tracepoints" },
	{}
};

static const struct test small_tests[] = {
	{ all_is_full, ANY | SINGLE, NEED_LOADS, "are right when swap and the area are full" },
	{}
};

/* Of anonymous pages, which keep their slots while they are only read */
static const struct test over_tests[] = {
	{ read_over, ANON | SINGLE, NEED_STORES, "are read with those between them" },
	{}
};

static const struct test disk_tests[] = {
	{ read_in_blocks, ANON | SINGLE, NEED_LOADS, "are read ahead as without the area" },
	{ refault, ANY | SINGLE, NEED_STORES, "are refaults when a primary took them" },
	{ recently, TMPFS | SINGLE, NEED_LOADS, "were there lately" },
	{}
};

static const struct test zram_tests[] = {
	{ large_loads, ANON | KIB64, NEED_LOADS, "come back as they are at the first touch" },
	{ refault_past_the_cache, ANON | SINGLE, NEED_STORES,
	  "are refaults when others took their frames" },
	{}
};

static const struct test zswap_tests[] = {
	{ in_zswap, ANY | SINGLE, NEED_NOTHING, "in zswap do not go to the area" },
	{ written_back, ANY | SINGLE, NEED_LOADS, "that zswap writes back do" },
	{ spared, ANY | SINGLE, NEED_LOADS, "that come from the area make zswap spare others" },
	{ written_back_and_gone, ANY | SINGLE, NEED_STORES,
	  "that zswap writes back are on the disk, too" },
	{ steps_in_zswap, ANY | SINGLE, NEED_LOADS, "survive a pool that is filled and drained" },
	{}
};

/* Behind all others: programs, and what else is not ours, may have suffered, too. */
static const struct test last_tests[] = {
	{ killed_with_all_in_use, ANY | SINGLE, NEED_STORES, "survive a machine without memory" },
	{}
};

static const struct test failing_tests[] = {
	{ unread, ANY | SINGLE, NEED_LOADS, "in the area are not read" },
	{ unreadable, ANY | SINGLE, NEED_LOADS, "that cannot be read kill who touches them" },
	{ unwritable, ANY | SINGLE, NEED_LOADS, "that cannot be written stay in memory" },
	{ unwritable_in_part, ANY | SINGLE, NEED_STORES, "of which some cannot be written do" },
	{}
};

static const struct device {
	const char *name;
	void (*begin)(void);
	void (*end)(void);
	unsigned int kinds;		/* what it takes as it is */
	const struct policy *policy;
	const struct test *tests[9];
} devices[] = {
	{ "disk", disk_begin, disk_end, ALL, NULL,
	  { tests, steps_tests, through_tests, more_tests, off_tests, disk_tests, over_tests,
	    traced_tests } },
	{ "a rotating disk", rotating_begin, disk_end, ANON | SINGLE, NULL, { over_tests } },
	{ "two disks", disks_begin, disks_end, ANY | SINGLE, NULL,
	  { tests, steps_tests, through_tests, both_tests } },
	{ "a file on ext4", ext4_begin, file_end, ANY | SINGLE, NULL,
	  { tests, steps_tests, through_tests } },
	{ "a file on xfs", xfs_begin, file_end, ANY | SINGLE, NULL,
	  { tests, steps_tests, through_tests } },
	/* The policies differ in what becomes of pages when a primary comes. */
	{ "disk, put-back", disk_begin, disk_end, ANY | SINGLE | KIB64, PUT_BACK,
	  { tests, steps_tests, more_tests, off_tests, dirty_tests, way_tests, settings_tests,
	    back_tests, traced_tests } },
	{ "disk, write-back", disk_begin, disk_end, ANY | SINGLE, WRITE_BACK,
	  { steps_tests, off_tests, dirty_tests, way_tests, back_tests, traced_tests } },
	{ "disk, move-aside", disk_begin, disk_end, ANY | SINGLE | MIB2, MOVE_ASIDE,
	  { steps_tests, off_tests, dirty_tests, way_tests, move_aside_tests, traced_tests } },
	{ "a file on ext4, put-back", ext4_begin, file_end, ANY | SINGLE, PUT_BACK,
	  { steps_tests, way_tests } },
	{ "a file on xfs, write-back", xfs_begin, file_end, ANY | SINGLE, WRITE_BACK,
	  { steps_tests, way_tests } },
	{ "a large disk, put-back", large_begin, large_end, ANY | SINGLE, PUT_BACK,
	  { steps_tests, way_tests, far_tests } },
	{ "a large disk, write-back", large_begin, large_end, ANY | SINGLE, WRITE_BACK,
	  { steps_tests, way_tests, far_tests } },
	{ "a large disk, move-aside", large_begin, large_end, ANY | SINGLE, MOVE_ASIDE,
	  { steps_tests, way_tests, far_tests } },
	{ "disk, all policies", disk_begin, disk_end, ANY | SINGLE, PUT_BACK, { switch_tests } },
	{ "zram", zram_begin, zram_end, ALL, NULL,
	  { tests, steps_tests, through_tests, more_tests, off_tests, zram_tests,
	    traced_tests } },
	{ "zram, put-back", zram_begin, zram_end, ANY | SINGLE, PUT_BACK, { never_tests } },
	/* behind zram: see settings_restore() */
	{ "zswap", zswap_begin, zswap_end, ANY | SINGLE, NULL, { zswap_tests } },
	{ "zswap, put-back", zswap_begin, zswap_end, ANY | SINGLE, PUT_BACK,
	  { zswap_dirty_tests } },
	{ "zswap, write-back", zswap_begin, zswap_end, ANY | SINGLE, WRITE_BACK,
	  { zswap_back_tests } },
	{ "a failing disk", failing_begin, failing_end, ANY | SINGLE, NULL, { failing_tests } },
	{ "a failing disk, write-back", failing_begin, failing_end, ANY | SINGLE, WRITE_BACK,
	  { failing_dirty_tests } },
	{ "a failing disk, put-back", failing_begin, failing_end, ANY | SINGLE, PUT_BACK,
	  { failing_dirty_tests } },
	{ "a failing disk, move-aside", failing_begin, failing_end, ANY | SINGLE, MOVE_ASIDE,
	  { failing_dirty_tests } },
	{ "a small disk", small_begin, disk_end, ANY | SINGLE, NULL, { small_tests } },
	{ "a small disk, put-back", small_begin, disk_end, ANY | SINGLE, PUT_BACK,
	  { small_tests } },
	{ "a small disk, write-back", small_begin, disk_end, ANY | SINGLE, WRITE_BACK,
	  { small_tests } },
	{ "a small disk, move-aside", small_begin, disk_end, ANY | SINGLE, MOVE_ASIDE,
	  { small_tests } },
	{ "disk, put-back", disk_begin, disk_end, ANY | SINGLE, PUT_BACK, { last_tests } },
};

/* In the short form each test has one of the devices that it is for. */
static bool device_of(const struct device *device, unsigned int t, const struct test *test)
{
	unsigned int before = 0, all = 0;

	for (unsigned int d = 0; d < ARRAY_SIZE(devices); d++) {
		for (unsigned int i = 0; i < ARRAY_SIZE(device->tests); i++) {
			if (devices[d].tests[i] != device->tests[t])
				continue;
			before += &devices[d] < device;
			all++;
		}
	}
	return has_turn(test - device->tests[t], before, all);
}

/* Does the device have this test of these pages? In the short form each has one kind of pages. */
static bool test_of(const struct device *device, unsigned int t, const struct test *test,
		    unsigned int k)
{
	unsigned int before = 0, all = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].is & ~device->kinds || kinds[i].is & ~test->kinds)
			continue;
		before += i < k;
		all++;
	}
	if (kinds[k].is & ~device->kinds || kinds[k].is & ~test->kinds)
		return false;
	return device_of(device, t, test) &&
	       has_turn(t + (test - device->tests[t]), before, all);
}

/* How many tests that are, or, if @go, what becomes of them */
static unsigned int device_tests(const struct device *device, bool go)
{
	unsigned int nr = 0;

	for (unsigned int k = 0; k < ARRAY_SIZE(kinds); k++) {
		if (kinds[k].is & ~device->kinds)
			continue;
		if (go)
			kind_begin(&kinds[k]);
		for (unsigned int t = 0; t < ARRAY_SIZE(device->tests); t++) {
			const struct test *test = device->tests[t];

			for (; test && test->fn; test++) {
				if (!test_of(device, t, test, k))
					continue;
				nr++;
				if (!go)
					continue;
				policy_begin(device->policy);
				run(test->fn, test->need, "%s: %s %s", device->name, kinds[k].name,
				    test->name);
			}
		}
	}
	return nr;
}

int main(void)
{
	unsigned int nr = 0;

	for (unsigned int d = 0; d < ARRAY_SIZE(devices); d++)
		nr += device_tests(&devices[d], false);
	start(nr);
	settings_keep();
	/* this process is not what is swapped out */
	mlockall(MCL_CURRENT);
	mkdir(HUGE_TMPFS, 0700);
	mount("tmpfs", HUGE_TMPFS, "tmpfs", 0, "huge=always");
	for (unsigned int d = 0; d < ARRAY_SIZE(devices); d++) {
		lacking = "swap";
		devices[d].begin();
		device_tests(&devices[d], true);
		devices[d].end();
		policy_end();
		settings_restore();
	}
	return finish();
}
